# SPDX-License-Identifier: Apache-2.0
"""The disk fills up: under an object that is received, under the journal, under the result; and it is full, or
read-only, at the start.

A node on a tmpfs of its own; before each try all but some bytes of it are taken. What may never be: a success for an
object that is not whole, a leftover, a sender that hangs, a C-ECHO without an answer. When there is space again, work
goes on by itself. Defaults are short. The long form (tests/soak.sh): TOMONODE_STEP=4096 TOMONODE_COARSE=64
TOMONODE_RESULTS=60."""
import os
import re
import subprocess
import time

import pytest
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import exam_kinds
from tools import node_harness as h
from tools import webhook
from tools.node_harness import check, wait_for

KILO, MEGA, BLOCK = 1 << 10, 1 << 20, 4096
NO_SPACE = re.compile("No space left|disk is full")
HANG = 120  # s: the node's own timeouts are much shorter
h.need(h.TOMONODE, "echoscu", "mount", "umount")


def a_node(folder, things, mount, **node):
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port,
               **{"quiet_time": 30, "reserve": 0, "dimse_timeout": 10, "acse_timeout": 10, **node})
    n.spool = os.path.join(mount, "spool")
    n.destination.update(retry_first=0.1, retry_cap=0.5)
    n.write_conf()
    things += [n, archive]
    return n, archive


@pytest.fixture
def mount(request, folder):
    """A small disk of its own. A test names it before `things`, which have then ended when it is unmounted."""
    with c.small_disk(os.path.join(folder, "disk"), request.param) as path:
        yield path


def on_small_disk(size):
    return pytest.mark.parametrize("mount", [size], indirect=True)


def stored(node, obj, what):
    """Send the object: (was it taken, what is acknowledged). It is taken, or refused for lack of space, and the sender
    hears so."""
    try:
        sender = peer.Sender(node.port, [obj], timeout=HANG)
        status = sender.store(obj)
        sender.release()
    except peer.Gone as e:
        raise AssertionError(f"{what}: no answer: {e}") from e
    check(status in (peer.SUCCESS, peer.OUT_OF_RESOURCES), f"{what}: status {status:04X}")
    return status == peer.SUCCESS, sender.acknowledged


class Sweep:
    """Objects sent into a disk with less and less room."""

    def __init__(self, node, mount):
        self.node, self.mount, self.ledger = node, mount, c.Ledger()
        self.tries = self.full = 0
        self.refused, self.slowest = [], 0.0

    def once(self, obj, left):
        c.fill(self.mount, left)
        self.tries += 1
        self.full += c.room(self.mount) < len(obj.data)
        began = time.monotonic()
        try:
            taken, acknowledged = stored(self.node, obj, f"{left} bytes free")
        finally:
            c.fill(self.mount, None)
        self.slowest = max(self.slowest, time.monotonic() - began)
        if not taken:
            self.refused.append(obj.uid)
            return
        self.ledger.add(acknowledged)
        why = self.ledger.missing(self.node.spool, [obj.uid])
        check(not why, f"{left} bytes free, and a success: {why}")
        for name in self.node.stored_files():  # it has been compared: room for the next one
            os.truncate(os.path.join(self.node.spool, "instances", name), 0)

    def judge(self):
        """Of what was refused there is nothing, and nothing lies about."""
        self.ledger.check_nothing_else(self.node.spool)
        rows = c.instance_rows(self.node.spool)
        check(not [uid for uid in self.refused if uid in rows], "on record although it was refused")

    def rows(self, echoes):
        return [("objects sent", self.tries), ("with less room than the object has bytes", self.full),
                ("A700", len(self.refused)),
                ("0000, each compared bit for bit", len(self.ledger.acknowledged)),
                ("slowest answer", f"{self.slowest:.2f} s"),
                ("C-ECHO meanwhile: answered, slowest", f"{echoes.n}, {echoes.slowest:.2f} s"),
                ("truncated objects, leftovers, hangs", "none")]


