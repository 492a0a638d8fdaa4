/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans of tomosynthesis, PET and parallel beams share: the check of a protocol's parameters, the memory limit, the
 * report of memory that is too small. */
#ifndef TOMONODE_RECON_PLAN_H
#define TOMONODE_RECON_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/device.h"
#include "recon/core/keys.h"

/* Bytes of a plan. */
struct plan_bytes {
	size_t volumes, data, tables, total; /* on the device, and their sum; tables: of the projector, and working memory */
	size_t scratch;			     /* part of tables: working memory of one thread */
	size_t threads; /* in addition: that of the device's further threads. A limit does not count it, so that the plan, and
			   with it every bit of the image, is the same for any number of threads */
	size_t host;	/* on the host */
};

/* The range of a parameter that is wider than that of its key, for values of the program itself. */
struct plan_range {
	const char *key;
	double lowest, highest;
	const char *zero; /* meaning of 0, if only the program may use it */
};

/* Check the keys of a protocol that have an effect, in the ranges of their table (recon/NAME/NAME_keys.h) or of `wider`, which
 * ends with an empty row (NULL: none); "subsets" is at most `count`, the number of `of` ("angles") in the data. EINVAL: the message is
 * "KEY=FOUND; allowed: ALLOWED". */
int plan_check(const void *protocol, const struct key *keys, size_t n, const struct plan_range *wider, size_t count,
	       const char *of, struct err *err);
/* Return the number of bytes that a plan may use on the device: `asked` (0: no limit requested), but not more than the device
 * has. Return 0 if no limit is requested and the device's memory is unknown. */
size_t plan_limit(const struct device *dev, size_t asked);
const char *plan_limit_name(const struct device *dev, size_t limit); /* the key, or the device's memory */
double plan_megabytes(size_t bytes);
/* Add the tables of a projection, which exist at the same time as those before, and the working memory of a thread, which all
 * share. */
void plan_count(struct plan_bytes *b, struct device *dev, const struct projection_spec *spec);
/* Complete the bytes: tables get the working memory; total, threads. */
void plan_sum(struct plan_bytes *b, const struct device *dev);
/* Return whether a plan may be used: it fits into `limit` (0: any number of bytes) and, if `host`, on the CPU with the working
 * memory of every thread and `beside` further bytes of the caller into what this process may use (device->host_memory). */
bool plan_fits(const struct plan_bytes *b, const struct device *dev, size_t limit, bool host, size_t beside);
/* Return the bytes of a plan in main memory: those on the host, and all others if the device is the CPU. */
size_t plan_main_memory(const struct plan_bytes *b, const struct device *dev);
/* Set *ret_bytes to the working memory of all further threads, `scratch` bytes each; ENOMEM: `total` and these exceed the device's
 * memory. */
int plan_threads(const struct device *dev, size_t total, size_t scratch, size_t *ret_bytes, struct err *err);

/* The ways in which the work can be divided, the preferred one first: 0 is all at once, the last one has the smallest parts. */
struct plan_choices {
	int n;
	bool falling;					      /* none needs more than the one before it */
	const char *least;				      /* parts of the last one: "one slice" */
	size_t host_beside;				      /* bytes that the caller has on the host */
	int (*count)(void *ctx, int choice, struct err *err); /* set the plan to a choice, and *bytes */
	void *ctx;
	struct plan_bytes *bytes; /* of the plan */
	size_t host_most;	  /* that a choice may need in main memory (plan_main_memory()); 0: no limit but host_memory */
};
/* Set the plan to the first choice that fits. If none fits into host memory, to the first that fits on the device: the caller
 * refuses it. ENOMEM: the message says what the first and the last choice need; then bytes->total is above the limit. */
int plan_fit(const struct plan_choices *c, const struct device *dev, size_t memory_limit, struct err *err);

#endif
