/* SPDX-License-Identifier: Apache-2.0 */
/* pet_facts.c - read values for quantification from the standard attributes of a sinogram object (docs/sinogram-object.md). A
 * value that is unreadable or impossible (a weight of 0) is treated as missing: the data are accepted, but missing values limit
 * the units of the result, and its report names them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/nuclides.h"
#include "node/sinogram/sinogram.h"

/* Read a number > 0; otherwise return NaN. */
static double read_number(const struct dicom_item *item, uint32_t tag)
{
	double v;

	return item && dicom_get_double(item, tag, 0, &v, NULL) == 1 && v > 0 ? v : NAN;
}

static void read_text(const struct dicom_item *item, uint32_t tag, char *ret, size_t size)
{
	if (!item || dicom_get_text(item, tag, ret, size, NULL) != 1)
		ret[0] = '\0';
}

/* Read date and time; what is not a day or a time of day is missing. */
static void read_moment(const struct dicom_item *item, uint32_t date_tag, uint32_t time_tag, char ret_date[9], char ret_time[17])
{
	double seconds;

	read_text(item, date_tag, ret_date, 9);
	read_text(item, time_tag, ret_time, 17);
	if (!pet_facts_moment(ret_date, "00", &seconds))
		ret_date[0] = '\0';
	if (!pet_facts_moment("20000101", ret_time, &seconds))
		ret_time[0] = '\0';
}

/* Read the meaning of a code, or its value if it has no meaning. */
static void read_code(const struct dicom_item *item, uint32_t sequence, char *ret, size_t size)
{
	const struct dicom_item *c = dicom_item_at(item, sequence, 0);

	read_text(c, TAG_CODE_MEANING, ret, size);
	if (!ret[0])
		read_text(c, TAG_CODE_VALUE, ret, size);
}

static void read_radiopharmaceutical(const struct dicom_item *item, struct pet_facts *f)
{
	char moment[27];

	read_text(item, TAG_RADIOPHARMACEUTICAL, f->radiopharmaceutical, sizeof(f->radiopharmaceutical));
	if (!f->radiopharmaceutical[0])
		read_code(item, TAG_RADIOPHARMACEUTICAL_CODE, f->radiopharmaceutical, sizeof(f->radiopharmaceutical));
	read_code(item, TAG_RADIONUCLIDE_CODE, f->radionuclide, sizeof(f->radionuclide));
	f->half_life = read_number(item, TAG_RADIONUCLIDE_HALF_LIFE);
	f->dose = read_number(item, TAG_RADIONUCLIDE_TOTAL_DOSE);
	f->volume = read_number(item, DICOM_TAG(0x0018, 0x1071));
	read_text(item, TAG_RADIOPHARMACEUTICAL_START_TIME, f->injected, sizeof(f->injected));
	read_text(item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, moment, sizeof(moment));
	if (!moment[0] || (!pet_facts_says_injection(moment) && pet_facts_says_injection(f->injected)))
		return;
	snprintf(f->injected_time, sizeof(f->injected_time), "%.16s", f->injected);
	memcpy(f->injected, moment, sizeof(moment));
}

/* ---- weight and dose ---- */

#define DOSE_LEAST 1e5 /* Bq; below it is a dose in MBq */
#define DOSE_MOST 1e12
#define WEIGHT_MOST 1000.0 /* kg; above it is a weight in g */

bool pet_facts_suv(const struct pet_facts *f, char *ret_reason, size_t size)
{
	ret_reason[0] = '\0';
	if (isnan(f->weight))
		snprintf(ret_reason, size, "no Patient's Weight (0010,1030)");
	else if (!(f->weight > 0 && f->weight <= WEIGHT_MOST))
		snprintf(ret_reason, size, "Patient's Weight (0010,1030) is %g kg; allowed: above 0, at most %g", f->weight,
			 WEIGHT_MOST);
	else if (isnan(f->dose))
		snprintf(ret_reason, size, "no Radionuclide Total Dose (0018,1074)");
	else if (!(f->dose >= DOSE_LEAST && f->dose <= DOSE_MOST))
		snprintf(ret_reason, size, "Radionuclide Total Dose (0018,1074) is %g Bq; allowed: %g to %g", f->dose, DOSE_LEAST,
			 DOSE_MOST);
	return !ret_reason[0];
}

