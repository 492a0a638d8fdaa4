# SPDX-License-Identifier: Apache-2.0
"""A CT series that arrives by C-STORE becomes part of the PET case whose attenuation correction needs it: before,
between and after the PET objects, over restarts and kill -9; what does not fit is never joined, and the case says what
it waits for."""
import json
import os
import random
import sqlite3
import time
import urllib.request

import numpy as np
import pydicom
import pytest

from tools import contract_tools, pilot_tools
from tools import node_harness as h
from tools.ct_writer import CT, write_ct
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")

SLICES = 8
QUIET = 2.5  # s; objects of one association are not this far apart, even if a process stands still for a while
NEVER = 600  # as quiet_time, until ends_quiet_time()
WAITS = "waits for the CT series for the attenuation correction"


def configure(n, corrections='[ "attenuation" ]'):
    key = f" corrections = {corrections};" if corrections else ""
    n.more_protocols = (f', {{ name = "quick-pet"; kind = "pet"; algorithm = "mlem"; iterations = 1; matrix = 16;{key} '
                        '}'
                        ', { name = "plain-pet"; kind = "pet"; algorithm = "mlem"; iterations = 2; matrix = 16; }')
    route(n, "quick-pet")


def route(n, *protocols):
    names = json.dumps(protocols)[1:-1]
    n.more_routes = f', {{ name = "pet"; kind = "pet"; protocols = [ {names} ]; destinations = [ "pacs" ]; }}'
    n.write_conf()


def both(folder, things, *, corrections='[ "attenuation" ]', **node):
    n, pacs = h.node_and_pacs(folder, things, **{"quiet_time": QUIET, **node})
    configure(n, corrections)
    pacs.start()
    n.start()
    return n, pacs


def all_indexed(n):
    """Return whether the indexer has seen every received object: after a short quiet time, a part of a series counts as
    complete."""
    return not contract_tools.query(n.spool, "SELECT 1 FROM waiting")


def ends_quiet_time(n):
    """From NEVER on; the running node reads its configuration again."""
    wait_for("all objects are indexed", lambda: all_indexed(n))
    n.node["quiet_time"] = QUIET
    n.reload()


def pet(folder, number=1, **changes):
    """A small acquisition; those of other numbers are other series of the study, acquired a minute after each other."""
    kept = h.simulated_once("pet", "--scanner", "small", "--phantom", "f-shape", "--counts", "2e5")
    d = pydicom.dcmread(os.path.join(kept, "emission.dcm"))
    d.CorrectedImage = [term for term in d.CorrectedImage if term != "ATTN"]
    if number > 1:
        for name in ("SeriesInstanceUID", "SOPInstanceUID"):
            setattr(d, name, f"{d[name].value[:-4]}{number:04d}")
        d.AcquisitionTime = f"{101500 + 100 * (number - 1)}"
    for name, value in changes.items():
        setattr(d, name, value)
    d.file_meta.MediaStorageSOPInstanceUID = d.SOPInstanceUID
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"pet{number}.dcm")
    d.save_as(path)
    return path


def ct(folder, of, when="101000", slices=SLICES, **options):
    """The CT series of a PET object: a water cylinder that is larger than its field of view."""
    d = pydicom.dcmread(of, stop_before_pixels=True)
    y, x = np.mgrid[-16:16, -16:16] + 0.5
    hu = options.pop("hu", np.repeat(np.where(x * x + y * y < 100, 0, -1000)[None], slices, 0))
    return write_ct(folder, hu, (10.0, 10.0, 30.0),
                    **{"origin": (-155.0, -155.0, -15.0 * (slices - 1)), "frame_of_reference": d.FrameOfReferenceUID,
                       "study": d.StudyInstanceUID, "when": ("20260601", when), **options})


def waits(n, reason):
    """The only job, when it waits for this reason."""
    return n.wait_jobs(reason, lambda jobs: len(jobs) == 1 and reason in jobs[0]["reason"] and jobs[0])


def series_of(files):
    return pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID


