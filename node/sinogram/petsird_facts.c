/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_facts.c - see petsird_facts_internal.h. */
#include "node/sinogram/petsird_facts_internal.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "kernels/tof.h"
#include "node/base/nuclides.h"
#include "node/base/sentence.h"

#define UTC "+0000"
#define FEW_RINGS 24
#define SPAN 11		/* of more rings */
#define GAPS 0.01	/* of a frame or gate: warn of more time without event blocks */
#define EDGE_ERROR 1e-3 /* of the width of a TOF bin: single precision numbers of the file */

/* ---- geometry ---- */

/* Read which axis of the file is x, y or z of the scanner; ret_sign: its direction. */
static bool parse_axes(const char *text, int ret_axis[3], float ret_sign[3])
{
	int parity;

	for (int i = 0; i < 3; i++) {
		ret_sign[i] = *text == '-' ? -1 : 1;
		text += *text == '-' || *text == '+';
		if (*text < 'x' || *text > 'z')
			return false;
		ret_axis[i] = *text++ - 'x';
		if (*text++ != (i < 2 ? ',' : '\0'))
			return false;
	}
	if (ret_axis[0] == ret_axis[1] || ret_axis[1] == ret_axis[2] || ret_axis[0] == ret_axis[2])
		return false;
	parity = (ret_axis[1] - ret_axis[0] + 3) % 3 == 1 ? 1 : -1;
	return (float)parity * ret_sign[0] * ret_sign[1] * ret_sign[2] > 0; /* not a mirror image */
}

const struct petsird_import *petsird_options(const struct sinogram_import *conf)
{
	static const struct petsird_import none = PETSIRD_IMPORT;

	return conf && conf->petsird ? conf->petsird : &none;
}

void petsird_axes_text(const struct sinogram_import *conf, char *ret, size_t size)
{
	const char *axes = petsird_options(conf)->axes;
	bool given = axes && strcmp(axes, "x,y,z") != 0;

	snprintf(ret, size,
		 "The format does not define the axes of the gantry: x, y and z of the scanner (to the right, down, into the "
		 "gantry, for an observer at the bed) are %s of the file%s.",
		 given ? axes : "x,y,z", given ? "" : "; --axes X,Y,Z says otherwise");
}

int petsird_positions(const struct petsird_header *h, const char *axes, float (**ret)[3], struct err *err)
{
	float sign[3], (*position)[3];
	int axis[3];

	axes = axes ? axes : "x,y,z";
	if (!parse_axes(axes, axis, sign))
		return err_set(err, EINVAL,
			       "axes %.20s; allowed: x, y and z in an order and with signs that make a rotation, such as x,y,z",
			       axes);
	position = malloc(h->n_detectors * sizeof(*position));
	if (!position)
		return err_set(err, ENOMEM, "no memory for %zu detectors", h->n_detectors);
	for (size_t i = 0; i < h->n_detectors; i++)
		for (int k = 0; k < 3; k++)
			position[i][k] = sign[k] * h->position[i][axis[k]];
	*ret = position;
	return 0;
}

/* The TOF bins of all pairs of types must be the same, and equidistant about 0. */
static int check_tof(const struct petsird_header *h, struct err *err)
{
	const struct petsird_tof *first = &h->tof[0][0];
	double width = (double)(first->edges[first->n] - first->edges[0]) / (double)first->n;

	if (!(first->resolution > 0))
		return err_set(err, EBADMSG, "a TOF resolution of %g mm; use --no-tof", (double)first->resolution);
	for (size_t i = 0; i < h->n_types; i++)
		for (size_t j = 0; j <= i; j++) {
			const struct petsird_tof *tof = &h->tof[i][j];

			if (tof->n != first->n || tof->resolution != first->resolution)
				return err_set(err, ENOTSUP,
					       "module types %zu and %zu have %zu TOF bins, and a resolution of %g mm; types 0 "
					       "and 0 have %zu and %g mm",
					       i, j, tof->n, tof->resolution, first->n, first->resolution);
			for (size_t k = 0; k <= tof->n; k++)
				if (!(fabs((double)tof->edges[k] - ((double)k - 0.5 * (double)tof->n) * width) <=
				      EDGE_ERROR * width))
					return err_set(err, ENOTSUP,
						       "TOF bins are not equidistant about 0: edge %zu of module types %zu and "
						       "%zu is at %g mm instead of %g mm",
						       k, i, j, (double)tof->edges[k],
						       ((double)k - 0.5 * (double)tof->n) * width);
		}
	return 0;
}

