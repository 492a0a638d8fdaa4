/* SPDX-License-Identifier: Apache-2.0 */
/* The iteration for a volume that does not fit into the device's memory: slabs of slices are copied to the device in turn. The
 * image is the same as that of iterate_run().
 *
 * A subset is processed in groups of views, as many at a time as fit. One pass over the slabs does the work of two groups: each
 * slab is updated by the current group, immediately adds its part to the line integrals of the next group, and is copied back. If
 * a subset has several groups, the sums A'q and A'd are copied with the slabs, and the update follows the subset's last group. */
#ifndef TOMONODE_RECON_ITERATE_STREAM_H
#define TOMONODE_RECON_ITERATE_STREAM_H

#include "recon/core/iterate.h"

struct iterate_group {
	struct linop *const *op; /* n_slabs operators, from each slab to the group's bins; masked with `mask` */
	size_t bins;
	const float *y, *valid; /* host memory of the device, one value per bin; valid: the content for the mask */
	float *row;		/* host memory; NULL if the rule does not use it; filled by iterate_stream_begin() */
	struct buf mask;	/* on the device: a part of iterate_stream.mask that the next group does not use */
	bool first, last;	/* the first, the last group of its subset */
};

struct iterate_stream {
	struct device *dev;
	const struct iterate_group *group;
	int n_groups, n_slabs;
	const size_t *slab_at, *slab_n; /* index of each slab's first voxel in the volume; number of its voxels */
	float *x, *num, *den;		/* host memory of the device: volumes; num and den only if a subset has several groups */
	/* device: three slabs of each volume that is copied; one of num and den if they are not copied and the passes are not
	 * fused */
	struct buf slab[3], slab_num[3], slab_den[3];
	struct buf y, row, p, pair; /* device: memory for the largest group; row only if the rule uses it */
};

/* Return the floats needed on the device for slabs of at most `slab` voxels and groups of at most `bins` bins, without the
 * masks. */
size_t iterate_stream_size(size_t slab, size_t bins, bool rows, bool grouped, bool fused);

/* Set x to `start` in voxels that a ray meets and no view sees as air, else to 0. If the rule uses rows, fill them: with the
 * lengths in the support, or with 1. */
int iterate_stream_begin(struct iterate_stream *s, float start, bool lengths, bool ones, const struct monitor *monitor,
			 struct err *err);
int iterate_stream_run(struct iterate_stream *s, const struct iterate_conf *conf, const struct monitor *monitor, struct err *err);

#endif
