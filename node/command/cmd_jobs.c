/* SPDX-License-Identifier: Apache-2.0 */
/* list, show, retry, redo, cancel, priority: read the journal; the last four also append to it. The node need not run; if it
 * runs, it notices the new events. */
#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/json_get.h"
#include "node/base/log.h"
#include "node/command/commands.h"
#include "node/command/list_pilots.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_hint.h"
#include "node/jobs/job_report.h"
#include "node/jobs/jobs_settled.h"
#include "node/jobs/node_facts.h"
#include "node/jobs/patients.h"
#include "node/options/options.h"
#include "node/store/event.h"
#include "node/store/spool.h"

#define UNASSIGNED_MAX 200 /* maximum number of instances listed of each classification */
#define SETTLED_LISTED 200 /* without --all */
#define SETTINGS_MAX 64
enum { OPTION_SWEEP = OPTION_LONG, OPTION_SET };

struct jobs_command {
	struct options o;
	const char *path; /* of the configuration; NULL: not given */
	struct config *config;
	struct journal *journal;  /* NULL: there is none yet, or it cannot be opened (only `list` continues then) */
	struct err journal_error; /* why it cannot be opened; code 0: it can, or there is none */
	struct jobs jobs;
	int64_t id; /* job number in the arguments; 0: none */
	bool as_is, same_patient, newer, all;
	long long sweep;      /* 0: not given */
	const char *header;   /* NULL: not given */
	const char *protocol; /* NULL: not given */
	const char *settings[SETTINGS_MAX];
	size_t n_settings;
};

static const char *const priority_words[] = {"low", "normal", "high", NULL};

#define CONFIG_OPTION                                                                                                            \
	{                                                                                                                        \
		'c', "config", "FILE", "configuration of the node, which contains the path of the spool",                        \
			INTO_TEXT(struct jobs_command, path)                                                                     \
	}

static const struct option_spec config_option[] = {
	CONFIG_OPTION,
	{0},
};

static const struct option_spec list_options[] = {
	CONFIG_OPTION,
	{0, "all", NULL, "also the delivered and cleaned cases before the newest 200", INTO_ON(struct jobs_command, all)},
	{0},
};

static const struct option_spec retry_options[] = {
	CONFIG_OPTION,
	{0, "as-is", NULL,
	 "reconstruct the received instances, even if the headers expect another number, or without the CT series of the "
	 "attenuation correction",
	 INTO_ON(struct jobs_command, as_is)},
	{0, "same-patient", NULL, "state that it is one patient, although the headers name different ones",
	 INTO_ON(struct jobs_command, same_patient)},
	{0, "header", "FILE",
	 "with --same-patient: the instance (file name or SOP Instance UID) whose patient and study the result has; default: the "
	 "last received",
	 INTO_TEXT(struct jobs_command, header)},
	{0, "newer", NULL,
	 "reconstruct the newest object under each UID of the images, as a new case in place of this one, which was not "
	 "reconstructed",
	 INTO_ON(struct jobs_command, newer)},
	{OPTION_SWEEP, "sweep", "N",
	 "reconstruct one sweep of several, as a new case in place of this one; `tomonode show` numbers them"},
	{0},
};

static const struct option_spec redo_options[] = {
	CONFIG_OPTION,
	{0, "protocol", "NAME",
	 "protocol of the configuration; default: that of the job, as it is configured: without the job's own settings",
	 INTO_TEXT(struct jobs_command, protocol)},
	{OPTION_SET, "set", "KEY=VALUE", "set one key of the protocol, with the syntax of the configuration; may be repeated"},
	{0},
};

static const struct command_spec list_spec = {
	.name = "list",
	.usage = "[-c FILE] [--all] [--json]",
	.summary = "List the jobs, and the instances that belong to no job.",
	.options = list_options,
	.json = true,
	.examples = "tomonode list\n"
		    "tomonode list --json\n",
};

static const struct command_spec show_spec = {
	.name = "show",
	.usage = "[-c FILE] [--json] ID",
	.summary = "Show one job: its events, its instances, the time of each stage.",
	.options = config_option,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode show 17\n",
};

