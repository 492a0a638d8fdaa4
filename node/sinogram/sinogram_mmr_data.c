/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr_data.c - where the text headers and the data of an mMR acquisition are.
 *
 * - Of an object the text header is in (0029,1010), or, if this is empty or a CSA header ("SV10"), in (0029,1110); the data are in
 *   (7FE1,1010), or in a file with the same name and the ending .bf. Such a file cannot be sent with DICOM.
 * - Of extracted files the data are beside their header (sinogram_mmr_files.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/core/bulk.h"
#include "node/base/folder.h"
#include "node/base/text_file.h"
#include "node/sinogram/sinogram_mmr_internal.h"

#define BIG_ENDIAN_SYNTAX "1.2.840.10008.1.2.2"
#define TAG_DATA DICOM_TAG(0x7FE1, 0x1010)

/* Read an element of binary data or text. Returns its size; 0: missing or empty. */
static int64_t read_element(const struct dicom_file *file, uint32_t tag, char *ret, size_t size, struct err *err)
{
	uint64_t n = 0;
	int rc;

	if (!dicom_bulk_size(file, tag, &n)) {
		rc = dicom_get_text(dicom_root((struct dicom_file *)file), tag, ret, size, err);
		return rc > 0 ? (int64_t)strlen(ret) : rc;
	}
	rc = dicom_bulk_read(file, tag, 0, ret, n < size ? (size_t)n : size, err);
	return rc < 0 ? rc : (int64_t)n;
}

static int read_text(const struct dicom_file *file, char *ret, size_t *ret_size, struct err *err)
{
	static const uint32_t tags[] = {DICOM_TAG(0x0029, 0x1010), DICOM_TAG(0x0029, 0x1110)};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		int64_t n = read_element(file, tags[i], ret, MMR_TEXT_MAX, err);

		if (n < 0)
			return (int)n;
		if (n == 0 || (n >= 4 && !memcmp(ret, "SV10", 4)))
			continue;
		if (n > MMR_TEXT_MAX)
			return err_set(err, EBADMSG, "the text header has %lld bytes; allowed: %d", (long long)n, MMR_TEXT_MAX);
		*ret_size = (size_t)n;
		return 0;
	}
	return err_set(err, EBADMSG, "neither (0029,1010) nor (0029,1110) contains the text header");
}

int sinogram_mmr_text(const struct sinogram *s, enum sinogram_mmr_type type, char **ret_text, size_t *ret_size, struct err *err)
{
	const struct dicom_file *file;

	if (mmr_of(s)->header[type])
		return text_file_read(mmr_of(s)->header[type], MMR_TEXT_MAX, "header", ret_text, ret_size, err);
	file = s->files[mmr_of(s)->file[type]];
	if (!strcmp(dicom_transfer_syntax(file), BIG_ENDIAN_SYNTAX)) /* swaps the bytes of OW, but not of OB */
		return err_set(err, ENOTSUP, "raw data in Explicit VR Big Endian; send them in a little-endian transfer syntax");
	*ret_text = malloc(MMR_TEXT_MAX);
	return *ret_text ? read_text(file, *ret_text, ret_size, err) : err_set(err, ENOMEM, "no memory for a header");
}

/* Return the path with the ending .bf; NULL: no memory. */
static char *bf_path(const char *path)
{
	const char *dot = strrchr(file_name(path), '.');
	char *ret;

	return asprintf(&ret, "%.*s.bf", (int)(dot ? dot - path : (ptrdiff_t)strlen(path)), path) < 0 ? NULL : ret;
}

/* Use a file with the data if it has their size. Returns the size of what is there; 0: nothing. */
static uint64_t open_data(const struct sinogram *s, enum sinogram_mmr_type type, char *path, uint64_t needed)
{
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not stop it */

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == needed) {
		mmr_of(s)->data[type] = path;
		mmr_of(s)->fd[type] = fd;
		return needed;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return fd >= 0 ? (uint64_t)st.st_size : 0;
}

const char *sinogram_mmr_name(const struct sinogram *s, enum sinogram_mmr_type type)
{
	return file_name(mmr_of(s)->header[type] ? mmr_of(s)->header[type] : s->paths[mmr_of(s)->file[type]]);
}

/* Find the data beside their header, and check their size. */
static int find_extracted(const struct sinogram *s, enum sinogram_mmr_type type, const char *named, uint64_t needed,
			  struct err *err)
{
	char *path = NULL, name[256];
	int rc = sinogram_mmr_find_data(mmr_of(s)->header[type], named, &path, err);
	uint64_t there;

	if (rc < 0) {
		err_prefix(err, "%s", sinogram_mmr_name(s, type));
		return rc;
	}
	snprintf(name, sizeof(name), "%s", file_name(path));
	there = open_data(s, type, path, needed);
	if (there != needed)
		return err_set(err, EBADMSG, "%s: %s has %llu bytes, the header requires %llu", sinogram_mmr_name(s, type), name,
			       (unsigned long long)there, (unsigned long long)needed);
	return sinogram_describe_file(mmr_of(s)->data[type], &mmr_of(s)->source[type], err);
}

/* Find where the data of an object are, and check their size. */
static int find_of_object(const struct sinogram *s, enum sinogram_mmr_type type, uint64_t needed, struct err *err)
{
	const char *path = s->paths[mmr_of(s)->file[type]];
	uint64_t inside = 0;
	char *bf;

	dicom_bulk_size(s->files[mmr_of(s)->file[type]], TAG_DATA, &inside);
	if (inside == needed)
		return 0;
	bf = bf_path(path);
	if (!bf)
		return err_set(err, ENOMEM, "no memory for a path");
	if (open_data(s, type, bf, needed) == needed)
		return sinogram_describe_file(mmr_of(s)->data[type], &mmr_of(s)->source[type], err);
	return err_set(err, EBADMSG, "%s: (7FE1,1010) has %llu bytes, its header requires %llu%s", file_name(path),
		       (unsigned long long)inside, (unsigned long long)needed,
		       inside < needed / 2 ? ": the data are in the file with the ending .bf that the scanner writes beside the "
					     "object, which cannot be sent with DICOM; use `tomonode recon` on a folder with both"
					   : "");
}

int sinogram_mmr_find(const struct sinogram *s, enum sinogram_mmr_type type, const char *named, uint64_t needed, struct err *err)
{
	return mmr_of(s)->header[type] ? find_extracted(s, type, named, needed, err) : find_of_object(s, type, needed, err);
}

int sinogram_mmr_read(const struct sinogram *s, enum sinogram_mmr_type type, uint64_t offset, uint8_t *ret, size_t n,
		      struct err *err)
{
	int fd = mmr_of(s)->fd[type];
	size_t done = 0;

	if (!mmr_of(s)->data[type])
		return dicom_bulk_read(s->files[mmr_of(s)->file[type]], TAG_DATA, offset, ret, n, err);
	while (done < n) {
		ssize_t got = pread(fd, ret + done, n - done, (off_t)(offset + done));

		if (got <= 0)
			return err_set(err, got < 0 ? errno : EBADMSG, "cannot read %s: %s", file_name(mmr_of(s)->data[type]),
				       got < 0 ? strerror(errno) : "the file ends early");
		done += (size_t)got;
	}
	return 0;
}
