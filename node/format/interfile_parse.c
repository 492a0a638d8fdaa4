/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_parse.c - read the keys of an Interfile header (Todd-Pokropek, Cradduck & Deconinck 1992, with the keys that STIR
 * added for projection data). Only keys that affect the numbers are read; a key with an invalid value is an error, which names
 * its line. Sizes are limited before they are multiplied.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "node/base/sentence.h"
#include "node/format/interfile_internal.h"

#define BLOCK 2048.0 /* bytes: "data starting block" */

int interfile_word(const struct interfile_parser *p, const char *key, int index, char *ret, size_t size,
		   const struct interfile_line **ret_line)
{
	int rc = interfile_line_find(&p->lines, key, index, ret_line, p->err);

	ret[0] = '\0';
	if (rc > 0)
		interfile_normalise((*ret_line)->value, ret, size);
	return rc;
}

int interfile_unsupported(const struct interfile_parser *p, const struct interfile_line *line, int code, const char *allowed)
{
	return err_set(p->err, code, "line %d: %.60s := %.60s; supported: %s", line->number, line->name, line->value, allowed);
}

int interfile_missing(const struct interfile_parser *p, const char *key)
{
	return interfile_line_missing(&p->lines, key, p->err);
}

void interfile_note(struct interfile *f, const char *fmt, ...)
{
	char note[INTERFILE_NOTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(note, sizeof(note), fmt, args);
	va_end(args);
	if (!strstr(f->notes, note))
		sentence_add(f->notes, sizeof(f->notes), "%s", note);
}

int interfile_add_label(const struct interfile_parser *p, int k, int rc)
{
	const struct interfile_line *line;
	size_t at = p->err ? strlen(p->err->msg) : 0;

	if (p->err && interfile_line_find(&p->lines, "matrixaxislabel", k, &line, NULL) > 0)
		snprintf(p->err->msg + at, sizeof(p->err->msg) - at, "; matrix axis label [%d] is \"%.40s\" here", k,
			 line->value);
	return rc;
}

int interfile_side(struct interfile_parser *p, int k, int most, int *ret)
{
	int rc = interfile_line_int(&p->lines, "matrixsize", k, 1, most, ret, p->err);

	char name[32];

	if (rc != 0)
		return rc < 0 ? interfile_add_label(p, k, rc) : 0;
	snprintf(name, sizeof(name), "matrix size [%d]", k);
	return interfile_missing(p, name);
}

int interfile_dimensions(const struct interfile_parser *p, int lo, int hi, const char *have, int *ret)
{
	int rc = interfile_line_int(&p->lines, "numberofdimensions", 0, 1, 10, ret, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "number of dimensions");
	return *ret >= lo && *ret <= hi ? 0 : err_set(p->err, ENOTSUP, "number of dimensions := %d; %s", *ret, have);
}

int interfile_unit(struct interfile_parser *p)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(&p->lines, "unit", 0, &line, p->err);
	const char *unit = rc > 0 ? line->value : INTERFILE_ATTENUATION;

	if (rc < 0)
		return rc;
	for (const char *c = unit; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '\\')
			return err_set(p->err, EBADMSG, "line %d: unit := %.60s; allowed: printable ASCII without \\",
				       line->number, unit);
	if (strlen(unit) >= sizeof(p->f->unit))
		return err_set(p->err, EBADMSG, "line %d: unit := %.60s; allowed: at most %d letters", line->number, unit,
			       INTERFILE_UNIT_SIZE - 1);
	snprintf(p->f->unit, sizeof(p->f->unit), "%s", unit);
	return 0;
}

/* ---- number format and data file ---- */

