/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_import.c - from list mode data to sinograms. The sinograms are in memory, one float per bin; events are read in pieces.
 */
#include "node/sinogram/petsird_import.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/device_names.h"
#include "node/base/folder.h"
#include "node/base/sentence.h"
#include "node/sinogram/petsird_facts_internal.h"
#include "recon/pet/michelogram_pairs.h"

#define PIECE 65536	/* events */
#define MEMORY_PART 0.8 /* of the machine's memory */

struct import {
	const struct petsird_import *o;
	struct petsird *file;
	const struct petsird_header *h;
	struct pet_cylinder cylinder;
	struct michelogram m;
	struct michelogram_index index;
	size_t bins;		  /* of one TOF bin */
	struct pet_images images; /* o->images, of gates with the marks */
	struct pet_images_near near;
	int image;	    /* time frame or gate of the last event; 0 without */
	uint32_t *counts;   /* [image][TOF bin][plane][angle][radial]; floats once all events are read, see to_floats() */
	uint32_t *delayeds; /* [image][plane][angle][radial], the same; NULL: no delayed coincidence in a bin */
	float *inverse;	    /* NORMALISATION */
	float *live;	    /* MULTIPLICATIVE */
	struct petsird_import_report *report;
};

/* ---- geometry ---- */

static int find_cylinder(struct import *s, struct err *err)
{
	float(*position)[3] = NULL;
	int rc = petsird_positions(s->h, s->o->axes, &position, err);

	if (rc == 0)
		rc = pet_cylinder_find((const float(*)[3])position, s->h->n_detectors, s->o->tolerance, &s->cylinder, err);
	free(position);
	return rc;
}

static int segments_of(struct import *s, struct err *err)
{
	int rings = s->cylinder.scanner.rings, span = s->o->span, most = s->o->max_difference;

	if (span == 0)
		span = petsird_span(rings);
	return michelogram_segments(rings, span, most < 0 ? rings - 1 : most, &s->m.segments, &s->m.n_segments, err);
}

/* Return the number of bins of one time frame or gate; histogram_bins(): of all. */
static size_t image_bins(const struct import *s)
{
	return s->bins * (size_t)(s->m.tof.n > 0 ? s->m.tof.n : 1);
}

static size_t histogram_bins(const struct import *s)
{
	return image_bins(s) * (size_t)pet_images_count(&s->images);
}

static int check_memory(const struct import *s, struct err *err)
{
	double images = pet_images_count(&s->images);
	double bytes = ((double)histogram_bins(s) + (images + 2) * (double)s->bins) * sizeof(float);
	double memory = device_names_memory();

	if (bytes <= MEMORY_PART * memory)
		return 0;
	return err_set(
		err, ENOMEM,
		"sinograms of %zu bins, %d TOF bins and %d time frames or gates need %.1f GB of memory, %.1f GB may be used; "
		"use a larger span, fewer radial bins, fewer frames or gates, or no TOF bins",
		s->bins, s->m.tof.n, s->images.n, bytes / 1e9, memory / 1e9);
}

static int make_michelogram(struct import *s, struct err *err)
{
	int rc = find_cylinder(s, err);

	if (rc < 0)
		return rc;
	s->m.scanner = s->cylinder.scanner;
	s->m.angle_offset = s->cylinder.angle_offset;
	s->m.n_angles = s->m.scanner.detectors / 2;
	s->m.n_radial = s->o->n_radial ? s->o->n_radial : s->m.scanner.detectors * 2 / 3;
	rc = segments_of(s, err);
	if (rc == 0)
		rc = petsird_find_tof(s->h, s->o->no_tof, &s->m.tof, err);
	if (rc == 0)
		rc = michelogram_index_init(&s->m, &s->index, err);
	if (rc < 0)
		return rc;
	s->bins = michelogram_planes(&s->m) * (size_t)s->m.n_angles * (size_t)s->m.n_radial;
	return check_memory(s, err);
}

static size_t bin_number(const struct import *s, int plane, int angle, int radial)
{
	return ((size_t)plane * (size_t)s->m.n_angles + (size_t)angle) * (size_t)s->m.n_radial + (size_t)radial;
}

/* ---- events ---- */

/* Find the image of an event; false: it is in none. */
static bool find_image(struct import *s, const struct petsird_event *e)
{
	s->image = pet_images_find(&s->images, (int64_t)e->time - (int64_t)petsird_counts(s->file)->start, &s->near);
	return s->image >= 0;
}

/* Add a delayed coincidence to its bin. */
static int add_delayed(struct import *s, size_t bin, struct err *err)
{
	size_t bins = s->bins * (size_t)pet_images_count(&s->images);

	if (!s->delayeds)
		s->delayeds = calloc(bins, sizeof(*s->delayeds));
	if (!s->delayeds)
		return err_set(err, ENOMEM, "no memory for %zu bins", bins);
	s->delayeds[(size_t)s->image * s->bins + bin]++;
	return 0;
}

