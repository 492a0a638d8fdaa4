/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_e7_planes.c - compute the planes of the roles from the files of the e7tools, one at a time:
 *
 *   NORMALISATION   the normalisation; infinite where it is 0 or below: a dead detector block, whose bins are not used; without
 *                   TOF bins if it is the same in all, because factors of rays need less memory and time
 *   ATTENUATION     the attenuation correction factors
 *   ADDITIVE        b = randoms + scatter / normalisation; without the scatter where the block is dead
 *
 * The e7tools store the scatter normalised, that is multiplied by the normalisation, and only in direct planes. An oblique plane
 * takes the direct plane with the same middle, unscaled (inverse single-slice rebinning); if its middle is between two direct
 * planes, their mean. TOF bins are stored in the same order in all files.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_e7_internal.h"

/* Return the distance of a segment's planes in half rings. */
static int plane_spacing(const struct michelogram_segment *s)
{
	return s->first == s->last ? 2 : 1;
}

int e7_find_direct(struct e7 *e, const struct michelogram *m, struct err *err)
{
	const struct michelogram_segment *zero = &m->segments[0];
	size_t at = 0;

	e->direct = malloc(e->planes * sizeof(*e->direct));
	if (!e->direct)
		return err_set(err, ENOMEM, "no memory for %zu planes", e->planes);
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];

		for (int a = 0; a < s->n_planes; a++, at++) {
			double middle =
				(a - 0.5 * (s->n_planes - 1)) * plane_spacing(s); /* half rings from the scanner's middle */
			double plane = middle / plane_spacing(zero) + 0.5 * (zero->n_planes - 1);

			if (plane < 0 || plane > zero->n_planes - 1)
				return err_set(err, EBADMSG, "plane %d of segment %d is beyond the direct planes", a, i);
			e->direct[at][0] = (size_t)floor(plane);
			e->direct[at][1] = (size_t)ceil(plane);
		}
	}
	return 0;
}

static void swap_bytes(float *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t v;

		memcpy(&v, &values[i], sizeof(v));
		v = __builtin_bswap32(v);
		memcpy(&values[i], &v, sizeof(v));
	}
}

/* Read a plane of a TOF bin; files without TOF bins have the same plane in all. */
static int read_plane(const struct e7 *e, enum e7_file file, size_t tof, size_t plane, float *ret, struct err *err)
{
	const struct e7_data *d = &e->data[file];
	size_t n = e->angles * e->radial, size = n * sizeof(float);
	uint64_t start = d->skip + ((d->tof ? tof : 0) * d->planes + plane) * (uint64_t)size;

	for (size_t done = 0; done < size;) {
		ssize_t got = pread(d->fd, (uint8_t *)ret + done, size - done, (off_t)(start + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "cannot read %s: %s", file_name(d->path), strerror(errno));
		if (got == 0)
			return err_set(err, EBADMSG, "%s has become shorter", file_name(d->path));
		done += (size_t)got;
	}
	if (d->big_endian)
		swap_bytes(ret, n);
	return 0;
}

static int refuse_bin(const struct e7 *e, enum e7_file file, size_t tof, size_t plane, size_t bin, float value,
		      const char *allowed, struct err *err)
{
	return err_set(err, EBADMSG, "%s: stored TOF bin %zu, plane %zu, angle %zu, radial bin %zu: %g; allowed: %s",
		       file_name(e->data[file].path), tof, plane, bin / e->radial, bin % e->radial, (double)value, allowed);
}

int e7_make_norm(void *ctx, size_t plane, float *ret_values, struct err *err)
{
	struct e7 *e = ctx;
	size_t tof = plane / e->planes;
	int rc = read_plane(e, E7_NORM, tof, plane % e->planes, ret_values, err);

	for (size_t i = 0; rc == 0 && i < e->angles * e->radial; i++) {
		if (isnan(ret_values[i]))
			return refuse_bin(e, E7_NORM, tof, plane % e->planes, i, ret_values[i], "numbers", err);
		if (ret_values[i] <= 0)
			ret_values[i] = INFINITY;
	}
	return rc;
}

int e7_share_norm(struct e7 *e, struct err *err)
{
	size_t size = e->angles * e->radial * sizeof(float);
	float *first = e->norm, *other = e->scatter[0];
	bool same = true;
	int rc = 0;

	for (size_t p = 0; rc == 0 && same && p < e->planes; p++) {
		rc = e7_make_norm(e, p, first, err);
		for (size_t k = 1; rc == 0 && same && k < e->tof; k++) {
			rc = e7_make_norm(e, k * e->planes + p, other, err);
			same = rc < 0 || !memcmp(first, other, size);
		}
	}
	if (rc == 0 && same)
		e->data[E7_NORM].tof = false;
	return rc;
}

int e7_make_attenuation(void *ctx, size_t plane, float *ret_values, struct err *err)
{
	struct e7 *e = ctx;
	int rc = read_plane(e, E7_ATTENUATION, 0, plane, ret_values, err);

	for (size_t i = 0; rc == 0 && i < e->angles * e->radial; i++)
		if (!(ret_values[i] > 0) || isinf(ret_values[i]))
			return refuse_bin(e, E7_ATTENUATION, 0, plane, i, ret_values[i], "finite and above 0", err);
	return rc;
}

/* Add the scatter of a plane, divided by the normalisation, to b. */
static int add_scatter(struct e7 *e, size_t tof, size_t plane, float *b, struct err *err)
{
	const size_t *direct = e->direct[plane];
	float *mean = e->scatter[0], *other = e->scatter[1];
	int rc = read_plane(e, E7_SCATTER, tof, direct[0], mean, err);

	if (rc == 0 && direct[1] != direct[0]) {
		rc = read_plane(e, E7_SCATTER, tof, direct[1], other, err);
		for (size_t i = 0; rc == 0 && i < e->angles * e->radial; i++)
			mean[i] = 0.5f * (mean[i] + other[i]);
	}
	if (rc == 0)
		rc = e7_make_norm(e, tof * e->planes + plane, e->norm, err);
	for (size_t i = 0; rc == 0 && i < e->angles * e->radial; i++) {
		if (!(mean[i] >= 0) || isinf(mean[i]))
			return refuse_bin(e, E7_SCATTER, tof, direct[0], i, mean[i], "finite, not negative", err);
		b[i] += mean[i] / e->norm[i];
	}
	return rc;
}

int e7_make_additive(void *ctx, size_t plane, float *ret_values, struct err *err)
{
	struct e7 *e = ctx;
	size_t tof = plane / e->planes;
	int rc = read_plane(e, E7_RANDOMS, tof, plane % e->planes, ret_values, err);

	for (size_t i = 0; rc == 0 && i < e->angles * e->radial; i++)
		if (!(ret_values[i] >= 0) || isinf(ret_values[i]))
			return refuse_bin(e, E7_RANDOMS, tof, plane % e->planes, i, ret_values[i], "finite, not negative", err);
	return rc == 0 && e->data[E7_SCATTER].fd >= 0 ? add_scatter(e, tof, plane % e->planes, ret_values, err) : rc;
}
