# SPDX-License-Identifier: Apache-2.0
"""Misbehaving destinations: what a PACS may do with an association, a C-STORE and a request of storage commitment.

A result goes to two destinations, the misbehaving one and the bystander's. Each case waits until the latter has it, without delay, and until
the node has recorded what the former did; from then on the PACS behaves. The answer is what became of the result there: "delivered" at once,
"later" without anybody's help, or "on request": a dead letter, which `retry` then delivers. Every object must have arrived in the end.
"""
import json
import os
import re
import struct
import threading
import time

import hostile
from hostile import PATIENCE, Case, c, check, h, peer, wait_for
from tools import commit_peer as commit
from tools.dicom_peer import APPLICATION, IMPLICIT, NO_DATA_SET, STORE_RSP, SUCCESS, Gone, command_set, data_pdus, item, pdu, user_information

TITLE, PART = "Misbehaving destinations", 16
TIMEOUT = 5 * PATIENCE  # s: of the misbehaving destinations; a test that is stopped for two seconds changes no answer
JPEG2000 = "1.2.840.10008.1.2.4.90"


class Pacs(commit.Partner):
    """Behaves, unless `script` is set: then script(self, wire) serves an association, or `reply` the response to a C-STORE."""

    def __init__(self):
        self.script = self.reply = self.report_script = None
        self.aet = "KEEPER"
        super().__init__()

    def serve(self, sock):
        if not self.script:
            super().serve(sock)
            return
        sock.settimeout(60)
        wire = peer.Wire(sock)
        try:
            self.script(self, wire)
        except (Gone, OSError):
            pass
        finally:
            wire.close()

    def take(self, command, data):
        try:
            if self.reply:
                self.reply(self, self.wire, command)  # raises Gone if nothing else is to be answered
        except Status as e:
            self.answer = lambda uid, data: e.code
            try:
                return super().take(command, data)
            finally:
                self.answer = lambda uid, data: SUCCESS
        return super().take(command, data)

    def answered(self, wire, context, command, status):
        if self.report_script and command[0x0100] == commit.ACTION_RQ:
            self.report_script(self, wire, context, *self.requests[-1])
        else:
            super().answered(wire, context, command, status)

    def report(self, transaction, verdicts):
        self.answers.append(commit.report(self.node_port, transaction, verdicts, calling=self.aet))


# ---- an association ----

def answer_with(*parts, request=True, linger=0):
    """Read the request, send the parts, wait, close."""
    def script(_, wire):
        if request:
            wire.read_pdu()
        for part in parts:
            part(wire) if callable(part) else wire.send(part)
        if linger:
            wire.sock.settimeout(linger * PATIENCE)
            while True:
                wire.exactly(1)
    return script


def rejected(result, source, reason):
    return answer_with(pdu(3, bytes((0, result, source, reason))), linger=5)


def accepted(contexts=None, user=None, called=b"HOSTILE", syntax=None, result=0, application=True, then=None):
    """An A-ASSOCIATE-AC of which a part is replaced; then(pacs, wire) continues, else each message is answered as usual."""
    def script(pacs, wire):
        _, body = wire.read_pdu()
        items, at = b"", 68
        while at + 4 <= len(body):
            kind, _, n = struct.unpack_from(">BBH", body, at)
            inner, at = body[at + 4:at + 4 + n], at + 4 + n
            if kind == 0x20:
                first = inner.find(b"\x40\0", 4)
                size = struct.unpack_from(">H", inner, first + 2)[0]
                chosen = syntax.encode() if syntax else inner[first + 4:first + 4 + size]
                items += item(0x21, bytes((inner[0], 0, result, 0)) + item(0x40, chosen))
        items = items if contexts is None else contexts
        head = struct.pack(">HH", 1, 0) + called.ljust(16) + body[20:68]
        parts = (item(0x10, APPLICATION.encode()) if application else b"") + items
        wire.send(pdu(2, head + parts + (user_information(131072) if user is None else user)))
        if then:
            then(pacs, wire)
        while True:
            message = wire.message()
            if not message:
                return
            context, command, data = message
            if data:
                Pacs.take(pacs, command, data)
            reply = {0x0002: command.get(0x0002, b""), 0x0100: command[0x0100] | 0x8000, 0x0120: command[0x0110], 0x0800: NO_DATA_SET, 0x0900: SUCCESS}
            for raw in data_pdus(context, True, command_set({**reply, 0x1000: command.get(0x1000, b"")}), 16384):
                wire.send(raw)
    return script


