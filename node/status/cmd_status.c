/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode status: started by the manager to show the state of the node. It reads the journal, serves the requests of the HTTP
 * process, and appends the events that users request, as `tomonode retry` and `cancel` do.
 *
 * - The HTTP process (node/status/cmd_http.c) is its child and has only the listening socket and a socket pair
 *   (node/status/status_ipc.h). If it dies, another one is started. Its requests are checked again in this process.
 * - It needs to read the journal and the spool, to fork and exec this program and, if actions are allowed, to write the journal.
 *   It needs no network: it only passes the listening socket on.
 * - It stores nothing of its own, and no process waits for it: it may be killed at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/job_hint.h"
#include "node/jobs/job_report.h"
#include "node/jobs/patients.h"
#include "node/process/spawn.h"
#include "node/process/work_process.h"
#include "node/result/thumbnail.h"
#include "node/status/cmd_status.h"
#include "node/status/say.h"
#include "node/status/status.h"
#include "node/status/status_ipc.h"
#include "node/status/status_look.h"
#include "node/status/status_report.h"
#include "node/status/status_text.h"
#include "node/store/event.h"

#define ANSWER_SECONDS 5.0  /* longest time to send a reply */
#define HTTP_WAIT_FIRST 0.5 /* s until an ended HTTP process is started again; doubled each time up to HTTP_WAIT_CAP */
#define HTTP_WAIT_CAP 30.0
#define REFUSED_LOGGED 30 /* refused requests that are logged in REFUSED_SECONDS */
#define REFUSED_SECONDS 60.0
#define NAMES_SECONDS 60.0  /* s after the last update in which further names of patients are read */
#define UPDATE_SECONDS 0.25 /* s for which the state is not read again, so that many browsers cause no more work than one */
#define SLICE_SECONDS 5.0   /* the same for slices: a person who looks at them asks for many */

struct reporter {
	struct work_process process;
	struct status status;
	struct status_report report;
	struct status_look look, strip; /* two, so that a person who looks at slices does not wait for another page's strip */
	double refused_since;		/* begin of the period in which refused requests are counted */
	unsigned refused;		/* refused requests in it */
	double updated; /* time of the last update, on clock_seconds() as the times below; 0: update at the next request */
	pid_t http;	/* 0: none */
	int ipc_fd;	/* socket to that process; -1: none */
	double http_at, http_wait, http_since;
};

static volatile sig_atomic_t stop_requested;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stop_requested = 1;
}

/* seconds: for which the state is not read again */
static void update_status(struct reporter *r, double seconds)
{
	if (r->updated > 0 && clock_seconds() - r->updated < seconds)
		return;
	status_update(&r->status, clock_wall());
	r->updated = clock_seconds();
}

/* ---- replies ---- */

/* Move the text into the reply; if it is incomplete for lack of memory, reply with 503. */
static void reply_text(struct status_reply *a, struct html *h, int code, enum status_type type)
{
	static const char trouble[] = "out of memory\n";

	if (h->failed) {
		html_clear(h);
		a->bytes = strdup(trouble);
		*a = (struct status_reply){
			.code = 503, .type = STATUS_TYPE_TEXT, .bytes = a->bytes, .n = a->bytes ? strlen(trouble) : 0};
		return;
	}
	*a = (struct status_reply){.code = code, .type = type, .n = h->n, .bytes = h->text};
}

static void reply_sentence(struct status_reply *a, const struct status *s, int code, const char *title, const char *sentence)
{
	struct html h = {0};

	status_write_sentence(&h, s->language, title, sentence);
	reply_text(a, &h, code, STATUS_TYPE_HTML);
}

static void reply_json(struct status_reply *a, struct status *s)
{
	char *text = event_json_dump(status_json(s));
	struct html h = {.failed = !text};

	if (text)
		html_put(&h, text);
	free(text);
	html_put(&h, "\n");
	reply_text(a, &h, 200, STATUS_TYPE_JSON);
}

