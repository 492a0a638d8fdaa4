# SPDX-License-Identifier: Apache-2.0
"""Deliveries against an archive that does what the test says: every class of refusal, slow, closing within an object,
storing and then losing the answer; several destinations, several associations, a fallback, order within a case,
priority, an association that is rejected for good."""
import json
import os
import signal
import threading

from tools import node_harness as h
from tools.dicom_peer import SUCCESS, Answering, Archive, Gone, Object, pdu, store_all

h.need("storescu", "echoscu")


def destination(name, port, **more):
    keys = {"retry_first": 0.2, "retry_cap": 1.0, "connect_timeout": 30, "acse_timeout": 30, "dimse_timeout": 60,
            **more}
    words = "".join(f" {k} = {v};" for k, v in keys.items())
    return f'{{ name = "{name}"; aet = "{name.upper()}"; host = "127.0.0.1"; port = {port};{words} }}'


def start(folder, things, destinations, route, more=""):
    """A node with these destinations, and the names of the route's; more: of its settings."""
    node = h.Node(folder, 1)
    things.append(node)
    names = ", ".join(f'"{n}"' for n in route)
    with open(node.conf, "w", encoding="utf-8") as f:
        f.write(f'node = {{ port = {node.port}; spool = "{node.spool}"; log_level = "debug"; quiet_time = 600.0; '
                'reserve = "1 MB"; '
                f'device = "cpu"; {more} {h.as_whom()} }};\nstatus = {{ enabled = false; }};\n'
                f'destinations = ( {", ".join(destinations)} );\n'
                'protocols = ( { name = "quick"; algorithm = "osem"; iterations = 1; voxel = 0.0; slice_spacing = 5.0; '
                'slab_thickness = 10.0; synthetic = true; } );\n'
                f'routes = ( {{ name = "dbt"; protocols = [ "quick" ]; destinations = [ {names} ]; }} );\n')
    node.start()
    return node


def archive(things, answer=None):
    a = Archive()
    a.order = []  # UIDs as they came
    a.say = answer or (lambda uid, data: SUCCESS)
    a.answer = lambda uid, data: (a.order.append(uid), a.say(uid, data))[1]
    things.append(a)
    return a


def send_exam(node, folder, seed):
    store_all(node.port, [Object(f) for f in h.simulate(os.path.join(folder, f"exam{seed}"), "--views", 5, "--seed",
                                                        seed)])


def test_statuses(folder, things):
    """A class of statuses each time: what may pass is tried again until it does, what will not is a dead letter,
    warnings are stored."""
    said = []
    a = archive(things, lambda uid, data: said.pop(0) if said else SUCCESS)
    node = start(folder, things, [destination("pacs", a.port, retry_first=0.1, retry_cap=0.3)], ["pacs"])
    for at, (first, state) in enumerate([([0xA700, 0x0110, 0xFE00, 0xB000, 0xB007, 0x0111], "delivered"),
                                         ([0xA900, 0x0213, 0x0122, 0xC001], "dead-letter")]):
        said[:] = first
        send_exam(node, folder, at + 1)
        job = node.wait_state(at, state)
        count = {k: len(node.events(job["id"], k)) for k in ("sent", "send-failed", "send-refused")}
        refused = [s for s in first if s >> 8 == 0xA9 or s >> 12 == 0xC or s == 0x0122]
        transient = [s for s in first if s in (0xA700, 0x0110, 0x0213, 0xFE00)]
        h.check(count == {"sent": 3 - len(refused), "send-failed": len(transient), "send-refused": len(refused)},
                f"{first}: {count}")
        h.check(all(f"{s:04X}" in [e["status"] for e in node.events(job["id"], "send-refused")] for s in refused),
                "the status is on record")
    node.command("retry", job["id"])  # now it takes what it refused
    node.wait_state(1, "delivered")
    h.check(all(len(a.held[o["sop_instance"]]) == 1 for o in job["result"]["objects"]), "each object is there once")


