/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_projections.c - headers of PET projection data, as STIR writes them: order of the axes, segments, scanner, applied
 * corrections. Values that a header does not have are filled in from the configuration of the scanner.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/base/plural.h"
#include "node/config/config.h"
#include "node/format/interfile_internal.h"

#define ANGLES_MAX 4096
#define PLANES_MAX 65535

/* ---- read ---- */

/* Read "{arc correction, attenuation}": arc correction is part of the geometry, the others are stored as names. */
int interfile_corrections(struct interfile_parser *p)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(&p->lines, "appliedcorrections", 0, &line, p->err);
	const char *at;

	if (rc <= 0)
		return rc;
	for (at = line->value; *at;) {
		size_t n = strcspn(at, ",{}"), used = strlen(p->f->corrections), first = strspn(at, " \t");
		char word[256], name[256];

		snprintf(word, sizeof(word), "%.*s", (int)(n - (first < n ? first : n)), at + (first < n ? first : n));
		while (word[0] && (word[strlen(word) - 1] == ' ' || word[strlen(word) - 1] == '\t'))
			word[strlen(word) - 1] = '\0';
		interfile_normalise(word, name, sizeof(name));
		if (!strncmp(name, "arccorrect", 10) || !strncmp(name, "radialarc-correct", 17)) {
			p->f->m.arc_corrected = true;
		} else if (name[0] && strcmp(name, "none") != 0) {
			if (used + strlen(word) + 2 > sizeof(p->f->corrections))
				return interfile_unsupported(p, line, EBADMSG, "at most 250 bytes");
			if (used)
				p->f->corrections[used++] = ',';
			memcpy(p->f->corrections + used, word, strlen(word) + 1);
		}
		at += n + (at[n] != '\0');
	}
	p->f->precorrected = p->f->corrections[0] != '\0';
	return 0;
}

enum axis { AXIS_TANGENTIAL = 1, AXIS_AXIAL, AXIS_VIEW, AXIS_SEGMENT, AXIS_TIMING };

static int read_axis(struct interfile_parser *p, int k, enum axis *ret_axis)
{
	static const struct {
		const char *name;
		enum axis axis;
	} names[] = {
		{"tangentialcoordinate", AXIS_TANGENTIAL},
		{"tangential", AXIS_TANGENTIAL},
		{"radialcoordinate", AXIS_TANGENTIAL},
		{"bin", AXIS_TANGENTIAL},
		{"axialcoordinate", AXIS_AXIAL},
		{"axial", AXIS_AXIAL},
		{"plane", AXIS_AXIAL},
		{"view", AXIS_VIEW},
		{"angle", AXIS_VIEW},
		{"segment", AXIS_SEGMENT},
		{"timingpositions", AXIS_TIMING},
		{"timingposition", AXIS_TIMING},
	};
	const struct interfile_line *line;
	char text[40];
	int rc = interfile_word(p, "matrixaxislabel", k, text, sizeof(text), &line);

	if (rc < 0)
		return rc;
	if (rc == 0 && k == AXIS_TIMING)
		return err_set(
			p->err, EBADMSG,
			"\"matrix axis label [%d]\" is missing; with 5 dimensions it is \"timing positions\", the TOF bins", k);
	if (rc == 0) {
		snprintf(text, sizeof(text), "matrix axis label [%d]", k);
		return interfile_missing(p, text);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i].name)) {
			*ret_axis = names[i].axis;
			return 0;
		}
	return interfile_unsupported(p, line, ENOTSUP,
				     "tangential coordinate, axial coordinate, view, segment, timing positions");
}

/* Refuse an axis beyond the number of dimensions: its data would be missing. */
static int check_dimensions(const struct interfile_parser *p, int dims)
{
	static const char *const keys[] = {"matrixaxislabel", "matrixsize"};
	const struct interfile_line *line;
	int rc = 0;

	for (int k = dims + 1; rc == 0 && k <= AXIS_TIMING; k++)
		for (size_t i = 0; rc == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
			rc = interfile_line_find(&p->lines, keys[i], k, &line, p->err);
			if (rc > 0)
				rc = err_set(p->err, EBADMSG, "line %d: %.60s := %.60s, but number of dimensions := %d",
					     line->number, line->name, line->value, dims);
		}
	return rc;
}