static void reply_health(struct status_reply *a, const struct status *s)
{
	bool healthy = status_is_healthy(s);
	struct html h = {.metrics = true};
	char line[1200];

	html_put(&h, healthy ? "ok\n" : "not ok\n");
	for (size_t i = 0; i < s->problems.n; i++) {
		node_problem_line(&s->problems.list[i], line, sizeof(line));
		html_printf(&h, "%s: %s\n", s->problems.list[i].critical ? "critical" : "warning", line);
	}
	reply_text(a, &h, healthy ? 200 : 503, STATUS_TYPE_TEXT);
}

static void reply_thumbnail(struct status_reply *a, const struct status *s, int64_t job)
{
	const struct job_view *v = jobs_find(&s->jobs, job);
	struct html h = {0};
	char path[400], bytes[8192];
	struct stat st;
	ssize_t n = -1;
	int fd = -1;

	if (v && status_picture_path(s, v, path))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)THUMBNAIL_BYTES_MAX)
		while ((n = read(fd, bytes, sizeof(bytes))) > 0 && h.n <= THUMBNAIL_BYTES_MAX)
			html_bytes(&h, bytes, (size_t)n);
	if (fd >= 0)
		close(fd);
	if (n == 0 && h.n > 8 && !memcmp(h.text, "\x89PNG\r\n\x1a\n", 8)) {
		reply_text(a, &h, 200, STATUS_TYPE_PNG);
		return;
	}
	html_clear(&h);
	reply_sentence(a, s, 404, "No picture", "This case has no picture (yet).");
}

/* Reply with some slices side by side, or until they are made with the thumbnail of the case and 202. */
static void reply_strip(struct status_reply *a, struct reporter *r, int64_t job)
{
	const struct job_view *v = jobs_find(&r->status.jobs, job);
	const struct look_made *made;
	struct html h = {0};

	if (!v || !status_has_report(&r->status, v)) {
		reply_sentence(a, &r->status, 404, "No picture", "This case has no picture of slices (yet).");
		return;
	}
	made = status_look_get(&r->strip, &r->status, v, 0);
	if (!made) {
		reply_thumbnail(a, &r->status, job);
		a->code = a->code == 200 ? 202 : a->code;
	} else if (made->head.code == 200) {
		html_bytes(&h, made->bytes, made->head.n);
		reply_text(a, &h, 200, STATUS_TYPE_PNG);
	} else {
		reply_sentence(a, &r->status, made->head.code, "No picture", made->bytes);
	}
}

/* Reply with one slice; 202: it is being made. A sentence is a line of text, for the script that asked. */
static void reply_slice(struct status_reply *a, struct reporter *r, const struct status_request *q)
{
	const struct job_view *v = jobs_find(&r->status.jobs, q->job);
	const struct look_made *made = NULL;
	struct html h = {.metrics = true};

	if (!v || !status_has_report(&r->status, v)) {
		html_printf(&h, "%s\n",
			    say(r->status.language,
				"The result of this case is not (or no longer) on this node, or pictures are not shown."));
		reply_text(a, &h, 404, STATUS_TYPE_TEXT);
		return;
	}
	made = status_look_get(&r->look, &r->status, v, (long)q->number);
	if (!made) {
		html_put(&h, "It is being made.\n");
		reply_text(a, &h, 202, STATUS_TYPE_TEXT);
	} else if (made->head.code == 200) {
		html_bytes(&h, made->bytes, made->head.n);
		reply_text(a, &h, 200, STATUS_TYPE_SLICE);
	} else {
		html_printf(&h, "%s\n", say(r->status.language, made->bytes));
		reply_text(a, &h, made->head.code, STATUS_TYPE_TEXT);
	}
}

