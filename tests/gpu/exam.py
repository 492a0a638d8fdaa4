#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the time of a whole exam through the node: from the last C-STORE response to the object complete at the receiver, by stages.

    tests/gpu/exam.py [--views 1|4] [--repeat N] [--stream] [--protocol NAME] [--devices LIST]
        [--sandbox auto|on|off] [--set KEY=VALUE] [--json FILE]

An exam at the detector's full resolution is simulated once, on a RAM disk; each repeat sends it with new UIDs with one storescu to a
`tomonode serve` with a spool on the RAM disk, whose PACS is storescp (bit preserving). Both run on this machine, PDUs of 128 KiB.
--views 4: left and right, CC and MLO, as four cases in one association. The first --warm-up repeats are printed but not counted.
--stream: repeats are sent without waiting for delivery, for the throughput in exams an hour. --binning N: a small trial.
Stages are those of `tomonode show --json`, medians over cases and counted repeats. "wall" is measured from outside.
"""
import argparse
import json
import os
import shutil
import sys
import time

import node_bench as bench

VIEWS = {1: (("L", "CC"),), 2: (("L", "CC"), ("R", "CC")), 4: (("L", "CC"), ("R", "CC"), ("L", "MLO"), ("R", "MLO"))}


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--views", type=int, choices=sorted(VIEWS), default=1)
    a.add_argument("--repeat", type=int, default=5, help="counted repeats; default 5")
    a.add_argument("--warm-up", type=int, default=1, help="repeats before those; default 1")
    a.add_argument("--stream", action="store_true", help="send without waiting for delivery")
    a.add_argument("--protocol", default="dbt-osem-full", help="default dbt-osem-full")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the protocol, as in the configuration")
    a.add_argument("--devices", default="auto", help="node.device of the configuration; default auto")
    a.add_argument("--sandbox", choices=("auto", "on", "off"), default="auto", help="node.sandbox of the configuration; default auto")
    a.add_argument("--binning", type=int, default=1, help="of the simulated detector")
    a.add_argument("--format", choices=("mg", "bp"), default="mg", help="a series, or one Breast Projection a view")
    a.add_argument("--simulate", action="append", default=[], metavar="OPTION=VALUE", help="further options of simulate dbt")
    a.add_argument("--work", help="folder on a RAM disk; default /dev/shm")
    a.add_argument("--timeout", type=float, default=300, help="s until an exam must be delivered")
    a.add_argument("--json", help="file for all figures")
    a.add_argument("--keep", action="store_true", help="leave the files")
    return a.parse_args()


def make_exams(args, work):
    began, exams = time.time(), []
    for number, (side, view) in enumerate(VIEWS[args.views]):
        options = [x for o in args.simulate for x in ("--" + o.split("=", 1)[0], *o.split("=", 1)[1:])]
        exams.append(bench.Exam(os.path.join(work, f"exam{number}"), "--side", side, "--view", view, "--binning", str(args.binning),
                                "--format", args.format, "--study", "2.25.1234567890123456789012345678901234567", *options))
    size = sum(e.size for e in exams)
    bench.say(f"simulated {sum(len(e.files) for e in exams)} objects, {size / 1e6:.0f} MB, in {time.time() - began:.1f} s")
    return exams, size


def case_figures(node, job):
    """Stages of a job, whatever this version of the node calls them."""
    shown = node.show(job["id"])
    stages = {s["stage"]: s["seconds"] for s in shown.get("stages", [])}
    made = [e["detail"] for e in shown.get("events", []) if e.get("event") == "reconstructed" and isinstance(e.get("detail"), dict)]
    detail = made[-1] if made else {}
    return {"job": job["id"], "stages": stages, "seconds": detail.get("seconds", {}), "device": detail.get("device", "?"),
            "voxels": detail.get("voxels"), "bytes_device": detail.get("bytes_device")}


def one_exam(args, exams, node, receiver, number):
    """Send an exam and wait for its result; return its figures."""
    for exam in exams:
        exam.renew(number)
    began, answered = bench.send(node.port, [f for e in exams for f in e.files], args.timeout)
    jobs = node.delivered((number + 1) * len(exams), args.timeout, 0.05)[-len(exams):]
    bench.wait_for("the receiver has written all objects", lambda: receiver.settled(len(exams)), 20)
    objects = receiver.complete()
    figures = {"send": answered - began, "wall": max(objects.values()) - answered, "exam": max(objects.values()) - began,
               "objects": len(objects), "bytes_out": receiver.size(), "cases": [case_figures(node, j) for j in jobs]}
    receiver.clear()
    node.forget_files()
    return figures


def stream(args, exams, node, receiver):
    """Run all repeats, one after the other; return the figures of all."""
    starts, total = [], args.warm_up + args.repeat
    for number in range(total):
        for exam in exams:
            exam.renew(number)
        starts.append(bench.send(node.port, [f for e in exams for f in e.files], args.timeout)[0])
        bench.say(f"exam {number + 1} of {total} sent")
    jobs = node.delivered(total * len(exams), args.timeout * total, 0.2)
    bench.wait_for("the receiver has written all objects", lambda: receiver.settled(total * len(exams)), 20)
    done = sorted(receiver.complete().values())
    skip = max(1, args.warm_up) * len(done) // total  # objects of the exams that are not counted
    span = done[-1] - done[skip - 1]
    counted = total - max(1, args.warm_up)
    if counted < 1:
        raise bench.Trouble("--stream needs two repeats and more")
    return {"exams": counted, "seconds": span, "exams_an_hour": 3600 * counted / span, "from_first_byte": done[-1] - starts[0],
            "cases": [case_figures(node, j) for j in jobs[-counted * len(exams):]]}


def table(exams, cases):
    """Medians of the stages: those that `show` prints, then the rest of what the worker wrote down."""
    print(f"{'stage':<16}{'median s':>10}{'least':>10}{'most':>10}")
    for key in ("stages", "seconds"):
        names = list(dict.fromkeys(name for c in cases for name in c[key]))
        if key == "seconds":
            print("-- as the worker wrote it down (stages overlap)")
        for name in names:
            values = [c[key][name] for c in cases if isinstance(c[key].get(name), (int, float))]
            if values:
                print(f"{name:<16}{bench.median(values):>10.3f}{min(values):>10.3f}{max(values):>10.3f}")
    if exams:
        print("-- from outside")
        for name, text in (("send", "send"), ("wall", "wall"), ("exam", "first byte to end")):
            values = [e[name] for e in exams]
            print(f"{text:<18}{bench.median(values):>8.3f}{min(values):>10.3f}{max(values):>10.3f}")


def measure(args, work):
    exams, size = make_exams(args, work)
    receiver = node = None
    result = {"views": args.views, "protocol": args.protocol, "set": args.set, "devices": args.devices, "binning": args.binning,
              "version": os.popen(f"'{bench.program()}' --version").readline().strip(), "cpus": os.cpu_count(),
              "gpus": bench.gpu_query("name", "driver_version", "memory.total"), "bytes_in": size}
    try:
        receiver = bench.Receiver(os.path.join(work, "pacs"))
        bench.touch_memory(work, 7 * size)  # spool and results: about 2.5 times what comes in, at either end
        node = bench.Node(os.path.join(work, "node"), receiver.port, args.devices, args.protocol, args.set,
                          extra=f'sandbox = "{args.sandbox}";')
        if args.stream:
            result["stream"] = stream(args, exams, node, receiver)
            counted, cases = [], result["stream"]["cases"]
        else:
            result["exams"] = []
            for number in range(args.warm_up + args.repeat):
                figures = one_exam(args, exams, node, receiver, number)
                result["exams"].append(figures)
                bench.say(f"exam {number + 1}{' (warm-up)' if number < args.warm_up else ''}: sent in {figures['send']:.3f} s, wall"
                          f" {figures['wall']:.3f} s, {figures['bytes_out'] / 1e6:.0f} MB in {figures['objects']} objects")
            counted = result["exams"][args.warm_up:]
            cases = [c for e in counted for c in e["cases"]]
        devices = sorted({c["device"] for c in cases})
        print(f"{result['version']}; {args.views} view{'s' if args.views > 1 else ''} of {size / args.views / 1e6:.0f} MB, {args.protocol},"
              f" voxels {cases[-1]['voxels']}, on {', '.join(devices)}")
        table(counted, cases)
        if args.stream:
            s = result["stream"]
            print(f"stream            {s['exams']} exams of {args.views} views in {s['seconds']:.2f} s: {s['exams_an_hour']:.0f} an hour")
        else:
            print(f"one at a time     {3600 / bench.median([e['exam'] for e in counted]):.0f} exams an hour")
            parts = [c["seconds"].get("reconstruct", 0) for c in cases]
            print(f"reconstruction    {100 * bench.median(parts) / bench.median([e['wall'] for e in counted]):.0f} % of the wall time")
    finally:
        for thing in (node, receiver):
            if thing:
                thing.stop()
    return result


def main():
    args = arguments()
    if args.repeat < 1 or args.warm_up < 0:
        sys.exit("exam: --repeat must be at least 1")
    work = bench.work_folder(args.work)
    try:
        result = measure(args, work)
    except bench.Trouble as e:
        sys.exit(f"exam: {e}")
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    if args.json:
        with open(args.json, "w", encoding="ascii") as f:
            json.dump(result, f, indent=1)


main()
