# SPDX-License-Identifier: Apache-2.0
"""Shared by the measurements of the whole node: the programs, the exams, a node and a receiver on the loopback interface.

Uses only the standard library, and DCMTK's storescp and storescu, so that the bundle (deploy/bundle.sh) runs on a bare machine:
programs and libraries are those of the bundle that contains this file, else $TOMONODE and the programs in PATH.

Both DCMTK programs run with TCP_NODELAY=1: otherwise the delays of Nagle's algorithm, which DCMTK leaves on, would be measured.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUNDLED = os.path.isfile(os.path.join(TOP, "bin", "tomonode"))
ENDED_BADLY = ("held", "failed", "dead-letter", "cancelled", "quarantined")
UID = re.compile(rb"2\.25\.[0-9]{20,39}")
FORMAT = b"2.25.187423086190561735112968317458421907734"  # the version of sinogram objects: stays
PIXEL_DATA = b"\xe0\x7f\x10\x00"
TIMES = re.compile(rb"(?:\x08\x00\x12\x00DA|\x08\x00\x13\x00TM|\x08\x00\x23\x00DA|\x08\x00\x33\x00TM|\x18\x00\x02\xa0DT)(..)", re.DOTALL)


class Trouble(Exception):
    """Raised when a measurement cannot continue."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def program():
    if BUNDLED:
        return os.path.join(TOP, "bin", "tomonode")
    return os.path.abspath(os.environ.get("TOMONODE", os.path.join(TOP, "build", "release", "tomonode")))


def dcmtk(name):
    """The command of a DCMTK program and its environment."""
    env = dict(os.environ, TCP_NODELAY="1")
    own = os.path.join(TOP, "tests", name)
    if BUNDLED and os.path.isfile(own):
        env["LD_LIBRARY_PATH"] = os.path.join(TOP, "lib") + (":" + env["LD_LIBRARY_PATH"] if env.get("LD_LIBRARY_PATH") else "")
        env["DCMDICTPATH"] = os.path.join(TOP, "share", "dcmtk", "dicom.dic")
        return own, env
    found = shutil.which(name)
    if not found:
        raise Trouble(f"there is no {name} (Debian: dcmtk)")
    return found, env


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds, step=0.02):
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise Trouble(f"after {seconds} s still not: {what}")
        time.sleep(step)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def touch_memory(folder, size):
    """Writes and removes as many bytes as will come: on a virtual machine memory is slow at its first touch."""
    path, block = os.path.join(folder, "touch"), bytes(1 << 22)
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    with open(path, "wb") as f:
        for _ in range(int(min(size, 0.8 * free)) // len(block)):
            f.write(block)
    os.unlink(path)


def without_times(path):
    """The bytes of an object (explicit VR, little endian), with zeros for the dates and times at which it was made."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    header = max(data.find(PIXEL_DATA), 0) or len(data)
    for m in TIMES.finditer(data, 0, header):
        n = int.from_bytes(m.group(1), "little")
        data[m.end():m.end() + n] = bytes(n)
    return bytes(data)


def median(values):
    values = sorted(values)
    n = len(values)
    return values[n // 2] if n % 2 else (values[n // 2 - 1] + values[n // 2]) / 2


# ---- processes ----

TICK = 1 / os.sysconf("SC_CLK_TCK")


def process_stat(pid):
    """What /proc/PID/stat says: state, parent, session, and (user, system) seconds of the process and of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        stat = f.read().rsplit(")", 1)[1].split()
    return {"state": stat[0], "parent": int(stat[1]), "session": int(stat[3]), "own": (int(stat[11]) * TICK, int(stat[12]) * TICK),
            "ended": (int(stat[13]) * TICK, int(stat[14]) * TICK)}


def all_processes():
    """{process number: process_stat()}"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found[int(pid)] = process_stat(pid)
        except OSError:  # it has ended meanwhile
            pass
    return found


def word_of(pid):
    """The word after the name of its program."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            words = f.read().split("\0")
    except OSError:
        words = []
    return words[1] if len(words) > 1 else "?"


def processes_of(session):
    """(word, process number) of all processes of a session."""
    return sorted((word_of(pid), pid) for pid, p in all_processes().items() if p["session"] == session and p["state"] != "Z")


# ---- exams ----

class Exam:
    """Simulated files; renew() makes other objects of them, in place: every UID that is made by the simulation gets other last digits."""

    def __init__(self, folder, *options, kind="dbt"):
        if not os.path.isdir(folder):  # otherwise those of an earlier measurement
            phantom = ("--phantom", "ellipsoids") if kind == "dbt" and "--phantom" not in options else ()  # as in earlier measurements
            done = subprocess.run([program(), "simulate", kind, "--json", *phantom, *options, "-o", folder], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise Trouble(f"simulate {' '.join(options)}: {done.stderr.strip()}")
        self.folder = folder
        self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".dcm"))
        self.size = sum(os.path.getsize(f) for f in self.files)
        self.places = {}  # file: where the last digits of its UIDs are
        for path in self.files:
            with open(path, "rb") as f:
                head = f.read(1 << 20)
            head = head[:head.find(PIXEL_DATA)] if PIXEL_DATA in head else head
            self.places[path] = [m.end() - 6 for m in UID.finditer(head) if m.group() != FORMAT]
            if not self.places[path]:
                raise Trouble(f"{path} has no UID of the simulation in its header")

    def renew(self, number):
        for path, places in self.places.items():
            with open(path, "r+b") as f:
                for at in places:
                    f.seek(at)
                    f.write(b"%06d" % number)


