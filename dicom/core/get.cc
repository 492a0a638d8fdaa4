/* SPDX-License-Identifier: Apache-2.0 */
/* get.cc - read values from a data set (the getters of dicom/core/dataset.h).
 *
 * Text is returned as stored. A number is the stored binary value, or the whole text of one value is parsed. A value of VR UN is
 * read with the VR that the dictionary has for its tag (a system that did not know the tag has stored it as implicit little
 * endian bytes); if the dictionary does not have the tag, as text. A value of undefined length, a sequence and binary data have
 * neither text nor numbers. A number of an attribute that has one value according to the dictionary is not read if there are
 * more. */
#include "dicom/core/dataset.h"

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "dicom/core/internal.hh"
#include "dicom/core/number.hh"

using namespace tomonode;

namespace tomonode
{

DcmElement *find(const struct dicom_item *item, uint32_t tag)
{
	DcmElement *elem = nullptr;

	if (!item || dcm(item)->findAndGetElement(key_of(tag), elem, OFFalse).bad())
		return nullptr;
	return elem;
}

DcmEVR dictionary_vr(uint32_t tag)
{
	return tag >> 16 & 1 ? EVR_UNKNOWN : DcmTag(key_of(tag)).getEVR();
}

} // namespace tomonode

/* Return the VR with which to read an element. */
static DcmEVR vr_of(DcmElement *elem, uint32_t tag)
{
	DcmEVR vr = elem->getTag().getVR().getValidEVR(), known;

	if (elem->ident() == EVR_UN || elem->ident() == EVR_UNKNOWN || vr == EVR_UN) {
		known = dictionary_vr(tag);
		vr = known == EVR_UNKNOWN ? EVR_UN : DcmVR(known).getValidEVR();
	} else if (elem->ident() != EVR_PixelData) {
		vr = DcmVR(elem->ident()).getValidEVR();
	}
	return vr;
}

static bool is_text(DcmEVR vr)
{
	switch (vr) {
	case EVR_AE:
	case EVR_AS:
	case EVR_CS:
	case EVR_DA:
	case EVR_DS:
	case EVR_DT:
	case EVR_IS:
	case EVR_LO:
	case EVR_LT:
	case EVR_PN:
	case EVR_SH:
	case EVR_ST:
	case EVR_TM:
	case EVR_UC:
	case EVR_UI:
	case EVR_UR:
	case EVR_UT:
	case EVR_UN:
		return true;
	default:
		return false;
	}
}

/* Is it a VR of free text: leading spaces are significant and a backslash is an ordinary character (PS3.5 6.2)? */
static bool is_free_text(DcmEVR vr)
{
	return vr == EVR_ST || vr == EVR_LT || vr == EVR_UT || vr == EVR_UR;
}

/* Return the number of bytes of one binary number of this VR; 0: a VR without binary numbers. */
static size_t number_size(DcmEVR vr)
{
	switch (vr) {
	case EVR_US:
	case EVR_SS:
		return 2;
	case EVR_UL:
	case EVR_SL:
	case EVR_FL:
		return 4;
	case EVR_FD:
	case EVR_SV:
	case EVR_UV:
		return 8;
	default:
		return 0;
	}
}

static int refuse_vr(DcmElement *elem, uint32_t tag, struct err *err)
{
	return err_set(err, EBADMSG, "%s: its VR (data type) is %s, which DICOM does not allow for this attribute",
		       tag_name(tag).c_str(), DcmVR(elem->ident()).getVRName());
}

/* Get the stored bytes of a text or of a UN value. Return 1, 0 (empty) or an error. */
static int bytes_of(DcmElement *elem, uint32_t tag, std::string_view *ret_bytes, struct err *err)
{
	OFCondition cond = EC_Normal;
	Uint32 length = 0;
	char *text = nullptr;
	Uint8 *bytes = nullptr;

	if (elem->getLengthField() == 0)
		return 0;
	if (elem->ident() == EVR_UN || elem->ident() == EVR_UNKNOWN) {
		cond = elem->getUint8Array(bytes);
		length = elem->getLengthField();
		text = reinterpret_cast<char *>(bytes);
	} else {
		cond = elem->getString(text, length);
	}
	if (cond.bad())
		return err_set(err, EIO, "%s: its %lu bytes cannot be read: %s", tag_name(tag).c_str(),
			       (unsigned long)elem->getLengthField(), cond.text());
	if (!text || length == 0)
		return 0;
	*ret_bytes = std::string_view(text, length);
	return 1;
}

