# SPDX-License-Identifier: Apache-2.0
"""A DICOM sender and an archive of a few lines, for tests that must know and decide what happens at every byte.

Sender: one association to the node; can stop, dribble, vanish or call back at any byte, and says what was answered to
each object. Archive: a storage SCP with a thread for each association; keeps what it was sent in memory: SOP Instance
UID -> digest of each arrival. Only what PS3.8 needs for C-ECHO and C-STORE is here. Nothing is sent or listened to but
on 127.0.0.1."""
import contextlib
import hashlib
import socket
import struct
import threading
import time

VERIFICATION = "1.2.840.10008.1.1"
IMPLICIT = "1.2.840.10008.1.2"
APPLICATION = "1.2.840.10008.3.1.1.1"
IMPLEMENTATION = "2.25.283712993218311"
SUCCESS, OUT_OF_RESOURCES = 0x0000, 0xA700
STORE_RQ, STORE_RSP, ECHO_RQ, ECHO_RSP = 0x0001, 0x8001, 0x0030, 0x8030
NO_DATA_SET = 0x0101
TCP_REPAIR = 19  # linux/tcp.h: a socket that is closed with it set says neither FIN nor RST


class Gone(Exception):
    """The association ended: rejected, aborted, closed, or silent for too long."""


def padded(uid):
    raw = uid.encode() if isinstance(uid, str) else uid
    return raw + b"\0" * (len(raw) % 2)


class Object:
    """What a C-STORE needs of a Part 10 file."""

    def __init__(self, raw):
        if not isinstance(raw, (bytes, bytearray)):
            with open(raw, "rb") as f:
                raw = f.read()
        end = 144 + struct.unpack_from("<I", raw, 140)[0]
        self.data = bytes(raw[end:])
        self.digest = hashlib.sha256(self.data).hexdigest()
        meta, at = {}, 144
        while at < end:
            group_element = struct.unpack_from("<HH", raw, at)
            long = raw[at + 4:at + 6] in (b"OB", b"OW", b"UN")
            n = struct.unpack_from("<I", raw, at + 8)[0] if long else struct.unpack_from("<H", raw, at + 6)[0]
            at += 12 if long else 8
            meta[group_element] = raw[at:at + n].rstrip(b"\0 ").decode("latin-1")
            at += n
        self.sop_class, self.uid, self.syntax = meta[(2, 2)], meta[(2, 3)], meta[(2, 0x10)]


# ---- PDUs ----

def item(kind, body):
    return struct.pack(">BBH", kind, 0, len(body)) + body


def pdu(kind, body):
    return struct.pack(">BBI", kind, 0, len(body)) + body


def user_information(max_pdu):
    return item(0x50, item(0x51, struct.pack(">I", max_pdu)) + item(0x52, IMPLEMENTATION.encode()) + item(0x55,
        b"TESTPEER"))


def associate_request(called, calling, contexts, max_pdu):
    body = struct.pack(">HH16s16s32s", 1, 0, called.ljust(16).encode(), calling.ljust(16).encode(), b"")
    body += item(0x10, APPLICATION.encode())
    for number, (abstract, syntax) in contexts.items():
        body += item(0x20, struct.pack(">BBBB", number, 0, 0, 0) + item(0x30, abstract.encode()) + item(0x40,
            syntax.encode()))
    return pdu(1, body + user_information(max_pdu))


def command_set(elements):
    """Implicit VR Little Endian, group 0000; values are UIDs or 16-bit numbers."""
    body = b""
    for element in sorted(elements):
        value = elements[element]
        raw = struct.pack("<H", value) if isinstance(value, int) else padded(value)
        body += struct.pack("<HHI", 0, element, len(raw)) + raw
    return struct.pack("<HHII", 0, 0, 4, len(body)) + body


