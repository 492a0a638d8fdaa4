/* SPDX-License-Identifier: Apache-2.0 */
/* result_acquisition.c - write Contributing Sources and X-Ray 3D Acquisition (PS3.3 C.8.21.2.3, C.8.21.3.4): how the projections
 * were acquired. Both modules are optional but have many required values. If the sources lack one of these, neither module is
 * written, because a value must not be invented. Values are copied from the source, in its units. */
#include <stdio.h>
#include <string.h>

#include "node/result/result_internal.h"

/* Copied from the first view; the modules require each of them. */
static const uint32_t source_values[] = {
	TAG_DETECTOR_TYPE,
	TAG_DETECTOR_ID,
	TAG_DATE_OF_LAST_DETECTOR_CALIBRATION,
	TAG_TIME_OF_LAST_DETECTOR_CALIBRATION,
	TAG_DETECTOR_ELEMENT_SPACING,
};
static const uint32_t acquisition_values[] = {
	TAG_DISTANCE_SOURCE_TO_DETECTOR,
	TAG_DISTANCE_SOURCE_TO_PATIENT,
	TAG_ANODE_TARGET_MATERIAL,
	TAG_BODY_PART_THICKNESS,
	TAG_EXPOSURE_CONTROL_MODE,
	TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION,
	TAG_HALF_VALUE_LAYER,
	TAG_FOCAL_SPOTS,
	TAG_DETECTOR_TEMPERATURE,
	TAG_FILTER_TYPE,
	TAG_FILTER_MATERIAL,
	TAG_COMPRESSION_FORCE,
	TAG_PADDLE_DESCRIPTION,
	TAG_FIELD_OF_VIEW_ORIGIN,
	TAG_FIELD_OF_VIEW_ROTATION,
	TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP,
};

/* Copy values that are all required. Returns 1, or 0 if one is missing. */
static int copy_all(const struct header *h, const uint32_t *tags, size_t n, struct item_writer *w)
{
	for (size_t i = 0; i < n && w->rc >= 0; i++) {
		const struct dicom_item *from = header_find(h, tags[i]);

		if (!from)
			return 0;
		item_copy(w, tags[i], from);
	}
	return 1;
}

/* Read the projection's exposure in mAs: from (0018,1153) in uAs if present, else from the less precise (0018,1152), which some
 * manufacturers also fill with uAs. */
static bool exposure_mas(const struct header *h, double *ret_mas)
{
	if (header_double(h, TAG_EXPOSURE_IN_MAS, 0, ret_mas, NULL) == 1)
		return true;
	if (header_double(h, TAG_EXPOSURE_IN_UAS, 0, ret_mas, NULL) == 1) {
		*ret_mas /= 1000;
		return true;
	}
	return header_double(h, TAG_EXPOSURE, 0, ret_mas, NULL) == 1;
}

static int fill_projection(const struct result *r, int view, struct item_writer *w)
{
	struct header h = exam_header(r->exam, view);
	double angle, ms, mas, relative;

	/* If the profile reads the projection's angle from another attribute, (0018,1510) is that of the gantry. */
	if (r->exam->source == EXAM_MG_SERIES && r->exam->profile->angle_tag != TAG_POSITIONER_PRIMARY_ANGLE)
		return 0;
	if (header_double(&h, TAG_POSITIONER_PRIMARY_ANGLE, 0, &angle, NULL) != 1 || !exposure_mas(&h, &mas) ||
	    (header_double(&h, TAG_EXPOSURE_TIME_IN_MS, 0, &ms, NULL) != 1 &&
	     header_double(&h, TAG_EXPOSURE_TIME, 0, &ms, NULL) != 1) ||
	    header_double(&h, TAG_RELATIVE_X_RAY_EXPOSURE, 0, &relative, NULL) != 1)
		return 0;
	item_put_double(w, TAG_POSITIONER_PRIMARY_ANGLE, angle);
	item_put_double(w, TAG_EXPOSURE_TIME_IN_MS, ms);
	item_put_double(w, TAG_EXPOSURE_IN_MAS, mas);
	item_put_int(w, TAG_RELATIVE_X_RAY_EXPOSURE, lround(relative));
	return 1;
}

/* Return true if a frame's value of this tag is stored in the frame's own groups. */
static bool is_per_frame(const struct header *h, uint32_t tag)
{
	struct header any = {
		.root = h->root,
		.frame = 1L << 30}; /* the number of a frame that does not exist: only shared groups and root are searched */

	return header_find(h, tag) != header_find(&any, tag);
}

