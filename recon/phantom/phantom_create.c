/* SPDX-License-Identifier: Apache-2.0 */
/* phantom_create.c - the phantoms of recon/phantom/phantom.h: positions and sizes of their shapes.
 *
 * Positions are fractions of the detector, so that a phantom fits every system; sizes of beads, masses and calcifications are in
 * mm. The seed moves beads and masses by up to 1 mm and scatters the cluster; bodies and glandular tissue stay. Attenuation:
 * adipose and glandular tissue at 20 keV as in Hammerstein 1979 / Johns & Yaffe 1987 (0.0456 and 0.0802 /mm). Shapes add, so a
 * shape inside tissue has the difference to it as its value. Nothing is symmetric: the bodies are not centred on y = 0, and no
 * bead has a counterpart at -y or at the mirrored x. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/phantom/phantom.h"
#include "recon/phantom/poisson.h"

#define MU_SLAB 0.05
#define MU_HOLDER 0.005 /* the plate that holds the beads */
#define MU_ADIPOSE 0.0456
#define MU_GLANDULAR 0.0802
#define MU_MASS 0.0856 /* a mass is a little denser than glandular tissue */
#define MU_BEAD 0.8
#define MU_CALCIFICATION 1.2
#define MU_STEEL 2.5	/* of beads for calibration: a tenth of steel, so that noise-free images have no code of 0 */
#define LAYER_DEPTH 5.0 /* mm from the surface of the calibration phantom to a layer */
#define N_CALCIFICATIONS 8
#define SHAPES_MAX 64

/* Positions of the beads in the plate: x and y as fractions of the detector, z as a fraction of the thickness. In every view up
 * to 25 degrees and for all thicknesses up to 80 mm, the beads project onto the detector. */
static const double bead_place[][3] = {
	{0.08, -0.21, 0.30}, {0.13, 0.17, 0.62}, {0.19, -0.05, 0.12}, {0.25, 0.27, 0.45},
	{0.31, -0.29, 0.78}, {0.37, 0.08, 0.88}, {0.43, -0.14, 0.50}, {0.49, 0.22, 0.20},
	{0.55, -0.24, 0.10}, {0.61, 0.03, 0.70}, {0.67, 0.14, 0.38},  {0.73, -0.10, 0.90},
};

/* Positions of the beads of the calibration phantom: x and y as fractions of the detector; the first half in the lower layer. No
 * rotation or mirror image of them is similar to them. */
static const double calibration_place[][2] = {
	{0.10, -0.30}, {0.16, 0.04}, {0.23, 0.27},  {0.38, -0.17}, {0.45, 0.12},  {0.58, -0.27}, {0.66, 0.22},	{0.72, -0.05},
	{0.13, -0.12}, {0.20, 0.16}, {0.27, -0.25}, {0.34, 0.29},  {0.43, -0.03}, {0.53, 0.25},	 {0.61, -0.13}, {0.70, 0.06},
};
#define N_CALIBRATION (sizeof calibration_place / sizeof *calibration_place)

/* Positions and half axes of the glandular tissue, as fractions of the breast's half axes. The ellipsoids are disjoint and inside
 * the breast. */
static const double gland[][6] = {
	{0.42, 0.05, 0.05, 0.22, 0.16, 0.55},	{0.30, -0.42, -0.20, 0.16, 0.15, 0.40}, {0.25, 0.48, 0.15, 0.14, 0.14, 0.45},
	{0.74, -0.14, -0.10, 0.08, 0.12, 0.35}, {0.12, -0.02, 0.30, 0.05, 0.20, 0.30},
};

/* Positions of the masses, as fractions of the breast's half axes, in adipose tissue; radius in mm. */
static const double mass[][4] = {{0.56, 0.36, 0.12, 5.0}, {0.62, -0.42, 0.25, 3.5}, {0.12, 0.28, -0.30, 2.5}};
static const double calcified[][4] = {
	{0.10, -0.32, 0.40, 0.50}, {0.12, 0.62, -0.35, 0.55}, {0.52, -0.26, -0.55, 0.50}, {0.70, 0.16, 0.45, 0.60},
	{0.45, 0.58, 0.55, 0.50},  {0.86, 0.05, -0.05, 0.55}, {0.22, -0.70, 0.10, 0.50},
};
static const double cluster[3] = {0.50, -0.62, 0.20};

struct builder {
	struct phantom *p;
	uint64_t stream;
};

static void add_shape(struct builder *b, enum shape_kind kind, enum shape_role role, const double c[3], const double r[3],
		      double mu)
{
	b->p->shapes[b->p->n++] =
		(struct shape){.kind = kind, .role = role, .c = {c[0], c[1], c[2]}, .r = {r[0], r[1], r[2]}, .mu = mu};
}

static double draw_offset(struct builder *b, double by)
{
	return by * (2 * poisson_uniform(&b->stream) - 1);
}

static void add_ball(struct builder *b, enum shape_role role, const double c[3], double moved, double radius, double mu)
{
	double at[3] = {c[0] + draw_offset(b, moved), c[1] + draw_offset(b, moved), c[2] + draw_offset(b, moved)};
	double r[3] = {radius, radius, radius};

	add_shape(b, SHAPE_ELLIPSOID, role, at, r, mu);
}

/* Add a plate that starts at the chest wall and leaves a rim of air at the other three sides. The rim is so wide that every view
 * shows air beside the plate's shadow (up to a sixth larger than the plate under a breast of 80 mm), from which I0 can be
 * determined. */
