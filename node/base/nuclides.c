/* SPDX-License-Identifier: Apache-2.0 */
/* nuclides.c - a spelling of a nuclide has one number, the mass, and letters, the symbol or the name of the element; all else is
 * ignored. */
#include "node/base/nuclides.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOLERANCE 0.02 /* of half-lives */

static const struct nuclide nuclides[] = {
	{"C11", "40565003", "C-105A1", "^11^Carbon", 20.364 * 60},
	{"N13", "21576001", "C-107A1", "^13^Nitrogen", 9.965 * 60},
	{"O15", "129504001", "C-B1038", "^15^Oxygen", 122.24},
	{"F18", "77004003", "C-111A1", "^18^Fluorine", 109.77 * 60},
	{"Cu64", "3932008", "C-127A2", "^64^Copper", 12.701 * 3600},
	{"Ga68", "35337001", "C-131A3", "^68^Gallium", 67.71 * 60},
	{"Rb82", "79197006", "C-159A2", "^82^Rubidium", 1.2575 * 60},
	{"Zr89", "63360001", "C-168A4", "^89^Zirconium", 78.41 * 3600},
	{"I124", "40937006", "C-114A5", "^124^Iodine", 4.176 * 86400},
};

/* Split a spelling into its letters and its number. False: it has not one of each, or is too long. */
static bool split(const char *text, char ret_letters[16], int *ret_mass)
{
	size_t letters = 0, digits = 0, groups = 0;
	char number[4];
	char before = 0;

	for (; *text; before = *text++) {
		if (isdigit((unsigned char)*text)) {
			groups += !isdigit((unsigned char)before);
			if (digits + 1 >= sizeof(number))
				return false;
			number[digits++] = *text;
		} else if (isalpha((unsigned char)*text)) {
			if (letters + 1 >= 16)
				return false;
			ret_letters[letters++] = *text;
		}
	}
	ret_letters[letters] = '\0';
	number[digits] = '\0';
	*ret_mass = atoi(number);
	return letters > 0 && groups == 1;
}

const struct nuclide *nuclide_find(const char *text)
{
	char letters[16], symbol[16], element[16];
	int mass, other;

	if (!split(text, letters, &mass))
		return NULL;
	for (size_t i = 0; i < sizeof(nuclides) / sizeof(nuclides[0]); i++)
		if (split(nuclides[i].name, symbol, &other) && split(nuclides[i].meaning, element, &other) && mass == other &&
		    (!strcasecmp(letters, symbol) || !strcasecmp(letters, element)))
			return &nuclides[i];
	return NULL;
}

const struct nuclide *nuclide_of_code(const char *code)
{
	for (size_t i = 0; i < sizeof(nuclides) / sizeof(nuclides[0]); i++)
		if (!strcmp(code, nuclides[i].code) || !strcmp(code, nuclides[i].srt))
			return &nuclides[i];
	return NULL;
}

bool nuclide_same_half_life(double a, double b)
{
	return fabs(a - b) <= TOLERANCE * fmax(fabs(a), fabs(b));
}
