# SPDX-License-Identifier: Apache-2.0
"""Figures of images of the breast of voxels, used by tests/quality_dbt_voxels.py: noise, edge profiles of discs, steps. Needs numpy."""
import struct

import numpy

DISC = 20  # radius of the discs, voxels of the phantom
PHANTOM = 0.2  # mm, voxels of the phantom
BIN = 0.1  # mm, of edge profiles


def read_object(path, size, step, offset):
    """Return the attenuation, 1/mm: the pixels of an uncompressed object of 16 bits, the last element of its file."""
    with open(path, "rb") as f:
        data = f.read()
    columns, rows, frames = size
    length = 2 * columns * rows * frames
    at = data.rfind(b"\xe0\x7f\x10\x00OW\x00\x00" + struct.pack("<I", length + length % 2))
    if at < 0:
        raise SystemExit(f"{path}: no uncompressed pixels of {length} bytes")
    return numpy.frombuffer(data, "<u2", length // 2, at + 12).reshape(frames, rows, columns).astype(numpy.float32) * step + offset


def middle(image):
    frames, rows, _ = image.shape
    return image[frames // 2 - 3 * frames // 50:frames // 2 + 3 * frames // 50, rows * 3 // 10:rows * 7 // 10]


def block_means(parts, side):
    """Means over squares of `side` voxels; squares with a voxel outside the breast become NaN."""
    n, frames, rows, columns = parts.shape
    cut = parts[:, :, :rows // side * side, :columns // side * side].reshape(n, frames, rows // side, side, columns // side, side)
    inside = (cut.mean(0) > 0.03).all(axis=(2, 4))
    return numpy.where(inside, cut.mean(axis=(3, 5)), numpy.nan)


def noise(images, voxel):
    """Return the noise of a voxel and of squares of about 4 mm, relative to the mean, and the mean, from exams with different seeds."""
    parts = numpy.stack([middle(i) for i in images])
    inside = parts.mean(0) > 0.03
    mean = float(parts.mean(0)[inside].mean())
    squares = block_means(parts, max(1, round(4 / voxel)))
    return (float(parts.var(0, ddof=1)[inside].mean() ** 0.5) / mean, float(numpy.nanmean(squares.var(0, ddof=1)) ** 0.5) / mean, mean)


def add_discs(labels, free, kinds):
    """Write discs into a copy of the labels (z, y, x). kinds: (name, half thickness in voxels). Return the labels, the sites (kind, x,
    y, z) and, for each kind, {label: new label}: the same tissue with additional attenuation."""
    out, sites, maps = labels.copy(), [], [{} for _ in kinds]
    y, x = numpy.mgrid[0:labels.shape[1], 0:labels.shape[2]]
    free = iter(free)
    for k, cz in enumerate((80, 150, 200)):
        for j, cy in enumerate(range(130, 420, 85)):
            for i, cx in enumerate((55, 125, 195)):
                distance = numpy.hypot(y - cy, x - cx)
                if numpy.isin(labels[cz - 8:cz + 9][:, distance < 1.5 * DISC], (0, 50)).any():
                    continue
                kind = (i + j + k) % len(kinds)
                for z in range(cz - kinds[kind][1], cz + kinds[kind][1] + 1):
                    here = distance <= DISC
                    values = labels[z][here]
                    for value in numpy.unique(values):
                        if int(value) not in maps[kind]:
                            maps[kind][int(value)] = next(free)
                    out[z][here] = [maps[kind][int(v)] for v in values]
                sites.append((kinds[kind][0], cx, cy, cz))
    return out, sites, maps


def edge_profile(difference, sites, kind, axis, voxel, place):
    """Return the mean edge profile of the discs of a kind over the radius, within 45 degrees of an axis (0: x, 1: y), and the mean inside."""
    total, count, inner = numpy.zeros(80), numpy.zeros(80), []
    for name, cx, cy, cz in sites:
        if name != kind:
            continue
        column, row, frame = place(cx, cy, cz)
        slice_ = difference[frame]
        y, x = numpy.mgrid[0:slice_.shape[0], 0:slice_.shape[1]]
        x, y = (x - column) * voxel, (y - row) * voxel
        r = numpy.hypot(x, y)
        sector = (abs(x) > abs(y)) if axis == 0 else (abs(y) > abs(x))
        chosen = sector & (r < 80 * BIN)
        at = (r[chosen] / BIN).astype(int)
        total += numpy.bincount(at, slice_[chosen], 80)[:80]
        count += numpy.bincount(at, minlength=80)[:80]
        inner.append(slice_[r < 3].mean())
    return total / numpy.maximum(count, 1), count, float(numpy.mean(inner))


def mtf50(profile, count):
    """Return the frequency, 1/mm, where the modulation of the edge's derivative is half of that at 0; derivative within 2.5 mm of the edge."""
    edge = DISC * PHANTOM
    r = (numpy.arange(80) + 0.5) * BIN
    used = (count > 0) & (abs(r - edge) < 2.5)
    smooth = numpy.interp(r, r[used], profile[used])
    spread = -numpy.diff(smooth) * (abs(r[1:] - BIN / 2 - edge) < 2.5)
    at = r[1:] - BIN / 2
    spread *= 0.5 + 0.5 * numpy.cos(numpy.pi * numpy.clip((at - edge) / 2.5, -1, 1))
    frequency = numpy.arange(0, 3, 0.01)
    modulation = abs((spread * numpy.exp(-2j * numpy.pi * frequency[:, None] * at)).sum(1))
    modulation /= modulation[0]
    below = numpy.nonzero(modulation < 0.5)[0]
    if not below.size:
        return float("nan")
    k = int(below[0])
    return float(frequency[k - 1] + 0.01 * (modulation[k - 1] - 0.5) / (modulation[k - 1] - modulation[k]))
