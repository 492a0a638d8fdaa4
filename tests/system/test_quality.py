# SPDX-License-Identifier: Apache-2.0
"""The figures of tests/quality_parallel.py, tests/quality_pet.py and tests/quality_dbt_observer.py on data with known
results; these scripts with small images.

The report of PET is tested only if Python has matplotlib, that of parallel beams only if it has PIL; without them these
parts are skipped."""
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import quality_dbt_metal as metal
import quality_dbt_observer as observer
import quality_parallel_figures as parallel
import quality_pet_figures as pet
from tools.quality_tools import Script
from tools.node_harness import read_file, write_file

WATER = 0.02


@pytest.fixture
def check(failures):
    return lambda good, text: None if good else failures.append(text)


# ---- parallel beams ----

def phantom_truth():
    """A disc of 20 mm with a square hole beside its middle, in an image of 80 x 80."""
    return {"shapes": [
        {"kind": "ellipse", "center_mm": [3, -4], "half_axes_mm": [20, 20], "turn_degrees": 0, "corners_mm": [],
         "mu_per_mm": WATER},
        {"kind": "polygon", "corners_mm": [[5, -4], [13, -4], [13, 4], [5, 4]], "mu_per_mm": -WATER}]}


def test_figures_of_parallel_beams(check):
    truth = parallel.Truth.of_shapes(phantom_truth(), 80, 1.0)
    perfect = parallel.measure(truth.means, truth, WATER)
    check(perfect["rmse"] == 0 and perfect["correlation"] > 1 - 1e-9 and perfect["off_pixels"] == 0,
          f"the truth: {perfect}")
    check(abs(truth.means.sum() / WATER - (np.pi * 400 - 64)) < 2, f"area {truth.means.sum() / WATER}")
    check(0 < truth.inside.sum() < np.pi * 400 - 64 and not (truth.inside & truth.outside).any(), "inside and outside")
    check(not (truth.corners & truth.seen).any() and truth.corners[0, 0] and truth.seen[40, 40], "corners")
    check(perfect["moved"] < 0.99 and perfect["mirrored"] < 0.9, f"the truth elsewhere: {perfect}")
    off = parallel.measure(truth.means + 0.1 * WATER, truth, WATER)
    check(abs(off["inside"] - 0.1) < 1e-9 and abs(off["bias"] - 0.1) < 1e-9 and abs(off["corners"] - 0.1) < 1e-9,
          f"a tenth more: {off}")
    check(off["correlation"] > perfect["mirrored"], f"a tenth more: {off}")
    mirrored = parallel.measure(truth.means[:, ::-1], truth, WATER)
    check(mirrored["mirrored"] > 1 - 1e-9 > mirrored["correlation"] and mirrored["off_pixels"] > 4,
          f"mirrored: {mirrored}")
    moved = parallel.measure(np.roll(truth.means, 1, 0), truth, WATER)
    check(moved["moved"] > 1 - 1e-9 > moved["correlation"] and abs(moved["off_pixels"] - 1) < 1e-6, f"moved: {moved}")
    round_one = parallel.Truth.of_shapes({"shapes": phantom_truth()["shapes"][:1]}, 80, 1.0)
    check(parallel.measure(round_one.means, round_one, WATER)["mirrored"] < 0.99,
          "a disc beside the middle has no symmetry")
    check(abs(parallel.difference(truth.means * 1.01, truth.means) - 0.01) < 1e-9, "difference of images")
    kept = parallel.kept(np.arange(16.0).reshape(4, 4), 0.0, 15.0, 2)
    check(kept["size"] == [2, 2], f"a picture: {kept}")
    check(parallel.kept(np.ones((2, 4)), 0.0, 1.0, 4)["size"] == [4, 4], "two angles are drawn as bands")


@pytest.mark.tier2("figures of the quality pages only")
def test_script_of_parallel_beams(folder, check):
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


# ---- PET ----

def iq_truth():
    body = {"role": "body", "kind": "cylinder", "center_mm": [0, 0, 22], "half_axes_mm": [147, 115, 90],
            "becquerel_per_ml": 1000.0}
    truth = {"phantom": "nema-iq", "size": 1.0, "shapes": [body]}
    for i, diameter in enumerate((10, 13, 17, 22, 28, 37)):
        angle = (i - 2) * math.pi / 3
        truth["shapes"].append({"role": "lesion", "kind": "ellipsoid", "half_axes_mm": [diameter / 2] * 3,
                                "center_mm": [57.2 * math.cos(angle), 57.2 * math.sin(angle), 0],
                                "becquerel_per_ml": 3000.0 if i < 4 else -1000.0})
    return truth


