/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_attributes.c - write the standard attributes of a sinogram object, from patient to acquisition. Patient, study, place
 * and scanner are copied from `like`. Times, duration and tracer are those of the Interfile header; what it lacks is that of
 * `like` only if this describes the same measurement (sinogram_like.c). Values of `set` replace both. Attributes that describe a
 * reconstructed image (corrections, calibration, decay) are copied only if `like` is a sinogram object.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/nearest.h"
#include "node/base/nuclides.h"
#include "node/base/sentence.h"
#include "node/sinogram/fact_origins.h"
#include "node/sinogram/provenance.h"
#include "node/sinogram/sinogram_internal.h"

/* Attributes of place, scanner and series, copied from any kind of file. */
static const uint32_t copied[] = {
	DICOM_TAG(0x0010, 0x1020), /* Patient's Size */
	TAG_PATIENT_WEIGHT,
	TAG_BODY_PART_EXAMINED,
	TAG_PATIENT_POSITION,
	TAG_PATIENT_ORIENTATION_CODE_SEQUENCE,
	TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE,
	TAG_FRAME_OF_REFERENCE_UID,
	TAG_POSITION_REFERENCE_INDICATOR,
	TAG_MANUFACTURER,
	TAG_MANUFACTURER_MODEL_NAME,
	TAG_DEVICE_SERIAL_NUMBER,
	TAG_SOFTWARE_VERSIONS,
	TAG_STATION_NAME,
	TAG_GANTRY_TILT,
	TAG_COLLIMATOR_TYPE,
	TAG_ENERGY_WINDOW_RANGE_SEQUENCE,
	TAG_COINCIDENCE_WINDOW_WIDTH,
	TAG_TYPE_OF_DETECTOR_MOTION,
	TAG_SERIES_NUMBER,
	TAG_SERIES_DESCRIPTION,
};

/* Attributes that say the same as one that a person may set: then they are not copied. */
static const struct {
	uint32_t tag;
	const char *keyword;
} decided[] = {
	{TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, "PatientPosition"},
	{TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "PatientPosition"},
};

static void copy_place(const struct sinogram_source *s, const struct dicom_item *like, struct item_writer *w)
{
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		bool copy = true;

		for (size_t k = 0; k < sizeof(decided) / sizeof(decided[0]); k++)
			copy = copy && (decided[k].tag != copied[i] || !sinogram_is_set(s, decided[k].keyword));
		if (copy)
			item_copy(w, copied[i], like);
	}
}

/* Attributes of the sinograms themselves, copied only from a sinogram object. */
static const uint32_t copied_from_sinogram[] = {TAG_DOSE_CALIBRATION_FACTOR, TAG_RANDOMS_CORRECTION_METHOD,
						TAG_ATTENUATION_CORRECTION_METHOD, TAG_SCATTER_CORRECTION_METHOD};

/* What the values of EMISSION were corrected for. A decay that a person does not list is not corrected. */
static void copy_corrected(const struct sinogram_source *s, const struct dicom_item *like, struct item_writer *w)
{
	const char *set = sinogram_set_text(s, "CorrectedImage");

	item_copy(w, TAG_CORRECTED_IMAGE, like);
	item_copy(w, TAG_DEAD_TIME_FACTOR, like);
	if (!set || strstr(set, "DECY")) {
		item_copy(w, TAG_DECAY_CORRECTION, like);
		item_copy(w, TAG_DECAY_FACTOR, like);
	}
}

