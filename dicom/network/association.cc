/* SPDX-License-Identifier: Apache-2.0 */
#include "dcmtk/config/osconfig.h"

#include "dcmtk/dcmnet/assoc.h"
#include "dcmtk/dcmnet/dcmlayer.h"
#include "dcmtk/dcmnet/dcmtrans.h"
#include "dcmtk/dcmnet/dimse.h"

#include "dicom/network/association.hh"
#include "dicom/network/deadline.hh"
#include "dicom/network/tls.hh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

constexpr uint8_t pdu_p_data = 4, pdu_abort = 7;
constexpr uint8_t pdv_command = 1, pdv_last = 2; /* bits of the message control header */

namespace tomonode
{

/* Check the header of a PDV: its length must fit its PDU, and a command must not be too long. Return 0 or -1. */
static int check_pdv(AssociationIo *io)
{
	uint64_t length = (uint64_t)io->pdv[0] << 24 | (uint64_t)io->pdv[1] << 16 | (uint64_t)io->pdv[2] << 8 | io->pdv[3];

	/* body_left still includes the last byte of this header. */
	if (length < 2 || length - 1 > io->body_left) {
		io->malformed = "a presentation data value is longer than its PDU";
		return -1;
	}
	io->pdv_left = length - 2;
	if (io->pdv[5] & pdv_command)
		io->command_bytes += io->pdv_left;
	if (io->command_bytes > association_command_max) {
		io->malformed = "a command is longer than 1 MiB";
		return -1;
	}
	if ((io->pdv[5] & (pdv_command | pdv_last)) == (pdv_command | pdv_last))
		io->command_bytes = 0;
	return 0;
}

/* Follow the headers of PDUs and PDVs in the received bytes. Return 0, or -1 if they are malformed. */
static int follow_headers(AssociationIo *io, const uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t step;

		if (io->body_left == 0) {
			if (io->head_received == 0)
				io->deadline = deadline_now() + (int64_t)io->timeout * 1000;
			io->head[io->head_received++] = *p++;
			n--;
			if (io->head_received == sizeof(io->head)) {
				io->head_received = 0;
				io->is_data = io->head[0] == pdu_p_data;
				if (io->first_pdu < 0)
					io->first_pdu = io->head[0];
				io->peer_aborted |= io->head[0] == pdu_abort;
				io->body_left = (uint64_t)io->head[2] << 24 | (uint64_t)io->head[3] << 16 |
						(uint64_t)io->head[4] << 8 | io->head[5];
				io->pdv_received = 0;
				io->pdv_left = 0;
			}
			continue;
		}
		if (!io->is_data) {
			step = n < io->body_left ? n : (size_t)io->body_left;
		} else if (io->pdv_left > 0) {
			step = n < io->pdv_left ? n : (size_t)io->pdv_left;
			io->pdv_left -= step;
		} else {
			step = 1;
			io->pdv[io->pdv_received++] = *p;
			if (io->pdv_received == sizeof(io->pdv)) {
				io->pdv_received = 0;
				if (check_pdv(io) < 0)
					return -1;
			} else if (io->body_left == 1) {
				io->malformed = "a PDU ends within the head of a presentation data value";
				return -1;
			}
		}
		p += step;
		n -= step;
		io->body_left -= step;
	}
	return 0;
}

/* Return the deadline, or the deadline of closing if that is earlier. */
static int64_t limit_deadline(const AssociationIo *io, int64_t deadline)
{
	return io->close_deadline && io->close_deadline < deadline ? io->close_deadline : deadline;
}

static int io_failed(AssociationIo *io, int code)
{
	io->error = code;
	errno = code;
	return -1;
}

