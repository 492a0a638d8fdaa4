# SPDX-License-Identifier: Apache-2.0
"""Simulated exams end to end: every bead of truth.json is where the result's own attributes say, for L and R, CC and
MLO, both formats, two systems (the angle in (0018,1510) and in (0018,1531)); the simulator's shadows are where PS3.3
puts them; a slab keeps its attenuation, flat in depth."""
import glob
import math
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools

RIGHT, UP = np.array([-1.0, 0, 0]), np.array([0, 0, 1.0])
# half the angle, so twice the detail for the same certainty in depth
BINNING = {"siemens-inspiration": 4, "ge-essential": 2}
SMALL = {"detector": "1200x2000", "views": 9, "thickness": 30}  # a part of the detector, with beads of all heights
AXIS_HEIGHT, SOURCE_AXIS = 47.0, 608.5  # mm, of siemens-inspiration
WHOLE = pytest.mark.tier2("the whole detector")
CASES = [pytest.param("siemens-inspiration", f, side, view, size, marks=() if size else WHOLE)
         for size in (SMALL, {}) for f in ("mg", "bp") for side in "LR" for view in ("CC", "MLO")]
CASES += [pytest.param("ge-essential", "mg", side, view, {}, marks=WHOLE) for side in "LR" for view in ("CC", "MLO")]


def check_truth(truth, axes, failures):
    """The simulator's patient coordinates, against directions written down in dbt_tools.py."""
    for s in truth["shapes"]:
        tools.check(np.allclose(np.array(s["center_mm"]) @ axes, s["patient_mm"], atol=1e-3),
                    f"truth puts {s['center_mm']} at {s['patient_mm']}", failures)


def pixel_directions(text):
    """Column and row direction in the patient: of a CC view exactly, of others by the first letter."""
    return [np.array(tools.DIRECTION[t[0]], float) for t in text]


def check_shadow(ds, frames, truth, axes, failures):
    """A bead throws its shadow where the line from the source through it meets the detector, in the patient's
    coordinates; Breast Projection only, where PS3.3 C.8.31.6 fixes all signs: angles from up toward the patient's
    right, about an axis to the rear."""
    bead = max((s for s in truth["shapes"] if s["role"] == "bead"), key=lambda s: s["mu_per_mm"] * s["half_axes_mm"][0])
    place = np.array(bead["patient_mm"])
    shared = ds.SharedFunctionalGroupsSequence[0]
    lie = (shared if "PatientOrientationInFrameSequence" in shared else ds.PerFrameFunctionalGroupsSequence[0])
    column, row = pixel_directions(lie.PatientOrientationInFrameSequence[0].PatientOrientation)
    pitch = truth["pixel_mm"]
    for i in (0, len(frames) - 1):
        group = ds.PerFrameFunctionalGroupsSequence[i]
        system = (group if "IsocenterReferenceSystemSequence" in group else shared).IsocenterReferenceSystemSequence[0]
        a = math.radians(system.XRaySourceIsocenterPrimaryAngle)
        beam = math.cos(a) * UP + math.sin(a) * RIGHT
        source = AXIS_HEIGHT * axes[2] + SOURCE_AXIS * beam
        t = (source @ axes[2]) / ((source - place) @ axes[2])
        hit = source + t * (place - source)  # on the detector plane through the origin
        x, y = hit @ axes[0], hit @ axes[1]
        along = (column @ axes[0], row @ axes[1])
        c = x / pitch - 0.5 if along[0] > 0 else ds.Columns - 0.5 - x / pitch
        r = ds.Rows / 2 - 0.5 + y / pitch * (1 if along[1] > 0 else -1)
        image = frames[i].astype(float)
        w = 2 + round(2 * bead["half_axes_mm"][0] / pitch)
        r0, c0 = round(r), round(c)
        if not (3 * w < r0 < ds.Rows - 3 * w and 3 * w < c0 < ds.Columns - 3 * w):
            continue
        around = image[r0 - 3 * w:r0 + 3 * w + 1, c0 - 3 * w:c0 + 3 * w + 1]
        dark = np.clip(np.median(around) - around, 0, None) ** 2
        rr, cc = np.mgrid[-3 * w:3 * w + 1, -3 * w:3 * w + 1]
        off = math.hypot((dark * rr).sum() / dark.sum() + r0 - r, (dark * cc).sum() / dark.sum() + c0 - c)
        tools.check(off * pitch < 0.5 and around[3 * w, 3 * w] < 0.9 * np.median(around),
                    f"frame {i + 1}: the shadow is {off * pitch:.2f} mm from where it must be", failures)


