# SPDX-License-Identifier: Apache-2.0
"""A flat field with a frame for each angle: exams whose open beam depends on the angle and whose air is over range are
right to 2 %, from one multi-frame object or a folder of objects, at another exposure; angles without a frame are
refused; one frame for all angles is wrong."""
import os

import numpy as np
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h

MU = 0.05  # 1/mm
COARSE = ("slice_spacing=2",)
BEAM = {"binning": 8, "views": 9, "i0": 400, "open_field": "distance", "heel": 20}


def config(folder, **keys):
    return tools.profile_conf(os.path.join(folder, "conf"), **keys)


def worst(path, truth):
    """The largest error at nine places of the slab."""
    size = truth["columns"] * truth["pixel_mm"], truth["rows"] * truth["pixel_mm"]
    places = [(x * size[0], y * size[1]) for x in (0.1, 0.3, 0.5) for y in (-0.2, 0, 0.2)]
    return np.abs(tools.Result(path).medians(truth, places, 3, 6) / MU - 1).max()


@pytest.fixture(scope="module")
def made():
    """The exam, and flat fields: a multi-frame object, a folder of objects, and one of other angles."""
    def make(folder):
        def path(name):
            return os.path.join(folder, name)

        tools.simulate(path("exam"), phantom="slab", exposure_swing=30, over_range=60, **BEAM)
        tools.simulate(path("frames"), phantom="air", format="bp", seed=7, exposure_swing=20, **BEAM)
        tools.simulate(path("files"), phantom="air", seed=8, **BEAM)
        tools.simulate(path("narrow"), phantom="air", format="bp", seed=7, arc=40, **BEAM)

    return h.kept("flatfield", make)


@pytest.mark.parametrize("flat, keys, least", [("frames/exam.dcm", {"i0_mode": "flatfield"}, 0), ("files", {}, 0),
                                               ("files/0000.dcm", {}, 0.01)],
                         ids=["frames", "folder", "one for all"])
def test_open_beam_of_each_angle(folder, failures, made, flat, keys, least):
    """Air over range: right to 2 % with a frame for each angle; one for all angles is wrong."""
    exam = os.path.join(made, "exam")
    conf = config(folder, flatfield=os.path.join(made, flat), scale_by_exposure=True, **keys)
    case, out = tools.reconstruct(os.path.join(folder, "out"), exam, config=conf, settings=COARSE)
    error = worst(out, tools.truth_of(exam))
    tools.check(case["unattenuated"]["profile"] == 9, f"{case['unattenuated']}", failures)
    tools.check(least < error if least else error < 0.02, f"wrong by {100 * error:.1f} %", failures)


def test_air_that_contradicts_the_open_field(folder, failures):
    """A flat field for each angle replaces it, one for all angles does not."""
    beam, exam, flat = {**BEAM, "heel": 5}, os.path.join(folder, "air"), os.path.join(folder, "flat")
    truth = tools.simulate(exam, phantom="slab", exposure_swing=30, **beam)
    tools.simulate(flat, phantom="air", seed=9, **beam)
    for name, path, right, text in (
            ("each", flat, True,
             "The flat field of the profile is used instead of the air: the air of 7 projections varies"),
            ("one for all", os.path.join(flat, "0000.dcm"), False, "The attenuation is relative")):
        case, out = tools.reconstruct(os.path.join(folder, name), exam,
                                      config=config(folder, flatfield=path, scale_by_exposure=True),
                                      settings=COARSE)
        error = worst(out, truth)
        tools.check(case["quantitative"] == right and (error < 0.02 or not right),
                    f"{name}: {100 * error:.1f} %, {case['warnings']}", failures)
        tools.check(text in case["warnings"], f"{name}: '{case['warnings']}'", failures)


@pytest.mark.parametrize("flat, keys, text", [("narrow/exam.dcm", {}, "within 1 degree of the projection at -24.8"),
                                              ("frames/exam.dcm", {"open_field": "distance"},
                                               "9 frames include the distance"),
                                              ("missing", {}, "No such file")])
def test_refusals(folder, failures, made, flat, keys, text):
    done = tools.run("recon", "--json", "--device", "cpu", "-c",
                     config(folder, flatfield=os.path.join(made, flat), **keys),
                     "-o", os.path.join(folder, "none"), os.path.join(made, "exam"), ok=(1, 2, 3, 4, 5, 8))
    tools.check(text in done.stdout + done.stderr, f"{done.stdout}{done.stderr}", failures)
