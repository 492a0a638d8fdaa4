# SPDX-License-Identifier: Apache-2.0
"""Figures of PET and CT series a second time: from the definitions of the standards, with pydicom and numpy, and not
from the program."""
import json
import math
import os

import numpy as np
import pydicom
from pydicom.uid import generate_uid

from tools.edits import new_object

PET, CT = "1.2.840.10008.5.1.4.1.1.128", "1.2.840.10008.5.1.4.1.1.2"
STRIPS = 400  # per pixel, for the part of it that is in a circle


class Volume:
    """values[slice, row, column] of a series, slices in the direction of across x down, and the position of each voxel
    (LPS, mm)."""

    def __init__(self, paths):
        objects = [pydicom.dcmread(p) for p in paths]
        cosines = np.array(objects[0].ImageOrientationPatient, float)
        self.across, self.down = cosines[:3], cosines[3:]
        self.normal = np.cross(self.across, self.down)
        objects.sort(key=lambda d: np.array(d.ImagePositionPatient, float) @ self.normal)
        self.objects = objects
        self.values = np.array([d.pixel_array * float(d.RescaleSlope) + float(d.RescaleIntercept) for d in objects])
        self.corners = np.array([d.ImagePositionPatient for d in objects], float)
        self.h = np.array([float(v) for v in objects[0].PixelSpacing][::-1])  # between columns, between rows
        self.step = float(objects[0].SliceThickness)
        if len(objects) > 1:
            self.step = float(np.linalg.norm(self.corners[1] - self.corners[0]))

    @classmethod
    def of_folder(cls, folder):
        return cls([os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".dcm")])

    def places(self):
        _, rows, columns = self.values.shape
        return (self.corners[:, None, None] + np.arange(rows)[None, :, None, None] * self.down * self.h[1]
                + np.arange(columns)[None, None, :, None] * self.across * self.h[0])

    def nearest(self, point):
        return int(np.argmin(np.abs((self.corners - point) @ self.normal)))

    def plane_of(self, point):
        """mm along columns and rows from the first pixel of a slice."""
        away = np.array(point, float) - self.corners[0]
        return np.array([away @ self.across, away @ self.down])


def area(lo, hi, radius):
    """The part of rectangles inside the circle around (0, 0): strips along x, exact along y. lo, hi: arrays[..., 2]."""
    x = lo[..., :1] + (hi[..., :1] - lo[..., :1]) * (np.arange(STRIPS) + 0.5) / STRIPS
    half = np.sqrt(np.clip(radius ** 2 - x ** 2, 0, None))
    inside = np.clip(np.minimum(hi[..., 1:], half) - np.maximum(lo[..., 1:], -half), 0, None)
    return (inside * (np.abs(x) < radius)).mean(-1) * (hi[..., 0] - lo[..., 0])


def weighted(weights, values):
    """mean and standard deviation of weighted values."""
    total = weights.sum()
    mean = (weights * values).sum() / total
    variance = (weights * (values - mean) ** 2).sum() / (total - (weights ** 2).sum() / total)
    return mean, math.sqrt(variance)


def circle(volume, point, diameter, k=None):
    """(mean, sd, pixels) of a circle around a point of the patient, in the nearest slice or in slice k."""
    k = volume.nearest(point) if k is None else k
    middle, h = volume.plane_of(point), volume.h
    first = np.floor((middle - diameter / 2) / h).astype(int)
    last = np.ceil((middle + diameter / 2) / h).astype(int) + 1
    at = np.stack(np.meshgrid(np.arange(first[0], last[0]), np.arange(first[1], last[1])), -1)
    weights = area((at - 0.5) * h - middle, (at + 0.5) * h - middle, diameter / 2) / h.prod()
    at = at[weights > 0]
    weights = weights[weights > 0]
    return (*weighted(weights, volume.values[k, at[:, 1], at[:, 0]]), weights.sum())


def sphere(volume, point, diameter):
    """(mean, sd, voxels): voxels in 40 layers each, the part of each layer that is inside."""
    middle = volume.plane_of(point)
    z = (volume.corners - point) @ volume.normal
    weights, values = [], []
    rows, columns = volume.values.shape[1:]
    at = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1)
    lo, hi = (at - 0.5) * volume.h - middle, (at + 0.5) * volume.h - middle
    near = (np.hypot(*np.moveaxis(np.clip(np.maximum(lo, -hi), 0, None), -1, 0)) < diameter / 2)
    for k in np.flatnonzero(np.abs(z) < diameter / 2 + volume.step / 2):
        part = 0
        for i in range(40):
            rest = (diameter / 2) ** 2 - (z[k] + volume.step * ((i + 0.5) / 40 - 0.5)) ** 2
            if rest > 0:
                part = part + area(lo[near], hi[near], math.sqrt(rest)) / volume.h.prod() / 40
        if not np.isscalar(part):
            weights.append(part)
            values.append(volume.values[k][near])
    weights, values = np.concatenate(weights), np.concatenate(values)
    return (*weighted(weights, values), weights.sum())


