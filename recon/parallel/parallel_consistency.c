/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_consistency.c - do the views agree with each other, and with the angles and the axis of rotation of the header?
 *
 * The sum of a view is the mass of the object, the same in all views; its centre is the projection of the centre of mass, its
 * variance that of the second moments: the first three consistency conditions (Helgason 1965; Ludwig 1966; Natterer, The
 * Mathematics of Computerized Tomography, II.4). So the centres of all views are x cos + y sin + e, where e is how far the real
 * axis is from that of the header, and the variances, in which the axis is not, are a + b cos 2 + c sin 2. What is left of a fit
 * of either shows angles that are not those of the views, unless noise or an object that leaves the field explains it:
 *
 * - Noise: the second differences of neighbouring bins, whose mean square is six times the variance of a bin; edges of the object
 *   add to it, so that it is rather too large.
 * - Bins with a constant error of their own (rings) move the centres of all views alike, which no fit shows: the same of the mean
 *   of the views, in which noise is small, adds to the uncertainty of the axis. So does a stretch of all angles by a few percent,
 *   which the centres nearly fit with another axis.
 * - A part of the mass that leaves the field is at most the radius R of the field away from the centre: where the masses of the
 *   views differ by the part m (standard deviation), the centres may differ by m R, and the variances by m R^2.
 *
 * Each slice is judged alone, then compared with the others (parallel_faults.c); what is said of the stack is from the sum of the
 * slices that have no fault of their own.
 *
 * The opposite direction of rotation is the mirrored object: no data show it. */
#include <math.h>
#include <stdlib.h>

#include "kernels/order.h"
#include "recon/parallel/parallel_internal.h"

#define MASS_SPREAD 0.02 /* relative standard deviation of the masses of the views: with more the object leaves the field */
#define EDGE_MOST 0.05	 /* of the mean bin, root mean square of the bins at both ends of the views */
#define EDGE_PART 64	 /* n_radial / EDGE_PART bins at each end */
#define ANGLES_LEAST 8
#define NOISES 5.0	 /* standard deviations: neighbouring bins may have one noise */
#define LEAVING 2.0	 /* of what the masses allow */
#define CENTRE_LEAST 0.5 /* bins: a stage may wobble, which does little harm */
#define WIDTH_LEAST 0.25 /* bins */
#define STRETCH 0.005	 /* step, of the angles */
#define STRETCHES 20	 /* on each side */
#define STRETCHED (2 * STRETCHES + 1)
#define STRETCH_SIGMA 0.03 /* of the angles */
#define STRETCH_LIKELY 9.0 /* fall of chi squared from which a stretch is likely, and sure */
#define STRETCH_SURE 40.0
#define STRETCH_PART 5.0       /* chi squared of the given angles, in that of the best: less may be another error */
#define STRETCH_SPREAD 0.001   /* of the masses: more is an intensity that drifts */
#define STRETCH_PRIOR 0.1      /* part of the scans */
#define ODD_LEAST 0.2	       /* of the mass of the neighbours */
#define ODD_SPREADS 8.0	       /* of the median deviation */
#define ODD_AROUND 5.0	       /* of that of its neighbours */
#define ODD_MOST 0.25	       /* part of the views: more are no exceptions */
#define STARVED 0.95	       /* of the largest bin of its neighbours */
#define NEIGHBOURS 4	       /* on each side: three views in a row that are exceptions are fewer than half of them */
#define ALTERNATE 0.95	       /* part of the views that are on the other side of their neighbours than the view before */
#define AIR_APART 0.05	       /* of the air, within a view */
#define SIGMA_OF_MEDIAN 1.4826 /* standard deviation of a normal distribution, in its median deviation */
#define AIR_LOW 0.5	       /* of the mean bin above it: less, or below 0, is no object that fills the field */
#define AIR_SLOPE 0.03	       /* of the mean bin above it, within a view: an object that fills the field has 0.06 or more */

