/* SPDX-License-Identifier: Apache-2.0 */
/* image_series.c - see node/tools/image_series.h. Each file is opened once: header and values are read, then it is closed; of a
 * lazy series the values are read from the file each time they are asked for. At the end, Number of Slices and the distances show
 * whether the series is complete. */
#include "node/tools/image_series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "dicom/object/patient.h"
#include "dicom/object/slice_plane.h"
#include "node/base/folder.h"
#include "node/sinogram/sinogram.h"

#define IMAGES_MAX 10000
#define PLACE_TOLERANCE 0.02 /* tolerance in mm: DS values of slice positions are often rounded */

struct placed {
	struct slice_place place;
	int image;
	struct image_time time;
};

struct reading {
	struct image_series *s;
	struct placed *placed;
	struct slice_plane first;
	size_t n, room;
	long announced;	    /* number of slices of an image in the header; 0: none */
	bool counted;	    /* true: the number of slices must be `announced` */
	uint32_t count_tag; /* tag of that number */
	double thickness;   /* thickness of a slice, mm; 0: none */
	uint16_t *stored;
	struct patient_set patients; /* a header is known by the index of its file */
};

/* ---- one object ---- */

static bool is_class(const struct dicom_item *root, const char *sop_class)
{
	char found[DICOM_UID_SIZE] = "";

	dicom_get_text(root, TAG_SOP_CLASS_UID, found, sizeof(found), NULL);
	return !strcmp(found, sop_class);
}

static bool is_pet(const struct dicom_item *root)
{
	return is_class(root, CLASS_PET);
}

struct plane {
	struct slice_plane place;
	double slope, intercept;
	char units[17];
	struct dicom_pixel_info info;
};

static int read_plane(struct dicom_file *file, struct plane *p, struct err *err)
{
	const struct dicom_item *root = dicom_root(file);
	int r = dicom_pixels_info(file, &p->info, err);

	if (r == 0 && p->info.frames != 1)
		r = err_set(err, EBADMSG, "%ld frames in one image", p->info.frames);
	if (r == 0)
		r = slice_plane_read(root, &p->place, err);
	if (r == 0)
		r = attribute_numbers(root, TAG_RESCALE_SLOPE, &p->slope, 1, err);
	if (r == 0)
		r = attribute_numbers(root, TAG_RESCALE_INTERCEPT, &p->intercept, 1, err);
	if (r == 0)
		dicom_get_text(root, is_pet(root) ? TAG_UNITS : TAG_RESCALE_TYPE, p->units, sizeof(p->units), NULL);
	return r;
}

/* Read a number that must be there and positive. */
static int read_count(const struct dicom_item *root, uint32_t tag, long *ret, struct err *err)
{
	int rc = dicom_get_int(root, tag, 0, ret, err);

	if (rc < 0)
		return rc;
	if (rc == 0 || *ret < 1 || *ret > IMAGES_MAX)
		return err_set(err, EBADMSG, "%s is %ld; allowed: 1 to %d", tag_text(tag), rc ? *ret : 0, IMAGES_MAX);
	return 0;
}

/* Find out how many images the series has. */
static int count_images(struct reading *r, const struct dicom_item *root, struct err *err)
{
	struct image_series *s = r->s;
	long intervals = 1, n = 1;
	char type[65] = "";
	int rc = 0;

	dicom_get_text_at(root, TAG_SERIES_TYPE, 0, type, sizeof(type), NULL);
	snprintf(s->type, sizeof(s->type), "%.16s", type);
	if (!strcmp(type, "DYNAMIC"))
		rc = read_count(root, TAG_NUMBER_OF_TIME_SLICES, &n, err);
	else if (!strcmp(type, "GATED"))
		rc = read_count(root, TAG_NUMBER_OF_TIME_SLOTS, &n, err);
	if (rc == 0 && !strcmp(type, "GATED"))
		rc = read_count(root, TAG_NUMBER_OF_R_R_INTERVALS, &intervals, err);
	n *= intervals;
	if (rc == 0 && n > 1 && (r->announced < 1 || n > IMAGES_MAX))
		rc = err_set(err, EBADMSG, "%ld images of %ld slices (%s)", n, r->announced, tag_text(TAG_NUMBER_OF_SLICES));
	s->n_images = (int)n;
	return rc;
}

