/* bench_all - the benchmark of `tomonode bench` out of a build without DCMTK: the same lines of JSON, but for version and
 * comparison.
 *
 *   bench_all [--device SPEC] [--work NAME] [--size tiny|quick|normal|full] [--repeat N]
 *
 * Without --device on every device there is. Exit code 1: a work could not be run, or computed wrong numbers.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/bench/bench.h"

struct options {
	const char *device, *work;
	enum bench_size size;
	int repeat;
	int failed;
};

/* Names of devices and works have neither quotes nor backslashes. */
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

static void run_device(void *ctx, const char *spec, const char *name, size_t memory)
{
	struct options *o = ctx;
	struct bench_ceiling ceiling;
	struct bench_result result;
	const struct bench_work *work;
	struct device *dev = NULL;
	struct err err = {0};

	(void)name;
	(void)memory;
	if (device_open(spec, &dev, &err) < 0 || bench_ceiling(dev, o->size, &ceiling, &err) < 0) {
		fprintf(stderr, "bench_all: %s\n", err.msg);
		o->failed++;
	} else {
		for (size_t i = 0; (work = bench_work_at(i)); i++) {
			const char *between = "{";
			const struct bench_writer writer = {&between, write_text, write_number};

			if (o->work && strcmp(o->work, work->name) != 0)
				continue;
			if (bench_run(work, dev, o->size, o->repeat, &ceiling, &result, &err) < 0) {
				fprintf(stderr, "bench_all: %s: %s\n", work->name, err.msg);
				o->failed++;
				continue;
			}
			bench_write(&result, &writer);
			printf("}\n");
			fflush(stdout);
		}
	}
	device_close(dev);
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_all [--device SPEC] [--work NAME] [--size tiny|quick|normal|full] [--repeat N]\nworks:");
	for (size_t i = 0; bench_work_at(i); i++)
		fprintf(stderr, " %s", bench_work_at(i)->name);
	fprintf(stderr, "\n");
	return 2;
}

static enum bench_size size_of(const char *name)
{
	int size = 0;

	while (size < BENCH_SIZES && strcmp(name, bench_size_name((enum bench_size)size)) != 0)
		size++;
	return (enum bench_size)size;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"device", required_argument, NULL, 'd'},
		{"work", required_argument, NULL, 'w'},
		{"size", required_argument, NULL, 's'},
		{"repeat", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.size = BENCH_NORMAL};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			o.device = optarg;
		else if (option == 'w')
			o.work = optarg;
		else if (option == 's')
			o.size = size_of(optarg);
		else if (option == 'r')
			o.repeat = atoi(optarg);
		else
			return usage();
	}
	if (optind != argc || o.size == BENCH_SIZES || (o.work && !bench_work_find(o.work)))
		return usage();
	if (o.device)
		run_device(&o, o.device, o.device, 0);
	else if (device_list(run_device, &o) <= 0)
		o.failed++;
	return o.failed ? 1 : 0;
}
