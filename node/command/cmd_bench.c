/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench.c - `tomonode bench`: measure how fast the devices reconstruct; print a line of JSON for each work and device.
 *
 * A line is printed when it is measured. A work that does not fit a device, or fails on it, prints a line with `error` and the
 * exit code, and the next works are measured. After a device is found broken, its other works are skipped.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/nearest.h"
#include "node/base/version.h"
#include "node/command/commands.h"
#include "node/options/options.h"
#include "node/tools/bench_compare.h"
#include "node/tools/bench_processor.h"
#include "recon/bench/bench.h"
#include "recon/core/threads.h"

#define DEVICES_MAX 64
#define WORKS_MAX 64
#define THREADS_MAX 1024
#define THRESHOLD 10.0 /* percent by which a work may be slower than in the earlier run */

struct run {
	struct options *o;
	char device[DEVICES_MAX][16];
	size_t n_devices;
	const struct bench_work *work[WORKS_MAX];
	size_t n_works;
	int threads, repeat;
	int size; /* enum bench_size */
	double threshold;
	const char *compared; /* file of the earlier run; NULL: none */
	bool list;
	char processor[128];
	struct bench_earlier *earlier; /* results to compare with; NULL: none */
	size_t n_compared, n_slower;
	json_t *results;     /* with --json; else NULL */
	enum exit_code code; /* exit code: the first one that is not CODE_OK */
};

enum { OPTION_DEVICE = OPTION_LONG, OPTION_WORK, OPTION_QUICK };

static const char *const size_names[] = {"tiny", "quick", "normal", "full", NULL}; /* [enum bench_size] */

static const struct option_spec option_specs[] = {
	{OPTION_DEVICE, "device", "NAME", "device to measure: cpu, cpu:THREADS, cuda:N; may be repeated; default: all devices"},
	{OPTION_WORK, "work", "NAME", "benchmark to run (see --list); may be repeated; default: all"},
	{0, "threads", "N", "number of CPU threads, 1 to 1024; default: all of the machine",
	 INTO_INT(struct run, threads, 1, THREADS_MAX)},
	{0, "size", "SIZE", "size of the data: tiny, quick, normal or full; default: normal",
	 INTO_WORD(struct run, size, size_names)},
	{OPTION_QUICK, "quick", NULL, "the same as --size quick"},
	{0, "repeat", "N", "number of measured runs, 1 to 1000; default: 3 to 100, as many as fit into one second",
	 INTO_INT(struct run, repeat, 1, BENCH_REPEAT_MAX)},
	{0, "compare", "FILE", "compare with the output of an earlier run: print `earlier_seconds` and `ratio` (now / earlier)",
	 INTO_TEXT(struct run, compared)},
	{0, "threshold", "PERCENT", "with --compare: exit code 1 if a benchmark is slower by more than this; default: 10",
	 INTO_REAL(struct run, threshold, 0, 1e6)},
	{0, "list", NULL, "list the benchmarks and exit", INTO_ON(struct run, list)},
	{0},
};

static const struct command_spec spec = {
	.name = "bench",
	.usage = "[--quick] [--device NAME]... [--work NAME]... [--compare FILE] [--json]",
	.summary = "Measure how fast the devices of this machine reconstruct tomosynthesis, PET and parallel beam data.",
	.text = "Print one line of JSON for each benchmark and device: median duration of the runs in seconds, steps and bytes "
		"per\n"
		"second, and the shortest possible duration, which is measured on the device (floor), as a share of the median.\n"
		"Data are in memory. Each result is checked against a known sum. With --json all lines are in one document.\n"
		"docs/commands.md describes the members. For a whole node see `tomonode bench node --help`.",
	.options = option_specs,
	.json = true,
	.examples = "tomonode bench --quick --device cpu\n"
		    "tomonode bench --work dbt-osem --json\n"
		    "tomonode bench node --folder /var/tmp\n",
};

static void add_device(struct run *b, const char *name)
{
	if (b->n_devices < DEVICES_MAX && strlen(name) < sizeof(b->device[0]))
		strcpy(b->device[b->n_devices++], name);
}

static void find_device(void *ctx, const char *device, const char *name, size_t memory)
{
	(void)name;
	(void)memory;
	add_device(ctx, device);
}

static void write_text(void *ctx, const char *name, const char *value)
{
	json_object_set_new(ctx, name, json_string(value));
}

static void write_number(void *ctx, const char *name, double value)
{
	json_object_set_new(ctx, name,
			    value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value)
			    : isfinite(value)				? json_real(value)
									: json_null());
}

