/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_list.c - what all sources of single events share: time frames, and the events that stay in memory. */
#include "node/sinogram/sinogram_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/device_names.h"
#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"
#include "node/sinogram/sinogram_list_internal.h"

#define PIECE ((size_t)1 << 17) /* events */
#define MEMORY_PART 0.25	/* of the memory that this process may use */

static size_t first_of(const struct sinogram_list *l, int frame)
{
	size_t first = 0;

	for (int i = 0; i < frame; i++)
		first += l->count[i];
	return first;
}

static int rewind_events(void *ctx, struct err *err)
{
	struct sinogram_list *l = ctx;

	l->at = first_of(l, l->frame);
	l->near = (struct pet_images_near){0};
	return l->kept ? 0 : l->source.rewind(l->source.ctx, err);
}

/* Return the image of event i of a piece; -1: none. image: that of the event before it. */
static int image_of(struct sinogram_list *l, size_t i, int image)
{
	return i > 0 && l->ms[i] == l->ms[i - 1] ? image : pet_images_find(l->frames, l->ms[i], &l->near);
}

/* Read events of the chosen frame from the source. */
static int read_source(struct sinogram_list *l, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	size_t n = 1, used = 0;
	int rc = 0, image = 0;

	while (rc == 0 && n > 0 && used == 0) {
		rc = l->source.read(l->source.ctx, ret, l->ms, most < PIECE ? most : PIECE, &n, err);
		for (size_t i = 0; rc == 0 && i < n; i++) {
			image = image_of(l, i, image);
			if (image == l->frame)
				ret[used++] = ret[i];
		}
	}
	*ret_n = used;
	return rc;
}

static int read_events(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	struct sinogram_list *l = ctx;
	size_t left = first_of(l, l->frame) + l->count[l->frame] - l->at;

	if (!l->kept)
		return read_source(l, ret, most, ret_n, err);
	*ret_n = left < most ? left : most;
	memcpy(ret, l->kept + l->at, *ret_n * sizeof(*ret));
	l->at += *ret_n;
	return 0;
}

struct sinogram_list *list_new(const struct pet_images *frames, struct err *err)
{
	struct sinogram_list *l = calloc(1, sizeof(*l));

	if (l)
		l->count = calloc((size_t)frames->n + 1, sizeof(*l->count));
	if (l)
		l->ms = malloc(PIECE * sizeof(*l->ms));
	if (!l || !l->count || !l->ms) {
		err_set(err, ENOMEM, "no memory for a list of events");
		return list_free(l);
	}
	l->frames = frames;
	l->data.events = (struct pet_list_reader){l, rewind_events, read_events};
	return l;
}

struct sinogram_list *list_free(struct sinogram_list *l)
{
	if (!l)
		return NULL;
	if (l->source.free)
		l->source.free(l->source.ctx);
	free(l->count);
	free(l->ms);
	free(l->kept);
	free(l);
	return NULL;
}

static void keep_none(struct sinogram_list *l)
{
	free(l->kept);
	l->kept = NULL;
}

/* Have room for a piece of events behind those that are kept; without memory, keep none. */
static void make_room(struct sinogram_list *l)
{
	struct event *more;
	size_t room = l->room;

	while (room < l->n_kept + PIECE)
		room *= 2;
	if (!l->kept || room == l->room)
		return;
	more = realloc(l->kept, room * sizeof(*more));
	if (!more) {
		keep_none(l);
		return;
	}
	l->kept = more;
	l->room = room;
}

/* Count the events of a piece, and leave those of the frames in it. Returns their number. */
static size_t take_events(struct sinogram_list *l, struct event *piece, size_t n)
{
	size_t used = 0;
	int image = 0;

	for (size_t i = 0; i < n; i++) {
		image = image_of(l, i, image);
		if (image < 0) {
			l->report.between++;
			continue;
		}
		l->count[image]++;
		if (used < i)
			piece[used] = piece[i];
		used++;
	}
	l->report.used += used;
	return used;
}

