/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_siemens.c - sub-headers of PET projection data that Siemens scanners and e7tools write, after the STIR sources
 * (InterfileHeaderSiemens.cxx, stir_ecat_common.cxx); no data of a scanner were available. They differ from STIR's headers:
 * - the key "%SMS-MI version number" marks them; keys of the manufacturer begin with '%', times have no index;
 * - segments and their ring differences follow from axial compression and maximum ring difference, in the order 0, -1, +1, -2
 * ...; the segment table must agree with them;
 * - axes are numbered from the fastest: radial bins, angles, planes of all segments, TOF bins; some headers have no axis for TOF
 *   bins, only their number;
 * - TOF bins are stored in the order 0, +1, -1, +2 ...;
 * - one data file may contain several types of data (prompts, randoms): the first is read, the others are not.
 * They contain neither the size of the scanner nor its first angle: those come from the configuration.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tof.h"
#include "node/format/interfile_internal.h"

#define RINGS_MAX 1024
#define PLANES_MAX 65535
#define ANGLES_MAX 4096
#define TYPES_MAX (MICHELOGRAM_TOF_MAX + 3)

/* ---- the model ---- */

static int read_system(struct interfile_parser *p)
{
	static const struct {
		const char *number, *model;
	} systems[] = {
		{"1208", "Biograph Vision 600"}, {"1232", "Biograph Vision Quadra"}, {"2008", INTERFILE_MMR},
		{"1104", "Biograph mCT"},	 {"1094", "Biograph mCT"},	     {"2011", "Biograph mCT"},
	};
	const struct interfile_line *line;
	const char *model;
	int rc = interfile_line_find(&p->lines, "originatingsystem", 0, &line, p->err);

	if (rc <= 0)
		return rc;
	model = line->value;
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (!strcmp(line->value, systems[i].number))
			model = systems[i].model;
	snprintf(p->f->scanner, sizeof(p->f->scanner), "%.63s", model);
	return 0;
}

/* ---- axes ---- */

