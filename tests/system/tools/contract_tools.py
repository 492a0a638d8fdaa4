# SPDX-License-Identifier: Apache-2.0
"""What the tests of the contract share: exams of a few kilobytes, a look at a node from outside, and the ledger.

The contract is judged from outside: what the sender was told (the ledger) against what the spool and the archive hold
in the end. Nothing in the product knows of these tests: they look into the journal and kill, fill, freeze and cut from
without."""
import argparse
import contextlib
import errno
import hashlib
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

UID = re.compile(rb"2\.25\.[0-9]{20,39}")
PIXEL_DATA = b"\xe0\x7f\x10\x00"
CREATOR = b"\x08\0\x23\x91"  # Creator-Version UID: says what a sinogram object is
CLASS, EXPLICIT = "1.2.840.10008.5.1.4.1.1.7", "1.2.840.10008.1.2.1"  # Secondary Capture: of no exam
SMALL = ("--detector", "512x512", "--binning", "8", "--views", "3")  # three images of 10 kB


# ---- exams ----

def check_incoming(spool):
    """No object is left in incoming/. A leftover stays until the next start; the file by which the node tests the
    folder every 10 s (spool_probe()) is removed at once."""
    folder = os.path.join(spool, "incoming")
    wait_for("no leftovers in incoming/", lambda: not os.listdir(folder), 15)


class Exams:
    """One simulated exam; number(n) is the same images as another exam: every UID of the simulation gets other last
    digits. Tomosynthesis; exam_kinds.py has others."""
    name = "tomosynthesis"
    data = PIXEL_DATA  # the element of the data, behind all UIDs
    jobs = 1           # of an exam: one for each result
    slices = 1         # objects of all results

    def __init__(self, folder, *options):
        """folder: where an exam with options is made; the small ones are made once in a run of tests."""
        if options:
            self.make(folder, *options)
        else:
            folder = h.kept(type(self).__name__, self.make)
        self.raw, self.places = [], []
        for name in sorted(n for n in os.listdir(folder) if n.endswith(".dcm")):
            self.raw.append(h.read_file(os.path.join(folder, name), "rb"))
            head = self.raw[-1][:self.raw[-1].index(self.data)]
            self.places.append([m.end() - 6 for m in UID.finditer(head)
                                if head[m.start() - 8:m.start() - 4] != CREATOR])
        check(self.raw and all(self.places), f"no exam with UIDs in {folder}")

    def make(self, folder, *options):
        """Write the objects as *.dcm."""
        h.run(h.TOMONODE, "simulate", "dbt", "--phantom", "beads", *(options or SMALL), "-o", folder)

    def configure(self, node):
        """Add to a node's configuration what it needs for these exams."""

    def __len__(self):
        return len(self.raw)

    def number(self, n):
        """(Study Instance UID, objects)"""
        objects = []
        for raw, places in zip(self.raw, self.places):
            raw = bytearray(raw)
            for at in places:
                raw[at:at + 6] = b"%06d" % n
            objects.append(peer.Object(raw))
        return study_of(objects[0].data), objects


def study_of(data):
    """Study Instance UID of a data set in Explicit VR Little Endian."""
    at = data.index(b"\x20\0\x0d\0UI")
    return data[at + 8:at + 8 + struct.unpack_from("<H", data, at + 6)[0]].rstrip(b"\0").decode()


