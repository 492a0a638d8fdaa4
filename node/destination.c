#include "node/destination.h"

struct scu_peer destination_peer(const struct config *config, const struct destination_conf *destination)
{
	return (struct scu_peer){
		.host = destination->host,
		.port = destination->port,
		.called = destination->aet,
		.calling = config->node.aet,
		.max_pdu = config->node.max_pdu,
		.connect_timeout = destination->connect_timeout,
		.acse_timeout = destination->acse_timeout,
		.dimse_timeout = destination->dimse_timeout,
	};
}
