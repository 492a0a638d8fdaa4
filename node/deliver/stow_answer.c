/* SPDX-License-Identifier: Apache-2.0 */
#include "node/deliver/stow_answer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/err.h"

#define REFERENCED_INSTANCE "00081155"
#define WARNING_REASON "00081196"
#define FAILURE_REASON "00081197"
#define FAILED_SEQUENCE "00081198"
#define REFERENCED_SEQUENCE "00081199"
#define OTHER_FAILURES "0008119A"

/* What the body says of the instance. */
struct named {
	bool stored, failed;
	bool others;  /* it names other instances */
	bool unnamed; /* `failed` is about an instance without a UID */
	int reason;   /* code of the warning or failure; -1: none */
};

/* The first value of an attribute of a data set; NULL: none. */
static const json_t *first_value(const json_t *set, const char *tag)
{
	return json_array_get(json_object_get(json_object_get(set, tag), "Value"), 0);
}

static int code_of(const json_t *item, const char *tag)
{
	const json_t *value = first_value(item, tag);

	return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= 0xffff
		       ? (int)json_integer_value(value)
		       : -1;
}

/* Return the item of a sequence that names the instance. *others: it has items that name another one. */
static const json_t *find_item(const json_t *set, const char *sequence, const char *sop_instance, bool *others)
{
	const json_t *items = json_object_get(json_object_get(set, sequence), "Value"), *found = NULL;

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i), *uid = first_value(item, REFERENCED_INSTANCE);

		if (json_is_string(uid) && strcmp(json_string_value(uid), sop_instance) == 0)
			found = item;
		else
			*others = true;
	}
	return found;
}

static void read_set(const json_t *set, const char *sop_instance, struct named *n)
{
	const json_t *item = find_item(set, REFERENCED_SEQUENCE, sop_instance, &n->others);

	if (item) {
		n->stored = true;
		if (first_value(item, FAILURE_REASON) && code_of(item, FAILURE_REASON) != 0) /* it says both */
			n->failed = true;
		n->reason = code_of(item, WARNING_REASON);
	}
	item = find_item(set, FAILED_SEQUENCE, sop_instance, &n->others);
	if (!item && !n->stored) { /* failures whose instance the server could not tell: the request had one */
		item = first_value(set, OTHER_FAILURES);
		n->unnamed = item != NULL;
	}
	if (item) {
		n->failed = true;
		n->reason = code_of(item, FAILURE_REASON);
	}
}

/* 0: the body is a data set or an array of them. */
static int read_body(const struct stow_answer *a, const char *sop_instance, struct named *ret, char *ret_why, size_t size)
{
	json_error_t error;
	json_t *root;

	*ret = (struct named){.reason = -1};
	if (a->size == 0) {
		snprintf(ret_why, size, "without a body");
		return -1;
	}
	root = json_loadb(a->body, a->size, JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		snprintf(ret_why, size, "with a body of type \"%.100s\" that is not JSON", a->content_type);
		return -1;
	}
	if (json_is_object(root))
		read_set(root, sop_instance, ret);
	for (size_t i = 0; i < json_array_size(root); i++)
		read_set(json_array_get(root, i), sop_instance, ret);
	json_decref(root);
	if (ret->stored || ret->failed)
		return 0;
	snprintf(ret_why, size, ret->others ? "that names other instances, but not this one" : "that does not name the instance");
	return -1;
}

