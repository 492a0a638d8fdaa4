/* SPDX-License-Identifier: Apache-2.0 */
/* store_scp.cc - one association from its request to its end.
 *
 * Invariants:
 * - The stream passed to DCMTK always reports success, and FileWriter stores a write error, which is checked here. (DCMTK 3.6.7
 *   reads for ever if the write of the last fragment fails, and reports success if its last buffer could not be written.)
 * - This file sends the response, after the handler's end() has made the object durable or discarded it.
 * - For each begin() that returned a descriptor there is exactly one end(). */
#include "dcmtk/config/osconfig.h"

#include "dcmtk/dcmdata/dcuid.h"
#include "dcmtk/dcmnet/assoc.h"
#include "dcmtk/dcmnet/dimse.h"

#include "dicom/core/consumer.hh"
#include "dicom/core/guarded.hh"
#include "dicom/network/association.hh"
#include "dicom/network/commit_report.hh"
#include "dicom/network/deadline.hh"
#include "dicom/network/file_writer.hh"
#include "dicom/network/store_scp.h"
#include "dicom/network/tls.hh"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace tomonode;

constexpr size_t refused_text_max = 300; /* bytes after which no further refused class is named */
constexpr int close_seconds = 2;	 /* time for a peer to close its side after a release or abort, s */

namespace
{

/* Passes the bytes of a data set from DCMTK to the FileWriter. */
class Sink : public Consumer
{
      public:
	explicit Sink(FileWriter *o) : to(o)
	{
	}

	offile_off_t write(const void *buf, offile_off_t n) override
	{
		to->put(buf, (size_t)n);
		received += (uint64_t)n;
		return n;
	}

	FileWriter *to;
	uint64_t received = 0; /* bytes of the data set */
};

class SinkStream : public DcmOutputStream
{
      public:
	explicit SinkStream(Sink *to) : DcmOutputStream(to)
	{
	}
};

/* State of one association. */
struct Scp {
	const struct scp_conf *conf;
	const struct scp_handler *handler;
	AssociationIo io;
	T_ASC_Network *net = nullptr;
	T_ASC_Association *assoc = nullptr;
	char calling[17] = "", called[17] = "", host[64] = "";
	bool admitted = false;
	std::unique_ptr<FileWriter> file; /* created for the first object */

	~Scp()
	{
		if (assoc)
			ASC_destroyAssociation(&assoc);
		if (net)
			ASC_dropNetwork(&net);
		tls_stream_free(io.tls);
	}
};

/* ---- the beginning of a Part 10 file: preamble, "DICM", group 0002 in Explicit VR Little Endian (PS3.10 7.1) ---- */

struct Meta {
	uint8_t bytes[1024];
	size_t n;
};

} // namespace

static void meta_put(Meta *m, uint16_t element, const char *vr, const void *value, size_t n, uint8_t pad)
{
	bool is_long = !strcmp(vr, "OB");
	size_t even = n + (n & 1);
	const uint8_t head[] = {0x02, 0x00, (uint8_t)element, (uint8_t)(element >> 8), (uint8_t)vr[0], (uint8_t)vr[1]};

	memcpy(m->bytes + m->n, head, sizeof(head));
	m->n += sizeof(head);
	if (is_long) {
		m->bytes[m->n++] = 0;
		m->bytes[m->n++] = 0;
	}
	m->bytes[m->n++] = (uint8_t)even;
	m->bytes[m->n++] = (uint8_t)(even >> 8);
	if (is_long) {
		m->bytes[m->n++] = 0;
		m->bytes[m->n++] = 0;
	}
	memcpy(m->bytes + m->n, value, n);
	m->n += n;
	if (n & 1)
		m->bytes[m->n++] = pad;
}

/* Build the bytes. All values are shorter than 65 bytes, so 1024 bytes are enough. */
static void meta_build(Meta *m, const struct scp_object *o)
{
	const uint8_t version[2] = {0, 1};
	uint8_t length[4] = {0, 0, 0, 0};
	size_t start, group;

	memset(m->bytes, 0, 128);
	memcpy(m->bytes + 128, "DICM", 4);
	m->n = 132;
	meta_put(m, 0x0000, "UL", length, 4, 0);
	start = m->n;
	meta_put(m, 0x0001, "OB", version, 2, 0);
	meta_put(m, 0x0002, "UI", o->sop_class, strlen(o->sop_class), 0);
	meta_put(m, 0x0003, "UI", o->sop_instance, strlen(o->sop_instance), 0);
	meta_put(m, 0x0010, "UI", o->transfer_syntax, strlen(o->transfer_syntax), 0);
	meta_put(m, 0x0012, "UI", implementation_class_uid, strlen(implementation_class_uid), 0);
	meta_put(m, 0x0013, "SH", implementation_version, strlen(implementation_version), ' ');
	meta_put(m, 0x0016, "AE", o->calling, strlen(o->calling), ' ');
	group = m->n - start;
	for (int i = 0; i < 4; i++)
		m->bytes[start - 4 + i] = (uint8_t)(group >> (8 * i));
}

