# SPDX-License-Identifier: Apache-2.0
"""Pilots: processes that reconstruct for a node over a connection. Same objects as a local worker; who is refused;
cancelled cases."""
import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import time

import pydicom
import pytest

from tools import node_harness as h
from tools.edits import edited_all
from tools.node_harness import check, wait_for
from tools.pilot_tools import Pilot, cluster_node, exam, hello, made_by, running

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")
SHARED = [False, pytest.param(True, marks=pytest.mark.tier2("a spool that both see"))]
LIAR = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "pilot_false")


def without_times(path):
    """The bytes of an object, with zeros for the times at which it was made."""
    text = h.read_file(path, "rb")
    header = pydicom.dcmread(path, stop_before_pixels=True)
    made = [e.value for e in header.iterall() if e.keyword in ("InstanceCreationTime", "ContentTime",
                                                               "ContributionDateTime")]
    for value in sorted({str(value).encode() for value in made}, key=len, reverse=True):
        text = text.replace(value, b"0" * len(value))
    return text


def objects(pacs):
    """Digest of each object that the PACS has."""
    return sorted(hashlib.sha256(without_times(path)).hexdigest() for path in pacs.files())


@pytest.mark.parametrize("shared", SHARED)
def test_same_bytes_as_local(folder, things, shared):
    pet = h.simulated_once("pet", "--scanner", "small", "--phantom", "cylinder", "--radius", 40, "--length", 40,
                           "--counts", 20000)
    found = []
    for name in ("local", "pilot"):
        local = name == "local"
        n, pacs = cluster_node(folder, things, local=local, shared=shared and not local, name=name, device='"cpu:1"')
        n.more_protocols = ', { name = "pet"; kind = "pet"; iterations = 1; }'
        n.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "pet" ]; destinations = [ "pacs" ]; }'
        n.write_conf()
        n.start()
        pilots = [] if local else [Pilot(n, things, "d1"), Pilot(n, things, "d2")]
        for pilot in pilots:
            pilot.connected()
        h.send(n.port, exam(folder))
        h.send(n.port, exam(folder, "R", 2))
        h.send(n.port, [os.path.join(pet, f) for f in sorted(os.listdir(pet)) if f.endswith(".dcm")])
        n.wait_states("delivered", "delivered", "delivered")
        found.append(objects(pacs))
        if not local:
            check(all("pilot d" in text for job in n.jobs() for text in made_by(n, job["id"])),
                  "not computed by pilots")
            wait_for("no files remain", lambda: not any(p.files() for p in pilots))
    check(len(found[0]) > 3 and found[0] == found[1], f"other objects: {found}")


@pytest.mark.tier2("large")
def test_a_large_exam(folder, things):
    """Files above the limit of what waits to be sent follow as soon as it was sent: not after a sign of life, here
    after 300 s."""
    n, _ = cluster_node(folder, things, lease=3600.0)
    n.protocol.update(iterations=1, slice_spacing=5.0)
    n.write_conf()
    n.start()
    Pilot(n, things, "d1").connected()
    files = h.simulate(os.path.join(folder, "large"), binning=4)
    check(sum(os.path.getsize(f) for f in files) > 25e6, "the exam is too small for this test")
    h.send(n.port, files)
    n.wait_states("delivered", seconds=250 / h.PATIENCE)  # less than 300


def test_cancelled(folder, things):
    n, _ = cluster_node(folder, things)
    n.make_long()
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    job = running(n, pilot)
    n.command("cancel", str(job))
    wait_for("the pilot stops", lambda: "case-cancelled" in pilot.log_text() and not pilot.files())
    n.make_quick()
    n.command("retry", str(job))
    n.wait_states("delivered")
    check(pilot.process.poll() is None, "the pilot ended")
    check(re.fullmatch(r"cpu \(1 thread.*\) of [1-9][0-9]* GB, pilot d1", made_by(n, job)[-1]), f"{made_by(n, job)}")


