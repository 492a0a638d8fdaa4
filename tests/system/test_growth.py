# SPDX-License-Identifier: Apache-2.0
"""What a node does for an image, or while nothing happens, does not grow with the cases that it has ever had; and a large
journal delays no start. tests/bench/growth.py measures all operations; here are counts that do not depend on the machine."""
import importlib.util
import json
import os
import sqlite3

import pytest

from tools import contract_tools as c
from tools import node_harness as h
from tools.node_harness import check, wait_for

BUILD = os.environ["TOMONODE_BUILD"]
h.need(os.path.join(BUILD, "tests", "journal_year"))
FEW, MANY, IMAGES = 50, 1500, 6


def growth():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "growth.py")
    spec = importlib.util.spec_from_file_location("growth", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_for_images(bench):
    """Kilobytes that the node reads for an image in an association of its own."""
    bench.measure("store", IMAGES, lambda: bench.send_each(bench.images(IMAGES)), after=bench.indexed)
    return bench.found["store"]["read_kb"]


def test_an_image_costs_no_more_after_many_cases(folder, things):
    bench = growth().Bench(BUILD, folder)
    things += [bench.node, bench.archive]
    read = []
    for cases in (FEW, MANY):
        bench.year(cases)
        bench.start()
        bench.send_each(bench.images(1))  # what is read once, such as the pages of an index
        bench.indexed()
        read.append(read_for_images(bench))
        bench.stop()
    check(read[1] < 1.5 * read[0] + 100, f"{read} kB for an image after {FEW} and {FEW + MANY} cases")
    settled_cases_are_read_when_asked_for(bench.node)


def settled_cases_are_read_when_asked_for(n):
    """They were recorded when the node stopped: the newest are listed, all with --all, and each one is found."""
    found = {}
    for option in ((), ("--all",)):
        words = (h.TOMONODE, "list", "-c", n.conf, "--json", *option)
        found[option] = json.loads(h.run(*words).stdout)
    some, every = ([job["id"] for job in one["jobs"]] for one in found.values())
    check(every == list(range(1, FEW + MANY + 2)), f"{len(every)} cases with --all")
    check(some == [FEW + 1, *every[-200:]] and found[()]["earlier"] == len(every) - 201 and not found[("--all",)]["earlier"],
          f"{len(some)} cases from {some[0]}, {found[()]['earlier']} earlier")
    check(f"{len(every) - 201} earlier" in h.run(h.TOMONODE, "list", "-c", n.conf).stdout, "the list does not say what it lacks")
    check(json.loads(h.run(h.TOMONODE, "show", "-c", n.conf, "--json", "1").stdout)["job"]["state"] == "cleaned", "case 1")


@pytest.mark.tier2("writes 20000 cases, and measures processor time")
def test_costs_of_all_operations(folder):
    g = growth()
    results = [g.run("cases", size, BUILD, os.path.join(folder, "one")) for size in (2000, 20000)]
    g.table("cases", (2000, 20000), results)
    for name, most in (("store one instance", 1.5), ("a second of quiet", 1.5), ("tiny case", 1.5)):
        few, many = (found[name]["cpu_ms"] for found in results)
        check(many < most * few + 20, f"{name}: {few:.1f} ms after 2000 cases, {many:.1f} after 20000")


def large_journal(n):
    """Make the journal of a stopped node larger than what is checked before the start."""
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("CREATE TABLE filler(x)")
        db.executemany("INSERT INTO filler VALUES(zeroblob(1048576))", [()] * 70)
    db.close()


def damage(n, name):
    path = os.path.join(n.spool, "journal.db")
    with sqlite3.connect(path) as db:
        page, = db.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (name,)).fetchone()
        size, = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with open(path, "r+b") as f:
        f.seek((page - 1) * size)
        f.write(b"\xff" * size)


def test_a_large_journal_is_checked_while_the_node_runs(folder, things):
    """It finds the damage all the same; and before an image would be moved because the journal lacks it, the check is done."""
    n, _ = h.node_and_pacs(folder, things)
    orphan = os.path.join(n.spool, "instances", "00000001-0000001-1-1.dcm")
    n.start()
    n.stop()
    large_journal(n)
    n.start()
    wait_for("the check has ended", lambda: "role=check" in n.log_text())
    check("journal-damaged" not in n.log_text() and "self-check-incomplete" not in n.log_text(), "a journal without damage")
    n.stop()
    damage(n, "event_commit_requested")
    n.start()
    wait_for("the damage is in the log", lambda: "journal-damaged" in n.log_text())
    wait_for("it is a problem of the node", lambda: n.list()["journal_problem"])
    check(n.log_text().count("role=check") == 2, "not by a process of its own")
    n.stop()
    h.write_file(orphan, b"x")
    n.start()
    check(os.path.exists(orphan), "an image was moved because of a damaged journal")
    check(n.log_text().count("journal-damaged") >= 2, "not checked before")
    n.stop()
    check(c.query(n.spool, "SELECT COUNT(*) FROM filler") == [(70,)], "the journal was changed")
