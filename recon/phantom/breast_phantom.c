/* SPDX-License-Identifier: Apache-2.0 */
/* breast_phantom.c - tissue, ducts, vessels, muscle and lesions of the breast phantom.
 *
 * Everything that varies slowly is computed on cells of 2 x 2 x 2 voxels: `level`, whose excess over a threshold is the share of
 * glandular tissue, and `wall`, the distance to the ligaments. The threshold is bisected for the share that is asked for. Each
 * voxel interpolates both. Tubes (ducts, vessels, spicules) and the cores of masses are then drawn into the voxels.
 *
 * Attenuation at 20 keV: adipose 0.0456, glandular 0.0802, carcinoma 0.0844 (Johns & Yaffe 1987); skin, ligaments, muscle, water,
 * titanium: NIST. Calcifications are porous: 0.8 and 1.0. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/phantom/breast_internal.h"
#include "recon/phantom/poisson.h"

#define MU_ADIPOSE 0.0456
#define MU_GLANDULAR 0.0802
#define MU_SKIN 0.080
#define MU_MUSCLE 0.0862
#define MU_CARCINOMA 0.0844
#define MU_WATER 0.081
#define MU_CALCIFICATION 0.8
#define MU_SPECK 1.0
#define MU_TITANIUM 7.1

#define CELL (2 * BREAST_VOXEL) /* mm */
#define LOBULE 10.0		/* mm: side of the cubes with a seed of a fat lobule each */
#define STRAND 6.0		/* mm: the same of the lobules within glandular tissue, where they are drawn out */
#define WALL 1.1		/* mm: at this difference of distances a ligament ends */
#define WAVE 2.2		/* mm: how far walls are moved by a field of 1 */
#define FOCUS 15.0		/* mm: how far before the nipple the lines meet along which the tissue is drawn out */
#define DRAWN 1.9		/* how much longer its structures are toward the nipple */
#define SPREAD 45.0		/* mm from there at which their width is the same */
#define MUSCLE_FAT 2.0		/* mm: layer of fat before the muscle, thinner at its lower end */
#define SPICULE 0.22		/* mm: radius of its tip; voxels of a thinner one would not touch */
#define STEP 2.0		/* mm: length of a piece of a duct or vessel */
#define SAMPLED 5		/* every fifth cell */
#define SOFT 0.3		/* of the level: from adipose to glandular tissue */

/* Materials: air; mixtures of adipose and glandular tissue; skin of which a part is air; muscle with fat; nipple; masses. */
enum {
	AIR,
	MIX = 1,
	N_MIX = 64,
	SKIN = MIX + N_MIX,
	N_SKIN = 8,
	MUSCLE = SKIN + N_SKIN,
	N_MUSCLE = 8,
	NIPPLE = MUSCLE + N_MUSCLE,
	MASS,
	N_MASSES = 4,
	N_MATERIALS = MASS + N_MASSES
};

const char *breast_tissue(int material)
{
	if (material < SKIN)
		return material == AIR			   ? NULL
		       : 4 * (material - MIX) < N_MIX	   ? "adipose"
		       : 4 * (material - MIX) >= 3 * N_MIX ? "glandular"
							   : "mixed";
	return material < MUSCLE ? "skin" : material < NIPPLE ? "muscle" : material < MASS ? "nipple" : "mass";
}

/* Places are fractions: of the length, of the side toward -y or +y, of the height. */
static const struct {
	double at[3], radius;
	int spicules;
	double mu;
} masses[N_MASSES] = {{{0.50, 0.30, 0.55}, 4.5, 26, MU_CARCINOMA},
		      {{0.32, -0.34, 0.38}, 2.5, 18, MU_CARCINOMA},
		      {{0.62, -0.36, 0.62}, 5.0, 0, MU_WATER},
		      {{0.24, 0.08, 0.64}, 1.8, 12, MU_CARCINOMA}};
static const double beads[][4] = {{0.16, -0.55, 0.40, 0.50}, {0.45, -0.08, 0.70, 0.45}, {0.72, 0.18, 0.45, 0.50},
				  {0.56, 0.52, 0.35, 0.55},  {0.80, -0.12, 0.55, 0.45}, {0.28, 0.36, 0.25, 0.50}};
