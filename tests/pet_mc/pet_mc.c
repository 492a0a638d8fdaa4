/* SPDX-License-Identifier: Apache-2.0 */
/* pet_mc: a Monte Carlo of PET for system tests, by sampling photons; it shares no code with the program that it tests.
 *
 * pet_mc sphere [ANNIHILATIONS]
 *   Print as JSON what leaves a uniform sphere (r 100 mm, 0.0096/mm, Compton scatter alone) with detectors all around: the part of
 *   annihilations without any scatter, and with one scatter, whose photon has more than 425 keV.
 * pet_mc iq|cylinder FOLDER [ANNIHILATIONS [RANDOMS [SEED]]]
 *   Measure a phantom (phantom.h) with a scanner (scanner.h). RANDOMS: as a part of the trues, default 0.5. Write to FOLDER
 *   - uint16 prompts, trues, single, multiple (scatter: one, several), randoms_counts, delayeds: counts
 *   - float randoms: expectation of randoms_counts and of delayeds
 *   - float expected: expectation of trues by the line integrals of the phantom along the rays of the bins
 *   - float attenuation: exp of the integral of water's attenuation along these rays; normalisation: correction factors
 *   - float [ring][column] efficiencies, singles; truth.json.
 * pet_mc mmr FOLDER EFFICIENCIES [ANNIHILATIONS [SEED]]
 *   Measure "iq-table" with the mMR, whose crystals have the efficiencies of a file: events.raw, a word (uint32) for each event in
 *   the order of time: bits 30, 31: 0 a true coincidence, 1 one scatter, 2 several; bits 15 to 29 and 0 to 14: crystals
 *   ring * columns + column; singles, efficiencies and truth.json as above. Randoms are left to the reader.
 *
 * - Annihilations are followed in batches of a fixed size, each with a random stream of its own, and counted as whole numbers:
 *the result depends on the seed, not on the number of threads.
 * - An event of two photons is found if both are; one whose first photon is not found is given up at once.
 * - Singles s of a crystal: twice the first photons that it finds. The randoms of a pair of crystals are k s s' = 2 tau s s' / T;
 *   their number is given, and each is sampled as two independent crystals with probabilities as s. Delayeds: a second such
 *sample.
 * - m of a bin: the sum of mc_scanner_share() of its pairs, times the squared probability of 511 keV to be in the window. The
 *   expectation of a bin is (annihilations per mm^3) m (integral of relative activity) exp(-integral of attenuation).
 *   NORMALISATION is K / m, K being the mean of m: so the image of a reconstruction is (annihilations per mm^3) K: `scale` in
 *   truth.json is that number for the background. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pet_mc/phantom.h"
#include "tests/pet_mc/photons.h"
#include "tests/pet_mc/scanner.h"

#define BATCH 100000
#define PAIR_BATCH 1000000
#define ACOLLINEARITY (0.5 / 2.354820045 * M_PI / 180) /* full width at half maximum 0.5 degrees */
#define KEV_LEAST 350.0				       /* 4 standard deviations below the window */
#define SPREAD 0.15

enum { TRUES, SINGLE, MULTIPLE, RANDOMS, DELAYEDS, KINDS };
static const char *const kind_name[KINDS] = {"trues", "single", "multiple", "randoms_counts", "delayeds"};

struct work {
	struct mc_phantom phantom;
	struct matter matter;
	struct mc_scanner scanner;
	uint64_t seed;
	size_t n_bins, n_crystals;
	unsigned *counts[KINDS]; /* [bin] */
	unsigned *found;	 /* [crystal]: first photons */
	double *cumulative;	 /* [crystal]: of singles */
	float *norm;		 /* [bin]: m, then the correction factor */
	float *randoms, *expected, *attenuation;
	double per_mm3, scale, pair_rate, total[KINDS], total_randoms;
};

