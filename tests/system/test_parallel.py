# SPDX-License-Identifier: Apache-2.0
"""Parallel beams through the program and the node: an analytic phantom goes in as a sinogram object and comes out as CT
images with water at 0 HU, in the right place whatever way the patient lies; a picture comes out as itself; every
protocol gives images that dciodvfy accepts; what is wrong is held with a sentence."""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request

import numpy as np
import pydicom
import pytest
from PIL import Image

import quality_parallel_figures as figures
from tools import node_harness as h
from tools.node_harness import check

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "dcmdjpls", "dciodvfy")

CT = "1.2.840.10008.5.1.4.1.1.2"
WATER = 0.02  # 1/mm, as simulated
HEADER, CHUNK, SHA256 = (0x0071, 0x1002), (0x0071, 0x1010), (0x0071, 0x1014)
# x right, y down, z into the gantry for somebody at the foot of the bed, in the patient (LPS)
AXES = {"HFS": ((1, 0, 0), (0, 1, 0), (0, 0, 1)), "HFP": ((-1, 0, 0), (0, -1, 0), (0, 0, 1)),
        "FFS": ((-1, 0, 0), (0, 1, 0), (0, 0, -1)), "FFP": ((1, 0, 0), (0, -1, 0), (0, 0, -1)),
        "HFDR": ((0, 1, 0), (-1, 0, 0), (0, 0, 1)), "HFDL": ((0, -1, 0), (1, 0, 0), (0, 0, 1))}


def objects_in(folder):
    return sorted(glob.glob(os.path.join(folder, "*.dcm")))


def simulate(folder, *options):
    h.run(h.TOMONODE, "simulate", "parallel", *map(str, options), "-o", folder)
    return objects_in(folder)


def recon(out, *paths, protocol="parallel-fbp", **settings):
    args = [a for k, v in settings.items() for a in ("--set", f"{k}={v}")]
    p = h.run(h.TOMONODE, "recon", "--json", "--device", "cpu", "--protocol", protocol, *args, "-o", out, *paths)
    return Series(objects_in(out)), json.loads(p.stdout)["cases"][0]


class Series:
    """values[slice, row, column] in the order of instances, and where each of them is in the patient."""

    def __init__(self, paths):
        self.paths = paths
        self.objects = sorted(map(pydicom.dcmread, paths), key=lambda d: int(d.InstanceNumber))
        self.values = np.array([d.pixel_array * float(d.RescaleSlope) + float(d.RescaleIntercept)
                                for d in self.objects])

    def places(self):
        first = self.objects[0]
        cosines, spacing = np.array(first.ImageOrientationPatient, float), [float(v) for v in first.PixelSpacing]
        _, rows, columns = self.values.shape
        positions = np.array([d.ImagePositionPatient for d in self.objects], float)
        return (positions[:, None, None] + np.arange(rows)[None, :, None, None] * cosines[3:] * spacing[0]
                + np.arange(columns)[None, None, :, None] * cosines[:3] * spacing[1])


def valid(paths):
    for f in paths:
        report = subprocess.run(["dciodvfy", f], capture_output=True, text=True, check=False)
        errors = [line for line in (report.stdout + report.stderr).splitlines() if line.startswith("Error")]
        check(not errors, f"dciodvfy: {errors}")


def truth_of(folder):
    return json.loads(h.read_file(os.path.join(folder, "truth.json")))


def truth_means(truth, places, pixel, n=4):
    """Means of the attenuation over pixels: a thin wall that a pixel's middle misses still lies in part of the
    pixel."""
    steps = ((np.arange(n) + 0.5) / n - 0.5) * pixel
    return np.mean([truth_values(truth, places + np.array([dx, dy, 0])) for dx in steps for dy in steps], axis=0)


def truth_values(truth, places):
    """Attenuation at points of the patient, shapes shrinking from slice to slice as written in the usage."""
    at = places @ np.array(AXES[truth["position"]], float).T
    index = np.rint(at[..., 2] / truth["slice_mm"] + (truth["slices"] - 1) / 2)
    check(index.min() >= 0 and index.max() <= truth["slices"] - 1, "slices lie elsewhere")
    x, y = (at[..., c] / (1 - truth["taper"] * index / truth["slices"]) for c in (0, 1))
    return figures.values_at(truth, x, y)


# ---- without a node ----