static const struct {
	double at[3];
	int specks;
} clusters[] = {{{0.44, -0.52, 0.45}, 11}, {{0.66, 0.02, 0.33}, 7}};
static const double clip_range[3][2] = {{0.05, 0.95}, {-0.95, 0.95}, {0, 1}};
#define N_BEADS (sizeof beads / sizeof *beads)
#define N_CLUSTERS (sizeof clusters / sizeof *clusters)
#define DETAILS_MAX 64
#define CLIP_DEPTH 5.0 /* mm: least depth of a clip's middle below the skin */

struct breast {
	const struct breast_options *o;
	struct breast_surface shape;
	int n[3];			 /* cells */
	struct breast_field level, wall; /* level: NAN in skin, muscle and air */
	struct breast_field slow;	 /* smooth, for what is irregular: walls, surfaces of masses and muscle */
	struct breast_cells lobules, strands;
	double threshold;
	struct voxel_phantom *p;
	struct phantom *details;
	uint64_t stream;
};

/* A piece of a cone with round ends: radius[0] at a, radius[1] at b. */
struct tube {
	double a[3], b[3], radius[2];
	double lobes; /* unevenness of the surface, relative to the radius */
};

static double draw_between(struct breast *b, double lo, double hi)
{
	return lo + (hi - lo) * poisson_uniform(&b->stream);
}

/* Return the mean of several uniform numbers, nearly normal, with the standard deviation `sigma`; at most 3.5 of it. */
static double draw_normal(struct breast *b, double sigma)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += 2 * poisson_uniform(&b->stream) - 1;
	return sigma * sum * sqrt(0.75);
}

static void draw_direction(struct breast *b, double ret[3])
{
	double z = draw_between(b, -1, 1), angle = draw_between(b, 0, 2 * M_PI);

	ret[0] = sqrt(1 - z * z) * cos(angle);
	ret[1] = sqrt(1 - z * z) * sin(angle);
	ret[2] = z;
}

/* Convert fractions to a place, moved by up to `moved` mm. */
static void place_detail(struct breast *b, const double part[3], double moved, double ret[3])
{
	const struct breast_surface *s = &b->shape;

	ret[0] = part[0] * s->length + draw_between(b, -moved, moved);
	ret[1] = s->middle_y + part[1] * s->side[part[1] > 0] + draw_between(b, -moved, moved);
	ret[2] = part[2] * s->height + draw_between(b, -moved, moved) * fmin(1, s->height / 50);
}

static void voxel_at(const struct breast *b, int i, int j, int k, double ret[3])
{
	ret[0] = (i + 0.5) * BREAST_VOXEL;
	ret[1] = (j + 0.5 - b->shape.n[1] / 2.0) * BREAST_VOXEL;
	ret[2] = (k + 0.5) * b->shape.hz;
}

static size_t cell_of(const struct breast *b, int i, int j, int k)
{
	return (size_t)i + (size_t)b->n[0] * ((size_t)j + (size_t)b->n[1] * (size_t)k);
}

static size_t voxel_of(const struct breast *b, int i, int j, int k)
{
	return (size_t)i + (size_t)b->shape.n[0] * ((size_t)j + (size_t)b->shape.n[1] * (size_t)k);
}

/* Return a field at a place in mm. */
static double value_at(const struct breast *b, const struct breast_field *f, const double at[3])
{
	return breast_field_at(f, at[0] / CELL, at[1] / CELL + b->shape.n[1] / 4.0, at[2] / (2 * b->shape.hz));
}

/* ---- tissue ---- */

/* Return what keeps glandular tissue in a cone behind the nipple, away from the skin and from the chest wall. */
static double fat_bias(const struct breast *b, const double at[3], double depth)
{
	const struct breast_surface *s = &b->shape;
	double side = (at[1] - s->middle_y) / (0.72 * s->side[at[1] > s->middle_y]),
	       x = (at[0] - 0.55 * s->length) / (0.6 * s->length);

	return 1.9 * fmax(hypot(side, x) - 0.5, 0) + 3.5 * exp(-(depth - BREAST_SKIN) / 4);
}

