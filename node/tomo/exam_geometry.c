/* SPDX-License-Identifier: Apache-2.0 */
/* exam_geometry.c - check distances and sizes of the header against the geometry profile, and make the scan from them. The
 * profile describes the system; an object of another system, or a wrong profile, is refused instead of being reconstructed with a
 * wrong geometry. The pixel pitch is that of the detector (0018,1164); Pixel Spacing (0028,0030) may be scaled to the breast and
 * is never used. */
#include <errno.h>
#include <stdlib.h>

#include "node/tomo/exam_internal.h"

#define PITCH_TOLERANCE 0.01 /* relative */
#define BINNING_MAX 8	     /* binning by the detector: its bins are integer multiples of the profile's pitch */
#define DETECTOR_MIN 5.0     /* size of the detector along x and y, mm */
#define DETECTOR_MAX 600.0
#define THICKNESS_MIN 5.0 /* thickness of a compressed breast, mm */
#define THICKNESS_MAX 200.0

static int read_pitch(const struct exam *exam, const struct header *h, double *ret_pitch, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double pitch[2], ratio;

	for (unsigned i = 0; i < 2; i++) {
		int found = header_double(h, TAG_IMAGER_PIXEL_SPACING, i, &pitch[i], err);

		if (found < 0)
			return found;
		if (!found)
			return err_set(err, EBADMSG, "Imager Pixel Spacing (0018,1164) %s: the size of a detector bin is unknown",
				       i ? "has one value instead of two" : "is missing");
	}
	if (!(pitch[0] > 0) || fabs(pitch[0] - pitch[1]) > PITCH_TOLERANCE * pitch[0])
		return err_set(err, EBADMSG, "Imager Pixel Spacing (0018,1164) is %g\\%g mm; allowed: two equal values", pitch[0],
			       pitch[1]);
	ratio = round(pitch[0] / p->pitch);
	if (!(ratio >= 1 && ratio <= BINNING_MAX) || fabs(pitch[0] / (ratio * p->pitch) - 1) > PITCH_TOLERANCE)
		return err_set(err, EBADMSG,
			       "Imager Pixel Spacing (0018,1164) is %g mm, but the profile '%s' has detector bins of %g mm (or 2 "
			       "to %d times that)",
			       pitch[0], p->name, p->pitch, BINNING_MAX);
	*ret_pitch = pitch[0];
	return 0;
}

static int check_distances(const struct exam *exam, const struct header *h, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double sid, sod, want = p->axis_height + p->source_axis;
	int found_sid, found_sod;

	found_sid = header_double(h, TAG_DISTANCE_SOURCE_TO_DETECTOR, 0, &sid, err);
	found_sod = header_double(h, TAG_DISTANCE_SOURCE_TO_PATIENT, 0, &sod, err);
	if (found_sid < 0 || found_sod < 0)
		return -EBADMSG;
	if (found_sid && !(fabs(sid - want) <= p->sid_tolerance))
		return err_set(
			err, EBADMSG,
			"source to detector distance (0018,1110) is %g mm, but the profile '%s' has %g mm (tolerance %g mm)", sid,
			p->name, want, p->sid_tolerance);
	if (found_sod && !(sod > 0 && sod < (found_sid ? sid : want + p->sid_tolerance)))
		return err_set(err, EBADMSG, "source to breast support distance (0018,1111) is %g mm, with the detector at %g mm",
			       sod, found_sid ? sid : want);
	return 0;
}

static int read_thickness(struct exam *exam, const struct header *h, struct err *err)
{
	int found = header_double(h, TAG_BODY_PART_THICKNESS, 0, &exam->thickness, err);

	if (found < 0)
		return found;
	if (!found)
		return err_set(err, EBADMSG, "Body Part Thickness (0018,11A0) is missing: the height of the volume is unknown");
	if (!(exam->thickness >= THICKNESS_MIN && exam->thickness <= THICKNESS_MAX))
		return err_set(err, EBADMSG, "Body Part Thickness (0018,11A0) is %g mm: a compressed breast has %g to %g mm",
			       exam->thickness, THICKNESS_MIN, THICKNESS_MAX);
	return 0;
}

static int check_size(const struct exam *exam, double pitch, struct err *err)
{
	double x = (double)exam->pixels.columns * pitch, y = (double)exam->pixels.rows * pitch;

	if (!(x >= DETECTOR_MIN && x <= DETECTOR_MAX && y >= DETECTOR_MIN && y <= DETECTOR_MAX))
		return err_set(err, EBADMSG, "%ld columns and %ld rows of %g mm: a detector of %g x %g mm does not exist",
			       exam->pixels.columns, exam->pixels.rows, pitch, x, y);
	return 0;
}

int exam_make_scan(struct exam *exam, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	struct header h = exam_header(exam, 0);
	double *angle = NULL, pitch = 0;
	struct dbt_geometry g;
	int rc;

	rc = read_pitch(exam, &h, &pitch, err);
	if (rc < 0)
		return rc;
	rc = check_size(exam, pitch, err);
	if (rc < 0)
		return rc;
	rc = check_distances(exam, &h, err);
	if (rc < 0)
		return rc;
	rc = read_thickness(exam, &h, err);
	if (rc < 0)
		return rc;
	exam->support = p->support;
	angle = malloc((size_t)exam->n_views * sizeof(*angle));
	if (!angle)
		return err_set(err, ENOMEM, "no memory for %d angles", exam->n_views);
	for (int i = 0; i < exam->n_views; i++)
		angle[i] = exam->views[i].angle;
	g = (struct dbt_geometry){
		.n_u = (int)exam->pixels.columns,
		.n_v = (int)exam->pixels.rows,
		.pitch = pitch,
		.axis_height = p->axis_height,
		.source_axis = p->source_axis,
		.source_x = p->source_x,
		.source_y = p->source_y,
		.detector_ratio = p->detector_ratio,
		.detector_axis_y = p->detector_axis_y,
		.detector_axis_height = p->detector_axis_height,
		.n_views = exam->n_views,
		.angle = angle,
	};
	rc = scan_create_dbt(&g, &exam->scan, err);
	free(angle);
	if (rc == -EINVAL) { /* invalid numbers for a scan come from the header */
		if (err)
			err->code = EBADMSG;
		rc = -EBADMSG;
	}
	return rc;
}
