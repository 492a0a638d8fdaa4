/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/node_problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node/base/bytes_text.h"
#include "node/config/route.h"
#include "node/store/orphans.h"

#define DAY 86400.0

static void set_text(char *to, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void set_text(char *to, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to, size, fmt, ap);
	va_end(ap);
	for (; *to; to++) /* a reason may have several lines: SQLite's check of the journal */
		if (*to == '\n' || *to == '\r' || *to == '\t')
			*to = ' ';
}

/* Add a problem with its remedy. The caller sets the text with SET_TEXT(). */
static struct node_problem *add_problem(struct node_problems *all, bool critical, const char *id, const char *remedy)
{
	static struct node_problem dropped; /* receives what does not fit; never read */
	struct node_problem *p = all->n < NODE_PROBLEMS_MAX ? &all->list[all->n++] : &dropped;

	p->critical = critical;
	p->text[0] = p->subject[0] = '\0';
	set_text(p->id, sizeof(p->id), "%s", id);
	set_text(p->remedy, sizeof(p->remedy), "%s", remedy);
	return p;
}
#define SET_TEXT(problem, ...) set_text((problem)->text, sizeof((problem)->text), __VA_ARGS__)
#define SET_SUBJECT(problem, ...) set_text((problem)->subject, sizeof((problem)->subject), __VA_ARGS__)
#define SET_REMEDY(problem, ...) set_text((problem)->remedy, sizeof((problem)->remedy), __VA_ARGS__)

static const char *or_unknown(const char *reason)
{
	return reason[0] ? reason : "no reason given";
}

/* ---- processes ---- */

static void find_manager(const struct node_facts *f, struct node_problems *all)
{
	if (!f->runs) {
		if (f->expect_running)
			SET_TEXT(add_problem(all, true, "not-running",
					     "Start it (systemctl start tomonode), and see the log for why it ended."),
				 "The node does not run: it receives, reconstructs and delivers nothing.");
		return;
	}
	if (f->manager_stopped)
		SET_TEXT(add_problem(all, true, "manager-stopped", "Continue it (kill -CONT), or restart the node."),
			 "The main process (%ld) is stopped by a signal: images are stored, but no case continues.", f->manager);
	else if (f->manager_silent > NODE_SILENT_SECONDS)
		SET_TEXT(add_problem(all, true, "manager-silent", "Check the spool's disk and the log; restart the node."),
			 "The main process (%ld) has given no sign of life for %.0f s: no case continues.", f->manager,
			 f->manager_silent);
	else if (f->report_age > NODE_REPORT_SECONDS)
		SET_TEXT(
			add_problem(all, true, "facts-old", "Check the spool's disk (space, inodes, mount), its owner and mode."),
			"What is shown of processes, ports and devices is old: %s/node.json could not be written for %.0f s.",
			f->spool, f->report_age);
}

static void find_processes(const struct manager_facts *m, struct node_problems *all)
{
	for (size_t i = 0; i < m->n_processes; i++) {
		const struct node_process *p = &m->processes[i];
		bool receiver = !strcmp(p->role, "receiver");
		struct node_problem *problem = NULL;

		if (p->stopped) {
			problem = add_problem(all, receiver, receiver ? "receiver-stopped" : "process-stopped",
					      "Continue it (kill -CONT), or restart the node.");
			SET_TEXT(problem, "The %s process (%ld) is stopped by a signal%s.", p->role, p->pid,
				 receiver ? ": the node accepts no images" : ": it does no work");
		} else if (p->silent > NODE_SILENT_SECONDS) {
			problem = add_problem(all, receiver, receiver ? "receiver-silent" : "process-silent",
					      "Check the spool's disk and the log; restart the node.");
			SET_TEXT(problem, "The %s process (%ld) has given no sign of life for %.0f s%s.", p->role, p->pid,
				 p->silent, receiver ? ": the node may accept no images" : "");
		}
		if (problem)
			SET_SUBJECT(problem, "%s", p->role);
	}
}