int petsird_find_tof(const struct petsird_header *h, bool none, struct scan_tof *ret, struct err *err)
{
	const struct petsird_tof *tof = &h->tof[0][0];
	int rc;

	*ret = (struct scan_tof){0};
	for (size_t i = 0; !none && i < h->n_types; i++)
		none = h->tof[i][i].n <= 1;
	if (none)
		return 0;
	rc = check_tof(h, err);
	if (rc == 0)
		*ret = (struct scan_tof){.n = (int)tof->n,
					 .width = (double)(tof->edges[tof->n] - tof->edges[0]) / (double)tof->n,
					 .sigma = tof->resolution / TOF_FWHM_PER_SIGMA};
	return rc;
}

double petsird_pair_efficiency(const struct petsird *p, int32_t first, int32_t second)
{
	const struct petsird_header *h = petsird_header(p);
	const uint32_t detector[2] = {(uint32_t)first, (uint32_t)second};
	size_t energies[2];
	double sum = 0;

	if (first < 0 || second < 0)
		return 0;
	if (!h->has_efficiencies)
		return 1;
	for (int i = 0; i < 2; i++)
		energies[i] = h->type[petsird_type_of(h, detector[i])].energies;
	for (size_t i = 0; i < energies[0]; i++)
		for (size_t j = 0; j < energies[1]; j++)
			sum += petsird_efficiency(p, detector, (uint16_t[]){(uint16_t)i, (uint16_t)j});
	return sum;
}

static int check_block(const struct pet_images *frames, int64_t start, int64_t stop, struct err *err)
{
	for (int i = 0; i < frames->n; i++) {
		const struct pet_frame *f = &frames->image[i].time;
		bool inside = start >= f->start && stop <= f->stop, outside = start >= f->stop || stop <= f->start;

		if (!inside && !outside && 2 * (stop - start) > f->stop - f->start)
			return err_set(
				err, ENOTSUP,
				"frames: the time block from %lld to %lld ms is partly in frame %d, %lld to %lld ms: the file "
				"does not have the times of events that such a frame needs",
				(long long)start, (long long)stop, i + 1, (long long)f->start, (long long)f->stop);
	}
	return 0;
}

int petsird_check_frames(const struct petsird *p, const struct pet_images *frames, const struct petsird_event *events, size_t n,
			 int64_t *block, struct err *err)
{
	int64_t first = (int64_t)petsird_counts(p)->start;
	int rc = 0;

	for (size_t i = 0; rc == 0 && frames->of == PET_FRAMES && i < n; i++) {
		if (events[i].delayed || (int64_t)events[i].time == *block)
			continue;
		*block = (int64_t)events[i].time;
		rc = check_block(frames, *block - first, (int64_t)events[i].stop - first, err);
	}
	return rc;
}

double petsird_bin_efficiency(const struct petsird *p, const struct pet_cylinder *c, const struct michelogram_index *x,
			      const struct michelogram_rings *r, int angle, int radial)
{
	size_t detectors = (size_t)c->scanner.detectors;
	double sum = 0;
	int crystal[2];

	michelogram_crystals(x, angle, radial, 0, crystal);
	for (int i = 0; i < r->n; i++) {
		int difference = r->difference + 2 * i, first = (r->sum + difference) / 2, second = (r->sum - difference) / 2;

		sum += petsird_pair_efficiency(p, c->detector[(size_t)first * detectors + (size_t)crystal[0]],
					       c->detector[(size_t)second * detectors + (size_t)crystal[1]]);
	}
	return sum;
}

int petsird_span(int rings)
{
	return rings <= FEW_RINGS ? 1 : SPAN;
}

