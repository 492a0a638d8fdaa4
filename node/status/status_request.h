/* SPDX-License-Identifier: Apache-2.0 */
/* Check a browser's request: path, Host, Origin, form. Pure functions of untrusted bytes; no HTTP library, no files.
 *
 * - Accepted are only: a path from a fixed list, a job number of digits only, a form with the known fields once each.
 * - Host must be an IP address, localhost or the configured name. An attacker who makes his own name resolve to the node's
 *   address (DNS rebinding) is thereby refused.
 */
#ifndef TOMONODE_NODE_STATUS_REQUEST_H
#define TOMONODE_NODE_STATUS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/status/status_person.h"

#define STATUS_TOKEN_SIZE 33 /* 128 bits as hexadecimal digits, terminated */
#define STATUS_FORM_MAX 512  /* bytes of a form; the forms of the page have less than 100 */

enum status_page {
	STATUS_NONE, /* no such page */
	/* served by the process that reads the journal */
	STATUS_OVERVIEW,  /* / */
	STATUS_CASES,	  /* /cases */
	STATUS_CASE,	  /* /jobs/ID */
	STATUS_JSON,	  /* /status.json */
	STATUS_METRICS,	  /* /metrics */
	STATUS_HEALTH,	  /* /health */
	STATUS_THUMBNAIL, /* /jobs/ID/thumbnail.png */
	STATUS_STRIP,	  /* /jobs/ID/slices.png */
	STATUS_SLICE,	  /* /jobs/ID/slices/N */
	STATUS_LOOK,	  /* /jobs/ID/look */
	STATUS_COMPARE,	  /* /jobs/ID/look/N: beside it the result of case N */
	STATUS_REPORT,	  /* /jobs/ID/report */
	STATUS_RETRY,	  /* POST /jobs/ID/retry */
	STATUS_AS_IS,	  /* POST /jobs/ID/as-is */
	STATUS_SAME,	  /* POST /jobs/ID/same-patient */
	STATUS_NEWER,	  /* POST /jobs/ID/newer */
	STATUS_SWEEP,	  /* POST /jobs/ID/sweep, with a number */
	STATUS_CANCEL,	  /* POST /jobs/ID/cancel */
	STATUS_REDO,	  /* POST /jobs/ID/redo, with a protocol */
	STATUS_REFUSED,	  /* no page: the HTTP process has refused a request, which is logged */
	/* served by the HTTP process itself */
	STATUS_STYLE,  /* /status.css */
	STATUS_SCRIPT, /* /status.js */
	STATUS_VIEWER, /* /look.js */
	STATUS_ICON,   /* /icon.svg */
};

struct status_route {
	const char *path; /* {id}: number of a case; {n}: another number */
	bool posts;	  /* true: POST; false: GET and HEAD */
	enum status_page page;
	enum status_role role; /* that a person needs */
};

const struct status_route *status_route_at(size_t i);	  /* the routes of the program, in order; NULL behind the last one */
enum status_role status_page_role(enum status_page page); /* no page, STATUS_REFUSED: STATUS_ROLE_ANYONE */
/* Return the page of a path, given without query. ret_numbers: {id} and {n} of the path, 1 or more; 0: it has none. */
enum status_page status_request_page(const char *path, int64_t ret_numbers[2]);
bool status_page_changes_job(enum status_page page); /* true: changes a job; needs POST, token and origin */

/* Return true if the Host header ("127.0.0.1:11180"; NULL: missing) is accepted. own: status.host of the configuration; "": none.
 */
bool status_request_host_allowed(const char *host, const char *own);
/* Return true if a page of this origin may change a job: its host is that of the request, or there is no Origin header (NULL). */
bool status_request_origin_allowed(const char *origin, const char *host);
/* Return true if the form is "token=HEX" with the right token. The comparison takes constant time. */
bool status_request_token_valid(const char *form, size_t n, const char token[STATUS_TOKEN_SIZE]);
/* The same for "token=HEX&FIELD=VALUE", percent-encoded. *ret_value: 1 to size - 1 bytes without control characters. */
bool status_request_choice_valid(const char *form, size_t n, const char token[STATUS_TOKEN_SIZE], const char *field,
				 char *ret_value, size_t size);

#endif
