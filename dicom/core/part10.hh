/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an object that precede its frames. */
#ifndef TOMONODE_DICOM_PART10_HH
#define TOMONODE_DICOM_PART10_HH

#include <string>

#include "dicom/core/dataset.h"

namespace tomonode
{

/* Encode preamble, meta header and the data set in Explicit VR Little Endian, as in a file. transfer_syntax: value for the meta
 * header; its data set must be explicit and little endian. EINVAL: SOP class or instance is missing. */
int part10_bytes(struct dicom_file *file, const char *transfer_syntax, std::string *ret_bytes, struct err *err);
/* Append the encoded data set alone. */
int dataset_bytes(struct dicom_file *file, bool implicit, std::string *ret_bytes, struct err *err);

} // namespace tomonode
#endif