/* Return true for attributes that are stored in the item of (0054,0016). */
static bool is_radiopharmaceutical(uint32_t tag)
{
	static const uint32_t tags[] = {
		TAG_RADIOPHARMACEUTICAL,
		DICOM_TAG(0x0018, 0x1070), /* Route */
		DICOM_TAG(0x0018, 0x1071), /* Volume */
		TAG_RADIOPHARMACEUTICAL_START_TIME,
		DICOM_TAG(0x0018, 0x1073), /* Stop Time */
		TAG_RADIONUCLIDE_TOTAL_DOSE,
		TAG_RADIONUCLIDE_HALF_LIFE,
		TAG_RADIONUCLIDE_POSITRON_FRACTION,
		DICOM_TAG(0x0018, 0x1077), /* Specific Activity */
		TAG_RADIOPHARMACEUTICAL_START_DATE_TIME,
		DICOM_TAG(0x0018, 0x1079), /* Stop DateTime */
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (tags[i] == tag)
			return true;
	return false;
}

/* What is copied about another nuclide is no fact of this one. */
static int set_radionuclide(const struct sinogram_source *s, struct item_writer *root, const char *value)
{
	const struct nuclide *found = nuclide_find(value);
	struct item_writer f;
	char known[400];

	if (!found) {
		nuclide_list(known, sizeof(known));
		return err_set(root->err, EINVAL,
			       "Radionuclide=%.20s; known: %s; for another radionuclide set RadionuclideHalfLife", value, known);
	}
	f = sinogram_tracer_item(root);
	sinogram_drop_nuclide(s, found->half_life, false, &f);
	sinogram_put_nuclide(&f, found, found->half_life);
	item_end(root, &f);
	return root->rc;
}

static int set_centre(struct sinogram_source *s, const char *value, struct err *err)
{
	double v[3];
	int used = 0;

	if (sscanf(value, "%lf\\%lf\\%lf%n", &v[0], &v[1], &v[2], &used) != 3 || value[used] || !isfinite(v[0] + v[1] + v[2]))
		return err_set(err, EINVAL, "ScannerCentre=%.60s; allowed: three numbers in mm, X\\Y\\Z", value);
	memcpy(s->centre, v, sizeof(v));
	return 0;
}

/* Check the values that a reconstruction will read, so that errors are reported at import. */
static int check_value(uint32_t tag, const char *assignment, const char *value, struct err *err)
{
	static const uint32_t positive[] = {TAG_PATIENT_WEIGHT,
					    DICOM_TAG(0x0010, 0x1020),
					    TAG_ACTUAL_FRAME_DURATION,
					    DICOM_TAG(0x0018, 0x1071),
					    TAG_RADIONUCLIDE_TOTAL_DOSE,
					    TAG_RADIONUCLIDE_HALF_LIFE,
					    TAG_RADIONUCLIDE_POSITRON_FRACTION,
					    TAG_DOSE_CALIBRATION_FACTOR,
					    TAG_DECAY_FACTOR};
	double axis[3][3], v, seconds;
	const char *allowed;
	char *end;

	for (size_t i = 0; i < sizeof(positive) / sizeof(positive[0]); i++) {
		if (tag != positive[i])
			continue;
		v = strtod(value, &end);
		if (end == value || *end || !(v >= 0 && v < 1e30))
			return err_set(err, EINVAL, "%.60s; allowed: a number of 0 or more", assignment);
		if (tag == DICOM_TAG(0x0010, 0x1020) && v > 3)
			return err_set(err, EINVAL, "%.60s; allowed: metres, at most 3", assignment);
	}
	if (tag == TAG_PATIENT_SEX && value[0] && strcmp(value, "M") != 0 && strcmp(value, "F") != 0 && strcmp(value, "O") != 0)
		return err_set(err, EINVAL, "%.60s; allowed: M, F, O", assignment);
	if (tag == TAG_PATIENT_POSITION && !pet_facts_axes(value, axis))
		return err_set(err, EINVAL, "%.60s; allowed: HFS, HFP, FFS, FFP, HFDL, HFDR, FFDL, FFDR", assignment);
	if ((tag == TAG_SERIES_DATE || tag == TAG_ACQUISITION_DATE || tag == TAG_STUDY_DATE) &&
	    (strlen(value) != 8 || !pet_facts_moment(value, "00", &seconds)))
		return err_set(err, EINVAL, "%.60s; allowed: a date YYYYMMDD", assignment);
	if ((tag == TAG_SERIES_TIME || tag == TAG_ACQUISITION_TIME || tag == TAG_RADIOPHARMACEUTICAL_START_TIME) &&
	    !pet_facts_moment("20000101", value, &seconds))
		return err_set(err, EINVAL, "%.60s; allowed: a time HH, HHMM, HHMMSS or HHMMSS.FFFFFF", assignment);
	if (tag == TAG_ACQUISITION_DATE_TIME && (strlen(value) < 14 || strpbrk(value, "+-")))
		return err_set(
			err, EINVAL,
			"%.60s; allowed: YYYYMMDDHHMMSS or YYYYMMDDHHMMSS.FFFFFF; an offset is set as TimezoneOffsetFromUTC",
			assignment);
	if (tag == TAG_TIMEZONE_OFFSET_FROM_UTC && !pet_facts_offset(value, &seconds))
		return err_set(err, EINVAL, "%.60s; allowed: an offset from UTC, +HHMM or -HHMM", assignment);
	allowed = dicom_text_allowed(tag, value);
	if (allowed)
		return err_set(err, EINVAL, "%.90s; allowed: %s", assignment, allowed);
	return 0;
}

/* Return a keyword that `import --help` names; "": none is similar. */
static const char *keyword_hint(const char *name, char ret_text[NEAREST_HINT])
{
	static const char *const useful[] = {
		"PatientPosition",
		"PatientName",
		"PatientID",
		"PatientWeight",
		"PatientSize",
		"AcquisitionDate",
		"AcquisitionTime",
		"ActualFrameDuration",
		"Radionuclide",
		"RadionuclideHalfLife",
		"RadionuclideTotalDose",
		"RadiopharmaceuticalStartTime",
		"RadiopharmaceuticalStartDateTime",
		"DoseCalibrationFactor",
		"CorrectedImage",
		"Manufacturer",
		"ManufacturerModelName",
		"ScannerCentre",
		NULL,
	};

	return nearest_hint(nearest_in_list(name, useful), ret_text);
}

static bool is_ours(uint32_t tag)
{
	static const uint32_t tags[] = {TAG_SOP_CLASS_UID,   TAG_SOP_INSTANCE_UID,	TAG_SERIES_INSTANCE_UID,  TAG_MODALITY,
					TAG_INSTANCE_NUMBER, DICOM_TAG(0x0008, 0x9123), DICOM_TAG(0x7FE0, 0x0010)};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (tags[i] == tag)
			return true;
	return tag >> 16 & 1 || tag >> 16 <= 2;
}

/* Write the date and the time of a start that was set as Acquisition DateTime, unless they are set, too. */
static void put_start(const struct sinogram_source *s, const char *moment, struct item_writer *root)
{
	char date[9];

	snprintf(date, sizeof(date), "%.8s", moment);
	if (!sinogram_is_set(s, "AcquisitionDate"))
		item_put_text(root, TAG_ACQUISITION_DATE, date);
	if (!sinogram_is_set(s, "AcquisitionTime"))
		item_put_text(root, TAG_ACQUISITION_TIME, moment + 8);
}

static int set_value(struct sinogram_source *s, const char *assignment, struct item_writer *root)
{
	const char *equals = strchr(assignment, '=');
	unsigned group, element;
	char name[65], hint[NEAREST_HINT];
	uint32_t tag;
	int used = 0, rc;

	if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof(name))
		return err_set(root->err, EINVAL, "\"%.60s\"; allowed: Keyword=value or gggg,eeee=value", assignment);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
	if (!strcmp(name, "Radionuclide"))
		return set_radionuclide(s, root, equals + 1);
	if (!strcmp(name, "ScannerCentre"))
		return set_centre(s, equals + 1, root->err);
	if (sscanf(name, "%4x,%4x%n", &group, &element, &used) == 2 && !name[used])
		tag = DICOM_TAG(group, element);
	else if (!dicom_tag_named(name, &tag))
		return err_set(root->err, EINVAL, "\"%s\" is neither a keyword of the DICOM dictionary nor gggg,eeee%s", name,
			       keyword_hint(name, hint));
	if (is_ours(tag))
		return err_set(root->err, EINVAL, "%s cannot be set", name);
	rc = check_value(tag, assignment, equals + 1, root->err);
	if (rc < 0)
		return rc;
	if (is_radiopharmaceutical(tag)) {
		struct item_writer f = sinogram_tracer_item(root);

		/* the other attribute of the injection, if it is not set, too, follows from this one */
		if (tag == TAG_RADIOPHARMACEUTICAL_START_DATE_TIME && !sinogram_is_set(s, "RadiopharmaceuticalStartTime"))
			item_put_empty(&f, TAG_RADIOPHARMACEUTICAL_START_TIME);
		if (tag == TAG_RADIOPHARMACEUTICAL_START_TIME && !sinogram_is_set(s, "RadiopharmaceuticalStartDateTime"))
			item_put_empty(&f, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME);
		item_put_text(&f, tag, equals + 1);
		item_end(root, &f);
	} else {
		item_put_text(root, tag, equals + 1);
		if (tag == TAG_ACQUISITION_DATE_TIME)
			put_start(s, equals + 1, root);
	}
	return root->rc < 0 ? root->rc : 0;
}

