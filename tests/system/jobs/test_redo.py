# SPDX-License-Identifier: Apache-2.0
"""`tomonode redo`: the images of a delivered or failed job are reconstructed again, as a further result in a series of
its own."""
import json
import os

import pydicom

from tools import node_harness as h
from tools.edits import edited
from tools.node_harness import check

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")


def exam(folder, *options):
    return h.simulate(folder, "--views", 9, *options)


def headers(pacs):
    """The objects of the PACS in the order of their Series Number."""
    found = [pydicom.dcmread(f, stop_before_pixels=True) for f in pacs.files()]
    return sorted(found, key=lambda d: int(d.SeriesNumber))


def redo(n, job, *options, code=0):
    out = n.command("redo", "--json", *options, str(job), code=code)
    return json.loads(out.stdout) if code == 0 else out


def test_delivered_again_with_another_protocol(folder, things):
    n, pacs, files = h.with_exam(folder, things, audit='"file"', audit_file=f'"{folder}/audit.xml"')
    h.send(n.port, files)
    first, = n.wait_states("delivered")
    for command in ("retry", "cancel"):
        said = n.command(command, str(first["id"]), code=1).stderr
        check(f"to reconstruct its images again: `tomonode redo {first['id']}`" in said, said)
    route = n.show(first["id"])["job"]["route"]
    check(route and f", by route {route}\n" in n.command("show", str(first["id"])).stdout, "the route")
    answer = redo(n, first["id"], "--protocol", "dbt-fbp", "--set", "voxel=2")
    check(answer["ok"] and answer["redo_of"] == first["id"], answer)
    first, second = n.wait_states("delivered", "delivered")
    check(second["id"] == answer["job"] and second["redo_of"] == second["result_of"] == first["id"], second)
    check(second["result_number"] == 2 and second["protocol"] == "dbt-fbp" and second["instances"] == len(files),
          second)
    check([d["name"] for d in second["destinations"]] == [d["name"] for d in first["destinations"]], second)
    old, new = headers(pacs)
    check(new.SeriesInstanceUID != old.SeriesInstanceUID and new.StudyInstanceUID == old.StudyInstanceUID,
          "series and study")
    related, = new.RelatedSeriesSequence
    check(related.SeriesInstanceUID == old.SeriesInstanceUID and related.StudyInstanceUID == old.StudyInstanceUID,
          related)
    check("RelatedSeriesSequence" not in old, "the first result refers to a later one")
    text = str(new)
    check(new.SeriesDescription.endswith("dbt-fbp, voxel=2") and "voxel" not in old.SeriesDescription,
          new.SeriesDescription)
    check("dbt-fbp, voxel=2" in n.command("list").stdout, "list does not show the settings")
    out = n.command("show", str(first["id"])).stdout
    check(f"further results: job {second['id']} (dbt-fbp, voxel=2, delivered)" in out, out)
    check(f"request with voxel=2, after series {old.SeriesInstanceUID}." in text and "voxels of 2 x 2 x" in text,
          "the derivation")
    # The same protocol once more: the same pixels under UIDs of their own, and again another series.
    redo(n, first["id"])
    n.wait_states("delivered", "delivered", "delivered")
    third = headers(pacs)[2]
    check(len({d.SOPInstanceUID for d in headers(pacs)}) == 3 and third.SeriesInstanceUID != old.SeriesInstanceUID,
          "UIDs")
    pixels = {d.SOPInstanceUID: d.PixelData for d in map(pydicom.dcmread, pacs.files())}
    check(pixels[third.SOPInstanceUID] == pixels[old.SOPInstanceUID], "other pixels")
    # Journal and audit trail say who requested it.
    opened = n.show(second["id"])["events"][0]["detail"]
    check(opened["by"].startswith("user ") and opened["reason"].startswith("requested on the command line by user "),
          opened)
    check(opened["settings"] == ["voxel=2"], opened)
    people = n.command("show", str(second["id"])).stdout
    check(f"result 2 of the images of job {first['id']}, made again after job {first['id']}" in people, people)
    h.wait_for("the audit message", lambda: open(os.path.join(folder, "audit.xml")).read().count('csd-code="110103"')
               == 2)
    check(n.stop() == 0, "SIGTERM")
    # After a restart nothing is done again; a redo while the node is stopped is done by the next one.
    out = n.command("redo", str(second["id"])).stdout
    check("takes effect when it is started" in out, out)
    check(f"reconstructs the images of job {second['id']} again, with protocol dbt-fbp;" in out, out)
    n.start()
    jobs = n.wait_states("delivered", "delivered", "delivered", "delivered")
    check(jobs[3]["redo_of"] == second["id"] and jobs[3]["result_of"] == first["id"] and jobs[3]["result_number"] == 4,
          jobs[3])
    check(list(pacs.objects().values()) == [1] * 4, pacs.objects())


