# SPDX-License-Identifier: Apache-2.0
"""`tomonode report` and `recon --report`: of a tomosynthesis, a PET and a CT series. The HTML is well formed and loads
nothing; its pictures are those that numpy computes from the pixels; scale bars, window, position of the largest
contrast, parameters and warnings; nothing of the patient without --patient, hostile text escaped; objects of other
programs; what is refused; in Chromium without overflow, with a slider, and on paper. With SCREENSHOTS=FOLDER in the
environment the tests leave pictures there."""
import base64
import glob
import html.parser
import io
import json
import math
import os
import re
import shutil

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.uid import generate_uid

from tools import node_harness as h
from tools.ct_writer import write_ct
from tools.edits import edited_all, new_object
from tools.node_harness import check

h.need(h.TOMONODE)
VOID = {"meta", "img", "br", "link", "input"}
NAME = "O'HARA<script>alert(1)</script>^\"&"


def tomonode(*args, code=0):
    return h.run(h.TOMONODE, *args, code=code)


# ---- reading a report ----

def read_png(data):
    """The pixels of an 8-bit grey PNG, the checksums of whose chunks are right."""
    Image.open(io.BytesIO(data)).verify()
    image = Image.open(io.BytesIO(data))
    check((image.format, image.mode) == ("PNG", "L") and data[24:29] == bytes([8, 0, 0, 0, 0]), f"not 8-bit grey: {image}")
    return np.array(image)


