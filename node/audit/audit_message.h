/* SPDX-License-Identifier: Apache-2.0 */
/* Audit messages of DICOM PS3.15 A.5 as XML text. Pure: no time, no files, no journal.
 *
 * Every text may come from outside (AE titles, identifiers, reasons): characters that XML does not allow are written as \xNN, so
 * that no value can end an attribute, add an element or break a line. A message is one line.
 */
#ifndef TOMONODE_NODE_AUDIT_MESSAGE_H
#define TOMONODE_NODE_AUDIT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

/* A coded value: code, coding scheme, meaning. */
struct audit_code {
	const char *code, *system, *meaning;
};

/* PS3.16 annex D; PS3.15 A.5.3 defines the use of each. */
extern const struct audit_code audit_code_application, audit_code_start, audit_code_stop, audit_code_begin,
	audit_code_transferred, audit_code_accessed, audit_code_deleted, audit_code_patient_record, audit_code_procedure,
	audit_code_export, audit_code_import, audit_code_alert, audit_code_node_authentication, audit_code_restricted,
	audit_code_software, audit_code_network_entry, audit_code_attach, audit_code_detach;
extern const struct audit_code audit_role_application, audit_role_launcher, audit_role_source, audit_role_destination,
	audit_role_source_media, audit_role_destination_media;

enum audit_outcome {
	AUDIT_SUCCESS = 0,
	AUDIT_MINOR = 4,   /* will be tried again, or was refused */
	AUDIT_SERIOUS = 8, /* failed permanently */
};

struct audit_party {		       /* a participant */
	const char *user;	       /* a process number, an AE title, a name, a path */
	const char *aet;	       /* NULL: none */
	const char *name;	       /* readable name; NULL: none */
	const char *host;	       /* name or numeric address; NULL: none */
	const struct audit_code *role; /* NULL: none */
	bool requestor;
	bool media; /* `user` is the URI of a file or folder, for the media roles */
};

#define AUDIT_CLASSES_MAX 8
struct audit_study {
	const char *study;   /* Study Instance UID; "" or NULL: not known */
	const char *patient; /* Patient ID; "" or NULL: not known */
	size_t n_classes;
	struct audit_class {
		char uid[65];
		size_t instances;
	} classes[AUDIT_CLASSES_MAX];
};

struct audit_message {
	const struct audit_code *event, *type; /* type NULL: none */
	char action;			       /* C, R, U, D, E */
	enum audit_outcome outcome;
	const char *reason; /* of a failure; NULL: none */
	double time;	    /* s since the epoch */
	const char *site;   /* "" : none */
	const char *source; /* the reporting process */
	const struct audit_party *parties;
	size_t n_parties;
	const struct audit_study *studies; /* each is written as a study and a patient */
	size_t n_studies;
	const char *alert; /* of a security alert: the node concerned; NULL: none */
};

/* Write the XML declaration and an AuditMessage element to *ret_text. The caller frees it. */
int audit_message_write(const struct audit_message *m, char **ret_text, struct err *err);

/* Add instances of a class. Classes beyond the size of the table are counted with the last one. */
void audit_study_count(struct audit_study *study, const char *sop_class, size_t instances);

#endif