/* Reply with the page on which a person looks at the slices of one result, or of two. */
static void reply_look(struct status_reply *a, struct status *s, const struct status_request *q)
{
	const struct job_view *v[2] = {jobs_find(&s->jobs, q->job), q->number ? jobs_find(&s->jobs, q->number) : NULL};
	struct html h = {0};

	for (int i = 0; i < (q->page == STATUS_COMPARE ? 2 : 1); i++)
		if (!v[i] || !s->journal || !status_has_report(s, v[i])) {
			reply_sentence(a, s, 404, "No slices",
				       "The result of this case is not (or no longer) on this node, or pictures are not shown.");
			return;
		}
	status_write_look(&h, s, v);
	reply_text(a, &h, 200, STATUS_TYPE_HTML);
}

/* Reply with the report of a case, or with a page that asks for it again. */
static void reply_report(struct status_reply *a, struct reporter *r, int64_t job)
{
	const struct job_view *v = jobs_find(&r->status.jobs, job);
	const char *text = "";
	struct html h = {0};
	size_t n = 0;

	if (!v || !status_has_report(&r->status, v)) {
		reply_sentence(a, &r->status, 404, "No report",
			       "The result of this case is not (or no longer) on this node, or pictures are not shown.");
		return;
	}
	switch (status_report_get(&r->report, &r->status, v, &text, &n)) {
	case STATUS_REPORT_READY:
		html_put(&h, text);
		reply_text(a, &h, 200, STATUS_TYPE_REPORT);
		break;
	case STATUS_REPORT_WAIT:
		status_write_waiting(&h, r->status.language, "The report is being made", "This page loads it when it is ready.");
		reply_text(a, &h, 200, STATUS_TYPE_HTML);
		break;
	default:
		reply_sentence(a, &r->status, 503, "No report", text[0] ? text : "The report could not be made.");
	}
}

static void reply_case(struct status_reply *a, struct status *s, const struct status_request *q)
{
	const struct job_view *v = jobs_find(&s->jobs, q->job);
	struct html h = {0};
	bool whole;

	if (!v || !s->journal) {
		reply_sentence(a, s, s->journal ? 404 : 503, "No such case",
			       s->journal ? "The journal has no case of this number." : "The journal cannot be read.");
		return;
	}
	whole = status_write_case(&h, s, v, q->token);
	reply_text(a, &h, whole ? 200 : 503, STATUS_TYPE_HTML);
}

/* ---- actions that a user requests ---- */

/* Who used a button. */
static const char *person_of(const struct status_request *q)
{
	return q->person.name[0] ? q->person.name : "its user";
}

/* Are the patients those that the page showed when the person said that they are one? */
static bool headers_shown(const struct reporter *r, const struct job_view *v, const char *seen)
{
	const struct status_name *of[PATIENTS_NAMED_MAX];
	struct patients_named named;
	bool shown = r->process.config->status.show_patient;
	char now[STATUS_SEEN_SIZE];

	if (!patients_named(r->process.journal, &r->status.jobs, v, &named) ||
	    (shown && !status_names_headers(&r->status.names, v, &named, of)))
		return false;
	status_names_seen(&named, shown ? of : NULL, now);
	return !strcmp(seen, now);
}

static int action_detail(struct reporter *r, const struct status_request *q, const struct job_view *v, json_t **ret_detail,
			 struct err *err)
{
	const char *who = q->person.name;
	char reason[160];

	if (q->page == STATUS_SAME && !headers_shown(r, v, q->choice))
		return err_set(err, ESTALE, "the patients of case %lld are not those that the page showed: look at them again",
			       (long long)v->id);
	if (q->page == STATUS_SAME)
		return patients_statement(r->process.journal, v, NULL, v->members.as_is, "on the status page", person_of(q),
					  ret_detail, err);
	if (who[0])
		snprintf(reason, sizeof(reason),
			 q->page == STATUS_CANCEL ? "cancelled on the status page by %s" : "requested on the status page by %s",
			 who);
	else
		snprintf(reason, sizeof(reason), "%s",
			 q->page == STATUS_CANCEL ? "cancelled on the status page" : "requested on the status page");
	*ret_detail = json_pack("{s:o}", "reason", event_json_text(reason));
	if (q->page != STATUS_CANCEL)
		json_object_set_new(*ret_detail, "as_is", json_boolean(q->page == STATUS_AS_IS));
	if (who[0])
		json_object_set_new(*ret_detail, "by", event_json_text(who));
	return *ret_detail ? 0 : err_set(err, ENOMEM, "no memory for an event");
}