class Report(html.parser.HTMLParser):
    """A report whose tags match; its pictures with their captions, in order; its text."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.source = h.read_file(path)
        self.open, self.pictures, self.text, self.ids, self.tags = [], [], "", [], []
        check(self.source.startswith("<!DOCTYPE html>\n"), "doctype")
        self.feed(self.source)
        self.close()
        check(not self.open, f"not closed: {self.open}")
        check(len(self.ids) == len(set(self.ids)), "an id twice")
        check(os.path.getsize(path) < 8 << 20, "larger than the limit")

    def handle_starttag(self, tag, attributes):
        names = [a for a, _ in attributes]
        attributes = dict(attributes)
        check(len(names) == len(set(names)), f"<{tag}> has an attribute twice")
        check(not (tag == "p" and "p" in self.open), "a paragraph within a paragraph")
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag == "img":
            check(attributes["src"].startswith("data:image/png;base64,") and attributes["alt"],
                  "the source of a picture")
            pixels = read_png(base64.b64decode(attributes["src"].partition(",")[2], validate=True))
            check(pixels.shape == (int(attributes["height"]), int(attributes["width"])), "width and height")
            self.pictures.append((attributes["alt"], pixels))
        check(not any(a.startswith("on") for a in attributes), f"a handler at <{tag}>")
        for a in ("src", "href", "action", "data", "srcset", "poster"):
            check(a not in attributes or attributes[a].startswith("data:"), f"<{tag}> loads {attributes.get(a)}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, f"</{tag}> in {self.open}")
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            check("url(" not in data and "@import" not in data and "http" not in data.replace("http-equiv", ""),
                  "something external")
        else:
            self.text += data

    def row(self, name):
        found = re.search(r'<tr><th scope="row">%s</th><td>(.*?)</td></tr>' % re.escape(name), self.source)
        return found and found.group(1)


def window_of(report):
    lo, hi = re.search(r"Window (\S+) to (\S+) ", report.text).groups()
    return float(lo), float(hi)


# ---- the same by numpy ----

def grey(values, lo, hi, inverse=False):
    part = np.clip((values - lo) / (hi - lo), 0, 1)
    return 255 * (1 - part if inverse else part)


def reduced(plane, side):
    """Means of blocks, as the caption says."""
    plane = plane.astype(float)
    for axis, n in enumerate(plane.shape):
        starts = np.arange(0, n, math.ceil(n / side))
        sizes = np.diff([*starts, n])
        plane = np.add.reduceat(plane, starts, axis) / (sizes[:, None] if axis == 0 else sizes)
    return plane


def same(pixels, expected, what, slack=1.0):
    check(pixels.shape == expected.shape, f"{what}: {pixels.shape}, expected {expected.shape}")
    worst = np.abs(pixels.astype(float) - expected).max()
    check(worst <= slack, f"{what}: a pixel differs by {worst}")


def compare(report, values, window, inverse=False, breast=False):
    """values [slice, row, column], slices upward; breast: columns to the front, rows to the right, so that sections are mirrored. Every
    picture of the report."""
    n = values.shape
    middle = [n[0] // 2, n[1] // 2, n[2] // 2]
    column, row, k = (int(v) - 1 for v in re.search(r"Column (\d+), row (\d+), slice (\d+) \(patient",
                                                    report.text).groups())
    expected = []
    for at in (middle, [k, row, column]):
        across = -1 if breast else 1
        expected += [values[at[0]], values[::-1, at[1], ::across], values[::-1, ::across, at[2]]]
    for (name, pixels), plane in zip(report.pictures[:6], expected):
        same(pixels, grey(reduced(plane, 512), *window, inverse), name)
    slices = report.pictures[6:]
    check(len(slices) == min(n[0], 60), f"{len(slices)} slices")
    for name, pixels in slices:
        same(pixels, grey(reduced(values[int(re.match(r"slice (\d+) of", name).group(1)) - 1], 256), *window, inverse),
             name)
    return column, row, k


def scale_bars(report, widths):
    bars = re.findall(r'<span class="bar" style="width:([\d.]+)%">(\S+) mm</span>', report.source)
    check(len(bars) == 6, "six scale bars")
    for (percent, mm), width in zip(bars, widths * 2):
        check(abs(float(percent) / 100 * width - float(mm)) < 1e-3 * width and float(percent) <= 100 / 3 + 1e-3,
              f"the bar of {mm} mm in {width} mm")


def letters(report):
    return re.findall(r'<span class="top">(\w*)</span><span class="left">(\w*)</span>.*?<span '
                      r'class="right">(\w*)</span><span class="bottom">(\w*)</span>',
                      report.source)


def stack(folder):
    """A PET or CT series by pydicom: values [slice toward the head, row, column], its headers."""
    objects = sorted((pydicom.dcmread(p) for p in glob.glob(os.path.join(folder, "*.dcm"))),
                     key=lambda d: float(d.ImagePositionPatient[2]))
    return np.array([d.pixel_array * float(d.RescaleSlope) + float(d.RescaleIntercept) for d in objects]), objects


def only_report(folder):
    found = glob.glob(os.path.join(folder, "*.html"))
    check(len(found) == 1, f"{found} instead of one report")
    return found[0]


# ---- the three kinds ----

def make(folder, kind):
    """Simulate and reconstruct with --report."""
    exam, out, reports = (os.path.join(folder, name) for name in ("exam", "objects", "reports"))
    options = {"dbt": ("--phantom", "ellipsoids", "--binning", "8", "--views", "9"),
               "pet": ("--scanner", "small", "--attenuation"),
               "parallel": ("--phantom", "head", "--slices", "6", "--size", "128")}[kind]
    settings = {"dbt": ("voxel=0.68", "iterations=1"), "pet": ("iterations=2", "matrix=96"),
                "parallel": ("mu_water=0.02",)}[kind]
    protocol = {"dbt": "dbt-osem", "pet": "pet-osem", "parallel": "parallel-fbp"}[kind]
    tomonode("simulate", kind, *options, "-o", exam)
    settings = [a for s in settings for a in ("--set", s)]
    answer = tomonode("recon", "--json", "--protocol", protocol, *settings, "--report", reports, "-o", out, exam)
    paths = [r for c in json.loads(answer.stdout)["cases"] for r in c["reports"]]
    check(paths == [only_report(reports)], "the path in the JSON")
    shutil.rmtree(exam)


def made(kind):
    """The folder of the objects and the report's path, made once for all tests."""
    kept = h.kept("report-" + kind, lambda folder: make(folder, kind))
    return os.path.join(kept, "objects"), only_report(os.path.join(kept, "reports"))


def nobody(report, objects):
    for d in objects[:1]:
        for word in (str(d.PatientName), d.PatientID, d.PatientBirthDate, d.AccessionNumber,
                     str(d.PatientName).split("^")[0] + " "):
            check(word and word not in report.source, f"{word} is in a report without --patient")


