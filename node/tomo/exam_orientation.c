/* SPDX-License-Identifier: Apache-2.0 */
/* exam_orientation.c - determine the orientation of the stored image in the scan, and of the scan in the patient.
 *
 * Patient axes are LPS: +x left, +y posterior, +z head. Scan axes (kernels/geometry.h): x away from the chest wall = anterior in
 * every view; z toward the tube; y = z cross x, so that (x, y, z) is right-handed. With the tube tilted by g from above toward
 * medial (CC: 0, MLO: 45 nominally, LM: -90), left breast: z = (-sin g, 0, cos g), y = (cos g, 0, sin g); right breast:
 *   z = (sin g, 0, cos g), y = (cos g, 0, -sin g).
 * Patient Orientation (0020,0020) holds the direction of increasing column index, then that of increasing row index. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/base/mirror.h"
#include "node/tomo/exam_internal.h"

#define COSINE_SURE 0.1 /* a letter is accepted if its direction has at least this cosine with the axis */

void orientation_axes(char laterality, double tilt, double ret_axis[3][3])
{
	double g = tilt * M_PI / 180;
	double side = laterality == 'L' ? -1 : 1; /* medial is to the right of a left breast: -x in LPS */
	double x[3] = {0, -1, 0};
	double y[3] = {cos(g), 0, -side * sin(g)};
	double z[3] = {side * sin(g), 0, cos(g)};

	memcpy(ret_axis[0], x, sizeof(x));
	memcpy(ret_axis[1], y, sizeof(y));
	memcpy(ret_axis[2], z, sizeof(z));
}

/* Return the cosine between a letter's direction and an axis; NAN: not a valid letter. */
static double letter_along(char letter, const double axis[3])
{
	switch (letter) {
	case 'L':
		return axis[0];
	case 'R':
		return -axis[0];
	case 'P':
		return axis[1];
	case 'A':
		return -axis[1];
	case 'H':
		return axis[2];
	case 'F':
		return -axis[2];
	default:
		return NAN;
	}
}

/* Return +1 or -1 if letters such as "FR" run along or against the axis; 0: neither, or they disagree. The first letter decides.
 */
static int direction_sign(const char *letters, const double axis[3])
{
	int sign = 0;

	for (const char *c = letters; *c; c++) {
		double along = letter_along(*c, axis);

		if (isnan(along))
			return 0;
		if (fabs(along) < COSINE_SURE) {
			if (c == letters)
				return 0;
			continue;
		}
		if (sign && sign != (along > 0 ? 1 : -1))
			return 0;
		sign = along > 0 ? 1 : -1;
	}
	return sign;
}

int orientation_parse(const char *text, const double axis[3][3], bool *ret_columns_toward_chest, bool *ret_rows_toward_minus_y,
		      struct err *err)
{
	char columns[17], rows[17];
	int along_x, along_y;

	if (sscanf(text, "%16[A-Z]\\%16[A-Z]", columns, rows) != 2)
		return err_set(err, EBADMSG, "Patient Orientation (0020,0020) is '%s'; allowed: two directions such as A\\R",
			       text);
	along_x = direction_sign(columns, axis[0]);
	along_y = direction_sign(rows, axis[1]);
	if (!along_x)
		return err_set(err, EBADMSG,
			       "Patient Orientation (0020,0020) is '%s': columns toward %s are not supported, only toward A or P",
			       text, columns);
	if (!along_y)
		return err_set(err, EBADMSG,
			       "Patient Orientation (0020,0020) is '%s': rows toward %s are impossible in this view", text, rows);
	*ret_columns_toward_chest = along_x < 0;
	*ret_rows_toward_minus_y = along_y < 0;
	return 0;
}

void orientation_turn(uint16_t *values, size_t columns, size_t rows, bool mirror_columns, bool mirror_rows)
{
	if (mirror_rows)
		for (size_t i = 0; i < rows / 2; i++) {
			uint16_t *a = values + i * columns, *b = values + (rows - 1 - i) * columns;

			for (size_t j = 0; j < columns; j++) {
				uint16_t t = a[j];

				a[j] = b[j];
				b[j] = t;
			}
		}
	for (size_t i = 0; mirror_columns && i < rows; i++)
		mirror_values(values + i * columns, columns);
}

/* Determine the gantry's angle. In Breast Projection it is that of the support (0018,9545). In a single-frame series it is
 * (0018,1510) if the projection's own angle is stored elsewhere, as in SCO objects; otherwise the gantry's angle is not recorded.
 */
