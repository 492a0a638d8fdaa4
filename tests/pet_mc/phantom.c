/* SPDX-License-Identifier: Apache-2.0 */
/* phantom.c - solids: inside, volume, the part of a line inside. */
#include "tests/pet_mc/phantom.h"

#include <stdbool.h>
#include <string.h>

/* Densities, of water. */
#define LUNG 0.3
#define TABLE 0.4
#define COIL 0.5

static bool inside(const struct solid *s, const double at[3])
{
	double x = fabs(at[0] - s->c[0]), y = at[1] - s->c[1], z = at[2] - s->c[2], side;

	if (s->kind == SOLID_SPHERE)
		return x * x + y * y + z * z <= s->r * s->r;
	if (fabs(z) > s->half_z)
		return false;
	if (s->kind == SOLID_BOX)
		return x <= s->r && fabs(y) <= s->corner;
	if (s->kind == SOLID_CYLINDER || y <= 0)
		return x * x + y * y <= s->r * s->r;
	side = fmax(0, x - (s->r - s->corner));
	return side * side + y * y <= s->corner * s->corner;
}

static double volume(const struct solid *s)
{
	if (s->kind == SOLID_SPHERE)
		return 4 / 3.0 * M_PI * s->r * s->r * s->r;
	if (s->kind == SOLID_CYLINDER)
		return M_PI * s->r * s->r * 2 * s->half_z;
	if (s->kind == SOLID_BOX)
		return 8 * s->r * s->corner * s->half_z;
	return (M_PI / 2 * (s->r * s->r + s->corner * s->corner) + 2 * (s->r - s->corner) * s->corner) * 2 * s->half_z;
}

/* ---- the part t0 < t < t1 of a line a + t d in a solid ---- */

struct part {
	double t0, t1;
};

/* Intersect with the values where lo <= a + t d <= hi. */
static struct part within(struct part p, double a, double d, double lo, double hi)
{
	double u, v;

	if (d == 0)
		return a < lo || a > hi ? (struct part){1, 0} : p;
	u = (lo - a) / d;
	v = (hi - a) / d;
	return (struct part){fmax(p.t0, fmin(u, v)), fmin(p.t1, fmax(u, v))};
}

/* Intersect with a circle (axes 2) or a sphere (axes 3). */
static struct part in_ball(struct part p, const double a[3], const double d[3], const double c[3], double r, int axes)
{
	double dd = 0, da = 0, aa = -r * r, root;

	for (int i = 0; i < axes; i++) {
		dd += d[i] * d[i];
		da += d[i] * (a[i] - c[i]);
		aa += (a[i] - c[i]) * (a[i] - c[i]);
	}
	if (dd == 0)
		return aa > 0 ? (struct part){1, 0} : p;
	root = da * da - dd * aa;
	if (root <= 0)
		return (struct part){1, 0};
	root = sqrt(root);
	return (struct part){fmax(p.t0, (-da - root) / dd), fmin(p.t1, (-da + root) / dd)};
}

static struct part hull(struct part p, struct part q)
{
	if (p.t0 >= p.t1)
		return q;
	return q.t0 >= q.t1 ? p : (struct part){fmin(p.t0, q.t0), fmax(p.t1, q.t1)};
}

/* NEMA's body is convex: its part is the hull of those in its four pieces. */
static struct part in_body(struct part p, const struct solid *s, const double a[3], const double d[3])
{
	double wide = s->r - s->corner, left[3] = {s->c[0] - wide, s->c[1], 0}, right[3] = {s->c[0] + wide, s->c[1], 0};
	struct part upper = within(p, a[1], d[1], -INFINITY, s->c[1]), lower = within(p, a[1], d[1], s->c[1], INFINITY);
	struct part box = within(within(p, a[0], d[0], s->c[0] - wide, s->c[0] + wide), a[1], d[1], s->c[1], s->c[1] + s->corner);

	return hull(hull(in_ball(upper, a, d, s->c, s->r, 2), box),
		    hull(in_ball(lower, a, d, left, s->corner, 2), in_ball(lower, a, d, right, s->corner, 2)));
}

static struct part in_box(struct part p, const struct solid *s, const double a[3], const double d[3])
{
	p = within(p, a[0], d[0], s->c[0] - s->r, s->c[0] + s->r);
	return within(p, a[1], d[1], s->c[1] - s->corner, s->c[1] + s->corner);
}

static double length_in(const struct solid *s, const double a[3], const double d[3])
{
	struct part p = {0, 1};

	if (s->kind == SOLID_SPHERE) {
		p = in_ball(p, a, d, s->c, s->r, 3);
	} else {
		p = within(p, a[2], d[2], s->c[2] - s->half_z, s->c[2] + s->half_z);
		p = s->kind == SOLID_BODY  ? in_body(p, s, a, d)
		    : s->kind == SOLID_BOX ? in_box(p, s, a, d)
					   : in_ball(p, a, d, s->c, s->r, 2);
	}
	return fmax(0, p.t1 - p.t0) * sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

void mc_phantom_line(const struct mc_phantom *p, const double a[3], const double b[3], double *ret_activity, double *ret_density)
{
	double d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};

	*ret_activity = *ret_density = 0;
	for (int i = 0; i < p->n; i++) {
		double length = length_in(&p->solid[i], a, d);

		*ret_activity += length * p->solid[i].activity;
		*ret_density += length * p->solid[i].density;
	}
}

