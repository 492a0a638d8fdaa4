/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c - receive the objects of one association: spool, journal, response.
 *
 * The order for each object must not be changed:
 *   .part written → fsync → rename → fsync of the folder → journal row committed → response 0000.
 * If anything before the journal row fails, the file is removed and the response is A700 (the sender may try again), never
 * success.
 * - If free space is below the reserve, an object is refused before a byte is written, so that the journal always has space.
 * - If the same bytes are received again under the same UID, the response is success and nothing is stored twice. Success still
 *   means that the file is stored: if it was lost, truncated or marked as damaged, the bytes received again replace it.
 */
#include "node/receive/intake.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dicom/object/dicom_tags.h"
#include "kernels/clock.h"
#include "node/audit/audit.h"
#include "node/base/digest.h"
#include "node/base/log.h"
#include "node/base/plural.h"
#include "node/base/refusal_log.h"
#include "node/config/kind.h"
#include "node/deliver/commit.h"
#include "node/receive/association_ipc.h"
#include "node/store/journal.h"
#include "node/store/spool.h"

#define BUSY_SECONDS 5
#define OBJECTS_LOGGED 100	  /* refused objects of one association that are logged individually; all are counted */
#define REPORT_WHO 200		  /* size of a text with association and calling AE title */
#define REQUEST_STEP (256u << 10) /* received bytes after which the listener is asked about the peer's limit */
#define WAIT_MAX                                                                                                                 \
	10.0 /* s; longest single wait, so that no sender runs into a timeout although several associations of a peer share its  \
		limit */
#define RESERVE_CHECK_STEP (32u << 20) /* bytes of an object after which the free space is checked again */

struct intake {
	const struct intake_place *place;
	const struct config *config;
	struct association_ipc ipc;
	bool counted;		      /* the peer's bytes are limited */
	char association[40];	      /* the same for all objects of this association */
	char calling[17];	      /* of an admitted association; "": not admitted */
	char requestor[17], host[64]; /* AE title and address of the peer, also of one that was refused */
	struct journal *journal;      /* opened with the first object */
	struct digest *digest;
	unsigned long stored, refused, echoes, reports, reports_refused;
	uint64_t bytes;
	char classes_refused[400]; /* proposed classes of which no context was accepted, as a clause; "": none */
	char last_refusal[200];	   /* reason for the last refused object */
	bool alarmed;		   /* a full disk was logged */
	double began;

	/* The object that is being received: */
	char name[64];
	int fd;
	double object_began;
	uint64_t since_check;

	uint64_t since_request;
	double throttled; /* s */
};

/* Wake the node. Ignore a full pipe: the node has not yet read it and will wake. */
static void notify_node(const struct intake *in)
{
	struct pollfd pfd = {.fd = in->place->notify_fd, .events = POLLOUT};
	ssize_t n;

	if (in->place->notify_fd < 0 || poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT))
		return;
	n = write(in->place->notify_fd, "", 1);
	(void)n;
}

static enum scp_admission admit_association(void *ctx, const struct scp_request *request, char *why, size_t why_size)
{
	struct intake *in = ctx;
	struct association_request q = {.kind = ASSOCIATION_ADMIT};
	const struct tls_peer *certificate = request->certificate;
	struct association_reply answer;
	enum scp_admission a;

	snprintf(in->requestor, sizeof(in->requestor), "%s", request->calling);
	snprintf(in->host, sizeof(in->host), "%s", request->host);
	if (in->place->busy) {
		snprintf(why, why_size, "too many associations: node.max_associations is %d", in->config->node.max_associations);
		return SCP_REJECT_BUSY;
	}
	a = admission_check(in->place->admission, request, &q.peer, why, why_size);
	if (a != SCP_ADMIT)
		return a;
	if (!association_ipc_request(&in->ipc, &q, ASSOCIATION_REPLY_MS, &answer)) {
		snprintf(why, why_size, "'%s' from %s: the listener does not reply", request->calling, request->host);
		return SCP_REJECT_BUSY;
	}
	if (!answer.yes) {
		snprintf(why, why_size, "'%s' from %s has %d association%s already (%s)", request->calling, request->host,
			 answer.limit, plural(answer.limit), "peer_associations of node, or associations of the peer");
		return SCP_REJECT_BUSY;
	}
	in->counted = answer.counted;
	snprintf(in->calling, sizeof(in->calling), "%s", request->calling);
	log_event(LOG_INFO, "association-accepted", "association=%s calling=%s called=%s host=%s listener=%s%s%s%s%s",
		  in->association, log_quote(request->calling), log_quote(request->called), request->host,
		  log_quote(in->place->listener->name), certificate ? " certificate=" : "",
		  certificate ? log_quote(certificate->subject) : "", certificate ? " sha256=" : "",
		  certificate ? certificate->fingerprint : "");
	return SCP_ADMIT;
}