/* Take the window of CT (PS3.3 C.11.2.1.2); the slices of PET may each have their own. */
static void read_window(struct image_series *s, const struct dicom_item *root)
{
	char function[17] = "";
	double centre, width;

	s->window[0] = s->window[1] = NAN;
	if (is_pet(root) || dicom_get_double(root, TAG_WINDOW_CENTER, 0, &centre, NULL) != 1 ||
	    dicom_get_double(root, TAG_WINDOW_WIDTH, 0, &width, NULL) != 1 || !(width > 0))
		return;
	dicom_get_text(root, TAG_VOI_LUT_FUNCTION, function, sizeof(function), NULL);
	if (strcmp(function, "LINEAR_EXACT") != 0) { /* LINEAR, the default: for integers */
		centre -= 0.5;
		width -= 1;
	}
	s->window[0] = centre - width / 2;
	s->window[1] = centre + width / 2;
}

static void read_position(struct image_series *s, const struct dicom_item *root)
{
	char derivation[2048] = "";
	struct pet_facts f;

	pet_facts_read(root, &f);
	memcpy(s->position, f.patient_position, sizeof(s->position));
	dicom_get_text(root, TAG_DERIVATION_DESCRIPTION, derivation, sizeof(derivation), NULL);
	s->position_assumed = strstr(derivation, SINOGRAM_NO_POSITION) != NULL;
}

/* Take the properties that all objects must share from the first object. */
static int begin_series(struct reading *r, const struct dicom_item *root, const struct plane *p, struct err *err)
{
	struct image_series *s = r->s;
	size_t slice = (size_t)p->info.rows * (size_t)p->info.columns;
	double ms;

	r->first = p->place;
	s->n[0] = (int)p->info.columns;
	s->n[1] = (int)p->info.rows;
	s->spacing[0] = p->place.spacing[1];
	s->spacing[1] = p->place.spacing[0];
	memcpy(s->across, p->place.cosines, sizeof(s->across));
	memcpy(s->down, p->place.cosines + 3, sizeof(s->down));
	slice_plane_normal(&p->place, s->normal);
	memcpy(s->series, p->place.series, sizeof(s->series));
	memcpy(s->frame_of_reference, p->place.frame_of_reference, sizeof(s->frame_of_reference));
	s->ct = !is_pet(root);
	memcpy(s->units, p->units, sizeof(s->units));
	read_window(s, root);
	read_position(s, root);
	s->duration = dicom_get_double(root, TAG_ACTUAL_FRAME_DURATION, 0, &ms, NULL) == 1 && ms > 0 ? ms / 1000 : NAN;
	/* a CT series may hold several acquisitions, or part of one: its number is only used to detect a single slice */
	r->count_tag = is_pet(root) ? TAG_NUMBER_OF_SLICES : TAG_IMAGES_IN_ACQUISITION;
	if (dicom_get_int(root, r->count_tag, 0, &r->announced, NULL) != 1)
		r->announced = 0;
	r->counted = is_pet(root);
	if (dicom_get_double(root, TAG_SLICE_THICKNESS, 0, &r->thickness, NULL) != 1)
		r->thickness = 0;
	r->stored = malloc(slice * sizeof(*r->stored));
	s->values = malloc((s->paths ? 1 : r->room) * slice * sizeof(*s->values));
	if (!r->stored || !s->values)
		return err_set(err, ENOMEM, "no memory for %zu slices of %ld x %ld", s->paths ? 1 : r->room, p->info.columns,
			       p->info.rows);
	return count_images(r, root, err);
}

/* Read a time in ms as s. */
static double seconds_of(const struct dicom_item *root, uint32_t tag)
{
	double ms;

	return dicom_get_double(root, tag, 0, &ms, NULL) == 1 ? ms / 1000 : NAN;
}

/* Seconds since 1970 of a date and time. */
static double moment_of(const struct dicom_item *root, uint32_t date_tag, uint32_t time_tag)
{
	char date[9] = "", time[17] = "";
	double seconds;

	dicom_get_text(root, date_tag, date, sizeof(date), NULL);
	dicom_get_text(root, time_tag, time, sizeof(time), NULL);
	return pet_facts_moment(date, time, &seconds) ? seconds : NAN;
}

