/* SPDX-License-Identifier: Apache-2.0 */
/* bead_judge.c - the checks of recon/calibration/bead_judge.h. */
#include "recon/calibration/bead_judge.h"

#include <errno.h>
#include <math.h>

static const double sd_limits[SYSTEM_PARAMETERS] = {1, 1, 0.5, 2, 0.2, 0.2, 0.01, 2, 2};

#define COMPENSATED 20.0 /* limit of parameters that compensate each other */
#define SUM_LIMIT 1.0	 /* mm, of axis_height + source_axis */

double bead_sd_limit(int parameter, enum angle_definition definition)
{
	bool compensated = parameter == SYSTEM_AXIS_HEIGHT || parameter == SYSTEM_SOURCE_AXIS;

	return compensated && definition == ANGLE_AT_DETECTOR ? COMPENSATED : sd_limits[parameter];
}

static int check_parameter(const struct bead_fit *fit, int i, enum angle_definition definition, struct err *err)
{
	double limit = bead_sd_limit(i, definition);
	const char *name = system_parameter_names[i], *unit = system_parameter_units[i];

	if (fit->at_limit[i])
		return err_set(err, EDOM,
			       "%s is at the limit of its range, %g %s: start values, positions or conventions are wrong", name,
			       fit->value[i], unit);
	if (!isfinite(fit->sd[i]))
		return err_set(err, EDOM,
			       "the positions of the beads do not determine the geometry (%s has no limit): more beads, "
			       "more views or beads at two heights are necessary",
			       name);
	if (!(fit->sd[i] <= limit))
		return err_set(err, EDOM,
			       "the positions of the beads determine %s only to %.2g %s (standard deviation; allowed: %g %s): "
			       "more beads, more views, known positions of the beads or beads at heights further apart are "
			       "necessary",
			       name, fit->sd[i], unit, limit, unit);
	return 0;
}

int bead_judge_fit(const struct bead_fit_input *input, const struct bead_fit *fit, struct err *err)
{
	if (input->phantom.knowledge == BEADS_UNKNOWN)
		return err_set(
			err, EDOM,
			"the heights of the beads are unknown: then the scale along z is nearly free (standard deviation of "
			"axis_height %.2g mm, of source_axis %.2g mm) and support cannot be determined at all",
			fit->sd[SYSTEM_AXIS_HEIGHT], fit->sd[SYSTEM_SOURCE_AXIS]);
	if (!(fit->noise <= BEAD_NOISE_LIMIT))
		return err_set(err, EDOM,
			       "the noise of the residuals is %.2f bins (allowed: %g): the positions or heights of the phantom's "
			       "beads are wrong, or the system does not follow the model",
			       fit->noise, BEAD_NOISE_LIMIT);
	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		int rc = input->fitted[i] ? check_parameter(fit, i, input->views.definition, err) : 0;

		if (rc < 0)
			return rc;
	}
	if (!(fit->sd_sum <= SUM_LIMIT))
		return err_set(
			err, EDOM,
			"the positions of the beads determine axis_height + source_axis only to %.2g mm (standard deviation; "
			"allowed: %g mm)",
			fit->sd_sum, SUM_LIMIT);
	return 0;
}

int bead_judge_conventions(const struct bead_conventions *c, struct err *err)
{
	const struct bead_trial *best = &c->trials[c->best];

	if (!(c->apart >= BEAD_DISTINCT))
		return err_set(err, EDOM,
			       "the sign of the angles or the orientation of the images cannot be decided: two fits differ by "
			       "only %.1f noise variances",
			       c->apart);
	if (best->mirrored)
		return err_set(err, EDOM,
			       "the beads are seen mirrored%s: the images' orientation (0020,0020) or the positions of the beads "
			       "are wrong",
			       best->sign < 0 ? " and the angles have the wrong sign" : "");
	if (c->definition_open)
		return err_set(err, EDOM,
			       "the definition of the angles (about the axis, or as seen from the detector) cannot be decided: "
			       "the two fits differ by only %.1f noise variances, and give different axis heights",
			       c->definition_apart);
	return 0;
}

double bead_judge_views(const struct bead_fit_input *input, const struct bead_fit *fit, struct bead_view_residual *ret)
{
	double worst = 0;

	for (int v = 0; v < input->views.n_views; v++)
		ret[v] = (struct bead_view_residual){0};
	for (int i = 0; i < input->n_points; i++) {
		struct bead_view_residual *r = &ret[input->points[i].view];

		r->n++;
		for (int a = 0; a < 2; a++) {
			r->mean[a] += fit->residual[i][a];
			r->rms += fit->residual[i][a] * fit->residual[i][a];
		}
	}
	for (int v = 0; v < input->views.n_views; v++) {
		struct bead_view_residual *r = &ret[v];

		for (int a = 0; a < 2 && r->n; a++) {
			r->mean[a] /= r->n;
			worst = fmax(worst, fabs(r->mean[a]) * sqrt(r->n) / fmax(fit->noise, 1e-6));
		}
		r->rms = r->n ? sqrt(r->rms / (2.0 * r->n)) : 0;
	}
	return worst;
}
