/* SPDX-License-Identifier: Apache-2.0 */
/* A case as it is given to a pilot: the order and the configuration that it needs. The body of WIRE_CASE, and of the file that a
 * pilot's worker reads. */
#ifndef TOMONODE_NODE_PILOT_CASE_H
#define TOMONODE_NODE_PILOT_CASE_H

#include "node/config/config.h"
#include "node/jobs/case_order.h"

struct pilot_flatfield { /* the file of a profile's key `flatfield` */
	char profile[CONFIG_NAME_SIZE];
	char file[128]; /* of the pilot: flatfields/NUMBER/NAME, a folder for each profile */
	uint64_t bytes;
};

struct pilot_case {
	struct case_order order;
	char *config; /* text; NULL: the embedded defaults */
	struct pilot_flatfield *flatfields;
	size_t n_flatfields;
};

/* The body; the caller owns the reference. NULL: no memory. */
json_t *pilot_case_encode(const struct pilot_case *c);
/* EBADMSG: the body has another form. File names have the form instances/NAME or flatfields/NUMBER/NAME, NAME of letters, digits,
 * '-', '_', '.', the first no '.'. job, attempt: those of the message. */
int pilot_case_decode(const json_t *body, int64_t job, int64_t attempt, struct pilot_case *ret_case, struct err *err);
void pilot_case_clear(struct pilot_case *c);
/* Number of files that are sent for the case: those of the order, then the flat fields. */
size_t pilot_case_files(const struct pilot_case *c);
const char *pilot_case_file(const struct pilot_case *c, size_t i, uint64_t *ret_bytes); /* name, ret_bytes: its size */

/* Path of the folder for the objects of an attempt, ROOT/work/JOB-ATTEMPT; with suffix ".order" or ".outcome" of the files that a
 * pilot and its worker exchange. */
int pilot_case_path(const char *root, int64_t job, int64_t attempt, const char *suffix, char *ret_path, size_t size,
		    struct err *err);

/* The objects in the detail of a `reconstructed` event. Number of them, 1 to JOB_OBJECTS_MAX, and the sum of their sizes.
 * EBADMSG: a name that is not outbox/JOB/NAME, that two of them have, or that ends with ".part". */
int64_t pilot_case_objects(const json_t *detail, int64_t job, uint64_t *ret_bytes, struct err *err);
/* File name without folder of an object, and its size. */
const char *pilot_case_object(const json_t *detail, size_t i, int64_t *ret_bytes, const char **ret_digest);

#endif
