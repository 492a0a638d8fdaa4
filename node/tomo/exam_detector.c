/* SPDX-License-Identifier: Apache-2.0 */
/* exam_detector.c - size of the bins, and which part of the detector the images show.
 *
 * Size of a bin: Detector Element Spacing (0018,7022) times Detector Binning (0018,701A) if the header has the first, else Imager
 * Pixel Spacing (0018,1164). The latter may be scaled to a plane of the breast, as by GE: 0.0940909 = 0.1 x 621 / 660. A value
 * that is neither the size of a bin nor that in a plane of the breast contradicts the others, and the case is refused. Pixel
 * Spacing (0028,0030) is never used. Of an SCO object these attributes describe the full resolution; nothing in it describes the
 * lower one, whose bins are larger by a whole number that only the number of rows of the whole detector tells.
 *
 * Part of the detector (PS3.3 C.8.11.4.1.1): Field of View Origin (0018,7030) is the row and the column of the images' first
 * corner, in elements of the detector, before the image was turned clockwise by (0018,7032) and then mirrored by (0018,7034). The
 * turn and the known directions of the image's rows and columns tell where the chest wall is in the detector.
 *
 * The anti-scatter grid: Grid (0018,1166), with one or more of FIXED, FOCUSED, RECIPROCATING, PARALLEL, CROSSED, or NONE. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/tomo/exam_internal.h"

#define PITCH_TOLERANCE 0.01 /* relative */
#define MERGED_MAX 8	     /* bins of the full resolution along a bin of the lower one */
#define WINDOW_SHIFT 1.0     /* mm; a larger distance of the image's middle from y = 0 is reported */

/* ---- size of a bin ---- */

/* Read two equal positive numbers. 1: found; 0: missing. */
static int read_pair(const struct header *h, uint32_t tag, const char *name, double *ret, struct err *err)
{
	double pair[2];

	for (unsigned i = 0; i < 2; i++) {
		int found = header_double(h, tag, i, &pair[i], err);

		if (found < 0)
			return found;
		if (!found && i == 0)
			return 0;
		if (!found)
			return err_set(err, EBADMSG, "%s %s has one value instead of two", name, tag_text(tag));
	}
	if (!(pair[0] > 0) || fabs(pair[0] - pair[1]) > PITCH_TOLERANCE * pair[0])
		return err_set(err, EBADMSG, "%s %s is %g\\%g; allowed: two equal values", name, tag_text(tag), pair[0], pair[1]);
	*ret = pair[0];
	return 1;
}

static bool pitches_agree(double a, double b)
{
	return fabs(a - b) <= PITCH_TOLERANCE * b;
}

/* Return whether Imager Pixel Spacing is the size of a bin in a plane of the compressed breast. */
static bool is_scaled(const struct exam *exam, double spacing, double pitch)
{
	const struct profile_conf *p = exam->profile;
	double sid = p->axis_height + p->source_axis, bottom = 1 - p->support / sid, top = bottom - exam->thickness / sid;

	return spacing >= pitch * top * (1 - PITCH_TOLERANCE) && spacing <= pitch * bottom * (1 + PITCH_TOLERANCE);
}

/* Decide between what the header gives: element spacing, binning, spacing of the image; 0: missing. */
static int decide_pitch(struct exam *exam, double element, double binning, double spacing, double *ret, struct err *err)
{
	double own = element > 0 ? element : exam->profile->pitch, times = spacing > 0 ? round(spacing / own) : 0;

	if (element <= 0 && spacing <= 0 && binning <= 0)
		return err_set(err, EBADMSG,
			       "Imager Pixel Spacing (0018,1164) is missing: the size of a detector bin is unknown");
	if (element <= 0 && spacing > 0) { /* binning alone proves nothing */
		*ret = spacing;
		return 0;
	}
	*ret = own * (binning > 0 ? binning : times >= 1 && pitches_agree(spacing, own * times) ? times : 1);
	if (!(spacing > 0) || pitches_agree(spacing, *ret))
		return 0;
	if (!is_scaled(exam, spacing, *ret))
		return err_set(err, EBADMSG,
			       "Imager Pixel Spacing (0018,1164) is %g mm, but Detector Element Spacing (0018,7022) %g mm and "
			       "binning (0018,701A) give %g mm, and no plane of the breast has the first",
			       spacing, own, *ret);
	exam_warn(exam,
		  "Imager Pixel Spacing (0018,1164), %g mm, is scaled to a plane of the breast: the bins of the detector have %g "
		  "mm (0018,7022).",
		  spacing, *ret);
	return 0;
}

