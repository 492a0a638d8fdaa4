/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of what is wrong with the node: each fact alone gives one problem, with its severity and what to do. */
#include <signal.h>

#include "node/jobs/node_facts.h"
#include "node/serve/journal_check.h"
#include "tests/test.h"

#define NOW 1.7e9
#define DAY 86400.0

/* A node that works. */
static void working(struct node_facts *f)
{
	memset(f, 0, sizeof(*f));
	f->now = NOW;
	snprintf(f->spool, sizeof(f->spool), "/spool");
	f->expect_running = f->runs = f->reported = true;
	f->manager = 100;
	f->manager_silent = 3;
	f->from_manager.receiver = true;
	f->disk_size = 100e9;
	f->disk_free = 50e9;
	f->reserve = 1e9;
}

static struct node_facts facts;
static struct node_problems all;

static void expect_none(void)
{
	node_problems_find(&facts, &all);
	assert_int_equal(all.n, 0);
}

/* The facts give exactly one problem, with this id. part: of its line. */
static void expect_one(bool critical, const char *id, const char *part)
{
	char line[1200];

	node_problems_find(&facts, &all);
	if (all.n != 1)
		fail_msg("%zu problems, wanted %s alone", all.n, id);
	node_problem_line(&all.list[0], line, sizeof(line));
	assert_string_equal(all.list[0].id, id);
	assert_int_equal(all.list[0].critical, critical);
	assert_int_equal(node_problems_are_critical(&all), critical);
	if (!strstr(line, part))
		fail_msg("'%s' is not in: %s", part, line);
	assert_int_equal(all.list[0].text[strlen(all.list[0].text) - 1], '.');
}

/* A node that works but for the statements at the end has exactly one problem. */
#define ONE(critical, id, part, ...)                                                                                             \
	do {                                                                                                                     \
		working(&facts);                                                                                                 \
		__VA_ARGS__;                                                                                                     \
		expect_one(critical, id, part);                                                                                  \
	} while (0)

TEST(test_nothing)
{
	working(&facts);
	expect_none();
	assert_false(node_problems_are_critical(&all));
}

TEST(test_processes)
{
	ONE(true, "not-running", "systemctl start", facts.runs = false);
	facts.expect_running = false; /* `check` of a node that is not started yet */
	expect_none();

	ONE(true, "manager-stopped", "(100) is stopped by a signal", facts.manager_stopped = true);
	ONE(true, "manager-silent", "no sign of life for 31 s", facts.manager_silent = 31);
	working(&facts);
	facts.report_age = NODE_REPORT_SECONDS;
	expect_none();
	facts.report_age = NODE_REPORT_SECONDS + 1;
	expect_one(true, "facts-old", "node.json could not be written for 6 s");
	ONE(true, "results", "No result can be written: cannot write to x. Cases wait.",
	    snprintf(facts.from_manager.results, sizeof(facts.from_manager.results), "cannot write to x"));
	ONE(true, "audit", "Audit messages are not taken: cannot write x.",
	    snprintf(facts.from_manager.audit, sizeof(facts.from_manager.audit), "cannot write x"));
	ONE(true, "disk-full", "no inode", facts.no_inodes = true);
	ONE(true, "receiver", "accepts no images", facts.from_manager.receiver = false);

	ONE(true, "receiver-stopped", "The receiver process (7) is stopped by a signal: the node accepts no images.",
	    facts.from_manager.n_processes = 1;
	    facts.from_manager.processes[0] = (struct node_process){.role = "receiver", .pid = 7, .stopped = true});
	facts.from_manager.processes[0] = (struct node_process){.role = "receiver", .pid = 7, .silent = 40};
	expect_one(true, "receiver-silent", "no sign of life for 40 s");
	facts.from_manager.processes[0] = (struct node_process){.role = "worker", .pid = 8, .stopped = true};
	expect_one(false, "process-stopped", "The worker process (8) is stopped by a signal: it does no work.");
	facts.from_manager.processes[0].stopped = false; /* without a trouble it is not listed by the manager; no problem */
	expect_none();
}

TEST(test_way_in)
{
	ONE(true, "incoming", "No object can be written: cannot create x: Read-only file system.",
	    snprintf(facts.from_manager.incoming, sizeof(facts.from_manager.incoming), "cannot create x: Read-only file system"));
	ONE(true, "listener", "listener tls: no key",
	    snprintf(facts.from_manager.receiver_fault, sizeof(facts.from_manager.receiver_fault), "listener tls: no key"));
	ONE(false, "descriptors", "node.max_associations",
	    snprintf(facts.from_manager.receiver_limit, sizeof(facts.from_manager.receiver_limit), "1112 needed, 1024 allowed"));
	ONE(false, "associations-full", "rejects associations: all 8 are in use.",
	    snprintf(facts.from_manager.receiver_full, sizeof(facts.from_manager.receiver_full), "all 8 are in use"));
	ONE(false, "file-size", "no file of more than 0.4 MB (ulimit -f, LimitFSIZE)", facts.from_manager.file_limit = 400000);
	ONE(true, "disk-full", "500 MB are free, 1.0 GB must stay free", facts.disk_free = 0.5e9);
	facts.disk_free = 1.5e9;
	expect_one(false, "disk-low", "nearly full");
	ONE(true, "disk-unreadable", "Input/output error", facts.disk_free = facts.disk_size = 0;
	    snprintf(facts.disk_error, sizeof(facts.disk_error), "Input/output error"));
}

