/* SPDX-License-Identifier: Apache-2.0 */
/* A Part 10 file to be sent: the values of its meta header, and its data set in pieces of consecutive P-DATA-TF PDUs. Private to
 * dicom/ (C++). */
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
	off_t data; /* offset of the data set */
	off_t size; /* size of the file */
	char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE], transfer_syntax[DICOM_UID_SIZE];
};

int outgoing_open(Outgoing *f, const char *path, struct err *err); /* if f->fd < 0 nothing needs closing */
void outgoing_close(Outgoing *f);

struct OutgoingPiece {
	size_t most;   /* data bytes per PDU */
	size_t n_pdus; /* PDUs of a full piece */
	std::unique_ptr<uint8_t[]> bytes;
};

/* most: largest number of data bytes that the peer accepts in a PDU. */
void outgoing_piece_make(OutgoingPiece *p, size_t most);
/* Fill `p` from byte `at` of the file on, for the presentation context `id`; return how many data bytes it holds, and how many
 * bytes in total. 0, or a negative errno value. */
int outgoing_piece_fill(OutgoingPiece *p, const Outgoing *f, uint8_t id, off_t at, size_t *ret_data, size_t *ret_bytes);

} // namespace tomonode
#endif
