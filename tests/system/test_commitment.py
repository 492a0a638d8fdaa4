# SPDX-License-Identifier: Apache-2.0
"""Storage commitment: asked for, reported on the same association or another one, refused, never reported, late, twice,
and with the node killed in between; with an archive of our own that does what the test says, and with Orthanc."""
import os
import sqlite3

import pytest

from tools import node_harness as h
from tools.commit_peer import ACTION_RQ, Partner, report
from tools.dicom_peer import Gone

h.need("storescu", "echoscu")


def node_with(folder, things, partner, start=True, **destination):
    node = h.Node(folder, partner.port)
    things += [node, partner]
    partner.node_port = node.port
    node.destination.update({"commitment": "true", "commitment_wait": 20, "commitment_timeout": 60,
                             "commitment_attempts": 2,
                             "retry_first": 0.2, "retry_cap": 1.0, **destination})
    node.write_conf()
    if start:
        node.start()
    return node


def send_exam(node, folder, name):
    """An exam of its own for each name that a node sees."""
    seed = {"new": 2, "fails": 3}.get(name, 1)
    h.send(node.port, h.simulate(os.path.join(folder, name), "--views", 5, "--seed", seed))


def test_reports(folder, things):
    """On the same association; on one of the archive's; twice; of a transaction that nobody knows; failures, then
    not."""
    partner = Partner()
    node = node_with(folder, things, partner)

    send_exam(node, folder, "same")
    job = node.wait_state(0, "delivered")
    events = node.events(job["id"])
    h.check([e for e in events if e.startswith("commit") or e in ("sent", "delivered")] in
            (["sent", "commit-requested", "commit-accepted", "committed", "delivered"],), events)
    there = job["destinations"][0]
    h.check((there["state"], there["status"]) == ("committed", "0000"), there)
    h.check("pacs: committed" in node.command("list").stdout
            and "destination pacs: committed" in node.command("show", job["id"]).stdout, "people are told")
    h.wait_for("the report is answered", lambda: partner.answers == [0])
    uid = job["result"]["sop_instance"]
    h.check(partner.requests[0][1] == [uid], "the request names the object that was stored")
    h.check("commit" in [s["stage"] for s in node.show(job["id"])["stages"]], "show says how long the commitment took")

    partner.how = "new"
    send_exam(node, folder, "new")
    node.wait_state(1, "delivered")
    h.wait_for("the report on an association of its own is answered", lambda: len(partner.answers) == 2)
    h.check(partner.answers == [0, 0], f"{partner.answers}")

    before = node.events(job["id"])
    transaction, verdicts = partner.requests[0][0], partner.verdicts(0)
    h.check(report(node.port, transaction, verdicts) == 0, "the same report again is a success")
    h.check(report(node.port, transaction, {uid: 0x0112}) == 0,
            "a failure of a transaction that is closed says nothing")
    h.check(node.events(job["id"]) == before, "and nothing is written")
    h.check(report(node.port, "2.25.4711", verdicts) == 0x0115, "a transaction that nobody knows")
    h.check("commitment-unknown" in node.log_text(), "it is logged")
    h.check(report(node.port, transaction, verdicts, event=9) == 0x0113, "no such event type")
    h.check(report(node.port, transaction, verdicts, raw=b"\x08\0\x95\x11\xff\xff\0\0abcd") == 0x0115, "no data set")
    h.check(node.echo(), "the node lives")

    # a failure: sent again, asked again, committed then
    failures = [0x0112]
    partner.verdict = lambda u: failures.pop() if failures else 0
    partner.how = "same"
    send_exam(node, folder, "fails")
    job = node.wait_state(2, "delivered")
    events = [e for e in node.events(job["id"]) if e.startswith("commit") or e == "sent"]
    h.check(events == ["sent", "commit-requested", "commit-accepted", "commit-failed", "sent", "commit-requested",
                       "commit-accepted", "committed"], events)
    h.check(len(partner.held[job["result"]["sop_instance"]]) == 2, "the object was sent twice")
    failed = next(e for e in node.show(job["id"])["events"] if e["event"] == "commit-failed")
    h.check("0112" in failed["detail"]["reason"] and "no such object" in failed["detail"]["reason"], failed)
    h.check(len({t for t, _ in partner.requests}) == len(partner.requests), "each request has a transaction of its own")


