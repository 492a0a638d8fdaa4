#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Simulated exams end to end: every bead of truth.json is where the result's own attributes say, for L and R, CC and MLO, both formats,
two systems (the angle in (0018,1510) and in (0018,1531)); the simulator's shadows are where PS3.3 puts them; a slab keeps its
attenuation, flat in depth."""
import glob
import math
import os
import sys

import numpy as np
import pydicom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tools import dbt_tools as tools  # noqa: E402

RIGHT, UP = np.array([-1.0, 0, 0]), np.array([0, 0, 1.0])
BINNING = {"siemens-inspiration": 4, "ge-essential": 2}  # half the angle, so twice the detail for the same certainty in depth
AXIS_HEIGHT, SOURCE_AXIS = 47.0, 608.5  # mm, of siemens-inspiration


def check_truth(truth, axes, name, failures):
    """The simulator's patient coordinates, against directions written down in dbt_tools.py."""
    for s in truth["shapes"]:
        tools.check(np.allclose(np.array(s["center_mm"]) @ axes, s["patient_mm"], atol=1e-3),
                    f"{name}: truth puts {s['center_mm']} at {s['patient_mm']}", failures)


def pixel_directions(text):
    """Column and row direction in the patient: of a CC view exactly, of others by the first letter."""
    return [np.array(tools.DIRECTION[t[0]], float) for t in text]


def check_shadow(ds, frames, truth, axes, name, failures):
    """A bead throws its shadow where the line from the source through it meets the detector, in the patient's coordinates; Breast
    Projection only, where PS3.3 C.8.31.6 fixes all signs: angles from up toward the patient's right, about an axis to the rear."""
    bead = max((s for s in truth["shapes"] if s["role"] == "bead"), key=lambda s: s["mu_per_mm"] * s["half_axes_mm"][0])
    place = np.array(bead["patient_mm"])
    shared = ds.SharedFunctionalGroupsSequence[0]
    lie = (shared if "PatientOrientationInFrameSequence" in shared else ds.PerFrameFunctionalGroupsSequence[0])
    column, row = pixel_directions(lie.PatientOrientationInFrameSequence[0].PatientOrientation)
    pitch = truth["pixel_mm"]
    for i in (0, len(frames) - 1):
        group = ds.PerFrameFunctionalGroupsSequence[i]
        system = (group if "IsocenterReferenceSystemSequence" in group else shared).IsocenterReferenceSystemSequence[0]
        a = math.radians(system.XRaySourceIsocenterPrimaryAngle)
        beam = math.cos(a) * UP + math.sin(a) * RIGHT
        source = AXIS_HEIGHT * axes[2] + SOURCE_AXIS * beam
        t = (source @ axes[2]) / ((source - place) @ axes[2])
        hit = source + t * (place - source)  # on the detector plane through the origin
        x, y = hit @ axes[0], hit @ axes[1]
        along = (column @ axes[0], row @ axes[1])
        c = x / pitch - 0.5 if along[0] > 0 else ds.Columns - 0.5 - x / pitch
        r = ds.Rows / 2 - 0.5 + y / pitch * (1 if along[1] > 0 else -1)
        image = frames[i].astype(float)
        w = 2 + round(2 * bead["half_axes_mm"][0] / pitch)
        r0, c0 = round(r), round(c)
        if not (3 * w < r0 < ds.Rows - 3 * w and 3 * w < c0 < ds.Columns - 3 * w):
            continue
        around = image[r0 - 3 * w:r0 + 3 * w + 1, c0 - 3 * w:c0 + 3 * w + 1]
        dark = np.clip(np.median(around) - around, 0, None) ** 2
        rr, cc = np.mgrid[-3 * w:3 * w + 1, -3 * w:3 * w + 1]
        off = math.hypot((dark * rr).sum() / dark.sum() + r0 - r, (dark * cc).sum() / dark.sum() + c0 - c)
        tools.check(off * pitch < 0.5 and around[3 * w, 3 * w] < 0.9 * np.median(around),
                    f"{name}: frame {i + 1}: the shadow is {off * pitch:.2f} mm from where it must be", failures)


