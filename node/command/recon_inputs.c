/* SPDX-License-Identifier: Apache-2.0 */
/* recon_inputs.c - explain files that are no scan. The data of sinograms and images are recognised by the header beside them, an
 * image of Analyze or NIfTI by the size of its header, which is its first number. */
#include "node/command/recon_inputs.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/dicom_mark.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/command/imported_cases.h"
#include "node/sinogram/pet_source.h"

#define ANALYZE_HEADER 348u /* bytes; NIfTI-1 has the same */

/* Find a header beside a file, with its name and `ending` in place of, or after, its own ending; write its name. */
static bool find_beside(const char *path, const char *ending, char *ret, size_t size)
{
	const char *dot = strrchr(file_name(path), '.');
	int base = (int)(dot ? dot - path : (ptrdiff_t)strlen(path));

	for (int after = 0; after < 2; after++)
		if (snprintf(ret, size, "%.*s%s", after ? (int)strlen(path) : base, path, ending) < (int)size &&
		    strcmp(ret, path) != 0 && access(ret, R_OK) == 0)
			return true;
	return false;
}

static bool has_ending(const char *path, const char *const *endings)
{
	const char *dot = strrchr(file_name(path), '.');

	while (dot && *endings && strcasecmp(dot, *endings) != 0)
		endings++;
	return dot && *endings;
}

static bool is_analyze(const char *path)
{
	uint32_t first = 0;
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(&first, sizeof(first), 1, f) : 0;

	if (f)
		fclose(f);
	return n == 1 && (first == ANALYZE_HEADER || first == __builtin_bswap32(ANALYZE_HEADER));
}

/* Write what a file is that is no scan, and what is meant. False: it is not known. */
static bool explain_file(const char *path, char *ret, size_t size)
{
	static const char *const sinograms[] = {".hs", ".hdr", NULL}, *const images[] = {".hv", ".ahv", NULL};
	static const char *const data[] = {".s", ".a", ".sino", NULL}, *const volumes[] = {".v", NULL},
				 *const analyze[] = {".hdr", ".nii", NULL};
	const char *name = file_name(path);
	char header[1100];
	enum dicom_mark mark;
	struct err err = {0};

	if (dicom_mark_find(path, &mark, &err) == 0 && mark != DICOM_MARK_NONE) {
		snprintf(ret, size,
			 "; %.300s is DICOM, such as a reconstructed image, but no scan: name the sinograms or projections that "
			 "it was made from",
			 name);
		return true;
	}
	if (sinogram_vendor_check(path, &err) < 0) {
		snprintf(ret, size, "; %.200s is %.499s", name, err.msg);
		return true;
	}
	if (has_ending(path, analyze) && is_analyze(path)) {
		snprintf(ret, size, "; %.300s is an image (Analyze or NIfTI), not a scan: name the header of the sinograms (.hs)",
			 name);
		return true;
	}
	for (size_t i = 0; sinograms[i] && !has_ending(path, volumes); i++)
		if (find_beside(path, sinograms[i], header, sizeof(header)) && !is_analyze(header)) {
			snprintf(ret, size, "; %.300s is data without a header: name its Interfile header, %.300s", name,
				 file_name(header));
			return true;
		}
	for (size_t i = 0; images[i]; i++)
		if (find_beside(path, images[i], header, sizeof(header))) {
			snprintf(ret, size,
				 "; %.300s is the data of an image, whose header is %.300s, not a scan: name the header of the "
				 "sinograms (.hs)",
				 name, file_name(header));
			return true;
		}
	if (has_ending(path, data) || has_ending(path, volumes))
		snprintf(ret, size,
			 "; %.300s is data without a header, and none is beside it: name the Interfile header of the sinograms "
			 "(.hs)",
			 name);
	return ret[0] != '\0';
}

