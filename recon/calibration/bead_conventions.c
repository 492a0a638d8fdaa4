/* SPDX-License-Identifier: Apache-2.0 */
/* bead_conventions.c - run and compare the fits that recon/calibration/bead_conventions.h describes. */
#include "recon/calibration/bead_conventions.h"

#include <math.h>

#define SAME_GEOMETRY 3.0 /* axis heights that differ by fewer standard deviations are the same */

void bead_conventions_apply(const struct bead_fit_input *input, const struct bead_trial *trial, struct bead_fit_input *ret)
{
	*ret = *input;
	ret->views.sign = input->views.sign * trial->sign;
	ret->views.definition = trial->definition;
	ret->phantom.mirrored = trial->mirrored != input->phantom.mirrored;
}

static int try_one(const struct bead_fit_input *input, struct bead_trial *trial, double *ret_noise, struct err *err)
{
	struct bead_fit_input in;
	struct bead_fit fit;
	int rc;

	bead_conventions_apply(input, trial, &in);
	rc = bead_fit_run(&in, &fit, err);
	trial->rms = trial->squares = INFINITY;
	if (rc < 0)
		return rc;
	trial->rms = fit.rms;
	trial->squares = fit.squares;
	trial->axis_height = fit.value[SYSTEM_AXIS_HEIGHT];
	trial->axis_height_sd = fit.sd[SYSTEM_AXIS_HEIGHT];
	*ret_noise = fit.noise;
	bead_fit_clear(&fit);
	return 0;
}

static enum angle_definition other_definition(enum angle_definition definition)
{
	return definition == ANGLE_ABOUT_AXIS ? ANGLE_AT_DETECTOR : ANGLE_ABOUT_AXIS;
}

/* Compare the trials with the best one. */
static void compare_trials(struct bead_conventions *c, double noise)
{
	const struct bead_trial *best = &c->trials[c->best];
	double variance = fmax(noise * noise, 1e-12); /* exact data have no noise */

	c->apart = c->definition_apart = INFINITY;
	for (int i = 0; i < c->n; i++) {
		const struct bead_trial *t = &c->trials[i];
		double apart = (t->squares - best->squares) / variance;
		double sd = hypot(t->axis_height_sd, best->axis_height_sd);

		if (t->sign != best->sign || t->mirrored != best->mirrored) {
			c->apart = fmin(c->apart, apart);
		} else if (t->definition != best->definition) {
			c->definition_apart = apart;
			c->definition_open =
				!(apart >= BEAD_DISTINCT) && !(fabs(t->axis_height - best->axis_height) <= SAME_GEOMETRY * sd);
		}
	}
}

int bead_conventions_test(const struct bead_fit_input *input, struct bead_conventions *ret, struct err *err)
{
	struct bead_conventions c = {.n = input->phantom.knowledge == BEADS_KNOWN ? 8 : 4};
	double noise[BEAD_TRIALS];

	for (int i = 0; i < c.n; i++) {
		struct bead_trial *t = &c.trials[i];
		int rc;

		t->sign = i & 1 ? -1 : 1;
		t->definition = i & 2 ? other_definition(input->views.definition) : input->views.definition;
		t->mirrored = i & 4;
		rc = try_one(input, t, &noise[i], i == 0 ? err : NULL);
		if (rc < 0 && i == 0)
			return rc;
		if (t->squares < c.trials[c.best].squares)
			c.best = i;
	}
	compare_trials(&c, noise[c.best]);
	*ret = c;
	return 0;
}
