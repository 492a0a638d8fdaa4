/* SPDX-License-Identifier: Apache-2.0 */
/* reconstruct.c - reconstruct one case from files to files: determine its kind, check that the protocol is for it, and run the
 * stages that all kinds have. Before the plan is accepted, memory does not depend on the amount of data, except for headers; no
 * object appears in the output folder before all are on disk. See node/reconstruct/reconstruct.h.
 */
#include "node/reconstruct/reconstruct.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/base/version.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/result/result.h"

/* Limits of a result whose size follows the data: this many times the bytes of the case's files, and at least this many bytes.
 * Tomosynthesis of 9 views has up to 22 times (200 slices), 67 times if the views are compressed; 2048 lines at 60 angles have 34
 * times (tests/node/reconstruct/test_reconstruct.c has the shapes of real scans). */
#define AUTOMATIC_RATIO 100.0
#define AUTOMATIC_BYTES 500e6

static const struct reconstruct_kind *const kinds[KIND_COUNT] = {
#define X(constant, name) [KIND_##constant] = &reconstruct_##name,
	KINDS(X)
#undef X
};

const struct reconstruct_kind *reconstruct_kind_of(enum case_kind kind)
{
	return kinds[kind];
}

int reconstruct_kind_check(const struct reconstruct_kind *k, struct err *err)
{
	const struct {
		const char *name;
		bool is_there;
	} slots[] = {{"recognise", k->recognise},
		     {"size", k->size >= sizeof(struct reconstruct_work)},
		     {"open", k->open},
		     {"read", k->read},
		     {"run", k->run},
		     {"take", k->take},
		     {"write", k->write},
		     {"arrays", k->arrays},
		     {"fill", k->fill},
		     {"release", k->release},
		     {"close", k->close},
		     {"slices_class", k->slices_class}};

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (!slots[i].is_there)
			return err_set(err, EINVAL, "kind of case: member '%s' of its table is empty", slots[i].name);
	return 0;
}

size_t reconstruct_classes(const struct protocol_conf *protocol, const char *ret_classes[RECONSTRUCT_CLASSES_MAX])
{
	const char *view = result_view_class(protocol);
	size_t n = 0;

	ret_classes[n++] = reconstruct_kind_of(protocol->kind)->slices_class;
	if (view)
		ret_classes[n++] = view;
	return n;
}

static bool is_kept(const struct reconstruct_kept *kept)
{
	return kept && kept->work;
}

/* Check the kind by the first file. A file that cannot be read is refused later, by the stages of the protocol's kind. */
static int check_kind(const struct protocol_conf *protocol, const struct reconstruct_kept *kept, const char *const *paths,
		      size_t n_paths, struct err *err)
{
	const struct kind *wanted = kind_of(protocol->kind), *is = is_kept(kept) ? kept->kind : NULL;
	struct case_facts facts;

	if (!is && n_paths > 0 && case_read_facts(paths[0], &facts, NULL) == 0)
		is = facts.kind;
	if (!is || is == wanted)
		return 0;
	return err_set(err, ENOTSUP, "protocol '%s' is for cases of kind %s, but this case is of kind %s", protocol->name,
		       wanted->name, is->name);
}

static int write_result_objects(const struct reconstruct_kind *kind, struct reconstruct_work *w, struct err *err)
{
	int rc;

	monitor_progress(w->monitor, "write", 0);
	if (monitor_cancelled(w->monitor))
		return err_set(err, ECANCELED, "cancelled before writing");
	rc = folder_create(w->out_dir, err);
	if (rc == 0)
		rc = kind->write(w, err);
	if (rc == 0)
		monitor_progress(w->monitor, "write", 1);
	if (rc == -ENOSPC && w->keep_free > 0)
		err_prefix(err, "too little free space beside node.reserve");
	return rc;
}

/* Return the bytes that must stay free where the result is written. */
static uint64_t reserve_of(const struct node_conf *node, const char *out_dir)
{
	size_t n = strlen(node->spool);

	return n > 0 && !strncmp(out_dir, node->spool, n) && out_dir[n] == '/' ? node->reserve : 0;
}

