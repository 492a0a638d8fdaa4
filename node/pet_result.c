/* pet_result.c - a volume of activity onto the disk as a series of PET Image objects. See node/pet_result.h.
 *
 * - Header attributes are filled once; what differs from slice to slice is replaced before each file is opened.
 * - Files are small and many, so what they cost is the sync: several threads convert, write and sync one file each, and at the
 * end all get their names, with one sync of the folder.
 * - stored = round(value / slope); slope = largest |value| of the slice / 32767, as the DS of the header has it, so that stored *
 * slope is the value to half a step.
 */
#include "node/pet_result.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dicom/jpegls.h"
#include "dicom/pixels.h"
#include "node/crew.h"
#include "node/pet_result_parts.h"
#include "node/version.h"

#define WRITERS 8     /* threads; they wait for the disk most of the time */
#define OPEN_FILES 64 /* files at a time */

/* ---- identity ---- */

static void seed_uid(const char *what, const struct sinogram *s, const struct protocol_conf *protocol,
		     char ret_uid[DICOM_UID_SIZE])
{
	char recipe[1024], scanner[512], text[4096];
	struct pet_quantity q = {.factor = NAN};

	config_describe_protocol(protocol, recipe, sizeof(recipe));
	pet_result_describe_scanner(s, scanner, sizeof(scanner));
	pet_result_quantify(s, &q, NULL); /* a scanner's calibration is configuration: another factor makes another image */
	snprintf(text, sizeof(text), "tomonode pet %s|%s|%s|%s|%s|%.17g", what, TOMONODE_VERSION, protocol->name, recipe, scanner,
		 q.factor);
	provenance_uid(text, s->files, s->n_files, ret_uid);
}

void pet_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE])
{
	seed_uid("series", s, protocol, ret_uid);
}

void pet_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE])
{
	char what[32];

	snprintf(what, sizeof(what), "instance %d", slice);
	seed_uid(what, s, protocol, ret_uid);
}

/* ---- place ---- */

static double signed_one(double v)
{
	return v < 0 ? -1 : 1;
}

void pet_result_view(const double axis[3][3], struct pet_view *ret_view)
{
	struct pet_view v = {.across = fabs(axis[1][0]) > fabs(axis[0][0]) + 1e-6 ? 1 : 0};
	double across, down;

	v.down = 1 - v.across;
	across = signed_one(axis[v.across][0]); /* toward L */
	down = signed_one(axis[v.down][1]);	/* toward P */
	v.turn_across = across < 0;
	v.turn_down = down < 0;
	for (int c = 0; c < 3; c++) {
		v.row[c] = across * axis[v.across][c] + 0.0; /* + 0.0 turns -0 into 0 */
		v.column[c] = down * axis[v.down][c] + 0.0;
	}
	for (int c = 0; c < 3; c++)
		v.normal[c] = v.row[(c + 1) % 3] * v.column[(c + 2) % 3] - v.row[(c + 2) % 3] * v.column[(c + 1) % 3] + 0.0;
	v.turn_slices = axis[2][2] > 0; /* z runs to the head: the last slice is the first one there */
	*ret_view = v;
}

int pet_result_slice(const struct pet_view *view, const struct grid *g, int index)
{
	return view->turn_slices ? g->n[2] - 1 - index : index;
}

void pet_result_position(const struct pet_view *view, const struct sinogram *s, const struct grid *g, int index,
			 double ret_position[3])
{
	double at[3];
	int first[3] = {0};

	first[view->across] = view->turn_across ? g->n[view->across] - 1 : 0;
	first[view->down] = view->turn_down ? g->n[view->down] - 1 : 0;
	first[2] = pet_result_slice(view, g, index);
	for (int c = 0; c < 3; c++)
		at[c] = g->lo[c] + (first[c] + 0.5) * g->h[c];
	for (int c = 0; c < 3; c++)
		ret_position[c] = s->centre[c] + at[0] * s->axis[0][c] + at[1] * s->axis[1][c] + at[2] * s->axis[2][c] + 0.0;
}

/* ---- values ---- */

struct range {
	float lo, hi;
};

/* EIO: a voxel is no number. */
static int slice_range(const float *slice, size_t n, struct range *ret_range)
{
	struct range r = {0, 0};

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(slice[i]))
			return -EIO;
		r.lo = slice[i] < r.lo ? slice[i] : r.lo;
		r.hi = slice[i] > r.hi ? slice[i] : r.hi;
	}
	*ret_range = r;
	return 0;
}

static double slope_of(const struct pet_result *r, const struct range *range)
{
	double top = r->quantity.factor * fmax(range->hi, -range->lo);

	return top > 0 ? top / PET_RESULT_TOP : 1;
}

