/* SPDX-License-Identifier: Apache-2.0 */
/* result_sources.c - write the provenance of the result: every source image, the two pieces of equipment, the whole recipe.
 * The recipe (node/sinogram/provenance.h) begins with clipped=VOXELS step=MU offset=MU and ends with profile="...". No private
 * attributes are needed.
 */
#include <stdio.h>

#include "node/base/plural.h"
#include "node/base/version.h"
#include "node/result/algorithm_terms.h"
#include "node/result/result_internal.h"

void result_fill_source_images(const struct result *r, struct item_writer *w, uint32_t sequence, bool purpose)
{
	const struct exam *e = r->exam;
	char sop_class[DICOM_UID_SIZE] = "";

	/* Sorted by angle; the views of a multi-frame object are one image. */
	for (int i = 0; i < (e->frames_in_file ? 1 : e->n_views) && w->rc >= 0; i++) {
		struct item_writer item = item_begin(w, sequence);

		if (item.rc >= 0)
			item.rc = dicom_get_text(dicom_root(e->files[e->views[i].file]), TAG_SOP_CLASS_UID, sop_class,
						 sizeof(sop_class), w->err);
		item_put_text(&item, TAG_REFERENCED_SOP_CLASS_UID, sop_class);
		item_put_text(&item, TAG_REFERENCED_SOP_INSTANCE_UID, e->views[i].sop_instance);
		if (purpose)
			item_put_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "121322", "DCM",
				      "Source image for image processing operation");
		item_end(w, &item);
	}
}

void result_fill_source_slices(const struct result *r, struct item_writer *w, uint32_t sequence, bool purpose)
{
	struct item_writer item = item_begin(w, sequence);

	item_put_text(&item, TAG_REFERENCED_SOP_CLASS_UID, CLASS_TOMOSYNTHESIS);
	item_put_text(&item, TAG_REFERENCED_SOP_INSTANCE_UID, r->slices);
	if (purpose)
		item_put_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "121322", "DCM",
			      "Source image for image processing operation");
	item_end(w, &item);
}

/* Write Common Instance Reference: all projections are in one series; the slices are in a series of their own. */
static void fill_series_reference(const struct result *r, struct item_writer *root)
{
	struct item_writer item = item_begin(root, TAG_REFERENCED_SERIES_SEQUENCE);

	item_copy(&item, TAG_SERIES_INSTANCE_UID, r->source);
	result_fill_source_images(r, &item, TAG_REFERENCED_INSTANCE_SEQUENCE, false);
	item_end(root, &item);
	if (r->kind == RESULT_SLICES)
		return;
	item = item_begin(root, TAG_REFERENCED_SERIES_SEQUENCE);
	item_put_text(&item, TAG_SERIES_INSTANCE_UID, r->slices_series);
	result_fill_source_slices(r, &item, TAG_REFERENCED_INSTANCE_SEQUENCE, false);
	item_end(root, &item);
}

void result_fill_reconstruction_code(const struct result *r, struct item_writer *w)
{
	struct algorithm_terms terms = algorithm_terms(&r->exam->place, r->info->protocol->dbt.algorithm);

	item_put_code(w, TAG_DERIVATION_CODE_SEQUENCE, terms.code, "DCM", terms.meaning);
}

void result_fill_further_code(const struct result *r, struct item_writer *w)
{
	bool maximum = r->slabs.mode == SLABS_MAXIMUM;

	if (r->type->is_view)
		item_put_code(w, TAG_DERIVATION_CODE_SEQUENCE, "113074", "DCM", "Volume rendering");
	else
		item_put_code(w, TAG_DERIVATION_CODE_SEQUENCE, maximum ? "113078" : "113049", "DCM",
			      maximum ? "Maximum intensity projection" : "Pixel by pixel mean");
}

/* Write what computed the volume. Descriptions are LO; the recipe has the full text. */
static void fill_own_algorithm(const struct result *r, struct item_writer *item)
{
	const struct dbt_protocol *p = &r->info->protocol->dbt;
	const char *name = algorithm_info(p->algorithm)->name;
	char text[65];

	if (algorithm_iterates(p->algorithm))
		snprintf(text, sizeof(text), "%s, %d iteration%s, %d subset%s", name, p->iterations, plural(p->iterations),
			 r->info->plan->subsets, plural(r->info->plan->subsets));
	else
		snprintf(text, sizeof(text), "%s", name);
	item_put_text(item, TAG_RECONSTRUCTION_DESCRIPTION, text);
	item_put_text(item, TAG_APPLICATION_NAME, "tomonode");
	item_put_text(item, TAG_APPLICATION_VERSION, TOMONODE_VERSION);
	item_put_text(item, TAG_APPLICATION_MANUFACTURER, "tomonode");
	snprintf(text, sizeof(text), "projector %s, %.40s", p->projector == PROJECTION_EXACT ? "exact" : "slices",
		 r->info->device);
	item_put_text(item, TAG_ALGORITHM_DESCRIPTION, text);
}

static void fill_outside_algorithm(const struct result_outside *o, struct item_writer *item)
{
	char text[65];

	snprintf(text, sizeof(text), "%.64s", o->note[0] ? o->note : "outside tomonode");
	item_put_text(item, TAG_RECONSTRUCTION_DESCRIPTION, text);
	item_put_text(item, TAG_APPLICATION_NAME, o->software);
	item_put_text(item, TAG_APPLICATION_VERSION, o->version);
	item_put_text(item, TAG_APPLICATION_MANUFACTURER, "unknown");
}

static void fill_reconstruction(const struct result *r, struct item_writer *root)
{
	struct item_writer item = item_begin(root, TAG_X_RAY_3D_RECONSTRUCTION_SEQUENCE);
	const struct result_place *place = &r->exam->place;

	if (place->outside)
		fill_outside_algorithm(place->outside, &item);
	else
		fill_own_algorithm(r, &item);
	item_put_text(&item, TAG_ALGORITHM_TYPE, algorithm_terms(place, r->info->protocol->dbt.algorithm).type);
	item_put_int(&item, TAG_ACQUISITION_INDEX, 1);
	item_end(root, &item);
}

static void fill_recipe(const struct result *r, struct item_writer *root)
{
	const struct protocol_conf *p = r->info->protocol;
	const char *digest = exam_used_flatfield(r->exam);
	char values[192], flatfield[16 + DIGEST_SIZE] = "";
	struct provenance_recipe recipe = {
		.values = values,
		.device = r->info->device,
		.protocol_name = p->name,
		.protocol = r->protocol,
		.geometry_kind = "profile",
		.geometry_name = r->exam->profile->name,
		.geometry = r->profile,
		.further = digest[0] ? flatfield : NULL,
		.place = &r->exam->place,
	};

	if (digest[0])
		snprintf(flatfield, sizeof(flatfield), "flatfield=%s", digest);
	snprintf(values, sizeof(values), "clipped=%zu step=%g offset=%g%s%s", r->summary.above, r->summary.scale.step,
		 p->stored_offset, digest[0] ? " " : "", flatfield);
	provenance_fill_contributing_equipment(r->source, &r->now, &recipe, root);
}

void result_fill_sources(const struct result *r, struct item_writer *root)
{
	fill_series_reference(r, root);
	if (!r->type->is_mammogram)
		fill_reconstruction(r, root);
	fill_recipe(r, root);
}
