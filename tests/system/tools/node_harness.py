# SPDX-License-Identifier: Apache-2.0
"""A tomonode, a PACS and a sender on the loopback, for the system tests. Everything lives in one folder and is stopped
at the end.

The exam is small (simulated at an eighth of the detector's resolution), so that what is tested is the node, not the
reconstruction. """
import atexit
import contextlib
import ctypes.util
import fcntl
import functools
import hashlib
import io
import json
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
import urllib.request

TOMONODE = os.environ.get("TOMONODE", "tomonode")
EXECUTOR = os.environ.get("TOMONODE_EXECUTOR") or "local"  # of all nodes that do not choose one: "local" or "slurm"
TIER = int(os.environ.get("TOMONODE_TIER") or 1)  # 1: what runs on every commit; 2: everything


class Skipped(Exception):
    """A test needs something that this machine does not have; the sentence says what. Raised before anything is
    tested."""


def skip(reason):
    """This machine cannot run the test, or the module that is being imported."""
    if "pytest" in sys.modules:
        sys.modules["pytest"].skip(reason, allow_module_level=True)
    print(f"skipped: {reason}")
    sys.exit(77)


def seed():
    """The seed of a test's random numbers: TOMONODE_TEST_SEED, a number, or "random" for another one in each run; 1
    without it."""
    text = os.environ.get("TOMONODE_TEST_SEED") or "1"
    return random.SystemRandom().randrange(1 << 31) if text == "random" else int(text)


def need(*programs):
    """Skip where a program is missing, and say which."""
    for program in programs:
        if not (os.path.isfile(program) and os.access(program, os.X_OK)) and not shutil.which(program):
            skip(f"{program} is not installed")


def sanitizer():
    """What the program is built with: "thread", "address", or nothing. Its memory says nothing then."""
    path = shutil.which(TOMONODE)
    if path:
        with open(path, "rb") as f:
            text = f.read()
        for name in ("thread", "address"):
            if f"__{name[0]}san_init".encode() in text:
                return name
    return ""


@functools.cache
def leak_sanitizer():
    """An environment in which a command that loses memory says where, and ends with exit code 23. Empty where that is not
    possible: no library of GCC, a kernel that does not let a process trace itself, another sanitizer in the program."""
    known = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lsan.supp")
    env = {"LD_PRELOAD": ctypes.util.find_library("lsan") or "",
           "LSAN_OPTIONS": f"exitcode=23:print_suppressions=0:suppressions={known}"}
    lost = "import ctypes; ctypes.CDLL(None).malloc(1 << 20)"
    codes = [subprocess.run(words, env={**os.environ, **env}, capture_output=True, check=False).returncode
             for words in (["true"], ["/usr/bin/python3", "-c", lost])]
    return env if codes == [0, 23] and not sanitizer() else {}


# How many times longer than usual may things take before they count as never.
PATIENCE = {"thread": 5, "address": 2}.get(sanitizer(), 1)


def as_whom():
    """For a configuration: a node that root starts must be told that it may stay root."""
    return 'user = "root";' if os.geteuid() == 0 else ""


# Those that this process may use: below those that the kernel gives to outgoing connections, which could take the port
# of a server that is down. Without the default ports of a node: a configuration that leaves them out would name itself.
ports = [port for port in range(10240, 32768) if port not in (11112, 11180)]


@functools.lru_cache(maxsize=None)
def lock_of_ports():
    """A file whose byte N is locked by the test that was given port N. Such locks end with their process, and with the
    first close."""
    return os.open(os.path.join(tempfile.gettempdir(), f"tomonode-test-ports-{os.getuid()}"), os.O_RDWR | os.O_CREAT
                   | os.O_CLOEXEC, 0o600), set()


def free_port():
    """One that no other test was given, in this process or another, although nobody may be listening there yet, or
    ever."""
    lock, given = lock_of_ports()
    while True:
        port = random.SystemRandom().choice(ports)
        if port in given:
            continue
        with contextlib.suppress(OSError), socket.socket() as s:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            given.add(port)
            s.bind(("127.0.0.1", port))
            return port


