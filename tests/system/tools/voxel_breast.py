# SPDX-License-Identifier: Apache-2.0
"""A compressed breast of labelled voxels with a spiculated mass: a small phantom that is computed, so that no test
needs a file for it.

Labels are those of conf/materials-20keV.conf. Axes are those of the VICTRE pipeline's volumes: x from the chest wall
outwards, y along the chest wall, z up; arrays are [z, y, x]. Voxels are not cubes, so that axes which are mixed up are
noticed. Everything follows from fixed seeds.
"""
import gzip
import os

import numpy as np

ADIPOSE, SKIN, GLANDULAR, NIPPLE, MUSCLE, PADDLE, LIGAMENT, MASS, CALCIUM = 1, 2, 29, 33, 40, 50, 88, 200, 250
SPACING = (0.4, 0.4, 0.5)       # mm: x, y, z
SIZE = (150, 276, 86)           # voxels, with the paddles
PADDLE_PLANES = 3               # at the bottom, and at the top
REACH = (54.0, 50.0)            # mm: from the chest wall to the nipple, and from the middle to either side
SKIN_MM = 1.5
MASS_AT, MASS_RADIUS = (33.0, 9.0, 17.0), 3.6          # mm from the chest wall, the middle, the lower paddle
CALCIFICATIONS = ((24.0, -32.0, 12.0), (40.0, 20.0, 28.0))  # corners of pieces of 2 x 2 x 2 voxels


def axes():
    """x, y, z of the centres of the voxels in mm: y = 0 in the middle, z = 0 at the upper side of the lower paddle."""
    x, y, z = ((np.arange(n) + 0.5) * h for n, h in zip(SIZE, SPACING))
    return x[None, None, :], (y - y.mean())[None, :, None], (z - PADDLE_PLANES * SPACING[2])[:, None, None]


def field(x, y, z, seed, waves, shortest, longest):
    """A smooth random function with mean 0 and variance 1: waves of random directions; lengths in mm."""
    r = np.random.RandomState(seed)
    out = np.zeros(np.broadcast(x, y, z).shape, np.float32)
    for _ in range(waves):
        way = r.normal(size=3)
        way *= 2 * np.pi / r.uniform(shortest, longest) / np.linalg.norm(way)
        phase = (way[0] * x + r.uniform(0, 2 * np.pi)).astype(np.float32)
        out += np.cos(phase + (way[1] * y).astype(np.float32) + (way[2] * z).astype(np.float32))
    return out * np.float32(np.sqrt(2 / waves))


def mass_shape(seed=5, spicules=14):
    """Offsets in mm from its centre -> is it mass? An uneven ball with thin spikes."""
    r = np.random.RandomState(seed)
    ways = r.normal(size=(spicules, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    lengths = MASS_RADIUS * r.uniform(1.6, 2.3, spicules)

    def inside(x, y, z):
        distance = np.sqrt(x * x + y * y + z * z)
        found = distance < MASS_RADIUS * (1 + 0.12 * field(x, y, z, seed, 20, 3, 8))
        for way, length in zip(ways, lengths):
            along = way[0] * x + way[1] * y + way[2] * z
            across = np.sqrt(np.maximum(distance ** 2 - along ** 2, 0))
            found |= (along > 0) & (along < length) & (across < 0.7 * (1.2 - along / length))
        return found
    return inside


def breast():
    """The labels: one mass, two calcifications, between two paddles."""
    x, y, z = axes()
    height = (SIZE[2] - 2 * PADDLE_PLANES) * SPACING[2]
    # Depth below the surface: of the ellipse seen from above, whose edge is round in z, and of the two planes.
    elliptic = (1 - np.hypot(x / REACH[0], y / REACH[1])) * min(REACH)
    bulge = height / 2 - np.sqrt(np.maximum((height / 2) ** 2 - (z - height / 2) ** 2, 0))
    depth = np.minimum(elliptic - 0.6 * bulge, np.minimum(z, height - z))
    inner = np.minimum(elliptic - 0.6 * bulge, 2 * np.minimum(z, height - z))

    labels = np.zeros(SIZE[::-1], np.uint8)
    labels[depth > 0] = SKIN
    fat = depth > SKIN_MM
    labels[fat] = ADIPOSE
    labels[fat & (np.abs(field(x, y, z, 3, 24, 14, 30)) < 0.045)] = LIGAMENT
    gland = field(x, y, z, 7, 48, 5, 22) + 0.9 * np.minimum((inner - 9) / 6, 1) - 0.5 * np.hypot((x - 30) / 18, y / 26)
    labels[fat & (inner > 4) & (gland > 0.25)] = GLANDULAR
    labels[fat & (x < 2.5 + 3 * z / height)] = MUSCLE
    labels[((x - REACH[0]) / 5) ** 2 + (y / 5) ** 2 + ((z - height / 2) / 5) ** 2 < 1] = NIPPLE
    near = [np.abs(axis.ravel() - v) < 3 * MASS_RADIUS for axis, v in zip((x, y, z), MASS_AT)]
    part = tuple(slice(int(np.argmax(n)), int(np.argmax(n)) + int(n.sum())) for n in near[::-1])
    offsets = x[:, :, part[2]] - MASS_AT[0], y[:, part[1]] - MASS_AT[1], z[part[0]] - MASS_AT[2]
    labels[part][mass_shape()(*offsets)] = MASS
    for place in CALCIFICATIONS:
        i, j, k = (int(np.argmin(np.abs(axis.ravel() - v))) for axis, v in zip((x, y, z), place))
        labels[k:k + 2, j:j + 2, i:i + 2] = CALCIUM
    labels[:PADDLE_PLANES] = labels[-PADDLE_PLANES:] = PADDLE
    return labels


def write(folder, name, labels, spacing=SPACING, compressed=False):
    """NAME.mhd and its data: bytes in a gzip, or 16 bits with the most significant byte first."""
    data = name + (".raw.gz" if compressed else ".raw")
    if compressed:
        with gzip.GzipFile(os.path.join(folder, data), "wb", mtime=0) as f:
            f.write(labels.astype(np.uint8).tobytes())
    else:
        labels.astype(">u2").tofile(os.path.join(folder, data))
    path = os.path.join(folder, name + ".mhd")
    with open(path, "w", encoding="ascii") as f:
        f.write("ObjectType = Image\nNDims = 3\nBinaryData = True\n"
                f"BinaryDataByteOrderMSB = {not compressed}\nCompressedData = {compressed}\n"
                f"ElementSpacing = {' '.join(map(str, spacing))}\nDimSize = {' '.join(map(str, labels.shape[::-1]))}\n"
                f"ElementType = {'MET_UCHAR' if compressed else 'MET_USHORT'}\nElementDataFile = {data}\n")
    return path