static const struct command_spec retry_spec = {
	.name = "retry",
	.usage = "[-c FILE] [--as-is] [--same-patient [--header FILE]] [--newer | --sweep N] [--json] ID",
	.summary = "Continue a held, failed or cancelled job, or repeat a refused or waiting delivery at once.",
	.options = retry_options,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode retry 17\n"
		    "tomonode retry --as-is 17\n"
		    "tomonode retry --newer 17\n",
};

static const struct command_spec redo_spec = {
	.name = "redo",
	.usage = "[-c FILE] [--protocol NAME] [--set KEY=VALUE]... [--json] ID",
	.summary = "Reconstruct the images of a job again, as a further result with its own series, for the same destinations.",
	.options = redo_options,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode redo 17 --protocol dbt-fbp\n"
		    "tomonode redo 17 --protocol dbt-osem --set iterations=4\n",
};

static const struct command_spec cancel_spec = {
	.name = "cancel",
	.usage = "[-c FILE] [--json] ID",
	.summary = "Cancel a job: stop its reconstruction, but keep images that still arrive. `tomonode retry` continues it.",
	.options = config_option,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode cancel 17\n",
};

static const struct command_spec priority_spec = {
	.name = "priority",
	.last_words = priority_words,
	.usage = "[-c FILE] [--json] ID low|normal|high",
	.summary = "Set the priority of a case. Cases with a higher priority are reconstructed and delivered first.",
	.options = config_option,
	.json = true,
	.min_arguments = 2,
	.max_arguments = 2,
	.examples = "tomonode priority 17 high\n",
};

static void end_jobs(struct jobs_command *c)
{
	jobs_clear(&c->jobs);
	c->journal = journal_close(c->journal);
	c->config = config_free(c->config);
}

/* No node has run with this spool; in the commands other than list every job number is unknown then. */
static bool no_journal(const struct jobs_command *c)
{
	return !c->journal && !c->journal_error.code;
}

static void explain_no_journal(const struct jobs_command *c, char *ret_text, size_t size)
{
	snprintf(
		ret_text, size,
		"%s has no journal: no node has run with this spool, or your node uses another one (configuration read: %s; give "
		"that of your node with -c FILE)",
		c->config->node.spool, c->config->path[0] ? c->config->path : "the embedded defaults alone");
}

/* Print that the journal has no job of this number; CODE_NOT_FOUND. */
static int no_job(const struct jobs_command *c)
{
	char text[1300];

	if (!no_journal(c))
		return options_fail(&c->o, CODE_NOT_FOUND, "no job %lld in %s", (long long)c->id, c->config->node.spool);
	explain_no_journal(c, text, sizeof(text));
	return options_fail(&c->o, CODE_NOT_FOUND, "no job %lld: %s", (long long)c->id, text);
}

/* Parse the options; load configuration, journal and jobs. CODE_OK; or with *ret_stop true the exit code, after printing the
 * error. */
static int begin_jobs(struct jobs_command *c, const struct command_spec *spec, int argc, char **argv, bool *ret_stop)
{
	struct err err = {0};
	char file[300];
	long long number = 0;
	int id, code;

	*ret_stop = true;
	options_begin(&c->o, spec, argc, argv);
	c->o.into = c;
	while ((id = options_next(&c->o)) >= 0) {
		if (id == OPTION_SWEEP && options_integer(c->o.value, 1, EXPOSURES_MAX, &c->sweep) < 0)
			return options_fail(&c->o, CODE_USAGE, "--sweep '%s' is no number from 1 to %d", c->o.value,
					    EXPOSURES_MAX);
		if (id == OPTION_SET && c->n_settings == SETTINGS_MAX)
			return options_fail(&c->o, CODE_USAGE, "more than %d options --set", SETTINGS_MAX);
		if (id == OPTION_SET)
			c->settings[c->n_settings++] = c->o.value;
	}
	if (id == OPTION_STOP)
		return c->o.code;
	if (c->header && !c->same_patient)
		return options_fail(&c->o, CODE_USAGE, "--header FILE needs --same-patient");
	if (c->newer + (c->sweep > 0) + (c->as_is || c->same_patient) > 1)
		return options_fail(
			&c->o, CODE_USAGE,
			"--newer and --sweep open another case: give one of them, and --as-is or --same-patient for that case");
	if (spec->min_arguments > 0 && options_integer(argv[c->o.first], 1, INT64_MAX, &number) < 0)
		return options_fail(&c->o, CODE_USAGE, "'%s' is not a job number; `tomonode list` has them", argv[c->o.first]);
	c->id = number;
	code = options_config(&c->o, c->path, &c->config);
	if (code != CODE_OK)
		return code;
	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, spec->name);
	snprintf(file, sizeof(file), "%s/journal.db", c->config->node.spool);
	*ret_stop = false;
	if (access(file, F_OK) < 0 && errno == ENOENT) /* journal_open() would create one */
		return CODE_OK;
	if (journal_open(file, &c->journal, &err) < 0 || jobs_refresh(&c->jobs, c->journal, 0, &err) < 0) {
		c->journal_error = err;
		c->journal = journal_close(c->journal);
		jobs_clear(&c->jobs);
		if (spec == &list_spec)
			return CODE_OK;
		*ret_stop = true;
		code = options_fail_err(&c->o, &err);
		end_jobs(c);
	}
	return code;
}

