/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/check_route.h"

#include <stdio.h>

#include "node/base/exit_code.h"
#include "node/config/route.h"
#include "node/reconstruct/case_files.h"

static void print_facts(const struct route_facts *f)
{
	for (int i = 0; i < ROUTE_FACTS; i++)
		if (f->value[i][0])
			printf("  %s \"%s\"\n", route_fact_names[i], f->value[i]);
}

static void print_routes(const struct config *c, const struct route_facts *f)
{
	bool ended = false;

	for (size_t i = 0; i < c->n_routes; i++) {
		const struct route_conf *r = &c->routes[i];
		const char *key = config_route_mismatch(r, f);

		if (key)
			printf("  route %s: not for this case, its %s is another\n", r->name, key);
		else
			printf("  route %s: %s\n", r->name, ended ? "not used, a route before it has no continue" : "used");
		ended = ended || (!key && !r->continues);
	}
}

static size_t print_results(const struct config *c, const struct route_facts *f)
{
	struct route_result list[ROUTE_RESULTS_MAX];
	size_t n = config_route_results(c, f, list);

	for (size_t i = 0; i < n; i++) {
		printf("  result: %s to", list[i].protocol);
		for (size_t k = 0; k < list[i].destinations.n; k++)
			printf("%s %s", k ? "," : "", list[i].destinations.name[k]);
		putchar('\n');
	}
	if (n == 0)
		printf("  no result: the case would be held\n");
	return n;
}

int check_route(const struct config *c, const char *path, const char *calling)
{
	char *const paths[] = {(char *)path, NULL};
	struct case_list *list = NULL;
	struct case_facts facts;
	struct err err = {0};
	int code = CODE_OK;

	if (case_list_create(paths, &list, &err) < 0) {
		fprintf(stderr, "tomonode check: %s\n", err.msg);
		return CODE_INPUT;
	}
	for (size_t i = 0; i < list->n; i++) {
		if (!list->cases[i].kind || case_read_facts(list->cases[i].paths[0], &facts, &err) < 0)
			continue;
		snprintf(facts.route.calling, sizeof(facts.route.calling), "%s", calling);
		printf("case of kind %s from %s, %zu file%s, the first is %s\n", facts.route.kind,
		       calling[0] ? calling : "no named sender", list->cases[i].n, list->cases[i].n == 1 ? "" : "s",
		       list->cases[i].paths[0]);
		print_facts(&facts.route);
		print_routes(c, &facts.route);
		if (print_results(c, &facts.route) == 0)
			code = CODE_CONFIG;
	}
	if (list->n == 0) {
		fprintf(stderr, "tomonode check: neither projections nor sinograms in %s\n", path);
		code = CODE_INPUT;
	}
	case_list_free(list);
	return code;
}
