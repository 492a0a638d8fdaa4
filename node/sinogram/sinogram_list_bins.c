/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_list_bins.c - the bins of single events, for corrections that are computed: which bin an event is in, and how many are
 * in each. A bin of a list ascends along TOF towards the first end of its ray, an event towards its first detector. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/sinogram/sinogram_list_internal.h"

#define PIECE ((size_t)1 << 16) /* events */

int list_set_bins(struct sinogram_list *l, const uint16_t (*place)[2], struct err *err)
{
	l->bins = *l->data.michelogram;
	l->bins.tof = l->data.tof;
	l->place = place;
	return michelogram_index_init(&l->bins, &l->index, err);
}

const struct michelogram *sinogram_list_bins(const struct sinogram *s)
{
	return s->list->bins.n_angles > 0 ? &s->list->bins : NULL;
}

static size_t bin_count(const struct sinogram_list *l)
{
	return michelogram_planes(&l->bins) * (size_t)l->bins.n_angles * (size_t)l->bins.n_radial;
}

static bool find_bin(const struct sinogram_list *l, const struct event *e, struct michelogram_bin *ret)
{
	struct michelogram_ends ends;

	for (int i = 0; i < 2; i++) {
		ends.ring[i] = l->place ? l->place[e->detector[i]][0] : e->detector[i] / l->index.detectors;
		ends.crystal[i] = l->place ? l->place[e->detector[i]][1] : e->detector[i] % l->index.detectors;
	}
	return michelogram_bin_of(&l->index, &ends, ret);
}

bool sinogram_list_bin(const struct sinogram *s, const struct event *e, struct michelogram_bin *ret, int *ret_k)
{
	const struct sinogram_list *l = s->list;

	if (!find_bin(l, e, ret))
		return false;
	*ret_k = l->bins.tof.n == 0 ? 0 : ret->exchanged ? l->bins.tof.n - 1 - e->tof : e->tof;
	return true;
}

/* Add events to their bins. ms: of each, only those of the chosen frame count; NULL: all. */
static void add_events(struct sinogram_list *l, const struct event *events, const uint32_t *ms, size_t n, uint32_t *counts)
{
	struct michelogram_bin bin;

	for (size_t i = 0; i < n; i++)
		if ((!ms || pet_images_find(l->frames, ms[i], &l->near) == l->frame) && find_bin(l, &events[i], &bin))
			counts[((size_t)bin.plane * (size_t)l->bins.n_angles + (size_t)bin.angle) * (size_t)l->bins.n_radial +
			       (size_t)bin.radial]++;
}

void list_to_floats(uint32_t *counts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float value = (float)counts[i];

		memcpy(&counts[i], &value, sizeof(value));
	}
}

int sinogram_list_count(const struct sinogram *s, float *ret, struct err *err)
{
	const struct pet_list_reader *from = &s->list->data.events;
	struct event *piece = malloc(PIECE * sizeof(*piece));
	uint32_t *counts = (uint32_t *)(void *)ret;
	size_t n = 1;
	int rc = piece ? from->rewind(from->ctx, err) : err_set(err, ENOMEM, "no memory to read events");

	memset(ret, 0, bin_count(s->list) * sizeof(*ret));
	while (rc == 0 && n > 0) {
		rc = from->read(from->ctx, piece, PIECE, &n, err);
		if (rc == 0)
			add_events(s->list, piece, NULL, n, counts);
	}
	free(piece);
	list_to_floats(counts, bin_count(s->list));
	return rc;
}

bool sinogram_list_has_delayeds(const struct sinogram *s)
{
	return s->list && s->list->source.choose;
}

int sinogram_list_delayeds(const struct sinogram *s, float *ret, struct err *err)
{
	struct sinogram_list *l = s->list;
	struct event *piece = malloc(PIECE * sizeof(*piece));
	uint32_t *counts = (uint32_t *)(void *)ret;
	size_t n = 1;
	int rc;

	memset(ret, 0, bin_count(l) * sizeof(*ret));
	l->source.choose(l->source.ctx, true);
	l->near = (struct pet_images_near){0};
	rc = piece ? l->source.rewind(l->source.ctx, err) : err_set(err, ENOMEM, "no memory to read events");
	while (rc == 0 && n > 0) {
		rc = l->source.read(l->source.ctx, piece, l->ms, PIECE, &n, err);
		if (rc == 0)
			add_events(l, piece, l->ms, n, counts);
	}
	l->source.choose(l->source.ctx, false);
	free(piece);
	list_to_floats(counts, bin_count(l));
	return rc;
}

void sinogram_list_factors(const struct sinogram *s, size_t plane, float *ret)
{
	const struct pet_list *data = &s->list->data;
	const struct michelogram *m = &s->list->bins;
	size_t n_radial = (size_t)m->n_radial, n = (size_t)m->n_angles * n_radial;

	for (size_t i = 0; i < n; i++)
		ret[i] = data->factors ? data->factors[plane * n + i] : 1;
	for (int angle = 0; !data->factors && data->factor_row && angle < m->n_angles; angle++)
		data->factor_row(data->factor_ctx, (int)plane, angle, 0, 1, ret + (size_t)angle * n_radial, 1);
}