/* If the free space is below node.reserve, write a sentence about it and return it; otherwise return NULL. */
static const char *below_reserve(const struct intake *in, char *text, size_t size)
{
	const struct node_conf *node = &in->config->node;
	uint64_t space = spool_free_bytes(node->spool);

	if (space >= node->reserve)
		return NULL;
	snprintf(text, size, "only %.0f MB are free in %s, but node.reserve requires %.0f MB: free space on this disk",
		 (double)space / 1e6, node->spool, (double)node->reserve / 1e6);
	return text;
}

/* Log a refused object; status 0: no response was sent. A full disk is logged as an alarm, but once per association, because the
 * sender repeats its attempts. */
static void log_refused(struct intake *in, const struct scp_object *o, unsigned status, const char *reason)
{
	bool alarm = status == STORE_OUT_OF_RESOURCES && !in->alarmed;
	char text[20] = "none";

	in->alarmed = in->alarmed || alarm;
	in->refused++;
	snprintf(in->last_refusal, sizeof(in->last_refusal), "%s", reason);
	if (!alarm && in->refused > OBJECTS_LOGGED)
		return;
	if (status)
		snprintf(text, sizeof(text), "%04X", status);
	log_event(alarm ? LOG_CRIT : LOG_ERR, "object-refused", "association=%s sop=%s status=%s reason=%s", in->association,
		  log_quote(o->sop_instance), text, log_quote(reason));
}

static int open_journal(struct intake *in, struct err *err)
{
	char path[512];

	if (in->journal)
		return 0;
	snprintf(path, sizeof(path), "%s/journal.db", in->config->node.spool);
	return journal_open(path, &in->journal, err);
}

static void log_refusal(void *ctx, const struct scp_object *o, uint16_t status, const char *why)
{
	log_refused(ctx, o, status, why);
}

/* Senders that also query propose classes that are not served, so this is no warning. */
static void contexts_refused(void *ctx, unsigned n, const char *which)
{
	struct intake *in = ctx;

	snprintf(in->classes_refused, sizeof(in->classes_refused), "%u class%s refused: %.370s", n, n == 1 ? "" : "es", which);
	log_event(LOG_NOTICE, "contexts-refused", "association=%s calling=%s host=%s number=%u reason=%s", in->association,
		  log_quote(in->calling), in->host, n, log_quote(which));
}

static int begin_object(void *ctx, const struct scp_object *o, uint16_t *ret_status)
{
	struct intake *in = ctx;
	struct err err = {0};
	char full[400];

	*ret_status = STORE_OUT_OF_RESOURCES;
	in->object_began = clock_seconds();
	in->since_check = 0;
	if (below_reserve(in, full, sizeof(full))) {
		log_refused(in, o, *ret_status, full);
		return -1;
	}
	if (open_journal(in, &err) < 0) {
		log_refused(in, o, *ret_status, err.msg);
		return -1;
	}
	in->fd = spool_begin(in->config->node.spool, in->name, &err);
	if (in->fd < 0) {
		log_refused(in, o, *ret_status, err.msg);
		return -1;
	}
	digest_begin(in->digest);
	return in->fd;
}

/* If the peer exceeds its limit, wait before reading more: TCP then slows the sender down, and nothing is lost. */
static void throttle_peer(struct intake *in, size_t n)
{
	struct association_request q = {.kind = ASSOCIATION_BYTES};
	struct association_reply a;
	double wait;

	in->since_request += n;
	if (in->since_request < REQUEST_STEP)
		return;
	q.bytes = in->since_request;
	in->since_request = 0;
	if (!association_ipc_request(&in->ipc, &q, ASSOCIATION_REPLY_MS, &a) || !(a.wait > 0))
		return;
	wait = a.wait < WAIT_MAX ? a.wait : WAIT_MAX;
	nanosleep(&(struct timespec){.tv_sec = (time_t)wait, .tv_nsec = (long)(1e9 * (wait - (double)(time_t)wait))}, NULL);
	in->throttled += wait;
}