/* Get the text without its padding. Return 1, 0 (nothing remains) or an error. */
static int text_of(DcmElement *elem, uint32_t tag, DcmEVR vr, std::string_view *ret_text, struct err *err)
{
	int r = bytes_of(elem, tag, ret_text, err);

	if (r <= 0)
		return r;
	*ret_text = trim(*ret_text, !is_free_text(vr));
	if (ret_text->find('\0') != std::string_view::npos)
		return err_set(err, EBADMSG, "%s: its %zu bytes of text contain a NUL", tag_name(tag).c_str(), ret_text->size());
	return !ret_text->empty();
}

/* Replace *text by its component number `index` (between backslashes). False: absent or empty. */
static bool component_of(std::string_view *text, unsigned index)
{
	size_t stop;

	for (; index > 0; index--) {
		stop = text->find('\\');
		if (stop == std::string_view::npos)
			return false;
		text->remove_prefix(stop + 1);
	}
	*text = trim(text->substr(0, text->find('\\')), true);
	return !text->empty();
}

namespace
{

/* A number as stored: integers exactly, others as double. */
struct Number {
	bool whole = false, is_unsigned = false;
	int64_t i = 0;
	uint64_t u = 0;
	double d = 0;
	std::string text; /* as stored, for the error message */
};

} // namespace

static void set_int(Number *n, int64_t v)
{
	n->whole = true;
	n->i = v;
	n->d = (double)v;
}

static void set_uint(Number *n, uint64_t v)
{
	n->whole = n->is_unsigned = true;
	n->u = v;
	n->d = (double)v;
}

static void set_double(Number *n, double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", v);
	n->d = v;
	n->text = text;
}

/* Decode the little endian bytes of a UN value. */
static void number_from_bytes(const unsigned char *p, DcmEVR vr, Number *ret_n)
{
	size_t size = number_size(vr);
	uint64_t v = 0;

	for (size_t k = size; k-- > 0;)
		v = v << 8 | p[k];
	if (vr == EVR_FD) {
		double d;

		memcpy(&d, &v, sizeof(d));
		set_double(ret_n, d);
	} else if (vr == EVR_FL) {
		uint32_t bits = (uint32_t)v;
		float f;

		memcpy(&f, &bits, sizeof(f));
		set_double(ret_n, (double)f);
	} else if (vr == EVR_SS) {
		set_int(ret_n, (int16_t)v);
	} else if (vr == EVR_SL) {
		set_int(ret_n, (int32_t)v);
	} else if (vr == EVR_SV) {
		set_int(ret_n, (int64_t)v);
	} else {
		set_uint(ret_n, v);
	}
}

/* Is this element, which DCMTK has read as US, signed? In implicit VR the VR comes from the dictionary; where that has "US or
 * SS", PixelRepresentation decides (PS3.5 A.1). */
static bool is_implicit_signed(DcmElement *elem, uint32_t tag)
{
	DcmItem *root = elem->getRootItem();
	Uint16 representation = 0;

	if (dictionary_vr(tag) != EVR_xs || !root || root->ident() != EVR_dataset ||
	    static_cast<DcmDataset *>(root)->getOriginalXfer() != EXS_LittleEndianImplicit)
		return false;
	return root->findAndGetUint16(DCM_PixelRepresentation, representation).good() && representation == 1;
}

