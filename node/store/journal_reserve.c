/* journal_reserve.c - blocks of the disk that belong to the journal before it needs them.
 *
 * A commit writes to the write-ahead log. SQLite starts that file again from its beginning after each checkpoint and shortens it
 * only when the last connection goes, so that blocks that were once allocated for it stay the journal's while the node runs. They
 * are allocated behind the end of the file (FALLOC_FL_KEEP_SIZE), where SQLite does not look. A checkpoint that cannot let the
 * database file grow on a full disk fails and is tried again at the next commit; until then rows go on into the reserved log: at
 * 4 KiB a page and about 3 pages a commit, 16 MiB take 700 of them beyond the 1000 pages after which checkpoints begin.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/store/journal_internal.h"

int journal_reserve(struct journal *j, uint64_t bytes, struct err *err)
{
	char path[sizeof(j->path) + 8];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s-wal", j->path);
	fd = open(path, O_WRONLY | O_CLOEXEC); /* of this file SQLite holds no locks that a close could drop */
	if (fd < 0)
		return err_set(err, errno, "journal %s: %s", path, strerror(errno));
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0)
		ret = err_set(err, errno, "journal %s: %llu bytes cannot be reserved: %s", path, (unsigned long long)bytes,
			      strerror(errno));
	close(fd);
	return ret;
}
