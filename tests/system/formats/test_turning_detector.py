# SPDX-License-Identifier: Apache-2.0
"""A system whose detector turns with the source, with the geometry of a Hologic Dimensions: simulated exams, through
DICOM, back. Every bead is where the result's own attributes say, for L and R, CC and MLO; if the same exam is read as
if the detector stood still, beads are off by millimetres."""
import os

import pytest

from tools import dbt_tools as tools

# Decoded from one unit's header (docs/geometry.md): 15 views over 15 degrees, source 13.7 mm behind the chest-wall
# edge.
# a short arc: one iteration leaves beads off by 0.15 mm, still detector or not
SETTINGS = ("voxel=0", "projector=slices", "iterations=3")
PROFILE = """profiles = ( {{ name = "turning"; manufacturer = "HOLOGIC*"; model = "*Dimensions*";
  axis_height = -1.6; source_axis = 696.7; support = 25.0; source_x = -13.7; pitch = 0.14; detector_ratio = {ratio};
  detector_axis_y = 0.3; i0_mode = "percentile"; i0 = 95.0; sid_tolerance = 6.0; }} );
"""


def write_config(folder, name, ratio):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(PROFILE.format(ratio=ratio))
    return path


def simulate_exam(folder, config, **options):
    return tools.simulate(folder, config=config, system="turning", phantom="beads", arc=15, i0=20000, seed=5, **options)


FEW, LONG = {"views": 9}, pytest.mark.tier2("all projections, all sides and views")
CASES = [("L", "MLO", "bp", FEW)]  # and R CC below
CASES += [pytest.param(side, view, f, {"views": 15}, marks=LONG)
          for side, view, f in (("L", "CC", "mg"), ("L", "MLO", "bp"), ("R", "CC", "mg"), ("R", "MLO", "mg"))]


@pytest.mark.parametrize("side, view, image_format, size", CASES)
def test_beads_are_where_truth_says(folder, failures, side, view, image_format, size):
    turning, exam = write_config(folder, "turning", 0.285), os.path.join(folder, "exam")
    truth = simulate_exam(exam, turning, side=side, view=view, format=image_format, binning=1, detector="448x1024",
                          **size)
    _, path = tools.reconstruct(os.path.join(folder, "out"), exam, config=turning, settings=SETTINGS)
    off = tools.Result(path).beads_off(truth, tools.scan_axes(side, view))
    worst = abs(off).max(axis=0)
    print(f"{len(off)} beads, off by at most {worst.round(3)} mm in x, y, z")
    tools.check(worst[0] < 0.1 and worst[1] < 0.1 and worst[2] < 0.5,
                f"beads are off by {worst.round(3)} mm", failures)


@pytest.mark.tier2("the reverse of the tests before it")
def test_read_as_if_still_beads_are_off(folder, failures):
    """On a larger detector the error of a wrong geometry is larger."""
    turning, still = write_config(folder, "turning", 0.285), write_config(folder, "still", 0)
    exam, worst = os.path.join(folder, "exam"), []
    truth = simulate_exam(exam, turning, side="R", view="CC", binning=2, detector="1024x1536", views=9)
    for name, config in (("turning", turning), ("still", still)):
        _, path = tools.reconstruct(os.path.join(folder, "out-" + name), exam, config=config, settings=SETTINGS[:2])
        worst.append(abs(tools.Result(path).beads_off(truth, tools.scan_axes("R", "CC"))).max(axis=0))
    print(f"read as turning and as still: off by at most {worst[0].round(3)} and {worst[1].round(3)} mm")
    tools.check((worst[0] < (0.1, 0.1, 0.5)).all(), f"beads are off by {worst[0]} mm", failures)
    tools.check(worst[1].max() > 1 and worst[1].max() > 3 * worst[0].max(),
                f"as if still, beads are off by only {worst[1]} mm", failures)
