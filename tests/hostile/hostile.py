# SPDX-License-Identifier: Apache-2.0
"""What all modules of tests/hostile/ share. tests/hostile/ contains hostile input, one module for each kind: malformed
associations, damaged objects, odd exams, misbehaving destinations, HTTP requests, certificates.

A module is a list of cases (cases_of(rng)), a TITLE, and a stage (stage_of(folder)): a node that serves one honest
sender (the bystander) and answers C-ECHO during all cases. Each case sends something, and states which answer it
expects and which sentence the node must write about it. After each group of cases:

* no process of the node has crashed, its main process and its receiver are the same as before;
* every acknowledged object is stored, bit for bit, and incoming/ is empty;
* every C-ECHO was answered;
* where all cases run: no exam of the bystander was delayed by more than 5 s. The time is measured from its connection
  until its result has arrived at its destination; the delay is the difference from the median of the same before the
  first case, or from the time that an exam took meanwhile at the witness, if that is longer: a second node on the same
  machine, which gets no hostile input. A busy machine or a slow disk delays both.

The modules are run by test_hostile.py (tier 1: a fixed fifth of the cases, or fewer of slow ones, without the witness;
tier 2: all in random order) and by run.py, which also writes a table. Both call run_module(). HOSTILE_LOG=FILE keeps
the node's log after a failure.
"""
import contextlib
import os
import random
import re
import shutil
import socket
import statistics
import sys
import threading
import time
import traceback
import typing

from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import PATIENCE, check, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
DELAY = 5.0  # s: no exam of the bystander may be delayed by more
BYSTANDER, PROBER = "BYSTANDER", "PROBER"
SHORT_SEED, SHORT_PART = 13, 5  # PART of a module: its short form has one of so many cases
# What the log says of a process that ended otherwise than by itself; a case that ends one on purpose calls
# Stage.forgive().
CRASH = re.compile(r"association-crashed|[ =]signal=\d+|died with signal|exited with code|receiver-ended|process-stuck|"
                   r"worker-hung|serve-failed|sandbox-failed|index-ended|status-ended|Sanitizer|Assertion .* failed|"
                   r"terminate called")

ASSOCIATION = re.compile(r"association=(\S+)")


class Case(typing.NamedTuple):
    """One hostile input. act(stage): does it, and returns the node's answer in a few words."""
    name: str
    act: typing.Callable
    answer: str  # regular expression: must match the whole answer
    # regular expression: must be found in a line that the node wrote about this case, or in what Stage.quote() was
    # given
    sentence: str


class Options(typing.NamedTuple):
    """How cases are chosen and run."""
    short: bool = False
    seed: int = SHORT_SEED
    names: tuple = ()  # parts of the names of the cases; empty: all of them
    table: str = ""  # a file to which a table of the cases with the answer and the sentence of each is appended
    group: int = 20


class Bystander(threading.Thread):
    """An honest sender: a complete exam of three images, again and again, one at a time."""

    def __init__(self, port, archive, exams, ledger, pause=0.2):
        super().__init__(daemon=True)
        self.port, self.archive, self.exams, self.ledger, self.pause = port, archive, exams, ledger, pause
        self.turn, self.ended = threading.Lock(), False
        self.n, self.times, self.failed = 0, [], []
        self.spans, self.since = [], None  # (begin, seconds) of each exam, monotonic s; begin of the present one

    def measure(self):
        """Send the next exam; the seconds until its result has arrived."""
        self.n += 1
        study, objects = self.exams.number(900000 - self.n)
        began = time.monotonic()
        if not self.ledger.send(self.port, objects, calling=BYSTANDER):
            self.failed.append(f"exam {self.n} of the bystander was not acknowledged")
            return None
        try:
            wait_for(f"exam {self.n} of the bystander is delivered", lambda: study in self.archive.studies, step=0.01)
        except AssertionError as e:
            self.failed.append(str(e))
            return None
        return time.monotonic() - began

    def baseline(self, n):
        """The median of n exams that nobody disturbs; the first exam, which also starts processes, is not counted."""
        self.measure()
        self.usual = statistics.median([t for t in (self.measure() for _ in range(n)) if t is not None] or [0])
        check(not self.failed, f"before the first case: {self.failed}")

    def run(self):
        while not self.ended:
            with self.turn:
                began = self.since = time.monotonic()
                seconds = self.measure()
                if seconds is not None:
                    self.times.append(seconds)
                    self.spans.append((began, seconds))
                self.since = None
            time.sleep(self.pause)

    def slowest(self, began, ended):
        """The longest time of an exam that was under way then; 0: none."""
        since = self.since
        now = [(since, time.monotonic() - since)] if since else []
        return max([t for at, t in self.spans + now if at < ended and at + t > began] or [0.0])

    def stop(self):
        self.ended = True
        self.join(120)


