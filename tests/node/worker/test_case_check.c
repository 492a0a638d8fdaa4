/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of files, and the files of a case against those that their rows have: every single byte of a file counts. */
#include <sys/resource.h>

#include "node/base/digest.h"
#include "node/worker/case_check.h"
#include "tests/test.h"

#define DATA_BYTES 3001
#define PIECE (8u << 20)

struct place {
	char spool[64], path[96];
	struct journal *journal;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char folder[96];

	test_folder(p->spool, sizeof(p->spool));
	snprintf(folder, sizeof(folder), "%s/instances", p->spool);
	mkdir(folder, 0700);
	snprintf(p->path, sizeof(p->path), "%s/journal.db", p->spool);
	*state = p;
	return journal_open(p->path, &p->journal, NULL);
}

static int teardown(void **state)
{
	struct place *p = *state;

	journal_close(p->journal);
	free(p);
	return 0;
}

/* ---- digests ---- */

TEST(test_digest_known)
{
	struct digest *d = digest_create();
	char hex[DIGEST_SIZE], other[DIGEST_SIZE];

	digest_end(d, hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f"); /* XXH3-128 of nothing, as xxhsum -H2 prints it */
	digest_add(d, "ab", 2);
	digest_add(d, "c", 1);
	digest_end(d, hex);
	digest_begin(d);
	digest_add(d, "abc", 3);
	digest_end(d, other);
	assert_string_equal(hex, other);
	digest_free(d);
}

/* Sizes around the pieces; one thread and many give the same, and each byte of each piece counts. */
TEST(test_digest_of_files, .setup = setup, .teardown = teardown)
{
	static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 77};
	enum { N = sizeof(sizes) / sizeof(sizes[0]) + 1 };
	struct place *p = *state;
	uint8_t *bytes = calloc(1, 2 * PIECE + 77);
	char names[N][96], one[N][DIGEST_SIZE], many[N][DIGEST_SIZE], now[1][DIGEST_SIZE];
	const char *paths[N];
	int codes[N];

	for (size_t i = 0; i < 2 * PIECE + 77; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 11);
	for (size_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%zu", p->spool, i);
		paths[i] = names[i];
		if (i + 1 < N) /* the last one is not there */
			test_put_file(paths[i], bytes, sizes[i]);
	}
	assert_int_equal(digest_files(paths, N, 1, one, codes, NULL), 0);
	assert_int_equal(digest_files(paths, N, 5, many, codes, NULL), 0);
	for (size_t i = 0; i < N; i++)
		assert_string_equal(one[i], many[i]);
	assert_string_equal(many[N - 1], "");
	assert_int_equal(codes[N - 1], ENOENT);
	for (size_t i = 0; i + 1 < N; i++) {
		assert_int_equal(codes[i], 0);
		assert_int_equal(strlen(many[i]), 32);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(many[i], many[k]);
	}
	for (size_t at = 0; at < 2 * PIECE + 77; at += PIECE) {
		bytes[at] ^= 1;
		test_put_file(paths[N - 2], bytes, sizes[N - 2]);
		bytes[at] ^= 1;
		assert_int_equal(digest_files(&paths[N - 2], 1, 3, now, codes, NULL), 0);
		assert_string_not_equal(now[0], many[N - 2]);
	}
	free(bytes);
}

/* ---- instances ---- */

static size_t put(uint8_t *to, unsigned element, const char *vr, const char *value)
{
	size_t n = strlen(value);

	to[0] = 2;
	to[1] = 0;
	to[2] = (uint8_t)element;
	to[3] = (uint8_t)(element >> 8);
	memcpy(to + 4, vr, 2);
	to[6] = (uint8_t)((n + 1) / 2 * 2);
	to[7] = 0;
	memcpy(to + 8, value, n);
	if (n & 1)
		to[8 + n] = '\0';
	return 8 + (n + 1) / 2 * 2;
}

