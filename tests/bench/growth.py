#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How the costs of a node grow: for each operation its processor time and the bytes that it reads, against the size of one thing.

    tests/bench/growth.py --beside [--build DIR]    # the rate of small associations beside storescp and Orthanc
    tests/bench/growth.py [--build DIR] [--folder DIR] [--axis NAME]... [--sizes N,N,...] [--json FILE]

axes: cases (ever, delivered and cleaned over a year), open (cases that wait for their last image), object (images of the one open
case that gets more), destinations (of each case), senders (that send at the same time).

Prints a table for each axis: an operation, its cost at each size, and the exponent e of a fit cost ~ size^e (0: flat, 1: linear).
Processor time is of all processes of the node, in ms; it depends less on other work of the machine than the time on a clock, which
is printed beside it where it is what somebody waits for. Bytes read depend on nothing else.
The journal is written with the node's own functions (tests/helpers/journal_year.c). A large folder: 3 kB for each case.
"""
import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
AXES = {"cases": (2000, 20000, 200000), "open": (1, 100, 1000), "object": (1, 600, 2400), "destinations": (1, 4, 16),
        "senders": (1, 2, 4)}
STORED, LOOKS, TINY = 40, 20, 4  # operations that are measured together
TICK = 1000 / os.sysconf("SC_CLK_TCK")


def imports(build):
    """The tools of the system tests, which need to know the program."""
    os.environ.setdefault("TOMONODE", os.path.join(build, "tomonode"))
    sys.path.insert(0, os.path.join(HERE, "..", "system"))
    from tools import contract_tools, dicom_peer, node_harness
    return contract_tools, dicom_peer, node_harness


def spent(pids):
    """Processor time (ms) and bytes read of these processes and of their ended children."""
    cpu = read = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                cpu += TICK * sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
            with open(f"/proc/{pid}/io", encoding="ascii") as f:
                read += int(re.search(r"rchar: (\d+)", f.read()).group(1))
        except (OSError, AttributeError):
            continue  # it ended meanwhile: its parent has its times
    return cpu, read


class Cost:
    """What a node spends between two calls, its ended processes included."""

    def __init__(self, node):
        self.node, self.before = node, (0, 0)
        self.since()

    def since(self, n=1):
        now = spent(self.node.processes())
        cost = {"cpu_ms": (now[0] - self.before[0]) / n, "read_kb": (now[1] - self.before[1]) / 1e3 / n}
        self.before = now
        return cost


class Bench:
    def __init__(self, build, folder, destinations=1):
        self.c, self.peer, self.h = imports(build)
        self.build, self.folder, self.serial = build, folder, 0
        self.archive = self.peer.Archive()
        self.node = self.h.Node(os.path.join(folder, "node"), self.archive.port, quiet_time=600, max_associations=32)
        self.http = self.h.free_port()
        self.node.status = {"port": self.http}
        self.node.more_destinations = "".join(
            f', {{ name = "D{i}"; aet = "PACS"; host = "127.0.0.1"; port = {self.archive.port}; }}' for i in range(1, destinations))
        self.node.destinations = ["pacs"] + [f"D{i}" for i in range(1, destinations)]
        self.node.write_conf()
        os.makedirs(self.node.spool, exist_ok=True)
        self.exams = self.c.Exams(os.path.join(folder, "exam"), *self.c.SMALL)
        self.found = {}

    def year(self, cases, **options):
        """Add cases to the journal."""
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        subprocess.run([os.path.join(self.build, "tests", "journal_year"), *words, self.node.spool, str(cases)], check=True,
                       stdout=subprocess.DEVNULL)

    def images(self, n, key=1):
        """Images of the open case of this number, that never has all."""
        import io
        import pydicom
        d = pydicom.dcmread(io.BytesIO(self.c.part10(self.exams.number(900000 + key)[1][0])))
        d.ImagesInAcquisition = "9999"
        for _ in range(n):
            self.serial += 1
            d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = f"2.25.777{os.getpid()}{self.serial:06d}"
            raw = io.BytesIO()
            d.save_as(raw)
            yield self.peer.Object(raw.getvalue())

    def send_each(self, images, calling="MODALITY", port=None, called="TOMONODE"):
        """An association for each."""
        for image in images:
            sender = self.peer.Sender(port or self.node.port, [image], calling=calling, called=called)
            self.h.check(sender.store(image) == self.peer.SUCCESS, "not stored")
            sender.release()

    def send_together(self, loads, **options):
        threads = [threading.Thread(target=self.send_each, args=(load, f"MODALITY{i}"), kwargs=options)
                   for i, load in enumerate(loads)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def indexed(self):
        """All that has arrived is in a case, and nobody is busy."""
        self.h.wait_for("everything is indexed",
                        lambda: self.c.query(self.node.spool, "SELECT COUNT(*) FROM waiting") == [(0,)], 600)
        self.c.resting(self.node, 120)

    def start(self):
        self.found = {}
        began = time.monotonic()
        self.node.start()
        self.found["start"] = {"wall_ms": 1e3 * (time.monotonic() - began)}
        page = lambda: self.get("/cases")
        self.h.wait_for("the page is there", page, 600)
        self.c.resting(self.node, 600)
        self.cost = Cost(self.node)
        self.found["start"].update(zip(("cpu_ms", "read_kb"), (self.cost.before[0], self.cost.before[1] / 1e3)))
        self.found["memory"] = {"mb": self.c.footprint(self.node)["mb"]}

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=600) as r:
                return r.read()
        except OSError:
            return None

    def measure(self, name, n, work, wall=False, after=lambda: None):
        self.cost.since()
        began = time.monotonic()
        work()
        took = 1e3 * (time.monotonic() - began) / n
        after()
        self.found[name] = {**self.cost.since(n), **({"wall_ms": took} if wall else {})}

    def command(self, name, *words):
        """A command of its own: its processor time."""
        began = time.monotonic()
        p = subprocess.Popen([self.h.TOMONODE, *words, "-c", self.node.conf], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.found[name] = {"cpu_ms": 1e3 * (used.ru_utime + used.ru_stime), "wall_ms": 1e3 * (time.monotonic() - began)}

    def exam(self):
        """Tiny exams, one after the other, until the archive has each."""
        for _ in range(TINY):
            self.serial += 1
            study, images = self.exams.number(self.serial)
            sender = self.peer.Sender(self.node.port, images)
            for image in images:
                sender.store(image)
            sender.release()
            self.h.wait_for("the result", lambda study=study: study in self.archive.studies, 600)

    def operations(self, senders=1):
        each = STORED // senders
        loads = [list(self.images(each)) for _ in range(senders)]

        self.measure("store one instance", each * senders, lambda: self.send_together(loads), True, self.indexed)
        self.measure("a second of quiet", 5, lambda: time.sleep(5))
        self.measure("tiny case", TINY, self.exam, True, lambda: self.c.resting(self.node, 120))
        for path in ("/", "/cases", "/metrics", "/health"):
            self.measure(f"GET {path}", LOOKS, lambda path=path: [self.get(path) for _ in range(LOOKS)], True)
        self.command("tomonode list", "list")

    def stop(self):
        self.node.stop(300)


def run(axis, size, build, folder):
    """The costs with `size` of the axis: {operation: {figure: value}}."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    b = Bench(build, folder, size if axis == "destinations" else 1)
    try:
        if axis == "cases":
            b.year(size)
            b.node.start()  # its first step records them as settled, as those of a year are
            b.h.wait_for("the page is there", lambda: b.get("/health"), 600)
            b.stop()
        elif axis in ("open", "destinations"):
            b.year(size if axis == "open" else 200, **({"open": size} if axis == "open" else {"destinations": size}))
        b.start()
        if axis == "object":
            b.send_each(b.images(size))
            b.indexed()
        b.operations(size if axis == "senders" else 1)
        b.stop()
        return b.found
    finally:
        if b.node.process:
            b.node.kill()
        b.archive.stop()