def send(port, files, timeout=600, used=None):
    """storescu, one association. When it began and when the last C-STORE response came, in seconds since 1970.

    Its processor time is appended to the list `used`."""
    command, env = dcmtk("storescu")
    began, last, said = time.time(), None, []
    with subprocess.Popen([command, "-v", "-aet", "MODALITY", "-aec", "TOMONODE", "-pdu", "131072", "-to", "10", "127.0.0.1", str(port),
                           *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as p:
        killer = threading.Timer(timeout, p.kill)
        killer.start()
        for line in p.stdout:
            if b"Received Store Response" in line:
                last = time.time()
            said.append(line[:200].decode("ascii", "replace"))
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)  # its times can be read until it is waited for
        killer.cancel()
        if used is not None:
            used.append(process_stat(p.pid)["own"])
    good = sum("Received Store Response (Success)" in line for line in said)
    if p.returncode != 0 or good != len(files):
        raise Trouble(f"storescu: code {p.returncode}, {good} of {len(files)} stored: {''.join(said[-5:])}")
    return began, last


# ---- servers ----

class Receiver:
    """storescp as the PACS, bit preserving; beside each object that is complete stands a file NAME.done. then: a further shell command."""

    def __init__(self, folder, then="true"):
        self.folder, self.port = folder, free_port()
        os.makedirs(folder)
        command, env = dcmtk("storescp")
        self.process = subprocess.Popen([command, "--fork", "-aet", "PACS", "+B", "-pdu", "131072", "-od", folder, "-xcr",
                                         f": >'#p/#f.done'; {then}", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        wait_for("the receiver listens", lambda: listens(self.port), 20)

    def complete(self):
        """Return {name: time when the object was complete}."""
        return {e.name[:-5]: e.stat().st_mtime for e in os.scandir(self.folder) if e.name.endswith(".done")}

    def settled(self, least):
        """Return whether at least `least` objects were received and all are complete."""
        names = {e.name for e in os.scandir(self.folder)}
        objects = {n for n in names if not n.endswith(".done")}
        return len(objects) >= least and all(n + ".done" in names for n in objects)

    def size(self):
        return sum(e.stat().st_size for e in os.scandir(self.folder))

    def clear(self):
        for e in os.scandir(self.folder):
            os.unlink(e.path)

    def stop(self):
        self.process.kill()
        self.process.wait()


def stop_session(process):
    """End its first process, and kill all that is left of the session after a while."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Node:
    """`tomonode serve` on a spool of its own, in a session of its own."""

    def __init__(self, folder, pacs_port, device, protocol, settings=(), extra="", kind="dbt", destination="", more=""):
        self.folder, self.spool = folder, os.path.join(folder, "spool")
        self.conf, self.log_path = os.path.join(folder, "node.conf"), os.path.join(folder, "node.log")
        self.port = free_port()
        os.makedirs(folder)
        if os.geteuid() == 0:  # a machine that is measured and thrown away
            extra += ' user = "root";'
        keys = "".join(f" {s.split('=', 1)[0]} = {s.split('=', 1)[1]};" for s in settings)
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(f'node = {{ port = {self.port}; spool = "{self.spool}"; device = "{device}"; reserve = "64 MB"; {extra} }};\n'
                    f'destinations = ( {{ name = "pacs"; aet = "PACS"; host = "127.0.0.1"; port = {pacs_port}; retry_first = 1.0;{destination} }} );\n'
                    f'protocols = ( {{ name = "{protocol}"; kind = "{kind}";{keys} }} );\n'
                    f'routes = ( {{ name = "{kind}"; kind = "{kind}"; protocols = [ "{protocol}" ]; destinations = [ "pacs" ]; }} );\n{more}')
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([program(), "serve", "-c", self.conf], stdout=log, stderr=log, start_new_session=True)
        wait_for("the node listens", lambda: listens(self.port) or self.process.poll() is not None, 60)
        if self.process.poll() is not None:
            raise Trouble(f"the node ended: {self.log_end()}")

    def log_end(self, size=2000):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-size:]

    def command(self, name, *args):
        done = subprocess.run([program(), name, "-c", self.conf, *args], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Trouble(f"tomonode {name}: code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def jobs(self):
        jobs = json.loads(self.command("list", "--json"))["jobs"]
        for job in jobs:
            if job["state"] in ENDED_BADLY:
                raise Trouble(f"job {job['id']} is {job['state']}: {job.get('reason')}\n{self.log_end()}")
        if self.process.poll() is not None:
            raise Trouble(f"the node ended: {self.log_end()}")
        return jobs

    def unassigned(self):
        return json.loads(self.command("list", "--json"))["unassigned"]

    def delivered(self, n, seconds, step=0.1):
        """Waits until n jobs are delivered; all jobs, by number."""
        def all_of_them():
            jobs = self.jobs()
            return jobs if sum(j["state"] == "delivered" for j in jobs) >= n else None
        return sorted(wait_for(f"{n} jobs delivered", all_of_them, seconds, step), key=lambda j: j["id"])

    def show(self, job):
        return json.loads(self.command("show", "--json", str(job)))

    def forget_files(self):
        """Remove the files of delivered jobs, which the node would keep until the end of their retention."""
        for part in ("instances", "outbox"):
            for root, _, files in os.walk(os.path.join(self.spool, part)):
                for name in files:
                    os.unlink(os.path.join(root, name))

    def processes(self):
        return sorted(("manager" if pid == self.process.pid else what, pid) for what, pid in processes_of(self.process.pid))

    def name_of(self, pid):
        return "manager" if pid == self.process.pid else word_of(pid)

    def stop(self):
        stop_session(self.process)


class Pilot:
    """`tomonode pilot` for a node with executor "pilots", in a session of its own. shared: it works in the node's spool."""

    def __init__(self, node, cluster_port, device, shared, name="pilot"):
        self.folder = os.path.join(node.folder, name)
        self.log_path, secret = self.folder + ".log", self.folder + ".secret"
        with open(secret, "w", encoding="ascii") as f:
            f.write(node.command("pilot-token", name))
        where = ["--spool", node.spool] if shared else ["--folder", self.folder]
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([program(), "pilot", "--node", f"127.0.0.1:{cluster_port}", "--id", name, "--name", name,
                                             "--secret-file", secret, "--device", device, *where], stdout=log, stderr=log, start_new_session=True)
        wait_for("the pilot is connected", lambda: self.says(" connected ") or self.process.poll() is not None, 120)
        if self.process.poll() is not None:
            raise Trouble(f"the pilot ended: {self.log_end()}")

    def log_end(self, size=2000):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-size:]

    def says(self, text):
        return text in self.log_end(100000)

    def processes(self):
        return processes_of(self.process.pid)

    def files(self):
        """What it keeps of cases."""
        return sorted(os.path.join(root, name) for root, _, names in os.walk(self.folder) for name in names)

    def stop(self):
        stop_session(self.process)


def work_folder(asked):
    """Return a folder on a RAM disk, if the machine has one."""
    base = asked or ("/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else "/tmp")
    path = os.path.join(base, f"tomonode-bench.{os.getpid()}")
    os.makedirs(path)
    return path


def gpu_query(*columns):
    """Rows of `nvidia-smi --query-gpu`; none where there is no such program."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(columns)}", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [[c.strip() for c in line.split(",")] for line in done.stdout.splitlines()] if done.returncode == 0 else []