/* Read the order of axes: the position of each in *ret_place, 0: missing. */
static int read_axes(struct interfile_parser *p, int ret_place[AXIS_TIMING + 1])
{
	int dims, rc = interfile_line_int(&p->lines, "numberofdimensions", 0, 1, 10, &dims, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "number of dimensions");
	if (dims < 3 || dims > 5)
		return err_set(p->err, ENOTSUP, "number of dimensions := %d; sinograms have 3, 4 or 5", dims);
	rc = check_dimensions(p, dims);
	if (rc < 0)
		return rc;
	for (int k = 1; k <= dims; k++) {
		enum axis axis = 0;

		rc = read_axis(p, k, &axis);
		if (rc < 0)
			return rc;
		if (ret_place[axis])
			return err_set(p->err, EBADMSG, "matrix axis labels %d and %d are the same", ret_place[axis], k);
		ret_place[axis] = k;
	}
	if (ret_place[AXIS_TANGENTIAL] != 1 || ret_place[AXIS_AXIAL] + ret_place[AXIS_VIEW] != 5 ||
	    (ret_place[AXIS_SEGMENT] != 0 && ret_place[AXIS_SEGMENT] != 4) || (dims == 5 && ret_place[AXIS_TIMING] != 5) ||
	    (dims == 4 && ret_place[AXIS_SEGMENT] != 4))
		return err_set(p->err, ENOTSUP,
			       "an order of axes that is not read: slowest first, (segment, view, axial, tangential) and "
			       "(segment, axial, view, tangential) are, with timing positions before the segment");
	p->f->order = ret_place[AXIS_VIEW] == 3 ? INTERFILE_BY_VIEW : INTERFILE_BY_PLANE;
	return 0;
}

static int read_list(struct interfile_parser *p, const char *key, const char *name, int index, double lo, double hi, double *ret,
		     int n)
{
	int there, rc = interfile_line_numbers(&p->lines, key, index, lo, hi, n, ret, &there, p->err);

	if (rc <= 0)
		return rc;
	for (int i = 0; i < there; i++)
		if (ret[i] != floor(ret[i]))
			return err_set(p->err, EBADMSG, "%s: %g is not an integer", name, ret[i]);
	if (there != n)
		return err_set(p->err, EBADMSG, "%s: %d numbers for %d segments", name, there, n);
	return 1;
}

static int read_segments(struct interfile_parser *p, const int *place)
{
	double planes[MICHELOGRAM_SEGMENTS_MAX], first[MICHELOGRAM_SEGMENTS_MAX], last[MICHELOGRAM_SEGMENTS_MAX];
	struct michelogram *m = &p->f->m;
	int rc = 0, lo, hi, n = 1;
	size_t sum = 0;
	char name[40];

	if (place[AXIS_SEGMENT])
		rc = interfile_side(p, place[AXIS_SEGMENT], MICHELOGRAM_SEGMENTS_MAX, &n);
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "matrix size [%d]", place[AXIS_AXIAL]);
	rc = read_list(p, "matrixsize", name, place[AXIS_AXIAL], 1, PLANES_MAX, planes, n);
	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, name);
	lo = read_list(p, "minimumringdifferencepersegment", "minimum ring difference per segment", 0, -PLANES_MAX, PLANES_MAX,
		       first, n);
	if (lo < 0)
		return lo;
	hi = read_list(p, "maximumringdifferencepersegment", "maximum ring difference per segment", 0, -PLANES_MAX, PLANES_MAX,
		       last, n);
	if (hi < 0)
		return hi;
	if (lo != hi)
		return interfile_missing(p, lo ? "maximum ring difference per segment" : "minimum ring difference per segment");
	m->segments = calloc((size_t)n, sizeof(*m->segments));
	if (!m->segments)
		return err_set(p->err, ENOMEM, "no memory for %d segments", n);
	m->n_segments = n;
	p->f->no_differences = !lo;
	for (int i = 0; i < n; i++) {
		m->segments[i].n_planes = (int)planes[i];
		m->segments[i].first = lo ? (int)first[i] : 0;
		m->segments[i].last = lo ? (int)last[i] : 0;
		sum += (size_t)m->segments[i].n_planes;
	}
	return sum <= PLANES_MAX
		       ? 0
		       : err_set(p->err, EBADMSG, "%zu planes in all segments; at most %d are supported", sum, PLANES_MAX);
}

