/* SPDX-License-Identifier: Apache-2.0 */
/* single_scatter_layout.c - which pairs of detectors are simulated, and where each bin is among them.
 *
 * The ray at radius r = R sin(beta) of angle phi ends at the angles phi + 90 - beta (first end) and phi - 90 + beta (second end)
 * on the ring of radius R, from x towards y, degrees. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/scan.h"
#include "recon/scatter/single_scatter_internal.h"

static double ring_radius(const struct michelogram *m)
{
	return m->scanner.radius + m->scanner.interaction_depth;
}

/* Return the distance of the outermost rings, mm. */
static double ring_length(const struct michelogram *m)
{
	return (m->scanner.rings - 1) * m->scanner.ring_spacing;
}

static int choose_rings(struct single_scatter *s, struct err *err)
{
	double length = ring_length(s->m), distance = s->conf.ring_distance;

	if (distance == 0)
		distance = fmax(20, length / (SINGLE_SCATTER_RINGS - 1));
	s->n_rings = length > 0 ? (int)fmin(ceil(length / distance - 1e-9), SINGLE_SCATTER_RINGS_MOST) + 1 : 1;
	if (s->n_rings > SINGLE_SCATTER_RINGS_MOST)
		return err_set(err, EINVAL, "scatter: sampled rings every %g mm of %g mm; allowed: at most %d rings", distance,
			       length, SINGLE_SCATTER_RINGS_MOST);
	return 0;
}

/* Compute the neighbours of a position among n at distance 1; a ring's positions are cyclic. */
static struct scatter_tap tap_at(double at, int n, bool cyclic)
{
	double down = floor(at);
	int i = (int)down;
	struct scatter_tap tap = {.weight = {(float)(1 - (at - down)), (float)(at - down)}};

	if (cyclic) {
		tap.at[0] = (i % n + n) % n;
		tap.at[1] = (tap.at[0] + 1) % n;
		return tap;
	}
	if (i < 0 || i >= n - 1) /* at the ends, or beyond by a rounding error */
		return (struct scatter_tap){.at = {i < 0 ? 0 : n - 1, i < 0 ? 0 : n - 1}, .weight = {1, 0}};
	tap.at[0] = i;
	tap.at[1] = i + 1;
	return tap;
}

/* Compute the sampled detectors on which the ends of a bin lie. false: it has no ray. */
static bool bin_taps(const struct single_scatter *s, int angle, int radial, struct scatter_tap ret_end[2])
{
	const struct michelogram *m = s->m;
	double share = michelogram_radius(m, radial) / ring_radius(m), n = s->conf.detectors, beta;

	if (!(fabs(share) < 1))
		return false;
	beta = asin(share) / (2 * M_PI);
	/* position 0 is at the angle of the first rays */
	ret_end[0] = tap_at((0.5 * angle / m->n_angles + 0.25 - beta) * n, s->conf.detectors, true);
	ret_end[1] = tap_at((0.5 * angle / m->n_angles - 0.25 + beta) * n, s->conf.detectors, true);
	return true;
}

/* Number the links that bins need, and their reverse ones. number: [a][b], 0 before, then link + 1 or 0. */
static int number_links(struct single_scatter *s, int *number, struct err *err)
{
	int n = s->conf.detectors, links = 0;
	struct scatter_tap end[2];

	for (int angle = 0; angle < s->m->n_angles; angle++)
		for (int radial = 0; radial < s->m->n_radial; radial++) {
			if (!bin_taps(s, angle, radial, end))
				continue;
			for (int i = 0; i < 4; i++) {
				int a = end[0].at[i & 1], b = end[1].at[i >> 1];

				if (a != b)
					number[a * n + b] = number[b * n + a] = 1;
			}
		}
	for (int i = 0; i < n * n; i++)
		if (number[i])
			number[i] = ++links;
	s->n_links = (size_t)links;
	s->links = malloc((s->n_links + 1) * sizeof(*s->links));
	s->reverse = malloc((s->n_links + 1) * sizeof(*s->reverse));
	if (!s->links || !s->reverse)
		return err_set(err, ENOMEM, "scatter: no memory for %zu pairs of detectors", s->n_links);
	for (int i = 0; i < n * n; i++)
		if (number[i]) {
			s->links[number[i] - 1][0] = i / n;
			s->links[number[i] - 1][1] = i % n;
			s->reverse[number[i] - 1] = number[i % n * n + i / n] - 1;
		}
	return 0;
}

