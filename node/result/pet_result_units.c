/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result_units.c - determine the unit of a PET series and the corrections of its values, as far as the data allow.
 *
 * - x is in counts per mm of ray and voxel, over the whole acquisition. With a calibration factor C in (Bq/ml) per (count per
 * second and mm), T the duration in s: Bq/ml = x C / T D, D = lambda T / (1 - exp(-lambda T)), lambda = ln 2 / half-life. D
 * corrects for the decay during the acquisition, so that the value is that at its start; it is 1 if the half-life is unknown or
 * if the data were already corrected for decay. C is a factor of the measured radionuclide, like Dose Calibration Factor
 * (0054,1322): it includes positron fraction and, of data that are not corrected for it, dead time.
 * - Bq/ml only with C and with data that are corrected for attenuation and for detector efficiencies, in the model (factors) or
 * before (CorrectedImage of the source). Otherwise counts, without any decay correction.
 * - CorrectedImage names the corrections of the data and of the model.
 * - Beds (recon/pet/beds.h): the joint x is in the counts of bed 1, so that T is its duration, and D exp(lambda t) its decay
 * factor if it begins t after the start of the acquisition. In counts, too, the beds are scaled to the duration and decay of
 * bed 1.
 * - The pixel values are valid at the time of the mean activity: ln(D) / lambda after the start (PS3.3 C.8.9.4.1.5), T / 2
 * without decay.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/result/pet_result_internal.h"
#include "node/sinogram/pet_source.h"

/* Return true if `term` is among the values. */
static bool has_term(const char *values, const char *term)
{
	size_t n = strlen(term);

	for (const char *at = values; *at; at += strcspn(at, "\\"), at += *at == '\\') {
		size_t length = strcspn(at, "\\");

		while (length > 0 && at[length - 1] == ' ')
			length--;
		if (length == n && !strncmp(at, term, n))
			return true;
	}
	return false;
}

static void add_term(struct pet_quantity *q, const char *term)
{
	size_t at = strlen(q->corrected);

	if (!has_term(q->corrected, term))
		snprintf(q->corrected + at, sizeof(q->corrected) - at, "%s%s", at ? "\\" : "", term);
}

