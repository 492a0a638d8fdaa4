/* SPDX-License-Identifier: Apache-2.0 */
/* report_recipe.c - how a result was made: parameters and provenance. A result of this program has its recipe in Contributing
 * Equipment (node/sinogram/provenance.h); of other programs standard attributes are shown. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/plural.h"
#include "node/config/config.h"
#include "node/config/kind.h"
#include "node/report/report_internal.h"
#include "node/sinogram/fact_origins.h"
#include "node/sinogram/provenance.h"
#include "node/sinogram/recipe.h"
#include "node/sinogram/sinogram.h"

#define TEXT 512
#define SOURCES_MAX 200 /* UIDs that are listed */

/* ---- derivation ---- */

/* Return the first item of Derivation Image (0008,9124), which a multi-frame object has in its functional groups; NULL: none. */
static const struct dicom_item *derivation_image(const struct dicom_item *root)
{
	const struct dicom_item *in[] = {dicom_item_at(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE, 0),
					 dicom_item_at(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE, 0), root};

	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		if (in[i] && dicom_item_count(in[i], TAG_DERIVATION_IMAGE_SEQUENCE) > 0)
			return dicom_item_at(in[i], TAG_DERIVATION_IMAGE_SEQUENCE, 0);
	return NULL;
}

void report_derivation(const struct dicom_item *root, char *ret_text, size_t size)
{
	const struct dicom_item *images = derivation_image(root);

	report_text(root, TAG_DERIVATION_DESCRIPTION, ret_text, size);
	if (!ret_text[0] && images)
		report_text(images, TAG_DERIVATION_DESCRIPTION, ret_text, size);
}

const char *report_derivation_warnings(char *text)
{
	static const char last[] = "Research use only.";
	size_t n = strlen(text), end = sizeof(last) - 1;
	bool outside = !strncmp(text, PROVENANCE_OUTSIDE_BEGIN, sizeof(PROVENANCE_OUTSIDE_BEGIN) - 1);
	/* the name of the protocol is before it, that of the device, or of the scanner, has no full stop and blank */
	char *at = strstr(text, outside ? " voxels of " : ", device ");

	if (n >= end && !strcmp(text + n - end, last))
		text[n - end] = '\0';
	n = strlen(text);
	while (n > 0 && text[n - 1] == ' ')
		text[--n] = '\0';
	at = at ? strstr(at, ". ") : NULL;
	return at ? at + 2 : "";
}

bool report_is_assumed(const struct report *r, const char *sentence)
{
	char text[RECIPE_SIZE];

	report_derivation(r->root, text, sizeof(text));
	return report_is_ours(r->root) && strstr(report_derivation_warnings(text), sentence);
}

/* ---- the recipe ---- */

/* Find the value of algorithm=... among the pairs of a protocol. */
static void find_algorithm(const char *pairs, char *ret_name, size_t size)
{
	static const char key[] = "algorithm=";
	const char *at = strncmp(pairs, key, sizeof(key) - 1) ? strstr(pairs, " algorithm=") : pairs;

	at = at ? strchr(at, '=') + 1 : "";
	snprintf(ret_name, size, "%.*s", (int)strcspn(at, " "), at);
}

/* Write what 0 means as the value of a key for which it is no quantity: "voxel 0" is no size. */
static void put_zero(struct html *h, const char *kind, const char *key)
{
	const char *meaning = config_protocol_zero(kind, key);
	char plain[TEXT];
	size_t n = 0;

	for (; *meaning && n + 1 < sizeof(plain); meaning++) /* it is Markdown, in which names of keys are quoted */
		if (*meaning != '`')
			plain[n++] = *meaning;
	plain[n] = '\0';
	html_printf(h, " (%s)", plain);
}

/* Return the unit of a key of this part of the recipe, or what its values mean; NULL: neither. */
static const char *unit_of(const char *part, const char *kind, const char *key)
{
	static const struct {
		const char *part, *keys, *unit;
	} units[] = {
		{"scanner", " spacing radius depth bin length width sigma ", "mm"},
		{"scanner", " offset ", "degrees"},
		{"scanner", " arc ", "(1: arc-corrected bins, 0: bins of detectors)"},
		{"beams", " spacing bin offset ", "mm"},
	};
	char word[TEXT + 2];

	if (!strcmp(part, "protocol") || !strcmp(part, "profile"))
		return config_key_unit(!strcmp(part, "protocol") ? kind : NULL, key);
	snprintf(word, sizeof(word), " %s ", key);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].part, part) && strstr(units[i].keys, word))
			return units[i].unit;
	return NULL;
}

