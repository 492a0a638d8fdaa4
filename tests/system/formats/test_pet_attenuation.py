# SPDX-License-Identifier: Apache-2.0
"""Attenuation of PET from a CT series: activity behind ellipsoids of water, air and bone, whose factors are computed
here from chords, in data with the ready-made role ATTENUATION and in the same data with a CT instead. The images agree
in every position of the patient, with the centre of the scanner anywhere, and with a CT of any orientation. A CT that
is not of this exam is refused; what is missing is a sentence."""
import collections
import ctypes
import functools
import glob
import itertools
import json
import os
import re
import struct

import numpy as np
import pydicom
import pytest

from tools import node_harness as h
from tools.ct_writer import write_ct
from tools.map_writer import write_metaimage
from tools.node_harness import check
from tools.pet_tools import AXES, along_z, run

h.need(h.TOMONODE)

WATER = 0.0096  # 1/mm at 511 keV
# Centre and half axes (mm) in the axes of the scanner, and what each adds to mu: different along every axis, and in no
# symmetric place
BODIES = (((5, -4, 3), (62, 48, 60), WATER), ((-25, 12, -8), (17, 14, 15), 0.0025 - WATER),
          ((24, -18, 10), (10, 13, 11), 0.0150 - WATER))
PLANES, RADIAL, ANGLES, BIN, SPACING, RING = (15, 11, 11, 5, 5), 65, 48, 2.5, 6.5, 105  # of the scanner `small`
DIFFERENCES = (0, 3, -3, 6, -6)
FRAME, STUDY = "2.25.7001", "2.25.7002"
QUICK = ("--device", "cpu", "--protocol", "pet-osem", "--set", "matrix=48", "--set", "iterations=2", "--set",
         "subsets=8", "--set", "postfilter=6")
CT = ("--set", 'corrections=["attenuation"]')
# Images with the factors from CT, smoothed to the resolution of PET, and with ready-made ones of sharp edges, inside of
# the activity: relative
# difference of the mean, root of the mean square, that of one voxel
MEAN, SQUARE, WORST = 0.005, 0.015, 0.08


