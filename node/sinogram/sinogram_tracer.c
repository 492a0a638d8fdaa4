/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_tracer.c - write the tracer of a sinogram object, the item of Radiopharmaceutical Information Sequence (0054,0016):
 * that of the Interfile header, completed by `like`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/nuclides.h"
#include "node/sinogram/sinogram_internal.h"

struct item_writer sinogram_tracer_item(struct item_writer *root)
{
	struct dicom_item *item = dicom_item_at(root->item, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	struct item_writer f = {.item = item, .err = root->err, .rc = root->rc};

	return item ? f : item_begin(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);
}

void sinogram_put_nuclide(struct item_writer *f, const struct nuclide *nuclide, double half_life)
{
	if (dicom_item_count(f->item, TAG_RADIONUCLIDE_CODE) > 0)
		item_put_empty(f, TAG_RADIONUCLIDE_CODE); /* the copied code is that of another nuclide */
	item_put_code(f, TAG_RADIONUCLIDE_CODE, nuclide->code, nuclide->scheme, nuclide->meaning);
	item_put_double(f, TAG_RADIONUCLIDE_HALF_LIFE, half_life);
}

long sinogram_set_index(const struct sinogram_source *s, const char *keyword)
{
	char number[16] = "";
	size_t n = strlen(keyword);
	long found = -1;
	uint32_t tag;

	if (dicom_tag_named(keyword, &tag))
		snprintf(number, sizeof(number), "%04x,%04x=", (unsigned)(tag >> 16), (unsigned)(tag & 0xFFFF));
	for (size_t i = 0; i < s->conf->n_set; i++) {
		const char *set = s->conf->set[i];

		if ((!strncmp(set, keyword, n) && set[n] == '=') || (number[0] && !strncasecmp(set, number, strlen(number))))
			found = (long)i;
	}
	return found;
}

const char *sinogram_set_text(const struct sinogram_source *s, const char *keyword)
{
	long i = sinogram_set_index(s, keyword);

	return i < 0 ? NULL : strchr(s->conf->set[i], '=') + 1;
}

bool sinogram_is_set(const struct sinogram_source *s, const char *keyword)
{
	return sinogram_set_text(s, keyword) != NULL;
}

/* Return the half-life of an item, s, or that of the nuclide of its code; 0: neither is known. */
static double half_life_of(const struct dicom_item *item)
{
	const struct nuclide *nuclide;
	double half_life = 0;

	if (dicom_get_double(item, TAG_RADIONUCLIDE_HALF_LIFE, 0, &half_life, NULL) == 1 && half_life > 0)
		return half_life;
	nuclide = pet_facts_nuclide(item);
	return nuclide ? nuclide->half_life : 0;
}

void sinogram_drop_nuclide(const struct sinogram_source *s, double half_life, bool injected, struct item_writer *f)
{
	static const struct {
		uint32_t tag;
		const char *keyword;
		bool injected; /* says what was injected, and when; else what the nuclide is */
	} said[] = {{TAG_RADIONUCLIDE_CODE, "RadionuclideCodeSequence"},
		    {TAG_RADIONUCLIDE_POSITRON_FRACTION, "RadionuclidePositronFraction"},
		    {TAG_RADIOPHARMACEUTICAL, "Radiopharmaceutical"},
		    {TAG_RADIOPHARMACEUTICAL_CODE, "RadiopharmaceuticalCodeSequence"},
		    {TAG_RADIONUCLIDE_TOTAL_DOSE, "RadionuclideTotalDose", true},
		    {TAG_RADIOPHARMACEUTICAL_START_TIME, "RadiopharmaceuticalStartTime", true},
		    {TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, "RadiopharmaceuticalStartDateTime", true}};
	const struct nuclide *nuclide = f->item ? pet_facts_nuclide(f->item) : NULL;
	double known = nuclide ? nuclide->half_life : f->item ? half_life_of(f->item) : 0;

	if (!(known > 0) || nuclide_same_half_life(known, half_life))
		return;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (said[i].injected <= injected && !sinogram_is_set(s, said[i].keyword))
			item_put_empty(f, said[i].tag);
}

int sinogram_check_tracer(const struct sinogram_source *s, const struct interfile_tracer *t, struct err *err)
{
	const struct dicom_item *item = dicom_item_at(dicom_root(s->like), TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	double half_life = item ? half_life_of(item) : 0, dose = 0;

	if (half_life > 0 && t->half_life > 0 && !nuclide_same_half_life(half_life, t->half_life) &&
	    !sinogram_is_set(s, "Radionuclide") && !sinogram_is_set(s, "RadionuclideHalfLife"))
		return err_set(err, EBADMSG,
			       "the header's half-life is %g s, that of --like %g s: they are not of one radionuclide; set "
			       "Radionuclide or RadionuclideHalfLife",
			       t->half_life, half_life);
	if (item && dicom_get_double(item, TAG_RADIONUCLIDE_TOTAL_DOSE, 0, &dose, NULL) == 1 && dose > 0 && t->dose > 0 &&
	    !nuclide_same_half_life(dose, t->dose) && !sinogram_is_set(s, "RadionuclideTotalDose"))
		return err_set(err, EBADMSG,
			       "the header's dose is %.9g Bq (tracer activity at time of injection), that of --like %.9g Bq: "
			       "they are not of one injection, or one is wrong; set RadionuclideTotalDose",
			       t->dose, dose);
	return 0;
}

/* Write the half-life and the code that are missing. A code of --like that is not known, and a code beside a half-life of another
 * nuclide, stay as they are: `set` replaces them. */
static void complete_nuclide(const struct interfile_tracer *t, struct item_writer *f)
{
	double known = half_life_of(f->item), stated;
	bool coded = dicom_item_count(f->item, TAG_RADIONUCLIDE_CODE) > 0,
	     timed = dicom_get_double(f->item, TAG_RADIONUCLIDE_HALF_LIFE, 0, &stated, NULL) == 1 && stated > 0;

	if (!(t->half_life > 0) || (known > 0 && !nuclide_same_half_life(known, t->half_life)))
		return;
	if (t->nuclide && !coded)
		sinogram_put_nuclide(f, t->nuclide, timed ? stated : t->half_life);
	else if (!timed)
		item_put_double(f, TAG_RADIONUCLIDE_HALF_LIFE, t->half_life);
}

void sinogram_fill_tracer(const struct interfile_tracer *t, struct item_writer *root)
{
	const struct {
		uint32_t tag;
		double value;
	} numbers[] = {{TAG_RADIONUCLIDE_TOTAL_DOSE, t->dose},
		       {DICOM_TAG(0x0018, 0x1071), t->volume},
		       {TAG_RADIONUCLIDE_POSITRON_FRACTION, t->branching}};
	struct item_writer f;

	if (!(t->half_life > 0) && !(t->dose > 0) && !t->drug[0] && !t->injected[0])
		return;
	f = sinogram_tracer_item(root);
	complete_nuclide(t, &f);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].value > 0)
			item_put_double(&f, numbers[i].tag, numbers[i].value);
	}
	if (t->drug[0])
		item_put_text(&f, TAG_RADIOPHARMACEUTICAL, t->drug);
	if (t->injected[0]) {
		item_put_text(&f, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, t->injected);
		item_put_empty(&f, TAG_RADIOPHARMACEUTICAL_START_TIME); /* that of `like`: see pet_facts_complete_injection() */
	}
	item_end(root, &f);
}
