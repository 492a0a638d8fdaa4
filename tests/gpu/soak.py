#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run many small jobs in a row through the workers of one node, and test that its memory does not grow.

    tests/gpu/soak.py [--jobs 1000] [--devices LIST] [--protocol NAME] [--set KEY=VALUE] [--json FILE]

Exams of a few small projections are sent in batches, each with new UIDs. After each batch, when all is delivered and no job runs,
the memory of every process of the node (VmRSS), their open files, and the memory in use on the GPUs (nvidia-smi, if present; so
other users of the GPU disturb it) are recorded. The memory of a worker that serves several jobs must not grow: between the second quarter and the
last the median may grow by --limit-mb (RSS), or by nothing on the GPU and in open files. Exit 0: it does not grow, 1: it grows, or a job
failed. If the node starts a process for each job, there is no worker between jobs; then only manager and GPU are tested.
"""
import argparse
import json
import os
import shutil
import sys
import time

import node_bench as bench


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--jobs", type=int, default=1000)
    a.add_argument("--batch", type=int, default=20, help="jobs between two readings; default 20")
    a.add_argument("--devices", default="auto")
    a.add_argument("--protocol", default="dbt-osem-full")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    a.add_argument("--binning", type=int, default=8, help="of the simulated detector; default 8")
    a.add_argument("--detector", default="1408x1792", help="its bins before that; default 1408x1792")
    a.add_argument("--projections", type=int, default=9)
    a.add_argument("--limit-mb", type=float, default=4.0, help="growth of a process's memory that is allowed; default 4")
    a.add_argument("--work")
    a.add_argument("--timeout", type=float, default=120, help="s until a batch must be delivered")
    a.add_argument("--json")
    return a.parse_args()


def process_memory(node):
    """kind/number: (MB, open files) of processes that stay."""
    found = {}
    for what, pid in node.processes():
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                kb = next((int(line.split()[1]) for line in f if line.startswith("VmRSS")), 0)
            found[f"{what} {pid}"] = (kb / 1024, len(os.listdir(f"/proc/{pid}/fd")))
        except OSError:
            continue  # it ended meanwhile
    return found


def reading(node, jobs, began):
    return {"jobs": jobs, "seconds": time.time() - began, "processes": process_memory(node),
            "gpu_mb": [float(row[0]) for row in bench.gpu_query("memory.used")]}


def quarters(readings, value):
    """Median in the second quarter and in the last, of what all readings of both have; None where one lacks it."""
    n = len(readings)
    parts = [[value(r) for r in readings[n // 4:n // 2 or 1]], [value(r) for r in readings[3 * n // 4:]]]
    if any(not p or None in p for p in parts):
        return None
    return [bench.median(p) for p in parts]


def judge(readings, limit):
    """Print a line for each figure; return the figures that grow."""
    grows = []
    names = sorted({name for r in readings for name in r["processes"]})
    figures = [(name, lambda r, n=name: r["processes"].get(n, (None, None))[0], limit, "MB") for name in names]
    figures += [(name + " open files", lambda r, n=name: r["processes"].get(n, (None, None))[1], 0, "") for name in names]
    figures += [(f"GPU {i}", lambda r, i=i: r["gpu_mb"][i] if i < len(r["gpu_mb"]) else None, 0, "MB")
                for i in range(len(readings[0]["gpu_mb"]))]
    for name, value, allowed, unit in figures:
        both = quarters(readings, value)
        if not both:
            continue
        verdict = "flat" if both[1] <= both[0] + allowed else "GROWS"
        print(f"{name:<32}{both[0]:>10.1f} ->{both[1]:>10.1f} {unit:<3} {verdict}")
        if verdict != "flat":
            grows.append(name)
    if not any(name.startswith("worker ") and quarters(readings, lambda r, n=name: r["processes"].get(n, (None,))[0]) for name in names):
        print("no worker lived through all of it: this node starts one for each job")
    return grows


def soak(args, work):
    receiver = node = None
    readings, devices, sent = [], set(), 0
    exams = [bench.Exam(os.path.join(work, f"exam{i}"), "--binning", str(args.binning), "--detector", args.detector, "--views", str(args.projections), "--seed", str(i + 1),
                        "--study", f"2.25.{10**36 + i}") for i in range(min(args.batch, args.jobs))]
    try:
        receiver = bench.Receiver(os.path.join(work, "pacs"))
        node = bench.Node(os.path.join(work, "node"), receiver.port, args.devices, args.protocol, args.set, 'log_level = "notice";')
        began = time.time()
        while sent < args.jobs:
            batch = exams[:args.jobs - sent]
            for exam in batch:
                exam.renew(sent + 1)
            bench.send(node.port, [f for e in batch for f in e.files], args.timeout)
            sent += len(batch)
            jobs = node.delivered(sent, args.timeout)
            receiver.clear()
            readings.append(reading(node, sent, began))
            if len(readings) % 10 == 1 or sent == args.jobs:
                shown = node.show(jobs[-1]["id"])
                devices |= {e["detail"].get("device", "?") for e in shown["events"] if e["event"] == "reconstructed"}
                r = readings[-1]
                bench.say(f"{sent} jobs, {r['seconds']:.0f} s, GPU {r['gpu_mb']} MB, "
                          + ", ".join(f"{name} {mb:.1f} MB" for name, (mb, _) in r["processes"].items()))
    finally:
        for thing in (node, receiver):
            if thing:
                thing.stop()
    print(f"{sent} jobs of {args.projections} projections, detector {args.detector}, binning {args.binning}, {args.protocol}, on {', '.join(sorted(devices))}:"
          f" {readings[-1]['seconds']:.0f} s, {1000 * readings[-1]['seconds'] / sent:.0f} ms each; second quarter -> last quarter")
    return readings, judge(readings, args.limit_mb)


def main():
    args = arguments()
    if args.jobs < 4 * args.batch:
        args.batch = max(1, args.jobs // 4)
    work = bench.work_folder(args.work)
    try:
        readings, grows = soak(args, work)
    except bench.Trouble as e:
        sys.exit(f"soak: {e}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if args.json:
        with open(args.json, "w", encoding="ascii") as f:
            json.dump({"readings": readings, "grows": grows}, f, indent=1)
    sys.exit(f"soak: not flat: {', '.join(grows)}" if grows else 0)


main()