def test_sentences(folder, things):
    """What the archive adds to its status is shown; a response with another Message ID is called so, and is not
    counted."""
    a = archive(things, lambda uid, data: 0xA900)
    a.more = lambda command: {0x0902: b"volume 7 is\nfull"}
    node = start(folder, things, [destination("pacs", a.port, retry_first=0.1, retry_cap=0.3)], ["pacs"])
    send_exam(node, folder, 1)
    job = node.wait_state(0, "dead-letter")
    h.check("the data set does not match its class; its comment: \"volume 7 is?full\"" in json.dumps(job).replace('\\"',
                                                                                                                  '"'),
            job)
    a.answer = lambda uid, data: SUCCESS
    wrong = [7777]
    a.more = lambda command: {0x0120: wrong.pop()} if wrong else {}
    node.command("retry", job["id"])
    node.wait_state(0, "delivered")
    reason = node.events(job["id"], "send-failed")[0]["reason"]
    h.check("responded to the C-STORE with Message ID 7777, but the one that was sent has Message ID" in reason, reason)
    a.more = lambda command: {0x0120: 7777}
    p = node.command("test-peer", "pacs", code=7)
    h.check("C-ECHO" in p.stdout + p.stderr, p.stdout + p.stderr)


def test_bad_lines(folder, things):
    """Closing within the second object; storing it and losing the answer; slower than the timeout: what is there is not
    sent again."""
    a = archive(things)
    node = start(folder, things, [destination("pacs", a.port, dimse_timeout=6)], ["pacs"])
    cuts = []

    def cut(n):
        if len(a.order) == 1 and n > 20000 and not cuts:
            cuts.append(n)
            raise Gone("cut by the test")
    a.on_data = cut
    send_exam(node, folder, 1)
    job = node.wait_state(0, "delivered")
    h.check(cuts and len(node.events(job["id"], "send-failed")) == 1, "one attempt was cut")
    h.check(len(a.order) == 3 and len(set(a.order)) == 3, f"the first object was not sent again: {a.order}")

    a.order.clear()
    a.on_data = None
    lost = []

    def lose(uid, data):
        if len(a.order) == 2 and not lost:
            lost.append(uid)
            a.held.setdefault(uid, []).append("stored, and not said")
            return None
        return SUCCESS
    a.say = lose
    send_exam(node, folder, 2)
    node.wait_state(1, "delivered")
    h.check(a.order.count(lost[0]) == 2 and len(a.order) == 4,
            "the one whose answer was lost is sent again, under the same UID, and no other")

    slow, given_up = [], threading.Event()

    def answer_late(uid, data):
        if not slow:
            slow.append(uid)
            given_up.wait(100)
        return SUCCESS
    a.order.clear()
    a.say = answer_late
    send_exam(node, folder, 3)
    job = node.wait_state(2, "reconstructed")
    reason = h.wait_for("the timeout", lambda: node.events(job["id"], "send-failed"))[0]["reason"]
    h.check("6 s" in reason or "in time" in reason, reason)
    given_up.set()
    node.wait_state(2, "delivered")


def test_stopped(folder, things):
    """A delivery is stopped amid an object, and nobody lets it go on: it is killed, and what it had not sent is
    sent."""
    a = archive(things)
    node = start(folder, things, [destination("pacs", a.port, connect_timeout=1, acse_timeout=1, dimse_timeout=1)],
                 ["pacs"], "worker_timeout = 4;")
    pids = []

    def stop(n):
        if n > 20000 and not pids:
            pids.extend(node.processes("deliver"))
            os.kill(pids[0], signal.SIGSTOP)
    a.on_data = stop
    send_exam(node, folder, 1)
    job = node.wait_state(0, "delivered")
    h.check(pids and f"process-stuck role=deliver pid={pids[0]} job=1" in node.log_text(), "the log says it")
    h.check(any("no progress" in e["reason"] for e in node.events(job["id"], "send-failed")), "so does the record")
    h.check(len(set(a.order)) == 3, "all of it is there")


def test_fallback(folder, things):
    """Two destinations, one of them refuses and one is down: their fallbacks get all of it, the dead letter stays
    empty."""
    a, b, c = archive(things, lambda uid, data: 0xA900), archive(things), archive(things)
    node = start(folder, things, [destination("refuses", a.port, fallback='"b"'),
                                  destination("down", h.free_port(), fallback='"c"', fallback_after=1),
                                  destination("b", b.port), destination("c", c.port)], ["refuses", "down"])
    send_exam(node, folder, 1)
    job = node.wait_state(0, "delivered")
    uids = sorted(o["sop_instance"] for o in job["result"]["objects"])
    h.check(len(uids) == 3 and sorted(b.held) == uids and sorted(c.held) == uids,
            "both fallbacks have the whole result")
    h.check([d["state"] for d in job["destinations"]] == ["replaced", "replaced", "sent", "sent"], job["destinations"])
    reasons = [e["reason"] for e in node.events(job["id"], "fallback")]
    h.check(any("refused" in r for r in reasons) and any("has failed for" in r for r in reasons), reasons)


