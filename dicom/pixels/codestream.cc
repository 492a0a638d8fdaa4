/* SPDX-License-Identifier: Apache-2.0 */
/* codestream.cc - marker segments of ISO 10918-1 (annex B) and ISO 14495-1 (annex C) up to the first scan.
 *
 * A codec allocates memory by the sizes in the code stream, but its caller allocates the result by the sizes in the object.
 * Therefore both are compared before the codec runs. The check ends at the header of the first scan, which must exist, and which
 * says whether its coding is lossless, whatever the transfer syntax says: the entropy-coded data after it cannot change either.
 */
#include "dicom/pixels/codestream.hh"

#include <cerrno>

#include "dicom/core/element.hh"

namespace tomonode
{

static int frame_header(const unsigned char *p, size_t size, const struct dicom_pixel_info *info, struct err *err)
{
	/* p: length (2 bytes), precision (1), lines (2), samples per line (2), components (1) */
	if (size < 8)
		return err_set(err, EBADMSG, "a JPEG frame header of %zu bytes cannot be decoded", size);
	unsigned precision = p[2], rows = be16(p + 3), columns = be16(p + 5), components = p[7];

	if (rows != (unsigned)info->rows || columns != (unsigned)info->columns || components != 1)
		return err_set(err, EBADMSG,
			       "cannot be decoded: a JPEG frame of %u x %u with %u components in an image of %ld x %ld with 1",
			       columns, rows, components, info->columns, info->rows);
	if (precision < 2 || precision > (unsigned)info->bits_allocated)
		return err_set(err, EBADMSG, "cannot be decoded: a JPEG frame of %u bits in an image of %d bits", precision,
			       info->bits_allocated);
	return 0;
}

/* Check that the scan loses nothing: NEAR is 0 (JPEG-LS), and no low bits are left out (point transform, of both). */
static int scan_header(const unsigned char *p, size_t size, bool jpeg_ls, struct err *err)
{
	/* p: length (2 bytes), components (1); selector and tables of the one component (2); predictor or NEAR (1), not used or
	 * interleaving (1), point transform in the lower 4 bits (1) */
	if (size != 8 || p[2] != 1)
		return err_set(err, EBADMSG, "a JPEG scan header of %zu bytes with %u components cannot be decoded", size,
			       size > 2 ? (unsigned)p[2] : 0);
	unsigned table = p[4], near = p[5], transform = p[7] & 15u;

	if (jpeg_ls && near != 0)
		return err_set(err, ENOTSUP,
			       "cannot be decoded: a JPEG-LS frame with NEAR = %u, which is lossy: values may be wrong by %u",
			       near, near);
	if (transform != 0)
		return err_set(
			err, ENOTSUP,
			"cannot be decoded: a JPEG%s frame with the point transform %u, which is lossy: the lower bits are "
			"left out",
			jpeg_ls ? "-LS" : "", transform);
	if (jpeg_ls && table != 0)
		return err_set(err, ENOTSUP, "cannot be decoded: a JPEG-LS frame with the mapping table %u, not with values",
			       table);
	return 0;
}

int codestream_check(const unsigned char *in, size_t in_size, bool jpeg_ls, const struct dicom_pixel_info *info, struct err *err)
{
	const unsigned frame_marker = jpeg_ls ? 0xf7 : 0xc3; /* SOF55, SOF3 (lossless, Huffman) */
	bool frame = false;
	size_t at = 2;
	int r;

	if (in_size < 4 || be16(in) != 0xffd8)
		return err_set(err, EBADMSG, "cannot be decoded: not a JPEG code stream");
	while (at + 4 <= in_size) {
		unsigned marker = in[at + 1];
		size_t size = be16(in + at + 2);

		if (in[at] != 0xff)
			return err_set(err, EBADMSG, "cannot be decoded: byte %zu of the JPEG code stream is not a marker", at);
		if (marker == 0xff) { /* fill bytes */
			at++;
			continue;
		}
		if (size < 2 || size > in_size - at - 2)
			return err_set(err, EBADMSG, "cannot be decoded: JPEG segment FF%02X at byte %zu of %zu has %zu bytes",
				       marker, at, in_size, size);
		if (marker == frame_marker) {
			if (frame)
				return err_set(err, EBADMSG,
					       "cannot be decoded: two JPEG frames in the code stream of one frame");
			r = frame_header(in + at + 2, size, info, err);
			if (r < 0)
				return r;
			frame = true;
		} else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
			return err_set(
				err, ENOTSUP,
				"cannot be decoded: a JPEG frame of kind FF%02X, not the lossless one of its transfer syntax",
				marker);
		} else if (marker == 0xda) {
			if (!frame)
				break;
			return scan_header(in + at + 2, size, jpeg_ls, err);
		}
		at += 2 + size;
	}
	return err_set(err, EBADMSG, "cannot be decoded: a JPEG code stream without %s",
		       frame ? "a scan" : "a frame before its scan");
}

} // namespace tomonode
