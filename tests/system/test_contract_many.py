# SPDX-License-Identifier: Apache-2.0
"""A hundred associations at once, images interleaved over parallel associations, an association for every image: all of
them in, memory bounded, no descriptor and no child left. TOMONODE_IMAGES=10 (tests/soak.sh): of ten images each."""
import os
import threading
import time

from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

VIEWS = 10  # images of an exam
MB_EACH = 6  # allowed for an association: Pss, of which its own is about a third
h.need(h.TOMONODE, "echoscu")


def a_node(folder, things, associations, views):
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port, quiet_time=30, max_associations=associations + 8)
    n.status = {"port": 0}
    n.write_conf()
    things += [n, archive]
    n.start()
    return n, archive, c.Exams(os.path.join(folder, "exam"), "--detector", "512x512", "--binning", "8", "--views",
                               str(views))


class Peak(threading.Thread):
    """The largest footprint that was seen."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.most, self.ended = node, {}, False
        self.start()

    def run(self):
        while not self.ended:
            for name, value in c.footprint(self.node).items():
                self.most[name] = max(self.most.get(name, 0), value)
            time.sleep(0.05)

    def stop(self):
        self.ended = True
        self.join()
        return self.most


def at_rest(n):
    """Return its footprint if it is the same after half a second."""
    first = c.resting(n)
    time.sleep(0.5)
    now = c.resting(n)
    return now if all(first[key] == now[key] for key in ("processes", "descriptors")) else None


def test_many_at_once(folder, things):
    count, images = 100, c.arguments(images=3)[0].images
    n, archive, exams = a_node(folder, things, count, VIEWS)
    wait_for("the worker is ready", lambda: "device-ready" in n.log_text())
    before = wait_for("the node is at rest", lambda: at_rest(n))
    all_images = [obj for i in range(count * images // VIEWS) for obj in exams.number(i)[1]]
    loads = [all_images[a::count] for a in range(count)]  # every exam comes over as many associations as it has images
    ledger, senders, began = c.Ledger(), [None] * count, time.monotonic()
    peak = Peak(n)

    def connect(a):
        senders[a] = peer.Sender(n.port, loads[a], timeout=120)

    def send(a):
        for obj in loads[a]:
            senders[a].store(obj)
        senders[a].release()
        ledger.add(senders[a].acknowledged)

    def all_together(work):
        threads = [threading.Thread(target=work, args=(a,)) for a in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    all_together(connect)
    check(None not in senders, f"{senders.count(None)} of {count} associations were not accepted")
    check(len(c.roles(n).get("association", [])) == count, "they are not all open at once")
    opened = time.monotonic()
    all_together(send)
    received = time.monotonic()
    check(len(ledger.acknowledged) == len(all_images),
          f"{len(ledger.acknowledged)} of {len(all_images)} were acknowledged")
    wait_for("every exam is delivered", lambda: len(archive.studies) == len(all_images) // VIEWS, 240)
    done = time.monotonic()
    most, after = peak.stop(), c.resting(n)
    ledger.check_spool(n.spool)
    n.wait_states(*["delivered"] * len(archive.studies))
    check(all(len(uids) == 1 for uids in archive.studies.values()), "not exactly one result each")
    check(h.sanitizer() or most["mb"] < before["mb"] + MB_EACH * count,
          f"{most['mb']:.0f} MB with {count} associations, {before['mb']:.0f} MB before")
    check(after["processes"] == before["processes"] and after["descriptors"] <= before["descriptors"] + 2,
          f"left over: {before} before, {after} after")
    c.print_table(f"{count} associations of {images} images", [
        ("acknowledged, stored, exams delivered",
         f"{len(ledger.acknowledged)}, {len(c.instance_rows(n.spool))}, {len(archive.studies)}"),
        ("to open, to send, to the last result",
         f"{opened - began:.1f} s, {received - opened:.1f} s, {done - received:.1f} s"),
        ("memory of all processes, before, at most, after",
         f"{before['mb']:.0f} MB, {most['mb']:.0f} MB, {after['mb']:.0f} MB"),
        ("processes, before, at most, after", f"{before['processes']}, {most['processes']}, {after['processes']}"),
        ("descriptors, before, at most, after",
         f"{before['descriptors']}, {most['descriptors']}, {after['descriptors']}")])


def test_one_more_than_allowed(folder, things):
    """It is told so, as a condition that passes; and when there is room it is let in."""
    n, _, exams = a_node(folder, things, 0, 3)  # eight
    _, objects = exams.number(1)
    held = [peer.Sender(n.port, objects) for _ in range(8)]
    try:
        peer.Sender(n.port, objects)
        check(False, "a ninth association was accepted")
    except peer.Gone as e:
        check(str(e) == "rejected: 020302", e)  # transient, local limit exceeded
    held.pop().release()
    wait_for("there is room again", lambda: peer.echo(n.port))
    for sender in held:
        sender.release()


def test_an_association_for_every_image(folder, things):
    """In any order, and from the other side: images of two exams alternate."""
    n, archive, exams = a_node(folder, things, 8, VIEWS)
    (one, left), (two, right) = exams.number(1), exams.number(2)
    mixed = [obj for pair in zip(left[::-1], right) for obj in pair]
    ledger = c.Ledger()
    for obj in mixed:
        check(ledger.send(n.port, [obj]), "not taken")
    wait_for("both are delivered", lambda: {one, two} <= set(archive.studies))
    n.wait_states("delivered", "delivered")
    c.resting(n)
    ledger.check_spool(n.spool)
