/* SPDX-License-Identifier: Apache-2.0 */
/* The person of a request: whose headers are believed, what they may contain, and the role that each route of the program needs.
 */
#include <arpa/inet.h>

#include "node/status/status_person.h"
#include "node/status/status_request.h"
#include "tests/test.h"

/* What a person needs for each route. A route of the program that is not here, or with another role, fails test_routes(). */
static const struct {
	const char *method, *path;
	enum status_role role;
} expected[] = {
	{"GET", "/", STATUS_ROLE_LOOK},
	{"GET", "/cases", STATUS_ROLE_LOOK},
	{"GET", "/status.json", STATUS_ROLE_LOOK},
	{"GET", "/metrics", STATUS_ROLE_ANYONE},
	{"GET", "/health", STATUS_ROLE_ANYONE},
	{"GET", "/status.css", STATUS_ROLE_ANYONE},
	{"GET", "/status.js", STATUS_ROLE_ANYONE},
	{"GET", "/look.js", STATUS_ROLE_ANYONE},
	{"GET", "/icon.svg", STATUS_ROLE_ANYONE},
	{"GET", "/jobs/{id}", STATUS_ROLE_LOOK},
	{"GET", "/jobs/{id}/thumbnail.png", STATUS_ROLE_LOOK},
	{"GET", "/jobs/{id}/slices.png", STATUS_ROLE_LOOK},
	{"GET", "/jobs/{id}/slices/{n}", STATUS_ROLE_LOOK},
	{"GET", "/jobs/{id}/look", STATUS_ROLE_LOOK},
	{"GET", "/jobs/{id}/look/{n}", STATUS_ROLE_LOOK},
	{"GET", "/jobs/{id}/report", STATUS_ROLE_LOOK},
	{"POST", "/jobs/{id}/retry", STATUS_ROLE_ACT},
	{"POST", "/jobs/{id}/as-is", STATUS_ROLE_ACT},
	{"POST", "/jobs/{id}/cancel", STATUS_ROLE_ACT},
	{"POST", "/jobs/{id}/redo", STATUS_ROLE_ACT},
	{"POST", "/jobs/{id}/same-patient", STATUS_ROLE_ADMINISTER},
	{"POST", "/jobs/{id}/sweep", STATUS_ROLE_ACT},
	{"POST", "/jobs/{id}/newer", STATUS_ROLE_ADMINISTER},
};
#define ROUTES (sizeof(expected) / sizeof(expected[0]))

TEST(test_routes)
{
	bool served[STATUS_ICON + 1] = {[STATUS_NONE] = true, [STATUS_REFUSED] = true};
	size_t n;

	for (n = 0; status_route_at(n); n++) {
		const struct status_route *r = status_route_at(n);
		size_t i = 0;

		while (i < ROUTES && strcmp(expected[i].path, r->path) != 0)
			i++;
		if (i == ROUTES)
			fail_msg("%s has no row in this table", r->path);
		assert_int_equal(r->role, expected[i].role);
		assert_string_equal(r->posts ? "POST" : "GET", expected[i].method);
		assert_int_equal(status_page_role(r->page), expected[i].role);
		assert_int_equal(status_page_changes_job(r->page), r->posts);
		assert_false(served[r->page]); /* a page of two routes would have two roles */
		served[r->page] = true;
	}
	assert_int_equal(n, ROUTES);
	for (size_t i = 0; i <= STATUS_ICON; i++)
		assert_true(served[i]);
}

static const struct status_conf conf = {
	.trusted_header = "X-Remote-User",
	.trusted_groups = "X-Remote-Groups",
	.trusted_from = {.name = {"127.0.0.1", "10.1.0.0/16", "2001:db8::7"}, .n = 3},
	.may_look = {.name = {"ward", "CN=night shift"}, .n = 2},
	.may_act = {.name = {"mtra"}, .n = 1},
	.may_administer = {.name = {"physics"}, .n = 1},
};

static struct in6_addr address(const char *text)
{
	struct in6_addr a;
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	assert_int_equal(inet_pton(AF_INET6, mapped, &a), 1);
	return a;
}

