/* SPDX-License-Identifier: Apache-2.0 */
/* Which stored values count. Private to prep*.c and air_cells.c. */
#ifndef TOMONODE_RECON_PREP_INTERNAL_H
#define TOMONODE_RECON_PREP_INTERNAL_H

#include "recon/dbt/prep.h"

struct limits {
	int lo, hi; /* padding; lo > hi: none */
	int over;   /* first saturated value; PREP_VALUES: none */
	int air;    /* value over range, which shows air; -1: none */
};

/* Return the limits of the stored values. EINVAL: saturation or over-range code is not allowed. */
int prep_limits(const struct prep *p, struct limits *ret, struct err *err);

/* Return whether there may be bins that do not count. */
static inline bool prep_has_limits(struct limits lim)
{
	return lim.lo <= lim.hi || lim.over < PREP_VALUES;
}

/* Mark which of n columns have values, in some rows, that are padding, saturated or over range. */
void prep_mark(const uint16_t *first, int stride, int rows, int n, struct limits lim, uint16_t *ret_marks);

#endif
