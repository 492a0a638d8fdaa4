# SPDX-License-Identifier: Apache-2.0
"""Deliveries over STOW-RS: every class of answer, broken TLS, credentials; Orthanc's DICOMweb plug-in and a stand-in
that are killed, slow, full and refuse single instances: nothing is lost, nothing is there twice.
TOMONODE_STOW_OBJECTS=1000 is the long form; 120 without it."""
import os
import random
import socket
import threading
import time

import pytest

from tools import contract_tools, stow_peer, tls_tools
from tools import node_harness as h
from tools.node_harness import check, wait_for
from tools.stow_peer import Lose, StowPeer, answer_json, failed, stored

h.need("storescu", "echoscu", "openssl")
OBJECTS = int(os.environ.get("TOMONODE_STOW_OBJECTS") or 120)
PLUGIN = "/usr/share/orthanc/plugins/libOrthancDicomWeb.so"


def start(folder, things, url, more="", node="", begin=True):
    """A node with the destination `web`; more: of its keys."""
    return h.node_of_lines(folder, things, "web", f'kind = "stow"; url = "{url}"; connect_timeout = 30; answer_timeout = 60; {more}',
                           node, begin)


def uids(job):
    return [o["sop_instance"] for o in job["result"]["objects"]]


def exactly(peer, jobs):
    """What the server holds are the objects of these jobs, and none came again with other bytes."""
    wanted = {u for j in jobs for u in uids(j)}
    check(set(peer.held) == wanted, f"lost {len(wanted - set(peer.held))}, too many {len(set(peer.held) - wanted)}")
    check(not peer.changed and not peer.errors, f"{peer.changed} {peer.errors}")


def test_answers(folder, things):
    """Each answer that does not name the instance as stored is a failure with its sentence, and the object is sent
    again until it is."""
    other = "1.2.3.4"
    said = [  # what the server says; what the node says of it (the whole sentences: test_stow_answer)
        (lambda u: (500, {}, b"oops"), "HTTP 500 with a body"),
        (lambda u: (507, {}, b""), "HTTP 507"),
        (lambda u: (503, {"Retry-After": "1"}, b""), "HTTP 503"),
        (lambda u: (401, {"WWW-Authenticate": "Bearer"}, b""), "HTTP 401"),
        (lambda u: (200, {}, b""), "HTTP 200 without a body"),
        (lambda u: (200, {}, answer_json(stored=[other])), "HTTP 200 that names other"),
        (lambda u: (200, {}, answer_json(stored=[u])[:-9]), "HTTP 200 with a body"),
        (lambda u: (200, {"Content-Length": "5000"}, answer_json(stored=[u])[:-1]),
         "receiving the answer: the connection ended before the end"),
        (lambda u: (200, {}, b"[" * 2000000), "receiving the answer: it has more than 1048576 bytes"),
        (lambda u: (307, {"Location": "http://127.0.0.1:1/"}, b""), "HTTP 307"),
        (lambda u: (200, {}, answer_json(stored=[u], failed=[(u, 0xA700)])), "HTTP 200 that names the instance"),
        (lambda u: failed(u, 0xA700), "out of resources"),
        (None, "the server closed the connection without an answer"),
    ]
    rest = [s for s, _ in said]

    def say(uid, data, headers):
        if not rest:
            return stored(uid)
        first = rest.pop(0)
        if first:
            return first(uid)
        peer.keep(uid, data)  # the answer is lost
        raise Lose
    peer = StowPeer(say)
    things.append(peer)
    peer.start()
    trail = os.path.join(folder, "audit")
    node = start(folder, things, peer.url(), "alarm_rejections = 1;", f'audit = "file"; audit_file = "{trail}";')
    h.send_lines(node, 1, 12)
    job = node.wait_state(0, "delivered")
    reasons = [e["reason"] for e in node.events(job["id"], "send-failed")]
    check(len(reasons) == len(said) and all(want in got for (_, want), got in zip(said, reasons)), "\n".join(reasons))
    exactly(peer, [job])
    check(len(peer.order) == 12 + len(said), "only what failed was sent again")
    failures = [e["detail"] for e in node.show(job["id"])["events"] if e["event"] == "send-failed"]
    check([bool(f.get("down")) for f in failures[:6]] == [False, False, True, True, False, False], failures[:6])
    check(node.log_text().count("delivery-alarm") == 1 and "delivery-recovered" in node.log_text(),
          "401 raises an alarm, which ends")

    def transfers():
        with open(trail, encoding="utf-8") as f:
            return [m for m in f if "DICOM Instances Transferred" in m and 'UserID="127.0.0.1"' in m
                    and 'NumberOfInstances="12"' in m]
    wait_for("the audit trail names the server", transfers)

    # refusals of single instances do not delay the others; a duplicate is there
    refuse = {2: (0xA900, 409), 4: (0xC122, 409), 5: (0x0111, 409), 7: (0x0122, 202)}
    peer.order.clear()

    def say_refuse(uid, data, headers):
        at = len(peer.order) - 1
        if at == 9:
            return 400, {}, b"{}"
        if at == 10:
            return 413, {}, b""
        if at == 5:
            peer.keep(uid, data)
        return failed(uid, *refuse[at]) if at in refuse else stored(uid)
    peer.say = say_refuse
    h.send_lines(node, 2, 12)
    second = node.wait_state(1, "dead-letter")
    got = [(e["status"], e["reason"][:9]) for e in node.events(second["id"], "send-refused")]
    check(got == [("A900", "the data "), ("C122", "the peer "), ("0122", "the peer "), ("", "HTTP 400 "),
                  ("", "HTTP 413 ")], got)
    check(len(peer.order) == 12 and len(peer.held) == 12 + 7, "the others are stored")
    peer.say = lambda uid, data, headers: stored(uid)
    node.command("retry", second["id"])
    second = node.wait_state(1, "delivered")
    exactly(peer, [job, second])
    check(len(peer.order) == 12 + 5, "and the refused ones sent again")
    check("STOW-RS" in node.command("test-peer", "web").stdout, "test-peer")


