/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/status_watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/log.h"
#include "node/receive/listen.h"

#define AGAIN 2.0	  /* s until the process is started again after its end */
#define LISTEN_AGAIN 30.0 /* s until the next attempt to listen if the address is in use */
#define STOP_GRACE 3.0

void status_watch_begin(struct status_watch *w)
{
	*w = (struct status_watch){.listen_fd = -1};
}

static void stop_listening(struct status_watch *w)
{
	if (w->listen_fd >= 0)
		close(w->listen_fd);
	w->listen_fd = -1;
}

void status_watch_reload(struct status_watch *w, const struct config *config, struct process_table *all, double clock)
{
	struct process *p = process_table_find(all, PROCESS_STATUS, 0, NULL);

	if (p) {
		p->retired = true;
		process_stop(p, clock, STOP_GRACE);
	}
	if (!config->status.enabled || strcmp(w->bind, config->status.bind) != 0 || w->port != config->status.port)
		stop_listening(w);
	w->at = config->status.enabled ? clock : 0;
	w->logged = false;
	w->reason[0] = '\0';
}

static int start_listening(struct status_watch *w, const struct status_conf *conf, struct err *err)
{
	const char *brackets = strchr(conf->bind, ':') ? "[]" : "";
	char address[120];
	int port = 0;

	w->listen_fd = listen_on(conf->bind, conf->port, &port, err);
	if (w->listen_fd < 0)
		return -1;
	snprintf(w->bind, sizeof(w->bind), "%s", conf->bind);
	w->port = conf->port;
	snprintf(address, sizeof(address), "http://%.1s%s%s:%d/", brackets, conf->bind, brackets[0] ? "]" : "", port);
	log_event(LOG_NOTICE, "status-page", "address=%s", log_quote(address));
	return 0;
}

void status_watch_step(struct status_watch *w, const struct config *config, const char *config_path, struct process_table *all,
		       double clock)
{
	struct process p = {.role = PROCESS_STATUS};
	char listen_number[16];
	const char *args[] = {"status", "--listen", listen_number, config_path ? "-c" : NULL, config_path, NULL};
	struct err err = {0};

	if (w->at == 0 || w->at > clock)
		return;
	if (w->listen_fd < 0 && start_listening(w, &config->status, &err) < 0) {
		if (!w->logged)
			log_event(LOG_ERR, "status-page-not-served", "reason=%s", log_quote(err.msg));
		w->logged = true;
		snprintf(w->reason, sizeof(w->reason), "%.299s", err.msg);
		w->at = clock + LISTEN_AGAIN;
		return;
	}
	w->reason[0] = '\0';
	snprintf(listen_number, sizeof(listen_number), "%d", w->listen_fd);
	p.listen_fd = w->listen_fd;
	w->at = 0;
	if (process_table_spawn(all, &p, args, clock, &err) < 0) {
		log_event(LOG_ERR, "status-page-not-served", "reason=%s", log_quote(err.msg));
		snprintf(w->reason, sizeof(w->reason), "%.299s", err.msg);
		w->at = clock + AGAIN;
	}
}

void status_watch_ended(struct status_watch *w, const struct process *p, const char *how, double clock)
{
	if (p->retired || w->listen_fd < 0)
		return;
	log_event(LOG_ERR, "status-ended", "how=%s", log_quote(how));
	w->at = clock + AGAIN;
}

void status_watch_end(struct status_watch *w)
{
	stop_listening(w);
	w->at = 0;
}
