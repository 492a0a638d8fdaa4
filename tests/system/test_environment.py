#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a node is started in: without standard descriptors, with a log that nobody reads any more, with certificates out of date."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

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
    wait_for("the node answers C-ECHO", lambda: peer.echo(n.port) or n.process.poll() is not None, 30)
    check(n.process.poll() is None, "the node ended")
    return n, archive, c.Exams(os.path.join(folder, "exam"))


def without_standard_descriptors(folder, things):
    """Files and sockets must not take their numbers: the log would be written into them."""
    n, archive, exams = launch(folder, things, ["sh", "-c", f"exec {h.TOMONODE} serve -c CONF <&- >&- 2>&-"])
    study, objects = exams.number(0)
    check(len(peer.store_all(n.port, objects)[0]) == len(objects), "not taken")
    wait_for("the result", lambda: study in archive.studies, 30)
    for fd in range(3):
        check(os.readlink(f"/proc/{n.session}/fd/{fd}") == "/dev/null", f"descriptor {fd}")


def told_service_manager(folder, things):
    """What systemd hears (Type=notify): READY when the node takes associations, not before and not from a node that cannot; then
    STOPPING. The processes that the node starts do not know where to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(os.path.join(folder, "notify"))
        s.settimeout(30)
        env = {**os.environ, "NOTIFY_SOCKET": os.path.join(folder, "notify")}
        archive = peer.Archive()
        n = h.Node(os.path.join(folder, "node"), archive.port)
        things += [n, archive]
        h.run(h.TOMONODE, "serve", "-c", "/nonexistent/tomonode.conf", code=3, env=env)
        with socket.create_server(("127.0.0.1", n.port)):
            h.run(h.TOMONODE, "serve", "-c", n.conf, code=9, env=env)
        with open(n.log_path, "w") as log:
            n.process = subprocess.Popen([h.TOMONODE, "serve", "-c", n.conf], start_new_session=True, env=env, stdout=log, stderr=log)
        n.session = n.process.pid
        check(s.recv(100) == b"READY=1" and peer.echo(n.port), "ready is what answers")
        pid = wait_for("a worker", lambda: n.processes("worker"))[0]
        with open(f"/proc/{pid}/environ") as f:
            check("NOTIFY_SOCKET" not in f.read(), "a worker knows the socket")
        n.process.send_signal(signal.SIGTERM)
        check(s.recv(100) == b"STOPPING=1" and n.process.wait(30) == 0, "stopping")
        n.process = None
        s.settimeout(0.1)
        try:
            check(not s.recv(100), "one word each")
        except TimeoutError:
            pass


def nobody_reads_the_log(folder, things):
    """A pipe whose reader is frozen: exams go on when it is full; when somebody reads again, it says how many lines are missing."""
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
        study, objects = exams.number(number)
        check(len(peer.store_all(n.port, objects, timeout=20)[0]) == len(objects), f"exam {number} was not taken")
        wait_for("the result", lambda s=study: s in archive.studies, 60)
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


def nobody_reads_syslog(folder, things):
    """The syslog daemon is frozen: the same, in a namespace of mounts whose /dev is ours."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        raise h.Skipped("needs root and unshare")
    made = "mount -t tmpfs tmpfs /dev && mknod /dev/null c 1 3 && mknod /dev/zero c 1 5 && mknod /dev/urandom c 1 9 && mkdir /dev/shm"
    probe = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", f"{made} && echo 1 >/dev/null"], capture_output=True)
    if probe.returncode != 0:
        raise h.Skipped("no namespace of mounts can be made")
    h.run("unshare", "-m", "--propagation", "private", "sh", "-c", f"{made} && exec {sys.argv[0]} frozen_syslog", timeout=90)


def frozen_syslog(folder, things):
    daemon = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    daemon.bind("/dev/log")
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port, log='"syslog"')
    things += [n, archive]
    n.start(wait=False)
    wait_for("the node answers C-ECHO", lambda: peer.echo(n.port), 30)
    fillers = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(8)]  # each may have so many bytes under way
    for filler in fillers:
        filler.setblocking(False)
        try:
            while filler.sendto(b"<30>filler", "/dev/log"):
                pass
        except BlockingIOError:
            pass
    exams, number = c.Exams(os.path.join(folder, "exam")), 0
    study, objects = exams.number(number)
    check(len(peer.store_all(n.port, objects, timeout=20)[0]) == len(objects), "not taken")
    wait_for("the result", lambda: study in archive.studies, 60)
    daemon.setblocking(False)
    text, until = b"", time.monotonic() + 30
    while b" log-lost lines=" not in text:
        check(time.monotonic() < until, "it never says how many lines are lost")
        try:
            text = daemon.recv(65536)
        except BlockingIOError:
            number += 1  # something to write about for the processes that stay
            check(len(peer.store_all(n.port, exams.number(number)[1])[0]) == len(exams), "not taken")
    check(re.fullmatch(rb"<28>[A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} tomonode\[[0-9]+\]: [a-z]+ log-lost lines=[0-9]+", text), text)


def certificates_out_of_date(folder, things):
    """`check` says that a certificate has expired and ends with 3. A node starts all the same: its other ports and destinations work, and a
    clock may be wrong just after a power cut. So what starts the node must not ask `check` first."""
    pki = tls.Pki(os.path.join(folder, "pki"))
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port)
    things += [n, archive]
    with open(n.conf) as f:
        text = f.read()
    with open(n.conf, "w") as f:
        f.write(text.replace(" } );\nprotocols", f' }}, {{ name = "old"; aet = "OLD"; host = "127.0.0.1"; port = 9; tls = true; '
                             f'certificate = "{pki.expired()}"; key = "{pki.peer_key}"; authorities = "{pki.trusted}"; }} );\nprotocols'))
    check("expired on 2021-01-01" in n.command("check", code=3).stderr, "check does not say it")
    n.start()
    wait_for("the alert", lambda: "alert serve" in n.log_text() and "certificate-expired" in n.log_text())
    study, objects = c.Exams(os.path.join(folder, "exam")).number(0)
    check(len(peer.store_all(n.port, objects)[0]) == len(objects), "not taken")
    wait_for("the result", lambda: study in archive.studies, 30)


def files_are_closed_to_others(folder, things):
    """Each file of the spool is closed to other users by its own mode, whatever umask the node was started with."""
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port)
    things += [n, archive]
    before = os.umask(0)
    try:
        n.start()
    finally:
        os.umask(before)
    study, objects = c.Exams(os.path.join(folder, "exam")).number(0)
    check(len(peer.store_all(n.port, objects)[0]) == len(objects), "not taken")
    wait_for("the result", lambda: study in archive.studies, 30)
    found = [os.path.join(root, name) for root, _, names in os.walk(n.spool) for name in names]
    check(any("/outbox/" in path for path in found) and any("/instances/" in path for path in found), f"no images or no result: {found}")
    for path in found:
        check(os.stat(path).st_mode & 0o027 == 0, f"{path} has mode {os.stat(path).st_mode & 0o777:o}")


if __name__ == "__main__":
    if "frozen_syslog" in sys.argv:
        h.main([frozen_syslog])
    h.main([without_standard_descriptors, told_service_manager, nobody_reads_the_log, nobody_reads_syslog, certificates_out_of_date, files_are_closed_to_others], beside=2)
