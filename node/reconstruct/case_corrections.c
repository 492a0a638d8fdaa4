/* SPDX-License-Identifier: Apache-2.0 */
/* case_corrections.c - see node/reconstruct/case_corrections.h. */
#include "node/reconstruct/case_corrections.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/sentence.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_list.h"

/* In the order in which they are made: scatter needs all others. */
static const struct case_step *const steps[] = {&case_step_dead_time, &case_step_attenuation, &case_step_randoms,
						&case_step_scatter};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static const struct {
	enum pet_correction correction;
	const char *name;
} names[] = {{PET_CORRECT_ATTENUATION, "attenuation"},
	     {PET_CORRECT_RANDOMS, "randoms"},
	     {PET_CORRECT_SCATTER, "scatter"},
	     {PET_CORRECT_DEAD_TIME, "dead_time"}};
#define NAMES (sizeof(names) / sizeof(names[0]))

static int wanted_corrections(const struct case_corrections *c)
{
	return c->work->protocol->pet.corrections;
}

static const struct case_step *step_of(enum pet_correction correction)
{
	for (size_t i = 0; i < STEPS; i++)
		if (steps[i]->correction == correction)
			return steps[i];
	return NULL;
}

void case_corrections_say(struct case_corrections *c, const char *fmt, ...)
{
	char sentence[1024];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(sentence, sizeof(sentence), fmt, args);
	va_end(args);
	if (n > 0 && (size_t)n < sizeof(sentence) && strlen(c->note) + (size_t)n + 2 <= sizeof(c->note)) /* never a part of one */
		sentence_add(c->note, sizeof(c->note), "%s", sentence);
}

void case_corrections_add_factor(struct case_corrections *c, struct case_factor factor)
{
	c->terms.factor[c->terms.n_factors++] = factor;
}

void case_corrections_add_background(struct case_corrections *c, struct case_background background)
{
	c->terms.background[c->terms.n_backgrounds++] = background;
}

int case_corrections_prepare(struct case_corrections *c, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < NAMES; i++)
		if ((wanted_corrections(c) & names[i].correction) &&
		    ((c->s->list && !sinogram_list_bins(c->s)) || !step_of(names[i].correction)))
			rc = err_set(err, ENOTSUP, "protocol '%s': the correction \"%s\" is not made for %s",
				     c->work->protocol->name, names[i].name,
				     c->s->list ? "events of detectors that are not a regular cylinder" : "these data");
	if (c->n_ct > 0 && !(wanted_corrections(c) & PET_CORRECT_ATTENUATION))
		case_corrections_say(c, "The %s was not used: \"attenuation\" is not among the corrections of the protocol.",
				     case_maps_word(c));
	if (c->s->part[SINOGRAM_DELAYEDS].present && !c->s->source->list_mode &&
	    !(wanted_corrections(c) & PET_CORRECT_RANDOMS)) /* pet_source_note() says it */
		case_corrections_say(
			c, "The delayed coincidences were not used: \"randoms\" is not among the corrections of the protocol.");
	if (c->s->part[SINOGRAM_SINGLES].present && !(wanted_corrections(c) & PET_CORRECT_RANDOMS))
		case_corrections_say(c, "The singles were not used: \"randoms\" is not among the corrections of the protocol.");
	if (!(wanted_corrections(c) & PET_CORRECT_DEAD_TIME) && case_dead_time_is_known(c->s))
		case_corrections_say(c, "The dead time factor of the data was not used: \"dead_time\" is not among the "
					"corrections of the protocol.");
	for (size_t i = 0; rc == 0 && i < STEPS; i++)
		if (wanted_corrections(c) & steps[i]->correction)
			rc = steps[i]->prepare(c, err);
	c->s->made = c->made;
	c->s->made_in_part = false;
	c->s->made_note = c->note;
	c->s->made_from = c->from[0] ? c->from : NULL;
	c->s->made_method = c->method;
	c->s->made_scatter = c->scatter.found;
	c->s->made_randoms = c->randoms.of_singles ? "SING" : "DLYD";
	c->s->made_maps = (c->made & PET_CORRECT_ATTENUATION) ? c->attenuation.from : NULL; /* one may only be kept */
	return rc;
}

int case_corrections_make(struct case_corrections *c, struct err *err)
{
	int rc = 0;

	c->terms = (struct case_terms){0};
	if (c->made)
		case_pictures_watch(c);
	for (size_t i = 0; rc == 0 && i < STEPS; i++)
		if (c->made & steps[i]->correction)
			rc = steps[i]->make(c, err);
	return rc;
}

double case_corrections_background(const struct case_corrections *c, double prompts)
{
	double randoms = c->made & PET_CORRECT_RANDOMS ? c->randoms.of_frame : 0;
	double scatter = c->scatter.made.simulated ? c->scatter.report.scale.fraction : 0;

	return randoms + scatter * fmax(prompts - randoms, 0);
}

json_t *case_corrections_details(const struct case_corrections *c)
{
	json_t *all = wanted_corrections(c) ? json_object() : json_null();

	for (size_t i = 0; i < NAMES; i++) {
		const struct case_step *step = step_of(names[i].correction);

		if (step && (wanted_corrections(c) & names[i].correction))
			json_object_set_new(all, names[i].name, step->details(c));
	}
	return all;
}

void case_corrections_forget_data(struct case_corrections *c)
{
	for (int role = 0; role <= SINOGRAM_ROLES; role++) {
		free(c->once[role]);
		c->once[role] = NULL;
	}
}

void case_corrections_clear(struct case_corrections *c)
{
	for (size_t i = 0; i < STEPS; i++)
		steps[i]->clear(c);
	if (c->s) {
		c->s->made = 0;
		c->s->made_in_part = false;
		c->s->made_note = c->s->made_from = c->s->made_method = c->s->made_maps = c->s->made_randoms = NULL;
		c->s->made_scatter = NULL;
	}
	case_corrections_forget_data(c);
	free(c->profiles.counts);
	correction_pictures_clear(&c->pictures);
	*c = (struct case_corrections){0};
}