/* Check the label of axis k: one of three names (NULL: fewer). Returns its index. */
static int read_label(struct interfile_parser *p, int k, const char *const names[3], const char *allowed)
{
	const struct interfile_line *line;
	char text[40];
	int rc = interfile_word(p, "matrixaxislabel", k, text, sizeof(text), &line);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(p->err, EBADMSG, "\"matrix axis label[%d]\" is missing", k);
	for (int i = 0; i < 3 && names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	return interfile_unsupported(p, line, ENOTSUP, allowed);
}

static int read_labels(struct interfile_parser *p, int dims)
{
	static const struct {
		const char *names[3], *allowed;
	} axes[] = {
		{{"bin", "sinogramprojections", "x"}, "bin, sinogram projections, x"},
		{{"projection", "sinogramviews"}, "projection (with plane as label[3]), sinogram views"},
		{{"plane", "numberofsinograms"}, "plane (with projection as label[2]), number of sinograms"},
		{{"tofbin"}, "TOF bin"},
	};
	int label[4] = {0};

	for (int k = 0; k < dims; k++) {
		label[k] = read_label(p, k + 1, axes[k].names, axes[k].allowed);
		if (label[k] < 0)
			return label[k];
	}
	if (label[1] != label[2])
		return err_set(
			p->err, ENOTSUP,
			"matrix axis label[2] and [3] do not belong together; supported: projection and plane, sinogram views "
			"and number of sinograms");
	return 0;
}

/* Read the number of TOF bins: the fourth axis, or a key of its own. */
static int read_tof_number(struct interfile_parser *p, int dims, int *ret)
{
	int n = 1, axis = 1, rc = interfile_line_int(&p->lines, "numberoftoftimebins", 0, 1, MICHELOGRAM_TOF_MAX, &n, p->err);

	if (rc < 0)
		return rc;
	if (dims == 4 && interfile_side(p, 4, MICHELOGRAM_TOF_MAX, &axis) < 0)
		return -EBADMSG;
	if (dims == 4 && rc > 0 && axis != n)
		return err_set(p->err, EBADMSG, "matrix size[4] := %d, but %%number of TOF time bins := %d", axis, n);
	*ret = dims == 4 ? axis : n;
	return 0;
}

static int read_tof(struct interfile_parser *p, int n)
{
	int k[MICHELOGRAM_TOF_MAX], rc;
	double width = 0;

	if (n == 1)
		return 0;
	if (n % 2 == 0)
		return err_set(p->err, ENOTSUP, "%d TOF bins; supported: odd numbers, stored in the order 0, +1, -1, +2 ...", n);
	rc = interfile_line_number(&p->lines, "scalefactor(ps/bin)", 4, INTERFILE_TINY, 1e6, &width, p->err);
	if (rc < 0)
		return rc;
	for (int i = 0; i < n; i++)
		k[i] = i % 2 ? (i + 1) / 2 : -i / 2;
	p->f->m.tof = (struct scan_tof){.n = n, .width = width * TOF_MM_PER_PS};
	return interfile_tof_order(p->f, k, n, p->err);
}

/* ---- segments ---- */

struct layout {
	int compression, largest; /* axial compression; maximum ring difference */
	int rings;
	int n_table, planes; /* entries of the segment table, 0: none; matrix size[3] */
	double table[MICHELOGRAM_SEGMENTS_MAX];
};

static int read_layout(struct interfile_parser *p, struct layout *l)
{
	const struct interfile_lines *lines = &p->lines;
	int rc = interfile_line_int(lines, "axialcompression", 0, 1, 2 * RINGS_MAX, &l->compression, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "%axial compression");
	rc = interfile_line_int(lines, "maximumringdifference", 0, 0, RINGS_MAX - 1, &l->largest, p->err);
	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "%maximum ring difference");
	if (l->compression % 2 == 0 || l->compression / 2 > l->largest)
		return err_set(p->err, EBADMSG, "%%axial compression := %d with %%maximum ring difference := %d", l->compression,
			       l->largest);
	if ((rc = interfile_line_int(lines, "numberofrings", 0, 1, RINGS_MAX, &l->rings, p->err)) < 0 ||
	    (rc = interfile_line_numbers(lines, "segmenttable", 0, 1, PLANES_MAX, MICHELOGRAM_SEGMENTS_MAX, l->table, &l->n_table,
					 p->err)) < 0)
		return rc;
	if (l->rings == 0 && l->n_table == 0)
		return err_set(p->err, EBADMSG,
			       "\"number of rings\" and \"%%segment table\" are missing; one of them is required");
	if (l->rings == 0)
		l->rings = l->compression == 1 ? (int)l->table[0] : ((int)l->table[0] + 1) / 2;
	if (l->largest >= l->rings)
		return err_set(p->err, EBADMSG, "%%maximum ring difference := %d, but there are %d rings", l->largest, l->rings);
	return 0;
}

static struct michelogram_segment make_segment(const struct layout *l, int i)
{
	int half = l->compression / 2, number = (i + 1) / 2;
	int first = half + 1 + (number - 1) * l->compression, last = first + l->compression - 1;

	if (last > l->largest)
		last = l->largest;
	if (i == 0)
		return (struct michelogram_segment){-half, half, half ? 2 * l->rings - 1 : l->rings};
	return (struct michelogram_segment){
		.first = i % 2 ? -last : first, /* 0, -1, +1, -2 ... */
		.last = i % 2 ? -first : last,
		.n_planes = first == last ? l->rings - first : 2 * (l->rings - first) - 1,
	};
}

static int check_table(const struct interfile_parser *p, const struct layout *l, int n)
{
	const struct michelogram_segment *segments = p->f->m.segments;

	if (l->n_table != 0 && l->n_table != n)
		return err_set(p->err, EBADMSG,
			       "%%segment table has %d segments; axial compression %d and maximum ring difference %d make %d",
			       l->n_table, l->compression, l->largest, n);
	for (int i = 0; i < l->n_table; i++)
		if (l->table[i] != segments[i].n_planes)
			return err_set(
				p->err, EBADMSG,
				"%%segment table: %g planes in segment %d; axial compression %d, maximum ring difference %d "
				"and %d rings make %d",
				l->table[i], i, l->compression, l->largest, l->rings, segments[i].n_planes);
	return 0;
}

/* Check that a number in the header is the one that follows from the others. */
static int check_count(const struct interfile_parser *p, const char *key, const char *name, int expected)
{
	int n = expected, rc = interfile_line_int(&p->lines, key, 0, 1, PLANES_MAX, &n, p->err);

	if (rc >= 0 && n != expected)
		return err_set(p->err, EBADMSG, "%s := %d, but the segments make %d", name, n, expected);
	return rc < 0 ? rc : 0;
}

