/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and types shared by the files of node/format/petsird.h. */
#ifndef TOMONODE_NODE_PETSIRD_INTERNAL_H
#define TOMONODE_NODE_PETSIRD_INTERNAL_H

#include "node/format/petsird.h"
#include "node/format/yardl_internal.h"

/* Rows of numbers, of different lengths. */
struct petsird_rows {
	size_t rows;
	size_t *start; /* rows + 1: row i is values[start[i]] up to values[start[i + 1]] */
	float *values;
};

struct petsird_pair {		   /* efficiencies of a pair of types */
	struct petsird_rows group; /* [module 1][module 2]: index into `groups`, below 0: not in coincidence */
	size_t n_groups;
	struct petsird_rows *groups; /* [bin in module 1][bin in module 2] */
};

/* Where the next event is. */
struct petsird_cursor {
	bool ended;
	uint64_t blocks;		/* that follow in this part of the stream */
	const struct yardl_type *in;	/* event block that is being read; NULL: none */
	size_t field;			/* its next field */
	const struct yardl_type *pairs; /* list of lists of lists of events */
	bool delayed;
	uint64_t rows, row, columns, column; /* of the lists */
	uint64_t events;		     /* that follow in this list */
	const struct yardl_type *event;	     /* their type */
	bool plain;			     /* see petsird_plain.c */
	uint32_t time, stop;		     /* of the event block, ms */
};

struct petsird {
	struct petsird_header header;
	struct petsird_counts counts;
	struct yardl_schema schema;
	struct yardl_in in;
	const struct yardl_type *block; /* of the stream of time blocks */
	uint64_t first_block;		/* position in the file */
	struct petsird_cursor cursor;
	struct petsird_plain *plain; /* events that wait to be decoded */
	uint64_t covered_to;	     /* ms: last stop so far */
	size_t gaps_max;	     /* room for counts.gap */
	struct pet_marks *marks;     /* starts of blocks of `signal` are added to it; NULL: they are skipped */
	uint32_t signal;
	size_t n_bins[PETSIRD_TYPES_MAX]; /* detection bins: 0: none in the file */
	float *bins[PETSIRD_TYPES_MAX];
	struct petsird_pair pair[PETSIRD_TYPES_MAX][PETSIRD_TYPES_MAX]; /* [i][j], j <= i */
	struct petsird_alive *alive;					/* petsird_alive.c */
	/* while the header is read */
	size_t n_energies;
	size_t energies[PETSIRD_TYPES_MAX];
};

typedef int petsird_reader(struct petsird *p, const struct yardl_type *t);

/* A field of a record; one without a name ends the list. Without read, store and of it is skipped, but must be there. */
struct petsird_field {
	const char *name;
	petsird_reader *read;
	bool needed; /* else it may be missing or, if it is stored, null */
	/* Store its value at offset `at` of the structure that is filled; of: it is a record with these fields, whose structure is
	 * there. */
	int (*store)(struct petsird *p, const struct yardl_type *t, void *to);
	const struct petsird_field *of;
	size_t at;
};

/* Check that t is a record with all needed fields. */
int petsird_check_fields(struct petsird *p, const struct yardl_type *t, const struct petsird_field *fields);
/* Read a record: the named fields; all others are skipped. to: the structure that is filled; NULL: none. */
int petsird_read_record(struct petsird *p, const struct yardl_type *t, const struct petsird_field *fields, void *to);
int petsird_store_float(struct petsird *p, const struct yardl_type *t, void *to); /* a double */
/* Read a list of lists over pairs of types: `read` is called for [i][j] with j <= i, the others are skipped. */
int petsird_read_pairs(struct petsird *p, const struct yardl_type *t,
		       int (*read)(struct petsird *p, const struct yardl_type *t, size_t i, size_t j));
/* Read a list of floats; the caller frees *ret. */
int petsird_read_floats(struct petsird *p, const struct yardl_type *t, float **ret, size_t *ret_n);

extern const struct petsird_field petsird_geometry[];	  /* petsird_geometry.c: ScannerGeometry */
extern const struct petsird_field petsird_exam[];	  /* petsird_exam.c: ExamInformation, of struct petsird_exam */
extern const struct petsird_field petsird_efficiencies[]; /* petsird_efficiency.c: DetectionEfficiencies */
int petsird_check_efficiencies(struct petsird *p, struct err *err);
void petsird_free_efficiencies(struct petsird *p);
/* petsird_alive.c: find out which modules and pairs of modules are alive as a whole, from efficiencies that are checked. */
int petsird_make_alive(struct petsird *p, struct err *err);
void petsird_free_alive(struct petsird *p);
/* petsird_events.c: check the types of the time blocks. */
int petsird_check_blocks(struct petsird *p);

/* ---- petsird_plain.c: plain events are decoded later, by threads ---- */

int petsird_plain_create(struct petsird *p, struct err *err);
void petsird_plain_free(struct petsird *p);
/* Does an event consist of two detection bins and a TOF bin, unsigned integers, in this order? */
bool petsird_plain_type(const struct yardl_type *t);
/* Pass at most `max` events of the cursor's list that are in the buffer as a whole, and decode them to ret_events before
 * petsird_plain_decode() returns. Returns their number. */
size_t petsird_plain_add(struct petsird *p, struct petsird_event *ret_events, size_t max);
void petsird_plain_decode(struct petsird *p);
/* Was an event not valid? petsird_plain_seek_failed() makes the first one the next event. */
bool petsird_plain_failed(const struct petsird *p);
void petsird_plain_seek_failed(struct petsird *p);
void petsird_plain_forget(struct petsird *p);

#endif
