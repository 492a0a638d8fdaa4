# SPDX-License-Identifier: Apache-2.0
"""Projections made by another program: the example of DIDSR/ReconDBT (docs/samples). The sphere of calcification in the
breast phantom is where its data say, sharpest at its height, with angles of this sign only."""
import os
import subprocess
import sys

import numpy as np
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h

SOURCE = os.environ["TOMONODE_SOURCE"]
DATA = os.path.join(os.environ.get("TOMONODE_DATA", os.path.join(SOURCE, "..", "shared", "data")), "recondbt",
                    "proj.npz")
if not os.path.exists(DATA):
    h.skip("the projections of ReconDBT are not there (TOMONODE_DATA names the folder of recondbt/proj.npz)")
SPHERE = np.array([0.0, -31.0, 23.6])  # LPS: 31.0 mm from the chest wall, in the middle, 23.6 mm above the detector
SAMPLE = os.path.join(SOURCE, "docs", "samples", "recondbt")


def made(folder, name, text):
    conf = os.path.join(folder, name + ".conf")
    h.write_file(conf, text)
    _, path = tools.reconstruct(os.path.join(folder, name), os.path.join(folder, "exam"), config=conf,
                                settings=["iterations=4"])
    return tools.Result(path)


@pytest.mark.tier2("needs data that are not part of the repository")
def test_sphere_is_in_its_place(folder, failures):
    exam = os.path.join(folder, "exam")
    subprocess.run([sys.executable, os.path.join(SAMPLE, "recondbt_exam.py"), DATA, "-o", exam], check=True)
    text = h.read_file(os.path.join(SAMPLE, "recondbt.conf"))
    result = made(folder, "right", text)
    k, r, c, peak = result.bead(SPHERE, 3.0, reach=8.0)
    off = result.patient(k, r, c) - SPHERE
    print(f"sphere: off by {np.round(off, 2)} mm, contrast {peak:.3f}/mm")
    tools.check(abs(off[:2]).max() < 0.7 and abs(off[2]) < 2.0, f"the sphere is off by {off} mm", failures)
    wrong = made(folder, "wrong", text.replace("angle_sign = 1", "angle_sign = -1"))
    blurred = wrong.bead(SPHERE, 3.0, reach=8.0)[3]
    tools.check(blurred < 0.6 * peak, f"with the other sign the sphere is as sharp: {blurred:.3f} of {peak:.3f}/mm",
                failures)