/* ---- position of the patient ---- */

static const struct position {
	const char *name;
	int axis[3][3]; /* directions of x, y, z in LPS */
} positions[] = {
	/* PS3.3 C.7.3.1.1.2. z points into the gantry: to the head if the patient enters head first; y points down: to the side
	   that the patient lies on; x = y cross z. */
	{"HFS", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},	{"HFP", {{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}},
	{"FFS", {{-1, 0, 0}, {0, 1, 0}, {0, 0, -1}}},	{"FFP", {{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}},
	{"HFDR", {{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}}},	{"HFDL", {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}},
	{"FFDR", {{0, -1, 0}, {-1, 0, 0}, {0, 0, -1}}}, {"FFDL", {{0, 1, 0}, {1, 0, 0}, {0, 0, -1}}},
};

bool pet_facts_axes(const char *position, double ret_axis[3][3])
{
	for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++)
		if (!strcmp(position, positions[i].name)) {
			for (int c = 0; c < 9; c++)
				ret_axis[c / 3][c % 3] = positions[i].axis[c / 3][c % 3];
			return true;
		}
	return false;
}

struct meaning {
	const char *sct, *srt, *word; /* codes of SNOMED CT and, before 2016, SNOMED-RT (PS3.16 annex O) */
};

/* Patient Orientation Modifier (CID 20) and Patient Gantry Relationship (CID 21) */
static const struct meaning modifiers[] = {{"40199007", "F-10340", "S"},
					   {"1240000", "F-10310", "P"},
					   {"102535000", "F-10317", "DR"},
					   {"102536004", "F-10319", "DL"}};
static const struct meaning gantry_relationships[] = {{"102540008", "F-10470", "HF"}, {"102541007", "F-10480", "FF"}};

static const char *word_of_code(const char *code, const struct meaning *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(code, all[i].sct) || !strcmp(code, all[i].srt))
			return all[i].word;
	return "";
}

const char *pet_facts_lies(const char *code)
{
	return word_of_code(code, modifiers, sizeof(modifiers) / sizeof(modifiers[0]));
}

const char *pet_facts_enters(const char *code)
{
	return word_of_code(code, gantry_relationships, sizeof(gantry_relationships) / sizeof(gantry_relationships[0]));
}

static const char *word_of(const struct dicom_item *item, uint32_t sequence, const char *(*word)(const char *code))
{
	for (size_t k = 0; k < dicom_item_count(item, sequence); k++) {
		char value[17];

		read_text(dicom_item_at(item, sequence, k), TAG_CODE_VALUE, value, sizeof(value));
		if (word(value)[0])
			return word(value);
	}
	return "";
}

/* Return the position of both codes; "": not both are present. */
static void read_coded_position(const struct dicom_item *root, char *ret, size_t size)
{
	const struct dicom_item *orientation = dicom_item_at(root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, 0);
	const char *first = word_of(root, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, pet_facts_enters);
	const char *on = orientation ? word_of(orientation, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, pet_facts_lies) : "";

	snprintf(ret, size, "%s%s", first[0] && on[0] ? first : "", first[0] && on[0] ? on : "");
}

/* Read the position from the codes if both are present, else from the old attribute. */
static void read_position(const struct dicom_item *root, char *ret, size_t size)
{
	read_coded_position(root, ret, size);
	if (!ret[0])
		read_text(root, TAG_PATIENT_POSITION, ret, size);
}

/* ---- contradictions within one object ---- */

const struct nuclide *pet_facts_nuclide(const struct dicom_item *item)
{
	const struct dicom_item *coded = dicom_item_at(item, TAG_RADIONUCLIDE_CODE, 0);
	const struct nuclide *nuclide;
	char value[65], meaning[65];

	read_text(coded, TAG_CODE_VALUE, value, sizeof(value));
	read_text(coded, TAG_CODE_MEANING, meaning, sizeof(meaning));
	nuclide = nuclide_of_code(value);
	return nuclide ? nuclide : nuclide_find(meaning);
}

