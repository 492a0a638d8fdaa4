/* SPDX-License-Identifier: Apache-2.0 */
/* result_slices.c - see node/result/result_slices.h.
 *
 * - The caller writes the shared header attributes once; the attributes of each slice are replaced before its file is opened.
 * - The files are small and many, so that most time is spent in fsync: several threads convert, write and sync one file each; at
 * the end all files are renamed, with one sync of the folder.
 */
#include "node/result/result_slices.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/jpegls.h"
#include "dicom/pixels/pixels.h"
#include "node/base/digest_stream.h"
#include "node/base/thread_pool.h"

#define WRITERS 8     /* number of threads; they wait for the disk most of the time */
#define OPEN_FILES 64 /* maximum number of open files */

/* ---- orientation and position ---- */

static double signed_one(double v)
{
	return v < 0 ? -1 : 1;
}

void slice_view_make(const double axis[3][3], struct slice_view *ret_view)
{
	struct slice_view v = {.across = fabs(axis[1][0]) > fabs(axis[0][0]) + 1e-6 ? 1 : 0};
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
	v.turn_slices = axis[2][2] > 0; /* z points to the head: the volume's last slice is the first instance */
	*ret_view = v;
}

int slice_view_slice(const struct slice_view *view, const struct grid *g, int index)
{
	int first = index - index % g->n[2]; /* of the volume */

	return view->turn_slices ? first + g->n[2] - 1 - index % g->n[2] : index;
}

void slice_view_position(const struct slice_view *view, const double centre[3], const double axis[3][3], const struct grid *g,
			 int index, double ret_position[3])
{
	double at[3];
	int first[3] = {0};

	first[view->across] = view->turn_across ? g->n[view->across] - 1 : 0;
	first[view->down] = view->turn_down ? g->n[view->down] - 1 : 0;
	first[2] = slice_view_slice(view, g, index % g->n[2]);
	for (int c = 0; c < 3; c++)
		at[c] = g->lo[c] + (first[c] + 0.5) * g->h[c];
	for (int c = 0; c < 3; c++)
		ret_position[c] = centre[c] + at[0] * axis[0][c] + at[1] * axis[1][c] + at[2] * axis[2][c] + 0.0;
}

void result_slices_fill_plane(const struct slice_view *view, const struct grid *g, bool is_signed, struct item_writer *w)
{
	double spacing[2] = {g->h[view->down], g->h[view->across]}, cosines[6];

	item_put_int(w, TAG_PIXEL_REPRESENTATION, is_signed);
	item_put_int(w, TAG_SAMPLES_PER_PIXEL, 1);
	item_put_int(w, TAG_BITS_ALLOCATED, 16);
	item_put_int(w, TAG_BITS_STORED, 16);
	item_put_int(w, TAG_HIGH_BIT, 15);
	item_put_int(w, TAG_ROWS, g->n[view->down]);
	item_put_int(w, TAG_COLUMNS, g->n[view->across]);
	item_put_doubles(w, TAG_PIXEL_SPACING, spacing, 2);
	item_put_double(w, TAG_SLICE_THICKNESS, g->h[2]);
	item_put_double(w, TAG_SPACING_BETWEEN_SLICES, g->h[2]);
	memcpy(cosines, view->row, sizeof(view->row));
	memcpy(cosines + 3, view->column, sizeof(view->column));
	item_put_doubles(w, TAG_IMAGE_ORIENTATION_PATIENT, cosines, 6);
}

void result_slices_fill_place(const struct slice_view *view, const double position[3], struct item_writer *w)
{
	const double *normal = view->normal;

	item_put_doubles(w, TAG_IMAGE_POSITION_PATIENT, position, 3);
	item_put_double(w, TAG_SLICE_LOCATION, position[0] * normal[0] + position[1] * normal[1] + position[2] * normal[2] + 0.0);
}

/* ---- values ---- */

