/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_import.c - sinogram objects of a PETSIRD file (node/format/petsird.h), for scanners whose detectors are those of a regular
 * cylinder (recon/pet/cylinder.h). The sinograms are in memory, one float per bin; events are read in pieces.
 *
 * - EMISSION: the prompts of each bin, with TOF bins if the file has equidistant ones. A bin of a segment of several ring
 *   differences has the sum of its detector pairs.
 * - With e the sum of the efficiencies of a bin's pairs of detection bins, without the calibration factor (1 for each pair of
 *   detectors if the file has no efficiencies): NORMALISATION 1/e, and MULTIPLICATIVE 0 where e is 0, 1 elsewhere. These roles
 *   are omitted if their values are 1 everywhere.
 * - Every event is in a bin, or counted as outside (ring difference or radial position that the sinograms do not have). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/base/device_names.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/base/thread_pool.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/petsird_facts_internal.h"
#include "node/sinogram/sinogram_list_internal.h"
#include "recon/pet/michelogram_pairs.h"

#define PIECE 65536	/* events */
#define MEMORY_PART 0.8 /* of the machine's memory */

struct import {
	const struct petsird_import *o;
	struct petsird *file;
	struct thread_pool *pool;
	const struct petsird_header *h;
	struct pet_cylinder cylinder;
	struct michelogram m;
	struct michelogram_index index;
	size_t bins;		  /* of one TOF bin */
	struct pet_images images; /* o->images, of gates with the marks */
	struct pet_images_near near;
	int image;	    /* time frame or gate of the last event; 0 without */
	uint32_t *counts;   /* [image][TOF bin][plane][angle][radial]; floats once all events are read, see list_to_floats() */
	uint32_t *delayeds; /* [image][plane][angle][radial], the same; NULL: no delayed coincidence in a bin */
	float *inverse;	    /* NORMALISATION */
	float *live;	    /* MULTIPLICATIVE */
	uint64_t stored, outside; /* prompts in a bin, and others */
	uint64_t between;	  /* prompts in no time frame or gate */
	struct pet_cycles cycles; /* with gates: those used and left out */
	uint64_t marks_outside;	  /* time marks of the file before its events or behind them, which are left out */
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
 * end of the bin. */
static int add_event(struct import *s, const struct petsird_event *e, struct err *err)
{
	const uint16_t *a = s->cylinder.place[e->detector[0]], *b = s->cylinder.place[e->detector[1]];
	struct michelogram_ends ends = {{a[0], b[0]}, {a[1], b[1]}};
	struct michelogram_bin bin;
	int k = 0;

	if (!michelogram_bin_of(&s->index, &ends, &bin)) {
		s->outside += !e->delayed;
		return 0;
	}
	if (!find_image(s, e)) {
		s->between += !e->delayed;
		return 0;
	}
	if (e->delayed)
		return add_delayed(s, bin_number(s, bin.plane, bin.angle, bin.radial), err);
	if (s->m.tof.n > 0)
		k = bin.exchanged ? e->tof : s->m.tof.n - 1 - e->tof;
	s->counts[(size_t)s->image * image_bins(s) + (size_t)k * s->bins + bin_number(s, bin.plane, bin.angle, bin.radial)]++;
	s->stored++;
	return 0;
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
		rc = petsird_marks(s->file, g->signal, marks, &s->marks_outside, err);
	return rc < 0 ? rc : pet_gates_check(&s->images.gates, PET_MARKS_END, err); /* the end is known when all is read */
}

/* Check the gates against the times of what was read. An event has the time at which its block starts. Blocks of
 * up to half a gate shift the phase by a quarter of a gate on average. */
static int check_gates(struct import *s, struct err *err)
{
	const struct petsird_counts *n = petsird_counts(s->file);
	struct pet_cycles *c = &s->cycles;
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
	const struct petsird_counts *counts = petsird_counts(s->file);
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
	list_to_floats(s->counts, bins);
	if (s->delayeds)
		list_to_floats(s->delayeds, bins / image_bins(s) * s->bins);
	rc = petsird_check_still(s->file, err);
	if (rc == 0)
		rc = pet_frames_check(&s->images, (double)(counts->stop - counts->start) / 1000, err);
	if (rc == 0)
		rc = check_gates(s, err);
	if (rc == 0 && s->stored == 0)
		rc = err_set(err, EBADMSG, "%llu prompts, none of which is in a bin of the sinograms",
			     (unsigned long long)counts->prompts);
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
	const struct petsird_counts *n = petsird_counts(s->file);

	return s->images.n > 0 ? (uint64_t)(n->stop - n->start) : n->covered;
}

static int write_objects(struct import *s, const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err)
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
		rc = sinogram_write(&a, &with, ret_n_objects, err);
	free(said.set);
	return rc;
}