/* Return how far a place is inside the pectoral muscle, mm: a wedge at the upper end of the chest wall, narrower near the plates. */
static double muscle_depth(const struct breast *b, const double at[3], double slow)
{
	const struct breast_surface *s = &b->shape;
	double part = (at[1] - s->middle_y) / s->side[1], z = 2.2 * (at[2] / s->height - 0.5);

	return part < 0 ? -s->length : 0.40 * s->length * pow(part, 0.9) * (1 - z * z) - at[0] + 0.8 * slow;
}

/* The level at a cell: a field that is drawn out toward the nipple, as ducts are, another one that is not, and the walls. */
static void fill_cell(struct breast *b, const struct breast_field *fan, const struct breast_field *even, int i, int j, int k)
{
	const struct breast_surface *s = &b->shape;
	size_t cell = cell_of(b, i, j, k);
	int voxel[3] = {2 * i, 2 * j, 2 * k < s->n[2] ? 2 * k : s->n[2] - 1};
	double at[3], was[3], moved[3], depth = breast_surface_depth(s, voxel[0], voxel[1], voxel[2]), away, angle, strand, bias;

	at[0] = (i + 0.5) * CELL;
	at[1] = (j + 0.5 - s->n[1] / 4.0) * CELL;
	at[2] = (2 * k + 1) * s->hz;
	b->level.value[cell] = NAN;
	b->wall.value[cell] = (float)LOBULE;
	if (depth < BREAST_SKIN || (b->o->muscle && muscle_depth(b, at, (double)b->slow.value[cell]) > 0))
		return;
	for (int c = 0; c < 3; c++) { /* walls are curved: three parts of the field move them */
		double from[3] = {at[0] + 40 * (c == 1), at[1] + 40 * (c == 2), at[2] + 20 * (c == 0)};

		was[c] = at[c];
		moved[c] = at[c] + WAVE * value_at(b, &b->slow, from);
	}
	b->wall.value[cell] = (float)breast_cells_wall(&b->lobules, moved);
	bias = fat_bias(b, at, depth);
	away = hypot(s->nipple[0] + FOCUS - at[0], at[1] - s->nipple[1]);
	angle = atan2(at[1] - s->nipple[1], s->nipple[0] + FOCUS - at[0]);
	at[0] = away / DRAWN;
	at[1] = angle * SPREAD;
	for (int c = 0; c < 3; c++)
		moved[c] += at[c] - was[c];
	strand = breast_cells_wall(&b->strands, moved);
	b->level.value[cell] = (float)(0.6 * breast_field_at(fan, at[0] / CELL, at[1] / CELL + b->n[1] / 2.0, k + 0.5) +
				       0.55 * (double)even->value[cell] + 1.0 * exp(-strand / 0.6) +
				       0.4 * exp(-(double)b->wall.value[cell] / 1.5) - bias);
}

static int fill_cells(struct breast *b, struct err *err)
{
	struct breast_field fan = {0}, even = {0};
	const double hi[3] = {b->n[0] * CELL + 10, b->n[1] * CELL / 2 + 10, b->shape.height + 10}, lo[3] = {-10, -hi[1], -10};
	int rc = breast_field_create(b->n, poisson_hash(b->o->seed + 101u), 0, &fan, err);

	if (rc == 0)
		rc = breast_cells_create(lo, hi, LOBULE, poisson_hash(b->o->seed + 104u), &b->lobules, err);
	if (rc == 0)
		rc = breast_cells_create(lo, hi, STRAND, poisson_hash(b->o->seed + 105u), &b->strands, err);
	if (rc == 0)
		rc = breast_field_create(b->n, poisson_hash(b->o->seed + 102u), 0, &even, err);
	if (rc == 0)
		rc = breast_field_create(b->n, poisson_hash(b->o->seed + 103u), 3, &b->slow, err);
	if (rc == 0)
		rc = breast_field_create(b->n, 0, 7, &b->level, err);
	if (rc == 0)
		rc = breast_field_create(b->n, 0, 7, &b->wall, err);
	if (rc == 0) {
#pragma omp parallel for schedule(dynamic, 2)
		for (int k = 0; k < b->n[2]; k++)
			for (int j = 0; j < b->n[1]; j++)
				for (int i = 0; i < b->n[0]; i++)
					fill_cell(b, &fan, &even, i, j, k);
	}
	free(fan.value);
	free(even.value);
	return rc;
}

