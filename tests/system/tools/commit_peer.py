# SPDX-License-Identifier: Apache-2.0
"""An archive that commits itself to what it stored (PS3.4 annex J), or does not, when and how a test says."""
import socket
import struct
import threading
import time

from tools.dicom_peer import (APPLICATION, IMPLICIT, SUCCESS, Archive, Gone, Wire, command_set, data_pdus, item,
                              padded, pdu,
                        user_information)

COMMITMENT, WELL_KNOWN = "1.2.840.10008.1.20.1", "1.2.840.10008.1.20.1.1"
EVENT_RQ, ACTION_RQ = 0x0100, 0x0130


def element(group, number, raw):
    return struct.pack("<HHI", group, number, len(raw)) + raw


def uid_element(group, number, uid):
    return element(group, number, padded(uid))


def sequence(group, number, items):
    return element(group, number, b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(i)) + i for i in items))


def elements(raw):
    """(group, element, value) of Implicit VR Little Endian, also of undefined length."""
    at = 0
    while at + 8 <= len(raw):
        group, number, n = struct.unpack_from("<HHI", raw, at)
        at += 8
        if group == 0xFFFE and n in (0, 0xFFFFFFFF) or n == 0xFFFFFFFF:
            continue  # flat: what is inside comes next
        if group == 0xFFFE or (group, number) == (8, 0x1199):
            continue
        yield group, number, raw[at:at + n]
        at += n


class_of = {}  # SOP Instance UID: SOP class, as in the requests


def report_data(transaction, verdicts):
    """verdicts: UID -> 0 or its Failure Reason."""
    items = {u: uid_element(8, 0x1150, class_of.get(u, "1.2.3")) + uid_element(8, 0x1155, u) for u in verdicts}
    good = [items[u] for u, v in verdicts.items() if not v]
    bad = [items[u] + element(8, 0x1197, struct.pack("<H", v)) for u, v in verdicts.items() if v]
    raw = uid_element(8, 0x1195, transaction)
    return raw + (sequence(8, 0x1198, bad) if bad else b"") + (sequence(8, 0x1199, good) if good else b"")


def send_report(wire, context, transaction, verdicts, event=None, raw=None):
    """N-EVENT-REPORT over an association that is there; the status of the answer."""
    event = event or (2 if any(verdicts.values()) else 1)
    command = command_set({0x0002: COMMITMENT, 0x0100: EVENT_RQ, 0x0110: 7, 0x0800: 1, 0x1000: WELL_KNOWN,
                           0x1002: event})
    for part in data_pdus(context, True, command, wire.max_pdu):
        wire.send(part)
    for part in data_pdus(context, False, report_data(transaction, verdicts) if raw is None else raw, wire.max_pdu):
        wire.send(part)
    message = wire.message()
    if not message:
        raise Gone("released instead of an answer")
    return message[1][0x0900]


def report(port, transaction, verdicts, calling="PACS", event=None, raw=None):
    """On an association of its own, as the class' SCP."""
    wire = Wire(socket.create_connection(("127.0.0.1", port), 20))
    wire.sock.settimeout(20)
    try:
        body = struct.pack(">HH16s16s32s", 1, 0, b"TOMONODE".ljust(16), calling.ljust(16).encode(), b"") + item(0x10,
            APPLICATION.encode())
        body += item(0x20, struct.pack(">BBBB", 1, 0, 0, 0) + item(0x30, COMMITMENT.encode()) + item(0x40,
            IMPLICIT.encode()))
        role = item(0x54, struct.pack(">H", len(COMMITMENT)) + COMMITMENT.encode() + bytes((0, 1)))
        user = user_information(16384)
        body += item(0x50, user[4:] + role)
        wire.send(pdu(1, body))
        kind, answer = wire.read_pdu()
        if kind != 2:
            raise Gone(f"rejected: {answer[1:4].hex()}" if kind == 3 else f"PDU of type {kind}")
        if item(0x54, struct.pack(">H", len(COMMITMENT)) + COMMITMENT.encode() + bytes((0, 1))) not in answer:
            raise Gone("the role of an SCP was not accepted")
        status = send_report(wire, 1, transaction, verdicts, event, raw)
        wire.send(pdu(5, b"\0" * 4))
        wire.read_pdu()
        return status
    finally:
        wire.close()


class Partner(Archive):
    """`how`: "same" or "new" association, or None: it never reports; "chatter": reports of something else without end,
    instead of an answer to the request. verdict(uid): 0 or a Failure Reason."""

    def __init__(self, node_port=None):
        self.node_port, self.how, self.status = node_port, "same", SUCCESS
        self.verdict = lambda uid: 0
        self.requests = []  # (transaction, UIDs)
        self.answers = []  # statuses that our reports got
        self.chattered = 0
        self.gate = threading.Event()  # an N-ACTION is answered when it is open
        self.gate.set()
        super().__init__()

    def accept(self, wire):
        self.wire = wire  # of the newest association
        super().accept(wire)

    def other(self, command, data):
        if command[0x0100] != ACTION_RQ:
            return SUCCESS
        wire = self.wire
        while self.how == "chatter":  # until the node has had enough, which ends the association
            send_report(wire, 1, "2.25.1", {"1.2.3": 0})
            self.chattered += 1
            time.sleep(0.1)
        values = list(elements(data))
        classes, uids = ([v.rstrip(b"\0").decode() for g, e, v in values if (g, e) == (8, number)]
                         for number in (0x1150, 0x1155))
        class_of.update(zip(uids, classes))
        transaction = next(v for g, e, v in values if (g, e) == (8, 0x1195)).rstrip(b"\0").decode()
        self.requests.append((transaction, uids))
        self.gate.wait(30)
        return self.status

    def verdicts(self, number=-1):
        return {uid: self.verdict(uid) for uid in self.requests[number][1]}

    def answered(self, wire, context, command, status):
        if command[0x0100] != ACTION_RQ or status != SUCCESS:
            return
        transaction, verdicts = self.requests[-1][0], self.verdicts()
        if self.how == "same":
            self.answers.append(send_report(wire, context, transaction, verdicts))
        elif self.how == "new":
            threading.Thread(target=self.report, args=(transaction, verdicts), daemon=True).start()

    def report(self, transaction, verdicts):
        self.answers.append(report(self.node_port, transaction, verdicts))
