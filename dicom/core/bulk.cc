/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.cc - read and write large values in pieces.
 *
 * Reading: layout.cc has stored the offsets of the values when the file was opened. Writing: the data set is encoded without the
 * large value, and the offset at which its element belongs is found by its tag; then the elements before it, its header, its
 * value and the elements after it are written. */
#include "dicom/core/bulk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <openssl/evp.h>

#include "dicom/core/element.hh"
#include "dicom/core/internal.hh"
#include "dicom/core/new_file.hh"
#include "dicom/core/part10.hh"

using namespace tomonode;

constexpr size_t piece_size = 4 << 20; /* bytes that are requested from the caller at a time */

static const BulkValue *find_value(const struct dicom_file *file, uint32_t tag)
{
	const std::vector<BulkValue> &all = file->layout.bulk; /* tags ascend */
	auto at = std::lower_bound(all.begin(), all.end(), tag, [](const BulkValue &v, uint32_t t) { return v.tag < t; });

	return at != all.end() && at->tag == tag ? &*at : nullptr;
}

/* Return the offset at which the element belongs in a Part 10 file written by tomonode: explicit VR little endian, explicit
 * lengths, so that every element can be skipped by its length. */
static size_t insert_offset(const std::string &bytes, uint32_t tag)
{
	auto *p = reinterpret_cast<const unsigned char *>(bytes.data());
	size_t at = 132 + 12 + le32(p + 140); /* first byte after the meta header; its group length is at 140 */
	ElementHeader e;

	while (at < bytes.size() && element_header(p + at, bytes.size() - at, true, false, &e) && e.tag < tag)
		at += e.size + e.length;
	return at;
}

bool dicom_bulk_size(const struct dicom_file *file, uint32_t tag, uint64_t *ret_size)
{
	const BulkValue *value = find_value(file, tag);

	if (value)
		*ret_size = value->span.size;
	return value != nullptr;
}

int dicom_bulk_read(const struct dicom_file *file, uint32_t tag, uint64_t offset, void *ret_bytes, size_t n, struct err *err)
{
	return guarded(err, "dicom_bulk_read", [&] {
		const BulkValue *value = find_value(file, tag);

		if (!value)
			return err_set(err, ENOENT, "%s: the data set has no such value of bytes", tag_name(tag).c_str());
		if (offset > value->span.size || n > value->span.size - offset)
			return err_set(err, EINVAL, "%s: %zu bytes at offset %llu are beyond its size of %llu",
				       tag_name(tag).c_str(), n, (unsigned long long)offset,
				       (unsigned long long)value->span.size);
		return file->source->read(value->span.offset + offset, ret_bytes, n, err);
	});
}

int dicom_write_bulk(const char *path, struct dicom_file *file, uint32_t tag, uint64_t size,
		     int (*read)(void *ctx, void *ret_bytes, size_t n, struct err *err), void *ctx, struct err *err)
{
	return guarded(err, "dicom_write_bulk", [&] {
		std::vector<char> buffer((size_t)std::min<uint64_t>(size, piece_size));
		std::string bytes;
		NewFile out;
		int r;

		if (size > DICOM_BULK_MAX)
			return err_set(err, EFBIG, "%s: %llu bytes, but a value holds at most %llu", tag_name(tag).c_str(),
				       (unsigned long long)size, (unsigned long long)DICOM_BULK_MAX);
		if (dicom_has(dicom_root(file), tag) || file->layout.has_pixels)
			return err_set(err, EINVAL, "%s: it exists already, or the data set has pixel data",
				       tag_name(tag).c_str());
		r = part10_bytes(file, UID_LittleEndianExplicitTransferSyntax, &bytes, err);
		if (r < 0)
			return r;
		size_t place = insert_offset(bytes, tag);
		std::string head;
		put_element(&head, tag, "OB", (uint32_t)(size + (size & 1)));
		if ((r = out.create(path, err)) < 0 ||
		    (r = out.reserve(bytes.size() + head.size() + size + (size & 1), err)) < 0 ||
		    (r = out.put(bytes.data(), place, err)) < 0 || (r = out.put(head.data(), head.size(), err)) < 0)
			return r;
		for (uint64_t done = 0; done < size;) {
			size_t n = (size_t)std::min<uint64_t>(size - done, buffer.size());

			if ((r = read(ctx, buffer.data(), n, err)) < 0 || (r = out.put(buffer.data(), n, err)) < 0)
				return r;
			done += n;
		}
		r = size & 1 ? out.put("", 1, err) : 0;
		if (r == 0)
			r = out.put(bytes.data() + place, bytes.size() - place, err);
		return r < 0 ? r : out.publish(err);
	});
}

struct dicom_digest {
	EVP_MD_CTX *ctx;
};

struct dicom_digest *dicom_digest_new(void)
{
	auto *d = new (std::nothrow) dicom_digest{EVP_MD_CTX_new()};

	if (d && (!d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), nullptr) != 1))
		d = dicom_digest_free(d);
	return d;
}

void dicom_digest_add(struct dicom_digest *d, const void *bytes, size_t n)
{
	/* Abort if SHA-256 fails: a wrong digest must not be used (see also uid.cc). */
	if (EVP_DigestUpdate(d->ctx, bytes, n) != 1)
		abort();
}

void dicom_digest_hex(struct dicom_digest *d, char ret_hex[65])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	if (EVP_DigestFinal_ex(d->ctx, digest, &size) != 1 || size != 32)
		abort();
	for (int i = 0; i < 32; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

struct dicom_digest *dicom_digest_free(struct dicom_digest *d)
{
	if (d)
		EVP_MD_CTX_free(d->ctx);
	delete d;
	return nullptr;
}
