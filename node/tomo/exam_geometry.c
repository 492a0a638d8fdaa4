/* SPDX-License-Identifier: Apache-2.0 */
/* exam_geometry.c - check distances and sizes of the header against the geometry profile, and make the scan from them. The
 * profile describes the system; an object of another system, or a wrong profile, is refused instead of being reconstructed with a
 * wrong geometry. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/sentence.h"
#include "node/tomo/exam_internal.h"

#define SOD_TOLERANCE 6.0 /* of (0018,1111), mm; as published heights of supports differ */
#define DETECTOR_MIN 5.0  /* size of the detector along x and y, mm */
#define DETECTOR_MAX 600.0
#define THICKNESS_MIN 5.0 /* thickness of a compressed breast, mm */
#define THICKNESS_MAX 200.0
#define THICKNESS_USUAL 12.0 /* mm: no breast is compressed to less; its thickness in cm is */

void exam_warn(struct exam *exam, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	sentence_add_list(exam->warnings, sizeof(exam->warnings), fmt, args);
	va_end(args);
}

void exam_warnings(const struct exam *exam, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (exam->relative[0])
		snprintf(ret_text, size, "The attenuation is relative: %s.", exam->relative);
	if (exam->announced > exam->n_views)
		sentence_add(ret_text, size, "Only %d of %ld announced projections were received and used.", exam->n_views,
			     exam->announced);
	if (exam->warnings[0])
		sentence_add(ret_text, size, "%s", exam->warnings);
}

void exam_geometry_source(struct exam *exam)
{
	const struct profile_conf *p = exam->profile;
	char rms[40] = "";

	if (p->pose_in_header) {
		snprintf(exam->geometry, sizeof(exam->geometry), "Geometry from the projection matrices of the images.");
		return;
	}
	if (p->calibration_rms > 0)
		snprintf(rms, sizeof(rms), " with residuals of %g bins", p->calibration_rms);
	if (p->geometry_source == GEOMETRY_CALIBRATED)
		snprintf(exam->geometry, sizeof(exam->geometry), "Geometry calibrated%s%s%s.",
			 p->calibration_date[0] ? " on " : "", p->calibration_date, rms);
	if (p->geometry_source != GEOMETRY_LITERATURE)
		return;
	exam_warn(exam,
		  "Geometry from literature: the profile '%s' is not calibrated for this machine, positions may be wrong by "
		  "millimetres (see tomonode profile fit).",
		  p->name);
}

/* Meanings of (0018,1111) in headers: the distance of PS3.3 (VICTRE), that of the compressed breast (Hologic), or again that of
 * the detector (GE). The height of the support is never derived from it. */