/* A stored object: its bytes, its row. */
static size_t make(struct place *p, int number, uint8_t *bytes, struct instance_row *row)
{
	struct digest *d = digest_create();
	size_t n = 132 + 12;
	char path[200];

	memset(row, 0, sizeof(*row));
	strcpy(row->sop_class, "1.2.840.10008.5.1.4.1.1.1.2.1");
	snprintf(row->sop_instance, sizeof(row->sop_instance), "2.25.%d", 1000 + number);
	strcpy(row->transfer_syntax, "1.2.840.10008.1.2.1");
	snprintf(row->file, sizeof(row->file), "instances/%d.dcm", number);
	memset(bytes, 0, 128);
	memcpy(bytes + 128, "DICM\2\0\0\0UL\4\0", 12);
	memcpy(bytes + n, "\2\0\1\0OB\0\0\2\0\0\0\0\1", 14);
	n += 14;
	n += put(bytes + n, 0x0002, "UI", row->sop_class);
	n += put(bytes + n, 0x0003, "UI", row->sop_instance);
	n += put(bytes + n, 0x0010, "UI", row->transfer_syntax);
	bytes[140] = (uint8_t)(n - 144);
	bytes[141] = bytes[142] = bytes[143] = 0;
	for (size_t i = 0; i < DATA_BYTES; i++)
		bytes[n + i] = (uint8_t)(i * 7 + (size_t)number);
	digest_add(d, bytes + n, DATA_BYTES);
	digest_end(d, row->digest);
	digest_free(d);
	n += DATA_BYTES;
	row->bytes = n;
	snprintf(path, sizeof(path), "%s/%s", p->spool, row->file);
	test_put_file(path, bytes, n);
	return n;
}

static int check(struct place *p, const struct instance_row *row, struct err *err)
{
	return case_check_file(p->spool, row, NULL, NULL, err);
}

TEST(test_every_byte, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	uint8_t bytes[DATA_BYTES + 500];
	struct instance_row row;
	size_t n = make(p, 1, bytes, &row);
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", p->spool, row.file);
	assert_int_equal(check(p, &row, NULL), 0);
	for (size_t at = 128; at < n; at++) {
		struct err err = {0};
		bool matters = at < 144 || at >= 158; /* (0002,0001), the version of group 0002, says nothing */

		bytes[at] ^= 0x10;
		test_put_file(path, bytes, n);
		bytes[at] ^= 0x10;
		if (!matters)
			continue;
		if (check(p, &row, &err) != -EBADMSG)
			fail_msg("byte %zu of %zu may change", at, n);
		assert_non_null(strstr(err.msg, row.file));
	}
	for (size_t left = 0; left < n; left += 97) {
		test_put_file(path, bytes, left);
		assert_int_equal(check(p, &row, NULL), -EBADMSG);
	}
	unlink(path);
	assert_int_equal(check(p, &row, NULL), -EBADMSG);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(check(p, &row, NULL), -EBADMSG);
	rmdir(path);
	test_put_file(path, bytes, n);
	assert_int_equal(check(p, &row, NULL), 0);
}

static int64_t add(struct place *p, int64_t job, struct instance_row *row)
{
	assert_int_equal(journal_add_instance(p->journal, row, NULL), 0);
	assert_int_equal(journal_classify(p->journal, row->id, CLASSIFIED_MEMBER, job, "{}", 1, NULL), 0);
	return row->id;
}

static int check_case(const struct place *p, int64_t job, const struct monitor *monitor, struct case_check_report *ret_report,
		      bool *ret_journal, struct err *err)
{
	struct case_order order;
	int ret;

	assert_int_equal(case_order_read_files(p->journal, job, &order, NULL), 0);
	ret = case_check(p->journal, p->spool, &order, 2, monitor, ret_report, ret_journal, err);
	case_order_clear(&order);
	return ret;
}

