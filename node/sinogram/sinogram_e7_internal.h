/* SPDX-License-Identifier: Apache-2.0 */
/* An acquisition that the e7tools exported. Private to node/sinogram/sinogram_e7*.c. */
#ifndef TOMONODE_NODE_SINOGRAM_E7_INTERNAL_H
#define TOMONODE_NODE_SINOGRAM_E7_INTERNAL_H

#include "node/sinogram/sinogram_internal.h"

#define E7_PATH_SIZE 4096

enum e7_file { E7_NORM, E7_ATTENUATION, E7_RANDOMS, E7_SCATTER, E7_FILES };

/* A data file: floats [TOF bin][plane][angle][radial bin], in the order of the prompts. */
struct e7_data {
	char path[E7_PATH_SIZE]; /* "": missing */
	int fd;			 /* -1: not open */
	uint64_t skip;		 /* bytes before the values */
	size_t planes;		 /* of one TOF bin */
	bool tof;		 /* has TOF bins */
	bool big_endian;
};

struct e7 {
	struct sinogram_source source;
	struct e7_data data[E7_FILES];
	size_t planes, angles, radial; /* of a TOF bin of the prompts */
	size_t tof;		       /* TOF bins, at least 1 */
	size_t (*direct)[2];	       /* [plane]: the direct planes at its middle; if they differ, it is between both */
	float *norm, *scatter[2];      /* buffers of a plane */
};

/* Compute e->direct from the segments of the prompts. */
int e7_find_direct(struct e7 *e, const struct michelogram *m, struct err *err);
/* Take the normalisation for one without TOF bins if it is the same in all. It is read once if it is the same, else up to the
 * first difference. */
int e7_share_norm(struct e7 *e, struct err *err);
/* Functions for sinogram_stream.make; ctx: a struct e7. */
int e7_make_norm(void *ctx, size_t plane, float *ret_values, struct err *err);
int e7_make_attenuation(void *ctx, size_t plane, float *ret_values, struct err *err);
int e7_make_additive(void *ctx, size_t plane, float *ret_values, struct err *err);

#endif