static const char *meaning_of(const struct exam *exam, double sod, double sid)
{
	const struct profile_conf *p = exam->profile;
	const struct {
		double distance;
		const char *meaning;
	} meanings[] = {
		{sid - p->support, "the top of the breast support"},
		{sid - p->support - exam->thickness, "the top of the breast"},
		{sid, "the detector"},
	};
	double tolerance = fmax(p->sid_tolerance, SOD_TOLERANCE);
	size_t best = 0;

	for (size_t i = 1; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (fabs(sod - meanings[i].distance) < fabs(sod - meanings[best].distance))
			best = i;
	return fabs(sod - meanings[best].distance) <= tolerance ? meanings[best].meaning : NULL;
}

static int check_distances(struct exam *exam, const struct header *h, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double sid, sod, want = p->axis_height + p->source_axis;
	int found_sid, found_sod;

	found_sid = header_double(h, TAG_DISTANCE_SOURCE_TO_DETECTOR, 0, &sid, err);
	found_sod = header_double(h, TAG_DISTANCE_SOURCE_TO_PATIENT, 0, &sod, err);
	if (found_sid < 0 || found_sod < 0)
		return -EBADMSG;
	if (found_sid && !(fabs(sid - want) <= p->sid_tolerance))
		return err_set(err, EBADMSG,
			       "source to detector distance (0018,1110) is %g mm, but the profile '%s' has %g mm (tolerance %g "
			       "mm): measure the system with tomonode profile fit, or use another profile",
			       sid, p->name, want, p->sid_tolerance);
	if (!found_sid)
		sid = want;
	exam->sod_meaning = found_sod ? meaning_of(exam, sod, sid) : NULL;
	if (found_sod && !exam->sod_meaning)
		return err_set(
			err, EBADMSG,
			"source to breast support distance (0018,1111) is %g mm: neither the distance of the support, %g mm, "
			"nor of the top of the breast, %g mm, nor of the detector, %g mm (profile '%s')",
			sod, sid - p->support, sid - p->support - exam->thickness, sid, p->name);
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
	if (exam->thickness < THICKNESS_USUAL)
		exam_warn(exam, "Body Part Thickness (0018,11A0) is %g mm, less than any compressed breast has: is it in cm?",
			  exam->thickness);
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

/* Create the scan from the angles of the views, or from the projection matrices of the header. */
static int create_scan(struct exam *exam, double pitch, const double *angle, const double (*matrix)[12], struct err *err)
{
	const struct profile_conf *p = exam->profile;
	const struct dbt_geometry g = {
		.n_u = (int)exam->pixels.columns,
		.n_v = (int)exam->pixels.rows,
		.pitch = pitch,
		.axis_height = p->axis_height,
		.source_axis = p->source_axis,
		.source_x = p->source_x,
		.source_y = p->source_y,
		.window_x = exam->window[0],
		.window_y = exam->window[1],
		.detector_ratio = p->detector_ratio,
		.detector_axis_y = p->detector_axis_y,
		.detector_axis_height = p->detector_axis_height,
		.n_views = exam->n_views,
		.angle = angle,
		.matrix = matrix,
		.level_bins = p->pose_level,
	};
	int rc = scan_create_dbt(&g, &exam->scan, err);

	return err_remap(rc, EINVAL, EBADMSG, err); /* invalid numbers for a scan come from the header */
}

/* Set the source at the angle 0. of_header: that of the matrices; NULL: the profile has it. */
static void set_rest(struct exam *exam, const double of_header[3])
{
	const struct profile_conf *p = exam->profile;
	const double of_profile[3] = {p->source_x, p->source_y, p->axis_height + p->source_axis};

	memcpy(exam->rest, of_header ? of_header : of_profile, sizeof(exam->rest));
}

int exam_make_scan(struct exam *exam, struct err *err)
{
	struct header h = exam_header(exam, 0);
	double *angle = NULL, (*matrix)[12] = NULL, pitch = 0, rest[3];
	int rc;

	rc = read_thickness(exam, &h, err);
	if (rc < 0)
		return rc;
	rc = exam_read_pitch(exam, &h, &pitch, err);
	if (rc < 0)
		return rc;
	rc = check_size(exam, pitch, err);
	if (rc < 0)
		return rc;
	rc = exam_read_window(exam, &h, pitch, err);
	if (rc < 0)
		return rc;
	rc = check_distances(exam, &h, err);
	if (rc < 0)
		return rc;
	rc = exam->poses ? exam_pose_matrices(exam, pitch, &matrix, rest, err) : 0; /* also compares them with the profile */
	if (rc < 0)
		return rc;
	set_rest(exam, matrix && exam->profile->pose_in_header ? rest : NULL);
	exam->support = exam->profile->support;
	angle = malloc((size_t)exam->n_views * sizeof(*angle));
	for (int i = 0; angle && i < exam->n_views; i++)
		angle[i] = exam->views[i].angle;
	rc = angle ? create_scan(exam, pitch, angle, exam->profile->pose_in_header ? matrix : NULL, err)
		   : err_set(err, ENOMEM, "no memory for %d angles", exam->n_views);
	free(angle);
	free(matrix);
	return rc;
}
