/* SPDX-License-Identifier: Apache-2.0 */
/* report_codes.c - explain the defined terms of DICOM (PS3.3 C.8.9.1, C.7.3.1.1.2) that a report has. */
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/report/report_internal.h"

static const struct {
	uint32_t tag;
	const char *code, *meaning;
} codes[] = {
	{TAG_CORRECTED_IMAGE, "DECY", "decay"},
	{TAG_CORRECTED_IMAGE, "ATTN", "attenuation"},
	{TAG_CORRECTED_IMAGE, "SCAT", "scatter"},
	{TAG_CORRECTED_IMAGE, "DTIM", "dead time"},
	{TAG_CORRECTED_IMAGE, "MOTN", "motion of the gantry"},
	{TAG_CORRECTED_IMAGE, "PMOT", "motion of the patient"},
	{TAG_CORRECTED_IMAGE, "CLN", "lost counts of gates"},
	{TAG_CORRECTED_IMAGE, "RAN", "randoms"},
	{TAG_CORRECTED_IMAGE, "RADL", "unequal radial bins"},
	{TAG_CORRECTED_IMAGE, "DCAL", "calibrated with a dose calibrator"},
	{TAG_CORRECTED_IMAGE, "NORM", "efficiencies of the detectors"},
	{TAG_DECAY_CORRECTION, "NONE", "none"},
	{TAG_DECAY_CORRECTION, "START", "to the start of the acquisition"},
	{TAG_DECAY_CORRECTION, "ADMIN", "to the injection"},
	{TAG_RANDOMS_CORRECTION_METHOD, "NONE", "none"},
	{TAG_RANDOMS_CORRECTION_METHOD, "DLYD", "from delayed coincidences"},
	{TAG_RANDOMS_CORRECTION_METHOD, "SING", "from single events"},
	{TAG_PATIENT_POSITION, "HFS", "head first, supine"},
	{TAG_PATIENT_POSITION, "HFP", "head first, prone"},
	{TAG_PATIENT_POSITION, "HFDR", "head first, on the right side"},
	{TAG_PATIENT_POSITION, "HFDL", "head first, on the left side"},
	{TAG_PATIENT_POSITION, "FFS", "feet first, supine"},
	{TAG_PATIENT_POSITION, "FFP", "feet first, prone"},
	{TAG_PATIENT_POSITION, "FFDR", "feet first, on the right side"},
	{TAG_PATIENT_POSITION, "FFDL", "feet first, on the left side"},
};

static const char *meaning_of(uint32_t tag, const char *code, size_t n)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].tag == tag && strlen(codes[i].code) == n && !strncmp(codes[i].code, code, n))
			return codes[i].meaning;
	return NULL;
}

void report_explain(uint32_t tag, const char *values, char *ret_text, size_t size)
{
	size_t at = 0;

	ret_text[0] = '\0';
	if (tag != TAG_CORRECTED_IMAGE) { /* one value, which may have blanks */
		const char *meaning = meaning_of(tag, values, strlen(values));

		snprintf(ret_text, size, meaning ? "%s (%s)" : "%s", values, meaning);
		return;
	}
	while (*values && at < size) {
		size_t n = strcspn(values, " ");
		const char *meaning = meaning_of(tag, values, n);

		if (n > 0)
			at += (size_t)snprintf(ret_text + at, size - at, meaning ? "%s%.*s (%s)" : "%s%.*s", at ? ", " : "",
					       (int)n, values, meaning);
		values += n + (values[n] == ' ');
	}
}
