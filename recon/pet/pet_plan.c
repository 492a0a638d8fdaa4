/* SPDX-License-Identifier: Apache-2.0 */
/* pet_plan.c - determine grid, subsets and memory before anything is allocated.
 *
 * bytes.total is the sum of all that a session allocates on the device; the CPU device may round vectors up by a page. If that
 * exceeds the limit, data stay in host memory and are transferred in groups of angles, two of them on the device: the current one
 * and the next. First choice: the largest groups that fit together with the tables of all groups; if not even single angles fit,
 * tables are computed again for each use. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/order.h"
#include "recon/pet/pet_internal.h"
#include "recon/pet/pet_keys.h"

#define MATRIX_DEFAULT 256
#define SLICES_MAX 4096
#define FOV_DEFAULT 350.0 /* mm */

/* The inputs of a plan; borrowed. */
struct plan_request {
	const struct pet_protocol *p;
	const struct pet_layout *l;
	struct device *dev;
	enum pet_factors factors;
	bool background;
	struct pet_plan *plan;
	int divisions; /* numbers of groups of a subset */
};

bool pet_supports(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->filtered || (i->update != UPDATE_RAYS && (i->rule == RULE_EM || i->rule == RULE_EM_RELAXED));
}

static const struct key keys[] = {PET_KEYS(pet_protocol, )};
static const struct plan_range wider[] = {
	{"matrix", 2, 4096, "256"}, {"voxel", 0.1, 100}, {"slice_spacing", 0.1, 100}, {"fov_radius", 0, 1e6}, {NULL}};

int pet_check_protocol(const struct pet_protocol *p, bool (*supports)(enum algorithm a), const char *of, size_t count,
		       struct err *err)
{
	if (!supports(p->algorithm))
		return algorithm_refuse(p->algorithm, supports, err);
	return plan_check(p, keys, sizeof(keys) / sizeof(keys[0]), wider, count, of, err);
}

double pet_fov_radius(double ring, double radius, double *ret_most)
{
	*ret_most = FOV_OF_RING * ring;
	return fmin(fmin(radius > 0 ? radius : *ret_most, FOV_DEFAULT), *ret_most);
}

int pet_plan_grid(const struct pet_protocol *p, const struct pet_extent *c, struct grid *ret_grid, double *ret_fov_radius,
		  struct err *err)
{
	double most, usual = pet_fov_radius(c->ring, c->radius, &most), fov = p->fov_radius == 0 ? usual : p->fov_radius, slices;
	struct grid g = {.z_fastest = true};

	if (!(fov > 0 && fov <= most))
		return err_set(err, EINVAL, "fov_radius=%g mm; allowed: more than 0, up to %g (0.98 of %g, where the rays end)",
			       fov, most, c->ring);
	g.n[0] = g.n[1] = p->matrix ? p->matrix : MATRIX_DEFAULT;
	g.h[0] = g.h[1] = p->voxel > 0 ? p->voxel : 2 * fov / g.n[0];
	g.h[2] = p->slice > 0 ? p->slice : c->slice;
	slices = ceil(c->length / g.h[2] * (1 - 1e-9));
	if (!(slices >= 1 && slices <= SLICES_MAX))
		return err_set(err, EINVAL, "slice=%g mm: %g slices over %g mm; allowed: 1 to %d", g.h[2], slices, c->length,
			       SLICES_MAX);
	g.n[2] = (int)slices;
	for (int i = 0; i < 3; i++)
		g.lo[i] = -0.5 * g.n[i] * g.h[i];
	*ret_grid = g;
	*ret_fov_radius = fov;
	return 0;
}

