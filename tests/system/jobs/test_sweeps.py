# SPDX-License-Identifier: Apache-2.0
"""Two sweeps of one view in one series (a retake), or a mammogram among projections: never reconstructed together, in
whatever order they arrive; a person chooses one."""
import os
import random
import re

import pydicom

from tools import node_harness as h
from tools import page_tools
from tools.edits import edited, edited_all
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp")

VIEWS = 9
TIME = "2026-06-01 10:18:00"  # of a simulated exam


def begin(folder, things):
    n, pacs = h.node_and_pacs(folder, things, quiet_time=2)
    page_tools.serve(n)
    pacs.start()
    n.start()
    first, second = (h.simulate(os.path.join(folder, name), "--views", VIEWS, "--seed", seed)
                     for name, seed in (("first", 1), ("second", 2)))
    return n, pacs, mark(first, first, 1), mark(second, first, 2)


def mark(files, like, number):
    """Make them the sweep `number` of the series of `like`."""
    source = pydicom.dcmread(like[0], stop_before_pixels=True)
    for i, f in enumerate(files):
        d = pydicom.dcmread(f)
        d.AcquisitionNumber = number
        d.InstanceNumber = i + 1 + 100 * number
        for name in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
            setattr(d, name, getattr(source, name))
        d.save_as(f)
    return files


def sources(pacs, at=0):
    d = pydicom.dcmread(pacs.files()[at], stop_before_pixels=True)
    return set(re.findall(r"Referenced SOP Instance UID +UI: (\S+)", str(d)))


def uids(files):
    return {pydicom.dcmread(f, stop_before_pixels=True).SOPInstanceUID for f in files}


def test_a_retake(folder, things):
    n, pacs, first, second = begin(folder, things)
    mixed = first + second
    random.Random(1).shuffle(mixed)
    h.send(n.port, mixed)
    job = n.wait_state(0, "held", "more than one acquisition", "Acquisition Number (0020,0012): 9 have 1, 9 have 2")["id"]
    shown = n.command("show", str(job)).stdout
    check(f"sweep 2 of {TIME}: 9 images with Acquisition Number (0020,0012) 2: tomonode retry --sweep 2 {job}" in shown, shown)
    check("  Choose the sweep that counts. " in shown and f"retry {job}\n" not in shown, shown)
    listed, = n.jobs()
    check(page_tools.cases(n)[job]["hint"] == listed["hint"] == n.show(job)["job"]["hint"]
          and "  " + listed["hint"] in shown, "every interface says the same")
    n.command("retry", "--sweep", "3", str(job), code=4)
    n.command("retry", "--sweep", "0", str(job), code=2)
    n.command("retry", "--sweep", "1", "--as-is", str(job), code=2)
    n.command("retry", "--as-is", str(job))
    n.wait_state(0, "held", "more than one sweep", "9 have 1, 9 have 2")
    check(pacs.files() == [], "two sweeps in one result")
    n.command("retry", "--sweep", "2", str(job))
    n.wait_states("cancelled", "delivered")
    check(uids(second) <= sources(pacs) and not uids(first) & sources(pacs), "the sources of the result")
    check(f"a case of sweep 2 of {TIME}: 9 images with Acquisition Number (0020,0012) 2, chosen on the command line by user"
          in n.events(job, "cancel")[0]["reason"], n.events(job, "cancel"))
    # Sent again, both are known.
    stored = len(n.stored_files())
    h.send(n.port, mixed)
    check(n.states() == ["cancelled", "delivered"] and len(n.stored_files()) == stored, n.states())
    # The other one is not lost.
    n.command("retry", "--sweep", "1", str(job))
    n.wait_states("cancelled", "delivered", "delivered")
    check(len(pacs.objects()) == 2, "two results of two sweeps")


