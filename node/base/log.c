/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - write one line per event. A line is built in one buffer, cleaned of control characters and written with one call, so
 * that lines of several processes do not mix and no value can forge a separate line.
 * On stderr: "2026-11-21T04:00:07.123Z info serve[4711] stored sop=1.2.3 bytes=42"; to syslog (RFC 3164, format of the C
 * library):
 * "<30>Nov 21 04:00:07 tomonode[4711]: serve stored sop=1.2.3 bytes=42".
 * If stderr is systemd's journal, a prefix such as "<6>" gives the line its priority (sd-daemon(3)), for `journalctl -p crit`.
 * If the reader of stderr (a pipe, a terminal, systemd's journal) or of syslog's socket stops reading, one line waits
 * PATIENCE_MS; later lines are dropped without waiting and counted ("log-lost") until it reads again. So the log never blocks the
 * node; syslog(3) would block it.
 */
#include "node/base/log.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE 2048
#define QUOTE_SIZE 640
#define QUOTE_RING 16
#define PATIENCE_MS 1000
#define SYSLOG_STEP_MS 10

static struct {
	enum log_target target;
	int facility, max_priority;
	bool journal; /* stderr is connected to systemd's journal */
	char who[32];
} state = {LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, false, "tomonode"};

/* JOURNAL_STREAM names device and inode of the stream (systemd.exec(5)): stderr may have been redirected since. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat is;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &is) == 0 &&
	       is.st_dev == device && is.st_ino == inode;
}

static atomic_ulong lost; /* lines lost since the last line that was written */

void log_start(enum log_target target, int facility, int max_priority, const char *who)
{
	state.target = target;
	state.facility = facility;
	state.max_priority = max_priority;
	state.journal = target == LOG_TO_STDERR && stderr_is_journal();
	snprintf(state.who, sizeof(state.who), "%s", who);
}

static const char *level_name(int priority)
{
	static const char *const names[] = {"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"};

	return priority >= 0 && priority <= LOG_DEBUG ? names[priority] : "unknown";
}

/* Append the byte c; control characters and bytes beyond ASCII as \n, \t, \xNN. Returns the new length. */
static size_t put_byte(char *to, size_t at, size_t size, unsigned char c)
{
	char code[8];
	size_t n;

	if (c == '\n')
		n = (size_t)snprintf(code, sizeof(code), "\\n");
	else if (c == '\t')
		n = (size_t)snprintf(code, sizeof(code), "\\t");
	else if (c < 0x20 || c >= 0x7f)
		n = (size_t)snprintf(code, sizeof(code), "\\x%02x", c);
	else
		n = (size_t)snprintf(code, sizeof(code), "%c", c);
	if (at + n >= size)
		return at;
	memcpy(to + at, code, n);
	return at + n;
}

static size_t put_stamp(char *to, size_t size, int priority)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	if (state.target == LOG_TO_SYSLOG) {
		localtime_r(&now.tv_sec, &tm);
		n = (size_t)snprintf(to, size, "<%d>", state.facility | priority);
		n += strftime(to + n, size - n, "%b %e %H:%M:%S", &tm);
		return n + (size_t)snprintf(to + n, size - n, " tomonode[%ld]: %s ", (long)getpid(), state.who);
	}
	gmtime_r(&now.tv_sec, &tm);
	n = state.journal ? (size_t)snprintf(to, size, "<%d>", priority) : 0;
	n += strftime(to + n, size - n, "%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(to + n, size - n, ".%03ldZ %s %s[%ld] ", now.tv_nsec / 1000000, level_name(priority), state.who,
			      (long)getpid());
	return n;
}

static bool send_line(const char *line, size_t n, int patience_ms)
{
	const struct timespec step = {.tv_nsec = SYSLOG_STEP_MS * 1000000L};
	int rc;

	while ((rc = log_audit_send(LOG_SYSLOG_SOCKET, line, n)) == -EAGAIN && patience_ms > 0) {
		nanosleep(&step, NULL);
		patience_ms -= SYSLOG_STEP_MS;
	}
	return rc == 0 || rc == -EMSGSIZE;
}

/* Write one line; false: the reader does not read. A pipe or socket that poll() reports as writable has room for a line, so that
 * write() does not wait. */
static bool write_line(const char *line, size_t n, int patience_ms)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (state.target == LOG_TO_SYSLOG)
		return send_line(line, n, patience_ms);
	if (poll(&p, 1, patience_ms) != 1 || !(p.revents & POLLOUT))
		return false;
	return write(STDERR_FILENO, line, n) >= 0 || errno != EAGAIN; /* other errors cannot be reported */
}

