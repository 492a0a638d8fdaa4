#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator sees when something is wrong: each trouble is provoked, then /health, the page, `list` and the metrics must show the same
sentence, and the log an event; a webhook is told once when it begins and once when it is solved. None of them is green. With PROBLEMS_TABLE=FILE the sentences are written as the table of
docs/operations.md."""
import atexit
import contextlib
import functools
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools"))
import dicom_peer
from tools import node_harness as h
from tools import pilot_tools, webhook
from tools.node_harness import check, wait_for
import urllib.error
import urllib.request

h.need("openssl", "storescp", "storescu", "echoscu")
table, hooks = [], []


def get(n, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{n.status['port']}{path}", timeout=5 * h.PATIENCE) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except (OSError, http.client.HTTPException):  # its process is being replaced
        return 0, ""


def start(folder, things, extra="", pacs=True, **node):
    """A node with a status page; the PACS is only an address unless it is started."""
    archive = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), archive.port, **node)
    n.status = {"port": h.free_port()}
    listen(n, things)
    n.write_conf(extra)
    things += [n, archive]
    if pacs:
        archive.start()
    return n, archive


def listen(n, things):
    """Attach a webhook to the node; what it was told is checked when the test ends."""
    n.hook = webhook.Webhook()
    n.hook.attach(n)
    hooks.append(n.hook)
    things.append(n.hook)


def listed(n):
    """By id. The exit code of `list` is not 0 if the journal cannot be read."""
    return {p["id"]: p for p in json.loads(n.command("list", "--json", code=None).stdout)["problems"]}


def plain(html):
    return re.sub(r"<[^>]+>", "", html).replace("&#39;", "'").replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def shows(text, sentence):
    """Is the beginning of a sentence in a text? Times in it pass while the two are read: numbers may differ."""
    return re.sub(r"\d+", "#", sentence)[:60] in re.sub(r"\d+", "#", text)


def seen(n, trouble, problem, event, page=True, seconds=30, told=True):
    """The trouble is shown everywhere. problem: id; event: regular expression of the log; page False: the page cannot answer. told False:
    the main process is stopped and tells nobody."""
    p = wait_for(f"{trouble}: list shows {problem}, not {sorted(listed(n))}", lambda: listed(n).get(problem), seconds)
    check(p["text"] and p["text"].endswith("."), p)
    severity = "critical" if p["critical"] else "warning"
    # Repeat each read: the process that answers may be being replaced.
    wait_for(f"{trouble}: `list`", lambda: shows(n.command("list", code=None).stdout, f"{severity.capitalize()}: {p['text']}"), seconds)
    if page:
        code, health = wait_for(f"{trouble}: /health", lambda: (lambda r: r if shows(r[1], p["text"]) else None)(get(n, "/health")))
        check(code == (503 if any(line.startswith("critical") for line in health.splitlines()) else 200), health)
        check(not p["critical"] or code == 503, f"{trouble}: {code} {health}")
        wait_for(f"{trouble}: the page", lambda: "Everything is in order" not in (html := get(n, "/")[1]) and shows(plain(html), p["text"]), 10)
        wait_for(f"{trouble}: the metric", lambda: f'tomonode_problems{{id="{problem}",severity="{severity}"}}' in get(n, "/metrics")[1], 10)
    if event:
        wait_for(f"{trouble}: {event} in the log", lambda: re.search(event, n.log_text()))
    if told:
        n.hook.told(problem)
    table.append((trouble, problem, "no reply" if not page else "503" if p["critical"] else "200, warning", p["text"], p["remedy"], event))
    return p


def gone(n, problem, seconds=30):
    wait_for(f"{problem} ended", lambda: problem not in listed(n), seconds)
    n.hook.solved(problem)


def certificate(folder, name, days, since=-900):
    """A certificate that ends in `days` days (negative: it has ended) and begins in `since` days."""
    key, pem = os.path.join(folder, name + ".key"), os.path.join(folder, name + ".pem")
    when = lambda d: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + 86400 * d))
    conf = os.path.join(folder, "ca.conf")
    with open(conf, "w") as f:
        f.write("[ca]\ndefault_ca=c\n[c]\nnew_certs_dir=.\ndatabase=index\nserial=serial\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
    for file, text in (("index", ""), ("serial", "01\n"), ("index.attr", "unique_subject = no\n")):
        with open(os.path.join(folder, file), "w") as f:
            f.write(text)
    run = lambda *a: subprocess.run(a, cwd=folder, check=True, capture_output=True)
    run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", "csr", "-subj", f"/CN={name}")
    run("openssl", "ca", "-batch", "-selfsign", "-config", conf, "-keyfile", key, "-in", "csr", "-out", pem, "-notext", "-startdate", when(since),
        "-enddate", when(days))
    os.chmod(key, 0o600)
    return pem, key


def test_processes(folder, things):
    """Stopped processes, a removed folder, a replaced journal: everything that a node that runs can lose."""
    n, _ = start(folder, things, pacs=False)
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0] == 200)
    check(get(n, "/health")[1] == "ok\n" and not n.list()["problems"], get(n, "/health"))
    check("tomonode_problems{" not in get(n, "/metrics")[1], "a problem of a node that works")

    receiver = next(p for p in n.manager_and_receiver() if p != n.process.pid)
    worker, status, http = (n.processes(role)[0] for role in ("worker", "status", "http"))
    for pid in (receiver, worker):
        os.kill(pid, signal.SIGSTOP)
    seen(n, "receiver stopped (SIGSTOP)", "receiver-stopped", "problem id=receiver-stopped")
    seen(n, "worker stopped", "process-stopped", "problem id=process-stopped")
    os.kill(receiver, signal.SIGCONT)
    os.kill(worker, signal.SIGCONT)
    os.kill(status, signal.SIGSTOP)
    gone(n, "receiver-stopped")
    wait_for("the status process", lambda: "The status process" in listed(n).get("process-stopped", {"text": ""})["text"])
    p = seen(n, "process of the page stopped", "process-stopped", None, page=False)
    os.kill(http, signal.SIGSTOP)
    wait_for("the process that serves HTTP", lambda: "The http process" in n.command("list").stdout)
    for pid in (status, http):
        os.kill(pid, signal.SIGCONT)
    gone(n, "process-stopped")

    os.kill(n.process.pid, signal.SIGSTOP)
    seen(n, "main process stopped", "manager-stopped", None)
    os.kill(n.process.pid, signal.SIGCONT)
    gone(n, "manager-stopped")

    incoming = os.path.join(n.spool, "incoming")
    os.rename(incoming, incoming + ".away")
    os.kill(n.process.pid, signal.SIGHUP)  # probed at once; else within 10 s
    seen(n, "`incoming/` cannot be written", "incoming", "problem id=incoming")
    os.rename(incoming + ".away", incoming)
    os.kill(n.process.pid, signal.SIGHUP)
    gone(n, "incoming")
    wait_for("the probe leaves no file", lambda: not os.listdir(incoming))

    journal, kept, copied = (os.path.join(n.spool, name) for name in ("journal.db", "kept.db", "copy.db"))
    os.link(journal, kept)
    shutil.copy(journal, copied)
    os.rename(copied, journal)
    seen(n, "journal replaced while the node runs", "journal-replaced", "problem id=journal-replaced")
    os.rename(kept, journal)
    gone(n, "journal-replaced")
    wait_for("the log says that problems end", lambda: "problem-ended id=incoming" in n.log_text())
    n.kill()
    with socket.create_server(("127.0.0.1", n.status["port"])):
        n.start()
        seen(n, "port of the status page is in use", "page", "status-page-not-served", page=False)
        n.kill()
    seen(n, "node does not run", "not-running", None, page=False)


def test_configuration(folder, things):
    """A certificate that has ended, one that ends soon, names that do not resolve, routes that are never used: shown by the node and by `check`."""
    n, _ = start(folder, things, pacs=False)
    old, soon, early = certificate(folder, "old", -1), certificate(folder, "soon", 12.5), certificate(folder, "early", 400, 2)
    n.write_conf("listeners = ( " + ", ".join(
        f'{{ name = "{name}"; port = {h.free_port()}; tls = true; client_certificate = "none"; certificate = "{c}"; key = "{k}"; }}'
        for name, (c, k) in (("old", old), ("soon", soon), ("early", early))) + " );\n"
        + "peers = ( { name = \"a\"; aet = \"MODALITY\"; }, { name = \"b\"; aet = \"ECHOSCU\"; } );\n")
    with open(n.conf) as f:
        text = f.read()
    text = text.replace("destinations = ( {", 'destinations = ( { name = "away"; aet = "AWAY"; host = "no-such-host.invalid"; }, {', 1)
    text = text.replace("node = {", "node = { require_known_peer = true;", 1)
    text = text.replace("routes = ( {", 'routes = ( { name = "all"; kind = "dbt"; protocols = [ "quick" ]; destinations = [ "pacs" ]; }, {', 1)
    text = text.replace("routes = ( {", 'routes = ( { name = "other"; kind = "dbt"; calling = "OTHER"; protocols = [ "quick" ]; destinations = [ "pacs" ]; }, {', 1)
    with open(n.conf, "w") as f:
        f.write(text)
    said = n.command("check", code=3).stderr
    for part in ("certificate in " + old[0] + " expired on", "in 12 days", "the name no-such-host.invalid cannot be resolved", "Route dbt is never used"):
        check(part in said, f"{part}: {said}")
    n.start()
    seen(n, "own certificate expired", "certificate-expired", "certificate-expired reason=")
    seen(n, "own certificate not yet valid", "certificate-early", "certificate-expired reason=")
    seen(n, "own certificate ends soon", "certificate-expires", "certificate-expires reason=")
    seen(n, "name of a destination does not resolve", "destination-name", "problem id=destination-name", seconds=150)
    seen(n, "route that is never used", "route", "problem id=route")
    wait_for("the reason", lambda: "no peer has its AE title OTHER, and only peers may send" in get(n, "/health")[1])
    with open(soon[1], "w") as f:
        f.write("damaged")
    os.kill(next(p for p in n.manager_and_receiver() if p != n.process.pid), signal.SIGKILL)
    seen(n, "key of a port damaged", "listener", "listener-failed")
    metrics = wait_for("the metrics", lambda: get(n, "/metrics")[1])
    end = float(re.search(r'tomonode_certificate_expiry_timestamp_seconds\{of="listener \'soon\'",file="[^"]+"\} (\S+)', metrics)[1])
    days = (end - time.time()) / 86400
    check(12 < days < 13, days)
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    for problem in ("certificate-expired", "certificate-early", "certificate-expires", "destination-name", "route", "listener"):
        gone(n, problem, 60)


def test_limits(folder, things):
    """Fewer descriptors than max_associations needs: said, and the receiver still hears (it used to spin and to accept nobody).
    A limit of file sizes: said, and no process dies of it."""
    n, _ = start(folder, things, pacs=False, max_associations=1000)
    import resource
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    started = subprocess.Popen

    def limits():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000000, 4000000))
    subprocess.Popen = lambda *a, **k: started(*a, **{**k, **({"preexec_fn": limits} if "serve" in a[0] else {})})
    try:
        n.start()
    finally:
        subprocess.Popen = started
    check(before == resource.getrlimit(resource.RLIMIT_NOFILE), "the limit of the test itself")
    seen(n, "too few descriptors for `max_associations`", "descriptors", "descriptors-limited")
    seen(n, "limit of file sizes", "file-size", "problem id=file-size")
    check(n.echo(), "C-ECHO")
    n.stop()
    n.start()
    gone(n, "descriptors")
    gone(n, "file-size")


def test_spool(folder, things):
    """A full disk, images without a row, a damaged journal, objects that wait for a stopped indexer, a folder that became a file."""
    n, _ = start(folder, things, pacs=False, reserve='"900000 GB"')
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    seen(n, "disk full", "disk-full", "problem id=disk-full")
    free = shutil.disk_usage(n.spool).free
    n.node["reserve"] = f'"{free // 1500000} MB"'
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    seen(n, "disk nearly full", "disk-low", "problem id=disk-low")
    n.node["reserve"] = '"1 MB"'
    n.write_conf()
    n.kill()
    orphan = os.path.join(n.spool, "instances", "00000001-0000001-1-1.dcm")
    with open(orphan, "wb") as f:
        f.write(b"x")
    n.start()
    seen(n, "image without a row in the journal", "orphans", "orphans-found")
    os.remove(os.path.join(n.spool, "orphans", os.path.basename(orphan)))
    gone(n, "orphans")
    n.stop()
    path = os.path.join(n.spool, "journal.db")
    shutil.copy(path, path + ".good")
    with sqlite3.connect(path) as db:
        page, = db.execute("SELECT rootpage FROM sqlite_master WHERE name='event_commit_requested'").fetchone()
        size, = db.execute("PRAGMA page_size").fetchone()
    with open(path, "r+b") as f:
        f.seek((page - 1) * size)
        f.write(b"\xff" * size)
    n.start()
    seen(n, "journal damaged", "journal-damaged", "journal-damaged")
    n.stop()
    os.rename(path + ".good", path)
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    gone(n, "journal-damaged")
    instances = os.path.join(n.spool, "instances")
    os.rename(instances, instances + ".away")
    os.kill(n.process.pid, signal.SIGHUP)
    seen(n, "`instances/` cannot be written", "incoming", "problem id=incoming")
    os.rename(instances + ".away", instances)
    os.rename(os.path.join(n.spool, "journal.db"), os.path.join(n.spool, "away.db"))
    wait_for("the journal is missing", lambda: "The journal" in get(n, "/health")[1] and "was removed or replaced" in get(n, "/health")[1])
    wait_for("a removed journal is critical", lambda: get(n, "/health")[0] == 503)


def test_cases(folder, things):
    """What happens to cases: an archive that does not respond, a case that is held, one that the archive refuses; a device that does not exist."""
    archive = dicom_peer.Archive()
    archive.stop()
    n, _ = start(folder, things, pacs=False, device='"cuda:63"')
    n.pacs_port = archive.port
    n.write_conf()
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    seen(n, "device disabled", "device-disabled", "device-disabled")
    first, second = (h.simulate(os.path.join(folder, f"exam{seed}"), "--views", 5, "--seed", seed) for seed in (1, 2))
    h.send(n.port, first)
    h.send(n.port, second[:1])
    seen(n, "archive does not respond", "destination-down", "job-send-failed", seconds=60)
    h.send(n.port, second[1:2])
    indexer = wait_for("the indexer", lambda: n.processes("index"), 10, step=0.005)[0]
    os.kill(indexer, signal.SIGSTOP)
    p = seen(n, "indexer stopped", "process-stopped", "problem id=process-stopped")
    check("The index process" in p["text"], p)
    os.kill(indexer, signal.SIGCONT)
    wait_for("both images are indexed and the case is held", lambda: re.search(r"held .* 2/5", n.command("list").stdout), 30)
    seen(n, "case held: images are missing", "cases", "job-held")
    archive = dicom_peer.Archive(archive.port, lambda uid, data: 0xA900)
    wait_for("the archive refuses", lambda: "dead-letter" in n.states(), 30)
    seen(n, "case refused by the archive", "cases", "job-dead-letter")
    gone(n, "destination-down")
    archive.answer = lambda uid, data: 0
    jobs = {job["state"]: job["id"] for job in n.jobs()}
    n.command("retry", jobs["dead-letter"])
    n.command("cancel", jobs["held"])
    gone(n, "cases")
    n.node["device"] = '"cpu"'
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    gone(n, "device-disabled")
    with socket.create_server(("127.0.0.1", 0)) as s:
        n.write_conf(f'listeners = ( {{ name = "taken"; port = {s.getsockname()[1]}; tls = false; }} );')
        os.kill(n.process.pid, signal.SIGHUP)
        seen(n, "reload that is refused (a port in use)", "reload", "config-not-reloaded")
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    gone(n, "reload")
    archive.stop()


def test_no_space(folder, things):
    """A result for which there is no space: counted, tried again after 10 s, then 20 s and more, and an alarm after three attempts."""
    archive = dicom_peer.Archive()
    archive.stop()
    n, _ = start(folder, things, pacs=False)
    n.pacs_port = archive.port
    n.write_conf()
    n.start()
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 5))
    n.wait_states("reconstructed")
    job = n.jobs()[0]["id"]
    n.command("cancel", job)
    n.stop()
    n.node["reserve"] = f'"{shutil.disk_usage(n.spool).free // 1000000 + 10000} MB"'
    n.write_conf()
    n.start()
    n.command("retry", job)

    def waits():
        return [e for e in n.show(job)["events"] if e["event"] == "interrupted" and e["detail"].get("space")]
    first = wait_for("an attempt without space", waits, 30)[0]
    check("MB of free space, of which node.reserve keeps" in first["detail"]["reason"], first)
    check(9.5 < first["detail"]["next"] - first["time"] < 10.5 and "no-space" not in listed(n), first)
    n.stop()
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:  # two more, without the waiting times
        for _ in range(2):
            db.execute("INSERT INTO event (time, job, name, detail) VALUES (?, ?, 'started', '{}')", (time.time(), job))
            db.execute("INSERT INTO event (time, job, name, detail) VALUES (?, ?, 'interrupted', json_object('reason', 'full', 'space', "
                       "json('true'), 'next', ?))", (time.time(), job, time.time() + 500))
    n.start()
    seen(n, "no space for a result, three times", "no-space", "problem id=no-space")
    check(n.states() == ["ready"], n.states())
    n.node["reserve"] = '"1 MB"'
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    wait_for("the configuration is read", lambda: "config-reloaded" in n.log_text())
    n.command("retry", job)
    gone(n, "no-space")
    n.wait_states("reconstructed")


def shown_association(n, reason):
    """An association without an object, as `list --json` shows it; also in `list`, on the page and in the log."""
    one = wait_for(f"{reason!r} among {n.list()['associations']}", lambda: next((a for a in n.list()["associations"] if reason in a["reason"]), None))
    check(reason in n.command("list").stdout, "list")
    wait_for("the page", lambda: reason in plain(get(n, "/")[1]))
    return one


def test_associations(folder, things):
    """What senders offer and the node refuses, and associations that bring nothing, are shown with the sender and the reason."""
    n, _ = start(folder, things, pacs=False)
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    check(n.echo() and not n.list()["associations"], "a C-ECHO is no association without an object")
    find, tomo, jpeg2000 = "1.2.840.10008.5.1.4.1.2.2.1", "1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.1.2.4.91"

    class Offer:
        def __init__(self, sop_class, syntax):
            self.sop_class, self.syntax = sop_class, syntax

    for _ in range(2):
        dicom_peer.Sender(n.port, [Offer(find, dicom_peer.IMPLICIT), Offer(tomo, jpeg2000)], calling="CT1").release()
    one = shown_association(n, f"2 classes refused: {tomo} (none of its transfer syntaxes is supported: {jpeg2000}); {find} (this class is not supported)")
    check((one["calling"], one["host"]) == ("CT1", "127.0.0.1"), one)
    wait_for("both", lambda: [a["count"] for a in n.list()["associations"]] == [2])
    check(n.log_text().count("contexts-refused ") == 2, n.log_text()[-800:])
    dicom_peer.Sender(n.port, calling="NOTHING").release()
    check(shown_association(n, "released without a message")["calling"] == "NOTHING", "the AE title")
    with socket.create_connection(("127.0.0.1", n.port)) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            s.recv(100)
    check(shown_association(n, "does not use DICOM")["calling"] == "", "no AE title")
    wait_for("what senders do is no problem of the node", lambda: "Everything is in order" in get(n, "/")[1])


def sockets(pid):
    """The sockets that a process has open; none if it has ended."""
    with contextlib.suppress(OSError):
        return {name for name in h.open_files(pid).values() if name.startswith("socket:")}
    return set()


def test_unreadable(folder, things):
    """The receiver ends again and again, an object waits for the indexer, the journal cannot be read, a revocation list has ended."""
    n, _ = start(folder, things, pacs=False)
    pem, key = certificate(folder, "own", 400)
    crl = os.path.join(folder, "ended.crl")
    subprocess.run(["openssl", "ca", "-gencrl", "-config", "ca.conf", "-cert", pem, "-keyfile", key, "-crl_lastupdate", "20250101000000Z",
                    "-crl_nextupdate", "20250201000000Z", "-out", crl], cwd=folder, check=True, capture_output=True)
    n.write_conf(f'listeners = ( {{ name = "tls"; port = {h.free_port()}; tls = true; certificate = "{pem}"; key = "{key}"; '
                 f'authorities = "{pem}"; crl = "{crl}"; }} );')
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    seen(n, "revocation list has ended", "crl-ended", "certificate-expired")

    exam = h.simulate(os.path.join(folder, "exam"), "--views", 5)
    os.kill(n.process.pid, signal.SIGSTOP)  # nobody starts an indexer
    h.send(n.port, exam[:1])
    with sqlite3.connect(os.path.join(n.spool, "journal.db"), timeout=20) as db:
        db.execute("UPDATE instance SET received = received - 500")
    seen(n, "object waits for the indexer", "index-late", None, told=False)
    os.kill(n.process.pid, signal.SIGCONT)
    gone(n, "index-late")

    ended = threading.Event()

    def kill_receivers():
        """Kill each one at once: the manager looks every two seconds, and almost never finds one."""
        before = set()
        while not ended.wait(0.1):
            now = {p for p in n.processes("serve") if p != n.process.pid and sockets(p) & sockets(n.process.pid)}
            for pid in now & before:  # not a process that sends an alert: it closes the manager's sockets first
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            before = now

    killer = threading.Thread(target=kill_receivers)
    killer.start()
    try:
        seen(n, "receiver ends again and again", "receiver", "receiver-ended")
    finally:
        ended.set()
        killer.join()
    gone(n, "receiver")

    journal = os.path.join(n.spool, "journal.db")
    os.rename(journal, journal + ".away")
    os.mkdir(journal)
    for pid in n.manager_and_receiver():
        if pid != n.process.pid:
            os.kill(pid, signal.SIGKILL)  # the manager closes and opens the journal around each fork of a receiver
    wait_for("the node cannot open it", lambda: "The node cannot open its journal" in listed(n).get("journal-unreadable", {"text": ""})["text"])
    seen(n, "journal cannot be read", "journal-unreadable", "journal-error")
    check(n.command("list", code=None).returncode != 0, "`list` succeeds without a journal")


def test_first_bytes(folder, things):
    """A connection that ends within its first message is called so: one byte used to be "an application context that is not DICOM's"."""
    n = h.Node(os.path.join(folder, "node"), h.free_port())
    things.append(n)
    n.start()
    for at, (sent, sentence) in enumerate(((b"\x01", "closed the connection within its association request"),
                                           (b"\x01\0\0\0\0\xc8" + bytes(60), "association request of 127.0.0.1: the peer closed the connection"))):
        with socket.create_connection(("127.0.0.1", n.port)) as s:
            s.sendall(sent)
        wait_for(f"{len(sent)} bytes", lambda: n.log_text().count("connection-ended") == at + 1 and sentence in n.log_text())
    check("application context" not in n.log_text(), n.log_text()[-800:])


class FakeSlurm:
    """Commands of Slurm that say what a test wants, in a folder for PATH. A job is in the list from its submission to its cancellation."""

    def __init__(self, folder):
        self.bin, self.says = os.path.join(folder, "bin"), os.path.join(folder, "says")
        os.makedirs(self.bin)
        os.makedirs(self.says)
        jobs = os.path.join(folder, "jobs")
        self.script("sbatch", f'cat >/dev/null\ncase " $* " in *" --test-only "*) exit 0;; esac\nname=; for a; do case $a in --job-name=*) name=${{a#*=}};; esac; done\n'
                              f'n=$(($(cat {jobs}.n 2>/dev/null || echo 100) + 1)); echo $n >{jobs}.n\necho "$n $name $(date +%s)" >>{jobs}\necho $n')
        self.script("squeue", f'read state reason <{self.says}/jobs\n[ $state != GONE ] || rm -f {jobs}\n[ -e {jobs} ] || exit 0\n'
                              f'while read n name at; do echo "$n|$state|$at|$at|$name|$reason"; done <{jobs}')
        self.script("scancel", f'for n; do :; done\nsed -i "/^$n /d" {jobs}')
        self.jobs("RUNNING None")

    def script(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as f:
            f.write(f'#!/bin/sh\nif [ -e {self.says}/{name} ]; then cat {self.says}/{name} >&2; exit 1; fi\n{text}\n')
        os.chmod(path, 0o755)

    def fails(self, name, text):
        """The command fails with this text; "": no longer."""
        path = os.path.join(self.says, name)
        if text:
            with open(path, "w") as f:
                f.write(text + "\n")
        else:
            os.unlink(path)

    def jobs(self, state):
        with open(os.path.join(self.says, "jobs"), "w") as f:
            f.write(state + "\n")


def slurm_node(folder, things, name, executor='"slurm"', **keys):
    """A node that uses the fake commands; one pilot is wanted."""
    slurm = FakeSlurm(os.path.join(folder, name))
    n = h.Node(os.path.join(folder, name, "node"), 1, executor=executor)
    n.status = {"port": h.free_port()}
    listen(n, things)
    keys = {"min": 1, "idle": 3600, "program": '"true"', **keys}
    n.write_conf(f'cluster = {{ bind = "127.0.0.1"; port = {h.free_port()}; advertise = "127.0.0.1:1"; }};\n'
                 f"slurm = {{ {' '.join(f'{k} = {v};' for k, v in keys.items())} }};\n")
    things.append(n)
    return n, slurm, lambda: n.start(command=("env", f"PATH={slurm.bin}:{os.environ['PATH']}"))


def test_slurm(folder, things):
    """Each state of Slurm, and nothing that is wrong without it."""
    n, slurm, run = slurm_node(folder, things, "a")
    slurm.fails("sbatch", "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
    slurm.fails("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    run()
    seen(n, "Slurm does not reply", "cluster", "cluster state=down")
    slurm.fails("squeue", "")
    slurm.fails("sbatch", "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified")
    wait_for("another state", lambda: n.list()["cluster"]["state"] == "refuses", 300)  # the time between two attempts doubles
    seen(n, "Slurm refuses the jobs", "cluster", "cluster state=refuses")
    slurm.fails("sbatch", "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying")
    wait_for("another state", lambda: n.list()["cluster"]["state"] == "busy", 300)
    seen(n, "Slurm accepts no more jobs", "cluster", "cluster state=busy")
    slurm.fails("sbatch", "")
    slurm.jobs("PENDING PartitionDown")
    wait_for("another state", lambda: n.list()["cluster"]["state"] == "draining", 300)
    seen(n, "partition or machines of the cluster are down", "cluster", "cluster state=draining")
    slurm.jobs("GONE")
    wait_for("another state", lambda: n.list()["cluster"]["state"] == "failing", 300)
    seen(n, "jobs end before their pilot connects", "cluster", "cluster state=failing")


def test_full_slurm(folder, things):
    n, slurm, run = slurm_node(folder, things, "a")
    slurm.jobs("PENDING Priority")
    run()
    wait_for("the job waits", lambda: n.list()["cluster"]["pending"] == 1)
    check("Slurm: 0 pilots idle, 0 busy, 0 starting, 1 in the queue; 1 job submitted, 0 requeued" in n.command("list").stdout, n.command("list").stdout)
    check(not listed(n) and get(n, "/health")[1] == "ok\n", "a problem without a reason")
    seen(n, "the cluster is full", "cluster", "cluster state=full", seconds=90)
    slurm.jobs("RUNNING None")
    gone(n, "cluster")
    check("mean wait in the queue 0 s" in n.command("list").stdout and "mean wait in the queue 0 s" in plain(get(n, "/")[1]), n.command("list").stdout)


def test_pilots(folder, things):
    """Devices of other machines alone: none is connected, one is refused, its port is in use."""
    n, _ = pilot_tools.cluster_node(folder, things)
    n.status = {"port": h.free_port()}
    listen(n, things)
    pilot_tools.write_conf(n)
    with socket.socket() as other:
        other.bind(("127.0.0.1", n.cluster_port))
        other.listen()
        n.start()
        seen(n, "`cluster.port` is in use", "pilots-unheard", "cluster-not-listening")
    gone(n, "pilots-unheard")
    seen(n, "`executor = \"pilots\"`, and none is connected", "no-pilot", "problem id=no-pilot")
    wait_for("the page says what the slot waits for", lambda: "Waits for a pilot" in get(n, "/")[1])
    check("waits for a pilot" in n.command("devices").stdout, n.command("devices").stdout)
    pilot = pilot_tools.Pilot(n, things, "d1").connected()
    gone(n, "no-pilot")
    devices = n.command("devices").stdout
    check("pilot d1: ready" in devices, devices)
    slots = json.loads(n.command("devices", "--json").stdout)["slots"]
    check([(s["pilot"], s["state"]) for s in slots if s["seat"] and s["pilot"]] == [("d1", "ready")], slots)
    pilot.stop()
    pilot_tools.hello(n, "9999999999999", "0.0 (other)")
    p = seen(n, "a pilot of another version", "pilot-refused", "pilot-refused")
    check("it is version 0.0 (other)" in p["text"] and "Pilot d1 at 127.0.0.1" in p["text"], p)
    check("it is version 0.0 (other)" in n.command("devices").stdout, n.command("devices").stdout)
    n.command("pilot-token", "--remove", "d1")
    pilot_tools.Pilot(n, things, "d1").connected()
    gone(n, "pilot-refused")


def exam_words(path):
    """What identifies the patient or the study of an image, and its UIDs."""
    import pydicom
    ds = pydicom.dcmread(path, stop_before_pixels=True)
    return [str(e.value) for e in ds if e.value and (e.VR in ("UI", "PN") or e.keyword in ("PatientID", "AccessionNumber", "StudyID", "PatientBirthDate"))]


def test_webhook(folder, things):
    """The message: its form, credentials, nothing of a patient; what `check` and `test-alert` say; a receiver without an answer gets the
    same message again, also from a node that was killed meanwhile."""
    n, _ = start(folder, things, pacs=False)
    token = os.path.join(folder, "token")
    with open(token, "w") as f:
        f.write("not-guessed\n")
    os.chmod(token, 0o644)
    n.hook.attach(n, f'credentials = "{token}"; timeout = 100.0;')
    n.write_conf()
    check("other users of this machine can read" in n.command("check", code=3).stderr, "a token that everybody can read")
    os.chmod(token, 0o600)
    check("alerts        to http://127.0.0.1" in n.command("check").stdout, "check")
    away = n.alerts.replace("127.0.0.1", "hook.example.org")
    for words, said in ((away, "allowed: credentials with https, or to this machine"), ('alerts = { url = "ftp://x/"; };', "key 'url' of alerts")):
        with open(n.conf + ".away", "w") as f:
            f.write(words)
        refused = h.run(h.TOMONODE, "check", "-c", n.conf + ".away", code=3).stderr
        check(said in refused, refused)
    check(n.command("test-alert").stdout.strip().startswith(f"http://127.0.0.1:{n.hook.port}/hook: answered with status 204 after"), "test-alert")
    test = json.loads(n.hook.bodies[-1])
    check(test["test"] is True and not test["alerts"] and n.hook.headers[-1]["Authorization"] == "Bearer not-guessed", (test, n.hook.headers[-1]))
    n.hook.answer = lambda message: 403
    check("answered with status 403" in n.command("test-alert", code=7).stderr, "403")

    exam = h.simulate(os.path.join(folder, "exam"), "--views", 5)
    n.hook.answer = lambda message: None
    n.start()
    h.send(n.port, exam[:2])
    p = seen_by_list(n, "alerts")
    check("the server closed the connection without an answer" in p["text"], p)
    wait_for("sent twice", lambda: len(n.hook.bodies) >= 4, 60)
    check(n.hook.bodies[-1] == n.hook.bodies[-2], n.hook.bodies[-2:])
    n.kill()
    n.hook.answer = lambda message: 204
    n.start()
    n.hook.told("cases")
    check(n.hook.bodies[-1] == n.hook.bodies[-2], n.hook.bodies[-2:])
    gone(n, "alerts")
    held, = n.hook.events()
    job = n.jobs()[0]["id"]
    check((held["id"], held["job"], held["key"], held["severity"]) == ("held", job, f"held:{job}", "warning"), held)
    check(held["text"] == f"Case {job} (dbt) is held.", held)
    n.command("cancel", job)
    n.hook.solved("cases")
    for word in exam_words(exam[0]):
        check(not any(word in body for body in n.hook.bodies if len(word) > 3), f"{word} was told")

    # The process that waits for an answer has no file and no port of the node; the node ends without it, which is no trouble.
    over, count, others = threading.Event(), len(n.hook.bodies), copies(n)
    n.hook.answer = lambda message: over.wait(100) and None
    h.send(n.port, h.simulate(os.path.join(folder, "another"), "--views", 5, "--seed", 2)[:2])
    wait_for("a message is being sent", lambda: len(n.hook.bodies) > count)
    sender, = copies(n) - others
    links = [name for fd, name in h.open_files(sender).items() if fd > 2]
    check(not any(n.spool in link or "signalfd" in link for link in links), links)
    page = n.status["port"]
    n.status["port"] = h.free_port()
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    wait_for("nobody listens on the port that the page had", lambda: refuses(page))
    check(sender in copies(n), "it has ended")
    n.stop()
    over.set()
    check("role=alert" in n.log_text().split(" stopping ")[-1] and "alerts-not-sent" not in n.log_text().split(" stopping ")[-1], n.log_text()[-800:])


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return False
    except ConnectionRefusedError:
        return True
    except TimeoutError:
        return False


def copies(n):
    """The children of the manager that run the same command: they were forked without exec."""
    with open(f"/proc/{n.process.pid}/task/{n.process.pid}/children", encoding="ascii") as f:
        children = [int(pid) for pid in f.read().split()]

    def words(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
        return b""
    return {pid for pid in children if words(pid) == words(n.process.pid)}


def seen_by_list(n, problem):
    return wait_for(f"list shows {problem}, not {sorted(listed(n))}", lambda: listed(n).get(problem), 60)


def test_webhook_down(folder, things):
    """Nobody listens: shown as a problem. What begins meanwhile is told once, by a node that was killed twice; what comes and goes is told once."""
    n, _ = start(folder, things, pacs=False, reserve='"900000 GB"')
    n.hook.stop()
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    seen(n, "webhook does not answer", "alerts", "alerts-not-sent")

    def stored():
        with open(os.path.join(n.spool, "alerts.json"), encoding="utf-8") as f:
            return "disk-full" in f.read()
    for _ in range(2):
        wait_for("stored", stored)
        n.kill()
        n.start()
    n.hook.start()
    n.hook.told("disk-full")
    gone(n, "alerts")
    n.kill()
    n.hook.keys = n.hook.keys.replace("settle = 1.0", "settle = 600.0")
    n.hook.attach(n)
    n.node["reserve"] = '"1 MB"'
    n.write_conf()
    n.start()
    wait_for("no problem", lambda: get(n, "/health")[1] == "ok\n")
    n.node["reserve"] = '"900000 GB"'
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    seen_by_list(n, "disk-full")
    check([e["event"] for e in n.hook.events() if e["id"] == "disk-full"] == ["begun"], n.hook.events())  # a leak sanitizer stops a process at its end


def once(test):
    @functools.wraps(test)
    def run(folder, things):
        del hooks[:]
        test(folder, things)
        for hook in hooks:
            hook.check_once()
    return run


def write_table():
    if "PROBLEMS_TABLE" not in os.environ:
        return
    cell = lambda text: re.sub(r"/tmp/tomonode-test-[^/]+/(node/)?", "", re.sub(r"\((\d+)\)", "(PID)", text)).replace("|", "\\|")
    with open(os.environ["PROBLEMS_TABLE"], "w") as f:
        f.write("| trouble | metric: id | `/health` | sentence of page, `list`, `/health` | what to do | log |\n|---|---|---|---|---|---|\n")
        for trouble, problem, health, text, remedy, event in table:
            f.write(f"| {cell(trouble)} | `{problem}` | {health} | {cell(text)} | {cell(remedy)} | {'`' + event.removesuffix(' reason=') + '`' if event else ''} |\n")


if __name__ == "__main__":
    atexit.register(write_table)
    h.main([once(test) for test in (
        test_full_slurm, test_slurm, test_processes, test_configuration, test_limits, test_spool, test_cases, test_no_space, test_associations, test_unreadable,
        test_webhook, test_webhook_down, test_first_bytes, test_pilots)], beside=1 if "PROBLEMS_TABLE" in os.environ else 4)
