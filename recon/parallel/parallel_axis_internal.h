/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the search of the axis (parallel_axis.c): views of a slice, and the terms U and V that a window has of them. */
#ifndef TOMONODE_RECON_PARALLEL_AXIS_INTERNAL_H
#define TOMONODE_RECON_PARALLEL_AXIS_INTERNAL_H

#include "recon/parallel/parallel_internal.h"

#define AXIS_MARGIN_LEAST 1.2 /* of the wedge, in the half window: the least of all weights */

/* How much of the data is used, at most. */
struct axis_effort {
	int bins, views, pairs, harmonics, slices;
};

/* A view, and what is opposite of it: a mean of two views. */
struct axis_pair {
	int view, other[2];
	double part[2];
};

/* Views of a slice in samples: means of neighbouring bins. */
struct axis_views {
	int n, width;		/* views, samples */
	int factor;		/* bins in a sample */
	double middle;		/* bins: that of all samples, relative to that of all bins */
	double (*turn)[2];	/* [n]: angle, radians, and the part of the half turn that the view stands for */
	int *view;		/* [n]: their numbers in the scan */
	int harmonics;		/* at most, of the wedge */
	int n_pairs;		/* 0: wedge */
	struct axis_pair *pair; /* numbers in `view` */
	double *line;		/* [n][width]: differences of neighbouring samples */
	double *mean;		/* [width] */
	double *odd, *size;	/* [n_radial]: odd > 0: a dead bin; size: working memory */
};

/* U and V of a window. */
struct axis_cells {
	int n, n_waves;
	double centre, half; /* of the window, samples */
	double *wave;	     /* [n_waves], radians a sample */
	double *cosine[2];   /* [width][n_waves]: cos and -sin of wave times place */
	double *turn[2];     /* wedge: [n][n_views]: cos and -sin of harmonic times angle, times weight */
	double *p[2];	     /* [n_views][n_waves]: the views' transforms, real and imaginary part */
	double *u[2], *v[2]; /* [n][n_waves] */
};

/* Choose views and samples of a scan. ENOMEM; free them after an error, too. */
int axis_views_make(const struct parallel_scan *s, const struct axis_effort *e, struct axis_views *v, struct err *err);
void axis_views_free(struct axis_views *v);
/* Read the views of a slice, without rings. */
void axis_views_read(const struct parallel_scan *s, const float *lines, int slice, struct axis_views *v);

/* Allocate the cells of any window. */
int axis_cells_make(const struct axis_views *v, struct axis_cells *c, struct err *err);
void axis_cells_free(struct axis_cells *c);
/* Compute U and V of the window about `centre` (samples, relative to the middle), `part` of the width that the field allows. */
void axis_cells_fill(const struct axis_views *v, double centre, double part, struct axis_cells *c);

#endif
