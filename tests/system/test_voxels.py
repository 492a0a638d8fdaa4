# SPDX-License-Identifier: Apache-2.0
"""A breast of labelled voxels with spiculated masses, simulated and reconstructed: the masses are found again where
they are.

The volume is that of tools/voxel_breast.py, with one mass, as bytes in a gzip. A second volume is made of it, with
three further copies of that mass in fatty tissue at other depths, as 16-bit big-endian elements. Where
$TOMONODE_TEST_DATA names a folder with victre/pcl_1.mhd (a compressed breast of the VICTRE pipeline, CC0), the same is
done with that. The detector is binned by 4; a mass attenuates 5 % more than glandular tissue does.

What is asked of each mass:
* truth.json names its centre of mass (computed here once more), to a tenth of a voxel
* in the slice of its centre it is brighter than the ring around it
* the slice, smoothed over the size of the mass, is brightest within 2 mm of the centre (seen among places up to 5 mm
  away)
* against the same breast with glandular tissue in place of the masses, the difference is largest within 3 mm of the
  centre's height: the arc of 50 degrees blurs a mass of 8 mm over its own height in z, and only the difference is free
  of the tissue above and below
Of the calcifications truth.json names the centres.
"""
import glob
import gzip
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h
from tools import voxel_breast
from tools.voxel_breast import CALCIUM, MASS, PADDLE

VICTRE = os.path.join(os.environ.get("TOMONODE_TEST_DATA", ""), "victre", "pcl_1.mhd")
MATERIALS = os.path.join(os.environ["TOMONODE_SOURCE"], "conf", "materials-20keV.conf")
GLANDULAR, SUPPORT = "0.0802", 17.0  # 1/mm, mm
# Voxels, x y z: where the further masses have their centres.
COPIES = ((90, 90, 20), (30, 236, 50), (70, 72, 68))
SIZE = {} if h.TIER == 2 else {"views": 9, "detector": "900x2000"}
VICTRE_COPIES = ((160, 316, 64), (108, 300, 104), (96, 292, 208))


def read_victre():
    size = (258, 539, 331)
    with gzip.open(VICTRE.replace(".mhd", ".raw.gz")) as f:
        return np.frombuffer(f.read(), np.uint8).reshape(size)


def with_copies(labels, places):
    """The volume with the mass at further places, and the centres of all: x, y, z in voxels."""
    where = np.argwhere(labels == MASS)
    centre = where.mean(axis=0)
    out, centres = labels.copy(), [centre[::-1]]
    for place in places:
        shift = np.round(np.array(place[::-1]) - centre).astype(int)
        at = where + shift
        under = out[tuple(at.T)]
        assert (under != 0).all() and (under != PADDLE).all(), f"the mass at {place} leaves the breast"
        out[tuple(at.T)] = MASS
        centres.append((centre + shift)[::-1])
    return out, centres


def in_scan(centre, labels, spacing):
    """Voxels to mm in the axes of the scan: the first plane above the lower paddle lies on the breast support."""
    paddle = (labels == PADDLE).sum(axis=(1, 2)) * 2 > labels[0].size
    first = int(np.argmin(paddle))
    return np.array([(centre[0] + 0.5) * spacing[0], (centre[1] + 0.5 - labels.shape[1] / 2) * spacing[1],
                     SUPPORT + (centre[2] + 0.5 - first) * spacing[2]])


def calcifications(labels, spacing):
    """Their centres in the axes of the scan: each lies in a half of y of its own."""
    at = np.argwhere(labels == CALCIUM)
    halves = (at[at[:, 1] < labels.shape[1] / 2], at[at[:, 1] >= labels.shape[1] / 2])
    return [in_scan(half.mean(axis=0)[::-1], labels, spacing) for half in halves if len(half)]


