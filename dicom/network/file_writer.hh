/* SPDX-License-Identifier: Apache-2.0 */
/* Write a received data set to its file in a separate thread, while the next bytes are received. Private to dicom/ (C++).
 *
 * For each object call begin(), put() repeatedly, finish(). put() copies the bytes into a ring of buffers. The thread writes full
 * buffers in order and passes them to the callback `data` (which computes a digest). put() never fails: the first error is
 * stored, later bytes are dropped, and finish() returns the error. */
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

constexpr size_t file_writer_buffer = 256 << 10; /* bytes of a buffer */
constexpr unsigned file_writer_buffers = 8;	 /* number of buffers */

class FileWriter
{
      public:
	/* data: called with each chunk that was written. If it returns an errno value, this is treated as an error of the file.
	 */
	FileWriter(int (*data)(void *ctx, const void *bytes, size_t n), void *ctx);
	~FileWriter();
	FileWriter(const FileWriter &) = delete;
	FileWriter &operator=(const FileWriter &) = delete;

	/* Begin an object, which is written to fd (-1: its bytes are dropped). head: n bytes that are written first and not
	 * passed to `data`. */
	void begin(int fd, const void *head, size_t n);
	void put(const void *bytes, size_t n);
	/* Wait until everything is written. Return the first error (errno value; 0: none) and the size of the file in bytes. */
	int finish(uint64_t *ret_written);

      private:
	struct Buffer {
		size_t n = 0;
		std::unique_ptr<uint8_t[]> bytes;
	};

	void write_buffers();
	void next_buffer();
	int write_all(const uint8_t *p, size_t n);
	void write_buffer(const Buffer &b);

	int (*data_)(void *ctx, const void *bytes, size_t n);
	void *ctx_;
	int fd_ = -1;
	int error_ = 0; /* of the current object; used by the thread while there are full buffers, else by the caller */
	uint64_t written_ = 0,
		 write_back_ = 0; /* bytes in the file; bytes that the kernel was already asked to write to the disk */

	Buffer ring_[file_writer_buffers];
	unsigned n_filled_ =
		0; /* number of buffers filled so far; the index of a buffer is the number modulo file_writer_buffers */
	unsigned n_written_ = 0; /* number of buffers written so far */
	bool stop_ = false;	 /* the thread shall end */
	std::mutex lock_;	 /* guards n_filled_, n_written_, stop_ */
	std::condition_variable filled_, drained_;
	std::thread thread_;
};

} // namespace tomonode
#endif
