# SPDX-License-Identifier: Apache-2.0
"""The record of tests/preload/record_io.c, and what a power cut leaves of the files that were recorded.

The model of a file system is stricter than POSIX requires of a program and weaker than what ext4, XFS or btrfs give:
the bytes and the length of a file are durable after fsync() of the file, a name (new, renamed, removed) after fsync()
of its folder, and nothing else orders anything. Of what is not synced any part may survive: single pieces of 512 or
4096 bytes of a write, a length without its bytes, one half of a rename. A piece has its old or its new content; nothing
else is damaged."""
import collections
import os
import random
import struct
import sys

from tools import dicom_peer as peer
from tools import node_harness as h

HEAD = struct.Struct("=IIiiqqIIII")
FAULT = struct.Struct("=iiiiq64s")
MARK = "M"  # a record that the test wrote itself
AREAS = {"/", "journal.db", "journal.db-wal", "journal.db-journal", "incoming", "incoming/", "instances", "instances/",
         "outbox", "outbox/"}

Record = collections.namedtuple("Record", "kind process thread at size path second data")


class Recorder:
    """The record of a node that start() started."""

    def __init__(self, folder, spool):
        self.library = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "record_io.so")
        if not os.path.exists(self.library):
            h.skip("no record_io.so below TOMONODE_BUILD")
        if h.sanitizer():
            h.skip("a build with a sanitizer: its own functions are called before those of a preloaded library")
        self.path, self.spool = os.path.join(folder, "record"), os.path.realpath(spool)
        os.makedirs(self.spool, exist_ok=True)
        self.fault_path = os.path.join(folder, "fault")
        h.write_file(self.fault_path, bytes(FAULT.size))
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def start(self, node, clock):
        """Start the node, recorded, with the clock of a c.Clock."""
        clock.start(node, {"LD_PRELOAD": f"{self.library} {clock.variables['LD_PRELOAD']}", "RECORD_IO_FILE": self.path,
                           "RECORD_IO_FOLDER": self.spool, "RECORD_IO_FAULT": self.fault_path})

    def mark(self, what, text):
        """A record of the test's own, in the order of all others."""
        what, text = what.encode(), text.encode()
        os.write(self.fd, HEAD.pack(HEAD.size + len(what) + len(text), ord(MARK), 0, 0, 0, 0, len(what), len(text), 0,
                                    0) + what + text)

    def arm(self, kind, part, error, byte=0, spared=0):
        """The next write ("W") that reaches the byte, sync of a file ("S") or of a folder ("F"), of a path that
        contains `part`, fails, once. Not those of the process `spared`."""
        raw = FAULT.pack(1, error, ord(kind), spared, byte, part.encode())
        with open(self.fault_path, "r+b") as f:
            os.pwrite(f.fileno(), raw[4:], 4)
            os.pwrite(f.fileno(), raw[:4], 0)

    def armed(self):
        """Is a failure still due?"""
        with open(self.fault_path, "rb") as f:
            return struct.unpack("=i", f.read(4))[0] != 0

    def records(self):
        """All so far, with paths relative to the folder ("" is the folder itself)."""
        raw = h.read_file(self.path, "rb")
        found, at, n = [], 0, len(self.spool)
        while at < len(raw):
            size, kind, process, thread, offset, length, n_path, n_second, _, _ = HEAD.unpack_from(raw, at)
            first = at + HEAD.size
            path, second = raw[first:first + n_path].decode(), raw[first + n_path:first + n_path + n_second].decode()
            if chr(kind) != MARK:
                path, second = path[n + 1:], second[n + 1:]
            found.append(Record(chr(kind), process, thread, offset, length, sys.intern(path), second,
                                raw[first + n_path + n_second:at + size]))
            at += size
        return found


# ---- what was sent ----

