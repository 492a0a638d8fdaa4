/* SPDX-License-Identifier: Apache-2.0 */
/* fact_origins.c - see node/sinogram/fact_origins.h. An import knows what it took from where and writes it into its objects, with
 * a mark of each value; an object without such a text, or with another value now, states its facts in its own attributes. Who
 * decides is the same for all facts: a person, then the data, then the file of --like (sinogram_attributes.c). */
#include "node/sinogram/fact_origins.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/sinogram/sinogram_internal.h"

#define VALUE_SIZE 400
#define MARK_SIZE 8 /* of mark_value() */
#define PARTS 2	    /* of a fact whose attributes may be of different origin */

static const struct {
	const char *name;
	const char *key[PARTS]; /* of Interfile headers; NULL: none */
	size_t at;		/* value in struct interfile; 0: none */
	bool number;		/* the value is a number above 0; else a text */
	const char *part[PARTS];
} facts[FACTS] = {
	[FACT_PATIENT] = {"patient", .part = {"ID", "name"}},
	[FACT_STUDY] = {"study"},
	[FACT_FRAME_OF_REFERENCE] = {"frame of reference"},
	[FACT_POSITION] = {"position", {"patient orientation"}, offsetof(struct interfile, position)},
	[FACT_WEIGHT] = {"weight", .number = true},
	[FACT_START] = {"start", {"study date", "study time"}, .part = {"date", "time"}},
	[FACT_DURATION] = {"duration", {"image duration (sec)"}, offsetof(struct interfile, duration), true},
	[FACT_NUCLIDE] = {"nuclide", {"isotope name"}},
	[FACT_HALF_LIFE] = {"half-life", {"isotope name or half-life"}, offsetof(struct interfile, tracer.half_life), true},
	[FACT_FRACTION] = {"positron fraction", {"branching factor"}, offsetof(struct interfile, tracer.branching), true},
	[FACT_DOSE] = {"dose", {"tracer activity at time of injection"}, offsetof(struct interfile, tracer.dose), true},
	[FACT_INJECTION] = {"injection", {"tracer injection time"}, offsetof(struct interfile, tracer.injected)},
	[FACT_CALIBRATION] = {"calibration factor", .number = true},
	[FACT_DECAY] = {"decay correction"},
};

