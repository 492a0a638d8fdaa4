# SPDX-License-Identifier: Apache-2.0
"""Scattered radiation through DICOM: exams of a slab and of a breast with the scatter of a Monte Carlo, for a still and
for a turning detector. The attenuation is compared with that of the same exam without scatter: more than 8 % too small
without the correction, within 2 % with it. The report and the result contain the ratio of scattered to primary
radiation, and a warning for a thickness that is not in the table; without the correction they contain nothing of it."""
import os
import re

import numpy as np
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h
from tools.edits import edited_all

# system, phantom, detector, binning, thickness, arc, projections. The scatter of a simulated exam costs the square of
# its bins.
SMALL = (("siemens-inspiration", "slab", "880x1120", 8, 60, 50, 3),
         ("hologic-dimensions", "ellipsoids", "896x1280", 5, 40, 15, 3))
EXAMS = (("siemens-inspiration", "slab", "1408x1792", 8, 60, 50, 5),
         ("hologic-dimensions", "ellipsoids", "896x1280", 5, 40, 15, 5))
ON = "scatter_correction=true"


def derivation(result):
    return result.ds.SharedFunctionalGroupsSequence[0].DerivationImageSequence[0].DerivationDescription


def attenuation(mu, mask):
    """The mean inside the object, away from its surface."""
    middle = slice(len(mu) // 4, len(mu) - len(mu) // 4)
    return float(mu[middle][:, mask].mean())


def interior(mu):
    """The pixels at least 10 pixels from air, in the middle slice."""
    inside = mu[len(mu) // 2] > 0.02
    for axis in (0, 1):
        inside = np.logical_and.reduce([np.roll(inside, shift, axis) for shift in range(-10, 11)])
    inside[:10] = inside[-10:] = False
    inside[:, :10] = inside[:, -10:] = False
    return inside


def reconstruct(folder, name, exam, voxel, *settings, config=None):
    report, path = tools.reconstruct(os.path.join(folder, name), os.path.join(folder, exam),
                                     settings=(f"voxel={voxel}", "slice_spacing=5", "algorithm=mlem", "iterations=8",
                                               *settings), config=config)
    return report, tools.Result(path)


@pytest.mark.parametrize("system, phantom, detector, binning, thickness, arc, views", EXAMS if h.TIER == 2 else SMALL,
                         ids=[e[0] for e in EXAMS])
def test_attenuation_with_scatter_is_as_without(folder, failures, system, phantom, detector, binning, thickness, arc,
                                                views):
    options = {"system": system, "phantom": phantom, "detector": detector, "binning": binning, "thickness": thickness,
               "views": views, "arc": arc,
               "i0": 20000}
    truth = tools.simulate(os.path.join(folder, "clean"), **options)
    scattered = tools.simulate(os.path.join(folder, "scattered"), scatter=1, **options)
    voxel = truth["pixel_mm"]
    _, clean = reconstruct(folder, "a", "clean", voxel)
    report_off, off = reconstruct(folder, "b", "scattered", voxel)
    report, on = reconstruct(folder, "c", "scattered", voxel, ON)
    mask = interior(clean.mu)
    level = [attenuation(r.mu, mask) for r in (clean, off, on)]
    error = [100 * (x / level[0] - 1) for x in level[1:]]
    ratio = report["scatter"]
    print(f"attenuation {level[0]:.4f}/mm; {error[0]:+.1f} % without the correction, {error[1]:+.1f} % with it;"
          f" S/P {ratio['mean']:.2f}"
          f" ({ratio['least']:.2f} to {ratio['most']:.2f}), {ratio['air']:.4f} in the air")
    tools.check("scatter" not in truth and scattered["scatter"] == 1 and truth["series"] != scattered["series"],
                "truth.json or the UIDs do not tell the exams apart", failures)
    tools.check(mask.sum() > 500, f"only {mask.sum()} pixels are inside", failures)
    tools.check(error[0] < -8, f"scatter reduces the attenuation by {-error[0]:.1f} % only", failures)
    tools.check(abs(error[1]) < 2, f"the corrected attenuation is off by {error[1]:.1f} %", failures)
    tools.check(0.1 < ratio["least"] <= ratio["mean"] <= ratio["most"] < 1, f"ratios {ratio}", failures)
    tools.check(0.002 < ratio["air"] < 0.05, f"scatter in the air {ratio['air']}", failures)
    tools.check("scatter" not in report_off and "Scatter" not in derivation(off),
                "scatter in a result without correction", failures)
    for text in (f"Scatter subtracted: {ratio['mean']:.3f} of the primary", f"{ratio['air']:.3f} in the air"):
        tools.check(text in derivation(on), f"{derivation(on)}", failures)
    tools.check("scatter correction" not in report["warnings"], f"{report['warnings']}", failures)
    tools.check(off.ds.SOPInstanceUID != on.ds.SOPInstanceUID, "the same UID with and without correction", failures)


@pytest.mark.parametrize("arc, warned", [(50, True), (15, False)])
def test_warns_where_the_correction_is_inaccurate(folder, failures, arc, warned):
    """In the report and in the result."""
    tools.simulate(os.path.join(folder, "thick"), phantom="slab", detector="1408x1792", binning=8, thickness=75,
                   views=3, arc=arc)
    report, result = reconstruct(folder, "on", "thick", 0.68, ON)
    for text in (report["warnings"], derivation(result)):
        found = re.search("At 75 mm and 2. degrees the scatter correction leaves", text)
        tools.check((found is not None) == warned, text, failures)


def test_warns_outside_the_table_and_of_a_grid(folder, failures):
    """A thickness outside the table; a grid in the header, and a profile without one. No warning with the scale of a
    grid, or without correction."""
    tools.simulate(os.path.join(folder, "thin"), phantom="slab", detector="1408x1792", binning=8, thickness=12, views=3)
    report, result = reconstruct(folder, "a", "thin", 0.68, ON)
    for text in (report["warnings"], derivation(result)):
        tools.check("12 mm is outside the table of the scatter correction, 20 to 80 mm" in text and "grid" not in text,
                    text, failures)
    edited_all(os.path.join(folder, "thin"), os.path.join(folder, "thin"), Grid=["FOCUSED", "RECIPROCATING"])
    report, result = reconstruct(folder, "grid", "thin", 0.68, ON)
    for text in (report["warnings"], derivation(result)):
        wanted = "(0018,1166) FOCUSED\\RECIPROCATING, but scatter_scale of the profile 'siemens-inspiration' is 1"
        tools.check(wanted in text, text, failures)
    report, _ = reconstruct(folder, "off", "thin", 0.68)
    tools.check("grid" not in report["warnings"], f"no correction: {report['warnings']}", failures)
    report, _ = reconstruct(folder, "scaled", "thin", 0.68, ON,
                            config=tools.profile_conf(os.path.join(folder, "conf"), scatter_scale=0.25))
    tools.check("grid" not in report["warnings"], f"with its scale: {report['warnings']}", failures)
