/* SPDX-License-Identifier: Apache-2.0 */
/* photons.c - cross-sections, sampling of angles, free paths. */
#include "tests/pet_mc/photons.h"

#define ELECTRONS 3.3428e20  /* of water, 1/mm^3 */
#define RADIUS 2.8179403e-12 /* classical radius of the electron, mm */
#define ABSORPTION 2.07e-6   /* of water at 511 keV, 1/mm */

/* Return the total cross-section of Klein and Nishina, mm^2 (Evans, The Atomic Nucleus, 1955). */
static double klein_nishina(double kev)
{
	double k = kev / ELECTRON_KEV, l = log(1 + 2 * k);

	return 2 * M_PI * RADIUS * RADIUS *
	       ((1 + k) / (k * k) * (2 * (1 + k) / (1 + 2 * k) - l / k) + l / (2 * k) -
		(1 + 3 * k) / ((1 + 2 * k) * (1 + 2 * k)));
}

void matter_init(struct matter *m, double mu, double kev_least)
{
	double electrons = mu > 0 ? mu / klein_nishina(ELECTRON_KEV) : ELECTRONS;

	m->kev_least = kev_least;
	for (int i = 0; i < 512; i++) {
		double kev = i < 10 ? 10 : i, scatter = electrons * klein_nishina(kev);
		double absorbed = mu > 0 ? 0 : ABSORPTION * pow(ELECTRON_KEV / kev, 3);

		m->mu[i] = scatter + absorbed;
		m->compton[i] = scatter / m->mu[i];
	}
}

/* Turn a unit vector by an angle of the given cosine, around itself by a random one. */
static void turn(double d[3], double cosine, struct rng *g)
{
	double p, q, sine = sqrt(fmax(0, 1 - cosine * cosine) / rng_disc(g, &p, &q)), u[3], v[3], n = 0;
	int least = fabs(d[0]) < fabs(d[1]) ? 0 : 1; /* an axis that d is not along */

	least = fabs(d[2]) < fabs(d[least]) ? 2 : least;
	for (int i = 0; i < 3; i++) {
		u[i] = (i == least) - d[least] * d[i];
		n += u[i] * u[i];
	}
	n = 1 / sqrt(n);
	for (int i = 0; i < 3; i++)
		u[i] *= n;
	for (int i = 0; i < 3; i++)
		v[i] = d[(i + 1) % 3] * u[(i + 2) % 3] - d[(i + 2) % 3] * u[(i + 1) % 3];
	n = 0;
	for (int i = 0; i < 3; i++) {
		d[i] = cosine * d[i] + sine * (p * u[i] + q * v[i]);
		n += d[i] * d[i];
	}
	n = 1 / sqrt(n);
	for (int i = 0; i < 3; i++)
		d[i] *= n;
}

/* Sample the energy after a scatter, by the rejection of Butcher and Messel (1960), and turn the photon. */
static void scatter(struct photon *f, struct rng *g)
{
	double k = f->kev / ELECTRON_KEV, least = 1 / (1 + 2 * k), a1 = -log(least), a2 = 0.5 * (1 - least * least), e, t;

	do {
		double u = rng_uniform(g);

		if (rng_uniform(g) * (a1 + a2) < a1)
			e = exp(-a1 * u);
		else
			e = sqrt(least * least + (1 - least * least) * u);
		t = (1 - e) / (k * e); /* 1 - cosine */
	} while (rng_uniform(g) > 1 - e * t * (2 - t) / (1 + e * e));
	turn(f->d, 1 - t, g);
	f->kev *= e;
	f->scatters++;
}

/* Return the distance to the surface of the box from a point in it. */
static double distance_out(const struct mc_phantom *p, const struct photon *f)
{
	double least = INFINITY;

	for (int i = 0; i < 3; i++)
		if (f->d[i] != 0)
			least = fmin(least, ((f->d[i] > 0 ? p->hi[i] : p->lo[i]) - f->at[i]) / f->d[i]);
	return least;
}

bool photon_follow(const struct matter *m, const struct mc_phantom *p, struct rng *g, struct photon *f)
{
	double out = distance_out(p, f);

	for (;;) {
		int kev = (int)(f->kev + 0.5);
		double step = -log(rng_uniform(g)) / m->mu[kev];

		if (step >= out)
			return true;
		out -= step;
		for (int i = 0; i < 3; i++)
			f->at[i] += step * f->d[i];
		if (rng_uniform(g) >= mc_phantom_density(p, f->at))
			continue;
		if (rng_uniform(g) >= m->compton[kev])
			return false;
		scatter(f, g);
		if (f->kev < m->kev_least)
			return false;
		out = distance_out(p, f);
	}
}

void photon_first(const double at[3], struct rng *g, struct photon *ret)
{
	double u, v, s = rng_disc(g, &u, &v), r = 2 * sqrt(1 - s); /* Marsaglia 1972 */

	*ret = (struct photon){{at[0], at[1], at[2]}, {r * u, r * v, 1 - 2 * s}, ELECTRON_KEV, 0};
}

void photon_second(const double at[3], const double d[3], double deviation, struct rng *g, struct photon *ret)
{
	*ret = (struct photon){{at[0], at[1], at[2]}, {-d[0], -d[1], -d[2]}, ELECTRON_KEV, 0};
	if (deviation > 0) /* an angle with two normal components has the distribution of Rayleigh */
		turn(ret->d, cos(deviation * sqrt(-2 * log(rng_uniform(g)))), g);
}
