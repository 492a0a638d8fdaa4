/* SPDX-License-Identifier: Apache-2.0 */
/* exam_side.c - read the side of the breast, and compare what the attributes say about it. A wrong side is the worst error of
 * mammography: two attributes that contradict each other are refused. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/tomo/exam_internal.h"

/* The first one that an object has counts. */
static const struct {
	uint32_t tag;
	const char *name;
} lateralities[] = {
	{TAG_IMAGE_LATERALITY, "Image Laterality"}, {TAG_FRAME_LATERALITY, "Frame Laterality"}, {TAG_LATERALITY, "Laterality"}};
#define N_LATERALITIES (sizeof(lateralities) / sizeof(lateralities[0]))

/* Codes of a side: modifiers of the region (PS3.16 CID 244) and breasts (CID 4013), in SRT and SCT. */
static const struct {
	const char *code;
	char side;
} side_codes[] = {{"G-A100", 'R'},  {"24028007", 'R'}, {"G-A101", 'L'},	 {"7771000", 'L'},
		  {"T-04020", 'R'}, {"73056007", 'R'}, {"T-04030", 'L'}, {"80248007", 'L'}};

/* Return the letter of one of the attributes; 0: it is missing or empty. */
static char laterality_of(const struct header *h, uint32_t tag)
{
	char text[20];

	if (header_text(h, tag, text, sizeof(text), NULL) == 0 || !text[0])
		return 0;
	return isalpha((unsigned char)text[0]) && !strchr(text, '\\') ? (char)toupper((unsigned char)text[0])
								      : '?'; /* several values: none of them */
}

char header_laterality(const struct header *h)
{
	for (size_t i = 0; i < N_LATERALITIES; i++)
		if (laterality_of(h, lateralities[i].tag))
			return laterality_of(h, lateralities[i].tag);
	return 0;
}

/* Return the side that a value of Image Type behind the second names; 0: none does. */
static char side_of_type(const struct header *h)
{
	char word[65];

	for (unsigned i = 2; dicom_get_text_at(h->root, TAG_IMAGE_TYPE, i, word, sizeof(word), NULL) == 1; i++)
		if (!strcasecmp(word, "LEFT") || !strcasecmp(word, "RIGHT") || /* or RCC, LMLO ... */
		    (strchr("LR", toupper((unsigned char)word[0])) && word[0] && exam_view_kind(word + 1)))
			return (char)toupper((unsigned char)word[0]);
	return 0;
}

static char side_of_code(const struct dicom_item *code)
{
	char value[20] = "";

	if (code)
		dicom_get_text(code, TAG_CODE_VALUE, value, sizeof(value), NULL);
	for (size_t i = 0; i < sizeof(side_codes) / sizeof(side_codes[0]); i++)
		if (!strcmp(value, side_codes[i].code))
			return side_codes[i].side;
	return 0;
}

/* Return the side that the anatomic region or its modifier names; 0: none, or both. */
static char side_of_region(const struct header *h)
{
	const struct dicom_item *in = header_find(h, TAG_ANATOMIC_REGION_SEQUENCE);
	const struct dicom_item *region = in ? dicom_item_at(in, TAG_ANATOMIC_REGION_SEQUENCE, 0) : NULL;
	char side = side_of_code(region);

	return !side && region ? side_of_code(dicom_item_at(region, TAG_ANATOMIC_REGION_MODIFIER_SEQUENCE, 0)) : side;
}

/* Compare a side with the one that was found before. first, by: set by the first attribute that names one. */
static int compare_side(char side, const char *name, uint32_t tag, char *first, char by[64], struct err *err)
{
	if (side != 'L' && side != 'R')
		return 0;
	if (*first && *first != side)
		return err_set(err, EBADMSG, "the breast is '%c' by %s and '%c' by %s %s", *first, by, side, name, tag_text(tag));
	if (!*first)
		snprintf(by, 64, "%s %s", name, tag_text(tag));
	*first = side;
	return 0;
}

int header_check_side(const struct header *h, struct err *err)
{
	char first = 0, by[64];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < N_LATERALITIES; i++)
		rc = compare_side(laterality_of(h, lateralities[i].tag), lateralities[i].name, lateralities[i].tag, &first, by,
				  err);
	if (rc == 0)
		rc = compare_side(side_of_type(h), "Image Type", TAG_IMAGE_TYPE, &first, by, err);
	if (rc == 0)
		rc = compare_side(side_of_region(h), "Anatomic Region Sequence", TAG_ANATOMIC_REGION_SEQUENCE, &first, by, err);
	return rc < 0 ? rc : header_check_view(h, err);
}
