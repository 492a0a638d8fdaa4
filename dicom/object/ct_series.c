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
#include "dicom/object/slice_plane.h"
#include "dicom/pixels/pixels.h"

#define PLACE_TOLERANCE 0.05 /* mm: positions are decimal strings, often rounded */
#define KVP_TOLERANCE 1.0    /* kV: measured values differ a little */
#define MAP_AIR 1000	     /* what is subtracted from the values of a map */

/* The headers of one series. */
struct ct_group {
	struct ct_series *s;	  /* NULL: it was opened */
	struct slice_plane plane; /* of all slices */
	double normal[3];
	struct slice_place *slice;
	size_t n;
};

struct ct_headers {
	const char **paths; /* [n_paths], names borrowed */
	size_t n_paths, n_most;
	struct ct_group group[CT_SERIES_MOST]; /* that of the patient, with the skipped objects of all; then those of hardware */
	int n_groups;
	int rc; /* of the first file that is wrong; err has the reason */
	struct err err;
};

static const struct {
	const char *name, *word, *found; /* found: in a Series Description or Image Type */
} parts[CT_PARTS] = {[CT_PATIENT] = {"patient", "map from MR", NULL},
		     [CT_TABLE] = {"table", "map of the table", "TABLE"},
		     [CT_COILS] = {"coils", "map of coils", "COIL"},
		     [CT_HARDWARE] = {"hardware", "map of hardware", "HARDWARE"}};

const char *ct_part_word(enum ct_part part)
{
	return parts[part].name;
}

bool ct_part_named(const char *word, enum ct_part *ret)
{
	for (int p = 0; p < CT_PARTS; p++)
		if (!strcmp(word, parts[p].name)) {
			*ret = (enum ct_part)p;
			return true;
		}
	return false;
}

const char *ct_series_word(const struct ct_series *s)
{
	return s->is_map ? parts[s->part].word : "CT";
}

const struct ct_series *ct_headers_series(const struct ct_headers *h)
{
	return h->group[0].s;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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

struct word {
	uint32_t tag;
	const char *has;
};

static bool has_words(const struct dicom_item *root, const struct word words[3])
{
	char text[65] = "";

	for (int i = 0; i < 3; i++)
		if (dicom_get_text(root, words[i].tag, text, sizeof(text), NULL) != 1 || !strcasestr(text, words[i].has))
			return false;
	return true;
}

/* Is it a slice of the attenuation map of a PET and MR scanner? */
static bool is_map(const struct dicom_item *root)
{
	static const struct word words[] = {
		{TAG_MANUFACTURER, "SIEMENS"}, {TAG_MANUFACTURER_MODEL_NAME, "mMR"}, {TAG_SERIES_DESCRIPTION, "UMAP"}};
	char text[65] = "";

	dicom_get_text(root, TAG_SOP_CLASS_UID, text, sizeof(text), NULL);
	return !strcmp(text, CLASS_MR) && has_words(root, words);
}

/* Is it one of a GE SIGNA PET/MR, in whatever class? */
static bool is_map_of_signa(const struct dicom_item *root)
{
	static const struct word words[] = {
		{TAG_MANUFACTURER, "GE MEDICAL"}, {TAG_MANUFACTURER_MODEL_NAME, "SIGNA"}, {TAG_SERIES_DESCRIPTION, "ACMAP"}};

	return has_words(root, words);
}

enum ct_part ct_part_of(const struct dicom_item *root)
{
	char text[65] = "";
	bool map = is_map(root);

	for (int p = CT_TABLE; map && p < CT_PARTS; p++) {
		dicom_get_text(root, TAG_SERIES_DESCRIPTION, text, sizeof(text), NULL);
		if (strcasestr(text, parts[p].found))
			return (enum ct_part)p;
		for (unsigned i = 2; dicom_get_text_at(root, TAG_IMAGE_TYPE, i, text, sizeof(text), NULL) == 1; i++)
			if (strcasestr(text, parts[p].found))
				return (enum ct_part)p;
	}
	return CT_PATIENT;
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
	if (is_map_of_signa(root)) {
		snprintf(values, CT_VALUES_SIZE,
			 "map of a GE SIGNA PET/MR, whose unit is not documented: recon --map FILE,unit=UNIT");
		return CT_OTHER;
	}
	if (strcmp(text, CLASS_CT) != 0)
		return is_map(root) ? CT_SLICE : CT_NO_SLICE;
	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 2, text, sizeof(text), NULL) == 1 && text[0] && strcmp(text, "AXIAL") != 0)
		return !strcmp(text, "LOCALIZER") ? CT_LOCALIZER : CT_SECONDARY;
	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 1, text, sizeof(text), NULL) == 1 && text[0] && strcmp(text, "PRIMARY") != 0)
		return CT_SECONDARY;
	return has_other_values(root, values) ? CT_OTHER : CT_SLICE;
}

