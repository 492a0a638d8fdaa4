/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the program `bench`. */
#ifndef TOMONODE_TESTS_BENCH_H
#define TOMONODE_TESTS_BENCH_H

#include "recon/bench/bench_data.h"

#define DEVICES_MAX 8
#define SETTINGS_MAX 16

struct options {
	const char *device[DEVICES_MAX];
	int n_devices;
	const char *work; /* NULL: all */
	struct bench_setup setup;
	int repeat;
	const char *instructions; /* of the CPU: baseline, avx2, avx512f; NULL: the best it has */
	size_t memory_limit;	  /* of the second device; 0: none */
	bool gap;
	/* The settings on the command line, printed with a result. */
	int n_settings;
	struct {
		const char *name, *value;
	} setting[SETTINGS_MAX];
};

const char *model_name(enum projection_model model);

/* Each prints lines of JSON on stdout and errors on stderr, and returns the exit code. */
int bench_time(const struct options *o);
int bench_agree(const struct options *o);
int bench_accuracy(const struct options *o);

/* Return the largest |a - b| over the largest |b|; NaN if a difference is NaN. */
double relative_difference(const float *a, const float *b, size_t n);

#endif
