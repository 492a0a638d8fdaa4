/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of the configuration: * stands for any letters, also none, ? for one letter; case is ignored. */
#ifndef TOMONODE_NODE_PATTERN_H
#define TOMONODE_NODE_PATTERN_H

#include <stdbool.h>

#define PATTERN_SIZE 65 /* of a pattern and of the texts it is compared with, for pattern_meets() */

bool pattern_matches(const char *pattern, const char *text);
/* Return true if `pattern` matches every text that `other` matches. It may be false for patterns that differ only in the order of
 * * and ?, such as "*?" and "?*". */
bool pattern_covers(const char *pattern, const char *other);
/* Return true if there is a text that both match. Of longer patterns only the first PATTERN_SIZE - 1 letters count. */
bool pattern_meets(const char *one, const char *other);

#endif
