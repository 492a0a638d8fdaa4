/* writer.cc - objects onto the disk (the writer of dicom/pixels.h).
 *
 * PATH.part is new (a leftover of that name is removed), gets all its bytes, is synced, renamed to PATH, and the folder is
 * synced: PATH is there whole or not at all. Frames go from the caller's array to the descriptor without a copy, in blocks of a
 * few megabytes; after each the kernel is told to start writing it back, so that the sync at the end finds little to do.
 * Encapsulated pixel data (PS3.5 A.4): the offset table's item is written with zeros and filled in at the end.
 */
#include "dicom/pixels.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "dicom/internal.hh"
#include "dicom/part10.hh"

using namespace tomonode;

constexpr size_t block = 4 << 20;
constexpr uint64_t write_back_step = 8 << 20;
constexpr uint64_t most_pixel_bytes = 0xfffffffe; /* the largest even length of 32 bits that is not "undefined" */

struct dicom_writer {
	std::string path, part;
	int fd = -1;
	uint64_t at = 0;      /* bytes written */
	uint64_t started = 0; /* of these, handed to write-back */
	size_t frame_size = 0;
	long frames = 0, done = 0;
	bool broken = false; /* a frame was written in part */
	bool encapsulated = false;
	uint64_t first_item = 0;       /* of the first fragment, from the start of the file */
	std::vector<uint32_t> offsets; /* of each frame's fragment, from there */

	~dicom_writer()
	{
		if (fd >= 0)
			close(fd);
		if (!part.empty())
			unlink(part.c_str());
	}
};

static void write_back(struct dicom_writer *w)
{
	if (w->at - w->started < write_back_step)
		return;
	/* only a hint: where it is not known, the sync at the end does the work */
	sync_file_range(w->fd, (off_t)w->started, (off_t)(w->at - w->started), SYNC_FILE_RANGE_WRITE);
	w->started = w->at;
}

static int put(struct dicom_writer *w, const void *bytes, size_t n, struct err *err)
{
	auto *p = static_cast<const char *>(bytes);

	while (n > 0) {
		ssize_t done = write(w->fd, p, n < block ? n : block);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_set(err, errno, "%s: writing at offset %llu: %s", w->part.c_str(), (unsigned long long)w->at,
				       strerror(errno));
		p += done;
		n -= (size_t)done;
		w->at += (uint64_t)done;
		write_back(w);
	}
	return 0;
}

static int create(struct dicom_writer *w, const char *path, struct err *err)
{
	std::string part = std::string(path) + ".part";

	w->path = path;
	if (unlink(part.c_str()) < 0 && errno != ENOENT)
		return err_set(err, errno, "%s: removing what is left of an earlier attempt: %s", part.c_str(), strerror(errno));
	w->fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (w->fd < 0)
		return err_set(err, errno, "%s: %s", part.c_str(), strerror(errno));
	w->part = part;
	return 0;
}

static int sync_folder(const std::string &path, struct err *err)
{
	size_t slash = path.rfind('/');
	std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
	int r = 0, fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		r = err_set(err, errno, "%s: syncing the folder: %s", folder.c_str(), strerror(errno));
	if (fd >= 0)
		close(fd);
	return r;
}

static int sync_file(struct dicom_writer *w, struct err *err)
{
	int fd = w->fd;

	if (fsync(fd) < 0)
		return err_set(err, errno, "%s: fsync: %s", w->part.c_str(), strerror(errno));
	w->fd = -1;
	if (close(fd) < 0)
		return err_set(err, errno, "%s: close: %s", w->part.c_str(), strerror(errno));
	return 0;
}

static int give_name(struct dicom_writer *w, struct err *err)
{
	if (rename(w->part.c_str(), w->path.c_str()) < 0)
		return err_set(err, errno, "%s: renaming to %s: %s", w->part.c_str(), w->path.c_str(), strerror(errno));
	w->part.clear();
	return 0;
}

/* fsync, close, rename, fsync of the folder. */
static int publish(struct dicom_writer *w, struct err *err)
{
	int r = sync_file(w, err);

	if (r == 0)
		r = give_name(w, err);
	return r < 0 ? r : sync_folder(w->path, err);
}

/* A whole number of the header; 0 or less: it is not there. */
static int header_field(struct dicom_file *header, uint32_t tag, long *ret_value, struct err *err)
{
	int r = dicom_get_int(dicom_root(header), tag, 0, ret_value, err);

	if (r < 0)
		return r;
	if (r == 0 || *ret_value <= 0)
		return err_set(err, EINVAL, "a header without %s for the frames that follow it", tag_name(tag).c_str());
	return 0;
}

