/* SPDX-License-Identifier: Apache-2.0 */
/* case_pictures.c - pictures of the corrections that were made for a case (node/format/correction_pictures.h). Of several time
 * frames, gates or beds they are those of the one with the most counts.
 *
 * Profiles are expectations of the model as the reconstruction uses it: with the normalisation of the data, before no correction.
 * What the steps add to the background, less the randoms, is the scatter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/reconstruct/case_corrections.h"

#define MU_SIDE 128 /* pixels along a side at most */
#define ACF_SIDE 192
#define PER_CM 10.0 /* 1/mm in 1/cm */

/* ---- maps ---- */

/* Values on two axes: neighbours along width and height are step[] floats apart, which may be negative. */
struct plane {
	const float *first;
	ptrdiff_t step[2];
	int n[2];
	double (*convert)(double value);
};

static double per_cm(double mu)
{
	return PER_CM * mu;
}

static double inverse_factor(double factor)
{
	return 1 / fmax(factor, 1e-6);
}

/* Mean of the block of a pixel. */
static double mean_of(const struct plane *p, const int block[2], int x, int y)
{
	double sum = 0;
	int n = 0;

	for (int j = y * block[1]; j < (y + 1) * block[1] && j < p->n[1]; j++)
		for (int i = x * block[0]; i < (x + 1) * block[0] && i < p->n[0]; i++, n++)
			sum += p->convert(p->first[i * p->step[0] + j * p->step[1]]);
	return sum / n;
}

/* Reduce a plane to at most `side` pixels along a side. lowest: value of the byte 0. Without memory there is no picture. */
static void make_map(const struct plane *p, int side, double lowest, struct correction_map *m)
{
	int block[2];
	double *mean;

	for (int a = 0; a < 2; a++)
		block[a] = (p->n[a] + side - 1) / side;
	m->width = (p->n[0] + block[0] - 1) / block[0];
	m->height = (p->n[1] + block[1] - 1) / block[1];
	m->value = malloc((size_t)m->width * (size_t)m->height);
	mean = malloc((size_t)m->width * (size_t)m->height * sizeof(*mean));
	m->lowest = m->highest = lowest;
	for (int i = 0; mean && i < m->width * m->height; i++) {
		mean[i] = mean_of(p, block, i % m->width, i / m->width);
		m->highest = fmax(m->highest, mean[i]);
	}
	for (int i = 0; mean && m->value && i < m->width * m->height; i++) {
		double part = m->highest > lowest ? (mean[i] - lowest) / (m->highest - lowest) : 0;

		m->value[i] = (unsigned char)(255 * fmin(fmax(part, 0), 1) + 0.5);
	}
	if (!mean) {
		free(m->value);
		m->value = NULL;
	}
	free(mean);
}

/* Whether a picture is turned along an axis of this direction (LPS), so that the patient's left or back is at the right, and the
 * back or the feet at the bottom. */
static bool is_turned(const double direction[3], bool down)
{
	int most = 0;

	for (int c = 1; c < 3; c++)
		if (fabs(direction[c]) > fabs(direction[most]))
			most = c;
	return (direction[most] < 0) != (down && most == 2);
}

/* Make the picture of mu in the plane through the middle that is perpendicular to an axis of the scanner. */
static void make_mu(const struct case_corrections *c, int normal, struct correction_map *m)
{
	const struct grid *g = &c->attenuation.plan.grid;
	const int axis[2] = {normal == 0 ? 1 : 0, normal == 2 ? 1 : 2};
	double *direction[2] = {m->across, m->down};
	struct plane p = {.first = attenuation_map(c->attenuation.made) + (size_t)(g->n[normal] / 2) * grid_step(g, normal),
			  .convert = per_cm};

	for (int a = 0; a < 2; a++) {
		bool turned = is_turned(c->s->axis[axis[a]], a == 1);

		p.n[a] = g->n[axis[a]];
		p.step[a] = (ptrdiff_t)grid_step(g, axis[a]);
		p.first += turned ? p.step[a] * (p.n[a] - 1) : 0;
		p.step[a] = turned ? -p.step[a] : p.step[a];
		m->size[a] = p.n[a] * g->h[axis[a]];
		for (int i = 0; i < 3; i++)
			direction[a][i] = turned ? -c->s->axis[axis[a]][i] : c->s->axis[axis[a]][i];
	}
	make_map(&p, MU_SIDE, 0, m);
}

static void make_acf(const struct case_corrections *c, size_t first, struct correction_pictures *p)
{
	const struct michelogram *m = c->m;
	size_t bins = michelogram_plane_bins(m);
	struct plane of = {.step = {1, m->n_radial}, .n = {m->n_radial, m->n_angles}, .convert = inverse_factor};

	p->acf_plane = p->n_planes / 2;
	of.first = attenuation_factors(c->attenuation.made) + (first + (size_t)p->acf_plane) * bins;
	p->acf.size[0] = m->scanner.bin; /* of a single one */
	if (m->n_radial > 1)
		p->acf.size[0] =
			fabs(michelogram_radius(m, m->n_radial - 1) - michelogram_radius(m, 0)) * m->n_radial / (m->n_radial - 1);
	p->acf.size[1] = 180;
	make_map(&of, ACF_SIDE, 1, &p->acf);
}

