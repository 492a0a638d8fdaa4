/* SPDX-License-Identifier: Apache-2.0 */
/* mmr_header.c - the text headers of list mode and normalisation (Siemens' dialect of Interfile).
 *
 * The data say nothing about their own layout, so that every key which describes it must have the value of this scanner, where
 * the key is present; the keys without which the data cannot be trusted must be present. */
#include "node/format/mmr.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/interfile_lines.h"

#define COMPONENTS 8
#define SYSTEM "originatingsystem"

#define KEY 64 /* bytes of a key in the short form */

/* A key that must have this list of numbers, if it is present. */
struct fixed {
	const char *key; /* as the scanner writes it */
	int index;
	bool needed;
	int n;
	double value[2];
};

static const struct fixed list_keys[] = {
	{"!originating system", 0, true, 1, {2008}},
	{"%LM event and tag words format (bits)", 0, true, 1, {32}},
	{"number of rings", 0, true, 1, {MMR_RINGS}},
	{"%axial compression", 0, true, 1, {1}},
	{"%maximum ring difference", 0, true, 1, {MMR_LARGEST}},
	{"%number of projections", 0, true, 1, {MMR_RADIAL}},
	{"%number of views", 0, true, 1, {MMR_ANGLES}},
	{"%number of segments", 0, false, 1, {2 * MMR_LARGEST + 1}},
	{"%timing tagwords interval (msec)", 0, false, 1, {1}},
	{"%total number of singles blocks", 0, false, 1, {MMR_BUCKETS}},
	{"%number of TOF time bins", 0, false, 1, {1}},
	{"data offset in bytes", 0, false, 1, {0}},
};

static const struct fixed norm_keys[] = {
	{"!originating system", 0, true, 1, {2008}},
	{"%number of normalization components", 0, true, 1, {COMPONENTS}},
	{"number of rings", 0, false, 1, {MMR_RINGS}},
	{"%axial compression", 0, false, 1, {11}},
	{"%maximum ring difference", 0, false, 1, {MMR_LARGEST}},
	{"%number of buckets", 0, false, 1, {MMR_BUCKETS}},
	{"data offset in bytes", 1, false, 1, {0}},
	{"data offset in bytes", 2, false, 1, {174752}},
	{"data offset in bytes", 3, false, 1, {187136}},
	{"data offset in bytes", 4, false, 1, {316160}},
	{"data offset in bytes", 5, false, 1, {319508}},
	{"data offset in bytes", 6, false, 1, {319764}},
	{"data offset in bytes", 7, false, 1, {320020}},
	{"data offset in bytes", 8, false, 1, {320056}},
	{"matrix size", 1, false, 2, {MMR_RADIAL, 127}},
	{"matrix size", 2, false, 2, {MMR_BLOCK, MMR_RADIAL}},
	{"matrix size", 3, false, 2, {MMR_DETECTORS, MMR_RINGS}},
	{"matrix size", 4, false, 1, {837}},
	{"matrix size", 5, false, 1, {MMR_RINGS}},
	{"matrix size", 6, false, 1, {MMR_RINGS}},
	{"matrix size", 7, false, 1, {MMR_BLOCK}},
	{"matrix size", 8, false, 1, {837}},
};

/* Find the short form of a key (node/format/interfile_lines.h). */
static const char *short_key(const char *key, char ret[KEY])
{
	interfile_normalise(key + (*key == '!' || *key == '%'), ret, KEY);
	return ret;
}

static int refuse_missing_key(const char *key, struct err *err)
{
	return err_set(err, EBADMSG, "the header has no key \"%s\"", key);
}

static int refuse_value(const struct interfile_lines *l, const struct fixed *k, struct err *err)
{
	const struct interfile_line *line = NULL;
	char second[24] = "", key[KEY];

	interfile_line_find(l, short_key(k->key, key), k->index, &line, NULL);
	if (k->n == 2)
		snprintf(second, sizeof(second), ", %g", k->value[1]);
	return err_set(err, ENOTSUP, "line %d: %.60s := %.60s; supported: %g%s%s", line->number, line->name, line->value,
		       k->value[0], second,
		       strcmp(key, SYSTEM)
			       ? ""
			       : " (Biograph mMR); of another scanner of Siemens histogram the list mode with the e7tools, and "
				 "import what they export");
}

