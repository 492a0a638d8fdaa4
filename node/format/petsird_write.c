/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_write.c - the bytes of a PETSIRD file, field by field in the order of its schema (petsird_schema.json, schema 0.12 of
 * ETSInitiative/PETSIRD, Apache-2.0): petsird's own reader accepts a file only if its schema is the same text. */
#include "node/format/petsird_write.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tof.h"
#include "node/base/atomic_file.h"
#include "node/format/petsird_schema.h"

#define BUFFER ((size_t)1 << 16)
#define VALUE_MAX 10 /* bytes of an integer */
#define LOW_ENERGY 435.0f
#define HIGH_ENERGY 650.0f
#define NO_RESOLUTION 1000.0f /* mm: without time of flight */

struct petsird_writer {
	struct atomic_file *file;
	size_t n; /* bytes in the buffer */
	int rc;	  /* of the first error */
	struct err *err;
	uint32_t detectors;
	int tof;
	uint64_t due; /* prompts that are missing in the block */
	struct michelogram_index index;
	uint8_t buffer[BUFFER];
};

/* ---- values ---- */

static void flush_buffer(struct petsird_writer *w)
{
	if (w->rc == 0 && w->n > 0)
		w->rc = atomic_file_write(w->file, w->buffer, w->n, w->err);
	w->n = 0;
}

static void put_bytes(struct petsird_writer *w, const void *bytes, size_t n)
{
	if (w->n + n > BUFFER)
		flush_buffer(w);
	if (n > BUFFER) {
		if (w->rc == 0)
			w->rc = atomic_file_write(w->file, bytes, n, w->err);
		return;
	}
	memcpy(w->buffer + w->n, bytes, n);
	w->n += n;
}

static void put_byte(struct petsird_writer *w, uint8_t byte)
{
	put_bytes(w, &byte, 1);
}

static void put_unsigned(struct petsird_writer *w, uint64_t value)
{
	if (w->n + VALUE_MAX > BUFFER)
		flush_buffer(w);
	for (; value >= 0x80; value >>= 7)
		w->buffer[w->n++] = (uint8_t)(value | 0x80);
	w->buffer[w->n++] = (uint8_t)value;
}