static int read_format(struct interfile_parser *p)
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
	int rc = interfile_word(p, "numberformat", 0, text, sizeof(text), &line), fixed = 0;

	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "number format");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(text, formats[i].name)) {
			p->f->number = formats[i].number;
			fixed = formats[i].bytes;
		}
	if (!p->f->number)
		return interfile_unsupported(p, line, ENOTSUP,
					     "signed integer, unsigned integer, float, short float, long float");
	p->f->bytes = fixed;
	rc = interfile_line_int(&p->lines, "numberofbytesperpixel", 0, 1, 8, &p->f->bytes, p->err);
	if (rc < 0)
		return rc;
	if (rc == 0 && !fixed)
		return interfile_missing(p, "number of bytes per pixel");
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
static int read_byte_order(struct interfile_parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int rc = interfile_word(p, "imagedatabyteorder", 0, text, sizeof(text), &line);

	p->f->order_stated = rc > 0;
	p->f->big_endian = rc == 0 || !strcmp(text, "bigendian");
	if (rc == 0 && p->f->bytes > 1)
		interfile_note(p->f, "The header has no \"imagedata byte order\": BIGENDIAN is assumed, as Interfile 3.3 does.");
	if (rc > 0 && !p->f->big_endian && strcmp(text, "littleendian") != 0)
		return interfile_unsupported(p, line, EBADMSG, "LITTLEENDIAN, BIGENDIAN");
	return rc < 0 ? rc : 0;
}

static int read_offset(struct interfile_parser *p)
{
	const struct interfile_line *a, *b;
	double bytes = 0, block = 0;
	int has_bytes = interfile_line_number(&p->lines, "dataoffsetinbytes", 1, 0, 0x1p50, &bytes, p->err), has_block;

	if (has_bytes < 0)
		return has_bytes;
	has_block = interfile_line_number(&p->lines, "datastartingblock", 0, 0, 0x1p39, &block, p->err);
	if (has_block < 0)
		return has_block;
	if (has_bytes && has_block && bytes != block * BLOCK &&
	    interfile_line_find(&p->lines, "dataoffsetinbytes", 1, &a, p->err) > 0 &&
	    interfile_line_find(&p->lines, "datastartingblock", 0, &b, p->err) > 0)
		return interfile_line_refuse_two(a, b, p->err);
	if (has_block)
		bytes = block * BLOCK;
	if (bytes != floor(bytes))
		return err_set(p->err, EBADMSG, "data offset of %g bytes is not an integer", bytes);
	p->f->offset = (uint64_t)bytes;
	return 0;
}

/* Read numbers for frames or segments, which must be equal; if missing, *ret is unchanged. */
static int read_alike(struct interfile_parser *p, const char *key, double *ret)
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

/* "quantification units" is also a factor; STIR uses it if the other one is 1. Of an image it may be a unit: 1/cm. */
static int read_scale(struct interfile_parser *p)
{
	const struct interfile_line *line;
	double scale = 1, units = 1;
	int rc = read_alike(p, "imagescalingfactor", &scale);

	if (rc >= 0)
		rc = interfile_line_find(&p->lines, "quantificationunits", 1, &line, p->err);
	if (rc > 0 && !strcmp(p->f->data_type, interfile_image.pet_data) && strpbrk(line->value, "/uU") &&
	    strlen(line->value) < sizeof(p->f->unit))
		snprintf(p->f->unit, sizeof(p->f->unit), "%s", line->value);
	else if (rc > 0)
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

static int read_data(struct interfile_parser *p)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(&p->lines, "nameofdatafile", 0, &line, p->err);

	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "name of data file");
	if (strlen(line->value) >= sizeof(p->f->data_file))
		return interfile_unsupported(p, line, EBADMSG, "at most 255 bytes");
	snprintf(p->f->data_file, sizeof(p->f->data_file), "%s", line->value);
	if ((rc = read_format(p)) < 0 || (rc = read_byte_order(p)) < 0 || (rc = read_offset(p)) < 0)
		return rc;
	return read_scale(p);
}

/* ---- the study ---- */

static bool is_day(const char *yyyymmdd)
{
	struct tm day = {0}, same;
	int year, month;

	if (sscanf(yyyymmdd, "%4d%2d%2d", &year, &month, &day.tm_mday) != 3)
		return false;
	day.tm_year = year - 1900;
	day.tm_mon = month - 1;
	same = day;
	timegm(&same); /* changes 30 February to a day of March */
	return same.tm_mon == day.tm_mon && same.tm_mday == day.tm_mday;
}

