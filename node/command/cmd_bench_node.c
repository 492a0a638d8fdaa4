/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench_node.c - `tomonode bench node`: measure a whole node on this machine; print a line of JSON for each figure, in the form
 * of `tomonode bench`, so that --compare reads them.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/version.h"
#include "node/command/bench_node.h"
#include "node/command/commands.h"
#include "node/options/options.h"
#include "node/tools/bench_compare.h"
#include "node/tools/bench_processor.h"

#define THRESHOLD 10.0 /* percent by which a figure may be slower than in the earlier run */
#define ROUNDS 5       /* of associations, of exams: the median counts */

struct run {
	struct options o;
	struct bench_node_options node;
	struct bench_node *bench;
	struct bench_earlier *earlier; /* NULL: none */
	const char *compared;
	int exams, associations, senders;
	double threshold;
	size_t n_compared, n_slower;
	char processor[128];
	json_t *results; /* with --json; else NULL */
	enum exit_code code;
};

static const struct option_spec option_specs[] = {
	{0, "exams", "N", "number of exams of each round, 1 to 1000; default 8", INTO_INT(struct run, exams, 1, 1000)},
	{0, "associations", "N", "number of associations of each sender and round, 1 to 10000; default 50",
	 INTO_INT(struct run, associations, 1, 10000)},
	{0, "senders", "N", "number of senders at a time, 1 to 32; default 4",
	 INTO_INT(struct run, senders, 1, BENCH_NODE_SENDERS_MAX)},
	{0, "full", NULL, "exams as a system makes them (0.5 GB each), not tiny ones", INTO_ON(struct run, node.full)},
	{0, "device", "NAME", "device that reconstructs; default cpu", INTO_TEXT(struct run, node.device)},
	{0, "folder", "DIR", "folder on the disk to measure; default: TMPDIR, else /tmp", INTO_TEXT(struct run, node.folder)},
	{0, "compare", "FILE", "compare with the output of an earlier run: print `earlier_seconds` and `ratio` (now / earlier)",
	 INTO_TEXT(struct run, compared)},
	{0, "threshold", "PERCENT", "with --compare: exit code 1 if a figure is worse by more than this; default: 10",
	 INTO_REAL(struct run, threshold, 0, 1e6)},
	{0},
};

static const struct command_spec spec = {
	.name = "bench node",
	.usage = "[--full] [--folder DIR] [--exams N] [--senders N] [--compare FILE] [--json]",
	.summary = "Measure how many associations and exams a node of this machine takes, and how long a result takes.",
	.text = "Start a node with its own spool in DIR, send it simulated exams, and print one line of JSON for each figure:\n"
		"node-association (a small object in an association of its own), node-result (from the last response to the\n"
		"delivery, nothing else to do), node-exam (one exam behind the other). Every object is synced to the disk.\n"
		"Results go to a folder. docs/commands.md describes the members.",
	.options = option_specs,
	.json = true,
	.examples = "tomonode bench node --folder /var/tmp\n"
		    "tomonode bench node --compare before.jsonl\n",
};

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void compare_earlier(struct run *r, const char *work, const char *sizes, double now, json_t *line)
{
	double earlier = bench_earlier_seconds(r->earlier, work, r->node.device, sizes, r->processor);
	bool slower = earlier > 0 && now / earlier > 1 + r->threshold / 100;

	if (!(earlier > 0)) {
		fprintf(stderr, "%s: the earlier run has no result for this device, this processor and these sizes\n", work);
		return;
	}
	json_object_set_new(line, "earlier_seconds", json_real(earlier));
	json_object_set_new(line, "ratio", json_real(now / earlier));
	fprintf(stderr, "%s: %.4g s, earlier %.4g s, ratio %.3f%s\n", work, now, earlier, now / earlier,
		slower ? ": SLOWER" : "");
	r->n_compared++;
	r->n_slower += slower;
}

/* Print the median of the rounds. seconds: of one operation each. rate: its reciprocal in this unit, "per_second" or "per_hour". */
static void print_figure(struct run *r, const char *work, const char *sizes, double *seconds, const char *rate)
{
	double median;
	json_t *line;

	qsort(seconds, ROUNDS, sizeof(seconds[0]), compare_numbers);
	median = seconds[ROUNDS / 2];
	line = json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:s, s:s}", "work", work, "device", r->node.device,
			 "processor", r->processor, "sizes", sizes, "repeat", ROUNDS, "seconds", median, "least", seconds[0],
			 "most", seconds[ROUNDS - 1], rate, (strcmp(rate, "per_hour") ? 1 : 3600) / median, "version",
			 TOMONODE_VERSION, "revision", TOMONODE_REVISION);
	if (line && r->earlier)
		compare_earlier(r, work, sizes, median, line);
	if (r->results) {
		json_array_append_new(r->results, line);
		return;
	}
	if (!line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0 || putchar('\n') == EOF ||
	    fflush(stdout) != 0)
		r->code = CODE_FAILED;
	json_decref(line);
}

