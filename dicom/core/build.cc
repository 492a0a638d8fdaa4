/* SPDX-License-Identifier: Apache-2.0 */
/* build.cc - write into a data set (the put, add and copy functions of dicom/core/dataset.h).
 *
 * The dictionary gives the VR. A value that the VR cannot hold is an error; it is never truncated. An element is built completely
 * before it replaces the old one, so that an error changes nothing. */
#include "dicom/core/dataset.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "dicom/core/internal.hh"
#include "dicom/core/number.hh"

using namespace tomonode;

constexpr size_t short_length = 65534; /* bytes of a value with a 16-bit length */

/* Return whether the data set's pixel values are signed. Elements with VR "US or SS" then have VR SS (PS3.5 A.1). */
static bool pixels_signed(struct dicom_item *item)
{
	DcmItem *root = dcm(item)->getRootItem();
	Uint16 representation = 0;

	if (!root)
		root = dcm(item);
	return root->findAndGetUint16(DCM_PixelRepresentation, representation).good() && representation == 1;
}

/* Determine the VR with which to put an element. */
static int vr_for(struct dicom_item *item, uint32_t tag, DcmEVR *ret_vr, struct err *err)
{
	DcmEVR vr = dictionary_vr(tag);

	if (!item)
		return err_set(err, EINVAL, "%s: no item to put it into", tag_name(tag).c_str());
	if (vr == EVR_UNKNOWN || vr == EVR_UN)
		return err_set(err, EINVAL, "%s: not in the dictionary, so its value representation is unknown",
			       tag_name(tag).c_str());
	if (tag == DICOM_TAG(0x7fe0, 0x0010))
		return err_set(err, EINVAL, "%s: pixel data are written frame by frame", tag_name(tag).c_str());
	if (vr == EVR_xs)
		vr = pixels_signed(item) ? EVR_SS : EVR_US;
	*ret_vr = DcmVR(vr).getValidEVR();
	return 0;
}

static bool has_short_length(DcmEVR vr)
{
	return !DcmVR(vr).usesExtendedLengthEncoding();
}

static int new_element(uint32_t tag, DcmEVR vr, std::unique_ptr<DcmElement> *ret_elem, struct err *err)
{
	DcmElement *elem = nullptr;
	DcmTag t(key_of(tag), DcmVR(vr));

	OFCondition cond = DcmItem::newDicomElementWithVR(elem, t);
	if (cond.bad())
		return err_set(err, EINVAL, "%s: %s", tag_name(tag).c_str(), cond.text());
	ret_elem->reset(elem);
	return 0;
}

static int insert_element(struct dicom_item *item, uint32_t tag, std::unique_ptr<DcmElement> elem, struct err *err)
{
	OFCondition cond = dcm(item)->insert(elem.get(), OFTrue);

	if (cond.bad())
		return err_set(err, EINVAL, "%s: %s", tag_name(tag).c_str(), cond.text());
	elem.release();
	return 0;
}

static int refuse_vr(uint32_t tag, DcmEVR vr, const char *what, struct err *err)
{
	return err_set(err, EINVAL, "%s: VR %s does not allow %s", tag_name(tag).c_str(), DcmVR(vr).getVRName(), what);
}

static int put_string(struct dicom_item *item, uint32_t tag, DcmEVR vr, std::string_view text, struct err *err)
{
	std::unique_ptr<DcmElement> elem;
	OFCondition cond;
	int r;

	if (vr == EVR_SQ || vr == EVR_OB || vr == EVR_OW || vr == EVR_UN)
		return refuse_vr(tag, vr, "text", err);
	if (has_short_length(vr) && text.size() > short_length)
		return err_set(err, EMSGSIZE, "%s: %zu bytes of text, but VR %s holds at most %zu", tag_name(tag).c_str(),
			       text.size(), DcmVR(vr).getVRName(), short_length);
	r = new_element(tag, vr, &elem, err);
	if (r < 0)
		return r;
	cond = elem->putString(text.data(), (Uint32)text.size());
	if (cond.bad())
		return err_set(err, EINVAL, "%s: \"%s\" is not a valid value of VR %s", tag_name(tag).c_str(),
			       shorten(text).c_str(), DcmVR(vr).getVRName());
	return insert_element(item, tag, std::move(elem), err);
}

/* Return true if each value of a text has at most so many characters of UTF-8. */
static bool has_room(std::string_view text, size_t most)
{
	size_t n = 0;

	for (char c : text) {
		n = c == '\\' ? 0 : n + ((c & 0xC0) != 0x80);
		if (n > most)
			return false;
	}
	return true;
}

