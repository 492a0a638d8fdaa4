#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a random worker among several on one device while exams run: nothing is lost, nothing is double, all results are the same.

    tests/gpu/worker_kills.py [--kills N] [--device NAME] [--workers N] [--binning N] [--seed N]

--senders storescu send one exam after the other, at most --ahead more than are delivered. Less than a second after all workers are ready, one
of them is killed, until N were killed; then all exams that were acknowledged must be delivered by themselves. The
PACS is storescp, which writes down every object that it gets. Exit 1: a case is not delivered, an object arrived twice or has other
pixels, an image is in no case, or no kill hit a case.
"""
import argparse
import collections
import hashlib
import os
import random
import re
import shutil
import signal
import sys
import threading
import time

import node_bench as bench


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--kills", type=int, default=20)
    a.add_argument("--device", default="cuda:0")
    a.add_argument("--workers", type=int, default=3, help="of the device; default 3")
    a.add_argument("--senders", type=int, default=3)
    a.add_argument("--ahead", type=int, default=8, help="most exams that are sent and not delivered; default 8")
    a.add_argument("--binning", type=int, default=2, help="of the simulated detector; default 2")
    a.add_argument("--protocol", default="dbt-osem-full")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the protocol, as in the configuration")
    a.add_argument("--seed", type=int, default=None)
    a.add_argument("--timeout", type=float, default=120, help="s without a delivery after which the test fails")
    a.add_argument("--work", help="folder on a RAM disk; default /dev/shm")
    return a.parse_args()


class Kills:
    def __init__(self, args, work):
        self.args, self.rng = args, random.Random(args.seed)
        self.received = os.path.join(work, "received")
        self.receiver = bench.Receiver(os.path.join(work, "pacs"), f"echo '#f' >>'{self.received}'")
        self.exams = [bench.Exam(os.path.join(work, f"exam{i}"), "--binning", str(args.binning)) for i in range(args.senders)]
        names = ",".join([args.device] * (args.workers if args.device.startswith("cpu") else 1))
        self.node = bench.Node(os.path.join(work, "node"), self.receiver.port, names, args.protocol, args.set,
                               extra=f"workers_per_device = {args.workers if names == args.device else 1}; attempts = 100;")
        self.lock, self.error, self.stop = threading.Lock(), None, False
        self.sent, self.pixels, self.gone = 0, {}, {}
        self.killed = 0

    def send(self, exam):
        try:
            while not self.stop:
                with self.lock:
                    free = self.sent - len(self.gone) < self.args.ahead
                    number = self.sent = self.sent + free
                if not free:
                    time.sleep(0.01)
                    continue
                exam.renew(number)
                bench.send(self.node.port, exam.files)
        except (bench.Trouble, OSError) as e:
            self.error = e

    def look(self):
        """Take what arrived, and remove the files of cases that are delivered."""
        for name in self.receiver.complete():
            path = os.path.join(self.receiver.folder, name)
            if os.path.getsize(path) == 0:  # it was looked at
                continue
            with open(path, "rb") as f:
                data = f.read()
            self.pixels.setdefault(name, set()).add(hashlib.sha256(data[data.find(bench.PIXEL_DATA):]).hexdigest())
            os.truncate(path, 0)
        for job in self.node.jobs():
            if job["state"] == "delivered" and job["id"] not in self.gone:
                shown = self.node.show(job["id"])
                self.gone[job["id"]] = collections.Counter(e["event"] for e in shown["events"]), len(shown["instances"])
                for row in shown["instances"]:
                    os.unlink(os.path.join(self.node.spool, row["file"]))
                shutil.rmtree(os.path.join(self.node.spool, "outbox", str(job["id"])), ignore_errors=True)

    def ready(self):
        """Whether all workers were started again."""
        return self.log().count("device-ready") >= self.args.workers + self.killed

    def log(self):
        with open(self.node.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def kill(self):
        """Kill a random worker that has made a result, if all are ready. Three deaths before a result disable a slot for ten minutes."""
        proved = {int(pid) for pid in re.findall(r" worker\[(\d+)\] job-reconstructed ", self.log())}
        workers = [pid for what, pid in self.node.processes() if what == "worker" and pid in proved]
        if not workers or not self.ready():
            return
        try:
            os.kill(self.rng.choice(workers), signal.SIGKILL)
            self.killed += 1
            print(f"kill {self.killed}: {len(self.gone)} exams delivered", flush=True)
        except ProcessLookupError:
            pass

    def kill_at_random(self):
        while self.killed < self.args.kills and not self.error:
            time.sleep(self.rng.uniform(0, 1))
            if len(self.gone) > 2:
                self.kill()
        self.stop = True

    def run(self):
        bench.wait_for("workers are ready", self.ready, 120)
        threads = [threading.Thread(target=self.send, args=(e,), daemon=True) for e in self.exams]
        threads.append(threading.Thread(target=self.kill_at_random, daemon=True))
        for t in threads:
            t.start()
        last, before = time.monotonic(), 0
        while True:
            self.look()
            if self.error:
                raise self.error
            if len(self.gone) > before:
                before, last = len(self.gone), time.monotonic()
            if time.monotonic() - last > self.args.timeout:
                raise bench.Trouble(f"no case delivered for {self.args.timeout} s\n{self.node.log_end()}")
            if self.stop and not any(t.is_alive() for t in threads) and len(self.gone) >= self.sent:
                break
            time.sleep(0.02)

    def judge(self):
        """What is wrong, as sentences."""
        time.sleep(1)  # a second delivery would come now
        self.look()
        with open(self.received, encoding="ascii") as f:
            received = collections.Counter(f.read().split())
        crashes = sum(events["crashed"] for events, _ in self.gone.values())
        images = {n for _, n in self.gone.values()}
        unassigned = self.node.unassigned()
        print(f"{self.killed} kills of {self.args.workers} workers on {self.args.device}: {crashes} hit a case; {self.sent} exams sent, {len(self.gone)} delivered,"
              f" {len(received)} objects at the PACS, {sum(received.values())} received; pixels of {len(set().union(*self.pixels.values()))} kind")
        wrong = [] if crashes else ["no kill hit a case"]
        wrong += [f"job {job}: {n} x {name}" for job, (events, _) in self.gone.items() for name, n in events.items()
                  if name in ("reconstructed", "delivered") and n != 1]
        wrong += [f"{name} was received {n} times" for name, n in received.items() if n != 1]
        wrong += [f"{len(received)} objects of {self.sent} exams"] if len(received) != self.sent else []
        wrong += ["objects have different pixels"] if len(set().union(*self.pixels.values())) != 1 else []
        wrong += [f"cases have {sorted(images)} images"] if images != {len(self.exams[0].files)} else []
        return wrong + ([f"{len(unassigned)} objects are in no case"] if unassigned else [])


def main():
    args = arguments()
    args.seed = random.randrange(1 << 30) if args.seed is None else args.seed
    work, kills, wrong = bench.work_folder(args.work), None, []
    print(f"seed {args.seed}", flush=True)
    try:
        kills = Kills(args, work)
        kills.run()
        wrong = kills.judge()
    except bench.Trouble as e:
        wrong = [str(e)]
    finally:
        for thing in (kills.node, kills.receiver) if kills else ():
            thing.stop()
        shutil.rmtree(work, ignore_errors=True)
    if wrong:
        sys.exit("worker_kills: " + "\n".join(wrong))


main()
