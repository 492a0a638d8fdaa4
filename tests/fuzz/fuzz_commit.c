/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the data set of a storage commitment report with arbitrary bytes: parsing returns an error with a message, or a report
 * that stays the same when it is written in either encoding, with either kind of length, and parsed again.
 *
 * The input: a byte (odd: explicit VR), then the data set. Run: fuzz_commit -max_len=8192 WORK_FOLDER tests/fuzz/corpus/commit */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/network/commit.h"
#include "tests/fuzz/fuzz.h"

#define UNDEFINED 0xffffffffu
/* Upper bound of the bytes of one item: headers and ends of sequence and item, UID and reason. */
#define ITEM_ROOM 256

static void is_uid(const char *uid, size_t size)
{
	must(memchr(uid, '\0', size) != NULL, "a UID without its end");
	must(uid[0] != '\0' && uid[strspn(uid, "0123456789.")] == '\0', "a text that is not a UID");
}

/* ---- a report written out ---- */

struct text {
	uint8_t *bytes;
	size_t n;
	bool explicit_vr, defined;
};

static void put(struct text *t, const void *bytes, size_t n)
{
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

static void put16(struct text *t, uint32_t value)
{
	const uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8)};

	put(t, bytes, sizeof(bytes));
}

static void put32(struct text *t, uint32_t value)
{
	put16(t, value & 0xffff);
	put16(t, value >> 16);
}

static void put_head(struct text *t, uint32_t tag, const char *vr, uint32_t length)
{
	put16(t, tag >> 16);
	put16(t, tag & 0xffff);
	if (!t->explicit_vr || tag >> 16 == 0xfffe) {
		put32(t, length);
		return;
	}
	put(t, vr, 2);
	put16(t, strcmp(vr, "SQ") ? length : 0);
	if (!strcmp(vr, "SQ"))
		put32(t, length);
}

static void put_uid(struct text *t, uint32_t tag, const char *uid)
{
	size_t n = strlen(uid);

	put_head(t, tag, "UI", (uint32_t)(n + (n & 1)));
	put(t, uid, n + (n & 1)); /* includes the terminating zero if the length is odd */
}

/* Write a sequence of one item. */
static void put_item(struct text *t, const struct commit_item *item)
{
	uint8_t room[ITEM_ROOM];
	struct text in = {.bytes = room, .explicit_vr = t->explicit_vr};

	put_uid(&in, DICOM_TAG(0x0008, 0x1155), item->sop_instance);
	if (item->failure) {
		put_head(&in, DICOM_TAG(0x0008, 0x1197), "US", 2);
		put16(&in, item->failure);
	}
	put_head(t, item->failure ? DICOM_TAG(0x0008, 0x1198) : DICOM_TAG(0x0008, 0x1199), "SQ",
		 t->defined ? (uint32_t)in.n + 8 : UNDEFINED);
	put_head(t, DICOM_TAG(0xfffe, 0xe000), "", t->defined ? (uint32_t)in.n : UNDEFINED);
	put(t, in.bytes, in.n);
	if (!t->defined) {
		put_head(t, DICOM_TAG(0xfffe, 0xe00d), "", 0);
		put_head(t, DICOM_TAG(0xfffe, 0xe0dd), "", 0);
	}
}

static void says_the_same(const struct commit_report *report, bool explicit_vr, bool defined)
{
	struct text t = {.bytes = malloc((report->n + 1) * ITEM_ROOM), .explicit_vr = explicit_vr, .defined = defined};
	struct commit_report again;
	struct err err = {0};

	must(t.bytes != NULL, "no memory");
	for (size_t i = 0; i < report->n; i++)
		put_item(&t, &report->items[i]);
	put_uid(&t, DICOM_TAG(0x0008, 0x1195), report->transaction);
	must(commit_report_parse(t.bytes, t.n, explicit_vr, &again, &err) == 0, "a report that was written is refused");
	must(again.n == report->n && !strcmp(again.transaction, report->transaction), "another number of items or transaction");
	for (size_t i = 0; i < report->n; i++)
		must(!strcmp(again.items[i].sop_instance, report->items[i].sop_instance) &&
			     again.items[i].failure == report->items[i].failure,
		     "another item");
	commit_report_clear(&again);
	free(t.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct commit_report report;
	struct err err = {0};
	int rc;

	if (size < 1)
		return 0;
	rc = commit_report_parse(data + 1, size - 1, data[0] & 1, &report, &err);
	if (rc < 0) {
		must((rc == -EBADMSG || rc == -ENOMEM) && err.code == -rc && err.msg[0], "refused without a reason");
		must(report.n == 0 && report.items == NULL && report.transaction[0] == '\0',
		     "a refused report that is not empty");
	} else {
		must(rc == 0 && report.n <= COMMIT_ITEMS_MAX && report.n <= size / 16,
		     "an impossible number of items"); /* the heads of an item and its UID */
		is_uid(report.transaction, sizeof(report.transaction));
		for (size_t i = 0; i < report.n; i++)
			is_uid(report.items[i].sop_instance, sizeof(report.items[i].sop_instance));
		for (int form = 0; form < 4; form++)
			says_the_same(&report, form & 1, form & 2);
	}
	commit_report_clear(&report);
	return 0;
}
