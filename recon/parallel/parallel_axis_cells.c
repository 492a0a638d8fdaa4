/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_axis_cells.c - views of a slice, and the terms U and V of the curve of the axis (parallel_axis.c) in a window. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/parallel/parallel_axis_internal.h"

#define PAIRS_LEAST 8
#define PAIRS_PART 0.05 /* of the views: fewer pairs say less than the wedge */
#define TAPER 0.2	/* of the half window */
#define RING_AROUND 4	/* samples on each side */
#define DEAD_AROUND 3	/* bins on each side */
#define DEAD_VIEWS 64	/* at most */
#define DEAD_BESIDE 8	/* bins on each side */
#define DEAD_TIMES 6.0	/* distance of a dead bin from the bins around it, in that of the bins beside it */
#define DEAD_LEAST 0.02 /* the same, in the mean of all bins */

/* ---- views ---- */

struct direction {
	double at;
	int view;
};

static int compare_directions(const void *a, const void *b)
{
	const struct direction *x = a, *y = b;

	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : x->view - y->view;
}

static double view_angle(const struct parallel_scan *s, int a)
{
	return parallel_angle(s, a) * M_PI / 180;
}

static double into_turn(double angle)
{
	double ret = fmod(angle, 2 * M_PI);

	return ret < 0 ? ret + 2 * M_PI : ret;
}

void axis_views_free(struct axis_views *v)
{
	free(v->turn);
	free(v->view);
	free(v->pair);
	free(v->line);
	free(v->mean);
	free(v->odd);
	free(v->size);
	*v = (struct axis_views){0};
}

/* Return how many views one is taken of: a divisor of n, because a sum over unequal steps has an error where the seam is. */
static int find_stride(int n, int most)
{
	int stride = (n + most - 1) / most;

	while (n % stride)
		stride++;
	return stride <= 4 * (n / most) ? stride : 1;
}

/* Take one of `stride` views in the order of their directions; it stands for those that are left out. */
static void choose_views(const struct parallel_scan *s, const struct direction *d, const double *weight, int stride,
			 struct axis_views *v)
{
	v->n = s->n_angles / stride;
	for (int i = 0; i < v->n; i++) {
		v->view[i] = d[i * stride].view;
		v->turn[i][0] = view_angle(s, v->view[i]);
		v->turn[i][1] = 0;
		for (int j = 0; j < stride; j++)
			v->turn[i][1] += weight[d[i * stride + j].view];
	}
}

