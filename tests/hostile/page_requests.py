# SPDX-License-Identifier: Apache-2.0
"""HTTP requests to the status page: methods, paths, hosts, lengths, broken headers, other protocols, connections, actions without right.

After each of them the page is served to another client, by the same processes, and a refused action has changed nothing in the
journal. (The module is not called http.py: Python would take it for its own.)"""
import os
import re
import socket
import struct
import time

import hostile
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools.node_harness import Node, PATIENCE, check, free_port, wait_for

TITLE = "HTTP requests"
HOST = b"Host: localhost\r\n"
SERVED = 2.9  # s; where times are measured, another client has the page by then
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


def answer_of(raw):
    """Status and text of a response; "closed" for none."""
    m = re.match(rb"HTTP/1\.[01] (\d{3}) ", raw)
    if not m:
        return ("closed" if not raw else "other bytes"), ""
    body = raw.partition(b"\r\n\r\n")[2].decode("utf-8", "replace")
    return m.group(1).decode(), " ".join(re.sub(r"<[^>]*>", " ", body.partition("<body>")[2] or body).split())[:200]


def talk(stage, *parts, pause=0.0, half_close=True, seconds=60):
    """Send the parts; what comes back until the other end closes."""
    s = stage.connect(stage.http, seconds)
    raw = b""
    try:
        for part in parts:
            s.sendall(part)
            time.sleep(pause)
        if half_close:
            s.shutdown(socket.SHUT_WR)
        while piece := s.recv(65536):
            raw += piece
    except TimeoutError:
        raise AssertionError("neither an answer nor an end") from None
    except OSError:
        pass  # the node has closed the connection while this end was still sending
    finally:
        s.close()
    return raw


def said(stage, raw):
    """The answer in a word; its text is quoted."""
    status, text = answer_of(raw)
    stage.quote(f"{status}: {text}" if text else "closed without an answer" if status == "closed" else status)
    return status


def sends(*parts, **options):
    return lambda stage: said(stage, talk(stage, *parts, **options))


def get(path, *headers, version=b"HTTP/1.1", method=b"GET"):
    return method + b" " + path + b" " + version + b"\r\n" + HOST + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


def form(stage, path, body, *headers, kind=FORM, host=HOST):
    length = f"Content-Length: {len(body)}\r\n".encode()
    return b"POST " + path + b" HTTP/1.1\r\n" + host + kind + length + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


def acts(path, body="token={token}", *headers, **options):
    """A form sent to a case. In path and body {held} and {delivered} are cases, {token} is the page's own."""
    def act(stage):
        names = {"held": stage.held, "delivered": stage.delivered, "token": stage.token()}
        return said(stage, talk(stage, form(stage, path.format(**names).encode(), body.format(**names).encode(),
                                            *(h.format(**names).encode() for h in headers), **options)))
    return act


def chunked(body, *headers):
    return b"POST /jobs/1/retry HTTP/1.1\r\n" + HOST + FORM + b"Transfer-Encoding: chunked\r\n" + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


def length(value, body=b"token=x", *headers):
    return b"POST /jobs/1/retry HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: " + value + b"\r\n" + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


def slow_header(stage):
    """A byte each half second: the connection ends although it is never silent for long."""
    s = stage.connect(stage.http)
    began = time.monotonic()
    try:
        for byte in get(b"/", b"X: " + 200 * b"a"):
            s.sendall(bytes((byte,)))
            time.sleep(0.5)
            s.setblocking(False)
            try:
                if s.recv(100) == b"":
                    break
            except BlockingIOError:
                pass
            s.setblocking(True)
            check(time.monotonic() - began < 60 * PATIENCE, "it was never ended")
    except OSError:
        pass
    s.close()
    stage.quote("the connection ended")
    return "ended"


def silent(stage):
    raw = talk(stage, b"GET / HTTP/1.1\r\nHost: loc", half_close=False)
    return said(stage, raw)


