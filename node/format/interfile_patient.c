/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_patient.c - how the patient lies, and the tracer.
 *
 * "patient orientation" and "patient rotation" have the words of Interfile 3.3 and STIR; Siemens writes the position of DICOM in
 * the first of them. Other words are refused: a position that is guessed mirrors the image.
 *
 * The nuclide has three spellings of keys: STIR 6 ("radionuclide name[1]"), STIR 5 and Siemens ("isotope name"; "isotope gamma
 * halflife (sec)"). A half-life that is not that of the named nuclide is refused, because decay would be corrected wrongly. The
 * calibration factor has no unit in Interfile: it is never used, and the result says so.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/base/nuclides.h"
#include "node/format/interfile_internal.h"

/* ---- position ---- */

struct word {
	const char *word, *part; /* of the position of DICOM; "": not known; NULL: none of these */
};

static const struct word orientations[] = {{"headin", "HF"}, {"feetin", "FF"}, {"unknown", ""}, {"other", NULL}};
static const struct word rotations[] = {{"supine", "S"}, {"prone", "P"},  {"right", "DR"},
					{"left", "DL"},	 {"unknown", ""}, {"other", NULL}};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Store the part that a word means. False: it is not known. */
static bool take_word(struct interfile *f, const char *text, const struct word *words, size_t n, char ret_part[3])
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(text, words[i].word)) {
			snprintf(ret_part, 3, "%s", words[i].part ? words[i].part : "");
			f->other_position = f->other_position || !words[i].part;
			return true;
		}
	return false;
}

/* Store both parts of a position of DICOM, "hfs". False: it is none. */
static bool take_position(struct interfile *f, const char *text)
{
	if (strncmp(text, "hf", 2) != 0 && strncmp(text, "ff", 2) != 0)
		return false;
	for (size_t i = 0; i < COUNT(rotations); i++)
		if (rotations[i].part && rotations[i].part[0] && !strcasecmp(text + 2, rotations[i].part)) {
			snprintf(f->enters, sizeof(f->enters), "%s", text[0] == 'h' ? "HF" : "FF");
			snprintf(f->lies, sizeof(f->lies), "%s", rotations[i].part);
			return true;
		}
	return false;
}

int interfile_read_position(struct interfile_parser *p)
{
	const struct interfile_line *first = NULL, *line;
	struct interfile *f = p->f;
	char text[40], lies[3] = "";
	int rc = interfile_word(p, "patientorientation", 0, text, sizeof(text), &first);

	if (rc > 0 && !take_word(f, text, orientations, COUNT(orientations), f->enters) && !take_position(f, text))
		return interfile_unsupported(p, first, EBADMSG,
					     "head_in, feet_in, other, unknown; HFS, HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL");
	if (rc >= 0)
		rc = interfile_word(p, "patientrotation", 0, text, sizeof(text), &line);
	if (rc > 0 && !take_word(f, text, rotations, COUNT(rotations), lies))
		return interfile_unsupported(p, line, EBADMSG, "supine, prone, right, left, other, unknown");
	if (rc > 0 && lies[0] && f->lies[0] && strcmp(lies, f->lies) != 0)
		return err_set(p->err, EBADMSG, "line %d: %.60s := %.40s contradicts line %d: %.60s := %.40s", line->number,
			       line->name, line->value, first->number, first->name, first->value);
	if (rc > 0 && f->other_position && f->enters[0] && f->lies[0])
		return err_set(p->err, EBADMSG, "line %d: %.60s := %.40s contradicts line %d: %.60s := %.40s", line->number,
			       line->name, line->value, first->number, first->name, first->value);
	if (lies[0])
		memcpy(f->lies, lies, sizeof(lies));
	if (f->enters[0] && f->lies[0])
		snprintf(f->position, sizeof(f->position), "%s%s", f->enters, f->lies);
	return rc < 0 ? rc : 0;
}

/* ---- tracer ---- */

struct quantity {
	const char *keys[2]; /* the same quantity */
	double most;
	double *value;
};

/* Read a number above 0 from either key; other numbers, such as -1, mean that it is not known. Both must agree within a percent.
 */
static int read_quantity(const struct interfile_parser *p, const struct quantity *q, const struct interfile_line **ret_line)
{
	for (size_t i = 0; i < 2 && q->keys[i]; i++) {
		const struct interfile_line *line;
		double v = 0;
		int rc = interfile_line_number(&p->lines, q->keys[i], 1, -1e30, q->most, &v, p->err);

		if (rc < 0 || (rc > 0 && (rc = interfile_line_find(&p->lines, q->keys[i], 1, &line, p->err)) < 0))
			return rc;
		if (rc == 0 || !(v > 0))
			continue;
		if (isfinite(*q->value) && !nuclide_same_half_life(*q->value, v))
			return interfile_line_refuse_two(*ret_line, line, p->err);
		*q->value = v;
		*ret_line = line;
	}
	return 0;
}

/* Find the name of the nuclide. *ret_line: NULL: none. */
static int find_name(const struct interfile_parser *p, const struct interfile_line **ret_line)
{
	static const char *const keys[] = {"radionuclidename", "isotopename"};
	const struct interfile_line *line;
	char text[40];

	for (size_t i = 0; i < 2; i++) {
		int rc = interfile_word(p, keys[i], 1, text, sizeof(text), &line);

		if (rc < 0)
			return rc;
		if (rc == 0 || !strcmp(text, "unknown"))
			continue;
		if (*ret_line && strcasecmp((*ret_line)->value, line->value) != 0 &&
		    (!nuclide_find(line->value) || nuclide_find(line->value) != nuclide_find((*ret_line)->value)))
			return interfile_line_refuse_two(*ret_line, line, p->err);
		*ret_line = line;
	}
	return 0;
}

