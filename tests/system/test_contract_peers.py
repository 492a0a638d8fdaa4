# SPDX-License-Identifier: Apache-2.0
"""Senders that freeze, vanish without a word, or send a byte a second: their associations end by timeout, others do not
notice, and what they began is never taken for complete."""
import os
import re
import signal
import statistics
import subprocess
import threading
import time

import pytest
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

TIMEOUT = 3 * h.PATIENCE  # s: the node's, where it is waited for
NEVER = {"dimse_timeout": 3600, "acse_timeout": 3600, "quiet_time": 600}
h.need(h.TOMONODE, "echoscu", "storescu")


def a_node(folder, things, **node):
    archive = peer.Archive()
    limits = {"quiet_time": TIMEOUT + 0.5, "dimse_timeout": TIMEOUT, "acse_timeout": TIMEOUT}
    n = h.Node(os.path.join(folder, "node"), archive.port, **{**limits, **node})
    things += [n, archive]
    n.start()
    return n, archive, c.Exams(os.path.join(folder, "exam"))


def sent(n, ledger, objects):
    """Again where this process had to wait so long for a busy machine that the node ended the association."""
    wait_for("all is taken", lambda: ledger.send(n.port, objects))


def others_go_on(n, archive, exams, ledger, number):
    study, objects = exams.number(number)
    sent(n, ledger, objects)
    wait_for("another exam is delivered", lambda: study in archive.studies, 60, 0.01)


def ended(n, how, times):
    return len(re.findall(rf"association-ended .*how={how}", n.log_text())) >= times


