/* SPDX-License-Identifier: Apache-2.0 */
/* provenance.c - see node/sinogram/provenance.h. Values of the sources are copied unchanged; only values about this program are
 * added. */
#include "node/sinogram/provenance.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dicom/object/dicom_tags.h"
#include "kernels/order.h"
#include "node/base/version.h"
#include "node/sinogram/fact_origins.h"

#define LONGEST_TITLE 64     /* characters of a Series Description (LO) */
#define SHORTEST_TITLE 40    /* to which it is cut off for settings */
#define PARAMETERS_MOST 60   /* characters of the parameters of a step in a derivation */
#define LONGEST_SETTINGS 200 /* characters of the settings in a derivation */

void provenance_uid(const char *text, struct dicom_file *const *files, size_t n_files, char ret_uid[DICOM_UID_SIZE])
{
	size_t at = strlen(text), size = at + 1 + n_files * (DICOM_UID_SIZE + 1);
	char *all = malloc(size), (*uids)[DICOM_UID_SIZE] = calloc(n_files + 1, sizeof(*uids));
	const char **order = calloc(n_files + 1, sizeof(*order));

	ret_uid[0] = '\0';
	if (!all || !uids || !order)
		goto out;
	memcpy(all, text, at + 1);
	for (size_t i = 0; i < n_files; i++) {
		dicom_get_text(dicom_root(files[i]), TAG_SOP_INSTANCE_UID, uids[i], sizeof(uids[i]), NULL);
		order[i] = uids[i];
	}
	qsort(order, n_files, sizeof(*order), order_texts);
	for (size_t i = 0; i < n_files; i++)
		at += (size_t)snprintf(all + at, size - at, "|%s", order[i]);
	dicom_uid_from_text(all, ret_uid);
out:
	free(order);
	free(uids);
	free(all);
}

