/* SPDX-License-Identifier: Apache-2.0 */
/* Write a file atomically: it appears under its name complete or not at all. */
#ifndef TOMONODE_DICOM_NEW_FILE_HH
#define TOMONODE_DICOM_NEW_FILE_HH

#include <cstdint>
#include <string>

#include "kernels/err.h"

namespace tomonode
{

/* Call create(), put() repeatedly, publish(). The destructor removes an unpublished file. For many files in a folder, sync(),
 * link_name() and sync_folder() replace publish(). */
struct NewFile {
	std::string path, part;
	int fd = -1;
	uint64_t at = 0; /* bytes written */

	NewFile() = default;
	NewFile(const NewFile &) = delete;
	NewFile &operator=(const NewFile &) = delete;
	~NewFile();
	int create(const char *path, struct err *err);
	/* Reserve space; fails if the disk cannot hold `size` bytes. */
	int reserve(uint64_t size, struct err *err);
	int put(const void *bytes, size_t n, struct err *err);
	int sync(struct err *err); /* fsync() and close() */
	int link_name(struct err *err);
	int sync_folder(struct err *err);
	int publish(struct err *err); /* sync(), link_name() and sync_folder() */

      private:
	uint64_t started_ = 0; /* bytes already passed to the kernel for write-back */
	void write_back();
};

} // namespace tomonode
#endif
