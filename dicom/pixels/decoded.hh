/* An encapsulated object as the bytes of its plain data set, for peers that do not take the encoding. */
#ifndef TOMONODE_DICOM_DECODED_HH
#define TOMONODE_DICOM_DECODED_HH

#include <cstdint>
#include <memory>

#include "kernels/err.h"

namespace tomonode
{

/* Which encodings: what another system can be given plain without a loss, JPEG-LS lossless. */
bool decoded_from(const char *transfer_syntax);

class Decoded
{
      public:
	virtual ~Decoded() = default;
	virtual uint64_t size() const = 0; /* bytes of the data set */
	/* The next bytes, all n of them, in order. */
	virtual int read(void *ret_bytes, size_t n, struct err *err) = 0;
};

/* Explicit or implicit VR little endian. Frames are decoded ahead by a few threads, each with a frame of memory. ENOTSUP: 8-bit
 * pixels, or elements behind the pixel data. */
int decoded_open(const char *path, bool implicit, std::unique_ptr<Decoded> *ret_decoded, struct err *err);

} // namespace tomonode
#endif
