/* SPDX-License-Identifier: Apache-2.0 */
/* Write a file atomically: after a crash its name refers to a complete file or does not exist. */
#ifndef TOMONODE_DICOM_NEW_FILE_HH
#define TOMONODE_DICOM_NEW_FILE_HH

#include <cstdint>
#include <string>

#include "kernels/err.h"

namespace tomonode
{

/* Call create(), then put() repeatedly, then publish(). The destructor removes a file that was not published. For many files in
 * one folder, call sync() and link_name() for each of them and sync_folder() once, instead of publish(). */
struct NewFile {
	std::string path; /* final name */
	std::string part; /* name while the file is written, path + ".part"; empty after link_name() */
	int fd = -1;
	uint64_t at = 0;   /* bytes written */
	uint64_t keep = 0; /* bytes of the file system that must stay free; put() and reserve() fail before they take them */

	NewFile() = default;
	NewFile(const NewFile &) = delete;
	NewFile &operator=(const NewFile &) = delete;
	~NewFile();
	/* Called by put() before and after it writes; both or none. */
	void (*writes)(void *ctx, uint64_t at, const void *bytes, size_t n) = nullptr;
	void (*wrote)(void *ctx) = nullptr;
	void *ctx = nullptr;
	int create(const char *path, struct err *err);
	/* Reserve disk space for `size` bytes. ENOSPC, EDQUOT: there is not enough beside `keep`. */
	int reserve(uint64_t size, struct err *err);
	int put(const void *bytes, size_t n, struct err *err); /* append n bytes; ENOSPC: `keep` would not stay free */
	int sync(struct err *err);			       /* fsync() and close() */
	int link_name(struct err *err);			       /* rename `part` to `path` */
	int sync_folder(struct err *err);		       /* fsync() the folder, so that the name is durable */
	int publish(struct err *err);			       /* sync(), link_name() and sync_folder() */

      private:
	uint64_t started_ = 0;	/* bytes already passed to the kernel for write-back */
	bool reserved_ = false; /* the file system has allocated the blocks of all bytes */
	int append(const void *bytes, size_t n, struct err *err);
	int check_free(uint64_t size, struct err *err) const;
	void write_back();
};

} // namespace tomonode
#endif