static struct image_time read_time(const struct image_series *s, const struct dicom_item *root)
{
	if (!strcmp(s->type, "GATED"))
		return (struct image_time){seconds_of(root, TAG_TRIGGER_TIME), seconds_of(root, TAG_FRAME_TIME),
					   seconds_of(root, TAG_TIME_SLOT_TIME)};
	return (struct image_time){moment_of(root, TAG_ACQUISITION_DATE, TAG_ACQUISITION_TIME) -
					   moment_of(root, TAG_SERIES_DATE, TAG_SERIES_TIME),
				   seconds_of(root, TAG_ACTUAL_FRAME_DURATION), NAN};
}

/* Find which image of the series an object is a slice of, by Image Index: slices are counted within an image. */
static int place_image(const struct reading *r, const struct dicom_item *root, struct placed *p, struct err *err)
{
	const struct image_series *s = r->s;
	long index = 0, last = r->announced * s->n_images;
	int rc;

	p->image = 0;
	p->time = read_time(s, root);
	if (s->n_images == 1)
		return 0;
	rc = dicom_get_int(root, TAG_IMAGE_INDEX, 0, &index, err);
	if (rc < 0)
		return rc;
	if (rc == 0 || index < 1 || index > last)
		return err_set(err, EBADMSG, "%s is %ld; allowed: 1 to %ld", tag_text(TAG_IMAGE_INDEX), index, last);
	p->image = (int)((index - 1) / r->announced);
	return 0;
}

/* stored: memory for a slice */
static int read_values(struct dicom_file *file, const struct plane *p, uint16_t *stored, float *ret_values, struct err *err)
{
	size_t n = (size_t)p->info.rows * (size_t)p->info.columns;
	int rc = dicom_read_frame(file, 0, stored, err);

	for (size_t i = 0; rc == 0 && i < n; i++)
		ret_values[i] = (float)(slice_stored_value(&p->info, stored[i]) * p->slope + p->intercept);
	return rc;
}

static int add_object(struct reading *r, struct dicom_file *file, struct err *err)
{
	const struct dicom_item *root = dicom_root(file);
	struct placed *placed = &r->placed[r->n];
	char sop_class[DICOM_UID_SIZE] = "";
	struct patient_identity patient;
	struct plane p = {0};
	int rc;

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	if (!is_pet(root) && !is_class(root, CLASS_CT))
		return err_set(err, EBADMSG, "%s is neither a PET nor a CT image", dicom_uid_name(sop_class));
	rc = read_plane(file, &p, err);
	if (rc == 0)
		rc = r->n == 0 ? begin_series(r, root, &p, err) : slice_plane_compare(&r->first, &p.place, err);
	if (rc == 0 && strcmp(p.units, r->s->units) != 0)
		rc = err_set(err, EBADMSG, "units are \"%s\", \"%s\" in the slices before it", p.units, r->s->units);
	if (rc == 0)
		rc = slice_place_read(root, r->s->normal, r->n, &placed->place, err);
	if (rc == 0)
		rc = place_image(r, root, placed, err);
	if (rc == 0 && !r->s->paths)
		rc = read_values(file, &p, r->stored, r->s->values + r->n * (size_t)r->s->n[0] * (size_t)r->s->n[1], err);
	if (rc < 0)
		return rc;
	patient_read(root, NULL, &patient);
	patient_set_add(&r->patients, &patient, (int64_t)r->n);
	r->n++;
	return 0;
}

/* ---- the series ---- */

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->image != y->image ? x->image - y->image : (x->place.depth > y->place.depth) - (x->place.depth < y->place.depth);
}

/* Check that every image has the same number of slices, and store the times. The slices are in order. */
static int place_images(struct reading *r, size_t slices, struct err *err)
{
	struct image_series *s = r->s;

	s->time = calloc((size_t)s->n_images, sizeof(*s->time));
	if (!s->time)
		return err_set(err, ENOMEM, "no memory for %d images", s->n_images);
	for (size_t i = 0; i < r->n; i++) {
		if (r->placed[i].image != (int)(i / slices))
			return err_set(err, EBADMSG, "image %d of %d does not have %zu slices (%s)", (int)(i / slices) + 1,
				       s->n_images, slices, tag_text(TAG_IMAGE_INDEX));
		s->time[r->placed[i].image] = r->placed[i].time;
	}
	return 0;
}

/* Check that the objects are of one patient. */
static int check_patient(const struct reading *r, char *const *paths, struct err *err)
{
	struct patient_conflict conflict;
	char text[PATIENT_TEXT_SIZE], between[2 * 256];

	if (!patient_set_conflict(&r->patients, &conflict))
		return 0;
	snprintf(between, sizeof(between), "between %.200s and %.200s", file_name(paths[conflict.header[0]]),
		 file_name(paths[conflict.header[1]]));
	patient_conflict_text(&conflict, between, text, sizeof(text));
	return err_set(err, EBADMSG, "the objects are not of one patient: %s", text);
}

