#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what an executor costs: from the last C-STORE response to the object at the receiver, for a local worker and for pilots.

    tests/gpu/executors.py [--device NAME] [--turns N] [--warm-up N] [--sizes small,full] [--set KEY=VALUE]... [--json FILE]

Three nodes run beside each other, each with an empty spool on a RAM disk and one device: `local` (a worker of the node), `shared` (a pilot
with the spool of the node) and `streamed` (a pilot that gets files over its connection); both pilots are connected before. In each turn
every node gets the same exam, one after the other, in a rotating order; while one works, the others are idle. The PACS is storescp.
Then tests/tls_copy of the bundle, else of $TOMONODE_BUILD or build/release, copies images and result over one TLS connection of
the loopback interface, from one process to another, with digest, write and fsync: what streamed files cost at least.

For each size of exam (small: detector binned by 8; full: its resolution): medians and quartiles, in ms, of that time, of the difference to
`local` in the same turn, of its parts by the journal (queue: the case waits for a device; work: until the result is recorded; delivery), of the
copy, and (streamed - local) / copy. The objects of the three must be the same bytes but for the times at which they were made, the
workers must have the same sandbox, and no file of a case may remain with a pilot. Exit 1: not so, or something failed.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import node_bench as bench

SIZES = {"small": ("--binning", "8"), "full": ("--binning", "1")}
VARIANTS = ("local", "shared", "streamed")
PARTS = (("queue", "complete", "started"), ("work", "started", "reconstructed"), ("delivery", "reconstructed", "delivered"))


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--device", default="cuda:0", help="of worker and pilots; default cuda:0")
    a.add_argument("--turns", type=int, default=15, help="counted turns of each size; default 15")
    a.add_argument("--warm-up", type=int, default=2, help="turns before those; default 2")
    a.add_argument("--sizes", default="small,full")
    a.add_argument("--protocol", default="dbt-osem-full")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the protocol, as in the configuration")
    a.add_argument("--sandbox", choices=("auto", "on", "off"), default="auto", help="node.sandbox of the configuration; default auto")
    a.add_argument("--work", help="folder on a RAM disk; default /dev/shm")
    a.add_argument("--timeout", type=float, default=300, help="s until an exam must be delivered")
    a.add_argument("--json", help="file for all figures")
    return a.parse_args()


def tls_copy():
    if bench.BUNDLED:
        return bench.dcmtk("tls_copy")
    build = os.environ.get("TOMONODE_BUILD", os.path.join(bench.TOP, "build", "release"))
    return os.path.join(build, "tests", "tls_copy"), dict(os.environ)


def quartiles(values):
    values = sorted(values)
    places = [q * (len(values) - 1) for q in (0.25, 0.5, 0.75)]
    return [values[int(at)] + (at - int(at)) * (values[min(int(at) + 1, len(values) - 1)] - values[int(at)]) for at in places]


