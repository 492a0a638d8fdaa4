/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c - `tomonode check`: print every problem of a configuration, or else its effect; warn of what is valid but unwise.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/command/check_as_user.h"
#include "node/command/check_names.h"
#include "node/command/check_route.h"
#include "node/command/commands.h"
#include "node/config/config_path.h"
#include "node/config/config_reference.h"
#include "node/config/route.h"
#include "node/deliver/destination.h"
#include "node/jobs/node_facts.h"
#include "node/options/options.h"
#include "node/receive/tls_files.h"
#include "node/result/result.h"
#include "node/sandbox/user.h"

struct request {
	const char *path, *routed, *calling; /* NULL: not given */
	bool verbose, steps, describe, defaults;
};

static const struct option_spec options[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults", INTO_TEXT(struct request, path)},
	{'v', "verbose", NULL, "also list protocols, profiles and scanners", INTO_ON(struct request, verbose)},
	{0, "route", "PATH", "only print which routes the DICOM file, or those in the folder, would take, and why",
	 INTO_TEXT(struct request, routed)},
	{0, "calling", "AET", "with --route: AE title of the sender; default: one that no route names",
	 INTO_TEXT(struct request, calling)},
	{0, "steps", NULL,
	 "also run each step twice with a phantom and once with a constant volume, and say what it does (docs/steps.md)",
	 INTO_ON(struct request, steps)},
	{0, "describe", NULL, "print the reference of all keys (Markdown) and exit", INTO_ON(struct request, describe)},
	{0, "defaults", NULL, "print a configuration file with every key, its default and its meaning, and exit",
	 INTO_ON(struct request, defaults)},
	{0},
};

static const struct command_spec spec = {
	.name = "check",
	.usage = "[-c FILE] [--verbose] [--steps] [--describe | --defaults] [--route PATH [--calling AET]] [--json]",
	.summary = "Check a configuration. Print each problem with file, line and allowed values; otherwise the values.",
	.text = "It tests, too, whether the node could listen, use its spool, journal, logs and device, read its certificates,\n"
		"keys and flat fields, be reached by pilots, and with Slurm whether a job would be accepted: as node.user, if\n"
		"root runs it. Problems and warnings are printed to stderr; warnings do not change the exit code.",
	.options = options,
	.json = true,
	.examples = "tomonode check\n"
		    "tomonode check -c new.conf --verbose\n"
		    "tomonode check --steps\n"
		    "tomonode check --route exam --calling MAMMO1\n"
		    "tomonode check --describe\n",
};

struct messages {
	json_t *problems, *warnings, *told, *config;
	json_t *entry; /* the section that is being read; borrowed from config */
	struct node_facts *facts;
};

static void add_problem(void *ctx, const char *text)
{
	struct messages *m = ctx;

	fprintf(stderr, "%s\n", text);
	json_array_append_new(m->problems, json_string(text));
}

static void add_warning(void *ctx, const char *text)
{
	struct messages *m = ctx;

	fprintf(stderr, "warning: %s\n", text);
	json_array_append_new(m->warnings, json_string(text));
}

static void add_told(void *ctx, const char *text)
{
	struct messages *m = ctx;

	json_array_append_new(m->told, json_string(text));
}

static void add_certificate(void *ctx, const struct node_certificate *certificate)
{
	struct manager_facts *f = &((struct messages *)ctx)->facts->from_manager;

	if (!certificate->unusable[0] && f->n_certificates < NODE_CERTIFICATES_MAX) /* the other ones are problems already */
		f->certificates[f->n_certificates++] = *certificate;
}

/* Warn root if `serve`, started as root, refuses to run, unless the unit of systemd, whose user is there, starts it. */
static void warn_user(struct messages *m, const struct config *config)
{
	struct user user;
	struct err err = {0};
	char line[sizeof(err.msg) + 64];

	if (geteuid() != 0 || user_look_up(user_tested(config->node.user, 0), 0, &user, &err) == 0)
		return;
	if (err.code == ENOKEY) { /* nor could systemd */
		add_problem(m, err.msg);
		return;
	}
	snprintf(line, sizeof(line), "`tomonode serve` would refuse to run, as you are root: %s", err.msg);
	add_warning(m, line);
}

