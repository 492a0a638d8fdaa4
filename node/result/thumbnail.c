/* SPDX-License-Identifier: Apache-2.0 */
/* thumbnail.c - reduce the middle slice by averaging, and scale its grey levels to the range of most of its values. */
#include "node/result/thumbnail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
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

struct small {
	int width, height;
	float *value;
};

/* Average stored values over rectangles. */
static int shrink(const struct dicom_pixel_info *info, const uint16_t *stored, struct small *ret, struct err *err)
{
	long longer = info->rows > info->columns ? info->rows : info->columns;
	double step = longer > THUMBNAIL_SIDE ? (double)longer / THUMBNAIL_SIDE : 1;
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
			s.value[(size_t)y * (size_t)s.width + (size_t)x] = (float)(sum / (double)((r1 - r0) * (c1 - c0)));
		}
	*ret = s;
	return 0;
}

/* Compute the values below which the fractions DARKEST and BRIGHTEST of all values are. */
static void window(const struct small *s, float *ret_lo, float *ret_hi)
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

static int write_png(const struct small *s, bool inverse, const char *path, struct err *err)
{
	size_t n = (size_t)s->width * (size_t)s->height;
	unsigned char *grey = malloc(n);
	float lo, hi;
	int ret = 0;

	if (!grey)
		return err_set(err, ENOMEM, "no memory for a picture of %d x %d", s->width, s->height);
	window(s, &lo, &hi);
	for (size_t i = 0; i < n; i++) {
		float v = hi > lo ? (s->value[i] - lo) / (hi - lo) : 0;

		v = v < 0 ? 0 : v > 1 ? 1 : v;
		grey[i] = (unsigned char)(255 * (inverse ? 1 - v : v) + 0.5f);
	}
	ret = picture_write(path, s->width, s->height, grey, err);
	free(grey);
	return ret;
}

int thumbnail_make(const char *folder, const char *const *files, size_t n, struct err *err)
{
	char path[400], shown[20] = "";
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	struct small s = {0};
	uint16_t *stored = NULL;
	int ret;

	if (n == 0)
		return err_set(err, EINVAL, "the result has no objects to make a thumbnail from");
	if (snprintf(path, sizeof(path), "%s/%s", folder, files[n / 2]) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", files[n / 2]);
	ret = dicom_open(path, &file, err);
	if (ret == 0)
		ret = dicom_pixels_info(file, &info, err);
	if (ret < 0)
		goto out;
	stored = malloc((size_t)info.rows * (size_t)info.columns * sizeof(stored[0]));
	ret = stored ? dicom_read_frame(file, info.frames / 2, stored, err)
		     : err_set(err, ENOMEM, "no memory for a frame of %ld x %ld", info.columns, info.rows);
	if (ret == 0)
		ret = shrink(&info, stored, &s, err);
	if (ret < 0)
		goto out;
	dicom_get_text(dicom_root(file), TAG_PHOTOMETRIC_INTERPRETATION, shown, sizeof(shown), NULL);
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	ret = write_png(&s, !strcmp(shown, "MONOCHROME1"), path, err);
out:
	free(stored);
	free(s.value);
	dicom_close(file);
	return ret;
}