static void find_receiver(const struct node_facts *f, struct node_problems *all)
{
	const struct manager_facts *m = &f->from_manager;

	if (!m->receiver)
		SET_TEXT(add_problem(all, true, "receiver",
				     "It is restarted automatically; if this stays, see the log (receiver-failed)."),
			 "The receiver does not run: the node accepts no images.");
	if (m->receiver_fault[0])
		SET_TEXT(add_problem(all, true, "listener",
				     "Mend the cause, then reload the configuration (systemctl reload tomonode)."),
			 "The receiver cannot accept connections on every port: %s.", m->receiver_fault);
	if (m->receiver_limit[0])
		SET_TEXT(add_problem(all, false, "descriptors",
				     "Raise the limit, or lower node.max_associations; then restart the node."),
			 "The receiver can serve fewer associations than configured: %s.", m->receiver_limit);
	if (m->receiver_full[0])
		SET_TEXT(
			add_problem(
				all, false, "associations-full",
				"See in the log which peers hold them (association-accepted); limit these (associations of peers, "
				"node.peer_associations), or raise node.max_associations."),
			"The node rejects associations: %s.", m->receiver_full);
	if (m->file_limit > 0)
		SET_TEXT(add_problem(all, false, "file-size", "Remove the limit, then restart the node."),
			 "The node may write no file of more than %.1f MB (ulimit -f, LimitFSIZE): larger objects are refused, "
			 "cases with larger results are held, and the journal cannot grow beyond it.",
			 (double)m->file_limit / 1e6);
	if (m->incoming[0] && f->disk_free >= f->reserve) /* else the full disk is the problem */
		SET_TEXT(add_problem(all, true, "incoming", "Check the folder, its owner and mode, and the disk."),
			 "No object can be written: %s. New images are refused.", m->incoming);
	if (m->results[0])
		SET_TEXT(add_problem(all, true, "results", "Check the folder, its owner and mode, and the disk."),
			 "No result can be written: %s. Cases wait.", m->results);
	if (m->audit[0])
		SET_TEXT(add_problem(all, true, "audit", "Check node.audit_file, its owner and mode, or the syslog socket."),
			 "Audit messages are not taken: %s. They wait in SPOOL/audit and are sent later.", m->audit);
}

/* ---- journal ---- */

static void find_journal(const struct node_facts *f, struct node_problems *all)
{
	const struct manager_facts *m = &f->from_manager;

	if (f->runs && m->journal_error[0])
		SET_TEXT(add_problem(
				 all, true, "journal-unreadable",
				 "Check the spool's disk; the node tries again automatically. If the file is damaged, restore a "
				 "backup (docs/disk-dies.md)."),
			 "The node cannot open its journal: %s. No case continues.", m->journal_error);
	else if (f->journal_error[0])
		SET_TEXT(
			add_problem(
				all, !f->journal_missing, "journal-unreadable",
				f->journal_missing
					? ""
					: "Check the spool's disk; if the file is damaged, restore a backup (docs/disk-dies.md)."),
			"The journal cannot be read: %s.", f->journal_error);
	if (m->journal_replaced)
		SET_TEXT(
			add_problem(all, true, "journal-replaced",
				    "Stop the node, put the right journal.db back (with its -wal and -shm), and start the node."),
			"The journal %s/journal.db was removed or replaced while the node runs: new images are recorded in "
			"another file than the one that the node reads.",
			f->spool);
	if (m->journal_damage[0])
		SET_TEXT(
			add_problem(
				all, true, "journal-damaged",
				"Let the node deliver what it can, then restore a backup, or move the spool away and send its images "
				"again (docs/disk-dies.md)."),
			"The journal is damaged: %s. Cases may not continue; new images are accepted and kept.",
			m->journal_damage);
	else if (m->journal_unchecked[0])
		SET_TEXT(add_problem(all, false, "journal-unchecked",
				     "Mend the cause, then restart the node: it checks the journal when it starts."),
			 "The journal was not checked for damage: %s.", m->journal_unchecked);
	if (m->case_unread[0])
		SET_TEXT(add_problem(all, false, "case-unreadable",
				     "Check the spool's disk; if the file is damaged, restore a backup (docs/disk-dies.md)."),
			 "The rows of a case cannot be read: %s. Cases of the same study or series wait, others go on.",
			 m->case_unread);
	if (f->unindexed > 0 && f->unindexed_for > NODE_INDEX_SECONDS)
		SET_TEXT(add_problem(all, false, "index-late",
				     "See the log (process-stuck, index-failed) and the machine's load."),
			 "%llu %s for the indexer, the oldest since %.0f s: %s cases are not shown yet.",
			 (unsigned long long)f->unindexed, f->unindexed == 1 ? "object waits" : "objects wait", f->unindexed_for,
			 f->unindexed == 1 ? "its" : "their");
}

/* ---- spool ---- */