def test_water_is_0_hu(folder):
    """A disc: water within 10 HU (1 %) everywhere well inside, air outside; and without mu_water the attenuation
    itself."""
    files = simulate(os.path.join(folder, "in"), "--phantom", "circle", "--size", 200, "--angles", 300, "--slices", 3,
                     "--bin", 0.8)
    series, case = recon(os.path.join(folder, "hu"), *files, mu_water=WATER)
    check((case["kind"], case["parallel"]["units"], case["size"]) == ("parallel", "HU", [200, 200, 3]), case)
    places = series.places()
    radius = np.hypot(places[..., 0], places[..., 1])
    disc = truth_of(os.path.join(folder, "in"))["shapes"][0]["half_axes_mm"][0]
    inside, outside = series.values[radius < 0.9 * disc], series.values[(radius > 1.1 * disc) & (radius < 1.5 * disc)]
    check(np.abs(inside).max() < 10 and abs(inside.mean()) < 2,
          f"water: {inside.min()} to {inside.max()} HU, mean {inside.mean()}")
    check(abs(outside.mean() + 1000) < 10, f"air: mean {outside.mean()} HU")
    check(np.abs(series.values[radius > 110] + 1000).max() < 10, f"corners: {series.values[radius > 110].max()} HU")
    d = series.objects[0]
    check((d.RescaleType, d.PixelRepresentation, list(d.ImageType)) == ("HU", 1, ["DERIVED", "PRIMARY", "AXIAL"]), d)
    valid(series.paths)
    plain, case = recon(os.path.join(folder, "us"), *files)
    check((plain.objects[0].RescaleType, case["parallel"]["unit"]) == ("US", "1/mm"), case["parallel"])
    check(np.abs(plain.values[radius < 0.9 * disc] / WATER - 1).max() < 0.01, "attenuation within 1 %")
    check(np.abs(1000 * (plain.values / WATER - 1) - series.values).max() < 0.51 + 1000
          * float(plain.objects[0].RescaleSlope) / WATER,
          "both say the same")
    again, _ = recon(os.path.join(folder, "again"), *files, mu_water=WATER)
    check([o.SOPInstanceUID for o in again.objects] == [o.SOPInstanceUID for o in series.objects],
          "the same recipe, the same UIDs")
    check({o.SOPInstanceUID for o in plain.objects}.isdisjoint(o.SOPInstanceUID for o in series.objects),
          "another recipe, others")


# Run a program from a small process: a child has the memory of its parent until it becomes the program. Prints kB.
LARGEST = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")


def test_a_stack_beyond_memory_limit(folder):
    """Lines and image of a stack, 67 MB, are not in memory at a time: the process has no more than memory_limit and what it
    needs for itself; the image is the same but for the rounding of transforms, and bp, without any, to the bit."""
    files = simulate(os.path.join(folder, "in"), "--size", 256, "--angles", 180, "--slices", 150, "--taper", 0.5)

    def measured(name, **settings):
        args = [a for k, v in settings.items() for a in ("--set", f"{k}={v}")]
        out = os.path.join(folder, name)
        p = h.run(sys.executable, "-S", "-c", LARGEST, h.TOMONODE, "recon", "--device", "cpu:1", "--protocol",
                  "parallel-fbp", *args, "-o", out, *files)
        return [pydicom.dcmread(f).pixel_array.astype(int) for f in objects_in(out)], 1024 * int(p.stdout.split()[-1])

    for algorithm, apart in (("fbp", 1), ("bp", 0)):
        whole, usual = measured(algorithm, algorithm=algorithm)
        parts, least = measured(algorithm + "-apart", algorithm=algorithm, memory_limit=10_000_000)
        check(usual > 120e6 and least < 10e6 + 70e6, f"{algorithm}: {usual / 1e6:.0f} MB, in parts {least / 1e6:.0f} MB")
        check(np.abs(np.array(whole) - parts).max() <= apart, f"{algorithm}: another image")


