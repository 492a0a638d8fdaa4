/* SPDX-License-Identifier: Apache-2.0 */
/* result_acquisition.c - write Contributing Sources and X-Ray 3D Acquisition (PS3.3 C.8.21.2.3, C.8.21.3.4): how the projections
 * were acquired. Both modules are optional but have many required values. They are copied from the source, in its units;
 * constants of the system that the source lacks are those of the geometry profile. A value is never invented: a module that lacks
 * a required one is left out, each module by itself, and the missing values are listed by name. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "node/result/result_internal.h"

/* A value that a module requires. */
struct required {
	uint32_t tag;
	const char *name;
	const char *key;  /* of the profile, for a constant of the system; NULL: a measured value */
	size_t text;	  /* offset of the key's text in struct profile_conf; 0: it is a number */
	size_t number;	  /* offset of the key's number */
	unsigned numbers; /* number of values, all equal */
};

#define TEXT(member) .key = #member, .text = offsetof(struct profile_conf, member)
#define NUMBER(member, n) .key = #member, .number = offsetof(struct profile_conf, member), .numbers = (n)

static const struct required source_values[] = {
	{TAG_DETECTOR_TYPE, "Detector Type", TEXT(detector_type)},
	{TAG_DETECTOR_ID, "Detector ID", TEXT(detector_id)},
	{TAG_DATE_OF_LAST_DETECTOR_CALIBRATION, "Date of Last Detector Calibration", NULL},
	{TAG_TIME_OF_LAST_DETECTOR_CALIBRATION, "Time of Last Detector Calibration", NULL},
	{TAG_DETECTOR_ELEMENT_SPACING, "Detector Element Spacing", NUMBER(element_spacing, 2)},
};
static const struct required acquisition_values[] = {
	{TAG_DISTANCE_SOURCE_TO_DETECTOR, "Distance Source to Detector", NULL},
	{TAG_DISTANCE_SOURCE_TO_PATIENT, "Distance Source to Patient", NULL},
	{TAG_ANODE_TARGET_MATERIAL, "Anode Target Material", TEXT(anode)},
	{TAG_BODY_PART_THICKNESS, "Body Part Thickness", NULL},
	/* Copied, not computed, because manufacturers give the distance to the patient three meanings. */
	{TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, "Estimated Radiographic Magnification Factor", NULL},
	{TAG_EXPOSURE_CONTROL_MODE, "Exposure Control Mode", TEXT(exposure_control)},
	{TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION, "Exposure Control Mode Description", TEXT(exposure_control_text)},
	{TAG_HALF_VALUE_LAYER, "Half Value Layer", NULL},
	{TAG_FOCAL_SPOTS, "Focal Spot(s)", NUMBER(focal_spot, 1)},
	{TAG_DETECTOR_TEMPERATURE, "Detector Temperature", NULL},
	{TAG_FILTER_TYPE, "Filter Type", TEXT(filter_type)},
	{TAG_FILTER_MATERIAL, "Filter Material", TEXT(filter_material)},
	{TAG_COMPRESSION_FORCE, "Compression Force", NULL},
	{TAG_PADDLE_DESCRIPTION, "Paddle Description", TEXT(paddle)},
	{TAG_FIELD_OF_VIEW_ORIGIN, "Field of View Origin", NULL},
	{TAG_FIELD_OF_VIEW_ROTATION, "Field of View Rotation", NULL},
	{TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, "Field of View Horizontal Flip", NULL},
};

#define N_SOURCE_VALUES (sizeof(source_values) / sizeof(source_values[0]))
#define N_ACQUISITION_VALUES (sizeof(acquisition_values) / sizeof(acquisition_values[0]))

/* ---- what is missing ---- */

struct gaps {
	char text[1100]; /* "Detector ID (0018,700A), ..." */
	char keys[200];	 /* "detector_id, ...": keys of the profile for constants among them */
	size_t n;
};

static void add_gap(struct gaps *g, const char *name, uint32_t tag)
{
	size_t at = strlen(g->text);

	g->n++;
	snprintf(g->text + at, sizeof(g->text) - at, "%s%s %s", at ? ", " : "", name, tag_text(tag));
}

