/* SPDX-License-Identifier: Apache-2.0 */
#include "node/sinogram/factor_range.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/order.h"

#define SAMPLE 65536

#define AIR_MOST 1.5F /* a patient who fills the field of view has larger factors at its edge, too, but not so large */

struct plane_range {
	float least, most;
	size_t n, unused, sampled;
};

struct factor_range {
	enum sinogram_role role;
	size_t planes, per_plane; /* values of each plane in the sample */
	struct plane_range *plane;
	float *sample; /* [planes][per_plane] */
};

bool factor_range_is_factor(enum sinogram_role role)
{
	return role == SINOGRAM_MULTIPLICATIVE || role == SINOGRAM_ATTENUATION || role == SINOGRAM_NORMALISATION;
}

int factor_range_create(enum sinogram_role role, size_t planes, struct factor_range **ret, struct err *err)
{
	struct factor_range *r = calloc(1, sizeof(*r));

	*ret = r;
	if (r) {
		r->role = role;
		r->planes = planes;
		r->per_plane = planes < SAMPLE ? SAMPLE / (planes + (planes == 0)) : 1;
		r->plane = calloc(planes + 1, sizeof(*r->plane));
		r->sample = malloc((planes + 1) * r->per_plane * sizeof(*r->sample));
	}
	if (r && r->plane && r->sample)
		return 0;
	factor_range_free(r);
	*ret = NULL;
	return err_set(err, ENOMEM, "no memory for the range of factors in %zu planes", planes);
}

void factor_range_free(struct factor_range *r)
{
	if (!r)
		return;
	free(r->plane);
	free(r->sample);
	free(r);
}

void factor_range_add(struct factor_range *r, size_t plane, const float *values, size_t n)
{
	struct plane_range p = {.least = INFINITY, .n = n};
	size_t most;

	for (size_t i = 0; i < n; i++) {
		float v = values[i];

		if (!(v > 0 && isfinite(v))) {
			p.unused++;
			continue;
		}
		p.least = v < p.least ? v : p.least;
		p.most = v > p.most ? v : p.most;
	}
	most = n < r->per_plane ? n : r->per_plane;
	for (size_t k = 0; k < most; k++) {
		float v = values[k * n / most];

		if (v > 0 && isfinite(v))
			r->sample[plane * r->per_plane + p.sampled++] = v;
	}
	r->plane[plane] = p;
}

void factor_range_text(struct factor_range *r, char ret[FACTOR_RANGE_TEXT])
{
	static const char *const taken[SINOGRAM_ROLES + 1] = {
		[SINOGRAM_MULTIPLICATIVE] =
			"the expected counts are multiplied by its values (the fraction of the events that is counted)",
		[SINOGRAM_ATTENUATION] =
			"the expected counts are divided by its values (1: no attenuation; above 1: attenuation)",
		[SINOGRAM_NORMALISATION] = "the expected counts are divided by its values (1 / efficiency)"};
	struct plane_range all = {.least = INFINITY};
	char unused[80] = "";

	for (size_t p = 0; p < r->planes; p++) {
		const struct plane_range *own = &r->plane[p];

		for (size_t i = 0; i < own->sampled; i++)
			r->sample[all.sampled++] = r->sample[p * r->per_plane + i];
		all.least = fminf(all.least, own->least);
		all.most = fmaxf(all.most, own->most);
		all.n += own->n;
		all.unused += own->unused;
	}
	if (all.unused > 0)
		snprintf(unused, sizeof(unused), "; %zu of %zu bins are not used (%s)", all.unused, all.n,
			 r->role == SINOGRAM_MULTIPLICATIVE ? "0" : "infinite");
	if (all.sampled == 0) {
		snprintf(ret, FACTOR_RANGE_TEXT, "%s: %s%s.", sinogram_role_name(r->role), taken[r->role], unused);
		return;
	}
	qsort(r->sample, all.sampled, sizeof(*r->sample), order_floats);
	snprintf(ret, FACTOR_RANGE_TEXT, "%s: %s: %.3g to %.3g, median %.3g%s.%s", sinogram_role_name(r->role), taken[r->role],
		 (double)all.least, (double)all.most, (double)r->sample[all.sampled / 2], unused,
		 r->role == SINOGRAM_ATTENUATION && all.least > AIR_MOST
			 ? " None is near 1, the factor of a ray through air alone: are they percent?"
			 : "");
}
