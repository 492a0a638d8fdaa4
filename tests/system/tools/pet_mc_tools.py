# SPDX-License-Identifier: Apache-2.0
"""The Monte Carlo of tests/pet_mc for system tests of PET: running it, its files as arrays, its phantom as a CT series,
and the figures of an image of the IQ phantom. Axes of the scanner are LPS here: the patient is head first and
supine."""
import json
import os
import subprocess

import numpy as np

from tools import ct_writer
from tools.pet_tools import along_z
from tools.node_harness import read_file, write_file

PROGRAM = os.path.join(os.environ.get("TOMONODE_BUILD", "build/dev"), "tests", "pet_mc")
BACKGROUND = 5300.0  # Bq/ml, at the start
SECONDS, HALF_LIFE = 600.0, 6586.2
LUNG_RADIUS, CIRCLE = 15.0, 18.5  # mm: of the circles in the lung insert and in the background
EDGE = 15.0  # mm from the circles in the background to the phantom's edge, along the line from the middle
ANGLES = (-90, -50, -25, 0, 25, 50, 90, 130, 155, 180, 205, 230)  # of these circles
SLICES = (-20.0, -10.0, 0.0, 10.0, 20.0)  # mm from the plane of the spheres


def run(*args, threads=None):
    """Run pet_mc; its stdout."""
    env = dict(os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {}))
    return subprocess.run([PROGRAM, *map(str, args)], stdout=subprocess.PIPE, check=True, text=True, env=env).stdout


def single_scatter(data, folder):
    """The program's single scatter simulation (tests/helpers/pet_scatter.c) of the true activity and density, in counts
    of each bin."""
    t, grid = data.truth, (72, 48, 5.0, 4.0)
    files = []
    for what, unit in (("activity", 1.0), ("density", t["mu_water"])):
        files.append(os.path.join(folder, what + ".raw"))
        (np.maximum(voxels(t, *grid, what), 0) * np.float32(unit)).tofile(files[-1])
    files.append(os.path.join(folder, "scatter.raw"))
    subprocess.run([os.path.join(os.path.dirname(PROGRAM), "pet_scatter"), data.path("randoms.hs"), *files[:2],
                    *map(str, grid), str(t["kev_low"]),
                    str(t["kev_high"]), str(100 * t["resolution"]), files[2]], stdout=subprocess.PIPE, check=True)
    return np.fromfile(files[2], "<f4").reshape(data.shape) * np.float32(t["scale"]) / data.values("normalisation")