static int make_segments(struct interfile_parser *p, const struct layout *l)
{
	int pairs = (l->largest - l->compression / 2 + l->compression - 1) / l->compression, n = 2 * pairs + 1, rc;
	struct michelogram *m = &p->f->m;
	long planes = 0;

	if (n > MICHELOGRAM_SEGMENTS_MAX)
		return err_set(p->err, EBADMSG, "%d segments; at most %d are supported", n, MICHELOGRAM_SEGMENTS_MAX);
	m->segments = calloc((size_t)n, sizeof(*m->segments));
	if (!m->segments)
		return err_set(p->err, ENOMEM, "no memory for %d segments", n);
	m->n_segments = n;
	m->scanner.rings = l->rings;
	for (int i = 0; i < n; i++) {
		m->segments[i] = make_segment(l, i);
		planes += m->segments[i].n_planes;
	}
	if ((rc = check_table(p, l, n)) < 0 || (rc = check_count(p, "numberofsegments", "%number of segments", n)) < 0)
		return rc;
	if (planes > PLANES_MAX)
		return err_set(p->err, EBADMSG, "%ld planes in all segments; at most %d are supported", planes, PLANES_MAX);
	if (planes != l->planes)
		return err_set(p->err, EBADMSG, "matrix size[3] := %d, but the segments have %ld planes", l->planes, planes);
	return check_count(p, "totalnumberofsinograms", "%total number of sinograms", (int)planes);
}

/* ---- types of data in one file ---- */

/* Check that the data of type i do not overlap the first, which end at `end`. Some headers of TOF data have a type for each TOF
 * bin, which must follow each other. */
static int check_offset(struct interfile_parser *p, int i, uint64_t end)
{
	int tof = p->f->m.tof.n > 0 ? p->f->m.tof.n : 1;
	const struct interfile_line *line;
	char text[40] = "";
	double offset = 0;
	int rc = interfile_word(p, "scandatatypedescription", i, text, sizeof(text), &line);

	if (rc >= 0)
		rc = interfile_line_number(&p->lines, "dataoffsetinbytes", i, 0, 0x1p50, &offset, p->err);
	if (rc > 0 && !strcmp(text, "randoms"))
		p->f->randoms = (uint64_t)offset;
	if (rc > 0 && i <= tof && !strcmp(text, "prompts")) {
		double expected = (double)p->f->offset + (i - 1) * (double)(end - p->f->offset) / tof;

		return offset == expected
			       ? 0
			       : err_set(p->err, EBADMSG,
					 "data offset in bytes[%d] := %.0f, but TOF bin %d begins at %.0f if they follow "
					 "each other",
					 i, offset, i, expected);
	}
	if (rc > 0 && offset > (double)p->f->offset && offset < (double)end)
		return err_set(p->err, EBADMSG, "data offset in bytes[%d] := %.0f, but the data of the first type end at %llu", i,
			       offset, (unsigned long long)end);
	return rc < 0 ? rc : 0;
}

