# SPDX-License-Identifier: Apache-2.0
"""`tomonode measure`: a simulated exam comes back with its beads where they are and its figures as numpy computes
them."""
import glob
import json
import os
import re

import numpy as np
import pydicom
import pytest

from tools import node_harness as h
from tools.dbt_tools import reconstruct, run, simulate

# 5.2/mm at the top: no bead is cut off. The largest value is below 2^14 steps, so that 14 bits store the same image
# exactly.
SETTINGS = ["voxel=0.34", "stored_step=8e-5"]
DISTANCE_PERCENT = 0.1  # of every distance, in space and in the plane, with voxels of 0.34 mm
SIZE = {} if h.TIER == 2 else {"detector": "1400x2400", "views": 13, "thickness": 36}  # tier 1: a part of the detector


@pytest.fixture(scope="module")
def made():
    """Exam, result and truth."""
    def make(folder):
        simulate(os.path.join(folder, "exam"), phantom="beads", binning=2, i0=20000, **SIZE)
        reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"), settings=SETTINGS)

    folder = h.kept("measure", make)
    return os.path.join(folder, "exam"), glob.glob(os.path.join(folder, "out",
                                                                "*.dcm"))[0], os.path.join(folder, "exam", "truth.json")


def figures(path, *options):
    return json.loads(run("measure", "--json", *options, path).stdout)


def test_beads_and_their_distances(made):
    _, path, truth_path = made
    found = figures(path, "--truth", truth_path)
    assert len(found["points"]) >= 5, found["points"]
    for point in found["points"]:
        assert point["found"], point
        assert (np.abs(point["error_mm"]) < (0.05, 0.05, 0.1)).all(), point
        assert 0.3 < point["fwhm_mm"][0] < 1.6 and 0.3 < point["fwhm_mm"][1] < 1.6 and point["snr"] > 5, point
        assert 1 < point["asf_fwhm_mm"] < 3 and max(v for _, v in point["asf"]) < 1.2 and len(point["asf"]) > 10, point
    n = len(found["points"])
    assert len(found["distances"]) == n * (n - 1) // 2, found["distances"]
    with open(truth_path, encoding="ascii") as f:
        center = {f"bead {i}": s["center_mm"] for i, s in enumerate(json.load(f)["shapes"])}
    for d in found["distances"]:
        assert abs(d["truth_mm"] - np.linalg.norm(np.subtract(center[d["from"]], center[d["to"]]))) < 1e-3, d
        assert abs(d["error_percent"]) < DISTANCE_PERCENT and abs(d["in_plane"]["error_percent"]) < DISTANCE_PERCENT, d
    print("worst distance: %.3f %%" % max(abs(d["error_percent"]) for d in found["distances"]))


def test_region_as_numpy_computes_it(made):
    _, path, _ = made
    image = pydicom.dcmread(path)
    groups = image.SharedFunctionalGroupsSequence[0]
    mapping = groups.RealWorldValueMappingSequence[0]
    spacing = [float(v) for v in groups.PixelMeasuresSequence[0].PixelSpacing]
    frame = image.pixel_array[20] * float(mapping.RealWorldValueSlope) + float(mapping.RealWorldValueIntercept)
    rows, columns = np.mgrid[0 : frame.shape[0], 0 : frame.shape[1]]
    column, row, radius = 120, frame.shape[0] // 2, 5.0
    x, y = (columns - (column - 1)) * spacing[1], (rows - (row - 1)) * spacing[0]
    inside = frame[np.hypot(x, y) <= 0.7 * radius]
    x, y = (columns - (column + 60 - 1)) * spacing[1], (rows - (row - 1)) * spacing[0]
    around = frame[np.hypot(x, y) <= 4]
    region = figures(path, "--background", f"{column + 60},{row},4", "--region",
                     f"here={column},{row},21,{radius}")["regions"][0]
    assert region["name"] == "here" and region["slice"] == 20
    assert region["pixels"] == inside.size and region["background_pixels"] == around.size, region
    assert abs(region["mean"] - inside.mean()) < 1e-6 and abs(region["background"] - around.mean()) < 1e-6
    assert abs(region["background_sd"] - around.std(ddof=1)) < 1e-6
    assert abs(region["cnr"] - (inside.mean() - around.mean()) / around.std(ddof=1)) < 1e-3 * abs(region["cnr"]) + 1e-6
    assert min(abs(z) for z, _ in region["asf"]) == 0 and abs(dict(map(tuple, region["asf"]))[0] - 1) < 1e-9


