/* result_groups.c - the functional groups: where each slice or slab lies, what its values mean, what it was made from.
 *
 * Frame k is plane k of r->planes, from the breast support upward. Stored columns and rows run as in the source's images, so the
 * first stored pixel is a corner of the grid that depends on them: position = x0 * X + y0 * Y + z_k * Z, with X, Y, Z the scan's
 * axes in the patient (exam->axis) and x0 the centre of the first stored column, y0 that of the first stored row, z_k the middle
 * of the slice or slab. orientation = direction of increasing column index (+X or -X), direction of increasing row index (+Y or
 * -Y). */
#include <stdio.h>

#include "node/result/result_parts.h"

/* Slabs at the upper end may be thinner, and steps that are no multiple of the slices' distance make them uneven. */
static bool evenly_spaced(const struct result *r)
{
	const struct plane *p = r->planes;

	for (int k = 1; k < r->n_planes; k++)
		if (fabs(p[k].thickness - p[0].thickness) > 1e-6 || fabs((p[k].z - p[k - 1].z) - (p[1].z - p[0].z)) > 1e-6)
			return false;
	return true;
}

/* Of all frames where they are alike, else of plane k. */
static void fill_measures(const struct result *r, int k, bool even, struct fill *f)
{
	const struct grid *g = &r->info->plan->grid;
	struct fill item = fill_item(f, TAG_PIXEL_MEASURES_SEQUENCE);
	double spacing[2] = {g->h[1], g->h[0]}; /* between rows, then between columns */

	fill_doubles(&item, TAG_PIXEL_SPACING, spacing, 2);
	fill_double(&item, TAG_SLICE_THICKNESS, r->planes[k].thickness);
	if (even)
		fill_double(&item, TAG_SPACING_BETWEEN_SLICES,
			    r->n_planes > 1 ? r->planes[1].z - r->planes[0].z : r->planes[0].thickness);
	fill_join(f, &item);
}

static void fill_orientation(const struct result *r, struct fill *f)
{
	const struct exam *e = r->exam;
	struct fill item = fill_item(f, TAG_PLANE_ORIENTATION_SEQUENCE);
	double cosines[6];

	for (int c = 0; c < 3; c++) {
		/* + 0.0 turns -0 into 0 */
		cosines[c] = (e->columns_toward_chest ? -1 : 1) * e->axis[0][c] + 0.0;
		cosines[3 + c] = (e->rows_toward_minus_y ? -1 : 1) * e->axis[1][c] + 0.0;
	}
	fill_doubles(&item, TAG_IMAGE_ORIENTATION_PATIENT, cosines, 6);
	fill_join(f, &item);
}

static void fill_position(const struct result *r, int slice, struct fill *f)
{
	const struct grid *g = &r->info->plan->grid;
	const struct exam *e = r->exam;
	struct fill item = fill_item(f, TAG_PLANE_POSITION_SEQUENCE);
	double x = g->lo[0] + (e->columns_toward_chest ? g->n[0] - 0.5 : 0.5) * g->h[0];
	double y = g->lo[1] + (e->rows_toward_minus_y ? g->n[1] - 0.5 : 0.5) * g->h[1];
	double z = r->planes[slice].z;
	double position[3];

	for (int c = 0; c < 3; c++)
		position[c] = x * e->axis[0][c] + y * e->axis[1][c] + z * e->axis[2][c] + 0.0;
	fill_doubles(&item, TAG_IMAGE_POSITION_PATIENT, position, 3);
	fill_join(f, &item);
}

static void fill_anatomy(const struct result *r, struct fill *f)
{
	struct fill item = fill_item(f, TAG_FRAME_ANATOMY_SEQUENCE);
	char laterality[2] = {r->exam->laterality, '\0'};

	fill_text(&item, TAG_FRAME_LATERALITY, laterality);
	fill_code(&item, TAG_ANATOMIC_REGION_SEQUENCE, "76752008", "SCT", "Breast");
	fill_join(f, &item);
}