/* Attributes that state a part of a fact, the one that counts first. */
static const struct place {
	enum fact fact;
	int part;
	uint32_t tag;
	const char *name;
	const char *keyword[2]; /* of `set`, which write it; NULL: none */
} places[] = {
	{FACT_PATIENT, 0, TAG_PATIENT_ID, "Patient ID", {"PatientID"}},
	{FACT_PATIENT, 1, TAG_PATIENT_NAME, "Patient's Name", {"PatientName"}},
	{FACT_STUDY, 0, TAG_STUDY_INSTANCE_UID, "Study Instance UID", {"StudyInstanceUID"}},
	{FACT_FRAME_OF_REFERENCE, 0, TAG_FRAME_OF_REFERENCE_UID, "Frame of Reference UID", {"FrameOfReferenceUID"}},
	{FACT_POSITION,
	 0,
	 TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE,
	 "Patient Gantry Relationship Code",
	 {"PatientPosition"}},
	{FACT_POSITION, 0, TAG_PATIENT_POSITION, "Patient Position", {"PatientPosition"}},
	{FACT_WEIGHT, 0, TAG_PATIENT_WEIGHT, "Patient's Weight", {"PatientWeight"}},
	{FACT_START, 0, TAG_ACQUISITION_DATE, "Acquisition Date", {"AcquisitionDate", "AcquisitionDateTime"}},
	{FACT_START, 1, TAG_ACQUISITION_TIME, "Acquisition Time", {"AcquisitionTime", "AcquisitionDateTime"}},
	{FACT_START, 0, TAG_SERIES_DATE, "Series Date", {"SeriesDate"}},
	{FACT_START, 1, TAG_SERIES_TIME, "Series Time", {"SeriesTime"}},
	{FACT_DURATION, 0, TAG_ACTUAL_FRAME_DURATION, "Actual Frame Duration", {"ActualFrameDuration"}},
	{FACT_NUCLIDE, 0, TAG_RADIONUCLIDE_CODE, "Radionuclide Code Sequence", {"Radionuclide"}},
	{FACT_HALF_LIFE, 0, TAG_RADIONUCLIDE_HALF_LIFE, "Radionuclide Half Life", {"RadionuclideHalfLife", "Radionuclide"}},
	{FACT_FRACTION,
	 0,
	 TAG_RADIONUCLIDE_POSITRON_FRACTION,
	 "Radionuclide Positron Fraction",
	 {"RadionuclidePositronFraction"}},
	{FACT_DOSE, 0, TAG_RADIONUCLIDE_TOTAL_DOSE, "Radionuclide Total Dose", {"RadionuclideTotalDose"}},
	{FACT_INJECTION,
	 0,
	 TAG_RADIOPHARMACEUTICAL_START_DATE_TIME,
	 "Radiopharmaceutical Start DateTime",
	 {"RadiopharmaceuticalStartDateTime", "RadiopharmaceuticalStartTime"}},
	{FACT_INJECTION,
	 0,
	 TAG_RADIOPHARMACEUTICAL_START_TIME,
	 "Radiopharmaceutical Start Time",
	 {"RadiopharmaceuticalStartTime"}},
	{FACT_CALIBRATION, 0, TAG_DOSE_CALIBRATION_FACTOR, "Dose Calibration Factor", {"DoseCalibrationFactor"}},
	{FACT_DECAY, 0, TAG_DECAY_CORRECTION, "Decay Correction", {"DecayCorrection"}},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* The start is that of the acquisition only if both its date and its time can be used (pet_facts_read()). */
static bool is_start(const struct dicom_item *root, uint32_t tag)
{
	struct pet_facts f;

	pet_facts_read(root, &f);
	if (f.acquisition_date[0] && f.acquisition_time[0])
		return tag == TAG_ACQUISITION_DATE || tag == TAG_ACQUISITION_TIME;
	return (tag == TAG_SERIES_DATE || tag == TAG_SERIES_TIME) && f.series_date[0] && f.series_time[0];
}

/* Read a value as text, of a sequence its code. "": there is none, or it is not used: a number that is not above 0, an injection at
 * no valid time. */
static const char *read_value(const struct dicom_item *item, const struct place *at, char ret[VALUE_SIZE])
{
	double number = 0;

	ret[0] = '\0';
	if (!item || !dicom_has(item, at->tag))
		return ret;
	if (dicom_item_count(item, at->tag) > 0) {
		snprintf(ret, VALUE_SIZE, "code");
		dicom_get_text(dicom_item_at(item, at->tag, 0), TAG_CODE_VALUE, ret, VALUE_SIZE, NULL);
	} else if (facts[at->fact].number) {
		if (dicom_get_double(item, at->tag, 0, &number, NULL) == 1 && number > 0)
			snprintf(ret, VALUE_SIZE, "%.9g", number);
	} else if (dicom_get_text(item, at->tag, ret, VALUE_SIZE, NULL) < 0) {
		snprintf(ret, VALUE_SIZE, "damaged");
	}
	if (at->fact == FACT_INJECTION && !pet_facts_says_injection(ret))
		ret[0] = '\0';
	return ret;
}

static const struct dicom_item *item_of(const struct dicom_item *root, enum fact f)
{
	return f >= FACT_NUCLIDE && f <= FACT_INJECTION ? dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0)
							: root;
}

/* Find the attribute of an object that states a part of a fact; NULL: none. */
static const struct place *stated_place(const struct dicom_item *root, enum fact f, int part)
{
	char value[VALUE_SIZE];

	for (const struct place *at = places; at < places + PLACES; at++)
		if (at->fact == f && at->part == part && read_value(item_of(root, f), at, value)[0] &&
		    (f != FACT_START || is_start(root, at->tag)))
			return at;
	return NULL;
}

/* Compute the mark of what an object states of a fact, which ends its line: the origin is that of this value only. 16 bits of
 * FNV-1a show that a value was edited; who the patient is, they do not show. */
