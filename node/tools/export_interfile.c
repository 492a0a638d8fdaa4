/* SPDX-License-Identifier: Apache-2.0 */
/* export_interfile.c - write an image as Interfile, see node/tools/export_image.h. Interfile has no directions of axes. Those of
 * STIR are fixed to the gantry (STIR developers' overview): x to the right, seen from the bed, y down, z out of the gantry. The
 * position of the patient turns them into those of the patient (DiscretisedDensity.inl); without one STIR takes HFS. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/format/interfile.h"
#include "node/sinogram/sinogram.h"
#include "node/tools/export_format.h"
#include "node/tools/export_image.h"

#define PARALLEL_TOLERANCE 1e-4 /* of a product of unit vectors */

/* Of an axis of STIR. */
struct turned {
	double direction[3]; /* in the patient (LPS) */
	int axis;	     /* of the series: column, row, slice */
	bool back;	     /* against it */
};

static double dot(const double *a, const double *b)
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static int find_axes(const struct image_series *s, struct turned ret[3], struct err *err)
{
	const double *const own[3] = {s->across, s->down, s->normal};
	double gantry[3][3];

	if (!pet_facts_axes(s->position[0] ? s->position : "HFS", gantry))
		return err_set(err, ENOTSUP,
			       "the patient's position is \"%s\", which gives Interfile no directions: export it to NIfTI",
			       s->position);
	for (int a = 0; a < 3; a++) {
		ret[a].axis = -1;
		for (int c = 0; c < 3; c++)
			ret[a].direction[c] = a == 2 ? -gantry[a][c] : gantry[a][c];
		for (int b = 0; b < 3; b++) {
			double along = dot(ret[a].direction, own[b]);

			if (fabs(along) < 1 - PARALLEL_TOLERANCE)
				continue;
			ret[a].axis = b;
			ret[a].back = along < 0;
		}
		if (ret[a].axis < 0)
			return err_set(
				err, ENOTSUP,
				"the axes of the series are oblique, and Interfile has no directions of the axes: export it "
				"to NIfTI");
	}
	return 0;
}

static void describe_volume(const struct image_series *s, const struct turned t[3], struct interfile *f)
{
	const double *const own[3] = {s->across, s->down, s->normal};
	double first[3]; /* of the values that are written, in the patient */

	memcpy(first, s->corner, sizeof(first));
	for (int a = 0; a < 3; a++)
		for (int c = 0; t[a].back && c < 3; c++)
			first[c] += own[t[a].axis][c] * s->spacing[t[a].axis] * (s->n[t[a].axis] - 1);
	for (int a = 0; a < 3; a++) {
		f->n[a] = s->n[t[a].axis];
		f->spacing[a] = s->spacing[t[a].axis];
		f->first[a] = dot(first, t[a].direction) + 0.0; /* no -0 */
	}
	snprintf(f->position, sizeof(f->position), "%.4s", s->position); /* one that find_axes() accepts */
}

/* Write a slice of STIR. */
static int write_slice(const struct image_series *s, const float *const *slices, const struct turned t[3], int k, float *row,
		       struct atomic_file *f, struct err *err)
{
	int at[3], rc = 0;

	for (int j = 0; rc == 0 && j < s->n[t[1].axis]; j++) {
		int n = s->n[t[0].axis];

		for (int i = 0; i < n; i++) {
			const int number[3] = {i, j, k};

			for (int a = 0; a < 3; a++)
				at[t[a].axis] = t[a].back ? s->n[t[a].axis] - 1 - number[a] : number[a];
			row[i] = slices[at[2]][(size_t)at[1] * (size_t)s->n[0] + (size_t)at[0]];
		}
		rc = atomic_file_write(f, row, (size_t)n * sizeof(*row), err);
	}
	return rc;
}

static int write_values(const struct image_series *s, const struct turned t[3], struct atomic_file *f, struct err *err)
{
	const float **slices = calloc((size_t)s->n[2], sizeof(*slices));
	float *row = malloc((size_t)s->n[t[0].axis] * sizeof(*row));
	int rc = slices && row ? 0 : err_set(err, ENOMEM, "no memory for %d slices", s->n[2]);

	for (int k = 0; rc == 0 && k < s->n[2]; k++)
		rc = image_series_slice(s, 0, k, &slices[k], err);
	for (int k = 0; rc == 0 && k < s->n[t[2].axis]; k++)
		rc = write_slice(s, slices, t, k, row, f, err);
	free(slices);
	free(row);
	return rc;
}

int export_interfile_image(const struct image_series *s, const char *path, struct err *err)
{
	struct interfile header = {.kind = INTERFILE_IMAGE,
				   .number = INTERFILE_FLOAT,
				   .bytes = 4,
				   .scale = 1,
				   .duration = s->duration,
				   .start = NAN};
	struct atomic_file *f[2] = {NULL}; /* values, header */
	size_t length = strlen(path);
	char data[4096], *text = NULL;
	struct turned t[3];
	int rc;

	if (s->n_images > 1)
		return err_set(err, ENOTSUP, "the series has %d images (%s); Interfile has one: export it to NIfTI", s->n_images,
			       s->type);
	if (s->tomo)
		return err_set(err, ENOTSUP, "%s: Interfile has no directions of the axes: export a tomosynthesis to NIfTI",
			       s->name);
	if (length < 4 || length >= sizeof(data) || strlen(file_name(path)) >= sizeof(header.data_file))
		return err_set(err, ENAMETOOLONG, "the name of the output file is too long");
	snprintf(data, sizeof(data), "%.*s.v", (int)length - 3, path); /* .hv becomes .v */
	snprintf(header.data_file, sizeof(header.data_file), "%s", file_name(data));
	rc = find_axes(s, t, err);
	if (rc == 0) {
		describe_volume(s, t, &header);
		rc = interfile_write(&header, &text, err);
	}
	if (rc == 0)
		rc = atomic_file_open(data, &f[0], err);
	if (rc == 0)
		rc = write_values(s, t, f[0], err);
	if (rc == 0)
		rc = atomic_file_open(path, &f[1], err);
	if (rc == 0)
		rc = atomic_file_write(f[1], text, strlen(text), err);
	free(text);
	if (rc == 0)
		return atomic_files_close(f, 2, err);
	for (int i = 0; i < 2; i++)
		if (f[i])
			atomic_file_abort(f[i]);
	return rc;
}

static int name_interfile(struct export_job *j, struct err *err)
{
	int rc = export_job_add(j, strdup(j->out), false, "", err);

	return rc == 0 ? export_job_add(j, export_beside(j->out, ".v"), true, "", err) : rc;
}

static int write_interfile(struct export_job *j, struct err *err)
{
	return export_interfile_image(j->series, j->out, err);
}

const struct export_format export_format_interfile = {
	.name = "interfile",
	.ending = ".hv",
	.endings = {".hv"},
	.help = ".hv   Interfile image, float32; the values are in a .v file beside it.\n",
	.input = EXPORT_IMAGES,
	.name_files = name_interfile,
	.write = write_interfile,
};
