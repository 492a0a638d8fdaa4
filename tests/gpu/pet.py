#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time a PET acquisition through the node: from the last C-STORE response to the last slice complete at the receiver, by stages.

    tests/gpu/pet.py [--repeat N] [--protocol NAME] [--devices LIST] [--sandbox auto|on|off] [--set KEY=VALUE] [--limit "400 MB"]
        [--json FILE]

The IQ phantom in a whole scanner is simulated once, with noise, on a RAM disk; each repeat sends it with new UIDs with one storescu to
a `tomonode serve` with a spool on the RAM disk, whose PACS is storescp (bit preserving). Both run on this machine, PDUs of 128 KiB.
The first --warm-up repeats are printed but not counted. All is repeated with memory_limit = --limit: the cost of streaming angles, and
the largest difference of the two images (where Python has numpy). After the counted repeats of each, one more samples memory:
VmHWM of the node's processes, and memory in use on the GPU above what was in use before the node was started (other users disturb it).
Stages are those of `tomonode show --json`, medians over counted repeats. "wall" is measured from outside. Exit 1: something failed.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import node_bench as bench


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--repeat", type=int, default=5, help="counted repeats; default 5")
    a.add_argument("--warm-up", type=int, default=1, help="repeats before those; default 1")
    a.add_argument("--protocol", default="pet-mlem", help="default pet-mlem")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the protocol, as in the configuration")
    a.add_argument("--limit", default="400 MB", help="memory_limit of the second part; \"\": no second part; default 400 MB")
    a.add_argument("--devices", default="auto", help="node.device of the configuration; default auto")
    a.add_argument("--sandbox", choices=("auto", "on", "off"), default="auto", help="node.sandbox of the configuration; default auto")
    a.add_argument("--scanner", default="ge-discovery-ste")
    a.add_argument("--counts", default="2e8")
    a.add_argument("--simulate", action="append", default=[], metavar="OPTION[=VALUE]", help="further options of simulate pet")
    a.add_argument("--work", help="folder on a RAM disk; default /dev/shm")
    a.add_argument("--timeout", type=float, default=300, help="s until a series must be delivered")
    a.add_argument("--json", help="file for all figures")
    a.add_argument("--keep", action="store_true", help="leave the files")
    return a.parse_args()


# ---- memory ----

def gpu_used():
    """MB in use on each GPU."""
    return [float(row[0]) for row in bench.gpu_query("memory.used")]


def high_water(node):
    """MB, what: the most that each process of the node has had in memory."""
    found = {}
    for what, pid in node.processes():
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                kb = next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0)
        except OSError:
            continue  # it ended meanwhile
        if kb:
            found[what] = max(found.get(what, 0), kb / 1024)
    return found


