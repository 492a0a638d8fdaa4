/* SPDX-License-Identifier: Apache-2.0 */
/* thumbnail.c - reduce a slice by averaging, and scale its grey levels to the window of a tomosynthesis or, of the other results,
 * to the range of most of their values; of PET those above the mean count, because most of the field of view is air. */
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

struct small {
	int width, height;
	float *value;
	double window[2]; /* that of the object; equal: it has none, or one for each slice */
	bool pet;
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

/* Compute the values below which the fractions DARKEST and BRIGHTEST of all values are; of PET 0, and the latter of the values
 * above the mean. */
static void find_window(const struct small *s, double *ret_lo, double *ret_hi)
{
	size_t all = (size_t)s->width * (size_t)s->height, n = 0, count[BINS] = {0}, below = 0;
	float lo = s->value[0], hi = s->value[0];
	double mean = 0;
	bool found = s->pet;

	for (size_t i = 0; i < all; i++) {
		lo = s->value[i] < lo ? s->value[i] : lo;
		hi = s->value[i] > hi ? s->value[i] : hi;
		mean += s->value[i] / (double)all;
	}
	if (s->pet)
		lo = (float)mean;
	*ret_lo = lo;
	*ret_hi = hi;
	if (!(hi > lo))
		return;
	for (size_t i = 0; i < all; i++)
		if (s->value[i] >= lo) {
			count[(size_t)((s->value[i] - lo) / (hi - lo) * (BINS - 1))]++;
			n++;
		}
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
	if (s->pet)
		*ret_lo = 0;
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

/* Read the middle frame of a file, reduced. *ret_inverse: its small values are shown bright. */
static int read_small(const char *path, int side, struct small *ret, bool *ret_inverse, struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	uint16_t *stored = NULL;
	char shown[20] = "", sop_class[DICOM_UID_SIZE] = "";
	double slope = 1, window[2];
	int rc = dicom_open(path, &file, err);

	if (rc == 0)
		rc = dicom_pixels_info(file, &info, err);
	if (rc < 0)
		goto out;
	stored = malloc((size_t)info.rows * (size_t)info.columns * sizeof(stored[0]));
	rc = stored ? dicom_read_frame(file, info.frames / 2, stored, err)
		    : err_set(err, ENOMEM, "no memory for a frame of %ld x %ld", info.columns, info.rows);
	if (rc < 0)
		goto out;
	if (dicom_get_double(dicom_root(file), TAG_RESCALE_SLOPE, 0, &slope, NULL) != 1 || !(slope > 0))
		slope = 1;
	dicom_get_text(dicom_root(file), TAG_PHOTOMETRIC_INTERPRETATION, shown, sizeof(shown), NULL);
	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	rc = shrink_picture(&info, stored, side, slope, ret, err);
	ret->pet = !strcmp(sop_class, CLASS_PET);
	*ret_inverse = ret->pet || !strcmp(shown, "MONOCHROME1");
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
		ret = read_small(path, THUMBNAIL_SIDE, &s, &inverse, err);
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