static int sphere(double annihilations)
{
	struct mc_phantom p;
	struct matter m;
	double trues = 0, single = 0;
	long n = (long)(annihilations / BATCH);

	mc_phantom_init("sphere", &p);
	matter_init(&m, 0.0096, 425);
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : trues, single)
	for (long i = 0; i < n; i++) {
		struct rng g = rng_stream(1, (uint64_t)i);

		for (int k = 0; k < BATCH; k++) {
			struct photon f[2];
			double at[3];

			mc_phantom_sample(&p, &g, at);
			photon_first(at, &g, &f[0]);
			photon_second(at, f[0].d, 0, &g, &f[1]);
			if (!photon_follow(&m, &p, &g, &f[0]) || !photon_follow(&m, &p, &g, &f[1]))
				continue;
			trues += f[0].scatters + f[1].scatters == 0;
			single += f[0].scatters + f[1].scatters == 1;
		}
	}
	printf("{\"annihilations\": %ld, \"trues\": %.6f, \"single\": %.6f}\n", n * BATCH, trues / ((double)n * BATCH),
	       single / ((double)n * BATCH));
	return n > 0 ? 0 : 1;
}

static void count(unsigned *counts, long i)
{
	if (i < 0)
		return;
#pragma omp atomic
	counts[i]++;
}

/* Follow the photons of one annihilation: its kind if both are found, else -1. */
static int sample_event(struct work *w, struct rng *g, int ret_crystal[2])
{
	struct photon f[2];
	double at[3], d[3];
	int scatters;

	mc_phantom_sample(&w->phantom, g, at);
	photon_first(at, g, &f[0]);
	memcpy(d, f[0].d, sizeof(d));
	if (!photon_follow(&w->matter, &w->phantom, g, &f[0]))
		return -1;
	ret_crystal[0] = mc_scanner_find(&w->scanner, &f[0], g);
	if (ret_crystal[0] < 0)
		return -1;
	count(w->found, ret_crystal[0]);
	photon_second(at, d, ACOLLINEARITY, g, &f[1]);
	if (!photon_follow(&w->matter, &w->phantom, g, &f[1]))
		return -1;
	ret_crystal[1] = mc_scanner_find(&w->scanner, &f[1], g);
	scatters = f[0].scatters + f[1].scatters;
	return ret_crystal[1] < 0 ? -1 : scatters == 0 ? TRUES : scatters == 1 ? SINGLE : MULTIPLE;
}

static void follow(struct work *w, long batches)
{
#pragma omp parallel for schedule(dynamic, 1)
	for (long i = 0; i < batches; i++) {
		struct rng g = rng_stream(w->seed, (uint64_t)i);

		for (int k = 0; k < BATCH; k++) {
			int crystal[2], kind = sample_event(w, &g, crystal);

			if (kind >= 0)
				count(w->counts[kind], mc_scanner_bin(&w->scanner, crystal[0], crystal[1]));
		}
	}
	w->per_mm3 = (double)batches * BATCH / w->phantom.activity;
}

/* Write the events of the batches in their order. -1: the file cannot be written. */
static int follow_list(struct work *w, long batches, FILE *f)
{
	bool ok = true;

#pragma omp parallel for schedule(dynamic, 1) ordered
	for (long i = 0; i < batches; i++) {
		struct rng g = rng_stream(w->seed, (uint64_t)i);
		uint32_t word[BATCH];
		size_t n = 0;

		for (int k = 0; k < BATCH; k++) {
			int crystal[2], kind = sample_event(w, &g, crystal);

			if (kind >= 0)
				word[n++] = (uint32_t)kind << 30 | (uint32_t)crystal[0] << 15 | (uint32_t)crystal[1];
		}
#pragma omp ordered
		ok = fwrite(word, sizeof(*word), n, f) == n && ok;
	}
	w->per_mm3 = (double)batches * BATCH / w->phantom.activity;
	return ok ? 0 : -1;
}

/* Sum m and s s' over the pairs of each bin. Ring pairs of one difference and different sums have planes of their own, so that no
 * two threads write to one bin. */