def test_failed_again(folder, things):
    """A case that needs more memory than its protocol allows has failed; a redo with larger voxels does not."""
    n, pacs = h.node_and_pacs(folder, things)
    n.protocol["memory_limit"] = 100000
    n.write_conf()
    files = exam(os.path.join(folder, "exam"))
    pacs.start()
    n.start()
    h.send(n.port, files)
    failed, = n.wait_states("failed")
    redo(n, failed["id"], "--set", "memory_limit=1 GB")
    n.wait_states("failed", "delivered")
    only, = headers(pacs)
    check("RelatedSeriesSequence" not in only and "Reconstructed again" in str(only),
          "it names a series that does not exist")


def test_what_is_refused(folder, things):
    n, pacs, files = h.with_exam(folder, things)
    h.send(n.port, files[1:])
    held, = n.wait_states("held")
    out = redo(n, held["id"], code=4)
    check("it is held as incomplete: `tomonode retry` first" in out.stderr, out.stderr)
    h.send(n.port, files[:1])
    job, = n.wait_states("delivered")
    check("allowed for cases of kind dbt: dbt-" in redo(n, job["id"], "--protocol", "pet", code=2).stderr,
          "an unknown protocol")
    check("kind pet" in redo(n, job["id"], "--protocol", "pet-osem", code=2).stderr, "another kind")
    out = redo(n, job["id"], "--set", "voxle=2", code=2).stderr
    check("voxle" in out and "voxel" in out, out)
    check("voxel" in redo(n, job["id"], "--set", "voxel=-1", code=2).stderr, "a bad value")
    redo(n, 4711, code=8)
    check(n.states() == ["delivered"], "a refused redo opened a job")
    # Retention has removed the images: refused, with the reason.
    n.stop()
    n.node["retention_days"] = 1
    n.write_conf()
    import sqlite3
    with sqlite3.connect(os.path.join(n.spool, "journal.db")) as db:
        db.execute("UPDATE event SET time = time - 2 * 86400")
    n.start()
    n.wait_states("cleaned")
    out = redo(n, job["id"], code=4).stderr
    check("its images were removed by retention" in out, out)
    out = n.command("retry", str(job["id"]), code=1).stderr
    check("redo" not in out, out)


def test_a_late_image_after_a_redo(folder, things):
    """A late image makes a revision of the case, not of the redo; the images are removed only when all results are
    done."""
    n, pacs, files = h.with_exam(folder, things)
    h.send(n.port, files)
    first, = n.wait_states("delivered")
    redo(n, first["id"], "--protocol", "dbt-fbp")
    n.wait_states("delivered", "delivered")
    h.send(n.port, [edited(files[3], os.path.join(folder, "extra.dcm"), SOPInstanceUID="2.25.1234567")])
    jobs = n.wait_states("delivered", "delivered", "held")
    check(jobs[2]["revision_of"] == first["id"] and jobs[2]["result_of"] == 0, jobs[2])
