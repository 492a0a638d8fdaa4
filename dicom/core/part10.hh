/* The bytes of an object that stand before its frames. */
#ifndef TOMONODE_DICOM_PART10_HH
#define TOMONODE_DICOM_PART10_HH

#include <string>

#include "dicom/core/dataset.h"

namespace tomonode
{

/* Preamble, meta header and the data set in Explicit VR Little Endian, as they stand in a file; transfer_syntax is what the meta
 * header says, one that keeps the data set explicit and little endian. EINVAL without SOP class or instance. */
int part10_bytes(struct dicom_file *file, const char *transfer_syntax, std::string *ret_bytes, struct err *err);
/* The data set alone, appended. */
int dataset_bytes(struct dicom_file *file, bool implicit, std::string *ret_bytes, struct err *err);

} // namespace tomonode
#endif
