/* SPDX-License-Identifier: Apache-2.0 */
/* Private to single scatter simulation: the scatter points, and how bins are interpolated between sampled pairs. */
#ifndef TOMONODE_RECON_SINGLE_SCATTER_INTERNAL_H
#define TOMONODE_RECON_SINGLE_SCATTER_INTERNAL_H

#include "recon/scatter/single_scatter.h"

#define WINDOW_LEAST 1e-5 /* a photon that the window accepts less often than this relative to 511 keV is not simulated */

/* Choose the scatter points (recon/scatter/single_scatter.h); the caller frees them. conf: without zeros. EDOM: none. */
int single_scatter_points(const struct single_scatter_conf *conf, const struct grid *g, const float *mu, float (**ret_points)[4],
			  size_t *ret_n, struct err *err);

/* Return the number of cells, each of which has at most one point. */
size_t single_scatter_cells(const struct single_scatter_conf *conf, const struct grid *g);

struct scatter_tap { /* between two neighbours */
	int at[2];
	float weight[2];
};

/* Where a bin is among the sampled detectors of two rings. */
struct scatter_bin {
	int link[4]; /* link of two detectors; n_links: none, its value is 0 */
	float weight[4];
};

/* A link is an ordered pair of different sampled positions on a ring: a of the first end, b of the second. The links are the same
 * for every pair of rings; pair of rings (i, j), i <= j, and link l give the pair number rings(i, j) n_links + l. For i > j the
 * value is that of (j, i) and the reverse link, with the TOF bins in the opposite order. */
struct single_scatter {
	const struct michelogram *m;
	struct device *dev;
	struct single_scatter_conf conf; /* without zeros */
	int n_rings, n_planes, n_tof;	 /* sampled rings; planes of a TOF bin; TOF bins, at least 1 */
	size_t n_links, n_ring_pairs, n_pairs;
	float (*detectors)[6]; /* [ring][position] */
	int32_t (*pairs)[2];
	int *ring_pair;		  /* [i][j], i <= j: number of the pair of rings; -1: no plane needs it */
	int (*links)[2];	  /* [n_links]: a, b */
	int *reverse;		  /* [n_links]: the link of b and a */
	struct scatter_bin *bins; /* [angle][radial] */
	struct {
		struct scatter_tap first, second; /* sampled rings of the ends */
	} * planes;				  /* [n_planes] */
	float *values;				  /* [TOF bin][pair of rings][link] */
	bool simulated;
};

/* Choose sampled rings and detectors and compute how bins are interpolated: all members but `values`. */
int single_scatter_layout(struct single_scatter *s, struct err *err);

#endif
