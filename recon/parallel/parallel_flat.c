/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_flat.c - line integrals of views, flat fields and dark fields, one slice at a time. */
#include "recon/parallel/parallel_flat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/parallel/parallel_gaps.h"

#define LEAST 1e-4    /* of the flat field: less is no signal */
#define DEAD_PART 5   /* a bin with this many times less, or more, light than its neighbours is no measurement */
#define NO_LIGHT 1e-3 /* of the brightest neighbourhood: outside of the beam */
#define STUCK_WIDTH 3 /* bins beside each other */
#define STUCK_VIEWS 16

/* The means of one run of flat fields, less the dark field, and its place. */
struct flat {
	double at; /* number of its middle frame */
	int n;	   /* frames */
	double *mean;
};

/* One slice. */
struct slice {
	size_t n_radial;
	int *frame_of[PARALLEL_FRAME_KINDS], n_of[PARALLEL_FRAME_KINDS];
	struct flat *flat;
	int n_flats;
	double *dark, *light, *noise, *usual; /* light: the least of the flat fields */
	unsigned char *mark;		      /* enum parallel_gap_kind */
	double *memory;			      /* of all fields */
	struct parallel_gaps hits;
};

static int count_frames(const struct parallel_frames *f, enum parallel_frame kind)
{
	int n = 0;

	for (int i = 0; i < f->n_runs; i++)
		n += f->run[i].kind == kind ? f->run[i].n : 0;
	return n;
}

int parallel_flat_check(const struct parallel_frames *f, const struct parallel_scan *s, struct err *err)
{
	int all = 0;

	for (int i = 0; i < f->n_runs; i++) {
		if (f->run[i].n < 1 || (int)f->run[i].kind < 0 || f->run[i].kind >= PARALLEL_FRAME_KINDS)
			return err_set(err, EINVAL, "run %d: %d frames of kind %d; allowed: 1 or more, of kind 0 to %d", i,
				       f->run[i].n, (int)f->run[i].kind, PARALLEL_FRAME_KINDS - 1);
		all += f->run[i].n;
	}
	if (all != f->n)
		return err_set(err, EINVAL, "runs of %d frames, %d in all", all, f->n);
	if (count_frames(f, PARALLEL_FRAME_VIEW) != s->n_angles)
		return err_set(err, EINVAL, "%d frames are views, and there are %d angles", count_frames(f, PARALLEL_FRAME_VIEW),
			       s->n_angles);
	return count_frames(f, PARALLEL_FRAME_FLAT) > 0
		       ? 0
		       : err_set(err, EINVAL, "none of %d frames is a flat field (kind 1)", f->n);
}

/* Add n frames of one bin after the other. */
static void add_frames(const float *values, int n, size_t n_radial, double *sum)
{
	for (int i = 0; i < n; i++)
		for (size_t t = 0; t < n_radial; t++)
			sum[t] += (double)values[(size_t)i * n_radial + t];
}

/* Find the dark field and the flat fields. */
static void take_means(const struct parallel_frames *f, const float *values, struct slice *s)
{
	int frame = 0, n_dark = s->n_of[PARALLEL_FRAME_DARK], n = 0;

	for (int i = 0; i < f->n_runs; frame += f->run[i++].n) {
		const float *first = values + (size_t)frame * s->n_radial;

		if (f->run[i].kind == PARALLEL_FRAME_DARK) {
			add_frames(first, f->run[i].n, s->n_radial, s->dark);
		} else if (f->run[i].kind == PARALLEL_FRAME_FLAT) {
			s->flat[n].at = frame + 0.5 * (f->run[i].n - 1);
			s->flat[n].n = f->run[i].n;
			add_frames(first, f->run[i].n, s->n_radial, s->flat[n].mean);
			for (size_t t = 0; t < s->n_radial; t++)
				s->flat[n].mean[t] /= f->run[i].n;
			n++;
		}
	}
	for (size_t t = 0; t < s->n_radial; t++) {
		s->dark[t] = n_dark > 0 ? s->dark[t] / n_dark : 0;
		for (int i = 0; i < n; i++)
			s->flat[i].mean[t] -= s->dark[t];
	}
}

static void find_light(struct slice *s)
{
	for (size_t t = 0; t < s->n_radial; t++) {
		s->light[t] = INFINITY;
		for (int i = 0; i < s->n_flats; i++)
			s->light[t] = isfinite(s->flat[i].mean[t]) ? fmin(s->light[t], s->flat[i].mean[t]) : 0;
	}
	parallel_usual(s->light, NULL, s->n_radial, s->usual);
}

