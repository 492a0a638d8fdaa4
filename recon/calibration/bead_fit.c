/* SPDX-License-Identifier: Apache-2.0 */
/* bead_fit.c - the least squares that recon/calibration/bead_fit.h describes.
 *
 * The vector of parameters holds the fitted ones of the system, then those of the phantom's place (BEADS_KNOWN) or of each bead.
 * A residual depends on the first and on those of its own bead only, so derivatives are computed by central differences over
 * these few, and added to the normal matrix at their places. */
#include "recon/calibration/bead_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/calibration/normal_matrix.h"
#include "recon/core/scan.h"

#define RADIANS (3.14159265358979323846 / 180)
#define STEPS_MAX 200
#define SETTLED 1e-10 /* relative change of the sum of squares */
#define DAMPING_MAX 1e12
#define POSE 3
#define LOCAL_MAX (SYSTEM_PARAMETERS + POSE) /* parameters that one residual depends on, at most */

const char *const system_parameter_names[SYSTEM_PARAMETERS] = {"axis_height",	 "source_axis",	    "source_x",
							       "source_y",	 "angle_offset",    "support",
							       "detector_ratio", "detector_axis_y", "detector_axis_height"};
const char *const system_parameter_units[SYSTEM_PARAMETERS] = {"mm", "mm", "mm", "mm", "degrees", "mm", "", "mm", "mm"};

/* Steps of the differences: so small that the third derivative does not matter, and far above rounding. */
static const double difference[SYSTEM_PARAMETERS] = {1e-3, 1e-3, 1e-3, 1e-3, 1e-4, 1e-3, 1e-5, 1e-3, 1e-3};
static const double pose_difference[POSE] = {1e-3, 1e-3, 1e-4};

struct fit {
	const struct bead_fit_input *in;
	bool fitted[SYSTEM_PARAMETERS];
	int n_system, per_bead, n;    /* parameters: of the system, of each bead, all */
	int index[SYSTEM_PARAMETERS]; /* [place in q] */
	double *q, *next;	      /* parameters: now, and one step later */
	double *gradient;	      /* J'r */
	double *matrix, *scratch;     /* [n][n] */
};

double bead_source_angle(const double system[SYSTEM_PARAMETERS], const struct bead_views *views, int view)
{
	double angle = views->sign * views->angle[view] + system[SYSTEM_ANGLE_OFFSET];

	if (views->definition == ANGLE_AT_DETECTOR)
		angle = scan_angle_turned(angle, system[SYSTEM_AXIS_HEIGHT], system[SYSTEM_SOURCE_AXIS]);
	return angle;
}

void bead_project(const double system[SYSTEM_PARAMETERS], const struct bead_views *views, double b, const double point[3],
		  double ret_at[2])
{
	double turn = system[SYSTEM_RATIO] * b * RADIANS, c = cos(turn), s = sin(turn);
	double y0 = system[SYSTEM_DETECTOR_AXIS_Y], z0 = system[SYSTEM_DETECTOR_AXIS_HEIGHT];
	double y = system[SYSTEM_SOURCE_Y] + system[SYSTEM_SOURCE_AXIS] * sin(b * RADIANS);
	double z = system[SYSTEM_AXIS_HEIGHT] + system[SYSTEM_SOURCE_AXIS] * cos(b * RADIANS);
	double part = ((y - y0) * s + (z - z0) * c + z0) / ((y - point[1]) * s + (z - point[2]) * c);
	double x = system[SYSTEM_SOURCE_X] + part * (point[0] - system[SYSTEM_SOURCE_X]);
	double w = (y + part * (point[1] - y) - y0) * c - (z + part * (point[2] - z) - z0) * s;

	ret_at[0] = x / views->pitch - 0.5;
	ret_at[1] = (y0 + w) / views->pitch + views->n_v / 2.0 - 0.5;
}

/* Write the parameters of the system: the fitted ones from q. */
static void system_of(const struct fit *f, const double *q, double ret[SYSTEM_PARAMETERS])
{
	memcpy(ret, f->in->start, sizeof(f->in->start));
	for (int i = 0; i < f->n_system; i++)
		ret[f->index[i]] = q[i];
}

/* Return the place in q of the first parameter that a bead has for itself, or of the phantom's. */
static int first_local(const struct fit *f, int bead)
{
	return f->n_system + (f->per_bead ? bead * f->per_bead : 0);
}

static int n_local(const struct fit *f)
{
	return f->per_bead ? f->per_bead : POSE;
}