/* ---- connection and association request ---- */

/* Wait for the first byte and read it without consuming it: it shows whether the peer uses TLS, plain DICOM or neither. */
static int check_first_byte(Scp *s, int fd, int64_t deadline, struct err *err)
{
	uint8_t b[2] = {0, 0};
	ssize_t n;

	switch (deadline_wait(fd, POLLIN, deadline)) {
	case 0:
		return err_set(err, ETIMEDOUT, "%s connected and sent nothing for %d s", s->host, s->conf->acse_timeout);
	case -1:
		return err_set(err, errno, "%s: %s", s->host, strerror(errno));
	}
	n = recv(fd, b, sizeof(b), MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return err_set(err, ENODATA, "%s connected and closed the connection without sending anything", s->host);
	if (b[0] == 0x16 && (n < 2 || b[1] == 0x03)) {
		if (s->conf->tls)
			return 0;
		return err_set(
			err, EPROTONOSUPPORT,
			"%s began a TLS handshake, but this port uses plain DICOM: switch TLS off at the sender, or let it "
			"use a port with TLS",
			s->host);
	}
	if (b[0] == 0x01 && s->conf->tls)
		return err_set(
			err, EPROTONOSUPPORT,
			"%s uses plain DICOM, but this port requires TLS: switch TLS on at the sender, or let it use a port "
			"without TLS",
			s->host);
	if (b[0] != 0x01)
		return err_set(err, EPROTO, "%s does not use %s: the first byte is 0x%02x, not %s", s->host,
			       s->conf->tls ? "TLS" : "DICOM", b[0],
			       s->conf->tls ? "a handshake (0x16)" : "an A-ASSOCIATE-RQ (0x01)");
	return 0;
}

/* Send the rejection, and wait for the peer to close. Return 0. */
static int reject_association(Scp *s, T_ASC_RejectParametersResult result, T_ASC_RejectParametersSource source,
			      T_ASC_RejectParametersReason reason)
{
	T_ASC_RejectParameters rej = {result, source, reason};

	association_close_within(&s->io, close_seconds);
	if (ASC_rejectAssociation(s->assoc, &rej).good())
		ASC_dropSCPAssociation(s->assoc, close_seconds);
	return 0;
}

static bool storage_class(const char *uid)
{
	return association_uid_ok(uid) && dicom_is_storage_class(uid);
}

static bool is_served(const Scp *s, const char *abstract_syntax)
{
	return !strcmp(abstract_syntax, UID_VerificationSOPClass) ||
	       (s->handler->commit && !strcmp(abstract_syntax, COMMIT_CLASS)) || storage_class(abstract_syntax);
}

/* Append the transfer syntaxes of all contexts of a class. false: one of these contexts was accepted, or is before `first`. */
static bool add_syntaxes(T_ASC_Parameters *params, int first, const char *abstract_syntax, std::string *to)
{
	T_ASC_PresentationContext pc;

	for (int i = 0; i < ASC_countPresentationContexts(params); i++) {
		if (ASC_getPresentationContext(params, i, &pc).bad() || strcmp(pc.abstractSyntax, abstract_syntax) != 0)
			continue;
		if (i < first || pc.resultReason == ASC_P_ACCEPTANCE)
			return false;
		for (int k = 0; k < (int)pc.transferSyntaxCount && to->size() <= refused_text_max / 2; k++)
			(*to += " ") += to->size() < refused_text_max / 2 ? pc.proposedTransferSyntaxes[k] : "...";
	}
	return true;
}

/* Report the classes of which no context was accepted; of many, only the first ones are named. */
static void report_refused(Scp *s)
{
	T_ASC_Parameters *params = s->assoc->params;
	T_ASC_PresentationContext pc;
	std::string text;
	unsigned n = 0;

	for (int i = 0; i < ASC_countPresentationContexts(params); i++) {
		std::string syntaxes;

		if (ASC_getPresentationContext(params, i, &pc).bad() || !add_syntaxes(params, i, pc.abstractSyntax, &syntaxes))
			continue;
		n++;
		if (text.size() > refused_text_max)
			continue;
		text += (text.empty() ? "" : "; ") + std::string(pc.abstractSyntax);
		text += is_served(s, pc.abstractSyntax) ? " (none of its transfer syntaxes is supported:" + syntaxes + ")"
							: " (this class is not supported)";
	}
	if (n > 0 && s->handler->contexts_refused)
		s->handler->contexts_refused(s->handler->ctx, n, text.c_str());
}

/* Accept each context that can be served, with the first proposed transfer syntax that can be stored. */
static OFCondition accept_contexts(Scp *s)
{
	T_ASC_Parameters *params = s->assoc->params;
	int n = ASC_countPresentationContexts(params);

	for (int i = 0; i < n; i++) {
		T_ASC_PresentationContext pc;
		OFCondition cond = ASC_getPresentationContext(params, i, &pc);
		const char *chosen = nullptr;
		bool verification, commitment, known, ignored;

		if (cond.bad())
			return cond;
		verification = !strcmp(pc.abstractSyntax, UID_VerificationSOPClass);
		commitment = s->handler->commit && !strcmp(pc.abstractSyntax, COMMIT_CLASS);
		known = is_served(s, pc.abstractSyntax);
		for (int k = 0; known && !chosen && k < (int)pc.transferSyntaxCount; k++) {
			const char *ts = pc.proposedTransferSyntaxes[k];

			if (commitment	   ? commit_transfer_syntax(ts, &ignored)
			    : verification ? association_uncompressed(ts)
					   : association_storable(ts))
				chosen = ts;
		}
		if (chosen) /* the peer that reports commitment has the SCP role of this class, and negotiates it (PS3.4 J.3.3) */
			cond = ASC_acceptPresentationContext(params, pc.presentationContextID, chosen,
							     commitment ? pc.proposedRole : ASC_SC_ROLE_DEFAULT);
		else
			cond = ASC_refusePresentationContext(params, pc.presentationContextID,
							     known ? ASC_P_TRANSFERSYNTAXESNOTSUPPORTED
								   : ASC_P_ABSTRACTSYNTAXNOTSUPPORTED);
		if (cond.bad())
			return cond;
	}
	return EC_Normal;
}

static int negotiate_association(Scp *s, struct err *err)
{
	char context[DICOM_UI_LENGTH + 1] = "", why[500] = "", what[100];
	struct scp_request request = {s->calling, s->called, s->host, nullptr};
	struct tls_peer certificate;
	enum scp_admission admission;
	OFCondition cond = ASC_receiveAssociation(s->net, &s->assoc, s->conf->max_pdu, nullptr, nullptr, OFFalse, DUL_NOBLOCK,
						  s->conf->acse_timeout);

	snprintf(what, sizeof(what), "association request of %s", s->host);
	if (cond.bad())
		return association_fail(err, &s->io, cond, what);
	if (s->io.head_received > 0 || s->io.body_left > 0) /* DCMTK takes an incomplete request for one without content */
		return err_set(err, ECONNRESET, "%s closed the connection within its association request", s->host);
	ASC_getAPTitles(s->assoc->params, s->calling, sizeof(s->calling), s->called, sizeof(s->called), nullptr, 0);
	if (ASC_getApplicationContextName(s->assoc->params, context, sizeof(context)).bad() ||
	    strcmp(context, UID_StandardApplicationContext) != 0) {
		reject_association(s, ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
				   ASC_REASON_SU_APPCONTEXTNAMENOTSUPPORTED);
		return err_set(err, EACCES, "%s requests an application context that is not DICOM's", s->host);
	}
	if (!association_aet_ok(s->calling)) {
		reject_association(s, ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
				   ASC_REASON_SU_CALLINGAETITLENOTRECOGNIZED);
		return err_set(err, EACCES, "%s sent a calling AE title that is empty or has illegal characters", s->host);
	}
	if (s->io.tls && tls_get_peer(s->io.tls, &certificate))
		request.certificate = &certificate;
	admission = s->handler->admit(s->handler->ctx, &request, why, sizeof(why));
	switch (admission) {
	case SCP_ADMIT:
		break;
	case SCP_REJECT_CALLED:
		reject_association(s, ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
				   ASC_REASON_SU_CALLEDAETITLENOTRECOGNIZED);
		return err_set(err, EACCES, "%s", why);
	case SCP_REJECT_CALLING:
		reject_association(s, ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
				   ASC_REASON_SU_CALLINGAETITLENOTRECOGNIZED);
		return err_set(err, EACCES, "%s", why);
	default:
		reject_association(s, ASC_RESULT_REJECTEDTRANSIENT, ASC_SOURCE_SERVICEPROVIDER_PRESENTATION_RELATED,
				   ASC_REASON_SP_PRES_LOCALLIMITEXCEEDED);
		return err_set(err, EBUSY, "%s", why);
	}
	snprintf(s->assoc->params->ourImplementationClassUID, sizeof(s->assoc->params->ourImplementationClassUID), "%s",
		 implementation_class_uid);
	snprintf(s->assoc->params->ourImplementationVersionName, sizeof(s->assoc->params->ourImplementationVersionName), "%s",
		 implementation_version);
	cond = accept_contexts(s);
	if (cond.good())
		cond = ASC_acknowledgeAssociation(s->assoc);
	if (cond.bad())
		return association_fail(err, &s->io, cond, what);
	s->admitted = true;
	report_refused(s);
	return 0;
}

/* ---- one object ---- */

/* Check the UIDs of the request against its presentation context. If they are wrong, set *ret_status and return the reason. */
static const char *check_request(const T_DIMSE_C_StoreRQ *rq, const T_ASC_PresentationContext *pc, uint16_t *ret_status)
{
	if (!association_uid_ok(rq->AffectedSOPInstanceUID)) {
		*ret_status = STORE_INVALID_INSTANCE;
		return "its SOP Instance UID is not a valid UID";
	}
	*ret_status = STORE_CLASS_NOT_SUPPORTED;
	if (strcmp(rq->AffectedSOPClassUID, pc->abstractSyntax) != 0)
		return "its SOP class is not that of its presentation context";
	if (!strcmp(pc->abstractSyntax, UID_VerificationSOPClass))
		return "its presentation context is that of C-ECHO";
	return nullptr;
}

static int store_object(Scp *s, const T_DIMSE_C_StoreRQ *rq, T_ASC_PresentationContextID id, struct err *err)
{
	const struct scp_handler *h = s->handler;
	T_ASC_PresentationContext pc;
	T_ASC_PresentationContextID data_id = 0;
	T_DIMSE_C_StoreRSP rsp;
	struct scp_object o;
	Meta meta;
	uint16_t status = STORE_OUT_OF_RESOURCES;
	const char *why;
	uint64_t written = 0;
	int fd = -1, error;
	OFCondition cond = ASC_findAcceptedPresentationContext(s->assoc->params, id, &pc);

	if (cond.bad())
		return association_fail(err, &s->io, cond, "C-STORE");
	snprintf(o.sop_class, sizeof(o.sop_class), "%s", rq->AffectedSOPClassUID);
	snprintf(o.sop_instance, sizeof(o.sop_instance), "%s", rq->AffectedSOPInstanceUID);
	snprintf(o.transfer_syntax, sizeof(o.transfer_syntax), "%s", pc.acceptedTransferSyntax);
	snprintf(o.calling, sizeof(o.calling), "%s", s->calling);
	snprintf(o.host, sizeof(o.host), "%s", s->host);

	if (!s->file)
		s->file.reset(new FileWriter(h->data, h->ctx));
	why = check_request(rq, &pc, &status);
	if (!why)
		fd = h->begin(h->ctx, &o, &status);
	else if (h->refused)
		h->refused(h->ctx, &o, status, why);

	Sink to(s->file.get());
	SinkStream stream(&to);

	meta_build(&meta, &o);
	s->file->begin(fd, meta.bytes, meta.n);
	cond = DIMSE_receiveDataSetInFile(s->assoc, DIMSE_NONBLOCKING, s->conf->dimse_timeout, &data_id, &stream, nullptr,
					  nullptr);
	error = s->file->finish(&written);
	if (cond.good() && data_id != id)
		cond = DIMSE_NOVALIDPRESENTATIONCONTEXTID;
	if (!error && to.received == 0)
		error = EBADMSG;
	if (fd >= 0)
		status = h->end(h->ctx, &o, written, cond.bad() ? ECONNRESET : error);
	if (cond.bad())
		return association_fail(err, &s->io, cond, "C-STORE data set");

	memset(&rsp, 0, sizeof(rsp));
	rsp.DimseStatus = status;
	cond = DIMSE_sendStoreResponse(s->assoc, id, rq, &rsp, nullptr);
	if (cond.bad())
		return association_fail(err, &s->io, cond, "C-STORE response");
	return 0;
}

/* ---- all messages of an association ---- */

/* Serve one message. Return 1: released by the peer; 0: continue; negative: the association is unusable. */
static int serve_message(Scp *s, struct err *err)
{
	T_DIMSE_Message msg;
	T_ASC_PresentationContextID id = 0;
	OFCondition cond;

	memset(&msg, 0, sizeof(msg));
	cond = DIMSE_receiveCommand(s->assoc, DIMSE_NONBLOCKING, s->conf->dimse_timeout, &id, &msg, nullptr);
	if (cond == DUL_PEERREQUESTEDRELEASE)
		return 1;
	if (cond.bad())
		return association_fail(err, &s->io, cond, "waiting for a message");
	switch (msg.CommandField) {
	case DIMSE_C_ECHO_RQ:
		cond = DIMSE_sendEchoResponse(s->assoc, id, &msg.msg.CEchoRQ, STATUS_Success, nullptr);
		if (cond.good() && s->handler->echoed)
			s->handler->echoed(s->handler->ctx);
		return cond.bad() ? association_fail(err, &s->io, cond, "C-ECHO response") : 0;
	case DIMSE_C_STORE_RQ:
		return store_object(s, &msg.msg.CStoreRQ, id, err);
	case DIMSE_N_EVENT_REPORT_RQ:
		if (!s->handler->commit)
			break;
		return commit_report_serve(s->assoc, &s->io, s->conf->dimse_timeout, &msg.msg.NEventReportRQ, id,
					   s->handler->commit, "N-EVENT-REPORT", err);
	case DIMSE_C_CANCEL_RQ: /* no operation in progress could be cancelled */
		return 0;
	default:
		break;
	}
	return err_set(err, EPROTO, "the peer sent DIMSE command 0x%04x, which is not supported", (unsigned)msg.CommandField);
}

static int serve_messages(Scp *s, struct err *err)
{
	int rc;

	s->io.timeout = s->conf->dimse_timeout;
	do
		rc = serve_message(s, err);
	while (rc == 0);
	association_close_within(&s->io, close_seconds);
	if (rc > 0) {
		if (ASC_acknowledgeRelease(s->assoc).good())
			ASC_dropSCPAssociation(s->assoc, close_seconds);
		return 0;
	}
	if (rc != -ECONNRESET)
		ASC_abortAssociation(s->assoc);
	return rc;
}

static int run_association(int fd, const struct scp_conf *conf, const struct scp_handler *handler, struct err *err)
{
	Scp s;
	int64_t deadline;
	int rc;

	s.conf = conf;
	s.handler = handler;
	s.io.timeout = conf->acse_timeout;
	snprintf(s.host, sizeof(s.host), "%s", conf->host);
	deadline = deadline_now() + (int64_t)conf->acse_timeout * 1000;
	rc = check_first_byte(&s, fd, deadline, err);
	if (rc == 0 && conf->tls)
		rc = tls_accept(fd, conf->tls, deadline, s.host, &s.io.tls, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	association_settings(conf->acse_timeout, conf->dimse_timeout);
	dcmExternalSocketHandle.set(fd);
	rc = association_network(true, conf->acse_timeout, &s.io, &s.net, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	rc = negotiate_association(&s, err);
	if (rc == 0)
		rc = serve_messages(&s, err);
	if (s.admitted)
		handler->ended(handler->ctx, rc == 0);
	return rc;
}

int scp_associate(int fd, const struct scp_conf *conf, const struct scp_handler *handler, struct err *err)
{
	if (fd <= 0) /* DCMTK treats descriptor 0 as none */
		return err_set(err, EBADF, "association: descriptor %d", fd);
	if (conf->max_pdu < ASC_MINIMUMPDUSIZE || conf->max_pdu > ASC_MAXIMUMPDUSIZE)
		return err_set(err, EINVAL, "association: maximum PDU %d, allowed %d..%d", conf->max_pdu, ASC_MINIMUMPDUSIZE,
			       ASC_MAXIMUMPDUSIZE);
	if (conf->acse_timeout <= 0 || conf->dimse_timeout <= 0)
		return err_set(err, EINVAL, "association: timeouts %d and %d s, both must be positive", conf->acse_timeout,
			       conf->dimse_timeout);
	return guarded(err, "association", [&] { return run_association(fd, conf, handler, err); });
}
