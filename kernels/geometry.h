/* Geometry as plain data, shared with the GPU: C11, C++17 and CUDA C++. No pointers to host objects but `views`.
 *
 * Units are mm. Bins are stored u fastest, then v, then view; voxels in the order of the grid.
 * A volume is a `struct grid`; a set of rays is a `struct scan`. The one place where a bin becomes a line is scan_ray().
 *
 * SCAN_DBT, digital breast tomosynthesis: x away from the chest wall (x = 0 is the detector's chest-wall edge), y along the chest
 * wall (0 in the detector's middle), z up from the detector plane (z = 0). u runs along x, v along y.
 * A ray goes from the view's source to the centre of bin (u, v), which lies in the plane z = 0.
 *
 * SCAN_PARALLEL, views of parallel rays: PET sinograms of a cylindrical scanner and 2-D parallel beam. z along the scanner's
 * axis, (0, 0, 0) in its middle. u is the plane, v the radial bin, a view one angle phi. With r = radius[v], the point t of the
 * ray is (r cos phi - t sin phi, r sin phi + t cos phi, z_u + rise_u t / w), where w = sqrt(ring_radius^2 - r^2) and rise_u is
 * half the axial distance between the ray's ends on the ring. The ray is cut to the cylinder of fov_radius; one with |r| >=
 * fov_radius does not exist: its bin is 0 and counts nowhere.
 */
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

/* n voxels of h mm along each axis; `lo` is the lower corner of voxel 0 (not its centre).
 * A vector of the volume lies x fastest, then y, then z. With z_fastest it lies z fastest, then x, then y, and each column of
 * n[2] voxels is followed by padding up to a multiple of 4 floats: operators do not look at the padding and leave 0 there. */
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

struct scan_view {
	double src[3];	 /* source (focal spot), mm */
	double shift[2]; /* of the detector along x and y against scan.lo, mm; 0 where it stands still */
	double turn[2];	 /* SCAN_PARALLEL, which has no source: cos phi, sin phi */
};

/* A plane of SCAN_PARALLEL. Those of equal rise lie together, in ascending z. */
struct scan_plane {
	double z;    /* in the middle of its rays, mm */
	double rise; /* from there to the end of the ray on the ring, mm; 0: perpendicular to the axis */
};

struct scan {
	enum scan_kind kind;
	int n_u, n_v, n_views;
	double h[2];		       /* bin pitch along u and v */
	double lo[2];		       /* x and y of the lower corner of bin (0, 0) */
	const struct scan_view *views; /* n_views of them; borrowed */
	/* SCAN_PARALLEL, where h and lo mean nothing; borrowed like the views */
	const struct scan_plane *planes; /* n_u */
	const double *radius;		 /* n_v, ascending, mm */
	double ring_radius;		 /* where the rays end; only rises look at it */
	double fov_radius;		 /* > 0; not above ring_radius where there are rises */
};

/* Floats from one column of a z-fastest volume to the next. */
static inline TOMONODE_HD size_t grid_column(const struct grid *g)
{
	return ((size_t)g->n[2] + 3) & ~(size_t)3;
}

/* Floats of a vector, padding included. */
static inline TOMONODE_HD size_t grid_size(const struct grid *g)
{
	return (size_t)g->n[0] * (size_t)g->n[1] * (g->z_fastest ? grid_column(g) : (size_t)g->n[2]);
}

/* Floats from a voxel to the next along an axis. */
static inline TOMONODE_HD size_t grid_step(const struct grid *g, int axis)
{
	if (g->z_fastest)
		return axis == 2 ? 1 : axis == 0 ? grid_column(g) : (size_t)g->n[0] * grid_column(g);
	return axis == 0 ? 1 : axis == 1 ? (size_t)g->n[0] : (size_t)g->n[0] * (size_t)g->n[1];
}

/* Bins of one view. */
static inline TOMONODE_HD size_t scan_view_size(const struct scan *s)
{
	return (size_t)s->n_u * (size_t)s->n_v;
}

/* Half the length of the transaxial path of a radial bin inside the field of view; 0: no ray. SCAN_PARALLEL. */
static inline TOMONODE_HD double scan_reach(const struct scan *s, int v)
{
	double r = s->radius[v], left = s->fov_radius * s->fov_radius - r * r;

	return left > 0 ? sqrt(left) : 0;
}

/* Axial mm per transaxial mm of a ray. SCAN_PARALLEL. */
static inline TOMONODE_HD double scan_slope(const struct scan *s, double rise, int v)
{
	double r = s->radius[v];

	return rise == 0 ? 0 : rise / sqrt(s->ring_radius * s->ring_radius - r * r);
}

/* End points of the ray of bin (u, v) in a view. DBT: a is the source, b the bin's centre. PARALLEL: where it enters and leaves
 * the field of view, a at negative t. False: there is no ray. */
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
	b[0] = s->lo[0] + view->shift[0] + (u + 0.5) * s->h[0];
	b[1] = s->lo[1] + view->shift[1] + (v + 0.5) * s->h[1];
	b[2] = 0;
	return true;
}

#endif
