# SPDX-License-Identifier: Apache-2.0
"""What each process of the node may still do: tried from inside (tests/helpers/sandbox_inside.c), seen from outside
(/proc/PID/status) while an exam goes through, and as which user all of it runs."""
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import urllib.request

import pytest
from tools import node_harness as h
from tools.node_harness import check, wait_for

INSIDE = os.path.join(os.environ.get("TOMONODE_BUILD", "."), "tests", "sandbox_inside")
ROLES = ("listener", "association", "index", "worker:cpu", "worker:cuda:0", "deliver", "names", "http", "seat",
         "report", "case:cpu")
KILLED = "killed"


def inside(role, spool, action, *argument, mode="auto", log="stderr"):
    """What the action answered: "done", the name of an error, or KILLED."""
    p = subprocess.run([INSIDE, mode, role, spool, log, action, *map(str, argument)], capture_output=True, text=True,
                       timeout=120,
                       stdin=subprocess.DEVNULL)
    if p.returncode == -31:  # SIGSYS
        return KILLED
    check(p.returncode in (0, 3), f"{role} {action} {argument}: code {p.returncode}, {p.stdout}{p.stderr}")
    return p.stdout.strip()


@functools.cache
def machine():
    """(seccomp filters, Landlock's ABI), as the node says; None where this build cannot be sandboxed."""
    text = h.run(INSIDE, "on", "index", "/nowhere", "stderr", "thread", code=None).stdout
    if "sanitizer" in text:
        return None
    return "seccomp" not in text, "Landlock" not in text


h.need("storescp", "storescu", "echoscu", INSIDE)
sandboxed = pytest.mark.skipif(not machine() or not machine()[0],
                               reason="a build with a sanitizer has no sandbox (its run time reserves "
                               "terabytes and traces itself), or the kernel has no seccomp filters")


def make_spool(folder):
    spool = os.path.join(folder, "spool")
    for name in ("instances", "incoming", "outbox", "work", "pilots"):
        os.makedirs(os.path.join(spool, name))
        h.write_file(os.path.join(spool, name, "a"), "bytes")
    for name in ("journal.db", "journal.db-wal", "journal.db-shm", "node.conf"):
        h.write_file(os.path.join(spool, name), "bytes")
    return spool


def expect(spool, action, arguments, answers):
    """answers: by role, or one for all roles that are not named. The GPU worker's files are fenced in under `on`
    alone."""
    whole = "on" if all(machine()) else "auto"
    for role in ROLES:
        wanted = answers.get(role, answers["*"])
        got = inside(role, spool, action, *arguments, mode=whole if role == "worker:cuda:0" else "auto")
        if action == "make" and os.path.exists(arguments[0]):
            os.unlink(arguments[0])
        check(got in (wanted if isinstance(wanted, tuple) else (wanted,)),
              f"{role}: {action} {' '.join(map(str, arguments))}: {got}, not {wanted}")


