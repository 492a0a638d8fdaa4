/* SPDX-License-Identifier: Apache-2.0 */
/* fact_origins.c - see node/sinogram/fact_origins.h. An import knows what it took from where and writes it into its objects; an
 * object without such a text, of another program, states its facts in its own attributes. Who decides is the same for all facts:
 * a person, then the data, then the file of --like (sinogram_attributes.c). */
#include "node/sinogram/fact_origins.h"

#include <stdio.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/sinogram/sinogram_internal.h"

enum fact {
	PATIENT,
	STUDY,
	FRAME_OF_REFERENCE,
	POSITION,
	WEIGHT,
	START,
	DURATION,
	NUCLIDE,
	HALF_LIFE,
	FRACTION,
	DOSE,
	INJECTION,
	CALIBRATION,
	DECAY,
	FACTS
};

static const struct {
	const char *name, *key; /* key: of Interfile headers; NULL: none */
} facts[FACTS] = {
	[PATIENT] = {"patient", NULL},
	[STUDY] = {"study", NULL},
	[FRAME_OF_REFERENCE] = {"frame of reference", NULL},
	[POSITION] = {"position", "patient orientation"},
	[WEIGHT] = {"weight", NULL},
	[START] = {"start", "study date"},
	[DURATION] = {"duration", "image duration (sec)"},
	[NUCLIDE] = {"nuclide", "isotope name"},
	[HALF_LIFE] = {"half-life", "isotope name or half-life"},
	[FRACTION] = {"positron fraction", "branching factor"},
	[DOSE] = {"dose", "tracer activity at time of injection"},
	[INJECTION] = {"injection", "tracer injection time"},
	[CALIBRATION] = {"calibration factor", NULL},
	[DECAY] = {"decay correction", NULL},
};

