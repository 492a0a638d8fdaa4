# SPDX-License-Identifier: Apache-2.0
"""Faults at random moments while pilots of Slurm reconstruct: of the node, of its processes, of pilots, of the
connection and of Slurm's daemons. In the end every acknowledged image is stored, every exam has exactly one result in
the archive, no job and no secret is left, nobody had to act, and all the time the status page explained what it showed.

One or two exams for each of TOMONODE_FAULTS faults; each kind of fault once before any of them comes twice, or only
TOMONODE_ONLY. TOMONODE_SHARED=1: pilots read and write the spool."""
import contextlib
import os
import signal
import threading
import time

import pytest

from tools import cluster_tools as c
from tools import contract_tools as contract
from tools import kill_tools
from tools import node_harness as h
from tools.fault_tools import Line, Witness
from tools.node_harness import TOMONODE, check, wait_for
from tools.slurm_tools import need_slurm

HELLO = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "pilot_hello")
pytestmark = pytest.mark.tier2("Slurm")
OPTIONS, RNG = contract.arguments(faults=5, shared=0, only="")
LEASE = 3
PROGRAM = """#!/bin/sh
# The pilot; while there is a file `other`, one of another version.
export TMPDIR="{folder}/disk"
[ ! -e "{folder}/other" ] || {{ read secret; exec "{hello}" "$3" "$5" "$secret" "$(date +%s%3N)" "0.0 (other)"; }}
exec "{tomonode}" "$@"
"""


@pytest.fixture(scope="module", autouse=True)
def programs():
    need_slurm()
    h.need("Orthanc", HELLO)


class Disk:
    """The disk of the pilots: small, if this machine can mount one."""

    def __init__(self, path):
        self.path, self.stack, self.small = path, contextlib.ExitStack(), False
        os.makedirs(path)
        with contextlib.suppress(pytest.skip.Exception):
            self.stack.enter_context(contract.small_disk(path, "64m"))
            self.small = True

    def stop(self):
        self.stack.close()