TEST(test_journal)
{
	ONE(true, "journal-replaced", "/spool/journal.db was removed or replaced", facts.from_manager.journal_replaced = true);
	ONE(true, "journal-unreadable", "disk I/O error",
	    snprintf(facts.journal_error, sizeof(facts.journal_error), "disk I/O error"));
	facts.journal_missing = true; /* a node that has just been started */
	expect_one(false, "journal-unreadable", "disk I/O error");
	ONE(true, "journal-unreadable", "file is not a database",
	    snprintf(facts.from_manager.journal_error, sizeof(facts.from_manager.journal_error), "file is not a database"));
	ONE(true, "journal-damaged", "The journal is damaged: row 3.",
	    snprintf(facts.from_manager.journal_damage, sizeof(facts.from_manager.journal_damage), "row 3"));
	snprintf(facts.from_manager.journal_damage, sizeof(facts.from_manager.journal_damage), "main\npage 3");
	expect_one(true, "journal-damaged", "is damaged: main page 3."); /* one line */
	working(&facts);
	journal_check_ended(&(struct journal_check){NULL}, SIGKILL, true, &facts.from_manager); /* the node is stopped */
	expect_none();
	journal_check_ended(&(struct journal_check){NULL}, SIGKILL, false, &facts.from_manager);
	expect_one(false, "journal-unchecked",
		   "was not checked for damage: the process that checks the journal died with signal 9");
	working(&facts);
	snprintf(facts.from_manager.case_unread, sizeof(facts.from_manager.case_unread),
		 "case 17: database disk image is malformed");
	expect_one(false, "case-unreadable", "cannot be read: case 17: database");
	working(&facts);
	facts.unindexed = 2;
	facts.unindexed_for = NODE_INDEX_SECONDS - 1;
	expect_none();
	facts.unindexed_for = NODE_INDEX_SECONDS + 1;
	expect_one(false, "index-late", "2 objects wait for the indexer, the oldest since 121 s");
	ONE(false, "orphans", "1 image is in /spool/orphans but not in the journal", facts.orphans = 1);
}

TEST(test_certificates)
{
	struct node_certificate *c = &facts.from_manager.certificates[0];
	struct node_problem p;

	working(&facts);
	facts.from_manager.n_certificates = 1;
	*c = (struct node_certificate){.whose = "Listener 'a'", .file = "/c.pem", .listener = true, .from = NOW - DAY};
	c->until = NOW + 31 * DAY;
	expect_none();
	assert_false(node_problem_of_certificate(c, NOW, &p));
	c->until = NOW + 29 * DAY;
	expect_one(false, "certificate-expires", "in 29 days");
	assert_true(node_problem_of_certificate(c, NOW, &p));
	assert_false(node_problem_is_over(&p) || node_problem_is_of_configuration(&p));
	c->until = NOW - 1; /* expires while the node runs: without another look at the file */
	expect_one(true, "certificate-expired", "/c.pem expired on");
	assert_true(node_problem_is_over(&all.list[0]) && node_problem_is_of_configuration(&all.list[0]));
	c->listener = false; /* one destination: the node still does the rest of its work */
	expect_one(false, "certificate-expired", "/c.pem expired on");
	c->from = NOW + 1;
	expect_one(false, "certificate-early", "clock");
	*c = (struct node_certificate){.whose = "Listener 'a'", .file = "/crl.pem", .listener = true, .crl = true};
	c->until = NOW + DAY + 1;
	expect_none();
	c->until = NOW + 100;
	expect_one(false, "crl-ends", "revoked certificates in /crl.pem ends on");
	c->until = NOW;
	expect_one(true, "crl-ended", "no peer with a certificate of this authority is accepted");
	snprintf(c->unusable, sizeof(c->unusable), "key file does not exist");
	expect_one(true, "certificate-unusable", "Listener 'a': key file does not exist.");
}