/* Mark the bins that are no measurement by their flat field. ret_lit: of those with light, the number of marked and of all. */
static void mark_dead(struct slice *s, size_t ret_lit[2])
{
	double brightest = 0;

	ret_lit[0] = ret_lit[1] = 0;
	for (size_t t = 0; t < s->n_radial; t++)
		brightest = fmax(brightest, s->usual[t]);
	for (size_t t = 0; t < s->n_radial; t++) {
		double light = s->light[t];
		bool lit = light > NO_LIGHT * brightest;

		if (!(lit && light * DEAD_PART >= s->usual[t] && light <= DEAD_PART * s->usual[t]))
			s->mark[t] = PARALLEL_GAP_DEAD;
		ret_lit[0] += lit && s->mark[t];
		ret_lit[1] += lit;
	}
}
/* Find what frames of one kind say: bins that flicker, and hits. */
static int find_gaps(struct slice *s, enum parallel_frame kind, const float *values, struct parallel_series *ret, struct err *err)
{
	*ret = (struct parallel_series){.values = values,
					.n_radial = s->n_radial,
					.frame = s->frame_of[kind],
					.n = s->n_of[kind],
					.dark = kind == PARALLEL_FRAME_DARK ? NULL : s->dark};
	return parallel_find_gaps(ret, s->usual, s->mark, s->noise, &s->hits, err);
}

/* The mean of the frames before and after a hit, less its value. */
static double change_of(const struct parallel_series *of, const struct parallel_gap *h)
{
	double value[3];

	for (int j = 0; j < 3; j++)
		value[j] = (double)of->values[(size_t)of->frame[h->view + j - 1] * of->n_radial + (size_t)h->bin];
	return 0.5 * (value[0] + value[2]) - value[1];
}

/* Find hits and flickering bins of dark and flat fields, take the hits out of the means, and mark bins that are hot. */
static int clean_means(struct slice *s, const float *values, struct err *err)
{
	struct parallel_series of;
	int r = find_gaps(s, PARALLEL_FRAME_DARK, values, &of, err);

	for (size_t i = 0; r == 0 && i < s->hits.n; i++) {
		double change = change_of(&of, &s->hits.gap[i]) / of.n;

		s->dark[s->hits.gap[i].bin] += change;
		for (int j = 0; j < s->n_flats; j++)
			s->flat[j].mean[s->hits.gap[i].bin] -= change;
	}
	if (r == 0)
		r = find_gaps(s, PARALLEL_FRAME_FLAT, values, &of, err);
	for (size_t i = 0; r == 0 && i < s->hits.n; i++)
		for (int j = 0; j < s->n_flats; j++)
			if (fabs(of.frame[s->hits.gap[i].view] - s->flat[j].at) <= 0.5 * s->flat[j].n)
				s->flat[j].mean[s->hits.gap[i].bin] += change_of(&of, &s->hits.gap[i]) / s->flat[j].n;
	parallel_usual(s->dark, s->mark, s->n_radial, s->light); /* which is no longer needed */
	for (size_t t = 0; r == 0 && t < s->n_radial; t++)
		if (!s->mark[t] && (s->dark[t] - s->light[t]) * DEAD_PART > s->usual[t])
			s->mark[t] = PARALLEL_GAP_HOT;
	return r;
}

/* Mark bins whose views are all as bright as the flat field, without noise, between bins that change: stuck, without a dark field
 * that would show it. noise: of the views. */
static void mark_stuck(struct slice *s, const float *values)
{
	const float *view = values + (size_t)s->frame_of[PARALLEL_FRAME_VIEW][0] * s->n_radial;
	size_t run = 0;

	for (size_t t = 0; t < s->n_radial; t++) {
		if (!s->mark[t] && s->noise[t] == 0 && (double)view[t] - s->dark[t] == s->flat[0].mean[t]) {
			run++;
			continue;
		}
		if (run > 0 && run <= STUCK_WIDTH && run < t && s->noise[t] > 0 && s->noise[t - run - 1] > 0)
			memset(s->mark + t - run, PARALLEL_GAP_HOT, run);
		run = 0;
	}
}

