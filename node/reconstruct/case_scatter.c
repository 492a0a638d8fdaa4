/* SPDX-License-Identifier: Apache-2.0 */
/* case_scatter.c - the step "scatter": the expected scatter of each bin by single scatter simulation
 * (recon/scatter/scatter_estimate.h), added to the background b.
 *
 * It needs the map of mu of the step "attenuation", the randoms of the steps before it, and the energy window of the scanner,
 * from the configuration or from the header of the data. Factors of the data with TOF bins are replaced by their mean.
 *
 * The estimate has images of its own, whose parameters are fixed (recon/scatter/scatter_estimate.c): of the protocol it depends
 * only on scatter_iterations, memory_limit, tof_mashing and the corrections that are made. Protocols that agree in these share it
 * in the cache (node/reconstruct/case_cache.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/case_cache.h"

#define VERSION "scatter 4" /* of the computation, for the cache: another number makes no use of what is there */
#define WINDOW "window="    /* in case_corrections.from */

/* Name what the data bring for scatter; NULL: nothing. */
static const char *ready_made(const struct sinogram *s)
{
	if (s->part[SINOGRAM_ADDITIVE].present)
		return "it is in the role ADDITIVE of the data";
	if (strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "scatter") || strstr(s->facts.corrected, "SCAT"))
		return "the data are already corrected for it";
	return NULL;
}

static bool header_differs(double header, double known)
{
	return header > 0 && known > 0 && fabs(header / known - 1) > 1e-3;
}

/* Say that the header has another energy window or resolution than the scanner in the configuration. */
static void say_window(struct case_corrections *c, const struct interfile *h, const struct scanner_conf *known)
{
	if (header_differs(h->energy_low, known->energy_low) || header_differs(h->energy_high, known->energy_high) ||
	    header_differs(h->energy_resolution, known->energy_resolution))
		case_corrections_say(
			c,
			"The header of the data has the energy window %g to %g keV and the energy resolution %g %% (0: it "
			"has none), scanner %s of the configuration %g to %g keV and %g %%, which were used for the "
			"scatter.",
			h->energy_low, h->energy_high, h->energy_resolution, known->name, known->energy_low, known->energy_high,
			known->energy_resolution);
}

/* Take what the scanner in the configuration has, and the rest from the header of the data. */
static int find_window(struct case_corrections *c, struct err *err)
{
	const struct interfile *h = &c->s->part[SINOGRAM_EMISSION].header;
	const struct scanner_conf *known = c->s->scanner, nothing = {.energy_low = 0}, *k = known ? known : &nothing;
	struct single_scatter_conf w = {
		.energy_low = k->energy_low > 0 ? k->energy_low : h->energy_low,
		.energy_high = k->energy_high > 0 ? k->energy_high : h->energy_high,
		.energy_resolution = k->energy_resolution > 0 ? k->energy_resolution : h->energy_resolution,
		.seed = 1,
	};

	/* 511 keV are in the window; the configuration cannot be otherwise */
	if (!(w.energy_low > 0 && w.energy_low < 511 && w.energy_high > 511 && w.energy_resolution > 0))
		return err_set(
			err, ENOTSUP,
			"protocol '%s': the correction \"scatter\" needs the energy window of the scanner: give energy_low, "
			"energy_high and energy_resolution %s%s in the configuration, or the keys \"energy window lower "
			"level[1]\", \"energy window upper level[1]\" (keV, around 511) and \"Energy resolution\" in the header",
			c->work->protocol->name, known ? "of the scanner " : "of an entry of `scanners` for this scanner",
			k->name);
	if (known)
		say_window(c, h, known);
	c->scatter.simulation = w;
	return 0;
}

static struct scatter_estimate_conf conf_of(const struct case_corrections *c)
{
	const struct pet_protocol *p = &c->work->protocol->pet;

	return (struct scatter_estimate_conf){.simulation = c->scatter.simulation,
					      .iterations = p->scatter_iterations,
					      .memory_limit = p->memory_limit,
					      .threads = threads_available()};
}