def nema(volume, truth, axes):
    """NEMA NU 2-2018, 7: recovery and background variability of each sphere, residual in the lung insert, in percent.
    axes: directions of the scanner's x, y, z in the patient. Background circles: 12 mm from the edge of the elliptic
    body, at these angles."""
    angles = np.radians([-90, -50, -25, 0, 25, 50, 90, 130, 155, 180, 205, 230])
    size, body = truth["size"], truth["shapes"][0]
    lung = next(s for s in truth["shapes"] if s["kind"] == "cylinder" and s["becquerel_per_ml"] < 0)
    balls = sorted((s for s in truth["shapes"] if s["role"] == "lesion"), key=lambda s: s["half_axes_mm"][0])
    axes = np.array(axes, float)
    half = [body["half_axes_mm"][c] - (18.5 + 12) * size for c in (0, 1)]
    places = [np.array([body["center_mm"][0] + half[0] * math.cos(t), body["center_mm"][1] + half[1] * math.sin(t),
                        z * size]) @ axes
              for z in (-20, -10, 0, 10, 20) for t in angles]
    result = {"spheres": [], "lung": []}
    for ball in balls:
        diameter = 2 * ball["half_axes_mm"][0]
        means = np.array([circle(volume, p, diameter)[0] for p in places])
        hot = circle(volume, np.array(ball["center_mm"]) @ axes, diameter)[0]
        ratio = 1 + ball["becquerel_per_ml"] / body["becquerel_per_ml"]
        recovery = (hot / means.mean() - 1) / (ratio - 1) if ratio > 1 else 1 - hot / means.mean()
        result["spheres"].append((100 * recovery, 100 * means.std(ddof=1) / means.mean()))
    background = np.mean([circle(volume, p, 37 * size)[0] for p in places])
    middle = np.array(lung["center_mm"]) @ axes
    for k, corner in enumerate(volume.corners):
        away = (corner - middle) @ volume.normal
        if abs(away) + volume.step / 2 <= lung["half_axes_mm"][2]:
            result["lung"].append(100 * circle(volume, middle + away * volume.normal, 30 * size, k)[0] / background)
    return result


def five_circles(volume, point, diameter, slices):
    """IEC 61223-3-5: the middle and four sides, a tenth of the diameter, 10 mm from the edge."""
    away = 0.45 * diameter - 10
    means = []
    for x, y in ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)):
        at = np.array(point) + away * (x * volume.across + y * volume.down)
        parts = [circle(volume, at, 0.1 * diameter, k) for k in slices]
        means.append(np.mean([p[0] for p in parts]))
    return means


def squares_of_10_mm(volume, point, diameter, k, base):
    """(integral uniformity, coefficient of variation) of the squares inside 0.9 of the diameter in slice k."""
    middle, radius, means = volume.plane_of(point), 0.45 * diameter, []
    edges = [volume.h[a] * (np.arange(volume.values.shape[2 - a] + 1) - 0.5) - middle[a] for a in (0, 1)]
    most = math.ceil(radius / 10)
    for j in range(-most, most):
        for i in range(-most, most):
            corners = [math.hypot(10 * (i + a), 10 * (j + b)) for a in (0, 1) for b in (0, 1)]
            if max(corners) <= radius:
                x, y = (np.clip(np.minimum(e[1:], 10 * n + 10) - np.maximum(e[:-1], 10 * n), 0, None) for e,
                        n in zip(edges, (i, j)))
                means.append((volume.values[k] * y[:, None] * x).sum() / (x.sum() * y.sum()))
    means = np.array(means) - base
    return (means.max() - means.min()) / (means.max() + means.min()), means.std(ddof=1) / means.mean(), len(means)


