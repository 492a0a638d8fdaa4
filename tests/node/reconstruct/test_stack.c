/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of parallel beams that main memory does not hold: memory in a file, whose pages are given back; a result that is cancelled
 * between its files leaves none. */
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

#include "node/reconstruct/reconstruct_internal.h"
#include "node/reconstruct/stack_memory.h"

/* Resident pages of mapped files, bytes. */
static size_t resident_files(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, resident, shared;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld %ld", &all, &resident, &shared), 3);
	fclose(f);
	return (size_t)shared * (size_t)sysconf(_SC_PAGESIZE);
}

TEST(memory)
{
	const size_t n = (size_t)4 << 20;
	struct stack_memory m;
	struct err err = {0};

	for (int mapped = 0; mapped < 2; mapped++) {
		size_t before = resident_files(), used;

		assert_done(stack_memory_make(n, mapped ? fixture_folder : NULL, 0, &m, &err), &err);
		assert_int_equal(m.mapped, mapped ? n * sizeof(float) : 0);
		for (size_t i = 0; i < n; i++)
			m.values[i] = (float)i;
		used = resident_files();
		stack_memory_leave(&m);
		if (mapped)
			assert_true(used - before >= n * sizeof(float) && used - resident_files() >= n * sizeof(float));
		for (size_t i = 0; i < n; i++)
			if (m.values[i] != (float)i)
				fail_msg("value %zu is %g", i, (double)m.values[i]);
		stack_memory_free(&m);
		assert_null(m.values);
	}
	assert_error(stack_memory_make(n, "/no/such/folder", 0, &m, &err), &err, ENOENT,
		     "no file of 17 MB in /no/such/folder for a stack that main memory does not hold");
	assert_error(stack_memory_make(n, fixture_folder, (uint64_t)1 << 60, &m, &err), &err, ENOSPC, "needs a file of 17 MB");
}

#define SLICES 100
#define SIDE 16

/* Cancel when a part of the files is written; the largest fraction of each stage. */
struct ended {
	double read, prepare, write;
};

static void note_progress(void *ctx, const char *stage, double fraction)
{
	struct ended *e = ctx;

	*(!strcmp(stage, "read") ? &e->read : !strcmp(stage, "write") ? &e->write : &e->prepare) = fraction;
}

static bool is_writing(void *ctx)
{
	return ((struct ended *)ctx)->write > 0;
}

static int count_files(const char *ending)
{
	DIR *d = opendir(fixture_folder);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d)))
		n += strstr(e->d_name, ending) != NULL;
	closedir(d);
	return n;
}

TEST(cancelled_between_files)
{
	static float values[SLICES * SIDE * SIDE];
	const struct parallel_scan beams = {
		.n_slices = SLICES, .n_angles = SIDE, .n_radial = SIDE, .bin = 1, .slice = 1, .arc = 180};
	char *set[] = {"PatientPosition=HFS"};
	struct sinogram_arrays a = {.beams = &beams, .duration = NAN, .values = {[SINOGRAM_LINES] = values}};
	struct sinogram_import conf = {.set = set, .n_set = 1, .folder = fixture_folder, .now = 1782726000};
	struct protocol_conf p = *config_protocol(fixture_config, "parallel-fbp");
	const char *path = fixture_path("lines.dcm");
	struct ended ended = {0};
	struct monitor monitor = {.ctx = &ended, .progress = note_progress, .cancelled = is_writing};
	struct reconstruct_report report = {0};
	struct device *dev = NULL;
	struct err err = {0};
	size_t n;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		values[i] = i % SIDE == SIDE / 2;
	assert_done(sinogram_write(&a, &conf, &n, &err), &err);
	assert_int_equal(device_open("cpu:1", &dev, &err), 0);
	assert_error(reconstruct_case(fixture_config, &p, dev, NULL, NULL, &path, 1, &(struct case_decision){0}, fixture_folder,
				      &monitor, &report, &err),
		     &err, ECANCELED, "cancelled after 64 of 100 files");
	assert_true(ended.read == 1 && ended.prepare == 1);
	assert_int_equal(count_files("dcm"), 1);
	device_close(dev);
}

TESTS_SETUP(fixture_start, fixture_stop);
