# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any process of the node, at every event of the journal and at random bytes of a transfer: what was
acknowledged is stored, each exam yields exactly one result, and nobody has to do anything but start the node again
where its main process was killed.

Of tomosynthesis, of one with three results, of a PET acquisition with time of flight in several objects, of the raw
data of an mMR: a test each. Each event once, with another process each, and a few random bytes. With TOMONODE_KILLS=N
(tests/soak.sh): every event with every process first, then random ones, N in all. What is checked from outside: what
the sender was told against spool and archive."""
import os
import signal
import time

import pytest
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import exam_kinds
from tools import kill_tools
from tools import node_harness as h
from tools.kill_tools import ROLES
from tools.node_harness import check, wait_for

# part: all images but one are acknowledged; work: some time after "started"; answer: of the archive to one of the
# objects, not yet written down
EVENTS = ["opened", "instance", "part", "complete", "started", "work", "reconstructed", "sent", "commit-requested",
          "committed", "delivered",
          "answer"]
h.need(h.TOMONODE)


def stored(_uid, _data):
    return peer.SUCCESS


class Events(kill_tools.Run):
    """Kills at events of the journal, at the archive's answer, and at bytes of a transfer."""

    def next_exam(self):
        """Its images in any order."""
        study, objects = super().next_exam()
        return study, self.rng.sample(objects, len(objects))

    def at_event(self, event, role):
        study, objects = self.next_exam()
        if event == "answer":
            self.at_answer(role)
            self.ledger.send(self.node.port, objects)
            wait_for("the archive is about to answer", lambda: self.archive.answer is stored, 60, 0.002)
        elif event == "part":
            check(self.ledger.send(self.node.port, objects[:-1]), "not every image was acknowledged")
            wait_for("the exam is opened", lambda: c.jobs_of(self.node.spool, study), 60, 0.002)
            self.hit(role, event)
        else:
            pause = self.rng.uniform(0, self.work) if event == "work" else 0
            watch = c.Watch(self.node.spool, "started" if event == "work" else event,
                            lambda: (time.sleep(pause), self.hit(role, event)))
            self.ledger.send(self.node.port, objects)
            # A handful of milliseconds after the sender is done the result is delivered; the watch sees its event on
            # the way.
            wait_for(f"the journal says {event}", lambda: watch.done, 60, 0.002)
            watch.stop()
        self.finish(study, objects)

    def at_answer(self, role):
        """The archive has the object, and the node dies before it can write that down: it comes again, and is one."""
        before = self.rng.randrange(self.exams.slices)  # objects that are answered without a kill

        def answer(_uid, _data):
            nonlocal before
            before -= 1
            if before == -1:
                self.hit(role, "answer")
                self.archive.answer = stored
            return peer.SUCCESS
        self.archive.answer = answer

    def measure(self):
        """An exam that nobody disturbs, for the seconds of its reconstruction and for its pixels."""
        study, objects = self.next_exam()
        self.finish(study, objects)
        times = dict(c.query(self.node.spool,
                             "SELECT name, time FROM event WHERE name IN ('started', 'reconstructed')"))
        self.work = times["reconstructed"] - times["started"]

    def at_byte(self, role):
        study, objects = self.next_exam()
        byte = self.rng.randrange(1, sum(len(o.data) for o in objects))
        self.ledger.send(self.node.port, objects, at_byte=(byte, lambda: self.hit(role, "a byte")),
                         max_pdu=self.rng.choice((4096, 16384, 131072)))
        self.finish(study, objects)


