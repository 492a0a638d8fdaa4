# SPDX-License-Identifier: Apache-2.0
"""The attenuation of a slab is right to 2 %, or it is called relative, whatever the open beam is: distance of the
source, heel effect, exposures that vary, little air (test_dbt_values.py: none, or over range); with the right profile and
with one that contradicts the images. A breast under such a beam is like one under a uniform beam."""
import os

import numpy as np
import pytest

from tools import dbt_tools as tools

MU = 0.05  # 1/mm
DISTANCE = {"open_field": "distance"}
FIT = {"open_field_fit": True}
# name, options of the simulation, keys of the profile, quantitative (None: either, if right)
CASES = (
    ("distance, heel, mAs", {"open_field": "distance", "heel": 5, "exposure_swing": 30}, {**DISTANCE, **FIT}, True),
    ("distance, 1 % of air", {"open_field": "distance", "air": 1, "exposure_swing": 30}, DISTANCE, True),
    ("distance, 1 % of air, not declared", {"open_field": "distance", "air": 1}, {}, False),
    ("heel of 10 %, 20 % of air", {"heel": 10, "air": 20}, FIT, True),
    ("heel of 10 %, 20 % of air, not declared", {"heel": 10, "air": 20}, {}, False),
)
BEAMS = (({}, {}), ({"exposure_swing": 30}, {}), ({"open_field": "distance"}, DISTANCE),
         ({"open_field": "distance"}, {}), ({"heel": 3}, FIT),
         ({"heel": 3}, {}), ({"heel": 10}, FIT), ({"heel": 10}, {}),
         ({"heel": 5, "open_field": "distance", "exposure_swing": 30}, {**DISTANCE, **FIT}),
         ({"over_range": 60}, {}))


def places(truth):
    """12 places of the body: x, y of the scan, mm."""
    size = truth["columns"] * truth["pixel_mm"], truth["rows"] * truth["pixel_mm"]
    body = next(s for s in truth["shapes"] if s["role"] == "body")
    far = min(body["center_mm"][0] + body["half_axes_mm"][0], size[0])
    wide = min(body["half_axes_mm"][1], size[1] / 2)
    return [(x * far, y * wide) for x in (0.15, 0.4, 0.65) for y in (-0.5, -0.2, 0.2, 0.5)]


def measure(folder, beam, keys, phantom="slab"):
    os.makedirs(folder, exist_ok=True)
    truth = tools.simulate(os.path.join(folder, "exam"), phantom=phantom, binning=8, views=9, **beam)
    case, path = tools.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"),
                                   settings=("slice_spacing=2", "voxel=0.68"),
                                   config=tools.profile_conf(os.path.join(folder, "conf"), **keys))
    return case, tools.Result(path).medians(truth, places(truth), 2, 3)


@pytest.mark.parametrize("beam, keys, quantitative", [pytest.param(*case, id=name) for name, *case in CASES])
def test_attenuation_of_a_slab_is_right_or_called_relative(folder, failures, beam, keys, quantitative):
    case, values = measure(folder, beam, keys)
    worst = np.abs(values / MU - 1).max()
    tools.check(case["quantitative"] == quantitative,
                f"{case['unattenuated']}, {case['open_field']}, '{case['warnings']}'", failures)
    tools.check(not case["quantitative"] or worst < 0.02, f"{100 * worst:.1f} % of {MU}/mm", failures)
    tools.check(case["quantitative"] == ("relative" not in case["warnings"]), f"'{case['warnings']}'", failures)
    tools.check(case["open_field"]["model"] == keys.get("open_field", "uniform"), f"{case['open_field']}", failures)


def test_breast_under_such_a_beam_is_as_under_a_uniform_one(folder, failures):
    (_, right), (case, values) = (measure(os.path.join(folder, name), beam, keys, "ellipsoids") for name, beam, keys in (
        ("uniform", {}, {}),
        ("beam", {"open_field": "distance", "heel": 5, "exposure_swing": 30}, {**DISTANCE, **FIT})))
    worst = np.abs(values / right - 1).max()
    tools.check(case["quantitative"] and worst < 0.02,
                f"{100 * worst:.1f} %, {case['open_field']}, '{case['warnings']}'", failures)
    tools.check(case["open_field"]["views_along_x"] >= 5, f"{case['open_field']}", failures)


@pytest.mark.tier2("the table of docs/numerics.md; pytest -rP shows it")
def test_table_of_open_beams(folder):
    for number, (beam, keys) in enumerate(BEAMS):
        row = []
        for air in (None, 5, 1, 0.5, 0):
            case, values = measure(os.path.join(folder, f"{number}-{air}"),
                                   beam if air is None else {**beam, "air": air}, keys)
            error = values / MU - 1
            assert not case["quantitative"] or np.abs(error).max() < 0.1, (beam, keys, air, error)
            row.append(f"{100 * error[np.argmax(np.abs(error))]:+.1f}" if case["quantitative"] else "relative")
        print("|", ", ".join(f"{k} {v}" for k, v in beam.items()) or "uniform", "|", ", ".join(keys) or "-", "|",
              " | ".join(row), "|")