/* Collect what is wrong with the node; a problem to read the journal is one of them. */
static void find_problems(const struct jobs_command *c, struct node_facts *facts, struct node_problems *ret)
{
	struct err err = {0};

	node_facts_of_spool(c->config, clock_wall(), facts);
	if (no_journal(c) && access(c->config->node.spool, F_OK) < 0 && errno == ENOENT)
		facts->disk_error[0] = '\0'; /* the node's first start creates the folder */
	facts->expect_running = c->journal || c->journal_error.code;
	snprintf(facts->journal_error, sizeof(facts->journal_error), "%.299s", c->journal_error.msg);
	if (c->journal && node_facts_of_journal(c->journal, facts, &err) < 0)
		snprintf(facts->journal_error, sizeof(facts->journal_error), "%.299s", err.msg);
	node_facts_of_jobs(c->config, &c->jobs, facts);
	node_problems_find(facts, ret);
}

static json_t *problems_json(const struct node_problems *all)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++)
		json_array_append_new(list, node_problem_json(&all->list[i]));
	return list;
}

static void print_problems(const struct node_problems *all)
{
	char line[1200];

	for (size_t i = 0; i < all->n; i++) {
		node_problem_line(&all->list[i], line, sizeof(line));
		printf("%s%s: %s\n", i == 0 ? "\n" : "", all->list[i].critical ? "Critical" : "Warning", line);
	}
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Describe the jobs that are listed, in the order of their numbers. ret_earlier: number of settled jobs that are not. */
static json_t *jobs_json(struct jobs_command *c, uint64_t *ret_earlier, struct err *err)
{
	struct jobs_numbers some = {0};
	json_t *list = json_array();
	uint64_t settled = 0;
	int ret = c->journal ? journal_count_settled(c->journal, &settled, err) : 0;

	if (ret == 0 && c->journal)
		ret = journal_each_settled_newest(c->journal, c->all ? -1 : SETTLED_LISTED, jobs_numbers_add, &some, err);
	*ret_earlier = settled > some.n ? settled - some.n : 0;
	for (size_t i = 0; ret == 0 && i < c->jobs.n; i++)
		ret = jobs_numbers_add(&some, c->jobs.list[i]->id);
	if (some.n > 1)
		qsort(some.list, some.n, sizeof(some.list[0]), by_number);
	for (size_t i = 0; ret == 0 && i < some.n; i++) {
		const struct job_view *v = i > 0 && some.list[i] == some.list[i - 1] ? NULL : jobs_find(&c->jobs, some.list[i]);

		if (v)
			json_array_append_new(list, job_report_view(v, c->journal, c->config->node.spool));
		if (i % SETTLED_LISTED == 0)
			jobs_forget_settled(&c->jobs, SETTLED_LISTED);
	}
	if (ret == 0)
		ret = jobs_whole(&c->jobs, NULL, err);
	free(some.list);
	if (ret == 0)
		return list;
	json_decref(list);
	if (!err->code)
		err_set(err, ENOMEM, "no memory for the jobs");
	return NULL;
}

/* Return what `list --json` prints, a new reference; NULL: the journal cannot be read. */
static json_t *list_json(struct jobs_command *c, const struct node_facts *facts, const struct node_problems *problems,
			 const struct list_pilots *pilots, struct err *err)
{
	json_t *unassigned = c->journal ? job_report_unassigned(c->journal, UNASSIGNED_MAX, err) : json_array();
	uint64_t earlier = 0;
	json_t *list = unassigned ? jobs_json(c, &earlier, err) : NULL;

	if (!list) {
		json_decref(unassigned);
		return NULL;
	}
	return json_pack("{s:b, s:o, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "node", facts->runs, "jobs", list, "earlier",
			 (json_int_t)earlier, "unassigned", unassigned, "orphans", (json_int_t)facts->orphans, "journal_problem",
			 event_json_text(facts->from_manager.journal_damage), "problems", problems_json(problems), "associations",
			 node_associations_json(&facts->from_manager), "cluster", node_cluster_json(&facts->from_manager.cluster),
			 "pilots", list_pilots_json(pilots));
}

static void print_list(const struct jobs_command *c, const json_t *all, const struct node_facts *facts,
		       const struct node_problems *problems, const struct list_pilots *pilots)
{
	const struct node_cluster *cluster = &facts->from_manager.cluster;
	char text[1300];

	if (c->journal || !c->journal_error.code)
		job_report_print_list(stdout, json_object_get(all, "jobs"), json_object_get(all, "unassigned"),
				      json_object_get(all, "associations"));
	if (json_get_integer(all, "earlier") > 0)
		printf("\n%lld earlier delivered or cleaned cases: tomonode list --all\n", json_get_integer(all, "earlier"));
	node_cluster_text(cluster, text, sizeof(text));
	if (facts->runs && cluster->used)
		printf("\n%s\n", text);
	list_pilots_text(pilots, text, sizeof(text));
	if (facts->runs && c->config->cluster.port > 0)
		printf("\n%s\n", text);
	print_problems(problems);
	if (no_journal(c)) {
		explain_no_journal(c, text, sizeof(text));
		fprintf(stderr, "tomonode list: %s\n", text);
	}
}

int cmd_list(int argc, char **argv)
{
	struct jobs_command c = {0};
	struct err err = {0};
	static struct node_facts facts;
	static struct node_problems problems;
	struct list_pilots pilots = {0};
	json_t *all;
	bool stop;
	int code = begin_jobs(&c, &list_spec, argc, argv, &stop);

	if (stop)
		return code;
	delivery_queue_update(&c.jobs);
	find_problems(&c, &facts, &problems);
	if (facts.runs)
		list_pilots_count(c.config->node.spool, &pilots);
	all = list_json(&c, &facts, &problems, &pilots, &err);
	if (!all) {
		code = options_fail_err(&c.o, &err);
	} else if (c.o.json) {
		code = options_json(all);
	} else {
		print_list(&c, all, &facts, &problems, &pilots);
		json_decref(all);
	}
	if (code == CODE_OK && c.journal_error.code)
		code = c.o.json ? CODE_FAILED : options_fail_err(&c.o, &c.journal_error);
	end_jobs(&c);
	return code;
}

/* The sweeps that the images of a case are of, as sentences; an empty list: nothing tells them apart. */
static json_t *sweeps_json(const struct jobs_command *c, const struct job_view *v)
{
	json_t *list = json_array();
	struct exposures sweeps;
	char text[260];
	int n = case_sweeps_offered(c->journal, v, &sweeps);

	for (int i = 1; i <= n; i++) {
		case_sweep_text(&sweeps, i, text, sizeof(text));
		json_array_append_new(list, event_json_text(text));
	}
	return list;
}

static int show_job(struct jobs_command *c, const struct job_view *v)
{
	struct err err = {0};
	json_t *view, *events, *instances, *sweeps, *all;

	delivery_queue_update(&c->jobs);
	view = job_report_view(v, c->journal, c->config->node.spool);
	events = job_report_events(c->journal, v->id, &err);
	instances = events ? job_report_instances(c->journal, v->id, &err) : NULL;
	if (!view || !events || !instances) {
		json_decref(view);
		json_decref(events);
		json_decref(instances);
		if (!err.code)
			err_set(&err, ENOMEM, "no memory");
		return options_fail_err(&c->o, &err);
	}
	json_object_set_new(view, "study", event_json_text(v->study));
	json_object_set_new(view, "route", event_json_text(v->route));
	sweeps = sweeps_json(c, v);
	all = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "commands", job_hint_commands(v, (int)json_array_size(sweeps)),
			"sweeps", sweeps, "further", job_report_further(&c->jobs, v), "job", view, "stages",
			job_report_stages(view, events), "events", events, "instances", instances);
	if (c->o.json)
		return options_json(all);
	job_report_print_show(stdout, all);
	json_decref(all);
	return CODE_OK;
}

