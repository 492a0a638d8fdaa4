# SPDX-License-Identifier: Apache-2.0
"""The receiver without the rest of the node: a sender of DCMTK, rejections, the reserve, lost and different objects
under one UID, a killed association, and the receiver's end: each with the set that was acknowledged compared to the set
that is stored and on record."""
import contextlib
import os
import re
import signal
import socket
import sys

import pytest
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need("storescu", "echoscu")


@pytest.fixture
def spool(folder):
    return os.path.join(folder, "spool")


def images(count, size=20000):
    return [c.image(f"2.25.77{i:03d}", size + 2000 * i, i) for i in range(count)]


def send(receiver, objects):
    done, refused = peer.store_all(receiver.port, objects)
    check(len(done) == len(objects), f"not taken: {refused}, {receiver.log()[-600:]}")


def check_stored(receiver, objects):
    """These and nothing else, bit for bit; rows and files agree, and nothing is left over."""
    ledger = c.Ledger()
    ledger.add({obj.uid: obj.digest for obj in objects})
    rows = c.instance_rows(receiver.spool)
    check(sorted(rows) == sorted(ledger.acknowledged), f"stored {sorted(rows)}")
    check(not ledger.missing(receiver.spool), ledger.missing(receiver.spool))
    for file, size in c.query(receiver.spool, "SELECT file, bytes FROM instance"):
        check(os.path.getsize(os.path.join(receiver.spool, file)) == size, f"{file}: the journal says {size}")
    named = {os.path.basename(file) for files in rows.values() for file in files}
    check(set(receiver.files("instances")) == named and not receiver.files("incoming"), receiver.files("instances"))


def test_a_sender_of_dcmtk(folder, spool, things):
    r, objects = c.Receiver(spool, things), images(12)
    paths = [os.path.join(folder, f"{obj.uid}.dcm") for obj in objects]
    for obj, path in zip(objects, paths):
        h.write_file(path, c.part10(obj))
    h.run("echoscu", "-aec", "TOMONODE", "127.0.0.1", r.port)
    check(h.send(r.port, paths) == set(paths), "not every success arrived")
    r.finish()
    check_stored(r, objects)
    check(re.search(r"association-ended .*how=released stored=12 refused=0", r.log()), r.log())
    check("TEST" not in r.log(), "patient data in the log")


def test_the_same_again_and_something_else(spool, things):
    r, (obj,), other = c.Receiver(spool, things), images(1), c.image("2.25.77000", 1000)
    send(r, [obj])
    send(r, [obj])
    check_stored(r, [obj])
    check(" stored-again " in r.log(), r.log())
    send(r, [other])
    r.finish()
    files = c.instance_rows(spool)[obj.uid]
    check([c.stored_digest(os.path.join(spool, file)) for file in files] == [obj.digest, other.digest], files)


def test_a_lost_file_is_restored(spool, things):
    """Success means that the file is there, not only its row: what was lost or cut short is taken in again."""
    r, objects = c.Receiver(spool, things), images(2)
    send(r, objects)
    (lost,), (cut,) = c.instance_rows(spool).values()
    os.unlink(os.path.join(spool, lost))
    os.truncate(os.path.join(spool, cut), 5000)
    send(r, objects)
    check_stored(r, objects)
    check(len(re.findall(" instance-restored ", r.log())) == 2, r.log())


def test_rejections(spool, things):
    r = c.Receiver(spool, things, "--check-called", "--known", "MODALITY@127.0.0.1", "--known", "ELSEWHERE@192.0.2.1",
                   "--known", "ANYWHERE")

    def answer(calling, called="TOMONODE"):
        try:
            return peer.Sender(r.port, calling=calling, called=called).release()
        except peer.Gone as e:
            return str(e)
    check(answer("MODALITY") is True and answer("ANYWHERE") is True, "a known one")
    check(answer("MODALITY", "OTHER") == "rejected: 010107", "called AE title not recognized")
    for calling in ("STRANGER", "ELSEWHERE"):
        check(answer(calling) == "rejected: 010103", f"{calling}: calling AE title not recognized")
    r.finish()
    for reason in ("requested AE title 'OTHER'", "'STRANGER' from 127.0.0.1 is not", "127.0.0.1 is not its host"):
        check(reason in r.log(), r.log())


