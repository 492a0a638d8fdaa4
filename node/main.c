/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program: find the subcommand and run it. The subcommands are in node/ROOM/cmd_*.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dicom/core/dataset.h"
#include "dicom/pixels/start.h"
#include "node/base/cgroup.h"
#include "node/base/exit_code.h"
#include "node/base/nearest.h"
#include "node/base/thread_pool.h"
#include "node/base/version.h"
#include "node/cluster/cmd_pilot.h"
#include "node/command/commands.h"
#include "node/deliver/cmd_deliver.h"
#include "node/fleet/cmd_cluster.h"
#include "node/options/options.h"
#include "node/serve/cmd_serve.h"
#include "node/status/cmd_status.h"
#include "node/worker/cmd_worker.h"
#include "recon/core/threads.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* line of --help; NULL: a command that only the node itself runs, not in --help */
	bool dicom;	     /* uses DCMTK's dictionary and codecs */
};

static const struct command commands[] = {
	{"serve", cmd_serve, "run the node: receive, reconstruct, deliver", true},
	{"check", cmd_check, "check a configuration and show the values in effect", true},
	{"recon", cmd_recon, "reconstruct DICOM files without a running node", true},
	{"simulate", cmd_simulate, "write the DICOM files of a simulated exam of any kind", true},
	{"import", cmd_import, "convert Interfile (STIR) data or a picture to sinogram objects", true},
	{"measure", cmd_measure, "measure image quality in a reconstructed object", true},
	{"export", cmd_export,
	 "write images as NIfTI, MetaImage, PNG or Interfile, sinograms as Interfile, PET counts as list mode", true},
	{"arrays", cmd_arrays, "write the arrays that a case is reconstructed from, for other programs", true},
	{"report", cmd_report, "write a report of a reconstructed object: one HTML file with pictures and figures", true},
	{"compare", cmd_compare, "compare two results of the same voxels: figures, and a page with their difference", true},
	{"profile", cmd_profile, "fit or check the geometry of a tomosynthesis system with a bead phantom", true},
	{"list", cmd_list, "list the jobs of a node", false},
	{"show", cmd_show, "show one job: its events, instances, times", false},
	{"redo", cmd_redo, "reconstruct the images of a job again, as a further result", false},
	{"retry", cmd_retry, "continue a held, failed, cancelled or undelivered job", false},
	{"cancel", cmd_cancel, "cancel a job", false},
	{"priority", cmd_priority, "set the priority of a job", false},
	{"test-peer", cmd_test_peer, "test a destination: C-ECHO, then C-STORE of a small object", true},
	{"test-alert", cmd_test_alert, "send a test message to the webhook", false},
	{"pilot", cmd_pilot, "reconstruct on this machine for a node on another one", false},
	{"pilot-token", cmd_pilot_token, "make the secret that pilots and a node share", false},
	{"devices", cmd_devices, "list the devices that can reconstruct", false},
	{"bench", cmd_bench, "measure how fast the devices reconstruct, or a whole node", true},
	{"index", cmd_index, NULL, true},
	{"worker", cmd_worker, NULL, true},
	{"case", cmd_case, NULL, true},
	{"seat", cmd_seat, NULL, true},
	{"deliver", cmd_deliver, NULL, true},
	{"status", cmd_status, NULL, false},
	{"http", cmd_http, NULL, false},
	{"names", cmd_names, NULL, true},
	{"report-page", cmd_report_page, NULL, true},
	{"look", cmd_look, NULL, true},
	{"commit", cmd_commit, NULL, true},
	{"cluster", cmd_cluster, NULL, false},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* Return the name of the i-th command that --help lists; NULL after the last. */
static const char *name_of(const void *ctx, size_t i)
{
	(void)ctx;
	for (size_t k = 0; k < N_COMMANDS; k++)
		if (commands[k].summary && i-- == 0)
			return commands[k].name;
	return NULL;
}

static const char purpose[] = "A DICOM node that reconstructs tomosynthesis, PET and parallel beam data. Not for diagnostic use.";

static void print_help(FILE *to)
{
	fprintf(to, "Usage: tomonode COMMAND [OPTION]... [ARGUMENT]...\n%s\n\n", purpose);
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].summary)
			fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].summary);
	fputs("\n  tomonode help COMMAND    options and exit codes of a command\n"
	      "  tomonode --version       version, git revision, type of build\n",
	      to);
}

