#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A day in fast motion: thousands of small exams through one daemon. Do memory, descriptors, threads and disk stay
flat, and is nothing lost?

    soak_day.py [--exams N] [--minutes M] [--batch N]

Exams of three images of 10 kB come one after the other, as fast as they are acknowledged, but never more than a batch
ahead of the archive. The node's wall clock is advanced so that N exams fill 24 hours (tests/preload/clock_offset.c),
and node.retention_space keeps the disk small. After each batch, when all is delivered and only manager, receiver and
worker are there, their figures are noted; the table has the medians of the second quarter and of the last."""
import argparse
import contextlib
import os
import statistics
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

DAY = 86400


def folder_bytes(path):
    """What its files take on the disk; retention may remove some meanwhile."""
    total = 0
    for root, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
    return total


def memory_of(pid):
    return int(c.status_lines(pid).get("VmRSS", "0").split()[0]) / 1024


class Day:
    def __init__(self, folder, things, exams, minutes, batch):
        self.count, self.batch = exams, min(batch, max(1, exams // 8))
        self.over = c.until(minutes)
        self.archive = peer.Archive()
        self.node = h.Node(os.path.join(folder, "node"), self.archive.port, quiet_time=3600, retention_space='"20 MB"',
                           device='"cpu:1"')
        self.node.destination.update(retry_first=0.1, retry_cap=0.5)
        self.node.status = {"port": 0}
        self.node.write_conf()
        things += [self.node, self.archive]
        self.exams = c.Exams(os.path.join(folder, "exam"))
        self.clock = c.Clock(folder)
        self.acknowledged = self.sent = 0
        self.readings = []

    def send(self, number):
        study, objects = self.exams.number(number)
        done, _ = peer.store_all(self.node.port, objects)
        self.acknowledged += len(done)
        self.sent += 1
        check(len(done) == len(objects), f"exam {number}: {len(done)} of {len(objects)} images acknowledged")
        self.clock.set(DAY * self.sent / self.count)

    def read(self, seconds):
        """When it is at rest."""
        figures = c.resting(self.node, 60)
        found = c.roles(self.node)
        spool = self.node.spool
        figures.update({role + " MB": memory_of(found[role][0]) for role in ("manager", "receiver", "worker", "status")
                        if role in found},
                       **{"ms each": 1000 * seconds / self.batch, "exams": self.sent,
                          "images and results MB":
                          (folder_bytes(spool + "/instances") + folder_bytes(spool + "/outbox")) / 1e6,
                          "journal MB": os.path.getsize(os.path.join(spool, "journal.db")) / 1e6,
                          "files": sum(len(names) for _, _, names in os.walk(spool))})
        self.readings.append(figures)
        if len(self.readings) % 10 == 1:
            print("  " + ", ".join(f"{name} {value:.0f}" for name, value in figures.items()), flush=True)

    def run(self):
        self.clock.start(self.node)
        wait_for("the worker is ready", lambda: "device-ready" in self.node.log_text(), 60)
        while self.sent < self.count and not self.over():
            began = time.monotonic()
            for _ in range(min(self.batch, self.count - self.sent)):
                self.send(self.sent)
            wait_for(f"{self.sent} exams are delivered, {len(self.archive.studies)} are",
                     lambda: len(self.archive.studies) >= self.sent, 300, 0.01)
            self.read(time.monotonic() - began)

    def quarter(self, name):
        values = [r[name] for r in self.readings if name in r]
        n = len(values)
        return statistics.median(values[n // 4:n // 2 or 1]), statistics.median(values[3 * n // 4:])

    def judge(self):
        wrong = sum(len(uids) != 1 for uids in self.archive.studies.values())
        left = [s for s in self.node.states() if s not in ("delivered", "cleaned")]
        rows = [("exams, images acknowledged", f"{self.sent}, {self.acknowledged}"),
                ("exams with one result in the archive", len(self.archive.studies) - wrong),
                ("jobs that wait for a person", len(left)), ("", "second quarter -> last quarter")]
        for name in self.readings[0]:
            if name != "exams":
                first, last = self.quarter(name)
                rows.append((name, f"{first:.1f} -> {last:.1f}"))
        check(self.node.stop() == 0, "SIGTERM: the exit code is not 0")
        log = self.node.log_text()
        rows.append(("alarms in the log", sum(log.count(f" {level} ") for level in ("alert", "crit", "error"))))
        c.print_table("a day in fast motion", rows)
        check(len(self.archive.studies) - wrong == self.sent, "an exam has not exactly one result")
        check(not left, f"jobs that wait for a person: {left[:5]}")
        for name in ("descriptors", "threads", "processes"):
            first, last = self.quarter(name)
            check(last <= first, f"{name} grow from {first} to {last}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exams", type=int, default=10000)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--batch", type=int, default=100)
    options = parser.parse_args()
    with c.scratch() as (folder, things):
        run = Day(folder, things, options.exams, options.minutes, options.batch)
        run.run()
        run.judge()


if __name__ == "__main__":
    main()