def test_every_protocol(folder):
    """Valid objects that tell where they come from, in every orientation of slope, and images that resemble the truth
    in its place: the same image mirrored, or one pixel away, resembles it less. Hann and few passes blur the skull, one
    to two pixels thick."""
    files = simulate(os.path.join(folder, "in"), "--phantom", "shepp-logan", "--size", 96, "--angles", 120, "--slices",
                     2)
    source = pydicom.dcmread(files[0])
    truth = truth_of(os.path.join(folder, "in"))
    for protocol, settings, least in (("parallel-fbp", {}, 0.97),
                                      ("parallel-fbp", {"filter": "hann", "route": "convolution"}, 0.93),
                                      ("parallel-bp", {}, 0.6), ("parallel-art", {"iterations": 5}, 0.97),
                                      ("parallel-sart", {"iterations": 5}, 0.92),
                                      ("parallel-mlem", {"iterations": 30}, 0.97), ("parallel-ostr", {}, 0.97)):
        series, case = recon(os.path.join(folder, protocol + "-".join(map(str, settings.values()))), *files,
                             protocol=protocol,
                             mu_water=WATER, **settings)
        valid(series.paths)
        want = truth_means(truth, series.places(), 1.0)

        def resembles(values):
            return np.corrcoef(values.ravel(), want.ravel())[0, 1]

        found = resembles(series.values)
        check(found > least, f"{protocol} {settings}: correlation {found}")
        moved = [series.values[..., ::-1], series.values[:, ::-1],
                 *(np.roll(series.values, by, axis) for by in (1, -1) for axis in (1, 2))]
        check(max(map(resembles, moved)) < found - 0.005,
              f"{protocol} {settings}: {found} in place, elsewhere {[*map(resembles, moved)]}")
        d = series.objects[0]
        check((d.StudyInstanceUID, d.FrameOfReferenceUID,
               d.PatientID) == (source.StudyInstanceUID, source.FrameOfReferenceUID, source.PatientID),
              "study, frame of reference, patient")
        check(d.SourceInstanceSequence[0].ReferencedSOPInstanceUID == source.SOPInstanceUID, "the source is named")
        check("Research use only" in d.DerivationDescription
              and "sha256=" in d.ContributingEquipmentSequence[1].ContributionDescription,
              "provenance")
        check(len({o.SOPInstanceUID for o in series.objects}) == 2
              and len({o.SeriesInstanceUID for o in series.objects}) == 1, "UIDs")
        bp = protocol == "parallel-bp"
        check(d.RescaleType == ("US" if bp else "HU") and bool(case["parallel"]["warnings"]) == bp, case["parallel"])
    plain, _ = recon(os.path.join(folder, "plain"), *files, mu_water=WATER)
    packed = os.path.join(folder, "packed")
    h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "parallel-fbp", "--set", f"mu_water={WATER}", "--set",
          "compression=jpeg-ls",
          "-o", packed, *files)
    valid(objects_in(packed))
    for f, want in zip(objects_in(packed), plain.values):
        h.run("dcmdjpls", f, f + ".plain")
        check(np.array_equal(pydicom.dcmread(f + ".plain").pixel_array, want), "JPEG-LS is lossless")


def test_the_patient_lies_anyhow(folder):
    """An asymmetric phantom with slices that differ: every value is where it was in the patient."""
    for position in AXES if h.TIER == 2 else ("FFP", "HFDR"):
        where = os.path.join(folder, position)
        files = simulate(os.path.join(where, "in"), "--phantom", "triangle", "--size", 64, "--angles", 90, "--slices",
                         4, "--taper", 0.6,
                         "--slice", 3, "--first-angle", 20, "--arc", 360, "--offset", 0.7, "--position", position)
        series, _ = recon(os.path.join(where, "out"), *files, mu_water=WATER, matrix=60, pixel=1.1)
        want = 1000 * (truth_values(truth_of(os.path.join(where, "in")), series.places()) / WATER - 1)
        far = np.abs(series.values - want)
        check(np.median(far) < 60 and (far > 500).mean() < 0.03,
              f"{position}: {(far > 500).mean()} of the pixels are elsewhere")
        head = [float(d.ImagePositionPatient[2]) for d in series.objects]
        check(head == sorted(head, reverse=True) and abs(head[0] - head[1] - 3) < 1e-6, f"{position}: slices at {head}")
        cosines = np.array(series.objects[0].ImageOrientationPatient, float)
        check(np.allclose(cosines, (1, 0, 0, 0, 1, 0)), f"{position}: {cosines}")


