/* SPDX-License-Identifier: Apache-2.0 */
/* exam_flatfield.c - read the profile's flat field: one exposure without object for all projections, or one for each angle.
 *
 * The path is that of a DICOM file, or of a folder of DICOM files. If there is more than one frame, each has an angle as a
 * projection has, and each projection uses the frame at the nearest angle. All frames are divided by the mean of the one at the
 * angle nearest to 0; so the differences between frames stay, divided by their exposures if the profile scales by exposure. A
 * frame of a set is read when its projection is converted: 25 frames of ten million bins would need 1 GB. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/tomo/exam_internal.h"

#define ANGLE_MOST 1.0 /* largest difference of the angles of a projection and of its frame, degrees */
#define PATH_SIZE 600

struct flat_frame {
	struct dicom_file *file;
	long frame;
	double angle, charge; /* degrees; mAs, 0: unknown */
	bool mirror_columns, mirror_rows;
};

struct exam_flatfield {
	size_t n_files;
	struct dicom_file *files[EXAM_VIEWS_MAX];
	char *paths[EXAM_VIEWS_MAX];
	int n;
	struct flat_frame frames[EXAM_VIEWS_MAX];
	int of_view[EXAM_VIEWS_MAX]; /* index of a view's frame */
	int reference;
};

/* Determine how to mirror a frame so that it has the orientation of the projections. Its own (0020,0020) is read as that of a
 * left or right CC image. */
static int read_flips(const struct header *h, struct flat_frame *f, struct err *err)
{
	double axis[3][3];
	char text[64];
	int found = header_text(h, TAG_PATIENT_ORIENTATION, text, sizeof(text), err);

	if (found < 0)
		return found;
	if (!found)
		return err_set(err, EBADMSG,
			       "it has no Patient Orientation (0020,0020), so its orientation on the detector is unknown");
	orientation_axes('L', 0, axis);
	return orientation_parse(text, axis, &f->mirror_columns, &f->mirror_rows, err);
}

static int check_pixels(const struct exam *exam, const struct dicom_pixel_info *info, struct err *err)
{
	if (info->columns != exam->pixels.columns || info->rows != exam->pixels.rows)
		return err_set(err, EBADMSG, "it has %ld x %ld pixels, the projections have %ld x %ld", info->columns, info->rows,
			       exam->pixels.columns, exam->pixels.rows);
	if (info->is_signed || info->bits_stored != exam->pixels.bits_stored)
		return err_set(err, EBADMSG, "it has %s values of %d bits, the projections have unsigned ones of %d",
			       info->is_signed ? "signed" : "unsigned", info->bits_stored, exam->pixels.bits_stored);
	return 0;
}

static bool has_origin(const struct header *h)
{
	double value;

	return header_double(h, TAG_FIELD_OF_VIEW_ORIGIN, 0, &value, NULL) == 1;
}

/* Check that a frame shows the same part of the detector as the projections. */
static int check_window(const struct exam *exam, const struct header *h, const struct flat_frame *f, struct err *err)
{
	struct header projection = exam_header(exam, 0);
	struct exam flat = *exam; /* exam_read_window() sets its window */
	double pitch = exam->scan->h[0];
	int rc;

	if (has_origin(h) != has_origin(&projection))
		return err_set(
			err, EBADMSG,
			"it has %s Field of View Origin (0018,7030), unlike the projections: whether it shows the same part "
			"of the detector is unknown",
			has_origin(h) ? "a" : "no");
	flat.columns_toward_chest = f->mirror_columns;
	flat.rows_toward_minus_y = f->mirror_rows;
	rc = exam_read_window(&flat, h, pitch, err);
	for (int i = 0; rc == 0 && i < 2; i++)
		if (fabs(flat.window[i] - exam->window[i]) > 1.001 * pitch)
			rc = err_set(
				err, EBADMSG,
				"Field of View Origin (0018,7030): it shows the detector at %c = %g mm, the projections at %g mm",
				"xy"[i], flat.window[i], exam->window[i]);
	return rc;
}

