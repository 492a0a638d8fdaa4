#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Test the figures of tests/quality_parallel.py on images with known results, and the whole script with small images."""
import os
import sys
import tempfile

from tools.quality_tools import Checks, Script  # and tests/ is where modules are looked for

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)

import quality_parallel_figures as figures

WATER = 0.02


def phantom_truth():
    """A disc of 20 mm with a square hole beside its middle, in an image of 80 x 80."""
    return {"shapes": [
        {"kind": "ellipse", "center_mm": [3, -4], "half_axes_mm": [20, 20], "turn_degrees": 0, "corners_mm": [], "mu_per_mm": WATER},
        {"kind": "polygon", "corners_mm": [[5, -4], [13, -4], [13, 4], [5, 4]], "mu_per_mm": -WATER}]}


def check_figures(check):
    truth = figures.Truth.of_shapes(phantom_truth(), 80, 1.0)
    perfect = figures.measure(truth.means, truth, WATER)
    check(perfect["rmse"] == 0 and perfect["correlation"] > 1 - 1e-9 and perfect["off_pixels"] == 0, f"the truth: {perfect}")
    check(abs(truth.means.sum() / WATER - (np.pi * 400 - 64)) < 2, f"area {truth.means.sum() / WATER}")
    check(0 < truth.inside.sum() < np.pi * 400 - 64 and not (truth.inside & truth.outside).any(), "inside and outside")
    check(not (truth.corners & truth.seen).any() and truth.corners[0, 0] and truth.seen[40, 40], "corners")
    check(perfect["moved"] < 0.99 and perfect["mirrored"] < 0.9, f"the truth elsewhere: {perfect}")
    off = figures.measure(truth.means + 0.1 * WATER, truth, WATER)
    check(abs(off["inside"] - 0.1) < 1e-9 and abs(off["bias"] - 0.1) < 1e-9 and abs(off["corners"] - 0.1) < 1e-9, f"a tenth more: {off}")
    check(off["correlation"] > perfect["mirrored"], f"a tenth more: {off}")
    mirrored = figures.measure(truth.means[:, ::-1], truth, WATER)
    check(mirrored["mirrored"] > 1 - 1e-9 > mirrored["correlation"] and mirrored["off_pixels"] > 4, f"mirrored: {mirrored}")
    moved = figures.measure(np.roll(truth.means, 1, 0), truth, WATER)
    check(moved["moved"] > 1 - 1e-9 > moved["correlation"] and abs(moved["off_pixels"] - 1) < 1e-6, f"moved: {moved}")
    round_one = figures.Truth.of_shapes({"shapes": phantom_truth()["shapes"][:1]}, 80, 1.0)
    check(figures.measure(round_one.means, round_one, WATER)["mirrored"] < 0.99, "a disc beside the middle has no symmetry")
    check(abs(figures.difference(truth.means * 1.01, truth.means) - 0.01) < 1e-9, "difference of images")
    kept = figures.kept(np.arange(16.0).reshape(4, 4), 0.0, 15.0, 2)
    check(kept["size"] == [2, 2], f"a picture: {kept}")
    check(figures.kept(np.ones((2, 4)), 0.0, 1.0, 4)["size"] == [4, 4], "two angles are drawn as bands")


def check_script(folder, check):
    out = os.path.join(folder, "results")
    script = Script("quality_parallel.py", check)
    found = script.measure(folder, out, os.path.join(out, "results.json"), limits=7)
    if not found:
        return
    errors = [r["rmse"] for r in found["fbp"] if r["phantom"] == "shepp-logan"]
    check(errors == sorted(errors, reverse=True) and len(errors) == 3, f"more projections, less error: {errors}")
    noise = {r["label"]: r["inside"] for r in found["noise"]}
    check(noise["hann 0.5"] < noise["hann"] < noise["ram-lak"], f"a smoother filter lets less noise through: {noise}")
    script.check_page(out, folder, "parallel-quality.md", needs="PIL", pictures=6)


def main():
    check = Checks()
    check_figures(check)
    with tempfile.TemporaryDirectory(prefix="tomonode-test-") as folder:
        check_script(folder, check)
    check.finish("figures of images of parallel beams are what they say")


main()