/* Refuse more bins than the scanner has without arc correction: if the data are arc-corrected and the header does not say so, the
 * bins would be at wrong distances. 0 and negative numbers: not known. */
static int check_bins(const struct interfile_parser *p)
{
	int most = 0, rc;

	rc = interfile_line_int(&p->lines, "maximumnumberofnon-arc-correctedbins", 0, -INTERFILE_SIDE_MAX, INTERFILE_SIDE_MAX,
				&most, p->err);
	if (rc < 0 || p->f->m.arc_corrected || most <= 0 || p->f->m.n_radial <= most)
		return rc < 0 ? rc : 0;
	return err_set(
		p->err, EBADMSG,
		"matrix size [1] := %d, but Maximum number of non-arc-corrected bins := %d, and applied corrections does not "
		"list \"arc correction\": one of the three is wrong",
		p->f->m.n_radial, most);
}

static int read_scanner(struct interfile_parser *p)
{
	const struct interfile_lines *l = &p->lines;
	struct pet_scanner *s = &p->f->m.scanner;
	const struct interfile_line *line;
	double diameter = 0;
	int rc = interfile_line_find(l, "scannertype", 0, &line, p->err);

	if (rc > 0 && strcasecmp(line->value, "unknown") != 0)
		snprintf(p->f->scanner, sizeof(p->f->scanner), "%.63s", line->value);
	if (rc < 0 || (rc = interfile_line_int(l, "numberofrings", 0, 1, 1024, &s->rings, p->err)) < 0 ||
	    (rc = interfile_line_int(l, "numberofdetectorsperring", 0, 1, INTERFILE_SIDE_MAX, &s->detectors, p->err)) < 0 ||
	    (rc = interfile_line_length(l, "innerringdiameter", 0, INTERFILE_TINY, INTERFILE_LENGTH_MAX, &diameter, p->err)) <
		    0 ||
	    (rc = interfile_line_length(l, "averagedepthofinteraction", 0, 0, INTERFILE_LENGTH_MAX, &s->interaction_depth,
					p->err)) < 0 ||
	    (rc = interfile_line_length(l, "distancebetweenrings", 0, INTERFILE_TINY, INTERFILE_LENGTH_MAX, &s->ring_spacing,
					p->err)) < 0 ||
	    (rc = interfile_line_number(l, "viewoffset(degrees)", 0, -360, 360, &p->f->m.angle_offset, p->err)) < 0)
		return rc;
	s->radius = diameter / 2;
	rc = check_bins(p);
	if (rc < 0)
		return rc;
	rc = interfile_line_length(l, "effectivecentralbinsize", 0, INTERFILE_TINY, INTERFILE_LENGTH_MAX, &p->f->central_bin,
				   p->err);
	if (rc < 0 || (rc = interfile_line_length(l, "defaultbinsize", 0, -INTERFILE_LENGTH_MAX, INTERFILE_LENGTH_MAX,
						  &p->f->default_bin, p->err)) < 0)
		return rc;
	p->f->default_bin = fmax(p->f->default_bin, 0); /* STIR writes -1 for a scanner that has none */
	s->bin = p->f->central_bin > 0 ? p->f->central_bin : p->f->default_bin;
	rc = interfile_read_shape(p);
	return rc < 0 ? rc : interfile_read_energy(p);
}