/* Print the line or add it to the results; takes over the reference. */
static void print_line(struct run *b, json_t *line)
{
	if (b->results) {
		json_array_append_new(b->results, line);
		return;
	}
	if (!line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0 || putchar('\n') == EOF ||
	    fflush(stdout) != 0)
		b->code = b->code ? b->code : CODE_FAILED;
	json_decref(line);
}

/* Return the processor if the device is the CPU, else NULL. */
static const char *processor_of(const struct run *b, const char *device)
{
	return strncmp(device, "cpu", 3) == 0 ? b->processor : NULL;
}

static void compare_earlier(struct run *b, const struct bench_result *result, json_t *line)
{
	double earlier = bench_earlier_seconds(b->earlier, result->work->name, result->device, result->sizes,
					       processor_of(b, result->device));
	double now = result->seconds.median, ratio = now / earlier;
	bool slower = earlier > 0 && ratio > 1 + b->threshold / 100;

	if (!(earlier > 0)) {
		fprintf(stderr, "%s on %s: the earlier run has no result for this device%s and these sizes\n", result->work->name,
			result->device, processor_of(b, result->device) ? ", this processor" : "");
		return;
	}
	json_object_set_new(line, "earlier_seconds", json_real(earlier));
	json_object_set_new(line, "ratio", json_real(ratio));
	fprintf(stderr, "%s on %s: %.4g s, earlier %.4g s, ratio %.3f%s\n", result->work->name, result->device, now, earlier,
		ratio, slower ? ": SLOWER" : "");
	b->n_compared++;
	b->n_slower += slower;
}

static void run_work(struct run *b, const struct bench_work *work, struct device *dev, const struct bench_ceiling *ceiling,
		     struct err *err)
{
	json_t *line = json_object();
	const struct bench_writer writer = {line, write_text, write_number};
	const struct bench_setup setup = {.size = (enum bench_size)b->size};
	struct bench_result result;

	if (bench_run(work, dev, &setup, b->repeat, ceiling, &result, err) < 0) {
		fprintf(stderr, "tomonode bench: %s on %s: %s\n", work->name, dev->name, err->msg);
		b->code = b->code ? b->code : options_code(err);
		write_text(line, "work", work->name);
		write_text(line, "device", dev->name);
		write_text(line, "size", bench_size_name((enum bench_size)b->size));
		write_text(line, "error", err->msg);
	} else {
		bench_write(&result, &writer);
		if (processor_of(b, result.device))
			write_text(line, "processor", b->processor);
		write_text(line, "version", TOMONODE_VERSION);
		write_text(line, "revision", TOMONODE_REVISION);
		if (b->earlier)
			compare_earlier(b, &result, line);
	}
	print_line(b, line);
}

static int run_device(struct run *b, const char *name)
{
	struct bench_ceiling ceiling;
	struct device *dev = NULL;
	struct err err = {0};
	char known[DEVICES_MAX * 18] = "", cpu[16];
	int r, code = CODE_OK, threads = b->threads;
	long long number;

	if (threads && !strcmp(name, "cpu")) {
		snprintf(cpu, sizeof(cpu), "cpu:%d", threads);
		name = cpu;
	} else if (!strncmp(name, "cpu:", 4) && options_integer(name + 4, 1, THREADS_MAX, &number) == 0) {
		threads = (int)number;
	}
	if (threads)
		threads_limit(threads); /* number of threads for the parts that run on the host */
	r = device_open(name, &dev, &err);
	if (r == 0)
		r = bench_ceiling(dev, (enum bench_size)b->size, &ceiling, &err);
	for (size_t i = 0; r == 0 && i < b->n_works && err.code != EHWPOISON; i++) {
		err = (struct err){0};
		run_work(b, b->work[i], dev, &ceiling, &err);
	}
	device_close(dev);
	if (r == 0)
		return CODE_OK;
	if (err.code == EINVAL || err.code == ENODEV) { /* no such device: print the existing ones */
		struct run there = {0};

		device_list(find_device, &there);
		for (size_t i = 0; i < there.n_devices; i++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
				 i ? ", " : "; here: ", there.device[i]);
	}
	code = err.code == EINVAL ? CODE_USAGE : options_code(&err);
	return options_fail(b->o, code, "%s%s", err.msg, known);
}