def half(sender, obj):
    raw = b"".join(sender.request(obj))
    sender.put(raw[:len(raw) // 2])


def silent(sender, obj):
    half(sender, obj)


def cut_off(sender, obj):
    """Its machine is gone: neither FIN nor RST. Only root may do that; without, it is silent."""
    half(sender, obj)
    sender.vanish()


def closes(sender, obj):
    half(sender, obj)
    sender.close()


def dribbles(sender, obj):
    """A byte now and then keeps a connection alive, but not a message."""
    peer.dribble(sender, obj, 600, 0.25)


WAYS = (silent, cut_off, dribbles, closes)


def begin(n, exams):
    """Senders that stop in the last image of an exam, each in its way: [(way, study, objects, sender)]."""
    def all_but_one(objects):
        try:
            sender = peer.Sender(n.port, objects)
            return all([sender.store(obj) == peer.SUCCESS for obj in objects[:-1]]) and sender
        except peer.Gone:  # this process had to wait longer than the node does
            return None
    begun = []
    for number, way in enumerate(WAYS):
        study, objects = exams.number(number)
        begun.append((way, study, objects, wait_for("an exam is begun", lambda o=objects: all_but_one(o))))
    for way, _, objects, sender in begun:
        threading.Thread(target=way, args=(sender, objects[-1]), daemon=True).start()
    return begun


def test_others_go_on_beside_senders_that_stop(folder, things):
    """The node would wait an hour for them."""
    n, archive, exams = a_node(folder, things, **NEVER)
    begun = begin(n, exams)
    wait_for("the one that closed is gone", lambda: ended(n, "cut", 1))
    others_go_on(n, archive, exams, c.Ledger(), 10)
    wait_for("only those that stopped are left", lambda: len(c.roles(n).get("association", [])) == len(WAYS) - 1)
    check(not {study for _, study, _, _ in begun} & set(archive.studies), "a partial exam was reconstructed")


def test_senders_that_stop_lose_their_associations(folder, things):
    n, archive, exams = a_node(folder, things)
    ledger, began = c.Ledger(), time.monotonic()
    begun = begin(n, exams)
    wait_for("the one that closed is gone", lambda: ended(n, "cut", 1))
    early = ended(n, "timeout", 1)
    check(not early or time.monotonic() - began > TIMEOUT, "an association ended before its time")
    wait_for("the others are freed", lambda: ended(n, "timeout", len(WAYS) - 1))
    others_go_on(n, archive, exams, ledger, 11)
    for way, study, objects, sender in begun:
        check(len(sender.acknowledged) == len(objects) - 1,
              f"{way.__name__}: an image that never ended was acknowledged")
        ledger.add(sender.acknowledged)
        job, = c.jobs_of(n.spool, study)
        wait_for(f"{way.__name__}: the exam is held", lambda j=job: c.events_of(n.spool, j)[-1] == "held")
        check("started" not in c.events_of(n.spool, job) and study not in archive.studies,
              f"{way.__name__}: a partial exam was reconstructed")
    c.check_incoming(n.spool)
    for way, study, objects, _ in begun:
        sent(n, ledger, objects)
        wait_for(f"{way.__name__}: the exam goes on by itself", lambda s=study: s in archive.studies)
    wait_for("no association is left", lambda: "association" not in c.roles(n))
    ledger.check_spool(n.spool)


def freeze_one(n, folder, number, senders):
    """storescu, stopped with SIGSTOP in the midst of an image, which takes it 12 s: its process and the image's UID."""
    incoming, uid, path = os.path.join(n.spool, "incoming"), f"2.25.9{number}", os.path.join(folder, f"{number}.dcm")
    h.write_file(path, c.part10(c.image(uid, 24 << 20, number)))
    there = set(os.listdir(incoming))
    sender = subprocess.Popen(["storescu", "-aec", "TOMONODE", "127.0.0.1", str(n.port), path],
                              stderr=subprocess.DEVNULL)
    senders.append(sender)
    wait_for("an image arrives", lambda: not set(os.listdir(incoming)) <= there, 60, 0.01)
    sender.send_signal(signal.SIGSTOP)
    return sender, uid


@pytest.mark.tier2("the same as a silent sender, with real ones that also hear of it")
def test_frozen_processes(folder, things):
    """Two real senders whose processes are stopped."""
    n, archive, exams = a_node(folder, things, dimse_timeout=TIMEOUT + 2, peer_bytes=2000000, peer_window=1)
    ledger, senders = c.Ledger(), []
    try:
        frozen = [freeze_one(n, folder, i, senders) for i in range(2)]
        others_go_on(n, archive, exams, ledger, 1)
        wait_for("both are freed", lambda: ended(n, "timeout", 2))
        others_go_on(n, archive, exams, ledger, 2)
    finally:
        for sender in senders:
            sender.send_signal(signal.SIGCONT)
    check(all(sender.wait(60) != 0 for sender, _ in frozen), "a sender that was cut off thinks that all is well")
    check(not set(c.instance_rows(n.spool)) & {uid for _, uid in frozen}, "half an image is on record")
    ledger.check_spool(n.spool)


# ---- what others notice ----

def throughput(port, seconds, number):
    """MB/s of two senders with images of 1 MB, a new association every 16 images."""
    done, until = [0, 0], time.monotonic() + seconds

    def work(i):
        n = 0
        while time.monotonic() < until:
            objects = [c.image(f"2.25.{number}{i}{n + k:06d}", 1 << 20, k) for k in range(16)]
            sender = peer.Sender(port, objects, max_pdu=131072)
            for obj in objects:
                n += 1
                check(sender.store(obj) == peer.SUCCESS, "not taken")
                done[i] += len(obj.data)
                if time.monotonic() > until:
                    break
            sender.release()
    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(done) / 1e6 / (time.monotonic() - began)


@pytest.mark.tier2("megabytes of images")
def test_others_notice_nothing(folder, things):
    """Prints how fast two senders are with and without a frozen and a dribbling peer, TOMONODE_ROUNDS times, in
    turns."""
    rounds = c.arguments(rounds=1)[0].rounds
    n, _, exams = a_node(folder, things, **NEVER)
    _, objects = exams.number(1)
    alone, beside = [], []
    throughput(n.port, 2, 9000)
    for i in range(rounds):
        for disturbed in ((False, True), (True, False))[i % 2]:  # what comes second has the longer journal
            if not disturbed:
                alone.append(throughput(n.port, 3, 1000 + 2 * i))
                continue
            frozen, dribbling = peer.Sender(n.port, objects), peer.Sender(n.port, objects)
            half(frozen, objects[0])
            thread = threading.Thread(target=peer.dribble, args=(dribbling, objects[1], 4, 1.0), daemon=True)
            thread.start()
            time.sleep(0.2)
            beside.append(throughput(n.port, 3, 1001 + 2 * i))
            frozen.close()
            thread.join()
            dribbling.close()
        for name in n.stored_files():
            os.truncate(os.path.join(n.spool, "instances", name), 0)
    ratio = statistics.median(beside) / statistics.median(alone)
    c.print_table("throughput of two other senders, MB/s", [
        ("alone, median of " + str(rounds), f"{statistics.median(alone):.0f} ({', '.join(f'{x:.0f}' for x in alone)})"),
        ("beside a frozen and a dribbling peer",
         f"{statistics.median(beside):.0f} ({', '.join(f'{x:.0f}' for x in beside)})"),
        ("change", f"{100 * (ratio - 1):+.1f} %")])
