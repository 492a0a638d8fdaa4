# SPDX-License-Identifier: Apache-2.0
"""Figures of PET images of the simulated phantoms: regions, noise, recovery, background variability, differences. Needs numpy.

An image is values[slice, row, column] with the position of each voxel in the axes of the scanner (docs/pet-geometry.md), in mm.
A region is a circle in one slice. The weight w of a pixel is its fraction inside the circle, estimated with SUB x SUB points; m and s of a region:

    m = sum(w v) / sum(w)        s = sqrt(sum(w (v - m)^2) / sum(w))

NEMA NU 2 (recovery Q, background variability N): for a sphere with activity C_sphere in a background C_back, and the mean m_j of a
circle on it, b_j the mean and d_j the standard deviation (n - 1) of the means of circles of the same size in the background,

    hot   Q = (m_j / b_j - 1) / (C_sphere / C_back - 1)        cold  Q = 1 - m_j / b_j        N = d_j / b_j
"""
import math
import os

import numpy as np

SUB = 8
CYLINDER_RADIUS = 25.0  # radius of the circle in a uniform cylinder, mm
BACKGROUND_RADIUS = 15.0  # radius of the eight circles in which the noise of the IQ phantom is measured, mm
NEMA_RADIUS = 18.5  # radius for which the background circles are placed: that of the largest sphere, mm
NEMA_SLICES = (-20.0, -10.0, 0.0, 10.0, 20.0)  # mm from the spheres' plane
# Positions of the background circles of the IQ phantom: at these angles, on an ellipse at this distance inside the phantom's edge, mm.
# NEMA's body has more space above the spheres: with 12 circles of 37 mm that do not overlap, 12 mm remain instead of 15.
NEMA_ANGLES = (-90, -50, -25, 0, 25, 50, 90, 130, 155, 180, 205, 230)
NEMA_EDGE = 12.0
NOISE_ANGLES = (-90, -38, 0, 38, 90, 142, 180, 218)
NOISE_EDGE = 10.0
FACTORS = (1.0, 0.8, 0.4)  # diameter of the circle over that of the sphere