/* ---- attributes before `set` is applied ---- */

static void fill_anonymous(const struct sinogram_source *s, struct item_writer *w)
{
	char id[32], text[100], uid[DICOM_UID_SIZE];
	static const uint32_t empty[] = {
		TAG_PATIENT_BIRTH_DATE,	      TAG_PATIENT_SEX, TAG_STUDY_DATE, TAG_STUDY_TIME, TAG_ACCESSION_NUMBER,
		TAG_REFERRING_PHYSICIAN_NAME, TAG_STUDY_ID};

	item_put_text(w, TAG_SPECIFIC_CHARACTER_SET, "ISO_IR 192");
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		item_put_empty(w, empty[i]);
	item_put_text(w, TAG_PATIENT_NAME, "ANONYMOUS^");
	snprintf(id, sizeof(id), "ANONYMOUS-%.12s", s->seed);
	item_put_text(w, TAG_PATIENT_ID, id);
	snprintf(text, sizeof(text), "%s|study", s->seed);
	dicom_uid_from_text(text, uid);
	item_put_text(w, TAG_STUDY_INSTANCE_UID, uid);
}

static const struct {
	const char *part, *term;
} corrections[] = {{"attenuation", "ATTN"}, {"normali", "NORM"}, {"random", "RAN"}, {"scatter", "SCAT"}, {"dead", "DTIM"}};