static bool is_time_of_day(const char *hhmmss)
{
	int h, m, s;

	return sscanf(hhmmss, "%2d%2d%2d", &h, &m, &s) == 3 && h < 24 && m < 60 && s <= 60;
}

/* Copy the first digits of a value, without its separators. A fraction of a second is not needed. */
static size_t copy_digits(const char *value, size_t most, char *ret)
{
	size_t n = 0;

	for (; *value && n < most; value++)
		if (*value >= '0' && *value <= '9')
			ret[n++] = *value;
	ret[n] = '\0';
	return n;
}

/* Read "2010:06:29" or "10:20:30", with any separators, from `key` or from `long_key`. EBADMSG: not a day, or not a time of day;
 * the two keys differ. */
static int read_moment(const struct interfile_parser *p, const char *key, const char *long_key, bool (*is_valid)(const char *),
		       const char *form, size_t digits, char *ret)
{
	const char *const keys[] = {long_key, key};
	const struct interfile_line *line, *before = NULL;
	char text[9];

	for (size_t i = 0; i < 2; i++) {
		int rc = interfile_line_find(&p->lines, keys[i], 0, &line, p->err);

		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (copy_digits(line->value, digits, text) != digits || !is_valid(text))
			return interfile_unsupported(p, line, EBADMSG, form);
		if (before && strcmp(text, ret) != 0)
			return interfile_line_refuse_two(before, line, p->err);
		before = line;
		memcpy(ret, text, digits + 1);
	}
	return 0;
}

int interfile_zoned_time(const struct interfile_parser *p, const char *key, const struct interfile_line **ret_line,
			 char ret_zone[6])
{
	size_t n = strlen(key);

	for (size_t i = 0; i < p->lines.n; i++) {
		const struct interfile_line *line = &p->lines.line[i];
		int hours, minutes, used = 0;
		char sign;

		if (strncmp(line->key, key, n) != 0 || strncmp(line->key + n, "(hh:mm:ssgmt", 12) != 0 || !line->value[0])
			continue;
		if (sscanf(line->key + n + 12, "%c%2d:%2d)%n", &sign, &hours, &minutes, &used) != 3 || used == 0 ||
		    (sign != '+' && sign != '-') || hours < 0 || hours > 14 || minutes < 0 || minutes > 59)
			return err_set(p->err, EBADMSG, "line %d: \"%.60s\"; allowed: a time in (hh:mm:ss GMT+HH:MM)",
				       line->number, line->name);
		snprintf(ret_zone, 6, "%c%02u%02u", sign, (unsigned)hours % 100, (unsigned)minutes % 100);
		*ret_line = line;
		return 1;
	}
	return 0;
}

/* Read date and time of the study. Siemens has the time with its offset from UTC, which is then that of the date, too. */
static int read_date_and_time(struct interfile_parser *p)
{
	static const char form[] = "a time of day, hh:mm:ss";
	const struct interfile_line *line;
	int rc = read_moment(p, "studydate", "studydate(yyyy:mm:dd)", is_day, "a day, yyyy:mm:dd", 8, p->f->date);

	if (rc >= 0)
		rc = interfile_zoned_time(p, "studytime", &line, p->f->zone);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return read_moment(p, "studytime", "studytime(hh:mm:ss)", is_time_of_day, form, 6, p->f->time);
	if (copy_digits(line->value, 6, p->f->time) != 6 || !is_time_of_day(p->f->time))
		return interfile_unsupported(p, line, EBADMSG, form);
	return 0;
}

bool interfile_moment(const char *date, const char *time, char ret[15])
{
	return copy_digits(date, 8, ret) == 8 && is_day(ret) && copy_digits(time, 6, ret + 8) == 6 && is_time_of_day(ret + 8);
}

/* Find the kind with these values of "type of data" ("": missing) and "PET data type". */
static enum interfile_kind find_kind(const char *data_type, const char *pet_data)
{
	enum interfile_kind found = INTERFILE_NONE;

