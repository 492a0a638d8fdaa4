/* SPDX-License-Identifier: Apache-2.0 */
/* ct_result_header.c - write the header of a CT Image (PS3.3 A.3): values, derivation and the recipe.
 *
 * - The images are derived from raw data: Image Type is DERIVED; Source Instance Sequence and Common Instance Reference name
 * every source.
 * - The recipe (node/sinogram/provenance.h) begins with units=UNIT, ends with beams="...", and its digest includes the unit.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/config/kind.h"
#include "node/result/algorithm_terms.h"
#include "node/result/ct_result_internal.h"

/* Attributes copied from the source. */
static const uint32_t copied[] = {
	TAG_SERIES_DATE,	   TAG_SERIES_TIME,	      TAG_ACQUISITION_DATE,
	TAG_ACQUISITION_TIME,	   TAG_ACQUISITION_DATE_TIME, DICOM_TAG(0x0008, 0x2218), /* Anatomic Region */
	TAG_IRRADIATION_EVENT_UID, TAG_BODY_PART_EXAMINED,    TAG_PATIENT_POSITION,
};

/* Type 2: copied, or written empty. */
static const uint32_t copied_or_empty[] = {
	TAG_KVP,
	DICOM_TAG(0x0020, 0x0012), /* Acquisition Number */
	TAG_POSITION_REFERENCE_INDICATOR,
};

const struct series_kind ct_series = {
	.sop_class = CLASS_CT,
	.image_type = "DERIVED\\PRIMARY\\AXIAL",
	.modality = "CT",
	.name = "CT",
	.seed = "tomonode ct",
	.prefix = "ct",
	.geometry = "beams",
	.role = SINOGRAM_LINES,
	.copied = copied,
	.copied_or_empty = copied_or_empty,
	.n_copied = sizeof(copied) / sizeof(copied[0]),
	.n_copied_or_empty = sizeof(copied_or_empty) / sizeof(copied_or_empty[0]),
};

/* ---- image ---- */

static void fill_values(const struct ct_result *r, struct item_writer *w)
{
	item_put_double(w, TAG_RESCALE_SLOPE, r->slope);
	item_put_text(w, TAG_RESCALE_TYPE, r->hounsfield ? "HU" : "US");
	if (r->hounsfield) { /* a usual window for soft tissue */
		item_put_double(w, TAG_WINDOW_CENTER, 40);
		item_put_double(w, TAG_WINDOW_WIDTH, 400);
	} else {
		result_series_fill_window(r->lo, r->hi, w);
	}
}

static void fill_image(const struct ct_result *r, struct item_writer *w)
{
	const struct ct_result_info *info = r->info;

	/* if the source has only codes, the facts have the position */
	item_put_text(w, TAG_PATIENT_POSITION, r->series.s->facts.patient_position);
	item_put_int(w, TAG_IMAGES_IN_ACQUISITION, info->grid->n[2]);
	fill_values(r, w);
	if (info->diameter > 0)
		item_put_double(w, TAG_RECONSTRUCTION_DIAMETER, info->diameter);
	if (algorithm_info(info->algorithm)->filtered && !r->series.s->place.outside)
		item_put_text(w, TAG_CONVOLUTION_KERNEL, info->filter);
}

/* ---- provenance ---- */

/* Describe the derivation. VR ST: at most 1024 characters. */
static void describe_derivation(const struct ct_result *r, char *ret_text, size_t size)
{
	const struct ct_result_info *info = r->info;
	const struct sinogram *s = r->series.s;
	const struct grid *g = info->grid;
	char how[96] = "", patient[900], outside[PROVENANCE_OUTSIDE_SIZE];
	size_t n;

	provenance_patient_text(s->patient, patient, sizeof(patient));
	provenance_place_text(&s->place, patient + strlen(patient), sizeof(patient) - strlen(patient));
	if (algorithm_iterates(info->algorithm))
		snprintf(how, sizeof(how), " with %d iteration%s of %d subset%s", info->iterations, plural(info->iterations),
			 info->subsets, plural(info->subsets));
	else if (algorithm_info(info->algorithm)->filtered)
		snprintf(how, sizeof(how), ", filter %s", info->filter);
	n = (size_t)snprintf(ret_text, size,
			     "Reconstruction of %s in %zu sinogram object%s (%d angles%s%s), protocol %.63s: %s%s, %d x "
			     "%d x %d voxels of %.6g x %.6g x %.6g mm, unit %s, device %.95s.",
			     kind_of(info->protocol->kind)->title, s->n_files, plural(s->n_files), info->n_angles,
			     info->axis[0] ? ", " : "", info->axis, info->protocol->name, algorithm_info(info->algorithm)->name,
			     how, g->n[0], g->n[1], g->n[2], g->h[0], g->h[1], g->h[2], r->unit, info->device);
	provenance_outside_text(&s->place, outside);
	if (outside[0])
		n = (size_t)snprintf(
			ret_text, size,
			"%sOf %zu sinogram object%s (%d angles); %d x %d x %d voxels of %.6g x %.6g x %.6g mm, unit %s.", outside,
			s->n_files, plural(s->n_files), info->n_angles, g->n[0], g->n[1], g->n[2], g->h[0], g->h[1], g->h[2],
			r->unit);
	if (n < size)
		snprintf(ret_text + n, size - n, "%s%.400s%s Research use only.", r->warnings[0] ? " " : "", r->warnings,
			 patient);
}

static void fill_provenance(const struct ct_result *r, struct item_writer *root)
{
	struct algorithm_terms terms = algorithm_terms(&r->series.s->place, r->info->algorithm);
	char text[1025];

	describe_derivation(r, text, sizeof(text));
	item_put_text(root, TAG_DERIVATION_DESCRIPTION, text);
	if (terms.code && strcmp(terms.type, "BACK_PROJ") != 0) /* there is no code for unfiltered backprojection */
		item_put_code(root, TAG_DERIVATION_CODE_SEQUENCE, terms.code, "DCM", terms.meaning);
	snprintf(text, sizeof(text), "units=%s", r->unit);
	result_series_fill_recipe(&r->series, text, r->unit, root);
}

void ct_result_fill_header(const struct ct_result *r, struct item_writer *root)
{
	result_series_fill_header(&r->series, r->is_signed, root);
	fill_image(r, root);
	fill_provenance(r, root);
}