/* ---- points ---- */

double mc_phantom_density(const struct mc_phantom *p, const double at[3])
{
	double sum = 0;

	for (int i = 0; i < p->n; i++)
		if (p->solid[i].density != 0 && inside(&p->solid[i], at))
			sum += p->solid[i].density;
	return sum;
}

/* A place in a solid that adds activity, chosen by its amount; not in one that takes it away, which leaves none there. */
void mc_phantom_sample(const struct mc_phantom *p, struct rng *g, double ret_at[3])
{
	for (bool cold = true; cold;) {
		double u = rng_uniform(g) * p->positive;
		const struct solid *s = p->solid;

		while (u >= s->amount && s < p->solid + p->n - 1)
			u -= s++->amount;
		if (s->amount == 0)
			continue; /* by rounding beyond the last one with activity */
		do {
			double top = s->kind == SOLID_BODY ? s->corner : s->r, z = s->kind == SOLID_SPHERE ? s->r : s->half_z;

			ret_at[0] = s->c[0] + (2 * rng_uniform(g) - 1) * s->r;
			ret_at[1] = s->c[1] - s->r + (s->r + top) * rng_uniform(g);
			ret_at[2] = s->c[2] + (2 * rng_uniform(g) - 1) * z;
		} while (!inside(s, ret_at));
		cold = false;
		for (int i = 0; i < p->n; i++)
			cold = cold || (p->solid[i].activity < 0 && inside(&p->solid[i], ret_at));
	}
}

/* ---- phantoms ---- */

static void add(struct mc_phantom *p, struct solid s)
{
	double z = s.kind == SOLID_SPHERE ? s.r : s.half_z;

	for (int i = 0; i < 3; i++) {
		double half = i == 2 ? z : i == 1 && s.kind == SOLID_BOX ? s.corner : s.r;

		p->lo[i] = fmin(p->lo[i], s.c[i] - half);
		p->hi[i] = fmax(p->hi[i], s.c[i] + (i == 1 && s.kind == SOLID_BODY ? s.corner : half));
	}
	p->activity += s.activity * volume(&s);
	s.amount = fmax(0, s.activity) * volume(&s);
	p->positive += s.amount;
	p->solid[p->n++] = s;
}

static void add_iq(struct mc_phantom *p)
{
	static const struct {
		const char *name;
		double diameter, activity;
	} balls[] = {{"10", 10, 3}, {"13", 13, 3}, {"17", 17, 3}, {"22", 22, 3}, {"28", 28, -1}, {"37", 37, -1}};

	add(p, (struct solid){"body", SOLID_BODY, {0, 35, 0}, 147, 90, 77, 1, 1, 0});
	add(p, (struct solid){"lung", SOLID_CYLINDER, {0, 0, 0}, 25, 90, 0, -1, LUNG - 1, 0});
	for (int i = 0; i < 6; i++) {
		double angle = (i - 2) * M_PI / 3;

		add(p, (struct solid){balls[i].name,
				      SOLID_SPHERE,
				      {57.2 * cos(angle), 57.2 * sin(angle), -22},
				      balls[i].diameter / 2,
				      0,
				      0,
				      balls[i].activity,
				      0,
				      0});
	}
}

/* The coil is the difference of two cylinders. */
static void add_table(struct mc_phantom *p)
{
	add(p, (struct solid){"table", SOLID_BOX, {0, 127, 0}, 200, 129, 10, 0, TABLE, 0});
	add(p, (struct solid){"coil outside", SOLID_CYLINDER, {0, 0, 0}, 250, 129, 0, 0, COIL, 0});
	add(p, (struct solid){"coil inside", SOLID_CYLINDER, {0, 0, 0}, 247, 129, 0, 0, -COIL, 0});
}

int mc_phantom_init(const char *name, struct mc_phantom *ret)
{
	*ret = (struct mc_phantom){.name = name, .lo = {INFINITY, INFINITY, INFINITY}, .hi = {-INFINITY, -INFINITY, -INFINITY}};
	if (!strcmp(name, "iq") || !strcmp(name, "iq-table"))
		add_iq(ret);
	else if (!strcmp(name, "cylinder"))
		add(ret, (struct solid){"body", SOLID_CYLINDER, {0, 0, 0}, 100, 90, 0, 1, 1, 0});
	else if (!strcmp(name, "sphere"))
		add(ret, (struct solid){"body", SOLID_SPHERE, {0, 0, 0}, 100, 0, 0, 1, 1, 0});
	else
		return -1;
	if (!strcmp(name, "iq-table"))
		add_table(ret);
	return 0;
}
