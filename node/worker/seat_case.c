/* SPDX-License-Identifier: Apache-2.0 */
/* seat_case.c - have the pilot reconstruct a case: send its files, report its progress. seat_result.c fetches its result.
 *
 * - After a lost connection the next seat continues with what is there (CASE_LOST; the job keeps running).
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/digest.h"
#include "node/base/folder.h"
#include "node/base/stage_names.h"
#include "node/worker/seat_internal.h"

/* ---- the order ---- */

static int add_flatfield(struct seat_case *c, size_t profile, size_t number, const char *path, const char *name, struct err *err)
{
	struct pilot_case *order = &c->order;
	struct pilot_flatfield *list = realloc(order->flatfields, (order->n_flatfields + 1) * sizeof(list[0]));
	char **paths = list ? realloc(c->flatfields, (order->n_flatfields + 1) * sizeof(paths[0])) : NULL;
	struct pilot_flatfield *f;
	struct stat st;

	order->flatfields = list ? list : order->flatfields;
	c->flatfields = paths ? paths : c->flatfields;
	if (!list || !paths)
		return err_set(err, EAGAIN, "no memory for a list of flat fields");
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EBADMSG, "the flat field %s of the profile '%s' cannot be read", name,
			       c->seat->process.config->profiles[profile].name);
	f = &list[order->n_flatfields];
	*f = (struct pilot_flatfield){.bytes = (uint64_t)st.st_size};
	snprintf(f->profile, sizeof(f->profile), "%s", c->seat->process.config->profiles[profile].name);
	snprintf(f->file, sizeof(f->file), "flatfields/%zu/%04zu.dcm", profile, number);
	paths[order->n_flatfields] = strdup(path);
	if (!paths[order->n_flatfields])
		return err_set(err, EAGAIN, "no memory for a path");
	order->n_flatfields++;
	return 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The key `flatfield` is a file or a folder of files; their order by name is kept. */
static int add_profile(struct seat_case *c, size_t profile, struct err *err)
{
	const char *path = c->seat->process.config->profiles[profile].flatfield;
	struct dirent **entries = NULL;
	int n = path[0] ? scandir(path, &entries, is_visible, alphasort) : 0, ret = 0;
	char file[600];

	if (n < 0 && errno == ENOTDIR)
		return add_flatfield(c, profile, 0, path, file_name(path), err);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		if (ret == 0)
			ret = add_flatfield(c, profile, (size_t)i, file, entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	return ret; /* a folder that cannot be read is reported by the case that needs it */
}

/* Set the sizes to those of the files: one that another sender sent again may have a longer group 0002 than is recorded. */
static void measure_files(struct seat_case *c)
{
	for (size_t i = 0; i < c->order.order.n_files; i++) {
		struct instance_row *row = &c->order.order.files[i];
		char path[500];
		struct stat st;

		if (snprintf(path, sizeof(path), "%s/%s", c->spool, row->file) < (int)sizeof(path) && lstat(path, &st) == 0 &&
		    S_ISREG(st.st_mode))
			row->bytes = (uint64_t)st.st_size;
	}
}

static int make_order(struct seat_case *c, const struct case_order *order, struct err *err)
{
	const struct config *config = c->seat->process.config;
	int ret = 0;

	c->order.order = *order;
	c->order.config = c->seat->config_text;
	measure_files(c);
	for (size_t i = 0; ret == 0 && !config->cluster.shared_spool && i < config->n_profiles; i++)
		ret = add_profile(c, i, err);
	return ret;
}

static int send_case(struct seat_case *c, struct err *err)
{
	struct wire_message m = {.kind = WIRE_CASE,
				 .job = c->order.order.job,
				 .attempt = c->order.order.attempt,
				 .shared = c->seat->process.config->cluster.shared_spool,
				 .body = pilot_case_encode(&c->order)};
	int ret = m.body ? link_send(c->seat->link, &m, err) : err_set(err, EAGAIN, "no memory for an order");

	json_decref(m.body);
	return ret;
}

static int file_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct seat_case *c = ctx;
	size_t n = c->order.order.n_files;
	uint64_t bytes;
	const char *file = pilot_case_file(&c->order, i, &bytes);
	int length =
		i < n ? snprintf(ret_path, size, "%s/%s", c->spool, file) : snprintf(ret_path, size, "%s", c->flatfields[i - n]);

	*ret_bytes = (int64_t)bytes;
	return length < (int)size ? 0 : err_set(err, ENAMETOOLONG, "the path of %s is too long", file);
}

void seat_end_case(struct seat_case *c, int code, const char *reason)
{
	c->done = true;
	if (code)
		err_set(&c->result->why, code, "%s", reason);
}

/* ---- messages ---- */

