/* SPDX-License-Identifier: Apache-2.0 */
/* Read a Part 10 file for sending: the UIDs of its meta header, and its data set in pieces. A piece is a buffer of several
 * consecutive P-DATA-TF PDUs. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_OUTGOING_HH
#define TOMONODE_DICOM_OUTGOING_HH

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/types.h>

#include "dicom/core/dataset.h"

namespace tomonode
{

struct Outgoing {
	int fd;
	off_t data; /* offset of the data set, bytes */
	off_t size; /* size of the file, bytes */
	char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE], transfer_syntax[DICOM_UID_SIZE];
};

int outgoing_open(Outgoing *f, const char *path, struct err *err); /* call outgoing_close() also after an error */
void outgoing_close(Outgoing *f);

struct OutgoingPiece {
	size_t max_data; /* largest number of data bytes per PDU */
	size_t n_pdus;	 /* largest number of PDUs in the piece */
	std::unique_ptr<uint8_t[]> bytes;
};

/* Allocate a piece. max_data: largest number of data bytes that the peer accepts in a PDU. */
void outgoing_piece_init(OutgoingPiece *p, size_t max_data);
/* Fill `p` with PDUs for the presentation context `id`; their data begin at offset `at` of the file. *ret_data: number of data
 * bytes; *ret_bytes: number of bytes with the headers of the PDUs. Return 0 or a negative errno value. */
int outgoing_piece_fill(OutgoingPiece *p, const Outgoing *f, uint8_t id, off_t at, size_t *ret_data, size_t *ret_bytes);

} // namespace tomonode
#endif
