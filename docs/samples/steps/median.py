#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A step: the median of 3 x 3 x 3 voxels, mixed with the volume as `strength=` says. Called as: median.py IN OUT (docs/steps.md)."""
import json
import os
import sys

import numpy as np


def median(x):
    """The median of each voxel and its 26 neighbours; at the border the nearest voxels are repeated."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1, mode="edge"), (3, 3, 3))
    return np.stack([np.median(part.reshape(*part.shape[:2], 27), axis=2) for part in windows])


def main(folder, out):
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
        case = json.load(f)
    words = dict(word.split("=") for word in case["step"]["parameters"].split())
    strength = float(words.get("strength", 1))
    x = np.fromfile(os.path.join(folder, "volume.f32"), "<f4").reshape(case["arrays"]["volume"]["shape"])
    y = (x + strength * (median(x) - x)).astype("<f4")
    y.tofile(os.path.join(out, "volume.f32"))
    with open(os.path.join(out, "step.json"), "w", encoding="utf-8") as f:
        json.dump({"summary": f"median of 3 x 3 x 3 voxels, strength {strength:g}", "figures": {"noise removed": float((x - y).std())},
                   "warnings": []}, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
