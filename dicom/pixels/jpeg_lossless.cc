/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg_lossless.cc - walk over the Huffman codes of a scan (ISO 10918-1 F.2.2 and H.2), without the values.
 *
 * DCMTK's codec fills a frame whose data end too early, or have no valid code, with values of its own, and says nothing. Each
 * value of the one component is a category in a Huffman code and as many bits as the category says; category 16 has none. */
#include "dicom/pixels/jpeg_lossless.hh"

#include <cerrno>
#include <cstdint>
#include <vector>

namespace tomonode
{

static unsigned be16(const unsigned char *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

namespace
{

/* For each 16 bits that may come: the length of the code that they begin with, 0 for none, and its category. */
struct Table {
	std::vector<uint8_t> length, category;
};

/* The bits of the coded data up to the next marker. */
class Bits
{
      public:
	Bits(const unsigned char *at, const unsigned char *end) : at_(at), end_(end)
	{
	}
	unsigned peek() /* the next 16 bits; behind the end, zeros */
	{
		if (n_ < 16)
			fill();
		return (unsigned)(n_ >= 16 ? bits_ >> (n_ - 16) : bits_ << (16 - n_)) & 0xffffu;
	}
	bool skip(unsigned count) /* false: there are fewer */
	{
		if (n_ < count)
			fill();
		if (n_ < count)
			return false;
		n_ -= count;
		return true;
	}
	bool restart() /* false: no restart marker is next */
	{
		while (at_ + 1 < end_ && at_[0] == 0xff && at_[1] == 0xff)
			at_++;
		if (at_ + 1 >= end_ || at_[0] != 0xff || at_[1] < 0xd0 || at_[1] > 0xd7)
			return false;
		at_ += 2;
		n_ = 0;
		return true;
	}

      private:
	void fill()
	{
		while (n_ <= 48 && at_ < end_) {
			unsigned byte = *at_;

			if (byte == 0xff && (at_ + 1 == end_ || at_[1] != 0)) /* a marker */
				return;
			at_ += byte == 0xff ? 2 : 1;
			bits_ = bits_ << 8 | byte;
			n_ += 8;
		}
	}
	const unsigned char *at_, *end_;
	uint64_t bits_ = 0;
	unsigned n_ = 0;
};

/* What precedes the scan. */
struct Scan {
	Table tables[4];
	unsigned table = 0, interval = 0; /* values between restart markers; 0: there are none */
	const unsigned char *data = nullptr;
};

} // namespace

/* Make a table of 16 numbers of codes and their categories. */
static bool make_table(const unsigned char *counts, const unsigned char *categories, Table *ret)
{
	Table t{std::vector<uint8_t>(65536), std::vector<uint8_t>(65536)};
	unsigned code = 0;

	for (unsigned length = 1; length <= 16; length++, code <<= 1)
		for (unsigned i = 0; i < counts[length - 1]; i++, code++) {
			unsigned first = code << (16 - length), n = 1u << (16 - length);

			if (first + n > 65536 || *categories > 16)
				return false;
			for (unsigned k = first; k < first + n; k++) {
				t.length[k] = (uint8_t)length;
				t.category[k] = *categories;
			}
			categories++;
		}
	*ret = std::move(t);
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
	const Table &t = scan.tables[scan.table];
	if (t.length.empty())
		return err_set(err, EBADMSG, "cannot be decoded: its scan uses Huffman table %u, which is not there", scan.table);
	Bits bits(scan.data, in + size);
	for (size_t i = 0; i < n_values; i++) {
		if (scan.interval > 0 && i > 0 && i % scan.interval == 0 && !bits.restart())
			return err_set(err, EBADMSG,
				       "the code stream is damaged or was cut off: no restart marker after %zu of %zu values", i,
				       n_values);
		unsigned next = bits.peek(), length = t.length[next], category = t.category[next];

		if (length == 0 && bits.skip(16))
			return err_set(err, EBADMSG, "the code stream is damaged: value %zu of %zu has no valid code", i + 1,
				       n_values);
		if (length == 0 || !bits.skip(length + (category == 16 ? 0 : category)))
			return err_set(err, EBADMSG, "the code stream ends too early, with %zu of %zu values: it was cut off", i,
				       n_values);
	}
	return 0;
}

} // namespace tomonode