def read_command(raw):
    found, at = {}, 0
    while at + 8 <= len(raw):
        _, element, n = struct.unpack_from("<HHI", raw, at)
        value = raw[at + 8:at + 8 + n]
        found[element] = struct.unpack("<H", value)[0] if n == 2 else value.rstrip(b"\0 ")
        at += 8 + n
    return found


def data_pdus(context, command, raw, max_pdu):
    step = max_pdu - 6
    for at in range(0, max(len(raw), 1), step):
        piece = raw[at:at + step]
        flags = (1 if command else 0) | (2 if at + step >= len(raw) else 0)
        yield pdu(4, struct.pack(">IBB", len(piece) + 2, context, flags) + piece)


class Wire:
    """A socket that reads PDUs and messages."""

    def __init__(self, sock):
        self.sock = sock
        self.max_pdu = 16384  # what the other side takes

    def exactly(self, n):
        got = bytearray()
        while len(got) < n:
            try:
                piece = self.sock.recv(n - len(got))
            except OSError as e:
                raise Gone(f"reading: {e}") from e
            if not piece:
                raise Gone("the peer closed the connection")
            got += piece
        return bytes(got)

    def read_pdu(self):
        kind, _, n = struct.unpack(">BBI", self.exactly(6))
        return kind, self.exactly(n)

    def send(self, raw):
        try:
            self.sock.sendall(raw)
        except OSError as e:
            raise Gone(f"sending: {e}") from e

    def message(self, on_data=None):
        """(context, command, data set or None); on_data(bytes so far) is called for each piece of a data set. None:
        release."""
        command, data, context, wanted = b"", bytearray(), 0, False
        while True:
            kind, body = self.read_pdu()
            if kind == 5:
                self.send(pdu(6, b"\0" * 4))
                return None
            if kind != 4:
                raise Gone("aborted by the peer" if kind == 7 else f"PDU of type {kind}")
            at = 0
            while at < len(body):
                n, context, flags = struct.unpack_from(">IBB", body, at)
                piece = body[at + 6:at + 4 + n]
                at += 4 + n
                if flags & 1:
                    command += piece
                    if flags & 2:
                        wanted = read_command(command).get(0x0800, NO_DATA_SET) != NO_DATA_SET
                else:
                    data += piece
                    if on_data:
                        on_data(len(data))
                if flags & 2 and (not wanted or not flags & 1):
                    return context, read_command(command), data if wanted else None

    def close(self):
        self.sock.close()


# ---- the sender ----

