/* SPDX-License-Identifier: Apache-2.0 */
/* store_scu.cc - one association to a storage SCP.
 *
 * - The connection is opened by connect.hh, over IPv6 or IPv4, and then used by DCMTK.
 * - A file is sent as stored, without parsing: outgoing.hh reads its data set in pieces that already contain the headers of PDUs
 * of the size that the peer accepts. Memory is needed for one piece only, and the bytes are those of the file.
 * - For each object in an uncompressed transfer syntax, Implicit VR Little Endian is proposed too (PS3.5 10.1). If the peer
 * accepts only this one, DCMTK converts the data set while it is sent; it reads large values from the file piece by piece.
 * - For each JPEG-LS object, uncompressed transfer syntaxes are proposed too. If the peer accepts only these, the frames are
 *   decoded while the object is sent.
 * - After an error other than a response of the peer, the association is unusable: every later call fails. */
#include "dcmtk/config/osconfig.h"

#include "dcmtk/dcmdata/dcdeftag.h"
#include "dcmtk/dcmdata/dcuid.h"
#include "dcmtk/dcmnet/assoc.h"
#include "dcmtk/dcmnet/dimse.h"

#include "dicom/network/association.hh"
#include "dicom/network/connect.hh"
#include "dicom/network/deadline.hh"
#include "dicom/network/outgoing.hh"
#include "dicom/network/scu.hh"
#include "dicom/pixels/decoded.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unistd.h>

using namespace tomonode;

constexpr int pdu_associate_ac = 2;
constexpr int contexts_max = 128; /* odd numbers 1..255, PS3.8 9.3.2.2 */
constexpr int close_seconds = 2, probe_seconds = 3;

namespace
{

/* ---- opening ---- */

struct Proposal {
	struct scu_context list[contexts_max];
	size_t n;
};

} // namespace

/* Add a presentation context. If there are 128 already, do nothing: scu_store() will report an error for such an object. */
static void propose_context(Proposal *p, const char *sop_class, const char *transfer_syntax)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->list[i].sop_class, sop_class) && !strcmp(p->list[i].transfer_syntax, transfer_syntax))
			return;
	if (p->n == contexts_max)
		return;
	snprintf(p->list[p->n].sop_class, DICOM_UID_SIZE, "%s", sop_class);
	snprintf(p->list[p->n].transfer_syntax, DICOM_UID_SIZE, "%s", transfer_syntax);
	p->n++;
}

static OFCondition add_contexts(struct scu *s, const struct scu_context *contexts, size_t n)
{
	Proposal p;
	OFCondition cond = EC_Normal;

	p.n = 0;
	propose_context(&p, UID_VerificationSOPClass, UID_LittleEndianImplicitTransferSyntax);
	for (size_t i = 0; i < n; i++)
		propose_context(&p, contexts[i].sop_class, contexts[i].transfer_syntax);
	for (size_t i = 0; i < n; i++) { /* conversions are added last, so they are the ones dropped if 128 are too few */
		if (tomonode::decoded_supports(contexts[i].transfer_syntax))
			propose_context(&p, contexts[i].sop_class, UID_LittleEndianExplicitTransferSyntax);
		if (association_uncompressed(contexts[i].transfer_syntax) ||
		    tomonode::decoded_supports(contexts[i].transfer_syntax))
			propose_context(&p, contexts[i].sop_class, UID_LittleEndianImplicitTransferSyntax);
	}
	for (size_t i = 0; cond.good() && i < p.n; i++) {
		const char *ts = p.list[i].transfer_syntax;

		cond = ASC_addPresentationContext(s->params, (T_ASC_PresentationContextID)(2 * i + 1), p.list[i].sop_class, &ts,
						  1);
	}
	return cond;
}

static const char *rejection_text(const T_ASC_RejectParameters *r)
{
	switch (r->reason) {
	case ASC_REASON_SU_CALLINGAETITLENOTRECOGNIZED:
		return "it does not know our AE title";
	case ASC_REASON_SU_CALLEDAETITLENOTRECOGNIZED:
		return "that is not its AE title";
	case ASC_REASON_SU_APPCONTEXTNAMENOTSUPPORTED:
		return "it does not support the DICOM application context";
	case ASC_REASON_SP_ACSE_PROTOCOLVERSIONNOTSUPPORTED:
		return "it does not support the protocol version";
	case ASC_REASON_SP_PRES_TEMPORARYCONGESTION:
		return "it is congested";
	case ASC_REASON_SP_PRES_LOCALLIMITEXCEEDED:
		return "it has too many associations";
	default:
		return "the reason is not given";
	}
}