/* Count the memory: of the estimate and its data while it is made, of the estimate and the factors while the session is open. */
static int plan_memory(struct case_corrections *c, struct err *err)
{
	const struct scatter_estimate_conf conf = conf_of(c);
	struct scatter_estimate_plan plan;
	int rc = scatter_estimate_plan(c->m, &conf, c->work->dev, &plan, err);

	if (rc < 0)
		return rc;
	c->bytes_host += michelogram_bins(c->m) * sizeof(float) + plan.bytes_kept + case_cache_bytes(c, plan.bytes_packed);
	if (!c->s->list) /* all roles stay until the session has them */
		c->bytes_host += case_planes_bytes_kept(c->s) - case_planes_bytes(c->s);
	c->bytes_read += 2 * michelogram_bins(c->m) * sizeof(float) + plan.bytes_host;
	if (case_cache_bytes(c, plan.bytes_packed) > 0) /* a copy, while it is stored */
		c->bytes_read += plan.bytes_packed;
	if (plan.bytes_device > c->bytes_device)
		c->bytes_device = plan.bytes_device;
	return 0;
}

static int prepare_scatter(struct case_corrections *c, struct err *err)
{
	const char *ready = ready_made(c->s);
	int rc;

	if (ready) {
		case_corrections_say(c, "The scatter was not simulated: %s.", ready);
		return 0;
	}
	if (!(c->made & PET_CORRECT_ATTENUATION)) {
		case_corrections_say(c, "Not corrected for scatter: its simulation needs the attenuation map that the correction "
					"\"attenuation\" makes from a CT or a map.");
		return 0;
	}
	rc = find_window(c, err);
	if (rc < 0)
		return rc;
	if (!case_randoms_are_known(c)) {
		case_corrections_say(
			c, "Not corrected for scatter: it is fitted to the data outside of the patient, where randoms are, "
			   "too, and these are not known.");
		return 0;
	}
	c->made |= PET_CORRECT_SCATTER;
	c->background = true;
	return plan_memory(c, err);
}

/* Add the backgrounds of the steps before, summed over the TOF bins. */
static void add_backgrounds(const struct case_corrections *c, float *background)
{
	size_t planes = michelogram_planes(c->m), n = michelogram_plane_bins(c->m);
	size_t n_tof = c->m->tof.n > 0 ? (size_t)c->m->tof.n : 1;

	for (size_t p = 0; p < planes; p++)
		for (int i = 0; i < c->terms.n_backgrounds; i++)
			for (size_t k = 0; k < n_tof; k++)
				c->terms.background[i].add(c->terms.background[i].ctx, k, p, background + p * n);
}

/* Describe what was found in all frames so far. */
static void describe_found(struct case_scatter *s)
{
	const struct scatter_estimate_report *r = &s->report;
	char percent[32];

	s->fraction[0] = s->planes > 0 ? fmin(s->fraction[0], r->scale.fraction) : r->scale.fraction;
	s->fraction[1] = s->planes > 0 ? fmax(s->fraction[1], r->scale.fraction) : r->scale.fraction;
	s->scale[0] = s->planes > 0 ? fmin(s->scale[0], r->scale.least) : r->scale.least;
	s->scale[1] = s->planes > 0 ? fmax(s->scale[1], r->scale.most) : r->scale.most;
	if (s->fraction[0] < s->fraction[1])
		snprintf(percent, sizeof(percent), "%.1f to %.1f", 100 * s->fraction[0], 100 * s->fraction[1]);
	else
		snprintf(percent, sizeof(percent), "%.1f", 100 * s->fraction[0]);
	snprintf(s->found, sizeof(s->found), "scatter %s %% of the counts without randoms, scale %.2f to %.2f", percent,
		 s->scale[0], s->scale[1]);
}

static struct case_cache_key key_of(const struct case_corrections *c)
{
	const struct single_scatter_conf *w = &c->scatter.simulation;
	const struct pet_protocol *p = &c->work->protocol->pet;
	struct {
		double numbers[9];
		unsigned char map[DIGEST_BYTES];
	} settings = {.numbers = {w->energy_low, w->energy_high, w->energy_resolution, (double)w->seed, p->scatter_iterations,
				  (double)p->memory_limit, c->made, c->attenuation.covered[0], c->attenuation.covered[1]}};