/* Run a command about one job. */
static int run_for_job(const struct command_spec *spec, int (*act)(struct jobs_command *c, const struct job_view *v), int argc,
		       char **argv)
{
	struct jobs_command c = {0};
	const struct job_view *v;
	bool stop;
	int code = begin_jobs(&c, spec, argc, argv, &stop);

	if (stop)
		return code;
	v = jobs_find(&c.jobs, c.id);
	code = v ? act(&c, v) : no_job(&c);
	end_jobs(&c);
	return code;
}

int cmd_show(int argc, char **argv)
{
	return run_for_job(&show_spec, show_job, argc, argv);
}

static const char *takes_effect(bool runs)
{
	return runs ? "" : "; no node is running with this spool: the request takes effect when it is started";
}

/* Append the requested event and print what will follow from it. */
static int append_request(struct jobs_command *c, const struct job_view *v, enum job_event event, json_t *detail)
{
	const char *name = job_event_name(event);
	struct err err = {0};
	struct spool_holder holder;
	bool runs = spool_holder(c->config->node.spool, &holder);
	char hint[100] = "";
	int ret;

	ret = event_append(c->journal, c->id, event, detail, clock_wall(), &err);
	if (ret == -ESTALE) {
		if (event == EVENT_RETRY || event == EVENT_CANCEL)
			redo_hint(v, hint, sizeof(hint));
		return options_fail(&c->o, CODE_FAILED, "%s%s", err.msg, hint);
	}
	if (ret < 0)
		return options_fail_err(&c->o, &err);
	if (c->o.json)
		return options_json(
			json_pack("{s:b, s:I, s:s, s:b}", "ok", 1, "job", (json_int_t)c->id, "event", name, "node", runs));
	printf("job %lld: %s written%s\n", (long long)c->id, name, takes_effect(runs));
	return CODE_OK;
}