/* The value that one of the get...() of an element gives, passed to set(). */
template <class T, class Set>
static OFCondition get_with(DcmElement *elem, OFCondition (DcmElement::*get)(T &, unsigned long), unsigned index, Set set)
{
	T value = 0;
	OFCondition cond = (elem->*get)(value, index);

	if (cond.good())
		set(value);
	return cond;
}

static OFCondition number_from_element(DcmElement *elem, uint32_t tag, unsigned index, Number *ret_n)
{
	auto as_int = [ret_n](auto value) { set_int(ret_n, value); };
	auto as_uint = [ret_n](auto value) { set_uint(ret_n, value); };
	auto as_double = [ret_n](auto value) { set_double(ret_n, value); };
	auto as_signed = [ret_n](Uint16 value) { set_int(ret_n, (int16_t)value); };

	switch (elem->ident()) {
	case EVR_US:
		return is_implicit_signed(elem, tag) ? get_with(elem, &DcmElement::getUint16, index, as_signed)
						     : get_with(elem, &DcmElement::getUint16, index, as_uint);
	case EVR_SS:
		return get_with(elem, &DcmElement::getSint16, index, as_int);
	case EVR_UL:
		return get_with(elem, &DcmElement::getUint32, index, as_uint);
	case EVR_SL:
		return get_with(elem, &DcmElement::getSint32, index, as_int);
	case EVR_UV:
		return get_with(elem, &DcmElement::getUint64, index, as_uint);
	case EVR_SV:
		return get_with(elem, &DcmElement::getSint64, index, as_int);
	case EVR_FL:
		return get_with(elem, &DcmElement::getFloat32, index, as_double);
	default:
		return get_with(elem, &DcmElement::getFloat64, index, as_double);
	}
}

/* Does the dictionary allow one value only? */
static bool is_single_valued(uint32_t tag)
{
	const DcmDictEntry *entry = nullptr;
	bool single = false;

	if (tag >> 16 & 1)
		return false;
	entry = dcmDataDict.rdlock().findEntry(key_of(tag), nullptr);
	single = entry && entry->getVMMax() == 1;
	dcmDataDict.rdunlock();
	return single;
}

/* Refuse a second value of an attribute that has one value (PS3.6): which of them is meant is unknown. text: all values. */
static int refuse_second(uint32_t tag, std::string_view text, bool has_second, struct err *err)
{
	if (!has_second || !is_single_valued(tag))
		return 0;
	return err_set(err, EBADMSG, "%s: more than one value%s%s%s, but the attribute has one", tag_name(tag).c_str(),
		       text.empty() ? "" : " (", shorten(text).c_str(), text.empty() ? "" : ")");
}

/* Get the finite number at `index`. Return 1, 0 (absent) or an error. */
static int number_of(const struct dicom_item *item, uint32_t tag, unsigned index, Number *ret_n, struct err *err)
{
	DcmElement *elem = find(item, tag);
	std::string_view bytes;
	DcmEVR vr;
	int r;

	if (!elem)
		return 0;
	vr = vr_of(elem, tag);
	if (is_text(vr)) {
		r = text_of(elem, tag, vr, &bytes, err);
		if (r <= 0)
			return r;
		std::string_view all = bytes, second = bytes;
		r = refuse_second(tag, all, component_of(&second, 1), err);
		if (r < 0)
			return r;
		if (!component_of(&bytes, index))
			return 0;
		if (!number_parse(bytes, &ret_n->d))
			return err_set(err, EBADMSG, "%s: \"%s\" is not a number", tag_name(tag).c_str(), shorten(bytes).c_str());
		ret_n->text = shorten(bytes);
		return 1;
	}
	size_t size = number_size(vr);
	if (size == 0)
		return refuse_vr(elem, tag, err);
	r = refuse_second(tag, {}, elem->getLengthField() / size > 1, err);
	if (r < 0)
		return r;
	if (elem->ident() == EVR_UN || elem->ident() == EVR_UNKNOWN) {
		r = bytes_of(elem, tag, &bytes, err);
		if (r <= 0)
			return r;
		if (index >= bytes.size() / size)
			return 0;
		number_from_bytes(reinterpret_cast<const unsigned char *>(bytes.data()) + index * size, vr, ret_n);
	} else {
		if (index >= elem->getLengthField() / size)
			return 0;
		OFCondition cond = number_from_element(elem, tag, index, ret_n);
		if (cond.bad())
			return err_set(err, EIO, "%s: value %u cannot be read: %s", tag_name(tag).c_str(), index, cond.text());
	}
	if (!std::isfinite(ret_n->d))
		return err_set(err, EBADMSG, "%s: \"%s\" is not a finite number", tag_name(tag).c_str(), ret_n->text.c_str());
	return 1;
}

