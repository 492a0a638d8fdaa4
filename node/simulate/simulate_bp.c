/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_bp.c - write the exam as one Breast Projection X-Ray Image For Processing (PS3.3 A.74), which contains its whole
 * geometry. Signs (C.8.31.6): the isocenter system's X points to the patient's right, Z up; angles are positive from Z toward X.
 * The normal of the breast support is tilted by Ab1, the beam by As1 = Ab1 - a, where a is the projection's angle toward +y, the
 * patient's left in every view.
 */
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/object/item_writer.h"
#include "node/simulate/simulate.h"

#define FRAME_MS 1000.0 /* time from one projection to the next, ms */
#define FRAME_EXPOSURE_MS 50.0

/* Return the tilt of the breast support from Z toward X, degrees. */
static double support_angle(const struct simulation *s)
{
	if (strcmp(s->o.view, "MLO") != 0)
		return 0;
	return s->o.side == 'L' ? s->o.gantry : -s->o.gantry;
}

/* PS3.16 CID 19 and 20. */
static void fill_patient_standing(struct item_writer *root)
{
	struct item_writer item = item_begin(root, DICOM_TAG(0x0054, 0x0410)); /* Patient Orientation Code Sequence */

	item_put_text(&item, TAG_CODE_VALUE, "C86043");
	item_put_text(&item, TAG_CODING_SCHEME_DESIGNATOR, "NCIt");
	item_put_text(&item, TAG_CODE_MEANING, "Erect");
	item_put_code(&item, DICOM_TAG(0x0054, 0x0412), "10904000", "SCT", "standing"); /* ... Modifier Code Sequence */
	item_end(root, &item);
}