@sandboxed
def test_calls_of_each_role(folder):
    spool = make_spool(folder)
    victim = os.getpid()
    expect(spool, "thread", [], {"*": "done"})
    expect(spool, "fork", [], {"*": "EPERM", "listener": "done"})
    expect(spool, "exec", ["/bin/true"], {"*": KILLED, "worker:cuda:0": ("EPERM", "EACCES")})
    expect(spool, "socket", ["inet"], {"*": "EPERM", "deliver": "done"})
    expect(spool, "socket", ["inet6"], {"*": "EPERM", "deliver": ("done", "EAFNOSUPPORT")})
    expect(spool, "socket", ["packet"], {"*": "EPERM"})
    expect(spool, "interface", ["lo"], {"*": ("EPERM", "ENODEV", "ENOENT"), "deliver": "done", "worker:cuda:0": "done"})
    expect(spool, "socket", ["unix"], {"*": "EPERM", "deliver": "done", "worker:cuda:0": "done"})
    for action, argument in (("trace", [victim]), ("peek", [victim]), ("mount", [folder]), ("ring", [])):
        expect(spool, action, argument, {"*": KILLED, "worker:cuda:0": "EPERM"})
    expect(spool, "type", [], {"*": ("EPERM", "ENOTTY"), "index": "EPERM"})
    expect(spool, "mode", [f"{spool}/work/a"], {"*": "EPERM"})
    expect(spool, "kill", [victim], {"*": "EPERM", "listener": "done"})
    expect(spool, "raise-limit", [], {"*": "EPERM", "worker:cuda:0": ("EPERM", "done")})
    steps = f"steps:{spool}/work"
    for action, argument, wanted in (("fork", [], "done"), ("exec", ["/usr/bin/true"], ""), ("socket", ["inet"], "EPERM"), ("trace", [victim], KILLED),
                                     ("mount", [folder], KILLED), ("raise-limit", [], "EPERM")):
        check(inside(steps, spool, action, *argument) == wanted, f"steps: {action}")
    for action, argument, wanted in (("fork", [], "done"), ("exec", ["/usr/bin/true"], ""), ("socket", ["inet"], "done"), ("socket", ["packet"], "EPERM"),
                                     ("trace", [victim], KILLED), ("mount", [folder], KILLED), ("mode", [f"{spool}/work/a"], "EPERM"),
                                     ("raise-limit", [], "EPERM"), ("kill", [victim], "EPERM")):
        check(inside("exec", spool, action, *argument) == wanted, f"exec: {action}")
    check(inside("index", spool, "open-many", 1000) == "EMFILE", "the indexer opens a thousand files")
    # The system's log alone is a reason for a local socket.
    check(inside("index", spool, "socket", "unix", log="syslog") == "done", "no way to syslog")
    check(inside("index", spool, "socket", "inet", log="syslog") == "EPERM", "a way to the network with syslog")


@sandboxed
def test_files_of_each_role(folder):
    if not machine()[1]:
        h.skip("the kernel has no Landlock")
    spool = make_spool(folder)
    no = "EACCES"
    expect(spool, "read", [f"{spool}/instances/a"],
           {"*": "done", "association": no, "deliver": no, "http": no, "report": no})
    expect(spool, "read", [f"{spool}/pilots/a"], {"*": no, "listener": "done", "seat": "done"})
    expect(spool, "write", [f"{spool}/pilots/a"], {"*": no, "listener": "done", "seat": "done"})
    expect(spool, "write", [f"{spool}/instances/a"], {"*": no, "listener": "done"})
    expect(spool, "read", [f"{spool}/outbox/a"],
           {"*": "done", "association": no, "index": no, "names": no, "http": no, "case:cpu": no})
    expect(spool, "write", [f"{spool}/outbox/a"],
           {"*": no, "listener": "done", "worker:cpu": "done", "worker:cuda:0": "done", "seat": "done"})
    expect(spool, "write", [f"{spool}/incoming/a"], {"*": no, "listener": "done", "association": "done"})
    expect(spool, "write", [f"{spool}/work/a"],
           {"*": no, "listener": "done", "worker:cpu": "done", "worker:cuda:0": "done", "seat": "done",
            "case:cpu": "done"})
    expect(spool, "write", [f"{spool}/journal.db-wal"],
           {"*": "done", "names": no, "http": no, "report": no, "case:cpu": no})
    expect(spool, "read", [f"{spool}/node.conf"], {"*": no, "listener": "done"})
    expect(spool, "make", [f"{spool}/new"], {"*": no, "listener": "done"})
    expect(spool, "read", ["/etc/passwd"], {"*": no, "listener": "done"})
    expect(spool, "read", [__file__], {"*": no, "listener": "done"})
    expect(spool, "read", ["/usr/bin/env"], {"*": "done"})
    steps = f"steps:{spool}/work"
    for action, path, wanted in (("write", f"{spool}/work/a", "done"), ("read", f"{spool}/instances/a", no), ("read", f"{spool}/journal.db-wal", no),
                                 ("read", f"{spool}/outbox/a", no), ("read", "/etc/passwd", no), ("make", f"{spool}/new", no)):
        check(inside(steps, spool, action, path) == wanted, f"steps: {action} {path}")
    for action, path, wanted in (("read", f"{spool}/instances/a", no), ("read", f"{spool}/journal.db-wal", no), ("read", f"{spool}/node.conf", no),
                                 ("make", f"{spool}/new", no), ("read", "/etc/passwd", "done"), ("read", "/etc/shadow", no), ("read", __file__, no)):
        check(inside("exec", spool, action, path) == wanted, f"exec: {action} {path}")
    # An association commits what it wrote, and takes back what it could not commit.
    check(inside("association", spool, "rename", f"{spool}/incoming/a {spool}/instances/b") == "done", "no commit")
    check(inside("association", spool, "remove", f"{spool}/instances/b") == "done", "no way back")
    check(inside("index", spool, "remove", f"{spool}/instances/a") == no, "the indexer removes an instance")
    check(inside("seat", spool, "remove", f"{spool}/pilots/a") == no, "a seat removes a secret")
    check(inside("worker:cuda:0", spool, "read", __file__) == "done", "under auto the driver opens what it likes")
    check(inside("worker:cuda:0", spool, "socket", "inet") == "EPERM", "but no network")


