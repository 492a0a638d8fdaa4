/* SPDX-License-Identifier: Apache-2.0 */
/* ct_series.c - see dicom/object/ct_series.h. The headers put the slices in order; the pixels are read into their places later,
 * with one file open at a time. */
#include "dicom/object/ct_series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"

#define UNIT_TOLERANCE 1e-3  /* of the length of a direction vector, and between directions */
#define PLACE_TOLERANCE 0.05 /* mm: positions are decimal strings, often rounded */
#define KVP_TOLERANCE 1.0    /* kV: measured values differ a little */

struct slice {
	char sop_instance[DICOM_UID_SIZE];
	double at[3], depth; /* position, and its component along the normal, mm */
	size_t file;
};

/* What all slices share. */
struct shape {
	double cosines[6], spacing[2]; /* spacing: between rows, between columns */
	long columns, rows;
};

struct ct_headers {
	struct ct_series *s; /* NULL: it was opened */
	const char **paths;  /* [n_paths], names borrowed */
	size_t n_paths;
	struct shape shape;
	double normal[3];
	struct slice *slice;
	size_t n;
	int rc; /* of the first file that is wrong; err has the reason */
	struct err err;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* A term of Image Type for values that are no Hounsfield units, or those of one photon energy. */
static bool is_other_term(const char *term)
{
	static const char *const terms[] = {"VMI", "EFF_ATOMIC_NUM", "ELECTRON_DENSITY"};

	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
		if (!strcmp(term, terms[i]))
			return true;
	return !strncmp(term, "MAT_", 4);
}

/* Return true if the header says that the values are not Hounsfield units of a tube voltage. */
static bool has_other_values(const struct dicom_item *root, char *ret_values)
{
	char text[65] = "";

	if (dicom_get_text(root, TAG_RESCALE_TYPE, text, sizeof(text), NULL) == 1 && text[0] && strcasecmp(text, "HU") != 0 &&
	    strcasecmp(text, "US") != 0) {
		snprintf(ret_values, CT_VALUES_SIZE, "Rescale Type %s", text);
		return true;
	}
	for (unsigned i = 3; dicom_get_text_at(root, TAG_IMAGE_TYPE, i, text, sizeof(text), NULL) == 1; i++)
		if (is_other_term(text)) {
			snprintf(ret_values, CT_VALUES_SIZE, "Image Type %s", text);
			return true;
		}
	return false;
}

enum ct_object ct_object_of(const struct dicom_item *root, char *ret_values)
{
	char text[65] = "", unused[CT_VALUES_SIZE], *values = ret_values ? ret_values : unused;

	values[0] = '\0';
	dicom_get_text(root, TAG_SOP_CLASS_UID, text, sizeof(text), NULL);
	if (!strcmp(text, CLASS_ENHANCED_CT) || !strcmp(text, CLASS_LEGACY_ENHANCED_CT)) {
		snprintf(values, CT_VALUES_SIZE, "Enhanced CT, which is not read");
		return CT_OTHER;
	}
	if (strcmp(text, CLASS_CT) != 0)
		return CT_NO_SLICE;
	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 2, text, sizeof(text), NULL) == 1 && text[0] && strcmp(text, "AXIAL") != 0)
		return !strcmp(text, "LOCALIZER") ? CT_LOCALIZER : CT_SECONDARY;
	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 1, text, sizeof(text), NULL) == 1 && text[0] && strcmp(text, "PRIMARY") != 0)
		return CT_SECONDARY;
	return has_other_values(root, values) ? CT_OTHER : CT_SLICE;
}

static int read_numbers(const struct dicom_item *root, uint32_t tag, double *ret, unsigned n, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = dicom_get_double(root, tag, i, &ret[i], err);

		if (rc < 0)
			return rc;
		if (rc == 0 || !isfinite(ret[i]))
			return err_set(err, EBADMSG, "no %s", tag_text(tag));
	}
	return 0;
}

/* ---- headers ---- */

