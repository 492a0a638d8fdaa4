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

/* name, type, field, unit, lo, hi, zero, choices, default, flags, meaning */
static const struct config_key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	{"algorithm", KEY_CHOICE, AT(protocol_conf, pet.algorithm), "", 0, 0, NULL, algorithms, "mlem", 0,
	 "`mlem` (all angles in each update), `osem` (ordered subsets of angles), `bsrem` (ordered subsets with the relative "
	 "difference prior), `fbp` (single-slice rebinning and filtered backprojection: a fast preview)"},
	{"iterations", KEY_INT, AT(protocol_conf, pet.iterations), "", 1, 1000, NULL, NULL, "40", 0,
	 "passes over all angles; `fbp` always makes one"},
	{"subsets", KEY_INT, AT(protocol_conf, pet.subsets), "", 1, 1000, NULL, NULL, "28", 0,
	 "subsets of the angles for `osem` and `bsrem`, at most as many as there are angles; the other algorithms always use "
	 "one"},
	{"matrix", KEY_INT, AT(protocol_conf, pet.matrix), "pixels", 8, 1024, NULL, NULL, "256", 0,
	 "number of pixels along x and along y"},
	{"voxel", KEY_REAL, AT(protocol_conf, pet.voxel), "mm", 0.1, 50, "diameter of the field of view over `matrix`", NULL, "0",
	 0, "transaxial voxel size"},
	{"slice_spacing", KEY_REAL, AT(protocol_conf, pet.slice), "mm", 0.1, 50, "half of the ring spacing", NULL, "0", 0,
	 "distance between slices"},
	{"fov_radius", KEY_REAL, AT(protocol_conf, pet.fov_radius), "mm", 1, 1000,
	 "the largest radial bin, at most 350 and 0.98 of the radius where rays end", NULL, "0", 0,
	 "radius of the field of view; values outside are set to 0"},
	{"projector", KEY_CHOICE, AT(protocol_conf, pet.projector), "", 0, 0, NULL, projectors, "siddon", 0,
	 "`siddon`: path lengths through voxels, where the path across the slices is computed once for all planes; `joseph`: "
	 "linear interpolation between voxels; `exact`: path lengths, ray by ray, the reference"},
	{"psf", KEY_REAL, AT(protocol_conf, pet.psf), "mm", 0.1, 50, "none", NULL, "0", 0,
	 "full width at half maximum of a Gaussian resolution model"},
	{"postfilter", KEY_REAL, AT(protocol_conf, pet.postfilter), "mm", 0.1, 50, "none", NULL, "0", 0,
	 "full width at half maximum of a Gaussian filter on the result"},
	{"prior_weight", KEY_REAL, AT(protocol_conf, pet.prior_weight), "", 0, 1e6, NULL, NULL, "0.005", 0,
	 "`bsrem`: weight of the prior, relative to the sensitivity"},
	{"prior_gamma", KEY_REAL, AT(protocol_conf, pet.prior_gamma), "", 0, 1000, NULL, NULL, "2", 0,
	 "`bsrem`: preservation of edges, stronger for larger values; 0: quadratic prior"},
	{"relaxation", KEY_REAL, AT(protocol_conf, pet.relaxation), "", 0, 100, NULL, NULL, "0.05", 0,
	 "`bsrem`: the step size of pass n (from 0) is 1 / (1 + relaxation n)"},
	{"filter_cut", KEY_REAL, AT(protocol_conf, pet.filter_cut), "", 0.01, 1, NULL, NULL, "0.8", 0,
	 "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
	{"memory_limit", KEY_BYTES, AT(protocol_conf, pet.memory_limit), "bytes", 1, 1e15, "no limit but the device's memory",
	 NULL, "0", 0,
	 "maximum memory on the device; if the data do not fit, angles are streamed; a plan that still needs more is refused "
	 "before anything is allocated"},
	{"deterministic", KEY_BOOL, AT(protocol_conf, pet.deterministic), "", 0, 0, NULL, NULL, "false", 0,
	 "compute bitwise the same image in every run"},
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols = CONFIG_PROTOCOLS(protocol_keys, "Protocols for PET (`kind` is `pet`):");

const struct kind kind_pet = {
	.name = NAME,
	.content = "sinograms of a PET scanner",
	.title = "PET",
	.views = "angles",
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.protocols = &protocols,
};