/* Mark what views show, and list all bins and values of slice k that are no measurement. */
static int list_gaps(struct slice *s, const float *values, int k, struct parallel_gaps *gaps, struct parallel_flat_report *report,
		     struct err *err)
{
	size_t *count[] = {
		[PARALLEL_GAP_DEAD] = &report->dead, [PARALLEL_GAP_HOT] = &report->hot, [PARALLEL_GAP_FLICKERS] = &report->noisy};
	struct parallel_series of;
	int r = find_gaps(s, PARALLEL_FRAME_VIEW, values, &of, err);

	if (r == 0 && of.n >= STUCK_VIEWS)
		mark_stuck(s, values);
	for (size_t t = 0; r == 0 && t < s->n_radial; t++) {
		if (!s->mark[t])
			continue;
		++*count[s->mark[t]];
		r = parallel_gap_add(gaps, k, (int)t, -1, err);
	}
	for (size_t i = 0; r == 0 && i < s->hits.n; i++) {
		const struct parallel_gap *h = &s->hits.gap[i];

		if (s->mark[h->bin])
			continue;
		report->hits++;
		r = parallel_gap_add(gaps, k, h->bin, h->view, err);
	}
	return r;
}

/* The flat fields beside a frame: *ret_part of the second one. */
static void find_flats(const struct slice *s, int frame, const struct flat *ret[2], double *ret_part)
{
	int after = 0;

	while (after < s->n_flats && s->flat[after].at < frame)
		after++;
	ret[0] = &s->flat[after > 0 ? after - 1 : 0];
	ret[1] = &s->flat[after < s->n_flats ? after : s->n_flats - 1];
	*ret_part = ret[0] == ret[1] ? 0 : (frame - ret[0]->at) / (ret[1]->at - ret[0]->at);
}

/* Fill bins without datum: linear between the nearest others, constant beyond the outermost. */
static void fill_gaps(const unsigned char *mark, size_t n, float *line)
{
	size_t before = SIZE_MAX;

	for (size_t t = 0; t < n; t++) {
		size_t after = t;

		if (!mark[t]) {
			before = t;
			continue;
		}
		while (after < n && mark[after])
			after++;
		for (; t < after; t++) {
			double part = before == SIZE_MAX || after == n ? 0 : (double)(t - before) / (double)(after - before);
			float from = line[before == SIZE_MAX ? after : before], to = line[after == n ? before : after];

			line[t] = (float)((1 - part) * (double)from + part * (double)to);
		}
		t--;
	}
}

/* Convert one view; returns the number of bins without signal, -1: a value is not finite. */
static int convert_view(const struct slice *s, int frame, const float *value, float *ret)
{
	const struct flat *flat[2];
	double part;
	int dark = 0;

	find_flats(s, frame, flat, &part);
	for (size_t t = 0; t < s->n_radial; t++) {
		double open = (1 - part) * flat[0]->mean[t] + part * flat[1]->mean[t], light = (double)value[t] - s->dark[t];

		if (s->mark[t] == PARALLEL_GAP_DEAD)
			continue;
		if (!isfinite(light))
			return -1;
		if (s->mark[t])
			continue;
		dark += light < LEAST * open;
		ret[t] = (float)-log(fmax(light / open, LEAST));
	}
	fill_gaps(s->mark, s->n_radial, ret);
	return dark;
}

/* Fill the hits, view by view. */
static void fill_hits(struct slice *s, float *lines)
{
	const size_t n = s->n_radial;
	unsigned char *mark = (unsigned char *)s->usual; /* which is no longer needed */

	for (size_t i = 0, next; i < s->hits.n; i = next) {
		const int view = s->hits.gap[i].view;

		memcpy(mark, s->mark, n);
		for (next = i; next < s->hits.n && s->hits.gap[next].view == view; next++)
			mark[s->hits.gap[next].bin] = 1;
		fill_gaps(mark, n, lines + (size_t)view * n);
	}
}