/* Note the misspelt keys of the scanner, without which the header may be incomplete. */
static void find_misspelt(struct interfile_parser *p)
{
	static const char *const keys[] = {"Number of rings",
					   "Number of detectors per ring",
					   "Inner ring diameter (cm)",
					   "Distance between rings (cm)",
					   "effective central bin size (cm)",
					   "minimum ring difference per segment"};
	const struct pet_scanner *s = &p->f->m.scanner;
	const bool there[] = {s->rings > 0,	   s->detectors > 0, s->radius > 0,
			      s->ring_spacing > 0, s->bin > 0,	     !p->f->no_differences};
	char *text = p->f->misspelt;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct interfile_line *line = there[i] ? NULL : interfile_line_misspelt(&p->lines, keys[i]);
		size_t n = strlen(text);

		if (line)
			snprintf(text + n, sizeof(p->f->misspelt) - n, "; line %d: \"%.60s\": did you mean \"%s\"?", line->number,
				 line->name, keys[i]);
	}
}

/* "first ring": where the file's ring 0 is. STIR has no such key: its first ring is the one furthest from the bed (STIR
 * developers' overview, section on the coordinate system). */
static int read_direction(struct interfile_parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int rc = interfile_word(p, "firstring", 0, text, sizeof(text), &line);

	p->f->outward = rc == 0 || !strcmp(text, "furthestfromthebed");
	if (rc > 0 && !p->f->outward && strcmp(text, "nearesttothebed") != 0)
		return interfile_unsupported(p, line, EBADMSG, "furthest from the bed, nearest to the bed");
	return rc < 0 ? rc : 0;
}

/* Count rings from the other end. */
static void reverse_rings(struct michelogram *m)
{
	for (int i = 0; i < m->n_segments; i++) {
		int first = m->segments[i].first;

		m->segments[i].first = -m->segments[i].last;
		m->segments[i].last = -first;
	}
}

static int read_keys(struct interfile_parser *p)
{
	int place[AXIS_TIMING + 1] = {0}, timing = 1, rc = read_axes(p, place);

	if (rc < 0 || (rc = interfile_side(p, 1, INTERFILE_SIDE_MAX, &p->f->m.n_radial)) < 0 ||
	    (rc = interfile_side(p, place[AXIS_VIEW], ANGLES_MAX, &p->f->m.n_angles)) < 0)
		return rc;
	if (place[AXIS_TIMING] && (rc = interfile_side(p, place[AXIS_TIMING], MICHELOGRAM_TOF_MAX, &timing)) < 0)
		return rc;
	if ((rc = read_segments(p, place)) < 0 || (rc = interfile_corrections(p)) < 0 || (rc = read_scanner(p)) < 0 ||
	    (rc = read_direction(p)) < 0)
		return rc;
	if (p->f->outward)
		reverse_rings(&p->f->m);
	find_misspelt(p);
	return timing > 1 ? interfile_tof_read(p, timing) : 0;
}

/* ---- write ---- */

static void put_list(struct interfile_writer *w, const char *key, const struct michelogram *m,
		     int (*of)(const struct michelogram_segment *))
{
	interfile_put(w, "%s := {", key);
	for (int i = 0; i < m->n_segments; i++)
		interfile_put(w, "%s%d", i ? "," : " ", of(&m->segments[i]));
	interfile_put(w, "}\n");
}

static int first_of(const struct michelogram_segment *s)
{
	return s->first;
}

static int last_of(const struct michelogram_segment *s)
{
	return s->last;
}

static int minus_first_of(const struct michelogram_segment *s)
{
	return -s->first;
}

static int minus_last_of(const struct michelogram_segment *s)
{
	return -s->last;
}

static int planes_of(const struct michelogram_segment *s)
{
	return s->n_planes;
}

static void put_known(struct interfile_writer *w, const char *key, double value)
{
	if (value > 0)
		interfile_put_number(w, key, value);
}