/* Check that the slices are equally spaced, aligned, and complete. */
static int place_slices(struct reading *r, struct err *err)
{
	struct image_series *s = r->s;
	size_t slices;
	double step, last[3];
	int rc;

	if (r->n == 0)
		return err_set(err, EBADMSG, "none of the files is a PET or CT image");
	r->n = slice_places_unique(r->placed, r->n, sizeof(*r->placed));
	if (r->counted && r->announced > 0 && (size_t)(r->announced * s->n_images) != r->n)
		return err_set(err, EBADMSG, "the series is incomplete: %zu of %ld slices (%s)", r->n, r->announced * s->n_images,
			       tag_text(TAG_NUMBER_OF_SLICES));
	slices = r->n / (size_t)s->n_images;
	qsort(r->placed, r->n, sizeof(*r->placed), by_place);
	rc = place_images(r, slices, err);
	if (rc < 0)
		return rc;
	memcpy(s->corner, r->placed[0].place.at, sizeof(s->corner));
	step = slices > 1 ? (r->placed[slices - 1].place.depth - r->placed[0].place.depth) / (double)(slices - 1) : r->thickness;
	if (slices == 1 && (r->announced != 1 || !(step > 0)))
		return err_set(err, EBADMSG,
			       "the only slice does not have both the number of slices of its series and its thickness (%s, %s)",
			       tag_text(TAG_NUMBER_OF_SLICES), tag_text(TAG_SLICE_THICKNESS));
	for (size_t k = 0; k < r->n; k++) {
		for (int c = 0; c < 3; c++)
			last[c] = r->placed[k].place.at[c] - s->corner[c] - (double)(k % slices) * step * s->normal[c];
		if (!(step > PLACE_TOLERANCE) || hypot(hypot(last[0], last[1]), last[2]) > PLACE_TOLERANCE)
			return err_set(err, EBADMSG,
				       "slice %zu of %zu is %g mm away from its position at an equal spacing of %g mm: slices "
				       "are missing or belong to several volumes",
				       k + 1, r->n, hypot(hypot(last[0], last[1]), last[2]), step);
		s->order[k] = r->placed[k].place.file;
	}
	s->n[2] = (int)slices;
	s->spacing[2] = step;
	return 0;
}

static void free_paths(char **paths)
{
	for (size_t i = 0; paths && paths[i]; i++)
		free(paths[i]);
	free(paths);
}

static int keep_paths(struct image_series *s, char *const *paths, size_t n, struct err *err)
{
	bool kept = true;

	s->paths = calloc(n + 1, sizeof(*s->paths));
	for (size_t i = 0; i < n && s->paths && kept; i++)
		kept = (s->paths[i] = strdup(paths[i])) != NULL;
	return s->paths && kept ? 0 : err_set(err, ENOMEM, "no memory for the names of %zu files", n);
}

int image_series_open(char *const *paths, size_t n, bool lazy, struct image_series **ret_series, struct err *err)
{
	struct reading r = {.room = n};
	int rc = 0;

	r.s = calloc(1, sizeof(*r.s));
	r.placed = calloc(n + 1, sizeof(*r.placed));
	if (r.s)
		r.s->order = calloc(n + 1, sizeof(*r.s->order));
	if (!r.s || !r.placed || !r.s->order) {
		rc = err_set(err, ENOMEM, "no memory for %zu slices", n);
		goto out;
	}
	if (lazy)
		rc = keep_paths(r.s, paths, n, err);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		struct dicom_file *file = NULL;

		rc = dicom_open(paths[i], &file, err);
		if (rc >= 0)
			rc = add_object(&r, file, err);
		if (rc < 0)
			err_prefix(err, "%s", file_name(paths[i]));
		dicom_close(file);
	}
	if (rc >= 0)
		rc = check_patient(&r, paths, err);
	if (rc >= 0)
		rc = place_slices(&r, err);
	if (rc < 0)
		goto out;
	*ret_series = r.s;
	r.s = NULL;
	rc = 0;
out:
	image_series_close(r.s);
	free(r.placed);
	free(r.stored);
	return rc;
}

/* ---- a tomosynthesis ---- */