class Responses:
    """Finds the responses to C-STORE with status 0000 in what the processes send: (SOP Instance UID) at the record that
    completes one."""

    def __init__(self):
        self.streams = {}

    def take(self, record):
        """The SOP Instance UIDs of the responses that end with this record."""
        key = (record.process, record.at)
        if record.kind == "n":
            if self.streams.get(key) and record.size == 0:
                self.streams[key] = self.streams[key][:-self.last]
            return []
        stream = self.streams.get(key, b"")
        if stream is None or record.size != len(record.data) or (not stream
                                                                 and record.data[:1] not in b"\1\2\3\4\5\6\7"):
            self.streams[key] = None  # an object, or no association
            return []
        self.last = len(record.data)
        stream, found, command = stream + record.data, [], b""
        while len(stream) >= 6 and len(stream) >= 6 + struct.unpack_from(">I", stream, 2)[0]:
            kind, _, n = struct.unpack_from(">BBI", stream)
            body, stream = stream[6:6 + n], stream[6 + n:]
            if kind == 4 and n > 6 and body[5] & 1:
                command = peer.read_command(body[6:])
                if command.get(0x0100) == peer.STORE_RSP and command.get(0x0900) == peer.SUCCESS:
                    found.append(command[0x1000].decode())
        self.streams[key] = stream
        return found


# ---- files and folders ----

class Node:
    """A file or folder: what is synced, and what was done to it since."""

    def __init__(self):
        self.pending, self.before = [], 0  # `before`: number of synced operations

    def total(self):
        return self.before + len(self.pending)

    def sync(self, upto):
        n = max(0, upto - self.before)
        for op in self.pending[:n]:
            self.apply(self.synced, op)
        del self.pending[:n]
        self.before += n


