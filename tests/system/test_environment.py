# SPDX-License-Identifier: Apache-2.0
"""What a node is started in: without standard descriptors, with a log that nobody reads any more, with certificates out
of date."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess

from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools import tls_tools as tls
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "echoscu")


def launch(folder, things, command, **streams):
    """A node that is started by hand: a PACS, and `command` with CONF replaced."""
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port)
    things += [n, archive]
    n.process = subprocess.Popen([w.replace("CONF", n.conf) for w in command], start_new_session=True, **streams)
    n.session = n.process.pid
    wait_for("the node answers C-ECHO", lambda: peer.echo(n.port) or n.process.poll() is not None)
    check(n.process.poll() is None, "the node ended")
    return n, archive, c.Exams(os.path.join(folder, "exam"))


def through(n, archive, exams, number):
    """An exam goes in, and its result comes out."""
    study, objects = exams.number(number)
    check(len(peer.store_all(n.port, objects)[0]) == len(objects), f"exam {number} was not taken")
    wait_for("the result", lambda: study in archive.studies)


def test_without_standard_descriptors(folder, things):
    """Files and sockets must not take their numbers: the log would be written into them."""
    n, archive, exams = launch(folder, things, ["sh", "-c", f"exec {h.TOMONODE} serve -c CONF <&- >&- 2>&-"])
    through(n, archive, exams, 0)
    for fd in range(3):
        check(os.readlink(f"/proc/{n.session}/fd/{fd}") == "/dev/null", f"descriptor {fd}")


def test_told_service_manager(folder, things):
    """What systemd hears (Type=notify): READY when the node takes associations, not before and not from a node that
    cannot; then STOPPING. The processes that the node starts do not know where to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(os.path.join(folder, "notify"))
        s.settimeout(120)
        env = {**os.environ, "NOTIFY_SOCKET": os.path.join(folder, "notify")}
        archive = peer.Archive()
        n = h.Node(os.path.join(folder, "node"), archive.port)
        things += [n, archive]
        h.run(h.TOMONODE, "serve", "-c", "/nonexistent/tomonode.conf", code=3, env=env)
        with socket.create_server(("127.0.0.1", n.port)):
            h.run(h.TOMONODE, "serve", "-c", n.conf, code=9, env=env)
        with open(n.log_path, "w") as log:
            n.process = subprocess.Popen([h.TOMONODE, "serve", "-c", n.conf], start_new_session=True, env=env,
                                         stdout=log, stderr=log)
        n.session = n.process.pid
        check(s.recv(100) == b"READY=1" and peer.echo(n.port), "ready is what answers")
        pid = wait_for("a worker", lambda: n.processes("worker"))[0]
        check("NOTIFY_SOCKET" not in h.read_file(f"/proc/{pid}/environ"), "a worker knows the socket")
        n.process.send_signal(signal.SIGTERM)
        check(s.recv(100) == b"STOPPING=1" and n.process.wait(120) == 0, "stopping")
        n.process = None
        s.settimeout(0.1)
        try:
            check(not s.recv(100), "one word each")
        except TimeoutError:
            pass


def test_nobody_reads_the_log(folder, things):
    """A pipe whose reader is frozen: exams go on when it is full; when somebody reads again, it says how many lines are
    missing."""
    reading, writing = os.pipe()
    n, archive, exams = launch(folder, things, [h.TOMONODE, "serve", "-c", "CONF"], stdout=writing, stderr=writing)
    os.set_blocking(writing, False)
    try:
        while os.write(writing, b"x" * 4096):
            pass
    except BlockingIOError:
        pass
    os.close(writing)
    for number in range(2):
        through(n, archive, exams, number)
    os.set_blocking(reading, False)
    text = bytearray()

    def says_so():
        try:
            text.extend(os.read(reading, 1 << 20))
        except BlockingIOError:
            peer.echo(n.port)  # something to write about
        return b" log-lost lines=" in text
    wait_for("log-lost", says_so)
    check(n.process.poll() is None, "the node ended")
    os.close(reading)  # and if there is nobody at all any more, that is no end either
    check(peer.echo(n.port) and peer.echo(n.port), "no C-ECHO")


def test_nobody_reads_syslog(folder, things):
    """The syslog daemon is frozen: the same, in a namespace of mounts whose /dev is ours."""
    path = os.path.join(folder, "log")
    daemon = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    daemon.bind(path)
    devices = " && ".join(f"mknod /dev/{name} c 1 {number}" for name,
                          number in (("null", 3), ("zero", 5), ("urandom", 9)))
    inside = ["unshare", "-m", "--propagation", "private", "sh", "-c",
              f"mount -t tmpfs tmpfs /dev && {devices} && mkdir /dev/shm && "
              f'touch /dev/log && mount --bind {path} /dev/log && exec "$@"', "sh"]
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run([*inside, "true"],
                                                                          capture_output=True).returncode != 0:
        h.skip("no namespace of mounts can be made here: that needs root and unshare")
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port, log='"syslog"')
    things += [n, archive]
    n.start(command=inside)
    for filler in [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _
                   in range(8)]:  # each may have so many bytes under way
        filler.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while filler.sendto(b"<30>filler", path):
                pass
    exams, number = c.Exams(os.path.join(folder, "exam")), 0
    through(n, archive, exams, number)
    daemon.setblocking(False)

    def last_line():
        nonlocal number
        try:
            return daemon.recv(65536)
        except BlockingIOError:  # something to write about for the processes that stay
            number += 1
            through(n, archive, exams, number)
            return b""
    line = re.compile(rb"<28>[A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} tomonode\[[0-9]+\]: [a-z]+ log-lost lines=[0-9]+")
    wait_for("it says how many lines are lost", lambda: line.fullmatch(last_line()), 60, 0.001)


def test_certificates_out_of_date(folder, things):
    """`check` says that a certificate has expired and ends with 3. A node starts all the same: its other ports and
    destinations work, and a clock may be wrong just after a power cut. So what starts the node must not ask `check`
    first."""
    pki = tls.Pki(os.path.join(folder, "pki"))
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port)
    things += [n, archive]
    text = h.read_file(n.conf)
    h.write_file(n.conf, text.replace(" } );\nprotocols",
                                      f' }}, {{ name = "old"; aet = "OLD"; host = "127.0.0.1"; port = 9; tls = true; '
                                      f'certificate = "{pki.expired()}"; key = "{pki.peer_key}"; '
                                      f'authorities = "{pki.trusted}"; }} );\nprotocols'))
    check("expired on 2021-01-01" in n.command("check", code=3).stderr, "check does not say it")
    n.start()
    wait_for("the alert", lambda: "alert serve" in n.log_text() and "certificate-expired" in n.log_text())
    through(n, archive, c.Exams(os.path.join(folder, "exam")), 0)


def test_files_are_closed_to_others(folder, things):
    """Each file of the spool is closed to other users by its own mode, whatever umask the node was started with."""
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port)
    things += [n, archive]
    before = os.umask(0)
    try:
        n.start()
    finally:
        os.umask(before)
    through(n, archive, c.Exams(os.path.join(folder, "exam")), 0)
    found = [os.path.join(root, name) for root, _, names in os.walk(n.spool) for name in names]
    check(any("/outbox/" in path for path in found) and any("/instances/" in path for path in found),
          f"no images or no result: {found}")
    for path in found:
        check(os.stat(path).st_mode & 0o027 == 0, f"{path} has mode {os.stat(path).st_mode & 0o777:o}")
