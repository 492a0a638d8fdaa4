/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/dicom_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "node/base/folder.h"

#define MARK "DICM"
#define MARK_AT 128
#define MARK_SIZE 4
#define HEAD 256 /* of the meta information, which begins with its length, its version, and this UID (PS3.10 7.1) */

static const char directory[] = "\2\0\2\0UI\24\0001.2.840.10008.1.3.10";

int dicom_mark_find(const char *path, enum dicom_mark *ret_mark, struct err *err)
{
	char head[MARK_SIZE + HEAD];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), MARK_AT);
	int rc = n < 0 ? err_set(err, folder_input_code(errno), "%s: %s", path, strerror(errno)) : 0;

	if (fd >= 0)
		close(fd);
	*ret_mark = n < MARK_SIZE || memcmp(head, MARK, MARK_SIZE) != 0		? DICOM_MARK_NONE
		    : memmem(head, (size_t)n, directory, sizeof(directory) - 1) ? DICOM_MARK_DIRECTORY
										: DICOM_MARK_OBJECT;
	return rc;
}