/* A destination that has the objects of a case: when its storage commitment counts as failed. */
TEST(storage_that_is_not_confirmed)
{
	static const struct {
		enum send_state state;
		int failures, commit_tries;
		bool unconfirmed;
	} rows[] = {{SEND_STORED, 0, 0, false}, {SEND_STORED, 1, 0, false}, {SEND_STORED, 2, 0, true},
		    {SEND_STORED, 0, 1, true},	{SEND_DUE, 2, 0, false},    {SEND_DONE, 0, 1, false}};
	struct destination_conf pacs = {.name = "pacs"};
	const struct config config = {.destinations = &pacs, .n_destinations = 1};
	static struct destination_state states[DESTINATION_STATES_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct job_send send = {.destination = "pacs",
					.state = rows[i].state,
					.failures = rows[i].failures,
					.commit_tries = rows[i].commit_tries,
					.sent = 5,
					.time = 9,
					.reason = "aborted"};
		struct job_view view = {.state = JOB_RECONSTRUCTED, .sends = &send, .n_sends = 1}, *list[] = {&view};
		struct jobs jobs = {.list = list, .n = 1, .open = list, .n_open = 1};

		assert_int_equal(destination_states(&config, &jobs, states), 1);
		assert_int_equal(states[0].unconfirmed, rows[i].unconfirmed);
		assert_true(states[0].last_sent == (rows[i].state == SEND_DUE ? 0 : 5)); /* also if it is not committed yet */
		assert_string_equal(states[0].unconfirmed_reason, rows[i].unconfirmed ? "aborted" : "");
	}
}

TEST(test_destinations_and_devices)
{
	struct manager_facts *m = &facts.from_manager;

	ONE(false, "destination-down", "Results cannot be sent to pacs: refused. 2 cases wait for it", facts.n_destinations = 1;
	    facts.destinations[0] = (struct destination_state){.name = "pacs", .waiting = 2, .down = true, .reason = "refused"});
	ONE(false, "commitment-late", "Storage is not confirmed by pacs: aborted. 1 case was sent and waits for it",
	    facts.n_destinations = 1;
	    facts.destinations[0] =
		    (struct destination_state){.name = "pacs", .unconfirmed = 1, .unconfirmed_reason = "aborted"});
	facts.destinations[0].unconfirmed = 0;
	expect_none();
	ONE(false, "destination-name", "the name no.such cannot be resolved: Name not known", m->n_unresolved = 1;
	    m->unresolved[0] = (struct node_unresolved){.destination = "pacs", .host = "no.such", .reason = "Name not known"});
	ONE(false, "device-disabled", "Device cuda:0 is disabled: it failed.", m->n_devices = 2;
	    m->devices[0] = (struct node_device){.name = "cuda:0", .reason = "it failed", .disabled = true});
	m->n_devices = 1;
	node_problems_find(&facts, &all);
	assert_int_equal(all.n, 2);
	assert_string_equal(all.list[0].id, "no-device"); /* critical first */
	assert_true(node_problems_are_critical(&all));
	ONE(false, "reload", "was not reloaded, the earlier one is in effect: node.conf:3: key x. Correct",
	    snprintf(m->reload, sizeof(m->reload), "node.conf:3: key x"));
	ONE(false, "page", "The status page is not served: the address is in use.",
	    snprintf(m->page, sizeof(m->page), "the address is in use"));
	ONE(true, "no-space", "1 case has found no space, or no access to files, in 3 attempts or more.", facts.no_space = 1);
	facts.no_space = 0;
	facts.attention = 1;
	expect_one(false, "cases", "1 case needs attention.");
}

TEST(test_routes)
{
	static struct config c;
	static struct peer_conf peers[1];
	static struct route_conf routes[3] = {{.name = "one", .kind = "dbt", .calling = "MOD"},
					      {.name = "two", .kind = "pet"},
					      {.name = "three", .kind = "dbt"}};
	struct route_conf other;

	working(&facts);
	facts.config = &c;
	c.routes = routes;
	c.n_routes = 3;
	expect_none();
	other = routes[0];
	routes[0] = routes[2];
	routes[2] = other;
	expect_one(false, "route", "Route one is never used: route three before it takes every dbt case from any sender.");
	c.n_routes = 2;
	expect_none();
	snprintf(routes[0].calling, sizeof(routes[0].calling), "MOD");
	snprintf(peers[0].aet, sizeof(peers[0].aet), "OTHER");
	c.node.require_known_peer = true;
	c.peers = peers;
	c.n_peers = 1;
	expect_one(false, "route", "no peer has its AE title MOD");
}

