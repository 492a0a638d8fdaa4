/* What a browser asks for, checked: path, Host, Origin, form. Pure functions over bytes from outside; no HTTP library, no files.
 *
 * - Only what is known passes: a path is one of a fixed list, a number is digits, a form has known fields once each.
 * - A page asked for under a name that is not ours is refused: a name that an attacker's server gives our address to (DNS
 *   rebinding) is never an address, localhost or the configured name.
 */
#ifndef TOMONODE_NODE_STATUS_REQUEST_H
#define TOMONODE_NODE_STATUS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATUS_TOKEN_SIZE 33 /* 128 bits as hexadecimal digits, terminated */
#define STATUS_FORM_MAX 512  /* bytes of a form; ours have under 100 */

enum status_page {
	STATUS_NONE, /* no such page */
	/* answered by the process that reads the journal */
	STATUS_OVERVIEW,  /* / */
	STATUS_CASE,	  /* /jobs/ID */
	STATUS_JSON,	  /* /status.json */
	STATUS_METRICS,	  /* /metrics */
	STATUS_HEALTH,	  /* /health */
	STATUS_THUMBNAIL, /* /jobs/ID/thumbnail.png */
	STATUS_RETRY,	  /* POST /jobs/ID/retry */
	STATUS_AS_IS,	  /* POST /jobs/ID/as-is */
	STATUS_CANCEL,	  /* POST /jobs/ID/cancel */
	/* answered by the process that speaks HTTP */
	STATUS_STYLE,  /* /status.css */
	STATUS_SCRIPT, /* /status.js */
	STATUS_ICON,   /* /icon.svg */
};

/* The path alone, without what follows a '?'. ret_job: where the page is one of a job. */
enum status_page status_request_page(const char *path, int64_t *ret_job);
bool status_page_acts(enum status_page page); /* wants POST, token and all */

/* Host as the browser sends it ("127.0.0.1:11180"). own: status.host, "" none. NULL: there was none. */
bool status_request_host(const char *host, const char *own);
/* May a page of this origin act? Its host must be that of the request. NULL: there was none, which says nothing. */
bool status_request_origin(const char *origin, const char *host);
/* A form's one field, "token=HEX": the right one? In constant time. */
bool status_request_token(const char *form, size_t n, const char token[STATUS_TOKEN_SIZE]);

#endif