static int on_have(struct seat_case *c, struct wire_message *m, struct err *err)
{
	bool shared = c->seat->process.config->cluster.shared_spool;

	if (m->job != c->order.order.job || m->attempt != c->order.order.attempt)
		return 0;
	if (m->n_offsets != (shared ? 0 : pilot_case_files(&c->order)))
		return err_set(err, EBADMSG, "a HAVE of %zu files", m->n_offsets);
	transfer_out_end(&c->out);
	free(c->offsets);
	c->offsets = m->offsets;
	c->out = (struct transfer_out){.n = m->n_offsets, .offsets = c->offsets, .file = file_path, .ctx = c, .fd = -1};
	m->offsets = NULL;
	return 0;
}

/* The stage is written to a file: only known ones. */
static const char *known_stage(const char *stage)
{
	for (size_t i = 0; i < STAGES; i++)
		if (!strcmp(stage, stage_names[i]))
			return stage_names[i];
	return "reconstruct";
}

/* The same progress once more is none: a pilot that hangs and still sends must not keep its case. */
static void on_progress(struct seat_case *c, const struct wire_message *m)
{
	const char *stage = known_stage(m->text);

	if (m->job != c->order.order.job || m->attempt != c->order.order.attempt)
		return;
	if (c->stage && !strcmp(c->stage, stage) && c->fraction == m->fraction)
		return;
	c->stage = stage;
	c->fraction = m->fraction;
	monitor_progress(c->monitor, stage, m->fraction);
}

static int on_message(struct seat_case *c, struct wire_message *m, const void *bytes, size_t n, struct err *err)
{
	switch (m->kind) {
	case WIRE_HAVE:
		return on_have(c, m, err);
	case WIRE_PROGRESS:
		on_progress(c, m);
		return 0;
	case WIRE_OUTCOME:
		return seat_on_outcome(c, m, err);
	case WIRE_FILE:
		return seat_on_file(c, m, err);
	case WIRE_DATA:
		return seat_on_data(c, bytes, n, err);
	default:
		return err_set(err, EBADMSG, "an unexpected message %s", wire_kind_name(m->kind));
	}
}

static int send_files(struct seat_case *c, struct err *err)
{
	size_t before = c->out.index;
	int ret;

	c->seat->sending = false;
	if (c->out.index >= c->out.n)
		return 0;
	ret = transfer_out_step(&c->out, c->seat->link, err);
	if (c->out.index > before || ret == 1)
		monitor_progress(c->monitor, "open", (double)c->out.index / (double)c->out.n);
	c->seat->sending = ret == 0;
	return ret < 0 ? ret : 0;
}

/* A file cannot be read. An image may be damaged: the job run verifies all of them, and names those that are. */
static void end_unreadable(struct seat_case *c, const struct err *why)
{
	bool image = c->out.index < c->order.order.n_files && !digest_error_is_transient(why->code);

	c->result->damaged = image;
	seat_end_case(c, image ? EBADMSG : why->code, why->msg);
}

/* Messages until the case is done. Negative: the connection cannot be used any more. */
static int converse_case(struct seat_case *c, struct err *err)
{
	int ret = send_case(c, err);

	while (ret >= 0 && !c->done) {
		struct wire_message m;
		const void *bytes;
		size_t n;

		ret = send_files(c, err);
		if (ret < 0) { /* this is no fault of the pilot */
			end_unreadable(c, err);
			return seat_cancel(c->seat, c->order.order.job, c->order.order.attempt, err);
		}
		ret = seat_receive(c->seat, &m, &bytes, &n, err);
		if (ret == 1) {
			ret = on_message(c, &m, bytes, n, err);
			wire_clear(&m);
		}
		if (ret >= 0 && !c->done && c->seat->cancelled) {
			seat_end_case(c, ECANCELED, "cancelled");
			ret = seat_cancel(c->seat, c->order.order.job, c->order.order.attempt, err);
		}
		if (ret >= 0 && !c->done && c->seat->stopped())
			ret = err_set(err, ECONNRESET, "the node was asked to stop");
	}
	return ret;
}

void seat_compute(void *ctx, const struct case_order *order, const char *out_dir, const struct monitor *monitor,
		  struct case_outcome *ret_outcome)
{
	struct seat *seat = ctx;
	struct case_outcome result = {0};
	struct seat_case c = {.seat = seat,
			      .out_dir = out_dir,
			      .spool = seat->process.config->node.spool,
			      .monitor = monitor,
			      .out.fd = -1,
			      .in.fd = -1,
			      .result = &result};
	struct err err = {0};

	if (make_order(&c, order, &err) < 0) {
		seat_end_case(&c, err.code, err.msg);
	} else if (converse_case(&c, &err) < 0) {
		json_decref(result.detail);
		result = (struct case_outcome){0};
		err_set(&result.why, CASE_LOST, "%s", err.msg);
	}
	seat->sending = false;
	transfer_out_end(&c.out);
	transfer_in_end(&c.in);
	for (size_t i = 0; i < c.order.n_flatfields; i++)
		free(c.flatfields[i]);
	free(c.flatfields);
	free(c.order.flatfields);
	free(c.offsets);
	wire_clear(&c.outcome);
	*ret_outcome = result;
}