static int redo_case(struct reporter *r, const struct status_request *q, const struct job_view *v, int64_t *ret_job,
		     struct err *err)
{
	const struct redo_request request = {.protocol = q->choice, .where = "on the status page", .by = person_of(q)};

	return redo_open(r->process.journal, &r->status.jobs, r->process.config, v, &request, clock_wall(), ret_job, err);
}

/* Does the action open a case? */
static bool opens_case(enum status_page page)
{
	return page == STATUS_REDO || page == STATUS_NEWER || page == STATUS_SWEEP;
}

/* *ret_job: the case that was made; else unchanged. */
static int append_action(struct reporter *r, const struct status_request *q, const struct job_view *v, int64_t *ret_job,
			 struct err *err)
{
	json_t *detail = NULL;
	int ret = work_process_open_journal(&r->process, err);

	if (ret == 0 && q->page == STATUS_REDO)
		ret = redo_case(r, q, v, ret_job, err);
	else if (ret == 0 && q->page == STATUS_NEWER)
		ret = case_newer_open(r->process.journal, &r->status.jobs, v, "on the status page", person_of(q), clock_wall(),
				      ret_job, err);
	else if (ret == 0 && q->page == STATUS_SWEEP)
		ret = case_sweep_open(r->process.journal, &r->status.jobs, v, atol(q->choice), "on the status page", person_of(q),
				      clock_wall(), ret_job, err);
	else if (ret == 0)
		ret = action_detail(r, q, v, &detail, err);
	if (ret == 0 && !opens_case(q->page))
		ret = event_append(r->process.journal, q->job, q->page == STATUS_CANCEL ? EVENT_CANCEL : EVENT_RETRY, detail,
				   clock_wall(), err);
	r->process.journal = journal_close(r->process.journal);
	if (ret == 0)
		work_process_notify(&r->process);
	return ret;
}

static void perform_action(struct reporter *r, const struct status_request *q, struct status_reply *a)
{
	const struct job_view *v = jobs_find(&r->status.jobs, q->job);
	struct err err = {0};
	int64_t job = 0;
	int ret;

	if (!config_status_may_act(r->process.config)) {
		reply_sentence(a, &r->status, 403, "Not allowed",
			       "The configuration does not allow actions on this page (status.actions).");
		return;
	}
	if (!v) {
		reply_sentence(a, &r->status, 404, "No such case", "The journal has no case of this number.");
		return;
	}
	if ((q->page == STATUS_AS_IS && !job_hint_as_is(v)) || (q->page == STATUS_SAME && !job_hint_same_patient(v))) {
		reply_sentence(a, &r->status, 409, "Nothing was done",
			       q->page == STATUS_AS_IS ? "The case is no longer held because of missing images."
						       : "The case is no longer held because of its patients.");
		return;
	}
	if (q->page == STATUS_RETRY && case_replaced_by(&r->status.jobs, v)) {
		reply_sentence(a, &r->status, 409, "Nothing was done", "Its images were sent again: another case counts.");
		return;
	}
	ret = append_action(r, q, v, &job, &err);
	r->updated = 0;
	if (ret == 0)
		*a = (struct status_reply){.code = 303, .job = job, .type = STATUS_TYPE_TEXT};
	else
		reply_sentence(a, &r->status, ret == -ESTALE || ret == -EINVAL || ret == -ENOENT ? 409 : 503, "Nothing was done",
			       err.msg);
}

