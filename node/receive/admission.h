/* Who may speak to us: the configured peers by AE title, host or network, and certificate; names of hosts are looked up once. */
#ifndef TOMONODE_NODE_ADMISSION_H
#define TOMONODE_NODE_ADMISSION_H

#include <netinet/in.h>

#include "dicom/network/store_scp.h"
#include "node/config/config.h"

#define ADMISSION_UNKNOWN_PEER (-1)

struct admission;

/* Resolves the peers' names (one that cannot be resolved is logged and never matches). config is borrowed. */
int admission_create(const struct config *config, struct admission **ret_admission, struct err *err);
struct admission *admission_free(struct admission *a); /* takes NULL, returns NULL */

/* SCP_ADMIT, with *ret_peer: which of the configured peers it is, or ADMISSION_UNKNOWN_PEER (only where require_known_peer is
 * off). The reason for a rejection goes to why. */
enum scp_admission admission_check(const struct admission *a, const struct scp_request *request, int *ret_peer, char *why,
				   size_t why_size);

/* Is it the address of a configured peer, by itself or by its name, not as one of a network? */
bool admission_has_address(const struct admission *a, const struct in6_addr *address);

/* Does the certificate (NULL: none was shown) fit the pattern (node/config/certificate_pattern.h)? "" fits everything. */
bool admission_certificate_fits(const char *pattern, const struct tls_peer *certificate);

#endif