def spectrum(volume, point, diameter, slices, n):
    """(2-D noise power spectrum, variance, squares): squares of n pixels around the nearest pixel corner, each less a
    fitted plane."""
    middle, radius, h = volume.plane_of(point), 0.45 * diameter, volume.h
    start = np.floor(middle / h + 1 + 1e-4).astype(int)  # of equally near corners the second
    j, i = np.mgrid[:n, :n]
    model = np.stack([np.ones(n * n), i.ravel(), j.ravel()], 1)
    power, variances, most = np.zeros((n, n)), [], math.ceil(radius / (n * h.min())) + 1
    for k in slices:
        for b in range(-most, most):
            for a in range(-most, most):
                at = start + np.array([a, b]) * n
                box = [((at + n * np.array(c) - 0.5) * h - middle) for c in ((0, 0), (0, 1), (1, 0), (1, 1))]
                if max(math.hypot(*c) for c in box) > radius:
                    continue
                part = volume.values[k, at[1]:at[1] + n, at[0]:at[0] + n].ravel()
                part = (part - model @ np.linalg.lstsq(model, part, rcond=None)[0]).reshape(n, n)
                power += np.abs(np.fft.fft2(part)) ** 2 * h.prod() / n ** 2
                variances.append((part ** 2).mean())
    return power / len(variances), np.mean(variances), len(variances)


def rings(power, h, n):
    """Mean of the spectrum in rings of width 1 / (n max(h))."""
    f = np.hypot(np.fft.fftfreq(n, h[0])[None, :], np.fft.fftfreq(n, h[1])[:, None])
    ring = np.floor(f * n * h.max() + 0.5).astype(int)
    return [(f[ring == k].mean(), power[ring == k].mean()) for k in range(1, n // 2 + 1)]


# ---- series by another writer ----

def write_series(folder, values, spacing, cosines, corner, modality="PT", change=None):
    """Write a series as another program would: 12 or 16 bits, signed for CT, own Rescale Slope of each slice, names in
    another order. change: called with each data set and its index."""
    os.makedirs(folder, exist_ok=True)
    across, down = np.array(cosines[:3]), np.array(cosines[3:])
    normal, uids, paths = np.cross(across, down), [generate_uid() for _ in range(3)], []
    for k, plane in enumerate(values):
        d = new_object(PET if modality == "PT" else CT)
        d.PatientID, d.PatientName, d.Modality = "FOREIGN", "Foreign^One", modality
        d.StudyInstanceUID, d.SeriesInstanceUID, d.FrameOfReferenceUID = uids
        d.Rows, d.Columns, d.SamplesPerPixel, d.PhotometricInterpretation = *plane.shape, 1, "MONOCHROME2"
        d.PixelSpacing = [spacing[1], spacing[0]]
        d.ImageOrientationPatient = [f"{v:.14g}"[:16] for v in cosines]
        d.ImagePositionPatient = [f"{v:.10g}" for v in np.array(corner) + k * spacing[2] * normal]
        d.SliceThickness = spacing[2]
        d.BitsAllocated = 16
        if modality == "PT":
            slope = float(f"{max(plane.max(), 1e-6) / (20000 + 700 * k):.8g}")
            d.BitsStored, d.HighBit, d.PixelRepresentation, d.RescaleIntercept = 16, 15, 0, 0
            d.Units, d.NumberOfSlices, d.SeriesType = "BQML", len(values), ["STATIC", "IMAGE"]
            d.CorrectedImage, d.DecayCorrection = ["ATTN", "DECY", "SCAT"], "START"
            d.SeriesDate = d.AcquisitionDate = "20260102"
            d.SeriesTime = d.AcquisitionTime = "010000"
            d.PatientWeight = 71.5
            drug = pydicom.Dataset()
            drug.RadionuclideTotalDose, drug.RadionuclideHalfLife = 3.7e8, 6586.2
            drug.RadiopharmaceuticalStartTime, drug.RadiopharmaceuticalStartDateTime = "233000", "20260101233000"
            d.RadiopharmaceuticalInformationSequence = [drug]
        else:
            slope = 0.25 if k % 2 else 0.5
            d.BitsStored, d.HighBit, d.PixelRepresentation, d.RescaleIntercept = 16, 15, 1, -200
            d.RescaleType = "HU"
        d.RescaleSlope = slope
        stored = np.rint((plane - float(d.RescaleIntercept)) / slope)
        d.PixelData = stored.astype("<i2" if modality == "CT" else "<u2").tobytes()
        if change:
            change(d, k)
        path = os.path.join(folder, f"{(5 * k + 3) % 97:02d}-{k}.dcm")
        d.save_as(path, write_like_original=False)
        paths.append(path)
    return paths


def read_truth(folder):
    with open(os.path.join(folder, "truth.json"), encoding="ascii") as f:
        return json.load(f)