/* Add an event to its bin. TOF bins of the file ascend towards the event's second detector, those of a sinogram towards the first
 * end of the bin. The report counts prompts. */
static int add_event(struct import *s, const struct petsird_event *e, struct err *err)
{
	const uint16_t *a = s->cylinder.place[e->detector[0]], *b = s->cylinder.place[e->detector[1]];
	struct michelogram_ends ends = {{a[0], b[0]}, {a[1], b[1]}};
	struct michelogram_bin bin;
	int k = 0;

	if (!michelogram_bin_of(&s->index, &ends, &bin)) {
		s->report->outside += !e->delayed;
		return 0;
	}
	if (!find_image(s, e)) {
		s->report->between += !e->delayed;
		return 0;
	}
	if (e->delayed)
		return add_delayed(s, bin_number(s, bin.plane, bin.angle, bin.radial), err);
	if (s->m.tof.n > 0)
		k = bin.exchanged ? e->tof : s->m.tof.n - 1 - e->tof;
	s->counts[(size_t)s->image * image_bins(s) + (size_t)k * s->bins + bin_number(s, bin.plane, bin.angle, bin.radial)]++;
	s->report->stored++;
	return 0;
}

/* A float cannot count beyond 16777216: convert at the end, in place. */
static void to_floats(uint32_t *counts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float value = (float)counts[i];

		memcpy(&counts[i], &value, sizeof(value));
	}
}

/* Take the time marks that are given, or those of the file. */
static int find_marks(struct import *s, struct err *err)
{
	const struct pet_gates *g = &s->o->images.gates;
	struct pet_marks *marks = &s->images.gates.marks;
	int rc;

	if (s->images.of != PET_GATES)
		return 0;
	if (g->signal == PET_SIGNAL_TABLE)
		rc = pet_marks_copy(&g->marks, marks, err);
	else
		rc = petsird_marks(s->file, g->signal, marks, &s->report->marks_outside, err);
	return rc < 0 ? rc : pet_gates_check(&s->images.gates, PET_MARKS_END, err); /* the end is known when all is read */
}

/* Check the gates against the times of what was read. An event has the time at which its block starts. Blocks of
 * up to half a gate shift the phase by a quarter of a gate on average. */
static int check_gates(struct import *s, struct err *err)
{
	const struct petsird_counts *n = petsird_counts(s->file);
	struct pet_cycles *c = &s->report->cycles;
	int rc;

	if (s->images.of != PET_GATES)
		return 0;
	rc = pet_gates_check(&s->images.gates, (int64_t)n->stop - (int64_t)n->start, err);
	if (rc < 0)
		return rc;
	pet_gates_count(&s->images.gates, c);
	if (2 * (int64_t)n->longest * s->images.n > c->shortest)
		return err_set(err, ENOTSUP,
			       "time blocks of up to %lu ms, but a gate of %.4g ms, less than twice that, in a cycle of %lld ms: "
			       "the file does not have the times of events that such gates need",
			       (unsigned long)n->longest, (double)c->shortest / s->images.n, (long long)c->shortest);
	return 0;
}

static int read_events(struct import *s, struct err *err)
{
	struct petsird_event *events = malloc(PIECE * sizeof(*events));
	size_t n = 1, bins = histogram_bins(s);
	int64_t block = -1;
	int rc = events ? 0 : err_set(err, ENOMEM, "no memory to read events");

	s->counts = calloc(bins, sizeof(*s->counts));
	if (!s->counts)
		rc = err_set(err, ENOMEM, "no memory for %zu bins", s->bins);
	while (rc == 0 && n > 0) {
		n = 0;
		rc = petsird_next(s->file, events, PIECE, &n, err);
		if (rc == 0)
			rc = petsird_check_frames(s->file, &s->images, events, n, &block, err);
		for (size_t i = 0; rc == 0 && i < n; i++)
			rc = add_event(s, &events[i], err);
	}
	free(events);
	if (rc < 0)
		return rc;
	to_floats(s->counts, bins);
	if (s->delayeds)
		to_floats(s->delayeds, bins / image_bins(s) * s->bins);
	s->report->counts = *petsird_counts(s->file);
	rc = petsird_check_still(s->file, err);
	if (rc == 0)
		rc = pet_frames_check(&s->images, (double)(s->report->counts.stop - s->report->counts.start) / 1000, err);
	if (rc == 0)
		rc = check_gates(s, err);
	if (rc == 0 && s->report->stored == 0)
		rc = err_set(err, EBADMSG, "%llu prompts, none of which is in a bin of the sinograms",
			     (unsigned long long)s->report->counts.prompts);
	return rc;
}

/* ---- factors ---- */

