# SPDX-License-Identifier: Apache-2.0
"""The order of writes, syncs, renames and responses, and power cuts computed from it.

A node runs with tests/preload/record_io.c, which records its calls. For every prefix of the record that ends before or
after a sync, after a change of a name, or with a response, tools/power_tools.py computes what a power cut leaves of the
spool: only what was synced, everything, each part of the spool alone in its worst or best state, and random parts of
what was not synced. Each of these states is compared with what the senders and the archive were told before the cut. On
some of them a node is started, which has to finish all exams; the calls of every fourth of these nodes are recorded,
too, and judged in the same way. TOMONODE_CUTS=N (tests/soak.sh): a node on N random states, of a run with 24 exams. The
default is short."""
import contextlib
import copy
import errno
import hashlib
import itertools
import json
import os
import shutil
import sqlite3

from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools import power_tools as power
from tools.node_harness import check, wait_for

h.need(h.TOMONODE)
DAY = 86400
KEY = "patient.key"
JOURNAL = ("journal.db", "journal.db-wal", "journal.db-journal")
NOT_COMPARED = ("journal.db-shm", "node.json", "work/")  # shared memory, and files written by stdio


# ---- a node that is recorded ----

class Archive(peer.Archive):
    """Writes to the record, if there is one, what it is about to acknowledge. archived: {study: UIDs} that it has."""

    def __init__(self, recorder=None, archived=()):
        super().__init__()
        self.recorder, self.studies = recorder, {study: set(uids) for study, uids in dict(archived).items()}
        self.answer = self.note

    def note(self, uid, data):
        if self.recorder:
            self.recorder.mark("archived", f"{c.study_of(data)} {uid}")
        return peer.SUCCESS


def set_up(node):
    """Two objects for a tomosynthesis, a series for parallel beams."""
    node.protocol["synthetic"] = "true"
    node.more_protocols = ', { name = "ct"; kind = "parallel"; mu_water = 0.02; }'
    node.more_routes = ', { name = "ct"; kind = "parallel"; protocols = [ "ct" ]; destinations = [ "pacs" ]; }'
    node.write_conf()


class Run:
    """A recorded node, its exams, and the digests of what was sent."""

    def __init__(self, folder, things, **settings):
        self.folder, self.exams = folder, c.Exams(os.path.join(folder, "exam"))
        self.ledger, self.digests = c.Ledger(), {}
        self.node = h.Node(os.path.join(folder, "node"), 1,
                           **{"quiet_time": 30, "retention_days": 30, "device": '"cpu:1"', **settings})
        self.recorder, self.clock = power.Recorder(folder, self.node.spool), c.Clock(folder)
        self.archive = Archive(self.recorder)
        self.node.pacs_port = self.archive.port
        set_up(self.node)
        things += [self.node, self.archive]

    def start(self, clock=0):
        self.clock.set(clock)
        self.recorder.mark("clock", str(clock))
        self.recorder.start(self.node, self.clock)

    def exam(self, n):
        """(Study Instance UID, objects); every third is one of parallel beams."""
        if n % 3 != 2:
            return self.exams.number(n)
        folder, study = os.path.join(self.folder, f"lines-{n}"), f"2.25.{10 ** 20 + n}"
        if not os.path.exists(folder):
            h.run(h.TOMONODE, "simulate", "parallel", "--size", "32", "--angles", "24", "--slices", "3", "--study",
                  study, "-o", folder)
        return study, [peer.Object(os.path.join(folder, "lines.dcm"))]

    def send(self, n):
        """Over three associations, the last object twice; until it is delivered."""
        study, objects = self.exam(n)
        self.digests.update({o.uid: o.digest for o in objects})
        self.recorder.mark("exam", str(n))
        for part in filter(None, (objects[:1], objects[1:], objects[-1:])):
            done, refused = peer.store_all(self.node.port, part)
            check(len(done) == len(part) and not refused, f"exam {n} is not acknowledged")
            self.ledger.add(done)
        wait_for("delivered", lambda: states(self.node, study)[-1:] == ["delivered"], 60, 0.02)

    def lose(self, n):
        """The file of its first object is lost; when it is sent again, it is stored again."""
        obj = self.exam(n)[1][0]
        file, = c.instance_rows(self.node.spool)[obj.uid]
        os.unlink(os.path.join(self.node.spool, file))
        self.recorder.mark("lost", f"{obj.uid} {file}")
        check(obj.uid in peer.store_all(self.node.port, [obj])[0], "not acknowledged")

    def all(self, exams):
        """Exams, a stop, a start when the delivered ones are due to be removed, one exam more, and one whose image was
        lost."""
        self.start()
        for n in range(exams - 1):
            self.send(n)
        check(self.node.stop() == 0, "SIGTERM: the exit code is not 0")
        self.start(100 * DAY)
        wait_for("the delivered exams are removed", lambda: set(self.node.states()) == {"cleaned"})
        self.send(exams - 1)
        self.lose(exams - 1)
        check(self.node.stop() == 0, "SIGTERM: the exit code is not 0")


