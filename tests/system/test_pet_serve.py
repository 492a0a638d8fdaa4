# SPDX-License-Identifier: Apache-2.0
"""PET through the node: sinogram objects go in by storescu in any order, a series comes out, object by object the one
that `tomonode recon` makes; what is missing, wrong or of no known scanner is held with a sentence, and the node
lives."""
import glob
import os
import re
import subprocess
import urllib.request

import pydicom
import pytest

from tools import node_harness as h
from tools import pet_tools as t
from tools.node_harness import check

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "dcmsend", "dciodvfy")

PET = "1.2.840.10008.5.1.4.1.1.128"
QUICK = {"algorithm": '"mlem"', "iterations": 4, "matrix": 32}
HEADER, CHUNK, SHA256 = (0x0071, 0x1002), (0x0071, 0x1010), (0x0071, 0x1014)


def set_protocol(node, **keys):
    values = "".join(f" {k} = {v};" for k, v in {**QUICK, **keys}.items())
    node.more_protocols = f', {{ name = "quick-pet"; kind = "pet";{values} }}'
    node.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "quick-pet" ]; destinations = [ "pacs" ]; }'
    node.write_conf()


def both(folder, things, **node):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, **node)
    set_protocol(n)
    things += [n, pacs]
    return n, pacs


def objects_in(folder):
    return sorted(glob.glob(os.path.join(folder, "*.dcm")))


def simulate(folder, *options):
    h.run(h.TOMONODE, "simulate", "pet", "--scanner", "small", "--phantom", "f-shape", "--counts", "2e6", *options,
          "-o", folder)
    return objects_in(folder)


def in_chunks(folder, *options, chunk=200000):
    """A simulated acquisition with attenuation and randoms, imported in chunks of so many bytes."""
    h.run(h.TOMONODE, "simulate", "pet", "--scanner", "small", "--counts", "2e6", "--attenuation", "--randoms", "0.2",
          "--interfile",
          *options, "-o", folder)
    h.run(h.TOMONODE, "import", os.path.join(folder, "emission.hs"), "--attenuation",
          os.path.join(folder, "attenuation.hs"),
          "--additive", os.path.join(folder, "additive.hs"), "--chunk", str(chunk), "--set", "PatientPosition=HFS",
          "-o", os.path.join(folder, "objects"))
    return objects_in(os.path.join(folder, "objects"))


def start_sender(port, files):
    return subprocess.Popen(["storescu", "-R", "-v", "-aet", "SCANNER", "-aec", "TOMONODE", "127.0.0.1", str(port),
                             *files],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def send(port, files):
    sender = start_sender(port, files)
    text = sender.communicate(timeout=120 * h.PATIENCE)[0]
    check(sender.returncode == 0, text[-500:])
    check(h.acknowledged(text) == set(files), "not every object was acknowledged")


def send_beside(port, files, count):
    """Over `count` associations at a time."""
    for sender in [start_sender(port, files[i::count]) for i in range(count)]:
        text = sender.communicate(timeout=120 * h.PATIENCE)[0]
        check(sender.returncode == 0, text[-500:])


def received_by(pacs):
    files = pacs.files()
    found = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, files)}
    check(len(found) == len(files), "an object was sent twice")
    return found


def test_a_series_arrives_once(folder, things):
    n, pacs = both(folder, things)
    files = simulate(os.path.join(folder, "in"), "--attenuation")
    n.status = {"port": h.free_port()}
    set_protocol(n)
    pacs.start()
    n.start()
    send(n.port, files)
    job, = n.wait_states("delivered")
    check((job["kind"], job["instances"], job["expected"]) == ("pet", len(files), len(files)), job)
    received = received_by(pacs)
    check(len(received) == 15, f"{len(received)} slices")
    t.check_same(received, t.offline(n, os.path.join(folder, "offline"), files))
    check({d.SOPClassUID for d in received.values()} == {PET}, "PET Image Storage")
    for f in pacs.files():
        report = subprocess.run(["dciodvfy", f], capture_output=True, text=True, check=False)
        errors = [line for line in (report.stdout + report.stderr).splitlines() if line.startswith("Error")]
        check(not errors, f"dciodvfy: {errors}")
    show = n.show(job["id"])
    events = [e["event"] for e in show["events"] if e["event"] != "instance"]
    check(events[:4] == ["opened", "complete", "started", "reconstructed"] and events[-1] == "delivered", events)
    sent = [e["detail"] for e in show["events"] if e["event"] == "sent"]
    check(1 <= len(sent) < 15, f"{len(sent)} events for 15 objects")
    check([uid for d in sent for uid in d["sop_instances"]] == [o["sop_instance"] for o in job["result"]["objects"]],
          "each once, in order")
    check(job["destinations"][0]["objects"] == ["sent"] * 15, job["destinations"])
    made = next(e["detail"] for e in show["events"] if e["event"] == "reconstructed")
    check(made["profile"] == "small" and made["pet"]["planes"] == 47 and made["pet"]["units"] == "BQML", made)
    check(made["pet"]["facts"]["duration"] == "simulated", made["pet"]["facts"])
    check([s["stage"] for s in show["stages"]] == ["receive", "assemble", "wait", "check", "open", "read", "prepare",
                                                   "upload",
                                                   "reconstruct", "download", "write", "process", "send"],
          show["stages"])
    text = n.command("show", str(job["id"])).stdout
    check("result 15 objects in outbox/" in text and "(15 of 15 objects sent)" in text, text)
    origin = "simulated"
    check(re.search(r"\n  dose +" + re.escape(origin) + "\n", text), text)
    with urllib.request.urlopen(f"http://127.0.0.1:{n.status['port']}/jobs/{job['id']}", timeout=60) as page:
        check(origin in page.read().decode(), "the page")
    # A second acquisition on the warm worker: the sensitivity image is there already.
    send(n.port, simulate(os.path.join(folder, "again"), "--attenuation", "--seed", "2"))
    jobs = n.wait_states("delivered", "delivered")
    made = [e["detail"] for e in n.show(jobs[1]["id"])["events"] if e["event"] == "reconstructed"]
    check(made[0]["pet"]["sensitivity_cached"], made[0]["pet"])
    # What a result lacks is seen without --json.
    files = simulate(os.path.join(folder, "uncalibrated"), "--seed", "3")
    subprocess.run(["dcmodify", "-nb", "-ea", "(0054,1322)", *files], check=True, capture_output=True)
    send(n.port, files)
    jobs = n.wait_states("delivered", "delivered", "delivered")
    text = n.command("show", str(jobs[2]["id"])).stdout
    check(" warnings: " in text and "calibration" in text and re.search("\n  calibration factor +none\n", text), text)
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")