/* Compute the one distance of the slices; of a single slice it is its thickness. */
static int tomo_step(const struct tomo_object *t, double *ret_step, struct err *err)
{
	long n = t->info.frames;
	double step = n > 1 ? (t->depth[n - 1] - t->depth[0]) / (double)(n - 1) : t->thickness;

	if (!(step > PLACE_TOLERANCE))
		return err_set(err, EBADMSG, "the distance of the slices is %g mm; that of a single slice is %s", step,
			       tag_text(TAG_SLICE_THICKNESS));
	for (long k = 0; k < n; k++)
		if (fabs(t->depth[k] - (double)k * step) > PLACE_TOLERANCE)
			return err_set(err, EBADMSG,
				       "slice %ld of %ld is %g mm away from its position at an equal spacing of %g mm", k + 1, n,
				       fabs(t->depth[k] - (double)k * step), step);
	*ret_step = step;
	return 0;
}

int image_series_of_tomo(struct tomo_object **tomo, const char *path, struct image_series **ret_series, struct err *err)
{
	const struct tomo_object *t = *tomo;
	struct image_series *s = calloc(1, sizeof(*s));
	double step = 0;
	int rc = s ? tomo_step(t, &step, err) : err_set(err, ENOMEM, "no memory for a series");

	if (rc == 0) {
		*s = (struct image_series){.n = {(int)t->info.columns, (int)t->info.rows, (int)t->info.frames},
					   .n_images = 1,
					   .spacing = {t->spacing[0], t->spacing[1], step},
					   .duration = NAN};
		memcpy(s->across, t->across, sizeof(s->across));
		memcpy(s->down, t->down, sizeof(s->down));
		memcpy(s->normal, t->normal, sizeof(s->normal));
		memcpy(s->corner, t->corner, sizeof(s->corner));
		memcpy(s->units, t->units, sizeof(s->units));
		memcpy(s->frame_of_reference, t->frame_of_reference, sizeof(s->frame_of_reference));
		snprintf(s->name, sizeof(s->name), "%s", file_name(path));
		memcpy(s->window, t->window, sizeof(s->window));
		dicom_get_text(dicom_root(t->file), TAG_SERIES_INSTANCE_UID, s->series, sizeof(s->series), NULL);
		s->values = malloc((size_t)s->n[0] * (size_t)s->n[1] * sizeof(*s->values));
		if (!s->values)
			rc = err_set(err, ENOMEM, "no memory for a slice of %d x %d", s->n[0], s->n[1]);
	}
	if (rc < 0) {
		image_series_close(s);
		return rc;
	}
	s->tomo = *tomo;
	*tomo = NULL;
	*ret_series = s;
	return 0;
}

/* Read the only frame, rescaled. */
static int read_view(struct dicom_file *file, struct image_series *s, struct err *err)
{
	const struct dicom_item *root = dicom_root(file);
	struct plane p = {.slope = 1};
	char photometric[17] = "";
	double spacing[2];
	uint16_t *stored;
	size_t n;
	int rc = dicom_pixels_info(file, &p.info, err);

	dicom_get_text(root, TAG_PHOTOMETRIC_INTERPRETATION, photometric, sizeof(photometric), NULL);
	if (rc == 0 && p.info.frames != 1)
		rc = err_set(err, EBADMSG, "%ld frames in one view", p.info.frames);
	if (rc == 0 && strcmp(photometric, "MONOCHROME2") != 0)
		rc = err_set(err, EBADMSG, "Photometric Interpretation %s is '%s'; allowed: MONOCHROME2",
			     tag_text(TAG_PHOTOMETRIC_INTERPRETATION), photometric);
	if (rc == 0)
		rc = attribute_numbers(root, TAG_PIXEL_SPACING, spacing, 2, err);
	if (rc < 0)
		return rc;
	if (!(spacing[0] > 0 && spacing[1] > 0))
		return err_set(err, EBADMSG, "Pixel Spacing %s is %g\\%g mm; allowed: above 0", tag_text(TAG_PIXEL_SPACING),
			       spacing[0], spacing[1]);
	*s = (struct image_series){.n = {(int)p.info.columns, (int)p.info.rows, 1},
				   .n_images = 1,
				   .view = true,
				   .spacing = {spacing[1], spacing[0], 0},
				   .duration = NAN};
	dicom_get_double(root, TAG_RESCALE_SLOPE, 0, &p.slope, NULL);
	dicom_get_double(root, TAG_RESCALE_INTERCEPT, 0, &p.intercept, NULL);
	dicom_get_text(root, TAG_RESCALE_TYPE, s->units, sizeof(s->units), NULL);
	dicom_get_text(root, TAG_SERIES_INSTANCE_UID, s->series, sizeof(s->series), NULL);
	read_window(s, root);
	n = (size_t)s->n[0] * (size_t)s->n[1];
	stored = malloc(n * sizeof(*stored));
	s->values = malloc(n * sizeof(*s->values));
	s->order = calloc(1, sizeof(*s->order));
	rc = stored && s->values && s->order ? read_values(file, &p, stored, s->values, err)
					     : err_set(err, ENOMEM, "no memory for a view of %d x %d", s->n[0], s->n[1]);
	free(stored);
	return rc;
}

