#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how many exams an hour one node reconstructs and delivers, for several settings and programs in one run, and what limits them.

    tests/gpu/throughput.py [--exams N] [--warm-up N] [--binning N] [--keep-exams DIR] [--set KEY=VALUE]... [--senders N] [--variant TEXT]... [--json FILE]

A variant is "PROGRAM:KEY=VALUE,...": PROGRAM is `new` (this bundle's, else $TOMONODE) or `old` (bin/tomonode-old of the bundle, else $TOMONODE_OLD); the keys are workers
(node.workers_per_device), turn (node.compute_in_turn: 0, 1), associations (of the destination), and device (node.device, with + for a
comma). Each variant gets a node with an empty spool on a RAM disk. Four storescu send the four views of each exam at the same time, at
most --ahead exams before the delivered ones; files of delivered cases are removed meanwhile, here and at the receiver (storescp).
For each variant: exams an hour between the last counted warm-up exam and the last exam; the share of that time in which the GPU computes,
which is the sum of the cases' `reconstruct` seconds; the medians of the stages; the share of the processors that was busy; the processor
time of a case by kind of process, user + system, s ("ended": of processes of the node that began and ended between two looks; "queries":
`tomonode list` and `show`, which the measurement calls, and itself). Before: what storescu reaches to storescp alone with 1 and 4
associations, and what copying to the RAM disk reaches, as the limits to compare with.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time

import node_bench as bench

SIDES = (("L", "CC"), ("R", "CC"), ("L", "MLO"), ("R", "MLO"))
STANDARD = ("old:", "old:device=cuda:0+cuda:0", "new:workers=1", "new:workers=1,associations=4", "new:workers=2", "new:workers=2,associations=4",
            "new:workers=3,associations=4", "new:workers=4", "new:workers=4,associations=4", "new:workers=4,associations=4,turn=1")


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--exams", type=int, default=12, help="counted exams of each variant; default 12")
    a.add_argument("--warm-up", type=int, default=2, help="exams before those; default 2")
    a.add_argument("--senders", type=int, default=1, help="exams that are sent at the same time, four associations each; default 1")
    a.add_argument("--ahead", type=int, default=4, help="most exams that are sent and not delivered; default 4")
    a.add_argument("--variant", action="append", default=[], help="default: the standard ones")
    a.add_argument("--binning", type=int, default=1, help="of the simulated detector")
    a.add_argument("--protocol", default="dbt-osem-full")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the protocol, as in the configuration")
    a.add_argument("--touch", type=float, default=40, help="GB of memory that are written once before; default 40")
    a.add_argument("--keep-exams", help="folder on a RAM disk for the simulated exams, which a later measurement uses again")
    a.add_argument("--work", help="folder on a RAM disk; default /dev/shm")
    a.add_argument("--timeout", type=float, default=120, help="s until one more exam must be delivered")
    a.add_argument("--limit", type=float, default=1e9, help="s after which no further variant is begun")
    a.add_argument("--json", help="file for all figures, written after each variant")
    return a.parse_args()


def parse(text):
    name, _, keys = text.partition(":")
    found = dict(pair.split("=", 1) for pair in keys.split(",") if pair)
    if name not in ("old", "new") or set(found) - {"workers", "associations", "turn", "device"}:
        raise bench.Trouble(f"--variant {text}: not PROGRAM:KEY=VALUE,...")
    return name, found


def program_of(name):
    return bench.program() if name == "new" else OLD


def processors():
    """(busy, all) jiffies of the machine."""
    with open("/proc/stat", encoding="ascii") as f:
        values = [int(v) for v in f.readline().split()[1:9]]
    return sum(values) - values[3] - values[4], sum(values)


class Meter:
    """Processor time (user, system) by kind of process, s, of a node, the receiver and the senders."""

    def __init__(self, node, receiver, senders):
        self.node, self.receiver, self.senders = node, receiver, senders
        self.names, self.seen = {}, {}

    def look(self):
        """Note the times of the node's processes; of those that end, the last ones stay. Return all processes."""
        found = bench.all_processes()
        for pid, p in found.items():
            if p["session"] == self.node.process.pid:
                name = self.names.get(pid)
                if name in (None, "serve", "?"):  # a process that has not yet called exec has its parent's name
                    self.names[pid] = name = self.node.name_of(pid)
                self.seen[pid] = (name, p)
        return found

    def total(self):
        """{kind: (user, system)} until now."""
        found, used = self.look(), {}
        manager, pacs = self.node.process.pid, self.receiver.process.pid
        listener = min((pid for pid, p in found.items() if p["parent"] == manager and self.seen[pid][0] == "serve"), default=None)

        def add(what, *times):
            for t in times:
                old = used.get(what, (0, 0))
                used[what] = (old[0] + t[0], old[1] + t[1])

        for pid, (name, p) in self.seen.items():
            if pid == manager:
                add("manager", p["own"])
            elif p["parent"] == manager and pid != listener:
                add(name, p["own"])
                if pid not in found:
                    add("ended", tuple(-t for t in p["own"]))
        add("ended", found[manager]["ended"])
        if listener:
            add("listener", found[listener]["own"])
            add("associations", found[listener]["ended"], *(p["own"] for p in found.values() if p["parent"] == listener))
        add("storescp", *(t for pid, p in found.items() if pacs in (pid, p["parent"]) for t in (p["own"], p["ended"])))
        add("storescu", *list(self.senders.used))
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        itself = resource.getrusage(resource.RUSAGE_SELF)
        add("queries", (children.ru_utime, children.ru_stime), (itself.ru_utime, itself.ru_stime),
            *(tuple(-t for t in u) for u in list(self.senders.used)))
        return used


class Senders:
    """One storescu for each view of an exam, in parallel; renewed and sent again and again, not further ahead than allowed."""

    def __init__(self, exams, node, total, ahead, delivered):
        self.exams, self.node, self.total, self.ahead, self.delivered = exams, node, total, ahead, delivered
        self.error, self.spans, self.used, self.lock = None, [], [], threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(e,), daemon=True) for e in exams]
        for t in self.threads:
            t.start()

    def run(self, exam):
        try:
            for number in range(self.total):
                while number >= self.delivered() // len(self.exams) + self.ahead:
                    time.sleep(0.01)
                exam.renew(number)
                span = bench.send(self.node.port, exam.files, used=self.used)
                with self.lock:
                    self.spans.append((span[1] - span[0], exam.size))
        except (bench.Trouble, OSError) as e:
            self.error = e


