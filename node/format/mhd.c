/* SPDX-License-Identifier: Apache-2.0 */
/* mhd.c - read MetaImage headers and their data files (format: itk.org/Wiki/ITK/MetaIO/Documentation). A header consists of lines
 * "Key = Value" and ends with ElementDataFile. Keys that do not affect the elements (offsets, comments) are ignored; a known key
 * may occur once. The data are read in blocks, so that the stored volume is never in memory as a whole.
 */
#include "node/format/mhd.h"
#include "node/base/folder.h"
#include "node/base/text_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BLOCK 65536 /* bytes */
#define LINE_MAX_BYTES 1024
#define PATH_SIZE 4096

enum key {
	KEY_NDIMS,
	KEY_DIM_SIZE,
	KEY_SPACING,
	KEY_SIZE,
	KEY_TYPE,
	KEY_DATA_FILE,
	KEY_COMPRESSED,
	KEY_BINARY,
	KEY_BYTE_ORDER,
	KEY_CHANNELS,
	KEY_HEADER_SIZE,
	KEY_MATRIX,
	KEY_OFFSET,
	N_KEYS
};

static const struct {
	const char *name;
	enum key key;
} keys[] = {
	{"NDims", KEY_NDIMS},
	{"DimSize", KEY_DIM_SIZE},
	{"ElementSpacing", KEY_SPACING},
	{"ElementSize", KEY_SIZE},
	{"ElementType", KEY_TYPE},
	{"ElementDataFile", KEY_DATA_FILE},
	{"CompressedData", KEY_COMPRESSED},
	{"BinaryData", KEY_BINARY},
	{"BinaryDataByteOrderMSB", KEY_BYTE_ORDER},
	{"ElementByteOrderMSB", KEY_BYTE_ORDER},
	{"ElementNumberOfChannels", KEY_CHANNELS},
	{"HeaderSize", KEY_HEADER_SIZE},
	{"TransformMatrix", KEY_MATRIX},
	{"Orientation", KEY_MATRIX},
	{"Rotation", KEY_MATRIX},
	{"Offset", KEY_OFFSET},
	{"Position", KEY_OFFSET},
	{"Origin", KEY_OFFSET},
};

struct header {
	const char *name;
	enum mhd_use use;
	size_t end;			    /* bytes of the header */
	char value[N_KEYS][LINE_MAX_BYTES]; /* "": missing */
	struct err *err;
};

/* ---- the header ---- */

static char *trim_space(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

/* Parse one line "Key = Value". */
static int parse_line(struct header *h, char *line, int number)
{
	char *equals = strchr(line, '='), *key = line, *value;

	if (!*trim_space(line))
		return 0;
	if (!equals)
		return err_set(h->err, EBADMSG, "%s:%d: no '=' in \"%.60s\"", h->name, number, trim_space(line));
	*equals = '\0';
	key = trim_space(key);
	value = trim_space(equals + 1);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i].name) != 0)
			continue;
		if (h->value[keys[i].key][0])
			return err_set(h->err, EBADMSG, "%s:%d: %s occurs twice", h->name, number, key);
		if (!value[0])
			return err_set(h->err, EBADMSG, "%s:%d: %s has no value", h->name, number, key);
		snprintf(h->value[keys[i].key], LINE_MAX_BYTES, "%s", value);
	}
	return 0;
}

static int parse_lines(struct header *h, const char *text, size_t size)
{
	char line[LINE_MAX_BYTES];
	int number = 1;

	for (size_t at = 0; at < size; number++) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t n = newline ? (size_t)(newline - text) - at : size - at;
		int rc;

		if (n >= sizeof(line))
			return err_set(h->err, EBADMSG,
				       "%s:%d: a line of %zu bytes; at most %zu are allowed: is this a MetaImage header?",
				       h->name, number, n, sizeof(line) - 1);
		memcpy(line, text + at, n);
		line[n] = '\0';
		if (strlen(line) != n)
			return err_set(h->err, EBADMSG, "%s:%d: contains a byte 0: not a MetaImage header", h->name, number);
		rc = parse_line(h, line, number);
		if (rc < 0)
			return rc;
		at += n + 1;
		h->end = at;
		if (!strcmp(h->value[KEY_DATA_FILE], "LOCAL"))
			return 0;
		if (h->value[KEY_DATA_FILE][0]) {
			while (at < size && isspace((unsigned char)text[at]))
				at++;
			return at >= size ? 0
					  : err_set(h->err, EBADMSG,
						    "%s:%d: text after ElementDataFile, which must be the last line", h->name,
						    number + 1);
		}
	}
	return err_set(h->err, EBADMSG, "%s: ElementDataFile is missing", h->name);
}