/* Write the header's names of corrections as values of CorrectedImage. Decay is not among them, because it requires a factor. */
static void fill_corrected(const struct interfile *h, struct item_writer *w)
{
	char list[64] = "";

	for (size_t i = 0; i < sizeof(corrections) / sizeof(corrections[0]); i++)
		if (strcasestr(h->corrections, corrections[i].part))
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", list[0] ? "\\" : "",
				 corrections[i].term);
	if (list[0])
		item_put_text(w, TAG_CORRECTED_IMAGE, list);
}

void sinogram_note_corrections(const struct interfile *h, char *ret, size_t size)
{
	char unknown[101] = "", word[sizeof(h->corrections)];
	size_t n = 0;

	for (const char *at = h->corrections; *at; at += strcspn(at, ","), at += *at == ',') {
		bool known = false;

		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
		for (size_t i = 0; i < sizeof(corrections) / sizeof(corrections[0]); i++)
			known = known || strcasestr(word, corrections[i].part);
		if (!known && n < sizeof(unknown))
			n += (size_t)snprintf(unknown + n, sizeof(unknown) - n, "%s%s", n ? ", " : "", word);
	}
	ret[0] = '\0';
	if (unknown[0])
		snprintf(ret, size,
			 "\"%s\" in applied corrections is not known and ignored; known: arc correction, attenuation, "
			 "normalisation, randoms, scatter, dead time.",
			 unknown);
}

