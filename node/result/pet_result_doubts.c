/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result_doubts.c - say what the data state twice, in two ways that do not agree, and what was taken. A person may have set
 * one of them, or a writer copied it from an image, so that it is no reason to refuse the data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/sentence.h"
#include "node/result/pet_result_internal.h"
#include "node/sinogram/pet_source.h"

#define SAME_DURATION 0.01  /* of the longer one */
#define ANOTHER_DAY 43200.0 /* s */

struct text {
	char *ret;
	size_t size;
};

static bool durations_differ(double a, double b)
{
	return a > 0 && b > 0 && fabs(a - b) > SAME_DURATION * fmax(a, b);
}

/* Of the beds that were measured shorter or longer than their headers say the first is named. */
static void say_beds(const struct sinogram *s, struct text *t)
{
	for (int b = 0; s->images.of == PET_BEDS && s->frame_part && b < s->images.n; b++) {
		double duration = (double)pet_images_duration(&s->images, b) / 1000;
		double header = s->frame_part[b][SINOGRAM_EMISSION].header.duration;

		if (!durations_differ(duration, header))
			continue;
		sentence_add(t->ret, t->size, "Bed %d lasts %.6g s, image duration (sec) in its header is %.6g: %.6g s is taken.",
			     b + 1, duration, header, duration);
		return;
	}
}

/* Time frames and gates have times of their own. */
static void say_durations(const struct sinogram *s, double duration, struct text *t)
{
	static const enum sinogram_role counts[] = {SINOGRAM_ADDITIVE, SINOGRAM_DELAYEDS};
	double header = s->part[SINOGRAM_EMISSION].header.duration;

	if (s->images.n > 0 || s->no_duration)
		return;
	if (durations_differ(s->facts.duration, header))
		sentence_add(t->ret, t->size,
			     "Actual Frame Duration (0018,1242) is %.6g s, image duration (sec) in the header of EMISSION %.6g: "
			     "%.6g s is taken.",
			     s->facts.duration, header, s->facts.duration);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const struct sinogram_part *part = &s->part[counts[i]];

		if (part->present && durations_differ(part->header.duration, duration))
			sentence_add(t->ret, t->size,
				     "image duration (sec) in the header of %s is %.6g s, the duration of EMISSION %.6g s: its "
				     "counts are taken as those of the same time.",
				     sinogram_role_name(counts[i]), part->header.duration, duration);
	}
}

/* What half-life and times disprove is refused (pet_facts_check()). */
static void say_factor(const struct sinogram *s, const char *to, double factor, struct text *t)
{
	double usual[2];

	if (pet_facts_decay_range(&s->facts, !strcmp(to, "ADMIN"), usual) || (factor >= usual[0] && factor <= usual[1]))
		return;
	sentence_add(t->ret, t->size,
		     "Decay Factor (0054,1321) is %g with Decay Correction (0054,1102) %s, where %.3g to %.3g are usual, and "
		     "half-life or times that prove it are not in the data: it is taken as it is.",
		     factor, to, usual[0], usual[1]);
}

/* A decay correction beside a Corrected Image that lists others is refused (pet_facts_check()). The header has no factor. */
static void say_decay(const struct sinogram *s, const struct dicom_item *root, struct text *t)
{
	char to[17] = "";
	double factor = 1;
	bool admin;

	if (strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "decay") && !strstr(s->facts.corrected, "DECY"))
		sentence_add(
			t->ret, t->size,
			"applied corrections in the header of EMISSION names decay, but Corrected Image (0028,0051) has no DECY, "
			"nor the data a Decay Factor (0054,1321) with it: the data are taken as not corrected for decay.");
	dicom_get_text(root, TAG_DECAY_CORRECTION, to, sizeof(to), NULL);
	dicom_get_double(root, TAG_DECAY_FACTOR, 0, &factor, NULL);
	admin = !strcmp(to, "ADMIN");
	if (strcmp(to, "START") && !admin)
		return;
	if (strstr(s->facts.corrected, "DECY")) {
		say_factor(s, to, factor, t);
		return;
	}
	if (fabs(factor - 1) <= 1e-3 && admin)
		sentence_add(t->ret, t->size,
			     "Decay Correction (0054,1102) is ADMIN, but Corrected Image (0028,0051) has no DECY, nor the data a "
			     "Decay Factor (0054,1321) other than 1: the data are taken as not corrected for decay.");
	if (s->facts.corrected[0] || fabs(factor - 1) <= 1e-3)
		return;
	sentence_add(t->ret, t->size,
		     "Decay Correction (0054,1102) is %s with the Decay Factor (0054,1321) %g, but there is no Corrected Image "
		     "(0028,0051) with DECY: the data are taken as not corrected for decay.",
		     to, factor);
}