static void add_key(struct gaps *g, const char *key)
{
	size_t at = strlen(g->keys);

	snprintf(g->keys + at, sizeof(g->keys) - at, "%s%s", at ? ", " : "", key);
}

/* Write the profile's constant; return false if it has none. */
static bool put_constant(const struct profile_conf *p, const struct required *v, struct item_writer *w)
{
	const char *text = v->text ? (const char *)p + v->text : "";
	double values[2];

	if (v->text && text[0]) {
		item_put_text(w, v->tag, text);
		return true;
	}
	if (!v->number)
		return false;
	memcpy(&values[0], (const char *)p + v->number, sizeof(values[0]));
	values[1] = values[0];
	if (!(values[0] > 0))
		return false;
	item_put_doubles(w, v->tag, values, v->numbers);
	return true;
}

static void put_all(const struct header *h, const struct profile_conf *p, const struct required *v, size_t n,
		    struct item_writer *w, struct gaps *g)
{
	for (size_t i = 0; i < n && w->rc >= 0; i++) {
		const struct dicom_item *from = header_find(h, v[i].tag);

		if (from) {
			item_copy(w, v[i].tag, from);
		} else if (!put_constant(p, &v[i], w)) {
			add_gap(g, v[i].name, v[i].tag);
			if (v[i].key)
				add_key(g, v[i].key);
		}
	}
}

void result_profile_constants(const struct profile_conf *p, char *ret, size_t size)
{
	size_t at = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < N_SOURCE_VALUES + N_ACQUISITION_VALUES && at < size; i++) {
		const struct required *v = i < N_SOURCE_VALUES ? &source_values[i] : &acquisition_values[i - N_SOURCE_VALUES];
		double number = 0;

		if (v->number)
			memcpy(&number, (const char *)p + v->number, sizeof(number));
		if (v->key && !(v->text && ((const char *)p + v->text)[0]) && !(number > 0))
			at += (size_t)snprintf(ret + at, size - at, "%s%s", at ? ", " : "", v->key);
	}
}

/* ---- the modules ---- */

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

static void fill_projection(const struct result *r, int view, struct item_writer *w, struct gaps *g)
{
	struct header h = exam_header(r->exam, view);
	double angle, ms, mas, relative;

	/* If the profile reads the projection's angle from another attribute, (0018,1510) is that of the gantry. */
	if (r->exam->source == EXAM_SCO ||
	    (r->exam->source == EXAM_MG_SERIES && r->exam->profile->angle_tag != TAG_POSITIONER_PRIMARY_ANGLE) ||
	    header_double(&h, TAG_POSITIONER_PRIMARY_ANGLE, 0, &angle, NULL) != 1)
		add_gap(g, "Positioner Primary Angle of a projection", TAG_POSITIONER_PRIMARY_ANGLE);
	else
		item_put_double(w, TAG_POSITIONER_PRIMARY_ANGLE, angle);
	if (header_double(&h, TAG_EXPOSURE_TIME_IN_MS, 0, &ms, NULL) == 1 ||
	    header_double(&h, TAG_EXPOSURE_TIME, 0, &ms, NULL) == 1)
		item_put_double(w, TAG_EXPOSURE_TIME_IN_MS, ms);
	else
		add_gap(g, "Exposure Time", TAG_EXPOSURE_TIME);
	if (exposure_mas(&h, &mas))
		item_put_double(w, TAG_EXPOSURE_IN_MAS, mas);
	else
		add_gap(g, "Exposure", TAG_EXPOSURE);
	if (header_double(&h, TAG_RELATIVE_X_RAY_EXPOSURE, 0, &relative, NULL) == 1)
		item_put_int(w, TAG_RELATIVE_X_RAY_EXPOSURE, lround(relative));
	else
		add_gap(g, "Relative X-Ray Exposure", TAG_RELATIVE_X_RAY_EXPOSURE);
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

static void fill_contributing(const struct result *r, struct item_writer *w, struct gaps *g)
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
		add_gap(g, "Acquisition DateTime", TAG_ACQUISITION_DATE_TIME);
	}
	item_put_int(w, TAG_ROWS, r->exam->pixels.rows);
	item_put_int(w, TAG_COLUMNS, r->exam->pixels.columns);
	item_put_int(w, TAG_BITS_STORED, r->exam->pixels.bits_stored);
	item_put_text(w, TAG_LOSSY_IMAGE_COMPRESSION, "00"); /* lossy sources are refused */
	put_all(&h, r->exam->profile, source_values, N_SOURCE_VALUES, w, g);
}