/* Return a date and time without its offset from UTC, which DCMTK does not check (PS3.5 6.2: -1200 to +1400). */
static std::string_view without_offset(std::string_view text)
{
	size_t n = text.size();

	if (n < 9 || (text[n - 5] != '+' && text[n - 5] != '-') ||
	    text.substr(n - 4).find_first_not_of("0123456789") != std::string_view::npos || text.substr(n - 2) > "59" ||
	    text.substr(n - 4) > (text[n - 5] == '+' ? "1400" : "1200") || text.substr(n - 5) == "-0000")
		return text;
	return text.substr(0, n - 5);
}

static const char *text_allowed(uint32_t tag, std::string_view text)
{
	static const struct {
		DcmEVR vr;
		size_t most; /* characters of a value; 0: of a form that DCMTK checks */
		const char *words;
	} forms[] = {
		{EVR_DA, 0, "a date YYYYMMDD"},
		{EVR_TM, 0, "a time HHMMSS or HHMMSS.FFFFFF"},
		{EVR_DT, 0, "a date and time YYYYMMDDHHMMSS, also with an offset from UTC, such as +0200"},
		{EVR_AS, 0, "an age of three digits and D, W, M or Y, such as 060Y"},
		{EVR_CS, 0, "capital letters, digits, blanks and _, at most 16"},
		{EVR_DS, 0, "a number of at most 16 characters"},
		{EVR_IS, 0, "a whole number"},
		{EVR_UI, 0, "a UID: numbers and dots"},
		{EVR_SH, 16, "at most 16 characters"},
		{EVR_LO, 64, "at most 64 characters"},
	};
	DcmEVR vr = dictionary_vr(tag);
	std::unique_ptr<DcmElement> elem;

	for (const auto &form : forms) {
		if (form.vr != vr || text.empty())
			continue;
		if (vr == EVR_DT)
			text = without_offset(text);
		if (form.most > 0)
			return has_room(text, form.most) ? nullptr : form.words;
		if (new_element(tag, vr, &elem, nullptr) < 0 || elem->putString(text.data(), (Uint32)text.size()).bad() ||
		    elem->checkValue().bad())
			return form.words;
	}
	return nullptr;
}

static int put_doubles(struct dicom_item *item, uint32_t tag, const double *values, size_t n, struct err *err)
{
	std::unique_ptr<DcmElement> elem;
	OFCondition cond = EC_Normal;
	std::string text;
	DcmEVR vr = EVR_UNKNOWN;
	int r;

	r = vr_for(item, tag, &vr, err);
	if (r < 0)
		return r;
	if (vr != EVR_DS && vr != EVR_FD && vr != EVR_FL)
		return refuse_vr(tag, vr, "real number", err);
	for (size_t i = 0; i < n; i++) {
		if (!std::isfinite(values[i]) || (vr == EVR_FL && !std::isfinite((float)values[i])))
			return err_set(err, ERANGE, "%s: value %zu is %g, not a finite number of VR %s", tag_name(tag).c_str(),
				       i + 1, values[i], DcmVR(vr).getVRName());
		if (vr == EVR_DS)
			text += (i ? "\\" : "") + ds_format(values[i]);
	}
	if (vr == EVR_DS)
		return put_string(item, tag, vr, text, err);
	if (n > short_length / (vr == EVR_FD ? 8 : 4))
		return err_set(err, EMSGSIZE, "%s: %zu values, more than VR %s holds", tag_name(tag).c_str(), n,
			       DcmVR(vr).getVRName());
	r = new_element(tag, vr, &elem, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && cond.good(); i++)
		cond = vr == EVR_FD ? elem->putFloat64(values[i], (unsigned long)i)
				    : elem->putFloat32((Float32)values[i], (unsigned long)i);
	if (cond.bad())
		return err_set(err, EINVAL, "%s: %s", tag_name(tag).c_str(), cond.text());
	return insert_element(item, tag, std::move(elem), err);
}

namespace
{

/* The whole numbers that a VR can represent exactly. */
struct Range {
	DcmEVR vr = EVR_UNKNOWN;
	long low, high;
};

} // namespace

