/* SPDX-License-Identifier: Apache-2.0 */
/* What a status of C-STORE, and an error of an association, mean for the delivery of an object; when a failing destination is an
 * alarm; which results are sent. */
#include <sys/resource.h>

#include <jansson.h>

#include "node/base/backoff.h"
#include "node/base/digest.h"
#include "node/deliver/deliver.h"
#include "node/deliver/destination.h"
#include "node/deliver/outbox_check.h"
#include "tests/test.h"

TEST(test_status)
{
	static const struct {
		uint16_t first, last;
		enum deliver_outcome outcome;
	} known[] = {
		{0x0000, 0x0000, DELIVER_STORED},    {0x0111, 0x0111, DELIVER_STORED},	  {0x0107, 0x0107, DELIVER_STORED},
		{0x0116, 0x0116, DELIVER_STORED},    {0xb000, 0xbfff, DELIVER_STORED},	  {0xa700, 0xa7ff, DELIVER_TRANSIENT},
		{0xa900, 0xa9ff, DELIVER_PERMANENT}, {0xc000, 0xcfff, DELIVER_PERMANENT}, {0x0122, 0x0122, DELIVER_PERMANENT},
		{0x0124, 0x0124, DELIVER_PERMANENT}, {0x0117, 0x0118, DELIVER_PERMANENT}, {0x0106, 0x0106, DELIVER_PERMANENT},
		{0x0120, 0x0121, DELIVER_PERMANENT}, {0x0211, 0x0211, DELIVER_PERMANENT}, {0x0110, 0x0110, DELIVER_TRANSIENT},
		{0xfe00, 0xfe00, DELIVER_TRANSIENT},
	};

	for (uint32_t status = 0; status <= 0xffff; status++) {
		enum deliver_outcome expected = DELIVER_TRANSIENT; /* a status that the standard does not name is tried again */
		const char *meaning = NULL;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (status >= known[i].first && status <= known[i].last)
				expected = known[i].outcome;
		if (deliver_classify((uint16_t)status, &meaning) != expected)
			fail_msg("status %04X", (unsigned)status);
		assert_true(meaning && meaning[0]);
	}
}

TEST(test_errors)
{
	assert_int_equal(deliver_classify_error(ENOTSUP), DELIVER_PERMANENT); /* no presentation context */
	assert_int_equal(deliver_classify_error(ETIMEDOUT), DELIVER_TRANSIENT);
	assert_int_equal(deliver_classify_error(EACCES), DELIVER_TRANSIENT);
	assert_true(deliver_needs_operator(EACCES) && deliver_needs_operator(ENOKEY) && deliver_needs_operator(EKEYREJECTED));
	assert_false(deliver_needs_operator(ETIMEDOUT) || deliver_needs_operator(EBUSY) || deliver_needs_operator(ECONNRESET));
}

static bool fails(const struct destination_conf *d, const struct job_send *send, bool rejected, double now)
{
	json_t *detail = json_object();
	bool first = destination_failed(detail, d, send, (struct destination_failure){.rejected = rejected}, now),
	     alarm = json_is_true(json_object_get(detail, "alarm"));

	assert_true(json_number_value(json_object_get(detail, "next")) > now);
	assert_true(alarm || !first);
	json_decref(detail);
	return alarm;
}

TEST(test_alarm)
{
	const struct destination_conf d = {.alarm_after = 60, .alarm_rejections = 3, .retry_first = 5, .retry_cap = 40};
	struct job_send send = {.since = 1000};

	assert_false(fails(&d, &send, false, 1059));
	assert_true(fails(&d, &send, false, 1060));
	send.since = 0; /* the first failure */
	assert_false(fails(&d, &send, false, 2000));
	send.failures = 1;
	assert_false(fails(&d, &send, true, 2000));
	send.failures = 2; /* the third rejection in a row */
	assert_true(fails(&d, &send, true, 2000));
	assert_false(fails(&d, &send, false, 2000));
	send.alarm = true; /* it continues */
	assert_true(fails(&d, &send, false, 2000));
}

/* A result whose bytes have changed, or that is gone, is not sent; one that cannot be read now is tried again. */
TEST(test_outbox)
{
	char spool[64], folder[80], path[100], hex[1][DIGEST_SIZE];
	struct job_object object = {.file = "outbox/a.dcm", .sop_instance = "1.2.3"};
	enum send_state due = SEND_DUE;
	struct job_view v = {.objects = &object, .n_objects = 1};
	struct job_send send = {.state = SEND_DUE, .objects = &due};
	struct rlimit old, none;
	const char *paths[] = {path};
	struct err err = {0};
	FILE *f;
	int code, ret;

	test_folder(spool, sizeof(spool));
	snprintf(folder, sizeof(folder), "%s/outbox", spool);
	snprintf(path, sizeof(path), "%s/a.dcm", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	f = fopen(path, "w");
	fputs("a result", f);
	fclose(f);
	assert_int_equal(digest_files(paths, 1, 1, hex, &code, &err), 0);
	object.digest = hex[0];
	assert_int_equal(outbox_verify(spool, &v, &send, &err), 0);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){3, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = outbox_verify(spool, &v, &send, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(ret, -EMFILE);

	f = fopen(path, "w");
	fputs("a resulT", f);
	fclose(f);
	assert_int_equal(outbox_verify(spool, &v, &send, &err), -EBADMSG);
	due = SEND_DONE; /* it is not to be sent: not read */
	assert_int_equal(outbox_verify(spool, &v, &send, &err), 0);
	due = SEND_DUE;
	unlink(path);
	assert_error(outbox_verify(spool, &v, &send, &err), &err, EBADMSG, "can no longer be read");
}

TEST(test_backoff)
{
	assert_true(backoff_seconds(1, 5, 600) == 5);
	assert_true(backoff_seconds(2, 5, 600) == 10);
	assert_true(backoff_seconds(4, 5, 600) == 40);
	assert_true(backoff_seconds(8, 5, 600) == 600);
	assert_true(backoff_seconds(1000000, 5, 600) == 600);
	assert_true(backoff_seconds(1, 5, 2) == 2);
	assert_true(backoff_seconds(0, 5, 600) == 5);
}
