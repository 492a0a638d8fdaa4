# SPDX-License-Identifier: Apache-2.0
"""The wall clock is set, forward and back, by an hour and by years, while exams arrive, while deliveries wait, and
before retention looks.

Done with an LD_PRELOAD of our own (tests/preload/clock_offset.c): what runs whatever happens to the wall clock
(CLOCK_MONOTONIC) is left alone."""
import os
import re
import signal

import pytest
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

DAY = 86400
h.need(h.TOMONODE, "echoscu")


def a_node(folder, things, **node):
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port, **{"quiet_time": 30, **node})
    n.destination.update(retry_first=0.2, retry_cap=0.4)
    n.write_conf()
    things += [n, archive]
    return n, archive, c.Exams(os.path.join(folder, "exam"))


@pytest.fixture
def clock(folder):
    return c.Clock(folder)


JUMPS = (3600, -3600, 400 * DAY, -800 * DAY)


def test_the_clock_is_set_while_exams_arrive(folder, things, clock):
    """Between two images, forward and back, by an hour and by years: the exam is held after quiet or waits, and goes on
    with its last image."""
    n, archive, exams = a_node(folder, things, quiet_time=1.0)
    clock.start(n)
    ledger, at = c.Ledger(), 0
    for i, jump in enumerate(JUMPS):
        study, objects = exams.number(i)
        check(ledger.send(n.port, objects[:2]), "not taken")
        at += jump
        clock.set(at)
        job, = wait_for("there is a job", lambda s=study: c.jobs_of(n.spool, s), 60, 0.02)
        wait_for(f"{jump} s: held after a quiet time", lambda j=job: c.events_of(n.spool, j)[-1] == "held")
        check(ledger.send(n.port, objects), "not taken")
        wait_for(f"{jump} s: delivered", lambda s=study: s in archive.studies)
    for job in n.jobs():
        check(job["instances"] == len(exams), job)
    years = {m.group() for m in re.finditer(r"^\d{4}(?=-)", n.log_text(), re.M)}
    check(len(years) >= 3, f"the clock was not set at all: the log is of {years}")
    ledger.check_spool(n.spool)


def test_the_clock_is_set_while_a_delivery_waits(folder, things, clock):
    n, archive, exams = a_node(folder, things)
    away = archive.port
    n.pacs_port = h.free_port()
    n.write_conf()
    clock.start(n)
    ledger = c.Ledger()
    study, objects = exams.number(1)
    check(ledger.send(n.port, objects), "not taken")
    job, = wait_for("there is a job", lambda: c.jobs_of(n.spool, study))
    for i, jump in enumerate(JUMPS):
        failures = c.events_of(n.spool, job).count("send-failed")
        clock.set(sum(JUMPS[:i + 1]))
        wait_for(f"{jump} s: it is tried again",
                 lambda f=failures: c.events_of(n.spool, job).count("send-failed") > f + 1)
    n.pacs_port = away
    n.write_conf()
    n.process.send_signal(signal.SIGHUP)
    wait_for("delivered", lambda: study in archive.studies)


def test_years_later_nothing_undelivered_is_gone(folder, things, clock):
    """Retention, with the clock two years ahead: what is delivered goes, what waits, is held or was refused stays."""
    n, archive, exams = a_node(folder, things, quiet_time=0.5, retention_days=30)
    archive.answer = lambda uid, data: peer.SUCCESS if len(archive.studies) == 0 else 0xC000
    clock.start(n)
    ledger, studies = c.Ledger(), []
    for i in range(3):
        study, objects = exams.number(i)
        studies.append(study)
        check(ledger.send(n.port, objects if i < 2 else objects[:1]), "not taken")
        wait_for("it has come to rest", lambda i=i: n.states() == ["delivered", "dead-letter", "held"][:i + 1])
    archive.stop()
    study, objects = exams.number(3)
    check(ledger.send(n.port, objects), "not taken")
    wait_for("a delivery waits", lambda: n.states()[3:] == ["reconstructed"])
    kept = [o.uid for i in (1, 3) for o in exams.number(i)[1]] + [exams.number(2)[1][0].uid]
    clock.set(730 * DAY)
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    clock.start(n)
    wait_for("the delivered one is cleaned", lambda: n.states() == ["cleaned", "dead-letter", "held", "reconstructed"])
    wait_for("its files are gone", lambda: len(n.stored_files()) <= len(kept)
             and len(os.listdir(os.path.join(n.spool, "outbox"))) <= 2)
    check(not ledger.missing(n.spool, kept), f"gone: {ledger.missing(n.spool, kept)}")
    check(len(n.stored_files()) == len(kept) and len(os.listdir(os.path.join(n.spool, "outbox"))) == 2,
          "more is gone than was delivered")