static int add_frames(const struct exam *exam, struct exam_flatfield *set, struct dicom_file *file, struct err *err)
{
	struct dicom_pixel_info info;
	int rc = dicom_pixels_info(file, &info, err);

	if (rc == 0)
		rc = check_pixels(exam, &info, err);
	for (long i = 0; rc == 0 && i < info.frames; i++) {
		struct flat_frame f = {.file = file, .frame = i};
		struct header h = {.root = dicom_root(file), .frame = info.frames > 1 ? i : -1};

		if (set->n == EXAM_VIEWS_MAX)
			return err_set(err, EBADMSG, "more than %d frames", EXAM_VIEWS_MAX);
		rc = read_flips(&h, &f, err);
		if (rc == 0)
			rc = check_window(exam, &h, &f, err);
		f.charge = exam_read_charge(&h, exam->charge_tag);
		set->frames[set->n++] = f;
	}
	return rc;
}

static int add_file(struct exam_flatfield *set, const char *path, struct err *err)
{
	struct dicom_file *file = NULL;
	int rc;

	if (set->n_files == EXAM_VIEWS_MAX)
		return err_set(err, EBADMSG, "more than %d files", EXAM_VIEWS_MAX);
	rc = dicom_open(path, &file, err);
	if (rc < 0)
		return rc;
	set->files[set->n_files++] = file;
	set->paths[set->n_files - 1] = strdup(path);
	return set->paths[set->n_files - 1] ? 0 : err_set(err, ENOMEM, "no memory for a path");
}

/* Compute the digest of the content of all files, in the order of their names. */
static int digest_of(const struct exam_flatfield *set, char ret_hex[DIGEST_SIZE], struct err *err)
{
	struct digest *all = digest_create();
	char(*hex)[DIGEST_SIZE] = calloc(set->n_files, sizeof(*hex));
	int *code = calloc(set->n_files, sizeof(*code));
	int rc = all && hex && code ? digest_files((const char *const *)set->paths, set->n_files, 0, hex, code, err)
				    : err_set(err, ENOMEM, "no memory for the digests of %zu files", set->n_files);

	for (size_t i = 0; rc == 0 && i < set->n_files; i++) {
		if (code[i])
			rc = err_set(err, code[i], "%s: %s", file_name(set->paths[i]), strerror(code[i]));
		digest_add(all, hex[i], DIGEST_SIZE);
	}
	if (rc == 0)
		digest_end(all, ret_hex);
	digest_free(all);
	free(hex);
	free(code);
	return rc;
}

static int is_visible(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && !(n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0);
}

/* Add the files of a folder; ENOTDIR: it is a file. */
static int add_folder(struct exam_flatfield *set, const char *folder, struct err *err)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_visible, alphasort), rc = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		char path[PATH_SIZE];

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (rc == 0 && (rc = add_file(set, path, err)) < 0)
			err_prefix(err, "%s", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (n < 0 && rc != -ENOTDIR && rc != -ENOENT)
		return err_set(err, -rc, "the folder %s cannot be read: %s", folder, strerror(-rc));
	return n != 0 ? rc : err_set(err, EBADMSG, "the folder %s has no files", folder);
}

/* Open all files of the path, that of a folder or of a file. */
static int open_files(struct exam_flatfield *set, const char *path, struct err *err)
{
	int rc = set ? add_folder(set, path, err) : err_set(err, ENOMEM, "no memory for a flat field");

	return rc == -ENOTDIR || rc == -ENOENT ? add_file(set, path, err) : rc;
}

static int read_angles(const struct exam *exam, struct exam_flatfield *set, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < set->n; i++) {
		struct flat_frame *f = &set->frames[i];
		struct dicom_pixel_info info;
		struct exam_view view = {0};

		rc = dicom_pixels_info(f->file, &info, err);
		if (rc == 0)
			rc = exam_read_angle(exam, f->file, info.frames > 1 ? f->frame : -1, &view, err);
		if (rc < 0)
			err_prefix(err, "frame %d", i + 1);
		f->angle = view.angle;
	}
	return rc;
}