static int check_half_life(const struct dicom_item *item, struct err *err)
{
	const struct nuclide *nuclide = item ? pet_facts_nuclide(item) : NULL;
	double half_life = read_number(item, TAG_RADIONUCLIDE_HALF_LIFE);

	if (!nuclide || isnan(half_life) || nuclide_same_half_life(half_life, nuclide->half_life))
		return 0;
	return err_set(err, EBADMSG, "Radionuclide Half Life (0018,1075) is %g s, but that of the radionuclide %s is %g s",
		       half_life, nuclide->name, nuclide->half_life);
}

static bool is_named(const struct nuclide *named, const struct nuclide *coded, double half_life)
{
	return (coded ? named == coded : nuclide_same_half_life(named->half_life, half_life)) ||
	       nuclide_is_generated(named->half_life, half_life);
}

/* A drug whose name has a nuclide, or several, must have that of the code, or its half-life, or that of its parent or daughter. So
 * must a drug's code, and the meaning of the nuclide's. */
static int check_drug(const struct dicom_item *item, struct err *err)
{
	const struct dicom_item *drug = item ? dicom_item_at(item, TAG_RADIOPHARMACEUTICAL_CODE, 0) : NULL;
	const struct nuclide *coded = item ? pet_facts_nuclide(item) : NULL, *named, *other = NULL;
	double half_life = coded ? coded->half_life : read_number(item, TAG_RADIONUCLIDE_HALF_LIFE);
	struct {
		const char *place;
		char text[65];
	} said[] = {{"Radiopharmaceutical (0018,0031)", ""},
		    {"Radiopharmaceutical Code Sequence (0054,0304)", ""},
		    {"Code Meaning of Radionuclide Code Sequence (0054,0300)", ""},
		    {"Code Value of Radiopharmaceutical Code Sequence (0054,0304)", ""}};

	read_text(item, TAG_RADIOPHARMACEUTICAL, said[0].text, sizeof(said[0].text));
	read_code(item, TAG_RADIOPHARMACEUTICAL_CODE, said[1].text, sizeof(said[1].text));
	read_code(item, TAG_RADIONUCLIDE_CODE, said[2].text, sizeof(said[2].text));
	read_text(drug, TAG_CODE_VALUE, said[3].text, sizeof(said[3].text));
	for (int i = 0; i < 4 && half_life > 0; i++) {
		const char *at = said[i].text;

		named = i == 3 ? nuclide_of_drug(at) : nuclide_in_name(at, &at);
		for (other = NULL; named && !is_named(named, coded, half_life); named = nuclide_in_name(said[i].text, &at))
			other = named;
		if (!named && other)
			return err_set(err, EBADMSG,
				       "%s is \"%s\", which names %s with a half-life of %.9g s, but %s is %s%s%.9g s",
				       said[i].place, said[i].text, other->name, other->half_life,
				       coded ? "Radionuclide Code Sequence (0054,0300)" : "Radionuclide Half Life (0018,1075)",
				       coded ? coded->name : "", coded ? " with one of " : "", half_life);
	}
	return 0;
}

static int check_position(const struct dicom_item *root, struct err *err)
{
	char stated[17], coded[17];

	read_text(root, TAG_PATIENT_POSITION, stated, sizeof(stated));
	read_coded_position(root, coded, sizeof(coded));
	if (!stated[0] || !coded[0] || !strcmp(stated, coded))
		return 0;
	return err_set(err, EBADMSG,
		       "Patient Position (0018,5100) is %s, but the codes of (0054,0410) and (0054,0414) are those of %s", stated,
		       coded);
}

