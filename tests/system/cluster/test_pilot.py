#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pilots: processes that reconstruct for a node over a connection. Same objects as a local worker; who is refused; cancelled cases."""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tools import node_harness as h  # noqa: E402
from tools.node_harness import check, wait_for  # noqa: E402
from tools.pilot_tools import Pilot, cluster_node, exam, hello, long_case, made_by, quick_case, running  # noqa: E402


try:
    import pydicom
except ImportError:
    print("skipped: pydicom is not installed")
    sys.exit(77)
h.need(h.TOMONODE, "storescu", "storescp", "echoscu")


def without_times(path):
    """The bytes of an object, with zeros for the times at which it was made."""
    with open(path, "rb") as f:
        text = f.read()
    header = pydicom.dcmread(path, stop_before_pixels=True)
    made = [e.value for e in header.iterall() if e.keyword in ("InstanceCreationTime", "ContentTime", "ContributionDateTime")]
    for value in sorted({str(value).encode() for value in made}, key=len, reverse=True):
        text = text.replace(value, b"0" * len(value))
    return text


def objects(pacs):
    """Digest of each object that the PACS has."""
    return sorted(hashlib.sha256(without_times(path)).hexdigest() for path in pacs.files())


def same_bytes_as_local(folder, things, shared=False):
    pet = os.path.join(folder, "pet")
    h.run(h.TOMONODE, "simulate", "pet", "-o", pet, "--scanner", "small", "--phantom", "cylinder", "--radius", "40", "--length", "40", "--counts", "20000")
    found = []
    for name in ("local", "pilot"):
        local = name == "local"
        n, pacs = cluster_node(folder, things, local=local, shared=shared and not local, name=name, device='"cpu:1"')
        n.more_protocols = ', { name = "pet"; kind = "pet"; iterations = 1; }'
        n.more_routes = ', { name = "pet"; kind = "pet"; protocol = "pet"; destinations = [ "pacs" ]; }'
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
            check(all("pilot d" in text for job in n.jobs() for text in made_by(n, job["id"])), "not computed by pilots")
            check(not any(p.files() for p in pilots), f"files remain: {[p.files() for p in pilots]}")
    check(len(found[0]) > 3 and found[0] == found[1], f"other objects: {found}")


def same_bytes_from_a_shared_spool(folder, things):
    same_bytes_as_local(folder, things, shared=True)


def a_large_exam(folder, things):
    """Files above the limit of what waits to be sent follow as soon as it was sent: not after a sign of life, here after 300 s."""
    n, _ = cluster_node(folder, things, lease=3600.0)
    n.protocol.update(iterations=1, slice_spacing=5.0)
    n.write_conf()
    n.start()
    Pilot(n, things, "d1").connected()
    files = h.simulate(os.path.join(folder, "large"), binning=4)
    check(sum(os.path.getsize(f) for f in files) > 25e6, "the exam is too small for this test")
    h.send(n.port, files)
    n.wait_states("delivered", seconds=60)


def cancelled(folder, things):
    n, _ = cluster_node(folder, things)
    long_case(n)
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    job = running(n, pilot)
    n.command("cancel", str(job))
    wait_for("the pilot stops", lambda: "case-cancelled" in pilot.log_text() and not pilot.files())
    quick_case(n)
    n.command("retry", str(job))
    n.wait_states("delivered")
    check(pilot.process.poll() is None, "the pilot ended")


def who_is_refused(folder, things):
    """Another version, a token that was used, another secret: with the reason at both ends."""
    n, _ = cluster_node(folder, things)
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    later = "9999999999999"
    said = hello(n, pilot, later, "0.0 (other)")
    check("REFUSED" in said and "it is version 0.0 (other)" in said and "install the same version" in said, said)
    said = hello(n, pilot, later, "0.0 (other)")
    check("REFUSED" in said and f"token {later} of pilot 'd1' was used before" in said, said)
    other = Pilot(n, things, "d1", secret="0" * 64, options=["--patience", "1"])
    check(other.process.wait(60) == 7, "another exit code")
    check("the node refused the handshake" in other.log_text(), other.log_text())
    for reason in ("it is version 0.0 (other)", "was used before", "no handshake with a pilot"):
        check(reason in n.log_text(), f"not logged: {reason}")
    check("d1" in os.listdir(os.path.join(n.spool, "pilots")), "no secret")
    n.command("pilot-token", "--remove", "d1")
    check(not os.listdir(os.path.join(n.spool, "pilots")), "the secret remains")


if __name__ == "__main__":
    h.main([a_large_exam, same_bytes_as_local, same_bytes_from_a_shared_spool, cancelled, who_is_refused], beside=3)
