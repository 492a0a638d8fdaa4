/* SPDX-License-Identifier: Apache-2.0 */
/* Find in a JPEG 2000 code stream whether values were lost, without decoding it: see jpeg2000_loss.cc. */
#ifndef TOMONODE_DICOM_JPEG2000_LOSS_HH
#define TOMONODE_DICOM_JPEG2000_LOSS_HH

#include <vector>

#include "kernels/err.h"

namespace tomonode
{

/* Check a code stream of one component that begins with SOC and SIZ. Return 0 if it is lossless: reversible wavelet, no
 * quantisation, all packets of all tiles, all bit planes of all code-blocks in them; 1 if that cannot be told, because it uses
 * options that are not followed here (packed packet headers, changes of the progression, regions of interest), or because
 * only the last coding passes of a plane, or planes of a few code-blocks, are absent. ENOTSUP: it is lossy, with what is lost, or
 * it has code-blocks of HTJ2K; EBADMSG: its marker segments are damaged or end too early. Memory: some 60 bytes for each
 * code-block of a tile. */
int jpeg2000_find_loss(const std::vector<unsigned char> &code, struct err *err);

} // namespace tomonode
#endif
