/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr.c - raw data of a Siemens mMR as another source of a PET acquisition (sinogram_mmr_internal.h). EMISSION: the
 * prompts, DELAYEDS: the delayed coincidences, counted when the role is read. MULTIPLICATIVE: the detection efficiency of each bin,
 * 0 in the gaps; it does not contain attenuation. Both are computed in the michelogram of the scanner's configuration (span, largest
 * ring difference), so that memory does not depend on the length of the list. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/sinogram/sinogram_list_internal.h"
#include "node/sinogram/sinogram_mmr_internal.h"
#include "recon/pet/michelogram_pairs.h"

#define PIECE ((size_t)1 << 20) /* bytes per read: whole words */

/* Prepare to count the events of a list into the planes of a file. */
static int begin_list(const struct michelogram *m, struct mmr_list *l, struct err *err)
{
	int rc = mmr_list_begin(m, l, err);

	for (int i = 0; rc == 0 && i < MMR_PLANES; i++)
		if (l->plane[i] >= 0)
			l->plane[i] = (int32_t)interfile_place(m, (size_t)l->plane[i]);
	return rc;
}

/* Prepare to count the events of the chosen frame, behind the preceding one, or from the beginning of the list; those of a gate
 * are in the whole list. */
static int begin_frame(const struct sinogram *s, struct counting *c, struct err *err)
{
	int frame = s->chosen, rc = 0;

	if (frame == 0 || frame != c->next || s->images.of == PET_GATES) {
		rc = begin_list(&s->part[SINOGRAM_EMISSION].header.m, &c->list, err);
		c->at = 0;
	}
	c->list.delayed = c == &mmr_of(s)->delayeds;
	if (rc == 0 && s->images.of == PET_GATES)
		mmr_list_choose_gate(&c->list, &s->images.gates, frame);
	if (s->images.of == PET_FRAMES)
		c->list.frame = s->images.image[frame].time;
	c->next = frame + 1;
	return rc;
}

/* Count the events up to the end of the frame; with the last frame read the rest of the list, too. */
static int count_events(const struct sinogram *s, struct counting *c, uint8_t *buffer, uint32_t *counts, struct err *err)
{
	uint64_t n = 4 * mmr_of(s)->list.words, *at = &c->at;
	bool to_end = s->images.of != PET_FRAMES || s->chosen + 1 >= s->images.n, stop = false;
	struct mmr_list *list = &c->list;
	int rc = begin_frame(s, c, err);

	while (rc == 0 && !stop && *at < n) {
		size_t piece = n - *at < PIECE ? (size_t)(n - *at) : PIECE, words = piece / 4;

		rc = sinogram_mmr_read(s, SINOGRAM_MMR_LIST, *at, buffer, piece, err);
		if (rc == 0 && !to_end)
			words = mmr_list_in_frame(list, buffer, piece / 4);
		if (rc == 0)
			rc = mmr_list_add(list, buffer, words, counts, err);
		*at += 4 * words;
		stop = words < piece / 4;
	}
	if (rc < 0)
		c->next = 0;
	return rc;
}

/* Read the words of the list, in pieces of n; an error of use() ends it. */
static int read_words(const struct sinogram *s, int (*use)(void *ctx, const uint8_t *words, size_t n, struct err *err), void *ctx,
		      struct err *err)
{
	uint64_t n = 4 * mmr_of(s)->list.words;
	uint8_t *buffer = malloc(PIECE);
	int rc = buffer ? 0 : err_set(err, ENOMEM, "no memory to read a list");

	for (uint64_t at = 0; rc == 0 && at < n; at += PIECE) {
		size_t piece = n - at < PIECE ? (size_t)(n - at) : PIECE;

		rc = sinogram_mmr_read(s, SINOGRAM_MMR_LIST, at, buffer, piece, err);
		if (rc == 0)
			rc = use(ctx, buffer, piece / 4, err);
	}
	free(buffer);
	return rc;
}

struct entries { /* of read_entries() */
	int (*use)(void *ctx, const struct pet_entry *e, struct err *err);
	void *ctx;
};

static int use_words(void *ctx, const uint8_t *words, size_t n, struct err *err)
{
	const struct entries *to = ctx;
	struct pet_entry e;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = mmr_word_read(words, i, &e, err);
		if (rc == 0 && e.type != PET_ENTRY_OTHER)
			rc = to->use(to->ctx, &e, err);
	}
	return rc;
}

static int read_entries(const struct sinogram *s, int (*use)(void *ctx, const struct pet_entry *e, struct err *err), void *ctx,
			struct err *err)
{
	return read_words(s, use_words, &(struct entries){use, ctx}, err);
}

