# SPDX-License-Identifier: Apache-2.0
"""Malformed associations: what a peer may send instead of a C-STORE as PS3.8 and PS3.7 define it: lengths, types, fields of the request,
presentation contexts, user information, data values, commands, orders, roles, and ends in the middle.

An answer is what the peer received, one word for each PDU: "accepted", "rejected RRSSTT" (result, source, reason), "STATUS" of a response,
"aborted", "released", "closed". A case states all answers that a peer must expect; associations.txt states the one that DCMTK gives.
"""
import itertools
import os
import re
import socket
import struct
import time

import hostile
from hostile import Case, c, peer
from tools.dicom_peer import APPLICATION, IMPLEMENTATION, IMPLICIT, NO_DATA_SET, VERIFICATION, item, pdu

EXPLICIT, SC, FIND, MOVE, GET, MPPS, COMMITMENT, FOREIGN = (
    c.EXPLICIT, c.CLASS, "1.2.840.10008.5.1.4.1.2.2.1", "1.2.840.10008.5.1.4.1.2.2.2", "1.2.840.10008.5.1.4.1.2.2.3",
    "1.2.840.10008.3.1.2.3.3", "1.2.840.10008.1.20.1", "1.2.840.10008.3.1.2.1.1")
TITLE = "Malformed associations"
MAX = 0xFFFFFFFF
LIMIT = 5  # s: how long the node waits for a peer; a test that is stopped for two seconds changes no answer
PEERS = 'peers = ( { name = "bystander"; aet = "BYSTANDER"; }, { name = "prober"; aet = "PROBER"; }, { name = "modality"; aet = "MODALITY"; } );\n'
ABORT, RELEASE = pdu(7, b"\0\0\0\0"), pdu(5, b"\0" * 4)


def raw_bytes(text):
    return text.encode("latin-1") if isinstance(text, str) else text


# ---- an A-ASSOCIATE-RQ of which each part can be replaced ----

def context(number, abstract, *syntaxes):
    parts = b"" if abstract is None else item(0x30, raw_bytes(abstract))
    return item(0x20, struct.pack(">BBBB", number, 0, 0, 0) + parts + b"".join(item(0x40, raw_bytes(s)) for s in syntaxes))


def max_pdu(n):
    return item(0x51, struct.pack(">I", n))


IMPLEMENTATION_ITEMS = item(0x52, IMPLEMENTATION.encode()) + item(0x55, b"TESTPEER")
CONTEXTS = (context(1, VERIFICATION, IMPLICIT) + context(3, SC, EXPLICIT) + context(5, FIND, IMPLICIT) + context(7, FOREIGN, IMPLICIT)
            + context(9, SC, "1.2.840.10008.1.2.4.91") + context(11, COMMITMENT, IMPLICIT))


def body(called="TOMONODE", calling="MODALITY", version=1, application=item(0x10, APPLICATION.encode()), contexts=CONTEXTS, user=None,
         more=b""):
    """Of an A-ASSOCIATE-RQ. contexts, application: items; user: the sub-items of the user information."""
    names = b"".join(raw_bytes(name).ljust(16)[:16] for name in (called, calling))
    user = max_pdu(16384) + IMPLEMENTATION_ITEMS if user is None else user
    return struct.pack(">HH", version, 0) + names + bytes(32) + application + contexts + item(0x50, user) + more


def request(**parts):
    return pdu(1, body(**parts))


# ---- commands ----

uids = (f"2.25.77{n:06}" for n in itertools.count(1))


def element(number, value, group=0):
    raw = struct.pack("<H", value) if isinstance(value, int) else peer.padded(value)
    return struct.pack("<HHI", group, number, len(raw)) + raw


def command(elements):
    """A command set from (number, value), in the given order, with its group length."""
    raw = b"".join(element(n, v) for n, v in elements)
    return struct.pack("<HHII", 0, 0, 4, len(raw)) + raw


def echo(**other):
    values = {"sop": (2, VERIFICATION), "field": (0x100, 0x30), "id": (0x110, 1), "set": (0x800, NO_DATA_SET)}
    values.update({k: v for k, v in other.items() if k in values})
    return command([v for v in values.values() if v])


def store(uid, sop=SC, field=0x01, number=1, data=1, more=(), without=()):
    values = [(2, sop), (0x100, field), (0x110, number), (0x700, 0), (0x800, data), (0x1000, uid), *more]
    return command([v for v in values if v[0] not in without])


def pdv(context_id, flags, raw, length=None):
    return struct.pack(">IBB", len(raw) + 2 if length is None else length, context_id, flags) + raw


def data(*pdvs, length=None):
    raw = b"".join(pdvs)
    return struct.pack(">BBI", 4, 0, len(raw) if length is None else length) + raw


def message(context_id, command_set, data_set=None):
    """A whole message: command and data set in PDUs of at most 16 kB."""
    out = data(pdv(context_id, 3, command_set))
    if data_set is not None:
        out += b"".join(peer.data_pdus(context_id, False, data_set, 16384))
    return out


# ---- the conversation ----

