/* SPDX-License-Identifier: Apache-2.0 */
/* label_volume.c - see node/format/label_volume.h. NIfTI-1: nifti1.h of nifti.nimh.nih.gov; its x and y point to the right and to
 * the front of the patient, so both change their signs. */
#include "node/format/label_volume.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "node/base/folder.h"
#include "node/format/mhd.h"

#define NIFTI_HEADER 348
struct reader {
	const char *name;
	gzFile file;
	enum volume_element element;
	bool big;	     /* the most significant byte of an element is first */
	double slope, shift; /* NIfTI: scl_slope and scl_inter */
	struct err *err;
};

void label_volume_clear(struct label_volume *v)
{
	free(v->labels);
	*v = (struct label_volume){0};
}

static int read_exactly(struct reader *r, void *into, size_t n)
{
	int got = gzread(r->file, into, (unsigned)n);

	if (got < 0 || (size_t)got != n)
		return err_set(r->err, EBADMSG, "%s: the file ends before its last voxel", r->name);
	return 0;
}

/* Take n elements from index `at` on. */
static int take_labels(const struct reader *r, struct label_volume *v, size_t at, const double *elements, size_t n)
{
	size_t columns = (size_t)v->n[0], rows = (size_t)v->n[1];

	for (size_t i = 0; i < n; i++, at++) {
		double value = elements[i] * r->slope + r->shift;

		if (!(value >= 0 && value <= LABEL_MAX && value == floor(value)))
			return err_set(r->err, EBADMSG,
				       "%s: voxel %zu, %zu, %zu has the value %g; labels are whole numbers from 0 to %d", r->name,
				       at % columns, at / columns % rows, at / columns / rows, value, LABEL_MAX);
		v->labels[at] = (uint16_t)value;
	}
	return 0;
}

static int make_labels(const struct reader *r, struct label_volume *v)
{
	size_t n = (size_t)v->n[0] * (size_t)v->n[1] * (size_t)v->n[2];

	v->labels = malloc(n * sizeof(*v->labels));
	return v->labels ? 0 : err_set(r->err, ENOMEM, "%s: no memory for %zu voxels", r->name, n);
}

/* Read all elements of a NIfTI file, row by row. */
static int read_labels(struct reader *r, struct label_volume *v)
{
	size_t columns = (size_t)v->n[0], rows = (size_t)v->n[1] * (size_t)v->n[2], bytes = volume_element_size(r->element);
	unsigned char *row = malloc(columns * bytes);
	double *values = malloc(columns * sizeof(*values));
	int rc = make_labels(r, v);

	if (rc == 0 && (!row || !values))
		rc = err_set(r->err, ENOMEM, "%s: no memory for %zu voxels", r->name, columns);
	for (size_t j = 0; rc == 0 && j < rows; j++) {
		rc = read_exactly(r, row, columns * bytes);
		for (size_t i = 0; rc == 0 && i < columns; i++)
			values[i] = volume_element_at(r->element, r->big, row + i * bytes);
		if (rc == 0)
			rc = take_labels(r, v, j * columns, values, columns);
	}
	free(row);
	free(values);
	if (rc == 0 && gzgetc(r->file) != -1)
		rc = err_set(r->err, EBADMSG, "%s: bytes after the last voxel", r->name);
	return rc;
}

/* Check the size, and invert the steps. */
static int finish_geometry(const struct reader *r, struct label_volume *v)
{
	const double(*s)[3] = v->step;
	double determinant = 0, scale = 1;
	size_t count = 1;

	for (int a = 0; a < 3; a++) {
		double length = 0;

		if (v->n[a] < 1 || v->n[a] > LABEL_SIDE_MAX)
			return err_set(r->err, EBADMSG, "%s: %d voxels along axis %d; allowed: 1 to %d", r->name, v->n[a], a + 1,
				       LABEL_SIDE_MAX);
		count *= (size_t)v->n[a];
		for (int c = 0; c < 3; c++)
			length += s[a][c] * s[a][c];
		scale *= sqrt(length);
		if (!(length > 1e-12 && length < 1e12) || !isfinite(v->corner[a]))
			return err_set(r->err, EBADMSG, "%s: a step of %g mm along axis %d", r->name, sqrt(length), a + 1);
	}
	if (count > LABEL_COUNT_MAX)
		return err_set(r->err, ENOTSUP, "%s: %zu voxels; at most %zu are supported", r->name, count, LABEL_COUNT_MAX);
	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++) /* rows of the inverse are the cross products of two steps */
			v->inverse[a][c] = s[(a + 1) % 3][(c + 1) % 3] * s[(a + 2) % 3][(c + 2) % 3] -
					   s[(a + 1) % 3][(c + 2) % 3] * s[(a + 2) % 3][(c + 1) % 3];
	for (int c = 0; c < 3; c++)
		determinant += s[0][c] * v->inverse[0][c];
	if (!(fabs(determinant) > 1e-3 * scale))
		return err_set(r->err, EBADMSG, "%s: its axes do not span a volume", r->name);
	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++)
			v->inverse[a][c] /= determinant;
	return 0;
}