static const struct pet_recording recording = {mmr_is_gap, mmr_event_segments, read_entries};

static int add_marks(void *ctx, const uint8_t *words, size_t n, struct err *err)
{
	return mmr_marks_add(ctx, words, n, err);
}

static int find_marks(const struct sinogram *s, const struct pet_gates *g, struct pet_marks *ret, struct err *err)
{
	enum pet_signal signal = g->signal;
	struct mmr_marks m = {.signal = signal, .first = -1, .last = -1};
	int rc;

	if (signal == PET_SIGNAL_TABLE)
		return pet_marks_copy(&g->marks, ret, err);
	if (signal != PET_SIGNAL_ECG && signal != PET_SIGNAL_RESP)
		return err_set(err, ENOTSUP, "time marks: no words of an mMR are known for the signal \"%s\"; known: ecg, resp",
			       pet_signal_name(signal));
	rc = read_words(s, add_marks, &m, err);
	if (rc == 0 && m.marks.n == 0)
		rc = err_set(err, ENOTSUP,
			     "time marks: the list mode has no gating words of the signal \"%s\"; give a table of time "
			     "marks",
			     pet_signal_name(signal));
	if (rc < 0)
		pet_marks_clear(&m.marks);
	else
		*ret = m.marks;
	return rc;
}

static int read_norm(const struct sinogram *s, struct mmr_norm **ret, struct err *err)
{
	uint8_t *buffer = malloc(MMR_NORM_BYTES);
	int rc = buffer ? sinogram_mmr_read(s, SINOGRAM_MMR_NORM, 0, buffer, MMR_NORM_BYTES, err)
			: err_set(err, ENOMEM, "no memory for a normalisation");

	if (rc == 0)
		rc = mmr_norm_read(buffer, MMR_NORM_BYTES, ret, err);
	free(buffer);
	return rc;
}

/* Compute the efficiencies of all bins, in the order in memory or in that of a file. */
static int compute_efficiencies(const struct sinogram *s, bool of_file, float *values, struct err *err)
{
	const struct michelogram *m = &s->part[SINOGRAM_MULTIPLICATIVE].header.m;
	struct michelogram_index x;
	struct mmr_norm *norm = NULL;
	int rc = michelogram_index_init(m, &x, err);

	if (rc == 0)
		rc = read_norm(s, &norm, err);
	for (int plane = 0; rc == 0 && plane < x.n_planes; plane++) {
		size_t place = of_file ? interfile_place(m, (size_t)plane) : (size_t)plane;

		mmr_norm_plane(norm, &x, plane, values + place * MMR_PLANE_BINS);
	}
	mmr_norm_free(norm);
	return rc;
}

int sinogram_mmr_efficiencies(const struct sinogram *s, float **ret_values, struct err *err)
{
	uint64_t bytes = s->part[SINOGRAM_MULTIPLICATIVE].bytes;

	*ret_values = malloc(bytes);
	return *ret_values ? compute_efficiencies(s, false, *ret_values, err)
			   : err_set(err, ENOMEM, "no memory for %llu bytes of efficiencies", (unsigned long long)bytes);
}