	if (!data_type[0])
		data_type = interfile_type(INTERFILE_NONE + 1)->data_type;
	for (enum interfile_kind kind = INTERFILE_NONE + 1; kind < INTERFILE_KIND_COUNT; kind++) {
		const struct interfile_type *type = interfile_type(kind);

		if (!strcasecmp(type->data_type, data_type) && (type->pet_data ? !strcmp(type->pet_data, pet_data) : !found))
			found = kind;
	}
	return found;
}

/* Return the error for a type of data that no kind has. */
static int refuse_type(const struct interfile_parser *p, const struct interfile_line *line)
{
	char allowed[120] = "";
	size_t n = 0;

	for (enum interfile_kind kind = INTERFILE_NONE + 1; kind < INTERFILE_KIND_COUNT && n < sizeof(allowed); kind++)
		if (!interfile_type(kind)->pet_data)
			n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "",
					      interfile_type(kind)->data_type);
	return interfile_unsupported(p, line, ENOTSUP, allowed);
}

/* Check that the imaging modality of projection data is PET. Interfile 3.3 knows only "nucmed" (NM), for PET, too: a header with
 * it and all keys of PET is read as these say. */
static int check_modality(const struct interfile_parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int rc = interfile_word(p, "imagingmodality", 0, text, sizeof(text), &line);

	if (rc <= 0 || p->f->kind != INTERFILE_PROJECTIONS || !strcasecmp(text, interfile_projections.modality) ||
	    !strcasecmp(text, interfile_projections.data_type))
		return rc < 0 ? rc : 0;
	if (strcmp(text, "nm") != 0 && strcmp(text, "nucmed") != 0)
		return interfile_unsupported(p, line, ENOTSUP, interfile_projections.modality);
	interfile_note(p->f, "The header has %.60s := %.40s, but keys of PET: it is read as PET.", line->name, line->value);
	return 0;
}

/* pet_data: value of "PET data type". */
/* Read duration, start, position and tracer. */
static int read_exam(struct interfile_parser *p)
{
	const struct interfile_line *line;
	int rc = interfile_line_number(&p->lines, "imageduration(sec)", 1, 0, 1e9, &p->f->duration, p->err);

	if (rc > 0 && interfile_line_find(&p->lines, "imageduration(sec)", 1, &line, p->err) > 0)
		p->f->duration_line = line->number;
	if (rc >= 0)
		rc = interfile_line_number(&p->lines, "imagerelativestarttime(sec)", 1, -1e9, 1e9, &p->f->start, p->err);
	if (rc >= 0)
		rc = read_date_and_time(p);
	if (rc >= 0)
		rc = interfile_read_position(p);
	return rc < 0 ? rc : interfile_read_tracer(p);
}

static int read_study(struct interfile_parser *p, const char *pet_data)
{
	const struct interfile_line *line;
	char text[40];
	int frames = 1, rc = interfile_word(p, "typeofdata", 0, text, sizeof(text), &line);

	if (rc >= 0) {
		p->f->kind = find_kind(text, pet_data);
		if (!p->f->kind)
			return refuse_type(p, line);
		rc = check_modality(p);
	}
	if (rc >= 0)
		rc = interfile_word(p, "compression", 0, text, sizeof(text), &line);
	if (rc > 0 && strcmp(text, "none") != 0 && strcmp(text, "off") != 0)
		return interfile_unsupported(p, line, ENOTSUP, "data that are not compressed");
	if (rc >= 0)
		rc = interfile_line_int(&p->lines, "numberoftimeframes", 0, 1, 100000, &frames, p->err);
	if (rc < 0)
		return rc;
	if (frames > 1)
		return err_set(p->err, ENOTSUP, "number of time frames := %d; supported: one, with a header for each frame",
			       frames);
	return read_exam(p);
}

static int read_all(struct interfile_parser *p)
{
	const struct interfile_line *line;
	char pet_data[40];
	int rc = interfile_vendor_check(&p->lines, p->err);

	if (rc == 0)
		rc = interfile_word(p, "petdatatype", 0, pet_data, sizeof(pet_data), &line);
	snprintf(p->f->data_type, sizeof(p->f->data_type), "%.23s", pet_data);
	if (rc < 0 || (rc = read_data(p)) < 0 || (rc = read_study(p, pet_data)) < 0)
		return rc;
	if (p->f->kind == INTERFILE_PROJECTIONS && interfile_is_siemens(&p->lines))
		return interfile_siemens_read(p);
	return interfile_type(p->f->kind)->read(p);
}