/* Compute where a bead is. local: its own parameters, or those of the phantom. */
static void place_bead(const struct fit *f, const double system[SYSTEM_PARAMETERS], const double *local, int bead, double ret[3])
{
	const struct bead_phantom *p = &f->in->phantom;
	const double *at = p->at[bead];
	double y = p->mirrored ? -at[1] : at[1], c, s;

	if (p->knowledge != BEADS_KNOWN) {
		ret[0] = local[0];
		ret[1] = local[1];
		ret[2] = f->per_bead == 3 ? local[2] : system[SYSTEM_SUPPORT] + at[2];
		return;
	}
	c = cos(local[2] * RADIANS);
	s = sin(local[2] * RADIANS);
	ret[0] = local[0] + c * at[0] - s * y;
	ret[1] = local[1] + s * at[0] + c * y;
	ret[2] = system[SYSTEM_SUPPORT] + at[2];
}

static void predict_point(const struct fit *f, const double system[SYSTEM_PARAMETERS], const double *local,
			  const struct bead_point *point, double ret_at[2])
{
	double at[3];

	place_bead(f, system, local, point->bead, at);
	bead_project(system, &f->in->views, bead_source_angle(system, &f->in->views, point->view), at, ret_at);
}

/* Compute the residual of one point. */
static void point_residual(const struct fit *f, const double system[SYSTEM_PARAMETERS], const double *q,
			   const struct bead_point *point, double ret[2])
{
	predict_point(f, system, q + first_local(f, point->bead), point, ret);
	for (int a = 0; a < 2; a++)
		ret[a] = point->at[a] - ret[a];
}

static double sum_squares(const struct fit *f, const double *q)
{
	double system[SYSTEM_PARAMETERS], sum = 0, r[2];

	system_of(f, q, system);
	for (int i = 0; i < f->in->n_points; i++) {
		point_residual(f, system, q, &f->in->points[i], r);
		sum += r[0] * r[0] + r[1] * r[1];
	}
	return sum;
}

/* Compute the derivatives of one point's prediction. ret_index: the places in q. Returns their number. */
static int point_derivatives(const struct fit *f, const double system[SYSTEM_PARAMETERS], const double *q,
			     const struct bead_point *point, int *ret_index, double (*ret)[2])
{
	int first = first_local(f, point->bead), own = n_local(f), n = f->n_system + own;

	for (int i = 0; i < n; i++) {
		double moved[SYSTEM_PARAMETERS], local[POSE], at[2][2], h;

		h = i < f->n_system ? difference[f->index[i]] : f->per_bead ? 1e-3 : pose_difference[i - f->n_system];
		for (int side = 0; side < 2; side++) {
			memcpy(moved, system, sizeof(moved));
			memcpy(local, q + first, (size_t)own * sizeof(*local));
			*(i < f->n_system ? &moved[f->index[i]] : &local[i - f->n_system]) += side ? h : -h;
			predict_point(f, moved, local, point, at[side]);
		}
		ret_index[i] = i < f->n_system ? i : first + i - f->n_system;
		for (int a = 0; a < 2; a++)
			ret[i][a] = (at[1][a] - at[0][a]) / (2 * h);
	}
	return n;
}

/* Add what a point adds to J'J and J'r, along the axes from `first` to `last`. sign: -1 subtracts from the matrix. */
static void add_point(const struct fit *f, const double system[SYSTEM_PARAMETERS], const struct bead_point *point, int first,
		      int last, int sign, double *matrix, double *gradient)
{
	double d[LOCAL_MAX][2], r[2];
	int index[LOCAL_MAX], n = point_derivatives(f, system, f->q, point, index, d);

	point_residual(f, system, f->q, point, r);
	for (int a = first; a <= last; a++)
		for (int j = 0; j < n; j++) {
			gradient[index[j]] += d[j][a] * r[a];
			for (int k = 0; k < n; k++)
				matrix[(size_t)index[j] * (size_t)f->n + (size_t)index[k]] += sign * d[j][a] * d[k][a];
		}
}

/* Compute J'J and J'r. */
static void linearise_fit(struct fit *f)
{
	double system[SYSTEM_PARAMETERS];

	memset(f->matrix, 0, (size_t)f->n * (size_t)f->n * sizeof(*f->matrix));
	memset(f->gradient, 0, (size_t)f->n * sizeof(*f->gradient));
	system_of(f, f->q, system);
	for (int i = 0; i < f->in->n_points; i++)
		add_point(f, system, &f->in->points[i], 0, 1, 1, f->matrix, f->gradient);
}

