/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - `bench time`: the works of the benchmark, a line of JSON for each work and device. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "tests/bench/bench.h"

struct run {
	const struct options *o;
	int failed;
};

/* Write a JSON string without escapes: names of devices, works and settings contain neither quotes nor backslashes. */
static void write_text(void *ctx, const char *name, const char *value)
{
	printf("%s\"%s\": \"%s\"", *(const char **)ctx, name, value);
	*(const char **)ctx = ", ";
}

static void write_number(void *ctx, const char *name, double value)
{
	printf("%s\"%s\": %.9g", *(const char **)ctx, name, value);
	*(const char **)ctx = ", ";
}

static void print_line(const struct options *o, const struct bench_result *result)
{
	const char *between = "{";
	const struct bench_writer writer = {&between, write_text, write_number};

	bench_write(result, &writer);
	if (o->instructions)
		write_text(&between, "instructions", o->instructions);
	for (int i = 0; i < o->n_settings; i++)
		write_text(&between, o->setting[i].name, o->setting[i].value);
	printf("}\n");
	fflush(stdout);
}

static void run_works(struct run *run, struct device *dev, const struct bench_ceiling *ceiling)
{
	const struct options *o = run->o;
	const struct bench_work *work;
	struct bench_result result;

	for (size_t i = 0; (work = bench_work_at(i)); i++) {
		struct err err = {0};

		if (o->work && strcmp(o->work, work->name) != 0)
			continue;
		if (bench_run(work, dev, &o->setup, o->repeat, ceiling, &result, &err) < 0) {
			fprintf(stderr, "bench: %s: %s\n", work->name, err.msg);
			run->failed++;
			continue;
		}
		print_line(o, &result);
	}
}

/* Make a CPU device use the instructions of an older processor. */
static int use_instructions(struct device *dev, const char *name, struct err *err)
{
	const struct cpu_rows *rows;

	if (dev->ops->convolve != cpu_convolve)
		return err_set(err, EINVAL, "--instructions: %s is not a CPU", dev->name);
	for (int i = 0; (rows = cpu_rows_at(i)); i++)
		if (!strcmp(rows->name, name)) {
			cpu_state(dev)->rows = rows;
			return 0;
		}
	return err_set(err, EINVAL, "--instructions: this CPU does not have '%s'; known: baseline, avx2, avx512f", name);
}

static void run_device(void *ctx, const char *spec, const char *name, size_t memory)
{
	struct run *run = ctx;
	struct bench_ceiling ceiling;
	struct device *dev = NULL;
	struct err err = {0};

	(void)name;
	(void)memory;
	if (device_open(spec, &dev, &err) < 0 ||
	    (run->o->instructions && use_instructions(dev, run->o->instructions, &err) < 0) ||
	    bench_ceiling(dev, run->o->setup.size, &ceiling, &err) < 0) {
		fprintf(stderr, "bench: %s\n", err.msg);
		run->failed++;
	} else {
		run_works(run, dev, &ceiling);
	}
	device_close(dev);
}

int bench_time(const struct options *o)
{
	struct run run = {.o = o};

	for (int i = 0; i < o->n_devices; i++)
		run_device(&run, o->device[i], NULL, 0);
	if (!o->n_devices && device_list(run_device, &run) <= 0)
		run.failed++;
	return run.failed ? 1 : 0;
}
