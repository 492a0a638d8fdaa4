/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz what the status page itself parses: path, Host, Origin, form, the headers with a person; and how it escapes external text.
 * Arbitrary bytes give a response, never a crash; accepted input fulfils what node/status/status_request.h guarantees, and
 * escaped text cannot leave its place in the page. The input: lines path, Host, Origin, form, text, person, groups. Run:
 * fuzz_http -max_len=2048 WORK_FOLDER tests/fuzz/corpus/http */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/html.h"
#include "node/status/status_filter.h"
#include "node/status/status_request.h"
#include "tests/fuzz/fuzz.h"

#define LINES 7

static void check_page(const char *path)
{
	int64_t numbers[2] = {-1, -1}, job;
	enum status_page page = status_request_page(path, numbers);
	bool two = page == STATUS_SLICE || page == STATUS_COMPARE;

	job = numbers[0];
	if (page < STATUS_NONE || page > STATUS_ICON || job < 0 || numbers[1] < 0 || (numbers[1] > 0) != two)
		abort();
	if (page != STATUS_NONE && (job > 0) != (strncmp(path, "/jobs/", 6) == 0))
		abort();
	if (status_page_changes_job(page) && job < 1)
		abort();
}

static void check_host(const char *host, const char *origin)
{
	/* An accepted host name is an address, localhost or the configured name; none of them contains these characters. */
	if (status_request_host_allowed(host, "node.example") && strpbrk(host, "/@?# \t\r\n%\\"))
		abort();
	if (status_request_origin_allowed(origin, host) && (strlen(origin) < strlen(host) || !strstr(origin, "://")))
		abort();
}

static void check_text(const char *text)
{
	struct html h = {0};

	html_text(&h, text);
	if (h.failed || (h.text && strpbrk(h.text, "<>\"'\r\n\t\x7f")))
		abort();
	for (const char *c = h.text; c && (c = strchr(c, '&')); c++)
		if (strncmp(c, "&amp;", 5) && strncmp(c, "&lt;", 4) && strncmp(c, "&gt;", 4) && strncmp(c, "&quot;", 6) &&
		    strncmp(c, "&#39;", 5))
			abort();
	html_clear(&h);
	h.metrics = true;
	html_text(&h, text);
	for (const char *c = h.text; c && *c; c++) {
		if (*c == '\n' || *c == '"')
			abort();
		if (*c == '\\' && !strchr("\\\"n", *++c))
			abort();
	}
	html_clear(&h);
}

/* A search: no value makes a structure that is refused, or a link that ends its attribute. */
static void check_filter(const char *text)
{
	struct status_filter f = {0};
	char query[STATUS_FILTER_QUERY];

	for (int field = 0; field < STATUS_FIELDS; field++)
		status_filter_set(&f, (enum status_field)field, text);
	status_filter_query(&f, f.page, query, sizeof(query));
	if (!status_filter_valid(&f) || strpbrk(query, "<>\"' \r\n\t\x7f"))
		abort();
}

/* A person is accepted only with a name that a journal and a page can hold, and with a role of the groups. */
static void check_person(const char *user, const char *groups)
{
	static const struct status_conf conf = {.trusted_header = "X-Remote-User",
						.trusted_groups = "X-Remote-Groups",
						.trusted_from = {.name = {"::1"}, .n = 1},
						.may_look = {.name = {"ward"}, .n = 1},
						.may_administer = {.name = {"physics"}, .n = 1}};
	const struct in6_addr from = IN6ADDR_LOOPBACK_INIT;
	char sentence[STATUS_SENTENCE_SIZE];
	struct status_claim claim = {0};
	struct status_person person;

	status_claim_header(&claim, &conf, "x-remote-user", user, strlen(user));
	status_claim_header(&claim, &conf, "x-remote-groups", groups, strlen(groups));
	status_claim_header(&claim, &conf, user, groups, strlen(groups));
	if (status_person_judge(&conf, &from, &claim, STATUS_ROLE_LOOK, &person, sentence) != 0)
		return;
	if (!status_person_valid(person.name) || strcmp(person.name, user) != 0 || strpbrk(user, ",\r\n\t\x7f") ||
	    !strstr(groups, person.role == STATUS_ROLE_LOOK ? "ward" : "physics"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char token[STATUS_TOKEN_SIZE] = "00112233445566778899aabbccddeeff";
	char *text = malloc(size + 1), *line[LINES], *rest = text;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < LINES; i++) {
		char *end = rest + strcspn(rest, "\n");

		line[i] = rest;
		rest = *end && i + 1 < LINES ? end + 1 : end;
		if (i + 1 < LINES)
			*end = '\0';
	}
	check_page(line[0]);
	check_host(line[1], line[2]);
	if (status_request_token_valid(line[3], strlen(line[3]), token) && strcmp(line[3] + 6, token) != 0)
		abort();
	check_text(line[4]);
	check_filter(line[4]);
	check_person(line[5], line[6]);
	free(text);
	return 0;
}