def states(node, study):
    return [e for job in c.jobs_of(node.spool, study) for e in c.events_of(node.spool, job)]


class Told:
    """What senders and archive were told before a cut, and which exams were begun."""

    def __init__(self):
        self.acknowledged, self.lost, self.archived, self.exams, self.clock = set(), set(), {}, [], 0

    def take(self, r, disk, responses):
        """True: something changed by this record."""
        found = responses.take(r) if r.kind in "Nn" else []
        self.acknowledged.update(found)
        self.lost.difference_update(found)
        if r.kind == power.MARK:
            getattr(self, "take_" + r.path)(disk, *r.second.split())
        return bool(found) or r.kind == power.MARK

    def take_archived(self, _disk, study, uid):
        self.archived.setdefault(study, set()).add(uid)

    def take_exam(self, _disk, n):
        self.exams.append(int(n))

    def take_clock(self, _disk, seconds):
        self.clock = int(seconds)

    def take_lost(self, disk, uid, file):
        """Nobody but this test has removed it: it is durable at once."""
        folder, name = disk.folder_of(file)
        folder.do(name, None)
        folder.sync(folder.total())
        self.lost.add(uid)


def replay(records, drop=None, begin=None):
    """(what was told, the disk) at each cut. drop(path): a sync that is left out. begin: (files, what was told) before
    the first record."""
    files, told = begin or ({}, Told())
    disk, told, responses = power.Disk(files), copy.deepcopy(told), power.Responses()
    for r in records:
        if r.kind == "s":
            yield told, disk
        if not (drop and r.kind == "S" and drop(r.path)):
            disk.take(r)
        if told.take(r, disk, responses) or r.kind in "SRUDd":
            yield told, disk


# ---- the contract, judged by the files ----

class Journal:
    """The rows of a journal, after SQLite has recovered it."""

    def __init__(self, files, folder):
        self.instances, self.removed, self.events = [], set(), {}
        for name in JOURNAL:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
            if name in files:
                h.write_file(os.path.join(folder, name), files[name])
        if files.get("journal.db"):
            with contextlib.closing(sqlite3.connect(os.path.join(folder, "journal.db"), isolation_level=None)) as db:
                self.read(db)

    def read(self, db):
        problems = db.execute("PRAGMA quick_check").fetchall()
        check(problems == [("ok",)], f"the journal is damaged: {problems[0]}")
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            return
        self.instances = db.execute("SELECT id, sop_instance, file FROM instance").fetchall()
        self.removed = {n for n, in db.execute("SELECT instance FROM removal")}
        for job, name, detail in db.execute("SELECT job, name, detail FROM event ORDER BY seq"):
            self.events.setdefault(job, []).append((name, json.loads(detail) if detail else {}))


def dataset_digest(raw):
    return hashlib.sha256(raw[144 + int.from_bytes(raw[140:144], "little"):]).hexdigest() if len(raw) > 144 else None