/* Compare the half-life with that of the nuclide, and complete it. */
static int check_nuclide(const struct interfile_parser *p, const struct interfile_line *name,
			 const struct interfile_line *half_life)
{
	struct interfile_tracer *t = &p->f->tracer;

	if (!name)
		return 0;
	t->nuclide = nuclide_find(name->value);
	if (!t->nuclide && half_life)
		interfile_note(p->f, "%.60s := %.40s has no code in this program: the result has only its half-life, %g s.",
			       name->name, name->value, t->half_life);
	else if (!t->nuclide)
		interfile_note(p->f,
			       "%.60s := %.40s is not known, and the header has no half-life: decay is not corrected; "
			       "RadionuclideHalfLife sets it.",
			       name->name, name->value);
	if (!t->nuclide)
		return 0;
	if (half_life && !nuclide_same_half_life(t->half_life, t->nuclide->half_life))
		return err_set(p->err, EBADMSG,
			       "line %d: %.60s := %.40s contradicts line %d: %.60s := %.40s, whose half-life is %g s",
			       half_life->number, half_life->name, half_life->value, name->number, name->name, name->value,
			       t->nuclide->half_life);
	if (!half_life)
		t->half_life = t->nuclide->half_life;
	return 0;
}

static int read_nuclide(const struct interfile_parser *p)
{
	struct interfile_tracer *t = &p->f->tracer;
	const struct quantity half_life = {{"radionuclidehalflife(sec)", "isotopegammahalflife(sec)"}, 1e15, &t->half_life};
	const struct quantity branching = {{"radionuclidebranchingfactor", "isotopebranchingfactor"}, 1, &t->branching};
	const struct interfile_line *name = NULL, *line = NULL, *ignored = NULL;
	int n = 1, rc = interfile_line_int(&p->lines, "numberofradionuclides", 0, 0, 1000, &n, p->err);

	if (rc < 0)
		return rc;
	if (n > 1) {
		interfile_note(p->f, "number of radionuclides := %d: none of them is read, and decay is not corrected.", n);
		return 0;
	}
	if ((rc = find_name(p, &name)) < 0 || (rc = read_quantity(p, &half_life, &line)) < 0 ||
	    (rc = read_quantity(p, &branching, &ignored)) < 0)
		return rc;
	return check_nuclide(p, name, line);
}

static int read_calibration(const struct interfile_parser *p)
{
	double factor = 0;
	int rc = interfile_line_number(&p->lines, "calibrationfactor", 1, -1e30, 1e30, &factor, p->err);

	if (rc > 0 && factor > 0)
		interfile_note(p->f,
			       "calibration factor := %g is not used, because Interfile does not define its unit; "
			       "DoseCalibrationFactor sets that of this program, (Bq/ml) per (count per second and mm).",
			       factor);
	return rc < 0 ? rc : 0;
}

/* Read date and time of the injection. They are on the clock of the study if both keys have an offset from UTC, or none has one;
 * otherwise a SUV from both would be wrong. */
static int read_injection(const struct interfile_parser *p)
{
	struct interfile_tracer *t = &p->f->tracer;
	const struct interfile_line *time = NULL, *date;
	char moment[15], zone[6] = "";
	int rc = interfile_zoned_time(p, "tracerinjectiontime", &time, zone);

	if (rc == 0)
		rc = interfile_line_find(&p->lines, "tracerinjectiontime(hh:mm:ss)", 0, &time, p->err);
	if (rc <= 0)
		return rc;
	rc = interfile_line_find(&p->lines, "tracerinjectiondate(yyyy:mm:dd)", 0, &date, p->err);
	if (rc > 0 && interfile_moment(date->value, time->value, moment) && (zone[0] || !p->f->zone[0]))
		snprintf(t->injected, sizeof(t->injected), "%s%s", moment, zone);
	else if (rc >= 0)
		interfile_note(p->f, "%.60s := %.20s is not used; RadiopharmaceuticalStartDateTime sets it, in local time.",
			       time->name, time->value);
	return rc < 0 ? rc : 0;
}

int interfile_read_tracer(struct interfile_parser *p)
{
	struct interfile_tracer *t = &p->f->tracer;
	const struct quantity dose = {{"traceractivityattimeofinjection(bq)", NULL}, 1e15, &t->dose};
	const struct quantity volume = {{"injectedvolume(ml)", NULL}, 1e6, &t->volume};
	const struct interfile_line *line = NULL;
	int rc = read_nuclide(p);

	if (rc < 0 || (rc = read_calibration(p)) < 0 || (rc = read_quantity(p, &dose, &line)) < 0 ||
	    (rc = read_quantity(p, &volume, &line)) < 0)
		return rc;
	rc = interfile_line_find(&p->lines, "radiopharmaceutical", 0, &line, p->err);
	for (const char *c = rc > 0 ? line->value : ""; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '\\')
			return interfile_unsupported(p, line, EBADMSG, "printable ASCII without \\");
	if (rc > 0)
		snprintf(t->drug, sizeof(t->drug), "%.64s", line->value);
	return rc < 0 ? rc : read_injection(p);
}
