# SPDX-License-Identifier: Apache-2.0
"""List mode for tests: PETSIRD files of any scanner with many events, written independently of the program, and the
expected numbers of events of a cylinder or a point."""
import math

import numpy as np

from tools import petsird_tools as p


class Encoded:
    """Events as the bytes of their three numbers, far faster than one by one."""

    def __init__(self, events):
        values = np.asarray(events, np.uint32).reshape(-1)
        parts = np.stack([values >> shift & 127 for shift in (0, 7, 14, 21, 28)], axis=1).astype(np.uint8)
        length = 1 + sum((values >= 1 << shift).astype(int) for shift in (7, 14, 21, 28))
        parts |= np.where(np.arange(5) + 1 < length[:, None], 128, 0).astype(np.uint8)
        self.n, self.bytes = len(values) // 3, parts[np.arange(5) < length[:, None]].tobytes()


class Writer(p.Writer):
    def value(self, t, v, scope):
        if not isinstance(v, Encoded):
            super().value(t, v, scope)
            return
        self.varint(v.n)
        self.out += v.bytes


def box(depth, width, height):
    return [{"c": np.array((x, y, z), float)} for x in (-depth / 2, depth / 2) for y in (-width / 2, width / 2)
            for z in (-height / 2, height / 2)]


def shift(x, y, z):
    return p.transform(((1, 0, 0, x), (0, 1, 0, y), (0, 0, 1, z)))


def placed(radius, degrees, z=0.0, tilt=0.0):
    """A module at a radius, turned about the z axis and then about itself by `tilt` degrees."""
    a, b = math.radians(degrees), math.radians(degrees + tilt)
    return p.transform(((math.cos(b), -math.sin(b), 0, radius * math.cos(a)),
                        (math.sin(b), math.cos(b), 0, radius * math.sin(a)), (0, 0, 1, z)))


def module(columns, rows, width, height, depth=10.0):
    """Flat: columns along y, rows along z, the face towards the axis along x."""
    elements = [shift(0, (i - (columns - 1) / 2) * width, (k - (rows - 1) / 2) * height) for i in range(columns)
                for k in range(rows)]
    return {"detectingElements": {"object": {"shape": {"corners": box(depth, width, height)}, "materialId": 1},
                                  "transforms": elements}}


def header(types, tof=(-300.0, 300.0), fwhm=30.0, groups=None):
    """types: [(module, [transform])]. groups: SGID tables by pair of types, [i][j][module][module]."""
    pairs = range(len(types))
    edges = {"edges": np.array(tof)}
    efficiencies = {"calibrationFactor": 1.0}
    if groups:
        efficiencies["modulePairSGIDLUT"] = groups
    return {"scanner": {"modelName": "BLOCKS",
                        "scannerGeometry": {"replicatedModules": [{"object": m, "transforms": t} for m, t in types]},
                        "tofBinEdges": [[edges] * (i + 1) for i in pairs],
                        "tofResolution": [[fwhm] * (i + 1) for i in pairs],
                        "eventEnergyBinEdges": [{"edges": np.array((400.0, 650.0))} for _ in pairs],
                        "promptEventPolicy": 1, "delayedEventPolicy": 1, "promptEventsAreStored": True,
                        "delayedEventsAreStored": True,
                        "detectionEfficiencies": efficiencies},
            "exam": {"startOfAcquisition": p.START * 10**9}}


def positions(head):
    """[n, 3] of all detectors, type after type, and the type of each."""
    where, kinds = [], []
    for kind, m in enumerate(head["scanner"]["scannerGeometry"]["replicatedModules"]):
        elements = m["object"]["detectingElements"]
        centre = np.mean([c["c"] for c in elements["object"]["shape"]["corners"]], axis=0)
        inner = [t["matrix"] @ (*centre, 1) for t in elements["transforms"]]
        where += [t["matrix"] @ (*at, 1) for t in m["transforms"] for at in inner]
        kinds += [kind] * (len(m["transforms"]) * len(inner))
    return np.array(where), np.array(kinds)


