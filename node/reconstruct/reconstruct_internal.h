/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/reconstruct/reconstruct.h. Private to them. */
#ifndef TOMONODE_NODE_RECONSTRUCT_INTERNAL_H
#define TOMONODE_NODE_RECONSTRUCT_INTERNAL_H

#include "node/reconstruct/case_arrays.h"
#include "node/reconstruct/case_facts.h"
#include "node/reconstruct/case_steps.h"
#include "node/reconstruct/reconstruct.h"
#include "node/result/result_series.h"
#include "node/sinogram/sinogram.h"
#include "recon/parallel/parallel_rings.h"

/* State of one case of any kind during its reconstruction. */
struct reconstruct_work {
	const struct config *config;
	const struct protocol_conf *protocol; /* protocol of the case's kind */
	struct device *dev;		      /* borrowed */
	struct pet_cache *cache;	      /* the device's, borrowed; may be NULL */
	const char *const *paths;
	size_t n_paths;
	const struct case_decision *decision;
	const char *out_dir;
	struct case_arrays *arrays; /* that are written instead of a result; NULL: a result */
	uint64_t keep_free;	    /* bytes of out_dir's file system: node.reserve if it is in the spool, else 0 */
	const struct monitor *monitor;
	bool again;	   /* the work has what it kept of another result of the same images */
	bool keep;	   /* keep what another result can use; false where it cannot be kept */
	size_t bytes_kept; /* that are reserved for this */
	struct reconstruct_report report;
	struct result_step step[CONFIG_NAMES_MAX]; /* that changed the volume */
	size_t n_steps;
	char notes[1200];		   /* sentences about other programs that changed or computed the volume; "": none */
	struct protocol_conf without_step; /* `protocol` after a step failed that may */
	json_t *steps;			   /* of the report; NULL: none; owned */
};

/* Functions that recognise and reconstruct the cases of a kind (node/config/kind.h). reconstruct_case() calls the stages in this
 * order until one fails, measures the seconds of opening and running, and always calls close(). A table with an empty member is
 * refused. */
struct reconstruct_kind {
	/* Recognise an object of this kind by its header. 1: yes; sets laterality, view, expected, frames and angle, as far as
	 * the kind has them. 0: no; calls case_is_not() if the kind of object is known. EBADMSG, ENOTSUP: yes, but invalid. */
	int (*recognise)(const struct dicom_file *file, struct case_facts *f, struct err *err);
	size_t size; /* size of its work structure, which begins with a struct reconstruct_work and is zeroed before open() */
	int (*open)(
		struct reconstruct_work *,
		struct err *); /* open the objects and make the plan; before that, memory does not depend on the amount of data */
	int (*read)(struct reconstruct_work *, struct err *);
	int (*run)(struct reconstruct_work *, struct err *);
	/* Instead of run(): take a volume that another program has computed, by reconstruct_outside(). */
	int (*take)(struct reconstruct_work *, struct err *);
	int (*write)(struct reconstruct_work *,
		     struct err *); /* out_dir exists; write all objects or none, and add them to the report */
	/* Instead of run() and write(), after read(): add the arrays of the case, and describe them; sentences about the values
	 * are warnings of the report. */
	int (*arrays)(struct reconstruct_work *, struct err *);
	/* Fill in the report's members of this kind; return the result's grid. NULL: no memory. */
	const struct grid *(*fill)(struct reconstruct_work *);
	/* Free all that belongs to one result only, and set the rest of the structure to what open() expects; it then uses what
	 * is still there. Called after fill(), if `keep` is still true. */
	void (*release)(struct reconstruct_work *);
	void (*close)(struct reconstruct_work *);
	const char *slices_class; /* SOP class of the slices */
};

#define X(constant, name) extern const struct reconstruct_kind reconstruct_##name; /* reconstruct_NAME.c */
KINDS(X)
#undef X

const struct reconstruct_kind *reconstruct_kind_of(enum case_kind kind);
/* Check that a table is complete. EINVAL: a member is empty; the text names it. */
int reconstruct_kind_check(const struct reconstruct_kind *kind, struct err *err);

/* For recognise(): store why an object is not supported, and return 0. reason "": this kind does not know the object. If several
 * kinds store a reason, the first one is kept. */
