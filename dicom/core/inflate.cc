/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.cc - inflate the deflated transfer syntax with zlib, in bounded memory. */
#include "dicom/core/inflate.hh"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

namespace tomonode
{

constexpr size_t chunk_size = 256 * 1024;

/* Create a file without a name in the folder of `path`, or in memory. */
static int create_unnamed_file(const char *path)
{
	std::string folder(path);
	size_t slash = folder.rfind('/');
	int fd;

	folder = slash == std::string::npos ? "." : slash == 0 ? "/" : folder.substr(0, slash);
	fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : memfd_create("inflated", MFD_CLOEXEC);
}

static int write_all(int fd, const unsigned char *bytes, size_t n, struct err *err)
{
	while (n > 0) {
		ssize_t put = write(fd, bytes, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_set(err, errno, "writing the inflated data set: %s", strerror(errno));
		bytes += put;
		n -= (size_t)put;
	}
	return 0;
}

/* Check what follows the stream from `offset` on: nothing, one byte of padding, or, as gzip writes them (RFC 1952), the CRC-32
 * and the size of what was inflated. */
static int check_end(const Source &source, uint64_t offset, unsigned long crc, uint64_t size, struct err *err)
{
	uint64_t n = source.size() - offset;
	unsigned char is[8], should[8];

	if (n == 8 || n == 9) {
		int r = source.read(offset, is, sizeof(is), err);

		if (r < 0)
			return r;
		for (int i = 0; i < 8; i++)
			should[i] = (unsigned char)(i < 4 ? crc >> (8 * i) : size >> (8 * (i - 4)));
		if (!memcmp(is, should, sizeof(is)))
			return 0;
	}
	return n <= 1 ? 0 : err_set(err, EBADMSG, "%llu bytes follow the deflated data set", (unsigned long long)n);
}

/* Inflate the source from `offset` on into fd. */
static int inflate_stream(const Source &source, uint64_t offset, uint64_t max_size, int fd, z_stream *z, uint64_t *ret_size,
			  struct err *err)
{
	std::vector<unsigned char> in(chunk_size), out(chunk_size);
	unsigned long crc = 0;
	uint64_t size = 0;
	int r, state = Z_OK;
	bool full = false; /* the last output filled its buffer: zlib may have more of it without further input */

	while (state != Z_STREAM_END) {
		if (z->avail_in == 0 && !full) {
			size_t n = (size_t)std::min<uint64_t>(in.size(), source.size() - offset);

			if (n == 0)
				return err_set(err, EBADMSG,
					       "the deflated data set is truncated after %llu bytes (%llu inflated)",
					       (unsigned long long)z->total_in, (unsigned long long)size);
			r = source.read(offset, in.data(), n, err);
			if (r < 0)
				return r;
			offset += n;
			z->next_in = in.data();
			z->avail_in = (unsigned)n;
		}
		z->next_out = out.data();
		z->avail_out = (unsigned)out.size();
		state = inflate(z, Z_NO_FLUSH);
		if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
			return err_set(err, EBADMSG, "the deflated data set is damaged at byte %llu: %s",
				       (unsigned long long)z->total_in, z->msg ? z->msg : "no valid deflate stream");
		size_t got = out.size() - z->avail_out;

		full = z->avail_out == 0;
		if (size + got > max_size)
			return err_set(err, EFBIG, "the deflated data set inflates to more than %llu bytes",
				       (unsigned long long)max_size);
		r = write_all(fd, out.data(), got, err);
		if (r < 0)
			return r;
		crc = crc32(crc, out.data(), (unsigned)got);
		size += got;
	}
	*ret_size = size;
	return check_end(source, offset - z->avail_in, crc, size, err);
}

int inflate_rest(const Source &source, uint64_t offset, const char *path, uint64_t max_size,
		 std::shared_ptr<const Source> *ret_copy, struct err *err)
{
	z_stream z = {};
	uint64_t size = 0;
	int r, fd = create_unnamed_file(path);

	if (fd < 0)
		return err_set(err, errno, "cannot create a file for the inflated data set: %s", strerror(errno));
	auto copy_fd = std::unique_ptr<int, void (*)(int *)>(&fd, [](int *p) {
		if (*p >= 0)
			close(*p);
	});
	if (inflateInit2(&z, -MAX_WBITS) != Z_OK) /* negative: a raw stream without a zlib header */
		return err_set(err, ENOMEM, "no memory to inflate the data set");
	auto stream = std::unique_ptr<z_stream, void (*)(z_stream *)>(&z, [](z_stream *p) { inflateEnd(p); });
	r = inflate_stream(source, offset, max_size, fd, &z, &size, err);
	if (r < 0)
		return r;
	*ret_copy = std::make_shared<const Source>(fd, size);
	fd = -1;
	return 0;
}

} // namespace tomonode
