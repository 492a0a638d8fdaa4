# SPDX-License-Identifier: Apache-2.0
"""The whole path with pilots as Slurm jobs: storescu, node, pilots on three machines (of one), Orthanc. The images are
those of a node that reconstructs by itself."""
import io
import os
import signal

import pytest

from tools import cluster_tools as c
from tools.node_harness import Node, Orthanc, TOMONODE, check, need, send, simulate, wait_for
from tools.slurm_tools import need_slurm

EXAMS = 4
pytestmark = pytest.mark.tier2("Slurm")


@pytest.fixture(scope="module", autouse=True)
def programs():
    need_slurm()
    need("storescu", "Orthanc")


def exams(folder):
    return [simulate(os.path.join(folder, f"exam{i}"), "--seed", i, "--views", 9) for i in range(1, EXAMS + 1)]


def results(node, orthanc, files):
    """Send the exams; what Orthanc has when all are delivered: SOP Instance UID -> object."""
    for exam in files:
        send(node.port, exam)
    node.wait_states(*["delivered"] * len(files), seconds=180)
    found = orthanc.data_sets()
    check(len(found) == len(files), f"{len(found)} objects of {len(files)} exams")
    return found


def without_run(image):
    """The object as bytes of a file, without what depends on the time of its reconstruction."""
    for keyword in ("InstanceCreationDate", "InstanceCreationTime", "ContentDate", "ContentTime", "SeriesDate",
                    "SeriesTime"):
        if keyword in image:
            delattr(image, keyword)
    for equipment in image.ContributingEquipmentSequence:
        if "ContributionDateTime" in equipment:
            del equipment.ContributionDateTime
    data = io.BytesIO()
    image.save_as(data)
    return data.getvalue()


@pytest.mark.parametrize("shared", [False, True])
def test_pilots_make_the_same_objects(folder, things, shared):
    files = exams(folder)
    archives = []
    for name in ("local", "slurm"):
        orthanc = Orthanc(os.path.join(folder, name + "-pacs"))
        things.append(orthanc)
        orthanc.start()
        archives.append(orthanc)
    local = Node(os.path.join(folder, "local"), archives[0].port)
    things.append(local)
    local.start()
    expected = results(local, archives[0], files)
    local.stop()

    slurm = c.start_slurm(folder, things)
    node = c.cluster_node(folder, slurm, archives[1].port, program=f'"{TOMONODE}"', output=f'"{folder}/pilot.%j"')
    node.cluster["shared_spool"] = "true" if shared else "false"
    c.write(node)
    things.append(node)
    node.start()
    found = results(node, archives[1], files)
    check(found.keys() == expected.keys(), f"other objects: {sorted(found)}, not {sorted(expected)}")
    for uid, image in expected.items():
        check(without_run(image) == without_run(found[uid]), f"{uid} has other bytes")
    check(c.cluster(node)["submitted"] > 0, "no pilot was submitted")
    devices = {e["detail"]["device"] for job in node.jobs() for e in node.show(job["id"])["events"] if e["event"]
               == "started"}
    check(devices and not node.processes("worker"), f"a local worker ran: {devices}")
    wait_for("idle pilots end", lambda: not slurm.jobs())
    wait_for("their secrets are removed", lambda: not os.listdir(os.path.join(node.spool, "pilots")))


def test_cancelled_case_of_a_stopped_pilot(folder, things):
    """It does not answer: its job alone is cancelled, and another pilot comes for the next exam, although there may be
    only one."""
    orthanc, slurm = Orthanc(os.path.join(folder, "pacs")), c.start_slurm(folder, things)
    things.append(orthanc)
    orthanc.start()
    node = c.cluster_node(folder, slurm, orthanc.port, program=f'"{TOMONODE}"', output=f'"{folder}/pilot.%j"', max=1,
                          idle=3600.0)
    node.protocol.update(iterations=1000, slice_spacing=1.0)
    c.write(node)
    things.append(node)
    node.start()
    other = slurm.command("sbatch", "--parsable", "--job-name=tomonode-0123456789ab", "--output=/dev/null",
                          stdin="#!/bin/sh\nsleep 1000\n")
    first, second = exams(folder)[:2]
    send(node.port, first)
    job = node.wait_states("running")[0]["id"]
    pilot = next(number for number, in slurm.jobs("%i") if number != other)
    pid, = slurm.processes_of("pilot")
    node.protocol.update(iterations=1, slice_spacing=5.0)
    c.reload(node)
    os.kill(pid, signal.SIGSTOP)
    node.command("cancel", str(job))
    send(node.port, second)
    node.wait_states("cancelled", "delivered", seconds=120)
    ends = node.log_text()
    check("did not stop a case within 10 s" in ends and ends.count(" pilot-cancelled ") == 1
          and f"job={pilot} " in ends[ends.index(" pilot-cancelled "):],
          f"not cancelled: {ends[-2000:]}")
    left = [number for number, in slurm.jobs("%i")]
    check(other in left and pilot not in left and len(left) == 2, f"jobs are {left}")
