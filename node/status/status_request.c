/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_request.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS_MAX 18 /* of a number, so that it is below INT64_MAX */
#define HOST_MAX 255

/* Every page: path, method, role of `status.trusted_header`. {id}: number of a case; {n}: another number. docs/openapi.yaml describes them, too; a
 * test compares both. Cancelling needs no higher role than retrying, which takes it back. The statement that images with
 * different names are of one patient, and that newer objects are right, decide whose result it is, and cannot be taken back. */
static const struct status_route routes[] = {
	{"/", false, STATUS_OVERVIEW, STATUS_ROLE_LOOK},
	{"/cases", false, STATUS_CASES, STATUS_ROLE_LOOK},
	{"/status.json", false, STATUS_JSON, STATUS_ROLE_LOOK},
	{"/metrics", false, STATUS_METRICS, STATUS_ROLE_ANYONE},
	{"/health", false, STATUS_HEALTH, STATUS_ROLE_ANYONE},
	{"/status.css", false, STATUS_STYLE, STATUS_ROLE_ANYONE},
	{"/status.js", false, STATUS_SCRIPT, STATUS_ROLE_ANYONE},
	{"/look.js", false, STATUS_VIEWER, STATUS_ROLE_ANYONE},
	{"/icon.svg", false, STATUS_ICON, STATUS_ROLE_ANYONE},
	{"/jobs/{id}", false, STATUS_CASE, STATUS_ROLE_LOOK},
	{"/jobs/{id}/thumbnail.png", false, STATUS_THUMBNAIL, STATUS_ROLE_LOOK},
	{"/jobs/{id}/slices.png", false, STATUS_STRIP, STATUS_ROLE_LOOK},
	{"/jobs/{id}/slices/{n}", false, STATUS_SLICE, STATUS_ROLE_LOOK},
	{"/jobs/{id}/look", false, STATUS_LOOK, STATUS_ROLE_LOOK},
	{"/jobs/{id}/look/{n}", false, STATUS_COMPARE, STATUS_ROLE_LOOK},
	{"/jobs/{id}/report", false, STATUS_REPORT, STATUS_ROLE_LOOK},
	{"/jobs/{id}/retry", true, STATUS_RETRY, STATUS_ROLE_ACT},
	{"/jobs/{id}/as-is", true, STATUS_AS_IS, STATUS_ROLE_ACT},
	{"/jobs/{id}/cancel", true, STATUS_CANCEL, STATUS_ROLE_ACT},
	{"/jobs/{id}/redo", true, STATUS_REDO, STATUS_ROLE_ACT},
	{"/jobs/{id}/same-patient", true, STATUS_SAME, STATUS_ROLE_ADMINISTER},
	{"/jobs/{id}/sweep", true, STATUS_SWEEP, STATUS_ROLE_ACT},
	{"/jobs/{id}/newer", true, STATUS_NEWER, STATUS_ROLE_ADMINISTER},
};

const struct status_route *status_route_at(size_t i)
{
	return i < sizeof(routes) / sizeof(routes[0]) ? &routes[i] : NULL;
}

static const struct status_route *route_of(enum status_page page)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (routes[i].page == page)
			return &routes[i];
	return NULL;
}

/* Compare a path with the pattern of a route, and read its numbers. */
static bool fits_pattern(const char *pattern, const char *path, int64_t ret_numbers[2])
{
	size_t before, digits;

	for (int at = 0; pattern[before = strcspn(pattern, "{")]; at++) {
		digits = strncmp(path, pattern, before) == 0 ? strspn(path + before, "0123456789") : 0;
		if (digits == 0 || digits > DIGITS_MAX || path[before] == '0')
			return false;
		ret_numbers[at] = strtoll(path + before, NULL, 10);
		path += before + digits;
		pattern = strchr(pattern, '}') + 1;
	}
	return !strcmp(pattern, path);
}

