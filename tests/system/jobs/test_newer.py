# SPDX-License-Identifier: Apache-2.0
"""Objects that are sent again under their UIDs: corrected, readable at last, in another transfer syntax, after a cancellation.
These are the ways of docs/troubleshooting.md."""
import os

import pydicom
from pydicom.uid import JPEGLSLossless

from tools import node_harness as h
from tools import page_tools
from tools.edits import edited_all
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "dcmcjpls")


def begin(folder, things, protocols=("quick",)):
    n, pacs = h.node_and_pacs(folder, things, audit='"file"', audit_file=f'"{folder}/audit"')
    n.protocols = protocols
    n.write_conf()
    pacs.start()
    n.start()
    return n, pacs, h.simulate(os.path.join(folder, "exam"))


def without_thickness(d):
    del d.BodyPartThickness


def values_of(pacs):
    return pydicom.dcmread(pacs.files()[0]).PixelData


def conflicts(n):
    return [u for u in n.list()["unassigned"] if u["classification"] == "conflict"]


def test_a_person_says_that_the_newer_ones_are_right(folder, things):
    n, pacs, files = begin(folder, things)
    bad = edited_all(files, os.path.join(folder, "bad"), without_thickness)
    h.send(n.port, bad)
    job = n.wait_state(0, "held", "Body Part Thickness (0018,11A0) is missing")["id"]
    n.command("retry", "--newer", str(job), code=4)  # none has come
    good = edited_all(files, os.path.join(folder, "good"), lambda d: setattr(d, "PatientID", "CORRECTED"))
    h.send(n.port, good)
    wait_for("all are set apart", lambda: len(conflicts(n)) == len(files))
    check("retry --newer" in n.command("list").stdout, "the list does not say how")
    check(n.states() == ["held"], "it was replaced without a word of a person")
    n.command("retry", "--newer", str(job))
    n.wait_states("cancelled", "delivered")
    result = pydicom.dcmread(pacs.files()[0])
    check(result.PatientID == "CORRECTED" and "newer objects under UIDs that were received before" in str(result), result)
    check(conflicts(n) == [] and len(n.stored_files()) == 2 * len(files), "kept, and no longer conflicts")
    cancel, = n.events(job, "cancel")
    check("25 newer objects" in cancel["reason"] and "on the command line by user" in cancel["reason"], cancel)
    n.command("retry", "--newer", str(job), code=4)  # reconstructed: the images stay

    def told():
        with open(os.path.join(folder, "audit"), encoding="utf-8") as f:
            return [line for line in f if "DICOM Instances Accessed" in line]
    check("user " in wait_for("the audit trail", told)[0], "who it was")


