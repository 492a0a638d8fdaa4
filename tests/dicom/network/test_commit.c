/* SPDX-License-Identifier: Apache-2.0 */
/* test_commit.c - data sets of storage commitment reports: both encodings, both kinds of length, and malformed ones. */
#include "dicom/network/commit.h"
#include "tests/test.h"

#define UNDEFINED 0xffffffffu

struct text {
	uint8_t bytes[4096];
	size_t n;
	bool explicit_vr;
};

static void put(struct text *t, const void *bytes, size_t n)
{
	assert_true(t->n + n <= sizeof(t->bytes));
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

static void put_head(struct text *t, uint32_t tag, const char *vr, uint32_t length)
{
	const uint8_t head[] = {(uint8_t)(tag >> 16), (uint8_t)(tag >> 24), (uint8_t)tag, (uint8_t)(tag >> 8)};
	const uint8_t size[] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), (uint8_t)(length >> 24)};

	put(t, head, 4);
	if (!t->explicit_vr || tag >> 16 == 0xfffe) {
		put(t, size, 4);
	} else {
		bool is_long = !strcmp(vr, "SQ") || !strcmp(vr, "UN");

		put(t, vr, 2);
		put(t, is_long ? "\0" : (const char *)size, 2);
		if (is_long)
			put(t, size, 4);
	}
}

static void put_uid(struct text *t, uint32_t tag, const char *uid)
{
	size_t n = strlen(uid);

	put_head(t, tag, "UI", (uint32_t)(n + (n & 1)));
	put(t, uid, n + (n & 1));
}

/* Append a sequence; its items, with their headers, are already encoded. */
static void put_sequence(struct text *t, uint32_t tag, const struct text *items, bool defined)
{
	put_head(t, tag, "SQ", defined ? (uint32_t)items->n : UNDEFINED);
	put(t, items->bytes, items->n);
	if (!defined)
		put_head(t, DICOM_TAG(0xfffe, 0xe0dd), "--", 0);
}

static void put_item(struct text *t, const struct text *content, bool defined)
{
	put_head(t, DICOM_TAG(0xfffe, 0xe000), "--", defined ? (uint32_t)content->n : UNDEFINED);
	put(t, content->bytes, content->n);
	if (!defined)
		put_head(t, DICOM_TAG(0xfffe, 0xe00d), "--", 0);
}

static void item_of(struct text *items, const char *uid, int reason, bool defined)
{
	struct text content = {.explicit_vr = items->explicit_vr};
	const uint8_t value[] = {(uint8_t)reason, (uint8_t)(reason >> 8)};

	put_uid(&content, DICOM_TAG(0x0008, 0x1150), "1.2.840.10008.5.1.4.1.1.2");
	put_uid(&content, DICOM_TAG(0x0008, 0x1155), uid);
	if (reason) {
		put_head(&content, DICOM_TAG(0x0008, 0x1197), "US", 2);
		put(&content, value, 2);
	}
	put_item(items, &content, defined);
}

/* A report of two committed and two failed objects; one of the failed ones has no reason. */
static void whole_report(struct text *t, bool explicit_vr, bool defined)
{
	struct text good = {.explicit_vr = explicit_vr}, bad = {.explicit_vr = explicit_vr};

	memset(t, 0, sizeof(*t));
	t->explicit_vr = explicit_vr;
	item_of(&good, "1.2.3", 0, defined);
	item_of(&good, "1.2.34", 0, !defined);
	item_of(&bad, "1.2.5", 0x0112, defined);
	item_of(&bad, "1.2.6", 0, defined);
	put_uid(t, DICOM_TAG(0x0008, 0x1195), "2.25.77");
	put_sequence(t, DICOM_TAG(0x0008, 0x1198), &bad, defined);
	put_sequence(t, DICOM_TAG(0x0008, 0x1199), &good, defined);
}

TEST(read_in_every_form)
{
	for (int form = 0; form < 4; form++) {
		struct commit_report r GOES(commit_report_clear) = {0};
		struct err err = {0};
		struct text t;

		whole_report(&t, form & 1, form & 2);
		if (commit_report_parse(t.bytes, t.n, form & 1, &r, &err) < 0)
			fail_msg("form %d: %s", form, err.msg);
		assert_string_equal(r.transaction, "2.25.77");
		assert_int_equal(r.n, 4);
		assert_string_equal(r.items[0].sop_instance, "1.2.5");
		assert_string_equal(r.items[0].sop_class, "1.2.840.10008.5.1.4.1.1.2");
		assert_int_equal(r.items[0].failure, 0x0112);
		assert_string_equal(r.items[1].sop_instance, "1.2.6");
		assert_int_equal(r.items[1].failure,
				 COMMIT_NO_REASON); /* an item of the failed sequence is never reported as committed */
		assert_string_equal(r.items[3].sop_instance, "1.2.34");
		assert_int_equal(r.items[2].failure + r.items[3].failure, 0);
	}
}