static void fill_values(const struct result *r, struct fill *f)
{
	struct fill item = fill_item(f, TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE);

	/* Identity, as PS3.3 A.55 wants it of this class (C.7.6.16.2.9b): what the values mean is told by the mapping below. */
	fill_double(&item, TAG_RESCALE_INTERCEPT, 0);
	fill_double(&item, TAG_RESCALE_SLOPE, 1);
	fill_text(&item, TAG_RESCALE_TYPE, "US");
	fill_join(f, &item);

	item = fill_item(f, TAG_FRAME_VOI_LUT_SEQUENCE);
	fill_double(&item, TAG_WINDOW_CENTER, (r->window_lo + r->window_hi) / 2);
	fill_double(&item, TAG_WINDOW_WIDTH, r->window_hi - r->window_lo);
	fill_join(f, &item);

	item = fill_item(f, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
	fill_int(&item, TAG_REAL_WORLD_VALUE_FIRST_VALUE_MAPPED, 0);
	fill_int(&item, TAG_REAL_WORLD_VALUE_LAST_VALUE_MAPPED, RESULT_TOP);
	fill_double(&item, TAG_REAL_WORLD_VALUE_INTERCEPT, r->offset);
	fill_double(&item, TAG_REAL_WORLD_VALUE_SLOPE, r->step);
	fill_text(&item, TAG_LUT_EXPLANATION, "Linear attenuation coefficient");
	fill_text(&item, TAG_LUT_LABEL, "ATTENUATION");
	fill_code(&item, TAG_MEASUREMENT_UNITS_CODE_SEQUENCE, "/mm", "UCUM", "per millimeter");
	fill_join(f, &item);
}

/* One item a step: the reconstruction of the projections, and what was made of its slices. */
static void fill_derivation(const struct result *r, struct fill *f)
{
	struct fill item = fill_item(f, TAG_DERIVATION_IMAGE_SEQUENCE);

	fill_text(&item, TAG_DERIVATION_DESCRIPTION, r->derivation);
	result_fill_reconstruction_code(r, &item);
	result_fill_source_images(r, &item, TAG_SOURCE_IMAGE_SEQUENCE, true);
	fill_join(f, &item);
	if (r->kind == RESULT_SLICES)
		return;
	item = fill_item(f, TAG_DERIVATION_IMAGE_SEQUENCE);
	fill_text(&item, TAG_DERIVATION_DESCRIPTION, r->derivation);
	result_fill_further_code(r, &item);
	result_fill_source_slices(r, &item, TAG_SOURCE_IMAGE_SEQUENCE, true);
	fill_join(f, &item);
}

static void fill_shared(const struct result *r, bool even, struct fill *root)
{
	struct fill f = fill_item(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE);

	if (even)
		fill_measures(r, 0, true, &f);
	fill_orientation(r, &f);
	fill_anatomy(r, &f);
	fill_values(r, &f);
	fill_derivation(r, &f);
	fill_join(root, &f);
}

static void fill_frame(const struct result *r, int slice, bool even, struct fill *root)
{
	struct fill f = fill_item(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE);
	uint32_t index[2] = {1, (uint32_t)slice + 1};
	struct fill item = fill_item(&f, TAG_FRAME_CONTENT_SEQUENCE);

	fill_text(&item, TAG_STACK_ID, "1");
	fill_int(&item, TAG_IN_STACK_POSITION_NUMBER, slice + 1);
	if (item.rc >= 0)
		item.rc = dicom_put_uint32s(item.item, TAG_DIMENSION_INDEX_VALUES, index, 2, item.err);
	fill_join(&f, &item);
	fill_position(r, slice, &f);
	if (!even)
		fill_measures(r, slice, false, &f);
	item = fill_item(&f, TAG_X_RAY_3D_FRAME_TYPE_SEQUENCE);
	fill_text(&item, TAG_FRAME_TYPE, result_image_type(r));
	fill_text(&item, TAG_PIXEL_PRESENTATION, "MONOCHROME");
	fill_text(&item, TAG_VOLUMETRIC_PROPERTIES, result_volumetric_properties(r));
	fill_text(&item, TAG_VOLUME_BASED_CALCULATION_TECHNIQUE, result_calculation_technique(r));
	fill_int(&item, TAG_RECONSTRUCTION_INDEX, 1);
	fill_join(&f, &item);
	fill_join(root, &f);
}

static void fill_dimensions(const struct result *r, bool even, struct fill *root)
{
	static const uint32_t pointers[] = {TAG_STACK_ID, TAG_IN_STACK_POSITION_NUMBER};
	char text[2 * DICOM_UID_SIZE], uid[DICOM_UID_SIZE];
	struct fill f = fill_item(root, TAG_DIMENSION_ORGANIZATION_SEQUENCE);

	snprintf(text, sizeof(text), "dimensions|%s", r->sop_instance);
	dicom_uid_from_text(text, uid);
	fill_text(&f, TAG_DIMENSION_ORGANIZATION_UID, uid);
	fill_join(root, &f);
	if (even)
		fill_text(root, TAG_DIMENSION_ORGANIZATION_TYPE, "3D");
	for (int i = 0; i < 2; i++) {
		f = fill_item(root, TAG_DIMENSION_INDEX_SEQUENCE);
		fill_text(&f, TAG_DIMENSION_ORGANIZATION_UID, uid);
		fill_pointer(&f, TAG_DIMENSION_INDEX_POINTER, pointers[i]);
		fill_pointer(&f, TAG_FUNCTIONAL_GROUP_POINTER, TAG_FRAME_CONTENT_SEQUENCE);
		fill_join(root, &f);
	}
}

void result_fill_groups(const struct result *r, struct fill *root)
{
	bool even = evenly_spaced(r);

	fill_dimensions(r, even, root);
	fill_shared(r, even, root);
	for (int k = 0; k < r->n_planes && root->rc >= 0; k++)
		fill_frame(r, k, even, root);
}