/* Return 1 if a parameter is at its upper limit, -1 at its lower one, 0 otherwise. */
static int limit_of(const struct fit *f, const double *q, int i)
{
	if (i >= f->n_system)
		return 0;
	return q[i] >= f->in->hi[f->index[i]] ? 1 : q[i] <= f->in->lo[f->index[i]] ? -1 : 0;
}

/* Make one damped step from q to next. A parameter that is at a limit and would leave it stays. false: the matrix is singular. */
static bool step_fit(struct fit *f, double damping)
{
	size_t n = (size_t)f->n;

	memcpy(f->scratch, f->matrix, n * n * sizeof(*f->scratch));
	memcpy(f->next, f->gradient, n * sizeof(*f->next));
	for (size_t i = 0; i < n; i++) {
		bool stays = limit_of(f, f->q, (int)i) * f->gradient[i] > 0;

		for (size_t k = 0; stays && k < n; k++)
			f->scratch[i * n + k] = f->scratch[k * n + i] = 0;
		if (stays)
			f->next[i] = 0;
		f->scratch[i * n + i] += stays ? 1 : damping * f->matrix[i * n + i] + 1e-12;
	}
	if (!normal_factor(f->scratch, f->n))
		return false;
	normal_solve(f->scratch, f->n, f->next);
	for (int i = 0; i < f->n; i++) {
		f->next[i] += f->q[i];
		if (i < f->n_system)
			f->next[i] = fmin(fmax(f->next[i], f->in->lo[f->index[i]]), f->in->hi[f->index[i]]);
	}
	return true;
}

static double iterate_fit(struct fit *f)
{
	double now = sum_squares(f, f->q), damping = 1e-3;

	linearise_fit(f);
	for (int i = 0; i < STEPS_MAX && damping < DAMPING_MAX; i++) {
		double then = step_fit(f, damping) ? sum_squares(f, f->next) : INFINITY;
		bool settled = then <= now && now - then <= SETTLED * now;

		if (!(then <= now)) {
			damping *= 8;
			continue;
		}
		memcpy(f->q, f->next, (size_t)f->n * sizeof(*f->q));
		now = then;
		damping = fmax(damping / 8, 1e-9);
		linearise_fit(f);
		if (settled)
			break;
	}
	return now;
}

/* Return the point of a bead in the view whose angle is the smallest. */
static const struct bead_point *central_point(const struct bead_fit_input *in, int bead)
{
	const struct bead_point *best = NULL;

	for (int i = 0; i < in->n_points; i++) {
		const struct bead_point *p = &in->points[i];

		if (p->bead == bead && (!best || fabs(in->views.angle[p->view]) < fabs(in->views.angle[best->view])))
			best = p;
	}
	return best;
}

/* Compute x and y of a bead from one view, at the height that it has or is expected to have; the detector's turn is neglected. */
static void start_bead(const struct fit *f, int bead, double ret[3])
{
	const struct bead_fit_input *in = f->in;
	const struct bead_point *p = central_point(in, bead);
	double b = bead_source_angle(in->start, &in->views, p->view) * RADIANS, part;
	double source[3] = {in->start[SYSTEM_SOURCE_X], in->start[SYSTEM_SOURCE_Y] + in->start[SYSTEM_SOURCE_AXIS] * sin(b),
			    in->start[SYSTEM_AXIS_HEIGHT] + in->start[SYSTEM_SOURCE_AXIS] * cos(b)};
	double at[2] = {(p->at[0] + 0.5) * in->views.pitch, (p->at[1] + 0.5 - in->views.n_v / 2.0) * in->views.pitch};

	ret[2] = in->phantom.at[bead][2] + (in->phantom.knowledge == BEADS_UNKNOWN ? 0 : in->start[SYSTEM_SUPPORT]);
	part = (source[2] - ret[2]) / source[2];
	for (int a = 0; a < 2; a++)
		ret[a] = source[a] + (at[a] - source[a]) * part;
}

/* Compute where the phantom lies from the beads' starts: the rotation and translation of least squares in the plane. */
static void start_pose(const struct fit *f, double ret[POSE])
{
	const struct bead_phantom *p = &f->in->phantom;
	double mean[4] = {0}, s = 0, c = 0, at[3];

	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < p->n_beads; i++) {
			double known[2] = {p->at[i][0], p->mirrored ? -p->at[i][1] : p->at[i][1]};

			start_bead(f, i, at);
			for (int a = 0; pass == 0 && a < 2; a++) {
				mean[a] += known[a] / p->n_beads;
				mean[2 + a] += at[a] / p->n_beads;
			}
			if (pass == 0)
				continue;
			c += (known[0] - mean[0]) * (at[0] - mean[2]) + (known[1] - mean[1]) * (at[1] - mean[3]);
			s += (known[0] - mean[0]) * (at[1] - mean[3]) - (known[1] - mean[1]) * (at[0] - mean[2]);
		}
	ret[2] = atan2(s, c);
	ret[0] = mean[2] - (cos(ret[2]) * mean[0] - sin(ret[2]) * mean[1]);
	ret[1] = mean[3] - (sin(ret[2]) * mean[0] + cos(ret[2]) * mean[1]);
	ret[2] /= RADIANS;
}

