/* The steps of a session of parallel beams: what its files share, and what the benchmark (recon/bench) measures one by one. */
#ifndef TOMONODE_RECON_PARALLEL_SESSION_H
#define TOMONODE_RECON_PARALLEL_SESSION_H

#include "recon/core/iterate.h"
#include "recon/parallel/parallel.h"

#define PARALLEL_BINS_MAX 65535

/* What is done with a stack; the Radon transform is one of them. */
enum parallel_work {
	PARALLEL_WORK_BACK = 1, /* BP and FBP */
	PARALLEL_WORK_ROWS,	/* ART: ray by ray */
	PARALLEL_WORK_RULE,	/* SART, MLEM, OSEM: all views, or subsets of them */
	PARALLEL_WORK_RADON,
};
enum parallel_work parallel_work_of(const struct parallel_protocol *p);

/* parallel_plan.c: views in the order in which they are worked on. */
struct parallel_views {
	int *order; /* the scan's view i is angle order[i] */
	int *first; /* subset s: views first[s] .. first[s + 1] - 1 */
	int n_subsets, largest_subset;
};
int parallel_views_make(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work,
			struct parallel_views *ret_views, struct err *err);
void parallel_views_clear(struct parallel_views *v); /* an empty one is fine */

/* The grid of n slices of the plan's. */
struct grid parallel_grid(const struct grid *whole, int n);
struct projection_spec parallel_spec(const struct parallel_protocol *p, enum parallel_work work, const struct scan *scan,
				     const struct grid *grid, int first, int n_views);
/* Fills the plan's bytes, and part_slices with the most slices that fit. */
int parallel_fit(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work, struct device *dev,
		 struct parallel_plan *plan, struct err *err);
/* The scan as FBP works on it: rows lengthened by zeros on both sides, as far as the farthest pixel, because a filtered row goes
 * on where its data end. Else, and where rays reach far enough: s. */
struct parallel_scan parallel_reach(const struct parallel_protocol *p, const struct parallel_scan *s,
				    const struct parallel_plan *plan);
int parallel_check_protocol(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work,
			    struct err *err);

/* What is there while slices [first, first + n) are worked on. */
struct parallel_session {
	const struct parallel_protocol *p;
	const struct parallel_plan *plan;
	const struct parallel_scan *s; /* parallel_reach() */
	int pad;		       /* bins of it before and behind each row of the caller's */
	struct device *dev;
	const struct monitor *monitor;
	enum parallel_work work;
	struct parallel_views views;
	double unit;	  /* data are multiplied by this power of two, volumes divided: see parallel_rule.c */
	double data_mean; /* times unit; of the rules */

	int n; /* slices that the following is made for; 0: nothing is there */
	struct grid grid;
	struct scan *scan;
	struct buf x, y;
	float *bins, *out;	    /* host memory of the device: data and volume as the device has them */
	struct projection *a;	    /* but for the rules, which have operators */
	struct parallel_back *back; /* each its own */
	struct parallel_rows *rows;
	struct parallel_rule *rule;

	const float *lines;	  /* of the caller */
	int first, done;	  /* slices of the part and those done before */
	double sum_gap, sum_data; /* |A x - y|^2, |y|^2 */
	double seconds_filter, seconds_iterate;
};

/* parallel.c: makes what belongs to n slices, and frees it; s->views are there. */
int parallel_part_open(struct parallel_session *s, int n, struct err *err);
void parallel_part_clear(struct parallel_session *s);

/* parallel_slices.c: between the caller's order and the device's. scale: a factor for each angle, NULL: s->unit for all. */
const float *parallel_row(const struct parallel_session *s, const float *lines, int slice, int view);
void parallel_bins_in(const struct parallel_session *s, const double *scale, float *ret_bins);
void parallel_bins_out(const struct parallel_session *s, const float *bins, float *ret_lines);
void parallel_volume_in(const struct parallel_session *s, const float *volume, float *ret_out);
void parallel_volume_out(const struct parallel_session *s, const float *out, float least, float *ret_volume);
/* A value for each slice in every pixel whose middle is in the field of view, else 0. */
void parallel_volume_level(const struct parallel_session *s, const double *level, float *ret_out);

/* Progress over all parts: `fraction` of this one. False: cancelled. */
bool parallel_continues(const struct parallel_session *s, double fraction);

/* Made for s->n slices; run for [first, first + n). Each leaves its volume in s->x. */
int parallel_back_open(struct parallel_session *s, struct err *err);
int parallel_back_run(struct parallel_session *s, struct err *err);
void parallel_back_clear(struct parallel_session *s);
int parallel_rows_open(struct parallel_session *s, struct err *err);
int parallel_rows_run(struct parallel_session *s, struct err *err);
void parallel_rows_clear(struct parallel_session *s);
int parallel_rule_open(struct parallel_session *s, struct err *err);
int parallel_rule_run(struct parallel_session *s, struct err *err);
void parallel_rule_clear(struct parallel_session *s);
void parallel_rule_prepare(struct parallel_session *s); /* what all slices have in common, before any is worked on */

#endif