/* Return whether the peer uses TLS on this port. Called after it has closed the connection without a response, as TLS libraries
 * do when they receive plain DICOM. Open another connection to test it. */
static bool peer_uses_tls(const struct scu_peer *peer)
{
	bool tls;
	int fd;

	if (connect_open(peer->host, peer->port, probe_seconds, "", &fd, nullptr) < 0)
		return false;
	tls = tls_probe(fd, deadline_now() + probe_seconds * 1000);
	close(fd);
	return tls;
}

/* Set the error for an association that could not be opened. */
static int open_failed(struct scu *s, const struct scu_peer *peer, const OFCondition &cond, struct err *err)
{
	int rc;

	if (cond == DUL_ASSOCIATIONREJECTED) {
		T_ASC_RejectParameters r;

		memset(&r, 0, sizeof(r));
		ASC_getRejectParameters(s->params, &r);
		if (r.result == ASC_RESULT_REJECTEDTRANSIENT)
			return err_set(err, EBUSY, "%s rejected the association for now: %s", s->who, rejection_text(&r));
		return err_set(err, EACCES, "%s rejected the association: %s", s->who, rejection_text(&r));
	}
	rc = association_fail(err, &s->io, cond, s->who);
	if (rc == -ECONNRESET && s->io.peer_aborted)
		return -(err->code = ECONNABORTED);
	if (rc == -ECONNRESET && !s->io.received_any && !s->io.tls && peer_uses_tls(peer))
		return err_set(err, EPROTONOSUPPORT, "%s: this port uses TLS and not plain DICOM (tls = true)", s->who);
	return rc;
}

/* Do the TLS handshake on the connection that DCMTK will use. */
static int open_tls(struct scu *s, const struct scu_peer *peer, struct err *err)
{
	const char *name = peer->tls_name && peer->tls_name[0] ? peer->tls_name : nullptr;
	struct tls_conf conf = peer->tls;
	struct err why = {0};
	int rc;

	conf.server = false;
	rc = tls_create(&conf, &s->tls, &why);
	if (rc < 0)
		return err_set(err, -rc, "%s: %s", s->who, why.msg);
	return tls_connect(s->io.connected, s->tls, name, deadline_now() + (int64_t)peer->acse_timeout * 1000, s->who, &s->io.tls,
			   err);
}

static int open_association(struct scu *s, const struct scu_peer *peer, const struct scu_context *contexts, size_t n,
			    struct err *err)
{
	char target[32], here[64] = "localhost";
	OFCondition cond;
	int rc, placeholder = -1, placeholder_port = 0;

