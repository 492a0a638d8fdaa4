/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Return the number of letters to insert, remove, replace or swap with their neighbour (optimal string alignment: Damerau 1964);
 * words are cut at 31 letters. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t table[3][33]; /* the last three rows: row i is table[i % 3] */
	size_t n = strnlen(b, 31), m = strnlen(a, 31);

	for (size_t j = 0; j <= n; j++)
		table[0][j] = j;
	for (size_t i = 1; i <= m; i++) {
		const size_t *before = table[(i + 1) % 3], *last = table[(i + 2) % 3];
		size_t *row = table[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < row[j])
				row[j] = last[j] + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
	}
	return table[m % 3][n];
}

/* The nearest word with less than `least` differences. */
static const char *find_nearest(const char *word, size_t least, const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	const char *best = NULL, *candidate;
	size_t length = strlen(word);

	for (size_t i = 0; (candidate = name(ctx, i)); i++) {
		size_t d = edit_distance(word, candidate), n = strlen(candidate);
		bool better = d < least || (best && d == least && n == length && strlen(best) != length);

		if (better && d < n) { /* a word without any letter of the candidate is not similar */
			least = d;
			best = candidate;
		}
	}
	return best;
}

const char *nearest_word(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	size_t length = strlen(word);

	return find_nearest(word, length > 3 ? length / 3 + 2 : 2, name, ctx); /* more differences in a longer word */
}

static const char *of_list(const void *ctx, size_t i)
{
	return ((const char *const *)ctx)[i];
}

const char *nearest_in_list(const char *word, const char *const *list)
{
	return nearest_word(word, of_list, list);
}

const char *nearest_typo(const char *word, const char *const *list)
{
	size_t length = strlen(word);

	return find_nearest(word, length < 12 ? 2 : length < 18 ? 3 : 4, of_list, list);
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