def test_a_picture_comes_out(folder):
    picture = np.zeros((70, 100), np.uint8)
    picture[10:30, 10:50] = 255
    picture[40:60, 30:90] = 128
    picture[5:15, 80:95] = 200
    for ending, verb in (("png", ("simulate", "parallel", "--picture")), ("pgm", ("import",))):
        path, out = os.path.join(folder, "p." + ending), os.path.join(folder, ending)
        Image.fromarray(picture).save(path)
        h.run(h.TOMONODE, *verb, path, "--angles", "200", "-o", out)
        series, _ = recon(out + "-images", *objects_in(out), mu_water=WATER, matrix=100)
        found, want = series.values[0] / 1000 + 1, np.zeros((100, 100))
        want[15:85] = picture / 255
        check(np.corrcoef(found.ravel(), want.ravel())[0, 1] > 0.99, f"{ending}: the picture is not to be seen")
        check(abs(found[30:40, 20:40].mean() - 1) < 0.01, f"white is {found[30:40, 20:40].mean()}")
    corners = np.zeros((90, 90), np.uint8)  # rays go as far as the diagonal: nothing is cut off
    for rows in (slice(0, 12), slice(78, 90)):
        for columns in (slice(0, 12), slice(78, 90)):
            corners[rows, columns] = 255
    Image.fromarray(corners).save(os.path.join(folder, "corners.png"))
    h.run(h.TOMONODE, "import", os.path.join(folder, "corners.png"), "--angles", "200", "-o",
          os.path.join(folder, "corners"))
    series, _ = recon(os.path.join(folder, "corners-images"), *objects_in(os.path.join(folder, "corners")),
                      mu_water=WATER, matrix=90)
    found = series.values[0] / 1000 + 1
    for block in (found[1:11, 1:11], found[1:11, 79:89], found[79:89, 1:11], found[79:89, 79:89]):
        check(abs(block.mean() - 1) < 0.02, f"a corner of the picture is {block.mean()}")
    # The picture is in the centre, also if its sides differ by an odd number: its middle does not move as it is turned.
    for rows, columns in ((70, 100), (69, 100), (70, 99), (99, 70)) if h.TIER == 2 else ((70, 99),):
        name = f"{rows}x{columns}"
        Image.fromarray(np.full((rows, columns), 255, np.uint8)).save(os.path.join(folder, name + ".png"))
        h.run(h.TOMONODE, "import", os.path.join(folder, name + ".png"), "--angles", "100", "-o",
              os.path.join(folder, name))
        series, _ = recon(os.path.join(folder, name + "-images"), *objects_in(os.path.join(folder, name)),
                          mu_water=WATER)
        found = np.clip(series.values[0] / 1000 + 1, 0, None)
        middle = []
        for axis in (0, 1):
            at = np.arange(found.shape[1 - axis]) - (found.shape[1 - axis] - 1) / 2
            middle.append((found.sum(axis) * at).sum() / found.sum())
        # the two rays that run along the edges of an odd side belong to one pixel each: 0.07
        check(np.abs(middle).max() < 0.1, f"{name}: the middle of the picture is off by {middle} pixels")
    colours = np.stack([picture] * 3 + [np.full_like(picture, 255)], -1)
    Image.fromarray(colours).save(os.path.join(folder, "c.png"))
    h.run(h.TOMONODE, "import", os.path.join(folder, "c.png"), "--angles", "200", "-o", os.path.join(folder, "c"))
    check([pydicom.dcmread(f)[CHUNK].value for f in objects_in(os.path.join(folder, "c"))]
          == [pydicom.dcmread(f)[CHUNK].value for f in objects_in(os.path.join(folder, "png"))],
          "a grey picture in colours is that picture")


def test_files_in_and_out(folder):
    """Objects to header and data and back, byte for byte; CT images as NIfTI; noise follows the seed."""
    files = simulate(os.path.join(folder, "in"), "--size", 40, "--angles", 30, "--counts", 1e5)
    hs = os.path.join(folder, "lines.hs")
    h.run(h.TOMONODE, "export", "-o", hs, *files)
    source = pydicom.dcmread(files[0])
    check(h.read_file(os.path.join(folder, "lines.s"), "rb") == source[CHUNK].value, "the bytes")
    h.run(h.TOMONODE, "import", hs, "--like", files[0], "-o", os.path.join(folder, "again"))
    again = pydicom.dcmread(objects_in(os.path.join(folder, "again"))[0])
    check(again[CHUNK].value == source[CHUNK].value and again.PatientPosition == "HFS" and again.Modality == "CT",
          "imported again")
    check(again.SeriesInstanceUID != source.SeriesInstanceUID, "a new series")
    series, _ = recon(os.path.join(folder, "out"), *files, mu_water=WATER)
    nii = os.path.join(folder, "image.nii")
    h.run(h.TOMONODE, "export", "-o", nii, *series.paths)
    data = h.read_file(nii, "rb")
    check(np.array_equal(np.frombuffer(data[352:], "<f4").reshape(40, 40), series.values[0].astype("<f4")), "NIfTI")
    same = simulate(os.path.join(folder, "same"), "--size", 40, "--angles", 30, "--counts", 1e5)
    other = simulate(os.path.join(folder, "other"), "--size", 40, "--angles", 30, "--counts", 1e5, "--seed", 2)
    with open(files[0], "rb") as a, open(same[0], "rb") as b, open(other[0], "rb") as c:
        check((a := a.read()) == b.read() and a != c.read(),
              "the same options give the same object, another seed another one")