def rays():
    """A point and the direction of every ray, [plane][angle][radial][3], as docs/sinogram-object.md defines them."""
    points, directions = [], []
    phi = (np.arange(ANGLES) * np.pi / ANGLES)[:, None]
    r = ((np.arange(RADIAL) - RADIAL // 2) * BIN)[None, :]
    w = np.sqrt(RING**2 - r**2)
    for planes, difference in zip(PLANES, DIFFERENCES):
        for a in range(planes):
            z = (a - (planes - 1) / 2) * SPACING / 2
            first = np.stack([r * np.cos(phi) - w * np.sin(phi), r * np.sin(phi) + w * np.cos(phi),
                              np.full((ANGLES, RADIAL), z + difference * SPACING / 2)], -1)
            last = np.stack([r * np.cos(phi) + w * np.sin(phi), r * np.sin(phi) - w * np.cos(phi),
                             np.full((ANGLES, RADIAL), z - difference * SPACING / 2)], -1)
            points.append(first)
            directions.append((last - first) / np.linalg.norm(last - first, axis=-1, keepdims=True))
    return np.array(points), np.array(directions)


def factors():
    """exp(-integral of mu) of every ray."""
    points, directions = rays()
    integral = np.zeros(points.shape[:-1])
    for centre, axes, mu in BODIES:
        p, d = (points - np.array(centre)) / np.array(axes), directions / np.array(axes)
        a, b, c = (d * d).sum(-1), (p * d).sum(-1), (p * p).sum(-1) - 1
        integral += mu * 2 * np.sqrt(np.maximum(b * b - a * c, 0)) / a
    return np.exp(-integral)


def hounsfield(mu):
    """What a CT of 120 kV shows: the table of the facts, inverted."""
    return np.where(mu <= 9.6e-6 * 1047, mu / 9.6e-6 - 1000, (mu - 0.00471) / 5.10e-6 - 1000)


def of_map(mu):
    """The values of the map that an mMR makes of MR images."""
    return 1e5 * mu


@functools.cache
def ct_of(position, orientation, extent, spacing, shown=hounsfield, bodies=BODIES):
    """Values of the bodies around the middle of the CT, [slice][row][column], of voxels that average eight
    points."""
    cosines = np.array(orientation, float)
    steps = np.array([cosines[:3] * spacing[0], cosines[3:] * spacing[1],
                      np.cross(cosines[:3], cosines[3:]) * spacing[2]])
    to_scanner = steps @ np.array(AXES[position], float).T
    axes = [np.arange(int(e / s)) - int(e / s) / 2 + 0.5 for e, s in zip(extent, spacing)]
    mu = np.zeros([len(a) for a in axes[::-1]])
    for offset in itertools.product((-0.25, 0.25), repeat=3):
        x, y, z = ((a + o)[..., None] * step for a, o, step in zip(axes, offset, to_scanner))
        for middle, half, add in bodies:
            at = ((x[None, None] + y[None, :, None] + z[:, None, None] - middle) / half).astype("f4")
            mu += add / 8 * (np.einsum("kjic,kjic->kji", at, at) < 1)
    return shown(mu), -steps.T @ [a[-1] for a in axes]


def make_ct(folder, position, centre=(0, 0, 0), orientation=(1, 0, 0, 0, 1, 0), extent=(180, 180, 120),
            spacing=(3.0, 2.6, 2.0), shown=hounsfield, bodies=BODIES, **options):
    """A CT of the bodies, around the scanner's centre."""
    hu, first = ct_of(position, orientation, extent, spacing, shown, bodies)
    options = {"frame_of_reference": FRAME, "study": STUDY, **options}
    return write_ct(folder, hu, spacing, np.array(centre, float) + first, orientation, **options)


class Data:
    """Interfile of the emission data behind the bodies, and of the factors."""

    def __init__(self, folder):
        self.folder = folder
        self.scan = os.path.join(folder, "scan")
        run("simulate", "pet", "--scanner", "small", "--phantom", "cylinder", "--radius", "40", "--noise-free",
            "--interfile", "-o", self.scan)
        path = os.path.join(self.scan, "emission.s")
        emission = np.fromfile(path, "<f4").reshape(sum(PLANES), ANGLES, RADIAL)
        self.factors = along_z(factors(), PLANES)
        (emission * self.factors).astype("<f4").tofile(path)
        self.written(1 / self.factors, "attenuation")

    def written(self, values, name):
        """Factors as Interfile; their header."""
        values.astype("<f4").tofile(os.path.join(self.scan, name + ".s"))
        with open(os.path.join(self.scan, "emission.hs"),
                  encoding="ascii") as header, open(os.path.join(self.scan, name + ".hs"), "w",
                                                    encoding="ascii") as out:
            out.write(header.read().replace("emission.s", name + ".s"))
        return os.path.join(self.scan, name + ".hs")

    def objects(self, name, position="HFS", centre=None, ready=False, normalisation=None, multiplicative=None,
                **attributes):
        """The data as objects; their folder."""
        out = os.path.join(self.folder, name)
        sets = {"PatientPosition": position, "PatientName": "TOMONODE^PHANTOM", "PatientID": "TOMONODE-PHANTOM",
                "PatientBirthDate": "19601130",
                "FrameOfReferenceUID": FRAME, "StudyInstanceUID": STUDY, "Radionuclide": "F18", **attributes}
        if centre is not None:
            sets["ScannerCentre"] = "\\".join(map(str, centre))
        options = [o for k, v in sets.items() for o in ("--set", f"{k}={v}")]
        if ready:
            options += ["--attenuation", os.path.join(self.scan, "attenuation.hs")]
        for role, values in (("normalisation", normalisation), ("multiplicative", multiplicative)):
            if values is not None:
                options += ["--" + role, self.written(values, f"{role}-{name}")]
        run("import", os.path.join(self.scan, "emission.hs"), *options, "-o", out)
        return out


def recon(out, *paths, options=(), ok=(0,)):
    """`tomonode recon --json`: its document, and the volume in the order of the scanner's slices."""
    done = run("recon", "--json", "-o", out, *QUICK, *options, *paths, ok=ok)
    document = json.loads(done.stdout)
    images = sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(out, "*.dcm"))), key=lambda d: d.InstanceNumber)
    return document, np.array([d.pixel_array * float(d.RescaleSlope) for d in images]), images


