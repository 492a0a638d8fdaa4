/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a session: allocated piece by piece when it is opened, freed all together when it is closed. After the first
 * allocation that fails, the others do nothing and return the same error, so that open() may look once. */
#ifndef TOMONODE_RECON_SESSION_H
#define TOMONODE_RECON_SESSION_H

#include "recon/core/linop.h"

struct session_memory {
	struct device *dev;
	struct session_item *last;
	int rc; /* of the first allocation that failed */
};

int session_alloc(struct session_memory *m, size_t n, struct buf *ret_buf, struct err *err);	 /* n floats on the device */
int session_host(struct session_memory *m, size_t bytes, void **ret, struct err *err);		 /* host memory of the device */
int session_array(struct session_memory *m, size_t n, size_t size, void **ret, struct err *err); /* n elements, all zero */
int session_projector(struct session_memory *m, const struct projection_spec *spec, struct linop **ret_op, struct err *err);
void session_release(struct session_memory *m); /* free all, the last piece first */
/* Wait for what is queued: after an error, work and transfers may still use what close() frees. */
void session_drain(struct device *dev);

#endif