/* Read exactly n numbers in [lo, hi]. */
static int read_numbers(const struct header *h, enum key key, const char *name, int n, double lo, double hi, double *ret)
{
	const char *at = h->value[key];
	char *end;

	if (!*at)
		return err_set(h->err, EBADMSG, "%s: %s is missing", h->name, name);
	for (int i = 0; i < n; i++, at = end) {
		ret[i] = strtod(at, &end);
		if (end == at || !(ret[i] >= lo && ret[i] <= hi))
			return err_set(h->err, EBADMSG, "%s: %s = %.60s; allowed: %d numbers from %g to %g", h->name, name,
				       h->value[key], n, lo, hi);
	}
	while (isspace((unsigned char)*at))
		at++;
	return *at ? err_set(h->err, EBADMSG, "%s: %s = %.60s; allowed: %d numbers", h->name, name, h->value[key], n) : 0;
}

/* Read True, False, 1 or 0; a missing value is `otherwise`. */
static int read_bool(const struct header *h, enum key key, const char *name, bool otherwise, bool *ret)
{
	const char *value = h->value[key];

	*ret = !*value ? otherwise : tolower((unsigned char)*value) == 't' || *value == '1';
	if (*value && !*ret && tolower((unsigned char)*value) != 'f' && *value != '0')
		return err_set(h->err, EBADMSG, "%s: %s = %.60s; allowed: True, False", h->name, name, value);
	return 0;
}

static int read_size(const struct header *h, struct mhd *ret)
{
	enum key key = h->value[KEY_SPACING][0] ? KEY_SPACING : KEY_SIZE;
	double n[3], spacing[3], dims, least = h->use == MHD_PHANTOM ? 0.001 : 1e-6, most = h->use == MHD_PHANTOM ? 10 : 1e6;
	size_t size = 1;
	int rc = read_numbers(h, KEY_NDIMS, "NDims", 1, 1, 10, &dims);

	if (rc < 0)
		return rc;
	if (dims != 3)
		return err_set(h->err, ENOTSUP, "%s: NDims = %g; a volume has 3", h->name, dims);
	rc = read_numbers(h, KEY_DIM_SIZE, "DimSize", 3, 1, MHD_SIDE_MAX, n);
	if (rc == 0)
		rc = read_numbers(h, key, "ElementSpacing", 3, least, most, spacing);
	if (rc < 0)
		return rc;
	for (int c = 0; c < 3; c++) {
		if (n[c] != floor(n[c]))
			return err_set(h->err, EBADMSG, "%s: DimSize = %.60s is not an integer", h->name, h->value[KEY_DIM_SIZE]);
		ret->n[c] = (int)n[c];
		ret->h[c] = spacing[c];
		size *= (size_t)ret->n[c]; /* at most 2^36 */
	}
	if (size > MHD_COUNT_MAX)
		return err_set(h->err, ENOTSUP, "%s: %zu elements; at most %zu are supported", h->name, size, MHD_COUNT_MAX);
	return 0;
}

static int read_type(const struct header *h, struct mhd *ret)
{
	static const char *const types[] = {"MET_UCHAR", "MET_CHAR", "MET_USHORT", "MET_SHORT",
					    "MET_UINT",	 "MET_INT",  "MET_FLOAT",  "MET_DOUBLE"}; /* as enum volume_element */
	const char *type = h->value[KEY_TYPE];
	size_t found = 0;
	bool binary;
	int rc = read_bool(h, KEY_BINARY, "BinaryData", true, &binary);

	if (rc == 0)
		rc = read_bool(h, KEY_BYTE_ORDER, "BinaryDataByteOrderMSB", false, &ret->most_significant_first);
	if (rc == 0)
		rc = read_bool(h, KEY_COMPRESSED, "CompressedData", false, &ret->compressed);
	if (rc < 0)
		return rc;
	if (!binary)
		return err_set(h->err, ENOTSUP, "%s: BinaryData = False: elements as text are not supported", h->name);
	if (!*type)
		return err_set(h->err, EBADMSG, "%s: ElementType is missing", h->name);
	while (found < sizeof(types) / sizeof(types[0]) && strcmp(type, types[found]) != 0)
		found++;
	if (found == sizeof(types) / sizeof(types[0]) || (h->use == MHD_PHANTOM && found != ELEMENT_U8 && found != ELEMENT_U16))
		return err_set(h->err, ENOTSUP, "%s: ElementType = %.60s; supported: %s", h->name, type,
			       h->use == MHD_PHANTOM ? "MET_UCHAR, MET_USHORT" : "integers of 8 to 32 bits, float, double");
	ret->element = (enum volume_element)found;
	return 0;
}

