/* SPDX-License-Identifier: Apache-2.0 */
/* commit_parse.cc - parse the data set of a storage commitment report.
 *
 * Only three attributes are used: Transaction UID (0008,1195), Referenced SOP Sequence (0008,1199) and Failed SOP Sequence
 * (0008,1198). The report comes from the network and is parsed in the process of the association, so DCMTK's parser is not used.
 * Every length is checked against the number of bytes that remain, sequences may be 8 deep, and only items need memory. A system
 * that forwarded the report without knowing the VR of a sequence has stored VR UN: its items are then in Implicit VR Little
 * Endian, also if the rest is explicit (PS3.5 6.2.2, CP-246). */
#include "dicom/core/element.hh"
#include "dicom/network/commit.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "dicom/network/association.hh"

using namespace tomonode;

constexpr int depth_max = 8;
constexpr uint32_t tag_transaction = DICOM_TAG(0x0008, 0x1195);
constexpr uint32_t tag_referenced = DICOM_TAG(0x0008, 0x1199);
constexpr uint32_t tag_failed = DICOM_TAG(0x0008, 0x1198);
constexpr uint32_t tag_class = DICOM_TAG(0x0008, 0x1150);
constexpr uint32_t tag_instance = DICOM_TAG(0x0008, 0x1155);
constexpr uint32_t tag_reason = DICOM_TAG(0x0008, 0x1197);

namespace
{

struct Reader {
	const uint8_t *p, *end;
	bool explicit_vr;
};

struct Element : ElementHeader {
	const uint8_t *value; /* length bytes, unless the length is undefined */
	bool explicit_inside; /* the elements in its items are in explicit VR */
};

} // namespace

/* Read the header of the next element, and skip its value if the length is defined. Return 1, 0: end of the bytes, or
 * -EBADMSG. */
static int next_element(Reader *r, Element *e, struct err *err)
{
	size_t left = (size_t)(r->end - r->p);

	if (left == 0)
		return 0;
	if (!element_header(r->p, left, r->explicit_vr, false, e))
		return err_set(err, EBADMSG, "commitment report: it ends within the header of an element");
	e->explicit_inside = r->explicit_vr && strcmp(e->vr, "UN") != 0;
	e->value = r->p + e->size;
	if (e->length != undefined_length && e->length > left - e->size)
		return err_set(err, EBADMSG, "commitment report: (%04x,%04x) has length %u, but %zu bytes remain", e->tag >> 16,
			       e->tag & 0xffff, e->length, left - e->size);
	r->p += e->size + (e->length == undefined_length ? 0 : e->length);
	return 1;
}

/* Skip a value of undefined length; `what` is its header. A sequence consists of items up to its delimiter, an item of elements
 * up to its delimiter. */
static int skip_undefined(Reader *r, const Element *what, int depth, struct err *err)
{
	uint32_t delimiter = what->tag == tag_item ? tag_item_end : tag_sequence_end;
	Reader inner = {r->p, r->end, what->explicit_inside};
	Element e = {};
	int got;

	if (depth > depth_max)
		return err_set(err, EBADMSG, "commitment report: sequences more than %d deep", depth_max);
	while ((got = next_element(&inner, &e, err)) > 0) {
		if (e.tag == delimiter) {
			r->p = inner.p;
			return 0;
		}
		if (e.length == undefined_length)
			got = skip_undefined(&inner, &e, depth + 1, err);
		if (got < 0)
			return got;
	}
	return got < 0 ? got : err_set(err, EBADMSG, "commitment report: a sequence without an end");
}

/* Get a value without its padding; EBADMSG: it is not a UID. */
static int get_uid(const Element *e, char ret_uid[DICOM_UID_SIZE], struct err *err)
{
	size_t n = e->length;

	while (n > 0 && n <= DICOM_UID_SIZE && (e->value[n - 1] == '\0' || e->value[n - 1] == ' '))
		n--;
	if (n >= DICOM_UID_SIZE)
		return err_set(err, EBADMSG, "commitment report: (%04x,%04x) of %u bytes is not a UID", e->tag >> 16,
			       e->tag & 0xffff, e->length);
	memcpy(ret_uid, e->value, n);
	ret_uid[n] = '\0';
	if (strlen(ret_uid) != n || !association_uid_ok(ret_uid))
		return err_set(err, EBADMSG, "commitment report: (%04x,%04x) is not a UID", e->tag >> 16, e->tag & 0xffff);
	return 0;
}