def test_who_is_refused(folder, things):
    """Another version, a token that was used, another secret: with the reason at both ends."""
    n, _ = cluster_node(folder, things)
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    later = "9999999999999"
    said = hello(n, later, "0.0 (other)")
    check("REFUSED" in said and "it is version 0.0 (other)" in said, said)
    said = hello(n, later, "0.0 (other)")
    check("REFUSED" in said and f"token {later} of pilot 'd1' was used before" in said, said)
    other = Pilot(n, things, "d1", secret="0" * 64, options=["--patience", "1"])
    check(other.process.wait(60) == 7, "another exit code")
    check("the node refused the handshake" in other.log_text(), other.log_text())
    for reason in ("it is version 0.0 (other)", "was used before", "its secret is not the node's"):
        wait_for(f"it is logged: {reason}", lambda reason=reason: reason in n.log_text())
    check("d1" in os.listdir(os.path.join(n.spool, "pilots")), "no secret")
    n.command("pilot-token", "--remove", "d1")
    check(not os.listdir(os.path.join(n.spool, "pilots")), "the secret remains")


def test_a_clock_that_was_ahead(folder, things):
    """A token from a clock that is years ahead: the next pilot is told so, continues by itself, and no token is
    accepted twice."""
    n, _ = cluster_node(folder, things)
    n.start()
    n.command("pilot-token", "d1")
    ahead = 9999999999999
    hello(n, ahead, "0.0 (other)")
    pilot = Pilot(n, things, "d1", options=["--patience", "20"]).connected()
    check("token" in pilot.log_text() and f"older than the last one, {ahead}" in pilot.log_text(), pilot.log_text())
    check(int(h.read_file(os.path.join(n.spool, "pilots", "d1.used"))) == ahead + 1, "another number")
    for number in (ahead - 1, ahead, ahead + 1):
        said = hello(n, number, "0.0 (other)")
        check(f"token {number} of pilot 'd1' was used before" in said, said)
    said = hello(n, 1 << 54, "0.0 (other)")
    check("REFUSED" not in said, f"not a token: {said}")


def test_a_crowd(folder, things):
    """Many silent connections of one address push out each other, and nobody else."""
    n, _ = cluster_node(folder, things)
    n.start()
    wait_for("a seat waits for pilots", lambda: n.processes("seat"))
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", n.cluster_port)))
        for _ in range(90):
            stack.enter_context(socket.create_connection(("127.0.0.1", n.cluster_port),
                                                         source_address=("127.0.0.2", 0)))
        wait_for("they are too many", lambda: n.log_text().count("too many handshakes") >= 29)
        slow.setblocking(False)
        try:
            # after 5 s the node closes it
            check(slow.recv(1) != b"" or time.monotonic() - began > 5, "the slow peer was pushed out")
        except BlockingIOError:
            pass
        Pilot(n, things, "d1").connected()
    wait_for("those that were not logged one by one are counted",
             lambda: "more connections of pilots were refused within" in n.log_text())
    pushed = [line for line in n.log_text().splitlines() if "too many handshakes" in line]
    check(len(pushed) == 30 and all("from=127.0.0.2 " in line for line in pushed), f"{len(pushed)} {pushed[:3]}")


def detail_of(paths, **more):
    """What a pilot says about objects, for LIAR."""
    objects_ = []
    for path in paths:
        header = pydicom.dcmread(path, stop_before_pixels=True)
        objects_.append({"file": os.path.basename(path), "sop_class": header.SOPClassUID,
                         "sop_instance": header.SOPInstanceUID,
                         "series": header.SeriesInstanceUID, "kind": "slices", **more})
    return {"objects": objects_}


def lie(n, ident, detail, results, things):
    """A pilot that returns these objects, whatever its case is. Its output."""
    said = os.path.join(n.folder, ident + ".json")
    with open(said, "w", encoding="ascii") as f:
        json.dump(detail, f)
    secret = n.command("pilot-token", ident).stdout.strip()
    spool = [n.spool] if n.shared else []
    return h.run(LIAR, f"127.0.0.1:{n.cluster_port}", ident, secret, said, results, *spool, code=None).stdout


