#!/usr/bin/python3
"""kill -9 of any process of the node, at every event of the journal and at random bytes of a transfer: what was acknowledged is stored, each
exam yields exactly one result, and nobody has to do anything but start the node again where its main process was killed.

    test_contract_kill.py [--kills N] [--seed S] [--minutes M]

Without --kills: each event once, with another process each, and a few random bytes. With it: every event with every process first, then
random ones. What is checked from outside: what the sender was told against spool and archive.
"""
import collections
import os
import time

import contract_tools as c
import dicom_peer as peer
import node_harness as h
from node_harness import check, wait_for

EVENTS = ["opened", "instance", "complete", "started", "reconstructed", "sent", "delivered", "answer"]  # answer: of the archive, not yet written down
ROLES = ["all", "manager", "receiver", "association", "index", "worker", "deliver", "status"]
h.need(h.TOMONODE, "echoscu")


def stored(_uid, _data):
    return peer.SUCCESS


class Run:
    """One node, one archive, and everything that senders were told."""

    def __init__(self, folder, things, rng):
        self.rng, self.ledger, self.studies = rng, c.Ledger(), []
        self.archive = peer.Archive()
        self.archive.answer = stored
        self.node = h.Node(os.path.join(folder, "node"), self.archive.port, quiet_time=30, device='"cpu:1"')
        self.node.destination.update(retry_first=0.1, retry_cap=0.5)
        self.node.status = {"port": 0}
        self.node.write_conf()
        things += [self.node, self.archive]
        self.exams = c.Exams(os.path.join(folder, "exam"))
        self.kills, self.restarts, self.killed = 0, 0, collections.Counter()
        self.node.start()

    def hit(self, role, at):
        """Kill it where it is alive now or a moment later, else the whole node."""
        until = time.monotonic() + 0.05
        while not c.kill_role(self.node, role):
            if time.monotonic() > until:
                role = "all"
        self.kills += 1
        self.killed[role] += 1
        self.killed["at " + at] += 1

    def finish(self, study, objects):
        """What a modality does (send again what was not acknowledged) until all is acknowledged; then the exam must be done by itself."""
        until = time.monotonic() + 60
        while True:
            self.restarts += c.revive(self.node)
            if self.ledger.send(self.node.port, objects):
                break
            check(time.monotonic() < until, "the exam is not acknowledged after a minute")
            time.sleep(0.05)

        def done():
            self.restarts += c.revive(self.node)
            jobs = c.jobs_of(self.node.spool, study)
            return jobs and c.events_of(self.node.spool, jobs[-1])[-1] == "delivered"
        wait_for(f"the exam is delivered, its jobs are {[c.events_of(self.node.spool, j) for j in c.jobs_of(self.node.spool, study)]}", done, 60, 0.02)
        jobs = c.jobs_of(self.node.spool, study)
        check(len(jobs) == 1, f"{len(jobs)} jobs for one exam")
        check(len(self.archive.studies.get(study, ())) == 1, f"the archive has {len(self.archive.studies.get(study, ()))} results of the exam")
        check(not self.ledger.missing(self.node.spool, [o.uid for o in objects]), "an acknowledged image is not in the spool")
        self.studies.append(study)

    def at_event(self, event, role):
        study, objects = self.exams.number(len(self.studies))
        if event == "answer":
            self.at_answer(role)
            self.ledger.send(self.node.port, objects)
            wait_for("the archive is about to answer", lambda: self.archive.answer is stored, 30, 0.002)
        else:
            watch = c.Watch(self.node.spool, event, lambda: self.hit(role, event))
            self.ledger.send(self.node.port, objects)
            # A handful of milliseconds after the sender is done the result is delivered; the watch sees its event on the way.
            wait_for(f"the journal says {event}", lambda: watch.done, 30, 0.002)
            watch.stop()
        self.finish(study, objects)

    def at_answer(self, role):
        """The archive has the object, and the node dies before it can write that down: it comes again, and is one."""
        def answer(_uid, _data):
            self.hit(role, "answer")
            self.archive.answer = stored
            return peer.SUCCESS
        self.archive.answer = answer

    def at_byte(self, role):
        study, objects = self.exams.number(len(self.studies))
        byte = self.rng.randrange(1, sum(len(o.data) for o in objects))
        self.ledger.send(self.node.port, objects, at_byte=(byte, lambda: self.hit(role, "a byte")), max_pdu=self.rng.choice((4096, 16384, 131072)))
        self.finish(study, objects)

    def judge(self):
        """Once more over all of it, after a clean end, and after the sweep of another start."""
        check(self.node.stop() == 0, "SIGTERM: the exit code is not 0")
        self.node.start()
        self.lost = len(self.ledger.missing(self.node.spool))
        self.ledger.check_nothing_else(self.node.spool)
        check(len(self.ledger.acknowledged) == len(self.studies) * len(self.exams), "not every image was acknowledged")
        check(set(self.archive.studies) <= set(self.studies), "the archive has other studies than were sent")
        self.missing = sum(study not in self.archive.studies for study in self.studies)
        self.double = sum(len(uids) > 1 for uids in self.archive.studies.values())
        self.by_hand = sum(state != "delivered" for state in self.node.states()) + len(self.node.list()["set_apart"])

    def rows(self):
        again = sum(len(arrivals) - 1 for arrivals in self.archive.held.values())
        return [("kill -9", self.kills), ("exams, images", f"{len(self.studies)}, {len(self.ledger.acknowledged)}"),
                ("of", ", ".join(f"{role} {n}" for role, n in sorted(self.killed.items()) if not role.startswith("at "))),
                ("at", ", ".join(f"{role[3:]} {n}" for role, n in sorted(self.killed.items()) if role.startswith("at "))),
                ("starts of the node again", self.restarts), ("acknowledged images lost", self.lost), ("results missing", self.missing),
                ("exams with more than one result", self.double), ("results sent again under the same UID", again),
                ("jobs and images that wait for a person", self.by_hand)]