TEST(test_case, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	uint8_t bytes[DATA_BYTES + 500];
	struct case_check_report report = {0};
	struct instance_row rows[100], again;
	struct err err = {0};
	int64_t job;
	char path[200];
	bool unwritten = true;
	size_t n;

	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\"}", 1, &job, NULL), 0);
	for (int i = 0; i < 100; i++) {
		make(p, i, bytes, &rows[i]);
		add(p, job, &rows[i]);
	}
	assert_int_equal(check_case(p, job, NULL, &report, &unwritten, &err), 0);
	assert_int_equal(report.files, 100);
	assert_int_equal(report.damaged, 0);
	assert_false(unwritten);
	/* Two are damaged: held, both marked, the first one named. */
	for (int i = 70; i < 100; i += 29) {
		n = make(p, i, bytes, &again);
		bytes[n - 1] ^= 1;
		snprintf(path, sizeof(path), "%s/%s", p->spool, rows[i].file);
		test_put_file(path, bytes, i == 99 ? n : n - 5);
	}
	assert_int_equal(check_case(p, job, NULL, &report, &unwritten, &err), -EBADMSG);
	assert_int_equal(report.damaged, 2);
	assert_non_null(strstr(err.msg, "2 of 100 files are damaged, the first: the bytes of instances/70.dcm"));
	assert_int_equal(journal_count_damaged(p->journal, job, NULL), 2);
	assert_int_equal(journal_is_damaged(p->journal, rows[70].id, NULL), 1);
	assert_int_equal(journal_is_damaged(p->journal, rows[71].id, NULL), 0);
	/* One came again. */
	make(p, 70, bytes, &again);
	assert_int_equal(check_case(p, job, NULL, &report, &unwritten, &err), -EBADMSG);
	assert_int_equal(report.damaged, 1);
	assert_int_equal(journal_count_damaged(p->journal, job, NULL), 1);
	assert_int_equal(journal_is_damaged(p->journal, rows[99].id, NULL), 1);
	assert_int_equal(journal_mark_intact(p->journal, rows[99].id, NULL), 0);
	assert_int_equal(journal_count_damaged(p->journal, job, NULL), 0);
	/* Both: no mark is left. */
	make(p, 99, bytes, &again);
	assert_int_equal(check_case(p, job, NULL, &report, &unwritten, &err), 0);
	assert_int_equal(journal_count_damaged(p->journal, job, NULL), 0);
}

/* A file that cannot be read now, because the process has no descriptor left, is not damaged: nothing is marked. */
TEST(test_read_error, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	uint8_t bytes[DATA_BYTES + 500];
	struct case_check_report report = {0};
	struct instance_row row;
	struct rlimit before, none;
	struct err err = {0};
	int64_t job;
	bool unwritten = true;
	int ret;

	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\"}", 1, &job, NULL), 0);
	make(p, 1, bytes, &row);
	add(p, job, &row);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = check_case(p, job, NULL, &report, &unwritten, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(ret, -EMFILE);
	assert_non_null(strstr(err.msg, "cannot be read"));
	assert_int_equal(report.damaged, 0);
	assert_int_equal(journal_count_damaged(p->journal, job, NULL), 0);
}

/* The errors of a read that are no damage. */
TEST(test_transient_errors)
{
	static const int transient[] = {ENOMEM, EMFILE, ENFILE, EACCES, EPERM, ECANCELED},
			 damage[] = {EIO, EISDIR, ENOENT, ELOOP};

	for (size_t i = 0; i < sizeof(transient) / sizeof(transient[0]); i++)
		assert_true(digest_error_is_transient(transient[i]));
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++)
		assert_false(digest_error_is_transient(damage[i]));
}

static bool at_once(void *ctx)
{
	(void)ctx;
	return true;
}

TEST(test_cancelled, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	uint8_t bytes[DATA_BYTES + 500];
	const struct monitor monitor = {.cancelled = at_once};
	struct case_check_report report = {0};
	struct instance_row row;
	int64_t job;
	bool unwritten = true;

	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\"}", 1, &job, NULL), 0);
	make(p, 1, bytes, &row);
	add(p, job, &row);
	assert_int_equal(check_case(p, job, &monitor, &report, &unwritten, NULL), -ECANCELED);
	assert_int_equal(journal_count_damaged(p->journal, job, NULL), 0);
	assert_int_equal(case_check_file(p->spool, &row, at_once, NULL, NULL), -ECANCELED);
}
