# SPDX-License-Identifier: Apache-2.0
"""What the tests that kill share: one node, one archive, everything that senders were told, and the judgement over
it."""
import collections
import time

from tools import commit_peer
from tools import contract_tools as c
from tools import node_harness as h
from tools.node_harness import check, wait_for

ROLES = ["all", "manager", "receiver", "association", "index", "worker", "deliver", "commit",
         "status"] + (["seat", "cluster"] if h.EXECUTOR == "slurm" else [])
COMMITMENT = {"retry_first": 0.1, "retry_cap": 0.5, "commitment": "true", "commitment_wait": 1,
              "commitment_timeout": 2, "commitment_attempts": 50}


class Partner(commit_peer.Partner):
    """The archive of a few lines, which commits itself on an association of its own, as real ones do."""

    def __init__(self, node_port=None):
        super().__init__(node_port)
        self.how = "new"

    def results(self, study):
        """SOP Instance UID: digest of the pixels."""
        return {uid: self.pixels[uid] for uid in self.studies.get(study, ())}

    def report(self, transaction, verdicts):
        try:
            super().report(transaction, verdicts)
        except (OSError, commit_peer.Gone):
            pass  # nobody is there to hear it: he will ask again


class Orthanc(h.Orthanc):
    """A real PACS, asked by REST."""

    def results(self, study):
        found = self.objects_of(study)
        check(found is not None, "Orthanc does not answer")
        return dict.fromkeys(found, "")


class Run:
    """`archive` has results(study). What is expected of each exam is one result, the same pixels for each, whoever was
    killed on the way."""

    def __init__(self, node, archive, exams, rng):
        self.node, self.archive, self.exams, self.rng = node, archive, exams, rng
        self.ledger, self.studies = c.Ledger(), []
        self.kills, self.restarts, self.killed = 0, 0, collections.Counter()
        self.pixels = None  # of each result

    def next_exam(self):
        return self.exams.number(len(self.studies))

    def hit(self, role, at):
        """Kill it where it is alive now or a moment later, else the whole node. Who died."""
        until = time.monotonic() + 0.05
        while not c.kill_role(self.node, role):
            if time.monotonic() > until:
                role = "all"
        self.kills += 1
        self.killed[role] += 1
        self.killed["at " + at] += 1
        return role

    def finish(self, study, objects, seconds=120):
        """What a modality does (send again what was not acknowledged) until all is acknowledged; then the exam must be
        done by itself."""
        until = time.monotonic() + seconds
        while True:
            self.restarts += c.revive(self.node)
            if self.ledger.send(self.node.port, objects):
                break
            check(time.monotonic() < until, f"the exam is not acknowledged after {seconds} s")
            time.sleep(0.05)

        def done():
            self.restarts += c.revive(self.node)
            jobs = c.jobs_of(self.node.spool, study)
            return len(jobs) >= self.exams.jobs and all(c.events_of(self.node.spool, j)[-1] == "delivered" for j
                                                        in jobs)
        events = [c.events_of(self.node.spool, j) for j in c.jobs_of(self.node.spool, study)]
        wait_for(f"the exam is delivered, its jobs were {events}", done, seconds, 0.02)
        jobs, results = c.jobs_of(self.node.spool, study), self.archive.results(study)
        check(len(jobs) == self.exams.jobs, f"{len(jobs)} jobs for one exam")
        check(len(results) == self.exams.slices,
              f"the archive has {len(results)} objects of the exam, not {self.exams.slices}")
        self.pixels = self.pixels or sorted(results.values())
        check(sorted(results.values()) == self.pixels, "other pixels than those of the first exam")
        missing = self.ledger.missing(self.node.spool, [o.uid for o in objects])
        check(not missing, f"acknowledged and not in the spool: {missing[:3]}")
        self.studies.append(study)

    def judge(self):
        """Once more over all of it, after a clean end, and after the sweep of another start."""
        check(self.node.stop() == 0, "SIGTERM: the exit code is not 0")
        c.start(self.node)
        self.ledger.check_nothing_else(self.node.spool)
        check(len(self.ledger.acknowledged) == len(self.studies) * len(self.exams), "not every image was acknowledged")
        self.removed = c.removed(self.node.spool)
        self.lost = len(self.ledger.missing(self.node.spool, set(self.ledger.acknowledged) - self.removed))
        results = [len(self.archive.results(study)) for study in self.studies]
        self.missing, self.double = sum(n < self.exams.slices for n in results), sum(n > self.exams.slices for n
                                                                                     in results)
        self.by_hand = sum(state not in ("delivered", "cleaned") for state
                           in self.node.states()) + len(self.node.list()["unassigned"])

    def rows(self):
        killed = sorted(self.killed.items())
        found = [("kill -9", self.kills), ("exams, images", f"{len(self.studies)}, {len(self.ledger.acknowledged)}"),
                 ("of", ", ".join(f"{role} {n}" for role, n in killed if not role.startswith("at "))),
                 ("at", ", ".join(f"{role[3:]} {n}" for role, n in killed if role.startswith("at "))),
                 ("starts of the node again", self.restarts), ("acknowledged images lost", self.lost),
                 ("results missing", self.missing),
                 ("exams with more than one result", self.double),
                 ("jobs and images that wait for a person", self.by_hand)]
        return found + ([("images removed by retention since", len(self.removed))] if self.removed else [])

    def conclude(self, title, more=()):
        self.judge()
        c.print_table(title, self.rows() + list(more))
        check(self.lost + self.missing + self.double + self.by_hand == 0,
              "the table above has a figure that should be 0")