/* What the manager writes is what the others read. */
TEST(test_report)
{
	static struct manager_facts m, back;
	json_t *report;

	m = (struct manager_facts){.receiver = true,
				   .receiver_fault = "a",
				   .receiver_limit = "b",
				   .receiver_full = "full",
				   .file_limit = 1ll << 40,
				   .incoming = "c",
				   .journal_damage = "d",
				   .journal_unchecked = "u",
				   .journal_replaced = true,
				   .journal_error = "e",
				   .reload = "g",
				   .page = "h",
				   .n_processes = 1,
				   .n_certificates = 1,
				   .n_unresolved = 1};
	m.processes[0] = (struct node_process){"worker", 12, true, 33};
	m.certificates[0] = (struct node_certificate){
		.whose = "w", .file = "f", .listener = true, .crl = true, .from = 1, .until = 2, .unusable = "u"};
	m.unresolved[0] = (struct node_unresolved){"pacs", "host", "reason"};
	report = manager_facts_json(&m);
	manager_facts_read(report, &back);
	assert_memory_equal(&m, &back, sizeof(m));
	json_decref(report);
	manager_facts_read(NULL, &back);
	assert_false(back.receiver || back.n_certificates);
}

/* More problems than fit: the list is full, nothing is written behind it. */
TEST(test_many)
{
	working(&facts);
	facts.from_manager.n_certificates = NODE_CERTIFICATES_MAX;
	facts.from_manager.n_devices = NODE_DEVICES_MAX;
	for (size_t i = 0; i < NODE_DEVICES_MAX; i++)
		facts.from_manager.devices[i].disabled = true;
	node_problems_find(&facts, &all);
	assert_int_equal(all.n, NODE_PROBLEMS_MAX);
	assert_true(all.list[0].critical && !all.list[NODE_PROBLEMS_MAX - 1].critical);
}

TEST(test_cluster)
{
	static const struct {
		const char *state;
		bool local;
		int idle;
		bool critical;
	} rows[] = {
		{"down", false, 0, true}, {"down", true, 0, false},	{"down", false, 1, false},   {"refuses", false, 0, true},
		{"busy", false, 0, true}, {"draining", false, 0, true}, {"failing", false, 0, true}, {"full", false, 0, false},
	};
	struct node_cluster *c = &facts.from_manager.cluster;
	struct manager_facts read;
	json_t *json;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		working(&facts);
		*c = (struct node_cluster){.local = rows[i].local, .used = true, .text = "Slurm", .idle = rows[i].idle};
		snprintf(c->state, sizeof(c->state), "%s", rows[i].state);
		expect_one(rows[i].critical, "cluster", "Slurm.");
	}
	*c = (struct node_cluster){true, true, "up", "", 1, 2, 3, 4, 5, 6, 7, 8.5};
	expect_none();
	json = manager_facts_json(&facts.from_manager);
	manager_facts_read(json, &read);
	json_decref(json);
	assert_memory_equal(&read.cluster, c, sizeof(*c));
}

/* Slots of pilots are no devices of this machine: whether cases can be reconstructed depends on both. */
TEST(test_pilots)
{
	static struct config config;
	struct manager_facts *m = &facts.from_manager;

	working(&facts);
	config.node.executor = EXECUTOR_LOCAL | EXECUTOR_PILOTS;
	facts.config = &config;
	m->n_devices = 2;
	m->devices[0] = (struct node_device){.name = "cuda:0", .reason = "it failed", .disabled = true};
	m->devices[1] = (struct node_device){.name = "pilot", .pilot = true};
	node_problems_find(&facts, &all);
	assert_int_equal(all.n, 2);
	assert_string_equal(all.list[0].id, "no-device");
	m->devices[1].connected = true;
	expect_one(false, "device-disabled", "Device cuda:0 is disabled: it failed.");
	m->devices[1].connected = false;
	m->cluster = (struct node_cluster){.used = true, .local = true, .state = "up"}; /* pilots start when cases wait */
	expect_one(false, "device-disabled", "Device cuda:0 is disabled: it failed.");

	working(&facts);
	config.node.executor = EXECUTOR_PILOTS;
	facts.config = &config;
	m->n_devices = 1;
	m->devices[0] = (struct node_device){.name = "pilot", .pilot = true};
	expect_one(false, "no-pilot",
		   "No pilot is connected, and devices of this machine are not used: the next case will wait.");
	facts.ready = 1;
	expect_one(true, "no-pilot", "cases wait. Start a pilot");
	config.node.executor = EXECUTOR_SLURM;
	expect_none();
	config.node.executor = EXECUTOR_PILOTS;
	snprintf(m->pilots_unheard, sizeof(m->pilots_unheard), "the port is in use");
	expect_one(true, "pilots-unheard", "Pilots cannot connect: the port is in use.");
	m->devices[0].connected = true;
	expect_one(false, "pilots-unheard", "Pilots cannot connect: the port is in use.");
	m->pilots_unheard[0] = '\0';
	snprintf(m->pilot_refused, sizeof(m->pilot_refused), "d1 at ::1 was refused: it is version 7");
	expect_one(false, "pilot-refused", "Pilot d1 at ::1 was refused: it is version 7.");
}
