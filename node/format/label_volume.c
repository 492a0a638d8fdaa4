/* SPDX-License-Identifier: Apache-2.0 */
/* label_volume.c - see node/format/label_volume.h. NIfTI-1: nifti1.h of nifti.nimh.nih.gov; its x and y point to the right and to
 * the front of the patient, so both change their signs. MetaImage: itk.org/Wiki/ITK/MetaIO/Documentation.
 */
#include "node/format/label_volume.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "node/base/folder.h"

#define NIFTI_HEADER 348
#define META_HEADER_MAX 65536
#define PATH_SIZE 4096

enum element { ELEMENT_U8, ELEMENT_S8, ELEMENT_U16, ELEMENT_S16, ELEMENT_U32, ELEMENT_S32, ELEMENT_F32, ELEMENT_F64 };
static const int element_bytes[] = {1, 1, 2, 2, 4, 4, 4, 8};

struct reader {
	const char *name;
	gzFile file;
	enum element element;
	int swap;	     /* the file has the other byte order */
	double slope, shift; /* NIfTI: scl_slope and scl_inter */
	struct err *err;
};

void label_volume_clear(struct label_volume *v)
{
	free(v->labels);
	*v = (struct label_volume){0};
}

static void swap_bytes(unsigned char *b, int n)
{
	for (int i = 0; i < n / 2; i++) {
		unsigned char t = b[i];

		b[i] = b[n - 1 - i];
		b[n - 1 - i] = t;
	}
}

static double element_at(const struct reader *r, unsigned char *b)
{
	union {
		uint16_t u16;
		int16_t s16;
		uint32_t u32;
		int32_t s32;
		float f32;
		double f64;
	} v;
	int n = element_bytes[r->element];

	if (r->swap)
		swap_bytes(b, n);
	memcpy(&v, b, (size_t)n);
	switch (r->element) {
	case ELEMENT_U8:
		return b[0];
	case ELEMENT_S8:
		return (signed char)b[0];
	case ELEMENT_U16:
		return v.u16;
	case ELEMENT_S16:
		return v.s16;
	case ELEMENT_U32:
		return v.u32;
	case ELEMENT_S32:
		return v.s32;
	case ELEMENT_F32:
		return (double)v.f32;
	case ELEMENT_F64:
		return v.f64;
	}
	return NAN;
}

static int read_exactly(struct reader *r, void *into, size_t n)
{
	int got = gzread(r->file, into, (unsigned)n);

	if (got < 0 || (size_t)got != n)
		return err_set(r->err, EBADMSG, "%s: the file ends before its last voxel", r->name);
	return 0;
}

/* Read all elements, row by row. */
static int read_labels(struct reader *r, struct label_volume *v)
{
	size_t columns = (size_t)v->n[0], rows = (size_t)v->n[1] * (size_t)v->n[2];
	size_t bytes = (size_t)element_bytes[r->element];
	unsigned char *row = malloc(columns * bytes);
	int rc = 0;

	v->labels = malloc(columns * rows * sizeof(*v->labels));
	if (!row || !v->labels)
		rc = err_set(r->err, ENOMEM, "%s: no memory for %zu voxels", r->name, columns * rows);
	for (size_t j = 0; rc == 0 && j < rows; j++) {
		rc = read_exactly(r, row, columns * bytes);
		for (size_t i = 0; rc == 0 && i < columns; i++) {
			double value = element_at(r, row + i * bytes) * r->slope + r->shift;

			if (!(value >= 0 && value <= LABEL_MAX && value == floor(value)))
				rc = err_set(r->err, EBADMSG,
					     "%s: voxel %zu, %zu, %zu has the value %g; labels are whole numbers from 0 to %d",
					     r->name, i, j % (size_t)v->n[1], j / (size_t)v->n[1], value, LABEL_MAX);
			else
				v->labels[j * columns + i] = (uint16_t)value;
		}
	}
	free(row);
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
	int swap;
};

static double field(const struct nifti *h, size_t at, enum element element)
{
	struct reader r = {.element = element, .swap = h->swap};
	unsigned char b[8];

	memcpy(b, h->bytes + at, (size_t)element_bytes[element]);
	return element_at(&r, b);
}

