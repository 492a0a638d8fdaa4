/* SPDX-License-Identifier: Apache-2.0 */
/* writer.cc - write objects with frames (the writer of dicom/pixels/pixels.h).
 *
 * Frames are written from the caller's array to the file (dicom/core/new_file.hh) without a copy. In encapsulated pixel data
 * (PS3.5 A.4) the offset table is first written as zeros; its values are written at the end, when they are known. */
#include "dicom/core/element.hh"
#include "dicom/pixels/pixels.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "dicom/core/internal.hh"
#include "dicom/core/new_file.hh"
#include "dicom/core/part10.hh"

using namespace tomonode;

constexpr uint64_t max_pixel_bytes = 0xfffffffe; /* the largest even 32-bit length that does not mean "undefined" */

struct dicom_writer : NewFile {
	size_t frame_size = 0;	   /* bytes, uncompressed */
	long frames = 0, done = 0; /* number of frames in total, and already written */
	bool broken = false;	   /* a frame was written only partly */
	bool encapsulated = false;
	uint64_t first_item = 0;       /* offset of the first fragment in the file */
	std::vector<uint32_t> offsets; /* offset of each frame's fragment, relative to the first */
};

/* Read an integer of the header. EINVAL: it is absent, or 0 or less. */
static int header_field(struct dicom_file *header, uint32_t tag, long *ret_value, struct err *err)
{
	int r = dicom_get_int(dicom_root(header), tag, 0, ret_value, err);

	if (r < 0)
		return r;
	if (r == 0 || *ret_value <= 0)
		return err_set(err, EINVAL, "a header without %s, which an object with frames needs", tag_name(tag).c_str());
	return 0;
}

/* Check that the header describes 16-bit grey frames, and that all of its elements belong before the pixel data. */
static int header_check(struct dicom_writer *w, struct dicom_file *header, struct err *err)
{
	long rows, columns, bits, samples = 1;
	DcmDataset *ds = &header->dataset;
	int r;

	if ((r = header_field(header, DICOM_TAG(0x0028, 0x0010), &rows, err)) < 0 ||
	    (r = header_field(header, DICOM_TAG(0x0028, 0x0011), &columns, err)) < 0 ||
	    (r = header_field(header, DICOM_TAG(0x0028, 0x0100), &bits, err)) < 0)
		return r;
	w->frames = 1; /* a single-frame class does not have (0028,0008) */
	if (dicom_has(dicom_root(header), DICOM_TAG(0x0028, 0x0008)) &&
	    (r = header_field(header, DICOM_TAG(0x0028, 0x0008), &w->frames, err)) < 0)
		return r;
	r = dicom_get_int(dicom_root(header), DICOM_TAG(0x0028, 0x0002), 0, &samples, err);
	if (r < 0)
		return r;
	if (bits != 16 || samples != 1)
		return err_set(err, EINVAL, "a header with %ld bits and %ld samples per pixel: they must be 16 and 1", bits,
			       samples);
	if (rows > 65535 || columns > 65535)
		return err_set(err, EFBIG, "frames of %ld x %ld: at most 65535 x 65535", columns, rows);
	for (unsigned long i = 0; i < ds->card(); i++) {
		DcmTagKey key = ds->getElement(i)->getTag().getXTag();

		if (key.getGroup() > 0x7fe0 || (key.getGroup() == 0x7fe0 && key.getElement() >= 0x0010))
			return err_set(err, EINVAL, "a header with (%04X,%04X): no element may be at or after the pixel data",
				       key.getGroup(), key.getElement());
	}
	w->frame_size = (size_t)rows * (size_t)columns * 2;
	if (w->frame_size > max_pixel_bytes / (uint64_t)w->frames)
		return err_set(err, EFBIG, "%ld frames of %ld x %ld: more than the 4 GiB - 2 bytes that one object can hold",
			       w->frames, columns, rows);
	return 0;
}

