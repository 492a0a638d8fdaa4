/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/audit_files.h"

#include <stdlib.h>
#include <string.h>

#include "dicom/core/dataset.h"
#include "dicom/object/dicom_tags.h"

static struct audit_study *study_of(struct audit_files *a, const char *uid, const char *patient)
{
	struct audit_study *list, added = {0};

	for (size_t i = 0; i < a->n; i++)
		if (!strcmp(a->list[i].study, uid) && !strcmp(a->list[i].patient, patient))
			return &a->list[i];
	list = realloc(a->list, (a->n + 1) * sizeof(list[0]));
	if (!list)
		return NULL;
	a->list = list;
	added.study = strdup(uid);
	added.patient = strdup(patient);
	if (!added.study || !added.patient) {
		free((char *)added.study);
		free((char *)added.patient);
		return NULL;
	}
	list[a->n] = added;
	return &list[a->n++];
}

void audit_files_add(struct audit_files *a, const char *path)
{
	char uid[DICOM_UID_SIZE] = "", patient[65] = "", sop_class[DICOM_UID_SIZE] = "";
	struct dicom_file *file = NULL;
	struct audit_study *study;

	if (dicom_open(path, &file, NULL) < 0)
		return;
	dicom_get_text(dicom_root(file), TAG_STUDY_INSTANCE_UID, uid, sizeof(uid), NULL);
	dicom_get_text(dicom_root(file), TAG_PATIENT_ID, patient, sizeof(patient), NULL);
	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_close(file);
	study = study_of(a, uid, patient);
	if (study)
		audit_study_count(study, sop_class, 1);
}

void audit_files_clear(struct audit_files *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free((char *)a->list[i].study); /* allocated in study_of() */
		free((char *)a->list[i].patient);
	}
	free(a->list);
	memset(a, 0, sizeof(*a));
}

void audit_files_exported(const struct series_files *from, const char *to, int code)
{
	struct audit_files files = {0};

	if (!audit_is_on())
		return;
	for (size_t v = 0; v < from->n; v++)
		for (size_t i = 0; i < from->list[v].n; i++)
			audit_files_add(&files, from->list[v].paths[i]);
	audit_exported(to, files.list, files.n, code);
	audit_files_clear(&files);
}
