/* Who may speak to us: the AE titles and addresses of the configured peers, resolved once. */
#ifndef TOMONODE_NODE_ADMISSION_H
#define TOMONODE_NODE_ADMISSION_H

#include "dicom/store_scp.h"
#include "node/config.h"

struct admission;

/* Resolves the peers' names (one that cannot be resolved is logged and never matches). config is borrowed. */
int admission_create(const struct config *config, struct admission **ret_admission, struct err *err);
struct admission *admission_free(struct admission *a); /* takes NULL, returns NULL */

/* host: a numeric address. The reason for a rejection goes to why. */
enum scp_admission admission_check(const struct admission *a, const char *calling, const char *called, const char *host,
				   char *why, size_t why_size);

#endif
