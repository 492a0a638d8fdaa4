/* SPDX-License-Identifier: Apache-2.0 */
/* pet_list_plan.c - determine grid, batches and memory of list mode before anything is allocated.
 *
 * The device has the volumes, and beside them either the tables and bins of the sensitivity by sinograms, or the events: two
 * batches, those of all subsets if they fit, and the working memory for sorting. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/order.h"
#include "recon/core/scan.h"
#include "recon/pet/pet_list_internal.h"

#define BATCH_MOST ((size_t)1 << 24)	 /* events: cells with several events each */
#define BATCH_RESIDENT ((size_t)1 << 20) /* smallest batch for which all events are kept on the device */
#define BATCH_LEAST ((size_t)1 << 12)
#define BATCH_LORS ((size_t)1 << 20) /* LORs are not sorted: larger batches are not faster */
#define PIECES 16		     /* of the views of a sinogram */

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

static int lay_out(const struct pet_protocol *p, const struct pet_list *l, struct pet_plan *plan, struct err *err)
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

struct events_spec pet_list_spec(const struct pet_protocol *p, const struct pet_list *list, const struct pet_plan *plan,
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
static int sinogram_bytes(const struct pet_protocol *p, const struct pet_list *l, const struct pet_plan *plan, struct device *dev,
			  size_t *ret_bytes, struct err *err)
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

		*ret_bytes = order_larger_size(bytes, *ret_bytes);
		step = spec.n_views;
	}
	scan_free(scan);
	free(plane);
	return 0;
}

/* What a plan is counted from; borrowed. */
struct counting {
	const struct pet_protocol *p;
	const struct pet_list *l;
	struct device *dev;
	size_t sinograms, most; /* bytes of the sensitivity by sinograms; events of the largest batch */
	int resident, streamed; /* numbers of batches, each half of the one before */
	struct pet_plan *plan;
};

/* Return how often the largest batch can be halved down to `least`. */
static int batches_to(size_t most, size_t least)
{
	int n = 1;

	while (most >> n >= least)
		n++;
	return n;
}

/* Smaller and smaller batches: first with all events on the device, then without. */
static int count_choice(void *ctx, int choice, struct err *err)
{
	const struct counting *c = ctx;
	const struct pet_list *l = c->l;
	struct pet_plan *plan = c->plan;
	struct buf detectors = {c->dev, NULL, 3 * l->n_detectors};
	size_t voxels = grid_size(&plan->grid), weights, batches;
	struct events_spec spec;

	(void)err;
	plan->resident = choice < c->resident;
	plan->batch = c->most >> (plan->resident ? choice : choice - c->resident);
	spec = pet_list_spec(c->p, l, plan, false, &detectors);
	weights = l->lors.read ? plan->batch * sizeof(float) : 0;
	batches = 2 * plan->batch * sizeof(struct event);
	plan->bytes = (struct plan_bytes){
		.volumes = (3 + (c->p->psf > 0 ? 1 + PSF_WORK_VOLUMES : 0)) * voxels * sizeof(float),
		.data = 3 * l->n_detectors * sizeof(float) + batches + weights +
			(plan->resident ? l->n_events * sizeof(struct event) : 0),
		.tables = order_larger_size(c->dev->ops->events_bytes(c->dev, &spec), c->sinograms),
		.host = PET_LIST_CHUNK * sizeof(struct event) + batches + weights + voxels * sizeof(float),
	};
	plan_sum(&plan->bytes, c->dev);
	return 0;
}

int pet_list_plan(const struct pet_protocol *p, const struct pet_list *list, struct device *dev, struct pet_plan *ret_plan,
		  struct err *err)
{
	struct pet_plan plan = {.iterations = p->iterations, .subsets = 1, .resident = true};
	struct counting c = {.p = p, .l = list, .dev = dev, .plan = &plan};
	struct pet_protocol own = *p;
	size_t most;
	int r = check_list(list, err);

	own.projector = PROJECTION_PATHS; /* events have no other */
	if (r == 0)
		r = pet_check_protocol(&own, supports_algorithm, "events", list->n_events, err);
	if (r == 0)
		r = lay_out(p, list, &plan, err);
	if (r == 0 && list->michelogram)
		r = sinogram_bytes(p, list, &plan, dev, &c.sinograms, err);
	if (r < 0)
		return r;
	if (algorithm_info(p->algorithm)->update == UPDATE_SUBSETS)
		plan.subsets = p->subsets;
	most = list->n_events / (size_t)plan.subsets + 1;
	if (list->lors.read && most < BATCH_LORS)
		most = list->n_lors > 0 && list->n_lors < BATCH_LORS ? order_larger_size(list->n_lors, most) : BATCH_LORS;
	c.most = most < BATCH_MOST ? most : BATCH_MOST;
	c.resident = batches_to(c.most, BATCH_RESIDENT);
	c.streamed = batches_to(c.most, BATCH_LEAST);
	r = plan_fit(&(struct plan_choices){.n = c.resident + c.streamed,
					    .least = "the smallest batch of events",
					    .host_beside = p->host_beside,
					    .count = count_choice,
					    .ctx = &c,
					    .bytes = &plan.bytes},
		     dev, p->memory_limit, err);
	if (r == 0)
		*ret_plan = plan;
	return r;
}
