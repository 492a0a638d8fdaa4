/* SPDX-License-Identifier: Apache-2.0 */
/* measure_series.c - see node/tools/measure_series.h. */
#include "node/tools/measure_series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/format/label_volume.h"
#include "node/tools/measure_series_internal.h"

static json_t *object_json(const struct measured *m)
{
	const struct image_series *s = m->s;

	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:[i, i, i], s:[f, f, f], s:s, s:s?, s:b}", "modality", s->ct ? "CT" : "PET",
			 "series", s->series, "frame_of_reference", s->frame_of_reference, "images", s->n_images, "image",
			 m->image + 1, "size", s->n[0], s->n[1], s->n[2], "spacing_mm", s->spacing[0], s->spacing[1],
			 s->spacing[2], "units", s->units, "patient_position", s->position[0] ? s->position : NULL,
			 "patient_position_assumed", s->position_assumed);
}

static json_t *suv_json(const struct measured *m)
{
	if (m->s->ct || !m->suv)
		return json_null();
	return isfinite(m->suv->factor) ? json_pack("{s:f, s:s}", "factor", m->suv->factor, "unit", "g/ml")
					: json_pack("{s:s}", "left_out", m->suv->reason);
}

static int measure_request(const struct measured *m, const struct series_request *q, json_t *regions, struct err *err)
{
	struct region_sum sum = {0};
	int slice = 0, rc = series_slice_at(m->s, q->at, q->name, &slice, err);
	json_t *one;

	if (rc == 0)
		rc = q->what == SERIES_CIRCLE ? series_circle(m, q->at, slice, q->diameter, q->name, &sum, err)
					      : series_sphere(m, q->at, q->diameter, q->name, &sum, err);
	if (rc < 0)
		return rc;
	if (sum.n == 0)
		return err_set(err, EBADMSG, "%s of %g mm has no pixel", q->name, q->diameter);
	one = series_region_json(m, q->name, q->what == SERIES_CIRCLE ? "circle" : "sphere", &sum);
	json_object_set_new(one, "at_mm", json_pack("[f, f, f]", q->at[0], q->at[1], q->at[2]));
	json_object_set_new(one, "diameter_mm", json_real(q->diameter));
	if (q->what == SERIES_CIRCLE)
		json_object_set_new(one, "slice", json_integer(slice + 1));
	json_array_append_new(regions, one);
	return 0;
}

/* Add a region for each label: the voxels of the series whose centre is in a voxel of the mask with that label. */
static int measure_mask(const struct measured *m, const char *path, json_t *regions, struct err *err)
{
	const struct image_series *s = m->s;
	struct region_sum *sums = calloc(LABEL_MAX + 1, sizeof(*sums));
	struct label_volume v = {0};
	size_t found = 0, in_mask = 0;
	int rc = sums ? label_volume_open(path, &v, err) : err_set(err, ENOMEM, "no memory for the labels of a mask");

	for (int k = 0; rc == 0 && k < s->n[2]; k++) {
		const float *values = NULL;

		rc = image_series_slice(s, m->image, k, &values, err);
		for (int j = 0; rc == 0 && j < s->n[1]; j++)
			for (int i = 0; i < s->n[0]; i++) {
				double p[3];
				int label;

				series_point(s, i, j, k, p);
				label = label_volume_at(&v, p);
				if (label > 0)
					region_add(&sums[label], 1, (double)values[(size_t)j * (size_t)s->n[0] + (size_t)i]);
			}
	}
	for (size_t i = 0; rc == 0 && i < (size_t)v.n[0] * (size_t)v.n[1] * (size_t)v.n[2]; i++)
		in_mask += v.labels[i] > 0;
	for (int label = 1; rc == 0 && label <= LABEL_MAX; label++) {
		char name[SERIES_NAME_SIZE];

		if (sums[label].n == 0)
			continue;
		found++;
		snprintf(name, sizeof(name), "label %d", label);
		json_array_append_new(regions, series_region_json(m, name, "label", &sums[label]));
	}
	if (rc == 0 && found == 0)
		rc = err_set(err, EBADMSG, "no voxel of the series is in one of the %zu voxels of the mask that have a label",
			     in_mask);
	label_volume_clear(&v);
	free(sums);
	return rc;
}

/* Append uniformity and noise of a cylinder. One of them may be impossible; if `all` is not needed, the reason is in its place.
 */
static int measure_uniform(const struct measured *m, const struct series_request *q, int side, json_t *result, bool optional,
			   struct err *err)
{
	json_t *uniformity = NULL, *noise = NULL;
	int rc = series_uniform(m, q, &uniformity, err);

	if (rc < 0 && optional && err->code == EBADMSG) {
		uniformity = json_pack("{s:s, s:s}", "name", q->name, "left_out", err->msg);
		rc = 0;
	}
	if (rc < 0)
		return rc;
	json_array_append_new(json_object_get(result, "uniformity"), uniformity);
	rc = series_noise(m, q, side, &noise, err);
	if (rc < 0 && optional && err->code == EBADMSG) {
		noise = json_pack("{s:s, s:s}", "name", q->name, "left_out", err->msg);
		rc = 0;
	}
	if (rc == 0)
		json_array_append_new(json_object_get(result, "nps"), noise);
	return rc;
}

static int measure_truth(const struct measured *m, const struct series_requests *requests, json_t *result, struct err *err)
{
	struct series_truth t = {0};
	struct series_request q;
	json_t *nema = NULL;
	int rc = series_truth_read(requests->truth, m->s, &t, err);

	if (rc == 0)
		rc = series_truth_regions(m, &t, json_object_get(result, "regions"), err);
	if (rc == 0)
		rc = series_nema(m, &t, &nema, err);
	if (nema)
		json_object_set_new(result, "nema", nema);
	if (rc == 0 && series_truth_uniform(m, &t, &q))
		rc = measure_uniform(m, &q, requests->nps_side, result, true, err);
	series_truth_clear(&t);
	return rc < 0 ? err_prefix(err, "truth.json") : 0;
}

int measure_series_run(const struct image_series *s, const struct series_requests *requests, const struct series_suv *suv,
		       json_t **ret_result, struct err *err)
{
	struct measured m = {.s = s, .suv = suv, .image = requests->image, .activity = requests->activity};
	json_t *result;
	int rc;

	if (requests->image < 0 || requests->image >= s->n_images)
		return err_set(err, EBADMSG, "image %d; the series has %d", requests->image + 1, s->n_images);
	rc = series_check_values(&m, err);
	if (rc < 0)
		return rc;
	result = json_pack("{s:b, s:o, s:o, s:[], s:n, s:[], s:[]}", "ok", 1, "object", object_json(&m), "suv", suv_json(&m),
			   "regions", "nema", "uniformity", "nps");
	if (!result)
		return err_set(err, ENOMEM, "no memory for the result");
	if (requests->truth)
		rc = measure_truth(&m, requests, result, err);
	for (size_t i = 0; rc == 0 && i < requests->n; i++) {
		const struct series_request *q = &requests->request[i];

		rc = q->what == SERIES_UNIFORM ? measure_uniform(&m, q, requests->nps_side, result, false, err)
					       : measure_request(&m, q, json_object_get(result, "regions"), err);
	}
	if (rc == 0 && requests->mask)
		rc = measure_mask(&m, requests->mask, json_object_get(result, "regions"), err);
	if (rc < 0)
		json_decref(result);
	else
		*ret_result = result;
	return rc;
}