class Image:
    """An Interfile image of `tomonode export`, for a patient head first and supine: the axes are those of the scanner."""

    def __init__(self, values, spacing, first):
        self.values, self.spacing, self.first = values, spacing, first

    @classmethod
    def read(cls, path):
        keys = {}
        with open(path, encoding="ascii") as f:
            for line in f:
                if ":=" in line:
                    key, value = line.split(":=", 1)
                    keys[key.strip().lstrip("!").lower()] = value.strip()
        size, spacing, first = [], [], []
        for axis in (1, 2, 3):
            size.append(int(keys[f"matrix size [{axis}]"]))
            spacing.append(float(keys[f"scaling factor (mm/pixel) [{axis}]"]))
            first.append(float(keys[f"first pixel offset (mm) [{axis}]"]))
        order = ">" if keys["imagedata byte order"].upper() == "BIGENDIAN" else "<"
        if keys["number format"] != "float" or keys["number of bytes per pixel"] != "4":
            raise ValueError(f"{path}: {keys['number format']} of {keys['number of bytes per pixel']} bytes")
        values = np.fromfile(os.path.join(os.path.dirname(path), keys["name of data file"]), order + "f4")
        return cls(values.reshape(size[::-1]).astype(np.float32) * float(keys.get("image scaling factor[1]", 1)), spacing, first)

    def slice_at(self, z):
        """Return the index of the slice nearest to z."""
        k = int(round((z - self.first[2]) / self.spacing[2]))
        if not 0 <= k < len(self.values):
            raise ValueError(f"no slice at z = {z:g} mm")
        return k

    def circle(self, x, y, z, radius):
        """Return (m, s, number of pixels) of a region."""
        plane, at, weights = self.values[self.slice_at(z)], [], []
        for axis, middle in ((0, x), (1, y)):
            n, h = plane.shape[1 - axis], self.spacing[axis]
            low = int(math.floor((middle - radius - self.first[axis]) / h))
            high = int(math.ceil((middle + radius - self.first[axis]) / h))
            if low < 0 or high >= n:
                raise ValueError(f"the circle of {radius:g} mm at {x:g}, {y:g} extends beyond the image")
            points = self.first[axis] + h * (np.arange(low * SUB, (high + 1) * SUB) / SUB + (1 - SUB) / (2 * SUB))
            weights.append((points - middle) ** 2)
            at.append(slice(low, high + 1))
        inside = weights[1][:, None] + weights[0][None, :] <= radius * radius
        part = inside.reshape(inside.shape[0] // SUB, SUB, inside.shape[1] // SUB, SUB).mean((1, 3))
        values, total = plane[at[1], at[0]].astype(float), part.sum()
        mean = (part * values).sum() / total
        return mean, math.sqrt((part * (values - mean) ** 2).sum() / total), total


def on_ellipse(truth, angles, inset):
    """Return points on an ellipse `inset` mm inside the phantom's body; all lengths are multiplied by the phantom's size."""
    body, size = truth["shapes"][0], truth["size"]
    a, b = (body["half_axes_mm"][c] - inset * size for c in (0, 1))
    x0, y0, _ = body["center_mm"]
    return [(x0 + a * math.cos(math.radians(t)), y0 + b * math.sin(math.radians(t))) for t in angles]


def spheres(truth):
    """Return the spheres of the IQ phantom by size: (diameter in mm at size 1, centre, radius, activity / background)."""
    back = truth["shapes"][0]["becquerel_per_ml"]
    found = [(round(2 * s["half_axes_mm"][0] / truth["size"], 3), s["center_mm"], s["half_axes_mm"][0],
              1 + s["becquerel_per_ml"] / back) for s in truth["shapes"] if s["role"] == "lesion"]
    return sorted(found)


def clearances(truth):
    """Return the least distances of the background circles, mm: to a sphere's edge, to the phantom's edge, between two circles."""
    places, radius = on_ellipse(truth, NEMA_ANGLES, NEMA_RADIUS + NEMA_EDGE), NEMA_RADIUS * truth["size"]
    edge = on_ellipse(truth, np.arange(0, 360, 0.25), 0)
    sphere = min(math.dist(p, c[:2]) - r - radius for p in places for _, c, r, _ in spheres(truth))
    return {"sphere": sphere, "edge": min(math.dist(p, e) for p in places for e in edge) - radius,
            "each_other": min(math.dist(p, q) for i, p in enumerate(places) for q in places[:i]) - 2 * radius}


def mean_and_deviation(image, circles):
    """Return the mean of all pixels of several circles, and their standard deviation divided by it."""
    parts = [image.circle(*c) for c in circles]
    total = sum(n for _, _, n in parts)
    mean = sum(m * n for m, _, n in parts) / total
    variance = sum((s * s + (m - mean) ** 2) * n for m, s, n in parts) / total
    return {"mean": mean, "nsr": math.sqrt(variance) / mean}


def cylinder(image, truth):
    """Return mean / truth and noise of a circle in the central slice, and mean / truth in the slices well inside the scanner."""
    middle = truth["shapes"][0]["center_mm"]
    radius = CYLINDER_RADIUS * truth["size"]
    figures = mean_and_deviation(image, [(middle[0], middle[1], 0.0, radius)])
    activity = truth["shapes"][0]["becquerel_per_ml"]
    means = [image.circle(middle[0], middle[1], image.first[2] + k * image.spacing[2], radius)[0] for k in range(len(image.values))]
    inner = means[len(means) // 4:-(len(means) // 4)]
    return {**figures, "radius_mm": radius, "over_truth": figures["mean"] / activity,
            "inner_slices": len(inner), "inner_over_truth": [min(inner) / activity, max(inner) / activity]}


def nema(image, truth):
    """Return noise, recovery and background variability of the IQ phantom."""
    size = truth["size"]
    noise = mean_and_deviation(image, [(x, y, 0.0, BACKGROUND_RADIUS * size)
                                       for x, y in on_ellipse(truth, NOISE_ANGLES, BACKGROUND_RADIUS + NOISE_EDGE)])
    places = [(x, y, z * size) for z in NEMA_SLICES for x, y in on_ellipse(truth, NEMA_ANGLES, NEMA_RADIUS + NEMA_EDGE)]
    result = {**noise, "over_truth": noise["mean"] / truth["shapes"][0]["becquerel_per_ml"], "circles": len(places), "spheres": []}
    for diameter, (x, y, z), radius, ratio in spheres(truth):
        one = {"diameter_mm": diameter, "ratio": ratio, "recovery": {}}
        for factor in FACTORS:
            means = [image.circle(*p, factor * radius)[0] for p in places]
            back, deviation = float(np.mean(means)), float(np.std(means, ddof=1))
            mean = image.circle(x, y, z, factor * radius)[0]
            one["recovery"][f"{factor:g}"] = (mean / back - 1) / (ratio - 1) if ratio > 1 else 1 - mean / back
            if factor == 1:
                one["variability"] = deviation / back
        result["spheres"].append(one)
    return result


def f_shape(image, truth):
    """Return the distance of the centroid of the F phantom's ball from its true position, mm, and the largest activity in its seven mirror
    positions relative to that of the ball: only the right position is hot."""
    ball = max((s for s in truth["shapes"] if s["role"] == "lesion"), key=lambda s: s["becquerel_per_ml"])
    centre, reach = np.array(ball["center_mm"]), 1.6 * np.array(ball["half_axes_mm"])
    axes = [image.first[c] + image.spacing[c] * np.arange(image.values.shape[2 - c]) for c in range(3)]

    def box(middle):
        picks = [np.flatnonzero(np.abs(axes[c] - middle[c]) <= reach[c]) for c in range(3)]
        return picks, image.values[np.ix_(picks[2], picks[1], picks[0])].astype(float)

    picks, values = box(centre)
    values = np.clip(values - 0.3 * values.max(), 0, None)
    z, y, x = (axes[c][picks[c]] for c in (2, 1, 0))
    total = values.sum()
    found = [(values * x).sum() / total, (values * y[:, None]).sum() / total, (values * z[:, None, None]).sum() / total]
    own = box(centre)[1].mean()
    mirrors = [centre * np.array(s) for s in ((-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, 1), (-1, 1, -1), (1, -1, -1), (-1, -1, -1))]
    return {"expected_mm": list(centre), "found_mm": found, "error_mm": math.dist(found, centre),
            "mirrored_over_own": max(float(box(m)[1].mean()) for m in mirrors) / float(own)}


def perfect(truth, image, sub=8):
    """Return the phantom on the voxels of an image (mean over sub x sub points in the plane z of each slice): the best possible image."""
    axes = [image.first[c] + image.spacing[c] * (np.arange(image.values.shape[2 - c] * sub) / sub + (1 - sub) / (2 * sub)) for c in (0, 1)]
    values = np.zeros(image.values.shape, np.float32)
    for k, plane in enumerate(values):
        z, fine = image.first[2] + k * image.spacing[2], np.zeros((len(axes[1]), len(axes[0])), np.float32)
        for shape in truth["shapes"]:
            (x0, y0, z0), (a, b, c) = shape["center_mm"], shape["half_axes_mm"]
            flat = ((axes[0][None, :] - x0) / a) ** 2 + ((axes[1][:, None] - y0) / b) ** 2
            depth = ((z - z0) / c) ** 2
            inside = (flat <= 1) & (depth <= 1) if shape["kind"] == "cylinder" else flat + depth <= 1
            fine += inside * np.float32(shape["becquerel_per_ml"])
        plane[:] = fine.reshape(plane.shape[0], sub, plane.shape[1], sub).mean((1, 3))
    return Image(values, image.spacing, image.first)


def difference(a, b):
    """Return the largest difference of two images relative to the largest value."""
    return float(np.abs(a.values.astype(float) - b.values).max() / np.abs(b.values).max())