def blank(n=400, h=1.0, slices=17, dz=3.25):
    first = [-(n - 1) / 2 * h, -(n - 1) / 2 * h, -(slices - 1) / 2 * dz]
    return pet.Image(np.zeros((slices, n, n), np.float32), [h, h, dz], first)


def test_circles(check):
    """A circle's area, its mean on a ramp, the standard deviation of a ramp over a disc: r / 2 for a slope of 1."""
    image = blank()
    image.values[:] = (image.first[0] + np.arange(400))[None, None, :] + 300  # value: x + 300
    for x, y, radius in ((0, 0, 5), (13.3, -40.7, 18.5), (-57.2, 31.1, 2.0)):
        mean, deviation, pixels = image.circle(x, y, 0, radius)
        check(abs(pixels / (math.pi * radius ** 2) - 1) < 0.02, f"circle of {radius} mm: {pixels} pixels")
        check(abs(mean - (x + 300)) < 0.03, f"circle at {x}: mean {mean}")
        check(abs(deviation / (radius / 2) - 1) < 0.1 / radius, f"circle of {radius} mm: deviation {deviation}")
    for x, z in ((198, 0), (0, 40)):
        try:
            image.circle(x, 0, z, 5)
            check(False, f"a circle at {x}, {z} outside the image was measured")
        except ValueError:
            pass


@pytest.mark.tier2("figures of the quality pages only")
def test_nema_figures(check):
    """The phantom itself has recovery 1 inside the spheres; mixing it with its background halves it; noise of sigma
    gives N = sigma over the root of the circle's pixels."""
    truth = iq_truth()
    image = pet.perfect(truth, blank())
    found = pet.nema(image, truth)
    check(found["nsr"] == 0 and found["over_truth"] == 1 and found["circles"] == 60,
          f"phantom: {found['nsr']}, {found['over_truth']}")
    check([s["diameter_mm"] for s in found["spheres"]] == [10, 13, 17, 22, 28, 37], f"spheres: {found['spheres']}")
    check([s["ratio"] for s in found["spheres"]] == [4, 4, 4, 4, 0, 0], f"ratios: {found['spheres']}")
    for s in found["spheres"]:
        check(abs(s["recovery"]["0.8"] - 1) < 0.01 and s["recovery"]["0.4"] == 1 and 0.85 < s["recovery"]["1"] < 1,
              f"phantom: {s}")
        check(s["variability"] == 0, f"phantom: N {s['variability']}")
    half = pet.Image(0.5 * image.values + 0.5 * 1000, image.spacing, image.first)
    for s in pet.nema(half, truth)["spheres"]:
        check(abs(s["recovery"]["0.4"] - 0.5) < 1e-6, f"half of the contrast: {s}")
    noise = np.random.default_rng(7).normal(0, 100, image.values.shape)
    noisy = pet.nema(pet.Image((image.values + noise).astype(np.float32), image.spacing, image.first), truth)
    check(abs(noisy["nsr"] / 0.1 - 1) < 0.03, f"noise of 10 %: NSR {noisy['nsr']}")
    for s in noisy["spheres"]:
        expected = 0.1 / math.sqrt(math.pi * s["diameter_mm"] ** 2 / 4)
        check(0.7 < s["variability"] / expected < 1.3,
              f"{s['diameter_mm']} mm: N {s['variability']}, expected about {expected}")
    clear = pet.clearances(truth)
    check(min(clear["sphere"], clear["edge"]) > 11 and clear["each_other"] > 0, f"background circles: {clear}")


@pytest.mark.tier2("figures of the quality pages only")
def test_orientation(check):
    truth = {"phantom": "f-shape", "size": 1.0, "shapes": [
        {"role": "body", "kind": "cylinder", "center_mm": [0, 0, 0], "half_axes_mm": [110, 110, 60],
         "becquerel_per_ml": 500.0},
        {"role": "lesion", "kind": "ellipsoid", "center_mm": [-62, 52, 12], "half_axes_mm": [9, 9, 9],
         "becquerel_per_ml": 20000.0},
        {"role": "lesion", "kind": "ellipsoid", "center_mm": [-30, 0, 0], "half_axes_mm": [10, 70, 16],
         "becquerel_per_ml": 10000.0}]}
    image = pet.perfect(truth, blank())
    found = pet.f_shape(image, truth)
    check(found["error_mm"] < 0.3 and found["mirrored_over_own"] < 0.3, f"F: {found}")
    for axis in (0, 1, 2):
        mirrored = pet.Image(np.flip(image.values, axis), image.spacing, image.first)
        check(pet.f_shape(mirrored, truth)["mirrored_over_own"] > 2,
              f"F mirrored along {axis}: {pet.f_shape(mirrored, truth)}")
    moved = pet.Image(np.roll(image.values, 2, 2), image.spacing, image.first)
    check(abs(pet.f_shape(moved, truth)["error_mm"] - 2) < 0.5, f"F moved by 2 mm: {pet.f_shape(moved, truth)}")
    check(pet.difference(moved, image) > 0.5 and pet.difference(image, image) == 0, "difference of images")


