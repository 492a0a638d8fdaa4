/* SPDX-License-Identifier: Apache-2.0 */
/* The radionuclides of PET that this program knows by name: those of CID 4020 of PS3.16. It has no table of branching ratios:
 * a calibration factor is that of its nuclide, and the calibration of a header (ecat_counts) needs the fraction that the data
 * state. */
#ifndef TOMONODE_NODE_NUCLIDES_H
#define TOMONODE_NODE_NUCLIDES_H

#include <stdbool.h>
#include <stddef.h>

struct nuclide {
	const char *name;   /* "F18" */
	const char *scheme; /* of the code: "SCT", or "DCM" where SNOMED CT has none */
	const char *code;
	const char *srt;     /* code of SNOMED RT that it replaced; "": none */
	const char *meaning; /* of the code, "^18^Fluorine" */
	double half_life;    /* s: NuDat 3 (ENSDF), National Nuclear Data Center; of rare ones ICRP Publication 107 (2008), after
				ENSDF */
};

/* Find a nuclide by any usual spelling: F18, F-18, 18F, ^18^Fluorine, fluorine 18. NULL: not known. */
const struct nuclide *nuclide_find(const char *text);

/* Find the nuclides that a free text names by mass and symbol or element: "[68Ga]Ga-PSMA-11", "68 Ga-", "Ga(68)", "FDG F-18".
 * The search begins at *at within the text, and *at is moved behind the one that was found. NULL: no further one. */
const struct nuclide *nuclide_in_name(const char *text, const char **at);

/* Find a nuclide by its code, or the one that this replaced. NULL: not known. */
const struct nuclide *nuclide_of_code(const char *code);

/* Find the nuclide of a radiopharmaceutical by its code. NULL: not known. */
const struct nuclide *nuclide_of_drug(const char *code);

/* Write the names of all, separated by ", ". */
void nuclide_list(char *ret, size_t size);

/* Do two half-lives belong to one nuclide? Those that programs use for it differ by up to 2.2 % (Tb-152: 17.5 h, and 17.88 h as
 * measured later; Sc-44: 3.97 and 4.042 h; Rb-82: 75.45 s and 1.273 min); two nuclides of the table differ by
 * less only if they are rare (Nb-90 and Y-86, Tc-94m and As-70). */
bool nuclide_same_half_life(double a, double b);

/* Do two half-lives belong to a parent and its daughter, which emits the positrons of both? A phantom of Ge-68 is named by either. */
bool nuclide_is_generated(double a, double b);

#endif
