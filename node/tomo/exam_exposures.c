/* SPDX-License-Identifier: Apache-2.0 */
/* exam_exposures.c - refuse projections of more than one exposure: by their headers (dicom/object/exposure.h), by tube voltage
 * and by dose. A projection has the dose of the others of its sweep, within what automatic exposure control makes of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dicom/object/exposure.h"
#include "node/tomo/exam_internal.h"

#define KVP_DIFFERENCE 1.0 /* kV: largest difference within an exposure */
/* Largest ratio between a projection and the median. Systems give all projections of a sweep one dose, or more of it to some by a
 * factor below 3; a scout has a tenth, a mammogram twenty times as much. */
#define DOSE_RATIO 4.0

/* Return the facts of each file; NULL: no memory. */
static struct exposure_facts *read_facts(const struct exam *exam)
{
	struct exposure_facts *facts = calloc(exam->n_files, sizeof(*facts));

	for (size_t i = 0; facts && i < exam->n_files; i++)
		exposure_read(dicom_root(exam->files[i]), &facts[i]);
	return facts;
}

void exam_name_exposures(const struct exam *exam, char *ret_text, size_t size)
{
	struct exposure_facts *facts = read_facts(exam);
	struct exposures found;

	ret_text[0] = '\0';
	if (facts && exposures_find(facts, exam->n_files, &found))
		exposures_text(&found, ret_text, size);
	free(facts);
}

static int check_headers(const struct exam *exam, struct err *err)
{
	struct exposure_facts *facts = read_facts(exam);
	struct exposures found;
	char text[500];
	bool proved;

	if (!facts)
		return err_set(err, ENOMEM, "no memory for %zu headers", exam->n_files);
	proved = exposures_prove(facts, exam->n_files, &found);
	free(facts);
	if (!proved)
		return 0;
	exposures_refusal(&found, text, sizeof(text));
	return err_set(err, EBADMSG, "%s", text);
}

static int check_kvp(const struct exam *exam, struct err *err)
{
	double least = INFINITY, most = -INFINITY, kvp;
	size_t low = 0, high = 0;

	for (size_t i = 0; i < exam->n_files; i++) {
		struct header h = {.root = dicom_root(exam->files[i]), .frame = -1};

		if (header_double(&h, TAG_KVP, 0, &kvp, NULL) <= 0)
			continue;
		low = kvp < least ? i : low;
		high = kvp > most ? i : high;
		least = fmin(least, kvp);
		most = fmax(most, kvp);
	}
	if (most - least > KVP_DIFFERENCE)
		return err_set(err, EBADMSG, "the projections are of more than one exposure: KVP %s is %g in %s and %g in %s",
			       tag_text(TAG_KVP), least, file_name(exam->paths[low]), most, file_name(exam->paths[high]));
	return 0;
}

int exam_check_exposures(const struct exam *exam, struct err *err)
{
	int rc = check_headers(exam, err);

	return rc < 0 ? rc : check_kvp(exam, err);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Read the exposure of all views, mAs. False: one has none. */
static bool read_doses(const struct exam *exam, uint32_t tag, double *ret_dose)
{
	for (int i = 0; i < exam->n_views; i++) {
		struct header h = exam_header(exam, i);

		ret_dose[i] = exam_read_charge(&h, tag);
		if (!(ret_dose[i] > 0))
			return false;
	}
	return true;
}

static int check_dose(const struct exam *exam, uint32_t tag, const double *dose, double *sorted, struct err *err)
{
	int n = exam->n_views;
	char name[128];

	for (int i = 0; i < n; i++)
		sorted[i] = dose[i];
	qsort(sorted, (size_t)n, sizeof(sorted[0]), by_value);
	for (int i = 0; i < n; i++) {
		double median = sorted[n / 2], ratio = fmax(dose[i] / median, median / dose[i]);
		struct header h = exam_header(exam, i);

		if (ratio > DOSE_RATIO && ratio <= EXPOSURE_RATIO_MAX) /* beyond it units are mixed: exam_intensity.c */
			return err_set(
				err, EBADMSG,
				"the projections are of more than one exposure: exposure %s is %.4g mAs in %s, the median is "
				"%.4g mAs",
				tag_text(header_find(&h, tag) ? tag : TAG_EXPOSURE_IN_MAS), dose[i],
				exam_view_name(exam, &exam->views[i], name, sizeof(name)), median);
	}
	return 0;
}

int exam_check_doses(const struct exam *exam, struct err *err)
{
	static const uint32_t tags[] = {TAG_EXPOSURE_IN_UAS, TAG_EXPOSURE}; /* the first one: or TAG_EXPOSURE_IN_MAS */
	size_t n = (size_t)exam->n_views;
	double *dose = calloc(2 * n, sizeof(*dose));
	int rc = 0;

	if (!dose)
		return err_set(err, ENOMEM, "no memory for %zu exposures", n);
	for (size_t t = 0; t < sizeof(tags) / sizeof(tags[0]); t++)
		if (read_doses(exam, tags[t], dose)) {
			rc = check_dose(exam, tags[t], dose, dose + n, err);
			break;
		}
	free(dose);
	return rc;
}
