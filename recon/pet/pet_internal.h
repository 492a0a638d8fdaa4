/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the PET session: data and functions shared by its files. */
#ifndef TOMONODE_RECON_PET_INTERNAL_H
#define TOMONODE_RECON_PET_INTERNAL_H

#include <pthread.h>
#include <stdint.h>

#include "recon/core/iterate.h"
#include "recon/core/psf.h"
#include "recon/core/session.h"
#include "recon/core/subsets.h"
#include "recon/pet/pet.h"

#define PET_ROLES (PET_BACKGROUND + 1) /* arrays by role; 0 is none */

/* pet_layout.c: the rays, in the order of subsets and groups; shared by plan and session. */
struct pet_layout {
	struct scan *scan;    /* views in the order of the subsets */
	int *plane;	      /* the scan's plane u is the michelogram's plane[u] */
	struct subsets views; /* those of the michelogram are its angles */
	/* `scan` with one TOF bin as wide as all of them; without time of flight a copy. A view of it is a view of shared factors
	 */
	struct scan wide;
	/* FBP: direct planes, radial bins at equal distances; views are those of `scan` */
	struct scan direct;
	struct scan_plane *direct_planes;
	double *direct_radius, direct_pitch;
};

int pet_layout_make(const struct pet_protocol *p, const struct michelogram *m, double fov_radius, struct pet_layout *ret_layout,
		    struct err *err);
void pet_layout_release(struct pet_layout *l); /* accepts an empty one */
/* Divide the subsets into groups of at most `views` views, of nearly equal size (0: whole subsets). Group i begins with view
 * ret_first[i], and ret_first[n] is n_views; room for n_views + 1. Return the number n of groups. */
int pet_layout_groups(const struct pet_layout *l, int views, int *ret_first);
/* Return the scan to project: the rays, or FBP's direct planes. */
const struct scan *pet_layout_scan(const struct pet_layout *l, const struct pet_protocol *p);
struct projection_spec pet_layout_spec(const struct pet_layout *l, const struct pet_protocol *p, const struct grid *grid,
				       int first, int n_views);

/* With time of flight the sensitivity is computed from the factors in host memory, a few views at a time, with operators that
 * exist only then. Return the scan of these operators, and the views of a piece of a part of n_views views. */
const struct scan *pet_layout_sensitivity_scan(const struct pet_layout *l, enum pet_factors factors);
int pet_layout_piece(int n_views);
/* Return whether the device has the data of this role. With time of flight it has no factors: y and b are divided by m. */
bool pet_layout_loads(const struct pet_layout *l, enum pet_role role);

/* pet_plan.c: the parts of a plan that do not depend on the kind of data. check_protocol(): `of`: what subsets divide, "angles" or
 * "events", and how many there are; EINVAL: a key is out of range. plan_grid(): the volume of a scanner, centred on 0. */
#define FOV_OF_RING 0.98 /* largest part of the radius where rays end; at 1 the outermost rays would have no length */
struct pet_extent {
	double ring;   /* radius of the ring where rays end, mm */
	double radius; /* largest distance of a ray from the axis, mm */
	double length; /* along the axis, mm */
	double slice;  /* default thickness of a slice, mm */
};
int pet_check_protocol(const struct pet_protocol *p, bool (*supports)(enum algorithm a), const char *of, size_t count,
		       struct err *err);
int pet_plan_grid(const struct pet_protocol *p, const struct pet_extent *c, struct grid *ret_grid, double *ret_fov_radius,
		  struct err *err);

/* pet_slices.c: a result in host memory. read(): as pet_read_slices(); ready: the computation is complete. */
struct pet_result {
	const struct grid *grid;
	double fov_radius, postfilter; /* mm; FWHM, mm */
	double unit;		       /* the values were multiplied by this */
	const float *out;	       /* in the device's order */
	bool ready;
	const char *run; /* the function that makes it ready */
};
int pet_result_read(const struct pet_result *s, int first, int n, float *ret_slices, struct err *err);
/* Apply the post-filter to x, and download it. work, to: volumes, used with a filter. */
int pet_filter_image(const struct pet_protocol *p, const struct grid *g, struct buf *x, struct buf *work, struct buf *to,
		     float *out, struct err *err);
