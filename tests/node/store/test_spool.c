/* SPDX-License-Identifier: Apache-2.0 */
/* test_spool.c - names, durability order, lock and sweep of the spool folder. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "node/store/orphans.h"
#include "node/store/spool.h"
#include "tests/test.h"

static char spool[64], synced[400]; /* synced: the names of what was synced, each with a space after it */

/* The linker uses this function for the files under test, too. */
int fsync(int fd)
{
	char link[32], target[300];
	ssize_t n;
	size_t at = strlen(synced);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	snprintf(synced + at, sizeof(synced) - at, "%s ", strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
	return (int)syscall(SYS_fsync, fd);
}

static const char *in_spool(const char *name)
{
	return test_path(spool, name);
}

static void put_file(const char *name)
{
	test_put_file(in_spool(name), "x", 1);
}

static bool there(const char *name)
{
	struct stat st;

	return lstat(in_spool(name), &st) == 0;
}

TEST(prepare_makes_folders)
{
	static const char *const folders[] = {"", "incoming", "instances", "outbox", "work"};
	struct err err = {0};
	struct stat st;
	char deep[128], file[128];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		assert_int_equal(stat(in_spool(folders[i]), &st), 0);
		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(st.st_mode & 0777, 0700);
	}
	assert_int_equal(spool_prepare(spool, &err), 0); /* again: nothing to do */
	snprintf(deep, sizeof(deep), "%s/work/a/b/", spool);
	assert_int_equal(spool_prepare(deep, &err), 0);
	assert_true(there("work/a/b/outbox"));
	put_file("work/plain");
	snprintf(file, sizeof(file), "%s/work/plain", spool);
	assert_error(spool_prepare(file, &err), &err, ENOTDIR, file);
}