static void print_version(void)
{
	printf("tomonode %s (revision %s, %s build)\n", TOMONODE_VERSION, TOMONODE_REVISION, TOMONODE_BUILD_TYPE);
}

static int no_command(const char *name)
{
	const char *near = nearest_word(name, name_of, NULL), *part;
	char hint[NEAREST_HINT];

	for (size_t i = 0; !near && (part = name_of(NULL, i)); i++)
		if (!strncmp(name, part, strlen(part))) /* "reconstruct" */
			near = part;

	fprintf(stderr, "tomonode: no command '%s'%s\n", name, nearest_hint(near, hint));
	if (near)
		fprintf(stderr, "More: tomonode --help\n");
	else
		print_help(stderr);
	return CODE_USAGE;
}

/* Write what is left of the output, and return the exit code: that of the command, unless its output could not be written. A
 * reader that has closed a pipe wants no more. */
static int finish_output(const char *name, int code)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	int failed = fflush(stdout) != 0 || ferror(stdout), error = failed ? errno : 0;

	if (!failed || (poll(&out, 1, 0) == 1 && out.revents & POLLERR))
		return code;
	fprintf(stderr, "tomonode%s%s: cannot write the output: %s\n", name[0] ? " " : "", name, strerror(error ? error : EIO));
	return code == CODE_OK ? CODE_FAILED : code;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	struct err err = {0};
	bool help = false;
	int code;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		help = help || !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
	if (!command->dicom || help)
		return command->run(argc, argv);
	if (dicom_start(&err) < 0) {
		fprintf(stderr, "tomonode %s: %s\n", command->name, err.msg);
		return CODE_FAILED;
	}
	code = command->run(argc, argv);
	dicom_stop();
	return code;
}

/* Print the help of a command. what: for a command of two words, such as `simulate pet`, the second one; NULL: none. */
static int help_on(const char *name, char *what)
{
	const struct command *command = find_command(name);
	char copy[32], help[] = "--help";
	char *args[] = {copy, what ? what : help, what ? help : NULL, NULL};

	if (!command || !command->summary)
		return no_command(name);
	snprintf(copy, sizeof(copy), "%s", command->name);
	return run_command(command, what ? 3 : 2, args);
}

/* ---- for the build and for shells: manual pages, completion, and the test of the examples ---- */

static const struct command *last_listed(void)
{
	size_t i = N_COMMANDS - 1;

	while (!commands[i].summary)
		i--;
	return &commands[i];
}

static int print_main_page(void)
{
	printf(".TH TOMONODE 1 \"%s\" \"tomonode %s\" \"tomonode\"\n.SH NAME\ntomonode \\- a DICOM node that reconstructs\n"
	       ".SH SYNOPSIS\n.B tomonode\n.I COMMAND\n.RI [ OPTION ]...\n.RI [ ARGUMENT ]...\n.SH DESCRIPTION\n",
	       TOMONODE_DATE, TOMONODE_VERSION);
	options_put_man(purpose);
	puts(".SH COMMANDS");
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].summary) {
			printf(".TP\n.BR tomonode\\-%s (1)\n", commands[i].name);
			options_put_man(commands[i].summary);
		}
	printf(".SH OPTIONS\n.TP\n.B \\-\\-version\nversion, git revision, type of build\n"
	       ".TP\n.B \\-\\-help\nlist the commands\n.SH \"SEE ALSO\"\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].summary)
			printf(".BR tomonode\\-%s (1)%s\n", commands[i].name, &commands[i] == last_listed() ? "" : ",");
	return CODE_OK;
}