int case_is_not(struct case_facts *f, bool refused, const char *reason);
/* recognise() for kinds whose cases are sinogram objects (node/sinogram/sinogram.h) whose header texts are of this kind. */
int case_recognise_sinogram(const struct dicom_file *file, enum interfile_kind header, struct case_facts *f, struct err *err);

/* ---- for the report ---- */

/* Allocate n objects, all zero. EAGAIN: no memory. */
int reconstruct_report_make_room(struct reconstruct_report *r, size_t n, struct err *err);

/* List the objects of a series. EAGAIN: no memory. */
int reconstruct_report_series(struct reconstruct_report *r, const struct series_report *s, struct err *err);

/* Check the volume of another program and, unless ret is NULL, copy it. ENOTSUP: it is not of this grid, or has a value that is
 * not finite. */
int reconstruct_outside(const struct reconstruct_work *w, const struct grid *g, float *ret, struct err *err);

/* If rc is -ENOMEM (a plan that does not fit), begin the sentence with the name of the protocol, which has `memory_limit`. */
void reconstruct_name_protocol(const struct reconstruct_work *w, int rc, struct err *err);

/* Check that a result with the voxels of this grid, 2 bytes each, may be written. ENOTSUP: it is larger than node.max_result, or
 * than the disk; ENOSPC: there is not enough free space now. Writing checks the free space again (keep_free).
 * automatic: the key of the protocol that is 0, so that the number of voxels follows the data; then the result may not be much
 * larger than the files of the case. NULL: the protocol has the size. */
int reconstruct_check_size(const struct reconstruct_work *w, const struct grid *grid, const char *automatic, struct err *err);
/* Check that this process may use the memory of a plan: bytes on the host, and those on the device if this is a CPU; then wait
 * until other workers leave that much. ENOTSUP; ECANCELED: while it waited; EAGAIN: the plan is made again, and needs more than is
 * free beside what is reserved. bytes_keep: of the host, for what is kept: sets
 * w->keep to false if they are 0 or not free now. ESTALE: with what is already kept (w->again), the plan does not fit now. */
int reconstruct_reserve_memory(struct reconstruct_work *w, size_t bytes_device, size_t bytes_host, size_t bytes_keep,
			       struct err *err);

/* Return the folder of the result, or the one above it while it does not exist. above: room for its path. */
const char *reconstruct_disk_folder(const struct reconstruct_work *w, char above[500]);

/* Of all line integrals. */
struct parallel_sums {
	float least, most;
	double sum, all;    /* of the values; of their sizes */
	double first, last; /* means of the first and the last radial bin */
};

/* parallel_notes.c: what line integrals say about their header. */
struct parallel_look {
	double given;  /* mm: axis offset of the header, 0 if it has none */
	bool is_found; /* that of `axis` is used in place of it */
	struct parallel_sums sums;
	struct parallel_consistency views;
	struct parallel_faults faults;
	struct parallel_axis axis;
	struct parallel_flat_report flat; /* of intensities; else all 0 */
	int ring_width;			  /* of rings that were removed from the lines; 0: none */
	struct parallel_rings rings;
};

/* Sum the data slice by slice. */
void parallel_sum_lines(const struct parallel_scan *s, const float *lines, const struct monitor *monitor,
			struct parallel_sums *ret);
/* Look at the data; h: with the offset of the header; flat and rings are already set. The monitor hears of every slice. ENOMEM. */
int parallel_look_at(const struct interfile *h, const float *lines, const struct monitor *monitor, struct parallel_look *ret,
		     struct err *err);
/* Decide which axis a protocol reconstructs about, and set it in s. EBADMSG: the data contradict the header, and the protocol asks
 * that they agree. */
int parallel_settle_axis(enum parallel_axis_rule rule, struct parallel_scan *s, struct parallel_look *look, struct err *err);
/* Say how the axis was found: "pairs", "seam", "mass"; or why it was not. */
const char *parallel_axis_word(const struct parallel_axis *a);
/* Write sentences about line integrals that are probably not what their header says. "": nothing. h: as settled. */
void parallel_note(const struct interfile *h, const struct parallel_look *look, char *ret, size_t size);

#endif
