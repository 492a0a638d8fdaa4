/* SPDX-License-Identifier: Apache-2.0 */
/* pet_em_parts.c - the parts of the subsets: operators, data, sensitivity.
 *
 * Resident: a part is a subset, its data are in data[0], its operator was created when the session was opened. Streamed: a part
 * is a group of angles; while one is processed in one of the two slots, the data of the next are transferred into the other.
 *
 * With time of flight the device has y and b / m only. The factors stay in host memory: the sensitivity A'm is computed from them
 * a few angles at a time. If all TOF bins of a ray have the same m, the sum of their backprojections is that of one bin as wide
 * as all of them (kernels/tof.h). */
#include <errno.h>
#include <stdlib.h>

#include "recon/core/projector.h"
#include "recon/pet/pet_internal.h"

static size_t part_bins(const struct pet_session *s, int i)
{
	return (size_t)(s->part_first[i + 1] - s->part_first[i]) * s->view_bins;
}

/* Create the operator for the views [first, end) of a scan. */
static int make_op(struct pet_session *s, const struct scan *scan, int first, int end, struct linop **ret_op, struct err *err)
{
	struct projection_spec spec = pet_layout_spec(&s->layout, s->p, &s->plan->grid, first, end - first);
	struct linop *op = NULL;
	int r;

	spec.scan = scan;
	r = projector_create(s->dev, &spec, &op, err);
	if (r == 0 && s->p->psf > 0)
		r = psf_create(op, &s->plan->grid, s->p->psf, s->psf_work, &op, err);
	if (r < 0)
		linop_free(op);
	else
		*ret_op = op;
	return r;
}

static int make_part_op(struct pet_session *s, int i, struct err *err)
{
	return make_op(s, s->layout.scan, s->part_first[i], s->part_first[i + 1], &s->ops[i], err);
}

/* Set the buffers of a part to its data in data[slot]. */
static void set_part_buffers(struct pet_session *s, int i, int slot, size_t at)
{
	struct buf *to[PET_ROLES] = {NULL, &s->parts[i].y, &s->parts[i].mult, &s->parts[i].add};

	for (int role = PET_DATA; role < PET_ROLES; role++)
		if (s->loads[role])
			*to[role] = buf_part(&s->data[slot][role], at, part_bins(s, i));
}

static int alloc_data(struct pet_session *s, size_t largest, struct err *err)
{
	size_t bins = pet_is_streamed(s) ? largest : s->view_bins * (size_t)s->layout.scan->n_views;
	int slots = pet_is_streamed(s) ? 2 : 1;

	for (int slot = 0; slot < slots; slot++)
		for (int role = PET_DATA; role < PET_ROLES; role++)
			if (s->loads[role])
				session_alloc(&s->memory, bins, &s->data[slot][role], err);
	return iterate_work_alloc_kept(&s->memory, grid_size(&s->plan->grid), largest, &s->work, err);
}

int pet_parts_open(struct pet_session *s, struct err *err)
{
	size_t n_views = (size_t)s->layout.scan->n_views, n_subsets = (size_t)s->layout.views.n_subsets, largest = 0;
	struct session_memory *m = &s->memory;
	int r;

	s->current_part = -1;
	if (session_array(m, n_views + 1, sizeof(*s->part_first), (void **)&s->part_first, err) < 0)
		return m->rc;
	s->n_parts = pet_layout_groups(&s->layout, s->plan->group_views, s->part_first);
	session_array(m, (size_t)s->n_parts, sizeof(*s->parts), (void **)&s->parts, err);
	session_array(m, (size_t)s->n_parts, sizeof(struct linop *), (void **)&s->ops, err);
	if (session_array(m, n_subsets, sizeof(*s->subsets), (void **)&s->subsets, err) < 0)
		return m->rc;
	for (int i = 0; i < s->n_parts; i++)
		largest = part_bins(s, i) > largest ? part_bins(s, i) : largest;
	r = alloc_data(s, largest, err);
	for (int i = 0; r == 0 && i < s->n_parts; i++) {
		if (s->plan->keep_tables && (r = make_part_op(s, i, err)) == 0)
			s->parts[i].op = s->ops[i];
		if (!pet_is_streamed(s))
			set_part_buffers(s, i, 0, (size_t)s->part_first[i] * s->view_bins);
	}
	for (int k = 0, i = 0; r == 0 && k < s->layout.views.n_subsets; k++) {
		s->subsets[k] = (struct iterate_subset){.part = &s->parts[i], .den = s->den[k]};
		for (; i < s->n_parts && s->part_first[i] < s->layout.views.first[k + 1]; i++)
			s->subsets[k].n_parts++;
	}
	return r;
}

void pet_parts_release(struct pet_session *s)
{
	for (int i = 0; s->ops && i < s->n_parts; i++)
		linop_free(s->ops[i]);
}

/* Start the transfer of a part's data into a slot, after the work queued so far, which may still use the slot. */
static int begin_transfer(struct pet_session *s, int i, int slot, struct err *err)
{
	size_t at = (size_t)s->part_first[i] * s->view_bins;
	int r = s->dev->ops->order(s->dev, QUEUE_WORK, QUEUE_UP, err);

	for (int role = PET_DATA; r == 0 && role < PET_ROLES; role++) {
		struct buf to = buf_part(&s->data[slot][role], 0, part_bins(s, i));

		if (s->loads[role])
			r = s->dev->ops->upload_begin(&to, s->host[role] + at, err);
	}
	if (r == 0) {
		s->current_part = i;
		s->slot = slot;
	}
	return r;
}

