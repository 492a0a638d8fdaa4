/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_flat.c - line integrals of views, flat fields and dark fields, one slice at a time. */
#include "recon/parallel/parallel_flat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/parallel/parallel_internal.h"

#define LEAST 1e-4    /* of the flat field: less is no signal */
#define DEAD_PART 5   /* a bin with this many times less, or more, light than its neighbours is no measurement */
#define NO_LIGHT 1e-3 /* of the brightest neighbourhood: outside of the beam */
#define NEIGHBOURS 8  /* on either side */

/* The means of one run of flat fields, less the dark field, and its place. */
struct flat {
	double at; /* number of its middle frame */
	double *mean;
};

/* One slice. */
struct slice {
	size_t n_radial;
	double *dark;
	struct flat *flat;
	int n_flats;
	bool *dead;
	double *memory; /* of all above */
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
	int frame = 0, n_dark = 0, n = 0;

	for (int i = 0; i < f->n_runs; frame += f->run[i++].n) {
		const float *first = values + (size_t)frame * s->n_radial;

		if (f->run[i].kind == PARALLEL_FRAME_DARK) {
			add_frames(first, f->run[i].n, s->n_radial, s->dark);
			n_dark += f->run[i].n;
		} else if (f->run[i].kind == PARALLEL_FRAME_FLAT) {
			s->flat[n].at = frame + 0.5 * (f->run[i].n - 1);
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

/* Mark the bins that are no measurement. light: n_radial elements, the least of the flat fields. Returns their number; ret_lit: of
 * those with light, the number of marked and of all. */
static size_t mark_dead(struct slice *s, const double *light, size_t ret_lit[2])
{
	double around[2 * NEIGHBOURS + 1], brightest = 0;
	size_t n = 0;

	ret_lit[0] = ret_lit[1] = 0;

	for (int pass = 0; pass < 2; pass++) /* the brightest neighbourhood is known after the first */
		for (size_t t = 0; t < s->n_radial; t++) {
			size_t first = t > NEIGHBOURS ? t - NEIGHBOURS : 0;
			size_t end = t + NEIGHBOURS + 1 < s->n_radial ? t + NEIGHBOURS + 1 : s->n_radial;
			double usual;

			memcpy(around, light + first, (end - first) * sizeof(*light));
			usual = parallel_median(around, (int)(end - first));
			brightest = pass ? brightest : fmax(brightest, usual);
			s->dead[t] = !(light[t] > NO_LIGHT * brightest && light[t] * DEAD_PART >= usual &&
				       light[t] <= DEAD_PART * usual);
			n += pass && s->dead[t];
			if (pass && light[t] > NO_LIGHT * brightest) {
				ret_lit[0] += s->dead[t];
				ret_lit[1]++;
			}
		}
	return n;
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

/* Fill dead bins: linear between the nearest others, constant beyond the outermost. */
static void fill_dead(const struct slice *s, float *line)
{
	size_t before = SIZE_MAX;

	for (size_t t = 0; t < s->n_radial; t++) {
		size_t after = t;

		if (!s->dead[t]) {
			before = t;
			continue;
		}
		while (after < s->n_radial && s->dead[after])
			after++;
		for (; t < after; t++) {
			double part =
				before == SIZE_MAX || after == s->n_radial ? 0 : (double)(t - before) / (double)(after - before);
			float from = line[before == SIZE_MAX ? after : before], to = line[after == s->n_radial ? before : after];

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

		if (s->dead[t])
			continue;
		if (!isfinite(light))
			return -1;
		dark += light < LEAST * open;
		ret[t] = (float)-log(fmax(light / open, LEAST));
	}
	fill_dead(s, ret);
	return dark;
}

static int make_slice(const struct parallel_frames *f, size_t n_radial, struct slice *ret, struct err *err)
{
	struct slice s = {.n_radial = n_radial};
	double *next;

	for (int i = 0; i < f->n_runs; i++)
		s.n_flats += f->run[i].kind == PARALLEL_FRAME_FLAT;
	s.memory = calloc((size_t)s.n_flats + 2, n_radial * sizeof(double)); /* flats, dark, least of the flats */
	s.flat = calloc((size_t)s.n_flats, sizeof(*s.flat));
	s.dead = calloc(n_radial, sizeof(*s.dead));
	*ret = s;
	if (!s.memory || !s.flat || !s.dead)
		return err_set(err, ENOMEM, "no memory for %d runs of flat fields of %zu bins", s.n_flats, n_radial);
	next = s.memory + n_radial;
	for (int i = 0; i < s.n_flats; i++, next += n_radial)
		ret->flat[i].mean = next;
	ret->dark = next;
	return 0;
}

static void release_slice(struct slice *s)
{
	free(s->memory);
	free(s->flat);
	free(s->dead);
}

int parallel_flat_lines(const struct parallel_frames *f, const struct parallel_scan *scan, int k, const float *values,
			float *ret_lines, struct parallel_flat_report *report, struct err *err)
{
	size_t n_radial = (size_t)scan->n_radial, n_dead, n_dark = 0, lit[2];
	int *frame_of = malloc((size_t)scan->n_angles * sizeof(*frame_of)), bad = scan->n_angles, view = 0, frame = 0;
	struct slice s;
	int r = make_slice(f, n_radial, &s, err);

	if (r == 0 && !frame_of)
		r = err_set(err, ENOMEM, "no memory for %d angles", scan->n_angles);
	if (r < 0)
		goto out;
	for (int i = 0; i < f->n_runs; frame += f->run[i++].n)
		for (int j = 0; f->run[i].kind == PARALLEL_FRAME_VIEW && j < f->run[i].n; j++)
			frame_of[view++] = frame + j;
	take_means(f, values, &s);
	for (size_t t = 0; t < n_radial; t++) {
		s.memory[t] = INFINITY;
		for (int i = 0; i < s.n_flats; i++)
			s.memory[t] = isfinite(s.flat[i].mean[t]) ? fmin(s.memory[t], s.flat[i].mean[t]) : 0;
	}
	n_dead = mark_dead(&s, s.memory, lit);
	if (n_dead == n_radial)
		r = err_set(err, EBADMSG, "slice %d: its flat fields have no light", k);
	else if (2 * lit[0] > lit[1])
		r = err_set(
			err, EBADMSG,
			"slice %d: the flat fields of %zu of %zu detector bins are unlike those of their neighbours: another order of "
			"the data than [slice][frame][radial bin], or other frames are flat fields",
			k, lit[0], lit[1]);
	if (r < 0)
		goto out;
#pragma omp parallel for schedule(static) reduction(+ : n_dark) reduction(min : bad)
	for (int a = 0; a < scan->n_angles; a++) {
		int dark =
			convert_view(&s, frame_of[a], values + (size_t)frame_of[a] * n_radial, ret_lines + (size_t)a * n_radial);

		n_dark += dark > 0 ? (size_t)dark : 0;
		bad = dark < 0 && a < bad ? a : bad;
	}
	if (bad < scan->n_angles) {
		r = err_set(err, EBADMSG, "slice %d: frame %d has a value that is not finite", k, frame_of[bad]);
		goto out;
	}
	report->bins += n_radial;
	report->values += n_radial * (size_t)scan->n_angles;
	report->dead += n_dead;
	report->dark += n_dark;
	report->n_flat = count_frames(f, PARALLEL_FRAME_FLAT);
	report->n_dark = count_frames(f, PARALLEL_FRAME_DARK);
out:
	free(frame_of);
	release_slice(&s);
	return r;
}
