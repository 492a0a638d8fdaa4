/* SPDX-License-Identifier: Apache-2.0 */
/* The access list: which peers may open an association, by AE title, host or network, and certificate. Host names are resolved
 * once, at creation. */
#ifndef TOMONODE_NODE_ADMISSION_H
#define TOMONODE_NODE_ADMISSION_H

#include <netinet/in.h>

#include "dicom/network/store_scp.h"
#include "node/config/config.h"

#define ADMISSION_UNKNOWN_PEER (-1)

struct admission;

/* Resolve the host names of the configured peers. A name that cannot be resolved is logged and never matches. `config` must
 * outlive the result.
 */
int admission_create(const struct config *config, struct admission **ret_admission, struct err *err);
struct admission *admission_free(struct admission *a); /* takes NULL, returns NULL */

/* Decide on a request. SCP_ADMIT: *ret_peer is the index of the configured peer, or ADMISSION_UNKNOWN_PEER (only with
 * require_known_peer off). Otherwise the reason for the rejection is written to `why`. */
enum scp_admission admission_check(const struct admission *a, const struct scp_request *request, int *ret_peer, char *why,
				   size_t why_size);

/* Return true if a peer is configured with exactly this address or with a host name that resolved to it. Configured networks are
 * ignored. */
bool admission_has_address(const struct admission *a, const struct in6_addr *address);

/* Return true if the certificate (NULL: the peer sent none) matches the pattern (node/config/certificate_pattern.h). The pattern
 * "" matches everything. */
bool admission_certificate_matches(const char *pattern, const struct tls_peer *certificate);

#endif