static int level_of(double part, int n)
{
	return (int)fmin(fmax(floor(part * n), 0), n - 1);
}

/* Return the material of a voxel, or, if that is a mixture, N_MATERIALS. */
static int plain_material(const struct breast *b, int i, int j, int k)
{
	const struct breast_surface *s = &b->shape;
	double depth = breast_surface_depth(s, i, j, k), at[3], nipple, skin = BREAST_SKIN, muscle, slow;

	if (depth < -BREAST_VOXEL / 2)
		return AIR;
	voxel_at(b, i, j, k, at);
	nipple = sqrt(pow(at[0] - s->nipple[0] - 2, 2) + pow(at[1] - s->nipple[1], 2) + pow(at[2] - s->nipple[2], 2));
	skin += 0.8 * fmax(1 - nipple / 18, 0); /* the areola's is thicker */
	if (depth < skin)
		return SKIN + level_of(depth / BREAST_VOXEL + 0.5, N_SKIN);
	if (nipple < 5)
		return NIPPLE;
	if (!b->o->muscle)
		return N_MATERIALS;
	slow = (double)b->slow.value[cell_of(b, i / 2, j / 2, k / 2)];
	muscle = muscle_depth(b, at, slow);
	if (muscle > 0)
		return MUSCLE + level_of(1 - 0.5 * fmax(slow - 0.8, 0), N_MUSCLE);
	return muscle > -MUSCLE_FAT * fmin(at[0] / 15, 1) ? MIX : N_MATERIALS;
}

/* ---- tubes ---- */

/* Set the voxels of a tube: of a mass in mixtures, else in all, before the tissue around it is known. */
static void draw_tube(struct breast *b, const struct tube *t, int material)
{
	const struct breast_surface *s = &b->shape;
	double most = fmax(t->radius[0], t->radius[1]) * (t->lobes > 0 ? 1.6 : 1), axis[3], length2 = 1e-9;
	double h[3] = {BREAST_VOXEL, BREAST_VOXEL, s->hz}, origin[3] = {0, -s->n[1] / 2.0 * BREAST_VOXEL, 0};
	int first[3], end[3];

	for (int c = 0; c < 3; c++) {
		axis[c] = t->b[c] - t->a[c];
		length2 += axis[c] * axis[c];
		first[c] = (int)fmax(floor((fmin(t->a[c], t->b[c]) - most - origin[c]) / h[c]), 0);
		end[c] = (int)fmin(ceil((fmax(t->a[c], t->b[c]) + most - origin[c]) / h[c]), s->n[c]);
	}
	for (int k = first[2]; k < end[2]; k++)
		for (int j = first[1]; j < end[1]; j++)
			for (int i = first[0]; i < end[0]; i++) {
				uint8_t *voxel = &b->p->voxel[voxel_of(b, i, j, k)];
				double at[3], along = 0, q = 0, radius;

				voxel_at(b, i, j, k, at);
				for (int c = 0; c < 3; c++)
					along += (at[c] - t->a[c]) * axis[c];
				along = fmin(fmax(along / length2, 0), 1);
				for (int c = 0; c < 3; c++)
					q += pow(at[c] - t->a[c] - along * axis[c], 2);
				radius = t->radius[0] + along * (t->radius[1] - t->radius[0]);
				if (t->lobes > 0 && q < most * most)
					radius *= fmin(1 + t->lobes * value_at(b, &b->slow, at), 1.6);
				if (q > radius * radius)
					continue;
				if (material >= MASS ? (*voxel >= MIX && *voxel < SKIN) : *voxel < material)
					*voxel = (uint8_t)material;
			}
}