@pytest.mark.tier2("figures of the quality pages only")
def test_script_of_pet(folder, check):
    results = os.path.join(folder, "results.json")
    script = Script("quality_pet.py", check)
    found = script.measure(folder, results, results, limits=3)
    if not found:
        return
    check(all(s["units"] == "BQML" for s in found["studies"]), f"units {[s['units'] for s in found['studies']]}")
    check(sum(s["sums"] is not None for s in found["studies"]) >= 5, "sum(Ax) is in no report")
    by = {s["name"]: s["nema-iq"]["spheres"] for s in found["studies"] if "nema-iq" in s}
    rise = [b["recovery"]["1"] - a["recovery"]["1"] for a, b in zip(by["iq-20"], by["iq-40"])]
    check(min(rise) > 0, f"recovery does not rise from 20 to 40 iterations: {rise}")
    check(all(b["variability"] > a["variability"] for a, b in zip(by["iq-40"], by["iq-noise-40"])),
          "noise does not show in N")
    script.check_page(results, folder, "pet-quality.md", needs="matplotlib", pictures=6)


# ---- metal in tomosynthesis ----


def test_streaks_and_specks_of_metal(check):
    """A clip above the middle of a small volume: its streak is outside of it, and a speck that becomes faint is erased."""
    random, shape = np.random.default_rng(1), (20, 60, 50)
    clip = {"role": "metal", "center_mm": [5, 0, 27.5], "half_axes_mm": [0.25, 1.5, 0.25], "column": 24.5, "row": 29.5}
    speck = {"role": "lesion", "center_mm": [8, 4, 30.5], "half_axes_mm": [0.2] * 3, "column": 40, "row": 20}
    truth = {"support_mm": 17, "pixel_mm": 0.2, "angles_degrees": [-25, 25], "shapes": [clip, speck]}
    plain = 0.05 + 0.001 * random.standard_normal(shape)
    plain[13, 20, 40] += 0.1
    streak, bright = np.array(plain), np.array(plain)
    streak[2:5, 25:35, 23:27] += 0.02
    bright[10, 25:35, 23:27] += 1
    before, none = metal.streaks(truth, clip, [clip], [plain, streak, bright])
    check(before > 0 and none == 0, f"a streak and the clip itself: {before}, {none}")
    faint = np.array(plain)
    faint[13, 20, 40] -= 0.08
    check(metal.specks(truth, plain, plain) == (1, 0) and metal.specks(truth, plain, faint) == (1, 1), "specks")


@pytest.mark.tier2("figures of the quality pages only")
def test_report_of_metal(folder, check):
    one = {"clips": 2, "views": 25, "shadows": [25, 20], "distance_mm": [0.1, 0.2], "mu": [7, 8], "false": 0, "visible": 24, "erased": 1,
           "streaks": [[4e-4, 1e-6], [4e-4, 1e-6]]}
    parts = [os.path.join(folder, f"{i}.json") for i in range(2)]
    for path in parts:
        with open(path, "w", encoding="ascii") as f:
            json.dump({"rows": {"first": [one]}}, f)
    page = os.path.join(folder, "dbt-quality.md")
    write_file(page, "# Page\n\n## Metal\nold\n\n## Next\nstays\n")
    if not Script("quality_dbt_metal.py", check).call("report", *parts, "-o", folder):
        return
    text = read_file(page)
    check("| first | 2 | 4, 0 missed | 90.0 % | 0 | 0.2 | 2 of 48 | 95 %, median 95 % |" in text and "old" not in text and "{" not in text
          and text.endswith("\n\n## Next\nstays\n"), text)


# ---- the observer of tomosynthesis ----