def crowd(number, data):
    def act(stage):
        """Many connections at once: the page is served beside them, and they end."""
        held = []
        for _ in range(number):
            s = socket.create_connection(("127.0.0.1", stage.http), timeout=60)
            held.append(s)
            if data:
                try:
                    s.sendall(data)
                except OSError:
                    pass
        wait_for("the page is served beside them", lambda: serves(stage))
        for s in held:
            s.close()
        stage.quote("the page is served beside them")
        return "served"
    return act


def serves(stage):
    try:
        with socket.create_connection(("127.0.0.1", stage.http), timeout=60) as s:
            s.sendall(get(b"/health"))
            return answer_of(s.recv(4096))[0] in ("200", "503")
    except OSError:
        return False


def reset(stage):
    s = stage.connect(stage.http)
    s.sendall(get(b"/"))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
    stage.quote("reset by the client")
    return "reset"


def unread(stage):
    """Requests whose responses are never read."""
    held = [stage.connect(stage.http) for _ in range(20)]
    for s in held:
        s.sendall(get(b"/status.json"))
    wait_for("the page is served beside them", lambda: serves(stage))
    for s in held:
        s.close()
    stage.quote("the page is served beside them")
    return "served"


def pipelined(stage):
    raw = talk(stage, 20 * get(b"/health"))
    stage.quote(f"{raw.count(b'HTTP/1.1 ')} answer, then the connection is closed")
    return str(raw.count(b"HTTP/1.1 "))


def twice(stage):
    """An action twice: it is done once."""
    job = stage.another_held()
    body = f"token={stage.token()}".encode()
    codes = [answer_of(talk(stage, form(stage, f"/jobs/{job}/cancel".encode(), body)))[0] for _ in range(2)]
    stage.quote("cancelled on the status page")
    check([e["event"] for e in stage.node.show(job)["events"]].count("cancel") == 1, "not exactly one event")
    stage.changed = stage.journal()  # on purpose
    return " ".join(codes)


BAD = "400|closed"
REFUSED = "status-request-refused"
NOT_FOUND = "There is no such page"

