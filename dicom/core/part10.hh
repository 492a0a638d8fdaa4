/* SPDX-License-Identifier: Apache-2.0 */
/* Encode an object without its pixel data. */
#ifndef TOMONODE_DICOM_PART10_HH
#define TOMONODE_DICOM_PART10_HH

#include <string>

#include "dicom/core/dataset.h"

namespace tomonode
{

/* Encode preamble, meta header and data set as in a file; the data set is in Explicit VR Little Endian. transfer_syntax: UID for
 * the meta header, of a transfer syntax that encodes data sets in this way. EINVAL: SOP class or instance UID is missing. */
int part10_bytes(struct dicom_file *file, const char *transfer_syntax, std::string *ret_bytes, struct err *err);
/* Append the encoded data set to *ret_bytes, without preamble and meta header. implicit: in Implicit VR Little Endian, else
 * Explicit. */
int dataset_bytes(struct dicom_file *file, bool implicit, std::string *ret_bytes, struct err *err);

} // namespace tomonode
#endif
