#!/usr/bin/python3
"""What a node is started in: without standard descriptors, with a log that nobody reads any more, with certificates out of date."""
import os
import subprocess

import contract_tools as c
import dicom_peer as peer
import node_harness as h
import tls_tools as tls
from node_harness import check, wait_for

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
    wait_for("log-lost", says_so, 20)
    check(n.process.poll() is None, "the node ended")
    os.close(reading)  # and if there is nobody at all any more, that is no end either
    check(peer.echo(n.port) and peer.echo(n.port), "no C-ECHO")


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
    wait_for("the alert", lambda: "alert serve" in n.log_text() and "certificate-expired" in n.log_text(), 20)
    study, objects = c.Exams(os.path.join(folder, "exam")).number(0)
    check(len(peer.store_all(n.port, objects)[0]) == len(objects), "not taken")
    wait_for("the result", lambda: study in archive.studies, 30)


if __name__ == "__main__":
    h.main([without_standard_descriptors, nobody_reads_the_log, certificates_out_of_date])
