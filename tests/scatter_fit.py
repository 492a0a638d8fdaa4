#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fit the kernels of recon/dbt/scatter.c to the scatter of pencil beams (recon/phantom/scatter_mc.h) and print its table.

usage: scatter_fit.py PROGRAM [FOLDER]     PROGRAM: build/dev/tests/recon_test_scatter_mc; FOLDER: where the beams are kept
Needs numpy and scipy; takes some minutes. The beam enters at x = 200 mm, so that its slope along x is that of a cone.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from scipy.optimize import least_squares

THICKNESS = (20, 35, 50, 65, 80)
BEAMS = ((0, 17), (25, 17), (0, 30))  # angle in degrees, gap in mm
MU = 0.055
CELL, CELLS = 4, 100
HALF = CELL * CELLS / 2


def beam(program, folder, thickness, angle, gap, collisions=0):
    path = os.path.join(folder, f"beam_{thickness}_{angle}_{gap}_{collisions}")
    if not os.path.exists(path):
        subprocess.run([program, "pencil", str(thickness), str(gap), str(angle), str(MU), str(collisions), path], check=True)
    return np.fromfile(path, "f4").reshape(CELLS, CELLS).astype(float)


def slope(angle):
    turn = np.deg2rad(angle)
    height = 47 + 608.5 * np.cos(turn)
    return -HALF / height, 608.5 * np.sin(turn) / height  # toward the source


def term(height, power, lean, angle):
    y, x = np.mgrid[0:CELLS, 0:CELLS]
    to = slope(angle)
    x, y = (x + 0.5) * CELL - HALF - lean * height * to[0], (y + 0.5) * CELL - HALF - lean * height * to[1]
    return (power - 1) / np.pi * height ** (2 * power - 2) / (x * x + y * y + height * height) ** power


def kernel(p, k, angle, gap):
    part, near, far, near_lean, far_lean = p[2 + 5 * k:7 + 5 * k]
    return part * term(near + p[0] * gap, 2, near_lean, angle) + (1 - part) * term(far + p[1] * gap, 3, far_lean, angle)


def main(program, folder):
    beams = [(k, a, g, beam(program, folder, t, a, g)) for k, t in enumerate(THICKNESS) for a, g in BEAMS]

    def rest(p):
        out = []
        for k, angle, gap, image in beams:
            want = image / image.sum()
            out.append(((kernel(p, k, angle, gap) * CELL * CELL - want) / np.sqrt(np.maximum(want, 1e-5) + 2e-5))[20:80, 20:80].ravel())
        return np.concatenate(out)

    start = [1, 0.6] + [0.7, 1, 30, 0.43, 0.7] * len(THICKNESS)
    low = [0.3, 0] + [0.2, -10, 0, 0, 0] * len(THICKNESS)
    high = [1.5, 1.5] + [0.95, 100, 200, 2, 2] * len(THICKNESS)
    p = least_squares(rest, start, bounds=(low, high)).x
    print(f"NEAR_GAP {p[0]:.3f}, FAR_GAP {p[1]:.3f}")
    for k, t in enumerate(THICKNESS):
        ratios = []
        for n, angle, _, image in beams:
            if n == k:
                to = slope(angle)
                ratios.append(image.sum() / (1 + to[0] ** 2 + to[1] ** 2) ** (0.5 * (0.7 + 0.0175 * t)))
        repeated = 1 - beam(program, folder, t, *BEAMS[0], 1).sum() / beam(program, folder, t, *BEAMS[0]).sum()
        print(f"{{{t}, {np.mean(ratios):.4f}, " + ", ".join(f"{x:.3f}" for x in (*p[2 + 5 * k:7 + 5 * k], repeated)) + "},",
              "ratio by beam:", " ".join(f"{r:.4f}" for r in ratios))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        main(sys.argv[1], sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(sys.argv[1], made)
