/* SPDX-License-Identifier: Apache-2.0 */
/* exam_view_code.c - read the view of a mammogram from old and new codes. Views: PS3.16 CID 4014 in SNOMED RT (SRT,
 * and SNM3 in older objects) and SNOMED CT (SCT); XCC has no code there any more. If there is no code, the DX attribute View
 * Position (0018,5101) is used, because its values are the same abbreviations. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/tomo/exam_internal.h"

/* Tilt: PS3.16 names the views by the way of the beam, from the tube to the detector. */
static const struct exam_view_kind views[] = {
	{"CC", "R-10242", "399162004", "cranio-caudal", 0, 0, 20, NULL, NULL},
	{"MLO", "R-10226", "399368009", "medio-lateral oblique", 45, 20, 80, NULL, NULL},
	{"ML", "R-10224", "399260004", "medio-lateral", 90, 80, 100, NULL, NULL},
	{"LM", "R-10228", "399352003", "latero-medial", -90, 80, 100, NULL, NULL},
	{"LMO", "R-10230", "399099002", "latero-medial oblique", -135, 100, 160, NULL, NULL},
	{"SIO", "R-102D0", "399188001", "superolateral to inferomedial oblique", -45, 20, 80, NULL, NULL},
	{"ISO", "R-40AAA", "441555000", "inferomedial to superolateral oblique", 135, 100, 160, NULL, NULL},
	{"FB", "R-10244", "399196006", "caudo-cranial", 180, 160, 180, NULL, NULL},
	{"XCC", "R-102CF", NULL, "cranio-caudal exaggerated", 0, 0, 20, NULL, NULL},
	{"XCCL", "R-1024A", "399192008", "cranio-caudal exaggerated laterally", 0, 0, 20, NULL, NULL},
	{"XCCM", "R-1024B", "399101009", "cranio-caudal exaggerated medially", 0, 0, 20, NULL, NULL},
	/* a view and a modifier (CID 4015) in one abbreviation */
	{"AT", NULL, "399368009", "medio-lateral oblique", 45, 20, 80, "399011000", "axillary tail"},
	{"CV", NULL, "399162004", "cranio-caudal", 0, 0, 20, "399161006", "cleavage"},
	{"RL", NULL, "399162004", "cranio-caudal", 0, 0, 20, "399197002", "rolled lateral"},
	{"RM", NULL, "399162004", "cranio-caudal", 0, 0, 20, "399226006", "rolled medial"},
};
#define N_VIEWS (sizeof(views) / sizeof(views[0]))

const struct exam_view_kind *exam_view_kind(const char *name)
{
	for (size_t i = 0; i < N_VIEWS; i++)
		if (!strcasecmp(name, views[i].name))
			return &views[i];
	return NULL;
}

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

/* Return the name of the view that an item's code says; NULL: there is no code, or it is not known. ret_value: its value. */
static const char *coded_view(const struct header *h, size_t item, char *ret_value, size_t size)
{
	const struct dicom_item *code = dicom_item_at(h->root, TAG_VIEW_CODE_SEQUENCE, item);
	bool ct;

	ret_value[0] = '\0';
	if (!code)
		return NULL;
	read_code(code, ret_value, size, &ct);
	for (size_t i = 0; i < N_VIEWS; i++) {
		const char *known = ct ? views[i].sct : views[i].srt;

		if (!views[i].modifier && known && !strcmp(ret_value, known))
			return views[i].name;
	}
	return NULL;
}

void header_view(const struct header *h, char *ret_view, size_t size)
{
	char value[64];
	const char *name = coded_view(h, 0, value, sizeof(value));

	if (!name && !dicom_item_at(h->root, TAG_VIEW_CODE_SEQUENCE, 0))
		header_text(h, TAG_VIEW_POSITION, value, sizeof(value), NULL);
	put_word(name ? name : value, ret_view, size);
}

/* Return whether the view has a modifier of CID 4015 with one of these codes. */
static bool is_modified(const struct header *h, const char *srt, const char *sct)
{
	const struct dicom_item *code = dicom_item_at(h->root, TAG_VIEW_CODE_SEQUENCE, 0);
	size_t n = code ? dicom_item_count(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE) : 0;
	char value[64];
	bool ct;

	for (size_t i = 0; i < n; i++) {
		read_code(dicom_item_at(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE, i), value, sizeof(value), &ct);
		if (!strcmp(value, ct ? sct : srt))
			return true;
	}
	return false;
}

bool header_magnified(const struct header *h)
{
	return is_modified(h, "R-102D6", "399163009");
}

void exam_unshaped(const struct exam *exam, char *ret_text, size_t size)
{
	struct header h = exam_header(exam, 0);
	char implant[17] = "";

	ret_text[0] = '\0';
	if (header_text(&h, TAG_BREAST_IMPLANT_PRESENT, implant, sizeof(implant), NULL) > 0 && !strcmp(implant, "YES"))
		snprintf(ret_text, size, "Breast Implant Present %s is YES", tag_text(TAG_BREAST_IMPLANT_PRESENT));
	else if (is_modified(&h, "R-102D7", "399055006"))
		snprintf(ret_text, size, "the view has the modifier spot compression");
}

int header_check_view(const struct header *h, struct err *err)
{
	char value[64], position[64];
	const char *name = coded_view(h, 0, value, sizeof(value)), *second;
	const struct exam_view_kind *other;

	for (size_t i = 1; name && i < dicom_item_count(h->root, TAG_VIEW_CODE_SEQUENCE); i++) {
		second = coded_view(h, i, value, sizeof(value));
		if (second && strcmp(name, second) != 0)
			return err_set(err, EBADMSG, "View Code Sequence (0054,0220) names two views, %s and %s", name, second);
	}
	if (!name || header_text(h, TAG_VIEW_POSITION, position, sizeof(position), NULL) <= 0)
		return 0;
	other = exam_view_kind(position);
	if (other && !other->modifier && strcmp(other->name, name) != 0)
		return err_set(err, EBADMSG, "the view is %s by View Code Sequence (0054,0220) and %s by View Position %s", name,
			       other->name, tag_text(TAG_VIEW_POSITION));
	return 0;
}
