/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of Slurm: their output as text, and programs that take their place. The real ones: tests/system/cluster/. */
#include "node/fleet/slurm.h"
#include "tests/test.h"

static char folder[] = "/tmp/tomonode-slurm-XXXXXX";

/* Put a script in the place of a command. */
static void fake(const char *command, const char *script)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, command);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void read_file(const char *name, char *ret, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	assert_non_null(f);
	ret[fread(ret, 1, size - 1, f)] = '\0';
	fclose(f);
}

static const struct slurm_options plain = {"", "", "", "", "", "", 0, ""};

TEST(test_parses_numbers_of_jobs)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t job;
	} rows[] = {
		{"123\n", 0, 123},
		{"123;cluster\n", 0, 123},
		{"", -1, 0},
		{"\n", -1, 0},
		{"0\n", -1, 0},
		{"123", -1, 0},
		{"123 \n", -1, 0},
		{"123\n124\n", -1, 0},
		{"-1\n", -1, 0},
		{"Submitted batch job 123\n", -1, 0},
		{"9999999999999999999\n", -1, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t job = 0;

		assert_int_equal(slurm_parse_job(rows[i].text, &job), rows[i].ret);
		assert_int_equal(job, rows[i].job);
	}
}

TEST(test_parses_lines_of_squeue)
{
	static const struct {
		const char *line;
		int ret;
		struct fleet_row row;
	} rows[] = {
		{"7|RUNNING|100|107|tomonode-0123456789ab|None",
		 1,
		 {"tomonode-0123456789ab", 7, FLEET_RUNNING, 100, 107, "None"}},
		{"7|PENDING|100|999|tomonode-a|Resources", 1, {"tomonode-a", 7, FLEET_PENDING, 100, 0, "Resources"}},
		{"7|PENDING|100|N/A|tomonode-a|a|b", 1, {"tomonode-a", 7, FLEET_PENDING, 100, 0, "a|b"}},
		{"7|COMPLETING|100|107|x|None", 1, {"x", 7, FLEET_ENDING, 100, 107, "None"}},
		{"7|FAILED|100|107|x|NonZeroExitCode", 0, {"x", 7, FLEET_GONE, 100, 107, "NonZeroExitCode"}},
		{"7_[1-3%2]|PENDING|100|N/A|x|None", 1, {"x", 7, FLEET_PENDING, 100, 0, "None"}}, /* another job array */
		{"7|RUNNING|100|107|a-name-of-a-job-that-is-too-long-for-a-pilot|", 1, {"", 7, FLEET_RUNNING, 100, 107, ""}},
		{"", -1},
		{"7|RUNNING|100|107|x", -1},
		{"x|RUNNING|100|107|x|None", -1},
		{"7||100|107|x|None", -1},
		{"slurm_load_jobs error: Unexpected message received", -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fleet_row row = {0};

		assert_int_equal(slurm_parse_row(rows[i].line, &row), rows[i].ret);
		assert_memory_equal(&row, &rows[i].row, sizeof(row));
	}
}

TEST(test_parses_versions)
{
	static const struct {
		const char *text, *version;
		int ret, major, minor;
	} rows[] = {
		{"slurm 22.05.8\n", "22.05.8", 0, 22, 5},
		{"slurm-wlm 23.11.4\n", "23.11.4", 0, 23, 11},
		{"slurm 24.05.0-0rc1\n", "24.05.0", 0, 24, 5},
		{"slurm\n", "", -1},
		{"slurm 22\n", "", -1},
		{"22.05.8\n", "", -1},
		{"", "", -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char version[32] = "";
		int major = 0, minor = 0;

		assert_int_equal(slurm_parse_version(rows[i].text, &major, &minor, version), rows[i].ret);
		assert_string_equal(version, rows[i].version);
		if (rows[i].ret == 0)
			assert_true(major == rows[i].major && minor == rows[i].minor);
	}
}

TEST(test_hints)
{
	assert_non_null(
		strstr(slurm_hint("sbatch: error: Batch job submission failed: Protocol authentication error"), "munged"));
	assert_non_null(strstr(slurm_hint("sbatch: error: Munge encode failed: Failed to access"), "munged"));
	assert_non_null(strstr(slurm_hint("Invalid account or account/partition combination specified"), "association"));
	assert_non_null(strstr(slurm_hint("sbatch: No such file or directory"), "PATH"));
	assert_string_equal(slurm_hint("Invalid partition name specified"), "");
}

TEST(test_classifies_errors)
{
	static const struct {
		const char *error;
		enum fleet_controller state;
	} rows[] = {
		{"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", FLEET_DOWN},
		{"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying", FLEET_BUSY},
		{"sbatch: error: Batch job submission failed: Invalid partition name specified", FLEET_REFUSES},
		{"sbatch: error: Batch job submission failed: Requested node configuration is not available", FLEET_REFUSES},
		{"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
		 FLEET_REFUSES},
		{"slurm_load_jobs error: Socket timed out on send/recv operation", FLEET_DOWN},
		{"sbatch: error: If munged is up, restart with --num-threads=10\nsbatch: error: Munge encode failed", FLEET_DOWN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(slurm_error_state(rows[i].error), rows[i].state);
}

TEST(test_submits_with_the_script_on_standard_input)
{
	const struct slurm_options all = {"gpu", "lab", "gpu:1", "a100", "1-00:00:00", "32G", 8, "/tmp/%j.out"};
	char script[SLURM_SCRIPT_SIZE], words[2000], input[SLURM_SCRIPT_SIZE], environment[4000];
	struct slurm_pilot pilot = {"apptainer exec --nv /opt/t.sif tomonode", "10.0.0.1:11113", "tomonode-1", "00ff", ""};
	struct slurm_reply r;
	uint64_t job = 0;

	fake("sbatch", "printf '%s\\n' \"$@\" >${0%/*}/words; cat >${0%/*}/input; env >${0%/*}/environment; echo 42");
	assert_int_equal(slurm_script(&pilot, script, NULL), 0);
	setenv("SBATCH_PARTITION", "wrong", 1);
	setenv("TOMONODE_SPOOL", "/elsewhere", 1);
	r = slurm_submit(&all, "tomonode-1", script, &job);
	unsetenv("SBATCH_PARTITION");
	unsetenv("TOMONODE_SPOOL");
	assert_int_equal(r.state, FLEET_UP);
	assert_int_equal(job, 42);
	read_file("words", words, sizeof(words));
	assert_string_equal(words,
			    "--partition=gpu\n--account=lab\n--gres=gpu:1\n--constraint=a100\n--time=1-00:00:00\n--mem=32G\n"
			    "--cpus-per-task=8\n--nodes=1\n--ntasks=1\n--requeue\n--export=ALL\n--chdir=/\n"
			    "--output=/tmp/%j.out\n--parsable\n--job-name=tomonode-1\n");
	read_file("input", input, sizeof(input));
	assert_string_equal(input, script);
	assert_non_null(strstr(script, "exec apptainer exec --nv /opt/t.sif tomonode pilot --node '10.0.0.1:11113' "
				       "--id 'tomonode-1' --secret-file /dev/stdin <<'END'\n00ff\nEND\n"));
	pilot.spool = "/shared/spool of a node";
	assert_int_equal(slurm_script(&pilot, script, NULL), 0);
	assert_non_null(strstr(script, "--secret-file /dev/stdin --spool '/shared/spool of a node' <<'END'\n"));
	pilot = (struct slurm_pilot){"tomonode", "a:1", "x", "00", "", "/etc/own.pem", "/etc/own.key", "/etc/ca.pem"};
	assert_int_equal(slurm_script(&pilot, script, NULL), 0);
	assert_non_null(strstr(
		script, "/dev/stdin --certificate '/etc/own.pem' --key '/etc/own.key' --authorities '/etc/ca.pem' <<'END'\n"));
	read_file("environment", environment, sizeof(environment));
	assert_null(strstr(environment, "SBATCH_"));
	assert_null(strstr(environment, "TOMONODE"));
	assert_non_null(strstr(environment, "SLURM_TIME_FORMAT=%s"));
}

TEST(test_the_script_takes_no_letters_of_the_shell)
{
	static const struct slurm_pilot rows[] = {
		{"tomonode", "a'b:1", "tomonode-1", "00", ""}, {"tomonode", "a:1", "x'y", "00", ""},
		{"tomonode", "a:1", "x", "0\nEND\nrm", ""},    {"tomonode", "", "x", "00", ""},
		{"tomonode\nrm", "a:1", "x", "00", ""},	       {"tomonode", "a:1", "x", "00", "/a'b"},
		{"tomonode", "a:1", "x", "00", "", "/a'b"},
	};
	char script[SLURM_SCRIPT_SIZE] = "unchanged";
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(slurm_script(&rows[i], script, &err) < 0);
	assert_string_equal(script, "unchanged");
}

TEST(test_failed_submissions)
{
	static const struct {
		const char *script;
		enum fleet_controller state;
		bool unknown;
		const char *text;
	} rows[] = {
		{"echo 'sbatch: error: invalid partition specified: x' >&2; echo 'sbatch: error: Batch job submission failed: "
		 "Invalid partition name specified' >&2; exit 1",
		 FLEET_REFUSES, false, "sbatch: error: Batch job submission failed: Invalid partition name specified"},
		{"exit 3", FLEET_REFUSES, false, "sbatch ended with code 3 and no message"},
		{"echo Submitted batch job 7", FLEET_DOWN, true,
		 "the output of sbatch is not in the format that was asked for: 'Submitted batch job 7'"},
		{"kill -9 $$", FLEET_DOWN, true, "sbatch ended with code -1 and no message"},
		{"exec 0<&-; printf 'line\\033\\n\\n' >&2; exit 1", FLEET_REFUSES, false, "line?"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t job = 5;
		struct slurm_reply r;

		fake("sbatch", rows[i].script);
		r = slurm_submit(&plain, "tomonode-1", "#!/bin/sh\n", &job);
		assert_int_equal(r.unknown, rows[i].unknown);
		assert_string_equal(r.text, rows[i].text);
		if (!rows[i].unknown)
			assert_int_equal(r.state, rows[i].state);
		assert_int_not_equal(r.state, FLEET_UP);
		assert_int_equal(job, 5);
	}
}

TEST(test_a_command_that_hangs_is_killed)
{
	struct slurm_reply r;
	char text[40];

	slurm_set_seconds(1.5);
	fake("scancel", "echo $$ >${0%/*}/pid; sleep 1000 & wait");
	r = slurm_cancel(7);
	assert_int_equal(r.state, FLEET_DOWN);
	assert_true(r.unknown);
	assert_string_equal(r.text, "scancel did not end within 1.5 s");
	fake("scancel", "exec >&- 2>&-; echo $$ >${0%/*}/pid; sleep 1000"); /* closes its output, but does not end */
	assert_int_equal(slurm_cancel(7).state, FLEET_DOWN);
	read_file("pid", text, sizeof(text));
	assert_true(access(strcat(strcpy((char[64]){0}, "/proc/"), strtok(text, "\n")), F_OK) < 0);
	slurm_set_seconds(2);
	fake("sbatch", "echo 'sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying' >&2; sleep 1000");
	assert_int_equal(slurm_test(&plain).state, FLEET_BUSY);
	slurm_set_seconds(SLURM_SECONDS);
}

TEST(test_lists_jobs)
{
	struct fleet_row rows[3];
	struct slurm_reply r;
	size_t n = 9;

	fake("squeue", "printf '%s\\n' '1|RUNNING|1|2|tomonode-a|None' '2|RUNNING|1|2|other|None' '3|FAILED|1|2|tomonode-b|None' "
		       "'4|PENDING|1|N/A|tomonode-c|Priority'");
	r = slurm_list(rows, 3, &n);
	assert_int_equal(r.state, FLEET_UP);
	assert_int_equal(n, 2);
	assert_string_equal(rows[0].id, "tomonode-a");
	assert_string_equal(rows[1].id, "tomonode-c");
	fake("squeue", ":");
	assert_int_equal(slurm_list(rows, 3, &n).state, FLEET_UP);
	assert_int_equal(n, 0);
	fake("squeue", "for i in 1 2 3 4 5; do echo \"$i|RUNNING|1|2|tomonode-$i|None\"; done");
	assert_int_equal(slurm_list(rows, 3, &n).state, FLEET_UP);
	assert_int_equal(n, 3);
	n = 9;
	fake("squeue", "echo '1|RUNNING|1|2|tomonode-a|None'; echo JOBID STATE");
	r = slurm_list(rows, 3, &n);
	assert_int_equal(r.state, FLEET_DOWN);
	assert_int_equal(n, 9);
	fake("squeue", "yes '1|RUNNING|1|2|tomonode-a|None' | head -c 300000");
	r = slurm_list(rows, 3, &n);
	assert_int_equal(r.state, FLEET_DOWN);
	assert_string_equal(r.text, "the output of squeue is not in the format that was asked for: 'too many jobs'");
	fake("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1");
	assert_int_equal(slurm_list(rows, 3, &n).state, FLEET_DOWN);
}

TEST(test_cancels)
{
	fake("scancel", "test \"$*\" = 12");
	assert_int_equal(slurm_cancel(12).state, FLEET_UP);
	assert_int_equal(slurm_cancel(13).state, FLEET_REFUSES);
	fake("scancel", "echo 'scancel: error: Kill job error on job id 12: Invalid job id specified' >&2; exit 1");
	assert_int_equal(slurm_cancel(12).state, FLEET_UP); /* it has ended already */
}

TEST(test_a_command_that_is_not_installed)
{
	char path[64];
	struct slurm_reply r;

	snprintf(path, sizeof(path), "%s/squeue", folder);
	unlink(path);
	setenv("PATH", folder, 1);
	r = slurm_list(NULL, 0, &(size_t){0});
	assert_int_equal(r.state, FLEET_DOWN);
	assert_string_equal(r.text, "squeue: No such file or directory");
}

static int make_folder(void **state)
{
	char path[8000];

	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s:%s", folder, getenv("PATH"));
	return setenv("PATH", path, 1);
}

static int remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "/bin/rm -r %s", folder);
	return system(command);
}

TESTS_SETUP(make_folder, remove_folder);
