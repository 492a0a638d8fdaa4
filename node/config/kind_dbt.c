/* SPDX-License-Identifier: Apache-2.0 */
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
static const struct key_choice priors[] = {{"relative", PRIOR_RELATIVE}, {"quadratic", PRIOR_QUADRATIC}, {NULL, 0}};
static const struct key_choice slab_modes[] = {{"mean", SLAB_MEAN}, {"maximum", SLAB_MAXIMUM}, {NULL, 0}};
static const struct key_choice synthetic_classes[] = {
	{"mammogram", SYNTHETIC_MAMMOGRAM}, {"tomosynthesis", SYNTHETIC_TOMOSYNTHESIS}, {NULL, 0}};
static const struct key_choice projectors[] = {{"slices", PROJECTION_SLICES}, {"exact", PROJECTION_EXACT}, {NULL, 0}};

static const struct config_key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	{"algorithm", AS_CHOICE(protocol_conf, dbt.algorithm, algorithms), .fallback = "osem",
	 .meaning = "emission model on line integrals: `osem` (ordered subsets), `mlem` (all projections in each update); "
		    "transmission model: `ostr` (ordered subsets), `mltr` (all projections); algebraic: `sart`; in one step: "
		    "`bp` (shift and add), `fbp` (filtered backprojection)"},
	{"iterations", AS_INT(protocol_conf, dbt.iterations, 1, 1000), .fallback = "1", .only = "osem mlem ostr mltr sart",
	 .meaning = "passes over all projections; 1 for `osem`, 25 to 50 for `mlem` and `mltr`; `bp` and `fbp` always make one"},
	{"subsets", AS_INT(protocol_conf, dbt.subsets, 1, 1000), .zero = "one per projection", .fallback = "0",
	 .only = "osem ostr sart",
	 .meaning = "subsets of the projections for `osem`, `ostr`, `sart`; the other algorithms always use one"},
	{"relaxation", AS_REAL(protocol_conf, dbt.relaxation, 0.001, 1.999), .fallback = "0.5", .only = "sart",
	 .meaning = "`sart`: fraction of the correction that each update applies"},
	{"normalise_rows", AS_BOOL(protocol_conf, dbt.normalise_rows), .fallback = "false", .only = "osem mlem",
	 .meaning = "`osem`, `mlem`: divide the path lengths of every ray by their sum; for comparison only, because it shades "
		    "the image in depth"},
	{"prior", AS_CHOICE(protocol_conf, dbt.prior, priors), .fallback = "relative", .flags = KEY_SPARSE,
	 .only = "osem mlem ostr mltr", .needs = "prior_weight",
	 .meaning = "with `prior_weight`: `relative`: the relative difference prior; `quadratic`: smooths edges like noise"},
	{"prior_weight", AS_REAL(protocol_conf, dbt.prior_weight, 0, 1e6), .zero = "no prior", .fallback = "0",
	 .flags = KEY_SPARSE, .only = "osem mlem ostr mltr",
	 .meaning = "`osem`, `mlem`, `ostr`, `mltr`: weight of a penalty on differences between neighbouring voxels, relative to "
		    "the sensitivity"},
	{"prior_gamma", AS_REAL(protocol_conf, dbt.prior_gamma, 0, 1000), .fallback = "2", .flags = KEY_SPARSE,
	 .only = "osem mlem ostr mltr", .needs = "prior_weight prior=relative",
	 .meaning = "`prior` = `relative`: preservation of edges, stronger for larger values"},
	{"prior_across", AS_REAL(protocol_conf, dbt.prior_across, 0, 1), .fallback = "0", .flags = KEY_SPARSE,
	 .only = "osem mlem ostr mltr", .needs = "prior_weight",
	 .meaning = "factor of the weight between neighbours in different slices; 0: within slices only, so that objects do not "
		    "spread into more slices"},
	{"filter", AS_CHOICE(protocol_conf, dbt.filter, filters), .fallback = "hann", .only = "fbp",
	 .meaning = "`fbp`: `ramp`: the ramp filter; `hann`: the ramp multiplied by a Hann window"},
	{"filter_cut", AS_REAL(protocol_conf, dbt.filter_cut, 0.01, 1), .fallback = "0.8", .only = "fbp", .needs = "filter=hann",
	 .meaning = "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
	{"voxel", AS_REAL(protocol_conf, dbt.voxel, 0.02, 5), .unit = "mm", .zero = "the detector's own pitch",
	 .fallback = "0.34",
	 .meaning = "voxel size within a slice; projections are binned by the nearest whole number of detector bins"},
	{"slice_spacing", AS_REAL(protocol_conf, dbt.slice_spacing, 0.1, 20), .unit = "mm", .fallback = "1",
	 .meaning = "distance between slices"},
	{"projector", AS_CHOICE(protocol_conf, dbt.projector, projectors), .fallback = "slices",
	 .meaning = "`slices`: slice by slice, fast; `exact`: path lengths through voxels, the reference"},
	{"breast_mask", AS_BOOL(protocol_conf, dbt.breast_mask), .fallback = "true",
	 .meaning = "do not reconstruct the region beside the breast that a projection shows as air"},
	{"edge_taper", AS_REAL(protocol_conf, dbt.edge_taper, 0.1, 100), .unit = "mm", .zero = "all bins count fully",
	 .fallback = "5",
	 .meaning = "where the breast continues beyond the field of a projection at an end along the chest wall, the weight of "
		    "its bins decreases to 0 over this distance from the edge of the detector, so that the image has no steps "
		    "there; other projections are not affected. At the chest wall, bins whose rays leave the volume there count "
		    "with the part that is in it; with 0 the first columns are then much too bright"},
	{"scatter_correction", AS_BOOL(protocol_conf, dbt.scatter), .fallback = "false", .flags = KEY_SPARSE,
	 .meaning = "subtract scattered radiation from the projections; the profile's `scatter_scale` is its amount"},
	{"tile", AS_TILE(protocol_conf, dbt.tile, 1, 65535), .unit = "bins", .fallback = "auto",
	 .meaning = "unit of work on the detector, along x and y; `auto`: the whole detector at once if that fits into memory, "
		    "else 88x56"},
	{"memory_limit", AS_BYTES(protocol_conf, dbt.memory_limit, 1, 1e15), .unit = "bytes",
	 .zero = "no limit but the device's memory", .fallback = "0",
	 .meaning = "maximum memory on the device, with the working memory of one thread; a plan that needs more is refused "
		    "before anything is allocated"},
	{"deterministic", AS_BOOL(protocol_conf, dbt.deterministic), .fallback = "false",
	 .meaning = "compute bitwise the same image in every run"},
	{"stored_step", AS_REAL(protocol_conf, stored_step, 1e-9, 1), .unit = "1/mm", .fallback = "2e-5",
	 .meaning = "attenuation per step of the stored values; the same for every exam, so that exams can be compared"},
	{"stored_offset", AS_REAL(protocol_conf, stored_offset, -100, 100), .unit = "1/mm", .fallback = "0",
	 .meaning = "attenuation that is stored as 0; below 0 for `fbp`, whose images have negative values"},
	{"stored_bits", AS_INT(protocol_conf, stored_bits, 12, 16), .fallback = "16", .flags = KEY_SPARSE,
	 .meaning = "bits of a stored value; with fewer than 16, for archives and viewers that need it, the step of an object is "
		    "the smallest multiple of `stored_step` that clips no value"},
	{"slab_thickness", AS_REAL(protocol_conf, slab_thickness, 0.1, 300), .unit = "mm", .zero = "no slabs", .fallback = "0",
	 .meaning = "thickness of slabs, each computed from several slices and written as a frame of an additional object"},
	{"slab_step", AS_REAL(protocol_conf, slab_step, 0.1, 300), .unit = "mm", .zero = "half of slab_thickness",
	 .fallback = "0", .needs = "slab_thickness", .meaning = "distance between slabs"},
	{"slab_mode", AS_CHOICE(protocol_conf, slab_mode, slab_modes), .fallback = "mean", .needs = "slab_thickness",
	 .meaning = "how a slab combines its slices"},
	{"synthetic", AS_BOOL(protocol_conf, synthetic), .fallback = "false",
	 .meaning = "write a two-dimensional view, made from the slices, as an additional object"},
	{"synthetic_class", AS_CHOICE(protocol_conf, synthetic_class, synthetic_classes), .fallback = "mammogram",
	 .flags = KEY_SPARSE, .needs = "synthetic",
	 .meaning = "SOP class of this view: `mammogram`: Digital Mammography X-Ray Image, For Presentation, which workstations "
		    "hang beside other mammograms; `tomosynthesis`: Breast Tomosynthesis Image of one frame"},
	{"require_quantitative", AS_BOOL(protocol_conf, require_quantitative), .fallback = "false", .flags = KEY_UNDESCRIBED,
	 .meaning =
		 "hold a case if the intensity of the unattenuated beam is unknown, so that its attenuation would be relative"},
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols =
	CONFIG_PROTOCOLS(protocol_keys, "Protocols for breast tomosynthesis (`kind` is `dbt`):");

static const char *const view_patterns[] = {"L*", "R*", NULL}; /* laterality and view */

const struct kind kind_dbt = {
	.name = NAME,
	.content = "breast tomosynthesis",
	.title = "tomosynthesis",
	.views = "projections",
	.view_patterns = view_patterns,
	.key = {CASE_STUDY, CASE_SERIES, CASE_LATERALITY, CASE_VIEW, CASE_FRAME_OF_REFERENCE},
	.as_is_frames = 2,
	.as_is_refusal = "a tomosynthesis needs at least 2 projections; send the missing projections",
	.protocols = &protocols,
};
