/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_scan.c - check a parallel-beam scan and create its rays. A scan is one allocation: scan, views, planes, radii. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/scan.h"
#include "recon/parallel/parallel_internal.h"

#define SLICES_MAX 65535
#define ANGLES_MAX 16384
#define LENGTH_MAX 10000.0 /* mm */
#define OPEN_GAP 3.0	   /* a gap this many times as wide as any other is a sector that was not measured */
#define ANGLE_TOL 1e-6	   /* degrees */

struct direction {
	double at; /* direction, 0 .. 180 degrees */
	int view;
};

static int check_lengths(const struct parallel_scan *s, struct err *err)
{
	if (!(s->bin > 0 && s->bin <= LENGTH_MAX)) /* !(x > 0) also refuses NaN */
		return err_set(err, EINVAL, "parallel beams: rays %g mm apart", s->bin);
	if (!(s->slice > 0 && s->slice <= LENGTH_MAX))
		return err_set(err, EINVAL, "parallel beams: slices %g mm apart", s->slice);
	if (!(fabs(s->offset) <= LENGTH_MAX))
		return err_set(err, EINVAL, "parallel beams: offset of the rotation axis from the middle is %g mm", s->offset);
	return 0;
}

int parallel_check(const struct parallel_scan *s, struct err *err)
{
	int r;

	if (s->n_slices < 1 || s->n_slices > SLICES_MAX)
		return err_set(err, EINVAL, "parallel beams: %d slices; allowed: 1 to %d", s->n_slices, SLICES_MAX);
	if (s->n_angles < 1 || s->n_angles > ANGLES_MAX)
		return err_set(err, EINVAL, "parallel beams: %d angles; allowed: 1 to %d", s->n_angles, ANGLES_MAX);
	if (s->n_radial < 1 || s->n_radial > PARALLEL_BINS_MAX)
		return err_set(err, EINVAL, "parallel beams: %d radial bins; allowed: 1 to %d", s->n_radial, PARALLEL_BINS_MAX);
	r = check_lengths(s, err);
	if (r < 0)
		return r;
	if (!s->angle && !(fabs(s->first_angle) <= 360))
		return err_set(err, EINVAL, "parallel beams: first angle at %g degrees; allowed: -360 to 360", s->first_angle);
	if (!s->angle && !(s->arc > 0 && s->arc <= 360))
		return err_set(err, EINVAL, "parallel beams: angles over %g degrees; allowed: more than 0, up to 360", s->arc);
	for (int a = 0; s->angle && a < s->n_angles; a++)
		if (!(fabs(s->angle[a]) <= 3600))
			return err_set(err, EINVAL, "parallel beams: angle %d at %g degrees; allowed: -3600 to 3600", a,
				       s->angle[a]);
	return 0;
}

size_t parallel_size(const struct parallel_scan *s)
{
	return (size_t)s->n_slices * (size_t)s->n_angles * (size_t)s->n_radial;
}

double parallel_angle(const struct parallel_scan *s, int a)
{
	return s->angle ? s->angle[a] : s->first_angle + a * s->arc / s->n_angles;
}

double parallel_radius(const struct parallel_scan *s, int t)
{
	return (t - 0.5 * (s->n_radial - 1)) * s->bin + s->offset;
}

static int compare_directions(const void *a, const void *b)
{
	const struct direction *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at ? 1 : x->view - y->view;
}

/* Give each direction half of the gaps on either side; gap[i]: from direction i to the next one, around the half circle. */
static void spread_weights(const struct direction *d, const double *gap, int n, double *ret_weight)
{
	double largest = 0, second = 0;
	int open = -1;

	for (int i = 0; i < n; i++) {
		if (gap[i] > largest) {
			second = largest;
			largest = gap[i];
			open = i;
		} else if (gap[i] > second) {
			second = gap[i];
		}
	}
	if (!(second > ANGLE_TOL && largest > OPEN_GAP * second))
		open = -1;
	for (int i = 0; i < n; i++) {
		int before = (i + n - 1) % n;
		double left = gap[before == open ? i : before], right = gap[i == open ? before : i];

		ret_weight[d[i].view] = 0.5 * (left + right) * (M_PI / 180);
	}
}

int parallel_weights(const struct parallel_scan *s, double *ret_weight, struct err *err)
{
	size_t n = (size_t)s->n_angles;
	struct direction *d;
	double *gap;
	int r = 0;

	if (!s->angle && (s->arc <= 180 || s->arc == 360)) {
		for (size_t a = 0; a < n; a++)
			ret_weight[a] = (s->arc == 360 ? 180 : s->arc) * (M_PI / 180) / s->n_angles;
		return 0;
	}
	d = malloc(n * sizeof(*d));
	gap = malloc(n * sizeof(*gap));
	if (!d || !gap) {
		r = err_set(err, ENOMEM, "parallel beams: cannot allocate %zu angles", n);
		goto out;
	}
	for (int a = 0; a < s->n_angles; a++) {
		double at = fmod(parallel_angle(s, a), 180);

		d[a].at = at < 0 ? at + 180 : at;
		d[a].at = d[a].at > 180 - ANGLE_TOL ? 0 : d[a].at;
		d[a].view = a;
	}
	qsort(d, n, sizeof(*d), compare_directions);
	for (size_t i = 0; i < n; i++)
		gap[i] = i + 1 < n ? d[i + 1].at - d[i].at : d[0].at + 180 - d[i].at;
	spread_weights(d, gap, s->n_angles, ret_weight);
out:
	free(d);
	free(gap);
	return r;
}

