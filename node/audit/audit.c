/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - the participants of audit events, and the connection to syslog.
 *
 * UserID of a participant: for this program its process number, as in the log; for a peer its AE title; for files a URI; for
 * people who run a command their login name. AE titles are in AlternativeUserID, as PS3.15 A.5.2.2 requires.
 */
#include "node/audit/audit.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/audit/audit_file.h"
#include "node/audit/audit_queue.h"
#include "node/base/log.h"

#define AWAY_WAIT 2.0 /* s until the next attempt after syslog accepted no message */
#define STUDIES_MAX                                                                                                              \
	8 /* in one message of an export, which must fit into a datagram and into the 8 KiB that syslog daemons accept */

static struct {
	struct node_conf node;
	enum audit_mode way;
	char who[32], host[64], source[96], process[24];
	/* used by the manager only: */
	double retry_at; /* on clock_seconds(); 0: syslog accepts messages */
	size_t waited;	 /* number of lines sent since syslog accepts messages again */
	char delay[200]; /* why they wait; "": they do not */
} state;

void audit_start(const struct node_conf *node, enum audit_mode way, const char *who)
{
	state.node = *node;
	state.way = way;
	snprintf(state.who, sizeof(state.who), "%s", who);
	if (gethostname(state.host, sizeof(state.host)) < 0)
		state.host[0] = '\0';
	state.host[sizeof(state.host) - 1] = '\0';
	snprintf(state.source, sizeof(state.source), "%s@%s", node->aet, state.host[0] ? state.host : "unknown");
}

bool audit_is_on(void)
{
	return state.node.audit != AUDIT_NONE;
}

/* ---- sending ---- */

static int hand_over(void *ctx, const char *line, size_t n)
{
	int rc;

	(void)ctx;
	if (state.node.audit != AUDIT_FILE)
		return log_audit_send(state.node.audit_socket, line, n);
	rc = audit_file_append(state.node.audit_file, line, n);
	return rc == -EINVAL ? -EIO : rc; /* audit_queue_drain() would drop the line after -EINVAL */
}

static void log_lost(const struct audit_message *m, const char *reason)
{
	log_event(LOG_CRIT, "audit-lost", "message=%s reason=%s", log_quote(m->event->meaning), log_quote(reason));
}

static int outcome_severity(enum audit_outcome outcome)
{
	return outcome == AUDIT_SUCCESS ? LOG_NOTICE : outcome == AUDIT_MINOR ? LOG_WARNING : LOG_ERR;
}

static void report_within(struct audit_message *m, uint64_t most)
{
	struct err err = {0};
	char *xml = NULL, *frame = NULL;
	size_t n;

	if (!audit_is_on())
		return;
	m->site = state.node.audit_site;
	m->source = state.source;
	if (m->time <= 0)
		m->time = clock_wall();
	if (audit_message_write(m, &xml, &err) < 0) {
		log_lost(m, err.msg);
		return;
	}
	frame = log_audit_frame(state.node.audit_facility, outcome_severity(m->outcome), m->time, state.who, xml);
	n = frame ? strlen(frame) : 0;
	if (!frame)
		log_lost(m, "no memory");
	else if (state.way == AUDIT_DIRECT && hand_over(NULL, frame, n) == 0)
		;
	else if (audit_queue_append(state.node.spool, frame, n, most, &err) < 0 &&
		 (state.way == AUDIT_DIRECT || hand_over(NULL, frame, n) < 0))
		log_lost(m, err.msg);
	free(frame);
	free(xml);
}

static void report_message(struct audit_message *m)
{
	report_within(m, AUDIT_QUEUE_MAX);
}

bool audit_has_due_messages(double clock)
{
	return audit_is_on() && clock >= state.retry_at && audit_queue_has_lines(state.node.spool);
}

const char *audit_delay(void)
{
	return audit_is_on() ? state.delay : "";
}

double audit_flush(double clock)
{
	size_t sent, dropped;
	struct err err = {0};

	while (audit_has_due_messages(clock)) {
		int rc = audit_queue_drain(state.node.spool, hand_over, NULL, &sent, &dropped, &err);

		state.waited += state.retry_at > 0 ? sent : 0;
		if (dropped > 0)
			log_event(LOG_CRIT, "audit-lost", "lines=%zu reason=%s", dropped,
				  log_quote("damaged in the queue, or longer than syslog accepts"));
		if (rc < 0) {
			if (state.retry_at == 0)
				log_event(LOG_CRIT, "audit-delayed", "to=%s reason=%s",
					  log_quote(state.node.audit == AUDIT_FILE ? state.node.audit_file
										   : state.node.audit_socket),
					  log_quote(err.msg));
			state.retry_at = clock + AWAY_WAIT;
			snprintf(state.delay, sizeof(state.delay), "%.199s", err.msg);
			return state.retry_at;
		}
		if (state.retry_at > 0 && !audit_queue_has_lines(state.node.spool)) {
			log_event(LOG_NOTICE, "audit-recovered", "lines=%zu", state.waited);
			state.retry_at = 0;
			state.waited = 0;
			state.delay[0] = '\0';
		}
	}
	return state.retry_at > clock ? state.retry_at : 0;
}