/* Find the bins of an SCO object's lower resolution from those of the full one: the rows show the whole detector along the chest
 * wall. exam_read_window() then compares them with the origin of the images. */
static int read_lower_pitch(struct exam *exam, double *pitch, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double own = round(*pitch / p->pitch), rows = (double)exam->pixels.rows * own,
	       columns = (double)exam->pixels.columns * own;
	double times = round(p->elements_y / rows);

	if (p->elements_y == 0)
		return err_set(
			err, EBADMSG,
			"the projections are in lower resolution only, (7E01,xx11), and the size of its bins is not in the "
			"object: it needs elements_y of the profile '%s', the number of elements of the detector along the "
			"chest wall",
			p->name);
	if (!(times >= 2 && times <= MERGED_MAX) || fabs(rows * times - p->elements_y) >= own * times ||
	    (p->elements_x > 0 && columns * times > p->elements_x + own * times))
		return err_set(
			err, EBADMSG,
			"the projections are in lower resolution only, (7E01,xx11), and the size of its bins is not in the "
			"object: it is known only of images that show the whole detector of the profile '%s', %d x %d "
			"elements; but %ld columns and %ld rows of 2 to %d times %g elements do not",
			p->name, p->elements_x, p->elements_y, exam->pixels.columns, exam->pixels.rows, MERGED_MAX, own);
	exam->merged = (int)times;
	*pitch *= times;
	exam_warn(exam,
		  "The projections are in lower resolution, (7E01,xx11): the size of a bin, %g mm, is not in the object; it "
		  "follows from the assumption that their %ld rows show the whole detector, %d elements (elements_y of the "
		  "profile). An air_value of the profile must be that of this resolution.",
		  *pitch, exam->pixels.rows, p->elements_y);
	return 0;
}

int exam_read_pitch(struct exam *exam, const struct header *h, double *ret_pitch, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double element = 0, binning = 0, spacing = 0, pitch = 0, ratio;

	if (read_pair(h, TAG_IMAGER_PIXEL_SPACING, "Imager Pixel Spacing", &spacing, err) < 0 ||
	    read_pair(h, TAG_DETECTOR_ELEMENT_SPACING, "Detector Element Spacing", &element, err) < 0 ||
	    read_pair(h, TAG_DETECTOR_BINNING, "Detector Binning", &binning, err) < 0 ||
	    decide_pitch(exam, element, binning, spacing, &pitch, err) < 0)
		return -EBADMSG;
	ratio = round(pitch / p->pitch);
	if (!(ratio >= 1 && ratio <= PROFILE_BINNING_MAX) || fabs(pitch / (ratio * p->pitch) - 1) > PITCH_TOLERANCE)
		return err_set(
			err, EBADMSG, "%s is %g mm, but the profile '%s' has detector bins of %g mm (or 2 to %d times that)",
			element > 0 ? "the size of a bin, (0018,7022) times (0018,701A)," : "Imager Pixel Spacing (0018,1164)",
			pitch, p->name, p->pitch, PROFILE_BINNING_MAX);
	exam->merged = 1;
	if (exam->sco_lower && read_lower_pitch(exam, &pitch, err) < 0)
		return -EBADMSG;
	*ret_pitch = pitch;
	return 0;
}

/* ---- part of the detector ---- */

/* A direction in the detector: 0 along its rows' numbers, 1 along its columns' numbers; upwards or downwards. */
struct along {
	int axis, sign;
};

/* Read rotation and flip: how the image's columns and rows run in the detector. */
static int read_turn(const struct header *h, struct along *ret_columns, struct along *ret_rows, struct err *err)
{
	/* clockwise by 0, 90, 180, 270: image (i, j) is detector (i, j), (n - j, i), (n - i, n - j), (j, n - i) */
	static const struct along columns[] = {{1, 1}, {0, -1}, {1, -1}, {0, 1}}, rows[] = {{0, 1}, {1, 1}, {0, -1}, {1, -1}};
	char flip[20] = "";
	double turn = 0;
	int found = header_double(h, TAG_FIELD_OF_VIEW_ROTATION, 0, &turn, err);

	if (found < 0 || header_text(h, TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, flip, sizeof(flip), err) < 0)
		return -EBADMSG;
	if (!(turn == 0 || turn == 90 || turn == 180 || turn == 270))
		return err_set(err, EBADMSG, "Field of View Rotation (0018,7032) is %g; allowed: 0, 90, 180, 270", turn);
	if (flip[0] && strcmp(flip, "NO") != 0 && strcmp(flip, "YES") != 0)
		return err_set(err, EBADMSG, "Field of View Horizontal Flip (0018,7034) is '%s'; allowed: YES, NO", flip);
	*ret_columns = columns[(int)turn / 90];
	*ret_rows = rows[(int)turn / 90];
	if (!strcmp(flip, "YES"))
		ret_columns->sign = -ret_columns->sign;
	return 0;
}