/* Return whether the centre of column i (y n_x + x) is in the field of view. */
bool pet_column_inside(const struct grid *g, double radius, size_t i);
/* Set the voxels of the field of view to `level`, others to 0; also those whose sensitivity (NULL: not used) is at most `least`. */
void pet_draw_start(const struct grid *g, double radius, const float *sensitivity, float least, float level, float *ret_x);
/* Return a power of two to multiply counts by (no rounding): 1 if the level of the start is within 1e-3 .. 1e6. x is compared with
 * an absolute least value (kernels/rules.h), and the range of a float is limited. */
double pet_unit_of(double level);

/* The volumes that a session has on the device, by purpose. */
struct pet_volumes {
	int den;    /* sensitivity images */
	bool em;    /* x and num */
	bool scale; /* BSREM */
	bool spare; /* two for the post-filter of FBP */
	bool psf;   /* PSF_WORK_VOLUMES of the resolution model */
};
struct pet_volumes pet_volumes_of(const struct pet_protocol *p, int n_subsets, bool streamed);

/* State of a plane, and sums over its bins. */
struct pet_plane {
	bool begun, received; /* pet_put() has accepted it; all its bins are stored */
	double all, seen;     /* sum over all bins; over the radial bins that have rays */
	uint64_t hash;	      /* factors only */
};

/* Sums over the bins that count: all bins, or those with m > 0 if there are factors. */
struct pet_counts {
	double all;			  /* data, with the radial bins that have no rays; the other sums are without these */
	double data, background, factors; /* factors: without any, m = 1 */
	double bins;			  /* number of bins */
};

struct pet_sensitivity; /* pet_cache.c */

struct pet_session {
	const struct pet_protocol *p;
	const struct pet_plan *plan;
	const struct michelogram *m;
	struct device *dev;
	struct session_memory memory;
	struct pet_cache *cache; /* may be NULL */
	struct pet_layout layout;
	enum pet_factors factors;
	bool has[PET_ROLES];   /* roles that pet_open() announced */
	bool loads[PET_ROLES]; /* roles among them that the device has */
	size_t view_bins;      /* bins per view of layout.scan */
	double opened;	       /* time of opening, s, monotonic clock */
	bool done;	       /* pet_run() was called */
	bool result;	       /* pet_run() has succeeded */

	/* reception of planes; `lock` guards `plane` and `n_received` */
	pthread_mutex_t lock;
	float *host[PET_ROLES]; /* host memory of the device, bins in the scan's order */
	struct pet_plane *plane[PET_ROLES];
	int n_planes;					/* of a TOF bin */
	int expected[PET_ROLES], n_received[PET_ROLES]; /* planes of all TOF bins */
	int *u_of;					/* index in the scan of the michelogram's plane i: u_of[i] */
	int v_first, v_end;				/* radial bins that have rays */
	struct pet_counts counts;			/* set by pet_run() */

	/* device */
	struct buf x, scale, spare[2], psf_work[PSF_WORK_VOLUMES];
	struct iterate_work work;
	struct buf *den;	       /* n_subsets elements; streamed: all the same buffer, filled by pet_parts_load() */
	struct buf data[2][PET_ROLES]; /* resident: [0] holds everything; streamed: one group each */

	/* EM */
	struct iterate_part *parts; /* in the order of views */
	struct linop **ops;	    /* operators of parts; NULL: not yet created */
	struct iterate_subset *subsets;
	int *part_first, n_parts; /* part i: views part_first[i] .. part_first[i + 1] - 1 */
	int current_part, slot;	  /* streamed: the part whose data are in data[slot] or on the way there; -1: none */
	struct pet_sensitivity *sensitivity;
	bool den_ready; /* streamed: sensitivity images exist on the host; pet_parts_load() uploads them */

