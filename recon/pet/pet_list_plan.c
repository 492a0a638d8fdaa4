/* SPDX-License-Identifier: Apache-2.0 */
/* pet_list_plan.c - determine grid, batches and memory of list mode before anything is allocated.
 *
 * The device has the volumes, and beside them either the tables and bins of the sensitivity by sinograms, or the events: two
 * batches, those of all subsets if they fit, and the working memory for sorting. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/scan.h"
#include "recon/pet/pet_list_internal.h"

#define BATCH_MOST ((size_t)1 << 24)	 /* events: cells with several events each */
#define BATCH_RESIDENT ((size_t)1 << 20) /* smallest batch for which all events are kept on the device */
#define BATCH_LEAST ((size_t)1 << 12)
#define BATCH_LORS ((size_t)1 << 20) /* LORs are not sorted: larger batches are not faster */
#define PIECES 16		     /* of the views of a sinogram */

static size_t larger_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

static bool supports_algorithm(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->rule == RULE_EM && i->update != UPDATE_RAYS && !i->filtered;
}

static int check_list(const struct pet_list *l, struct err *err)
{
	if (!l->detectors || l->n_detectors < 2 || l->n_detectors > INT32_MAX)
		return err_set(err, EINVAL, "list mode: %zu detectors", l->n_detectors);
	for (size_t i = 0; i < 3 * l->n_detectors; i++)
		if (!(fabsf(l->detectors[i]) < 1e5f))
			return err_set(err, EINVAL, "list mode: coordinate %zu of detector %zu is %g mm", i % 3, i / 3,
				       (double)l->detectors[i]);
	if (l->tof.n < 0 || l->tof.n > MICHELOGRAM_TOF_MAX || (l->tof.n > 0 && !(l->tof.width > 0 && l->tof.sigma > 0)))
		return err_set(err, EINVAL, "list mode: %d TOF bins of %g mm, sigma %g mm", l->tof.n, l->tof.width, l->tof.sigma);
	if (!l->events.read || !l->events.rewind || !l->lors.read == !l->michelogram)
		return err_set(err, EINVAL, "list mode: needs a reader of events, and either LORs or a michelogram");
	if (l->n_events == 0)
		return err_set(err, EDOM, "list mode: no events");
	return 0;
}

/* Return the smallest distance of a detector from the axis; *ret_low, *ret_high: z of the outermost ones. */
static double detector_extent(const struct pet_list *l, double *ret_low, double *ret_high)
{
	double least = INFINITY;

	*ret_low = INFINITY;
	*ret_high = -INFINITY;
	for (size_t i = 0; i < l->n_detectors; i++) {
		const float *at = l->detectors + 3 * i;

		least = fmin(least, hypot(at[0], at[1]));
		*ret_low = fmin(*ret_low, at[2]);
		*ret_high = fmax(*ret_high, at[2]);
	}
	return least;
}

static int lay_out(const struct pet_protocol *p, const struct pet_list *l, struct pet_list_plan *plan, struct err *err)
{
	struct pet_extent c = {.slice = l->slice};
	double low, high;
	int r;

	c.ring = detector_extent(l, &low, &high);
	if (!(l->slice > 0))
		return err_set(err, EINVAL, "list mode: slices of %g mm", l->slice);
	c.radius = INFINITY;
	c.length = high - low + l->slice - 1e-3 * l->slice; /* the positions are rounded to float */
	r = pet_plan_grid(p, &c, &plan->grid, &plan->fov_radius, err);
	plan->grid.lo[2] += 0.5 * (low + high);
	return r;
}

struct events_spec pet_list_spec(const struct pet_protocol *p, const struct pet_list *list, const struct pet_list_plan *plan,
				 bool wide, const struct buf *detectors)
{
	return (struct events_spec){
		.grid = &plan->grid,
		.fov_radius = plan->fov_radius,
		.tof = wide ? pet_list_wide(&list->tof) : list->tof,
		.detectors = detectors,
		.batch = plan->batch,
		.deterministic = p->deterministic,
	};
}

int pet_list_parts(const struct pet_list *list)
{
	return list->michelogram->arc_corrected || list->michelogram->n_radial < 2 ? 1 : 2;
}

int pet_list_scan(const struct pet_list *list, double fov_radius, int first, struct scan **ret_scan, int **ret_plane,
		  struct err *err)
{
	struct michelogram m = *list->michelogram;

	m.tof = pet_list_wide(&list->tof);
	if (pet_list_parts(list) == 1)
		return scan_create_michelogram(&m, fov_radius, NULL, ret_scan, ret_plane, err);
	return scan_create_pairs(&m, fov_radius, first, ret_scan, ret_plane, err);
}

struct projection_spec pet_list_projection(const struct pet_protocol *p, const struct scan *scan, const struct grid *grid,
					   int first)
{
	int piece = (scan->n_views + PIECES - 1) / PIECES, left = scan->n_views - first;

	return (struct projection_spec){
		.model = PROJECTION_JOSEPH,
		.scan = scan,
		.first = first,
		.n_views = left < piece ? left : piece,
		.grid = grid,
		.deterministic = p->deterministic,
	};
}

