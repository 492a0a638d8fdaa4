/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans of tomosynthesis, PET and parallel beams share: the ranges of a protocol's parameters, the memory limit, the
 * report of memory that is too small. */
#ifndef TOMONODE_RECON_PLAN_H
#define TOMONODE_RECON_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/device.h"
#include "recon/core/algorithm.h"

struct plan_bytes {
	size_t total, volumes, data, tables;
};

/* Conditions under which a parameter is used; of the algorithm, and from PLAN_OWN on of the kind of data. */
enum plan_condition {
	PLAN_ITERATES = 1 << 0,
	PLAN_SUBSETS = 1 << 1, /* UPDATE_SUBSETS */
	PLAN_RAYS = 1 << 2,    /* UPDATE_RAYS */
	PLAN_FILTERED = 1 << 3,
	PLAN_SART = 1 << 4,    /* RULE_SART */
	PLAN_RELAXED = 1 << 5, /* RULE_EM_RELAXED */
	PLAN_OWN = 1 << 6,
};
unsigned plan_conditions(enum algorithm a);

/* The range of a parameter: `lowest` to `highest`, or some values of an enum. */
struct plan_range {
	const char *name;
	size_t at;     /* of the member of the protocol */
	bool real;     /* it is a double; else an int or an enum */
	unsigned when; /* the conditions under which it is used, all of them; 0: always */
	double lowest, highest;
	bool above, below; /* lowest and highest themselves are not allowed */
	const char *zero;  /* 0 is allowed, too; what it means */
	const char *unit;  /* " mm" */
	const char *of;	   /* `highest` is the number of these in the data: "angles" */
	unsigned choices;  /* enum: bits 1 << value */
	const char *words; /* their words in protocols */
};
#define PLAN_PARAMETER(type, member)                                                                                             \
#member, offsetof(struct type, member), _Generic(((struct type *)0)->member, double : true, default : false)

/* Check a protocol. ranges: ends with an empty row. used: the conditions that are true. count: of `of`. EINVAL: the message is
 * "KEY=FOUND; allowed: ALLOWED". */
int plan_check(const void *protocol, const struct plan_range *ranges, unsigned used, size_t count, struct err *err);
/* Return the number of bytes that a plan may use on the device: `asked` (0: no limit requested), but not more than the device
 * has. Return 0 if no limit is requested and the device's memory is unknown. */
size_t plan_limit(const struct device *dev, size_t asked);
const char *plan_limit_name(const struct device *dev, size_t limit); /* the key, or the device's memory */
double plan_megabytes(size_t bytes);
/* A limit counts the working memory of one thread, so that the plan, and with it every bit of the image, is the same for any
 * number of threads. Set *ret_bytes to the working memory of all further threads, `scratch` bytes each; ENOMEM: `total` and these
 * exceed the device's memory. */
int plan_threads(const struct device *dev, size_t total, size_t scratch, size_t *ret_bytes, struct err *err);
size_t plan_further_threads(const struct device *dev, size_t scratch); /* that working memory alone */
/* Return whether this process may use the memory of a plan on the CPU (device->host_memory): `total` with the working memory of
 * every thread, and `host` bytes beside the device. Always true for another device. */
bool plan_fits_host(const struct device *dev, size_t total, size_t scratch, size_t host);
/* Return ENOMEM with a message: neither the whole volume fits into `limit` bytes nor the smallest part that can be computed at a
 * time; `part` is its name, for example "one slice". */
int plan_refuse_bytes(struct plan_bytes whole, struct plan_bytes least, const char *part, const struct device *dev, size_t limit,
		      struct err *err);

#endif