static void mark_value(const struct dicom_item *root, enum fact f, char ret_mark[MARK_SIZE])
{
	uint32_t hash = 2166136261U;
	char value[VALUE_SIZE], text[VALUE_SIZE + 40];
	struct pet_facts read;

	pet_facts_read(root, &read);
	for (int part = 0; part < PARTS; part++) {
		const struct place *at = stated_place(root, f, part);

		if (!at)
			continue;
		snprintf(text, sizeof(text), "%s=%s", at->name,
			 f == FACT_POSITION ? read.patient_position : read_value(item_of(root, f), at, value));
		for (const char *c = text; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 16777619U;
	}
	snprintf(ret_mark, MARK_SIZE, " #%04x", (unsigned)((hash >> 16 ^ hash) & 0xFFFF));
}

static void add_line(enum fact f, const char *origin, char ret_text[FACT_ORIGINS_SIZE])
{
	size_t n = strlen(ret_text);

	snprintf(ret_text + n, FACT_ORIGINS_SIZE - n, "%s: %s\n", facts[f].name, origin);
}

/* Does an Interfile header, or what stands for it, state a fact? */
static bool header_states(const struct interfile *h, const struct sinogram_said *said, enum fact f)
{
	const char *at = (const char *)h + facts[f].at;
	double value;

	if (f == FACT_STUDY || f == FACT_FRAME_OF_REFERENCE)
		return said && (f == FACT_STUDY ? said->study : said->frame_of_reference)[0];
	if (f == FACT_START)
		return sinogram_begin(h, &value);
	if (f == FACT_NUCLIDE)
		return h->tracer.nuclide;
	if (facts[f].at == 0 || !facts[f].number)
		return facts[f].at > 0 && at[0];
	memcpy(&value, at, sizeof(value));
	return value > 0;
}

/* Find where the value of an attribute is from. The values that the data have as `set` come first in it: they are the person's only
 * if a later one replaces them. */
static void find_origin(const struct sinogram_source *s, const struct place *at, char ret_origin[FACT_ORIGIN_SIZE])
{
	const struct sinogram_said *said = s->conf->said;
	const struct dicom_item *like = s->like ? dicom_root(s->like) : NULL;
	const char *keyword = NULL;
	char value[VALUE_SIZE];
	long k = -1;

	for (int i = 0; i < 2 && at->keyword[i] && k < 0; i++) {
		keyword = at->keyword[i];
		k = sinogram_set_index(s, keyword);
	}
	if (s->conf->simulated)
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "simulated");
	else if (k >= (long)s->conf->n_own)
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "set: %s", keyword);
	else if (k >= 0 || header_states(sinogram_said(s), said, at->fact))
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "%s: %s", said ? said->name : "header",
			 said ? said->field[at->fact] : facts[at->fact].key[at->part]);
	else if (like && (read_value(item_of(like, at->fact), at, value)[0] || (at = stated_place(like, at->fact, at->part))))
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "--like: %s %s", at->name, tag_text(at->tag));
	else
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "none");
}

/* Name what an import was told about beds: their times are not those of the acquisition. */
static void add_beds(const struct sinogram_import *conf, enum fact f, char ret_origin[FACT_ORIGIN_SIZE])
{
	size_t n = strlen(ret_origin);
	int given = 0;

	for (int b = 0; b < conf->n_beds; b++)
		given += f == FACT_START ? !isnan(conf->beds[b].start) : conf->beds[b].duration > 0;
	if (given == 0)
		return;
	if (f == FACT_DURATION && given == conf->n_beds)
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "--bed: duration");
	else
		snprintf(ret_origin + n, FACT_ORIGIN_SIZE - n, ", of %d of %d beds --bed: %s", given, conf->n_beds,
			 facts[f].name);
}

/* Name the origin of a fact; of parts whose origins are of different kinds, each. */
static void join_parts(const struct sinogram_source *s, const struct dicom_item *root, enum fact f,
		       char ret_origin[FACT_ORIGIN_SIZE])
{
	char origin[PARTS][FACT_ORIGIN_SIZE];

	for (int part = 0; part < PARTS; part++) {
		const struct place *at = stated_place(root, f, part);

		snprintf(origin[part], FACT_ORIGIN_SIZE, "none");
		if (at)
			find_origin(s, at, origin[part]);
	}
	if (!facts[f].part[0] || !strncmp(origin[0], origin[1], strcspn(origin[0], ":") + 1))
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "%s", origin[0]);
	else
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "%s %.40s, %s %.40s", facts[f].part[0], origin[0], facts[f].part[1],
			 origin[1]);
	if ((f == FACT_START || f == FACT_DURATION) && !s->conf->simulated)
		add_beds(s->conf, f, ret_origin);
}