def check_joined(n, job, files):
    """The job has exactly these CT images, and says of which series."""
    job = n.show(job["id"])
    found = {i["sop"] for i in job["instances"] if i["companion"]}
    wanted = {pydicom.dcmread(f, stop_before_pixels=True).SOPInstanceUID for f in files}
    check(found == wanted and job["job"]["companions"] == len(files),
          f"{len(found)} CT images, not {len(files)}: {job['job']}")
    check(f"CT series {series_of(files)} of {len(files)} images" in job["job"]["companion"], job["job"]["companion"])
    check([i["companion"] for i in job["instances"]] == sorted(i["companion"] for i in job["instances"]),
          "the CT images come last")
    check(job["job"]["instances"] == job["job"]["expected"], job["job"])


def pictures_of(n, job):
    """The pictures of the corrections of a job: one file beside its objects, for the report; nothing of it is in the
    journal."""
    check("pictures" not in json.dumps(n.show(job["id"])["events"]), "pictures in the journal")
    outbox = os.path.join(n.spool, "outbox", str(job["id"]))
    found = sorted(f for f in os.listdir(outbox) if not f.endswith(".dcm") and f != "thumbnail.png")
    if not found:
        return None
    series = n.show(job["id"])["job"]["result"]["objects"][0]["series"]
    check(found == [f"corrections-{series}.json"], f"{found} in the outbox of {series}")
    told = json.loads(h.read_file(os.path.join(outbox, found[0])))
    check(told["series"] == series and "TOMONODE" not in json.dumps(told), "the series, and nothing of the patient")
    # A cylinder of water with a radius of 100 mm
    check([m["range"][0] for m in told["mu"]] == [0] * 3 and all(abs(m["range"][1] - 0.096) < 0.002
                                                                 for m in told["mu"]), [m["range"] for m in told["mu"]])
    check(told["acf"]["range"][0] == 1 and told["acf"]["range"][1] > 2, told["acf"]["range"])
    check(len(told["profiles"]) == 3 and sum(told["profiles"][1]["prompts"]) > 0
          and told["profiles"][1]["scatter"] is None, "profiles")
    return found[0]


def report_on_page(n, job):
    with urllib.request.urlopen(f"http://127.0.0.1:{n.status['port']}/jobs/{job['id']}/report", timeout=60) as answer:
        return answer.read().decode()


def test_before_between_after(folder, things):
    n, pacs = both(folder, things)
    for k, order in enumerate(("before", "between", "after")):
        study = pydicom.uid.generate_uid(None)
        one = pet(os.path.join(folder, order), StudyInstanceUID=study, SeriesInstanceUID=pydicom.uid.generate_uid(None),
                  SOPInstanceUID=pydicom.uid.generate_uid(None))
        files = ct(os.path.join(folder, f"ct-{order}"), one)
        if order == "before":
            h.send(n.port, files)
            check(len(n.jobs()) == k, "CT images opened a job")
            h.send(n.port, [one])
        elif order == "between":
            h.send(n.port, files[4:] + [one] + files[:4])
        else:
            h.send(n.port, [one])
            job = n.wait_jobs("it waits", lambda jobs: jobs[-1]["waits_until"] > 0 and jobs[-1])
            check(job["state"] == "collecting" and job["reason"] == WAITS, job)
            check(1700 < job["waits_until"] - time.time() < 1810, job["waits_until"])
            out = n.command("list").stdout
            check("until 20" in out and WAITS in out, out)
            h.send(n.port, files)
        n.wait_states(*["delivered"] * (k + 1))
        check_joined(n, n.jobs()[-1], files)
        check("acquired 300 s before the PET data" in n.jobs()[-1]["companion"], n.jobs()[-1])
        h.send(n.port, files)  # again: without effect on this case, while the next one is made
    check(not n.list()["unassigned"], n.list()["unassigned"])
    out = n.command("show", str(n.jobs()[-1]["id"])).stdout
    check("  CT series " in out and f"companion      {SLICES} of them" in out and ", CT\n" in out, out)
    check(n.states() == ["delivered"] * 3, n.states())
    made = [n.events(job["id"]).count("reconstructed") for job in n.jobs()]
    check(made == [1] * 3, made)


