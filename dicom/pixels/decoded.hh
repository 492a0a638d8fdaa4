/* SPDX-License-Identifier: Apache-2.0 */
/* Decode an object with compressed pixel data while it is sent to a peer that does not accept the compression: the bytes of the
 * uncompressed data set, in order. */
#ifndef TOMONODE_DICOM_DECODED_HH
#define TOMONODE_DICOM_DECODED_HH

#include <cstdint>
#include <memory>

#include "kernels/err.h"

namespace tomonode
{

/* Can objects in this transfer syntax be opened by decoded_open()? True for JPEG-LS lossless only. */
bool decoded_supports(const char *transfer_syntax);

class Decoded
{
      public:
	virtual ~Decoded() = default;
	virtual uint64_t size() const = 0; /* size of the uncompressed data set, bytes */
	/* Return the next n bytes, in order. */
	virtual int read(void *ret_bytes, size_t n, struct err *err) = 0;
};

/* Open the file at `path`; the bytes will be in Implicit VR Little Endian or else Explicit. At most 8 threads decode frames in
 * advance, each into memory for one frame. ENOTSUP: 8-bit pixels, or elements after the pixel data. */
int decoded_open(const char *path, bool implicit, std::unique_ptr<Decoded> *ret_decoded, struct err *err);

} // namespace tomonode
#endif
