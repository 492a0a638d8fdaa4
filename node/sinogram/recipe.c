/* SPDX-License-Identifier: Apache-2.0 */
#include "node/sinogram/recipe.h"

#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"

const struct dicom_item *recipe_read(const struct dicom_item *root, char ret_recipe[RECIPE_SIZE])
{
	size_t n = dicom_item_count(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	char maker[64];

	for (size_t i = 0; i < n && i < 16; i++) {
		const struct dicom_item *item = dicom_item_at(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, i);

		if (dicom_get_text(item, TAG_MANUFACTURER, maker, sizeof(maker), NULL) == 1 && !strcmp(maker, "tomonode") &&
		    dicom_get_utf8(item, TAG_CONTRIBUTION_DESCRIPTION, ret_recipe, RECIPE_SIZE, NULL) == 1 &&
		    !strncmp(ret_recipe, "sha256=", 7))
			return item;
	}
	ret_recipe[0] = '\0';
	return NULL;
}

enum recipe_found recipe_part(const char *recipe, const char *kind, char ret_name[RECIPE_SIZE], char ret_pairs[RECIPE_SIZE])
{
	static const char *const parts[] = {" device=\"", " protocol=\"", " profile=\"", " scanner=\"", " beams=\""};
	char start[32];
	const char *at, *end, *colon;
	bool whole;

	snprintf(start, sizeof(start), " %s=\"", kind);
	at = strstr(recipe, start);
	if (!at)
		return RECIPE_NONE;
	at += strlen(start);
	end = at + strlen(at);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *next = strstr(at, parts[i]);

		end = next && next < end ? next : end;
	}
	whole = end > at && end[-1] == '"';
	end -= whole;
	colon = strstr(at, ": ");
	ret_name[0] = '\0';
	if (colon && colon < end && !memchr(at, '=', (size_t)(colon - at))) {
		snprintf(ret_name, RECIPE_SIZE, "%.*s", (int)(colon - at), at);
		at = colon + 2;
	}
	snprintf(ret_pairs, RECIPE_SIZE, "%.*s", (int)(end - at), at);
	return whole ? RECIPE_WHOLE : RECIPE_CUT;
}