static int put_int(struct dicom_item *item, uint32_t tag, long value, struct err *err)
{
	static const Range ranges[] = {
		{EVR_IS, -2147483648L, 2147483647L},
		{EVR_US, 0, 65535},
		{EVR_SS, -32768, 32767},
		{EVR_UL, 0, 4294967295L},
		{EVR_SL, -2147483648L, 2147483647L},
		{EVR_DS, -999999999999999L, 9999999999999999L},
		{EVR_FD, -9007199254740992L, 9007199254740992L},
		{EVR_FL, -16777216, 16777216},
	};
	std::unique_ptr<DcmElement> elem;
	const Range *range = nullptr;
	OFCondition cond;
	DcmEVR vr = EVR_UNKNOWN;
	int r;

	r = vr_for(item, tag, &vr, err);
	if (r < 0)
		return r;
	for (const Range &x : ranges)
		if (x.vr == vr)
			range = &x;
	if (!range)
		return refuse_vr(tag, vr, "whole number", err);
	if (value < range->low || value > range->high)
		return err_set(err, ERANGE, "%s: %ld is outside %ld..%ld of VR %s", tag_name(tag).c_str(), value, range->low,
			       range->high, DcmVR(vr).getVRName());
	if (vr == EVR_IS || vr == EVR_DS)
		return put_string(item, tag, vr, std::to_string(value), err);
	r = new_element(tag, vr, &elem, err);
	if (r < 0)
		return r;
	switch (vr) {
	case EVR_US:
		cond = elem->putUint16((Uint16)value, 0);
		break;
	case EVR_SS:
		cond = elem->putSint16((Sint16)value, 0);
		break;
	case EVR_UL:
		cond = elem->putUint32((Uint32)value, 0);
		break;
	case EVR_SL:
		cond = elem->putSint32((Sint32)value, 0);
		break;
	case EVR_FL:
		cond = elem->putFloat32((Float32)value, 0);
		break;
	default:
		cond = elem->putFloat64((Float64)value, 0);
		break;
	}
	if (cond.bad())
		return err_set(err, EINVAL, "%s: %s", tag_name(tag).c_str(), cond.text());
	return insert_element(item, tag, std::move(elem), err);
}

static int put_uint32s(struct dicom_item *item, uint32_t tag, const uint32_t *values, size_t n, struct err *err)
{
	std::unique_ptr<DcmElement> elem;
	OFCondition cond = EC_Normal;
	DcmEVR vr = EVR_UNKNOWN;
	int r;

	r = vr_for(item, tag, &vr, err);
	if (r < 0)
		return r;
	if (vr != EVR_US && vr != EVR_UL && vr != EVR_AT)
		return refuse_vr(tag, vr, "list of unsigned numbers", err);
	if (n > short_length / (vr == EVR_US ? 2 : 4))
		return err_set(err, EMSGSIZE, "%s: %zu values, more than VR %s holds", tag_name(tag).c_str(), n,
			       DcmVR(vr).getVRName());
	r = new_element(tag, vr, &elem, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && cond.good(); i++) {
		if (vr == EVR_US && values[i] > 65535)
			return err_set(err, ERANGE, "%s: value %zu is %lu, above 65535", tag_name(tag).c_str(), i + 1,
				       (unsigned long)values[i]);
		cond = vr == EVR_US   ? elem->putUint16((Uint16)values[i], (unsigned long)i)
		       : vr == EVR_UL ? elem->putUint32(values[i], (unsigned long)i)
				      : elem->putTagVal(key_of(values[i]), (unsigned long)i);
	}
	if (cond.bad())
		return err_set(err, EINVAL, "%s: %s", tag_name(tag).c_str(), cond.text());
	return insert_element(item, tag, std::move(elem), err);
}

static int put_private(struct dicom_item *item, uint16_t group, const char *creator, uint8_t element, const char *vr_name,
		       const char *text, struct err *err)
{
	uint32_t block = (uint32_t)group << 16 | 0x0010, tag = (uint32_t)group << 16 | 0x1000 | element;
	DcmVR vr(vr_name);
	char existing[65];
	int r;

	if (!item || !(group & 1) || group < 9)
		return err_set(err, EINVAL, "group %04X cannot have private elements", group);
	if (!*creator || strlen(creator) > 64)
		return err_set(err, EINVAL, "%s: private creator \"%s\" must have 1 to 64 characters", tag_name(block).c_str(),
			       shorten(creator).c_str());
	if (!vr.isStandard())
		return err_set(err, EINVAL, "%s: \"%s\" is not a value representation", tag_name(tag).c_str(),
			       shorten(vr_name).c_str());
	r = dicom_get_text(item, block, existing, sizeof(existing), err);
	if (r < 0)
		return r;
	if (r > 0 && strcmp(existing, creator) != 0)
		return err_set(err, EEXIST, "%s: the block belongs to \"%s\"", tag_name(block).c_str(),
			       shorten(existing).c_str());
	if (r == 0) {
		r = put_string(item, block, EVR_LO, creator, err);
		if (r < 0)
			return r;
	}
	return put_string(item, tag, vr.getEVR(), text, err);
}

static int add_item(struct dicom_item *item, uint32_t sequence, struct dicom_item **ret_item, struct err *err)
{
	DcmItem *added = nullptr;
	OFCondition cond;

	if (!item || dictionary_vr(sequence) != EVR_SQ)
		return err_set(err, EINVAL, "%s is not a sequence, so no item can be added", tag_name(sequence).c_str());
	cond = dcm(item)->findOrCreateSequenceItem(DcmTag(key_of(sequence)), added, -2);
	if (cond.bad() || !added)
		return err_set(err, EINVAL, "%s: no item can be added: %s", tag_name(sequence).c_str(), cond.text());
	*ret_item = item_of(added);
	return 0;
}