def image(uid, size, seed=0):
    """An object of `size` bytes, file head included as the node writes it, that belongs to no exam: for the
    receiver."""
    def element(group, number, vr, value):
        value = value.encode() if isinstance(value, str) else value
        value += (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
        if vr in ("OB", "OW"):
            return struct.pack("<HH2sHI", group, number, vr.encode(), 0, len(value)) + value
        return struct.pack("<HH2sH", group, number, vr.encode(), len(value)) + value

    meta = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", CLASS)
    meta += element(2, 3, "UI", uid) + element(2, 0x10, "UI", EXPLICIT)
    head = bytes(128) + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(meta))) + meta
    data = b"".join([element(8, 0x16, "UI", CLASS), element(8, 0x18, "UI", uid), element(8, 0x60, "CS", "MG"),
                     element(0x10, 0x10, "PN", "TEST"),
                     element(0x20, 0xD, "UI", "2.25.1"), element(0x20, 0xE, "UI", "2.25.2")])
    pixels = random.Random(seed).randbytes(max(2, (size - len(head) - len(data) - 12) // 2 * 2))
    return peer.Object(head + data + element(0x7FE0, 0x10, "OW", pixels))


def part10(obj):
    """The bytes of a file of it, for programs."""
    def uid(number, value):
        raw = peer.padded(value)
        return b"\2\0" + number.to_bytes(2, "little") + b"UI" + len(raw).to_bytes(2, "little") + raw
    meta = b"\2\0\1\0OB\0\0\2\0\0\0\0\1" + uid(2, obj.sop_class) + uid(3, obj.uid) + uid(0x10, obj.syntax)
    return bytes(128) + b"DICM\2\0\0\0UL\4\0" + len(meta).to_bytes(4, "little") + meta + obj.data


# ---- the ledger: what senders were told ----

class Ledger:
    def __init__(self):
        self.acknowledged = {}  # UID: digest
        self.lock = threading.Lock()

    def add(self, acknowledged):
        with self.lock:
            self.acknowledged.update(acknowledged)

    def send(self, port, objects, **options):
        """One association for what has no success yet. True: all of them have now."""
        left = [o for o in objects if o.uid not in self.acknowledged]
        done, _ = peer.store_all(port, left, **options) if left else ({}, {})
        self.add(done)
        return len(done) == len(left)

    def missing(self, spool, uids=None):
        """Acknowledged objects (all, or some) that are not on record and stored, bit for bit: why, for each."""
        rows, why = instance_rows(spool), []
        for uid in self.acknowledged if uids is None else uids:
            found = [stored_digest(os.path.join(spool, file)) for file in rows.get(uid, ())]
            if self.acknowledged[uid] not in found:
                why.append(f"{uid}: {'other bytes' if any(found) else 'no file' if uid in rows else 'no row'}")
        return why

    @staticmethod
    def check_nothing_else(spool):
        """instances/ has no file without a row, and incoming/ none at all. For a spool that no sender writes to, after
        the sweep at a start."""
        named = {os.path.basename(f) for files in instance_rows(spool).values() for f in files}
        there = set(os.listdir(os.path.join(spool, "instances")))
        check(there <= named, f"files that no row names: {sorted(there - named)[:3]}")
        check_incoming(spool)

    def check_spool(self, spool):
        missing = self.missing(spool)
        check(not missing, f"acknowledged and not stored: {missing[:3]}")
        self.check_nothing_else(spool)


def stored_digest(path):
    """Of the data set of a Part 10 file; None where there is no whole one."""
    try:
        raw = h.read_file(path, "rb")
        return hashlib.sha256(raw[144 + struct.unpack_from("<I", raw, 140)[0]:]).hexdigest()
    except (OSError, struct.error):
        return None


@contextlib.contextmanager
def journal(spool):
    """Read only: a look must not do the recovery that the node has to do."""
    db = sqlite3.connect(f"file:{spool}/journal.db?mode=ro", uri=True, timeout=60)
    try:
        yield db
    finally:
        db.close()


def query(spool, sql, *values):
    """All rows; none while there is no journal yet."""
    try:
        with journal(spool) as db:
            return db.execute(sql, values).fetchall()
    except sqlite3.OperationalError as e:
        check(any(s in str(e) for s in ("no such table", "unable to open", "readonly")), f"journal: {e}")
        return []


def instance_rows(spool):
    """UID: its files, of what retention has not removed."""
    found = {}
    sql = "SELECT sop_instance, file FROM instance WHERE id NOT IN (SELECT instance FROM removal)"
    for uid, file in query(spool, sql):
        found.setdefault(uid, []).append(file)
    return found


def removed(spool):
    """UIDs of what retention has removed."""
    sql = "SELECT sop_instance FROM instance WHERE id IN (SELECT instance FROM removal)"
    return {uid for uid, in query(spool, sql)}


def jobs_of(spool, study):
    """Numbers of the jobs of a study."""
    sql = "SELECT job FROM event WHERE name='opened' AND json_extract(detail, '$.study')=? ORDER BY job"
    return [job for job, in query(spool, sql, study)]


def events_of(spool, job):
    return [name for name, in query(spool, "SELECT name FROM event WHERE job=? ORDER BY seq", job)]


# ---- processes ----

def status_lines(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def roles(node):
    """Which processes of the node do what: {"manager": [...], "receiver": [...], "association": [...], "worker": [...],
    ...}."""
    found = {"manager": [node.session], **({"worker": node.pilot_processes()} if node.pilots else {})}
    parents, others = {}, []
    for pid in node.processes():
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                words = f.read().split("\0")
            parents[pid] = int(status_lines(pid)["PPid"])
        except (OSError, KeyError, ValueError):
            continue
        if words[1:2] == ["serve"]:
            others.append(pid)
        else:
            found.setdefault(words[1] if len(words) > 1 else "?", []).append(pid)
    for pid in others:
        if pid == node.session:
            continue
        role = "receiver" if parents[pid] == node.session else "association"
        found.setdefault(role, []).append(pid)
    return found


def kill_role(node, role):
    """kill -9 of every process that plays the role now, "all" for the whole node; the number killed, once they are
    dead."""
    victims = node.processes() if role == "all" else roles(node).get(role, [])
    if role == "all":
        os.killpg(node.session, signal.SIGKILL)
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if node.session in victims:
        node.process.wait(20)
    wait_for("they are dead", lambda: not set(victims) & set(node.processes() + node.pilot_processes()), 60, 0.001)
    return len(victims)


def start(node):
    """Until it answers; without any program of DCMTK."""
    node.start(wait=False)
    answers(node)


def answers(node):
    wait_for("the node answers C-ECHO", lambda: peer.echo(node.port) or node.process.poll() is not None, 60, 0.05)
    check(node.process.poll() is None, f"the node ended: {node.log_text()[-800:]}")


def revive(node):
    """What a service manager does: start it again where its main process is gone. True: it was."""
    if node.process.poll() is None:
        return False
    wait_for("nothing outlives the manager", lambda: not node.processes(), 60, 0.02)
    node.process = None
    start(node)
    return True


def footprint(node):
    """Of the whole node now: processes, memory (Pss, MB), descriptors, threads."""
    memory = descriptors = threads = processes = 0
    for pid in node.processes():
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                memory += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
            descriptors += len(os.listdir(f"/proc/{pid}/fd"))
            threads += int(status_lines(pid)["Threads"])
            processes += 1
        except (OSError, KeyError):
            continue  # it ended meanwhile
    return {"processes": processes, "mb": memory / 1024, "descriptors": descriptors, "threads": threads}


def resting(node, seconds=30):
    """Manager, receiver and workers, and nobody else: the footprint then, if that was so before and after it was
    taken."""
    def alone():
        found = roles(node)
        busy = set(found) & {"association", "index", "deliver", "commit"}
        return found if not busy and len(found.get("receiver", [])) == 1 else None

    def looked():
        before = alone()
        figures = before and footprint(node)
        return figures if before and alone() == before else None
    return wait_for("nobody is busy", looked, seconds)


class Watch(threading.Thread):
    """Calls `act` once, as soon as the journal has an event of that name behind the last row that was there before."""

    def __init__(self, spool, event, act):
        super().__init__(daemon=True)
        self.spool, self.event, self.act, self.done, self.ended = spool, event, act, False, False
        rows = query(spool, "SELECT COALESCE(MAX(seq), 0) FROM event")
        self.last = rows[0][0] if rows else 0
        self.start()

    def run(self):
        while not self.ended:
            with contextlib.suppress(sqlite3.Error):
                with journal(self.spool) as db:
                    while not self.ended:
                        if db.execute("SELECT 1 FROM event WHERE seq>? AND name=? LIMIT 1",
                                      (self.last, self.event)).fetchone():
                            self.act()
                            self.done = True
                            return
                        time.sleep(0.0005)
            time.sleep(0.005)

    def stop(self):
        self.ended = True
        self.join(10)


class Receiver:
    """The receiver without the rest of the node (tests/helpers/receiver_alone.c)."""

    def __init__(self, spool, things, *options):
        alone = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "receiver_alone")
        if not os.access(alone, os.X_OK):
            h.skip("no receiver_alone below TOMONODE_BUILD")
        self.spool, self.log_path = spool, spool + ".log"
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([alone, *options, spool], stdout=subprocess.PIPE, stderr=log, text=True)
        things.append(self)
        line = self.process.stdout.readline().split()
        check(len(line) == 2, f"the receiver did not start: {self.log()}")
        self.port, self.pid = map(int, line)

    def log(self):
        return h.read_file(self.log_path)

    def files(self, folder):
        return sorted(os.listdir(os.path.join(self.spool, folder)))

    def finish(self):
        with contextlib.suppress(ProcessLookupError):  # it was told before
            os.kill(self.pid, signal.SIGTERM)
        self.process.stdout.read()
        check(self.process.wait(60 * h.PATIENCE) == 0, f"it does not end well: {self.log()}")

    def stop(self):
        """What a test has left; the receiver ends with the program that started it."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


# ---- a disk that is small ----

@contextlib.contextmanager
def small_disk(path, size, *options):
    """A tmpfs of `size` bytes."""
    if os.geteuid() != 0:
        h.skip("only root may mount a tmpfs")
    os.makedirs(path, exist_ok=True)
    p = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "tmpfs", path],
                       capture_output=True, text=True)
    if p.returncode != 0:
        h.skip(f"no tmpfs can be mounted here: {p.stderr.strip()}")
    try:
        yield path
    finally:
        for _ in range(50):
            if subprocess.run(["umount", path], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", "-l", path], check=False)


def room(path):
    v = os.statvfs(path)
    return v.f_bavail * v.f_frsize


def fill(mount, left):
    """So that `left` bytes are free; left None: all of it is free again."""
    path = os.path.join(mount, "filler")
    if left is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    with open(path, "ab") as f:
        for _ in range(20):
            have = os.fstat(f.fileno()).st_size
            want = max(0, have + room(mount) - left) // 4096 * 4096
            try:
                if want > have:
                    os.posix_fallocate(f.fileno(), have, want - have)
                else:
                    f.truncate(want)
                return
            except OSError as e:  # the node has written meanwhile: measured again
                if e.errno != errno.ENOSPC:
                    raise
    raise AssertionError("the node writes faster than the disk can be filled")


class Echoes(threading.Thread):
    """C-ECHO all the time; how many, how many failed, and the slowest."""

    def __init__(self, port, pause=0.05):
        super().__init__(daemon=True)
        self.port, self.pause, self.n, self.failed, self.slowest, self.ended = port, pause, 0, 0, 0.0, False
        self.start()

    def run(self):
        while not self.ended:
            began = time.monotonic()
            self.failed += not peer.echo(self.port)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.n += 1
            time.sleep(self.pause)

    def stop(self):
        self.ended = True
        self.join(30)
        check(self.n > 0 and self.failed == 0, f"{self.failed} of {self.n} C-ECHOs were not answered")
        return self


# ---- the clock ----

class Clock:
    """The wall clock of the node; set() while it runs."""

    def __init__(self, folder):
        library = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "clock_offset.so")
        if not os.path.exists(library):
            h.skip("no clock_offset.so below TOMONODE_BUILD")
        self.path = os.path.join(folder, "clock")
        self.set(0)
        self.variables = {"LD_PRELOAD": library, "CLOCK_OFFSET_FILE": self.path,
                          "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def set(self, seconds):
        mode = "r+b" if os.path.exists(self.path) else "wb"
        with open(self.path, mode) as f:
            f.write(struct.pack("=q", int(seconds)))

    def start(self, node, more=()):
        """more: further variables of its environment."""
        variables = {**self.variables, **dict(more)}
        old = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            node.start(wait=False)
        finally:
            for name, value in old.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        answers(node)


# ---- running ----

def arguments(**values):
    """What the environment says of the long form of a test (tests/soak.sh): TOMONODE_MINUTES, and each value that the
    test names (`kills`: TOMONODE_KILLS), else its default. (options, the random numbers of this test, whose seed is
    printed so that it can be run again)"""
    found = argparse.Namespace(minutes=float(os.environ.get("TOMONODE_MINUTES") or 0))
    for name, default in values.items():
        setattr(found, name, type(default)(os.environ.get("TOMONODE_" + name.upper()) or default))
    seed = h.seed()
    print(f"seed {seed}", flush=True)
    return found, random.Random(seed)


def until(minutes):
    """A function that says whether the time is over; minutes 0: it never is."""
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    return lambda: time.monotonic() > end


@contextlib.contextmanager
def scratch():
    """(folder, things) for a script, as the fixtures of conftest.py are for a test."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    folder, things = tempfile.mkdtemp(prefix="tomonode-soak-"), []
    try:
        yield folder, things
    except AssertionError:
        print("".join(thing.log_text()[-3000:] for thing in things if isinstance(thing, h.Node)))
        raise
    finally:
        for thing in things:
            thing.end() if isinstance(thing, h.Node) else thing.stop()
        shutil.rmtree(folder, ignore_errors=True)


def print_table(title, rows):
    print(f"\n{title}")
    width = max((len(str(name)) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"  {str(name):<{width}}  {value}")
    print(flush=True)
