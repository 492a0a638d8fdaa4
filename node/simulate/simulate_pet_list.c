/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_pet_list.c - from the counts of bins to events in time blocks, for PETSIRD.
 *
 * The time block of an event depends on the seed, its bin and its number in the bin only. All bins are visited twice: to count
 * the events of each block, and to put them into place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "node/format/petsird_write.h"
#include "node/simulate/simulate_pet.h"
#include "recon/phantom/poisson.h"

#define BLOCK 1000u		 /* ms: length of a time block */
#define BLOCKS 600		 /* of the whole scan, SIMULATE_PET_DURATION */
#define DELAYED_SEED 0x64656c61u /* the streams of delayed coincidences are not those of the noise */
#define TIME_SEED 0x74696d65u

struct list {
	const struct simulate_pet *s;
	const float *data;
	double background;
	struct michelogram_index index;
	size_t at[BLOCKS + 1];	      /* first pass: number of events; second: where the next one of the block is stored */
	struct petsird_event *events; /* NULL: first pass */
};

/* Add `count` events of a bin. */
static void add_events(struct list *x, size_t bin, uint64_t count, const struct petsird_event *event)
{
	uint64_t stream = poisson_stream(x->s->o.seed ^ (event->delayed ? TIME_SEED + 1 : TIME_SEED), bin);

	for (uint64_t i = 0; i < count; i++) {
		size_t block = (size_t)(poisson_uniform(&stream) * BLOCKS);

		if (x->events)
			x->events[x->at[block]] = *event;
		x->at[block]++;
	}
}

/* Add the events of one bin. */
static void add_bin(struct list *x, int k, int plane, int angle, int radial)
{
	const struct michelogram *m = &x->s->m;
	size_t bin = (((size_t)k * (size_t)x->index.n_planes + (size_t)plane) * (size_t)m->n_angles + (size_t)angle) *
			     (size_t)m->n_radial +
		     (size_t)radial;
	struct petsird_event event =
		petsird_event_of(m, &x->index, k, &(struct michelogram_bin){.plane = plane, .angle = angle, .radial = radial});

	add_events(x, bin, (uint64_t)llroundf(x->data[bin]), &event);
	event.delayed = true;
	if (x->background > 0 && scan_reach(x->s->scan, radial) > 0)
		add_events(x, bin, (uint64_t)poisson_draw(x->background, poisson_stream(x->s->o.seed ^ DELAYED_SEED, bin)),
			   &event);
}

static void add_bins(struct list *x)
{
	const struct michelogram *m = &x->s->m;

	for (int k = 0; k < (m->tof.n > 0 ? m->tof.n : 1); k++)
		for (int plane = 0; plane < x->index.n_planes; plane++)
			for (int i = 0; i < m->n_angles * m->n_radial; i++)
				add_bin(x, k, plane, i / m->n_radial, i % m->n_radial);
}

/* Count and store all events; afterwards block b is events[start[b]] up to events[start[b + 1]]. */
static int collect_events(struct list *x, size_t start[BLOCKS + 1], struct err *err)
{
	size_t n = 0;

	add_bins(x);
	for (size_t b = 0; b <= BLOCKS; b++) {
		start[b] = n;
		n += b < BLOCKS ? x->at[b] : 0;
		x->at[b] = start[b];
	}
	x->events = malloc((n ? n : 1) * sizeof(*x->events));
	if (!x->events)
		return err_set(err, ENOMEM, "no memory for %zu events", n);
	add_bins(x);
	return 0;
}

static int write_events(const struct list *x, const size_t *start, const char *path, struct err *err)
{
	struct petsird_scan scan = {.model = x->s->model, .m = &x->s->m, .start = SIMULATE_PET_BEGIN};
	struct petsird_writer *w = NULL;
	int rc = petsird_create(path, &scan, &w, err);

	for (size_t b = 0; rc == 0 && b < BLOCKS; b++)
		rc = petsird_write(w, (uint32_t)b * BLOCK, (uint32_t)(b + 1) * BLOCK, x->events + start[b],
				   start[b + 1] - start[b], err);
	if (rc == 0)
		return petsird_finish(w, err);
	petsird_abort(w);
	return rc;
}

int simulate_pet_list(const struct simulate_pet *s, const float *data, double background, const char *path, struct err *err)
{
	struct list *x = calloc(1, sizeof(*x));
	size_t start[BLOCKS + 1];
	int rc;

	if (!x)
		return err_set(err, ENOMEM, "no memory for a list of events");
	x->s = s;
	x->data = data;
	x->background = background;
	rc = michelogram_index_init(&s->m, &x->index, err);
	if (rc == 0)
		rc = collect_events(x, start, err);
	if (rc == 0)
		rc = write_events(x, start, path, err);
	free(x->events);
	free(x);
	return rc;
}
