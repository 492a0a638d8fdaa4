/* SPDX-License-Identifier: Apache-2.0 */
/* result_groups.c - write the functional groups: the position of each slice or slab, the meaning of its values, its sources.
 *
 * Frame k is plane k of r->planes, from the breast support upward. Stored columns and rows have the direction of the source's
 * images; which corner of the grid is the first stored pixel depends on them: position = x0 * X + y0 * Y + z_k * Z, with X, Y, Z
 * the scan's axes in the patient (exam->axis), x0 the centre of the first stored column, y0 that of the first stored row, z_k the
 * centre of the slice or slab. orientation = direction of increasing column index (+X or -X), direction of increasing row index
 * (+Y or -Y). */
#include <stdio.h>

#include "node/result/result_internal.h"

/* Return true if planes are evenly spaced. They are not if slabs at the upper end are thinner or their step is not a multiple of
 * the slice distance. */
static bool evenly_spaced(const struct result *r)
{
	const struct plane *p = r->planes;

	for (int k = 1; k < r->n_planes; k++)
		if (fabs(p[k].thickness - p[0].thickness) > 1e-6 || fabs((p[k].z - p[k - 1].z) - (p[1].z - p[0].z)) > 1e-6)
			return false;
	return true;
}

/* Write the measures of all frames if they are equal, else those of plane k. */
static void fill_measures(const struct result *r, int k, bool even, struct item_writer *w)
{
	const struct grid *g = &r->info->plan->grid;
	struct item_writer item = item_begin(w, TAG_PIXEL_MEASURES_SEQUENCE);
	double spacing[2] = {g->h[1], g->h[0]}; /* between rows, then between columns */

	item_put_doubles(&item, TAG_PIXEL_SPACING, spacing, 2);
	item_put_double(&item, TAG_SLICE_THICKNESS, r->planes[k].thickness);
	if (even)
		item_put_double(&item, TAG_SPACING_BETWEEN_SLICES,
				r->n_planes > 1 ? r->planes[1].z - r->planes[0].z : r->planes[0].thickness);
	item_end(w, &item);
}

static void fill_orientation(const struct result *r, struct item_writer *w)
{
	const struct exam *e = r->exam;
	struct item_writer item = item_begin(w, TAG_PLANE_ORIENTATION_SEQUENCE);
	double cosines[6];

	for (int c = 0; c < 3; c++) {
		/* + 0.0 turns -0 into 0 */
		cosines[c] = (e->columns_toward_chest ? -1 : 1) * e->axis[0][c] + 0.0;
		cosines[3 + c] = (e->rows_toward_minus_y ? -1 : 1) * e->axis[1][c] + 0.0;
	}
	item_put_doubles(&item, TAG_IMAGE_ORIENTATION_PATIENT, cosines, 6);
	item_end(w, &item);
}

static void fill_position(const struct result *r, int slice, struct item_writer *w)
{
	const struct grid *g = &r->info->plan->grid;
	const struct exam *e = r->exam;
	struct item_writer item = item_begin(w, TAG_PLANE_POSITION_SEQUENCE);
	double x = g->lo[0] + (e->columns_toward_chest ? g->n[0] - 0.5 : 0.5) * g->h[0];
	double y = g->lo[1] + (e->rows_toward_minus_y ? g->n[1] - 0.5 : 0.5) * g->h[1];
	double z = r->planes[slice].z;
	double position[3];

	for (int c = 0; c < 3; c++)
		position[c] = x * e->axis[0][c] + y * e->axis[1][c] + z * e->axis[2][c] + 0.0;
	item_put_doubles(&item, TAG_IMAGE_POSITION_PATIENT, position, 3);
	item_end(w, &item);
}

static void fill_anatomy(const struct result *r, struct item_writer *w)
{
	struct item_writer item = item_begin(w, TAG_FRAME_ANATOMY_SEQUENCE);
	char laterality[2] = {r->exam->laterality, '\0'};

	item_put_text(&item, TAG_FRAME_LATERALITY, laterality);
	item_put_code(&item, TAG_ANATOMIC_REGION_SEQUENCE, "76752008", "SCT", "Breast");
	item_end(w, &item);
}

static void fill_values(const struct result *r, struct item_writer *w)
{
	struct item_writer item = item_begin(w, TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE);

	/* Identity, as PS3.3 A.55 requires for this class (C.7.6.16.2.9b); the mapping below gives the meaning of the values. */
	item_put_double(&item, TAG_RESCALE_INTERCEPT, 0);
	item_put_double(&item, TAG_RESCALE_SLOPE, 1);
	item_put_text(&item, TAG_RESCALE_TYPE, "US");
	item_end(w, &item);

	item = item_begin(w, TAG_FRAME_VOI_LUT_SEQUENCE);
	result_put_window(r, &item);
	item_end(w, &item);

	result_put_mapping(r, w);
}

