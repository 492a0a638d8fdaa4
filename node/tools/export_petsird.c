/* SPDX-License-Identifier: Apache-2.0 */
/* export_petsird.c - write the prompts of a PET acquisition as list mode in a PETSIRD file (docs/petsird.md).
 *
 * - Sinogram objects: each count is an event of the two detectors of its bin. A bin of several pairs of detectors (a span above
 *   1, added views, arc correction) is refused: which pair was hit is not known. The counts must be whole numbers. The events of a
 *   time frame, or of the whole acquisition, are one time block. The bytes of EMISSION are in memory; bins are visited twice, to
 *   count and check them, and to write their events.
 * - List mode of a Siemens mMR: the events as they are, prompts and delayed, a time block for each time mark (several for very
 *   many events). Gaps between blocks of detectors have the efficiency 0.
 *
 * Factors and background (attenuation, normalisation, ...) are not written. */
#include "node/tools/export_format.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/plural.h"
#include "node/format/petsird_write.h"
#include "node/sinogram/pet_source.h"

#define PIECE 65536	      /* events */
#define COUNT_MAX 16777216.0f /* a float has all whole numbers up to here */

struct written {
	uint64_t prompts, delayeds;
	size_t blocks;
};

struct list {
	const struct sinogram *s;
	const struct interfile *header;
	struct michelogram m;		      /* its bins are those of the events */
	struct michelogram_segment *segments; /* of m if they are not those of the header; else NULL */
	struct michelogram_index index;
	struct petsird_writer *w;
	struct written *report;
	float *plane; /* [angle][radial] */
	struct petsird_event events[PIECE];
	size_t n;
	long first, last; /* ms: time marks; first -1: none so far */
};

/* ---- bins ---- */

static int add_event(struct list *x, const struct petsird_event *e, struct err *err)
{
	int rc = 0;

	if (x->n == PIECE) {
		rc = petsird_add(x->w, x->events, x->n, err);
		x->n = 0;
	}
	x->events[x->n++] = *e;
	return rc;
}

static int check_count(size_t plane, int angle, int radial, float value, struct err *err)
{
	if (value >= 0 && value <= COUNT_MAX && value == floorf(value))
		return 0;
	return err_set(
		err, EBADMSG,
		"plane %zu, angle %d, radial bin %d has the value %g; list mode can only be made of counts, whole numbers up "
		"to %.0f",
		plane, angle, radial, (double)value, (double)COUNT_MAX);
}

/* Check and count the events of a plane of the data; write: write them instead. */
static int do_plane(struct list *x, const uint8_t *bytes, size_t plane, bool write, uint64_t *sum, struct err *err)
{
	const struct michelogram *m = &x->m;
	size_t planes = (size_t)x->index.n_planes;
	int rc = 0;

	interfile_plane(x->header, bytes, plane, x->plane);
	for (int i = 0; rc == 0 && i < m->n_angles * m->n_radial; i++) {
		struct michelogram_bin bin = {(int)(plane % planes), i / m->n_radial, i % m->n_radial, false};
		struct petsird_event e;

		if (x->plane[i] == 0)
			continue;
		rc = check_count(plane, bin.angle, bin.radial, x->plane[i], err);
		if (rc == 0 && !write)
			*sum += (uint64_t)x->plane[i];
		if (!write)
			continue;
		e = petsird_event_of(m, &x->index, (int)(plane / planes), &bin);
		for (uint64_t k = (uint64_t)x->plane[i]; rc == 0 && k > 0; k--)
			rc = add_event(x, &e, err);
	}
	return rc;
}

static int do_planes(struct list *x, const uint8_t *bytes, bool write, uint64_t *sum, struct err *err)
{
	size_t n = michelogram_data_planes(&x->m);
	int rc = 0;

	for (size_t plane = 0; rc == 0 && plane < n; plane++)
		rc = do_plane(x, bytes, plane, write, sum, err);
	return rc;
}