void sinogram_put_zone(const struct sinogram_source *s, struct item_writer *root)
{
	const char *set = sinogram_set_text(s, "TimezoneOffsetFromUTC"), *said = sinogram_said(s)->zone;
	char zone[17] = "";

	if (s->like)
		dicom_get_text(dicom_root(s->like), TAG_TIMEZONE_OFFSET_FROM_UTC, zone, sizeof(zone), NULL);
	if (set || zone[0] || said[0])
		item_put_text(root, TAG_TIMEZONE_OFFSET_FROM_UTC, set ? set : zone[0] ? zone : said);
}

/* Write the duration of the header. It is in the text of the object, too; this attribute is a number of 32 bits. */
static void fill_duration(const struct sinogram_source *s, const struct interfile *h, struct item_writer *w)
{
	if (!(h->duration > 0) || w->rc < 0)
		return;
	if (1000 * h->duration < INT32_MAX)
		item_put_int(w, TAG_ACTUAL_FRAME_DURATION, lround(h->duration * 1000));
	else if (!sinogram_is_set(s, "ActualFrameDuration"))
		w->rc = err_set(w->err, EBADMSG,
				"line %d: image duration (sec) := %g; allowed: at most 2147483, 24 days: correct it, or set "
				"ActualFrameDuration",
				h->duration_line, h->duration);
}

static void fill_from_header(const struct sinogram_source *s, const struct interfile *h, struct item_writer *w)
{
	char date[9], time[17], zone[17] = "";
	double begin, own, offset;
	struct pet_facts facts;

	if (!dicom_has(w->item, TAG_MANUFACTURER))
		item_put_text(w, TAG_MANUFACTURER, h->siemens ? "SIEMENS" : "");
	if (h->scanner[0] && !dicom_has(w->item, TAG_MANUFACTURER_MODEL_NAME))
		item_put_text(w, TAG_MANUFACTURER_MODEL_NAME, h->scanner);
	fill_duration(s, h, w);
	sinogram_put_zone(s, w);
	if (sinogram_begin(h, &begin)) {
		dicom_get_text(w->item, TAG_TIMEZONE_OFFSET_FROM_UTC, zone, sizeof(zone), NULL);
		if (pet_facts_offset(zone, &own) && pet_facts_offset(h->zone, &offset))
			begin += own - offset;
		pet_facts_format(begin, date, time);
		item_put_text(w, TAG_ACQUISITION_DATE, date);
		item_put_text(w, TAG_ACQUISITION_TIME, time);
	}
	pet_facts_read(w->item, &facts);
	if (h->position[0] && !facts.patient_position[0])
		item_put_text(w, TAG_PATIENT_POSITION, h->position);
}

static void fill_series(const struct sinogram_source *s, struct item_writer *w)
{
	char text[100], uid[DICOM_UID_SIZE];

	item_put_text(w, TAG_MODALITY, s->format->type->modality);
	snprintf(text, sizeof(text), "%s|series", s->seed);
	dicom_uid_from_text(text, uid);
	item_put_text(w, TAG_SERIES_INSTANCE_UID, uid);
	if (!dicom_has(w->item, TAG_SERIES_NUMBER))
		item_put_int(w, TAG_SERIES_NUMBER, 1);
	if (!dicom_has(w->item, TAG_FRAME_OF_REFERENCE_UID)) {
		snprintf(text, sizeof(text), "%s|frame of reference", s->seed);
		dicom_uid_from_text(text, uid);
		item_put_text(w, TAG_FRAME_OF_REFERENCE_UID, uid);
	}
	if (!dicom_has(w->item, TAG_POSITION_REFERENCE_INDICATOR))
		item_put_empty(w, TAG_POSITION_REFERENCE_INDICATOR);
	item_put_empty(w, TAG_ACQUISITION_CONTEXT_SEQUENCE);
}

/* Write Laterality, type 2C (PS3.3 C.7.3.1): empty if the body part is paired or unknown and the side is unknown; absent for an
 * unpaired body part (PS3.16 annex L). */
