/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the measure_series_*.c files. */
#ifndef TOMONODE_NODE_MEASURE_SERIES_INTERNAL_H
#define TOMONODE_NODE_MEASURE_SERIES_INTERNAL_H

#include "node/tools/measure_series.h"
#include "recon/core/regions.h"

/* One image of a series. */
struct measured {
	const struct image_series *s;
	const struct series_suv *suv;
	int image;
	const struct series_activity *activity; /* NULL: not known */
};

/* ---- measure_series_sample.c ---- */

/* Convert a point of the patient into column, row and slice, fractions included; 0: centre of the first one. */
void series_locate(const struct image_series *s, const double patient[3], double ret_at[3]);
void series_point(const struct image_series *s, double column, double row, double slice, double ret_patient[3]);
/* Find the slice nearest to a point. EBADMSG: the point is before the first or behind the last slice. */
int series_slice_at(const struct image_series *s, const double patient[3], const char *name, int *ret_slice, struct err *err);

/* Add the values of a circle around `at` in a slice, of a sphere, of the squares of a grid. EBADMSG: it extends beyond the image,
 * or a value is not finite. */
int series_circle(const struct measured *m, const double at[3], int slice, double diameter, const char *name,
		  struct region_sum *sum, struct err *err);
int series_sphere(const struct measured *m, const double at[3], double diameter, const char *name, struct region_sum *sum,
		  struct err *err);
/* Add the values of a rectangle of a slice: centre and half sides in mm, from the centre of the first pixel along columns and
 * rows. */
int series_rectangle(const struct measured *m, int slice, const double centre[2], const double half[2], const char *name,
		     struct region_sum *sum, struct err *err);
int series_check_values(const struct measured *m, struct err *err); /* EBADMSG: a value of the image is not finite */

json_t *series_number(double value); /* null: not finite */
/* Members that all regions have. */
json_t *series_region_json(const struct measured *m, const char *name, const char *shape, const struct region_sum *sum);

/* ---- measure_series_truth.c ---- */

#define TRUTH_CORNERS_MAX 8

struct truth_shape {
	char name[SERIES_NAME_SIZE];
	enum { TRUTH_ELLIPSOID = 1, TRUTH_CYLINDER, TRUTH_POLYGON } kind; /* a polygon, too, is a cylinder, of any length */
	bool lesion;
	double c[3], r[3], turn; /* axes of the scan; r[2] infinite: of any length; turn in degrees from x towards y */
	int n_corners;
	double corner[TRUTH_CORNERS_MAX][2];
	double value; /* that it adds inside: Bq/ml, 1/mm */
};

struct series_truth {
	bool ct; /* line integrals of parallel beams, whose result is HU */
	char phantom[32];
	double axis[3][3];  /* directions of the scan's axes in the patient */
	double origin[3];   /* of these axes in the patient, mm */
	double size;	    /* factor of the phantom's lengths */
	double water;	    /* attenuation of water, 1/mm; CT only */
	double taper, step; /* slice k is scaled by 1 - taper k / slices, slices `step` mm apart */
	int slices;
	size_t n, n_background;
	struct truth_shape *shapes;
	double (*background)[3]; /* centres of the background circles in the axes of the scan, mm; NULL: chosen */
};

int series_truth_read(const char *path, const struct image_series *s, struct series_truth *ret, struct err *err);
void series_truth_clear(struct series_truth *t);
/* Append the regions of the truth: the voxels of each shape that are not within `margin` of an edge. */
int series_truth_regions(const struct measured *m, const struct series_truth *t, json_t *regions, struct err *err);
void series_truth_point(const struct series_truth *t, const double scan[3], double ret_patient[3]);
/* Return whether the truth is one round cylinder, and its measures. */
bool series_truth_uniform(const struct measured *m, const struct series_truth *t, struct series_request *ret);

/* ---- measure_series_nema.c ---- */

/* NULL in *ret: the truth is not of the image quality phantom. */
int series_nema(const struct measured *m, const struct series_truth *t, json_t **ret, struct err *err);

/* ---- measure_series_uniform.c ---- */

int series_uniform(const struct measured *m, const struct series_request *q, json_t **ret, struct err *err);
int series_noise(const struct measured *m, const struct series_request *q, int side, json_t **ret, struct err *err);

#endif