/* Format binary values as text, separated by backslashes. */
static int text_of_numbers(DcmElement *elem, uint32_t tag, std::string *ret_text, struct err *err)
{
	OFString text;
	OFCondition cond = elem->getOFStringArray(text);

	if (cond.bad())
		return err_set(err, EIO, "%s: its %lu bytes cannot be read: %s", tag_name(tag).c_str(),
			       (unsigned long)elem->getLengthField(), cond.text());
	ret_text->assign(text.data(), text.size());
	return !ret_text->empty();
}

/* Copy the text to the caller. Return 1, or -EMSGSIZE. */
static int copy_text(std::string_view text, uint32_t tag, char *ret_text, size_t size, struct err *err)
{
	if (text.size() >= size)
		return err_set(err, EMSGSIZE, "%s: \"%s\" of %zu bytes, more than %zu", tag_name(tag).c_str(),
			       shorten(text).c_str(), text.size(), size ? size - 1 : 0);
	memcpy(ret_text, text.data(), text.size());
	ret_text[text.size()] = '\0';
	return 1;
}

/* Get the value number `index` as text; index < 0: the whole text. */
static int get_text(const struct dicom_item *item, uint32_t tag, long index, char *ret_text, size_t size, struct err *err)
{
	DcmElement *elem = find(item, tag);
	std::string_view text;
	std::string numbers;
	DcmEVR vr;
	int r;

	if (!elem)
		return 0;
	vr = vr_of(elem, tag);
	if (is_text(vr)) {
		r = text_of(elem, tag, vr, &text, err);
	} else if ((number_size(vr) || vr == EVR_AT) && elem->ident() != EVR_UN && elem->ident() != EVR_UNKNOWN) {
		r = text_of_numbers(elem, tag, &numbers, err);
		text = numbers;
	} else {
		return elem->getLength() == 0 ? 0 : refuse_vr(elem, tag, err);
	}
	if (r <= 0)
		return r;
	if (index >= 0 && !is_free_text(vr) && !component_of(&text, (unsigned)index))
		return 0;
	if (index > 0 && is_free_text(vr))
		return 0;
	return copy_text(text, tag, ret_text, size, err);
}

bool dicom_tag_named(const char *keyword, uint32_t *ret_tag)
{
	return guarded(nullptr, "dicom_tag_named", [&] {
		       DcmTag t;

		       if (strchr(keyword, ',') || DcmTag::findTagFromName(keyword, t).bad())
			       return 0;
		       *ret_tag = (uint32_t)t.getGroup() << 16 | t.getElement();
		       return 1;
	       }) == 1;
}

bool dicom_has(const struct dicom_item *item, uint32_t tag)
{
	return guarded(nullptr, "dicom_has", [&] { return find(item, tag) ? 1 : 0; }) == 1;
}

int dicom_get_text(const struct dicom_item *item, uint32_t tag, char *ret_text, size_t size, struct err *err)
{
	if (size > 0)
		ret_text[0] = '\0';
	return guarded(err, "dicom_get_text", [&] { return get_text(item, tag, -1, ret_text, size, err); });
}

int dicom_get_text_at(const struct dicom_item *item, uint32_t tag, unsigned index, char *ret_text, size_t size, struct err *err)
{
	if (size > 0)
		ret_text[0] = '\0';
	return guarded(err, "dicom_get_text_at", [&] { return get_text(item, tag, (long)index, ret_text, size, err); });
}

