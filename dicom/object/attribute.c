/* SPDX-License-Identifier: Apache-2.0 */
/* attribute.c - find an attribute in the root of an object, or in the functional groups of an enhanced (multi-frame) object.
 *
 * The most specific place has priority: a value in a frame's groups is that of this frame, a value in the root of an enhanced
 * object is that of the whole acquisition (Exposure in mAs, for example, is the sum there).
 *
 * The groups are those of Breast Projection X-Ray (PS3.3 A.74.4) that may contain a value of geometry, intensity or time. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"

static const uint32_t groups[] = {
	TAG_FRAME_CONTENT_SEQUENCE,
	TAG_FRAME_PIXEL_DATA_PROPERTIES_SEQUENCE,
	TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE,
	TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE,
	TAG_POSITIONER_POSITION_SEQUENCE,
	TAG_X_RAY_GEOMETRY_SEQUENCE,
	TAG_FRAME_ANATOMY_SEQUENCE,
	TAG_PATIENT_ORIENTATION_IN_FRAME_SEQUENCE,
	TAG_FRAME_ACQUISITION_SEQUENCE,
	TAG_FRAME_DETECTOR_PARAMETERS_SEQUENCE,
	TAG_X_RAY_ACQUISITION_DOSE_SEQUENCE,
	TAG_DETECTOR_POSITION_SEQUENCE,
	TAG_FIELD_OF_VIEW_SEQUENCE,
	TAG_CALIBRATION_SEQUENCE,
	TAG_X_RAY_FILTER_SEQUENCE,
	TAG_IRRADIATION_EVENT_IDENTIFICATION_SEQUENCE,
};

const char *tag_text(uint32_t tag)
{
	static _Thread_local char ring[4][12];
	static _Thread_local unsigned next;
	char *text = ring[next++ % 4];

	snprintf(text, sizeof(ring[0]), "(%04X,%04X)", (unsigned)(tag >> 16), (unsigned)(tag & 0xFFFF));
	return text;
}

/* Does the item have a value of the tag? A sequence has a value if it has an item. */
static bool has_value(const struct dicom_item *item, uint32_t tag)
{
	char text[2];

	if (!item || !dicom_has(item, tag))
		return false;
	/* dicom_get_text() returns 0 for an empty element; an error (too long, not text) means that there is a value. */
	return dicom_item_count(item, tag) > 0 || dicom_get_text(item, tag, text, sizeof(text), NULL) != 0;
}

static const struct dicom_item *find_in_groups(const struct dicom_item *frame, uint32_t tag)
{
	for (size_t i = 0; frame && i < sizeof(groups) / sizeof(groups[0]); i++) {
		const struct dicom_item *group = dicom_item_at(frame, groups[i], 0);

		if (has_value(group, tag))
			return group;
	}
	return NULL;
}

const struct dicom_item *header_find(const struct header *h, uint32_t tag)
{
	const struct dicom_item *found = NULL;

	if (h->frame >= 0) {
		found = find_in_groups(dicom_item_at(h->root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE, (size_t)h->frame), tag);
		if (!found)
			found = find_in_groups(dicom_item_at(h->root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE, 0), tag);
	}
	return !found && has_value(h->root, tag) ? h->root : found;
}

int header_text(const struct header *h, uint32_t tag, char *ret_text, size_t size, struct err *err)
{
	const struct dicom_item *item = header_find(h, tag);

	ret_text[0] = '\0';
	return item ? dicom_get_text(item, tag, ret_text, size, err) : 0;
}

int header_double(const struct header *h, uint32_t tag, unsigned index, double *ret_value, struct err *err)
{
	const struct dicom_item *item = header_find(h, tag);

	return item ? dicom_get_double(item, tag, index, ret_value, err) : 0;
}

int header_long(const struct header *h, uint32_t tag, unsigned index, long *ret_value, struct err *err)
{
	const struct dicom_item *item = header_find(h, tag);

	return item ? dicom_get_int(item, tag, index, ret_value, err) : 0;
}

int attribute_numbers(const struct dicom_item *root, uint32_t tag, double *ret, unsigned n, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = dicom_get_double(root, tag, i, &ret[i], err);

		if (rc < 0)
			return rc;
		if (rc == 0 || !isfinite(ret[i]))
			return err_set(err, EBADMSG, "no %s", tag_text(tag));
	}
	return 0;
}

unsigned private_block(const struct dicom_item *item, uint16_t group, const char *creator)
{
	char text[65];

	for (unsigned block = 0x10; block <= 0xff; block++)
		if (dicom_get_text(item, DICOM_TAG(group, block), text, sizeof(text), NULL) == 1 && !strcmp(text, creator))
			return block;
	return 0;
}
