# SPDX-License-Identifier: Apache-2.0
"""The audit trail: every kind of message that the program writes, held against the grammar of PS3.15 A.5.1 by xmllint,
whatever strangers put into their names; and nothing lost while syslog is away or the node is killed."""
import os
import re
import signal
import socket
import threading
import time
import xml.etree.ElementTree as ET

import pydicom

from tools import node_harness as h
from tools.edits import edited_all
from tools.node_harness import check, run, wait_for
from tools.pilot_tools import Pilot, cluster_node, hello

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "xmllint")

SCHEMA = os.path.join(os.environ.get("TOMONODE_SOURCE", "."), "tests", "audit", "audit-message.rng")
# RFC 5424: PRI, version, time, host, application, process, message id, no structured data, byte order mark
FRAME = re.compile(rb'^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([\x21-\x7e]{1,255}) (tomonode-[a-z]+) '
                   rb'(\d+) '
                   rb'DICOM\+RFC3881 - \xef\xbb\xbf(<\?xml .*)$', re.S)
HOSTILE_AE = "<A&'\"x]]>"
HOSTILE_PATIENT = "P<1>&\"'\x1b[31m"


class Message:
    def __init__(self, frame):
        m = FRAME.match(frame)
        check(m, f"no RFC 5424 frame: {frame[:200]}")
        check(b"\n" not in frame and not re.search(rb"[\x00-\x1f]", frame), f"control characters in {frame[:200]}")
        check(len(frame) < 8192, f"{len(frame)} bytes")
        self.pri, self.app, self.pid, self.xml = int(m[1]), m[4].decode(), int(m[5]), m[6]
        self.root = ET.fromstring(self.xml)
        self.event = self.root.find("EventIdentification/EventID").get("originalText")
        code = self.root.find("EventIdentification/EventTypeCode")
        self.type = code.get("originalText") if code is not None else None
        self.outcome = self.root.find("EventIdentification").get("EventOutcomeIndicator")
        self.name = self.event + (f" / {self.type}" if self.type else "")
        reason = self.root.find("EventIdentification/EventOutcomeDescription")
        self.reason = reason.text if reason is not None else ""

    def parties(self):
        return {(p.find("RoleIDCode").get("originalText") if p.find("RoleIDCode") is not None else ""): p.attrib
                for p in self.root.findall("ActiveParticipant")}

    def ids(self, kind):
        return [o.get("ParticipantObjectID") for o in self.root.findall("ParticipantObjectIdentification")
                if o.find("ParticipantObjectIDTypeCode").get("originalText") == kind]

    def classes(self):
        return {c.get("UID"): int(c.get("NumberOfInstances")) for c in self.root.iter("SOPClass")}


