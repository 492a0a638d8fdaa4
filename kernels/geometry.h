/* Geometry as plain data, shared with the GPU: C11, C++17 and CUDA C++. No pointers to host objects but `views`.
 *
 * Units are mm. Arrays are stored x (u) fastest, then y (v), then z (view).
 * A volume is a `struct grid`; a set of rays is a `struct scan`. The one place where a bin becomes a line is scan_ray().
 *
 * SCAN_DBT, digital breast tomosynthesis: x away from the chest wall (x = 0 is the detector's chest-wall edge), y along the chest
 * wall (0 in the detector's middle), z up from the detector plane (z = 0). u runs along x, v along y.
 * A ray goes from the view's source to the centre of bin (u, v), which lies in the plane z = 0.
 */
#ifndef TOMONODE_KERNELS_GEOMETRY_H
#define TOMONODE_KERNELS_GEOMETRY_H

#include <stddef.h>

#ifdef __CUDACC__
#define TOMONODE_HD __host__ __device__
#else
#define TOMONODE_HD
#endif

/* n voxels of h mm along each axis; `lo` is the lower corner of voxel 0 (not its centre). */
struct grid {
	int n[3];
	double h[3];
	double lo[3];
};

enum scan_kind {
	SCAN_DBT = 1,
};

struct scan_view {
	double src[3];	 /* source (focal spot), mm */
	double shift[2]; /* of the detector along x and y against scan.lo, mm; 0 where it stands still */
};

struct scan {
	enum scan_kind kind;
	int n_u, n_v, n_views;
	double h[2];		       /* bin pitch along u and v */
	double lo[2];		       /* x and y of the lower corner of bin (0, 0) */
	const struct scan_view *views; /* n_views of them; borrowed */
};

static inline TOMONODE_HD size_t grid_size(const struct grid *g)
{
	return (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];
}

/* Bins of one view. */
static inline TOMONODE_HD size_t scan_view_size(const struct scan *s)
{
	return (size_t)s->n_u * (size_t)s->n_v;
}

/* End points of the ray of bin (u, v) in a view: a is the source, b the bin's centre. */
static inline TOMONODE_HD void scan_ray(const struct scan *s, const struct scan_view *view, int u, int v, double a[3],
					double b[3])
{
	a[0] = view->src[0];
	a[1] = view->src[1];
	a[2] = view->src[2];
	b[0] = s->lo[0] + view->shift[0] + (u + 0.5) * s->h[0];
	b[1] = s->lo[1] + view->shift[1] + (v + 0.5) * s->h[1];
	b[2] = 0;
}

#endif