/* Append the bytes before the first frame: the element's header, and for encapsulated frames the offset table, filled with 0. */
static void put_pixel_header(struct dicom_writer *w, std::string *bytes)
{
	put_element(bytes, tag_pixel_data, w->encapsulated ? "OB" : "OW",
		    w->encapsulated ? undefined_length : (uint32_t)(w->frame_size * (uint64_t)w->frames));
	if (!w->encapsulated)
		return;
	put_element(bytes, tag_item, "", (uint32_t)(4 * (size_t)w->frames));
	bytes->append(4 * (size_t)w->frames, '\0');
	w->first_item = bytes->size();
}

static int writer_open(const char *path, struct dicom_file *header, const struct dicom_writer_options *options,
		       struct dicom_writer **ret_writer, struct err *err)
{
	auto w = std::make_unique<struct dicom_writer>();
	std::string bytes;
	int r;

	w->encapsulated = options && options->jpegls;
	w->keep = options ? options->keep_free : 0;
	if (options) {
		w->writes = options->writes;
		w->wrote = options->wrote;
		w->ctx = options->ctx;
	}
	r = header_check(w.get(), header, err);
	if (r == 0)
		r = part10_bytes(header,
				 w->encapsulated ? UID_JPEGLSLosslessTransferSyntax : UID_LittleEndianExplicitTransferSyntax,
				 &bytes, err);
	if (r < 0)
		return r;
	put_pixel_header(w.get(), &bytes);
	r = w->create(path, err);
	if (r == 0 && !w->encapsulated)
		r = w->reserve(bytes.size() + w->frame_size * (uint64_t)w->frames, err);
	if (r == 0)
		r = w->put(bytes.data(), bytes.size(), err);
	if (r < 0)
		return r;
	*ret_writer = w.release();
	return 0;
}

int dicom_writer_open(const char *path, struct dicom_file *header, const struct dicom_writer_options *options,
		      struct dicom_writer **ret_writer, struct err *err)
{
	return guarded(err, "dicom_writer_open", [&] { return writer_open(path, header, options, ret_writer, err); });
}

/* Check that another frame of this form can be written. */
static int check_next_frame(const struct dicom_writer *w, bool encapsulated, struct err *err)
{
	if (w->encapsulated != encapsulated)
		return err_set(err, EINVAL, "%s: only %s frames can be written to it", w->part.c_str(),
			       w->encapsulated ? "encoded" : "plain");
	if (w->done >= w->frames)
		return err_set(err, EINVAL, "%s: all %ld frames are written already", w->part.c_str(), w->frames);
	if (w->broken)
		return err_set(err, EIO, "%s: an earlier frame could not be written", w->part.c_str());
	return 0;
}

int dicom_writer_frame(struct dicom_writer *w, const uint16_t *values, struct err *err)
{
	return guarded(err, "dicom_writer_frame", [&] {
		int r = check_next_frame(w, false, err);

		if (r < 0)
			return r;
		r = w->put(values, w->frame_size, err);
		w->broken = r < 0;
		w->done += r == 0;
		return r;
	});
}

int dicom_writer_fragment(struct dicom_writer *w, const void *code, size_t n, struct err *err)
{
	return guarded(err, "dicom_writer_fragment", [&] {
		std::string head, pad(n & 1, '\0');
		int r = check_next_frame(w, true, err);

		if (r < 0)
			return r;
		if (n == 0)
			return err_set(err, EINVAL, "%s: frame %ld is empty", w->part.c_str(), w->done + 1);
		if (w->at - w->first_item + n + 16 > 0xffffffff)
			return err_set(err, EFBIG, "%s: frame %ld (%zu bytes at offset %llu) exceeds the limit of 4 GiB",
				       w->part.c_str(), w->done + 1, n, (unsigned long long)(w->at - w->first_item));
		w->offsets.push_back((uint32_t)(w->at - w->first_item));
		put_element(&head, tag_item, "", (uint32_t)(n + (n & 1)));
		r = w->put(head.data(), head.size(), err);
		if (r == 0)
			r = w->put(code, n, err);
		if (r == 0 && !pad.empty())
			r = w->put(pad.data(), pad.size(), err);
		w->broken = r < 0;
		w->done += r == 0;
		return r;
	});
}

