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

#define TOLERANCE 0.025 /* of half-lives */

static const struct nuclide nuclides[] = {
	{"C11", "SCT", "40565003", "C-105A1", "^11^Carbon", 20.364 * 60},
	{"N13", "SCT", "21576001", "C-107A1", "^13^Nitrogen", 9.965 * 60},
	{"O14", "SCT", "424875009", "C-1018C", "^14^Oxygen", 70.606},
	{"O15", "SCT", "129504001", "C-B1038", "^15^Oxygen", 122.24},
	{"F18", "SCT", "77004003", "C-111A1", "^18^Fluorine", 109.77 * 60},
	{"Na22", "SCT", "71633006", "C-155A1", "^22^Sodium", 2.6019 * 365.2422 * 86400},
	{"K38", "SCT", "423764008", "C-135A4", "^38^Potassium", 7.636 * 60},
	{"Sc43", "DCM", "126605", "", "^43^Scandium", 3.891 * 3600},
	{"Sc44", "DCM", "126600", "", "^44^Scandium", 4.042 * 3600},
	{"Ti45", "SCT", "75696008", "C-166A2", "^45^Titanium", 184.8 * 60},
	{"Mn51", "DCM", "126601", "", "^51^Manganese", 46.2 * 60},
	{"Mn52", "SCT", "37225000", "C-149A1", "^52^Manganese", 5.591 * 86400},
	{"Mn52m", "DCM", "126607", "", "^52m^Manganese", 21.1 * 60},
	{"Fe52", "SCT", "69089000", "C-130A1", "^52^Iron", 8.275 * 3600},
	{"Cu60", "SCT", "425364008", "C-127A4", "^60^Copper", 23.7 * 60},
	{"Cu61", "SCT", "71425003", "C-127A1", "^61^Copper", 3.333 * 3600},
	{"Cu62", "SCT", "422934004", "C-127A5", "^62^Copper", 9.673 * 60},
	{"Cu64", "SCT", "3932008", "C-127A2", "^64^Copper", 12.701 * 3600},
	{"Zn62", "SCT", "65054007", "C-141A1", "^62^Zinc", 9.186 * 3600},
	{"Ga66", "SCT", "79477007", "C-131A1", "^66^Gallium", 9.49 * 3600},
	{"Ga68", "SCT", "35337001", "C-131A3", "^68^Gallium", 67.71 * 60},
	{"Ge68", "SCT", "53315004", "C-128A2", "^68^Germanium", 270.95 * 86400},
	{"As70", "DCM", "126602", "", "^70^Arsenic", 52.6 * 60},
	{"As72", "SCT", "2705002", "C-115A2", "^72^Arsenic", 26.0 * 3600},
	{"Se73", "SCT", "87437000", "C-116A2", "^73^Selenium", 7.15 * 3600},
	{"Br75", "SCT", "17910003", "C-113A1", "^75^Bromine", 96.7 * 60},
	{"Br76", "SCT", "79523006", "C-113A2", "^76^Bromine", 16.2 * 3600},
	{"Br77", "SCT", "86521004", "C-113A3", "^77^Bromine", 57.036 * 3600},
	{"Rb82", "SCT", "79197006", "C-159A2", "^82^Rubidium", 1.2575 * 60},
	{"Y86", "SCT", "10738001", "C-162A3", "^86^Yttrium", 14.74 * 3600},
	{"Y90", "SCT", "14691008", "C-162A7", "^90^Yttrium", 64.05 * 3600},
	{"Zr89", "SCT", "63360001", "C-168A4", "^89^Zirconium", 78.41 * 3600},
	{"Nb90", "DCM", "126603", "", "^90^Niobium", 14.60 * 3600},
	{"Tc94m", "SCT", "424079002", "C-163AA", "^94m^Technetium", 52.0 * 60},
	{"I124", "SCT", "40937006", "C-114A5", "^124^Iodine", 4.176 * 86400},
	{"Tb152", "DCM", "126606", "", "^152^Terbium", 17.5 * 3600},
};

