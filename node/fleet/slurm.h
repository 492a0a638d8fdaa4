/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm by its commands: sbatch, squeue, scancel. The library of Slurm is not used (its licence is GPL-2).
 *
 * - A command gets an environment of a few variables of this process, so that no SBATCH_* or SQUEUE_* variable changes what it
 *   does, and a pilot inherits nothing else. It is killed after SLURM_SECONDS.
 * - The script of a job is written to the standard input of sbatch; it contains the pilot's secret, which is in no command line.
 * - Only output in formats that were asked for is parsed; a line in another format is an error.
 */
#ifndef TOMONODE_NODE_SLURM_H
#define TOMONODE_NODE_SLURM_H

#include "kernels/err.h"
#include "node/fleet/fleet.h"

#define SLURM_SECONDS 30.0
#define SLURM_SCRIPT_SIZE 4096

/* Options of the jobs; "" and 0: that of the cluster. */
struct slurm_options {
	const char *partition, *account, *gres, *constraint, *time, *memory;
	int cpus;
	const char *output; /* file for the output of a job, on its machine; "": none */
};

/* What a job runs: `PROGRAM pilot --node ADDRESS --id ID --secret-file /dev/stdin [--spool DIR]`. */
struct slurm_pilot {
	const char *program; /* words for the shell: a path, or the command of a container */
	const char *address; /* HOST:PORT of the node */
	const char *id, *secret;
	const char *spool;			     /* folder of a spool that it shares with the node; "": none */
	const char *certificate, *key, *authorities; /* files on its machine; NULL or "": none */
};

/* The result of a command: FLEET_UP, or DOWN, BUSY, REFUSES and an error in `text`. */
struct slurm_reply {
	enum fleet_controller state;
	bool unknown; /* it was killed, or its output was not understood: it may have done what was asked */
	char text[FLEET_TEXT_SIZE];
};

/* Write the script of a job. -1: it is too long, or id, address or secret has a letter that the shell would interpret. */
int slurm_script(const struct slurm_pilot *pilot, char ret_script[SLURM_SCRIPT_SIZE], struct err *err);
/* Submit a job. *ret_job: its number. */
struct slurm_reply slurm_submit(const struct slurm_options *o, const char *id, const char *script, uint64_t *ret_job);
/* Have Slurm check whether it would accept the job; nothing is submitted. */
struct slurm_reply slurm_test(const struct slurm_options *o);
/* List the jobs of this process's user. Jobs above the n_rows first ones are not returned. */
struct slurm_reply slurm_list(struct fleet_row *ret_rows, size_t n_rows, size_t *ret_n);
/* Cancel a job. A job that has ended already is no error. */
struct slurm_reply slurm_cancel(uint64_t job);

/* Have sbatch print its version. *ret_version: "22.05.8". */
struct slurm_reply slurm_version(char ret_version[32]);
/* Have the program of the pilots print its version, if the first of its words is visible on this machine. 1: *ret_version is its
 * output, "tomonode 0.1.0 (...)"; 0: it is not visible; -1: it printed no version within SLURM_PROGRAM_SECONDS. */
int slurm_program_version(const char *program, char *ret_version, size_t size);
#define SLURM_PROGRAM_SECONDS 5.0
/* Return a sentence about what a person can do after a command failed with this error; "": nothing is known. */
const char *slurm_hint(const char *error);

/* Parts of the above, for tests. */
void slurm_set_seconds(double seconds); /* instead of SLURM_SECONDS */
/* Parse the output of sbatch --parsable, "123" or "123;cluster". -1: it is something else. */
int slurm_parse_job(const char *text, uint64_t *ret_job);
/* Parse a line of squeue in SLURM_FORMAT. 1: a job that exists; 0: one that has ended; -1: another format. */
int slurm_parse_row(const char *line, struct fleet_row *ret_row);
#define SLURM_FORMAT "%i|%T|%V|%S|%j|%r"
/* Parse "slurm 22.05.8" or "slurm-wlm 22.05.8". -1: it is something else. */
int slurm_parse_version(const char *text, int *ret_major, int *ret_minor, char ret_version[32]);
/* The meaning of the error output of a command that failed. */
enum fleet_controller slurm_error_state(const char *error);

#endif
