/* SPDX-License-Identifier: Apache-2.0 */
/* kind_pet.c - sinograms of a PET scanner: a case is one acquisition with all its roles and chunks. */
#include <stddef.h>

#include "node/config/config_internal.h"
#include "node/config/kind.h"
#include "recon/pet/pet_keys.h"

#define NAME "pet"

static const struct key_choice gate_signals[] = {{"", 0}, {"ecg", PET_SIGNAL_ECG}, {"resp", PET_SIGNAL_RESP}, {NULL, 0}};

#define ATTENUATION PET_CORRECT_ATTENUATION
#define RANDOMS PET_CORRECT_RANDOMS
#define SCATTER PET_CORRECT_SCATTER
#define DEAD_TIME PET_CORRECT_DEAD_TIME
static const struct key_choice corrections[] = {
	{"none", 0},
	{"attenuation", ATTENUATION},
	{"randoms", RANDOMS},
	{"scatter", SCATTER},
	{"attenuation+randoms", ATTENUATION | RANDOMS},
	{"attenuation+scatter", ATTENUATION | SCATTER},
	{"randoms+scatter", RANDOMS | SCATTER},
	{"attenuation+randoms+scatter", ATTENUATION | RANDOMS | SCATTER},
	{"dead_time", DEAD_TIME},
	{"attenuation+dead_time", ATTENUATION | DEAD_TIME},
	{"randoms+dead_time", RANDOMS | DEAD_TIME},
	{"scatter+dead_time", SCATTER | DEAD_TIME},
	{"attenuation+randoms+dead_time", ATTENUATION | RANDOMS | DEAD_TIME},
	{"attenuation+scatter+dead_time", ATTENUATION | SCATTER | DEAD_TIME},
	{"randoms+scatter+dead_time", RANDOMS | SCATTER | DEAD_TIME},
	{"attenuation+randoms+scatter+dead_time", ATTENUATION | RANDOMS | SCATTER | DEAD_TIME},
	{NULL, 0}};

static const struct key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	PET_KEYS(protocol_conf, pet.),
	{"tof_mashing", AS_INT(protocol_conf, pet.tof_mashing, 1, 4096), .fallback = "1",
	 .meaning =
		 "neighbouring TOF bins that are added into one when the data are read, which saves time and memory; must divide "
		 "the number of TOF bins of the data; no effect without time of flight"},
	{"corrections", AS_CHOICE(protocol_conf, pet.corrections, corrections), .fallback = "none",
	 .flags = KEY_SPARSE | KEY_SET | KEY_UNORDERED,
	 .meaning =
		 "corrections that are computed where the data do not bring them, such as `[\"attenuation\", \"randoms\"]`: "
		 "`attenuation` from a CT series of the same frame of reference, `randoms` from delayed coincidences or singles, "
		 "`scatter` (only with `attenuation`) by single scatter simulation, `dead_time` as far as the data describe it. "
		 "Event by event only of detectors that form a regular cylinder"},
	{"scatter_iterations", AS_INT(protocol_conf, pet.scatter_iterations, 1, 10), .fallback = "3", .flags = KEY_SPARSE,
	 .needs = "corrections=scatter",
	 .meaning = "with the correction `scatter`: how often the scatter is estimated, each time from an image that is "
		    "corrected with the estimate before"},
	{"list_mode", AS_BOOL(protocol_conf, pet.list_mode), .fallback = "false", .flags = KEY_SPARSE,
	 .meaning = "reconstruct the list mode of an mMR event by event instead of as sinograms (a case of sinograms with such a "
		    "protocol is held): `mlem` or `osem` with subsets of events, projector `joseph`. A PETSIRD file is always "
		    "reconstructed so"},
	{"frames", AS_TEXT(protocol_conf, pet.frames, PET_FRAMES_TEXT), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "time frames of the list mode of an mMR (a case of sinograms with such a protocol is held): entries after "
		    "each other, `SECONDS` or `COUNTxSECONDS`, in parentheses for a gap, "
		    "such as `6x10,4x30,(60),2x120`; the result is a dynamic series. Empty: the whole acquisition is one image"},
	{"gates", AS_INT(protocol_conf, pet.gates, 1, PET_GATES_MAX), .zero = "none", .fallback = "0", .flags = KEY_SPARSE,
	 .meaning =
		 "gates of equal length in each cycle between two time marks, for the list mode of an mMR; the result is a gated "
		 "series. Not together with `frames`"},
	{"gate_signal", AS_WORD(protocol_conf, pet.gate_signal, gate_signals), .fallback = "", .flags = KEY_SPARSE,
	 .needs = "gates",
	 .meaning = "with `gates`: signal in the list mode that gives the time marks, `ecg` (R waves) or `resp` (respiration); "
		    "empty: `tomonode recon --marks` gives them"},
	{"gate_cycle", AS_TEXT(protocol_conf, pet.gate_cycle, PET_CYCLE_TEXT), .fallback = "", .flags = KEY_SPARSE,
	 .needs = "gates",
	 .meaning = "with `gates`: `SHORTEST,LONGEST`, the lengths in ms of the cycles that are used, such as `600,1200`; others "
		    "are left out. Empty: all are used"},
	PET_KEYS_DEVICE(protocol_conf, pet.),
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols = CONFIG_PROTOCOLS(protocol_keys, "Protocols for PET (`kind` is `pet`):");

static bool needs_ct(const struct protocol_conf *protocol)
{
	return (protocol->pet.corrections & PET_CORRECT_ATTENUATION) != 0;
}

const struct kind kind_pet = {
	.name = NAME,
	.content = "sinograms of a PET scanner",
	.title = "PET",
	.views = "angles",
	.view_patterns = kind_positions,
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.image = {"counts/mm", {2, 2, 2}, 4, 1},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.needs_ct = needs_ct,
	.protocols = &protocols,
};
