/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_agree.c - compare what the Interfile headers of one acquisition say about the patient and the tracer. Its objects have
 * one position and one tracer: two that differ are two scans, or one header is wrong, and the image would be mirrored, or have
 * another decay, without an error.
 *
 * EMISSION of every bed is compared in all values; other counts (ADDITIVE, DELAYEDS, SINGLES) with them. ATTENUATION is compared
 * in the position alone, because a transmission scan has a nuclide of its own; NORMALISATION and MULTIPLICATIVE, which may be
 * those of a phantom, in nothing. The position is also compared with that of `like`. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/base/folder.h"
#include "node/base/nuclides.h"
#include "node/sinogram/sinogram_internal.h"

struct place { /* of a header */
	const struct sinogram_source *s;
	int bed, role;
};

/* What one header says under a key. "": nothing. */
struct said {
	const char *key;
	char text[72];
	double number; /* NaN: `text` is compared */
	struct place place;
};

enum { ORIENTATION, ROTATION, POSITIONS, NUCLIDE = POSITIONS, HALF_LIFE, BRANCHING, DOSE, VOLUME, DRUG, KEYS };

/* Keywords of `set` that decide instead of the headers. */
static const struct {
	const char *key, *keyword[2];
} keys[KEYS] = {
	[ORIENTATION] = {"patient orientation", {"PatientPosition", NULL}},
	[ROTATION] = {"patient rotation", {"PatientPosition", NULL}},
	[NUCLIDE] = {"radionuclide name[1]", {"Radionuclide", NULL}},
	[HALF_LIFE] = {"radionuclide halflife (sec)[1]", {"Radionuclide", "RadionuclideHalfLife"}},
	[BRANCHING] = {"radionuclide branching factor[1]", {"RadionuclidePositronFraction", NULL}},
	[DOSE] = {"tracer activity at time of injection (Bq)", {"RadionuclideTotalDose", NULL}},
	[VOLUME] = {"injected volume (ml)", {"RadiopharmaceuticalVolume", NULL}},
	[DRUG] = {"radiopharmaceutical", {"Radiopharmaceutical", NULL}},
};

static const char *orientation_word(const struct interfile *h)
{
	if (h->enters[0])
		return h->enters[0] == 'H' ? "head_in" : "feet_in";
	return h->other_position ? "other" : "";
}

static const char *rotation_word(const struct interfile *h)
{
	static const char *const words[][2] = {{"S", "supine"}, {"P", "prone"}, {"DR", "right"}, {"DL", "left"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(h->lies, words[i][0]))
			return words[i][1];
	return h->other_position && h->enters[0] ? "other" : ""; /* if neither is known, the orientation stands for both */
}

static void read_said(const struct interfile *h, struct place place, struct said ret[KEYS])
{
	const struct interfile_tracer *t = &h->tracer;
	const double numbers[KEYS] = {
		[HALF_LIFE] = t->half_life, [BRANCHING] = t->branching, [DOSE] = t->dose, [VOLUME] = t->volume};
	const char *const texts[KEYS] = {[ORIENTATION] = orientation_word(h),
					 [ROTATION] = rotation_word(h),
					 [NUCLIDE] = t->nuclide ? t->nuclide->name : "",
					 [DRUG] = t->drug};

	for (int k = 0; k < KEYS; k++) {
		ret[k] = (struct said){.key = keys[k].key, .number = numbers[k] > 0 ? numbers[k] : NAN, .place = place};
		if (numbers[k] > 0)
			snprintf(ret[k].text, sizeof(ret[k].text), "%.10g", numbers[k]);
		else
			snprintf(ret[k].text, sizeof(ret[k].text), "%s", texts[k] ? texts[k] : "");
	}
}

/* "bed 2, ATTENUATION (b.hs)"; the role only if it is another than EMISSION. */
static void name_place(struct place at, char *ret, size_t size)
{
	const struct sinogram_import *conf = at.s->conf;
	const bool own = at.s->images.of == PET_BEDS && at.s->own[at.bed][at.role].present,
		   first = at.role == (int)at.s->format->first;
	const char *header = own ? conf->beds[at.bed].header[at.role] : conf->header[at.role];
	const char *role = sinogram_role_name((enum sinogram_role)at.role);
	char bed[32] = "";

	if (own)
		snprintf(bed, sizeof(bed), "bed %d%s", at.bed + 1, first ? "" : ", ");
	snprintf(ret, size, "%s%s%s%s%s", bed, own && first ? "" : role, header ? " (" : "", header ? file_name(header) : "",
		 header ? ")" : "");
}

static bool is_decided(const struct sinogram_source *s, int k)
{
	return sinogram_is_set(s, keys[k].keyword[0]) || (keys[k].keyword[1] && sinogram_is_set(s, keys[k].keyword[1]));
}

static bool values_differ(const struct said *a, const struct said *b)
{
	if (!a->text[0] || !b->text[0])
		return false;
	return a->number > 0 ? !nuclide_same_half_life(a->number, b->number) : strcasecmp(a->text, b->text) != 0;
}

/* Compare the first n keys with what the headers before said. */
static int compare_keys(const struct said first[KEYS], const struct said here[KEYS], int n, struct err *err)
{
	for (int k = 0; k < n; k++) {
		char at[2][320];

		if (!values_differ(&first[k], &here[k]) || is_decided(here[k].place.s, k))
			continue;
		name_place(first[k].place, at[0], sizeof(at[0]));
		name_place(here[k].place, at[1], sizeof(at[1]));
		return err_set(err, EBADMSG,
			       "%s has %s := %s, %s has %s: they are not of one acquisition, or one is wrong; correct the "
			       "header, or set %s",
			       at[1], here[k].key, here[k].text, at[0], first[k].text, keys[k].keyword[0]);
	}
	return 0;
}

/* Take from the header of a further bed what those before lack. */
static void complete_header(struct interfile *to, const struct interfile *from)
{
	struct interfile_tracer *t = &to->tracer;
	const struct interfile_tracer *f = &from->tracer;
	const struct {
		double *to, from;
	} numbers[] = {
		{&t->half_life, f->half_life}, {&t->branching, f->branching}, {&t->dose, f->dose}, {&t->volume, f->volume}};

	if (!to->enters[0])
		memcpy(to->enters, from->enters, sizeof(to->enters));
	if (!to->lies[0])
		memcpy(to->lies, from->lies, sizeof(to->lies));
	to->other_position = to->other_position || from->other_position;
	if (!to->position[0] && !to->other_position && to->enters[0] && to->lies[0])
		snprintf(to->position, sizeof(to->position), "%s%s", to->enters, to->lies);
	if (!t->nuclide)
		t->nuclide = f->nuclide;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!(*numbers[i].to > 0))
			*numbers[i].to = numbers[i].from;
	if (!t->drug[0])
		memcpy(t->drug, f->drug, sizeof(t->drug));
}

