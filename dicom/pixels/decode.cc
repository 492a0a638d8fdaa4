/* SPDX-License-Identifier: Apache-2.0 */
/* decode.cc - decode encapsulated pixel data (PS3.5 A.4).
 *
 * The fragments of one frame are read from the file and put into a temporary data set with one frame and the checked pixel
 * description. The codec gets only this data set: it needs memory for one frame, compressed and decoded, and it cannot see
 * attributes that were not checked.
 *
 * Assignment of fragments to frames: with one frame, all; with as many fragments as frames, one each; otherwise the basic offset
 * table decides, or, if it is empty, the ends of the code streams. */
#include "dicom/pixels/decode.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dicom/core/internal.hh"
#include "dicom/pixels/codestream.hh"
#include "dicom/pixels/jpeg2000.hh"
#include "dicom/pixels/jpeg_lossless.hh"
#include "dicom/pixels/rle.hh"

#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>

namespace tomonode
{

/* largest frame in bytes, decoded or compressed; needed because a few compressed bytes can declare any size */
constexpr uint64_t max_frame_size = 1ull << 29;

/* Return DCMTK's constant for a transfer syntax that can be decoded; EXS_Unknown: it cannot. */
static E_TransferSyntax decodable_syntax(const std::string &uid)
{
	static const struct {
		const char *uid;
		E_TransferSyntax xfer;
	} known[] = {
		{UID_RLELosslessTransferSyntax, EXS_RLELossless},
		{UID_JPEGProcess14TransferSyntax, EXS_JPEGProcess14},
		{UID_JPEGProcess14SV1TransferSyntax, EXS_JPEGProcess14SV1},
		{UID_JPEGLSLosslessTransferSyntax, EXS_JPEGLSLossless},
		{UID_JPEG2000LosslessOnlyTransferSyntax, EXS_JPEG2000LosslessOnly},
		{UID_JPEG2000TransferSyntax, EXS_JPEG2000}, /* lossless or not, as the code stream says */
	};

	for (const auto &k : known)
		if (uid == k.uid)
			return k.xfer;
	return EXS_Unknown;
}

/* Find the fragments of all frames by the offset table, which has 4 bytes for each. */
static int assign_by_table(const struct dicom_file *file, std::vector<size_t> *ret_first, struct err *err)
{
	const std::vector<Span> &f = file->layout.fragments;
	size_t n_frames = ret_first->size() - 1, i = 1;
	std::vector<unsigned char> table(4 * n_frames);
	int r = file->source->read(f[0].offset, table.data(), table.size(), err);

	if (r < 0)
		return r;
	for (size_t k = 0; k < n_frames; k++, i++) {
		const unsigned char *p = &table[4 * k];
		/* offsets count from the first byte of the first fragment's item tag */
		uint64_t offset =
			f[1].offset + ((uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24);

		while (i < f.size() && f[i].offset != offset)
			i++;
		if (i == f.size())
			return err_set(err, EBADMSG,
				       "(7FE0,0010) PixelData: the offset table does not point to the fragments of frame %zu",
				       k + 1);
		(*ret_first)[k] = i;
	}
	return 0;
}

/* Find the fragments of all frames by the marker at the end of their code streams: FFD9 is EOI of JPEG and JPEG-LS and EOC of
 * JPEG 2000, and cannot be in the coded data. One byte of padding may follow it. The marker may be divided between fragments. */
static int assign_by_ends(const struct dicom_file *file, std::vector<size_t> *ret_first, struct err *err)
{
	const std::vector<Span> &f = file->layout.fragments;
	size_t n_frames = ret_first->size() - 1, n_ends = 0;
	unsigned char last[3] = {}; /* bytes of the frame, as far as it was read */
	bool ended = false;

	(*ret_first)[0] = 1;
	for (size_t i = 1; i < f.size(); i++) {
		size_t n = (size_t)std::min<uint64_t>(f[i].size, sizeof(last));

		if (n == 0)
			continue;
		memmove(last, last + n, sizeof(last) - n);
		int r = file->source->read(f[i].offset + f[i].size - n, last + sizeof(last) - n, n, err);
		if (r < 0)
			return r;
		ended = (last[1] == 0xff && last[2] == 0xd9) || (last[0] == 0xff && last[1] == 0xd9);
		if (!ended)
			continue;
		n_ends++;
		memset(last, 0, sizeof(last));
		if (n_ends < n_frames)
			(*ret_first)[n_ends] = i + 1;
	}
	if (n_ends == n_frames && ended)
		return 0;
	return err_set(
		err, EBADMSG,
		"(7FE0,0010) PixelData has %zu fragments without an offset table, and %zu of them end a code stream (FFD9)%s; "
		"%zu frames need as many ends",
		f.size() - 1, n_ends, ended ? "" : ", but not the last one", n_frames);
}

/* Return in ret_first the first fragment of each frame, and the last of all + 1, as indices into layout.fragments (index 0 is the
 * offset table). */
static int assign_fragments(const struct dicom_file *file, long frames, std::vector<size_t> *ret_first, struct err *err)
{
	const std::vector<Span> &f = file->layout.fragments;
	size_t n = f.empty() ? 0 : f.size() - 1, n_frames = (size_t)frames;
	std::vector<size_t> first(n_frames + 1);
	bool rle = file->layout.transfer_syntax == UID_RLELosslessTransferSyntax;
	int r = 0;

	if (n < n_frames)
		return err_set(err, EBADMSG, "(7FE0,0010) PixelData has %zu fragments for %zu frames", n, n_frames);
	first[n_frames] = f.size();
	if (n_frames == 1 || n == n_frames)
		for (size_t k = 0; k < n_frames; k++)
			first[k] = 1 + k;
	else if (f[0].size == 4 * n_frames)
		r = assign_by_table(file, &first, err);
	else if (f[0].size == 0 && !rle) /* a frame of RLE has one fragment (PS3.5 A.4.2) */
		r = assign_by_ends(file, &first, err);
	else
		r = err_set(err, EBADMSG,
			    "(7FE0,0010) PixelData has %zu fragments for %zu frames and an offset table of %llu bytes, not %zu",
			    n, n_frames, (unsigned long long)f[0].size, 4 * n_frames);
	if (r == 0)
		ret_first->swap(first);
	return r;
}

/* Load the fragments of a frame into one contiguous buffer. */
static int load_fragments(const struct dicom_file *file, size_t first, size_t end, std::vector<unsigned char> *ret_bytes,
			  struct err *err)
{
	const std::vector<Span> &f = file->layout.fragments;
	uint64_t total = 0;

	for (size_t i = first; i < end; i++)
		total += f[i].size;
	if (total == 0 || total > max_frame_size)
		return err_set(err, EBADMSG, "(7FE0,0010) PixelData: the fragments of a frame have %llu bytes",
			       (unsigned long long)total);
	std::vector<unsigned char> bytes((size_t)total);
	size_t at = 0;
	for (size_t i = first; i < end; i++) {
		int r = file->source->read(f[i].offset, bytes.data() + at, (size_t)f[i].size, err);

		if (r < 0)
			return r;
		at += (size_t)f[i].size;
	}
	ret_bytes->swap(bytes);
	return 0;
}

/* Build a pixel sequence with an empty offset table and one fragment. */
static int one_fragment(const std::vector<unsigned char> &bytes, std::unique_ptr<DcmPixelSequence> *ret_sequence, struct err *err)
{
	auto sequence = std::make_unique<DcmPixelSequence>(DcmTag(DCM_PixelData, EVR_OB));
	auto table = std::make_unique<DcmPixelItem>(DcmTag(DCM_Item, EVR_OB));
	auto item = std::make_unique<DcmPixelItem>(DcmTag(DCM_Item, EVR_OB));
	Uint8 *copy = nullptr;

	if (item->createUint8Array((Uint32)(bytes.size() + (bytes.size() & 1)), copy).bad() || !copy)
		return err_set(err, ENOMEM, "no memory for a fragment of %zu bytes", bytes.size());
	memcpy(copy, bytes.data(), bytes.size());
	if (bytes.size() & 1)
		copy[bytes.size()] = 0;
	if (sequence->insert(table.get()).bad())
		return err_set(err, ENOMEM, "no memory for a frame's fragments");
	table.release();
	if (sequence->insert(item.get()).bad())
		return err_set(err, ENOMEM, "no memory for a frame's fragments");
	item.release();
	*ret_sequence = std::move(sequence);
	return 0;
}

static void put_description(DcmDataset *one, const struct dicom_pixel_info *info)
{
	one->putAndInsertUint16(DCM_SamplesPerPixel, 1);
	one->putAndInsertString(DCM_PhotometricInterpretation, "MONOCHROME2");
	one->putAndInsertString(DCM_NumberOfFrames, "1");
	one->putAndInsertUint16(DCM_Rows, (Uint16)info->rows);
	one->putAndInsertUint16(DCM_Columns, (Uint16)info->columns);
	one->putAndInsertUint16(DCM_BitsAllocated, (Uint16)info->bits_allocated);
	one->putAndInsertUint16(DCM_BitsStored, (Uint16)info->bits_stored);
	one->putAndInsertUint16(DCM_HighBit, (Uint16)info->high_bit);
	one->putAndInsertUint16(DCM_PixelRepresentation, info->is_signed ? 1 : 0);
}

int decode_check(const struct dicom_file *file, const struct dicom_pixel_info *info, std::vector<size_t> *ret_first,
		 struct err *err)
{
	const std::string &uid = file->layout.transfer_syntax;

	if (decodable_syntax(uid) == EXS_Unknown) {
		DcmXfer xfer(uid.c_str());

		return err_set(err, ENOTSUP,
			       "transfer syntax %s (%s) is not decoded: uncompressed, deflated, RLE, and lossless JPEG, JPEG-LS "
			       "and JPEG 2000 are",
			       uid.c_str(), xfer.getXfer() == EXS_Unknown ? "unknown" : xfer.getXferName());
	}
	if ((uint64_t)info->rows * (uint64_t)info->columns * (uint64_t)(info->bits_allocated / 8) > max_frame_size)
		return err_set(err, EFBIG, "an encapsulated frame of %ld x %ld: more than %llu bytes", info->columns, info->rows,
			       (unsigned long long)max_frame_size);
	return assign_fragments(file, info->frames, ret_first, err);
}

/* Is the marker at the end of a code stream there (EOI)? Padding may follow it. */
static bool has_end(const std::vector<unsigned char> &bytes)
{
	size_t n = bytes.size();

	while (n > 2 && bytes[n - 1] == 0)
		n--;
	return n > 2 && bytes[n - 2] == 0xff && bytes[n - 1] == 0xd9;
}

/* Decode with DCMTK's JPEG and JPEG-LS codecs. What they say about a code stream that was cut off is about their own calls. */
static int decode_jpeg(const std::vector<unsigned char> &bytes, E_TransferSyntax xfer, const struct dicom_pixel_info *info,
		       uint16_t *ret_values, struct err *err)
{
	size_t n = (size_t)info->rows * (size_t)info->columns, size = n * (size_t)(info->bits_allocated / 8);
	std::unique_ptr<DcmPixelSequence> sequence;
	OFString colour_model;
	Uint32 fragment = 0;
	int r;

	r = codestream_check(bytes.data(), bytes.size(), xfer == EXS_JPEGLSLossless, info, err);
	if (r < 0)
		return r;
	if (xfer != EXS_JPEGLSLossless)
		r = jpeg_lossless_check(bytes.data(), bytes.size(), n, err);
	if (r == 0)
		r = one_fragment(bytes, &sequence, err);
	if (r < 0)
		return r;

	DcmDataset one;
	DcmPixelData pixels(DCM_PixelData);

	put_description(&one, info);
	pixels.putOriginalRepresentation(xfer, nullptr, sequence.release());
	/* the codec needs an even buffer: with an odd number of 8-bit values it is one byte longer than the frame */
	std::vector<unsigned char> plain(size + (size & 1));
	OFCondition cond = pixels.getUncompressedFrame(&one, 0, fragment, plain.data(), (Uint32)plain.size(), colour_model);
	if (cond == EC_MemoryExhausted)
		return err_set(err, ENOMEM, "no memory to decode a frame");
	if (cond.bad() && !has_end(bytes))
		return err_set(err, EBADMSG, "the code stream of %zu bytes has no end (FFD9): it was cut off", bytes.size());
	if (cond.bad())
		return err_set(err, EBADMSG, "cannot be decoded: the code stream is damaged, or values are missing (%s)",
			       DcmXfer(xfer).getXferName());
	if (info->bits_allocated == 16)
		memcpy(ret_values, plain.data(), size);
	else
		for (size_t i = 0; i < n; i++)
			ret_values[i] = plain[i];
	return 0;
}

int decode_jpegls(const std::vector<unsigned char> &code, const struct dicom_pixel_info *info, uint16_t *ret_values,
		  struct err *err)
{
	return decode_jpeg(code, EXS_JPEGLSLossless, info, ret_values, err);
}

int decode_frame(const struct dicom_file *file, const struct dicom_pixel_info *info, long frame, uint16_t *ret_values,
		 struct err *err)
{
	E_TransferSyntax xfer = decodable_syntax(file->layout.transfer_syntax);
	std::vector<unsigned char> bytes;
	int r;

	r = load_fragments(file, file->frame_first[(size_t)frame], file->frame_first[(size_t)frame + 1], &bytes, err);
	if (r == 0 && xfer == EXS_RLELossless)
		r = rle_decode(bytes.data(), bytes.size(), (size_t)info->rows * (size_t)info->columns,
			       (unsigned)info->bits_allocated / 8, ret_values, err);
	else if (r == 0 && (xfer == EXS_JPEG2000LosslessOnly || xfer == EXS_JPEG2000))
		r = jpeg2000_decode(bytes, info, xfer == EXS_JPEG2000, ret_values, err);
	else if (r == 0)
		r = decode_jpeg(bytes, xfer, info, ret_values, err);
	if (r < 0)
		err_prefix(err, "frame %ld", frame + 1);
	return r;
}

} // namespace tomonode
