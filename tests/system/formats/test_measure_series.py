# SPDX-License-Identifier: Apache-2.0
"""`tomonode measure` of PET and CT series: the figures that an independent script computes from the standards'
definitions (tools/figure_tools.py), for results of tomonode and for series by another writer, oblique, each slice with
its own slope; SUV or the reason why there is none; a series of two patients, of two units, with a gap or of the wrong
kind is refused with a sentence."""
import csv
import datetime
import io
import json
import os
import re

import numpy as np
import pytest

from tools import figure_tools as f
from tools import node_harness as h
from tools import pet_tools as t
from tools.map_writer import write_nifti
from tools.node_harness import check

TIGHT = 1e-5  # relative: floats of the program, strips of the script


def measure(*args):
    return json.loads(t.run("measure", "--json", *args).stdout)


def near(found, wanted, what, relative=TIGHT, absolute=0.0):
    check(abs(found - wanted) <= relative * abs(wanted) + absolute, f"{what}: {found}, the script has {wanted}")


def named(items, name):
    found = [i for i in items if i["name"] == name]
    check(len(found) == 1, f"{len(found)} items named {name}: {[i['name'] for i in items]}")
    return found[0]


# ---- the phantom of NEMA NU 2 ----

@pytest.mark.parametrize("position", ("HFS", "HFDR") if h.TIER == 2 else ("HFDR",))
def test_figures_of_nema(folder, position):
    truth = t.simulate(os.path.join(folder, "exam"), "--phantom", "nema-iq", "--attenuation", "--position", position)
    t.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"), settings=("iterations=8", "matrix=96"))
    found = measure("--truth", os.path.join(folder, "exam", "truth.json"), os.path.join(folder, "out"))
    volume = f.Volume.of_folder(os.path.join(folder, "out"))
    wanted = f.nema(volume, truth, t.AXES[position])
    check(found["nema"]["circles"] == 60 and len(found["nema"]["spheres"]) == 6, found["nema"])
    for one, (recovery, variability) in zip(found["nema"]["spheres"], wanted["spheres"]):
        near(one["recovery_percent"], recovery, f"{position}: recovery of {one['name']}")
        near(one["variability_percent"], variability, f"{position}: variability of {one['name']}")
    lung = [s["residual_percent"] for s in found["nema"]["lung"]["slices"]]
    check(len(lung) == len(wanted["lung"]) > 5 and np.allclose(lung, wanted["lung"], rtol=TIGHT),
          f"{position}: lung {lung}")
    near(found["nema"]["lung"]["residual_percent"], np.mean(wanted["lung"]), "lung residual")
    names = [s["name"] for s in found["nema"]["spheres"]]
    check(names == [f"sphere {d * truth['size']:.3g} mm (NEMA {d})" for d in (10, 13, 17, 22, 28, 37)], names)
    largest = found["nema"]["spheres"][3]
    check(largest["hot"] and 20 < largest["recovery_percent"] < 110, largest)
    # the background of the truth: all voxels that are 10 mm away from every edge
    places = volume.places() @ np.array(t.AXES[position], float).T
    inside = np.ones(volume.values.shape, bool)
    for i, s in enumerate(truth["shapes"]):
        away, r = places - s["center_mm"], np.array(s["half_axes_mm"])
        r = r - 10 if i == 0 else r + 10
        flat = ((away[..., :2] / r[:2]) ** 2).sum(-1)
        z = np.abs(away[..., 2]) / r[2]
        within = (flat <= 1) & (z <= 1) if s["kind"] == "cylinder" else flat + z ** 2 <= 1
        inside &= within if i == 0 else ~within
    region, values = named(found["regions"], "background"), volume.values[inside]
    check(region["voxels"] == inside.sum(), f"{region['voxels']} voxels, the script has {inside.sum()}")
    near(region["mean"], values.mean(), "mean of the background")
    near(region["noise"], values.std(ddof=1), "noise of the background")
    near(region["bias_percent"], 100 * (values.mean() / 5300 - 1), "bias of the background", absolute=1e-3)
    near(found["suv"]["factor"], t.suv_factor(volume.objects[0]), "SUV")
    near(region["suv_mean"], values.mean() * t.suv_factor(volume.objects[0]), "SUV of the background")
    text = t.run("measure", "--truth", os.path.join(folder, "exam", "truth.json"), os.path.join(folder, "out")).stdout
    check(text.startswith("PET series") and "contrast recovery: sphere 4.9 mm (NEMA 10)" in text
          and "lung residual" in text and "nan" not in text and " truth        bias" in text, text)
    check(f", Bq/ml, patient {position}\n" in text and all(len(re.sub(r"e.*|[-.]", "", v).lstrip("0")) >= 4
                                                           for v in re.search(r"^background +(.*)", text,
                                                                              re.M)[1].split()[1:3]), text)


