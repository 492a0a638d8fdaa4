/* SPDX-License-Identifier: Apache-2.0 */
/* pet_describe.c - describe what was reconstructed of one PET case: the sentences that its result carries, and the report of the
 * job, with its details as JSON. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/tof.h"
#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/reconstruct/pet_work.h"
#include "recon/pet/attenuation_cost.h"

#define EMPTY_LISTED 20 /* frames without counts that are listed one by one */

/* Name the frames without counts. */
static void note_empty(const struct pet_work *w, char *ret, size_t size)
{
	const char *name = pet_division_name(w->s->images.of);
	size_t n = 0;
	int empty = 0;

	for (int f = 0; f < w->n_frames; f++)
		empty += !(w->counts[f] > 0);
	if (empty > EMPTY_LISTED) {
		snprintf(ret, size, "%d of %d %ss are without counts; their values are 0.", empty, w->n_frames, name);
		return;
	}
	for (int f = 0; f < w->n_frames && n < size; f++)
		if (!(w->counts[f] > 0))
			n += n ? (size_t)snprintf(ret + n, size - n, ", %d", f + 1)
			       : (size_t)snprintf(ret, size, "%c%ss without counts, whose values are 0: %d",
						  toupper((unsigned char)name[0]), name + 1, f + 1);
	if (n > 0 && n < size)
		snprintf(ret + n, size - n, ".");
}

/* Say that slices are uneven, because nothing tells the model how many ring pairs are in each plane. */
static void note_pairs(const struct pet_work *w, char *ret, size_t size)
{
	const struct sinogram *s = w->s;

	if (w->planes.pairs_most == 0 || s->part[SINOGRAM_NORMALISATION].present || s->part[SINOGRAM_MULTIPLICATIVE].present ||
	    strstr(s->facts.corrected, "NORM") || strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "normali"))
		return;
	sentence_add(ret, size,
		     "Planes have the counts of %d to %d ring pairs (axial compression), and the data have no normalisation that "
		     "contains this: slices are uneven along the axis.",
		     w->planes.pairs_least, w->planes.pairs_most);
}

#define ATTENUATES 1e-4 /* of the factors; a rod of water, 10 mm thick and 20 mm long, has ten times as many */

/* Say how many attenuation factors are below 1, of all frames, and that almost none is above it. */
static void note_attenuation(const struct pet_work *w, char *ret, size_t size)
{
	const struct factor_survey *a = &w->planes.attenuation;

	if (a->n > 0 && (double)a->above <= ATTENUATES * (double)a->n)
		sentence_add(ret, size,
			     "%zu of %zu attenuation correction factors (ATTENUATION) are above %g, the largest is %.3g: nothing "
			     "attenuates, which is true of no body.",
			     a->above, a->n, (double)FACTOR_SURVEY_WATER, (double)a->most);
	if (a->below > 0)
		sentence_add(ret, size, "%zu of %zu attenuation correction factors are below %g, the least %g; they are used.",
			     a->below, a->n, (double)FACTOR_SURVEY_LEAST, (double)a->least);
}

#define COST_LEAST 1.5 /* a factor; of less than 4 cm of water nobody needs to know */

/* Say what it costs that there is no map, if nobody else has computed the volume. */
static void note_cost(const struct pet_work *w, char *ret, size_t size)
{
	const struct grid *g = w->s->images.of == PET_BEDS ? &w->beds.join.grid : &w->plan.grid;
	struct attenuation_cost cost;

	if (w->corrections.attenuation.lacking && !w->base.decision->place.outside &&
	    attenuation_cost(g->n, g->h, w->volume, &cost, NULL) == 0 && cost.factor >= COST_LEAST)
		sentence_add(
			ret, size,
			"What that costs: through %.0f cm of water, about the width of this body, 1 of about %.*f counts from its "
			"middle is measured.",
			cost.width / 10, cost.factor < 10 ? 1 : 0, cost.factor);
}

#define FRACTIONS_LEAST 0.01 /* of the bins with counts; fewer may come from gaps that were filled */