/* The user that runs the command, and the one that it was before sudo. */
static void name_user(char *ret_name, size_t size)
{
	const struct passwd *entry = getpwuid(getuid());
	const char *before = getenv("SUDO_USER");

	snprintf(ret_name, size, "user %.40s%s%.40s", entry ? entry->pw_name : "unknown", before ? ", before sudo " : "",
		 before ? before : "");
}

static int retry_job(struct jobs_command *c, const struct job_view *v)
{
	const char *refusal = c->as_is ? job_view_as_is_obstacle(v) : NULL;
	const struct job_view *newer = case_replaced_by(&c->jobs, v);
	struct err err = {0};
	json_t *detail = NULL;
	char user[100];

	if (newer)
		return options_fail(&c->o, CODE_INPUT,
				    "job %lld was cancelled, and its images were sent again: job %lld counts instead of it",
				    (long long)c->id, (long long)newer->id);
	if (!refusal && c->same_patient)
		refusal = patients_no_statement(v);
	if (refusal)
		return options_fail(&c->o, CODE_INPUT, "job %lld: %s", (long long)c->id, refusal);
	name_user(user, sizeof(user));
	if (!c->same_patient)
		detail = json_pack("{s:s, s:b}", "reason", "requested on the command line", "as_is", c->as_is);
	else if (patients_statement(c->journal, v, c->header, c->as_is, "on the command line", user, &detail, &err) < 0)
		return err.code == ENOENT ? options_fail(&c->o, CODE_NOT_FOUND, "%s", err.msg) : options_fail_err(&c->o, &err);
	return append_request(c, v, EVENT_RETRY, detail);
}