class Data:
    """A folder that pet_mc wrote."""

    def __init__(self, folder):
        self.folder = folder
        self.truth = json.loads(read_file(self.path("truth.json")))
        self.shape = tuple(self.truth[k] for k in ("planes", "angles", "radial"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def counts(self, name):
        return self.along_z(np.fromfile(self.path(name + ".s"), "<u2").reshape(self.shape)).astype(np.float32)

    def values(self, name):
        return self.along_z(np.fromfile(self.path(name + ".s"), "<f4").reshape(self.shape))

    def along_z(self, values):
        return along_z(values, [n for _, n in self.planes()])

    def crystals(self, name):
        return np.fromfile(self.path(name + ".raw"), "<f4").reshape(self.truth["rings"], self.truth["columns"])

    def planes(self):
        """(first plane, number of planes) of each segment."""
        first = 0
        for _, _, n in self.truth["segments"]:
            yield first, n
            first += n

    def write(self, name, values, like="randoms"):
        """NAME.hs and .s of float values, with the header of other floats."""
        text = read_file(self.path(like + ".hs"))
        write_file(self.path(name + ".hs"), text.replace(f"{like}.s", f"{name}.s"))
        self.along_z(np.asarray(values, "<f4")).tofile(self.path(name + ".s"))
        return self.path(name + ".hs")

    def true_scatter(self):
        """The expectation of the scatter: its counts, smoothed. Normalised counts are smooth over many bins; the counts
        are, in each bin, a part 1 / normalisation of them."""
        part = 1 / self.values("normalisation")
        counts = self.counts("single") + self.counts("multiple")
        found = np.empty_like(part)
        for first, n in self.planes():
            at = slice(first, first + n)
            found[at] = part[at] * smooth(counts[at]) / smooth(part[at])
        return found

    def calibration(self):
        """(Bq/ml) per (count per second and mm) with which the background has BACKGROUND at the start."""
        x = np.log(2) / HALF_LIFE * SECONDS
        return BACKGROUND * SECONDS / self.truth["scale"] * (1 - np.exp(-x)) / x


def smooth(values, widths=(2.0, 3.0, 4.0)):
    """Convolve each axis with a Gaussian of this standard deviation, in bins; what is beyond the edges has no
    weight."""
    for axis, width in enumerate(widths):
        at = np.arange(values.shape[axis])
        kernel = np.exp(-0.5 * ((at[:, None] - at[None, :]) / width) ** 2).astype(np.float32)
        values = np.moveaxis(np.tensordot(kernel, values, (1, axis)), 0, axis)
    return values


def solid_at(solid, x, y, z):
    """Is a point in a solid of truth.json? A second time, from the description in tests/pet_mc/phantom.h."""
    x, y, z = (np.asarray(v) - c for v, c in zip((x, y, z), solid["center"]))
    r = solid["radius"]
    if solid["kind"] == "sphere":
        return x * x + y * y + z * z <= r * r
    inside = x * x + y * y <= r * r
    if solid["kind"] == "box":
        inside = (np.abs(x) <= r) & (np.abs(y) <= solid["corner"])
    if solid["kind"] == "body":
        side = np.maximum(0, np.abs(x) - (r - solid["corner"]))
        inside = np.where(y <= 0, inside, side ** 2 + y ** 2 <= solid["corner"] ** 2)
    return inside & (np.abs(z) <= solid["half_z"])


def density(truth, x, y, z):
    return sum(s["density"] * solid_at(s, x, y, z) for s in truth["solids"])


def write_ct(folder, truth, spacing=(2.0, 2.0, 3.0), half=(180.0, 140.0, 105.0), sub=2, **more):
    """The phantom as a CT series, HFS: water 0 HU, air -1000 HU. A voxel is the mean of sub x sub x sub points. more:
    of ct_writer.write_ct."""
    size = [int(round(2 * h / d)) for h, d in zip(half, spacing)]
    x, y, z = ((np.arange(n * sub) + 0.5) * d / sub - h for n, d, h in zip(size, spacing, half))
    hu = np.empty(size[::-1], np.float32)
    for k in range(size[2]):
        fine = density(truth, x[None, None, :], y[None, :, None], z[k * sub:(k + 1) * sub, None, None])
        hu[k] = 1000 * fine.reshape(sub, size[1], sub, size[0], sub).mean((0, 2, 4)) - 1000
    return ct_writer.write_ct(folder, hu, spacing, [-h + d / 2 for h, d in zip(half, spacing)], fov=2 * max(half),
                              **more)


def voxels(truth, n, slices, h, slice_h, what, sub=3):
    """Activity (relative to the background) or density on a grid around the scanner's middle, [slice][row][column];
    means of points."""
    x = ((np.arange(n * sub) + 0.5) / sub - n / 2) * h
    z = ((np.arange(slices * sub) + 0.5) / sub - slices / 2) * slice_h
    found = np.empty((slices, n, n), np.float32)
    for k in range(slices):
        fine = sum(s[what] * solid_at(s, x[None, None, :], x[None, :, None], z[k * sub:(k + 1) * sub, None, None])
                   for s in truth["solids"])
        found[k] = fine.reshape(sub, n, sub, n, sub).mean((0, 2, 4))
    return found


def write_config(path, truth):
    """The scanner as a configuration."""
    t = truth
    with open(path, "w", encoding="ascii") as f:
        f.write(f"""scanners = ( {{ name = "mc"; manufacturer = "tomonode"; model = "Monte Carlo"; rings = {t["rings"]};
    ring_spacing = {t["ring_spacing"]:.6f}; radius = {t["radius"]:.6f}; detectors = {t["columns"]};
    bin = {t["radius"] * np.pi / t["columns"]:.6f}; radial = {t["radial"]}; angles = {t["angles"]};
    span = 3; max_difference = 10; arc_corrected = false;
    energy_low = {t["kev_low"]:.6f}; energy_high = {t["kev_high"]:.6f};
    energy_resolution = {100 * t["resolution"]:.6f}; }} );
""")
    return path


# ---- figures of a sinogram ----

def profile_rms(estimate, counts, planes=True):
    """Deviation of an estimate from counts: of the total; of the radial profiles (sum over the angles) of planes the
    root mean square over that of the profile, with what the counts' own noise makes taken off; of the sums of planes; %
    of the true values. planes: each plane; False: all planes together."""
    a, b = estimate.sum(1, dtype=float), counts.sum(1, dtype=float)
    if not planes:
        a, b = a.sum(0, keepdims=True), b.sum(0, keepdims=True)

    def rms(a, b):
        return 100 * np.sqrt(max(0, ((a - b) ** 2 - b).sum() / (b * b - b).sum()))
    return {"total": 100 * (a.sum() / b.sum() - 1), "profiles": rms(a, b), "plane sums": rms(a.sum(1), b.sum(1))}


# ---- figures of an image ----

class Image:
    """A Series of tools.pet_tools: means of circles. Positions are LPS, mm."""

    def __init__(self, series):
        places = series.places()
        self.values = series.values
        self.x, self.y, self.z = places[0, 0, :, 0], places[0, :, 0, 1], places[:, 0, 0, 2]

    def slice_at(self, z):
        return int(np.argmin(np.abs(self.z - z)))

    def circle(self, x, y, k, radius, sub=6):
        """Mean in slice k; a pixel has the weight of its part inside."""
        h = self.x[1] - self.x[0]
        fine = ((np.arange(sub) + 0.5) / sub - 0.5) * h
        dx = ((self.x[:, None] + fine - x) ** 2).ravel()
        dy = ((self.y[:, None] + fine - y) ** 2).ravel()
        inside = (dx[None, :] + dy[:, None] <= radius * radius).reshape(len(self.y), sub, len(self.x), sub).mean((1, 3))
        return float((self.values[k] * inside).sum() / inside.sum())


def background_places(truth):
    """Centres of the circles in the background: CIRCLE + EDGE inside the edge, along lines from the middle."""
    body = truth["solids"][0]
    reach = np.arange(0, 200, 0.1)
    found = []
    for angle in np.radians(ANGLES):
        inside = solid_at(body, reach * np.cos(angle), reach * np.sin(angle), body["center"][2])
        r = reach[inside].max() - CIRCLE - EDGE
        found.append((r * np.cos(angle), r * np.sin(angle)))
    return found


def figures(image, truth):
    """Background over truth, with the least and largest of its slices; the lung's mean over the background, and its
    largest slice; recovery of the spheres: hot (C / B - 1) / (ratio - 1), cold 1 - C / B; all in %."""
    spheres = [s for s in truth["solids"] if s["kind"] == "sphere"]
    z0 = spheres[0]["center"][2]
    places = background_places(truth)
    slices = [np.mean([image.circle(x, y, image.slice_at(z0 + z), CIRCLE) for x, y in places]) for z in SLICES]
    back = float(np.mean(slices))
    long = [k for k, z in enumerate(image.z) if abs(z) <= 70]
    lung = [image.circle(0, 0, k, LUNG_RADIUS) for k in long]
    around = [np.mean([image.circle(x, y, k, CIRCLE) for x, y in places]) for k in long]
    found = {"background": 100 * back / BACKGROUND, "background_low": 100 * min(around) / BACKGROUND,
             "background_high": 100 * max(around) / BACKGROUND,
             "lung": 100 * float(np.mean(lung)) / float(np.mean(around)),
             "lung_high": 100 * max(a / b for a, b in zip(lung, around))}
    for s in spheres:
        x, y, z = s["center"]
        mean = image.circle(x, y, image.slice_at(z), s["radius"])
        found["sphere_" + s["name"]] = 100 * ((mean / back - 1) / s["activity"] if s["activity"] > 0
                                              else 1 - mean / back)
    return found