# ---- uniform phantoms ----

def check_uniform(found, volume, point, diameter, length, base, what):
    """Uniformity and noise of a cylinder against the script."""
    u, n = found["uniformity"][0], found["nps"][0]
    z = (volume.corners - point) @ volume.normal
    slices = np.flatnonzero(np.abs(z) <= length / 2 + 1e-6) if length else [volume.nearest(point)]
    check((u["first_slice"], u["last_slice"]) == (slices[0] + 1, slices[-1] + 1), (u, slices))
    means = f.five_circles(volume, point, diameter, slices)
    near(u["middle"], means[0], f"{what}: middle", absolute=1e-5)
    for side, mean in zip(u["sides"], means[1:]):
        near(side["mean"], mean, f"{what}: {side['name']}", absolute=1e-5)
        near(side["difference"], mean - means[0], f"{what}: {side['name']}", absolute=1e-4 * abs(means[0]) + 1e-4)
    wanted = [f.squares_of_10_mm(volume, point, diameter, k, base) for k in slices]
    check(u["squares"] == wanted[0][2] >= 4, (u["squares"], wanted[0][2]))
    near(u["integral_percent"], 100 * max(w[0] for w in wanted), f"{what}: integral uniformity")
    near(u["cv_percent"], 100 * max(w[1] for w in wanted), f"{what}: CV of the squares")
    power, variance, squares = f.spectrum(volume, point, diameter, slices, n["side_pixels"])
    check(n["squares"] == squares, (n["squares"], squares))
    near(n["variance"], variance, f"{what}: variance")
    near(n["integral"], n["variance"], f"{what}: the integral of the spectrum is the variance", 1e-9)
    near(power.sum() / (n["side_pixels"] ** 2 * volume.h.prod()), variance, "the script's own integral", 1e-9)
    curve = f.rings(power, volume.h, n["side_pixels"])
    check(len(curve) == len(n["curve"]) == n["side_pixels"] // 2, len(n["curve"]))
    check(np.allclose(n["curve"], curve, rtol=TIGHT), f"{what}: spectrum")


def before(d, seconds):
    """The moment so many seconds before the start of the series."""
    start = datetime.datetime.strptime(d.SeriesDate + d.SeriesTime[:6], "%Y%m%d%H%M%S")
    return f"{start - datetime.timedelta(seconds=seconds):%Y%m%d%H%M%S.%f}"


def test_figures_of_uniform_phantoms(folder):
    exam, out = os.path.join(folder, "exam"), os.path.join(folder, "out")
    truth = t.simulate(exam, "--phantom", "cylinder", "--attenuation")
    t.reconstruct(out, exam, settings=("iterations=8", "matrix=96"))
    found, volume = measure("--truth", os.path.join(exam, "truth.json"), out), f.Volume.of_folder(out)
    length = min(2 * (truth["shapes"][0]["half_axes_mm"][2] - 10), (len(volume.values) - 1) * volume.step)
    check_uniform(found, volume, np.zeros(3), 2 * truth["shapes"][0]["half_axes_mm"][0], length, 0, "PET cylinder")
    near(named(found["regions"], "background")["suv_mean"], 1, "SUV of a uniform cylinder", 0.01)
    d, activity = volume.objects[0], truth["shapes"][0]["becquerel_per_ml"]
    for given in (f"{activity}", f"{2 * activity},{before(d, float(d.RadiopharmaceuticalInformationSequence[0].RadionuclideHalfLife))}"):
        c = measure("--truth", os.path.join(exam, "truth.json"), "--activity", given, out)["uniformity"][0]["calibration"]
        near(c["mean"], np.mean([s["mean"] for s in found["uniformity"][0]["slices"]]), "mean of the squares")
        near(c["factor"], float(d.DoseCalibrationFactor) * activity / c["mean"], "calibration factor")
        near(c["ratio"], 1, "the calibration of the simulation", 0.02)
    exam, out = os.path.join(folder, "lines"), os.path.join(folder, "slices")
    t.run("simulate", "parallel", "--phantom", "circle", "--angles", 180, "--slices", 3, "--counts", "1e5", "-o", exam)
    t.run("recon", "--device", "cpu", "--protocol", "parallel-fbp", "--set", "mu_water=0.02", "-o", out, exam)
    truth = f.read_truth(exam)
    found, volume = measure("--truth", os.path.join(exam, "truth.json"), out), f.Volume.of_folder(out)
    diameter = 2 * truth["shapes"][0]["half_axes_mm"][0]
    check_uniform(found, volume, np.zeros(3), diameter, 2 * volume.step, -1000, "CT circle")
    radius = np.hypot(*np.moveaxis(volume.places()[..., :2], -1, 0))
    water = volume.values[radius <= diameter / 2 - 2 * volume.h.max()]
    region = named(found["regions"], "ellipse 1")
    check(region["voxels"] == water.size and region["true"] == 0, region)
    near(region["bias"], water.mean(), "HU of water", absolute=1e-6)
    check(abs(region["bias"]) < 3 and abs(named(found["regions"], "outside")["bias"]) < 3,
          "water at 0 HU, air at -1000 HU")
    check(found["suv"] is None and found["nema"] is None, "no figures of PET for CT")
    again = measure("--uniform", f"0,0,0,{diameter},0,my, region", "--nps-size", 16, out)
    check(again["uniformity"][0]["name"] == "my, region" and again["nps"][0]["side_pixels"] == 16, again["nps"])
    check_uniform(again, volume, np.zeros(3), diameter, 0, -1000, "CT circle, one slice")


def test_hu_of_inserts(folder):
    """HU of each shape of a head, in slices that differ, for a patient who lies otherwise."""
    exam, out = os.path.join(folder, "lines"), os.path.join(folder, "slices")
    t.run("simulate", "parallel", "--phantom", "head", "--angles", 180, "--slices", 3, "--taper", 0.3, "--position",
          "FFP", "-o", exam)
    t.run("recon", "--device", "cpu", "--protocol", "parallel-fbp", "--set", "mu_water=0.02", "-o", out, exam)
    truth = f.read_truth(exam)
    found, volume = measure("--truth", os.path.join(exam, "truth.json"), out), f.Volume.of_folder(out)
    places = volume.places() @ np.array(t.AXES["FFP"], float).T
    scale = 1 - 0.3 * np.floor(places[..., 2:] / truth["slice_mm"] + 1.5) / 3
    places, margin = places / scale, 2 * volume.h.max() / scale[..., 0]
    owner, usable, hu = np.full(volume.values.shape, -1), np.ones(volume.values.shape,
                                                                  bool), np.full(volume.values.shape, -1000.0)
    for i, s in enumerate(truth["shapes"]):
        turn, away = np.radians(s["turn_degrees"]), places[..., :2] - s["center_mm"]
        along = np.stack([away @ [np.cos(turn), np.sin(turn)], away @ [-np.sin(turn), np.cos(turn)]], -1)
        r = np.array(s["half_axes_mm"])
        grown = ((along / (r + margin[..., None])) ** 2).sum(-1) <= 1
        small = (r - margin[..., None] > 0).all(-1) & (((along / (r - margin[..., None])) ** 2).sum(-1) <= 1)
        usable &= small | ~grown
        owner[small] = i
        hu[small] += 1000 * s["mu_per_mm"] / truth["mu_water"]
    measured = 0
    for i, _ in enumerate(truth["shapes"]):
        region, own = named(found["regions"], f"ellipse {i + 1}"), usable & (owner == i)
        if own.sum() < 10:
            check("left_out" in region, region)
            continue
        measured += 1
        check(region["voxels"] == own.sum(), f"{region['name']}: {region['voxels']} voxels, the script has {own.sum()}")
        near(region["true"], hu[own].mean(), f"true HU of {region['name']}", absolute=1e-6)
        near(region["bias"], (volume.values[own] - hu[own]).mean(), f"error of {region['name']}", absolute=1e-6)
        check(abs(region["bias"]) < 10, region)
    check(measured >= 5, measured)


# ---- series by another writer ----

TURNED = np.linalg.qr(np.array([[0.9, 0.2, -0.3], [-0.1, 0.95, 0.25], [0.35, -0.2, 0.9]]))[0]
# slices, rows, columns
CORNER, SPACING, SIZE = np.array([-61.5, 42.25, 310.0]), np.array([2.3, 1.7, 3.1]), (24, 60, 50)


def oblique(folder, modality, change=None, slices=SIZE[0]):
    """A ramp in patient coordinates with noise; the cosines as they are written."""
    cosines = [float(f"{v:.14g}"[:16]) for v in np.concatenate([TURNED[0], TURNED[1]])]
    k, j, i = np.mgrid[:slices, :SIZE[1], :SIZE[2]]
    index = np.stack([i, j, k], -1) * SPACING
    normal = np.cross(cosines[:3], cosines[3:])
    places = CORNER + index @ np.array([cosines[:3], cosines[3:], normal])
    noise = np.random.default_rng(5).normal(size=k.shape)
    values = 4000 + (places - CORNER) @ [9, -6,
                                         4] + 100 * noise if modality == "PT" else 40 + 2 * noise + 0 * places[..., 0]
    paths = f.write_series(folder, values, SPACING, cosines, CORNER, modality, change)
    middle = CORNER + (np.array([25, 30, slices // 2]) * SPACING) @ np.array([cosines[:3], cosines[3:], normal])
    return paths, middle, values


def masks(folder, paths, volume, found_in):
    """Labels on a grid of their own, turned against the series: the voxels that numpy picks."""
    normal = volume.normal
    steps = np.array([[4.1, 0.3, 0], [-0.2, 3.7, 0.5], [0.1, -0.4, 5.2]])
    corner = found_in - 8 * steps.sum(0)
    labels = np.zeros((17, 16, 18), int)
    labels[3:10, 4:12, 3:9], labels[9:15, 2:9, 10:15] = 1, 7
    at = np.rint((volume.places() - corner) @ np.linalg.inv(steps)).astype(int)
    inside = ((at >= 0) & (at < np.array(labels.shape)[::-1])).all(-1)
    at[~inside] = 0
    own = np.where(inside, labels[at[..., 2], at[..., 1], at[..., 0]], 0)
    check(abs(normal @ np.cross(volume.across, volume.down) - 1) < 1e-6, "normal")
    matrix = np.column_stack([*steps, corner])
    for name in ("m.nii.gz", "m.nii"):  # other forms: node/format/test_label_volume
        mask = write_nifti(os.path.join(folder, name), labels, matrix, "<i2")
        regions = measure("--mask", mask, *paths)["regions"]
        check([r["name"] for r in regions] == ["label 1", "label 7"], f"{name}: {regions}")
        for r, label in zip(regions, (1, 7)):
            picked = volume.values[own == label]
            check(abs(r["voxels"] - picked.size) <= 2 and picked.size > 500,
                  f"{name}: {r['voxels']} voxels, the script has {picked.size}")
            near(r["mean"], picked.mean(), f"{name}: mean of {r['name']}",
                 1e-3 if r["voxels"] != picked.size else TIGHT)
    write_nifti(mask, labels * 0, matrix, "<i2")
    refused(paths, "--mask", mask, what="no voxel of the series is in one of the 0 voxels of the mask")
    os.truncate(mask, 400)
    refused(paths, "--mask", mask, what="m.nii")


def refused(paths, *options, what, code=4):
    done = t.run("measure", *options, *paths, ok=(code,))
    check(what in done.stderr, f"\"{what}\" is not in: {done.stderr}")


def test_series_of_another_writer(folder):
    for modality in ("PT", "CT"):
        here = os.path.join(folder, modality)
        paths, middle, values = oblique(here, modality)
        volume = f.Volume(paths)
        check(np.abs(volume.values - values).max() < (0.3 if modality == "CT" else 1), "the script reads what it wrote")
        at, other = ",".join(f"{v:.6f}"
                             for v in middle), middle + 7.3 * volume.across - 4.4 * volume.down + 5.2 * volume.normal
        there = ",".join(f"{v:.6f}" for v in other)
        found = measure("--circle", f"{at},31", "--circle", f"{there},3.1,small", "--sphere", f"{there},22,a ball",
                        "--uniform", f"{at},70,12", here)
        check(found["object"]["modality"] == ("PET" if modality == "PT" else "CT")
              and found["object"]["size"] == [50, 60, 24], found["object"])
        for name, wanted in (("circle 1", f.circle(volume, middle, 31)), ("small", f.circle(volume, other, 3.1)),
                             ("a ball", f.sphere(volume, other, 22))):
            region = named(found["regions"], name)
            ball = name == "a ball"
            near(region["mean"], wanted[0], f"{modality}: mean of {name}", 2e-5 if ball else TIGHT)
            near(region["sd"], wanted[1], f"{modality}: sd of {name}", 1e-3 if ball else TIGHT)
            near(region["voxels"], wanted[2], f"{modality}: voxels of {name}", 1e-4)  # of the script: strips
        near(named(found["regions"], "a ball")["volume_ml"], np.pi / 6 * 2.2 ** 3, "volume of a ball", 1e-3)
        if modality == "PT":  # the middle of a ramp, wherever the patient is
            near(named(found["regions"], "circle 1")["mean"], 4000 + (middle - CORNER) @ [9, -6, 4], "ramp", 0.01)
            near(found["suv"]["factor"], 71.5e3 / (3.7e8 * 2 ** (-5400 / 6586.2)), "SUV across midnight")
        check_uniform(found, volume, middle, 70, 12, -1000 if modality == "CT" else 0, f"oblique {modality}")
        masks(folder, paths, volume, middle)
    rows = list(csv.reader(io.StringIO(t.run("measure", "--csv", "--circle", f"{at},31,\"x\", y", here).stdout)))
    check(rows[0] == ["list", "name", "figure", "value"] and all(len(r) == 4 for r in rows), rows[:3])
    region = measure("--circle", f"{at},31,\"x\", y", here)["regions"][0]
    line = [r for r in rows if r[:3] == ["regions", '"x", y', "mean"]]
    check(len(line) == 1 and abs(float(line[0][3]) - region["mean"]) < 1e-6, line)


def test_one_image_of_a_dynamic_series(folder):
    """Of a dynamic series one image is measured; which one must be said."""
    def frame(d, k):
        d.NumberOfSlices, d.NumberOfTimeSlices, d.SeriesType, d.ImageIndex = 5, 2, ["DYNAMIC", "IMAGE"], k + 1
        d.ImagePositionPatient = [0, 0, k % 5 * 3]

    values = np.concatenate([np.full((5, 20, 20), 100.0), np.full((5, 20, 20), 300.0)])
    paths = f.write_series(folder, values, (2, 2, 3), (1, 0, 0, 0, 1, 0), (0, 0, 0), change=frame)
    refused(paths, "--circle", "19,19,6,20", what="the series has 2 images (DYNAMIC): choose one with --image", code=2)
    for image, wanted in ((1, 100), (2, 300)):
        found = measure("--circle", "19,19,6,20", "--image", image, *paths)
        near(found["regions"][0]["mean"], wanted, f"image {image}", 1e-6)
        check(found["object"]["image"] == image and found["object"]["images"] == 2, found["object"])
    refused(paths, "--circle", "19,19,6,20", "--image", 3, what="image 3; the series has 2")


def test_no_suv(folder):
    """Every missing or impossible attribute takes the SUV away and says so; the other figures stay."""
    drug = "RadiopharmaceuticalInformationSequence"

    def of_drug(name, value):
        return lambda d, _: setattr(d[drug][0], name, value)

    cases = [(lambda d, _: setattr(d, "Units", "CNTS"), "\"CNTS\"; needed: BQML"),
             (lambda d, _: delattr(d, "PatientWeight"), "(0010,1030)"),
             (lambda d, _: setattr(d, "PatientWeight", "71500"), "71500 kg"),
             (of_drug("RadionuclideTotalDose", "370"), "370 Bq"),
             (lambda d, _: delattr(d, drug), "(0018,1074)"), (of_drug("RadionuclideHalfLife", None), "(0018,1075)"),
             (lambda d, _: setattr(d, "CorrectedImage", ["DECY"]), "ATTN"),
             (lambda d, _: setattr(d, "DecayCorrection", "NONE"), "\"NONE\""),
             (lambda d, _: setattr(d, "SeriesTime", "013000"), "Series Time"),
             (of_drug("RadiopharmaceuticalStartDateTime", "20260102013000"), "after the start"),
             (of_drug("RadiopharmaceuticalStartDateTime", None), "its day needs (0018,1078)"),
             (of_drug("RadiopharmaceuticalStartDateTime", "20260101233000+0100"), "time zone"),
             (lambda d, k: setattr(d, "PatientWeight", 71.5 + (k == 2)),
              "the objects of the series differ in Patient's Weight"),
             (lambda d, k: setattr(d[drug][0], "RadionuclideTotalDose", 3.7e8 * (1 + (k == 3))),
              "differ in Radiopharmaceutical"),
             (lambda d, _: d.update({"Units": "GML", "SUVType": "LBM"}), "type LBM")]
    for i, (change, reason) in enumerate(cases):
        paths, middle, _ = oblique(os.path.join(folder, str(i)), "PT", change, 5)
        found = measure("--circle", ",".join(map(str, middle)) + ",30", *paths)
        check(reason in found["suv"].get("left_out", ""), f"case {i}: {found['suv']}, not \"{reason}\"")
        check("suv_mean" not in found["regions"][0] and found["regions"][0]["mean"] > 0, found["regions"])
        if h.TIER < 2 and i > 2:
            continue
        text = t.run("measure", "--circle", ",".join(map(str, middle)) + ",30", *paths).stdout
        check("no SUV: " in text and reason in text, text)
    def during(d, _):  # 30 s after the start
        d.ActualFrameDuration, d[drug][0].RadiopharmaceuticalStartDateTime = 60000, "20260102010030"

    def zoned(d, _):  # 2.5 h before
        d.TimezoneOffsetFromUTC, d[drug][0].RadiopharmaceuticalStartDateTime = "+0100", "20260101213000+0000"

    for i, (change, factor) in enumerate([(during, 71.5e3 / (3.7e8 * 2 ** (30 / 6586.2))),
                                          (zoned, 71.5e3 / (3.7e8 * 2 ** (-9000 / 6586.2))),
                                          (lambda d, _: setattr(d, "DecayCorrection", "ADMIN"), 71.5e3 / 3.7e8),
                                          (lambda d, _: setattr(d, "Units", "GML"), 1)]):
        paths, middle, _ = oblique(os.path.join(folder, f"known{i}"), "PT", change, 5)
        near(measure("--circle", ",".join(map(str, middle)) + ",30", *paths)["suv"]["factor"], factor, "SUV", 1e-9)


def test_what_must_not_be_measured(folder):
    def series(name, change=None, modality="PT", slices=5):
        paths, middle, _ = oblique(os.path.join(folder, name), modality, change, slices)
        return paths, ",".join(f"{v:.3f}" for v in middle)

    paths, at = series("whole", slices=SIZE[0])
    refused(paths[:11] + paths[12:], "--circle", f"{at},30", what="incomplete: 23 of 24 slices")
    slices, place = series("gap", modality="CT")
    refused(slices[:2] + slices[3:], "--circle", f"{place},30",
            what="slices are missing or belong to several volumes")
    patients, _ = series("patients", lambda d, k: d.update({"PatientID": "OTHER" if k == 3 else "FOREIGN",
                                                            "PatientName": "A^B" if k == 3 else "Foreign^One"}))
    refused(patients, "--circle", f"{at},30",
            what="not of one patient: the headers name different patients: Patient ID (0010,0020)")
    units, _ = series("units", lambda d, k: setattr(d, "Units", "CNTS" if k == 3 else "BQML"))
    refused(units, "--circle", f"{at},30", what="units are \"")
    moved, _ = series("moved", lambda d, k: setattr(d, "FrameOfReferenceUID", "1.2.3" if k == 3 else "1.2.4"))
    refused(moved, "--circle", f"{at},30", what="frame of reference")
    refused([*paths, *slices], "--circle", f"{at},30", what="volumes among")
    refused(paths, "--circle", f"{at},900", what="extends beyond the image")
    for text in ("0", "-1", "x", "5,2026", "5;20260601101010", "nan"):
        refused(paths, "--uniform", f"{at},70,0", "--activity", text, what="--activity " + text, code=2)
    refused(paths, "--uniform", f"{at},70,0", "--activity", "5000", what="--activity needs BQML, START and a factor")
    refused(slices, "--uniform", f"{place},70,0", "--activity", "5000", what="--activity is for PET", code=2)
    for text in ("1,2,3", "1,2,3,-4", "1,2,3,nan", "1,2,3,4,", "1,2,x,4"):
        refused(paths, "--circle", text, what="not of the form X,Y,Z,D[,NAME]", code=2)
    refused(paths, "--point", "a=1,2,3", what="--point is for a tomosynthesis", code=2)
    refused(paths, what="nothing to measure", code=2)
    other, exam = os.path.join(folder, "out"), os.path.join(folder, "exam")
    t.simulate(exam, "--phantom", "nema-iq", "--attenuation", "--position", "HFDR")
    t.reconstruct(other, exam, settings=("iterations=1", "matrix=96"))
    truth = os.path.join(exam, "truth.json")
    refused(paths, "--truth", truth, what="belongs to another exam: its frame of reference is")
    refused(slices, "--truth", truth, what="the truth of a PET series, but the series is CT")
    known = json.loads(h.read_file(truth))
    by_hand = os.path.join(folder, "hand.json")

    def hand(change):
        mine = json.loads(json.dumps({k: v for k, v in known.items() if k in ("kind", "phantom", "size", "position",
                                                                              "shapes")}))
        change(mine)
        with open(by_hand, "w", encoding="ascii") as file:
            json.dump(mine, file)

    hand(lambda m: None)  # without the UIDs of the simulation: a phantom that was measured by hand
    first, again = measure("--truth", truth, other)["nema"], measure("--truth", by_hand, other)["nema"]
    check(first == again, "a truth by hand")
    hand(lambda m: m.update(background_mm=[s["center_mm"][:2] for s in m["shapes"][2:4]]))
    refused([other], "--truth", by_hand, what="background circle 1 overlaps \"sphere")
    hand(lambda m: m["shapes"][1].update(name="my lung"))
    check(measure("--truth", by_hand, other)["nema"]["lung"]["name"] == "my lung", "a name of the truth")