/* Write one item for each step: the reconstruction of the projections, and what was computed from its slices. */
static void fill_derivation(const struct result *r, struct item_writer *w)
{
	struct item_writer item = item_begin(w, TAG_DERIVATION_IMAGE_SEQUENCE);

	item_put_text(&item, TAG_DERIVATION_DESCRIPTION, r->derivation);
	result_fill_reconstruction_code(r, &item);
	result_fill_source_images(r, &item, TAG_SOURCE_IMAGE_SEQUENCE, true);
	item_end(w, &item);
	if (r->kind == RESULT_SLICES)
		return;
	item = item_begin(w, TAG_DERIVATION_IMAGE_SEQUENCE);
	item_put_text(&item, TAG_DERIVATION_DESCRIPTION, r->derivation);
	result_fill_further_code(r, &item);
	result_fill_source_slices(r, &item, TAG_SOURCE_IMAGE_SEQUENCE, true);
	item_end(w, &item);
}

static void fill_shared(const struct result *r, bool even, struct item_writer *root)
{
	struct item_writer f = item_begin(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE);

	if (even)
		fill_measures(r, 0, true, &f);
	fill_orientation(r, &f);
	fill_anatomy(r, &f);
	fill_values(r, &f);
	fill_derivation(r, &f);
	item_end(root, &f);
}

static void fill_frame(const struct result *r, int slice, bool even, struct item_writer *root)
{
	struct item_writer f = item_begin(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE);
	uint32_t index[2] = {1, (uint32_t)slice + 1};
	struct item_writer item = item_begin(&f, TAG_FRAME_CONTENT_SEQUENCE);

	/* Viewers split an object whose frames differ in acquisition number, stack or frame type. */
	item_put_int(&item, TAG_FRAME_ACQUISITION_NUMBER, 1);
	item_put_text(&item, TAG_STACK_ID, "1");
	item_put_int(&item, TAG_IN_STACK_POSITION_NUMBER, slice + 1);
	if (item.rc >= 0)
		item.rc = dicom_put_uint32s(item.item, TAG_DIMENSION_INDEX_VALUES, index, 2, item.err);
	item_end(&f, &item);
	fill_position(r, slice, &f);
	if (!even)
		fill_measures(r, slice, false, &f);
	item = item_begin(&f, TAG_X_RAY_3D_FRAME_TYPE_SEQUENCE);
	item_put_text(&item, TAG_FRAME_TYPE, r->type->image_type);
	item_put_text(&item, TAG_PIXEL_PRESENTATION, "MONOCHROME");
	item_put_text(&item, TAG_VOLUMETRIC_PROPERTIES, r->type->volumetric);
	item_put_text(&item, TAG_VOLUME_BASED_CALCULATION_TECHNIQUE, result_calculation_technique(r));
	item_put_int(&item, TAG_RECONSTRUCTION_INDEX, 1);
	item_end(&f, &item);
	item_end(root, &f);
}

static void fill_dimensions(const struct result *r, bool even, struct item_writer *root)
{
	static const uint32_t pointers[] = {TAG_STACK_ID, TAG_IN_STACK_POSITION_NUMBER};
	char text[2 * DICOM_UID_SIZE], uid[DICOM_UID_SIZE];
	struct item_writer f = item_begin(root, TAG_DIMENSION_ORGANIZATION_SEQUENCE);

	snprintf(text, sizeof(text), "dimensions|%s", r->sop_instance);
	dicom_uid_from_text(text, uid);
	item_put_text(&f, TAG_DIMENSION_ORGANIZATION_UID, uid);
	item_end(root, &f);
	if (even)
		item_put_text(root, TAG_DIMENSION_ORGANIZATION_TYPE, "3D");
	for (int i = 0; i < 2; i++) {
		f = item_begin(root, TAG_DIMENSION_INDEX_SEQUENCE);
		item_put_text(&f, TAG_DIMENSION_ORGANIZATION_UID, uid);
		item_put_tag(&f, TAG_DIMENSION_INDEX_POINTER, pointers[i]);
		item_put_tag(&f, TAG_FUNCTIONAL_GROUP_POINTER, TAG_FRAME_CONTENT_SEQUENCE);
		item_end(root, &f);
	}
}

void result_fill_groups(const struct result *r, struct item_writer *root)
{
	bool even = evenly_spaced(r);

	fill_dimensions(r, even, root);
	fill_shared(r, even, root);
	for (int k = 0; k < r->n_planes && root->rc >= 0; k++)
		fill_frame(r, k, even, root);
}