static void add_plate(struct builder *b, const double size[2], double support, double thickness, double mu)
{
	double c[3] = {0.41 * size[0], -0.005 * size[1], support + thickness / 2};
	double r[3] = {0.41 * size[0], 0.41 * size[1], thickness / 2};

	add_shape(b, SHAPE_BOX, ROLE_BODY, c, r, mu);
}

static void add_beads(struct builder *b, const double size[2], double support, double thickness)
{
	for (size_t i = 0; i < sizeof bead_place / sizeof *bead_place; i++) {
		const double *f = bead_place[i];
		double c[3] = {f[0] * size[0], f[1] * size[1], support + f[2] * thickness};

		add_ball(b, ROLE_BEAD, c, fmin(1, 0.02 * thickness), 0.5 + 0.02 * (double)i, MU_BEAD);
	}
}

static void add_calibration(struct builder *b, const double size[2], double support, double thickness)
{
	for (size_t i = 0; i < N_CALIBRATION; i++) {
		const double *f = calibration_place[i];
		double z = i < N_CALIBRATION / 2 ? LAYER_DEPTH : thickness - LAYER_DEPTH;
		double c[3] = {f[0] * size[0] + draw_offset(b, 1), f[1] * size[1] + draw_offset(b, 1), support + z};
		double r[3] = {0.5, 0.5, 0.5};

		add_shape(b, SHAPE_ELLIPSOID, ROLE_BEAD, c, r, MU_STEEL);
	}
}

static void add_breast(struct builder *b, const double size[2], double support, double thickness)
{
	double c[3] = {0, 0.02 * size[1], support + thickness / 2};
	double r[3] = {0.62 * size[0], 0.31 * size[1], thickness / 2};
	double moved = fmin(1, 0.02 * thickness);

	add_shape(b, SHAPE_BREAST, ROLE_BODY, c, r, MU_ADIPOSE);
	for (size_t i = 0; i < sizeof gland / sizeof *gland; i++) {
		const double *f = gland[i];
		double gc[3] = {c[0] + f[0] * r[0], c[1] + f[1] * r[1], c[2] + f[2] * r[2]};
		double gr[3] = {f[3] * r[0], f[4] * r[1], f[5] * r[2]};

		add_shape(b, SHAPE_ELLIPSOID, ROLE_BODY, gc, gr, MU_GLANDULAR - MU_ADIPOSE);
	}
	for (size_t i = 0; i < sizeof mass / sizeof *mass; i++) {
		const double *f = mass[i];
		double mc[3] = {c[0] + f[0] * r[0], c[1] + f[1] * r[1], c[2] + f[2] * r[2]};

		add_ball(b, ROLE_LESION, mc, moved, fmin(f[3], 0.2 * thickness), MU_MASS - MU_ADIPOSE);
	}
	for (size_t i = 0; i < sizeof calcified / sizeof *calcified; i++) {
		const double *f = calcified[i];
		double bc[3] = {c[0] + f[0] * r[0], c[1] + f[1] * r[1], c[2] + f[2] * r[2]};

		add_ball(b, ROLE_BEAD, bc, moved, f[3], MU_BEAD);
	}
	double cc[3] = {c[0] + cluster[0] * r[0], c[1] + cluster[1] * r[1], c[2] + cluster[2] * r[2]};
	for (int i = 0; i < N_CALCIFICATIONS; i++)
		add_ball(b, ROLE_LESION, cc, fmin(4, 0.08 * thickness), 0.15 + 0.015 * i, MU_CALCIFICATION);
}

int phantom_create(enum phantom_kind kind, const double size[2], double support, double thickness, unsigned seed,
		   struct phantom **ret_phantom, struct err *err)
{
	static const char *const names[] = {[PHANTOM_SLAB] = "slab",
					    [PHANTOM_BEADS] = "beads",
					    [PHANTOM_ELLIPSOIDS] = "ellipsoids",
					    [PHANTOM_CALIBRATION] = "calibration",
					    [PHANTOM_AIR] = "air"};
	struct builder b;

	if (kind < PHANTOM_SLAB || kind > PHANTOM_AIR)
		return err_set(err, EINVAL, "phantom kind %d, not in %d..%d", (int)kind, PHANTOM_SLAB, PHANTOM_AIR);
	if (!(size[0] > 0 && size[0] <= 1000 && size[1] > 0 && size[1] <= 1000))
		return err_set(err, EINVAL, "phantom: detector of %g x %g mm, not in (0, 1000]", size[0], size[1]);
	if (!(support >= 0 && support <= 500))
		return err_set(err, EINVAL, "phantom: support %g mm above the detector, not in 0..500", support);
	if (!(thickness > 0 && thickness <= 300))
		return err_set(err, EINVAL, "phantom: thickness %g mm, not in (0, 300]", thickness);

	b.p = calloc(1, sizeof *b.p);
	b.stream = poisson_stream(seed, (uint64_t)kind);
	if (b.p)
		b.p->shapes = calloc(SHAPES_MAX, sizeof *b.p->shapes);
	if (!b.p || !b.p->shapes) {
		phantom_free(b.p);
		return err_set(err, ENOMEM, "phantom: no memory for %d shapes", SHAPES_MAX);
	}
	snprintf(b.p->name, sizeof b.p->name, "%s", names[kind]);
	if (kind == PHANTOM_ELLIPSOIDS) {
		add_breast(&b, size, support, thickness);
	} else if (kind != PHANTOM_AIR) {
		add_plate(&b, size, support, thickness, kind == PHANTOM_SLAB ? MU_SLAB : MU_HOLDER);
		if (kind == PHANTOM_BEADS)
			add_beads(&b, size, support, thickness);
		if (kind == PHANTOM_CALIBRATION)
			add_calibration(&b, size, support, thickness);
	}
	*ret_phantom = b.p;
	return 0;
}
