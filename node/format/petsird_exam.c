/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_exam.c - the examination: study, start, patient and its orientation, radiopharmaceutical. The names of fields are those
 * of schema 0.10 and later; 0.9 has the start only. */
#include "node/format/petsird_internal.h"

#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MEGABECQUEREL 1e6

static int read_moment(struct petsird *p, const struct yardl_type *t, double *ret)
{
	int64_t nanoseconds = 0;
	int rc = yardl_read_choice(&p->in, t, &t);

	if (rc < 0 || !t)
		return rc;
	rc = yardl_read_integer(&p->in, t, &nanoseconds);
	if (rc == 0)
		*ret = (double)nanoseconds * 1e-9;
	return rc;
}

static int read_start(struct petsird *p, const struct yardl_type *t)
{
	return read_moment(p, t, &p->header.exam.start);
}

static int read_weight(struct petsird *p, const struct yardl_type *t)
{
	return yardl_read_float(&p->in, t, &p->header.exam.weight);
}

static int read_size(struct petsird *p, const struct yardl_type *t)
{
	return yardl_read_float(&p->in, t, &p->header.exam.size);
}

static int read_patient(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"patientsWeight", read_weight, false}, {"patientsSize", read_size, false}};

	return petsird_read_record(p, t, fields, COUNT(fields));
}

static int read_lying_code(struct petsird *p, const struct yardl_type *t)
{
	return yardl_read_text(&p->in, t, p->header.exam.lies, sizeof(p->header.exam.lies));
}

static int read_entering_code(struct petsird *p, const struct yardl_type *t)
{
	return yardl_read_text(&p->in, t, p->header.exam.enters, sizeof(p->header.exam.enters));
}

static int read_uid(struct petsird *p, const struct yardl_type *t, char ret[65])
{
	int rc = yardl_read_choice(&p->in, t, &t);

	return rc == 0 && t ? yardl_read_text(&p->in, t, ret, 65) : rc;
}

static int read_lies(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"codeValue", read_lying_code, false}};

	return petsird_read_record(p, t, fields, COUNT(fields));
}

static int read_enters(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"codeValue", read_entering_code, false}};

	return petsird_read_record(p, t, fields, COUNT(fields));
}

static int read_orientation(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"patientOrientationModifierCodeSequence", read_lies, false},
						      {"patientGantryRelationshipCodeSequence", read_enters, false}};
	int rc = yardl_read_choice(&p->in, t, &t);

	return rc == 0 && t ? petsird_read_record(p, t, fields, COUNT(fields)) : rc;
}

static int read_study(struct petsird *p, const struct yardl_type *t)
{
	return read_uid(p, t, p->header.exam.study);
}

static int read_frame_of_reference(struct petsird *p, const struct yardl_type *t)
{
	return read_uid(p, t, p->header.exam.frame_of_reference);
}

static int read_dose(struct petsird *p, const struct yardl_type *t)
{
	int rc = yardl_read_float(&p->in, t, &p->header.exam.dose);

	p->header.exam.dose *= MEGABECQUEREL;
	return rc;
}

static int read_injected(struct petsird *p, const struct yardl_type *t)
{
	return read_moment(p, t, &p->header.exam.injected);
}

static int read_code(struct petsird *p, const struct yardl_type *t)
{
	return yardl_read_text(&p->in, t, p->header.exam.nuclide, sizeof(p->header.exam.nuclide));
}

static int read_nuclide(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"codeValue", read_code, false}};

	return petsird_read_record(p, t, fields, COUNT(fields));
}

static int read_radiopharmaceuticals(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"radionuclideTotalDose", read_dose, false},
						      {"radiopharmaceuticalStartDateTime", read_injected, false},
						      {"radionuclideCodeSequence", read_nuclide, false}};
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = i == 0 ? petsird_read_record(p, t->of[0], fields, COUNT(fields)) : yardl_skip(&p->in, t->of[0]);
	p->header.exam.n_radiopharmaceuticals = (size_t)n;
	return rc;
}

static int read_signal_type(struct petsird *p, const struct yardl_type *t)
{
	struct petsird_signal *s = &p->header.exam.signal[p->header.exam.n_signals];
	const char *symbol = NULL;
	int64_t value = 0;
	int rc = yardl_read_integer(&p->in, t, &value);

	if (rc == 0)
		symbol = yardl_symbol(&p->schema, t, value);
	snprintf(s->type, sizeof(s->type), "%s", symbol ? symbol : "");
	return rc;
}

static int read_signal_id(struct petsird *p, const struct yardl_type *t)
{
	int64_t id = 0;
	int rc = yardl_read_integer(&p->in, t, &id);

	p->header.exam.signal[p->header.exam.n_signals].id = (uint32_t)id;
	return rc;
}

/* Further signals are skipped: petsird_marks() then refuses the file. */
static int read_signals(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"type", read_signal_type, false}, {"id", read_signal_id, false}};
	size_t *n = &p->header.exam.n_signals;
	uint64_t count = 0;
	int rc = yardl_read_list(&p->in, t, &count);

	p->header.exam.all_signals = count;
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		if (*n == PETSIRD_SIGNALS_MAX) {
			rc = yardl_skip(&p->in, t->of[0]);
			continue;
		}
		rc = petsird_read_record(p, t->of[0], fields, COUNT(fields));
		*n += rc == 0;
	}
	return rc;
}

int petsird_read_exam(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {
		{"studyInstanceUID", read_study, false},	 {"frameOfReferenceUID", read_frame_of_reference, false},
		{"startOfAcquisition", read_start, false},	 {"patient", read_patient, false},
		{"patientOrientation", read_orientation, false}, {"radiopharmaceuticals", read_radiopharmaceuticals, false},
		{"externalSignals", read_signals, false}};
	int rc = yardl_read_choice(&p->in, t, &t);

	return rc == 0 && t ? petsird_read_record(p, t, fields, COUNT(fields)) : rc;
}