/* Wait for the turn to compute, and compute. */
static int run_in_turn(const struct reconstruct_kind *kind, struct reconstruct_work *w, struct err *err)
{
	const struct result_outside *outside = w->decision->place.outside;
	double begun = clock_seconds();
	int rc = monitor_take_turn(w->monitor, true);

	w->report.seconds_wait += clock_seconds() - begun;
	if (rc < 0)
		return err_set(err, ECANCELED, "cancelled while it waited for the device");
	begun = clock_seconds();
	rc = outside ? kind->take(w, err) : kind->run(w, err);
	if (outside)
		snprintf(w->notes, sizeof(w->notes), "%s", outside->warnings);
	w->report.seconds_reconstruct = clock_seconds() - begun;
	monitor_take_turn(w->monitor, false);
	return rc;
}

/* Write the arrays that a reconstruction would use. */
static int write_arrays(const struct reconstruct_kind *kind, struct reconstruct_work *w, struct err *err)
{
	struct case_arrays *a = w->arrays;
	int rc = kind->arrays(w, err);

	if (rc < 0)
		return rc;
	json_object_update_new(a->json, json_pack("{s:s, s:s, s:s}", "tomonode", TOMONODE_VERSION, "protocol", w->protocol->name,
						  "warnings", w->report.warnings));
	w->report.details = json_incref(a->json);
	return case_arrays_end(a, err);
}

static int do_stages(const struct reconstruct_kind *kind, struct reconstruct_work *w, struct err *err)
{
	double begun = clock_seconds();
	int rc;

	monitor_progress(w->monitor, "open", 0);
	rc = kind->open(w, err);
	w->report.seconds_open =
		clock_seconds() - begun - w->report.seconds_read - w->report.seconds_wait; /* open() may read, too */
	if (rc == 0)
		rc = kind->read(w, err);
	if (rc == 0 && w->arrays)
		return write_arrays(kind, w, err);
	if (rc == 0)
		rc = run_in_turn(kind, w, err);
	return rc < 0 ? rc : write_result_objects(kind, w, err);
}

static void complete_report(const struct reconstruct_kind *kind, struct reconstruct_work *w)
{
	struct reconstruct_report *report = &w->report;
	const struct grid *grid = kind->fill(w);

	snprintf(report->device, sizeof(report->device), "%s", w->dev->name);
	if (w->steps)
		json_object_set(report->details, "steps", w->steps);
	for (int c = 0; c < 3; c++) {
		report->n[c] = grid->n[c];
		report->voxel[c] = grid->h[c];
	}
}

int reconstruct_case(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		     struct pet_cache *cache, struct reconstruct_kept *kept, const char *const *paths, size_t n_paths,
		     const struct case_decision *decision, const char *out_dir, const struct monitor *monitor,
		     struct reconstruct_report *ret_report, struct err *err)
{
	const struct reconstruct_kind *kind = kinds[protocol->kind];
	struct case_arrays arrays = {.folder = out_dir};
	double begun = clock_seconds();
	struct reconstruct_work *w;
	int rc = reconstruct_kind_check(kind, err);

	if (rc == 0)
		rc = check_kind(protocol, kept, paths, n_paths, err);
	if (rc < 0)
		return rc;
	w = is_kept(kept) ? kept->work : calloc(1, kind->size);
	if (!w)
		return err_set(err, ENOMEM, "no memory for a case");
	*w = (struct reconstruct_work){.config = config,
				       .protocol = protocol,
				       .dev = dev,
				       .cache = cache,
				       .paths = paths,
				       .n_paths = n_paths,
				       .decision = decision,
				       .out_dir = out_dir,
				       .arrays = decision->arrays ? &arrays : NULL,
				       .keep_free = reserve_of(&config->node, out_dir),
				       .monitor = monitor,
				       .again = is_kept(kept),
				       .keep = kept && kept->keep};
	if (kept)
		*kept = (struct reconstruct_kept){.keep = kept->keep};
	rc = do_stages(kind, w, err);
	case_arrays_clear(&arrays);
	if (rc == 0) {
		if (!w->arrays)
			complete_report(kind, w);
		w->report.seconds_total = clock_seconds() - begun - w->report.seconds_wait;
		*ret_report = w->report;
	} else {
		reconstruct_report_clear(&w->report);
	}
	json_decref(w->steps);
	w->steps = NULL;
	if (rc == 0 && w->keep) {
		*kept = (struct reconstruct_kept){
			.keep = true, .work = w, .kind = kind_of(protocol->kind), .bytes = w->bytes_kept};
		kind->release(w);
	} else {
		kind->close(w);
		free(w);
	}
	return rc;
}

