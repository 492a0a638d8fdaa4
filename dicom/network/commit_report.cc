/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/network/commit_report.hh"

#include <cstring>
#include <string>

#include "dicom/core/consumer.hh"

namespace tomonode
{

namespace
{

/* Stores a data set in memory up to a limit. Further bytes are received but dropped, so that the association can continue. */
class Bounded : public Consumer
{
      public:
	explicit Bounded(size_t most) : limit(most)
	{
	}

	offile_off_t write(const void *buf, offile_off_t n) override
	{
		if ((uint64_t)n <= limit - bytes.size())
			bytes.append(static_cast<const char *>(buf), (size_t)n);
		else
			overflow = true;
		return n;
	}

	size_t limit;
	std::string bytes;
	bool overflow = false;
};

class BoundedStream : public DcmOutputStream
{
      public:
	explicit BoundedStream(Bounded *to) : DcmOutputStream(to)
	{
	}
};

} // namespace

bool commit_transfer_syntax(const char *uid, bool *ret_explicit)
{
	*ret_explicit = !strcmp(uid, UID_LittleEndianExplicitTransferSyntax);
	return *ret_explicit || !strcmp(uid, UID_LittleEndianImplicitTransferSyntax);
}

/* Check and parse the report. Return 0, or the status with which it is refused and the reason. The caller must clear the report.
 */
static uint16_t read_report(const T_DIMSE_N_EventReportRQ *rq, const Bounded &data, bool readable, bool explicit_vr,
			    struct commit_report *ret_report, struct err *why)
{
	uint16_t status = 0;

	if (!readable || strcmp(rq->AffectedSOPClassUID, COMMIT_CLASS) != 0) {
		status = COMMIT_NO_CLASS;
		err_set(why, EPROTO, "its class is not that of storage commitment");
	} else if (rq->EventTypeID != 1 && rq->EventTypeID != 2) { /* all committed; failures exist (PS3.4 J.3.3) */
		status = COMMIT_NO_EVENT;
		err_set(why, EPROTO, "event type %u is not one of storage commitment (1, 2)", (unsigned)rq->EventTypeID);
	} else if (data.overflow) {
		status = COMMIT_TOO_LARGE;
		err_set(why, EPROTO, "it has more than %zu bytes", (size_t)COMMIT_BYTES_MAX);
	} else if (commit_report_parse(data.bytes.data(), data.bytes.size(), explicit_vr, ret_report, why) < 0) {
		status = COMMIT_INVALID;
	}
	return status;
}

/* Pass the report, or why it is refused, to the handler. Return the status for the response. */
static uint16_t evaluate_report(const T_DIMSE_N_EventReportRQ *rq, const Bounded &data, bool readable, bool explicit_vr,
				const struct commit_handler *handler)
{
	struct commit_report report = {"", nullptr, 0};
	struct err why = {};
	uint16_t status = read_report(rq, data, readable, explicit_vr, &report, &why);

	if (status == 0)
		status = handler->report(handler->ctx, &report);
	else if (handler->refused)
		handler->refused(handler->ctx, status, why.msg);
	commit_report_clear(&report);
	return status;
}

static OFCondition send_response(T_ASC_Association *assoc, const T_DIMSE_N_EventReportRQ *rq, T_ASC_PresentationContextID id,
				 uint16_t status)
{
	T_DIMSE_Message msg;
	T_DIMSE_N_EventReportRSP *rsp = &msg.msg.NEventReportRSP;

	memset(&msg, 0, sizeof(msg));
	msg.CommandField = DIMSE_N_EVENT_REPORT_RSP;
	rsp->MessageIDBeingRespondedTo = rq->MessageID;
	rsp->DimseStatus = status;
	rsp->DataSetType = DIMSE_DATASET_NULL;
	rsp->EventTypeID = rq->EventTypeID;
	memcpy(rsp->AffectedSOPClassUID, rq->AffectedSOPClassUID, sizeof(rsp->AffectedSOPClassUID));
	memcpy(rsp->AffectedSOPInstanceUID, rq->AffectedSOPInstanceUID, sizeof(rsp->AffectedSOPInstanceUID));
	rsp->opts = O_NEVENTREPORT_AFFECTEDSOPCLASSUID | O_NEVENTREPORT_AFFECTEDSOPINSTANCEUID | O_NEVENTREPORT_EVENTTYPEID;
	return DIMSE_sendMessageUsingMemoryData(assoc, id, &msg, nullptr, nullptr, nullptr, nullptr);
}

int commit_report_serve(T_ASC_Association *assoc, const AssociationIo *io, int dimse_timeout, const T_DIMSE_N_EventReportRQ *rq,
			T_ASC_PresentationContextID id, const struct commit_handler *handler, const char *what, struct err *err)
{
	T_ASC_PresentationContext pc;
	T_ASC_PresentationContextID data_id = 0;
	Bounded data(COMMIT_BYTES_MAX);
	BoundedStream stream(&data);
	bool explicit_vr = false, readable;
	OFCondition cond = ASC_findAcceptedPresentationContext(assoc->params, id, &pc);

	if (cond.bad())
		return association_fail(err, io, cond, what);
	readable = !strcmp(pc.abstractSyntax, COMMIT_CLASS) && commit_transfer_syntax(pc.acceptedTransferSyntax, &explicit_vr);
	if (rq->DataSetType != DIMSE_DATASET_NULL)
		cond = DIMSE_receiveDataSetInFile(assoc, DIMSE_NONBLOCKING, dimse_timeout, &data_id, &stream, nullptr, nullptr);
	if (cond.good() && rq->DataSetType != DIMSE_DATASET_NULL && data_id != id)
		cond = DIMSE_NOVALIDPRESENTATIONCONTEXTID;
	if (cond.good())
		cond = send_response(assoc, rq, id, evaluate_report(rq, data, readable, explicit_vr, handler));
	return cond.bad() ? association_fail(err, io, cond, what) : 0;
}

int commit_data_drop(T_ASC_Association *assoc, const AssociationIo *io, int dimse_timeout, const char *what, struct err *err)
{
	T_ASC_PresentationContextID id = 0;
	Bounded data(0);
	BoundedStream stream(&data);
	OFCondition cond = DIMSE_receiveDataSetInFile(assoc, DIMSE_NONBLOCKING, dimse_timeout, &id, &stream, nullptr, nullptr);

	return cond.bad() ? association_fail(err, io, cond, what) : 0;
}

} // namespace tomonode