def test_several(folder, things):
    """associations = 3: after a first case has shown that the archive responds, three cases are sent at a time and
    never more, each object once; within the association of a case the order is kept."""
    together, now, most = threading.Barrier(3), [0], [0]

    def answer(uid, data):
        with a.lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
            number = len(a.order)
        if 3 < number <= 6:  # the first three answers after the first case
            together.wait(100)
        with a.lock:
            now[0] -= 1
        return SUCCESS
    a = archive(things, answer)
    node = start(folder, things, [destination("pacs", a.port, associations=3, dimse_timeout=150)], ["pacs"])
    send_exam(node, folder, 1)
    node.wait_state(0, "delivered")
    h.check(most[0] == 1, "one at a time at first")
    for seed in range(2, 7):
        send_exam(node, folder, seed)
    node.wait_states(*["delivered"] * 6, seconds=150)
    h.check(most[0] == 3, f"three at a time: {most}")
    h.check(len(a.order) == 18 and len(set(a.order)) == 18, f"each object was sent once: {a.order}")
    for job in node.jobs():
        uids = [o["sop_instance"] for o in job["result"]["objects"]]
        h.check([u for u in a.order if u in uids] == uids, "in order")
        h.check(not node.events(job["id"], "send-failed"), "without a failure")


def test_alarm_and_priority(folder, things):
    """Rejected for good: an alarm in the third attempt, one attempt a time for all cases, and it heals by itself; then
    the case that a person put first is the first to go."""
    r = Answering(pdu(3, bytes((0, 1, 1, 3))))  # A-ASSOCIATE-RJ, permanent: calling AE title not recognized
    things.append(r)
    node = start(folder, things, [destination("pacs", r.port, associations=3)], ["pacs"])
    for seed in (1, 2, 3):
        send_exam(node, folder, seed)
    jobs = [node.wait_state(i, "reconstructed") for i in range(3)]
    h.wait_for("an alarm", lambda: "delivery-alarm" in node.log_text())
    h.check(node.log_text().count("delivery-alarm") == 1, "once")
    h.check("ALARM pacs" in node.command("list").stdout and "AE title" in node.command("list").stdout, "list shows it")
    failed = [len(node.events(j["id"], "send-failed")) for j in jobs]
    h.check(failed[0] >= 3 and sum(failed[1:]) <= 2, f"the line waits behind one: {failed}")
    waiting = [d for j in node.jobs() for d in j["destinations"]]
    h.check(all("AE title" in d["reason"] + d.get("blocked_by", {}).get("reason", "") for d in waiting),
            f"each says why it waits: {waiting}")
    waits = [d["blocked_by"] for d in waiting if "blocked_by" in d]
    h.check(all(w["next"] > w["since"] > 0 for w in waits) and (waits or 0 not in failed), waiting)
    shown = node.command("show", jobs[2]["id"]).stdout
    h.check(failed[2] or ("not reached since" in shown and "next attempt" in shown), shown)
    node.command("priority", jobs[2]["id"], "high")
    h.wait_for("it is the one that is tried", lambda: len(node.events(jobs[2]["id"], "send-failed")) > failed[2])
    r.stop()
    h.wait_for("whoever was trying has ended", lambda: not node.processes("deliver"))
    order = []
    a = Archive(r.port, lambda uid, data: (order.append(uid), SUCCESS)[1])
    things.append(a)
    node.wait_states(*["delivered"] * 3)
    third = {o["sop_instance"] for o in node.jobs()[2]["result"]["objects"]}
    h.check(set(order[:3]) == third, "the case of the higher priority went first")
    h.check("delivery-recovered" in node.log_text(), "the end of the alarm is told")
    h.check(node.jobs()[2]["priority"] == "high" and not any(d["alarm"] for j in node.jobs()
                                                             for d in j["destinations"]), "list agrees")
    h.check("allowed: low, normal, high" in node.command("priority", jobs[0]["id"], "first", code=2).stderr,
            "another word is refused")