/* Draw a duct or a vessel from `at` toward `heading`, which wanders; it becomes thinner and branches. */
static void grow_tube(struct breast *b, const double at[3], const double heading[3], double radius, double length, double wander,
		      int branches, int material)
{
	double from[3] = {at[0], at[1], at[2]}, to[3] = {heading[0], heading[1], heading[2]};
	int steps = (int)(length / STEP);

	for (int i = 0; i < steps; i++) {
		struct tube t = {.radius = {radius * (1 - 0.6 * i / steps), radius * (1 - 0.6 * (i + 1) / steps)}};
		double norm = 0;

		for (int c = 0; c < 3; c++) {
			to[c] += draw_normal(b, c == 2 ? 0.5 * wander : wander);
			norm += to[c] * to[c];
		}
		for (int c = 0; c < 3; c++) {
			to[c] /= sqrt(norm);
			t.a[c] = from[c];
			t.b[c] = from[c] += STEP * to[c];
		}
		draw_tube(b, &t, material);
		if (branches > 0 && draw_between(b, 0, 1) < 0.14) {
			double turned[3] = {to[0] + draw_normal(b, 0.5), to[1] + draw_normal(b, 0.5),
					    to[2] + draw_normal(b, 0.2)};

			grow_tube(b, from, turned, 0.8 * t.radius[1], 0.7 * STEP * (steps - i), wander, branches - 1, material);
		}
	}
}

static void draw_ducts_and_vessels(struct breast *b)
{
	const struct breast_surface *s = &b->shape;
	double size = s->length / 90;

	for (int i = 0; i < 10; i++) {
		double angle = (i - 4.5) * 0.22 + draw_normal(b, 0.1),
		       heading[3] = {-cos(angle), sin(angle), draw_normal(b, 0.15)};
		double at[3] = {s->nipple[0] - 6, s->nipple[1] + 2.5 * sin(angle), s->nipple[2] + draw_normal(b, 1)};

		grow_tube(b, at, heading, size * draw_between(b, 0.55, 0.9), draw_between(b, 0.3, 0.65) * s->length, 0.12, 2,
			  MIX + N_MIX - 1);
	}
	for (int i = 0; i < 7; i++) {
		double y = s->middle_y + draw_between(b, -0.8, 0.8) * s->side[0], heading[3] = {1, draw_normal(b, 0.3), 0};
		double at[3] = {-5, y, i % 2 ? draw_between(b, 4, 9) : s->height - draw_between(b, 4, 9)};

		heading[1] -= 0.4 * (y - s->middle_y) / s->side[0];
		grow_tube(b, at, heading, size * draw_between(b, 0.5, 1.1), draw_between(b, 0.6, 0.95) * s->length, 0.1, 1,
			  MIX + N_MIX * 3 / 4);
	}
}

/* ---- voxels ---- */

/* Return the share of fibroglandular tissue in a voxel, 0 to 1. */
static double mixture_of(const struct breast *b, const float sample[4])
{
	double gland = isnan(sample[0]) ? 0 : fmin(fmax(((double)sample[0] - b->threshold) / SOFT, 0), 1);
	double ligament = fmin(fmax(0.3 + 0.4 * (double)sample[2], 0.06), 0.8) * fmax(1 - (double)sample[1] / WALL, 0) *
			  fmin(b->o->glandular / 15, 1);

	return fmax(fmax(gland, ligament), (double)sample[3]);
}

/* Collect what the mixture of a voxel depends on. */
static void sample_voxel(const struct breast *b, int i, int j, int k, float ret[4])
{
	uint8_t tube = b->p->voxel[voxel_of(b, i, j, k)];

	ret[0] = breast_field_voxel(&b->level, i, j, k);
	ret[1] = breast_field_voxel(&b->wall, i, j, k);
	ret[2] = b->slow.value[cell_of(b, i / 2, j / 2, k / 2)];
	ret[3] = tube >= MIX ? (float)(tube - MIX) / (N_MIX - 1) : 0;
}