void reconstruct_kept_clear(struct reconstruct_kept *kept)
{
	if (kept->work) {
		kinds[kind_id(kept->kind)]->close(kept->work);
		free(kept->work);
	}
	*kept = (struct reconstruct_kept){0};
}

int reconstruct_outside(const struct reconstruct_work *w, const struct grid *g, float *ret, struct err *err)
{
	const struct result_outside *o = w->decision->place.outside;
	size_t n = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];

	if (o->n != n)
		return err_set(
			err, ENOTSUP,
			"the volume has %zu values, and with the protocol '%s' it must have %zu: z %d, y %d, x %d, voxels of "
			"%g x %g x %g mm",
			o->n, w->protocol->name, n, g->n[2], g->n[1], g->n[0], g->h[0], g->h[1], g->h[2]);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(o->values[i]))
			return err_set(err, ENOTSUP, "the volume: voxel %zu is %g", i, (double)o->values[i]);
	if (ret)
		memcpy(ret, o->values, n * sizeof(*ret));
	return 0;
}

void reconstruct_name_protocol(const struct reconstruct_work *w, int rc, struct err *err)
{
	if (rc == -ENOMEM)
		err_prefix(err, "protocol '%s'", w->protocol->name);
}

const char *reconstruct_disk_folder(const struct reconstruct_work *w, char above[500])
{
	struct stat st;
	char *slash;

	if (stat(w->out_dir, &st) == 0)
		return w->out_dir;
	snprintf(above, 500, "%s%s", w->out_dir[0] == '/' ? "" : "./", w->out_dir);
	slash = strrchr(above, '/');
	slash[slash == above] = '\0';
	return above;
}

/* Return the bytes of the output folder's disk; false: unknown. */
static bool read_disk(const struct reconstruct_work *w, double *ret_size, double *ret_free)
{
	char above[500];
	struct statvfs disk;

	if (statvfs(reconstruct_disk_folder(w, above), &disk) < 0)
		return false;
	*ret_size = (double)disk.f_blocks * (double)disk.f_frsize;
	*ret_free = (double)disk.f_bavail * (double)disk.f_frsize;
	return true;
}

static double bytes_of_files(const struct reconstruct_work *w)
{
	double bytes = 0;
	struct stat st;

	for (size_t i = 0; i < w->n_paths; i++)
		if (stat(w->paths[i], &st) == 0)
			bytes += (double)st.st_size;
	return bytes;
}

/* Check a result whose number of voxels follows the data: a small object may not ask for hours of work. */
static int check_automatic(const struct reconstruct_work *w, const struct grid *grid, double bytes, const char *key,
			   struct err *err)
{
	double received = bytes_of_files(w);

	if (bytes <= fmax(AUTOMATIC_BYTES, AUTOMATIC_RATIO * received))
		return 0;
	return err_set(err, ENOTSUP,
		       "the result of %d x %d x %d voxels has %.0f MB, but the data only %.1f MB; with %s = 0, a result may have "
		       "%.0f MB, or %.0f times its data: set %s in the protocol '%s'",
		       grid->n[0], grid->n[1], grid->n[2], bytes / 1e6, received / 1e6, key, AUTOMATIC_BYTES / 1e6,
		       AUTOMATIC_RATIO, key, w->protocol->name);
}