static int check_start(const struct dicom_item *root, struct err *err)
{
	char date[9], time[17], moment[27], first[17] = "";
	double apart, start;

	read_moment(root, TAG_ACQUISITION_DATE, TAG_ACQUISITION_TIME, date, time);
	read_text(root, TAG_ACQUISITION_DATE_TIME, moment, sizeof(moment));
	if (!date[0] || !time[0] || strlen(moment) < 14 || strpbrk(moment + 8, "+-"))
		return 0;
	snprintf(first, sizeof(first), "%.16s", moment + 8);
	moment[8] = '\0';
	if (!pet_facts_moment(moment, first, &apart) || !pet_facts_moment(date, time, &start) || fabs(apart - start) < 1)
		return 0;
	return err_set(err, EBADMSG, "Acquisition DateTime (0008,002A) is %s%s, but (0008,0022) and (0008,0032) are %s%s", moment,
		       first, date, time);
}

/* The factor must be that of half-life and times, as far as they are known. */
static int check_factor(const struct dicom_item *root, const char *to, double factor, struct err *err)
{
	bool admin = !strcmp(to, "ADMIN");
	struct pet_facts f;
	double range[2];

	pet_facts_read(root, &f);
	if (!(factor > 0) || !pet_facts_decay_range(&f, admin, range) || (factor >= range[0] && factor <= range[1]))
		return 0;
	return err_set(err, EBADMSG,
		       "Decay Factor (0054,1321) is %g with Decay Correction (0054,1102) %s, but a half-life of %g s, a duration "
		       "of %g s, the start %s%s and the %s %s%s make it %.4g to %.4g",
		       factor, to, f.half_life, f.duration, f.acquisition_date, f.acquisition_time,
		       admin ? "injection" : "start of the series", admin ? "" : f.series_date,
		       admin ? f.injected : f.series_time, range[0], range[1]);
}

/* Decay that is corrected has a factor, and DECY in Corrected Image: without it, it would be corrected again. */
static int check_decay(const struct dicom_item *root, struct err *err)
{
	double factor = read_number(root, TAG_DECAY_FACTOR);
	char to[17], corrected[200];

	read_text(root, TAG_DECAY_CORRECTION, to, sizeof(to));
	read_text(root, TAG_CORRECTED_IMAGE, corrected, sizeof(corrected));
	if ((strcmp(to, "START") && strcmp(to, "ADMIN")) || !corrected[0])
		return 0;
	if (strstr(corrected, "DECY"))
		return check_factor(root, to, factor, err);
	if (!(fabs(factor - 1) > 1e-3))
		return 0;
	return err_set(
		err, EBADMSG,
		"Decay Correction (0054,1102) is %s with the Decay Factor (0054,1321) %g, but Corrected Image (0028,0051) is "
		"%s, without DECY",
		to, factor, corrected);
}

int pet_facts_check(const struct dicom_item *root, struct err *err)
{
	const struct dicom_item *tracer = dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	int rc = check_half_life(tracer, err);

	rc = rc == 0 ? check_drug(tracer, err) : rc;
	rc = rc == 0 ? check_position(root, err) : rc;
	rc = rc == 0 ? check_decay(root, err) : rc;
	return rc == 0 ? check_start(root, err) : rc;
}

void pet_facts_read(const struct dicom_item *root, struct pet_facts *ret_facts)
{
	struct pet_facts f = {.weight = read_number(root, TAG_PATIENT_WEIGHT),
			      .size = read_number(root, DICOM_TAG(0x0010, 0x1020))};
	double offset;

	read_radiopharmaceutical(dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0), &f);
	read_moment(root, TAG_SERIES_DATE, TAG_SERIES_TIME, f.series_date, f.series_time);
	read_moment(root, TAG_ACQUISITION_DATE, TAG_ACQUISITION_TIME, f.acquisition_date, f.acquisition_time);
	read_text(root, TAG_TIMEZONE_OFFSET_FROM_UTC, f.zone, sizeof(f.zone));
	if (!pet_facts_offset(f.zone, &offset))
		f.zone[0] = '\0';
	f.duration = read_number(root, TAG_ACTUAL_FRAME_DURATION) / 1000; /* ms */
	f.calibration = read_number(root, TAG_DOSE_CALIBRATION_FACTOR);
	read_text(root, TAG_CORRECTED_IMAGE, f.corrected, sizeof(f.corrected));
	read_position(root, f.patient_position, sizeof(f.patient_position));
	*ret_facts = f;
}
