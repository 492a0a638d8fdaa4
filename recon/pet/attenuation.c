/* SPDX-License-Identifier: Apache-2.0 */
/* attenuation.c - see recon/pet/attenuation.h. Angles are projected in parts that are as large as PART_BYTES allow; the line
 * integrals of a part are exponentiated on the way to their place. The map and the factors are one entry of the cache of
 * sensitivity images. */
#include "recon/pet/attenuation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/plan.h"
#include "recon/core/projector.h"
#include "recon/core/scan.h"
#include "recon/pet/pet_internal.h"

#define VOXEL_LEAST 2.0		       /* mm; the map is smoothed to about 5 mm */
#define VOXEL_MOST 3.0		       /* mm */
#define VOXEL_OF_RADIUS 0.02	       /* largest voxel of a small scanner: this part of the radius */
#define PART_BYTES ((size_t)256 << 20) /* line integrals and tables of a part, while the device has more */
#define KEY_SEED 0x61747465u	       /* tells entries of the cache from sensitivity images */

struct attenuation {
	struct attenuation_plan plan;
	struct pet_sensitivity *entry; /* factors, then the map */
};

/* ---- plan ---- */

static struct projection_spec spec_of(const struct scan *scan, const struct grid *grid, int first, int views)
{
	return (struct projection_spec){.model = PROJECTION_JOSEPH,
					.scan = scan,
					.first = first,
					.n_views = first + views > scan->n_views ? scan->n_views - first : views,
					.grid = grid};
}

static struct michelogram without_tof(const struct michelogram *m)
{
	struct michelogram ret = *m;

	ret.tof = (struct scan_tof){0};
	return ret;
}

static void lay_out(const struct michelogram *m, struct attenuation_plan *plan)
{
	const struct pet_scanner *c = &m->scanner;
	double ring = c->radius + c->interaction_depth, length = (2 * c->rings - 1) * c->ring_spacing / 2;
	double largest = fmax(michelogram_radius(m, m->n_radial - 1), -michelogram_radius(m, 0)), voxel;
	struct grid g = {.z_fastest = true};

	plan->radius = fmin(largest > 0 ? largest + c->bin : ring, FOV_OF_RING * ring);
	voxel = fmin(fmin(fmax(c->ring_spacing / 2, VOXEL_LEAST), VOXEL_MOST), VOXEL_OF_RADIUS * plan->radius);
	g.n[0] = g.n[1] = (int)ceil(2 * plan->radius / voxel);
	g.n[2] = 2 * c->rings - 1;
	g.h[0] = g.h[1] = voxel;
	g.h[2] = length / g.n[2];
	for (int i = 0; i < 3; i++)
		g.lo[i] = -0.5 * g.n[i] * g.h[i];
	plan->grid = g;
}

/* Count the bytes of a part of `views` angles, without the scratch memory of further threads. */
static size_t count_bytes(struct device *dev, const struct scan *scan, const struct attenuation_plan *plan, int views,
			  size_t *ret_scratch)
{
	struct projection_spec spec = spec_of(scan, &plan->grid, 0, views);

	*ret_scratch = dev->ops->scratch_bytes(dev, &spec);
	return dev->ops->projection_bytes(dev, &spec) + *ret_scratch +
	       sizeof(float) * (grid_size(&plan->grid) + (size_t)views * scan_view_size(scan));
}

int attenuation_plan(const struct michelogram *m, struct device *dev, size_t memory_limit, struct attenuation_plan *ret_plan,
		     struct err *err)
{
	struct michelogram rays = without_tof(m);
	struct attenuation_plan plan = {0};
	size_t limit = plan_limit(dev, memory_limit), scratch = 0;
	struct scan *scan = NULL;
	int *plane = NULL, rc = michelogram_check(m, err);

	if (rc < 0)
		return rc;
	lay_out(m, &plan);
	rc = scan_create_michelogram(&rays, plan.radius, NULL, &scan, &plane, err);
	if (rc < 0)
		return rc;
	plan.views = scan->n_views;
	plan.bins = (size_t)scan->n_views * scan_view_size(scan);
	do {
		size_t fixed = sizeof(float) * grid_size(&plan.grid), most = fixed + PART_BYTES;

		plan.bytes_device = count_bytes(dev, scan, &plan, plan.views, &scratch);
		if (plan.bytes_device <= (limit > 0 && limit < most ? limit : most) || plan.views == 1)
			break;
		plan.views = (plan.views + 1) / 2;
	} while (true);
	if (limit > 0 && plan.bytes_device > limit)
		rc = err_set(err, ENOMEM,
			     "the factors of attenuation need %.1f MB on the device for one angle; %s allows %.1f MB",
			     plan_megabytes(plan.bytes_device), plan_limit_name(dev, limit), plan_megabytes(limit));
	if (rc == 0)
		rc = plan_threads(dev, plan.bytes_device, scratch, &plan.bytes_threads, err);
	plan.bytes_host = sizeof(float) * (plan.bins + grid_size(&plan.grid) + (size_t)plan.views * scan_view_size(scan));
	scan_free(scan);
	free(plane);
	if (rc == 0)
		*ret_plan = plan;
	return rc;
}

/* ---- entries of the cache ---- */

static struct pet_key key_of(const struct attenuation_plan *plan, const struct michelogram *m, uint64_t key)
{
	const struct grid *g = &plan->grid;
	double numbers[] = {g->h[0], g->h[1], g->h[2], g->lo[0], g->lo[1], g->lo[2], plan->radius};
	int counts[] = {g->n[0], g->n[1], g->n[2]};
	struct pet_key ret = {pet_hash_michelogram(KEY_SEED, m), key};

