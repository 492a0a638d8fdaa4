#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the contents of a PACS (Orthanc) after the demo's exam with the exam that was sent and with the phantom's truth.

check_result.py state LIST.json                         print "JOB STATE" of the newest job in the output of `tomonode list --json`
check_result.py check --pacs URL --exam DIR --out DIR   fetch, check, write pictures; exit 0 only if all is right
check_result.py stages --show SHOW.json --send-start S --send-end S
                                                        where the time went, out of `tomonode show --json`

Positions are computed from the position, orientation and spacing attributes of the object and from the patient coordinates of the
truth, independently of the program's geometry."""
import argparse
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import urllib.request

import numpy as np
import pydicom

BREAST_TOMOSYNTHESIS = "1.2.840.10008.5.1.4.1.1.13.1.3"
# Tolerance of a bead's centre: the same as in the project's tests with noise-free exams; in-plane it holds with the demo's noise too.
BEAD_PLANE_MM, BEAD_SLICES = 0.1, 0.5
BODY_RELATIVE = 0.05  # of mu in the body's interior: the breast's rim and the beads' streaks are in the 60 mm around it


class Checks:
    def __init__(self):
        self.failed = 0

    def __call__(self, ok, text):
        print(("  ok      " if ok else "  FAILED  ") + text)
        self.failed += not ok
        return bool(ok)


def get(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read()


def fetch(pacs, out, check):
    """Download the only object in the PACS and return its path; None if there are none or several."""
    ids = json.loads(get(pacs + "/instances"))
    if not check(len(ids) == 1, f"the PACS contains {len(ids)} object(s), expected 1"):
        return None
    path = os.path.join(out, "result.dcm")
    with open(path, "wb") as f:
        f.write(get(f"{pacs}/instances/{ids[0]}/file"))
    return path


class Volume:
    """The frames as attenuation in 1/mm, and the transform between (frame, row, column) and patient coordinates."""

    def __init__(self, ds):
        shared = ds.SharedFunctionalGroupsSequence[0]
        cosines = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float)
        self.spacing = [float(v) for v in shared.PixelMeasuresSequence[0].PixelSpacing]
        positions = [f.PlanePositionSequence[0].ImagePositionPatient for f in ds.PerFrameFunctionalGroupsSequence]
        self.positions = np.array(positions, float)
        self.slice = self.positions[1] - self.positions[0]
        self.slice_mm = float(np.linalg.norm(self.slice))
        self.steps = np.stack([self.slice, cosines[3:] * self.spacing[0], cosines[:3] * self.spacing[1]], axis=1)
        mapping = shared.RealWorldValueMappingSequence[0]
        self.mu = ds.pixel_array * np.float32(mapping.RealWorldValueSlope) + np.float32(mapping.RealWorldValueIntercept)

    def index(self, patient_mm):
        return np.linalg.solve(self.steps, np.asarray(patient_mm, float) - self.positions[0])

    def box(self, at, half_mm):
        """Return the part of the volume within half_mm (along z, rows, columns) of the index `at`, and its first index."""
        size = (self.slice_mm, *self.spacing)
        lo = [max(0, math.floor(a - h / s)) for a, h, s in zip(at, half_mm, size)]
        hi = [min(n, math.ceil(a + h / s) + 1) for a, h, s, n in zip(at, half_mm, size, self.mu.shape)]
        return self.mu[lo[0]:hi[0], lo[1]:hi[1], lo[2]:hi[2]].astype(float), np.array(lo)

    def bead(self, at, radius):
        """Return the centre (index) of the bright spot near `at`, and its peak above the surrounding tissue."""
        part, lo = self.box(at, (3, 3, 3))
        part = part - np.median(part, axis=(1, 2), keepdims=True)
        k, r, c = np.unravel_index(np.argmax(part), part.shape)
        rows, columns = np.mgrid[0:part.shape[1], 0:part.shape[2]]

        def disc(row, column, mm):
            return ((rows - row) * self.spacing[0]) ** 2 + ((columns - column) * self.spacing[1]) ** 2 <= mm ** 2

        weight = np.clip(part[k] - part[k].max() / 3, 0, None) * disc(r, c, 1.5 * radius + 0.5)
        row, column = (weight * rows).sum() / weight.sum(), (weight * columns).sum() / weight.sum()
        profile = (part * disc(row, column, max(radius, 0.7 * max(self.spacing)))).sum(axis=(1, 2))
        k = int(np.argmax(profile))
        z = float(k)
        if 0 < k < len(profile) - 1:  # the vertex of the parabola through three slices
            a, b, c2 = profile[k - 1:k + 2]
            z += 0.5 * (a - c2) / (a - 2 * b + c2)
        return lo + np.array([z, row, column]), float(part.max())


