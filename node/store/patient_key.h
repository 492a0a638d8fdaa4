/* SPDX-License-Identifier: Apache-2.0 */
/* The key of the digests by which the journal compares patients without holding names or identifiers: SPOOL/patient.key, 32
 * random bytes, mode 0600. Whoever has journal and key can test whether a known patient was here, so that both need the same
 * protection as the images. Without the key (lost, or another one) instances received before cannot be compared with later ones.
 */
#ifndef TOMONODE_NODE_PATIENT_KEY_H
#define TOMONODE_NODE_PATIENT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"

#define PATIENT_KEY_BYTES 32

/* Create the key if there is none of this length. *ret_created: it was. */
int patient_key_create(const char *spool, bool *ret_created, struct err *err);
int patient_key_read(const char *spool, uint8_t ret_key[PATIENT_KEY_BYTES], struct err *err);

#endif