void provenance_format_time(const struct dicom_item *source, double now, struct provenance_time *ret_time)
{
	time_t seconds = (time_t)now;
	int micro = (int)((now - floor(now)) * 1e6);
	char zone[17] = "", sign, date[sizeof(ret_time->date)] = "", time[sizeof(ret_time->time)];
	struct tm tm;
	int hours, minutes;

	if (dicom_get_text(source, TAG_TIMEZONE_OFFSET_FROM_UTC, zone, sizeof(zone), NULL) == 1 &&
	    sscanf(zone, "%c%2d%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-')) {
		seconds += (sign == '-' ? -60 : 60) * (60 * hours + minutes);
		gmtime_r(&seconds, &tm);
	} else {
		localtime_r(&seconds, &tm);
	}
	strftime(date, sizeof(date), "%Y%m%d", &tm);
	snprintf(time, sizeof(time), "%02u%02u%02u.%06u", (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
		 (unsigned)tm.tm_sec % 100, (unsigned)micro % 1000000);
	memcpy(ret_time->date, date, sizeof(ret_time->date));
	memcpy(ret_time->time, time, sizeof(ret_time->time));
	snprintf(ret_time->date_time, sizeof(ret_time->date_time), "%s%s", date, time);
}

static const uint32_t copied[] = {
	TAG_SPECIFIC_CHARACTER_SET, TAG_TIMEZONE_OFFSET_FROM_UTC, DICOM_TAG(0x0008, 0x0051), /* Issuer of Accession Number */
	DICOM_TAG(0x0008, 0x1030),							     /* Study Description */
	DICOM_TAG(0x0008, 0x1032),							     /* Procedure Code */
	DICOM_TAG(0x0008, 0x1048),							     /* Physicians of Record */
	DICOM_TAG(0x0008, 0x1050),							     /* Performing Physician's Name */
	DICOM_TAG(0x0008, 0x1070),							     /* Operators' Name */
	DICOM_TAG(0x0008, 0x1080),							     /* Admitting Diagnoses Description */
	DICOM_TAG(0x0008, 0x1110),							     /* Referenced Study */
	DICOM_TAG(0x0008, 0x1111), /* Referenced Performed Procedure Step */
	DICOM_TAG(0x0010, 0x0021), /* Issuer of Patient ID */
	DICOM_TAG(0x0010, 0x0024), /* Issuer of Patient ID Qualifiers */
	DICOM_TAG(0x0010, 0x0032), /* Patient's Birth Time */
	DICOM_TAG(0x0010, 0x1002), /* Other Patient IDs */
	DICOM_TAG(0x0010, 0x1020), /* Patient's Size */
	DICOM_TAG(0x0010, 0x1030), /* Patient's Weight */
	DICOM_TAG(0x0012, 0x0010), /* Clinical Trial Sponsor Name */
	DICOM_TAG(0x0012, 0x0020), /* Clinical Trial Protocol ID */
	DICOM_TAG(0x0012, 0x0021), /* Clinical Trial Protocol Name */
	DICOM_TAG(0x0012, 0x0030), /* Clinical Trial Site ID */
	DICOM_TAG(0x0012, 0x0031), /* Clinical Trial Site Name */
	DICOM_TAG(0x0012, 0x0040), /* Clinical Trial Subject ID */
	DICOM_TAG(0x0012, 0x0042), /* Clinical Trial Subject Reading ID */
	DICOM_TAG(0x0012, 0x0062), /* Patient Identity Removed */
	DICOM_TAG(0x0012, 0x0063), /* De-identification Method */
	DICOM_TAG(0x0012, 0x0064), /* De-identification Method Code */
	DICOM_TAG(0x0028, 0x0303), /* Longitudinal Temporal Information Modified */
	DICOM_TAG(0x0018, 0x1030), /* Protocol Name */
	DICOM_TAG(0x0040, 0x0244), /* Performed Procedure Step Start Date */
	DICOM_TAG(0x0040, 0x0245), /* Performed Procedure Step Start Time */
	DICOM_TAG(0x0040, 0x0253), /* Performed Procedure Step ID */
	DICOM_TAG(0x0040, 0x0254), /* Performed Procedure Step Description */
	DICOM_TAG(0x0040, 0x0260), /* Performed Protocol Code */
	DICOM_TAG(0x0040, 0x0275), /* Request Attributes */
	TAG_STUDY_INSTANCE_UID,	    TAG_INSTITUTION_NAME,	  TAG_INSTITUTION_ADDRESS,   TAG_INSTITUTIONAL_DEPARTMENT_NAME,
};

/* Type 2 attributes: copied, or written empty if the source does not have them. */
static const uint32_t copied_or_empty[] = {
	TAG_PATIENT_NAME, TAG_PATIENT_ID,	TAG_PATIENT_BIRTH_DATE,	      TAG_PATIENT_SEX, TAG_STUDY_DATE,
	TAG_STUDY_TIME,	  TAG_ACCESSION_NUMBER, TAG_REFERRING_PHYSICIAN_NAME, TAG_STUDY_ID,
};

void provenance_patient_text(struct dicom_file *patient, char *ret_text, size_t size)
{
	char uid[DICOM_UID_SIZE] = "";

	ret_text[0] = '\0';
	if (!patient)
		return;
	dicom_get_text(dicom_root(patient), TAG_SOP_INSTANCE_UID, uid, sizeof(uid), NULL);
	snprintf(ret_text, size, " A person stated that all sources are of one patient; patient and study are those of %s.", uid);
}

static void seed_told(const struct result_outside *o, char *ret_text, size_t size)
{
	char told[sizeof(o->said) + sizeof(o->warnings) + 1], digest[65];
	int n = snprintf(told, sizeof(told), "%s|%s", o->said, o->warnings);

	dicom_sha256(told, (size_t)n, digest);
	snprintf(ret_text, size, "|told %s", digest);
}

void provenance_place_seed(const struct result_place *place, char *ret_text, size_t size)
{
	int n = 0;

	ret_text[0] = '\0';
	if (place->newer)
		n = snprintf(ret_text, size, "|newer %lld", (long long)place->newer);
	if (place->redo)
		n += snprintf(ret_text + n, size - (size_t)n, "|redo %lld", (long long)place->redo);
	if (place->outside)
		n += snprintf(ret_text + n, size - (size_t)n, "|outside %s|%s|%s|%d|%d|%s", place->outside->software,
			      place->outside->version, place->outside->note, (int)place->outside->algorithm,
			      place->outside->corrected, place->outside->sha256);
	if (place->outside && (place->outside->said[0] || place->outside->warnings[0]))
		seed_told(place->outside, ret_text + n, size - (size_t)n);
}

/* Write what stands for the settings in `left`, which have no room among all of `changed`: ", +3 more #5d1c". */
static void name_rest(const char *changed, const char *left, char *ret_text, size_t size)
{
	char digest[65];
	int n = 1;

	for (const char *at = left; (at = strstr(at, ", ")); at += 2)
		n++;
	dicom_sha256(changed, strlen(changed), digest);
	snprintf(ret_text, size, ", +%d more #%.4s", n, digest);
}

/* Write ", KEY=VALUE" for each setting, as many as have room together with what stands for the others; room: characters. */
static void name_settings(const char *changed, size_t room, char *ret_text, size_t size)
{
	const char *at = changed;
	char rest[40];

	ret_text[0] = '\0';
	while (*at) {
		const char *next = strstr(at, ", ");
		size_t used = strlen(ret_text), length = next ? (size_t)(next - at) : strlen(at);

		if (next && used + 2 + strlen(at) > room)
			name_rest(changed, next + 2, rest, sizeof(rest));
		else
			rest[0] = '\0';
		if (used + 2 + length + strlen(rest) > room) {
			name_rest(changed, at, rest, sizeof(rest));
			snprintf(ret_text + used, size - used, "%s", rest);
			return;
		}
		snprintf(ret_text + used, size - used, ", %.*s", (int)length, at);
		at += length + (next ? 2 : 0);
	}
}

void provenance_place_text(const struct result_place *place, char *ret_text, size_t size)
{
	char settings[LONGEST_SETTINGS + 40];

	int n = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < place->n_steps && n < (int)size; i++) {
		const struct result_step *s = &place->step[i];

		n += snprintf(ret_text + n, size - (size_t)n, "%s %s %s (sha256 %.12s%s%.*s)%s", i ? "," : " Then", s->name,
			      s->version, s->sha256, s->parameters[0] ? "; " : "", PARAMETERS_MOST, s->parameters,
			      i + 1 == place->n_steps ? " changed the volume." : "");
	}
	if (n >= (int)size)
		return;
	if (place->newer)
		n += snprintf(ret_text + n, size - (size_t)n,
			      " The sources are newer objects under UIDs that were received before.");
	if (!place->redo)
		return;
	name_settings(place->changed, LONGEST_SETTINGS, settings, sizeof(settings));
	snprintf(ret_text + n, size - (size_t)n, " Reconstructed again from the same images at a person's request%s%s%s%s.",
		 settings[0] ? " with " : "", settings[0] ? settings + 2 : "", place->related_series[0] ? ", after series " : "",
		 place->related_series);
}

void provenance_outside_text(const struct result_place *place, char ret_text[PROVENANCE_OUTSIDE_SIZE])
{
	const struct result_outside *o = place->outside;

	ret_text[0] = '\0';
	if (o)
		snprintf(ret_text, PROVENANCE_OUTSIDE_SIZE, PROVENANCE_OUTSIDE_BEGIN "%s %s (SHA-256 %s)%s%s. ", o->software,
			 o->version, o->sha256, o->note[0] ? ": " : "", o->note);
}

/* Move the setting with this key to the front. */
static void lead_with(const char *key, const char *changed, char *ret_text, size_t size)
{
	size_t length = strlen(key), n;
	const char *at = changed, *next;

	while ((next = strstr(at, ", ")) && (strncmp(at, key, length) != 0 || at[length] != '='))
		at = next + 2;
	n = next ? (size_t)(next - at) : strlen(at);
	if (at == changed || strncmp(at, key, length) != 0 || at[length] != '=')
		snprintf(ret_text, size, "%s", changed);
	else
		snprintf(ret_text, size, "%.*s, %.*s%s", (int)n, at, (int)(at - changed - 2), changed, at + n);
}

/* Does a text of name_settings() have the key? */
static bool names_key(const char *settings, const char *key)
{
	char wanted[80];

	snprintf(wanted, sizeof(wanted), ", %.70s=", key);
	return strstr(settings, wanted) != NULL;
}

void provenance_place_title(const struct result_place *place, char *title)
{
	char settings[LONGEST_TITLE + 1], changed[sizeof(place->changed)];
	size_t n = strlen(title), kept = n < SHORTEST_TITLE ? n : SHORTEST_TITLE;

	if (place->outside) {
		snprintf(title, LONGEST_TITLE + 1, "%.32s %.12s, outside tomonode", place->outside->software,
			 place->outside->version);
		return;
	}
	name_settings(place->changed, LONGEST_TITLE - kept, settings, sizeof(settings));
	if (place->named[0] && !names_key(settings, place->named)) {
		lead_with(place->named, place->changed, changed, sizeof(changed));
		name_settings(changed, LONGEST_TITLE - kept, settings, sizeof(settings));
	}
	kept = LONGEST_TITLE - strlen(settings);
	snprintf(title + (n < kept ? n : kept), LONGEST_TITLE + 1 - (n < kept ? n : kept), "%s", settings);
}

void provenance_fill_place(const struct result_place *place, const struct dicom_item *source, struct item_writer *root)
{
	struct item_writer item;

	if (!place->related_series[0])
		return;
	item = item_begin(root, TAG_RELATED_SERIES_SEQUENCE);
	item_copy(&item, TAG_STUDY_INSTANCE_UID, source);
	item_put_text(&item, TAG_SERIES_INSTANCE_UID, place->related_series);
	item_put_empty(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE); /* type 2: no term of PS3.16 CID 7210 fits */
	item_end(root, &item);
}

/* Compute an age such as "047Y" from two dates YYYYMMDD; "": the dates are missing or invalid. */
static void age_text(const char *birth, const char *on, char *ret_text, size_t size)
{
	long a = strtol(birth, NULL, 10), b = strtol(on, NULL, 10), years = (b - a) / 10000;

	ret_text[0] = '\0';
	if (strlen(birth) == 8 && strlen(on) == 8 && a > 0 && b > a && years < 130)
		snprintf(ret_text, size, "%03ldY", years);
}

static void fill_age(const struct dicom_item *source, struct item_writer *w)
{
	char birth[65], on[65], age[24];

	item_copy(w, TAG_PATIENT_AGE, source);
	if (w->rc != 0) /* already copied, or an earlier error */
		return;
	if (dicom_get_text(source, TAG_PATIENT_BIRTH_DATE, birth, sizeof(birth), NULL) != 1 ||
	    dicom_get_text(source, TAG_STUDY_DATE, on, sizeof(on), NULL) != 1)
		return;
	age_text(birth, on, age, sizeof(age));
	if (age[0])
		item_put_text(w, TAG_PATIENT_AGE, age);
}

void provenance_fill_patient(const struct dicom_item *source, struct item_writer *root)
{
	item_copy_all(root, source, copied, sizeof(copied) / sizeof(copied[0]));
	item_copy_all_or_empty(root, source, copied_or_empty, sizeof(copied_or_empty) / sizeof(copied_or_empty[0]));
	fill_age(source, root);
}

void provenance_fill_frame(const struct dicom_item *source, struct item_writer *root)
{
	char frame[DICOM_UID_SIZE], series[DICOM_UID_SIZE] = "", text[DICOM_UID_SIZE + 64];

	if (dicom_get_text(source, TAG_FRAME_OF_REFERENCE_UID, frame, sizeof(frame), NULL) != 1) {
		dicom_get_text(source, TAG_SERIES_INSTANCE_UID, series, sizeof(series), NULL);
		snprintf(text, sizeof(text), "tomonode frame of reference|%s", series);
		dicom_uid_from_text(text, frame);
	}
	item_put_text(root, TAG_FRAME_OF_REFERENCE_UID, frame);
}

/* Software has no serial number: the name of the host is used. */
void provenance_fill_equipment(struct item_writer *root)
{
	char host[HOST_NAME_MAX + 1] = "", station[17], creator[HOST_NAME_MAX + 64];
	char uid[DICOM_UID_SIZE];

	if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
		snprintf(host, sizeof(host), "unknown");
	snprintf(station, sizeof(station), "%.16s", host);
	snprintf(creator, sizeof(creator), "tomonode instance creator|%s", host);
	dicom_uid_from_text(creator, uid);
	item_put_text(root, TAG_MANUFACTURER, "tomonode");
	item_put_text(root, TAG_MANUFACTURER_MODEL_NAME, "tomonode");
	item_put_text(root, TAG_DEVICE_SERIAL_NUMBER, host);
	item_put_text(root, TAG_SOFTWARE_VERSIONS, TOMONODE_VERSION "\\" TOMONODE_REVISION);
	item_put_text(root, TAG_STATION_NAME, station);
	item_put_text(root, TAG_INSTANCE_CREATOR_UID, uid);
}

static void describe_recipe(const struct provenance_recipe *r, char *ret_text, size_t size)
{
	char all[12288], digest[65];
	int n = snprintf(all, sizeof(all), "tomonode " TOMONODE_VERSION "\n%s\n%s\n%s%s%s", r->device, r->protocol, r->geometry,
			 r->further ? "\n" : "", r->further ? r->further : "");

	dicom_sha256(all, (size_t)n < sizeof(all) ? (size_t)n : sizeof(all) - 1, digest);
	n = snprintf(ret_text, size, "sha256=%s %s device=\"%s\" protocol=\"%s%s: %s\" %s=\"%s%s%s\"", digest, r->values,
		     r->device, r->protocol_name, r->place->outside ? ", grid and corrections only" : "",
		     r->place->outside ? "" : r->protocol, r->geometry_kind, r->geometry_name ? r->geometry_name : "",
		     r->geometry_name ? ": " : "", r->geometry);
	if ((size_t)n >= size)
		memcpy(ret_text + size - 4, "...", 4);
}

/* Write another program. Its maker is not known. */
static void fill_program(const char *software, const char *version, const char *text, struct item_writer *root)
{
	struct item_writer item = item_begin(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);

	item_put_text(&item, TAG_MANUFACTURER, "unknown");
	item_put_text(&item, TAG_MANUFACTURER_MODEL_NAME, software);
	item_put_text(&item, TAG_SOFTWARE_VERSIONS, version);
	item_put_text(&item, TAG_CONTRIBUTION_DESCRIPTION, text);
	item_put_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "109102", "DCM", "Processing Equipment");
	item_end(root, &item);
}