def smooth(image, sigma):
    """With a Gaussian of sigma pixels."""
    reach = int(np.ceil(3 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        image = np.apply_along_axis(lambda line: np.convolve(line, kernel, "same"), axis, image)
    return image


def crop(result, point, mm):
    """The frame, and rows and columns of the square of +-mm around a point of the patient."""
    k, r, c = result.index(point)
    w = int(np.ceil(mm / result.spacing[0]))
    rows = np.arange(max(0, round(r) - w), min(result.mu.shape[1], round(r) + w + 1))
    columns = np.arange(max(0, round(c) - w), min(result.mu.shape[2], round(c) + w + 1))
    away = np.hypot(*np.meshgrid((rows - r) * result.spacing[0], (columns - c) * result.spacing[1], indexing="ij"))
    return k, np.ix_(rows, columns), away


def find(result, without, mass, failures):
    radius = float(np.mean(mass["half_axes_mm"][:2]))
    k, square, away = crop(result, mass["patient_mm"], 4 * radius)
    plane = result.mu[round(k)][square].astype(float)
    inside, ring = plane[away < 0.8 * radius].mean(), plane[(away > 1.3 * radius) & (away < 2 * radius)].mean()
    contrast = inside / ring - 1
    smoothed = smooth(plane, radius / 2 / result.spacing[0])
    seen = np.where(away <= 5, smoothed, -1)
    off = away[np.unravel_index(np.argmax(seen), seen.shape)]
    disc, around = away < 0.8 * radius, (away > 1.3 * radius) & (away < 2 * radius)
    changed = (a[square] - b[square] for a, b in zip(result.mu, without.mu))
    change = [float(d[disc].mean() - d[around].mean()) for d in changed]
    depth = (int(np.argmax(np.abs(change))) - k) * np.linalg.norm(result.slice_step)
    half = np.flatnonzero(np.abs(change) > np.abs(change).max() / 2)
    print(f"mass at {np.round(mass['center_mm'], 1)} mm, radius {radius:.1f}: contrast {100 * contrast:+.1f} % (truth"
          f" {mass['mu_per_mm']:.4f} /mm), maximum {off:.2f} mm off in the slice, {depth:+.1f} mm in z,"
          f" seen over {len(half)} slices")
    tools.check(contrast > 0, f"a mass at {mass['center_mm']} has contrast {contrast:.4f}", failures)
    tools.check(off <= 2, f"a mass at {mass['center_mm']} is brightest {off:.2f} mm from its centre", failures)
    tools.check(abs(depth) <= 3, f"a mass at {mass['center_mm']} is {depth:.1f} mm off in z", failures)


def simulate_and_find(folder, volume, centres, spacing, failures):
    options = {"phantom": "voxels", "from": volume, "binning": 4, "i0": 4000, "seed": 2, **SIZE}
    no_mass = os.path.join(folder, "no-mass.conf")
    with open(MATERIALS, encoding="ascii") as f, open(no_mass, "w", encoding="ascii") as out:
        for line in f:
            words = line.split()
            out.write(f"{MASS} {GLANDULAR} gland tissue\n" if words[:1] == [str(MASS)] else line)
    results, truths = [], []
    for materials in (MATERIALS, no_mass):
        exam = os.path.join(folder, f"exam{len(results)}")
        truths.append(tools.simulate(exam, materials=materials, **options))
        _, path = tools.reconstruct(os.path.join(folder, f"out{len(results)}"), exam, settings=("voxel=0",))
        results.append(tools.Result(path))
    check_truth(truths, centres, spacing, failures)
    for mass in named(truths[0], "lesion"):
        find(results[0], results[1], mass, failures)


def named(truth, role):
    return [s for s in truth["shapes"] if s["role"] == role]


def check_truth(truths, centres, spacing, failures):
    """Of both exams, that with masses and that without; centres: {role: places in the scan}."""
    for role, places in centres.items():
        pieces = named(truths[0], role)
        tools.check(len(pieces) == len(places), f"truth.json names {len(pieces)} of {len(places)}: {role}", failures)
        for piece in pieces:
            nearest = min((np.abs(np.array(piece["center_mm"]) - place) / spacing).max() for place in places)
            tools.check(nearest < 0.1, f"{piece['center_mm']} is {nearest:.3f} voxels from any {role}", failures)
    tools.check(not named(truths[1], "lesion"), "a lesion without one", failures)
    tools.check(truths[0]["series"] != truths[1]["series"], "other materials, the same series", failures)


def test_usage(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for words in (("--phantom", "voxels"), ("--phantom", "voxels", "--from", "a"), ("--from", "a"),
                  ("--materials", "a"),
                  ("--phantom", "voxels", "--from", "a", "--materials", "b", "--thickness", "40")):
        h.check("voxels" in tools.run("simulate", "dbt", *words, "-o", "nowhere", ok=(2,)).stderr, words)
    h.check(not os.listdir("."), "a folder for an exam that was refused")


VICTRE_ONLY = pytest.mark.skipif("TOMONODE_TEST_DATA" not in os.environ, reason="TOMONODE_TEST_DATA has no victre")
LONG = pytest.mark.tier2("test_four_masses has this mass, too")


@pytest.mark.parametrize("victre", [pytest.param(False, marks=LONG), pytest.param(True, marks=(LONG, VICTRE_ONLY))])
def test_one_mass(folder, failures, victre):
    """Of bytes in a gzip."""
    labels, spacing = (read_victre(), (0.2, 0.2, 0.2)) if victre else (voxel_breast.breast(), voxel_breast.SPACING)
    volume = VICTRE if victre else voxel_breast.write(folder, "one", labels, compressed=True)
    one = in_scan(np.argwhere(labels == MASS).mean(axis=0)[::-1], labels, spacing)
    simulate_and_find(folder, volume, {"lesion": [one], "bead": calcifications(labels, spacing)}, spacing, failures)


@pytest.mark.parametrize("victre", [False, pytest.param(True, marks=(LONG, VICTRE_ONLY))])
def test_four_masses(folder, failures, victre):
    """Of 16 bits; a volume of bytes in a gzip gives the same images."""
    labels, spacing = (read_victre(), (0.2, 0.2, 0.2)) if victre else (voxel_breast.breast(), voxel_breast.SPACING)
    four, centres = with_copies(labels, VICTRE_COPIES if victre else COPIES)
    places = {"lesion": [in_scan(c, labels, spacing) for c in centres], "bead": calcifications(labels, spacing)}
    volume = voxel_breast.write(folder, "four", four, spacing)
    simulate_and_find(folder, volume, places, spacing, failures)
    pixels = []
    for path in (volume, voxel_breast.write(folder, "compressed", four, spacing, compressed=True)):
        exam = path[:-4]
        tools.simulate(exam, **{"phantom": "voxels", "from": path, "materials": MATERIALS, "binning": 8, "views": 2,
                                "seed": 2})
        pixels.append([pydicom.dcmread(p).pixel_array for p in sorted(glob.glob(exam + "/*.dcm"))])
    tools.check(len(pixels[0]) == 2 and np.array_equal(*pixels), "the compressed volume gives other images", failures)