static int take_data(void *ctx, const void *bytes, size_t n)
{
	char full[400];
	struct intake *in = ctx;

	digest_add(in->digest, bytes, n);
	in->since_check += n;
	if (in->counted)
		throttle_peer(in, n);
	if (in->since_check < RESERVE_CHECK_STEP)
		return 0;
	in->since_check = 0;
	return below_reserve(in, full, sizeof(full)) ? ENOSPC : 0;
}

/* Add the row of a durable file to the journal. If the function fails although the row was committed, the object is stored. */
static int record_instance(struct intake *in, struct instance_row *row, struct err *err)
{
	char path[512];
	int rc = journal_add_instance(in->journal, row, err);
	int there;

	if (rc >= 0)
		return 0;
	there = journal_has_instance(in->journal, row->sop_instance, row->digest, NULL, NULL);
	if (there == 1)
		return 0;
	/* It is not known whether the row exists: leave the file; the sweep at the next start decides. */
	if (there == 0) {
		snprintf(path, sizeof(path), "%s/%s", in->config->node.spool, row->file);
		unlink(path);
	}
	return rc;
}

/* Is it an image of a cancelled case, which begins a new one? Or a CT image, or a map from MR, that was ignored, and that PET cases need since the
 * configuration was changed? Then it is stored once more. */
static int is_needed_now(const struct intake *in, const struct instance_row *row, struct err *err)
{
	int given_up = journal_is_given_up(in->journal, row->sop_instance, err);

	if (given_up != 0)
		return given_up;
	if ((strcmp(row->sop_class, CLASS_CT) != 0 && strcmp(row->sop_class, CLASS_MR) != 0) || !kind_any_needs_ct(in->config))
		return 0;
	return journal_is_ignored(in->journal, row->sop_instance, row->digest, err);
}

static int store_object(struct intake *in, const struct scp_object *o, uint64_t bytes, bool *ret_again, struct err *err)
{
	struct instance_row row = {.received = clock_wall(), .bytes = bytes}, old;
	bool lost;
	int rc;

	snprintf(row.sop_class, sizeof(row.sop_class), "%s", o->sop_class);
	snprintf(row.sop_instance, sizeof(row.sop_instance), "%s", o->sop_instance);
	snprintf(row.transfer_syntax, sizeof(row.transfer_syntax), "%s", o->transfer_syntax);
	snprintf(row.calling, sizeof(row.calling), "%s", o->calling);
	snprintf(row.host, sizeof(row.host), "%s", o->host);
	snprintf(row.association, sizeof(row.association), "%s", in->association);
	digest_end(in->digest, row.digest);
	rc = journal_has_instance(in->journal, row.sop_instance, row.digest, &old, err);
	lost = rc > 0 && !spool_has_file(in->config->node.spool, old.file, old.bytes);
	if (rc > 0 && !lost) { /* the length is right, but the file was found damaged */
		int damaged = journal_is_damaged(in->journal, old.id, err);

		lost = damaged > 0;
		rc = damaged < 0 ? damaged : rc;
	}
	if (rc > 0 && !lost) {
		int needed = is_needed_now(in, &row, err);

		rc = needed < 0 ? needed : !needed;
	}
	if (rc != 0 && !lost) {
		spool_discard(in->config->node.spool, in->name, in->fd);
		*ret_again = rc > 0;
		return rc < 0 ? rc : 0;
	}
	rc = spool_commit(in->config->node.spool, in->name, in->fd, row.file, err);
	if (rc < 0) {
		spool_discard(in->config->node.spool, in->name, -1);
		return rc;
	}
	if (!lost)
		return record_instance(in, &row, err);
	rc = spool_replace(in->config->node.spool, row.file, old.file, err);
	if (rc < 0)
		return rc;
	log_event(LOG_ALERT, "instance-restored", "instance=%lld sop=%s file=%s reason=%s", (long long)old.id, o->sop_instance,
		  old.file, log_quote("its row was in the journal, but its file was lost or damaged"));
	return journal_mark_intact(in->journal, old.id, err);
}