def seccomp(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next((line.split()[1] for line in f if line.startswith("Seccomp:")), "?")


class Variant:
    """A node, its PACS, and its pilot."""

    def __init__(self, name, args, work):
        self.name, self.pilot, self.jobs = name, None, 0
        self.receiver = bench.Receiver(os.path.join(work, "pacs-" + name))
        extra, more, port = f'sandbox = "{args.sandbox}"; workers_per_device = 1;', "", bench.free_port()
        if name != "local":
            extra += ' executor = "pilots";'
            more = f'cluster = {{ bind = "127.0.0.1"; port = {port}; shared_spool = {str(name == "shared").lower()}; }};\n'
        self.node = bench.Node(os.path.join(work, "node-" + name), self.receiver.port, args.device, args.protocol, args.set, extra=extra, more=more)
        if name != "local":
            self.pilot = bench.Pilot(self.node, port, args.device, name == "shared")
        bench.wait_for("its worker is ready", lambda: "device-ready" in self.node.log_end(100000), 120)

    def worker(self):
        """Number of the process that reconstructs."""
        found = self.pilot.processes() if self.pilot else self.node.processes()
        return next(pid for what, pid in found if what == ("case" if self.pilot else "worker"))

    def exam(self, exam, number, timeout):
        """Send an exam and wait for its result; its figures."""
        exam.renew(number)
        answered = bench.send(self.node.port, exam.files, timeout)[1]
        bench.wait_for("the object is at the receiver", lambda: self.receiver.settled(1) or self.node.process.poll() is not None, timeout, 0.005)
        self.jobs += 1
        job = self.node.delivered(self.jobs, 60, 0.05)[-1]
        at = max(self.receiver.complete().values())
        shown = self.node.show(job["id"])
        times = {e["event"]: e["time"] for e in shown["events"]}
        detail = [e["detail"] for e in shown["events"] if e["event"] == "reconstructed"][-1]
        objects = [os.path.join(self.receiver.folder, name) for name in sorted(self.receiver.complete())]
        return {"wall": at - answered, "parts": {name: times[b] - times[a] for name, a, b in PARTS}, "seconds": detail["seconds"],
                "attempts": len([e for e in shown["events"] if e["event"] == "started"])}, objects

    def remains(self):
        """Files of cases that the pilot has."""
        return self.pilot.files() + [name for name in os.listdir(os.path.join(self.node.spool, "work")) if "-" in name]

    def clear(self):
        self.receiver.clear()
        self.node.forget_files()

    def stop(self):
        for thing in (self.pilot, self.node, self.receiver):
            if thing:
                thing.stop()


def copy(files, work):
    """Seconds of the copy of the files."""
    folder = os.path.join(work, "copy")
    os.makedirs(folder)
    command, env = tls_copy()
    done = subprocess.run([command, "--repeat", "2", folder, *files], capture_output=True, text=True, check=False, env=env)
    shutil.rmtree(folder)
    if done.returncode != 0:
        raise bench.Trouble(f"tls_copy: {done.stderr.strip()}")
    return json.loads(done.stdout)["seconds"][-1]


def turn(variants, exam, number, args, work):
    """One exam for each variant, and the copy. Their figures."""
    found, first = {}, None
    at = number % len(variants)
    for v in variants[at:] + variants[:at]:
        found[v.name], objects = v.exam(exam, number, args.timeout)
        made = [bench.without_times(path) for path in objects]
        if first is None:
            first = made
        elif made != first:
            raise bench.Trouble(f"the objects of {v.name} differ from those of {variants[at].name}")
        if v is variants[(at - 1) % len(variants)]:
            found["copy"] = copy(exam.files + objects, work)
            found["bytes"] = exam.size + sum(os.path.getsize(path) for path in objects)
        v.clear()
        if v.pilot:
            bench.wait_for(f"the pilot of {v.name} has removed its files", lambda v=v: not v.remains(), 5)
    return found


def show(name, turns):
    copies = [t["copy"] for t in turns]
    print(f"{name}: {turns[-1]['bytes'] / 1e6:.1f} MB of images and result, {len(turns)} turns; ms: median [quartiles]")

    def line(text, values):
        q = [1000 * v for v in quartiles(values)]
        print(f"  {text:<26}{q[1]:9.1f} [{q[0]:.1f}, {q[2]:.1f}]")
    for v in VARIANTS:
        line(v, [t[v]["wall"] for t in turns])
        if v != "local":
            line("  more than local", [t[v]["wall"] - t["local"]["wall"] for t in turns])
        for part, _, _ in PARTS:
            line(f"  {part}", [t[v]["parts"][part] for t in turns])
    line("copy", copies)
    ratios = quartiles([(t["streamed"]["wall"] - t["local"]["wall"]) / t["copy"] for t in turns])
    print(f"  (streamed - local) / copy  {ratios[1]:8.2f} [{ratios[0]:.2f}, {ratios[2]:.2f}]", flush=True)


def measure(args, work, result):
    variants = []
    try:
        exams = {size: bench.Exam(os.path.join(work, size), *SIZES[size]) for size in args.sizes.split(",")}
        bench.touch_memory(work, 8 * max(e.size for e in exams.values()))
        for name in VARIANTS:
            variants.append(Variant(name, args, work))
        boxes = {v.name: seccomp(v.worker()) for v in variants}
        print(f"{result['version']}, {result['cpus']} processors, {args.device} {result['gpus']}; Seccomp of the workers: {boxes}", flush=True)
        if len(set(boxes.values())) > 1:
            raise bench.Trouble("the workers have different sandboxes")
        number = 0
        for size, exam in exams.items():
            turns = result["sizes"][size] = []
            for _ in range(args.warm_up + args.turns):
                number += 1
                turns.append(turn(variants, exam, number, args, work))
                bench.say(f"{size} {len(turns)}: " + ", ".join(f"{v} {1000 * turns[-1][v]['wall']:.0f}" for v in VARIANTS)
                          + f", copy {1000 * turns[-1]['copy']:.1f} ms")
            del turns[:args.warm_up]
            show(size, turns)
    finally:
        for v in variants:
            v.stop()


def main():
    args = arguments()
    if args.turns < 1 or args.warm_up < 0 or set(args.sizes.split(",")) - set(SIZES):
        sys.exit("executors: --turns must be at least 1, --sizes of: " + ", ".join(SIZES))
    work = bench.work_folder(args.work)
    result = {"version": os.popen(f"'{bench.program()}' --version").readline().strip(), "cpus": os.cpu_count(), "device": args.device,
              "gpus": bench.gpu_query("name", "driver_version"), "sizes": {}}
    began = time.time()
    try:
        measure(args, work, result)
    except bench.Trouble as e:
        sys.exit(f"executors: {e}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if args.json:
            with open(args.json, "w", encoding="ascii") as f:
                json.dump(result, f, indent=1)
    bench.say(f"measured in {time.time() - began:.0f} s")


main()