/* Was an object of ATTENUATION, or what its header says where `import` copied the attributes of EMISSION, measured on another day? */
static bool is_of_another_day(const struct sinogram *s, const struct dicom_item *other, const struct interfile *h, double *ret_at,
			      double *ret_own)
{
	struct pet_facts f;

	pet_facts_read(other, &f);
	return (pet_facts_moment(f.acquisition_date, f.acquisition_time, ret_at) &&
		pet_facts_moment(s->facts.acquisition_date, s->facts.acquisition_time, ret_own) &&
		fabs(*ret_at - *ret_own) > ANOTHER_DAY) ||
	       (sinogram_begin(h, ret_at) && sinogram_begin(&s->part[SINOGRAM_EMISSION].header, ret_own) &&
		fabs(*ret_at - *ret_own) > ANOTHER_DAY);
}

/* Of the objects of ATTENUATION, of all beds, the first of another day and the first of another scanner are named. */
static void say_attenuation(const struct sinogram *s, const struct dicom_item *root, struct text *t)
{
	char model[65], own_model[65] = "", date[9], time[17], own_date[9], own_time[17];
	bool dated = false, named = false;
	double at, own;

	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, own_model, sizeof(own_model), NULL);
	for (int i = 0; i < (s->frame_part ? s->images.n : 1); i++) {
		const struct sinogram_part *a = s->frame_part && s->frame_part[i][SINOGRAM_ATTENUATION].present
							? &s->frame_part[i][SINOGRAM_ATTENUATION]
							: &s->part[SINOGRAM_ATTENUATION];

		for (size_t k = 0; a->present && k < a->n_chunks; k++) {
			const struct dicom_item *other = dicom_root(s->files[a->file[k]]);

			if (!dated && is_of_another_day(s, other, &a->header, &at, &own)) {
				dated = true;
				pet_facts_format(at, date, time);
				pet_facts_format(own, own_date, own_time);
				sentence_add(t->ret, t->size,
					     "ATTENUATION was measured at %s %s, EMISSION at %s %s: a patient lies elsewhere at "
					     "another time.",
					     date, time, own_date, own_time);
			}
			model[0] = '\0';
			dicom_get_text(other, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
			if (named || !model[0] || !own_model[0] || !strcasecmp(model, own_model))
				continue;
			named = true;
			sentence_add(
				t->ret, t->size,
				"Manufacturer's Model Name (0008,1090) of ATTENUATION is \"%s\", of EMISSION \"%s\": they may "
				"not be of one scanner.",
				model, own_model);
		}
	}
}

/* A method beside a correction that the node made. */
static void say_methods(const struct sinogram *s, const struct dicom_item *root, struct text *t)
{
	static const struct {
		uint32_t tag;
		int made;
		const char *name, *term;
	} methods[] = {
		{TAG_RANDOMS_CORRECTION_METHOD, PET_CORRECT_RANDOMS, "Randoms Correction Method (0054,1100)", "RAN"},
		{TAG_ATTENUATION_CORRECTION_METHOD, PET_CORRECT_ATTENUATION, "Attenuation Correction Method (0054,1101)", "ATTN"},
		{TAG_SCATTER_CORRECTION_METHOD, PET_CORRECT_SCATTER, "Scatter Correction Method (0054,1105)", "SCAT"},
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		char method[65] = "";

		dicom_get_text(root, methods[i].tag, method, sizeof(method), NULL);
		if (!(s->made & methods[i].made) || !method[0] || !strcmp(method, "NONE"))
			continue;
		sentence_add(t->ret, t->size,
			     "%s is \"%s\", but Corrected Image (0028,0051) does not list %s: the data were taken as not "
			     "corrected, and corrected.",
			     methods[i].name, method, methods[i].term);
	}
}

void pet_result_doubts(const struct sinogram *s, double duration, char *ret, size_t size)
{
	struct text t = {ret, size};
	const struct dicom_item *root;

	ret[0] = '\0';
	if (s->source->list_mode)
		return; /* a program of this node wrote both */
	root = dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
	say_beds(s, &t);
	say_durations(s, duration, &t);
	say_decay(s, root, &t);
	say_methods(s, root, &t);
	say_attenuation(s, root, &t);
}
