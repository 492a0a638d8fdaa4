/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the DBT session: data and functions shared by its files. */
#ifndef TOMONODE_RECON_DBT_INTERNAL_H
#define TOMONODE_RECON_DBT_INTERNAL_H

#include <pthread.h>

#include "recon/core/iterate_stream.h"
#include "recon/core/session.h"
#include "recon/dbt/dbt_layout.h"
#include "recon/dbt/field_edges.h"

#define DBT_STAGING_BUFFERS 4	/* number of views that can be filled at the same time */
#define DBT_START_DEFAULT 0.05f /* 1/mm, the start value if the data are all zero: about that of glandular tissue at 20 keV */

struct dbt_staging {
	float *line, *valid; /* host memory of the device */
	int view;	     /* -1: free */
};

enum dbt_view_state {
	DBT_VIEW_PENDING = 0, /* not received */
	DBT_VIEW_BEGUN,	      /* dbt_view_begin() was called; the caller fills the buffers */
	DBT_VIEW_ENDING,      /* being checked and sent to the device */
	DBT_VIEW_PRESENT,     /* on the device or, streamed, in host memory */
};

/* Sums for starting_value(); one per view, so that the total does not depend on the order of the views. */
struct dbt_view_sums {
	double y, y2; /* sum of line integrals and of their squares, over valid bins */
	bool cut;     /* a weight is reduced: recon/dbt/field_edges.h */
};

struct dbt_session {
	const struct dbt_protocol *p;
	const struct dbt_plan *plan;
	struct device *dev;
	struct session_memory memory;
	struct dbt_layout layout;
	struct iterate_conf conf;
	struct prior prior; /* conf.prior, if there is one; set by dbt_run() */
	size_t view_bins;
	double opened; /* time of opening, s, monotonic clock */
	bool done;     /* dbt_run() was called */
	bool result;   /* dbt_run() has succeeded */

	/* reception of views; until dbt_run(), `lock` guards these members and the device */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct dbt_staging staging[DBT_STAGING_BUFFERS]; /* resident only */
	enum dbt_view_state *view;
	struct dbt_view_sums *view_sums;
	struct field_ends *ends; /* of each view; with edge_taper */
	int n_received;
	struct view_cells cells; /* with breast_shape or metal: of the merged bins */
	float *cell_means;	 /* of each view, at its place */
	struct breast_shape shape;
	struct metal_view *metal;					  /* with metal: shadows of each view, at its place */
	signed char *metal_of;						  /* those of each object: metal_locate() */
	char no_shape[sizeof(((struct breast_shape_report *)0)->reason)]; /* why it is not to be found; "": it is */
	float *host_columns;						  /* of its lower surface, then of the upper one */

	/* resident: the volume is on the device */
	struct buf x, y, mask, row;
	struct buf columns; /* with breast_shape: those of a surface of the shape */
	struct buf *masks;
	struct linop **ops;
	struct linop *all_views; /* for mark() */
	struct iterate_subset *subsets;
	struct iterate_work work;

	/* streamed: slabs of the volume are copied through the device */
	bool streamed;
	struct iterate_stream stream;
	struct iterate_group *groups;
	struct linop **slab_ops; /* n_groups * n_slabs operators */
	size_t *slab_at, *slab_n;
	float *host_y, *host_valid, *host_row;
	struct buf stream_mask;

	/* slices being read */
	float *out[2];		 /* host memory of the device, one slice each; slice k in out[k % 2] */
	int in_transfer;	 /* the slice being transferred; -1: none */
	struct stored_form form; /* its form; columns 0: floats */
	struct buf stored;	 /* resident: stored values of one slice, on the device */
};

static inline bool dbt_needs_ones(const struct dbt_protocol *p)
{
	return algorithm_info(p->algorithm)->filtered;
}

/* Return the cells of a view. */
static inline float *dbt_cells_of(const struct dbt_session *s, int view)
{
	return s->cell_means + (size_t)s->layout.views.place[view] * (size_t)s->cells.n_u * (size_t)s->cells.n_v;
}

/* Return the floats that the stored values of a slice need. */
static inline size_t dbt_stored_floats(const struct grid *g)
{
	return ((size_t)g->n[0] * (size_t)g->n[1] + 1) / 2;
}

/* dbt_views.c: room for the cells of all views, of a protocol that needs them. merged: the scan with merged bins. */
size_t dbt_cells_host_bytes(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *merged);
int dbt_cells_open(struct dbt_session *s, struct err *err);

/* dbt_views.c: multiply the line integrals of rays that leave the volume where the object continues (recon/dbt/field_edges.h);
 * after all views were received */
int dbt_scale_ends(struct dbt_session *s, struct err *err);

/* dbt_metal.c: metal, with s->metal */
int dbt_metal_open(struct dbt_session *s, struct err *err);
void dbt_metal_close(struct dbt_session *s);
/* Find the shadows of a view in its line integrals. */
int dbt_metal_find(const struct dbt_session *s, int view, const float *line, const float *valid, struct err *err);
/* Find the objects, and replace their shadows in the views. */
int dbt_metal_replace(struct dbt_session *s, struct metal_report *ret_report, struct err *err);
int dbt_metal_put_back(struct dbt_session *s, const struct metal_report *report, struct err *err);

/* dbt_shape.c: the start image with the shape of the breast */
size_t dbt_shape_host_bytes(const struct dbt_protocol *p, const struct dbt_plan *plan); /* host memory that it needs */
int dbt_shape_open(struct dbt_session *s, struct err *err);
/* Find the shape from the cells of all views. */
int dbt_shape_find(struct dbt_session *s, struct dbt_report *report, struct err *err);
/* Multiply the volume, whose support has the starting value, by the weights of the shape, if there is one. */
int dbt_shape_apply(struct dbt_session *s, struct err *err);

/* dbt_resident.c */
int dbt_resident_open(struct dbt_session *s, struct err *err);
int dbt_resident_run(struct dbt_session *s, float start, const struct monitor *monitor, struct dbt_report *report,
		     struct err *err);

/* dbt_streamed.c */
int dbt_streamed_open(struct dbt_session *s, struct err *err);
int dbt_streamed_run(struct dbt_session *s, float start, const struct monitor *monitor, struct err *err);
/* Count the bytes of a plan with slabs of `slices` slices and groups of `views` views. If slabs and groups alone exceed `limit` (0:
 * none), their tables are not counted. */
int dbt_streamed_count(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct dbt_layout *l, struct device *dev,
		       int slices, int views, size_t limit, struct plan_bytes *ret_bytes, struct err *err);

#endif