static void find_disk(const struct node_facts *f, struct node_problems *all)
{
	static const char remedy[] = "Free space on the spool's disk, or set node.retention_space or node.reserve lower.";
	char left[16], reserve[16];

	bytes_text((double)f->disk_free, left, sizeof(left));
	bytes_text((double)f->reserve, reserve, sizeof(reserve));
	if (f->disk_error[0])
		SET_TEXT(add_problem(all, true, "disk-unreadable", "Check the disk and its mount."),
			 "The spool's disk cannot be used: %s.", f->disk_error);
	else if (f->no_inodes)
		SET_TEXT(add_problem(all, true, "disk-full", remedy),
			 "The disk is full: it has no inode for another file. New images are refused until there is one.");
	else if (f->disk_size > 0 && f->disk_free < f->reserve)
		SET_TEXT(add_problem(all, true, "disk-full", remedy),
			 "The disk is full: %s are free, %s must stay free. New images are refused until there is space.", left,
			 reserve);
	else if (f->disk_size > 0 && f->disk_free / 2 < f->reserve)
		SET_TEXT(add_problem(all, false, "disk-low", remedy),
			 "The disk is nearly full: %s are free; below %s new images are refused.", left, reserve);
}

static void find_orphans(const struct node_facts *f, struct node_problems *all)
{
	bool one = f->orphans == 1;
	struct node_problem *p;

	if (f->orphans == 0)
		return;
	p = add_problem(all, false, "orphans", "");
	SET_TEXT(p, "%llu %s in %s/%s but not in the journal: a crash left %s, or this is an older journal.",
		 (unsigned long long)f->orphans, one ? "image is" : "images are", f->spool, ORPHANS_FOLDER, one ? "it" : "them");
	SET_REMEDY(p, "%s",
		   one ? "Send it to this node again (storescu; images that it has are not stored twice), then remove it."
		       : "Send them to this node again (storescu; images that it has are not stored twice), then remove them.");
}

/* ---- devices, certificates, destinations, routes ---- */

/* Slurm starts pilots when cases wait. */
static bool slurm_works(const struct node_cluster *c)
{
	return c->used && (!strcmp(c->state, "up") || !strcmp(c->state, "full"));
}

static void find_devices(const struct manager_facts *m, struct node_problems *all)
{
	size_t disabled = 0, local = 0, connected = 0;

	for (size_t i = 0; i < m->n_devices; i++) {
		struct node_problem *p;

		local += !m->devices[i].pilot;
		connected += m->devices[i].connected;
		if (!m->devices[i].disabled)
			continue;
		disabled++;
		p = add_problem(all, false, "device-disabled",
				"It is tested again automatically; check it with tomonode devices --check.");
		SET_SUBJECT(p, "%s", m->devices[i].name);
		SET_TEXT(p, "Device %s is disabled: %s.", m->devices[i].name, or_unknown(m->devices[i].reason));
	}
	if (disabled > 0 && disabled == local && connected == 0 && !slurm_works(&m->cluster))
		SET_TEXT(add_problem(all, true, "no-device",
				     "Correct node.device, or repair a device, and reload the configuration."),
			 "No device can reconstruct: cases wait.");
}

/* A full cluster is busy, not broken. Without local devices and pilots cases wait. */
static void find_cluster(const struct node_cluster *c, struct node_problems *all)
{
	static const char *const remedies[][2] = {
		{"down", "Check slurmctld and munge (scontrol ping); it is tried again automatically."},
		{"busy", "It is tried again automatically."},
		{"refuses", "Check the keys of slurm in the configuration (tomonode check), and the account."},
		{"draining", "See squeue and sinfo -R: nodes or the partition are down or drained."},
		{"full", "Cases wait until other jobs end; more pilots need another partition or priority."},
		{"failing", "See the job's output (output of slurm) and docs/cluster.md."},
	};
	bool alone = !c->local && c->idle + c->busy == 0 && strcmp(c->state, "full") != 0;

	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (!strcmp(c->state, remedies[i][0]))
			SET_TEXT(add_problem(all, alone, "cluster", remedies[i][1]), "%s.", c->text);
}

/* Pilots that nobody but an administrator starts. */
static void find_pilots(const struct node_facts *f, struct node_problems *all)
{
	const struct manager_facts *m = &f->from_manager;
	size_t local = 0, connected = 0;

	for (size_t i = 0; i < m->n_devices; i++) {
		local += !m->devices[i].pilot;
		connected += m->devices[i].connected;
	}
	if (m->pilots_unheard[0])
		SET_TEXT(add_problem(
				 all, local + connected == 0, "pilots-unheard",
				 "Stop the other program, or correct bind and port of cluster; it is tried again automatically."),
			 "Pilots cannot connect: %s.", m->pilots_unheard);
	else if (m->n_devices > 0 && local + connected == 0 && f->config && !(f->config->node.executor & EXECUTOR_SLURM))
		SET_TEXT(add_problem(all, f->ready > 0, "no-pilot", "Start a pilot (tomonode pilot)."),
			 "No pilot is connected, and devices of this machine are not used: %s.",
			 f->ready > 0 ? "cases wait" : "the next case will wait");
	if (m->pilot_refused[0])
		SET_TEXT(
			add_problem(
				all, false, "pilot-refused",
				"Correct it on the pilot's machine: it connects again by itself, or when its job or container is "
				"started again."),
			"Pilot %s.", m->pilot_refused);
}

