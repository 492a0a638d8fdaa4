/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the node: one pure function of facts, whose list /health, the status page, the metrics, `tomonode list`,
 * `tomonode check` and the log show. A new fact and its problem are added here only; node/jobs/node_facts.h collects the facts.
 */
#ifndef TOMONODE_NODE_NODE_PROBLEMS_H
#define TOMONODE_NODE_NODE_PROBLEMS_H

#include "node/jobs/destination_state.h"

#define NODE_PROBLEMS_MAX 64
#define NODE_CERTIFICATES_MAX 48
#define NODE_DEVICES_MAX 48
#define NODE_PROCESSES_MAX 16
#define NODE_ASSOCIATIONS_MAX 16
#define NODE_CERTIFICATE_DAYS 30 /* days before the end of a certificate from which it is a problem */
#define NODE_CRL_DAYS 1		 /* the same for a revocation list, which its issuer renews every few days */
#define NODE_REPORT_SECONDS 5.0	 /* the manager writes its facts at once, and tries again every few seconds */
#define NODE_SILENT_SECONDS 30.0 /* without a sign of life, a process that gives one every few seconds is a problem */
#define NODE_INDEX_SECONDS 120.0 /* time after which an instance that waits for the indexer is a problem */

/* A certificate or a revocation list of the configuration. */
struct node_certificate {
	char whose[CONFIG_NAME_SIZE + 16]; /* "listener 'secure'" */
	char file[CONFIG_PATH_SIZE];
	bool listener;	    /* of a listener, not of a destination */
	bool crl;	    /* a revocation list */
	double from, until; /* valid, s since the epoch; from of a revocation list: 0 */
	char unusable[400]; /* reason why the files of `whose` cannot be used; "": they can */
};

#define NODE_SPACE_TRIES 3 /* attempts without space after which it is a problem: half a minute */

struct node_device {
	char name[64], reason[240]; /* reason: of a disabled device */
	bool disabled;
	bool pilot;	/* of a pilot on another machine */
	bool connected; /* of a pilot: it is; false: the slot waits for one */
};

/* A long-lived process that is stopped or gives no sign of life. */
struct node_process {
	char role[16];
	long pid;
	bool stopped;  /* by a signal (SIGSTOP) or a debugger */
	double silent; /* s since its last sign of life */
};

/* Associations of one sender that ended for the same reason without an object, or in which a class was refused. */
struct node_association {
	double last; /* time of the newest, whole s since the epoch */
	long count;
	char calling[17]; /* AE title; "": none was received */
	char host[64];
	char reason[400];
};

struct node_unresolved {
	char destination[CONFIG_NAME_SIZE], host[256], reason[160];
};

/* Pilots that run as Slurm jobs. */
struct node_cluster {
	bool local;			  /* devices of this machine reconstruct, too */
	bool used;			  /* a report was received */
	char state[12];			  /* up, down, busy, refuses, draining, full, failing; "": not known yet */
	char text[300];			  /* a sentence about it; "": up */
	int pending, running, idle, busy; /* jobs in the queue; jobs that run, of which are connected: idle and busy */
	uint64_t submitted, requeued;	  /* since the start of the node */
	uint64_t started;		  /* jobs that left the queue, and their times in it, s */
	double queued_seconds;
};

