# SPDX-License-Identifier: Apache-2.0
"""What an operator sees when something is wrong. One problem goes through all outlets (page, `list`, /health, metrics,
log, `check` and webhook), and solved out of all of them; every other trouble is provoked and seen in the one list that
they all show, with its event in the log."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import threading
import time
import urllib.error
import urllib.request

import pydicom
import pytest

from tools import contract_tools as c
from tools import dicom_peer, pilot_tools, tls_tools, webhook
from tools import node_harness as h
from tools.journal_tools import damage
from tools.node_harness import check, wait_for

h.need("openssl", "storescp", "storescu", "echoscu")


def get(n, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{n.status['port']}{path}", timeout=60) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except (OSError, http.client.HTTPException):  # its process is being replaced
        return 0, ""


def a_node(folder, things, extra="", hook=False, **node):
    """A node with a status page, and a PACS that is only an address; hook: alerts go to a webhook."""
    n = h.Node(os.path.join(folder, "node"), h.free_port(), **node)
    n.status = {"port": h.free_port()}
    if hook:
        attach(n, things)
    n.write_conf(extra)
    things.append(n)
    return n


def started(n):
    n.start()
    wait_for("the page", lambda: get(n, "/health")[0])
    return n


def attach(n, things):
    n.hook = webhook.Webhook()
    n.hook.attach(n)
    things.append(n.hook)


def listed(n):
    """By id. The exit code of `list` is not 0 if the journal cannot be read."""
    return {p["id"]: p for p in json.loads(n.command("list", "--json", code=None).stdout)["problems"]}


def plain(html):
    return re.sub(r"<[^>]+>", "", html).replace("&#39;", "'").replace("&quot;",
                                                                      '"').replace("&lt;",
                                                                                   "<").replace("&gt;",
                                                                                                ">").replace("&amp;",
                                                                                                             "&")


def seen(n, trouble, problem, event, words=""):
    """The trouble is in the list, and its event in the log. problem: id; event: regular expression."""
    p = wait_for(f"{trouble}: list shows {problem}", lambda: (lambda q: q if q and words in q["text"]
                                                              else None)(listed(n).get(problem)), step=0.2)
    check(p["text"].endswith(".") and p["remedy"].endswith("."), p)
    if event:
        wait_for(f"{trouble}: {event} in the log", lambda: re.search(event, n.log_text()))
    return p


def gone(n, *problems):
    wait_for(f"{problems} ended", lambda: not set(problems) & set(listed(n)), step=0.2)


def authority(folder):
    return tls_tools.Authority(os.path.join(folder, "ca"), "ca")


def certificate(ca, name, days, since=-900):
    """A certificate that ends in `days` days (negative: it has ended) and begins in `since` days, and its key."""
    def when(day):
        return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + 86400 * day))
    key = tls_tools.make_key(os.path.join(ca.folder, name + ".key"), ("EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"))
    os.chmod(key, 0o600)
    return ca.sign(key, name, start=when(since), end=when(days)), key


def listeners(more='client_certificate = "none";', **certificates):
    return "listeners = ( " + ", ".join(
        f'{{ name = "{name}"; port = {h.free_port()}; tls = true; certificate = "{pem}"; key = "{key}"; {more} }}'
        for name, (pem, key) in certificates.items()) + " );\n"


def outlets(n, p):
    """Which outlets show a problem of the list, with its sentence."""
    severity = "critical" if p["critical"] else "warning"
    code, health = get(n, "/health")
    page = get(n, "/")[1]
    return {"list": f"{severity.capitalize()}: {p['text']}" in n.command("list").stdout,
            "health": f"{severity}: {p['text']}" in health and code == (503 if "critical: " in health else 200),
            "page": p["text"] in plain(page) and "Everything is in order" not in page,
            "metrics": f'tomonode_problems{{id="{p["id"]}",severity="{severity}"}} 1\n' in get(n, "/metrics")[1],
            "check": p["text"] in n.command("check", code=None).stderr}


def test_one_problem_in_every_outlet(folder, things):
    """A certificate that has ended is critical, a route that is never used a warning: first both, then the one, then
    none."""
    n = a_node(folder, things, hook=True)
    n.more_routes = ', { name = "other"; kind = "dbt"; protocols = [ "quick" ]; destinations = [ "pacs" ]; }'
    n.write_conf(listeners(old=certificate(authority(folder), "old", -1)))
    started(n)
    critical = seen(n, "own certificate expired", "certificate-expired", "certificate-expired reason=")
    warning = seen(n, "route that is never used", "route", "problem id=route")
    check(critical["critical"] and not warning["critical"], (critical, warning))
    n.command("check", code=3)
    for p in (critical, warning):
        wait_for(f"everywhere: {p}", lambda p=p: all(outlets(n, p).values()), step=0.3)
        n.hook.told(p["id"])
    n.reload()
    gone(n, "certificate-expired")
    wait_for("the warning everywhere", lambda: all(outlets(n, warning).values()), step=0.3)
    wait_for("the other one nowhere", lambda: not any(outlets(n, critical).values()), step=0.3)
    wait_for("a warning is no reason to be unhealthy", lambda: get(n, "/health")[0] == 200)
    n.command("check")
    n.more_routes = ""
    n.reload()
    gone(n, "route")
    wait_for("nothing", lambda: get(n, "/health") == (200, "ok\n") and "Everything is in order" in get(n, "/")[1]
             and "tomonode_problems{" not in get(n, "/metrics")[1] and not any(outlets(n, warning).values()), step=0.3)
    wait_for("the log says that it ended", lambda: "problem-ended id=route" in n.log_text())
    for problem in ("certificate-expired", "route"):
        n.hook.solved(problem)
    n.hook.check_once()


def test_processes(folder, things):
    """Stopped processes, a removed folder, a replaced journal: everything that a node that runs can lose."""
    n = started(a_node(folder, things))
    receiver = next(p for p in n.manager_and_receiver() if p != n.process.pid)
    worker, status, http = (wait_for(role, lambda r=role: n.processes(r))[0] for role in ("worker", "status", "http"))
    for pid in (receiver, worker):
        os.kill(pid, signal.SIGSTOP)
    seen(n, "receiver stopped (SIGSTOP)", "receiver-stopped", "problem id=receiver-stopped")
    seen(n, "worker stopped", "process-stopped", "problem id=process-stopped", words="The worker process")
    os.kill(receiver, signal.SIGCONT)
    os.kill(worker, signal.SIGCONT)
    os.kill(status, signal.SIGSTOP)
    gone(n, "receiver-stopped")
    seen(n, "process of the page stopped", "process-stopped", None, words="The status process")
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
    n.kill()
    with socket.create_server(("127.0.0.1", n.status["port"])):
        n.start()
        seen(n, "port of the status page is in use", "page", "status-page-not-served")
        n.kill()
    seen(n, "node does not run", "not-running", None)


def test_configuration(folder, things):
    """Certificates, names that do not resolve, a route whose sender may not send."""
    n = a_node(folder, things)
    ca = authority(folder)
    soon, early = certificate(ca, "soon", 12.5), certificate(ca, "early", 400, 2)
    n.node["require_known_peer"] = "true"
    n.write_conf(listeners(soon=soon, early=early)
                 + 'peers = ( { name = "a"; aet = "MODALITY"; }, { name = "b"; aet = "ECHOSCU"; } );\n')
    text = h.read_file(n.conf)
    with open(n.conf, "w", encoding="utf-8") as f:
        text = text.replace("destinations = ( {",
                            'destinations = ( { name = "away"; aet = "AWAY"; host = "no-such-host.invalid"; }, {', 1)
        f.write(text.replace("routes = ( {",
                             'routes = ( { name = "other"; calling = "OTHER"; protocols = [ "quick" ]; destinations = '
                             '[ "pacs" ]; }, {', 1))
    said = n.command("check", code=3).stderr
    check("in 12 days" in said and "no-such-host.invalid" in said, said)
    started(n)
    seen(n, "own certificate not yet valid", "certificate-early", "certificate-expired reason=")
    seen(n, "own certificate ends soon", "certificate-expires", "certificate-expires reason=")
    wait_for("the name is looked up", lambda: "destination-name" in listed(n), 300, 0.5)
    seen(n, "name of a destination does not resolve", "destination-name", "problem id=destination-name")
    check("OTHER" in listed(n)["route"]["text"], listed(n))
    h.write_file(soon[1], "damaged")
    os.kill(next(p for p in n.manager_and_receiver() if p != n.process.pid), signal.SIGKILL)
    seen(n, "key of a port damaged", "listener", "listener-failed")
    metrics = wait_for("the metrics", lambda: get(n, "/metrics")[1])
    end = float(re.search(r'tomonode_certificate_expiry_timestamp_seconds\{of="listener \'soon\'",file="[^"]+"\} (\S+)',
                          metrics)[1])
    check(12 < (end - time.time()) / 86400 < 13, end)
    n.reload()
    gone(n, "certificate-early", "certificate-expires", "destination-name", "route", "listener")


def test_limits(folder, things):
    """Fewer descriptors than max_associations needs: said, and the receiver still hears. A limit of file sizes: said,
    and no process dies of it."""
    n = a_node(folder, things, max_associations=1000)
    n.start(command=("prlimit", "--nofile=1024:1024", "--fsize=4000000:4000000"))
    seen(n, "too few descriptors for `max_associations`", "descriptors", "descriptors-limited")
    seen(n, "limit of file sizes", "file-size", "problem id=file-size")
    check(n.echo(), "C-ECHO")
    n.stop()
    n.node["max_associations"] = 2
    n.write_conf()
    n.start()
    gone(n, "descriptors", "file-size")
    held = [dicom_peer.Sender(n.port, calling="HOLDER") for _ in range(2)]
    wait_for("no place for a third one", lambda: not n.echo() and "associations-full" in listed(n))
    seen(n, "no place for another association", "associations-full", "problem id=associations-full")
    for sender in held:
        sender.release()
    gone(n, "associations-full")
    check(n.echo(), "C-ECHO")


def test_spool(folder, things):
    """A full disk, images without a row, a damaged journal, folders that are not there."""
    n = started(a_node(folder, things, reserve='"900000 GB"'))
    seen(n, "disk full", "disk-full", "problem id=disk-full")
    n.node["reserve"] = f'"{shutil.disk_usage(n.spool).free // 1500000} MB"'
    n.reload()
    seen(n, "disk nearly full", "disk-low", "problem id=disk-low")
    n.node["reserve"] = '"1 MB"'
    n.write_conf()
    n.kill()
    orphan = os.path.join(n.spool, "instances", "00000001-0000001-1-1.dcm")
    h.write_file(orphan, b"x")
    n.start()
    seen(n, "image without a row in the journal", "orphans", "orphans-found")
    os.remove(os.path.join(n.spool, "orphans", os.path.basename(orphan)))
    gone(n, "orphans")
    n.stop()
    path = os.path.join(n.spool, "journal.db")
    shutil.copy(path, path + ".good")
    damage(n.spool, "event_commit_requested")
    n.start()
    seen(n, "journal damaged", "journal-damaged", "journal-damaged")
    wait_for("a metric of its own", lambda: "\ntomonode_journal_damaged 1\n" in get(n, "/metrics")[1])
    check(n.list()["journal_problem"], "list --json")
    n.stop()
    os.rename(path + ".good", path)
    started(n)
    gone(n, "journal-damaged")
    check("\ntomonode_journal_damaged 0\n" in get(n, "/metrics")[1], "the metric")
    instances = os.path.join(n.spool, "instances")
    os.rename(instances, instances + ".away")
    os.kill(n.process.pid, signal.SIGHUP)
    seen(n, "`instances/` cannot be written", "incoming", "problem id=incoming")
    os.rename(instances + ".away", instances)
    os.rename(path, os.path.join(n.spool, "away.db"))
    wait_for("the journal is missing", lambda: (lambda r: r[0] == 503
                                                and "was removed or replaced" in r[1])(get(n, "/health")))


@contextlib.contextmanager
def locked(n):
    """Nobody can write into the journal."""
    db = sqlite3.connect(os.path.join(n.spool, "journal.db"), timeout=60, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    yield
    db.execute("ROLLBACK")
    db.close()


def test_cases(folder, things):
    """What happens to cases: an archive that does not respond, a case that is held, one that the archive refuses; a
    device that does not exist. The webhook is told of each case."""
    archive = dicom_peer.Archive()
    archive.stop()
    n = a_node(folder, things, hook=True, device='"cuda:63"')
    n.pacs_port = archive.port
    n.write_conf()
    started(n)
    seen(n, "device disabled", "device-disabled", "device-disabled")
    first, second = (h.simulate(os.path.join(folder, f"exam{seed}"), "--views", 5, "--seed", seed) for seed in (1, 2))
    h.send(n.port, first)
    h.send(n.port, second[:1])
    seen(n, "archive does not respond", "destination-down", "job-send-failed")
    wait_for("no indexer", lambda: not n.processes("index"))
    os.kill(n.process.pid, signal.SIGSTOP)
    h.send(n.port, second[1:2])
    with locked(n):  # so that the indexer, which the main process starts now, waits
        os.kill(n.process.pid, signal.SIGCONT)
        indexer = wait_for("the indexer", lambda: n.processes("index"))[0]
        os.kill(indexer, signal.SIGSTOP)
    seen(n, "indexer stopped", "process-stopped", "problem id=process-stopped", words="The index process")
    os.kill(indexer, signal.SIGCONT)
    wait_for("both images are indexed and the case is held", lambda: [j["instances"] for j in n.jobs() if j["state"]
                                                                      == "held"] == [2])
    seen(n, "case held: images are missing", "cases", "job-held")
    n.hook.told("cases")
    archive = dicom_peer.Archive(archive.port, lambda uid, data: 0xA900)
    things.append(archive)
    wait_for("the archive refuses", lambda: "dead-letter" in n.states())
    seen(n, "case refused by the archive", "cases", "job-dead-letter", words="2 cases")
    gone(n, "destination-down")
    archive.answer = lambda uid, data: 0
    jobs = {job["state"]: job["id"] for job in n.jobs()}
    wait_for("both are told", lambda: {e["job"] for e in n.hook.open("cases")} == set(jobs.values()))
    n.command("retry", jobs["dead-letter"])
    n.command("cancel", jobs["held"])
    gone(n, "cases")
    n.node["device"] = '"cpu"'
    n.reload()
    gone(n, "device-disabled")
    for problem in ("cases", "destination-down", "device-disabled"):
        n.hook.solved(problem)
    with socket.create_server(("127.0.0.1", 0)) as s:
        n.write_conf(f'listeners = ( {{ name = "taken"; port = {s.getsockname()[1]}; tls = false; }} );')
        n.process.send_signal(signal.SIGHUP)
        seen(n, "reload that is refused (a port in use)", "reload", "config-not-reloaded")
    n.reload()
    gone(n, "reload")
    n.hook.check_once()


def test_no_space(folder, things):
    """A result for which there is no space: counted, tried again later, and an alarm after three attempts."""
    n = a_node(folder, things)
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
    first = wait_for("an attempt without space", waits)[0]
    check("node.reserve" in first["detail"]["reason"] and first["detail"]["next"] > first["time"] - 10, first)
    check("no-space" not in listed(n) or len(waits()) > 2, "a problem before the third attempt")
    n.stop()
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:  # two more, without the waiting times
        for _ in range(2):
            db.execute("INSERT INTO event (time, job, name, detail) VALUES (?, ?, 'started', '{}')", (time.time(), job))
            db.execute("INSERT INTO event (time, job, name, detail) VALUES (?, ?, 'interrupted', json_object('reason', "
                       "'full', 'space', "
                       "json('true'), 'next', ?))", (time.time(), job, time.time() + 500))
    n.start()
    seen(n, "no space for a result, three times", "no-space", "problem id=no-space")
    check(n.states() == ["ready"], n.states())
    n.node["reserve"] = '"1 MB"'
    n.reload()
    wait_for("the configuration is read", lambda: "config-reloaded" in n.log_text())
    n.command("retry", job)
    gone(n, "no-space")
    n.wait_states("reconstructed")


def test_no_place_for_results(folder, things):
    """outbox/ is away, and then a file is in its place: said at once; the case waits, which counts as no crash."""
    n = a_node(folder, things)
    started(n)
    outbox = os.path.join(n.spool, "outbox")
    os.rename(outbox, outbox + ".away")
    os.kill(n.process.pid, signal.SIGHUP)  # probed at once; else within 10 s
    seen(n, "`outbox/` cannot be written", "results", "problem id=results")
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 5))
    job = wait_for("a case", n.jobs)[0]["id"]
    wait_for("an attempt without a folder", lambda: n.events(job).count("interrupted") == 1)
    with open(outbox, "w", encoding="ascii"):
        n.command("retry", job)
    wait_for("an attempt with a file as folder", lambda: n.events(job).count("interrupted") == 2)
    check(n.states() == ["ready"] and "crashed" not in n.events(job), n.show(job))
    os.remove(outbox)
    os.rename(outbox + ".away", outbox)
    os.kill(n.process.pid, signal.SIGHUP)
    gone(n, "results")
    n.command("retry", job)
    n.wait_states("reconstructed")


def test_no_inode_and_read_only(folder, things):
    """No file can be made: neither objects nor node.json can be written, and each outlet says so."""
    with c.small_disk(os.path.join(folder, "disk"), 64 << 20) as disk:
        n = a_node(folder, things, reserve=0)
        n.spool = os.path.join(disk, "spool")
        n.write_conf()
        started(n)
        wait_for("the facts are there", lambda: os.path.exists(os.path.join(n.spool, "node.json")))
        check(not listed(n).keys() - {"page"}, listed(n))
        v = os.statvfs(disk)
        h.run("mount", "-o", f"remount,nr_inodes={v.f_files - v.f_ffree}", disk)
        seen(n, "no inodes", "disk-full", "problem id=disk-full")
        wait_for("the node sees that objects are refused", lambda: "problem id=incoming" in n.log_text())
        seen(n, "`node.json` cannot be written", "facts-old", "problem id=facts-old")
        check(get(n, "/health")[0] == 503, "health")
        h.run("mount", "-o", "remount,nr_inodes=100000", disk)
        gone(n, "disk-full", "incoming", "facts-old")
        h.run("mount", "--bind", disk, disk)  # the node's own mount has open files: it would be busy
        try:
            h.run("mount", "-o", "remount,bind,ro", disk)
            seen(n, "mounted read-only", "disk-unreadable", "problem id=disk-unreadable")
            check(get(n, "/health")[0] == 503, "health")
        finally:
            h.run("umount", disk)
        gone(n, "disk-unreadable", "incoming", "facts-old")
        n.stop()
        things.remove(n)


def shown_association(n, reason):
    """An association without an object, as `list --json` shows it; also in `list`, on the page and in the log."""
    one = wait_for(f"{reason!r} among {n.list()['associations']}",
                   lambda: next((a for a in n.list()["associations"] if reason in a["reason"]), None))
    check(reason in n.command("list").stdout, "list")
    wait_for("the page", lambda: reason in plain(get(n, "/")[1]))
    return one


def test_associations(folder, things):
    """What senders offer and the node refuses, and associations that bring nothing, are shown with the sender and the
    reason."""
    n = started(a_node(folder, things))
    check(n.echo() and not n.list()["associations"], "a C-ECHO is no association without an object")
    find, tomo, jpeg2000 = "1.2.840.10008.5.1.4.1.2.2.1", "1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.1.2.4.91"

    class Offer:
        def __init__(self, sop_class, syntax):
            self.sop_class, self.syntax = sop_class, syntax

    for _ in range(2):
        dicom_peer.Sender(n.port, [Offer(find, dicom_peer.IMPLICIT), Offer(tomo, jpeg2000)], calling="CT1").release()
    one = shown_association(n,
                            f"2 classes refused: {tomo} (none of its transfer syntaxes is supported: {jpeg2000}); "
                            f"{find} (this class is not supported)")
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
    """The receiver ends again and again, an object waits for the indexer, the journal cannot be read, a revocation list
    has ended."""
    ca = authority(folder)
    crl = ca.crl("ended", "-crl_lastupdate", "20250101000000Z", "-crl_nextupdate", "20250201000000Z")
    more = f'authorities = "{ca.certificate}"; crl = "{crl}";'
    n = started(a_node(folder, things, listeners(more, tls=certificate(ca, "own", 400))))
    seen(n, "revocation list has ended", "crl-ended", "certificate-expired")

    exam = h.simulate(os.path.join(folder, "exam"), "--views", 5)
    os.kill(n.process.pid, signal.SIGSTOP)  # nobody starts an indexer
    h.send(n.port, exam[:1])
    with sqlite3.connect(os.path.join(n.spool, "journal.db"), timeout=60) as db:
        db.execute("UPDATE instance SET received = received - 500")
    seen(n, "object waits for the indexer", "index-late", None)
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
    seen(n, "journal cannot be read", "journal-unreadable", "journal-error", words="The node cannot open its journal")
    check(n.command("list", code=None).returncode != 0, "`list` succeeds without a journal")


def test_first_bytes(folder, things):
    """A connection that ends within its first message is called so: one byte used to be "an application context that is
    not DICOM's"."""
    n = h.Node(os.path.join(folder, "node"), h.free_port())
    things.append(n)
    n.start()
    for at, (sent, sentence) in enumerate(((b"\x01", "closed the connection within its association request"),
                                           (b"\x01\0\0\0\0\xc8" + bytes(60),
                                            "association request of 127.0.0.1: the peer closed the connection"))):
        with socket.create_connection(("127.0.0.1", n.port)) as s:
            s.sendall(sent)
        wait_for(f"{len(sent)} bytes", lambda: n.log_text().count("connection-ended") == at + 1
                 and sentence in n.log_text())
    check("application context" not in n.log_text(), n.log_text()[-800:])


