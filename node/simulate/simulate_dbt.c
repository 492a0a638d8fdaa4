/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_dbt.c - simulate the exam: line integrals, counts, stored values, one view at a time. Stored value = counts + the
 * profile's offset, at most 65535; with `inverted` 65535 minus that. Padding is 0 (65535 inverted), a value that no measured bin
 * has, because these are raised to at least 1.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/pixels/pixels.h"
#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/simulate/simulate_scatter.h"

#define PATH_SIZE 4096

struct pictures {
	float *line;
	uint16_t *counts, *stored;
};

/* Return the stored value of one bin. */
static uint16_t pixel_value(const struct simulation *s, double count, int v)
{
	bool over = s->o.over_range > 0 && count > s->o.over_range / 100 * s->i0;
	double value = over ? s->max_value : fmin(fmax(count + s->o.profile->offset, 1), s->max_value);
	int edge = (int)ceil(s->o.collimate / s->pitch); /* a partly covered bin is padding, at both ends */

	if (v < edge || v >= s->n_v - edge)
		value = 0;
	value = round(value);
	return (uint16_t)(s->o.inverted ? s->max_value - value : value);
}

/* Mirror the detector's image to the stored orientation (docs/geometry.md, "How an image is stored"). */
static void store_image(const struct simulation *s, const uint16_t *counts, uint16_t *ret_stored)
{
	for (int row = 0; row < s->n_v; row++) {
		int v = s->rows_toward_minus_y ? s->n_v - 1 - row : row;
		const uint16_t *in = counts + (size_t)v * (size_t)s->n_u;
		uint16_t *out = ret_stored + (size_t)row * (size_t)s->n_u;

		for (int column = 0; column < s->n_u; column++)
			out[column] = pixel_value(s, in[s->columns_toward_chest ? s->n_u - 1 - column : column], v);
	}
}

/* Add the line integrals of the details beside the voxels. The intensity of a bin is the mean over its rays. */
static int add_details(const struct simulation *s, int view, float *line, struct err *err)
{
	size_t n_fine = scan_view_size(s->fine);
	float *fine = malloc(n_fine * sizeof(*fine));
	int rc = fine ? phantom_project(s->details, s->fine, view, fine, err) : err_set(err, ENOMEM, "no memory for a view");

	for (int v = 0; v < (rc == 0 ? s->n_v : 0); v++)
		for (int u = 0; u < s->n_u; u++) {
			double mean = 0;

			for (int i = 0; i < s->rays * s->rays; i++) {
				size_t row = (size_t)(v * s->rays + i / s->rays), column = (size_t)(u * s->rays + i % s->rays);

				mean += exp(-(double)fine[row * (size_t)s->fine->n_u + column]);
			}
			if (mean < s->rays * s->rays)
				line[(size_t)v * (size_t)s->n_u + (size_t)u] -= (float)log(mean / (s->rays * s->rays));
		}
	free(fine);
	return rc;
}

static int make_view(const struct simulation *s, int view, struct pictures *p, struct err *err)
{
	size_t n = (size_t)s->n_u * (size_t)s->n_v;
	int rc = s->voxels ? voxel_phantom_project(s->voxels, s->scan, view, s->rays, p->line, err)
			   : phantom_project(s->phantom, s->scan, view, p->line, err);

	if (rc == 0 && s->details)
		rc = add_details(s, view, p->line, err);
	if (rc == 0 && s->o.scatter > 0 && s->phantom->n > 0)
		rc = simulate_scatter(s, view, p->line, err);
	if (rc < 0)
		return rc;
	simulate_open_field(s, view, p->line);
	rc = phantom_counts(p->line, n, s->i0 * s->exposure[view], (uint64_t)s->o.seed * SIMULATE_VIEWS_MAX + (uint64_t)view,
			    s->o.noise, s->max_value, p->counts, err);
	if (rc < 0)
		return rc;
	store_image(s, p->counts, p->stored);
	return 0;
}

/* Return the file number of a view. Successive views differ by a step that has no divisor in common with the number of views. */
static int file_number(int view, int views)
{
	int step = views > 5 ? views * 3 / 8 : 1, a, b, t;

	for (;; step++) {
		for (a = views, b = step; b; t = a % b, a = b, b = t)
			;
		if (a == 1)
			return (int)(((long)view * step + 2) % views);
	}
}

static int write_mg(const struct simulation *s, int view, const char *folder, const struct pictures *p, struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_writer *writer = NULL;
	char path[PATH_SIZE];
	int rc = simulate_new_mg(s, view, &file, err);

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%04d.dcm", folder, file_number(view, s->o.views));
	rc = dicom_writer_open(path, file, NULL, &writer, err);
	if (rc == 0)
		rc = dicom_writer_frame(writer, p->stored, err);
	if (rc == 0)
		rc = dicom_writer_close(writer, err);
	else
		dicom_writer_abort(writer);
	dicom_close(file);
	return rc;
}

static int run_views(const struct simulation *s, const char *folder, struct pictures *p, struct dicom_writer *multi,
		     const struct monitor *monitor, struct err *err)
{
	for (int i = 0; i < s->o.views; i++) {
		int rc;

		monitor_progress(monitor, "simulate", (double)i / s->o.views);
		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "simulation cancelled before view %d of %d", i + 1, s->o.views);
		rc = make_view(s, i, p, err);
		if (rc == 0)
			rc = multi ? dicom_writer_frame(multi, p->stored, err) : write_mg(s, i, folder, p, err);
		if (rc < 0)
			return rc;
	}
	monitor_progress(monitor, "simulate", 1);
	return 0;
}

static int run_multi(const struct simulation *s, const char *folder, struct pictures *p, const struct monitor *monitor,
		     struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_writer *writer = NULL;
	char path[PATH_SIZE];
	int rc = simulate_new_bp(s, &file, err);

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/exam.dcm", folder);
	rc = dicom_writer_open(path, file, NULL, &writer, err);
	if (rc == 0)
		rc = run_views(s, folder, p, writer, monitor, err);
	if (rc == 0)
		rc = dicom_writer_close(writer, err);
	else
		dicom_writer_abort(writer);
	dicom_close(file);
	return rc;
}

int simulate_folder(const char *folder, struct err *err)
{
	const size_t allowed = PATH_SIZE - 17; /* leaves space for file names */

	if (strlen(folder) > allowed)
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... has more than %zu bytes", folder, allowed);
	return folder_create(folder, err);
}

int simulate_run(const struct simulation *s, const char *folder, const struct monitor *monitor,
		 struct simulate_report *ret_report, struct err *err)
{
	size_t n = (size_t)s->n_u * (size_t)s->n_v;
	struct pictures p = {malloc(n * sizeof(float)), malloc(n * sizeof(uint16_t)), malloc(n * sizeof(uint16_t))};
	double begun = clock_seconds();
	int rc;

	if (!p.line || !p.counts || !p.stored)
		rc = err_set(err, ENOMEM, "no memory for a view of %d x %d bins", s->n_u, s->n_v);
	else
		rc = simulate_folder(folder, err);
	if (rc == 0)
		rc = s->o.multi ? run_multi(s, folder, &p, monitor, err) : run_views(s, folder, &p, NULL, monitor, err);
	if (rc == 0)
		rc = simulate_truth(s, folder, err);
	if (rc == 0 && ret_report)
		*ret_report = (struct simulate_report){.files = s->o.multi ? 1 : s->o.views,
						       .bytes = (uint64_t)n * 2 * (uint64_t)s->o.views,
						       .seconds = clock_seconds() - begun};
	free(p.line);
	free(p.counts);
	free(p.stored);
	return rc;
}
