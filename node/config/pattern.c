/* SPDX-License-Identifier: Apache-2.0 */
#include "node/config/pattern.h"

#include <ctype.h>
#include <string.h>

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Linear except for the last *: a failed match returns only to it. With `wild`, * and ? of the text are symbols: a * that only
 * a * of the pattern takes, a ? that it or a ? takes. Then each text that they stand for matches, too. */
static bool match_pattern(const char *pattern, const char *text, bool wild)
{
	const char *star = NULL, *again = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			again = text;
		} else if (*pattern == '?' ? !wild || *text != '*' : *pattern && same_letter(*pattern, *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool pattern_matches(const char *pattern, const char *text)
{
	return match_pattern(pattern, text, false);
}

bool pattern_covers(const char *pattern, const char *other)
{
	return match_pattern(pattern, other, true);
}

bool pattern_meets(const char *one, const char *other)
{
	size_t n = strnlen(one, PATTERN_SIZE - 1), m = strnlen(other, PATTERN_SIZE - 1);
	bool meets[PATTERN_SIZE][PATTERN_SIZE]; /* of the rest of `one` from i and the rest of `other` from k */

	for (size_t i = n + 1; i-- > 0;)
		for (size_t k = m + 1; k-- > 0;) {
			bool star = i < n && one[i] == '*', other_star = k < m && other[k] == '*';

			if (star || other_star) /* it stands for nothing, or takes one more letter */
				meets[i][k] = (star && (meets[i + 1][k] || (k < m && meets[i][k + 1]))) ||
					      (other_star && (meets[i][k + 1] || (i < n && meets[i + 1][k])));
			else if (i < n && k < m)
				meets[i][k] = (one[i] == '?' || other[k] == '?' || same_letter(one[i], other[k])) &&
					      meets[i + 1][k + 1];
			else
				meets[i][k] = i == n && k == m;
		}
	return meets[0][0];
}
