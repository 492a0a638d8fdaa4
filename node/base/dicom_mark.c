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

int dicom_mark_find(const char *path, bool *ret_found, struct err *err)
{
	char mark[MARK_SIZE] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, mark, sizeof(mark), MARK_AT);
	int rc = n < 0 ? err_set(err, folder_input_code(errno), "%s: %s", path, strerror(errno)) : 0;

	if (fd >= 0)
		close(fd);
	*ret_found = n == MARK_SIZE && !memcmp(mark, MARK, MARK_SIZE);
	return rc;
}