TEST(commit_moves_the_whole_file)
{
	char name[64], file[128], part[128];
	struct err err = {0};
	struct stat st;
	int fd = spool_begin(spool, name, &err);

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	snprintf(part, sizeof(part), "incoming/%s.part", name);
	assert_true(there(part));
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(spool_commit(spool, name, fd, file, &err), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
	assert_false(there(part));
	assert_int_equal(stat(in_spool(file), &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_string_equal(file + strlen(file) - 4, ".dcm");
}

TEST(commit_fails_whole)
{
	char name[64], file[128] = "untouched";
	struct err err = {0};
	int fd = spool_begin(spool, name, &err);

	assert_true(fd >= 0);
	assert_int_equal(rename(in_spool("instances"), in_spool("elsewhere")), 0);
	assert_true(spool_commit(spool, name, fd, file, &err) < 0);
	assert_int_equal(rename(in_spool("elsewhere"), in_spool("instances")), 0);
	assert_string_equal(file, "untouched");
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	spool_discard(spool, name, -1);
	snprintf(file, sizeof(file), "incoming/%s.part", name);
	assert_false(there(file));
}

/* Processes that begin files at the same time never meet. */
TEST(names_are_unique)
{
	struct err err = {0};
	int status;

	for (int p = 0; p < 4; p++) {
		if (fork() == 0) {
			for (int i = 0; i < 200; i++) {
				char name[64];
				int fd = spool_begin(spool, name, &err);

				if (fd < 0)
					_exit(1);
				spool_discard(spool, name, fd);
				if (access(in_spool(name), F_OK) == 0)
					_exit(2);
			}
			_exit(0);
		}
	}
	for (int p = 0; p < 4; p++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
}

TEST(lock_names_its_holder)
{
	struct err err = {0};
	int fd = spool_lock(spool, &err), again, ready[2];
	struct spool_holder holder;
	char who[32], byte, path[512];
	pid_t pid;

	assert_true(fd >= 0);
	snprintf(who, sizeof(who), "process %ld", (long)getpid());
	assert_error(spool_lock(spool, &err), &err, EBUSY, who);
	/* The lock does not depend on the file, which may be removed, and comes back with the next sign of life. */
	snprintf(path, sizeof(path), "%s/node.lock", spool);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(spool_lock(spool, &err), -EBUSY);
	spool_lock_beat(fd, 12.5, 11);
	assert_true(spool_holder(spool, &holder));
	assert_int_equal(holder.pid, getpid());
	assert_true(holder.alive == 12.5 && holder.reported == 11);
	close(fd);
	assert_false(spool_holder(spool, &holder));
	again = spool_lock(spool, &err);
	assert_true(again >= 0);
	close(again);

	/* A process that dies gives it back, however it dies. */
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (spool_lock(spool, NULL) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(spool_lock(spool, &err), -EBUSY);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fd = spool_lock(spool, &err);
	assert_true(fd >= 0);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

static int keep_kept(void *ctx, const char *file)
{
	(*(int *)ctx)++;
	if (!strcmp(file, "instances/unclear.dcm"))
		return -EIO;
	return !strcmp(file, "instances/kept.dcm")   ? SPOOL_NAMED
	       : !strcmp(file, "work/8-21")	     ? SPOOL_NAMED
	       : !strcmp(file, "instances/past.dcm") ? SPOOL_REMOVED
						     : SPOOL_NO_ROW;
}

TEST(sweep_removes_what_a_crash_left)
{
	static const char *const gone[] = {"incoming/a.part", "instances/past.dcm", "outbox/7/r.dcm.part",
					   "work/9/scratch",  "work/8-2.order",	    "work/9"};
	static const char *const stays[] = {"instances/kept.dcm", "instances/unclear.dcm", "instances/README", "outbox/7/r.dcm",
					    "work/8-21.outcome",  "work/8-21/1.dcm",	   "outbox/7",	       "outside"};
	struct err err = {0};
	int asked = 0;

	assert_int_equal(mkdir(in_spool("outbox/7"), 0700), 0);
	assert_int_equal(mkdir(in_spool("work/9"), 0700), 0);
	assert_int_equal(mkdir(in_spool("work/8-21"), 0700), 0);
	for (size_t i = 0; i < 5; i++)
		put_file(gone[i]);
	for (size_t i = 0; i < 6; i++)
		put_file(stays[i]);
	put_file("outside");
	assert_int_equal(symlink(in_spool("outside"), in_spool("work/9/link")), 0);
	assert_int_equal(symlink(in_spool("outbox"), in_spool("work/9/folder")), 0);
	assert_int_equal(symlink(in_spool("nowhere"), in_spool("work/9/dangling")), 0);
	assert_true(spool_sweep(spool, keep_kept, &asked, &err) >= 5);
	assert_int_equal(asked, 3 + 3 + 1); /* with the one that an earlier test committed */
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		assert_false(there(gone[i]));
	for (size_t i = 0; i < sizeof(stays) / sizeof(stays[0]); i++)
		assert_true(there(stays[i]));
	assert_int_equal(spool_sweep(spool, keep_kept, &asked, &err), 0);
}

static int names_orphan(void *ctx, const char *file)
{
	(void)ctx;
	return !strcmp(file, "instances/orphan.dcm") ? 1 : !strcmp(file, "instances/odd.dcm") ? -EIO : 0;
}

/* What no row names may have been acknowledged all the same: it is set aside, comes back with its row, and goes after its time.
 */
TEST(unknown_images_are_set_aside)
{
	const double day = 86400, now = (double)time(NULL);
	struct timespec ahead[2] = {{.tv_sec = (time_t)(now + 100 * day)}, {.tv_sec = (time_t)(now + 100 * day)}};
	struct err err = {0};
	uint64_t before = orphans_count(spool); /* of an earlier test */
	int asked = 0;

	assert_int_equal(orphans_remove_old(spool, 0, now + 9 * day, &err), before);
	put_file("instances/orphan.dcm");
	put_file("instances/odd.dcm");
	synced[0] = '\0';
	assert_int_equal(spool_sweep(spool, keep_kept, &asked, &err), 0);
	assert_string_equal(synced, "orphans instances "); /* in this order: the files are never in none of the folders */
	assert_false(there("instances/orphan.dcm"));
	assert_true(there("orphans/orphan.dcm") && there("orphans/odd.dcm"));
	assert_int_equal(orphans_count(spool), 2);
	assert_int_equal(orphans_restore(spool, names_orphan, NULL, &err), 1);
	assert_true(there("instances/orphan.dcm") && there("orphans/odd.dcm"));
	assert_int_equal(orphans_remove_old(spool, 30, now + 29 * day, &err), 0);
	/* A clock that was ahead makes nothing stay for ever. */
	assert_int_equal(utimensat(AT_FDCWD, in_spool("orphans/odd.dcm"), ahead, 0), 0);
	assert_int_equal(orphans_remove_old(spool, 30, now, &err), 0);
	assert_int_equal(orphans_remove_old(spool, 30, now + 29 * day, &err), 0);
	assert_int_equal(orphans_remove_old(spool, 30, now + 31 * day, &err), 1);
	assert_int_equal(orphans_count(spool), 0);
	assert_int_equal(unlink(in_spool("instances/orphan.dcm")), 0);
	assert_int_equal(orphans_count("/nonexistent"), 0);
}

TEST(free_space_is_known)
{
	assert_true(spool_free_bytes(spool) > 0);
	assert_int_equal(spool_free_bytes("/nonexistent"), 0); /* not known counts as none */
}

static int set_up(void **state)
{
	struct err err;

	test_folder(spool, sizeof(spool));
	return spool_prepare(spool, &err);
}

TESTS_SETUP(set_up, NULL);