static void sum_pairs(struct work *w)
{
	const struct mc_scanner *s = &w->scanner;
	int n = s->columns;

	for (int d = 0; d < s->rings; d++) {
#pragma omp parallel for schedule(dynamic, 1)
		for (int ring = 0; ring < s->rings - d; ring++)
			for (int a = 0; a < n; a++)
				for (int b = 0; b < (d ? n : a); b++) {
					int p = (ring + d) * n + a, q = ring * n + b;
					long bin = mc_scanner_bin(s, p, q);

					if (bin < 0)
						continue;
					w->norm[bin] += (float)mc_scanner_share(s, p, q);
					w->randoms[bin] += 4.0f * (float)w->found[p] * (float)w->found[q];
				}
	}
}

static int draw(const struct work *w, struct rng *g)
{
	double u = rng_uniform(g) * w->cumulative[w->n_crystals - 1];
	size_t lo = 0, hi = w->n_crystals - 1; /* the first crystal with cumulative > u */

	while (lo < hi) {
		size_t middle = (lo + hi) / 2;

		if (w->cumulative[middle] > u)
			hi = middle;
		else
			lo = middle + 1;
	}
	return (int)lo;
}

/* Sample randoms and delayeds; `part` of the trues are expected of each. */
static void sample_randoms(struct work *w, double part)
{
	double sum = 0, trues = 0, singles;
	long pairs, batches;

	for (size_t i = 0; i < w->n_bins; i++) {
		sum += w->randoms[i];
		trues += w->counts[TRUES][i];
	}
	for (size_t i = 0; i < w->n_crystals; i++)
		w->cumulative[i] = 2.0 * w->found[i] + (i ? w->cumulative[i - 1] : 0);
	singles = w->cumulative[w->n_crystals - 1];
	/* k s s' for a pair: of M draws of two crystals 2 s s' / S^2 M are this pair. */
	pairs = lround(part * trues / sum * singles * singles / 2);
	w->pair_rate = 2.0 * (double)pairs / (singles * singles);
	batches = (pairs + PAIR_BATCH - 1) / PAIR_BATCH;
	for (int kind = RANDOMS; kind <= DELAYEDS; kind++)
#pragma omp parallel for schedule(dynamic, 1)
		for (long i = 0; i < batches; i++) {
			struct rng g = rng_stream(w->seed + (uint64_t)kind, (uint64_t)i);
			long n = i + 1 < batches ? PAIR_BATCH : pairs - i * PAIR_BATCH;

			while (n-- > 0) {
				int p = draw(w, &g), q = draw(w, &g);

				count(w->counts[kind], p == q ? -1 : mc_scanner_bin(&w->scanner, p, q));
			}
		}
	for (size_t i = 0; i < w->n_bins; i++) {
		w->randoms[i] = (float)(w->randoms[i] * w->pair_rate);
		w->total_randoms += w->randoms[i];
	}
}

static void expect(struct work *w)
{
	double window = mc_scanner_window(&w->scanner, ELECTRON_KEV), mean = 0;

	for (size_t i = 0; i < w->n_bins; i++)
		mean += w->norm[i] * window * window / (double)w->n_bins;
#pragma omp parallel for schedule(dynamic, 4096)
	for (size_t i = 0; i < w->n_bins; i++) {
		double a[3], b[3], activity, density, m = w->norm[i] * window * window;

		mc_scanner_ray(&w->scanner, i, a, b);
		mc_phantom_line(&w->phantom, a, b, &activity, &density);
		w->attenuation[i] = (float)exp(density * w->matter.mu[511]);
		w->expected[i] = (float)(w->per_mm3 * m * activity / w->attenuation[i]);
		w->norm[i] = (float)(mean / m);
	}
	w->scale = w->per_mm3 * mean;
}

/* ---- files ---- */

static int write_floats(const char *folder, const char *name, const float *values, size_t n)
{
	char path[4096];
	size_t written;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.raw", folder, name);
	f = fopen(path, "wb");
	if (!f)
		return -1;
	written = fwrite(values, sizeof(*values), n, f);
	return fclose(f) || written != n ? -1 : 0;
}