/* Compare EMISSION of all beds, and complete that of bed 1, from which the attributes of all objects are made. */
static int agree_beds(struct sinogram_source *s, struct said first[KEYS], struct err *err)
{
	const int role = (int)s->format->first;
	int rc = 0;

	for (int b = 1; rc == 0 && s->images.of == PET_BEDS && b < s->images.n; b++) {
		const struct interfile *h = &s->own[b][role].header;
		struct said here[KEYS];

		read_said(h, (struct place){s, b, role}, here);
		rc = compare_keys(first, here, KEYS, err);
		for (int k = 0; k < KEYS; k++)
			first[k] = first[k].text[0] ? first[k] : here[k];
		complete_header(&s->own[0][role].header, h);
		complete_header(&s->stream[role].header, h);
	}
	return rc;
}

/* Compare the header of another role. */
static int agree_role(const struct sinogram_source *s, int bed, int role, const struct said first[KEYS], struct err *err)
{
	const bool own = s->images.of == PET_BEDS && s->own[bed][role].present;
	const struct sinogram_stream *stream = own ? &s->own[bed][role] : &s->stream[role];
	struct said here[KEYS];

	if (!stream->present || role == SINOGRAM_NORMALISATION || role == SINOGRAM_MULTIPLICATIVE)
		return 0;
	read_said(&stream->header, (struct place){s, bed, role}, here);
	return compare_keys(first, here, role == SINOGRAM_ATTENUATION ? POSITIONS : KEYS, err);
}

/* Whether a header agrees with a position of DICOM, as far as it says anything. STIR writes "other" for a patient on a side. */
static bool position_agrees(const struct interfile *h, const char *position)
{
	const char *lies = strlen(position) > 2 ? position + 2 : "";

	return (!h->enters[0] || !strncmp(position, h->enters, 2)) && (!h->lies[0] || !strcmp(lies, h->lies)) &&
	       (!h->other_position || lies[0] == 'D');
}

int sinogram_check_position(const struct sinogram_source *s, const struct interfile *h, struct err *err)
{
	struct pet_facts f = {.patient_position = ""};
	const char *enters = orientation_word(h), *lies = rotation_word(h);

	if (s->like)
		pet_facts_read(dicom_root(s->like), &f);
	if (!f.patient_position[0] || sinogram_is_set(s, "PatientPosition") || position_agrees(h, f.patient_position))
		return 0;
	if (s->conf->said && s->conf->said->header.position[0])
		return err_set(err, EBADMSG,
			       "the file's position is %s (%s), that of --like %s: they are not of one acquisition, or one is "
			       "wrong; set PatientPosition",
			       s->conf->said->header.position, s->conf->said->field[FACT_POSITION], f.patient_position);
	return err_set(
		err, EBADMSG,
		"the header's position is %s%s%s (patient orientation, patient rotation), that of --like %s: they are not of "
		"one acquisition, or one is wrong; set PatientPosition",
		enters, enters[0] && lies[0] ? ", " : "", lies, f.patient_position);
}

int sinogram_agree(struct sinogram_source *s, struct err *err)
{
	const int own = (int)s->format->first;
	struct said first[KEYS];
	int rc;

	if (s->format->header != INTERFILE_PROJECTIONS)
		return 0; /* of parallel beams there is one header */
	read_said(&s->stream[own].header, (struct place){s, 0, own}, first);
	rc = agree_beds(s, first, err);
	for (int b = 0; rc == 0 && b < (s->images.of == PET_BEDS ? s->images.n : 1); b++)
		for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
			if (role != own)
				rc = agree_role(s, b, role, first, err);
	return rc;
}
