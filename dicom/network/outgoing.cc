/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/network/outgoing.hh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dicom/network/association.hh"

constexpr off_t meta_max = 1 << 20;	  /* largest meta header, bytes */
constexpr size_t pdu_head = 12;		  /* of a P-DATA-TF with one PDV, PS3.8 9.3.5 */
constexpr size_t piece_bytes = 512 << 10; /* size of a piece, bytes; less if it would have more PDUs than piece_pdus */
constexpr size_t piece_pdus = 64;	  /* largest number of PDUs in a piece */

namespace tomonode
{

static int read_exactly(int fd, void *buf, size_t n, off_t at)
{
	uint8_t *p = static_cast<uint8_t *>(buf);

	while (n > 0) {
		ssize_t got = pread(fd, p, n, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -ENODATA;
		p += got;
		n -= (size_t)got;
		at += got;
	}
	return 0;
}

static int read_uid(int fd, off_t at, size_t n, char ret[DICOM_UID_SIZE])
{
	char text[DICOM_UID_SIZE] = "";

	if (n >= sizeof(text) || read_exactly(fd, text, n, at) < 0)
		return -1;
	for (char *p = text + n; p > text && (p[-1] == ' ' || p[-1] == '\0'); p--)
		p[-1] = '\0';
	if (!association_uid_ok(text))
		return -1;
	memcpy(ret, text, sizeof(text));
	return 0;
}

/* Read the UIDs of group 0002 (Explicit VR Little Endian, PS3.10 7.1) and the offset of the data set after it. */
static int read_meta(Outgoing *f, const char *path, struct err *err)
{
	uint8_t head[12];
	char magic[4];
	off_t at = 132;

	if (read_exactly(f->fd, magic, 4, 128) < 0 || memcmp(magic, "DICM", 4) != 0)
		return err_set(err, EBADMSG, "%s: not a DICOM Part 10 file", path);
	while (at + 8 <= f->size && at < meta_max) {
		uint16_t element;
		size_t n;
		off_t value = at + 8;

		if (read_exactly(f->fd, head, 8, at) < 0)
			break;
		if (head[0] != 2 || head[1] != 0)
			break; /* the data set begins here */
		element = (uint16_t)(head[2] | head[3] << 8);
		n = (size_t)(head[6] | head[7] << 8);
		if (!memcmp(head + 4, "OB", 2) || !memcmp(head + 4, "UN", 2)) {
			if (read_exactly(f->fd, head, 4, at + 8) < 0)
				break;
			n = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
			value += 4;
		}
		if (n > meta_max)
			return err_set(err, EBADMSG, "%s: element (0002,%04x) declares %zu bytes", path, element, n);
		if ((element == 0x0002 && read_uid(f->fd, value, n, f->sop_class) < 0) ||
		    (element == 0x0003 && read_uid(f->fd, value, n, f->sop_instance) < 0) ||
		    (element == 0x0010 && read_uid(f->fd, value, n, f->transfer_syntax) < 0))
			return err_set(err, EBADMSG, "%s: element (0002,%04x) is not a UID", path, element);
		at = value + (off_t)n;
	}
	f->data = at;
	if (!f->sop_class[0] || !f->sop_instance[0] || !f->transfer_syntax[0])
		return err_set(err, EBADMSG, "%s: the meta header lacks SOP class, SOP instance or transfer syntax", path);
	if (f->data >= f->size)
		return err_set(err, EBADMSG, "%s: no data set after the meta header", path);
	if ((f->size - f->data) & 1)
		return err_set(err, EBADMSG, "%s: the data set has an odd length of %lld bytes", path,
			       (long long)(f->size - f->data));
	return 0;
}

int outgoing_open(Outgoing *f, const char *path, struct err *err)
{
	struct stat st;

	memset(f, 0, sizeof(*f));
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fstat(f->fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	f->size = st.st_size;
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return read_meta(f, path, err);
}

void outgoing_close(Outgoing *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void outgoing_piece_init(OutgoingPiece *p, size_t max_data)
{
	p->max_data = max_data;
	p->n_pdus = piece_bytes / (p->max_data + pdu_head);
	p->n_pdus = p->n_pdus < 1 ? 1 : p->n_pdus > piece_pdus ? piece_pdus : p->n_pdus;
	p->bytes.reset(new uint8_t[p->n_pdus * (p->max_data + pdu_head)]);
}

static void put_be32(uint8_t *to, size_t value)
{
	to[0] = (uint8_t)(value >> 24);
	to[1] = (uint8_t)(value >> 16);
	to[2] = (uint8_t)(value >> 8);
	to[3] = (uint8_t)value;
}

int outgoing_piece_fill(OutgoingPiece *p, const Outgoing *f, uint8_t id, off_t at, size_t *ret_data, size_t *ret_bytes)
{
	struct iovec parts[piece_pdus];
	uint8_t *to = p->bytes.get();
	size_t data = 0;
	int n = 0, rc = 0;

	while ((size_t)n < p->n_pdus && at + (off_t)data < f->size) {
		off_t left = f->size - at - (off_t)data;
		size_t step = left < (off_t)p->max_data ? (size_t)left : p->max_data;

		/* P-DATA-TF with one PDV, PS3.8 9.3.5: lengths of the following bytes, context, message control (last, data
		 * set) */
		to[0] = 4;
		to[1] = 0;
		put_be32(to + 2, step + 6);
		put_be32(to + 6, step + 2);
		to[10] = id;
		to[11] = left == (off_t)step ? 2 : 0;
		parts[n].iov_base = to + pdu_head;
		parts[n].iov_len = step;
		to += pdu_head + step;
		data += step;
		n++;
	}
	if (preadv(f->fd, parts, n, at) !=
	    (ssize_t)data) /* partial read or error: read the parts again one by one, which returns the error */
		for (int i = 0; i < n && rc == 0; at += (off_t)parts[i].iov_len, i++)
			rc = read_exactly(f->fd, parts[i].iov_base, parts[i].iov_len, at);
	*ret_data = data;
	*ret_bytes = data + (size_t)n * pdu_head;
	return rc;
}

} // namespace tomonode