def one_bad_connection(port):
    """Accept a connection, and close it within the TLS handshake."""
    listener = socket.create_server(("127.0.0.1", port))

    def run():
        while True:
            try:
                s, _ = listener.accept()
                s.recv(100)
                s.close()
            except OSError:
                return
    threading.Thread(target=run, daemon=True).start()
    return listener


def test_tls(folder, things):
    """Certificates of another authority, expired, of another name, a handshake that is cut, no TLS, no client
    certificate, credentials: each has its sentence, nothing is sent, and the delivery follows as soon as it is
    repaired."""
    pki = tls_tools.Pki(os.path.join(folder, "pki"))
    good = stow_peer.tls_context(pki.peer, pki.peer_key, pki.trusted)
    secret = os.path.join(folder, "secret")
    h.write_file(secret, "the.token\n")
    os.chmod(secret, 0o600)
    peer = StowPeer(tls=good)
    things.append(peer)
    asked = []

    def say(uid, data, headers):
        asked.append(headers["Authorization"])
        return stored(uid) if headers["Authorization"] == "Bearer the.token" else (401, {}, b"")
    peer.say = say
    node = start(folder, things, peer.url("localhost"),
                 f'authorities = "{pki.trusted}"; certificate = "{pki.node}"; key = "{pki.key}"; '
                 f'credentials = "{secret}";')
    h.send_lines(node, 1, 3)
    job = node.wait_state(0, "reconstructed")

    def refused(context, sentence, server=None):
        if context:
            peer.tls = context
            peer.start()
        p = node.command("test-peer", "web", code=7)
        peer.stop()
        if server:
            server.shutdown(socket.SHUT_RDWR)  # ends its accept(), too
            server.close()
        check(sentence in p.stderr and f"https://localhost:{peer.port}: " in p.stderr, f"{sentence}: {p.stderr}")
    key = pki.peer_key
    refused(stow_peer.tls_context(pki.unknown(), key),
            "TLS handshake: SSL certificate problem: unable to get local issuer certificate")
    refused(stow_peer.tls_context(pki.expired(), key),
            "TLS handshake: SSL certificate problem: certificate has expired")
    refused(stow_peer.tls_context(pki.elsewhere(), key),
            "no alternative certificate subject name matches target host name 'localhost'")
    # the alert, or that the connection ended
    refused(stow_peer.tls_context(pki.peer, key, pki.foreign.certificate), ": ")
    refused(None, "TLS handshake: ", one_bad_connection(peer.port))
    check(not peer.order and not asked, "nobody got an object or the token")
    peer.tls = None
    peer.start()
    wait_for("an alarm", lambda: "delivery-alarm" in node.log_text())
    refused(None, "wrong version number")
    peer.tls = good
    h.write_file(secret, "another\n")
    peer.start()
    wait_for("401", lambda: "Bearer another" in asked)
    h.write_file(secret, "the.token\n")
    job = node.wait_state(0, "delivered")
    exactly(peer, [job])
    os.chmod(secret, 0o644)
    p = node.command("check", code=3)
    check("destination 'web': credentials file" in p.stderr and "other users of this machine can read it" in p.stderr,
          p.stderr)
    os.remove(secret)
    check("cannot open" in node.command("check", code=3).stderr, "a missing file is named")


