/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - see node/format/picture.h. PNG is read with libpng's simplified interface, which returns errors and does not use
 * longjmp; PGM (netpbm's pgm(5)) is a header of four words followed by the values. */
#include "node/format/picture.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/base/text_file.h"

bool picture_has_extension(const char *path)
{
	return file_name_ends(path, ".png") || file_name_ends(path, ".pgm");
}

static int init_picture(struct picture *p, const char *path, unsigned long width, unsigned long height, struct err *err)
{
	if (width < 1 || height < 1 || width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX)
		return err_set(err, EBADMSG, "%s: %lu x %lu pixels; allowed: sides of 1 to %d", path, width, height,
			       PICTURE_SIDE_MAX);
	p->width = (int)width;
	p->height = (int)height;
	p->value = malloc(width * height * sizeof(*p->value));
	return p->value ? 0 : err_set(err, ENOMEM, "no memory for a picture of %lu x %lu", width, height);
}

/* ---- PNG ---- */

static int read_png(const char *path, FILE *f, struct picture *p, struct err *err)
{
	static const png_color black = {0, 0, 0};
	png_image image = {.version = PNG_IMAGE_VERSION};
	png_bytep grey = NULL;
	size_t n;
	int rc;

	if (!png_image_begin_read_from_stdio(&image, f))
		return err_set(err, EBADMSG, "%s: %s", path, image.message);
	rc = init_picture(p, path, image.width, image.height, err);
	if (rc < 0)
		goto out;
	image.format = PNG_FORMAT_GRAY;
	n = PNG_IMAGE_SIZE(image);
	grey = malloc(n);
	if (!grey)
		rc = err_set(err, ENOMEM, "no memory for a picture of %d x %d", p->width, p->height);
	else if (!png_image_finish_read(&image, &black, grey, 0, NULL) || PNG_IMAGE_FAILED(image))
		rc = err_set(err, EBADMSG, "%s: %s", path, image.message);
	for (size_t i = 0; rc == 0 && i < n; i++)
		p->value[i] = (float)grey[i] / 255;
out:
	png_image_free(&image);
	free(grey);
	return rc;
}

/* ---- PGM ---- */

/* Read the next number, skipping comments from '#' to the end of the line. False: none. */
static bool next_number(FILE *f, unsigned long *ret)
{
	unsigned long v = 0;
	int c = fgetc(f), digits = 0;

	while (c == '#' || isspace(c)) {
		if (c == '#')
			while (c != EOF && c != '\n')
				c = fgetc(f);
		else
			c = fgetc(f);
	}
	for (; c >= '0' && c <= '9' && digits < 9; digits++, c = fgetc(f))
		v = 10 * v + (unsigned long)(c - '0');
	*ret = v;
	return digits > 0 && (c == EOF || isspace(c)); /* the one blank after the number is also read */
}

static bool next_value(FILE *f, bool plain, unsigned long most, unsigned long *ret)
{
	int high = 0, low;

	if (plain)
		return next_number(f, ret) && *ret <= most;
	if (most > 255)
		high = fgetc(f);
	low = fgetc(f);
	*ret = (unsigned long)high << 8 | (unsigned long)low;
	return high != EOF && low != EOF && *ret <= most;
}

static int read_pgm(const char *path, FILE *f, struct picture *p, struct err *err)
{
	unsigned long width, height, most, v;
	bool plain;
	int rc;

	fgetc(f); /* skip "P2" or "P5", which the caller has checked */
	plain = fgetc(f) == '2';
	if (!next_number(f, &width) || !next_number(f, &height) || !next_number(f, &most) || most < 1 || most > 65535)
		return err_set(err, EBADMSG, "%s: the header of a PGM is P2 or P5, width, height, largest value (1 to 65535)",
			       path);
	rc = init_picture(p, path, width, height, err);
	for (size_t i = 0; rc == 0 && i < width * height; i++) {
		if (!next_value(f, plain, most, &v))
			return err_set(err, EBADMSG, "%s: value %zu of %lu is missing or above %lu", path, i + 1, width * height,
				       most);
		p->value[i] = (float)v / (float)most;
	}
	return rc;
}

int picture_read(const char *path, struct picture *ret_picture, struct err *err)
{
	struct picture p = {0};
	FILE *f = NULL;
	char mark[8] = "";
	int rc = regular_file_open(path, &f, err);

	if (rc < 0)
		return rc;
	if (fread(mark, 1, sizeof(mark), f) == 0 || ferror(f))
		rc = err_set(err, EBADMSG, "%s: the file is empty or cannot be read", path);
	else if (fseek(f, 0, SEEK_SET) < 0)
		rc = err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	else if (!memcmp(mark, "\x89PNG\r\n\x1a\n", 8))
		rc = read_png(path, f, &p, err);
	else if (mark[0] == 'P' && (mark[1] == '2' || mark[1] == '5'))
		rc = read_pgm(path, f, &p, err);
	else
		rc = err_set(err, EBADMSG, "%s: neither PNG nor PGM (P2, P5)", path);
	fclose(f);
	if (rc < 0)
		picture_clear(&p);
	else
		*ret_picture = p;
	return rc;
}

void picture_clear(struct picture *p)
{
	free(p->value);
	*p = (struct picture){0};
}

unsigned picture_grey(const struct picture_levels *w, double value, unsigned top)
{
	double part = w->hi > w->lo ? (value - w->lo) / (w->hi - w->lo) : value >= w->hi;

	part = part > 0 ? fmin(part, 1) : 0; /* 0 also for NaN */
	return (unsigned)lround(top * (w->inverse ? 1 - part : part));
}

int picture_greys(const struct picture_levels *w, const float *values, size_t n, unsigned char **ret_grey, struct err *err)
{
	unsigned char *grey = malloc(n);

	if (!grey)
		return err_set(err, ENOMEM, "no memory for a picture of %zu pixels", n);
	for (size_t i = 0; i < n; i++)
		grey[i] = (unsigned char)picture_grey(w, (double)values[i], 255);
	*ret_grey = grey;
	return 0;
}

static png_image grey_image(int width, int height)
{
	return (png_image){.version = PNG_IMAGE_VERSION,
			   .width = (png_uint_32)width,
			   .height = (png_uint_32)height,
			   .format = PNG_FORMAT_GRAY};
}

int picture_encode(int width, int height, const unsigned char *grey, unsigned char **ret_bytes, size_t *ret_size, struct err *err)
{
	png_image image = grey_image(width, height);
	png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
	unsigned char *bytes = malloc(size);

	if (!bytes)
		return err_set(err, ENOMEM, "no memory for a picture of %d x %d", width, height);
	if (!png_image_write_to_memory(&image, bytes, &size, 0, grey, 0, NULL)) {
		free(bytes);
		return err_set(err, EIO, "cannot make a PNG of %d x %d: %s", width, height, image.message);
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

int picture_write(const char *path, int width, int height, const unsigned char *grey, struct err *err)
{
	unsigned char *bytes = NULL;
	size_t n = 0;
	int rc = picture_encode(width, height, grey, &bytes, &n, err);

	if (rc == 0)
		rc = atomic_file_put(path, bytes, n, err);
	free(bytes);
	return rc;
}
