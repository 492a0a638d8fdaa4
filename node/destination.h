/* A destination of the configuration as a peer to open an association to. */
#ifndef TOMONODE_NODE_DESTINATION_H
#define TOMONODE_NODE_DESTINATION_H

#include "dicom/store_scu.h"
#include "node/config.h"

/* Points into both, which must outlive it. */
struct scu_peer destination_peer(const struct config *config, const struct destination_conf *destination);

#endif