static void store(const struct pet_result *r, const float *slice, double slope, uint16_t *ret_values)
{
	const struct grid *g = &r->info->plan->grid;
	ptrdiff_t step[2] = {1, g->n[0]};
	ptrdiff_t right = step[r->view.across], below = step[r->view.down], at = 0;
	double per_step = r->quantity.factor / slope;

	if (r->view.turn_across) {
		at += right * (r->columns - 1);
		right = -right;
	}
	if (r->view.turn_down) {
		at += below * (r->rows - 1);
		below = -below;
	}
	for (long i = 0; i < r->rows; i++)
		for (long j = 0; j < r->columns; j++) {
			long v = lround(slice[at + i * below + j * right] * per_step);

			v = v > PET_RESULT_TOP ? PET_RESULT_TOP : v < -PET_RESULT_TOP ? -PET_RESULT_TOP : v;
			*ret_values++ = (uint16_t)v;
		}
}

/* ---- files ---- */

struct writing {
	const struct pet_result *r;
	const float *volume;
	const struct range *range; /* of each slice of the volume */
	struct dicom_writer **writers;
	double *slope; /* of each instance, as its header has it */
	int first;     /* instance that part 0 of the loop is */
	pthread_mutex_t lock;
	int rc; /* of the first failure */
	struct err err;
};

static int write_frame(const struct pet_result *r, struct dicom_writer *writer, const float *slice, double slope, struct err *err)
{
	size_t n = (size_t)r->rows * (size_t)r->columns, size = jpegls_bound(r->columns, r->rows), used;
	bool encode = r->info->protocol->compression == COMPRESSION_JPEGLS;
	uint16_t *values = malloc(n * sizeof(*values));
	void *code = encode ? malloc(size) : NULL;
	int rc;

	if (!values || (encode && !code)) {
		rc = err_set(err, ENOMEM, "no memory for a frame of %ld x %ld", r->columns, r->rows);
		goto out;
	}
	store(r, slice, slope, values);
	if (encode) {
		rc = jpegls_encode(values, r->columns, r->rows, 16, code, size, &used, err);
		if (rc >= 0)
			rc = dicom_writer_fragment(writer, code, used, err);
	} else {
		rc = dicom_writer_frame(writer, values, err);
	}
	if (rc >= 0)
		rc = dicom_writer_sync(writer, err);
out:
	free(code);
	free(values);
	return rc;
}

static void write_part(void *ctx, size_t part)
{
	struct writing *w = ctx;
	const struct grid *g = &w->r->info->plan->grid;
	int index = w->first + (int)part, rc;
	size_t slice = (size_t)pet_result_slice(&w->r->view, g, index);
	struct err err = {0};

	rc = write_frame(w->r, w->writers[index], w->volume + slice * (size_t)g->n[0] * (size_t)g->n[1], w->slope[index], &err);
	if (rc >= 0)
		return;
	pthread_mutex_lock(&w->lock);
	if (w->rc >= 0) {
		w->rc = rc;
		w->err = err;
	}
	pthread_mutex_unlock(&w->lock);
}

static void name_file(const char *sop_instance, int index, char ret_name[64])
{
	char digest[65];

	dicom_sha256(sop_instance, strlen(sop_instance), digest);
	snprintf(ret_name, 64, "pt-%04d-%.16s.dcm", index + 1, digest);
}

/* The header of one instance, and its file. */
static int open_file(struct writing *w, struct dicom_file *header, const char *folder, int index,
		     struct pet_result_report *report, struct err *err)
{
	const struct pet_result *r = w->r;
	int slice = pet_result_slice(&r->view, &r->info->plan->grid, index);
	struct fill root = {.item = dicom_root(header), .err = err};
	char path[4096];

	pet_result_fill_slice(r, index, slope_of(r, &w->range[slice]), &root);
	if (root.rc < 0)
		return root.rc;
	if (dicom_get_double(root.item, TAG_RESCALE_SLOPE, 0, &w->slope[index], err) != 1 || !(w->slope[index] > 0))
		return err_set(err, EIO, "slice %d: its largest value %g cannot be a Rescale Slope", index + 1,
			       w->slope[index] * PET_RESULT_TOP);
	if (dicom_get_text(root.item, TAG_SOP_INSTANCE_UID, report->sop_instance[index], DICOM_UID_SIZE, err) != 1)
		return err_set(err, EIO, "slice %d has no UID", index + 1);
	name_file(report->sop_instance[index], index, report->file[index]);
	if (snprintf(path, sizeof(path), "%s/%s", folder, report->file[index]) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "output folder: its name is too long");
	return r->info->protocol->compression == COMPRESSION_JPEGLS
		       ? dicom_writer_open_jpegls(path, header, &w->writers[index], err)
		       : dicom_writer_open(path, header, &w->writers[index], err);
}

static int write_files(struct writing *w, struct dicom_file *header, const char *folder, struct pet_result_report *report,
		       struct err *err)
{
	int n = w->r->info->plan->grid.n[2], rc;
	struct crew *crew = NULL;