def short(rng, events):
    """Each event once; of all events every process at least once, delivery, commitment and the worker where they surely
    run."""
    surely = {"answer": "deliver", "commit-requested": "commit", "work": "worker"}
    others = [role for role in ROLES if role not in surely.values()] + ["all", "all", "manager"]
    rng.shuffle(others)
    plan = [(event, surely.get(event) or others.pop()) for event in events]
    return plan + [(None, role) for role in ("association", "all", "manager")[:len(events) // 4]]


def long(rng, kills):
    plan = [(event, role) for event in EVENTS for role in ROLES]
    while len(plan) < kills:
        plan.append((rng.choice(EVENTS + [None] * 7), rng.choice(ROLES)))
    rng.shuffle(plan)
    return plan[:kills]


def killed(folder, things, kind, events):
    """The plan, carried out with exams of a kind; events: those of the short one. Ends early when the minutes are
    over."""
    options, rng = c.arguments(kills=0)
    archive = kill_tools.Partner()
    archive.answer = stored
    if kind is not c.Exams and not options.kills:
        archive.how = "same"  # as soon as it is asked: nobody waits for it
    node = h.Node(os.path.join(folder, "node"), archive.port, quiet_time=30, device='"cpu:1"')
    archive.node_port = node.port
    node.destination.update(kill_tools.COMMITMENT)
    node.status = {"port": 0}
    node.write_conf()
    things += [node, archive]
    run = Events(node, archive, kind(os.path.join(folder, "exam")), rng)
    run.exams.configure(node)
    c.start(node)
    run.measure()
    over = c.until(options.minutes)
    for n, (event, role) in enumerate(long(rng, options.kills) if options.kills else short(rng, events)):
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
        if over():
            break
    check(set(archive.studies) == set(run.studies), "the archive has other studies than were sent")
    again = sum(len(arrivals) - 1 for arrivals in archive.held.values())
    run.conclude(f"kill -9: {kind.name}", [("results sent again under the same UID", again)])


@pytest.mark.long
def test_killed_at_every_event_and_at_random_bytes(folder, things):
    killed(folder, things, c.Exams, EVENTS)


def test_killed_with_several_results(folder, things):
    killed(folder, things, exam_kinds.SeveralResults,
           ["complete", "started", "work", "reconstructed", "sent", "answer"])


def test_killed_with_chunks_of_time_of_flight(folder, things):
    killed(folder, things, exam_kinds.TofChunks,
           ["instance", "part", "started", "work", "reconstructed", "sent", "answer"])


def test_the_indexer_killed_again_and_again(folder, things):
    """It is killed before it has read anything, more than once at the same image: nobody may conclude that the image is
    bad."""
    archive = peer.Archive()
    node = h.Node(os.path.join(folder, "node"), archive.port, quiet_time=30)
    things += [node, archive]
    study, objects = c.Exams(os.path.join(folder, "exam")).number(1)
    node.start()
    node.process.send_signal(signal.SIGSTOP)  # so that it starts the indexer only when we look
    ledger = c.Ledger()
    check(ledger.send(node.port, objects), "not every image was acknowledged")
    node.process.send_signal(signal.SIGCONT)
    killed = 0
    while killed < 3 and not c.jobs_of(node.spool, study):  # where the machine is slow it may be faster than we are
        wait_for("an indexer is killed, or done", lambda: c.kill_role(node, "index") or c.jobs_of(node.spool, study),
                 60, 0.0005)
        killed = node.log_text().count(" index-ended ")
    wait_for("the exam is delivered", lambda: study in archive.studies)
    check(not node.list()["unassigned"], f"set apart: {node.list()['unassigned']}")


def test_killed_while_several_are_in_work(folder, things):
    """Two workers and three associations to the archive: while many exams are in work, one process after the other is
    killed."""
    archive = peer.Archive()
    node = h.Node(os.path.join(folder, "node"), archive.port, quiet_time=30, device='"cpu:1, cpu:1"', attempts=20)
    node.destination.update(associations=3, retry_first=0.1)
    node.status = {"port": 0}
    node.write_conf()
    things += [node, archive]
    exams, ledger, sent, rng = c.Exams(os.path.join(folder, "exam")), c.Ledger(), [], c.arguments()[1]
    c.start(node)
    for n, role in enumerate(rng.sample(["worker", "worker", "deliver", "deliver", "manager", "all"], 6)):
        for number in range(2):
            study, objects = exams.number(2 * n + number + 1)
            ledger.send(node.port, objects)
            sent.append(study)
        before = len(archive.studies)
        if role == "deliver":  # they run for a short time each
            wait_for("a delivery is killed, or there is none", lambda: c.kill_role(node, "deliver")
                     or len(archive.studies) == len(sent), 60, 0.0005)
        else:
            wait_for("an exam is in work", lambda: any(j["state"] in ("running", "reconstructed") for j in node.jobs())
                     or len(archive.studies) > before
                     or len(archive.studies) == len(sent))
            c.kill_role(node, role)
        c.revive(node)
    wait_for("every exam is delivered", lambda: set(archive.studies) == set(sent)
             and set(node.states()) == {"delivered"}, 120)
    check(len(node.jobs()) == len(sent) and all(len(uids) == 1 for uids in archive.studies.values()),
          "not exactly one result each")
    check(all(len(set(arrivals)) == 1 for arrivals in archive.held.values()), "an object came again with other bytes")
    ledger.check_spool(node.spool)
