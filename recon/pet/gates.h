/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of a PET acquisition: the phases of a motion that repeats, such as the heart beat. Times are whole milliseconds since the
 * start of the acquisition.
 *
 * - Time marks m[0] < m[1] < ... (such as R waves) bound cycles; cycle i has the times t with m[i] <= t < m[i+1], and the length
 *   L = m[i+1] - m[i]. Cycles shorter than `shortest` or longer than `longest` are left out, as are the times before the first
 *   mark and from the last one on.
 * - Each other cycle is divided into n gates of equal length: gate k, from 0, has the times with k L / n <= t - m[i] < (k+1) L /
 *   n. So every time is in one gate or is left out.
 * - A gate has the parts of all cycles that are used. Its duration T is their sum. For activity that decays with the constant
 *   lambda, its counts are proportional to I = sum over its parts [a, b) of (exp(-lambda a) - exp(-lambda b)) / lambda; values
 *   are corrected to the start of the acquisition by the decay factor T / I. A frame is a gate of one part. */
#ifndef TOMONODE_RECON_PET_GATES_H
#define TOMONODE_RECON_PET_GATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define PET_GATES_MAX 64
#define PET_MARKS_MAX ((size_t)1 << 20)
#define PET_MARKS_BYTES ((size_t)16 << 20) /* largest table */
#define PET_MARKS_END INT32_MAX		   /* latest mark, ms */

/* What the marks are of. */
enum pet_signal { PET_SIGNAL_TABLE, PET_SIGNAL_ECG, PET_SIGNAL_RESP, PET_SIGNAL_MOTION, PET_SIGNAL_SYNC };
#define PET_SIGNALS 5
const char *pet_signal_name(enum pet_signal s);		       /* "table", "ecg", "resp", "motion", "sync" */
bool pet_signal_named(const char *name, enum pet_signal *ret); /* false: no such name */

struct pet_marks {
	size_t n;
	int64_t *ms; /* ascending; owned */
};

struct pet_gates {
	int n;			   /* 0: no gates */
	int64_t shortest, longest; /* ms; longest 0: cycles of all lengths are used */
	struct pet_marks marks;	   /* at least two */
	enum pet_signal signal;
};

/* Read a table: a mark in each line, whole milliseconds. Empty lines, and lines that begin with '#', are skipped. EBADMSG: the
 * message has the number and the text of the line. pet_marks_clear() the result. */
int pet_marks_parse(const char *text, size_t size, struct pet_marks *ret, struct err *err);
/* Add a mark at the end. EBADMSG: it is not later than the last one, negative, or too late; ENOMEM. */
int pet_marks_add(struct pet_marks *m, int64_t ms, struct err *err);
/* Write the table that pet_marks_parse() reads; the caller frees *ret_text. */
int pet_marks_format(const struct pet_marks *m, char **ret_text, struct err *err);
int pet_marks_copy(const struct pet_marks *m, struct pet_marks *ret, struct err *err);
void pet_marks_clear(struct pet_marks *m);

/* Read the lengths of cycles that are used, "SHORTEST,LONGEST" in ms, into *g; "": all. EINVAL. */
#define PET_CYCLE_TEXT 24 /* longest text of them, characters */
int pet_gates_parse_cycle(const char *text, struct pet_gates *g, struct err *err);

/* Check gates of an acquisition of this duration, ms. EBADMSG: a mark after its end, fewer than two marks, or a cycle shorter
 * than n ms; ENOTSUP: no cycle is used; EINVAL: number or limits. */
int pet_gates_check(const struct pet_gates *g, int64_t duration, struct err *err);

/* Return the gate of a time, from 0; -1: it is left out. *cycle: index of a cycle near the time, 0 at the beginning; set to that
 * of the time, so that times in ascending order are found at once. */
int pet_gates_find(const struct pet_gates *g, int64_t t, size_t *cycle);

struct pet_cycles {
	long used, left_out;
	double mean;	  /* length of the used ones, ms */
	int64_t shortest; /* the same, of the shortest one; 0: none is used */
};
void pet_gates_count(const struct pet_gates *g, struct pet_cycles *ret);

struct pet_gate_sum {
	int64_t duration;    /* T, ms */
	double decay_factor; /* T / I; 1 for lambda 0 */
	double reference;    /* ms: time at which the activity is the mean one, ln(T / I) / lambda; lambda 0: mean of the times */
};
/* Add to sum[k] how much of the times from a to b, ms, is in gate k. */
void pet_gates_add(const struct pet_gates *g, int64_t a, int64_t b, int64_t *sum);
/* Sum the parts of gate k. lambda: per second. */
struct pet_gate_sum pet_gates_sum(const struct pet_gates *g, int k, double lambda);

#endif
