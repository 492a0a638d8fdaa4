/* SPDX-License-Identifier: Apache-2.0 */
/* nifti.c - see node/format/nifti.h. x and y of NIfTI point to the right and to the front of the patient, so both change
 * their signs. */
#include "node/format/nifti.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "node/base/folder.h"
#include "node/base/text_file.h"

/* The header as it is in the file. */
struct stored {
	unsigned char bytes[NIFTI_HEADER];
	bool big;
	const char *name;
	struct err *err;
};

static int open_file(const char *path, gzFile *ret, struct err *err)
{
	FILE *f = NULL;
	int rc = regular_file_open(path, &f, err), fd = rc == 0 ? dup(fileno(f)) : -1;

	if (rc < 0)
		return rc;
	fclose(f);
	*ret = fd >= 0 ? gzdopen(fd, "rb") : NULL; /* reads uncompressed files, too */
	if (*ret)
		return 0;
	if (fd >= 0)
		close(fd);
	return err_set(err, ENOMEM, "%s: no memory to decompress it", file_name(path));
}

static int read_exactly(gzFile f, const char *name, void *into, size_t n, struct err *err)
{
	int got = gzread(f, into, (unsigned)n);

	if (got < 0 || (size_t)got != n)
		return err_set(err, EBADMSG, "%s: the file ends before its last voxel", name);
	return 0;
}

static double header_field(const struct stored *h, size_t at, enum volume_element element)
{
	return volume_element_at(element, h->big, h->bytes + at);
}