static void fill_laterality(const struct dicom_item *like, struct item_writer *w)
{
	static const char single[] =
		" ABDOMEN ABDOMENPELVIS AORTA BACK BLADDER BRAIN CEREBELLUM CERVIX CHEST CHESTABDOMEN "
		"CHESTABDPELVIS COCCYX COLON CSPINE CTSPINE DUODENUM ESOPHAGUS FACE GALLBLADDER HEAD HEADNECK "
		"HEART ILEUM JAW JEJUNUM LARYNX LIVER LSPINE LSSPINE MEDIASTINUM MOUTH NECK NECKCHEST "
		"NECKCHESTABDOMEN NECKCHESTABDPELV NOSE PANCREAS PELVIS PENIS PHARYNX PROSTATE RECTUM SKULL "
		"SPINE SPLEEN SSPINE STERNUM STOMACH THYMUS THYROID TLSPINE TONGUE TRACHEA TSPINE URETER "
		"URETHRA UTERUS VAGINA VULVA WHOLEBODY ";
	char part[19] = " ", side[17];

	if (dicom_has(w->item, TAG_LATERALITY))
		return;
	if (like && dicom_get_text(like, TAG_LATERALITY, side, sizeof(side), NULL) == 1) {
		item_put_text(w, TAG_LATERALITY, side);
		return;
	}
	if (dicom_get_text(w->item, TAG_BODY_PART_EXAMINED, part + 1, 17, NULL) == 1 && strstr(single, strcat(part, " ")))
		return;
	item_put_empty(w, TAG_LATERALITY);
}

/* Write a UID that the data have. It must be that of `like`, unless `set` has another one. */
static void fill_uid(const struct sinogram_source *s, const char *uid, uint32_t tag, const char *keyword,
		     struct item_writer *root)
{
	char other[DICOM_UID_SIZE] = "";

	if (!uid[0] || root->rc < 0)
		return;
	if (s->like)
		dicom_get_text(dicom_root(s->like), tag, other, sizeof(other), NULL);
	if (other[0] && strcmp(uid, other) != 0 && !sinogram_is_set(s, keyword))
		root->rc = err_set(
			root->err, EBADMSG,
			"the file's %s is %s, that of --like %s: they are not of one examination, or one is wrong; set it",
			keyword, uid, other);
	item_put_text(root, tag, uid);
}

/* Write study and frame of reference of data that have them. What a person says about the position must not contradict them. */
static void fill_exam(const struct sinogram_source *s, struct item_writer *root)
{
	const struct sinogram_said *said = s->conf->said;
	const char *position = sinogram_set_text(s, "PatientPosition");

	if (!said)
		return;
	fill_uid(s, said->study, TAG_STUDY_INSTANCE_UID, "StudyInstanceUID", root);
	fill_uid(s, said->frame_of_reference, TAG_FRAME_OF_REFERENCE_UID, "FrameOfReferenceUID", root);
	if (root->rc >= 0 && position && said->header.position[0] && strcmp(position, said->header.position) != 0)
		root->rc =
			err_set(root->err, EBADMSG,
				"PatientPosition=%.16s, but the patient's position in the file (%s) is %s: one of them is wrong",
				position, said->field[FACT_POSITION], said->header.position);
}

/* Write both times of the injection. They must not contradict each other. */
static void fill_injection(struct item_writer *root)
{
	struct pet_facts f;
	double injected;

	if (root->rc < 0)
		return;
	root->rc = pet_facts_check(root->item, root->err);
	if (root->rc < 0)
		return;
	pet_facts_read(root->item, &f);
	if (f.injected_time[0] && pet_facts_injection(&f, 0, 0, &injected) == PET_INJECTION_KNOWN &&
	    pet_facts_injection_differs(&f, injected))
		root->rc = err_set(root->err, EBADMSG,
				   "the time of injection is %s in Radiopharmaceutical Start DateTime (0018,1078), and %s in "
				   "Radiopharmaceutical Start Time (0018,1072): set one of them",
				   f.injected, f.injected_time);
	pet_facts_complete_injection(root);
}