static int check_max_result(const struct reconstruct_work *w, const struct grid *grid, double bytes, struct err *err)
{
	double allowed = (double)w->config->node.max_result;

	if (bytes <= allowed)
		return 0;
	return err_set(err, ENOTSUP,
		       "the result of %d x %d x %d voxels has %.0f MB; node.max_result allows %.0f MB: use larger voxels or a "
		       "smaller volume in the protocol '%s', or set node.max_result",
		       grid->n[0], grid->n[1], grid->n[2], bytes / 1e6, allowed / 1e6, w->protocol->name);
}

static int check_disk(const struct reconstruct_work *w, double bytes, struct err *err)
{
	double reserve = (double)w->keep_free, size, left;

	if (!read_disk(w, &size, &left))
		return 0;
	if (bytes > size - reserve)
		return err_set(err, ENOTSUP,
			       "the result has %.0f MB; the disk of %s has %.0f MB, of which node.reserve keeps %.0f MB",
			       bytes / 1e6, w->out_dir, size / 1e6, reserve / 1e6);
	if (bytes > left - reserve)
		return err_set(err, ENOSPC,
			       "the result has %.0f MB; %s has %.0f MB of free space, of which node.reserve keeps %.0f MB",
			       bytes / 1e6, w->out_dir, left / 1e6, reserve / 1e6);
	return 0;
}

int reconstruct_check_size(const struct reconstruct_work *w, const struct grid *grid, const char *automatic, struct err *err)
{
	double bytes = 2.0 * grid->n[0] * grid->n[1] * grid->n[2];
	bool limited = w->config->node.max_result > 0;
	int rc = limited ? check_max_result(w, grid, bytes, err) : 0;

	if (rc == 0 && limited && automatic)
		rc = check_automatic(w, grid, bytes, automatic, err);
	return rc < 0 ? rc : check_disk(w, bytes, err);
}

/* Wait until other workers leave the memory. */
static int wait_for_memory(struct reconstruct_work *w, size_t bytes_device, size_t bytes_host, struct err *err)
{
	double begun = clock_seconds();
	int rc = monitor_reserve(w->monitor, bytes_device, bytes_host);

	w->report.seconds_wait += clock_seconds() - begun;
	if (rc == -EAGAIN) /* of a plan that is made again, after the data were read */
		return err_set(err, EAGAIN, "other workers use the %zu bytes that the plan for the data needs now",
			       bytes_device + bytes_host);
	return rc < 0 ? err_set(err, ECANCELED, "cancelled while it waited for memory") : 0;
}

/* Reserve the memory of what is kept, too, without waiting. */
static int reserve_kept(struct reconstruct_work *w, size_t bytes_device, size_t bytes_host, bool allowed, struct err *err)
{
	bool fits = allowed && monitor_reserve(w->monitor, bytes_device, bytes_host + w->bytes_kept) == 0;

	if (w->again && !fits)
		return err_set(err, ESTALE, "no memory for the plan beside %zu bytes of what is kept", w->bytes_kept);
	w->keep = w->keep && fits;
	return 0;
}

int reconstruct_reserve_memory(struct reconstruct_work *w, size_t bytes_device, size_t bytes_host, size_t bytes_keep,
			       struct err *err)
{
	bool cpu = !strcmp(w->dev->ops->kind, "cpu");
	size_t bytes = bytes_host + (cpu ? bytes_device : 0), allowed = w->dev->host_memory;
	bool fits = allowed == 0 || bytes + bytes_keep <= allowed;

	w->bytes_kept = bytes_keep;
	w->keep = w->keep && bytes_keep > 0;
	if (allowed == 0 || bytes <= allowed || w->again) {
		int rc = w->again ? 0 : wait_for_memory(w, bytes_device, bytes_host, err);

		return rc == 0 && (w->again || w->keep) ? reserve_kept(w, bytes_device, bytes_host, fits, err) : rc;
	}
	return err_set(
		err, ENOTSUP,
		"the protocol '%s' needs %.0f MB of main memory%s; the control group of the node (container, MemoryMax) allows "
		"%.0f MB: raise its limit, lower memory_limit of the protocol, or use larger voxels",
		w->protocol->name, (double)bytes / 1e6, cpu ? "" : " beside the device's", (double)allowed / 1e6);
}
