/* SPDX-License-Identifier: Apache-2.0 */
/* exam_view_code.c - read laterality and view of a mammogram from old and new codes. Views: PS3.16 CID 4014 in SNOMED RT (SRT,
 * and SNM3 in older objects) and SNOMED CT (SCT). If there is no code, the DX attribute View Position (0018,5101) is used,
 * because its values are the same abbreviations. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/tomo/exam_internal.h"

struct view_code {
	const char *srt, *sct, *name;
};

static const struct view_code views[] = {
	{"R-10242", "399162004", "CC"},	  {"R-10226", "399368009", "MLO"},   {"R-10224", "399260004", "ML"},
	{"R-10228", "399352003", "LM"},	  {"R-10230", "399099002", "LMO"},   {"R-10244", "399196006", "FB"},
	{"R-102D0", "399188001", "SIO"},  {"R-40AAA", "441555000", "ISO"},   {"R-1024A", "399192008", "XCCL"},
	{"R-1024B", "399101009", "XCCM"}, {"G-8310", "127457009", "SPECIM"},
};

/* Read the code value of an item and whether its scheme is SNOMED CT or the older SNOMED RT. */
static void read_code(const struct dicom_item *item, char *ret_value, size_t size, bool *ret_ct)
{
	char scheme[32] = "";

	ret_value[0] = '\0';
	dicom_get_text(item, TAG_CODE_VALUE, ret_value, size, NULL);
	dicom_get_text(item, TAG_CODING_SCHEME_DESIGNATOR, scheme, sizeof(scheme), NULL);
	*ret_ct = !strcmp(scheme, "SCT");
}

/* Copy only letters, digits and '-' of an untrusted word, because it becomes part of a case's key and name. */
static void put_word(const char *value, char *ret_word, size_t size)
{
	size_t n = 0;

	for (; *value && n + 1 < size; value++)
		ret_word[n++] = isalnum((unsigned char)*value) || *value == '-' ? *value : '?';
	ret_word[n] = '\0';
}

/* Return the name of the view that the code says; NULL: there is no code, or it is not known. ret_value: its value. */
static const char *coded_view(const struct header *h, char *ret_value, size_t size)
{
	const struct dicom_item *code = dicom_item_at(h->root, TAG_VIEW_CODE_SEQUENCE, 0);
	bool ct;

	ret_value[0] = '\0';
	if (!code)
		return NULL;
	read_code(code, ret_value, size, &ct);
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		if (!strcmp(ret_value, ct ? views[i].sct : views[i].srt))
			return views[i].name;
	return NULL;
}

void header_view(const struct header *h, char *ret_view, size_t size)
{
	char value[64];
	const char *name = coded_view(h, value, sizeof(value));

	if (!name && !dicom_item_at(h->root, TAG_VIEW_CODE_SEQUENCE, 0))
		header_text(h, TAG_VIEW_POSITION, value, sizeof(value), NULL);
	put_word(name ? name : value, ret_view, size);
}

bool header_magnified(const struct header *h)
{
	const struct dicom_item *code = dicom_item_at(h->root, TAG_VIEW_CODE_SEQUENCE, 0);
	size_t n = code ? dicom_item_count(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE) : 0;
	char value[64];
	bool ct;

	for (size_t i = 0; i < n; i++) {
		read_code(dicom_item_at(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE, i), value, sizeof(value), &ct);
		if (!strcmp(value, ct ? "399163009" : "R-102D6")) /* CID 4015, magnification */
			return true;
	}
	return false;
}

/* The first one that an object has counts. */
static const struct {
	uint32_t tag;
	const char *name;
} lateralities[] = {
	{TAG_IMAGE_LATERALITY, "Image Laterality"}, {TAG_FRAME_LATERALITY, "Frame Laterality"}, {TAG_LATERALITY, "Laterality"}};
#define N_LATERALITIES (sizeof(lateralities) / sizeof(lateralities[0]))

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

static int check_view(const struct header *h, struct err *err)
{
	char value[64], position[64];
	const char *name = coded_view(h, value, sizeof(value));

	if (!name || header_text(h, TAG_VIEW_POSITION, position, sizeof(position), NULL) <= 0 || !strcasecmp(position, name))
		return 0;
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		if (!strcasecmp(position, views[i].name))
			return err_set(err, EBADMSG,
				       "the view is %s by View Code Sequence (0054,0220) and %s by View Position %s", name,
				       views[i].name, tag_text(TAG_VIEW_POSITION));
	return 0;
}

int header_check_side(const struct header *h, struct err *err)
{
	char first = 0, other;
	size_t of = 0;

	for (size_t i = 0; i < N_LATERALITIES; i++) {
		other = laterality_of(h, lateralities[i].tag);
		if ((first == 'L' && other == 'R') || (first == 'R' && other == 'L'))
			return err_set(err, EBADMSG, "the breast is '%c' by %s %s and '%c' by %s %s", first,
				       lateralities[of].name, tag_text(lateralities[of].tag), other, lateralities[i].name,
				       tag_text(lateralities[i].tag));
		of = first ? of : i;
		first = first ? first : other;
	}
	return check_view(h, err);
}