@pytest.mark.tier2("a case for a sentence")
def test_a_half_acquisition_names_its_matrix(folder):
    """Rays of a whole turn about an axis beside the middle reach farther than the image of as many pixels as bins."""
    files = simulate(os.path.join(folder, "in"), "--size", 200, "--angles", 120, "--arc", 360)
    hs = os.path.join(folder, "lines.hs")
    h.run(h.TOMONODE, "export", "-o", hs, *files)
    with open(hs, encoding="utf-8") as f:
        text = re.sub(r"radial bins := 200", "radial bins := 130", re.sub(r"axis offset \(mm\) := .*", "axis offset (mm) := 35", f.read()))
    h.write_file(hs, text)
    np.fromfile(os.path.join(folder, "lines.s"), "<f4").reshape(120, 200)[:, 70:].tofile(os.path.join(folder, "lines.s"))
    _, case = recon(os.path.join(folder, "small"), hs)
    check("rays reach 100 mm from it, and the image 65 mm" in case["parallel"]["warnings"], case["parallel"]["warnings"])
    check("matrix=200 fits" in case["parallel"]["warnings"], case["parallel"]["warnings"])


def test_the_axis_is_found(folder):
    """A header without an axis offset, or with a wrong one: it is found, said or held, as the protocol asks."""
    files = simulate(os.path.join(folder, "in"), "--phantom", "head", "--size", 96, "--angles", 60, "--offset", 4.3)
    hs = os.path.join(folder, "lines.hs")
    h.run(h.TOMONODE, "export", "-o", hs, *files)
    text = h.read_file(hs)
    plain, _ = recon(os.path.join(folder, "plain"), hs)
    for name, line, axis, used, says in (
            ("none", "", "header", 4.3, ""), ("wrong", "axis offset (mm) := 1.3\n", "header", 1.3, "axis offset is 1.3 mm in the header, 4."),
            ("found", "axis offset (mm) := 1.3\n", "found", 4.3, "")):
        h.write_file(hs, re.sub(r"axis offset \(mm\) := .*\n", line, text))
        images, case = recon(os.path.join(folder, name), hs, axis=axis)
        axis = case["parallel"]["axis"]
        check(abs(axis["offset_mm"] - used) < 0.2 and abs(axis["found"]["offset_mm"] - 4.3) < 0.2, axis)
        check((says in case["parallel"]["warnings"]) if says else "axis" not in case["parallel"]["warnings"], case["parallel"]["warnings"])
        derivation = pydicom.dcmread(images.paths[0]).DerivationDescription
        check(("mm found by seam, +- " in derivation) == (used == 4.3), derivation)
        error = (images.values - plain.values).std() / plain.values.std()
        check(error < 0.12 if used == 4.3 else error > 0.2, f"{name}: {error}")
    said = h.run(h.TOMONODE, "recon", "--device", "cpu", "--set", "axis=found", "-o", os.path.join(folder, "said"), hs).stdout
    check("axis offset 4." in said and "found in the data (" in said, said)
    refused = h.run(h.TOMONODE, "recon", "--device", "cpu", "--set", "axis=agree", "-o", os.path.join(folder, "held"), hs, code=None).stderr
    check("1.3 mm in the header, 4." in refused and not os.path.exists(os.path.join(folder, "held")), refused)


def test_rings_are_removed(folder):
    """Bins with a constant error: with ring_width most of the rings go, the result says how much; without it they stay."""
    files = simulate(os.path.join(folder, "in"), "--phantom", "head", "--size", 128, "--angles", 120)
    hs = os.path.join(folder, "lines.hs")
    h.run(h.TOMONODE, "export", "-o", hs, *files)
    clean, _ = recon(os.path.join(folder, "clean"), hs)
    path = os.path.join(folder, "lines.s")
    lines, rng = np.fromfile(path, "<f4").reshape(120, 128), np.random.default_rng(5)
    (lines + np.where(rng.random(128) < 0.4, rng.uniform(-0.05, 0.05, 128), 0)).astype("<f4").tofile(path)
    error = []
    for width in (0, 3):
        images, case = recon(os.path.join(folder, str(width)), hs, ring_width=width)
        error.append((images.values - clean.values).std())
        rings = case["parallel"]["rings"]
        check((rings is None and "Rings" not in case["parallel"]["warnings"]) if width == 0
              else rings["offsets_after"] < 0.4 * rings["offsets_before"] and "Rings up to 3 bins were removed" in case["parallel"]["warnings"], rings)
    check(error[1] < 0.6 * error[0], error)  # a third of the energy of offsets
    refused = h.run(h.TOMONODE, "recon", "--set", "ring_width=99", "-o", os.path.join(folder, "no"), hs, code=None).stderr
    check("key 'ring_width'" in refused and "from 1 to 15" in refused, refused)  # and not that PET lacks the key