static int nifti_element(double code)
{
	static const struct {
		int code;
		enum volume_element element;
	} types[] = {{2, ELEMENT_U8},	 {256, ELEMENT_S8}, {512, ELEMENT_U16},		  {4, ELEMENT_S16},
		     {768, ELEMENT_U32}, {8, ELEMENT_S32},  {NIFTI_FLOAT32, ELEMENT_F32}, {64, ELEMENT_F64}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (code == types[i].code)
			return (int)types[i].element;
	return -1;
}

/* Rotation and spacing of the qform (nifti1.h, method 2). */
static void from_quaternion(const struct stored *h, double m[3][4])
{
	double b = header_field(h, NIFTI_QUATERN, ELEMENT_F32), c = header_field(h, NIFTI_QUATERN + 4, ELEMENT_F32),
	       d = header_field(h, NIFTI_QUATERN + 8, ELEMENT_F32);
	double a = sqrt(fmax(0, 1 - b * b - c * c - d * d)), third = header_field(h, NIFTI_PIXDIM, ELEMENT_F32) < 0 ? -1 : 1;
	const double r[3][3] = {{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
				{2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
				{2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c}};

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 3; j++)
			m[i][j] = r[i][j] * header_field(h, NIFTI_PIXDIM + 4 * (j + 1), ELEMENT_F32) * (j == 2 ? third : 1);
		m[i][3] = header_field(h, NIFTI_QOFFSET + 4 * i, ELEMENT_F32);
	}
}

static int nifti_place(const struct stored *h, struct nifti *ret)
{
	double m[3][4];

	if (header_field(h, NIFTI_SFORM_CODE, ELEMENT_S16) > 0) {
		for (size_t i = 0; i < 3; i++)
			for (size_t j = 0; j < 4; j++)
				m[i][j] = header_field(h, NIFTI_SROW + 16 * i + 4 * j, ELEMENT_F32);
	} else if (header_field(h, NIFTI_QFORM_CODE, ELEMENT_S16) > 0) {
		from_quaternion(h, m);
	} else {
		return err_set(h->err, EBADMSG, "%s: neither sform_code nor qform_code is above 0: no position in the patient",
			       h->name);
	}
	for (int c = 0; c < 3; c++) {
		double sign = c < 2 ? -1 : 1; /* RAS to LPS */

		ret->corner[c] = sign * m[c][3];
		for (int a = 0; a < 3; a++)
			ret->step[a][c] = sign * m[c][a];
	}
	return 0;
}

static int parse_header(struct stored *h, struct nifti *ret)
{
	double offset;
	int element, length;

	h->big = header_field(h, 0, ELEMENT_S32) != NIFTI_HEADER;
	if (header_field(h, 0, ELEMENT_S32) != NIFTI_HEADER || memcmp(h->bytes + NIFTI_MAGIC, "n+1", 4) != 0)
		return err_set(h->err, EBADMSG, "%s: not a NIfTI-1 file with header and data in one", h->name);
	length = h->bytes[NIFTI_XYZT_UNITS] & 7;
	if (length != 0 && length != NIFTI_MILLIMETRES)
		return err_set(h->err, ENOTSUP,
			       "%s: xyzt_units: lengths in unit %d; supported: millimetres (2), or not stated (0)", h->name,
			       length);
	ret->most_significant_first = h->big;
	for (size_t i = 4; i <= 7; i++)
		if (header_field(h, NIFTI_DIM, ELEMENT_S16) >= (double)i && header_field(h, NIFTI_DIM + 2 * i, ELEMENT_S16) > 1)
			return err_set(h->err, ENOTSUP, "%s: %g values along dimension %zu; a volume has three dimensions",
				       h->name, header_field(h, NIFTI_DIM + 2 * i, ELEMENT_S16), i);
	for (size_t a = 0; a < 3; a++)
		ret->n[a] = header_field(h, NIFTI_DIM, ELEMENT_S16) > (double)a
				    ? (int)header_field(h, NIFTI_DIM + 2 * (a + 1), ELEMENT_S16)
				    : 1;
	element = nifti_element(header_field(h, NIFTI_DATATYPE, ELEMENT_S16));
	if (element < 0)
		return err_set(h->err, ENOTSUP, "%s: datatype %g; supported: integers of 8 to 32 bits, float, double", h->name,
			       header_field(h, NIFTI_DATATYPE, ELEMENT_S16));
	ret->element = (enum volume_element)element;
	ret->slope = header_field(h, NIFTI_SCL_SLOPE, ELEMENT_F32);
	ret->shift = header_field(h, NIFTI_SCL_INTER, ELEMENT_F32);
	if (ret->slope == 0 || !isfinite(ret->slope) || !isfinite(ret->shift)) { /* 0: not scaled */
		ret->slope = 1;
		ret->shift = 0;
	}
	offset = header_field(h, NIFTI_VOX_OFFSET, ELEMENT_F32);
	if (!(offset >= NIFTI_HEADER && offset <= 1e6))
		return err_set(h->err, EBADMSG, "%s: vox_offset is %g", h->name, offset);
	ret->data_at = (size_t)offset;
	return nifti_place(h, ret);
}

int nifti_open(const char *path, struct nifti *ret, struct err *err)
{
	struct stored h = {.name = file_name(path), .err = err};
	struct nifti found = {0};
	gzFile f = NULL;
	int rc = open_file(path, &f, err);

	if (rc < 0)
		return rc;
	rc = read_exactly(f, h.name, h.bytes, sizeof(h.bytes), err);
	if (rc == 0)
		rc = parse_header(&h, &found);
	gzclose(f);
	if (rc == 0)
		*ret = found;
	return rc;
}

int nifti_read(const char *path, const struct nifti *h, volume_take *take, void *ctx, struct err *err)
{
	size_t columns = (size_t)h->n[0], rows = (size_t)h->n[1] * (size_t)h->n[2], bytes = volume_element_size(h->element);
	unsigned char *row = malloc(columns * bytes);
	double *values = malloc(columns * sizeof(*values));
	const char *name = file_name(path);
	gzFile f = NULL;
	int rc = row && values ? open_file(path, &f, err) : err_set(err, ENOMEM, "%s: no memory for %zu voxels", name, columns);

	if (rc == 0 && gzseek(f, (z_off_t)h->data_at, SEEK_SET) < 0)
		rc = err_set(err, EBADMSG, "%s: the file ends before its first voxel", name);
	for (size_t j = 0; rc == 0 && j < rows; j++) {
		rc = read_exactly(f, name, row, columns * bytes, err);
		for (size_t i = 0; rc == 0 && i < columns; i++)
			values[i] =
				volume_element_at(h->element, h->most_significant_first, row + i * bytes) * h->slope + h->shift;
		if (rc == 0)
			rc = take(ctx, j * columns, values, columns, err);
	}
	if (rc == 0 && gzgetc(f) != -1)
		rc = err_set(err, EBADMSG, "%s: bytes after the last voxel", name);
	free(row);
	free(values);
	if (f)
		gzclose(f);
	return rc;
}