def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def close(s):
    s.close()


def keep(s):
    """The case ends without closing the connection: the node has to."""
    KEPT.append(s.dup())


KEPT = []


def half_close(s):
    s.shutdown(socket.SHUT_WR)


def pause(seconds):
    return lambda s: time.sleep(seconds)


def dribble(raw, step):
    """One byte each `step` seconds."""
    def act(s):
        for i in range(len(raw)):
            s.sendall(raw[i:i + 1])
            time.sleep(step)
    return act


def word(stage, wire, digests):
    """The next answer, in one word."""
    try:
        kind, raw = wire.read_pdu()
    except peer.Gone as e:
        return "timeout" if "timed out" in str(e) else "closed"
    if kind != 4:
        return {2: "accepted", 3: f"rejected {raw[1:4].hex()}", 6: "released", 7: "aborted"}.get(kind, f"PDU-{kind}")
    found = peer.read_command(raw[6:])
    uid = found.get(0x1000, b"").decode("latin-1")
    if found[0x100] == peer.STORE_RSP and found[0x900] == peer.SUCCESS:
        c.check(uid in digests, f"a success for {uid!r}, which was not sent")
        stage.ledger.add({uid: digests[uid]})
    return f"{found[0x900]:04X}"


def talk(*parts, objects=(), release=True, begin=request()):
    """Send the request, then the parts (bytes, or functions of the socket), then a release; return all answers."""
    def act(stage):
        s = stage.connect()
        wire, words, digests = peer.Wire(s), [], {o.uid: o.digest for o in objects}
        try:
            if begin:
                s.sendall(begin)
                words.append(word(stage, wire, digests))
            for part in parts if not words or words[0] == "accepted" else ():
                part(s) if callable(part) else s.sendall(part)
            if release and words and words[0] == "accepted":
                s.sendall(RELEASE)
        except OSError:
            pass  # the node closed the connection before all was sent: the answers tell
        while s.fileno() >= 0 and not (words and re.match("closed|timeout|aborted|rejected|released", words[-1])):
            words.append(word(stage, wire, digests))
        s.close()
        return " ".join(words)
    return act


def alone(*parts):
    """The parts without an association before."""
    return talk(*parts, begin=None)


def requested(raw, *parts):
    return talk(*parts, begin=raw)


WHO = r"(127\.66\.\d+\.\d+|calling=\"? *MODALITY)\b.*"


ANY = r'association-ended .*calling="? *MODALITY.*how=(released|.*reason="[^"]{12,})|(connection-ended|association-rejected) .*127\.66\..*[^"]{12,}"'


def case(name, act, answer, sentence):
    """A sentence of "." is any about the end of the association that names the peer."""
    return Case(name, act, answer, ANY if sentence == "." else WHO + sentence)


# ---- the cases ----