static int nearest_frame(const struct exam_flatfield *set, double angle)
{
	int best = 0;

	for (int i = 1; i < set->n; i++)
		if (fabs(set->frames[i].angle - angle) < fabs(set->frames[best].angle - angle))
			best = i;
	return best;
}

/* Find the frame of each view. */
static int match_frames(const struct exam *exam, struct exam_flatfield *set, struct err *err)
{
	int rc = set->n > 1 ? read_angles(exam, set, err) : 0;

	set->reference = nearest_frame(set, 0);
	for (int i = 0; rc == 0 && i < exam->n_views; i++) {
		double angle = exam->views[i].angle, found;

		set->of_view[i] = nearest_frame(set, angle);
		found = set->frames[set->of_view[i]].angle;
		if (set->n > 1 && !(fabs(found - angle) <= ANGLE_MOST))
			rc = err_set(
				err, EBADMSG,
				"none of its %d frames is within %g degree of the projection at %g degrees; the nearest is at %g",
				set->n, ANGLE_MOST, angle, found);
	}
	if (rc == 0 && set->n > 1 && exam->profile->open_field_distance)
		rc = err_set(
			err, EBADMSG,
			"its %d frames include the distance of the source; allowed with open_field = \"distance\": one frame",
			set->n);
	return rc;
}

/* Read a frame, oriented as the projections. */
static int read_frame(const struct exam *exam, const struct flat_frame *f, uint16_t *values, struct err *err)
{
	int rc = dicom_read_frame(f->file, f->frame, values, err);

	if (rc == 0)
		orientation_turn(values, (size_t)exam->pixels.columns, (size_t)exam->pixels.rows, f->mirror_columns,
				 f->mirror_rows);
	return rc;
}

static void divide_frame(const struct exam *exam, const uint16_t *values, double by, float *ret)
{
	for (size_t i = 0; i < (size_t)exam->pixels.columns * (size_t)exam->pixels.rows; i++)
		ret[i] = (float)(fmax(exam_value_intensity(&exam->prep, values[i]), 0) / by);
}

static void warn_flatness(struct exam *exam, struct exam_flatness flat)
{
	if (flat.dark > 0)
		exam_warn(exam,
			  "The flat field of the profile '%s' shows an object: %.0f %% of it, without the shadow of a collimator "
			  "at its sides, are darker than a third of its bright part.",
			  exam->profile->name, 100 * flat.dark);
	if (flat.spot > 0)
		exam_warn(exam,
			  "The flat field of the profile '%s' is exposed in %.0f %% of the image only, as with a collimator for "
			  "spot views: the rest of the projections cannot be corrected.",
			  exam->profile->name, 100 * flat.spot);
	if (flat.rough > 0)
		exam_warn(
			exam,
			"The flat field of the profile '%s' is not smooth: it deviates by %.0f %% (root mean square) from a smooth "
			"field, as with a plate over a part of it or a thin breast.",
			exam->profile->name, 100 * expm1(flat.rough));
}

/* Measure the level of the reference; keep its values if it is the only frame. */
static int read_reference(struct exam *exam, struct exam_flatfield *set, struct err *err)
{
	size_t n = (size_t)exam->pixels.columns * (size_t)exam->pixels.rows;
	uint16_t *values = malloc(n * sizeof(*values));
	double sum = 0;
	int rc = values ? read_frame(exam, &set->frames[set->reference], values, err)
			: err_set(err, ENOMEM, "no memory for %zu pixels", n);

	for (size_t i = 0; rc == 0 && i < n; i++)
		sum += fmax(exam_value_intensity(&exam->prep, values[i]), 0);
	exam->flatfield_level = sum / (double)n;
	if (rc == 0 && !(exam->flatfield_level > 0))
		rc = err_set(err, EBADMSG, "its mean is %g above the offset", exam->flatfield_level);
	if (rc == 0)
		warn_flatness(exam, exam_flatness_of(&exam->prep, values));
	if (rc == 0 && set->n == 1) {
		exam->flatfield = malloc(n * sizeof(*exam->flatfield));
		if (exam->flatfield)
			divide_frame(exam, values, exam->flatfield_level, exam->flatfield);
		else
			rc = err_set(err, ENOMEM, "no memory for %zu pixels", n);
	}
	free(values);
	return rc;
}

