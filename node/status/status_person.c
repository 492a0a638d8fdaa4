/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_person.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/utf8.h"
#include "node/base/network.h"

static const char torn[] = ""; /* stands for a value that has a zero byte inside: no name, no group */

/* Compare the name of a header with a configured one, '_' as '-'. */
static bool same_header(const char *name, const char *wanted)
{
	for (; *name && *wanted; name++, wanted++)
		if (tolower((unsigned char)(*name == '_' ? '-' : *name)) != tolower((unsigned char)*wanted))
			return false;
	return *name == *wanted;
}

void status_claim_header(struct status_claim *c, const struct status_conf *conf, const char *name, const char *value, size_t n)
{
	const char *text = value && strlen(value) == n ? value : torn;

	if (!conf->trusted_header[0])
		return;
	if (same_header(name, conf->trusted_header)) {
		c->n_users++;
		if (!strcasecmp(name, conf->trusted_header))
			c->user = text;
	}
	if (same_header(name, conf->trusted_groups)) {
		c->n_groups++;
		if (!strcasecmp(name, conf->trusted_groups))
			c->groups = text;
	}
}

/* Control characters (C0, C1, DEL) and those that change the writing direction or cannot be seen. */
static bool is_shown(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c <= 0xa0) && c != 0xad && c != 0x61c && !(c >= 0x200b && c <= 0x200f) &&
	       !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff && !(c >= 0xfff0 && c <= 0xfffb) &&
	       !(c >= 0xe0000 && c <= 0xe0fff);
}

/* Return true for well-formed UTF-8 whose characters are all visible, or blanks inside. */
static bool is_text(const char *text)
{
	for (uint32_t code; *text;) {
		size_t n = utf8_decode(text, &code);

		if (n == 0 || !is_shown(code))
			return false;
		text += n;
	}
	return true;
}

bool status_person_valid(const char *name)
{
	size_t n = strnlen(name, STATUS_PERSON_SIZE);

	return n > 0 && n < STATUS_PERSON_SIZE && name[0] != ' ' && name[n - 1] != ' ' && !strchr(name, ',') && is_text(name);
}

static bool is_trusted(const struct status_conf *conf, const struct in6_addr *from)
{
	const struct network address = {.address = *from, .bits = 128};
	struct network net;

	if (IN6_IS_ADDR_UNSPECIFIED(from)) /* not known */
		return false;
	for (size_t i = 0; i < conf->trusted_from.n; i++)
		if (network_parse(conf->trusted_from.name[i], &net) && network_contains(&net, &address))
			return true;
	return false;
}

static bool is_in(const struct config_names *groups, const char *name, size_t n)
{
	for (size_t i = 0; i < groups->n; i++)
		if (strlen(groups->name[i]) == n && !memcmp(groups->name[i], name, n))
			return true;
	return false;
}

/* groups: separated by commas, with blanks beside them or not. */
static enum status_role highest_role(const struct status_conf *conf, const char *groups)
{
	enum status_role role = STATUS_ROLE_ANYONE, one;

	while (*groups) {
		size_t whole = strcspn(groups, ","), n;
		const char *name = groups + strspn(groups, " ");

		n = name < groups + whole ? (size_t)(groups + whole - name) : 0;
		while (n > 0 && name[n - 1] == ' ')
			n--;
		one = is_in(&conf->may_administer, name, n) ? STATUS_ROLE_ADMINISTER
		      : is_in(&conf->may_act, name, n)	    ? STATUS_ROLE_ACT
		      : is_in(&conf->may_look, name, n)	    ? STATUS_ROLE_LOOK
							    : STATUS_ROLE_ANYONE;
		role = one > role ? one : role;
		groups += whole + (groups[whole] == ',');
	}
	return role;
}

/* Name the groups whose persons have at least this role. */
static void name_groups(const struct status_conf *conf, enum status_role needs, char *ret, size_t size)
{
	const struct config_names *const lists[] = {&conf->may_look, &conf->may_act, &conf->may_administer};
	size_t n = 0;

	snprintf(ret, size, "none");
	for (size_t k = (size_t)(needs - STATUS_ROLE_LOOK); k < 3; k++)
		for (size_t i = 0; i < lists[k]->n; i++) {
			const char *name = lists[k]->name[i];

			if (n + strlen(name) + 8 > size) {
				snprintf(ret + n, size - n, ", ...");
				return;
			}
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? ", " : "", name);
		}
}

static int refuse_person(char ret[STATUS_SENTENCE_SIZE], int code, const char *sentence)
{
	snprintf(ret, STATUS_SENTENCE_SIZE, "%s", sentence);
	return code;
}

int status_person_judge(const struct status_conf *conf, const struct in6_addr *from, const struct status_claim *claim,
			enum status_role needs, struct status_person *ret_person, char ret_sentence[STATUS_SENTENCE_SIZE])
{
	struct status_person person = {.role = STATUS_ROLE_ANYONE};
	char groups[300];

	*ret_person = person;
	if (needs == STATUS_ROLE_MISSING)
		return refuse_person(ret_sentence, 403, "This page is for nobody.");
	if (!conf->trusted_header[0]) {
		ret_person->role = STATUS_ROLE_ADMINISTER;
		return 0;
	}
	if (!is_trusted(conf, from))
		return refuse_person(
			ret_sentence, 403,
			"The page is served only through the web server in front of the node (status.trusted_from).");
	if (needs == STATUS_ROLE_ANYONE)
		return 0;
	if (claim->n_users > 1 || claim->n_groups > 1)
		return refuse_person(ret_sentence, 403, "The request names its person or the groups more than once.");
	if (claim->n_users == 0)
		return refuse_person(ret_sentence, 401,
				     "The request names no person: the web server in front of the node must sign you in first.");
	if (!claim->user || !status_person_valid(claim->user))
		return refuse_person(
			ret_sentence, 403,
			"The request names its person in a form that is not allowed (1 to 64 bytes of text without comma).");
	if (claim->n_groups == 1 && (!claim->groups || strlen(claim->groups) > STATUS_GROUPS_MAX || !is_text(claim->groups)))
		return refuse_person(ret_sentence, 403,
				     "The request names the groups of its person in a form that is not allowed.");
	memcpy(person.name, claim->user, strlen(claim->user));
	person.role = claim->n_groups == 1 ? highest_role(conf, claim->groups) : STATUS_ROLE_ANYONE;
	if (person.role < needs) {
		name_groups(conf, needs, groups, sizeof(groups));
		snprintf(ret_sentence, STATUS_SENTENCE_SIZE, "Your groups do not allow this. It needs one of these: %s.", groups);
		return 403;
	}
	*ret_person = person;
	return 0;
}

const char *status_role_text(enum status_role role)
{
	static const char *const texts[] = {
		[STATUS_ROLE_LOOK] = "may look", [STATUS_ROLE_ACT] = "may act", [STATUS_ROLE_ADMINISTER] = "may administer"};

	return role >= STATUS_ROLE_LOOK && role <= STATUS_ROLE_ADMINISTER ? texts[role] : "";
}