def test_flat_fields(folder):
    """Intensities with flat fields that drift, dark fields and a dead bin become the slice of their line integrals; what a
    header says wrong of its frames is refused."""
    views, bins = 60, 64
    at = np.arange(bins) - 31.5
    true = np.tile(0.03 * 2 * np.sqrt(np.maximum(0, 15**2 - (at - 4) ** 2)), (views, 1))
    light = 2e4 * np.linspace(1, 0.8, views + 2)[:, None] * np.linspace(0.9, 1.1, bins)
    frames = np.rint(100 + np.concatenate((0 * light[:1], light[:1], light[1:-1] * np.exp(-true), light[-1:])))
    frames[:, 56] = 100  # beside the disc
    header = """!INTERFILE :=
!imaging modality := CT
!type of data := PARALLEL
name of data file := %s
imagedata byte order := LITTLEENDIAN
!number format := %s
!number of bytes per pixel := %d
!number of slices := 1
!number of angles := 60
!number of radial bins := 64
!bin size (mm) := 1
axis offset (mm) := -4
%s
!END OF INTERFILE :=
"""

    def run(name, *values, code=0):
        h.write_file(os.path.join(folder, name + ".hs"), header % values)
        out = os.path.join(folder, name)
        if code:
            return h.run(h.TOMONODE, "recon", "--device", "cpu", "-o", out, out + ".hs", code=code).stderr
        series, case = recon(out, out + ".hs")
        return series.values, case["parallel"]

    frames.astype("<u2").tofile(os.path.join(folder, "frames.s"))
    true.astype("<f4").tofile(os.path.join(folder, "lines.s"))
    made, raw = run("raw", "frames.s", "unsigned integer", 2, "frame kinds := {2,1,0,1}\nframe counts := {1,1,60,1}")
    check(raw["intensities"] == {"flat_fields": 2, "dark_fields": 1, "dead_bins": 1, "hot_bins": 0, "noisy_bins": 0, "hits": 0, "no_signal": 0}, raw["intensities"])
    check("1 of 64 detector bins are no measurement (1 dead: no flat field like" in raw["warnings"], raw["warnings"])
    want, _ = run("lines", "lines.s", "float", 4, "")
    check(np.abs(made - want).max() < 0.02 * want.max(), f"{np.abs(made - want).max()} of {want.max()}")
    for runs, words in (("frame kinds := {2,1,0}\nframe counts := {1,1,60,1}", '3 "frame kinds", 4 "frame counts"'),
                        ("frame kinds := {2,0}\nframe counts := {3,60}", "none of 63 frames is a flat field"),
                        ("frame kinds := {1,0}\nframe counts := {2,61}", "61 frames are views, and there are 60 angles"),
                        ("frame kinds := {1,0.5}\nframe counts := {3,60}", "whole numbers"),
                        ("frame kinds := {1,0}\nframe counts := {3,60}\nunit := g", "allowed: 1/mm")):
        error = run("no", "frames.s", "unsigned integer", 2, runs, code=4)
        check(words in error, error)


def test_views_that_contradict_their_angles(folder):
    """Another arc, a dark view and intensities are sentences of the result; right angles have none, with noise, too."""
    files = simulate(os.path.join(folder, "in"), "--phantom", "head", "--size", 96, "--angles", 60, "--counts", 1e5)
    hs = os.path.join(folder, "lines.hs")
    h.run(h.TOMONODE, "export", "-o", hs, *files)
    lines = np.fromfile(os.path.join(folder, "lines.s"), "<f4").reshape(60, 96)
    text = h.read_file(hs)
    dark = np.where(np.arange(60) == 7, 2, 1)[:, None]
    for name, header, views, says in (
            ("arc", re.sub("arc .*:= .*", "arc (degrees) := 360", text), lines, "arc (degrees) := 180 would agree"),
            ("dark", text, dark * lines, "View 8, at 21 degrees, has 2 times the sum of the views beside it"),
            ("photons", text, 1e5 * np.exp(-lines), ", which no photons pass: probably intensities"),
            ("plain", text, lines, None)):
        h.write_file(hs, header)
        views.astype("<f4").tofile(os.path.join(folder, "lines.s"))
        images, case = recon(os.path.join(folder, name), hs)
        for said in (case["parallel"]["warnings"], pydicom.dcmread(images.paths[0]).DerivationDescription):
            check(says in said if says else "iew" not in said and "Line integrals" not in said, f"{name}: {said}")