def test_none_comes(folder, things):
    """Held; what does not fit changes the reason, what fits lets it go on."""
    n, pacs = both(folder, things, ct_wait=1)
    one = pet(folder)
    h.send(n.port, [one])
    n.wait_state(0, "held",
                 "no CT series for the attenuation correction came within 1 s: send it, or reconstruct without it "
                 "(retry --as-is)")
    log = n.log_text()
    check("job-held" in log, log[-500:])
    other = ct(os.path.join(folder, "frame"), one, frame_of_reference="1.2.3")
    h.send(n.port, other)
    n.wait_state(0, "held", f"CT series {series_of(other)}: it is of another frame of reference")
    stranger = ct(os.path.join(folder, "stranger"), one, patient={"PatientID": "ANOTHER", "PatientName": "ANOTHER^ONE"})
    h.send(n.port, stranger)
    n.wait_state(0, "held", "(and 1 other)")
    check("ANOTHER" not in json.dumps(n.show(n.jobs()[0]["id"])), "whose CT it is")
    short = ct(os.path.join(folder, "short"), one, changes={"NumberOfSeriesRelatedInstances": SLICES + 1})
    h.send(n.port, short)
    n.wait_state(0, "held", "(and 2 others)")
    check(not pacs.files(), "something was made")
    n.kill()
    n.start()
    n.wait_state(0, "held", "(and 2 others)")
    files = ct(os.path.join(folder, "right"), one)
    h.send(n.port, files)
    job, = n.wait_states("delivered")
    check_joined(n, job, files)
    events = n.events(job["id"])
    check(events.count("held") >= 1 and "retry" in events, events)


def test_released_and_made_again(folder, things):
    n, pacs = both(folder, things, ct_wait=0)
    one = pet(folder)
    h.send(n.port, [one])
    job = n.wait_state(0, "held", "no CT series")
    n.command("retry", str(job["id"]))  # it waits again
    wait_for("held again", lambda: n.events(job["id"]).count("held") == 2)
    n.command("retry", "--as-is", str(job["id"]))
    job, = n.wait_states("delivered")
    check(job["companion"] == "without a CT series, at a person's request" and job["companions"] == 0, job)
    without = {f: pydicom.dcmread(f) for f in pacs.files()}
    check(without and all("There is no CT and no map for the attenuation." in d.DerivationDescription
                          and "ATTN" not in d.CorrectedImage
                          for d in without.values()), next(iter(without.values())).DerivationDescription)
    files = ct(os.path.join(folder, "ct"), one)
    h.send(n.port, files)
    wait_for("the CT images are indexed", lambda: n.log_text().count(" instance-companion ") == len(files))
    check(n.states() == ["delivered"], n.states())
    n.command("redo", str(job["id"]))
    _, again = n.wait_states("delivered", "delivered")
    check_joined(n, again, files)
    check(again["companion"].endswith("; the earlier result was made without one"), again)
    corrected = [d for d in map(pydicom.dcmread, pacs.files())
                 if d.SOPInstanceUID not in {w.SOPInstanceUID for w in without.values()}]
    check(len(corrected) == len(without) and all("ATTN" in d.CorrectedImage for d in corrected), "not corrected")
    n.command("redo", str(again["id"]))
    *_, third = n.wait_states("delivered", "delivered", "delivered")
    check_joined(n, third, files)
    made = [n.events(j["id"]).count("reconstructed") for j in n.jobs()]
    check(made == [1] * 3, f"{made}: nobody asked for another result when the CT came")


def test_nearest_of_two(folder, things):
    """Of two series; while the quiet time lasts, the rest of the nearer one is waited for."""
    n, _ = both(folder, things, quiet_time=NEVER)
    one = pet(folder)
    early = ct(os.path.join(folder, "early"), one, "090000", series="2.25.101")
    near = ct(os.path.join(folder, "near"), one, "101800", series="2.25.102")
    h.send(n.port, early + near[:3])
    h.send(n.port, [one])
    waits(n, "which is arriving")
    h.send(n.port, near[3:])
    ends_quiet_time(n)
    job, = n.wait_states("delivered")
    check_joined(n, job, near)
    check("acquired 180 s after the PET data: the nearest of 2 that fit" in job["companion"], job)