/* HTTP statuses that say enough by themselves, if the body does not name the instance. */
static const struct {
	int from, to;
	enum deliver_outcome outcome;
	bool down, rejected;
	const char *text;
} meanings[] = {
	{401, 401, DELIVER_TRANSIENT, true, true, "the server requires other credentials"},
	{403, 403, DELIVER_TRANSIENT, true, true, "the server forbids this node to store"},
	{300, 399, DELIVER_TRANSIENT, true, true, "the server redirects to another address, which this node does not follow"},
	{404, 405, DELIVER_TRANSIENT, true, true, "the server has no STOW-RS service at this URL"},
	{501, 501, DELIVER_TRANSIENT, true, true, "the server has no STOW-RS service at this URL"},
	{408, 408, DELIVER_TRANSIENT, false, false, "the server waited too long for the request"},
	{400, 400, DELIVER_PERMANENT, false, false, "the server cannot understand the object"},
	{406, 406, DELIVER_PERMANENT, false, false, "the server does not support this kind of object or answer"},
	{413, 413, DELIVER_PERMANENT, false, false, "the object is larger than the server accepts"},
	{415, 415, DELIVER_PERMANENT, false, false, "the server does not support this kind of object"},
	{429, 429, DELIVER_TRANSIENT, true, false, "the server receives too many requests"},
	{502, 504, DELIVER_TRANSIENT, true, false, "the server is not available"},
	{507, 507, DELIVER_TRANSIENT, false, false, "the server is out of space"},
	{500, 599, DELIVER_TRANSIENT, false, false, "the server failed in processing"},
	{200, 299, DELIVER_TRANSIENT, false, true, "the server does not say whether it stored the object"},
	{409, 409, DELIVER_TRANSIENT, false, true, "the server does not say why it did not store the object"},
	{400, 499, DELIVER_TRANSIENT, true, true, "the server rejects the request"},
};

/* A page for people comes from a web server in front of the service, or from another service: nginx answers so if our certificate
 * is missing or not accepted, and to http at a port of https. It says nothing of the object. */
static bool is_page(const struct stow_answer *a)
{
	return strncasecmp(a->content_type, "text/html", 9) == 0;
}

static void classify_http(const struct stow_answer *a, const char *why, struct store_result *ret)
{
	if (a->http == 400 && is_page(a)) {
		ret->failure.rejected = true;
		snprintf(ret->reason, sizeof(ret->reason),
			 "HTTP 400 %s: a web server rejects the request, not a DICOMweb service", why);
		return;
	}
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (a->http >= meanings[i].from && a->http <= meanings[i].to) {
			ret->outcome = meanings[i].outcome;
			ret->failure.down = meanings[i].down;
			ret->failure.rejected = meanings[i].rejected;
			snprintf(ret->reason, sizeof(ret->reason), "HTTP %d %s: %s", a->http, why, meanings[i].text);
			return;
		}
	snprintf(ret->reason, sizeof(ret->reason), "HTTP %d %s: a status that STOW-RS does not have", a->http, why);
}

void stow_classify(const struct stow_answer *a, const char *sop_instance, struct store_result *ret)
{
	const char *meaning = "stored";
	struct named n;
	char why[180];

	*ret = (struct store_result){.outcome = DELIVER_TRANSIENT};
	if (read_body(a, sop_instance, &n, why, sizeof(why)) < 0) {
		classify_http(a, why, ret);
	} else if (n.stored && n.failed) {
		snprintf(ret->reason, sizeof(ret->reason), "HTTP %d that names the instance both as stored and as failed",
			 a->http);
	} else if (n.stored && a->http != 200 && a->http != 202) {
		classify_http(a, "that names the instance as stored", ret);
		ret->outcome = DELIVER_TRANSIENT;
	} else if (n.failed && n.reason < 0) {
		snprintf(ret->reason, sizeof(ret->reason), "HTTP %d that names the instance as failed, without a reason",
			 a->http);
	} else {
		ret->outcome = n.reason < 0 ? DELIVER_STORED : deliver_classify((uint16_t)n.reason, &meaning);
		if (n.stored && ret->outcome != DELIVER_STORED) { /* a warning code that is not one of a warning */
			ret->outcome = DELIVER_STORED;
			meaning = "stored, with a warning";
		} else if (n.failed && ret->outcome == DELIVER_STORED && (n.reason != 0x0111 || n.unnamed)) {
			ret->outcome = DELIVER_TRANSIENT;
			meaning = "failed, with a reason that is not one of a failure";
		}
		snprintf(ret->status, sizeof(ret->status), "%04X", n.reason < 0 ? 0u : (unsigned)n.reason & 0xffff);
		snprintf(ret->reason, sizeof(ret->reason), "%s", meaning);
	}
	err_clean(ret->reason);
}