/* Print the job that was opened. member: its relation to the job of the command, in JSON; words: in a sentence, around that job's
 * number. */
static int print_new_job(const struct jobs_command *c, int64_t job, const char *member, const char *words, const char *behind)
{
	struct spool_holder holder;
	bool runs = spool_holder(c->config->node.spool, &holder);

	if (c->o.json)
		return options_json(json_pack("{s:b, s:I, s:I, s:b}", "ok", 1, "job", (json_int_t)job, member, (json_int_t)c->id,
					      "node", runs));
	printf("job %lld %s job %lld%s%s\n", (long long)job, words, (long long)c->id, behind, takes_effect(runs));
	return CODE_OK;
}

/* Open a case of other images in place of this one: the newer ones, or one sweep. */
static int retry_others(struct jobs_command *c, const struct job_view *v)
{
	struct err err = {0};
	int64_t job = 0;
	char user[100];
	int ret;

	name_user(user, sizeof(user));
	ret = c->newer ? case_newer_open(c->journal, &c->jobs, v, "on the command line", user, clock_wall(), &job, &err)
		       : case_sweep_open(c->journal, &c->jobs, v, (long)c->sweep, "on the command line", user, clock_wall(), &job,
					 &err);
	if (ret == -ESTALE || ret == -ENOENT || ret == -EINVAL)
		return options_fail(&c->o, CODE_INPUT, "%s", err.msg);
	if (ret < 0)
		return options_fail_err(&c->o, &err);
	return print_new_job(c, job, "in_place_of", "takes the place of", "");
}

static int retry_case(struct jobs_command *c, const struct job_view *v)
{
	return c->newer || c->sweep ? retry_others(c, v) : retry_job(c, v);
}

int cmd_retry(int argc, char **argv)
{
	return run_for_job(&retry_spec, retry_case, argc, argv);
}

static int redo_job(struct jobs_command *c, const struct job_view *v)
{
	char user[100];
	const struct redo_request request = {.protocol = c->protocol,
					     .settings = c->settings,
					     .n_settings = c->n_settings,
					     .where = "on the command line",
					     .by = user};
	char with[OTHER_RESULT_TEXT + 40];
	struct err err = {0};
	int64_t job = 0;
	int ret;

	name_user(user, sizeof(user));
	ret = redo_open(c->journal, &c->jobs, c->config, v, &request, clock_wall(), &job, &err);
	if (ret == -ESTALE || ret == -EINVAL)
		return options_fail(&c->o, ret == -ESTALE ? CODE_INPUT : CODE_USAGE, "%s", err.msg);
	if (ret < 0)
		return options_fail_err(&c->o, &err);
	snprintf(with, sizeof(with), " again, with protocol %s", c->protocol ? c->protocol : v->protocol);
	for (size_t i = 0; i < c->n_settings; i++)
		snprintf(with + strlen(with), sizeof(with) - strlen(with), ", %s", c->settings[i]);
	return print_new_job(c, job, "redo_of", "reconstructs the images of", with);
}

int cmd_redo(int argc, char **argv)
{
	return run_for_job(&redo_spec, redo_job, argc, argv);
}

static int cancel_job(struct jobs_command *c, const struct job_view *v)
{
	return append_request(c, v, EVENT_CANCEL, json_pack("{s:s}", "reason", "cancelled on the command line"));
}

int cmd_cancel(int argc, char **argv)
{
	return run_for_job(&cancel_spec, cancel_job, argc, argv);
}

static int set_priority(struct jobs_command *c, const struct job_view *v)
{
	const char *word = c->o.argv[c->o.first + 1];
	int level;

	if (job_priority_parse(word, &level) < 0)
		return options_fail(&c->o, CODE_USAGE, "'%s' is not a priority; allowed: low, normal, high", word);
	return append_request(c, v, EVENT_PRIORITY,
			      json_pack("{s:s, s:i}", "reason", "requested on the command line", "priority", level));
}

int cmd_priority(int argc, char **argv)
{
	return run_for_job(&priority_spec, set_priority, argc, argv);
}