/* The same of a folder whose objects are no scan. */
static void explain_folder(const char *path, const struct case_list *list, char *ret, size_t size)
{
	if (list->n_files > list->n_other + list->n_own)
		snprintf(
			ret, size,
			"; %.300s holds DICOM images, such as reconstructed ones, but no scan: name the sinograms or projections "
			"that they were made from",
			path);
}

/* Options of roles are given, but no header: say what is wrong with the first file. */
static int refuse_scan(const struct options *o, char *const *paths)
{
	char hint[800] = "";
	struct stat st;

	for (; *paths; paths++) {
		if (stat(*paths, &st) < 0 || (S_ISREG(st.st_mode) && access(*paths, R_OK) < 0))
			return options_fail(o, errno == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s: %s", *paths, strerror(errno));
		if (S_ISREG(st.st_mode) && explain_file(*paths, hint, sizeof(hint)))
			return options_fail(o, CODE_INPUT, "%s is no Interfile header of a scan%s", *paths, hint);
		if (!paths[1])
			return options_fail(o, CODE_USAGE,
					    "--multiplicative, --additive, --attenuation, --normalisation, --delayeds and "
					    "--singles are of one FILE.hs, and %s is %s: name its header",
					    *paths, S_ISDIR(st.st_mode) ? "a folder" : "no Interfile header");
	}
	return -1;
}

/* Is no other role given? */
static bool is_only(const struct sinogram_import *conf, enum sinogram_role role)
{
	for (int other = 1; other <= SINOGRAM_ROLES; other++)
		if (conf->header[other] && other != (int)role)
			return false;
	return true;
}

/* Is one of the paths, and only one, list mode that is reconstructed with a normalisation of its own form? */
static bool takes_normalisation(char *const *paths)
{
	int n = 0;

	for (; *paths; paths++) {
		const struct pet_source *source = pet_source_of_file(*paths);

		n += source && source->efficiencies;
	}
	return n == 1;
}

int recon_inputs_check(const struct options *o, const struct sinogram_import *conf, char *const *paths)
{
	size_t n, with_others = imported_cases_count(paths, &n);
	const char *other, *option;
	bool roles = false;

	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		roles = roles || conf->header[role];
	if (roles && !(is_only(conf, SINOGRAM_NORMALISATION) && takes_normalisation(paths)) && n != 1)
		return n == 0 ? refuse_scan(o, paths)
			      : options_fail(o, CODE_USAGE,
					     "--multiplicative, --additive, --attenuation, --normalisation, --delayeds and "
					     "--singles are of one FILE.hs, and %zu are given",
					     n);
	if (with_others > 1 && (other = imported_cases_not_emission(paths, &option)))
		return options_fail(
			o, CODE_USAGE,
			"%s is named like data that belong to a scan, not like one: give it with the scan's header as %s %s; "
			"if it is a scan, reconstruct it by itself",
			other, option, other);
	return -1;
}

int recon_inputs_none(const struct options *o, const struct case_list *list, char *const *paths)
{
	size_t n = imported_cases_beneath(paths), n_other = list->n_other + list->n_own;
	char hint[800] = "", other[60] = "";

	if (n > 0)
		snprintf(hint, sizeof(hint), "; %zu Interfile header%s there: name the .hs file%s", n, n == 1 ? " is" : "s are",
			 plural(n));
	for (; n == 0 && *paths && !hint[0]; paths++)
		if (folder_exists(*paths))
			explain_folder(*paths, list, hint, sizeof(hint));
		else
			explain_file(*paths, hint, sizeof(hint));
	if (n_other > 0 && list->n_files > 1)
		snprintf(other, sizeof(other), " (%zu of them not DICOM)", n_other);
	return options_fail(o, CODE_INPUT, "nothing to reconstruct: no projections and no sinograms in %zu%s file%s%s%s",
			    list->n_files, n_other > 0 && list->n_files == 1 ? " non-DICOM" : "", plural(list->n_files), other,
			    hint);
}
