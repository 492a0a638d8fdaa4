/* SPDX-License-Identifier: Apache-2.0 */
/* kind_dbt.c - breast tomosynthesis: a case is one exposure series of one breast in one view. */
#include <stddef.h>

#include "node/config/config_internal.h"
#include "node/config/kind.h"
#include "recon/dbt/dbt_keys.h"

#define NAME "dbt"

static const struct key_choice slab_modes[] = {{"mean", SLAB_MEAN}, {"maximum", SLAB_MAXIMUM}, {NULL, 0}};
static const struct key_choice synthetic_classes[] = {
	{"mammogram", SYNTHETIC_MAMMOGRAM}, {"tomosynthesis", SYNTHETIC_TOMOSYNTHESIS}, {NULL, 0}};

static const struct key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	DBT_KEYS(protocol_conf, dbt.),
	{"scatter_correction", AS_BOOL(protocol_conf, dbt.scatter), .fallback = "false", .flags = KEY_SPARSE,
	 .meaning = "subtract scattered radiation from the projections; the profile's `scatter_scale` is its amount"},
	DBT_KEYS_DEVICE(protocol_conf, dbt.),
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
	{"synthetic_rim", AS_BOOL(protocol_conf, synthetic_rim), .fallback = "true", .flags = KEY_SPARSE, .needs = "synthetic",
	 .only = "osem mlem ostr mltr sart",
	 .meaning =
		 "fill the rim of this view, where the breast is thinner than its compressed thickness, up to the level of the fat "
		 "inside: tissue can be seen up to the skin. Fine detail does not change, values in 1 do"},
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
	.image = {"1/mm", {0.1, 0.1, 1}, 0.05F, 0},
	.as_is_refusal = "a tomosynthesis needs at least 2 projections; send the missing projections",
	.protocols = &protocols,
};
