/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/network/file_writer.hh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

/* bytes after which the kernel is asked to begin writing them to the disk, so that the final fsync takes little time */
constexpr uint64_t write_back_step = 2 << 20;

namespace tomonode
{

FileWriter::FileWriter(int (*data)(void *ctx, const void *bytes, size_t n), void *ctx) : data_(data), ctx_(ctx)
{
	for (Buffer &b : ring_)
		b.bytes.reset(new uint8_t[file_writer_buffer]);
	thread_ = std::thread(&FileWriter::write_buffers, this);
}

FileWriter::~FileWriter()
{
	{
		std::lock_guard<std::mutex> lock(lock_);
		stop_ = true;
	}
	filled_.notify_one();
	thread_.join();
}

/* ---- called by the thread that receives ---- */

void FileWriter::begin(int fd, const void *head, size_t n)
{
	fd_ = fd;
	error_ = 0;
	written_ = write_back_ = 0;
	ring_[n_filled_ % file_writer_buffers].n = 0;
	if (fd_ >= 0)
		error_ = write_all(static_cast<const uint8_t *>(head), n);
}

void FileWriter::put(const void *bytes, size_t n)
{
	const uint8_t *p = static_cast<const uint8_t *>(bytes);

	while (fd_ >= 0 && n > 0) {
		Buffer &b = ring_[n_filled_ % file_writer_buffers];
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
	std::unique_lock<std::mutex> lock(lock_);

	n_filled_++;
	filled_.notify_one();
	while (n_filled_ - n_written_ == file_writer_buffers)
		drained_.wait(lock);
	lock.unlock();
	ring_[n_filled_ % file_writer_buffers].n = 0;
}

int FileWriter::finish(uint64_t *ret_written)
{
	if (fd_ >= 0 && ring_[n_filled_ % file_writer_buffers].n > 0)
		next_buffer();
	{
		std::unique_lock<std::mutex> lock(lock_);

		while (n_written_ != n_filled_)
			drained_.wait(lock);
	}
	fd_ = -1;
	*ret_written = written_;
	return error_;
}

/* ---- the thread that writes ---- */

void FileWriter::write_buffers()
{
	std::unique_lock<std::mutex> lock(lock_);

	for (;;) {
		while (n_written_ == n_filled_ && !stop_)
			filled_.wait(lock);
		if (n_written_ == n_filled_)
			return;
		lock.unlock();
		write_buffer(ring_[n_written_ % file_writer_buffers]);
		lock.lock();
		n_written_++;
		drained_.notify_one();
	}
}

void FileWriter::write_buffer(const Buffer &b)
{
	if (error_)
		return;
	error_ = write_all(b.bytes.get(), b.n);
	if (!error_)
		error_ = data_(ctx_, b.bytes.get(), b.n);
	if (!error_ && written_ - write_back_ >= write_back_step) {
		/* Only a hint: where it is not supported, the final fsync takes longer. */
		(void)sync_file_range(fd_, (off_t)write_back_, (off_t)(written_ - write_back_), SYNC_FILE_RANGE_WRITE);
		write_back_ = written_;
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