/* Attributes that state a fact, the one that counts first; from NUCLIDE to INJECTION in the item of (0054,0016). */
static const struct place {
	enum fact fact;
	uint32_t tag; /* 0: only the keyword, which writes another attribute */
	const char *name, *keyword;
} places[] = {
	{PATIENT, TAG_PATIENT_ID, "Patient ID", "PatientID"},
	{PATIENT, TAG_PATIENT_NAME, "Patient's Name", "PatientName"},
	{STUDY, TAG_STUDY_INSTANCE_UID, "Study Instance UID", "StudyInstanceUID"},
	{FRAME_OF_REFERENCE, TAG_FRAME_OF_REFERENCE_UID, "Frame of Reference UID", "FrameOfReferenceUID"},
	{POSITION, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "Patient Gantry Relationship Code", "PatientPosition"},
	{POSITION, TAG_PATIENT_POSITION, "Patient Position", "PatientPosition"},
	{WEIGHT, TAG_PATIENT_WEIGHT, "Patient's Weight", "PatientWeight"},
	{START, TAG_ACQUISITION_DATE, "Acquisition Date", "AcquisitionDate"},
	{START, TAG_ACQUISITION_TIME, "Acquisition Time", "AcquisitionTime"},
	{START, TAG_SERIES_TIME, "Series Time", "SeriesTime"},
	{START, TAG_SERIES_DATE, "Series Date", "SeriesDate"},
	{START, TAG_ACQUISITION_DATE_TIME, "Acquisition DateTime", "AcquisitionDateTime"},
	{DURATION, TAG_ACTUAL_FRAME_DURATION, "Actual Frame Duration", "ActualFrameDuration"},
	{NUCLIDE, TAG_RADIONUCLIDE_CODE, "Radionuclide Code Sequence", "Radionuclide"},
	{HALF_LIFE, TAG_RADIONUCLIDE_HALF_LIFE, "Radionuclide Half Life", "RadionuclideHalfLife"},
	{HALF_LIFE, 0, "", "Radionuclide"},
	{FRACTION, TAG_RADIONUCLIDE_POSITRON_FRACTION, "Radionuclide Positron Fraction", "RadionuclidePositronFraction"},
	{DOSE, TAG_RADIONUCLIDE_TOTAL_DOSE, "Radionuclide Total Dose", "RadionuclideTotalDose"},
	{INJECTION, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, "Radiopharmaceutical Start DateTime",
	 "RadiopharmaceuticalStartDateTime"},
	{INJECTION, TAG_RADIOPHARMACEUTICAL_START_TIME, "Radiopharmaceutical Start Time", "RadiopharmaceuticalStartTime"},
	{CALIBRATION, TAG_DOSE_CALIBRATION_FACTOR, "Dose Calibration Factor", "DoseCalibrationFactor"},
	{DECAY, TAG_DECAY_CORRECTION, "Decay Correction", "DecayCorrection"},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void add_line(enum fact f, const char *origin, char ret_text[FACT_ORIGINS_SIZE])
{
	size_t n = strlen(ret_text);

	snprintf(ret_text + n, FACT_ORIGINS_SIZE - n, "%s: %s\n", facts[f].name, origin);
}

/* The start is that of the acquisition only if both its date and its time can be used (pet_facts_read()). */
static bool is_start(const struct dicom_item *root, uint32_t tag)
{
	struct pet_facts f;

	pet_facts_read(root, &f);
	if (f.acquisition_date[0] && f.acquisition_time[0])
		return tag == TAG_ACQUISITION_DATE;
	return tag == TAG_SERIES_TIME && f.series_date[0] && f.series_time[0];
}

/* Is there a value that is used? A number that is not above 0, and a moment that is none, are not. */
static bool is_used(const struct dicom_item *item, const struct place *at)
{
	char value[DICOM_UID_SIZE] = "";
	double number;

	if (!at->tag || !dicom_has(item, at->tag))
		return false;
	if (dicom_item_count(item, at->tag) > 0)
		return true;
	if (dicom_get_text(item, at->tag, value, sizeof(value), NULL) == 0)
		return false;
	switch (at->fact) {
	case START:
		return is_start(item, at->tag);
	case INJECTION:
		return pet_facts_says_injection(value);
	case WEIGHT:
	case DURATION:
	case HALF_LIFE:
	case FRACTION:
	case DOSE:
	case CALIBRATION:
		return dicom_get_double(item, at->tag, 0, &number, NULL) == 1 && number > 0;
	default:
		return true;
	}
}

/* Find the attribute of an object that states a fact; NULL: none. */
static const struct place *stated(const struct dicom_item *root, enum fact f)
{
	const struct dicom_item *item =
		f >= NUCLIDE && f <= INJECTION ? dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0) : root;

	for (const struct place *at = places; item && at < places + PLACES; at++)
		if (at->fact == f && is_used(item, at))
			return at;
	return NULL;
}

/* Does an Interfile header, or what stands for it, state a fact? */
static bool header_states(const struct interfile *h, const struct sinogram_said *said, enum fact f)
{
	double begin;

	switch (f) {
	case STUDY:
		return said && said->study[0];
	case FRAME_OF_REFERENCE:
		return said && said->frame_of_reference[0];
	case POSITION:
		return h->position[0];
	case START:
		return sinogram_begin(h, &begin);
	case DURATION:
		return h->duration > 0;
	case NUCLIDE:
		return h->tracer.nuclide;
	case HALF_LIFE:
		return h->tracer.half_life > 0;
	case FRACTION:
		return h->tracer.branching > 0;
	case DOSE:
		return h->tracer.dose > 0;
	case INJECTION:
		return h->tracer.injected[0];
	default:
		return false;
	}
}

static bool is_series(uint32_t tag)
{
	return tag == TAG_SERIES_DATE || tag == TAG_SERIES_TIME;
}

/* The values that the data have as `set` come first in it: they are the person's only if a later one replaces them. */
static bool find_set(const struct sinogram_source *s, enum fact f, const struct place *used, char ret_origin[FACT_ORIGIN_SIZE])
{
	for (const struct place *at = places; at < places + PLACES; at++) {
		long k = at->fact == f ? sinogram_set_index(s, at->keyword) : -1;

		if (k < 0 || (f == START && is_series(at->tag) != is_series(used->tag)))
			continue;
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "%s: %s", (size_t)k < s->conf->n_own ? s->conf->said->name : "set",
			 at->keyword);
		return true;
	}
	return false;
}