struct view {
	double sum[3];		       /* of bins, of bins times r, times r^2 */
	double mass, centre, variance; /* from them */
	double edge;
	double most;		  /* the largest bin */
	double end[2], inside[2]; /* means of the bins at both ends, and of as many beside them */
	double end_noise;	  /* variance of these bins */
	double noise[3];	  /* variances of the sums of bins, of bins times r^2, times r^4 */
	bool odd;		  /* its mass is not that of its neighbours */
};

/* The other angles that are tried, in those of the header. */
static const double factors[] = {1, 2, 0.5};

static int edge_bins(int n_radial)
{
	return n_radial / EDGE_PART > 1 ? n_radial / EDGE_PART : 1;
}

static void add_line(const struct parallel_scan *s, const float *line, struct view *v)
{
	const int n = s->n_radial, edge = edge_bins(n);

	for (int t = 0; t < n; t++) {
		double r = parallel_radius(s, t), value = (double)line[t];

		v->most = fmax(v->most, value);
		v->sum[0] += value;
		v->sum[1] += value * r;
		v->sum[2] += value * r * r;
		if (t < edge || t >= n - edge)
			v->edge += value / (2 * edge);
		if (t < 2 * edge || t >= n - 2 * edge)
			(t < edge || t >= n - edge ? v->end : v->inside)[t >= n / 2] += value / edge;
		if (t > 0 && t < n - 1) {
			double d = (double)line[t - 1] - 2 * value + (double)line[t + 1];

			if (t < 2 * edge || t >= n - 2 * edge)
				v->end_noise += d * d / 6 / (4 * edge - 2);
			v->noise[0] += d * d / 6;
			v->noise[1] += d * d / 6 * r * r;
			v->noise[2] += d * d / 6 * r * r * r * r;
		}
	}
}

static void find_moments(struct view *v)
{
	v->mass = v->sum[0];
	v->centre = v->sum[1] / v->sum[0];
	v->variance = v->sum[2] / v->sum[0] - v->centre * v->centre;
}

#define BLOCK 64 /* bins, of neighbouring cache lines */

/* Compute the mean of the views of a slice. */
static void mean_line(const struct parallel_scan *s, const float *lines, float *ret)
{
#pragma omp parallel for schedule(static)
	for (int first = 0; first < s->n_radial; first += BLOCK) {
		int n = s->n_radial - first < BLOCK ? s->n_radial - first : BLOCK;
		double sum[BLOCK] = {0};

		for (int a = 0; a < s->n_angles; a++)
			for (int t = 0; t < n; t++)
				sum[t] += (double)lines[(size_t)a * (size_t)s->n_radial + (size_t)(first + t)];
		for (int t = 0; t < n; t++)
			ret[first + t] = (float)(sum[t] / s->n_angles);
	}
}

/* ret: of each view, and after them of their mean. mean: [n_radial], working memory. */
static void make_views(const struct parallel_scan *s, const float *lines, int slice, float *mean, struct view *ret)
{
	const size_t n = (size_t)s->n_radial, first = (size_t)slice * (size_t)s->n_angles;

	mean_line(s, lines + first * n, mean);
	ret[s->n_angles] = (struct view){0};
	add_line(s, mean, &ret[s->n_angles]);

#pragma omp parallel for schedule(static)
	for (int a = 0; a < s->n_angles; a++) {
		ret[a] = (struct view){0};
		add_line(s, lines + (first + (size_t)a) * n, &ret[a]);
		find_moments(&ret[a]);
	}
}

/* sum += sign * v, of everything that a sum of slices has. */
static void add_views(struct view *sum, const struct view *v, int n, int sign)
{
	for (int a = 0; a < n; a++) {
		struct view *to = &sum[a];

		for (int i = 0; i < 3; i++) {
			to->sum[i] += sign * v[a].sum[i];
			to->noise[i] += sign * v[a].noise[i];
		}
		for (int i = 0; i < 2; i++) {
			to->end[i] += sign * v[a].end[i];
			to->inside[i] += sign * v[a].inside[i];
		}
		to->edge += sign * v[a].edge;
		to->most += sign * v[a].most;
		to->end_noise += sign * v[a].end_noise;
		find_moments(to);
	}
}