def beside(build, folder, senders=4, each=50):
    """The same small objects, an association each, to this node, to DCMTK's storescp and to Orthanc. Of these three only the node
    syncs each object to the disk."""
    b = Bench(build, folder)
    pacs, orthanc = b.h.Pacs(os.path.join(folder, "pacs")), b.h.Orthanc(os.path.join(folder, "orthanc"))
    print(f"{'receiver':<12}{'a second':>10}{'ms of processor each':>22}")
    try:
        b.start()
        pacs.start("--fork")
        orthanc.start()
        for name, port, called, pids in (("tomonode", b.node.port, "TOMONODE", b.node.processes),
                                         ("storescp", pacs.port, "PACS", lambda: [pacs.process.pid]),
                                         ("Orthanc", orthanc.port, "PACS", lambda: [orthanc.process.pid])):
            loads = [list(b.images(each)) for _ in range(senders)]
            before, began = spent(pids())[0], time.monotonic()
            b.send_together(loads, port=port, called=called)
            took = time.monotonic() - began
            if name == "tomonode":
                b.indexed()
            print(f"{name:<12}{senders * each / took:10.0f}{(spent(pids())[0] - before) / senders / each:22.2f}", flush=True)
    finally:
        for one in (b.node, pacs, orthanc, b.archive):
            one.stop()


def exponent(sizes, costs):
    """Of the least squares fit of log(cost) to log(size); None: too little to say."""
    points = [(math.log(s), math.log(c)) for s, c in zip(sizes, costs) if s > 0 and c and c > 0]
    if len(points) < 2:
        return None
    x, y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    return sum((p - x) * (q - y) for p, q in points) / sum((p - x) ** 2 for p, _ in points)


def table(axis, sizes, results):
    print(f"\n{axis:<20} {'figure':<8}" + "".join(f"{size:>12}" for size in sizes) + f"{'exponent':>10}")
    for name in results[0]:
        for figure in results[0][name]:
            costs = [found[name][figure] for found in results]
            e = exponent(sizes, costs)
            print(f"{name:<20} {figure:<8}" + "".join(f"{cost:12.2f}" for cost in costs)
                  + (f"{e:10.2f}" if e is not None else f"{'-':>10}"), flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default=os.environ.get("TOMONODE_BUILD", os.path.join(HERE, "../../build/release")))
    a.add_argument("--folder", default=tempfile.gettempdir(), help="where the nodes are")
    a.add_argument("--axis", action="append", choices=AXES, help="default: all")
    a.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), help="of the axes; default: three of each")
    a.add_argument("--beside", action="store_true", help="compare with storescp and Orthanc instead")
    a.add_argument("--json", help="file for all figures")
    args = a.parse_args()
    everything = {}
    folder = tempfile.mkdtemp(prefix="growth.", dir=args.folder)
    try:
        if args.beside:
            beside(os.path.abspath(args.build), os.path.join(folder, "one"))
            return
        for axis in args.axis or AXES:
            sizes = args.sizes or AXES[axis]
            results = [run(axis, size, os.path.abspath(args.build), os.path.join(folder, "one")) for size in sizes]
            everything[axis] = dict(zip(sizes, results))
            table(axis, sizes, results)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        with open(args.json, "w", encoding="ascii") as f:
            json.dump(everything, f, indent=1)


if __name__ == "__main__":
    main()