@pytest.mark.parametrize("system, image_format, side, view, size", CASES)
def test_beads_are_where_truth_says(folder, failures, system, image_format, side, view, size):
    exam, out = os.path.join(folder, "exam"), os.path.join(folder, "out")
    truth = tools.simulate(exam, system=system, format=image_format, side=side, view=view, phantom="beads",
                           binning=BINNING[system], i0=20000,
                           seed=5, **size)
    axes = tools.scan_axes(side, view)
    check_truth(truth, axes, failures)
    if image_format == "bp":
        ds = pydicom.dcmread(glob.glob(os.path.join(exam, "*.dcm"))[0])
        check_shadow(ds, ds.pixel_array, truth, axes, failures)
    _, path = tools.reconstruct(out, exam, settings=("voxel=0", "projector=slices"))
    result = tools.Result(path)
    tools.check(len(result.positions) == math.ceil(truth["thickness_mm"]), f"{len(result.positions)} slices", failures)
    tools.check(np.allclose(result.slice_step, axes[2], atol=1e-5), f"slices go {result.slice_step}", failures)
    found = [s for s in truth["shapes"] if s["role"] == "bead"]
    tools.check(len(found) >= 5, f"{len(found)} beads", failures)
    binning, worst = result.spacing[0] / truth["pixel_mm"], np.zeros(3)
    for s in found:
        k, r, c, contrast = result.bead(s["patient_mm"], s["half_axes_mm"][0])
        off = abs(axes @ (result.patient(k, r, c) - s["patient_mm"]))
        worst = np.maximum(worst, off)
        tools.check(off[0] < 0.1 and off[1] < 0.1 and off[2] < 0.5,
                    f"bead {s['center_mm']} is off by {off.round(3)} mm in x, y, z (contrast {contrast:.3f}/mm)",
                    failures)
        # and in the stored image: column and row of the source's pixels
        column, row = (c + 0.5) * binning - 0.5, (r + 0.5) * binning - 0.5
        tools.check(abs(column - s["column"]) * truth["pixel_mm"] < 0.1
                    and abs(row - s["row"]) * truth["pixel_mm"] < 0.1,
                    f"bead at column {column:.2f}, row {row:.2f}, truth {s['column']}, {s['row']}", failures)
    print(f"{len(found)} beads, off by at most {worst.round(3)} mm in x, y, z")


def write_config(path, i0):
    with open(path, "w", encoding="ascii") as f:
        f.write('profiles = ( { name = "siemens-inspiration"; manufacturer = "SIEMENS*"; model = "*Inspiration*";'
                " axis_height = 47.0; source_axis = 608.5; support = 17.0; pitch = 0.085; sid_tolerance = 6.0;"
                ' i0_mode = "fixed"; scale_by_exposure = true;'
                f" i0 = {float(i0)}; }} );\n")


def test_slab_keeps_its_attenuation(folder, failures):
    exam, config = os.path.join(folder, "exam"), os.path.join(folder, "conf")
    write_config(config, 32000)
    # each projection has its own exposure; i0 is that of their mean
    truth = tools.simulate(exam, system="siemens-inspiration", phantom="slab", binning=8, i0=500, side="L", view="CC",
                           seed=3, config=config)
    exposures = truth["relative_exposure"]
    tools.check(max(exposures) > 1.02 * min(exposures), f"exposures {exposures}", failures)
    tools.check(abs(np.mean(exposures) - 1) < 1e-9, f"exposures of mean {np.mean(exposures)}", failures)
    write_config(config, truth["i0"])
    _, path = tools.reconstruct(os.path.join(folder, "out"), exam, config=config,
                                settings=("voxel=0", "projector=slices"))
    result = tools.Result(path)
    body = next(s for s in truth["shapes"] if s["role"] == "body")
    _, r, c = result.index(np.array(body["center_mm"]) @ tools.scan_axes("L", "CC"))
    w = [round(0.25 * h / s) for h, s in zip((body["half_axes_mm"][1], body["half_axes_mm"][0]), result.spacing)]
    centre = result.mu[:, round(r) - w[0]:round(r) + w[0],
                       round(c) - w[1]:round(c) + w[1]].mean(axis=(1, 2)).astype(float)
    got = centre.mean() * len(result.mu) * np.linalg.norm(result.slice_step)
    want = body["mu_per_mm"] * 2 * body["half_axes_mm"][2]
    shading = (centre.max() - centre.min()) / centre.mean()
    tools.check(abs(got / want - 1) < 0.01, f"mu * H = {got:.4f}, mu * T = {want:.4f}", failures)
    tools.check(shading < 0.01, f"depth shading {100 * shading:.2f} %", failures)