/* ---- views whose mass is an exception ---- */

double parallel_median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), order_doubles);
	return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

/* Return how many neighbours a view has in the order of the data; ret_first: the first of a window of them and the view. */
static int find_window(int n, int a, int *ret_first)
{
	int m = 2 * NEIGHBOURS < n ? 2 * NEIGHBOURS : (n - 1) / 2 * 2, first = a - m / 2;

	*ret_first = first < 0 ? 0 : first > n - 1 - m ? n - 1 - m : first;
	return m;
}

/* Neighbours of a view, which are near it also where the object leaves the field. */
struct around {
	double mass, spread; /* median of them, and the median deviation from it */
	double most;	     /* the largest bin */
};

static struct around find_around(const struct view *v, int n, int a)
{
	struct around ret = {0};
	double mass[2 * NEIGHBOURS];
	int first, m = find_window(n, a, &first);

	for (int i = 0; i < m; i++) {
		const struct view *beside = &v[first + i < a ? first + i : first + i + 1];

		mass[i] = beside->mass;
		ret.most = fmax(ret.most, beside->most);
	}
	ret.mass = parallel_median(mass, m);
	for (int i = 0; i < m; i++)
		mass[i] = fabs(mass[i] - ret.mass);
	ret.spread = parallel_median(mass, m);
	return ret;
}

/* Is every view on the other side of its neighbours than the view before? Of random masses three of four are. */
static bool is_alternating(const struct view *v, int n)
{
	int turns = 0;

	for (int a = 1; a < n - 2; a++) {
		double here = 2 * v[a].mass - v[a - 1].mass - v[a + 1].mass, next = 2 * v[a + 1].mass - v[a].mass - v[a + 2].mass;

		turns += here * next < 0;
	}
	return turns >= ALTERNATE * (n - 3);
}

/* Are the ends of a view air? */
static bool has_air(const struct view *v, int n_radial, double mass)
{
	return fabs(v->edge) <= EDGE_MOST * mass / n_radial + NOISES * sqrt(v->noise[0] / n_radial / (2 * edge_bins(n_radial)));
}

/* Are the ends of the views beside it air, and those of most neighbours? Else a part of the object may just leave the field. */
static bool is_between_air(const struct view *v, int n, int n_radial, double mass, int a)
{
	int first, m = find_window(n, a, &first), air = 0;

	for (int i = first; i <= first + m; i++)
		air += i != a && has_air(&v[i], n_radial, mass);
	return 2 * air > m && has_air(&v[a > 0 ? a - 1 : 1], n_radial, mass) &&
	       has_air(&v[a < n - 1 ? a + 1 : n - 2], n_radial, mass);
}

/* Has a view less mass than those around, but as high bins? It looks along a plate that no photons pass. */
static bool is_starved(const struct view *v, const struct around *around)
{
	return v->mass < around->mass && v->most >= STARVED * around->most;
}

/* The mass of an object inside the field is that of all views: return the relative spread between neighbours, 0: noise, or a part
 * that leaves the field, may be the reason. */
static double find_rough(const struct view *v, int n, int n_radial, double typical, double spread)
{
	double noise = 0, mean = 0;

	for (int a = 0; a < n; a++) {
		if (!is_between_air(v, n, n_radial, typical, a))
			return 0;
		noise += sqrt(v[a].noise[0]) / n;
		mean += v[a].mass / n;
	}
	return typical > 0 && mean > 0 && spread > NOISES * noise ? spread / mean : 0;
}

/* Both ends of a view, and the bins beside them, have one value: air, whose intensity may not be I0. An object that leaves the
 * field has a slope there, or another value at the other end. */
static bool has_flat_ends(const struct view *v, double level, double noise)
{
	double apart = 0;

	for (int k = 0; k < 2; k++)
		apart = fmax(apart, fmax(fabs(v->end[k] - level), fabs(v->inside[k] - level)));
	return apart <= AIR_APART * fabs(level) + NOISES * noise;
}

