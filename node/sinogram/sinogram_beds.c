/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_beds.c - the beds of an acquisition: each has its time and position, which all its objects repeat. Their EMISSION
 * objects must not contradict each other about the patient's position, the radionuclide, the dose, the calibration and what the
 * data are corrected for, because the result has one header. A value that an object lacks contradicts nothing. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

#define SAME_PLACE 1e-3 /* mm */

int sinogram_take_bed(struct sinogram *s, size_t file, const struct sinogram_facts *f, struct err *err)
{
	struct pet_bed *bed = &s->beds.bed[f->bed - 1];
	struct pet_bed found = {.time = {f->bed_start, f->bed_start + f->bed_time}};
	const char *name = file_name(s->paths[file]);
	int rc = sinogram_centre(s->files[file], f, found.centre, err);

	if (rc == 0)
		return err_set(err, EBADMSG, "%s: the position of bed %ld is missing, the scanner's centre (%04X,%02X%02X)", name,
			       f->bed, SINOGRAM_GROUP, f->block, SINOGRAM_CENTRE);
	if (rc < 0) {
		err_prefix(err, "%s", name);
		return rc;
	}
	if (s->beds.n != 0 && f->n_beds != s->beds.n)
		return err_set(err, EBADMSG, "%s announces %ld beds, other objects %d", name, f->n_beds, s->beds.n);
	if (bed->time.stop > 0 && (bed->time.start != found.time.start || bed->time.stop != found.time.stop))
		return err_set(err, EBADMSG, "%s: bed %ld is %ld to %ld ms, in other objects %ld to %ld ms", name, f->bed,
			       (long)found.time.start, (long)found.time.stop, (long)bed->time.start, (long)bed->time.stop);
	for (int c = 0; c < 3; c++)
		if (bed->time.stop > 0 && fabs(found.centre[c] - bed->centre[c]) > SAME_PLACE)
			return err_set(err, EBADMSG, "%s: bed %ld is at %g, %g, %g mm, in other objects at %g, %g, %g mm", name,
				       f->bed, found.centre[0], found.centre[1], found.centre[2], bed->centre[0], bed->centre[1],
				       bed->centre[2]);
	s->beds.n = (int)f->n_beds;
	*bed = found;
	return 0;
}

int sinogram_check_bed_times(const struct pet_beds *beds, struct err *err)
{
	for (int i = 1; i < beds->n; i++) {
		const struct pet_frame *before = &beds->bed[i - 1].time, *time = &beds->bed[i].time;

		if (time->stop > 0 && time->start < before->stop)
			return err_set(err, EBADMSG, "bed %d begins at %ld ms, before the end of bed %d at %ld ms", i + 1,
				       (long)time->start, i, (long)before->stop);
	}
	return 0;
}

static int differ(int bed, const char *what, const char *here, const char *first, struct err *err)
{
	return err_set(err, EBADMSG, "bed %d has %s %s, bed 1 %s", bed, what, here, first);
}

static int check_numbers(int bed, const struct pet_facts *f, const struct pet_facts *first, struct err *err)
{
	const struct {
		const char *name;
		double here, first;
	} numbers[] = {
		{"the half-life, s,", f->half_life, first->half_life},
		{"the dose, Bq,", f->dose, first->dose},
		{"the patient's weight, kg,", f->weight, first->weight},
		{"the Dose Calibration Factor (0054,1322)", f->calibration, first->calibration},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char here[32], other[32];

		if (!(fabs(numbers[i].here - numbers[i].first) >
		      1e-6 * fabs(numbers[i].first))) /* also if one is missing (NaN) */
			continue;
		snprintf(here, sizeof(here), "%.10g", numbers[i].here);
		snprintf(other, sizeof(other), "%.10g", numbers[i].first);
		return differ(bed, numbers[i].name, here, other, err);
	}
	return 0;
}

static int check_facts(int bed, const struct pet_facts *f, const struct pet_facts *first, struct err *err)
{
	const struct {
		const char *name, *here, *first;
	} texts[] = {
		{"the radionuclide", f->radionuclide, first->radionuclide},
		{"the patient's position", f->patient_position, first->patient_position},
		{"the time of injection", f->injected, first->injected},
		{"the date of the acquisition", f->acquisition_date, first->acquisition_date},
		{"the start of the acquisition", f->acquisition_time, first->acquisition_time},
		{"the Corrected Image (0028,0051)", f->corrected, first->corrected},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].here[0] && texts[i].first[0] && strcmp(texts[i].here, texts[i].first) != 0)
			return differ(bed, texts[i].name, texts[i].here, texts[i].first, err);
	return check_numbers(bed, f, first, err);
}

int sinogram_check_beds(const struct sinogram *s, struct err *err)
{
	for (int b = 1; b < s->beds.n; b++) {
		struct pet_facts f;
		int rc;

		pet_facts_read(dicom_root(s->files[s->frame_part[b][s->format->first].file[0]]), &f);
		rc = check_facts(b + 1, &f, &s->facts, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
