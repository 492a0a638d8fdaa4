/* SPDX-License-Identifier: Apache-2.0 */
/* layout.cc - check the structure of a Part 10 file (PS3.5 chapter 7, PS3.10 chapter 7).
 *
 * DCMTK's parser recurses without a limit, accepts truncated values and keeps the first of two equal tags. Therefore a file is
 * passed to DCMTK only after these checks: every length fits into the enclosing element, tags ascend, sequences are at most
 * `limit_depth` deep, counts are bounded, and so is the product of the counts of private creators and private elements, which is
 * the number of DCMTK's comparisons. Only the headers of elements are read; values are skipped.
 *
 * In implicit VR a header does not show whether its value is a sequence. For a public tag the dictionary decides. A private or
 * unknown value that begins with an item tag is checked as a sequence: DCMTK's dictionary may have the private tag, and DCMTK
 * must not parse items that were not checked here. */
#include "dicom/core/layout.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dcmtk/dcmdata/dctag.h>

#include "dicom/core/element.hh"
#include "dicom/core/inflate.hh"
#include "dicom/core/number.hh"

namespace tomonode
{

std::string tag_name(uint32_t tag)
{
	char text[16];
	DcmTag t((Uint16)(tag >> 16), (Uint16)tag);

	snprintf(text, sizeof(text), "(%04X,%04X)", tag >> 16, tag & 0xffff);
	if ((tag >> 16 & 1) || t.getEVR() == EVR_UNKNOWN || t.getEVR() == EVR_UN)
		return text;
	return std::string(text) + " " + t.getTagName();
}

namespace
{

/* The encoding of elements. */
struct Mode {
	bool explicit_vr, big_endian;
};
constexpr Mode implicit_le = {false, false}, explicit_le = {true, false};

struct Element : ElementHeader {
	uint64_t at = 0, value = 0; /* offsets of the tag and of the value */
};

} // namespace

namespace
{

/* Checks the elements of a file one after the other and stores their positions in *layout. `end`: offset of the end of the
 * enclosing element; `depth`: number of enclosing sequences. */
class Checker
{
      public:
	Checker(const Source &source, Layout *layout, struct err *err) : source_(source), layout_(layout), err_(err)
	{
	}
	int check_meta(uint64_t *ret_end);
	int check_dataset(uint64_t at, uint64_t end, bool delimited, Mode mode, unsigned depth, uint64_t *ret_next);
	int list_items(const PrivateSequence &s, std::vector<ItemValue> *ret_values, size_t *ret_items);

      private:
	int read_bytes(uint64_t at, void *ret_bytes, size_t n);
	int read_header(uint64_t at, uint64_t end, Mode mode, Element *ret_e);
	int check_value(const Element &e, uint64_t end, Mode mode, unsigned depth, uint64_t *ret_next);
	int check_sequence(const Element &e, uint64_t end, Mode mode, unsigned depth, uint64_t *ret_next);
	int check_fragments(const Element &e, uint64_t end, std::vector<Span> *ret_fragments, uint64_t *ret_next);
	int check_root_pixels(const Element &e, uint64_t end, uint64_t *ret_next);
	int count_element(const Element &e);
	int count_private(const Element &e, size_t *creators);
	int check_length(const Element &e, uint64_t end);
	bool is_sequence(const Element &e, uint64_t end, Mode mode);