	snprintf(s->who, sizeof(s->who), strchr(peer->host, ':') ? "%.16s at [%.100s]:%d" : "%.16s at %.100s:%d", peer->called,
		 peer->host, peer->port);
	if (!association_aet_ok(peer->called) || !association_aet_ok(peer->calling))
		return err_set(err, EINVAL, "%s: AE titles have 1 to 16 printable characters ('%.40s' calls '%.40s')", s->who,
			       peer->calling, peer->called);
	if (peer->port <= 0 || peer->port > 65535)
		return err_set(err, EINVAL, "%s: port %d, allowed 1..65535", s->who, peer->port);
	if (peer->max_pdu < ASC_MINIMUMPDUSIZE || peer->max_pdu > ASC_MAXIMUMPDUSIZE)
		return err_set(err, EINVAL, "%s: maximum PDU %d, allowed %d..%d", s->who, peer->max_pdu, ASC_MINIMUMPDUSIZE,
			       ASC_MAXIMUMPDUSIZE);
	if (peer->connect_timeout <= 0 || peer->acse_timeout <= 0 || peer->dimse_timeout <= 0)
		return err_set(err, EINVAL, "%s: timeouts of %d, %d and %d s, all must be positive", s->who,
			       peer->connect_timeout, peer->acse_timeout, peer->dimse_timeout);
	rc = connect_open(peer->host, peer->port, peer->connect_timeout, s->who, &s->io.connected, err);
	if (rc == 0 && peer->use_tls)
		rc = open_tls(s, peer, err);
	if (rc < 0)
		return rc;
	s->dimse_timeout = peer->dimse_timeout;
	s->acse_timeout = peer->acse_timeout;
	s->io.timeout = peer->acse_timeout;
	association_settings(peer->connect_timeout, peer->dimse_timeout);
	rc = association_network(false, peer->acse_timeout, &s->io, &s->net, err);
	if (rc < 0)
		return rc;
	cond = ASC_createAssociationParameters(&s->params, peer->max_pdu);
	if (cond.bad())
		return association_fail(err, &s->io, cond, s->who);
	snprintf(s->params->ourImplementationClassUID, sizeof(s->params->ourImplementationClassUID), "%s",
		 implementation_class_uid);
	snprintf(s->params->ourImplementationVersionName, sizeof(s->params->ourImplementationVersionName), "%s",
		 implementation_version);
	rc = connect_placeholder(&placeholder, &placeholder_port, err);
	if (rc < 0)
		return rc;
	snprintf(target, sizeof(target), "127.0.0.1:%d", placeholder_port);
	gethostname(here, sizeof(here) - 1);
	ASC_setAPTitles(s->params, peer->calling, peer->called, nullptr);
	ASC_setPresentationAddresses(s->params, here, target);
	cond = add_contexts(s, contexts, n);
	if (cond.good())
		cond = ASC_requestAssociation(s->net, s->params, &s->assoc, nullptr, nullptr, DUL_NOBLOCK, peer->acse_timeout);
	close(placeholder);
	if (cond.bad())
		return open_failed(s, peer, cond, err);
	if (s->io.first_pdu != pdu_associate_ac) /* DCMTK takes any PDU for an acceptance */
		return err_set(err, EPROTO, "%s responded to the association request with a PDU of type 0x%02x", s->who,
			       (unsigned)s->io.first_pdu);
	s->io.timeout = peer->dimse_timeout;
	if (ASC_countAcceptedPresentationContexts(s->assoc->params) == 0)
		return err_set(err, ENOTSUP, "%s accepted the association but none of the %d proposed presentation contexts",
			       s->who, ASC_countPresentationContexts(s->assoc->params));
	return 0;
}

namespace
{

/* ---- sending ---- */

/* The C-STORE-RQ command set, in Implicit VR Little Endian (PS3.7 9.3.1.1). It is built here, because DCMTK can send a command
 * only together with a parsed data set. */
struct Command {
	uint8_t bytes[512];
	size_t n;
};

} // namespace

static void command_put(Command *c, uint16_t element, const void *value, size_t n)
{
	size_t even = n + (n & 1);
	const uint8_t head[8] = {0, 0, (uint8_t)element, (uint8_t)(element >> 8), (uint8_t)even, (uint8_t)(even >> 8), 0, 0};

	memcpy(c->bytes + c->n, head, sizeof(head));
	memcpy(c->bytes + c->n + sizeof(head), value, n);
	c->n += sizeof(head) + even;
}

static void command_put_us(Command *c, uint16_t element, unsigned value)
{
	const uint8_t b[2] = {(uint8_t)value, (uint8_t)(value >> 8)};

	command_put(c, element, b, 2);
}

static void command_build(Command *c, const Outgoing *f, unsigned message)
{
	uint8_t length[4] = {0, 0, 0, 0};
	size_t group;

	memset(c, 0, sizeof(*c));
	command_put(c, 0x0000, length, 4);
	command_put(c, 0x0002, f->sop_class, strlen(f->sop_class));
	command_put_us(c, 0x0100, 0x0001); /* C-STORE-RQ */
	command_put_us(c, 0x0110, message);
	command_put_us(c, 0x0700, 0);	   /* priority: medium */
	command_put_us(c, 0x0800, 0x0001); /* a data set follows */
	command_put(c, 0x1000, f->sop_instance, strlen(f->sop_instance));
	group = c->n - 12;
	c->bytes[8] = (uint8_t)group;
	c->bytes[9] = (uint8_t)(group >> 8);
}