static void put_unit(struct html *h, const char *unit, const char *value)
{
	bool bracket;
	char *end;

	strtod(value, &end);
	if (!unit || end == value || (*end && strncmp(end, "..", 2))) /* "400..412" is a range */
		return;
	bracket = isdigit((unsigned char)unit[0]) && strchr(unit, ' '); /* "0 (1 / stored value)" */
	html_put(h, bracket ? " (" : " ");
	html_text(h, unit);
	if (bracket)
		html_put(h, ")");
}

/* Write the rows of "key=value key=value ...", where values may be quoted. part: of the recipe; kind: of the case. The algorithm
 * of a protocol does not use all its keys. */
static void put_pairs(struct html *h, const char *text, const char *part, const char *kind)
{
	bool protocol = !strcmp(part, "protocol");
	char algorithm[TEXT];

	find_algorithm(text, algorithm, sizeof(algorithm));
	while (*text) {
		const char *end = text;
		char pair[TEXT], *equals;
		bool quoted = false;

		while (*end && (quoted || *end != ' '))
			quoted ^= *end++ == '"';
		snprintf(pair, sizeof(pair), "%.*s", (int)(end - text), text);
		equals = strchr(pair, '=');
		if (equals)
			*equals = '\0';
		if (pair[0] && (!protocol || config_protocol_uses(kind, algorithm, pair))) {
			html_printf(h, "<tr><th scope=\"row\"><code>%s</code></th><td>%s", pair, equals ? equals + 1 : "");
			if (equals && protocol && !strcmp(equals + 1, "0") && config_protocol_zero(kind, pair))
				put_zero(h, kind, pair);
			else if (equals)
				put_unit(h, unit_of(part, kind, pair), equals + 1);
			html_put(h, "</td></tr>\n");
		}
		text = *end ? end + 1 : end;
	}
}

static void put_part(const struct report *r, struct html *h, const char *recipe, const char *kind, const char *title)
{
	const struct kind *of = r->s->tomo ? &kind_dbt : r->s->ct ? &kind_parallel : &kind_pet;
	char name[RECIPE_SIZE], pairs[RECIPE_SIZE];

	if (!recipe_part(recipe, kind, name, pairs))
		return;
	html_printf(h, "<h3>%s %s</h3><table class=\"pairs\">\n", title, name);
	put_pairs(h, pairs, kind, of->name);
	html_put(h, "</table>\n");
}

bool report_has_corrections(const struct dicom_item *root)
{
	char recipe[RECIPE_SIZE], name[RECIPE_SIZE], pairs[RECIPE_SIZE];
	const char *at;

	recipe_read(root, recipe);
	if (!recipe_part(recipe, "protocol", name, pairs))
		return false;
	at = strstr(pairs, "corrections=");
	return at && (at == pairs || at[-1] == ' ') && strcspn(at + strlen("corrections="), " \"") > 0;
}

/* ---- parameters ---- */

struct named {
	uint32_t tag;
	const char *name;
};

/* Beginnings of sentences of node/sinogram/sinogram_assume.c. */
static const char no_duration[] = "The duration of the acquisition is not in the data";

/* Write a fractional number with six significant digits; anything else stays. */
static void round_number(char text[])
{
	size_t n = strlen(text);
	char *end;
	double value = strtod(text, &end);

	if (n > 0 && *end == '\0' && strchr(text, '.') && strspn(text, "+-.0123456789eE") == n)
		snprintf(text, n + 1, "%.6g", value);
}

static void put_list(const struct report *r, const struct dicom_item *root, const struct named *list, size_t n, struct html *h)
{
	char value[TEXT], text[2 * TEXT];

	for (size_t i = 0; i < n; i++) {
		size_t length;

		report_text(root, list[i].tag, value, sizeof(value));
		report_explain(list[i].tag, value, text, sizeof(text));
		length = strlen(text);
		if (length > 0 && list[i].tag == TAG_ACTUAL_FRAME_DURATION && report_is_assumed(r, no_duration))
			snprintf(text + length, sizeof(text) - length, " (assumed)");
		if (length >= 14 && list[i].tag == TAG_RADIOPHARMACEUTICAL_START_DATE_TIME)
			snprintf(text, sizeof(text), "%.4s-%.2s-%.2s %.2s:%.2s:%.2s", value, value + 4, value + 6, value + 8,
				 value + 10, value + 12);
		round_number(text);
		if (length > 0 && list[i].tag == TAG_ORGAN_DOSE) /* DICOM has dGy */
			snprintf(text, sizeof(text), "%.4g", 100 * strtod(value, NULL));
		report_put_row(h, list[i].name, text);
	}
}