int exam_open_flatfield(struct exam *exam, struct err *err)
{
	const char *path = exam->profile->flatfield_copy[0] ? exam->profile->flatfield_copy : exam->profile->flatfield;
	int rc;

	exam->flatfields = calloc(1, sizeof(*exam->flatfields));
	rc = open_files(exam->flatfields, path, err);
	for (size_t i = 0; rc == 0 && i < exam->flatfields->n_files; i++) {
		rc = add_frames(exam, exam->flatfields, exam->flatfields->files[i], err);
		if (rc < 0)
			err_prefix(err, "%s", file_name(exam->flatfields->paths[i]));
	}
	if (rc == 0)
		rc = match_frames(exam, exam->flatfields, err);
	if (rc == 0)
		rc = read_reference(exam, exam->flatfields, err);
	if (rc == 0)
		rc = digest_of(exam->flatfields, exam->flatfield_digest, err);
	return rc < 0 ? err_prefix(err, "flat field of the profile '%s'", exam->profile->name) : 0;
}

int exam_flatfield_readable(const char *path, struct err *err)
{
	struct exam_flatfield *set = calloc(1, sizeof(*set));
	int rc = open_files(set, path, err);

	exam_close_flatfield(set);
	return rc;
}

double exam_flatfield_charge(const struct exam *exam, double *ret_lo, double *ret_hi)
{
	const struct exam_flatfield *set = exam->flatfields;

	*ret_lo = INFINITY;
	*ret_hi = 0;
	for (int i = 0; i < set->n; i++) {
		if (!(set->frames[i].charge > 0))
			return 0;
		*ret_lo = fmin(*ret_lo, set->frames[i].charge);
		*ret_hi = fmax(*ret_hi, set->frames[i].charge);
	}
	return set->frames[set->reference].charge;
}

int exam_load_flatfield(const struct exam *exam, int view, float **buffer, struct prep *prep, struct err *err)
{
	const struct exam_flatfield *set = exam->flatfields;
	size_t n = (size_t)exam->pixels.columns * (size_t)exam->pixels.rows;
	const struct flat_frame *f;
	uint16_t *values;
	double by;
	int rc;

	if (!set || set->n == 1)
		return 0;
	f = &set->frames[set->of_view[view]];
	by = exam->flatfield_level;
	if (exam->flatfield_scaled)
		by *= f->charge / set->frames[set->reference].charge;
	values = malloc(n * sizeof(*values));
	if (!*buffer)
		*buffer = malloc(n * sizeof(**buffer));
	rc = values && *buffer ? read_frame(exam, f, values, err) : err_set(err, ENOMEM, "no memory for %zu pixels", n);
	if (rc == 0) {
		divide_frame(exam, values, by, *buffer);
		prep->flatfield = *buffer;
	}
	free(values);
	return rc < 0 ? err_prefix(err, "flat field of the profile '%s'", exam->profile->name) : 0;
}

bool exam_flatfield_of_angles(const struct exam *exam)
{
	return exam->flatfields && exam->flatfields->n > 1;
}

struct exam_flatfield *exam_close_flatfield(struct exam_flatfield *set)
{
	for (size_t i = 0; set && i < set->n_files; i++) {
		dicom_close(set->files[i]);
		free(set->paths[i]);
	}
	free(set);
	return NULL;
}

const char *exam_used_flatfield(const struct exam *exam)
{
	bool used = false;

	for (int i = 0; exam->i0 && i < exam->n_views; i++)
		used = used || exam->i0[i].use_flatfield;
	return used ? exam->flatfield_digest : "";
}
