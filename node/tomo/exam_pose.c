/* SPDX-License-Identifier: Apache-2.0 */
/* exam_pose.c - source and detector of each view from the projection matrices that Hologic writes into the header
 * (node/tomo/pose_text.h). The text numbers its views from 0: view k is frame k of the object.
 *
 * Their bins are those of the whole detector, u toward the chest wall; keys of the profile place them (docs/geometry.md). What
 * the header and the profile say as well is compared: the number of views, the distance of the source, and its angle in each
 * view. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/core/bulk.h"
#include "node/tomo/exam_internal.h"

#define CREATOR "HOLOGIC, Inc."
#define GROUP 0x0019
#define ELEMENT 0x60
#define ANGLE_TOLERANCE 0.5 /* degrees */

/* Read the value into `text`, which has POSE_TEXT_MAX + 1 bytes. Its VR is LT, or UN. */
static int read_text(const struct dicom_file *file, uint32_t tag, char *text, size_t *ret_size, struct err *err)
{
	uint64_t size;
	int rc;

	if (dicom_bulk_size(file, tag, &size)) {
		if (size > POSE_TEXT_MAX)
			return err_set(err, EBADMSG, "the projection matrices %s have %llu bytes; allowed: at most %d",
				       tag_text(tag), (unsigned long long)size, POSE_TEXT_MAX);
		*ret_size = (size_t)size;
		return dicom_bulk_read(file, tag, 0, text, (size_t)size, err);
	}
	rc = dicom_get_text(dicom_root((struct dicom_file *)file), tag, text, POSE_TEXT_MAX + 1, err);
	*ret_size = rc > 0 ? strlen(text) : 0;
	return rc < 0 ? rc : 0;
}

int exam_read_poses(struct exam *exam, struct err *err)
{
	const struct dicom_file *file = exam->files[0];
	unsigned block = private_block(dicom_root(exam->files[0]), GROUP, CREATOR);
	uint32_t tag = DICOM_TAG(GROUP, block << 8 | ELEMENT);
	char *text;
	size_t size = 0;
	int rc;

	if (!exam->frames_in_file)
		return err_set(
			err, ENOTSUP,
			"pose of the profile '%s' is header: projection matrices of a series of single-frame images are not "
			"supported, only those of one multi-frame object",
			exam->profile->name);
	if (!block || !dicom_has(dicom_root(exam->files[0]), tag))
		return err_set(err, EBADMSG, "%s: no projection matrices in (0019,xx60) of the private creator '%s'",
			       file_name(exam->paths[0]), CREATOR);
	text = malloc(POSE_TEXT_MAX + 1);
	exam->poses = malloc(sizeof(*exam->poses));
	if (!text || !exam->poses) {
		free(text);
		return err_set(err, ENOMEM, "no memory for projection matrices");
	}
	rc = read_text(file, tag, text, &size, err);
	if (rc == 0)
		rc = pose_text_read(text, size, exam->poses, err);
	free(text);
	if (rc < 0)
		return err_prefix(err, "%s: %s", file_name(exam->paths[0]), tag_text(tag));
	if (exam->poses->n_views != exam->pixels.frames)
		return err_set(err, EBADMSG, "%s: %d projection matrices %s for %ld frames", file_name(exam->paths[0]),
			       exam->poses->n_views, tag_text(tag), exam->pixels.frames);
	return 0;
}

/* Convert a matrix to bins of n x n of its own: u becomes (u + 1/2) / n - 1/2, and so does v. */
static void merge_bins(double matrix[12], int n)
{
	for (int i = 0; n > 1 && i < 8; i++)
		matrix[i] = (matrix[i] + 0.5 * matrix[8 + i % 4]) / n - 0.5 * matrix[8 + i % 4];
}

/* Convert the matrix at an angle to the bins and axes of the scan, and compute the position of the source. */
static int convert_matrix(const struct exam *exam, double theta, double pitch, double ret_matrix[12], double ret_source[3],
			  struct err *err)
{
	const struct profile_conf *p = exam->profile;
	const struct scan_matrix_bins bins = {.edge_u = p->pose_edge / exam->merged,
					      .middle_v = p->pose_middle / exam->merged,
					      .v_sign = p->pose_rows,
					      .window_u = exam->window[0] / pitch,
					      .window_v = exam->window[1] / pitch};
	double rest[12], own[12];
	struct scan_view view;
	int rc;

	pose_text_matrix(exam->poses, 0, rest);
	pose_text_matrix(exam->poses, theta, own);
	merge_bins(rest, exam->merged);
	merge_bins(own, exam->merged);
	rc = scan_matrix_convert(rest, own, &bins, (int)exam->pixels.rows, pitch, ret_matrix, err);
	if (rc == 0)
		rc = scan_view_from_matrix(ret_matrix, (int)exam->pixels.columns, (int)exam->pixels.rows, pitch, p->pose_level,
					   &view, err);
	if (rc == 0)
		memcpy(ret_source, view.src, sizeof(view.src));
	return rc;
}

static int check_distance(const struct exam *exam, double pitch, double ret_source[3], struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double matrix[12], want = p->axis_height + p->source_axis;
	int rc = convert_matrix(exam, 0, pitch, matrix, ret_source, err);

	if (rc < 0 || fabs(ret_source[2] - want) <= p->sid_tolerance)
		return rc;
	return err_set(
		err, EBADMSG,
		"the projection matrices put the source %.1f mm above the detector (with bins of %g mm), but the profile '%s' "
		"has %g mm (tolerance %g mm)",
		ret_source[2], pitch, p->name, want, p->sid_tolerance);
}

static int check_angle(const struct exam *exam, const struct exam_view *v, const double source[3], struct err *err)
{
	const struct profile_conf *p = exam->profile;
	double angle = atan2(source[1] - p->source_y, source[2] - p->axis_height) * 180 / M_PI;

	if (fabs(angle - v->angle) <= ANGLE_TOLERANCE)
		return 0;
	return err_set(
		err, EBADMSG,
		"frame %ld: its projection matrix puts the source at %.2f degrees, but its angle is %.2f degrees (tolerance "
		"%g)%s",
		v->frame + 1, angle, v->angle, ANGLE_TOLERANCE,
		fabs(angle + v->angle) <= ANGLE_TOLERANCE ? ": check pose_rows and angle_sign of the profile" : "");
}

int exam_pose_matrices(const struct exam *exam, double pitch, double (**ret_matrix)[12], double ret_rest[3], struct err *err)
{
	double(*matrix)[12] = malloc((size_t)exam->n_views * sizeof(*matrix)), source[3];
	int rc = matrix ? check_distance(exam, pitch, ret_rest, err) : err_set(err, ENOMEM, "no memory for projection matrices");

	for (int i = 0; rc == 0 && i < exam->n_views; i++) {
		const struct exam_view *v = &exam->views[i];

		rc = convert_matrix(exam, exam->poses->theta[v->frame], pitch, matrix[i], source, err);
		if (rc < 0)
			rc = err_prefix(err, "frame %ld", v->frame + 1);
		else
			rc = check_angle(exam, v, source, err);
	}
	if (rc < 0) {
		free(matrix);
		return rc;
	}
	*ret_matrix = matrix;
	return 0;
}
