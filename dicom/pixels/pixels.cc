/* SPDX-License-Identifier: Apache-2.0 */
/* pixels.cc - read the description of the pixel data, and uncompressed frames.
 *
 * A frame is read from the file directly into the caller's array: nothing else is loaded, whatever the object's size.
 * Encapsulated frames: decode.cc. */
#include "dicom/pixels/pixels.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "dicom/core/internal.hh"
#include "dicom/pixels/decode.hh"

using namespace tomonode;

constexpr long max_side = 65535, max_frames = 4096;

/* Read an integer of the image description. fallback: its value if it is absent; < 0: it is required. */
static int read_integer(struct dicom_file *file, uint32_t tag, long fallback, long *ret_value, struct err *err)
{
	int r = dicom_get_int(dicom_root(file), tag, 0, ret_value, err);

	if (r < 0)
		return r;
	if (r == 0 && fallback < 0)
		return err_set(err, EBADMSG, "no %s", tag_name(tag).c_str());
	if (r == 0)
		*ret_value = fallback;
	return 0;
}

/* Read the attributes that describe the pixels. */
static int describe_pixels(struct dicom_file *file, struct dicom_pixel_info *ret_info, struct err *err)
{
	struct dicom_pixel_info info = {};
	long samples, allocated, stored, high, representation;
	char photometric[17];
	int r;

	if (!file->layout.has_pixels)
		return err_set(err, EBADMSG, "no (7FE0,0010) PixelData");
	if ((r = read_integer(file, DICOM_TAG(0x0028, 0x0010), -1, &info.rows, err)) < 0 ||
	    (r = read_integer(file, DICOM_TAG(0x0028, 0x0011), -1, &info.columns, err)) < 0 ||
	    (r = read_integer(file, DICOM_TAG(0x0028, 0x0008), 1, &info.frames, err)) < 0 ||
	    (r = read_integer(file, DICOM_TAG(0x0028, 0x0002), 1, &samples, err)) < 0 ||
	    (r = read_integer(file, DICOM_TAG(0x0028, 0x0100), -1, &allocated, err)) < 0)
		return r;
	if ((r = read_integer(file, DICOM_TAG(0x0028, 0x0101), allocated, &stored, err)) < 0 ||
	    (r = read_integer(file, DICOM_TAG(0x0028, 0x0102), stored - 1, &high, err)) < 0 ||
	    (r = read_integer(file, DICOM_TAG(0x0028, 0x0103), 0, &representation, err)) < 0)
		return r;
	if (info.rows <= 0 || info.columns <= 0 || info.frames <= 0)
		return err_set(err, EBADMSG, "an image of %ld rows (0028,0010), %ld columns (0028,0011), %ld frames (0028,0008)",
			       info.rows, info.columns, info.frames);
	if (info.rows > max_side || info.columns > max_side || info.frames > max_frames)
		return err_set(err, EFBIG,
			       "an image of %ld rows, %ld columns, %ld frames: more than the limit of %ld x %ld x %ld", info.rows,
			       info.columns, info.frames, max_side, max_side, max_frames);
	if (samples != 1)
		return err_set(err, ENOTSUP, "(0028,0002) SamplesPerPixel is %ld: colour is not supported", samples);
	r = dicom_get_text(dicom_root(file), DICOM_TAG(0x0028, 0x0004), photometric, sizeof(photometric), err);
	if (r < 0)
		return r;
	if (r > 0 && strcmp(photometric, "MONOCHROME1") != 0 && strcmp(photometric, "MONOCHROME2") != 0)
		return err_set(err, ENOTSUP, "(0028,0004) PhotometricInterpretation is \"%s\", not monochrome", photometric);
	if (allocated != 8 && allocated != 16)
		return err_set(err, ENOTSUP, "(0028,0100) BitsAllocated is %ld: only 8 and 16 are supported", allocated);
	if (stored < 1 || stored > allocated)
		return err_set(err, EBADMSG, "(0028,0101) BitsStored is %ld with %ld bits allocated", stored, allocated);
	if (high != stored - 1)
		return err_set(err, high >= stored && high < allocated ? ENOTSUP : EBADMSG,
			       "(0028,0102) HighBit is %ld with %ld bits stored", high, stored);
	if (representation != 0 && representation != 1)
		return err_set(err, EBADMSG, "(0028,0103) PixelRepresentation is %ld", representation);
	info.bits_allocated = (int)allocated;
	info.bits_stored = (int)stored;
	info.high_bit = (int)high;
	info.is_signed = representation == 1;
	*ret_info = info;
	return 0;
}

