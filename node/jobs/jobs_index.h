/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of jobs with the same text in one part of the key of their case, by a hash of that text: the highest number first.
 *
 * The key of a case is "STUDY|SERIES|..." (node/reconstruct/case_facts.h). Texts with the same hash are in one list, so who reads
 * it compares the texts.
 */
#ifndef TOMONODE_NODE_JOBS_INDEX_H
#define TOMONODE_NODE_JOBS_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A member of a job. */
struct jobs_link {
	struct jobs_link *before; /* the link of an older job; NULL: none */
	uint64_t hash;
	int64_t id; /* of its job */
};

/* {0}: empty. */
struct jobs_index {
	struct jobs_link **lists;
	size_t n_lists, n; /* n_lists: 0 or a power of two */
};

/* Return the hash of a part of a key: 0 its study, 1 its series. */
uint64_t jobs_index_hash(const char *key, int part);
/* Add a link with its hash and id; false: no memory, and it is not added. */
bool jobs_index_add(struct jobs_index *index, struct jobs_link *link);
/* Remove a link, if it is there. */
void jobs_index_remove(struct jobs_index *index, struct jobs_link *link);
/* Return the newest link of this hash; NULL: none. */
struct jobs_link *jobs_index_find(const struct jobs_index *index, uint64_t hash);
/* Return the next older link of the same hash; NULL: none. */
struct jobs_link *jobs_index_before(const struct jobs_link *link);
void jobs_index_clear(struct jobs_index *index);

#endif