/* ---- profiles ---- */

/* Find the segment of direct planes: the index of its first plane. NULL: there is none. */
static const struct michelogram_segment *direct_segment(const struct michelogram *m, size_t *ret_first)
{
	const struct michelogram_segment *direct = michelogram_direct(m, ret_first);

	return direct && direct->first <= 0 && direct->last >= 0 ? direct : NULL;
}

void case_pictures_watch(struct case_corrections *c)
{
	struct case_profiles *of = &c->profiles;
	const struct michelogram_segment *direct;
	size_t first;

	of->n = 0;
	free(of->counts);
	of->counts = calloc(CASE_PROFILES_MAX * (size_t)c->m->n_radial, sizeof(*of->counts));
	direct = of->counts ? direct_segment(c->m, &first) : NULL;
	for (int i = 0; direct && i < CASE_PROFILES_MAX; i++) {
		size_t plane = first + (size_t)(direct->n_planes * (i + 1) / (CASE_PROFILES_MAX + 1));

		if (of->n == 0 || of->plane[of->n - 1] != plane)
			of->plane[of->n++] = plane;
	}
	c->terms.profiles = of;
}

static double *sum_of(const float *plane, int n_angles, int n_radial)
{
	double *sum = calloc((size_t)n_radial, sizeof(*sum));

	for (int i = 0; sum && i < n_angles * n_radial; i++)
		sum[i % n_radial] += plane[i];
	return sum;
}

/* Sum what the steps add to the background of a plane, less its randoms. NULL: no scatter, or no memory. */
static double *scatter_of(const struct case_corrections *c, size_t plane, const double *randoms)
{
	size_t n = michelogram_plane_bins(c->m), n_tof = c->m->tof.n > 0 ? (size_t)c->m->tof.n : 1;
	float *all = c->scatter.made.simulated ? calloc(n, sizeof(*all)) : NULL;
	double *sum;

	for (size_t k = 0; all && k < n_tof; k++)
		for (int i = 0; i < c->terms.n_backgrounds; i++)
			c->terms.background[i].add(c->terms.background[i].ctx, k, plane, all);
	sum = all ? sum_of(all, c->m->n_angles, c->m->n_radial) : NULL;
	for (int i = 0; sum && randoms && i < c->m->n_radial; i++)
		sum[i] -= randoms[i];
	free(all);
	return sum;
}

static void make_profiles(const struct case_corrections *c, const struct michelogram_segment *direct, size_t first,
			  struct correction_pictures *p)
{
	size_t n_radial = (size_t)c->m->n_radial, bins = (size_t)c->m->n_angles * n_radial;
	double distance = c->m->scanner.ring_spacing / (direct->first == direct->last ? 1 : 2);

	p->radius = malloc(n_radial * sizeof(*p->radius));
	if (!p->radius || n_radial > CORRECTION_BINS)
		return;
	p->n_radial = c->m->n_radial;
	for (int t = 0; t < p->n_radial; t++)
		p->radius[t] = michelogram_radius(c->m, t);
	for (int i = 0; i < c->profiles.n; i++) {
		struct correction_profile *of = &p->profile[p->n_profiles++];
		size_t plane = c->profiles.plane[i];

		of->plane = (int)(plane - first);
		of->position = (of->plane - (direct->n_planes - 1) / 2.0) * distance;
		of->prompts = malloc(n_radial * sizeof(*of->prompts));
		if (of->prompts)
			memcpy(of->prompts, c->profiles.counts + (size_t)i * n_radial, n_radial * sizeof(*of->prompts));
		if (c->randoms.expected && (c->made & PET_CORRECT_RANDOMS))
			of->randoms = sum_of(c->randoms.expected + plane * bins, c->m->n_angles, c->m->n_radial);
		of->scatter = scatter_of(c, plane, of->randoms);
	}
}

/* ---- all ---- */

void case_pictures_make(struct case_corrections *c, int image)
{
	const struct michelogram_segment *direct;
	struct correction_pictures p = {0};
	double counts = 0;
	size_t first;

	if (!c->made)
		return;
	for (size_t i = 0; i < (size_t)c->profiles.n * (size_t)c->m->n_radial; i++)
		counts += c->profiles.counts[i];
	if (image > 0 && !(counts > c->pictures_counts))
		return;
	c->pictures_counts = counts;
	correction_pictures_clear(&c->pictures);
	direct = direct_segment(c->m, &first);
	p.n_planes = direct ? direct->n_planes : 0;
	if (c->s->images.n > 0) {
		snprintf(p.image, sizeof(p.image), "%s", pet_division_name(c->s->images.of));
		p.number = image + 1;
		p.n_images = c->s->images.n;
	}
	for (int normal = 2; c->attenuation.made && normal >= 0; normal--)
		make_mu(c, normal, &p.mu[2 - normal]);
	if (direct && c->attenuation.made)
		make_acf(c, first, &p);
	if (direct)
		make_profiles(c, direct, first, &p);
	c->pictures = p;
}

json_t *case_pictures_describe(const struct case_corrections *c, const char *series)
{
	struct correction_pictures p = c->pictures; /* borrows all of it */

	snprintf(p.series, sizeof(p.series), "%s", series);
	return p.n_planes > 0 || p.mu[0].value ? correction_pictures_encode(&p) : NULL;
}
