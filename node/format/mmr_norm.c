/* SPDX-License-Identifier: Apache-2.0 */
/* mmr_norm.c - the normalisation by components.
 *
 * Efficiency of a bin = interference[bin][view % 9] * sum over its ring pairs of e(ring 1, c1) e(ring 2, c2) geometric[ring 1 +
 * ring 2][bin] / axial[plane], where plane is that of span 11 which contains the ring pair, in the scanner's order of segments
 * (BinNormalisationFromECAT8.cxx of STIR). Detector c has the stored efficiency c - 1, and the gaps (c % 9 = 0) have 0.
 *
 * All ring pairs of a plane have the same sum; geometric and axial factors are applied to each pair, so that any span is right.
 */
#include "node/format/mmr.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "recon/pet/michelogram_pairs.h"

#define GEOMETRIC_PLANES (2 * MMR_RINGS - 1)
#define AXIAL_PLANES 837
#define AXIAL_SPAN 11

/* Rings have the numbers of the file. */
struct mmr_norm {
	float geometric[GEOMETRIC_PLANES][MMR_RADIAL];
	float interference[MMR_RADIAL][MMR_BLOCK];
	float efficiency[MMR_RINGS][MMR_DETECTORS];  /* of detector c, gaps 0 */
	uint16_t crystal[MMR_ANGLES][MMR_RADIAL][2]; /* of the first and the second end */
	float paralysing[MMR_RINGS], non_paralysing[MMR_RINGS];
	float axial[MMR_RINGS][MMR_RINGS]; /* of the pair (first ring, second ring), 1 beyond the largest difference */
};

/* Components in the order of the file. Real factors are near 1; within the limits no efficiency exceeds a float. */
#define LARGEST 1e6
static const struct component {
	const char *name;
	size_t n;
	double lo; /* smallest value; of those that are not used any finite one is allowed */
} components[] = {
	{"geometric", 127 * MMR_RADIAL, 0},
	{"interference", 344 * MMR_BLOCK, 0},
	{"crystal efficiency", 64 * MMR_DETECTORS, 0},
	{"axial", AXIAL_PLANES, 1 / LARGEST}, /* divides */
	{"paralysing dead time", MMR_RINGS, -INFINITY},
	{"non-paralysing dead time", MMR_RINGS, -INFINITY},
	{"crystal dead time", MMR_BLOCK, -INFINITY},
	{"further axial", AXIAL_PLANES, -INFINITY},
};
#define COMPONENTS (sizeof(components) / sizeof(components[0]))

static float read_float(const uint8_t *b)
{
	uint32_t word = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	float v;

	memcpy(&v, &word, sizeof(v));
	return v;
}

/* Read one component. ret NULL: only check it. */
static int read_component(const uint8_t *bytes, const struct component *c, float *ret, struct err *err)
{
	bool used = isfinite(c->lo);

	for (size_t i = 0; i < c->n; i++) {
		float v = read_float(bytes + 4 * i);

		if (!isfinite(v) || (used && ((double)v < c->lo || (double)v > LARGEST)))
			return err_set(err, EBADMSG, "normalisation: %s factor %zu of %zu is %g; allowed: %g to %g", c->name,
				       i + 1, c->n, (double)v, used ? c->lo : -FLT_MAX, used ? LARGEST : FLT_MAX);
		if (ret)
			ret[i] = v;
	}
	return 0;
}

static void fill_efficiencies(const float *stored, struct mmr_norm *n)
{
	for (int ring = 0; ring < MMR_RINGS; ring++)
		for (int c = 0; c < MMR_DETECTORS; c++)
			n->efficiency[ring][c] =
				c % MMR_BLOCK ? stored[ring * MMR_DETECTORS + (c + MMR_DETECTORS - 1) % MMR_DETECTORS] : 0;
}

static void fill_crystals(const struct michelogram_index *x, struct mmr_norm *n)
{
	int crystal[2];

	for (int i = 0; i < (int)MMR_PLANE_BINS; i++) {
		michelogram_crystals(x, i / MMR_RADIAL, i % MMR_RADIAL, 0, crystal);
		for (int end = 0; end < 2; end++)
			n->crystal[i / MMR_RADIAL][i % MMR_RADIAL][end] = (uint16_t)crystal[end];
	}
}

/* Sort the axial factors to ring pairs: segments of span 11 in the order 0, -1, +1 ... */
static int fill_axial(const float *stored, struct mmr_norm *n, struct err *err)
{
	struct michelogram m = {
		.scanner = {MMR_RINGS, MMR_DETECTORS, 4, 300, 0, 2}, .n_radial = MMR_RADIAL, .n_angles = MMR_ANGLES};
	struct michelogram_index x;
	int rc = michelogram_segments(MMR_RINGS, AXIAL_SPAN, MMR_LARGEST, &m.segments, &m.n_segments, err);

	if (rc < 0)
		return rc;
	for (int i = 1; i + 1 < m.n_segments; i += 2) {
		struct michelogram_segment positive = m.segments[i];

		m.segments[i] = m.segments[i + 1];
		m.segments[i + 1] = positive;
	}
	rc = michelogram_index_init(&m, &x, err);
	if (rc == 0)
		fill_crystals(&x, n);
	for (int i = 0; i < MMR_RINGS * MMR_RINGS; i++)
		n->axial[i / MMR_RINGS][i % MMR_RINGS] = 1;
	for (int plane = 0; rc == 0 && plane < x.n_planes; plane++) {
		struct michelogram_rings r = michelogram_plane_rings(&x, plane);

		for (int k = 0; k < r.n; k++) {
			int d = r.difference + 2 * k;

			n->axial[(r.sum + d) / 2][(r.sum - d) / 2] = stored[plane];
		}
	}
	free(m.segments);
	return rc;
}

