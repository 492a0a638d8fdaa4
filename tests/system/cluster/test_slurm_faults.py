#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Faults at random moments while pilots of Slurm reconstruct: of the node, of its processes, of pilots and of Slurm's daemons. In the end every
exam has exactly one result in the archive, no job and no secret is left, and nobody had to act.

    test_slurm_faults.py [--faults N] [--seed S]

One exam for each fault, N faults (5); each kind of fault once before any of them comes twice.
"""
import argparse
import contextlib
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from tools import cluster_tools as c
from tools import node_harness as h
from tools.node_harness import TOMONODE, check, wait_for
from tools.slurm_tools import need_slurm

need_slurm()
h.need("storescu", "Orthanc")
LEASE = 3


class Run:
    def __init__(self, folder, things, rng):
        self.rng, self.folder = rng, folder
        self.slurm = c.start_slurm(folder, things)
        self.archive = h.Orthanc(os.path.join(folder, "pacs"))
        things.append(self.archive)
        self.archive.start()
        self.node = c.cluster_node(folder, self.slurm, self.archive.port, program=f'"{TOMONODE}"', output=f'"{folder}/pilot.%j"')
        self.node.cluster["lease"] = LEASE
        self.node.slurm["idle"] = 5.0
        c.write(self.node)
        things.append(self.node)
        self.node.start()

    def signal(self, pids, number, pause=0):
        """Send it to one of the processes; with a pause SIGCONT after it. Nothing if there is none now."""
        if not pids:
            return
        pid = self.rng.choice(pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            if pause:
                time.sleep(pause)
                os.kill(pid, signal.SIGCONT)

    def restart(self, name, start):
        self.slurm.kill(name)
        time.sleep(self.rng.uniform(0, 2))
        start()

    # ---- the faults ----

    def pilot_killed(self):
        self.signal(self.slurm.processes_of("pilot"), signal.SIGKILL)

    def pilot_stopped(self):
        self.signal(self.slurm.processes_of("pilot"), signal.SIGSTOP, 2 * LEASE)

    def node_killed(self):
        self.node.kill()
        self.node.start()

    def manager_stopped(self):
        self.signal([self.node.process.pid], signal.SIGSTOP, self.rng.uniform(1, 2 * LEASE))

    def seat_killed(self):
        self.signal(self.node.processes("seat"), signal.SIGKILL)

    def cluster_process_killed(self):
        self.signal(self.node.processes("cluster"), signal.SIGKILL)

    def controller_killed(self):
        self.restart("slurmctld", self.slurm.start_controller)

    def slurmd_killed(self):
        name = self.rng.choice(list(self.slurm.nodes))
        self.restart(name, lambda: self.slurm.start_node(name))

    def slurmd_stopped(self):
        self.signal([self.slurm.processes[self.rng.choice(list(self.slurm.nodes))].pid], signal.SIGSTOP, 3)

    def job_cancelled(self):
        jobs = self.slurm.jobs("%i")
        if jobs:
            self.slurm.command("scancel", self.rng.choice(jobs)[0], code=None)

    def job_requeued(self):
        jobs = self.slurm.jobs("%i")
        if jobs:
            self.slurm.command("scontrol", "requeue", self.rng.choice(jobs)[0], code=None)

    FAULTS = (pilot_killed, node_killed, cluster_process_killed, controller_killed, pilot_stopped, seat_killed, job_requeued, slurmd_killed,
              manager_stopped, slurmd_stopped, job_cancelled)

    # ---- the run ----

    def exam(self, number, fault):
        files = h.simulate(os.path.join(self.folder, f"exam{number}"), "--seed", number, "--views", 9)
        missing = set(files)
        sent = h.send(self.node.port, sorted(missing), code=None)
        missing -= sent
        time.sleep(self.rng.uniform(0, 1.5))
        began = time.monotonic()
        fault(self)
        while missing:  # as a modality does
            missing -= h.send(self.node.port, sorted(missing), code=None)
        wait_for(f"exam {number} is delivered after {fault.__name__}: {self.node.states()}",
                 lambda: self.node.states() == ["delivered"] * number, 180)
        print(f"{number:4d} {fault.__name__}: {time.monotonic() - began:.1f} s", flush=True)


def test_faults(folder, things):
    rng = random.Random(options.seed)
    run = Run(folder, things, rng)
    faults = []
    for number in range(1, options.faults + 1):
        faults = faults or list(Run.FAULTS)
        run.exam(number, faults.pop(0 if number <= len(Run.FAULTS) else rng.randrange(len(faults))))
    found = run.archive.objects()
    check(len(found) == options.faults and all(len(uids) == 1 for uids in found.values()), f"the archive has {found}")
    wait_for("all jobs have ended", lambda: not run.slurm.jobs(), 120)
    wait_for("no secret is left", lambda: not os.listdir(os.path.join(run.node.spool, "pilots")), 120)
    wait_for("Slurm is up", lambda: c.cluster(run.node)["state"] == "up")
    check(not os.listdir(os.path.join(run.node.spool, "work")), "work/ is not empty")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=5)
    parser.add_argument("--seed", type=int, default=h.seed())
    options = parser.parse_args()
    sys.argv = sys.argv[:1]
    print(f"seed {options.seed}")
    h.main([test_faults])