def refused(out, *paths, code=4, options=CT):
    document, volume, _ = recon(out, *paths, options=options, ok=(code,))
    check(len(volume) == 0 and len(document["refused"]) == 1, f"one refusal and no image: {document['refused']}")
    return document["refused"][0]["reason"]


def compare(name, found, expected):
    inside = expected > 0.5 * expected.max()
    ratio = found[inside] / expected[inside]
    mean, square, worst = ratio.mean() - 1, ((ratio - 1) ** 2).mean() ** 0.5, abs(ratio - 1).max()
    print(f"  {name}: mean {mean:+.4f}, root mean square {square:.4f}, worst {worst:.4f} of {inside.sum()} voxels",
          flush=True)
    check(abs(mean) < MEAN and square < SQUARE and worst < WORST, f"{name}: the images agree")


PLACES = (  # position, centre of the scanner, orientation of the CT
    ("HFS", (0, 0, 0), (1, 0, 0, 0, 1, 0)),
    ("FFS", (31, -62, 1210), (1, 0, 0, 0, 1, 0)),
    ("HFDR", (-12, 40, -355), (1, 0, 0, 0, 1, 0)),
    ("FFP", (7, 9, 20), (-1, 0, 0, 0, -1, 0)),
    ("HFDL", (100, 200, -300), (0, 1, 0, 0, 0, -1)),
    ("HFP", (-18, 27, 77), (0.8, 0.6, 0, -0.6, 0.8, 0)))


@pytest.mark.parametrize("position, centre, orientation", PLACES if h.TIER == 2 else PLACES[-1:])
def test_places(folder, position, centre, orientation):
    data = Data(folder)
    out = os.path.join(folder, position)
    ct = os.path.join(out, "ct")
    make_ct(ct, position, centre, orientation, series="2.25.7003")
    ready = data.objects(f"{position}/ready", position, centre, ready=True)
    bare = data.objects(f"{position}/bare", position, centre)
    expected = recon(os.path.join(out, "expected"), ready)[1]
    document, found, images = recon(os.path.join(out, "found"), bare, ct, options=CT)
    compare(f"{position} centre {centre}", found, expected)
    case = document["cases"][0]
    corrections = case["pet"]["corrections"]["attenuation"]
    check(not corrections["cached"] and corrections["missing"] == 0 and corrections["truncated"] == 0,
          f"details: {corrections}")
    check("attenuation" not in case["pet"]["warnings"] and "origin" not in case["pet"]["warnings"],
          f"nothing is missing: {case['pet']['warnings']}")
    check(document["not_projections"] == 0, f"the CT counts as used: {document['not_projections']}")
    check("ATTN" in images[0].CorrectedImage and images[0].AttenuationCorrectionMethod
          == "CT as 120 kV, factors in the system model",
          "the result says what was corrected")
    check("attenuation from CT series 2.25.7003" in images[0].DerivationDescription,
          f"and by what: {images[0].DerivationDescription}")


MR_MAP = {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.4", "Modality": "MR", "Manufacturer": "SIEMENS", "ManufacturerModelName": "Biograph_mMR",
          "SeriesDescription": "Head_MRAC_PET_UMAP", "ImageType": ["ORIGINAL", "PRIMARY", "M"], "KVP": None, "RescaleSlope": None,
          "RescaleIntercept": None, "RescaleType": None}