def test_half_of_each_is_as_many_as_announced(folder, things):
    n, pacs, first, second = begin(folder, things)
    h.send(n.port, first[:5] + second[5:])
    job = n.wait_state(0, "held", "more than one sweep", "5 have 1, 4 have 2")["id"]
    h.send(n.port, second[:5] + first[5:])
    n.wait_state(0, "held", "more than one acquisition", "9 have 1, 9 have 2")
    text = wait_for("the question", lambda: (lambda t: t if "The images are of 2 sweeps" in t else "")(page_tools.page(n, f"/jobs/{job}")))
    check("Choose the sweep that counts." in text and f"/jobs/{job}/retry" not in text and f"/jobs/{job}/as-is" not in text, text)
    page_tools.press(n, f"/jobs/{job}", f"Reconstruct sweep 2 of {TIME}: 9 images with Acquisition Number (0020,0012) 2", "sweep", sweep=1)
    n.wait_states("cancelled", "delivered")
    check(uids(first) <= sources(pacs) and not uids(second) & sources(pacs), "the sources of the result")
    # Each page says which result counts: that of the sweep that was chosen last.
    one = n.jobs()[1]["id"]
    page_tools.press(n, f"/jobs/{job}", "Reconstruct sweep 2", "sweep", sweep=2)
    two = n.wait_states("cancelled", "delivered", "delivered")[2]["id"]
    for at, said in ((job, f'the result that counts is that of <a href="/jobs/{two}">'), (two, "the result of this case counts."),
                     (one, f'the result that counts is that of <a href="/jobs/{two}">')):
        wait_for(said, lambda at=at, said=said: f"Sweep 2 was chosen: {said}" in page_tools.page(n, f"/jobs/{at}"))
    text = page_tools.page(n, f"/jobs/{job}")
    check("Reconstruct sweep 1" in text and "Reconstruct sweep 2" not in text and f"/jobs/{job}/retry" not in text, text)


def test_a_retake_after_the_result(folder, things):
    """The first result says, too, that another one counts."""
    n, _, first, second = begin(folder, things)
    h.send(n.port, first)
    one = n.wait_states("delivered")[0]["id"]
    h.send(n.port, second)
    job = n.wait_states("delivered", "held")[1]["id"]
    check("was chosen" not in page_tools.page(n, f"/jobs/{one}"), "nobody has chosen")
    page_tools.press(n, f"/jobs/{job}", "Reconstruct sweep 2", "sweep", sweep=2)
    two = n.wait_states("delivered", "cancelled", "delivered")[2]["id"]
    said = f'Sweep 2 was chosen: the result that counts is that of <a href="/jobs/{two}">'
    wait_for(said, lambda: said in page_tools.page(n, f"/jobs/{one}"))


def test_sweeps_of_a_corrected_exam(folder, things):
    """Sent again whole under another patient after `cancel`: the cancelled case holds no sweep of it, and no further result."""
    n, pacs, first, second = begin(folder, things)
    other = [edited_all(files, os.path.join(folder, f"other{i}"), lambda d: setattr(d, "PatientID", "OTHER"))
             for i, files in enumerate((first, second))]
    h.send(n.port, other[1][:5] + other[0] + other[1][5:])
    n.command("cancel", str(n.wait_state(0, "held", "more than one acquisition")["id"]))
    h.send(n.port, second[:5] + first + second[5:])
    n.command("retry", "--sweep", "1", str(n.wait_state(1, "held", "more than one acquisition")["id"]))
    n.wait_states("cancelled", "cancelled", "delivered")
    n.command("redo", str(n.jobs()[2]["id"]))
    n.wait_states("cancelled", "cancelled", "delivered", "delivered")
    check({pydicom.dcmread(f, stop_before_pixels=True).PatientID for f in pacs.files()} == {"TOMONODE-PHANTOM"}, "one patient")


def test_a_mammogram_among_projections(folder, things):
    n, pacs, first, second = begin(folder, things)
    mammogram = edited(second[4], second[4], ImageType=["ORIGINAL", "PRIMARY"], PositionerPrimaryAngle=0.1)
    h.send(n.port, [mammogram, *first[:-1]])
    n.wait_state(0, "held", "more than one sweep")
    h.send(n.port, first[-1:])
    job = n.wait_state(0, "held", "more than one acquisition", "9 have 1, 1 has 2")["id"]
    n.command("retry", "--sweep", "1", str(job))
    n.wait_states("cancelled", "delivered")
    check(uids(first) <= sources(pacs) and not uids([mammogram]) & sources(pacs), "the sources of the result")
    # Of a sweep that has no result no page says that it counts.
    n.command("retry", "--sweep", "2", str(job))
    part = n.wait_states("cancelled", "delivered", "held")[2]["id"]
    for at, said in ((job, f'Sweep 2 was chosen. No result counts so far: <a href="/jobs/{part}">'),
                     (part, "Sweep 2 was chosen: this case has no result so far.")):
        wait_for(said, lambda at=at, said=said: said in page_tools.page(n, f"/jobs/{at}"))
