/* The benchmark: workloads of the three geometries on one device, each timed, checked and set against a floor.
 *
 * - A work is opened (geometry, data of a seeded random or a phantom, never zeros), run once to warm up, then run and waited for
 *   several times; times are of the host's monotonic clock. Opening is not part of them.
 * - What it computed is compared with a sum known beforehand (bench_work.check): wrong numbers have no time, but EHWPOISON.
 * - A step is one voxel (driven by voxels) or one ray and one row of pixels (driven by rays) in one direction of one view.
 * - The floor is what the device cannot be faster than: the larger of the least bytes over its copy rate and of the steps over
 *   its step rate (kernels/device.h), both measured on it in the same process: the roofline of Williams, Waterman & Patterson
 *   2009. Caches can beat the copy rate where everything fits into them: a share above 1 says so.
 *
 * Nothing here prints. The device belongs to the calling thread.
 */
#ifndef TOMONODE_RECON_BENCH_H
#define TOMONODE_RECON_BENCH_H

#include <stdbool.h>

#include "kernels/device.h"

enum bench_size {
	BENCH_TINY,   /* does it run at all: nothing to learn about speed */
	BENCH_QUICK,  /* a second or two a work on two cores */
	BENCH_NORMAL, /* what a case is like: DBT at 0.34 mm, PET of a GE Discovery STE, 300 x 300 pixels from 300 angles */
	BENCH_FULL,   /* DBT at the detector's resolution (4 GB), 2048 x 2048 pixels from 2048 angles */
	BENCH_SIZES,
};
const char *bench_size_name(enum bench_size size); /* NULL: there is none */

struct bench_job; /* recon/bench/bench_job.h */

struct bench_work {
	const char *name;  /* "dbt-osem" */
	const char *what;  /* one run of it */
	const char *check; /* what is compared */
	int kind;	   /* its own, for open() */
	int (*open)(struct bench_job *job, int kind, enum bench_size size, struct err *err);
};

const struct bench_work *bench_work_at(size_t i); /* NULL behind the last */
const struct bench_work *bench_work_find(const char *name);

struct bench_ceiling {
	double copy_bytes; /* a second, read and written, of vectors beyond any cache */
	double steps;	   /* a second */
};
/* Once for each device; `size` keeps tests short. */
int bench_ceiling(struct device *dev, enum bench_size size, struct bench_ceiling *ret_ceiling, struct err *err);

struct bench_times {
	int n;
	double median, least, most;
	double spread; /* upper less lower quartile */
};

#define BENCH_REPEAT_MAX 1000
struct bench_result {
	const struct bench_work *work;
	char device[96];
	enum bench_size size;
	char sizes[160]; /* in words; equal ones are comparable */
	struct bench_times seconds;
	double seconds_open; /* geometry, data, tables */
	double steps, bytes; /* of a run; bytes: the least that must cross to and from memory */
	struct bench_ceiling ceiling;
	double floor;	   /* seconds */
	bool floor_memory; /* by bytes, else by steps */
	double found, expected;
};

/* repeat: 1 .. BENCH_REPEAT_MAX; 0: until a second is full, at least 3 and at most 100. ENOMEM: does not fit the device. */
int bench_run(const struct bench_work *work, struct device *dev, enum bench_size size, int repeat,
	      const struct bench_ceiling *ceiling, struct bench_result *ret_result, struct err *err);

/* A result, member by member, for whoever writes it down. */
struct bench_writer {
	void *ctx;
	void (*text)(void *ctx, const char *name, const char *value);
	void (*number)(void *ctx, const char *name, double value);
};
void bench_write(const struct bench_result *r, const struct bench_writer *w);

#endif