/* Write the scanner, without the numbers that are not known. */
static void write_scanner(struct interfile_writer *w, const struct interfile *f)
{
	const struct pet_scanner *s = &f->m.scanner;

	interfile_put(w, "Scanner parameters :=\nScanner type := %s\n", f->scanner[0] ? f->scanner : "Unknown");
	put_known(w, "Number of rings", s->rings);
	put_known(w, "Number of detectors per ring", s->detectors);
	put_known(w, "Inner ring diameter (cm)", s->radius * 2 / 10);
	if (isfinite(s->interaction_depth))
		interfile_put_number(w, "Average depth of interaction (cm)", s->interaction_depth / 10);
	put_known(w, "Distance between rings (cm)", s->ring_spacing / 10);
	put_known(w, "Default bin size (cm)", s->bin / 10);
	if (isfinite(f->m.angle_offset))
		interfile_put_number(w, "View offset (degrees)", f->m.angle_offset);
	interfile_put(w, "Maximum number of non-arc-corrected bins := %d\n", f->m.n_radial);
	interfile_put(w, "Default number of arc-corrected bins := %d\n", f->m.n_radial);
	interfile_put(w, "end scanner parameters :=\n");
}

static void write_keys(struct interfile_writer *w, const struct interfile *f)
{
	const struct michelogram *m = &f->m;
	bool by_view = f->order == INTERFILE_BY_VIEW;

	if (m->arc_corrected || f->corrections[0])
		interfile_put(w, "applied corrections := {%s%s%s}\n", m->arc_corrected ? "arc correction" : "",
			      m->arc_corrected && f->corrections[0] ? "," : "", f->corrections);
	else
		interfile_put(w, "applied corrections := {None}\n");
	interfile_put(w, "number of dimensions := %d\n", m->tof.n > 0 ? 5 : 4);
	if (m->tof.n > 0)
		interfile_put(w, "matrix axis label [5] := timing positions\n!matrix size [5] := %d\n", m->tof.n);
	interfile_put(w, "matrix axis label [4] := segment\n!matrix size [4] := %d\n", m->n_segments);
	interfile_put(w, "matrix axis label [%d] := view\n!matrix size [%d] := %d\n", by_view ? 3 : 2, by_view ? 3 : 2,
		      m->n_angles);
	interfile_put(w, "matrix axis label [%d] := axial coordinate\n", by_view ? 2 : 3);
	put_list(w, by_view ? "!matrix size [2]" : "!matrix size [3]", m, planes_of);
	interfile_put(w, "matrix axis label [1] := tangential coordinate\n!matrix size [1] := %d\n", m->n_radial);
	if (!f->no_differences) {
		put_list(w, "minimum ring difference per segment", m, f->outward ? minus_last_of : first_of);
		put_list(w, "maximum ring difference per segment", m, f->outward ? minus_first_of : last_of);
	}
	if (!f->outward)
		interfile_put(w, "first ring := nearest to the bed\n");
	interfile_tof_write(w, f);
	write_scanner(w, f);
	if (!m->arc_corrected && m->scanner.radius > 0 && m->scanner.detectors > 0 && isfinite(m->scanner.interaction_depth))
		interfile_put_number(w, "effective central bin size (cm)", michelogram_radius(m, m->n_radial / 2 + 1) / 10);
	else if (m->scanner.bin > 0)
		interfile_put_number(w, "effective central bin size (cm)", m->scanner.bin / 10);
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
		return err_set(err, ENOKEY, "the header lacks: %s%s", list, f->misspelt);
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
static int check_direct(const struct michelogram *m, bool outward, struct err *err)
{
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];

		if (s->first <= 0 && s->last >= 0 && s->first != -s->last)
			return err_set(
				err, EBADMSG,
				"segment %d: minimum ring difference per segment := %d, maximum ring difference per segment "
				":= %d; with 0 between them, the minimum must be minus the maximum",
				i, outward ? -s->last : s->first, outward ? -s->first : s->last);
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
		if (rc == 0 && f->outward)
			reverse_rings(&m);
	}
	if (rc == 0)
		rc = check_views(&m, err);
	if (rc == 0)
		rc = check_direct(&m, f->outward, err);
	if (rc == 0)
		rc = interfile_check_mirrors(&m, f->outward, err);
	if (rc == 0)
		rc = interfile_check_bins(f, &m, err);
	if (rc == 0)
		rc = interfile_check_rings(&m, err);
	if (rc == 0)
		rc = interfile_tof_complete(&m, known, err);
	if (rc == 0)
		rc = interfile_tof_check(&m, err);
	if (rc == 0 && michelogram_check(&m, err) < 0) {
		if (f->outward)
			err_prefix(err, "with rings counted from the bed");
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
				       "different geometry: segment %d has ring differences %d to %d and %d to %d%s (segments "
				       "must be in "
				       "the same order)",
				       i, m->segments[i].first, m->segments[i].last, o->segments[i].first, o->segments[i].last,
				       a->outward || b->outward ? ", counted from the bed" : "");
	return 0;
}

