#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The receiver against DCMTK's own senders (storescu, echoscu) and one that stops within an object, without the rest of the node.

Parallel associations, one association per image, rejections, a full disk, a frozen sender, a killed association, the reserve,
identical and different objects under one UID, and the receiver's end: each with the set that was acknowledged compared to the set
that is stored and on record.
"""
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback

from tools import node_harness
from tools.dicom_peer import Object, Sender

SKIP = 77
BUILD = os.environ.get("TOMONODE_BUILD", "")
ALONE = os.path.join(BUILD, "tests", "receiver_alone")
CLASS = "1.2.840.10008.5.1.4.1.1.1.2.1"
EXPLICIT = "1.2.840.10008.1.2.1"


def element(group, elem, vr, value):
    if isinstance(value, str):
        value = value.encode()
    if len(value) % 2:
        value += b"\0" if vr == "UI" else b" "
    head = group.to_bytes(2, "little") + elem.to_bytes(2, "little") + vr.encode()
    if vr in ("OB", "OW"):
        return head + b"\0\0" + len(value).to_bytes(4, "little") + value
    return head + len(value).to_bytes(2, "little") + value


def object_bytes(uid, pixels):
    """The bytes of a Part 10 file; `pixels` are its pixel bytes."""
    side = 2 if len(pixels) < 100000 else 1024
    data = b"".join([
        element(8, 0x16, "UI", CLASS), element(8, 0x18, "UI", uid), element(8, 0x60, "CS", "MG"),
        element(0x10, 0x10, "PN", "TEST"), element(0x10, 0x20, "LO", "T"), element(0x20, 0xD, "UI", "2.25.1"),
        element(0x20, 0xE, "UI", "2.25.2"), element(0x20, 0x13, "IS", "1"),
        element(0x28, 2, "US", (1).to_bytes(2, "little")), element(0x28, 4, "CS", "MONOCHROME2"),
        element(0x28, 0x10, "US", (len(pixels) // 2 // side).to_bytes(2, "little")),
        element(0x28, 0x11, "US", side.to_bytes(2, "little")), element(0x28, 0x100, "US", (16).to_bytes(2, "little")),
        element(0x28, 0x101, "US", (16).to_bytes(2, "little")), element(0x28, 0x102, "US", (15).to_bytes(2, "little")),
        element(0x28, 0x103, "US", (0).to_bytes(2, "little")), element(0x7FE0, 0x10, "OW", pixels)])
    meta = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", CLASS) + element(2, 3, "UI", uid) + element(2, 0x10, "UI", EXPLICIT)
    return bytes(128) + b"DICM" + element(2, 0, "UL", len(meta).to_bytes(4, "little")) + meta + data


def make_object(path, uid, pixels):
    """Write it as a file; returns its data set."""
    raw = object_bytes(uid, pixels)
    with open(path, "wb") as f:
        f.write(raw)
    return Object(raw).data


class Receiver:
    running = []

    def __init__(self, spool, *options):
        self.spool = spool
        self.log_path = spool.rstrip("/") + ".log"
        self.log_file = open(self.log_path, "w")
        self.process = subprocess.Popen([ALONE, *options, spool], stdout=subprocess.PIPE, stderr=self.log_file, text=True)
        Receiver.running.append(self)
        line = self.process.stdout.readline().split()
        assert len(line) == 2, f"the receiver did not start: {open(self.log_path).read()}"
        self.port, self.pid = int(line[0]), int(line[1])

    def log(self):
        return open(self.log_path).read()

    def wait_log(self, pattern, seconds=60):
        until = time.time() + seconds
        while time.time() < until:
            if re.search(pattern, self.log()):
                return
            time.sleep(0.05)
        raise AssertionError(f"nothing like {pattern!r} in the log:\n{self.log()}")

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        self.process.stdout.read()
        assert self.process.wait(20) == 0, self.log()
        self.log_file.close()

    def rows(self):
        path = os.path.join(self.spool, "journal.db")
        if not os.path.exists(path):
            return []
        db = sqlite3.connect(path)
        try:
            return db.execute("select sop_instance, file, bytes, calling, association from instance").fetchall()
        except sqlite3.OperationalError as e:
            assert "no such table" in str(e)  # the disk was full before the journal was made
            return []
        finally:
            db.close()

    def stored(self):
        """SOP instance UID -> data set, for each row; row and file must agree, and there may be no other file."""
        result = {}
        for uid, file, size, _, _ in self.rows():
            path = os.path.join(self.spool, file)
            raw = open(path, "rb").read()
            assert len(raw) == size, f"{file}: {len(raw)} bytes, the journal says {size}"
            assert raw[128:132] == b"DICM"
            result.setdefault(uid, []).append(raw[144 + int.from_bytes(raw[140:144], "little"):])
        names = {os.path.basename(row[1]) for row in self.rows()}
        found = set(os.listdir(os.path.join(self.spool, "instances")))
        assert found == names, f"files without a row: {found - names}; rows without a file: {names - found}"
        return result

    def leftovers(self):
        return os.listdir(os.path.join(self.spool, "incoming"))


def storescu(port, *files, aec="TOMONODE", aet="MODALITY", extra=()):
    return ["storescu", "-v", *extra, "-aet", aet, "-aec", aec, "127.0.0.1", str(port), *files]


def echo(port, aec="TOMONODE", aet="MODALITY", timeout=20):
    r = subprocess.run(["echoscu", "-v", "-aet", aet, "-aec", aec, "127.0.0.1", str(port)], capture_output=True, text=True,
                       timeout=timeout)
    return r.returncode, r.stdout + r.stderr


def send(*args, timeout=60, **kw):
    r = subprocess.run(storescu(*args, **kw), capture_output=True, text=True, timeout=timeout)
    return r.returncode, r.stdout + r.stderr


class Tests:
    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        self.files, self.data = [], {}
        for i in range(12):
            uid = f"2.25.77{i:03d}"
            path = f"{folder}/o{i:02d}.dcm"
            self.data[uid] = make_object(path, uid, rng.randbytes(60000 + 2000 * i))
            self.files.append(path)

    def spool(self, name):
        return os.path.join(self.folder, name)

    def expect_all(self, r, data):
        stored = r.stored()
        assert set(stored) == set(data), f"stored {sorted(stored)}, sent {sorted(data)}"
        for uid, sets in stored.items():
            assert sets == [data[uid]], f"{uid}: the data set is not the sender's, bit for bit"
        assert r.leftovers() == [], f"left in incoming: {r.leftovers()}"

    def test_echo_and_store(self):
        r = Receiver(self.spool("plain"))
        assert echo(r.port)[0] == 0
        code, text = send(r.port, *self.files)
        assert code == 0, text
        assert text.count("Received Store Response (Success)") == len(self.files), text
        r.stop()
        self.expect_all(r, self.data)
        assert re.search(r"association-ended .*how=released stored=12 refused=0", r.log()), r.log()
        assert "TEST" not in r.log(), "patient data in the log"

    def test_parallel(self):
        r = Receiver(self.spool("parallel"))
        senders = [subprocess.Popen(storescu(r.port, *self.files[i::6]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in range(6)]
        said = [s.communicate(timeout=60)[0] for s in senders]
        for sender, text in zip(senders, said):
            assert sender.returncode == 0, f"exit code {sender.returncode}: {text[-600:]} {r.log()[-600:]}"
        r.stop()
        self.expect_all(r, self.data)
        associations = {row[4] for row in r.rows()}
        assert len(associations) == 6, associations

    def test_one_association_per_image(self):
        r = Receiver(self.spool("each"))
        for path in self.files:
            assert send(r.port, path)[0] == 0
        r.stop()
        self.expect_all(r, self.data)
        assert len({row[4] for row in r.rows()}) == len(self.files)

    def test_again_and_different(self):
        r = Receiver(self.spool("again"))
        uid = "2.25.77000"
        assert send(r.port, self.files[0])[0] == 0
        assert send(r.port, self.files[0])[0] == 0
        self.expect_all(r, {uid: self.data[uid]})
        other = make_object(f"{self.folder}/other.dcm", uid, bytes(1000))
        assert send(r.port, f"{self.folder}/other.dcm")[0] == 0
        r.stop()
        assert r.stored()[uid] == [self.data[uid], other]
        assert " stored-again " in r.log()

    def test_lost_file_is_restored(self):
        """Success means that the file is there, not only its row: what was lost or cut short is taken in again."""
        r = Receiver(self.spool("lost"))
        sent = {"2.25.77000": self.data["2.25.77000"], "2.25.77001": self.data["2.25.77001"]}
        assert send(r.port, *self.files[:2])[0] == 0
        lost, cut = (os.path.join(r.spool, row[1]) for row in r.rows())
        os.unlink(lost)
        os.truncate(cut, 5000)
        assert send(r.port, *self.files[:2])[0] == 0
        self.expect_all(r, sent)
        assert len(r.rows()) == 2
        assert len(re.findall(" instance-restored ", r.log())) == 2
        r.stop()

    def test_rejections(self):
        r = Receiver(self.spool("reject"), "--check-called", "--known", "MODALITY@127.0.0.1", "--known", "ELSEWHERE@192.0.2.1",
                     "--known", "ANYWHERE")
        assert echo(r.port)[0] == 0
        assert echo(r.port, aet="ANYWHERE")[0] == 0
        code, text = echo(r.port, aec="OTHER")
        assert code != 0 and "Called AE Title Not Recognized" in text, text
        for aet in ("STRANGER", "ELSEWHERE"):
            code, text = echo(r.port, aet=aet)
            assert code != 0 and "Calling AE Title Not Recognized" in text, text
        r.stop()
        for reason in ("requested AE title 'OTHER'", "'STRANGER' from 127.0.0.1 is not that of a configured peer", "127.0.0.1 is not its host"):
            assert reason in r.log(), r.log()

    def test_ipv6(self):
        """"::" takes both families; the log says who spoke what."""
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            return "no IPv6 here"
        r = Receiver(self.spool("ipv6"), "--bind", "::", "--known", "MODALITY@127.0.0.1")
        assert echo(r.port)[0] == 0
        for host in ("::1", "127.0.0.1"):
            with socket.create_connection((host, r.port)) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                try:
                    assert s.recv(1) == b""
                except ConnectionResetError:
                    pass  # closed with what we sent unread
            r.wait_log(rf'reason="{host} does not use DICOM')
        r.stop()
        return None

    def test_tls_on_the_plain_port(self):
        r = Receiver(self.spool("tls"))
        with socket.create_connection(("127.0.0.1", r.port)) as s:
            s.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32))
            try:
                assert s.recv(1) == b""
            except ConnectionResetError:
                pass
        r.wait_log("TLS handshake, but this port uses plain DICOM")
        r.stop()

    def test_too_many(self):
        r = Receiver(self.spool("many"), "--max-associations", "2", "--acse", "30")
        held = [socket.create_connection(("127.0.0.1", r.port)) for _ in range(2)]
        until = time.time() + 25  # the two are in the queue of the listener for a while
        while (answer := echo(r.port))[0] == 0:
            assert time.time() < until
        assert "Local Limit Exceeded" in answer[1] and "Transient" in answer[1], answer[1]
        for s in held:
            s.close()
        r.wait_log(r"without sending anything.*\n(.*\n)*.*without sending anything")
        until = time.time() + 60  # the places are free once the listener has reaped the two
        while echo(r.port)[0] != 0:
            assert time.time() < until
        r.stop()

    def test_reserve(self):
        r = Receiver(self.spool("reserve"), "--reserve", str(1 << 60))
        code, text = send(r.port, self.files[0])
        assert code != 0 and "OutOfResources" in text, text
        assert echo(r.port)[0] == 0
        r.stop()
        assert r.rows() == [] and r.leftovers() == []

    def test_reserve_within_an_object(self):
        """The free space falls below the reserve while an object is received: A700, no leftover, and the next one is stored."""
        free = os.path.join(self.folder, "free")

        def set_free(size):
            with open(free, "r+b" if os.path.exists(free) else "wb") as f:
                f.write(size.to_bytes(8, sys.byteorder))

        size = 40 << 20  # the space is checked every 32 MiB
        obj = Object(object_bytes("2.25.78", bytes(size)))
        for falls in (True, False):
            set_free(2 << 30)
            r = Receiver(self.spool(f"within-{falls}"), "--reserve", str(1 << 30), "--free", free)
            sender = Sender(r.port, [obj], max_pdu=131072, at_byte=(size // 2, lambda: set_free((1 << 30) - 1)) if falls else None)
            status = sender.store(obj)
            assert status == (0xA700 if falls else 0), f"the space falls: {falls}: status {status:04X}"
            set_free(2 << 30)
            assert sender.store(obj) == 0 and sender.release()
            r.stop()
            assert r.leftovers() == [] and {uid: len(sets) for uid, sets in r.stored().items()} == {"2.25.78": 1}

    def full_at(self, uid_of, limits):
        for limit in limits:
            path = self.spool("limit")
            shutil.rmtree(path, ignore_errors=True)
            r = Receiver(path, "--file-limit", str(limit), "--dimse", "5")
            code, text = send(r.port, self.files[0], timeout=20)
            assert "OutOfResources" in text, f"limit {limit}: {text}"
            assert echo(r.port, timeout=10)[0] == 0
            r.stop()
            assert r.leftovers() == [], f"limit {limit}"
            assert [row for row in r.rows() if row[0] == uid_of] == []

    def test_file_limit(self):
        """A write that fails, at many offsets of the object and in its last bytes. The journal is larger than the smallest limits:
        then it is the journal that fails, with the same outcome."""
        size = os.path.getsize(self.files[0])
        self.full_at("2.25.77000", [1, 130, 5000, 40000, size - 4096, size - 100, size - 2, size - 1])

    def test_full_disk(self):
        """A disk that is full: a small tmpfs. Work goes on when space returns."""
        if os.geteuid() != 0:
            return "needs root for a tmpfs"
        mount = self.spool("disk")
        os.makedirs(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", mount], capture_output=True).returncode != 0:
            return "no tmpfs can be mounted here"
        try:
            spool = os.path.join(mount, "spool")
            r = Receiver(spool, "--dimse", "5")
            assert send(r.port, self.files[0])[0] == 0  # the journal is there now
            for left in range(0, 250000, 8192):
                blocks = os.statvfs(mount)
                fill = blocks.f_bavail * blocks.f_bsize - left
                with open(f"{mount}/filler", "wb") as f:
                    f.write(bytes(max(fill, 0)))
                code, text = send(r.port, self.files[5], timeout=20)
                acknowledged = "Received Store Response (Success)" in text
                assert acknowledged or "OutOfResources" in text, f"{left} bytes left: {text}"
                assert echo(r.port, timeout=10)[0] == 0
                os.unlink(f"{mount}/filler")
                uids = {row[0] for row in r.rows()}
                assert ("2.25.77005" in uids) == acknowledged, f"{left} bytes left"
                assert r.leftovers() == [], f"{left} bytes left"
                if acknowledged:
                    break
            else:
                raise AssertionError("it never had space enough")
            assert left > 60000, left
            assert send(r.port, self.files[1])[0] == 0
            r.stop()
            uids = {f"2.25.77{i:03d}" for i in (0, 1, 5)}
            self.expect_all(r, {u: self.data[u] for u in uids})
        finally:
            time.sleep(0.2)
            subprocess.run(["umount", "-l", mount], check=False)
        return None

    def half_an_object(self, r):
        """Send half of an object, then nothing."""
        obj = Object(object_bytes("2.25.99", bytes(8 << 20)))
        sender = Sender(r.port, [obj])
        raw = b"".join(sender.request(obj))
        sender.put(raw[:len(raw) // 2])
        until = time.time() + 60
        while not os.listdir(os.path.join(r.spool, "incoming")):
            assert time.time() < until
            time.sleep(0.02)
        return sender

    def test_frozen_sender(self):
        r = Receiver(self.spool("frozen"), "--dimse", "2", "--acse", "2")
        sender = self.half_an_object(r)
        assert send(r.port, *self.files)[0] == 0  # the others go on meanwhile
        r.wait_log(r"association-ended .*how=timeout")
        sender.close()
        r.stop()
        self.expect_all(r, self.data)

    def test_killed_association(self):
        """kill -9 of the process that receives: no other association is harmed, nothing of its object counts."""
        r = Receiver(self.spool("killed"))
        sender = self.half_an_object(r)
        child = int(os.listdir(os.path.join(r.spool, "incoming"))[0].split("-")[2])
        os.kill(child, signal.SIGKILL)
        try:
            assert sender.wire.sock.recv(1) == b""
        except ConnectionResetError:
            pass
        sender.close()
        assert send(r.port, *self.files)[0] == 0
        r.stop()
        assert set(r.stored()) == set(self.data)
        assert "association-crashed" in r.log()
        assert len(r.leftovers()) == 1  # for the sweep at the next start

    def test_ends_with_its_node(self):
        """The process that started the receiver is killed: the receiver and its associations end by themselves."""
        r = Receiver(self.spool("orphan"))
        s = socket.create_connection(("127.0.0.1", r.port))
        until = time.time() + 60
        while not open(f"/proc/{r.pid}/task/{r.pid}/children").read().split():
            assert time.time() < until, "no process for the association"
            time.sleep(0.02)
        r.process.kill()
        r.process.wait()
        s.settimeout(20)  # less than the time after which a silent association ends by itself
        assert s.recv(1) == b""  # the association's process is gone
        until = time.time() + 60
        while os.path.exists(f"/proc/{r.pid}"):
            assert time.time() < until, "the receiver outlived its node"
            time.sleep(0.1)

    def test_stop_lets_objects_end(self):
        """SIGTERM while an object arrives: it is finished and acknowledged."""
        r = Receiver(self.spool("stop"), "--grace", "20")
        big = f"{self.folder}/big.dcm"
        data = make_object(big, "2.25.99", self.rng.randbytes(1 << 20) * 60)
        p = subprocess.Popen(storescu(r.port, big), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        incoming = os.path.join(r.spool, "incoming")
        until = time.time() + 60
        while not os.listdir(incoming) and p.poll() is None:
            assert time.time() < until
        r.stop()
        assert p.wait(10) == 0
        self.expect_all(r, {"2.25.99": data})


def main():
    if not os.access(ALONE, os.X_OK):
        print("skipped: no receiver_alone below TOMONODE_BUILD")
        return SKIP
    if not shutil.which("storescu") or not shutil.which("echoscu"):
        print("skipped: needs DCMTK's storescu and echoscu")
        return SKIP
    seed = node_harness.seed()
    names = node_harness.selected([n for n in dir(Tests) if n.startswith("test_")], sys.argv[1:])
    print(f"seed {seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="test_receive.")
    failed = 0
    try:
        t = Tests(folder, random.Random(seed))
        for name in names:
            began = time.time()
            try:
                note = getattr(t, name)()
                print(f"skipped: {name}: {note}" if note else f"ok   {name} ({time.time() - began:.1f} s)", flush=True)
            except Exception as e:  # each test is reported, then the next one runs
                failed += 1
                line = traceback.extract_tb(e.__traceback__)[-1].lineno
                print(f"FAIL {name}: {type(e).__name__} in line {line}: {e}", flush=True)
            for r in Receiver.running:
                r.process.kill()  # what a failed test left; its receiver ends with it
                r.process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