	memcpy(settings.map, c->attenuation.identity, sizeof(settings.map));
	return case_cache_key(c, VERSION, &settings, sizeof(settings));
}

/* Take the estimate of the chosen frame from the cache. false: it is not there. */
static bool find_estimate(struct case_corrections *c, const struct case_cache_key *key)
{
	const struct scatter_estimate_conf conf = conf_of(c);
	size_t n;
	const void *bytes = case_cache_find(c, key, &n);

	scatter_estimate_clear(&c->scatter.made);
	return bytes &&
	       scatter_estimate_unpack(c->m, &conf, c->work->dev, bytes, n, &c->scatter.made, &c->scatter.report, NULL) == 0;
}

/* Keep it; without memory it is computed again for the next result. */
static void keep_estimate(const struct case_corrections *c, const struct case_cache_key *key)
{
	void *bytes;
	size_t n;

	if (!key->known || scatter_estimate_pack(c->m, &c->scatter.made, &c->scatter.report, &bytes, &n, NULL) < 0)
		return;
	case_cache_keep(c, key, bytes, n);
	free(bytes);
}

/* Count the planes whose scale was limited. */
static int scale_limits(const struct scatter_scale_report *r)
{
	int n = r->at_least + r->at_most + r->at_counts;

	return n < r->planes ? n : r->planes;
}

/* Add what was found for the chosen frame to what the result says. */
static void report_estimate(struct case_corrections *c)
{
	struct case_scatter *s = &c->scatter;

	describe_found(s);
	s->at_limit += scale_limits(&s->report.scale);
	s->planes += s->report.scale.planes;
	s->seconds_image += s->report.seconds_image;
	s->seconds_simulate += s->report.seconds_simulate;
	s->seconds_scale += s->report.seconds_scale;
}

/* Estimate the scatter of the chosen frame. */
static int estimate_scatter(struct case_corrections *c, const float *prompts, const float *background, struct err *err)
{
	const struct scatter_estimate_conf conf = conf_of(c);
	const struct case_attenuation *a = &c->attenuation;
	const struct scatter_data data = {prompts,
					  background,
					  c->scatter.norm,
					  attenuation_factors(a->made),
					  a->body ? attenuation_factors(a->body) : NULL,
					  a->is_short ? a->covered : NULL};
	struct err why = {0};
	int rc;

	rc = scatter_estimate(c->m, &conf, &data, &c->attenuation.plan.grid, attenuation_map(c->attenuation.made), c->work->dev,
			      c->work->monitor, &c->scatter.made, &c->scatter.report, &why);
	if (rc == -EDOM) { /* a frame without counts, or air: there is no scatter */
		if (c->scatter.without++ == 0)
			case_corrections_say(c, "No scatter was simulated%s: %s.",
					     c->s->images.n > 0 ? " for a part of the acquisition" : "", why.msg);
		if (c->s->images.n == 0)
			c->s->made &= ~PET_CORRECT_SCATTER;
		return 0;
	}
	if (rc < 0) {
		if (err)
			*err = why;
		return err_remap(rc, EINVAL, EBADMSG, err); /* negative counts and the like: the case is to be held */
	}
	report_estimate(c);
	return 0;
}

/* Say which planes leave the map of the body: once, of the first bed that has any. */
static void say_beyond(struct case_corrections *c)
{
	const struct scatter_scale_report *r = &c->scatter.report.scale;
	const double *covered = c->attenuation.covered;
	int first = 0, last = 0, n = 0;
	char direct[64] = "no direct plane";

	if (r->beyond == 0 || c->scatter.said_beyond)
		return;
	for (int s = 0; s < c->m->n_segments; s++)
		for (int p = 0; c->m->segments[s].first + c->m->segments[s].last == 0 && p < c->m->segments[s].n_planes; p++) {
			double z, rise;

			n++;
			michelogram_place(c->m, s, p, &z, &rise);
			if (z < covered[0] || z > covered[1])
				continue;
			first = first > 0 ? first : n;
			last = n;
		}
	if (first > 0)
		snprintf(direct, sizeof(direct), "the direct planes %d to %d of %d", first, last, n);
	case_corrections_say(
		c,
		"Not corrected for scatter in all planes: the %s contains %s, and the lines of %d of %d planes%s leave "
		"it; their scatter lacks what is beyond, and has the scale of the others.",
		case_maps_word(c), direct, r->beyond, r->planes, c->s->images.of == PET_BEDS ? " of a bed" : "");
	c->scatter.said_beyond = true;
}

