#include "kernels/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 character at p (Unicode, table 3-7); 0: there is none. */
static size_t utf8_size(const unsigned char *p)
{
	unsigned lo = 0x80, hi = 0xbf; /* of the second byte: no overlong forms, no surrogates, nothing above U+10FFFF */
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

void err_clean(char *text)
{
	unsigned char *p = (unsigned char *)text;

	while (*p) {
		size_t n = *p < 0x20 || *p == 0x7f ? 0 : utf8_size(p);

		if (n == 0)
			*p = '?';
		p += n ? n : 1;
	}
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	if (code <= 0)
		code = EIO;
	if (err) {
		va_list ap;

		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
		err_clean(err->msg);
	}
	return -code;
}

int err_within(struct err *err, const char *fmt, ...)
{
	char where[sizeof(err->msg)];
	char what[sizeof(err->msg)];
	va_list ap;
	size_t n;

	if (!err || err->code <= 0)
		return -EIO;
	va_start(ap, fmt);
	vsnprintf(where, sizeof(where), fmt, ap);
	va_end(ap);
	memcpy(what, err->msg, sizeof(what));
	n = (size_t)snprintf(err->msg, sizeof(err->msg), "%.200s: ", where);
	snprintf(err->msg + n, sizeof(err->msg) - n, "%.*s", (int)(sizeof(err->msg) - n - 1), what);
	err_clean(err->msg);
	return -err->code;
}