class Cleaner:
    """Notes when each result was complete at the receiver, and removes it there; removes the files of delivered cases in the spool."""

    def __init__(self, node, receiver):
        self.node, self.receiver = node, receiver
        self.times, self.gone, self.cases, self.bytes_out = {}, set(), [], 0

    def look(self):
        for name, at in self.receiver.complete().items():
            if name not in self.times:
                path = os.path.join(self.receiver.folder, name)
                self.bytes_out += os.path.getsize(path)
                self.times[name] = at
                os.truncate(path, 0)  # the name stays, so that it is counted once
        for job in self.node.jobs():
            if job["state"] == "delivered" and job["id"] not in self.gone:
                self.gone.add(job["id"])
                self.clean(job["id"])

    def clean(self, job):
        shown = self.node.show(job)
        made = [e["detail"] for e in shown["events"] if e["event"] == "reconstructed"][-1]
        times = {e["event"]: e["time"] for e in shown["events"]}
        self.cases.append({"job": job, "seconds": made["seconds"], "objects": len(made["objects"]), "bytes_device": made["bytes_device"],
                           "device": made["device"], "voxels": made["voxels"], "complete": times["complete"], "started": times["started"],
                           "reconstructed": times["reconstructed"], "delivered": times["delivered"]})
        for row in shown["instances"]:
            os.unlink(os.path.join(self.node.spool, row["file"]))
        shutil.rmtree(os.path.join(self.node.spool, "outbox", str(job)), ignore_errors=True)


