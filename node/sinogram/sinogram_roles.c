/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_roles.c - find headers that are given for a role which is not theirs. Factors have the type Emission in headers that
 * STIR and this program write. They are taken for what their file is called if their values agree: correction factors have no bin
 * with 0, which a scan has, and are no whole numbers, which counts are.
 *
 * Under any other name they are taken for factors only if their values can be nothing else. Attenuation correction factors that
 * were computed are exactly 1 (the number of pairs of detectors, if these were added) wherever a ray meets nothing, and above it
 * elsewhere; outside of the object a scan is 0, or noise. Efficiencies are around 1 in all bins up to the edge, where a scan has
 * much less than in its middle; this is believed only of a header without a duration.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/sinogram/factor_range.h"
#include "node/sinogram/sinogram_internal.h"

#define SAMPLE_PLANES 16
#define ATTENUATION_MEAN 1.0 /* the mean of attenuation correction factors is above it */

int sinogram_check_roles(const char *const header[SINOGRAM_ROLES + 1], struct err *err)
{
	struct stat a, b;

	for (int i = 1; i <= SINOGRAM_ROLES; i++)
		for (int k = 1; header[i] && stat(header[i], &a) == 0 && k < i; k++)
			if (header[k] && stat(header[k], &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
				return err_set(err, EINVAL, "%s is given for two roles: %s and %s", file_name(header[i]),
					       sinogram_role_name((enum sinogram_role)k),
					       sinogram_role_name((enum sinogram_role)i));
	return 0;
}

/* Map the data file of a role. NULL: it is made in memory, or cannot be read; whoever needs it reports it. */
static const uint8_t *map_data(const struct sinogram_stream *s)
{
	void *bytes = MAP_FAILED;
	int fd = s->present && s->path && !s->values && !s->make ? open(s->path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return NULL;
	bytes = mmap(NULL, s->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

/* Do both have the same values, and not the same one in all bins, as factors of 1 have? */
static bool same_values(const struct sinogram_stream *a, const struct sinogram_stream *b)
{
	uint64_t n = a->bytes - a->header.offset;
	size_t value = (size_t)a->header.bytes;
	const uint8_t *x, *y;
	bool same = false;

	if (n != b->bytes - b->header.offset || value == 0 || n <= value)
		return false;
	x = map_data(a);
	y = map_data(b);
	if (x && y)
		same = !memcmp(x + a->header.offset, y + b->header.offset, n) &&
		       memcmp(x + a->header.offset, x + a->header.offset + value, n - value) != 0;
	if (x)
		munmap((void *)x, a->bytes);
	if (y)
		munmap((void *)y, b->bytes);
	return same;
}

int sinogram_check_data(const struct sinogram_source *s, struct err *err)
{
	const char *const *header = s->conf->header;

	for (int i = 1; i <= SINOGRAM_ROLES; i++)
		for (int k = 1; header[i] && k < i; k++)
			if (header[k] && same_values(&s->stream[i], &s->stream[k]))
				return err_set(
					err, EBADMSG,
					"%s (%s) and %s (%s) have the same data, those of %s: one of the headers names the "
					"wrong file",
					file_name(header[k]), sinogram_role_name((enum sinogram_role)k), file_name(header[i]),
					sinogram_role_name((enum sinogram_role)i), s->stream[k].path);
	return 0;
}

#define AIR_LEAST 0.1	      /* of the bins of a plane meet nothing: a narrower field than any scanner's */
#define PLANES_ALIKE 0.9      /* of the planes: some may be damaged */
#define ATTENUATION_MOST 1e5  /* of air: of 1.2 m of water */
#define EFFICIENCY_RANGE 10.0 /* largest ratio of two values */
#define EFFICIENCY_MEAN 2.0   /* the mean is between this and its inverse */

struct range {
	double least, most, sum;
	size_t n, whole;	 /* values, and whole numbers among them */
	size_t planes, with_air; /* planes; those whose least value is a whole number above 0 that many bins have */
	size_t with_pairs;	 /* those where it is 1 or the number of pairs of detectors, as of factors that were not scaled */
};

/* pairs: of detectors in each bin. */
static void add_plane(const float *values, size_t n, int pairs, struct range *to)
{
	float least = n > 0 ? values[0] : 0;
	size_t air = 0;

	for (size_t i = 0; i < n; i++)
		least = values[i] < least ? values[i] : least;
	for (size_t i = 0; i < n; i++)
		air += values[i] == least;
	to->planes++;
	if (least >= 1 && least == floorf(least) && (double)air >= AIR_LEAST * (double)n) {
		to->with_air++;
		to->with_pairs += least == 1 || least == (float)pairs;
	}
	for (size_t i = 0; i < n; i++) {
		double v = values[i];

		to->least = !(v >= to->least) ? v : to->least; /* also NaN */
		to->most = v > to->most ? v : to->most;
		to->sum += v;
		to->whole += v == floor(v);
	}
	to->n += n;
}

/* Look at some planes of the data. False: they cannot be read; whoever needs them reports it. */
static bool find_range(const struct sinogram_stream *s, struct range *ret)
{
	struct range range = {.least = INFINITY};
	size_t planes, n, step;
	float *values;
	const uint8_t *bytes = map_data(s);

	if (!bytes)
		return false;
	interfile_shape(&s->header, &planes, &n);
	step = planes / SAMPLE_PLANES + 1;
	values = malloc(n * sizeof(*values));
	for (size_t plane = 0; values && plane < planes; plane += step) {
		interfile_plane(&s->header, bytes, plane, values);
		add_plane(values, n, michelogram_bin_pairs(&s->header.m, plane % michelogram_planes(&s->header.m)), &range);
	}
	free(values);
	munmap((void *)bytes, s->bytes);
	*ret = range;
	return range.n > 0;
}

int sinogram_say_factors(const struct sinogram_source *s, struct err *err)
{
	size_t at = 0, planes, n;
	int rc = 0;

	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES && s->conf->factors_size > 0; role++) {
		const struct sinogram_stream *of = &s->stream[role];
		const uint8_t *bytes = factor_range_is_factor((enum sinogram_role)role) ? map_data(of) : NULL;
		struct factor_range *range = NULL;
		char text[FACTOR_RANGE_TEXT];
		float *values;

		if (!bytes)
			continue;
		interfile_shape(&of->header, &planes, &n);
		values = malloc(n * sizeof(*values));
		rc = values ? factor_range_create((enum sinogram_role)role, planes, &range, err)
			    : err_set(err, ENOMEM, "no memory for a plane of %zu bins", n);
		for (size_t plane = 0; rc == 0 && plane < planes; plane++) {
			interfile_plane(&of->header, bytes, plane, values);
			factor_range_add(range, plane, values, n);
		}
		if (rc == 0) {
			factor_range_text(range, text);
			at += (size_t)snprintf(s->conf->factors + at, s->conf->factors_size - at, "%s\n", text);
		}
		factor_range_free(range);
		free(values);
		munmap((void *)bytes, of->bytes);
	}
	return rc;
}

/* Return the option for factors that a file has the name and the values of; NULL: none. */
static const char *factors_named(const char *header, const struct sinogram_stream *s)
{
	const char *name = file_name(header);
	bool attenuation = strcasestr(name, "atten") || strcasestr(name, "acf");
	struct range range;

	if ((!attenuation && !strcasestr(name, "norm")) || !find_range(s, &range) || !(range.least > 0) || range.whole == range.n)
		return NULL;
	if (!attenuation)
		return "--normalisation";
	return range.sum > ATTENUATION_MEAN * (double)range.n ? "--attenuation" : NULL;
}

/* Return the option for factors that can be nothing else, whatever the name; NULL: none. */
static const char *factors_by_values(const struct sinogram_stream *s)
{
	struct range r;
	double mean;

	if (s->header.number != INTERFILE_FLOAT || !find_range(s, &r) || !(r.least > 0) || r.whole == r.n)
		return NULL;
	/* a scan, which has a duration, may have a constant background */
	if ((double)(isnan(s->header.duration) ? r.with_air : r.with_pairs) >= PLANES_ALIKE * (double)r.planes &&
	    r.most <= ATTENUATION_MOST * r.least)
		return "--attenuation";
	mean = r.sum / (double)r.n;
	return isnan(s->header.duration) && r.most < EFFICIENCY_RANGE * r.least && mean < EFFICIENCY_MEAN &&
			       mean > 1 / EFFICIENCY_MEAN
		       ? "--normalisation"
		       : NULL;
}

/* STIR has the types Emission, Transmission, Blank, AttenuationCorrection, Normalisation and Image. */
int sinogram_check_emission(const char *header, const struct sinogram_stream *s, struct err *err)
{
	const char *type = s->header.data_type, *option;

	if (s->header.kind != INTERFILE_PROJECTIONS)
		return 0;
	if (type[0] && strcmp(type, "emission") != 0)
		return err_set(err, EBADMSG, "%s: PET data type := %s: not emission data%s", header, type,
			       !strncmp(type, "atten", 5)  ? "; give this header as --attenuation of that of the emission data"
			       : !strncmp(type, "norm", 4) ? "; give this header as --normalisation of that of the emission data"
							   : "");
	option = factors_named(header, s);
	if (option)
		return err_set(
			err, EBADMSG,
			"%s: the name and the values (above 0 in all bins, and no counts) are those of factors: give it with "
			"the scan's header as %s %s; if it is a scan, rename it",
			header, option, header);
	option = factors_by_values(s);
	if (option)
		return err_set(err, EBADMSG,
			       "%s: the values (%s) are those of factors, not of a scan (whose header would have a duration): "
			       "give it with the scan's header as %s %s",
			       header,
			       !strcmp(option, "--attenuation")
				       ? "exactly 1 or another whole number beside the object, and more in it"
				       : "around 1 in all bins, and no duration",
			       option, header);
	return 0;
}