/* Write the delimiter after the last fragment, and the values of the offset table. */
static int end_fragments(struct dicom_writer *w, struct err *err)
{
	std::string end, table;
	size_t at = 0;
	int r;

	put_element(&end, tag_sequence_end, "", 0);
	r = w->put(end.data(), end.size(), err);
	if (w->frames > 1) /* otherwise the only offset is 0, as it is in the file already */
		for (uint32_t offset : w->offsets)
			put32(&table, offset);
	if (w->writes && !table.empty()) {
		w->writes(w->ctx, w->first_item - table.size(), table.data(), table.size());
		w->wrote(w->ctx);
	}
	while (r == 0 && at < table.size()) {
		ssize_t n = pwrite(w->fd, table.data() + at, table.size() - at, (off_t)(w->first_item - table.size() + at));

		if (n < 0 && errno != EINTR)
			r = err_set(err, errno, "%s: writing the offset table: %s", w->part.c_str(), strerror(errno));
		else if (n > 0)
			at += (size_t)n;
	}
	return r;
}

namespace tomonode
{

static int finish_frames(struct dicom_writer *w, struct err *err)
{
	if (w->done != w->frames)
		return err_set(err, EINVAL, "%s: only %ld of %ld frames have been written", w->part.c_str(), w->done, w->frames);
	return w->encapsulated ? end_fragments(w, err) : 0;
}

} // namespace tomonode

int dicom_writer_close(struct dicom_writer *w, struct err *err)
{
	return guarded(err, "dicom_writer_close", [&] {
		std::unique_ptr<struct dicom_writer> owner(w);
		int r = finish_frames(w, err);

		return r < 0 ? r : w->publish(err);
	});
}

int dicom_writer_sync(struct dicom_writer *w, struct err *err)
{
	return guarded(err, "dicom_writer_sync", [&] {
		int r = w->fd < 0 ? err_set(err, EINVAL, "%s: synced already", w->part.c_str()) : finish_frames(w, err);

		return r < 0 ? r : w->sync(err);
	});
}

/* If a rename fails, remove the files that have already been renamed, so that none remains. */
int dicom_writers_publish(struct dicom_writer *const *writers, size_t n, struct err *err)
{
	return guarded(err, "dicom_writers_publish", [&] {
		size_t named = 0;
		int r = 0;

		for (size_t i = 0; i < n && r == 0; i++)
			if (writers[i]->fd >= 0 || writers[i]->part.empty())
				r = err_set(err, EINVAL, "%s: not synced, or published already", writers[i]->path.c_str());
		while (r == 0 && named < n) {
			r = writers[named]->link_name(err);
			named += r == 0;
		}
		if (r == 0 && n > 0)
			r = writers[0]->sync_folder(err);
		for (size_t i = 0; i < named && r < 0; i++)
			unlink(writers[i]->path.c_str());
		return r;
	});
}

void dicom_writer_abort(struct dicom_writer *w)
{
	delete w;
}

int dicom_write(const char *path, struct dicom_file *file, struct err *err)
{
	return guarded(err, "dicom_write", [&] {
		NewFile file_out;
		std::string bytes;
		int r;

		if (file->layout.has_pixels)
			return err_set(err, EINVAL, "%s: the data set has pixel data, which are written frame by frame", path);
		r = part10_bytes(file, UID_LittleEndianExplicitTransferSyntax, &bytes, err);
		if (r < 0)
			return r;
		r = file_out.create(path, err);
		if (r < 0)
			return r;
		r = file_out.put(bytes.data(), bytes.size(), err);
		return r < 0 ? r : file_out.publish(err);
	});
}