/* Compute the range of one slice. EIO: a voxel is not a number. */
static int range_of(const float *slice, size_t n, struct slice_range *ret_range)
{
	struct slice_range r = {0, 0};

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(slice[i]))
			return -EIO;
		r.lo = slice[i] < r.lo ? slice[i] : r.lo;
		r.hi = slice[i] > r.hi ? slice[i] : r.hi;
	}
	*ret_range = r;
	return 0;
}

int slice_ranges(const struct grid *g, const float *volume, const struct monitor *monitor, struct slice_range *ret_range,
		 struct err *err)
{
	size_t n = (size_t)g->n[0] * (size_t)g->n[1];

	for (int k = 0; k < g->n[2]; k++) {
		if (range_of(volume + (size_t)k * n, n, &ret_range[k]) < 0)
			return err_set(err, EIO, "slice %d of %d: a voxel is not a number (NaN)", k + 1, g->n[2]);
		monitor_progress(monitor, "write", 0);
	}
	return 0;
}

static void store_slice(const struct result_slices *r, const float *slice, const struct slice_scale *scale, uint16_t *ret_values)
{
	const struct grid *g = r->grid;
	ptrdiff_t step[2] = {1, g->n[0]};
	ptrdiff_t right = step[r->view->across], below = step[r->view->down], at = 0;
	int rows = g->n[r->view->down], columns = g->n[r->view->across];

	if (r->view->turn_across) {
		at += right * (columns - 1);
		right = -right;
	}
	if (r->view->turn_down) {
		at += below * (rows - 1);
		below = -below;
	}
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			double wide = slice[at + i * below + j * right] * scale->gain + scale->bias;
			long v = wide >= (double)scale->hi ? scale->hi : wide <= (double)scale->lo ? scale->lo : lround(wide);

			*ret_values++ = (uint16_t)v;
		}
}

/* ---- files ---- */

struct writing {
	const struct result_slices *r;
	const float *volume;
	struct dicom_writer **writers;
	struct digest_stream **digests;
	struct slice_scale *scale; /* [instance] */
	int first;		   /* instance of part 0 of the loop */
	pthread_mutex_t lock;
	int rc; /* error of the first failure */
	struct err err;
};