def short(rng):
    """Each event once; every process at least once, the delivery where it surely runs."""
    roles = [role for role in ROLES if role != "deliver"]
    rng.shuffle(roles)
    roles += ["deliver"]
    return [(event, role) for event, role in zip(EVENTS, roles)] + [(None, role) for role in ("association", "all", "manager")]


def long(rng, kills):
    plan = [(event, role) for event in EVENTS for role in ROLES]
    while len(plan) < kills:
        plan.append((rng.choice(EVENTS + [None] * 7), rng.choice(ROLES)))
    rng.shuffle(plan)
    return plan[:kills]


def soak(folder, things, rng, kills, minutes=None):
    """The plan, carried out; Run. Ends early when the minutes are over."""
    run = Run(folder, things, rng)
    until = time.monotonic() + 60 * minutes if minutes else None
    for n, (event, role) in enumerate(long(rng, kills) if kills else short(rng)):
        try:
            if event:
                run.at_event(event, role)
            else:
                run.at_byte(role)
            check(run.kills == n + 1, "nothing was killed")
        except AssertionError as e:
            raise AssertionError(f"kill {n + 1}, of {role} at {event or 'a byte'}: {e}") from e
        if n % 50 == 49:
            print(f"  {n + 1} kills", flush=True)
        if until and time.monotonic() > until:
            break
    run.judge()
    c.print_table("kill -9", run.rows())
    check(run.lost + run.missing + run.double + run.by_hand == 0, "the table above has a figure that should be 0")
    return run


def the_indexer_killed_again_and_again(folder, things):
    """It is killed before it has read anything, more than once at the same image: nobody may conclude that the image is bad."""
    archive = peer.Archive()
    node = h.Node(os.path.join(folder, "node"), archive.port, quiet_time=30)
    things += [node, archive]
    study, objects = c.Exams(os.path.join(folder, "exam")).number(1)
    node.start()
    node.process.send_signal(19)  # stopped while the images come, so that it starts the indexer only when we look
    ledger = c.Ledger()
    check(ledger.send(node.port, objects), "not every image was acknowledged")
    node.process.send_signal(18)
    killed = 0
    while killed < 3 and not c.jobs_of(node.spool, study):  # where the machine is slow it may be faster than we are
        wait_for("an indexer is killed, or done", lambda: c.kill_role(node, "index") or c.jobs_of(node.spool, study), 20, 0.0005)
        killed = node.log_text().count(" index-ended ")
    wait_for("the exam is delivered", lambda: study in archive.studies, 30)
    check(not node.list()["set_apart"], f"set apart: {node.list()['set_apart']}")


def main():
    options, rng = c.arguments(kills=0)

    def killed_at_every_event_and_at_random_bytes(folder, things):
        soak(folder, things, rng, options.kills, options.minutes)

    h.main([killed_at_every_event_and_at_random_bytes] + ([] if options.kills else [the_indexer_killed_again_and_again]))


if __name__ == "__main__":
    main()