def deliver_all(node, seeds, each, trouble, seconds):
    """Cases while trouble() goes on, then without it; the delivered jobs."""
    ended = threading.Event()
    t = threading.Thread(target=trouble, args=(ended,), daemon=True)
    t.start()
    for seed in seeds:
        h.send_lines(node, seed, each)
    t.join(seconds)
    ended.set()
    t.join()

    def done():
        jobs = node.jobs()
        for j in jobs:
            if j["state"] == "dead-letter":
                node.command("retry", j["id"])
        return len(jobs) == 10 and all(j["state"] == "delivered" for j in jobs) and jobs
    return wait_for("all are delivered", done, 300, 0.3)


@pytest.mark.tier2("random answers and kills")
def test_hostile(folder, things):
    """A server that is killed, slow, full, loses answers, asks for credentials and refuses single instances; and a node
    that is killed amid it."""
    rng = random.Random(h.seed())
    peer = StowPeer()
    things.append(peer)
    calm = threading.Event()

    def say(uid, data, headers):
        dice = 1 if calm.is_set() else rng.random()
        if dice < 0.02:
            return rng.choice([(500, {}, b""), (507, {}, b""), (503, {"Retry-After": "1"}, b""), (401, {}, b""),
                               failed(uid, 0xA700)])
        if dice < 0.03:
            return failed(uid, 0xA900)
        if dice < 0.05:
            peer.keep(uid, data)
            raise Lose
        if dice < 0.06:
            raise Lose
        if dice < 0.08:
            time.sleep(0.2)
        return stored(uid)
    peer.say = say
    peer.start()
    each = OBJECTS // 10
    node = start(folder, things, peer.url(), "associations = 2;")
    kills = []

    def trouble(ended):
        for part in (0.2, 0.4, 0.6, 0.8):
            wait_for("objects come", lambda p=part: len(peer.held) >= OBJECTS * p or ended.is_set(), 120, 0.005)
            peer.stop()
            kills.append(len(peer.held))
            wait_for("a delivery meets no server", lambda k=len(kills): node.log_text().count("connecting: ") >= k
                     or ended.is_set())
            peer.start()
    for seed in range(1, 6):
        h.send_lines(node, seed, each)
    wait_for("objects come", lambda: len(peer.held) > OBJECTS // 20, 60, 0.005)
    node.kill()
    node.start()
    jobs = deliver_all(node, range(6, 11), each, trouble, 300)
    calm.set()
    exactly(peer, jobs)
    check(len(peer.held) == 10 * each and len(kills) >= 3, f"{len(peer.held)} objects, killed after {kills}")
    print(f"        {len(peer.held)} objects in {len(peer.order)} requests, the server killed after {kills}",
          flush=True)


@pytest.mark.tier2("Orthanc's plug-in beside our own server")
def test_orthanc(folder, things):
    """Orthanc's DICOMweb plug-in, killed amid the deliveries: it holds each object once."""
    if not os.path.exists(PLUGIN):
        h.skip("Orthanc's DICOMweb plug-in (Debian: orthanc-dicomweb) is not installed")
    pacs = h.Orthanc(os.path.join(folder, "orthanc"), plugins=[PLUGIN])
    things.append(pacs)
    pacs.start()
    node = start(folder, things, f"http://127.0.0.1:{pacs.http}/dicom-web", "associations = 2;")
    kills = []

    def count():
        return (pacs.get("/statistics") or {}).get("CountInstances", 0)

    def trouble(ended):
        for part in (0.2, 0.5, 0.8):
            wait_for("objects come", lambda p=part: count() >= OBJECTS * p or ended.is_set(), 120, 0.02)
            kills.append(count())
            met = node.log_text().count("connecting: ")
            pacs.stop()
            try:
                wait_for("a delivery meets no server", lambda n=met: node.log_text().count("connecting: ") > n
                         or ended.is_set()
                         or all(s == "delivered" for s in node.states()))
            finally:
                pacs.start()
    each = OBJECTS // 10
    jobs = deliver_all(node, range(1, 11), each, trouble, 300)
    wanted = {u for j in jobs for u in uids(j)}
    held = [i["MainDicomTags"]["SOPInstanceUID"] for i in pacs.get("/instances?expand&limit=5000&since=0")]
    check(len(held) == len(set(held)) == 10 * each and set(held) == wanted,
          f"{len(held)} objects, {len(set(held))} of them different, wanted {len(wanted)}")
    failures = sum(len(node.events(j["id"], "send-failed")) for j in jobs)
    check(failures >= 1, "a delivery met Orthanc while it was down")
    print(f"        {len(held)} objects, Orthanc killed after {kills}, {failures} failed attempts", flush=True)
    check("STOW-RS      ok" in node.command("test-peer", "web").stdout and count() == 10 * each + 1,
          "test-peer stores an object")


@pytest.mark.tier2("Orthanc's plug-in beside our own server")
def test_orthanc_full(folder, things):
    """Orthanc on a disk that is full: it answers 200 and names no instance. When there is space again it gets each
    object, once."""
    if not os.path.exists(PLUGIN):
        h.skip("Orthanc's DICOMweb plug-in (Debian: orthanc-dicomweb) is not installed")
    each = OBJECTS // 10
    with contract_tools.small_disk(os.path.join(folder, "orthanc"), "256m") as mount:
        pacs = h.Orthanc(mount, plugins=[PLUGIN])
        try:
            pacs.start()
            contract_tools.fill(mount, 8192 * 3 * each)  # the first cases have room
            node = start(folder, things, f"http://127.0.0.1:{pacs.http}/dicom-web")
            for seed in range(1, 11):
                h.send_lines(node, seed, each)
            failures = lambda: [e["reason"] for j in node.jobs() for e in node.events(j["id"], "send-failed")
                                + node.events(j["id"], "send-refused")]
            wait_for("no room", lambda: len(failures()) >= 5)
            contract_tools.fill(mount, None)
            jobs = wait_for("all are delivered", lambda: (lambda j: len(j) == 10
                                                          and all(i["state"] == "delivered" for i in j)
                                                          and j)(node.jobs()), 120)
            held = [i["MainDicomTags"]["SOPInstanceUID"] for i in pacs.get("/instances?expand&limit=5000&since=0")]
            check(len(held) == len(set(held)) == 10 * each and set(held) == {u for j in jobs for u in uids(j)},
                  f"{len(held)} objects, {len(set(held))} of them different")
            check(all("does not name the instance" in f for f in failures()), failures())
            print(f"        {len(held)} objects, {len(failures())} failed attempts", flush=True)
        finally:
            for thing in things:
                thing.end()
            pacs.stop()