def test_off_is_off(folder):
    spool = make_spool(folder)
    check(inside("index", spool, "socket", "inet", mode="off") == "done", "a sandbox that is off refuses a socket")
    check(inside("index", spool, "read", "/etc/passwd", mode="off") == "done", "a sandbox that is off refuses a file")


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


class Watch(threading.Thread):
    """The latest /proc/PID/status of each kind of process that a node has, while an exam goes through it."""

    def __init__(self, node):
        super().__init__()
        self.node, self.seen, self.over = node, {}, threading.Event()
        self.filter = "2" if machine() else "0"  # Seccomp of a process in its sandbox

    def run(self):
        while not self.over.wait(0.02):
            for pid in self.node.processes():
                try:
                    word = h.read_file(f"/proc/{pid}/cmdline").split("\0")[1]
                    s = status(pid)
                except (OSError, IndexError):
                    continue
                if word == "serve":
                    parent = int(s["PPid"])
                    manager = self.node.process.pid
                    word = "manager" if pid == manager else "listener" if parent == manager else "association"
                # One that has just been started has its sandbox still before it: the latest look counts.
                if s.get("Seccomp") == self.filter or word not in self.seen:
                    self.seen[word] = s

    def has(self, *roles):
        return all(self.seen.get(r, {}).get("Seccomp") == self.filter for r in roles)

    def end(self):
        self.over.set()
        self.join()
        return self.seen


def one_exam(folder, things, **node):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, **node)
    things += [pacs, n]
    page = h.free_port()
    n.status = {"port": page, "show_patient": "true"}
    n.write_conf()
    files = h.simulate(os.path.join(folder, "exam"))
    pacs.start()
    n.start()
    watch = Watch(n)
    watch.start()
    caller = socket.create_connection(("127.0.0.1", n.port))  # says nothing: an association that stays
    try:
        wait_for("an association in its sandbox", lambda: watch.has("association"))
        pacs.process.send_signal(signal.SIGSTOP)
        check(len(h.send(n.port, files)) == len(files), "not all images were taken")
        wait_for("all processes in their sandboxes",
                 lambda: watch.has("listener", "index", "worker", "deliver", "http"))
        pacs.process.send_signal(signal.SIGCONT)
        n.wait_states("delivered")
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/", timeout=120) as r:
            check(r.status == 200 and b"html" in r.read(2000), "no status page")
    finally:
        caller.close()
        pacs.process.send_signal(signal.SIGCONT)
        seen = watch.end()
    check(list(pacs.objects().values()) == [1], "the PACS has not the one result")
    check(n.stop() == 0, "no clean stop")
    return n, seen