/* Write what was read in lines. */
static void write_text(const struct import *s, const struct sinogram_import *conf, char *ret, size_t size)
{
	const struct petsird_counts *n = petsird_counts(s->file);
	const struct pet_scanner *c = &s->m.scanner;
	char tof[32] = "no time of flight", axes[400];
	int at;

	if (s->m.tof.n > 0)
		snprintf(tof, sizeof(tof), "%d TOF bin%s", s->m.tof.n, plural(s->m.tof.n));
	petsird_axes_text(conf, axes, sizeof(axes));
	at = snprintf(
		ret, size,
		"%llu prompts: %llu in bins, %llu outside; %llu delayeds; %g s\n"
		"%d rings of %d detectors, %g mm apart, radius %g mm, %zu positions empty; %zu planes, %d angles, %d radial "
		"bins, %s\n%s\n",
		(unsigned long long)n->prompts, (unsigned long long)s->stored, (unsigned long long)s->outside,
		(unsigned long long)n->delayeds, (double)n->covered / 1000, c->rings, c->detectors, c->ring_spacing, c->radius,
		(size_t)c->rings * (size_t)c->detectors - s->cylinder.n, michelogram_planes(&s->m), s->m.n_angles, s->m.n_radial,
		tof, axes);
	if (s->cycles.used > 0)
		snprintf(ret + at, size - (size_t)at,
			 "%ld cycles of %.4g ms on average divided into gates, %ld left out; %llu prompts in no gate\n",
			 s->cycles.used, s->cycles.mean, s->cycles.left_out, (unsigned long long)s->between);
}

static json_t *make_details(const struct import *s)
{
	const struct petsird_counts *n = petsird_counts(s->file);
	const struct pet_scanner *c = &s->m.scanner;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:f, s:i, s:f, s:f, s:I, s:f, s:i, s:i, s:I, s:i, s:b, "
			 "s:I, s:I, s:I}",
			 "scanner", s->h->model, "prompts", (json_int_t)n->prompts, "delayeds", (json_int_t)n->delayeds,
			 "in_bins", (json_int_t)s->stored, "outside", (json_int_t)s->outside, "surplus", (json_int_t)n->surplus,
			 "duration", (double)n->covered / 1000, "calibration", s->h->calibration, "rings", c->rings,
			 "ring_spacing", c->ring_spacing, "detectors", c->detectors, "radius", c->radius, "angle_offset",
			 s->m.angle_offset, "missing", (json_int_t)c->rings * c->detectors - (json_int_t)s->cylinder.n,
			 "deviation", s->cylinder.deviation, "radial", s->m.n_radial, "angles", s->m.n_angles, "planes",
			 (json_int_t)michelogram_planes(&s->m), "tof_bins", s->m.tof.n, "normalisation", s->inverse != NULL,
			 "in_no_frame", (json_int_t)s->between, "cycles_used", (json_int_t)s->cycles.used, "cycles_left_out",
			 (json_int_t)s->cycles.left_out);
}

/* Add what is not used to the warnings of the attributes. */
static void warn_unused(const struct import *s, char *warnings, size_t size)
{
	petsird_warn(s->file, s->delayeds != NULL, warnings, size);
	if (warnings && s->marks_outside > 0)
		sentence_add(warnings, size, "%llu time marks before the first time block or behind the last one are not used.",
			     (unsigned long long)s->marks_outside);
	petsird_warn_gaps(s->file, &s->images, warnings, size);
}

int petsird_import(const char *path, const struct sinogram_import *conf, struct import_report *ret, struct err *err)
{
	struct import s = {.o = petsird_options(conf), .images = petsird_options(conf)->images};
	int rc = petsird_open(path, &s.file, err);

	s.images.gates.marks = (struct pet_marks){0}; /* find_marks() */
	if (rc == 0)
		rc = thread_pool_create(0, &s.pool, err);
	if (rc == 0) {
		petsird_use_threads(s.file, s.pool);
		s.h = petsird_header(s.file);
		rc = make_michelogram(&s, err);
	}
	if (rc == 0)
		rc = find_marks(&s, err);
	if (rc == 0)
		rc = read_events(&s, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	if (rc == 0)
		rc = make_factors(&s, err);
	if (rc == 0)
		rc = write_objects(&s, conf, &ret->objects, err);
	if (rc == 0) {
		write_text(&s, conf, ret->text, sizeof(ret->text));
		ret->details = make_details(&s);
		warn_unused(&s, conf->warnings, conf->warnings_size);
	}
	free(s.counts);
	free(s.delayeds);
	free(s.inverse);
	free(s.live);
	free(s.m.segments);
	pet_marks_clear(&s.images.gates.marks);
	pet_cylinder_clear(&s.cylinder);
	petsird_close(s.file);
	thread_pool_free(s.pool);
	return rc;
}