/* Return the index of the first direction of d that is not below `at`; n if there is none. */
static int find_direction(const struct direction *d, int n, double at)
{
	int low = 0, high = n;

	while (low < high) {
		int middle = (low + high) / 2;

		if (d[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Find what is opposite of view a, if views on both sides of that direction are at most 1.5 steps of it apart. d: sorted within a
 * turn. */
static bool find_opposite(const struct parallel_scan *s, const struct direction *d, const double *weight, int a,
			  struct axis_pair *ret)
{
	const int n = s->n_angles;
	double at = into_turn(view_angle(s, a) + M_PI);
	int after = find_direction(d, n, at);
	const struct direction *high = &d[after % n], *low = &d[(after + n - 1) % n];
	double up = into_turn(high->at - at + 1e-9), down = into_turn(at - low->at + 1e-9);

	*ret = (struct axis_pair){.view = a, .other = {low->view, high->view}};
	if (up + down > 3 * (weight[low->view] + weight[high->view]) && fmin(up, down) > 1e-6)
		return false;
	if (up + down > 3 * (weight[low->view] + weight[high->view]))
		ret->part[up < down] = 1; /* one of them is there */
	else {
		ret->part[0] = up / (up + down);
		ret->part[1] = 1 - ret->part[0];
	}
	return true;
}

/* Take pairs, and the views that they need. */
static void choose_pairs(const struct parallel_scan *s, const struct direction *d, const double *weight, int most,
			 struct axis_views *v)
{
	int found = 0, taken = 0;
	struct axis_pair p;

	for (int a = 0; a < s->n_angles; a++)
		found += d[a].at < M_PI && find_opposite(s, d, weight, d[a].view, &p);
	if (found < PAIRS_LEAST || found < PAIRS_PART * s->n_angles)
		return;
	most = found < most ? found : most;
	v->n = 0;
	for (int a = 0; a < s->n_angles; a++) {
		if (!(d[a].at < M_PI && find_opposite(s, d, weight, d[a].view, &p)))
			continue;
		taken++;
		if ((long)taken * most / found == (long)(taken - 1) * most / found)
			continue;
		v->view[v->n] = p.view;
		v->view[v->n + 1] = p.other[0];
		v->view[v->n + 2] = p.other[1];
		p.view = v->n;
		p.other[0] = v->n + 1;
		p.other[1] = v->n + 2;
		v->turn[v->n][1] = 1;
		v->turn[v->n + 1][1] = p.part[0];
		v->turn[v->n + 2][1] = p.part[1];
		v->pair[v->n_pairs++] = p;
		v->n += 3;
	}
}

/* Choose views and samples of a scan. */
int axis_views_make(const struct parallel_scan *s, const struct axis_effort *e, struct axis_views *v, struct err *err)
{
	const size_t n = (size_t)s->n_angles;
	struct direction *d = malloc(n * sizeof(*d));
	double *weight = malloc(n * sizeof(*weight));
	int r = 0;

	v->factor = (s->n_radial + e->bins - 1) / e->bins;
	v->width = s->n_radial / v->factor - 1;
	v->middle = 0.5 * (v->factor * (v->width + 1) - s->n_radial);
	v->harmonics = e->harmonics;
	v->turn = malloc(3 * n * sizeof(*v->turn));
	v->view = malloc(3 * n * sizeof(*v->view));
	v->pair = malloc(n * sizeof(*v->pair));
	if (!d || !weight || !v->turn || !v->view || !v->pair)
		r = err_set(err, ENOMEM, "no memory for the axis of %d angles", s->n_angles);
	if (r == 0)
		r = parallel_weights(s, weight, err);
	for (size_t a = 0; r == 0 && a < n; a++)
		d[a] = (struct direction){into_turn(view_angle(s, (int)a)), (int)a};
	if (r == 0) {
		qsort(d, n, sizeof(*d), compare_directions);
		choose_pairs(s, d, weight, e->pairs, v);
		for (size_t a = 0; v->n_pairs == 0 && a < n; a++)
			d[a].at = fmod(d[a].at, M_PI);
		if (v->n_pairs == 0) {
			qsort(d, n, sizeof(*d), compare_directions);
			choose_views(s, d, weight, find_stride(s->n_angles, e->views), v);
		}
		v->line = malloc((size_t)v->n * (size_t)v->width * sizeof(*v->line));
		v->mean = malloc((size_t)v->width * sizeof(*v->mean));
		v->odd = malloc((size_t)s->n_radial * sizeof(*v->odd));
		v->size = malloc((size_t)s->n_radial * sizeof(*v->size));
		if (!v->line || !v->mean || !v->odd || !v->size)
			r = err_set(err, ENOMEM, "no memory for %d views of %d samples", v->n, v->width);
	}
	free(d);
	free(weight);
	return r;
}

/* Subtract what all views share and neighbouring samples do not: rings, which do not turn. mean: [width]. */
static void subtract_rings(struct axis_views *v)
{
	const size_t width = (size_t)v->width;
	double all = 0;

	for (int i = 0; i < v->n; i++)
		all += v->turn[i][1];
#pragma omp parallel for schedule(static)
	for (size_t t = 0; t < width; t++) {
		v->mean[t] = 0;
		for (size_t i = 0; i < (size_t)v->n; i++)
			v->mean[t] += v->turn[i][1] / all * v->line[i * width + t];
	}
#pragma omp parallel for schedule(static)
	for (size_t t = RING_AROUND; t < width - RING_AROUND; t++) {
		double smooth = 0;

		for (size_t i = t - RING_AROUND; i <= t + RING_AROUND; i++)
			smooth += v->mean[i] / (2 * RING_AROUND + 1);
		for (size_t i = 0; i < (size_t)v->n; i++)
			v->line[i * width + t] -= v->mean[t] - smooth;
	}
}

/* Make v->odd how far each bin is from the median of those around it, in half of some views. An edge is not: it is between its
 * neighbours; and a peak is elsewhere in the next view. Return the mean size of a bin. */
static double find_odd(const struct parallel_scan *s, const float *lines, struct axis_views *v)
{
	const int stride = (v->n + DEAD_VIEWS - 1) / DEAD_VIEWS, n = s->n_radial;
	double size = 0;

#pragma omp parallel for schedule(static)
	for (int t = 0; t < n; t++) {
		double apart[DEAD_VIEWS], sum = 0;
		int views = 0;

		for (int i = 0; i < v->n; i += stride) {
			const float *line = lines + (size_t)v->view[i] * (size_t)n;
			double around[2 * DEAD_AROUND + 1];
			int m = 0;

			for (int j = t - DEAD_AROUND; j <= t + DEAD_AROUND; j++)
				if (j >= 0 && j < n)
					around[m++] = (double)line[j];
			apart[views++] = fabs((double)line[t] - parallel_median(around, m));
			sum += fabs((double)line[t]);
		}
		v->odd[t] = parallel_median(apart, views);
		v->size[t] = sum / views;
	}
	for (int t = 0; t < n; t++)
		size += v->size[t] / n;
	return size;
}

/* Mark bins that are dead or stuck: v->odd becomes 1, of others 0. Those at the ends, which count little, are not between others:
 * there an object that leaves the field looks the same. lines: of the slice. */
static void mark_dead(const struct parallel_scan *s, const float *lines, struct axis_views *v)
{
	const double least = DEAD_LEAST * find_odd(s, lines, v);

	for (int t = 0; t < s->n_radial; t++)
		v->size[t] = v->odd[t];
	for (int t = 0; t < s->n_radial; t++) {
		double beside[2 * DEAD_BESIDE + 1];
		int m = 0;

		for (int j = t - DEAD_BESIDE; j <= t + DEAD_BESIDE; j++)
			if (j >= 0 && j < s->n_radial)
				beside[m++] = v->size[j];
		v->odd[t] = t >= DEAD_AROUND && t < s->n_radial - DEAD_AROUND &&
			    v->size[t] > fmax(least, DEAD_TIMES * parallel_median(beside, m));
	}
}

/* A bin of a line, or what is between the next ones that are not dead. */
static double live_bin(const struct axis_views *v, const float *line, int n, int t)
{
	int low = t, high = t;

	while (low >= 0 && v->odd[low] > 0)
		low--;
	while (high < n && v->odd[high] > 0)
		high++;
	if (low < 0 || high >= n)
		return (double)line[low >= 0 ? low : high < n ? high : t];
	return high == low ? (double)line[t] : ((double)line[low] * (high - t) + (double)line[high] * (t - low)) / (high - low);
}

void axis_views_read(const struct parallel_scan *s, const float *lines, int slice, struct axis_views *v)
{
	lines += (size_t)slice * (size_t)s->n_angles * (size_t)s->n_radial;
	mark_dead(s, lines, v);
#pragma omp parallel for schedule(static)
	for (int i = 0; i < v->n; i++) {
		const float *line = lines + (size_t)v->view[i] * (size_t)s->n_radial;
		double before = 0;

		for (int t = 0; t <= v->width; t++) {
			double sum = 0;

			for (int j = 0; j < v->factor; j++)
				sum += live_bin(v, line, s->n_radial, t * v->factor + j) / v->factor;
			if (t > 0)
				v->line[(size_t)i * (size_t)v->width + (size_t)t - 1] = sum - before;
			before = sum;
		}
	}
	subtract_rings(v);
}

/* ---- cells ---- */

static int count_harmonics(const struct axis_views *v)
{
	return v->n - 1 < v->harmonics ? v->n - 1 : v->harmonics;
}

void axis_cells_free(struct axis_cells *c)
{
	free(c->wave);
	*c = (struct axis_cells){0};
}

static void make_tables(const struct axis_views *v, struct axis_cells *c)
{
	for (int w = 0; w < c->n_waves; w++)
		c->wave[w] = 2 * M_PI * (w + 1) / (v->width + 1);
	for (int t = 0; t < v->width; t++)
		for (int w = 0; w < c->n_waves; w++) {
			double phase = c->wave[w] * (t - 0.5 * (v->width - 1));

			c->cosine[0][t * c->n_waves + w] = cos(phase);
			c->cosine[1][t * c->n_waves + w] = -sin(phase);
		}
	for (int k = 0; v->n_pairs == 0 && k < c->n; k++)
		for (int i = 0; i < v->n; i++) {
			double phase = (k - c->n / 2) * v->turn[i][0];

			c->turn[0][k * v->n + i] = v->turn[i][1] * cos(phase);
			c->turn[1][k * v->n + i] = -v->turn[i][1] * sin(phase);
		}
}

/* Return the number of waves that have a harmonic outside of the wedge of the whole window, with the least margin. */
static size_t count_waves(const struct axis_views *v)
{
	return (size_t)(count_harmonics(v) / (M_PI * AXIS_MARGIN_LEAST)) + 1;
}

int axis_cells_make(const struct axis_views *v, struct axis_cells *c, struct err *err)
{
	size_t waves = (size_t)(v->width + 1) / 4, views = (size_t)v->n, width = (size_t)v->width, n, turns;
	double *at;

	if (v->n_pairs == 0 && waves > count_waves(v))
		waves = count_waves(v);
	*c = (struct axis_cells){.n = v->n_pairs ? v->n_pairs : 2 * count_harmonics(v) + 1, .n_waves = (int)waves};
	n = (size_t)c->n * waves;
	turns = v->n_pairs ? 0 : (size_t)c->n * views;
	at = malloc((waves + 2 * width * waves + 2 * turns + 2 * views * waves + 4 * n) * sizeof(*at));
	if (!at)
		return err_set(err, ENOMEM, "no memory for the axis: %zu cells", n);
	c->wave = at;
	c->cosine[0] = c->wave + waves;
	c->cosine[1] = c->cosine[0] + width * waves;
	c->turn[0] = c->cosine[1] + width * waves;
	c->turn[1] = c->turn[0] + turns;
	c->p[0] = c->turn[1] + turns;
	c->p[1] = c->p[0] + views * waves;
	c->u[0] = c->p[1] + views * waves;
	c->u[1] = c->u[0] + n;
	c->v[0] = c->u[1] + n;
	c->v[1] = c->v[0] + n;
	make_tables(v, c);
	return 0;
}

/* Weight of a sample in the window. */
static double find_taper(double from_centre, double half)
{
	double edge = (fabs(from_centre) / half - 1 + TAPER) / TAPER;

	return edge <= 0 ? 1 : edge >= 1 ? 0 : pow(cos(M_PI / 2 * edge), 2);
}

/* Transform the views in the window. */
static void transform_views(const struct axis_views *v, struct axis_cells *c)
{
	const int width = v->width, waves = c->n_waves;

#pragma omp parallel for schedule(static)
	for (int i = 0; i < v->n; i++) {
		double *re = c->p[0] + (size_t)i * (size_t)waves, *im = c->p[1] + (size_t)i * (size_t)waves;

		for (int w = 0; w < waves; w++)
			re[w] = im[w] = 0;
		for (int t = 0; t < width; t++) {
			const double *a = c->cosine[0] + (size_t)t * (size_t)waves, *b = c->cosine[1] + (size_t)t * (size_t)waves;
			double value = v->line[(size_t)i * (size_t)width + (size_t)t] *
				       find_taper(t - 0.5 * (width - 1) - c->centre, c->half);

			for (int w = 0; w < waves && value != 0; w++) {
				re[w] += value * a[w];
				im[w] += value * b[w];
			}
		}
	}
}

/* Harmonic k of the measured half turn is U; V is that of the mirrored, opposite one: -(-1)^k conj of U of -k. */
static void make_wedge(const struct axis_views *v, struct axis_cells *c)
{
	const int waves = c->n_waves;

#pragma omp parallel for schedule(static)
	for (int k = 0; k < c->n; k++) {
		size_t row = (size_t)k * (size_t)waves, mirrored = (size_t)(c->n - 1 - k) * (size_t)waves;
		double *re = c->u[0] + row, *im = c->u[1] + row, sign = (k - c->n / 2) % 2 ? 1 : -1;

		for (int w = 0; w < waves; w++)
			re[w] = im[w] = 0;
		for (int i = 0; i < v->n; i++) {
			const double *p = c->p[0] + (size_t)i * (size_t)waves, *q = c->p[1] + (size_t)i * (size_t)waves;
			double a = c->turn[0][k * v->n + i], b = c->turn[1][k * v->n + i];

			for (int w = 0; w < waves; w++) {
				re[w] += a * p[w] - b * q[w];
				im[w] += a * q[w] + b * p[w];
			}
		}
		for (int w = 0; w < waves; w++) {
			c->v[0][mirrored + (size_t)w] = sign * re[w];
			c->v[1][mirrored + (size_t)w] = -sign * im[w];
		}
	}
}

/* The derivative of the mirrored view has the other sign, so that V, which is added, has that of the view. */
static void make_pairs(const struct axis_views *v, struct axis_cells *c)
{
	const size_t waves = (size_t)c->n_waves;

	for (int i = 0; i < v->n_pairs; i++) {
		const struct axis_pair *p = &v->pair[i];

		for (size_t w = 0; w < waves; w++) {
			size_t to = (size_t)i * waves + w, one = (size_t)p->other[0] * waves + w,
			       two = (size_t)p->other[1] * waves + w;

			c->u[0][to] = c->p[0][(size_t)p->view * waves + w];
			c->u[1][to] = c->p[1][(size_t)p->view * waves + w];
			c->v[0][to] = p->part[0] * c->p[0][one] + p->part[1] * c->p[0][two];
			c->v[1][to] = -(p->part[0] * c->p[1][one] + p->part[1] * c->p[1][two]);
		}
	}
}

void axis_cells_fill(const struct axis_views *v, double centre, double part, struct axis_cells *c)
{
	c->centre = centre;
	c->half = part * (0.5 * v->width - fabs(centre));
	transform_views(v, c);
	if (v->n_pairs)
		make_pairs(v, c);
	else
		make_wedge(v, c);
}
