/* SPDX-License-Identifier: Apache-2.0 */
/* bench_compare.c - read the output of an earlier benchmark. All lines are checked when the file is read, so that errors are
 * reported before anything is measured. Lines about works that could not be run are ignored.
 */
#include "node/tools/bench_compare.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"

struct bench_earlier {
	json_t *results; /* array of objects that have all members */
};

static const char *text_of(const json_t *line, const char *name)
{
	return json_string_value(json_object_get(line, name));
}

static bool is_result(const json_t *line)
{
	const json_t *seconds = json_object_get(line, "seconds");

	return text_of(line, "work") && text_of(line, "device") && text_of(line, "sizes") && json_is_number(seconds) &&
	       json_number_value(seconds) > 0;
}

/* Add one line, or all results of a --json document. */
static void add_results(struct bench_earlier *e, json_t *line)
{
	json_t *results = json_object_get(line, "results"), *one;
	size_t i;

	if (is_result(line))
		json_array_append(e->results, line);
	json_array_foreach(results, i, one)
	{
		if (is_result(one))
			json_array_append(e->results, one);
	}
}

static int read_all(struct bench_earlier *e, FILE *file, const char *path, struct err *err)
{
	size_t n = 0;

	for (;;) {
		json_error_t why;
		json_t *line;
		int c;

		do
			c = fgetc(file);
		while (c == ' ' || c == '\t' || c == '\r' || c == '\n');
		if (c == EOF)
			break;
		ungetc(c, file);
		line = json_loadf(file, JSON_DISABLE_EOF_CHECK, &why);
		n++;
		if (!json_is_object(line)) {
			json_decref(line);
			return err_set(err, EBADMSG, "%s: JSON object %zu cannot be read: %s", path, n,
				       line ? "it is JSON, but not an object" : why.text);
		}
		add_results(e, line);
		json_decref(line);
	}
	if (ferror(file))
		return err_set(err, EIO, "%s: cannot be read", path);
	if (json_array_size(e->results) == 0)
		return err_set(err, EBADMSG, "%s: none of its %zu JSON objects is a result of tomonode bench", path, n);
	return 0;
}

int bench_earlier_read(const char *path, struct bench_earlier **ret_earlier, struct err *err)
{
	struct bench_earlier *e = calloc(1, sizeof(*e));
	FILE *file = NULL;
	int r = 0;

	if (e)
		e->results = json_array();
	if (!e || !e->results) {
		r = err_set(err, ENOMEM, "no memory for the results in %s", path);
		goto out;
	}
	file = fopen(path, "re");
	if (!file) {
		r = err_set(err, errno, "%s: %s", path, strerror(errno));
		goto out;
	}
	r = read_all(e, file, path, err);
	if (r == 0) {
		*ret_earlier = e;
		e = NULL;
	}
out:
	if (file)
		fclose(file);
	bench_earlier_free(e);
	return r;
}

struct bench_earlier *bench_earlier_free(struct bench_earlier *e)
{
	if (e)
		json_decref(e->results);
	free(e);
	return NULL;
}

static bool same_processor(const json_t *line, const char *processor)
{
	const char *earlier = text_of(line, "processor");

	return !processor || !earlier || !strcmp(earlier, processor);
}

double bench_earlier_seconds(const struct bench_earlier *e, const char *work, const char *device, const char *sizes,
			     const char *processor)
{
	double seconds = 0;
	json_t *line;
	size_t i;

	json_array_foreach(e->results, i, line)
	{
		if (!strcmp(text_of(line, "work"), work) && !strcmp(text_of(line, "device"), device) &&
		    !strcmp(text_of(line, "sizes"), sizes) && same_processor(line, processor))
			seconds = json_get_number(line, "seconds");
	}
	return seconds;
}