static uint16_t end_object(void *ctx, const struct scp_object *o, uint64_t bytes, int write_error)
{
	struct intake *in = ctx;
	struct err err = {0};
	bool again = false;
	uint16_t status = write_error == EBADMSG ? STORE_CANNOT_UNDERSTAND : STORE_OUT_OF_RESOURCES;
	int rc;

	if (write_error) {
		spool_discard(in->config->node.spool, in->name, in->fd);
		in->fd = -1;
		log_refused(in, o, write_error == ECONNRESET ? 0 : status,
			    write_error == ECONNRESET ? "the association ended within the object"
			    : write_error == EBADMSG  ? "the data set is empty"
			    : write_error == EFBIG    ? "the file would exceed the limit of file sizes (ulimit -f, LimitFSIZE)"
						      : strerror(write_error));
		return status;
	}
	rc = store_object(in, o, bytes, &again, &err);
	in->fd = -1;
	if (rc < 0) {
		log_refused(in, o, status, err.msg);
		return status;
	}
	in->stored++;
	in->bytes += bytes;
	log_event(LOG_INFO, again ? "stored-again" : "stored", "association=%s sop=%s bytes=%llu ms=%.0f", in->association,
		  o->sop_instance, (unsigned long long)bytes, 1e3 * (clock_seconds() - in->object_began));
	notify_node(in);
	return STORE_SUCCESS;
}

/* Handle a report of storage commitment on an association that the destination has opened and that was admitted like any other.
 */
static uint16_t take_report(void *ctx, const struct commit_report *r)
{
	struct intake *in = ctx;
	struct err err = {0};
	uint16_t status;

	in->reports++;
	if (open_journal(in, &err) < 0) {
		log_event(LOG_CRIT, "journal-error", "association=%s reason=%s", in->association, log_quote(err.msg));
		return COMMIT_FAILED;
	}
	status = commit_apply_report(in->journal, in->config, r, in->calling, clock_wall());
	notify_node(in);
	return status;
}

static void on_echo(void *ctx)
{
	struct intake *in = ctx;

	in->echoes++;
}

/* Return the beginning of a log line about the reports of this association. */
static const char *report_sender(const struct intake *in, char ret_who[REPORT_WHO])
{
	snprintf(ret_who, REPORT_WHO, "association=%s calling=%s", in->association, log_quote(in->calling));
	return ret_who;
}

static void report_refused(void *ctx, uint16_t status, const char *why)
{
	struct intake *in = ctx;

	char who[REPORT_WHO];

	commit_log_refused(&in->reports_refused, report_sender(in, who), status, why);
}

static void on_end(void *ctx, bool released)
{
	(void)released; /* the caller logs the end of the association */
	notify_node(ctx);
}

/* Write an audit message if the peer was refused, sent something other than DICOM, or failed in the TLS handshake; not if it
 * closed the connection without a message, as health checks do. */
static void audit_end(const struct intake *in, int rc, const struct err *err)
{
	bool gone = rc == -ETIMEDOUT || rc == -ECONNRESET;
	bool harmless = rc == 0 || rc == -ENODATA || (gone && !in->place->tls);

	if (!in->calling[0] && !harmless)
		audit_refused(&(struct audit_peer){.aet = in->requestor, .host = in->host}, rc == -EBUSY, err->msg);
}

static void log_end(const struct intake *in, int rc, const struct err *err)
{
	double seconds = clock_seconds() - in->began;
	char who[REPORT_WHO];
	const char *how = rc == 0 ? "released" : rc == -ETIMEDOUT ? "timeout" : rc == -ECONNRESET ? "cut" : "aborted";

	if (rc == -EACCES || rc == -EBUSY)
		log_event(LOG_WARNING, "association-rejected", "association=%s reason=%s", in->association, log_quote(err->msg));
	else if (!in->calling[0]) /* the connection ended before an association request */
		log_event(rc == -ENODATA ? LOG_INFO : LOG_WARNING, "connection-ended", "association=%s reason=%s",
			  in->association, log_quote(err->msg));
	else
		log_event(rc == 0 ? LOG_INFO : LOG_WARNING, "association-ended",
			  "association=%s calling=%s how=%s stored=%lu refused=%lu bytes=%llu s=%.3f%s%s", in->association,
			  log_quote(in->calling), how, in->stored, in->refused, (unsigned long long)in->bytes, seconds,
			  rc == 0 ? "" : " reason=", rc == 0 ? "" : log_quote(err->msg));
	commit_log_refused_end(in->reports_refused, report_sender(in, who));
	if (in->throttled > 0)
		log_event(LOG_NOTICE, "sender-throttled", "association=%s calling=%s seconds=%.1f", in->association,
			  log_quote(in->calling), in->throttled);
}