static int write_crystals(struct work *w, const char *folder)
{
	float *values = calloc(w->n_crystals, sizeof(*values));
	int rc = values ? 0 : -1;

	for (size_t i = 0; i < (values ? w->n_crystals : 0); i++)
		values[i] = 2.0f * (float)w->found[i];
	rc = rc ? rc : write_floats(folder, "singles", values, w->n_crystals);
	for (size_t i = 0; i < (values ? w->n_crystals : 0); i++)
		values[i] = (float)w->scanner.efficiency[i];
	rc = rc ? rc : write_floats(folder, "efficiencies", values, w->n_crystals);
	free(values);
	return rc;
}

/* What sinograms and lists have in common; the object is left open. */
static FILE *write_scan(const struct work *w, const char *folder)
{
	const struct mc_scanner *s = &w->scanner;
	static const char *const solid[] = {"body", "cylinder", "sphere", "box"};
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/truth.json", folder);
	f = fopen(path, "w");
	if (!f)
		return NULL;
	fprintf(f, "{\"phantom\": \"%s\", \"seed\": %llu, \"annihilations\": %.0f, \"per_mm3\": %.9g, \"window_511\": %.9g,\n",
		w->phantom.name, (unsigned long long)w->seed, w->per_mm3 * w->phantom.activity, w->per_mm3,
		mc_scanner_window(s, ELECTRON_KEV));
	fprintf(f, "\"mu_water\": %.9g, \"kev_low\": %g, \"kev_high\": %g, \"resolution\": %g,\n", w->matter.mu[511], s->kev_low,
		s->kev_high, s->resolution);
	fprintf(f, "\"rings\": %d, \"columns\": %d, \"radius\": %g, \"ring_spacing\": %g,\n", s->rings, s->columns, s->radius,
		s->ring_spacing);
	fprintf(f, "\"solids\": [");
	for (int i = 0; i < w->phantom.n; i++) {
		const struct solid *o = &w->phantom.solid[i];

		fprintf(f,
			"%s\n{\"name\": \"%s\", \"kind\": \"%s\", \"center\": [%.9g, %.9g, %.9g], \"radius\": %g, \"half_z\": "
			"%g, "
			"\"corner\": %g, \"activity\": %g, \"density\": %g}",
			i ? "," : "", o->name, solid[o->kind], o->c[0], o->c[1], o->c[2], o->r, o->half_z, o->corner, o->activity,
			o->density);
	}
	fprintf(f, "]");
	return f;
}

static int write_truth(const struct work *w, const char *folder)
{
	const struct mc_scanner *s = &w->scanner;
	FILE *f = write_scan(w, folder);

	if (!f)
		return -1;
	fprintf(f, ",\n\"scale\": %.9g, \"pair_rate\": %.9g, \"spread\": %g,\n", w->scale, w->pair_rate, SPREAD);
	fprintf(f, "\"planes\": %d, \"angles\": %d, \"radial\": %d, \"segments\": [", s->n_planes, s->n_angles, s->n_radial);
	for (int i = 0; i < s->n_segments; i++)
		fprintf(f, "%s[%d, %d, %d]", i ? ", " : "", s->segment[i][0], s->segment[i][1], s->segment[i][2]);
	fprintf(f, "],\n\"expected_randoms\": %.9g", w->total_randoms);
	for (int k = 0; k < KINDS; k++)
		fprintf(f, ", \"%s\": %.0f", kind_name[k], w->total[k]);
	fprintf(f, "}\n");
	return fclose(f) ? -1 : 0;
}

/* Write all files; prompts take the place of trues, which are written before. */
static int write_all(struct work *w, const char *folder)
{
	const struct mc_scanner *s = &w->scanner;
	int rc = 0;

	for (int k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < w->n_bins; i++)
			w->total[k] += w->counts[k][i];
		rc = rc ? rc : mc_scanner_write(s, folder, kind_name[k], w->counts[k], NULL);
	}
	for (size_t i = 0; i < w->n_bins; i++)
		w->counts[TRUES][i] += w->counts[SINGLE][i] + w->counts[MULTIPLE][i] + w->counts[RANDOMS][i];
	rc = rc ? rc : mc_scanner_write(s, folder, "prompts", w->counts[TRUES], NULL);
	rc = rc ? rc : mc_scanner_write(s, folder, "randoms", NULL, w->randoms);
	rc = rc ? rc : mc_scanner_write(s, folder, "expected", NULL, w->expected);
	rc = rc ? rc : mc_scanner_write(s, folder, "attenuation", NULL, w->attenuation);
	rc = rc ? rc : mc_scanner_write(s, folder, "normalisation", NULL, w->norm);
	rc = rc ? rc : write_crystals(w, folder);
	return rc ? rc : write_truth(w, folder);
}

