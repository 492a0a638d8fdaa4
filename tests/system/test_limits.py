# SPDX-License-Identifier: Apache-2.0
"""What one sender may take of the node: associations, bytes within a time, refused attempts."""
import os
import re
import signal
import socket
import sqlite3
import sys
import time
import types

import pydicom
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools.node_harness import LARGE, Node, Pacs, check, need, read_file, send, simulate, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import headers  # noqa: E402

need("echoscu", "storescu")
HTTP = b"GET / HTTP/1.0\r\n\r\n"


def audited(folder, **node):
    """A node with an audit trail, and the file of that."""
    path = os.path.join(folder, "audit.log")
    return Node(folder, 4242, audit='"file"', audit_file=f'"{path}"', **node), path


def associate(node, calling):
    """An open association: its socket, and the first byte of the answer (2 accepted, 3 rejected; None: closed)."""
    s = socket.create_connection(("127.0.0.1", node.port), timeout=60)
    s.sendall(peer.associate_request("TOMONODE", calling, {1: (peer.VERIFICATION, peer.IMPLICIT)}, 16384))
    try:
        answer = s.recv(4096)
    except ConnectionResetError:
        answer = b""
    return s, answer


def test_associations(folder, things):
    node = Node(folder, 4242)
    things.append(node)
    node.node.update(peer_associations=2, max_associations=4)
    node.write_conf('peers = ( { name = "one"; aet = "ONE"; associations = 1; }, { name = "two"; aet = "TWO"; } );\n')
    node.start()
    one, answer = associate(node, "ONE")
    check(answer[0] == 2, "the first association of ONE")
    s, answer = associate(node, "ONE")
    check(answer[0] == 3 and answer[7:10] == b"\x02\x03\x02",
          f"a second one is rejected for now, local limit exceeded: {answer.hex()}")
    rejected = [associate(node, "ONE") for _ in range(20)]  # and nobody closes them: of more than 16 the node does
    check({a[0] for _, a in rejected} == {3}, "they are rejected")
    check(s.recv(1) == b"", "the oldest is closed")
    two = [associate(node, "TWO") for _ in range(3)]
    check([a[0] for _, a in two] == [2, 2, 3], f"two of TWO, who is another peer: {[a.hex() for _, a in two]}")
    for connection in (s, *(r for r, _ in rejected)):
        connection.close()
    wait_for("the log says so", lambda: "'ONE' from 127.0.0.1 has 1 association already" in node.log_text())
    one.close()
    wait_for("ONE may come again", lambda: associate(node, "ONE")[1][:1] == b"\x02")
    for s, _ in two:
        s.close()


def test_bytes(folder, things):
    """Read more slowly, and nothing lost: of 3 MB within a limit of 1 MB a second the last 2 MB take 2 seconds."""
    node = Node(folder, 4242, peer_bytes=1000000, peer_window=1)
    things.append(node)
    node.start()
    began = time.monotonic()
    done, _ = peer.store_all(node.port, [c.image("2.25.900", 3000000)])
    took = time.monotonic() - began
    check(took > 1.5, f"3 MB in {took:.2f} s")
    check(len(done) == 1 and len(node.stored_files()) == 1, "and stored")
    wait_for("the log says so", lambda: "sender-throttled" in node.log_text())


def test_refusals(folder, things):
    """peer_window: long, so that no machine is too slow for five attempts."""
    node = Node(folder, 4242, require_known_peer="true", peer_refusals=4, peer_window=3600, peer_block_time=8)
    things.append(node)
    node.write_conf('peers = ( { name = "m"; aet = "MODALITY"; }, { name = "e"; aet = "ECHOSCU"; } );\n')
    node.start()

    def attempt():
        s, answer = associate(node, "STRANGER")
        s.close()
        return answer[:1]
    for _ in range(5):
        check(attempt() == b"\x03", "a stranger is rejected")
    wait_for("the address is shut out", lambda: "sender-blocked host=127.0.0.1 refusals=4" in node.log_text())
    check(node.log_text().count("association-rejected") == 5, "each refusal before is on record")
    answers = [attempt() for _ in range(10)]
    closed = answers.count(b"")
    check(closed > 0 and answers == [b""] * closed + [b"\x03"] * (10 - closed),
          f"closed at once, while it is shut out: {answers}")
    wait_for("it is let in again", lambda: f"sender-unblocked host=127.0.0.1 closed={closed}" in node.log_text())
    log = node.log_text()
    check(log.count("association-rejected") == 15 - closed and log.count("sender-blocked") == 1,
          "logged once, not for each attempt")
    check(peer.echo(node.port), "and a peer is served")
    check("association-crashed" not in node.log_text(), "no process crashed")


