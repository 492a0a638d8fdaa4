#!/usr/bin/python3
"""kill -9 of the node, or of any one of its processes, at random moments of an exam's way through it; the sender sends again what was not
acknowledged.

At the end: every acknowledged image is there, nothing else lies about, and the PACS (Orthanc) has exactly one result for each exam.

    test_kill.py [--times N] [--seed S] [--binning B]

N exams (5), each with a kill, every other one with a second kill during recovery; detector binning 8, or 1 for full-size images.
"""
import argparse
import collections
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

import contract_tools as c
import node_harness as h
from node_harness import check, wait_for

try:
    import pydicom
except ImportError:
    print("skipped: pydicom is not installed")
    sys.exit(77)
h.need(h.TOMONODE, "storescu", "echoscu", "Orthanc")


def new_exam(files, folder, number):
    """The same images as another exam: other UIDs throughout."""
    os.makedirs(folder)
    uids, out = {}, []
    for i, f in enumerate(files):
        d = pydicom.dcmread(f)
        for name in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
            if name in d:
                setattr(d, name, uids.setdefault(name, f"2.25.{number}{len(uids)}{random.getrandbits(64)}"))
        d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = f"2.25.{number}9{i}{random.getrandbits(64)}"
        out.append(os.path.join(folder, f"{i:02}.dcm"))
        d.save_as(out[-1])
    return uids["StudyInstanceUID"], out


def start_sender(port, files):
    return subprocess.Popen(["storescu", "-v", "-aec", "TOMONODE", "-to", "5", "-ta", "5", "127.0.0.1", str(port), *files],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def rows(node):
    with sqlite3.connect(os.path.join(node.spool, "journal.db")) as db:
        return dict(db.execute("SELECT sop_instance, file FROM instance").fetchall())


def check_spool(node, acknowledged, swept=True):
    """What was acknowledged is there, whole; after a start nothing is there that no row names."""
    files = rows(node)
    for f in acknowledged:
        d = pydicom.dcmread(f)
        check(d.SOPInstanceUID in files, f"{f} was acknowledged and is not in the journal")
        stored = os.path.join(node.spool, files[d.SOPInstanceUID])
        check(os.path.exists(stored), f"{f} was acknowledged and is not in the spool")
        check(pydicom.dcmread(stored).PixelData == d.PixelData, f"{f} was stored with other pixels")
    if not swept:
        return
    check({os.path.basename(f) for f in files.values()} == set(node.stored_files()), "files in the spool that no row names")
    check(not os.listdir(os.path.join(node.spool, "incoming")), "leftovers in incoming")


ROLES = ["all", "all", "manager", "manager", "receiver", "association", "index", "worker", "deliver", "status"]


def kill_one(node):
    """Any process, or all of them; who died. Only a node without its manager is started again: the others must be replaced by it."""
    role = random.choice(ROLES)
    if not c.kill_role(node, role):
        role = random.choice(("all", "manager"))
        c.kill_role(node, role)
    return role


def one_exam(node, study, files, kills, span):
    """kills: moments in s, counted from the start of sending. The result's UID, and who was killed."""
    killed = []
    missing, acknowledged = list(files), set()
    for moment in kills:
        sender = start_sender(node.port, missing) if missing else None
        time.sleep(moment)
        killed.append(kill_one(node))
        if sender:
            text, _ = sender.communicate(timeout=60)
            acknowledged |= h.acknowledged(text)
        missing = [f for f in files if f not in acknowledged]
        check_spool(node, acknowledged, swept=c.revive(node))
    if missing:
        wait_for("the node answers C-ECHO", node.echo)
        acknowledged |= h.send(node.port, missing)
    check(acknowledged == set(files), f"only {len(acknowledged)} of {len(files)} were acknowledged in the end")

    def job():
        mine = [j for j in node.jobs() if node.show(j["id"])["events"][0]["detail"]["study"] == study]
        return mine[-1] if len(mine) == 1 and mine[0]["state"] == "delivered" else None
    done = wait_for(f"the exam is delivered; jobs are {node.states()}", job, span + 60)
    check(done["instances"] == len(files), f"{done['instances']} instances, not {len(files)}")
    check_spool(node, files, swept=False)
    return done["result"]["sop_instance"], killed


def measure(node, files, study):
    """How long an exam takes when nobody kills anything."""
    began = time.monotonic()
    h.send(node.port, files)
    wait_for("the first exam is delivered", lambda: node.states() == ["delivered"])
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--binning", type=int, default=8)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    random.seed(seed)
    sys.argv = sys.argv[:1]

    def killed(folder, things):
        pacs = h.Orthanc(os.path.join(folder, "pacs"))
        node = h.Node(os.path.join(folder, "node"), pacs.port)
        node.status = {"port": 0}
        node.write_conf()
        things += [node, pacs]
        if options.binning < 4:
            node.protocol.update(voxel=0.34, slice_spacing=1.0)
            node.write_conf()
        template = h.simulate(os.path.join(folder, "exam"), binning=options.binning)
        pacs.start()
        node.start()
        expected, victims = {}, collections.Counter()
        study, files = new_exam(template, os.path.join(folder, "0"), 1)
        span = measure(node, files, study)
        expected[study] = [node.jobs()[0]["result"]["sop_instance"]]
        print(f"seed {seed}: {options.times} exams of {len(files)} images, {span:.2f} s each when undisturbed", flush=True)
        for i in range(options.times):
            study, files = new_exam(template, os.path.join(folder, str(i + 1)), i + 2)
            kills = [random.uniform(0, span) for _ in range(1 + i % 2)]
            result, killed = one_exam(node, study, files, kills, span)
            expected[study] = [result]
            victims.update(killed)
            shutil.rmtree(os.path.dirname(files[0]))
            print(f"  exam {i + 1}: killed at {', '.join(f'{k:.3f} ({who})' for k, who in zip(kills, killed))} s: one result", flush=True)
        check(node.stop() == 0, "SIGTERM: the exit code is not 0")
        node.start()
        images, found, states = rows(node), pacs.objects(), node.states()
        lost = sum(not os.path.exists(os.path.join(node.spool, file)) for file in images.values())
        figures = [("kill -9", sum(victims.values())), ("of", ", ".join(f"{role} {n}" for role, n in sorted(victims.items()))),
                   ("exams, images acknowledged", f"{len(expected)}, {len(template) * len(expected)}"),
                   ("acknowledged images lost", len(template) * len(expected) - len(images) + lost),
                   ("results missing in the PACS", sum(study not in found for study in expected)),
                   ("exams with more than one result there", sum(len(uids) > 1 for uids in found.values())),
                   ("jobs that wait for a person", len(states) - states.count("delivered"))]
        c.print_table("kill -9 at random moments of full exams", figures)
        check(all(value == 0 for _, value in figures[3:]), "a figure that should be 0 is not")
        check(found == expected, f"the PACS holds {found}, not {expected}")

    h.main([killed])


if __name__ == "__main__":
    main()
