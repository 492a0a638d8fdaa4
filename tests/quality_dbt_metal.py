#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what `metal = "reduce"` does to clips, to the tissue around them, and to calcifications.

    tests/quality_dbt_metal.py run [--tomonode PROGRAM] [--device cpu] [--breasts 50] [--only REGEX] -o results.json
    tests/quality_dbt_metal.py report RESULTS.json... -o docs        the section "Metal" of docs/dbt-quality.md

`run` needs numpy and pydicom. A breast: `simulate dbt` with clips at random places and, of the same seed, without; reconstructed without
clips, with them as tissue (metal = "off"), and with them as metal. A streak is the difference to the image without clips, its size the
root of its mean square over the shadows of a clip with 2 mm around them, in the slices 3 to 15 mm above and below it.
"""
import glob
import json
import math
import os
import re
import shutil
import tempfile
import time

import numpy as np
import pydicom

from quality_report import table, write_section
from quality_run import ONLY, TOMONODE, WORK, Programs, command, log_progress, print_verdicts, read_json, write_json

# name, options of simulate, settings of recon, part of --breasts
ROWS = [
    ("siemens-inspiration, 25 views over 50 degrees, osem, 0.17 mm", ["--detector", "480x800", "--binning", "2"], ["voxel=0.17"], 1),
    ("osem, 0.34 mm", ["--detector", "480x800", "--binning", "4"], ["voxel=0.34"], 0.2),
    ("fbp, 0.17 mm", ["--detector", "480x800", "--binning", "2"], ["voxel=0.17", "algorithm=fbp"], 0.2),
    ("a tenth of the photons", ["--detector", "480x800", "--binning", "2", "--i0", "1000"], ["voxel=0.17"], 0.2),
    ("scatter, not corrected", ["--detector", "480x800", "--binning", "2", "--scatter", "1"], ["voxel=0.17"], 0.2),
    ("scatter, corrected", ["--detector", "480x800", "--binning", "2", "--scatter", "1"], ["voxel=0.17", "scatter_correction=true"], 0.2),
    ("hologic-3dimensions, 15 views over 15 degrees", ["--system", "hologic-3dimensions", "--detector", "580x970", "--binning", "2"],
     ["voxel=0.14"], 0.2),
    ("ge-senoclaire, 9 views over 25 degrees", ["--system", "ge-senoclaire", "--detector", "410x680", "--binning", "2"], ["voxel=0.2"], 0.2),
]
FOUND, STREAKS = 97, 90  # percent: limits of the first row
NEAR, AROUND, AWAY, FAR = 2.0, 2.0, 3.0, 15.0  # mm
VISIBLE, ERASED = 5, 0.5  # a speck counts if it is this many standard deviations above the tissue; it is erased if less than this is left


def read_volume(folder):
    path, = glob.glob(os.path.join(folder, "*.dcm"))
    image = pydicom.dcmread(path)
    mapping = image.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    return image.pixel_array * float(mapping.RealWorldValueSlope) + float(mapping.RealWorldValueIntercept)


def places(truth, shape, volume):
    """Distances (z, y, x) of the voxels' centres from a shape, mm, to be broadcast. Columns and rows of the truth are of the bins."""
    z = truth["support_mm"] + np.arange(len(volume)) + 0.5 - shape["center_mm"][2]
    y, x = (np.arange(n) - shape[key] for n, key in zip(volume.shape[1:], ("row", "column")))
    return z[:, None, None], y[:, None] * truth["pixel_mm"], x * truth["pixel_mm"]


def streaks(truth, clip, clips, images):
    """Mean squares of the differences of the other images to the first one."""
    z, y, x = places(truth, clip, images[0])
    slope = math.tan(math.radians(max(map(abs, truth["angles_degrees"]))))
    half = [r + AROUND for r in clip["half_axes_mm"][:2]]
    area = (abs(z) >= AWAY) & (abs(z) <= FAR) & (images[0] != 0)
    area &= (abs(y) <= half[1] + slope * abs(z)) & (abs(x) <= half[0] + 0.15 * abs(z))
    for other in clips:  # the clips themselves are no streaks
        dz, dy, dx = (abs(a) <= r + AROUND for a, r in zip(places(truth, other, images[0]), other["half_axes_mm"][::-1]))
        area &= ~(dz & dy & dx)
    return [float(np.mean((i[area] - images[0][area]) ** 2)) for i in images[1:]]


def specks(truth, without, reduced):
    """Count the visible specks without clips, and those of them that are erased with clips that are reduced."""
    visible = erased = 0
    for s in truth["shapes"]:
        if s["role"] not in ("lesion", "bead") or s["half_axes_mm"][0] > 0.6:
            continue
        distances = places(truth, s, without)
        around, own = (np.ix_(*(np.flatnonzero(abs(d.ravel()) <= r) for d, r in zip(distances, (1.0, side, side)))) for side in (3.0, 0.5))
        if min(without[own].shape) == 0:
            continue
        a, b = without[around], reduced[around]
        top, noise = without[own].max() - np.median(a), 1.4826 * np.median(abs(a - np.median(a)))
        visible += bool(top > VISIBLE * noise)
        erased += bool(top > VISIBLE * noise and reduced[own].max() - np.median(b) < ERASED * top)
    return visible, erased


