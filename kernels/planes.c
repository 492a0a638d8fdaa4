/* SPDX-License-Identifier: Apache-2.0 */
/* planes.c - check a SCAN_PARALLEL for both devices and put its planes into groups. */
#include "kernels/planes.h"
#include "kernels/lines.h"
#include "kernels/tof.h"

#include <errno.h>
#include <math.h>

#define PLANES_MAX 65535
#define TOF_NARROWEST (1 / 512.0) /* sigma: limits the number of bins that have a weight at one point */
#define DISTANCE_TOL 1e-6	  /* mm: distances that differ by less count as equal */

static int check_rays(const struct scan *s, struct err *err)
{
	if (s->n_u < 1 || s->n_u > PLANES_MAX || s->n_v < 1 || !s->planes || !s->radius)
		return err_set(err, EINVAL,
			       "projection: %d planes and %d radial bins; allowed: 1 to 65535 planes, at least 1 radial bin",
			       s->n_u, s->n_v);
	if (!(s->fov_radius > 0) || !isfinite(s->fov_radius))
		return err_set(err, EINVAL, "projection: the field of view has a radius of %g mm; allowed: above 0",
			       s->fov_radius);
	for (int v = 0; v < s->n_v; v++)
		if (!isfinite(s->radius[v]) || (v && !(s->radius[v] > s->radius[v - 1])))
			return err_set(err, EINVAL, "projection: radius of radial bin %d is %g mm, not finite or not ascending",
				       v, s->radius[v]);
	for (int u = 0; u < s->n_u; u++) {
		const struct scan_plane *p = &s->planes[u];

		if (!isfinite(p->z) || !isfinite(p->rise))
			return err_set(err, EINVAL, "projection: plane %d: z=%g mm, rise=%g mm; both must be finite", u, p->z,
				       p->rise);
		if (u && p->rise == p[-1].rise && !(p->z > p[-1].z))
			return err_set(err, EINVAL, "projection: plane %d at %g mm is not above the plane before it, at %g mm", u,
				       p->z, p[-1].z);
		if (p->rise != 0 && !(s->ring_radius > s->fov_radius))
			return err_set(err, EINVAL,
				       "projection: oblique planes need a ring radius (%g mm) above the radius of the field of "
				       "view (%g mm)",
				       s->ring_radius, s->fov_radius);
	}
	return 0;
}

int planes_check_tof(const struct projection_spec *spec, struct err *err)
{
	const struct scan_tof *tof = &spec->scan->tof;

	if (tof->n == 0)
		return 0;
	if (spec->scan->kind != SCAN_PARALLEL)
		return err_set(err, EINVAL, "projection: %d TOF bins per ray, but only parallel rays have time of flight",
			       tof->n);
	if (tof->n < 0 || tof->n > TOF_MOST)
		return err_set(err, EINVAL, "projection: %d TOF bins per ray; allowed: 0 to %d", tof->n, TOF_MOST);
	if (!(tof->width > 0 && isfinite(tof->width)) || !(tof->sigma > 0 && isfinite(tof->sigma)))
		return err_set(err, EINVAL, "projection: TOF bins of %g mm, sigma %g mm; both must be finite and above 0",
			       tof->width, tof->sigma);
	if (tof->width < TOF_NARROWEST * tof->sigma)
		return err_set(err, EINVAL, "projection: TOF bins of %g mm are below 1/512 of sigma, %g mm", tof->width,
			       tof->sigma);
	if (spec->model == PROJECTION_SAMPLED || spec->sweeps)
		return err_set(err, EINVAL, "projection: sampled rays and sweeps do not support time of flight");
	if (spec->mask)
		return err_set(err, EINVAL,
			       "projection: scans with time of flight do not support a mask; set mult = 0 for bins that do not "
			       "count");
	return 0;
}

int planes_check(const struct projection_spec *spec, struct err *err)
{
	const struct scan *s = spec->scan;
	int r = check_rays(s, err);

	r = r < 0 ? r : planes_check_tof(spec, err);
	if (r < 0)
		return r;
	for (int i = spec->first; i < spec->first + spec->n_views; i++) {
		const double *turn = s->views[i].turn;

		if (!(fabs(turn[0] * turn[0] + turn[1] * turn[1] - 1) < 1e-9))
			return err_set(err, EINVAL, "projection: view %d: (%g, %g) is not the cosine and sine of an angle", i,
				       turn[0], turn[1]);
	}
	if (spec->model == PROJECTION_EXACT)
		return 0;
	if (spec->model < PROJECTION_PATHS || spec->model > PROJECTION_SAMPLED)
		return err_set(err, EINVAL, "projection: model %d does not support parallel rays", (int)spec->model);
	if ((spec->model == PROJECTION_SAMPLED || spec->sweeps) && !lines_fit(s, spec->grid))
		return err_set(err, EINVAL,
			       "projection: sampled rays and sweeps need a stack: plane u with rise 0 in the middle of slice u");
	if (spec->model == PROJECTION_SAMPLED && !(spec->sampling > 0 && isfinite(spec->sampling)))
		return err_set(err, EINVAL, "projection: rays sampled every %g mm; allowed: above 0", spec->sampling);
	if (spec->model == PROJECTION_SAMPLED && spec->sampling < 1e-4 * spec->grid->h[0])
		return err_set(err, EINVAL, "projection: rays sampled every %g mm, too fine for pixels of %g mm", spec->sampling,
			       spec->grid->h[0]);
	if (!spec->grid->z_fastest && !lines_fit(s, spec->grid))
		return err_set(err, EINVAL, "projection: transaxial paths need a volume that is stored z fastest");
	if (spec->model == PROJECTION_JOSEPH && (spec->grid->n[0] < 2 || spec->grid->n[1] < 2))
		return err_set(err, EINVAL, "projection: Joseph's model needs at least 2 x 2 pixels, not %d x %d",
			       spec->grid->n[0], spec->grid->n[1]);
	if (spec->mask)
		return err_set(err, EINVAL,
			       "projection: transaxial paths do not support a mask; set mult = 0 for bins that do not count");
	return 0;
}

int planes_group(const struct scan *scan, struct plane_group *ret_group)
{
	int n = 0;

	for (int u = 0, end; u < scan->n_u; u = end, n++) {
		const struct scan_plane *p = &scan->planes[u];
		double pitch = u + 1 < scan->n_u && p[1].rise == p->rise ? p[1].z - p->z : 0;

		for (end = u + 1; end < scan->n_u && scan->planes[end].rise == p->rise; end++)
			if (fabs(scan->planes[end].z - (p->z + (end - u) * pitch)) > DISTANCE_TOL)
				break;
		if (ret_group)
			ret_group[n] = (struct plane_group){u, end - u, p->z, pitch, p->rise};
	}
	return n;
}

double planes_max_abs_rise(const struct scan *scan)
{
	double largest = 0;

	for (int u = 0; u < scan->n_u; u++)
		largest = fmax(largest, fabs(scan->planes[u].rise));
	return largest;
}
