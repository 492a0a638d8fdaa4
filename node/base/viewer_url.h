/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a result in the site's viewer: a pattern of the configuration such as
 * "https://viewer.example.org/?study={study}", with {study} and {series}, the UIDs of the result, and {accession}. Pure functions. */
#ifndef TOMONODE_NODE_VIEWER_URL_H
#define TOMONODE_NODE_VIEWER_URL_H

#include <stdbool.h>
#include <stddef.h>

#define VIEWER_PATTERN_SIZE 256				    /* bytes of a pattern, terminated */
#define VIEWER_URL_SIZE (VIEWER_PATTERN_SIZE + 16 * 3 * 64) /* bytes of an address, terminated; longer ones are not made */

/* What a pattern must be, for a message. */
#define VIEWER_PATTERN_FORM                                                                                                      \
	"http:// or https://, a host, then a path or query with {study}, {series} or {accession}; only characters of URLs"

bool viewer_pattern_valid(const char *pattern);
/* Write the address; the values are percent-encoded. pattern: a valid one. false: it does not fit. */
bool viewer_url_fill(const char *pattern, const char *study, const char *series, const char *accession, char *ret, size_t size);

#endif