int label_volume_at(const struct label_volume *v, const double patient[3])
{
	long at[3];

	for (int a = 0; a < 3; a++) {
		double index = 0;

		for (int c = 0; c < 3; c++)
			index += v->inverse[a][c] * (patient[c] - v->corner[c]);
		if (!(index >= -0.5 && index < v->n[a] - 0.5))
			return 0;
		at[a] = (long)floor(index + 0.5);
	}
	return v->labels[((size_t)at[2] * (size_t)v->n[1] + (size_t)at[1]) * (size_t)v->n[0] + (size_t)at[0]];
}

/* ---- NIfTI-1 ---- */

struct nifti {
	unsigned char bytes[NIFTI_HEADER];
	bool big;
};

static double header_field(const struct nifti *h, size_t at, enum volume_element element)
{
	return volume_element_at(element, h->big, h->bytes + at);
}

static int nifti_element(double code)
{
	static const struct {
		int code;
		enum volume_element element;
	} types[] = {{2, ELEMENT_U8},	 {256, ELEMENT_S8}, {512, ELEMENT_U16}, {4, ELEMENT_S16},
		     {768, ELEMENT_U32}, {8, ELEMENT_S32},  {16, ELEMENT_F32},	{64, ELEMENT_F64}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (code == types[i].code)
			return (int)types[i].element;
	return -1;
}

/* Rotation and spacing of the qform (nifti1.h, method 2). */
static void from_quaternion(const struct nifti *h, double m[3][4])
{
	double b = header_field(h, 256, ELEMENT_F32), c = header_field(h, 260, ELEMENT_F32),
	       d = header_field(h, 264, ELEMENT_F32);
	double a = sqrt(fmax(0, 1 - b * b - c * c - d * d)), third = header_field(h, 76, ELEMENT_F32) < 0 ? -1 : 1;
	const double r[3][3] = {{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
				{2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
				{2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c}};

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 3; j++)
			m[i][j] = r[i][j] * header_field(h, 80 + 4 * j, ELEMENT_F32) * (j == 2 ? third : 1);
		m[i][3] = header_field(h, 268 + 4 * i, ELEMENT_F32);
	}
}

static int nifti_place(const struct reader *r, const struct nifti *h, struct label_volume *v)
{
	double m[3][4];

	if (header_field(h, 254, ELEMENT_S16) > 0) {
		for (size_t i = 0; i < 3; i++)
			for (size_t j = 0; j < 4; j++)
				m[i][j] = header_field(h, 280 + 16 * i + 4 * j, ELEMENT_F32);
	} else if (header_field(h, 252, ELEMENT_S16) > 0) {
		from_quaternion(h, m);
	} else {
		return err_set(r->err, EBADMSG, "%s: neither sform_code nor qform_code is above 0: no position in the patient",
			       r->name);
	}
	for (int c = 0; c < 3; c++) {
		double sign = c < 2 ? -1 : 1; /* RAS to LPS */

		v->corner[c] = sign * m[c][3];
		for (int a = 0; a < 3; a++)
			v->step[a][c] = sign * m[c][a];
	}
	return 0;
}

static int open_nifti(struct reader *r, struct label_volume *v)
{
	struct nifti h = {0};
	int element, rc = read_exactly(r, h.bytes, NIFTI_HEADER);
	double offset;

	if (rc < 0)
		return rc;
	h.big = header_field(&h, 0, ELEMENT_S32) != NIFTI_HEADER;
	if (header_field(&h, 0, ELEMENT_S32) != NIFTI_HEADER || memcmp(h.bytes + 344, "n+1", 4) != 0)
		return err_set(r->err, EBADMSG, "%s: not a NIfTI-1 file with header and data in one", r->name);
	r->big = h.big;
	for (size_t i = 4; i <= 7; i++)
		if (header_field(&h, 40, ELEMENT_S16) >= (double)i && header_field(&h, 40 + 2 * i, ELEMENT_S16) > 1)
			return err_set(r->err, ENOTSUP, "%s: %g values along dimension %zu; labels have three dimensions",
				       r->name, header_field(&h, 40 + 2 * i, ELEMENT_S16), i);
	for (size_t a = 0; a < 3; a++)
		v->n[a] = header_field(&h, 40, ELEMENT_S16) > (double)a ? (int)header_field(&h, 42 + 2 * a, ELEMENT_S16) : 1;
	element = nifti_element(header_field(&h, 70, ELEMENT_S16));
	if (element < 0)
		return err_set(r->err, ENOTSUP, "%s: datatype %g; supported: integers of 8 to 32 bits, float, double", r->name,
			       header_field(&h, 70, ELEMENT_S16));
	r->element = (enum volume_element)element;
	r->slope = header_field(&h, 112, ELEMENT_F32);
	r->shift = header_field(&h, 116, ELEMENT_F32);
	if (r->slope == 0 || !isfinite(r->slope) || !isfinite(r->shift)) { /* 0: not scaled */
		r->slope = 1;
		r->shift = 0;
	}
	rc = nifti_place(r, &h, v);
	if (rc == 0)
		rc = finish_geometry(r, v);
	offset = header_field(&h, 108, ELEMENT_F32);
	if (rc == 0 && !(offset >= NIFTI_HEADER && offset <= 1e6))
		rc = err_set(r->err, EBADMSG, "%s: vox_offset is %g", r->name, offset);
	if (rc == 0 && gzseek(r->file, (z_off_t)offset, SEEK_SET) < 0)
		rc = err_set(r->err, EBADMSG, "%s: the file ends before its first voxel", r->name);
	return rc == 0 ? read_labels(r, v) : rc;
}

/* ---- MetaImage ---- */

struct taking {
	const struct reader *r;
	struct label_volume *v;
};

static int take_block(void *ctx, size_t at, const double *elements, size_t n, struct err *err)
{
	const struct taking *t = ctx;

	(void)err;
	return take_labels(t->r, t->v, at, elements, n);
}

static int open_meta(const struct reader *r, const char *path, struct label_volume *v)
{
	struct mhd h;
	int rc = mhd_open(path, MHD_LABELS, &h, r->err);

	if (rc < 0)
		return rc;
	for (int a = 0; a < 3; a++) {
		v->n[a] = h.n[a];
		v->corner[a] = h.corner[a];
		for (int c = 0; c < 3; c++)
			v->step[a][c] = h.h[a] * h.axes[3 * a + c];
	}
	rc = finish_geometry(r, v);
	if (rc == 0)
		rc = make_labels(r, v);
	return rc == 0 ? mhd_read(path, &h, take_block, &(struct taking){r, v}, r->err) : rc;
}

int label_volume_open(const char *path, struct label_volume *ret, struct err *err)
{
	struct reader r = {.name = file_name(path), .slope = 1, .err = err};
	struct label_volume v = {0};
	int rc;

	if (file_name_ends(path, ".nii") || file_name_ends(path, ".nii.gz")) {
		errno = 0;
		r.file = gzopen(path, "rb"); /* reads uncompressed files, too */
		rc = r.file ? open_nifti(&r, &v) : err_set(err, errno ? errno : ENOMEM, "%s: %s", r.name, strerror(errno));
	} else if (file_name_ends(path, ".mha") || file_name_ends(path, ".mhd")) {
		rc = open_meta(&r, path, &v);
	} else {
		rc = err_set(err, ENOTSUP, "%s: labels are read from .nii, .nii.gz, .mha and .mhd", r.name);
	}
	if (r.file)
		gzclose(r.file);
	if (rc < 0) {
		label_volume_clear(&v);
		return rc;
	}
	*ret = v;
	return 0;
}