/* Say that the simulation does not explain the data: once, of the first frame. A limited scale has its own sentence. */
static void say_doubtful(struct case_corrections *c)
{
	const struct scatter_scale_report *r = &c->scatter.report.scale;

	if (c->scatter.said_doubtful || r->at_most > 0)
		return;
	if (r->doubtful > 0)
		case_corrections_say(
			c,
			"The scatter is doubtful: its scale is more than %g in %d of %d planes, up to %.1f; the data "
			"outside of the object have more counts than single scatter explains, as with a truncated %s.",
			SCATTER_SCALE_DOUBTFUL, r->doubtful, r->planes, r->doubtful_most, case_maps_word(c));
	if (r->doubtful_fraction)
		case_corrections_say(c, "The scatter is doubtful: it is %.0f %% of the counts without randoms.",
				     100 * r->fraction);
	c->scatter.said_doubtful = r->doubtful > 0 || r->doubtful_fraction;
}

/* Say what is doubtful in the fit of the chosen frame. */
static void say_scale(struct case_corrections *c)
{
	const struct scatter_scale_report *r = &c->scatter.report.scale;

	if (!c->scatter.made.simulated)
		return;
	if (c->scatter.at_limit == scale_limits(r)) { /* of the first frame that has any */
		for (int most = 0; most < 2; most++)
			if (most ? r->at_most > 0 : r->at_least > 0)
				case_corrections_say(c,
						     "The scale of the scatter was limited to %g in %d of %d planes: the data "
						     "outside of the object have %s counts than the simulation.",
						     most ? SCATTER_SCALE_MOST : SCATTER_SCALE_LEAST,
						     most ? r->at_most : r->at_least, r->planes, most ? "far more" : "far fewer");
		if (r->at_counts > 0)
			case_corrections_say(
				c,
				"The scatter was limited in %d of %d planes: the data outside of the object ask for more "
				"than all counts without randoms, or than %g %% of those of all planes.",
				r->at_counts, r->planes, 100 * SCATTER_FRACTION_MOST);
	}
	say_beyond(c);
	say_doubtful(c);
	case_maps_say_outside(c, c->scatter.report.outside);
	if (r->without == r->planes)
		case_corrections_say(c, "The scatter was not fitted to the data, which have no bins outside of the object.");
}

static void add_scatter(const void *ctx, size_t k, size_t plane, float *b)
{
	const struct case_corrections *c = ctx;
	const struct case_scatter *s = &c->scatter;
	size_t n = michelogram_plane_bins(c->m), planes = michelogram_planes(c->m);
	const float *norm = s->norm + plane * n;
	float *scatter = s->made.simulated ? malloc(n * sizeof(*scatter)) : NULL;

	if (!s->made.simulated)
		return;
	if (!scatter || single_scatter_planes(s->made.simulated, (int)(k * planes + plane), 1, 1, scatter, NULL) < 0) {
		for (size_t i = 0; i < n; i++)
			b[i] = NAN; /* no memory: the session refuses the plane */
	} else {
		for (size_t i = 0; i < n; i++)
			b[i] += norm[i] * s->made.scale[plane] * scatter[i];
	}
	free(scatter);
}

static float scatter_at(const void *ctx, size_t k, size_t plane, size_t bin)
{
	const struct case_corrections *c = ctx;
	const struct case_scatter *s = &c->scatter;

	if (!s->made.simulated)
		return 0;
	return s->norm[plane * michelogram_plane_bins(c->m) + bin] * s->made.scale[plane] *
	       single_scatter_value(s->made.simulated, (int)k, (int)plane, bin);
}

/* The window is in the configuration, not in the data: with another one it is another result. */
static void identify_window(struct case_corrections *c)
{
	const struct single_scatter_conf *w = &c->scatter.simulation;
	size_t at = strlen(c->from);

	if (!strstr(c->from, WINDOW))
		snprintf(c->from + at, sizeof(c->from) - at, "%s" WINDOW "%g-%g keV, %g %%", at ? " " : "", w->energy_low,
			 w->energy_high, w->energy_resolution);
}

