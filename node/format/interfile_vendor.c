/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_vendor.c - keys of manufacturers, which begin with '%' (Siemens sub-headers).
 *
 * '%' is not part of the short form, so that a key which the parser reads has the same effect with and without it. A key that may
 * change the meaning of the bytes is refused by name, unless it has the value that changes nothing. So is a key that is unknown:
 * what it means cannot be known. Only keys that describe patient, study and file are passed over. */
#include <errno.h>
#include <string.h>

#include "node/format/interfile_internal.h"

/* Beginnings of the short forms of keys that say nothing about the data, or that the parser reads. */
static const char *const harmless[] = {
	"comment",
	"sms-mi",
	"study",
	"series",
	"patient",
	"institution",
	"operator",
	"scannertype",
	"imageduration",
	"imagerelativestarttime",
	"numberoftimeframes",
	"tofmashingfactor", /* STIR writes it in both ways */
};

/* Keys with the values that change nothing. */
static const struct {
	const char *key, *value[2];
} neutral[] = {
	{"compression", {"none", "off"}},      {"axialcompression", {"1", "1"}},    {"numberofsegments", {"1", "1"}},
	{"numberofscandatatypes", {"1", "1"}}, {"numberoftoftimebins", {"1", "1"}},
};

static bool is_harmless(const struct interfile_line *line)
{
	char value[40];

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (!strncmp(line->key, harmless[i], strlen(harmless[i])))
			return true;
	interfile_normalise(line->value, value, sizeof(value));
	for (size_t i = 0; i < sizeof(neutral) / sizeof(neutral[0]); i++)
		if (!strcmp(line->key, neutral[i].key))
			return !value[0] || !strcmp(value, neutral[i].value[0]) || !strcmp(value, neutral[i].value[1]);
	return false;
}

bool interfile_is_siemens(const struct interfile_lines *l)
{
	const struct interfile_line *line;

	return interfile_line_find(l, "sms-miversionnumber", 0, &line, NULL) != 0;
}

/* A sub-header of Siemens has many keys; those that describe the layout of the data are read, and checked against each other and
 * against the size of the file. */
int interfile_compression_check(const struct interfile_lines *l, struct err *err)
{
	const struct interfile_line *line;
	char text[16];
	int rc = interfile_line_find(l, "compression", 0, &line, err);

	if (rc <= 0)
		return rc;
	interfile_normalise(line->value, text, sizeof(text));
	if (!strcmp(text, "off") || !strcmp(text, "none"))
		return 0;
	return err_set(err, ENOTSUP,
		       "line %d: %.60s := %.60s; compressed sinograms of Siemens are not read: uncompress them with the e7tools "
		       "(intfcompr.exe -e COMPRESSED.mhdr --oe UNCOMPRESSED.mhdr), or histogram without compression",
		       line->number, line->name, line->value);
}

int interfile_vendor_check(const struct interfile_lines *l, struct err *err)
{
	if (interfile_is_siemens(l))
		return interfile_compression_check(l, err);
	for (size_t i = 0; i < l->n; i++)
		if (l->line[i].name[strspn(l->line[i].name, "! \t")] == '%' && !is_harmless(&l->line[i]))
			return err_set(
				err, ENOTSUP,
				"line %d: %.60s := %.60s; this manufacturer's key may change the meaning of the data and is "
				"not supported: convert the data to STIR Interfile without it",
				l->line[i].number, l->line[i].name, l->line[i].value);
	return 0;
}