int interfile_same_tof(const struct interfile *a, const struct interfile *b, struct err *err)
{
	const struct scan_tof *s = &a->m.tof, *t = &b->m.tof;

	if (s->n != t->n)
		return err_set(err, EBADMSG, "different TOF bins: number: %d and %d (0: no time of flight)", s->n, t->n);
	if (!near(s->width, t->width) || !near(s->sigma, t->sigma))
		return err_set(err, EBADMSG, "different TOF bins: width, mm: %g and %g; standard deviation, mm: %g and %g",
			       s->width, t->width, s->sigma, t->sigma);
	return 0;
}

/* ---- data ---- */

static size_t count_tof_bins(const struct interfile *f)
{
	return f->m.tof.n > 0 ? (size_t)f->m.tof.n : 1;
}

static void clear_arrays(struct interfile *f)
{
	free(f->m.segments);
	f->m.segments = NULL;
	f->m.n_segments = 0;
}

static void find_shape(const struct interfile *f, size_t *ret_planes, size_t *ret_values)
{
	*ret_planes = michelogram_planes(&f->m) * count_tof_bins(f);
	*ret_values = (size_t)f->m.n_angles * (size_t)f->m.n_radial;
}

static void describe_extent(const struct interfile *f, char *ret_text, size_t size)
{
	char tof[32] = "";

	if (f->m.tof.n > 0)
		snprintf(tof, sizeof(tof), "%d TOF bins, ", f->m.tof.n);
	snprintf(ret_text, size, "%s%zu plane%s, %d angles, %d radial bins of %d byte%s", tof, michelogram_planes(&f->m),
		 plural(michelogram_planes(&f->m)), f->m.n_angles, f->m.n_radial, f->bytes, plural(f->bytes));
}

static void convert_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	const struct michelogram *m = &f->m;
	size_t n_radial = (size_t)m->n_radial, n_angles = (size_t)m->n_angles, width = (size_t)f->bytes;
	size_t before = 0, planes = 0, all = michelogram_planes(m), axial = plane % all;

	bytes += interfile_tof_stored(f, plane / all) * all * n_angles * n_radial * width;
	for (int i = 0; i < m->n_segments; i++) {
		planes = (size_t)m->segments[i].n_planes;
		if (axial < planes)
			break;
		axial -= planes;
		before += planes;
	}
	if (f->outward)
		axial = planes - 1 - axial;
	if (f->order == INTERFILE_BY_PLANE) {
		interfile_convert(f, bytes + (before + axial) * n_angles * n_radial * width, n_angles * n_radial, ret_values);
		return;
	}
	bytes += before * n_angles * n_radial * width;
	for (size_t a = 0; a < n_angles; a++)
		interfile_convert(f, bytes + (a * planes + axial) * n_radial * width, n_radial, ret_values + a * n_radial);
}

const struct interfile_type interfile_projections = {
	.id = "INTERFILE_3.3",
	.title = "PET",
	.modality = "PT",
	.data_type = "PET",
	.general_keys = "!version of keys := STIR3.0\n!GENERAL DATA :=\n!GENERAL IMAGE DATA :=\n",
	.study_keys = "!PET STUDY (General) :=\n!PET data type := Emission\n",
	.read = read_keys,
	.write = write_keys,
	.clear = clear_arrays,
	.shape = find_shape,
	.extent = describe_extent,
	.plane = convert_plane,
};
