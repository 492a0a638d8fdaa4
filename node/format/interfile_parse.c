/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_parse.c - read the keys of an Interfile header (Todd-Pokropek, Cradduck & Deconinck 1992, with the keys that STIR
 * added for projection data). Only keys that affect the numbers are read; a key with an invalid value is an error, which names
 * its line. Sizes are limited before they are multiplied.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/format/interfile.h"
#include "node/format/interfile_lines.h"

#define SIDE_MAX 65535
#define ANGLES_MAX 4096
#define PLANES_MAX 65535
#define TINY 1e-9
#define LENGTH_MAX 20000.0 /* mm */
#define BLOCK 2048.0	   /* bytes: "data starting block" */

struct parser {
	struct interfile_lines lines;
	struct interfile *f;
	struct err *err;
};

/* Read the value in short form; 0: missing. */
static int short_value(const struct parser *p, const char *key, int index, char *ret, size_t size,
		       const struct interfile_line **ret_line)
{
	int rc = interfile_line_find(&p->lines, key, index, ret_line, p->err);

	ret[0] = '\0';
	if (rc > 0)
		interfile_short((*ret_line)->value, ret, size);
	return rc;
}

static int refuse(const struct parser *p, const struct interfile_line *line, int code, const char *allowed)
{
	return err_set(p->err, code, "line %d: %.60s := %.60s; supported: %s", line->number, line->name, line->value, allowed);
}

static int missing(const struct parser *p, const char *key)
{
	return err_set(p->err, EBADMSG, "\"%s\" is missing", key);
}

/* ---- number format and data file ---- */

static int read_format(struct parser *p)
{
	static const struct {
		const char *name;
		enum interfile_number number;
		int bytes; /* default; 0: the key is required */
	} formats[] = {
		{"float", INTERFILE_FLOAT, 0},
		{"shortfloat", INTERFILE_FLOAT, 4},
		{"longfloat", INTERFILE_FLOAT, 8},
		{"signedinteger", INTERFILE_SIGNED, 0},
		{"unsignedinteger", INTERFILE_UNSIGNED, 0},
	};
	const struct interfile_line *line;
	char text[40];
	int rc = short_value(p, "numberformat", 0, text, sizeof(text), &line), fixed = 0;

	if (rc <= 0)
		return rc < 0 ? rc : missing(p, "number format");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(text, formats[i].name)) {
			p->f->number = formats[i].number;
			fixed = formats[i].bytes;
		}
	if (!p->f->number)
		return refuse(p, line, ENOTSUP, "signed integer, unsigned integer, float, short float, long float");
	p->f->bytes = fixed;
	rc = interfile_line_int(&p->lines, "numberofbytesperpixel", 0, 1, 8, &p->f->bytes, p->err);
	if (rc < 0)
		return rc;
	if (rc == 0 && !fixed)
		return missing(p, "number of bytes per pixel");
	if (p->f->bytes != 1 && p->f->bytes != 2 && p->f->bytes != 4 && p->f->bytes != 8)
		return err_set(p->err, EBADMSG, "number of bytes per pixel := %d; supported: 1, 2, 4, 8", p->f->bytes);
	if (p->f->number == INTERFILE_FLOAT && p->f->bytes < 4)
		return err_set(p->err, EBADMSG, "number of bytes per pixel := %d; a float has 4 or 8", p->f->bytes);
	if (fixed && p->f->bytes != fixed)
		return err_set(p->err, EBADMSG, "number of bytes per pixel := %d; a %s has %d", p->f->bytes,
			       fixed == 4 ? "short float" : "long float", fixed);
	return 0;
}

/* Default: the most significant byte comes first (Interfile 3.3). */
static int read_byte_order(struct parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int rc = short_value(p, "imagedatabyteorder", 0, text, sizeof(text), &line);

	p->f->big_endian = rc == 0 || !strcmp(text, "bigendian");
	if (rc > 0 && !p->f->big_endian && strcmp(text, "littleendian") != 0)
		return refuse(p, line, EBADMSG, "LITTLEENDIAN, BIGENDIAN");
	return rc < 0 ? rc : 0;
}

static int read_offset(struct parser *p)
{
	double bytes = 0, block = 0;
	int rc = interfile_line_number(&p->lines, "dataoffsetinbytes", 1, 0, 0x1p50, &bytes, p->err);

	if (rc == 0) {
		rc = interfile_line_number(&p->lines, "datastartingblock", 0, 0, 0x1p39, &block, p->err);
		bytes = block * BLOCK;
	}
	if (rc >= 0 && bytes != floor(bytes))
		return err_set(p->err, EBADMSG, "data offset of %g bytes is not an integer", bytes);
	p->f->offset = (uint64_t)bytes;
	return rc < 0 ? rc : 0;
}

