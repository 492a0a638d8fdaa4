/* SPDX-License-Identifier: Apache-2.0 */
/* node/sinogram/sinogram_list.c: the events of each time frame, from memory and from a source that is read again. */
#include "node/sinogram/sinogram_list_internal.h"
#include "tests/test.h"

#define EVENTS 200000 /* several pieces */

/* Event i is at i / 100 ms and has the detectors i and i + 1. */
struct source {
	size_t at, n;
	uint64_t dead;
	int rewinds;
	size_t fail_at; /* 0: never */
};

static int rewind_source(void *ctx, struct err *err)
{
	struct source *s = ctx;

	(void)err;
	s->at = 0;
	s->dead = 3;
	s->rewinds++;
	return 0;
}

static int read_source(void *ctx, struct event *ret, uint32_t *ret_ms, size_t most, size_t *ret_n, struct err *err)
{
	struct source *s = ctx;
	size_t n = s->n - s->at < most ? s->n - s->at : most;

	if (s->fail_at > 0 && s->at >= s->fail_at)
		return err_set(err, EBADMSG, "byte %zu", s->at);
	for (size_t i = 0; i < n; i++, s->at++) {
		ret[i] = (struct event){{(int32_t)s->at, (int32_t)s->at + 1}, 0, 0};
		ret_ms[i] = (uint32_t)(s->at / 100);
	}
	*ret_n = n;
	return 0;
}

static void no_free(void *ctx)
{
	(void)ctx;
}

static struct sinogram_list *make(struct source *s, const struct pet_images *frames)
{
	struct sinogram_list *l = list_new(frames, NULL);

	assert_non_null(l);
	l->source = (struct list_source){s, rewind_source, read_source, NULL, no_free};
	l->dead = &s->dead;
	return l;
}

/* Check that a frame delivers the events first .. first + n - 1, twice. */
static void check_frame(struct sinogram_list *l, int frame, size_t first, size_t n)
{
	struct event *e = malloc(1000 * sizeof(*e));

	assert_non_null(e);
	list_choose_frame(l, frame);
	assert_int_equal(l->data.n_events, n);
	for (int pass = 0; pass < 2; pass++) {
		size_t at = 0, got = 1;

		assert_int_equal(l->data.events.rewind(l->data.events.ctx, NULL), 0);
		while (got > 0) {
			assert_int_equal(l->data.events.read(l->data.events.ctx, e, 1000, &got, NULL), 0);
			for (size_t i = 0; i < got; i++, at++)
				assert_int_equal(e[i].detector[0], first + at);
		}
		assert_int_equal(at, n);
	}
	free(e);
}

TEST(delivers_frames)
{
	/* 0.1 s, a gap, 0.5 s, an empty frame, 1 s that end with the events */
	struct pet_images frames = {.of = PET_FRAMES,
				    .n = 4,
				    .image = {{{0, 100}}, {{300, 800}}, {{5000, 6000}}, {{6000, 7000}}}},
			  none = {0};

	for (int kept = 0; kept < 2; kept++) {
		struct source s = {.n = EVENTS};
		struct sinogram_list *l = make(&s, &frames);

		assert_int_equal(list_load(l, kept ? SIZE_MAX / 2 : 1000, NULL), 0);
		assert_int_equal(l->report.kept, kept);
		assert_int_equal(l->report.used, 60000);
		assert_int_equal(l->report.between, EVENTS - 60000);
		assert_int_equal(l->report.dead, 3);
		check_frame(l, 0, 0, 10000);
		check_frame(l, 1, 30000, 50000);
		check_frame(l, 2, 0, 0);
		check_frame(l, 0, 0, 10000);
		assert_int_equal(s.rewinds, kept ? 1 : 9);
		list_free(l);
		l = make(&s, &none);
		assert_int_equal(list_load(l, kept ? SIZE_MAX / 2 : 1000, NULL), 0);
		check_frame(l, 0, 0, EVENTS);
		list_free(l);
	}
}

TEST(reports_errors)
{
	struct pet_images none = {0};
	struct source s = {.n = EVENTS, .fail_at = 100000};
	struct sinogram_list *l = make(&s, &none);
	struct err err = {0};

	assert_error(list_load(l, SIZE_MAX / 2, &err), &err, EBADMSG, "byte 131072");
	list_free(l);
	s = (struct source){.n = 0};
	l = make(&s, &none);
	assert_int_equal(list_load(l, SIZE_MAX / 2, &err), 0);
	check_frame(l, 0, 0, 0);
	list_free(l);
}