def test_chunks_and_roles_in_any_order(folder, things):
    """Several chunks of three roles, backwards, over three associations at a time; one that is missing is waited
    for."""
    n, pacs = both(folder, things)
    set_protocol(n, matrix=0, memory_limit='"6 MB"')  # the node and `recon` choose the same; 256 would not fit
    files = in_chunks(os.path.join(folder, "in"))
    check(len(files) == 9, files)
    pacs.start()
    n.start()
    send_beside(n.port, files[:4:-1] + files[3::-1], 3)
    job, = n.wait_states("held")
    check("8 of 9 instances" in job["reason"], job["reason"])
    check(not pacs.files(), "something was made of an incomplete acquisition")
    send(n.port, files[4:5])
    n.wait_states("delivered")
    received = received_by(pacs)
    check({d.Columns for d in received.values()} == {64}, "not the matrix that fits the bins")
    t.check_same(received, t.offline(n, os.path.join(folder, "offline"), files))


@pytest.mark.tier2("Orthanc; test_chunks_and_roles_in_any_order has storescp")
def test_in_orthanc(folder, things):
    """An acquisition with time of flight, in objects of 400 kB of three roles, over two associations at a time: Orthanc
    returns the series of `tomonode recon`."""
    h.need("Orthanc")
    pacs = h.Orthanc(os.path.join(folder, "orthanc"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    set_protocol(n)
    things += [n, pacs]
    files = in_chunks(os.path.join(folder, "in"), "--tof", "5,400,500", chunk=400000)
    check(len(files) == 18, files)
    pacs.start()
    n.start()
    send_beside(n.port, files, 2)
    job, = n.wait_states("delivered")
    check((job["instances"], job["expected"]) == (18, 18), job)
    received = pacs.data_sets()
    t.check_same(received, t.offline(n, os.path.join(folder, "offline"), files))
    check("5 TOF bins of 400 ps" in next(iter(received.values())).DerivationDescription, "without time of flight")
    check(set(received) == {o["sop_instance"] for o in job["result"]["objects"]},
          "Orthanc has the series and nothing else")
    series, = pacs.get("/series")
    found = pacs.get(f"/series/{series}")
    check((found["MainDicomTags"]["Modality"], len(found["Instances"])) == ("PT", 15), found)


def test_the_other_kind_is_refused(folder, things):
    """A protocol of the wrong kind, on the command line; and both kinds through one node."""
    n, pacs = both(folder, things)
    sinograms, images = simulate(os.path.join(folder, "in")), h.simulate(os.path.join(folder, "exam"), "--views", 9)
    out = os.path.join(folder, "out")
    p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "dbt-osem", "-o", out, *sinograms, code=4)
    check("protocol 'dbt-osem' is for cases of kind dbt, but this case is of kind pet" in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "pet-mlem", "-o", out, *images, code=4)
    check("protocol 'pet-mlem' is for cases of kind pet, but this case is of kind dbt" in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--set", "matrix=7", "-o", out, *sinograms, code=2)
    check("8 to 1024" in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "pet-mlem", "--set", "tile=auto", "-o", out,
              *sinograms, code=2)
    check("only protocols of kind dbt have it" in p.stderr, p.stderr)
    check(not os.path.exists(out) or not os.listdir(out), "something was written")
    pacs.start()
    n.start()
    send(n.port, sinograms)
    h.send(n.port, images)
    send(n.port, simulate(os.path.join(folder, "more"), "--seed", "3"))
    jobs = n.wait_states("delivered", "delivered", "delivered")
    check([j["kind"] for j in jobs] == ["pet", "dbt", "pet"]
          and [len(j["result"]["objects"]) for j in jobs] == [15, 1, 15], jobs)
    check(len(pacs.files()) == 31, f"{len(pacs.files())} objects arrived")
