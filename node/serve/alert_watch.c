/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/alert_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "node/alert/alert_json.h"
#include "node/alert/alert_send.h"
#include "node/base/log.h"

#define GRACE 10.0 /* s beyond the timeout of an attempt, after which its process is killed */

struct alert_page {
	char reason[300];
};

static struct alert_limits limits_of(const struct config *config)
{
	return (struct alert_limits){config->alerts.delay, config->alerts.settle, config->alerts.interval};
}

static void set_fault(struct alert_watch *w, const char *reason)
{
	if (!w->fault[0])
		log_event(LOG_ERR, "alerts-not-sent", "untold=%zu reason=%s", alerts_untold(&w->alerts), log_quote(reason));
	snprintf(w->fault, sizeof(w->fault), "%.299s", reason);
}

/* ---- the file ---- */

static void read_file(struct alert_watch *w, const struct schedule *s)
{
	struct err err = {0};

	w->read = true;
	w->dirty = true; /* so that the file is there before the disk is full */
	if (alert_file_read(s->config->node.spool, s->clock, &w->alerts, &err) < 0)
		log_event(LOG_WARNING, "alerts-unreadable", "reason=%s", log_quote(err.msg));
}

/* A full disk must not keep the message that says so: it is sent even if the file cannot be written. */
static void write_file(struct alert_watch *w, const struct schedule *s)
{
	struct err err = {0};

	if (!w->dirty)
		return;
	w->dirty = alert_file_write(s->config->node.spool, &w->alerts, &err) < 0;
	if (w->dirty && !w->unwritten)
		log_event(LOG_ERR, "alerts-not-stored", "reason=%s", log_quote(err.msg));
	w->unwritten = w->dirty;
}

/* ---- the process that sends ---- */

struct send_ctx {
	const struct config *config;
	const char *text;
	struct alert_page *page;
};

static int send_message(void *ctx)
{
	struct send_ctx *c = ctx;
	struct err err = {0};
	int ret;

	process_close_inherited();
	ret = alert_send(c->config, c->text, true, &err);
	snprintf(c->page->reason, sizeof(c->page->reason), "%.299s", ret < 0 ? err.msg : "");
	return ret < 0;
}

static bool has_page(struct alert_watch *w)
{
	if (w->page)
		return true;
	w->page = mmap(NULL, sizeof(*w->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->page == MAP_FAILED)
		w->page = NULL;
	return w->page != NULL;
}

static void start_alert(struct alert_watch *w, struct schedule *s)
{
	static const struct process p = {.role = PROCESS_ALERT};
	struct send_ctx ctx = {s->config, alert_message_text(&w->alerts, s->config), NULL};
	struct process *running;
	struct err err = {0};

	snprintf(err.msg, sizeof(err.msg), "no memory");
	if (ctx.text && has_page(w)) {
		ctx.page = w->page;
		snprintf(w->page->reason, sizeof(w->page->reason), "the process that sends them ended without a reason");
		process_table_fork(&s->processes, &p, send_message, &ctx, s->clock, &err);
	}
	free((char *)ctx.text);
	running = process_table_find(&s->processes, PROCESS_ALERT, 0, NULL);
	if (running) {
		running->kill_at = s->clock + s->config->alerts.timeout + GRACE;
		return;
	}
	set_fault(w, err.msg);
	alerts_failed(&w->alerts, s->clock);
}

void alert_watch_ended(struct alert_watch *w, int status, const struct schedule *s)
{
	struct alert_limits limits = limits_of(s->config);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		alerts_failed(&w->alerts, s->clock);
		if (!s->stopping) /* else it was ended with the node, and the message is sent again after the next start */
			set_fault(w, w->page->reason);
		return;
	}
	log_event(LOG_INFO, "alerts-sent", "message=%s", w->alerts.message.id);
	w->fault[0] = '\0';
	alerts_told(&w->alerts, &limits, s->clock);
	w->dirty = true;
	write_file(w, s);
}

void alert_watch_step(struct alert_watch *w, struct schedule *s, const struct node_problems *problems, double now)
{
	struct alert_limits limits = limits_of(s->config);
	struct err err = {0};
	int ret;

	if (!config_tells_alerts(s->config) || s->stopping || !problems) {
		w->fault[0] = '\0';
		return;
	}
	if (!w->read)
		read_file(w, s);
	ret = alert_list_fill(&w->seen, problems, s->journal ? &s->jobs : NULL, &w->alerts, &err);
	if (ret == 0)
		ret = alerts_step(&w->alerts, w->seen.list, w->seen.n, &limits, now, s->clock, alert_new_id, &err);
	if (ret < 0)
		set_fault(w, err.msg);
	w->dirty = w->dirty || ret == 1;
	write_file(w, s);
	if (alerts_is_due(&w->alerts, s->clock) && !process_table_find(&s->processes, PROCESS_ALERT, 0, NULL))
		start_alert(w, s);
}

void alert_watch_clear(struct alert_watch *w)
{
	if (w->page)
		munmap(w->page, sizeof(*w->page));
	alerts_clear(&w->alerts);
	alert_list_clear(&w->seen);
}