def test_never_and_late(folder, things):
    """No report: sent and asked for again, then an alarm; what is stored only is not delivered; a late report still
    counts."""
    partner = Partner()
    partner.how = None
    quiet = 8.0 * h.PATIENCE
    node = node_with(folder, things, partner, commitment_wait=1, commitment_timeout=quiet)
    send_exam(node, folder, "exam")
    job = node.wait_state(0, "stored")
    h.wait_for("list says what is awaited", lambda: "storage commitment pending" in node.command("list").stdout)
    job = node.wait_state(0, "dead-letter")
    h.check("2 requests" in job["reason"] and f"no report within {quiet:g} s" in job["reason"], job["reason"])
    h.check(len(partner.requests) == 2 and len(partner.held[job["result"]["sop_instance"]]) == 2,
            "sent and asked for again")
    h.wait_for("the alarm is in the log", lambda: all(what in node.log_text()
                                                      for what in (" alert ", "job-dead-letter", "job-commit-refused")))
    h.check("dead-letter" in node.command("list").stdout, "and in the list")

    node.kill()
    node.start()
    stranger = report(node.port, partner.requests[0][0], partner.verdicts(0), calling="MODALITY")
    h.check(stranger == 0x0110 and "commitment-wrong-peer" in node.log_text(),
            "another AE title cannot commit for the archive")
    h.check(node.states() == ["dead-letter"], "and changes nothing")
    h.check(report(node.port, partner.requests[0][0], partner.verdicts(0)) == 0,
            "a late report, of the first request, after a restart")
    node.wait_state(0, "delivered")
    h.check(report(node.port, partner.requests[0][0], partner.verdicts(0)) == 0, "and once more")
    h.check(node.states() == ["delivered"], "nothing changes")


def test_chatter(folder, things):
    """An archive that sends reports without end, and no answer: the request has its time, whatever comes before the
    answer."""
    partner = Partner()
    partner.how = "chatter"
    node = node_with(folder, things, partner, dimse_timeout=2 * h.PATIENCE)
    send_exam(node, folder, "exam")
    h.wait_for("the node gives the request up", lambda: node.jobs()
               and "commit-request-failed" in node.events(node.jobs()[0]["id"]))
    lost = next(e for e in node.show(node.jobs()[0]["id"])["events"] if e["event"] == "commit-request-failed")
    h.check("no response to the request" in lost["detail"]["reason"], lost)
    h.check(partner.chattered > 1, f"{partner.chattered} reports came in between")
    partner.how = "same"
    node.wait_state(0, "delivered")


def test_answer_to_another_request(folder, things):
    """A response to the N-ACTION with another Message ID is not counted: the request is repeated."""
    partner = Partner()
    partner.more = lambda command: {0x0120: 7777} if command[0x0100] == ACTION_RQ and len(partner.requests) == 1 else {}
    node = node_with(folder, things, partner)
    send_exam(node, folder, "exam")
    job = node.wait_state(0, "delivered")
    events = [e for e in node.show(job["id"])["events"] if e["event"].startswith("commit")]
    h.check([e["event"] for e in events] == ["commit-requested", "commit-request-failed", "commit-requested",
                                             "commit-accepted", "committed"], events)
    h.check("of N-ACTION with Message ID 7777" in events[1]["detail"]["reason"], events[1])


