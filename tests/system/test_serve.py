# SPDX-License-Identifier: Apache-2.0
"""The node as a whole: an exam goes in by storescu and comes out once at a storescp, whatever is late, missing,
doubled, down or refusing."""
import os
import shutil
import signal
import sqlite3
import subprocess

import pydicom

from tools import node_harness as h
from tools.edits import edited
from tools.journal_tools import damage
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")


def ready(n, count):
    """So many workers have been started and tested, restarts of the node included."""
    wait_for(f"{count} devices are ready", lambda: n.log_text().count(" device-ready ") >= count)


def exam(folder, *options):
    """Nine projections are enough for what is tested here."""
    return h.simulate(folder, "--views", 9, *options)


def test_arrives_exactly_once(folder, things):
    n, pacs, files = h.with_exam(folder, things, quiet_time=600)
    check(h.send(n.port, files) == set(files), "not every image was acknowledged")
    job, = n.wait_states("delivered")
    check(job["instances"] == len(files) == job["expected"], job)
    result = pacs.objects()
    check(list(result.values()) == [1], f"the PACS got {result}")
    check(list(result) == [job["result"]["sop_instance"]], "another object than the journal says")
    d = pydicom.dcmread(pacs.files()[0], stop_before_pixels=True)
    source = pydicom.dcmread(files[0], stop_before_pixels=True)
    check(d.SOPClassUID == "1.2.840.10008.5.1.4.1.1.13.1.3", d.SOPClassUID)
    check(d.StudyInstanceUID == source.StudyInstanceUID and d.SeriesInstanceUID != source.SeriesInstanceUID,
          "study and series")
    show = n.show(job["id"])
    check([e["event"] for e in show["events"] if e["event"] != "instance"] ==
          ["opened", "complete", "started", "reconstructed", "sent", "delivered"], show["events"])
    check(len(show["instances"]) == len(files), "instances in show")
    names = [s["stage"] for s in show["stages"]]
    check(names == ["receive", "assemble", "wait", "check", "open", "read", "prepare", "upload", "reconstruct",
                    "download",
                    "write", "process", "send"], names)
    total = sum(s["seconds"] for s in show["stages"][1:])  # `process` is what no other stage has
    whole = show["events"][-1]["time"] - show["job"]["last_received"]
    check(all(s["seconds"] >= 0 for s in show["stages"]) and abs(total - whole) < 0.02,
          f"stages add up to {total}, not {whole}")
    people = n.command("show", str(job["id"])).stdout
    study = str(source.StudyInstanceUID)
    check("Time of each stage" in people and f"Study Instance UID {study}\n" in people, "show for people")
    check(show["job"]["study"] == study, f"the study is {study}: {show['job']}")
    check("delivered" in n.command("list").stdout and not show["job"]["hint"] and not show["commands"], "list for people")
    # The same images once more: success, and nothing happens. What comes after them has been looked at, so they have
    # been, too.
    check(h.send(n.port, files) == set(files), "a re-send was not acknowledged")
    h.send(n.port, [edited(files[0], os.path.join(folder, "other.dcm"), InstanceNumber=4711)])
    wait_for("other bytes after them are set apart", lambda: n.list()["unassigned"])
    check(n.states() == ["delivered"] and len(n.stored_files()) == len(files) + 1, "a re-send did something")
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    # After a restart everything is as before, and nothing is sent again: what is due is begun before a worker is ready.
    n.start()
    ready(n, 2)
    check(n.states() == ["delivered"] and n.stop() == 0, "after a restart")
    check(list(pacs.objects().values()) == [1] and n.log_text().count("job-started") == 1, "done again after a restart")


