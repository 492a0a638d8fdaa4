/* The iteration for a device that does not hold the volume: slabs of slices pass through it. Same image as iterate_run().
 *
 * A subset is worked through in groups of views, as many at a time as fit. One trip over the slabs does the work of two groups:
 * each slab is updated by the group at hand, at once adds its part to the line integrals of the next, and goes back. Where a
 * subset has several groups, the sums A'q and A'd travel with the slabs and the update follows the subset's last group.
 */
#ifndef TOMONODE_RECON_ITERATE_STREAM_H
#define TOMONODE_RECON_ITERATE_STREAM_H

#include "recon/core/iterate.h"

struct iterate_group {
	struct linop *const *op; /* n_slabs of them: from each slab to the group's bins; masked with `mask` */
	size_t bins;
	const float *y, *valid; /* host memory of the device: bins of them; valid: what the mask is to hold */
	float *row;		/* host memory; NULL where the rule does not want it: filled by iterate_stream_begin() */
	struct buf mask;  /* on the device: a part of iterate_stream.mask, another one than that of the group that follows */
	bool first, last; /* of its subset */
};

struct iterate_stream {
	struct device *dev;
	const struct iterate_group *group;
	int n_groups, n_slabs;
	const size_t *slab_at, *slab_n; /* voxels of each slab in the volume */
	float *x, *num, *den; /* host memory of the device: volumes; num and den only where a subset has several groups */
	/* device: three slabs of each that travels; num and den once where they do not and the passes are not fused */
	struct buf slab[3], slab_num[3], slab_den[3];
	struct buf y, row, p, pair; /* device: of the largest group; row only where it is wanted */
};

/* Floats on the device, for slabs of at most `slab` voxels and groups of at most `bins` bins; without the masks. */
size_t iterate_stream_size(size_t slab, size_t bins, bool rows, bool grouped, bool fused);

/* x becomes `start` where a ray meets a voxel and no view sees air, else 0; rows are filled where the rule wants them: lengths in
 * the support, or 1 for everything. */
int iterate_stream_begin(struct iterate_stream *s, float start, bool lengths, bool ones, const struct monitor *monitor,
			 struct err *err);
int iterate_stream_run(struct iterate_stream *s, const struct iterate_conf *conf, const struct monitor *monitor, struct err *err);

#endif