class Judge:
    """Compares states with what was told."""

    def __init__(self, digests, folder, rng):
        self.digests, self.folder, self.rng, self.journals, self.hashes = digests, folder, rng, {}, {}
        os.makedirs(folder, exist_ok=True)

    def journal(self, files):
        """The journal, or a sentence why it cannot be read."""
        key = tuple(files.get(name) for name in JOURNAL)
        if key not in self.journals:
            if len(self.journals) > 64:
                self.journals.clear()
            try:
                self.journals[key] = Journal(files, self.folder)
            except (sqlite3.Error, AssertionError) as e:
                self.journals[key] = f"the journal cannot be read: {e}"
        return self.journals[key]

    def has_object(self, files, file, uid):
        raw = files.get(file)
        if raw not in self.hashes:
            self.hashes[raw] = raw and dataset_digest(raw)
        return self.hashes[raw] == self.digests[uid]

    def wrong(self, files, view, told):
        """What the contract does not allow in this state, in words, or None. view: all files as the node saw them."""
        journal = self.journal(files)
        if isinstance(journal, str):
            return journal
        why = itertools.chain(self.wrong_instances(journal, files, told),
                              *(self.wrong_job(job, events, files, view, told)
                                                                           for job, events in journal.events.items()))
        return next(why, None)

    def wrong_instances(self, journal, files, told):
        for uid in told.acknowledged - {uid for _, uid, _ in journal.instances}:
            yield f"{uid} was acknowledged and has no row"
        for number, uid, file in journal.instances:
            if number not in journal.removed and uid not in told.lost and not self.has_object(files, file, uid):
                yield f"{uid} has a row, but {file} {'has other bytes' if file in files else 'does not exist'}"

    @staticmethod
    def wrong_job(job, events, files, view, told):
        names, archived = [name for name, _ in events], set().union(*told.archived.values())
        if "cleaned" in names and "delivered" not in names:
            yield f"job {job} was removed, but not delivered"
        if any("identity" in detail for _, detail in events) and files.get(KEY) != view[KEY]:
            yield f"job {job} has digests of a patient, but the key is {'another' if KEY in files else 'not stored'}"
        for name, detail in events:
            for uid in detail.get("sop_instances", [detail["sop_instance"]]) if name == "sent" else ():
                if uid not in archived:
                    yield f"job {job}: {uid} is sent, but not in the archive"
            made = detail["objects"] if name == "reconstructed" and "cleaned" not in names else ()
            for file in [o["file"] for o in made]:
                if files.get(file) != view[file]:
                    found = "has other bytes" if file in files else "does not exist"
                    yield f"job {job} is reconstructed, but {file} {found}"


class Tally:
    def __init__(self):
        self.cuts = self.states = 0


def first_wrong(judge, records, at_random, drop=None, begin=None, tally=None):
    """The first state that breaks the contract, in words; None."""
    tally = tally or Tally()
    for told, disk in replay(records, drop, begin):
        tally.cuts += 1
        view = disk.survivors(lambda path: 1, None)
        for name, share in power.variants(disk, judge.rng, at_random):
            tally.states += 1
            why = judge.wrong(disk.survivors(share, judge.rng), view, told)
            if why:
                return f"{why}; survived: {name} (cut {tally.cuts})"
    return None


# ---- the contract, judged by a node ----

def start_after_cut(run, files, told, results, folder, things, record):
    """A node on this state, after a power cut: it starts, and finishes all exams that were begun, when what was not
    acknowledged is sent again. results: {study: UIDs of its results}; record: record its calls. Returns the records."""
    recorder = power.Recorder(folder, os.path.join(folder, "spool")) if record else None
    archive = Archive(recorder, told.archived)
    node = h.Node(folder, archive.port, quiet_time=30, retention_days=0, device='"cpu:1"')
    things += [node, archive]
    set_up(node)
    # Not the secrets of pilots: their jobs are those of the first node.
    power.put({path: data for path, data in files.items() if not path.startswith("pilots/")}, node.spool)
    clock, ledger = c.Clock(folder), c.Ledger()
    clock.set(told.clock)
    recorder.start(node, clock) if recorder else clock.start(node)
    ledger.add({uid: run.digests[uid] for uid in told.acknowledged - told.lost})
    for n in told.exams:
        study, objects = run.exam(n)
        removed = c.removed(node.spool)
        check(ledger.send(node.port, [o for o in objects if o.uid not in removed]), f"exam {n} is not acknowledged")
        wait_for(f"exam {n} is done, its events are {states(node, study)}",
                 lambda s=study: states(node, s)[-1:] in (["delivered"], ["cleaned"]), 60,
                 0.02)
        check(len(c.jobs_of(node.spool, study)) == 1, f"{len(c.jobs_of(node.spool, study))} jobs for exam {n}")
        check(archive.studies.get(study) == results[study],
              f"the results of exam {n} in the archive: {archive.studies.get(study)}")
    missing = ledger.missing(node.spool, set(ledger.acknowledged) - c.removed(node.spool))
    check(not missing, f"acknowledged and not stored: {missing[:3]}")
    report = node.list()
    check({j["state"] for j in report["jobs"]} <= {"delivered", "cleaned"},
          f"jobs are {[j['state'] for j in report['jobs']]}")
    check(not report["unassigned"], f"unassigned: {report['unassigned']}")
    ledger.check_nothing_else(node.spool)
    check(node.stop() == 0, "SIGTERM: the exit code is not 0")
    archive.stop()
    return recorder.records() if recorder else []