/* At the end of a period, log the number of refused requests that were not logged individually. */
static void count_refused(struct reporter *r, double now)
{
	if (now - r->refused_since <= REFUSED_SECONDS)
		return;
	if (r->refused > REFUSED_LOGGED)
		log_event(LOG_WARNING, "status-requests-refused", "more=%u", r->refused - REFUSED_LOGGED);
	r->refused_since = now;
	r->refused = 0;
}

/* Log a request that the HTTP process refused; above a number in a period they are only counted. */
static void log_refused(struct reporter *r, const char *text)
{
	count_refused(r, clock_seconds());
	if (++r->refused <= REFUSED_LOGGED)
		log_event(LOG_WARNING, "status-request-refused", "reason=%s", log_quote(text));
}

static void answer_request(struct reporter *r, const struct status_request *q, struct status_reply *a)
{
	struct html h = {0};

	r->status.language = q->language;
	/* The HTTP process has refused it already, or an attacker controls that process. */
	if (q->person.role < status_page_role(q->page)) {
		reply_sentence(a, &r->status, 403, "Not allowed", "Your groups do not allow this.");
		return;
	}
	update_status(r, q->page == STATUS_SLICE ? SLICE_SECONDS : UPDATE_SECONDS);
	r->status.person = q->person;
	switch (q->page) {
	case STATUS_OVERVIEW:
		status_write_overview(&h, &r->status, q->token);
		reply_text(a, &h, 200, STATUS_TYPE_HTML);
		break;
	case STATUS_CASES:
		status_write_cases(&h, &r->status, &q->filter);
		reply_text(a, &h, 200, STATUS_TYPE_HTML);
		break;
	case STATUS_CASE:
		reply_case(a, &r->status, q);
		break;
	case STATUS_JSON:
		reply_json(a, &r->status);
		break;
	case STATUS_METRICS:
		status_write_metrics(&h, &r->status);
		reply_text(a, &h, 200, STATUS_TYPE_METRICS);
		break;
	case STATUS_HEALTH:
		reply_health(a, &r->status);
		break;
	case STATUS_THUMBNAIL:
		reply_thumbnail(a, &r->status, q->job);
		break;
	case STATUS_STRIP:
		reply_strip(a, r, q->job);
		break;
	case STATUS_SLICE:
		reply_slice(a, r, q);
		break;
	case STATUS_LOOK:
	case STATUS_COMPARE:
		reply_look(a, &r->status, q);
		break;
	case STATUS_REPORT:
		reply_report(a, r, q->job);
		break;
	case STATUS_REFUSED:
		log_refused(r, q->refused);
		*a = (struct status_reply){.code = 204, .type = STATUS_TYPE_TEXT};
		break;
	default:
		perform_action(r, q, a);
	}
}

/* ---- the HTTP process ---- */

static void start_http(struct reporter *r)
{
	const char *path = r->process.config->path;
	char listen_number[16], ipc_number[16];
	char *argv[] = {"tomonode", "http", "--listen", listen_number, "--ipc", ipc_number, NULL, NULL, NULL};
	struct err err = {0};
	int pair[2];

	r->http_since = clock_seconds();
	r->http_at = r->http_since + r->http_wait; /* time of the next attempt if the start fails */
	if (status_ipc_pair(pair) < 0) {
		log_event(LOG_ERR, "status-http-not-started", "reason=%s", log_quote(strerror(errno)));
		return;
	}
	snprintf(listen_number, sizeof(listen_number), "%d", r->process.listen_fd);
	snprintf(ipc_number, sizeof(ipc_number), "%d", pair[1]);
	if (path[0]) {
		argv[6] = "-c";
		argv[7] = (char *)path;
	}
	if (spawn_start(argv, (int[]){r->process.listen_fd, pair[1]}, 2, &r->http, &err) < 0) {
		log_event(LOG_ERR, "status-http-not-started", "reason=%s", log_quote(err.msg));
		close(pair[0]);
		r->http = 0;
	} else {
		r->ipc_fd = pair[0];
	}
	close(pair[1]);
}