static void start_fit(struct fit *f)
{
	for (int i = 0; i < f->n_system; i++)
		f->q[i] = f->in->start[f->index[i]];
	if (!f->per_bead) {
		start_pose(f, f->q + f->n_system);
		return;
	}
	for (int i = 0; i < f->in->phantom.n_beads; i++) {
		double at[3];

		start_bead(f, i, at);
		memcpy(f->q + first_local(f, i), at, (size_t)f->per_bead * sizeof(*at));
	}
}

/* Compute the change of the parameters if the positions of a bead along an axis are left out, into `next`. false: the others do
 * not determine them. */
static bool leave_out(struct fit *f, const double system[SYSTEM_PARAMETERS], int bead, int axis)
{
	memcpy(f->scratch, f->matrix, (size_t)f->n * (size_t)f->n * sizeof(*f->scratch));
	memset(f->next, 0, (size_t)f->n * sizeof(*f->next));
	for (int i = 0; i < f->in->n_points; i++)
		if (f->in->points[i].bead == bead)
			add_point(f, system, &f->in->points[i], axis, axis, -1, f->scratch, f->next);
	if (!normal_factor(f->scratch, f->n))
		return false;
	normal_solve(f->scratch, f->n, f->next);
	return true;
}

/* Write the variances of the system's parameters, and behind them that of the sum of the first two, by the jackknife. */
static bool jackknife_variances(struct fit *f, const double system[SYSTEM_PARAMETERS], double ret[SYSTEM_PARAMETERS + 1])
{
	int groups = 2 * f->in->phantom.n_beads;
	double part = (groups - 1.0) / groups;

	for (int g = 0; g < groups; g++) {
		if (!leave_out(f, system, g / 2, g % 2))
			return false;
		for (int i = 0; i < f->n_system; i++)
			ret[i] += part * f->next[i] * f->next[i];
		ret[f->n_system] += part * (f->next[0] + f->next[1]) * (f->next[0] + f->next[1]);
	}
	return true;
}

/* The same from the inverse of J'J. */
static bool propagate_variances(struct fit *f, double noise, double ret[SYSTEM_PARAMETERS + 1])
{
	memcpy(f->scratch, f->matrix, (size_t)f->n * (size_t)f->n * sizeof(*f->scratch));
	if (!normal_factor(f->scratch, f->n))
		return false;
	for (int i = 0; i <= f->n_system; i++) {
		bool sum = i == f->n_system;

		memset(f->next, 0, (size_t)f->n * sizeof(*f->next));
		f->next[sum ? 0 : i] = 1;
		f->next[sum ? 1 : i] = 1;
		normal_solve(f->scratch, f->n, f->next);
		ret[i] = noise * noise * (sum ? f->next[0] + f->next[1] : f->next[i]);
	}
	return true;
}

/* Write the standard deviations of the system's parameters. All are infinite if the points do not determine them. */
static void write_deviations(struct fit *f, double noise, struct bead_fit *ret)
{
	double variance[SYSTEM_PARAMETERS + 1] = {0};
	bool solved = f->per_bead ? propagate_variances(f, noise, variance) : jackknife_variances(f, ret->value, variance);

	for (int i = 0; i < f->n_system; i++)
		ret->sd[f->index[i]] = solved ? sqrt(variance[i]) : INFINITY;
	if (f->in->fitted[SYSTEM_AXIS_HEIGHT] && f->in->fitted[SYSTEM_SOURCE_AXIS]) /* they are the first two */
		ret->sd_sum = solved ? sqrt(variance[f->n_system]) : INFINITY;
}

static void finish_fit(struct fit *f, double sum, struct bead_fit *ret)
{
	const struct bead_fit_input *in = f->in;

	system_of(f, f->q, ret->value);
	ret->parameters = f->n;
	ret->squares = sum;
	ret->rms = sqrt(sum / (2.0 * in->n_points));
	ret->noise = sqrt(sum / (2.0 * in->n_points - f->n));
	for (int i = 0; i < f->n_system; i++)
		ret->at_limit[f->index[i]] = limit_of(f, f->q, i) != 0;
	if (!f->per_bead)
		memcpy(ret->pose, f->q + f->n_system, sizeof(ret->pose));
	for (int i = 0; i < in->n_points; i++)
		point_residual(f, ret->value, f->q, &in->points[i], ret->residual[i]);
	for (int i = 0; i < in->phantom.n_beads; i++)
		place_bead(f, ret->value, f->q + first_local(f, i), i, ret->bead[i]);
	write_deviations(f, ret->noise, ret);
}