/* Print the page of a command, or of the program. */
static int print_page(const char *name, char *what)
{
	if (!name)
		return print_main_page();
	options_help_as(OPTIONS_MAN, NULL, NULL);
	return help_on(name, what);
}

/* Print what can stand at the place of the last of n words, which follow "tomonode". */
static int complete_word(int n, char **words)
{
	const char *last = n > 0 ? words[n - 1] : "", *name;

	if (n <= 1 || (n == 2 && !strcmp(words[0], "help"))) {
		for (size_t i = 0; (name = name_of(NULL, i)); i++)
			if (!strncmp(name, last, strlen(last)))
				puts(name);
		if (n <= 1 && !strncmp("help", last, strlen(last)))
			puts("help");
		return CODE_OK;
	}
	if (!find_command(words[0]) || !find_command(words[0])->summary)
		return CODE_OK;
	for (int i = 1; i + 2 < n; i++) /* names are those of the configuration that is given */
		if (!strcmp(words[i], "-c") || !strcmp(words[i], "--config"))
			setenv("TOMONODE_CONF", words[i + 1], 1);
	options_help_as(OPTIONS_WORDS, words[n - 2], last);
	return help_on(words[0], n > 2 && words[1][0] != '-' && find_command(words[0])->run == cmd_simulate ? words[1] : NULL);
}

/* Parse the options of a command without running it. */
static int parse_command(int argc, char **argv)
{
	const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;

	options_help_as(OPTIONS_PARSE, NULL, NULL);
	return command ? command->run(argc, argv) : CODE_USAGE;
}

static int help_command(int argc, char **argv)
{
	if (!strcmp(argv[0], "--man"))
		return print_page(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
	if (!strcmp(argv[0], "--complete"))
		return complete_word(argc - 1, argv + 1);
	if (!strcmp(argv[0], "--parse"))
		return parse_command(argc - 1, argv + 1);
	return help_on(argv[0], argc > 1 ? argv[1] : NULL);
}

/* Open the descriptors 0 to 2 that are closed on /dev/null: otherwise the next opened file would get that number, and messages
 * would be written to a socket or the journal. open() returns the lowest free number. */
static bool open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

/* Start no more threads than the control group has processors, in this process and those that it starts. The C library counts the
 * processors of the machine that the process may be scheduled on, which a container's limit of time does not reduce. */
static void limit_threads(void)
{
	int n = cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
	char text[16];

	if (n < 1 || n >= threads_available() || getenv("OMP_NUM_THREADS"))
		return;
	snprintf(text, sizeof(text), "%d", n);
	setenv("OMP_NUM_THREADS", text, 1); /* threads_available(); processes that are started */
	threads_limit(n);		    /* OpenMP has read its variables already */
}

/* Run the command that the arguments name. */
static int run_arguments(const char *name, int argc, char **argv)
{
	const struct command *command;

	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		print_version();
		return CODE_OK;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || (!strcmp(name, "help") && argc == 2)) {
		print_help(stdout);
		return CODE_OK;
	}
	if (!strcmp(name, "help"))
		return help_command(argc - 2, argv + 2);
	limit_threads();
	command = find_command(name);
	if (!name[0])
		print_help(stderr);
	if (!command)
		return name[0] ? no_command(name) : CODE_USAGE;
	return run_command(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!open_standard_descriptors())
		return CODE_FAILED;
	signal(SIGPIPE, SIG_IGN); /* writing to a closed connection returns EPIPE instead of ending the process */
	signal(SIGXFSZ, SIG_IGN); /* writing beyond the limit of file sizes (ulimit -f) returns EFBIG */
	return finish_output(name, run_arguments(name, argc, argv));
}