/* Say that the data are no counts, unless the header states a correction, which makes them fractions. */
static void note_fractions(const struct pet_work *w, char *ret, size_t size)
{
	const struct case_planes_report *p = &w->planes;

	if (p->fractions == 0 || (double)p->fractions < FRACTIONS_LEAST * (double)p->filled || w->s->facts.corrected[0] ||
	    w->s->part[SINOGRAM_EMISSION].header.corrections[0])
		return;
	sentence_add(
		ret, size,
		"The data hold no whole counts (%.0f %% of the bins with a value are fractions): corrected before, though no "
		"header says so, or not a scan.",
		100 * (double)p->fractions / (double)p->filled);
}

/* Say that the background cannot be that of the data, more than all counts by five standard deviations, or is doubtful. */
static void note_background(const struct pet_work *w, char *ret, size_t size)
{
	const struct case_planes_report *p = &w->planes;

	if (w->s->images.n == 0 && p->additive > p->counts + 5 * sqrt(p->counts))
		sentence_add(ret, size,
			     "The background (ADDITIVE), %.4g counts, is more than the %.4g counts of the data: probably another "
			     "unit, or not of this scan.",
			     p->additive, p->counts);
	if (p->doubt[0])
		sentence_add(ret, size, "%s", p->doubt);
}

#define RATE_MOST 2e7	      /* counts/s; scanners record less, of prompts */
#define DURATION_MOST 86400.0 /* s */

/* Say that a duration is probably in another unit. */
static void note_duration(const struct pet_work *w, char *ret, size_t size)
{
	const struct sinogram *s = w->s;
	bool own = s->facts.duration > 0;
	double duration = own ? s->facts.duration : s->part[SINOGRAM_EMISSION].header.duration;
	const char *key = own ? "Actual Frame Duration (0018,1242)" : "image duration";

	if (s->images.n > 0 || s->no_duration || !(duration > 0))
		return;
	if (duration > DURATION_MOST)
		sentence_add(ret, size, "%s is %g s, above one day: probably a wrong unit, such as ms for s.", key, duration);
	else if (w->run.counts > RATE_MOST * duration)
		sentence_add(
			ret, size,
			"%s is %g s, in which %.4g counts are %.3g counts/s, more than scanners record: probably a wrong unit, "
			"such as min for s.",
			key, duration, w->run.counts, w->run.counts / duration);
}

void pet_work_note(const struct pet_work *w, char *ret, size_t size)
{
	note_empty(w, ret, size);
	case_beds_note(&w->beds, w->s, ret, size);
	note_pairs(w, ret, size);
	note_attenuation(w, ret, size);
	note_cost(w, ret, size);
	note_fractions(w, ret, size);
	note_background(w, ret, size);
	note_duration(w, ret, size);
	if (w->fitted[0])
		sentence_add(ret, size, "%s", w->fitted);
}

/* Describe the TOF bins that were reconstructed, and the order in which the data have them; null: no time of flight. */
static json_t *tof_details(const struct pet_work *w)
{
	const struct interfile *h = &w->s->part[SINOGRAM_EMISSION].header;
	const struct scan_tof *tof = &w->m.tof;
	char order[64];

	if (tof->n == 0)
		return json_null();
	interfile_tof_text(h, order, sizeof(order));
	return json_pack("{s:i, s:f, s:f, s:f, s:s, s:b}", "bins", tof->n, "width_ps", tof->width / TOF_MM_PER_PS, "width_mm",
			 tof->width, "resolution_ps", tof->sigma * TOF_FWHM_PER_SIGMA / TOF_MM_PER_PS, "order", order,
			 "order_stated", h->tof_listed);
}

/* Describe the time frames; null: none. */
static json_t *frame_details(const struct pet_work *w)
{
	const struct pet_images *m = &w->s->images;
	json_t *all = m->of == PET_FRAMES ? json_array() : json_null();

	for (int f = 0; m->of == PET_FRAMES && f < m->n; f++)
		json_array_append_new(all,
				      json_pack("{s:f, s:f, s:f}", "start", (double)m->image[f].time.start / 1000, "duration",
						(double)pet_images_duration(m, f) / 1000, "counts", w->counts[f]));
	return all;
}

/* Describe the gates and their cycles; null: none. */
static json_t *gate_details(const struct pet_work *w)
{
	const struct pet_images *m = &w->s->images;
	const struct pet_gates *g = &m->gates;
	json_t *all;
	struct pet_cycles cycles;

	if (m->of != PET_GATES)
		return json_null();
	all = json_array();
	pet_gates_count(g, &cycles);
	for (int k = 0; k < m->n; k++)
		json_array_append_new(all, json_pack("{s:f, s:f}", "duration", (double)pet_images_duration(m, k) / 1000, "counts",
						     w->counts[k]));
	return json_pack("{s:o, s:s, s:I, s:I, s:f}", "gates", all, "signal", pet_signal_name(g->signal), "cycles_used",
			 (json_int_t)cycles.used, "cycles_left_out", (json_int_t)cycles.left_out, "mean_cycle",
			 cycles.mean / 1000);
}

