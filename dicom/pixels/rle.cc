/* SPDX-License-Identifier: Apache-2.0 */
/* rle.cc - run length decoding, one byte plane after the other, the most significant first.
 *
 * This replaces DCMTK's decoder, which reads beyond its input if a run is truncated at the end of a segment. */
#include "dicom/pixels/rle.hh"

#include <algorithm>
#include <cerrno>

#include "dicom/core/element.hh"

namespace tomonode
{

constexpr size_t header_size = 64; /* number of segments and 15 offsets, 32 bits each */

/* Decode one byte plane: combine its bytes, shifted by `shift` bits, with the values. Return how many values it contains, at most
 * n. */
static size_t decode_plane(const unsigned char *in, const unsigned char *end, size_t n, unsigned shift, uint16_t *values)
{
	size_t done = 0;

	while (done < n && in < end) {
		unsigned code = *in++;

		if (code < 128) { /* copy the next code + 1 bytes */
			size_t run = std::min({(size_t)code + 1, n - done, (size_t)(end - in)});

			for (size_t k = 0; k < run; k++)
				values[done + k] = (uint16_t)(values[done + k] | in[k] << shift);
			done += run;
			in += run;
		} else if (code > 128) { /* repeat the next byte 257 - code times */
			size_t run = std::min((size_t)(257 - code), n - done);

			if (in == end)
				break;
			for (size_t k = 0; k < run; k++)
				values[done + k] = (uint16_t)(values[done + k] | *in << shift);
			done += run;
			in++;
		}
	}
	return done;
}

int rle_decode(const unsigned char *in, size_t in_size, size_t n, unsigned bytes_per_value, uint16_t *ret_values, struct err *err)
{
	uint32_t segments;

	if (in_size < header_size)
		return err_set(err, EBADMSG, "%zu bytes cannot be decoded as RLE: no header", in_size);
	segments = le32(in);
	if (segments != bytes_per_value)
		return err_set(err, EBADMSG, "RLE with %lu segments cannot be decoded: values of %u bytes have %u",
			       (unsigned long)segments, bytes_per_value, bytes_per_value);
	std::fill(ret_values, ret_values + n, (uint16_t)0);
	for (uint32_t s = 0; s < segments; s++) {
		size_t begin = le32(in + 4 * (s + 1)), end = s + 1 < segments ? le32(in + 4 * (s + 2)) : in_size;
		size_t done;

		if (begin < header_size || begin > end || end > in_size)
			return err_set(err, EBADMSG, "RLE segment %lu from byte %zu to %zu of %zu cannot be decoded",
				       (unsigned long)s + 1, begin, end, in_size);
		done = decode_plane(in + begin, in + end, n, 8 * (segments - 1 - s), ret_values);
		if (done != n)
			return err_set(err, EBADMSG, "RLE segment %lu cannot be decoded: %zu of %zu values", (unsigned long)s + 1,
				       done, n);
	}
	return 0;
}

} // namespace tomonode
