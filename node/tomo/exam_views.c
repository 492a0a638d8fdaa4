/* SPDX-License-Identifier: Apache-2.0 */
/* exam_views.c - list the projections of a case with their angles, sorted by angle.
 *
 * Where the angle is stored:
 * - single-frame series: in the tag given by the geometry profile, with the profile's sign and offset. It must vary.
 * - Breast Projection: X-Ray Source Isocenter Primary Angle (0018,9543) relative to that of the breast support (0018,9545). PS3.3
 * C.8.31.6.1: the isocenter's Y axis runs from the gantry's front (the patient) to its rear, Z up, X to the gantry's right, and
 * angles are positive from Z toward X. The scan's x is that Y, so its y is minus that X: angle = support - source. If that group
 * is missing: Positioner Primary Angle (0018,1510) of the frame, with the profile's sign and offset.
 *
 * - Hologic SCO: theta of the projection matrices' text (node/tomo/exam_pose.c), with the profile's sign and offset.
 *
 * Instance numbers may start anywhere and have gaps: they are used only to order equal angles, which are then refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/tomo/exam_internal.h"

#define ANGLE_MAX 75.0 /* largest angle, degrees; no tomosynthesis uses more, and the source must stay above the detector */

struct header exam_header(const struct exam *exam, int view)
{
	const struct exam_view *v = &exam->views[view];
	bool multi = exam->frames_in_file;

	return (struct header){.root = dicom_root(exam->files[v->file]), .frame = multi ? v->frame : -1};
}

/* Convert an angle of the header, which only the profile explains. */
static void apply_profile(const struct profile_conf *p, double stored, struct exam_view *v)
{
	v->by_profile = true;
	v->stated = p->angle_sign * stored;
	v->angle = v->stated + p->angle_offset;
	if (p->angle_at_detector && fabs(v->angle) <= ANGLE_MAX)
		v->angle = scan_angle_turned(v->angle, p->axis_height, p->source_axis);
}

static int read_angle_mg(const struct exam *exam, const struct header *h, struct exam_view *v, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double stored;
	int found = header_double(h, p->angle_tag, 0, &stored, err);

	if (found < 0)
		return found;
	if (!found)
		return err_set(err, EBADMSG, "the projection angle %s, which the profile '%s' requires, is missing",
			       tag_text(p->angle_tag), p->name);
	apply_profile(p, stored, v);
	return 0;
}

static int read_angle_bp(const struct exam *exam, const struct header *h, struct exam_view *v, struct err *err)
{
	double source, support, stored;
	int found = header_double(h, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, 0, &source, err);

	if (found < 0)
		return found;
	if (found) {
		found = header_double(h, TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE, 0, &support, err);
		if (found < 0)
			return found;
		if (!found)
			return err_set(err, EBADMSG,
				       "the source's angle (0018,9543) is present but the breast support's (0018,9545) is "
				       "missing: the reference of the source's angle is unknown");
		v->angle = v->stated = support - source;
		return 0;
	}
	found = header_double(h, TAG_POSITIONER_PRIMARY_ANGLE, 0, &stored, err);
	if (found < 0)
		return found;
	if (!found)
		return err_set(err, EBADMSG,
			       "the frame has no source angle: neither (0018,9462) > (0018,9543) nor (0018,9405) > (0018,1510)");
	apply_profile(exam->profile, stored, v);
	return 0;
}

int exam_read_angle(const struct exam *exam, struct dicom_file *file, long frame, struct exam_view *ret_view, struct err *err)
{
	struct header h = {.root = dicom_root(file), .frame = frame};

	return frame >= 0 ? read_angle_bp(exam, &h, ret_view, err) : read_angle_mg(exam, &h, ret_view, err);
}

/* Check that the angles of all frames are from one attribute: the two have different signs and origins. */
static int check_source(const struct exam *exam, struct err *err)
{
	struct header first = exam_header(exam, 0), h;
	bool isocenter = header_find(&first, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE) != NULL;

	for (int i = 1; exam->source == EXAM_BREAST_PROJECTION && i < exam->n_views; i++) {
		h = exam_header(exam, i);
		if ((header_find(&h, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE) != NULL) != isocenter)
			return err_set(err, EBADMSG,
				       "%s: the source's angle (0018,9543) is present in frame %ld and missing in frame %ld",
				       file_name(exam->paths[exam->views[i].file]), isocenter ? first.frame + 1 : h.frame + 1,
				       isocenter ? h.frame + 1 : first.frame + 1);
	}
	return 0;
}

static int read_angle(const struct exam *exam, const struct header *h, struct exam_view *v, struct err *err)
{
	if (exam->source == EXAM_BREAST_PROJECTION)
		return read_angle_bp(exam, h, v, err);
	if (exam->source == EXAM_MG_SERIES)
		return read_angle_mg(exam, h, v, err);
	apply_profile(exam->profile, exam->poses->theta[v->frame], v);
	return 0;
}