def test_parallel_associations_in_any_order(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    left = exam(os.path.join(folder, "l"), "--side", "L", "--seed", "1")
    right = exam(os.path.join(folder, "r"), "--side", "R", "--seed", "2")
    pacs.start()
    n.start()
    mixed = [f for pair in zip(left[::-1], right) for f in pair]
    senders = [subprocess.Popen(["storescu", "-aec", "TOMONODE", "127.0.0.1", str(n.port), *mixed[i::4]])
               for i in range(4)]
    check([s.wait(60) for s in senders] == [0] * 4, "a sender failed")
    n.wait_states("delivered", "delivered")
    check(sorted(pacs.objects().values()) == [1, 1], pacs.objects())


def test_taken_as_it_is(folder, things):
    n, pacs, files = h.with_exam(folder, things)
    h.send(n.port, files[1:])
    job = n.wait_state(0, "held", f"{len(files) - 1} of {len(files)}")
    people = n.command("show", str(job["id"])).stdout  # what to do, in words and as a command
    check(job["hint"] and f"  {job['hint']}\n    tomonode retry --as-is {job['id']}\n" in people, people)
    before = n.events(job["id"]).count("held")
    n.command("retry", str(job["id"]))
    wait_for("held again", lambda: n.events(job["id"]).count("held") > before)
    n.command("cancel", str(job["id"]))
    n.wait_states("cancelled")
    n.command("cancel", str(job["id"]), code=1)
    n.command("retry", "4711", code=8)
    # A person wants what is there: it is reconstructed, and says of how many projections.
    n.command("retry", "--as-is", str(job["id"]))
    n.wait_states("delivered")
    d = pydicom.dcmread(pacs.files()[0], stop_before_pixels=True)
    check(d.SeriesDescription.startswith(f"{len(files) - 1} of {len(files)} projections: "), d.SeriesDescription)
    check(f"of {len(files) - 1} of {len(files)} announced projections" in str(d), "the derivation")
    # The last one comes after all: a revision of the whole, which is another object.
    h.send(n.port, files[:1])
    n.wait_states("delivered", "delivered")
    whole, = [d for d in (pydicom.dcmread(f, stop_before_pixels=True) for f in pacs.files())
              if "projections:" not in d.SeriesDescription]
    check(whole.SOPInstanceUID != d.SOPInstanceUID, "the same UID for another content")


def test_what_comes_late_or_does_not_belong(folder, things):
    """An incomplete exam is held until the rest comes. Other bytes under the UID of an image, and what is no exam, are
    kept apart. One image more than announced is a revision."""
    n, pacs, files = h.with_exam(folder, things)
    h.send(n.port, files[1:])
    n.wait_state(0, "held", f"{len(files) - 1} of {len(files)}")
    check("job-held" in n.log_text(), "no alarm in the log")
    check(pacs.files() == [], "an incomplete exam was reconstructed")
    ct = edited(files[0], os.path.join(folder, "ct.dcm"), SOPClassUID="1.2.840.10008.5.1.4.1.1.2",
                        SOPInstanceUID="2.25.7654321", Modality="CT")
    h.send(n.port, [edited(files[1], os.path.join(folder, "other.dcm"), InstanceNumber=4711), ct])
    apart = wait_for("both are set apart", lambda: (lambda u: u if len(u) == 2 else None)(n.list()["unassigned"]))
    apart = {u["classification"]: u["reason"] for u in apart}
    check("UID" in apart.pop("conflict") and "instance-conflict" in n.log_text(), apart)
    (kind, reason), = apart.items()
    check(kind in ("ignored", "refused") and reason, apart)
    told = n.command("list").stdout
    check(reason in told and ("Nothing has to be done" in told or "let the sender send" in told), told)
    h.send(n.port, files[:1])
    n.wait_states("delivered")
    check(list(pacs.objects().values()) == [1], pacs.objects())
    check(len(n.stored_files()) == len(files) + 2, "what does not belong was thrown away")
    h.send(n.port, [edited(files[3], os.path.join(folder, "extra.dcm"), SOPInstanceUID="2.25.1234567")])
    second = n.wait_state(1, "held", f"expect {len(files)}")
    check(second["revision_of"] == n.jobs()[0]["id"] and second["revision"] == 2, second)
    check(second["instances"] == len(files) + 1, second)
    check(list(pacs.objects().values()) == [1], pacs.objects())


def test_no_profile_is_held(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    files = exam(os.path.join(folder, "exam"))
    n.start()
    strange = [edited(f, os.path.join(folder, os.path.basename(f)), Manufacturer="NOBODY",
                              ManufacturerModelName="Nothing")
               for f in files]
    h.send(n.port, strange)
    job, = n.wait_states("held")
    check("profile" in job["reason"], job["reason"])


def test_pacs_down_then_up(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    files = exam(os.path.join(folder, "exam"))
    n.start()
    h.send(n.port, files)
    job = wait_for("three failures", lambda: [j for j in n.jobs() if j["destinations"]
                                              and j["destinations"][0]["failures"] >= 3])[0]
    check(job["state"] == "reconstructed" and job["destinations"][0]["reason"], job)
    # It goes on after a restart of the node, too.
    check(n.stop() == 0, "SIGTERM")
    n.start()
    pacs.start()
    n.wait_states("delivered")
    check(list(pacs.objects().values()) == [1], pacs.objects())


def test_refused_is_a_dead_letter(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    files = exam(os.path.join(folder, "exam"))
    profile = os.path.join(folder, "verification-only.cfg")
    with open(profile, "w") as f:
        f.write("[[TransferSyntaxes]]\n[T]\nTransferSyntax1 = LittleEndianImplicit\n[[PresentationContexts]]\n[P]\n"
                "PresentationContext1 = VerificationSOPClass\\T\n[[Profiles]]\n[Default]\nPresentationContexts = P\n")
    pacs.start("-xf", profile, "Default")
    n.destination.update(retry_first=0.1, retry_cap=0.1)
    n.write_conf()
    n.start()
    h.send(n.port, files)
    job, = n.wait_states("dead-letter")
    check(job["destinations"][0]["state"] == "refused" and job["destinations"][0]["reason"], job)
    check("job-dead-letter" in n.log_text(), "no alarm in the log")
    pacs.stop()
    pacs.start()
    # A later exam is delivered, long after the dead letter would have been tried again.
    h.send(n.port, exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2"))
    n.wait_states("dead-letter", "delivered")
    check(len(pacs.files()) == 1, "a dead letter is not retried by itself")
    n.command("retry", str(job["id"]))
    n.wait_states("delivered", "delivered")
    check(list(pacs.objects().values()) == [1, 1], pacs.objects())


def test_limit_of_attempts(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.destination["retry_limit"] = 2
    n.write_conf()
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam")))
    job, = n.wait_states("dead-letter")
    check("given up after 2 attempts" in job["destinations"][0]["reason"], job)


def test_missing_spool_file_holds_its_job(folder, things):
    n, pacs, files = h.with_exam(folder, things)
    h.send(n.port, files[:-1])
    n.wait_states("held")
    n.stop()
    os.unlink(os.path.join(n.spool, "instances", n.stored_files()[2]))
    n.start()
    h.send(n.port, files[-1:])
    wait_for("held by the worker", lambda: [j for j in n.jobs() if j["state"] == "held" and "spool" in j["reason"]])
    # Another exam is not touched.
    h.send(n.port, exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2"))
    n.wait_states("held", "delivered")
    # Sending it again brings the lost image back, and the job goes on by itself.
    h.send(n.port, files)
    n.wait_states("delivered", "delivered")
    check(sorted(pacs.objects().values()) == [1, 1], pacs.objects())


def test_damaged_journal_row_quarantines_its_job(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam"))[:-1])
    n.wait_states("held")
    check(n.stop() == 0, "SIGTERM")
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("UPDATE event SET detail='{\"reason\": \"cut' WHERE name='held'")
    pacs.start()
    n.start()
    h.send(n.port, exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2"))
    first, second = n.wait_states("quarantined", "delivered")
    check("journal row" in first["reason"], first)
    check("job-quarantined" in n.log_text(), "not in the log")


def test_damaged_journal_page_stops_no_reception(folder, things):
    """No job can be trusted then, so none is handled and nothing is swept; it is said, and images are taken in all the
    same."""
    n, _ = h.node_and_pacs(folder, things)
    n.start()
    files = exam(os.path.join(folder, "exam"))
    h.send(n.port, files[:-1])
    n.wait_states("held")
    check(n.stop() == 0, "SIGTERM")
    damage(n.spool, "event")
    n.start()
    wait_for("the damage is in the log", lambda: "journal-damaged" in n.log_text() and "journal-error" in n.log_text())
    check(n.echo(), "no answer to C-ECHO")
    h.send(n.port, files[-1:])
    check(len(n.stored_files()) == len(files), f"{len(n.stored_files())} files of {len(files)}")
    check(n.command("list", code=None).returncode not in (0, 3), "a list from a damaged journal")
    check(n.stop() == 0, "SIGTERM")


def test_images_that_the_journal_does_not_know(folder, things):
    """Beside a journal that was lost, or an older one that was put back, images were acknowledged all the same: they
    are set aside with an alarm, are there after any number of starts, come back with their journal, and can be sent
    again."""
    n, pacs = h.node_and_pacs(folder, things)
    kept, files = os.path.join(folder, "kept"), exam(os.path.join(folder, "exam"))
    orphans = os.path.join(n.spool, "orphans")
    journal = lambda at: [os.path.join(at, f) for f in os.listdir(at) if f.startswith("journal.db")]

    def start_with(names):
        """The node with these files as its journal; answers what is in orphans/."""
        for path in journal(n.spool):
            os.unlink(path)
        for path in names:
            shutil.copy(path, n.spool)
        n.start()
        return sorted(os.listdir(orphans))

    os.mkdir(kept)
    os.mkdir(os.path.join(folder, "newer"))
    n.start()
    h.send(n.port, files[:2])
    n.wait_states("held")
    check(n.stop() == 0, "SIGTERM")
    for path in journal(n.spool):
        shutil.copy(path, kept)
    n.start()
    h.send(n.port, files[2:-1])
    wait_for("all images of the case", lambda: n.jobs() and n.jobs()[0]["instances"] == len(files) - 1)
    check(n.stop() == 0, "SIGTERM")
    check("orphans-found" not in n.log_text(), "said of a journal that knows them")
    all_names, newer = n.stored_files(), os.path.join(folder, "newer")
    for path in journal(n.spool):
        shutil.copy(path, newer)
    lost = len(files) - 3
    check(len(start_with(journal(kept))) == lost and len(n.stored_files()) == 2, "an older journal")
    check(f" alert serve[{n.process.pid}] orphans-found images={lost} " in n.log_text(), "no alarm")
    check(n.list()["orphans"] == lost, "not in list --json")
    text = n.command("list").stdout
    check(f"{lost} images are in {orphans} but" in text and "storescu" in text, text)
    check(n.stop() == 0, "SIGTERM")
    check(start_with(journal(newer)) == [] and n.stored_files() == all_names, "not put back")
    check(f"orphans-restored images={lost}" in n.log_text(), "not said")
    check(n.stop() == 0, "SIGTERM")
    check(start_with([]) == all_names and not n.stored_files(), "without a journal")
    check(n.stop() == 0, "SIGTERM")
    n.start()
    check(sorted(os.listdir(orphans)) == all_names, "gone at a second start")
    pacs.start()
    h.send(n.port, [os.path.join(orphans, f) for f in all_names] + files[-1:])
    n.wait_states("delivered")
    check(list(pacs.objects().values()) == [1], pacs.objects())
    check(n.stop() == 0, "SIGTERM")


def test_sigterm_while_working(folder, things):
    n, pacs, files = h.with_exam(folder, things)
    h.send(n.port, files)
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    check(not n.echo(), "it still answers")
    check("running" not in n.states(), n.states())
    n.start()
    n.wait_states("delivered")
    check(len(pacs.objects()) == 1, pacs.objects())


def test_running_association_may_finish(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    files = exam(os.path.join(folder, "exam"))
    n.start()
    sender = subprocess.Popen(["storescu", "-v", "-aec", "TOMONODE", "--repeat", "8", "127.0.0.1", str(n.port), *files],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for("the first image", lambda: n.stored_files())
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    text, _ = sender.communicate(timeout=60)
    done = h.acknowledged(text)
    check(done == set(files) and len(n.stored_files()) == len(done),
          f"{len(done)} acknowledged, {len(n.stored_files())} stored")


def test_sighup_reloads(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.start()
    port = n.port
    with open(n.conf, "a") as f:
        f.write("node_typo = 1;\n")
    part = os.path.join(n.spool, "node.conf.part")
    os.mkdir(part)  # the accepted text cannot be written again: what was written before stays in force
    n.process.send_signal(signal.SIGHUP)
    wait_for("the bad configuration is refused", lambda: "config-not-reloaded" in n.log_text())
    check("node_typo" in n.log_text() and n.echo(), "the problem is not in the log")
    # The destination in force is the one that was accepted, also for the processes that the node starts now.
    h.send(port, exam(os.path.join(folder, "exam")))
    wait_for("a failed delivery", lambda: n.command("list", code=None).returncode == 3
             and "job-send-failed" in n.log_text())
    os.rmdir(part)
    pacs.port = n.pacs_port = h.free_port()
    n.port = h.free_port()
    n.write_conf('@include "more.conf"\n')  # all of its files are what is accepted, and what work processes read
    h.write_file(os.path.join(os.path.dirname(n.conf), "more.conf"), 'peers = ( { name = "more"; aet = "MORE"; } );\n')
    pacs.start()
    n.process.send_signal(signal.SIGHUP)
    wait_for("the good one is taken", lambda: "config-reloaded" in n.log_text())
    wait_for("it listens on the new port", n.echo)
    n.wait_states("delivered")
    check(list(pacs.objects().values()) == [1], pacs.objects())
    check(n.stop() == 0, "SIGTERM")


def test_destination_misspelt(folder, things):
    """A slip in a reload: what waits for that destination goes on waiting, and goes out when the slip is mended."""
    n, pacs = h.node_and_pacs(folder, things)
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam")))
    wait_for("a failed delivery", lambda: "job-send-failed" in n.log_text())
    good = h.read_file(n.conf)
    h.write_file(n.conf, good.replace('name = "pacs"', 'name = "pasc"').replace('[ "pacs" ]', '[ "pasc" ]'))
    n.process.send_signal(signal.SIGHUP)
    words = "destination 'pacs' is not in the configuration"
    wait_for("the list says it", lambda: f"ALARM pacs: due ({words})" in n.command("list").stdout)
    wait_for("the alarm", lambda: "delivery-alarm" in n.log_text())
    log = n.log_text()
    check(n.states() == ["reconstructed"] and log.count("delivery-alarm") == 1
          and words in log.split("delivery-alarm")[1], "an alarm, no dead letter")
    h.write_file(n.conf, good)
    pacs.start()
    n.process.send_signal(signal.SIGHUP)
    n.wait_states("delivered")
    check(list(pacs.objects().values()) == [1], pacs.objects())
    check("retry" not in n.events(1) and "ALARM" not in n.command("list").stdout, "by itself")
    wait_for("the end of the alarm is told", lambda: "delivery-recovered" in n.log_text())


def test_disk_full(folder, things):
    """The images fit, the result does not; then there is no space at all; then there is."""
    spool = os.path.join(folder, "node", "spool")
    os.makedirs(spool)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", spool], capture_output=True).returncode != 0:
        h.skip("no tmpfs can be mounted")
    try:
        n, pacs = h.node_and_pacs(folder, things)
        files = exam(os.path.join(folder, "exam"), *h.LARGE)
        pacs.start()
        n.start()
        h.send(n.port, files[:-1])
        filler = os.path.join(spool, "filler")
        room = os.statvfs(spool).f_bavail * os.statvfs(spool).f_bsize
        h.write_file(filler, bytes(room - (2 << 20)))
        h.send(n.port, files[-1:])
        wait_for("the result does not fit", lambda: n.states() == ["ready"] and n.jobs()[0]["attempts"] > 0)
        job, = n.jobs()
        check("space" in job["reason"].lower() and job["crashes"] == 0, job)
        wait_for("no half a result is left", lambda: not [f for _, _, names in os.walk(os.path.join(spool, "outbox"))
                                                          for f in names])
        check(n.jobs()[0]["attempts"] == job["attempts"], "the next attempt has removed it")
        with open(filler, "ab") as f:
            f.write(bytes(1 << 20))
        right = exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2", *h.LARGE)
        check(h.send(n.port, right, code=None) == set(), "taken below the reserve")
        refused = [line for line in n.log_text().splitlines() if " object-refused " in line]
        check(" crit " in refused[0] and f" MB are free in {spool}, but node.reserve requires 1 MB" in refused[0],
              refused)
        check(n.echo(), "no C-ECHO on a full disk")
        os.unlink(filler)
        n.wait_states("delivered", seconds=200)  # the time between two attempts doubles
        check(h.send(n.port, right) == set(right), "not taken although there is space again")
        n.wait_states("delivered", "delivered")
        check(sorted(pacs.objects().values()) == [1, 1], pacs.objects())
        check(n.stop() == 0, "SIGTERM")
    finally:
        for thing in things:
            thing.end() if isinstance(thing, h.Node) else thing.stop()
        subprocess.run(["umount", spool])


def test_one_node_a_spool(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.start()
    p = h.run(h.TOMONODE, "serve", "-c", n.conf, code=9)
    check("in use by process" in p.stderr, p.stderr)
    other = h.Node(os.path.join(folder, "other"), pacs.port)
    other.port = n.port
    other.write_conf()
    p = h.run(h.TOMONODE, "serve", "-c", other.conf, code=9)
    check(str(n.port) in p.stderr, p.stderr)
    other.node["bind"] = '"192.0.2.1"'  # the machine does not have this address, at least not yet
    other.write_conf()
    p = h.run(h.TOMONODE, "serve", "-c", other.conf, code=9)
    check("192.0.2.1" in p.stderr, p.stderr)
    with open(other.conf, "a") as f:
        f.write("typo = 1;\n")
    p = h.run(h.TOMONODE, "serve", "-c", other.conf, code=3)
    check(f"{other.conf}:" in p.stderr, p.stderr)
    check(n.echo(), "the first node suffers")


def test_without_a_node(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    check(n.jobs() == [] and not n.list()["node"], "an empty list")
    check(not os.path.exists(os.path.join(n.spool, "journal.db")), "looking made a journal")
    n.command("show", "1", code=8)
    n.command("show", "x", code=2)
    for words, missing in ((("show",), "ID"), (("priority", "1"), "low|normal|high"), (("profile",), "fit|check")):
        done = n.command(*words, code=2)
        check(f"{missing} is missing" in done.stderr, f"{words}: {done.stderr}")
    n.start()
    check(n.list()["node"], "the node runs")
    h.send(n.port, exam(os.path.join(folder, "exam"))[1:])
    job, = n.wait_states("held")
    n.stop()
    p = n.command("cancel", str(job["id"]))
    check("no node is running" in p.stdout, p.stdout)
    check(n.states() == ["cancelled"], n.states())


def long_job(folder, things):
    """A node with a reconstruction that takes long enough to be met in the middle."""
    n, pacs = h.node_and_pacs(folder, things)
    n.make_long()
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam")))
    n.wait_states("running")
    return n, pacs


def test_cancelled_while_running(folder, things):
    n, pacs = long_job(folder, things)
    job = wait_for("progress is shown", lambda: [j for j in n.jobs() if j["progress"] and j["progress"]["stage"]])[0]
    check(0 <= job["progress"]["fraction"] <= 1, job)
    check("%" in n.command("list").stdout, "no progress in the list for people")
    pid, = n.processes("worker")
    n.command("cancel", str(job["id"]))
    n.wait_states("cancelled")
    wait_for("the worker is gone", lambda: pid not in n.processes("worker"))
    wait_for("nothing is left in work", lambda: not os.listdir(os.path.join(n.spool, "work")))
    n.make_quick()
    pacs.start()
    n.command("retry", str(job["id"]))
    n.wait_states("delivered")
    check(list(pacs.objects().values()) == [1], pacs.objects())


def test_sigterm_while_running(folder, things):
    n, pacs = long_job(folder, things)
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    check(n.states() == ["ready"] and not n.processes(), f"{n.states()} {n.processes()}")
    check("interrupted" in n.events(n.jobs()[0]["id"]), "not written down")
    n.start()
    n.wait_states("running")


def test_a_worker_that_dies(folder, things):
    n, pacs = long_job(folder, things)
    job = n.jobs()[0]["id"]
    for i in range(3):
        pid = wait_for(f"worker {i + 1}", lambda: n.states() == ["running"] and n.processes("worker"))[0]
        os.kill(pid, signal.SIGKILL)
        wait_for("its end is written down", lambda: n.events(job).count("crashed") == i + 1)
    state, = n.wait_states("failed")
    check("3 attempts" in state["reason"] and "signal 9" in state["reason"], state["reason"])
    check("job-failed" in n.log_text() and n.echo(), "no alarm, or the node suffered")
    n.make_quick()
    pacs.start()
    n.command("retry", str(job))
    n.wait_states("delivered")


def test_a_receiver_that_dies(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.start()
    manager, receiver = n.manager_and_receiver()
    os.kill(receiver, signal.SIGKILL)
    wait_for("a new receiver answers", n.echo)
    check(manager in n.processes("serve"), "another manager")
    files = exam(os.path.join(folder, "exam"))
    check(h.send(n.port, files) == set(files), "not every image was acknowledged")


def test_a_journal_that_cannot_be_opened_again(folder, things):
    """It is closed around the fork of a receiver. The node goes on without it, says so once, and does what is due when
    it is back."""
    n, pacs = h.node_and_pacs(folder, things)
    pacs.start()
    n.start()
    manager, receiver = n.manager_and_receiver()
    path = os.path.join(n.spool, "journal.db")
    os.rename(path, path + ".away")
    os.mkdir(path)
    os.kill(receiver, signal.SIGKILL)
    wait_for("it is said", lambda: "journal-error" in n.log_text())
    wait_for("a new receiver answers", n.echo)
    n.process.send_signal(signal.SIGHUP)
    wait_for("the configuration is read again", lambda: "config-reloaded" in n.log_text())
    os.kill(n.manager_and_receiver()[1], signal.SIGKILL)  # it is tried again around the next fork
    wait_for("one more receiver answers", n.echo)
    check(n.process.poll() is None, "the node ended")
    check(n.log_text().count("journal-error") == 1, "not said once")
    check("journal-error" in n.command("index", code=1).stderr, "an indexer without a journal")
    os.rmdir(path)
    os.rename(path + ".away", path)
    wait_for("it is open again", lambda: "journal-reopened" in n.log_text())
    files = exam(os.path.join(folder, "exam"))
    check(h.send(n.port, files) == set(files), "not every image was acknowledged")
    n.wait_states("delivered")
    check(manager in n.processes("serve"), "another manager")
    check(n.stop() == 0, "SIGTERM")


def test_nothing_outlives_the_manager(folder, things):
    n, pacs = long_job(folder, things)
    sender = subprocess.Popen(["storescu", "-aec", "TOMONODE", "--repeat", "10000", "127.0.0.1", str(n.port),
                               *exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2")],
                              stderr=subprocess.DEVNULL)
    wait_for("manager, receiver and association run", lambda: len(n.processes("serve")) >= 3)
    check(n.processes("worker"), "no worker")
    n.kill(group=False)
    wait_for("all of them are gone", lambda: not n.processes(), 60, 0.02)
    sender.kill()
    sender.wait()
    n.start()
    states = n.states()
    check("running" in states or "ready" in states, states)


def test_does_not_fit(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.protocol["memory_limit"] = 100000
    n.write_conf()
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam")))
    job, = n.wait_states("failed")
    check("protocol '" in job["reason"] and "the limit is 0.1 MB (memory_limit)" in job["reason"],
          f"no numbers: {job['reason']}")


def test_retention_removes_what_is_delivered(folder, things):
    n, pacs = h.node_and_pacs(folder, things, retention_days=1)
    files = exam(os.path.join(folder, "exam"))
    other = exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2")
    pacs.start()
    n.start()
    h.send(n.port, files)
    n.wait_states("delivered")
    h.send(n.port, other[1:])
    n.wait_states("delivered", "held")
    check(n.stop() == 0, "SIGTERM")
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("UPDATE event SET time = time - 2 * 86400")
    n.start()
    n.wait_states("cleaned", "held")
    # journal first, files second
    h.wait_for("the delivered exam's images are gone", lambda: len(n.stored_files()) <= len(other) - 1)
    check(len(n.stored_files()) == len(other) - 1, "the held exam's images are gone")
    h.wait_for("the result is gone", lambda: os.listdir(os.path.join(n.spool, "outbox")) == [])
    # Sent again after that, it is a new case, stored and delivered anew.
    h.send(n.port, files)
    n.wait_states("cleaned", "held", "delivered")
    check(list(pacs.objects().values()) == [2], pacs.objects())


def test_retention_by_space(folder, things):
    """More than the spool may hold: the exam that was delivered first goes, the one that is not delivered stays."""
    n, pacs = h.node_and_pacs(folder, things)
    first = exam(os.path.join(folder, "exam"), *h.LARGE)
    second = exam(os.path.join(folder, "second"), "--seed", "3", *h.LARGE)
    held = exam(os.path.join(folder, "right"), "--side", "R", "--seed", "2", *h.LARGE)[1:]
    pacs.start()
    n.start()
    h.send(n.port, first)
    n.wait_states("delivered")
    h.send(n.port, second)
    n.wait_states("delivered", "delivered")
    h.send(n.port, held)
    n.wait_states("delivered", "delivered", "held")
    used = sum(os.stat(os.path.join(at, f)).st_blocks * 512
               for part in ("instances", "outbox") for at, _, names in os.walk(os.path.join(n.spool, part))
               for f in names)
    check(n.stop() == 0, "SIGTERM")
    n.node["retention_space"] = max(1000000, used - 100000)
    n.write_conf()
    n.start()
    n.wait_states("cleaned", "delivered", "held")
    # after their row
    wait_for("images of the first one are gone", lambda: len(n.stored_files()) == len(second) + len(held))
    check(n.stop() == 0, "SIGTERM")
    n.node["retention_space"] = 1000000
    n.write_conf()
    n.start()
    n.wait_states("cleaned", "cleaned", "held")
    wait_for("the warning", lambda: "retention-space-exceeded" in n.log_text())
    wait_for("images of the second one are gone", lambda: len(n.stored_files()) <= len(held))
    check(len(n.stored_files()) == len(held), "images that were not delivered are gone")
