/* SPDX-License-Identifier: Apache-2.0 */
/* result_types.c - the types of object that a tomosynthesis can have as its result, in the order of enum result_kind. */
#include <math.h>

#include "node/result/result_internal.h"

/* The step of slabs cannot be smaller than that of slices. */
static bool thick_slabs(const struct result_info *info, struct result_slabs *ret)
{
	const struct protocol_conf *p = info->protocol;

	*ret = (struct result_slabs){
		.mode = p->slab_mode == SLAB_MAXIMUM ? SLABS_MAXIMUM : SLABS_MEAN,
		.thickness = p->slab_thickness,
		.step = p->slab_step > 0 ? p->slab_step : fmax(p->slab_thickness / 2, info->plan->grid.h[2]),
	};
	return p->slab_thickness > 0;
}

/* Apart from the class, and with it the place of attributes, both synthetic views are the same. */
#define SYNTHETIC_VIEW                                                                                                           \
	.name = "synthetic", .title = "synthetic view", .seed = " of synthetic view", .file = "view-",                           \
	.image_type = "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\GENERATED_2D", .volumetric = "SAMPLED", .is_view = true

/* Image Type, value 4: for a 2-D view GENERATED_2D, in the mammogram class by PS3.3 C.8.11.7.1.4, in the tomosynthesis class by
 * table 4.8.4.1.2.7-1 of IHE Radiology (profile DBT); for slices and slabs NONE (C.8.21.1.1.1.4).
 * Volumetric Properties: C.8.21.1.1.2, notes 1 to 3. */
const struct result_type result_types[RESULT_OBJECTS_MAX] = {
	[RESULT_SLICES] =
		{
			.name = "slices",
			.title = "tomosynthesis",
			.seed = "",
			.file = "",
			.sop_class = CLASS_TOMOSYNTHESIS,
			.image_type = "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE",
			.volumetric = "VOLUME",
		},
	[RESULT_SLABS] =
		{
			.name = "slabs",
			.title = "slabs",
			.seed = " of slabs",
			.file = "slabs-",
			.sop_class = CLASS_TOMOSYNTHESIS,
			.image_type = "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE",
			.volumetric = "SAMPLED",
			.slabs = thick_slabs,
		},
	[RESULT_SYNTHETIC] = {SYNTHETIC_VIEW, .sop_class = CLASS_MG_PRESENTATION, .is_mammogram = true},
};

static const struct result_type tomosynthesis_view = {SYNTHETIC_VIEW, .sop_class = CLASS_TOMOSYNTHESIS};

const struct result_type *result_type_of(enum result_kind kind, const struct protocol_conf *protocol)
{
	bool other = kind == RESULT_SYNTHETIC && protocol->synthetic_class == SYNTHETIC_TOMOSYNTHESIS;

	return other ? &tomosynthesis_view : &result_types[kind];
}

const char *result_view_class(const struct protocol_conf *protocol)
{
	return protocol->synthetic ? result_type_of(RESULT_SYNTHETIC, protocol)->sop_class : NULL;
}
