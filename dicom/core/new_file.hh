/* A file that is there whole or not at all. */
#ifndef TOMONODE_DICOM_NEW_FILE_HH
#define TOMONODE_DICOM_NEW_FILE_HH

#include <cstdint>
#include <string>

#include "kernels/err.h"

namespace tomonode
{

/* create, put ..., publish; what was not published is removed with the object. sync and link_name are publish in two steps, for
 * many files of a folder. */
struct NewFile {
	std::string path, part;
	int fd = -1;
	uint64_t at = 0; /* bytes written */

	NewFile() = default;
	NewFile(const NewFile &) = delete;
	NewFile &operator=(const NewFile &) = delete;
	~NewFile();
	int create(const char *path, struct err *err);
	/* A disk that cannot hold `size` bytes shows now. */
	int reserve(uint64_t size, struct err *err);
	int put(const void *bytes, size_t n, struct err *err);
	int sync(struct err *err); /* fsync, close */
	int link_name(struct err *err);
	int sync_folder(struct err *err);
	int publish(struct err *err); /* all three */

      private:
	uint64_t started_ = 0; /* of the bytes written, handed to write-back */
	void write_back();
};

} // namespace tomonode
#endif