enum status_page status_request_page(const char *path, int64_t ret_numbers[2])
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		int64_t numbers[2] = {0};

		if (!fits_pattern(routes[i].path, path, numbers))
			continue;
		memcpy(ret_numbers, numbers, sizeof(numbers));
		return routes[i].page;
	}
	ret_numbers[0] = ret_numbers[1] = 0;
	return STATUS_NONE;
}

bool status_page_changes_job(enum status_page page)
{
	const struct status_route *route = route_of(page);

	return route && route->posts;
}

enum status_role status_page_role(enum status_page page)
{
	const struct status_route *route = route_of(page);

	return route ? route->role : STATUS_ROLE_ANYONE;
}

/* Write the host of "host", "host:port" or "[v6]:port", without brackets. */
static bool split_host(const char *text, char ret_host[HOST_MAX + 1])
{
	const char *host = text[0] == '[' ? text + 1 : text;
	size_t n = strcspn(host, text[0] == '[' ? "]" : ":");
	const char *rest = host + n;

	if (n == 0 || n > HOST_MAX)
		return false;
	if (text[0] == '[' && *rest++ != ']')
		return false;
	if (*rest == ':') {
		size_t digits = strspn(rest + 1, "0123456789");

		if (digits < 1 || digits > 5)
			return false;
		rest += 1 + digits;
	}
	if (*rest)
		return false;
	memcpy(ret_host, host, n);
	ret_host[n] = '\0';
	return true;
}

bool status_request_host_allowed(const char *host, const char *own)
{
	char name[HOST_MAX + 1];
	struct in6_addr v6;
	struct in_addr v4;

	if (!host || !split_host(host, name))
		return false;
	if (host[0] == '[')
		return inet_pton(AF_INET6, name, &v6) == 1;
	return inet_pton(AF_INET, name, &v4) == 1 || !strcasecmp(name, "localhost") || (own[0] && !strcasecmp(name, own));
}

bool status_request_origin_allowed(const char *origin, const char *host)
{
	if (!origin)
		return true;
	if (!strncmp(origin, "http://", 7))
		origin += 7;
	else if (!strncmp(origin, "https://", 8)) /* the browser connects to a proxy in front of the node */
		origin += 8;
	else
		return false; /* such as "null" */
	return host && !strcasecmp(origin, host);
}

bool status_request_token_valid(const char *form, size_t n, const char token[STATUS_TOKEN_SIZE])
{
	unsigned char other = 0;

	if (n != 6 + STATUS_TOKEN_SIZE - 1 || memcmp(form, "token=", 6) != 0)
		return false;
	for (size_t i = 0; i < STATUS_TOKEN_SIZE - 1; i++)
		other |= (unsigned char)(form[6 + i] ^ token[i]);
	return other == 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode a value of a form, at most size - 1 bytes. */
static bool decode_value(const char *text, size_t n, char *ret, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)text[i], high, low;

		if (c == '+')
			c = ' ';
		if (c == '%') {
			high = n - i > 2 ? hex_digit(text[i + 1]) : -1;
			low = n - i > 2 ? hex_digit(text[i + 2]) : -1;
			if (high < 0 || low < 0)
				return false;
			c = 16 * high + low;
			i += 2;
		} else if (c == '&' || c == '=') {
			return false; /* another field */
		}
		if (c < 0x20 || c == 0x7f || used + 1 >= size)
			return false;
		ret[used++] = (char)c;
	}
	ret[used] = '\0';
	return used > 0;
}

bool status_request_choice_valid(const char *form, size_t n, const char token[STATUS_TOKEN_SIZE], const char *field,
				 char *ret_value, size_t size)
{
	const size_t first = 6 + STATUS_TOKEN_SIZE - 1, name = strlen(field) + 2; /* "&field=" */

	return n > first + name && status_request_token_valid(form, first, token) && form[first] == '&' &&
	       !memcmp(form + first + 1, field, name - 2) && form[first + name - 1] == '=' &&
	       decode_value(form + first + name, n - first - name, ret_value, size);
}
