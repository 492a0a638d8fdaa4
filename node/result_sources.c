/* result_sources.c - where the result comes from: every source image, the two machines, the whole recipe.
 *
 * The private block TOMONODE RESULT 1 (group 0071) keeps the recipe without the length limits of the standard's texts:
 *   xx01 UT protocol, every key          xx02 UT geometry profile, every key       xx03 LO device
 *   xx04 LO program, version, revision   xx05 LO SHA-256 of the four texts, joined by newlines
 *   xx06 DS attenuation of one stored step, 1/mm     xx07 IS voxels clipped at the top of the range
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/result_parts.h"
#include "node/version.h"

#define PRIVATE_GROUP 0x0071
#define PRIVATE_CREATOR "TOMONODE RESULT 1"

static void fill_private(uint8_t element, const char *vr, const char *text, struct fill *f)
{
	if (f->rc >= 0)
		f->rc = dicom_put_private(f->item, PRIVATE_GROUP, PRIVATE_CREATOR, element, vr, text, f->err);
}

static void fill_recipe(const struct result *r, struct fill *root)
{
	static const char program[] = "tomonode " TOMONODE_VERSION " (" TOMONODE_REVISION ")";
	char all[2400], digest[65], number[32];
	int n;

	n = snprintf(all, sizeof(all), "%s\n%s\n%s\n%s", r->protocol, r->profile, r->info->device, program);
	dicom_sha256(all, (size_t)n < sizeof(all) ? (size_t)n : sizeof(all) - 1, digest);
	fill_private(0x01, "UT", r->protocol, root);
	fill_private(0x02, "UT", r->profile, root);
	fill_private(0x03, "LO", r->info->device, root);
	fill_private(0x04, "LO", program, root);
	fill_private(0x05, "LO", digest, root);
	snprintf(number, sizeof(number), "%g", RESULT_SCALE);
	fill_private(0x06, "DS", number, root);
	snprintf(number, sizeof(number), "%zu", r->summary.clipped);
	fill_private(0x07, "IS", number, root);
}

void result_fill_source_images(const struct result *r, struct fill *f, uint32_t sequence, bool purpose)
{
	const struct exam *e = r->exam;
	char sop_class[DICOM_UID_SIZE] = "";

	/* Sorted by angle; the views of a multi-frame object are one image. */
	for (int i = 0; i < (e->source == EXAM_BREAST_PROJECTION ? 1 : e->n_views) && f->rc >= 0; i++) {
		struct fill item = fill_item(f, sequence);

		if (item.rc >= 0)
			item.rc = dicom_get_text(dicom_root(e->files[e->views[i].file]), TAG_SOP_CLASS_UID, sop_class,
						 sizeof(sop_class), f->err);
		fill_text(&item, TAG_REFERENCED_SOP_CLASS_UID, sop_class);
		fill_text(&item, TAG_REFERENCED_SOP_INSTANCE_UID, e->views[i].sop_instance);
		if (purpose)
			fill_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "121322", "DCM",
				  "Source image for image processing operation");
		fill_join(f, &item);
	}
}

/* Common Instance Reference: all sources lie in one series. */
static void fill_series_reference(const struct result *r, struct fill *root)
{
	struct fill item = fill_item(root, TAG_REFERENCED_SERIES_SEQUENCE);

	fill_copy(&item, TAG_SERIES_INSTANCE_UID, r->source);
	result_fill_source_images(r, &item, TAG_REFERENCED_INSTANCE_SEQUENCE, false);
	fill_join(root, &item);
}

static void fill_reconstruction(const struct result *r, struct fill *root)
{
	struct fill item = fill_item(root, TAG_X_RAY_3D_RECONSTRUCTION_SEQUENCE);
	char algorithm[1025];

	fill_text(&item, TAG_RECONSTRUCTION_DESCRIPTION, r->derivation);
	fill_text(&item, TAG_APPLICATION_NAME, "tomonode");
	fill_text(&item, TAG_APPLICATION_VERSION, TOMONODE_VERSION);
	fill_text(&item, TAG_APPLICATION_MANUFACTURER, "tomonode");
	fill_text(&item, TAG_ALGORITHM_TYPE, "ITERATIVE");
	snprintf(algorithm, sizeof(algorithm), "%.850s; %d subsets of %d projections, device %.96s", r->protocol,
		 r->info->plan->subsets, r->info->plan->n_views, r->info->device);
	fill_text(&item, TAG_ALGORITHM_DESCRIPTION, algorithm);
	fill_int(&item, TAG_ACQUISITION_INDEX, 1);
	fill_join(root, &item);
}

static void fill_machines(const struct result *r, struct fill *root)
{
	static const uint32_t modality[] = {
		TAG_INSTITUTION_NAME,
		TAG_INSTITUTION_ADDRESS,
		TAG_STATION_NAME,
		TAG_INSTITUTIONAL_DEPARTMENT_NAME,
		TAG_MANUFACTURER_MODEL_NAME,
		TAG_DEVICE_SERIAL_NUMBER,
		TAG_SOFTWARE_VERSIONS,
		DICOM_TAG(0x0018, 0x1200), /* last calibration */
		DICOM_TAG(0x0018, 0x1201),
	};
	struct fill item = fill_item(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	char recipe[1025];

	fill_empty(&item, TAG_MANUFACTURER);
	fill_copy(&item, TAG_MANUFACTURER, r->source);
	fill_copies(&item, r->source, modality, sizeof(modality) / sizeof(modality[0]));
	fill_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "109101", "DCM", "Acquisition Equipment");
	fill_join(root, &item);

	item = fill_item(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	fill_text(&item, TAG_MANUFACTURER, "tomonode");
	fill_text(&item, TAG_MANUFACTURER_MODEL_NAME, "tomonode");
	fill_text(&item, TAG_SOFTWARE_VERSIONS, TOMONODE_VERSION "\\" TOMONODE_REVISION);
	fill_text(&item, TAG_CONTRIBUTION_DATE_TIME, r->date_time);
	snprintf(recipe, sizeof(recipe), "Tomosynthesis reconstruction: %.480s; geometry %.500s", r->protocol, r->profile);
	fill_text(&item, TAG_CONTRIBUTION_DESCRIPTION, recipe);
	fill_code(&item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, "109102", "DCM", "Processing Equipment");
	fill_join(root, &item);
}

void result_fill_sources(const struct result *r, struct fill *root)
{
	fill_series_reference(r, root);
	fill_reconstruction(r, root);
	fill_machines(r, root);
	fill_recipe(r, root);
}