def slowly(raw, pause=0.25):
    def act(wire):
        for i in range(len(raw)):
            wire.send(raw[i:i + 1])
            time.sleep(pause)
    return act


def user(max_pdu):
    return item(0x50, item(0x51, struct.pack(">I", max_pdu)) + item(0x52, peer.IMPLEMENTATION.encode()))


LATE = TIMEOUT + 3  # s: a silent peer closes after this
ASSOCIATIONS = [
    ("closes at once", answer_with(request=False), "later", "closed the connection"),
    ("closes after the request", answer_with(), "later", "closed the connection"),
    ("never answers the request", answer_with(linger=LATE), "later", "in time|within"),
    ("answers with garbage", answer_with(b"\x99\x98\x97" * 40, linger=LATE), "later", "HOSTILE at"),
    ("answers with HTTP", answer_with(b"HTTP/1.1 400 Bad Request\r\n\r\n", linger=LATE), "later", "HOSTILE at"),
    ("answers with a TLS alert", answer_with(b"\x15\3\3\0\2\2\x28", linger=LATE), "later", "responded to plain DICOM with TLS|uses TLS"),
    ("answers with half an A-ASSOCIATE-AC", answer_with(pdu(2, bytes(184))[:60]), "later", "closed the connection"),
    ("answers with an empty A-ASSOCIATE-AC", answer_with(pdu(2, b""), linger=LATE), "later", "HOSTILE at"),
    ("answers with an A-ASSOCIATE-AC of 4294967295", answer_with(struct.pack(">BBI", 2, 0, 0xFFFFFFFF) + bytes(500), linger=LATE), "later", "HOSTILE at"),
    ("answers one byte each quarter of a second", answer_with(slowly(pdu(2, bytes(184))[:40])), "later", "in time|did not complete it within"),
    ("answers with A-ASSOCIATE-RQ", answer_with(pdu(1, bytes(184)), linger=LATE), "later", "HOSTILE at"),
    ("answers with A-RELEASE-RP", answer_with(pdu(6, bytes(4)), linger=LATE), "later", "HOSTILE at"),
    ("aborts as the user", answer_with(pdu(7, bytes((0, 0, 0, 0)))), "later", "aborted the association"),
    ("aborts as the provider", answer_with(pdu(7, bytes((0, 0, 2, 6)))), "later", "aborted the association"),
    ("rejects: no reason", rejected(1, 1, 1), "later", "rejected the association"),
    ("rejects: application context", rejected(1, 1, 2), "later", "rejected the association"),
    ("rejects: calling AE title", rejected(1, 1, 3), "later", "does not know our AE title"),
    ("rejects: called AE title", rejected(1, 1, 7), "later", "rejected the association"),
    ("rejects: ACSE, no reason", rejected(1, 2, 1), "later", "rejected the association"),
    ("rejects: protocol version", rejected(1, 2, 2), "later", "rejected the association"),
    ("rejects for now: congestion", rejected(2, 3, 1), "later", "rejected the association for now"),
    ("rejects for now: local limit", rejected(2, 3, 2), "later", "for now: it has too many associations"),
    ("rejects with values that do not exist", rejected(9, 9, 99), "later", "rejected|HOSTILE at"),
    ("rejects with length 0", answer_with(pdu(3, b""), linger=LATE), "later", "HOSTILE at"),
    ("accepts no context", accepted(result=3), "on request", "none of the \\d+ proposed presentation contexts"),
    ("accepts contexts that were not proposed", accepted(contexts=item(0x21, bytes((99, 0, 0, 0)) + item(0x40, IMPLICIT.encode()))), "on request|later", "HOSTILE at"),
    ("accepts without any context", accepted(contexts=b""), "on request|later", "HOSTILE at"),
    ("accepts a syntax that was not proposed", accepted(syntax=JPEG2000), "on request|later", "HOSTILE at"),
    ("accepts without user information", accepted(user=b""), "on request|later|delivered", "HOSTILE at|status=0000"),
    ("accepts PDUs of 1 byte", accepted(user=user(1)), "on request|later", "HOSTILE at"),
    ("accepts PDUs of 7 bytes", accepted(user=user(7)), "on request|later", "HOSTILE at"),
    ("accepts PDUs of 13 bytes", accepted(user=user(13)), "on request|later|delivered", "HOSTILE at|status=0000"),
    ("accepts PDUs of 4294967295 bytes", accepted(user=user(0xFFFFFFFF)), "on request|later|delivered", "HOSTILE at|status=0000"),
    ("closes after it accepted", accepted(then=lambda p, w: w.close()), "later", "closed the connection"),
    ("aborts after it accepted", accepted(then=lambda p, w: (w.send(pdu(7, bytes(4))), w.close())), "later", "aborted the association|closed the connection"),
    ("releases after it accepted", accepted(then=lambda p, w: w.send(pdu(5, bytes(4)))), "later", "HOSTILE at"),
    ("reads nothing after it accepted", accepted(then=lambda p, w: time.sleep(LATE)), "later", "in time|within|read nothing"),
]