def test_a_map_from_mr(folder):
    """The map of an mMR in place of a CT: 10000 times the attenuation in 1/cm. Another unit is refused; other MR images are not used."""
    data = Data(folder)
    place = ("FFP", (7, 9, 20), (-1, 0, 0, 0, -1, 0))
    bare = data.objects("bare", *place[:2])
    expected = recon(os.path.join(folder, "expected"), data.objects("ready", *place[:2], ready=True))[1]

    def made(name, changes=MR_MAP, factor=1, **options):
        make_ct(os.path.join(folder, name), *place, shown=lambda mu: factor * of_map(mu), intercept=0, series="2.25.7003", changes=changes)
        return os.path.join(folder, name)

    contrast = {**MR_MAP, "ContrastBolusAgent": "gadolinium"}  # of the MR images of the exam: nothing to say of the map
    document, found, images = recon(os.path.join(folder, "found"), bare, made("map", changes=contrast), options=CT)
    compare("map from MR", found, expected)
    case = document["cases"][0]["pet"]
    check("the scanner's map from MR (Head_MRAC_PET_UMAP)" in case["warnings"] and "KVP" not in case["warnings"]
          and "contrast" not in case["warnings"] and case["corrections"]["attenuation"]["truncated"] == 0, case["warnings"])
    check(images[0].AttenuationCorrectionMethod == "map from MR, factors in the system model"
          and "attenuation from MR map series 2.25.7003" in images[0].DerivationDescription, images[0].DerivationDescription)
    for name, factor, value in (("mm", 0.1, "150"), ("percent", 10, "1.5e+04")):
        text = refused(os.path.join(folder, "out-" + name), bare, made(name, factor=factor))
        check(f"the map from MR has values up to {value}" in text and "another unit, or no map" in text, text)
    t1 = {**MR_MAP, "SeriesDescription": "t1_mprage"}
    case = recon(os.path.join(folder, "none"), bare, made("t1", changes=t1), options=CT)[0]["cases"][0]["pet"]
    check("There is no CT and no map for the attenuation." in case["warnings"], case["warnings"])


def test_maps_of_hardware(folder):
    """Maps of the table and of coils as further series of the exam are added to that of the patient; each is said."""
    data, place = Data(folder), ("FFP", (7, 9, 20), (-1, 0, 0, 0, -1, 0))
    bare = data.objects("bare", *place[:2])
    expected = recon(os.path.join(folder, "expected"), data.objects("ready", *place[:2], ready=True))[1]

    def made(name, words, bodies, **options):
        changes = {**MR_MAP, "SeriesDescription": words}
        make_ct(os.path.join(folder, name), *place, shown=of_map, bodies=bodies, intercept=0, changes=changes, **options)
        return os.path.join(folder, name)

    (middle, half, bone), whole = BODIES[2], BODIES[:2]
    patient, table = made("patient", "MRAC_UMAP", whole), made("table", "UMAP_table", ((middle, half, bone / 2), ),
                                                              spacing=(2.0, 2.0, 2.4))
    other = made("other", "UMAP_table_2", (((50, 60, 0), (8, 8, 30), bone), ))
    case = recon(os.path.join(folder, "alone"), bare, patient, options=CT)[0]["cases"][0]["pet"]
    check("as arms beyond its field, the table and coils, is not corrected" in case["warnings"], case["warnings"])
    document, found, images = recon(os.path.join(folder, "found"), bare, patient, made("hardware", "UMAP hardware", BODIES[2:]),
                                    options=CT)
    compare("with hardware", found, expected)
    case = document["cases"][0]["pet"]
    check("The map of hardware (UMAP hardware) is added." in case["warnings"]
          and "as arms beyond its field, is not corrected" in case["warnings"], case["warnings"])
    check([m["name"] for m in case["corrections"]["attenuation"]["maps"]] == ["hardware"]
          and " and map of hardware" in images[0].DerivationDescription, images[0].DerivationDescription)
    case = recon(os.path.join(folder, "frame-out"), bare, patient,
                 made("frame", "UMAP_table", BODIES[2:], frame_of_reference="2.25.99"), options=CT)[0]["cases"][0]["pet"]
    check("as arms beyond its field, the table and coils, is not corrected" in case["warnings"],
          f"of another frame of reference: not used, and missing: {case['warnings']}")
    done = run("recon", "-o", os.path.join(folder, "frame-said"), *QUICK, *CT, bare, patient, os.path.join(folder, "frame"))
    check("60 of the 120 objects of CT or maps are not of its frame of reference, and not used" in done.stderr, done.stderr)
    case = recon(os.path.join(folder, "table-out"), bare, other, patient, options=CT)[0]["cases"][0]["pet"]
    check("arms beyond its field, and coils, is not" in case["warnings"], case["warnings"])
    for name, paths, why in (
        ("two", (patient, table, other), "map of the table: two series, "),
        ("unit", (patient, made("unit", "UMAP_table", ((middle, half, bone / 20), ))),
         "of hardware it is 0.005 to 0.4/cm")):  # yapf: disable
        text = refused(os.path.join(folder, "out-" + name), bare, *paths)
        check(why in text, f"{name}: {text}")


