/* SPDX-License-Identifier: Apache-2.0 */
/* An association opened by this process; shared by store_scu.cc, which opens it and sends objects, and commit_scu.cc, which
 * requests storage commitment over it. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_SCU_HH
#define TOMONODE_DICOM_SCU_HH

#include "dcmtk/config/osconfig.h"

#include "dcmtk/dcmnet/assoc.h"

#include "dicom/core/guarded.hh"
#include "dicom/network/association.hh"
#include "dicom/network/store_scu.h"
#include "dicom/network/tls.hh"

#include <unistd.h>

struct scu {
	tomonode::AssociationIo io;
	T_ASC_Network *net = nullptr;
	T_ASC_Association *assoc = nullptr;
	struct tls_context *tls = nullptr;
	T_ASC_Parameters *params = nullptr; /* owned until `assoc` is created, which then owns them */
	char comment[65] = "";		    /* Error Comment of the last response; "": none */
	char who[160] = "";		    /* the peer, "AET at host:port", for messages */
	int dimse_timeout = 30;		    /* s */
	int acse_timeout = 30;		    /* s */
	bool broken = false;		    /* the association is unusable: every call fails */

	~scu()
	{
		if (assoc)
			ASC_destroyAssociation(&assoc);
		else if (params)
			ASC_destroyAssociationParameters(&params);
		if (net)
			ASC_dropNetwork(&net);
		if (io.connected >= 0)
			close(io.connected);
		tomonode::tls_stream_free(io.tls);
		tls_free(tls);
	}
};

namespace tomonode
{

/* Like guarded(), for a call that uses an association: after an exception the association is marked as broken. */
template <typename Body> int scu_guarded(struct scu *s, struct err *err, Body body)
{
	bool ended = false;
	int rc = guarded(err, s->who, [&] {
		int answer = body();

		ended = true;
		return answer;
	});

	s->broken = s->broken || !ended;
	return rc;
}

} // namespace tomonode
#endif
