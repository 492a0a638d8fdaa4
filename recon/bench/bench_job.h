/* Private to the benchmark, and for programs that ask questions of their own: medians, random data, the geometries. */
#ifndef TOMONODE_RECON_BENCH_JOB_H
#define TOMONODE_RECON_BENCH_JOB_H

#include "recon/bench/bench.h"
#include "recon/core/scan.h"
#include "recon/pet/michelogram.h"

/* A work that is open. */
struct bench_job {
	struct device *dev;
	void *state;					     /* the work's own */
	int (*once)(struct bench_job *job, struct err *err); /* queues a run; the caller waits */
	/* After the last run: what its result sums up to, what it should, and how far apart they may be, relative. */
	int (*check)(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err);
	void (*close)(struct bench_job *job);
	double steps, bytes;
	char sizes[160];
};

/* once(ctx) `repeat` times behind a warm-up, each waited for; repeat as in bench_run(). */
int bench_measure(struct device *dev, int repeat, int (*once)(void *ctx, struct err *err), void *ctx,
		  struct bench_times *ret_times, struct err *err);
void bench_median(double *seconds, int n, struct bench_times *ret_times); /* sorts; n >= 1 */

/* Uniform in lo..hi, the same for every device. */
int bench_random(struct buf *b, float lo, float hi, unsigned seed, struct err *err);
int bench_random_alloc(struct device *dev, size_t n, float lo, float hi, unsigned seed, struct buf *ret_buf, struct err *err);

/* ENOMEM where `bytes` are more than the device has. */
int bench_fits(const struct device *dev, size_t bytes, struct err *err);

/* A Siemens MAMMOMAT Inspiration (655.5 mm, 50 degrees) with n[0] x n[1] bins over 239.36 mm of depth, and n[2] slices of 1 mm
 * with voxels of the same pitch, from 17 mm above the detector. */
int bench_dbt_geometry(const int n[3], int views, struct scan **ret_scan, struct grid *ret_grid, struct err *err);

/* A cylinder's rings and rays, and the volume they see: matrix x matrix x (2 rings - 1) voxels, half a ring spacing high. */
struct bench_pet {
	struct pet_scanner scanner;
	int n_radial, n_angles, span, largest_difference;
	int matrix;
	double fov_radius; /* mm */
};
extern const struct bench_pet bench_pet_discovery_ste; /* 553 planes, 280 angles, 329 radial bins; 256 x 256 x 47 voxels */
int bench_pet_geometry(const struct bench_pet *p, struct scan **ret_scan, struct grid *ret_grid, struct err *err);

enum bench_dbt_kind { BENCH_DBT_OSEM = 1, BENCH_DBT_MLEM };
enum bench_pet_kind { BENCH_PET_MLEM = 1 };
enum bench_parallel_kind { BENCH_RADON = 1, BENCH_BP, BENCH_CONVOLUTION, BENCH_FOURIER, BENCH_ART, BENCH_STACK = 16 /* added */ };
int bench_dbt_open(struct bench_job *job, int kind, enum bench_size size, struct err *err);
int bench_pet_open(struct bench_job *job, int kind, enum bench_size size, struct err *err);
int bench_parallel_open(struct bench_job *job, int kind, enum bench_size size, struct err *err);

#endif
