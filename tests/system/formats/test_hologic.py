# SPDX-License-Identifier: Apache-2.0
"""Exams of Hologic units, by an independent writer: a Breast Projection object whose header has a projection matrix for
each view gives the slices of the same exam with the geometry of the profile, and contradictions between the two are
refused with both numbers."""
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import hologic_tools as hologic

PROFILE = """profiles = ( {{ name = "hologic"; manufacturer = "HOLOGIC*"; model = "*Dimensions*";
  axis_height = 0.0; source_axis = 695.1; support = 25.0; source_x = {source_x}; pitch = 0.28; detector_ratio = 0.285;
  detector_axis_y = 0.3; i0_mode = "percentile"; i0 = 95.0; sid_tolerance = 6.0; angle_sign = -1; {more} }} );
"""
# no threshold that noise could cross
SETTINGS = ("voxel=0.28", "projector=slices", "algorithm=mlem", "iterations=1", "breast_mask=false", "slice_spacing=2")
DETECTOR = hologic.Detector(0.0, 695.1, -13.7, 0.285, 0.3, 0.28)


def config(folder, name, more="", source_x=-13.7):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(PROFILE.format(more=more, source_x=source_x))
    return path


def exam(folder, plain, side, view):
    """A simulated Breast Projection object, and the angles of its frames."""
    tools.simulate(os.path.join(folder, "exam"), config=plain, system="hologic", phantom="beads", binning=1,
                   detector="224x320", views=9,
                   arc=15, i0=4000, seed=3, side=side, view=view, format="bp")
    ds = pydicom.dcmread(os.path.join(folder, "exam", "exam.dcm"))
    return ds, hologic.frame_angles(ds)


def slices(folder, name, path, conf):
    _, result = tools.reconstruct(os.path.join(folder, "out-" + name), path, config=conf, settings=SETTINGS)
    return tools.Result(result).mu


def save(ds, folder, name, text=None, vr="UN"):
    path = os.path.join(folder, name)
    if text:
        hologic.put_matrices(ds, text, vr)
    ds.save_as(path, write_like_original=False)
    return path


@pytest.mark.parametrize("side, view, vr", [("R", "CC", "UN"), ("L", "MLO", "LT")])
def test_matrices_describe_the_geometry_of_the_profile(folder, failures, side, view, vr):
    """Those of a fit, to a few hundredths of a bin."""
    plain = config(folder, "plain")
    ds, angles = exam(folder, plain, side, view)
    want = slices(folder, "plain", os.path.join(folder, "exam"), plain)
    moved = slices(folder, "moved", save(ds, folder, "moved.dcm", hologic.matrices_text(DETECTOR, angles), vr),
                   config(folder, "header", 'pose = "header"; pose_edge = 1664; pose_middle = 1024;', -40.0))
    other = slices(folder, "other", os.path.join(folder, "exam"), config(folder, "other", source_x=-12.7))
    off, control = (np.percentile(abs(x - want), 99.99) / np.median(want) for x in (moved, other))
    print(f"slices by matrices differ by {off:.4f} of the tissue, if the source is 1 mm off by {control:.4f}")
    tools.check(off < 0.02, f"slices differ by {off:.4f} of the tissue", failures)
    tools.check(control > 5 * off, f"the source 1 mm off changes them by only {control:.4f}", failures)


def test_open_field_by_distance_is_that_of_the_matrices(folder, failures):
    """Of their source, wherever the profile has it."""
    plain = config(folder, "plain", 'open_field = "distance";')
    ds, angles = exam(folder, plain, "R", "CC")
    want = slices(folder, "plain", os.path.join(folder, "exam"), plain)
    more = 'open_field = "distance"; pose = "header"; pose_edge = 1664; pose_middle = 1024;'
    moved = slices(folder, "moved", save(ds, folder, "moved.dcm", hologic.matrices_text(DETECTOR, angles)),
                   config(folder, "header", more, -199.0))
    off = np.percentile(abs(moved - want), 99.99) / np.median(want)
    print(f"open field by distance: slices by matrices differ by {off:.4f} of the tissue")
    tools.check(off < 0.02, f"open field by distance: slices differ by {off:.4f} of the tissue", failures)


def refused(folder, path, conf):
    done = tools.run("recon", "--json", "-o", os.path.join(folder, "none"), "-c", conf, "--device", "cpu", path,
                     ok=range(1, 100))
    return done.stdout + done.stderr


def test_contradictions_are_refused_with_both_numbers(folder, failures):
    plain = config(folder, "plain")
    ds, angles = exam(folder, plain, "R", "CC")
    good = hologic.matrices_text(DETECTOR, angles)
    far = hologic.Detector(0.0, 715.1, -13.7, 0.285, 0.3, 0.28)
    header = config(folder, "header", 'pose = "header";')
    cases = (
        ("none", None, header, ["no projection matrices in (0019,xx60)", "'HOLOGIC, Inc.'"]),
        ("far", hologic.matrices_text(far, angles), header,
         ["715.1 mm above the detector", "has 695.1 mm", "tolerance 6"]),
        ("rows", good, config(folder, "rows", 'pose = "header"; pose_rows = "-y";'),
         ["frame 9:", "its angle is -7.54 degrees", "check pose_rows and angle_sign"]),
        ("shifted", hologic.matrices_text(DETECTOR, np.asarray(angles) + 0.8), header,
         ["puts the source at", "tolerance 0.5"]),
        ("fewer", hologic.matrices_text(DETECTOR, angles[:-1]), header,
         ["8 projection matrices (0019,1060) for 9 frames"]),
    )
    for name, text, conf, parts in cases:
        d = pydicom.dcmread(os.path.join(folder, "exam", "exam.dcm"))
        said = refused(folder, save(d, folder, name + ".dcm", text), conf)
        for part in parts:
            tools.check(part in said, f"{name}: '{part}' is not in: {said[:600]}", failures)
