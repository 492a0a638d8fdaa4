/* writer.cc - objects onto the disk (the writer of dicom/pixels.h).
 *
 * PATH.part is new (a leftover of that name is removed), gets all its bytes, is synced, renamed to PATH, and the folder is
 * synced: PATH is there whole or not at all. Frames go from the caller's array to the descriptor without a copy; every few
 * megabytes the kernel is told to start writing them back, so that the sync at the end finds little to do.
 */
#include "dicom/pixels.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "dicom/internal.hh"
#include "dicom/part10.hh"

using namespace tomonode;

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

	~dicom_writer()
	{
		if (fd >= 0)
			close(fd);
		if (!part.empty())
			unlink(part.c_str());
	}
};

static int put(struct dicom_writer *w, const void *bytes, size_t n, struct err *err)
{
	auto *p = static_cast<const char *>(bytes);

	while (n > 0) {
		ssize_t done = write(w->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_set(err, errno, "%s: writing at offset %llu: %s", w->part.c_str(), (unsigned long long)w->at,
				       strerror(errno));
		p += done;
		n -= (size_t)done;
		w->at += (uint64_t)done;
	}
	if (w->at - w->started >= write_back_step) {
		/* only a hint: where it is not known, the sync at the end does the work */
		sync_file_range(w->fd, (off_t)w->started, (off_t)(w->at - w->started), SYNC_FILE_RANGE_WRITE);
		w->started = w->at;
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

/* fsync, close, rename, fsync of the folder. */
static int publish(struct dicom_writer *w, struct err *err)
{
	int fd = w->fd;

	if (fsync(fd) < 0)
		return err_set(err, errno, "%s: fsync: %s", w->part.c_str(), strerror(errno));
	w->fd = -1;
	if (close(fd) < 0)
		return err_set(err, errno, "%s: close: %s", w->part.c_str(), strerror(errno));
	if (rename(w->part.c_str(), w->path.c_str()) < 0)
		return err_set(err, errno, "%s: renaming to %s: %s", w->part.c_str(), w->path.c_str(), strerror(errno));
	w->part.clear();
	return sync_folder(w->path, err);
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

int dicom_writer_open(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err)
{
	return guarded(err, "dicom_writer_open", [&] {
		auto w = std::make_unique<struct dicom_writer>();
		std::string bytes;
		struct statvfs fs;
		uint32_t length;
		int r;

		r = header_check(w.get(), header, err);
		if (r < 0)
			return r;
		r = part10_bytes(header, &bytes, err);
		if (r < 0)
			return r;
		length = (uint32_t)(w->frame_size * (uint64_t)w->frames);
		bytes.append("\xe0\x7f\x10\x00OW\0\0", 8); /* (7FE0,0010), VR, two reserved bytes */
		for (int i = 0; i < 4; i++)
			bytes.push_back((char)(length >> 8 * i & 0xff));
		r = create(w.get(), path, err);
		if (r < 0)
			return r;
		/* a disk that cannot hold it shows now; fallocate would promise more, but costs as much as writing on a RAM disk
		 */
		if (fstatvfs(w->fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < bytes.size() + (uint64_t)length)
			return err_set(err, ENOSPC, "%s: %llu bytes to write, space for %llu", w->part.c_str(),
				       (unsigned long long)(bytes.size() + (uint64_t)length),
				       (unsigned long long)fs.f_bavail * fs.f_frsize);
		r = put(w.get(), bytes.data(), bytes.size(), err);
		if (r < 0)
			return r;
		*ret_writer = w.release();
		return 0;
	});
}

int dicom_writer_frame(struct dicom_writer *w, const uint16_t *values, struct err *err)
{
	return guarded(err, "dicom_writer_frame", [&] {
		if (w->done >= w->frames)
			return err_set(err, EINVAL, "%s: all %ld frames are written already", w->part.c_str(), w->frames);
		if (w->broken)
			return err_set(err, EIO, "%s: an earlier frame could not be written", w->part.c_str());
		int r = put(w, values, w->frame_size, err);
		w->broken = r < 0;
		w->done += r == 0;
		return r;
	});
}

int dicom_writer_close(struct dicom_writer *w, struct err *err)
{
	return guarded(err, "dicom_writer_close", [&] {
		std::unique_ptr<struct dicom_writer> owner(w);

		if (w->done != w->frames)
			return err_set(err, EINVAL, "%s: %ld of %ld frames are written", w->part.c_str(), w->done, w->frames);
		return publish(w, err);
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
		r = part10_bytes(file, &bytes, err);
		if (r < 0)
			return r;
		r = create(&w, path, err);
		if (r < 0)
			return r;
		r = put(&w, bytes.data(), bytes.size(), err);
		return r < 0 ? r : publish(&w, err);
	});
}