/* Find the threshold with which the mean mixture is the share that is asked for, on a sample of the voxels. */
static int find_threshold(struct breast *b, struct err *err)
{
	size_t n_cells = (size_t)b->n[0] * (size_t)b->n[1] * (size_t)b->n[2], n = 0;
	float(*sample)[4] = malloc((n_cells / SAMPLED + 1) * sizeof(*sample));
	double lo = -20, hi = 20, fat = 0;

	if (!sample)
		return err_set(err, ENOMEM, "no memory for a sample of %zu voxels", n_cells / SAMPLED);
	for (size_t cell = 0; cell < n_cells; cell += SAMPLED) {
		int i = 2 * (int)(cell % (size_t)b->n[0]), j = 2 * (int)(cell / (size_t)b->n[0] % (size_t)b->n[1]);
		int k = 2 * (int)(cell / (size_t)b->n[0] / (size_t)b->n[1]);
		int plain = plain_material(b, i, j, k);

		if (plain == N_MATERIALS)
			sample_voxel(b, i, j, k, sample[n++]);
		fat += plain == MIX;
	}
	for (int step = 0; step < 24; step++) {
		double sum = 0;

		b->threshold = (lo + hi) / 2;
		for (size_t i = 0; i < n; i++)
			sum += mixture_of(b, sample[i]);
		if (sum > b->o->glandular / 100 * ((double)n + fat))
			lo = b->threshold;
		else
			hi = b->threshold;
	}
	free(sample);
	return 0;
}

static uint8_t voxel_material(const struct breast *b, int i, int j, int k)
{
	int plain = plain_material(b, i, j, k);
	float sample[4];

	if (plain < N_MATERIALS)
		return (uint8_t)plain;
	sample_voxel(b, i, j, k, sample);
	return (uint8_t)(MIX + level_of(mixture_of(b, sample), N_MIX));
}

static int create_voxels(struct breast *b, struct err *err)
{
	const struct breast_surface *s = &b->shape;
	struct voxel_material m[N_MATERIALS] = {{.mu = 0, .role = VOXEL_AIR}};

	for (int i = MIX; i < N_MATERIALS; i++)
		m[i].role = i < MASS ? VOXEL_TISSUE : VOXEL_LESION;
	for (int i = 0; i < N_MIX; i++)
		m[MIX + i].mu = MU_ADIPOSE + (MU_GLANDULAR - MU_ADIPOSE) * i / (N_MIX - 1);
	for (int i = 0; i < N_SKIN; i++)
		m[SKIN + i].mu = MU_SKIN * (i + 1) / N_SKIN;
	for (int i = 0; i < N_MUSCLE; i++)
		m[MUSCLE + i].mu = MU_ADIPOSE + (MU_MUSCLE - MU_ADIPOSE) * (i + 1) / N_MUSCLE;
	m[NIPPLE].mu = MU_SKIN;
	for (int i = 0; i < N_MASSES; i++)
		m[MASS + i].mu = masses[i].mu;
	return voxel_phantom_create(s->n, (double[]){BREAST_VOXEL, BREAST_VOXEL, s->hz}, m, N_MATERIALS, &b->p, err);
}

/* Set the material of each voxel; of what is in the volume, tubes in mixtures stay. */
static void fill_voxels(struct breast *b)
{
	const struct breast_surface *s = &b->shape;

#pragma omp parallel for schedule(dynamic, 2)
	for (int k = 0; k < s->n[2]; k++)
		for (int j = 0; j < s->n[1]; j++)
			for (int i = 0; i < s->n[0]; i++)
				b->p->voxel[voxel_of(b, i, j, k)] = voxel_material(b, i, j, k);
}

/* ---- lesions ---- */

/* Draw a mass: a core with an uneven surface, and spicules. */
static void draw_mass(struct breast *b, int number)
{
	double radius = fmin(masses[number].radius, 0.15 * b->shape.height), c[3];
	struct tube core = {.radius = {radius, radius}, .lobes = masses[number].spicules > 0 ? 0.16 : 0.04};

	place_detail(b, masses[number].at, 2.5, c);
	memcpy(core.a, c, sizeof(c));
	memcpy(core.b, c, sizeof(c));
	draw_tube(b, &core, MASS + number);
	for (int i = 0; i < masses[number].spicules; i++) {
		struct tube t = {.a = {c[0], c[1], c[2]}, .radius = {fmax(0.2 * radius, SPICULE), SPICULE}};
		double to[3], length = radius * draw_between(b, 1.4, 2.5);

		draw_direction(b, to);
		for (int a = 0; a < 3; a++)
			t.b[a] = c[a] + length * to[a];
		draw_tube(b, &t, MASS + number);
	}
}

