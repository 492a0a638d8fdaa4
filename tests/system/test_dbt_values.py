#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The attenuation of a tomosynthesis result is right, or it is called relative: a slab of 0.050/mm in images with more and less air, without
any, and with air over the range of the detector; `require_quantitative`; the value of the profile. Filtered backprojection of the same slab's
beads."""
import json
import os
import sys

import numpy as np
import pydicom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tools import dbt_tools as tools  # noqa: E402

MU = 0.05  # 1/mm
OPTIONS = {"binning": 4, "detector": "640x1500", "views": 9, "arc": 40}
CONFIG = """profiles = ( {{ name = "siemens-inspiration"; air_value = {air:.1f}; }} );"""


def change(source, target, columns, rows, values=None):
    """Copy the images with the `columns` next to the chest wall and the `rows` in the middle; values: what becomes of the pixels."""
    os.makedirs(target)
    for name in sorted(os.listdir(source)):
        if not name.endswith(".dcm"):
            continue
        ds = pydicom.dcmread(os.path.join(source, name))
        image = ds.pixel_array
        first = (image.shape[0] - rows) // 2
        image = image[first:first + rows]
        image = image[:, :columns] if ds.PatientOrientation[0] == "A" else image[:, -columns:]
        image = values(image) if values else image
        ds.FieldOfViewOrigin[0] += first * OPTIONS["binning"]
        ds.Rows, ds.Columns, ds.PixelData = *image.shape, np.ascontiguousarray(image).tobytes()
        ds.save_as(os.path.join(target, name))


def middle(path):
    """The median attenuation in the middle of the slab, and the label of its values."""
    result = tools.Result(path)
    n = result.mu.shape
    mapping = result.ds.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    return float(np.median(result.mu[n[0] // 4:3 * n[0] // 4, n[1] // 3:2 * n[1] // 3, n[2] // 3:2 * n[2] // 3])), mapping.LUTLabel


def check_slab(folder, failures):
    exam = os.path.join(folder, "slab")
    truth = tools.simulate(exam, phantom="slab", **OPTIONS)
    air = truth["i0"]

    def over_range(image):  # as a system that writes 16383 beside values up to 3648, in 16 bits
        return np.where(image > air / 2, 65535, image / 4).astype(image.dtype)

    def covered(image):  # as if more of the slab covered the air
        dark = np.median(image[image < air / 2])
        return np.where(image > air / 2, dark, image).astype(image.dtype)

    # columns, rows, pixels, sources of I0 that must occur
    cases = (("air", 160, 375, None, {"air"}), ("narrow", 142, 320, None, {"air", "other_views"}), ("sides", 132, 300, None, {"air", "other_views"}),
             ("none", 132, 300, covered, {"unknown"}), ("over-range", 160, 375, over_range, {"unknown"}))
    for name, columns, rows, values, sources in cases:
        change(exam, os.path.join(folder, name), columns, rows, values)
        case, path = tools.reconstruct(os.path.join(folder, name + "-out"), os.path.join(folder, name))
        mu, label = middle(path)
        found = {k for k, n in case["unattenuated"].items() if n > 0}
        tools.check(found == sources, f"{name}: I0 from {case['unattenuated']}", failures)
        known = "unknown" not in sources
        tools.check(case["quantitative"] == known and label == ("ATTENUATION" if known else "RELATIVE"), f"{name}: {case['quantitative']}, {label}",
                    failures)
        tools.check(not known or abs(mu / MU - 1) < 0.02, f"{name}: {mu:.4f} instead of {MU}/mm", failures)
        tools.check(known == ("relative" not in case["warnings"]), f"{name}: warnings '{case['warnings']}'", failures)
    held = tools.run("recon", "--json", "--device", "cpu", "--set", "require_quantitative=true", "-o", os.path.join(folder, "held"),
                     os.path.join(folder, "none"), ok=(4,))
    reason = json.loads(held.stdout)["refused"][0]["reason"]
    tools.check("would be relative" in reason and "siemens-inspiration" in reason, reason, failures)
    tools.run("recon", "--device", "cpu", "--set", "require_quantitative=true", "-o", os.path.join(folder, "held"), os.path.join(folder, "air"))
    config = os.path.join(folder, "conf")
    for name, level in (("none", air), ("over-range", air / 4)):
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG.format(air=level))
        case, path = tools.reconstruct(os.path.join(folder, name + "-profile"), os.path.join(folder, name), config=config)
        mu, label = middle(path)
        tools.check(case["unattenuated"]["profile"] == 9 and case["quantitative"] and label == "ATTENUATION", f"{name}: {case}", failures)
        tools.check(name == "none" or abs(mu / MU - 1) < 0.02, f"{name} with air_value: {mu:.4f} instead of {MU}/mm", failures)


def check_penalty(folder, failures):
    """A penalty lowers the noise of the slab, keeps its attenuation, and is in the result; without it nothing of it is."""
    noise = {}
    for weight in ("0", "0.3"):
        out = os.path.join(folder, "prior-" + weight)
        run = tools.run("recon", "--json", "--device", "cpu", "--set", "iterations=2", "--set", f"prior_weight={weight}", "-o", out,
                        os.path.join(folder, "air"))
        path = os.path.join(out, json.loads(run.stdout)["cases"][0]["file"])
        mu = tools.Result(path).mu
        n = mu.shape
        part = mu[n[0] // 2, n[1] // 3:2 * n[1] // 3, n[2] // 3:2 * n[2] // 3]
        noise[weight] = float(part.std())
        tools.check(abs(part.mean() / MU - 1) < 0.03, f"prior_weight={weight}: {part.mean():.4f} instead of {MU}/mm", failures)
        with open(path, "rb") as f:
            tools.check((b"prior_weight=0.3" in f.read()) == (weight != "0"), f"prior_weight={weight} in the result", failures)
    tools.check(noise["0.3"] < 0.9 * noise["0"], f"noise {noise}", failures)


def check_fbp(folder, failures):
    exam = os.path.join(folder, "beads")
    truth = tools.simulate(exam, phantom="beads", binning=4, seed=5)
    run = tools.run("recon", "--json", "--device", "cpu", "--protocol", "dbt-fbp", "-o", os.path.join(folder, "fbp"), exam)
    case = json.loads(run.stdout)["cases"][0]
    result = tools.Result(os.path.join(folder, "fbp", case["file"]))
    tools.check(result.mu.min() < -0.01, f"fbp: least value {result.mu.min():.4f}: not filtered", failures)
    beads = [s for s in truth["shapes"] if s["role"] == "bead"]
    for s in beads:
        k, r, c, contrast = result.bead(s["patient_mm"], s["half_axes_mm"][0])
        off = result.patient(k, r, c) - np.array(s["patient_mm"])
        away = np.array([off @ axis for axis in tools.scan_axes("L", "CC")])
        tools.check(np.hypot(away[0], away[1]) < 0.4 and abs(away[2]) < 1.5, f"fbp: a bead is off by {away}", failures)
        tools.check(contrast > 0.02, f"fbp: a bead has a contrast of {contrast:.4f}/mm", failures)
    tools.check(len(beads) >= 5, f"{len(beads)} beads", failures)


def main():
    failures = []
    with tools.folder() as folder:
        check_slab(folder, failures)
        check_penalty(folder, failures)
        check_fbp(folder, failures)
    tools.finish(failures, "tomosynthesis: attenuation within 2 %, or called relative; filtered backprojection finds the beads")


main()