static void fill_root(const struct simulation *s, struct item_writer *w)
{
	double dose = SIMULATE_DOSE;

	item_put_text(w, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\TOMO_PROJ\\NONE");
	item_put_int(w, TAG_INSTANCE_NUMBER, 1);
	item_put_text(w, TAG_ACQUISITION_DATE_TIME, "20260601101800");
	item_put_text(w, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	item_put_int(w, TAG_NUMBER_OF_FRAMES, s->o.views);
	item_put_double(w, DICOM_TAG(0x0018, 0x9073), s->o.views * FRAME_MS / 1000);		/* Acquisition Duration, s */
	item_put_text(w, DICOM_TAG(0x0018, 0x1500), "DYNAMIC");					/* Positioner Motion */
	item_put_text(w, DICOM_TAG(0x0054, 0x0202), "STATIONARY");				/* Type of Detector Motion */
	item_put_double(w, DICOM_TAG(0x0018, 0x9330), SIMULATE_MAS * 1000 / FRAME_EXPOSURE_MS); /* X-Ray Tube Current in mA */
	item_put_double(w, TAG_EXPOSURE_TIME_IN_MS, s->o.views * FRAME_EXPOSURE_MS);
	item_put_double(w, TAG_EXPOSURE_IN_MAS, s->o.views * SIMULATE_MAS);
	item_put_double(w, TAG_ORGAN_DOSE, dose / 100); /* dGy */
	item_put_double(w, TAG_ENTRANCE_DOSE_IN_MGY, 4 * dose);
	fill_patient_standing(w);
}

static void fill_dimensions(const struct simulation *s, struct item_writer *root)
{
	char uid[DICOM_UID_SIZE];
	struct item_writer item;

	simulate_uid(s, "dimension organization", uid);
	item = item_begin(root, TAG_DIMENSION_ORGANIZATION_SEQUENCE);
	item_put_text(&item, TAG_DIMENSION_ORGANIZATION_UID, uid);
	item_end(root, &item);
	item = item_begin(root, TAG_DIMENSION_INDEX_SEQUENCE);
	item_put_text(&item, TAG_DIMENSION_ORGANIZATION_UID, uid);
	item_put_tag(&item, TAG_DIMENSION_INDEX_POINTER, TAG_IN_STACK_POSITION_NUMBER);
	item_put_tag(&item, TAG_FUNCTIONAL_GROUP_POINTER, TAG_FRAME_CONTENT_SEQUENCE);
	item_end(root, &item);
}

static void fill_shared_geometry(const struct simulation *s, struct item_writer *shared)
{
	const struct profile_conf *p = s->o.profile;
	double sid = p->axis_height + p->source_axis, field[2] = {s->n_v * s->pitch, s->n_u * s->pitch}; /* rows first */
	char event[DICOM_UID_SIZE];
	struct item_writer group = item_begin(shared, TAG_X_RAY_GEOMETRY_SEQUENCE);

	item_put_double(&group, TAG_DISTANCE_SOURCE_TO_DETECTOR, sid);
	item_put_double(&group, TAG_DISTANCE_SOURCE_TO_PATIENT, sid - p->support);
	item_put_double(&group, DICOM_TAG(0x0018, 0x9402), p->source_axis); /* Distance Source to Isocenter */
	item_put_double(&group, TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, sid / (sid - p->support - s->o.thickness / 2));
	item_end(shared, &group);
	group = item_begin(shared, TAG_FIELD_OF_VIEW_SEQUENCE);
	item_put_text(&group, TAG_FIELD_OF_VIEW_SHAPE, "RECTANGLE");
	item_put_doubles(&group, TAG_FIELD_OF_VIEW_DIMENSIONS_IN_FLOAT, field, 2);
	simulate_fill_window(s, &group);
	item_end(shared, &group);
	group = item_begin(shared, TAG_X_RAY_FILTER_SEQUENCE);
	item_put_text(&group, TAG_FILTER_TYPE, "STRIP");
	item_put_text(&group, TAG_FILTER_MATERIAL, s->o.system.filter);
	item_end(shared, &group);
	group = item_begin(shared, DICOM_TAG(0x0018, 0x9407)); /* Collimator Shape Sequence */
	item_put_text(&group, DICOM_TAG(0x0018, 0x1700), "RECTANGULAR");
	item_put_int(&group, DICOM_TAG(0x0018, 0x1702), 0);	     /* left edge, column */
	item_put_int(&group, DICOM_TAG(0x0018, 0x1704), s->n_u + 1); /* right edge */
	item_put_int(&group, DICOM_TAG(0x0018, 0x1706), 0);	     /* upper edge, row */
	item_put_int(&group, DICOM_TAG(0x0018, 0x1708), s->n_v + 1); /* lower edge */
	item_end(shared, &group);
	simulate_uid(s, "irradiation event", event);
	group = item_begin(shared, TAG_IRRADIATION_EVENT_IDENTIFICATION_SEQUENCE);
	item_put_text(&group, TAG_IRRADIATION_EVENT_UID, event);
	item_end(shared, &group);
	group = item_begin(shared, TAG_FRAME_VOI_LUT_SEQUENCE);
	item_put_double(&group, TAG_WINDOW_CENTER, s->i0 / 2);
	item_put_double(&group, TAG_WINDOW_WIDTH, s->i0);
	item_end(shared, &group);
}

static void fill_shared(const struct simulation *s, struct item_writer *root)
{
	struct item_writer shared = item_begin(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE), group;
	char side[2] = {s->o.side, '\0'};

	group = item_begin(&shared, TAG_FRAME_ANATOMY_SEQUENCE);
	item_put_text(&group, TAG_FRAME_LATERALITY, side);
	item_put_code(&group, TAG_ANATOMIC_REGION_SEQUENCE, "76752008", "SCT", "Breast");
	item_end(&shared, &group);
	group = item_begin(&shared, TAG_PATIENT_ORIENTATION_IN_FRAME_SEQUENCE);
	item_put_text(&group, TAG_PATIENT_ORIENTATION, simulate_orientation(s));
	item_end(&shared, &group);
	fill_shared_geometry(s, &shared);
	item_end(root, &shared);
}

static void fill_frame_time(int view, struct item_writer *frame)
{
	struct item_writer group = item_begin(frame, TAG_FRAME_CONTENT_SEQUENCE);
	uint32_t index = (uint32_t)view + 1;
	char time[32];
	int ms = (int)(view * FRAME_MS);

	/* At most SIMULATE_VIEWS_MAX s after 10:18, so that the hour never changes. */
	snprintf(time, sizeof(time), "2026060110%02d%02d.%03d", 18 + ms / 60000, ms / 1000 % 60, ms % 1000);
	item_put_text(&group, DICOM_TAG(0x0018, 0x9074), time);		       /* Frame Acquisition DateTime */
	item_put_text(&group, DICOM_TAG(0x0018, 0x9151), time);		       /* Frame Reference DateTime */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9220), FRAME_EXPOSURE_MS); /* Frame Acquisition Duration, ms */
	item_put_text(&group, TAG_STACK_ID, "1");
	item_put_int(&group, TAG_IN_STACK_POSITION_NUMBER, view + 1);
	if (group.rc >= 0)
		group.rc = dicom_put_uint32s(group.item, TAG_DIMENSION_INDEX_VALUES, &index, 1, group.err);
	item_end(frame, &group);
}