/* Add what is wrong with the certificates, names and routes of the configuration, and with the node that runs with its spool. */
static void check_node(struct messages *m, const struct config *config)
{
	const struct tls_files_report files = {m, NULL, add_certificate, add_warning}; /* check_as_user() tells the problems */
	const struct check_report report = {m, add_problem, add_warning, m->told ? add_told : NULL};
	static struct node_facts facts;
	static struct node_problems all;
	char line[1200];

	node_facts_of_spool(config, clock_wall(), &facts);
	if (!facts.runs) /* an earlier report, or a spool that does not exist yet */
		facts.disk_error[0] = '\0';
	facts.from_manager.n_certificates = 0;
	m->facts = &facts;
	/* first, while this process has one thread: the C library resolves names in others, and a fork copies their locks */
	check_as_user(config, facts.runs, &report);
	tls_files_check(config, &files, NULL);
	check_names(config, &facts.from_manager, &report);
	node_problems_find(&facts, &all);
	for (size_t i = 0; i < all.n; i++) {
		node_problem_line(&all.list[i], line, sizeof(line));
		if (node_problem_is_of_configuration(&all.list[i]))
			add_problem(m, line);
		else
			add_warning(m, line);
	}
}

static void json_entry(void *ctx, const char *section)
{
	struct messages *m = ctx;
	json_t *list = json_object_get(m->config, section); /* NULL: a section that occurs once, such as "node" */

	m->entry = json_object();
	if (list)
		json_array_append_new(list, m->entry);
	else
		json_object_set_new(m->config, section, m->entry);
}

static void json_value(void *ctx, const char *key, const char *value, int is_number)
{
	struct messages *m = ctx;

	json_object_set_new(m->entry, key, is_number ? json_loads(value, JSON_DECODE_ANY, NULL) : json_string(value));
}

static void json_names(void *ctx, const char *key, const char *const *names, size_t n)
{
	struct messages *m = ctx;
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_string(names[i]));
	json_object_set_new(m->entry, key, array);
}

static void fill_config(struct messages *m, const struct config *c)
{
	static const char *const lists[] = {"listeners", "peers",    "destinations", "routes",
					    "protocols", "profiles", "scanners",     "steps"};
	const struct config_visitor visitor = {m, json_entry, json_value, json_names};

	m->config = json_object();
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_object_set_new(m->config, lists[i], json_array());
	config_visit(c, &visitor);
}

/* Print the numbers of entries that most configurations take from the defaults. */
static void print_entries(const struct config *c)
{
	char text[CONFIG_PROTOCOL_TEXT];

	for (size_t i = 0; i < c->n_protocols; i++) {
		config_describe_protocol(&c->protocols[i], text, sizeof(text));
		printf("protocol      %s: %s\n", c->protocols[i].name, text);
	}
	for (size_t i = 0; i < c->n_profiles; i++) {
		const struct profile_conf *p = &c->profiles[i];

		printf("profile       %s: manufacturer '%s', model '%s', serial '%s'\n", p->name, p->manufacturer, p->model,
		       p->serial);
		result_profile_constants(p, text, sizeof(text));
		if (text[0])
			printf("              constants that are not set, so that modules are left out unless the images have "
			       "them: "
			       "%s\n",
			       text);
	}
	for (size_t i = 0; i < c->n_scanners; i++) {
		const struct scanner_conf *s = &c->scanners[i];

		printf("scanner       %s: manufacturer '%s', model '%s', serial '%s'\n", s->name, s->manufacturer, s->model,
		       s->serial);
	}
}

static void print_names(const char *before, const struct config_names *names)
{
	printf("%s", before);
	for (size_t i = 0; i < names->n; i++)
		printf("%s %s", i ? "," : "", names->name[i]);
}

static void print_route(const struct route_conf *r)
{
	char patterns[ROUTE_FACTS * 100];

	config_route_patterns(r, patterns, sizeof(patterns));
	printf("route         %s: %s from %s", r->name, r->kind, r->calling[0] ? r->calling : "any sender");
	if (patterns[0])
		printf(" with %s", patterns);
	print_names(", reconstructed by", &r->protocols);
	print_names(", sent to", &r->destinations);
	printf("%s\n", r->continues ? "; then the following routes, too" : "");
}

/* Without require_known_peer the entries only set limits: the person who wrote them expects more. */
static void print_peers(const struct config *c)
{
	printf("peers         ");
	if (!c->node.require_known_peer)
		printf("any peer may send%s",
		       c->n_peers
			       ? ", as require_known_peer is false (its default on loopback addresses); `peers` only sets limits: "
			       : "");
	for (size_t i = 0; i < c->n_peers; i++)
		printf("%s%s (%s%s%s%s)", i ? ", " : "", c->peers[i].name, c->peers[i].aet[0] ? c->peers[i].aet : "any AE title",
		       c->peers[i].host[0] ? " at " : "", c->peers[i].host,
		       c->peers[i].certificate[0] ? ", by its certificate" : "");
	printf("%s\n", c->node.require_known_peer && c->n_peers == 0 ? "nobody may send" : "");
}

