/* SPDX-License-Identifier: Apache-2.0 */
/* The person of a request. The node has no accounts: a web server in front of it (`trusted_from` of the configuration) signs
 * people in and names them, and their groups, in headers of the request. Pure functions of untrusted bytes; no HTTP library, no
 * files.
 *
 * - Only requests from an address in `trusted_from` are accepted, whatever they contain.
 * - The header of the person must be there exactly once, that of the groups at most once. A second one, or one whose name has an
 *   underscore instead of a minus, may come from the client: it is never chosen between them.
 * - Each role includes the lower ones. A person of several groups has the highest role of them.
 * - Without `trusted_header` there are no persons, and everyone who can reach the page has every role.
 */
#ifndef TOMONODE_NODE_STATUS_PERSON_H
#define TOMONODE_NODE_STATUS_PERSON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "node/config/config.h"

#define STATUS_PERSON_SIZE 65	 /* bytes of a person's name, terminated */
#define STATUS_GROUPS_MAX 2048	 /* bytes of the header with the groups */
#define STATUS_SENTENCE_SIZE 500 /* bytes of the reason of a refusal, terminated */

/* What a request needs, and what a person has. A route without a role is refused to everyone. */
enum status_role {
	STATUS_ROLE_MISSING,
	STATUS_ROLE_ANYONE, /* no person: for programs, and what an error page needs */
	STATUS_ROLE_LOOK,
	STATUS_ROLE_ACT,
	STATUS_ROLE_ADMINISTER,
};

struct status_claim {		   /* what the headers of a request say about its person */
	size_t n_users, n_groups;  /* how often each of the two headers is there, see status_claim_header() */
	const char *user, *groups; /* their values, borrowed; NULL: none */
};

struct status_person {
	char name[STATUS_PERSON_SIZE]; /* UTF-8; "": no person */
	enum status_role role;
};

/* Take a header of a request into account. n: bytes of the value, which has a terminating zero behind them. */
void status_claim_header(struct status_claim *c, const struct status_conf *conf, const char *name, const char *value, size_t n);
/* Judge a request from this address for a page that needs this role. Returns 0, or the HTTP status of its refusal (401: it names
 * no person, 403), with the reason as a sentence. */
int status_person_judge(const struct status_conf *conf, const struct in6_addr *from, const struct status_claim *claim,
			enum status_role needs, struct status_person *ret_person, char ret_sentence[STATUS_SENTENCE_SIZE]);
/* Return true for a name as above: 1 to STATUS_PERSON_SIZE - 1 bytes of well-formed UTF-8 without control characters, characters
 * that change the writing direction, commas (RFC 9110 section 5.3 joins repeated headers by commas) and blanks at the ends. */
bool status_person_valid(const char *name);
/* "may look", "may act", "may administer"; "" for other roles. */
const char *status_role_text(enum status_role role);

#endif
