# SPDX-License-Identifier: Apache-2.0
"""A web service that takes the alerts of a node, and what it was told: each trouble once when it begins and once when
it is solved."""
import http.server
import json
import threading

from tools.node_harness import check, wait_for

STATES = ("held", "failed", "dead-letter", "quarantined")  # told case by case, where the node lists "cases"
# by a node that does not run, or about the webhook
NOT_TOLD = ("alerts", "not-running", "manager-stopped", "manager-silent")


class Webhook:
    """answer: called with each message; its status, or None: close the connection without an answer."""

    def __init__(self, delay=0, settle=1, interval=0.5):
        self.bodies, self.headers = [], []  # of every POST, also repeated ones
        self.answer = lambda message: 204
        self.keys = f"delay = {delay:.1f}; settle = {settle:.1f}; interval = {interval:.1f};"
        self.server = None
        self.start(0)
        self.port = self.server.server_port

    def start(self, port=None):
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.headers.append(dict(self.headers))
                hook.bodies.append(body.decode())
                status = hook.answer(json.loads(body))
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.daemon_threads = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port if port is None else port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """Nobody listens any more."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def attach(self, n, more=""):
        """For the next write_conf() of the node."""
        n.alerts = f'alerts = {{ url = "http://127.0.0.1:{self.port}/hook"; {self.keys} {more} }};\n'

    def events(self):
        """Of all messages, each message once."""
        messages = {}
        for body in list(self.bodies):
            one = json.loads(body)
            check(messages.setdefault(one["message"], one) == one, f"two messages with one id: {body}")
        return [e for m in messages.values() for e in m["alerts"]]

    def open(self, problem):
        """The last begin of this problem that is not followed by its end."""
        ids = STATES if problem == "cases" else (problem,)
        begun = {e["alert"]: e for e in self.events() if e["event"] == "begun" and e["id"] in ids}
        for e in self.events():
            if e["event"] == "solved":
                begun.pop(e["alert"], None)
        return list(begun.values())

    def told(self, problem):
        return problem in NOT_TOLD or wait_for(f"the webhook was told of {problem}: {self.events()}",
                                               lambda: self.open(problem), 30)

    def solved(self, problem):
        if problem not in NOT_TOLD:
            wait_for(f"the webhook was told that {problem} is solved: {self.events()}", lambda: not self.open(problem),
                     30)

    def check_once(self):
        """Each trouble has one begin and at most one end, which comes after it; a key has no second trouble before the
        first ended."""
        begun, solved, open_keys = {}, {}, {}
        for e in self.events():
            alert, key = e["alert"], e["key"]
            if e["event"] == "begun":
                check(alert not in begun and key not in open_keys, f"told twice: {e}")
                begun[alert] = e
                open_keys[key] = alert
            else:
                check(alert in begun and alert not in solved, f"solved twice, or without a beginning: {e}")
                solved[alert] = e
                check(open_keys.pop(key) == alert, f"another trouble of this key: {e}")
        return len(begun), len(solved)
