/* What the files that make up node/reconstruct.h share; nobody else includes it. */
#ifndef TOMONODE_NODE_RECONSTRUCT_PARTS_H
#define TOMONODE_NODE_RECONSTRUCT_PARTS_H

#include "node/reconstruct.h"

/* One case of its kind; the protocol is of that kind. See reconstruct_case(). */
int reconstruct_dbt(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		    const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
		    struct reconstruct_report *ret_report, struct err *err);
int reconstruct_pet(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		    const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
		    struct reconstruct_report *ret_report, struct err *err);
int reconstruct_parallel(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
			 const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
			 struct reconstruct_report *ret_report, struct err *err);

/* What does not fit together today will not tomorrow: an error `from` becomes one to be held, `to`. */
int reconstruct_hold(int rc, int from, int to, struct err *err);

#endif