static int read_all(const uint8_t *bytes, struct mmr_norm *n, float *efficiencies, float *axial, struct err *err)
{
	float *const to[COMPONENTS] = {&n->geometric[0][0], &n->interference[0][0], efficiencies, axial,
				       n->paralysing,	    n->non_paralysing};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COMPONENTS; i++) {
		rc = read_component(bytes, &components[i], to[i], err);
		bytes += 4 * components[i].n;
	}
	if (rc < 0)
		return rc;
	fill_efficiencies(efficiencies, n);
	return fill_axial(axial, n, err);
}

int mmr_norm_read(const uint8_t *bytes, size_t size, struct mmr_norm **ret, struct err *err)
{
	struct mmr_norm *n;
	float *scratch;
	int rc;

	if (size != MMR_NORM_BYTES)
		return err_set(err, EBADMSG, "normalisation: %zu bytes; a Siemens mMR has %d", size, MMR_NORM_BYTES);
	n = malloc(sizeof(*n));
	scratch = malloc((64 * MMR_DETECTORS + AXIAL_PLANES) * sizeof(*scratch));
	if (n && scratch)
		rc = read_all(bytes, n, scratch, scratch + 64 * MMR_DETECTORS, err);
	else
		rc = err_set(err, ENOMEM, "no memory for a normalisation");
	free(scratch);
	if (rc < 0)
		free(n);
	else
		*ret = n;
	return rc;
}

struct mmr_norm *mmr_norm_free(struct mmr_norm *n)
{
	free(n);
	return NULL;
}

/* Add the efficiencies of one ring pair, in the numbers of the file. */
static void add_pair(const struct mmr_norm *n, int first, int second, float *ret)
{
	const float *e_first = n->efficiency[first], *e_second = n->efficiency[second];
	const float *geometric = n->geometric[first + second];
	float axial = n->axial[first][second];

	for (int angle = 0; angle < MMR_ANGLES; angle++, ret += MMR_RADIAL)
		for (int radial = 0; radial < MMR_RADIAL; radial++) {
			const uint16_t *c = n->crystal[angle][radial];

			ret[radial] += e_first[c[0]] * e_second[c[1]] * geometric[radial] / axial;
		}
}

void mmr_norm_plane(const struct mmr_norm *n, const struct michelogram_index *x, int plane, float *ret)
{
	struct michelogram_rings r = michelogram_plane_rings(x, plane);

	memset(ret, 0, MMR_PLANE_BINS * sizeof(*ret));
	for (int k = 0; k < r.n; k++)
		add_pair(n, mmr_ring((r.sum + r.difference) / 2 + k), mmr_ring((r.sum - r.difference) / 2 - k), ret);
	for (int angle = 0; angle < MMR_ANGLES; angle++)
		for (int radial = 0; radial < MMR_RADIAL; radial++)
			ret[angle * MMR_RADIAL + radial] *= n->interference[radial][angle % MMR_BLOCK];
}

#define BUCKET_DETECTORS 18
#define BUCKET_RINGS 8

int mmr_norm_alive(const struct mmr_norm *n, const struct mmr_singles *s, double *ret, struct err *err)
{
	int along = MMR_DETECTORS / BUCKET_DETECTORS;

	for (int bucket = 0; bucket < MMR_BUCKETS; bucket++)
		if (s->n[bucket] == 0)
			return err_set(err, EDOM, "the list mode has no rate of the singles of bucket %d", bucket);
	for (int ring = 0; ring < MMR_RINGS; ring++)
		for (int c = 0; c < MMR_DETECTORS; c++) {
			int bucket = c / BUCKET_DETECTORS + along * (ring / BUCKET_RINGS);
			double half = s->sum[bucket] / (double)s->n[bucket] / 2,
			       slow = 1 + half * (double)n->non_paralysing[ring];
			double alive = exp(half * (double)n->paralysing[ring] / slow) / slow;

			if (!(slow > 0 && alive > 0 && alive <= 1))
				return err_set(err, EDOM,
					       "the parameters of ring %d, %g and %g s, give a live time of %g at %g singles per "
					       "second",
					       ring, (double)n->paralysing[ring], (double)n->non_paralysing[ring], alive,
					       2 * half);
			ret[mmr_ring(ring) * MMR_DETECTORS + c] = alive;
		}
	return 0;
}
