/* One N-EVENT-REPORT whose command has come: its data set, the handler, the response. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_COMMIT_REPORT_HH
#define TOMONODE_DICOM_COMMIT_REPORT_HH

#include "dcmtk/config/osconfig.h"

#include "dcmtk/dcmnet/assoc.h"
#include "dcmtk/dcmnet/dimse.h"

#include "dicom/network/association.hh"
#include "dicom/network/commit.h"

/* 0: answered, whatever the answer was; negative: the association is of no more use. `what` is for sentences. */
int commit_report_serve(T_ASC_Association *assoc, const struct association_io *io, int dimse_timeout,
			const T_DIMSE_N_EventReportRQ *rq, T_ASC_PresentationContextID id, const struct commit_handler *handler,
			const char *what, struct err *err);

/* A data set that nobody wants, out of the way. */
int commit_data_drop(T_ASC_Association *assoc, const struct association_io *io, int dimse_timeout, const char *what,
		     struct err *err);

/* Transfer syntaxes that commit_report_parse() reads. */
bool commit_transfer_syntax(const char *uid, bool *ret_explicit);

#endif
