/* SPDX-License-Identifier: Apache-2.0 */
#include "node/format/correction_pictures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/atomic_file.h"
#include "node/base/own_files.h"
#include "node/base/text_file.h"

#define KIND "corrections"
#define VERSION 1
#define FILE_MOST ((size_t)8 << 20) /* bytes */
#define DIGITS 6		    /* of a number in the file */
#define LARGEST 1e30

static const char *const curves[] = {"prompts", "randoms", "scatter"};
#define CURVES 3

static double **curve_of(struct correction_profile *p, int i)
{
	return i == 0 ? &p->prompts : i == 1 ? &p->randoms : &p->scatter;
}

void correction_pictures_clear(struct correction_pictures *p)
{
	for (int i = 0; i < CORRECTION_PLANES; i++) {
		free(p->mu[i].value);
		for (int k = 0; k < CURVES; k++)
			free(*curve_of(&p->profile[i], k));
	}
	free(p->acf.value);
	free(p->radius);
	*p = (struct correction_pictures){0};
}

/* ---- encode ---- */

static json_t *encode_numbers(const double *v, int n)
{
	json_t *list = v ? json_array() : json_null();

	for (int i = 0; v && i < n; i++)
		json_array_append_new(list, json_real(v[i]));
	return list;
}

static json_t *encode_map(const struct correction_map *m)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = (size_t)m->width * (size_t)m->height;
	char *text = m->value ? malloc(2 * n + 1) : NULL;
	json_t *map;

	if (!text)
		return json_null();
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[m->value[i] >> 4];
		text[2 * i + 1] = digits[m->value[i] & 15];
	}
	text[2 * n] = '\0';
	map = json_pack("{s:[i,i], s:o, s:[f,f], s:o, s:o, s:s}", "pixels", m->width, m->height, "size",
			encode_numbers(m->size, 2), "range", m->lowest, m->highest, "across", encode_numbers(m->across, 3),
			"down", encode_numbers(m->down, 3), "values", text);
	free(text);
	return map;
}

json_t *correction_pictures_encode(const struct correction_pictures *p)
{
	json_t *mu = json_array(), *profiles = json_array();
	json_t *image = p->n_images > 0 ? json_pack("[s,i,i]", p->image, p->number, p->n_images) : json_null();

	for (int i = 0; i < CORRECTION_PLANES; i++)
		json_array_append_new(mu, encode_map(&p->mu[i]));
	for (int i = 0; i < p->n_profiles; i++) {
		struct correction_profile of = p->profile[i];
		json_t *profile = json_pack("{s:i, s:f}", "plane", of.plane, "position_mm", of.position);

		for (int k = 0; k < CURVES; k++)
			json_object_set_new(profile, curves[k], encode_numbers(*curve_of(&of, k), p->n_radial));
		json_array_append_new(profiles, profile);
	}
	return json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "tomonode", KIND, "version", VERSION, "series",
			 p->series, "image", image, "mu", mu, "acf", encode_map(&p->acf), "acf_plane", p->acf_plane, "planes",
			 p->n_planes, "radius_mm", encode_numbers(p->radius, p->n_radial), "profiles", profiles);
}

/* ---- decode ---- */

static int refuse_member(const char *what, struct err *err)
{
	return err_set(err, EBADMSG, "'%s' is missing or has another form", what);
}

static bool is_series(const char *text)
{
	size_t n = text ? strspn(text, "0123456789.") : 0;

	return n > 0 && n < sizeof(((struct correction_pictures *)0)->series) && !text[n];
}

static bool decode_int(const json_t *from, int least, int most, int *ret)
{
	json_int_t v = json_integer_value(from);

	*ret = (int)v;
	return json_is_integer(from) && v >= least && v <= most;
}

static bool decode_number(const json_t *from, double *ret)
{
	*ret = json_number_value(from);
	return json_is_number(from) && isfinite(*ret) && fabs(*ret) <= LARGEST;
}

static bool decode_numbers(const json_t *from, size_t n, double *ret)
{
	if (!json_is_array(from) || json_array_size(from) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!decode_number(json_array_get(from, i), &ret[i]))
			return false;
	return true;
}