static OFCondition send_command(struct scu *s, T_ASC_PresentationContextID id, Command *c)
{
	DUL_PDV pdv;
	DUL_PDVLIST list;

	memset(&pdv, 0, sizeof(pdv));
	pdv.fragmentLength = c->n;
	pdv.presentationContextID = id;
	pdv.pdvType = DUL_COMMANDPDV;
	pdv.lastPDV = true;
	pdv.data = c->bytes;
	memset(&list, 0, sizeof(list));
	list.count = 1;
	list.pdv = &pdv;
	return DUL_WritePDVs(&s->assoc->DULassociation, &list);
}

/* Return how many bytes of data a PDU to the peer may have, an even number. DCMTK's own number is never less than 4084, whatever the
 * peer accepts. */
static size_t data_per_pdu(const struct scu *s)
{
	constexpr size_t head = 12; /* of a P-DATA-TF with one PDV, as DCMTK counts it */
	size_t most = s->assoc->params->theirMaxPDUReceiveSize, usual = s->assoc->sendPDVLength;

	if (most == 0) /* no limit, PS3.8 D.1 */
		return usual;
	return most > head ? std::min(usual, (most - head) & ~(size_t)1) : 0;
}

static int send_as_stored(struct scu *s, const Outgoing *f, T_ASC_PresentationContextID id, unsigned message, const char *path,
			  struct err *err)
{
	OutgoingPiece piece;
	Command c;
	off_t at = f->data;
	size_t room = data_per_pdu(s);
	OFCondition cond;

	if (room == 0)
		return err_set(err, EPROTO, "%s accepts no data: PDUs of %u bytes at most", s->who,
			       (unsigned)s->assoc->params->theirMaxPDUReceiveSize);
	outgoing_piece_init(&piece, room);
	command_build(&c, f, message);
	cond = send_command(s, id, &c);
	if (cond.bad())
		return association_fail(err, &s->io, cond, s->who);
	while (at < f->size) {
		size_t data, n;
		int rc = outgoing_piece_fill(&piece, f, id, at, &data, &n);

		if (rc < 0) /* read error: end without the last fragment, so that the peer does not store an incomplete object */
			return err_set(err, -rc, "%s: cannot read at byte %lld: %s", path, (long long)at, strerror(-rc));
		rc = association_write(&s->io, piece.bytes.get(), n, s->who, err);
		if (rc < 0)
			return rc;
		at += (off_t)data;
	}
	return 0;
}

static int send_converted(struct scu *s, const Outgoing *f, T_ASC_PresentationContextID id, unsigned message, const char *path,
			  struct err *err)
{
	T_DIMSE_Message msg;
	T_DIMSE_C_StoreRQ *rq = &msg.msg.CStoreRQ;
	OFCondition cond;

	memset(&msg, 0, sizeof(msg));
	msg.CommandField = DIMSE_C_STORE_RQ;
	rq->MessageID = (DIC_US)message;
	snprintf(rq->AffectedSOPClassUID, sizeof(rq->AffectedSOPClassUID), "%.64s", f->sop_class);
	snprintf(rq->AffectedSOPInstanceUID, sizeof(rq->AffectedSOPInstanceUID), "%.64s", f->sop_instance);
	rq->DataSetType = DIMSE_DATASET_PRESENT;
	rq->Priority = DIMSE_PRIORITY_MEDIUM;
	cond = DIMSE_sendMessageUsingFileData(s->assoc, id, &msg, nullptr, path, nullptr, nullptr);
	return cond.bad() ? association_fail(err, &s->io, cond, s->who) : 0;
}

/* Send one PDU of the data set, for data that are not sent directly from a file. */
static OFCondition send_data(struct scu *s, T_ASC_PresentationContextID id, size_t n, bool last)
{
	DUL_PDV pdv;
	DUL_PDVLIST list;

	memset(&pdv, 0, sizeof(pdv));
	pdv.fragmentLength = n;
	pdv.presentationContextID = id;
	pdv.pdvType = DUL_DATASETPDV;
	pdv.lastPDV = last;
	pdv.data = s->assoc->sendPDVBuffer;
	memset(&list, 0, sizeof(list));
	list.count = 1;
	list.pdv = &pdv;
	return DUL_WritePDVs(&s->assoc->DULassociation, &list);
}