# name, what is done, answer, sentence
CASES = [
    # methods
    ("TRACE", sends(get(b"/", method=b"TRACE")), "405", "Unknown HTTP method"),
    ("CONNECT", sends(b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n"), "40[045]|closed", "^40|closed"),
    ("a method in lower case", sends(get(b"/", method=b"get")), "405", "Unknown HTTP method"),
    ("a method of 5000 letters", sends(get(b"/", method=5000 * b"A")), "405|431|400|closed", "^4|closed"),
    ("no method", sends(b" / HTTP/1.1\r\n" + HOST + b"\r\n"), BAD + "|405", "^40|closed"),
    ("OPTIONS *", sends(get(b"*", method=b"OPTIONS")), "40[045]", "^40"),
    ("POST to the page", sends(length(b"7").replace(b"/jobs/1/retry", b"/")), "405", "does not accept this HTTP method"),
    ("DELETE of a case", sends(get(b"/jobs/1", method=b"DELETE")), "405", "Unknown HTTP method"),
    # paths
    ("a path with ..", sends(get(b"/../../../../etc/passwd")), "404", NOT_FOUND),
    ("a path with %2e%2e", sends(get(b"/%2e%2e/%2e%2e/%2e%2e/etc/passwd")), "404", NOT_FOUND),
    ("a path with overlong UTF-8", sends(get(b"/%c0%ae%c0%ae/%c0%af")), "404", NOT_FOUND),
    ("a path with backslashes", sends(get(b"/..\\..\\windows")), "404|400", NOT_FOUND + "|^400"),
    ("%00 in a path", sends(get(b"/status.json%00.html")), "404", NOT_FOUND),
    ("NUL in a path", sends(get(b"/status\0.json")), "404|400|closed", NOT_FOUND + "|^400|closed"),
    ("a path of 3000 letters", sends(get(b"/" + 3000 * b"a")), "404", NOT_FOUND),
    ("a path of 30000 letters", sends(get(b"/" + 30000 * b"a")), "414|431|400|closed", "^4|closed"),
    ("an absolute URI", sends(get(b"http://evil.example/")), "404|421|400", "^4"),
    ("line ends in a path", sends(get(b"/jobs/1%0d%0aSet-Cookie:%20a=b")), "404", NOT_FOUND),
    ("a query of 3000 marks", sends(get(b"/health?" + 3000 * b"&")), "200|503|414|431|closed", "ok|^4|closed"),
    ("a query that cannot be decoded", sends(get(b"/health?%zz=%&%=%00")), "200|503", "ok"),
    ("a case of 20 digits", sends(get(b"/jobs/18446744073709551617")), "404", NOT_FOUND),
    # hosts
    ("no Host", sends(b"GET / HTTP/1.1\r\n\r\n"), "400|421", "^4"),
    ("two Hosts", sends(get(b"/health", b"Host: evil.example")), "400", "more than one Host"),
    ("a foreign Host", sends(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "421", REFUSED + ".*evil.example"),
    ("a Host that begins like an address", sends(b"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n"), "421", REFUSED),
    ("an empty Host", sends(b"GET / HTTP/1.1\r\nHost: \r\n\r\n"), "400|421", "^4|" + REFUSED),
    ("a Host of 500 letters", sends(b"GET / HTTP/1.1\r\nHost: " + 500 * b"a" + b"\r\n\r\n"), "421", REFUSED),
    ("X-Forwarded-Host", sends(get(b"/health", b"X-Forwarded-Host: evil.example", b"Forwarded: host=evil.example")), "200|503", "ok"),
    # lengths
    ("Content-Length -1", sends(length(b"-1")), "400|413|closed", "^4|closed"),
    ("Content-Length 7x", sends(length(b"7x")), "400|closed", "^4|closed"),
    ("Content-Length of 30 digits", sends(length(30 * b"9")), "413|400|closed", "^4|closed"),
    ("Content-Length 99999 and 7 bytes", sends(length(b"99999")), "40[038]|413|closed", "^4|closed"),
    ("Content-Length 0 and a body", sends(length(b"0", b"token=x")), "403", REFUSED),
    ("two Content-Lengths", sends(length(b"7", b"token=x", b"Content-Length: 9")), "40[03]|closed", "^4|closed|" + REFUSED),
    ("Content-Length and chunks", sends(chunked(b"7\r\ntoken=x\r\n0\r\n\r\n", b"Content-Length: 7")), "40[03]|closed", "^4|closed|" + REFUSED),
    ("a form of 60000 bytes", sends(length(b"60000", 60000 * b"x")), "413", "The form is too large"),
    ("a form of a million bytes", sends(length(b"1000000", 1000000 * b"x")), "413|closed", "too large|closed"),
    ("a chunk of zz bytes", sends(chunked(b"zz\r\nx\r\n")), "400|closed", "^4|closed"),
    ("a chunk of 2^64 bytes", sends(chunked(b"ffffffffffffffff\r\nx\r\n")), "413|400|closed", "^4|closed"),
    ("chunks without an end", sends(chunked(b"5\r\ntoken\r\n")), "400|closed", "^4|closed"),
    ("Transfer-Encoding gzip", sends(length(b"7", b"token=x", b"Transfer-Encoding: gzip")), "40[03]|501|closed", "^4|^5|closed|" + REFUSED),
    ("a compressed form", sends(length(b"20", b"\x1f\x8b\x08" + bytes(17), b"Content-Encoding: gzip")), "403", REFUSED),
    # headers
    ("a header of 64 KB", sends(get(b"/", b"X: " + 65536 * b"a")), "431|400|closed", "^4|closed"),
    ("3000 headers", sends(get(b"/", *(b"X-%d: 1" % k for k in range(3000)))), "431|400|closed", "^4|closed"),
    ("a folded header", sends(get(b"/health", b"X: a\r\n b")), "200|400", "ok|^400"),
    ("bare line feeds", sends(b"GET /health HTTP/1.1\nHost: localhost\n\n"), "200|400|closed", "ok|^400|closed"),
    ("bare carriage returns", sends(b"GET /health HTTP/1.1\rHost: localhost\r\r"), "400|closed", "^400|closed"),
    ("a header without a colon", sends(get(b"/", b"nothing")), "400|closed", "^400|closed"),
    ("a blank before a colon", sends(get(b"/", b"Content-Length : 0")), "400", "contains a blank"),
    ("NUL in a header", sends(get(b"/health", b"X: a\0b")), "200|503|400|closed", "ok|^400|closed"),
    ("8-bit bytes in a header", sends(get(b"/health", b"X: \xff\xfe\x80")), "200|503|400", "ok|^400"),
    ("Expect of something", sends(get(b"/health", b"Expect: miracles")), "200|503|417", "ok|^417"),
    ("Range", sends(get(b"/health", b"Range: bytes=1000000-, 0-0,0-0")), "200|503", "ok"),
    ("Upgrade", sends(get(b"/health", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__")), "200|503", "ok"),
    ("a cookie of 4 KB", sends(get(b"/health", b"Cookie: a=" + 4000 * b"b")), "200|503", "ok"),
    ("If-None-Match", sends(get(b"/health", b"If-None-Match: *", b"If-Modified-Since: yesterday")), "200|503", "ok"),
    # other protocols
    ("HTTP/0.9", sends(b"GET /\r\n"), "400|421|closed", "^4|closed"),
    ("HTTP/9.9", sends(get(b"/", version=b"HTTP/9.9")), "505|400|closed", "^[45]|closed"),
    ("the preface of HTTP/2", sends(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "505|400|closed", "^[45]|closed"),
    ("a TLS hello", sends(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)), "400|closed|other bytes", "^4|closed|other"),
    ("an association request", sends(peer.associate_request("A", "B", {1: (peer.VERIFICATION, peer.IMPLICIT)}, 16384)), "400|closed", "^4|closed"),
    ("100000 zeros", sends(bytes(100000)), "400|414|431|closed", "^4|closed"),
    ("nothing", sends(b""), "closed", "closed"),
    # connections
    ("a byte each half second", slow_header, "ended", "ended"),
    ("silence in the middle of a header", silent, "408|closed", "closed|^4"),
    ("half a request, then the end", sends(b"GET / HTT"), "400|closed", "^4|closed"),
    ("the end of sending behind a request", sends(get(b"/health")), "200|503", "ok"),
    ("a header in single bytes", sends(*(bytes((b,)) for b in get(b"/health"))), "200|503", "ok"),
    ("20 requests at once", pipelined, "1", "1 answer"),
    ("200 silent connections", crowd(200, b""), "served", "served beside"),
    ("100 connections with half a request", crowd(100, b"GET / HTTP/1.1\r\nHost: loc"), "served", "served beside"),
    ("20 clients that do not read", unread, "served", "served beside"),
    ("a reset", reset, "reset", "reset"),
    # actions
    ("an action without a token", acts("/jobs/{held}/as-is", ""), "403", REFUSED + ".*/as-is"),
    ("an action with an empty token", acts("/jobs/{held}/as-is", "token="), "403", REFUSED),
    ("an action with another token", acts("/jobs/{held}/as-is", "token=" + 32 * "0"), "403", REFUSED),
    ("an action with the token twice", acts("/jobs/{held}/as-is", "token={token}&token={token}"), "403", REFUSED),
    ("an action with the token in the query", acts("/jobs/{held}/as-is?token={token}", ""), "403", REFUSED),
    ("an action from another origin", acts("/jobs/{held}/as-is", "token={token}", "Origin: http://evil.example"), "403", REFUSED + ".*evil.example"),
    ("an action from the origin null", acts("/jobs/{held}/as-is", "token={token}", "Origin: null"), "403", REFUSED),
    ("an action from another site", acts("/jobs/{held}/as-is", "token={token}", "Sec-Fetch-Site: cross-site"), "403", REFUSED),
    ("an action under another host", acts("/jobs/{held}/as-is", host=b"Host: evil.example\r\n"), "421", REFUSED),
    ("an action as plain text", acts("/jobs/{held}/as-is", kind=b"Content-Type: text/plain\r\n"), "403", REFUSED),
    ("an action as JSON", acts("/jobs/{held}/as-is", '{{"token": "{token}"}}', kind=b"Content-Type: application/json\r\n"), "403", REFUSED),
    ("an action by GET", lambda stage: said(stage, talk(stage, get(f"/jobs/{stage.held}/cancel?token={stage.token()}".encode()))), "405", "HTTP method"),
    ("an action by another name of its method", lambda stage: said(stage, talk(stage, get(
        f"/jobs/{stage.held}/cancel".encode(), b"X-HTTP-Method-Override: POST"))), "405", "HTTP method"),
    ("an action on a delivered case", acts("/jobs/{delivered}/as-is"), "409", "^409"),
    ("a statement about a case of one patient", acts("/jobs/{held}/same-patient", "token={token}&seen=0"), "409", "^409"),
    ("an action on a case that does not exist", acts("/jobs/777777/cancel"), "404", "^404"),
    ("an action on case -1", acts("/jobs/-1/cancel"), "404", NOT_FOUND),
    ("an action on case 0", acts("/jobs/0/cancel"), "404", NOT_FOUND),
    ("an action on case 2^63", acts("/jobs/9223372036854775808/cancel"), "404", NOT_FOUND),
    ("an action on a case in SQL", acts("/jobs/1%20OR%201=1/cancel"), "404", NOT_FOUND),
    ("an action on a case as a text", acts("/jobs/{held}x/cancel"), "404", NOT_FOUND),
    ("an unknown action", acts("/jobs/{held}/delete"), "404", NOT_FOUND),
    ("an action twice", twice, "303 409", "cancelled on the status page"),
]


def judged(act):
    """The request, and then what holds after every request."""
    def run(stage):
        stage.changed = stage.journal()
        answer = act(stage)
        began = time.monotonic()
        wait_for("the page is served to another client", lambda: serves(stage), step=0.01)
        seconds = time.monotonic() - began
        check(not stage.witness or seconds < SERVED * PATIENCE, f"the page was served after {seconds:.1f} s")
        check(stage.pages() == stage.page_processes, f"the page's processes were {stage.page_processes}, they are {stage.pages()}")
        check(stage.journal() == stage.changed, "the journal has another event of a person")
        return answer
    return run


def cases_of(_rng):
    return [hostile.Case(name, judged(act), answer, sentence) for name, act, answer, sentence in CASES]


class Stage(hostile.Stage):
    """With a status page, a delivered case and a held one."""

    def start(self, short):
        super().start(short)
        wait_for("the page", lambda: serves(self))
        study, objects = self.exams.number(self.number())
        self.ledger.send(self.node.port, objects)
        self.delivered = self.case(study, "delivered")
        self.held = self.another_held()
        self.page_processes = self.pages()

    def case(self, study, state):
        return wait_for(f"a case that is {state}", lambda: next((j["id"] for j in self.node.jobs()
                                                               if j["state"] == state and j["id"] in c.jobs_of(self.node.spool, study)), None))

    def another_held(self):
        study, objects = self.exams.number(self.number())
        self.ledger.send(self.node.port, objects[:2])
        return self.case(study, "held")

    def token(self):
        return re.search(rb'name="token" value="([0-9a-f]{32})"', talk(self, get(b"/"))).group(1).decode()

    def pages(self):
        return self.node.processes("http"), self.node.processes("status")

    def journal(self):
        """What persons have done so far."""
        return c.query(self.node.spool, "SELECT COUNT(*) FROM event WHERE name IN ('retry', 'cancel', 'priority')")


def stage_of(folder):
    archive = peer.Archive()
    node = Node(os.path.join(folder, "node"), archive.port)
    stage = Stage(folder, node, archive)
    stage.http = free_port()
    node.status = {"port": stage.http}
    node.write_conf()
    return stage