static int lay_out(const struct pet_protocol *p, const struct michelogram *m, struct pet_plan *plan, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;
	struct pet_extent c = {
		.ring = s->radius + s->interaction_depth,
		.radius = fmax(michelogram_radius(m, m->n_radial - 1), -michelogram_radius(m, 0)),
		.length = (2 * s->rings - 1) * s->ring_spacing / 2,
		.slice = s->ring_spacing / 2,
	};
	int r = pet_plan_grid(p, &c, &plan->grid, &plan->fov_radius, err);

	if (r == 0 && algorithm_info(p->algorithm)->filtered && plan->grid.h[2] < s->ring_spacing / 2 * (1 - 1e-6))
		return err_set(err, EINVAL, "slice=%g mm; fbp computes a plane every %g mm; slices cannot be thinner",
			       plan->grid.h[2], s->ring_spacing / 2);
	return r;
}

struct pet_volumes pet_volumes_of(const struct pet_protocol *p, int n_subsets, bool streamed)
{
	const struct algorithm_info *a = algorithm_info(p->algorithm);

	if (a->filtered)
		return (struct pet_volumes){.spare = p->postfilter > 0};
	return (struct pet_volumes){
		.em = true,
		.den = streamed ? 1 : n_subsets,
		.scale = a->rule == RULE_EM_RELAXED,
		.psf = p->psf > 0,
	};
}

/* Return the bytes of an operator; *scratch: at least the working memory of one thread. */
static size_t spec_bytes(struct device *dev, const struct projection_spec *spec, size_t *scratch)
{
	struct plan_bytes b = {.scratch = *scratch};

	plan_count(&b, dev, spec);
	*scratch = b.scratch;
	return b.tables;
}

/* Return the bytes of the largest operator that computes a piece of the sensitivity of a group; see pet_layout_piece(). */
static size_t sensitivity_bytes(const struct plan_request *q, struct projection_spec spec, size_t *scratch)
{
	int piece = pet_layout_piece(spec.n_views), end = spec.first + spec.n_views;
	size_t bytes = 0;

	spec.scan = pet_layout_sensitivity_scan(q->l, q->factors);
	for (; spec.first < end; spec.first += piece) {
		spec.n_views = end - spec.first < piece ? end - spec.first : piece;
		bytes = order_larger_size(spec_bytes(q->dev, &spec, scratch), bytes);
	}
	return bytes;
}

/* Count the tables of n groups, and return the views of the largest. keep_tables: those of all groups exist at the same time. With
 * time of flight, the operators of the sensitivity exist one at a time in addition; if tables are computed for each use, no other
 * exists then. */
static int count_tables(const struct plan_request *q, const int *first, int n, struct plan_bytes *b)
{
	bool tof = q->l->scan->tof.n > 0 && !algorithm_info(q->p->algorithm)->filtered, all = q->plan->keep_tables;
	size_t sensitivity = 0;
	int largest = 0;

	for (int i = 0; i < n; i++) {
		struct projection_spec spec = pet_layout_spec(q->l, q->p, &q->plan->grid, first[i], first[i + 1] - first[i]);
		size_t bytes = spec_bytes(q->dev, &spec, &b->scratch);

		b->tables = all ? b->tables + bytes : order_larger_size(bytes, b->tables);
		largest = spec.n_views > largest ? spec.n_views : largest;
		if (tof)
			sensitivity = order_larger_size(sensitivity_bytes(q, spec, &b->scratch), sensitivity);
	}
	b->tables = all ? b->tables + sensitivity : order_larger_size(sensitivity, b->tables);
	return largest;
}

/* Return the number of bins of a view of all roles: on the host, or on the device. */
static size_t role_bins(const struct plan_request *q, bool device)
{
	size_t view = scan_view_size(q->l->scan), shared = scan_view_size(&q->l->wide);
	size_t factors = q->factors == PET_FACTORS_NONE ? 0 : q->factors == PET_FACTORS_TOF ? view : shared;

	if (device && !pet_layout_loads(q->l, PET_FACTORS))
		factors = 0;
	return (q->background ? 2 : 1) * view + factors;
}

/* The numbers of groups of a subset: 1, 2, 3, 4, 6, 8, 12, 16 ... */
static int groups_of(int division)
{
	return division == 0 ? 1 : (division % 2 ? 2 : 3) << (division - 1) / 2;
}