int dicom_get_double(const struct dicom_item *item, uint32_t tag, unsigned index, double *ret_value, struct err *err)
{
	return guarded(err, "dicom_get_double", [&] {
		Number n;
		int r = number_of(item, tag, index, &n, err);

		if (r > 0)
			*ret_value = n.d;
		return r;
	});
}

int dicom_get_int(const struct dicom_item *item, uint32_t tag, unsigned index, long *ret_value, struct err *err)
{
	return guarded(err, "dicom_get_int", [&] {
		constexpr double exact = 9007199254740992.0; /* 2^53: above it a double cannot represent every integer */
		Number n;
		int r = number_of(item, tag, index, &n, err);

		if (r <= 0)
			return r;
		if (n.whole && n.is_unsigned && n.u > (uint64_t)LONG_MAX)
			return err_set(err, ERANGE, "%s: %llu is too large", tag_name(tag).c_str(), (unsigned long long)n.u);
		if (!n.whole && (std::floor(n.d) != n.d || std::fabs(n.d) > exact))
			return err_set(err, EBADMSG, "%s: \"%s\" is not a whole number", tag_name(tag).c_str(), n.text.c_str());
		*ret_value = !n.whole ? (long)n.d : n.is_unsigned ? (long)n.u : (long)n.i;
		return 1;
	});
}

static int words_of(DcmElement *elem, uint32_t tag, uint16_t *ret_words, size_t max, size_t *ret_n, struct err *err)
{
	size_t n = elem->getLengthField() / 2;
	OFCondition cond = EC_Normal;
	Uint16 *words = nullptr;
	Uint8 *bytes = nullptr;
	Sint16 *numbers = nullptr;

	switch (elem->ident()) {
	case EVR_US:
	case EVR_OW:
	case EVR_lt:
		cond = elem->getUint16Array(words);
		break;
	case EVR_SS:
		cond = elem->getSint16Array(numbers);
		words = reinterpret_cast<Uint16 *>(numbers);
		break;
	case EVR_OB:
	case EVR_UN:
	case EVR_UNKNOWN:
		cond = elem->getUint8Array(bytes);
		break;
	default:
		return refuse_vr(elem, tag, err);
	}
	if (n == 0)
		return 0;
	if (n > max)
		return err_set(err, EMSGSIZE, "%s: %zu words, more than %zu", tag_name(tag).c_str(), n, max);
	if (cond.bad() || (!words && !bytes))
		return err_set(err, EIO, "%s: its %zu words cannot be read: %s", tag_name(tag).c_str(), n, cond.text());
	for (size_t i = 0; i < n; i++)
		ret_words[i] = words ? words[i] : (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
	*ret_n = n;
	return 1;
}

int dicom_get_words(const struct dicom_item *item, uint32_t tag, uint16_t *ret_words, size_t max, size_t *ret_n, struct err *err)
{
	return guarded(err, "dicom_get_words", [&] {
		DcmElement *elem = find(item, tag);

		return elem ? words_of(elem, tag, ret_words, max, ret_n, err) : 0;
	});
}

size_t dicom_item_count(const struct dicom_item *item, uint32_t sequence)
{
	int n = guarded(nullptr, "dicom_item_count", [&] {
		DcmElement *elem = find(item, sequence);

		return elem && elem->ident() == EVR_SQ ? (int)static_cast<DcmSequenceOfItems *>(elem)->card() : 0;
	});

	return n > 0 ? (size_t)n : 0;
}

struct dicom_item *dicom_item_at(const struct dicom_item *item, uint32_t sequence, size_t index)
{
	struct dicom_item *found = nullptr;

	guarded(nullptr, "dicom_item_at", [&] {
		DcmElement *elem = find(item, sequence);

		if (elem && elem->ident() == EVR_SQ && index < static_cast<DcmSequenceOfItems *>(elem)->card())
			found = item_of(static_cast<DcmSequenceOfItems *>(elem)->getItem((unsigned long)index));
		return 0;
	});
	return found;
}
