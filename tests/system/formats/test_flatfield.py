#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A flat field with a frame for each angle: exams whose open beam depends on the angle and whose air is over range are right to 2 %, from one multi-frame
object or a folder of objects, at another exposure; angles without a frame are refused; one frame for all angles is wrong."""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tools import dbt_tools as tools  # noqa: E402

MU = 0.05  # 1/mm
BEAM = {"binning": 8, "views": 9, "i0": 400, "open_field": "distance", "heel": 20}


def config(folder, **keys):
    path = os.path.join(folder, "conf")
    with open(path, "w", encoding="ascii") as f:
        values = " ".join(f"{key} = {json.dumps(value)};" for key, value in keys.items())
        f.write(f'profiles = ( {{ name = "siemens-inspiration"; {values} }} );')
    return path


def worst(path, truth):
    """The largest error at nine places of the slab."""
    result = tools.Result(path)
    size = truth["columns"] * truth["pixel_mm"], truth["rows"] * truth["pixel_mm"]
    errors = []
    for x in (0.1, 0.3, 0.5):
        for y in (-0.2, 0, 0.2):
            point = tools.scan_axes("L", "CC").T @ np.array([x * size[0], y * size[1], truth["support_mm"] + truth["thickness_mm"] / 2])
            k, r, c = (int(round(i)) for i in result.index(point))
            errors.append(np.median(result.mu[k - 3:k + 4, r - 6:r + 7, c - 6:c + 7]) / MU - 1)
    return max(errors, key=abs)


def check_air(path, failures):
    """Air that contradicts the open field of the profile: a flat field for each angle replaces it, one for all angles does not."""
    beam = {**BEAM, "heel": 5}
    truth = tools.simulate(path("air"), phantom="slab", exposure_swing=30, **beam)
    tools.simulate(path("flat"), phantom="air", seed=9, **beam)
    for name, flat, right in (("air", path("flat"), True), ("air, one for all", path("flat/0000.dcm"), False)):
        case, out = tools.reconstruct(path("out-" + name), path("air"), config=config(path("."), flatfield=flat, scale_by_exposure=True))
        error = abs(worst(out, truth))
        tools.check(case["quantitative"] == right and (error < 0.02 or not right), f"{name}: {100 * error:.1f} %, {case['warnings']}", failures)
        text = "The flat field of the profile is used instead of the air: the air of 7 projections varies" if right else "The attenuation is relative"
        tools.check(text in case["warnings"], f"{name}: '{case['warnings']}'", failures)


def main():
    failures = []
    with tools.folder() as folder:
        def path(name):
            return os.path.join(folder, name)

        truth = tools.simulate(path("exam"), phantom="slab", exposure_swing=30, over_range=60, **BEAM)
        tools.simulate(path("frames"), phantom="air", format="bp", seed=7, exposure_swing=20, **BEAM)
        tools.simulate(path("files"), phantom="air", seed=8, **BEAM)
        tools.simulate(path("narrow"), phantom="air", format="bp", seed=7, arc=40, **BEAM)
        frames, files = path("frames/exam.dcm"), path("files")
        cases = (("frames", {"flatfield": frames, "scale_by_exposure": True, "i0_mode": "flatfield"}, 0),
                 ("folder", {"flatfield": files, "scale_by_exposure": True}, 0),
                 ("one for all", {"flatfield": path("files/0000.dcm"), "scale_by_exposure": True}, 0.01))
        for name, keys, least in cases:
            case, out = tools.reconstruct(path("out-" + name), path("exam"), config=config(folder, **keys))
            error = abs(worst(out, truth))
            tools.check(case["unattenuated"]["profile"] == 9, f"{name}: {case['unattenuated']}", failures)
            tools.check(least < error if least else error < 0.02, f"{name}: wrong by {100 * error:.1f} %", failures)
        check_air(path, failures)
        for name, keys, text in (("narrow", {"flatfield": path("narrow/exam.dcm")}, "within 1 degree of the projection at -24.8"),
                                 ("twice", {"flatfield": frames, "open_field": "distance"}, "9 frames include the distance"),
                                 ("missing", {"flatfield": path("missing")}, "No such file")):
            run = tools.run("recon", "--json", "--device", "cpu", "-c", config(folder, **keys), "-o", path("no-" + name), path("exam"), ok=(1, 2, 3, 4, 5, 8))
            tools.check(text in run.stdout + run.stderr, f"{name}: {run.stdout}{run.stderr}", failures)
    tools.finish(failures, "flat field for each angle: attenuation within 2 %")


main()