static void add_warning(struct pet_quantity *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_warning(struct pet_quantity *q, const char *fmt, ...)
{
	size_t at = strlen(q->warnings);
	char text[sizeof(q->warnings)];
	int room = (int)(sizeof(q->warnings) - at) - 2, n;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	n = provenance_fitting(text, room); /* sentences that do not fit are left out as a whole */
	if (n > 0)
		snprintf(q->warnings + at, sizeof(q->warnings) - at, "%s%.*s", at ? " " : "", n, text);
}

/* List the corrections of the data and of the model. False: one of them occurs twice. */
static bool list_corrections(const struct sinogram *s, struct pet_quantity *q)
{
	const struct result_outside *outside = s->place.outside;
	bool model = !outside || outside->corrected;
	const struct {
		enum sinogram_role role;
		const char *terms[2];
	} models[] = {
		{SINOGRAM_ATTENUATION, {"ATTN", NULL}},
		{SINOGRAM_NORMALISATION, {"NORM", NULL}},
		{SINOGRAM_MULTIPLICATIVE,
		 {s->source->efficiencies ? "NORM" : "ATTN",
		  s->source->efficiencies ? NULL : "NORM"}}, /* docs/sinogram-object.md */
		{SINOGRAM_ADDITIVE, {"RAN", "SCAT"}},	     /* b includes both, or the one that the data are not corrected for */
	};
	const char *before = s->facts.corrected;
	bool once = true, attn_twice = false, norm_twice = false;

	for (const char *at = before; *at; at += strcspn(at, "\\"), at += *at == '\\') {
		char term[17];
		int length = (int)strcspn(at, "\\");

		snprintf(term, sizeof(term), "%.*s", length, at);
		if (term[0] && strcmp(term, "DECY")) /* added below */
			add_term(q, term);
	}
	if (!model)
		add_warning(q, "It is not stated that the other program used the corrections.");
	for (size_t i = 0; model && i < sizeof(models) / sizeof(models[0]); i++) {
		if (!s->part[models[i].role].present)
			continue;
		if (models[i].role == SINOGRAM_ADDITIVE && has_term(before, "RAN") && has_term(before, "SCAT")) {
			add_warning(q, "Not in Bq/ml: the data are corrected for RAN and SCAT and come with a background, too.");
			once = false;
		}
		for (size_t k = 0; k < 2 && models[i].terms[k]; k++) {
			if (models[i].role != SINOGRAM_ADDITIVE && has_term(q->corrected, models[i].terms[k])) {
				bool attn = models[i].terms[k][0] == 'A';

				attn_twice = attn_twice || attn;
				norm_twice = norm_twice || !attn;
			}
			add_term(q, models[i].terms[k]);
		}
	}
	if (model && (s->made & PET_CORRECT_ATTENUATION) && !s->made_in_part)
		add_term(q, "ATTN");
	if (model && (s->made & PET_CORRECT_RANDOMS))
		add_term(q, "RAN");
	if (model && (s->made & PET_CORRECT_SCATTER) && !s->made_in_part) /* it needs the map of the attenuation */
		add_term(q, "SCAT");
	if (model && (s->made & PET_CORRECT_DEAD_TIME))
		add_term(q, "DTIM");
	if (attn_twice || norm_twice) {
		add_warning(q,
			    "Not in Bq/ml: more than one correction for %s%s%s: in the data (Corrected Image) or in the roles.",
			    attn_twice ? "ATTN" : "", attn_twice && norm_twice ? " and " : "", norm_twice ? "NORM" : "");
		once = false;
	}
	if (model)
		add_term(q, "RADL"); /* each bin's ray is at its true radius, or the data are arc-corrected */
	q->has_attn = has_term(q->corrected, "ATTN");
	q->has_ran = has_term(q->corrected, "RAN");
	q->has_scat = has_term(q->corrected, "SCAT");
	return once;
}

/* A scanner is calibrated with F-18, and its factor includes the branching ratio of F-18 (0.967; of Ga-68 0.891): for another
 * radionuclide only the factor of the object is valid. Half-lives of F-18 in headers differ by less than a percent, and no other
 * radionuclide of PET is as close. */
#define F18_HALF_LIFE 6586.2 /* s; 109.77 min */

static double configured_calibration(const struct sinogram *s, struct pet_quantity *q)
{
	if (!s->scanner || !(s->scanner->calibration > 0))
		return NAN;
	if (fabs(s->facts.half_life / F18_HALF_LIFE - 1) < 0.01)
		return s->scanner->calibration;
	if (s->facts.half_life > 0)
		add_warning(q, "Not in Bq/ml: the configured calibration is for F-18, and the half-life is %g s.",
			    s->facts.half_life);
	else
		add_warning(q, "Not in Bq/ml: the configured calibration is for F-18, and the object has no half-life.");
	return NAN;
}

/* Say that an attribute is there, but no number above 0: " (its value is -1)"; "": it is not there. */
static const char *unusable_value(const struct sinogram *s, uint32_t tag, char ret_text[80])
{
	const struct dicom_item *root = dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
	const struct dicom_item *tracer = dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	char value[65] = "";

	ret_text[0] = '\0';
	if (dicom_get_text(root, tag, value, sizeof(value), NULL) != 1 && tracer)
		dicom_get_text(tracer, tag, value, sizeof(value), NULL);
	if (value[0] && !(strtod(value, NULL) > 0) && !(s->source->of_images && tag == TAG_DOSE_CALIBRATION_FACTOR))
		snprintf(ret_text, 80, " (its value is %.40s)", value);
	return ret_text;
}

/* Choose Bq/ml or counts. Every condition that is not met has its own sentence. */
static void choose_units(const struct sinogram *s, bool once, struct pet_quantity *q)
{
	bool norm = has_term(q->corrected, "NORM");
	size_t said = strlen(q->warnings);
	char value[80];

	q->calibration = s->facts.calibration > 0 ? s->facts.calibration : configured_calibration(s, q);
	q->calibrated = q->calibration > 0 && q->has_attn && norm && once && !s->no_duration;
	if (q->calibrated) {
		add_term(q, "DCAL");
		if (s->calibration_text[0])
			add_warning(q, "%s", s->calibration_text);
		return;
	}
	if (!(q->calibration > 0) && s->calibration_text[0])
		add_warning(q, "Not in Bq/ml: %s.", s->calibration_text);
	else if (!(q->calibration > 0) && s->scanner && s->scanner->ecat_counts > 0)
		add_warning(q, "Not in Bq/ml: ecat_counts is for the list mode of an mMR, and sinograms have no singles for the "
			       "dead time: set `calibration` of the scanner.");
	else if (!(q->calibration > 0) && strlen(q->warnings) == said)
		add_warning(q, "Not in Bq/ml: no calibration factor%s.", unusable_value(s, TAG_DOSE_CALIBRATION_FACTOR, value));
	if (s->no_duration)
		add_warning(q, "Not in Bq/ml: the duration of the acquisition is not known.");
	if (!q->has_attn || !norm)
		add_warning(q, "Not corrected for %s%s, hence not in Bq/ml.",
			    !q->has_attn && !norm ? "attenuation and detector efficiencies"
			    : !q->has_attn	  ? "attenuation"
						  : "detector efficiencies",
			    s->made_in_part ? " in all planes" : "");
}

/* Copy the source's values about a decay correction that was already made. */
static int copy_decay(const struct sinogram *s, struct pet_quantity *q, struct err *err)
{
	const struct dicom_item *root = dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
	char to[17] = "", factor[17] = "";

	dicom_get_text(root, TAG_DECAY_CORRECTION, to, sizeof(to), NULL);
	dicom_get_text(root, TAG_DECAY_FACTOR, factor, sizeof(factor), NULL);
	if (strcmp(to, "START") && strcmp(to, "ADMIN"))
		return err_set(
			err, EBADMSG,
			"the data are corrected for decay (DECY in (0028,0051)), but Decay Correction (0054,1102) is \"%s\"; "
			"allowed: START, ADMIN",
			to);
	if (dicom_get_double(root, TAG_DECAY_FACTOR, 0, &q->decay_before, NULL) != 1 || !(q->decay_before > 0))
		return err_set(err, EBADMSG,
			       "the data are corrected for decay (DECY in (0028,0051)), but Decay Factor (0054,1321) is \"%s\"; "
			       "allowed: a number above 0",
			       factor);
	q->decay = strcmp(to, "START") ? "ADMIN" : "START";
	add_term(q, "DECY");
	return 0;
}

static int correct_decay(const struct sinogram *s, struct pet_quantity *q, struct err *err)
{
	double lambda = s->facts.half_life > 0 ? M_LN2 / s->facts.half_life : 0;
	double d = lambda > 0 ? lambda * q->duration / -expm1(-lambda * q->duration) : 1;
	double start = s->images.of == PET_BEDS ? (double)s->images.image[0].time.start / 1000 : 0;
	char value[80];

	q->decay = "NONE";
	q->decay_factor = 1;
	q->reference_ms = 1000 * (start + (lambda > 0 ? log(d) / lambda : q->duration / 2));
	if (has_term(s->facts.corrected, "DECY") && s->images.n > 0)
		return err_set(err, ENOTSUP, "%ss of data that are already corrected for decay (DECY in (0028,0051))",
			       pet_division_name(s->images.of));
	if (has_term(s->facts.corrected, "DECY"))
		return copy_decay(s, q, err);
	if (!q->calibrated)
		return 0;
	if (lambda > 0) {
		q->decay = "START";
		q->decay_factor = exp(lambda * start) * d;
		add_term(q, "DECY");
	} else {
		add_warning(q, "Not corrected for decay: the half-life is not known%s.",
			    unusable_value(s, TAG_RADIONUCLIDE_HALF_LIFE, value));
	}
	return 0;
}

/* Return the end of the acquisition, s after its start. */
static double end_of(const struct sinogram *s, const struct pet_quantity *q)
{
	return s->images.of == PET_BEDS ? (double)s->images.image[s->images.n - 1].time.stop / 1000 : q->duration;
}

/* pet_facts_read() takes Start Time where Start DateTime is not valid. */
static void warn_moment(const struct sinogram *s, struct pet_quantity *q)
{
	const struct dicom_item *root = dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
	const struct dicom_item *tracer = dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	char value[DICOM_UID_SIZE] = "";

	if (!tracer || dicom_get_text(tracer, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, value, sizeof(value), NULL) != 1 ||
	    pet_facts_says_injection(value) || !pet_facts_says_injection(s->facts.injected))
		return;
	add_warning(q,
		    "Radiopharmaceutical Start DateTime (0018,1078) is \"%.26s\", which is not a valid date and time: "
		    "Radiopharmaceutical Start Time (0018,1072), %s, is taken.",
		    value, s->facts.injected);
}

/* Warn if the time of injection is impossible, or not certain: a viewer would compute a wrong SUV from it. An injection during
 * the acquisition is usual: the values are those of its start, before the injection. */
static void warn_injection(const struct sinogram *s, struct pet_quantity *q)
{
	const struct pet_facts *f = &s->facts;
	double start, injected;

	warn_moment(s, q);
	if (!pet_facts_moment(q->date, q->time, &start))
		return;
	switch (pet_facts_injection(f, start, start + end_of(s, q), &injected)) {
	case PET_INJECTION_NO_DAY:
		add_warning(q,
			    "No SUV can be computed: the time of injection %s is after the start of the acquisition, %s%s, and "
			    "its day is not in the data.",
			    f->injected, q->date, q->time);
		return;
	case PET_INJECTION_NO_ZONE:
		add_warning(
			q,
			"No SUV can be computed: the time of injection %s has an offset from UTC, and the start of the acquisition "
			"has none; TimezoneOffsetFromUTC sets it.",
			f->injected);
		return;
	case PET_INJECTION_INVALID:
		add_warning(q, "No SUV can be computed: the time of injection \"%s\" is not a date and time.", f->injected);
		return;
	default:
		break;
	}
	if (injected > start + end_of(s, q))
		add_warning(
			q,
			"SUVs computed from these data are wrong: the injection (%s) is after the acquisition, which began at %s%s.",
			f->injected, q->date, q->time);
	else if (f->half_life > 0 && start - injected > PET_HALF_LIVES_MOST * f->half_life)
		add_warning(
			q,
			"SUVs computed from these data are wrong: the injection (%s) is %.3g half-lives before the acquisition, "
			"which began at %s%s.",
			f->injected, (start - injected) / f->half_life, q->date, q->time);
	else if (pet_facts_day_assumed(f))
		add_warning(q, "The day of the injection (%s) is not in the data: that of the acquisition is assumed.",
			    f->injected);
	else if (pet_facts_injection_differs(f, injected))
		add_warning(q,
			    "SUVs computed from these data are doubtful: Radiopharmaceutical Start DateTime (0018,1078) is %s, "
			    "Radiopharmaceutical Start Time (0018,1072) %s.",
			    f->injected, f->injected_time);
}

static void warn_suv(const struct sinogram *s, struct pet_quantity *q)
{
	const struct pet_facts *f = &s->facts;
	char missing[480] = "", reason[160], value[80];
	size_t at = 0;
	const struct {
		bool there;
		const char *name;
		uint32_t tag;
	} needed[] = {
		{f->weight > 0, "patient's weight", TAG_PATIENT_WEIGHT},
		{f->dose > 0, "injected dose", TAG_RADIONUCLIDE_TOTAL_DOSE},
		{f->half_life > 0, "half-life", TAG_RADIONUCLIDE_HALF_LIFE},
		{f->injected[0] != '\0', "time of injection", TAG_RADIOPHARMACEUTICAL_START_DATE_TIME},
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i].there)
			at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%s%s", at ? ", " : "", needed[i].name,
					       unusable_value(s, needed[i].tag, value));
	if (at)
		add_warning(q, "No SUV can be computed: not in the data: %s.", missing);
	if (f->weight > 0 && f->dose > 0 && !pet_facts_suv(f, reason, sizeof(reason)))
		add_warning(q, "No SUV can be computed: %s.", reason);
	else if (!at)
		warn_injection(s, q);
}