def test_points_of_the_caller(made):
    """They are found again, and nothing is called a truth that is none."""
    _, path, truth_path = made
    known = figures(path, "--truth", truth_path)
    options = []
    for point in known["points"][:2]:
        column, row, depth = point["expected"]
        options += ["--point",
                    "%s=%.0f,%.0f,%d" % (point["name"].replace(" ", ""), column + 1, row + 1, round(depth) + 1)]
    distance, = figures(path, *options)["distances"]
    assert abs(distance["measured_mm"] - known["distances"][0]["measured_mm"]) < 0.02, (distance, known["distances"][0])
    for d in (distance, distance["in_plane"]):
        assert d["truth_mm"] is None and d["error_percent"] is None and d["measured_mm"] > 0, d
    text = run("measure", *options, path).stdout
    assert " to " in text and "truth" not in text and "nan" not in text.split(" to ", 1)[1], text


def written_otherwise(source, target, order, turned, signed):
    """The same image: frames in another order, turned by half a turn, or signed, of 14 bits."""
    image = pydicom.dcmread(source)
    shared, frames = image.SharedFunctionalGroupsSequence[0], image.PerFrameFunctionalGroupsSequence
    pixels = image.pixel_array
    if turned:
        cosines = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float)
        spacing = [float(v) for v in shared.PixelMeasuresSequence[0].PixelSpacing]
        across, down = cosines[:3] * spacing[1] * (image.Columns - 1), cosines[3:] * spacing[0] * (image.Rows - 1)
        for frame in frames:
            plane = frame.PlanePositionSequence[0]
            plane.ImagePositionPatient = [float(f"{v:.10g}")
                                          for v in np.array(plane.ImagePositionPatient, float) + across + down]
        shared.PlaneOrientationSequence[0].ImageOrientationPatient = [float(v) for v in -cosines]
        pixels = pixels[:, ::-1, ::-1]
    if signed:
        assert pixels.max() < 1 << 14
        pixels = (pixels.astype(np.int32) - 8192) & 0x3FFF
        image.BitsStored, image.HighBit, image.PixelRepresentation = 14, 13, 1
        mapping = shared.RealWorldValueMappingSequence[0]
        zero = 8192 * float(mapping.RealWorldValueSlope)
        mapping.RealWorldValueIntercept = float(mapping.RealWorldValueIntercept) + zero
    image.PerFrameFunctionalGroupsSequence = pydicom.Sequence([frames[i] for i in order])
    image.PixelData = pixels[list(order)].astype("<u2").tobytes()
    image.save_as(target)


def test_however_it_is_written_its_figures_are_the_same(folder, made):
    exam, path, truth_path = made
    first = figures(path, "--truth", truth_path)
    n = first["object"]["size"][2]
    target = os.path.join(folder, "again.dcm")
    orders = [range(n), [(7 * k + 3) % n for k in range(n)] if n % 7 else range(n - 1, -1, -1)]
    forms = [(orders[1], False, False), (orders[0], True, False), (orders[1], False, True)]
    objects = []
    for form in forms:
        written_otherwise(path, target, *form)
        objects.append((form, figures(target, "--truth", truth_path)))
    _, packed = reconstruct(os.path.join(folder, "packed"), exam, settings=[*SETTINGS, "compression=jpeg-ls"])
    assert pydicom.dcmread(packed, stop_before_pixels=True).file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.4.80"
    objects.append(("JPEG-LS", figures(packed, "--truth", truth_path)))
    for form, again in objects:
        assert len(again["points"]) == len(first["points"]) and len(again["distances"]) == len(first["distances"]), form
        for a, b in zip(first["points"], again["points"]):
            assert np.allclose(a["fwhm_mm"], b["fwhm_mm"], rtol=1e-6), (form, a, b)
            assert abs(a["snr"] / b["snr"] - 1) < 1e-6 and abs(a["peak"] - b["peak"]) < 1e-7, (form, a, b)
        for a, b in zip(first["distances"], again["distances"]):
            assert abs(a["measured_mm"] - b["measured_mm"]) < 1e-6, (form, a, b)