# ---- the response to a C-STORE ----

def status(code):
    def reply(*_):
        raise Status(code)
    return reply


class Status(Exception):
    """Answer with this status."""

    def __init__(self, code):
        super().__init__(f"{code:04X}")
        self.code = code


def send_reply(wire, command, **other):
    """A C-STORE-RSP; `other` replaces elements, None leaves one out."""
    values = {"sop": (2, command[2]), "field": (0x100, STORE_RSP), "id": (0x120, command[0x110]), "set": (0x800, NO_DATA_SET),
              "status": (0x900, SUCCESS), "uid": (0x1000, command[0x1000])}
    values.update({k: v if v is None else (values[k][0] if k in values else int(k[1:], 16), v) for k, v in other.items()})
    raw = command_set(dict(v for v in values.values() if v))
    for part in data_pdus(1, True, raw, 16384):
        wire.send(part)


def instead(act):
    """act(wire, command) in place of the response; then the association is closed, or left to the node."""
    def reply(_, wire, command):
        act(wire, command)
        raise Gone("the script has ended")
    return reply


def reply_with(**other):
    def act(wire, command):
        send_reply(wire, command, **other)
        wire.message()
    return instead(act)


def twice(_, wire, command):
    send_reply(wire, command)


def about_another(_, wire, command):
    send_reply(wire, command, uid="1.2.3.4.5")
    raise Gone("answered")


def wait(wire, command):
    wire.sock.settimeout(LATE)
    wire.exactly(1)


RESPONSES = [(f"responds {code:04X}", status(code), end, sentence) for code, end, sentence in (
    (0xA700, "later", "A700"), (0xA701, "later", "A701"), (0xA900, "on request", "A900"), (0xA9FF, "on request", "A9FF"),
    (0xC000, "on request", "C000"), (0xCFFF, "on request", "CFFF"), (0x0122, "on request", "0122"), (0x0110, "later", "0110"),
    (0x0117, "on request|later", "0117"), (0x0124, "on request|later", "0124"), (0x0211, "on request|later", "0211"), (0xB000, "delivered", "B000"),
    (0xB007, "delivered", "B007"), (0xBFFF, "delivered|on request|later", "BFFF"), (0xFF00, "later|on request", "FF00"), (0xFE00, "later", "FE00"),
    (0x0001, "later|on request|delivered", "0001"), (0xFFFF, "later|on request", "FFFF"))]