static const struct named method[] = {
	{TAG_RECONSTRUCTION_METHOD, "Reconstruction method"},
	{TAG_CONVOLUTION_KERNEL, "Convolution kernel"},
	{TAG_CORRECTED_IMAGE, "Corrected for"},
	{TAG_ATTENUATION_CORRECTION_METHOD, "Attenuation correction"},
	{TAG_SCATTER_CORRECTION_METHOD, "Scatter correction"},
	{TAG_RANDOMS_CORRECTION_METHOD, "Randoms correction"},
	{TAG_DECAY_CORRECTION, "Decay correction"},
	{TAG_DECAY_FACTOR, "Decay factor"},
	{TAG_DOSE_CALIBRATION_FACTOR, "Dose calibration factor"},
	{TAG_ACTUAL_FRAME_DURATION, "Frame duration, ms"},
	{TAG_RECONSTRUCTION_DIAMETER, "Reconstruction diameter, mm"},
	{TAG_SLICE_THICKNESS, "Slice thickness, mm"},
	{TAG_KVP, "Tube voltage, kV"},
	{TAG_EXPOSURE, "Exposure, mAs"},
};

void report_put_position(const struct report *r, struct html *h)
{
	struct pet_facts f;
	char meaning[80], text[100];

	if (r->s->tomo)
		return;
	pet_facts_read(r->root, &f);
	report_explain(TAG_PATIENT_POSITION, f.patient_position, meaning, sizeof(meaning));
	snprintf(text, sizeof(text), "%s%s", meaning[0] ? meaning : "not in the objects",
		 meaning[0] && report_is_assumed(r, SINOGRAM_NO_POSITION) ? " (assumed)" : "");
	report_put_row(h, "Patient position", text);
}

static const struct named isotope[] = {
	{TAG_RADIOPHARMACEUTICAL, "Radiopharmaceutical"},      {TAG_RADIONUCLIDE_TOTAL_DOSE, "Injected dose, Bq"},
	{TAG_RADIONUCLIDE_HALF_LIFE, "Half-life, s"},	       {TAG_RADIONUCLIDE_POSITRON_FRACTION, "Branching ratio"},
	{TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, "Injected"},
};

static const struct named acquisition[] = {
	{TAG_KVP, "Tube voltage, kV"},
	{TAG_ANODE_TARGET_MATERIAL, "Anode"},
	{TAG_FILTER_MATERIAL, "Filter"},
	{TAG_BODY_PART_THICKNESS, "Thickness of the breast, mm"},
	{TAG_COMPRESSION_FORCE, "Compression force, N"},
	{TAG_DISTANCE_SOURCE_TO_DETECTOR, "Source to detector, mm"},
	{TAG_ORGAN_DOSE, "Organ dose, mGy"},
};

/* A meaning of DICOM's list of isotopes, "^18^Fluorine", is written Fluorine-18. */
static void put_nuclide(const struct report *r, struct html *h)
{
	char name[80], number[8];
	struct pet_facts f;

	pet_facts_read(r->root, &f);
	if (sscanf(f.radionuclide, "^%7[0-9m]^%70[^^]", number, name) == 2)
		snprintf(f.radionuclide, sizeof(f.radionuclide), "%.48s-%s", name, number);
	report_put_row(h, "Nuclide", f.radionuclide);
}