def chords(first, second, radius, half, centre=(0.0, 0.0, 0.0)):
    """Lengths of lines inside a cylinder along z."""
    first, second = first - centre, second - centre
    along = second - first
    a, b = (along[:, :2] ** 2).sum(1), (first[:, :2] * along[:, :2]).sum(1)
    c = (first[:, :2] ** 2).sum(1) - radius**2
    root = np.sqrt(np.maximum(b * b - a * c, 0))
    low, high = (-b - root) / np.maximum(a, 1e-9), (-b + root) / np.maximum(a, 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack(((-half - first[:, 2]) / along[:, 2], (half - first[:, 2]) / along[:, 2])), axis=0)
    flat = np.abs(along[:, 2]) < 1e-9
    inside = np.abs(first[:, 2]) < half
    ends = np.where(flat, np.where(inside, [[0.0], [1.0]], 0.0), ends)
    length = np.minimum(np.minimum(high, ends[1]), 1) - np.maximum(np.maximum(low, ends[0]), 0)
    return np.maximum(length, 0) * np.linalg.norm(along, axis=1)


def lors(n, alive=None):
    """All pairs (larger, smaller) of n detectors, or those of which alive(larger, smaller) is true."""
    a, b = np.tril_indices(n, -1)
    if alive is not None:
        keep = alive(a, b)
        a, b = a[keep], b[keep]
    return a, b


def repeated(a, b, expected, total, seed):
    """Pairs repeated so that each has its expected number, rounded up or down at random: nearly without noise."""
    rng = np.random.default_rng(seed)
    expected = expected * (total / expected.sum())
    n = np.floor(expected + rng.random(len(a))).astype(int)
    order = rng.permutation(int(n.sum()))
    return np.repeat(a, n)[order], np.repeat(b, n)[order]


def block(start, stop, head, a, b, tof=0, delayeds=()):
    """A time block of events of the detectors a > b, whose numbers are those of positions()."""
    _, kinds = positions(head)
    first = np.array([np.argmax(kinds == kind) for kind in range(kinds[-1] + 1)])
    tof = np.broadcast_to(tof, a.shape)
    lists = [[Encoded(np.stack((a[s] - first[i], b[s] - first[j], tof[s]), axis=1)) for j in range(i + 1)
              for s in [(kinds[a] == i) & (kinds[b] == j)]]
             for i in range(len(first))]
    return ("EventTimeBlock", {"timeInterval": {"start": start, "stop": stop}, "promptEvents": lists,
                               "delayedEvents": [[list(delayeds)]]})


def of_bins(counts, rings, detectors, seed):
    """Events of counts[TOF bin][plane][angle][radial] in random order, planes by ring differences 0, 1, -1, 2 ..., as
    recon/pet/michelogram_pairs.h numbers them: the detector with the larger number first, detectors and TOF bins as
    Encoded has them, of modules that are columns of `rings` detectors from the negative y axis on."""
    first, second = [], []
    for d in range(rings):
        for sign in (1, -1)[:1 + (d > 0)]:
            for a in range(rings - d):
                first.append(a + d if sign > 0 else a)
                second.append(a if sign > 0 else a + d)
    n_tof, _, _, n_radial = counts.shape
    at = np.repeat(np.arange(counts.size), counts.reshape(-1))
    k, plane, v, t = np.unravel_index(np.random.default_rng(seed).permutation(at), counts.shape)
    t = t - n_radial // 2
    a = (v - (t + 1) // 2 + detectors // 2) % detectors * rings + np.array(first)[plane]
    b = (v + t // 2) % detectors * rings + np.array(second)[plane]
    return np.stack((np.maximum(a, b), np.minimum(a, b), np.where(a > b, n_tof - 1 - k, k)), axis=1)


def pair_block(start, stop, prompts, delayeds):
    """A time block of one type of modules; events as of_bins() has them."""
    return ("EventTimeBlock", {"timeInterval": {"start": start, "stop": stop}, "promptEvents": [[Encoded(prompts)]],
                               "delayedEvents": [[Encoded(delayeds)]]})


def write(path, head, blocks, version="0.12.0"):
    Writer(p.stored("ring", version)[1]).file(path, head, blocks)