RESPONSES += [
    ("responds with another message ID", reply_with(id=4711), "later", "Message ID 4711"),
    ("responds about another object", about_another, "later", "about the object 1.2.3.4.5"),
    ("responds as to C-ECHO", reply_with(field=0x8030), "later", "0x8030|HOSTILE at"),
    ("responds as to C-FIND", reply_with(field=0x8020), "later", "0x8020|HOSTILE at"),
    ("responds with a C-STORE request", reply_with(field=0x0001), "later", "0x0001|HOSTILE at"),
    ("responds without a status", reply_with(status=None), "later", "HOSTILE at"),
    ("responds without a message ID", reply_with(id=None), "later", "HOSTILE at"),
    ("responds without a command field", reply_with(field=None), "later", "HOSTILE at"),
    ("responds with a data set that never comes", reply_with(set=1), "later", "HOSTILE at"),
    ("responds twice", twice, "delivered|later", "status=0000|HOSTILE at"),
    ("responds too late", instead(lambda w, m: (time.sleep(LATE), send_reply(w, m))), "later", "in time|within"),
    ("never responds", instead(wait), "later", "in time|within"),
    ("closes instead of a response", instead(lambda w, m: None), "later", "closed the connection"),
    ("aborts instead of a response", instead(lambda w, m: w.send(pdu(7, bytes(4)))), "later", "aborted the association"),
    ("releases instead of a response", instead(lambda w, m: (w.send(pdu(5, bytes(4))), w.message())), "later", "release"),
    ("sends garbage instead of a response", instead(lambda w, m: (w.send(b"\x99" * 300), wait(w, m))), "later", "HOSTILE at"),
    ("sends half a response", instead(lambda w, m: w.send(struct.pack(">BBIIBB", 4, 0, 100, 96, 1, 3) + bytes(20))), "later", "closed the connection"),
    ("sends a data value longer than its PDU", instead(lambda w, m: (w.send(struct.pack(">BBIIBB", 4, 0, 30, 96, 1, 3) + bytes(24)), wait(w, m))), "later", "longer than its PDU"),
    ("sends a response of 4294967295", instead(lambda w, m: (w.send(struct.pack(">BBIIBB", 4, 0, 0xFFFFFFFF, 96, 1, 3)), wait(w, m))), "later", "HOSTILE at"),
    ("sends a response byte by byte", instead(lambda w, m: slowly(struct.pack(">BBIIBB", 4, 0, 100, 96, 1, 3) + bytes(28))(w)), "later", "in time|did not complete it within"),
    ("comments with odd bytes", reply_with(status=0xA900, x0902=b"\x1b[31m\xff\0\n%n%s; rm -rf"), "on request", "A900"),
    ("comments with 60000 bytes", reply_with(status=0xA900, x0902=b"x" * 10000), "on request|later", "A900|HOSTILE at"),
]


# ---- storage commitment ----

def told(act):
    """act(pacs, wire, context, transaction, UIDs) in place of a report; the association stays open for a moment."""
    def script(pacs, wire, context, transaction, uids):
        act(pacs, wire, context, transaction, uids)
    return script


def on_own(build):
    """The report on an association of its own; build(transaction, UIDs): options of commit.report()."""
    def script(pacs, _, __, transaction, uids):
        options = {"calling": pacs.aet, "transaction": transaction, "verdicts": {u: 0 for u in uids}, **build(transaction, uids)}

        def report():
            try:
                pacs.answers.append(commit.report(pacs.node_port, **options))
            except (Gone, OSError) as e:
                pacs.answers.append(str(e))
        threading.Thread(target=report, daemon=True).start()
    return script


def both_lists(transaction, uids):
    one = commit.uid_element(8, 0x1150, "1.2.840.10008.5.1.4.1.1.13.1.3") + commit.uid_element(8, 0x1155, uids[0])
    bad = one + commit.element(8, 0x1197, struct.pack("<H", 0x0110))
    return commit.uid_element(8, 0x1195, transaction) + commit.sequence(8, 0x1198, [bad]) + commit.sequence(8, 0x1199, [one])


def raw(make):
    return on_own(lambda t, u: {"raw": make(t, u), "event": 1})


def reference(uid):
    return commit.uid_element(8, 0x1155, uid)