/* Write the chosen time frame, or all data, as one time block. */
static int write_block(struct list *x, int64_t start, int64_t stop, struct err *err)
{
	uint8_t *bytes = NULL;
	uint64_t sum = 0;
	int rc = sinogram_read(x->s, SINOGRAM_EMISSION, &bytes, err);

	if (rc == 0)
		rc = do_planes(x, bytes, false, &sum, err);
	if (rc == 0)
		rc = petsird_begin(x->w, (uint32_t)start, (uint32_t)stop, sum, err);
	if (rc == 0)
		rc = do_planes(x, bytes, true, &sum, err);
	if (rc == 0)
		rc = petsird_add(x->w, x->events, x->n, err);
	if (rc == 0)
		rc = petsird_end(x->w, err);
	x->n = 0;
	x->report->prompts += sum;
	x->report->blocks++;
	free(bytes);
	return rc;
}

/* Return the duration in ms; 0: unknown. */
static int64_t duration_of(const struct list *x)
{
	double seconds = isfinite(x->s->facts.duration) ? x->s->facts.duration : x->header->duration;

	return seconds > 0 && seconds < UINT32_MAX / 1000.0 ? llround(seconds * 1000) : 0;
}

static int write_blocks(struct list *x, struct sinogram *s, struct err *err)
{
	int64_t duration = duration_of(x);
	int rc = 0;

	if (s->images.of != PET_FRAMES && duration == 0)
		return err_set(
			err, EBADMSG,
			"the duration of the acquisition is unknown: neither Actual Frame Duration (0018,1242) nor the header "
			"contains it");
	if (s->images.of != PET_FRAMES)
		return write_block(x, 0, duration, err);
	if (s->images.image[0].time.start > 0) /* readers count time from the first block: an empty one is at the start */
		rc = petsird_write(x->w, 0, 0, NULL, 0, err);
	for (int i = 0; rc == 0 && i < s->images.n; i++) {
		sinogram_choose_frame(s, i);
		rc = write_block(x, s->images.image[i].time.start, s->images.image[i].time.stop, err);
	}
	return rc;
}

/* ---- list mode of a scanner ---- */

/* Write the events since the last time mark, and forget them. */
static int flush_events(struct list *x, long stop, struct err *err)
{
	long from = x->first < 0 ? 0 : x->last - x->first;
	int rc = petsird_write(x->w, (uint32_t)from, (uint32_t)stop, x->events, x->n, err);

	x->n = 0;
	x->report->blocks++;
	return rc;
}

static int add_mark(struct list *x, long ms, struct err *err)
{
	int rc = 0;

	if (x->first >= 0 && ms < x->last)
		return err_set(err, EBADMSG, "list mode: a time mark of %ld ms after one of %ld ms", ms, x->last);
	if (x->first >= 0)
		rc = flush_events(x, ms - x->first, err);
	else if (x->n > 0)
		rc = flush_events(x, 0, err);
	x->first = x->first < 0 ? ms : x->first;
	x->last = ms;
	return rc;
}

static int add_entry(void *ctx, const struct pet_entry *entry, struct err *err)
{
	struct list *x = ctx;
	struct petsird_event *e = &x->events[x->n];

	if (entry->type == PET_ENTRY_MARK)
		return add_mark(x, entry->ms, err);
	*e = petsird_event_of(&x->m, &x->index, 0, &entry->bin);
	e->delayed = entry->type == PET_ENTRY_DELAYED;
	x->report->prompts += !e->delayed;
	x->report->delayeds += e->delayed;
	return ++x->n == PIECE ? flush_events(x, x->first < 0 ? 0 : x->last - x->first, err) : 0;
}

static int write_entries(struct list *x, struct err *err)
{
	int rc;

	x->first = -1;
	rc = x->s->source->recording->read(x->s, add_entry, x, err);
	return rc < 0 ? rc : flush_events(x, x->first < 0 ? 1 : x->last - x->first + 1, err);
}

/* ---- the file ---- */

