# SPDX-License-Identifier: Apache-2.0
"""What is damaged harms its own job alone: images and results in the spool, rows of the journal. The node starts and
goes on."""
import os
import signal
import sqlite3

from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "echoscu")


def a_node(folder, things, **node):
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port, **{"quiet_time": 600, **node})
    n.destination.update(retry_first=0.2, retry_cap=0.4)
    n.write_conf()
    things += [n, archive]
    return n, archive, c.Exams(os.path.join(folder, "exam"))


def file_of(n, obj):
    return os.path.join(n.spool, c.instance_rows(n.spool)[obj.uid][0])


def overwrite(path, at, raw):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(raw)


# ---- damaged files and rows ----

def garbage(path, rng):
    overwrite(path, 0, rng.randbytes(os.path.getsize(path)))


def emptied(path, _rng):
    os.truncate(path, 0)


def cut_short(path, rng):
    os.truncate(path, rng.randrange(1, os.path.getsize(path)))


def header_hit(path, _rng):
    """A length in the header is now larger than the file."""
    raw = h.read_file(path, "rb")
    overwrite(path, raw.index(b"\x08\0\x18\0UI") + 6, b"\xfe\xff")


def a_folder_instead(path, _rng):
    os.unlink(path)
    os.mkdir(path)


def a_pixel_bit(path, _rng):
    """One bit of the last pixels: the object is as readable as before."""
    raw = h.read_file(path, "rb")
    overwrite(path, len(raw) - 100, bytes([raw[-100] ^ 1]))


def another_thickness(path, _rng):
    """A digit of the header: readable, and wrong."""
    raw = h.read_file(path, "rb")
    at = raw.index(b"\x18\0\xa0\x11DS") + 8
    overwrite(path, at, b"7" if raw[at:at + 1] != b"7" else b"6")


def another_encoding(path, _rng):
    """The transfer syntax that we wrote before the data set; its length is the same."""
    raw = h.read_file(path, "rb")
    check(raw.count(b"1.2.840.10008.1.2.1", 0, 400) == 1, "the transfer syntax is not in the head")
    overwrite(path, raw.index(b"1.2.840.10008.1.2.1"), b"1.2.840.10008.1.2.2")


def removed(path, _rng):
    os.unlink(path)


WAYS = (garbage, emptied, cut_short, header_hit, a_folder_instead, a_pixel_bit, another_thickness, another_encoding)


def test_a_damaged_image_holds_its_case(folder, things):
    """Each way, in an exam of its own, of which two images are there when the node is stopped; the third comes later.
    Other exams go on."""
    n, archive, exams = a_node(folder, things)
    ledger, rng = c.Ledger(), c.arguments()[1]
    n.start()
    cases = [(way, *exams.number(i)) for i, way in enumerate(WAYS)]
    for _, _, objects in cases:
        check(ledger.send(n.port, objects[:2]), "not taken")
    wait_for("they are indexed", lambda: len(c.query(n.spool, "SELECT 1 FROM classification")) == 2 * len(cases))
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    for way, _, objects in cases:
        way(file_of(n, objects[1]), rng)
    n.start()
    study, objects = exams.number(100)
    check(ledger.send(n.port, objects), "another exam is not taken")
    for _, _, objects in cases:
        check(ledger.send(n.port, objects[2:]), "not taken")
    wait_for("another exam is delivered", lambda: study in archive.studies)
    for way, study, objects in cases:
        job, = c.jobs_of(n.spool, study)
        wait_for(f"{way.__name__}: held, its events are {c.events_of(n.spool, job)}",
                 lambda j=job: c.events_of(n.spool, j)[-1] == "held")
        reason = next(j["reason"] for j in n.jobs() if j["id"] == job)
        check(os.path.relpath(file_of(n, objects[1]), n.spool) in reason and study not in archive.studies,
              f"{way.__name__}: {reason}")
    # A person's retry finds the same; the modality sends them again: what was damaged takes its place, and the jobs go
    # on by themselves.
    job, = c.jobs_of(n.spool, cases[-1][1])
    n.command("retry", str(job))
    wait_for("held again", lambda: c.events_of(n.spool, job).count("held") == 2)
    for way, study, objects in cases:
        if way is a_folder_instead:
            os.rmdir(file_of(n, objects[1]))
        done, refused = peer.store_all(n.port, objects)
        check(len(done) == len(objects), f"{way.__name__}: not taken again: {refused}")
        wait_for(f"{way.__name__}: delivered", lambda s=study: s in archive.studies)
    check(not c.query(n.spool, "SELECT 1 FROM damage"), "a mark is left")
    ledger.check_spool(n.spool)


