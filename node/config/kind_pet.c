/* SPDX-License-Identifier: Apache-2.0 */
/* kind_pet.c - sinograms of a PET scanner: a case is one acquisition with all its roles and chunks. */
#include <stddef.h>

#include "node/config/config_internal.h"
#include "node/config/kind.h"

#define NAME "pet"

static const struct key_choice algorithms[] = {
	{"mlem", ALGORITHM_MLEM}, {"osem", ALGORITHM_OSEM}, {"bsrem", ALGORITHM_BSREM}, {"fbp", ALGORITHM_FBP}, {NULL, 0},
};
static const struct key_choice projectors[] = {
	{"siddon", PROJECTION_PATHS},
	{"joseph", PROJECTION_JOSEPH},
	{"exact", PROJECTION_EXACT},
	{NULL, 0},
};

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

static const struct config_key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	{"algorithm", AS_CHOICE(protocol_conf, pet.algorithm, algorithms), .fallback = "mlem",
	 .meaning = "`mlem` (all angles in each update), `osem` (ordered subsets of angles), `bsrem` (ordered subsets with the "
		    "relative difference prior), `fbp` (single-slice rebinning and filtered backprojection: a fast preview)"},
	{"iterations", AS_INT(protocol_conf, pet.iterations, 1, 1000), .fallback = "40", .only = "mlem osem bsrem",
	 .meaning = "passes over all angles; `fbp` always makes one"},
	{"subsets", AS_INT(protocol_conf, pet.subsets, 1, 1000), .fallback = "28", .only = "osem bsrem",
	 .meaning = "subsets of the angles for `osem` and `bsrem`, at most as many as there are angles; the other algorithms "
		    "always use one"},
	{"matrix", AS_INT(protocol_conf, pet.matrix, 8, 1024), .unit = "pixels", .fallback = "256",
	 .meaning = "number of pixels along x and along y"},
	{"voxel", AS_REAL(protocol_conf, pet.voxel, 0.1, 50), .unit = "mm", .zero = "diameter of the field of view over `matrix`",
	 .fallback = "0", .meaning = "transaxial voxel size"},
	{"slice_spacing", AS_REAL(protocol_conf, pet.slice, 0.1, 50), .unit = "mm", .zero = "half of the ring spacing",
	 .fallback = "0", .meaning = "distance between slices"},
	{"fov_radius", AS_REAL(protocol_conf, pet.fov_radius, 1, 1000), .unit = "mm",
	 .zero = "the largest radial bin, at most 350 and 0.98 of the radius where rays end", .fallback = "0",
	 .meaning = "radius of the field of view: rays count only inside it, so what is beyond it appears inside; values outside "
		    "are set to 0"},
	{"projector", AS_CHOICE(protocol_conf, pet.projector, projectors), .fallback = "siddon", .only = "mlem osem bsrem",
	 .meaning = "`siddon`: path lengths through voxels, where the path across the slices is computed once for all planes; "
		    "`joseph`: linear interpolation between voxels; `exact`: path lengths, ray by ray, the reference"},
	{"psf", AS_REAL(protocol_conf, pet.psf, 0.1, 50), .unit = "mm", .zero = "none", .fallback = "0",
	 .only = "mlem osem bsrem", .meaning = "full width at half maximum of a Gaussian resolution model"},
	{"postfilter", AS_REAL(protocol_conf, pet.postfilter, 0.1, 50), .unit = "mm", .zero = "none", .fallback = "0",
	 .meaning = "full width at half maximum of a Gaussian filter on the result"},
	{"prior_weight", AS_REAL(protocol_conf, pet.prior_weight, 0, 1e6), .fallback = "0.005", .only = "bsrem",
	 .meaning = "`bsrem`: weight of the prior, relative to the sensitivity"},
	{"prior_gamma", AS_REAL(protocol_conf, pet.prior_gamma, 0, 1000), .fallback = "2", .only = "bsrem",
	 .needs = "prior_weight", .meaning = "`bsrem`: preservation of edges, stronger for larger values; 0: quadratic prior"},
	{"relaxation", AS_REAL(protocol_conf, pet.relaxation, 0, 100), .fallback = "0.05", .only = "bsrem",
	 .meaning = "`bsrem`: the step size of pass n (from 0) is 1 / (1 + relaxation n)"},
	{"filter_cut", AS_REAL(protocol_conf, pet.filter_cut, 0.01, 1), .fallback = "0.8", .only = "fbp",
	 .meaning = "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
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
	{"memory_limit", AS_BYTES(protocol_conf, pet.memory_limit, 1, 1e15), .unit = "bytes",
	 .zero = "no limit but the device's memory", .fallback = "0",
	 .meaning = "maximum memory on the device, with the working memory of one thread; if the data do not fit, angles are "
		    "streamed; a plan that still needs more is "
		    "refused before anything is allocated"},
	{"deterministic", AS_BOOL(protocol_conf, pet.deterministic), .fallback = "false",
	 .meaning = "compute bitwise the same image in every run"},
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
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.needs_ct = needs_ct,
	.protocols = &protocols,
};