def test_turns_of_the_indexer(folder, things):
    """Five objects whose headers take about half a second each wait; the exam of another sender is indexed before most
    of them."""
    node = Node(folder, 4242)
    things.append(node)
    elements = headers.elements(490000)
    slow = [types.SimpleNamespace(data=headers.whole(b"", elements, instance=f"1.2.3.{k}"), digest="",
                                  sop_class=headers.PROJECTION_CLASS,
                                  uid=f"1.2.3.{k}", syntax=headers.EXPLICIT) for k in range(5)]
    exam = [peer.Object(f) for f in simulate(os.path.join(folder, "exam"), "--views", 9)]
    node.start()
    node.process.send_signal(signal.SIGSTOP)  # the indexer starts when everything has arrived
    for sender, objects in (("SLOW", slow), ("GOOD", exam)):
        check(len(peer.store_all(node.port, objects, calling=sender)[0]) == len(objects), f"{sender}: not all stored")
    node.process.send_signal(signal.SIGCONT)

    def order_of_senders():
        with sqlite3.connect(f"file:{node.spool}/journal.db?mode=ro", uri=True) as db:
            return [r[0] for r in db.execute("select i.calling from classification c join instance i "
                                             "on i.id=c.instance order by c.time, i.id")]

    wait_for("the exam is indexed", lambda: order_of_senders().count("GOOD") == len(exam))
    order = order_of_senders()
    last = max(k for k, sender in enumerate(order) if sender == "GOOD")
    check(order[:last].count("SLOW") <= 2, f"the exam waits for one slow header, or for a second one: {order}")


def test_room(folder, things):
    """Connections that never become an association hold nobody's place; associations are not touched."""
    node = Node(folder, 4242, max_associations=4, acse_timeout=60)
    things.append(node)
    node.start()
    held = [associate(node, "MODALITY") for _ in range(2)]
    check([a[:1] for _, a in held] == [b"\x02"] * 2, "two associations")
    silent = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(2)]
    silent[1].sendall(b"\x01\0\0\0")  # it begins to say something
    s, answer = associate(node, "MODALITY")
    s.close()
    check(answer[:1] == b"\x03", "all places are taken")
    silent += [socket.create_connection(("127.0.0.1", node.port)) for _
               in range(20)]  # more than are told that there is no room
    wait_for("somebody comes through", lambda: peer.echo(node.port), 60, 1)  # few refusals: the log of them has a limit
    log = node.log_text()
    check(re.search("connection-closed host=127.0.0.1 .*node.max_associations", log), "the log")
    silent += [socket.create_connection(("127.0.0.1", node.port)) for _ in range(2)]
    for s, _ in held:  # older than what was cut, and there
        s.sendall(b"\x05\0\0\0\0\x04\0\0\0\0")  # A-RELEASE-RQ
        check(s.recv(10)[:1] == b"\x06", "released in order")
        s.close()
    for s in silent:
        s.close()
    check("association-crashed" not in node.log_text(), "no process crashed")