static int check_points(const struct bead_fit_input *in, struct err *err)
{
	for (int i = 0; i < in->n_points; i++) {
		const struct bead_point *p = &in->points[i];

		if (p->bead < 0 || p->bead >= in->phantom.n_beads || p->view < 0 || p->view >= in->views.n_views)
			return err_set(err, EINVAL,
				       "bead fit: point %d is of bead %d in view %d; there are %d beads and %d views", i, p->bead,
				       p->view, in->phantom.n_beads, in->views.n_views);
		if (!isfinite(p->at[0]) || !isfinite(p->at[1]))
			return err_set(err, EINVAL, "bead fit: the position of bead %d in view %d is not a finite number",
				       p->bead, p->view);
	}
	for (int i = 0; i < in->phantom.n_beads; i++)
		if (!central_point(in, i))
			return err_set(err, ENODATA, "bead fit: bead %d is in no view", i);
	return 0;
}

static int check_input(const struct bead_fit_input *in, struct err *err)
{
	if (in->phantom.n_beads < 1 || in->n_points < 1 || in->views.n_views < 1)
		return err_set(err, ENODATA, "bead fit: %d beads, %d views, %d positions", in->phantom.n_beads, in->views.n_views,
			       in->n_points);
	for (int i = 0; i < SYSTEM_PARAMETERS; i++)
		if (!(in->start[i] >= in->lo[i] && in->start[i] <= in->hi[i]))
			return err_set(err, EINVAL, "bead fit: %s starts at %g; allowed: %g to %g", system_parameter_names[i],
				       in->start[i], in->lo[i], in->hi[i]);
	return check_points(in, err);
}

static void count_parameters(struct fit *f)
{
	const struct bead_phantom *p = &f->in->phantom;

	f->per_bead = p->knowledge == BEADS_KNOWN ? 0 : p->knowledge == BEADS_IN_LAYERS ? 2 : 3;
	for (int i = 0; i < SYSTEM_PARAMETERS; i++)
		if (f->in->fitted[i] && !(i == SYSTEM_SUPPORT && f->per_bead == 3))
			f->index[f->n_system++] = i;
	f->n = f->n_system + (f->per_bead ? f->per_bead * p->n_beads : POSE);
}

static int allocate_fit(struct fit *f, struct bead_fit *ret, struct err *err)
{
	size_t n = (size_t)f->n;

	f->q = calloc(n, sizeof(*f->q));
	f->next = calloc(n, sizeof(*f->next));
	f->gradient = calloc(n, sizeof(*f->gradient));
	f->matrix = calloc(n * n, sizeof(*f->matrix));
	f->scratch = calloc(n * n, sizeof(*f->scratch));
	ret->residual = calloc((size_t)f->in->n_points, sizeof(*ret->residual));
	ret->bead = calloc((size_t)f->in->phantom.n_beads, sizeof(*ret->bead));
	if (!f->q || !f->next || !f->gradient || !f->matrix || !f->scratch || !ret->residual || !ret->bead)
		return err_set(err, ENOMEM, "bead fit: no memory for %d parameters", f->n);
	return 0;
}

int bead_fit_run(const struct bead_fit_input *input, struct bead_fit *ret_fit, struct err *err)
{
	struct fit f = {.in = input};
	struct bead_fit fit = {0};
	int rc = check_input(input, err);

	if (rc < 0)
		return rc;
	count_parameters(&f);
	if (2 * input->n_points <= f.n)
		return err_set(err, ENODATA, "bead fit: %d positions of beads in views cannot determine %d parameters",
			       input->n_points, f.n);
	rc = allocate_fit(&f, &fit, err);
	if (rc == 0) {
		start_fit(&f);
		finish_fit(&f, iterate_fit(&f), &fit);
		*ret_fit = fit;
	} else {
		bead_fit_clear(&fit);
	}
	free(f.q);
	free(f.next);
	free(f.gradient);
	free(f.matrix);
	free(f.scratch);
	return rc;
}

void bead_fit_clear(struct bead_fit *fit)
{
	free(fit->residual);
	free(fit->bead);
	*fit = (struct bead_fit){0};
}