def test_one_slice_that_is_not_as_the_rest(folder):
    """It is a sentence of the result, and its fault is not said of all slices."""
    files = simulate(os.path.join(folder, "in"), "--phantom", "head", "--size", 96, "--angles", 60, "--counts", 1e5, "--slices", 4)
    hs = os.path.join(folder, "lines.hs")
    h.run(h.TOMONODE, "export", "-o", hs, *files)
    lines = np.fromfile(os.path.join(folder, "lines.s"), "<f4").reshape(4, 60, 96)
    for bins in (0, 3):
        slices = lines.copy()
        slices[2] = np.roll(slices[2], bins, 1)
        slices.tofile(os.path.join(folder, "lines.s"))
        _, case = recon(os.path.join(folder, str(bins)), hs)
        said = case["parallel"]["warnings"]
        check(("Slice 3 of 4 has another axis of rotation than the rest: its centres of mass turn about a point 3 mm "
               "(3.0 bins)" in said) == (bins == 3), said)
        check(not re.search("View|The views contradict|axis offset", said), f"said twice: {said}")


def test_bad_requests(folder):
    out = os.path.join(folder, "out")
    broken = os.path.join(folder, "broken.png")
    h.write_file(broken, b"\x89PNG\r\n\x1a\nno picture")
    for args, code, words in ((("--phantom", "cow"), 2, "--phantom cow is not allowed; --phantom KIND: circle"),
                              (("--angles", "0"), 2, "1 to 16384"),
                              (("--arc", "400"), 2, "--arc 400"), (("--position", "HFX"), 2, "patient position 'HFX'"),
                              (("--picture", broken), 4, "broken.png"),
                              (("--picture", broken, "--phantom", "head"), 2, "not both"),
                              (("--picture", os.path.join(folder, "none.png")), 8, "none.png")):
        p = subprocess.run([h.TOMONODE, "simulate", "parallel", *args, "-o", out], capture_output=True, text=True,
                           check=False)
        check(p.returncode == code and words in p.stderr, f"{args}: exit {p.returncode}, {p.stderr}")
    p = h.run(h.TOMONODE, "import", broken, "-o", out, code=4)
    check(p.stderr.startswith("tomonode import: "), f"the command that was given speaks: {p.stderr}")
    p = h.run(h.TOMONODE, "import", broken, "--angles", "0", "-o", out, code=2)
    check(p.stderr.startswith("tomonode import: --angles 0"), p.stderr)
    check(not os.path.exists(out) or not os.listdir(out), "something was written")
    files = simulate(os.path.join(folder, "in"), "--size", 32, "--angles", 10)
    for setting, code, words in (("subsets=20000", 2, "1 to 16384"), ("filter=triangle", 2, "shepp-logan"),
                                 ("psf=3", 2, "only protocols of kind pet")):
        p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "parallel-sart", "--set", setting, "-o", out,
                  *files, code=code)
        check(words in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "parallel-sart", "--set", "subsets=11", "-o", out,
              *files, code=4)
    check("subsets=11; allowed: a whole number from 1 to 10 (all angles)" in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu", "--protocol", "pet-mlem", "-o", out, *files, code=4)
    check("protocol 'pet-mlem' is for cases of kind pet, but this case is of kind parallel" in p.stderr, p.stderr)


# ---- through the node ----

def set_protocol(node):
    """The worker, in its sandbox, keeps the stacks in files."""
    node.more_protocols = (f', {{ name = "quick-ct"; kind = "parallel"; mu_water = {WATER}; '
                           f'memory_limit = "150 kB"; }}')
    node.more_routes = ', { name = "ct"; kind = "parallel"; protocols = [ "quick-ct" ]; destinations = [ "pacs" ]; }'
    node.write_conf()


def send(port, files):
    p = h.run("storescu", "-R", "-v", "-aet", "SCANNER", "-aec", "TOMONODE", "127.0.0.1", port, *files)
    check(h.acknowledged(p.stdout + p.stderr) == set(files), "not every object was acknowledged")


def change(path, to, edit):
    """A copy as a case of its own."""
    d = pydicom.dcmread(path)
    for name in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID", "SOPInstanceUID"):
        setattr(d, name, pydicom.uid.generate_uid(prefix=None))
    d.file_meta.MediaStorageSOPInstanceUID = d.SOPInstanceUID
    edit(d)
    d.save_as(to)
    return to


def set_header(old, new):
    def edit(d):
        check(old in d[HEADER].value, old)
        d[HEADER].value = d[HEADER].value.replace(old, new)
    return edit


def set_value(value):
    def edit(d):
        values = np.frombuffer(d[CHUNK].value, "<f4").copy()
        values[77] = value
        d[CHUNK].value = values.tobytes()
        d[SHA256].value = hashlib.sha256(d[CHUNK].value).hexdigest()
    return edit


def spoil_bytes(d):
    d[CHUNK].value = d[CHUNK].value[:-4] + b"\x00\x00\x80\x3f"


def test_through_the_node(folder, things):
    """In by storescu, out to a PACS, object by object what `tomonode recon` makes; bad ones are held, each with its
    sentence."""
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    set_protocol(n)
    things += [n, pacs]
    files = simulate(os.path.join(folder, "in"), "--phantom", "head", "--size", 64, "--angles", 60, "--slices", 5)
    bad = {
        "angles": (set_header("number of angles := 60", "number of angles := 61"),
                   "5 slices, 61 angles, 64 radial bins"),
        "hash": (spoil_bytes, "SHA-256"),
        "nan": (set_value(np.nan), "nan at slice 0, angle 1, radial bin 13"),
        "position": (lambda d: setattr(d, "PatientPosition", "SITTING"), "the patient's position is"),
    }
    pacs.start()
    n.start()
    for name, (edit, _) in bad.items():
        send(n.port, [change(files[0], os.path.join(folder, name + ".dcm"), edit)])
    send(n.port, files)
    n.wait_states(*["held"] * len(bad), "delivered")
    for (name, (_, words)), job in zip(bad.items(), n.jobs()):
        check(words in job["reason"] and job["kind"] == "parallel",
              f"{name}: '{job['reason']}' does not hold '{words}'")
        check(job["crashes"] == 0, job)
    received = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, pacs.files())}
    h.run(h.TOMONODE, "recon", "-c", n.conf, "--protocol", "quick-ct", "--device", "cpu", "-o",
          os.path.join(folder, "offline"), *files)
    wanted = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, objects_in(os.path.join(folder, "offline")))}
    check(set(received) == set(wanted) and len(received) == 5, "other objects than those of `tomonode recon`")
    for uid, d in received.items():
        check(d.SOPClassUID == CT and d.ImagePositionPatient == wanted[uid].ImagePositionPatient, "class and place")
        check(np.abs(d.pixel_array.astype(int) - wanted[uid].pixel_array).max() <= 1, "values")
    valid(pacs.files())
    made = next(e["detail"] for e in n.show(n.jobs()[-1]["id"])["events"] if e["event"] == "reconstructed")
    check(made["parallel"]["radial"] == 64 and made["parallel"]["units"] == "HU" and len(made["objects"]) == 5
          and made["parallel"]["slices_at_a_time"] < 5, made)
    check(n.echo() and n.stop() == 0, "the node does not live, or does not stop")