/* An object that fills the field may have one value at the ends of all views, too, but slopes up to them: if its profile is a
 * parabola, bins 1 / EDGE_PART of the field apart differ by 0.09 of its mean height above the ends, if it is a line, by 0.06. */
static bool has_no_slope(const struct view *v, const struct parallel_scan *s, double height, double noise)
{
	const int n = s->n_angles, edge = edge_bins(s->n_radial);
	double square = 0, of_noise = 2 * noise * noise / edge;

	for (int a = 0; a < n; a++)
		for (int k = 0; k < 2; k++)
			square += pow(v[a].inside[k] - v[a].end[k], 2) / (2 * n);
	return fmax(0, square - of_noise) + 2 * of_noise / sqrt(n) <= pow(AIR_SLOPE * height, 2);
}

/* Find the air of all views, and how it differs from view to view: in at least half of them, because a few may look along an
 * object that leaves the field only there. work: [n]. */
static void find_air(const struct view *v, const struct parallel_scan *s, double *work, struct parallel_consistency *ret)
{
	const int n = s->n_angles;
	double sum = 0, squares = 0, mass = 0, noise = 0, height, spread, middle;

	for (int a = 0; a < n; a++)
		noise += v[a].end_noise / n;
	noise = sqrt(noise);
	for (int a = 0; a < n; a++) {
		double air = (v[a].end[0] + v[a].end[1]) / 2;

		if (!has_flat_ends(&v[a], air, noise))
			return;
		work[a] = air;
		sum += air / n;
		squares += air * air / n;
		mass += v[a].mass / s->n_radial / n;
	}
	spread = sqrt(fmax(0, squares - sum * sum));
	height = mass - sum;
	if ((sum >= AIR_LOW * height || spread > EDGE_MOST * fabs(mass)) && !has_no_slope(v, s, fabs(height), noise))
		return;
	ret->noisy_air = noise > 0;
	middle = parallel_median(work, n);
	for (int a = 0; a < n; a++)
		work[a] = fabs(work[a] - middle);
	if (spread > fmax(EDGE_MOST * fabs(mass), NOISES * noise))
		ret->air_spread = SIGMA_OF_MEDIAN * parallel_median(work, n) > spread / 2 ? spread / s->n_slices : 0;
	else if (fabs(sum) > fmax(EDGE_MOST * fmin(fabs(mass), fabs(height)), NOISES * noise))
		ret->air = sum / s->n_slices;
}

/* Mark them; work: [n]. */
static void mark_odd(struct view *v, int n, int n_radial, double *work, struct parallel_consistency *ret)
{
	double typical, spread;

	for (int a = 0; a < n; a++)
		work[a] = v[a].mass;
	typical = parallel_median(work, n);
	for (int a = 0; a < n; a++)
		work[a] = fabs(v[a].mass - find_around(v, n, a).mass);
	spread = parallel_median(work, n);
	ret->rough = find_rough(v, n, n_radial, typical, spread);
	ret->alternate = ret->rough > 0 && is_alternating(v, n);
	for (int a = 0; a < n; a++) {
		struct around around = find_around(v, n, a);
		double apart = fabs(v[a].mass - around.mass);

		v[a].odd = typical > 0 && around.mass > 0 && apart > ODD_LEAST * typical && apart > ODD_SPREADS * spread &&
			   apart > ODD_AROUND * around.spread && apart > NOISES * sqrt(2 * v[a].noise[0]) &&
			   is_between_air(v, n, n_radial, typical, a) && !is_starved(&v[a], &around);
		if (v[a].odd && ret->n_odd++ == 0) {
			ret->odd = a;
			ret->odd_mass = v[a].mass / around.mass;
		}
	}
	if (ret->n_odd <= fmax(1, ODD_MOST * n))
		return;
	for (int a = 0; a < n; a++)
		v[a].odd = false;
	ret->n_odd = 0;
}

/* ---- fits ---- */