class Sender:
    """An association. `at_byte` = (n, function): the function is called when n bytes of this association have been
    sent, once."""

    def __init__(self, port, objects=(), calling="MODALITY", called="TOMONODE", timeout=120.0, at_byte=None,
                 max_pdu=16384):
        self.acknowledged, self.refused = {}, {}  # UID: digest, UID: status
        self.sent, self.at_byte, self.number = 0, at_byte, 0
        kinds = sorted({(o.sop_class, o.syntax) for o in objects}) + [(VERIFICATION, IMPLICIT)]
        self.contexts = {2 * i + 1: kind for i, kind in enumerate(kinds)}
        try:
            self.wire = Wire(socket.create_connection(("127.0.0.1", port), timeout))
        except OSError as e:
            raise Gone(f"connecting: {e}") from e
        self.wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.put(associate_request(called, calling, self.contexts, max_pdu))
        kind, body = self.wire.read_pdu()
        if kind != 2:
            self.wire.close()
            raise Gone(f"rejected: {body[1:4].hex()}" if kind == 3 else f"PDU of type {kind} instead of an answer")
        at = body.find(b"\x51\0\0\4")
        self.max_pdu = min(max_pdu, struct.unpack_from(">I", body, at + 4)[0] or max_pdu)

    def put(self, raw):
        """Send, and call back in the middle where that is due."""
        if self.at_byte and self.sent + len(raw) >= self.at_byte[0]:
            n, act = max(self.at_byte[0] - self.sent, 0), self.at_byte[1]
            self.at_byte = None
            self.wire.send(raw[:n])
            self.sent += n
            act()
            raw = raw[n:]
        self.wire.send(raw)
        self.sent += len(raw)

    def request(self, obj):
        """All PDUs of a C-STORE."""
        self.number += 1
        context = next(n for n, kind in self.contexts.items() if kind == (obj.sop_class, obj.syntax))
        command = command_set({0x0002: obj.sop_class, 0x0100: STORE_RQ, 0x0110: self.number, 0x0700: 0, 0x0800: 1,
                               0x1000: obj.uid})
        yield from data_pdus(context, True, command, self.max_pdu)
        yield from data_pdus(context, False, obj.data, self.max_pdu)

    def answer(self, obj):
        """The status of the response."""
        message = self.wire.message()
        if not message:
            raise Gone("released by the peer")
        status = message[1][0x0900]
        if status == SUCCESS:
            self.acknowledged[obj.uid] = obj.digest
        else:
            self.refused[obj.uid] = status
        return status

    def store(self, obj):
        for raw in self.request(obj):
            self.put(raw)
        return self.answer(obj)

    def echo(self):
        context = next(n for n, kind in self.contexts.items() if kind[0] == VERIFICATION)
        self.number += 1
        command = command_set({0x0002: VERIFICATION, 0x0100: ECHO_RQ, 0x0110: self.number, 0x0800: NO_DATA_SET})
        for raw in data_pdus(context, True, command, self.max_pdu):
            self.put(raw)
        return self.wire.message()[1][0x0900]

    def release(self):
        self.put(pdu(5, b"\0" * 4))
        kind, _ = self.wire.read_pdu()
        self.wire.close()
        return kind == 6

    def close(self):
        self.wire.close()

    def vanish(self):
        """As if the cable were cut: neither FIN nor RST. Needs root; False: not allowed, and the socket stays open."""
        try:
            self.wire.sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except OSError:
            return False
        self.wire.close()
        return True


def associated(port, objects, **options):
    """A Sender. A rejection that is only for now is no answer: a listener that waits too long for a busy machine
    gives it, too."""
    for _ in range(10):
        try:
            return Sender(port, objects, **options)
        except Gone as e:
            if not str(e).startswith("rejected: 02"):
                raise
        time.sleep(0.2)
    raise Gone("rejected for now, ten times")


def store_all(port, objects, **options):
    """One association for all; (acknowledged, refused), whatever happened on the way."""
    sender = None
    try:
        sender = associated(port, objects, **options)
        for obj in objects:
            sender.store(obj)
        sender.release()
    except Gone:
        pass
    finally:
        if sender:
            sender.close()
    return (sender.acknowledged, sender.refused) if sender else ({}, {})


def echo(port, timeout=60.0):
    """Is C-ECHO answered within the time?"""
    try:
        sender = Sender(port, timeout=timeout)
        good = sender.echo() == SUCCESS
        sender.release()
        return good
    except (Gone, OSError):
        return False


# ---- the archive ----