static void find_origin(const struct sinogram_source *s, const struct dicom_item *root, enum fact f,
			char ret_origin[FACT_ORIGIN_SIZE])
{
	const struct sinogram_said *said = s->conf->said;
	const struct place *at = stated(root, f);

	snprintf(ret_origin, FACT_ORIGIN_SIZE, "none");
	if (!at || find_set(s, f, at, ret_origin))
		return;
	if (header_states(sinogram_said(s), said, f))
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "%s: %s", said ? said->name : "header",
			 said ? "exam information" : facts[f].key);
	else if (s->like && (at = stated(dicom_root(s->like), f)))
		snprintf(ret_origin, FACT_ORIGIN_SIZE, "--like: %s %s", at->name, tag_text(at->tag));
}

void fact_origins_put(const struct sinogram_source *s, struct item_writer *root)
{
	char text[FACT_ORIGINS_SIZE] = "", origin[FACT_ORIGIN_SIZE];

	for (enum fact f = 0; f < FACTS; f++) {
		find_origin(s, root->item, f, origin);
		add_line(f, origin, text);
	}
	if (root->rc >= 0)
		root->rc =
			dicom_put_private(root->item, SINOGRAM_GROUP, SINOGRAM_CREATOR, SINOGRAM_ORIGINS, "UT", text, root->err);
}

/* ---- read ---- */

/* Find a fact in the text of an object, which is of outside: only letters, digits and signs are taken. */
static bool find_line(const char *text, enum fact f, char ret_origin[FACT_ORIGIN_SIZE])
{
	char name[FACT_ORIGIN_SIZE];

	while ((text = fact_origins_next(text, name, ret_origin)))
		if (!strcmp(name, facts[f].name)) {
			for (char *c = ret_origin; *c; c++)
				if (*c < ' ' || *c > '~' || *c == '\\')
					*c = '?';
			return true;
		}
	return false;
}

/* Is another attribute used than at the import, because that one was removed or damaged since? */
static bool is_replaced(const struct place *at, const char *origin)
{
	return (is_series(at->tag) && !strstr(origin, "Series")) ||
	       (at->tag == TAG_RADIOPHARMACEUTICAL_START_TIME && strstr(origin, "DateTime"));
}

/* What was decided after the objects were made. */
static const char *decided(const struct sinogram *s, bool configured, enum fact f)
{
	if (s->patient && (f == PATIENT || f == STUDY))
		return "a person's statement";
	if ((s->no_position && f == POSITION) || (s->no_start && f == START) || (s->no_duration && f == DURATION))
		return "assumed";
	return configured && f == CALIBRATION ? "configuration: calibration of the scanner" : NULL;
}

void fact_origins_read(const struct sinogram *s, bool configured, char ret_text[FACT_ORIGINS_SIZE])
{
	const struct sinogram_part *part = &s->part[SINOGRAM_EMISSION];
	const struct dicom_item *root = dicom_root(s->files[part->file[0]]);
	uint32_t tag = sinogram_tag(private_block(root, SINOGRAM_GROUP, SINOGRAM_CREATOR), SINOGRAM_ORIGINS);
	char text[4 * FACT_ORIGINS_SIZE], origin[FACT_ORIGIN_SIZE];

	if (dicom_get_text(root, tag, text, sizeof(text), NULL) != 1)
		text[0] = '\0';
	ret_text[0] = '\0';
	for (enum fact f = 0; f < FACTS; f++) {
		const char *decision = decided(s, configured, f);
		const struct place *at = stated(root, f); /* it may have been removed since the import */

		if (decision)
			snprintf(origin, sizeof(origin), "%s", decision);
		else if (!at)
			snprintf(origin, sizeof(origin), "%s%s", header_states(&part->header, NULL, f) ? "header: " : "none",
				 header_states(&part->header, NULL, f) ? facts[f].key : "");
		else if (!find_line(text, f, origin) || is_replaced(at, origin))
			snprintf(origin, sizeof(origin), "object: %s %s", at->name, tag_text(at->tag));
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