static void format_date(double at, char *ret_text, size_t size)
{
	time_t t = (time_t)at;
	struct tm parts;

	gmtime_r(&t, &parts);
	strftime(ret_text, size, "%Y-%m-%d %H:%M UTC", &parts);
}

static bool revocation_list_problem(const struct node_certificate *c, double now, struct node_problems *all)
{
	bool over = now >= c->until;
	struct node_problem *p;
	char date[40];

	if (c->until - now >= NODE_CRL_DAYS * DAY)
		return false;
	format_date(c->until, date, sizeof(date));
	p = add_problem(all, over && c->listener, over ? "crl-ended" : "crl-ends",
			"Replace the list and reload the configuration.");
	if (over)
		SET_TEXT(p,
			 "%s: a list of revoked certificates in %s ended on %s: no peer with a certificate of this authority is "
			 "accepted until the list is replaced.",
			 c->whose, c->file, date);
	else
		SET_TEXT(p, "%s: a list of revoked certificates in %s ends on %s.", c->whose, c->file, date);
	return true;
}

static bool find_certificate(const struct node_certificate *c, double now, struct node_problems *all)
{
	bool early = now < c->from, over = now >= c->until;
	char date[40];

	if (c->unusable[0]) {
		SET_TEXT(add_problem(all, c->listener, "certificate-unusable", "Correct the files and reload the configuration."),
			 "%s: %s.", c->whose, c->unusable);
		return true;
	}
	if (c->crl)
		return revocation_list_problem(c, now, all);
	if (!early && c->until - now >= NODE_CERTIFICATE_DAYS * DAY)
		return false;
	format_date(early ? c->from : c->until, date, sizeof(date));
	if (early)
		SET_TEXT(add_problem(all, c->listener, "certificate-early", "Check the clock of this machine."),
			 "%s: the certificate in %s is not valid before %s: peers will refuse it.", c->whose, c->file, date);
	else if (over)
		SET_TEXT(add_problem(all, c->listener, "certificate-expired",
				     "Install a new certificate and reload the configuration."),
			 "%s: the certificate in %s expired on %s: peers will refuse it.", c->whose, c->file, date);
	else
		SET_TEXT(
			add_problem(all, false, "certificate-expires", "Install a new certificate and reload the configuration."),
			"%s: the certificate in %s expires on %s, in %.0f days.", c->whose, c->file, date,
			(c->until - now) / DAY);
	return true;
}

static bool certificate_problem(const struct node_certificate *c, double now, struct node_problems *all)
{
	size_t n = all->n;
	bool found = find_certificate(c, now, all);

	if (all->n > n)
		SET_SUBJECT(&all->list[n], "%.60s, %.130s", c->whose, c->file);
	return found;
}

bool node_problem_of_certificate(const struct node_certificate *c, double now, struct node_problem *ret)
{
	struct node_problems one = {.n = 0};
	bool found = certificate_problem(c, now, &one);

	if (found)
		*ret = one.list[0];
	return found;
}

bool node_problem_is_over(const struct node_problem *p)
{
	return strcmp(p->id, "certificate-expires") != 0 && strcmp(p->id, "crl-ends") != 0;
}

bool node_problem_is_of_configuration(const struct node_problem *p)
{
	return !strcmp(p->id, "certificate-expired") || !strcmp(p->id, "certificate-early") || !strcmp(p->id, "crl-ended");
}

static void find_unconfirmed(const struct destination_state *d, struct node_problems *all)
{
	struct node_problem *p;

	if (d->unconfirmed == 0)
		return;
	p = add_problem(all, false, "commitment-late", "");
	SET_SUBJECT(p, "%s", d->name);
	SET_TEXT(
		p,
		d->unconfirmed == 1
			? "Storage is not confirmed by %s: %s. %zu case was sent and waits for it; the node asks again automatically."
			: "Storage is not confirmed by %s: %s. %zu cases were sent and wait for it; the node asks again automatically.",
		d->name, d->unconfirmed_reason[0] ? d->unconfirmed_reason : "no answer", d->unconfirmed);
	SET_REMEDY(p, "Let %s permit storage commitment, and know AE title, address and port of this node.", d->name);
}

