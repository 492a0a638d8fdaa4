# SPDX-License-Identifier: Apache-2.0
"""Every tomosynthesis system with a geometry profile, with its own numbers: exams with headers as that system writes
them, through DICOM, back. Beads are where the result's own attributes say, within 0.1 mm in the plane and half a slice
in z; a slab has its height and its attenuation. Images of a part of the detector: beads are as exact, and millimetres
off if the place is ignored. Two exams go through a node, one of them announces a projection too many."""
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h
from tools.edits import edited_all

# binning, detector in elements, iterations, options: small images of the system's own bins; a short arc needs a fine
# grid and more iterations
SMALL = {
    "siemens": (4, "900x1800", 1), "ge": (2, "800x1400", 2), "hologic": (2, "1000x2000", 2),
    "victre": (4, "900x1800", 1),
}
SYSTEMS = {  # name: projections of an exam
    "siemens-inspiration": 25, "siemens-revelation": 25, "ge-essential": 9, "ge-senoclaire": 9, "ge-pristina": 9,
    "hologic-dimensions": 15,
    "hologic-3dimensions": 15, "victre": 25,
}

LONG = pytest.mark.tier2("every system, side and view")
# Tier 1: one of these as a part of the detector, a slab of a third vendor, and two more through the node.
PART = {"window_x": 7, "window_y": -50}
CASES = [("siemens-inspiration", "L", "CC", {}), ("ge-senoclaire", "R", "MLO", PART),
         pytest.param("hologic-3dimensions", "L", "CC", PART, marks=LONG)]
CASES += [pytest.param(system, side, view, {}, marks=LONG) for system in SYSTEMS for side in "LR"
          for view in ("CC", "MLO")
          if (system, side, view, {}) not in CASES]


# ---- headers as these systems write them ----

def siemens(ds):
    """The announced number counts an image that is no projection."""
    ds.ImagesInAcquisition = len_of(ds) + 1
    del ds.NumberOfTomosynthesisSourceImages
    ds.DistanceSourceToDetector = 650


def ge(ds):
    """Spacing in a plane of the breast; the distance to the patient is that to the detector."""
    spacing = float(ds.ImagerPixelSpacing[0]) * 621 / 660
    ds.ImagerPixelSpacing = [f"{spacing:.7f}"] * 2
    ds.DistanceSourceToPatient = ds.DistanceSourceToDetector


def hologic(ds):
    """No element spacing; the distance to the patient is that to the top of the breast."""
    del ds.DetectorElementSpacing
    ds.DistanceSourceToPatient = float(ds.DistanceSourceToDetector) - 25 - float(ds.BodyPartThickness)
    del ds.NumberOfTomosynthesisSourceImages


def victre(ds):
    """As the simulator writes it."""


def len_of(ds):
    return int(ds.ImagesInAcquisition)


VENDORS = {"siemens": siemens, "ge": ge, "hologic": hologic, "victre": victre}


def dress(folder, vendor):
    edited_all(folder, folder, VENDORS[vendor])


def simulate(folder, system, **options):
    vendor = system.split("-")[0]
    binning, detector, _ = SMALL[vendor]
    truth = tools.simulate(folder, system=system,
                           **{"binning": binning, "detector": detector, "i0": 20000, "seed": 5, **options})
    dress(folder, vendor)
    return truth


# ---- what comes back ----

def worst_bead(truth, path, side, view):
    """The largest distance of a bead from the truth along x, y, z of the scan, mm."""
    return abs(tools.Result(path).beads_off(truth, tools.scan_axes(side, view))).max(axis=0)


def check_height(truth, path, side, view, failures):
    """The slices begin at the support and have the thickness of the breast together."""
    result, axes = tools.Result(path), tools.scan_axes(side, view)
    z = sorted((result.positions @ axes[2]).tolist())
    step = z[1] - z[0]
    tools.check(abs(z[0] - step / 2 - truth["support_mm"]) < 0.01 and abs(len(z) * step - truth["thickness_mm"]) < step,
                f"slices from {z[0] - step / 2} mm, {len(z) * step} mm high", failures)


def check_warnings(case, system, failures):
    vendor = system.split("-")[0]
    texts = {"siemens": "(0020,1002) announces 26 projections", "ge": "scaled to a plane of the breast"}
    warnings = case["warnings"]
    tools.check(("Geometry from literature: the profile '" + system in warnings) == (vendor != "victre"), f"{warnings}",
                failures)
    for of, text in texts.items():
        tools.check((text in warnings) == (of == vendor), f"{warnings}", failures)
    meaning = {"siemens": "support", "ge": "detector", "hologic": "top of the breast", "victre": "support"}[vendor]
    tools.check(meaning in case["geometry"]["distance_to_patient_is_to"], f"{case['geometry']}", failures)