static int write_frame(const struct result_slices *r, struct dicom_writer *writer, const float *slice,
		       const struct slice_scale *scale, struct err *err)
{
	long rows = r->grid->n[r->view->down], columns = r->grid->n[r->view->across];
	size_t n = (size_t)rows * (size_t)columns, size = jpegls_bound(columns, rows), used;
	bool encode = r->compression == COMPRESSION_JPEGLS;
	uint16_t *values = malloc(n * sizeof(*values));
	void *code = encode ? malloc(size) : NULL;
	int rc;

	if (!values || (encode && !code)) {
		rc = err_set(err, ENOMEM, "no memory for a frame of %ld x %ld", columns, rows);
		goto out;
	}
	store_slice(r, slice, scale, values);
	if (encode) {
		rc = jpegls_encode(values, columns, rows, 16, code, size, &used, err);
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
	const struct grid *g = w->r->grid;
	int index = w->first + (int)part, rc;
	size_t slice = (size_t)slice_view_slice(w->r->view, g, index);
	struct err err = {0};

	rc = write_frame(w->r, w->writers[index], w->volume + slice * (size_t)g->n[0] * (size_t)g->n[1], &w->scale[index], &err);
	if (rc >= 0)
		return;
	pthread_mutex_lock(&w->lock);
	if (w->rc >= 0) {
		w->rc = rc;
		w->err = err;
	}
	pthread_mutex_unlock(&w->lock);
}

static void name_file(const char *prefix, const char *sop_instance, int index, char ret_name[64])
{
	char digest[65];

	dicom_sha256(sop_instance, strlen(sop_instance), digest);
	snprintf(ret_name, 64, "%.16s-%04d-%.16s.dcm", prefix, index + 1, digest);
}

static void add_to_digest(void *ctx, uint64_t at, const void *bytes, size_t n)
{
	digest_stream_add(ctx, at, bytes, n);
}

static void wait_for_digest(void *ctx)
{
	digest_stream_wait(ctx);
}

/* Write the header of one instance and open its file. */
static int open_file(struct writing *w, struct dicom_file *header, const char *folder, int index, char ret_file[64],
		     char ret_sop_instance[DICOM_UID_SIZE], struct err *err)
{
	const struct result_slices *r = w->r;
	struct item_writer root = {.item = dicom_root(header), .err = err};
	struct dicom_writer_options options = {.jpegls = r->compression == COMPRESSION_JPEGLS,
					       .keep_free = r->keep_free,
					       .writes = add_to_digest,
					       .wrote = wait_for_digest};
	char path[4096];
	int rc = r->fill(r->ctx, index, &root, &w->scale[index]);

	if (rc < 0)
		return rc;
	if (dicom_get_text(root.item, TAG_SOP_INSTANCE_UID, ret_sop_instance, DICOM_UID_SIZE, err) != 1)
		return err_set(err, EIO, "slice %d has no UID", index + 1);
	name_file(r->prefix, ret_sop_instance, index, ret_file);
	if (snprintf(path, sizeof(path), "%s/%s", folder, ret_file) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "the path of the output folder is too long");
	options.ctx = w->digests[index] = digest_stream_create();
	if (!options.ctx)
		return err_set(err, EAGAIN, "no memory for the digest of slice %d", index + 1);
	return dicom_writer_open(path, header, &options, &w->writers[index], err);
}

/* Return the digest of a file that has its final name. */
static int end_digest(struct writing *w, const char *folder, int index, const char *file, char ret_digest[DIGEST_SIZE],
		      struct err *err)
{
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	rc = digest_stream_end(w->digests[index], path, ret_digest, err);
	if (rc < 0)
		err_prefix(err, "the digest of %s", file);
	return rc;
}

int result_slices_write(const struct result_slices *r, struct dicom_file *header, const float *volume, const char *folder,
			char (*ret_file)[64], char (*ret_sop_instance)[DICOM_UID_SIZE], char (*ret_digest)[DIGEST_SIZE],
			struct err *err)
{
	struct writing w = {.r = r, .volume = volume, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct thread_pool *pool = NULL;
	int n = (r->frames > 0 ? r->frames : 1) * r->grid->n[2], rc;

	w.writers = calloc((size_t)n, sizeof(*w.writers));
	w.digests = calloc((size_t)n, sizeof(*w.digests));
	w.scale = calloc((size_t)n, sizeof(*w.scale));
	if (!w.writers || !w.digests || !w.scale) {
		rc = err_set(err, ENOMEM, "no memory for %d slices", n);
		goto out;
	}
	rc = thread_pool_create(WRITERS, &pool, err);
	for (int first = 0; rc >= 0 && first < n; first += OPEN_FILES) {
		int many = n - first < OPEN_FILES ? n - first : OPEN_FILES;

		for (int i = first; rc >= 0 && i < first + many; i++)
			rc = open_file(&w, header, folder, i, ret_file[i], ret_sop_instance[i], err);
		if (rc < 0)
			break;
		w.first = first;
		thread_pool_run(pool, (size_t)many, write_part, &w);
		rc = w.rc;
		if (rc < 0 && err)
			*err = w.err;
		monitor_progress(r->monitor, "write", (double)(first + many) / n);
		if (rc >= 0 && monitor_cancelled(r->monitor))
			rc = err_set(err, ECANCELED, "cancelled after %d of %d files", first + many, n);
	}
	if (rc >= 0)
		rc = dicom_writers_publish(w.writers, (size_t)n, err);
	for (int i = 0; rc >= 0 && i < n; i++)
		rc = end_digest(&w, folder, i, ret_file[i], ret_digest[i], err);
out:
	thread_pool_free(pool);
	for (int i = 0; w.writers && i < n; i++)
		dicom_writer_abort(w.writers[i]);
	for (int i = 0; w.digests && i < n; i++)
		digest_stream_free(w.digests[i]);
	free(w.digests);
	free(w.writers);
	free(w.scale);
	return rc < 0 ? rc : 0;
}
