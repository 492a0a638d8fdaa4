# SPDX-License-Identifier: Apache-2.0
"""The attenuation of a tomosynthesis result is right, or it is called relative: a slab of 0.050/mm in images with more
and less air, without any, and with air over the range of the detector; `require_quantitative`; the value of the
profile. Filtered backprojection of the same slab's beads."""
import json
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools.edits import edited_all

MU = 0.05  # 1/mm
SLAB = {"binning": 4, "detector": "640x1500", "views": 9, "arc": 40, "phantom": "slab"}


def change(source, target, columns, rows, values=None):
    """Copy the images with the `columns` next to the chest wall and the `rows` in the middle; values: what becomes of
    the pixels."""
    os.makedirs(target)
    for name in sorted(os.listdir(source)):
        if not name.endswith(".dcm"):
            continue
        ds = pydicom.dcmread(os.path.join(source, name))
        image = ds.pixel_array
        first = (image.shape[0] - rows) // 2
        image = image[first:first + rows]
        image = image[:, :columns] if ds.PatientOrientation[0] == "A" else image[:, -columns:]
        image = values(image) if values else image
        ds.FieldOfViewOrigin[0] += first * SLAB["binning"]
        ds.Rows, ds.Columns, ds.PixelData = *image.shape, np.ascontiguousarray(image).tobytes()
        ds.save_as(os.path.join(target, name))