def test_a_readable_object_replaces_one_that_is_not(folder, things):
    n, pacs, files = begin(folder, things)
    broken = edited_all(files[3:5], os.path.join(folder, "bad"), lambda d: setattr(d, "PixelData", d.PixelData[:len(d.PixelData) // 2]))
    h.send(n.port, files[:3] + files[5:] + broken)
    job = n.wait_state(0, "held", "PixelData has")["id"]
    h.send(n.port, files[3:5])
    last = n.wait_jobs("it is delivered", lambda jobs: jobs[-1]["state"] == "delivered" and jobs)[-1]
    check("cannot be read" in n.events(job, "cancel")[0]["reason"], n.events(job))
    check(sorted(i["sop"] for i in n.show(last["id"])["instances"]) == sorted(pydicom.dcmread(f).SOPInstanceUID
                                                                              for f in files), "its images")
    # What was reconstructed keeps its images, whatever comes.
    h.send(n.port, edited_all(files[7:8], os.path.join(folder, "late"), lambda d: setattr(d, "InstanceNumber", 4711)))
    wait_for("it is set apart", lambda: conflicts(n))
    n.command("retry", "--newer", str(last["id"]), code=4)
    check(n.states()[-1] == "delivered" and n.states().count("delivered") == 1 and len(pacs.files()) == 1, n.states())


def test_the_button(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.protocols = ["quick", "dbt-fbp"]
    page_tools.serve(n)
    pacs.start()
    n.start()
    files = h.simulate(os.path.join(folder, "exam"))
    # Some images are of another patient. The page says what helps, and it does.
    other = edited_all(files[:4], os.path.join(folder, "other"), lambda d: setattr(d, "PatientID", "OTHER"))
    h.send(n.port, other + files[4:])
    job = n.wait_state(0, "held", "Patient ID")["id"]
    shown = wait_for("the page", lambda: page_tools.page(n, f"/jobs/{job}"))
    check("send the exam again: then the newer images can be used" in shown
          and "Use the newer images" not in shown, "what helps, and a button without effect")
    h.send(n.port, files)
    wait_for("they are set apart", lambda: len(conflicts(n)) == len(other))
    page_tools.press(n, f"/jobs/{job}", "Use the newer images", "newer")
    n.wait_states("cancelled", "delivered", "delivered")  # the word of a person is for further results, too
    check("requested on the status page by its user" in n.events(job, "cancel")[0]["reason"], n.events(job, "cancel"))
    shown = wait_for("which case counts", lambda: (lambda p: p if "What counts is <a" in p else None)(page_tools.page(n, f"/jobs/{job}")))
    check("Resume the case" not in shown, "two patients would be in one study")


def test_after_cancel_of_two_patients_all_images_must_come_again(folder, things):
    """A cancelled case that names another patient counts until each of its images was sent again; then also for further results."""
    n, pacs, files = begin(folder, things, protocols=["quick", "dbt-fbp"])
    other = edited_all(files[:4], os.path.join(folder, "other"), lambda d: setattr(d, "PatientID", "OTHER"))
    h.send(n.port, other + files[4:])
    first = n.wait_state(0, "held", "Patient ID")["id"]
    n.command("cancel", str(first))
    h.send(n.port, files[:-1])
    second = n.wait_state(1, "held", f"between this case and case {first} of the same study")["id"]
    check(pacs.files() == [], "one image of two patients was not sent again")
    h.send(n.port, files[-1:])
    n.wait_jobs("both results", lambda jobs: [j["state"] for j in jobs] == ["cancelled", "delivered", "delivered"])
    n.command("redo", str(second))
    n.wait_jobs("again", lambda jobs: [j["state"] for j in jobs] == ["cancelled", "delivered", "delivered", "delivered"])
    check({pydicom.dcmread(f, stop_before_pixels=True).PatientID for f in pacs.files()} == {"TOMONODE-PHANTOM"}, "one patient")
    check(f"job {second} counts" in n.command("retry", str(first), code=4).stderr, "two patients would be in one study")


def test_what_was_sent_again_after_cancel_is_repaired(folder, things):
    """It remains sent again when an image of it that cannot be read is replaced."""
    n, pacs, files = begin(folder, things)
    h.send(n.port, edited_all(files, os.path.join(folder, "other"), lambda d: setattr(d, "PatientID", "OTHER"))[:-1])
    n.command("cancel", str(n.wait_state(0, "held")["id"]))
    broken = edited_all(files[:1], os.path.join(folder, "bad"), lambda d: setattr(d, "PixelData", d.PixelData[:len(d.PixelData) // 2]))
    h.send(n.port, broken + files[1:])
    n.wait_state(1, "held", "PixelData has")
    h.send(n.port, files[:1])
    n.wait_states("cancelled", "cancelled", "delivered")
    check(pydicom.dcmread(pacs.files()[0], stop_before_pixels=True).PatientID == "TOMONODE-PHANTOM", "its patient")


def test_two_patients_in_two_views(folder, things):
    """Each corrected view waits until the other one is corrected, too, and then continues by itself."""
    n, pacs, files = begin(folder, things)
    study = str(pydicom.dcmread(files[0], stop_before_pixels=True).StudyInstanceUID)
    second = h.simulate(os.path.join(folder, "mlo"), "--view", "MLO", "--study", study)
    one, two = 1, 2
    for job, view in ((one, files), (two, second)):
        other = edited_all(view[:4], os.path.join(folder, f"other{job}"), lambda d: setattr(d, "PatientID", "OTHER"))
        h.send(n.port, other + view[4:])
        check(n.wait_state(job - 1, "held", "Patient ID")["id"] == job, "the number")
    n.command("cancel", str(one))
    h.send(n.port, files + second)
    n.wait_state(2, "held", f"between this case and case {two} of the same study")
    wait_for("they are set apart", lambda: len(conflicts(n)) == 4)
    n.command("retry", "--newer", str(two))
    n.wait_states("cancelled", "cancelled", "delivered", "delivered")
    check({pydicom.dcmread(f, stop_before_pixels=True).PatientID for f in pacs.files()} == {"TOMONODE-PHANTOM"}, "one patient")


def test_another_transfer_syntax_is_the_same_content(folder, things):
    n, _, files = begin(folder, things)
    h.send(n.port, files[:-1])
    compressed = os.path.join(folder, "compressed.dcm")
    h.run("dcmcjpls", files[2], compressed)
    d = pydicom.dcmread(compressed)
    check(d.file_meta.TransferSyntaxUID == JPEGLSLossless
          and d.SOPInstanceUID == pydicom.dcmread(files[2]).SOPInstanceUID, "the copy")
    for syntax, sent in (("-xi", files[:2]), ("-xt", [compressed])):
        h.run("storescu", "-R", syntax, "-aec", "TOMONODE", "127.0.0.1", n.port, *sent)
    # Another value is another content.
    h.send(n.port, edited_all(files[4:5], os.path.join(folder, "other"), lambda d: setattr(d, "InstanceNumber", 4711)))
    wait_for("four are set apart", lambda: len(n.list()["unassigned"]) == 4)
    kinds = sorted((u["classification"], "another transfer syntax" in u["reason"]) for u in n.list()["unassigned"])
    check(kinds == [("conflict", False), ("ignored", True), ("ignored", True), ("ignored", True)], kinds)


def test_after_cancel_an_exam_that_is_sent_again_is_a_new_case(folder, things):
    n, pacs, files = begin(folder, things)
    bad = edited_all(files, os.path.join(folder, "bad"), without_thickness)
    h.send(n.port, bad[:20])
    job = wait_for("the case", lambda: [j for j in n.jobs() if j["instances"] == 20])[0]["id"]
    n.command("cancel", str(job))
    h.send(n.port, bad[20:])
    wait_for("what still comes belongs to it", lambda: n.jobs()[0]["instances"] == 25)
    h.send(n.port, files)  # corrected
    n.wait_states("cancelled", "delivered")
    check(len(pacs.files()) == 1 and n.jobs()[1]["instances"] == 25 and conflicts(n) == [], n.jobs())
    # The same bytes again, after a cancellation; what was delivered does not begin anew.
    h.send(n.port, files)
    other = h.simulate(os.path.join(folder, "other"), "--seed", "2")
    h.send(n.port, other[:24])
    third = wait_for("a third case", lambda: [j for j in n.jobs() if j["instances"] == 24])[0]["id"]
    n.command("cancel", str(third))
    h.send(n.port, other)
    n.wait_states("cancelled", "delivered", "cancelled", "delivered")
    check(len(pacs.files()) == 2, pacs.files())