/* Split a spelling into its letters and its number. An m right behind the number, but not within a word, marks an excited state:
 * "94mTc", "52m^Manganese", but "52manganese". False: it has not one of each, or is too long. */
static bool split_spelling(const char *text, char ret_letters[16], int *ret_mass, bool *ret_excited)
{
	size_t letters = 0, digits = 0, groups = 0;
	char number[4];
	char before = 0;

	*ret_excited = false;
	for (; *text; before = *text++) {
		if (isdigit((unsigned char)*text)) {
			groups += !isdigit((unsigned char)before);
			if (digits + 1 >= sizeof(number))
				return false;
			number[digits++] = *text;
		} else if (*text == 'm' && isdigit((unsigned char)before) && !islower((unsigned char)text[1])) {
			*ret_excited = true;
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
	bool excited, of_name;
	int mass, other;

	if (!split_spelling(text, letters, &mass, &excited))
		return NULL;
	for (size_t i = 0; i < sizeof(nuclides) / sizeof(nuclides[0]); i++)
		if (split_spelling(nuclides[i].meaning, element, &other, &of_name) &&
		    split_spelling(nuclides[i].name, symbol, &other, &of_name) && mass == other && excited == of_name &&
		    (!strcasecmp(letters, symbol) || !strcasecmp(letters, element)))
			return &nuclides[i];
	return NULL;
}

/* Copy the letters of a symbol or an element behind a number: "68Ga", "68-Ga", "^68^Ga", "(68)Ga", "68 Ga". Behind a blank a small
 * letter begins no symbol. */
static void letters_behind(const char *end, char ret[16])
{
	size_t n = 0;

	end += *end && strchr(")]^", *end);
	end += *end && strchr("- ", *end);
	while (n < 15 && isalpha((unsigned char)end[n]))
		n++;
	if (end[-1] == ' ' && n < 3 && !isupper((unsigned char)*end))
		n = 0;
	snprintf(ret, 16, "%.*s", (int)n, end);
}

/* Copy those before it: "Ga68", "Ga-68", "Ga^68^", "Ga(68)", "Gallium 68". */
static void letters_before(const char *text, const char *number, char ret[16])
{
	const char *end = number, *first;

	if (end > text && strchr("([^", end[-1]))
		end--;
	if (end > text && strchr("- ", end[-1]))
		end--;
	for (first = end; first > text && isalpha((unsigned char)first[-1]) && end - first < 15;)
		first--;
	snprintf(ret, 16, "%.*s", (int)(end - first), first);
}

const struct nuclide *nuclide_in_name(const char *text, const char **at)
{
	for (const char *digit = strpbrk(*at, "0123456789"); digit; digit = strpbrk(*at, "0123456789")) {
		size_t digits = strspn(digit, "0123456789");
		bool excited = digit[digits] == 'm' && !isalpha((unsigned char)digit[digits + 1]);
		int n = (int)(digits + excited);
		const struct nuclide *found;
		char letters[16], word[40];

		*at = digit + n;
		if (digits > 3)
			continue;
		letters_behind(*at, letters);
		snprintf(word, sizeof(word), "%.*s%s", n, digit, letters);
		found = nuclide_find(word);
		letters_before(text, digit, letters);
		snprintf(word, sizeof(word), "%s%.*s", letters, n, digit);
		found = found ? found : nuclide_find(word);
		if (found)
			return found;
	}
	return NULL;
}

const struct nuclide *nuclide_of_code(const char *code)
{
	for (size_t i = 0; i < sizeof(nuclides) / sizeof(nuclides[0]); i++)
		if (code[0] && (!strcmp(code, nuclides[i].code) || !strcmp(code, nuclides[i].srt)))
			return &nuclides[i];
	return NULL;
}

const struct nuclide *nuclide_of_drug(const char *code)
{
	/* CID 4021 of PS3.16: codes of SNOMED CT, of SNOMED RT, of DICOM, and of the NCI and the UMLS */
	static const struct {
		const char *name, *codes;
	} drugs[] = {
		{"C11", "129510001 C-B103E 129511002 C-B103F 129512009 C-B1042 129513004 C-B1043 129514005 "
			"C-B1044 129515006 C-B1045 423543007 C-B07DE 424789007 C-B07E5 126500 126703 126704 "
			"126706 126709 126719 126720 C122684 C4506788"},
		{"N13", "129508003 C-B103C 129509006 C-B103D"},
		{"O15", "129504001 C-B1038 129505000 C-B1039 129506004 C-B103A 129507008 C-B103B 422540000 "
			"C-B07DC"},
		{"F18", "35321007 C-B1031 129499001 C-B1033 129500005 C-B1034 129501009 C-B1032 129502002 "
			"C-B1036 422598008 C-B07E1 422763008 C-B07E2 422975006 C-B07DF 423546004 C-B07E4 "
			"424708001 C-B07E0 425236000 C-B07E3 456992002 C-E0273 456995000 C-E0269 456997008 "
			"C-E0267 456999006 C-E0265 457000009 C-E026A 712736002 C-D6858 126502 126503 126705 "
			"126707 126711 126713 126714 126718 126757 126758 C96234 C116352 C1541539 C1831937 "
			"C2934038 C2981788 C4279748 C4506764 C4547429 C4550127"},
		{"Na22", "129517003 C-B1047"},
		{"Cu60", "126700"},
		{"Cu61", "126701"},
		{"Cu62", "422789008 C-B07E7 126702"},
		{"Cu64", "422855001 C-B07DB 126510"},
		{"Ga68", "423498000 C-B07DD 126759 C118961 C1742831 C2713594"},
		{"Ge68", "129516007 C-B1046"},
		{"Rb82", "129503007 C-B1037"},
		{"Zr89", "126511 126512 126513 126514 126515 126516 126517 126518 126519 126520 126721 126722 "
			 "126723 126724 126725 126726 126727 126728 126729 126730 126731 126732 126733 126734 "
			 "126735 126736 126737 126738 126739 126740 126741 126742 126746 126747 126748 126749 "
			 "126750 126751 126752 126753 126754 126755 126756 126760 126761 126762 126763"},
		{"I124", "422980002 C-B07E8 424874008 C-B07E6 126715"},
	};
	size_t n = strlen(code);

	for (size_t i = 0; n > 0 && i < sizeof(drugs) / sizeof(drugs[0]); i++)
		for (const char *at = drugs[i].codes; (at = strstr(at, code)); at++)
			if ((at == drugs[i].codes || at[-1] == ' ') && (!at[n] || at[n] == ' '))
				return nuclide_find(drugs[i].name);
	return NULL;
}

void nuclide_list(char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(nuclides) / sizeof(nuclides[0]) && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", nuclides[i].name);
}

bool nuclide_same_half_life(double a, double b)
{
	return fabs(a - b) <= TOLERANCE * fmax(fabs(a), fabs(b));
}

bool nuclide_is_generated(double a, double b)
{
	static const struct {
		double parent, daughter; /* half-lives, s; no other two of the table are as near to them */
	} pairs[] = {
		{270.95 * 86400, 67.71 * 60}, /* Ge-68, Ga-68 */
		{9.186 * 3600, 9.673 * 60},   /* Zn-62, Cu-62 */
		{25.35 * 86400, 1.2575 * 60}, /* Sr-82, Rb-82 */
		{8.275 * 3600, 21.1 * 60},    /* Fe-52, Mn-52m */
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (nuclide_same_half_life(fmax(a, b), pairs[i].parent) && nuclide_same_half_life(fmin(a, b), pairs[i].daughter))
			return true;
	return false;
}
