/* kind_dbt.c - breast tomosynthesis: a case is one exposure series of one breast in one view. */
#include <stddef.h>

#include "node/config/config_internal.h"
#include "node/config/kind.h"

#define NAME "dbt"

static const struct key_choice algorithms[] = {
	{"osem", ALGORITHM_OSEM}, {"mlem", ALGORITHM_MLEM}, {"ostr", ALGORITHM_OSTR}, {"mltr", ALGORITHM_MLTR},
	{"sart", ALGORITHM_SART}, {"bp", ALGORITHM_BP},	    {"fbp", ALGORITHM_FBP},   {NULL, 0},
};
static const struct key_choice filters[] = {{"ramp", DBT_FILTER_RAMP}, {"hann", DBT_FILTER_HANN}, {NULL, 0}};
static const struct key_choice slab_modes[] = {{"mean", SLAB_MEAN}, {"maximum", SLAB_MAXIMUM}, {NULL, 0}};
static const struct key_choice projectors[] = {{"slices", PROJECTION_SLICES}, {"exact", PROJECTION_EXACT}, {NULL, 0}};

/* name, type, field, unit, lo, hi, zero, choices, default, flags, meaning */
static const struct config_key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	{"algorithm", KEY_CHOICE, AT(protocol_conf, dbt.algorithm), "", 0, 0, NULL, algorithms, "osem", 0,
	 "emission model on line integrals: `osem` (ordered subsets), `mlem` (all projections in each update); transmission "
	 "model: `ostr` (ordered subsets), `mltr` (all projections); algebraic: `sart`; in one step: `bp` (shift and add), "
	 "`fbp` (filtered backprojection)"},
	{"iterations", KEY_INT, AT(protocol_conf, dbt.iterations), "", 1, 1000, NULL, NULL, "1", 0,
	 "passes over all projections; 1 for `osem`, 25 to 50 for `mlem` and `mltr`; `bp` and `fbp` always make one"},
	{"subsets", KEY_INT, AT(protocol_conf, dbt.subsets), "", 1, 1000, "one per projection", NULL, "0", 0,
	 "subsets of the projections for `osem`, `ostr`, `sart`; the other algorithms always use one"},
	{"relaxation", KEY_REAL, AT(protocol_conf, dbt.relaxation), "", 0.001, 1.999, NULL, NULL, "0.5", 0,
	 "`sart`: fraction of the correction that each update applies"},
	{"normalise_rows", KEY_BOOL, AT(protocol_conf, dbt.normalise_rows), "", 0, 0, NULL, NULL, "false", 0,
	 "`osem`, `mlem`: divide the path lengths of every ray by their sum; for comparison only, because it shades the image in "
	 "depth"},
	{"filter", KEY_CHOICE, AT(protocol_conf, dbt.filter), "", 0, 0, NULL, filters, "hann", 0,
	 "`fbp`: `ramp`: the ramp filter; `hann`: the ramp multiplied by a Hann window"},
	{"filter_cut", KEY_REAL, AT(protocol_conf, dbt.filter_cut), "", 0.01, 1, NULL, NULL, "0.8", 0,
	 "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
	{"voxel", KEY_REAL, AT(protocol_conf, dbt.voxel), "mm", 0.02, 5, "the detector's own pitch", NULL, "0.34", 0,
	 "voxel size within a slice; projections are binned by the nearest whole number of detector bins"},
	{"slice_spacing", KEY_REAL, AT(protocol_conf, dbt.slice_spacing), "mm", 0.1, 20, NULL, NULL, "1", 0,
	 "distance between slices"},
	{"projector", KEY_CHOICE, AT(protocol_conf, dbt.projector), "", 0, 0, NULL, projectors, "slices", 0,
	 "`slices`: slice by slice, fast; `exact`: path lengths through voxels, the reference"},
	{"breast_mask", KEY_BOOL, AT(protocol_conf, dbt.breast_mask), "", 0, 0, NULL, NULL, "true", 0,
	 "do not reconstruct the region beside the breast that a projection shows as air"},
	{"tile", KEY_TILE, AT(protocol_conf, dbt.tile), "bins", 1, 65535, NULL, NULL, "auto", 0,
	 "unit of work on the detector, along x and y; `auto`: the whole detector at once if that fits into memory, else 88x56"},
	{"memory_limit", KEY_BYTES, AT(protocol_conf, dbt.memory_limit), "bytes", 1, 1e15, "no limit but the device's memory",
	 NULL, "0", 0, "maximum memory on the device; a plan that needs more is refused before anything is allocated"},
	{"deterministic", KEY_BOOL, AT(protocol_conf, dbt.deterministic), "", 0, 0, NULL, NULL, "false", 0,
	 "compute bitwise the same image in every run"},
	{"stored_step", KEY_REAL, AT(protocol_conf, stored_step), "1/mm", 1e-9, 1, NULL, NULL, "2e-5", 0,
	 "attenuation per step of the stored values; the same for every exam, so that exams can be compared"},
	{"stored_offset", KEY_REAL, AT(protocol_conf, stored_offset), "1/mm", -100, 100, NULL, NULL, "0", 0,
	 "attenuation that is stored as 0; below 0 for `fbp`, whose images have negative values"},
	{"slab_thickness", KEY_REAL, AT(protocol_conf, slab_thickness), "mm", 0.1, 300, "no slabs", NULL, "0", 0,
	 "height of slabs of slices, which are written as an additional object"},
	{"slab_step", KEY_REAL, AT(protocol_conf, slab_step), "mm", 0.1, 300, "half of slab_thickness", NULL, "0", 0,
	 "distance between slabs"},
	{"slab_mode", KEY_CHOICE, AT(protocol_conf, slab_mode), "", 0, 0, NULL, slab_modes, "mean", 0,
	 "how a slab combines its slices"},
	{"synthetic", KEY_BOOL, AT(protocol_conf, synthetic), "", 0, 0, NULL, NULL, "false", 0,
	 "write a two-dimensional view, made from the slices, as an additional object"},
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols =
	CONFIG_PROTOCOLS(protocol_keys, "Protocols for breast tomosynthesis (`kind` is `dbt`):");

const struct kind kind_dbt = {
	.name = NAME,
	.content = "breast tomosynthesis",
	.title = "tomosynthesis",
	.views = "projections",
	.key = {CASE_STUDY, CASE_SERIES, CASE_LATERALITY, CASE_VIEW, CASE_FRAME_OF_REFERENCE},
	.as_is_frames = 2,
	.as_is_refusal = "a tomosynthesis needs at least 2 projections; send what is missing",
	.protocols = &protocols,
};