def test_file_sizes(folder, things):
    """A limit of file sizes (ulimit -f): an object or a result above it is refused or held with a sentence, and no
    process dies. Data that the readers do not support hold their case with the number."""
    pacs = Pacs(os.path.join(folder, "pacs"))
    node = Node(folder, pacs.port)
    things += [node, pacs]
    pacs.start()
    exam = simulate(os.path.join(folder, "exam"), "--views", 3, *LARGE)
    large = simulate(os.path.join(folder, "large"), "--views", 3, binning=4)
    limit = 400000
    check(os.path.getsize(exam[0]) < limit < os.path.getsize(large[0]), "the sizes of the objects")
    node.start(command=["sh", "-c", 'ulimit -f "$0"; exec "$@"', limit // 512])
    check(send(node.port, large, code=None) == set(), "objects above the limit were stored")
    check(re.search("status=A700 reason=.*LimitFSIZE", node.log_text()), node.log_text()[-800:])
    check(len(send(node.port, exam)) == 3, "objects below the limit are stored")
    job, = node.wait_states("held")
    check(f"offset {limit // 512 * 512}" in job["reason"] and "LimitFSIZE" in job["reason"], job["reason"])
    node.stop()
    node.start()
    node.command("retry", job["id"])
    node.wait_states("delivered")

    endless = os.path.join(folder, "endless")
    os.makedirs(endless)
    series = pydicom.uid.generate_uid()
    for f in exam:
        d = pydicom.dcmread(f)
        d.SeriesInstanceUID, d.SOPInstanceUID, d.NumberOfFrames = series, pydicom.uid.generate_uid(), 2147483647
        d.file_meta.MediaStorageSOPInstanceUID = d.SOPInstanceUID
        d.save_as(os.path.join(endless, os.path.basename(f)))
    send(node.port, sorted(os.path.join(endless, f) for f in os.listdir(endless)))
    job = node.wait_states("delivered", "held")[1]
    check("2147483647 frames" in job["reason"], job["reason"])
    check(not [e for e in node.show(job["id"])["events"] if e["event"] == "crashed"], "no attempt counts as a crash")


def knock(node, text):
    with socket.create_connection(("127.0.0.1", node.port), timeout=60) as s:
        if text:
            s.sendall(text)
        try:
            s.recv(100)
        except ConnectionResetError:
            pass


def test_floods(folder, things):
    """What strangers do is told so and so often a minute, and counted beyond."""
    node, path = audited(folder)
    things.append(node)
    node.start()
    began = time.monotonic()
    for _ in range(50):
        knock(node, HTTP)
    for _ in range(20):
        socket.create_connection(("127.0.0.1", node.port)).close()
    check(peer.echo(node.port), "served all the while")
    check(node.stop() == 0, "SIGTERM")
    minutes = 1 + int((time.monotonic() - began) / 60)
    log = node.log_text()
    told = log.count(" connection-ended ")
    said = re.findall(r"connections-summary host=127.0.0.1 refused=(\d+) silent=(\d+) ", log)
    refused, silent = (sum(int(pair[i]) for pair in said) for i in (0, 1))
    check(20 <= told <= 31 * minutes and said, f"told {told}")  # the harness itself looks whether the port is open
    check(told + refused + silent in (70, 71), f"none is left out: {told} + {refused} + {silent}")
    with open(path) as f:
        alerts = "".join(line for line in f if "Security Alert" in line)
    check(alerts.count("does not use DICOM") == 50 - refused, f"{alerts} in the audit trail")
    rest = re.findall(r"(\d+) more attempts were refused within ", alerts)
    check(sum(map(int, rest)) == refused and len(rest) <= minutes, "and one for the rest")


def test_shut_out_in_the_audit_trail(folder, things):
    node, path = audited(folder, peer_refusals=3, peer_window=3600, peer_block_time=600)
    things.append(node)
    node.start()
    for _ in range(4):
        knock(node, HTTP)
    wait_for("the sender is shut out", lambda: "sender-blocked" in node.log_text())
    for _ in range(9):
        knock(node, b"")
    check(node.stop() == 0, "SIGTERM")
    text = read_file(path)
    check(text.count("does not use DICOM") == 4, "each refusal")
    check(text.count("more than 3 refused attempts within 3600 s: its connections are closed at once for 600 s") == 1,
          "that it is shut out")
    check(text.count("9 more attempts were refused within ") == 1, "and how many were closed")