@pytest.mark.tier2("Orthanc; test_through_the_node has storescp")
def test_in_orthanc(folder, things):
    h.need("Orthanc")
    pacs = h.Orthanc(os.path.join(folder, "orthanc"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    set_protocol(n)
    things += [n, pacs]
    files = simulate(os.path.join(folder, "in"), "--phantom", "square", "--size", 48, "--angles", 40, "--slices", 6)
    pacs.start()
    n.start()
    send(n.port, files)
    job, = n.wait_states("delivered")
    study = pydicom.dcmread(files[0], stop_before_pixels=True).StudyInstanceUID
    check({k: sorted(v) for k, v in pacs.objects().items()} ==
          {study: sorted(o["sop_instance"] for o in job["result"]["objects"])},
          "Orthanc has the series and nothing else")
    series, = pacs.get("/series")
    found = pacs.get(f"/series/{series}")
    check((found["MainDicomTags"]["Modality"], len(found["Instances"])) == ("CT", 6), found)
    kept = []
    for i in found["Instances"]:
        kept.append(os.path.join(folder, i + ".dcm"))
        with urllib.request.urlopen(f"http://127.0.0.1:{pacs.http}/instances/{i}/file",
                                    timeout=60) as r, open(kept[-1], "wb") as f:
            f.write(r.read())
    valid(kept)
    square = Series(kept)
    radius = np.abs(square.places()[..., :2]).max(-1)
    side = truth_of(os.path.join(folder, "in"))["shapes"][0]["corners_mm"][2][0]
    check(abs(np.median(square.values[radius < side - 3])) < 10
          and abs(np.median(square.values[radius > side + 3]) + 1000) < 10,
          "water and air out of Orthanc")