static int send_decoded(struct scu *s, const Outgoing *f, T_ASC_PresentationContextID id, bool implicit, unsigned message,
			const char *path, struct err *err)
{
	std::unique_ptr<tomonode::Decoded> data;
	Command c;
	OFCondition cond;
	uint64_t at = 0;
	int rc = tomonode::decoded_open(path, implicit, &data, err);

	if (rc < 0)
		return rc;
	command_build(&c, f, message);
	cond = send_command(s, id, &c);
	while (cond.good() && at < data->size()) {
		size_t n = s->assoc->sendPDVLength;

		if (n > data->size() - at)
			n = (size_t)(data->size() - at);
		rc = data->read(s->assoc->sendPDVBuffer, n, err);
		if (rc < 0) /* end without the last fragment, so that the peer does not store an incomplete object */
			return rc;
		at += n;
		cond = send_data(s, id, n, at == data->size());
	}
	return cond.bad() ? association_fail(err, &s->io, cond, s->who) : 0;
}

/* Keep the Error Comment of a response; other characters than printable ASCII become '?'. */
static void keep_comment(struct scu *s, DcmDataset *detail)
{
	OFString text;

	s->comment[0] = '\0';
	if (!detail || detail->findAndGetOFString(DCM_ErrorComment, text).bad())
		return;
	snprintf(s->comment, sizeof(s->comment), "%s", text.c_str());
	for (char *c = s->comment; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static int receive_response(struct scu *s, unsigned message, const char *sop_instance, uint16_t *ret_status, struct err *err)
{
	T_DIMSE_Message msg;
	T_ASC_PresentationContextID id = 0;
	DcmDataset *detail = nullptr;
	OFCondition cond;

	memset(&msg, 0, sizeof(msg));
	cond = DIMSE_receiveCommand(s->assoc, DIMSE_NONBLOCKING, s->dimse_timeout, &id, &msg, &detail);
	if (cond.good())
		keep_comment(s, detail);
	delete detail;
	if (cond == DUL_PEERREQUESTEDRELEASE)
		return err_set(err, ECONNRESET, "%s requested to release the association instead of responding to C-STORE",
			       s->who);
	if (cond.bad())
		return association_fail(err, &s->io, cond, s->who);
	if (msg.CommandField != DIMSE_C_STORE_RSP)
		return err_set(err, EPROTO, "%s responded to C-STORE with another message, command 0x%04x", s->who,
			       (unsigned)msg.CommandField);
	if (msg.msg.CStoreRSP.MessageIDBeingRespondedTo != message)
		return err_set(err, EPROTO,
			       "%s responded to the C-STORE with Message ID %u, but the one that was sent has Message ID %u: the "
			       "response is not counted",
			       s->who, (unsigned)msg.msg.CStoreRSP.MessageIDBeingRespondedTo, message);
	if ((msg.msg.CStoreRSP.opts & O_STORE_AFFECTEDSOPINSTANCEUID) &&
	    strcmp(msg.msg.CStoreRSP.AffectedSOPInstanceUID, sop_instance) != 0)
		return err_set(
			err, EPROTO,
			"%s responded to the C-STORE of %s with a response about the object %s: the response is not counted",
			s->who, sop_instance, msg.msg.CStoreRSP.AffectedSOPInstanceUID);
	*ret_status = msg.msg.CStoreRSP.DimseStatus;
	return 0;
}

/* Return the accepted presentation context of this class and transfer syntax; 0: none. (DCMTK's function may return one
 * with another transfer syntax.) */
static T_ASC_PresentationContextID accepted_context(const struct scu *s, const char *sop_class, const char *transfer_syntax)
{
	T_ASC_PresentationContextID id = ASC_findAcceptedPresentationContextID(s->assoc, sop_class, transfer_syntax);
	T_ASC_PresentationContext pc;

	return id && ASC_findAcceptedPresentationContext(s->assoc->params, id, &pc).good() &&
			       !strcmp(pc.acceptedTransferSyntax, transfer_syntax)
		       ? id
		       : 0;
}

static bool accepts_context(const struct scu *s, const struct scu_context *c)
{
	const char *ts = c->transfer_syntax;
	bool plain = accepted_context(s, c->sop_class, UID_LittleEndianExplicitTransferSyntax);
	bool implicit = accepted_context(s, c->sop_class, UID_LittleEndianImplicitTransferSyntax);

	return accepted_context(s, c->sop_class, ts) || (association_uncompressed(ts) && implicit) ||
	       (tomonode::decoded_supports(ts) && (plain || implicit));
}

static int store_object(struct scu *s, const Outgoing *f, const char *path, uint16_t *ret_status, struct err *err)
{
	T_ASC_PresentationContextID stored = accepted_context(s, f->sop_class, f->transfer_syntax);
	T_ASC_PresentationContextID plain = accepted_context(s, f->sop_class, UID_LittleEndianExplicitTransferSyntax);
	T_ASC_PresentationContextID implicit = accepted_context(s, f->sop_class, UID_LittleEndianImplicitTransferSyntax);
	unsigned message = s->assoc->nextMsgID++;
	int rc;

	if (stored)
		rc = send_as_stored(s, f, stored, message, path, err);
	else if (association_uncompressed(f->transfer_syntax) && implicit)
		rc = send_converted(s, f, implicit, message, path, err);
	else if (tomonode::decoded_supports(f->transfer_syntax) && (plain || implicit))
		rc = send_decoded(s, f, plain ? plain : implicit, !plain, message, path, err);
	else
		return err_set(err, ENOTSUP, "%s accepted no presentation context for class %s (%s) in transfer syntax %s",
			       s->who, f->sop_class, dicom_uid_name(f->sop_class), f->transfer_syntax);
	if (rc == 0)
		rc = receive_response(s, message, f->sop_instance, ret_status, err);
	if (rc < 0 && rc != -ENOTSUP) /* ENOTSUP is returned before anything is sent */
		s->broken = true;
	return rc;
}

static int send_echo(struct scu *s, struct err *err)
{
	DIC_US status = 0;
	OFCondition cond = DIMSE_echoUser(s->assoc, s->assoc->nextMsgID++, DIMSE_NONBLOCKING, s->dimse_timeout, &status, nullptr);

	if (cond == DIMSE_NOVALIDPRESENTATIONCONTEXTID)
		return err_set(err, ENOTSUP, "%s accepted no presentation context for C-ECHO", s->who);
	if (cond.bad()) {
		s->broken = true;
		return association_fail(err, &s->io, cond, s->who);
	}
	if (status != STATUS_Success)
		return err_set(err, EPROTO, "%s responded to C-ECHO with status %04X", s->who, status);
	return 0;
}

/* ---- functions of the C interface; they catch all exceptions ---- */

int scu_open(const struct scu_peer *peer, const struct scu_context *contexts, size_t n, struct scu **ret_scu, struct err *err)
{
	return guarded(err, "scu_open", [&] {
		auto s = std::make_unique<struct scu>();
		int rc = open_association(s.get(), peer, contexts, n, err);

		if (rc == 0)
			*ret_scu = s.release();
		return rc;
	});
}

int scu_echo(struct scu *s, struct err *err)
{
	if (s->broken)
		return err_set(err, ENOTCONN, "%s: the association has ended", s->who);
	return scu_guarded(s, err, [&] { return send_echo(s, err); });
}

bool scu_accepts(const struct scu *s, const struct scu_context *object)
{
	return !s->broken && accepts_context(s, object);
}

const char *scu_comment(const struct scu *s)
{
	return s->comment;
}

int scu_store(struct scu *s, const char *path, uint16_t *ret_status, struct err *err)
{
	Outgoing f;
	int rc;

	if (s->broken)
		return err_set(err, ENOTCONN, "%s: the association has ended", s->who);
	rc = outgoing_open(&f, path, err);
	if (rc == 0)
		rc = scu_guarded(s, err, [&] { return store_object(s, &f, path, ret_status, err); });
	outgoing_close(&f);
	return rc;
}

struct scu *scu_close(struct scu *s)
{
	if (!s)
		return nullptr;
	guarded(nullptr, "scu_close", [&] {
		association_close_within(&s->io, s->broken ? close_seconds : s->acse_timeout);
		if (s->broken || ASC_releaseAssociation(s->assoc).bad())
			ASC_abortAssociation(s->assoc);
		return 0;
	});
	delete s; /* closes the connection in every case */
	return nullptr;
}