NOTHING, NEITHER = "no report within", "the report names 1 of 1 object neither as committed nor as failed"
COMMITMENTS = [
    ("promises nothing", told(lambda *_: None), "later", NOTHING),
    ("reports another transaction", on_own(lambda t, u: {"transaction": "2.25.4711"}), "later", "commitment-unknown"),
    ("reports as another AE title", on_own(lambda t, u: {"calling": "SOMEBODY"}), "later", "commitment-wrong-peer"),
    ("reports an object in both lists", raw(both_lists), "later|on request", "commit-failed|0110"),
    ("reports objects that were not asked for", on_own(lambda t, u: {"verdicts": {"1.2.3": 0, "1.2.4": 0}}), "later", NEITHER),
    ("reports nothing but its transaction", raw(lambda t, u: commit.uid_element(8, 0x1195, t)), "later", NEITHER),
    ("reports garbage", raw(lambda t, u: b"\x99" * 334), "later", "commitment-report-refused .*reason="),
    ("reports without a data set's end", raw(lambda t, u: b"\x08\0\x95\x11\xff\xff\0\0abcd"), "later", "commitment-report-refused .*reason="),
    ("reports without a transaction", raw(lambda t, u: commit.sequence(8, 0x1199, [reference(u[0])])), "later", "commitment-report-refused .*reason="),
    ("reports items without a UID", raw(lambda t, u: commit.uid_element(8, 0x1195, t) + commit.sequence(8, 0x1199, [b""])), "later", "commitment-report-refused|no report"),
    ("reports a UID of 65", raw(lambda t, u: commit.uid_element(8, 0x1195, t) + commit.sequence(8, 0x1199, [reference("1" * 65)])), "later", "commitment-report-refused|no report"),
    ("reports 30000 objects", on_own(lambda t, u: {"verdicts": {f"1.2.3.{n}": 0 for n in range(30000)}}), "later", "commitment-report-refused|no report"),
    ("reports 5 MB", raw(lambda t, u: commit.uid_element(8, 0x1195, t) + commit.element(9, 0x10, bytes(5000000))), "later", "commitment-report-refused .*reason="),
    ("reports with event type 3", on_own(lambda t, u: {"event": 3}), "later", "commitment-report-refused .*event type 3"),
    ("reports with event type 65535", on_own(lambda t, u: {"event": 65535}), "later", "commitment-report-refused .*event type 65535"),
    ("reports a failure as event type 1", on_own(lambda t, u: {"verdicts": {x: 0x0112 for x in u}, "event": 1}), "later", "0112"),
    ("reports success as event type 2", on_own(lambda t, u: {"event": 2}), "delivered|later", "committed|no report"),
    ("closes after the request", told(lambda p, w, *_: w.close()), "later", NOTHING),
    ("aborts after the request", told(lambda p, w, *_: w.send(pdu(7, bytes(4)))), "later", NOTHING),
    ("sends garbage after the request", told(lambda p, w, *_: w.send(b"\x99" * 300)), "later", NOTHING),
]
COMMITMENTS += [(f"reports failure {reason:04X}", on_own(lambda t, u, r=reason: {"verdicts": {x: r for x in u}}), "later|on request", f"{reason:04X}")
                for reason in (0x0110, 0x0112, 0x0119, 0x0122, 0x0131, 0x0213, 0x9999)]


# ---- a case ----

EVENTS = ("send-failed", "send-refused", "sent", "stored", "commit-requested", "commit-accepted", "commit-request-failed", "committed", "commit-failed",
          "commit-refused", "dead-letter")


def details(st, job, destination):
    """(event, detail) of one destination."""
    rows = c.query(st.node.spool, "SELECT name, detail FROM event WHERE job=? ORDER BY seq", job)
    found = [(name, json.loads(detail or "{}")) for name, detail in rows if name in EVENTS]
    return [(name, d) for name, d in found if d.get("destination", destination) == destination]


def final(st, job):
    """The last event that ends a job, or None."""
    names = [name for name in c.events_of(st.node.spool, job) if name in ("delivered", "dead-letter", "retry")]
    return names[-1] if names and names[-1] != "retry" else None


