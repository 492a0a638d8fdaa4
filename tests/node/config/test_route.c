/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns, and which results of a case follow from the routes that it takes. */
#include "tests/node/config/config_fixture.h"
#include "tests/test.h"

#include "node/config/route.h"

#define DESTINATIONS                                                                                                             \
	"destinations = ( { name = \"pacs\"; fallback = \"spare\"; }, { name = \"ws\"; aet = \"W\"; host = \"h\"; }, "           \
	"{ name = \"spare\"; aet = \"S\"; host = \"h\"; } );\n"

TEST(patterns)
{
	static const struct {
		const char *one, *other;
		bool covers, meets; /* one covers other; both meet */
	} cases[] = {
		{"*", "abc", true, true},      {"", "", true, true},	     {"", "a", false, false},
		{"*", "*", true, true},	       {"a*", "AB*", true, true},    {"ab*", "a*", false, true},
		{"a*", "*b", false, true},     {"a*c", "a*b", false, false}, {"?", "a", true, true},
		{"?", "*", false, true},       {"?*", "?*", true, true},     {"?*", "", false, false},
		{"*", "?", true, true},	       {"a?c", "abc", true, true},   {"abc", "a?c", false, true},
		{"?b", "a?", false, true},     {"*mlo", "lmlo", true, true}, {"l*", "r*", false, false},
		{"*b*", "a*b", true, true},    {"a", "aa", false, false},    {"**", "*", true, true},
		{"*a*b*", "*ab*", true, true}, {"?", "??", false, false},    {"*x*", "abc", false, false},
	};
	char text[80];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (pattern_covers(cases[i].one, cases[i].other) != cases[i].covers ||
		    pattern_meets(cases[i].one, cases[i].other) != cases[i].meets ||
		    pattern_meets(cases[i].other, cases[i].one) != cases[i].meets)
			fail_msg("'%s' and '%s'", cases[i].one, cases[i].other);
	assert_true(pattern_matches("?cm*e*", "ACME Inc"));
	assert_false(pattern_matches("a*b", "ABC"));
	assert_false(pattern_matches("[a]", "a"));
	assert_true(pattern_matches("?", "*")); /* a letter of a text */
	memset(text, '*', 64);
	text[64] = '\0';
	assert_true(pattern_meets(text, text));
}

static struct route_facts facts(const char *kind, const char *calling, const char *view, const char *study)
{
	struct route_facts f = {0};

	snprintf(f.kind, sizeof(f.kind), "%s", kind);
	snprintf(f.calling, sizeof(f.calling), "%s", calling);
	snprintf(f.value[ROUTE_VIEW], sizeof(f.value[0]), "%s", view);
	snprintf(f.value[ROUTE_STUDY_DESCRIPTION], sizeof(f.value[0]), "%s", study);
	return f;
}

/* Write the results of a case as "ROUTE/PROTOCOL>DESTINATION,DESTINATION ". */
static const char *results(const struct config *c, struct route_facts f)
{
	static char text[1000];
	struct route_result list[ROUTE_RESULTS_MAX];
	size_t n = config_route_results(c, &f, list), at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/%s", list[i].route, list[i].protocol);
		for (size_t k = 0; k < list[i].destinations.n; k++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%c%s", k ? ',' : '>', list[i].destinations.name[k]);
		at += (size_t)snprintf(text + at, sizeof(text) - at, " ");
	}
	return text;
}

