/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_like.c - what a file of --like says about the measurement: start, duration, tracer.
 *
 * Any file gives patient, study, place and scanner. When and for how long was measured, and what was injected, is a fact of the
 * data: that of a CT or MR is not theirs. A file of PET gives what the header lacks, unless it shows that it is of another
 * acquisition: another start, or, where the header has none, another duration (a frame or a bed of it); another half-life or
 * dose. Then it is refused, because its times and its tracer would give other activities and SUVs without an error. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/nuclides.h"
#include "node/sinogram/sinogram_internal.h"

#define SAME_START 60.0 /* s: clocks of scanner and console; the start of the header counts */
#define LARGEST_OFFSET (14 * 3600.0)
#define SAME_DURATION 0.01 /* of the longer one */

/* Is `like` of PET, as the data are? Data of parallel beams take all that a file has, that of a CT. */
static bool is_of_same_kind(const struct sinogram_source *s)
{
	static const char *const of_pet[] = {CLASS_RAW_DATA, CLASS_PET, CLASS_LEGACY_ENHANCED_PET, CLASS_ENHANCED_PET};
	const struct dicom_item *like = s->like ? dicom_root(s->like) : NULL;
	char text[DICOM_UID_SIZE] = "";

	if (!like || s->format->header != INTERFILE_PROJECTIONS)
		return like != NULL;
	if (dicom_get_text(like, TAG_MODALITY, text, sizeof(text), NULL) == 1 && text[0])
		return !strcmp(text, "PT");
	dicom_get_text(like, TAG_SOP_CLASS_UID, text, sizeof(text), NULL);
	for (size_t i = 0; i < sizeof(of_pet) / sizeof(of_pet[0]); i++)
		if (!strcmp(text, of_pet[i]))
			return true;
	return false;
}

static bool sets_start(const struct sinogram_source *s)
{
	return sinogram_is_set(s, "AcquisitionDate") || sinogram_is_set(s, "AcquisitionTime") ||
	       sinogram_is_set(s, "AcquisitionDateTime");
}

/* Return the half-life of what a person set; 0: nothing, or no radionuclide. */
static double set_half_life(const struct sinogram_source *s)
{
	const char *name = sinogram_set_text(s, "Radionuclide"), *half_life = sinogram_set_text(s, "RadionuclideHalfLife");
	const struct nuclide *nuclide = name ? nuclide_find(name) : NULL;

	return nuclide ? nuclide->half_life : half_life ? strtod(half_life, NULL) : 0;
}

/* Copy the tracer. Of another one than a person set, neither code, drug, dose nor injection are facts of these data. */
static void copy_tracer(const struct sinogram_source *s, const struct dicom_item *like, struct item_writer *root)
{
	double half_life = set_half_life(s);
	struct item_writer f;

	item_copy(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, like);
	if (!(half_life > 0) || dicom_item_count(root->item, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE) == 0)
		return;
	f = sinogram_tracer_item(root);
	sinogram_drop_nuclide(s, half_life, true, &f);
	item_end(root, &f);
}

void sinogram_copy_measurement(const struct sinogram_source *s, const struct interfile *h, struct item_writer *root)
{
	static const uint32_t times[] = {TAG_SERIES_DATE, TAG_SERIES_TIME, TAG_ACQUISITION_DATE, TAG_ACQUISITION_TIME};
	const struct dicom_item *like = dicom_root(s->like);
	double begin;

	if (!is_of_same_kind(s)) {
		if (sinogram_is_set(s, "AcquisitionTime")) /* a person gave the time, the file has the day of the exam */
			item_copy(root, TAG_ACQUISITION_DATE, like);
		return;
	}
	if (!sinogram_begin(h, &begin)) {
		item_copy_all(root, like, times, sizeof(times) / sizeof(times[0]));
		if (!sets_start(s))
			item_copy(root, TAG_ACQUISITION_DATE_TIME, like);
	}
	item_copy(root, TAG_ACTUAL_FRAME_DURATION, like);
	copy_tracer(s, like, root);
}

/* Are two moments the same? A header whose offset from UTC is known is compared with the unknown one of `like` to a quarter of an
 * hour, of which offsets are multiples. Without an offset a header has the clock of the scanner, as `like`. */