/* Write the program that computed the volume, and those that changed it. */
static void fill_programs(const struct result_place *place, struct item_writer *root)
{
	const struct result_outside *o = place->outside;
	char text[1025];

	if (o) {
		snprintf(text, sizeof(text), "computed the volume, SHA-256 %s%s%s%s%s", o->sha256, o->note[0] ? ": " : "",
			 o->note, o->said[0] ? "; " : "", o->said);
		fill_program(o->software, o->version, text, root);
	}
	for (size_t i = 0; i < place->n_steps; i++) {
		const struct result_step *s = &place->step[i];

		snprintf(text, sizeof(text), "changed the volume: %s; program SHA-256 %s%s%s; %s", s->change, s->sha256,
			 s->parameters[0] ? "; parameters " : "", s->parameters, s->said);
		fill_program(s->name, s->version, text, root);
	}
}

void provenance_fill_contributing_equipment(const struct dicom_item *source, const struct provenance_time *time,
					    const struct provenance_recipe *recipe, struct item_writer *root)
{
	static const uint32_t modality[] = {
		TAG_INSTITUTION_NAME,
		TAG_INSTITUTION_ADDRESS,
		TAG_STATION_NAME,
		TAG_INSTITUTIONAL_DEPARTMENT_NAME,
		TAG_MANUFACTURER_MODEL_NAME,
		TAG_DEVICE_SERIAL_NUMBER,
		TAG_SOFTWARE_VERSIONS,
		DICOM_TAG(0x0018, 0x1200), /* last calibration */
		DICOM_TAG(0x0018, 0x1201),
	};
	struct item_writer item = item_begin(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	char maker[65], text[1025];

	if (dicom_get_text(source, TAG_MANUFACTURER, maker, sizeof(maker), NULL) ==
	    0) /* the source's value may be empty, but this attribute is type 1 */
		item_put_text(&item, TAG_MANUFACTURER, "unknown");
	else
		item_copy(&item, TAG_MANUFACTURER, source);
	item_copy_all(&item, source, modality, sizeof(modality) / sizeof(modality[0]));
	if (recipe->origins) {
		snprintf(text, sizeof(text), FACT_ORIGINS_BEGIN "%s", recipe->origins);
		item_put_text(&item, TAG_CONTRIBUTION_DESCRIPTION, text);
	}
	item_put_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "109101", "DCM", "Acquisition Equipment");
	item_end(root, &item);

	fill_programs(recipe->place, root);
	describe_recipe(recipe, text, sizeof(text));
	item = item_begin(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	item_put_text(&item, TAG_MANUFACTURER, "tomonode");
	item_put_text(&item, TAG_MANUFACTURER_MODEL_NAME, "tomonode");
	item_put_text(&item, TAG_SOFTWARE_VERSIONS, TOMONODE_VERSION "\\" TOMONODE_REVISION);
	item_put_text(&item, TAG_CONTRIBUTION_DATE_TIME, time->date_time);
	item_put_text(&item, TAG_CONTRIBUTION_DESCRIPTION, text);
	item_put_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "109102", "DCM", "Processing Equipment");
	item_end(root, &item);
}

