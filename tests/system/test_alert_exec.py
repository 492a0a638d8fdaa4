# SPDX-License-Identifier: Apache-2.0
"""Alerts by a program of the site: each message once on its input, when a trouble begins and when it is over; a program that fails, hangs, is
missing or leaves something behind is a problem of the node, and nothing else waits for it; what it may not do in its sandbox."""
import json
import os
import time

import pytest
from test_problems import a_node, gone, listed, seen, started

from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need("storescu")
fenced = pytest.mark.skipif(bool(h.sanitizer()), reason="a build with a sanitizer has no sandbox")


def program(n, text, more="timeout = 2.0;"):
    """The program of `alerts`; what it may append to is beside it, and belongs to its files."""
    box = n.exec_box
    os.makedirs(box, exist_ok=True)
    with open(os.path.join(box, "tell.new"), "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{text}\n")
    os.chmod(f.name, 0o755)
    os.replace(f.name, os.path.join(box, "tell"))
    n.alerts = (f'alerts = {{ exec = "{box}/tell"; exec_files = [ "{box}" ]; delay = 0.0; settle = 1.0; '
                f"interval = 0.5; {more} }};\n")


class Mailbox:
    """Takes mails over TCP, because the program may write nowhere: its only way out is a connection."""

    def __init__(self, things):
        import socketserver
        import threading
        box = self
        self.mails = []

        class Taker(socketserver.StreamRequestHandler):
            def handle(self):
                box.mails.append(self.rfile.read().decode())
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Taker)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.port = self.server.server_address[1]
        things.append(self)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def send(self):
        """What the program does: its input goes there."""
        return ("exec /usr/bin/python3 -c 'import socket, sys\n"
                f"socket.create_connection((\"127.0.0.1\", {self.port})).sendall(sys.stdin.buffer.read())'")


def node_with(folder, things):
    n = a_node(folder, things)
    n.exec_box = os.path.join(folder, "site")
    return n


def tried(n, *words, code=0):
    """`test-alert`, without the leak sanitizer, whose terabytes of addresses are over the limit of the sandbox."""
    return h.run(h.TOMONODE, "test-alert", "-c", n.conf, *words, code=code, env={**os.environ, "LD_PRELOAD": ""})


def test_told_once(folder, things):
    n, box = node_with(folder, things), Mailbox(things)
    program(n, box.send())
    n.write_conf()
    check(f"alerts        to {n.exec_box}/tell" in n.command("check").stdout, "check")
    told = json.loads(tried(n, "--json").stdout)
    check(told["ok"] and told["exec"].endswith("/tell") and "status" not in told, told)
    check(wait_for("the test", lambda: box.mails)[0].startswith("Subject: tomonode TOMONODE: a test; nothing is wrong.\n")
          and "\n\nMachine " in box.mails[0], box.mails)
    started(n)
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 5)[:2])
    mail = wait_for("it is told", lambda: [m for m in box.mails if "is held." in m])[0]
    job = n.jobs()[0]["id"]
    head, _, body = mail.partition("\n\n")
    check(head.startswith("Subject: tomonode TOMONODE: 1 problem began, 0 solved\n") and "charset=utf-8" in head, head)
    check(f"Case {job} (dbt) is held.\ntomonode show gives the reason and what to do.\nSince 20" in body, body)
    n.command("cancel", job)
    wait_for("its end is told", lambda: [m for m in box.mails if f"Solved: Case {job} (dbt) is held." in m])
    time.sleep(1)
    check(len(box.mails) == 3 and "alerts" not in listed(n), box.mails)


def asleep():
    """Processes that sleep for the time of this test."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and words_of(pid) == b"sleep\x00612\x00"]


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def test_trouble(folder, things):
    """Each is a problem with the reason, while the node works on; the message comes when the program works again."""
    n, box = node_with(folder, things), Mailbox(things)
    n.node["reserve"] = '"900000 GB"'  # a trouble that stays
    program(n, 'cat > /dev/null; echo "no mail today" >&2; exit 3')
    n.write_conf()
    started(n)
    tell = f"{n.exec_box}/tell: "
    seen(n, "it fails", "alerts", "alerts-not-sent", tell + "it ended with exit code 3: no mail today.")
    program(n, "(sleep 612 &) ; sleep 612")
    n.reload()
    seen(n, "it hangs", "alerts", None, "it was killed, because it took longer than 2 s (timeout)")
    check(not asleep(), "what it has started is still there")
    for text, words in (("sleep 612 & exit 0", "it left a process behind, which was killed"),
                        ("yes 0123456789 | head -c 3000000; echo; exec /usr/bin/python3 -c 'import ctypes; ctypes.string_at(0)'",
                         "it ended by signal 11 (Segmentation fault)"),
                        ("exec /nothing", "exec: /nothing: not found")):
        program(n, text)
        refused = tried(n, code=7).stderr
        check(tell in refused and words in refused, refused)
    check(not asleep(), "what was left behind is still there")
    program(n, "cat > /dev/null; sleep 0.1 & exit 0")
    n.write_conf()
    check("took the message" in tried(n).stdout, "what ends soon is not left behind")
    with open(os.path.join(n.exec_box, "tell"), "w", encoding="ascii") as f:
        f.write("#!/nothing\n")
    check("it cannot be started: No such file or directory" in tried(n, code=7).stderr, "an interpreter that is missing")
    os.remove(f.name)
    check("exec: " in n.command("check", code=3).stderr and "No such file" in tried(n, code=3).stderr, "missing")
    program(n, box.send())
    n.reload()
    wait_for("the trouble is told at last", lambda: [m for m in box.mails if "Critical: The disk is full" in m], 90)
    gone(n, "alerts")
    bad = n.conf + ".bad"
    for words, said in (('exec = "tell";', "absolute path"), ('exec = "/a"; url = "http://127.0.0.1/";', "allowed: one of both"),
                        ('exec_files = [ "/a" ];', "without exec"),
                        ('exec = "/bin/true"; exec_files = [ "/nowhere" ];', "exec_files: /nowhere: No such file")):
        with open(bad, "w", encoding="ascii") as f:
            f.write(f"alerts = {{ {words} }};")
        refused = h.run(h.TOMONODE, "check", "-c", bad, code=3).stderr
        check(said in refused, refused)


@fenced
def test_fence(folder, things):
    """It reads no file of the spool, writes none, and cannot leave its group of processes."""
    n = node_with(folder, things)
    n.write_conf()
    n.start()
    n.stop()
    for text in (f"! cat {n.spool}/journal.db", f"! touch {n.exec_box}/new", "! touch /tmp/new", f"! ls {n.spool}", "! cat /etc/shadow",
                 "! setsid true"):
        program(n, text)
        n.write_conf()
        said = tried(n).stdout
        check("took the message" in said, (text, said))