# ---- tests ----

def check_record(run, records):
    """The record is complete: its operations lead to the files that there are, and it has all responses. Returns what
    was told."""
    told, disk, there = Told(), None, {}
    for told, disk in replay(records):
        pass
    found = {path: data for path, data in disk.survivors(lambda path: 1, None).items() if data is not None}
    for at, _, names in os.walk(run.node.spool):
        for name in names:
            path = os.path.join(at, name)
            there[os.path.relpath(path, run.node.spool)] = h.read_file(path, "rb")
    differ = [path for path in {*there, *found} if not path.startswith(NOT_COMPARED)
              and there.get(path) != found.get(path)]
    check(not differ, f"the record leads to other files than there are: {sorted(differ)[:3]}")
    check(told.acknowledged == set(run.ledger.acknowledged), "the record does not have every response")
    return told


def syncs(records):
    """The syncs on which the contract depends: of what, and is it this path?"""
    result = next(r.path for r in records if r.kind == "S" and r.path.startswith("outbox/")
                  and r.path.endswith(".part"))
    paths = {"the names in instances/": "instances", "the rows of the journal": "journal.db-wal",
             "the name of the journal": "",
             "the journal before its log is emptied": "journal.db", "the patient key": KEY + ".part",
             "a result's bytes": result,
             "the names of a result": os.path.dirname(result), "the folder of a result": "outbox"}
    objects = ("an object's bytes", lambda path: path.startswith("incoming/"))
    return [objects, *((what, one.__eq__) for what, one in paths.items())]


def test_nothing_is_lost_in_a_power_cut(folder, things):
    options, rng = c.arguments(cuts=0)
    exams, run = 24 if options.cuts else 3, Run(folder, things)
    run.all(exams)
    records = run.recorder.records()
    told = check_record(run, records)
    check(len(told.archived) == exams, f"the archive has results of {len(told.archived)} exams")
    judge, tally = Judge(run.digests, os.path.join(folder, "judge"), rng), Tally()
    why = first_wrong(judge, records, 8 if options.cuts else 1, tally=tally)
    check(not why, why)
    for name, drop in syncs(records):  # the judge sees each sync that is left out
        check(first_wrong(judge, records, 0, drop), f"nothing is wrong without the sync of {name}")
    nodes, again = start_nodes(run, judge, records, told.archived, tally.cuts, folder, options)
    c.print_table("power cuts", [
        ("exams, objects acknowledged", f"{exams}, {len(told.acknowledged)}"),
        ("calls recorded, syncs among them", f"{len(records)}, {sum(r.kind == 'S' for r in records)}"),
        ("checkpoints of the journal", sum(r.kind == "S" and r.path == "journal.db" for r in records)),
        ("cuts, states judged", f"{tally.cuts}, {tally.states}"), ("nodes started on a state", nodes),
        ("second cuts, while such nodes work, states judged", f"{again.cuts}, {again.states}"),
        ("acknowledged objects lost, results missing or double, manual steps", "0")])


def start_nodes(run, judge, records, results, cuts, folder, options):
    """On random states; of every fourth one, also the states after a second cut. The number of nodes, and the tally of
    second cuts."""
    count, over, done, again = options.cuts or 4, c.until(options.minutes), 0, Tally()
    while done < count and not over():
        chosen = set(judge.rng.sample(range(cuts), min(count - done, 50, cuts)))
        for n, (told, disk) in enumerate(replay(records)):
            if n in chosen and not over():
                name, share = judge.rng.choice(power.variants(disk, judge.rng, 10))
                files, what = disk.survivors(share, judge.rng), f"cut {n}, survived: {name}"
                found = one_node(run, files, told, results, os.path.join(folder, "cut"), what, done % 4 == 3)
                why = first_wrong(judge, found, 2, begin=(files, told), tally=again)
                check(not why, f"{what}; at a second cut: {why}")
                done += 1
        print(f"  {done} nodes", flush=True)
    return done, again