/* Write why this association is shown among those without an object; false: it is not, because it did what its sender wanted. */
static bool explain_end(const struct intake *in, int rc, const struct err *err, char *ret, size_t size)
{
	bool nothing = in->stored == 0, used = in->echoes + in->reports > 0;

	if (nothing && in->refused > 0)
		snprintf(ret, size, "all objects refused, the last: %s%s%.150s", in->last_refusal,
			 in->classes_refused[0] ? "; " : "", in->classes_refused);
	else if (nothing && !used && rc < 0 && rc != -ENODATA)
		snprintf(ret, size, "%.399s", err->msg);
	else if (in->classes_refused[0])
		snprintf(ret, size, "%s", in->classes_refused);
	else if (nothing && !used && rc == 0)
		snprintf(ret, size, "released without a message");
	else
		return false;
	return true;
}

static void show_end(struct intake *in, int rc, const struct err *err)
{
	struct association_request q = {.kind = ASSOCIATION_ENDED};

	if (!explain_end(in, rc, err, q.ended.reason, sizeof(q.ended.reason)))
		return;
	for (char *c = q.ended.reason; *c; c++) /* it may contain bytes of the peer */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	snprintf(q.ended.calling, sizeof(q.ended.calling), "%s", in->requestor);
	snprintf(q.ended.host, sizeof(q.ended.host), "%s", in->host);
	association_ipc_notify(&in->ipc, &q);
}

static int refusal_kind_of(int rc)
{
	return rc == -ENODATA ? REFUSAL_SILENT : REFUSAL_REJECTED;
}

/* Return true if the end of this association may be logged: always if it was admitted, otherwise as often as the listener allows.
 */
static bool may_log(struct intake *in, int rc)
{
	struct association_request q = {.kind = ASSOCIATION_MAY_LOG, .refusal = refusal_kind_of(rc)};
	struct association_reply answer;

	return in->calling[0] || !association_ipc_request(&in->ipc, &q, ASSOCIATION_REPLY_MS, &answer) || answer.yes;
}

/* Return true if the attempt is counted as a refusal of its sender. It is not if this node had too many associations or no
 * memory. */
static bool is_refusal(const struct intake *in, int rc)
{
	return rc < 0 && !in->calling[0] && rc != -EBUSY && rc != -ENOMEM;
}

/* Create the journal's files if they are missing: a sandboxed process can open them but not create them. They exist while the
 * node runs. If they cannot be created (full disk), objects are refused for that reason. */
void intake_prepare(const struct config *config)
{
	struct journal *journal = NULL;
	char path[300], log[310];

	snprintf(path, sizeof(path), "%s/journal.db", config->node.spool);
	snprintf(log, sizeof(log), "%s-wal", path);
	if (access(log, F_OK) < 0 && journal_open(path, &journal, NULL) == 0)
		journal_close(journal);
}

void intake_run(int fd, const struct intake_place *place)
{
	const struct node_conf *node = &place->config->node;
	bool busy = place->busy;
	struct intake in = {
		.place = place, .config = place->config, .ipc = {.fd = place->ipc_fd}, .fd = -1, .began = clock_seconds()};
	/* A peer that is to be rejected because the node is busy has less time for its request. */
	struct scp_conf conf = {.tls = place->tls,
				.host = place->host,
				.max_pdu = node->max_pdu,
				.acse_timeout = busy && node->acse_timeout > BUSY_SECONDS ? BUSY_SECONDS : node->acse_timeout,
				.dimse_timeout = node->dimse_timeout};
	struct commit_handler commit = {.ctx = &in, .report = take_report, .refused = report_refused};
	struct scp_handler handler = {.ctx = &in,
				      .commit = &commit,
				      .admit = admit_association,
				      .contexts_refused = contexts_refused,
				      .echoed = on_echo,
				      .refused = log_refusal,
				      .begin = begin_object,
				      .data = take_data,
				      .end = end_object,
				      .ended = on_end};
	struct err err = {0};
	int rc;

	snprintf(in.association, sizeof(in.association), "%llx-%ld", (unsigned long long)(clock_wall() * 1e3), (long)getpid());
	in.digest = digest_create();
	if (!in.digest) {
		close(fd);
		log_event(LOG_ERR, "connection-ended", "association=%s reason=%s", in.association, log_quote("no memory"));
		return;
	}
	snprintf(in.host, sizeof(in.host), "%s", place->host);
	rc = scp_associate(fd, &conf, &handler, &err);
	if (may_log(&in, rc)) {
		log_end(&in, rc, &err);
		audit_end(&in, rc, &err);
		show_end(&in, rc, &err);
	}
	if (is_refusal(&in, rc))
		association_ipc_notify(
			&in.ipc, &(struct association_request){.kind = ASSOCIATION_REFUSED, .refusal = refusal_kind_of(rc)});
	in.journal = journal_close(in.journal);
	digest_free(in.digest);
}