def common(folder, report, objects, path, out):
    check(f"<h1>{objects[0].SeriesDescription}</h1>" in report.source, "the title")
    check("Not for diagnostic use" in report.text and "Warnings" in report.text, "headings")
    for uid in (objects[0].SeriesInstanceUID, objects[0].StudyInstanceUID):
        check(uid in report.text, "a UID")
    check(report.row("Derived from series").startswith(objects[0].ReferencedSeriesSequence[0].SeriesInstanceUID),
          "the series of the sources")
    check("cpu" in report.row("Device") and re.fullmatch("[0-9a-f]{64}", report.row("Digest of the recipe")),
          "device and digest")
    check(re.search(r"tomonode, version \d+\.\d+\.\d+ ", report.row("Made by")), report.row("Made by"))
    check(report.source.count("<svg ") == 3, "three charts")
    nobody(report, objects)
    again = os.path.join(folder, "again")
    tomonode("report", "-o", again, out)
    with open(path, "rb") as a, open(only_report(again), "rb") as b:
        check(a.read() == b.read() and os.path.basename(path) == os.path.basename(only_report(again)),
              "report and recon --report differ")


def test_of_a_tomosynthesis(folder):
    out, path = made("dbt")
    report = Report(path)
    d = pydicom.dcmread(glob.glob(os.path.join(out, "*.dcm"))[0])
    shared, frames = d.SharedFunctionalGroupsSequence[0], d.PerFrameFunctionalGroupsSequence
    heights = [float(f.PlanePositionSequence[0].ImagePositionPatient[2]) for f in frames]
    check(heights == sorted(heights), "frames from the support upward")
    mapping = (shared if "RealWorldValueMappingSequence" in shared else frames[0]).RealWorldValueMappingSequence[0]
    values = d.pixel_array * float(mapping.RealWorldValueSlope) + float(mapping.RealWorldValueIntercept)
    voi = (shared if "FrameVOILUTSequence" in shared else frames[0]).FrameVOILUTSequence[0]
    c, w = float(voi.WindowCenter), float(voi.WindowWidth)
    window = [float(mapping.RealWorldValueSlope) * v + float(mapping.RealWorldValueIntercept)
              for v in (c - 0.5 - (w - 1) / 2, c - 0.5 + (w - 1) / 2)]
    check(np.allclose(window_of(report), window, rtol=1e-3), f"window {window_of(report)}, in the object {window}")
    column, row, k = compare(report, values, window, breast=True)
    spacing = [float(v) for v in shared.PixelMeasuresSequence[0].PixelSpacing]
    scale_bars(report, [values.shape[2] * spacing[1], values.shape[2] * spacing[1], values.shape[1] * spacing[0]])
    check(letters(report)[0] == ("L", "P", "A", "R") and letters(report)[1] == ("H", "A", "P", "F"),
          f"directions {letters(report)[:3]}")
    check("1/mm" in report.row("Values") and report.row("Side") == "L" and report.row("View") == "cranio-caudal",
          "facts")
    dose = float(shared.XRay3DAcquisitionSequence[0].OrganDose if "XRay3DAcquisitionSequence" in shared
                 else d.XRay3DAcquisitionSequence[0].OrganDose)
    check(abs(float(report.row("Organ dose, mGy")) - 100 * dose) < 1e-3 * 100 * dose,
          f"{report.row('Organ dose, mGy')}, in the object {dose} dGy")
    check("is not calibrated for this machine" in report.text.partition("Planes through")[0],
          "the warning of the geometry")
    check(re.search(r"<code>algorithm</code></th><td>osem<", report.source)
          and re.search(r"<code>axis_height</code></th><td>47 mm<", report.source), "parameters")
    # The largest contrast is a small dense detail of the phantom.
    check(values[k, row - 3:row + 4, column - 3:column + 4].max() > 3
          * np.median(values[k, row - 20:row + 21, column - 20:column + 21]), "a detail is there")
    common(folder, report, [d], path, out)