static void fill_frame_geometry(const struct simulation *s, int view, struct item_writer *frame)
{
	double support = support_angle(s), source = support - s->angle[view];
	/* In the detector's own system: X and Y of its plane are those of the isocenter system, rotated by the support angle;
	 * rows and columns as stored. */
	double across = s->rows_toward_minus_y ? 1 : -1, out = s->columns_toward_chest ? -1 : 1;
	double corner[3] = {-across * s->n_v * s->pitch / 2 - s->o.window[1],
			    s->o.window[0] + (s->columns_toward_chest ? s->n_u * s->pitch : 0), 0};
	double along[6] = {0, out, 0, across, 0, 0}; /* columns run along out * Y, rows along across * X */
	struct item_writer group = item_begin(frame, TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE);

	item_put_double(&group, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, source);
	item_put_double(&group, TAG_X_RAY_SOURCE_ISOCENTER_SECONDARY_ANGLE, 0);
	item_put_double(&group, TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE, support);
	item_put_double(&group, TAG_BREAST_SUPPORT_ISOCENTER_SECONDARY_ANGLE, 0);
	item_put_double(&group, DICOM_TAG(0x0018, 0x9547), 0); /* Breast Support X Position to Isocenter, mm */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9548), 0); /* Y */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9549), s->o.profile->support - s->o.profile->axis_height); /* Z */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9550), support);			/* Detector Isocenter Primary Angle */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9551), 0);				/* Detector Isocenter Secondary Angle */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9552), 0);				/* Detector X Position to Isocenter, mm */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9553), 0);				/* Y */
	item_put_double(&group, DICOM_TAG(0x0018, 0x9554), -s->o.profile->axis_height); /* Z */
	item_put_doubles(&group, DICOM_TAG(0x0018, 0x9557), corner, 3); /* Detector Active Area TLHC Position, mm */
	item_put_doubles(&group, DICOM_TAG(0x0018, 0x9558), along, 6);	/* Detector Active Area Orientation */
	item_end(frame, &group);
	group = item_begin(frame, TAG_POSITIONER_POSITION_SEQUENCE);
	item_put_double(&group, TAG_POSITIONER_PRIMARY_ANGLE, source);
	item_put_text(&group, DICOM_TAG(0x0018, 0x9559),
		      "CW"); /* Positioner Primary Angle Direction: toward the patient's right */
	item_end(frame, &group);
}

static void fill_frame_pixels(const struct simulation *s, struct item_writer *frame)
{
	double pitch[2] = {s->pitch, s->pitch};
	struct item_writer group = item_begin(frame, TAG_FRAME_PIXEL_DATA_PROPERTIES_SEQUENCE);

	item_put_text(&group, TAG_FRAME_TYPE, "ORIGINAL\\PRIMARY\\TOMO_PROJ\\NONE");
	item_put_text(&group, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LIN");
	item_put_int(&group, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, s->o.inverted ? -1 : 1);
	item_put_doubles(&group, TAG_IMAGER_PIXEL_SPACING, pitch, 2);
	item_put_text(&group, DICOM_TAG(0x0028, 0x9444), "UNIFORM"); /* Geometrical Properties */
	item_put_text(&group, DICOM_TAG(0x0028, 0x9446), "NONE");    /* Image Processing Applied */
	item_end(frame, &group);
	group = item_begin(frame, TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE);
	item_put_text(&group, TAG_RESCALE_INTERCEPT, "0");
	item_put_text(&group, TAG_RESCALE_SLOPE, "1");
	item_put_text(&group, TAG_RESCALE_TYPE, "US");
	item_end(frame, &group);
}

static void fill_frame_dose(const struct simulation *s, int view, struct item_writer *frame)
{
	double dose = SIMULATE_DOSE / s->o.views * s->exposure[view], mas = SIMULATE_MAS * s->exposure[view];
	struct item_writer group = item_begin(frame, TAG_X_RAY_ACQUISITION_DOSE_SEQUENCE);

	item_put_double(&group, TAG_EXPOSURE_TIME_IN_MS, FRAME_EXPOSURE_MS);
	item_put_double(&group, TAG_EXPOSURE_IN_MAS, mas);
	item_put_int(&group, TAG_RELATIVE_X_RAY_EXPOSURE, 400);
	item_put_double(&group, TAG_HALF_VALUE_LAYER, 0.55);
	item_put_double(&group, TAG_ORGAN_DOSE, dose / 100); /* dGy */
	item_put_double(&group, TAG_ENTRANCE_DOSE_IN_MGY, 4 * dose);
	item_end(frame, &group);
}

static void fill_frames(const struct simulation *s, struct item_writer *root)
{
	for (int i = 0; i < s->o.views && root->rc >= 0; i++) {
		struct item_writer frame = item_begin(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE);

		fill_frame_time(i, &frame);
		fill_frame_geometry(s, i, &frame);
		fill_frame_pixels(s, &frame);
		fill_frame_dose(s, i, &frame);
		item_end(root, &frame);
	}
}

int simulate_new_bp(const struct simulation *s, struct dicom_file **ret_file, struct err *err)
{
	struct dicom_file *file = NULL;
	struct item_writer root = {.err = err};
	char uid[DICOM_UID_SIZE];
	int rc;

	simulate_uid(s, "projections", uid);
	rc = dicom_new(CLASS_PROJECTION_PROCESSING, uid, &file, err);
	if (rc < 0)
		return rc;
	root.item = dicom_root(file);
	simulate_fill_header(s, &root);
	fill_root(s, &root);
	fill_dimensions(s, &root);
	fill_shared(s, &root);
	fill_frames(s, &root);
	if (root.rc < 0) {
		dicom_close(file);
		return root.rc;
	}
	*ret_file = file;
	return 0;
}