/* Read pieces to where they are kept or, above the limit and without memory, to one place. */
static int load_pieces(struct sinogram_list *l, size_t most, struct event **piece, struct err *err)
{
	size_t n = 1;
	int rc = 0;

	while (rc == 0 && n > 0) {
		struct event *to;

		make_room(l);
		if (!l->kept && !*piece && !(*piece = malloc(PIECE * sizeof(**piece))))
			return err_set(err, ENOMEM, "no memory to read events");
		to = l->kept ? l->kept + l->n_kept : *piece;
		rc = l->source.read(l->source.ctx, to, l->ms, PIECE, &n, err);
		if (rc == 0)
			l->n_kept += take_events(l, to, n);
		if (l->n_kept > most / sizeof(*l->kept))
			keep_none(l);
	}
	return rc;
}

int list_load(struct sinogram_list *l, size_t most, struct err *err)
{
	struct event *piece = NULL;
	double begun = clock_seconds();
	int rc = l->source.rewind(l->source.ctx, err);

	l->room = PIECE;
	l->kept = malloc(l->room * sizeof(*l->kept));
	if (rc == 0)
		rc = load_pieces(l, most, &piece, err);
	free(piece);
	l->report.dead = *l->dead;
	l->report.kept = l->kept != NULL;
	l->report.bytes = l->kept ? l->n_kept * sizeof(*l->kept) : 0;
	l->report.seconds_read = clock_seconds() - begun;
	list_choose_frame(l, 0);
	return rc;
}

size_t list_memory(void)
{
	return (size_t)(MEMORY_PART * device_names_memory());
}

void list_choose_frame(struct sinogram_list *l, int frame)
{
	l->frame = frame;
	l->data.n_events = l->count[frame];
}

const struct pet_list *sinogram_list_data(const struct sinogram *s)
{
	return &s->list->data;
}

const struct sinogram_list_report *sinogram_list_report(const struct sinogram *s)
{
	return &s->list->report;
}

const char *sinogram_list_geometry(const struct sinogram *s)
{
	return s->list->geometry;
}

void list_missing(int made, char *ret, size_t size)
{
	static const struct {
		enum pet_correction correction;
		const char *name;
	} all[] = {{PET_CORRECT_RANDOMS, "randoms"},
		   {PET_CORRECT_SCATTER, "scatter"},
		   {PET_CORRECT_ATTENUATION, "attenuation"},
		   {PET_CORRECT_DEAD_TIME, "dead time"}};
	const char *last = NULL;
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (made & all[i].correction)
			continue;
		if (last)
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", last);
		last = all[i].name;
	}
	if (last)
		snprintf(ret + n, size - n, "%s%s", n > 0 ? " and " : "", last);
}

int sinogram_list_open(struct sinogram *s, struct err *err)
{
	if (!s->source->open_events)
		return err_set(err, ENOTSUP,
			       "the protocol reconstructs list mode event by event (list_mode), but the case has sinograms");
	if (s->images.of == PET_GATES)
		return err_set(err, ENOTSUP, "gates are not reconstructed event by event: use a protocol with list_mode = false");
	return s->source->open_events(s, err);
}

void pet_source_note(const struct sinogram *s, char *ret, size_t size)
{
	const struct sinogram_list_report *r = s->list ? &s->list->report : NULL;

	*ret = '\0';
	if (s->source->note)
		s->source->note(s, ret, size);
	if (r && r->dead)
		sentence_add(ret, size, "%llu prompt%s of detectors that are not in coincidence (efficiency 0) %s not used.",
			     (unsigned long long)r->dead, plural(r->dead), r->dead == 1 ? "is" : "are");
	if (r && r->between)
		sentence_add(ret, size, "%llu prompts are in no time frame.", (unsigned long long)r->between);
}
