/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_mg.c - write one projection as Digital Mammography X-Ray Image For Processing (PS3.3 A.26, modules of A.27). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/object/item_writer.h"
#include "node/simulate/simulate.h"

/* Write the attributes that all projections share. */
static void fill_series(const struct simulation *s, struct item_writer *w)
{
	const struct profile_conf *p = s->o.profile;
	double pitch[2] = {s->pitch, s->pitch};
	double sid = p->axis_height + p->source_axis;
	char image_type[64], field[32], side[2] = {s->o.side, '\0'}, event[DICOM_UID_SIZE];

	snprintf(image_type, sizeof(image_type), "ORIGINAL\\PRIMARY\\TOMO_PROJ\\%c%s", s->o.side, s->o.view);
	snprintf(field, sizeof(field), "%ld\\%ld", lround(s->n_v * s->pitch), lround(s->n_u * s->pitch)); /* mm, rows first */
	simulate_uid(s, "irradiation event", event);
	item_put_text(w, TAG_IMAGE_TYPE, image_type);
	item_put_text(w, TAG_IMAGE_LATERALITY, side);
	item_put_text(w, TAG_PATIENT_ORIENTATION, simulate_orientation(s));
	item_put_text(w, TAG_ACQUISITION_DATE, "20260601");
	item_put_text(w, TAG_ACQUISITION_TIME, "101800");
	item_put_text(w, TAG_IRRADIATION_EVENT_UID, event);
	item_put_text(w, DICOM_TAG(0x0040, 0x0318), "BREAST"); /* Organ Exposed */
	item_put_code(w, TAG_ANATOMIC_REGION_SEQUENCE, "76752008", "SCT", "Breast");
	item_put_double(w, TAG_DISTANCE_SOURCE_TO_DETECTOR, sid);
	item_put_double(w, TAG_DISTANCE_SOURCE_TO_PATIENT, sid - p->support);
	item_put_double(w, TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, sid / (sid - p->support));
	item_put_doubles(w, TAG_IMAGER_PIXEL_SPACING, pitch, 2);
	item_put_text(w, TAG_FIELD_OF_VIEW_SHAPE, "RECTANGLE");
	item_put_text(w, DICOM_TAG(0x0018, 0x1149), field); /* Field of View Dimensions */
	simulate_fill_window(s, w);
	item_put_text(w, TAG_FILTER_TYPE, "STRIP");
	item_put_text(w, TAG_FILTER_MATERIAL, s->o.system.filter);
	item_put_text(w, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LIN");
	item_put_int(w, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, s->o.inverted ? -1 : 1);
	item_put_text(w, TAG_RESCALE_INTERCEPT, "0");
	item_put_text(w, TAG_RESCALE_SLOPE, "1");
	item_put_text(w, TAG_RESCALE_TYPE, "US");
	item_put_int(w, TAG_IMAGES_IN_ACQUISITION, s->o.views);
	item_put_int(w, TAG_NUMBER_OF_TOMOSYNTHESIS_SOURCE_IMAGES, s->o.views);
	item_put_int(w, DICOM_TAG(0x0020, 0x0012), 1); /* Acquisition Number */
}

static void fill_view(const struct simulation *s, int view, struct item_writer *w)
{
	const struct profile_conf *p = s->o.profile;
	bool primary = p->angle_tag == TAG_POSITIONER_PRIMARY_ANGLE, mlo = strcmp(s->o.view, "MLO") == 0;
	double angle = p->angle_at_detector ? scan_angle_seen(s->angle[view], p->axis_height, p->source_axis) : s->angle[view];
	double stored = p->angle_sign * (angle - p->angle_offset), mas = SIMULATE_MAS * s->exposure[view];
	double dose = SIMULATE_DOSE / s->o.views * s->exposure[view];

	item_put_int(w, TAG_INSTANCE_NUMBER, view + 1);
	item_put_double(w, TAG_POSITIONER_PRIMARY_ANGLE, primary ? stored : mlo ? s->o.gantry : 0);
	item_put_double(w, TAG_DETECTOR_SECONDARY_ANGLE, primary ? 0 : stored);
	item_put_int(w, TAG_EXPOSURE, lround(mas));
	item_put_int(w, TAG_EXPOSURE_IN_UAS, lround(mas * 1000));
	item_put_int(w, TAG_EXPOSURE_TIME, 50);
	item_put_int(w, TAG_RELATIVE_X_RAY_EXPOSURE, 400);
	item_put_double(w, TAG_HALF_VALUE_LAYER, 0.55);
	item_put_double(w, TAG_ORGAN_DOSE, dose / 100); /* dGy */
	item_put_double(w, TAG_ENTRANCE_DOSE_IN_MGY, 4 * dose);
}

int simulate_new_mg(const struct simulation *s, int view, struct dicom_file **ret_file, struct err *err)
{
	struct dicom_file *file = NULL;
	struct item_writer root = {.err = err};
	char part[32], uid[DICOM_UID_SIZE];
	int rc;

	snprintf(part, sizeof(part), "view %d", view);
	simulate_uid(s, part, uid);
	rc = dicom_new(CLASS_MG_PROCESSING, uid, &file, err);
	if (rc < 0)
		return rc;
	root.item = dicom_root(file);
	simulate_fill_header(s, &root);
	fill_series(s, &root);
	fill_view(s, view, &root);
	if (root.rc < 0) {
		dicom_close(file);
		return root.rc;
	}
	*ret_file = file;
	return 0;
}