/* Check keys that may be present with one value only. */
static int read_fixed(const struct header *h)
{
	double value[1];
	int rc;

	if (h->value[KEY_CHANNELS][0]) {
		rc = read_numbers(h, KEY_CHANNELS, "ElementNumberOfChannels", 1, 1, 1000, value);
		if (rc < 0)
			return rc;
		if (value[0] != 1)
			return err_set(h->err, ENOTSUP, "%s: ElementNumberOfChannels = %g; supported: 1", h->name, value[0]);
	}
	if (h->value[KEY_HEADER_SIZE][0]) {
		rc = read_numbers(h, KEY_HEADER_SIZE, "HeaderSize", 1, -1, 1e9, value);
		if (rc < 0)
			return rc;
		if (value[0] != 0)
			return err_set(h->err, ENOTSUP, "%s: HeaderSize = %g; supported: 0", h->name, value[0]);
	}
	return 0;
}

static int read_place(const struct header *h, struct mhd *ret)
{
	static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
	int rc = 0;

	memcpy(ret->axes, identity, sizeof(identity));
	if (h->value[KEY_MATRIX][0])
		rc = read_numbers(h, KEY_MATRIX, "TransformMatrix", 9, -1e9, 1e9, ret->axes);
	for (int i = 0; rc == 0 && h->use == MHD_PHANTOM && i < 9; i++)
		if (ret->axes[i] != identity[i])
			rc = err_set(h->err, ENOTSUP, "%s: TransformMatrix = %.60s; supported: volumes without rotated axes",
				     h->name, h->value[KEY_MATRIX]);
	if (rc == 0 && h->use == MHD_PLACED)
		rc = read_numbers(h, KEY_OFFSET, "Offset", 3, -1e9, 1e9, ret->corner);
	return rc;
}

static int read_data_name(const struct header *h, struct mhd *ret)
{
	const char *data = h->value[KEY_DATA_FILE];

	if (h->use == MHD_PLACED && !strcmp(data, "LOCAL")) {
		ret->data_at = h->end;
		return 0;
	}
	if (strncmp(data, "LOCAL", 5) == 0 || strncmp(data, "LIST", 4) == 0 || strchr(data, '%') || strchr(data, ' '))
		return err_set(h->err, ENOTSUP, "%s: ElementDataFile = %.60s; supported: one file in the folder of the header",
			       h->name, data);
	if (strchr(data, '/') || strchr(data, '\\') || data[0] == '.' || strlen(data) >= sizeof(ret->data))
		return err_set(h->err, ENOTSUP, "%s: ElementDataFile = %.60s; allowed: the name of a file in the header's folder",
			       h->name, data);
	snprintf(ret->data, sizeof(ret->data), "%s", data);
	return 0;
}

int mhd_parse(const char *text, size_t size, const char *name, enum mhd_use use, struct mhd *ret_header, struct err *err)
{
	struct header *h = calloc(1, sizeof(*h));
	struct mhd found = {0};
	int rc;

	if (!h)
		return err_set(err, ENOMEM, "no memory for a MetaImage header");
	h->name = name;
	h->use = use;
	h->err = err;
	if ((rc = parse_lines(h, text, size)) == 0 && (rc = read_size(h, &found)) == 0 && (rc = read_type(h, &found)) == 0 &&
	    (rc = read_fixed(h)) == 0 && (rc = read_place(h, &found)) == 0 && (rc = read_data_name(h, &found)) == 0)
		*ret_header = found;
	free(h);
	return rc;
}

int mhd_open(const char *path, enum mhd_use use, struct mhd *ret_header, struct err *err)
{
	char *text = malloc(MHD_HEADER_MAX);
	FILE *f = NULL;
	size_t n = 0;
	int rc = err_remap(regular_file_open(path, &f, err), EACCES, EBADMSG, err);

	if (rc == 0 && !text)
		rc = err_set(err, ENOMEM, "no memory for a MetaImage header");
	if (rc == 0)
		n = fread(text, 1, MHD_HEADER_MAX, f); /* elements may follow */
	if (rc == 0 && ferror(f))
		rc = err_set(err, EIO, "cannot read %s: %s", path, strerror(errno));
	if (rc == 0)
		rc = mhd_parse(text, n, file_name(path), use, ret_header, err);
	if (f)
		fclose(f);
	free(text);
	return rc;
}

/* ---- the elements ---- */

struct source {
	FILE *f;
	const char *name;
	bool compressed, inflating;
	z_stream z;
	uint8_t in[BLOCK];
};

/* Read up to n stored bytes; fewer only at the end. */
static int read_plain(struct source *s, uint8_t *ret, size_t n, size_t *ret_n, struct err *err)
{
	*ret_n = fread(ret, 1, n, s->f);
	return ferror(s->f) ? err_set(err, EIO, "cannot read %s: %s", s->name, strerror(errno)) : 0;
}