static void put_signed(struct petsird_writer *w, int64_t value)
{
	put_unsigned(w, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

static void put_float(struct petsird_writer *w, double value)
{
	float single = (float)value;

	put_bytes(w, &single, sizeof(single));
}

static void put_text(struct petsird_writer *w, const char *text, size_t n)
{
	put_unsigned(w, n);
	put_bytes(w, text, n);
}

/* n texts, empty lists, empty optional values or enumerations of value 0: all are one byte 0. */
static void put_empty(struct petsird_writer *w, int n)
{
	while (n-- > 0)
		put_byte(w, 0);
}

static void put_matrix(struct petsird_writer *w, const double m[3][4])
{
	for (int i = 0; i < 12; i++)
		put_float(w, m[i / 4][i % 4]);
}

/* ---- the header ---- */

/* ScannerGeometry: one type of modules. */
static void put_geometry(struct petsird_writer *w, const struct michelogram *m)
{
	const struct pet_scanner *s = &m->scanner;
	double half[3] = {PETSIRD_DEPTH / 2, M_PI * s->radius / s->detectors, s->ring_spacing / 2};

	put_unsigned(w, 1);
	for (int corner = 0; corner < 8; corner++)
		for (int k = 0; k < 3; k++)
			put_float(w, corner >> (2 - k) & 1 ? half[k] : -half[k]);
	put_unsigned(w, 1); /* material */
	put_unsigned(w, (uint64_t)s->rings);
	for (int ring = 0; ring < s->rings; ring++)
		put_matrix(w, (const double[3][4]){{1, 0, 0, s->radius + s->interaction_depth},
						   {0, 1, 0, 0},
						   {0, 0, 1, (ring - (s->rings - 1) / 2.0) * s->ring_spacing}});
	put_empty(w, 1); /* elements that do not detect */
	put_unsigned(w, (uint64_t)s->detectors);
	for (int crystal = 0; crystal < s->detectors; crystal++) {
		double angle = (m->angle_offset - 90 + crystal * 360.0 / s->detectors) * M_PI / 180, c = cos(angle),
		       d = sin(angle);

		put_matrix(w, (const double[3][4]){{c, -d, 0, 0}, {d, c, 0, 0}, {0, 0, 1, 0}});
	}
	put_empty(w, 1); /* volumes that do not detect */
}

static void put_tof(struct petsird_writer *w, const struct michelogram *m)
{
	double reach = 2 * (m->scanner.radius + m->scanner.interaction_depth);
	int n = m->tof.n > 0 ? m->tof.n : 1;

	put_unsigned(w, 1);
	put_unsigned(w, 1);
	put_unsigned(w, (uint64_t)n + 1);
	for (int k = 0; k <= n; k++)
		put_float(w, m->tof.n > 0 ? tof_edge(&m->tof, k) : k ? reach : -reach);
	put_unsigned(w, 1);
	put_unsigned(w, 1);
	put_float(w, m->tof.n > 0 ? m->tof.sigma * TOF_FWHM_PER_SIGMA : NO_RESOLUTION);
}

/* Do the sinograms have a bin for two crystals? */
static bool has_radial(const struct michelogram_index *index, int a, int b)
{
	struct michelogram_bin bin;

	return michelogram_bin_of(index, &(struct michelogram_ends){{0, 0}, {a, b}}, &bin);
}

static bool has_difference(const struct michelogram *m, int difference)
{
	for (int i = 0; i < m->n_segments; i++)
		if (m->segments[i].first <= difference && difference <= m->segments[i].last)
			return true;
	return false;
}

static void put_efficiencies(struct petsird_writer *w, const struct petsird_scan *scan)
{
	const struct michelogram *m = scan->m;
	int rings = m->scanner.rings, crystals = m->scanner.detectors;

	put_empty(w, 1);
	put_float(w, 1);
	put_unsigned(w, 1);
	put_unsigned(w, w->detectors);
	for (uint32_t i = 0; i < w->detectors; i++)
		put_float(w, !scan->is_gap || !scan->is_gap((int)i / rings));
	put_unsigned(w, 1); /* symmetry groups: 0, or -1 */
	put_unsigned(w, 1);
	put_unsigned(w, (uint64_t)crystals);
	for (int a = 0; a < crystals; a++) {
		put_unsigned(w, (uint64_t)a + 1);
		for (int b = 0; b <= a; b++)
			put_signed(w, has_radial(&w->index, a, b) ? 0 : -1);
	}
	put_unsigned(w, 1); /* values of group 0 */
	put_unsigned(w, 1);
	put_unsigned(w, 1);
	put_unsigned(w, (uint64_t)rings);
	for (int a = 0; a < rings; a++) {
		put_unsigned(w, (uint64_t)rings);
		for (int b = 0; b < rings; b++)
			put_float(w, has_difference(m, a - b));
	}
	put_signed(w, 0);
}

static void put_scanner(struct petsird_writer *w, const struct petsird_scan *scan)
{
	put_text(w, scan->model, strlen(scan->model));
	put_geometry(w, scan->m);
	put_empty(w, 2);	/* materials, alignment */
	put_text(w, "NONE", 4); /* collimator */
	put_tof(w, scan->m);
	put_unsigned(w, 1); /* energy bins */
	put_unsigned(w, 2);
	put_float(w, LOW_ENERGY);
	put_float(w, HIGH_ENERGY);
	put_unsigned(w, 1); /* energy resolution */
	put_float(w, 0.1);
	put_empty(w, 3);  /* level, units and energy bins of histograms of singles */
	put_signed(w, 0); /* policies: no singles, prompts, delayeds, no triples, no quadruples */
	put_signed(w, 1);
	put_signed(w, 1);
	put_empty(w, 2);
	put_efficiencies(w, scan);
}

static void put_exam(struct petsird_writer *w, const struct petsird_scan *scan)
{
	int64_t start = (int64_t)(scan->start * 1e9);

	put_byte(w, 1);
	put_text(w, "PT", 2);
	put_empty(w, 4); /* UIDs */
	put_signed(w, start);
	put_byte(w, 1);
	put_signed(w, start);
	put_empty(w, 2); /* patient: ID, sex; size, weight, body mass index */
	for (int i = 0; i < 3; i++)
		put_float(w, 0);
	put_empty(w, 15); /* three codes of orientation */
	put_empty(w, 2);  /* radiopharmaceuticals, signals */
}

static int check_scan(const struct petsird_scan *scan, struct err *err)
{
	const struct michelogram *m = scan->m;
	int rc = michelogram_check(m, err);

	if (rc < 0)
		return rc;
	for (int i = 0; i < m->n_segments; i++)
		if (m->segments[i].first != m->segments[i].last)
			return err_set(
				err, ENOTSUP,
				"sinograms with ring differences %d to %d in one segment: their bins have several pairs of "
				"detectors, and which one was hit is not known; list mode can be made of span 1",
				m->segments[i].first, m->segments[i].last);
	if (m->arc_corrected || m->scanner.detectors != 2 * m->n_angles)
		return err_set(
			err, ENOTSUP,
			"sinograms of %d angles %s arc correction: their bins are not pairs of detectors; list mode can be "
			"made of %d angles, half of the detectors of a ring, without arc correction",
			m->n_angles, m->arc_corrected ? "with" : "without", m->scanner.detectors / 2);
	if (m->scanner.detectors > PETSIRD_WRITE_CRYSTALS)
		return err_set(err, ENOTSUP, "%d detectors in a ring; allowed in a PETSIRD file: %d", m->scanner.detectors,
			       PETSIRD_WRITE_CRYSTALS);
	if (!(fabs(scan->start) < 9e9))
		return err_set(err, EINVAL, "a start of %g s", scan->start);
	return 0;
}

int petsird_create(const char *path, const struct petsird_scan *scan, struct petsird_writer **ret, struct err *err)
{
	size_t schema = strlen(petsird_schema);
	struct petsird_writer *w;
	int rc = check_scan(scan, err);

	if (rc < 0)
		return rc;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, ENOMEM, "no memory to write %s", path);
	w->err = err;
	w->detectors = (uint32_t)scan->m->scanner.rings * (uint32_t)scan->m->scanner.detectors;
	w->tof = scan->m->tof.n > 0 ? scan->m->tof.n : 1;
	w->rc = michelogram_index_init(scan->m, &w->index, err);
	if (w->rc == 0)
		w->rc = atomic_file_open(path, &w->file, err);
	put_bytes(w, "yardl\1\0\0\0", 9);
	put_text(w, petsird_schema, schema - (petsird_schema[schema - 1] == '\n'));
	put_scanner(w, scan);
	put_exam(w, scan);
	rc = w->rc;
	if (rc < 0)
		petsird_abort(w);
	else
		*ret = w;
	return rc;
}

/* ---- events ---- */

/* The format has the larger detection bin first; TOF bins ascend towards the second one. */
static void put_event(struct petsird_writer *w, const struct petsird_event *e)
{
	bool exchange = e->detector[0] < e->detector[1];

	if (w->rc == 0 && (e->detector[0] >= w->detectors || e->detector[1] >= w->detectors || e->tof >= w->tof))
		w->rc = err_set(w->err, EINVAL, "an event of detectors %u and %u, TOF bin %d; there are %u and %d",
				e->detector[0], e->detector[1], e->tof, w->detectors, w->tof);
	put_unsigned(w, e->detector[exchange]);
	put_unsigned(w, e->detector[!exchange]);
	put_unsigned(w, (uint64_t)(exchange ? w->tof - 1 - e->tof : e->tof));
}

/* Begin the prompts or the delayed events of the only pair of module types. */
static void begin_events(struct petsird_writer *w, uint64_t count)
{
	put_unsigned(w, 1);
	put_unsigned(w, 1);
	put_unsigned(w, count);
}

static void put_events(struct petsird_writer *w, const struct petsird_event *events, size_t n, bool delayed)
{
	uint64_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += events[i].delayed == delayed;
	begin_events(w, count);
	for (size_t i = 0; i < n; i++)
		if (events[i].delayed == delayed)
			put_event(w, &events[i]);
}

static void begin_block(struct petsird_writer *w, uint32_t start, uint32_t stop)
{
	put_unsigned(w, 1); /* one block in this part of the stream */
	put_byte(w, 0);	    /* EventTimeBlock */
	put_unsigned(w, start);
	put_unsigned(w, stop);
	put_empty(w, 1); /* singles */
}

int petsird_write(struct petsird_writer *w, uint32_t start, uint32_t stop, const struct petsird_event *events, size_t n,
		  struct err *err)
{
	w->err = err;
	begin_block(w, start, stop);
	put_events(w, events, n, false);
	put_events(w, events, n, true);
	put_empty(w, 2); /* triples, quadruples */
	return w->rc;
}

int petsird_begin(struct petsird_writer *w, uint32_t start, uint32_t stop, uint64_t prompts, struct err *err)
{
	w->err = err;
	w->due = prompts;
	begin_block(w, start, stop);
	begin_events(w, prompts);
	return w->rc;
}

int petsird_add(struct petsird_writer *w, const struct petsird_event *events, size_t n, struct err *err)
{
	w->err = err;
	if (w->rc == 0 && n > w->due)
		w->rc = err_set(err, EINVAL, "%zu events, %llu are missing in the block", n, (unsigned long long)w->due);
	w->due -= n;
	for (size_t i = 0; w->rc == 0 && i < n; i++)
		put_event(w, &events[i]);
	return w->rc;
}

int petsird_end(struct petsird_writer *w, struct err *err)
{
	w->err = err;
	if (w->rc == 0 && w->due > 0)
		w->rc = err_set(err, EINVAL, "%llu events are missing in the block", (unsigned long long)w->due);
	begin_events(w, 0); /* delayed events */
	put_empty(w, 2);    /* triples, quadruples */
	return w->rc;
}

struct petsird_event petsird_event_of(const struct michelogram *m, const struct michelogram_index *x, int k,
				      const struct michelogram_bin *bin)
{
	struct michelogram_rings r = michelogram_plane_rings(x, bin->plane);
	int crystal[2], ring[2] = {(r.sum + r.difference) / 2, (r.sum - r.difference) / 2};
	struct petsird_event e = {.tof = (uint16_t)(m->tof.n > 0 ? m->tof.n - 1 - k : 0)}; /* ascends towards the second end */

	michelogram_crystals(x, bin->angle, bin->radial, 0, crystal);
	for (int end = 0; end < 2; end++)
		e.detector[end] = (uint32_t)ring[end] + (uint32_t)m->scanner.rings * (uint32_t)crystal[end];
	return e;
}

int petsird_finish(struct petsird_writer *w, struct err *err)
{
	int rc;

	w->err = err;
	put_byte(w, 0);
	flush_buffer(w);
	rc = w->rc;
	if (rc < 0)
		atomic_file_abort(w->file);
	else
		rc = atomic_file_close(w->file, err);
	free(w);
	return rc;
}

void petsird_abort(struct petsird_writer *w)
{
	if (!w)
		return;
	if (w->file)
		atomic_file_abort(w->file);
	free(w);
}