/* ---- messages ---- */

static struct audit_party own_party(const struct audit_code *role)
{
	static char name[48];

	snprintf(state.process, sizeof(state.process), "%ld", (long)getpid());
	snprintf(name, sizeof(name), "tomonode %s", state.who);
	return (struct audit_party){.user = state.process, .aet = state.node.aet, .name = name, .host = state.host, .role = role};
}

static struct audit_party peer_party(const struct audit_peer *peer, const struct audit_code *role)
{
	const char *name = peer->pilot && peer->pilot[0] ? peer->pilot : peer->aet;

	return (struct audit_party){
		.user = name && name[0] ? name : peer->host, .aet = peer->aet, .host = peer->host, .role = role};
}

void audit_application_activity(bool started)
{
	struct audit_party party = own_party(&audit_role_application);
	struct audit_message m = {.event = &audit_code_application,
				  .type = started ? &audit_code_start : &audit_code_stop,
				  .action = 'E',
				  .parties = &party,
				  .n_parties = 1};

	report_message(&m);
}

/* PS3.15 A.5.3.11: the reporting participant comes first, then the one that caused the alert. */
static void report_alert(const struct audit_code *type, enum audit_outcome outcome, const struct audit_peer *peer,
			 const char *reason)
{
	struct audit_party parties[2] = {own_party(NULL)};
	struct audit_message m = {.event = &audit_code_alert,
				  .type = type,
				  .action = 'E',
				  .outcome = outcome,
				  .reason = reason,
				  .parties = parties,
				  .n_parties = peer ? 2 : 1,
				  .alert = state.source};

	if (peer) {
		parties[1] = peer_party(peer, NULL);
		parties[1].requestor = true;
	}
	report_within(&m, peer ? AUDIT_QUEUE_UNKNOWN_PEERS : AUDIT_QUEUE_MAX);
}

void audit_refused(const struct audit_peer *peer, bool limit, const char *reason)
{
	report_alert(limit ? &audit_code_restricted : &audit_code_node_authentication, AUDIT_MINOR, peer, reason);
}

void audit_configured(bool taken, const char *reason)
{
	report_alert(&audit_code_software, taken ? AUDIT_SUCCESS : AUDIT_MINOR, NULL, reason);
}

/* PS3.15 A.5.3.9: the only participant is the one that enters or leaves. */
void audit_pilot(const struct audit_peer *pilot, bool connected, const char *reason)
{
	struct audit_party party = peer_party(pilot, NULL);
	struct audit_message m = {.event = &audit_code_network_entry,
				  .type = connected ? &audit_code_attach : &audit_code_detach,
				  .action = 'E',
				  .outcome = reason ? AUDIT_MINOR : AUDIT_SUCCESS,
				  .reason = reason,
				  .parties = &party,
				  .n_parties = 1};

	report_message(&m);
}

/* PS3.15 A.5.3.1: the application that starts or stops, and what started or stopped it. */
void audit_slurm_job(const char *pilot, bool submitted, uint64_t job, const char *reason)
{
	char name[64] = "Slurm job";
	struct audit_party parties[2] = {{.user = pilot, .name = name, .role = &audit_role_application},
					 own_party(&audit_role_launcher)};
	struct audit_message m = {.event = &audit_code_application,
				  .type = submitted ? &audit_code_start : &audit_code_stop,
				  .action = 'E',
				  .outcome = reason ? AUDIT_MINOR : AUDIT_SUCCESS,
				  .reason = reason,
				  .parties = parties,
				  .n_parties = 2};

	if (job > 0)
		snprintf(name, sizeof(name), "Slurm job %llu", (unsigned long long)job);
	parties[1].requestor = true;
	report_message(&m);
}

static bool is_node(const struct audit_peer *peer)
{
	return !(peer->aet && peer->aet[0]) && !(peer->pilot && peer->pilot[0]);
}

