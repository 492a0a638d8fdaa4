/* SPDX-License-Identifier: Apache-2.0 */
/* thumbnail.c - reduce slices by averaging, and scale their grey levels to the window of a tomosynthesis or, of the other
 * results, to the range of most of their values. */
#include "node/result/thumbnail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/object/tomo_object.h"
#include "dicom/pixels/pixels.h"
#include "node/format/picture.h"

#define NAME "thumbnail.png"
#define DARKEST 0.02	/* fraction of the values that become black */
#define BRIGHTEST 0.995 /* fraction of the values that do not become white */
#define BINS 4096

int thumbnail_path(const char *spool, int64_t job, char *ret_path, size_t size)
{
	int n = snprintf(ret_path, size, "%s/outbox/%lld/" NAME, spool, (long long)job);

	return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

long thumbnail_slice_at(int k, int pictures, long total)
{
	return (2L * k + 1) * total / (2L * pictures);
}

struct small {
	int width, height;
	float *value;
	double window[2]; /* that of the object; equal: it has none, or one for each slice */
};

/* Average values over rectangles, so that the longer side has at most `side` pixels. slope: of stored values. */
static int shrink_picture(const struct dicom_pixel_info *info, const uint16_t *stored, int side, double slope, struct small *ret,
			  struct err *err)
{
	long longer = info->rows > info->columns ? info->rows : info->columns;
	double step = longer > side ? (double)longer / side : 1;
	struct small s = {.width = (int)((double)info->columns / step), .height = (int)((double)info->rows / step)};
	unsigned sign = info->is_signed ? 1u << (info->bits_stored - 1) : 0;

	s.width = s.width < 1 ? 1 : s.width;
	s.height = s.height < 1 ? 1 : s.height;
	s.value = malloc((size_t)s.width * (size_t)s.height * sizeof(s.value[0]));
	if (!s.value)
		return err_set(err, ENOMEM, "no memory for a picture of %d x %d", s.width, s.height);
	for (int y = 0; y < s.height; y++)
		for (int x = 0; x < s.width; x++) {
			long r0 = (long)(y * step), r1 = (long)((y + 1) * step), c0 = (long)(x * step),
			     c1 = (long)((x + 1) * step);
			double sum = 0;

			r1 = r1 <= r0 ? r0 + 1 : r1 > info->rows ? info->rows : r1;
			c1 = c1 <= c0 ? c0 + 1 : c1 > info->columns ? info->columns : c1;
			for (long r = r0; r < r1; r++)
				for (long c = c0; c < c1; c++) /* two's complement, shifted to be above 0 */
					sum += (stored[r * info->columns + c] ^ sign) & 0xffff;
			s.value[(size_t)y * (size_t)s.width + (size_t)x] =
				(float)(slope * (sum / (double)((r1 - r0) * (c1 - c0)) - sign));
		}
	*ret = s;
	return 0;
}

/* Compute the values below which the fractions DARKEST and BRIGHTEST of all values are. */
static void find_window(const struct small *s, double *ret_lo, double *ret_hi)
{
	size_t n = (size_t)s->width * (size_t)s->height, count[BINS] = {0}, below = 0;
	float lo = s->value[0], hi = s->value[0];
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		lo = s->value[i] < lo ? s->value[i] : lo;
		hi = s->value[i] > hi ? s->value[i] : hi;
	}
	*ret_lo = lo;
	*ret_hi = hi;
	if (!(hi > lo))
		return;
	for (size_t i = 0; i < n; i++)
		count[(size_t)((s->value[i] - lo) / (hi - lo) * (BINS - 1))]++;
	for (size_t b = 0; b < BINS; b++) {
		below += count[b];
		if (!found && (double)below > DARKEST * (double)n) {
			*ret_lo = lo + (hi - lo) * (float)b / (BINS - 1);
			found = true;
		}
		if ((double)below >= BRIGHTEST * (double)n) {
			*ret_hi = lo + (hi - lo) * (float)(b + 1) / (BINS - 1);
			break;
		}
	}
}

static int to_grey(const struct small *s, bool inverse, unsigned char **ret_grey, struct err *err)
{
	struct picture_levels w = {.inverse = inverse};

	w.lo = s->window[0];
	w.hi = s->window[1];
	if (!(w.hi > w.lo))
		find_window(s, &w.lo, &w.hi);
	if (!(w.hi > w.lo)) /* one value: black */
		w.hi = w.lo + 1;
	return picture_greys(&w, s->value, (size_t)s->width * (size_t)s->height, ret_grey, err);
}

/* Read a frame of a file (-1: the middle one), reduced. *ret_inverse: its small values are shown bright. */
static int read_small(const char *path, long frame, int side, struct small *ret, bool *ret_inverse, struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	uint16_t *stored = NULL;
	char shown[20] = "";
	double slope = 1, window[2];
	int rc = dicom_open(path, &file, err);

	if (rc == 0)
		rc = dicom_pixels_info(file, &info, err);
	if (rc < 0)
		goto out;
	stored = malloc((size_t)info.rows * (size_t)info.columns * sizeof(stored[0]));
	rc = stored ? dicom_read_frame(file, frame < 0 ? info.frames / 2 : frame, stored, err)
		    : err_set(err, ENOMEM, "no memory for a frame of %ld x %ld", info.columns, info.rows);
	if (rc < 0)
		goto out;
	if (dicom_get_double(dicom_root(file), TAG_RESCALE_SLOPE, 0, &slope, NULL) != 1 || !(slope > 0))
		slope = 1;
	dicom_get_text(dicom_root(file), TAG_PHOTOMETRIC_INTERPRETATION, shown, sizeof(shown), NULL);
	*ret_inverse = !strcmp(shown, "MONOCHROME1");
	rc = shrink_picture(&info, stored, side, slope, ret, err);
	if (rc == 0 && tomo_object_window(file, window))
		memcpy(ret->window, window, sizeof(window));
out:
	free(stored);
	dicom_close(file);
	return rc;
}

