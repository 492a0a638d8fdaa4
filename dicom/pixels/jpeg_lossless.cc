/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg_lossless.cc - walk over the Huffman codes of a scan (ISO 10918-1 F.2.2 and H.2), without the values.
 *
 * DCMTK's codec fills a frame whose data end too early, or have no valid code, with values of its own, and says nothing. Each
 * value of the one component is a category in a Huffman code and as many bits as the category says; category 16 has none. */
#include "dicom/pixels/jpeg_lossless.hh"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include <endian.h>

#include "dicom/core/element.hh"

namespace tomonode
{

namespace
{

/* The number of bits of the value that begins with each 16 bits, 0 for none; and, in the nearest memory, with each 11 bits, 0 if
 * its code is longer. */
struct Sizes {
	std::vector<uint8_t> all;
	uint8_t near[2048];
};

/* The bits of the coded data up to the next marker. */
class Bits
{
      public:
	Bits(const unsigned char *at, const unsigned char *end) : at_(at), end_(end)
	{
	}
	/* Walk over n values. Returns how many there are: fewer if the data end, or if the next one has no code. */
	size_t skip(const Sizes &sizes, size_t n)
	{
		size_t i = 0;

		for (; i < n; i++) {
			if (n_ < MOST)
				fill();
			unsigned next = peek(), size = sizes.near[next >> 5];

			size = size ? size : sizes.all[next];
			if (size == 0 || size > n_)
				break;
			n_ -= size;
		}
		return i;
	}
	bool has_no_code(const Sizes &sizes) const /* although there are enough bits for one */
	{
		return n_ >= 16 && sizes.all[peek()] == 0;
	}
	bool restart(size_t number) /* false: no restart marker with this number is next */
	{
		while (at_ + 1 < end_ && at_[0] == 0xff && at_[1] == 0xff)
			at_++;
		if (at_ + 1 >= end_ || at_[0] != 0xff || at_[1] != 0xd0 + number % 8)
			return false;
		at_ += 2;
		n_ = 0;
		return true;
	}

      private:
	static constexpr unsigned MOST = 31; /* bits of a value */

	unsigned peek() const /* behind the end, zeros */
	{
		return (unsigned)(n_ >= 16 ? bits_ >> (n_ - 16) : bits_ << (16 - n_)) & 0xffffu;
	}

	void fill()
	{
		while (n_ <= 48 && at_ < end_) {
			unsigned byte = *at_;

			if (fill_plain())
				return;
			if (byte == 0xff && (at_ + 1 == end_ || at_[1] != 0)) /* a marker */
				return;
			at_ += byte == 0xff ? 2 : 1;
			bits_ = bits_ << 8 | byte;
			n_ += 8;
		}
	}
	/* The same, if none of the next eight bytes is ff. */
	bool fill_plain()
	{
		unsigned n = (63 - n_) / 8;
		uint64_t next;

		if (end_ - at_ < 8)
			return false;
		memcpy(&next, at_, sizeof(next));
		if ((~next - 0x0101010101010101u) & next & 0x8080808080808080u)
			return false;
		bits_ = bits_ << (8 * n) | be64toh(next) >> (64 - 8 * n);
		at_ += n;
		n_ += 8 * n;
		return true;
	}
	const unsigned char *at_, *end_;
	uint64_t bits_ = 0;
	unsigned n_ = 0;
};

/* What precedes the scan. */
struct Scan {
	Sizes tables[4];
	unsigned table = 0, interval = 0; /* values between restart markers; 0: there are none */
	const unsigned char *data = nullptr;
};

} // namespace

/* Make a table of 16 numbers of codes and their categories. */
static bool make_table(const unsigned char *counts, const unsigned char *categories, Sizes *ret)
{
	Sizes sizes{std::vector<uint8_t>(65536), {}};
	unsigned code = 0;

	for (unsigned length = 1; length <= 16; length++, code <<= 1)
		for (unsigned i = 0; i < counts[length - 1]; i++, code++, categories++) {
			unsigned first = code << (16 - length), n = 1u << (16 - length);

			if (first + n > 65536 || *categories > 16)
				return false;
			uint8_t size = (uint8_t)(length + (*categories == 16 ? 0 : *categories));
			std::fill_n(sizes.all.begin() + first, n, size);
			if (length <= 11)
				std::fill_n(sizes.near + (first >> 5), n >> 5, size);
		}
	*ret = std::move(sizes);
	return true;
}

/* Read the tables of a DHT segment. p: behind its length. */
static bool read_tables(const unsigned char *p, size_t size, Scan *scan)
{
	while (size >= 17) {
		size_t n = 0;

		for (int i = 1; i <= 16; i++)
			n += p[i];
		if (size < 17 + n || (p[0] & 15u) > 3 ||
		    (p[0] >> 4 == 0 && !make_table(p + 1, p + 17, &scan->tables[p[0] & 15u])))
			return false;
		p += 17 + n;
		size -= 17 + n;
	}
	return size == 0;
}

/* Read the segments up to the first scan, whose sizes were checked. */
static int read_segments(const unsigned char *in, size_t size, Scan *ret, struct err *err)
{
	for (size_t at = 2; at + 4 <= size;) {
		const unsigned char *p = in + at;
		size_t n = be16(p + 2);

		if (p[1] == 0xff) {
			at++;
			continue;
		}
		if (p[1] == 0xc4 && !read_tables(p + 4, n - 2, ret))
			return err_set(err, EBADMSG, "cannot be decoded: its Huffman tables are damaged");
		if (p[1] == 0xdd && n == 4)
			ret->interval = be16(p + 4);
		if (p[1] == 0xda) {
			ret->table = p[6] >> 4 & 3u;
			ret->data = p + 2 + n;
			return 0;
		}
		at += 2 + n;
	}
	return err_set(err, EBADMSG, "cannot be decoded: a JPEG code stream without a scan");
}

int jpeg_lossless_check(const unsigned char *in, size_t size, size_t n_values, struct err *err)
{
	Scan scan;
	int r = read_segments(in, size, &scan, err);

	if (r < 0)
		return r;
	const Sizes &sizes = scan.tables[scan.table];
	if (sizes.all.empty())
		return err_set(err, EBADMSG, "cannot be decoded: its scan uses Huffman table %u, which is not there", scan.table);
	Bits bits(scan.data, in + size);
	for (size_t i = 0, part_number = 0; i < n_values;) {
		size_t part = scan.interval > 0 ? std::min<size_t>(scan.interval, n_values - i) : n_values;
		size_t done = bits.skip(sizes, part);

		i += done;
		if (done < part && bits.has_no_code(sizes))
			return err_set(err, EBADMSG, "the code stream is damaged: value %zu of %zu has no valid code", i + 1,
				       n_values);
		if (done < part)
			return err_set(err, EBADMSG, "the code stream ends too early, with %zu of %zu values: it was cut off", i,
				       n_values);
		if (i < n_values && !bits.restart(part_number++))
			return err_set(err, EBADMSG,
				       "the code stream is damaged or was cut off: no restart marker after %zu of %zu values", i,
				       n_values);
	}
	return 0;
}

} // namespace tomonode