	rc = crew_create(WRITERS, &crew, err);
	for (int first = 0; rc >= 0 && first < n; first += OPEN_FILES) {
		int many = n - first < OPEN_FILES ? n - first : OPEN_FILES;

		for (int i = first; rc >= 0 && i < first + many; i++)
			rc = open_file(w, header, folder, i, report, err);
		if (rc < 0)
			break;
		w->first = first;
		crew_run(crew, (size_t)many, write_part, w);
		rc = w->rc;
		if (rc < 0 && err)
			*err = w->err;
	}
	for (int i = 0; rc >= 0 && i < n; i++)
		report->bytes += dicom_writer_bytes(w->writers[i]);
	if (rc >= 0)
		rc = dicom_writers_publish(w->writers, (size_t)n, err);
	crew_free(crew);
	return rc;
}

/* ---- all of it ---- */

void pet_result_report_clear(struct pet_result_report *r)
{
	free(r->file);
	free(r->sop_instance);
	*r = (struct pet_result_report){0};
}

static int measure_volume(struct pet_result *r, const float *volume, struct range *ret_range, struct err *err)
{
	const struct grid *g = &r->info->plan->grid;
	size_t n = (size_t)g->n[0] * (size_t)g->n[1];

	for (int k = 0; k < g->n[2]; k++) {
		if (slice_range(volume + (size_t)k * n, n, &ret_range[k]) < 0)
			return err_set(err, EIO, "slice %d of %d: a voxel is no number", k + 1, g->n[2]);
		r->is_signed = r->is_signed || ret_range[k].lo < 0;
		r->largest = fmax(r->largest, r->quantity.factor * ret_range[k].hi);
	}
	return 0;
}

static int make_header(const struct pet_result *r, struct dicom_file **ret_header, struct err *err)
{
	struct dicom_file *header = NULL;
	struct fill root = {.err = err};
	char uid[DICOM_UID_SIZE];

	pet_result_uid(r->s, r->info->protocol, 0, uid);
	root.rc = dicom_new(PET_RESULT_CLASS, uid, &header, err);
	if (root.rc < 0)
		return root.rc;
	root.item = dicom_root(header);
	pet_result_fill_header(r, &root);
	pet_result_fill_sources(r, &root);
	if (root.rc < 0)
		dicom_close(header);
	else
		*ret_header = header;
	return root.rc;
}

static int describe(struct pet_result *r, struct err *err)
{
	const struct sinogram *s = r->s;
	const struct grid *g = &r->info->plan->grid;
	int rc = pet_result_quantify(s, &r->quantity, err);

	if (rc < 0)
		return rc;
	r->source = dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
	pet_result_view(s->axis, &r->view);
	r->columns = g->n[r->view.across];
	r->rows = g->n[r->view.down];
	pet_result_series(s, r->info->protocol, r->series);
	provenance_time(r->source, r->info->now, &r->now);
	config_describe_protocol(r->info->protocol, r->protocol, sizeof(r->protocol));
	pet_result_describe_scanner(s, r->scanner, sizeof(r->scanner));
	return 0;
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int pet_result_write(const struct sinogram *s, const struct pet_result_info *info, const float *volume, const char *folder,
		     struct pet_result_report *ret_report, struct err *err)
{
	size_t n = (size_t)info->plan->grid.n[2];
	struct pet_result r = {.s = s, .info = info};
	struct pet_result_report report = {.n = (int)n};
	struct range *range = calloc(n, sizeof(*range));
	struct writing w = {.r = &r, .volume = volume, .range = range, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct dicom_file *header = NULL;
	double begun = seconds_now();
	int rc;

	w.writers = calloc(n, sizeof(*w.writers));
	w.slope = calloc(n, sizeof(*w.slope));
	report.file = calloc(n, sizeof(*report.file));
	report.sop_instance = calloc(n, sizeof(*report.sop_instance));
	if (!range || !w.writers || !w.slope || !report.file || !report.sop_instance) {
		rc = err_set(err, ENOMEM, "no memory for %zu slices", n);
		goto out;
	}
	rc = describe(&r, err);
	if (rc >= 0)
		rc = measure_volume(&r, volume, range, err);
	if (rc >= 0)
		rc = make_header(&r, &header, err);
	if (rc >= 0)
		rc = write_files(&w, header, folder, &report, err);
	if (rc < 0) {
		err_within(err, "result");
		goto out;
	}
	memcpy(report.series, r.series, sizeof(report.series));
	snprintf(report.units, sizeof(report.units), "%s", r.quantity.calibrated ? "BQML" : "CNTS");
	report.factor = r.quantity.factor;
	memcpy(report.corrected, r.quantity.corrected, sizeof(report.corrected));
	memcpy(report.warnings, r.quantity.warnings, sizeof(report.warnings));
	report.seconds_write = seconds_now() - begun;
	*ret_report = report;
	report = (struct pet_result_report){0};
	rc = 0;
out:
	for (size_t i = 0; w.writers && i < n; i++)
		dicom_writer_abort(w.writers[i]);
	dicom_close(header);
	pet_result_report_clear(&report);
	free(w.slope);
	free(w.writers);
	free(range);
	return rc;
}
