# SPDX-License-Identifier: Apache-2.0
"""A node that has worked through many cases holds what it held after the first ones: no descriptor more in any of its
processes, and not more memory than a finished case may keep. A command needs no descriptor for each of its cases."""
import contextlib
import http.client
import os
import re
import resource
import socket

import pytest
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import leak_tools as leaks
from tools import node_harness as h
from tools.node_harness import check, wait_for

WARM = 3
CASES = 200 if h.TIER == 2 else 6
# Of a finished case: 1.7 kB in the manager (docs/reliability.md), twice as much with its texts in the process of the
# page, and room.
CASE_KB = 8
ALLOCATOR_KB = 264  # the C library enlarges a heap by 132 kB at a time, that of the main thread and one more
WORKER_KB = 4096  # what the worker has for a case, which the allocator may keep
ROLES = {"manager", "receiver", "worker", "status", "http"}
FEW, MANY = 24, 96  # descriptors: 64 slices are written at the same time


def most_kb(role):
    """By which a process may grow."""
    return CASES * CASE_KB + (WORKER_KB if role == "worker" else ALLOCATOR_KB)


def ask(node, path, method="GET", body=None):
    """(status, body)"""
    page = http.client.HTTPConnection("127.0.0.1", node.status["port"], timeout=60 * h.PATIENCE)
    try:
        page.request(method, path, body)
        answer = page.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        page.close()


def refuse_everything(node, exams):
    """Associations that are refused, a connection that is no DICOM, and an association that is cut."""
    _, objects = exams.number(999999)
    for options in ({"called": "SOMEBODY"}, {"calling": "NOBODY"}):
        with pytest.raises(peer.Gone):
            peer.Sender(node.port, objects, **options)
    with socket.create_connection(("127.0.0.1", node.port), timeout=60 * h.PATIENCE) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while s.recv(4096):
                pass
    check(peer.echo(node.port), "the node answers")
    peer.Sender(node.port, objects).close()


def ask_everything(node, job):
    for path, code in (
        ("/", 200),
        (f"/jobs/{job}", 200),
        ("/status.json", 200),
        ("/metrics", 200),
        (f"/jobs/{job}/report", 200),
        ("/jobs/777777", 404),
        ("/no/such/page", 404),
    ):
        status, body = ask(node, path)
        check(status == code, f"{path}: {status}: {body[:300]}")
    status, _ = ask(node, f"/jobs/{job}/retry", "POST", "token=0")
    check(status == 403, f"a request without a token: {status}")


def work_through(node, archive, exams, n):
    """One case, from its images to the name of its patient on the page, and all that is refused."""
    refuse_everything(node, exams)
    study, objects = exams.number(n)
    check(c.Ledger().send(node.port, objects), "not taken")
    wait_for(f"case {n} is delivered", lambda: study in archive.studies)
    job = wait_for("its number", lambda: c.jobs_of(node.spool, study))[0]
    wait_for(
        "it is shown, with the patient", lambda: re.search("PHANTOM|SIMULATED", ask(node, f"/jobs/{job}")[1], re.I)
    )
    ask_everything(node, job)


def test_node_keeps_nothing_of_its_cases(folder, things):
    archive = peer.Archive()
    node = h.Node(folder + "/node", archive.port, check_called="true", require_known_peer="true", peer_refusals=10000)
    node.status = {"port": h.free_port(), "show_patient": "true"}
    node.write_conf('peers = ( { name = "modality"; aet = "MODALITY"; } );\n')
    things += [node, archive]
    c.start(node)
    exams = c.Exams(folder + "/exam")
    wait_for("the worker is ready", lambda: "device-ready" in node.log_text())
    for n in range(1, WARM + 1):
        work_through(node, archive, exams, n)
    before = leaks.held(node, ROLES)
    for n in range(WARM + 1, WARM + CASES + 1):
        work_through(node, archive, exams, n)
    after = leaks.held_again(node, ROLES, before)
    check(set(after) == set(before), f"other processes: {sorted(before)}, {sorted(after)}")
    left = leaks.lost(before, after) + ([] if h.sanitizer() else leaks.grown(before, after, most_kb))
    check(not left, f"after {CASES} cases: {left}")


def test_lost_descriptor_and_memory_are_seen():
    """The comparison can fail: of a process that has two more descriptors, and of one that has grown."""
    before = {("http", 1): (leaks.kinds(os.getpid()), 1000)}
    reader, writer = os.pipe()
    try:
        check(len(leaks.lost(before, {("http", 1): (leaks.kinds(os.getpid()), 0)})) == 1, "two ends of a pipe")
    finally:
        os.close(reader)
        os.close(writer)
    allowed = 1000 + most_kb("http")
    check(not leaks.lost(before, {("http", 1): (leaks.kinds(os.getpid()), 0)}), "nothing is lost any more")
    check(leaks.grown(before, {("http", 1): (before["http", 1][0], allowed + 1)}, most_kb), "one kB too many")
    check(not leaks.grown(before, {("http", 1): (before["http", 1][0], allowed)}, most_kb), "what is allowed")


def test_command_needs_no_descriptor_for_each_case(folder):
    """A command over many cases, exams or slices, with room for few more descriptors than one of them needs."""
    exams = c.Exams(folder + "/first")
    os.mkdir(folder + "/exam")
    for n in range(FEW + 10):
        for i, (raw, places) in enumerate(zip(exams.raw, exams.places)):
            raw = bytearray(raw)
            for at in places:
                raw[at : at + 6] = b"%06d" % n  # another exam, as of Exams.number()
            h.write_file(f"{folder}/exam/{n:03}-{i}.dcm", raw)
    quick = ("--device", "cpu:1", "-o")
    for limit, words in (
        (
            FEW,
            (
                "recon",
                "--set",
                "voxel=4",
                "--set",
                "slice_spacing=10",
                "--set",
                "iterations=1",
                "--report",
                folder + "/reports",
                *quick,
                folder + "/results",
                folder + "/exam",
            ),
        ),
        (FEW, ("export", "--format", "nifti", "-o", folder + "/files", folder + "/results")),
        (FEW, ("report", "-o", folder + "/more", folder + "/results")),
        (
            FEW,
            (
                "simulate",
                "parallel",
                "--size",
                "8",
                "--angles",
                "4",
                "--slices",
                str(MANY + 10),
                "-o",
                folder + "/lines",
            ),
        ),
        (MANY, ("recon", *quick, folder + "/slices", folder + "/lines")),
        (FEW, ("export", "--slice", "all", "-o", folder + "/pictures/slice.png", folder + "/slices")),
    ):
        h.run(h.TOMONODE, *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    made = [len(os.listdir(os.path.join(folder, name))) for name in ("results", "files", "more", "slices", "pictures")]
    check(made == [FEW + 10] * 3 + [MANY + 10] * 2, f"not all: {made}")