/* Read up to n bytes and decompress them. A file may hold several compressed members, one after the other, as gzip allows. */
static int read_inflated(struct source *s, uint8_t *ret, size_t n, size_t *ret_n, struct err *err)
{
	s->z.next_out = ret;
	s->z.avail_out = (uInt)n;
	while (s->z.avail_out > 0) {
		int z;

		if (s->z.avail_in == 0) {
			size_t got;
			int rc = read_plain(s, s->in, sizeof(s->in), &got, err);

			if (rc < 0)
				return rc;
			s->z.next_in = s->in;
			s->z.avail_in = (uInt)got;
			if (got == 0 && s->inflating)
				return err_set(err, EBADMSG, "%s: the compressed data are truncated", s->name);
			if (got == 0)
				break;
		}
		if (!s->inflating && inflateReset(&s->z) != Z_OK)
			return err_set(err, EIO, "%s: zlib cannot be reset", s->name);
		s->inflating = true;
		z = inflate(&s->z, Z_NO_FLUSH);
		if (z == Z_STREAM_END)
			s->inflating = false;
		else if (z == Z_MEM_ERROR)
			return err_set(err, ENOMEM, "%s: no memory to decompress it", s->name);
		else if (z != Z_OK && z != Z_BUF_ERROR)
			return err_set(err, EBADMSG, "%s: the compressed data are damaged: %.100s", s->name,
				       s->z.msg ? s->z.msg : "neither zlib nor gzip");
	}
	*ret_n = n - s->z.avail_out;
	return 0;
}

static int read_bytes(struct source *s, uint8_t *ret, size_t n, size_t *ret_n, struct err *err)
{
	return s->compressed ? read_inflated(s, ret, n, ret_n, err) : read_plain(s, ret, n, ret_n, err);
}

static int source_open(const char *path, const struct mhd *h, struct source *ret, struct err *err)
{
	const char *name = h->data[0] ? h->data : file_name(path);
	char data[PATH_SIZE];
	int rc;

	if (snprintf(data, sizeof(data), "%.*s%s", (int)(file_name(path) - path), path, name) >= (int)sizeof(data))
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", name);
	memset(ret, 0, sizeof(*ret));
	ret->name = name;
	ret->compressed = h->compressed;
	rc = regular_file_open(data, &ret->f, err);
	if (rc == 0 && fseek(ret->f, (long)h->data_at, SEEK_SET) < 0) {
		rc = err_set(err, errno, "cannot read %s: %s", data, strerror(errno));
		fclose(ret->f);
	}
	if (rc < 0)
		return rc;
	/* window size plus 32: zlib detects a zlib or gzip header */
	if (ret->compressed && inflateInit2(&ret->z, 32 + MAX_WBITS) != Z_OK) {
		fclose(ret->f);
		return err_set(err, ENOMEM, "no memory to decompress %s", name);
	}
	return 0;
}

static void source_close(struct source *s)
{
	if (s->compressed)
		inflateEnd(&s->z);
	fclose(s->f);
}

int mhd_read(const char *path, const struct mhd *h, volume_take *take, void *ctx, struct err *err)
{
	struct source *s = malloc(sizeof(*s));
	uint8_t *bytes = malloc(BLOCK);
	double *elements = malloc(BLOCK * sizeof(*elements));
	size_t width = volume_element_size(h->element), total = (size_t)h->n[0] * (size_t)h->n[1] * (size_t)h->n[2], at = 0,
	       got = 0;
	int rc;

	if (!s || !bytes || !elements) {
		rc = err_set(err, ENOMEM, "no memory to read %s", file_name(path));
		goto out;
	}
	rc = source_open(path, h, s, err);
	if (rc < 0)
		goto out;
	while (rc == 0 && at < total) {
		size_t n = total - at < BLOCK / width ? total - at : BLOCK / width;

		rc = read_bytes(s, bytes, n * width, &got, err);
		if (rc < 0)
			break;
		if (got < n * width) {
			rc = err_set(err, EBADMSG, "%s holds %zu bytes; its header requires %zu elements of %zu bytes", s->name,
				     at * width + got, total, width);
			break;
		}
		for (size_t i = 0; i < n; i++)
			elements[i] = volume_element_at(h->element, h->most_significant_first, bytes + i * width);
		rc = take(ctx, at, elements, n, err);
		at += n;
	}
	if (rc == 0)
		rc = read_bytes(s, bytes, 1, &got, err);
	if (rc == 0 && got > 0)
		rc = err_set(err, EBADMSG, "%s holds more than the %zu elements of %zu bytes in its header", s->name, total,
			     width);
	source_close(s);
out:
	free(s);
	free(bytes);
	free(elements);
	return rc;
}
