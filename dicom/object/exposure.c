/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/object/exposure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"

static const char none[] = "none";

/* The attributes that tell exposures apart. */
static const struct attribute {
	uint32_t tag;
	int value; /* index of the value; -1: all of them */
	const char *name;
	enum { MAY_LACK = 1, NAMES_ONLY = 2 } flags; /* an image without it may be of any exposure; it proves nothing */
} attributes[EXPOSURE_ATTRIBUTES] = {
	{TAG_ACQUISITION_NUMBER, -1, "Acquisition Number", MAY_LACK},
	{TAG_IRRADIATION_EVENT_UID, -1, "Irradiation Event UID", MAY_LACK},
	{TAG_IMAGE_TYPE, 2, "Image Type, value 3", 0},
	{TAG_IMAGE_TYPE, 3, "Image Type, value 4", 0},
	{TAG_ANODE_TARGET_MATERIAL, -1, "Anode Target Material", MAY_LACK},
	{TAG_FILTER_MATERIAL, -1, "Filter Material", MAY_LACK},
	{TAG_ACQUISITION_TIME, -1, "Acquisition Time", NAMES_ONLY},
};

void exposure_read(const struct dicom_item *root, struct exposure_facts *ret_facts)
{
	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		const struct attribute *a = &attributes[k];
		char text[512], *from = text;

		if (dicom_get_text(root, a->tag, text, sizeof(text), NULL) != 1)
			text[0] = '\0';
		for (int i = 0; i < a->value && from; i++) {
			from = strchr(from, '\\');
			from = from ? from + 1 : NULL;
		}
		if (a->value >= 0 && from)
			from[strcspn(from, "\\")] = '\0';
		snprintf(ret_facts->value[k], DICOM_UID_SIZE, "%s", from ? from : "");
	}
}

static const char *value_of(const struct exposure_facts *image, int attribute)
{
	return image->value[attribute][0] ? image->value[attribute] : none;
}

static int by_size(const void *a, const void *b)
{
	const struct exposure *x = a, *y = b;

	return x->images != y->images ? y->images - x->images : strcmp(x->value, y->value);
}

/* Group the images by one attribute. False: there are more groups than EXPOSURES_MAX. ret_counted: the images of the groups. */
static bool group_images(const struct exposure_facts *images, size_t n, int attribute, bool with_none, struct exposures *ret,
			 int *ret_counted)
{
	struct exposures e = {.attribute = attribute};

	*ret_counted = 0;
	for (size_t i = 0; i < n; i++) {
		const char *value = value_of(&images[i], attribute);
		int k = 0;

		if (value == none && !with_none)
			continue;
		while (k < e.n && strcasecmp(e.list[k].value, value))
			k++;
		if (k == EXPOSURES_MAX)
			return false;
		if (k == e.n)
			snprintf(e.list[e.n++].value, DICOM_UID_SIZE, "%s", value);
		e.list[k].images++;
		++*ret_counted;
	}
	qsort(e.list, (size_t)e.n, sizeof(e.list[0]), by_size);
	*ret = e;
	return true;
}

bool exposures_prove(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures)
{
	struct exposures e;
	int counted;

	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		if (attributes[k].flags & NAMES_ONLY ||
		    !group_images(images, n, k, !(attributes[k].flags & MAY_LACK), &e, &counted) || e.n < 2 || e.n == counted)
			continue;
		*ret_exposures = e;
		return true;
	}
	return false;
}

bool exposures_find(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures)
{
	struct exposures e;
	int counted;

	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++)
		if (group_images(images, n, k, true, &e, &counted) && e.n >= 2) {
			*ret_exposures = e;
			return true;
		}
	return false;
}

bool exposure_has(const struct exposures *of, int group, const struct exposure_facts *image)
{
	return !strcasecmp(value_of(image, of->attribute), of->list[group].value);
}

const char *exposures_attribute(const struct exposures *of, uint32_t *ret_tag)
{
	*ret_tag = attributes[of->attribute].tag;
	return attributes[of->attribute].name;
}

void exposures_text(const struct exposures *of, char *ret_text, size_t size)
{
	const struct attribute *a = &attributes[of->attribute];
	size_t at = (size_t)snprintf(ret_text, size, "%s %s:", a->name, tag_text(a->tag));

	for (int i = 0; i < of->n && at < size; i++)
		at += (size_t)snprintf(ret_text + at, size - at, "%s %d %s %s", i ? "," : "", of->list[i].images,
				       of->list[i].images == 1 ? "has" : "have", of->list[i].value);
}

void exposures_refusal(const struct exposures *of, char *ret_text, size_t size)
{
	char text[400];

	exposures_text(of, text, sizeof(text));
	snprintf(ret_text, size,
		 "the projections are of more than one exposure: %s; give recon those of one, or choose it with retry --sweep",
		 text);
}