/* The header must describe 16-bit grey frames, and nothing in it may belong behind the pixel data. */
static int header_check(struct dicom_writer *w, struct dicom_file *header, struct err *err)
{
	long rows, columns, bits, samples = 1;
	DcmDataset *ds = &header->dataset;
	int r;

	if ((r = header_field(header, DICOM_TAG(0x0028, 0x0010), &rows, err)) < 0 ||
	    (r = header_field(header, DICOM_TAG(0x0028, 0x0011), &columns, err)) < 0 ||
	    (r = header_field(header, DICOM_TAG(0x0028, 0x0100), &bits, err)) < 0)
		return r;
	w->frames = 1; /* a single-frame class has no (0028,0008) */
	if (dicom_has(dicom_root(header), DICOM_TAG(0x0028, 0x0008)) &&
	    (r = header_field(header, DICOM_TAG(0x0028, 0x0008), &w->frames, err)) < 0)
		return r;
	r = dicom_get_int(dicom_root(header), DICOM_TAG(0x0028, 0x0002), 0, &samples, err);
	if (r < 0)
		return r;
	if (bits != 16 || samples != 1)
		return err_set(err, EINVAL, "a header with %ld bits and %ld samples a pixel: frames are written with 16 and 1",
			       bits, samples);
	if (rows > 65535 || columns > 65535)
		return err_set(err, EFBIG, "frames of %ld x %ld: at most 65535 x 65535", columns, rows);
	for (unsigned long i = 0; i < ds->card(); i++) {
		DcmTagKey key = ds->getElement(i)->getTag().getXTag();

		if (key.getGroup() > 0x7fe0 || (key.getGroup() == 0x7fe0 && key.getElement() >= 0x0010))
			return err_set(err, EINVAL,
				       "a header with (%04X,%04X): nothing may stand in or behind the place of the pixel data",
				       key.getGroup(), key.getElement());
	}
	w->frame_size = (size_t)rows * (size_t)columns * 2;
	if (w->frame_size > most_pixel_bytes / (uint64_t)w->frames)
		return err_set(err, EFBIG, "%ld frames of %ld x %ld: more than the 4 GiB - 2 bytes that one object can hold",
			       w->frames, columns, rows);
	return 0;
}

static void put16(std::string *bytes, unsigned value)
{
	bytes->push_back((char)(value & 0xff));
	bytes->push_back((char)(value >> 8 & 0xff));
}

static void put32(std::string *bytes, uint32_t value)
{
	put16(bytes, value & 0xffff);
	put16(bytes, value >> 16);
}

/* Group FFFE: an item or the delimiter. */
static void put_item(std::string *bytes, unsigned element, size_t length)
{
	put16(bytes, 0xfffe);
	put16(bytes, element);
	put32(bytes, (uint32_t)length);
}

/* What stands before the first frame: the element, and of encapsulated ones the offset table without its values. */
static void put_pixel_header(struct dicom_writer *w, std::string *bytes)
{
	put16(bytes, 0x7fe0);
	put16(bytes, 0x0010);
	bytes->append(w->encapsulated ? "OB" : "OW");
	put16(bytes, 0);
	if (!w->encapsulated) {
		put32(bytes, (uint32_t)(w->frame_size * (uint64_t)w->frames));
		return;
	}
	put32(bytes, 0xffffffff);
	put_item(bytes, 0xe000, 4 * (size_t)w->frames);
	bytes->append(4 * (size_t)w->frames, '\0');
	w->first_item = bytes->size();
}

/* A disk that cannot hold it shows now, and the file lies in one piece. In memory (tmpfs) reserving costs as much as writing:
 * there the free space is looked at, which promises less. */
