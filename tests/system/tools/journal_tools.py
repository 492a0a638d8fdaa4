# SPDX-License-Identifier: Apache-2.0
"""A journal with many cases: copies of one that a node has made, with other UIDs, accession numbers and times. A journal
that the disk has damaged."""
import json
import os
import sqlite3


def damage(spool, table):
    """The first page of a table or index has other bytes."""
    path = os.path.join(spool, "journal.db")
    with sqlite3.connect(path) as db:
        page, = db.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (table,)).fetchone()
        size, = db.execute("PRAGMA page_size").fetchone()
    with open(path, "r+b") as f:
        f.seek((page - 1) * size)
        f.write(b"\xff" * size)


def copy_case(spool, job, count, step=3600.0, studies=None):
    """Write `count` copies of a job, each `step` seconds older than the one before, while no node runs. Copy k has the
    accession number "ACC-k" (five digits) and the Study Instance UID "2.25.7000000.k"; the files of its images do not
    exist. With `studies` there are so many studies: copy k has the UID "2.25.7000000.(k studies / count)". Returns the numbers of the new jobs, the oldest first."""
    made = []
    with sqlite3.connect(os.path.join(spool, "journal.db")) as db:
        columns = [c[1] for c in db.execute("PRAGMA table_info(instance)")][1:]
        events = db.execute("SELECT time, name, instance, detail FROM event WHERE job=? ORDER BY seq", (job,
                            )).fetchall()
        study = json.loads(events[0][3])["study"]
        instances = {i: db.execute(f"SELECT {', '.join(columns)} FROM instance WHERE id=?", (i,)).fetchone() for _, _,
                     i, _ in events if i}
        kinds = {i: db.execute("SELECT kind, detail, time FROM classification WHERE instance=?", (i,)).fetchone() for i
                 in instances}
        for k in range(count, 0, -1):
            number, copy = None, {}
            for i, row in instances.items():
                row = dict(zip(columns, row))
                row.update(received=row["received"] - k * step, sop_instance=f"2.25.7000001.{k}.{i}",
                           file=f"instances/copy-{k}-{i}")
                insert = f"INSERT INTO instance({', '.join(columns)}) VALUES({', '.join('?' * len(columns))})"
                copy[i] = db.execute(insert, tuple(row.values())).lastrowid
            for time, name, i, detail in events:
                d = json.loads(detail)
                if name == "opened":
                    d.update(study=f"2.25.7000000.{k * studies // count if studies else k}", accession=f"ACC-{k:05d}",
                             key=d["key"].replace(study, f"2.25.7000000.{k}"))
                if name == "instance":
                    d.update(received=d["received"] - k * step, sop=f"2.25.7000001.{k}.{i}", instance=copy[i])
                text = json.dumps(d)
                seq = db.execute("INSERT INTO event(time, job, name, instance, detail) VALUES(?, ?, ?, ?, ?)",
                                 (time - k * step, number or 0, name, copy.get(i, 0), text)).lastrowid
                if number is None:
                    number = seq
                    db.execute("UPDATE event SET job=? WHERE seq=?", (seq, seq))
            for i, (kind, detail, time) in kinds.items():
                db.execute("INSERT INTO classification(instance, kind, job, detail, time) VALUES(?, ?, ?, ?, ?)",
                           (copy[i], kind, number, detail, time))
            made.append(number)
    return made