/* Print the most important facts first: whether the configuration is valid, who may send, where results are sent. */
static void print_config(const struct config *c, const struct messages *m, bool verbose)
{
	struct listener_conf list[LISTENERS_MAX];
	char text[1500];
	size_t n;

	printf("%s: %s\n", c->path[0] ? c->path : "embedded defaults",
	       json_array_size(m->problems) > 0	  ? "problems, see above"
	       : json_array_size(m->warnings) > 0 ? "no problems, but warnings, see above"
						  : "no problems");
	if (user_tested(c->node.user, geteuid()) != c->node.user)
		printf("user          " USER_OF_UNIT ", as which systemd starts the node; tested as this user\n");
	n = config_listeners(c, list);
	if (c->node.plain)
		printf("node          %s listens on %s port %d, spool %s, device %s\n", c->node.aet, c->node.bind, c->node.port,
		       c->node.spool, c->node.device);
	else
		printf("node          %s, spool %s, device %s\n", c->node.aet, c->node.spool, c->node.device);
	for (size_t i = c->node.plain ? 1 : 0; i < n; i++)
		printf("listener      %s: %s port %d, %s\n", list[i].name, list[i].bind, list[i].port,
		       !list[i].tls		    ? "plain"
		       : list[i].client_certificate ? "TLS, peers must send a certificate"
						    : "TLS, peers need no certificate");
	if (c->node.executor & EXECUTOR_SLURM)
		printf("slurm         %d to %d pilots, each: %s\n", c->slurm.min, c->slurm.max, c->slurm.program);
	if (c->status.enabled)
		printf("status page   %s port %d\n", c->status.bind, c->status.port);
	if (config_tells_alerts(c))
		printf("alerts        to %s\n", c->alerts.exec[0] ? c->alerts.exec : c->alerts.url);
	printf("audit         %s%s\n",
	       c->node.audit == AUDIT_NONE     ? "none"
	       : c->node.audit == AUDIT_SYSLOG ? "to the syslog daemon at "
					       : "to the file ",
	       c->node.audit == AUDIT_NONE     ? ""
	       : c->node.audit == AUDIT_SYSLOG ? c->node.audit_socket
					       : c->node.audit_file);
	for (size_t i = 0; i < json_array_size(m->told); i++)
		printf("step          %s\n", json_string_value(json_array_get(m->told, i)));
	print_peers(c);
	for (size_t i = 0; i < c->n_destinations; i++) {
		const struct destination_conf *d = &c->destinations[i];

		destination_actions(d)->describe(d, text, sizeof(text));
		printf("destination   %s: %s\n", d->name, text);
	}
	for (size_t i = 0; i < c->n_routes; i++)
		print_route(&c->routes[i]);
	if (verbose)
		print_entries(c);
	else
		printf("protocols     %zu, profiles %zu, scanners %zu (--verbose lists them)\n", c->n_protocols, c->n_profiles,
		       c->n_scanners);
}

static int report_json(struct messages *m, const char *path, int code)
{
	json_t *root = json_pack("{s:b, s:i, s:s, s:O, s:O}", "ok", code == CODE_OK, "code", code, "file", path ? path : "",
				 "problems", m->problems, "warnings", m->warnings);

	if (root && m->told)
		json_object_set(root, "steps", m->told);
	if (root && m->config)
		json_object_set(root, "config", m->config);
	return options_json(root) == CODE_OK ? code : CODE_FAILED;
}

int cmd_check(int argc, char **argv)
{
	struct config *config = NULL;
	struct messages m = {0};
	struct request r = {.calling = ""};
	struct err err = {0};
	char buffer[CONFIG_PATH_BUFFER];
	struct options o;
	int rc, code = CODE_OK;

	options_begin(&o, &spec, argc, argv);
	o.into = &r;
	if (options_next(&o) == OPTION_STOP)
		return o.code;
	if (r.describe || r.defaults) {
		(r.describe ? config_reference : config_defaults)(stdout);
		return CODE_OK;
	}
	if (!r.path)
		r.path = config_path_default(buffer);
	m.problems = json_array();
	m.warnings = json_array();
	m.told = r.steps ? json_array() : NULL;
	rc = config_load(r.path, add_problem, &m, &config, &err);
	if (rc < 0) {
		code = CODE_CONFIG;
		if (json_array_size(m.problems) ==
		    0) /* the failure is not in the configuration's text: no memory, or the path is too long */
			add_problem(&m, err.msg);
	} else if (r.routed) {
		code = check_route(&o, config, r.routed, r.calling);
	} else {
		check_node(&m, config);
		config_warn(config, add_warning, &m);
		warn_user(&m, config);
		if (json_array_size(m.problems) > 0)
			code = CODE_CONFIG;
		if (o.json)
			fill_config(&m, config);
		else
			print_config(config, &m, r.verbose);
	}
	if (o.json && (!r.routed || rc < 0))
		code = report_json(&m, r.path, code);
	json_decref(m.problems);
	json_decref(m.warnings);
	json_decref(m.told);
	json_decref(m.config);
	config_free(config);
	return code;
}