static int list_works(const struct options *o)
{
	json_t *works = json_array();
	const struct bench_work *w;

	for (size_t i = 0; (w = bench_work_at(i)); i++) {
		if (o->json)
			json_array_append_new(works,
					      json_pack("{s:s, s:s, s:s}", "work", w->name, "what", w->what, "check", w->check));
		else
			printf("%-22s %s\n%-22s check: %s\n", w->name, w->what, "", w->check);
	}
	if (o->json)
		return options_json(json_pack("{s:b, s:o}", "ok", 1, "works", works));
	json_decref(works);
	return CODE_OK;
}

static const char *work_name(const void *ctx, size_t i)
{
	(void)ctx;
	return bench_work_at(i) ? bench_work_at(i)->name : NULL;
}

static int fail_work(const struct options *o, const char *name)
{
	char names[1024] = "", hint[NEAREST_HINT];

	for (size_t i = 0; bench_work_at(i); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", bench_work_at(i)->name);
	return options_fail(o, CODE_USAGE, "--work %s is not known%s; allowed: %s", name,
			    nearest_hint(nearest_word(name, work_name, NULL), hint), names);
}

/* Apply one option. Returns CODE_OK, or the exit code after printing the error. */
static int parse_option(struct run *b, int id, const char *value)
{
	if (id == OPTION_QUICK) {
		b->size = BENCH_QUICK;
	} else if (id == OPTION_DEVICE) {
		if (b->n_devices == DEVICES_MAX || strlen(value) >= sizeof(b->device[0]))
			return options_fail(b->o, CODE_USAGE,
					    "--device %s: at most %d of cpu, cpu:THREADS, cuda:N (tomonode devices lists them)",
					    value, DEVICES_MAX);
		add_device(b, value);
	} else {
		if (!bench_work_find(value))
			return fail_work(b->o, value);
		if (b->n_works == WORKS_MAX)
			return options_fail(b->o, CODE_USAGE, "--work more than %d times", WORKS_MAX);
		b->work[b->n_works++] = bench_work_find(value);
	}
	return CODE_OK;
}

/* Print the number of regressions after the last measurement. */
static void count_regressions(struct run *b)
{
	if (!b->earlier || b->code)
		return;
	if (b->n_compared == 0) {
		fprintf(stderr, "tomonode bench: the earlier run has none of these works with this device and these sizes\n");
		b->code = CODE_INPUT;
	} else if (b->n_slower) {
		fprintf(stderr, "tomonode bench: %zu of %zu took more than %g %% longer than earlier\n", b->n_slower,
			b->n_compared, b->threshold);
		b->code = CODE_FAILED;
	}
}

static int run_all(struct run *b)
{
	int code = CODE_OK;

	if (b->n_devices == 0 && device_list(find_device, b) <= 0)
		return options_fail(b->o, CODE_DEVICE, "no device can be opened");
	if (b->n_works == 0)
		while (b->n_works < WORKS_MAX && bench_work_at(b->n_works)) {
			b->work[b->n_works] = bench_work_at(b->n_works);
			b->n_works++;
		}
	if (b->o->json)
		b->results = json_array();
	for (size_t i = 0; code == CODE_OK && i < b->n_devices; i++)
		code = run_device(b, b->device[i]);
	if (code != CODE_OK) {
		json_decref(b->results);
		return code;
	}
	count_regressions(b);
	if (!b->results)
		return b->code;
	code = options_json(json_pack("{s:b, s:i, s:o, s:i}", "ok", b->code == CODE_OK, "code", (int)b->code, "results",
				      b->results, "slower", (int)b->n_slower));
	return code == CODE_OK ? (int)b->code : code;
}

int cmd_bench(int argc, char **argv)
{
	struct options o;
	struct run b = {.o = &o, .size = BENCH_NORMAL, .threshold = THRESHOLD};
	struct err err = {0};
	int id, code = CODE_OK;

	if (argc > 1 && !strcmp(argv[1], "node"))
		return cmd_bench_node(argc - 1, argv + 1);
	options_begin(&o, &spec, argc, argv);
	o.into = &b;
	while (code == CODE_OK && (id = options_next(&o)) >= 0)
		code = parse_option(&b, id, o.value);
	if (code != CODE_OK)
		return code;
	if (id == OPTION_STOP)
		return o.code;
	if (b.list)
		return list_works(&o);
	if (b.compared && bench_earlier_read(b.compared, &b.earlier, &err) < 0)
		return options_fail_err(&o, &err);
	bench_processor("/proc/cpuinfo", b.processor, sizeof(b.processor));
	code = run_all(&b);
	bench_earlier_free(b.earlier);
	return code;
}