static const char *line_end(void)
{
	return state.target == LOG_TO_SYSLOG ? "" : "\n"; /* syslog: one message per line */
}

static void put_line(const char *line, size_t n)
{
	unsigned long missing = atomic_load(&lost);
	char text[160];
	size_t m;

	if (missing > 0) {
		m = put_stamp(text, sizeof(text), LOG_WARNING);
		m += (size_t)snprintf(text + m, sizeof(text) - m, "log-lost lines=%lu%s", missing, line_end());
		if (write_line(text, m, 0))
			atomic_fetch_sub(&lost, missing);
	}
	if (!write_line(line, n, missing > 0 ? 0 : PATIENCE_MS))
		atomic_fetch_add(&lost, 1);
}

void log_event(int priority, const char *event, const char *fmt, ...)
{
	char text[LINE_SIZE];
	char line[LINE_SIZE + 128];
	size_t n = 0;
	va_list ap;

	if (state.target == LOG_TO_NOWHERE || priority > state.max_priority)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = put_stamp(line, sizeof(line), priority);
	for (const char *at = event; *at; at++)
		n = put_byte(line, n, sizeof(line) - 2, (unsigned char)*at);
	if (text[0])
		line[n++] = ' ';
	for (const char *at = text; *at; at++)
		n = put_byte(line, n, sizeof(line) - 2, (unsigned char)*at);
	for (const char *at = line_end(); *at; at++)
		line[n++] = *at;
	put_line(line, n);
}

/* ---- audit ---- */

/* Write the host name for RFC 5424 6.2.4: printable ASCII, or a hyphen if there is none. */
static void host_name(char ret[64])
{
	if (gethostname(ret, 64) < 0)
		ret[0] = '\0';
	ret[63] = '\0';
	for (char *c = ret; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '-';
	if (!ret[0])
		snprintf(ret, 64, "-");
}

char *log_audit_frame(int facility, int severity, double when, const char *who, const char *xml)
{
	time_t seconds = (time_t)floor(when);
	char host[64], stamp[32], *frame = NULL;
	struct tm tm;

	host_name(host);
	if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1899 || tm.tm_year > 8099)
		return NULL;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	/* no structured data; the byte order mark marks the message as UTF-8 (RFC 5424 6.4) */
	if (asprintf(&frame, "<%d>1 %s.%03dZ %s tomonode-%s %ld DICOM+RFC3881 - \xef\xbb\xbf%s", facility | severity, stamp,
		     (int)(1000 * (when - floor(when))) % 1000, host, who, (long)getpid(), xml) < 0)
		return NULL;
	return frame;
}

int log_audit_send(const char *socket_path, const char *frame, size_t n)
{
	static atomic_int shared = -1; /* socket that all threads use */
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = atomic_load(&shared), none = -1, code;

	if (snprintf(to.sun_path, sizeof(to.sun_path), "%s", socket_path) >= (int)sizeof(to.sun_path))
		return -ENAMETOOLONG;
	if (fd < 0)
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (fd != atomic_load(&shared) && !atomic_compare_exchange_strong(&shared, &none, fd)) {
		close(fd);
		fd = none; /* use the socket that another thread opened meanwhile */
	}
	/* The socket is not connected: sendto() finds a restarted daemon by its path. */
	if (sendto(fd, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to)) >= 0)
		return 0;
	code = errno;
	return code == EWOULDBLOCK || code == ENOBUFS ? -EAGAIN : -code;
}

int log_socket_check(const char *socket_path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd, code;

	if (snprintf(to.sun_path, sizeof(to.sun_path), "%s", socket_path) >= (int)sizeof(to.sun_path))
		return ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	code = fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return code;
}

const char *log_quote(const char *text)
{
	static _Thread_local char ring[QUOTE_RING][QUOTE_SIZE];
	static _Thread_local unsigned next;
	char *to = ring[next++ % QUOTE_RING];
	size_t n = 0;
	bool plain = text[0] != '\0';

	for (const char *at = text; *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || strchr("\"'\\=", *at))
			plain = false;
	if (!plain)
		to[n++] = '"';
	for (const char *at = text; *at; at++) {
		if (*at == '"' || *at == '\\') {
			if (n + 4 >= QUOTE_SIZE)
				break;
			to[n++] = '\\';
			to[n++] = *at;
		} else {
			n = put_byte(to, n, QUOTE_SIZE - 2, (unsigned char)*at);
		}
	}
	if (!plain)
		to[n++] = '"';
	to[n] = '\0';
	return to;
}
