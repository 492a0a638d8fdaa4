/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of the journal, as views in memory: built by replaying the events, kept up to date by replaying new ones. A settled job,
 * which is delivered or cleaned and has all its further results, is read when it is asked for (jobs_settled.h).
 *
 * The journal alone is authoritative; the view can be rebuilt from it at any time. To change a job, append an event to the
 * journal and refresh the view. A job whose events do not fit its state or do not parse becomes JOB_IMPOSSIBLE with the reason;
 * the other jobs are not affected.
 */
#ifndef TOMONODE_NODE_JOBS_H
#define TOMONODE_NODE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dicom/object/patient.h"
#include "node/config/config.h"
#include "node/jobs/assemble.h"
#include "node/jobs/jobs_index.h"
#include "node/jobs/other_result.h"
#include "node/store/job.h"
#include "node/store/journal.h"

enum send_state {
	SEND_DUE,     /* not stored at the destination; the next attempt is at `next` */
	SEND_DONE,    /* stored, and committed if storage commitment is required */
	SEND_REFUSED, /* refused permanently: no further attempt unless a person requests a retry */
	SEND_STORED,  /* stored; storage commitment is still to be requested or reported */
};

/* An object of the result: a tomosynthesis has one or a few, PET has one per slice. */
#define JOB_OBJECTS_MAX 16384
struct job_object {
	const char *file; /* relative to the spool; all strings are stored in the view's object_texts */
	const char *sop_instance, *sop_class, *series;
	const char *digest; /* of the file when it was written (digest_files()); "": none was recorded */
};

/* The response that refused an object of a destination. */
struct send_refusal {
	char status[8];
	char reason[240];
	bool unanswered; /* none refused: the reports of storage commitment did not come */
};

#define JOB_SENDS_MAX (2 * CONFIG_NAMES_MAX) /* destinations of the route, and their fallbacks */
struct job_send {			     /* the delivery of the result to one destination */
	char destination[CONFIG_NAME_SIZE];
	enum send_state state;	  /* SEND_DUE if any object is due, else SEND_STORED if any is, else SEND_REFUSED if any is, else
				     SEND_DONE */
	enum send_state *objects; /* state of each object of the result: n_objects of the view */
	int failures;		  /* number of transient failures since the last manual retry */
	double next;		  /* time before which there is no attempt, s since the epoch */
	double time;		  /* time of the last event, s since the epoch */
	double sent;		  /* when it last took an object, s since the epoch; 0: never */
	double since;		  /* time since which all attempts failed, s since the epoch; 0: the last one did not fail */
	bool alarm;	   /* a person must act: the failure has lasted for alarm_after, or needs a change of configuration */
	bool down;	   /* the last attempt got no association: other jobs wait until `next`, too */
	bool unconfigured; /* the destination was not in the configuration: wait until it is configured again */
	bool immediate;	   /* a person requested a retry: do not wait for other jobs */
	bool committed;	   /* the peer committed all objects of the last request, and nothing was sent since */
	bool replaced;	   /* the destination `fallback` gets the result instead: the job does not wait for this one */
	bool standby;	   /* this is a fallback, and the destination that it replaces is tried again */
	char fallback[CONFIG_NAME_SIZE];
	char transaction[65]; /* UID of the open storage commitment request; "": none */
	bool accepted;	      /* the peer accepted the request; its report is due before `until` (s since the epoch) */
	double until;
	int commit_tries; /* number of failed commitment requests since the last manual retry */
	char status[8];	  /* DICOM status of the last response, such as "0000"; "": no response. SEND_REFUSED: the refusal's */
	char reason[240];
	struct send_refusal *refusal; /* the first one since the last manual retry; NULL: none */
	const struct job_send
		*blocked_by; /* the send of another job that this one waits for; NULL: none. Set by delivery_queue_update() */
};