TEST(results_of_a_case)
{
	struct config *c = good(
		DESTINATIONS
		"routes = ( { name = \"screening\"; study_description = \"*screen*\"; protocols = [ \"dbt-osem\", \"dbt-fbp\" ]; "
		"destinations = [ \"pacs\" ]; continue = true; },\n"
		"{ name = \"left\"; view = \"L*\"; protocols = [ \"dbt-fbp\", \"dbt-mlem\" ]; destinations = [ \"ws\", \"pacs\" "
		"]; },\n"
		"{ name = \"one\"; calling = \"MG1\"; protocols = [ \"dbt-sart\" ]; destinations = [ \"ws\" ]; continue = true; "
		"},\n"
		"{ name = \"last\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"ws\" ]; },\n"
		"{ name = \"pet\"; kind = \"pet\"; protocols = [ \"pet-mlem\" ]; destinations = [ \"pacs\" ]; } );");

	/* a protocol of two routes is one result with the destinations of both; the first without `continue` ends the list */
	assert_string_equal(results(c, facts("dbt", "MG1", "LMLO", "DBT Screening")),
			    "screening/dbt-osem>pacs screening/dbt-fbp>pacs,ws left/dbt-mlem>ws,pacs ");
	assert_string_equal(results(c, facts("dbt", "MG1", "RCC", "screen")),
			    "screening/dbt-osem>pacs,ws screening/dbt-fbp>pacs one/dbt-sart>ws ");
	assert_string_equal(results(c, facts("dbt", "MG2", "", "")), "last/dbt-osem>ws ");
	assert_string_equal(results(c, facts("dbt", "mg1", "", "")), "last/dbt-osem>ws "); /* AE titles have a case */
	assert_string_equal(results(c, facts("pet", "MG1", "LMLO", "screen")), "pet/pet-mlem>pacs ");
	assert_string_equal(results(c, facts("ct", "MG1", "", "")), "");
	assert_string_equal(config_route_mismatch(&c->routes[1], &(struct route_facts){.kind = "dbt"}), "view");
	assert_string_equal(config_route_mismatch(&c->routes[2], &(struct route_facts){.kind = "dbt"}), "calling");
	assert_string_equal(config_route_mismatch(&c->routes[2], &(struct route_facts){.kind = "pet"}), "kind");
	assert_null(config_route_mismatch(&c->routes[3], &(struct route_facts){.kind = "dbt"}));
	assert_string_equal(config_route_default(c, "dbt")->name, "last");
	assert_string_equal(config_route_default(c, "pet")->name, "pet");
	assert_null(config_route_default(c, "ct"));
	c = good("routes = ( { name = \"r\"; station = \"A?*\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; } );");
	assert_string_equal(config_route_default(c, "dbt")->name, "r"); /* only the kind is known */
}

/* Each key is compared with its own value, and written by its name. */
TEST(each_fact)
{
	char text[1000], shown[600], expected[80];

	for (int i = 0; i < ROUTE_FACTS; i++) {
		struct route_facts f = {.kind = "dbt"};
		struct config *c;

		snprintf(text, sizeof(text),
			 "routes = ( { name = \"r\"; %s = \"l*B\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; } "
			 ");",
			 route_fact_names[i]);
		c = good(text);
		assert_string_equal(config_route_mismatch(&c->routes[0], &f), route_fact_names[i]);
		for (int k = 0; k < ROUTE_FACTS; k++)
			strcpy(f.value[k], k == i ? "L a b" : "other");
		assert_null(config_route_mismatch(&c->routes[0], &f));
		config_route_patterns(&c->routes[0], shown, sizeof(shown));
		snprintf(expected, sizeof(expected), "%s \"l*B\"", route_fact_names[i]);
		assert_string_equal(shown, expected);
	}
}

/* Load routes of tomosyntheses and return why the last one is never used; "": it may be. */
static const char *never(const char *first, const char *last)
{
	static char why[400];
	char text[1200];
	struct config *c;

	snprintf(text, sizeof(text),
		 "routes = ( { name = \"first\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; %s },\n"
		 "{ name = \"last\"; protocols = [ \"dbt-fbp\" ]; destinations = [ \"pacs\" ]; %s } );",
		 first, last);
	c = good(text);
	assert_false(config_route_is_unreachable(c, 0, why, sizeof(why)));
	why[0] = '\0';
	config_route_is_unreachable(c, 1, why, sizeof(why));
	return why;
}

