/* What the files that make up node/reconstruct/reconstruct.h share; nobody else includes it. */
#ifndef TOMONODE_NODE_RECONSTRUCT_INTERNAL_H
#define TOMONODE_NODE_RECONSTRUCT_INTERNAL_H

#include "node/reconstruct/reconstruct.h"

/* One case on its way, whatever its kind. */
struct reconstruct_work {
	const struct config *config;
	const struct protocol_conf *protocol; /* of the case's kind */
	struct device *dev;		      /* borrowed */
	const char *const *paths;
	size_t n_paths;
	bool as_is; /* a person said: take what is here */
	const char *out_dir;
	const struct monitor *monitor;
	struct reconstruct_report report;
};

/* What a kind does in each stage; reconstruct_case() goes through them in this order up to the first that fails, counts the
 * seconds of opening and running, and closes in any case. */
struct reconstruct_kind {
	size_t size; /* of its own work, which begins with a struct reconstruct_work; zero when it is opened */
	int (*open)(struct reconstruct_work *,
		    struct err *); /* objects and plan; nothing in proportion to the data before that */
	int (*read)(struct reconstruct_work *, struct err *);
	int (*run)(struct reconstruct_work *, struct err *);
	int (*write)(struct reconstruct_work *, struct err *); /* out_dir is there; all objects or none */
	const struct grid *(*fill)(struct reconstruct_work *); /* what the report says of this kind; the result's grid */
	void (*close)(struct reconstruct_work *);
};
extern const struct reconstruct_kind reconstruct_dbt, reconstruct_pet, reconstruct_parallel;

/* What does not fit together today will not tomorrow: an error `from` becomes one to be held, `to`. */
int err_remap(int rc, int from, int to, struct err *err);

#endif