int sinogram_fill_attributes(struct sinogram_source *s, enum sinogram_role role, struct item_writer *root)
{
	const struct dicom_item *like = s->like ? dicom_root(s->like) : NULL;
	const struct interfile *header = sinogram_said(s);
	char sop_class[DICOM_UID_SIZE] = "";

	if (like) {
		provenance_fill_patient(like, root);
		copy_place(s, like, root);
		sinogram_copy_measurement(s, header, root);
		dicom_get_text(like, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	} else {
		fill_anonymous(s, root);
	}
	if (!strcmp(sop_class, CLASS_RAW_DATA)) {
		item_copy_all(root, like, copied_from_sinogram, sizeof(copied_from_sinogram) / sizeof(copied_from_sinogram[0]));
		if (role == SINOGRAM_EMISSION && !s->conf->as_measured)
			copy_corrected(s, like, root);
	}
	if (!dicom_has(root->item, TAG_STUDY_INSTANCE_UID) && root->rc >= 0)
		return err_set(root->err, EBADMSG, "no Study Instance UID (0020,000D) in the file of --like");
	if (root->rc >= 0 && (sinogram_check_like(s, header, root->err) < 0 || sinogram_check_position(s, header, root->err) < 0))
		return -EBADMSG;
	fill_from_header(s, header, root);
	fill_exam(s, root);
	if (role == SINOGRAM_EMISSION)
		sinogram_fill_tracer(&header->tracer, root);
	if (role == SINOGRAM_EMISSION && !dicom_has(root->item, TAG_CORRECTED_IMAGE))
		fill_corrected(&s->stream[role].header, root);
	fill_series(s, root);
	for (size_t i = 0; root->rc >= 0 && i < s->conf->n_set; i++) {
		int rc = set_value(s, s->conf->set[i], root);

		if (rc < 0)
			root->rc = rc;
	}
	if (s->format->header == INTERFILE_PROJECTIONS)
		fill_injection(root);
	fill_laterality(like, root);
	if (role == SINOGRAM_EMISSION)
		fact_origins_put(s, root);
	return root->rc < 0 ? root->rc : 0;
}

int sinogram_try_attributes(struct sinogram_source *s, struct dicom_file **ret_file, struct err *err)
{
	struct dicom_file *file = NULL;
	struct item_writer root = {.err = err};
	int rc = dicom_new(CLASS_RAW_DATA, "2.25.1", &file, err);

	if (rc < 0)
		return rc;
	root.item = dicom_root(file);
	rc = sinogram_fill_attributes(s, s->format->first, &root);
	if (rc < 0)
		dicom_close(file);
	else
		*ret_file = file;
	return rc;
}

void sinogram_warnings(const struct dicom_item *root, const struct sinogram_source *s, char *ret, size_t size)
{
	struct pet_facts f;
	double axis[3][3];
	bool pet = s->format->header == INTERFILE_PROJECTIONS;

	pet_facts_read(root, &f);
	const struct {
		bool missing;
		const char *text;
	} all[] = {
		{!pet_facts_axes(f.patient_position, axis),
		 "The patient's position is missing, which a reconstruction requires: --set PatientPosition=HFS or another."},
		{pet && !(f.duration > 0) && !(s->stream[SINOGRAM_EMISSION].header.duration > 0),
		 "The duration is missing, which a reconstruction requires: --set ActualFrameDuration=MILLISECONDS."},
		{pet && (!f.acquisition_date[0] || !f.acquisition_time[0]) && (!f.series_date[0] || !f.series_time[0]),
		 "The start is missing, which a reconstruction requires: --set AcquisitionDate=YYYYMMDD --set "
		 "AcquisitionTime=HHMMSS."},
		{pet && !(f.half_life > 0), "The half-life is missing, so decay will not be corrected: --set Radionuclide=F18."},
	};

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].missing)
			sentence_add(ret, size, "%s", all[i].text);
}