def behave(sentence, **how):
    """how: script, reply or report_script of the PACS; sentence: that ends the misbehaviour when it is seen."""
    destination = "keeper" if "report_script" in how else "hostile"

    def act(st):
        pacs = st.pacs[destination]
        study, objects = st.exams.number(st.number())
        for name, value in how.items():
            setattr(pacs, name, value)
        try:
            began = time.monotonic()
            check(st.ledger.send(st.node.port, objects, calling=destination.upper()), "the exam was not acknowledged")
            wait_for("the other destination has the result", lambda: study in st.archive.studies, step=0.02)
            delay = st.delay(began, time.monotonic() - began)
            check(delay < hostile.DELAY * PATIENCE, f"the other destination got the result {delay:.1f} s late")
            job, = c.jobs_of(st.node.spool, study)

            def seen():
                st.quoted = [f"{name} status={d.get('status', '')} reason={json.dumps(d.get('reason', ''))}" for name, d in details(st, job, destination)]
                return any(re.search(sentence, q) for q in st.quoted) or sentence.startswith("commitment-") and st.sentence(sentence)
            try:
                wait_for(f"a sentence like '{sentence}'", seen, step=0.05)
            except AssertionError as e:
                raise AssertionError(f"{e}; there are {st.quoted}") from e
        finally:
            pacs.script = pacs.reply = pacs.report_script = None
        state = wait_for("the job is delivered or a dead letter", lambda: final(st, job), step=0.05)
        failed = any(name in ("send-failed", "commit-request-failed", "commit-failed") or name == "commit-requested" and i
                     for i, (name, _) in enumerate(n for n in details(st, job, destination) if n[0] != "sent"))
        if state == "dead-letter":
            check("dead-letter" in st.node.command("list").stdout, "`list` does not show the dead letter")
            st.node.command("retry", job)
            wait_for("the dead letter is delivered on request", lambda: final(st, job) == "delivered", step=0.05)
        uids = [o["sop_instance"] for j in st.node.jobs() if j["id"] == job for o in j["result"]["objects"]]
        check(uids and all(u in pacs.held for u in uids), "an object did not arrive")
        return "on request" if state == "dead-letter" else "later" if failed else "delivered"
    return act


def cases_of(_rng):
    found = [Case(f"association: {n}", behave(s, script=act), f"({end})", s) for n, act, end, s in ASSOCIATIONS]
    found += [Case(f"C-STORE: {n}", behave(s, reply=act), f"({end})", s) for n, act, end, s in RESPONSES]
    return found + [Case(f"commitment: {n}", behave(s, report_script=act), f"({end})", s) for n, act, end, s in COMMITMENTS]


class PacsStage(hostile.Stage):
    """Two more destinations, each with a route for the exams of the sender of its name: one that only stores, and one that also commits."""

    def __init__(self, folder, node, archive):
        super().__init__(folder, node, archive)
        self.pacs = {"hostile": Pacs(), "keeper": Pacs()}
        self.things += self.pacs.values()
        for pacs in self.pacs.values():
            pacs.node_port = node.port
        keys = (f"connect_timeout = {TIMEOUT}; acse_timeout = {TIMEOUT}; dimse_timeout = {TIMEOUT}; retry_first = 0.2; retry_cap = 0.5; "
                "commitment_wait = 1; commitment_timeout = 1.5; commitment_attempts = 3;")
        destinations = ", ".join(f'{{ name = "{name}"; aet = "{name.upper()}"; host = "127.0.0.1"; port = {pacs.port}; {keys} '
                                 f'commitment = {"true" if name == "keeper" else "false"}; }}' for name, pacs in self.pacs.items())
        routes = ", ".join(f'{{ name = "{name}"; calling = "{name.upper()}"; protocols = [ "quick" ]; destinations = [ "{name}", "pacs" ]; }}'
                           for name in self.pacs)
        with open(node.conf, encoding="utf-8") as f:
            text = f.read()
        text = text.replace("destinations = ( {", f"destinations = ( {destinations}, {{", 1).replace("routes = ( {", f"routes = ( {routes}, {{", 1)
        with open(node.conf, "w", encoding="utf-8") as f:
            f.write(text)


def stage_of(folder):
    archive = peer.Archive()
    return PacsStage(folder, h.Node(os.path.join(folder, "node"), archive.port, quiet_time=20), archive)
