/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/check_route.h"

#include <jansson.h>
#include <stdio.h>

#include "node/base/exit_code.h"
#include "node/config/route.h"
#include "node/reconstruct/case_files.h"
#include "node/store/event.h"

static json_t *facts_json(const struct route_facts *f)
{
	json_t *o = json_object();

	for (int i = 0; i < ROUTE_FACTS; i++)
		if (f->value[i][0])
			json_object_set_new(o, route_fact_names[i], event_json_text(f->value[i]));
	return o;
}

/* Of a route that is not used the key that does not match, "": a route before it has no continue. */
static json_t *routes_json(const struct config *c, const struct route_facts *f)
{
	json_t *list = json_array();
	bool ended = false;

	for (size_t i = 0; i < c->n_routes; i++) {
		const struct route_conf *r = &c->routes[i];
		const char *key = config_route_mismatch(r, f);

		json_array_append_new(
			list, json_pack("{s:s, s:b, s:s}", "route", r->name, "used", !key && !ended, "mismatch", key ? key : ""));
		ended = ended || (!key && !r->continues);
	}
	return list;
}

static json_t *results_json(const struct config *c, const struct route_facts *f)
{
	struct route_result list[ROUTE_RESULTS_MAX];
	size_t n = config_route_results(c, f, list);
	json_t *results = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *to = json_array();

		for (size_t k = 0; k < list[i].destinations.n; k++)
			json_array_append_new(to, json_string(list[i].destinations.name[k]));
		json_array_append_new(results, json_pack("{s:s, s:o}", "protocol", list[i].protocol, "destinations", to));
	}
	return results;
}

static json_t *case_json(const struct config *c, const struct route_facts *f, const struct case_files *files)
{
	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "kind", f->kind, "files", (json_int_t)files->n, "first",
			 event_json_text(files->paths[0]), "values", facts_json(f), "routes", routes_json(c, f), "results",
			 results_json(c, f));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void print_case(const json_t *all, const char *calling)
{
	json_t *results = json_object_get(all, "results"), *one, *name;
	json_int_t n = json_integer_value(json_object_get(all, "files"));
	const char *fact;
	size_t i, k;

	printf("case of kind %s from %s, %lld file%s, the first is %s\n", text_of(all, "kind"),
	       calling[0] ? calling : "no named sender", (long long)n, n == 1 ? "" : "s", text_of(all, "first"));
	json_object_foreach(json_object_get(all, "values"), fact, one) printf("  %s \"%s\"\n", fact, json_string_value(one));
	json_array_foreach(json_object_get(all, "routes"), i, one)
	{
		if (text_of(one, "mismatch")[0])
			printf("  route %s: not for this case, its %s is another\n", text_of(one, "route"),
			       text_of(one, "mismatch"));
		else
			printf("  route %s: %s\n", text_of(one, "route"),
			       json_is_true(json_object_get(one, "used")) ? "used"
									  : "not used, a route before it has no continue");
	}
	json_array_foreach(results, i, one)
	{
		printf("  result: %s to", text_of(one, "protocol"));
		json_array_foreach(json_object_get(one, "destinations"), k, name)
			printf("%s %s", k ? "," : "", json_string_value(name));
		putchar('\n');
	}
	if (json_array_size(results) == 0)
		printf("  no result: the case would be held\n");
}

static int refuse_file(const char *path, const char *reason, json_t *list)
{
	fprintf(stderr, "%s: %s\n", path, reason);
	json_array_append_new(list, json_pack("{s:o, s:o}", "file", event_json_text(path), "reason", event_json_text(reason)));
	return CODE_INPUT;
}

int check_route(const struct options *o, const struct config *c, const char *path, const char *calling)
{
	char *const paths[] = {(char *)path, NULL};
	struct case_list *list = NULL;
	struct case_facts facts;
	struct err err = {0};
	json_t *cases, *refused;
	int code = CODE_OK;

	if (case_list_create(paths, &list, &err) < 0)
		return options_fail(o, CODE_INPUT, "%s", err.msg);
	if (list->n + list->n_refused == 0) {
		case_list_free(list);
		return options_fail(o, CODE_INPUT, "no projections and no sinograms in %s", path);
	}
	cases = json_array();
	refused = json_array();
	for (size_t i = 0; i < list->n_refused; i++)
		code = refuse_file(list->refused[i].path, list->refused[i].reason, refused);
	for (size_t i = 0; i < list->n; i++) {
		struct route_result results[ROUTE_RESULTS_MAX];
		json_t *one;

		if (!list->cases[i].kind)
			continue;
		if (case_read_facts(list->cases[i].paths[0], &facts, &err) < 0) {
			code = refuse_file(list->cases[i].paths[0], err.msg, refused);
			continue;
		}
		snprintf(facts.route.calling, sizeof(facts.route.calling), "%s", calling);
		if (config_route_results(c, &facts.route, results) == 0 && code == CODE_OK)
			code = CODE_CONFIG;
		one = case_json(c, &facts.route, &list->cases[i]);
		if (!o->json)
			print_case(one, calling);
		json_array_append_new(cases, one);
	}
	if (o->json && options_json(json_pack("{s:b, s:i, s:o, s:O, s:O}", "ok", code == CODE_OK, "code", code, "calling",
					      event_json_text(calling), "cases", cases, "refused", refused)) != CODE_OK)
		code = CODE_FAILED;
	json_decref(refused);
	json_decref(cases);
	case_list_free(list);
	return code;
}