void fact_origins_put(const struct sinogram_source *s, struct item_writer *root)
{
	char text[FACT_ORIGINS_SIZE] = "", origin[FACT_ORIGIN_SIZE], mark[MARK_SIZE], line[FACT_ORIGIN_SIZE + MARK_SIZE];

	for (enum fact f = 0; f < FACTS; f++) {
		join_parts(s, root->item, f, origin);
		mark_value(root->item, f, mark);
		snprintf(line, sizeof(line), "%s%s", origin, mark);
		add_line(f, line, text);
	}
	if (root->rc >= 0)
		root->rc =
			dicom_put_private(root->item, SINOGRAM_GROUP, SINOGRAM_CREATOR, SINOGRAM_ORIGINS, "UT", text, root->err);
}

/* ---- read ---- */

/* Find the origin of a value in the text of an object, which is of outside: only letters, digits and signs are taken. */
static bool find_line(const char *text, enum fact f, const char *mark, char ret_origin[FACT_ORIGIN_SIZE])
{
	char name[FACT_ORIGIN_SIZE], *end;

	while ((text = fact_origins_next(text, name, ret_origin)))
		if (!strcmp(name, facts[f].name) && (end = strstr(ret_origin, mark)) && !end[strlen(mark)]) {
			*end = '\0';
			for (char *c = ret_origin; *c; c++)
				if (*c < ' ' || *c > '~' || *c == '\\')
					*c = '?';
			return true;
		}
	return false;
}

/* What was decided after the objects were made. */
static const char *decided_origin(const struct sinogram *s, bool configured, enum fact f)
{
	if (s->patient && (f == FACT_PATIENT || f == FACT_STUDY))
		return "a person's statement";
	if ((s->no_position && f == FACT_POSITION) || (s->no_start && f == FACT_START) || (s->no_duration && f == FACT_DURATION))
		return "assumed";
	if (f != FACT_CALIBRATION)
		return NULL;
	if (s->calibration_origin[0])
		return s->calibration_origin;
	return configured ? "configuration: calibration of the scanner" : NULL;
}

void fact_origins_read(const struct sinogram *s, bool configured, char ret_text[FACT_ORIGINS_SIZE])
{
	const struct sinogram_part *part = &s->part[SINOGRAM_EMISSION];
	const struct dicom_item *root = dicom_root(s->files[part->file[0]]);
	uint32_t tag = sinogram_tag(private_block(root, SINOGRAM_GROUP, SINOGRAM_CREATOR), SINOGRAM_ORIGINS);
	char text[4 * FACT_ORIGINS_SIZE], origin[FACT_ORIGIN_SIZE], mark[MARK_SIZE];

	if (dicom_get_text(root, tag, text, sizeof(text), NULL) != 1)
		text[0] = '\0';
	ret_text[0] = '\0';
	for (enum fact f = 0; f < FACTS; f++) {
		const char *decision = decided_origin(s, configured, f);
		const struct place *at = stated_place(root, f, stated_place(root, f, 0) ? 0 : 1);

		mark_value(root, f, mark);
		if (decision)
			snprintf(origin, sizeof(origin), "%s", decision);
		else if (!at && header_states(&part->header, NULL, f))
			snprintf(origin, sizeof(origin), "header: %s", facts[f].key[0]);
		else if (!find_line(text, f, mark, origin))
			snprintf(origin, sizeof(origin), "%s%s%s%s", at ? "object: " : "none", at ? at->name : "", at ? " " : "",
				 at ? tag_text(at->tag) : "");
		add_line(f, origin, ret_text);
	}
}

const char *fact_origins_next(const char *text, char ret_name[FACT_ORIGIN_SIZE], char ret_origin[FACT_ORIGIN_SIZE])
{
	const char *end = strchr(text, '\n');
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz -");

	if (!end || text[name] != ':' || text[name + 1] != ' ' || name >= FACT_ORIGIN_SIZE)
		return NULL;
	text += name + 2;
	snprintf(ret_name, FACT_ORIGIN_SIZE, "%.*s", (int)name, text - name - 2);
	snprintf(ret_origin, FACT_ORIGIN_SIZE, "%.*s", end - text < FACT_ORIGIN_SIZE ? (int)(end - text) : 0, text);
	return end + 1;
}
