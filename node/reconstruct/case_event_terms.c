/* SPDX-License-Identifier: Apache-2.0 */
/* case_event_terms.c - see node/reconstruct/case_event_terms.h. */
#include "node/reconstruct/case_event_terms.h"

#include <errno.h>
#include <stdlib.h>

#define PIECE ((size_t)1 << 16) /* events */
#define SHARE ((size_t)1 << 12) /* events of a piece that a thread takes at a time */
#define NOTHING 1e20f		/* background of an event whose bin has the factor 0: no activity explains it */

size_t case_event_terms_bytes(const struct sinogram *s)
{
	const struct michelogram *m = sinogram_list_bins(s);

	return michelogram_bins(m) * sizeof(float);
}

/* Return b / m of an event. In no bin, it does not meet the field of view. */
static float background_of(const struct case_event_terms *t, const struct michelogram *m, const struct event *e)
{
	struct michelogram_bin at;
	size_t bin;
	float b = 0, factor;
	int k;

	if (!sinogram_list_bin(t->s, e, &at, &k))
		return 0;
	bin = (size_t)at.angle * (size_t)m->n_radial + (size_t)at.radial;
	factor = t->factors[(size_t)at.plane * michelogram_plane_bins(m) + bin];
	for (int i = 0; i < t->terms->n_backgrounds; i++)
		b += t->terms->background[i].at(t->terms->background[i].ctx, (size_t)k, (size_t)at.plane, bin);
	return factor > 0 && b < NOTHING * factor ? b / factor : NOTHING;
}

static int rewind_events(void *ctx, struct err *err)
{
	const struct case_event_terms *t = ctx;
	const struct pet_list_reader *from = &sinogram_list_data(t->s)->events;

	return from->rewind(from->ctx, err);
}

/* Give the background to the events of a part of the piece. */
static void add_backgrounds(void *ctx, size_t part)
{
	struct case_event_terms *t = ctx;
	const struct michelogram *m = sinogram_list_bins(t->s);
	size_t end = t->n - part * SHARE < SHARE ? t->n : (part + 1) * SHARE;

	for (size_t i = part * SHARE; i < end; i++)
		t->piece[i].add = background_of(t, m, &t->piece[i]);
}

static int read_events(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	struct case_event_terms *t = ctx;
	const struct pet_list_reader *from = &sinogram_list_data(t->s)->events;
	int rc = from->read(from->ctx, ret, most, ret_n, err);

	if (rc < 0 || t->terms->n_backgrounds == 0)
		return rc;
	t->piece = ret;
	t->n = *ret_n;
	thread_pool_run(t->pool, (t->n + SHARE - 1) / SHARE, add_backgrounds, t);
	return 0;
}

static void make_factors(void *ctx, size_t plane)
{
	struct case_event_terms *t = ctx;
	float *to = t->factors + plane * michelogram_plane_bins(sinogram_list_bins(t->s));

	sinogram_list_factors(t->s, plane, to);
	for (int i = 0; i < t->terms->n_factors; i++)
		t->terms->factor[i].multiply(t->terms->factor[i].ctx, plane, to);
}

int case_event_terms_make(struct case_event_terms *t, const struct sinogram *s, const struct case_terms *terms, double background,
			  struct err *err)
{
	int rc = t->pool ? 0 : thread_pool_create(threads_available(), &t->pool, err);

	if (rc < 0)
		return rc;
	if (!t->factors)
		t->factors = malloc(case_event_terms_bytes(s));
	if (!t->factors)
		return err_set(err, ENOMEM, "no memory for the factors of %zu bins", case_event_terms_bytes(s) / sizeof(float));
	t->s = s;
	t->terms = terms;
	thread_pool_run(t->pool, michelogram_planes(sinogram_list_bins(s)), make_factors, t);
	t->list = *sinogram_list_data(s);
	t->list.factors = t->factors;
	t->list.events = (struct pet_list_reader){t, rewind_events, read_events};
	t->list.with_background = terms->n_backgrounds > 0;
	t->list.background = background;
	return 0;
}

const struct pet_list *case_event_terms_list(const struct case_event_terms *t, const struct sinogram *s)
{
	return t->terms ? &t->list : sinogram_list_data(s);
}

/* Add events to the profiles of their planes. */
static void add_profiles(const struct case_event_terms *t, const struct event *events, size_t n)
{
	const struct case_profiles *to = t->terms->profiles;
	size_t n_radial = (size_t)sinogram_list_bins(t->s)->n_radial;
	struct michelogram_bin at;
	int k;

	for (size_t i = 0; i < n; i++) {
		if (!sinogram_list_bin(t->s, &events[i], &at, &k))
			continue;
		for (int p = 0; p < to->n; p++)
			if (to->plane[p] == (size_t)at.plane)
				to->counts[(size_t)p * n_radial + (size_t)at.radial]++;
	}
}

int case_event_terms_profiles(const struct case_event_terms *t, struct err *err)
{
	const struct pet_list_reader *from;
	struct event *piece;
	size_t n = 1;
	int rc;

	if (!t->terms || !t->terms->profiles)
		return 0;
	from = &sinogram_list_data(t->s)->events;
	piece = malloc(PIECE * sizeof(*piece));
	rc = piece ? from->rewind(from->ctx, err) : err_set(err, ENOMEM, "no memory to read events");
	while (rc == 0 && n > 0) {
		rc = from->read(from->ctx, piece, PIECE, &n, err);
		if (rc == 0)
			add_profiles(t, piece, n);
	}
	free(piece);
	return rc;
}

void case_event_terms_clear(struct case_event_terms *t)
{
	free(t->factors);
	thread_pool_free(t->pool);
	*t = (struct case_event_terms){0};
}
