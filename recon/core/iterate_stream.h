/* SPDX-License-Identifier: Apache-2.0 */
/* The iteration for a volume that does not fit into the device's memory: slabs of slices are copied to the device in turn. The
 * image is the same as that of iterate_run().
 *
 * A subset is processed in groups of views, as many at a time as fit. One pass over the slabs does the work of two groups: each
 * slab is updated by the current group, immediately adds its part to the line integrals of the next group, and is copied back. If
 * a subset has several groups, the sums A'q and A'd are copied with the slabs, and the update follows the subset's last group.
 *
 * A prior needs the slices before and after a slab as they were before the update. The slice after is uploaded with the slab. The
 * last slice of a slab is copied on the device, before the slab's update, to the place before the next slab. */
#ifndef TOMONODE_RECON_ITERATE_STREAM_H
#define TOMONODE_RECON_ITERATE_STREAM_H

#include "recon/core/iterate.h"

struct iterate_group {
	struct linop *const *op; /* n_slabs operators, from each slab to the group's bins; masked with `mask` */
	size_t bins;
	const float *y, *valid; /* host memory of the device, one value per bin; valid: the content for the mask */
	float *row;		/* host memory; NULL if the rule does not use it; filled by iterate_stream_begin() */
	struct buf mask;	/* on the device; must not overlap the mask of the next group */
	bool first, last;	/* whether this is the first group of its subset; whether it is the last */
};

struct iterate_stream {
	struct device *dev;
	const struct iterate_group *group;
	int n_groups, n_slabs;
	const size_t *slab_at, *slab_n; /* index of each slab's first voxel in the volume; number of its voxels */
	float *x, *num, *den; /* volumes in host memory of the device; num and den are used only if a subset has several groups */
	/* on the device: three slabs of x, with a prior each between two more slices; three of num and of den if they are copied,
	 * one if they are not copied and the passes are not fused or there is a prior */
	struct buf slab[3], slab_num[3], slab_den[3];
	size_t halo;		    /* voxels of a slice; 0: no prior */
	struct buf y, row, p, pair; /* on the device: memory for the largest group; row is used only if the rule needs it */
};

/* Return the number of floats needed on the device, without the masks, for slabs of at most `slab` voxels and groups of at most
 * `bins` bins. rows: the rule uses row; grouped: a subset has several groups; fused: the operators have fused passes; halo: as in
 * struct iterate_stream. */
size_t iterate_stream_size(size_t slab, size_t bins, bool rows, bool grouped, bool fused, size_t halo);

/* Set x to `start` in the support (voxels that at least one ray crosses and that are air in no view), to 0 elsewhere. Fill the
 * `row` of every group: with the length of each ray in the support (`lengths`), with 1 (`ones`), or not at all (neither). */
int iterate_stream_begin(struct iterate_stream *s, float start, bool lengths, bool ones, const struct monitor *monitor,
			 struct err *err);
int iterate_stream_run(struct iterate_stream *s, const struct iterate_conf *conf, const struct monitor *monitor, struct err *err);

#endif
