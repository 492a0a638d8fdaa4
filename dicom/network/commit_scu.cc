/* SPDX-License-Identifier: Apache-2.0 */
/* commit_scu.cc - request storage commitment over an association opened by this process, and receive reports on it.
 *
 * A peer may send a report at any time after it has received the request, even before it has responded to the request. Therefore
 * reports are handled wherever a message is awaited. */
#include "dicom/network/commit_report.hh"
#include "dicom/network/deadline.hh"
#include "dicom/network/scu.hh"

#include "dcmtk/dcmdata/dctk.h"

#include <cerrno>
#include <cstring>
#include <memory>

using namespace tomonode;

/* Build the data set of the N-ACTION. */
static OFCondition build_request(const char *transaction, const struct commit_object *objects, size_t n, DcmDataset *to)
{
	OFCondition cond = to->putAndInsertString(DCM_TransactionUID, transaction);

	for (size_t i = 0; cond.good() && i < n; i++) {
		DcmItem *item = nullptr;

		cond = to->findOrCreateSequenceItem(DCM_ReferencedSOPSequence, item, -2 /* append a new one */);
		if (cond.good())
			cond = item->putAndInsertString(DCM_ReferencedSOPClassUID, objects[i].sop_class);
		if (cond.good())
			cond = item->putAndInsertString(DCM_ReferencedSOPInstanceUID, objects[i].sop_instance);
	}
	return cond;
}

/* Handle a message other than the expected one. Return 1: it was a report; negative: the association has ended. */
static int other_message(struct scu *s, const T_DIMSE_Message *msg, T_ASC_PresentationContextID id,
			 const struct commit_handler *handler, struct err *err)
{
	int rc;

	if (msg->CommandField != DIMSE_N_EVENT_REPORT_RQ)
		return err_set(err, EPROTO, "%s sent command 0x%04x where a report of storage commitment was expected", s->who,
			       (unsigned)msg->CommandField);
	rc = commit_report_serve(s->assoc, &s->io, s->dimse_timeout, &msg->msg.NEventReportRQ, id, handler, s->who, err);
	return rc < 0 ? rc : 1;
}

/* Wait at most `seconds` for a command. Return 1: received, 0: none; negative: the association has ended. */
static int receive_command(struct scu *s, int seconds, T_ASC_PresentationContextID *ret_id, T_DIMSE_Message *ret_msg,
			   struct err *err)
{
	DcmDataset *detail = nullptr;
	OFCondition cond;

	memset(ret_msg, 0, sizeof(*ret_msg));
	cond = DIMSE_receiveCommand(s->assoc, DIMSE_NONBLOCKING, seconds, ret_id, ret_msg, &detail);
	delete detail;
	if (cond == DIMSE_NODATAAVAILABLE && !s->io.timed_out)
		return 0;
	if (cond == DUL_PEERREQUESTEDRELEASE) {
		ASC_acknowledgeRelease(s->assoc);
		return err_set(err, ECONNRESET, "%s released the association", s->who);
	}
	return cond.bad() ? association_fail(err, &s->io, cond, s->who) : 1;
}

static int request_commitment(struct scu *s, const char *transaction, const struct commit_object *objects, size_t n,
			      const struct commit_handler *handler, uint16_t *ret_status, struct err *err)
{
	T_ASC_PresentationContextID context = ASC_findAcceptedPresentationContextID(s->assoc, COMMIT_CLASS), id = 0;
	T_DIMSE_N_ActionRQ *rq;
	T_DIMSE_Message msg;
	DcmDataset data;
	OFCondition cond;
	unsigned message;
	int64_t deadline;
	int rc;

	if (!context)
		return err_set(err, ENOTSUP, "%s accepted no presentation context for storage commitment", s->who);
	cond = build_request(transaction, objects, n, &data);
	if (cond.bad())
		return err_set(err, ENOMEM, "%s: request of storage commitment: %s", s->who, cond.text());
	message = s->assoc->nextMsgID++;
	memset(&msg, 0, sizeof(msg));
	msg.CommandField = DIMSE_N_ACTION_RQ;
	rq = &msg.msg.NActionRQ;
	rq->MessageID = (DIC_US)message;
	strcpy(rq->RequestedSOPClassUID, COMMIT_CLASS);
	strcpy(rq->RequestedSOPInstanceUID, COMMIT_INSTANCE);
	rq->ActionTypeID = 1; /* request storage commitment, PS3.4 J.3.2 */
	rq->DataSetType = DIMSE_DATASET_PRESENT;
	s->broken = true; /* reset at the end, if everything has succeeded */
	cond = DIMSE_sendMessageUsingMemoryData(s->assoc, context, &msg, nullptr, &data, nullptr, nullptr);
	if (cond.bad())
		return association_fail(err, &s->io, cond, s->who);
	deadline = deadline_now() + (int64_t)s->dimse_timeout * 1000;
	for (;;) { /* reports before the response are handled; the deadline includes them */
		int64_t left = deadline - deadline_now();

		rc = left > 0 ? receive_command(s, (int)((left + 999) / 1000), &id, &msg, err) : 0;
		if (rc == 0)
			return err_set(err, ETIMEDOUT, "%s: no response to the request of storage commitment within %d s", s->who,
				       s->dimse_timeout);
		if (rc < 0)
			return rc;
		if (msg.CommandField == DIMSE_N_ACTION_RSP)
			break;
		rc = other_message(s, &msg, id, handler, err);
		if (rc < 0)
			return rc;
	}
	if (msg.msg.NActionRSP.MessageIDBeingRespondedTo != message)
		return err_set(err, EPROTO, "%s answered Message ID %u of N-ACTION with Message ID %u", s->who, message,
			       (unsigned)msg.msg.NActionRSP.MessageIDBeingRespondedTo);
	if (msg.msg.NActionRSP.DataSetType != DIMSE_DATASET_NULL) { /* an action reply, which is not needed */
		rc = commit_data_drop(s->assoc, &s->io, s->dimse_timeout, s->who, err);
		if (rc < 0)
			return rc;
	}
	s->broken = false;
	*ret_status = msg.msg.NActionRSP.DimseStatus;
	return 0;
}

static int wait_for_report(struct scu *s, int seconds, const struct commit_handler *handler, struct err *err)
{
	T_ASC_PresentationContextID id = 0;
	T_DIMSE_Message msg;
	int rc = receive_command(s, seconds, &id, &msg, err);

	if (rc > 0)
		rc = other_message(s, &msg, id, handler, err);
	if (rc < 0)
		s->broken = true;
	return rc;
}

int scu_commit(struct scu *s, const char *transaction, const struct commit_object *objects, size_t n,
	       const struct commit_handler *handler, uint16_t *ret_status, struct err *err)
{
	if (s->broken)
		return err_set(err, ENOTCONN, "%s: the association has ended", s->who);
	if (n == 0 || n > COMMIT_ITEMS_MAX)
		return err_set(err, EINVAL, "%s: storage commitment of %zu objects; allowed: 1 to %d", s->who, n,
			       COMMIT_ITEMS_MAX);
	return scu_guarded(s, err, [&] { return request_commitment(s, transaction, objects, n, handler, ret_status, err); });
}

int scu_commit_wait(struct scu *s, int seconds, const struct commit_handler *handler, struct err *err)
{
	if (s->broken)
		return err_set(err, ENOTCONN, "%s: the association has ended", s->who);
	return scu_guarded(s, err, [&] { return wait_for_report(s, seconds, handler, err); });
}
