/* A Part 10 file on its way out: what its meta header says, and its data set in pieces, as P-DATA-TF PDUs one behind the other.
 * Private to dicom/ (C++).
 */
#ifndef TOMONODE_DICOM_OUTGOING_HH
#define TOMONODE_DICOM_OUTGOING_HH

#include <memory>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dicom/core/dataset.h"

struct outgoing {
	int fd;
	off_t data; /* where the data set begins */
	off_t size; /* of the file */
	char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE], transfer_syntax[DICOM_UID_SIZE];
};

int outgoing_open(struct outgoing *f, const char *path, struct err *err); /* f->fd < 0: nothing to close */
void outgoing_close(struct outgoing *f);

struct outgoing_piece {
	size_t most;   /* data bytes of a PDU */
	size_t n_pdus; /* of a full piece */
	std::unique_ptr<uint8_t[]> bytes;
};

/* most: data bytes that the peer takes in a PDU. */
void outgoing_piece_make(struct outgoing_piece *p, size_t most);
/* Fills `p` from byte `at` of the file on, for the presentation context `id`; how many data bytes it holds, and how many bytes in
 * all. 0, or a negative errno. */
int outgoing_piece_fill(struct outgoing_piece *p, const struct outgoing *f, uint8_t id, off_t at, size_t *ret_data,
			size_t *ret_bytes);

#endif