struct job_view {
	int64_t id, seq;			  /* seq: of its last event */
	struct jobs_link study_link, series_link; /* in the indexes of struct jobs */
	int64_t revision_of;			  /* id of the job that this one is a revision of; 0: none */
	int revision;				  /* number within the case: 1, 2, ... */
	/* Further results of a case, see node/jobs/case_results.h. */
	struct other_result other; /* which result of its images it makes */
	int64_t newer_of;	   /* id of the job that it was opened in place of, with newer objects under the same UIDs;
			      0: none */
	int sweep;		   /* number of the sweep of revision_of that it was opened for; 0: none */
	bool in_place;		   /* it was opened in place of revision_of, which is cancelled */
	bool corrects;		   /* a person said so: the newer objects may name another patient */
	bool again;		   /* it began when images of newer_of, which was cancelled, were sent again */
	char *further;		   /* of the first job: its other results, a JSON array; NULL: none */
	bool further_open;	   /* set by the manager: each of them has a job */
	enum job_state state;
	char kind[16], calling[17];
	char study[65], accession[65]; /* Study Instance UID, Accession Number of the first instance; "": not known */
	int priority;		       /* of the case, -1, 0 or 1: the highest is started first */
	char *key;		       /* of the case; "": its `opened` event is damaged */
	char *routing;		       /* JSON, see node/jobs/case_routing.h; NULL: none */
	double opened, changed, completed, started, reconstructed, finished; /* s since the epoch; 0: not yet */
	double seen;	       /* when jobs_observe_clock() first found it finished, s since the epoch; 0: not yet */
	int64_t completed_seq; /* seq of the `complete` event: jobs of equal priority start in this order */
	int64_t started_seq;   /* seq of the last `started` event: it identifies the attempt; 0: none yet */
	struct assemble members;
	/* For a CT series that the case needs, see node/jobs/companion.h. */
	char frame[65];	      /* Frame of Reference UID of its images; "": none */
	double acquired;      /* earliest acquisition, as in struct companion_series; 0: unknown */
	bool attenuated;      /* its own images have what the attenuation is corrected with */
	double waits_until;   /* it waits for such a series until then at the latest, s since the epoch; 0: it does not */
	bool lacks_companion; /* held because none has come */
	long companions;      /* number of images of the series that was joined */
	char *companion_text; /* which one, and why; NULL: none */
	long damaged;	      /* number of damaged instance files because of which the job is held; 0: not held for that reason */
	char protocol[CONFIG_NAME_SIZE], route[CONFIG_NAME_SIZE]; /* that were chosen last; "": not yet */
	struct job_send *sends;
	size_t n_sends;
	bool never_delivered;	     /* its files were removed without delivery, because a person had cancelled it */
	struct patient_set patients; /* of the instances, by digests of the key patients_key (node/jobs/patients.h) */
	uint32_t patients_key;
	int64_t last_instance; /* seq of the last `instance` event */
	int64_t same_patient;  /* seq of the `retry` event by which a person stated that it is one patient; 0: none */
	char *header;	       /* the file whose header counts then, relative to the spool; NULL: none */
	bool patients_differ;  /* held because the headers do not name one patient */
	bool patients_other;   /* those of another job do not; set with patients_differ */
	char pilot[64];	       /* ID of the pilot of the last attempt, which may return after its connection was lost; "": none */
	char device[96];       /* device of the last attempt; "": none yet */
	int attempts, crashes; /* number of attempts started, and of crashed workers, since the last manual retry */
	int space_tries;       /* number of these attempts that found no disk space */
	double not_before;     /* earliest time of the next attempt, s since the epoch */
	char reason[320];      /* why it is held, failed, cancelled, quarantined or waiting; "": none */
	struct job_object *objects; /* objects of the result, in the order in which they are sent */
	size_t n_objects;
	char *object_texts;
	char *warnings;			  /* sentences about the result; NULL: none */
	bool warned;			  /* they are not only standing ones (node/base/sentence.h) */
	bool recorded;			  /* settled, and recorded so in the journal since its last event */
	uint64_t study_read, series_read; /* jobs.forgotten when the settled jobs of its study, of its series were read */
	int64_t outbox_seq; /* seq of its last event when the manager last looked for an outbox that is not needed; 0: not yet */
};

/* What the settled jobs of a destination are still needed for. */
struct jobs_reached {
	char destination[CONFIG_NAME_SIZE];
	double reached; /* s since the epoch, last time when it answered without a failure since; 0: never */
	double sent;	/* s since the epoch, last time when it got an object; 0: never */
};

/* A settled job that could not be read, and which others it concerns: those with one of these hashes in their key. */
#define JOBS_LOST_MAX 8
struct jobs_lost {
	int64_t id;		/* 0: not known which */
	uint64_t study, series; /* 0: none */
	bool any;		/* it may be of any study and series */
	struct err why;
};

struct metrics;