	const Source &source_;
	Layout *layout_;
	struct err *err_;
	std::vector<unsigned char> window_;
	uint64_t window_at_ = 0;
	std::vector<ItemValue> *values_ = nullptr; /* not NULL: values of bytes at depth 1 are added */
	size_t items_ = 0;			   /* at depth 0 */
};

} // namespace

/* Can the value be read in pieces (dicom/core/bulk.h)? */
static bool is_bulk(const Element &e, Mode mode)
{
	static const char *const names[] = {"OB", "OD", "OF", "OL", "OV", "OW", "UN"};

	if (e.length == undefined_length || e.tag == tag_pixel_data)
		return false;
	if (!mode.explicit_vr)
		return e.tag >> 16 & 1;
	return std::any_of(std::begin(names), std::end(names), [&e](const char *n) { return strcmp(n, e.vr) == 0; });
}

static bool may_be_sequence(const Element &e, Mode mode)
{
	return !mode.explicit_vr || strcmp(e.vr, "SQ") == 0 || strcmp(e.vr, "UN") == 0;
}

int Checker::read_bytes(uint64_t at, void *ret_bytes, size_t n)
{
	constexpr size_t window_size = 16384;

	if (at < window_at_ || at + n > window_at_ + window_.size()) {
		size_t size = (size_t)std::min<uint64_t>(window_size, source_.size() - at);

		window_.resize(size);
		window_at_ = at;
		int r = source_.read(at, window_.data(), size, err_);
		if (r < 0) {
			window_.clear();
			return r;
		}
	}
	memcpy(ret_bytes, window_.data() + (at - window_at_), n);
	return 0;
}

int Checker::read_header(uint64_t at, uint64_t end, Mode mode, Element *ret_e)
{
	size_t n = (size_t)std::min<uint64_t>(end - at, 12);
	unsigned char b[12];
	Element e;
	int r = n < 8 ? err_set(err_, EBADMSG, "offset %llu: only %llu bytes remain where an element begins",
				(unsigned long long)at, (unsigned long long)(end - at))
		      : read_bytes(at, b, n);

	if (r < 0)
		return r;
	bool whole = element_header(b, n, mode.explicit_vr, mode.big_endian, &e);
	e.at = at;
	e.value = at + e.size;
	if (!whole)
		return err_set(err_, EBADMSG, "%s at offset %llu is truncated before its length", tag_name(e.tag).c_str(),
			       (unsigned long long)at);
	if (!e.vr_known)
		return err_set(err_, EBADMSG, "%s at offset %llu: \"%s\" is not a value representation", tag_name(e.tag).c_str(),
			       (unsigned long long)at, shorten(std::string_view(e.vr, 2)).c_str());
	*ret_e = e;
	return 0;
}

int Checker::count_element(const Element &e)
{
	if (++layout_->n_elements > limit_elements)
		return err_set(err_, EBADMSG, "%s at offset %llu: more than %zu elements", tag_name(e.tag).c_str(),
			       (unsigned long long)e.at, limit_elements);
	return 0;
}

/* Count what DCMTK's parser does for a private tag: for each element it compares all private creators of the data set or item
 * that precede it, those of other groups too. *creators: their number so far. */
int Checker::count_private(const Element &e, size_t *creators)
{
	uint32_t number = e.tag & 0xffff;

	if (!(e.tag >> 16 & 1))
		return 0;
	if (number >= 0x0010 && number <= 0x00ff && ++*creators > limit_creators)
		return err_set(err_, EBADMSG, "%s at offset %llu: more than %zu private creators in one data set or item",
			       tag_name(e.tag).c_str(), (unsigned long long)e.at, limit_creators);
	layout_->n_private_lookups += number >= 0x1000 ? *creators : 0;
	if (layout_->n_private_lookups > limit_private_lookups)
		return err_set(err_, EBADMSG,
			       "%s at offset %llu: too many private elements for %zu private creators: more than %zu comparisons",
			       tag_name(e.tag).c_str(), (unsigned long long)e.at, *creators, limit_private_lookups);
	return 0;
}

int Checker::check_length(const Element &e, uint64_t end)
{
	if (e.length > end - e.value)
		return err_set(err_, EBADMSG, "%s at offset %llu declares %lu bytes, but only %llu remain%s",
			       tag_name(e.tag).c_str(), (unsigned long long)e.at, (unsigned long)e.length,
			       (unsigned long long)(end - e.value), end == layout_->end ? "" : " in the enclosing element");
	return 0;
}

bool Checker::is_sequence(const Element &e, uint64_t end, Mode mode)
{
	unsigned char b[4];

	if (mode.explicit_vr)
		return strcmp(e.vr, "SQ") == 0;
	if (!(e.tag >> 16 & 1)) {
		DcmEVR vr = DcmTag((Uint16)(e.tag >> 16), (Uint16)e.tag).getEVR();

		if (vr != EVR_UNKNOWN && vr != EVR_UN)
			return vr == EVR_SQ;
	}
	return e.length >= 8 && e.length <= end - e.value && read_bytes(e.value, b, 4) == 0 &&
	       (mode.big_endian ? be32(b) : (uint32_t)le16(b) << 16 | le16(b + 2)) == tag_item;
}

/* Check the element's value and everything in it. *ret_next: offset of the first byte after it. */
int Checker::check_value(const Element &e, uint64_t end, Mode mode, unsigned depth, uint64_t *ret_next)
{
	int r;

	if (e.length != undefined_length) {
		r = check_length(e, end);
		if (r < 0)
			return r;
		if (is_sequence(e, end, mode))
			return check_sequence(e, end, mode, depth, ret_next);
		*ret_next = e.value + e.length;
		return 0;
	}
	if (e.tag == tag_pixel_data && layout_->encapsulated && (strcmp(e.vr, "OB") == 0 || strcmp(e.vr, "OW") == 0))
		return check_fragments(e, end, nullptr, ret_next);
	if (mode.explicit_vr && strcmp(e.vr, "SQ") == 0)
		return check_sequence(e, end, mode, depth, ret_next);
	if (mode.explicit_vr && strcmp(e.vr, "UN") == 0)
		return check_sequence(e, end, implicit_le, depth, ret_next); /* PS3.5 6.2.2 note 4 (CP-246) */
	if (!mode.explicit_vr) {
		DcmEVR vr = e.tag >> 16 & 1 ? EVR_UNKNOWN : DcmTag((Uint16)(e.tag >> 16), (Uint16)e.tag).getEVR();

		if (vr == EVR_SQ || vr == EVR_UNKNOWN || vr == EVR_UN)
			return check_sequence(e, end, mode, depth, ret_next);
	}
	return err_set(err_, EBADMSG, "%s at offset %llu has an undefined length but is not a sequence", tag_name(e.tag).c_str(),
		       (unsigned long long)e.at);
}

int Checker::check_sequence(const Element &e, uint64_t end, Mode mode, unsigned depth, uint64_t *ret_next)
{
	bool delimited = e.length == undefined_length;
	uint64_t at = e.value, stop = delimited ? end : e.value + e.length;
	size_t n_items = 0;
	Element item;
	int r;

	if (depth >= limit_depth)
		return err_set(err_, EBADMSG, "%s at offset %llu: sequences more than %u deep", tag_name(e.tag).c_str(),
			       (unsigned long long)e.at, limit_depth);
	while (delimited || at < stop) {
		if (delimited && at == stop)
			return err_set(err_, EBADMSG, "%s at offset %llu: the sequence has no end", tag_name(e.tag).c_str(),
				       (unsigned long long)e.at);
		r = read_header(at, stop, mode, &item);
		if (r < 0)
			return r;
		at = item.value;
		if (delimited && item.tag == tag_sequence_end && item.length == 0)
			break;
		if (item.tag != tag_item)
			return err_set(err_, EBADMSG, "%s at offset %llu: (%04X,%04X) at offset %llu, where an item is expected",
				       tag_name(e.tag).c_str(), (unsigned long long)e.at, item.tag >> 16, item.tag & 0xffff,
				       (unsigned long long)item.at);
		if (++n_items > limit_items)
			return err_set(err_, EBADMSG, "%s at offset %llu: more than %zu items", tag_name(e.tag).c_str(),
				       (unsigned long long)e.at, limit_items);
		items_ += depth == 0;
		r = count_element(e);
		if (r < 0)
			return r;
		if (item.length == undefined_length) {
			r = check_dataset(at, stop, true, mode, depth + 1, &at);
		} else {
			r = check_length(item, stop);
			if (r < 0) {
				err_prefix(err_, "%s at offset %llu, item %zu", tag_name(e.tag).c_str(), (unsigned long long)e.at,
					   n_items);
				return r;
			}
			r = check_dataset(at, at + item.length, false, mode, depth + 1, &at);
		}
		if (r < 0)
			return r;
	}
	*ret_next = at;
	return 0;
}

int Checker::check_fragments(const Element &e, uint64_t end, std::vector<Span> *ret_fragments, uint64_t *ret_next)
{
	uint64_t at = e.value;
	Element item;
	int r;

	for (size_t i = 0;; i++) {
		if (at == end)
			return err_set(err_, EBADMSG,
				       "%s at offset %llu: the file ends after %zu fragments, without the end of the sequence",
				       tag_name(e.tag).c_str(), (unsigned long long)e.at, i);
		r = read_header(at, end, explicit_le, &item);
		if (r < 0) {
			err_prefix(err_, "%s, fragment %zu", tag_name(e.tag).c_str(), i);
			return r;
		}
		if (item.tag == tag_sequence_end && item.length == 0)
			break;
		if (item.tag != tag_item || item.length == undefined_length)
			return err_set(err_, EBADMSG,
				       "%s at offset %llu: no fragment but (%04X,%04X) of length %lu at offset %llu",
				       tag_name(e.tag).c_str(), (unsigned long long)e.at, item.tag >> 16, item.tag & 0xffff,
				       (unsigned long)item.length, (unsigned long long)at);
		r = check_length(item, end);
		if (r < 0) {
			err_prefix(err_, "%s, fragment %zu", tag_name(e.tag).c_str(), i);
			return r;
		}
		r = count_element(e);
		if (r < 0)
			return r;
		if (ret_fragments)
			ret_fragments->push_back({item.value, item.length});
		at = item.value + item.length;
	}
	*ret_next = item.value;
	return 0;
}

/* Store the position of the data set's own (7FE0,0010) and skip it, so that DCMTK does not read it. */
int Checker::check_root_pixels(const Element &e, uint64_t end, uint64_t *ret_next)
{
	int r;

	if (layout_->explicit_vr && strcmp(e.vr, "OB") != 0 && strcmp(e.vr, "OW") != 0)
		return err_set(err_, EBADMSG, "%s at offset %llu: VR %s, not OB or OW", tag_name(e.tag).c_str(),
			       (unsigned long long)e.at, e.vr);
	if (layout_->encapsulated) {
		if (e.length != undefined_length)
			return err_set(err_, EBADMSG,
				       "%s at offset %llu: a length of %lu bytes, but transfer syntax %s has fragments",
				       tag_name(e.tag).c_str(), (unsigned long long)e.at, (unsigned long)e.length,
				       layout_->transfer_syntax.c_str());
		r = check_fragments(e, end, &layout_->fragments, ret_next);
	} else {
		if (e.length == undefined_length)
			return err_set(err_, EBADMSG,
				       "%s at offset %llu: an undefined length, but transfer syntax %s has no fragments",
				       tag_name(e.tag).c_str(), (unsigned long long)e.at, layout_->transfer_syntax.c_str());
		r = check_length(e, end);
		layout_->pixels = {e.value, e.length};
		*ret_next = e.value + e.length;
	}
	if (r < 0)
		return r;
	layout_->has_pixels = true;
	memcpy(layout_->pixel_vr, layout_->explicit_vr ? e.vr : "OW", sizeof(layout_->pixel_vr));
	layout_->pixel_element = e.at;
	layout_->pixel_end = *ret_next;
	return 0;
}

/* Check the elements from `at` to `end`; delimited: up to an item delimiter. *ret_next: offset of the first byte after them. */
int Checker::check_dataset(uint64_t at, uint64_t end, bool delimited, Mode mode, unsigned depth, uint64_t *ret_next)
{
	size_t creators = 0;
	uint32_t last = 0;
	bool first = true;
	Element e;
	int r;

	while (delimited || at < end) {
		r = read_header(at, end, mode, &e);
		if (r < 0)
			return r;
		if (delimited && e.tag == tag_item_end && e.length == 0) {
			at = e.value;
			break;
		}
		if (e.tag >> 16 == 0xfffe || e.tag >> 16 == 0x0000 || e.tag >> 16 == 0x0002)
			return err_set(err_, EBADMSG, "(%04X,%04X) at offset %llu, where an element of the data set is expected",
				       e.tag >> 16, e.tag & 0xffff, (unsigned long long)at);
		if (!first && e.tag <= last)
			return err_set(err_, EBADMSG, "%s at offset %llu %s (%04X,%04X)", tag_name(e.tag).c_str(),
				       (unsigned long long)at, e.tag == last ? "occurs twice:" : "must not follow", last >> 16,
				       last & 0xffff);
		r = count_element(e);
		if (r == 0)
			r = count_private(e, &creators);
		if (r < 0)
			return r;
		r = depth == 0 && e.tag == tag_pixel_data ? check_root_pixels(e, end, &at)
							  : check_value(e, end, mode, depth, &at);
		if (r < 0)
			return r;
		if (depth == 0 && is_bulk(e, mode))
			layout_->bulk.push_back({e.tag, {e.value, e.length}});
		if (depth == 0 && (e.tag >> 16 & 1) && may_be_sequence(e, mode))
			layout_->sequences.push_back({e.tag, e.length, e.value, !mode.explicit_vr || strcmp(e.vr, "UN") == 0});
		if (depth == 1 && values_ && is_bulk(e, mode))
			values_->push_back({items_ - 1, e.tag, {e.value, e.length}});
		last = e.tag;
		first = false;
	}
	*ret_next = at;
	return 0;
}

int Checker::list_items(const PrivateSequence &s, std::vector<ItemValue> *ret_values, size_t *ret_items)
{
	Element e;
	uint64_t next;
	int r;

	e.tag = s.tag;
	e.length = s.length;
	e.at = e.value = s.value;
	values_ = ret_values;
	r = check_sequence(e, layout_->end, s.implicit ? implicit_le : Mode{true, layout_->big_endian}, 0, &next);
	*ret_items = items_;
	return r;
}

/* Check the meta header, group 0002, which is always explicit little endian (PS3.10 7.1). *ret_end: offset of the data set. */
int Checker::check_meta(uint64_t *ret_end)
{
	uint64_t at = 132, declared_end = 0, size = source_.size();
	unsigned char b[DICOM_UID_SIZE + 1];
	char mark[4];
	Element e;
	int r;

	if (size < 132 + 8)
		return err_set(err_, EBADMSG, "%llu bytes: not a DICOM file", (unsigned long long)size);
	r = read_bytes(128, mark, 4);
	if (r < 0)
		return r;
	if (memcmp(mark, "DICM", 4) != 0)
		return err_set(err_, EBADMSG, "no \"DICM\" at offset 128: not a DICOM Part 10 file");
	for (uint32_t last = 0; at < size; last = e.tag) {
		if (size - at < 8)
			return err_set(err_, EBADMSG, "offset %llu: only %llu bytes remain where an element begins",
				       (unsigned long long)at, (unsigned long long)(size - at));
		r = read_bytes(at, b, 2);
		if (r < 0)
			return r;
		if (le16(b) != 0x0002)
			break;
		r = read_header(at, size, explicit_le, &e);
		if (r < 0)
			return r;
		if (e.tag <= last)
			return err_set(err_, EBADMSG, "%s at offset %llu must not follow (%04X,%04X)", tag_name(e.tag).c_str(),
				       (unsigned long long)at, last >> 16, last & 0xffff);
		r = e.length == undefined_length ? err_set(err_, EBADMSG, "%s at offset %llu has an undefined length",
							   tag_name(e.tag).c_str(), (unsigned long long)at)
						 : check_length(e, size);
		if (r < 0)
			return r;
		at = e.value + e.length;
		if (e.tag == 0x00020000 && e.length == 4) {
			r = read_bytes(e.value, b, 4);
			if (r < 0)
				return r;
			declared_end = at + le32(b);
		} else if (e.tag == 0x00020010) {
			if (e.length > sizeof(b))
				return err_set(err_, EBADMSG, "%s: its %lu bytes are not a UID", tag_name(e.tag).c_str(),
					       (unsigned long)e.length);
			r = read_bytes(e.value, b, e.length);
			if (r < 0)
				return r;
			layout_->transfer_syntax = trim(std::string_view(reinterpret_cast<const char *>(b), e.length), true);
		}
	}
	if (declared_end != 0 && declared_end != at)
		return err_set(
			err_, EBADMSG,
			"(0002,0000) FileMetaInformationGroupLength gives offset %llu for the data set, but it begins at %llu",
			(unsigned long long)declared_end, (unsigned long long)at);
	if (layout_->transfer_syntax.empty())
		return err_set(err_, EBADMSG, "no (0002,0010) TransferSyntaxUID");
	*ret_end = at;
	return 0;
}

/* Determine the encoding from the transfer syntax, PS3.5 annex A, PS3.6 annex A. */
static int find_encoding(Layout *layout, bool *ret_deflated, struct err *err)
{
	static const char prefix[] = "1.2.840.10008.1.2.";
	const std::string &uid = layout->transfer_syntax;

	*ret_deflated = uid == "1.2.840.10008.1.2.1.99";
	layout->explicit_vr = uid != "1.2.840.10008.1.2";
	layout->big_endian = uid == "1.2.840.10008.1.2.2";
	if (!layout->explicit_vr || layout->big_endian || *ret_deflated || uid == "1.2.840.10008.1.2.1")
		return 0;
	/* the two JPIP syntaxes: the pixels are on a server, and one of the two also deflates the data set */
	if (uid.compare(0, strlen(prefix), prefix) != 0 || uid == "1.2.840.10008.1.2.4.94" || uid == "1.2.840.10008.1.2.4.95")
		return err_set(err, ENOTSUP, "(0002,0010) TransferSyntaxUID \"%s\" is not supported", shorten(uid).c_str());
	layout->encapsulated = true;
	return 0;
}

int layout_read(std::shared_ptr<const Source> *source, const char *path, Layout *ret_layout, struct err *err)
{
	Layout layout;
	bool deflated = false;
	uint64_t next;
	int r;

	layout.end = (*source)->size();
	r = Checker(**source, &layout, err).check_meta(&layout.dataset);
	if (r < 0)
		return r;
	r = find_encoding(&layout, &deflated, err);
	if (r < 0)
		return r;
	if (deflated) {
		std::shared_ptr<const Source> copy;

		r = inflate_rest(**source, layout.dataset, path, limit_inflated, &copy, err);
		if (r < 0)
			return r;
		*source = copy;
		layout.dataset = 0;
		layout.end = copy->size();
	}
	if (layout.dataset == layout.end)
		return err_set(err, EBADMSG, "no data set follows the meta header");
	r = Checker(**source, &layout, err)
		    .check_dataset(layout.dataset, layout.end, false, {layout.explicit_vr, layout.big_endian}, 0, &next);
	if (r < 0) {
		if (deflated)
			err_prefix(err, "inflated data set");
		return r;
	}
	*ret_layout = std::move(layout);
	return 0;
}

int layout_item_values(const Source &source, const Layout &layout, uint32_t sequence, std::vector<ItemValue> *ret_values,
		       size_t *ret_items, struct err *err)
{
	Layout scratch;

	scratch.end = layout.end;
	scratch.big_endian = layout.big_endian;
	for (const PrivateSequence &s : layout.sequences)
		if (s.tag == sequence)
			return Checker(source, &scratch, err).list_items(s, ret_values, ret_items);
	return err_set(err, EBADMSG, "%s is not a sequence", tag_name(sequence).c_str());
}

} // namespace tomonode