static int create_writer(struct list *x, const char *path, struct err *err)
{
	struct petsird_scan scan = {.m = &x->m, .is_gap = x->s->source->recording ? x->s->source->recording->is_gap : NULL};
	const struct pet_facts *f = &x->s->facts;
	char model[65] = "";
	double offset;

	dicom_get_text(dicom_root(x->s->files[0]), TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	scan.model = model[0] ? model : x->header->scanner[0] ? x->header->scanner : "unknown";
	if (!pet_facts_moment(f->acquisition_date, f->acquisition_time, &scan.start))
		scan.start = 0;
	else if (pet_facts_offset(f->zone, &offset)) /* PETSIRD has UTC; times without an offset are taken as UTC */
		scan.start -= offset;
	return petsird_create(path, &scan, &x->w, err);
}

static int open_list(struct list *x, struct err *err)
{
	const struct michelogram *m = &x->m;
	int rc = michelogram_index_init(m, &x->index, err);

	if (rc < 0)
		return rc;
	x->plane = malloc((size_t)m->n_angles * (size_t)m->n_radial * sizeof(*x->plane));
	return x->plane ? 0 : err_set(err, ENOMEM, "no memory for a plane of %d x %d bins", m->n_angles, m->n_radial);
}

static int write_file(struct list *x, struct sinogram *s, const char *path, struct err *err)
{
	const struct pet_recording *list = s->source->recording;
	int rc = list ? list->segments(&x->segments, &x->m.n_segments, err) : 0;

	if (list)
		x->m.segments = x->segments;
	if (rc == 0)
		rc = create_writer(x, path, err);
	if (rc < 0)
		return rc;
	rc = open_list(x, err);
	if (rc == 0)
		rc = list ? write_entries(x, err) : write_blocks(x, s, err);
	if (rc == 0)
		return petsird_finish(x->w, err);
	petsird_abort(x->w);
	return rc;
}

/* Write the file, or nothing, and add to *ret. The chosen time frame of s changes. Errors: ENOTSUP (no list mode can be made of
 * these data), EBADMSG (counts that are not whole numbers, an unknown duration), ENOMEM. */
static int write_list(struct sinogram *s, const char *path, struct written *ret, struct err *err)
{
	struct list *x;
	int rc;

	if (s->format->header != INTERFILE_PROJECTIONS)
		return err_set(err, ENOTSUP, "%s have no detectors, and no list mode", s->format->type->title);
	if (s->images.of == PET_GATES)
		return err_set(err, ENOTSUP, "the acquisition has %d gates; the times of their events are not known",
			       s->images.n);
	if (s->images.of == PET_BEDS)
		return err_set(err, ENOTSUP, "the acquisition has %d beds; a PETSIRD file has one", s->images.n);
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(err, ENOMEM, "no memory for events");
	x->s = s;
	x->header = &s->part[SINOGRAM_EMISSION].header;
	x->m = x->header->m;
	x->report = ret;
	rc = write_file(x, s, path, err);
	free(x->plane);
	free(x->segments);
	free(x);
	return rc;
}

/* ---- the format ---- */

/* Write the names of the roles other than EMISSION, separated by commas. */
static void list_factors(const struct sinogram *s, char *ret, size_t size)
{
	*ret = '\0';
	for (int role = SINOGRAM_EMISSION + 1; role <= SINOGRAM_ROLES; role++)
		if (s->part[role].present && !(s->source->list_mode && role == SINOGRAM_DELAYEDS)) /* those are in the list */
			snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", *ret ? ", " : "",
				 sinogram_role_name((enum sinogram_role)role));
}

static int name_petsird(struct export_job *j, struct err *err)
{
	return export_job_add(j, strdup(j->out), false, "", err);
}

static int write_petsird(struct export_job *j, struct err *err)
{
	struct written w = {0};
	char factors[100];
	int rc = write_list(j->sinogram, j->out, &w, err);

	if (rc < 0)
		return rc;
	list_factors(j->sinogram, factors, sizeof(factors));
	snprintf(j->text, sizeof(j->text), "%llu prompts, %llu delayed events, %zu time block%s%s%s",
		 (unsigned long long)w.prompts, (unsigned long long)w.delayeds, w.blocks, plural(w.blocks),
		 factors[0] ? "; not written: " : "", factors);
	j->details = json_pack("{s:I, s:I, s:I, s:s}", "prompts", (json_int_t)w.prompts, "delayeds", (json_int_t)w.delayeds,
			       "blocks", (json_int_t)w.blocks, "not_written", factors);
	return 0;
}

const struct export_format export_format_petsird = {
	.endings = {".petsird"},
	.help = ".petsird  list mode (docs/petsird.md): the events of a Siemens mMR, or one for each count of sinograms of span 1\n"
		"      whose bins are pairs of detectors. Factors and background are not written.\n",
	.input = EXPORT_EVENTS,
	.name_files = name_petsird,
	.write = write_petsird,
};