static int check_keys(const struct interfile_lines *l, const struct fixed *keys, size_t n_keys, struct err *err)
{
	for (size_t i = 0; i < n_keys; i++) {
		const struct fixed *k = &keys[i];
		double v[2] = {0, 0};
		char key[KEY];
		int n = 0, rc = interfile_line_numbers(l, short_key(k->key, key), k->index, -1e15, 1e15, 2, v, &n, err);

		if (rc < 0)
			return rc;
		if (rc == 0 && k->needed)
			return refuse_missing_key(k->key, err);
		if (rc > 0 && (n != k->n || v[0] != k->value[0] || (n == 2 && v[1] != k->value[1])))
			return refuse_value(l, k, err);
	}
	return 0;
}

/* Check the number of planes of each segment: 64, 63, 63, 62, 62 ... 4, 4. */
static int check_segments(const struct interfile_lines *l, struct err *err)
{
	double planes[2 * MMR_LARGEST + 2];
	int n = 0, rc = interfile_line_numbers(l, "segmenttable", 0, 0, 1e6, 2 * MMR_LARGEST + 2, planes, &n, err);

	if (rc <= 0)
		return rc;
	if (n != 2 * MMR_LARGEST + 1)
		return err_set(err, EBADMSG, "the segment table has %d segments; allowed: %d", n, 2 * MMR_LARGEST + 1);
	for (int i = 0; i < n; i++)
		if (planes[i] != MMR_RINGS - (i + 1) / 2)
			return err_set(err, EBADMSG, "segment table: segment %d has %g planes; allowed: %d", i + 1, planes[i],
				       MMR_RINGS - (i + 1) / 2);
	return 0;
}

/* Is the value this word? Missing: yes. */
static int check_word(const struct interfile_lines *l, const char *key, const char *wanted, struct err *err)
{
	const struct interfile_line *line;
	char word[40];
	int rc = interfile_line_find(l, key, 0, &line, err);

	if (rc <= 0)
		return rc;
	interfile_normalise(line->value, word, sizeof(word));
	return strcmp(word, wanted) ? err_set(err, ENOTSUP, "line %d: %.60s := %.60s; supported: %s", line->number, line->name,
					      line->value, wanted)
				    : 0;
}

static int read_words(const struct interfile_lines *l, struct mmr_header *h, struct err *err)
{
	double words;
	int rc = interfile_line_number(l, "totallistmodewordcounts", 0, 1, 1e15, &words, err);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return refuse_missing_key("%total listmode word counts", err);
	if (words != floor(words))
		return err_set(err, EBADMSG, "%%total listmode word counts := %g is not an integer", words);
	h->words = (uint64_t)words;
	return 0;
}

static int read_study(const struct interfile_lines *l, struct mmr_header *h, struct err *err)
{
	const struct interfile_line *line;
	int rc = interfile_line_number(l, "imageduration(sec)", 0, 0, 1e7, &h->duration, err);

	if (rc < 0)
		return rc;
	if (rc == 0 || h->duration == 0)
		h->duration = NAN;
	rc = interfile_line_find(l, "patientorientation", 0, &line, err);
	if (rc > 0)
		snprintf(h->position, sizeof(h->position), "%s", line->value);
	return rc < 0 ? rc : 0;
}

static int read_energy(const struct interfile_lines *l, struct mmr_header *h, struct err *err)
{
	static const char *const keys[2] = {"energywindowlowerlevel(kev)", "energywindowupperlevel(kev)"};
	int rc = 0;

	for (int i = 0; rc >= 0 && i < 2; i++) {
		h->energy[i] = NAN;
		rc = interfile_line_number(l, keys[i], 1, 0, 10000, &h->energy[i], err);
	}
	return rc < 0 ? rc : 0;
}

/* Check that no component has the name of another one: the data follow each other without names. */
static int check_components(const struct interfile_lines *l, struct err *err)
{
	static const char *const names[COMPONENTS] = {"geometriceffects",	    "crystalinterference",
						      "crystalefficiencies",	    "axialeffects",
						      "paralyzingringdtparameters", "non-paralyzingringdtparameters",
						      "txcrystaldtparameter",	    "additionalaxialeffects"};
	const struct interfile_line *line = NULL;
	int rc = 0;

	for (int i = 0; rc >= 0 && i < COMPONENTS; i++) {
		char name[KEY] = "";

		rc = interfile_line_find(l, "normalizationcomponent", i + 1, &line, err);
		if (rc > 0)
			interfile_normalise(line->value, name, sizeof(name));
		for (int k = 0; k < COMPONENTS && rc > 0; k++)
			if (k != i && !strcmp(name, names[k]))
				return err_set(err, ENOTSUP, "line %d: %.60s := %.60s; supported: %s", line->number, line->name,
					       line->value, names[i]);
	}
	return rc < 0 ? rc : 0;
}