struct fit {
	double constant, sigma; /* and its standard deviation */
	double rest;		/* root mean square of what the fit leaves */
};

/* Fit value = p cos(angle) + q sin(angle) + constant by least squares to n points [value, cos, sin]. False: the angles are too
 * near each other. */
static bool fit_sinusoid(const double (*point)[3], int n, struct fit *ret)
{
	double m[3] = {0}, s[3] = {0}, b[2] = {0}, p, q, det, rest = 0;

	for (int a = 0; a < n; a++)
		for (int c = 0; c < 3; c++)
			m[c] += point[a][c] / n;
	for (int a = 0; a < n; a++) {
		double v = point[a][0] - m[0], c = point[a][1] - m[1], d = point[a][2] - m[2];

		s[0] += c * c;
		s[1] += c * d;
		s[2] += d * d;
		b[0] += c * v;
		b[1] += d * v;
	}
	det = s[0] * s[2] - s[1] * s[1];
	if (!(det > 1e-9 * n * n))
		return false;
	p = (s[2] * b[0] - s[1] * b[1]) / det;
	q = (s[0] * b[1] - s[1] * b[0]) / det;
	ret->constant = m[0] - p * m[1] - q * m[2];
	for (int a = 0; a < n; a++)
		rest += pow(point[a][0] - p * point[a][1] - q * point[a][2] - ret->constant, 2);
	ret->rest = sqrt(rest / (n - 3));
	ret->sigma = ret->rest * sqrt(1.0 / n + (s[2] * m[1] * m[1] - 2 * s[1] * m[1] * m[2] + s[0] * m[2] * m[2]) / det);
	return true;
}

/* Fit the centres (order 1) or the variances (order 2) of the views, if their angles are `factor` times those of the header. */
static bool fit_views(const struct parallel_scan *s, const struct view *v, int order, double factor, double (*point)[3],
		      struct fit *ret)
{
	int n = 0;

	for (int a = 0; a < s->n_angles; a++) {
		double angle = order * factor * parallel_angle(s, a) * M_PI / 180;

		if (v[a].odd)
			continue;
		point[n][0] = order == 1 ? v[a].centre : v[a].variance;
		point[n][1] = cos(angle);
		point[n][2] = sin(angle);
		n++;
	}
	return fit_sinusoid(point, n, ret);
}

/* Means of the views that are no exceptions. */
struct all {
	double mass, variance, centre2, spread, edge, noise[3]; /* spread: of the mass, relative, without noise */
};

static struct all all_of(const struct view *v, int n)
{
	struct all m = {0};
	double spread = 0;
	int used = 0;

	for (int a = 0; a < n; a++)
		used += !v[a].odd;
	for (int a = 0; a < n; a++) {
		if (v[a].odd)
			continue;
		m.mass += v[a].mass / used;
		m.variance += v[a].variance / used;
		m.centre2 += v[a].centre * v[a].centre / used;
		m.edge += v[a].edge * v[a].edge / used;
		for (int i = 0; i < 3; i++)
			m.noise[i] += v[a].noise[i] / used;
	}
	for (int a = 0; a < n; a++)
		spread += v[a].odd ? 0 : (v[a].mass - m.mass) * (v[a].mass - m.mass) / used;
	m.spread = sqrt(fmax(0, spread - m.noise[0])) / m.mass;
	m.edge = sqrt(m.edge);
	return m;
}

/* Is the whole object in the field of all views? False for NaN, too. */
static bool is_inside(const struct parallel_scan *s, const struct all *m)
{
	return m->mass > 0 && m->variance > 0 && m->spread <= MASS_SPREAD && m->edge <= EDGE_MOST * m->mass / s->n_radial;
}

