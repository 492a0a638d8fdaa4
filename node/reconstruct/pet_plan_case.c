/* SPDX-License-Identifier: Apache-2.0 */
/* pet_plan_case.c - plan the grid and the memory of one PET case, and reserve it. */
#include <math.h>
#include <stdio.h>

#include "node/reconstruct/pet_work.h"
#include "node/sinogram/pet_source.h"

struct pet_protocol *pet_work_own_protocol(struct pet_work *w)
{
	if (w->base.protocol != &w->protocol)
		w->protocol = *w->base.protocol;
	w->base.protocol = &w->protocol;
	return &w->protocol.pet;
}

/* Return the bytes in host memory beside the session: one role, and the volumes of all frames. */
static size_t bytes_beside_session(const struct pet_work *w)
{
	size_t frames = w->n_frames > 1 ? (size_t)w->n_frames * grid_size(&w->plan.grid) * sizeof(float) : 0;

	return w->bytes_data + w->corrections.bytes_host + w->corrections.bytes_read + case_steps_bytes(&w->base, &w->plan.grid) +
	       (w->s->images.of == PET_BEDS ? case_beds_bytes(&w->beds) : frames);
}

void pet_work_keep_matrix(struct pet_work *w)
{
	if (w->base.protocol->pet.matrix == 0)
		pet_work_own_protocol(w)->matrix = w->plan.grid.n[0];
}

/* If the protocol leaves the matrix to the data, make voxels that would be much smaller than radial bins as large as these. */
static int fit_voxels(struct pet_work *w, struct err *err)
{
	const struct pet_protocol *of = &w->base.protocol->pet;
	int usual = w->plan.grid.n[0], matrix;
	double bin;

	matrix = of->matrix == 0 && of->voxel == 0 ? pet_result_matrix(w->s, of, &w->plan, &bin) : 0;
	if (matrix == 0) {
		pet_work_keep_matrix(w);
		return 0;
	}
	pet_work_own_protocol(w)->matrix = matrix;
	snprintf(w->fitted, sizeof(w->fitted),
		 "The matrix was chosen by the data: %d, for voxels like the radial bins (%.3g mm); matrix=%d in the "
		 "protocol makes smaller ones.",
		 matrix, bin, usual);
	return pet_plan_volume(&w->base.protocol->pet, &w->m, &w->plan, err);
}

/* The grid first: the memory is that of the matrix that was chosen, and of its volumes. */
int pet_work_plan(struct pet_work *w, struct err *err)
{
	struct pet_protocol p;
	int rc = pet_plan_volume(&w->base.protocol->pet, &w->m, &w->plan, err);

	if (rc == 0)
		rc = fit_voxels(w, err);
	if (rc == 0)
		rc = case_beds_plan(&w->beds, w->s, &w->m, &w->plan.grid, err);
	if (rc < 0)
		return rc;
	p = w->base.protocol->pet;
	p.host_beside = bytes_beside_session(w);
	return pet_plan(&p, &w->m, w->factors, w->background, w->base.dev, &w->plan, err);
}

/* Return the bytes of what can be kept; 0: nothing. Single events, and the data of frames and gates, are read anew. */
static size_t bytes_kept(const struct pet_work *w)
{
	if (!(w->base.keep || w->base.again) || w->s->source->list_mode || w->s->images.n > 0)
		return 0;
	return case_planes_bytes_kept(w->s) +
	       (w->corrections.attenuation.ct ? ct_series_bytes(w->corrections.attenuation.ct) : 0);
}

size_t pet_work_bytes_device(const struct pet_work *w)
{
	size_t session = w->plan.bytes.total + w->plan.bytes.threads;

	return session > w->corrections.bytes_device ? session : w->corrections.bytes_device;
}

int pet_work_reserve(struct pet_work *w, struct err *err)
{
	struct reconstruct_work *base = &w->base;
	struct grid all = w->plan.grid;
	int rc;

	all.n[2] = w->s->images.of == PET_BEDS ? w->beds.join.grid.n[2] : all.n[2] * w->n_frames;
	rc = reconstruct_check_size(base, &all, NULL, err); /* a matrix that follows the data is smaller than the usual one */
	if (rc == 0)
		rc = reconstruct_reserve_memory(base, pet_work_bytes_device(w), w->plan.bytes.host + bytes_beside_session(w),
						bytes_kept(w), err);
	return rc;
}
