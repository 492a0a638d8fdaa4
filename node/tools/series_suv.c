/* SPDX-License-Identifier: Apache-2.0 */
/* series_suv.c - see node/tools/series_suv.h. */
#include "node/tools/series_suv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/sinogram/sinogram.h"

#define TAG_SUV_TYPE DICOM_TAG(0x0054, 0x1006)

struct header_of {
	struct pet_facts facts;
	char units[17], suv_type[17], decay[17];
};

static int __attribute__((format(printf, 2, 3))) no_factor(struct series_suv *suv, const char *fmt, ...)
{
	va_list list;

	va_start(list, fmt);
	vsnprintf(suv->reason, sizeof(suv->reason), fmt, list);
	va_end(list);
	suv->factor = NAN;
	return 0;
}

static void read_header(const struct dicom_item *root, struct header_of *h)
{
	*h = (struct header_of){0};
	pet_facts_read(root, &h->facts);
	dicom_get_text(root, TAG_UNITS, h->units, sizeof(h->units), NULL);
	dicom_get_text(root, TAG_SUV_TYPE, h->suv_type, sizeof(h->suv_type), NULL);
	dicom_get_text(root, TAG_DECAY_CORRECTION, h->decay, sizeof(h->decay), NULL);
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Name an attribute in which two objects of the series differ; NULL: none. */
static const char *differing_attribute(const struct header_of *a, const struct header_of *b)
{
	const struct pet_facts *f = &a->facts, *g = &b->facts;

	if (strcmp(a->units, b->units) != 0 || strcmp(a->suv_type, b->suv_type) != 0)
		return "Units (0054,1001) or SUV Type (0054,1006)";
	if (strcmp(a->decay, b->decay) != 0)
		return "Decay Correction (0054,1102)";
	if (!same_number(f->weight, g->weight))
		return "Patient's Weight (0010,1030)";
	if (!same_number(f->dose, g->dose) || !same_number(f->half_life, g->half_life) || strcmp(f->injected, g->injected) != 0)
		return "Radiopharmaceutical Information (0054,0016)";
	if (strcmp(f->series_date, g->series_date) != 0 || strcmp(f->series_time, g->series_time) != 0)
		return "Series Date or Time (0008,0021), (0008,0031)";
	return strcmp(f->corrected, g->corrected) != 0 ? "Corrected Image (0028,0051)" : NULL;
}

/* Is a word one of those between backslashes? */
static bool lists_word(const char *all, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = all; at; at = strchr(at, '\\')) {
		at += *at == '\\';
		if (!strncmp(at, word, n) && (at[n] == '\0' || at[n] == '\\'))
			return true;
	}
	return false;
}

/* Compute seconds from the injection to the time to which the decay is corrected; below 0: it was during the acquisition, which
 * ends at `end`. NaN: unknown, the reason is set. */
static double elapsed_seconds(const struct header_of *h, double latest_start, double end, struct series_suv *suv)
{
	const struct pet_facts *f = &h->facts;
	double start, injected = 0;
	enum pet_injection known;

	if (!pet_facts_moment(f->series_date, f->series_time, &start))
		return no_factor(suv, "no Series Date and Time (0008,0021), (0008,0031), to which the decay is corrected"), NAN;
	if (!(start <= latest_start)) /* also when it is unknown */
		return no_factor(
			       suv,
			       "Series Time %s (0008,0031) is not before the acquisition of every slice, so it is not known to which "
			       "time the decay is corrected",
			       f->series_time),
		       NAN;
	known = pet_facts_injection(f, start, end, &injected);
	switch (known) {
	case PET_INJECTION_NO_ZONE:
		return no_factor(
			       suv,
			       "the time of injection %s (0018,1078) is in a time zone, and that of the object (0008,0201) is not "
			       "known",
			       f->injected),
		       NAN;
	case PET_INJECTION_NONE:
	case PET_INJECTION_INVALID:
		return no_factor(suv, "no time of injection (0018,1078) or (0018,1072)"), NAN;
	case PET_INJECTION_NO_DAY:
	case PET_INJECTION_KNOWN:
		break;
	}
	if (injected > start && !(injected <= end))
		return no_factor(suv, "the time of injection %s is after the start of the scan, %s %s%s", f->injected,
				 f->series_date, f->series_time,
				 known == PET_INJECTION_NO_DAY ? "; its day needs (0018,1078)" : ""),
		       NAN;
	return start - injected;
}

static int compute_factor(const struct header_of *h, double latest_start, double end, struct series_suv *suv)
{
	const struct pet_facts *f = &h->facts;
	double seconds = 0;

	suv->factor = NAN;
	if (!strcmp(h->units, "GML")) {
		if (h->suv_type[0] && strcmp(h->suv_type, "BW") != 0)
			return no_factor(suv, "the values are SUV of type %s (0054,1006), not by body weight", h->suv_type);
		suv->factor = 1;
		return 0;
	}
	if (strcmp(h->units, "BQML") != 0)
		return no_factor(suv, "Units (0054,1001) are \"%s\"; needed: BQML", h->units);
	if (!lists_word(f->corrected, "ATTN") || !lists_word(f->corrected, "DECY"))
		return no_factor(suv, "Corrected Image (0028,0051) does not have both ATTN and DECY");
	if (!pet_facts_suv(f, suv->reason, sizeof(suv->reason)))
		return 0; /* factor is NaN */
	if (!strcmp(h->decay, "START")) {
		if (!(f->half_life > 0))
			return no_factor(suv, "no Radionuclide Half Life (0018,1075)");
		seconds = elapsed_seconds(h, latest_start, end, suv);
		if (isnan(seconds))
			return 0;
		if (seconds > PET_HALF_LIVES_MOST * f->half_life)
			return no_factor(suv, "the injection at %s is %.0f half-lives before the scan", f->injected,
					 seconds / f->half_life);
	} else if (strcmp(h->decay, "ADMIN") != 0) {
		return no_factor(suv, "Decay Correction (0054,1102) is \"%s\"; needed: START or ADMIN", h->decay);
	}
	suv->factor = 1000 * f->weight / (f->dose * (seconds != 0 ? exp2(-seconds / f->half_life) : 1));
	return 0;
}

int series_suv_read(char *const *paths, size_t n, struct series_suv *ret, struct err *err)
{
	struct header_of first = {0}, other;
	double earliest = INFINITY, end = -INFINITY, moment;
	const char *differs = NULL;

	*ret = (struct series_suv){.factor = NAN};
	for (size_t i = 0; i < n; i++) {
		struct dicom_file *file = NULL;
		int rc = dicom_open(paths[i], &file, err);

		if (rc < 0)
			return err_prefix(err, "%s", file_name(paths[i]));
		read_header(dicom_root(file), i == 0 ? &first : &other);
		dicom_close(file);
		if (i > 0 && !differs)
			differs = differing_attribute(&first, &other);
		if (!pet_facts_moment((i ? &other : &first)->facts.acquisition_date,
				      (i ? &other : &first)->facts.acquisition_time, &moment))
			moment = NAN;
		end = fmax(end, moment + (i ? &other : &first)->facts.duration);
		earliest = isnan(moment) || isnan(earliest) ? NAN : fmin(earliest, moment);
	}
	if (differs)
		return no_factor(ret, "the objects of the series differ in %s", differs);
	return compute_factor(&first, earliest, end, ret);
}