/* In explicit VR, sequences that a system on the way has stored with VR UN (CP-246): their items are in implicit VR, for every
 * form of length. The last case has items in explicit VR, which is not allowed: the report is refused and nothing of it is used.
 */
TEST(sequences_of_unknown_vr)
{
	for (int form = 0; form < 4; form++) {
		struct text t = {.explicit_vr = true}, inside = {.explicit_vr = form == 3}, other = {0};
		uint32_t length;
		struct commit_report r GOES(commit_report_clear) = {0};
		struct err err = {0};
		int ret;

		item_of(&inside, "1.2.3", 0, form == 1);
		item_of(&inside, "1.2.34", 0, form != 1);
		item_of(&other, "9.9.9", 0, false);
		length = form == 2 ? (uint32_t)inside.n : UNDEFINED;
		put_head(&t, DICOM_TAG(0x0008, 0x0301), "UN", UNDEFINED); /* skipped; it contains another one like it */
		put_head(&t, DICOM_TAG(0xfffe, 0xe000), "--", UNDEFINED);
		t.explicit_vr = false;
		put_sequence(&t, DICOM_TAG(0x0008, 0x1199), &other, false);
		put_uid(&t, DICOM_TAG(0x0008, 0x1195), "9.9");
		t.explicit_vr = true;
		put_head(&t, DICOM_TAG(0xfffe, 0xe00d), "--", 0);
		put_head(&t, DICOM_TAG(0xfffe, 0xe0dd), "--", 0);
		put_head(&t, DICOM_TAG(0x0008, 0x1199), "UN", length);
		put(&t, inside.bytes, inside.n);
		if (length == UNDEFINED)
			put_head(&t, DICOM_TAG(0xfffe, 0xe0dd), "--", 0);
		put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7"); /* the rest is in explicit VR again */
		ret = commit_report_parse(t.bytes, t.n, true, &r, &err);
		if (form == 3) {
			assert_int_equal(ret, -EBADMSG);
			assert_non_null(strstr(err.msg, "commitment report: "));
			assert_int_equal(r.n, 0);
			continue;
		}
		if (ret < 0)
			fail_msg("form %d: %s", form, err.msg);
		assert_string_equal(r.transaction, "2.25.7");
		assert_int_equal(r.n, 2);
		assert_string_equal(r.items[0].sop_instance, "1.2.3");
		assert_string_equal(r.items[1].sop_instance, "1.2.34");
	}
}

/* The report truncated at every byte: nothing is read beyond its end, and no additional items are returned. */
TEST(cut_anywhere)
{
	for (int form = 0; form < 4; form++) {
		struct text t;

		whole_report(&t, form & 1, form & 2);
		for (size_t n = 0; n < t.n; n++) {
			uint8_t *copy = malloc(n ? n : 1); /* the address sanitizer then detects reads beyond the end */
			struct commit_report r GOES(commit_report_clear) = {0};
			struct err err = {0};
			int ret;

			assert_non_null(copy);
			memcpy(copy, t.bytes, n);
			ret = commit_report_parse(copy, n, form & 1, &r, &err);
			assert_true(ret == 0 || ret == -EBADMSG);
			if (ret < 0)
				assert_true(err.msg[0] != '\0' && r.n == 0);
			else
				assert_true(r.n < 4 && r.transaction[0]);
			free(copy);
		}
	}
}

static int parse(const struct text *t, struct err *err)
{
	struct commit_report r;
	int ret = commit_report_parse(t->bytes, t->n, t->explicit_vr, &r, err);

	commit_report_clear(&r);
	return ret;
}

TEST(refused)
{
	struct text t = {0}, items = {0}, content = {0};
	struct err err = {0};

	assert_error(parse(&t, &err), &err, EBADMSG, "Transaction UID");

	put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7/../x");
	assert_int_equal(parse(&t, &err), -EBADMSG);

	t.n = 0;
	put_uid(&t, DICOM_TAG(0x0008, 0x1195), "1.2345678901234567890123456789012345678901234567890123456789012345");
	assert_int_equal(parse(&t, &err), -EBADMSG);

	t.n = 0; /* an item without an instance UID */
	put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7");
	put_uid(&content, DICOM_TAG(0x0008, 0x1150), "1.2");
	put_item(&items, &content, true);
	put_sequence(&t, DICOM_TAG(0x0008, 0x1199), &items, true);
	assert_error(parse(&t, &err), &err, EBADMSG, "(0008,1155)");

	t.n = 0; /* an element that is not an item in the sequence */
	put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7");
	put_sequence(&t, DICOM_TAG(0x0008, 0x1199), &content, true);
	assert_error(parse(&t, &err), &err, EBADMSG, "item");
}

