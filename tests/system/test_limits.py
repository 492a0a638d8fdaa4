#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one sender may take of the node: associations, bytes within a time, refused attempts."""
import os
import random
import re
import socket
import sqlite3
import subprocess
import sys
import time
import types

from tools.dicom_peer import Object, store_all
from tools.node_harness import Node, Pacs, check, main, need, run, send, simulate, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import headers  # noqa: E402

need("echoscu", "storescu", "img2dcm")


def echo(node, aet="MODALITY"):
    return subprocess.run(["echoscu", "-aet", aet, "-aec", "TOMONODE", "-to", "5", "127.0.0.1", str(node.port)], capture_output=True, text=True,
                          timeout=30)


def associate_rq(calling):
    """An A-ASSOCIATE-RQ for Verification, Implicit VR Little Endian (PS3.8 9.3.2)."""
    def item(kind, body):
        return bytes([kind, 0]) + len(body).to_bytes(2, "big") + body
    context = item(0x20, b"\x01\0\0\0" + item(0x30, b"1.2.840.10008.1.1") + item(0x40, b"1.2.840.10008.1.2"))
    user = item(0x50, item(0x51, (16384).to_bytes(4, "big")) + item(0x52, b"1.2.3"))
    body = b"\0\x01\0\0" + b"TOMONODE".ljust(16) + calling.encode().ljust(16) + bytes(32) + item(0x10, b"1.2.840.10008.3.1.1.1") + context + user
    return b"\x01\0" + len(body).to_bytes(4, "big") + body


def associate(node, calling):
    """An open association: its socket, and the first byte of the answer (2 accepted, 3 rejected; None: closed)."""
    s = socket.create_connection(("127.0.0.1", node.port), timeout=10)
    s.sendall(associate_rq(calling))
    try:
        answer = s.recv(4096)
    except ConnectionResetError:
        answer = b""
    return s, answer


def test_associations(folder, things):
    node = Node(folder, 4242)
    things.append(node)
    node.node["peer_associations"] = 2
    node.write_conf('peers = ( { name = "one"; aet = "ONE"; associations = 1; }, { name = "two"; aet = "TWO"; } );\n')
    node.start()
    one, answer = associate(node, "ONE")
    check(answer[0] == 2, "the first association of ONE")
    s, answer = associate(node, "ONE")
    check(answer[0] == 3 and answer[7:10] == b"\x02\x03\x02", f"a second one is rejected for now, local limit exceeded: {answer.hex()}")
    s.close()
    two = [associate(node, "TWO") for _ in range(3)]
    check([a[0] for _, a in two] == [2, 2, 3], "two of TWO, who is another peer")
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
    picture = os.path.join(folder, "p.bmp")
    rows, columns = 1000, 1000
    with open(picture, "wb") as f:  # 24 bits a pixel
        size = 54 + rows * columns * 3
        f.write(b"BM" + size.to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
                + columns.to_bytes(4, "little") + rows.to_bytes(4, "little") + b"\x01\0\x18\0" + bytes(24) + random.Random(rows).randbytes(rows * columns * 3))
    run("img2dcm", "-i", "BMP", picture, os.path.join(folder, "p.dcm"))
    began = time.monotonic()
    run("storescu", "-aet", "MODALITY", "-aec", "TOMONODE", "127.0.0.1", node.port, os.path.join(folder, "p.dcm"))
    took = time.monotonic() - began
    check(took > 1.5, f"3 MB in {took:.2f} s")
    check(len(node.stored_files()) == 1, "and stored")
    wait_for("the log says so", lambda: "sender-throttled" in node.log_text())


def test_refusals(folder, things):
    node = Node(folder, 4242, require_known_peer="true", peer_refusals=4, peer_window=60, peer_block_time=8)
    things.append(node)
    node.write_conf('peers = ( { name = "m"; aet = "MODALITY"; }, { name = "e"; aet = "ECHOSCU"; } );\n')
    node.start()
    for _ in range(5):
        check(echo(node, "STRANGER").returncode != 0, "a stranger is rejected")
    wait_for("the address is shut out", lambda: "sender-blocked host=127.0.0.1 refusals=4" in node.log_text())
    check(node.log_text().count("association-rejected") == 5, "each refusal before is on record")
    for _ in range(10):
        s, answer = associate(node, "STRANGER")
        s.close()
        check(answer == b"", "closed at once")
    wait_for("it is let in again", lambda: "sender-unblocked host=127.0.0.1 closed=10" in node.log_text())
    check(node.log_text().count("association-rejected") == 5 and node.log_text().count("sender-blocked") == 1, "logged once, not for each attempt")
    check(echo(node).returncode == 0, "and a peer is served")
    check("association-crashed" not in node.log_text(), "no process crashed")