def one_node(run, files, told, results, folder, what, record):
    """Start a node on these files, and end it. Returns its records."""
    things = []
    try:
        return start_after_cut(run, files, told, results, folder, things, record)
    except AssertionError as e:
        raise AssertionError(f"{what}: {e}\n{things[0].log_text()[-2000:] if things else ''}") from e
    finally:
        for thing in things:
            thing.end() if isinstance(thing, h.Node) else thing.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_an_object_after_a_call_that_failed_once(folder, things):
    """A write of the object, of its head or in its middle, or a sync on the way to the response fails once: no success,
    nothing stored."""
    run = Run(folder, things)
    run.start()
    size = 1 << 20
    faults = [("W", "/incoming/", errno.ENOSPC, 0), ("W", "/incoming/", errno.ENOSPC, size // 2),
              ("W", "/incoming/", errno.EIO, size - 100),
              ("S", "/incoming/", errno.EIO, 0), ("F", "/instances", errno.EIO, 0),
              ("S", "journal.db-wal", errno.EIO, 0)]
    for i, (kind, part, error, byte) in enumerate(faults):
        what = f"{part}: {os.strerror(error)} of {'a write' if kind == 'W' else 'a sync'} at byte {byte}"
        obj = c.image(f"2.25.{700 + i}", size, i)
        wait_for("the indexer is done", lambda: not c.query(run.node.spool, "SELECT 1 FROM waiting"), 60, 0.02)
        run.recorder.arm(kind, part, error, byte, run.node.process.pid)
        done, refused = wait_for(f"{what}: there was such a call", lambda o=obj: send_into_fault(run, o), 60, 0.02)
        check(not done, f"{what}: acknowledged")
        check(refused == {obj.uid: peer.OUT_OF_RESOURCES}, f"{what}: {refused}")
        check(obj.uid not in c.instance_rows(run.node.spool), f"{what}: it has a row")
        check(run.ledger.send(run.node.port, [obj]), f"{what}: sent again, it is not acknowledged")
    run.ledger.check_spool(run.node.spool)


def send_into_fault(run, obj):
    """What was answered; None: the association ended before the call that is to fail, as one may whose sender or
    listener had to wait too long for a busy machine. Its sender comes again."""
    done, refused = peer.store_all(run.node.port, [obj])
    check(not (done and run.recorder.armed()), "acknowledged, and there was no such call")
    return (done, refused) if not run.recorder.armed() else None


def test_a_result_after_a_call_that_failed_once(folder, things):
    """Likewise for the files of a result: the attempt ends without a result, the next one has it."""
    run = Run(folder, things)
    run.start()
    faults = [("W", "/outbox/", errno.ENOSPC, 20000), ("W", "/outbox/", errno.EIO, 0), ("S", ".dcm.part", errno.EIO, 0),
              ("F", "/outbox/", errno.EIO, 0)]
    for i, (kind, part, error, byte) in enumerate(faults):
        study, objects = run.exam(i)
        run.recorder.arm(kind, part, error, byte)
        check(run.ledger.send(run.node.port, objects), "not acknowledged")
        job, = wait_for("there is a job", lambda s=study: c.jobs_of(run.node.spool, s), 60, 0.02)
        events = wait_for("the attempt ended", lambda j=job: ended(c.events_of(run.node.spool, j)), 60, 0.02)
        check(not run.recorder.armed(), f"{part}: there was no such call")
        check("reconstructed" not in events, f"{part}: {os.strerror(error)} at byte {byte}: {events}")
        run.node.command("retry", job, code=None)  # do not wait 10 s
        wait_for("delivered", lambda j=job: c.events_of(run.node.spool, j)[-1] == "delivered", 60, 0.02)
        check(len(run.archive.studies[study]) == (3 if i % 3 == 2 else 2), "the archive does not have the result")


def ended(events):
    """The events up to the end of the first attempt."""
    at = [i for i, name in enumerate(events) if name in ("crashed", "interrupted", "delivered")]
    return events[:at[0] + 1] if at else None