TEST(unreachable)
{
	struct config *c;
	char why[400];

	assert_string_equal(never("", "view = \"L*\";"), "route first before it takes every dbt case from any sender");
	assert_string_equal(never("view = \"*CC\";", "view = \"LCC\"; station = \"A\";"),
			    "route first before it takes every dbt case from any sender with view \"*CC\"");
	assert_string_equal(never("calling = \"A\"; view = \"*\";", "calling = \"A\";"),
			    "route first before it takes every dbt case from A with view \"*\"");
	assert_string_equal(never("continue = true;", ""), "");
	assert_string_equal(never("view = \"L*\";", ""), "");
	assert_string_equal(never("view = \"L*\"; station = \"A\";", "view = \"LCC\";"), "");
	assert_string_equal(never("calling = \"A\";", ""), "");
	assert_string_equal(never("view = \"R*\";", "view = \"HFS\";"), "no dbt case has a view like HFS, its views are: L*, R*");
	assert_string_equal(never("view = \"R*\";", "view = \"MLO\";"), "no dbt case has a view like MLO, its views are: L*, R*");
	assert_string_equal(never("view = \"R*\";", "view = \"?MLO\";"), "");
	c = good("routes = ( { name = \"r\"; kind = \"pet\"; view = \"LMLO\"; protocols = [ \"pet-osem\" ]; destinations = [ "
		 "\"pacs\" ]; } );");
	assert_true(config_route_is_unreachable(c, 0, why, sizeof(why)));
	assert_non_null(strstr(why, "no pet case has a view like LMLO, its views are: HFP, HFS"));
	c = good("routes = ( { name = \"r\"; kind = \"pet\"; view = \"ffs\"; protocols = [ \"pet-osem\" ]; destinations = [ "
		 "\"pacs\" ]; } );");
	assert_false(config_route_is_unreachable(c, 0, why, sizeof(why)));
}

static void refused(const char *text, const char *part)
{
	static struct problems p;
	struct config *c = NULL;
	struct err err = {0};

	memset(&p, 0, sizeof(p));
	if (config_parse(text, "t.conf", keep, &p, &c, &err) != -EINVAL)
		fail_msg("accepted: %s", text);
	if (p.n != 1 || !strstr(p.text[0], part))
		fail_msg("%zu problems, not '%s': %s", p.n, part, p.text[0]);
}

#define TWIN "protocols = ( { name = \"twin\"; description = \"another name of the series\"; }, { name = \"same\"; } );\n"