static ssize_t write_some(AssociationIo *io, const uint8_t *p, size_t n, bool more)
{
	if (io->tls)
		return tls_write(io->tls, p, n, more);
	return send(io->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
}

/* Write all n bytes within the time limit of a write. Return 0, or -1 with errno, which is also stored in io. more: these bytes
 * may be sent together with the next ones. */
static int write_all(AssociationIo *io, const uint8_t *p, size_t n, bool more)
{
	int64_t deadline = limit_deadline(io, deadline_now() + (int64_t)io->timeout * 1000);

	while (n > 0) {
		ssize_t sent = write_some(io, p, n, more);

		if (sent >= 0) {
			p += sent;
			n -= (size_t)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return io_failed(io, errno);
		switch (deadline_wait(io->fd, io->tls ? tls_poll_events(io->tls) : POLLOUT, deadline)) {
		case 0:
			io->write_timed_out = true;
			return io_failed(io, ETIMEDOUT);
		case -1:
			return io_failed(io, errno);
		}
	}
	return 0;
}

namespace
{

class Connection : public DcmTCPConnection
{
      public:
	Connection(DcmNativeSocketType fd, AssociationIo *shared) : DcmTCPConnection(fd), io_(shared)
	{
		int on = 1;

		io_->fd = fd;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		if (io_->tls)
			tls_set_fd(io_->tls, fd);
	}

	~Connection() override
	{
		notify_close();
	}

	void close() override
	{
		notify_close();
		DcmTCPConnection::close();
	}

	OFBool isTransparentConnection() override
	{
		return !io_->tls;
	}

	/* Read up to n bytes. Return their number, 0: the peer has closed the connection, -1: errno. Within a PDU, wait until its
	 * deadline; between PDUs DCMTK has called networkDataAvailable() before. */
	ssize_t read(void *buf, size_t n) override
	{
		ssize_t got;

		if (io_->read_ahead_n > 0)
			return copy_read_ahead(buf, n);
		/* A small read is that of a header: also read the bytes after it that are available. Bodies of PDUs are read
		 * directly into the caller's buffer. */
		if (n < sizeof(io_->read_ahead) / 2) {
			got = wait_and_read(nullptr, 0);
			return got > 0 ? copy_read_ahead(buf, n) : got;
		}
		return wait_and_read(buf, n);
	}

	/* Write all n bytes; -1: error. */
	ssize_t write(void *buf, size_t n) override
	{
		const uint8_t *p = static_cast<const uint8_t *>(buf);
		/* DCMTK writes a P-DATA PDU as a 12-byte header and then the data: send both together. */
		bool more = n == 12 && p[0] == pdu_p_data;

		return write_all(io_, p, n, more) < 0 ? -1 : (ssize_t)n;
	}

	OFBool networkDataAvailable(int timeout) override
	{
		int64_t deadline = deadline_now() + (timeout > 0 ? (int64_t)timeout * 1000 : 0);

		/* The next PDU is often available already: reading it costs no more than polling. */
		if (io_->read_ahead_n > 0 || fill_read_ahead() > 0)
			return OFTrue;
		/* Return true also at the end of the connection and after an error: read() will report them. */
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return OFTrue;
		acknowledge();
		return deadline_wait(getSocket(), poll_events(), limit_deadline(io_, deadline)) != 0;
	}

      private:
	AssociationIo *io_;

	ssize_t fail(int code)
	{
		return io_failed(io_, code);
	}

	void notify_close()
	{
		if (io_->tls && io_->fd >= 0)
			tls_send_close_notify(io_->tls);
		io_->fd = -1;
	}

	ssize_t read_some(uint8_t *to, size_t n)
	{
		ssize_t got;

		if (io_->tls)
			return tls_read(io_->tls, to, n);
		do
			got = recv(getSocket(), to, n, MSG_DONTWAIT);
		while (got < 0 && errno == EINTR);
		return got;
	}

	short poll_events()
	{
		return io_->tls ? tls_poll_events(io_->tls) : POLLIN;
	}

	ssize_t copy_read_ahead(void *buf, size_t n)
	{
		if (n > io_->read_ahead_n)
			n = io_->read_ahead_n;
		memcpy(buf, io_->read_ahead + io_->read_ahead_at, n);
		io_->read_ahead_at += n;
		io_->read_ahead_n -= n;
		return (ssize_t)n;
	}

	/* The peer may delay the rest of its PDU until it receives an acknowledgement (Nagle): acknowledge everything before
	 * waiting. */
	void acknowledge()
	{
		int on = 1;

		setsockopt(getSocket(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
	}

	/* Read the bytes available now: into the read-ahead buffer (buf NULL) or to buf. Return > 0, 0 (closed), -1 (errno
	 * EAGAIN: nothing yet). */
	ssize_t read_available(void *buf, size_t n)
	{
		uint8_t *to = buf ? static_cast<uint8_t *>(buf) : io_->read_ahead;
		ssize_t got;

		if (io_->malformed)
			return fail(EBADMSG);
		got = read_some(to, buf ? n : sizeof(io_->read_ahead));
		if (got <= 0)
			return got;
		if (!io_->received_any && !io_->tls && to[0] == 0x15 &&
		    (got < 2 || to[1] == 0x03)) { /* a TLS alert, RFC 8446 5.1 */
			io_->peer_uses_tls = true;
			return fail(EBADMSG);
		}
		io_->received_any = true;
		if (follow_headers(io_, to, (size_t)got) < 0)
			return fail(EBADMSG);
		if (!buf) {
			io_->read_ahead_at = 0;
			io_->read_ahead_n = (size_t)got;
		}
		io_->last_read_end = deadline_now();
		return got;
	}

	ssize_t fill_read_ahead()
	{
		ssize_t got = read_available(nullptr, 0);

		if (got == 0)
			errno = 0;
		return got;
	}

	/* Like read_available(), but wait if no bytes are available: within a PDU until its deadline. */
	ssize_t wait_and_read(void *buf, size_t n)
	{
		bool within = io_->head_received > 0 || io_->body_left > 0;
		int64_t deadline = deadline_now() + (int64_t)io_->timeout * 1000;

		if (within)
			deadline = io_->deadline += deadline_now() - io_->last_read_end;
		for (;;) {
			ssize_t got = read_available(buf, n);

			if (got >= 0)
				return got;
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				return fail(errno);
			acknowledge();
			switch (deadline_wait(getSocket(), poll_events(), limit_deadline(io_, deadline))) {
			case 0:
				io_->timed_out = true;
				return fail(ETIMEDOUT);
			case -1:
				return fail(errno);
			}
		}
	}
};

class Layer : public DcmTransportLayer
{
      public:
	explicit Layer(AssociationIo *shared) : io_(shared)
	{
	}

	/* DCMTK has opened the connection `fd`. If there is a connected socket, replace DCMTK's connection by it: dup3() gives it
	 * the same descriptor number and closes DCMTK's connection. */
	DcmTransportConnection *createConnection(DcmNativeSocketType fd, OFBool secure) override
	{
		if (secure)
			return nullptr;
		if (io_->connected >= 0) {
			if (dup3(io_->connected, fd, O_CLOEXEC) < 0)
				return nullptr;
			::close(io_->connected);
			io_->connected = -1;
		}
		return new Connection(fd, io_);
	}

      private:
	AssociationIo *io_;
};

} // namespace

void association_settings(int connect_timeout, int io_timeout)
{
	dcmDisableGethostbyaddr.set(OFTrue);
	dcmConnectionTimeout.set(connect_timeout);
	dcmSocketSendTimeout.set(io_timeout);
	dcmSocketReceiveTimeout.set(io_timeout);
}

int association_network(bool acceptor, int acse_timeout, AssociationIo *io, struct T_ASC_Network **ret_net, struct err *err)
{
	T_ASC_Network *net = nullptr;
	OFCondition cond = ASC_initializeNetwork(acceptor ? NET_ACCEPTOR : NET_REQUESTOR, 0, acse_timeout, &net);

	if (cond.good())
		cond = ASC_setTransportLayer(net, new Layer(io), 1 /* the network deletes it */);
	if (cond.bad()) {
		if (net)
			ASC_dropNetwork(&net);
		return err_set(err, EIO, "network: %.300s", cond.text());
	}
	*ret_net = net;
	return 0;
}

int association_write(AssociationIo *io, const void *bytes, size_t n, const char *what, struct err *err)
{
	if (io->fd < 0)
		return err_set(err, ENOTCONN, "%s: the connection is closed", what);
	if (write_all(io, static_cast<const uint8_t *>(bytes), n, false) < 0)
		return association_fail(err, io, EC_InvalidStream, what);
	return 0;
}

void association_close_within(AssociationIo *io, int seconds)
{
	io->close_deadline = deadline_now() + (int64_t)seconds * 1000;
}

/* DCMTK's texts have a line for each layer, behind the first one with a code ("0006:0321 "); the last line names the cause. Copy
 * it without codes and the names of the layers. */
static void copy_cause(const char *text, char *ret, size_t size)
{
	static const char *const layers[] = {"DUL ", "DIMSE: ", "DIMSE "};
	const char *line = strrchr(text, '\n');
	size_t n = 0;

	line = line ? line + 1 : text;
	if (strlen(line) > 10 && line[4] == ':' && line[9] == ' ')
		line += 10;
	for (const char *layer : layers)
		if (!strncmp(line, layer, strlen(layer)))
			line += strlen(layer);
	for (; *line && n + 1 < size; line++)
		ret[n++] = (unsigned char)*line < ' ' ? ' ' : *line;
	while (n > 0 && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
}

/* Replace those of DCMTK's texts that tell a reader nothing. */
static const char *clear_text(const char *text)
{
	static const struct {
		const char *dcmtk, *clear;
	} texts[] = {
		{"Badly formed message", "its command has an empty UID, or a data set type that does not fit"},
		{"Invalid stream", "its command is not encoded in Implicit VR Little Endian"},
		{"DIMSE_parseCmdObject: Missing CommandField", "its command has no Command Field (0000,0100)"},
		{"Command PDV Expected", "data without a command"},
		{"List error", "it proposes no presentation context, or an incomplete one"},
		{"Presentation Context translation failure", "a presentation context has no transfer syntax"},
	};

	for (const auto &t : texts)
		if (!strcmp(text, t.dcmtk))
			return t.clear;
	return text;
}

int association_fail(struct err *err, const AssociationIo *io, const OFCondition &cond, const char *what)
{
	char text[300], tls_text[400];
	int code = io->tls && io->error ? tls_error_text(io->tls, tls_text, sizeof(tls_text)) : 0;

	copy_cause(cond.text(), text, sizeof(text));
	if (code)
		return err_set(err, code, "%s: %s", what, tls_text);
	if (io->peer_uses_tls)
		return err_set(err, EPROTONOSUPPORT,
			       "%s: the peer responded to plain DICOM with TLS: its port requires TLS (tls = true)", what);
	if (io->malformed)
		return err_set(err, EPROTO, "%s: %s", what, io->malformed);
	if (io->timed_out)
		return err_set(err, ETIMEDOUT, "%s: the peer began a message and did not complete it within %d s", what,
			       io->timeout);
	if (io->write_timed_out)
		return err_set(err, ETIMEDOUT, "%s: the peer read nothing for %d s", what, io->timeout);
	if (cond == DIMSE_NODATAAVAILABLE || cond == DUL_READTIMEOUT || strstr(cond.text(), "DUL network read timeout"))
		return err_set(err, ETIMEDOUT, "%s: no data received from the peer in time", what);
	/* DCMTK also treats a connection that ends within a message as aborted. */
	if (cond == DUL_PEERABORTEDASSOCIATION && io->peer_aborted)
		return err_set(err, ECONNRESET, "%s: the peer aborted the association", what);
	if (io->error == EPIPE || io->error == ECONNRESET || cond == DUL_NETWORKCLOSED || cond == DUL_PEERABORTEDASSOCIATION ||
	    strstr(cond.text(), "DUL network closed"))
		return err_set(err, ECONNRESET, "%s: the peer closed the connection%s", what,
			       io->tls && !io->received_any
				       ? " directly after the TLS handshake: perhaps it does not accept our certificate; "
					 "its log may have the reason"
				       : "");
	if (io->error)
		return err_set(err, io->error, "%s: %s", what, strerror(io->error));
	if (!strcmp(text, "Normal")) /* DCMTK's condition for a PDU of another type than P-DATA */
		return err_set(err, EPROTO, "%s: the peer sent a PDU of type 0x%02x, which is not expected here", what,
			       io->head[0]);
	return err_set(err, EPROTO, "%s: %s", what, clear_text(text));
}

bool association_uid_ok(const char *uid)
{
	size_t n = strlen(uid);

	/* Leading zeros of a component violate the rule but are common and harmless here. */
	return n > 0 && n <= 64 && strspn(uid, "0123456789.") == n && uid[0] != '.' && uid[n - 1] != '.' && !strstr(uid, "..");
}

bool association_aet_ok(const char *aet)
{
	size_t n = strlen(aet);

	if (n == 0 || n > 16 || strspn(aet, " ") == n)
		return false;
	for (; *aet; aet++)
		if ((unsigned char)*aet < ' ' || (unsigned char)*aet > '~' || *aet == '\\')
			return false;
	return true;
}

bool association_uncompressed(const char *ts)
{
	return !strcmp(ts, UID_LittleEndianImplicitTransferSyntax) || !strcmp(ts, UID_LittleEndianExplicitTransferSyntax) ||
	       !strcmp(ts, UID_BigEndianExplicitTransferSyntax);
}

bool association_storable(const char *ts)
{
	/* No video and no JPEG 2000 that may be lossy: a sender that proposes them also proposes another syntax. */
	static const char *const encodings[] = {
		UID_RLELosslessTransferSyntax,	  UID_JPEGProcess14SV1TransferSyntax,	  UID_JPEGProcess14TransferSyntax,
		UID_JPEGLSLosslessTransferSyntax, UID_JPEGLSLossyTransferSyntax,	  UID_JPEGProcess1TransferSyntax,
		UID_JPEGProcess2_4TransferSyntax, UID_JPEG2000LosslessOnlyTransferSyntax,
	};

	for (const char *encoding : encodings)
		if (!strcmp(ts, encoding))
			return true;
	return association_uncompressed(ts);
}

} // namespace tomonode