static int copy_element(const struct dicom_item *from, uint32_t tag, struct dicom_item *to, struct err *err)
{
	DcmElement *source = find(from, tag);
	OFCondition cond;
	int r;

	if (!source)
		return 0;
	if (!to || tag == DICOM_TAG(0x7fe0, 0x0010))
		return err_set(err, EINVAL, "%s: pixel data are read and written frame by frame", tag_name(tag).c_str());
	cond = source->loadAllDataIntoMemory(); /* detect here, not while writing, a file that can no longer be read */
	if (cond.bad())
		return err_set(err, EIO, "%s: its value cannot be read: %s", tag_name(tag).c_str(), cond.text());
	std::unique_ptr<DcmElement> clone(static_cast<DcmElement *>(source->clone()));
	if (!clone)
		return err_set(err, ENOMEM, "%s: no memory for a copy", tag_name(tag).c_str());
	r = insert_element(to, tag, std::move(clone), err);
	return r < 0 ? r : 1;
}

int dicom_put_text(struct dicom_item *item, uint32_t tag, const char *text, struct err *err)
{
	return guarded(err, "dicom_put_text", [&] {
		DcmEVR vr = EVR_UNKNOWN;
		int r = vr_for(item, tag, &vr, err);

		return r < 0 ? r : put_string(item, tag, vr, text, err);
	});
}

const char *dicom_text_allowed(uint32_t tag, const char *text)
{
	const char *allowed = nullptr;

	guarded(nullptr, "dicom_text_allowed", [&] {
		allowed = text_allowed(tag, text);
		return 0;
	});
	return allowed;
}

int dicom_put_double(struct dicom_item *item, uint32_t tag, double value, struct err *err)
{
	return guarded(err, "dicom_put_double", [&] { return put_doubles(item, tag, &value, 1, err); });
}

int dicom_put_doubles(struct dicom_item *item, uint32_t tag, const double *values, size_t n, struct err *err)
{
	return guarded(err, "dicom_put_doubles", [&] { return put_doubles(item, tag, values, n, err); });
}

int dicom_put_int(struct dicom_item *item, uint32_t tag, long value, struct err *err)
{
	return guarded(err, "dicom_put_int", [&] { return put_int(item, tag, value, err); });
}

int dicom_put_uint32s(struct dicom_item *item, uint32_t tag, const uint32_t *values, size_t n, struct err *err)
{
	return guarded(err, "dicom_put_uint32s", [&] { return put_uint32s(item, tag, values, n, err); });
}

int dicom_put_private(struct dicom_item *item, uint16_t group, const char *creator, uint8_t element, const char *vr,
		      const char *text, struct err *err)
{
	return guarded(err, "dicom_put_private", [&] { return put_private(item, group, creator, element, vr, text, err); });
}

int dicom_put_empty(struct dicom_item *item, uint32_t tag, struct err *err)
{
	return guarded(err, "dicom_put_empty", [&] {
		std::unique_ptr<DcmElement> elem;
		DcmEVR vr = EVR_UNKNOWN;
		int r = vr_for(item, tag, &vr, err);

		if (r < 0)
			return r;
		r = new_element(tag, vr, &elem, err);
		return r < 0 ? r : insert_element(item, tag, std::move(elem), err);
	});
}

struct dicom_item *dicom_add_item(struct dicom_item *item, uint32_t sequence, struct err *err)
{
	struct dicom_item *added = nullptr;

	guarded(err, "dicom_add_item", [&] { return add_item(item, sequence, &added, err); });
	return added;
}

int dicom_add_code(struct dicom_item *item, uint32_t sequence, const char *value, const char *scheme, const char *meaning,
		   struct err *err)
{
	/* Code Value has VR SH; longer codes have their own attribute (PS3.3 8.1) */
	uint32_t value_tag = strlen(value) > 16 ? DICOM_TAG(0x0008, 0x0119) : DICOM_TAG(0x0008, 0x0100);
	struct dicom_item *code = dicom_add_item(item, sequence, err);
	int r;

	if (!code)
		return err ? -err->code : -EINVAL;
	r = dicom_put_text(code, value_tag, value, err);
	if (r < 0)
		return r;
	r = dicom_put_text(code, DICOM_TAG(0x0008, 0x0102), scheme, err);
	if (r < 0)
		return r;
	return dicom_put_text(code, DICOM_TAG(0x0008, 0x0104), meaning, err);
}

int dicom_copy(const struct dicom_item *from, uint32_t tag, struct dicom_item *to, struct err *err)
{
	return guarded(err, "dicom_copy", [&] { return copy_element(from, tag, to, err); });
}