/* Choice 0: all on the device. Then groups of angles: with the tables of all, and with those of one at a time. */
static int count_choice(void *ctx, int choice, struct err *err)
{
	const struct plan_request *q = ctx;
	const struct scan *scan = pet_layout_scan(q->l, q->p), *rays = q->l->scan;
	size_t voxels = grid_size(&q->plan->grid), view = scan_view_size(scan), n_views = (size_t)scan->n_views, largest;
	bool fbp = algorithm_info(q->p->algorithm)->filtered;
	int groups = choice ? groups_of((choice - 1) % q->divisions + (q->l->views.n_subsets == 1)) : 1, n;
	int *first = malloc((n_views + 1) * sizeof(*first)),
	    views = choice ? (q->l->views.largest_subset + groups - 1) / groups : 0;
	struct pet_volumes v = pet_volumes_of(q->p, q->l->views.n_subsets, views > 0);
	struct plan_bytes b = {0};

	if (!first)
		return err_set(err, ENOMEM, "plan: cannot allocate %d angles", scan->n_views);
	n = pet_layout_groups(q->l, views, first);
	q->plan->group_views = views;
	q->plan->keep_tables = choice <= q->divisions;
	largest = (size_t)count_tables(q, first, n, &b);
	free(first);
	b.volumes = (1 + (size_t)(v.em + v.den + v.scale + (v.psf ? PSF_WORK_VOLUMES : 0) + (v.spare ? 2 : 0))) * voxels *
		    sizeof(float);
	/* FBP: direct planes; EM: the data on the device, and a group's line integrals */
	b.data = sizeof(float) * (view * largest + (fbp ? 0 : role_bins(q, true) * (views ? 2 * largest : n_views)));
	b.host = sizeof(float) * (role_bins(q, false) * (size_t)rays->n_views + voxels +
				  (fbp ? view * n_views : voxels * (size_t)q->l->views.n_subsets));
	plan_sum(&b, q->dev);
	q->plan->bytes = b;
	return 0;
}

int pet_plan_volume(const struct pet_protocol *p, const struct michelogram *m, struct pet_plan *ret_plan, struct err *err)
{
	struct pet_plan plan = {0};
	int r = michelogram_check(m, err);

	if (r == 0)
		r = pet_check_protocol(p, pet_supports, "angles", (size_t)m->n_angles, err);
	if (r == 0)
		r = lay_out(p, m, &plan, err);
	if (r == 0)
		*ret_plan = plan;
	return r;
}

int pet_plan(const struct pet_protocol *p, const struct michelogram *m, enum pet_factors factors, bool with_background,
	     struct device *dev, struct pet_plan *ret_plan, struct err *err)
{
	struct pet_plan plan;
	struct pet_layout l = {0};
	struct plan_request q = {p, &l, dev, factors, with_background, &plan, 1};
	int r = pet_plan_volume(p, m, &plan, err);

	if (r == 0 && factors == PET_FACTORS_TOF && m->tof.n == 0)
		r = err_set(err, EINVAL, "sinogram: factors for each TOF bin, but data without time of flight");
	if (r == 0)
		r = pet_layout_make(p, m, plan.fov_radius, &l, err);
	if (r < 0)
		return r;
	plan.iterations = algorithm_info(p->algorithm)->filtered ? 1 : p->iterations;
	plan.subsets = l.views.n_subsets;
	while (groups_of(q.divisions - 1 + (l.views.n_subsets == 1)) < l.views.largest_subset) /* down to groups of one angle */
		q.divisions++;
	r = plan_fit(&(struct plan_choices){.n = 1 + 2 * q.divisions,
					    .least = "one angle",
					    .host_beside = p->host_beside,
					    .count = count_choice,
					    .ctx = &q,
					    .bytes = &plan.bytes},
		     dev, p->memory_limit, err);
	pet_layout_release(&l);
	if (r == 0)
		*ret_plan = plan;
	return r;
}