static int read_item(Reader *r, bool delimited, bool failed, struct commit_item *ret_item, struct err *err)
{
	Element e = {};
	int got;

	memset(ret_item, 0, sizeof(*ret_item));
	ret_item->failure = failed ? COMMIT_NO_REASON : 0;
	while ((got = next_element(r, &e, err)) > 0) {
		if (delimited && e.tag == tag_item_end)
			break;
		if (e.length == undefined_length)
			got = skip_undefined(r, &e, 1, err);
		else if (e.tag == tag_instance)
			got = get_uid(&e, ret_item->sop_instance, err);
		else if (e.tag == tag_class && get_uid(&e, ret_item->sop_class, nullptr) < 0)
			ret_item->sop_class[0] = '\0';
		else if (failed && e.tag == tag_reason && e.length == 2 && le16(e.value) != 0)
			ret_item->failure = (uint16_t)le16(e.value);
		if (got < 0)
			return got;
	}
	if (got == 0 && delimited)
		return err_set(err, EBADMSG, "commitment report: an item without an end");
	if (got >= 0 && !ret_item->sop_instance[0])
		return err_set(err, EBADMSG, "commitment report: an item without Referenced SOP Instance UID (0008,1155)");
	return got < 0 ? got : 0;
}

static int add_item(struct commit_report *report, const struct commit_item *item, struct err *err)
{
	size_t n = report->n;
	struct commit_item *items;

	if (n == COMMIT_ITEMS_MAX)
		return err_set(err, EBADMSG, "commitment report: more than %d items", COMMIT_ITEMS_MAX);
	if ((n & (n - 1)) == 0) { /* the array is full: its size is always a power of two */
		items = static_cast<struct commit_item *>(realloc(report->items, (n ? 2 * n : 1) * sizeof(items[0])));
		if (!items)
			return err_set(err, ENOMEM, "commitment report: no memory");
		report->items = items;
	}
	report->items[report->n++] = *item;
	return 0;
}

/* Return a reader of the element's value. If its length is undefined, the reader ends with the enclosing element. */
static Reader value_reader(const Reader *r, const Element *e)
{
	return (Reader){e->value, e->length == undefined_length ? r->end : e->value + e->length, e->explicit_inside};
}

static int read_sequence(Reader *r, bool delimited, bool failed, struct commit_report *report, struct err *err)
{
	Element e = {};
	int got;

	while ((got = next_element(r, &e, err)) > 0) {
		Reader inner = value_reader(r, &e);
		struct commit_item item;

		if (delimited && e.tag == tag_sequence_end)
			return 0;
		if (e.tag != tag_item)
			return err_set(err, EBADMSG, "commitment report: (%04x,%04x) where an item is expected", e.tag >> 16,
				       e.tag & 0xffff);
		got = read_item(&inner, e.length == undefined_length, failed, &item, err);
		if (got == 0)
			got = add_item(report, &item, err);
		if (got < 0)
			return got;
		r->p = inner.p;
	}
	return got == 0 && delimited ? err_set(err, EBADMSG, "commitment report: a sequence without an end") : got;
}

static int read_report(Reader *r, struct commit_report *report, struct err *err)
{
	Element e = {};
	int got;

	while ((got = next_element(r, &e, err)) > 0) {
		bool sequence = e.tag == tag_referenced || e.tag == tag_failed;
		Reader inner = value_reader(r, &e);

		if (sequence)
			got = read_sequence(&inner, e.length == undefined_length, e.tag == tag_failed, report, err);
		else if (e.length == undefined_length)
			got = skip_undefined(r, &e, 1, err);
		else if (e.tag == tag_transaction)
			got = get_uid(&e, report->transaction, err);
		if (got < 0)
			return got;
		if (sequence)
			r->p = inner.p;
	}
	if (got == 0 && !report->transaction[0])
		return err_set(err, EBADMSG, "commitment report: no Transaction UID (0008,1195)");
	return got;
}

int commit_report_parse(const void *bytes, size_t n, bool explicit_vr, struct commit_report *ret_report, struct err *err)
{
	struct commit_report report = {"", nullptr, 0};
	Reader r = {static_cast<const uint8_t *>(bytes), static_cast<const uint8_t *>(bytes) + n, explicit_vr};
	int ret = read_report(&r, &report, err);

	if (ret < 0)
		commit_report_clear(&report);
	*ret_report = report;
	return ret;
}

void commit_report_clear(struct commit_report *report)
{
	free(report->items);
	memset(report, 0, sizeof(*report));
}

const char *commit_failure_text(uint16_t failure)
{
	switch (failure) {
	case 0x0110:
		return "processing failure";
	case 0x0112:
		return "the peer has no such object";
	case 0x0213:
		return "the peer is out of resources";
	case 0x0122:
		return "the peer does not support the SOP class";
	case COMMIT_OTHER_CLASS:
		return "the peer has the object with another SOP class";
	case 0x0131:
		return "the Transaction UID was used before";
	default:
		return "a reason that the standard does not name";
	}
}