int petsird_check_still(const struct petsird *p, struct err *err)
{
	const struct petsird_counts *n = petsird_counts(p);

	if (n->bed_movements == 0 && n->gantry_movements == 0)
		return 0;
	return err_set(err, ENOTSUP, "the bed moves %llu times and the gantry %llu times between events",
		       (unsigned long long)n->bed_movements, (unsigned long long)n->gantry_movements);
}

/* ---- sentences ---- */

void petsird_warn(const struct petsird *p, bool delayeds, char *warnings, size_t size)
{
	const struct petsird_header *h = petsird_header(p);
	const struct petsird_counts *n = petsird_counts(p);
	const struct {
		uint64_t n;
		const char *what;
	} counts[] = {
		{n->surplus, "events of pairs of module types that do not exist are not used."},
		{delayeds ? 0 : n->delayeds, "delayed coincidences are not used: randoms are not corrected."},
		{n->singles, "blocks of histograms of singles are not used: the file has no coincidence window."},
		{n->alive_fractions, "blocks of alive time fractions are not used: dead time is not corrected."},
		{h->exam.n_radiopharmaceuticals > 1 ? h->exam.n_radiopharmaceuticals : 0,
		 "radiopharmaceuticals: the first one is used."},
	};

	if (!warnings)
		return;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].n > 0)
			sentence_add(warnings, size, "%llu %s", (unsigned long long)counts[i].n, counts[i].what);
	if (h->calibration != 1)
		sentence_add(warnings, size,
			     "The calibration factor %g of the file is not used: set DoseCalibrationFactor for values in Bq/ml.",
			     h->calibration);
	if (h->aligned)
		sentence_add(warnings, size,
			     "The alignment of the gantry is not used: positions are relative to the PET gantry.");
}

/* Add to sum how much of the times from a to b is in each image. */
static void add_to_images(const struct pet_images *m, int64_t a, int64_t b, int64_t *sum)
{
	if (m->of == PET_GATES)
		pet_gates_add(&m->gates, a, b, sum);
	for (int i = 0; m->of != PET_GATES && i < m->n; i++) {
		const struct pet_frame *f = &m->image[i].time;
		int64_t begin = f->start > a ? f->start : a, end = f->stop < b ? f->stop : b;

		sum[i] += end > begin ? end - begin : 0;
	}
}

void petsird_warn_gaps(const struct petsird *p, const struct pet_images *images, char *warnings, size_t size)
{
	const struct petsird_counts *c = petsird_counts(p);
	int64_t missing[PET_FRAMES_MAX] = {0};

	for (size_t i = 0; i < c->n_gaps; i++)
		add_to_images(images, (int64_t)c->gap[i][0] - c->start, (int64_t)c->gap[i][1] - c->start, missing);
	for (int i = 0; i < images->n; i++) {
		int64_t all = pet_images_duration(images, i);

		if (!warnings || (double)missing[i] <= GAPS * (double)all)
			continue;
		sentence_add(
			warnings, size,
			"The event blocks cover %.6g of %.6g s of %s %d: the durations of frames and gates contain the gaps, and "
			"values in Bq/ml are too low.",
			(double)(all - missing[i]) / 1000, (double)all / 1000, pet_division_name(images->of), i + 1);
		return; /* the first one is named */
	}
}

/* ---- attributes ---- */

/* Write an attribute as --set has it; false: the file does not say it. */
static bool say_number(const char *name, double value, char ret[PETSIRD_SET_SIZE])
{
	bool known = value > 0 && value < 1e15;

	if (known)
		snprintf(ret, PETSIRD_SET_SIZE, "%s=%.9g", name, value);
	return known;
}

/* Write the tracer of the file; a time of injection of 0 beside no dose is none. */
static void say_tracer(const struct petsird_exam *e, struct interfile_tracer *ret)
{
	char date[9], time[17];

	ret->nuclide = nuclide_of_code(e->nuclide);
	if (ret->nuclide)
		ret->half_life = ret->nuclide->half_life;
	if (!(e->dose > 0))
		return;
	ret->dose = e->dose;
	if (fabs(e->injected) < 1e11) {
		pet_facts_format(floor(e->injected), date, time);
		snprintf(ret->injected, sizeof(ret->injected), "%s%.6s%s", date, time, UTC);
	}
}

