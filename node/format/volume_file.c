/* SPDX-License-Identifier: Apache-2.0 */
/* volume_file.c - see node/format/volume_file.h. */
#include "node/format/volume_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/base/text_file.h"

/* ---- headers ---- */

static int open_nifti(const char *path, struct volume_file *v, struct err *err)
{
	int rc = nifti_open(path, &v->nifti, err);

	memcpy(v->n, v->nifti.n, sizeof(v->n));
	memcpy(v->corner, v->nifti.corner, sizeof(v->corner));
	memcpy(v->step, v->nifti.step, sizeof(v->step));
	return rc;
}

static int open_meta(const char *path, struct volume_file *v, struct err *err)
{
	int rc = mhd_open(path, MHD_PLACED, &v->meta, err);

	memcpy(v->n, v->meta.n, sizeof(v->n));
	memcpy(v->corner, v->meta.corner, sizeof(v->corner));
	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++)
			v->step[a][c] = v->meta.h[a] * v->meta.axes[3 * a + c];
	return rc;
}

static int open_interfile(const char *path, struct volume_file *v, struct err *err)
{
	const struct interfile *f = &v->image;
	char *text = NULL;
	size_t size = 0;
	int rc = text_file_read(path, INTERFILE_TEXT_MAX, "Interfile header", &text, &size, err);

	if (rc == 0)
		rc = interfile_parse(text, size, &v->image, err);
	free(text);
	if (rc == 0 && f->kind != INTERFILE_IMAGE) {
		interfile_clear(&v->image);
		rc = err_set(err, EBADMSG, "the header of %s, not of an image (PET data type := Image)",
			     interfile_type(f->kind)->title);
	}
	if (rc < 0) {
		err_prefix(err, "%s", file_name(path));
		return rc;
	}
	memcpy(v->n, f->n, sizeof(v->n));
	for (int a = 0; a < 3; a++) {
		v->step[a][a] = a < 2 ? f->spacing[a] : -f->spacing[a];
		v->corner[a] = a < 2 ? f->first[a] : 0.5 * (f->n[a] - 1) * f->spacing[a] - f->first[a];
	}
	return 0;
}

/* Check the size, and that the axes span a volume. */
static int check_geometry(const struct volume_file *v, struct err *err)
{
	const char *name = file_name(v->path);
	const double(*s)[3] = v->step;
	double determinant = 0, scale = 1;

	for (int a = 0; a < 3; a++) {
		double length = sqrt(s[a][0] * s[a][0] + s[a][1] * s[a][1] + s[a][2] * s[a][2]);

		if (v->n[a] < 1 || v->n[a] > VOLUME_FILE_SIDE_MAX)
			return err_set(err, EBADMSG, "%s: %d voxels along axis %d; allowed: 1 to %d", name, v->n[a], a + 1,
				       VOLUME_FILE_SIDE_MAX);
		scale *= length;
		if (!(length > 1e-6 && length < 1e6) || !isfinite(v->corner[a]))
			return err_set(err, EBADMSG, "%s: a step of %g mm along axis %d", name, length, a + 1);
	}
	if (volume_file_count(v) > VOLUME_FILE_COUNT_MAX)
		return err_set(err, ENOTSUP, "%s: %zu voxels; at most %zu are supported", name, volume_file_count(v),
			       VOLUME_FILE_COUNT_MAX);
	for (int c = 0; c < 3; c++)
		determinant += s[0][c] * (s[1][(c + 1) % 3] * s[2][(c + 2) % 3] - s[1][(c + 2) % 3] * s[2][(c + 1) % 3]);
	if (!(fabs(determinant) > 1e-3 * scale))
		return err_set(err, EBADMSG, "%s: its axes do not span a volume", name);
	return 0;
}

int volume_file_open(const char *path, struct volume_file *ret, struct err *err)
{
	static const struct {
		const char *ending;
		enum volume_form form;
		int (*open)(const char *path, struct volume_file *v, struct err *err);
	} forms[] = {{".nii", VOLUME_NIFTI, open_nifti},	{".nii.gz", VOLUME_NIFTI, open_nifti},
		     {".mha", VOLUME_METAIMAGE, open_meta},	{".mhd", VOLUME_METAIMAGE, open_meta},
		     {".hv", VOLUME_INTERFILE, open_interfile}, {".h33", VOLUME_INTERFILE, open_interfile},
		     {".hdr", VOLUME_INTERFILE, open_interfile}};
	struct volume_file v = {.path = path};
	int rc;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!file_name_ends(path, forms[i].ending))
			continue;
		v.form = forms[i].form;
		rc = forms[i].open(path, &v, err);
		if (rc == 0)
			rc = check_geometry(&v, err);
		if (rc == 0)
			*ret = v;
		return rc;
	}
	return err_set(err, ENOTSUP, "%s: volumes are read from " VOLUME_FILE_ENDINGS ", " VOLUME_FILE_IMAGES, file_name(path));
}

size_t volume_file_count(const struct volume_file *v)
{
	return (size_t)v->n[0] * (size_t)v->n[1] * (size_t)v->n[2];
}

/* ---- values ---- */

/* Give the values slice by slice. slice: room for the values of one as float and as double. */
static int take_slices(const struct volume_file *v, const uint8_t *bytes, float *slice, double *values, volume_take *take,
		       void *ctx, struct err *err)
{
	size_t n = (size_t)v->n[0] * (size_t)v->n[1];
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < (size_t)v->n[2]; k++) {
		interfile_plane(&v->image, bytes, k, slice);
		for (size_t i = 0; i < n; i++)
			values[i] = (double)slice[i];
		rc = take(ctx, k * n, values, n, err);
	}
	return rc;
}

/* Read the data file whole: its byte order is checked first. */
static int read_interfile(const struct volume_file *v, volume_take *take, void *ctx, struct err *err)
{
	size_t n = (size_t)v->n[0] * (size_t)v->n[1];
	float *slice = malloc(n * sizeof(*slice));
	double *values = malloc(n * sizeof(*values));
	uint8_t *bytes = NULL;
	uint64_t size = 0;
	char *path = NULL;
	FILE *f = NULL;
	int rc = interfile_find_data(&v->image, v->path, &path, &size, err);

	if (rc == 0)
		rc = regular_file_open(path, &f, err);
	if (rc == 0 && (!slice || !values || !(bytes = malloc(size))))
		rc = err_set(err, ENOMEM, "%s: no memory for %zu voxels", file_name(v->path), volume_file_count(v));
	if (rc == 0 && fread(bytes, 1, size, f) != size)
		rc = err_set(err, EBADMSG, "%s: cannot be read whole", file_name(path));
	if (rc == 0)
		rc = interfile_check_order(&v->image, bytes, err);
	if (rc == 0)
		rc = take_slices(v, bytes, slice, values, take, ctx, err);
	if (f)
		fclose(f);
	free(path);
	free(slice);
	free(values);
	free(bytes);
	return rc;
}

int volume_file_read(const struct volume_file *v, volume_take *take, void *ctx, struct err *err)
{
	switch (v->form) {
	case VOLUME_NIFTI:
		return nifti_read(v->path, &v->nifti, take, ctx, err);
	case VOLUME_METAIMAGE:
		return mhd_read(v->path, &v->meta, take, ctx, err);
	default:
		return read_interfile(v, take, ctx, err);
	}
}