static void add_detail(struct breast *b, enum shape_role role, const double c[3], const double r[3], double mu)
{
	b->details->shapes[b->details->n++] =
		(struct shape){.kind = SHAPE_ELLIPSOID, .role = role, .c = {c[0], c[1], c[2]}, .r = {r[0], r[1], r[2]}, .mu = mu};
}

/* Return the depth of a place below the skin. */
static double depth_at(const struct breast *b, const double at[3])
{
	const struct breast_surface *s = &b->shape;

	return breast_surface_depth(s, (int)(at[0] / BREAST_VOXEL), (int)(at[1] / BREAST_VOXEL + s->n[1] / 2.0),
				    (int)(at[2] / s->hz));
}

/* After all other details, so that these are the same without clips. */
static void add_clips(struct breast *b)
{
	for (int i = 0; i < b->o->clips; i++) {
		double part[3], at[3], r[3] = {BREAST_CLIP_WIDTH / 2, BREAST_CLIP_WIDTH / 2, BREAST_CLIP_WIDTH / 2};

		do {
			for (int c = 0; c < 3; c++)
				part[c] = draw_between(b, clip_range[c][0], clip_range[c][1]);
			place_detail(b, part, 0, at);
		} while (!(depth_at(b, at) >= CLIP_DEPTH));
		r[(int)draw_between(b, 0, 3)] = 1.5;
		add_detail(b, ROLE_METAL, at, r, MU_TITANIUM);
	}
}

static int add_details(struct breast *b, struct err *err)
{
	double at[3];

	b->details = calloc(1, sizeof(*b->details));
	if (b->details)
		b->details->shapes = calloc(DETAILS_MAX, sizeof(*b->details->shapes));
	if (!b->details || !b->details->shapes)
		return err_set(err, ENOMEM, "no memory for %d details of a breast", DETAILS_MAX);
	snprintf(b->details->name, sizeof(b->details->name), "breast");
	for (size_t i = 0; i < N_BEADS; i++) {
		double r = beads[i][3];

		place_detail(b, beads[i], 1.5, at);
		add_detail(b, ROLE_BEAD, at, (double[]){r, r, r}, MU_CALCIFICATION);
	}
	for (size_t i = 0; i < N_CLUSTERS; i++) {
		place_detail(b, clusters[i].at, 2, at);
		for (int k = 0; k < clusters[i].specks; k++) {
			double c[3] = {at[0] + draw_normal(b, 1.8), at[1] + draw_normal(b, 1.8), at[2] + draw_normal(b, 1.4)};
			double r = draw_between(b, 0.075, 0.25);

			add_detail(b, ROLE_LESION, c, (double[]){r, r, r}, MU_SPECK);
		}
	}
	add_clips(b);
	return 0;
}

/* ---- all of it ---- */

static int check_breast(const struct breast_options *o, struct err *err)
{
	if (!(o->thickness >= BREAST_THICKNESS_LEAST && o->thickness <= BREAST_THICKNESS_MOST))
		return err_set(err, EINVAL, "a breast %g mm thick; allowed: %g to %g mm", o->thickness, BREAST_THICKNESS_LEAST,
			       BREAST_THICKNESS_MOST);
	if (!(o->glandular >= BREAST_GLANDULAR_LEAST && o->glandular <= BREAST_GLANDULAR_MOST))
		return err_set(err, EINVAL, "%g percent of glandular tissue; allowed: %g to %g", o->glandular,
			       BREAST_GLANDULAR_LEAST, BREAST_GLANDULAR_MOST);
	if (o->clips < 0 || o->clips > BREAST_CLIPS_MOST)
		return err_set(err, EINVAL, "a breast with %d clips; allowed: 0 to %d", o->clips, BREAST_CLIPS_MOST);
	for (int c = 0; c < 2; c++)
		if (!(o->room[c] >= BREAST_ROOM_LEAST && o->room[c] <= 1000))
			return err_set(err, EINVAL,
				       "a breast on a detector of %g x %g mm; allowed: %g to 1000 mm along each axis", o->room[0],
				       o->room[1], BREAST_ROOM_LEAST);
	return 0;
}