/* Load the sensitivity image of the subset whose first part this is. */
static int load_sensitivity(struct pet_session *s, int i, struct err *err)
{
	for (int k = 0; k < s->layout.views.n_subsets; k++)
		if (s->layout.views.first[k] == s->part_first[i])
			return s->dev->ops->upload(&s->den[k], pet_sensitivity_images(s->sensitivity) + (size_t)k * s->x.n, err);
	return 0;
}

int pet_parts_load(void *session, struct iterate_part *part, struct err *err)
{
	struct pet_session *s = session;
	int i = (int)(part - s->parts), next = (i + 1) % s->n_parts, r = 0;

	if (!pet_is_streamed(s))
		return 0;
	if (s->current_part != i)
		r = begin_transfer(s, i, !s->slot, err);
	if (r == 0)
		r = s->dev->ops->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	if (r < 0)
		return r;
	set_part_buffers(s, i, s->slot, 0);
	if (!s->plan->keep_tables && !s->ops[i]) {
		r = s->dev->ops->wait(s->dev, QUEUE_WORK, err); /* until no work uses the operator that is freed next */
		for (int k = 0; k < s->n_parts; k++)
			s->ops[k] = linop_free(s->ops[k]);
		if (r == 0)
			r = make_part_op(s, i, err);
	}
	part->op = s->ops[i];
	if (r == 0 && s->den_ready && s->layout.views.n_subsets > 1)
		r = load_sensitivity(s, i, err);
	if (r == 0 && next != i)
		r = begin_transfer(s, next, !s->slot, err); /* its slot is free when the work queued so far is done */
	return r;
}

/* Compute den = A'm of subset k; without factors, m = 1 is written to the buffer of line integrals first. */
static int back_subset(struct pet_session *s, int k, struct err *err)
{
	struct iterate_subset *subset = &s->subsets[k];
	int r = 0;

	for (size_t i = 0; r == 0 && i < subset->n_parts; i++) {
		struct iterate_part *part = &subset->part[i];
		struct buf ones;

		r = pet_parts_load(s, part, err);
		if (r < 0)
			break;
		ones = buf_part(&s->work.p, 0, part->y.n);
		if (part->mult.mem)
			ones = part->mult;
		else
			r = s->dev->ops->fill(&ones, 1, err);
		if (r == 0)
			r = i ? part->op->adjoint_add(part->op, &ones, &subset->den, err)
			      : part->op->adjoint(part->op, &ones, &subset->den, err);
	}
	return r;
}

/* Compute A'm (add: den += A'm) of the views [first, end), with factors from host memory. */
static int back_views(struct pet_session *s, int first, int end, bool add, struct buf *den, struct err *err)
{
	const struct scan *scan = pet_layout_sensitivity_scan(&s->layout, s->factors);
	size_t view = scan_view_size(scan);
	struct buf m = buf_part(&s->work.p, 0, (size_t)(end - first) * view);
	struct linop *op = NULL;
	int r = s->has[PET_FACTORS] ? s->dev->ops->upload(&m, s->host[PET_FACTORS] + (size_t)first * view, err)
				    : s->dev->ops->fill(&m, 1, err);

	if (r == 0)
		r = make_op(s, scan, first, end, &op, err);
	if (r == 0)
		r = add ? op->adjoint_add(op, &m, den, err) : op->adjoint(op, &m, den, err);
	if (r == 0)
		r = s->dev->ops->wait(s->dev, QUEUE_WORK, err); /* until no work uses the operator */
	linop_free(op);
	return r;
}

/* As back_subset(), with time of flight. */
static int back_subset_tof(struct pet_session *s, int k, struct err *err)
{
	int begin = s->layout.views.first[k], r = 0;

	for (int i = 0; i < s->n_parts; i++) {
		int first = s->part_first[i], end = s->part_first[i + 1], piece = pet_layout_piece(end - first);

		if (first < begin || first >= s->layout.views.first[k + 1])
			continue;
		for (; r == 0 && first < end; first += piece)
			r = back_views(s, first, first + piece < end ? first + piece : end, first > begin, &s->den[k], err);
	}
	return r;
}

int pet_parts_sensitivity(struct pet_session *s, bool *ret_cached, struct err *err)
{
	size_t voxels = s->x.n, floats = voxels * (size_t)s->layout.views.n_subsets;
	struct pet_key key = pet_key_of(s);
	bool cached;
	int r = 0;

	s->sensitivity = pet_cache_find(s->cache, &key, floats);
	cached = s->sensitivity;
	if (!cached && !(s->sensitivity = pet_sensitivity_new(&key, floats)))
		return err_set(err, ENOMEM, "reconstruction: no memory for %d sensitivity images", s->layout.views.n_subsets);
	for (int k = 0; r == 0 && k < s->layout.views.n_subsets; k++) {
		float *image = pet_sensitivity_images(s->sensitivity) + (size_t)k * voxels;

		if (cached)
			r = s->dev->ops->upload(&s->den[k], image, err);
		else if ((r = pet_is_tof(s) ? back_subset_tof(s, k, err) : back_subset(s, k, err)) == 0)
			r = s->dev->ops->download(&s->den[k], image, err);
		if (r == 0)
			r = k ? s->dev->ops->axpy(1, &s->den[k], &s->work.num, err)
			      : s->dev->ops->copy(&s->den[k], &s->work.num, err);
	}
	if (r < 0)
		return r;
	if (!cached)
		pet_cache_add(s->cache, s->sensitivity);
	s->den_ready = true;
	*ret_cached = cached;
	return 0;
}
