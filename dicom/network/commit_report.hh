/* SPDX-License-Identifier: Apache-2.0 */
/* Serve one N-EVENT-REPORT after its command has been received: receive the data set, call the handler, send the response.
 * Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_COMMIT_REPORT_HH
#define TOMONODE_DICOM_COMMIT_REPORT_HH

#include "dcmtk/config/osconfig.h"

#include "dcmtk/dcmnet/assoc.h"
#include "dcmtk/dcmnet/dimse.h"

#include "dicom/network/association.hh"
#include "dicom/network/commit.h"

namespace tomonode
{

/* Return 0 if a response was sent, with any status; negative: the association is unusable. dimse_timeout: s. `what`: peer or
 * action, first word of a message. */
int commit_report_serve(T_ASC_Association *assoc, const AssociationIo *io, int dimse_timeout, const T_DIMSE_N_EventReportRQ *rq,
			T_ASC_PresentationContextID id, const struct commit_handler *handler, const char *what, struct err *err);

/* Receive and discard a data set that is not needed. */
int commit_data_drop(T_ASC_Association *assoc, const AssociationIo *io, int dimse_timeout, const char *what, struct err *err);

/* Can commit_report_parse() parse this transfer syntax? *ret_explicit: it is in explicit VR. */
bool commit_transfer_syntax(const char *uid, bool *ret_explicit);

} // namespace tomonode
#endif