def test_a_map_of_a_signa(folder):
    """It is known, and refused because of its unit; a person may give the same map with its unit."""
    data = Data(folder)
    bare, changes = data.objects("bare"), {**MR_MAP, "Manufacturer": "GE MEDICAL SYSTEMS", "ManufacturerModelName": "SIGNA PET/MR",
                                           "SeriesDescription": "head_ACMAP_TC"}
    make_ct(os.path.join(folder, "map"), "HFS", shown=of_map, intercept=0, changes=changes)
    text = refused(os.path.join(folder, "out"), bare, os.path.join(folder, "map"))
    said = "map of a GE SIGNA PET/MR, whose unit is not documented: recon --map FILE,unit=UNIT"
    check(said in text, text)
    values, first = ct_of("HFS", (1, 0, 0, 0, 1, 0), (180, 180, 120), (3.0, 2.6, 2.0), of_map)
    path = write_metaimage(os.path.join(folder, "map.mha"), values,
                           np.column_stack([np.diag((3.0, 2.6, 2.0)), first]))
    case = recon(os.path.join(folder, "with"), bare, os.path.join(folder, "map"),
                 options=("--map", path + ",unit=10000/cm"))[0]["cases"][0]["pet"]
    check(f"60 objects were not used: {said}." in case["warnings"] and case["corrections"]["attenuation"]["missing"] == 0,
          case["warnings"])


def test_uncorrected_differs(folder):
    """The test sees the attenuation: without it the image is another one. Without CT the result says what it lacks."""
    data = Data(folder)
    expected = recon(os.path.join(folder, "ready-image"), data.objects("plain/ready", ready=True))[1]
    document, found, _ = recon(os.path.join(folder, "none"), data.objects("plain/bare"), options=CT)
    check(found[expected > 0.5 * expected.max()].mean() < 0.6 * expected[expected > 0.5 * expected.max()].mean(),
          "the activity is too low")
    warnings = document["cases"][0]["pet"]["warnings"]
    check("There is no CT and no map for the attenuation." in warnings and "Not corrected for attenuation" in warnings,
          f"the sentences: {warnings}")
    # the activity is 80 mm wide: exp(0.0096 x 80) = 2.2
    cost = re.search(r"What that costs: through (\d+) cm of water, about the width of this body, 1 of about ([0-9.]+) counts", warnings)
    check(cost and 8 <= float(cost[1]) <= 9 and 2.1 <= float(cost[2]) <= 2.5, f"what it costs: {warnings}")


