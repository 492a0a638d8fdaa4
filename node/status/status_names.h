/* SPDX-License-Identifier: Apache-2.0 */
/* Patients' names for the status page, if the configuration enables them. They are stored only in the images and, while the page
 * runs, in memory. When a case is to be shown, a separate process reads the header of an image of it (node/status/cmd_names.c):
 * if a header crashes that process, only this name stays unknown.
 */
#ifndef TOMONODE_NODE_STATUS_NAMES_H
#define TOMONODE_NODE_STATUS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/jobs/patients.h"

struct status;

#define STATUS_NAMES_MAX 8192	     /* maximum number of names kept: of the newest cases */
#define STATUS_NAMES_PENDING_MAX 128 /* maximum number of requests to one process */

struct status_name_request {
	int64_t job;	/* negative: of a header of such a case */
	char file[128]; /* relative to the spool */
};

struct status_name { /* reply of the process */
	int64_t job;
	char name[200], id[72], issuer[72], birth[24]; /* in UTF-8, or the bytes of the image; "": unknown */
	char file[128];				       /* that was read */
};

struct status_names {
	struct status_name *list; /* by job */
	size_t n, capacity;
	struct status_name_request pending[STATUS_NAMES_PENDING_MAX]; /* job 0: the reply was received */
	size_t n_pending;
	int fd;	      /* socket to the process; -1: none runs */
	pid_t pid;    /* of the process */
	double until; /* on clock_seconds(): when the process is killed */
};

void status_names_begin(struct status_names *names);
void status_names_end(struct status_names *names);
/* If names are unknown, start a process that reads some of them, those of shown cases first. status_names_receive() reads its
 * replies. */
void status_names_request(struct status_names *names, const struct status *s);
/* Read the available replies; stop the process after its last reply or at `until`. Call it when `fd` is readable, and regularly.
 */
void status_names_receive(struct status_names *names);
size_t status_names_unread(const struct status_names *names, const struct status *s); /* number of cases whose name can be read */
const struct status_name *status_names_find(const struct status_names *names, int64_t job); /* NULL: not known (yet) */
/* Find the patient of a case: of the image whose header its result has, if a person chose one; else of its first image. NULL: not known
 * yet, or the case has no patient, because its images name several (patients_are_mixed()). */
const struct status_name *status_names_of(const struct status_names *names, const struct job_view *v);
/* Return the k-th patient that was read of a job, whether or not it is one of its patients now, as the next function. NULL: not read. */
const struct status_name *status_names_read(const struct status_names *names, int64_t job, size_t k);
/* Return the k-th patient that is known of a case, from 0 to PATIENTS_NAMED_MAX: the others are those that its images name, too. NULL: not
 * known. */
const struct status_name *status_names_each(const struct status_names *names, const struct job_view *v, size_t k);
#define STATUS_SEEN_SIZE 33

/* Write a digest of what a person sees who is asked whether these are one patient. of: their headers, which are shown; NULL: they are
 * not. */
void status_names_seen(const struct patients_named *named, const struct status_name *const *of, char ret[STATUS_SEEN_SIZE]);
/* Find the headers of the patients that a case is held for. false: not all are read yet. */
bool status_names_headers(const struct status_names *names, const struct job_view *v, const struct patients_named *named,
			  const struct status_name *ret[PATIENTS_NAMED_MAX]);

#endif