/* Read numbers for frames or segments, which must be equal; if missing, *ret is unchanged. */
static int read_alike(struct parser *p, const char *key, double *ret)
{
	double v[MICHELOGRAM_SEGMENTS_MAX];
	int n, rc = interfile_line_numbers(&p->lines, key, 1, -1e30, 1e30, MICHELOGRAM_SEGMENTS_MAX, v, &n, p->err);

	if (rc <= 0)
		return rc;
	for (int i = 1; i < n; i++)
		if (v[i] != v[0])
			return err_set(p->err, ENOTSUP, "\"%s\" differs: %g, %g; supported: one for all data", key, v[0], v[i]);
	*ret = v[0];
	return 1;
}

/* "quantification units" is also a factor; STIR uses it if the other one is 1. */
static int read_scale(struct parser *p)
{
	double scale = 1, units = 1;
	int rc = read_alike(p, "imagescalingfactor", &scale);

	if (rc >= 0)
		rc = read_alike(p, "quantificationunits", &units);
	if (rc < 0)
		return rc;
	if (scale != 1 && units != 1)
		return err_set(p->err, ENOTSUP, "image scaling factor %g and quantification units %g; allowed: one of them",
			       scale, units);
	p->f->scale = scale * units;
	if (p->f->scale == 0)
		return err_set(p->err, EBADMSG, "an image scaling factor of 0");
	return 0;
}

static int read_data(struct parser *p)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(&p->lines, "nameofdatafile", 0, &line, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : missing(p, "name of data file");
	if (strlen(line->value) >= sizeof(p->f->data_file))
		return refuse(p, line, EBADMSG, "at most 255 bytes");
	snprintf(p->f->data_file, sizeof(p->f->data_file), "%s", line->value);
	if ((rc = read_format(p)) < 0 || (rc = read_byte_order(p)) < 0 || (rc = read_offset(p)) < 0)
		return rc;
	return read_scale(p);
}

/* ---- the study ---- */

/* Read "2010:06:29" or "10:20:30", with any separator between the digits. */
static void read_moment(const struct parser *p, const char *key, size_t digits, char *ret)
{
	const struct interfile_line *line;
	size_t n = 0;

	if (interfile_line_find(&p->lines, key, 0, &line, NULL) <= 0)
		return;
	for (const char *at = line->value; *at && *at != '.' && n < digits; at++)
		if (*at >= '0' && *at <= '9')
			ret[n++] = *at;
	ret[n] = '\0';
	if (n != digits)
		ret[0] = '\0';
}

static int read_position(struct parser *p)
{
	static const char *const rotations[][2] = {{"supine", "S"}, {"prone", "P"}, {"right", "DR"}, {"left", "DL"}};
	const struct interfile_line *line;
	char orientation[20], rotation[20];
	int rc = short_value(p, "patientorientation", 0, orientation, sizeof(orientation), &line);

	if (rc >= 0)
		rc = short_value(p, "patientrotation", 0, rotation, sizeof(rotation), &line);
	if (rc < 0 || (strcmp(orientation, "headin") != 0 && strcmp(orientation, "feetin") != 0))
		return rc;
	for (size_t i = 0; i < sizeof(rotations) / sizeof(rotations[0]); i++)
		if (!strcmp(rotation, rotations[i][0]))
			snprintf(p->f->position, sizeof(p->f->position), "%s%s", orientation[0] == 'h' ? "HF" : "FF",
				 rotations[i][1]);
	return 0;
}

static int read_study(struct parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int frames = 1, rc = short_value(p, "typeofdata", 0, text, sizeof(text), &line);

	if (rc > 0 && !strcasecmp(text, "PARALLEL"))
		p->f->kind = INTERFILE_PARALLEL;
	else if (rc > 0 && strcasecmp(text, "PET") != 0)
		return refuse(p, line, ENOTSUP, "PET, PARALLEL");
	if (rc >= 0)
		rc = short_value(p, "compression", 0, text, sizeof(text), &line);
	if (rc > 0 && strcmp(text, "none") != 0)
		return refuse(p, line, ENOTSUP, "data that are not compressed");
	if (rc >= 0)
		rc = interfile_line_int(&p->lines, "numberoftimeframes", 0, 1, 100000, &frames, p->err);
	if (rc < 0)
		return rc;
	if (frames > 1)
		return err_set(p->err, ENOTSUP, "number of time frames := %d; supported: one, with a header for each frame",
			       frames);
	rc = interfile_line_number(&p->lines, "imageduration(sec)", 1, 0, 1e9, &p->f->duration, p->err);
	if (rc >= 0)
		rc = interfile_line_number(&p->lines, "imagerelativestarttime(sec)", 1, -1e9, 1e9, &p->f->start, p->err);
	if (rc < 0)
		return rc;
	read_moment(p, "studydate(yyyy:mm:dd)", 8, p->f->date);
	read_moment(p, "studydate", 8, p->f->date);
	read_moment(p, "studytime(hh:mm:ss)", 6, p->f->time);
	read_moment(p, "studytime", 6, p->f->time);
	return read_position(p);
}

