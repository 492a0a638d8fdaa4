/* SPDX-License-Identifier: Apache-2.0 */
#include "node/web/http_credentials.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "node/base/text_file.h"

/* b64token of RFC 6750 section 2.1. */
static bool is_token(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/");

	return n > 0 && text[n + strspn(text + n, "=")] == '\0';
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

/* Cut the end of the line off. A file of more than one line, or with a NUL, has another form. */
static bool one_line(char *text, size_t size)
{
	size_t n = strlen(text);

	if (n != size)
		return false;
	if (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	if (n > 0 && text[n - 1] == '\r')
		text[--n] = '\0';
	return n > 0 && !has_control(text);
}

static int check_mode(FILE *f, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fileno(f), &st) < 0)
		return err_set(err, ENOKEY, "credentials file %s: %s", path, strerror(errno));
	if (!(st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)))
		return 0;
	return err_set(err, ENOKEY,
		       "credentials file %s: other users of this machine can %s it (mode %04o). Run chmod 600, so that only the "
		       "user of the node can read it, and replace the credentials if others may have read them",
		       path, st.st_mode & S_IROTH ? "read" : "change", (unsigned)st.st_mode & 07777);
}

int http_credentials_read(const char *path, struct http_credentials *ret, struct err *err)
{
	char text[HTTP_CREDENTIALS_SIZE] = "";
	struct err why = {0};
	FILE *f = NULL;
	size_t n;
	char *colon;
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (regular_file_open(path, &f, &why) < 0)
		return err_set(err, ENOKEY, "credentials: %s", why.msg);
	rc = check_mode(f, path, err);
	n = rc == 0 ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (rc == 0 && ferror(f))
		rc = err_set(err, ENOKEY, "credentials file %s: cannot be read", path);
	else if (rc == 0 && n == sizeof(text) - 1)
		rc = err_set(err, ENOKEY, "credentials file %s: it has more than %d bytes", path, HTTP_CREDENTIALS_SIZE - 2);
	fclose(f);
	if (rc == 0 && !one_line(text, n))
		rc = err_set(err, ENOKEY, "credentials file %s: it must have one line, a bearer token or USER:PASSWORD", path);
	colon = rc == 0 ? strchr(text, ':') : NULL;
	if (rc == 0 && (colon == text || (!colon && !is_token(text))))
		rc = err_set(
			err, ENOKEY,
			"credentials file %s: its line is neither a bearer token (letters, digits and -._~+/=) nor USER:PASSWORD",
			path);
	if (rc == 0) {
		if (colon)
			*colon = '\0';
		snprintf(ret->user, sizeof(ret->user), "%s", colon ? text : "");
		snprintf(ret->secret, sizeof(ret->secret), "%s", colon ? colon + 1 : text);
	}
	explicit_bzero(text, sizeof(text));
	return rc;
}

void http_credentials_clear(struct http_credentials *c)
{
	explicit_bzero(c, sizeof(*c));
}