def run_variant(args, text, exams, work):
    name, keys = parse(text)
    bench.program = lambda: PROGRAMS[name]
    extra = 'sandbox = "auto";'
    if name == "new":
        extra += f' workers_per_device = {keys.get("workers", 1)}; compute_in_turn = {"true" if keys.get("turn") == "1" else "false"};'
    receiver = bench.Receiver(os.path.join(work, "pacs"))
    node = None
    total = args.warm_up + args.exams
    try:
        node = bench.Node(os.path.join(work, "node"), receiver.port, keys.get("device", "auto").replace("+", ","), args.protocol,
                          settings=args.set, extra=extra, destination=f' associations = {keys["associations"]};' if "associations" in keys else "")
        bench.wait_for("workers are ready", lambda: "device-ready" in node.log_end(20000), 120)
        time.sleep(2)  # the others, too
        cleaner = Cleaner(node, receiver)
        senders = Senders(exams, node, total, args.ahead, lambda: len(cleaner.gone))
        meter = Meter(node, receiver, senders)
        began, last, marks = time.time(), time.time(), {}
        while len(cleaner.gone) < total * len(exams):
            before = len(cleaner.gone)
            cleaner.look()
            meter.look()
            if len(cleaner.gone) >= args.warm_up * len(exams) and not marks:
                marks = {"cpu": processors(), "used": meter.total(), "gone": len(cleaner.gone)}
            if len(cleaner.gone) > before:
                last = time.time()
            if senders.error:
                raise senders.error
            if time.time() - last > args.timeout:
                raise bench.Trouble(f"{text}: no case delivered for {args.timeout} s\n{node.log_end()}")
            time.sleep(0.05)
        return figures(args, text, cleaner, senders, meter, marks, began)
    finally:
        for thing in (node, receiver):
            if thing:
                thing.stop()
        shutil.rmtree(os.path.join(work, "pacs"), ignore_errors=True)
        shutil.rmtree(os.path.join(work, "node"), ignore_errors=True)


def figures(args, text, cleaner, senders, meter, marks, began):
    n = len(cleaner.gone) - marks["gone"]
    seconds = {what: [(t - f) / n for t, f in zip(times, marks["used"].get(what, (0, 0)))] for what, times in meter.total().items()}
    busy, everything = (b - a for a, b in zip(marks["cpu"], processors()))
    cases = sorted(cleaner.cases, key=lambda c: c["delivered"])
    skip = args.warm_up * len(SIDES) * args.senders
    counted, start, end = cases[skip:], cases[skip - 1]["delivered"] if skip else began, cases[-1]["delivered"]
    span = end - start
    stages = {n: bench.median([c["seconds"].get(n, 0) for c in counted]) for n in counted[0]["seconds"]}
    stages["queue"] = bench.median([c["started"] - c["complete"] for c in counted])
    stages["worker"] = bench.median([c["reconstructed"] - c["started"] for c in counted])
    stages["delivery"] = bench.median([c["delivered"] - c["reconstructed"] for c in counted])
    rate = sorted(size / seconds for seconds, size in senders.spans)
    return {"variant": text, "exams": args.exams, "seconds": span, "exams_an_hour": 3600 * len(counted) / len(SIDES) / span,
            "gpu_share": sum(c["seconds"]["reconstruct"] for c in counted) / span, "cpu_share": busy / max(1, everything),
            "processor_seconds": seconds, "stages": stages, "out_gb_s": cleaner.bytes_out / 1e9 / (time.time() - began),
            "in_gb_s_of_one_sender": bench.median(rate) / 1e9, "bytes_device": counted[-1]["bytes_device"],
            "voxels": counted[-1]["voxels"], "device": counted[-1]["device"], "cases": cases}