static int add_view(struct exam *exam, int file, long frame, struct err *err)
{
	struct exam_view *v = &exam->views[exam->n_views];
	struct header h = {.root = dicom_root(exam->files[file]), .frame = exam->frames_in_file ? frame : -1};
	int rc;

	*v = (struct exam_view){.file = file, .frame = frame, .exposure = 1};
	rc = dicom_get_text(h.root, TAG_SOP_INSTANCE_UID, v->sop_instance, sizeof(v->sop_instance), err);
	if (rc < 0)
		return rc;
	rc = read_angle(exam, &h, v, err);
	if (rc < 0)
		return rc;
	if (!(fabs(v->angle) <= ANGLE_MAX))
		return err_set(err, EBADMSG, "projection angle %g degrees is out of range (-%g to %g)", v->angle, ANGLE_MAX,
			       ANGLE_MAX);
	exam->n_views++;
	return 0;
}

static int by_angle(const void *a, const void *b)
{
	const struct exam_view *p = a, *q = b;

	if (p->angle != q->angle)
		return p->angle < q->angle ? -1 : 1;
	if (p->file != q->file)
		return p->file < q->file ? -1 : 1;
	return p->frame < q->frame ? -1 : p->frame > q->frame;
}

const char *exam_view_name(const struct exam *exam, const struct exam_view *v, char *buf, size_t size)
{
	if (exam->frames_in_file)
		snprintf(buf, size, "frame %ld", v->frame + 1);
	else
		snprintf(buf, size, "%s", file_name(exam->paths[v->file]));
	return buf;
}

/* Accept the number of projections that exams of the system have, whatever the header announces: some systems count an image that
 * is no projection. */
static bool accept_usual(struct exam *exam, size_t n, uint32_t tag, long expected)
{
	if (exam->profile->projections <= 0 || n != (size_t)exam->profile->projections)
		return false;
	exam->announced = (long)n;
	exam_warn(exam,
		  "%s announces %ld projections; the %zu that are present are a complete exam of this system (profile '%s').",
		  tag_text(tag), expected, n, exam->profile->name);
	return true;
}

/* Refuse a number of projections that is not that of the header. */
static int refuse_count(const struct exam *exam, size_t n, uint32_t tag, long expected, struct err *err)
{
	char exposures[500];

	if (n < (size_t)expected)
		return err_set(err, EBADMSG, "%zu projection%s present of %c %s, but %s is %ld: give all of this side and view",
			       n, n == 1 ? " is" : "s are", exam->laterality, exam->view, tag_text(tag), expected);
	exam_name_exposures(exam, exposures, sizeof(exposures));
	return err_set(err, EBADMSG, "%zu projections are present, but %s is %ld: give those of one exposure%s%s", n,
		       tag_text(tag), expected, exposures[0] ? "; " : "", exposures);
}

/* Check the number of projections against (0020,1002) Images in Acquisition or (0018,1495). */
static int check_count(struct exam *exam, size_t n, bool as_is, struct err *err)
{
	static const uint32_t tags[] = {TAG_IMAGES_IN_ACQUISITION, TAG_NUMBER_OF_TOMOSYNTHESIS_SOURCE_IMAGES};
	struct header h = {.root = dicom_root(exam->files[0]), .frame = -1};
	long expected;

	if (n < 2)
		return err_set(err, EBADMSG, "1 projection: a tomosynthesis needs at least 2");
	if (n > EXAM_VIEWS_MAX)
		return err_set(err, EBADMSG, "%zu projections: at most %d are allowed", n, EXAM_VIEWS_MAX);
	if (exam->source != EXAM_MG_SERIES)
		return 0;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		int found = header_long(&h, tags[i], 0, &expected, err);

		if (found < 0)
			return found;
		if (!found || expected < 2)
			continue;
		exam->announced = expected;
		if ((size_t)expected != n && !as_is && accept_usual(exam, n, tags[i], expected))
			return 0;
		if ((size_t)expected != n && !as_is)
			return refuse_count(exam, n, tags[i], expected, err);
		if ((size_t)expected == n && exam->profile->projections > 0 && expected != exam->profile->projections)
			exam_warn(exam, "%ld projections, as %s announces; a complete exam of this system has %d (profile '%s').",
				  expected, tag_text(tags[i]), exam->profile->projections, exam->profile->name);
		break;
	}
	return 0;
}

int exam_list_views(struct exam *exam, bool as_is, struct err *err)
{
	bool multi = exam->frames_in_file;
	size_t n = multi ? (size_t)exam->pixels.frames : exam->n_files;
	int rc;

	rc = check_count(exam, n, as_is, err);
	if (rc == 0)
		rc = exam_check_exposures(exam, err);
	if (rc < 0)
		return rc;
	exam->views = calloc(n, sizeof(*exam->views));
	if (!exam->views)
		return err_set(err, ENOMEM, "no memory for %zu projections", n);
	for (size_t i = 0; i < n; i++) {
		rc = multi ? add_view(exam, 0, (long)i, err) : add_view(exam, (int)i, 0, err);
		if (rc < 0 && multi)
			return err_prefix(err, "%s, frame %zu", file_name(exam->paths[0]), i + 1);
		if (rc < 0)
			return err_prefix(err, "%s", file_name(exam->paths[i]));
	}
	rc = check_source(exam, err);
	if (rc < 0)
		return rc;
	qsort(exam->views, n, sizeof(*exam->views), by_angle);
	return exam_check_angles(exam, err);
}
