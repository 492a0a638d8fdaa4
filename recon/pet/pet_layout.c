/* SPDX-License-Identifier: Apache-2.0 */
/* pet_layout.c - convert a michelogram into rays in processing order: subsets of angles that are far apart, consecutive subsets
 * as far apart as possible (recon/core/subsets.h), each contiguous. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/scan.h"
#include "recon/pet/pet_internal.h"

#define PIECES 8 /* of a part, for the sensitivity with time of flight: small tables beside those of the part */

/* Create the direct planes, one per slice, half a ring spacing apart. Radial bins: those of the data; if the data are not
 * arc-corrected, R pi / detectors apart, as dense as the data are in the middle. */
static int make_direct(const struct michelogram *m, struct pet_layout *l, struct err *err)
{
	const struct scan *scan = l->scan;
	int n_u = 2 * m->scanner.rings - 1, first = -(m->n_radial / 2), n_v = m->n_radial;
	double pitch = m->scanner.bin;

	if (!m->arc_corrected) {
		pitch = scan->ring_radius * M_PI / m->scanner.detectors;
		first = (int)ceil(scan->radius[0] / pitch - 1e-6);
		n_v = (int)floor(scan->radius[m->n_radial - 1] / pitch + 1e-6) - first + 1;
	}
	l->direct_planes = calloc((size_t)n_u, sizeof(*l->direct_planes));
	l->direct_radius = calloc((size_t)n_v, sizeof(*l->direct_radius));
	if (!l->direct_planes || !l->direct_radius)
		return err_set(err, ENOMEM, "plan: cannot allocate %d direct planes of %d bins", n_u, n_v);
	for (int u = 0; u < n_u; u++)
		l->direct_planes[u].z = (u - 0.5 * (n_u - 1)) * m->scanner.ring_spacing / 2;
	for (int v = 0; v < n_v; v++)
		l->direct_radius[v] = (first + v) * pitch;
	l->direct_pitch = pitch;
	l->direct = *scan;
	l->direct.tof = (struct scan_tof){0};
	l->direct.n_u = n_u;
	l->direct.n_v = n_v;
	l->direct.planes = l->direct_planes;
	l->direct.radius = l->direct_radius;
	return 0;
}

static void set_wide(struct pet_layout *l)
{
	struct scan_tof *tof = &l->wide.tof;

	l->wide = *l->scan;
	if (tof->n > 0)
		*tof = (struct scan_tof){1, tof->n * tof->width, tof->sigma};
}

static double position_of(const void *ctx, int angle)
{
	(void)ctx;
	return angle;
}

int pet_layout_make(const struct pet_protocol *p, const struct michelogram *m, double fov_radius, struct pet_layout *ret_layout,
		    struct err *err)
{
	int subsets = algorithm_info(p->algorithm)->update == UPDATE_ALL ? 1 : p->subsets;
	struct pet_layout l = {0};
	int r = subsets_create(position_of, NULL, m->n_angles, subsets, &l.views, err);

	if (r == 0)
		r = scan_create_michelogram(m, fov_radius, l.views.order, &l.scan, &l.plane, err);
	if (r == 0)
		set_wide(&l);
	if (r == 0 && algorithm_info(p->algorithm)->filtered)
		r = make_direct(m, &l, err);
	if (r < 0)
		pet_layout_release(&l);
	else
		*ret_layout = l;
	return r;
}

void pet_layout_release(struct pet_layout *l)
{
	l->scan = scan_free(l->scan);
	subsets_release(&l->views);
	free(l->plane);
	free(l->direct_planes);
	free(l->direct_radius);
	*l = (struct pet_layout){0};
}

int pet_layout_groups(const struct pet_layout *l, int views, int *ret_first)
{
	int n = 0;

	for (int s = 0; s < l->views.n_subsets; s++) {
		int size = l->views.first[s + 1] - l->views.first[s], groups = views > 0 ? (size + views - 1) / views : 1;

		for (int g = 0; g < groups; g++)
			ret_first[n++] = l->views.first[s] + (int)((long)size * g / groups);
	}
	ret_first[n] = l->scan->n_views;
	return n;
}

const struct scan *pet_layout_scan(const struct pet_layout *l, const struct pet_protocol *p)
{
	return algorithm_info(p->algorithm)->filtered ? &l->direct : l->scan;
}

struct projection_spec pet_layout_spec(const struct pet_layout *l, const struct pet_protocol *p, const struct grid *grid,
				       int first, int n_views)
{
	return (struct projection_spec){
		/* filtered backprojection needs no tables: it has its own interpolation function */
		.model = algorithm_info(p->algorithm)->filtered ? PROJECTION_EXACT : p->projector,
		.scan = pet_layout_scan(l, p),
		.first = first,
		.n_views = n_views,
		.grid = grid,
		.deterministic = p->deterministic,
	};
}

const struct scan *pet_layout_sensitivity_scan(const struct pet_layout *l, enum pet_factors factors)
{
	return factors == PET_FACTORS_TOF ? l->scan : &l->wide;
}

int pet_layout_piece(int n_views)
{
	return (n_views + PIECES - 1) / PIECES;
}

bool pet_layout_loads(const struct pet_layout *l, enum pet_role role)
{
	return role != PET_FACTORS || l->scan->tof.n == 0;
}
