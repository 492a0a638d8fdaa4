/* SPDX-License-Identifier: Apache-2.0 */
/* Write a data set from the network to its file in a separate thread, while the next bytes are received. Private to dicom/ (C++).
 *
 * put() copies into a ring of buffers; the thread writes them in order, passes them to the digest, and asks the kernel early to
 * begin the write-back. The first error of the file is stored; later bytes are dropped, and put() never fails. One object at a
 * time: begin, put..., finish. */
#ifndef TOMONODE_DICOM_FILE_WRITER_HH
#define TOMONODE_DICOM_FILE_WRITER_HH

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace tomonode
{

constexpr size_t file_writer_buffer = 256 << 10;
constexpr unsigned file_writer_buffers = 8;

class FileWriter
{
      public:
	/* data: called for every chunk written; an errno value that it returns counts as an error of the file. */
	FileWriter(int (*data)(void *ctx, const void *bytes, size_t n), void *ctx);
	~FileWriter();
	FileWriter(const FileWriter &) = delete;
	FileWriter &operator=(const FileWriter &) = delete;

	/* Begin the next object, written to fd (-1: dropped). head: written first, not passed to `data`. */
	void begin(int fd, const void *head, size_t n);
	void put(const void *bytes, size_t n);
	/* Wait until everything is written. Return the error (errno value, 0: none), and the size of the file in bytes. */
	int finish(uint64_t *ret_written);

      private:
	struct Buffer {
		size_t n = 0;
		std::unique_ptr<uint8_t[]> bytes;
	};

	void run();
	void next_buffer();
	int write_all(const uint8_t *p, size_t n);
	void consume(const Buffer &b);

	int (*data_)(void *ctx, const void *bytes, size_t n);
	void *ctx_;
	int fd_ = -1;
	int error_ = 0; /* for the current object; owned by the thread while buffers are full, else by the caller */
	uint64_t written_ = 0, pushed_ = 0; /* bytes in the file; bytes already passed to the kernel for write-back */

	Buffer ring_[file_writer_buffers];
	unsigned fill_ = 0, drain_ = 0; /* counters; buffer = counter modulo file_writer_buffers */
	bool end_ = false;
	std::mutex lock_; /* guards fill_, drain_, end_ */
	std::condition_variable filled_, drained_;
	std::thread thread_;
};

} // namespace tomonode
#endif