def check_beads(options, failures):
    name = " ".join(f"{v}" for v in options.values())
    with tools.folder() as folder:
        exam, out = os.path.join(folder, "exam"), os.path.join(folder, "out")
        truth = tools.simulate(exam, phantom="beads", binning=BINNING[options["system"]], i0=20000, seed=5, **options)
        axes = tools.scan_axes(options["side"], options["view"])
        check_truth(truth, axes, name, failures)
        if options["format"] == "bp":
            path = next(p for p in glob.glob(os.path.join(exam, "**", "*"), recursive=True) if p.endswith(".dcm"))
            ds = pydicom.dcmread(path)
            check_shadow(ds, ds.pixel_array, truth, axes, name, failures)
        _, path = tools.reconstruct(out, exam, settings=("voxel=0", "projector=slices"))
        result = tools.Result(path)
        thickness = math.ceil(truth["thickness_mm"])
        tools.check(len(result.positions) == thickness, f"{name}: {len(result.positions)} slices", failures)
        tools.check(np.allclose(result.slice_step, axes[2], atol=1e-5), f"{name}: slices go {result.slice_step}", failures)
        worst = np.zeros(3)
        found = [s for s in truth["shapes"] if s["role"] == "bead"]
        tools.check(len(found) >= 5, f"{name}: {len(found)} beads", failures)
        binning = result.spacing[0] / truth["pixel_mm"]
        for s in found:
            radius = s["half_axes_mm"][0]
            k, r, c, contrast = result.bead(s["patient_mm"], radius)
            off = abs(axes @ (result.patient(k, r, c) - s["patient_mm"]))
            worst = np.maximum(worst, off)
            tools.check(off[0] < 0.1 and off[1] < 0.1 and off[2] < 0.5,
                        f"{name}: bead {s['center_mm']} is off by {off.round(3)} mm in x, y, z (contrast {contrast:.3f}/mm)", failures)
            # and in the stored image: column and row of the source's pixels
            column, row = (c + 0.5) * binning - 0.5, (r + 0.5) * binning - 0.5
            tools.check(abs(column - s["column"]) * truth["pixel_mm"] < 0.1 and abs(row - s["row"]) * truth["pixel_mm"] < 0.1,
                        f"{name}: bead at column {column:.2f}, row {row:.2f}, truth {s['column']}, {s['row']}", failures)
        print(f"{name}: {len(found)} beads, off by at most {worst.round(3)} mm in x, y, z")


def write_config(path, i0):
    with open(path, "w", encoding="ascii") as f:
        f.write("profiles = ( { name = \"siemens-inspiration\"; manufacturer = \"SIEMENS*\"; model = \"*Inspiration*\"; axis_height = 47.0;"
                " source_axis = 608.5; support = 17.0; pitch = 0.085; sid_tolerance = 6.0; i0_mode = \"fixed\"; scale_by_exposure = true;"
                f" i0 = {float(i0)}; }} );\n")


def check_slab(image_format, failures):
    with tools.folder() as folder:
        exam, out = os.path.join(folder, "exam"), os.path.join(folder, "out")
        config = os.path.join(folder, "conf")
        write_config(config, 32000)
        # each projection has its own exposure; i0 is that of their mean
        truth = tools.simulate(exam, system="siemens-inspiration", phantom="slab", binning=8, i0=500, format=image_format, side="L",
                               view="CC", seed=3, config=config)
        exposures = truth["relative_exposure"]
        tools.check(max(exposures) > 1.02 * min(exposures), f"slab {image_format}: exposures {exposures}", failures)
        tools.check(abs(np.mean(exposures) - 1) < 1e-9, f"slab {image_format}: exposures of mean {np.mean(exposures)}", failures)
        write_config(config, truth["i0"])
        _, path = tools.reconstruct(out, exam, config=config, settings=("voxel=0", "projector=slices"))
        result = tools.Result(path)
        body = next(s for s in truth["shapes"] if s["role"] == "body")
        n, rows, columns = result.mu.shape
        axes = tools.scan_axes("L", "CC")
        k, r, c = result.index(np.array(body["center_mm"]) @ axes)
        w = [round(0.25 * h / s) for h, s in zip((body["half_axes_mm"][1], body["half_axes_mm"][0]), result.spacing)]
        centre = result.mu[:, round(r) - w[0]:round(r) + w[0], round(c) - w[1]:round(c) + w[1]].mean(axis=(1, 2)).astype(float)
        height = n * np.linalg.norm(result.slice_step)
        want = body["mu_per_mm"] * 2 * body["half_axes_mm"][2]
        got = centre.mean() * height
        shading = (centre.max() - centre.min()) / centre.mean()
        tools.check(abs(got / want - 1) < 0.01, f"slab {image_format}: mu * H = {got:.4f}, mu * T = {want:.4f}", failures)
        tools.check(shading < 0.01, f"slab {image_format}: depth shading {100 * shading:.2f} %", failures)
        print(f"slab {image_format}: mu * H / mu * T = {got / want:.5f}, depth shading {100 * shading:.3f} %")


def main():
    failures = []
    for system, image_format in (("siemens-inspiration", "mg"), ("siemens-inspiration", "bp"), ("ge-essential", "mg")):
        for side in "LR":
            for view in ("CC", "MLO"):
                check_beads({"system": system, "format": image_format, "side": side, "view": view}, failures)
    for image_format in ("mg", "bp"):
        check_slab(image_format, failures)
    tools.finish(failures, "all beads found")


main()