def test_the_same_progress_for_ever(folder, things):
    """It is no progress: the case gets away from a pilot that hangs and still sends."""
    h.need(LIAR)
    n, _ = cluster_node(folder, things, lease=60.0, attempts=1, worker_timeout=2)
    n.start()
    h.send(n.port, exam(folder))
    n.wait_states("ready")
    secret = n.command("pilot-token", "stuck").stdout.strip()
    command = [LIAR, f"127.0.0.1:{n.cluster_port}", "stuck", secret, "-", folder]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as stuck:
        try:
            n.wait_states("failed")
        finally:
            stuck.kill()
    check("no progress" in n.jobs()[0]["reason"], n.jobs())


@pytest.mark.parametrize("shared", SHARED)
def test_false_results(folder, things, shared):
    """Objects of another patient or study, too many bytes, one name twice: refused before any is delivered; another
    pilot gets the case."""
    h.need(LIAR)
    files = exam(folder)
    own, other = os.path.join(folder, "own"), os.path.join(folder, "other")
    n, pacs = cluster_node(folder, things, shared=shared, lease=60.0, attempts=20, reserve='"1 MB"',
                           max_result='"100 MB"')
    n.start()
    first = Pilot(n, things, "d0").connected()
    h.send(n.port, files)
    n.wait_states("delivered")
    first.kill()
    right = pacs.files()
    shutil.copytree(os.path.dirname(right[0]), own)
    results = sorted(os.path.join(own, name) for name in os.listdir(own))
    edited_all(results, other, PatientID="OTHER-77", PatientName="Other^Person")
    study = os.path.join(folder, "study")
    edited_all(results, study, StudyInstanceUID="1.2.3.4.5")
    big = [{"bytes": 10**9}] if not shared else []
    lies = [(other, {},
             "the headers name different patients: Patient ID (0010,0020), Patient's Name (0010,0010) differ"),
            (study, {}, "its Study Instance UID (0020,000D) is 1.2.3.4.5, that of the images is"),
            (own, {"series": "1.2.3"}, "Series Instance UID (0020,000E)"),
            *((own, more, "objects have 1000 MB; with this node.max_result they may have") for more in big)]
    h.send(n.port, exam(folder, "L", 3))
    before = len(pacs.files())
    for i, (where, more, reason) in enumerate(lies):
        said = lie(n, f"liar{i}", detail_of([os.path.join(where, os.path.basename(path)) for path in results], **more),
                   where, things)
        check("REFUSED the result of pilot liar is rejected: " in said and reason in said, f"{reason}: {said}")
        wait_for("the reason is logged", lambda i=i: f"pilot-blocked pilot=liar{i} " in n.log_text())
        check("OTHER-77" not in n.log_text() and "Other^Person" not in n.log_text(), "patient data in the log")
    twice = detail_of(results)
    twice["objects"].append(dict(twice["objects"][0]))
    said = lie(n, "twice", twice, own, things)
    check("two objects of a result have the file name" in said, said)
    check(len(pacs.files()) == before, "an object was delivered")
    # Its secret is of no more use, until there is another one.
    said = hello(n, 1 << 52, "any", ident="liar0")
    check("REFUSED pilot 'liar0' is blocked" in said, said)
    Pilot(n, things, "d1").connected()
    n.wait_states("delivered", "delivered")
    count = len(lies) + 1
    wait_for(f"the pilots are listed: {n.list()['pilots']}", lambda: n.list()["pilots"]
             == {"connected": 1, "working": 0, "blocked": count})
    text = n.command("list").stdout
    check(f"\nPilots: 1 connected, 0 of them working, {count} blocked; `tomonode devices -c FILE` names" in text, text)
    job = n.jobs()[-1]["id"]
    check("pilot d1" in made_by(n, job)[-1] and len(made_by(n, job)) == len(lies) + 2, f"{made_by(n, job)}")
    why = [d["reason"] for d in n.events(job, "interrupted")]
    check(len(why) == len(lies) + 1 and "is rejected: the object" in why[0], f"{why}")