def breast(program, device, row, seed, folder):
    _, options, settings, _ = row
    what = [*options, "--seed", seed, "--thickness", 30 + 7 * seed % 31, "--glandular", 10 + 11 * seed % 31]
    images = []
    for clips, metal in ((0, "off"), (1 + seed % 3, "off"), (1 + seed % 3, "reduce")):
        exam, out = (os.path.join(folder, f"{name}{clips}") for name in ("exam", f"{metal}"))
        if not os.path.exists(exam):
            program("simulate", "dbt", *what, "--clips", clips, "-o", exam)
        sets = [x for s in (*settings, f"metal={metal}") for x in ("--set", s)]
        case = json.loads(program("recon", "--json", "--device", device, "--protocol", "dbt-osem", *sets, "-o", out, exam))["cases"][0]
        images.append(read_volume(out))
    truth = read_json(os.path.join(exam, "truth.json"))
    clips = [s for s in truth["shapes"] if s["role"] == "metal"]

    def distance(found, clip):  # along the ray through the object it is not known well
        d = np.subtract(found["position_mm"], clip["center_mm"])
        return float(max(np.hypot(*d[:2]), abs(d[2]) / 2))

    best = [min(case["metal"], key=lambda o: distance(o, c), default=None) for c in clips]
    found = [o if o and distance(o, c) <= NEAR else None for o, c in zip(best, clips)]
    visible, erased = specks(truth, images[0], images[2])
    return {"seed": seed, "clips": len(clips), "views": len(truth["angles_degrees"]),
            "shadows": [o["projections"] if o else 0 for o in found], "distance_mm": [distance(o, c) for o, c in zip(found, clips) if o],
            "mu": [o["rise_per_width"] for o in found if o], "false": sum(all(distance(o, c) > NEAR for c in clips) for o in case["metal"]),
            "visible": visible, "erased": erased, "streaks": [streaks(truth, c, clips, images) for c in clips]}


def sums(breasts):
    """Return the figures of a row: percent of shadows, streaks after / before, worst of them, and counts."""
    before, after = (np.array([s[k] for b in breasts for s in b["streaks"]]) for k in (0, 1))
    return {"clips": sum(b["clips"] for b in breasts), "missed": sum(s == 0 for b in breasts for s in b["shadows"]),
            "found": 100 * sum(sum(b["shadows"]) for b in breasts) / sum(b["clips"] * b["views"] for b in breasts),
            "false": sum(b["false"] for b in breasts), "visible": sum(b["visible"] for b in breasts),
            "erased": sum(b["erased"] for b in breasts), "place": max(d for b in breasts for d in b["distance_mm"]),
            "less": 100 * (1 - math.sqrt(after.sum() / before.sum())), "median": 100 * float(np.median(1 - np.sqrt(after / before)))}


def run(args):
    program, began, results = Programs(args.tomonode), time.monotonic(), {"rows": {}}
    for row in ROWS:
        if not re.search(args.only, row[0]):
            continue
        found = results["rows"].setdefault(row[0], [])
        for seed in range(1, 1 + max(1, round(row[3] * args.breasts))):
            folder = tempfile.mkdtemp(dir=args.work)
            found.append(breast(program, args.device, row, seed, folder))
            shutil.rmtree(folder)
            log_progress(began, f"{row[0]}: {found[-1]}")
            write_json(args.output, results)
    worst = []
    for name, breasts in results["rows"].items():
        s = sums(breasts)
        print(name, s)
        if name == ROWS[0][0]:
            worst += [("shadows found", s["found"], FOUND, "%", s["found"] >= FOUND), ("specks erased", s["erased"], 0, "", s["erased"] == 0),
                      ("objects that are no clip", s["false"], 0, "", s["false"] == 0),
                      ("streaks down by", s["less"], STREAKS, "%", s["less"] >= STREAKS)]
    return print_verdicts(worst, time.monotonic() - began)


def report(args):
    rows = {}
    for path in args.results:
        for name, breasts in read_json(path)["rows"].items():
            rows.setdefault(name, []).extend(breasts)
    lines = []
    for name, breasts in rows.items():
        s = sums(breasts)
        lines.append([name, len(breasts), f"{s['clips']}, {s['missed']} missed", f"{s['found']:.1f} %", s["false"], f"{s['place']:.1f}",
                      f"{s['erased']} of {s['visible']}", f"{s['less']:.0f} %, median {s['median']:.0f} %"])
    head = ["", "breasts", "clips", "shadows found", "objects that are no clip", "worst place, mm", "specks erased", "streaks down by"]
    write_section(os.path.join(args.output, "dbt-quality.md"), "quality_dbt_metal", {"metal": table(head, lines)})


if __name__ == "__main__":
    command(__doc__, run, report, several=True, tomonode=TOMONODE, device={"default": "cpu"}, only=ONLY, work=WORK,
            breasts={"type": int, "default": 50, "help": "of the first row; others have a fifth of it"})