/* ---- references ---- */

static void fill_reference(struct item_writer *w, uint32_t sequence, struct dicom_file *file, bool purpose)
{
	struct item_writer item = item_begin(w, sequence);
	char sop_class[DICOM_UID_SIZE] = "", instance[DICOM_UID_SIZE] = "";

	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_get_text(dicom_root(file), TAG_SOP_INSTANCE_UID, instance, sizeof(instance), NULL);
	item_put_text(&item, TAG_REFERENCED_SOP_CLASS_UID, sop_class);
	item_put_text(&item, TAG_REFERENCED_SOP_INSTANCE_UID, instance);
	if (purpose)
		item_put_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "121322", "DCM",
			      "Source image for image processing operation");
	item_end(w, &item);
}

static void series_of(struct dicom_file *file, char ret_uid[DICOM_UID_SIZE])
{
	ret_uid[0] = '\0';
	dicom_get_text(dicom_root(file), TAG_SERIES_INSTANCE_UID, ret_uid, DICOM_UID_SIZE, NULL);
}

/* Write one item for each series of the sources. */
static void fill_series_references(struct dicom_file *const *files, size_t n_files, struct item_writer *root)
{
	for (size_t i = 0; i < n_files && root->rc >= 0; i++) {
		char series[DICOM_UID_SIZE], other[DICOM_UID_SIZE];
		bool done = false;
		struct item_writer item;

		series_of(files[i], series);
		for (size_t k = 0; k < i && !done; k++) {
			series_of(files[k], other);
			done = !strcmp(series, other);
		}
		if (done)
			continue;
		item = item_begin(root, TAG_REFERENCED_SERIES_SEQUENCE);
		item_put_text(&item, TAG_SERIES_INSTANCE_UID, series);
		for (size_t k = i; k < n_files; k++) {
			series_of(files[k], other);
			if (!strcmp(series, other))
				fill_reference(&item, TAG_REFERENCED_INSTANCE_SEQUENCE, files[k], false);
		}
		item_end(root, &item);
	}
}

void provenance_fill_references(struct dicom_file *const *files, size_t n_files, struct item_writer *root)
{
	for (size_t i = 0; i < n_files && root->rc >= 0; i++)
		fill_reference(root, TAG_SOURCE_INSTANCE_SEQUENCE, files[i], true);
	fill_series_references(files, n_files, root);
}

int provenance_fitting(const char *text, int room)
{
	int length = (int)strlen(text), n = 0;

	if (length <= room)
		return length;
	for (int i = 0; i < room; i++)
		if (text[i] == '.' && text[i + 1] == ' ')
			n = i + 1;
	return n;
}