/* ---- headers ---- */

/* Take what all slices share from the first one. */
static void begin_series(struct ct_group *r, const struct dicom_item *root)
{
	const struct slice_plane *p = &r->plane;
	struct ct_series *s = r->s;

	slice_plane_normal(p, r->normal);
	for (int c = 0; c < 3; c++) {
		s->step[0][c] = p->cosines[c] * p->spacing[1];
		s->step[1][c] = p->cosines[3 + c] * p->spacing[0];
	}
	s->is_map = is_map(root);
	s->part = ct_part_of(root);
	if (dicom_get_utf8(root, TAG_SERIES_DESCRIPTION, s->description, sizeof(s->description), NULL) < 0)
		s->description[0] = '\0';
	s->n[0] = (int)p->columns;
	s->n[1] = (int)p->rows;
	if (dicom_get_utf8(root, TAG_CONTRAST_BOLUS_AGENT, s->contrast, sizeof(s->contrast), NULL) < 0)
		s->contrast[0] = '\0';
	dicom_get_text(root, TAG_STUDY_INSTANCE_UID, s->study, sizeof(s->study), NULL);
	memcpy(s->series, p->series, sizeof(s->series));
	memcpy(s->frame_of_reference, p->frame_of_reference, sizeof(s->frame_of_reference));
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

/* Make an empty group. NULL: no memory. */
static struct ct_group *begin_group(struct ct_headers *h)
{
	struct ct_group *g = &h->group[h->n_groups];

	g->s = calloc(1, sizeof(*g->s));
	g->slice = calloc(h->n_most + 1, sizeof(*g->slice));
	h->n_groups++; /* what was allocated is freed with it */
	if (!g->s || !g->slice)
		return NULL;
	g->s->kvp = NAN;
	return g;
}

/* Return the group of a slice: what is no map of hardware is of the first one, which refuses a second series. NULL: err is set. */
static struct ct_group *find_group(struct ct_headers *h, const struct dicom_item *root, const struct slice_plane *plane,
				   struct err *err)
{
	struct ct_group *g = &h->group[0];

	if (ct_part_of(root) == CT_PATIENT)
		return g;
	for (int i = 1; i < h->n_groups; i++)
		if (!strcmp(h->group[i].plane.series, plane->series))
			return &h->group[i];
	if (h->n_groups == CT_SERIES_MOST) {
		err_set(err, EBADMSG, "more than %d series of maps", CT_SERIES_MOST);
		return NULL;
	}
	g = begin_group(h);
	if (!g)
		err_set(err, ENOMEM, "no memory for %d series", h->n_groups);
	return g;
}

static int add_slice(struct ct_headers *h, const struct dicom_item *root, struct err *err)
{
	struct patient_identity patient;
	struct slice_plane plane;
	struct ct_group *r;
	int rc = slice_plane_read(root, &plane, err);

	if (rc < 0)
		return rc;
	r = find_group(h, root, &plane, err);
	if (!r)
		return -err->code;
	if (r->n == 0) {
		r->plane = plane;
		begin_series(r, root);
	}
	rc = slice_place_read(root, r->normal, h->n_paths, &r->slice[r->n], err);
	if (rc == 0)
		rc = slice_plane_compare(&r->plane, &plane, err);
	if (rc == 0)
		rc = add_voltage(r->s, root, err);
	patient_read(root, NULL, &patient);
	patient_set_add(&h->group[0].s->patients, &patient, (int64_t)h->n_paths);
	r->n++;
	return rc;
}

void ct_headers_add(struct ct_headers *h, const char *path, const struct dicom_item *root)
{
	struct ct_series *s = h->group[0].s;
	char values[CT_VALUES_SIZE];

	if (h->rc < 0)
		return;
	h->paths[h->n_paths] = path;
	switch (ct_object_of(root, values)) {
	case CT_SLICE:
		h->rc = add_slice(h, root, &h->err);
		break;
	case CT_LOCALIZER:
		s->localizers++;
		break;
	case CT_SECONDARY:
		s->secondaries++;
		break;
	case CT_OTHER:
		if (s->others++ == 0)
			memcpy(s->values, values, sizeof(values));
		break;
	default:
		h->rc = err_set(&h->err, EBADMSG, "not a CT image");
	}
	h->n_paths++;
	if (h->rc < 0)
		err_prefix(&h->err, "%s: %s", is_map(root) ? parts[ct_part_of(root)].word : "CT", base_name(path));
}

struct ct_headers *ct_headers_free(struct ct_headers *h)
{
	for (int i = 0; h && i < h->n_groups; i++) {
		ct_series_close(h->group[i].s);
		free(h->group[i].slice);
	}
	if (h)
		free(h->paths);
	free(h);
	return NULL;
}

struct ct_headers *ct_headers_new(size_t n)
{
	struct ct_headers *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->n_most = n;
	h->paths = calloc(n + 1, sizeof(*h->paths));
	return begin_group(h) && h->paths ? h : ct_headers_free(h);
}

/* ---- order ---- */

static int by_depth(const void *a, const void *b)
{
	const struct slice_place *x = a, *y = b;

	return (x->depth > y->depth) - (x->depth < y->depth);
}

static int median_order(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Return the median distance of neighbouring slices, mm. NaN: no memory. */
static double usual_distance(const struct ct_group *r)
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
static int refuse_distance(const char *const *paths, const struct ct_group *r, size_t k, double usual, struct err *err)
{
	double found = r->slice[k].depth - r->slice[k - 1].depth;
	const char *a = base_name(paths[r->slice[k - 1].file]), *b = base_name(paths[r->slice[k].file]);

	if (found < PLACE_TOLERANCE)
		return err_set(err, EBADMSG, "%.80s and %.80s are at the same place (%.2f mm): two volumes in one series", a, b,
			       r->slice[k].depth);
	return err_set(err, EBADMSG,
		       "%.80s at %.2f mm and %.80s at %.2f mm are %.2f mm apart, the others %.2f mm: slices are missing, or "
		       "the distances are not equal",
		       a, r->slice[k - 1].depth, b, r->slice[k].depth, found, usual);
}

static int refuse_no_slices(const struct ct_headers *h, struct err *err)
{
	const struct ct_series *s = h->group[0].s;

	if (s->others > 0)
		return err_set(err, EBADMSG, "none of the objects is a slice with Hounsfield units of a tube voltage: %s",
			       s->values);
	if (h->n_groups > 1)
		return err_set(err, EBADMSG, "there is the %s, but none of the patient", ct_series_word(h->group[1].s));
	return err_set(err, EBADMSG, "none of the objects is a slice: %zu localizers, %zu secondary images", s->localizers,
		       s->secondaries);
}

static int order_slices(const char *const *paths, struct ct_group *r, struct err *err)
{
	struct ct_series *s = r->s;
	double usual;

	r->n = slice_places_unique(r->slice, r->n, sizeof(*r->slice));
	if (r->n < 2)
		return err_set(err, EBADMSG, "only one slice, %.80s", base_name(paths[r->slice[0].file]));
	qsort(r->slice, r->n, sizeof(*r->slice), by_depth);
	usual = usual_distance(r);
	for (size_t k = 1; k < r->n; k++)
		if (!(fabs(r->slice[k].depth - r->slice[k - 1].depth - usual) <= PLACE_TOLERANCE) || usual < PLACE_TOLERANCE)
			return refuse_distance(paths, r, k, usual, err);
	for (int c = 0; c < 3; c++) {
		s->at[c] = r->slice[0].at[c];
		s->step[2][c] = (r->slice[r->n - 1].at[c] - r->slice[0].at[c]) / (double)(r->n - 1);
	}
	for (size_t k = 0; k < r->n; k++)
		for (int c = 0; c < 3; c++) {
			double expected = s->at[c] + (double)k * s->step[2][c];

			if (fabs(r->slice[k].at[c] - expected) > 2 * PLACE_TOLERANCE)
				return err_set(err, EBADMSG, "%.80s is at (%g, %g, %g) mm, off the line of the other slices",
					       base_name(paths[r->slice[k].file]), r->slice[k].at[0], r->slice[k].at[1],
					       r->slice[k].at[2]);
		}
	s->n[2] = (int)r->n;
	return 0;
}

static int check_patient(const struct ct_headers *r, struct err *err)
{
	struct patient_conflict conflict;
	char text[PATIENT_TEXT_SIZE], between[300];

	if (!patient_set_conflict(&r->group[0].s->patients, &conflict))
		return 0;
	snprintf(between, sizeof(between), "between %.120s and %.120s", base_name(r->paths[conflict.header[0]]),
		 base_name(r->paths[conflict.header[1]]));
	patient_conflict_text(&conflict, between, text, sizeof(text));
	return err_set(err, ENOTUNIQ, "%s", text);
}

static int keep_paths(const char *const *paths, const struct ct_group *r, struct err *err)
{
	r->s->path = calloc(r->n, sizeof(*r->s->path));
	if (!r->s->path)
		return err_set(err, ENOMEM, "no memory for %zu names of files", r->n);
	for (size_t k = 0; k < r->n; k++)
		r->s->path[k] = paths[r->slice[k].file];
	return 0;
}

/* ---- pixels ---- */

/* Read how stored values become Hounsfield units, or values of a map, which need not say it. */
static int read_scale(const struct dicom_item *root, bool map, double *ret_slope, double *ret_intercept, struct err *err)
{
	int rc = 0;

	*ret_slope = 1;
	*ret_intercept = 0;
	if (!map || dicom_has(root, TAG_RESCALE_SLOPE))
		rc = attribute_numbers(root, TAG_RESCALE_SLOPE, ret_slope, 1, err);
	if (rc == 0 && (!map || dicom_has(root, TAG_RESCALE_INTERCEPT)))
		rc = attribute_numbers(root, TAG_RESCALE_INTERCEPT, ret_intercept, 1, err);
	*ret_intercept -= map ? MAP_AIR : 0;
	return rc;
}

static int convert_slice(const struct dicom_item *root, const struct dicom_pixel_info *info, bool map, const uint16_t *stored,
			 int16_t *ret, struct err *err)
{
	size_t n = (size_t)info->rows * (size_t)info->columns;
	double slope, intercept;
	int rc = read_scale(root, map, &slope, &intercept, err);

	for (size_t i = 0; rc == 0 && i < n; i++)
		ret[i] =
			(int16_t)lrint(fmin(fmax(slice_stored_value(info, stored[i]) * slope + intercept, INT16_MIN), INT16_MAX));
	return rc;
}

/* Return what the pixels without an image have as HU; INT_MIN: not known. */
static int padding_of(const struct dicom_item *root, const struct dicom_pixel_info *info, bool map)
{
	double slope, intercept;
	long stored;

	if (dicom_get_int(root, TAG_PIXEL_PADDING_VALUE, 0, &stored, NULL) != 1 ||
	    read_scale(root, map, &slope, &intercept, NULL) < 0)
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
		rc = convert_slice(dicom_root(file), &info, s->is_map, stored, s->hu + (size_t)k * pixels, err);
	if (rc == 0 && k == 0)
		s->padding = padding_of(dicom_root(file), &info, s->is_map);
	dicom_close(file);
	if (rc < 0)
		err_prefix(err, "%s: %s", ct_series_word(s), base_name(s->path[k]));
	return rc;
}

size_t ct_series_bytes(const struct ct_series *s)
{
	size_t bytes = 0;

	for (; s; s = s->next)
		bytes += (size_t)s->n[0] * (size_t)s->n[1] * (size_t)s->n[2] * sizeof(*s->hu);
	return bytes;
}

static int read_one(struct ct_series *s, struct err *err)
{
	size_t pixels = (size_t)s->n[0] * (size_t)s->n[1];
	uint16_t *stored = malloc(pixels * sizeof(*stored));
	int rc = 0;

	s->hu = malloc(pixels * (size_t)s->n[2] * sizeof(*s->hu));
	if (!stored || !s->hu)
		rc = err_set(err, ENOMEM, "%s: no memory for %d x %d x %d voxels", ct_series_word(s), s->n[0], s->n[1], s->n[2]);
	for (int k = 0; rc == 0 && k < s->n[2]; k++)
		rc = read_slice(s, k, stored, err);
	free(stored);
	return rc;
}

int ct_series_read(struct ct_series *s, struct err *err)
{
	int rc = 0;

	for (; rc == 0 && s; s = s->next)
		rc = s->hu ? 0 : read_one(s, err);
	return rc;
}

void ct_series_forget(struct ct_series *s)
{
	for (; s; s = s->next) {
		free(s->hu);
		s->hu = NULL;
	}
}

/* Put a series of hardware at its place in the order of parts, then of UIDs; a second table is refused. */
static int chain_series(struct ct_series *first, struct ct_group *g, struct err *err)
{
	const struct ct_series *s = g->s;
	struct ct_series *at = first;

	for (const struct ct_series *other = first; other; other = other->next)
		if (s->part == CT_TABLE && other->part == CT_TABLE)
			return err_set(err, EBADMSG, "two series, %s and %s: give one", other->series, s->series);
	while (at->next && (at->next->part < s->part || (at->next->part == s->part && strcmp(at->next->series, s->series) < 0)))
		at = at->next;
	g->s->next = at->next;
	at->next = g->s;
	g->s = NULL;
	return 0;
}

int ct_series_open(struct ct_headers *h, struct ct_series **ret, struct err *err)
{
	const char *word = ct_series_word(h->group[0].s);
	int rc = h->rc;

	if (rc < 0) {
		if (err)
			*err = h->err;
		return rc;
	}
	if (h->group[0].n == 0)
		rc = refuse_no_slices(h, err);
	for (int i = 0; rc == 0 && i < h->n_groups; i++) {
		word = ct_series_word(h->group[i].s);
		rc = order_slices(h->paths, &h->group[i], err);
		if (rc == 0)
			rc = keep_paths(h->paths, &h->group[i], err);
		if (rc == 0 && i > 0)
			rc = chain_series(h->group[0].s, &h->group[i], err);
	}
	if (rc == 0)
		rc = check_patient(h, err);
	if (rc < 0) {
		err_prefix(err, "%s", word);
		return rc;
	}
	*ret = h->group[0].s;
	h->group[0].s = NULL;
	return 0;
}

struct ct_series *ct_series_close(struct ct_series *s)
{
	while (s) {
		struct ct_series *next = s->next;

		free(s->hu);
		free(s->path);
		free(s);
		s = next;
	}
	return NULL;
}