/* Say what is not corrected and no other sentence names, in every unit: randoms and scatter are in the values of counts, too. */
static void warn_background(struct pet_quantity *q)
{
	bool ran = !q->has_ran && !strstr(q->warnings, "Not corrected for randoms");
	bool scat = !q->has_scat && !strstr(q->warnings, "Not corrected for scatter");

	if (ran || scat)
		add_warning(q, "Not corrected for %s.", ran && scat ? "randoms and scatter" : ran ? "randoms" : "scatter");
}

/* Say how many cycles are not in the gates. */
static void warn_cycles(const struct sinogram *s, struct pet_quantity *q)
{
	struct pet_cycles c;

	if (s->images.of != PET_GATES)
		return;
	pet_gates_count(&s->images.gates, &c);
	if (c.left_out > 0)
		add_warning(q, "%ld of %ld cycles are not %lld to %lld ms long and left out.", c.left_out, c.used + c.left_out,
			    (long long)s->images.gates.shortest, (long long)s->images.gates.longest);
}

double pet_result_dead_time(const struct sinogram *s, const struct pet_quantity *q, int frame)
{
	double factor = 0;

	return has_term(q->corrected, "DTIM") && sinogram_dead_time_factor(s, frame, &factor, NULL) > 0 ? factor : 0;
}

