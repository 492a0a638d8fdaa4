/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_source_file.c - the name, size and SHA-256 of a file that is not an object, for the provenance. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dicom/core/bulk.h"
#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

#define PIECE ((size_t)1 << 20)

int sinogram_hash_file(const char *path, uint64_t *ret_bytes, char ret_hash[65], struct err *err)
{
	struct dicom_digest *digest = dicom_digest_new();
	uint8_t *piece = malloc(PIECE);
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	ssize_t got = 1;

	*ret_bytes = 0;
	if (fd < 0)
		rc = err_set(err, folder_input_code(errno), "cannot open %s: %s", file_name(path), strerror(errno));
	else if (!digest || !piece)
		rc = err_set(err, ENOMEM, "no memory to read %s", file_name(path));
	while (rc == 0 && got > 0) {
		got = read(fd, piece, PIECE);
		if (got < 0)
			rc = err_set(err, errno, "cannot read %s: %s", file_name(path), strerror(errno));
		else
			dicom_digest_add(digest, piece, (size_t)got);
		*ret_bytes += got > 0 ? (uint64_t)got : 0;
	}
	if (rc == 0)
		dicom_digest_hex(digest, ret_hash);
	if (fd >= 0)
		close(fd);
	dicom_digest_free(digest);
	free(piece);
	return rc;
}

int sinogram_describe_file(const char *path, char **ret_text, struct err *err)
{
	uint64_t bytes = 0;
	char hash[65];
	int rc = sinogram_hash_file(path, &bytes, hash, err);

	if (rc == 0 && asprintf(ret_text, "%s %llu bytes SHA-256 %s", file_name(path), (unsigned long long)bytes, hash) < 0) {
		*ret_text = NULL;
		rc = err_set(err, ENOMEM, "no memory for the name of a file");
	}
	return rc;
}

int sinogram_origin(const char *path, uint64_t bytes, const char *hash, char **ret_text, struct err *err)
{
	char name[100];

	file_name_plain(path, name, sizeof(name));
	if (asprintf(ret_text, "%s (%llu bytes, SHA-256 %s)", name, (unsigned long long)bytes, hash) >= 0)
		return 0;
	*ret_text = NULL;
	return err_set(err, ENOMEM, "no memory for the name of a file");
}
