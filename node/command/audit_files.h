/* Whose images a command reads or writes, for the audit trail: studies and patients out of the headers of DICOM files. */
#ifndef TOMONODE_NODE_AUDIT_FILES_H
#define TOMONODE_NODE_AUDIT_FILES_H

#include "node/audit/audit.h"

struct audit_files { /* starts as {0} */
	struct audit_study *list;
	size_t n;
};

/* Count a file with its study. One that cannot be read adds nothing: the command itself says what is wrong with it. */
void audit_files_add(struct audit_files *a, const char *path);
void audit_files_clear(struct audit_files *a);

#endif
