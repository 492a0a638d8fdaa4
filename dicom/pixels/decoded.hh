/* SPDX-License-Identifier: Apache-2.0 */
/* Read an encapsulated object as the bytes of its unencapsulated data set, for peers that do not accept the encoding. */
#ifndef TOMONODE_DICOM_DECODED_HH
#define TOMONODE_DICOM_DECODED_HH

#include <cstdint>
#include <memory>

#include "kernels/err.h"

namespace tomonode
{

/* Is the encoding lossless and decodable for another system? Only JPEG-LS lossless. */
bool decoded_from(const char *transfer_syntax);

class Decoded
{
      public:
	virtual ~Decoded() = default;
	virtual uint64_t size() const = 0; /* bytes of the data set */
	/* Return the next n bytes, in order. */
	virtual int read(void *ret_bytes, size_t n, struct err *err) = 0;
};

/* Open for explicit or implicit VR little endian. A few threads decode frames in advance, each with memory for one frame.
 * ENOTSUP: 8-bit pixels, or elements after the pixel data. */
int decoded_open(const char *path, bool implicit, std::unique_ptr<Decoded> *ret_decoded, struct err *err);

} // namespace tomonode
#endif
