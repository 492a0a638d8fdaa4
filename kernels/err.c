/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/utf8.h"

void err_clean(char *text)
{
	while (*text) {
		uint32_t code;
		size_t n = utf8_decode(text, &code);

		if (n == 0 || code < 0x20 || code == 0x7f) {
			*text = '?';
			n = 1;
		}
		text += n;
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

int err_prefix(struct err *err, const char *fmt, ...)
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

int err_remap(int rc, int from, int to, struct err *err)
{
	if (rc != -from)
		return rc;
	if (err)
		err->code = to;
	return -to;
}