/* Read the factors of all bins, which the estimate is multiplied by. */
static int read_norm(struct case_corrections *c, struct err *err)
{
	size_t n = michelogram_bins(c->m);
	int rc;

	if (!c->scatter.norm)
		c->scatter.norm = malloc(n * sizeof(float));
	if (!c->scatter.norm)
		return err_set(err, ENOMEM, "no memory for the scatter of %zu bins", n);
	rc = case_sum_planes(c->s, PET_FACTORS, threads_available(), c->work->monitor, c->kept, c->scatter.norm, err);
	for (size_t p = 0; rc == 0 && p < michelogram_planes(c->m); p++)
		case_dead_time_multiply(c, p, c->scatter.norm + p * michelogram_plane_bins(c->m));
	return rc;
}

/* Compute the estimate of the chosen frame, and keep it. */
static int compute_estimate(struct case_corrections *c, const struct case_cache_key *key, struct err *err)
{
	size_t n = michelogram_bins(c->m);
	float *prompts = malloc(n * sizeof(float)), *background = calloc(n, sizeof(float));
	double begun = clock_seconds();
	int rc = prompts && background ? 0 : err_set(err, ENOMEM, "no memory for the scatter of %zu bins", n);

	if (rc == 0)
		rc = case_sum_planes(c->s, PET_DATA, threads_available(), c->work->monitor, c->kept, prompts, err);
	if (rc == 0)
		add_backgrounds(c, background);
	c->scatter.seconds_read += clock_seconds() - begun;
	if (rc == 0)
		rc = estimate_scatter(c, prompts, background, err);
	free(prompts);
	free(background);
	c->scatter.n_computed++;
	if (rc == 0 && c->scatter.made.simulated)
		keep_estimate(c, key);
	return rc;
}

static int make_scatter(struct case_corrections *c, struct err *err)
{
	struct case_cache_key key = key_of(c);
	double begun = clock_seconds();
	int rc = read_norm(c, err);
	bool found = rc == 0 && find_estimate(c, &key);

	c->scatter.seconds_read += clock_seconds() - begun;
	if (rc < 0)
		return rc;
	if (found) {
		c->scatter.n_cached++;
		report_estimate(c);
	} else {
		rc = compute_estimate(c, &key, err);
	}
	if (rc == 0) {
		identify_window(c);
		say_scale(c);
		case_corrections_add_background(c, (struct case_background){add_scatter, scatter_at, c});
	}
	return rc;
}

static json_t *scatter_details(const struct case_corrections *c)
{
	const struct case_scatter *s = &c->scatter;
	const struct scatter_estimate_report *r = &s->report;

	if (s->planes == 0) /* no frame has any */
		return json_null();
	return json_pack(
		"{s:i, s:i, s:i, s:[f,f], s:f, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f}",
		"iterations", c->work->protocol->pet.scatter_iterations, "computed", s->n_computed, "cached", s->n_cached,
		"window_kev", s->simulation.energy_low, s->simulation.energy_high, "resolution_percent",
		s->simulation.energy_resolution, "points", (json_int_t)r->simulation.points, "pairs",
		(json_int_t)r->simulation.pairs, "fraction", r->scale.fraction, "outside", r->outside, "scale_least",
		r->scale.least, "scale_mean", r->scale.mean, "scale_most", r->scale.most, "planes", s->planes, "planes_at_limit",
		s->at_limit, "planes_without_fit", r->scale.without, "planes_beyond_ct", r->scale.beyond, "seconds_read",
		s->seconds_read, "seconds_image", s->seconds_image, "seconds_simulate", s->seconds_simulate, "seconds_scale",
		s->seconds_scale);
}

static void clear_scatter(struct case_corrections *c)
{
	scatter_estimate_clear(&c->scatter.made);
	free(c->scatter.norm);
}

const struct case_step case_step_scatter = {
	.correction = PET_CORRECT_SCATTER,
	.prepare = prepare_scatter,
	.make = make_scatter,
	.details = scatter_details,
	.clear = clear_scatter,
};