static int make_bins(struct single_scatter *s, struct err *err)
{
	size_t n_bins = michelogram_plane_bins(s->m);
	int n = s->conf.detectors, r, *number = calloc((size_t)n * (size_t)n, sizeof(*number));
	struct scatter_tap end[2];

	s->bins = malloc(n_bins * sizeof(*s->bins));
	r = number && s->bins ? number_links(s, number, err) : err_set(err, ENOMEM, "scatter: no memory for %zu bins", n_bins);
	for (size_t bin = 0; r == 0 && bin < n_bins; bin++) {
		struct scatter_bin *to = &s->bins[bin];
		bool ray = bin_taps(s, (int)(bin / (size_t)s->m->n_radial), (int)(bin % (size_t)s->m->n_radial), end);

		for (int i = 0; i < 4; i++) {
			int link = ray ? number[end[0].at[i & 1] * n + end[1].at[i >> 1]] - 1 : -1;

			to->link[i] = link < 0 ? (int)s->n_links : link;
			to->weight[i] = ray ? end[0].weight[i & 1] * end[1].weight[i >> 1] : 0;
		}
	}
	free(number);
	return r;
}

static int make_planes(struct single_scatter *s, struct err *err)
{
	double length = ring_length(s->m), distance = s->n_rings > 1 ? length / (s->n_rings - 1) : 1;
	struct scan *scan = NULL;
	int *plane = NULL;
	int r = scan_create_michelogram(s->m, 0.5 * ring_radius(s->m), NULL, &scan, &plane, err);

	if (r < 0)
		return r;
	s->planes = calloc((size_t)s->n_planes, sizeof(*s->planes));
	if (!s->planes)
		r = err_set(err, ENOMEM, "scatter: no memory for %d planes", s->n_planes);
	for (int u = 0; r == 0 && u < s->n_planes; u++) {
		const struct scan_plane *p = &scan->planes[u];

		s->planes[plane[u]].first = tap_at((p->z + p->rise + 0.5 * length) / distance, s->n_rings, false);
		s->planes[plane[u]].second = tap_at((p->z - p->rise + 0.5 * length) / distance, s->n_rings, false);
	}
	scan_free(scan);
	free(plane);
	return r;
}

/* Number the pairs of rings that planes need. */
static int number_ring_pairs(struct single_scatter *s, struct err *err)
{
	int n = s->n_rings, pairs = 0;

	s->ring_pair = calloc((size_t)n * (size_t)n, sizeof(*s->ring_pair));
	if (!s->ring_pair)
		return err_set(err, ENOMEM, "scatter: no memory for %d rings", n);
	for (int p = 0; p < s->n_planes; p++)
		for (int i = 0; i < 4; i++) {
			int a = s->planes[p].first.at[i & 1], b = s->planes[p].second.at[i >> 1];

			s->ring_pair[a < b ? a * n + b : b * n + a] = 1;
		}
	for (int i = 0; i < n * n; i++)
		s->ring_pair[i] = s->ring_pair[i] ? pairs++ : -1;
	s->n_ring_pairs = (size_t)pairs;
	s->n_pairs = s->n_ring_pairs * s->n_links;
	return 0;
}

static int make_pairs(struct single_scatter *s, struct err *err)
{
	double length = ring_length(s->m), radius = ring_radius(s->m);
	int n = s->conf.detectors;
	size_t at = 0;

	s->detectors = malloc((size_t)s->n_rings * (size_t)n * sizeof(*s->detectors));
	s->pairs = malloc(s->n_pairs * sizeof(*s->pairs));
	if (!s->detectors || !s->pairs)
		return err_set(err, ENOMEM, "scatter: no memory for %zu pairs of detectors", s->n_pairs);
	for (int i = 0; i < s->n_rings * n; i++) {
		double angle = michelogram_angle(s->m, 0) * M_PI / 180 + 2 * M_PI * (i % n) / n, c = cos(angle), d = sin(angle);
		double z = s->n_rings > 1 ? length * (i / n) / (s->n_rings - 1) - 0.5 * length : 0;
		const float detector[6] = {(float)(radius * c), (float)(radius * d), (float)z, (float)-c, (float)-d, 0};

		for (int k = 0; k < 6; k++)
			s->detectors[i][k] = detector[k];
	}
	for (int rings = 0; rings < s->n_rings * s->n_rings; rings++)
		for (size_t l = 0; s->ring_pair[rings] >= 0 && l < s->n_links; l++, at++) {
			s->pairs[at][0] = rings / s->n_rings * n + s->links[l][0];
			s->pairs[at][1] = rings % s->n_rings * n + s->links[l][1];
		}
	return 0;
}

int single_scatter_layout(struct single_scatter *s, struct err *err)
{
	int r = choose_rings(s, err);

	s->n_planes = (int)michelogram_planes(s->m);
	s->n_tof = s->m->tof.n > 0 ? s->m->tof.n : 1;
	r = r < 0 ? r : make_bins(s, err);
	r = r < 0 ? r : make_planes(s, err);
	r = r < 0 ? r : number_ring_pairs(s, err);
	return r < 0 ? r : make_pairs(s, err);
}