/* Write the other programs that computed or changed the volume (node/sinogram/provenance.c): each is a row. */
static void put_programs(const struct dicom_item *root, struct html *h)
{
	size_t n = dicom_item_count(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	char name[TEXT], version[TEXT], what[RECIPE_SIZE], text[2 * TEXT + RECIPE_SIZE], code[32];

	for (size_t i = 0; i < n && i < 16; i++) {
		const struct dicom_item *item = dicom_item_at(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, i),
					*purpose = dicom_item_at(item, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, 0);

		code[0] = '\0';
		if (!purpose || dicom_get_text(purpose, TAG_CODE_VALUE, code, sizeof(code), NULL) != 1 ||
		    strcmp(code, "109102") != 0 || report_is_ours(item))
			continue;
		report_text(item, TAG_MANUFACTURER_MODEL_NAME, name, sizeof(name));
		report_text(item, TAG_SOFTWARE_VERSIONS, version, sizeof(version));
		report_text(item, TAG_CONTRIBUTION_DESCRIPTION, what, sizeof(what));
		snprintf(text, sizeof(text), "%s %s %s", name, version, what);
		report_put_row(h, "Another program", text);
	}
}

void report_put_parameters(const struct report *r, struct html *h)
{
	const struct dicom_item *drug = dicom_item_at(r->root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0),
				*exposure = dicom_item_at(r->root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE, 0);
	char recipe[RECIPE_SIZE];

	recipe_read(r->root, recipe);
	html_put(h, "<section><h2>Parameters</h2>\n<table class=\"facts\">\n");
	put_list(r, r->root, method, sizeof(method) / sizeof(method[0]), h);
	if (drug) {
		put_nuclide(r, h);
		put_list(r, drug, isotope, sizeof(isotope) / sizeof(isotope[0]), h);
	}
	if (exposure)
		put_list(r, exposure, acquisition, sizeof(acquisition) / sizeof(acquisition[0]), h);
	put_programs(r->root, h);
	html_put(h, "</table>\n<div class=\"parts\"><div>");
	put_part(r, h, recipe, "protocol", "Protocol");
	html_put(h, "</div><div>");
	put_part(r, h, recipe, "profile", "Geometry profile");
	put_part(r, h, recipe, "scanner", "Scanner");
	put_part(r, h, recipe, "beams", "Beams");
	html_put(h, "</div></div></section>\n");
}

/* ---- provenance ---- */

/* Write the UIDs of a sequence of references. */
static void put_references(struct html *h, const struct dicom_item *from, uint32_t sequence, const char *what)
{
	size_t n = from ? dicom_item_count(from, sequence) : 0;
	char uid[DICOM_UID_SIZE];

	if (n == 0)
		return;
	html_printf(h, "<details><summary>%s: %zu</summary><ul class=\"uids\">\n", what, n);
	for (size_t i = 0; i < n && i < SOURCES_MAX; i++) {
		uid[0] = '\0';
		dicom_get_text(dicom_item_at(from, sequence, i), TAG_REFERENCED_SOP_INSTANCE_UID, uid, sizeof(uid), NULL);
		html_printf(h, "<li>%s</li>\n", uid[0] ? uid : "no UID");
	}
	if (n > SOURCES_MAX)
		html_printf(h, "<li>%zu more</li>\n", n - SOURCES_MAX);
	html_put(h, "</ul></details>\n");
}

static void put_referenced_series(struct html *h, const struct dicom_item *root)
{
	size_t n = dicom_item_count(root, TAG_REFERENCED_SERIES_SEQUENCE), count;
	char uid[DICOM_UID_SIZE], text[2 * TEXT];

	for (size_t i = 0; i < n && i < 16; i++) {
		const struct dicom_item *item = dicom_item_at(root, TAG_REFERENCED_SERIES_SEQUENCE, i);

		uid[0] = '\0';
		dicom_get_text(item, TAG_SERIES_INSTANCE_UID, uid, sizeof(uid), NULL);
		count = dicom_item_count(item, TAG_REFERENCED_INSTANCE_SEQUENCE);
		snprintf(text, sizeof(text), "%s (%zu object%s)", uid, count, plural(count));
		report_put_row(h, "Derived from series", text);
	}
}

/* Remove a word that stands for a missing name: STIR's headers have "Userdefined" and "unknown", objects that need a manufacturer
 * "unknown". */
static void keep_name(char *name)
{
	if (!strcasecmp(name, "unknown") || !strcasecmp(name, "userdefined"))
		name[0] = '\0';
}

static void put_equipment(struct html *h, const char *name, const struct dicom_item *item)
{
	char maker[TEXT], model[TEXT], serial[TEXT], version[TEXT], text[4 * TEXT + 40];

	report_text(item, TAG_MANUFACTURER, maker, sizeof(maker));
	report_text(item, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model));
	report_text(item, TAG_DEVICE_SERIAL_NUMBER, serial, sizeof(serial));
	report_text(item, TAG_SOFTWARE_VERSIONS, version, sizeof(version));
	keep_name(maker);
	keep_name(model);
	if (!maker[0] && !model[0])
		snprintf(maker, sizeof(maker), "a system that the data do not name");
	snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", maker, maker[0] && model[0] && strcmp(maker, model) != 0 ? " " : "",
		 strcmp(maker, model) != 0 ? model : "", version[0] ? ", version " : "", version,
		 serial[0] ? ", serial number " : "", serial);
	report_put_row(h, name, text);
}

