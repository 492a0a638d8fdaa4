#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the node, or of any one of its processes, at random moments of an exam's way through it; the sender sends
again what was not acknowledged. In the end every acknowledged image is there, nothing else lies about, and the PACS has
exactly one result of each exam.

    soak_kill.py [--kills N] [--seed S] [--minutes M] [--binning B] [--device NAME] [--pacs orthanc|python]

Exams of 25 images of a detector binned by 8 (by 1: 500 MB an exam, and results at 0.34 mm), every other one killed
twice, until there were N kills (7) or the minutes are over. The PACS is Orthanc, where it is installed, else the
archive of commit_peer; both are asked for storage commitment. Only the standard library is needed, so that a node on a
bare machine with a GPU can be killed too (TOMONODE: its program)."""
import argparse
import os
import random
import shutil
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
from tools import contract_tools as c
from tools import kill_tools
from tools import node_harness as h
from tools.node_harness import check

ROLES = kill_tools.ROLES + ["all", "manager", "worker"]  # more often those that hold most


class Moments(kill_tools.Run):
    """Kills at moments that are counted from the start of sending."""

    def exam(self, moments):
        study, objects = self.next_exam()
        died = []
        for moment in moments:
            sender = threading.Thread(target=self.ledger.send, args=(self.node.port, objects),
                                      kwargs={"max_pdu": 131072}, daemon=True)
            sender.start()
            time.sleep(moment)
            alive = c.roles(self.node)
            died.append(self.hit(self.rng.choice([role for role in ROLES if role == "all" or role in alive]),
                                 "a moment"))
            sender.join(120)
            check(not sender.is_alive(), "the sender hangs")
            again = c.revive(self.node)
            self.restarts += again
            missing = self.ledger.missing(self.node.spool,
                                          [o.uid for o in objects if o.uid in self.ledger.acknowledged])
            check(not missing, f"acknowledged and not stored: {missing[:3]}")
            if again and not self.node.node.get("retention_space"):  # else it may be removing just now
                self.ledger.check_nothing_else(self.node.spool)
        self.finish(study, objects, 120 + 3 * self.span)
        return died

    def measure(self):
        """How long an exam takes when nobody kills anything."""
        began = time.monotonic()
        self.span = 60
        self.finish(*self.next_exam())
        self.span = time.monotonic() - began


def new_run(options, folder, things, rng):
    node = h.Node(os.path.join(folder, "node"), 0, device=f'"{options.device}"')
    if options.pacs == "orthanc":
        archive = kill_tools.Orthanc(os.path.join(folder, "pacs"), tomonode=node.port)
        archive.start()
    else:
        archive = kill_tools.Partner(node.port)
    things += [node, archive]
    node.pacs_port, node.status = archive.port, {"port": 0}
    node.destination.update(kill_tools.COMMITMENT)
    if options.binning < 4:
        node.protocol.update(voxel=0.34, slice_spacing=1.0)
        node.node["retention_space"] = '"4 GB"'
    node.write_conf()
    exams = c.Exams(os.path.join(folder, "exam"), "--system", "siemens-inspiration", "--binning", str(options.binning))
    shutil.rmtree(os.path.join(folder, "exam"))
    c.start(node)
    return Moments(node, archive, exams, rng)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=7)
    parser.add_argument("--seed", type=int, default=h.seed())
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--binning", type=int, default=8)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pacs", choices=("orthanc", "python"),
                        default="orthanc" if shutil.which("Orthanc") else "python")
    options = parser.parse_args()
    h.need(h.TOMONODE, *(["Orthanc"] if options.pacs == "orthanc" else []))
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    with c.scratch() as (folder, things):
        run = new_run(options, folder, things, rng)
        run.measure()
        size = sum(len(raw) for raw in run.exams.raw)
        print(f"exams of {len(run.exams)} images, {size / 1e6:.0f} MB, {run.span:.2f} s when undisturbed, "
              f"PACS: {options.pacs}", flush=True)
        over = c.until(options.minutes)
        while run.kills < options.kills and not over():
            moments = [rng.uniform(0, run.span) for _ in range(1 + len(run.studies) % 2)]
            died = run.exam(moments)
            told = ", ".join(f"{moment:.3f} s ({who})" for moment, who in zip(moments, died))
            print(f"  exam {len(run.studies)}: killed at {told}: one result", flush=True)
        run.conclude("kill -9 at random moments of full exams",
                     [("MB an exam, s when undisturbed", f"{size / 1e6:.0f}, {run.span:.2f}")])


if __name__ == "__main__":
    main()