static void say_position(const struct petsird_exam *e, struct interfile *ret)
{
	snprintf(ret->enters, sizeof(ret->enters), "%s", pet_facts_enters(e->enters));
	snprintf(ret->lies, sizeof(ret->lies), "%s", pet_facts_lies(e->lies));
	if (ret->enters[0] && ret->lies[0])
		snprintf(ret->position, sizeof(ret->position), "%s%s", ret->enters, ret->lies);
}

/* Copy a UID, if it is one. */
static void say_uid(uint32_t tag, const char *uid, char ret[DICOM_UID_SIZE])
{
	snprintf(ret, DICOM_UID_SIZE, "%s", dicom_text_allowed(tag, uid) ? "" : uid);
}

static void say_exam(const struct petsird *p, struct sinogram_said *said)
{
	struct interfile *ret = &said->header;
	const struct petsird_exam *e = &petsird_header(p)->exam;
	double begin = e->start + petsird_counts(p)->start / 1000.0;
	char date[9], time[17];

	static const char *const field[FACTS] = {
		[FACT_STUDY] = "studyInstanceUID",	     [FACT_FRAME_OF_REFERENCE] = "frameOfReferenceUID",
		[FACT_POSITION] = "patientOrientation",	     [FACT_WEIGHT] = "patientsWeight",
		[FACT_START] = "startOfAcquisition",	     [FACT_DURATION] = "time blocks of its events",
		[FACT_NUCLIDE] = "radionuclideCodeSequence", [FACT_HALF_LIFE] = "radionuclideCodeSequence",
		[FACT_DOSE] = "radionuclideTotalDose",	     [FACT_INJECTION] = "radiopharmaceuticalStartDateTime"};

	said->name = "PETSIRD file";
	memcpy(said->field, field, sizeof(field));
	*ret = (struct interfile){.kind = INTERFILE_PROJECTIONS,
				  .duration = NAN,
				  .start = NAN,
				  .tracer = {.half_life = NAN, .branching = NAN, .dose = NAN, .volume = NAN}};
	snprintf(ret->scanner, sizeof(ret->scanner), "%s", petsird_header(p)->model);
	if (fabs(begin) < 1e11) {
		pet_facts_format(floor(begin), date, time);
		snprintf(ret->date, sizeof(ret->date), "%s", date);
		snprintf(ret->time, sizeof(ret->time), "%.6s", time);
		snprintf(ret->zone, sizeof(ret->zone), UTC);
	}
	say_position(e, ret);
	say_tracer(e, &ret->tracer);
	say_uid(TAG_STUDY_INSTANCE_UID, e->study, said->study);
	say_uid(TAG_FRAME_OF_REFERENCE_UID, e->frame_of_reference, said->frame_of_reference);
}

int petsird_say(const struct petsird *p, const char *duration, struct petsird_said *ret, struct sinogram_import *conf,
		struct err *err)
{
	const struct petsird_exam *e = &petsird_header(p)->exam;
	size_t n = 0;

	ret->set = calloc(conf->n_set + PETSIRD_SET_MAX + 1, sizeof(*ret->set));
	if (!ret->set)
		return err_set(err, ENOMEM, "no memory for attributes");
	say_exam(p, &ret->said);
	n += say_number("ActualFrameDuration", (double)petsird_counts(p)->covered, ret->text[n]);
	n += say_number("PatientWeight", e->weight, ret->text[n]);
	n += say_number("PatientSize", e->size, ret->text[n]);
	for (size_t i = 0; i < n; i++)
		ret->set[i] = ret->text[i];
	if (duration)
		ret->set[n++] = (char *)duration;
	conf->n_own = n;
	for (size_t i = 0; i < conf->n_set; i++)
		ret->set[n++] = conf->set[i];
	conf->set = ret->set;
	conf->n_set = n;
	conf->said = &ret->said;
	conf->as_measured = true;
	return 0;
}