/* Write where the facts are from, as this program wrote it beside the modality; nothing of another program. */
static void put_origins(const struct dicom_item *root, struct html *h)
{
	const struct dicom_item *modality = dicom_item_at(root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, 0);
	char text[RECIPE_SIZE] = "", fact[FACT_ORIGIN_SIZE], name[FACT_ORIGIN_SIZE + 12], origin[FACT_ORIGIN_SIZE];
	const char *at = text + strlen(FACT_ORIGINS_BEGIN);

	if (modality && report_is_ours(root))
		dicom_get_text(modality, TAG_CONTRIBUTION_DESCRIPTION, text, sizeof(text), NULL);
	if (strncmp(text, FACT_ORIGINS_BEGIN, strlen(FACT_ORIGINS_BEGIN)) != 0)
		return;
	while ((at = fact_origins_next(at, fact, origin))) {
		snprintf(name, sizeof(name), "Origin: %s", fact);
		report_put_row(h, name, origin);
	}
}

static bool is_processing(const struct dicom_item *equipment)
{
	const struct dicom_item *purpose = dicom_item_at(equipment, TAG_PURPOSE_OF_REFERENCE_CODE_SEQUENCE, 0);
	char code[17] = "";

	return purpose && dicom_get_text(purpose, TAG_CODE_VALUE, code, sizeof(code), NULL) == 1 && !strcmp(code, "109102");
}

void report_put_provenance(const struct report *r, struct html *h)
{
	const struct dicom_item *images = derivation_image(r->root);
	size_t n = dicom_item_count(r->root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE);
	char text[RECIPE_SIZE], recipe[RECIPE_SIZE], device[RECIPE_SIZE], none[RECIPE_SIZE], digest[65];

	recipe_read(r->root, recipe);
	html_put(h, "<section><h2>Provenance</h2>\n<table class=\"facts\">\n");
	put_equipment(h, "Made by", r->root);
	if (recipe[0]) {
		if (recipe_part(recipe, "device", none, device))
			report_put_row(h, "Device", device);
		snprintf(digest, sizeof(digest), "%.64s", recipe + 7);
		report_put_row(h, "Digest of the recipe", digest);
	}
	for (size_t i = 0; i < n && i < 8; i++) {
		const struct dicom_item *item = dicom_item_at(r->root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, i);

		if (!report_is_ours(item))
			put_equipment(h, is_processing(item) ? "Volume computed by" : "Acquired by", item);
	}
	put_origins(r->root, h);
	report_derivation(r->root, text, sizeof(text));
	if (report_is_ours(r->root)) {
		char *warnings = (char *)report_derivation_warnings(text); /* within the text, or ""; they have their own part */

		if (warnings[0] && warnings > text)
			warnings[-1] = '\0';
	}
	report_put_row(h, "Derivation", text);
	report_text(r->root, TAG_STUDY_INSTANCE_UID, text, sizeof(text));
	report_put_row(h, "Study Instance UID", text);
	report_text(r->root, TAG_SERIES_INSTANCE_UID, text, sizeof(text));
	report_put_row(h, "Series Instance UID", text);
	if (r->s->tomo) {
		report_text(r->root, TAG_SOP_INSTANCE_UID, text, sizeof(text));
		report_put_row(h, "SOP Instance UID", text);
	}
	put_referenced_series(h, r->root);
	html_put(h, "</table>\n");
	put_references(h, r->root, TAG_SOURCE_INSTANCE_SEQUENCE, "Source objects");
	put_references(h, images ? images : r->root, TAG_SOURCE_IMAGE_SEQUENCE, "Source images");
	html_put(h, "</section>\n");
}