class Syslog:
    """A daemon on a socket of its own: keeps what it gets."""

    def __init__(self, path):
        self.path, self.frames, self.socket = path, [], None

    def start(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind(self.path)
        self.socket.settimeout(0.2)
        self.running = True
        self.thread = threading.Thread(target=self.take, daemon=True)
        self.thread.start()

    def take(self):
        while self.running:
            try:
                self.frames.append(self.socket.recv(1 << 17))
            except socket.timeout:
                pass

    def stop(self):
        if self.socket:
            self.running = False
            self.thread.join()
            self.socket.close()
            self.socket = None
            os.unlink(self.path)

    def messages(self):
        return [Message(f) for f in self.frames]

    def names(self):
        return [m.name for m in self.messages()]

    def wait(self, name, seconds=120, count=1):
        wait_for(f"{count} x {name}", lambda: self.names().count(name) >= count, seconds)
        return [m for m in self.messages() if m.name == name]


def validate(folder, messages):
    """Each by xmllint, together in one call; then one that must not pass."""
    paths = []
    for i, m in enumerate(messages):
        paths.append(os.path.join(folder, f"message-{i}.xml"))
        h.write_file(paths[-1], m.xml)
    p = run("xmllint", "--noout", "--nonet", "--relaxng", SCHEMA, *paths, code=None)
    check(p.returncode == 0, p.stderr[-1500:])
    broken = os.path.join(folder, "broken.xml")
    h.write_file(broken, messages[0].xml.replace(b"EventOutcomeIndicator", b"EventOutcome"))
    check(run("xmllint", "--noout", "--relaxng", SCHEMA, broken, code=None).returncode != 0,
          "the grammar takes everything")


def hostile_exam(folder, patient, *options):
    """An exam whose patient has such an identifier."""
    return edited_all(h.simulate(folder, *options), folder, PatientID=patient)


def node(folder, things, **settings):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    syslog = Syslog(os.path.join(folder, "log"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, audit='"syslog"', audit_socket=f'"{syslog.path}"', **settings)
    things += [n, pacs, syslog]
    return n, pacs, syslog


def test_every_message(folder, things):
    n, pacs, syslog = node(folder, things, check_called="true", audit_facility='"local5"',
                           audit_site='"A & B <clinic>"', retention_days=1)
    syslog.start()
    n.start()
    syslog.wait("Application Activity / Application Start")

    # who is turned away: a name for nobody, TLS on a plain port, a browser
    run("echoscu", "-aet", HOSTILE_AE, "-aec", "OTHER", "127.0.0.1", n.port, code=None)
    for said in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.0\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", n.port)) as s:
            s.sendall(said)
            try:
                s.recv(100)
            except ConnectionResetError:
                pass
    with socket.create_connection(("127.0.0.1", n.port)):
        pass  # a health check is no alert
    alerts = syslog.wait("Security Alert / Node Authentication", count=3)
    check(len(alerts) == 3, alerts)  # each from a process of its own: in any order
    rejected, = [m for m in alerts if "OTHER" in m.reason]
    check(rejected.root.findall("ActiveParticipant")[1].get("UserID") == HOSTILE_AE, rejected.xml)
    check(rejected.root.findall("ActiveParticipant")[1].get("NetworkAccessPointID") == "127.0.0.1", rejected.xml)
    check(sum("TLS" in m.reason for m in alerts) == 1 and sum("0x47" in m.reason for m in alerts) == 1,
          [m.reason for m in alerts])

    # an exam in, nobody to take the result, then somebody
    files = hostile_exam(os.path.join(folder, "exam"), HOSTILE_PATIENT, "--views", 5)
    h.send(n.port, files)
    source = pydicom.dcmread(files[0], stop_before_pixels=True)
    received = wait_for("the reception is reported",
                        lambda: next((m for m in syslog.messages() if m.name == "DICOM Instances Transferred" and
                                                                   m.parties()["Source Role ID"]["UserID"]
                                      == "MODALITY"), None), 120)
    check(received.outcome == "0", received.xml)
    failed = syslog.wait("DICOM Instances Transferred", count=2)
    check("4" in [m.outcome for m in failed] and any("refused" in m.reason for m in failed), [m.reason for m in failed])
    check(received.classes() == {source.SOPClassUID: len(files)},
          f"not one message for the association: {received.xml}")
    check(received.ids("Study Instance UID") == [source.StudyInstanceUID], received.xml)
    check(received.ids("Patient Number") == [HOSTILE_PATIENT.replace("\x1b", "\\x1b")] or
          received.ids("Patient Number") == [HOSTILE_PATIENT.replace("\x1b", "?")], received.xml)
    check(received.parties()["Source Role ID"]["UserID"] == "MODALITY", received.xml)
    check(received.parties()["Destination Role ID"]["AlternativeUserID"] == "AETITLES=TOMONODE", received.xml)
    pacs.start()
    n.wait_states("delivered")
    wait_for("the delivery is reported", lambda: any(m.outcome == "0" and m.parties()["Destination Role ID"]["UserID"]
                                                     == "PACS"
                                                     for m in syslog.messages()
                                                     if m.name == "DICOM Instances Transferred"), 120)
    begun = syslog.wait("Begin Transferring DICOM Instances")
    check(begun[-1].parties()["Destination Role ID"]["UserID"] == "PACS" and sum(begun[-1].classes().values()) == 1,
          begun[-1].xml)
    check(begun[-1].ids("Study Instance UID") == [source.StudyInstanceUID], begun[-1].xml)
    show = n.command("show", "--json", "1").stdout
    check("P<1>" not in show and HOSTILE_PATIENT[:4] not in n.log_text(), "a patient in show or in the log")

    # configuration, good and bad
    n.process.send_signal(signal.SIGHUP)
    syslog.wait("Security Alert / Software Configuration")
    n.write_conf("nonsense = 1;\n")
    n.process.send_signal(signal.SIGHUP)
    check([m.outcome for m in syslog.wait("Security Alert / Software Configuration", count=2)] == ["0", "4"],
          "outcome of a reload")
    n.write_conf()

    # limits
    n.stop()
    syslog.wait("Application Activity / Application Stop")
    n.node["max_associations"] = 1
    n.write_conf()
    n.start()

    def rejected():  # not at once: the association that the harness called with may not have given its place back
        with socket.create_connection(("127.0.0.1", n.port)):
            time.sleep(0.3)
            return run("echoscu", "-aec", "TOMONODE", "127.0.0.1", n.port, code=None).returncode != 0
    wait_for("the one place is taken", rejected, 60, 1)
    syslog.wait("Security Alert / Use of Restricted Function")
    n.stop()

    # retention
    import sqlite3
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("UPDATE event SET time = time - 2 * 86400")
    n.start()
    removed = syslog.wait("DICOM Study Deleted")
    check(removed[0].ids("Study Instance UID") == [source.StudyInstanceUID], removed[0].xml)
    check(n.stop() == 0, "SIGTERM")

    # commands on files
    pet = os.path.join(folder, "pet")
    run(h.TOMONODE, "simulate", "pet", "--scanner", "small", "--counts", "1e5", "--interfile", "-o", pet, code=None)
    headers = [os.path.join(pet, f) for f in sorted(os.listdir(pet)) if f.endswith(".hs")] if os.path.isdir(pet) else []
    check(headers, f"no Interfile to import: {os.listdir(pet) if os.path.isdir(pet) else pet}")
    emission = next(f for f in headers if "emission" in f or "prompts" in f or len(headers) == 1)
    objects = os.path.join(folder, "objects <&>")
    run(h.TOMONODE, "import", "-c", n.conf, emission, "--set", f"PatientID={HOSTILE_AE}", "-o", objects)
    imported, = syslog.wait("Import")
    check(imported.ids("Patient Number") == [HOSTILE_AE] and sum(imported.classes().values()) == 1, imported.xml)
    run(h.TOMONODE, "export", "-c", n.conf, "-o", os.path.join(folder, "out <&>.hs"), objects)
    exported, = syslog.wait("Export")
    check(exported.parties()["Destination Media"]["UserID"].endswith("/out%20%3C%26%3E.hs"), exported.xml)
    check(exported.ids("Patient Number") == [HOSTILE_AE] and exported.outcome == "0", exported.xml)
    run(h.TOMONODE, "arrays", "read", "-c", n.conf, "--device", "cpu", "-o", os.path.join(folder, "case"), objects)
    exported = syslog.wait("Export", count=2)[-1]
    check(exported.parties()["Destination Media"]["UserID"].endswith("/case"), exported.xml)
    check(exported.ids("Patient Number") == [HOSTILE_AE] and exported.outcome == "0", exported.xml)
    run(h.TOMONODE, "import", "-c", n.conf, os.path.join(folder, "nothing.hs"), "-o", objects, code=None)
    check([m.outcome for m in syslog.wait("Import", count=2)] == ["0", "8"], "an import that failed")

    messages = syslog.messages()
    check({m.pri & ~7 for m in messages} == {21 << 3}, "facility")
    check({m.pri & 7 for m in messages if m.outcome == "0"} == {5}, "severity")
    check({m.name for m in messages} == {
        "Application Activity / Application Start", "Application Activity / Application Stop",
        "Security Alert / Node Authentication",
        "Security Alert / Software Configuration", "Security Alert / Use of Restricted Function",
        "DICOM Instances Transferred",
        "Begin Transferring DICOM Instances", "DICOM Study Deleted", "Import", "Export"},
          sorted({m.name for m in messages}))
    check(all(m.root.find("AuditSourceIdentification").get("AuditEnterpriseSiteID") == "A & B <clinic>"
              for m in messages), "site")
    validate(folder, messages)


def problems(n):
    return {p["id"] for p in n.list()["problems"]}


def test_nothing_is_lost_without_syslog(folder, things):
    n, pacs, syslog = node(folder, things)
    pacs.start()
    n.start()
    wait_for("the log says so", lambda: "audit-delayed" in n.log_text())
    files = h.simulate(os.path.join(folder, "exam"), "--views", 5)
    h.send(n.port, files)  # the sender does not wait for syslog, which is away until the node was killed
    n.wait_states("delivered")
    n.kill()  # before the transfers were reported: they follow from the journal
    n.start()
    wait_for("the log says so again", lambda: n.log_text().count("audit-delayed") == 2)
    wait_for("the node has a problem", lambda: "audit" in problems(n))
    syslog.start()
    syslog.wait("DICOM Instances Transferred", count=2)
    wait_for("the log says so", lambda: "audit-recovered" in n.log_text())
    wait_for("the problem has ended", lambda: "audit" not in problems(n))
    check(n.stop() == 0, "SIGTERM")
    syslog.wait("Application Activity / Application Stop")
    messages = syslog.messages()
    names = [m.name for m in messages]
    check(names.count("Application Activity / Application Start") == 2, names)
    check(names[0] == "Application Activity / Application Start" and names[-1]
          == "Application Activity / Application Stop", names)
    transfers = [m for m in messages if m.name == "DICOM Instances Transferred"]
    check(len(transfers) == 2 and {m.outcome for m in transfers} == {"0"}, [m.xml for m in transfers])
    check(sum(transfers[0].classes().values()) == len(files), transfers[0].xml)
    check(n.log_text().count("audit-delayed") == 2, "once for each time, not for each attempt")
    check("audit-lost" not in n.log_text(), "audit-lost")
    check(os.path.getsize(os.path.join(n.spool, "audit", "queue")) == 20, "the queue is not empty")
    validate(folder, messages)


def test_to_a_file(folder, things):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    path = os.path.join(folder, "audit.log")
    n = h.Node(os.path.join(folder, "node"), pacs.port, audit='"file"', audit_file=f'"{path}"')
    things += [n, pacs]
    check(f"\naudit         to the file {path}\n" in n.command("check").stdout, "check says where")
    n.start()
    check(n.stop() == 0, "SIGTERM")
    check(os.stat(path).st_mode & 0o777 == 0o600, "others may read it")
    with open(path, "rb") as f:
        messages = [Message(line) for line in f.read().splitlines()]
    check([m.type for m in messages] == ["Application Start", "Application Stop"], [m.name for m in messages])
    n.node["audit_file"] = '""'
    n.write_conf()
    p = run(h.TOMONODE, "check", "-c", n.conf, code=3)
    check("audit_file" in p.stdout + p.stderr, p.stderr)


def test_pilots(folder, things):
    """Images on another machine: who connected, was refused and left; what each pilot got and brought back."""
    path = os.path.join(folder, "audit.log")
    n, _ = cluster_node(folder, things, lease=300.0, audit='"file"', audit_file=f'"{path}"')
    n.make_long()

    def messages(name):
        if not os.path.exists(path):
            return []
        raw = h.read_file(path, "rb")
        return [m for m in map(Message, raw[:raw.rfind(b"\n") + 1].splitlines()) if m.name == name]

    def wait(name, count=1):
        wait_for(f"{count} x {name}", lambda: len(messages(name)) >= count)
        return messages(name)

    n.start()
    pilot = Pilot(n, things, "d1").connected()
    entered, = wait("Network Entry / Attach")
    party, = entered.root.findall("ActiveParticipant")
    check(party.get("UserID") == "d1" and party.get("NetworkAccessPointID") == "127.0.0.1" and entered.outcome == "0",
          entered.xml)
    check(Pilot(n, things, "d1", secret="0" * 64, options=["--patience", "1"]).process.wait(60) == 7, "another secret")
    check(Pilot(n, things, "d9", secret="0" * 64, options=["--patience", "1"]).process.wait(60) == 7, "an unknown ID")
    hello(n, "9999999999999", "0.0 <other>")
    hello(n, "9999999999999", "0.0 <other>")
    for reason, who in (("its secret is not the node's for pilot 'd1'", "d1"), ("no secret of a pilot 'd9'", "d9"),
                        ("it is version 0.0 <other>", "d1"),
                        ("was used before", "d1")):
        wait_for(reason, lambda reason=reason: [m for m in messages("Security Alert / Node Authentication")
                                                if reason in m.reason])
        m = [m for m in messages("Security Alert / Node Authentication") if reason in m.reason][0]
        party = m.root.findall("ActiveParticipant")[1]
        check(m.outcome == "4" and party.get("UserID") == who and party.get("NetworkAccessPointID") == "127.0.0.1",
              m.xml)

    files = hostile_exam(os.path.join(folder, "exam"), HOSTILE_PATIENT, "--views", 5)
    source = pydicom.dcmread(files[0], stop_before_pixels=True)
    h.send(n.port, files)
    begun, = wait("Begin Transferring DICOM Instances")
    check(begun.parties()["Destination Role ID"]["UserID"] == "d1" and begun.classes()
          == {source.SOPClassUID: len(files)}, begun.xml)
    check(begun.ids("Study Instance UID") == [source.StudyInstanceUID], begun.xml)
    pilot.kill()
    left, = wait("Network Entry / Detach")
    check(left.outcome == "4" and left.reason, left.xml)
    n.make_quick()
    Pilot(n, things, "d2").connected()
    n.command("cancel", str(n.jobs()[0]["id"]))
    n.wait_states("cancelled")
    n.command("retry", str(n.jobs()[0]["id"]))
    n.wait_states("delivered")
    wait_for("the result is reported", lambda: [m for m in messages("DICOM Instances Transferred")
                                                if m.parties()["Source Role ID"]["UserID"] == "d2"])
    result, = [m for m in messages("DICOM Instances Transferred") if m.parties()["Source Role ID"]["UserID"] == "d2"]
    check(result.ids("Patient Number") == begun.ids("Patient Number") and sum(result.classes().values()) == 1,
          result.xml)
    check(result.parties()["Destination Role ID"]["AlternativeUserID"] == "AETITLES=TOMONODE", result.xml)
    check(n.stop() == 0, "SIGTERM")
    check(wait("Network Entry / Detach", 2)[-1].outcome == "0", "a regular end")
    with open(path, "rb") as f:
        validate(folder, [Message(line) for line in f.read().splitlines()])