TEST(results_that_cannot_be)
{
	char text[4000];
	size_t n;

	refused("routes = ( { name = \"r\"; protocol = \"dbt-osem\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; "
		"} );",
		"key 'protocol' of route 'r' is not known, did you mean 'protocols'?");
	refused("routes = ( { name = \"r\"; protocols = [ \"dbt-osem\", \"pet-mlem\" ]; destinations = [ \"pacs\" ]; } );",
		"\"pet-mlem\" is of kind pet");
	refused("routes = ( { name = \"r\"; protocols = [ \"dbt-osem\", \"dbt-osem\" ]; destinations = [ \"pacs\" ]; } );",
		"each once");
	refused("routes = ( { name = \"r\"; protocols = [ ]; destinations = [ \"pacs\" ]; } );", "0 names; allowed: 1 to 8");
	/* equal but for name and SeriesDescription: their objects would have the same UIDs */
	refused(TWIN
		"routes = ( { name = \"r\"; protocols = [ \"twin\", \"dbt-fbp\", \"same\" ]; destinations = [ \"pacs\" ]; } );",
		"t.conf:2: key 'protocols' of route 'r': \"twin\" and \"same\" reconstruct in the same way");
	refused(TWIN "routes = ( { name = \"a\"; view = \"*CC\"; protocols = [ \"twin\" ]; destinations = [ \"pacs\" ]; continue "
		     "= true; },\n"
		     "{ name = \"b\"; view = \"L*\"; protocols = [ \"same\" ]; destinations = [ \"pacs\" ]; } );",
		"\"twin\" and \"same\" of route 'b' reconstruct in the same way");
	/* no case takes both routes: other views; another kind or sender; the first ends the list; one between them ends it */
	good(TWIN "routes = ( { name = \"a\"; view = \"L*\"; protocols = [ \"twin\" ]; destinations = [ \"pacs\" ]; continue = "
		  "true; }, { name = \"b\"; view = \"R*\"; protocols = [ \"same\" ]; destinations = [ \"pacs\" ]; } );");
	good(TWIN "routes = ( { name = \"a\"; calling = \"A\"; protocols = [ \"twin\" ]; destinations = [ \"pacs\" ]; continue = "
		  "true; }, { name = \"b\"; calling = \"B\"; protocols = [ \"same\" ]; destinations = [ \"pacs\" ]; } );");
	good(TWIN "routes = ( { name = \"a\"; view = \"L*\"; protocols = [ \"twin\" ]; destinations = [ \"pacs\" ]; }, "
		  "{ name = \"b\"; protocols = [ \"same\" ]; destinations = [ \"pacs\" ]; } );");
	good(TWIN "routes = ( { name = \"a\"; view = \"L*\"; protocols = [ \"twin\" ]; destinations = [ \"pacs\" ]; "
		  "continue = true; }, { name = \"m\"; view = \"L*\"; protocols = [ \"dbt-fbp\" ]; destinations = [ "
		  "\"pacs\" ]; }, { name = \"b\"; protocols = [ \"same\" ]; destinations = [ \"pacs\" ]; } );");
	/* a destination and its fallback, by two routes */
	refused(DESTINATIONS
		"routes = ( { name = \"a\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; continue = true; },\n"
		"{ name = \"b\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"spare\" ]; } );",
		"key 'destinations' of route 'a': \"pacs\" and its fallback \"spare\"");
	config_free(
		good(DESTINATIONS
		     "routes = ( { name = \"a\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; continue = true; },\n"
		     "{ name = \"b\"; protocols = [ \"dbt-fbp\" ]; destinations = [ \"spare\" ]; } );"));
	/* more than 8 destinations of a result, more than 16 results */
	n = (size_t)snprintf(text, sizeof(text), "destinations = ( { name = \"pacs\"; }");
	for (int i = 0; i < 8; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", { name = \"d%d\"; aet = \"D\"; host = \"h\"; }", i);
	n += (size_t)snprintf(
		text + n, sizeof(text) - n,
		" );\nroutes = ( { name = \"a\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; continue = true; },"
		"{ name = \"b\"; protocols = [ \"%s\" ]; destinations = [ \"d0\", \"d1\", \"d2\", \"d3\", \"d4\", "
		"\"d5\", \"d6\", \"d7\" ]; } );",
		"dbt-osem");
	refused(text, "key 'continue' of route 'a': true, and a case that takes the following routes, too, has more than 8 "
		      "destinations of a result");
	n = (size_t)snprintf(text, sizeof(text), "protocols = ( ");
	for (int i = 0; i < 17; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s{ name = \"p%d\"; iterations = %d; }", i ? ", " : "", i,
				      i + 1);
	n += (size_t)snprintf(text + n, sizeof(text) - n, " );\nroutes = ( ");
	for (int i = 0; i < 17; i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			"%s{ name = \"r%d\"; protocols = [ \"p%d\" ]; destinations = [ \"pacs\" ]; continue = true; }",
			i ? ", " : "", i, i);
	snprintf(text + n, sizeof(text) - n, " );");
	refused(text,
		"key 'continue' of route 'r0': true, and a case that takes the following routes, too, has more than 16 results");
}

TESTS_SETUP(set_spool, NULL);