static void fill_acquisition(const struct result *r, struct item_writer *w, struct gaps *g)
{
	const struct exam *e = r->exam;
	struct header h = exam_header(e, 0);
	double size[2] = {(double)e->pixels.rows * e->scan->h[1], (double)e->pixels.columns * e->scan->h[0]};

	put_all(&h, e->profile, acquisition_values, N_ACQUISITION_VALUES, w, g);
	item_put_text(w, TAG_FIELD_OF_VIEW_SHAPE, "RECTANGLE");
	item_put_text(w, TAG_X_RAY_RECEPTOR_TYPE, "DIGITAL_DETECTOR");
	item_put_doubles(w, TAG_FIELD_OF_VIEW_DIMENSIONS_IN_FLOAT, size, 2);
	if (header_find(&h, TAG_KVP))
		item_copy(w, TAG_KVP, header_find(&h, TAG_KVP));
	fill_dose(r, TAG_ORGAN_DOSE, w);
	fill_dose(r, TAG_ENTRANCE_DOSE_IN_MGY, w);
	for (int i = 0; i < e->n_views && w->rc >= 0; i++) {
		struct item_writer item = item_begin(w, TAG_PER_PROJECTION_ACQUISITION_SEQUENCE);
		size_t before = g->n;

		fill_projection(r, i, &item, g);
		item_end(w, &item);
		if (g->n > before)
			break; /* the same values are missing in the other projections */
	}
}

/* Add sentences about a module that is left out: the missing values, and the keys of the profile that can supply some of them. */
static void report_gaps(const char *module, const struct gaps *g, const struct profile_conf *profile, char *ret, size_t size)
{
	size_t at = strlen(ret);

	if (g->n == 0)
		return;
	snprintf(ret + at, size - at, "%s%s is left out: the images and the profile have no %s.", at ? " " : "", module, g->text);
	at = strlen(ret);
	if (g->keys[0])
		snprintf(ret + at, size - at, " Keys of profile %s that supply such values: %s.", profile->name, g->keys);
}

void result_fill_acquisition(const struct result *r, struct item_writer *root, char *ret_omitted, size_t size)
{
	struct dicom_file *scratch = NULL; /* built separately, because only the end shows whether it is complete */
	struct item_writer f = {.err = root->err}, sources, acquisition;
	struct gaps g[2] = {0};

	ret_omitted[0] = '\0';
	if (root->rc < 0)
		return;
	if (!header_find(&(struct header){.root = root->item, .frame = -1}, TAG_BREAST_IMPLANT_PRESENT))
		snprintf(ret_omitted, size, "Breast Implant Present (0028,1300) is left out: the images have none.");
	f.rc = dicom_new(CLASS_TOMOSYNTHESIS, r->sop_instance, &scratch, root->err);
	if (f.rc >= 0) {
		f.item = dicom_root(scratch);
		sources = item_begin(&f, TAG_CONTRIBUTING_SOURCES_SEQUENCE);
		acquisition = item_begin(&f, TAG_X_RAY_3D_ACQUISITION_SEQUENCE);
		fill_contributing(r, &sources, &g[0]);
		fill_acquisition(r, &acquisition, &g[1]);
		if (g[0].n == 0)
			item_copy(root, TAG_CONTRIBUTING_SOURCES_SEQUENCE, f.item);
		if (g[1].n == 0)
			item_copy(root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE, f.item);
		report_gaps("Contributing Sources", &g[0], r->exam->profile, ret_omitted, size);
		report_gaps("X-Ray 3D Acquisition", &g[1], r->exam->profile, ret_omitted, size);
		item_end(&f, &sources);
		item_end(&f, &acquisition);
	}
	item_end(root, &f);
	dicom_close(scratch);
}