def swept(folder, things, mount, tries, title, options):
    """tries: (object, bytes that are free when it is sent)."""
    n, _ = a_node(folder, things, mount)
    n.start()
    sweep = Sweep(n, mount)
    sweep.once(c.image("2.25.500", 10 * KILO), None)  # the journal is there now
    echoes = c.Echoes(n.port)
    over = c.until(options.minutes)
    for obj, left in tries:
        sweep.once(obj, left)
        if over():
            break
    echoes.stop()
    sweep.judge()
    check(sweep.refused, "nothing was ever refused: the disk was not full")
    late = c.image("2.25.700", MEGA // 4, 1)
    sweep.once(late, None)
    check(late.uid in sweep.ledger.acknowledged, "not taken although there is space again")
    sweep.judge()
    if options.step:
        c.print_table(title, sweep.rows(echoes))


def images(size, places):
    return [(c.image(f"2.25.600{i:06d}", size, i), left) for i, left in enumerate(places)]


@on_small_disk("8m")
def test_full_at_any_offset_of_an_object(folder, mount, things):
    """1 MB: every block of it in the long form, and a few blocks more, where the object fits and the journal does
    not."""
    options, rng = c.arguments(step=0)
    size = MEGA
    if options.step:
        places = list(range(0, size + 40 * BLOCK, options.step))
    else:
        size = 256 * KILO
        blocks = sorted(rng.sample(range(0, size // BLOCK), 10)) + [size // BLOCK + k for k in range(-2, 5)]
        places = [k * BLOCK for k in blocks]
    swept(folder, things, mount, images(size, places), "disk full under an object of 1 MB", options)


@on_small_disk("8m")
def test_full_at_any_offset_of_raw_data(folder, mount, things):
    """An object with time of flight, list mode and normalisation of an mMR: every block in the long form."""
    (options, rng), tries, number = c.arguments(step=0), [], 0
    for kind in (exam_kinds.TofChunks, exam_kinds.Mmr):
        exams = kind(os.path.join(folder, kind.__name__))
        for i, raw in enumerate(exams.raw[:2]):
            end = -(-len(raw) // BLOCK)
            blocks = range(end + 8) if options.step else rng.sample(range(end - 2), 2) + list(range(end - 2, end + 4))
            for k in blocks:
                number += 1
                tries.append((exams.number(number)[1][i], k * BLOCK))
    swept(folder, things, mount, tries, "disk full under raw data of PET", options)


def test_full_at_any_byte(folder, things):
    """A limit on the size of a file stops a write at any byte, not only at blocks: in the head, within, and at the last
    ones of an object. It has 3 MB, more than the journal; where the limit is smaller than that, the journal fails, with
    the same outcome."""
    (options, rng), obj = c.arguments(step=0), c.image("2.25.800", 3 * MEGA)

    def bytes_with_limit(limit):
        """Of the stored file; None: refused."""
        receiver = c.Receiver(os.path.join(folder, f"limit-{limit}"), things, "--file-limit", str(limit))
        taken, _ = stored(receiver, obj, f"file limit {limit}")
        check(peer.echo(receiver.port), f"file limit {limit}: no C-ECHO")
        receiver.finish()
        files = [os.path.join(receiver.spool, "instances", name) for name in receiver.files("instances")]
        check(len(files) == taken and not receiver.files("incoming"), f"file limit {limit}: {files}")
        return os.path.getsize(files[0]) if taken else None

    size = bytes_with_limit(1 << 40)
    more = [size - rng.randrange(1, 4097) for _ in range(256 if options.step else 0)]
    for limit in [1, 130, 5000, size - 4096, size - 100, size - 2, size - 1, size, *more]:
        found = bytes_with_limit(limit)
        check(found == (size if limit >= size else None),
              f"file limit {limit}, the object has {size} bytes, and {found} are stored")
    if options.step:
        c.print_table("a write that fails in the last 4 KiB, by bytes",
                      [("tries", 8 + len(more)), ("other than A700 and nothing left", 0)])


@pytest.mark.tier2("20 MB at many places: a large object is written as a small one is")
@on_small_disk("48m")
def test_full_within_a_large_object(folder, mount, things):
    (options, _), size = c.arguments(step=0, coarse=4), 20 * MEGA
    places = [size * k // options.coarse for k in range(options.coarse)]
    places += [size - BLOCK * k for k in range(3)] + [size + BLOCK * k for k in range(1, 4)]
    tries = images(size, [p // BLOCK * BLOCK for p in places])
    swept(folder, things, mount, tries, "disk full under an object of 20 MB", options)


def tried(n, study, log):
    """The exam was reconstructed as far as the space allows; log: what was in the node's log before."""
    found = {e for job in c.jobs_of(n.spool, study) for e in c.events_of(n.spool, job)}
    return found & {"interrupted", "reconstructed"} or NO_SPACE.search(n.log_text(), log)


def exam_with(n, archive, ledger, exams, study, objects, mount, left, by_itself):
    """An exam whose last image comes when only `left` bytes are free; then all. by_itself: wait until the node tries
    again."""
    check(ledger.send(n.port, objects[:-1]), "not taken with all the space there is")
    c.fill(mount, left)
    log = len(n.log_text())
    taken, acknowledged = stored(n, objects[-1], f"{left} bytes free")
    ledger.add(acknowledged)
    if taken:
        wait_for(f"{left} bytes free: the exam is tried", lambda: tried(n, study, log), 60, 0.02)
    check(peer.echo(n.port), f"{left} bytes free: no C-ECHO")
    c.fill(mount, None)
    if not by_itself:
        for job in wait_for("there is a job", lambda: c.jobs_of(n.spool, study), 60, 0.02):
            n.command("retry", str(job), code=None)
    wait_for("the last image is taken", lambda: ledger.send(n.port, objects))

    def events():
        return [c.events_of(n.spool, j) for j in c.jobs_of(n.spool, study)]
    wait_for(f"{left} bytes free, then all: the exam is delivered, it is {events()}",
             lambda: len(archive.studies.get(study, ())) == exams.slices
             and all(e[-1] == "delivered" for e in events()), 60, 0.02)


def results_on_full_disk(folder, mount, things, kind, count):
    """The last image, the events and the result of an exam, with room for some of it. count: exams of the short
    form."""
    options, rng = c.arguments(results=0)
    n, archive = a_node(folder, things, mount, device='"cpu:1"')
    exams = kind(os.path.join(folder, "exam"))
    exams.configure(n)
    n.start()
    ledger, studies = c.Ledger(), []
    wait_for("the worker is ready", lambda: "device-ready" in n.log_text())
    most = 22 + 2 * exams.slices  # blocks for image, journal and result
    few = sorted(rng.sample(range(most), count))
    for k in [k * most // options.results for k in range(options.results)] or few:
        study, objects = exams.number(k + 1)
        studies.append(study)
        objects = rng.sample(objects, len(objects))
        first = len(objects[-1].data) // BLOCK - 2  # too few for the image
        exam_with(n, archive, ledger, exams, study, objects, mount, (first + k) * BLOCK, options.results)
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    n.start()
    ledger.check_spool(n.spool)
    check(set(n.states()) == {"delivered"} and len(n.states()) == exams.jobs * len(studies), n.states())
    check(all(len(archive.studies[s]) == exams.slices for s in studies), "other than one result of an exam")
    pixels = {tuple(sorted(archive.pixels[uid] for uid in archive.studies[s])) for s in studies}
    check(len(pixels) == 1, "results of the same images differ")
    if options.results:
        names = "'interrupted', 'crashed', 'send-failed', 'held'"
        again = c.query(n.spool, f"SELECT name FROM event WHERE name IN ({names})")
        c.print_table(f"disk full under journal and result: {exams.name}", [
            ("exams", len(studies)), ("one result each", len(archive.studies)),
            ("attempts that found no space", len(again)),
            ("held or failed", again.count(("held",))), ("steps by hand", 0)])


@on_small_disk("24m")
def test_full_under_journal_and_result(folder, mount, things):
    results_on_full_disk(folder, mount, things, c.Exams, 4)


@on_small_disk("24m")
def test_full_under_several_results(folder, mount, things):
    results_on_full_disk(folder, mount, things, exam_kinds.SeveralResults, 3)


@on_small_disk("8m")
def test_full_at_the_start(folder, mount, things):
    """Not a byte is free when the node starts. The first time: a sentence and an exit code. Later, after a kill or a
    clean end: it answers C-ECHO, refuses images, and goes on by itself when there is space."""
    n, archive = a_node(folder, things, mount)
    c.fill(mount, 0)
    p = h.run(h.TOMONODE, "serve", "-c", n.conf, code=1)
    check("No space" in p.stderr, p.stderr)
    c.fill(mount, None)
    n.start()
    ledger, exams = c.Ledger(), c.Exams(os.path.join(folder, "exam"))
    for number, end in enumerate((n.kill, n.stop)):
        study, objects = exams.number(number)
        check(ledger.send(n.port, objects[:2]), "not taken")
        end()
        c.fill(mount, 0)
        n.write_conf(f"# {number}: what a person changes to get space" + " and why" * 1000 * number + "\n")
        n.start()  # waits for C-ECHO
        c.fill(mount, 0)  # an end of the journal may have left room
        check(not ledger.send(n.port, objects), "taken by a full disk")
        check(peer.echo(n.port), "no C-ECHO")
        c.fill(mount, None)
        wait_for("taken again", lambda: ledger.send(n.port, objects))
        wait_for("the exam is delivered", lambda: study in archive.studies)
    ledger.check_spool(n.spool)


def remount(mount, how):
    """As soon as the last process of the node has closed its files."""
    wait_for("it is mounted again",
             lambda: subprocess.run(["mount", "-o", "remount," + how, mount], capture_output=True).returncode == 0)


@on_small_disk("8m")
def test_read_only(folder, mount, things):
    """A spool that cannot be written to: a sentence and an exit code, at the start; A700 and C-ECHO while it runs. Then
    all is as before."""
    n, archive = a_node(folder, things, mount)
    n.start()
    ledger, exams = c.Ledger(), c.Exams(os.path.join(folder, "exam"))
    study, objects = exams.number(1)
    check(ledger.send(n.port, objects[:2]), "not taken")
    n.kill()
    remount(mount, "ro")
    p = h.run(h.TOMONODE, "serve", "-c", n.conf, code=None)
    check(p.returncode not in (0, 3) and "ead-only" in p.stderr, f"code {p.returncode}: {p.stderr}")
    check(h.run(h.TOMONODE, "list", "-c", n.conf, code=None).returncode < 128, "list crashes")
    remount(mount, "rw")
    n.start()
    check(ledger.send(n.port, objects), "not taken although it can be written to again")
    wait_for("the exam is delivered", lambda: study in archive.studies)
    ledger.check_spool(n.spool)


@on_small_disk("24m")
def test_alerts_of_a_full_disk(folder, mount, things):
    """The webhook is told on a disk without a free byte, and that is stored: a node that is killed then, and started
    when there is space again, says that the same trouble is solved, once."""
    n, _ = a_node(folder, things, mount, reserve='"1 MB"')
    hook = webhook.Webhook()
    things.append(hook)
    hook.attach(n)
    n.write_conf()
    n.start()
    wait_for("the file is there", lambda: os.path.exists(os.path.join(n.spool, "alerts.json")))
    c.fill(mount, 0)
    hook.told("disk-full")

    def stored():
        return '"begin_told":true' in h.read_file(os.path.join(n.spool, "alerts.json"))
    wait_for("it is stored", stored)
    check(c.room(mount) == 0 and "alerts-not-stored" not in n.log_text(), f"{c.room(mount)} bytes are free")
    n.kill()
    c.fill(mount, None)
    n.start()
    hook.solved("disk-full")
    hook.check_once()
    told = [e["event"] for e in hook.events() if e["id"] == "disk-full"]
    check(told == ["begun", "solved"], hook.events())