def test_turns_of_the_indexer(folder, things):
    """Five objects whose headers take about half a second each wait; the exam of another sender is indexed before most of them."""
    node = Node(folder, 4242)
    things.append(node)
    elements = headers.elements(490000)
    slow = [types.SimpleNamespace(data=headers.whole(b"", elements, instance=f"1.2.3.{k}"), digest="", sop_class=headers.PROJECTION_CLASS,
                                  uid=f"1.2.3.{k}", syntax=headers.EXPLICIT) for k in range(5)]
    exam = [Object(f) for f in simulate(os.path.join(folder, "exam"), "--views", 9)]
    node.start()
    node.process.send_signal(19)  # SIGSTOP: the indexer starts when everything has arrived
    for sender, objects in (("SLOW", slow), ("GOOD", exam)):
        check(len(store_all(node.port, objects, calling=sender)[0]) == len(objects), f"{sender}: not all stored")
    node.process.send_signal(18)  # SIGCONT

    def order_of_senders():
        with sqlite3.connect(f"file:{node.spool}/journal.db?mode=ro", uri=True) as db:
            return [r[0] for r in db.execute("select i.calling from classification c join instance i on i.id=c.instance order by c.time, i.id")]

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
    silent += [socket.create_connection(("127.0.0.1", node.port)) for _ in range(20)]  # more than are told that there is no room
    wait_for("somebody comes through", lambda: echo(node).returncode == 0, 60, 1)  # few refusals: the log of them has a limit
    log = node.log_text()
    check('connection-closed host=127.0.0.1 reason="it did not become an association in time, and node.max_associations is reached"' in log, "the log")
    silent += [socket.create_connection(("127.0.0.1", node.port)) for _ in range(2)]
    for s, _ in held:  # older than what was cut, and there
        s.sendall(b"\x05\0\0\0\0\x04\0\0\0\0")  # A-RELEASE-RQ
        check(s.recv(10)[:1] == b"\x06", "released in order")
        s.close()
    for s in silent:
        s.close()
    check("association-crashed" not in node.log_text(), "no process crashed")


def test_file_sizes(folder, things):
    """A limit of file sizes (ulimit -f): an object or a result above it is refused or held with a sentence, and no process dies. Data that
    the readers do not support hold their case with the number."""
    pacs = Pacs(os.path.join(folder, "pacs"))
    node = Node(folder, pacs.port)
    things += [node, pacs]
    pacs.start()
    exam, large = simulate(os.path.join(folder, "exam"), "--views", 3), simulate(os.path.join(folder, "large"), "--views", 3, binning=4)
    limit = 400000
    check(os.path.getsize(exam[0]) < limit < os.path.getsize(large[0]), "the sizes of the objects")
    node.start(command=["sh", "-c", 'ulimit -f "$0"; exec "$@"', limit // 512])
    check(send(node.port, large, code=None) == set(), "objects above the limit were stored")
    check('status=A700 reason="the file would exceed the limit of file sizes (ulimit -f, LimitFSIZE)"' in node.log_text(), node.log_text()[-800:])
    check(len(send(node.port, exam)) == 3, "objects below the limit are stored")
    job, = node.wait_states("held")
    check(f"writing at offset {limit // 512 * 512}: File too large (limit of file sizes: ulimit -f, LimitFSIZE)" in job["reason"], job["reason"])
    node.stop()
    node.start()
    node.command("retry", job["id"])
    node.wait_states("delivered")

    import pydicom
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
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as s:
        if text:
            s.sendall(text)
        try:
            s.recv(100)
        except ConnectionResetError:
            pass


def test_floods(folder, things):
    """What strangers do is told so and so often a minute, and counted beyond."""
    path = os.path.join(folder, "audit.log")
    node = Node(folder, 4242, audit='"file"', audit_file=f'"{path}"')
    things.append(node)
    node.start()
    for _ in range(50):
        knock(node, b"GET / HTTP/1.0\r\n\r\n")
    for _ in range(20):
        socket.create_connection(("127.0.0.1", node.port)).close()
    check(echo(node).returncode == 0, "served all the while")
    check(node.stop() == 0, "SIGTERM")
    log = node.log_text()
    told, said = log.count(" connection-ended "), re.search(r"connections-summary host=127.0.0.1 refused=(\d+) silent=(\d+) ", log)
    check(20 <= told <= 31 and said, f"told {told}")  # the harness itself looks whether the port is open
    check(told + int(said[1]) + int(said[2]) in (70, 71), f"none is left out: {told} + {said[1]} + {said[2]}")
    with open(path) as f:
        alerts = [line for line in f if "Security Alert" in line]
    check(sum("does not use DICOM" in a for a in alerts) == 50 - int(said[1]), f"{len(alerts)} in the audit trail")
    check(sum(f"{said[1]} more attempts were refused within " in a for a in alerts) == 1, "and one for the rest")


def test_shut_out_in_the_audit_trail(folder, things):
    path = os.path.join(folder, "audit.log")
    node = Node(folder, 4242, audit='"file"', audit_file=f'"{path}"', peer_refusals=3, peer_block_time=60)
    things.append(node)
    node.start()
    for _ in range(4):
        knock(node, b"GET / HTTP/1.0\r\n\r\n")
    wait_for("the sender is shut out", lambda: "sender-blocked" in node.log_text())
    for _ in range(9):
        knock(node, b"")
    check(node.stop() == 0, "SIGTERM")
    with open(path) as f:
        text = f.read()
    check(text.count("does not use DICOM") == 4, "each refusal")
    check(text.count("more than 3 refused attempts within 60 s: its connections are closed at once for 60 s") == 1, "that it is shut out")
    check(text.count("9 more attempts were refused within ") == 1, "and how many were closed")


if __name__ == "__main__":
    main([test_associations, test_turns_of_the_indexer, test_bytes, test_refusals, test_room, test_file_sizes, test_floods, test_shut_out_in_the_audit_trail])