@sandboxed
def test_an_exam_goes_through(folder, things):
    n, seen = one_exam(folder, things, sandbox='"on"' if all(machine()) else '"auto"')
    for role in ("listener", "association", "index", "worker", "deliver", "http"):
        check(role in seen, f"no {role} process was seen: {sorted(seen)}")
        s = seen[role]
        check(s["NoNewPrivs"] == "1" and s["Seccomp"] == "2",
              f"{role}: NoNewPrivs {s['NoNewPrivs']}, Seccomp {s['Seccomp']}")
        check(int(s["CapEff"], 16) == 0 and int(s["CapPrm"], 16) == 0, f"{role} has capabilities: {s['CapEff']}")
    check(" sandbox mode=" in n.log_text(), "the log does not say what is enforced")
    for word in ("sandbox-failed", "receiver-failed", "crashed"):
        check(word not in n.log_text(), f"{word} in the log")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_it_becomes_another_user(folder, things):
    """Started as root, the node gives root up; its spool is made for its user, a spool of somebody else is refused."""
    nobody = pwd.getpwnam("nobody")
    os.chmod(folder, 0o755)
    program = os.path.join(folder, "tomonode")  # the folder of the build may be closed to others
    shutil.copy(h.TOMONODE, program)
    kept, h.TOMONODE = h.TOMONODE, program
    try:
        n, seen = one_exam(folder, things, user='"nobody"')
        for role, s in seen.items():
            check(set(s["Uid"].split()) == {str(nobody.pw_uid)}, f"{role} runs as {s['Uid']}")
            check(set(s["Gid"].split()) == {str(nobody.pw_gid)}, f"{role} runs as group {s['Gid']}")
            check(set(s["Groups"].split()) <= {str(nobody.pw_gid)}, f"{role} has groups {s['Groups']}")
        check(os.stat(n.spool).st_uid == nobody.pw_uid, "the spool is not the user's")
        check(os.stat(f"{n.spool}/journal.db").st_uid == nobody.pw_uid, "the journal is not the user's")
        os.chown(n.spool, 0, 0)
        p = h.run(program, "serve", "-c", n.conf, code=1)
        check("belongs to user 0" in p.stderr, p.stderr)
    finally:
        h.TOMONODE = kept


if machine() is None:
    def test_a_sanitizer_says_so(folder, things):
        """Under `auto` such a build works without a sandbox and says what is missing; under `on` it does not work."""
        p = h.run(INSIDE, "on", "index", make_spool(folder), "stderr", "thread", code=None)
        check("node.sandbox is on" in p.stdout and "sanitizer" in p.stdout, p.stdout)
        n = h.Node(os.path.join(folder, "node"), 1, sandbox='"on"')
        check("sanitizer" in h.run(h.TOMONODE, "serve", "-c", n.conf, code=None).stderr, "it serves, with `on`")
        n = h.Node(os.path.join(folder, "other"), 1)
        things.append(n)
        n.start()
        check("sanitizer" in next(x for x in n.log_text().splitlines() if " sandbox mode=auto" in x),
              "the log does not say that there is none")
        check(n.stop() == 0, "no clean stop")


def test_it_refuses_to_be_root_unasked(folder):
    n = h.Node(os.path.join(folder, "node"), 1, user='""')
    if os.geteuid() == 0:
        p = h.run(h.TOMONODE, "serve", "-c", n.conf, code=3)
        check("node.user" in p.stderr and not os.path.exists(n.spool), p.stderr)
    for user, said in (("no-such-user", "no such user"), *([("root", "only root can become")] if os.geteuid() else [])):
        n.node["user"] = f'"{user}"'
        n.write_conf()
        p = h.run(h.TOMONODE, "serve", "-c", n.conf, code=3)
        check(said in p.stderr, p.stderr)
