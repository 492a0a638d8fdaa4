/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_request.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define DIGITS_MAX 18 /* of a job number, so that it is below INT64_MAX */
#define HOST_MAX 255

struct name {
	const char *text;
	enum status_page page;
};

static const struct name pages[] = {
	{"/", STATUS_OVERVIEW},	    {"/cases", STATUS_CASES},	   {"/status.json", STATUS_JSON}, {"/metrics", STATUS_METRICS},
	{"/health", STATUS_HEALTH}, {"/status.css", STATUS_STYLE}, {"/status.js", STATUS_SCRIPT}, {"/icon.svg", STATUS_ICON},
};

static const struct name job_pages[] = {
	{"", STATUS_CASE},
	{"/thumbnail.png", STATUS_THUMBNAIL},
	{"/slices.png", STATUS_SLICES},
	{"/report", STATUS_REPORT},
	{"/retry", STATUS_RETRY},
	{"/as-is", STATUS_AS_IS},
	{"/same-patient", STATUS_SAME},
	{"/cancel", STATUS_CANCEL},
	{"/redo", STATUS_REDO},
};

static enum status_page find(const struct name *names, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i].text, text))
			return names[i].page;
	return STATUS_NONE;
}

enum status_page status_request_page(const char *path, int64_t *ret_job)
{
	enum status_page page;
	int64_t job = 0;
	size_t n;

	if (strncmp(path, "/jobs/", 6) != 0)
		return find(pages, sizeof(pages) / sizeof(pages[0]), path);
	path += 6;
	n = strspn(path, "0123456789");
	if (n == 0 || n > DIGITS_MAX || path[0] == '0')
		return STATUS_NONE;
	for (size_t i = 0; i < n; i++)
		job = 10 * job + (path[i] - '0');
	page = find(job_pages, sizeof(job_pages) / sizeof(job_pages[0]), path + n);
	if (page != STATUS_NONE)
		*ret_job = job;
	return page;
}

bool status_page_changes_job(enum status_page page)
{
	return page == STATUS_RETRY || page == STATUS_AS_IS || page == STATUS_SAME || page == STATUS_CANCEL ||
	       page == STATUS_REDO;
}

/* Write the host of "host", "host:port" or "[v6]:port", without brackets. */
static bool split(const char *text, char ret_host[HOST_MAX + 1])
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

	if (!host || !split(host, name))
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
static bool decode(const char *text, size_t n, char *ret, size_t size)
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

bool status_request_redo_valid(const char *form, size_t n, const char token[STATUS_TOKEN_SIZE], char *ret_protocol, size_t size)
{
	const size_t first = 6 + STATUS_TOKEN_SIZE - 1, name = sizeof("&protocol=") - 1;

	return n > first + name && status_request_token_valid(form, first, token) && !memcmp(form + first, "&protocol=", name) &&
	       decode(form + first + name, n - first - name, ret_protocol, size);
}