/* Check the form of the data of any header. */
static int check_form(const struct interfile_lines *l, struct err *err)
{
	int rc = check_word(l, "imagedatabyteorder", "littleendian", err);

	return rc < 0 ? rc : check_word(l, "compression", "off", err);
}

/* A value that is not used is no reason to refuse the data. */
static double read_factor(const struct interfile_lines *l, const char *key)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(l, key, 0, &line, NULL);
	char *end = NULL;
	double v = rc > 0 ? strtod(line->value, &end) : rc < 0 ? 0 : NAN;

	return rc > 0 && (end == line->value || *end || !(v > 0) || isinf(v)) ? 0 : v;
}

static void read_calibration(const struct interfile_lines *l, struct mmr_header *h)
{
	h->quantification = read_factor(l, "scannerquantificationfactor(bq*s/ecatcounts)");
	h->cross_calibration = read_factor(l, "crosscalibrationfactor");
}

/* Read the name of the data file; that of a normalisation is the last member of a list, "{0,,norm.n}". */
static int read_data_file(const struct interfile_lines *l, struct mmr_header *h, struct err *err)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(l, "nameofdatafile", 0, &line, err);
	const char *name;

	if (rc == 0)
		rc = interfile_line_find(l, "dataset", 1, &line, err);
	if (rc <= 0)
		return rc;
	name = line->value[0] == '{' && strrchr(line->value, ',') ? strrchr(line->value, ',') + 1 : line->value;
	snprintf(h->data_file, sizeof(h->data_file), "%.*s", (int)strcspn(name, "}"), name);
	return 0;
}

static int read_lines(const char *text, size_t size, struct interfile_lines *ret, struct err *err)
{
	while (size > 0 && text[size - 1] == '\0')
		size--;
	return interfile_lines_read(text, size, ret, err);
}

int mmr_header_read_name(const char *text, size_t size, struct mmr_header *ret, struct err *err)
{
	struct interfile_lines l;
	int rc = read_lines(text, size, &l, err);

	if (rc < 0)
		return rc;
	rc = read_data_file(&l, ret, err);
	interfile_lines_clear(&l);
	return rc;
}

int mmr_header_read_list(const char *text, size_t size, struct mmr_header *ret, struct err *err)
{
	struct mmr_header h = {.singles = MMR_SINGLES};
	struct interfile_lines l;
	int rc = read_lines(text, size, &l, err);

	if (rc < 0)
		return rc;
	rc = check_word(&l, "dataformat", "coincidencelist", err);
	if (rc == 0)
		rc = check_keys(&l, list_keys, sizeof(list_keys) / sizeof(list_keys[0]), err);
	if (rc == 0)
		rc = check_form(&l, err);
	if (rc == 0)
		rc = check_segments(&l, err);
	if (rc >= 0)
		rc = read_words(&l, &h, err);
	if (rc == 0)
		rc = interfile_line_number(&l, "singlesscalefactor", 0, 1e-3, 1e6, &h.singles, err);
	if (rc >= 0)
		rc = read_study(&l, &h, err);
	if (rc == 0)
		rc = read_energy(&l, &h, err);
	if (rc == 0)
		rc = read_data_file(&l, &h, err);
	read_calibration(&l, &h);
	interfile_lines_clear(&l);
	if (rc == 0)
		*ret = h;
	return rc;
}

int mmr_header_read_norm(const char *text, size_t size, struct mmr_header *ret, struct err *err)
{
	struct mmr_header h = {.duration = NAN};
	struct interfile_lines l;
	int rc = read_lines(text, size, &l, err);

	if (rc < 0)
		return rc;
	rc = check_keys(&l, norm_keys, sizeof(norm_keys) / sizeof(norm_keys[0]), err);
	if (rc == 0)
		rc = check_form(&l, err);
	if (rc == 0)
		rc = check_components(&l, err);
	if (rc == 0)
		rc = read_energy(&l, &h, err);
	if (rc == 0)
		rc = read_data_file(&l, &h, err);
	read_calibration(&l, &h);
	interfile_lines_clear(&l);
	if (rc == 0)
		*ret = h;
	return rc;
}
