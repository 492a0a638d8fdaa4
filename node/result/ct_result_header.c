/* SPDX-License-Identifier: Apache-2.0 */
/* ct_result_header.c - write the header of a CT Image (PS3.3 A.3): series, plane, values, sources and the
 * recipe.
 *
 * - The images are derived from raw data: Image Type is DERIVED; Source Instance Sequence and Common Instance Reference name
 * every source.
 * - The recipe is stored in the Contribution Description (0018,A003) of the processing equipment: sha256=HEX units=UNIT
 * device="..." protocol="name: key=value ..." beams="...". The digest is that of program version, device, protocol, beams and
 * unit in full, joined by newlines.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/base/version.h"
#include "node/config/kind.h"
#include "node/result/algorithm_terms.h"
#include "node/result/ct_result_internal.h"

#define PROGRAM "tomonode " TOMONODE_VERSION

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

/* ---- series and image ---- */

static void fill_series(const struct ct_result *r, struct item_writer *w)
{
	const struct slice_series series = {r->source, r->info->protocol, "CT", "CT", r->series};

	result_slices_fill_series(&series, w);
	/* if the source has only codes, the facts have the position */
	item_put_text(w, TAG_PATIENT_POSITION, r->s->facts.patient_position);
}

static void fill_values(const struct ct_result *r, struct item_writer *w)
{
	item_put_double(w, TAG_RESCALE_INTERCEPT, 0);
	item_put_double(w, TAG_RESCALE_SLOPE, r->slope);
	item_put_text(w, TAG_RESCALE_TYPE, r->hounsfield ? "HU" : "US");
	if (r->hounsfield) { /* a usual window for soft tissue */
		item_put_double(w, TAG_WINDOW_CENTER, 40);
		item_put_double(w, TAG_WINDOW_WIDTH, 400);
	} else {
		result_slices_fill_window(r->lo, r->hi, w);
	}
}

static void fill_image(const struct ct_result *r, struct item_writer *w)
{
	const struct ct_result_info *info = r->info;
	const struct grid *g = info->grid;

	result_slices_fill_image("DERIVED\\PRIMARY\\AXIAL", &r->now, w);
	result_slices_fill_plane(&r->view, g, r->is_signed, w);
	item_put_int(w, TAG_IMAGES_IN_ACQUISITION, g->n[2]);
	fill_values(r, w);
	if (info->diameter > 0)
		item_put_double(w, TAG_RECONSTRUCTION_DIAMETER, info->diameter);
	if (algorithm_info(info->algorithm)->filtered)
		item_put_text(w, TAG_CONVOLUTION_KERNEL, info->filter);
}

/* ---- provenance ---- */

static void describe_recipe(const struct ct_result *r, char *ret_text, size_t size)
{
	char all[2400], digest[65];
	int n = snprintf(all, sizeof(all), "%s\n%s\n%s\n%s\n%s", PROGRAM, r->info->device, r->protocol, r->info->scan, r->unit);

	dicom_sha256(all, (size_t)n < sizeof(all) ? (size_t)n : sizeof(all) - 1, digest);
	n = snprintf(ret_text, size, "sha256=%s units=%s device=\"%s\" protocol=\"%s: %s\" beams=\"%s\"", digest, r->unit,
		     r->info->device, r->info->protocol->name, r->protocol, r->info->scan);
	if ((size_t)n >= size)
		memcpy(ret_text + size - 4, "...", 4);
}

/* Describe the derivation. VR ST: at most 1024 characters. */
static void describe_derivation(const struct ct_result *r, char *ret_text, size_t size)
{
	const struct ct_result_info *info = r->info;
	const struct grid *g = info->grid;
	char how[96] = "";
	size_t n;

	if (algorithm_iterates(info->algorithm))
		snprintf(how, sizeof(how), " with %d iteration%s of %d subset%s", info->iterations, plural(info->iterations),
			 info->subsets, plural(info->subsets));
	else if (algorithm_info(info->algorithm)->filtered)
		snprintf(how, sizeof(how), ", filter %s", info->filter);
	n = (size_t)snprintf(ret_text, size,
			     "Reconstruction of %s in %zu sinogram object%s (%d angles), protocol %.63s: %s%s, %d x "
			     "%d x %d voxels of %.6g x %.6g x %.6g mm, unit %s, device %.95s.",
			     kind_of(info->protocol->kind)->title, r->s->n_files, plural(r->s->n_files), info->n_angles,
			     info->protocol->name, algorithm_info(info->algorithm)->name, how, g->n[0], g->n[1], g->n[2], g->h[0],
			     g->h[1], g->h[2], r->unit, info->device);
	if (n < size)
		snprintf(ret_text + n, size - n, "%s%.300s Research use only.", r->warnings[0] ? " " : "", r->warnings);
}

static void fill_sources(const struct ct_result *r, struct item_writer *root)
{
	enum algorithm a = r->info->algorithm;
	char text[1025];

	provenance_fill_references(r->s->files, r->s->n_files, root);
	describe_derivation(r, text, sizeof(text));
	item_put_text(root, TAG_DERIVATION_DESCRIPTION, text);
	if (algorithm_iterates(a) || algorithm_info(a)->filtered) /* there is no code for unfiltered backprojection */
		item_put_code(root, TAG_DERIVATION_CODE_SEQUENCE, algorithm_terms(a).code, "DCM", algorithm_terms(a).meaning);
	describe_recipe(r, text, sizeof(text));
	provenance_fill_contributing_equipment(r->source, &r->now, text, root);
}

void ct_result_fill_header(const struct ct_result *r, struct item_writer *root)
{
	provenance_fill_patient(r->source, root);
	item_copy_all(root, r->source, copied, sizeof(copied) / sizeof(copied[0]));
	for (size_t i = 0; i < sizeof(copied_or_empty) / sizeof(copied_or_empty[0]); i++) {
		item_put_empty(root, copied_or_empty[i]);
		item_copy(root, copied_or_empty[i], r->source);
	}
	fill_series(r, root);
	provenance_fill_equipment(root);
	fill_image(r, root);
	fill_sources(r, root);
}

void ct_result_fill_slice(const struct ct_result *r, int index, struct item_writer *root)
{
	const struct grid *g = r->info->grid;
	char uid[DICOM_UID_SIZE];
	double position[3];

	slice_view_position(&r->view, r->s->centre, r->s->axis, g, index, position);
	ct_result_uid(r->s, r->info->protocol, slice_view_slice(&r->view, g, index), uid);
	item_put_text(root, TAG_SOP_INSTANCE_UID, uid);
	item_put_int(root, TAG_INSTANCE_NUMBER, index + 1);
	result_slices_fill_place(&r->view, position, root);
}