/* Read "{arc correction, attenuation}": arc correction is part of the geometry, the others are stored as names. */
static int read_corrections(struct parser *p)
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
		interfile_short(word, name, sizeof(name));
		if (!strncmp(name, "arccorrect", 10)) {
			p->f->m.arc_corrected = true;
		} else if (name[0] && strcmp(name, "none") != 0) {
			if (used + strlen(word) + 2 > sizeof(p->f->corrections))
				return refuse(p, line, EBADMSG, "at most 250 bytes");
			if (used)
				p->f->corrections[used++] = ',';
			memcpy(p->f->corrections + used, word, strlen(word) + 1);
		}
		at += n + (at[n] != '\0');
	}
	p->f->precorrected = p->f->corrections[0] != '\0';
	return 0;
}

/* ---- projection data ---- */

enum axis { AXIS_TANGENTIAL = 1, AXIS_AXIAL, AXIS_VIEW, AXIS_SEGMENT, AXIS_TIMING };

static int read_axis(struct parser *p, int k, enum axis *ret_axis)
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
	int rc = short_value(p, "matrixaxislabel", k, text, sizeof(text), &line);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(p->err, EBADMSG, "\"matrix axis label [%d]\" is missing", k);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i].name)) {
			*ret_axis = names[i].axis;
			return 0;
		}
	return refuse(p, line, ENOTSUP, "tangential coordinate, axial coordinate, view, segment");
}

static int read_side(struct parser *p, int k, int most, int *ret)
{
	int rc = interfile_line_int(&p->lines, "matrixsize", k, 1, most, ret, p->err);

	if (rc == 0)
		return err_set(p->err, EBADMSG, "\"matrix size [%d]\" is missing", k);
	return rc < 0 ? rc : 0;
}

/* Read the order of axes: the position of each in *ret_place, 0: missing. */
static int read_axes(struct parser *p, int ret_place[AXIS_TIMING + 1])
{
	int dims, rc = interfile_line_int(&p->lines, "numberofdimensions", 0, 1, 10, &dims, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : missing(p, "number of dimensions");
	if (dims < 3 || dims > 5)
		return err_set(p->err, ENOTSUP, "number of dimensions := %d; sinograms have 3, 4 or 5", dims);
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
			       "(segment, axial, view, tangential) are");
	p->f->order = ret_place[AXIS_VIEW] == 3 ? INTERFILE_BY_VIEW : INTERFILE_BY_PLANE;
	return 0;
}

static int read_list(struct parser *p, const char *key, const char *name, int index, double lo, double hi, double *ret, int n)
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

static int read_segments(struct parser *p, const int *place)
{
	double planes[MICHELOGRAM_SEGMENTS_MAX], first[MICHELOGRAM_SEGMENTS_MAX], last[MICHELOGRAM_SEGMENTS_MAX];
	struct michelogram *m = &p->f->m;
	int rc = 0, lo, hi, n = 1;
	size_t sum = 0;
	char name[40];

	if (place[AXIS_SEGMENT])
		rc = read_side(p, place[AXIS_SEGMENT], MICHELOGRAM_SEGMENTS_MAX, &n);
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "matrix size [%d]", place[AXIS_AXIAL]);
	rc = read_list(p, "matrixsize", name, place[AXIS_AXIAL], 1, PLANES_MAX, planes, n);
	if (rc <= 0)
		return rc < 0 ? rc : missing(p, name);
	lo = read_list(p, "minimumringdifferencepersegment", "minimum ring difference per segment", 0, -PLANES_MAX, PLANES_MAX,
		       first, n);
	if (lo < 0)
		return lo;
	hi = read_list(p, "maximumringdifferencepersegment", "maximum ring difference per segment", 0, -PLANES_MAX, PLANES_MAX,
		       last, n);
	if (hi < 0)
		return hi;
	if (lo != hi)
		return missing(p, lo ? "maximum ring difference per segment" : "minimum ring difference per segment");
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

