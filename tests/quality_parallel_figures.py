# SPDX-License-Identifier: Apache-2.0
"""Figures of images of parallel beams: the true image, errors relative to it, small pictures. Needs only numpy.

Images are arrays[row, column] in the axes of recon/parallel/parallel.h: x to the right, y down, (0, 0) in the middle; lengths in mm, attenuation
in 1/mm. Errors are relative to the attenuation of water.
"""
import base64

import numpy as np

SAMPLES = 4  # per pixel along x and y
SYMMETRIC = 0.99  # an image is symmetric if its correlation with its mirror image is at least this
UNIFORM_DISTANCE = 2  # pixels: a pixel is uniform if all pixels within this distance have the same value


def read_nifti(path):
    """Return the values of the first slice of a NIfTI file of `tomonode export`."""
    with open(path, "rb") as f:
        data = f.read()
    columns, rows = np.frombuffer(data, "<i2", 2, 42)
    start = int(np.frombuffer(data, "<f4", 1, 108)[0])
    return np.frombuffer(data, "<f4", int(rows) * int(columns), start).reshape(rows, columns).astype(float)


def read_lines(path, angles, radial):
    """Return the line integrals of the first slice, [angle, radial bin]."""
    return np.fromfile(path, "<f4", angles * radial).reshape(angles, radial).astype(float)


def write_pgm(path, picture):
    with open(path, "wb") as f:
        f.write(b"P5 %d %d 255\n" % picture.shape[::-1])
        f.write(picture.astype(np.uint8).tobytes())


def right_triangle(n):
    """Return a right triangle: the right angle at the lower left, legs of two thirds of the side."""
    row, column = np.mgrid[:n, :n]
    edge = n // 6
    return np.where((column >= edge) & (row < n - edge) & (column - edge <= row - edge), 255, 0)


# ---- truth ----

def values_at(truth, x, y):
    values = np.zeros(x.shape)
    for s in truth["shapes"]:
        if s["kind"] == "polygon":
            corners = s["corners_mm"]
            inside = np.ones(x.shape, bool)
            for a, b in zip(corners, corners[1:] + corners[:1]):
                inside &= (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) >= 0
        else:
            c, t = np.cos(np.radians(s["turn_degrees"])), np.sin(np.radians(s["turn_degrees"]))
            dx, dy = x - s["center_mm"][0], y - s["center_mm"][1]
            inside = ((dx * c + dy * t) / s["half_axes_mm"][0]) ** 2 + ((dy * c - dx * t) / s["half_axes_mm"][1]) ** 2 <= 1
        values[inside] += s["mu_per_mm"]
    return values


class Truth:
    """The true n x n image (mean of each pixel), and masks: `seen` is the circle that rays of all directions cross, `corners` the rest;
    `inside` and `outside` are the pixels of `seen` that are uniform within two pixels, with a value above 0 and with 0. Other pixels of
    `seen` are near an edge."""

    def __init__(self, means):
        self.means = means
        n = means.shape[0]
        near = np.pad(means, UNIFORM_DISTANCE, mode="edge")
        shifts = [near[i:i + n, j:j + n] for i in range(2 * UNIFORM_DISTANCE + 1) for j in range(2 * UNIFORM_DISTANCE + 1)]
        flat = np.max(shifts, 0) - np.min(shifts, 0) <= 1e-9
        at = np.arange(n) - (n - 1) / 2
        radius = np.hypot(at, at[:, None])
        self.seen, self.corners = radius <= (n - 1) / 2 - 1, radius >= (n - 1) / 2 + 1
        self.inside, self.outside = self.seen & flat & (means > 0), self.seen & flat & (means <= 0)

    @classmethod
    def of_shapes(cls, truth, n, pixel):
        at = ((np.arange(n * SAMPLES) + 0.5) / SAMPLES - n / 2) * pixel
        x, y = np.meshgrid(at, at)
        return cls(values_at(truth, x, y).reshape(n, SAMPLES, n, SAMPLES).mean((1, 3)))


# ---- figures ----

def rms(values):
    return float(np.sqrt(np.mean(values ** 2))) if values.size else 0.0


def correlation(image, means):
    return float(np.corrcoef(image.ravel(), means.ravel())[0, 1])


def middle(image):
    """Return the centre of mass, in pixels."""
    row, column = np.mgrid[:image.shape[0], :image.shape[1]]
    return np.array([(image * column).sum(), (image * row).sum()]) / image.sum()


def measure(image, truth, water):
    """Return errors and correlations. moved: largest correlation of the image moved by one pixel; mirrored: that of the image mirrored
    along an axis along which the truth is not symmetric (None: it is symmetric along both)."""
    far = (image - truth.means) / water
    image, means = image * truth.seen, truth.means * truth.seen
    asymmetric = [axis for axis in (0, 1) if correlation(np.flip(means, axis), means) < SYMMETRIC]
    return {"correlation": correlation(image, means), "rmse": rms(far[truth.seen]), "inside": rms(far[truth.inside]),
            "outside": rms(far[truth.outside]), "corners": rms(far[truth.corners]),
            "bias": float(far[truth.inside].mean()) if truth.inside.any() else 0.0,
            "moved": max(correlation(np.roll(image, by, axis), means) for by in (1, -1) for axis in (0, 1)),
            "mirrored": max((correlation(np.flip(image, axis), means) for axis in asymmetric), default=None),
            "off_pixels": float(np.abs(middle(image) - middle(means)).max()),
            "least": float(image.min() / water), "largest": float(image.max() / water)}


def difference(one, other):
    return float(np.abs(one - other).max() / np.abs(other).max())


# ---- pictures ----

def grey(values, black, white):
    return np.clip(np.rint((values - black) * (255 / (white - black))), 0, 255).astype(np.uint8)


def kept(values, black, white, side):
    """Return an image as bytes of the displayed size: merge neighbouring pixels along each axis, or repeat the rows of a sinogram with few
    angles."""
    def shrink(v, axis):
        n = v.shape[axis]
        if n < 2 * side:
            return v.take(np.arange(side) * n // side, axis)
        step = n // side
        return v.take(range(side * step), axis).reshape(*v.shape[:axis], side, step, *v.shape[axis + 1:]).mean(axis + 1)

    picture = grey(shrink(shrink(values, 0), 1), black, white)
    return {"size": list(picture.shape[::-1]), "black": black, "white": white,
            "bytes": base64.b64encode(picture.tobytes()).decode("ascii")}