@pytest.mark.parametrize("system, side, view, options", CASES)
def test_beads_are_where_truth_says(folder, failures, system, side, view, options):
    exam = os.path.join(folder, "exam")
    truth = simulate(exam, system, phantom="beads", side=side, view=view, **options)
    case, path = tools.reconstruct(os.path.join(folder, "out"), exam,
                                   settings=("voxel=0", f"iterations={SMALL[system.split('-')[0]][2]}"))
    worst = worst_bead(truth, path, side, view)
    print(f"beads off by at most {worst.round(3)} mm in x, y, z")
    tools.check(worst[0] < 0.1 and worst[1] < 0.1 and worst[2] < 0.5,
                f"beads are off by {worst.round(3)} mm in x, y, z", failures)
    tools.check(case["projections"] == SYSTEMS[system], f"{case['projections']} projections", failures)
    check_warnings(case, system, failures)
    check_height(truth, path, side, view, failures)
    tools.check(case["warnings"] in str(pydicom.dcmread(path)), "the provenance has no warnings", failures)
    if "window_y" not in options:
        return
    tools.check(np.allclose(case["geometry"]["window_mm"], (options["window_x"], options["window_y"]), atol=0.05),
                str(case["geometry"]), failures)
    if system.startswith("hologic"):
        return

    def centred(ds):  # as if the images were in the middle of the detector, where the beads then are not
        ds.FieldOfViewOrigin[0] = float(ds.FieldOfViewOrigin[0]) + options["window_y"] / float(element_of(system))
    edited_all(exam, exam, centred)
    _, path = tools.reconstruct(os.path.join(folder, "centred"), exam, settings=("voxel=0",))
    moved = {**truth, "shapes": [dict(s) for s in truth["shapes"]]}
    y = tools.scan_axes(side, view)[1] * options["window_y"]
    for s in moved["shapes"]:
        s["patient_mm"] = (np.array(s["patient_mm"]) - y).tolist()
    worst = worst_bead(moved, path, side, view)
    print(f"as if centred, off by {worst.round(3)} mm")
    tools.check(worst[1] > 0.5, f"as if centred, beads are off by only {worst}", failures)


def element_of(system):
    return {"siemens": 0.085, "ge": 0.1, "hologic": 0.07}[system.split("-")[0]]


@pytest.mark.parametrize("system", ["hologic-3dimensions",
                                    *(pytest.param(n, marks=LONG) for n in SYSTEMS if n[:9] != "hologic-3")])
def test_slab_has_its_attenuation(folder, failures, system):
    """Times its height, within 2 %."""
    exam = os.path.join(folder, "exam")
    truth = tools.simulate(exam, system=system, phantom="slab", binning=8, i0=20000)
    dress(exam, system.split("-")[0])
    case, path = tools.reconstruct(os.path.join(folder, "out"), exam, settings=("voxel=0", "slice_spacing=2"))
    result = tools.Result(path)
    n = result.mu.shape
    mu = float(result.mu[:, 2 * n[1] // 5:3 * n[1] // 5, n[2] // 5:2 * n[2] // 5].mean(dtype=float))
    height = len(result.mu) * np.linalg.norm(result.slice_step)
    body, = [s for s in truth["shapes"] if s["role"] == "body"]
    total = mu * height / (body["mu_per_mm"] * truth["thickness_mm"])
    print(f"{system}: slab {total:.4f} of its attenuation")
    tools.check(abs(total - 1) < 0.02 and case["quantitative"], f"{system}: slab {total:.4f}", failures)
    check_warnings(case, system, failures)


def test_through_a_node(folder, things):
    """storescu, node, PACS: a Siemens series that announces 26, and a multi-frame object of a Hologic."""
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    things.append(pacs)
    pacs.start()
    n = h.Node(folder, pacs.port)
    things.append(n)
    n.protocol.update(slice_spacing=1.0, iterations=2)
    n.write_conf()
    n.start()
    exams = {}
    for system, side, view, options in (("siemens-revelation", "R", "MLO", {}),
                                        ("hologic-dimensions", "L", "MLO", {"format": "bp"})):
        exam = os.path.join(folder, system)
        binning, detector, _ = SMALL[system.split("-")[0]]
        truth = tools.simulate(exam, system=system, phantom="beads", binning=binning, detector=detector, side=side,
                               view=view, i0=50000, seed=5,
                               **options)
        if side == "R":
            dress(exam, "siemens")
        exams[system] = (truth, side, view)
        h.run("storescu", "-R", "-aec", "TOMONODE", "127.0.0.1", n.port,
              *(os.path.join(exam, f) for f in sorted(os.listdir(exam)) if f.endswith(".dcm")))
    jobs = n.wait_states("delivered", "delivered")
    reasons = [e["detail"].get("why", "") for j in jobs for e in n.show(j["id"])["events"] if e["event"] == "complete"]
    h.check(any("as exams of this system have; the headers announce 26" in r for r in reasons), reasons)
    h.check(n.log_text().count("Geometry from literature") >= 2, "the log has no warning")
    for path in pacs.files():
        ds = pydicom.dcmread(path)
        system, = [name for name, exam in exams.items() if exam[0]["study"] == ds.StudyInstanceUID]
        truth, side, view = exams[system]
        worst = worst_bead(truth, path, side, view)
        h.check(worst[0] < 0.1 and worst[1] < 0.1 and worst[2] < 0.5, f"{system}: {worst}")
        h.check("Geometry from literature: the profile '" + system in str(ds), "the result has no warning")
        h.check(not str(ds.SeriesDescription).startswith("25 of"), ds.SeriesDescription)
