#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Receive benchmark: an unmodified storescu sends to an unmodified DCMTK storescp and to tomonode's receiver, in the same run.

    tests/bench/receive.py [--build DIR] [--objects 25] [--repeat 5] [--ram DIR] [--disk DIR] [--big-mb 400]

storescp runs with its defaults, which neither disable Nagle's algorithm nor sync a file; tomonode syncs every object and commits its
journal row before it responds. The two alternate. Before each timed transfer, the same number of bytes is written to the medium and
removed again, because on a virtual machine the first access to memory and disk blocks is slow. Prints one JSON document: seconds of
storescu from start to exit, medians, the ratio of the medians, and the largest VmHWM of the receiving processes. Targets: 5 times
storescp on the RAM disk, 2.2 times on the disk, below 40 MB whatever an object's size.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

CLASS = "1.2.840.10008.5.1.4.1.1.1.2.1"
EXPLICIT = "1.2.840.10008.1.2.1"
ROWS, COLUMNS = 3584, 2816


def element(group, elem, vr, value):
    value = value.encode() if isinstance(value, str) else value
    value += (b"\0" if vr in ("UI", "OB", "OW") else b" ") * (len(value) % 2)
    head = group.to_bytes(2, "little") + elem.to_bytes(2, "little") + vr.encode()
    if vr in ("OB", "OW"):
        return head + b"\0\0" + len(value).to_bytes(4, "little") + value
    return head + len(value).to_bytes(2, "little") + value


def us(value):
    return value.to_bytes(2, "little")