static bool is_same(double header, const char *zone, double like, const char *like_zone)
{
	double offset, other;

	if (!pet_facts_offset(zone, &offset))
		return fabs(header - like) <= SAME_START;
	if (pet_facts_offset(like_zone, &other))
		return fabs(header - offset - (like - other)) <= SAME_START;
	return fabs(header - offset - like) <= LARGEST_OFFSET + SAME_START && fabs(remainder(header - like, 900)) <= SAME_START;
}

/* Compare the start of the data, or of the scan that they are a frame of, with the acquisition and the series of `like`. */
static int check_start(const struct sinogram_source *s, const struct interfile *h, const struct pet_facts *like, struct err *err)
{
	const char *const moments[][2] = {{like->acquisition_date, like->acquisition_time},
					  {like->series_date, like->series_time}};
	char date[9], time[17];
	double begin, other;
	int first = -1;

	if (!sinogram_begin(h, &begin) || sets_start(s))
		return 0;
	for (int i = 1; i >= 0; i--) {
		if (!pet_facts_moment(moments[i][0], moments[i][1], &other))
			continue;
		if (is_same(begin, h->zone, other, like->zone) || is_same(begin - h->start, h->zone, other, like->zone))
			return 0;
		first = i;
	}
	if (first < 0)
		return 0;
	pet_facts_format(begin, date, time);
	return err_set(
		err, EBADMSG,
		"the header's start is %s %s%s, that of --like %s %s: they are not of one acquisition, or one is wrong; set "
		"AcquisitionDate and AcquisitionTime",
		date, time, h->zone, moments[first][0], moments[first][1]);
}

/* The start of a frame or a bed is not that of the data. */
static int check_duration(const struct sinogram_source *s, const struct interfile *h, const struct pet_facts *like,
			  struct err *err)
{
	double begin;

	if (sinogram_begin(h, &begin) || sets_start(s) || sinogram_is_set(s, "ActualFrameDuration") || s->images.of == PET_BEDS ||
	    s->conf->as_measured || !(h->duration > 0) || !(like->duration > 0) ||
	    fabs(h->duration - like->duration) <= SAME_DURATION * fmax(h->duration, like->duration))
		return 0;
	return err_set(
		err, EBADMSG,
		"the header's duration is %g s, that of --like %g s: they are not of one acquisition, or one is wrong; set "
		"AcquisitionDate and AcquisitionTime, or ActualFrameDuration",
		h->duration, like->duration);
}

/* Compare the times of injection as far as both are known on one clock: that of `like`. */
static int check_injection(const struct sinogram_source *s, const struct interfile *h, const struct pet_facts *like,
			   struct err *err)
{
	struct pet_facts said = {.injected = ""};
	double injected, other;

	memcpy(said.injected, h->tracer.injected, sizeof(said.injected));
	memcpy(said.zone, like->zone, sizeof(said.zone));
	if (sinogram_is_set(s, "RadiopharmaceuticalStartDateTime") || sinogram_is_set(s, "RadiopharmaceuticalStartTime") ||
	    strlen(like->injected) < 14 || pet_facts_injection(&said, 0, 0, &injected) != PET_INJECTION_KNOWN ||
	    pet_facts_injection(like, 0, 0, &other) != PET_INJECTION_KNOWN || fabs(injected - other) <= SAME_START)
		return 0;
	return err_set(err, EBADMSG,
		       "the header's time of injection is %s, that of --like %s: they are not of one injection, or one is wrong; "
		       "set RadiopharmaceuticalStartDateTime",
		       h->tracer.injected, like->injected);
}

int sinogram_check_like(const struct sinogram_source *s, const struct interfile *h, struct err *err)
{
	struct pet_facts like;
	int rc;

	if (!is_of_same_kind(s) || s->format->header != INTERFILE_PROJECTIONS)
		return 0;
	pet_facts_read(dicom_root(s->like), &like);
	rc = check_start(s, h, &like, err);
	if (rc == 0)
		rc = check_duration(s, h, &like, err);
	if (rc == 0)
		rc = check_injection(s, h, &like, err);
	return rc < 0 ? rc : sinogram_check_tracer(s, &h->tracer, err);
}

bool sinogram_start_is_likes(const struct sinogram_source *s)
{
	char class[DICOM_UID_SIZE] = "";
	double begin;

	if (!is_of_same_kind(s) || sets_start(s) || sinogram_begin(&s->stream[s->format->first].header, &begin))
		return false;
	dicom_get_text(dicom_root(s->like), TAG_SOP_CLASS_UID, class, sizeof(class), NULL);
	return strcmp(class, CLASS_RAW_DATA) != 0;
}
