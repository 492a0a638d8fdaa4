# SPDX-License-Identifier: Apache-2.0
"""Deliveries to a folder: a file for each object, complete or not there. A folder that is not there, and something that stands in
the way of an object, are failures with a reason, until they are gone."""
import glob
import os

from tools import node_harness as h
from tools.node_harness import check

h.need("storescu")


def failed(node, reason):
    """The case, when its delivery has failed with this reason."""
    return node.wait_jobs(f"a delivery fails: {reason}", lambda jobs: jobs and jobs[0]["destinations"]
                          and reason in jobs[0]["destinations"][0]["reason"] and jobs[0])


def test_obstacles_and_files(folder, things):
    path = os.path.join(folder, "archive")
    n = h.node_of_lines(folder, things, "research", f'kind = "folder"; path = "{path}";')
    h.send_lines(n, 1, 12)
    job = failed(n, "No such file or directory")
    h.run(h.TOMONODE, "test-peer", "-c", n.conf, "research", code=7)
    check(not os.path.exists(path), "the folder was made: below a mount point it would be on another disk")

    objects, study = job["result"]["objects"], n.show(job["id"])["job"]["study"]
    places = [os.path.join(path, study, o["series"], o["sop_instance"] + ".dcm") for o in objects]
    os.makedirs(places[-1])
    failed(n, places[-1])
    check(all(os.path.isfile(p) for p in places[:-1]), "the objects before the obstacle are not there")
    h.send_lines(n, 2, 2)
    second = n.wait_state(1, "delivered")["result"]["objects"]
    os.rmdir(places[-1])
    n.wait_state(0, "delivered")
    found = [p for p in glob.glob(path + "/**", recursive=True) if not os.path.isdir(p)]
    check(sorted(p for p in found if p in places) == sorted(places) and len(found) == len(places) + len(second), found)
    for place, o in zip(places, objects):
        with open(place, "rb") as got, open(os.path.join(n.spool, o["file"]), "rb") as wanted:
            check(got.read() == wanted.read(), f"{place} is not the object of the result")
