# SPDX-License-Identifier: Apache-2.0
"""What the system tests of reconstruction share: running the program, reading a result by its own attributes alone,
finding beads.

Directions are written down here a second time, from the definitions and not from the program: LPS patient axes, +x
left, +y posterior, +z head; x of the scan is anterior; the tube stands at the head in CC, superior-medial in MLO."""
import json
import math
import os
import subprocess
import tempfile

import numpy as np
import pydicom

from tools.node_harness import write_file

TOMONODE = os.environ.get("TOMONODE", "build/release/tomonode")
# dicom3tools of 2022 does not know the values that PS3.3 C.8.11.7.1.4 has for views computed from tomosynthesis (as
# with TOMO_PROJ).
KNOWN_MG = "Error - Unrecognized enumerated value <TOMOSYNTHESIS> for value 3 of attribute <Image Type>"
DIRECTION = {"L": (1, 0, 0), "R": (-1, 0, 0), "P": (0, 1, 0), "A": (0, -1, 0), "H": (0, 0, 1), "F": (0, 0, -1)}


def run(*args, ok=(0,)):
    """Run the program; its stdout. Fails the test with its stderr when the exit code is another."""
    done = subprocess.run([TOMONODE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode not in ok:
        raise AssertionError(f"tomonode {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return done


def simulate(folder, **options):
    """`tomonode simulate dbt`, of simple shapes if no phantom is named; the truth it wrote. An option that is True has no
    value."""
    options = {"phantom": "ellipsoids"} | options
    args = [x for key, value in options.items()
            for x in ("--" + key.replace("_", "-"), value)[:1 if value is True else 2]]
    run("simulate", "dbt", *args, "-o", folder)
    return truth_of(folder)


def profile_conf(path, **keys):
    """A configuration with these keys of the profile of siemens-inspiration; its path."""
    write_file(path, 'profiles = ( { name = "siemens-inspiration"; '
               + " ".join(f"{key} = {json.dumps(value)};" for key, value in keys.items()) + " } );\n")
    return path


def truth_of(exam):
    with open(os.path.join(exam, "truth.json"), encoding="ascii") as f:
        return json.load(f)


def reconstruct(out, *paths, settings=(), config=None):
    """`tomonode recon --json`; the summary and the path of its one result."""
    args = ["recon", "--json", "-o", out, "--device", "cpu"]
    if config:
        args += ["-c", config]
    for setting in settings:
        args += ["--set", setting]
    summary = json.loads(run(*args, *paths).stdout)
    assert summary["ok"] and len(summary["cases"]) == 1 and not summary["refused"], summary
    return summary["cases"][0], os.path.join(out, summary["cases"][0]["file"])


def validator(path, *options):
    """The errors and warnings of dciodvfy."""
    done = subprocess.run(["dciodvfy", *options, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return [line for line in done.stdout.splitlines() if "Error -" in line or "Warning -" in line]


def scan_axes(side, view, gantry=45.0):
    """x, y, z of the scan in the patient."""
    g = math.radians(gantry) if view == "MLO" else 0.0
    medial = -1.0 if side == "L" else 1.0  # along +x of LPS
    x = np.array([0.0, -1.0, 0.0])
    z = np.array([medial * math.sin(g), 0.0, math.cos(g)])
    return np.stack([x, np.cross(z, x), z])


class Result:
    """A Breast Tomosynthesis object, by its position, orientation and spacing attributes alone."""

    def __init__(self, path):
        self.ds = ds = pydicom.dcmread(path)
        shared = ds.SharedFunctionalGroupsSequence[0]
        cosines = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float)
        spacing = [float(v) for v in shared.PixelMeasuresSequence[0].PixelSpacing]
        self.column_step = cosines[:3] * spacing[1]  # from a column to the next
        self.row_step = cosines[3:] * spacing[0]
        self.spacing = spacing
        self.positions = np.array([f.PlanePositionSequence[0].ImagePositionPatient
                                   for f in ds.PerFrameFunctionalGroupsSequence], float)
        self.slice_step = self.positions[1] - self.positions[0]
        mapping = shared.RealWorldValueMappingSequence[0]
        self.mu = ds.pixel_array * np.float32(mapping.RealWorldValueSlope) + np.float32(mapping.RealWorldValueIntercept)

    def patient(self, k, r, c):
        """Where the (fractional) frame, row and column lie in the patient."""
        return self.positions[0] + k * self.slice_step + r * self.row_step + c * self.column_step

    def index(self, point):
        """Fractional frame, row and column of a point of the patient."""
        steps = np.stack([self.slice_step, self.row_step, self.column_step], axis=1)
        return np.linalg.solve(steps, np.asarray(point) - self.positions[0])

    def medians(self, truth, places, slices, pixels):
        """The attenuation halfway up the object (left, CC) around these x, y of the scan, mm; so many slices and pixels to
        each side."""
        height, found = truth["support_mm"] + truth["thickness_mm"] / 2, []
        for x, y in places:
            k, r, c = (int(round(i)) for i in self.index(scan_axes("L", "CC").T @ np.array([x, y, height])))
            found.append(np.median(self.mu[k - slices:k + slices + 1, max(r - pixels, 0):r + pixels + 1,
                                           max(c - pixels, 0):c + pixels + 1]))
        return np.array(found)

    def beads_off(self, truth, axes):
        """How far each bead of the truth is from its place, along these axes, mm: n x 3."""
        off = []
        for s in truth["shapes"]:
            if s["role"] == "bead":
                k, r, c, _ = self.bead(s["patient_mm"], s["half_axes_mm"][0])
                off.append(axes @ (self.patient(k, r, c) - s["patient_mm"]))
        assert len(off) >= 5, f"{len(off)} beads"
        return np.array(off)

    def bead(self, point, radius, reach=4.0):
        """The centre of the bright spot within `reach` mm of a point: fractional frame, row, column, and its
        contrast."""
        k0, r0, c0 = self.index(point)
        n, nr, nc = self.mu.shape
        dz = np.linalg.norm(self.slice_step)
        wr, wc, wk = reach / self.spacing[0], reach / self.spacing[1], reach / dz
        k1, k2 = max(0, math.floor(k0 - wk)), min(n, math.ceil(k0 + wk) + 1)
        r1, r2 = max(0, round(r0 - wr)), min(nr, round(r0 + wr) + 1)
        c1, c2 = max(0, round(c0 - wc)), min(nc, round(c0 + wc) + 1)
        assert k1 < k2 and r1 < r2 and c1 < c2, f"{point} lies outside the result"
        box = self.mu[k1:k2, r1:r2, c1:c2].astype(float)
        ground = np.median(box, axis=(1, 2), keepdims=True)
        box = box - ground
        k, r, c = np.unravel_index(np.argmax(box), box.shape)
        rr, cc = np.mgrid[0:box.shape[1], 0:box.shape[2]]
        near = ((rr - r) * self.spacing[0]) ** 2 + ((cc - c) * self.spacing[1]) ** 2 <= (1.5 * radius + 0.5) ** 2

        def centre(k):  # in a slice: of what is above a third of the spot's peak
            plane = np.clip(box[k] - (box[k] * near).max() / 3, 0, None) * near
            return np.array([(plane * rr).sum(), (plane * cc).sum()]) / plane.sum()

        # along z: a parabola through the spot's sum in three slices around the largest
        row, column = centre(k)
        disc = ((rr - row) * self.spacing[0]) ** 2 + ((cc - column) * self.spacing[1]) ** 2 <= radius ** 2
        profile = (box * disc).sum(axis=(1, 2))
        k = int(np.argmax(profile))
        z = float(k)
        if 0 < k < len(profile) - 1:
            a, b, c_ = profile[k - 1:k + 2]
            z += 0.5 * (a - c_) / (a - 2 * b + c_)
        # In a slice beside its own the spot lies along the rays, away from the source: x / (source height) for each mm.
        # So the place is that between the two slices around z.
        k = min(max(int(math.floor(z)), 0), box.shape[0] - 2) if box.shape[0] > 1 else 0
        row, column = centre(k) + (z - k) * (centre(k + 1) - centre(k)) if box.shape[0] > 1 else centre(k)
        return k1 + z, r1 + row, c1 + column, box.max()


def check(ok, text, failures):
    if not ok:
        failures.append(text)
        print("FAILED:", text)


def folder():
    return tempfile.TemporaryDirectory(prefix="tomonode-test-")