def test_text_and_lines(made):
    """A summary first, pairs only on request, and the same numbers as lines."""
    _, path, truth_path = made
    text = run("measure", "--truth", truth_path, path).stdout.splitlines()
    found = figures(path, "--truth", truth_path)
    n = len(found["points"])
    assert re.search(r" voxels of 0\.34 x 0\.34 x 1 mm, ",
                     text[0]) and text[1].startswith(f"points: {n} found of {n}, medians: FWHM"), text[:3]
    assert text[2].startswith(f"distances: {n * (n - 1) // 2} pairs, largest error") and "--pairs" in text[2], text[2]
    assert not any(" to bead" in line for line in text), text
    pairs = [line for line in run("measure", "--truth", truth_path, "--pairs", path).stdout.splitlines()
             if " to bead" in line]
    assert len(pairs) == n * (n - 1) // 2 and pairs[0].startswith("bead 1 to bead 2: "), pairs[:2]
    lines = [line.split(",") for line in run("measure", "--csv", "--truth", truth_path, path).stdout.splitlines()]
    assert lines[0] == ["list", "name", "figure", "value"] and {len(line) for line in lines} == {4}, lines[:2]
    value, = (line[3] for line in lines if line[:3] == ["points", "bead 3", "fwhm_mm.1"])
    assert abs(float(value) - found["points"][2]["fwhm_mm"][1]) < 1e-8, value


def test_masses_and_calcifications(folder, made):
    """Details with their names."""
    _, path, _ = made
    breast, out = os.path.join(folder, "breast"), os.path.join(folder, "breast-out")
    simulate(breast, phantom="ellipsoids", binning=8, views=9, detector="1600x2400")
    _, result = reconstruct(out, breast)
    truth = os.path.join(breast, "truth.json")
    measured = figures(result, "--truth", truth)
    assert [r["name"] for r in measured["regions"]][:4] == ["mass 1", "mass 2", "mass 3",
                                                            "calcification 8"], measured["regions"]
    assert [p["name"] for p in measured["points"]] == [f"calcification {i}" for i in range(1, 8)], measured["points"]
    text = run("measure", "--truth", truth, out).stdout  # the folder, too
    assert "\nmasses: 3 measured of 3, medians: contrast 0." in text and "\ncalcifications: " in text, text
    assert " left out: smaller than a pixel\n" in text, text
    named = json.loads(h.read_file(truth))
    next(s for s in named["shapes"] if s["role"] == "lesion")["name"] = "the suspicious one"
    with open(os.path.join(folder, "named.json"), "w", encoding="ascii") as f:
        json.dump(named, f)
    assert figures(result, "--truth", os.path.join(folder, "named.json"))["regions"][0]["name"] == "the suspicious one"
    assert "choose one with --series NAME" in run("measure", "--truth", truth, path, result, ok=(4,)).stderr
    assert "--circle is for PET and CT series" in run("measure", "--circle", "1,2,3,4", path, ok=(2,)).stderr


def rim_by_numpy(path, truth):
    """Means at distances from the outline of the body, (x/rx)^2 + (y/ry)^2 + 0.36 (z/rz)^2 = 1, in the middle slices."""
    image, body, pixel = pydicom.dcmread(path), truth["shapes"][0], truth["pixel_mm"]
    mapping = image.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    (_, _, cz), (rx, ry, rz) = body["center_mm"], body["half_axes_mm"]
    angle = np.linspace(-np.pi / 2, np.pi / 2, 500)
    rows, columns = np.mgrid[0 : image.Rows : 2, 0 : image.Columns : 2]
    x, y = (columns.ravel() + 0.5) * pixel, (body["row"] - rows.ravel()) * pixel
    means = {}
    for frame in range(12, 18):
        part = (1 - 0.36 * ((truth["support_mm"] + frame + 0.5 - cz) / rz) ** 2) ** 0.5
        dx = part * rx * np.cos(angle)[:, None] - x
        dy = part * ry * np.sin(angle)[:, None] - y
        far = np.hypot(dx, dy)
        nearest = far.argmin(0), np.arange(x.size)
        d, inside = far[nearest], (x / rx) ** 2 + (y / ry) ** 2 < part ** 2
        slope = abs(np.degrees(np.arctan2(dy[nearest], dx[nearest])))
        values = (image.pixel_array[frame][::2, ::2] * float(mapping.RealWorldValueSlope)).ravel()
        for way, there in (("nipple", slope < 25), ("side", (slope > 65) & (slope < 115) & (x > 3))):
            for distance in (2, 5, 10):
                means.setdefault((way, distance), []).append(values[inside & there & (abs(d - distance) < 0.5)].mean())
    return {key: np.mean(v) for key, v in means.items()}