static int read_role(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err)
{
	uint8_t *bytes = calloc(1, s->part[role].bytes), *buffer = malloc(PIECE);
	int rc;

	if (!bytes || !buffer)
		rc = err_set(err, ENOMEM, "no memory for %llu bytes of %s", (unsigned long long)s->part[role].bytes,
			     sinogram_role_name(role));
	else if (role == SINOGRAM_EMISSION)
		rc = count_events(s, &mmr_of(s)->prompts, buffer, (uint32_t *)(void *)bytes, err);
	else if (role == SINOGRAM_DELAYEDS)
		rc = count_events(s, &mmr_of(s)->delayeds, buffer, (uint32_t *)(void *)bytes, err);
	else
		rc = compute_efficiencies(s, true, (float *)(void *)bytes, err);
	free(buffer);
	if (rc < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return rc;
}

/* ---- dead time ---- */

struct feed { /* of the words of the list, to the singles of each frame */
	struct mmr_singles *singles;
	int n;
};

static int add_singles(void *ctx, const uint8_t *words, size_t n, struct err *err)
{
	const struct feed *feed = ctx;

	(void)err;
	for (int i = 0; i < feed->n; i++)
		mmr_singles_add(&feed->singles[i], words, n);
	return 0;
}

/* Add up the rates of the singles of each time frame, once. */
static int read_singles(const struct sinogram *s, struct err *err)
{
	bool frames = s->images.of == PET_FRAMES;
	struct feed feed = {.n = frames ? s->images.n : 1};
	int rc;

	if (mmr_of(s)->singles)
		return 0;
	feed.singles = calloc((size_t)feed.n, sizeof(*feed.singles));
	if (!feed.singles)
		return err_set(err, ENOMEM, "no memory for singles");
	for (int i = 0; i < feed.n; i++)
		mmr_singles_begin(&feed.singles[i], frames ? &s->images.image[i].time : NULL, mmr_of(s)->list.singles);
	rc = read_words(s, add_singles, &feed, err);
	if (rc == 0)
		mmr_of(s)->singles = feed.singles;
	else
		free(feed.singles);
	return rc;
}

static int find_alive(const struct sinogram *s, int image, double *ret, struct err *err)
{
	struct mmr_norm *norm = NULL;
	int rc = read_singles(s, err);

	if (rc == 0)
		rc = read_norm(s, &norm, err);
	if (rc == 0)
		rc = mmr_norm_alive(norm, &mmr_of(s)->singles[s->images.of == PET_FRAMES ? image : 0], ret, err);
	mmr_norm_free(norm);
	return rc;
}

static void close_mmr(struct sinogram *s)
{
	struct sinogram_mmr *m = s->own;

	for (int t = SINOGRAM_MMR_LIST; m && t <= SINOGRAM_MMR_NORM; t++) {
		if (m->data[t])
			close(m->fd[t]);
		free(m->data[t]);
		free(m->header[t]);
		free(m->source[t]);
	}
	if (m)
		free(m->singles);
	free(m);
}

static void name_files(const struct sinogram *s, char *ret, size_t size)
{
	for (int t = SINOGRAM_MMR_LIST; t <= SINOGRAM_MMR_NORM; t++)
		if (mmr_of(s)->source[t] && !mmr_of(s)->header[t]) /* else s->origin has it */
			snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", *ret ? ", " : "", mmr_of(s)->source[t]);
}

static void write_mmr_note(const struct sinogram *s, char *ret, size_t size)
{
	const struct mmr_list_report *r = &mmr_of(s)->prompts.list.report;
	double seconds = r->marks > 1 ? (double)(r->last - r->first) / 1000 : 0;
	double said = isfinite(s->facts.duration) ? s->facts.duration : mmr_of(s)->list.duration;
	double frames = s->images.of == PET_FRAMES ? (double)s->images.image[s->images.n - 1].time.stop / 1000 : 0;
	bool randoms = s->made & PET_CORRECT_RANDOMS;
	char files[400] = "", missing[80], delayeds[60] = "";

	name_files(s, files, sizeof(files));
	list_missing(s->made, missing, sizeof(missing));
	if (!randoms)
		snprintf(delayeds, sizeof(delayeds), "; %llu delayed event%s not used", (unsigned long long)r->delayeds,
			 plural(r->delayeds));
	snprintf(ret, size, "%s%s%s%s%s%s%s.", s->list ? "Reconstructed event by event" : "Histogram of list mode",
		 files[0] ? " (data in " : "", files, files[0] ? ")" : "", missing[0] ? ": not corrected for " : "", missing,
		 delayeds);
	if (r->outside)
		sentence_add(ret, size, "Prompts beyond the largest ring difference of the scanner's configuration: %llu.",
			     (unsigned long long)r->outside);
	if (r->between)
		sentence_add(ret, size, "%llu prompts are in no %s.", (unsigned long long)r->between,
			     pet_division_name(s->images.of));
	if (seconds > 0 && fabs(seconds - said) > 1 + 0.01 * seconds)
		sentence_add(ret, size, "The time marks cover %.4g s, the header says %.4g s.", seconds, said);
	if (frames > seconds + 1 + 0.01 * seconds)
		sentence_add(ret, size, "The time marks cover %.4g s, the last time frame ends at %.4g s.", seconds, frames);
	sentence_add(ret, size, "%s", INTERFILE_SIEMENS_RINGS);
}

const struct pet_source pet_source_mmr = {
	.objects = "raw data",
	.sop_class = SINOGRAM_SIEMENS_CLASS,
	.is_object = sinogram_mmr_is_object,
	.is_file = sinogram_mmr_is_list_header,
	.parts = sinogram_mmr_parts,
	.describe = sinogram_mmr_describe,
	.open = sinogram_mmr_open,
	.list_mode = true,
	.efficiencies = true,
	.of_images = true,
	.read = read_role,
	.marks = find_marks,
	.open_events = sinogram_mmr_open_events,
	.alive = find_alive,
	.note = write_mmr_note,
	.files = name_files,
	.recording = &recording,
	.close = close_mmr,
};
