/* SPDX-License-Identifier: Apache-2.0 */
/* interfile.c - convert the data of an Interfile header, and complete it with the configuration of the scanner. */
#include "node/format/interfile.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/config/config.h"

void interfile_clear(struct interfile *f)
{
	free(f->m.segments);
	f->m.segments = NULL;
	f->m.n_segments = 0;
	free((double *)f->beams.angle); /* allocated by interfile_parallel.c */
	f->beams.angle = NULL;
}

uint64_t interfile_bytes(const struct interfile *f)
{
	uint64_t n = (uint64_t)f->bytes; /* the parser limits the sides: the product is below 2^64 */

	if (f->kind == INTERFILE_IMAGE)
		return n * (uint64_t)f->n[0] * (uint64_t)f->n[1] * (uint64_t)f->n[2];
	if (f->kind == INTERFILE_PARALLEL)
		return n * (uint64_t)parallel_size(&f->beams);
	return n * (uint64_t)michelogram_size(&f->m);
}

void interfile_extent(const struct interfile *f, char *ret_text, size_t size)
{
	const struct parallel_scan *b = &f->beams;

	if (f->kind == INTERFILE_PARALLEL)
		snprintf(ret_text, size, "%d slice%s, %d angles, %d radial bins of %d byte%s", b->n_slices, plural(b->n_slices),
			 b->n_angles, b->n_radial, f->bytes, plural(f->bytes));
	else
		snprintf(ret_text, size, "%zu plane%s, %d angles, %d radial bins of %d byte%s", michelogram_planes(&f->m),
			 plural(michelogram_planes(&f->m)), f->m.n_angles, f->m.n_radial, f->bytes, plural(f->bytes));
}

/* ---- values that the header does not contain ---- */

static void add_missing(char *list, size_t size, const char *what)
{
	size_t at = strlen(list);

	snprintf(list + at, size - at, "%s%s", at ? ", " : "", what);
}

/* Set the ring differences of the scanner's configured segments, if the planes of m match them, in their order. */
static int known_differences(struct michelogram *m, const struct scanner_conf *known, struct err *err)
{
	struct michelogram_segment *list = NULL;
	int n = 0, same = 0, rc;

	rc = michelogram_segments(m->scanner.rings, known->span, known->max_difference, &list, &n, err);
	if (rc < 0)
		return err_set(err, EBADMSG, "the header gives no ring differences, and %d rings do not fit scanner '%s'",
			       m->scanner.rings, known->name);
	while (same < n && same < m->n_segments && list[same].n_planes == m->segments[same].n_planes)
		same++;
	if (n == m->n_segments && same == n)
		memcpy(m->segments, list, (size_t)n * sizeof(*list));
	else
		rc = err_set(err, EBADMSG,
			     "the header gives no ring differences, and its %d segments are not the %d of scanner '%s' (segment "
			     "%d)",
			     m->n_segments, n, known->name, same);
	free(list);
	return rc;
}

static int fill_scanner(const struct interfile *f, struct michelogram *m, const struct scanner_conf *known, struct err *err)
{
	const struct pet_scanner nothing = {.interaction_depth = 0}, *k = known ? &known->scanner : &nothing;
	struct pet_scanner *s = &m->scanner;
	char list[200] = "";

	if (s->rings == 0)
		s->rings = k->rings;
	if (s->detectors == 0)
		s->detectors = k->detectors;
	if (s->ring_spacing == 0)
		s->ring_spacing = k->ring_spacing;
	if (isnan(s->interaction_depth)) /* belongs to the radius */
		s->interaction_depth = s->radius == 0 ? k->interaction_depth : 0;
	if (s->radius == 0)
		s->radius = k->radius;
	if (s->bin == 0)
		s->bin = k->bin;
	if (isnan(m->angle_offset))
		m->angle_offset = known ? known->angle_offset : 0;
	if (s->rings == 0)
		add_missing(list, sizeof(list), "number of rings");
	if (s->ring_spacing == 0)
		add_missing(list, sizeof(list), "distance between rings");
	if (s->radius == 0)
		add_missing(list, sizeof(list), "inner ring diameter");
	if (m->arc_corrected && s->bin == 0)
		add_missing(list, sizeof(list), "effective central bin size");
	if (!m->arc_corrected && s->detectors == 0)
		add_missing(list, sizeof(list), "number of detectors per ring");
	if (f->no_differences && !known)
		add_missing(list, sizeof(list), "ring differences of the segments");
	if (list[0])
		return err_set(err, ENOKEY, "the header lacks: %s; and no configured scanner matches it", list);
	return 0;
}

