/* SPDX-License-Identifier: Apache-2.0 */
/* Private to parallel beams: data and functions shared by their files. */
#ifndef TOMONODE_RECON_PARALLEL_INTERNAL_H
#define TOMONODE_RECON_PARALLEL_INTERNAL_H

#include "recon/core/iterate.h"
#include "recon/parallel/parallel_session.h"

#define PARALLEL_BINS_MAX 65535

/* Return the kind of work of the protocol's algorithm. */
enum parallel_work parallel_work_of(const struct parallel_protocol *p);

/* Return the plan's grid with n slices about z = 0. */
struct grid parallel_grid(const struct grid *whole, int n);
struct projection_spec parallel_spec(const struct parallel_protocol *p, enum parallel_work work, const struct scan *scan,
				     const struct grid *grid, int first, int n_views);
/* Return the scan for FBP: rows padded with zeros on both sides up to the farthest pixel, because a filtered row continues beyond
 * its data. Return *s for other algorithms, and if rays reach far enough. */
struct parallel_scan parallel_padded_scan(const struct parallel_protocol *p, const struct parallel_scan *s,
					  const struct parallel_plan *plan);
int parallel_check_protocol(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work,
			    struct err *err);

/* parallel_slices.c: copy from the device's order to the caller's; parallel_session.h has the opposite direction. */
const float *parallel_row(const struct parallel_session *s, const float *lines, int slice, int view);
void parallel_bins_out(const struct parallel_session *s, const float *bins, float *ret_lines);
void parallel_volume_out(const struct parallel_session *s, const float *out, float least, float *ret_volume);
/* Set the bins without datum of s->s->gaps, in the device's order, to `value`. Return false, and do nothing, if there are none. */
bool parallel_gaps_in(const struct parallel_session *s, float value, float *bins);
/* Set every pixel with its centre in the field of view to the value of its slice, others to 0. */
void parallel_volume_level(const struct parallel_session *s, const double *level, float *ret_out);

/* parallel_faults.c: find the slices that have a fault, unlike the rest. each: what the views of each slice say, n_slices
 * elements. fault: n_slices elements, 0 before; an enum parallel_fault after. */
void parallel_find_faults(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *each,
			  const struct monitor *monitor, unsigned char *fault, struct parallel_faults *ret);
/* Return true if the axis of the sum of the slices is that of too few of them to be the axis of all. */
bool parallel_axes_differ(const struct parallel_scan *s, const struct parallel_consistency *each, const unsigned char *fault,
			  double axis);
/* parallel_consistency.c: return the median; sorts the values. */
double parallel_median(double *values, int n);

/* Report progress over all parts; `fraction`: of this part. Return false if cancelled. */
bool parallel_continues(const struct parallel_session *s, double fraction);

/* One group of functions per kind of work. _open(): allocate memory for s->n slices. _run(): process slices [first, first + n);
 * the result is in s->x. _release(): free the memory. */
/* Does the device filter? Else the host does, before the upload. */
bool parallel_back_filters(const struct parallel_protocol *p, const struct device *dev, int n_radial);
int parallel_back_open(struct parallel_session *s, struct err *err);
void parallel_back_release(struct parallel_session *s);
int parallel_rows_open(struct parallel_session *s, struct err *err);
int parallel_rows_run(struct parallel_session *s, struct err *err);
int parallel_rule_open(struct parallel_session *s, struct err *err);
int parallel_rule_run(struct parallel_session *s, struct err *err);
void parallel_rule_scale(struct parallel_session *s); /* set s->unit and s->data_mean; call it before the first part */

#endif