def make_object(path, uid, frames):
    """A mammography-like object of `frames` times 3584 x 2816 x 16 bit; the values of its pixels have no effect."""
    pixels = os.urandom(1 << 20) * (ROWS * COLUMNS * 2 // (1 << 20) + 1)
    pixels = pixels[:ROWS * COLUMNS * 2] * frames
    meta = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", CLASS) + element(2, 3, "UI", uid) + element(2, 0x10, "UI", EXPLICIT)
    with open(path, "wb") as f:
        f.write(bytes(128) + b"DICM" + element(2, 0, "UL", len(meta).to_bytes(4, "little")) + meta)
        for e in ((8, 0x16, "UI", CLASS), (8, 0x18, "UI", uid), (8, 0x60, "CS", "MG"), (0x10, 0x10, "PN", "BENCH"),
                  (0x10, 0x20, "LO", "B"), (0x20, 0xD, "UI", "2.25.1"), (0x20, 0xE, "UI", "2.25.2"), (0x28, 2, "US", us(1)),
                  (0x28, 4, "CS", "MONOCHROME2"), (0x28, 8, "IS", str(frames)), (0x28, 0x10, "US", us(ROWS)),
                  (0x28, 0x11, "US", us(COLUMNS)), (0x28, 0x100, "US", us(16)), (0x28, 0x101, "US", us(14)),
                  (0x28, 0x102, "US", us(13)), (0x28, 0x103, "US", us(0)), (0x7FE0, 0x10, "OW", pixels)):
            f.write(element(*e))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children(pid):
    try:
        return [int(c) for c in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def peak_kb(pid):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class Peak(threading.Thread):
    """Follows the memory of a process's children (own=False) or of the process itself."""

    def __init__(self, pid, own):
        super().__init__(daemon=True)
        self.pid, self.own, self.kb, self.end = pid, own, 0, False
        self.start()

    def run(self):
        while not self.end:
            for p in [self.pid] if self.own else children(self.pid):
                self.kb = max(self.kb, peak_kb(p))
            time.sleep(0.02)

    def stop(self):
        self.end = True
        self.join()
        return self.kb


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("TCP_")}


def send(port, files):
    began = time.monotonic()
    subprocess.run(["storescu", "-aec", "TOMONODE", "127.0.0.1", str(port), *files], check=True, env=environment())
    return time.monotonic() - began


def warm(folder, size):
    path = os.path.join(folder, "warm")
    block = bytes(1 << 20)
    with open(path, "wb") as f:
        for _ in range(size // len(block) + 1):
            f.write(block)
        os.fsync(f.fileno())
    os.unlink(path)


def run_storescp(folder, files):
    out = os.path.join(folder, "storescp")
    os.makedirs(out)
    port = free_port()
    p = subprocess.Popen(["storescp", "-od", out, str(port)], env=environment(), stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        peak = Peak(p.pid, own=True)
        seconds = send(port, files)
        kb = peak.stop()
        assert len(os.listdir(out)) == len(files)
    finally:
        p.kill()
        p.wait()
        shutil.rmtree(out)
    return seconds, kb


def run_ours(alone, folder, files):
    spool = os.path.join(folder, "spool")
    p = subprocess.Popen([alone, spool], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port, pid = (int(x) for x in p.stdout.readline().split())
        peak = Peak(pid, own=False)
        seconds = send(port, files)
        kb = peak.stop()
        os.kill(pid, signal.SIGTERM)
        p.wait(20)
        assert len(os.listdir(os.path.join(spool, "instances"))) == len(files)
    finally:
        p.kill()
        p.wait()
        shutil.rmtree(spool)
    return seconds, kb


def side_by_side(alone, folder, files, repeat):
    size = sum(os.path.getsize(f) for f in files)
    theirs, ours, kb = [], [], 0
    for _ in range(repeat):
        warm(folder, size)
        theirs.append(run_storescp(folder, files)[0])
        warm(folder, size)
        seconds, peak = run_ours(alone, folder, files)
        ours.append(seconds)
        kb = max(kb, peak)
    a, b = statistics.median(theirs), statistics.median(ours)
    return {"bytes": size, "storescp_s": [round(x, 3) for x in theirs], "ours_s": [round(x, 3) for x in ours],
            "storescp_median_s": round(a, 3), "ours_median_s": round(b, 3), "storescp_mb_per_s": round(size / a / 1e6),
            "ours_mb_per_s": round(size / b / 1e6), "ratio": round(a / b, 2), "ours_peak_rss_mb": round(kb / 1024, 1)}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default=os.environ.get("TOMONODE_BUILD", os.path.join(here, "../../build/release")))
    a.add_argument("--objects", type=int, default=25)
    a.add_argument("--repeat", type=int, default=5)
    a.add_argument("--ram", default="/dev/shm", help="folder on a RAM disk")
    a.add_argument("--disk", default=tempfile.gettempdir(), help="folder on a real disk")
    a.add_argument("--big-mb", type=int, default=400, help="size of one large object for the memory figure; 0: none")
    args = a.parse_args()
    alone = os.path.join(args.build, "tests", "receiver_alone")
    if not os.access(alone, os.X_OK):
        sys.exit(f"no {alone}: build first, or give --build")
    ram = tempfile.mkdtemp(prefix="bench_receive.", dir=args.ram)
    disk = tempfile.mkdtemp(prefix="bench_receive.", dir=args.disk)
    try:
        files = [f"{ram}/{i:03d}.dcm" for i in range(args.objects)]
        for i, path in enumerate(files):
            make_object(path, f"2.25.9{i:03d}", 1)
        result = {"objects": args.objects, "load_average": os.getloadavg()[0], "cpus": os.cpu_count(),
                  "ram": side_by_side(alone, ram, files, args.repeat), "disk": side_by_side(alone, disk, files, args.repeat)}
        if args.big_mb:
            for path in files:
                os.unlink(path)
            frames = max(1, round(args.big_mb * 1e6 / (ROWS * COLUMNS * 2)))
            make_object(files[0], "2.25.9999", frames)
            size = os.path.getsize(files[0])
            seconds, kb = run_ours(alone, disk, files[:1])
            result["big"] = {"bytes": size, "s": round(seconds, 3), "ours_peak_rss_mb": round(kb / 1024, 1)}
        print(json.dumps(result, indent=2))
    finally:
        shutil.rmtree(ram, ignore_errors=True)
        shutil.rmtree(disk, ignore_errors=True)


if __name__ == "__main__":
    main()