/* Write a dose: the sum over all projections, or the value of an object that has one for all. */
static void fill_dose(const struct result *r, uint32_t tag, struct item_writer *w)
{
	double sum = 0, value;

	for (int i = 0; i < r->exam->n_views; i++) {
		struct header h = exam_header(r->exam, i);

		if (header_double(&h, tag, 0, &value, NULL) != 1 || !(value >= 0))
			return;
		sum += value;
		if (h.frame >= 0 && !is_per_frame(&h, tag))
			break;
	}
	item_put_double(w, tag, sum);
}

static int fill_contributing(const struct result *r, struct item_writer *w)
{
	struct header h = exam_header(r->exam, 0);
	char date[20], time[30], both[64];

	item_copy_or_empty(w, TAG_MANUFACTURER, r->source);
	item_copy(w, TAG_MANUFACTURER_MODEL_NAME, r->source);
	item_copy(w, TAG_DEVICE_SERIAL_NUMBER, r->source);
	item_copy(w, TAG_SOFTWARE_VERSIONS, r->source);
	if (header_find(&h, TAG_ACQUISITION_DATE_TIME)) {
		item_copy(w, TAG_ACQUISITION_DATE_TIME, header_find(&h, TAG_ACQUISITION_DATE_TIME));
	} else if (header_text(&h, TAG_ACQUISITION_DATE, date, sizeof(date), NULL) == 1 &&
		   header_text(&h, TAG_ACQUISITION_TIME, time, sizeof(time), NULL) == 1) {
		snprintf(both, sizeof(both), "%s%s", date, time);
		item_put_text(w, TAG_ACQUISITION_DATE_TIME, both);
	} else {
		return 0;
	}
	item_put_int(w, TAG_ROWS, r->exam->pixels.rows);
	item_put_int(w, TAG_COLUMNS, r->exam->pixels.columns);
	item_put_int(w, TAG_BITS_STORED, r->exam->pixels.bits_stored);
	item_put_text(w, TAG_LOSSY_IMAGE_COMPRESSION, "00"); /* lossy sources are refused */
	return copy_all(&h, source_values, sizeof(source_values) / sizeof(source_values[0]), w);
}

static int fill_acquisition(const struct result *r, struct item_writer *w)
{
	const struct exam *e = r->exam;
	struct header h = exam_header(e, 0);
	double size[2] = {(double)e->pixels.rows * e->scan->h[1], (double)e->pixels.columns * e->scan->h[0]};
	double sid, sod;

	if (!copy_all(&h, acquisition_values, sizeof(acquisition_values) / sizeof(acquisition_values[0]), w))
		return 0;
	if (header_double(&h, TAG_DISTANCE_SOURCE_TO_DETECTOR, 0, &sid, NULL) != 1 ||
	    header_double(&h, TAG_DISTANCE_SOURCE_TO_PATIENT, 0, &sod, NULL) != 1 || !(sod > 0))
		return 0;
	item_put_text(w, TAG_FIELD_OF_VIEW_SHAPE, "RECTANGLE");
	item_put_text(w, TAG_X_RAY_RECEPTOR_TYPE, "DIGITAL_DETECTOR");
	item_put_double(w, TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, sid / sod);
	item_put_doubles(w, TAG_FIELD_OF_VIEW_DIMENSIONS_IN_FLOAT, size, 2);
	item_copy(w, TAG_KVP, header_find(&h, TAG_KVP));
	fill_dose(r, TAG_ORGAN_DOSE, w);
	fill_dose(r, TAG_ENTRANCE_DOSE_IN_MGY, w);
	for (int i = 0; i < e->n_views && w->rc >= 0; i++) {
		struct item_writer item = item_begin(w, TAG_PER_PROJECTION_ACQUISITION_SEQUENCE);
		int all = fill_projection(r, i, &item);

		item_end(w, &item);
		if (!all)
			return 0;
	}
	return 1;
}

void result_fill_acquisition(const struct result *r, struct item_writer *root)
{
	struct dicom_file *scratch = NULL; /* built separately, because only the end shows whether it is complete */
	struct item_writer f = {.err = root->err}, sources, acquisition;

	if (root->rc < 0)
		return;
	f.rc = dicom_new(CLASS_TOMOSYNTHESIS, r->sop_instance, &scratch, root->err);
	if (f.rc >= 0) {
		f.item = dicom_root(scratch);
		sources = item_begin(&f, TAG_CONTRIBUTING_SOURCES_SEQUENCE);
		acquisition = item_begin(&f, TAG_X_RAY_3D_ACQUISITION_SEQUENCE);
		if (fill_contributing(r, &sources) && fill_acquisition(r, &acquisition)) {
			item_copy(root, TAG_CONTRIBUTING_SOURCES_SEQUENCE, f.item);
			item_copy(root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE, f.item);
		}
		item_end(&f, &sources);
		item_end(&f, &acquisition);
	}
	item_end(root, &f);
	dicom_close(scratch);
}