	ret.geometry = pet_hash(ret.geometry, numbers, sizeof(numbers));
	ret.geometry = pet_hash(ret.geometry, counts, sizeof(counts));
	return ret;
}

static size_t floats_of(const struct attenuation_plan *plan)
{
	return plan->bins + grid_size(&plan->grid);
}

static struct attenuation *wrap_entry(const struct attenuation_plan *plan, struct pet_sensitivity *entry)
{
	struct attenuation *a = malloc(sizeof(*a));

	if (a)
		*a = (struct attenuation){*plan, entry};
	return a;
}

int attenuation_new(const struct attenuation_plan *plan, const struct michelogram *m, uint64_t key, struct attenuation **ret,
		    struct err *err)
{
	struct michelogram rays = without_tof(m);
	struct pet_key full = key_of(plan, &rays, key);
	struct pet_sensitivity *entry = pet_sensitivity_new(&full, floats_of(plan));

	*ret = entry ? wrap_entry(plan, entry) : NULL;
	if (*ret)
		return 0;
	pet_sensitivity_release(entry, NULL);
	return err_set(err, ENOMEM, "no memory for %zu factors of attenuation", plan->bins);
}

struct attenuation *attenuation_find(struct pet_cache *cache, const struct attenuation_plan *plan, const struct michelogram *m,
				     uint64_t key)
{
	struct michelogram rays = without_tof(m);
	struct pet_key full = key_of(plan, &rays, key);
	struct pet_sensitivity *entry = pet_cache_find(cache, &full, floats_of(plan));
	struct attenuation *a = entry ? wrap_entry(plan, entry) : NULL;

	if (!a)
		pet_sensitivity_release(entry, cache);
	return a;
}

struct attenuation *attenuation_release(struct attenuation *a, struct pet_cache *cache)
{
	if (a)
		pet_sensitivity_release(a->entry, cache);
	free(a);
	return NULL;
}

float *attenuation_map(struct attenuation *a)
{
	return pet_sensitivity_images(a->entry) + a->plan.bins;
}

const float *attenuation_factors(const struct attenuation *a)
{
	return pet_sensitivity_images(a->entry);
}

/* ---- projection ---- */

/* Write exp(-line) of a part to its place: lines are [view][radial][plane of the scan]. */
static void place_part(const struct scan *scan, const int *plane, const struct projection_spec *spec, const float *lines,
		       float *ret)
{
	size_t n_u = (size_t)scan->n_u, n_v = (size_t)scan->n_v, n_a = (size_t)scan->n_views;

#pragma omp parallel for collapse(2) schedule(static)
	for (int i = 0; i < spec->n_views; i++)
		for (size_t u = 0; u < n_u; u++) {
			const float *from = lines + (size_t)i * n_v * n_u + u;
			float *to = ret + ((size_t)plane[u] * n_a + (size_t)(spec->first + i)) * n_v;

			for (size_t v = 0; v < n_v; v++)
				to[v] = expf(-from[v * n_u]);
		}
}

static int project_part(struct device *dev, const struct projection_spec *spec, const int *plane, const struct buf *x,
			float *lines, float *ret, struct err *err)
{
	struct linop *op = NULL;
	struct buf y = {0};
	int rc = projector_create(dev, spec, &op, err);

	if (rc == 0)
		rc = dev->ops->alloc(dev, op->n_out, &y, err);
	if (rc == 0)
		rc = op->apply(op, x, &y, err);
	if (rc == 0)
		rc = dev->ops->download(&y, lines, err);
	if (rc == 0)
		place_part(spec->scan, plane, spec, lines, ret);
	buf_release(&y);
	linop_free(op);
	return rc;
}

static int project_lines(struct attenuation *a, const struct scan *scan, const int *plane, struct device *dev,
			 const struct monitor *monitor, struct err *err)
{
	float *lines = malloc((size_t)a->plan.views * scan_view_size(scan) * sizeof(*lines));
	struct buf x = {0};
	int rc = lines ? dev->ops->alloc(dev, grid_size(&a->plan.grid), &x, err)
		       : err_set(err, ENOMEM, "no memory for the line integrals of %d angles", a->plan.views);

	if (rc == 0)
		rc = dev->ops->upload(&x, attenuation_map(a), err);
	for (int first = 0; rc == 0 && first < scan->n_views; first += a->plan.views) {
		struct projection_spec spec = spec_of(scan, &a->plan.grid, first, a->plan.views);

		monitor_progress(monitor, "read", (double)first / scan->n_views);
		rc = monitor_cancelled(monitor)
			     ? err_set(err, ECANCELED, "cancelled in the factors of attenuation")
			     : project_part(dev, &spec, plane, &x, lines, pet_sensitivity_images(a->entry), err);
	}
	buf_release(&x);
	free(lines);
	return rc;
}

int attenuation_compute(struct attenuation *a, const struct michelogram *m, struct device *dev, struct pet_cache *cache,
			const struct monitor *monitor, struct err *err)
{
	struct michelogram rays = without_tof(m);
	struct scan *scan = NULL;
	int *plane = NULL, rc = pet_cache_check(cache, dev, err);

	if (rc == 0)
		rc = scan_create_michelogram(&rays, a->plan.radius, NULL, &scan, &plane, err);
	if (rc < 0)
		return rc;
	rc = project_lines(a, scan, plane, dev, monitor, err);
	scan_free(scan);
	free(plane);
	if (rc == 0)
		pet_cache_add(cache, a->entry);
	return rc;
}