static int read_shape(const struct dicom_item *root, struct shape *ret, struct err *err)
{
	int rc = read_numbers(root, TAG_IMAGE_ORIENTATION_PATIENT, ret->cosines, 6, err);

	if (rc == 0)
		rc = read_numbers(root, TAG_PIXEL_SPACING, ret->spacing, 2, err);
	if (rc == 0 && (dicom_get_int(root, TAG_ROWS, 0, &ret->rows, NULL) != 1 ||
			dicom_get_int(root, TAG_COLUMNS, 0, &ret->columns, NULL) != 1))
		rc = err_set(err, EBADMSG, "no %s or %s", tag_text(TAG_ROWS), tag_text(TAG_COLUMNS));
	if (rc < 0)
		return rc;
	if (!(ret->spacing[0] > 0 && ret->spacing[1] > 0) || ret->rows < 1 || ret->columns < 1)
		return err_set(err, EBADMSG, "%ld x %ld pixels of %g x %g mm", ret->columns, ret->rows, ret->spacing[1],
			       ret->spacing[0]);
	if (fabs(dot(ret->cosines, ret->cosines) - 1) > UNIT_TOLERANCE ||
	    fabs(dot(ret->cosines + 3, ret->cosines + 3) - 1) > UNIT_TOLERANCE ||
	    fabs(dot(ret->cosines, ret->cosines + 3)) > UNIT_TOLERANCE)
		return err_set(err, EBADMSG, "%s: %g\\%g\\%g and %g\\%g\\%g are not orthogonal unit vectors",
			       tag_text(TAG_IMAGE_ORIENTATION_PATIENT), ret->cosines[0], ret->cosines[1], ret->cosines[2],
			       ret->cosines[3], ret->cosines[4], ret->cosines[5]);
	return 0;
}

/* Take what all slices share from the first one. */
static void begin_series(struct ct_headers *r, const struct dicom_item *root, const struct shape *shape)
{
	struct ct_series *s = r->s;

	r->shape = *shape;
	for (int c = 0; c < 3; c++) {
		int a = (c + 1) % 3, b = (c + 2) % 3;

		r->normal[c] = shape->cosines[a] * shape->cosines[3 + b] - shape->cosines[b] * shape->cosines[3 + a];
		s->step[0][c] = shape->cosines[c] * shape->spacing[1];
		s->step[1][c] = shape->cosines[3 + c] * shape->spacing[0];
	}
	s->n[0] = (int)shape->columns;
	s->n[1] = (int)shape->rows;
	if (dicom_get_utf8(root, TAG_CONTRAST_BOLUS_AGENT, s->contrast, sizeof(s->contrast), NULL) < 0)
		s->contrast[0] = '\0';
	dicom_get_text(root, TAG_STUDY_INSTANCE_UID, s->study, sizeof(s->study), NULL);
	dicom_get_text(root, TAG_SERIES_INSTANCE_UID, s->series, sizeof(s->series), NULL);
	dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, s->frame_of_reference, sizeof(s->frame_of_reference), NULL);
}

static int compare_slice(const struct ct_headers *r, const struct dicom_item *root, const struct shape *shape, struct err *err)
{
	char series[DICOM_UID_SIZE] = "", frame[DICOM_UID_SIZE] = "";

	dicom_get_text(root, TAG_SERIES_INSTANCE_UID, series, sizeof(series), NULL);
	dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, frame, sizeof(frame), NULL);
	if (strcmp(series, r->s->series) != 0)
		return err_set(err, EBADMSG, "two CT series, %s and %s: give one", r->s->series, series);
	if (strcmp(frame, r->s->frame_of_reference) != 0)
		return err_set(err, EBADMSG, "its frame of reference is %s, that of the slices before it %s", frame,
			       r->s->frame_of_reference);
	if (shape->columns != r->shape.columns || shape->rows != r->shape.rows)
		return err_set(err, EBADMSG, "%ld x %ld pixels, %ld x %ld in the slices before it", shape->columns, shape->rows,
			       r->shape.columns, r->shape.rows);
	for (int c = 0; c < 2; c++)
		if (fabs(shape->spacing[c] - r->shape.spacing[c]) > 1e-4)
			return err_set(err, EBADMSG, "%g\\%g mm between pixels, %g\\%g in the slices before it",
				       shape->spacing[0], shape->spacing[1], r->shape.spacing[0], r->shape.spacing[1]);
	for (int c = 0; c < 6; c++)
		if (fabs(shape->cosines[c] - r->shape.cosines[c]) > UNIT_TOLERANCE)
			return err_set(err, EBADMSG, "%s differs from that of the slices before it",
				       tag_text(TAG_IMAGE_ORIENTATION_PATIENT));
	return 0;
}