#define SHARE_BINS 8 /* over which shares change at least */
#define SECTORS 3600 /* of a turn */
#define TURN_GAP 3   /* largest gap of a whole turn, in the mean step */

/* Were views of all directions measured, of both sides? */
static bool is_whole_turn(const struct parallel_scan *s)
{
	bool seen[SECTORS] = {false};
	int n = 0, first = -1, last = -1, gap = 0;

	if (!s->angle)
		return s->arc == 360;
	for (int a = 0; a < s->n_angles; a++) {
		double turns = s->angle[a] / 360;

		seen[(int)((turns - floor(turns)) * SECTORS) % SECTORS] = true;
	}
	for (int i = 0; i < SECTORS; i++) {
		if (!seen[i])
			continue;
		if (n++ == 0)
			first = i;
		else if (i - last > gap)
			gap = i - last;
		last = i;
	}
	if (first + SECTORS - last > gap)
		gap = first + SECTORS - last;
	return n * gap <= TURN_GAP * SECTORS && gap < SECTORS / 8;
}

bool parallel_shares(const struct parallel_scan *s, double *ret_share)
{
	double reach = 0.5 * (s->n_radial - 1) * s->bin, shift = fabs(s->offset), near = reach - shift;
	double over = fmin(near, fmax(2 * shift, SHARE_BINS * s->bin));
	bool shared = is_whole_turn(s) && shift >= 0.5 * s->bin && over > 0;

	for (int t = 0; t < s->n_radial; t++) {
		double r = parallel_radius(s, t) * (s->offset < 0 ? -1 : 1); /* the far edge is at a positive r */
		double to = fmin(fmax((near - fabs(r)) / over, 0), 1);

		ret_share[t] = shared ? 1 + copysign(pow(cos(M_PI / 2 * to), 2), r) : 1;
	}
	return shared;
}

/* Check that the order has each angle once. */
static int check_order(const int *order, int n, struct err *err)
{
	bool *seen = calloc((size_t)n, sizeof(*seen));
	int r = seen ? 0 : err_set(err, ENOMEM, "parallel beams: cannot allocate %d angles", n);

	for (int i = 0; r == 0 && i < n; i++) {
		if (order[i] < 0 || order[i] >= n || seen[order[i]])
			r = err_set(err, EINVAL, "parallel beams: the order of the angles contains number %d%s", order[i],
				    order[i] < 0 || order[i] >= n ? ", which does not exist" : " twice");
		else
			seen[order[i]] = true;
	}
	free(seen);
	return r;
}

int scan_create_parallel(const struct parallel_scan *s, int n_slices, double fov_radius, const int *order, struct scan **ret_scan,
			 struct err *err)
{
	struct scan *scan;
	struct scan_view *views;
	struct scan_plane *planes;
	double *radius;
	int r = parallel_check(s, err);

	if (r < 0)
		return r;
	if (n_slices < 1 || n_slices > SLICES_MAX)
		return err_set(err, EINVAL, "parallel beams: %d slices; allowed: 1 to %d", n_slices, SLICES_MAX);
	if (!(fov_radius > 0) || !isfinite(fov_radius))
		return err_set(err, EINVAL, "parallel beams: field of view of %g mm radius", fov_radius);
	if (order && (r = check_order(order, s->n_angles, err)) < 0)
		return r;
	scan = scan_new_parallel(&(struct scan){.n_u = n_slices,
						.n_v = s->n_radial,
						.n_views = s->n_angles,
						.ring_radius = fov_radius,
						.fov_radius = fov_radius},
				 &views, &planes, &radius);
	if (!scan)
		return err_set(err, ENOMEM, "parallel beams: no memory for %d angles of %d slices", s->n_angles, n_slices);
	for (int i = 0; i < s->n_angles; i++) {
		views[i] = (struct scan_view){0};
		scan_turn(parallel_angle(s, order ? order[i] : i), views[i].turn);
	}
	for (int k = 0; k < n_slices; k++)
		planes[k] = (struct scan_plane){(k - 0.5 * (n_slices - 1)) * s->slice, 0};
	for (int t = 0; t < s->n_radial; t++)
		radius[t] = parallel_radius(s, t);
	*ret_scan = scan;
	return 0;
}
