/* What the files that make up node/reconstruct/reconstruct.h share; nobody else includes it. */
#ifndef TOMONODE_NODE_RECONSTRUCT_INTERNAL_H
#define TOMONODE_NODE_RECONSTRUCT_INTERNAL_H

#include "node/reconstruct/case_facts.h"
#include "node/reconstruct/reconstruct.h"
#include "node/sinogram/sinogram.h"

/* One case on its way, whatever its kind. */
struct reconstruct_work {
	const struct config *config;
	const struct protocol_conf *protocol; /* of the case's kind */
	struct device *dev;		      /* borrowed */
	struct pet_cache *cache;	      /* the device's, borrowed; may be NULL */
	const char *const *paths;
	size_t n_paths;
	bool as_is; /* a person said: take what is here */
	const char *out_dir;
	const struct monitor *monitor;
	struct reconstruct_report report;
};

/* How cases of a kind (node/config/kind.h) are recognised, and what is done in each stage of their reconstruction:
 * reconstruct_case() goes through the stages in this order up to the first that fails, counts the seconds of opening and running,
 * and closes in any case. A table with an empty slot is refused. */
struct reconstruct_kind {
	/* Is an object of this kind? From its header. 1: fills in laterality, view, expected, frames and angle, as far as the
	 * kind has them. 0: no; case_is_not() where it is known what it is. EBADMSG, ENOTSUP: it is, but broken. */
	int (*recognise)(const struct dicom_file *file, struct case_facts *f, struct err *err);
	size_t size; /* of its own work, which begins with a struct reconstruct_work; zero when it is opened */
	int (*open)(struct reconstruct_work *,
		    struct err *); /* objects and plan; nothing in proportion to the data before that */
	int (*read)(struct reconstruct_work *, struct err *);
	int (*run)(struct reconstruct_work *, struct err *);
	int (*write)(struct reconstruct_work *,
		     struct err *); /* out_dir is there; all objects or none, and the report has them */
	/* What the report says of this kind; returns the result's grid. NULL: no memory. */
	const struct grid *(*fill)(struct reconstruct_work *);
	void (*close)(struct reconstruct_work *);
};

#define X(constant, name) extern const struct reconstruct_kind reconstruct_##name;
KINDS(X)
#undef X

const struct reconstruct_kind *reconstruct_kind_of(enum case_kind kind);
/* EINVAL names the slot that is empty. */
int reconstruct_kind_check(const struct reconstruct_kind *kind, struct err *err);

/* For recognise(): 0. reason: what the object is and why it is not read, "" where this kind does not know; the first that knows
 * counts. */
int case_is_not(struct case_facts *f, bool refused, const char *reason);
/* recognise() of a kind whose cases are sinogram objects (node/sinogram/sinogram.h) of this format. */
int case_recognise_sinogram(const struct dicom_file *file, const char *format, struct case_facts *f, struct err *err);

/* ---- for the report ---- */

/* n objects, all zero. EAGAIN: no memory. */
int reconstruct_report_make_room(struct reconstruct_report *r, size_t n, struct err *err);

struct reconstruct_series { /* a result with an object for each slice; all borrowed */
	size_t n;
	char (*file)[64], (*sop_instance)[DICOM_UID_SIZE];
	const char *series, *sop_class, *unit, *warnings;
};
int reconstruct_report_series(struct reconstruct_report *r, const struct reconstruct_series *s, struct err *err);

/* What does not fit together today will not tomorrow: an error `from` becomes one to be held, `to`. */
int err_remap(int rc, int from, int to, struct err *err);

#endif