/* Kill the HTTP process, if it runs, and plan the start of another one. */
static void drop_http(struct reporter *r)
{
	bool lived = clock_seconds() - r->http_since > 60;

	if (r->ipc_fd >= 0)
		close(r->ipc_fd);
	r->ipc_fd = -1;
	if (r->http > 0) {
		kill(r->http, SIGKILL);
		while (waitpid(r->http, NULL, 0) < 0 && errno == EINTR)
			;
	}
	r->http = 0;
	r->http_wait = lived || r->http_wait == 0 ? HTTP_WAIT_FIRST : 2 * r->http_wait;
	if (r->http_wait > HTTP_WAIT_CAP)
		r->http_wait = HTTP_WAIT_CAP;
	r->http_at = clock_seconds() + r->http_wait;
}

static void serve_one(struct reporter *r)
{
	struct status_reply a = {0};
	struct status_request q;
	int got = status_ipc_receive(r->ipc_fd, &q);
	bool taken = got >= 0;

	if (got > 0) {
		answer_request(r, &q, &a);
		taken = status_ipc_reply(r->ipc_fd, &a, ANSWER_SECONDS);
		free(a.bytes);
	}
	if (taken)
		return;
	log_event(LOG_WARNING, "status-http-ended", "retry_seconds=%.1f", r->http_wait > 0 ? 2 * r->http_wait : HTTP_WAIT_FIRST);
	drop_http(r);
}

static void loop_reporter(struct reporter *r, const sigset_t *waiting)
{
	while (!stop_requested) {
		struct pollfd fds[4 + LOOK_MAKERS] = {{.fd = r->ipc_fd, .events = POLLIN},
						      {.fd = r->status.names.fd, .events = POLLIN},
						      {.fd = r->report.fd, .events = POLLIN},
						      {.fd = r->strip.maker[0].fd, .events = POLLIN}};
		struct timespec tick = {.tv_sec = 1};
		double left;

		if (r->http == 0 && clock_seconds() >= r->http_at)
			start_http(r);
		left = r->http_at - clock_seconds();
		if (r->http == 0 && left < 1)
			tick = (struct timespec){.tv_nsec = (long)(left > 0 ? 1e9 * left : 0)};
		fds[0].fd = r->ipc_fd;
		for (int i = 0; i < LOOK_MAKERS; i++)
			fds[4 + i] = (struct pollfd){.fd = r->look.maker[i].fd, .events = POLLIN};
		if (ppoll(fds, 4 + LOOK_MAKERS, &tick, waiting) < 0)
			continue;
		if (fds[0].revents)
			serve_one(r);
		status_names_receive(&r->status.names);
		status_report_receive(&r->report);
		status_look_receive(&r->look, &r->status);
		status_look_receive(&r->strip, &r->status);
		if (r->process.config->status.show_patient && clock_seconds() - r->updated < NAMES_SECONDS)
			status_names_request(&r->status.names, &r->status);
		count_refused(r, clock_seconds());
	}
	count_refused(r, INFINITY);
}

int cmd_status(int argc, char **argv)
{
	struct reporter r = {.ipc_fd = -1};
	struct sigaction sa = {.sa_handler = on_stop};
	sigset_t blocked, waiting;
	int code = CODE_OK;

	if (!work_process_options(&r.process, "status", "-c FILE --listen FD", 0, argc, argv, &code))
		return code;
	if (r.process.listen_fd < 0) {
		work_process_end(&r.process);
		return CODE_USAGE;
	}
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &waiting);
	sigdelset(&waiting, SIGTERM);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGTERM, &sa, NULL);
	status_begin(&r.status, r.process.config);
	status_report_begin(&r.report);
	status_look_begin(&r.look, status_look_makers());
	status_look_begin(&r.strip, 1);
	loop_reporter(&r, &waiting);
	drop_http(&r);
	status_report_end(&r.report);
	status_look_end(&r.look);
	status_look_end(&r.strip);
	status_end(&r.status);
	work_process_end(&r.process);
	return CODE_OK;
}
