/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark: it runs works (typical computations of tomosynthesis, PET and parallel beams) on one device, measures the time
 * of each, checks its result, and compares the time with a lower bound.
 *
 * - A work is opened (this creates its geometry and its data: seeded random numbers or a phantom, never zeros), run once to warm
 *   up, then run several times. A measured time ends when the device has finished; times are from the host's monotonic clock and
 *   do not include the opening.
 * - A sum over the result of the last run is compared with its expected value (bench_work.check): for a wrong result bench_run()
 *   returns EHWPOISON and no times.
 * - A step, the unit of work, is the computation for one voxel in one view (voxel-driven operators) or for one ray in one row of
 *   pixels (ray-driven operators), forward or back.
 * - The floor is the shortest time that the device could reach: the larger of the least bytes over its copy rate and of the steps
 *   over its step rate (kernels/device.h), both measured on it in the same process: the roofline of Williams, Waterman &
 *   Patterson 2009. If all data fit into caches, a run can exceed the copy rate: then floor / seconds is above 1.
 *
 * These functions print nothing. The device belongs to the calling thread. */
#ifndef TOMONODE_RECON_BENCH_H
#define TOMONODE_RECON_BENCH_H

#include <stdbool.h>

#include "kernels/device.h"

enum bench_size {
	BENCH_TINY,   /* for tests of the works; the times have no meaning */
	BENCH_QUICK,  /* one or two seconds per work on two cores */
	BENCH_NORMAL, /* a typical case: DBT at 0.34 mm, PET of a GE Discovery STE, 300 x 300 pixels from 300 angles */
	BENCH_FULL,   /* DBT at the detector's resolution (4 GB), 2048 x 2048 pixels from 2048 angles */
	BENCH_SIZES,
};
const char *bench_size_name(enum bench_size size); /* NULL: no such size */
enum bench_size bench_size_find(const char *name); /* BENCH_SIZES: no such size */

/* A size, and values that replace those of the size. A member that is 0 keeps the value of the size. A member that the work does
 * not use must be 0; else EINVAL. */
struct bench_setup {
	enum bench_size size;
	/* Number of voxels along x, y, z. DBT: also the number of bins along x and y; slices of 1 mm. PET: x = y; z is given by
	 * the scanner. Parallel beams: x = y = number of radial bins; z: number of slices. */
	int voxels[3];
	int views;		     /* number of angles */
	double fov_radius;	     /* PET: radius of the field of view, mm */
	enum projection_model model; /* allowed for DBT: SLICES, EXACT; PET: PATHS, JOSEPH, EXACT; radon: PATHS, JOSEPH, SAMPLED,
					EXACT; art: PATHS, JOSEPH, SAMPLED */
	enum rule_kind rule;	     /* allowed for DBT: EM, TRANSMISSION, SART, BACKPROJECT */
	int tile[2];		     /* DBT: as in struct projection_spec */
	double turn;		     /* DBT: turn of the detector divided by that of the source, which reaches 25 degrees */
	bool deterministic;	     /* as in struct projection_spec */
	bool stages;		     /* pet-mlem, pet-tof, pet-list, fbp-convolution: also time each stage of a run */
};

struct bench_job; /* recon/bench/bench_internal.h */

struct bench_work {
	const char *name;  /* "dbt-osem" */
	const char *what;  /* description of one run */
	const char *check; /* description of the value that is compared */
	int kind;	   /* passed to open() */
	int (*open)(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err);
};

const struct bench_work *bench_work_at(size_t i); /* NULL after the last */
const struct bench_work *bench_work_find(const char *name);

struct bench_ceiling {
	double copy_bytes; /* bytes read and written per second, with vectors larger than any cache */
	double steps;	   /* steps per second */
};
/* Measure the limits of a device; call it once per device. With BENCH_TINY the vectors are small, for tests. */
int bench_ceiling(struct device *dev, enum bench_size size, struct bench_ceiling *ret_ceiling, struct err *err);

struct bench_times { /* seconds */
	int n;
	double median, least, most;
	double spread; /* upper quartile minus lower quartile */
};

#define BENCH_REPEAT_MAX 1000
#define BENCH_STAGES_MAX 4
struct bench_result {
	const struct bench_work *work;
	char device[96];
	enum bench_size size;
	char sizes[160]; /* description of the sizes; times are comparable if it and the setup's other members are equal */
	struct bench_times seconds;
	int n_stages; /* 0 unless the setup requests stages */
	struct {
		const char *name;
		struct bench_times seconds;
	} stage[BENCH_STAGES_MAX]; /* in the order of execution; each stage is complete before the next one begins */
	double seconds_open;	   /* time to prepare geometry, data and tables */
	double seconds_session;	   /* of it: plan, memory and tables, without the data; 0: not known for this work */
	double steps, bytes;	   /* per run; bytes: the smallest amount that must be read from and written to memory */
	struct bench_ceiling ceiling;
	double floor;	   /* seconds */
	bool floor_memory; /* true: the floor is the time of the bytes; false: of the steps */
	double found, expected;
};

/* Run a work. repeat: 1 .. BENCH_REPEAT_MAX; 0: for at least one second, at least 3 and at most 100 runs. ENOMEM: it does not fit
 * into the device's memory. EHWPOISON: wrong result. */
int bench_run(const struct bench_work *work, struct device *dev, const struct bench_setup *setup, int repeat,
	      const struct bench_ceiling *ceiling, struct bench_result *ret_result, struct err *err);

/* Call the writer for each member of a result. */
struct bench_writer {
	void *ctx;
	void (*text)(void *ctx, const char *name, const char *value);
	void (*number)(void *ctx, const char *name, double value);
};
void bench_write(const struct bench_result *r, const struct bench_writer *w);

#endif