/* Check that uncompressed pixel data have the bytes of all frames. More of them are padding, which older programs send
 * (PS3.5 8.1.1 note), if they are less than the shortest line, so that no row or column can be among them: otherwise a dimension
 * may be wrong, and the image with it. */
static int check_native(const struct dicom_file *file, const struct dicom_pixel_info *info, struct err *err)
{
	uint64_t need =
		(uint64_t)info->rows * (uint64_t)info->columns * (uint64_t)info->frames * (uint64_t)(info->bits_allocated / 8);
	uint64_t have = file->layout.pixels.size;
	uint64_t line = (uint64_t)std::min(info->rows, info->columns) * (uint64_t)(info->bits_allocated / 8);

	if (have < need || (have >= need + line && have != need + (need & 1)))
		return err_set(err, EBADMSG,
			       "(7FE0,0010) PixelData has %llu bytes, but %ld frames of %ld x %ld with %d bits need %llu%s",
			       (unsigned long long)have, info->frames, info->columns, info->rows, info->bits_allocated,
			       (unsigned long long)need,
			       have < need ? "" : "; the excess is a line or more, so it may not be padding");
	if (file->layout.big_endian && info->bits_allocated == 16 && strcmp(file->layout.pixel_vr, "OW") != 0)
		return err_set(err, EBADMSG, "(7FE0,0010) PixelData of 16 bits has VR %s in a big endian file",
			       file->layout.pixel_vr);
	return 0;
}

/* Check the pixel data, unless they were checked before, and set file->pixels and file->frame_first. */
static int check_pixels(struct dicom_file *file, struct err *err)
{
	struct dicom_pixel_info info;
	std::vector<size_t> first;
	int r;

	if (file->pixels.frames > 0)
		return 0;
	r = describe_pixels(file, &info, err);
	if (r == 0)
		r = file->layout.encapsulated ? decode_check(file, &info, &first, err) : check_native(file, &info, err);
	if (r < 0)
		return r;
	file->pixels = info;
	file->frame_first.swap(first);
	return 0;
}

/* Convert 8-bit values to 16 bits. `bytes` are in the second half of the array of `values`, so convert in ascending order. */
static void widen_values(uint16_t *values, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] = bytes[i];
}