/* Judge a request of one header of each kind; NULL: none. */
static int judge(const char *from, const char *user, const char *groups, enum status_role needs, struct status_person *ret)
{
	const struct in6_addr a = address(from);
	char sentence[STATUS_SENTENCE_SIZE] = "";
	struct status_claim claim = {0};
	int code;

	if (user)
		status_claim_header(&claim, &conf, "x-remote-USER", user, strlen(user));
	if (groups)
		status_claim_header(&claim, &conf, "X-REMOTE-groups", groups, strlen(groups));
	code = status_person_judge(&conf, &a, &claim, needs, ret, sentence);
	assert_int_equal(code == 0, sentence[0] == '\0');
	if (code)
		assert_true(!ret->name[0] && ret->role == STATUS_ROLE_ANYONE);
	return code;
}

TEST(test_addresses)
{
	static const char *const good[] = {"127.0.0.1", "10.1.0.0", "10.1.255.255", "2001:db8::7"};
	static const char *const bad[] = {"127.0.0.2", "10.2.0.1", "2001:db8::8", "::1", "::", "::127.0.0.1"};
	struct status_person p;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(judge(good[i], "ann", "mtra", STATUS_ROLE_ACT, &p), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (enum status_role needs = STATUS_ROLE_ANYONE; needs <= STATUS_ROLE_ADMINISTER; needs++)
			assert_int_equal(judge(bad[i], "ann", "physics", needs, &p), 403);
}

TEST(test_names)
{
	static const char *const good[] = {"a", "Ann Smith", "J\xc3\xb6rg", "ann@EXAMPLE.ORG", "<b>&\"'"};
	static const char *const bad[] = {"",	   " ann",	"ann ",	     "ann,bob",	      "ann\tx", "a\x01",       "a\x7f",
					  "a\xff", "a\xc0\xaf", "a\xc2\x85", "a\xe2\x80\xae", "a\r\nb", "\xe2\x80\x8b"};
	char name[STATUS_PERSON_SIZE + 1];
	struct status_person p;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(judge("127.0.0.1", good[i], "ward", STATUS_ROLE_LOOK, &p), 0);
		assert_string_equal(p.name, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(judge("127.0.0.1", bad[i], "ward", STATUS_ROLE_LOOK, &p), 403);
	memset(name, 'a', sizeof(name));
	name[STATUS_PERSON_SIZE] = '\0';
	assert_int_equal(judge("127.0.0.1", name, "ward", STATUS_ROLE_LOOK, &p), 403);
	assert_int_equal(judge("127.0.0.1", name + 1, "ward", STATUS_ROLE_LOOK, &p), 0);
	assert_int_equal(judge("127.0.0.1", NULL, "physics", STATUS_ROLE_LOOK, &p), 401);
	assert_int_equal(judge("127.0.0.1", NULL, NULL, STATUS_ROLE_ANYONE, &p), 0);
	assert_int_equal(judge("127.0.0.1", "ann", "physics", STATUS_ROLE_MISSING, &p), 403);
}

TEST(test_groups)
{
	static const struct {
		const char *groups;
		enum status_role role;
	} cases[] = {
		{"ward", STATUS_ROLE_LOOK},
		{"mtra", STATUS_ROLE_ACT},
		{"physics", STATUS_ROLE_ADMINISTER},
		{"physics,ward", STATUS_ROLE_ADMINISTER},
		{" a ,, mtra , ward ", STATUS_ROLE_ACT},
		{"CN=night shift", STATUS_ROLE_LOOK},
		{"night shift", STATUS_ROLE_ANYONE},
		{"Physics", STATUS_ROLE_ANYONE},
		{"physic", STATUS_ROLE_ANYONE},
		{"physics2", STATUS_ROLE_ANYONE},
		{"phys,ics", STATUS_ROLE_ANYONE},
		{"", STATUS_ROLE_ANYONE},
		{" , ", STATUS_ROLE_ANYONE},
		{NULL, STATUS_ROLE_ANYONE},
	};
	char many[STATUS_GROUPS_MAX + 2];
	struct status_person p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (enum status_role needs = STATUS_ROLE_LOOK; needs <= STATUS_ROLE_ADMINISTER; needs++) {
			assert_int_equal(judge("127.0.0.1", "ann", cases[i].groups, needs, &p), needs <= cases[i].role ? 0 : 403);
			if (needs <= cases[i].role)
				assert_int_equal(p.role, cases[i].role);
		}
	memset(many, ',', sizeof(many));
	memcpy(many, "mtra", 4);
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(judge("127.0.0.1", "ann", many, STATUS_ROLE_LOOK, &p), 403);
	assert_int_equal(judge("127.0.0.1", "ann", many + 4, STATUS_ROLE_ANYONE, &p), 0);
	many[sizeof(many) - 2] = '\0';
	assert_int_equal(judge("127.0.0.1", "ann", many, STATUS_ROLE_LOOK, &p), 0);
	assert_int_equal(judge("127.0.0.1", "ann", "mtra\x01", STATUS_ROLE_LOOK, &p), 403);
}

/* A header twice, under a name with an underscore, or with a zero byte inside. */
TEST(test_doubles)
{
	static const char *const names[][2] = {{"X-Remote-User", "x-remote-user"},
					       {"X_Remote_User", "X-Remote-User"},
					       {"X-Remote-Groups", "X-REMOTE-GROUPS"},
					       {"X-Remote_Groups", "X-Remote-Groups"}};
	const struct in6_addr a = address("127.0.0.1");
	char sentence[STATUS_SENTENCE_SIZE];
	struct status_person p;

	for (size_t i = 0; i < 4; i++) {
		struct status_claim claim = {0};

		status_claim_header(&claim, &conf, i < 2 ? "X-Remote-Groups" : "X-Remote-User", "physics", 7);
		status_claim_header(&claim, &conf, names[i][0], "physics", 7);
		if (i != 1)
			assert_int_equal(status_person_judge(&conf, &a, &claim, STATUS_ROLE_LOOK, &p, sentence),
					 i == 3 ? 403 : 0);
		status_claim_header(&claim, &conf, names[i][1], "physics", 7);
		assert_int_equal(status_person_judge(&conf, &a, &claim, STATUS_ROLE_LOOK, &p, sentence), 403);
	}
	for (int both = 0; both < 2; both++) {
		struct status_claim claim = {0};

		status_claim_header(&claim, &conf, both ? "X-Remote-User" : "X_Remote_User", "ann\0x", both ? 5 : 3);
		status_claim_header(&claim, &conf, "X-Remote-Groups", "physics", 7);
		assert_int_equal(status_person_judge(&conf, &a, &claim, STATUS_ROLE_LOOK, &p, sentence), 403);
	}
}

TEST(test_sentences)
{
	const struct in6_addr a = address("127.0.0.1");
	struct status_claim claim = {.n_users = 1, .user = "ann"};
	char sentence[STATUS_SENTENCE_SIZE];
	struct status_person p;

	assert_int_equal(status_person_judge(&conf, &a, &claim, STATUS_ROLE_ACT, &p, sentence), 403);
	assert_string_equal(sentence, "Your groups do not allow this. It needs one of these: mtra, physics.");
	assert_int_equal(status_person_judge(&conf, &a, &claim, STATUS_ROLE_LOOK, &p, sentence), 403);
	assert_non_null(strstr(sentence, ": ward, CN=night shift, mtra, physics."));
}

/* Without the configuration everyone has every role, and no header is looked at. */
TEST(test_nobody)
{
	const struct status_conf none = {.trusted_groups = "X-Remote-Groups"};
	const struct in6_addr a = address("192.0.2.1");
	struct status_claim claim = {0};
	char sentence[STATUS_SENTENCE_SIZE];
	struct status_person p;

	status_claim_header(&claim, &none, "X-Remote-User", "ann", 3);
	status_claim_header(&claim, &none, "", "ann", 3);
	assert_int_equal(claim.n_users + claim.n_groups, 0);
	assert_int_equal(status_person_judge(&none, &a, &claim, STATUS_ROLE_ADMINISTER, &p, sentence), 0);
	assert_true(!p.name[0] && p.role == STATUS_ROLE_ADMINISTER);
}