int interfile_complete(struct interfile *f, const struct scanner_conf *known, struct err *err)
{
	size_t size = (size_t)f->m.n_segments * sizeof(*f->m.segments);
	struct michelogram m = f->m;
	int rc;

	if (f->kind != INTERFILE_PROJECTIONS || size == 0)
		return err_set(err, EBADMSG, "an image, not projection data");
	m.segments = malloc(size);
	if (!m.segments)
		return err_set(err, ENOMEM, "no memory for %d segments", m.n_segments);
	memcpy(m.segments, f->m.segments, size);
	rc = fill_scanner(f, &m, known, err);
	if (rc == 0 && f->no_differences)
		rc = known_differences(&m, known, err);
	if (rc == 0 && michelogram_check(&m, err) < 0) {
		if (err)
			err->code = EBADMSG;
		rc = -EBADMSG;
	}
	if (rc < 0) {
		free(m.segments);
		return rc;
	}
	free(f->m.segments);
	f->m = m;
	f->no_differences = false;
	return 0;
}

/* Compare with a tolerance, because headers have numbers with few digits. */
static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-4 * (1e-3 + fmax(fabs(a), fabs(b)));
}

int interfile_same_rays(const struct interfile *a, const struct interfile *b, struct err *err)
{
	const struct michelogram *m = &a->m, *o = &b->m;
	const struct pet_scanner *s = &m->scanner, *t = &o->scanner;
	const struct {
		const char *name;
		int one, other;
	} counts[] = {
		/* must be equal: the buffer for a plane of one is filled with planes of the other */
		{"radial bins", m->n_radial, o->n_radial},
		{"angles", m->n_angles, o->n_angles},
		{"segments", m->n_segments, o->n_segments},
		{"rings", s->rings, t->rings},
		{"arc correction (1: yes)", m->arc_corrected, o->arc_corrected},
		{"detectors in a ring", m->arc_corrected ? 0 : s->detectors, o->arc_corrected ? 0 : t->detectors},
	};
	const struct {
		const char *name;
		double one, other;
	} numbers[] = {
		{"distance of rings, mm", s->ring_spacing, t->ring_spacing},
		{"radius where rays end, mm", s->radius + s->interaction_depth, t->radius + t->interaction_depth},
		{"first angle, degrees", m->angle_offset, o->angle_offset},
		{"radial bin, mm", m->arc_corrected ? s->bin : 0, o->arc_corrected ? t->bin : 0},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].one != counts[i].other)
			return err_set(err, EBADMSG, "different geometry: %s: %d and %d", counts[i].name, counts[i].one,
				       counts[i].other);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!near(numbers[i].one, numbers[i].other))
			return err_set(err, EBADMSG, "different geometry: %s: %g and %g", numbers[i].name, numbers[i].one,
				       numbers[i].other);
	for (int i = 0; i < m->n_segments; i++)
		if (m->segments[i].first != o->segments[i].first || m->segments[i].last != o->segments[i].last)
			return err_set(err, EBADMSG,
				       "different geometry: segment %d has ring differences %d to %d and %d to %d (segments must "
				       "be in the same order)",
				       i, m->segments[i].first, m->segments[i].last, o->segments[i].first, o->segments[i].last);
	return 0;
}

/* ---- values ---- */

static uint64_t load(const uint8_t *p, int bytes, bool big_endian)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[big_endian ? i : bytes - 1 - i];
	return v;
}

static double as_number(uint64_t v, enum interfile_number number, int bytes)
{
	double d;
	float s;
	uint32_t low = (uint32_t)v;
	int unused = 64 - 8 * bytes;

	switch (number) {
	case INTERFILE_SIGNED:
		return (double)((int64_t)(v << unused) >> unused);
	case INTERFILE_UNSIGNED:
		return (double)v;
	default:
		break;
	}
	if (bytes == 8) {
		memcpy(&d, &v, sizeof(d));
		return d;
	}
	memcpy(&s, &low, sizeof(s));
	return (double)s;
}

static void convert(const struct interfile *f, const uint8_t *p, size_t n, float *ret)
{
	bool plain = f->number == INTERFILE_FLOAT && f->bytes == 4 && !f->big_endian && f->scale == 1;

	if (plain) {
		memcpy(ret, p, n * sizeof(*ret));
		return;
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = (float)(as_number(load(p + i * (size_t)f->bytes, f->bytes, f->big_endian), f->number, f->bytes) *
				 f->scale);
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "plain floats are copied as they lie in the file");

void interfile_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	const struct michelogram *m = &f->m;
	size_t n_radial = (size_t)m->n_radial, n_angles = (size_t)m->n_angles, width = (size_t)f->bytes;
	size_t before = 0, axial = plane, planes = 0;

	if (f->kind == INTERFILE_PARALLEL) {
		size_t bins = (size_t)f->beams.n_angles * (size_t)f->beams.n_radial;

		convert(f, bytes + f->offset + plane * bins * width, bins, ret_values);
		return;
	}
	for (int i = 0; i < m->n_segments; i++) {
		planes = (size_t)m->segments[i].n_planes;
		if (axial < planes)
			break;
		axial -= planes;
		before += planes;
	}
	bytes += f->offset;
	if (f->order == INTERFILE_BY_PLANE) {
		convert(f, bytes + plane * n_angles * n_radial * width, n_angles * n_radial, ret_values);
		return;
	}
	bytes += before * n_angles * n_radial * width;
	for (size_t a = 0; a < n_angles; a++)
		convert(f, bytes + (a * planes + axial) * n_radial * width, n_radial, ret_values + a * n_radial);
}
