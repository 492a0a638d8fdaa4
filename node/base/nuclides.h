/* SPDX-License-Identifier: Apache-2.0 */
/* The radionuclides of PET that this program knows by name. */
#ifndef TOMONODE_NODE_NUCLIDES_H
#define TOMONODE_NODE_NUCLIDES_H

#include <stdbool.h>

struct nuclide {
	const char *name;    /* "F18" */
	const char *code;    /* SNOMED CT, CID 4020 of PS3.16 */
	const char *srt;     /* code of SNOMED RT that it replaced */
	const char *meaning; /* of the code, "^18^Fluorine" */
	double half_life;    /* s: NuDat 3 (ENSDF), National Nuclear Data Center */
};

/* Find a nuclide by any usual spelling: F18, F-18, 18F, ^18^Fluorine, fluorine 18. NULL: not known. */
const struct nuclide *nuclide_find(const char *text);

/* Find a nuclide by its code, or the one that this replaced. NULL: not known. */
const struct nuclide *nuclide_of_code(const char *code);

/* Do two half-lives belong to one nuclide? Those that programs use for it differ by up to 1.3 % (Rb-82: 75.45 s and
 * 1.273 min); no two nuclides of the table by less than 2 %. */
bool nuclide_same_half_life(double a, double b);

#endif