struct jobs {
	struct job_view **list; /* those in memory, by id: all that are open, and settled ones that were asked for */
	size_t n, capacity;
	/* Those that may still need something, by id: all but the settled ones. A job is here from its first event;
	 * jobs_observe_clock() takes the settled ones out, an event puts it back. */
	struct job_view **open;
	size_t n_open, open_capacity;
	struct jobs_index by_study, by_series; /* of the key of a case */
	struct jobs_reached *reached;	       /* by the jobs that are not in `open` */
	size_t n_reached, reached_capacity;
	double observed; /* of the last jobs_observe_clock() */
	int64_t last_seq;
	/* See jobs_settled.h. */
	struct journal *journal; /* of the last jobs_refresh() of all jobs, borrowed; NULL: what is not in memory is not found */
	struct jobs_lost lost[JOBS_LOST_MAX]; /* that could not be read since that */
	size_t n_lost;
	uint64_t forgotten; /* number of calls of jobs_forget_settled(), from 1 */
	/* Borrowed; NULL: none. What jobs_refresh() of all jobs reads for the first time is counted in it: once each event, before the
	 * first call in the journal's counters or since. */
	struct metrics *metrics;
	int64_t counted; /* of the job that is being read: its events after this one are to be counted; INT64_MAX: none */
};

/* Read and apply the events added since the last call: of all jobs (at the first call of those that are not settled), or with
 * job > 0 of that job only. `jobs` must be {0} before the first call, but for `metrics`. The first call that counts must be within a
 * look (journal_look_begin()), unless only this process settles jobs. */
int jobs_refresh(struct jobs *jobs, struct journal *j, int64_t job, struct err *err);
/* The same for one of several jobs that are each read by this function alone: the events after its own last one. */
int jobs_refresh_one(struct jobs *jobs, struct journal *j, int64_t job, struct err *err);
void jobs_clear(struct jobs *jobs);
/* Remove a job from memory. */
void jobs_remove(struct jobs *jobs, int64_t id);
/* Apply one event. ENOMEM is the only error. */
int jobs_apply(struct jobs *jobs, const struct event_row *row);

/* Update the members that depend on the clock: set `seen` of newly finished jobs, and set arrival times in the future to now.
 * Long-running processes call it each time they read the journal. */
void jobs_observe_clock(struct jobs *jobs, double now);

/* Return the first open job with an id > after, so that a loop may change jobs; NULL: none. */
struct job_view *jobs_next_open(const struct jobs *jobs, int64_t after);
/* The functions below read settled jobs from `journal`, which adds to `list`, as they were at last_seq. */
/* Return the newest job of the study, or of the series, in a key, and the one before it; NULL: none. Others with the same hash are
 * among them. */
struct job_view *jobs_of_study(const struct jobs *jobs, const char *key);
struct job_view *jobs_of_series(const struct jobs *jobs, const char *key);
struct job_view *jobs_before_in_study(const struct job_view *v);
struct job_view *jobs_before_in_series(const struct job_view *v);
struct job_view *jobs_find(const struct jobs *jobs, int64_t id); /* NULL: none */
/* Write the sentence of kind_frames_text() about a case that is not complete, if other ones that are not complete are of the same
 * series and differ in the frame of reference only; "": there are none. */
void jobs_frames_text(const struct jobs *jobs, const struct job_view *v, char *ret_text, size_t size);
struct job_send *job_view_find_send(const struct job_view *v, const char *destination); /* NULL: not one of its destinations */
size_t job_view_count_sends(const struct job_view *v,
			    enum send_state state); /* number of sends in this state for which job_send_is_active() */
size_t job_view_count_stored(const struct job_view *v, const struct job_send *s); /* objects that the destination has */
/* Return a sentence about why an incomplete case cannot be reconstructed without the missing instances; NULL: it can be tried. */
const char *job_view_as_is_obstacle(const struct job_view *v);
bool job_view_is_warned(const struct job_view *v);	       /* true: delivered, and warned */
bool job_view_is_due(const struct job_view *v, size_t object); /* true: the object is due at some destination */
const char *send_state_name(enum send_state state);	       /* "due", "sent", "refused", "stored" */
const char *
job_send_state_name(const struct job_send *s);	       /* send_state_name() of its state, or "committed", "replaced", "standby" */
bool job_send_is_unanswered(const struct job_send *s); /* true: given up, because no report of storage commitment came */
bool job_send_has_reached(const struct job_send *s);   /* true: its destination answered at `time`, and no attempt failed since */
bool job_send_is_active(
	const struct job_send *s); /* true: the job waits for this send: it is neither replaced by its fallback nor on standby */

#endif