def test_ipv6(spool, things):
    """"::" takes both families; the log says who spoke what."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        h.skip("no IPv6 here")
    r = c.Receiver(spool, things, "--bind", "::", "--known", "MODALITY@127.0.0.1")
    check(peer.echo(r.port), "IPv4")
    for host in ("::1", "127.0.0.1"):
        with socket.create_connection((host, r.port)) as s, contextlib.suppress(ConnectionResetError):
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            check(s.recv(1) == b"", f"{host}: an answer")
        wait_for(f"{host} is named", lambda name=host: f'reason="{name} does not use DICOM' in r.log())
    r.finish()


def test_the_reserve(spool, things):
    r, objects = c.Receiver(spool, things, "--reserve", str(1 << 60)), images(1)
    check(peer.store_all(r.port, objects) == ({}, {objects[0].uid: peer.OUT_OF_RESOURCES}), "not refused")
    check(peer.echo(r.port), "no C-ECHO")
    r.finish()
    check_stored(r, [])


@pytest.mark.parametrize("falls", (True, False))
def test_the_reserve_within_an_object(folder, spool, things, falls):
    """The free space falls below the reserve while an object is received: A700, no leftover, and the next one is
    stored."""
    free = os.path.join(folder, "free")

    def set_free(size):
        with open(free, "r+b" if os.path.exists(free) else "wb") as f:
            f.write(size.to_bytes(8, sys.byteorder))

    size = 40 << 20  # the space is checked every 32 MiB
    obj = c.image("2.25.78", size)
    set_free(2 << 30)
    r = c.Receiver(spool, things, "--reserve", str(1 << 30), "--free", free)
    at_byte = (size // 2, lambda: set_free((1 << 30) - 1)) if falls else None
    sender = peer.Sender(r.port, [obj], max_pdu=131072, at_byte=at_byte)
    status = sender.store(obj)
    check(status == (peer.OUT_OF_RESOURCES if falls else peer.SUCCESS), f"status {status:04X}")
    set_free(2 << 30)
    check(sender.store(obj) == peer.SUCCESS and sender.release(), "not stored with enough space")
    r.finish()
    check_stored(r, [obj])


def half_an_object(r):
    """Send half of an object, then nothing."""
    obj = c.image("2.25.99", 8 << 20)
    sender = peer.Sender(r.port, [obj])
    raw = b"".join(sender.request(obj))
    sender.put(raw[:len(raw) // 2])
    wait_for("it arrives", lambda: r.files("incoming"), 60, 0.02)
    return sender


def test_a_connection_lost_within_an_object(spool, things):
    r, objects = c.Receiver(spool, things), images(3)
    half_an_object(r).close()
    send(r, objects)
    wait_for("its end", lambda: re.search(r"association-ended .*how=cut", r.log()))
    r.finish()
    check_stored(r, objects)


def test_a_killed_association(spool, things):
    """kill -9 of the process that receives: no other association is harmed, nothing of its object counts."""
    r, objects = c.Receiver(spool, things), images(3)
    sender = half_an_object(r)
    os.kill(int(r.files("incoming")[0].split("-")[2]), signal.SIGKILL)
    with contextlib.suppress(ConnectionResetError):
        check(sender.wire.sock.recv(1) == b"", "an answer")
    sender.close()
    send(r, objects)
    r.finish()
    check(set(c.instance_rows(spool)) == {obj.uid for obj in objects}, "others are harmed")
    check("association-crashed" in r.log(), r.log())
    check(len(r.files("incoming")) == 1, "no leftover for the sweep at the next start")


def test_it_ends_with_its_node(spool, things):
    """The process that started the receiver is killed: the receiver and its associations end by themselves, at once."""
    r = c.Receiver(spool, things, "--acse", "3600")
    s = socket.create_connection(("127.0.0.1", r.port), 60)

    def children():
        return h.read_file(f"/proc/{r.pid}/task/{r.pid}/children").split()
    wait_for("a process for the association", children)
    r.process.kill()
    r.process.wait()
    check(s.recv(1) == b"", "the association's process goes on")
    wait_for("the receiver ends", lambda: not os.path.exists(f"/proc/{r.pid}"))


def test_an_end_lets_objects_end(spool, things):
    """SIGTERM in the middle of an object: it is finished and acknowledged."""
    r, obj = c.Receiver(spool, things, "--grace", "600"), c.image("2.25.99", 8 << 20)
    sender = peer.Sender(r.port, [obj], at_byte=(4 << 20, lambda: os.kill(r.pid, signal.SIGTERM)))
    check(sender.store(obj) == peer.SUCCESS and sender.release(), "not acknowledged")
    r.finish()
    check_stored(r, [obj])