def test_damaged_before_it_is_indexed(folder, things):
    """The header cannot be read: it is set apart, with a reason, and the node goes on."""
    n, archive, exams = a_node(folder, things)
    ledger, rng = c.Ledger(), c.arguments()[1]
    n.start()
    n.process.send_signal(signal.SIGSTOP)  # nobody looks at what comes
    study, objects = exams.number(1)
    check(ledger.send(n.port, objects), "not taken")
    for obj, way in zip(objects, (garbage, emptied, header_hit)):
        way(file_of(n, obj), rng)
    n.process.send_signal(signal.SIGCONT)
    wait_for("they are set apart", lambda: len(n.list()["unassigned"]) == 3)
    check(all(x["reason"] for x in n.list()["unassigned"]), n.list()["unassigned"])
    study, objects = exams.number(2)
    check(ledger.send(n.port, objects), "another exam is not taken")
    wait_for("another exam is delivered", lambda: study in archive.studies)


def test_a_damaged_result(folder, things):
    """Damaged in the outbox before it is sent: never sent as it is, made again by itself, and that one is sent."""
    n, archive, exams = a_node(folder, things)
    ledger, n.pacs_port, rng = c.Ledger(), h.free_port(), c.arguments()[1]
    n.write_conf()
    n.start()
    cases = [(way, *exams.number(i)) for i, way in enumerate((garbage, emptied, cut_short, a_pixel_bit, removed))]
    for _, _, objects in cases:
        check(ledger.send(n.port, objects), "not taken")
    wait_for("they are reconstructed", lambda: n.states() == ["reconstructed"] * len(cases))
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    for way, study, _ in cases:
        job, = c.jobs_of(n.spool, study)
        outbox = os.path.join(n.spool, "outbox", str(job))
        way(os.path.join(outbox, os.listdir(outbox)[0]), rng)
    n.pacs_port = archive.port
    n.write_conf()
    n.start()
    wait_for("all are delivered", lambda: n.states() == ["delivered"] * len(cases))
    for way, study, _ in cases:
        job, = c.jobs_of(n.spool, study)
        events, outbox = c.events_of(n.spool, job), os.path.join(n.spool, "outbox", str(job))
        check(events.count("result-lost") == 1 and events.count("reconstructed") == 2 and "send-refused" not in events,
              f"{way.__name__}: {events}")
        uid, = archive.studies[study]
        made, = [c.stored_digest(os.path.join(outbox, f)) for f in os.listdir(outbox) if f.endswith(".dcm")]
        check(archive.held[uid] == [made], f"{way.__name__}: the archive has other bytes than were made")
    check(n.log_text().count("job-result-lost") == len(cases), "not in the log")


def test_damaged_rows(folder, things):
    """One column of one event each, in a job of its own: that job alone is quarantined, whatever it was about to do."""
    changes = ["detail=''", "detail='[]'", "detail='{\"destinations\": 7}'", "name='no such event'",
               "name='delivered'", "detail=x'00ff00ff'",
               "detail='{' || detail"]
    n, archive, exams = a_node(folder, things)
    ledger, n.pacs_port = c.Ledger(), h.free_port()
    n.write_conf()
    n.start()
    jobs = []
    for i in range(len(changes)):
        study, objects = exams.number(i)
        check(ledger.send(n.port, objects), "not taken")
        jobs.append(study)
    wait_for("they are reconstructed", lambda: n.states() == ["reconstructed"] * len(changes))
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        for study, change in zip(jobs, changes):
            db.execute(f"UPDATE event SET {change} WHERE name='complete' AND job=?", c.jobs_of(n.spool, study))
    db.close()
    n.pacs_port = archive.port
    n.write_conf()
    n.start()
    study, objects = exams.number(100)
    check(ledger.send(n.port, objects), "another exam is not taken")
    wait_for("another exam is delivered", lambda: study in archive.studies)
    n.wait_states(*["quarantined"] * len(changes), "delivered")
    check(set(archive.studies) == {study}, "a job that cannot be trusted was acted upon")
    # The same exam again is a case of its own, with all of its images.
    study, objects = exams.number(0)
    done, _ = peer.store_all(n.port, objects)
    check(len(done) == len(objects), "not taken again")