static int make_slice(const struct parallel_frames *f, size_t n_radial, struct slice *ret, struct err *err)
{
	struct slice s = {.n_radial = n_radial};
	int *frame_of = malloc((size_t)f->n * sizeof(*frame_of));

	for (int i = 0; i < f->n_runs; i++)
		s.n_flats += f->run[i].kind == PARALLEL_FRAME_FLAT;
	s.frame_of[0] = frame_of;
	s.memory = calloc((size_t)s.n_flats + 4, n_radial * sizeof(double)); /* flats, dark, light, noise, usual */
	s.flat = calloc((size_t)s.n_flats, sizeof(*s.flat));
	s.mark = calloc(n_radial, sizeof(*s.mark));
	s.dark = s.memory;
	*ret = s;
	if (!frame_of || !s.memory || !s.flat || !s.mark)
		return err_set(err, ENOMEM, "no memory for %d frames and %d runs of flat fields of %zu bins", f->n, s.n_flats,
			       n_radial);
	ret->light = s.dark + n_radial;
	ret->noise = ret->light + n_radial;
	ret->usual = ret->noise + n_radial;
	for (int i = 0; i < s.n_flats; i++)
		ret->flat[i].mean = ret->usual + (size_t)(i + 1) * n_radial;
	for (int kind = 0; kind < PARALLEL_FRAME_KINDS; frame_of += ret->n_of[kind++]) {
		ret->frame_of[kind] = frame_of;
		for (int i = 0, frame = 0; i < f->n_runs; frame += f->run[i++].n)
			for (int j = 0; (int)f->run[i].kind == kind && j < f->run[i].n; j++)
				frame_of[ret->n_of[kind]++] = frame + j;
	}
	return 0;
}

static void release_slice(struct slice *s)
{
	parallel_gaps_release(&s->hits);
	free(s->frame_of[0]);
	free(s->memory);
	free(s->flat);
	free(s->mark);
}

/* Find dark and flat fields, and bins that are no measurement. */
static int prepare_slice(const struct parallel_frames *f, int k, const float *values, struct slice *s, struct parallel_gaps *gaps,
			 struct parallel_flat_report *report, struct err *err)
{
	size_t lit[2], n_gaps = gaps->n;
	int r;

	take_means(f, values, s);
	find_light(s);
	mark_dead(s, lit);
	if (!memchr(s->mark, PARALLEL_GAP_NONE, s->n_radial))
		return err_set(err, EBADMSG, "slice %d: its flat fields have no light", k);
	if (2 * lit[0] > lit[1])
		return err_set(
			err, EBADMSG,
			"slice %d: the flat fields of %zu of %zu detector bins are unlike those of their neighbours: another order of "
			"the data than [slice][frame][radial bin], or other frames are flat fields",
			k, lit[0], lit[1]);
	r = clean_means(s, values, err);
	if (r == 0)
		r = list_gaps(s, values, k, gaps, report, err);
	if (r == 0 && !memchr(s->mark, PARALLEL_GAP_NONE, s->n_radial))
		r = err_set(err, EBADMSG, "slice %d: all %zu detector bins are dead, hot or flicker", k, gaps->n - n_gaps);
	return r;
}

int parallel_flat_lines(const struct parallel_frames *f, const struct parallel_scan *scan, int k, const float *values,
			float *ret_lines, struct parallel_gaps *gaps, struct parallel_flat_report *report, struct err *err)
{
	size_t n_radial = (size_t)scan->n_radial, n_dark = 0;
	int bad = scan->n_angles;
	struct slice s;
	int r = make_slice(f, n_radial, &s, err);

	if (r == 0)
		r = prepare_slice(f, k, values, &s, gaps, report, err);
	if (r < 0)
		goto out;
#pragma omp parallel for schedule(static) reduction(+ : n_dark) reduction(min : bad)
	for (int a = 0; a < scan->n_angles; a++) {
		int frame = s.frame_of[PARALLEL_FRAME_VIEW][a];
		int dark = convert_view(&s, frame, values + (size_t)frame * n_radial, ret_lines + (size_t)a * n_radial);

		n_dark += dark > 0 ? (size_t)dark : 0;
		bad = dark < 0 && a < bad ? a : bad;
	}
	if (bad < scan->n_angles) {
		r = err_set(err, EBADMSG, "slice %d: frame %d has a value that is not finite", k,
			    s.frame_of[PARALLEL_FRAME_VIEW][bad]);
		goto out;
	}
	fill_hits(&s, ret_lines);
	report->bins += n_radial;
	report->values += n_radial * (size_t)scan->n_angles;
	report->dark += n_dark;
	report->n_flat = s.n_of[PARALLEL_FRAME_FLAT];
	report->n_dark = s.n_of[PARALLEL_FRAME_DARK];
out:
	release_slice(&s);
	return r;
}