/* How far centres and widths may be from the fits: noise, mass that leaves the field, what does no harm. */
static void find_limits(const struct parallel_scan *s, const struct all *m, struct parallel_consistency *ret)
{
	double reach = fmax(fabs(parallel_radius(s, 0)), fabs(parallel_radius(s, s->n_radial - 1))), width = sqrt(m->variance);
	double centre = sqrt(m->noise[1] + m->noise[0] * m->centre2) / m->mass;
	double variance = sqrt(m->noise[2] + m->noise[0] * m->variance * m->variance) / m->mass;

	ret->centre_limit = fmax(CENTRE_LEAST * s->bin, fmax(NOISES * centre, LEAVING * m->spread * reach));
	ret->width_limit = fmax(WIDTH_LEAST * s->bin, fmax(NOISES * variance, LEAVING * m->spread * reach * reach) / (2 * width));
}

/* Find what the views say, if the angles are those of the header; or which others agree with them. */
static void judge_angles(const struct parallel_scan *s, const struct view *v, double width, double (*point)[3],
			 struct parallel_consistency *ret)
{
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		struct fit centre = {0}, variance = {0};
		bool agrees;

		if (!fit_views(s, v, 1, factors[i], point, &centre) || !fit_views(s, v, 2, factors[i], point, &variance))
			continue;
		variance.rest /= 2 * width;
		agrees = centre.rest <= ret->centre_limit && variance.rest <= ret->width_limit;
		if (i == 0) {
			ret->known = true;
			ret->axis_error = centre.constant;
			ret->axis_sigma = centre.sigma;
			ret->centre_rest = centre.rest;
			ret->width_rest = variance.rest;
			ret->agree = agrees;
		} else if (ret->known && !ret->agree && agrees && ret->factor == 0) {
			ret->factor = factors[i];
		}
	}
}

/* Find what the views of one slice, or of the sum of s->n_slices, say. work: [3 n]. */
static void judge_views(const struct parallel_scan *s, struct view *v, double *work, struct parallel_consistency *ret)
{
	struct all m;

	*ret = (struct parallel_consistency){.agree = true};
	mark_odd(v, s->n_angles, s->n_radial, work, ret);
	find_air(v, s, work, ret);
	m = all_of(v, s->n_angles);
	if (!is_inside(s, &m))
		return;
	find_limits(s, &m, ret);
	judge_angles(s, v, sqrt(m.variance), (double(*)[3])work, ret);
}

/* Return how far bins with errors of their own may move the axis: standard deviation, mm. */
static double ring_sigma(const struct view *mean)
{
	return sqrt(mean->noise[1] + mean->noise[0] * mean->centre * mean->centre) / mean->mass;
}

/* Return how far the axis may be from where it is if all angles are stretched, mm: root mean square over the stretches, each with
 * its likelihood, by the fits of centres and variances, and with a prior: one scan of ten has one, of STRETCH_SIGMA. ret: the best
 * stretch, unless it is so by chance; sure if it explains most of what the fit of the given angles leaves. */
static double stretch_shift(const struct parallel_scan *s, const struct view *v, double (*point)[3],
			    struct parallel_consistency *ret)
{
	struct fit centre[STRETCHED], variance[STRETCHED];
	double least[2] = {INFINITY, INFINITY}, chi[STRETCHED], best = INFINITY, prior = 0, sum = 0, squares = 0;

	for (int i = 0; i < STRETCHED; i++) {
		double factor = 1 + (i - STRETCHES) * STRETCH;

		if (!fit_views(s, v, 1, factor, point, &centre[i]) || !fit_views(s, v, 2, factor, point, &variance[i]))
			return 0;
		least[0] = fmin(least[0], centre[i].rest);
		least[1] = fmin(least[1], variance[i].rest);
		prior += exp(-0.5 * pow((i - STRETCHES) * STRETCH / STRETCH_SIGMA, 2));
	}
	ret->stretch = 0;
	for (int i = 0; i < STRETCHED; i++) {
		chi[i] = s->n_angles * (pow(centre[i].rest / least[0], 2) + pow(variance[i].rest / least[1], 2));
		if (chi[i] < best)
			ret->stretch = (i - STRETCHES) * STRETCH;
		best = fmin(best, chi[i]);
	}
	if (chi[STRETCHES] - best < STRETCH_LIKELY)
		ret->stretch = 0;
	ret->stretched = all_of(v, s->n_angles).spread <= STRETCH_SPREAD && chi[STRETCHES] - best > STRETCH_SURE &&
			 chi[STRETCHES] > STRETCH_PART * best && fabs(ret->stretch) < STRETCHES * STRETCH;
	for (int i = 0; i < STRETCHED; i++) {
		double part = exp(-0.5 * pow((i - STRETCHES) * STRETCH / STRETCH_SIGMA, 2)) / prior * STRETCH_PRIOR +
			      (i == STRETCHES ? 1 - STRETCH_PRIOR : 0);

		part *= exp(-0.5 * (chi[i] - best));
		sum += part;
		squares += part * pow(centre[i].constant - centre[STRETCHES].constant, 2);
	}
	return sum > 0 && isfinite(squares) ? sqrt(squares / sum) : 0;
}