def before_association(rng):
    """Bytes that are no association request."""
    good = request()
    yield case("nothing, closed", alone(close), "", "connected and closed the connection without sending anything")
    yield case("nothing, silent", alone(), "closed", f"connected and sent nothing for {LIMIT} s")
    yield case("one byte, closed", alone(b"\1", close), "", "closed the connection within its association request")
    yield case("five bytes, closed", alone(good[:5], close), "", "closed the connection within its association request")
    yield case("half a request, closed", alone(good[:100], close), "", "closed the connection")
    yield case("half a request, reset", alone(good[:100], reset), "", "closed the connection|not connected")
    yield case("half a request, half-closed", alone(good[:100], half_close), "(aborted|closed)", "closed the connection")
    yield case("half a request, silent", alone(good[:100]), "(aborted|closed)", f"began a message and did not complete it within {LIMIT} s")
    yield case("a request, half-closed", talk(half_close, release=False), "accepted closed", "closed the connection")
    yield case("a request byte by byte, too slow", alone(dribble(good[:12], 0.6)), "(aborted|closed)", f"began a message and did not complete it within {LIMIT} s")
    yield case("a request byte by byte, in time", alone(dribble(good, 0), RELEASE), "accepted released", "how=released")
    for kind in (0, 2, 3, 4, 5, 6, 7, 8, 0x55, 0xFF):
        yield case(f"PDU of type {kind} first", alone(pdu(kind, good[6:])), "closed", "does not use DICOM: the first byte is 0x")
    for name, text in (("HTTP GET", b"GET / HTTP/1.0\r\n\r\n"), ("HTTP POST", b"POST /x HTTP/1.1\r\nContent-Length: 99999\r\n\r\n"),
                       ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n"), ("SMTP", b"EHLO localhost\r\n"), ("HL7", b"\x0bMSH|^~\\&|A|B\r\x1c\r"),
                       ("PROXY protocol", b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n"), ("one million zeros", bytes(1000000)),
                       ("garbage", b"\x99" + rng.randbytes(1000)), ("a TLS alert", b"\x15\3\3\0\2\2\x28")):
        yield case(f"{name} instead of a request", alone(text), "closed", "does not use DICOM: the first byte is 0x")
    yield case("TLS ClientHello instead of a request", alone(b"\x16\3\1\2\0\1\0\1\xfc\3\3" + bytes(32)), "closed", "uses plain DICOM: switch TLS off")
    yield case("garbage behind a byte of a request", alone(b"\1" + rng.randbytes(2000)), "(aborted|closed)", ".")


def request_lengths(rng):
    good = body()
    for name, n in (("0", 0), ("1", 1), ("67", 67), ("68", 68), ("shorter by 1", len(good) - 1), ("shorter by 60", len(good) - 60)):
        yield case(f"request length {name}", alone(struct.pack(">BBI", 1, 0, n) + good), "(aborted|closed|rejected .*)", ".")
    for name, n in (("longer by 1", len(good) + 1), ("2147483648", 1 << 31), ("4294967295", MAX), ("131073", 131073)):
        yield case(f"request length {name}", alone(struct.pack(">BBI", 1, 0, n) + good), "(aborted|closed)", ".")
    yield case("request length 4294967295 and a million bytes", alone(struct.pack(">BBI", 1, 0, MAX) + good + rng.randbytes(1000000)), "(aborted|closed)", ".")
    yield case("request with its reserved byte set", requested(b"\1\xff" + request()[2:]), "accepted released", "how=released")
    yield case("request of the fixed fields only", alone(pdu(1, good[:68])), "(aborted|closed|rejected .*)", ".")


def titles(rng):
    for name, text in (("another", "OTHER"), ("blank", ""), ("a prefix", "TOMONOD"), ("longer", "TOMONODE2"), ("lower case", "tomonode"),
                       ("non-ASCII", "TOMONOD\xc9"), ("with a backslash", "TOMO\\NODE"), ("with a line feed", "TOMO\nNODE"),
                       ("16 times 0xFF", b"\xff" * 16), ("behind a NUL", b"\0TOMONODE")):
        yield case(f"called AE title {name}", requested(request(called=text)), "rejected 010107", "requested AE title")
    for name, text in (("with spaces before", "  TOMONODE"), ("padded by NUL", b"TOMONODE".ljust(16, b"\0"))):
        yield case(f"called AE title {name}", requested(request(called=text)), "accepted released", "how=released")
    unknown, illegal = "is not that of a configured peer", "sent a calling AE title that is empty or has illegal characters"
    for name, text, sentence in (("unknown", "STRANGER", unknown), ("a prefix", "MODALIT", unknown), ("one letter", "M", unknown),
                                 ("longer", "MODALITY2", unknown), ("of 16 letters", "MODALITYMODALITY", unknown),
                                 ("lower case", "modality", unknown), ("with a space inside", "MODA LITY", unknown),
                                 ("with a star", "MODALITY*", unknown), ("with a format", "%s%n%s%n", unknown),
                                 ("blank", "", illegal), ("16 times NUL", bytes(16), illegal), ("non-ASCII", "MODALIT\xc4", illegal),
                                 ("with a backslash", "MODA\\LITY", illegal), ("with a line feed", "MODALITY\nx", illegal),
                                 ("with an escape sequence", "\x1b[2JMODALITY", illegal)):
        yield case(f"calling AE title {name}", requested(request(calling=text)), "rejected 010103", sentence)
    yield case("calling AE title with spaces before", requested(request(calling="  MODALITY")), "accepted released", "how=released")


def fixed_fields(rng):
    for version, good in ((0, False), (2, False), (0x8000, False), (3, True), (0xFFFF, True)):
        answer = "accepted released" if good else "(rejected 010202|aborted|closed)"
        yield case(f"protocol version {version:#06x}", requested(request(version=version)), answer, "how=released" if good else ".")
    for name, items in (("missing", b""), ("empty", item(0x10, b"")), ("of another", item(0x10, b"1.2.3")), ("of 64", item(0x10, b"1" * 64)),
                        ("of 65", item(0x10, b"1" * 65)), ("of 1000", item(0x10, b"1" * 1000)), ("that is a prefix", item(0x10, APPLICATION[:-1].encode())),
                        ("that is longer", item(0x10, APPLICATION.encode() + b".1"))):
        yield case(f"application context name {name}", requested(request(application=items)), "(rejected 010102|aborted|closed)", ".")
    twice = item(0x10, APPLICATION.encode()) * 2
    yield case("two application contexts", requested(request(application=twice)), "(accepted released|rejected 010102|aborted)", ".")


def contexts(rng):
    v = context(1, VERIFICATION, IMPLICIT)
    either = "(accepted released|rejected .*|aborted|closed)"
    say = {"none": b"", "id 0": context(0, VERIFICATION, IMPLICIT), "an even id": context(2, VERIFICATION, IMPLICIT),
           "the same id twice": v + context(1, SC, EXPLICIT), "128 of them": b"".join(context(n, VERIFICATION, IMPLICIT) for n in range(1, 256, 2)),
           "129 of them": b"".join(context(n % 256, VERIFICATION, IMPLICIT) for n in range(1, 259, 2)),
           "1000 of them": b"".join(context(n % 256, VERIFICATION, IMPLICIT) for n in range(1, 2001, 2)),
           "no abstract syntax": context(1, None, IMPLICIT), "an empty abstract syntax": context(1, "", IMPLICIT),
           "two abstract syntaxes": item(0x20, b"\1\0\0\0" + item(0x30, VERIFICATION.encode()) * 2 + item(0x40, IMPLICIT.encode())),
           "no transfer syntax": context(1, VERIFICATION), "an empty transfer syntax": context(1, VERIFICATION, ""),
           "100 transfer syntaxes": context(1, VERIFICATION, *[f"1.2.3.{n}" for n in range(100)], IMPLICIT),
           "5000 transfer syntaxes": context(1, VERIFICATION, *[f"1.2.{n}" for n in range(5000)]),
           "an abstract syntax of 64": context(1, "1." + "2" * 62, IMPLICIT), "an abstract syntax of 65": context(1, "1." + "2" * 63, IMPLICIT),
           "an abstract syntax of 5000": context(1, "1" * 5000, IMPLICIT), "an abstract syntax with letters": context(1, "1.2.abc", IMPLICIT),
           "an abstract syntax with leading zeros": context(1, "1.02.0840.10008.1.1", IMPLICIT),
           "an abstract syntax with dots": context(1, "..1..2..", IMPLICIT), "an abstract syntax with a NUL inside": context(1, "1.2\0.3", IMPLICIT),
           "a transfer syntax of 65": context(1, VERIFICATION, "1." + "2" * 63), "a transfer syntax with letters": context(1, VERIFICATION, "implicit"),
           "an unknown sub-item": item(0x20, b"\1\0\0\0" + item(0x77, b"abc") + item(0x30, VERIFICATION.encode()) + item(0x40, IMPLICIT.encode())),
           "a sub-item beyond its item": item(0x20, b"\1\0\0\0\x30\0\xff\xff" + VERIFICATION.encode()),
           "an item beyond the PDU": b"\x20\0\xff\xff\1\0\0\0", "an item of 3 bytes": item(0x20, b"\1\0\0"), "an empty item": item(0x20, b""),
           "an unknown item": v + item(0x99, b"abc"), "half an item head": v + b"\x20\0"}
    for name, items in say.items():
        yield case(f"contexts: {name}", requested(request(contexts=items)), either, ".")
    for name, items, sentence in (("none that is served", context(1, FIND, IMPLICIT) + context(3, FOREIGN, IMPLICIT),
                                   f"contexts-refused .*number=2 reason=.{FIND} .this class is not supported.; {FOREIGN} .this class"),
                                  ("JPEG 2000 that may be lossy", context(1, SC, "1.2.840.10008.1.2.4.91", "1.2.840.10008.1.2.4.92"),
                                   f"contexts-refused .*number=1 reason=.{SC} .none of its transfer syntaxes is supported: 1.2.840.10008.1.2.4.91 1.2.840.10008.1.2.4.92.")):
        yield Case(f"contexts: {name}", requested(request(contexts=items)), "accepted released", sentence)
    yield case("contexts: behind the user information", requested(request(contexts=b"", more=v)), either, ".")


def user_information(rng):
    either = "(accepted released|rejected .*|aborted|closed)"
    own, m = IMPLEMENTATION_ITEMS, max_pdu(16384)

    def role(uid, scu, scp, length=None):
        return item(0x54, struct.pack(">H", len(uid) if length is None else length) + uid.encode() + bytes((scu, scp)))

    def identity(kind, *fields):
        return item(0x58, bytes((kind, 1)) + b"".join(struct.pack(">H", len(f)) + f for f in fields))

    say = {"empty": b"", "maximum length 0": max_pdu(0) + own, "maximum length 4294967295": max_pdu(MAX) + own,
           "maximum length of 2 bytes": item(0x51, b"\x40\0") + own, "maximum length of 8 bytes": item(0x51, bytes(8)) + own,
           "maximum length twice": m + max_pdu(4096) + own, "no maximum length": own, "no implementation UID": m + item(0x55, b"TESTPEER"),
           "an empty implementation UID": m + item(0x52, b""), "an implementation UID of 65": m + item(0x52, b"1" * 65),
           "an implementation UID of 1000": m + item(0x52, b"1" * 1000), "an implementation UID with letters": m + item(0x52, b"abc"),
           "an implementation version of 17": m + own[:own.index(b"\x55")] + item(0x55, b"V" * 17),
           "an implementation version of 1000": m + item(0x52, b"1.2") + item(0x55, b"V" * 1000),
           "an implementation version with a line feed": m + item(0x52, b"1.2") + item(0x55, b"V\nfake-event x=1"),
           "a role of an unknown class": m + own + role("1.2.3", 1, 1), "a role of 255": m + own + role(SC, 255, 255),
           "a role of nobody": m + own + role(SC, 0, 0), "only the SCP role of storage": m + own + role(SC, 0, 1),
           "a role twice": m + own + role(SC, 0, 1) + role(SC, 1, 0), "a role's UID beyond its item": m + own + role(SC, 1, 1, 60000),
           "an empty role": m + own + item(0x54, b""), "a role's UID of 65": m + own + role("1" * 65, 1, 1),
           "an asynchronous window of 0": m + own + item(0x53, struct.pack(">HH", 0, 0)),
           "an asynchronous window of 65535": m + own + item(0x53, struct.pack(">HH", 65535, 65535)),
           "an asynchronous window of 1 byte": m + own + item(0x53, b"\1"),
           "extended negotiation": m + own + item(0x56, struct.pack(">H", len(SC)) + SC.encode() + b"\2\0\1\0\0\0"),
           "extended negotiation's UID beyond its item": m + own + item(0x56, struct.pack(">H", 60000) + SC.encode()),
           "an empty extended negotiation": m + own + item(0x56, b""),
           "common extended negotiation beyond its item": m + own + item(0x57, b"\0\xff\1"),
           "identity: user name": m + own + identity(1, b"somebody", b""), "identity: password": m + own + identity(2, b"somebody", b"secret-7"),
           "identity: Kerberos": m + own + identity(3, rngbytes(rng), b""), "identity: SAML": m + own + identity(4, b"<saml/>" * 500, b""),
           "identity: JWT": m + own + identity(5, b"a.b.c", b""), "identity: type 0": m + own + identity(0, b"x", b""),
           "identity: type 99": m + own + identity(99, b"x", b""), "identity: empty item": m + own + item(0x58, b""),
           "identity: a name beyond its item": m + own + item(0x58, b"\2\1\xff\xff" + b"somebody"),
           "an unknown sub-item": m + own + item(0x99, b"abc"), "a sub-item beyond its item": m + own + b"\x52\0\xff\xff1.2",
           "half a sub-item head": m + own + b"\x52\0"}
    for name, items in say.items():
        yield case(f"user information: {name}", requested(request(user=items)), either, ".")
    without = body()[:-len(item(0x50, m + own))]
    yield case("user information: missing", requested(pdu(1, without)), either, ".")
    yield case("user information: twice", requested(request(more=item(0x50, m + own))), either, ".")
    for n in (1, 5, 6, 7, 12):
        yield case(f"user information: maximum length {n}, and C-ECHO", requested(request(user=max_pdu(n) + own), message(1, echo())),
                   "(accepted .*|rejected .*|aborted|closed)", ".")


def rngbytes(rng):
    return rng.randbytes(3000)


def values(rng):
    """P-DATA-TF: presentation data values."""
    e = echo()
    bad = "accepted (aborted|closed)"
    for name, part in (("one byte longer than its PDU", data(pdv(1, 3, e, len(e) + 3))), ("of length 0", data(pdv(1, 3, e, 0))),
                       ("of length 1", data(pdv(1, 3, e, 1))), ("of length 4294967295", data(pdv(1, 3, e, MAX))),
                       ("of length 2147483648", data(pdv(1, 3, e, 1 << 31))), ("one byte shorter than its PDU", data(pdv(1, 3, e, len(e) + 1))),
                       ("with half a head", data(b"\0\0\0")), ("behind which the PDU goes on", data(pdv(1, 3, e), b"\0\0"))):
        yield case(f"a data value {name}", talk(part), bad, ".")
    yield case("a P-DATA without a data value", talk(data()), "accepted (aborted|closed|released)", ".")
    yield case("a data value of 2 bytes, then C-ECHO", talk(data(pdv(1, 0, b"")), message(1, e)), "accepted .*", ".")
    for number in (0, 2, 99, 255, 5, 7, 9):
        name = {5: "refused (query)", 7: "refused (unknown class)", 9: "refused (JPEG 2000)"}.get(number, f"{number} that was not requested")
        yield case(f"C-ECHO in the context {name}", talk(message(number, e)), bad, ".")
    yield case("a command of odd length", talk(data(pdv(1, 3, e + b"\0"))), "accepted .*", ".")
    for n, good in ((1, False), (2, True)):
        yield case(f"a command in data values of {n}", talk(b"".join(data(pdv(1, 3 if i + n == len(e) else 1, e[i:i + n])) for i in range(0, len(e), n))),
                   "accepted 0000 released" if good else "accepted aborted", "how=released" if good else "how=aborted")
    yield case("a command in data values of one PDU", talk(data(pdv(1, 1, e[:20]), pdv(1, 1, e[20:40]), pdv(1, 3, e[40:]))),
               "accepted 0000 released", "how=released")
    yield case("1000 empty data values before the end", talk(b"".join(data(pdv(1, 1, b"")) for _ in range(1000)) + data(pdv(1, 3, e))), "accepted .*", ".")
    yield case("a command that changes its context", talk(data(pdv(1, 1, e[:20])) + data(pdv(3, 3, e[20:]))), "accepted .*", ".")
    yield case("a command without end, then release", talk(data(pdv(1, 1, e))), "accepted released", "how=released")
    yield case("a command without end, then closed", talk(data(pdv(1, 1, e)), close), "accepted", "closed the connection")
    yield case("a command without end, then silence", talk(data(pdv(1, 1, e)), release=False), bad, f"in time|for {LIMIT} s")
    yield case("a command of 2 MiB", talk(b"".join(data(pdv(1, 1, bytes(16000))) for _ in range(132))), "accepted (aborted|closed)", "a command is longer than 1 MiB")
    yield case("all bits of the message control header", talk(data(pdv(1, 0xFF, e))), "accepted .*", ".")
    yield case("a data set without a command", talk(data(pdv(3, 2, bytes(100)))), bad, ".")
    yield case("two commands in one PDU", talk(data(pdv(1, 3, echo(id=(0x110, 1))), pdv(1, 3, echo(id=(0x110, 2))))), "accepted .*", ".")
    yield case("a PDU of a hundred C-ECHOs", talk(data(*[pdv(1, 3, echo(id=(0x110, n))) for n in range(100)])), "accepted .*", ".")
    yield case("P-DATA of length 4294967295", talk(struct.pack(">BBI", 4, 0, MAX) + pdv(1, 3, e)), "accepted .*", ".")
    yield case("P-DATA larger than the maximum", talk(data(pdv(1, 3, e + bytes(200000)))), "accepted .*", ".")
    yield case("an empty command", talk(data(pdv(1, 3, b""))), bad, ".")
    yield case("a command of garbage", talk(data(pdv(1, 3, rng.randbytes(200)))), bad, ".")


def elements(rng):
    """Command sets of which one element is wrong."""
    raw = echo()
    for name, other in (("without its SOP class", dict(sop=None)), ("without its command field", dict(field=None)),
                        ("without its message ID", dict(id=None)), ("without its data set type", dict(set=None)),
                        ("whose command field has 4 bytes", dict(field=(0x100, struct.pack("<I", 0x30)))),
                        ("whose command field is empty", dict(field=(0x100, b""))), ("whose message ID has 1 byte", dict(id=(0x110, b"\1"))),
                        ("whose message ID has 400 bytes", dict(id=(0x110, bytes(400)))), ("whose SOP class is another", dict(sop=(2, SC))),
                        ("whose SOP class has 65", dict(sop=(2, "1" * 65))), ("whose SOP class has 5000", dict(sop=(2, "1" * 5000))),
                        ("whose SOP class is empty", dict(sop=(2, b""))), ("with a data set that never comes", dict(set=(0x800, 1)))):
        yield case(f"C-ECHO {name}", talk(data(pdv(1, 3, echo(**other)))), "accepted .*", ".")
    for number in (0, 65535):
        yield case(f"C-ECHO with message ID {number}", talk(message(1, echo(id=(0x110, number)))), "accepted 0000 released", "how=released")
    yield case("the same message ID twice", talk(message(1, raw) * 2), "accepted 0000 0000 released", "how=released")
    body_ = raw[12:]
    for name, part in (("without its group length", body_), ("with a group length of 0", raw[:8] + bytes(4) + body_),
                       ("with a group length of 4294967295", raw[:8] + b"\xff" * 4 + body_), ("with a group length of 2 bytes", raw[:4] + b"\2\0\0\0" + b"\0\0" + body_),
                       ("in reverse order", command([(0x800, NO_DATA_SET), (0x110, 1), (0x100, 0x30), (2, VERIFICATION)])),
                       ("with every element twice", command([(2, VERIFICATION), (2, VERIFICATION), (0x100, 0x30), (0x100, 0x30), (0x110, 1), (0x800, NO_DATA_SET)])),
                       ("in Explicit VR", b"\0\0\2\0UI\x12\0" + peer.padded(VERIFICATION) + b"\0\0\0\1US\2\0\x30\0\0\0\x10\1US\2\0\1\0\0\0\0\x08US\2\0\1\1"),
                       ("in Big Endian", b"\0\0\0\2\0\0\0\x12" + peer.padded(VERIFICATION) + b"\0\0\1\0\0\0\0\2\0\x30\0\0\1\x10\0\0\0\2\0\1\0\0\x08\0\0\0\0\2\1\1"),
                       ("with an element of group 0008", raw + element(0x18, "1.2.3", 8)), ("with an element beyond its end", raw + b"\0\0\0\x10\xff\xff\0\0"),
                       ("with an element of undefined length", raw + b"\0\0\0\x10\xff\xff\xff\xff"),
                       ("with a sequence", raw + b"\x08\0\x40\x11\xff\xff\xff\xff\xfe\xff\0\xe0\xff\xff\xff\xff"), ("cut by one byte", raw[:-1])):
        yield case(f"a command {name}", talk(data(pdv(1, 3, part))), "accepted .*", ".")


def other_commands(rng):
    """DIMSE commands that a storage SCP does not serve, and responses that nobody asked for."""
    for field, name in ((0x10, "C-GET"), (0x20, "C-FIND"), (0x21, "C-MOVE"), (0x110, "N-GET"), (0x120, "N-SET"), (0x130, "N-ACTION"), (0x140, "N-CREATE"),
                        (0x150, "N-DELETE"), (0x100, "N-EVENT-REPORT")):
        yield case(f"{name} in the context of verification", talk(message(1, store("1.2.3", VERIFICATION, field), bytes(8))), "accepted .*", ".")
        yield case(f"{name} in the context of storage", talk(message(3, store("1.2.3", SC, field), bytes(8))), "accepted .*", ".")
    for field, name in ((0x8030, "C-ECHO-RSP"), (0x8001, "C-STORE-RSP"), (0x8020, "C-FIND-RSP"), (0x8100, "N-EVENT-REPORT-RSP")):
        yield case(f"{name} that nobody asked for", talk(message(1, command([(2, VERIFICATION), (0x100, field), (0x120, 1), (0x800, NO_DATA_SET), (0x900, 0)]))),
                   "accepted .*", ".")
    yield case("C-CANCEL of nothing, then C-ECHO", talk(message(1, command([(0x100, 0xFFF), (0x120, 1), (0x800, NO_DATA_SET)])) + message(1, echo())), "accepted 0000 released", "how=released")
    for field in (0, 0x7777, 0xFFFF):
        yield case(f"command field {field:#06x}", talk(message(1, echo(field=(0x100, field)))), "accepted .*", ".")
    yield case("N-EVENT-REPORT of commitment, garbage as its data set",
               talk(message(11, command([(2, COMMITMENT), (0x100, 0x100), (0x110, 1), (0x800, 1), (0x1000, COMMITMENT + ".1"), (0x1002, 1)]), rng.randbytes(300))), "accepted .*", ".")


def objects(rng):
    """C-STORE of which one thing is wrong."""
    def one(name, answer, sentence, **other):
        o = c.image(next(uids), 3000)
        uid, context_id = other.pop("uid", o.uid), other.pop("context", 3)
        o.uid = uid if isinstance(uid, str) else uid.rstrip(b"\0 ").decode("latin-1")
        data_set = other.pop("data_set", o.data)
        o.digest = c.hashlib.sha256(data_set or b"").hexdigest()
        act = talk(message(context_id, store(uid, **other), data_set), objects=[o])
        return Case(name, act, answer, sentence) if sentence.startswith("object-refused") else case(name, act, answer, sentence)

    long = "1." + "2" * 62
    yield one("C-STORE with a UID of 64", "accepted 0000 released", "how=released stored=1", uid="2.25." + "3" * 59)
    for name, uid in (("of 65", long + "3"), ("of 1000", "1" * 1000), ("with letters", "1.2.abc"), ("empty", ""), ("with two dots", "1..2"),
                      ("that ends with a dot", "1.2."), ("that is a path", "../../../etc/passwd"), ("that is a format", "%s%s%n%n"), ("of spaces", "    "),
                      ("with a line feed", "1.2\n3")):
        long_or_empty = len(uid.strip()) > 64 or not uid.strip()
        yield one(f"C-STORE with a UID {name}", "accepted aborted" if long_or_empty else "accepted 0117 released",
                  "." if long_or_empty else "object-refused .*status=0117 reason=.its SOP Instance UID is not a valid UID", uid=uid)
    yield one("C-STORE with leading zeros in its UID", "accepted 0000 released", "how=released stored=1", uid="2.25.0077001")
    yield one("C-STORE of a class that is not its context's", "accepted 0122 released",
              "object-refused .*status=0122 reason=.its SOP class is not that of its presentation context", sop="1.2.840.10008.5.1.4.1.1.2")
    yield one("C-STORE in the context of verification", "accepted 0122 released", "object-refused .*status=0122 reason=.its SOP class is not", context=1)
    yield one("C-STORE of verification in its context", "accepted 0122 released",
              "object-refused .*status=0122 reason=.its presentation context is that of C-ECHO", context=1, sop=VERIFICATION)
    yield one("C-STORE in a refused context", "accepted aborted", ".", context=9)
    yield one("C-STORE whose UID is not its data set's", "accepted 0000 released", "how=released stored=1", uid=next(uids))
    yield one("C-STORE with an empty data set", "accepted C000 released", "object-refused .*reason=.the data set is empty", data_set=b"")
    yield one("C-STORE with one byte as its data set", "accepted .*", ".", data_set=b"x")
    yield one("C-STORE with garbage as its data set", "accepted 0000 released", "how=released stored=1", data_set=rng.randbytes(3000))
    yield one("C-STORE that says that it has no data set", "accepted .*", ".", data=NO_DATA_SET, data_set=None)
    yield one("C-STORE that says that it has no data set, and sends one", "accepted .*", ".", data=NO_DATA_SET)
    yield one("C-STORE with priority 99", "accepted 0000 released", "how=released stored=1", more=((0x700, 99),), without=())
    yield one("C-STORE with a move originator of 1000", "accepted .*", ".", more=((0x1030, "M" * 1000), (0x1031, 7)))
    yield one("C-STORE without its instance UID", "accepted .*", ".", without=(0x1000,))
    yield one("C-STORE without its class", "accepted .*", ".", without=(2,))
    yield one("C-STORE without its priority", "accepted .*", ".", without=(0x700,))
    yield one("C-STORE without its data set type", "accepted .*", ".", without=(0x800,))
    o, q = c.image(next(uids), 3000), c.image(next(uids), 3000)
    yield case("the data set in another context", talk(data(pdv(3, 3, store(o.uid))), *peer.data_pdus(1, False, o.data, 16384), objects=[o]), "accepted (aborted|closed)", ".")
    yield case("a second C-STORE instead of the data set", talk(message(3, store(o.uid)), message(3, store(q.uid), q.data), objects=[o, q]), "accepted .*", ".")
    yield case("a data set that ends twice", talk(message(3, store(o.uid), o.data) + data(pdv(3, 2, b"more")), objects=[o]), "accepted .*", ".")
    yield case("two C-STOREs without waiting", talk(message(3, store(o.uid), o.data) + message(3, store(q.uid, number=2), q.data), objects=[o, q]),
               "accepted 0000 0000 released", "how=released stored=2")


def ends(rng):
    """Ends at the wrong place, and PDUs out of order."""
    def cut(name, *parts, answer="accepted (aborted|closed)", sentence=".", release=False):
        o = c.image(next(uids), 60000)
        raw = message(3, store(o.uid), o.data)
        return case(f"{name} within the data set", talk(raw[:30000], *parts, release=release), answer, sentence)

    inside = data(pdv(1, 1, echo()[:20]))
    for name, part, answer, sentence in (("A-ABORT", ABORT, "accepted closed", "aborted the association"), ("a release", RELEASE, "accepted .*", "."),
                                         ("a second A-ASSOCIATE-RQ", request(), "accepted .*", "."), ("closed", close, "accepted", "closed the connection"),
                                         ("reset", reset, "accepted", "closed the connection"), ("half-closed", half_close, "accepted (closed|aborted)", "closed the connection"),
                                         ("silence", pause(0), "accepted (closed|aborted)", f"within {LIMIT} s|in time")):
        yield case(f"{name} within a command", talk(inside, part, release=False), answer, sentence)
        whole = data(pdv(3, 3, store(next(uids)))) + data(pdv(3, 0, bytes(8000)))
        yield case(f"{name} between the data values of an object", talk(whole, part, release=False), answer, sentence)
        yield cut(name, part, answer="accepted.*", sentence=sentence if callable(part) else ".")
        yield case(f"{name} after the association was accepted", talk(part, release=False), "accepted.*", ".")
    yield cut("a byte now and then", dribble(bytes(12), 0.6), sentence=f"within {LIMIT} s|in time")
    for name, part in (("A-ASSOCIATE-AC", pdu(2, body())), ("A-ASSOCIATE-RJ", pdu(3, bytes((0, 1, 1, 1)))), ("A-RELEASE-RP", pdu(6, bytes(4))),
                       ("a PDU of type 0", pdu(0, bytes(4))), ("a PDU of type 8", pdu(8, bytes(4))), ("a PDU of type 255", pdu(255, bytes(4))),
                       ("a PDU of type 85 and length 4294967295", struct.pack(">BBI", 0x55, 0, MAX)), ("garbage", rng.randbytes(500)),
                       ("A-ABORT of length 0", pdu(7, b"")), ("A-ABORT of length 4294967295", struct.pack(">BBI", 7, 0, MAX) + bytes(4)),
                       ("A-ABORT with source and reason 255", pdu(7, b"\xff" * 4))):
        yield case(f"{name} in an association", talk(part), "accepted.*", ".")
    for name, part in (("0", pdu(5, b"")), ("8", pdu(5, bytes(8))), ("4294967295", struct.pack(">BBI", 5, 0, MAX) + bytes(4))):
        yield case(f"a release of length {name}", talk(part, release=False), "accepted.*", ".")
    yield case("two releases", talk(RELEASE), "accepted released.*", "how=released")
    yield case("C-ECHO after the release", talk(RELEASE + message(1, echo()), release=False), "accepted released.*", "how=released")
    yield case("release, and never closed", talk(keep, release=True), "accepted released", "how=released")


def answers():
    """associations.txt: {name of a case: answer}."""
    found, answer = {}, ""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "associations.txt"), encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("\t"):
                found[line[1:]] = answer
            elif not line.startswith("#"):
                answer = line
    return found


def stage_of(folder):
    return hostile.stage(folder, PEERS, require_known_peer="true", check_called="true", quiet_time=20, acse_timeout=LIMIT, dimse_timeout=LIMIT)


def cases_of(rng):
    """Where a peer must expect several answers, the one of associations.txt is required."""
    parts = (before_association, request_lengths, titles, fixed_fields, contexts, user_information, values, elements, other_commands, objects, ends)
    found, known = {one.name: one for part in parts for one in part(rng)}, answers()
    for name, answer in known.items():
        c.check(name in found and re.fullmatch(found[name].answer, answer), f"associations.txt: '{answer}' is no answer of a case '{name}'")
        found[name] = found[name]._replace(answer=re.escape(answer))
    return list(found.values())