/* Return a sum of struct pet_report; null: it was not computed, or is of one time frame, gate or bed only. */
static json_t *sum_or_null(const struct pet_work *w, double sum)
{
	return sum > 0 && w->s->images.n == 0 ? json_real(sum) : json_null();
}

json_t *pet_work_factors(const struct pet_work *w)
{
	json_t *all = json_array();

	for (int i = 0; i < w->planes.n_factors; i++)
		json_array_append_new(all, json_string(w->planes.factors[i]));
	return all;
}

/* Say where each fact of the acquisition is from. */
static json_t *fact_details(const struct pet_work *w)
{
	char name[FACT_ORIGIN_SIZE], origin[FACT_ORIGIN_SIZE];
	json_t *all = json_object();

	for (const char *at = w->made.origins; (at = fact_origins_next(at, name, origin));)
		json_object_set_new(all, name, json_string(origin));
	return all;
}

static json_t *pet_details(const struct pet_work *w, size_t planes)
{
	return json_pack("{s:{s:I, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:f, s:f, s:o, s:o, s:b, s:f, s:f, s:f, s:f, s:s, s:s, "
			 "s:s, s:s, s:o, s:o, s:o, s:o}}",
			 kind_pet.name, "planes", (json_int_t)planes, "tof", tof_details(w), "frames", frame_details(w), "gating",
			 gate_details(w), "beds", case_beds_details(&w->beds, w->s, w->counts), "iterations", w->plan.iterations,
			 "subsets", w->plan.subsets, "angles_at_a_time", w->plan.group_views, "fov_radius_mm", w->plan.fov_radius,
			 "counts", w->run.counts, "sum_data", sum_or_null(w, w->run.sum_data), "sum_model",
			 sum_or_null(w, w->run.sum_model), "sensitivity_cached", w->run.sensitivity_cached, "seconds_setup",
			 w->run.seconds_setup, "seconds_sensitivity", w->run.seconds_sensitivity, "seconds_iterate",
			 w->run.seconds_iterate, "seconds_filter", w->run.seconds_filter, "units", w->made.units, "corrected",
			 w->made.corrected, "patient_position", w->s->facts.patient_position, "warnings", w->made.warnings,
			 "list_mode", w->way->details ? w->way->details(w) : json_null(), "factors", pet_work_factors(w), "facts",
			 fact_details(w), "corrections", case_corrections_details(&w->corrections));
}

/* Write what was reconstructed. */
static void describe_content(const struct pet_work *w, char *ret, size_t size)
{
	const struct michelogram *m = &w->m;
	char data[64], tof[32] = "", frames[32] = "";

	if (m->tof.n > 0)
		snprintf(tof, sizeof(tof), " in %d TOF bin%s", m->tof.n, plural(m->tof.n));
	if (w->s->images.n > 0)
		snprintf(frames, sizeof(frames), ", %d %s%s", w->s->images.n, pet_division_name(w->s->images.of),
			 plural(w->s->images.n));
	w->way->describe(w, data, sizeof(data));
	snprintf(ret, size, "%s%s%s", data, tof, frames);
}

const struct grid *pet_work_fill_report(struct reconstruct_work *base)
{
	struct pet_work *w = (struct pet_work *)base;
	struct reconstruct_report *report = &base->report;
	size_t planes = w->s->list ? 0 : michelogram_planes(&w->m);

	snprintf(report->profile, sizeof(report->profile), "%s", w->s->scanner ? w->s->scanner->name : "");
	describe_content(w, report->content, sizeof(report->content));
	report->n_views = w->m.n_angles;
	report->bytes_device = pet_work_bytes_device(w);
	w->corrections.prompts = w->run.counts;
	report->details = pet_details(w, planes);
	report->pictures = case_pictures_describe(&w->corrections, w->made.series);
	return w->s->images.of == PET_BEDS ? &w->beds.join.grid : &w->plan.grid;
}
