/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr_list.c - the prompts of the list mode of a Siemens mMR as single events. The LORs are the bins of the michelogram
 * of the scanner's configuration, with the efficiencies of the normalisation: gaps have the factor 0 and are no LORs. */
#include <errno.h>

#include "node/sinogram/sinogram_list_internal.h"
#include "node/sinogram/sinogram_mmr_internal.h"

#define PIECE ((size_t)1 << 16) /* words */

struct mmr_source {
	const struct sinogram *s;
	const struct michelogram *m;
	float *detectors, *factors;
	uint8_t *words;
	struct mmr_event *events; /* [PIECE] */
	uint64_t at, dead;
};

static int rewind_words(void *ctx, struct err *err)
{
	struct mmr_source *x = ctx;

	x->at = x->dead = 0;
	return mmr_list_begin(x->m, &mmr_of(x->s)->prompts.list, err);
}

/* Read the next words; *ret_n: events that are used. */
static int read_piece(struct mmr_source *x, size_t words, struct event *ret, uint32_t *ret_ms, size_t *ret_n, struct err *err)
{
	size_t n = 0, used = 0;
	int rc = sinogram_mmr_read(x->s, SINOGRAM_MMR_LIST, 4 * x->at, x->words, 4 * words, err);

	if (rc == 0)
		rc = mmr_list_events(&mmr_of(x->s)->prompts.list, x->words, words, x->events, &n, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct mmr_event *e = &x->events[i];

		if (!(x->factors[e->bin] > 0)) {
			x->dead++;
			continue;
		}
		ret_ms[used] = e->ms;
		ret[used++] = (struct event){{e->detector[0], e->detector[1]}, 0, 0};
	}
	x->at += words;
	*ret_n = used;
	return rc;
}

static int read_words(void *ctx, struct event *ret, uint32_t *ret_ms, size_t most, size_t *ret_n, struct err *err)
{
	struct mmr_source *x = ctx;
	uint64_t all = mmr_of(x->s)->list.words;
	int rc = 0;

	*ret_n = 0;
	while (rc == 0 && x->at < all && *ret_n == 0) {
		size_t words = most < PIECE ? most : PIECE;

		words = all - x->at < words ? (size_t)(all - x->at) : words;
		rc = read_piece(x, words, ret, ret_ms, ret_n, err);
	}
	return rc;
}

static void free_source(void *ctx)
{
	struct mmr_source *x = ctx;

	free(x->detectors);
	free(x->factors);
	free(x->words);
	free(x->events);
	free(x);
}

static int prepare_source(struct mmr_source *x, struct pet_list *data, struct err *err)
{
	size_t n = (size_t)MMR_RINGS * MMR_DETECTORS;
	int rc;

	x->detectors = malloc(3 * n * sizeof(*x->detectors));
	x->words = malloc(4 * PIECE);
	x->events = malloc(PIECE * sizeof(*x->events));
	if (!x->detectors || !x->words || !x->events)
		return err_set(err, ENOMEM, "no memory to read events");
	rc = pet_list_detectors(x->m, x->detectors, err);
	if (rc == 0)
		rc = sinogram_mmr_efficiencies(x->s, &x->factors, err);
	data->detectors = x->detectors;
	data->n_detectors = n;
	data->michelogram = x->m;
	data->factors = x->factors;
	data->slice = 0.5 * x->m->scanner.ring_spacing;
	return rc;
}

/* The caller frees s->list with the acquisition, also after an error. */
int sinogram_mmr_open_events(struct sinogram *s, struct err *err)
{
	struct mmr_source *x = calloc(1, sizeof(*x));
	int rc;

	s->list = x ? list_new(&s->images, err) : NULL;
	if (!s->list) {
		free(x);
		return err_set(err, ENOMEM, "no memory for a list of events");
	}
	*x = (struct mmr_source){.s = s, .m = &s->part[SINOGRAM_EMISSION].header.m};
	s->list->source = (struct list_source){x, rewind_words, read_words, NULL, free_source};
	s->list->dead = &x->dead;
	rc = prepare_source(x, &s->list->data, err);
	if (rc == 0)
		rc = list_set_bins(s->list, NULL, err);
	if (rc == 0)
		rc = list_load(s->list, list_memory(), err);
	if (rc == 0 && s->list->report.used == 0)
		rc = err_set(err, EBADMSG, "list mode: %llu prompts, none of which is used",
			     (unsigned long long)mmr_of(s)->prompts.list.report.prompts);
	return rc;
}
