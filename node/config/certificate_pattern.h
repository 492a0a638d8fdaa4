/* SPDX-License-Identifier: Apache-2.0 */
/* The key `certificate` of a configured peer: "sha256:" with 64 hexadecimal digits, with or without colons, or a name with * and
 * ?. Pure. */
#ifndef TOMONODE_NODE_CERTIFICATE_PATTERN_H
#define TOMONODE_NODE_CERTIFICATE_PATTERN_H

#include <stdbool.h>

#define CERTIFICATE_DIGITS 64 /* digits of a SHA-256 fingerprint */

/* Return true if the pattern is valid: a complete fingerprint, or any name. */
bool certificate_pattern_ok(const char *pattern);
/* Return true if the pattern begins with "sha256:". */
bool certificate_pattern_is_fingerprint(const char *pattern);
/* Write the digits of a fingerprint in lower case without colons; false: the pattern is not a valid fingerprint. */
bool certificate_pattern_digits(const char *pattern, char ret_digits[CERTIFICATE_DIGITS + 1]);

#endif