/* Return the bytes of the sensitivity by sinograms: the largest tables of a piece, and its bins. */
static int sinogram_bytes(const struct pet_protocol *p, const struct pet_list *l, const struct pet_list_plan *plan,
			  struct device *dev, size_t *ret_bytes, struct err *err)
{
	struct scan *scan = NULL; /* of the first part: it has as many radial bins as the other, or one more */
	int *plane = NULL, r = pet_list_scan(l, plan->fov_radius, 0, &scan, &plane, err), step;

	if (r < 0)
		return r;
	*ret_bytes = 0;
	for (int first = 0; first < scan->n_views; first += step) {
		struct projection_spec spec = pet_list_projection(p, scan, &plan->grid, first);
		size_t bytes = dev->ops->projection_bytes(dev, &spec) +
			       dev->ops->scratch_bytes(dev, &spec) * (size_t)dev->threads +
			       (size_t)spec.n_views * scan_view_size(scan) * sizeof(float);

		*ret_bytes = larger_of(bytes, *ret_bytes);
		step = spec.n_views;
	}
	scan_free(scan);
	free(plane);
	return 0;
}

/* Compute the plan's bytes; sinograms: those of the sensitivity. */
static void count_bytes(const struct pet_protocol *p, const struct pet_list *l, struct device *dev, size_t sinograms,
			struct pet_list_plan *plan)
{
	struct buf detectors = {dev, NULL, 3 * l->n_detectors};
	struct events_spec spec = pet_list_spec(p, l, plan, false, &detectors);
	size_t voxels = grid_size(&plan->grid), matrix = dev->ops->events_bytes(dev, &spec);
	size_t volumes = 3 + (p->psf > 0 ? 1 + PSF_WORK_VOLUMES : 0);

	plan->bytes_volume = volumes * voxels * sizeof(float);
	plan->bytes_events = 3 * l->n_detectors * sizeof(float) + 2 * plan->batch * sizeof(struct event) +
			     (l->lors.read ? plan->batch * sizeof(float) : 0) +
			     (plan->resident ? l->n_events * sizeof(struct event) : 0);
	plan->bytes_projection = larger_of(matrix, sinograms);
	plan->bytes_total = plan->bytes_volume + plan->bytes_events + plan->bytes_projection;
	plan->bytes_host = PET_LIST_CHUNK * sizeof(struct event) + 2 * plan->batch * sizeof(struct event) +
			   (l->lors.read ? plan->batch * sizeof(float) : 0) + voxels * sizeof(float);
}

/* Find the largest batch with which the plan fits, if possible with all events on the device. */
static int fit_batch(const struct pet_protocol *p, const struct pet_list *l, struct device *dev, size_t sinograms, size_t limit,
		     struct pet_list_plan *plan, struct err *err)
{
	struct pet_list_plan whole = *plan;

	for (int resident = 1; resident >= 0; resident--) {
		size_t least = resident ? BATCH_RESIDENT : BATCH_LEAST;

		plan->resident = resident;
		plan->batch = whole.batch;
		do {
			count_bytes(p, l, dev, sinograms, plan);
			if (limit == 0 || plan->bytes_total <= limit)
				return 0;
			plan->batch /= 2;
		} while (plan->batch >= least);
	}
	plan->batch = whole.batch < BATCH_LEAST ? whole.batch : BATCH_LEAST;
	count_bytes(p, l, dev, sinograms, plan);
	count_bytes(p, l, dev, sinograms, &whole);
	return plan_refuse_bytes(
		(struct plan_bytes){whole.bytes_total, whole.bytes_volume, whole.bytes_events, whole.bytes_projection},
		(struct plan_bytes){plan->bytes_total, plan->bytes_volume, plan->bytes_events, plan->bytes_projection},
		"a batch of 4096 events", dev, limit, err);
}

int pet_list_plan(const struct pet_protocol *p, const struct pet_list *list, struct device *dev, struct pet_list_plan *ret_plan,
		  struct err *err)
{
	struct pet_list_plan plan = {.iterations = p->iterations, .subsets = 1, .resident = true};
	size_t sinograms = 0, most;
	int r = check_list(list, err);

	if (r == 0)
		r = pet_check_protocol(p, supports_algorithm, PET_BY_EVENTS, list->n_events, err);
	if (r == 0)
		r = lay_out(p, list, &plan, err);
	if (r == 0 && list->michelogram)
		r = sinogram_bytes(p, list, &plan, dev, &sinograms, err);
	if (r < 0)
		return r;
	if (algorithm_info(p->algorithm)->update == UPDATE_SUBSETS)
		plan.subsets = p->subsets;
	most = list->n_events / (size_t)plan.subsets + 1;
	if (list->lors.read && most < BATCH_LORS)
		most = list->n_lors > 0 && list->n_lors < BATCH_LORS ? larger_of(list->n_lors, most) : BATCH_LORS;
	plan.batch = most < BATCH_MOST ? most : BATCH_MOST;
	r = fit_batch(p, list, dev, sinograms, plan_limit(dev, p->memory_limit), &plan, err);
	if (r == 0)
		*ret_plan = plan;
	return r;
}
