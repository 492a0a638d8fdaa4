#!/usr/bin/python3
"""The figures of tests/quality_parallel.py on images whose answers are known, and the script as a whole on small images."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("TOMONODE_SOURCE", os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
TOMONODE = os.environ.get("TOMONODE", os.path.join(SOURCE, "build", "release", "tomonode"))
sys.path.insert(0, os.path.join(SOURCE, "tests"))

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)

import quality_parallel_figures as figures  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tests", "quality_parallel.py")
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
    done = subprocess.run([sys.executable, SCRIPT, "run", "--quick", "--tomonode", TOMONODE, "--devices", "cpu:1,cpu", "--work", folder, "-o",
                           out], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"run --quick: exit {done.returncode}: {done.stdout}{done.stderr}")
    if done.returncode:
        return
    with open(os.path.join(out, "results.json"), encoding="ascii") as f:
        found = json.load(f)
    limits = [line for line in done.stdout.splitlines() if line.startswith("kept")]
    check(len(limits) == 7, f"limits that were looked at: {done.stdout}")
    errors = [r["rmse"] for r in found["fbp"] if r["phantom"] == "shepp-logan"]
    check(errors == sorted(errors, reverse=True) and len(errors) == 3, f"more projections, less error: {errors}")
    noise = {r["label"]: r["inside"] for r in found["noise"]}
    check(noise["hann 0.5"] < noise["hann"] < noise["ram-lak"], f"a smoother filter lets less noise through: {noise}")
    if not importlib.util.find_spec("PIL"):
        print("no PIL: the report is not made")
        return
    done = subprocess.run([sys.executable, SCRIPT, "report", out, "-o", folder], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"report: exit {done.returncode}: {done.stderr}")
    if done.returncode:
        return
    with open(os.path.join(folder, "parallel-quality.md"), encoding="utf-8") as f:
        text = f.read()
    check("{" not in text and "nan" not in text, "the report has holes")
    pictures = [line.split("(")[1].split(")")[0] for line in text.splitlines() if line.startswith("![")]
    check(len(pictures) == 6 and all(os.path.getsize(os.path.join(folder, p)) > 1000 for p in pictures), f"pictures: {pictures}")


def main():
    failures = []

    def check(good, text):
        if not good:
            failures.append(text)
            print("FAILED:", text)

    check_figures(check)
    with tempfile.TemporaryDirectory(prefix="tomonode-test-") as folder:
        check_script(folder, check)
    if failures:
        sys.exit(f"{len(failures)} of the checks failed")
    print("figures of images of parallel beams are what they say")


main()