def check_header(ds, sent, truth, check):
    check(ds.SOPClassUID == BREAST_TOMOSYNTHESIS, "it is a Breast Tomosynthesis Image object")
    check(list(ds.ImageType) == ["DERIVED", "PRIMARY", "TOMOSYNTHESIS", "NONE"], f"its image type is {chr(92).join(ds.ImageType)}")
    measures = ds.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]
    spacing = [float(v) for v in measures.PixelSpacing]
    bins = [round(s / truth["pixel_mm"]) for s in spacing]
    want = (truth["rows"] // bins[0], truth["columns"] // bins[1])
    check((ds.Rows, ds.Columns) == want, f"{ds.Rows} rows x {ds.Columns} columns of {spacing[0]:g} x {spacing[1]:g} mm, expected {want[0]} x {want[1]}")
    slices = math.ceil(truth["thickness_mm"] / float(measures.SpacingBetweenSlices) - 1e-9)
    check(int(ds.NumberOfFrames) == slices, f"{ds.NumberOfFrames} slices, expected {slices}")
    derivation = ds.SharedFunctionalGroupsSequence[0].DerivationImageSequence[0]
    named = sorted(i.ReferencedSOPInstanceUID for i in derivation.SourceImageSequence)
    check(named == sorted(s.SOPInstanceUID for s in sent), f"its {len(named)} source references are the {len(sent)} images sent")
    one = sent[0]
    check(all(ds.get(k) == one.get(k) for k in ("PatientID", "PatientName", "StudyInstanceUID", "AccessionNumber", "FrameOfReferenceUID")),
          "patient, study, accession and frame of reference are the exam's")
    laterality = ds.SharedFunctionalGroupsSequence[0].FrameAnatomySequence[0].FrameLaterality
    check(laterality == truth["side"], f"its laterality is {laterality}")


def share(part):
    """Say what a lesion's contrast means: only its sign is checked."""
    return (f"{100 * part:.0f} % of it is seen, because an arc of 50 degrees spreads a mass over many slices, and noise changes it by some percent; "
            "ok means only that the sign is right, the values are not those of the mass")


def check_phantom(volume, truth, check):
    found = []
    for s in truth["shapes"]:
        at = volume.index(s["patient_mm"])
        if s["role"] == "bead":
            peak, contrast = volume.bead(at, s["half_axes_mm"][0])
            found.append((np.abs(peak - at) * (volume.slice_mm, *volume.spacing), contrast))
    off = np.array([o for o, _ in found])
    low = min(c for _, c in found)
    check(len(found) > 0 and off[:, 1:].max() <= BEAD_PLANE_MM and off[:, 0].max() <= BEAD_SLICES * volume.slice_mm and low > 0,
          f"{len(found)} beads are at their true positions: largest error {off[:, 1:].max():.3f} mm in the slice, {off[:, 0].max():.2f} mm across")
    lesions = [s for s in truth["shapes"] if s["role"] == "lesion"]
    seen = [s for s in lesions if min(s["half_axes_mm"]) >= max(volume.spacing)]
    print(f"  --      {len(lesions) - len(seen)} of {len(lesions)} lesions have no room for a pixel of {max(volume.spacing):g} mm and are left out")
    for s in seen:
        at, half = volume.index(s["patient_mm"]), np.array(s["half_axes_mm"])
        inner, _ = volume.box(at, (0.5, 0.5 * half[1], 0.5 * half[0]))
        around, _ = volume.box(at, (0.5, 2.5 * half[1], 2.5 * half[0]))
        contrast = np.mean(inner) - np.median(around)
        check(contrast * s["mu_per_mm"] > 0, f"lesion at row {at[1]:.0f}, column {at[2]:.0f}, slice {at[0] + 1:.0f}: {contrast:+.4f}/mm relative to its "
              f"surroundings, true difference {s['mu_per_mm']:+.4f}/mm; {share(contrast / s['mu_per_mm'])}")
    check_body(volume, truth, check)



def height(shape, x, y):
    """Return the length in mm of the line through (x, y) along z inside a shape; not valid at the breast's rim."""
    (cx, cy, _), (rx, ry, rz) = shape["center_mm"], shape["half_axes_mm"]
    inside = 1 - ((x - cx) / rx) ** 2 - ((y - cy) / ry) ** 2
    return 2 * rz * (np.sqrt(np.clip(inside, 0, None)) if shape["kind"] == "ellipsoid" else 1.0)


def check_body(volume, truth, check):
    """Check the mean of mu * height over the middle 60 % of the body along both axes: a limited angle blurs along z but keeps integrals."""
    body = next(s for s in truth["shapes"] if s["role"] == "body")
    (cx, cy, _), (rx, ry, rz) = body["center_mm"], body["half_axes_mm"]
    if body["kind"] == "breast":  # half of it: it starts at the chest wall
        cx, rx = cx + rx / 2, rx / 2
    x, y = np.meshgrid(np.linspace(cx - 0.6 * rx, cx + 0.6 * rx, 301), np.linspace(cy - 0.6 * ry, cy + 0.6 * ry, 301))
    want = truth["breast"]["mean_line"] if "breast" in truth else sum(np.mean(s["mu_per_mm"] * height(s, x, y)) for s in truth["shapes"])
    origin = np.array(body["patient_mm"])
    middle = volume.index(origin + (cx - body["center_mm"][0]) * np.array([0, -1, 0]))  # x of the scan is anterior
    part, _ = volume.box(middle, (rz, 0.6 * ry, 0.6 * rx))
    got = float(part.sum(axis=0).mean() * volume.slice_mm)
    check(abs(got / want - 1) <= BODY_RELATIVE,
          f"attenuation through the middle of the body: {got:.3f}, truth {want:.3f} ({100 * (got / want - 1):+.1f} %)")


def check_standard(path, check):
    if not shutil.which("dciodvfy"):
        print("  --      dciodvfy (dicom3tools) is not installed; the attributes of the object were not validated")
        return
    for options in ([], ["-profile", "IHEDBT"]):
        done = subprocess.run(["dciodvfy", *options, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        errors = [line for line in done.stdout.splitlines() if line.startswith("Error")]
        check(not errors, f"{' '.join(['dciodvfy', *options])}: {len(errors)} errors" + "".join(f"\n            {e}" for e in errors[:5]))


def pictures(volume, truth, out):
    from PIL import Image  # pylint: disable=import-outside-toplevel

    wanted = {volume.mu.shape[0] // 2}
    for role in ("lesion", "bead"):
        wanted |= {round(volume.index(s["patient_mm"])[0]) for s in [s for s in truth["shapes"] if s["role"] == role][:2]}
    body = max(s["mu_per_mm"] for s in truth["shapes"] if s["role"] == "body")
    for k in sorted(w for w in wanted if 0 <= w < volume.mu.shape[0]):
        grey = np.clip(volume.mu[k] / (1.6 * body), 0, 1)
        path = os.path.join(out, f"slice-{k + 1:02d}.png")
        Image.fromarray((255 * grey).astype(np.uint8)).save(path, optimize=True)
        print(f"  picture {path}")


def command_state(a):
    with open(a.list, encoding="utf-8") as f:
        jobs = json.load(f)["jobs"]
    if jobs:
        newest = max(jobs, key=lambda j: j["id"])
        print(newest["id"], newest["state"])


def command_check(a):
    check = Checks()
    path = fetch(a.pacs, a.out, check)
    if not path:
        return 1
    with open(os.path.join(a.exam, "truth.json"), encoding="utf-8") as f:
        truth = json.load(f)
    sent = [pydicom.dcmread(p, stop_before_pixels=True) for p in sorted(glob.glob(os.path.join(a.exam, "**", "*.dcm"), recursive=True))]
    ds = pydicom.dcmread(path)
    check_header(ds, sent, truth, check)
    volume = Volume(ds)
    check_phantom(volume, truth, check)
    check_standard(path, check)
    pictures(volume, truth, a.out)
    return 1 if check.failed else 0


def command_stages(a):
    with open(a.show, encoding="utf-8") as f:
        show = json.load(f)
    names = {"assemble": "assembling the case", "wait": "waiting for a worker", "check": "checking the files", "open": "opening", "read": "reading", "prepare": "preparation",
             "reconstruct": "reconstruction", "write": "writing", "process": "worker start and end", "send": "delivery"}
    delivered = [e["time"] for e in show["events"] if e["event"] == "delivered"][-1]
    print(f"  {'sending (storescu)':<36}{a.send_end - a.send_start:8.2f} s")
    for s in show["stages"]:
        if s["stage"] != "receive":
            print(f"  {names.get(s['stage'], s['stage']):<36}{s['seconds']:8.2f} s")
    print(f"  {'last C-STORE response to the PACS':<36}{delivered - show['job']['last_received']:8.2f} s")
    return 0


def main():
    parser = argparse.ArgumentParser(description="Checks of the demo; see the head of the file.")
    commands = parser.add_subparsers(required=True)
    c = commands.add_parser("state")
    c.add_argument("list")
    c.set_defaults(run=command_state)
    c = commands.add_parser("check")
    for option in ("--pacs", "--exam", "--out"):
        c.add_argument(option, required=True)
    c.set_defaults(run=command_check)
    c = commands.add_parser("stages")
    c.add_argument("--show", required=True)
    c.add_argument("--send-start", type=float, required=True)
    c.add_argument("--send-end", type=float, required=True)
    c.set_defaults(run=command_stages)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