/* Read `rows` rows of a frame. */
static int read_native(const struct dicom_file *file, const struct dicom_pixel_info *info, long frame, long row, long rows,
		       uint16_t *ret_values, struct err *err)
{
	size_t n = (size_t)rows * (size_t)info->columns, size = n * (size_t)(info->bits_allocated / 8);
	auto *bytes = reinterpret_cast<unsigned char *>(ret_values);
	uint64_t first = ((uint64_t)frame * (uint64_t)info->rows + (uint64_t)row) * (uint64_t)info->columns *
			 (uint64_t)(info->bits_allocated / 8);
	const Layout &layout = file->layout;
	int r;

	if (info->bits_allocated == 16) {
		r = file->source->read(layout.pixels.offset + first, bytes, size, err);
		if (r < 0)
			return r;
		if (layout.big_endian)
			for (size_t i = 0; i < n; i++)
				ret_values[i] = (uint16_t)(ret_values[i] << 8 | ret_values[i] >> 8);
		return 0;
	}
	if (layout.big_endian && strcmp(layout.pixel_vr, "OW") == 0) {
		/* the two bytes of each 16-bit word are swapped: read whole words and pick the bytes */
		uint64_t begin = first & ~1ull, end = std::min<uint64_t>(layout.pixels.size, (first + size + 1) & ~1ull);
		std::vector<unsigned char> words((size_t)(end - begin) + 1);

		r = file->source->read(layout.pixels.offset + begin, words.data(), (size_t)(end - begin), err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			ret_values[i] = words[(size_t)((first + i) ^ 1) - (size_t)begin];
		return 0;
	}
	r = file->source->read(layout.pixels.offset + first, bytes + n, size, err);
	if (r == 0)
		widen_values(ret_values, bytes + n, n);
	return r;
}

/* Reduce signed values to Bits Stored: the bits above repeat the sign. In unsigned values these bits must be 0: a value that uses
 * them shows that Bits Stored is wrong, and without them it would be another value. row: number of the first row. */
static int mask_values(uint16_t *values, long row, long rows, const struct dicom_pixel_info *info, struct err *err)
{
	size_t n = (size_t)rows * (size_t)info->columns, at = 0;
	uint16_t keep = (uint16_t)((1u << info->bits_stored) - 1), all = 0;

	if (info->bits_stored == 16)
		return 0;
	for (size_t i = 0; i < n; i++)
		all |= values[i];
	if (!info->is_signed && all > keep) {
		while (values[at] <= keep)
			at++;
		return err_set(err, EBADMSG,
			       "the stored value %u in row %zu, column %zu needs more bits than (0028,0101) BitsStored, which is "
			       "%d; overlays and padding in the unused bits are not supported",
			       (unsigned)values[at], (size_t)row + at / (size_t)info->columns + 1, at % (size_t)info->columns + 1,
			       info->bits_stored);
	}
	for (size_t i = 0; info->is_signed && i < n; i++)
		values[i] &= keep;
	return 0;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pixel data are read and written in the machine's byte order");

int dicom_pixels_info(struct dicom_file *file, struct dicom_pixel_info *ret_info, struct err *err)
{
	return guarded(err, "dicom_pixels_info", [&] {
		int r = check_pixels(file, err);

		if (r == 0)
			*ret_info = file->pixels;
		return r;
	});
}

/* Read rows of a frame; all of them if the pixel data are encapsulated. */
static int read_rows(struct dicom_file *file, long frame, long row, long rows, uint16_t *ret_values, struct err *err)
{
	int r = check_pixels(file, err);

	if (r < 0)
		return r;
	const struct dicom_pixel_info &info = file->pixels;
	if (rows < 0)
		rows = info.rows;
	if (frame < 0 || frame >= info.frames)
		return err_set(err, EINVAL, "frame %ld of %ld", frame + 1, info.frames);
	if (row < 0 || rows > info.rows - row)
		return err_set(err, EINVAL, "rows %ld to %ld of %ld", row + 1, row + rows, info.rows);
	if (file->layout.encapsulated && rows < info.rows)
		return err_set(err, EINVAL, "%ld rows of an encapsulated frame", rows);
	r = file->layout.encapsulated ? decode_frame(file, &info, frame, ret_values, err)
				      : read_native(file, &info, frame, row, rows, ret_values, err);
	return r < 0 ? r : mask_values(ret_values, row, rows, &info, err);
}

bool dicom_has_rows(const struct dicom_file *file)
{
	return !file->layout.encapsulated;
}

int dicom_read_rows(struct dicom_file *file, long frame, long row, long rows, uint16_t *ret_values, struct err *err)
{
	return guarded(err, "dicom_read_rows", [&] { return read_rows(file, frame, row, rows > 0 ? rows : 0, ret_values, err); });
}

int dicom_read_frame(struct dicom_file *file, long frame, uint16_t *ret_values, struct err *err)
{
	return guarded(err, "dicom_read_frame", [&] { return read_rows(file, frame, 0, -1, ret_values, err); });
}
