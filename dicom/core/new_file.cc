/* SPDX-License-Identifier: Apache-2.0 */
/* new_file.cc - create PATH.part (an old file of that name is removed), write and sync it, rename it to PATH, and sync the
 * folder. PATH is then complete or absent, also after a crash. After every 8 MiB the kernel is asked to begin writing them to the
 * disk ("write-back"), so that the final sync takes little time. */
#include "dicom/core/new_file.hh"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace tomonode
{

constexpr size_t block = 4 << 20;	      /* bytes written by one call */
constexpr uint64_t write_back_step = 8 << 20; /* bytes */

NewFile::~NewFile()
{
	if (fd >= 0)
		close(fd);
	if (!part.empty())
		unlink(part.c_str());
}

void NewFile::write_back()
{
	if (at - started_ < write_back_step)
		return;
	/* only a hint: where it is not supported, the final sync writes everything */
	sync_file_range(fd, (off_t)started_, (off_t)(at - started_), SYNC_FILE_RANGE_WRITE);
	started_ = at;
}

/* Check that the free space has `size` bytes more than `keep`. A file system that does not return its free space passes. */
int NewFile::check_free(uint64_t size, struct err *err) const
{
	struct statfs fs;
	uint64_t left;

	if (fstatfs(fd, &fs) < 0)
		return 0;
	left = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	if (left >= size + keep)
		return 0;
	return err_set(err, ENOSPC, "%s: %llu bytes to write, but %llu are free, of which %llu must stay free", part.c_str(),
		       (unsigned long long)size, (unsigned long long)left, (unsigned long long)keep);
}

/* The free space is checked before each call of write(), because other processes write to the same file system meanwhile. */
int NewFile::append(const void *bytes, size_t n, struct err *err)
{
	auto *p = static_cast<const char *>(bytes);

	while (n > 0) {
		size_t chunk = n < block ? n : block;
		int r = keep > 0 && !reserved_ ? check_free(chunk, err) : 0;
		ssize_t done;

		if (r < 0)
			return r;
		done = write(fd, p, chunk);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_set(err, errno, "%s: writing at offset %llu: %s%s", part.c_str(), (unsigned long long)at,
				       strerror(errno), errno == EFBIG ? " (limit of file sizes: ulimit -f, LimitFSIZE)" : "");
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
		write_back();
	}
	return 0;
}

int NewFile::put(const void *bytes, size_t n, struct err *err)
{
	int r;

	if (writes)
		writes(ctx, at, bytes, n);
	r = append(bytes, n, err);
	if (writes)
		wrote(ctx);
	return r;
}

int NewFile::create(const char *file_path, struct err *err)
{
	std::string name = std::string(file_path) + ".part";

	path = file_path;
	if (unlink(name.c_str()) < 0 && errno != ENOENT)
		return err_set(err, errno, "%s: removing the file of an earlier attempt: %s", name.c_str(), strerror(errno));
	fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", name.c_str(), strerror(errno));
	part = name;
	return 0;
}

/* Reserving also makes the file contiguous on the disk. On tmpfs it would take as long as writing: there only the free space is
 * checked, and another process may use it before this file is written. The second check is for files that are reserved at the
 * same time: each of them may have passed the first one. */
int NewFile::reserve(uint64_t size, struct err *err)
{
	struct statfs fs;
	int r = check_free(size, err);

	if (r < 0 || fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC)
		return r;
	reserved_ = fallocate(fd, 0, 0, (off_t)size) == 0;
	if (!reserved_ && (errno == ENOSPC || errno == EDQUOT))
		return err_set(err, errno, "%s: reserving %llu bytes: %s", part.c_str(), (unsigned long long)size,
			       strerror(errno));
	return reserved_ ? check_free(0, err) : 0;
}

int NewFile::sync(struct err *err)
{
	int file = fd;

	if (fsync(file) < 0)
		return err_set(err, errno, "%s: fsync: %s", part.c_str(), strerror(errno));
	fd = -1;
	if (close(file) < 0)
		return err_set(err, errno, "%s: close: %s", part.c_str(), strerror(errno));
	return 0;
}

int NewFile::link_name(struct err *err)
{
	if (rename(part.c_str(), path.c_str()) < 0)
		return err_set(err, errno, "%s: renaming to %s: %s", part.c_str(), path.c_str(), strerror(errno));
	part.clear();
	return 0;
}

int NewFile::sync_folder(struct err *err)
{
	size_t slash = path.rfind('/');
	std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
	int r = 0, folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder_fd < 0 || fsync(folder_fd) < 0)
		r = err_set(err, errno, "%s: syncing the folder: %s", folder.c_str(), strerror(errno));
	if (folder_fd >= 0)
		close(folder_fd);
	return r;
}

int NewFile::publish(struct err *err)
{
	int r = sync(err);

	if (r == 0)
		r = link_name(err);
	return r < 0 ? r : sync_folder(err);
}

} // namespace tomonode