/* A Failure Reason that is not one 16-bit value is not read: the object is reported without a reason. */
TEST(reason_of_another_length)
{
	static const uint8_t value[8] = {0x12, 0x01, 0x13, 0x02};

	for (uint32_t n = 0; n <= 6; n++) {
		struct text t = {0}, items = {0}, content = {0};
		struct commit_report r GOES(commit_report_clear) = {0};
		struct err err = {0};

		put_uid(&content, DICOM_TAG(0x0008, 0x1155), "1.2.3");
		put_head(&content, DICOM_TAG(0x0008, 0x1197), "US", n);
		put(&content, value, n);
		put_item(&items, &content, true);
		put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7");
		put_sequence(&t, DICOM_TAG(0x0008, 0x1198), &items, true);
		assert_int_equal(commit_report_parse(t.bytes, t.n, false, &r, &err), 0);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.items[0].failure, n == 2 ? 0x0112 : COMMIT_NO_REASON);
	}
}

/* UIDs have at most 64 characters. */
TEST(longest_uid)
{
	char uid[DICOM_UID_SIZE + 1] = "1.";

	for (size_t n = 63; n <= 65; n++) {
		struct text t = {0};
		struct err err = {0};

		memset(uid + 2, '3', n - 2);
		uid[n] = '\0';
		put_uid(&t, DICOM_TAG(0x0008, 0x1195), uid);
		assert_int_equal(parse(&t, &err), n <= 64 ? 0 : -EBADMSG);
	}
}

/* Other attributes are skipped, but sequences in them may only be nested to a limited depth. */
TEST(depth_is_limited)
{
	for (int depth = 1; depth < 12; depth++) {
		struct text t = {0};
		struct err err = {0};

		put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7");
		for (int i = 0; i < depth; i++) {
			put_head(&t, DICOM_TAG(0x0040, 0xa730), "SQ", UNDEFINED);
			put_head(&t, DICOM_TAG(0xfffe, 0xe000), "--", UNDEFINED);
		}
		for (int i = 0; i < depth; i++) {
			put_head(&t, DICOM_TAG(0xfffe, 0xe00d), "--", 0);
			put_head(&t, DICOM_TAG(0xfffe, 0xe0dd), "--", 0);
		}
		assert_int_equal(parse(&t, &err), depth <= 4 ? 0 : -EBADMSG); /* a sequence and its item are two levels */
	}
}

TEST(items_are_limited)
{
	for (size_t n = COMMIT_ITEMS_MAX; n <= COMMIT_ITEMS_MAX + 1; n++) {
		struct text t = {0}, items = {0};
		struct commit_report r GOES(commit_report_clear) = {0};
		struct err err = {0};
		uint8_t *all;

		item_of(&items, "1.2.3", 0, true);
		put_uid(&t, DICOM_TAG(0x0008, 0x1195), "2.25.7");
		put_head(&t, DICOM_TAG(0x0008, 0x1199), "SQ", (uint32_t)(n * items.n));
		all = malloc(t.n + n * items.n);
		assert_non_null(all);
		memcpy(all, t.bytes, t.n);
		for (size_t i = 0; i < n; i++)
			memcpy(all + t.n + i * items.n, items.bytes, items.n);
		if (n > COMMIT_ITEMS_MAX)
			assert_error(commit_report_parse(all, t.n + n * items.n, false, &r, &err), &err, EBADMSG, "16384");
		else
			assert_int_equal(commit_report_parse(all, t.n + n * items.n, false, &r, &err), 0);
		assert_int_equal(r.n, n > COMMIT_ITEMS_MAX ? 0 : n);
		free(all);
	}
}

TEST(reasons_of_failures)
{
	static const struct {
		uint16_t reason;
		const char *names;
	} rows[] = {{0x0110, "processing"},  {0x0112, "no such object"}, {0x0213, "resources"},	    {0x0122, "SOP class"},
		    {0x0119, "another SOP"}, {0x0131, "used before"},	 {0x0111, "does not name"}, {0, "does not name"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_non_null(strstr(commit_failure_text(rows[i].reason), rows[i].names));
}