static void mirror_breast(struct breast *b)
{
	size_t nx = (size_t)b->shape.n[0], ny = (size_t)b->shape.n[1];

#pragma omp parallel for schedule(static)
	for (int k = 0; k < b->shape.n[2]; k++)
		for (size_t j = 0; j < ny / 2; j++) {
			uint8_t *low = b->p->voxel + nx * (j + ny * (size_t)k);
			uint8_t *high = b->p->voxel + nx * (ny - 1 - j + ny * (size_t)k);

			for (size_t i = 0; i < nx; i++) {
				uint8_t kept = low[i];

				low[i] = high[i];
				high[i] = kept;
			}
		}
	for (size_t i = 0; i < b->details->n; i++)
		b->details->shapes[i].c[1] *= -1;
}

/* Count the voxels of each material, in all and in the columns of the middle 60 % of the box around the breast. Sums of integers
 * do not depend on their order. */
static void count_truth(const struct breast *b, struct breast_truth *ret)
{
	const struct breast_surface *s = &b->shape;
	size_t count[N_MATERIALS] = {0}, middle[N_MATERIALS] = {0}, i = 0, all = 0;
	int end[3] = {0}, first = s->n[1];
	double gland = 0, line = 0;

	for (int k = 0; k < s->n[2]; k++)
		for (int j = 0; j < s->n[1]; j++)
			for (int x = 0; x < s->n[0]; x++)
				if (b->p->voxel[i++] != AIR) {
					end[0] = x + 1 > end[0] ? x + 1 : end[0];
					end[1] = j + 1 > end[1] ? j + 1 : end[1];
					first = j < first ? j : first;
				}
	i = 0;
	for (int k = 0; k < s->n[2]; k++)
		for (int j = 0; j < s->n[1]; j++)
			for (int x = 0; x < s->n[0]; x++, i++) {
				count[b->p->voxel[i]]++;
				if (fabs(x + 0.5 - 0.5 * end[0]) <= 0.3 * end[0] &&
				    fabs(j + 0.5 - 0.5 * (first + end[1])) <= 0.3 * (end[1] - first))
					middle[b->p->voxel[i]]++;
			}
	for (int m = 0; m < N_MIX; m++) {
		gland += (double)count[MIX + m] * m / (N_MIX - 1);
		all += count[MIX + m];
	}
	*ret = (struct breast_truth){.glandular = 100 * gland / (double)all, .rim_width = s->rim, .rim_cut = BREAST_RIM_CUT};
	all = 0;
	for (int m = 0; m < N_MATERIALS; m++) {
		line += (double)middle[m] * b->p->material[m].mu;
		all += middle[m];
	}
	ret->line = line / (double)all * s->height;
}

int breast_phantom_create(const struct breast_options *o, struct voxel_phantom **ret_voxels, struct phantom **ret_details,
			  struct breast_truth *ret_truth, struct err *err)
{
	struct breast b = {.o = o, .stream = poisson_stream(o->seed, 2)};
	int rc = check_breast(o, err);

	if (rc == 0)
		rc = breast_surface_create(o, &b.shape, err);
	if (rc < 0)
		return rc;
	for (int c = 0; c < 3; c++)
		b.n[c] = (b.shape.n[c] + 1) / 2;
	rc = fill_cells(&b, err);
	if (rc == 0)
		rc = create_voxels(&b, err);
	if (rc == 0) {
		draw_ducts_and_vessels(&b);
		rc = find_threshold(&b, err);
	}
	if (rc == 0) {
		fill_voxels(&b);
		for (int i = 0; i < N_MASSES; i++)
			draw_mass(&b, i);
		rc = add_details(&b, err);
	}
	if (rc == 0) {
		count_truth(&b, ret_truth);
		if (o->mirrored)
			mirror_breast(&b);
		*ret_voxels = b.p;
		*ret_details = b.details;
	} else {
		voxel_phantom_free(b.p);
		phantom_free(b.details);
	}
	free(b.level.value);
	free(b.wall.value);
	free(b.slow.value);
	free(b.lobules.seed);
	free(b.strands.seed);
	breast_surface_clear(&b.shape);
	return rc;
}