def test_map_of_a_table(folder, things):
    """The map from MR and that of the table, two series: both are joined, and the result names both."""
    n, pacs = both(folder, things)
    one = pet(folder)
    mr = {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.4", "Modality": "MR", "Manufacturer": "SIEMENS",
          "ManufacturerModelName": "Biograph_mMR", "RescaleType": None}
    y, x = np.mgrid[-16:16, -16:16] + 0.5
    files = []
    for words, plane in (("UMAP", np.where(x * x + y * y < 100, 960, 0)),
                         ("UMAP table", np.where((y > 11) & (y < 13), 500, 0))):
        files += ct(os.path.join(folder, words), one, changes={**mr, "SeriesDescription": words}, intercept=0,
                    hu=np.repeat(plane[None], SLICES, 0))
    h.send(n.port, files[SLICES:] + [one] + files[:SLICES])
    job, = n.wait_states("delivered")
    check(job["companions"] == 2 * SLICES
          and job["companion"].endswith(f"; map of table, series {series_of(files[SLICES:])}"), job)
    said = pydicom.dcmread(pacs.files()[0]).DerivationDescription
    check("The map of the table (UMAP table) is added." in said and "arms beyond its field, and coils, is not" in said, said)


def test_a_slice_is_missing(folder, things):
    """Held by the worker; with the slice the case continues, and without CT when a person says so."""
    n, _ = both(folder, things)
    one = pet(folder)
    files = ct(os.path.join(folder, "ct"), one)
    h.send(n.port, [one] + files[:4] + files[5:])
    n.wait_state(0, "held", "slices are missing")
    h.send(n.port, files[4:5])
    job, = n.wait_states("delivered")
    check_joined(n, job, files)
    second = pet(folder, 2, StudyInstanceUID="2.25.77")
    h.send(n.port, [second] + (lambda f: f[:4] + f[5:])(ct(os.path.join(folder, "gap"), second)))
    n.wait_states("delivered", "held")
    n.command("retry", "--as-is", str(n.jobs()[1]["id"]))
    _, job = n.wait_states("delivered", "delivered")
    check(job["companions"] == 0 and "without a CT series" in job["companion"], job)


def test_one_series_for_several_cases(folder, things):
    """Two acquisitions of the study use it; retention removes it with the last of them, and one that none uses by
    itself."""
    n, _ = both(folder, things, retention_days=1, retention_unassigned_days=1)
    first, second = pet(folder), pet(folder, 2)
    files = ct(os.path.join(folder, "ct"), first)
    unused = ct(os.path.join(folder, "unused"), first, frame_of_reference="1.2.3", slices=2)
    h.send(n.port, [first] + files + unused)
    n.wait_states("delivered")
    h.send(n.port, [second])
    jobs = n.wait_states("delivered", "delivered")
    for job in jobs:
        check_joined(n, job, files)
        check(pictures_of(n, job), "no pictures")
    check("acquired 360 s before" in jobs[1]["companion"], jobs[1])
    check(len(n.stored_files()) == 2 + len(files) + 2, n.stored_files())
    n.kill()
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("UPDATE event SET time = time - 2 * 86400 WHERE job = ?", (jobs[0]["id"],))
    n.start()
    n.wait_states("cleaned", "delivered")
    wait_for("its files are removed", lambda: len(n.stored_files()) == 1 + len(files) + 2)
    n.kill()
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("UPDATE event SET time = time - 2 * 86400 WHERE job = ?", (jobs[1]["id"],))
        db.execute("UPDATE classification SET time = time - 2 * 86400")
    n.start()
    n.wait_states("cleaned", "cleaned")
    wait_for("every file is removed", lambda: not n.stored_files() and not os.listdir(os.path.join(n.spool, "outbox")))