static int reserve(struct dicom_writer *w, uint64_t size, struct err *err)
{
	struct statfs fs;

	if (fstatfs(w->fd, &fs) < 0)
		return 0;
	if ((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < size)
		return err_set(err, ENOSPC, "%s: %llu bytes to write, space for %llu", w->part.c_str(), (unsigned long long)size,
			       (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize);
	if (fs.f_type != TMPFS_MAGIC && fallocate(w->fd, 0, 0, (off_t)size) < 0 && (errno == ENOSPC || errno == EDQUOT))
		return err_set(err, errno, "%s: reserving %llu bytes: %s", w->part.c_str(), (unsigned long long)size,
			       strerror(errno));
	return 0;
}

static int writer_open(const char *path, struct dicom_file *header, bool encapsulated, struct dicom_writer **ret_writer,
		       struct err *err)
{
	auto w = std::make_unique<struct dicom_writer>();
	std::string bytes;
	int r;

	w->encapsulated = encapsulated;
	r = header_check(w.get(), header, err);
	if (r == 0)
		r = part10_bytes(header, encapsulated ? UID_JPEGLSLosslessTransferSyntax : UID_LittleEndianExplicitTransferSyntax,
				 &bytes, err);
	if (r < 0)
		return r;
	put_pixel_header(w.get(), &bytes);
	r = create(w.get(), path, err);
	if (r == 0 && !encapsulated)
		r = reserve(w.get(), bytes.size() + w->frame_size * (uint64_t)w->frames, err);
	if (r == 0)
		r = put(w.get(), bytes.data(), bytes.size(), err);
	if (r < 0)
		return r;
	*ret_writer = w.release();
	return 0;
}

int dicom_writer_open(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err)
{
	return guarded(err, "dicom_writer_open", [&] { return writer_open(path, header, false, ret_writer, err); });
}

int dicom_writer_open_jpegls(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err)
{
	return guarded(err, "dicom_writer_open_jpegls", [&] { return writer_open(path, header, true, ret_writer, err); });
}

static int may_add(const struct dicom_writer *w, bool encapsulated, struct err *err)
{
	if (w->encapsulated != encapsulated)
		return err_set(err, EINVAL, "%s: %s frames belong into it", w->part.c_str(),
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
		int r = may_add(w, false, err);

		if (r < 0)
			return r;
		r = put(w, values, w->frame_size, err);
		w->broken = r < 0;
		w->done += r == 0;
		return r;
	});
}

int dicom_writer_fragment(struct dicom_writer *w, const void *code, size_t n, struct err *err)
{
	return guarded(err, "dicom_writer_fragment", [&] {
		std::string head, pad(n & 1, '\0');
		int r = may_add(w, true, err);

		if (r < 0)
			return r;
		if (n == 0 || w->at - w->first_item + n + 16 > 0xffffffff)
			return err_set(err, n ? EFBIG : EINVAL,
				       "%s: frame %ld has %zu bytes behind %llu: the offset table reaches to 4 GiB",
				       w->part.c_str(), w->done, n, (unsigned long long)(w->at - w->first_item));
		w->offsets.push_back((uint32_t)(w->at - w->first_item));
		put_item(&head, 0xe000, n + (n & 1));
		r = put(w, head.data(), head.size(), err);
		if (r == 0)
			r = put(w, code, n, err);
		if (r == 0 && !pad.empty())
			r = put(w, pad.data(), pad.size(), err);
		w->broken = r < 0;
		w->done += r == 0;
		return r;
	});
}

uint64_t dicom_writer_bytes(const struct dicom_writer *w)
{
	return w->at;
}

/* The delimiter behind the last fragment, and the offset table's values. */
static int end_fragments(struct dicom_writer *w, struct err *err)
{
	std::string end, table;
	size_t at = 0;
	int r;

	put_item(&end, 0xe0dd, 0);
	r = put(w, end.data(), end.size(), err);
	for (uint32_t offset : w->offsets)
		put32(&table, offset);
	while (r == 0 && at < table.size()) {
		ssize_t n = pwrite(w->fd, table.data() + at, table.size() - at, (off_t)(w->first_item - table.size() + at));

		if (n < 0 && errno != EINTR)
			r = err_set(err, errno, "%s: writing the offset table: %s", w->part.c_str(), strerror(errno));
		else if (n > 0)
			at += (size_t)n;
	}
	return r;
}

static int finish(struct dicom_writer *w, struct err *err)
{
	if (w->done != w->frames)
		return err_set(err, EINVAL, "%s: %ld of %ld frames are written", w->part.c_str(), w->done, w->frames);
	return w->encapsulated ? end_fragments(w, err) : 0;
}

int dicom_writer_close(struct dicom_writer *w, struct err *err)
{
	return guarded(err, "dicom_writer_close", [&] {
		std::unique_ptr<struct dicom_writer> owner(w);
		int r = finish(w, err);

		return r < 0 ? r : publish(w, err);
	});
}

int dicom_writer_sync(struct dicom_writer *w, struct err *err)
{
	return guarded(err, "dicom_writer_sync", [&] {
		int r = w->fd < 0 ? err_set(err, EINVAL, "%s: synced already", w->part.c_str()) : finish(w, err);

		return r < 0 ? r : sync_file(w, err);
	});
}

/* Renames are not taken back: what has its name already is removed when a later one fails. */
int dicom_writers_publish(struct dicom_writer *const *writers, size_t n, struct err *err)
{
	return guarded(err, "dicom_writers_publish", [&] {
		size_t named = 0;
		int r = 0;

		for (size_t i = 0; i < n && r == 0; i++)
			if (writers[i]->fd >= 0 || writers[i]->part.empty())
				r = err_set(err, EINVAL, "%s: not synced, or published already", writers[i]->path.c_str());
		while (r == 0 && named < n) {
			r = give_name(writers[named], err);
			named += r == 0;
		}
		if (r == 0 && n > 0)
			r = sync_folder(writers[0]->path, err);
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
		struct dicom_writer w;
		std::string bytes;
		int r;

		if (file->layout.has_pixels)
			return err_set(err, EINVAL, "%s: the data set has pixel data, which are written frame by frame", path);
		r = part10_bytes(file, UID_LittleEndianExplicitTransferSyntax, &bytes, err);
		if (r < 0)
			return r;
		r = create(&w, path, err);
		if (r < 0)
			return r;
		r = put(&w, bytes.data(), bytes.size(), err);
		return r < 0 ? r : publish(&w, err);
	});
}