class File(Node):
    def __init__(self):
        super().__init__()
        self.synced, self.view = bytearray(), bytearray()
        self.copies = [None, None]  # of both as bytes, until they change

    def do(self, op):
        self.pending.append(op)
        self.apply(self.view, op)
        self.copies[1] = None

    def sync(self, upto):
        super().sync(upto)
        self.copies[0] = None

    @staticmethod
    def apply(data, op):
        at, what = op
        if at == "size":
            del data[what:]
            data.extend(bytes(what - len(data)))
        elif at == "least":
            data.extend(bytes(max(0, what - len(data))))
        else:
            data.extend(bytes(max(0, at - len(data))))
            data[at:at + len(what)] = what

    def survivor(self, share, rng):
        """Its bytes after a power cut; share: the part of what is not synced that survives."""
        if share in (0, 1):
            self.copies[share] = self.copies[share] or bytes(self.view if share else self.synced)
            return self.copies[share]
        data = bytearray(self.synced)
        step = rng.choice((512, 4096))
        for at, what in self.pending:
            if isinstance(at, str):
                if rng.random() < share:
                    self.apply(data, (at, what))
                continue
            end = at + len(what)
            while at < end:
                piece = min(end, (at // step + 1) * step)
                if rng.random() < share:
                    self.apply(data, (at, what[len(what) - (end - at):len(what) - (end - piece)]))
                elif rng.random() < share:
                    self.apply(data, ("least", piece))  # the length alone
                at = piece
        return bytes(data)


class Folder(Node):
    def __init__(self):
        super().__init__()
        self.synced, self.view = {}, {}

    def do(self, name, node):
        self.pending.append((name, node))
        self.apply(self.view, (name, node))

    @staticmethod
    def apply(entries, op):
        name, node = op
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node

    def survivor(self, share, rng):
        if share in (0, 1):
            return self.view if share else self.synced
        entries = dict(self.synced)
        for op in self.pending:
            if rng.random() < share:
                self.apply(entries, op)
        return entries


class Disk:
    """The files below the recorded folder, record by record. files: {path: bytes, or None of a folder} at the
    beginning, all synced."""

    def __init__(self, files=()):
        self.root = Folder()
        self.begun = {}  # (thread, path): the node and its operations when the sync began
        for path, data in dict(files).items():
            folder, name = self.folder_of(path)
            node = Folder() if data is None else File()
            if data:
                node.do((0, data))
                node.sync(node.total())
            folder.do(name, node)
            folder.sync(folder.total())

    def folder_of(self, path):
        node = self.root
        for name in path.split("/")[:-1]:
            node = node.view[name]
        return node, path.rsplit("/", 1)[-1]

    def find(self, path):
        node = self.root
        for name in path.split("/") if path else ():
            node = node.view.get(name) if isinstance(node, Folder) else None
        return node

    def file(self, path):
        """The file, created if it is not there."""
        node = self.find(path)
        if node is None:
            node = File()
            folder, name = self.folder_of(path)
            folder.do(name, node)
        return node

    def take(self, r):
        """Apply a record."""
        act = self.ACTS.get(r.kind)
        if act and not r.path.endswith("-shm"):  # shared memory of SQLite: made again at a start
            act(self, r)

    def opened(self, r):
        node = self.file(r.path)
        if r.at & os.O_TRUNC:
            node.do(("size", 0))

    def written(self, r):
        self.file(r.path).do((r.at, r.data))

    def truncated(self, r):
        self.file(r.path).do(("size", r.size))

    def extended(self, r):
        self.file(r.path).do(("least", r.size))

    def sync_begun(self, r):
        node = self.find(r.path)
        if node is not None:
            self.begun[r.thread, r.path] = node, node.total()

    def synced(self, r):
        node, upto = self.begun.pop((r.thread, r.path), (None, 0))
        if node is not None:
            node.sync(upto)

    def renamed(self, r):
        node = self.find(r.path)
        to, name = self.folder_of(r.second)
        to.do(name, File() if node is None else node)  # None: written by stdio
        folder, name = self.folder_of(r.path)
        folder.do(name, None)

    def removed(self, r):
        folder, name = self.folder_of(r.path)
        folder.do(name, None)

    def made(self, r):
        folder, name = self.folder_of(r.path)
        folder.do(name, Folder())

    ACTS = {"O": opened, "W": written, "T": truncated, "E": extended, "s": sync_begun, "S": synced, "R": renamed,
            "U": removed, "D": made,
            "d": removed}

    def unsynced(self):
        """The areas with operations that are not synced."""
        found = set()

        def walk(folder, path):
            if folder.pending:
                found.add(area(path))
            for name, node in folder.view.items():
                if isinstance(node, Folder):
                    walk(node, path + name + "/")
                elif node.pending:
                    found.add(area(path + name))
        walk(self.root, "")
        return found

    def survivors(self, share_of, rng):
        """{path: bytes, or None of a folder} after a power cut. share_of(path) is 0 (only what is synced), 1
        (everything), or between. A folder's share is asked for with a slash at the end: that of its names."""
        found, seen = {}, {}

        def walk(folder, path):
            for name, node in sorted(folder.survivor(share_of(path), rng).items()):
                at = path + name
                if isinstance(node, Folder):
                    found[at] = None
                    walk(node, at + "/")
                else:
                    if id(node) not in seen:
                        seen[id(node)] = node.survivor(share_of(at), rng)
                    found[at] = seen[id(node)]
        walk(self.root, "")
        return found


def area(path):
    """The part of the spool whose syncs belong together: a folder's names ("outbox/", "/" of the spool itself), or the
    files of a folder."""
    if "/" not in path:
        return path or "/"
    top = path.split("/", 1)[0]
    return top + "/" if path.endswith("/") else top


def variants(disk, rng, n):
    """(name, share of a path) of states after a cut: nothing of what is not synced, all of it, each area alone in its
    worst or best state, and n at random."""
    areas = sorted(disk.unsynced() & AREAS)
    found = [("only what is synced", lambda path: 0)]
    if areas:
        found.append(("all", lambda path: 1))
    for one in areas if len(areas) > 1 else ():
        found.append((f"all but {one}", lambda path, one=one: 0 if area(path) == one else 1))
        found.append((f"of what is not synced only {one}", lambda path, one=one: 1 if area(path) == one else 0))
    for _ in range(n if areas else 0):
        found.append(("a random part", random_shares(rng)))
    return found


def random_shares(rng):
    shares = collections.defaultdict(lambda: rng.choice((0, 0.2, 0.5, 0.8, 1)))
    return lambda path: shares[path]


def put(files, folder):
    """Write the state into a folder. The shared memory of SQLite, which no cut preserves, gets random bytes."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for path, data in files.items():
        to = os.path.join(folder, path)
        if data is None:
            os.makedirs(to, mode=0o700, exist_ok=True)
            continue
        h.write_file(to, data)
        os.chmod(to, 0o600)
    if "journal.db-wal" in files:
        with open(os.path.join(folder, "journal.db-shm"), "wb") as f:
            f.write(random.Random(len(files["journal.db-wal"])).randbytes(32768))
