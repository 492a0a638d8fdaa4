/* SPDX-License-Identifier: Apache-2.0 */
/* Write frames: the guarantees of the writer, several files that are published together or not at all, a full disk. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include <linux/magic.h>

#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

TEST(test_writer_refusals)
{
	struct dicom_file *file = header(4, 4, 2);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	uint16_t values[16] = {0};
	int before = folder_entries();

	/* abort, too few frames, too many frames: no file remains */
	ok(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), &err);
	assert_int_equal(folder_entries(), before + 1);
	ok(dicom_writer_frame(w, values, &err), &err);
	dicom_writer_abort(w);
	dicom_writer_abort(NULL);
	assert_int_equal(folder_entries(), before);
	ok(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	assert_error(dicom_writer_close(w, &err), &err, EINVAL, "1 of 2 frames");
	assert_int_equal(folder_entries(), before);
	ok(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	assert_int_equal(dicom_writer_frame(w, values, &err), -EINVAL);
	dicom_writer_abort(w);
	/* a .part file of an earlier attempt is replaced */
	FILE *f = fopen(in_folder("w.dcm.part"), "w");
	fputs("left", f);
	fclose(f);
	ok(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), &err);
	dicom_writer_abort(w);
	assert_int_equal(folder_entries(), before);
	w = NULL;
	/* unsuitable headers */
	ok(dicom_put_private(dicom_root(file), 0x7fe1, "MAKER", 1, "LO", "x", &err), &err);
	assert_error(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), &err, EINVAL, "(7FE1,0010)");
	file = header(4, 4, 2);
	ok(dicom_put_int(dicom_root(file), ALLOCATED, 8, &err), &err);
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), -EINVAL);
	file = header(32768, 32768, 2); /* 4 GiB exactly: refused before anything is written */
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), -EFBIG);
	file = header(0, 4, 2);
	assert_error(dicom_writer_open(in_folder("w.dcm"), file, NULL, &w, &err), &err, EINVAL, "a header without (0028,0010)");
	/* fragments of no bytes, and of one byte more than offsets of 32 bits allow */
	file = header(4, 4, 2);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &(struct dicom_writer_options){.jpegls = true}, &w, &err), &err);
	assert_error(dicom_writer_fragment(w, values, 0, &err), &err, EINVAL, "frame 1 is empty");
	assert_error(dicom_writer_fragment(w, values, 0xffffffff - 15, &err), &err, EFBIG,
		     "frame 1 (4294967280 bytes at offset 0)");
	dicom_writer_abort(w);
	w = NULL;
	file = header(4, 4, 2);
	assert_int_equal(dicom_writer_open("/nowhere/w.dcm", file, NULL, &w, &err), -ENOENT);
	assert_null(w);
	assert_int_equal(folder_entries(), before);
}