def test_several_results(folder, things):
    """The second protocol of the route gets the same images, also if it needs none."""
    n, _ = both(folder, things)
    n.status = {"port": h.free_port()}
    n.stop()
    route(n, "plain-pet", "quick-pet")
    n.start()
    one = pet(folder)
    files = ct(os.path.join(folder, "ct"), one)
    h.send(n.port, [one])
    n.wait_jobs("it waits", lambda jobs: jobs and jobs[0]["waits_until"] > 0)
    h.send(n.port, files)
    first, second = n.wait_states("delivered", "delivered")
    check_joined(n, first, files)
    check_joined(n, second, files)
    check(not pictures_of(n, first) and pictures_of(n, second),
          "pictures of the result whose corrections were computed, alone")
    for job, there in ((first, False), (second, True)):
        page = wait_for("the report", lambda j=job: (lambda text: "Planes through" in text
                                                     and text)(report_on_page(n, j)))
        check(("mu, axial plane" in page) == there and ("Corrections computed" in page) == there,
              "the corrections in the report of the page")


def test_further_results_have_the_verified_ct(folder, things):
    """Three protocols of a route. The first does not read the CT: for the second, all files are verified again; the
    third uses the CT that the second has verified and read. Each result names the CT only if it was made with it."""
    n, _ = both(folder, things)
    n.more_protocols += (', { name = "third-pet"; kind = "pet"; algorithm = "mlem"; iterations = 2; matrix = 24; '
                         'corrections = [ "attenuation" ]; }')
    n.stop()
    route(n, "plain-pet", "quick-pet", "third-pet")
    n.start()
    one = pet(folder)
    files = ct(os.path.join(folder, "ct"), one)
    h.send(n.port, files + [one])
    jobs = n.wait_states(*["delivered"] * 3)
    for job, named, verified in zip(jobs, (False, True, True), (True, True, False)):
        stages = {s["stage"] for s in n.show(job["id"])["stages"]}
        check(("check" in stages) == verified,
              f"{job['protocol']}: the files were verified {'not ' if verified else ''}once more: {stages}")
        path = os.path.join(n.spool, job["result"]["objects"][0]["file"])
        text = pydicom.dcmread(path, stop_before_pixels=True).DerivationDescription
        check((f"attenuation from CT series {series_of(files)}" in text) == named, f"job {job['id']}: {text}")


def test_not_needed(folder, things):
    """Without such a protocol, and for data with an attenuation of their own, as before."""
    n, _ = both(folder, things, corrections="")
    one = pet(folder)
    files = ct(os.path.join(folder, "ct"), one)
    h.send(n.port, files + [one])
    job, = n.wait_states("delivered")
    listed = n.list()["unassigned"]
    check(len(listed) == SLICES and all(u["classification"] == "ignored" for u in listed), listed)
    check(job["companions"] == 0 and job["companion"] == "", job)
    # A new configuration: sent again, they are used.
    configure(n)
    n.stop()
    n.start()
    second = pet(folder, 2)
    h.send(n.port, [second] + files)
    jobs = n.wait_states("delivered", "delivered")
    check_joined(n, jobs[1], files)
    count = len(n.stored_files())
    h.send(n.port, files)
    check(n.stop() == 0, "SIGTERM")
    check(len(n.stored_files()) == count, "stored once more")
    other, _ = both(os.path.join(folder, "other"), things)
    h.run(h.TOMONODE, "simulate", "pet", "--scanner", "small", "--counts", "2e5", "--attenuation", "-o",
          os.path.join(folder, "own"))
    h.send(other.port, [os.path.join(folder, "own", f) for f in sorted(os.listdir(os.path.join(folder, "own")))
                        if f.endswith(".dcm")])
    job, = other.wait_states("delivered")
    check(job["companion"] == "", job)
    before = pet(os.path.join(folder, "before"), 2, CorrectedImage=["NORM", "ATTN"])
    h.send(other.port, [before])
    check(all(job["companion"] == "" for job in other.wait_states("delivered", "delivered")), other.jobs())


