/* SPDX-License-Identifier: Apache-2.0 */
/* air.c - find the air of a projection; see air.h for the criteria. air_cells.c makes the cells with which all is decided,
 * air_field.c measures how the air varies over them, air_plateau.c finds its level. */
#include "recon/dbt/air.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/dbt/air_internal.h"

int air_over_code(const struct prep *p, const uint32_t hist[PREP_VALUES])
{
	int top = (int)p->max_value, code = p->inverted ? 0 : top, step = p->inverted ? 1 : -1, next = code + step;

	while (next >= 0 && next <= top && (hist[next] == 0 || air_is_padding(p, next)))
		next += step;
	return hist[code] > 0 && !air_is_padding(p, code) && next >= 0 && next <= top && abs(next - code) > top / AIR_GAP ? code
															  : -1;
}

/* Return the largest intensity that occurs as a stored value; -1: none. */
static int brightest_code(const struct prep *p, const uint32_t hist[PREP_VALUES])
{
	int step = p->inverted ? 1 : -1, code = p->inverted ? 0 : (int)p->max_value;

	while (code >= 0 && code <= (int)p->max_value && (hist[code] == 0 || air_is_padding(p, code)))
		code += step;
	return code >= 0 && code <= (int)p->max_value ? code : -1;
}

static enum air_verdict judge_air(const struct prep *p, const uint32_t hist[PREP_VALUES], struct cells *c, double thickness,
				  struct air *air)
{
	enum air_verdict verdict = AIR_NO_PLATEAU;
	bool clipped = false;
	size_t n_over = 0;
	double log;

	if (air_find_mode(c, &log))
		verdict = air_judge_plateau(c, thickness, &log, air);
	for (size_t i = 0; i < air_count_cells(c); i++)
		n_over += c->cell[i].kind == CELL_OVER;
	if (verdict == AIR_FOUND)
		air->gain = air_plateau_gain(c, &clipped);
	if (clipped) {
		verdict = AIR_OVER_RANGE;
		air->over_code = brightest_code(p, hist);
	} else if (verdict == AIR_FOUND) {
		air->level = exp(log);
		air->noise = air_bin_noise(c, log);
	} else if (n_over > 0 && (double)n_over >= AIR_SHARE_LEAST * (double)c->n_data) {
		verdict = AIR_OVER_RANGE;
	}
	return verdict;
}

/* Measure how the air varies, and remove it from the cells as far as it is determined. */
static void flatten_cells(struct cells *c, const struct prep *p, const double pitch[2], double thickness, bool fit,
			  struct air_field *ret)
{
	const struct scan detector = {.n_u = p->n_u, .n_v = p->n_v, .h = {pitch[0], pitch[1]}};
	struct open_field field = {0};

	air_field_measure(c, thickness, ret);
	if (!fit || !(ret->along[0] || ret->along[1]))
		return;
	open_field_set_slope(&detector, ret->slope, &field);
	air_divide(c, &field);
	air_mark_flat(c);
}

int air_find(const struct prep *p, const double pitch[2], double thickness, bool fit, const uint16_t *raw,
	     const uint32_t hist[PREP_VALUES], struct air *ret_air, struct err *err)
{
	struct air air = {.gain = -1};
	struct cells c;
	int rc;

	if (p->is_log || !(pitch[0] > 0 && pitch[1] > 0 && thickness >= 0))
		return err_set(err, EINVAL, "air: %s values, bins of %g x %g mm, thickness %g mm", p->is_log ? "log" : "linear",
			       pitch[0], pitch[1], thickness);
	if (!(p->n_u > 0 && p->n_v > 0 && p->max_value > 0 && p->max_value < PREP_VALUES))
		return err_set(err, EINVAL, "air: %d x %d bins with values up to %g", p->n_u, p->n_v, p->max_value);
	air.over_code = air_over_code(p, hist);
	rc = air_cells_make(p, pitch, &c, err);
	if (rc < 0)
		return rc;
	rc = air_cells_fill(p, air.over_code, raw, &c, err);
	if (rc == 0) {
		air_divide(&c, &p->open);
		air.shadow = air_remove_shadow(&c);
		air_measure_gain(&c);
		air_mark_flat(&c);
		flatten_cells(&c, p, pitch, thickness, fit, &air.field);
		air.verdict = judge_air(p, hist, &c, thickness, &air);
		*ret_air = air;
	}
	free(c.cell);
	return rc;
}

const char *air_verdict_text(enum air_verdict verdict)
{
	switch (verdict) {
	case AIR_FOUND:
		return "air is visible";
	case AIR_NO_PLATEAU:
		return "no plateau of air at the side opposite the chest wall";
	case AIR_NO_EDGE:
		return "the brightest region passes continuously into the object";
	case AIR_NO_CONTRAST:
		return "the object is too bright for its thickness, compared with the brightest region";
	case AIR_OVER_RANGE:
		return "the stored value of air is over range";
	case AIR_TWO_LEVELS:
		return "the air has two levels, as at the edge of a compression paddle, and which of them is that of the breast "
		       "is unknown";
	}
	return "unknown";
}
