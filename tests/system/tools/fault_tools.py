# SPDX-License-Identifier: Apache-2.0
"""What tests of faults in a cluster share: a line that can be cut, and a witness of what the status page says
meanwhile."""
import collections
import contextlib
import json
import re
import socket
import threading
import time
import urllib.request

from tools.node_harness import check, free_port


class Line:
    """Passes connections on to `target`, a port that may be closed. Between cut() and mend() nothing passes, and
    neither end is told: there is no FIN and no RST. forget=True: the connections of now stay dead after mend(), as
    behind a firewall that has lost them."""

    def __init__(self, target):
        self.target, self.port = target, free_port()
        self.changed, self.whole, self.epoch, self.ended = threading.Condition(), True, 0, False
        self.sockets = []  # of connections that are forgotten, too: closing one would tell its other end
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.listen, daemon=True).start()

    def cut(self, forget=False):
        with self.changed:
            self.whole = False
            self.epoch += forget

    def mend(self):
        with self.changed:
            self.whole = True
            self.changed.notify_all()

    def passes(self, epoch):
        """Wait until the line is whole. False: it has forgotten this connection."""
        with self.changed:
            self.changed.wait_for(lambda: self.whole or self.ended)
            return epoch == self.epoch and not self.ended

    def listen(self):
        while not self.ended:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(caller,), daemon=True).start()

    def connect(self, caller):
        epoch = self.epoch
        self.sockets.append(caller)
        if not self.passes(epoch):
            return
        try:
            called = socket.create_connection(("127.0.0.1", self.target))
        except OSError:  # the node is down
            self.sockets.remove(caller)
            caller.close()
            return
        self.sockets.append(called)
        for source, to in ((caller, called), (called, caller)):
            threading.Thread(target=self.carry, args=(source, to, epoch), daemon=True).start()

    def carry(self, source, to, epoch):
        data = b"?"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            if not self.passes(epoch):
                return
            with contextlib.suppress(OSError):
                to.sendall(data) if data else to.shutdown(socket.SHUT_WR)

    def stop(self):
        self.ended = True
        with self.changed:
            self.changed.notify_all()
        for s in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()


class Witness(threading.Thread):
    """Reads the status page all the time. Every case that is not delivered has a sentence, each trouble of Slurm is a
    problem with a sentence, and a case waits for a pilot only while one is submitted, runs, or the page says why there
    is none."""
    QUIET = 15  # s within which the node reports what happened to a pilot

    def __init__(self, node):
        super().__init__(daemon=True)
        self.at = f"http://127.0.0.1:{node.status['port']}"
        self.said = collections.Counter()  # (state, sentence without numbers)
        self.wrong, self.samples, self.ended, self.unexplained = [], 0, False, None
        self.start()

    def get(self, path):
        with urllib.request.urlopen(self.at + path, timeout=60) as r:
            return r.read().decode()

    def judge(self, status):
        cluster = status["cluster"]
        for problem in status["problems"]:
            check(problem["text"].endswith("."), f"problem {problem['id']}: {problem['text']!r}")
        check(cluster["state"] in ("", "up")
              or any(p["id"] == "cluster" and cluster["text"] in p["text"] for p in status["problems"]),
              f"Slurm is {cluster['state']}: {status['problems']}")
        waits = False
        for case in status["cases"]:
            check(case["state"] in ("delivered", "cleaned") or case["sentence"].endswith("."),
                  f"case {case['id']} is {case['state']} without a sentence")
            waits = waits or case["state"] == "ready"
        if not waits or status["problems"] or cluster["pending"] + cluster["running"] > 0 or any("attempt"
            in c["sentence"] for c in status["cases"]):
            self.unexplained = None
        self.unexplained = self.unexplained or (time.monotonic() if waits else None)
        check(not self.unexplained or time.monotonic() - self.unexplained < self.QUIET,
              f"no pilot, and no reason: {cluster}")

    def note(self, status):
        def plain(text):
            return re.sub(r"[0-9]+([.:][0-9]+)*", "N", text)[:110]
        self.samples += 1
        for problem in status["problems"]:
            self.said[("problem " + problem["id"], plain(problem["text"]))] += 1
        for case in status["cases"]:
            if case["state"] != "delivered":
                self.said[(case["state"], plain(case["sentence"]))] += 1

    def run(self):
        while not self.ended:
            try:
                status, page = json.loads(self.get("/status.json")), self.get("/")
                self.note(status)
                self.judge(status)
                troubled = status["problems"] and json.loads(self.get("/status.json"))["problems"]
                check(not troubled or "Everything is in order" not in page, f"the page is green: {troubled}")
            except AssertionError as e:
                self.wrong.append(str(e))
            except (OSError, ValueError):
                pass  # the node is down
            time.sleep(0.25)

    def stop(self):
        self.ended = True
        self.join(20)