static bool has_key(const struct interfile_parser *p, const char *name)
{
	char key[80];

	interfile_normalise(name, key, sizeof(key));
	key[strcspn(key, "[")] = '\0';
	for (size_t i = 0; i < p->lines.n; i++)
		if (!strcmp(p->lines.line[i].key, key))
			return true;
	return false;
}

/* Refuse a misspelt key that the parser does not require: without it the image would be another one. A value of the scanner would
 * be that of the configuration. */
static int check_misspelt(const struct interfile_parser *p)
{
	static const char *const of_beams[] = {
		"axis offset (mm)",
		"first angle (degrees)",
		"arc (degrees)",
		"angles (degrees)",
		"slice spacing (mm)",
		"image scaling factor[1]",
		"data offset in bytes[1]",
		"patient orientation",
		"patient rotation",
		"unit",
		NULL,
	};
	static const char *const of_projections[] = {
		"Number of rings",
		"Number of detectors per ring",
		"Inner ring diameter (cm)",
		"Distance between rings (cm)",
		"minimum ring difference per segment",
		"maximum ring difference per segment",
		"image scaling factor[1]",
		"data offset in bytes[1]",
		"applied corrections",
		"View offset (degrees)",
		"Average depth of interaction (cm)",
		"effective central bin size (cm)",
		"patient orientation",
		"patient rotation",
		"image duration (sec)[1]",
		"image relative start time (sec)[1]",
		"calibration factor",
		"radionuclide name[1]",
		"radionuclide halflife (sec)[1]",
		"energy window lower level[1]",
		"energy window upper level[1]",
		"Energy resolution",
		"TOF mashing factor",
		"TOF bin order",
		NULL,
	};
	const char *const *keys = p->f->kind == INTERFILE_PROJECTIONS ? of_projections : of_beams;

	for (size_t i = 0; keys[i]; i++) {
		const struct interfile_line *line = interfile_line_misspelt(&p->lines, keys[i]);

		if (!line && strstr(keys[i], "(cm)"))
			line = interfile_line_reworded(&p->lines, keys[i]);
		if (line && !has_key(p, keys[i]))
			return err_set(p->err, EBADMSG,
				       "line %d: \"%.60s\" is no key that is known: did you mean \"%s\"? Correct it, or make the "
				       "line a comment (;)",
				       line->number, line->name, keys[i]);
	}
	return 0;
}

static const struct interfile nothing = {
	.duration = NAN, .start = NAN, .tracer = {.half_life = NAN, .branching = NAN, .dose = NAN, .volume = NAN}};

int interfile_parse_exam(const char *text, size_t size, struct interfile *ret, struct err *err)
{
	struct interfile f = nothing;
	struct interfile_parser p = {.f = &f, .err = err};
	int rc = interfile_lines_read(text, size, &p.lines, err);

	if (rc < 0)
		return rc;
	rc = read_exam(&p);
	interfile_lines_clear(&p.lines);
	if (rc >= 0)
		*ret = f; /* owns nothing */
	return rc < 0 ? rc : 0;
}

int interfile_parse(const char *text, size_t size, struct interfile *ret, struct err *err)
{
	struct interfile f = nothing;
	struct interfile_parser p = {.f = &f, .err = err};
	int rc = interfile_lines_read(text, size, &p.lines, err);

	if (rc < 0)
		return rc;
	f.m.angle_offset = NAN;
	f.m.scanner.interaction_depth = NAN;
	rc = read_all(&p);
	if (rc >= 0)
		rc = interfile_line_check_units(&p.lines, err);
	if (rc >= 0 && (f.kind == INTERFILE_PROJECTIONS || f.kind == INTERFILE_PARALLEL) && !f.siemens)
		rc = check_misspelt(&p);
	interfile_lines_clear(&p.lines);
	if (rc < 0)
		interfile_clear(&f);
	else
		*ret = f;
	return rc < 0 ? rc : 0;
}
