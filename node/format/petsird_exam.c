/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_exam.c - the examination: study, start, patient and its orientation, radiopharmaceutical. The names of fields are those
 * of schema 0.10 and later; 0.9 has the start only. */
#include "node/format/petsird_internal.h"

#include <stddef.h>
#include <stdio.h>

#define MEGABECQUEREL 1e6
#define CODE_SIZE 32
#define UID_SIZE 65

static int store_moment(struct petsird *p, const struct yardl_type *t, void *to)
{
	int64_t nanoseconds = 0;
	int rc = yardl_read_integer(&p->in, t, &nanoseconds);

	if (rc == 0)
		*(double *)to = (double)nanoseconds * 1e-9;
	return rc;
}

static int store_dose(struct petsird *p, const struct yardl_type *t, void *to)
{
	int rc = yardl_read_float(&p->in, t, to);

	*(double *)to *= MEGABECQUEREL;
	return rc;
}

static int store_uid(struct petsird *p, const struct yardl_type *t, void *to)
{
	return yardl_read_text(&p->in, t, to, UID_SIZE);
}

static int store_code(struct petsird *p, const struct yardl_type *t, void *to)
{
	return yardl_read_text(&p->in, t, to, CODE_SIZE);
}

#define AT(member) offsetof(struct petsird_exam, member)

static const struct petsird_field code[] = {{"codeValue", .store = store_code}, {0}};
static const struct petsird_field patient[] = {{"patientsWeight", .store = petsird_store_float, .at = AT(weight)},
					       {"patientsSize", .store = petsird_store_float, .at = AT(size)},
					       {0}};
static const struct petsird_field orientation[] = {{"patientOrientationModifierCodeSequence", .of = code, .at = AT(lies)},
						   {"patientGantryRelationshipCodeSequence", .of = code, .at = AT(enters)},
						   {0}};
static const struct petsird_field drug[] = {{"radionuclideTotalDose", .store = store_dose, .at = AT(dose)},
					    {"radiopharmaceuticalStartDateTime", .store = store_moment, .at = AT(injected)},
					    {"radionuclideCodeSequence", .of = code, .at = AT(nuclide)},
					    {0}};

static int read_radiopharmaceuticals(struct petsird *p, const struct yardl_type *t)
{
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = i == 0 ? petsird_read_record(p, t->of[0], drug, &p->header.exam) : yardl_skip(&p->in, t->of[0]);
	p->header.exam.n_radiopharmaceuticals = (size_t)n;
	return rc;
}

static int store_signal_type(struct petsird *p, const struct yardl_type *t, void *to)
{
	const char *symbol = NULL;
	int64_t value = 0;
	int rc = yardl_read_integer(&p->in, t, &value);

	if (rc == 0)
		symbol = yardl_symbol(&p->schema, t, value);
	snprintf(to, sizeof(p->header.exam.signal[0].type), "%s", symbol ? symbol : "");
	return rc;
}

static int store_signal_id(struct petsird *p, const struct yardl_type *t, void *to)
{
	int64_t id = 0;
	int rc = yardl_read_integer(&p->in, t, &id);

	*(uint32_t *)to = (uint32_t)id;
	return rc;
}

/* Further signals are skipped: petsird_marks() then refuses the file. */
static int read_signals(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {
		{"type", .store = store_signal_type, .at = offsetof(struct petsird_signal, type)},
		{"id", .store = store_signal_id, .at = offsetof(struct petsird_signal, id)},
		{0}};
	size_t *n = &p->header.exam.n_signals;
	uint64_t count = 0;
	int rc = yardl_read_list(&p->in, t, &count);

	p->header.exam.all_signals = count;
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		if (*n == PETSIRD_SIGNALS_MAX) {
			rc = yardl_skip(&p->in, t->of[0]);
			continue;
		}
		rc = petsird_read_record(p, t->of[0], fields, &p->header.exam.signal[*n]);
		*n += rc == 0;
	}
	return rc;
}

const struct petsird_field petsird_exam[] = {
	{"studyInstanceUID", .store = store_uid, .at = AT(study)},
	{"frameOfReferenceUID", .store = store_uid, .at = AT(frame_of_reference)},
	{"startOfAcquisition", .store = store_moment, .at = AT(start)},
	{"patient", .of = patient},
	{"patientOrientation", .of = orientation},
	{"radiopharmaceuticals", read_radiopharmaceuticals},
	{"externalSignals", read_signals},
	{0},
};