struct work {
	struct view *views, *sum;	   /* [n_angles + 1]: the last of the mean */
	float *mean;			   /* [n_radial] */
	double *points;			   /* [3 n_angles] */
	struct parallel_consistency *each; /* [n_slices], NULL: of one slice */
	unsigned char *fault;		   /* [n_slices] */
};

/* Judge each slice, and the sum of those without a fault. */
static void judge_slices(const struct parallel_scan *s, const float *lines, const struct monitor *monitor, struct work *w,
			 struct parallel_consistency *ret, struct parallel_faults *faults)
{
	struct parallel_scan some = *s, one = *s;

	one.n_slices = 1;
	for (int k = 0; k < s->n_slices; k++) {
		make_views(s, lines, k, w->mean, w->views);
		add_views(w->sum, w->views, s->n_angles + 1, 1);
		if (w->each)
			judge_views(&one, w->views, w->points, &w->each[k]);
		monitor_progress(monitor, "prepare", (k + 1.0) / s->n_slices);
	}
	if (w->each)
		parallel_find_faults(s, lines, w->each, monitor, w->fault, faults);
	for (int k = 0; w->each && k < s->n_slices; k++)
		if (w->fault[k]) {
			make_views(s, lines, k, w->mean, w->views);
			add_views(w->sum, w->views, s->n_angles + 1, -1);
			some.n_slices--;
			monitor_progress(monitor, "prepare", 1);
		}
	judge_views(&some, w->sum, w->points, ret);
	if (ret->known)
		ret->axis_doubt = hypot(ring_sigma(&w->sum[s->n_angles]), stretch_shift(s, w->sum, (double(*)[3])w->points, ret));
	if (!ret->agree && ret->factor == 0 && ret->stretched)
		ret->factor = 1 + ret->stretch;
	ret->axes_differ = w->each && ret->known && parallel_axes_differ(s, w->each, w->fault, ret->axis_error);
}

bool parallel_consistency_of(const struct parallel_scan *s, const float *lines, const struct monitor *monitor,
			     struct parallel_consistency *ret, struct parallel_faults *ret_faults)
{
	const size_t n = s->n_angles >= ANGLES_LEAST ? (size_t)s->n_angles : 0, slices = (size_t)s->n_slices;
	struct parallel_faults faults = {0};
	struct work w = {0};

	*ret = (struct parallel_consistency){.agree = true};
	if (n > 0) {
		w.views = calloc(n + 1, sizeof(*w.views));
		w.sum = calloc(n + 1, sizeof(*w.sum));
		w.mean = calloc((size_t)s->n_radial, sizeof(*w.mean));
		w.points = calloc(n, 3 * sizeof(*w.points));
		w.each = slices > 1 ? calloc(slices, sizeof(*w.each)) : NULL;
		w.fault = calloc(slices, 1);
	}
	if (w.views && w.sum && w.mean && w.points && w.fault && (w.each || slices == 1))
		judge_slices(s, lines, monitor, &w, ret, &faults);
	free(w.fault);
	free(w.each);
	free(w.points);
	free(w.mean);
	free(w.sum);
	free(w.views);
	if (ret_faults)
		*ret_faults = faults;
	return ret->known;
}