static int read_scanner(struct parser *p)
{
	const struct interfile_lines *l = &p->lines;
	struct pet_scanner *s = &p->f->m.scanner;
	const struct interfile_line *line;
	double diameter = 0;
	int rc = interfile_line_find(l, "scannertype", 0, &line, p->err);

	if (rc > 0 && strcasecmp(line->value, "unknown") != 0)
		snprintf(p->f->scanner, sizeof(p->f->scanner), "%.63s", line->value);
	if (rc < 0 || (rc = interfile_line_int(l, "numberofrings", 0, 1, 1024, &s->rings, p->err)) < 0 ||
	    (rc = interfile_line_int(l, "numberofdetectorsperring", 0, 1, SIDE_MAX, &s->detectors, p->err)) < 0 ||
	    (rc = interfile_line_length(l, "innerringdiameter", 0, TINY, LENGTH_MAX, &diameter, p->err)) < 0 ||
	    (rc = interfile_line_length(l, "averagedepthofinteraction", 0, 0, LENGTH_MAX, &s->interaction_depth, p->err)) < 0 ||
	    (rc = interfile_line_length(l, "distancebetweenrings", 0, TINY, LENGTH_MAX, &s->ring_spacing, p->err)) < 0 ||
	    (rc = interfile_line_number(l, "viewoffset(degrees)", 0, -360, 360, &p->f->m.angle_offset, p->err)) < 0)
		return rc;
	s->radius = diameter / 2;
	rc = interfile_line_length(l, "effectivecentralbinsize", 0, TINY, LENGTH_MAX, &s->bin, p->err);
	if (rc == 0)
		rc = interfile_line_length(l, "defaultbinsize", 0, 0, LENGTH_MAX, &s->bin, p->err);
	return rc < 0 ? rc : 0;
}

static int read_projections(struct parser *p)
{
	int place[AXIS_TIMING + 1] = {0}, timing = 1, rc = read_axes(p, place);

	if (rc < 0 || (rc = read_side(p, 1, SIDE_MAX, &p->f->m.n_radial)) < 0 ||
	    (rc = read_side(p, place[AXIS_VIEW], ANGLES_MAX, &p->f->m.n_angles)) < 0)
		return rc;
	if (place[AXIS_TIMING] && (rc = read_side(p, place[AXIS_TIMING], SIDE_MAX, &timing)) < 0)
		return rc;
	if (timing > 1)
		return err_set(p->err, ENOTSUP, "%d timing positions: time of flight is not supported", timing);
	if ((rc = read_segments(p, place)) < 0 || (rc = read_corrections(p)) < 0)
		return rc;
	return read_scanner(p);
}

/* ---- images ---- */

static int read_image(struct parser *p)
{
	struct interfile *f = p->f;
	int dims, rc = interfile_line_int(&p->lines, "numberofdimensions", 0, 1, 10, &dims, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : missing(p, "number of dimensions");
	if (dims != 3)
		return err_set(p->err, ENOTSUP, "number of dimensions := %d; an image has 3", dims);
	for (int c = 0; c < 3; c++) {
		rc = read_side(p, c + 1, SIDE_MAX, &f->n[c]);
		if (rc < 0)
			return rc;
		rc = interfile_line_number(&p->lines, "scalingfactor(mm/pixel)", c + 1, TINY, LENGTH_MAX, &f->spacing[c], p->err);
		if (rc <= 0)
			return rc < 0 ? rc : err_set(p->err, EBADMSG, "\"scaling factor (mm/pixel) [%d]\" is missing", c + 1);
		f->first[c] = c < 2 ? -(f->n[c] / 2) * f->spacing[c] : 0; /* integer division: STIR's index 0 */
		rc = interfile_line_number(&p->lines, "firstpixeloffset(mm)", c + 1, -LENGTH_MAX, LENGTH_MAX, &f->first[c],
					   p->err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_all(struct parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int rc = short_value(p, "petdatatype", 0, text, sizeof(text), &line);

	if (rc < 0 || (rc = read_data(p)) < 0 || (rc = read_study(p)) < 0)
		return rc;
	if (p->f->kind == INTERFILE_PARALLEL)
		return interfile_read_parallel(&p->lines, p->f, p->err);
	p->f->kind = strcmp(text, "image") ? INTERFILE_PROJECTIONS : INTERFILE_IMAGE;
	return p->f->kind == INTERFILE_IMAGE ? read_image(p) : read_projections(p);
}

int interfile_parse(const char *text, size_t size, struct interfile *ret, struct err *err)
{
	struct interfile f = {.duration = NAN, .start = NAN};
	struct parser p = {.f = &f, .err = err};
	int rc = interfile_lines_read(text, size, &p.lines, err);

	if (rc < 0)
		return rc;
	f.m.angle_offset = NAN;
	f.m.scanner.interaction_depth = NAN;
	rc = read_all(&p);
	interfile_lines_clear(&p.lines);
	if (rc < 0)
		interfile_clear(&f);
	else
		*ret = f;
	return rc < 0 ? rc : 0;
}