@pytest.mark.tier2("figures of the quality pages only")
def test_observer(check):
    """The analytic case; no signal; d' is proportional to the signal; the channels' centre and axes."""
    exact, found = observer.analytic_case(studies=40)  # one study deviates by 9 %, so their mean by 1.5 %
    check(abs(found / exact - 1) < 0.05, f"analytic case: {found} for {exact}")
    random = np.random.default_rng(2)
    field, noise = random.normal(size=(200, 1)), random.normal(size=(2, 200, 4))
    absent, present = field + noise
    signal = np.array([1.0, 0, 0, 0.5])
    none, once, twice = (observer.detectability(absent, present + k * signal) for k in (0, 2, 4))
    check(none < 0.4 and abs(twice / once - 2) < 0.1, f"no signal {none}, a signal {once}, twice of it {twice}")
    exact = 2 * math.sqrt(signal @ np.linalg.solve(np.ones((4, 4)) + np.eye(4), signal))
    check(abs(once / exact - 1) < 0.1, f"d' {once}, expected {exact}")  # 200 pairs: 6 %
    x, y = np.arange(-20, 21) * 0.5 - 3, np.arange(-30, 31) * 0.5 + 4
    c = observer.channels(3, 4.0, x, y)
    check(np.unravel_index(c[0].argmax(), c[0].shape) == (22, 26), "the middle of the channels")
    gram = np.einsum("aij,bij->ab", c, c)
    check(np.abs(gram - np.eye(3)).max() < 1e-3, f"channels are orthonormal, but for the pixels: {gram}")


@pytest.mark.tier2("figures of the quality pages only")
def test_report_of_observer(folder, check):
    """Two parts of a study of known responses, the second row with twice the signal of the first one."""
    random, shift = np.random.default_rng(4), {"osem, 1 pass, 0.34 mm": 2.0, "osem, 1 pass, 0.17 mm": 4.0}
    for first in (60, 0):
        rows = []
        for name, signal in shift.items():
            for present in (0, 1):
                for task, (number, _, _) in observer.TASKS.items():
                    values = random.normal(size=(60, 3, number))
                    values[:, 1, 0] += present * signal
                    rows.append([name, present, task, values.tolist()])
        with open(os.path.join(folder, f"{first}.json"), "w", encoding="ascii") as f:
            json.dump({"device": "none", "pitch": 0.17, "analytic": [1, 1], "first": first, "pairs": 60, "responses": rows}, f)
    page = os.path.join(folder, "dbt-quality.md")
    write_file(page, "# Page\n\n## Detectability\nold\n\n## Next\nstays\n")
    script = Script("quality_dbt_observer.py", check)
    parts = [os.path.join(folder, f"{first}.json") for first in (60, 0)]
    if not script.call("report", *parts, "-o", folder):
        return
    text = read_file(page)
    check("old" not in text and "{" not in text and "nan" not in text and text.endswith("\n\n## Next\nstays\n"), text)
    found = {line.split(" | ")[0][2:]: [float(w.split(" ")[0]) for w in line.strip(" |").split(" | ")[1:]]
             for line in text.splitlines() if line.startswith("| osem") and "+-" in line}
    for name, signal in shift.items():  # 120 pairs: errors of d' of about 7 and 8 %
        for d, ratio in zip(found[name][::2], found[name][1::2]):
            check(abs(d / signal - 1) < 0.25 and abs(ratio / (signal / 2) - 1) < 0.3, f"{name}: {found[name]}")
    twice = subprocess.run([sys.executable, script.path, "report", parts[0], parts[0], "-o", folder], capture_output=True, text=True, check=False)
    check(twice.returncode == 1 and "the same pairs" in twice.stderr, f"one part twice: {twice}")


@pytest.mark.tier2("figures of the quality pages only")
def test_script_of_observer(folder, check):
    """The mass and the specks make the response of the first channel larger, in the slice in focus more than above it."""
    library = os.path.join(os.environ["TOMONODE_BUILD"], "libtomonode.so.0")
    if not os.path.exists(library):
        pytest.skip("needs libtomonode")
    out = os.path.join(folder, "results.json")
    script = os.path.join(os.environ["TOMONODE_SOURCE"], "tests", "quality_dbt_observer.py")
    done = subprocess.run([sys.executable, script, "run", "--pairs", "2", "--only", "osem, 1 pass", "-o", out], capture_output=True, text=True, check=False,
                          env={**os.environ, "TOMONODE_LIBRARY": library,
                               "PYTHONPATH": os.path.join(os.environ["TOMONODE_SOURCE"], "recon", "python")})
    check(done.returncode == 0 and done.stdout.startswith("met "), f"{done}")
    found = json.loads(read_file(out))["responses"]
    mean = {(name, present, task): np.mean(values, 0)[:, 0] for name, present, task, values in found}
    for name in ("osem, 1 pass, 0.34 mm", "osem, 1 pass, 0.17 mm"):
        for task in observer.TASKS:
            more = mean[name, 1, task] - mean[name, 0, task]
            check(more[1] > max(0, more[2]), f"{name}, {task}: {more}")