static int read_origin(const struct header *h, double ret_origin[2], struct err *err)
{
	for (unsigned i = 0; i < 2; i++) {
		int found = header_double(h, TAG_FIELD_OF_VIEW_ORIGIN, i, &ret_origin[i], err);

		if (found < 0 || (!found && i == 0))
			return found;
		if (!found || !(ret_origin[i] >= 0))
			return err_set(err, EBADMSG, "Field of View Origin (0018,7030) is not two numbers of elements");
	}
	return 1;
}

/* Return how many elements of the detector are before the window along an axis of the scan: `along` is the direction of the axis
 * in the detector, n the size of the detector, window that of the image. */
static double elements_before(const double origin[2], struct along along, double n, double window)
{
	return along.sign > 0 ? origin[along.axis] : n - window - origin[along.axis];
}

/* What the profile says about an image whose header gives no place. */
static int without_origin(const struct exam *exam, double rows, double binning, struct err *err)
{
	const struct profile_conf *p = exam->profile;

	if (p->elements_y == 0 || rows > p->elements_y - binning)
		return 0;
	return err_set(
		err, EBADMSG,
		"Field of View Origin (0018,7030) is missing, and the images have %g of the %d elements of the detector along "
		"the chest wall (elements_y of the profile '%s'): their place in the detector is unknown",
		rows, p->elements_y, p->name);
}

int exam_read_window(struct exam *exam, const struct header *h, double pitch, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double binning = round(pitch / p->pitch), columns = (double)exam->pixels.columns * binning,
	       rows = (double)exam->pixels.rows * binning, element = p->pitch, origin[2], before[2] = {0, 0};
	struct along x = {0}, y = {0};
	int found = read_origin(h, origin, err);

	exam->window[0] = exam->window[1] = 0;
	if (found <= 0)
		return found < 0 ? found : without_origin(exam, rows, binning, err);
	if (read_pair(h, TAG_DETECTOR_ELEMENT_SPACING, "Detector Element Spacing", &element, err) < 0)
		return -EBADMSG;
	for (int i = 0; i < 2; i++) /* from elements of the header to those of the profile */
		origin[i] *= element / p->pitch;
	if (read_turn(h, &x, &y, err) < 0)
		return -EBADMSG;
	x.sign *= exam->columns_toward_chest ? -1 : 1;
	y.sign *= exam->rows_toward_minus_y ? -1 : 1;
	if ((x.sign < 0 && p->elements_x == 0) || p->elements_y == 0) {
		if (origin[0] == 0 && origin[1] == 0) /* the whole detector, as far as the header says */
			return 0;
		return err_set(
			err, EBADMSG,
			"Field of View Origin (0018,7030) is %g\\%g: the images show a part of the detector, whose size is "
			"unknown; add elements_x and elements_y to the profile '%s'",
			origin[0], origin[1], p->name);
	}
	before[0] = elements_before(origin, x, p->elements_x, columns);
	before[1] = elements_before(origin, y, p->elements_y, rows);
	if (before[0] < -binning || before[1] < -binning || before[1] + rows > p->elements_y + binning ||
	    (p->elements_x > 0 && before[0] + columns > p->elements_x + binning))
		return err_set(
			err, EBADMSG,
			"the images, %g x %g elements at Field of View Origin (0018,7030) %g\\%g, are not inside the detector "
			"of the profile '%s', %d x %d elements",
			columns, rows, origin[0], origin[1], p->name, p->elements_x, p->elements_y);
	exam->window[0] = before[0] * p->pitch;
	exam->window[1] = (before[1] + rows / 2 - p->elements_y / 2.0) * p->pitch;
	if (fabs(exam->window[1]) > WINDOW_SHIFT || exam->window[0] > WINDOW_SHIFT)
		exam_warn(exam,
			  "The images show a part of the detector, %g mm from its chest-wall edge and %g mm from its middle, as "
			  "Field of View Origin (0018,7030) says.",
			  round(exam->window[0] * 10) / 10, round(exam->window[1] * 10) / 10);
	return 0;
}

void exam_grid(const struct exam *exam, char *ret_text, size_t size)
{
	struct header h = exam_header(exam, 0);

	if (header_text(&h, TAG_GRID, ret_text, size, NULL) != 1 || !strcmp(ret_text, "NONE"))
		ret_text[0] = '\0';
}