def middle(path):
    """The median attenuation in the middle of the slab, and the label of its values."""
    result = tools.Result(path)
    n = result.mu.shape
    mapping = result.ds.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    return float(np.median(result.mu[n[0] // 4:3 * n[0] // 4, n[1] // 3:2 * n[1] // 3,
                                     n[2] // 3:2 * n[2] // 3])), mapping.LUTLabel


@pytest.fixture(scope="module")
def slab():
    """Folder and truth of the exam that all images are made of."""
    with tools.folder() as folder:
        yield folder, tools.simulate(folder, **SLAB)


def over_range(image, air):
    """As a system that writes 16383 beside values up to 3648, in 16 bits."""
    return np.where(image > air / 2, 65535, image / 4).astype(image.dtype)


def covered(image, air):
    """As if more of the slab covered the air."""
    return np.where(image > air / 2, np.median(image[image < air / 2]), image).astype(image.dtype)


# columns, rows, pixels, sources of I0 that must occur
IMAGES = {"air": (160, 375, None, {"air"}), "narrow": (142, 320, None, {"air", "other_views"}),
          "sides": (132, 300, None, {"air", "other_views"}),
          "none": (132, 300, covered, {"unknown"}), "over-range": (160, 375, over_range, {"unknown"})}


def images(slab, folder, name):
    """The folder of the images of this name."""
    exam, truth = slab
    columns, rows, values, _ = IMAGES[name]
    out = os.path.join(folder, name)
    change(exam, out, columns, rows, values and (lambda image: values(image, truth["i0"])))
    return out


@pytest.mark.parametrize("name", IMAGES)
def test_attenuation_is_right_or_called_relative(folder, failures, slab, name):
    case, path = tools.reconstruct(os.path.join(folder, "out"), images(slab, folder, name))
    mu, label = middle(path)
    sources = IMAGES[name][-1]
    known = "unknown" not in sources
    tools.check({k for k, n in case["unattenuated"].items() if n > 0} == sources, f"I0 from {case['unattenuated']}",
                failures)
    tools.check(case["quantitative"] == known and label == ("ATTENUATION" if known else "RELATIVE"),
                f"{case['quantitative']}, {label}", failures)
    tools.check(not known or abs(mu / MU - 1) < 0.02, f"{mu:.4f} instead of {MU}/mm", failures)
    tools.check(known == ("relative" not in case["warnings"]), f"warnings '{case['warnings']}'", failures)


def test_require_quantitative_refuses_the_relative(folder, failures, slab):
    args = ("--device", "cpu", "--set", "require_quantitative=true", "-o", os.path.join(folder, "held"))
    held = tools.run("recon", "--json", *args, images(slab, folder, "none"), ok=(4,))
    reason = json.loads(held.stdout)["refused"][0]["reason"]
    tools.check("would be relative" in reason and "siemens-inspiration" in reason, reason, failures)
    tools.run("recon", *args, images(slab, folder, "air"))


@pytest.mark.parametrize("name, range_", [("none", 1), ("over-range", 4)])
def test_profile_states_the_value_of_air(folder, failures, slab, name, range_):
    config = tools.profile_conf(os.path.join(folder, "conf"), air_value=round(slab[1]["i0"] / range_, 1))
    case, path = tools.reconstruct(os.path.join(folder, "out"), images(slab, folder, name), config=config)
    mu, label = middle(path)
    tools.check(case["unattenuated"]["profile"] == 9 and case["quantitative"] and label == "ATTENUATION", f"{case}",
                failures)
    tools.check(name == "none" or abs(mu / MU - 1) < 0.02, f"{mu:.4f} instead of {MU}/mm", failures)


def test_penalty_lowers_the_noise_and_is_in_the_result(folder, failures, slab):
    """It keeps the attenuation of the slab; without it nothing of it is in the result."""
    exam, noise = images(slab, folder, "air"), {}
    for weight in ("0", "0.3"):
        _, path = tools.reconstruct(os.path.join(folder, "prior-" + weight), exam,
                                    settings=("iterations=2", "slice_spacing=3", f"prior_weight={weight}"))
        mu = tools.Result(path).mu
        n = mu.shape
        part = mu[n[0] // 2, n[1] // 3:2 * n[1] // 3, n[2] // 3:2 * n[2] // 3]
        noise[weight] = float(part.std())
        tools.check(abs(part.mean() / MU - 1) < 0.03, f"prior_weight={weight}: {part.mean():.4f} instead of {MU}/mm",
                    failures)
        with open(path, "rb") as f:
            tools.check((b"prior_weight=0.3" in f.read()) == (weight != "0"), f"prior_weight={weight} in the result",
                        failures)
    tools.check(noise["0.3"] < 0.9 * noise["0"], f"noise {noise}", failures)


def test_shape_of_the_breast_is_in_the_result(folder, failures):
    """Used: its figures; not used, as the header has an implant: why; not asked for: nothing."""
    exam = os.path.join(folder, "exam")
    tools.simulate(exam, binning=8, views=7)
    for name, settings, says in (("shape", ("breast_shape=true",), "Start image of the breast's shape: rim"),
                                 ("off", (), None),
                                 ("implant", ("breast_shape=true",), "Uniform start image: Breast Implant Present (0028,1300) is YES.")):
        if name == "implant":
            edited_all(exam, exam, BreastImplantPresent="YES")
        case, path = tools.reconstruct(os.path.join(folder, name), exam, settings=("voxel=1.36", "slice_spacing=5", *settings))
        shape, group = case.get("breast_shape"), pydicom.dcmread(path, stop_before_pixels=True).SharedFunctionalGroupsSequence[0]
        text = str(group)
        tools.check(says in text if says else "tart image" not in text, f"{name}: {text[:2000]}", failures)
        if name == "shape":
            tools.check(shape["used"] and 20 < shape["width_mm"]["median"] < 35 and shape["fit_error"] < 0.05
                        and shape["thickness_at_mm"]["2"] < shape["thickness_at_mm"]["10"] < 0.8, f"{shape}", failures)
        else:
            tools.check(shape == (None if name == "off" else {"used": False, "reason": "Breast Implant Present (0028,1300) is YES"}),
                        f"{name}: {shape}", failures)


def test_metal_is_in_the_result(folder, failures):
    """Number and places of clips, in the header and in --json, of both breasts; of an exam without, and with `off`, nothing."""
    for side, clips, metal in (("L", 2, "reduce"), ("R", 1, "reduce"), ("L", 0, "reduce"), ("R", 1, "off")):
        name = f"{side}{clips}{metal}"
        exam = os.path.join(folder, name)
        truth = tools.simulate(exam, phantom="breast", side=side, clips=clips, detector="480x800", binning=4, thickness=30, seed=3)
        case, path = tools.reconstruct(os.path.join(folder, "out" + name), exam, settings=("voxel=0.34", f"metal={metal}"))
        found, text = case.get("metal"), str(pydicom.dcmread(path, stop_before_pixels=True).SharedFunctionalGroupsSequence[0])
        true = [s for s in truth["shapes"] if s["role"] == "metal"]
        tools.check((f"Metal: {clips} object" in text) == (clips > 0 and metal == "reduce") and text.count("Metal: ") <= 1,
                    f"{name}: {text[:2000]}", failures)
        tools.check(found is None if metal == "off" else len(found) == clips, f"{name}: {found}", failures)
        for s in true if metal == "reduce" else ():
            near = min(found, key=lambda o: np.linalg.norm(np.subtract(o["position_mm"], s["center_mm"])))
            pixel = s["column"] + 1, s["row"] + 1, s["center_mm"][2] - truth["support_mm"] + 0.5
            far = np.subtract([near[k] for k in ("column", "row", "slice")], pixel)
            said = f"column {near['column']:.0f}, row {near['row']:.0f}, slice {near['slice']:.0f} ({near['projections']} of 25 projections)"
            tools.check(np.abs(far).max() < 1 and said in text.replace("\n", ""), f"{name}: {near}, true {pixel}", failures)


@pytest.mark.parametrize("size", [{"detector": "1400x2200", "views": 13},
                                  pytest.param({}, marks=pytest.mark.tier2("the whole detector"))])
def test_filtered_backprojection_finds_the_beads(folder, failures, size):
    exam = os.path.join(folder, "beads")
    truth = tools.simulate(exam, phantom="beads", binning=4, seed=5, **size)
    run = tools.run("recon", "--json", "--device", "cpu", "--protocol", "dbt-fbp", "-o", os.path.join(folder, "fbp"),
                    exam)
    result = tools.Result(os.path.join(folder, "fbp", json.loads(run.stdout)["cases"][0]["file"]))
    tools.check(result.mu.min() < -0.01, f"least value {result.mu.min():.4f}: not filtered", failures)
    beads = [s for s in truth["shapes"] if s["role"] == "bead"]
    for s in beads:
        k, r, c, contrast = result.bead(s["patient_mm"], s["half_axes_mm"][0])
        away = tools.scan_axes("L", "CC") @ (result.patient(k, r, c) - np.array(s["patient_mm"]))
        tools.check(np.hypot(away[0], away[1]) < 0.4 and abs(away[2]) < 1.5, f"a bead is off by {away}", failures)
        tools.check(contrast > 0.02, f"a bead has a contrast of {contrast:.4f}/mm", failures)
    tools.check(len(beads) >= 5, f"{len(beads)} beads", failures)
