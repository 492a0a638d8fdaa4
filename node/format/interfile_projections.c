/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_projections.c - headers of PET projection data, as STIR writes them: order of the axes, segments, scanner, applied
 * corrections.
 *
 * A file numbers rings as STIR does, from the depth of the gantry to the bed ("the first ring of the scanner is the ring furthest
 * from the bed", STIR developers' overview), against the order in memory: segments have the opposite ring differences, and their
 * planes the opposite order.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/base/plural.h"
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
	int dims, rc = interfile_dimensions(p, 3, 5, "sinograms have 3, 4 or 5", &dims);

	if (rc < 0)
		return rc;
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
		return rc < 0 ? interfile_add_label(p, place[AXIS_AXIAL], rc) : interfile_missing(p, name);
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
	for (int i = 0; lo && i < n; i++)
		if (first[i] > last[i])
			return err_set(
				p->err, EBADMSG,
				"minimum ring difference per segment %g is above maximum ring difference per segment %g in "
				"segment %d: are the two keys exchanged?",
				first[i], last[i], i);
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

/* Read a length in mm, by its key with "(cm)", and note its unit in the header. */
static int read_length(struct interfile_parser *p, const char *key, enum interfile_length length, double lo, double *ret_mm)
{
	const struct interfile_line *line;
	int rc = interfile_line_length(&p->lines, key, 0, lo, INTERFILE_LENGTH_MAX, ret_mm, p->err);

	if (rc > 0 && interfile_line_find(&p->lines, key, 0, &line, NULL) == 0)
		p->f->in_mm |= length;
	return rc;
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
	    (rc = read_length(p, "innerringdiameter(cm)", INTERFILE_DIAMETER, INTERFILE_TINY, &diameter)) < 0 ||
	    (rc = read_length(p, "averagedepthofinteraction(cm)", INTERFILE_DEPTH, 0, &s->interaction_depth)) < 0 ||
	    (rc = interfile_line_length(l, "distancebetweenrings(cm)", 0, INTERFILE_TINY, INTERFILE_LENGTH_MAX, &s->ring_spacing,
					p->err)) < 0 ||
	    (rc = interfile_line_number(l, "viewoffset(degrees)", 0, -360, 360, &p->f->m.angle_offset, p->err)) < 0)
		return rc;
	s->radius = diameter / 2;
	rc = check_bins(p);
	if (rc < 0)
		return rc;
	rc = read_length(p, "effectivecentralbinsize(cm)", INTERFILE_CENTRAL_BIN, INTERFILE_TINY, &p->f->central_bin);
	if (rc < 0 ||
	    (rc = read_length(p, "defaultbinsize(cm)", INTERFILE_DEFAULT_BIN, -INTERFILE_LENGTH_MAX, &p->f->default_bin)) < 0)
		return rc;
	p->f->default_bin = fmax(p->f->default_bin, 0); /* STIR writes -1 for a scanner that has none */
	s->bin = p->f->central_bin > 0 ? p->f->central_bin : p->f->default_bin;
	rc = interfile_read_shape(p);
	return rc < 0 ? rc : interfile_read_energy(p);
}

void interfile_reverse_rings(struct michelogram *m)
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
	if ((rc = read_segments(p, place)) < 0 || (rc = interfile_corrections(p)) < 0 || (rc = read_scanner(p)) < 0)
		return rc;
	interfile_reverse_rings(&p->f->m);
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
		put_list(w, "minimum ring difference per segment", m, minus_last_of);
		put_list(w, "maximum ring difference per segment", m, minus_first_of);
	}
	interfile_tof_write(w, f);
	write_scanner(w, f);
	if (!m->arc_corrected && m->scanner.radius > 0 && m->scanner.detectors > 0 && isfinite(m->scanner.interaction_depth))
		interfile_put_number(w, "effective central bin size (cm)", michelogram_radius(m, m->n_radial / 2 + 1) / 10);
	else if (m->scanner.bin > 0)
		interfile_put_number(w, "effective central bin size (cm)", m->scanner.bin / 10);
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

/* A plane of a TOF bin of a file. */
struct stored {
	size_t before; /* planes of the segments before its own */
	size_t planes; /* of its segment */
	size_t axial;  /* its number in the segment, in STIR's order of rings */
};

/* Find plane `axial` of the order in memory. */
static struct stored find_plane(const struct michelogram *m, size_t axial)
{
	struct stored s = {0};

	for (int i = 0; i < m->n_segments; i++) {
		s.planes = (size_t)m->segments[i].n_planes;
		if (axial < s.planes)
			break;
		axial -= s.planes;
		s.before += s.planes;
	}
	s.axial = s.planes - 1 - axial;
	return s;
}

size_t interfile_place(const struct michelogram *m, size_t plane)
{
	size_t all = michelogram_planes(m), bin = plane / all;
	struct stored s = find_plane(m, plane % all);

	return (m->tof.n > 0 ? (size_t)m->tof.n - 1 - bin : 0) * all + s.before + s.axial;
}

static void convert_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	const struct michelogram *m = &f->m;
	size_t n_radial = (size_t)m->n_radial, n_angles = (size_t)m->n_angles, width = (size_t)f->bytes;
	size_t all = michelogram_planes(m);
	struct stored s = find_plane(m, plane % all);

	bytes += (interfile_tof_stored(f, plane / all) * all + s.before) * n_angles * n_radial * width;
	if (f->order == INTERFILE_BY_PLANE) {
		interfile_convert(f, bytes + s.axial * n_angles * n_radial * width, n_angles * n_radial, ret_values);
		return;
	}
	for (size_t a = 0; a < n_angles; a++)
		interfile_convert(f, bytes + (a * s.planes + s.axial) * n_radial * width, n_radial, ret_values + a * n_radial);
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