int image_series_of_view(const char *path, struct image_series **ret_series, struct err *err)
{
	struct image_series *s = calloc(1, sizeof(*s));
	struct dicom_file *file = NULL;
	int rc = s ? dicom_open(path, &file, err) : err_set(err, ENOMEM, "no memory for a view");

	if (rc == 0)
		rc = read_view(file, s, err);
	dicom_close(file);
	if (rc < 0) {
		image_series_close(s);
		return err_prefix(err, "%s", file_name(path));
	}
	*ret_series = s;
	return 0;
}

struct image_series *image_series_close(struct image_series *s)
{
	if (s) {
		tomo_object_close(s->tomo);
		free_paths(s->paths);
		free(s->values);
		free(s->order);
		free(s->time);
		free(s);
	}
	return NULL;
}

void image_series_scale(struct image_series *s, double factor, const char *units)
{
	/* the slices that are used need not be the first ones */
	for (size_t k = 0; k < (size_t)s->n[2] * (size_t)s->n_images; k++) {
		float *values = s->values + s->order[k] * (size_t)s->n[0] * (size_t)s->n[1];

		for (size_t i = 0; i < (size_t)s->n[0] * (size_t)s->n[1]; i++)
			values[i] = (float)(values[i] * factor);
	}
	snprintf(s->units, sizeof(s->units), "%s", units);
}

/* Read the values of one file of a lazy series. */
static int read_file(const struct image_series *s, const char *path, struct err *err)
{
	struct dicom_file *file = NULL;
	uint16_t *stored = NULL;
	struct plane p = {0};
	int rc = dicom_open(path, &file, err);

	if (rc == 0)
		rc = read_plane(file, &p, err);
	if (rc == 0 && (p.info.columns != s->n[0] || p.info.rows != s->n[1]))
		rc = err_set(err, EBADMSG, "the slice has %ld x %ld pixels, no longer %d x %d", p.info.columns, p.info.rows,
			     s->n[0], s->n[1]);
	if (rc == 0) {
		stored = malloc((size_t)s->n[0] * (size_t)s->n[1] * sizeof(*stored));
		rc = stored ? read_values(file, &p, stored, s->values, err)
			    : err_set(err, ENOMEM, "no memory for a slice of %d x %d", s->n[0], s->n[1]);
	}
	free(stored);
	dicom_close(file);
	return rc < 0 ? err_prefix(err, "%s", file_name(path)) : 0;
}

int image_series_slice(const struct image_series *s, int image, int k, const float **ret_values, struct err *err)
{
	size_t at;

	if (s->tomo) {
		int rc = tomo_object_slice(s->tomo, k, s->values, err);

		*ret_values = s->values;
		return rc < 0 ? err_prefix(err, "%s", s->name) : 0;
	}
	at = s->order[(size_t)image * (size_t)s->n[2] + (size_t)k];
	*ret_values = s->values + (s->paths ? 0 : at) * (size_t)s->n[0] * (size_t)s->n[1];
	return s->paths ? read_file(s, s->paths[at], err) : 0;
}

const char *image_series_unit(const char *code)
{
	static const char *const units[][2] = {
		{"/mm", "1/mm"},
		{"1", "relative units"},
		{"BQML", "Bq/ml"},
		{"CNTS", "counts"},
		{"CPS", "counts/s"},
		{"PROPCNTS", "proportional to counts"},
		{"PROPCPS", "proportional to counts/s"},
		{"1CM", "1/cm"},
		{"GML", "g/ml (SUV)"},
		{"US", ""}, /* unspecified */
		{"NONE", ""},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(code, units[i][0]))
			return units[i][1];
	return code;
}