static int gantry_angle(struct exam *exam, const struct header *h, const struct exam_view_kind *view, struct err *err)
{
	uint32_t tag = TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE;
	double angle;
	int found = header_double(h, tag, 0, &angle, err);

	if (!found && (exam->source == EXAM_SCO ||
		       (exam->source == EXAM_MG_SERIES && exam->profile->angle_tag != TAG_POSITIONER_PRIMARY_ANGLE))) {
		tag = TAG_POSITIONER_PRIMARY_ANGLE;
		found = header_double(h, tag, 0, &angle, err);
	}
	if (found < 0)
		return found;
	exam->gantry_recorded = found > 0;
	exam->gantry = view->tilt;
	if (found && view->tilt == 0 && fabs(angle) >= view->most)
		return err_set(err, EBADMSG, "gantry angle %s is %g degrees; allowed in a %s view: less than %d", tag_text(tag),
			       angle, view->name, view->most);
	if (view->tilt == 0) {
		exam->gantry_recorded = true;
		return 0;
	}
	if (found && !(fabs(angle) >= view->least && fabs(angle) <= view->most))
		return err_set(err, EBADMSG, "gantry angle %s is %g degrees; allowed in a view %s: %d to %d", tag_text(tag),
			       angle, view->name, view->least, view->most);
	/* C.8.31.6.1: positive toward the patient's right, which is medial of a left breast. If either side or sign is wrong, the
	 * projections' angles would be mirrored. */
	if (exam->source == EXAM_BREAST_PROJECTION && found && fabs(view->tilt) < 180 &&
	    (angle > 0) != ((exam->laterality == 'L') == (view->tilt > 0)))
		return err_set(err, EBADMSG,
			       "breast support angle %s is %g degrees, the sign of a view %s of the other breast, but the "
			       "laterality is %c",
			       tag_text(tag), angle, view->name, exam->laterality);
	if (found)
		exam->gantry = copysign(angle, view->tilt);
	return 0;
}

/* Images show the breast as seen from the tube, possibly turned: of an oblique view, the orientation of the other breast is the
 * mirrored one. Views from the other side are shown like those from medial, so that they may be mirrored. */
static void warn_mirrored(struct exam *exam, const struct header *h, const char *orientation)
{
	const struct exam_view_kind *view = exam_view_kind(exam->view);
	char flip[17];

	if (exam->columns_toward_chest != exam->rows_toward_minus_y || view->tilt < 0 || view->tilt > 90)
		return;
	if (header_text(h, TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, flip, sizeof(flip), NULL) == 1 && !strcmp(flip, "YES"))
		return;
	exam_warn(exam,
		  "Patient Orientation (0020,0020) is '%s', that of a mirrored image of the %s breast in a view %s: is the "
		  "orientation or the side wrong?",
		  orientation, exam->laterality == 'L' ? "left" : "right", exam->view);
}

static int find_flips(struct exam *exam, const struct header *h, struct err *err)
{
	const char *edge = exam->profile->chest_wall;
	char text[64];
	int found = header_text(h, TAG_PATIENT_ORIENTATION, text, sizeof(text), err);

	if (found < 0)
		return found;
	if (found) {
		found = orientation_parse(text, exam->axis, &exam->columns_toward_chest, &exam->rows_toward_minus_y, err);
		if (found == 0)
			warn_mirrored(exam, h, text);
		return found;
	}
	if (exam->source != EXAM_MG_SERIES || !edge[0])
		return err_set(err, EBADMSG,
			       "Patient Orientation (0020,0020) is missing, and the profile '%s' has no value for chest_wall",
			       exam->profile->name);
	/* The image as seen from the tube, not mirrored: with columns along +x, rows run along -y; after rotation by 180 degrees
	 * both are reversed. */
	exam->columns_toward_chest = !strcmp(edge, "right");
	exam->rows_toward_minus_y = !exam->columns_toward_chest;
	return 0;
}

int exam_orient(struct exam *exam, struct err *err)
{
	struct header h = {.root = dicom_root(exam->files[0]), .frame = exam->frames_in_file ? 0 : -1};
	const struct exam_view_kind *view;
	int rc;

	exam->laterality = header_laterality(&h);
	if (exam->laterality != 'L' && exam->laterality != 'R')
		return err_set(err, EBADMSG, "laterality (0020,0062) is '%.1s'; allowed: L, R", &exam->laterality);
	header_view(&h, exam->view, sizeof(exam->view));
	if (!exam->view[0])
		return err_set(err, EBADMSG, "the view is missing: no (0054,0220) and no (0018,5101)");
	view = exam_view_kind(exam->view);
	if (!view)
		return err_set(err, ENOTSUP,
			       "view %s (0054,0220): its orientation in the patient is unknown; supported: CC, MLO, ML, LM, LMO, "
			       "SIO, ISO, FB, XCC, XCCL, XCCM, AT, CV, RL, RM",
			       exam->view);
	if (header_magnified(&h))
		return err_set(err, ENOTSUP, "magnification view (0054,0222): the breast is not on the support");
	rc = gantry_angle(exam, &h, view, err);
	if (rc < 0)
		return rc;
	orientation_axes(exam->laterality, exam->gantry, exam->axis);
	return find_flips(exam, &h, err);
}