def open_files(pid):
    """Names of the files, sockets and pipes that a process has open, by descriptor."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return found


def read_file(path, mode="r"):
    """Text of UTF-8; "rb": bytes."""
    with open(path, mode, encoding=None if "b" in mode else "utf-8") as f:
        return f.read()


def write_file(path, contents):
    """Text or bytes."""
    with open(path, "wb") as f:
        f.write(contents.encode() if isinstance(contents, str) else contents)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_for(what, condition, seconds=60, step=None):
    """Until condition() gives something true; its value is returned. seconds: much more than a busy machine needs; less
    only where the time itself is tested, or where a longer wait would let something else make it true. step: s between
    two looks; without it they become rarer, because most of them start a program."""
    seconds *= PATIENCE
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        check(waited < seconds, f"after {seconds} s still not: {what}")
        time.sleep(step or min(0.5, max(0.05, 0.15 * waited)))


def echo(port, called):
    """Is C-ECHO answered? Asked many times a test, so without a program of DCMTK."""
    from tools import dicom_peer
    try:
        sender = dicom_peer.Sender(port, calling="ECHOSCU", called=called, timeout=60)
        return sender.echo() == dicom_peer.SUCCESS and sender.release()
    except (dicom_peer.Gone, OSError):
        return False


checked = set()  # commands without their paths and numbers


def run(*args, code=0, timeout=120, **kwargs):
    """Of the program, its loss of memory is an exit code, too: of each kind of command the first time that it is to succeed, for
    LeakSanitizer doubles the time of a short command, and whenever it is to fail."""
    kind = tuple(a for a in map(str, args) if not re.search(r"[/0-9]", a))
    if args[0] == TOMONODE and "LD_PRELOAD" not in kwargs.get("env", ()) and (code != 0 or kind not in checked):
        kwargs["env"] = {**kwargs.get("env", os.environ), **leak_sanitizer()}
        checked.add(kind)
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=timeout * PATIENCE, **kwargs)
    check(code is None or p.returncode == code,
          f"{' '.join(map(str, args))}: code {p.returncode}, not {code}: {p.stdout[-800:]}{p.stderr[-800:]}")
    return p


class Pacs:
    """DCMTK's storescp: one file for each object it is sent, so that a second delivery shows."""

    def __init__(self, folder, port=None):
        self.folder = folder
        self.port = port or free_port()
        self.process = None
        os.makedirs(folder, exist_ok=True)

    def start(self, *options):
        self.process = subprocess.Popen(["storescp", "-aet", "PACS", "-od", self.folder, "+uf", *options,
                                         str(self.port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the PACS listens", lambda: self.echo() or self.process.poll() is not None)
        check(self.process.poll() is None, "storescp ended")

    def echo(self):
        return echo(self.port, "PACS")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def files(self):
        return sorted(os.path.join(self.folder, f) for f in os.listdir(self.folder))

    def objects(self):
        """SOP Instance UID -> how many times it came."""
        import pydicom
        count = {}
        for f in self.files():
            uid = pydicom.dcmread(f, stop_before_pixels=True).SOPInstanceUID
            count[uid] = count.get(uid, 0) + 1
        return count


class Orthanc:
    """A real PACS, asked by REST what it holds. `tomonode`: the port of a node it shall report storage commitments to;
    `plugins`: their files, with DICOMweb at /dicom-web."""

    def __init__(self, folder, tomonode=None, plugins=()):
        self.folder = folder
        self.port, self.http = free_port(), free_port()
        self.process = None
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "orthanc.json"), "w") as f:
            json.dump({"Name": "PACS", "StorageDirectory": folder, "IndexDirectory": folder, "DicomAet": "PACS",
                       "DicomPort": self.port,
                       "HttpPort": self.http, "RemoteAccessAllowed": False, "AuthenticationEnabled": False,
                       "DicomAlwaysAllowStore": True,
                       "DicomCheckCalledAet": False, "Plugins": list(plugins), "DicomWeb": {"Root": "/dicom-web/"},
                       "DicomModalities": {"tomonode": ["TOMONODE", "127.0.0.1", tomonode]} if tomonode else {}}, f)

    def start(self):
        with open(os.path.join(self.folder, "log"), "w") as log:
            self.process = subprocess.Popen(["Orthanc", os.path.join(self.folder, "orthanc.json")], stdout=log,
                                            stderr=log)
        wait_for("Orthanc answers", lambda: self.get("/system") or self.process.poll() is not None)
        with open(os.path.join(self.folder, "log")) as log:
            check(self.process.poll() is None, f"Orthanc ended: {log.read()[-800:]}")

    def get(self, path, post=None, read=json.load):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", post, timeout=60) as r:
                return read(r)
        except OSError:
            return None

    def data_sets(self):
        """SOP Instance UID -> the object as Orthanc returns it."""
        import pydicom
        found = [pydicom.dcmread(io.BytesIO(self.get(f"/instances/{i}/file", read=lambda r: r.read())))
                 for i in self.get("/instances")]
        return {d.SOPInstanceUID: d for d in found}

    def objects(self):
        """Study Instance UID -> the SOP Instance UIDs in it."""
        found = {}
        for i in self.get("/instances"):
            tags = self.get(f"/instances/{i}/simplified-tags")
            found.setdefault(tags["StudyInstanceUID"], []).append(tags["SOPInstanceUID"])
        return found

    def objects_of(self, study):
        """The SOP Instance UIDs of a study; None: it does not answer."""
        found = self.get("/tools/lookup", study.encode())
        if found is None:
            return None
        instances = [i for s in found if s["Type"] == "Study" for i in self.get(f"/studies/{s['ID']}/instances") or ()]
        return {i["MainDicomTags"]["SOPInstanceUID"] for i in instances}

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


@functools.cache
def slurm():
    """The cluster of this program, for EXECUTOR "slurm"."""
    from tools.slurm_tools import Slurm, need_slurm
    need_slurm()
    cluster = Slurm(tempfile.mkdtemp(prefix="tomonode-slurm-"), 6)
    atexit.register(cluster.stop)
    cluster.start()
    os.environ["SLURM_CONF"] = cluster.conf
    return cluster


def node_and_pacs(folder, things, **node):
    """Neither is started."""
    pacs = Pacs(os.path.join(folder, "pacs"))
    n = Node(os.path.join(folder, "node"), pacs.port, **node)
    things += [n, pacs]
    return n, pacs


def with_exam(folder, things, **node):
    """A node and its PACS, which run, and an exam of nine projections: enough where the image does not matter."""
    n, pacs = node_and_pacs(folder, things, **node)
    pacs.start()
    n.start()
    return n, pacs, simulate(os.path.join(folder, "exam"), "--views", 9)


class Node:
    """`tomonode serve` in a session of its own, so that all of it can be killed at once."""

    def __init__(self, folder, pacs_port, **node):
        self.folder = folder
        self.spool = os.path.join(folder, "spool")
        self.conf = os.path.join(folder, "node.conf")
        self.log_path = os.path.join(folder, "node.log")
        self.port = free_port()
        self.pacs_port = pacs_port
        self.node = {**({"user": '"root"'} if os.geteuid() == 0 else {}), "quiet_time": 1.5, "reserve": '"1 MB"',
                     "device": '"cpu"', **node}
        self.protocol = {"algorithm": '"osem"', "iterations": 1, "voxel": 0.0, "slice_spacing": 5.0}
        self.destination = {"retry_first": 0.3, "retry_cap": 2.0, "connect_timeout": 30, "acse_timeout": 30,
                            "dimse_timeout": 60}
        self.status = {"enabled": "false"}  # each test's port would have to be its own
        self.more_destinations = self.more_protocols = self.more_routes = ""  # texts that begin with a comma
        self.protocols, self.destinations = ["quick"], ["pacs"]  # of the route
        self.more = ""  # further lists
        self.alerts = ""  # their section, see webhook.py
        # with EXECUTOR "slurm" their sections: as many pilots as it would have devices; the account names their jobs
        self.pilots = ""
        if EXECUTOR == "slurm" and "executor" not in node:
            slurm()  # now: later the environment may have a preload for the node
            self.node["executor"], self.cluster_port, count = '"slurm"', free_port(), self.node["device"].count(",") + 1
            self.pilots = (f'cluster = {{ bind = "127.0.0.1"; port = {self.cluster_port}; advertise = '
                           f'"127.0.0.1:{self.cluster_port}"; lease = 5.0; }};\n'
                           f'slurm = {{ min = {count}; max = {count}; account = "{self.cluster_port}"; program = '
                           f'"{TOMONODE}"; }};\n')
        self.process = None
        os.makedirs(folder, exist_ok=True)
        self.write_conf()

    def write_conf(self, extra=""):
        node = "".join(f"  {k} = {v};\n" for k, v in self.node.items())
        protocol = "".join(f" {k} = {v};" for k, v in self.protocol.items())
        destination = "".join(f" {k} = {v};" for k, v in self.destination.items())
        status = "".join(f" {k} = {v};" for k, v in self.status.items())
        with open(self.conf, "w") as f:
            f.write(f'status = {{{status} }};\nnode = {{\n  port = {self.port};\n  spool = "{self.spool}";\n  '
                    f'log_level = "debug";\n{node}}};\n'
                    f'destinations = ( {{ name = "pacs"; aet = "PACS"; host = "127.0.0.1"; port = '
                    f'{self.pacs_port};{destination} }}'
                    f'{self.more_destinations} );\n'
                    f'protocols = ( {{ name = "quick";{protocol} }}{self.more_protocols} );\n'
                    'routes = ( { name = "dbt"; kind = "dbt"; ' f'protocols = {json.dumps(self.protocols)}; '
                    f'destinations = [ {json.dumps(self.destinations)[1:-1]} ]; }}'
                    f'{self.more_routes} );\n' + self.more + self.pilots + self.alerts + extra)

    def reload(self, extra=""):
        """The running node reads what is now its configuration."""
        self.write_conf(extra)
        before = self.log_text().count("config-reloaded")
        self.process.send_signal(signal.SIGHUP)
        wait_for("the configuration is read", lambda: self.log_text().count("config-reloaded") > before)

    def make_long(self):
        """From its start on, a case lasts as long as a test needs: minutes of one processor, in 5 million voxels."""
        self.protocol.update(algorithm='"mlem"', iterations=1000, projector='"exact"', voxel=0.4, slice_spacing=0.5)
        if self.node["device"] == '"cpu"':
            self.node["device"] = '"cpu:1"'
        self.write_conf()

    def make_quick(self):
        """The running node takes no time for the cases that begin now."""
        self.protocol.update(algorithm='"osem"', iterations=1, projector='"slices"', voxel=0.0, slice_spacing=5.0)
        self.reload()

    def start(self, wait=True, command=()):
        """command: the words of a program that starts it."""
        self.log = open(self.log_path, "a")
        self.log.write("---- start\n")
        self.log.flush()
        self.process = subprocess.Popen([*map(str, command), TOMONODE, "serve", "-c", self.conf], stdout=self.log,
                                        stderr=self.log,
                                        start_new_session=True)
        self.session = self.process.pid
        if wait:
            wait_for("the node answers C-ECHO", lambda: self.echo() or self.process.poll() is not None)
            check(self.process.poll() is None, f"the node ended: {self.log_text()[-800:]}")

    def echo(self):
        return echo(self.port, "TOMONODE")

    def kill(self, group=True):
        """kill -9: of every process of the node, or of the manager alone. Returns when they have ended, and their ports
        are free."""
        if group:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()
        self.process = None
        if group:
            wait_for("all processes of the node have ended", lambda: not self.processes(), 60, 0.01)

    def stop(self, seconds=40):
        """SIGTERM; the exit code."""
        self.process.terminate()
        code = self.process.wait(seconds * PATIENCE)
        self.process = None
        return code

    def end(self):
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process = None
        if self.pilots:
            slurm().command("scancel", "--account", str(self.cluster_port), code=None)

    def pilot_processes(self):
        """Process numbers of the pilots of Slurm, with those of their workers."""
        if not self.pilots:
            return []
        pilots = subprocess.run(["pgrep", "-f", f"tomonode pilot --node 127.0.0.1:{self.cluster_port} "],
                                capture_output=True, text=True).stdout.split()
        workers = subprocess.run(["pgrep", "-P", ",".join(pilots)], capture_output=True,
                                 text=True).stdout.split() if pilots else []
        return [int(pid) for pid in pilots + workers]

    def processes(self, what=""):
        """Process numbers of this node (its session), by the word after the program's name: "serve" is manager,
        receiver, associations."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    stat = f.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{pid}/cmdline") as f:
                    words = f.read().split("\0")
            except OSError:
                continue
            if int(stat[3]) == self.session and stat[0] != "Z" and (not what or what in words[1:2]):
                found.append(int(pid))
        return sorted(found)

    def manager_and_receiver(self):
        """Their process numbers, once no association is left. The receiver is the manager's child; its number may be
        the smaller one."""
        def parent(pid):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    return int(f.read().rpartition(")")[2].split()[1])
            except OSError:
                return 0  # it has ended

        def two():
            found = self.processes("serve")
            return next(((a, b) for a in found for b in found if parent(b) == a), None) if len(found) == 2 else None

        return wait_for("manager and receiver alone", two)

    def log_text(self):
        if not os.path.exists(self.log_path):
            return ""
        with open(self.log_path) as f:
            return f.read()

    def command(self, name, *args, code=0):
        return run(TOMONODE, name, "-c", self.conf, *args, code=code)

    def list(self):
        return json.loads(self.command("list", "--json").stdout)

    def jobs(self):
        return self.list()["jobs"]

    def states(self):
        return [j["state"] for j in self.jobs()]

    def show(self, job):
        return json.loads(self.command("show", "--json", str(job)).stdout)

    def journal_now(self):
        """Another value after each write to the journal."""
        found = []
        for name in ("journal.db", "journal.db-wal"):
            with contextlib.suppress(FileNotFoundError):
                s = os.stat(os.path.join(self.spool, name))
                found.append((s.st_ino, s.st_size, s.st_mtime_ns))
        return found

    def events(self, job, name=""):
        """Names of the events of a job, as the journal has them; with a name: the details of those of this name."""
        with contextlib.closing(sqlite3.connect(f"file:{self.spool}/journal.db?mode=ro", uri=True, timeout=60)) as db:
            rows = db.execute("SELECT name, detail FROM event WHERE job=? ORDER BY seq", (job,)).fetchall()
        return [json.loads(detail) for is_, detail in rows if is_ == name] if name else [is_ for is_, _ in rows]

    def wait_jobs(self, what, condition, seconds=60):
        """Until condition(jobs) gives something true, which follows from the journal: `list` is asked again when that
        was written to, and each second, because what was written can be read only when it is on the disk."""
        seen = [None, [], 0]

        def looked():
            now = self.journal_now()
            if now != seen[0] or time.monotonic() > seen[2] + 1:
                seen[:] = now, self.jobs(), time.monotonic()
            return condition(seen[1])
        try:
            return wait_for(what, looked, seconds, 0.05)
        except AssertionError as e:
            raise AssertionError(f"{e}; jobs are {self.jobs()}") from None

    def wait_states(self, *states, seconds=60):
        return self.wait_jobs(f"jobs are {states}", lambda jobs: [j["state"] for j in jobs] == list(states)
                              and (jobs or True), seconds)

    def wait_state(self, at, state, *texts):
        """The job at this place of the list, when it has this state, with these texts in its reason: more images may
        come after a first one."""
        return self.wait_jobs(f"job {at} is {state}: {texts}", lambda jobs: len(jobs) > at and jobs[at]["state"]
                              == state
                              and all(t in jobs[at]["reason"] for t in texts) and jobs[at])

    def stored_files(self):
        return sorted(os.listdir(os.path.join(self.spool, "instances")))


@functools.cache
def exams_folder():
    """Holds each simulated exam in a folder of its own, until all tests of the run have ended (conftest.py), or this
    program ends."""
    if "TOMONODE_TESTS_SHARED" in os.environ:
        folder = os.path.join(os.environ["TOMONODE_TESTS_SHARED"], "exams")
        os.makedirs(folder, exist_ok=True)
        return folder
    folder = tempfile.mkdtemp(prefix="tomonode-exams-")
    atexit.register(shutil.rmtree, folder, True)
    return folder


def kept(name, make):
    """A folder that make(folder) has filled: once in a run, in the process that needs it first; nobody may change
    it."""
    path = os.path.join(exams_folder(), name)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            shutil.rmtree(path + ".part", ignore_errors=True)
            os.mkdir(path + ".part")
            make(path + ".part")
            os.rename(path + ".part", path)
    return path


def simulated_once(*words):
    """The folder with what `simulate` makes of these words. The same words give the same bytes, so each exam is
    simulated once in a run."""
    words = tuple(map(str, words))
    return kept(hashlib.sha256("\0".join(words).encode()).hexdigest()[:20],
                lambda folder: run(TOMONODE, "simulate", *words, "-o", folder))


def node_of_lines(folder, things, name, destination, node="", begin=True):
    """A node that reconstructs parallel beams for the destination of this name; destination, node: more of their keys."""
    n = Node(folder, 1)
    things.append(n)
    with open(n.conf, "w", encoding="ascii") as f:
        f.write(f'node = {{ port = {n.port}; spool = "{n.spool}"; quiet_time = 0.5; reserve = "1 MB"; device = "cpu"; '
                f'{node} {as_whom()} }};\n'
                f'destinations = ( {{ name = "{name}"; retry_first = 0.2; retry_cap = 0.5; {destination} }} );\n'
                'status = { enabled = false; };\n'
                f'routes = ( {{ name = "lines"; kind = "parallel"; protocols = [ "parallel-fbp" ]; destinations = [ "{name}" ]; }} );\n')
    if begin:
        n.start()
    return n


def send_lines(node, seed, slices):
    """A case of node_of_lines() whose result has so many objects."""
    at = simulated_once("parallel", "--size", 32, "--angles", 24, "--slices", slices, "--counts", 1e6, "--seed", seed)
    send(node.port, [os.path.join(at, f) for f in os.listdir(at) if f.endswith(".dcm")])


LARGE = ("--detector", "2816x3584")  # of the system, for tests of memory and disks


def simulate(folder, *options, binning=8):
    """An exam in a folder of its own; with a small part of the detector, unless the test wants the large pixels of
    another binning."""
    if binning == 8 and "--detector" not in options:
        options = ("--detector", "1024x1024", *options)
    made = simulated_once("dbt", "--system", "siemens-inspiration", "--phantom", "beads", "--binning", binning,
                          *options)
    shutil.copytree(made, folder, dirs_exist_ok=True)
    files = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".dcm"))
    check(files, f"simulate made no files in {folder}")
    return files


def send(port, files, code=0):
    """storescu, one association; what it said: {file: True where the answer was a success}."""
    p = run("storescu", "-v", "-aet", "MODALITY", "-aec", "TOMONODE", "-to", "60", "127.0.0.1", port, *files, code=code)
    return acknowledged(p.stdout + p.stderr)


def acknowledged(text):
    """Files whose C-STORE was answered with success, out of what `storescu -v` printed."""
    done, current = set(), None
    for line in text.splitlines():
        m = re.search(r"Sending file: (.*)$", line)
        if m:
            current = m.group(1).strip()
        if current and re.search(r"Received Store Response \(Success\)", line):
            done.add(current)
    return done