static int nifti_element(double code)
{
	static const struct {
		int code;
		enum element element;
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
	double b = field(h, 256, ELEMENT_F32), c = field(h, 260, ELEMENT_F32), d = field(h, 264, ELEMENT_F32);
	double a = sqrt(fmax(0, 1 - b * b - c * c - d * d)), third = field(h, 76, ELEMENT_F32) < 0 ? -1 : 1;
	const double r[3][3] = {{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
				{2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
				{2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c}};

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 3; j++)
			m[i][j] = r[i][j] * field(h, 80 + 4 * j, ELEMENT_F32) * (j == 2 ? third : 1);
		m[i][3] = field(h, 268 + 4 * i, ELEMENT_F32);
	}
}

static int nifti_place(const struct reader *r, const struct nifti *h, struct label_volume *v)
{
	double m[3][4];

	if (field(h, 254, ELEMENT_S16) > 0) {
		for (size_t i = 0; i < 3; i++)
			for (size_t j = 0; j < 4; j++)
				m[i][j] = field(h, 280 + 16 * i + 4 * j, ELEMENT_F32);
	} else if (field(h, 252, ELEMENT_S16) > 0) {
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
	h.swap = field(&h, 0, ELEMENT_S32) != NIFTI_HEADER;
	if (field(&h, 0, ELEMENT_S32) != NIFTI_HEADER || memcmp(h.bytes + 344, "n+1", 4) != 0)
		return err_set(r->err, EBADMSG, "%s: not a NIfTI-1 file with header and data in one", r->name);
	r->swap = h.swap;
	for (size_t i = 4; i <= 7; i++)
		if (field(&h, 40, ELEMENT_S16) >= (double)i && field(&h, 40 + 2 * i, ELEMENT_S16) > 1)
			return err_set(r->err, ENOTSUP, "%s: %g values along dimension %zu; labels have three dimensions",
				       r->name, field(&h, 40 + 2 * i, ELEMENT_S16), i);
	for (size_t a = 0; a < 3; a++)
		v->n[a] = field(&h, 40, ELEMENT_S16) > (double)a ? (int)field(&h, 42 + 2 * a, ELEMENT_S16) : 1;
	element = nifti_element(field(&h, 70, ELEMENT_S16));
	if (element < 0)
		return err_set(r->err, ENOTSUP, "%s: datatype %g; supported: integers of 8 to 32 bits, float, double", r->name,
			       field(&h, 70, ELEMENT_S16));
	r->element = (enum element)element;
	r->slope = field(&h, 112, ELEMENT_F32);
	r->shift = field(&h, 116, ELEMENT_F32);
	if (r->slope == 0 || !isfinite(r->slope) || !isfinite(r->shift)) { /* 0: not scaled */
		r->slope = 1;
		r->shift = 0;
	}
	rc = nifti_place(r, &h, v);
	if (rc == 0)
		rc = finish_geometry(r, v);
	offset = field(&h, 108, ELEMENT_F32);
	if (rc == 0 && !(offset >= NIFTI_HEADER && offset <= 1e6))
		rc = err_set(r->err, EBADMSG, "%s: vox_offset is %g", r->name, offset);
	if (rc == 0 && gzseek(r->file, (z_off_t)offset, SEEK_SET) < 0)
		rc = err_set(r->err, EBADMSG, "%s: the file ends before its first voxel", r->name);
	return rc == 0 ? read_labels(r, v) : rc;
}

/* ---- MetaImage ---- */

/* Read n numbers; a missing key has the value NULL. */
static int meta_numbers(const struct reader *r, const char *key, const char *value, int n, double *ret)
{
	const char *at = value ? value : "";
	char *end;

	for (int i = 0; i < n; i++, at = end) {
		ret[i] = strtod(at, &end);
		if (end == at || !isfinite(ret[i]))
			return err_set(r->err, EBADMSG, "%s: %s = \"%.60s\"; needed: %d numbers", r->name, key,
				       value ? value : "", n);
	}
	return 0;
}

enum meta_key {
	META_DIMS,
	META_SIZE,
	META_SPACING,
	META_OFFSET,
	META_MATRIX,
	META_TYPE,
	META_FILE,
	META_MSB,
	META_PACKED,
	META_KEYS
};

static const struct {
	const char *name;
	enum meta_key key;
} meta_names[] = {{"NDims", META_DIMS},
		  {"DimSize", META_SIZE},
		  {"ElementSpacing", META_SPACING},
		  {"Offset", META_OFFSET},
		  {"Position", META_OFFSET},
		  {"Origin", META_OFFSET},
		  {"TransformMatrix", META_MATRIX},
		  {"Orientation", META_MATRIX},
		  {"Rotation", META_MATRIX},
		  {"ElementType", META_TYPE},
		  {"ElementDataFile", META_FILE},
		  {"BinaryDataByteOrderMSB", META_MSB},
		  {"ElementByteOrderMSB", META_MSB},
		  {"CompressedData", META_PACKED}};

struct meta {
	char text[META_HEADER_MAX];
	const char *value[META_KEYS];
	long end; /* of the header in the file */
};

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Read lines "Key = Value" until ElementDataFile, which is the last one. */
static int meta_lines(const struct reader *r, FILE *f, struct meta *m)
{
	size_t used = 0;

	while (!m->value[META_FILE]) {
		char *line = m->text + used, *equals;

		if (sizeof(m->text) - used < 2 || !fgets(line, (int)(sizeof(m->text) - used), f))
			return err_set(r->err, EBADMSG, "%s: not a MetaImage header: no ElementDataFile", r->name);
		used += strlen(line) + 1;
		equals = strchr(line, '=');
		if (!equals)
			return err_set(r->err, EBADMSG, "%s: not a MetaImage header: no \"=\" in a line", r->name);
		*equals = '\0';
		for (size_t i = 0; i < sizeof(meta_names) / sizeof(meta_names[0]); i++)
			if (!strcmp(trim(line), meta_names[i].name))
				m->value[meta_names[i].key] = trim(equals + 1);
	}
	m->end = ftell(f);
	return 0;
}

static bool meta_true(const char *value)
{
	return value && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
}

static int meta_geometry(struct reader *r, const struct meta *m, struct label_volume *v)
{
	static const char *const types[] = {"MET_UCHAR", "MET_CHAR", "MET_USHORT", "MET_SHORT",
					    "MET_UINT",	 "MET_INT",  "MET_FLOAT",  "MET_DOUBLE"};
	double dims, n[3], h[3], axes[9];
	int rc = meta_numbers(r, "NDims", m->value[META_DIMS], 1, &dims), found = -1;

	if (rc == 0 && dims != 3)
		return err_set(r->err, ENOTSUP, "%s: NDims is %g; labels have 3", r->name, dims);
	if (rc == 0)
		rc = meta_numbers(r, "DimSize", m->value[META_SIZE], 3, n);
	if (rc == 0)
		rc = meta_numbers(r, "ElementSpacing", m->value[META_SPACING], 3, h);
	if (rc == 0)
		rc = meta_numbers(r, "Offset", m->value[META_OFFSET], 3, v->corner);
	if (rc == 0)
		rc = meta_numbers(r, "TransformMatrix", m->value[META_MATRIX] ? m->value[META_MATRIX] : "1 0 0 0 1 0 0 0 1", 9,
				  axes);
	if (rc < 0)
		return rc;
	for (int a = 0; a < 3; a++) {
		v->n[a] = n[a] >= 1 && n[a] <= LABEL_SIDE_MAX ? (int)n[a] : 0;
		for (int c = 0; c < 3; c++)
			v->step[a][c] = h[a] * axes[3 * a + c];
	}
	for (int i = 0; i < 8; i++)
		if (m->value[META_TYPE] && !strcmp(m->value[META_TYPE], types[i]))
			found = i;
	if (found < 0)
		return err_set(r->err, ENOTSUP,
			       "%s: ElementType is \"%.60s\"; supported: integers of 8 to 32 bits, float, double", r->name,
			       m->value[META_TYPE] ? m->value[META_TYPE] : "");
	r->element = (enum element)found; /* the types are in the order of enum element */
	r->swap = meta_true(m->value[META_MSB]);
	return finish_geometry(r, v);
}

/* Inflate the rest of a file (zlib or gzip) into a temporary file, which read_labels() then reads. */
static int inflate_rest(const struct reader *r, FILE *from, FILE *to, size_t most)
{
	unsigned char in[65536], out[65536];
	z_stream z = {0};
	int state = inflateInit2(&z, 15 + 32) == Z_OK ? Z_OK : Z_MEM_ERROR;
	size_t total = 0;

	while (state == Z_OK) {
		if (z.avail_in == 0) {
			z.next_in = in;
			z.avail_in = (uInt)fread(in, 1, sizeof(in), from);
			if (z.avail_in == 0)
				break;
		}
		z.next_out = out;
		z.avail_out = sizeof(out);
		state = inflate(&z, Z_NO_FLUSH);
		total += sizeof(out) - z.avail_out;
		if (total > most || fwrite(out, 1, sizeof(out) - z.avail_out, to) != sizeof(out) - z.avail_out)
			state = Z_BUF_ERROR;
	}
	inflateEnd(&z);
	return state == Z_STREAM_END && fflush(to) == 0
		       ? 0
		       : err_set(r->err, EBADMSG, "%s: the compressed data are damaged, or not %zu bytes", r->name, most);
}

/* Open the data where they are: behind the header, or in a file beside it. */
static int meta_data(struct reader *r, const char *path, const struct meta *m, const struct label_volume *v)
{
	const char *data = m->value[META_FILE];
	size_t bytes = (size_t)v->n[0] * (size_t)v->n[1] * (size_t)v->n[2] * (size_t)element_bytes[r->element];
	bool local = !strcmp(data, "LOCAL");
	char beside[PATH_SIZE];
	FILE *from, *to = NULL;
	int rc = 0;

	if (!local && (strchr(data, '/') || strchr(data, '%') || !strncmp(data, "LIST", 4)))
		return err_set(r->err, ENOTSUP, "%s: ElementDataFile is \"%.60s\"; supported: LOCAL, a file in the same folder",
			       r->name, data);
	if (!local &&
	    (size_t)snprintf(beside, sizeof(beside), "%.*s%s", (int)(file_name(path) - path), path, data) >= sizeof(beside))
		return err_set(r->err, ENAMETOOLONG, "%s: the name of its data is too long", r->name);
	from = fopen(local ? path : beside, "rb");
	if (!from || (local && fseek(from, m->end, SEEK_SET) < 0))
		rc = err_set(r->err, errno ? errno : EIO, "%s: cannot read its data %s: %s", r->name, local ? "LOCAL" : data,
			     strerror(errno));
	if (rc == 0 && meta_true(m->value[META_PACKED])) {
		to = tmpfile();
		rc = to ? inflate_rest(r, from, to, bytes) : err_set(r->err, errno, "no temporary file: %s", strerror(errno));
		if (rc == 0)
			rewind(to);
	}
	if (rc == 0) {
		FILE *f = to ? to : from;
		int fd = dup(fileno(f));

		if (fd >= 0)
			lseek(fd, to ? 0 : ftell(f), SEEK_SET);
		r->file = fd >= 0 ? gzdopen(fd, "rb") : NULL;
		if (!r->file) {
			if (fd >= 0)
				close(fd);
			rc = err_set(r->err, ENOMEM, "%s: no memory", r->name);
		}
	}
	if (from)
		fclose(from);
	if (to)
		fclose(to);
	return rc;
}

static int open_meta(struct reader *r, const char *path, struct label_volume *v)
{
	struct meta *m = calloc(1, sizeof(*m));
	FILE *f = fopen(path, "rb");
	int rc = 0;

	if (!m)
		rc = err_set(r->err, ENOMEM, "%s: no memory", r->name);
	else if (!f)
		rc = err_set(r->err, errno, "%s: %s", r->name, strerror(errno));
	else
		rc = meta_lines(r, f, m);
	if (f)
		fclose(f);
	if (rc == 0)
		rc = meta_geometry(r, m, v);
	if (rc == 0)
		rc = meta_data(r, path, m, v);
	if (rc == 0)
		rc = read_labels(r, v);
	free(m);
	return rc;
}

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) > strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

int label_volume_open(const char *path, struct label_volume *ret, struct err *err)
{
	struct reader r = {.name = file_name(path), .slope = 1, .err = err};
	struct label_volume v = {0};
	int rc;

	if (ends_with(path, ".nii") || ends_with(path, ".nii.gz")) {
		errno = 0;
		r.file = gzopen(path, "rb"); /* reads uncompressed files, too */
		rc = r.file ? open_nifti(&r, &v) : err_set(err, errno ? errno : ENOMEM, "%s: %s", r.name, strerror(errno));
	} else if (ends_with(path, ".mha") || ends_with(path, ".mhd")) {
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