static int measure_associations(struct run *r, struct err *err)
{
	double seconds[ROUNDS];
	char sizes[120];
	int ret = 0;

	for (int i = 0; ret == 0 && i < ROUNDS; i++) {
		ret = bench_node_associations(r->bench, r->senders, r->associations, &seconds[i], err);
		seconds[i] /= (double)r->senders * r->associations;
	}
	snprintf(sizes, sizeof(sizes), "%s, %d senders", bench_node_sizes(r->bench), r->senders);
	if (ret == 0)
		print_figure(r, "node-association", sizes, seconds, "per_second");
	return ret;
}

static int measure_results(struct run *r, struct err *err)
{
	double seconds[ROUNDS];
	int ret = 0;

	for (int i = 0; ret == 0 && i < ROUNDS; i++)
		ret = bench_node_wait(r->bench, &seconds[i], err);
	if (ret == 0)
		print_figure(r, "node-result", bench_node_sizes(r->bench), seconds, "per_hour");
	return ret;
}

static int measure_exams(struct run *r, struct err *err)
{
	double seconds[ROUNDS];
	int ret = 0;

	for (int i = 0; ret == 0 && i < ROUNDS; i++) {
		ret = bench_node_exams(r->bench, r->exams, &seconds[i], err);
		seconds[i] /= r->exams;
	}
	if (ret == 0)
		print_figure(r, "node-exam", bench_node_sizes(r->bench), seconds, "per_hour");
	return ret;
}

static int measure_all(struct run *r, struct err *err)
{
	int ret = bench_node_start(&r->node, &r->bench, err);

	if (ret == 0)
		ret = measure_results(r, err);
	if (ret == 0)
		ret = measure_exams(r, err);
	if (ret == 0)
		ret = measure_associations(r, err);
	r->bench = bench_node_end(r->bench);
	return ret;
}

/* Set the exit code from the comparison. */
static void count_regressions(struct run *r)
{
	if (!r->earlier || r->code)
		return;
	if (r->n_compared == 0) {
		fprintf(stderr,
			"tomonode bench node: the earlier run has none of these figures with this device and these sizes\n");
		r->code = CODE_INPUT;
	} else if (r->n_slower) {
		fprintf(stderr, "tomonode bench node: %zu of %zu took more than %g %% longer than earlier\n", r->n_slower,
			r->n_compared, r->threshold);
		r->code = CODE_FAILED;
	}
}

static int run_all(struct run *r)
{
	struct err err = {0};
	int code;

	if (r->compared && bench_earlier_read(r->compared, &r->earlier, &err) < 0)
		return options_fail_err(&r->o, &err);
	if (r->o.json)
		r->results = json_array();
	if (measure_all(r, &err) < 0) {
		json_decref(r->results);
		bench_earlier_free(r->earlier);
		return options_fail_err(&r->o, &err);
	}
	count_regressions(r);
	bench_earlier_free(r->earlier);
	if (!r->results)
		return r->code;
	code = options_json(json_pack("{s:b, s:i, s:o, s:i}", "ok", r->code == CODE_OK, "code", (int)r->code, "results",
				      r->results, "slower", (int)r->n_slower));
	return code == CODE_OK ? (int)r->code : code;
}

int cmd_bench_node(int argc, char **argv)
{
	const char *temporary = getenv("TMPDIR");
	struct run r = {.exams = 8,
			.associations = 50,
			.senders = 4,
			.threshold = THRESHOLD,
			.node = {.device = "cpu", .folder = temporary && temporary[0] ? temporary : "/tmp"}};
	int id;

	options_begin(&r.o, &spec, argc, argv);
	r.o.into = &r;
	while ((id = options_next(&r.o)) >= 0)
		;
	if (id == OPTION_STOP)
		return r.o.code;
	bench_processor("/proc/cpuinfo", r.processor, sizeof(r.processor));
	return run_all(&r);
}
