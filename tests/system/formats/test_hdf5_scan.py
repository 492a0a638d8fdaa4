#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The sample that converts scans of beamlines (docs/samples/beamline), with files that h5py writes here, and a real one."""
import json
import os

import numpy as np
import pytest

from tools import node_harness as h
from tools.node_harness import check

SOURCE = os.environ["TOMONODE_SOURCE"]
h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.tier2("a sample, not the program; needs h5py")
SCRIPT = os.path.join(SOURCE, "docs/samples/beamline/hdf5_scan.py")
DATA = os.path.join(os.environ.get("TOMONODE_DATA", os.path.join(SOURCE, "../shared/data")), "parallel-real/tooth.h5")


def recon(folder, name):
    p = h.run(h.TOMONODE, "recon", "--json", "--device", "cpu", "-o", os.path.join(folder, name + "-images"), os.path.join(folder, name + ".hs"))
    return json.loads(p.stdout)["cases"][0]["parallel"]


def test_a_wedge_in_drifting_light(folder):
    """NXtomo: the line integrals of a scan whose flat field falls by a third are those of the object, and the axis is found."""
    bins, views = 96, 90
    angles, at = np.arange(views) * 2.0, np.arange(bins) - 47.5 - 3.4
    centre = 12 * np.cos(np.radians(angles))[:, None] + 7 * np.sin(np.radians(angles))[:, None]
    true = 0.05 * 2 * np.sqrt(np.maximum(0, 20**2 - (at - centre) ** 2)) + 0.02 * 2 * np.sqrt(np.maximum(0, 35**2 - at**2))
    light = 4e4 * np.linspace(1, 2 / 3, views + 2)[:, None] * np.linspace(0.9, 1.1, bins)
    frames = np.concatenate(([np.full(bins, 100)], 100 + light[:1], 100 + light[1:-1] * np.exp(-true), 100 + light[-1:]))
    path = os.path.join(folder, "wedge.h5")
    with h5py.File(path, "w") as f:
        detector = f.create_group("entry/instrument/detector")
        detector["data"], detector["image_key"] = np.rint(frames)[:, None].astype("<u2"), [2, 1] + [0] * views + [1]
        detector["x_pixel_size"] = 0.0005
        detector["x_pixel_size"].attrs["units"] = "m"
        f["entry/sample/rotation_angle"] = np.concatenate(([0, 0], angles, [180]))
    h.run("/usr/bin/python3", SCRIPT, path, "-o", os.path.join(folder, "wedge"))
    h.run(h.TOMONODE, "arrays", "read", "-o", os.path.join(folder, "arrays"), os.path.join(folder, "wedge.hs"))
    lines = np.fromfile(os.path.join(folder, "arrays/data.f32"), "<f4").reshape(views, bins)
    check(np.abs(lines - true).max() < 0.005 * true.max(), np.abs(lines - true).max())
    case = recon(folder, "wedge")
    axis = case["axis"]
    check(axis["header_mm"] is None and abs(axis["offset_mm"] + 3.4 * 0.5) < 0.25 * 0.5, axis)
    check(case["intensities"] == {"flat_fields": 2, "dark_fields": 1, "dead_bins": 0, "hot_bins": 0, "noisy_bins": 0, "hits": 0, "no_signal": 0}, case["intensities"])
    refused = h.run("/usr/bin/python3", SCRIPT, os.path.join(folder, "wedge.s"), "-o", os.path.join(folder, "no"), code=1).stderr
    check("HDF5" in refused or "signature" in refused, refused)


@pytest.mark.skipif(not os.path.exists(DATA), reason="no folder of real scans")
def test_a_tooth(folder):
    """DXchange: the axis of a real scan is where centre of mass and opposite views of other programs see it, 295.6 to 296.2. Its bins are good;
    two values are above those around them by 1800 and 1700, which differ by 500 and 700."""
    h.run("/usr/bin/python3", SCRIPT, DATA, "--bin", 1, "-o", os.path.join(folder, "tooth"))
    case = recon(folder, "tooth")
    check(abs(639 / 2 - case["axis"]["offset_mm"] - 296.0) < 0.25 and "the axis of rotation is" not in case["warnings"].lower(), case)
    check([case["intensities"][key] for key in ("dead_bins", "hot_bins", "noisy_bins", "hits", "no_signal")] == [0, 0, 0, 2, 0], case["intensities"])
    check("bin 291 of slice 1 in view 171, bin 52 of slice 2 in view 68" in case["warnings"], case["warnings"])
    refused = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "parallel-mlem", "-o", folder, os.path.join(folder, "tooth.hs"), code=4).stderr
    check("mlem and osem take no negative values" in refused, refused)
