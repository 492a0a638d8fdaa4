# SPDX-License-Identifier: Apache-2.0
"""Of an exam that shares no code with this project (tools/python_exam.py) `tomonode recon` finds every bead where it
was put, in the coordinates of the patient, whatever side and view, and however the images lie."""
import os
import shutil

import numpy as np
import pytest

from tools import dbt_tools as tools
from tools import python_exam as maker
from tools.python_exam import PITCH, SUPPORT, THICKNESS


def check_plate(result, axes, failures):
    """The plate's attenuation, and no shading in depth, around a place without beads; 1 % each."""
    _, r, c = result.index(axes.T @ (60.0, -15.0, SUPPORT + THICKNESS / 2))
    slices = result.mu[:, round(r) - 20:round(r) + 20, round(c) - 20:round(c) + 20].mean(axis=(1, 2), dtype=float)
    height = len(slices) * np.linalg.norm(result.slice_step)
    total = slices.mean() * height / (0.05 * THICKNESS)
    shading = (slices.max() - slices.min()) / slices.mean()
    tools.check(abs(total - 1) < 0.01 and shading < 0.01,
                f"mu * H / mu * T = {total:.4f}, depth shading {100 * shading:.2f} %", failures)


MORE = pytest.mark.tier2("further ways of the same sides and views")
# side, view, way of columns and of rows, gantry, multi-frame
CASES = [
    ("L", "CC", 1, -1, 0, False), ("R", "CC", -1, 1, 0, False), ("L", "MLO", 1, -1, 45, False),
    ("R", "MLO", -1, 1, 45, False),
    ("L", "CC", 1, 1, 0, True), ("R", "MLO", -1, 1, 40, True), pytest.param("R", "CC", 1, -1, 0, False, marks=MORE),
    pytest.param("L", "MLO", 1, -1, 52, True, marks=MORE), pytest.param("R", "CC", -1, 1, 0, True, marks=MORE),
]


@pytest.mark.parametrize("side, view, column_way, row_way, gantry, multi", CASES)
def test_beads_and_plate_are_found(folder, failures, side, view, column_way, row_way, gantry, multi):
    exam, out, config = (os.path.join(folder, n) for n in ("exam", "out", "conf"))
    os.mkdir(exam)
    with open(config, "w", encoding="ascii") as f:
        f.write(maker.CONFIG)
    axes, spots = maker.write(exam, side, view, column_way, row_way, gantry, multi)
    case, path = tools.reconstruct(out, exam, config=config,
                                   settings=("voxel=0.34", "slice_spacing=1", "projector=slices"))
    tools.check((case["projections"], case["laterality"], case["view"]) == (len(maker.ANGLES), side, view), f"{case}",
                failures)
    for options in ((), ("-profile", "IHEDBT")) if shutil.which("dciodvfy") and not multi else ():
        lines = tools.validator(path, *options)
        tools.check(not lines, f"dciodvfy {' '.join(options)}: {lines}", failures)
    result = tools.Result(path)
    check_plate(result, axes, failures)
    tools.check(len(result.positions) == THICKNESS, f"{len(result.positions)} slices", failures)
    tools.check(np.allclose(result.slice_step, axes[2], atol=1e-6), f"slices go {result.slice_step}", failures)
    tools.check(np.allclose(result.column_step / PITCH, column_way * axes[0], atol=1e-6), "columns", failures)
    tools.check(np.allclose(result.row_step / PITCH, row_way * axes[1], atol=1e-6), "rows", failures)
    for place, radius in spots:
        k, r, c, contrast = result.bead(place, radius)
        off = abs(axes @ (result.patient(k, r, c) - place))
        tools.check(contrast > 0.05, f"no bead at {place.round(1)}, contrast {contrast:.3f}/mm", failures)
        tools.check(off[0] < 0.1 and off[1] < 0.1 and off[2] < 0.5,
                    f"bead {place.round(1)} is off by {off.round(3)} mm in x, y, z", failures)