static int join_path(const char *folder, const char *name, char *ret_path, size_t size, struct err *err)
{
	if (snprintf(ret_path, size, "%s/%s", folder, name) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", name);
	return 0;
}

int thumbnail_make(const char *folder, const char *const *files, size_t n, struct err *err)
{
	unsigned char *grey = NULL;
	struct small s = {0};
	bool inverse = false;
	char path[400];
	int ret;

	if (n == 0)
		return err_set(err, EINVAL, "the result has no objects to make a thumbnail from");
	ret = join_path(folder, files[n / 2], path, sizeof(path), err);
	if (ret == 0)
		ret = read_small(path, -1, THUMBNAIL_SIDE, &s, &inverse, err);
	if (ret == 0)
		ret = join_path(folder, NAME, path, sizeof(path), err);
	if (ret == 0)
		ret = to_grey(&s, inverse, &grey, err);
	if (ret == 0)
		ret = picture_write(path, s.width, s.height, grey, err);
	free(grey);
	free(s.value);
	return ret;
}

/* Number of slices: files, or frames of the only one. */
static int count_slices(const char *folder, const char *const *files, size_t n, long *ret_total, struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	char path[400];
	int ret;

	*ret_total = (long)n;
	if (n != 1)
		return n ? 0 : err_set(err, EINVAL, "the result has no objects to make pictures from");
	ret = join_path(folder, files[0], path, sizeof(path), err);
	if (ret == 0)
		ret = dicom_open(path, &file, err);
	if (ret == 0)
		ret = dicom_pixels_info(file, &info, err);
	if (ret == 0)
		*ret_total = info.frames;
	dicom_close(file);
	return ret;
}

/* Make the strip for pictures of the size of the first slice. Around them it has the value that is shown black. */
static int begin_strip(struct small *strip, int pictures, const struct small *first, bool inverse, struct err *err)
{
	int side = first->width > first->height ? first->width : first->height;
	size_t n = (size_t)pictures * (size_t)side * (size_t)side;
	float black = first->value[0];

	*strip = (struct small){.width = pictures * side, .height = side, .value = malloc(n * sizeof(strip->value[0]))};
	if (!strip->value)
		return err_set(err, ENOMEM, "no memory for %d pictures", pictures);
	for (size_t i = 1; i < (size_t)first->width * (size_t)first->height; i++)
		black = inverse == (first->value[i] > black) ? first->value[i] : black;
	if (first->window[1] > first->window[0])
		black = (float)first->window[inverse];
	memcpy(strip->window, first->window, sizeof(strip->window));
	for (size_t i = 0; i < n; i++)
		strip->value[i] = black;
	return 0;
}

/* Copy a slice into column `at` of the strip, in the middle of its square. */
static void place_slice(struct small *strip, int at, const struct small *s)
{
	int side = strip->height, top = (side - s->height) / 2, left = at * side + (side - s->width) / 2;

	for (int y = 0; y < s->height; y++)
		memcpy(&strip->value[(size_t)(top + y) * (size_t)strip->width + (size_t)left],
		       &s->value[(size_t)y * (size_t)s->width], (size_t)s->width * sizeof(s->value[0]));
}

static int add_slices(const char *folder, const char *const *files, size_t n, long total, struct small *strip, bool *ret_inverse,
		      struct err *err)
{
	int pictures = total < THUMBNAIL_SLICES ? (int)total : THUMBNAIL_SLICES, ret = 0;
	char path[400];

	for (int k = 0; ret == 0 && k < pictures; k++) {
		long at = thumbnail_slice_at(k, pictures, total);
		struct small s = {0};

		ret = join_path(folder, files[n == 1 ? 0 : at], path, sizeof(path), err);
		if (ret == 0)
			ret = read_small(path, n == 1 ? at : -1, THUMBNAIL_SLICE_SIDE, &s, ret_inverse, err);
		if (ret == 0 && !strip->value)
			ret = begin_strip(strip, pictures, &s, *ret_inverse, err);
		if (ret == 0 && (s.width > strip->height || s.height > strip->height))
			ret = err_set(err, EINVAL, "slice %ld is larger than the first one", at);
		if (ret == 0)
			place_slice(strip, k, &s);
		free(s.value);
	}
	return ret;
}

int thumbnail_slices(const char *folder, const char *const *files, size_t n, unsigned char **ret_png, size_t *ret_size,
		     struct err *err)
{
	struct small strip = {0};
	unsigned char *grey = NULL;
	bool inverse = false;
	long total = 0;
	int ret = count_slices(folder, files, n, &total, err);

	if (ret == 0)
		ret = add_slices(folder, files, n, total, &strip, &inverse, err);
	if (ret == 0)
		ret = to_grey(&strip, inverse, &grey, err);
	if (ret == 0)
		ret = picture_encode(strip.width, strip.height, grey, ret_png, ret_size, err);
	free(grey);
	free(strip.value);
	return ret;
}
