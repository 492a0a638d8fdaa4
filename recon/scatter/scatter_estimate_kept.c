/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_estimate_kept.c - store an estimate as bytes, and make it from them: report, scales of the planes, simulated values.
 * The tables of the interpolation are computed again, which takes far less time and much more memory. The bytes are for this
 * process only: their layout is that of its structures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recon/scatter/scatter_estimate.h"

struct head {
	struct scatter_estimate_report report;
	size_t planes, values;
};

size_t scatter_estimate_packed(size_t planes, size_t values)
{
	return sizeof(struct head) + planes * sizeof(float) + values;
}

int scatter_estimate_pack(const struct michelogram *m, const struct scatter_estimate *e,
			  const struct scatter_estimate_report *report, void **ret, size_t *ret_bytes, struct err *err)
{
	const float *values;
	size_t n = single_scatter_values(e->simulated, &values), planes = michelogram_planes(m);
	size_t bytes = scatter_estimate_packed(planes, n * sizeof(float));
	struct head *head = calloc(1, bytes);
	float *to = (float *)(head + 1);

	if (!head)
		return err_set(err, ENOMEM, "scatter: no memory to keep %zu values", n);
	*head = (struct head){*report, planes, n};
	memcpy(to, e->scale, planes * sizeof(float));
	memcpy(to + planes, values, n * sizeof(float));
	*ret = head;
	*ret_bytes = bytes;
	return 0;
}

int scatter_estimate_unpack(const struct michelogram *m, const struct scatter_estimate_conf *conf, struct device *dev,
			    const void *bytes, size_t n, struct scatter_estimate *ret, struct scatter_estimate_report *ret_report,
			    struct err *err)
{
	const struct head *head = bytes;
	struct scatter_estimate made = {0};
	struct scatter_estimate_plan plan;
	const float *from = (const float *)(head + 1);
	int r;

	if (n < sizeof(*head) || head->planes != michelogram_planes(m) ||
	    n != scatter_estimate_packed(head->planes, head->values * sizeof(float)))
		return err_set(err, EINVAL, "scatter: %zu bytes are no estimate of %zu planes", n, michelogram_planes(m));
	r = scatter_estimate_plan(m, conf, dev, &plan, err);
	made.scale = malloc(head->planes * sizeof(float));
	if (r == 0 && !made.scale)
		r = err_set(err, ENOMEM, "scatter: out of memory");
	r = r < 0 ? r : single_scatter_open(m, &plan.simulation, dev, &made.simulated, err);
	r = r < 0 ? r : single_scatter_restore(made.simulated, from + head->planes, head->values, err);
	if (r < 0) {
		scatter_estimate_clear(&made);
		return r;
	}
	memcpy(made.scale, from, head->planes * sizeof(float));
	*ret = made;
	*ret_report = head->report;
	ret_report->seconds_image = ret_report->seconds_simulate = ret_report->seconds_scale = 0;
	ret_report->simulation.seconds = 0;
	return 0;
}