static void find_destinations(const struct node_facts *f, struct node_problems *all)
{
	const struct manager_facts *m = &f->from_manager;
	struct node_problem *p;

	for (size_t i = 0; i < f->n_destinations; i++) {
		const struct destination_state *d = &f->destinations[i];

		find_unconfirmed(d, all);
		if (!d->down)
			continue;
		p = add_problem(all, false, "destination-down", "");
		SET_SUBJECT(p, "%s", d->name);
		SET_TEXT(p,
			 d->waiting == 1
				 ? "Results cannot be sent to %s: %s. %zu case waits for it; the node tries again automatically."
				 : "Results cannot be sent to %s: %s. %zu cases wait for it; the node tries again automatically.",
			 d->name, d->reason[0] ? d->reason : "no answer", d->waiting);
		SET_REMEDY(p, "Test it with tomonode test-peer %s.", d->name);
	}
	for (size_t i = 0; i < m->n_unresolved; i++) {
		const struct node_unresolved *u = &m->unresolved[i];

		p = add_problem(all, false, "destination-name", "Correct host of the destination, or the name service.");
		SET_SUBJECT(p, "%s", u->destination);
		SET_TEXT(p, "Destination %s: the name %s cannot be resolved: %s. Nothing can be sent to it.", u->destination,
			 u->host, u->reason);
	}
}

static void find_routes(const struct config *c, struct node_problems *all)
{
	for (size_t i = 0; c && i < c->n_routes; i++) {
		struct node_problem *p;
		char why[400];

		if (!config_route_is_unreachable(c, i, why, sizeof(why)))
			continue;
		p = add_problem(all, false, "route",
				"Change the order of the routes, its patterns or its AE title, or remove it.");
		SET_SUBJECT(p, "%s", c->routes[i].name);
		SET_TEXT(p, "Route %s is never used: %s.", c->routes[i].name, why);
	}
}

static void find_configuration(const struct manager_facts *m, struct node_problems *all)
{
	if (m->reload[0])
		SET_TEXT(add_problem(all, false, "reload", "Correct the configuration (tomonode check) and reload it again."),
			 "The configuration was not reloaded, the earlier one is in effect: %s.", m->reload);
	if (m->page[0])
		SET_TEXT(add_problem(all, false, "page",
				     "Stop the other program, or change status.port; it is tried again automatically."),
			 "The status page is not served: %s.", m->page);
	if (m->alerts_fault[0])
		SET_TEXT(add_problem(all, false, "alerts", "Test it with tomonode test-alert; it is tried again automatically."),
			 "Alerts cannot be sent: %s.", m->alerts_fault);
}

static void find_cases(const struct node_facts *f, struct node_problems *all)
{
	if (f->no_space > 0)
		SET_TEXT(
			add_problem(all, true, "no-space",
				    "Mend the reason (tomonode show ID: space, or the owner of files); the cases are tried again "
				    "automatically, or at once with tomonode retry ID."),
			"%zu %s found no space, or no access to files, in %d attempts or more.", f->no_space,
			f->no_space == 1 ? "case has" : "cases have", NODE_SPACE_TRIES);
	if (f->attention > 0)
		SET_TEXT(add_problem(all, false, "cases", "tomonode show ID gives the reason and what to do."),
			 "%zu %s attention.", f->attention, f->attention == 1 ? "case needs" : "cases need");
}

/* ---- the list ---- */

/* Move the critical problems to the front; keep the order otherwise. */
static void critical_first(struct node_problems *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct node_problem one = p->list[i];

		if (!one.critical)
			continue;
		memmove(&p->list[n + 1], &p->list[n], (i - n) * sizeof(one));
		p->list[n++] = one;
	}
}

void node_problems_find(const struct node_facts *f, struct node_problems *ret)
{
	ret->n = 0;
	find_manager(f, ret);
	find_journal(f, ret);
	find_disk(f, ret);
	if (f->reported && f->runs) {
		find_receiver(f, ret);
		find_processes(&f->from_manager, ret);
		find_devices(&f->from_manager, ret);
		find_cluster(&f->from_manager.cluster, ret);
		find_pilots(f, ret);
		find_configuration(&f->from_manager, ret);
	}
	for (size_t i = 0; i < f->from_manager.n_certificates; i++)
		certificate_problem(&f->from_manager.certificates[i], f->now, ret);
	find_orphans(f, ret);
	find_destinations(f, ret);
	find_routes(f->config, ret);
	find_cases(f, ret);
	critical_first(ret);
}

bool node_problems_are_critical(const struct node_problems *p)
{
	return p->n > 0 && p->list[0].critical;
}

void node_problem_line(const struct node_problem *p, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s%s", p->text, p->remedy[0] ? " " : "", p->remedy);
}
