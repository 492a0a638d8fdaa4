/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of volumes and rays, as plain structs that the GPU can use too: C11, C++17 and CUDA C++. The only pointers are
 * those to views, planes and radii.
 *
 * Units are mm. Bins are stored u fastest, then (with time of flight) the TOF bin, then v, then view; voxels in the order of the
 * grid. A volume is a `struct grid`; a set of rays is a `struct scan`. Only scan_ray() converts a bin into a line.
 *
 * SCAN_DBT, digital breast tomosynthesis: x points away from the chest wall (x = 0: the detector's chest-wall edge), y along the
 * chest wall (y = 0: the detector's middle), z up from the detector plane (z = 0). u runs along x, v along y. A ray goes from the
 * view's source to the centre of bin (u, v), which is in the plane z = 0 unless the view has its own pose of the detector
 * (scan_view.posed): for detectors that turn or move with the source.
 *
 * SCAN_PARALLEL, views of parallel rays: PET sinograms of a cylindrical scanner and 2-D parallel beam. z is the scanner's axis,
 * (0, 0, 0) its middle. u is the plane, v the radial bin, a view one angle phi. With r = radius[v], the point t of the ray is (r
 * cos phi - t sin phi, r sin phi + t cos phi, z_u + rise_u t / w), where w = sqrt(ring_radius^2 - r^2) and rise_u is half the
 * axial distance between the ray's ends on the ring. The ray ends at the cylinder of radius fov_radius. A bin with |r| >=
 * fov_radius has no ray: its value is 0 and no operator uses it.
 * With time of flight (scan.tof.n > 0) every ray has tof.n bins, which divide its length by the position of the annihilation:
 * kernels/tof.h. */
#ifndef TOMONODE_KERNELS_GEOMETRY_H
#define TOMONODE_KERNELS_GEOMETRY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __CUDACC__
#define TOMONODE_HD __host__ __device__
#else
#define TOMONODE_HD
#endif

/* n voxels of h mm along each axis; `lo` is the lower corner of voxel 0 (not its centre). A vector of the volume is stored x
 * fastest, then y, then z. With z_fastest it is stored z fastest, then x, then y, and each column of n[2] voxels is padded to a
 * multiple of 4 floats. Operators do not read the padding and leave 0 in it. */
struct grid {
	int n[3];
	double h[3];
	double lo[3];
	bool z_fastest;
};

enum scan_kind {
	SCAN_DBT = 1,
	SCAN_PARALLEL,
};

/* Position and orientation of a flat detector. The centre of bin (u, v) is origin + u step_u + v step_v, mm. */
struct scan_pose {
	double origin[3];
	double step_u[3], step_v[3];
};

struct scan_view {
	double src[3];	 /* position of the source (focal spot), mm */
	double shift[2]; /* shift of the detector along x and y relative to scan.lo, mm; 0: it does not move */
	double turn[2];	 /* SCAN_PARALLEL: cosine and sine of the view's angle phi */
	bool posed;	 /* SCAN_DBT: `pose` replaces scan.lo and shift; scan.h remains the distance of bins */
	struct scan_pose pose;
};

/* A plane of SCAN_PARALLEL. Planes of equal rise are adjacent, in ascending z. */
struct scan_plane {
	double z;    /* z at the middle of its rays, mm */
	double rise; /* axial distance from the middle of a ray to its end on the ring, mm; 0: perpendicular to the axis */
};

/* Time of flight. TOF bin k of a ray is centred (k - (n - 1) / 2) width from the ray's middle, positive towards the end with
 * positive t; distances are along the ray in three dimensions. */
struct scan_tof {
	int n;	      /* bins per ray; 0: no time of flight */
	double width; /* of a bin, mm: time difference times c / 2 */
	double sigma; /* standard deviation of the measured position, mm: FWHM of the time difference times c / 2 / 2.3548 */
};

struct scan {
	enum scan_kind kind;
	int n_u, n_v, n_views;
	double h[2];		       /* bin pitch along u and v, mm */
	double lo[2];		       /* x and y of the lower corner of bin (0, 0), mm */
	const struct scan_view *views; /* n_views elements; borrowed */
	/* SCAN_PARALLEL only, which does not use h and lo; borrowed like the views */
	const struct scan_plane *planes; /* n_u elements */
	const double *radius;		 /* n_v radii, ascending, mm */
	double ring_radius;		 /* radius of the ring where the rays end, mm; used only with planes that rise */
	double fov_radius;		 /* radius of the field of view, mm, > 0; not above ring_radius if a plane rises */
	struct scan_tof tof;
};

/* Return the distance from one column of a z-fastest volume to the next, floats. */
static inline TOMONODE_HD size_t grid_column(const struct grid *g)
{
	return ((size_t)g->n[2] + 3) & ~(size_t)3;
}

/* Return the length of a vector, floats, padding included. */
static inline TOMONODE_HD size_t grid_size(const struct grid *g)
{
	return (size_t)g->n[0] * (size_t)g->n[1] * (g->z_fastest ? grid_column(g) : (size_t)g->n[2]);
}

/* Return the distance from a voxel to the next along an axis, floats. */
static inline TOMONODE_HD size_t grid_step(const struct grid *g, int axis)
{
	if (g->z_fastest)
		return axis == 2 ? 1 : axis == 0 ? grid_column(g) : (size_t)g->n[0] * grid_column(g);
	return axis == 0 ? 1 : axis == 1 ? (size_t)g->n[0] : (size_t)g->n[0] * (size_t)g->n[1];
}

/* Return the number of bins of a ray: its TOF bins, or 1 without time of flight. */
static inline TOMONODE_HD int scan_ray_bins(const struct scan *s)
{
	return s->tof.n > 0 ? s->tof.n : 1;
}

/* Return the number of bins of one view. */
static inline TOMONODE_HD size_t scan_view_size(const struct scan *s)
{
	return (size_t)s->n_u * (size_t)s->n_v * (size_t)scan_ray_bins(s);
}

/* Return half the length of a radial bin's transaxial path inside the field of view, mm; 0: no ray. SCAN_PARALLEL only. */
static inline TOMONODE_HD double scan_reach(const struct scan *s, int v)
{
	double r = s->radius[v], left = s->fov_radius * s->fov_radius - r * r;

	return left > 0 ? sqrt(left) : 0;
}

/* Return the slope of a ray, axial mm per transaxial mm. SCAN_PARALLEL only. */
static inline TOMONODE_HD double scan_slope(const struct scan *s, double rise, int v)
{
	double r = s->radius[v];

	return rise == 0 ? 0 : rise / sqrt(s->ring_radius * s->ring_radius - r * r);
}

/* Compute the point of the detector at (u, v) in a view of SCAN_DBT; whole numbers are the centres of bins. */
static inline TOMONODE_HD void scan_bin_at(const struct scan *s, const struct scan_view *view, double u, double v, double ret[3])
{
	if (view->posed) {
		const struct scan_pose *p = &view->pose;

		ret[0] = p->origin[0] + u * p->step_u[0] + v * p->step_v[0];
		ret[1] = p->origin[1] + u * p->step_u[1] + v * p->step_v[1];
		ret[2] = p->origin[2] + u * p->step_u[2] + v * p->step_v[2];
		return;
	}
	ret[0] = s->lo[0] + view->shift[0] + (u + 0.5) * s->h[0];
	ret[1] = s->lo[1] + view->shift[1] + (v + 0.5) * s->h[1];
	ret[2] = 0;
}

/* Compute where the line from the source of a view through `point` meets the detector: ret[0] = u, ret[1] = v, not rounded.
 * Return false if it does not meet it beyond the source on the side of the point. SCAN_DBT only. */
static inline TOMONODE_HD bool scan_foot(const struct scan *s, const struct scan_view *view, const double point[3], double ret[2])
{
	double corner[3], on_u[3], on_v[3], to[3], n[3], distance, along, d[3], uu, uv, vv, du, dv, area;
	int c;

	scan_bin_at(s, view, 0, 0, corner);
	scan_bin_at(s, view, 1, 0, on_u);
	scan_bin_at(s, view, 0, 1, on_v);
	for (c = 0; c < 3; c++) {
		on_u[c] -= corner[c];
		on_v[c] -= corner[c];
		to[c] = point[c] - view->src[c];
	}
	for (c = 0; c < 3; c++)
		n[c] = on_u[(c + 1) % 3] * on_v[(c + 2) % 3] - on_u[(c + 2) % 3] * on_v[(c + 1) % 3];
	distance = along = 0;
	for (c = 0; c < 3; c++) {
		distance += n[c] * (corner[c] - view->src[c]);
		along += n[c] * to[c];
	}
	if (!(distance * along > 0))
		return false;
	uu = uv = vv = du = dv = 0;
	for (c = 0; c < 3; c++) {
		d[c] = view->src[c] + to[c] * (distance / along) - corner[c];
		uu += on_u[c] * on_u[c];
		uv += on_u[c] * on_v[c];
		vv += on_v[c] * on_v[c];
		du += d[c] * on_u[c];
		dv += d[c] * on_v[c];
	}
	area = uu * vv - uv * uv;
	ret[0] = (vv * du - uv * dv) / area;
	ret[1] = (uu * dv - uv * du) / area;
	return true;
}

/* Compute the end points of the ray of bin (u, v) in a view. DBT: a is the source, b the bin's centre. PARALLEL: the points where
 * it enters and leaves the field of view; a has the negative t. Return false if there is no ray. */
static inline TOMONODE_HD bool scan_ray(const struct scan *s, const struct scan_view *view, int u, int v, double a[3],
					double b[3])
{
	if (s->kind == SCAN_PARALLEL) {
		const struct scan_plane *plane = &s->planes[u];
		double c = view->turn[0], d = view->turn[1], r = s->radius[v], t = scan_reach(s, v);
		double slope = t > 0 ? scan_slope(s, plane->rise, v) : 0;

		a[0] = r * c + t * d;
		a[1] = r * d - t * c;
		a[2] = plane->z - slope * t;
		b[0] = r * c - t * d;
		b[1] = r * d + t * c;
		b[2] = plane->z + slope * t;
		return t > 0;
	}
	a[0] = view->src[0];
	a[1] = view->src[1];
	a[2] = view->src[2];
	scan_bin_at(s, view, u, v, b);
	return true;
}

#endif