	/* FBP */
	float *direct; /* host memory of the device: filtered direct planes, in the order of layout.direct */

	float *out;  /* host memory of the device: the start, then the result in the device's order */
	double unit; /* power of two by which data are multiplied, so that x is about 1 or not far below */
};

static inline bool pet_is_tof(const struct pet_session *s)
{
	return s->layout.scan->tof.n > 0;
}

/* Return the number of bins of one radial bin of a role: of all planes and TOF bins. */
static inline size_t pet_row(const struct pet_session *s, enum pet_role role)
{
	bool shared = role == PET_FACTORS && s->factors == PET_FACTORS_SHARED;

	return (size_t)s->n_planes * (size_t)(shared ? 1 : scan_ray_bins(s->layout.scan));
}

/* Return the number of bins of one view of a role. */
static inline size_t pet_view(const struct pet_session *s, enum pet_role role)
{
	return pet_row(s, role) * (size_t)s->layout.scan->n_v;
}

static inline bool pet_is_streamed(const struct pet_session *s)
{
	return s->plan->group_views > 0;
}

/* pet_cache.c: sensitivity images in host memory, one cache for each device. The key identifies the images in a cache. */
struct pet_key {
	uint64_t geometry, factors;
};
struct pet_key pet_key_of(const struct pet_session *s);
/* Check that the cache belongs to dev; EINVAL: to another device. c may be NULL (no cache). */
int pet_cache_check(const struct pet_cache *c, const struct device *dev, struct err *err);
/* Return cached images with this key and mark them as used; NULL: not cached, damaged, or c is NULL. */
struct pet_sensitivity *pet_cache_find(struct pet_cache *c, const struct pet_key *key, size_t floats);
/* Allocate images; only the caller may use them until pet_cache_add(). NULL: out of memory. */
struct pet_sensitivity *pet_sensitivity_new(const struct pet_key *key, size_t floats);
/* Store computed images for later sessions. Does nothing if c is NULL. */
void pet_cache_add(struct pet_cache *c, struct pet_sensitivity *s);
/* End the use of images; free them if they are not in the cache. Accepts NULL; returns NULL. */
struct pet_sensitivity *pet_sensitivity_release(struct pet_sensitivity *s, struct pet_cache *c);
float *pet_sensitivity_images(struct pet_sensitivity *s);

/* pet_put.c: return a hash of `hash` and n bytes */
uint64_t pet_hash(uint64_t hash, const void *bytes, size_t n);
/* Return a hash that is a sum, so that rows can be hashed in any order; `at`: number of the row's first bin in the michelogram.
 */
uint64_t pet_hash_row(const float *row, int n, uint64_t at);

/* pet_counts.c: set y and b of the bins that do not count to 0, and s->counts; after all planes were received. EM with time of
 * flight: divide b by m. */
int pet_counts_take(struct pet_session *s, struct err *err);

/* pet_em.c; pet_em_parts.c: operators, data and sensitivity images */
int pet_em_open(struct pet_session *s, struct err *err);
int pet_em_run(struct pet_session *s, const struct monitor *monitor, struct pet_report *report, struct err *err);
void pet_em_release(struct pet_session *s);
int pet_parts_open(struct pet_session *s, struct err *err);
int pet_parts_load(void *session, struct iterate_part *part, struct err *err);
/* Compute the sensitivity image (den) of every subset, and their sum in work.num. */
int pet_parts_sensitivity(struct pet_session *s, bool *ret_cached, struct err *err);
void pet_parts_release(struct pet_session *s);

/* pet_fbp.c */
int pet_fbp_open(struct pet_session *s, struct err *err);
int pet_fbp_run(struct pet_session *s, const struct monitor *monitor, struct err *err);

#endif