@pytest.mark.tier2("random moments")
def test_killed_at_any_moment(folder, things):
    """kill -9 of the manager, or of all processes, at random moments from the first image to the last result, the
    objects of three studies in a random order: each case has all images of its nearest CT series, and one result."""
    rng = random.Random(h.seed())
    n, pacs = both(folder, things, quiet_time=NEVER)
    objects, near = [], {}
    for k in range(3):
        uid = pydicom.uid.generate_uid(None)
        one = pet(os.path.join(folder, f"pet-{k}"), StudyInstanceUID=uid + ".1", SeriesInstanceUID=uid + ".2",
                  SOPInstanceUID=uid)
        series = [ct(os.path.join(folder, f"ct-{k}-{when}"), one, when, slices=4)
                  for when in ("080000", "101000", "110000")]
        objects += [one, *sum(series, [])]
        near[uid + ".1"] = series[1]

    def kill(seconds):
        time.sleep(rng.uniform(0, seconds))
        n.kill(group=rng.random() < 0.5)
        wait_for("its processes have ended with it", lambda: not n.processes(), step=0.01)
        n.start()

    rng.shuffle(objects)
    while objects:
        some = objects[:rng.randrange(1, 9)]
        h.send(n.port, some)
        objects = objects[len(some):]
        if rng.random() < 0.6:
            kill(0.5)
    wait_for("all objects are indexed", lambda: all_indexed(n))
    n.node["quiet_time"] = QUIET
    n.write_conf()
    kills = 0
    while kills < 6 or not all(s in ("reconstructed", "delivered") for s in n.states()):
        kills += 1
        kill(0.3 * kills)  # at last long enough for a result
    n.wait_states(*["delivered"] * 3)
    for job in n.jobs():
        check_joined(n, job, near[n.show(job["id"])["job"]["study"]])
        check(pictures_of(n, job), "no pictures after a kill")
    check(set(pacs.objects()) == {o["sop_instance"] for job in n.jobs() for o in job["result"]["objects"]},
          "not one result for each case")


def test_on_a_pilot(folder, things):
    """The CT images go to the pilot like the others, streamed and in a shared spool; what is damaged on the disk is
    found there."""
    for shared in (False, True) if h.TIER == 2 else (False,):
        audit = os.path.join(folder, f"audit-{shared}.xml")
        n, _ = pilot_tools.cluster_node(folder, things, shared=shared, name=f"shared-{shared}", audit='"file"',
                                        audit_file=f'"{audit}"')
        configure(n)
        pilot_tools.write_conf(n)
        n.start()
        pilot_tools.Pilot(n, things).connected()
        one = pet(folder)
        files = ct(os.path.join(folder, "ct"), one)
        h.send(n.port, [one] + files)
        job, = n.wait_states("delivered")
        check_joined(n, job, files)
        check(pictures_of(n, job), "no pictures from the pilot")
        started = [e["detail"] for e in n.show(job["id"])["events"] if e["event"] == "started"]
        check(all("pilot d1" in d["device"] for d in started), started)
        check(n.stop() == 0, "SIGTERM")
        text = h.read_file(audit)
        sent = [m for m in text.split("<AuditMessage") if 'csd-code="110102"' in m and 'UserID="d1"' in m]
        check(len(sent) == 1 and f'"{CT}" NumberOfInstances="{SLICES}"' in sent[0],
              f"{len(sent)} messages to the pilot: {sent}")
        check(sent[0].count('ParticipantObjectTypeCode="1"') == 1, sent)


def test_damaged_in_the_spool(folder, things):
    """A CT image whose bytes have changed holds the case; when it is sent again, the case continues."""
    n, _ = both(folder, things, ct_wait=600)
    one = pet(folder)
    files = ct(os.path.join(folder, "ct"), one)
    h.send(n.port, files)
    spool = os.path.join(n.spool, "instances")
    path = os.path.join(spool, sorted(n.stored_files())[3])
    os.chmod(path, 0o600)
    with open(path, "r+b") as f:
        f.seek(-100, os.SEEK_END)
        f.write(b"x")
    h.send(n.port, [one])
    n.wait_state(0, "held", "differ from those that were received")
    h.send(n.port, files)
    job, = n.wait_states("delivered")
    check_joined(n, job, files)
