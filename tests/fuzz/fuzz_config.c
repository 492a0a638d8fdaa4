/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the configuration reader: arbitrary bytes give a configuration or problems, never a crash, a leak or reading another file.
 * Run: fuzz_config -dict=tests/fuzz/config.dict -max_len=16384 WORK_FOLDER tests/fuzz/corpus/config */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "node/config/route.h"
#include "tests/fuzz/fuzz.h"

const char *__lsan_default_suppressions(void);

/* libconfig 1.5 does not free the string that it is reading when a syntax error occurs: at most one text of 1 MiB per rejected
 * configuration. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

static void count(void *ctx, const char *problem)
{
	if (!problem[0] || strchr(problem, '\n'))
		abort(); /* a problem is one line */
	++*(size_t *)ctx;
}

static const struct protocol_conf *first_of(const struct config *c, enum case_kind kind)
{
	for (size_t i = 0; i < c->n_protocols; i++)
		if (c->protocols[i].kind == kind)
			return &c->protocols[i];
	abort();
}

/* Check that the results of a case that takes a route first are complete, and those of another case within their bounds. */
static void check_routes(const struct config *c)
{
	struct route_result list[ROUTE_RESULTS_MAX];
	char why[400];

	for (size_t i = 0; i < c->n_routes; i++) {
		const struct route_conf *r = &c->routes[i];
		struct route_facts f = {0};
		size_t n;

		memcpy(f.kind, r->kind, sizeof(f.kind));
		memcpy(f.calling, r->calling, sizeof(f.calling));
		memcpy(f.value, r->pattern, sizeof(f.value)); /* a pattern matches itself */
		if (config_route_mismatch(r, &f))
			abort();
		n = config_route_results(c, &f, list);
		if (n < 1 || n > ROUTE_RESULTS_MAX)
			abort();
		for (size_t k = 0; k < n; k++)
			if (!config_protocol(c, list[k].protocol) || list[k].destinations.n < 1 ||
			    list[k].destinations.n > CONFIG_NAMES_MAX)
				abort();
		if (!config_route_is_unreachable(c, i, why, sizeof(why)) && !config_route_default(c, r->kind))
			abort();
	}
}

/* Check that the text which describes an accepted configuration can be read again. */
static void check(struct config *c)
{
	char text[1000], again[1000];
	struct err err;

	for (size_t i = 0; i < c->n_protocols; i++) {
		struct protocol_conf p = *first_of(c, c->protocols[i].kind), of = c->protocols[i];
		char *rest = NULL;

		p.steps.n = of.steps.n = 0; /* which config_set() does not take */
		config_describe_protocol(&of, text, sizeof(text));
		memcpy(again, text, sizeof(again));
		for (char *word = strtok_r(again, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			if (config_set(&p, word, &err) < 0)
				abort();
		config_describe_protocol(&p, again, sizeof(again));
		if (strcmp(text, again) != 0)
			abort();
	}
	check_routes(c);
	config_profile(c, "SIEMENS", "Mammomat Inspiration", "1");
	config_scanner(c, "GE MEDICAL SYSTEMS", "Discovery STE", "1");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c = NULL;
	struct err err = {0};
	size_t problems = 0;
	char *text = malloc(size + 1);
	int rc;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	setenv("TOMONODE_SPOOL", "/spool", 1);
	rc = config_parse(text, "fuzz.conf", count, &problems, &c, &err);
	free(text);
	if ((rc == 0) != (c != NULL) || (rc == 0) != (problems == 0) || (rc < 0 && err.code == 0))
		abort();
	if (c)
		check(c);
	config_free(c);
	return 0;
}