def limits(exams, work):
    """What the parts reach alone: storescu to storescp, and a copy to the RAM disk, in GB/s."""
    found = {}
    receiver = bench.Receiver(os.path.join(work, "pacs"))
    try:
        for n in (1, 4):
            threads = [threading.Thread(target=bench.send, args=(receiver.port, e.files)) for e in exams[:n]]
            began = time.time()
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            found[f"storescu to storescp, {n}"] = sum(e.size for e in exams[:n]) / 1e9 / (time.time() - began)
            receiver.clear()
    finally:
        receiver.stop()
        shutil.rmtree(os.path.join(work, "pacs"), ignore_errors=True)
    for n in (1, 4):
        copies = [os.path.join(work, f"copy{i}") for i in range(n)]
        began = time.time()
        done = [subprocess.Popen(["cp", "-r", e.folder, c]) for e, c in zip(exams, copies)]
        for p in done:
            p.wait()
        found[f"cp on the RAM disk, {n}"] = sum(e.size for e in exams[:n]) / 1e9 / (time.time() - began)
        for c in copies:
            shutil.rmtree(c)
    return found


def show(r):
    s = r["stages"]
    print(f"{r['variant']:<40} {r['exams_an_hour']:7.0f}/h  GPU {100 * r['gpu_share']:5.1f} %  CPU {100 * r['cpu_share']:5.1f} %  out {r['out_gb_s']:5.2f} GB/s | "
          + " ".join(f"{n} {v:.2f}" for n, v in s.items()), flush=True)
    used = sorted(r["processor_seconds"].items(), key=lambda i: -sum(i[1]))
    print(f"    processor s a case: {sum(sum(t) for _, t in used):.2f} |", ", ".join(f"{what} {t[0]:.2f}+{t[1]:.2f}" for what, t in used), flush=True)


def main():
    args = arguments()
    variants = args.variant or [v for v in STANDARD if OLD or not v.startswith("old")]
    work, began, result = bench.work_folder(args.work), time.time(), {"variants": []}
    try:
        if not OLD and any(parse(v)[0] == "old" for v in variants):
            raise bench.Trouble("there is no old program: TOMONODE_OLD")
        PROGRAMS.update({name: program_of(name) for name in {parse(v)[0] for v in variants} | {"new"}})
        os.makedirs(args.keep_exams or work, exist_ok=True)
        exams = [bench.Exam(os.path.join(args.keep_exams or work, f"exam{i}"), "--side", side, "--view", view, "--binning", str(args.binning),
                            "--study", f"2.25.1{i // len(SIDES)}34567890123456789012345678901234567")
                 for i, (side, view) in enumerate(SIDES * args.senders)]
        result.update(cpus=os.cpu_count(), gpus=bench.gpu_query("name", "memory.total"), bytes_in=sum(e.size for e in exams) // args.senders)
        bench.touch_memory(work, args.touch * 1e9)
        result["limits_gb_s"] = limits(exams, work)
        print(f"{result['cpus']} processors, {result['gpus']}, exam of {result['bytes_in'] / 1e9:.2f} GB;",
              ", ".join(f"{n}: {v:.2f} GB/s" for n, v in result["limits_gb_s"].items()), flush=True)
        for text in variants:
            if time.time() - began > args.limit:
                print(f"{text:<40} not measured: the time is over")
                continue
            try:
                r = run_variant(args, text, exams, work)
                show(r)
            except bench.Trouble as e:
                r = {"variant": text, "error": str(e)}
                print(f"{text:<40} FAILED: {str(e)[:2000]}", flush=True)
            result["variants"].append(r)
            if args.json:
                with open(args.json, "w", encoding="ascii") as f:
                    json.dump(result, f, indent=1)
    except bench.Trouble as e:
        sys.exit(f"throughput: {e}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


BUNDLED_OLD = os.path.join(bench.TOP, "bin", "tomonode-old")
OLD = BUNDLED_OLD if os.path.isfile(BUNDLED_OLD) else os.environ.get("TOMONODE_OLD", "")
PROGRAMS = {}
if __name__ == "__main__":
    main()