static int read_types(struct interfile_parser *p)
{
	const struct interfile_line *line;
	int n = 1, rc = interfile_line_int(&p->lines, "numberofscandatatypes", 0, 1, TYPES_MAX, &n, p->err);
	char text[40];

	if (rc >= 0)
		rc = interfile_word(p, "scandatatypedescription", 1, text, sizeof(text), &line);
	if (rc < 0)
		return rc;
	if (rc > 0 && strcmp(text, "prompts") != 0)
		return interfile_unsupported(p, line, ENOTSUP, "prompts");
	p->f->more_data = n > 1;
	for (int i = 2; i <= n; i++) {
		rc = check_offset(p, i, p->f->offset + interfile_bytes(p->f));
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The parts of the counts that were lost behind the detectors, as factors above 1; mMR headers have them. */
static void note_losses(struct interfile_parser *p)
{
	static const char *const keys[][2] = {{"gimlossfraction", "%GIM loss fraction"},
					      {"pdrlossfraction", "%PDR loss fraction"}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		double v = 1;

		if (interfile_line_number(&p->lines, keys[i][0], 0, 0, 1e6, &v, NULL) > 0 && fabs(v - 1) > 1e-6)
			interfile_note(p->f, "%s := %g is not used.", keys[i][1], v);
	}
}

int interfile_siemens_read(struct interfile_parser *p)
{
	struct layout l = {.compression = 0};
	int dims = 0, tof = 1, rc = interfile_dimensions(p, 3, 4, "sinograms of Siemens have 3 or 4", &dims);

	if (rc < 0)
		return rc;
	p->f->siemens = true;
	p->f->order = INTERFILE_BY_PLANE;
	if ((rc = read_labels(p, dims)) < 0 || (rc = interfile_side(p, 1, INTERFILE_SIDE_MAX, &p->f->m.n_radial)) < 0 ||
	    (rc = interfile_side(p, 2, ANGLES_MAX, &p->f->m.n_angles)) < 0 ||
	    (rc = interfile_side(p, 3, PLANES_MAX, &l.planes)) < 0 || (rc = read_tof_number(p, dims, &tof)) < 0 ||
	    (rc = read_layout(p, &l)) < 0 || (rc = make_segments(p, &l)) < 0 || (rc = read_tof(p, tof)) < 0 ||
	    (rc = interfile_corrections(p)) < 0 || (rc = read_system(p)) < 0)
		return rc;
	rc = interfile_line_number(&p->lines, "scalefactor(mm/pixel)", 1, INTERFILE_TINY, INTERFILE_LENGTH_MAX,
				   &p->f->m.scanner.bin, p->err);
	if (rc >= 0)
		rc = read_types(p);
	if (rc < 0)
		return rc;
	interfile_reverse_rings(&p->f->m); /* as in STIR's headers */
	interfile_note(p->f, INTERFILE_SIEMENS_RINGS);
	note_losses(p);
	return 0;
}

/* ---- headers of the data that belong to projections ---- */

static int check_companion(const struct interfile_parser *p, const int side[4], bool *ret_big_endian)
{
	const struct interfile_line *line;
	char text[40];
	int rc;

	for (int k = 1; k <= 4; k++) {
		int n = 0;

		rc = interfile_line_int(&p->lines, "matrixsize", k, 1, PLANES_MAX, &n, p->err);
		if (rc < 0)
			return rc;
		if (rc > 0 && side[k - 1] > 0 && n != side[k - 1])
			return err_set(p->err, EBADMSG, "matrix size[%d] := %d, but the prompts require %d", k, n, side[k - 1]);
	}
	rc = interfile_word(p, "numberformat", 0, text, sizeof(text), &line);
	if (rc > 0 && strcmp(text, "float") != 0 && strcmp(text, "shortfloat") != 0)
		return interfile_unsupported(p, line, ENOTSUP, "float");
	if (rc >= 0)
		rc = interfile_line_find(&p->lines, "numberofbytesperpixel", 0, &line, p->err);
	if (rc > 0 && strcmp(line->value, "4") != 0)
		return interfile_unsupported(p, line, ENOTSUP, "4");
	if (rc >= 0)
		rc = interfile_word(p, "imagedatabyteorder", 0, text, sizeof(text), &line);
	*ret_big_endian = rc > 0 && !strcmp(text, "bigendian");
	if (rc > 0 && !*ret_big_endian && strcmp(text, "littleendian") != 0)
		return interfile_unsupported(p, line, EBADMSG, "LITTLEENDIAN, BIGENDIAN");
	return rc < 0 ? rc : 0;
}

/* ENOTSUP: the data of a Siemens header are compressed. */
static int check_compression(const struct interfile_lines *l, struct err *err)
{
	const struct interfile_line *line;
	char text[16];
	int rc = interfile_line_find(l, "compression", 0, &line, err);

	if (rc <= 0)
		return rc;
	interfile_normalise(line->value, text, sizeof(text));
	if (!strcmp(text, "off") || !strcmp(text, "none"))
		return 0;
	return err_set(err, ENOTSUP,
		       "line %d: %.60s := %.60s; compressed sinograms of Siemens are not read: uncompress them with the e7tools "
		       "(intfcompr.exe -e COMPRESSED.mhdr --oe UNCOMPRESSED.mhdr), or histogram without compression",
		       line->number, line->name, line->value);
}

int interfile_companion(const char *text, size_t size, const int side[4], bool *ret_big_endian, struct err *err)
{
	struct interfile_parser p = {.err = err};
	bool big_endian = false;
	int rc = interfile_lines_read(text, size, &p.lines, err);

	if (rc < 0)
		return rc;
	rc = check_compression(&p.lines, err);
	if (rc == 0)
		rc = check_companion(&p, side, &big_endian);
	interfile_lines_clear(&p.lines);
	if (rc == 0)
		*ret_big_endian = big_endian;
	return rc;
}

/* ---- keys of manufacturers in any header ----
 *
 * They begin with '%', which is not part of the short form, so that a key which the parser reads has the same effect with and
 * without it. A key that may change the meaning of the bytes is refused by name, unless it has the value that changes nothing. So
 * is a key that is unknown: what it means cannot be known. Only keys that describe patient, study and file are passed over. */

/* Beginnings of the short forms of keys that say nothing about the data, or that the parser reads. */
static const char *const harmless[] = {
	"comment",
	"sms-mi",
	"study",
	"series",
	"patient",
	"institution",
	"operator",
	"scannertype",
	"imageduration",
	"imagerelativestarttime",
	"numberoftimeframes",
	"tofmashingfactor", /* STIR writes it in both ways */
};

/* Keys with the values that change nothing. */
static const struct neutral {
	const char *key, *value[2];
	bool of_siemens; /* a header of Siemens may have another value neither: the parser does not read it */
} neutral[] = {
	{"compression", {"none", "off"}, false},    {"axialcompression", {"1", "1"}, false},
	{"numberofsegments", {"1", "1"}, false},    {"numberofscandatatypes", {"1", "1"}, false},
	{"numberoftoftimebins", {"1", "1"}, false}, {"supplementaryattributes", {"", ""}, false},
	{"imagezoom", {"1", "1"}, false},	    {"imageslope", {"1", "1"}, true},
	{"imageintercept", {"0", "0"}, true},	    {"x-offset(mm)", {"0", "0"}, true},
	{"y-offset(mm)", {"0", "0"}, true},
};

static const struct neutral *find_neutral(const struct interfile_line *line)
{
	for (size_t i = 0; i < sizeof(neutral) / sizeof(neutral[0]); i++)
		if (!strcmp(line->key, neutral[i].key))
			return &neutral[i];
	return NULL;
}

/* Is the value missing, or one that changes nothing, as a word or as a number? */
static bool has_neutral_value(const struct neutral *n, const struct interfile_line *line)
{
	char value[40], *end, *of;
	double number;

	interfile_normalise(line->value, value, sizeof(value));
	number = strtod(value, &end);
	if (!value[0] || !strcmp(value, n->value[0]) || !strcmp(value, n->value[1]))
		return true;
	return end > value && !*end && strtod(n->value[0], &of) == number && of > n->value[0];
}

static bool is_harmless(const struct interfile_line *line)
{
	const struct neutral *n = find_neutral(line);

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (!strncmp(line->key, harmless[i], strlen(harmless[i])))
			return true;
	return n && has_neutral_value(n, line);
}

/* Does a line of a header of Siemens change values or places in a way that is not read? */
static bool is_unread(const struct interfile_line *line)
{
	const struct neutral *n = find_neutral(line);

	return n && n->of_siemens && !has_neutral_value(n, line);
}

bool interfile_is_siemens(const struct interfile_lines *l)
{
	const struct interfile_line *line;

	return interfile_line_find(l, "sms-miversionnumber", 0, &line, NULL) != 0;
}

/* A sub-header of Siemens has many keys; those that describe the layout of the data are read, and checked against each other and
 * against the size of the file. */
int interfile_vendor_check(const struct interfile_lines *l, struct err *err)
{
	bool siemens = interfile_is_siemens(l);
	int rc = siemens ? check_compression(l, err) : 0;

	for (size_t i = 0; rc == 0 && i < l->n; i++)
		if (siemens ? is_unread(&l->line[i])
			    : l->line[i].name[strspn(l->line[i].name, "! \t")] == '%' && !is_harmless(&l->line[i]))
			return err_set(
				err, ENOTSUP,
				"line %d: %.60s := %.60s; this manufacturer's key may change the meaning of the data and is "
				"not supported: convert the data to STIR Interfile without it",
				l->line[i].number, l->line[i].name, l->line[i].value);
	return rc;
}
