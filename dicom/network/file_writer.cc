/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/network/file_writer.hh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

/* Number of bytes after which the kernel is asked to begin the write-back, so that the final fsync takes little time. */

constexpr uint64_t write_back_step = 2 << 20;

namespace tomonode
{

FileWriter::FileWriter(int (*data)(void *ctx, const void *bytes, size_t n), void *ctx) : data_(data), ctx_(ctx)
{
	for (Buffer &b : ring_)
		b.bytes.reset(new uint8_t[file_writer_buffer]);
	thread_ = std::thread(&FileWriter::run, this);
}

FileWriter::~FileWriter()
{
	{
		std::lock_guard<std::mutex> hold(lock_);
		end_ = true;
	}
	filled_.notify_one();
	thread_.join();
}

/* ---- the receiving side ---- */

void FileWriter::begin(int fd, const void *head, size_t n)
{
	fd_ = fd;
	error_ = 0;
	written_ = pushed_ = 0;
	ring_[fill_ % file_writer_buffers].n = 0;
	if (fd_ >= 0)
		error_ = write_all(static_cast<const uint8_t *>(head), n);
}

void FileWriter::put(const void *bytes, size_t n)
{
	const uint8_t *p = static_cast<const uint8_t *>(bytes);

	while (fd_ >= 0 && n > 0) {
		Buffer &b = ring_[fill_ % file_writer_buffers];
		size_t step = n < file_writer_buffer - b.n ? n : file_writer_buffer - b.n;

		memcpy(b.bytes.get() + b.n, p, step);
		b.n += step;
		p += step;
		n -= step;
		if (b.n == file_writer_buffer)
			next_buffer();
	}
}

/* Pass the full buffer to the thread and wait until the next one is free. */
void FileWriter::next_buffer()
{
	std::unique_lock<std::mutex> hold(lock_);

	fill_++;
	filled_.notify_one();
	while (fill_ - drain_ == file_writer_buffers)
		drained_.wait(hold);
	hold.unlock();
	ring_[fill_ % file_writer_buffers].n = 0;
}

int FileWriter::finish(uint64_t *ret_written)
{
	if (fd_ >= 0 && ring_[fill_ % file_writer_buffers].n > 0)
		next_buffer();
	{
		std::unique_lock<std::mutex> hold(lock_);

		while (drain_ != fill_)
			drained_.wait(hold);
	}
	fd_ = -1;
	*ret_written = written_;
	return error_;
}

/* ---- the writing side ---- */

void FileWriter::run()
{
	std::unique_lock<std::mutex> hold(lock_);

	for (;;) {
		while (drain_ == fill_ && !end_)
			filled_.wait(hold);
		if (drain_ == fill_)
			return;
		hold.unlock();
		consume(ring_[drain_ % file_writer_buffers]);
		hold.lock();
		drain_++;
		drained_.notify_one();
	}
}

void FileWriter::consume(const Buffer &b)
{
	if (error_)
		return;
	error_ = write_all(b.bytes.get(), b.n);
	if (!error_)
		error_ = data_(ctx_, b.bytes.get(), b.n);
	if (!error_ && written_ - pushed_ >= write_back_step) {
		/* Only a hint: a file system without it only takes longer. */
		(void)sync_file_range(fd_, (off_t)pushed_, (off_t)(written_ - pushed_), SYNC_FILE_RANGE_WRITE);
		pushed_ = written_;
	}
}

int FileWriter::write_all(const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd_, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		p += done;
		n -= (size_t)done;
		written_ += (uint64_t)done;
	}
	return 0;
}

} // namespace tomonode
