/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_objects.c - compare what the objects of one acquisition say about the patient, the tracer and the data. The result has
 * one header, that of the first object of EMISSION: another one that differs is of another scan, or one of them is wrong, and the
 * image would be mirrored, or have another decay, without an error. A value that an object lacks contradicts nothing.
 *
 * As of Interfile headers (sinogram_agree.c), of ATTENUATION only position and weight are compared, because a transmission scan
 * has a nuclide of its own; of other counts also the tracer; NORMALISATION and MULTIPLICATIVE, which may be those of a phantom,
 * in nothing. Only beds have the start of the acquisition in all objects; the chunks of one frame, gate or bed have one start and
 * one duration, which are those of its values. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/base/nuclides.h"
#include "node/sinogram/sinogram_internal.h"

#define ENTERED_TWICE 0.1 /* weights of one patient, entered for a CT and for the PET */
#define CLOTHED 3.0	  /* kg: the same of a newborn, whose 10 % are a blanket */
#define ROUNDED 0.01	  /* durations of one frame: measured, and planned */
#define SAME_TIME 1.0	  /* s: two spellings, or clocks, of one moment */

enum level { NOTHING, POSITION, TRACER, DATA, BED, CHUNK }; /* each with those before it */

static enum level level_of(const struct sinogram *s, const struct sinogram_facts *f)
{
	if (f->role == s->format->first)
		return f->chunk > 0 ? CHUNK : f->of == PET_BEDS && f->image > 1 ? BED : DATA;
	if (f->role == SINOGRAM_NORMALISATION || f->role == SINOGRAM_MULTIPLICATIVE)
		return NOTHING;
	return f->role == SINOGRAM_ATTENUATION ? POSITION : TRACER;
}

static const struct {
	const char *name;
	size_t at;
	enum level level;
} texts[] = {
	{"the patient's position", offsetof(struct pet_facts, patient_position), POSITION},
	{"the radionuclide", offsetof(struct pet_facts, radionuclide), DATA},
	{"the time of injection", offsetof(struct pet_facts, injected), TRACER},
	{"the date of the acquisition", offsetof(struct pet_facts, acquisition_date), BED},
	{"the start of the acquisition", offsetof(struct pet_facts, acquisition_time), BED},
	{"the Corrected Image (0028,0051)", offsetof(struct pet_facts, corrected), DATA},
};

static const struct {
	const char *name;
	size_t at;
	enum level level;
	double tolerance, slack; /* of the larger one, 0: that of half-lives; at least slack, in units of the value */
} numbers[] = {
	{"the half-life, s,", offsetof(struct pet_facts, half_life), TRACER, 0, 0},
	{"the dose, Bq,", offsetof(struct pet_facts, dose), TRACER, 0, 0},
	{"the Patient's Weight (0010,1030), kg,", offsetof(struct pet_facts, weight), POSITION, ENTERED_TWICE, CLOTHED},
	{"the Patient's Weight (0010,1030), kg,", offsetof(struct pet_facts, weight), DATA, 1e-6, 0},
	{"the Dose Calibration Factor (0054,1322)", offsetof(struct pet_facts, calibration), DATA, 1e-6, 0},
	{"the Actual Frame Duration (0018,1242), s,", offsetof(struct pet_facts, duration), CHUNK, ROUNDED, SAME_TIME},
};

/* Two spellings of one time are the same. */
static bool same_injection(const struct pet_facts *a, const struct pet_facts *b)
{
	double one, other;

	return pet_facts_injection(a, 0, 0, &one) == PET_INJECTION_KNOWN &&
	       pet_facts_injection(b, 0, 0, &other) == PET_INJECTION_KNOWN && fabs(one - other) < SAME_TIME;
}

static bool same_time(const char *a, const char *b)
{
	double one, other;

	return pet_facts_moment("20000101", a, &one) && pet_facts_moment("20000101", b, &other) && fabs(one - other) < SAME_TIME;
}

static bool same_number(double a, double b, double tolerance, double slack)
{
	if (isnan(a) || isnan(b))
		return true;
	return tolerance > 0 ? fabs(a - b) <= fmax(tolerance * fmax(fabs(a), fabs(b)), slack) : nuclide_same_half_life(a, b);
}

/* Find the first value that differs; the texts are both values. NULL: none. */
static const char *find_difference(const struct pet_facts *here, const struct pet_facts *first, enum level level,
				   char ret_here[200], char ret_first[200])
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *a = (const char *)here + texts[i].at, *b = (const char *)first + texts[i].at;

		if (texts[i].level > level || !a[0] || !b[0] || !strcmp(a, b) ||
		    (a == here->injected && same_injection(here, first)) || (a == here->acquisition_time && same_time(a, b)))
			continue;
		snprintf(ret_here, 200, "%s", a);
		snprintf(ret_first, 200, "%s", b);
		return texts[i].name;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		double a, b;

		memcpy(&a, (const char *)here + numbers[i].at, sizeof(a));
		memcpy(&b, (const char *)first + numbers[i].at, sizeof(b));
		if (numbers[i].level > level || same_number(a, b, numbers[i].tolerance, numbers[i].slack))
			continue;
		snprintf(ret_here, 200, "%.10g", a);
		snprintf(ret_first, 200, "%.10g", b);
		return numbers[i].name;
	}
	return NULL;
}

/* "bed 2", or "a.dcm (ATTENUATION)". */
static void name_object(const struct sinogram *s, const struct sinogram_facts *f, size_t file, bool bed, char ret[320])
{
	if (bed)
		snprintf(ret, 320, "bed %ld", f->image);
	else
		snprintf(ret, 320, "%.255s (%s)", file_name(s->paths[file]), sinogram_role_name(f->role));
}

/* Find the first chunk of the role and the frame, gate or bed of an object. */
static size_t first_chunk(const struct sinogram *s, const struct sinogram_facts *facts, size_t of)
{
	size_t k = 0;

	while (k < s->n_files && (facts[k].role != facts[of].role || facts[k].chunk != 0 || facts[k].image != facts[of].image))
		k++;
	return k < s->n_files ? k : of;
}

int sinogram_check_objects(const struct sinogram *s, const struct sinogram_facts *facts, struct err *err)
{
	for (size_t i = 0; i < s->n_files; i++) {
		enum level level = level_of(s, &facts[i]);
		size_t first = level == CHUNK ? first_chunk(s, facts, i) : s->part[s->format->first].file[0];
		char here[200], other[200], name[320], first_name[320];
		struct pet_facts f, g;
		const char *what;

		if (level == NOTHING || i == first)
			continue;
		pet_facts_read(dicom_root(s->files[i]), &f);
		pet_facts_read(dicom_root(s->files[first]), &g);
		what = find_difference(&f, &g, level, here, other);
		if (!what)
			continue;
		name_object(s, &facts[i], i, level == BED, name);
		name_object(s, &facts[first], first, level == BED, first_name);
		return err_set(err, EBADMSG,
			       "%s has %s %s, %s %s: they are not of one acquisition, or one is wrong; correct the wrong value "
			       "at its source, or empty it",
			       name, what, here, first_name, other);
	}
	return 0;
}
