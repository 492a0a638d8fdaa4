#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The scatter correction through DICOM: exams of slabs and breasts with the scatter of a Monte Carlo, compared with the same exams
without scatter. Prints the table of docs/numerics.md; takes some minutes and checks nothing.

usage: TOMONODE=build/release/tomonode tests/scatter_exams.py [PHANTOM THICKNESS]..."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
from tools import dbt_tools as tools  # noqa: E402

VIEWS, ARC, BINNING, VOXEL, AREA = 7, 50, 8, 0.68, 10.0
SETTINGS = (f"voxel={VOXEL}", "slice_spacing=5", "algorithm=mlem", "iterations=10")


def reconstruct(folder, name, exam, *settings):
    report, path = tools.reconstruct(os.path.join(folder, name), os.path.join(folder, exam), settings=(*SETTINGS, *settings))
    mu = tools.Result(path).mu
    return mu[len(mu) // 4:len(mu) - len(mu) // 4].mean(axis=0), report


def interior(mu, pixels=10):
    """The pixels at least `pixels` from air."""
    inside = mu > 0.02
    for axis in (0, 1):
        inside = np.logical_and.reduce([np.roll(inside, shift, axis) for shift in range(-pixels, pixels + 1)])
    inside[:pixels] = inside[-pixels:] = False
    inside[:, :pixels] = inside[:, -pixels:] = False
    return inside


def area_errors(mu, truth, inside):
    """The errors of the mean of squares of AREA mm in which all pixels are inside, in percent, and the squares' positions."""
    n = round(AREA / VOXEL)
    rows, columns = mu.shape[0] // n, mu.shape[1] // n
    blocks = [x[:rows * n, :columns * n].reshape(rows, n, columns, n) for x in (mu, truth, inside)]
    full = blocks[2].all(axis=(1, 3))
    return 100 * (blocks[0].mean(axis=(1, 3))[full] / blocks[1].mean(axis=(1, 3))[full] - 1), np.argwhere(full)


def measure(phantom, thickness):
    options = {"phantom": phantom, "detector": "2816x3584", "binning": BINNING, "thickness": thickness, "views": VIEWS, "arc": ARC, "i0": 20000}
    with tools.folder() as folder:
        tools.simulate(os.path.join(folder, "clean"), **options)
        tools.simulate(os.path.join(folder, "scattered"), scatter=1, **options)
        clean, _ = reconstruct(folder, "a", "clean")
        off, _ = reconstruct(folder, "b", "scattered")
        on, report = reconstruct(folder, "c", "scattered", "scatter_correction=true")
    inside = interior(clean)
    errors, places = area_errors(on, clean, inside)
    mean = [100 * (x[inside].mean() / clean[inside].mean() - 1) for x in (off, on)]
    low, high = np.percentile(errors, (5, 95))
    print(f"{phantom:10s} {thickness} mm: without {mean[0]:+.1f} %, with {mean[1]:+.1f} %; {len(errors)} areas: 5 to 95 % {low:+.1f} to {high:+.1f} %, "
          f"all {errors.min():+.1f} to {errors.max():+.1f} %; S/P {report['scatter']['mean']:.3f}, air {report['scatter']['air']:.4f}", flush=True)
    if "SCATTER_MAP" in os.environ:
        shown = np.full(places.max(axis=0) + 1, np.nan)
        shown[tuple(places.T)] = errors
        print("\n".join(" ".join("    ." if np.isnan(e) else f"{e:+5.1f}" for e in row) for row in shown))


def main():
    wanted = list(zip(sys.argv[1::2], map(int, sys.argv[2::2]))) or [(p, t) for p in ("slab", "ellipsoids") for t in (20, 40, 60, 80)]
    for phantom, thickness in wanted:
        measure(phantom, thickness)


main()