static void report_transfer(const struct audit_code *event, char action, const struct audit_transfer *t,
			    const struct audit_study *studies, size_t n)
{
	bool ours = is_node(&t->from);
	struct audit_party parties[2] = {
		ours ? own_party(&audit_role_source) : peer_party(&t->from, &audit_role_source),
		ours ? peer_party(&t->to, &audit_role_destination) : own_party(&audit_role_destination),
	};
	struct audit_message m = {.event = event,
				  .action = action,
				  .outcome = t->outcome,
				  .reason = t->reason,
				  .time = t->time,
				  .parties = parties,
				  .n_parties = 2,
				  .studies = studies,
				  .n_studies = n};

	parties[0].requestor = true; /* C-STORE is requested by the source */
	report_message(&m);
}

void audit_begin_transfer(const struct audit_peer *to, double time, const struct audit_study *studies, size_t n)
{
	struct audit_transfer t = {.to = *to, .time = time};

	report_transfer(&audit_code_begin, 'E', &t, studies, n);
}

void audit_transferred(const struct audit_transfer *t, const struct audit_study *study)
{
	report_transfer(&audit_code_transferred, 'C', t, study, 1);
}

void audit_removed(const struct audit_study *study)
{
	struct audit_party party = own_party(&audit_role_application);
	struct audit_message m = {
		.event = &audit_code_deleted, .action = 'D', .parties = &party, .n_parties = 1, .studies = study, .n_studies = 1};

	party.requestor = true;
	report_message(&m);
}

/* What a person did with the node. */
static void of_person(const struct audit_code *event, char action, const char *by, double time, const struct audit_study *studies,
		      size_t n)
{
	struct audit_party parties[2] = {own_party(&audit_role_application), {.user = by, .name = by, .requestor = true}};
	struct audit_message m = {.event = event,
				  .action = action,
				  .time = time,
				  .parties = parties,
				  .n_parties = 2,
				  .studies = studies,
				  .n_studies = n};

	report_message(&m);
}

void audit_redo(const char *by, double time, const struct audit_study *studies, size_t n)
{
	of_person(&audit_code_accessed, 'R', by, time, studies, n); /* PS3.15 A.5.3.6 */
}

void audit_same_patient(const char *by, double time, const struct audit_study *studies, size_t n)
{
	of_person(&audit_code_patient_record, 'U', by, time, studies, n);
}

void audit_case_changed(const char *by, double time, const struct audit_study *studies, size_t n)
{
	of_person(&audit_code_procedure, 'U', by, time, studies, n); /* PS3.15 A.5.3.15 */
}

/* ---- files ---- */

/* Write the file URI (RFC 8089) of a path: absolute, percent-encoded. */
static void file_uri(const char *path, char *ret, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	char *full = realpath(path, NULL);
	const char *at = full ? full : path;
	size_t n = (size_t)snprintf(ret, size, "file://");

	for (; *at && n + 4 < size; at++)
		n += (size_t)snprintf(ret + n, size - n, strchr(plain, *at) ? "%c" : "%%%02X", (unsigned char)*at);
	free(full);
}

static struct audit_party person_party(void)
{
	static char user[96];
	struct passwd *entry = getpwuid(getuid()); /* not thread-safe; commands have one thread */

	snprintf(user, sizeof(user), "%.31s@%.63s", entry ? entry->pw_name : "unknown", state.host);
	return (struct audit_party){.user = user, .name = entry ? entry->pw_name : NULL, .host = state.host, .requestor = true};
}

static void report_files(const struct audit_code *event, bool export, const char *path, const struct audit_study *studies,
			 size_t n, int code)
{
	char uri[1024], reason[32];
	struct audit_party parties[3] = {person_party(), own_party(export ? &audit_role_source : &audit_role_destination)};
	struct audit_message m = {.event = event,
				  .action = export ? 'R' : 'C',
				  .outcome = code ? AUDIT_SERIOUS : AUDIT_SUCCESS,
				  .reason = code ? reason : NULL,
				  .parties = parties,
				  .n_parties = 3};

	if (!audit_is_on())
		return;
	file_uri(path, uri, sizeof(uri));
	snprintf(reason, sizeof(reason), "exit code %d", code);
	parties[2] = (struct audit_party){
		.user = uri, .role = export ? &audit_role_destination_media : &audit_role_source_media, .media = true};
	for (size_t at = 0; at < n || at == 0; at += STUDIES_MAX) {
		static const struct audit_study nothing;

		m.studies = n ? studies + at : &nothing;
		m.n_studies = n == 0 ? 1 : n - at < STUDIES_MAX ? n - at : STUDIES_MAX;
		report_message(&m);
	}
}

void audit_exported(const char *path, const struct audit_study *studies, size_t n, int code)
{
	report_files(&audit_code_export, true, path, studies, n, code);
}

void audit_imported(const char *path, const struct audit_study *studies, size_t n, int code)
{
	report_files(&audit_code_import, false, path, studies, n, code);
}
