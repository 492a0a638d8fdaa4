/* SPDX-License-Identifier: Apache-2.0 */
#include "node/config/certificate_pattern.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define FINGERPRINT "sha256:"

/* Return the digits of a fingerprint in lower case, without colons; false: not 64 hexadecimal digits. */
static bool parse_fingerprint(const char *text, char ret_digits[CERTIFICATE_DIGITS + 1])
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == ':')
			continue;
		if (!isxdigit((unsigned char)*text) || n == CERTIFICATE_DIGITS)
			return false;
		ret_digits[n++] = (char)tolower((unsigned char)*text);
	}
	ret_digits[n] = '\0';
	return n == CERTIFICATE_DIGITS;
}

bool certificate_pattern_is_fingerprint(const char *pattern)
{
	return !strncasecmp(pattern, FINGERPRINT, strlen(FINGERPRINT));
}

bool certificate_pattern_digits(const char *pattern, char ret_digits[CERTIFICATE_DIGITS + 1])
{
	return certificate_pattern_is_fingerprint(pattern) && parse_fingerprint(pattern + strlen(FINGERPRINT), ret_digits);
}

bool certificate_pattern_ok(const char *pattern)
{
	char digits[CERTIFICATE_DIGITS + 1];

	return !certificate_pattern_is_fingerprint(pattern) || certificate_pattern_digits(pattern, digits);
}
