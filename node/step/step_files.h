/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a step and its files: who may change them, and what they are. */
#ifndef TOMONODE_NODE_STEP_FILES_H
#define TOMONODE_NODE_STEP_FILES_H

#include "kernels/err.h"
#include "node/base/digest.h"
#include "node/config/config.h"

/* What was hashed last: as long as no file has changed its size, times or place, its content is not read again. Starts as {0}. */
struct step_files {
	char seen[DIGEST_SIZE]; /* of the places, sizes and times of all files */
	char sha256[65];
};

/* Open the program to read and execute it, and check that it and the step's files are what `sha256` of the configuration says, and
 * that nobody but root and the user of this process can write to them, or put others in their place. EBADMSG: they are not, or one is missing; the sentence says
 * what the digest is. ret_fd: the program, which stays open over an exec; the caller closes it.
 *
 * The digest is the SHA-256 of the program. With `files` it is that of a text with a line "HEX  PATH" for the program and, after it,
 * for each file in the order of `files`, those in folders sorted by name: what sha256sum prints. A symbolic link has a line
 * "-> TARGET  PATH". */
int step_files_open(const struct step_conf *s, struct step_files *io_seen, int *ret_fd, struct err *err);

#endif