/* Take the tube voltage, or compare it with that of the slices before. */
static int add_voltage(struct ct_series *s, const struct dicom_item *root, struct err *err)
{
	char text[65] = "";
	double kvp;

	if (dicom_get_text(root, TAG_MULTI_ENERGY_CT_ACQUISITION, text, sizeof(text), NULL) == 1 && !strcmp(text, "YES"))
		s->multi_energy = true;
	if (dicom_get_double(root, TAG_KVP, 0, &kvp, NULL) != 1 || !(kvp > 0))
		return 0;
	if (isnan(s->kvp))
		s->kvp = kvp;
	if (fabs(kvp - s->kvp) > KVP_TOLERANCE)
		return err_set(err, EBADMSG, "KVP %s: %g kV, in the slices before it %g", tag_text(TAG_KVP), kvp, s->kvp);
	return 0;
}

static int add_slice(struct ct_headers *r, const struct dicom_item *root, size_t file, struct err *err)
{
	struct slice *slice = &r->slice[r->n];
	struct patient_identity patient;
	struct shape shape = {0};
	int rc = read_shape(root, &shape, err);

	if (rc == 0)
		rc = read_numbers(root, TAG_IMAGE_POSITION_PATIENT, slice->at, 3, err);
	if (rc < 0)
		return rc;
	if (r->n == 0)
		begin_series(r, root, &shape);
	else
		rc = compare_slice(r, root, &shape, err);
	if (rc == 0)
		rc = add_voltage(r->s, root, err);
	dicom_get_text(root, TAG_SOP_INSTANCE_UID, slice->sop_instance, sizeof(slice->sop_instance), NULL);
	patient_read(root, NULL, &patient);
	patient_set_add(&r->s->patients, &patient, (int64_t)file);
	slice->depth = dot(slice->at, r->normal);
	slice->file = file;
	r->n++;
	return rc;
}

void ct_headers_add(struct ct_headers *h, const char *path, const struct dicom_item *root)
{
	char values[CT_VALUES_SIZE];

	if (h->rc < 0)
		return;
	h->paths[h->n_paths] = path;
	switch (ct_object_of(root, values)) {
	case CT_SLICE:
		h->rc = add_slice(h, root, h->n_paths, &h->err);
		break;
	case CT_LOCALIZER:
		h->s->localizers++;
		break;
	case CT_SECONDARY:
		h->s->secondaries++;
		break;
	case CT_OTHER:
		if (h->s->others++ == 0)
			memcpy(h->s->values, values, sizeof(values));
		break;
	default:
		h->rc = err_set(&h->err, EBADMSG, "not a CT image");
	}
	h->n_paths++;
	if (h->rc < 0)
		err_prefix(&h->err, "CT: %s", base_name(path));
}

struct ct_headers *ct_headers_free(struct ct_headers *h)
{
	if (h) {
		ct_series_close(h->s);
		free(h->slice);
		free(h->paths);
	}
	free(h);
	return NULL;
}

struct ct_headers *ct_headers_new(size_t n)
{
	struct ct_headers *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->s = calloc(1, sizeof(*h->s));
	h->slice = calloc(n + 1, sizeof(*h->slice));
	h->paths = calloc(n + 1, sizeof(*h->paths));
	if (h->s)
		h->s->kvp = NAN;
	return h->s && h->slice && h->paths ? h : ct_headers_free(h);
}

/* ---- order ---- */

static int by_name(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;
	int difference = strcmp(x->sop_instance, y->sop_instance);

	return difference ? difference : (x->file > y->file) - (x->file < y->file);
}

