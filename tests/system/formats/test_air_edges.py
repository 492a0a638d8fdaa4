# SPDX-License-Identifier: Apache-2.0
"""What looks like air and is not, or hides it, as DICOM objects: a detector that clips below the air, the shadow of a
collimator that is not marked as padding, the edge of a compression paddle. The attenuation of a slab is right to 2 %,
or it is called relative with the reason."""
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h

MU = 0.05  # 1/mm
SIMULATION = {"phantom": "slab", "binning": 8, "views": 5}


def change(source, target, values):
    """Copy the images; values(image, rng): what becomes of the pixels, columns away from the chest wall."""
    os.makedirs(target)
    for number, name in enumerate(sorted(n for n in os.listdir(source) if n.endswith(".dcm"))):
        ds = pydicom.dcmread(os.path.join(source, name))
        step = 1 if ds.PatientOrientation[0] == "A" else -1
        image = values(ds.pixel_array.astype(float)[:, ::step], np.random.default_rng(number))[:, ::step]
        ds.PixelData = np.ascontiguousarray(np.round(image).astype(np.uint16)).tobytes()
        ds.save_as(os.path.join(target, name))


def clip(share, i0):
    return lambda image, rng: np.minimum(image, share * i0)


def collimate(far, ends, i0):
    """The last columns, and the first and last rows, show half a percent of the beam."""
    def values(image, rng):
        shadow = np.zeros(image.shape, bool)
        shadow[:, image.shape[1] - far:] = True
        shadow[:ends] = shadow[image.shape[0] - ends:] = True
        return np.where(shadow, rng.poisson(0.005 * i0, image.shape), image)
    return values


def paddle(share, step):
    """The beam behind the paddle, which covers this share of the columns, is weaker by a step of its logarithm."""
    def values(image, rng):
        image[:, :int(share * image.shape[1])] *= np.exp(-step)
        return image
    return values


# name: percent of air, pixels (by the value of air), what the warning says, quantitative
CASES = {"plain": (15, lambda i0: lambda image, rng: image, "", True),
         "clipped": (15, lambda i0: clip(0.7, i0), "value of air is over range", False),
         "collimated": (15, lambda i0: collimate(12, 28, i0), "The shadow of a collimator is left out of 5 projections",
                        True),
         "collimated, no air": (0, lambda i0: collimate(12, 28, i0), "too bright for its thickness", False),
         "paddle": (15, lambda i0: paddle(0.93, 0.17), "edge of a compression paddle", False)}


@pytest.mark.parametrize("name", CASES)
def test_attenuation_is_right_or_called_relative(folder, failures, name):
    air, values, text, quantitative = CASES[name]
    exam = h.kept(f"air-{air}", lambda made: tools.simulate(made, air=air, **SIMULATION))
    truth = tools.truth_of(exam)
    change(exam, os.path.join(folder, "changed"), values(truth["i0"]))
    case, path = tools.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "changed"),
                                   settings=("slice_spacing=2",))
    size = truth["columns"] * truth["pixel_mm"], truth["rows"] * truth["pixel_mm"]
    places = [(x * size[0], y * size[1]) for x in (0.15, 0.35, 0.55) for y in (-0.15, 0.15)]
    worst = np.abs(tools.Result(path).medians(truth, places, 1, 6) / MU - 1).max()
    print(f"{100 * worst:.1f} %, {case['quantitative']}, '{case['warnings']}'")
    tools.check(case["quantitative"] == quantitative, f"{case['unattenuated']}, '{case['warnings']}'", failures)
    tools.check(not case["quantitative"] or worst < 0.02, f"{100 * worst:.1f} % of {MU}/mm", failures)
    tools.check(text in case["warnings"], f"'{case['warnings']}'", failures)
