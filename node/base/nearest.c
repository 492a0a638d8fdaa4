/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/nearest.h"

#include <stdio.h>
#include <string.h>

/* Return the number of letters to insert, remove or replace (Levenshtein 1966); words are cut at 31 letters. */
static size_t distance(const char *a, const char *b)
{
	size_t row[33];
	size_t n = strnlen(b, 31);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i] && i < 31; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t best = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (diagonal + 1 < best)
				best = diagonal + 1;
			row[j + 1] = best;
		}
	}
	return row[n];
}

const char *nearest_word(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	const char *best = NULL, *candidate;
	size_t least = strlen(word) / 3 + 2; /* more differences are allowed in a longer word */

	for (size_t i = 0; (candidate = name(ctx, i)); i++) {
		size_t d = distance(word, candidate);

		if (d < least && d < strlen(candidate)) { /* a word without any letter of the candidate is not similar */
			least = d;
			best = candidate;
		}
	}
	return best;
}

static const char *of_list(const void *ctx, size_t i)
{
	return ((const char *const *)ctx)[i];
}

const char *nearest_in_list(const char *word, const char *const *list)
{
	return nearest_word(word, of_list, list);
}

struct array {
	const char *first;
	size_t n, stride;
};

static const char *of_array(const void *ctx, size_t i)
{
	const struct array *a = ctx;

	return i < a->n ? a->first + i * a->stride : NULL;
}

const char *nearest_in_array(const char *word, const char *first, size_t n, size_t stride)
{
	return nearest_word(word, of_array, &(struct array){first, n, stride});
}

const char *nearest_hint(const char *near, char ret_text[NEAREST_HINT])
{
	ret_text[0] = '\0';
	if (near)
		snprintf(ret_text, NEAREST_HINT, ", did you mean '%s'?", near);
	return ret_text;
}