class Prober(threading.Thread):
    """C-ECHO all the time, each on its own association."""

    def __init__(self, port, pause=0.1):
        super().__init__(daemon=True)
        self.port, self.pause, self.n, self.failed, self.slowest, self.ended = port, pause, 0, [], 0.0, False

    def probe(self):
        sender = peer.Sender(self.port, calling=PROBER, timeout=60.0 * PATIENCE)
        try:
            check(sender.echo() == peer.SUCCESS, "C-ECHO was answered with another status")
            sender.release()
        finally:
            sender.close()

    def run(self):
        while not self.ended:
            began = time.monotonic()
            try:
                self.probe()
            except (peer.Gone, OSError, AssertionError) as e:
                self.failed.append(str(e))
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.n += 1
            time.sleep(self.pause)

    def stop(self):
        self.ended = True
        self.join(60)


class Stage:
    """A node with its bystander, which delivers to `archive`, and its prober. `node` is configured and not started."""

    def __init__(self, folder, node, archive):
        self.folder, self.node, self.archive, self.ledger = folder, node, archive, c.Ledger()
        self.exams = c.Exams(os.path.join(folder, "exam"))
        self.things = []  # more to stop at the end: objects with stop()
        self.quoted, self.mark, self.forgiven, self.cases = [], 0, 0, 0
        self.addresses = []  # of the present case
        self.refusals = []  # times
        self.witness, self.stopped_last = None, ()
        self.honest = set()  # ids of associations of the bystander and the prober

    def start(self, short):
        """short: with less traffic of the bystander, whose delay is not measured."""
        c.start(self.node)
        self.same = self.main_processes()
        if not short:
            archive = peer.Archive()
            twin = h.Node(os.path.join(self.folder, "witness"), archive.port, quiet_time=20)
            self.stopped_last = (twin, archive)
            c.start(twin)
            self.witness = Bystander(twin.port, archive, self.exams, c.Ledger())
            self.witness.start()
        self.bystander = Bystander(self.node.port, self.archive, self.exams, self.ledger, 1.0 if short else 0.2)
        self.prober = Prober(self.node.port, 0.5 if short else 0.1)
        self.bystander.baseline(1 if short else 3)
        self.bystander.start()
        self.prober.start()

    def delay(self, began, seconds):
        """How much longer this took than usual, and than an exam at the witness meanwhile; 0: there is no witness."""
        return seconds - max(self.bystander.usual,
                             self.witness.slowest(began, began + seconds)) if self.witness else 0.0

    def longest_delay(self):
        return max([self.delay(*span) for span in self.bystander.spans] or [0.0])

    def main_processes(self):
        """A child of the manager that has not become its own program yet looks like a second receiver."""
        def found():
            roles = c.roles(self.node)
            return (roles["manager"], roles["receiver"]) if len(roles.get("receiver", ())) == 1 else None
        try:
            return wait_for("one receiver", found, step=0.02)
        except AssertionError:
            return None

    # ---- what a case uses ----

    def connect(self, port=None, timeout=60.0):
        """A connection from an address of its own, so that the node's limits for each sender do not mix up cases."""
        self.cases += 1
        s = socket.socket()
        s.settimeout(timeout * PATIENCE)
        self.addresses.append(f"127.66.{self.cases // 250 % 250}.{1 + self.cases % 250}")
        s.bind((self.addresses[-1], 0))
        s.connect(("127.0.0.1", port or self.node.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def quote(self, text):
        """A text that the node gave elsewhere than in its log (show, list, a page): the sentence may be in it."""
        self.quoted.append(text)

    def lines(self):
        """What the log says since the case began. Of associations only those from the addresses of the case, if it has
        any: the line of an association's begin or its end has the address. Else all but those of the bystander and the
        prober."""
        with open(self.node.log_path, encoding="utf-8", errors="replace") as f:
            f.seek(self.mark)
            lines = f.read().split("\n")[:-1]  # the last one is not complete
        own = re.compile("|".join(re.escape(a) + r"(?!\d)" for a in self.addresses)
                         or f'calling="?({BYSTANDER}|{PROBER})')
        found = [ASSOCIATION.search(line) for line in lines]
        ids = {m.group(1) for m, line in zip(found, lines) if m and own.search(line)}
        if not self.addresses:
            self.honest |= ids
            return [line for m, line in zip(found, lines) if not m or m.group(1) not in self.honest]
        return [line for m, line in zip(found, lines) if not m or m.group(1) in ids]

    def telling(self):
        """The last lines of the present case, without what the node did for the bystander meanwhile."""
        return [line for line in self.lines() if "association=" in line or not re.search(r" (debug|info) ", line)][-8:]

    def forgive(self, pattern):
        """The present case ends a process on purpose: the lines that match are no crash."""
        self.forgiven += len([line for line in self.lines() if CRASH.search(line) and re.search(pattern, line)])

    def number(self):
        """A number for Exams.number() that no other case uses."""
        self.cases += 1
        return self.cases

    # ---- what every case is judged by ----

    def sentence(self, pattern):
        """The first line, or quoted text, in which the pattern is found: its reason, if it has one."""
        for text in self.quoted + self.lines():
            if re.search(pattern, text):
                reason = re.search(r'(?:reason|error)=("(?:[^"\\]|\\.)*"|\S+)', text)
                if reason and reason.group(1) != '""':
                    text = reason.group(1).strip('"')
                else:
                    text = re.sub(r"^\S+ \w+ \S+\[\d+\] |(association|calling)=\S+ ", "", text)
                return " ".join(text.split())[:300]
        return None

    def count_refusals(self):
        """Remember when connections of the last case were refused."""
        if os.path.exists(self.node.log_path):
            self.refusals += [time.monotonic()] * len([line for line in self.lines()
                                                       if re.search("connection-ended|association-rejected", line)])

    def await_log_quota(self):
        """In a minute the node logs refused connections of 64 senders, and 30 of all others, one by one
        (node/base/refusal_log.h). No short form has as many cases."""
        while len([t for t in self.refusals if time.monotonic() - t < 61]) >= 80:
            time.sleep(0.5)

    def run(self, case):
        """(what was wrong or None, answer, sentence)"""
        self.count_refusals()
        self.await_log_quota()
        with contextlib.suppress(FileNotFoundError):
            self.mark = os.path.getsize(self.node.log_path)
        self.quoted, self.addresses = [], []
        try:
            answer = str(case.act(self))
            check(re.fullmatch(case.answer, answer, re.S), f"the answer was '{answer}', expected '{case.answer}'")
            check(case.sentence and not re.search(case.sentence, ""), "a case needs a sentence that is not empty")
            found = wait_for(f"a sentence like '{case.sentence}'", lambda: self.sentence(case.sentence), step=0.02)
            return None, answer, found
        except h.Skipped as e:
            print(f"skipped: {case.name}: {e}", flush=True)
            return None, "skipped", str(e)
        except Exception as e:  # pylint: disable=broad-except
            if not isinstance(e, (AssertionError, peer.Gone)):
                traceback.print_exc(file=sys.stdout)
            return f"{type(e).__name__}: {e}\n    " + "\n    ".join(self.telling()), "", ""

    def crashes(self):
        return [line for line in self.node.log_text().split("\n") if CRASH.search(line)]

    def judge(self):
        """What is wrong after a group of cases: a list of sentences. Between two exams of the bystander, so that nobody
        writes."""
        wrong, before = [], len(self.bystander.times)
        with contextlib.suppress(AssertionError):
            wait_for("an exam of the bystander", lambda: len(self.bystander.times) > before or self.bystander.failed)
        with self.bystander.turn:
            crashes = self.crashes()
            if len(crashes) != self.forgiven:
                wrong.append(f"{len(crashes)} processes crashed, {self.forgiven} of them on purpose: {crashes[-3:]}")
            if self.node.process.poll() is not None or self.main_processes() != self.same:
                wrong.append(f"the main processes were {self.same}, they are {self.main_processes()}")
            try:
                wait_for("no object of a case is being received",
                         lambda: not os.listdir(os.path.join(self.node.spool, "incoming")))
                self.ledger.check_spool(self.node.spool)
            except AssertionError as e:
                wrong.append(str(e))
        with self.witness.turn if self.witness else contextlib.nullcontext():
            delay = self.longest_delay()
        wrong += self.bystander.failed + [f"C-ECHO: {f}" for f in self.prober.failed]
        if delay > DELAY * PATIENCE:
            wrong.append(f"an exam of the bystander was delayed by {delay:.1f} s")
        self.bystander.failed, self.prober.failed = [], []
        return wrong

    def lost(self):
        return len(self.ledger.missing(self.node.spool))

    def stop(self):
        for thing in (getattr(self, "bystander", None), getattr(self, "prober", None), self.witness, *self.things):
            if thing:
                thing.stop()
        for thing in self.stopped_last:
            thing.end() if isinstance(thing, h.Node) else thing.stop()
        self.node.end()
        self.archive.stop()


def stage(folder, extra="", **node):
    """The usual one: a node with short timeouts, one archive. `extra`: text for the end of the configuration."""
    archive = peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port, **{"acse_timeout": 2, "dimse_timeout": 2, **node})
    n.write_conf(extra)
    return Stage(folder, n, archive)


# ---- running ----

def modules():
    """The names of the modules of cases."""
    return sorted(n[:-3] for n in os.listdir(HERE) if n.endswith(".py")
                  and n not in ("hostile.py", "run.py", "test_hostile.py"))


def choose(module, options):
    rng = random.Random(options.seed)
    cases = module.cases_of(rng)
    check(len({case.name for case in cases}) == len(cases), "two cases have the same name")
    if options.names:
        return [case for case in cases if any(name in case.name for name in options.names)]
    if options.short:
        n = max(1, len(cases) // getattr(module, "PART", SHORT_PART))
        chosen = set(random.Random(SHORT_SEED).sample(range(len(cases)), n))
        return [case for i, case in enumerate(cases) if i in chosen]
    return rng.sample(cases, len(cases))


def cell(text):
    return " ".join(str(text).replace("|", "\\|").split()) or "-"


def write_table(path, title, results):
    with open(path, "a", encoding="utf-8") as f:
        f.write(f"\n## {title}\n\n| case | answer | sentence |\n|---|---|---|\n")
        for case, answer, sentence in sorted(results):
            f.write(f"| {cell(case)} | {cell(answer)} | {cell(sentence)} |\n")


def play(stage, cases, options, results):
    """Run the cases on a stage; what was wrong, one text each, and (crashes, objects lost, longest delay of the
    bystander)."""
    wrong = []
    try:
        stage.start(options.short)
        for at in range(0, len(cases), options.group):
            group = cases[at:at + options.group]
            for case in group:
                bad, answer, sentence = stage.run(case)
                results.append((case.name, answer, sentence))
                wrong += [f"{case.name}: {bad}"] if bad else []
            wrong += [f"after {[case.name for case in group]}: {bad}" for bad in stage.judge()]
        stage.bystander.stop()
        stage.prober.stop()
        print(f"{len(stage.bystander.times)} exams of a bystander, usually {stage.bystander.usual:.2f} s; "
              f"{stage.prober.n} C-ECHOs, "
              f"slowest {stage.prober.slowest:.2f} s")
        return wrong, (len(stage.crashes()) - stage.forgiven, stage.lost(), f"{max(0.0, stage.longest_delay()):.1f} s")
    finally:
        stage.stop()
        if wrong and os.environ.get("HOSTILE_LOG"):
            shutil.copy(stage.node.log_path, os.environ["HOSTILE_LOG"])


def run_module(module, folder, options):
    """Run the cases of a module; what was wrong, one text each, and its row of the table of kinds."""
    h.need(h.TOMONODE, *getattr(module, "PROGRAMS", ()))
    cases, results, began = choose(module, options), [], time.monotonic()
    check(cases, f"no case is called {options.names}")
    if hasattr(module, "play"):
        wrong, figures = module.play(cases, results)
    else:
        wrong, figures = play(module.stage_of(folder), cases, options, results)
    if options.table:
        write_table(options.table, module.TITLE, results)
    print(f"{module.TITLE}: {len(cases)} cases, {len(wrong)} failures; {time.monotonic() - began:.0f} s", flush=True)
    return wrong, "| " + " | ".join(map(str, (module.TITLE, len(cases), *figures))) + " |\n"