static int by_depth(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Keep the first of the files that repeat an object. */
static void drop_repeated(struct ct_headers *r)
{
	size_t kept = 0;

	qsort(r->slice, r->n, sizeof(*r->slice), by_name);
	for (size_t i = 0; i < r->n; i++)
		if (kept == 0 || strcmp(r->slice[kept - 1].sop_instance, r->slice[i].sop_instance) != 0)
			r->slice[kept++] = r->slice[i];
	r->n = kept;
}

static int median_order(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Return the median distance of neighbouring slices, mm. NaN: no memory. */
static double usual_distance(const struct ct_headers *r)
{
	double *distance = malloc(r->n * sizeof(*distance)), median = NAN;

	for (size_t k = 1; distance && k < r->n; k++)
		distance[k - 1] = r->slice[k].depth - r->slice[k - 1].depth;
	if (distance) {
		qsort(distance, r->n - 1, sizeof(*distance), median_order);
		median = distance[(r->n - 1) / 2];
	}
	free(distance);
	return median;
}

/* Name the first two slices that are not at the usual distance. */
static int refuse_distance(const struct ct_headers *r, size_t k, double usual, struct err *err)
{
	double found = r->slice[k].depth - r->slice[k - 1].depth;
	const char *a = base_name(r->paths[r->slice[k - 1].file]), *b = base_name(r->paths[r->slice[k].file]);

	if (found < PLACE_TOLERANCE)
		return err_set(err, EBADMSG, "CT: %.80s and %.80s are at the same place (%.2f mm): two volumes in one series", a,
			       b, r->slice[k].depth);
	return err_set(err, EBADMSG,
		       "CT: %.80s at %.2f mm and %.80s at %.2f mm are %.2f mm apart, the others %.2f mm: slices are missing, or "
		       "the distances are not equal",
		       a, r->slice[k - 1].depth, b, r->slice[k].depth, found, usual);
}

static int order_slices(struct ct_headers *r, struct err *err)
{
	struct ct_series *s = r->s;
	double usual;

	if (r->n == 0 && s->others > 0)
		return err_set(err, EBADMSG, "CT: none of the objects is a slice with Hounsfield units of a tube voltage: %s",
			       s->values);
	if (r->n == 0)
		return err_set(err, EBADMSG, "CT: none of the objects is a slice: %zu localizers, %zu secondary images",
			       s->localizers, s->secondaries);
	drop_repeated(r);
	if (r->n < 2)
		return err_set(err, EBADMSG, "CT: only one slice, %.80s", base_name(r->paths[r->slice[0].file]));
	qsort(r->slice, r->n, sizeof(*r->slice), by_depth);
	usual = usual_distance(r);
	for (size_t k = 1; k < r->n; k++)
		if (!(fabs(r->slice[k].depth - r->slice[k - 1].depth - usual) <= PLACE_TOLERANCE) || usual < PLACE_TOLERANCE)
			return refuse_distance(r, k, usual, err);
	for (int c = 0; c < 3; c++) {
		s->at[c] = r->slice[0].at[c];
		s->step[2][c] = (r->slice[r->n - 1].at[c] - r->slice[0].at[c]) / (double)(r->n - 1);
	}
	for (size_t k = 0; k < r->n; k++)
		for (int c = 0; c < 3; c++) {
			double expected = s->at[c] + (double)k * s->step[2][c];

			if (fabs(r->slice[k].at[c] - expected) > 2 * PLACE_TOLERANCE)
				return err_set(err, EBADMSG, "CT: %.80s is at (%g, %g, %g) mm, off the line of the other slices",
					       base_name(r->paths[r->slice[k].file]), r->slice[k].at[0], r->slice[k].at[1],
					       r->slice[k].at[2]);
		}
	s->n[2] = (int)r->n;
	return 0;
}

static int check_patient(const struct ct_headers *r, struct err *err)
{
	struct patient_conflict conflict;
	char text[PATIENT_TEXT_SIZE], between[300];

	if (!patient_set_conflict(&r->s->patients, &conflict))
		return 0;
	snprintf(between, sizeof(between), "between %.120s and %.120s", base_name(r->paths[conflict.header[0]]),
		 base_name(r->paths[conflict.header[1]]));
	patient_conflict_text(&conflict, between, text, sizeof(text));
	return err_set(err, ENOTUNIQ, "CT: %s", text);
}

static int keep_paths(const struct ct_headers *r, struct err *err)
{
	r->s->path = calloc(r->n, sizeof(*r->s->path));
	if (!r->s->path)
		return err_set(err, ENOMEM, "CT: no memory for %zu names of files", r->n);
	for (size_t k = 0; k < r->n; k++)
		r->s->path[k] = r->paths[r->slice[k].file];
	return 0;
}

/* ---- pixels ---- */

static int convert_slice(const struct dicom_item *root, const struct dicom_pixel_info *info, const uint16_t *stored, int16_t *ret,
			 struct err *err)
{
	size_t n = (size_t)info->rows * (size_t)info->columns;
	int sign = info->is_signed ? 1 << (info->bits_stored - 1) : 0;
	double slope, intercept;
	int rc = read_numbers(root, TAG_RESCALE_SLOPE, &slope, 1, err);

	if (rc == 0)
		rc = read_numbers(root, TAG_RESCALE_INTERCEPT, &intercept, 1, err);
	for (size_t i = 0; rc == 0 && i < n; i++) /* the bits above those stored are 0: extend the sign of negative values */
		ret[i] = (int16_t)lrint(fmin(fmax(((stored[i] ^ sign) - sign) * slope + intercept, INT16_MIN), INT16_MAX));
	return rc;
}

/* Return what the pixels without an image have as HU; INT_MIN: not known. */
static int padding_of(const struct dicom_item *root, const struct dicom_pixel_info *info)
{
	double slope, intercept;
	long stored;

	if (dicom_get_int(root, TAG_PIXEL_PADDING_VALUE, 0, &stored, NULL) != 1 ||
	    read_numbers(root, TAG_RESCALE_SLOPE, &slope, 1, NULL) < 0 ||
	    read_numbers(root, TAG_RESCALE_INTERCEPT, &intercept, 1, NULL) < 0)
		return INT_MIN;
	if (info->is_signed && stored > INT16_MAX) /* written as unsigned */
		stored -= 65536;
	return (int)lrint(fmin(fmax((double)stored * slope + intercept, INT16_MIN), INT16_MAX));
}

static int read_slice(struct ct_series *s, int k, uint16_t *stored, struct err *err)
{
	size_t pixels = (size_t)s->n[0] * (size_t)s->n[1];
	struct dicom_pixel_info info;
	struct dicom_file *file = NULL;
	int rc = dicom_open(s->path[k], &file, err);

	if (rc == 0)
		rc = dicom_pixels_info(file, &info, err);
	if (rc == 0 && (info.frames != 1 || info.columns != s->n[0] || info.rows != s->n[1]))
		rc = err_set(err, EBADMSG, "%ld frames of %ld x %ld pixels", info.frames, info.columns, info.rows);
	if (rc == 0)
		rc = dicom_read_frame(file, 0, stored, err);
	if (rc == 0)
		rc = convert_slice(dicom_root(file), &info, stored, s->hu + (size_t)k * pixels, err);
	if (rc == 0 && k == 0)
		s->padding = padding_of(dicom_root(file), &info);
	dicom_close(file);
	if (rc < 0)
		err_prefix(err, "CT: %s", base_name(s->path[k]));
	return rc;
}

size_t ct_series_bytes(const struct ct_series *s)
{
	return (size_t)s->n[0] * (size_t)s->n[1] * (size_t)s->n[2] * sizeof(*s->hu);
}

int ct_series_read(struct ct_series *s, struct err *err)
{
	uint16_t *stored = malloc((size_t)s->n[0] * (size_t)s->n[1] * sizeof(*stored));
	int rc = 0;

	s->hu = malloc(ct_series_bytes(s));
	if (!stored || !s->hu)
		rc = err_set(err, ENOMEM, "CT: no memory for %d x %d x %d voxels", s->n[0], s->n[1], s->n[2]);
	for (int k = 0; rc == 0 && k < s->n[2]; k++)
		rc = read_slice(s, k, stored, err);
	free(stored);
	return rc;
}

int ct_series_open(struct ct_headers *h, struct ct_series **ret, struct err *err)
{
	int rc = h->rc;

	if (rc < 0 && err)
		*err = h->err;
	if (rc == 0)
		rc = order_slices(h, err);
	if (rc == 0)
		rc = check_patient(h, err);
	if (rc == 0)
		rc = keep_paths(h, err);
	if (rc < 0)
		return rc;
	*ret = h->s;
	h->s = NULL;
	return 0;
}

struct ct_series *ct_series_close(struct ct_series *s)
{
	if (s) {
		free(s->hu);
		free(s->path);
	}
	free(s);
	return NULL;
}