def test_killed_between(folder, things):
    """kill -9 with the request under way, and after it was taken: one answer for each exam, whichever transaction it is
    of."""
    partner = Partner()
    partner.how = None
    node = node_with(folder, things, partner, commitment_wait=1, commitment_attempts=3)
    partner.gate.clear()
    send_exam(node, folder, "asked")
    h.wait_for("the request is out", lambda: len(partner.requests) == 1)
    h.check("commit-requested" in node.events(node.jobs()[0]["id"]),
            "the transaction is on record before the request goes out")
    node.kill()
    partner.gate.set()
    node.start()
    h.wait_for("it is asked for again at once", lambda: len(partner.requests) == 2)
    h.check(partner.requests[0][0] != partner.requests[1][0], "under another transaction")
    h.wait_for("it is taken", lambda: "commit-accepted" in node.events(node.jobs()[0]["id"]))
    node.kill()
    ready = node.log_text().count(" device-ready ")
    node.start()
    h.wait_for("a worker, which starts after what is due", lambda: node.log_text().count(" device-ready ") > ready)
    h.check(len(partner.requests) == 2, "what was taken is not asked for again")
    h.check(node.states() == ["stored"], f"{node.states()}")
    h.check(report(node.port, partner.requests[0][0], partner.verdicts(0)) == 0,
            "a report on the first transaction is believed")
    job = node.wait_state(0, "delivered")
    h.check(len(partner.held[job["result"]["sop_instance"]]) == 1, "nothing was sent twice")


def test_partners(folder, things):
    """One that does no commitment; one that is down; a peer that is not admitted; `commitment` switched off."""
    partner = Partner()
    partner.how, partner.status = None, 0x0211
    node = node_with(folder, things, partner, start=False, commitment_wait=1, alarm_after=1)
    node.node["require_known_peer"] = "true"
    node.write_conf('peers = ( { name = "mod"; aet = "MODALITY"; }, { name = "echo"; aet = "ECHOSCU"; } );\n')
    said = h.run(h.TOMONODE, "check", "-c", node.conf)
    h.check("will be rejected" in said.stderr, "check warns of a partner that is not among the peers")
    h.check(f" port {partner.port}, storage commitment\n" in said.stdout, said.stdout)
    node.start()
    send_exam(node, folder, "unknown")
    job = node.wait_state(0, "dead-letter")
    h.check("does not know N-ACTION" in job["reason"], job["reason"])
    try:
        h.check(report(node.port, partner.requests[0][0], partner.verdicts(0)) is None,
                "the report of a stranger was taken")
    except Gone as e:
        h.check("rejected" in str(e), str(e))

    # the partner's own place is down: tried again, with an alarm; then nobody asks any more
    node.destination["commitment_port"] = h.free_port()
    node.reload()
    node.command("retry", job["id"])
    job = h.wait_for("an alarm", lambda: (lambda j: j["destinations"][0]["alarm"] and j)(node.jobs()[0]))
    h.check("commit-request-failed" in node.events(job["id"]) and job["state"] == "stored", job["state"])
    h.check("delivery-alarm" in node.log_text() and "ALARM" in node.command("list").stdout, "log and list show it")
    node.destination["commitment"] = "false"
    node.reload()
    node.wait_state(0, "delivered")


@pytest.mark.tier2("a second archive beside our own")
def test_orthanc(folder, things):
    """A real archive as the partner."""
    h.need("Orthanc")
    node = h.Node(folder, 0)
    pacs = h.Orthanc(os.path.join(folder, "orthanc"), tomonode=node.port)
    node.pacs_port = pacs.port
    things += [node, pacs]
    pacs.start()
    node.destination.update({"commitment": "true", "commitment_wait": 1, "commitment_timeout": 20})
    node.write_conf()
    node.start()
    send_exam(node, folder, "exam")
    job = node.wait_state(0, "delivered")
    events = node.events(job["id"])
    h.check("commit-requested" in events and "committed" in events, events)
    committed = next(e for e in node.show(job["id"])["events"] if e["event"] == "committed")
    h.check(committed["detail"]["calling"] == "PACS", committed)
    with sqlite3.connect(f"file:{node.spool}/journal.db?mode=ro", uri=True) as db:
        h.check(db.execute("SELECT count(*) FROM event WHERE name='commit-requested'").fetchone()[0] == 1,
                "one request was enough")