static int allocate(struct work *w)
{
	float **values[] = {&w->norm, &w->randoms, &w->expected, &w->attenuation};
	bool ok = true;

	w->n_bins = mc_scanner_bins(&w->scanner);
	w->n_crystals = (size_t)w->scanner.rings * (size_t)w->scanner.columns;
	for (int k = 0; k < KINDS; k++)
		ok = (w->counts[k] = calloc(w->n_bins, sizeof(*w->counts[k]))) && ok;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		ok = (*values[i] = calloc(w->n_bins, sizeof(**values[i]))) && ok;
	w->found = calloc(w->n_crystals, sizeof(*w->found));
	w->cumulative = calloc(w->n_crystals, sizeof(*w->cumulative));
	return ok && w->found && w->cumulative ? 0 : -1;
}

/* pet_mc mmr: measure "iq-table" with the mMR. */
static int measure_list(struct work *w, int argc, char **argv)
{
	char path[4096];
	FILE *f;
	int rc;

	if (argc < 4 || mc_phantom_init("iq-table", &w->phantom) < 0 || mc_scanner_mmr(&w->scanner, argv[3]) < 0) {
		fprintf(stderr, "usage: pet_mc mmr FOLDER EFFICIENCIES [ANNIHILATIONS [SEED]]\n");
		return 2;
	}
	w->seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 1;
	matter_init(&w->matter, 0, w->scanner.kev_low - 100);
	snprintf(path, sizeof(path), "%s/events.raw", argv[2]);
	f = allocate(w) < 0 ? NULL : fopen(path, "wb");
	if (!f)
		return 1;
	rc = follow_list(w, lround((argc > 4 ? atof(argv[4]) : 2e7) / BATCH), f);
	rc = fclose(f) ? -1 : rc;
	rc = rc ? rc : write_crystals(w, argv[2]);
	f = rc ? NULL : write_scan(w, argv[2]);
	if (!f || fprintf(f, "}\n") < 0 || fclose(f)) {
		fprintf(stderr, "pet_mc: cannot write to %s\n", argv[2]);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct work w; /* its arrays are freed with the process */

	if (argc >= 2 && !strcmp(argv[1], "sphere"))
		return sphere(argc > 2 ? atof(argv[2]) : 1e7);
	if (argc >= 2 && !strcmp(argv[1], "mmr"))
		return measure_list(&w, argc, argv);
	if (argc < 3 || mc_phantom_init(argv[1], &w.phantom) < 0) {
		fprintf(stderr,
			"usage: pet_mc sphere [ANNIHILATIONS] | mmr FOLDER EFFICIENCIES [...] | iq|cylinder FOLDER [ANNIHILATIONS [RANDOMS [SEED]]]\n");
		return 2;
	}
	w.seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 1;
	matter_init(&w.matter, 0, KEV_LEAST);
	if (mc_scanner_init(&w.scanner, SPREAD, w.seed) < 0 || allocate(&w) < 0) {
		fprintf(stderr, "pet_mc: no memory\n");
		return 1;
	}
	follow(&w, lround((argc > 3 ? atof(argv[3]) : 2e7) / BATCH));
	sum_pairs(&w);
	sample_randoms(&w, argc > 4 ? atof(argv[4]) : 0.5);
	expect(&w);
	if (write_all(&w, argv[2]) < 0) {
		fprintf(stderr, "pet_mc: cannot write to %s\n", argv[2]);
		return 1;
	}
	return 0;
}