/* Facts that only the manager can determine; it writes them to SPOOL/node.json. */
struct manager_facts {
	bool receiver;		     /* a receiver runs */
	char receiver_fault[300];    /* why it cannot accept connections; "": it can */
	char receiver_limit[300];    /* why it can serve fewer associations than configured; "": it cannot */
	char receiver_full[300];     /* why it rejects associations for want of places; "": it does not */
	int64_t file_limit;	     /* bytes of the largest file that it may write (RLIMIT_FSIZE); 0: not limited */
	char incoming[300];	     /* why no file can be written in incoming/; "": the last attempt succeeded */
	char results[300];	     /* why no result can be written in work/ or outbox/; "": it can */
	char audit[200];	     /* why audit messages wait in the queue; "": they do not */
	char journal_damage[200];    /* first finding of the journal's check; "": none */
	char journal_unchecked[200]; /* why that check did not come to its end; "": it did, or goes on */
	char case_unread[300];	     /* which settled case cannot be read, and why, so that cases of its exam wait; "": none */
	bool journal_replaced;	     /* journal.db is not the file that the node opened at its start */
	char journal_error[300];     /* why the manager cannot open the journal; "": it is open */
	char reload[300];	     /* why the last reload was refused; "": it was not */
	char page[300];		     /* why the status page is not served; "": it is, or is switched off */
	struct node_process processes[NODE_PROCESSES_MAX];
	size_t n_processes;
	struct node_device devices[NODE_DEVICES_MAX];
	size_t n_devices;
	struct node_certificate certificates[NODE_CERTIFICATES_MAX];
	size_t n_certificates;
	struct node_unresolved unresolved[DESTINATION_STATES_MAX];
	size_t n_unresolved;
	struct node_association associations[NODE_ASSOCIATIONS_MAX]; /* the newest first; shown, no problem of the node */
	size_t n_associations;
	struct node_cluster cluster;
	char pilots_unheard[300]; /* why pilots cannot connect to cluster.port; "": they can, or it is not used */
	char alerts_fault[300];	  /* why the webhook does not take alerts; "": it does, or there is none */
	char pilot_refused[300];  /* which pilot was refused a short time ago, and why; "": none */
};

struct node_facts {
	double now; /* s since the epoch */
	char spool[256];
	bool expect_running; /* a node that does not run is a problem: false in `check` */
	bool runs;	     /* a process holds SPOOL/node.lock */
	long manager;	     /* process id of the manager; 0: unknown */
	bool manager_stopped;
	double manager_silent; /* s since its last sign of life; 0: unknown */
	bool reported;	       /* `from_manager` was read */
	double report_age;     /* s for which the manager could not write its facts, at its last sign of life */
	struct manager_facts from_manager;
	char journal_error[300]; /* why the journal cannot be read; "": it can, or was not tried */
	bool journal_missing;	 /* it cannot be read because there is none yet */
	uint64_t unindexed;	 /* instances that wait for the indexer */
	double unindexed_for;	 /* s for which the oldest of them waits */
	char disk_error[120];
	bool no_inodes;				/* of the disk */
	uint64_t disk_free, disk_size, reserve; /* bytes */
	uint64_t orphans;
	size_t attention; /* cases that a person has to act on */
	size_t ready;	  /* cases that wait for a device */
	size_t no_space;  /* cases that found no disk space in NODE_SPACE_TRIES attempts */
	struct destination_state destinations[DESTINATION_STATES_MAX];
	size_t n_destinations;
	const struct config *config; /* borrowed; for routes */
};

struct node_problem {
	bool critical;		     /* the node does not do its work: /health replies 503 */
	char id[32];		     /* label of the metric and of the log */
	char subject[200];	     /* what it is about, where there may be several of one id: the name of a device; else "" */
	char text[700], remedy[400]; /* sentences: what is wrong; what a person can do ("": nothing) */
};

struct node_problems {
	struct node_problem list[NODE_PROBLEMS_MAX];
	size_t n;
};

/* Compute the list; critical problems first. Pure. */
void node_problems_find(const struct node_facts *facts, struct node_problems *ret);
bool node_problems_are_critical(const struct node_problems *p);
/* Write text and remedy as one line. */
void node_problem_line(const struct node_problem *p, char *ret, size_t size);

/* The problem of one certificate or revocation list; false: there is none. */
bool node_problem_of_certificate(const struct node_certificate *c, double now, struct node_problem *ret);
/* Return true if the certificate has expired already; false: it will expire soon. */
bool node_problem_is_over(const struct node_problem *p);
/* Return true if `check` fails because of the problem: a certificate that peers refuse. */
bool node_problem_is_of_configuration(const struct node_problem *p);

#endif