static int make_factors(struct import *s, struct err *err)
{
	bool all_one = true, all_live = true;

	s->inverse = malloc(s->bins * sizeof(*s->inverse));
	s->live = malloc(s->bins * sizeof(*s->live));
	if (!s->inverse || !s->live)
		return err_set(err, ENOMEM, "no memory for the factors of %zu bins", s->bins);
	for (int plane = 0; plane < s->index.n_planes; plane++) {
		struct michelogram_rings r = michelogram_plane_rings(&s->index, plane);

		for (int i = 0; i < s->m.n_angles * s->m.n_radial; i++) {
			int angle = i / s->m.n_radial, radial = i % s->m.n_radial;
			size_t bin = bin_number(s, plane, angle, radial);
			double e = petsird_bin_efficiency(s->file, &s->cylinder, &s->index, &r, angle, radial);

			s->inverse[bin] = e > 0 ? (float)(1 / e) : 1;
			s->live[bin] = e > 0;
			all_one = all_one && s->inverse[bin] == 1;
			all_live = all_live && e > 0;
		}
	}
	if (all_live) {
		free(s->live);
		s->live = NULL;
	}
	if (all_one) {
		free(s->inverse);
		s->inverse = NULL;
	}
	return 0;
}

/* ---- objects ---- */

/* Return the duration of the acquisition, ms: that of its event blocks; with time frames or gates, whose times are since its
 * start, up to its end. */
static uint64_t duration_of(const struct import *s)
{
	const struct petsird_counts *n = &s->report->counts;

	return s->images.n > 0 ? (uint64_t)(n->stop - n->start) : n->covered;
}

static int write_objects(struct import *s, const struct sinogram_import *conf, struct err *err)
{
	struct sinogram_arrays a = {.m = &s->m,
				    .images = &s->images,
				    .duration = (double)duration_of(s) / 1000,
				    .scanner = s->h->model,
				    .values = {[SINOGRAM_EMISSION] = (const float *)s->counts,
					       [SINOGRAM_DELAYEDS] = (const float *)s->delayeds,
					       [SINOGRAM_NORMALISATION] = s->inverse,
					       [SINOGRAM_MULTIPLICATIVE] = s->live}};
	struct sinogram_import with = *conf;
	struct petsird_said said;
	char duration[48];
	int rc;

	snprintf(duration, sizeof(duration), "ActualFrameDuration=%llu", (unsigned long long)duration_of(s));
	rc = petsird_say(s->file, duration, &said, &with, err);
	if (rc == 0)
		rc = sinogram_write(&a, &with, &s->report->objects, err);
	free(said.set);
	return rc;
}

static void make_report(struct import *s)
{
	struct petsird_import_report *r = s->report;

	snprintf(r->model, sizeof(r->model), "%s", s->h->model);
	r->m = s->m;
	r->m.segments = NULL;
	r->planes = michelogram_planes(&s->m);
	r->missing = (size_t)s->m.scanner.rings * (size_t)s->m.scanner.detectors - s->cylinder.n;
	r->deviation = s->cylinder.deviation;
	r->calibration = s->h->calibration;
	r->normalisation = s->inverse != NULL;
	r->counts.gap = NULL; /* the file's */
	r->counts.n_gaps = 0;
}

int petsird_import(const struct petsird_import *o, const struct sinogram_import *conf, struct petsird_import_report *ret,
		   struct err *err)
{
	struct petsird_import_report report = {0};
	struct import s = {.o = o, .images = o->images, .report = &report};
	int rc = petsird_open(o->path, &s.file, err);

	s.images.gates.marks = (struct pet_marks){0}; /* find_marks() */
	if (rc == 0) {
		s.h = petsird_header(s.file);
		rc = make_michelogram(&s, err);
	}
	if (rc == 0)
		rc = find_marks(&s, err);
	if (rc == 0)
		rc = read_events(&s, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(o->path));
	if (rc == 0)
		rc = make_factors(&s, err);
	if (rc == 0)
		rc = write_objects(&s, conf, err);
	if (rc == 0) {
		make_report(&s);
		petsird_warn(s.file, s.delayeds != NULL, conf->warnings, conf->warnings_size);
		if (conf->warnings && report.marks_outside > 0)
			sentence_add(conf->warnings, conf->warnings_size,
				     "%llu time marks before the first time block or behind the last one are not used.",
				     (unsigned long long)report.marks_outside);
		petsird_warn_gaps(s.file, &s.images, conf->warnings, conf->warnings_size);
		*ret = report;
	}
	free(s.counts);
	free(s.delayeds);
	free(s.inverse);
	free(s.live);
	free(s.m.segments);
	pet_marks_clear(&s.images.gates.marks);
	pet_cylinder_clear(&s.cylinder);
	petsird_close(s.file);
	return rc;
}
