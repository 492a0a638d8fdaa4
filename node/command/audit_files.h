/* SPDX-License-Identifier: Apache-2.0 */
/* Collect the studies and patients whose images a command reads or writes, from DICOM headers, for the audit trail. */
#ifndef TOMONODE_NODE_AUDIT_FILES_H
#define TOMONODE_NODE_AUDIT_FILES_H

#include "node/audit/audit.h"
#include "node/tools/series_files.h"

struct audit_files { /* starts as {0} */
	struct audit_study *list;
	size_t n;
};

/* Add a file to the count of its study. A file that cannot be read is ignored: the command itself reports the error. */
void audit_files_add(struct audit_files *a, const char *path);
void audit_files_clear(struct audit_files *a);
/* Write that these images were exported to a file or folder; code: exit code of the command. */
void audit_files_exported(const struct series_files *from, const char *to, int code);

#endif