int pet_result_quantify(const struct sinogram *s, struct pet_quantity *ret_quantity, struct err *err)
{
	const struct pet_facts *f = &s->facts;
	struct pet_quantity q = {.factor = 1, .duration = f->duration};
	char notes[2 * INTERFILE_NOTES], doubts[2000];
	int rc;
	bool acquisition = f->acquisition_date[0] && f->acquisition_time[0];

	if (!(q.duration > 0))
		q.duration = s->part[SINOGRAM_EMISSION].header.duration;
	if (s->images.of == PET_GATES && !(q.duration > 0))
		q.duration = (double)s->images.gates.marks.ms[s->images.gates.marks.n - 1] / 1000;
	if (s->images.of == PET_FRAMES)
		q.duration = (double)s->images.image[s->images.n - 1].time.stop / 1000;
	if (s->images.of == PET_BEDS)
		q.duration = (double)pet_images_duration(&s->images, 0) / 1000;
	if (!(q.duration > 0) || !(q.duration * 1000 < INT32_MAX))
		return err_set(
			err, EBADMSG,
			"the duration of the acquisition is missing in Actual Frame Duration (0018,1242) and in the header of "
			"the sinograms (image duration)");
	snprintf(q.date, sizeof(q.date), "%s", acquisition ? f->acquisition_date : f->series_date);
	snprintf(q.time, sizeof(q.time), "%s", acquisition ? f->acquisition_time : f->series_time);
	if (!q.date[0] || !q.time[0])
		return err_set(err, EBADMSG,
			       "the start of the acquisition is missing, or not a date and time, in Acquisition Date and Time "
			       "(0008,0022), (0008,0032) and in "
			       "Series Date and Time (0008,0021), (0008,0031)");
	pet_source_note(s, q.warnings, sizeof(q.warnings));
	if (s->assumed)
		add_warning(&q, "%s", s->assumed);
	sinogram_header_notes(s, notes, sizeof(notes));
	if (notes[0])
		add_warning(&q, "%s", notes);
	pet_result_doubts(s, q.duration, doubts, sizeof(doubts));
	if (doubts[0])
		add_warning(&q, "%s", doubts);
	if (s->made_note && s->made_note[0])
		add_warning(&q, "%s", s->made_note);
	warn_cycles(s, &q);
	choose_units(s, list_corrections(s, &q), &q);
	if (s->images.n == 0)
		q.dead_time = pet_result_dead_time(s, &q, 0);
	rc = correct_decay(s, &q, err);
	if (rc < 0)
		return rc;
	warn_suv(s, &q);
	warn_background(&q);
	if (s->images.of == PET_BEDS && s->images.n > 1 && !q.calibrated)
		add_warning(&q, "The counts of all beds are scaled to the duration%s of bed 1.",
			    f->half_life > 0 ? " and the decay" : "");
	if (q.calibrated)
		q.factor = q.calibration / q.duration * q.decay_factor;
	if (!isfinite(q.factor) || !(q.factor > 0))
		return err_set(err, EBADMSG, "calibration factor %g with a duration of %g s and a half-life of %g s",
			       q.calibration, q.duration, f->half_life);
	fact_origins_read(s, q.calibration > 0 && !(f->calibration > 0), q.origins);
	*ret_quantity = q;
	return 0;
}

int pet_result_check(const struct sinogram *s, struct err *err)
{
	struct pet_quantity q;

	return pet_result_quantify(s, &q, err);
}

int pet_result_scale(const struct sinogram *s, double *ret_factor, bool *ret_bqml, struct err *err)
{
	struct pet_quantity q;
	int rc = pet_result_quantify(s, &q, err);

	if (rc < 0)
		return rc;
	*ret_factor = s->images.n > 0 ? pet_result_frame(s, &q, 0).factor : q.factor;
	*ret_bqml = q.calibrated;
	return 0;
}