class Archive:
    """A storage SCP. answer(uid, bytes) may be replaced: a status, or None to close the connection instead."""

    def __init__(self, port=0, answer=lambda uid, data: SUCCESS):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.held = {}  # UID: the digest of each arrival
        self.studies = {}  # Study Instance UID: UIDs in it
        self.pixels = {}  # UID: digest of its pixel data
        self.lock = threading.Lock()
        self.ended = False
        self.answer = answer
        self.refused = ()  # UIDs of abstract syntaxes of which no context is accepted
        self.more = lambda command: {}  # further elements of a response, or other values
        self.on_data = None  # called with the bytes of the data set so far; may raise Gone
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while not self.ended:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def accept(self, wire):
        kind, body = wire.read_pdu()
        if kind != 1:
            raise Gone(f"PDU of type {kind} instead of a request")
        items, at = b"", 68
        while at + 4 <= len(body):
            kind, _, n = struct.unpack_from(">BBH", body, at)
            inner = body[at + 4:at + 4 + n]
            at += 4 + n
            if kind == 0x20 and any(uid.encode() == inner[8:8 + inner[7]].rstrip(b"\0") for uid in self.refused):
                items += item(0x21, bytes((inner[0], 0, 3, 0)) + item(0x40, b""))
            elif kind == 0x20:  # accept it with the first transfer syntax that is offered
                first = inner.find(b"\x40\0", 4)
                size = struct.unpack_from(">H", inner, first + 2)[0]
                items += item(0x21, bytes((inner[0], 0, 0, 0)) + item(0x40, inner[first + 4:first + 4 + size]))
            elif kind == 0x50 and inner[:1] == b"\x51":
                wire.max_pdu = struct.unpack_from(">I", inner, 4)[0] or wire.max_pdu
        wire.send(pdu(2, body[:68] + item(0x10, APPLICATION.encode()) + items + user_information(131072)))

    def serve(self, sock):
        wire = Wire(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(60)
        try:
            self.accept(wire)
            while True:
                message = wire.message(self.on_data)
                if not message:
                    return
                context, command, data = message
                status = self.take(command, data) if command[0x0100] == STORE_RQ else self.other(command, data)
                if status is None:
                    return
                reply = {0x0002: command.get(0x0002, b""), 0x0100: command[0x0100] | 0x8000, 0x0120: command[0x0110],
                         0x0800: NO_DATA_SET, 0x0900: status}
                if 0x1000 in command:
                    reply[0x1000] = command[0x1000]
                reply.update(self.more(command))
                for raw in data_pdus(context, True, command_set(reply), wire.max_pdu):
                    wire.send(raw)
                self.answered(wire, context, command, status)
        except Gone:
            pass
        finally:
            wire.close()

    def other(self, command, data):
        """The status of the answer to something else than a C-STORE, for archives that do more; None: the connection is
        closed."""
        return SUCCESS

    def answered(self, wire, context, command, status):
        """Called when the answer is out."""

    def take(self, command, data):
        uid = command[0x1000].decode("ascii", "replace")
        status = self.answer(uid, data)
        if status is not None and (status == SUCCESS or status >> 12 == 0xB):
            at = data.find(b"\x20\0\x0d\0")  # Study Instance UID, explicit or implicit
            explicit = data[at + 4:at + 6] == b"UI"
            n = struct.unpack_from("<H" if explicit else "<I", data, at + (6 if explicit else 4))[0]
            study = data[at + 8:at + 8 + n].rstrip(b"\0 ").decode("ascii", "replace")
            with self.lock:
                self.held.setdefault(uid, []).append(hashlib.sha256(data).hexdigest())
                self.studies.setdefault(study, set()).add(uid)
                self.pixels[uid] = hashlib.sha256(data[data.find(b"\xe0\x7f\x10\0"):]).hexdigest()
        return status

    def stop(self):
        self.ended = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.thread.join(5)


class Answering:
    """A port where everybody who says something is answered with these bytes."""

    def __init__(self, raw):
        self.raw = raw
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with contextlib.suppress(OSError):  # it was stopped
            while True:
                sock, _ = self.listener.accept()
                with sock, contextlib.suppress(OSError):
                    sock.settimeout(60)
                    sock.recv(65536)
                    sock.sendall(self.raw)
                    while sock.recv(65536):
                        pass

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def dribble(sender, obj, seconds, pause=1.0):
    """A C-STORE of one byte each `pause`, for so long or until the peer has enough; the number of bytes that were
    taken."""
    raw, until, n = b"".join(sender.request(obj)), time.monotonic() + seconds, 0
    try:
        while time.monotonic() < until and n < len(raw):
            sender.put(raw[n:n + 1])
            n += 1
            time.sleep(pause)
    except Gone:
        pass
    return n