def test_rim_and_tissues(folder):
    """The profile along the normal to the skin is what circles at these places have, and the tissues are those of the truth."""
    exam = os.path.join(folder, "rim")
    simulate(exam, phantom="ellipsoids", binning=8, views=9, thickness=30, noise_free=True)
    _, result = reconstruct(os.path.join(folder, "rim-out"), exam, settings=["voxel=0"])
    truth_path = os.path.join(exam, "truth.json")
    with open(truth_path, encoding="ascii") as f:
        truth = json.load(f)
    found = figures(result, "--truth", truth_path)
    outer, gland = sorted((t["true"], t["mean"], t["bias_percent"], t["samples"]) for t in found["tissues"])
    assert abs(outer[0] - 0.0456) < 1e-9 and abs(outer[2]) < 5 and outer[3] > 10 * gland[3] > 1000, found["tissues"]
    assert abs(gland[0] - 0.0802) < 1e-9 and -40 < gland[2] < -5, gland
    skin = {s["name"]: s for s in found["skin"]}
    assert len(skin) == 13 and skin["interior"]["distance_mm"] is None, list(skin)
    profile = rim_by_numpy(result, truth)
    for way in ("nipple", "side"):
        for distance in (2, 5, 10):
            one, mean = skin[f"{way} {distance} mm"], profile[way, distance]
            assert abs(one["mean"] - mean) < 0.05 * mean, (one, mean)  # cells of 0.68 mm; the slope is 6 % per mm
            assert abs(one["relative"] - one["mean"] / 0.0456) < 1e-9 and abs(one["true"] - 0.0456) < 1e-9, one
    here = figures(result)
    own = {s["name"]: s for s in here["skin"]}  # without a truth: relative to the interior
    assert own["interior"]["relative"] == 1 and "true" not in own["interior"] and here["tissues"] == [], own
    assert abs(own["side 10 mm"]["mean"] / skin["side 10 mm"]["mean"] - 1) < 0.05, (own, skin)
    edges = [r["mtf50_per_mm"] for r in found["regions"] if "mtf50_per_mm" in r]
    assert len(edges) > 0 and all(v is None or 0.1 < v < 0.74 for e in edges for v in e) and edges[0][1], edges
    text = run("measure", "--truth", truth_path, result).stdout
    assert "\nnipple / interior " in run("measure", result).stdout
    assert "\n0.0802/mm " in text and "\nnipple / truth " in text and "\nmm from the skin " in text, text


def test_refusals(folder, made):
    exam, path, truth_path = made
    other, text = os.path.join(folder, "other"), os.path.join(folder, "text.json")
    simulate(other, phantom="beads", binning=8, views=5, seed=3)
    h.write_file(text, "{}")
    projection = glob.glob(os.path.join(exam, "*.dcm"))[0]
    for code, sentence, words in (
            (4, "another exam", ("--truth", os.path.join(other, "truth.json"), path)),
            (2, "NAME=COLUMN,ROW,FRAME", ("--point", "p=1,2,x", path)),
            (2, "frames 1 to", ("--point", "p=1,2,999", path)),
            (4, "outside the image", ("--point", "p=99999,2,3", path)),
            (4, "functional groups", ("--truth", truth_path, projection)),
            (8, "text.jsonx: No such file", ("--truth", text + "x", path)),
            (4, "a folder, not a JSON file", ("--truth", exam, path)),
            (4, f"{exam}: no tomosynthesis, PET or CT image among", (exam,)),
            (4, "side, view or shapes", ("--truth", text, path))):
        done = run("measure", *words, ok=(code,))
        assert sentence in done.stderr and "line -1" not in done.stderr, (words, done.stderr)
