/* SPDX-License-Identifier: Apache-2.0 */
/* jpegls.cc - encode one frame with CharLS' C interface.
 *
 * DCMTK contains its own, older CharLS (libdcmtkcharls), which encodes a frame of one line wrongly and writes past its buffer.
 * Both libraries export JpegLsDecode and three other functions, with different arguments. DCMTK must use those of its own
 * library: the program is linked with libdcmtkcharls before libcharls (dicom/CMakeLists.txt), and jpegls_link_check() checks it
 * at start. The functions called here (charls_...) exist only in libcharls. */
#include "dicom/pixels/jpegls.h"

#include <cerrno>
#include <cstring>

#include <charls/charls.h>
#include <dlfcn.h>

#include "dicom/pixels/jpegls.hh"

namespace
{

struct Encoder {
	charls_jpegls_encoder *handle = charls_jpegls_encoder_create();

	~Encoder()
	{
		charls_jpegls_encoder_destroy(handle);
	}
};

} // namespace

namespace tomonode
{

int jpegls_link_check(struct err *err)
{
	void *used = dlsym(RTLD_DEFAULT, "JpegLsDecode");
	Dl_info where = {};

	if (used && dladdr(used, &where) && where.dli_fname && !strstr(where.dli_fname, "dcmtkcharls"))
		return err_set(err, ELIBBAD, "this program was linked wrongly: DCMTK would decode JPEG-LS with %s",
			       where.dli_fname);
	return 0;
}

} // namespace tomonode

/* A Golomb code of a sample has at most 2 * (16 + 16) bits (ISO 14495-1 A.2.1), which are 8 bytes; the ninth is for the bit that
 * is inserted after each byte FF. */
size_t jpegls_bound(long columns, long rows)
{
	return (size_t)columns * (size_t)rows * 9 + 4096;
}

int jpegls_encode(const uint16_t *values, long columns, long rows, int bits, void *ret_code, size_t size, size_t *ret_n,
		  struct err *err)
{
	charls_frame_info info = {(uint32_t)columns, (uint32_t)rows, bits, 1};
	charls_jpegls_errc rc;
	size_t n = 0;
	Encoder e;

	if (columns < 1 || rows < 1 || columns > 65535 || rows > 65535 || bits < 2 || bits > 16)
		return err_set(err, EINVAL, "JPEG-LS: a frame of %ld x %ld with %d bits", columns, rows, bits);
	if (!e.handle)
		return err_set(err, ENOMEM, "JPEG-LS: no memory for an encoder");
	rc = charls_jpegls_encoder_set_frame_info(e.handle, &info);
	if (rc == charls::jpegls_errc::success)
		rc = charls_jpegls_encoder_set_destination_buffer(e.handle, ret_code, size);
	if (rc == charls::jpegls_errc::success)
		rc = charls_jpegls_encoder_encode_from_buffer(e.handle, values, (size_t)columns * (size_t)rows * 2, 0);
	if (rc == charls::jpegls_errc::success)
		rc = charls_jpegls_encoder_get_bytes_written(e.handle, &n);
	if (rc != charls::jpegls_errc::success)
		return err_set(err, rc == charls::jpegls_errc::destination_buffer_too_small ? ENOBUFS : EIO,
			       "JPEG-LS: a frame of %ld x %ld cannot be encoded: %s", columns, rows,
			       charls_get_error_message(rc));
	*ret_n = n;
	return 0;
}