/* Many files of one folder: synced one by one, then all of them are renamed or none. */
TEST(test_published_together)
{
	static const char *const names[] = {"a.dcm", "b.dcm", "c.dcm"};
	struct dicom_file *file = header(4, 4, 1), *read = NULL;
	struct dicom_writer *w[3];
	struct err err = {0};
	uint16_t values[16] = {7};
	int before = folder_entries();

	for (int blocked = 1; blocked >= 0; blocked--) {
		if (blocked) /* the last file cannot be renamed */
			assert_int_equal(mkdir(in_folder(names[2]), 0700), 0);
		else
			assert_int_equal(rmdir(in_folder(names[2])), 0);
		for (int i = 0; i < 3; i++) {
			ok(dicom_writer_open(in_folder(names[i]), file, NULL, &w[i], &err), &err);
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

		read = open_file(in_folder(names[i]));
		ok(dicom_pixels_info(read, &info, &err), &err);
		ok(dicom_read_frame(read, 0, got, &err), &err);
		assert_memory_equal(got, values, sizeof(got));
		unlink(in_folder(names[i]));
	}
}

/* A full file system, simulated by RLIMIT_FSIZE: an error when the frame is written, no file remains, no signal. */
TEST(test_no_space)
{
	struct dicom_file *file = header(512, 512, 4);
	struct rlimit old, small = {1 << 20, RLIM_INFINITY};
	static uint16_t values[512 * 512];
	struct dicom_writer *w = NULL;
	struct err err = {0};
	int before = folder_entries(), r;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = dicom_writer_open(in_folder("full.dcm"), file, NULL, &w, &err);
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
}

/* ---- a file system of a few MB, simulated: its free space is what the files of the folder leave of it ---- */

static uint64_t disk_size; /* 0: the real one */
static long disk_type;	   /* 0: the real one */

static uint64_t bytes_in_folder(void)
{
	static const char *const names[] = {"a.dcm.part", "b.dcm.part"};
	uint64_t sum = 0;
	struct stat st;

	for (int i = 0; i < 2; i++)
		if (stat(in_folder(names[i]), &st) == 0)
			sum += (uint64_t)st.st_size;
	return sum;
}

/* Takes the place of the C library's function, also in the writer. */
int fstatfs(int fd, struct statfs *ret)
{
	union {
		void *symbol;
		int (*call)(int, struct statfs *);
	} next = {dlsym(RTLD_NEXT, "fstatfs")};
	uint64_t used = disk_size ? bytes_in_folder() : 0;
	int r = next.call(fd, ret);

	if (disk_size) {
		ret->f_bsize = 1;
		ret->f_bavail = disk_size > used ? disk_size - used : 0;
	}
	if (disk_type)
		ret->f_type = disk_type;
	return r;
}

#define KEEP (2 << 20)
#define SIDE 512 /* a frame is half a MiB */
#define N_FRAMES 8

/* Two writers pass the check of open together; the one that would take the space that must stay free stops and leaves no file,
 * the other one goes on. Without allocated blocks the space is checked before each write. */
static void two_writers(bool jpegls, long type)
{
	static uint16_t values[SIDE * SIDE];
	struct dicom_writer_options options = {.jpegls = jpegls, .keep_free = KEEP};
	struct dicom_file *file = header(SIDE, SIDE, N_FRAMES);
	struct dicom_writer *w[2] = {0};
	struct err err = {0};
	int before = folder_entries(), r[2] = {0};

	disk_size = KEEP + N_FRAMES * sizeof(values) * 3 / 2; /* space for one and a half */
	disk_type = type;
	for (int i = 0; i < 2; i++)
		ok(dicom_writer_open(in_folder(i ? "b.dcm" : "a.dcm"), file, &options, &w[i], &err), &err);
	for (int f = 0; f < N_FRAMES; f++)
		for (int i = 0; i < 2; i++) {
			if (!w[i])
				continue;
			r[i] = jpegls ? dicom_writer_fragment(w[i], values, sizeof(values), &err)
				      : dicom_writer_frame(w[i], values, &err);
			assert_true(disk_size - bytes_in_folder() >= KEEP);
			if (r[i] < 0) {
				dicom_writer_abort(w[i]);
				w[i] = NULL;
			}
		}
	assert_true((r[0] == 0) != (r[1] == 0));
	assert_int_equal(r[0] + r[1], -ENOSPC);
	assert_int_equal(folder_entries(), before + 1);
	for (const char *const *part =
		     (const char *const[]){" to write, but ", " are free, of which 2097152 must stay free", NULL};
	     *part; part++)
		if (!strstr(err.msg, *part))
			fail_msg("'%s' is not in: %s", *part, err.msg);
	ok(dicom_writer_close(w[r[0] < 0], &err), &err);
	disk_size = 0;
	disk_type = 0;
	unlink(in_folder(r[0] < 0 ? "b.dcm" : "a.dcm"));
}

TEST(test_keep_free)
{
	struct dicom_writer_options options = {.keep_free = KEEP};
	struct dicom_file *file = header(SIDE, SIDE, N_FRAMES);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	int before = folder_entries();

	two_writers(true, 0);
	two_writers(false, TMPFS_MAGIC);
	disk_size = KEEP + N_FRAMES * SIDE * SIDE * 2; /* header and pixels do not fit beside it */
	assert_int_equal(dicom_writer_open(in_folder("a.dcm"), file, &options, &w, &err), -ENOSPC);
	assert_int_equal(folder_entries(), before);
	disk_size = 0;
}

TESTS_SETUP(folder_make, folder_remove);