class Sampler(threading.Thread):
    """Sample the memory until stop() and keep the largest values."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.gpu, self.host, self.on = node, [], {}, True

    def run(self):
        while self.on:
            used = gpu_used()
            self.gpu = [max(pair) for pair in zip(used, self.gpu or used)]
            for what, mb in high_water(self.node).items():
                self.host[what] = max(self.host.get(what, 0), mb)
            time.sleep(0.02)

    def stop(self):
        self.on = False
        self.join()


# ---- the image ----

def export(work, name, folder):
    """The delivered series as an Interfile image; the path of its values."""
    objects = os.path.join(work, f"objects-{name}")
    os.makedirs(objects)
    for e in os.scandir(folder):
        if not e.name.endswith(".done"):
            shutil.copy(e.path, objects)
    header = os.path.join(work, f"{name}.hv")
    done = subprocess.run([bench.program(), "export", "--json", "--force", "-o", header, objects], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise bench.Trouble(f"export: code {done.returncode}: {done.stderr.strip()}")
    shutil.rmtree(objects)
    return json.loads(done.stdout), header[:-3] + ".v"


def image_difference(one, other):
    """Largest difference over the largest value; None without numpy."""
    try:
        import numpy as np
    except ImportError:
        return None
    a, b = (np.fromfile(path, "<f4").astype(float) for path in (one, other))
    if a.shape != b.shape or not np.abs(a).max() > 0:
        raise bench.Trouble(f"images of {a.size} and {b.size} voxels, largest value {a.max() if a.size else 0}")
    return float(np.abs(a - b).max() / np.abs(a).max())


# ---- repeats ----

def case_figures(node, job):
    shown = node.show(job["id"])
    stages = {s["stage"]: s["seconds"] for s in shown.get("stages", [])}
    made = [e["detail"] for e in shown.get("events", []) if e.get("event") == "reconstructed" and isinstance(e.get("detail"), dict)]
    return {"job": job["id"], "stages": stages, "detail": made[-1] if made else {}}


def one_series(args, exam, node, receiver, number, so_far):
    """Send an acquisition and wait for its result; return its figures. The receiver keeps the objects."""
    receiver.clear()
    node.forget_files()
    exam.renew(number)
    began, answered = bench.send(node.port, exam.files, args.timeout)
    job = node.delivered(so_far + 1, args.timeout, 0.05)[-1]
    case = case_figures(node, job)
    expected = max(1, len(case["detail"].get("objects", [])))
    bench.wait_for("the receiver has written all objects", lambda: receiver.settled(expected), 20)
    objects = receiver.complete()
    return {"send": answered - began, "wall": max(objects.values()) - answered, "whole": max(objects.values()) - began,
            "objects": len(objects), "bytes_out": receiver.size(), **case}


def part(args, work, exam, receiver, name, settings, number):
    """A node with these settings: all repeats, then the one that samples memory."""
    before = gpu_used()
    node = bench.Node(os.path.join(work, f"node-{name}"), receiver.port, args.devices, args.protocol, settings,
                      extra=f'sandbox = "{args.sandbox}";', kind="pet")
    result = {"settings": settings, "series": []}
    try:
        for i in range(args.warm_up + args.repeat):
            figures = one_series(args, exam, node, receiver, number + i, i)
            result["series"].append(figures)
            bench.say(f"{name} {i + 1}{' (warm-up)' if i < args.warm_up else ''}: sent in {figures['send']:.3f} s, wall"
                      f" {figures['wall']:.3f} s, {figures['bytes_out'] / 1e6:.1f} MB in {figures['objects']} objects")
        sampler = Sampler(node)
        sampler.start()
        i = args.warm_up + args.repeat
        one_series(args, exam, node, receiver, number + i, i)
        sampler.stop()
        result["memory"] = {"gpu_mb": [most - start for most, start in zip(sampler.gpu, before)], "host_mb": sampler.host}
        result["export"], result["image"] = export(work, name, receiver.folder)
    finally:
        node.stop()
    result["counted"] = result["series"][args.warm_up:]
    return result


def number_leaves(value, prefix=""):
    """Numbers of a report by the dotted path of their keys."""
    if isinstance(value, dict):
        return {k: v for key, one in value.items() for k, v in number_leaves(one, f"{prefix}{key}.").items()}
    return {prefix[:-1]: value} if isinstance(value, (int, float)) and not isinstance(value, bool) else {}


def table(name, result):
    counted = result["counted"]
    print(f"-- {name}: {', '.join(result['settings']) or 'as the protocol says'}; {result['export']['size']} voxels,"
          f" {result['export']['units']}, on {counted[-1]['detail'].get('device', '?')}")
    print(f"{'stage':<28}{'median s':>10}{'least':>10}{'most':>10}")
    rows = {name: [c["stages"].get(name) for c in counted] for name in counted[-1]["stages"]}
    rows.update({"worker " + key: [number_leaves(c["detail"].get("seconds", {})).get(key) for c in counted]
                 for key in number_leaves(counted[-1]["detail"].get("seconds", {}))})
    rows.update({"send": [c["send"] for c in counted], "last response to last slice": [c["wall"] for c in counted],
                 "first byte to last slice": [c["whole"] for c in counted]})
    for stage, values in rows.items():
        values = [v for v in values if v is not None]
        if values:
            print(f"{stage:<28}{bench.median(values):>10.3f}{min(values):>10.3f}{max(values):>10.3f}")
    others = {k: v for k, v in number_leaves(counted[-1]["detail"]).items() if not k.startswith("seconds")}
    print("report: " + ", ".join(f"{k} {v:.9g}" for k, v in others.items()))
    cached = sum(bool(c["detail"].get("pet", {}).get("sensitivity_cached")) for c in counted)
    print(f"sensitivity image: kept from an earlier acquisition in {cached} of {len(counted)}")
    print("memory: GPU " + (", ".join(f"{mb:.0f} MB" for mb in result["memory"]["gpu_mb"]) or "none") + "; "
          + ", ".join(f"{what} {mb:.0f} MB" for what, mb in result["memory"]["host_mb"].items()))


def measure(args, work):
    began = time.time()
    options = [x for o in args.simulate for x in ("--" + o.split("=", 1)[0], *o.split("=", 1)[1:])]
    exam = bench.Exam(os.path.join(work, "exam"), "--scanner", args.scanner, "--phantom", "nema-iq", "--counts", args.counts, "--study",
                      "2.25.1234567890123456789012345678901234567", *options, kind="pet")
    bench.say(f"simulated {len(exam.files)} objects, {exam.size / 1e6:.0f} MB, in {time.time() - began:.1f} s")
    result = {"protocol": args.protocol, "devices": args.devices, "scanner": args.scanner, "counts": args.counts, "cpus": os.cpu_count(),
              "version": os.popen(f"'{bench.program()}' --version").readline().strip(), "bytes_in": exam.size,
              "gpus": bench.gpu_query("name", "driver_version", "memory.total")}
    receiver = bench.Receiver(os.path.join(work, "pacs"))
    try:
        bench.touch_memory(work, 4 * exam.size)
        result["free"] = part(args, work, exam, receiver, "free", args.set, 0)
        if args.limit:
            result["limited"] = part(args, work, exam, receiver, "limited", [*args.set, f'memory_limit="{args.limit}"'], 500000)
    except bench.Trouble as e:
        if "free" not in result:
            raise
        result["trouble"] = str(e)
    finally:
        receiver.stop()
    print(f"{result['version']}; {exam.size / 1e6:.0f} MB of {args.scanner}, {args.protocol}")
    table("free", result["free"])
    if "limited" not in result:
        del result["free"]["image"]
    else:
        table("limited", result["limited"])
        walls = [bench.median([c["wall"] for c in result[p]["counted"]]) for p in ("free", "limited")]
        result["price"] = walls[1] / walls[0]
        result["difference"] = image_difference(*(result[p].pop("image") for p in ("free", "limited")))
        shown = "unknown (no numpy)" if result["difference"] is None else f"{result['difference']:.2e}"
        print(f"memory_limit {args.limit}: {result['price']:.2f} times the wall time; largest difference of the images over the"
              f" largest value: {shown}")
    return result


def main():
    args = arguments()
    if args.repeat < 1 or args.warm_up < 0:
        sys.exit("pet: --repeat must be at least 1")
    work = bench.work_folder(args.work)
    try:
        result = measure(args, work)
    except bench.Trouble as e:
        sys.exit(f"pet: {e}")
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    if args.json:
        with open(args.json, "w", encoding="ascii") as f:
            json.dump(result, f, indent=1)
    if "trouble" in result:
        sys.exit(f"pet: {result['trouble']}")


main()
