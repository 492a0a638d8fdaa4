/* SPDX-License-Identifier: Apache-2.0 */
/* Divide the views of a scan into ordered subsets. */
#ifndef TOMONODE_RECON_SUBSETS_H
#define TOMONODE_RECON_SUBSETS_H

#include "kernels/err.h"

/* Divide n_views views into n_subsets subsets (0: one per view). position: position of each view's source along its arc (any
 * monotonic measure), n_views elements in any order. Subset s has the views ret_order[ret_first[s]] .. ret_order[ret_first[s + 1]
 * - 1]; each subset covers the whole arc, and consecutive subsets are far apart. ret_order: n_views elements; ret_first:
 * n_subsets + 1. Return the number of subsets. */
int subsets_make(const double *position, int n_views, int n_subsets, int *ret_order, int *ret_first, struct err *err);

/* Compute the inverse of an order: ret_place[order[i]] = i. */
void subsets_places(const int *order, int n_views, int *ret_place);
/* Return the number of views of the largest subset. */
int subsets_largest(const int *first, int n_subsets);

/* Views in processing order. */
struct subsets {
	int *order; /* view i is the data's view order[i] */
	int *place; /* the inverse: the data's view i is view place[i] */
	int *first; /* subset s: views first[s] .. first[s + 1] - 1 */
	int n_subsets, largest_subset;
};

/* The same with memory of its own, which the caller releases. position(): of a view. */
int subsets_create(double (*position)(const void *ctx, int view), const void *ctx, int n_views, int n_subsets,
		   struct subsets *ret_subsets, struct err *err);
void subsets_release(struct subsets *s); /* accepts an empty one */

#endif