/* Decode n numbers to new memory; null: *ret stays NULL. */
static bool decode_list(const json_t *from, int n, double **ret)
{
	if (json_is_null(from))
		return true;
	*ret = malloc(((size_t)n + 1) * sizeof(**ret));
	return *ret && decode_numbers(from, (size_t)n, *ret);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode_bytes(const json_t *from, size_t n, unsigned char *ret)
{
	const char *text = json_string_value(from);

	if (!text || json_string_length(from) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static bool decode_map(const json_t *from, struct correction_map *ret)
{
	const json_t *pixels = json_object_get(from, "pixels");
	double range[2];
	size_t n;

	if (json_is_null(from))
		return true;
	if (json_array_size(pixels) != 2 || !decode_int(json_array_get(pixels, 0), 1, CORRECTION_SIDE, &ret->width) ||
	    !decode_int(json_array_get(pixels, 1), 1, CORRECTION_SIDE, &ret->height) ||
	    !decode_numbers(json_object_get(from, "size"), 2, ret->size) || !(ret->size[0] > 0) || !(ret->size[1] > 0) ||
	    !decode_numbers(json_object_get(from, "range"), 2, range) || range[0] > range[1] ||
	    !decode_numbers(json_object_get(from, "across"), 3, ret->across) ||
	    !decode_numbers(json_object_get(from, "down"), 3, ret->down))
		return false;
	ret->lowest = range[0];
	ret->highest = range[1];
	n = (size_t)ret->width * (size_t)ret->height;
	ret->value = malloc(n);
	return ret->value && decode_bytes(json_object_get(from, "values"), n, ret->value);
}

static bool decode_image(const json_t *from, struct correction_pictures *ret)
{
	static const char *const names[] = {"time frame", "gate", "bed"};
	const char *name = json_string_value(json_array_get(from, 0));

	if (json_is_null(from))
		return true;
	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			strcpy(ret->image, name);
	return ret->image[0] && decode_int(json_array_get(from, 2), 1, 100000, &ret->n_images) &&
	       decode_int(json_array_get(from, 1), 1, ret->n_images, &ret->number);
}

static bool decode_profiles(const json_t *from, struct correction_pictures *ret)
{
	size_t n = json_array_size(from);

	if (!json_is_array(from) || n > CORRECTION_PLANES)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(from, i);
		struct correction_profile *p = &ret->profile[i];

		if (!decode_int(json_object_get(one, "plane"), 0, ret->n_planes - 1, &p->plane) ||
		    !decode_number(json_object_get(one, "position_mm"), &p->position))
			return false;
		for (int k = 0; k < CURVES; k++)
			if (!decode_list(json_object_get(one, curves[k]), ret->n_radial, curve_of(p, k)))
				return false;
	}
	ret->n_profiles = (int)n;
	return true;
}

static int decode_pictures(const json_t *from, struct correction_pictures *p, struct err *err)
{
	const json_t *mu = json_object_get(from, "mu"), *radius = json_object_get(from, "radius_mm");
	const char *kind = json_string_value(json_object_get(from, "tomonode"));
	const char *series = json_string_value(json_object_get(from, "series"));
	int version;

	if (!kind || strcmp(kind, KIND) != 0)
		return refuse_member("tomonode", err);
	if (!decode_int(json_object_get(from, "version"), VERSION, VERSION, &version))
		return refuse_member("version", err);
	if (!is_series(series))
		return refuse_member("series", err);
	strcpy(p->series, series);
	if (!decode_image(json_object_get(from, "image"), p))
		return refuse_member("image", err);
	if (json_array_size(mu) != CORRECTION_PLANES)
		return refuse_member("mu", err);
	for (int i = 0; i < CORRECTION_PLANES; i++)
		if (!decode_map(json_array_get(mu, (size_t)i), &p->mu[i]))
			return refuse_member("mu", err);
	if (!decode_map(json_object_get(from, "acf"), &p->acf))
		return refuse_member("acf", err);
	if (!decode_int(json_object_get(from, "planes"), 0, 1 << 20, &p->n_planes))
		return refuse_member("planes", err);
	if (!decode_int(json_object_get(from, "acf_plane"), 0, p->n_planes > 0 ? p->n_planes - 1 : 0, &p->acf_plane))
		return refuse_member("acf_plane", err);
	p->n_radial = (int)json_array_size(radius);
	if (p->n_radial > CORRECTION_BINS || !decode_list(radius, p->n_radial, &p->radius))
		return refuse_member("radius_mm", err);
	return decode_profiles(json_object_get(from, "profiles"), p) ? 0 : refuse_member("profiles", err);
}

int correction_pictures_decode(const json_t *from, struct correction_pictures *ret_pictures, struct err *err)
{
	struct correction_pictures p = {0};
	int rc = decode_pictures(from, &p, err);

	if (rc < 0)
		correction_pictures_clear(&p);
	else
		*ret_pictures = p;
	return rc;
}

/* ---- file ---- */

int correction_pictures_path(const char *folder, const char *series, char *ret_path, size_t size, struct err *err)
{
	if (snprintf(ret_path, size, "%s/" OWN_CORRECTIONS "%s.json", folder, series) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of the pictures of the corrections in %s is too long", folder);
	return 0;
}

static int write_checked(const struct correction_pictures *p, const char *folder, struct err *err)
{
	json_t *all = correction_pictures_encode(p);
	char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL, path[500];
	int rc = text ? correction_pictures_path(folder, p->series, path, sizeof(path), err)
		      : err_set(err, ENOMEM, "no memory for the pictures of the corrections");

	if (rc == 0)
		rc = atomic_file_put(path, text, strlen(text), err);
	free(text);
	json_decref(all);
	return rc;
}

int correction_pictures_write(const json_t *from, const char *folder, const char *series, struct err *err)
{
	struct correction_pictures p = {0};
	int rc = correction_pictures_decode(from, &p, err);

	if (rc == 0 && strcmp(p.series, series) != 0)
		rc = err_set(err, EBADMSG, "they are of the series %s, not of %.64s", p.series, series);
	if (rc == 0)
		rc = write_checked(&p, folder, err);
	correction_pictures_clear(&p);
	return rc;
}

int correction_pictures_read(const char *folder, const char *series, struct correction_pictures *ret_pictures, struct err *err)
{
	struct correction_pictures p = {0};
	char path[500], *text = NULL;
	json_error_t why;
	json_t *all;
	size_t n = 0;
	int rc = correction_pictures_path(folder, series, path, sizeof(path), err);

	if (rc == 0)
		rc = text_file_read(path, FILE_MOST, "file of pictures", &text, &n, err);
	if (rc < 0)
		return rc;
	all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	free(text);
	if (!all)
		return err_set(err, EBADMSG, "no JSON: %s", why.text);
	rc = correction_pictures_decode(all, &p, err);
	json_decref(all);
	if (rc == 0 && strcmp(p.series, series) != 0) {
		rc = err_set(err, EBADMSG, "it is of the series %s", p.series);
		correction_pictures_clear(&p);
	}
	if (rc == 0)
		*ret_pictures = p;
	return rc;
}