def test_of_pet(folder):
    out, path = made("pet")
    report = Report(path)
    values, objects = stack(out)
    d = objects[0]
    check(d.SeriesDescription == "PET reconstruction pet-osem, iterations=2, matrix=96",
          f"what differs from the protocol: {d.SeriesDescription}")
    lo, hi = window_of(report)
    check(lo == 0, "a window from 0")
    hottest = max(np.percentile(plane[plane > values.mean()], 99.5, method="inverted_cdf") for plane in values
                  if (plane > values.mean()).sum() >= 100)
    check(abs(hi - hottest) < values.max() / 1000 and "that 0.5 % of the object's voxels exceed in its hottest slice"
          in report.text, f"{hi}, not {hottest}")
    column, row, k = compare(report, values, (0, hi), inverse=True)
    # The largest contrast is one of the hot spheres, in whose plane all of them are.
    p = [float(v) for v in re.search(r"patient: (\S+), (\S+), (\S+) mm", report.text).groups()]
    corner = [float(v) for v in d.ImagePositionPatient]
    expected = [corner[0] + column * float(d.PixelSpacing[1]), corner[1] + row * float(d.PixelSpacing[0]),
                corner[2] + k * float(d.SliceThickness)]
    check(np.allclose(p, expected, atol=0.06), f"position {p}, expected {expected}")
    check(values[k, row, column] > 2.5 * np.median(values[k][values[k] > values[k].mean()]), "a hot sphere")
    drug = d.RadiopharmaceuticalInformationSequence[0]
    facts = report.source.partition("Warnings")[0]
    check(">Patient position</th><td>HFS (head first, supine)<" in facts
          and report.source.count("Patient position") == 1, "the position is no fact")
    check(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", report.row("Injected")), report.row("Injected"))
    injected, series = (int(t[:2]) * 3600 + int(t[2:4]) * 60 for t in (drug.RadiopharmaceuticalStartTime, d.SeriesTime))
    left = 2 ** ((injected - series) / float(drug.RadionuclideHalfLife))
    suv = 1000 * float(d.PatientWeight) / (float(drug.RadionuclideTotalDose) * left)
    check(abs(float(re.match(r"value x (\S+) ", report.row("SUV")).group(1)) / suv - 1) < 1e-3,
          f"SUV {report.row('SUV')}, expected {suv}")
    check("DTIM (dead time)" in report.row("Corrected for")
          and "START (to the start of the acquisition)" == report.row("Decay correction"), "codes are explained")
    check("<code>voxel</code></th><td>0 (diameter of the field of view over matrix)</td>" in report.source,
          "what a voxel of 0 is")
    places = [float(re.fullmatch(r"slice \d+ of \d+, patient z (\S+) mm", alt).group(1)) for alt,
              _ in report.pictures[6:]]
    check(np.allclose(places, [corner[2] + (int(alt.split()[1]) - 1) * float(d.SliceThickness) for alt,
                               _ in report.pictures[6:]], atol=0.06), f"places of slices {places}")
    check("Bq/ml" in report.row("Values") and report.row("Injected dose, Bq")
          and "OSEM" in report.row("Reconstruction method"), "facts")
    check(report.row("Origin: dose") == "simulated", report.row("Origin: dose"))
    check(letters(report)[0] == ("A", "R", "L", "P") and letters(report)[2] == ("H", "A", "P", "F"),
          f"directions {letters(report)[:3]}")
    scale_bars(report, [values.shape[2] * float(d.PixelSpacing[1])] * 2 + [values.shape[1] * float(d.PixelSpacing[0])])
    common(folder, report, objects, path, out)


def test_no_suv_where_measure_has_none(folder):
    """Where `measure` has no SUV, the report has none either, with the same reason."""
    out, _ = made("pet")
    cases = {"late": (lambda d: setattr(d, "SeriesTime", "%02d%s" % ((int(d.SeriesTime[:2]) + 1) % 24,
                                                                     d.SeriesTime[2:])),
                      "is not before the acquisition"),
             "attn": (lambda d: setattr(d, "CorrectedImage", [c for c in d.CorrectedImage if c != "ATTN"]),
                      "both ATTN and DECY"),
             "grams": (lambda d: setattr(d, "PatientWeight", 1000 * float(d.PatientWeight)),
                       "Patient's Weight (0010,1030) is")}
    for name, (change, reason) in cases.items():
        changed = os.path.join(folder, name)
        edited_all(out, changed, change)
        tomonode("report", "-o", changed + "-report", changed)
        report = Report(only_report(changed + "-report"))
        check(not report.row("SUV") and "(SUV" not in report.text, f"{name}: an SUV: {report.row('SUV')}")
        at = ",".join(re.search(r"patient: (\S+), (\S+), (\S+) mm", report.text).groups())
        measured = json.loads(tomonode("measure", "--json", "--circle", at + ",10", changed).stdout)["suv"]["left_out"]
        check(reason in measured and f"No SUV: {measured}." in report.text,
              f"{name}: measure says '{measured}', the report does not")
    check("No SUV" not in Report(made("pet")[1]).text, "a warning although there is an SUV")


def crossing(folder, like):
    """A CT of water that has three bars from the middle to the patient's left, front and head, in air."""
    z, y, x = (np.indices((40, 60, 60), float) - np.array([19.5, 29.5, 29.5])[:, None, None, None]) * 5
    thin = [np.abs(v) < 15 for v in (x, y, z)]
    bars = thin[1] & thin[2] & (x > -15) & (x < 90)
    bars |= thin[0] & thin[2] & (y < 15) & (y > -90)
    bars |= thin[0] & thin[1] & (z > -15)
    d = pydicom.dcmread(like, stop_before_pixels=True)
    return write_ct(folder, np.where(bars, 0, -1000), (5.0, 5.0, 5.0), (-147.5, -147.5, -97.5),
                    frame_of_reference=d.FrameOfReferenceUID,
                    study=d.StudyInstanceUID)


def corrected(folder, position):
    """A PET whose attenuation is computed; the folders of its data, with the CT, and of the result."""
    exam, out = os.path.join(folder, position), os.path.join(folder, position + "-result")
    tomonode("simulate", "pet", "--scanner", "small", "--counts", "1e5", "--position", position, "-o", exam)
    path = os.path.join(exam, "emission.dcm")
    d = pydicom.dcmread(path)
    d.CorrectedImage = [term for term in d.CorrectedImage if term != "ATTN"]
    d.save_as(path)
    crossing(exam + "-ct", path)
    tomonode("recon", "--protocol", "pet-mlem", "--set", "iterations=1", "--set", "matrix=16", "--set",
             "corrections=attenuation", "-o", out, exam, exam + "-ct")
    return exam, out


def check_maps(report, position):
    """The bars of the CT, in the directions that the letters say."""
    shown = [(alt, pixels, around) for (alt, pixels), around in zip(report.pictures, letters(report))
             if alt.startswith("mu, ")]
    check([alt.split()[1] for alt, _, _ in shown] == ["axial", "coronal", "sagittal"], [alt for alt, _, _ in shown])
    wanted = {"axial": ("A", "R", "L", "P"), "coronal": ("H", "R", "L", "F"), "sagittal": ("H", "A", "P", "F")}
    for alt, pixels, around in shown:
        name = alt.split()[1]
        check(around == wanted[name], f"{position}, {name}: {around}")
        h, w = (n // 2 for n in pixels.shape)
        reach = {"top": pixels[:h // 2, w - 1:w + 1], "left": pixels[h - 1:h + 1, :w // 2],
                 "right": pixels[h - 1:h + 1, -(w // 2):],
                 "bottom": pixels[-(h // 2):, w - 1:w + 1]}
        bright = {side for side, part in reach.items() if part.max() > 128}
        check(bright == {"axial": {"top", "right"}, "coronal": {"top", "right"}, "sagittal": {"top", "left"}}[name],
              f"{position}, {name} of {pixels.shape}: bars at {bright}")


def test_computed_corrections(folder):
    """Computed corrections are shown as pictures in the patient's directions and as profiles; a missing or damaged file
    is a sentence."""
    for position in ("HFS", "FFP"):
        exam, out = corrected(folder, position)
        tomonode("report", "-o", out + "-report", out)
        report = Report(only_report(out + "-report"))
        report.pictures = report.pictures[:6] + [p for p in report.pictures if not p[0].startswith("slice ")][6:]
        check_maps(report, position)
    pet_only = [alt for alt, _ in report.pictures if "attenuation correction factors of direct plane" in alt]
    check(len(pet_only) == 1 and report.source.count("<svg ") == 6 and "Summed over all angles" in report.text,
          "factors and profiles")
    side, = glob.glob(os.path.join(out, "corrections-*.json"))
    told = json.loads(h.read_file(side))
    emission = pydicom.dcmread(os.path.join(exam, "emission.dcm"))
    check(told["series"] == pydicom.dcmread(glob.glob(os.path.join(out, "*.dcm"))[0]).SeriesInstanceUID
          and str(emission.PatientName) not in json.dumps(told), "what is in the file")
    check([p["randoms"] for p in told["profiles"]] == [None] * 3, "randoms that nobody computed")
    shutil.copy(side, exam)  # beside truth.json: nobody is told of files that the program wrote itself
    told = tomonode("recon", "-o", os.path.join(folder, "again"), "--protocol", "pet-mlem", "--set", "iterations=1",
                    "--set", "matrix=16", exam)
    check("ignored files" not in told.stdout, told.stdout)
    for name, change, sentence in (("damaged", lambda p: os.truncate(p, 2000),
                                    "cannot be shown: corrections-....json beside the objects: no JSON"),
                                   ("missing", os.remove,
                                    "Their pictures are not there: they are in corrections-....json")):
        change(side)
        tomonode("report", "-o", os.path.join(folder, name), out)
        report = Report(only_report(os.path.join(folder, name)))
        check(sentence in report.text and report.source.count("<svg ") == 3 and "mu, axial" not in report.source,
              f"{name}: {report.text[-3000:]}")
    check("Corrections computed" not in Report(made("pet")[1]).text, "a section although nothing was computed")


def test_of_ct(folder):
    out, path = made("parallel")
    report = Report(path)
    values, objects = stack(out)
    check(window_of(report) == (-160, 239), f"window {window_of(report)}")
    compare(report, values, (-160, 239))
    check("HU" in report.row("Values") and report.row("Convolution kernel") == "Shepp-Logan", "facts")
    low, high = (float(v) for v in re.match(r"(\S+) to (\S+) HU", report.row("Values")).groups())
    check(abs(low - values.min()) < 0.5 and abs(high - values.max()) < 0.5, "range of the values")
    common(folder, report, objects, path, out)


# ---- the patient, foreign objects, refusals ----

def foreign(folder, n=5, **changes):
    """A CT series as another program writes it, coronal, with text that must not become HTML."""
    os.makedirs(folder, exist_ok=True)
    rng, series = np.random.default_rng(3), generate_uid()
    for k in range(n):
        d = new_object("1.2.840.10008.5.1.4.1.1.2")
        d.SpecificCharacterSet = "ISO_IR 100"
        d.PatientName, d.PatientID, d.PatientBirthDate, d.AccessionNumber = NAME, "<b>17</b>", "19700101", "A&B"
        d.StudyInstanceUID, d.SeriesInstanceUID = generate_uid(), series
        d.SeriesDescription = 'Sch\u00e4del </title><script>alert(2)</script>" onload="x'
        d.Manufacturer = "<img src=http://192.0.2.1/x>"
        d.DerivationDescription = "<!-- </section> " + "x" * 990
        d.Modality, d.SliceThickness, d.PixelSpacing = "CT", 3, [1, 2]
        d.ImageOrientationPatient, d.ImagePositionPatient = [1, 0, 0, 0, 0, -1], [-40, -100 + 3 * k, 60]
        d.Rows, d.Columns, d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 60, 40, 16, 12, 11, 1
        d.SamplesPerPixel, d.PhotometricInterpretation = 1, "MONOCHROME2"
        d.RescaleSlope, d.RescaleIntercept = 2, -24
        pixels = rng.integers(-20, 20, (60, 40)).astype(np.int16)
        pixels[28:33, 14:17] += 1000 if 1 <= k <= 3 else 0
        d.PixelData = (pixels & 0xfff).astype("<u2").tobytes()
        for name, value in changes.items():
            setattr(d, name, value)
        d.save_as(os.path.join(folder, f"{9 - k}.dcm"), write_like_original=False)
    return folder


def test_objects_of_others(folder):
    objects = foreign(os.path.join(folder, "foreign"))
    tomonode("report", "-o", os.path.join(folder, "a", "b"), objects)
    report = Report(only_report(os.path.join(folder, "a", "b")))
    check([t for t, _ in report.tags].count("script") == 1 and [t for t, _ in report.tags].count("img") == 11,
          "text of the objects became tags")
    text = re.sub(r"base64,[\w+/=]+|[\d.]{20,}", "", report.source)  # pictures and UIDs have any digits by chance
    for word in ("O'HARA", "O&#39;HARA", "17</b>", "1970", "A&amp;B"):
        check(word not in text, f"{word} is in a report without --patient")
    check("Sch\u00e4del </title><script>" in report.text and "x" * 400 in report.text, "text of the objects")
    check("The objects do not have a unit of the values." in report.text, "the missing unit")
    check(not re.search(r"\d (,|:|  )", report.text) and re.search(r"at least [\d.e+-]+ (more|less) than", report.text),
          "blanks in place of the missing unit")
    check("coronal, slice" in report.text and letters(report)[0] == ("H", "R", "L", "F")
          and letters(report)[1] == ("A", "R", "L", "P"), f"directions {letters(report)[:3]}")
    column, row, k = (int(v) for v in re.search(r"Column (\d+), row (\d+), slice (\d+) \(", report.text).groups())
    check(abs(column - 16) <= 1 and abs(row - 31) <= 2 and k in (2, 3, 4), f"the detail is not at {column}, {row}, {k}")
    tomonode("report", "--patient", "-o", os.path.join(folder, "named"), objects)
    named = Report(only_report(os.path.join(folder, "named")))
    check(NAME.replace("^", " ") in named.text and "<b>17</b>" in named.text
          and named.row("Birth date") == "1970-01-01", "the patient")
    check([t for t, _ in named.tags].count("script") == 1, "the patient's name became a tag")


def test_refusals(folder):
    good = foreign(os.path.join(folder, "good"))
    answer = tomonode("report", "-o", os.path.join(folder, "out"), __file__, code=4)
    check("no tomosynthesis, PET or CT image among 1 file" in answer.stderr, answer.stderr)
    answer = tomonode("report", "-o", os.path.join(folder, "out"), os.path.join(folder, "missing"), code=8)
    check("No such file" in answer.stderr, answer.stderr)
    tomonode("report", good, code=2)
    check(not os.path.exists(os.path.join(folder, "out")), "a folder without a report")
    # One series has a gap: its reason is printed, and the other one has a report.
    gap = foreign(os.path.join(folder, "gap"))
    os.remove(os.path.join(gap, "7.dcm"))
    answer = tomonode("report", "--json", "-o", os.path.join(folder, "out"), gap, good, code=4)
    told = json.loads(answer.stdout)
    name = os.path.basename(told["reports"][0]["file"])
    check(re.fullmatch(r"report-CT_Sch-del-title-script-alert-2-script-onload-x-[0-9a-f]{12}\.html", name), name)
    tomonode("report", "--series", told["reports"][0]["series"], "-o", os.path.join(folder, "chosen"), gap, good)
    check(os.path.basename(only_report(os.path.join(folder, "chosen"))) == name,
          "another report of the chosen series, or another name")
    answer = tomonode("report", "--series", "nobody", "-o", os.path.join(folder, "none"), gap, good, code=8)
    check("no series is --series nobody: CT_" in answer.stderr and not os.path.exists(os.path.join(folder, "none")),
          answer.stderr)
    check(len(told["reports"]) == 1 and len(told["refused"]) == 1
          and "slices are missing" in told["refused"][0]["reason"], told)
    Report(only_report(os.path.join(folder, "out")))
    # A folder that cannot be written
    with open(os.path.join(folder, "file"), "w", encoding="utf-8"):
        pass
    answer = tomonode("report", "-o", os.path.join(folder, "file"), good, code=1)
    check("file" in answer.stderr, answer.stderr)
    # A value that is not finite, and extreme geometry
    huge = foreign(os.path.join(folder, "huge"), RescaleSlope="1e300")
    check("is not finite" in tomonode("report", "-o", os.path.join(folder, "x"), huge, code=4).stderr,
          "values of 1e300")
    thin = foreign(os.path.join(folder, "thin"), PixelSpacing=["1e-9", "1e9"])
    tomonode("report", "-o", os.path.join(folder, "thin-report"), thin)
    Report(only_report(os.path.join(folder, "thin-report")))
    flat = foreign(os.path.join(folder, "flat"), PixelData=bytes(2 * 60 * 40))
    tomonode("report", "-o", os.path.join(folder, "flat-report"), flat)
    check("No detail differs from its surroundings" in Report(only_report(os.path.join(folder, "flat-report"))).text,
          "a uniform volume")


# ---- in the browser ----

@pytest.mark.tier2("a browser")
def test_in_a_browser():
    if not any(shutil.which(c) for c in ("chromium", "chromium-browser", "google-chrome")):
        h.skip("chromium is not installed")
    import test_status_browser as t
    b = t.Browser()
    try:
        for kind in ("dbt", "pet", "parallel"):
            in_browser(t, b, "file://" + os.path.abspath(made(kind)[1]), kind)
    finally:
        b.stop()


def picture(b, name):
    if os.environ.get("SCREENSHOTS"):
        size = b.value("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        data = b.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                      clip={"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1})["data"]
        h.write_file(os.path.join(os.environ["SCREENSHOTS"], f"report-{name}.png"), base64.b64decode(data))


def in_browser(t, b, url, kind):
    for width, dark in ((320, False), (1280, True), (1280, False)):
        b.show(url, width, 800, dark)
        t.good(b, f"{kind}, {width} pixels{', dark' * dark}")
        check(b.value("[...document.images].filter(i => i.checkVisibility()).every(i => i.complete && i.naturalWidth > "
                      "0)"), "a picture is not shown")
        picture(b, f"{kind}-{width}{'-dark' * dark}")
    # The pictures have the shape of the volume in mm.
    for ratio, shown in b.value("[...document.querySelectorAll('.view')].map(v => [v.style.aspectRatio, v.clientWidth "
                                "/ v.clientHeight])"):
        w, height = (float(v) for v in ratio.split("/"))
        check(abs(shown / (w / height) - 1) < 0.1, f"{kind}: a picture of {ratio} mm is shown as {shown}")
    # The slider shows one slice at a time, with the keyboard too.
    shown = "[...document.querySelectorAll('#slices figure')].filter(f => f.checkVisibility()).map(f => f.textContent)"
    first = b.value(shown)
    check(len(first) == 1, f"{len(first)} slices are shown")
    b.value("document.querySelector('input[type=range]').focus()")
    for kind_of_event in ("keyDown", "keyUp"):
        b.call("Input.dispatchKeyEvent", type=kind_of_event, key="ArrowRight", code="ArrowRight",
               windowsVirtualKeyCode=39)
    second = b.value(shown)
    check(len(second) == 1 and second != first, f"the slider does not move: {first}, {second}")
    # On paper: all slices, no slider, black on white; as a PDF it has a few pages.
    b.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    check(b.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "white paper")
    check(len(b.value(shown)) > 1 and not b.value("document.querySelector('input').checkVisibility()"),
          "slices on paper")
    b.call("Emulation.setEmulatedMedia", media="", features=[])
    pdf = base64.b64decode(b.call("Page.printToPDF", printBackground=False)["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
    check(pdf.startswith(b"%PDF") and 2 <= pages <= 8, f"{pages} pages")
    # Without scripts every slice is shown.
    b.call("Emulation.setScriptExecutionDisabled", value=True)
    b.call("Page.reload")
    h.wait_for("the page without scripts", lambda: b.value("document.readyState") == "complete"
               and not b.value("document.querySelector('input')"))
    check(len(b.value(shown)) == b.value("document.querySelectorAll('#slices figure').length"),
          "slices without scripts")
    t.good(b, f"{kind} without scripts")
    b.call("Emulation.setScriptExecutionDisabled", value=False)
