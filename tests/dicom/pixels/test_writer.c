/* SPDX-License-Identifier: Apache-2.0 */
/* Write frames: the guarantees of the writer, several files that are published together or not at all, a full disk. */
#include <signal.h>
#include <sys/resource.h>

#include "tests/dicom/pixels/pixels_fixture.h"

static void test_writer_refusals(void **state)
{
	struct dicom_file *file = header(4, 4, 2);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	uint16_t values[16] = {0};
	int before = folder_entries();

	(void)state;
	/* abort, too few frames, too many frames: no file remains */
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	assert_int_equal(folder_entries(), before + 1);
	ok(dicom_writer_frame(w, values, &err), &err);
	dicom_writer_abort(w);
	dicom_writer_abort(NULL);
	assert_int_equal(folder_entries(), before);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	assert_int_equal(dicom_writer_close(w, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "1 of 2 frames"));
	assert_int_equal(folder_entries(), before);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	assert_int_equal(dicom_writer_frame(w, values, &err), -EINVAL);
	dicom_writer_abort(w);
	/* a .part file of an earlier attempt is replaced */
	FILE *f = fopen(in_folder("w.dcm.part"), "w");
	fputs("left", f);
	fclose(f);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	dicom_writer_abort(w);
	assert_int_equal(folder_entries(), before);
	w = NULL;
	/* unsuitable headers */
	ok(dicom_put_private(dicom_root(file), 0x7fe1, "MAKER", 1, "LO", "x", &err), &err);
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "(7FE1,0010)"));
	dicom_close(file);
	file = header(4, 4, 2);
	ok(dicom_put_int(dicom_root(file), ALLOCATED, 8, &err), &err);
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), -EINVAL);
	dicom_close(file);
	file = header(32768, 32768, 2); /* 4 GiB exactly: refused before anything is written */
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), -EFBIG);
	dicom_close(file);
	file = header(4, 4, 2);
	assert_int_equal(dicom_writer_open("/nowhere/w.dcm", file, &w, &err), -ENOENT);
	dicom_close(file);
	assert_null(w);
	assert_int_equal(folder_entries(), before);
}

/* Many files of one folder: synced one by one, then all of them are renamed or none. */
static void test_published_together(void **state)
{
	static const char *const names[] = {"a.dcm", "b.dcm", "c.dcm"};
	struct dicom_file *file = header(4, 4, 1), *read = NULL;
	struct dicom_writer *w[3];
	struct err err = {0};
	uint16_t values[16] = {7};
	int before = folder_entries();

	(void)state;
	for (int blocked = 1; blocked >= 0; blocked--) {
		if (blocked) /* the last file cannot be renamed */
			assert_int_equal(mkdir(in_folder(names[2]), 0700), 0);
		else
			assert_int_equal(rmdir(in_folder(names[2])), 0);
		for (int i = 0; i < 3; i++) {
			ok(dicom_writer_open(in_folder(names[i]), file, &w[i], &err), &err);
			assert_int_equal(dicom_writer_sync(w[i], &err), -EINVAL); /* no frame yet */
			ok(dicom_writer_frame(w[i], values, &err), &err);
		}
		assert_int_equal(dicom_writers_publish(w, 3, &err), -EINVAL); /* not synced */
		for (int i = 0; i < 3; i++)
			ok(dicom_writer_sync(w[i], &err), &err);
		assert_int_equal(dicom_writer_sync(w[0], &err), -EINVAL);
		assert_int_equal(folder_entries(), before + 3 + blocked);
		if (blocked)
			assert_true(dicom_writers_publish(w, 3, &err) < 0);
		else
			ok(dicom_writers_publish(w, 3, &err), &err);
		for (int i = 0; i < 3; i++)
			dicom_writer_abort(w[i]);
		assert_int_equal(folder_entries(), blocked ? before + 1 : before + 3);
	}
	for (int i = 0; i < 3; i++) {
		uint16_t got[16] = {0};
		struct dicom_pixel_info info;

		ok(dicom_open(in_folder(names[i]), &read, &err), &err);
		ok(dicom_pixels_info(read, &info, &err), &err);
		ok(dicom_read_frame(read, 0, got, &err), &err);
		assert_memory_equal(got, values, sizeof(got));
		dicom_close(read);
		unlink(in_folder(names[i]));
	}
	dicom_close(file);
}

/* A full file system, simulated by RLIMIT_FSIZE: an error when the frame is written, no file remains, no signal. */
static void test_no_space(void **state)
{
	struct dicom_file *file = header(512, 512, 4);
	struct rlimit old, small = {1 << 20, RLIM_INFINITY};
	static uint16_t values[512 * 512];
	struct dicom_writer *w = NULL;
	struct err err = {0};
	int before = folder_entries(), r;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = dicom_writer_open(in_folder("full.dcm"), file, &w, &err);
	for (int f = 0; f < 4 && r == 0; f++)
		r = dicom_writer_frame(w, values, &err);
	assert_int_equal(r, -EFBIG);
	if (w) {
		assert_int_equal(dicom_writer_frame(w, values, &err),
				 -EIO); /* after a failed write no further frame is accepted */
		assert_true(dicom_writer_close(w, &err) < 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(folder_entries(), before);
	dicom_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writer_refusals),
		cmocka_unit_test(test_published_together),
		cmocka_unit_test(test_no_space),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
