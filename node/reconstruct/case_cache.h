/* SPDX-License-Identifier: Apache-2.0 */
/* Randoms and scatter of a case in the cache of the device (recon/pet/pet.h), for further results of the same exam.
 *
 * The key is the digest of everything that such an estimate depends on: the files of the case (their digests, which the worker
 * has compared: content, patient and exam; with a CT, normalisation and all other roles), the time frame, gate or bed and how the
 * acquisition is divided, the bins of the session, the settings that the step names, and the version of the computation. So two
 * exams never share an entry. It has none of the parameters of the image: coarse images of the scatter have parameters of their
 * own. */
#ifndef TOMONODE_NODE_CASE_CACHE_H
#define TOMONODE_NODE_CASE_CACHE_H

#include "node/reconstruct/case_corrections.h"

struct case_cache_key {
	bool known; /* false: nothing is kept, because the content of the files is not known, or there is no cache */
	unsigned char hash[DIGEST_BYTES];
};

/* Compute the key of a step for the chosen frame. what: name and version of the computation; settings: n bytes, without padding.
 */
struct case_cache_key case_cache_key(const struct case_corrections *c, const char *what, const void *settings, size_t n);
/* Return the value of a key, until the next call; NULL: there is none. */
const void *case_cache_find(const struct case_corrections *c, const struct case_cache_key *key, size_t *ret_bytes);
/* Return the host memory that values of so many bytes, one for each frame, gate or bed, take in the cache. */
size_t case_cache_bytes(const struct case_corrections *c, size_t bytes);
void case_cache_keep(const struct case_corrections *c, const struct case_cache_key *key, const void *value, size_t bytes);

#endif