class FakeSlurm:
    """Commands of Slurm that say what a test wants, in a folder for PATH. A job is in the list from its submission to
    its cancellation."""

    def __init__(self, folder):
        self.bin, self.says = os.path.join(folder, "bin"), os.path.join(folder, "says")
        os.makedirs(self.bin)
        os.makedirs(self.says)
        jobs = os.path.join(folder, "jobs")
        self.script("sbatch",
                    f'cat >/dev/null\ncase " $* " in *" --test-only "*) exit 0;; esac\nname=; for a; do case $a in '
                    f'--job-name=*) name=${{a#*=}};; esac; done\n'
                              f'n=$(($(cat {jobs}.n 2>/dev/null || echo 100) + 1)); echo $n >{jobs}.n\necho "$n $name '
                              f'$(date +%s)" >>{jobs}\necho $n')
        self.script("squeue",
                    f'read state reason <{self.says}/jobs\n[ -e {jobs} ] || exit 0\n'
                              f'while read n name at; do echo "$n|$state|$at|$at|$name|$reason"; done <{jobs}')
        self.script("scancel", f'for n; do :; done\nsed -i "/^$n /d" {jobs}')
        self.jobs("RUNNING None")

    def script(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as f:
            f.write(f'#!/bin/sh\nif [ -e {self.says}/{name} ]; then cat {self.says}/{name} >&2; exit 1; fi\n{text}\n')
        os.chmod(path, 0o755)

    def fails(self, name, text):
        """The command fails with this text."""
        h.write_file(os.path.join(self.says, name), text + "\n")

    def jobs(self, state):
        h.write_file(os.path.join(self.says, "jobs"), state + "\n")


def slurm_node(folder, things, name, executor='"slurm"', **keys):
    """A node that uses the fake commands; one pilot is wanted."""
    slurm = FakeSlurm(os.path.join(folder, name))
    n = h.Node(os.path.join(folder, name, "node"), 1, executor=executor)
    n.status = {"port": h.free_port()}
    keys = {"min": 1, "idle": 3600, "program": '"true"', **keys}
    n.write_conf(f'cluster = {{ bind = "127.0.0.1"; port = {h.free_port()}; advertise = "127.0.0.1:1"; }};\n'
                 f"slurm = {{ {' '.join(f'{k} = {v};' for k, v in keys.items())} }};\n")
    things.append(n)
    return n, slurm, lambda: n.start(command=("env", f"PATH={slurm.bin}:{os.environ['PATH']}"))


def test_slurm(folder, things):
    """Slurm does not reply. (Its other states: node/fleet/test_fleet, and of a real one cluster/test_slurm.)"""
    n, slurm, run = slurm_node(folder, things, "a")
    slurm.fails("sbatch",
                "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
    slurm.fails("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    run()
    wait_for("state down", lambda: n.list()["cluster"]["state"] == "down", 300, 0.3)
    seen(n, "Slurm does not reply", "cluster", "cluster state=down")


@pytest.mark.tier2("a job has to wait for a minute")
def test_full_slurm(folder, things):
    n, slurm, run = slurm_node(folder, things, "a")
    slurm.jobs("PENDING Priority")
    run()
    wait_for("the job waits", lambda: n.list()["cluster"]["pending"] == 1)
    text = n.command("list").stdout
    check("Slurm: 0 pilots idle, 0 busy, 0 starting, 1 in the queue; 1 job submitted, 0 requeued" in text, text)
    check(not listed(n) and get(n, "/health")[1] == "ok\n", "a problem without a reason")
    wait_for("it has waited long", lambda: listed(n), 200, 0.5)
    seen(n, "the cluster is full", "cluster", "cluster state=full")
    slurm.jobs("RUNNING None")
    gone(n, "cluster")
    check("mean wait in the queue 0 s" in n.command("list").stdout
          and "mean wait in the queue 0 s" in plain(get(n, "/")[1]), n.command("list").stdout)


def test_pilots(folder, things):
    """Devices of other machines alone: none is connected, one is refused, its port is in use."""
    n, _ = pilot_tools.cluster_node(folder, things)
    n.status = {"port": h.free_port()}
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
    ds = pydicom.dcmread(path, stop_before_pixels=True)
    return [str(e.value) for e in ds if e.value
            and (e.VR in ("UI", "PN") or e.keyword in ("PatientID", "AccessionNumber", "StudyID", "PatientBirthDate"))]


def test_webhook(folder, things):
    """The message: its form, credentials, nothing of a patient; what `check` and `test-alert` say; a receiver without
    an answer gets the same message again, also from a node that was killed meanwhile."""
    n = a_node(folder, things, hook=True)
    token = os.path.join(folder, "token")
    h.write_file(token, "not-guessed\n")
    os.chmod(token, 0o644)
    n.hook.attach(n, f'credentials = "{token}"; timeout = 100.0;')
    n.write_conf()
    check("other users of this machine can read" in n.command("check", code=3).stderr,
          "a token that everybody can read")
    os.chmod(token, 0o600)
    check("alerts        to http://127.0.0.1" in n.command("check").stdout, "check")
    away = n.alerts.replace("127.0.0.1", "hook.example.org")
    for words, said in ((away, "allowed: credentials with https, or to this machine"),
                        ('alerts = { url = "ftp://x/"; };', "key 'url' of alerts")):
        h.write_file(n.conf + ".away", words)
        refused = h.run(h.TOMONODE, "check", "-c", n.conf + ".away", code=3).stderr
        check(said in refused, refused)
    check(n.command("test-alert").stdout.strip().startswith(f"http://127.0.0.1:{n.hook.port}/hook: answered with "
                                                            "status 204 after"), "test-alert")
    test = json.loads(n.hook.bodies[-1])
    check(test["test"] is True and not test["alerts"] and n.hook.headers[-1]["Authorization"] == "Bearer not-guessed",
          (test, n.hook.headers[-1]))
    n.hook.answer = lambda message: 403
    check("answered with status 403" in n.command("test-alert", code=7).stderr, "403")

    exam = h.simulate(os.path.join(folder, "exam"), "--views", 5)
    n.hook.answer = lambda message: None
    n.start()
    h.send(n.port, exam[:2])
    p = wait_for("list shows that nobody takes alerts", lambda: listed(n).get("alerts"))
    check("the server closed the connection without an answer" in p["text"], p)
    wait_for("sent twice", lambda: len(n.hook.bodies) >= 4)
    check(n.hook.bodies[-1] == n.hook.bodies[-2], n.hook.bodies[-2:])
    n.kill()
    n.hook.answer = lambda message: 204
    n.start()
    n.hook.told("cases")
    check(n.hook.bodies[-1] == n.hook.bodies[-2], n.hook.bodies[-2:])
    gone(n, "alerts")
    n.hook.check_once()
    held, = [e for e in n.hook.events() if e["id"] == "held"]
    job = n.jobs()[0]["id"]
    check((held["id"], held["job"], held["key"], held["severity"]) == ("held", job, f"held:{job}", "warning"), held)
    check(held["text"] == f"Case {job} (dbt) is held.", held)
    n.command("cancel", job)
    n.hook.solved("cases")
    for word in exam_words(exam[0]):
        check(not any(word in body for body in n.hook.bodies if len(word) > 3), f"{word} was told")

    # The process that waits for an answer has no file and no port of the node; the node ends without it, which is no
    # trouble.
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
    check("role=alert" in n.log_text().split(" stopping ")[-1]
          and "alerts-not-sent" not in n.log_text().split(" stopping ")[-1], n.log_text()[-800:])


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


def test_webhook_down(folder, things):
    """Nobody listens: shown as a problem. What begins meanwhile is told once, by a node that was killed twice; what
    comes and goes is told once."""
    n = a_node(folder, things, hook=True, reserve='"900000 GB"')
    n.hook.stop()
    started(n)
    seen(n, "webhook does not answer", "alerts", "alerts-not-sent")

    def stored():
        return "disk-full" in h.read_file(os.path.join(n.spool, "alerts.json"))
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
    wait_for("it is listed", lambda: "disk-full" in listed(n))
    # a leak sanitizer stops a process at its end
    check([e["event"] for e in n.hook.events() if e["id"] == "disk-full"] == ["begun"], n.hook.events())
