/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_complete.c - complete a header of PET projection data from the configuration of the scanner, and check everything;
 * compare two completed headers.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/config/config.h"
#include "node/format/interfile_internal.h"

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
	char list[300] = "";

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
		add_missing(list, sizeof(list), "distance between rings (cm)");
	if (s->radius == 0)
		add_missing(list, sizeof(list), "inner ring diameter (cm)");
	if (m->arc_corrected && s->bin == 0)
		add_missing(list, sizeof(list), "effective central bin size (cm)");
	if (!m->arc_corrected && s->detectors == 0)
		add_missing(list, sizeof(list), "number of detectors per ring");
	if (f->no_differences && !known)
		add_missing(list, sizeof(list), "minimum ring difference per segment, maximum ring difference per segment");
	if (list[0])
		return err_set(err, ENOKEY, "the header lacks: %s", list);
	return 0;
}

/* Without arc correction an angle is one of detectors / 2, or the mean of several neighbouring ones. */
static int check_views(const struct michelogram *m, struct err *err)
{
	if (m->arc_corrected || m->scanner.detectors % (2 * m->n_angles) == 0)
		return 0;
	return err_set(
		err, EBADMSG,
		"matrix size of the views := %d does not fit Number of detectors per ring := %d: applied corrections does not "
		"list \"arc correction\", and without it half of the detectors is a multiple of the views",
		m->n_angles, m->scanner.detectors);
}

/* The segment of the direct planes has the differences -n to n: in another one all planes would be tilted. */
static int check_direct(const struct michelogram *m, struct err *err)
{
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];

		if (s->first <= 0 && s->last >= 0 && s->first != -s->last)
			return err_set(
				err, EBADMSG,
				"segment %d: minimum ring difference per segment := %d, maximum ring difference per segment "
				":= %d; with 0 between them, the minimum must be minus the maximum",
				i, -s->last, -s->first);
	}
	return 0;
}

/* michelogram_check() does the same, but with rings counted from the other end. */
static int check_planes(const struct michelogram *m, struct err *err)
{
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];
		int n = michelogram_segment_planes(m->scanner.rings, s->first, s->last);

		if (n > 0 && n != s->n_planes)
			return err_set(
				err, EBADMSG,
				"segment %d has %d planes (matrix size), but ring differences %d to %d of %d rings (Number of "
				"rings) make %d",
				i, s->n_planes, -s->last, -s->first, m->scanner.rings, n);
	}
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
	if (rc == 0 && f->no_differences) {
		rc = known_differences(&m, known, err);
		if (rc == 0)
			interfile_reverse_rings(&m);
	}
	if (rc == 0)
		rc = check_views(&m, err);
	if (rc == 0)
		rc = check_direct(&m, err);
	if (rc == 0)
		rc = check_planes(&m, err);
	if (rc == 0)
		rc = interfile_check_mirrors(&m, err);
	if (rc == 0)
		rc = interfile_check_bins(f, &m, err);
	if (rc == 0)
		rc = interfile_check_rings(f, &m, err);
	if (rc == 0)
		rc = interfile_tof_complete(&m, known, err);
	if (rc == 0)
		rc = interfile_tof_check(&m, err);
	if (rc == 0 && m.arc_corrected && m.scanner.detectors == 0)
		interfile_note(
			f, "The header has no Number of detectors per ring: each view is taken as one angle. If M angles were "
			   "added into it, the image is turned by (M - 1) / 2 of their steps.");
	if (rc == 0 && michelogram_check(&m, err) < 0) {
		err_prefix(err, "with rings counted from the bed");
		if (err)
			err->code = EBADMSG;
		rc = -EBADMSG;
	}
	if (rc < 0) {
		free(m.segments);
		return rc;
	}
	memcpy(f->m.segments, m.segments, size); /* in its place: copies of f share the array */
	free(m.segments);
	m.segments = f->m.segments;
	f->m = m;
	f->no_differences = false;
	return 0;
}

/* ---- compare ---- */

/* Compare with a tolerance, because headers have numbers with few digits. */
static bool nearly_equal(double a, double b)
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
		if (!nearly_equal(numbers[i].one, numbers[i].other))
			return err_set(err, EBADMSG, "different geometry: %s: %g and %g", numbers[i].name, numbers[i].one,
				       numbers[i].other);
	for (int i = 0; i < m->n_segments; i++)
		if (m->segments[i].first != o->segments[i].first || m->segments[i].last != o->segments[i].last)
			return err_set(err, EBADMSG,
				       "different geometry: segment %d has ring differences %d to %d and %d to %d (segments must "
				       "be in the same order)",
				       i, -m->segments[i].last, -m->segments[i].first, -o->segments[i].last,
				       -o->segments[i].first);
	return 0;
}

int interfile_same_tof(const struct interfile *a, const struct interfile *b, struct err *err)
{
	const struct scan_tof *s = &a->m.tof, *t = &b->m.tof;

	if (s->n != t->n)
		return err_set(err, EBADMSG, "different TOF bins: number: %d and %d (0: no time of flight)", s->n, t->n);
	if (!nearly_equal(s->width, t->width) || !nearly_equal(s->sigma, t->sigma))
		return err_set(err, EBADMSG, "different TOF bins: width, mm: %g and %g; standard deviation, mm: %g and %g",
			       s->width, t->width, s->sigma, t->sigma);
	return 0;
}