class Run(kill_tools.Run):
    def __init__(self, folder, things):
        self.folder = folder
        self.slurm = c.start_slurm(folder, things)
        archive = kill_tools.Orthanc(os.path.join(folder, "pacs"))
        archive.start()
        self.disk = Disk(os.path.join(folder, "disk"))
        things += [archive, self.disk]
        node = self.configured(c.cluster_node(folder, self.slurm, archive.port))
        things += [node, self.line]
        super().__init__(node, archive, contract.Exams(os.path.join(folder, "exam"), "--system", "siemens-inspiration",
                                                       "--binning", "8",
                                                       "--views", "9"), RNG)
        contract.start(node)
        self.witness = Witness(node)
        things.append(self.witness)
        self.finish(*self.next_exam())
        began = time.monotonic()
        self.finish(*self.next_exam())
        self.span = time.monotonic() - began

    def configured(self, node):
        program = os.path.join(self.folder, "program")
        h.write_file(program, PROGRAM.format(folder=self.folder, hello=HELLO, tomonode=TOMONODE))
        os.chmod(program, 0o755)
        self.line = Line(node.cluster_port)
        node.cluster.update(lease=LEASE, advertise=f'"127.0.0.1:{self.line.port}"', shared_spool="true"
                            if OPTIONS.shared else "false")
        node.slurm.update(program=f'"{program}"', output=f'"{self.folder}/pilot.%j"', idle=5.0)
        node.protocol.update(iterations=2, slice_spacing=1.0)
        c.write(node)
        return node

    # ---- the faults ----

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

    def pause(self):
        return self.rng.uniform(1, 2 * LEASE)

    def pilot_killed(self):
        self.signal(self.slurm.processes_of("pilot"), signal.SIGKILL)

    def pilot_stopped(self):
        self.signal(self.slurm.processes_of("pilot"), signal.SIGSTOP, 2 * LEASE)

    def node_killed(self):
        contract.kill_role(self.node, "all")

    def node_stopped(self):
        os.killpg(self.node.session, signal.SIGSTOP)
        time.sleep(self.pause())
        os.killpg(self.node.session, signal.SIGCONT)

    def manager_killed(self):
        contract.kill_role(self.node, "manager")

    def manager_stopped(self):
        self.signal([self.node.session], signal.SIGSTOP, self.pause())

    def seat_killed(self):
        self.signal(self.node.processes("seat"), signal.SIGKILL)

    def cluster_process_killed(self):
        self.signal(self.node.processes("cluster"), signal.SIGKILL)

    def restart(self, name, start):
        self.slurm.kill(name)
        time.sleep(self.rng.uniform(0, 2 * LEASE))
        start()

    def controller_killed(self):
        self.restart("slurmctld", self.slurm.start_controller)

    def controller_stopped(self):
        self.signal([self.slurm.processes["slurmctld"].pid], signal.SIGSTOP, 2 * self.pause())

    def slurmd_killed(self):
        name = self.rng.choice(list(self.slurm.nodes))
        self.restart(name, lambda: self.slurm.start_node(name))

    def slurmd_stopped(self):
        self.signal([self.slurm.processes[self.rng.choice(list(self.slurm.nodes))].pid], signal.SIGSTOP, self.pause())

    def job(self):
        jobs = self.slurm.jobs("%i")
        return self.rng.choice(jobs)[0] if jobs else None

    def job_cancelled(self):
        if job := self.job():
            self.slurm.command("scancel", job, code=None)

    def job_requeued(self):
        if job := self.job():
            self.slurm.command("scontrol", "requeue", job, code=None)

    def line_cut(self):
        """Neither FIN nor RST; afterwards the old connections go on, or are dead for ever."""
        self.line.cut(forget=self.rng.random() < 0.5)
        time.sleep(self.rng.uniform(0, 2 * LEASE))
        self.line.mend()

    def pilots_disk_full(self):
        if not self.disk.small or OPTIONS.shared:
            print("skipped: pilots_disk_full: " + ("the pilots have no disk" if OPTIONS.shared
                                                   else "only root may mount a tmpfs"))
            return
        contract.fill(self.disk.path, self.rng.choice((0, self.rng.randrange(4 << 20))))
        time.sleep(self.pause())
        contract.fill(self.disk.path, None)

    def other_version(self):
        """Slurm starts pilots of another version; they are refused."""
        before, path = self.node.log_text().count("it is version 0.0 (other)"), os.path.join(self.folder, "other")
        with open(path, "w", encoding="ascii"):
            pass
        for job, in self.slurm.jobs("%i"):
            self.slurm.command("scancel", job, code=None)
        until = time.monotonic() + 2 * LEASE
        while time.monotonic() < until and self.node.log_text().count("it is version 0.0 (other)") == before:
            time.sleep(0.1)
        os.unlink(path)

    def token_replayed(self):
        """Somebody has the secret of a pilot, and uses a token again."""
        folder = os.path.join(self.node.spool, "pilots")
        for name in [n for n in os.listdir(folder) if n.endswith(".used")]:
            with contextlib.suppress(FileNotFoundError):
                token = h.read_file(os.path.join(folder, name)).strip().lstrip("0")
                secret = h.read_file(os.path.join(folder, name[:-5])).strip()
                said = h.run(HELLO, f"127.0.0.1:{self.node.cluster_port}", name[:-5], secret, token, "0.0 (other)",
                             code=None).stdout
                check("WELCOME" not in said and "version" not in said, f"a token that was used is accepted: {said}")

    FAULTS = (line_cut, pilots_disk_full, other_version, node_killed, pilot_stopped, token_replayed, pilot_killed,
              cluster_process_killed,
              controller_killed, seat_killed, job_requeued, slurmd_killed, manager_killed, manager_stopped,
              node_stopped, slurmd_stopped, job_cancelled,
              controller_stopped)

    # ---- the run ----

    def carry_out(self, number, fault):
        exams = [self.next_exam()]
        if self.rng.random() < 0.4:
            exams.append(self.exams.number(5000 + number))
        senders = [threading.Thread(target=self.ledger.send, args=(self.node.port, objects), daemon=True) for _,
                   objects in exams]
        for sender in senders:
            sender.start()
        time.sleep(self.rng.uniform(0, self.span))
        began = time.monotonic()
        fault(self)
        self.kills += 1
        self.killed[fault.__name__] += 1
        for sender in senders:
            sender.join(120)
            check(not sender.is_alive(), "a sender hangs")
        for study, objects in exams:
            self.finish(study, objects, 300)
        check(not self.witness.wrong, f"the status page: {self.witness.wrong[:3]}")
        print(f"{number:4d} {fault.__name__}: {len(exams)} exam(s), {time.monotonic() - began:.1f} s", flush=True)

    def rows(self):
        return [("faults", self.kills), *super().rows()[1:], ("samples of the status page", self.witness.samples)]


def test_faults(folder, things):
    run = Run(folder, things)
    kinds = [f for f in Run.FAULTS if OPTIONS.only in ("", f.__name__)]
    print(f"an exam takes {run.span:.2f} s when undisturbed", flush=True)
    waiting = []
    for number in range(1, OPTIONS.faults + 1):
        waiting = waiting or (list(kinds) if number == 1 else RNG.sample(kinds, len(kinds)))
        fault = waiting.pop(0)
        try:
            run.carry_out(number, fault)
        except AssertionError as e:
            raise AssertionError(f"fault {number}, {fault.__name__}: {e}") from e
    wait_for("all jobs have ended", lambda: not run.slurm.jobs(), 120)
    wait_for("no secret is left", lambda: not os.listdir(os.path.join(run.node.spool, "pilots")), 120)
    wait_for("Slurm is up", lambda: c.cluster(run.node)["state"] == "up")
    check(not os.listdir(os.path.join(run.node.spool, "work")), "work/ is not empty")
    check(not run.disk.small or not os.listdir(run.disk.path), f"the pilots left {os.listdir(run.disk.path)}")
    contract.print_table("what the status page said", sorted((f"{state}: {text}", n) for (state, text),
                                                             n in run.witness.said.items()))
    run.conclude("faults while pilots of Slurm reconstruct")