def test_ready_made_factors_count(folder):
    """Data with ATTENUATION: the CT changes nothing, and the result says so."""
    data = Data(folder)
    ready = data.objects("counts/ready", ready=True)
    ct = os.path.join(folder, "counts", "ct")
    make_ct(ct, "HFS")
    document, alone, _ = recon(os.path.join(folder, "counts", "alone"), ready, ct)
    check(document["not_projections"] > 0,
          f"without corrections, the CT counts as ignored: {document['not_projections']}")
    document, both, _ = recon(os.path.join(folder, "counts", "both"), ready, ct, options=CT)
    check(np.array_equal(alone, both), "the image is that of the role")
    check("the CT was not used" in document["cases"][0]["pet"]["warnings"],
          f"it says so: {document['cases'][0]['pet']['warnings']}")


def test_normalisation_with_attenuation(folder):
    """Factors of detectors and attenuation in one file, in the role of those of the detectors: refused beside a CT;
    without the correction they are what corrects both. Those of detectors alone, with noise, gaps and a geometry, are
    used."""
    data = Data(folder)
    rng = np.random.default_rng(1)
    # each end of a ray has the efficiency of its detector
    crystal = np.exp(0.15 * rng.standard_normal((2, 2 * ANGLES)))
    angle, t = np.arange(ANGLES)[:, None], np.arange(RADIAL)[None, :] - RADIAL // 2
    detectors = crystal[0][(angle + t // 2) % (2 * ANGLES)] * crystal[1][(angle - (t + 1) // 2 + ANGLES) % (2 * ANGLES)]
    norm = np.repeat((detectors * (1 + 0.3 * (t / t.max()) ** 2))[None], sum(PLANES), 0)
    norm[:, 7] = 1e6  # a gap
    ct = os.path.join(folder, "ct")
    make_ct(ct, "HFS")
    both = data.objects("both", normalisation=norm / data.factors)
    said = refused(os.path.join(folder, "refused"), both, ct)
    check("NORMALISATION: its values rise with the line integrals of the CT (ln of the value: " in said
          and "would be corrected twice" in said, said)
    check(0.9 < float(said.split("ln of the value: ")[1].split()[0]) < 1.1, said)
    document, volume, _ = recon(os.path.join(folder, "without"), both)
    check(not document["refused"] and volume.max() > 0, "one file of factors is used")
    # as the role that contains both: used once, beside a CT, too
    fraction = data.objects("fraction", multiplicative=data.factors / norm)
    document, with_ct, images = recon(os.path.join(folder, "fraction-out"), fraction, ct, options=CT)
    check(np.array_equal(with_ct, recon(os.path.join(folder, "fraction-plain"), fraction)[1]),
          "MULTIPLICATIVE, other values with a CT")
    check("The attenuation is the role MULTIPLICATIVE of the data; the CT was not used."
          in images[0].DerivationDescription, images[0].DerivationDescription)
    alone = data.objects("alone", normalisation=norm)
    document, volume, images = recon(os.path.join(folder, "alone-out"), alone, ct, options=CT)
    check(not document["refused"] and {"ATTN", "NORM"} <= set(images[0].CorrectedImage), document["refused"])
    path = os.path.join(data.scan, "emission.s")  # the counts of these detectors: right factors, and upside down
    emission = np.fromfile(path, "<f4").reshape(norm.shape) / norm
    emission.astype("<f4").tofile(path)
    document = recon(os.path.join(folder, "right-out"), data.objects("right", normalisation=norm))[0]
    check(not document["refused"], document["refused"])
    said = refused(os.path.join(folder, "upside-out"), data.objects("upside", normalisation=1 / norm), options=())
    check("NORMALISATION: where its values are higher than those of neighbouring views, the counts are, too" in said
          and "give 1 / value" in said, said)


COARSE = {"extent": (180, 180, 60), "spacing": (12.0, 12.0, 2.0)}  # whose voxels nobody looks at


def test_a_wrong_ct_is_refused(folder):
    """Its images one by one: dicom/object/test_ct_series."""
    data = Data(folder)
    bare = data.objects("wrong/bare")
    folder = os.path.join(folder, "wrong")

    def reason(name, keep=slice(None), **options):
        ct = make_ct(os.path.join(folder, name), "HFS", **COARSE, **options)
        for path in ct if isinstance(keep, slice) else keep(ct):
            if not isinstance(keep, slice):
                os.remove(path)
        return refused(os.path.join(folder, "out-" + name), bare, os.path.join(folder, name))

    check("its frame of reference is 2.25.99, that of the PET data 2.25.7001"
          in reason("frame", frame_of_reference="2.25.99"), "another frame of reference")
    check("its frame of reference is 2.25.98, that of the PET data 2.25.7001"
          in reason("study", frame_of_reference="2.25.98", study="2.25.97"),
          "the only CT that is given is of another study")
    text = reason("patient", patient={"PatientID": "OTHER", "PatientName": "OTHER^ONE"})
    check("different patients" in text and "between the PET data and the CT" in text and "OTHER" not in text,
          f"another patient: {text}")
    text = reason("gap", keep=lambda ct: ct[11:12])
    check("ct-0010.dcm at" in text and "ct-0012.dcm at" in text and "4.00 mm apart, the others 2.00 mm" in text,
          f"a missing slice: {text}")


def test_what_a_ct_lacks_is_said(folder):
    """A CT with something missing is used, and each thing is a sentence."""
    data = Data(folder)
    bare = data.objects("poor/bare")
    folder, parts = os.path.join(folder, "poor"), []

    def said(name, **options):
        make_ct(os.path.join(folder, name), "HFS", **options)
        case = recon(os.path.join(folder, "out-" + name), bare, os.path.join(folder, name),
                     options=CT)[0]["cases"][0]["pet"]
        parts.append((case["units"], "ATTN" in case["corrected"]))
        return case["warnings"], case["corrections"]["attenuation"]

    text, details = said("short", extent=(180, 180, 36))
    check("4 of 15 planes are not in it" in text and abs(details["missing"] - 4 / 15) < 1e-9, f"too short: {text}")
    check("Not corrected for attenuation" in text and "in all planes, hence not in Bq/ml" in text
          and parts == [("CNTS", False)], f"too short: {text}, {parts}")
    check("The centre of the scanner, which places the CT, is taken as the origin" in text,
          f"no centre in the data: {text}")
    text, details = said("narrow", extent=(100, 100, 120))
    check("The CT is truncated" in text and details["truncated"] > 0.3, f"truncated: {text}")
    text, details = said("voltage", kvp=None)
    check("no KVP" in text and "120 kV" in text and details["kvp"] is None and details["kvp_table"] == 120,
          f"no voltage: {text}")
    text, details = said("energies", changes={"MultienergyCTAcquisition": "YES"})
    check("acquired at several energies: its Hounsfield units were converted as those of 120 kV" in text, text)
    text, details = said("slow", kvp=70, changes={"ContrastBolusAgent": "iodine"})
    check("The CT has 70 kV, which is not in the table: converted as 80 kV." in text and "contrast agent" in text,
          f"voltage and contrast: {text}")


def test_factors_are_cached(folder):
    """Another acquisition with the same CT and scanner uses the factors of the first."""
    data = Data(folder)
    first, second = data.objects("cached/pet/a"), data.objects("cached/pet/b", SeriesNumber="9")
    ct = os.path.join(folder, "cached", "pet", "ct")
    make_ct(ct, "HFS")
    document = recon(os.path.join(folder, "cached", "out"), first, second, ct, options=CT)[0]
    states = [c["pet"]["corrections"]["attenuation"]["cached"] for c in document["cases"]]
    check(states == [0, 1], f"the second case finds them: {states}")
    pixels = [pydicom.dcmread(f).PixelData for f in sorted(glob.glob(os.path.join(folder, "cached", "out", "*.dcm")))]
    check(len(set(pixels)) * 2 <= len(pixels), "both images are the same")


def opens_during(folder, run_it):
    """How often each file of a folder is opened while run_it() runs."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    check(fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(folder), 0x20) > 0, "inotify")  # IN_OPEN
    run_it()
    count, data = collections.Counter(), b""
    try:
        while True:
            data += os.read(fd, 1 << 20)
    except BlockingIOError:
        os.close(fd)
    while data:
        _, _, _, length = struct.unpack("iIII", data[:16])
        count[data[16:16 + length].rstrip(b"\0").decode()] += 1
        data = data[16 + length:]
    return count


def test_files_are_opened_once(folder):
    """By the list of cases; by the reconstruction, which keeps the PET data open; and the slices of the CT for their
    pixels."""
    data = Data(folder)
    both = data.objects("both", normalisation=np.linspace(0.7, 1.3, data.factors.size))
    make_ct(both, "HFS")
    count = opens_during(both, lambda: recon(os.path.join(folder, "opened"), both, options=CT))
    names = os.listdir(both)
    check(len(names) == 62 and all(count[name] == (3 if name.startswith("ct-") else 2) for name in names), f"{count}")


def test_scatter_needs(folder):
    """Scatter is simulated with the attenuation map and the scanner's energy window; without the one it is not
    corrected, without the other the case is refused. The header's window is used where the configuration has none;
    another one is said."""
    data = Data(folder)
    bare, ct = data.objects("scatter/bare"), os.path.join(folder, "scatter", "ct")
    make_ct(ct, "HFS")
    options = ("--set", "corrections=attenuation+scatter", "--set", "scatter_iterations=1")
    text = refused(os.path.join(folder, "scatter", "out"), bare, ct, options=options)
    check('the correction "scatter" needs the energy window of the scanner: give energy_low, energy_high and '
          'energy_resolution' in text, text)
    document, _, images = recon(os.path.join(folder, "scatter", "no-ct"), bare, options=options)
    case = document["cases"][0]["pet"]
    check("Not corrected for scatter: its simulation needs the attenuation map" in case["warnings"],
          case["warnings"])
    check(case["corrections"]["scatter"] is None and "SCAT" not in images[0].CorrectedImage,
          f"not corrected: {case['corrections']}")
    header = os.path.join(data.scan, "emission.hs")
    text = h.read_file(header)
    with open(header, "w", encoding="ascii") as f:
        f.write(text.replace("end scanner",
                             "energy window lower level[1] := 425\nenergy window upper level[1] := 650\nEnergy "
                             "resolution := 0.145\nend scanner"))
    bare = data.objects("scatter/header", CorrectedImage="RAN", Manufacturer="tomonode")
    config = os.path.join(folder, "scatter.conf")
    for scanner, window, resolution, said in (("", [425, 650], 14.5, False),
                                              ("energy_low = 435.0; energy_resolution = 12.0;", [435, 650], 12, True)):
        h.write_file(config, f'scanners = ( {{ name = "small"; {scanner} }} );' if scanner else "")
        document, _, images = recon(os.path.join(folder, "scatter", f"window-{said}"), bare, ct,
                                    options=(*options, "-c", config))
        case = document["cases"][0]["pet"]
        check((case["corrections"]["scatter"]["window_kev"],
               case["corrections"]["scatter"]["resolution_percent"]) == (window, resolution),
              f"the window is that of the header, where the configuration has none: {case['corrections']}")
        check(("the energy window 425 to 650 keV and the energy resolution 14.5 % (0: it has none), scanner small"
               in case["warnings"]) == said, case["warnings"])
