# SPDX-License-Identifier: Apache-2.0
"""`tomonode simulate pet`: counts in every bin as the geometry written down here a second time has them, objects that
dciodvfy accepts and that hold the same data, quantities that fit each other, the same bytes for the same options, a
sentence for bad ones."""
import glob
import hashlib
import json
import math
import os
import re

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h
from tools.pet_tools import along_z, reconstruct

h.need(h.TOMONODE, "dciodvfy")

# The scanner `small` (conf/defaults.conf), and the ring differences of span 3 up to 7.
RINGS, SPACING, REACH, BIN, RADIAL, ANGLES = 8, 6.5, 105.0, 2.5, 65, 48
SEGMENTS = [(-1, 1), (2, 4), (-4, -2), (5, 7), (-7, -5)]
HALF_LIFE, DURATION, UPTAKE = 6586.2, 600.0, 3600.0
ROLES = {"EMISSION": "emission", "ATTENUATION": "attenuation", "ADDITIVE": "additive"}
F_MODEL = ("--phantom", "f-shape", "--attenuation", "--randoms", 0.3, "--counts", 1e6)


@pytest.fixture
def check(failures):
    return lambda ok, text: tools.check(ok, text, failures)


def simulate(folder, *options):
    """The truth; `small` unless the options name another scanner."""
    scanner = () if "--scanner" in options else ("--scanner", "small")
    tools.run("simulate", "pet", *scanner, *options, "-o", folder)
    return json.loads(h.read_file(os.path.join(folder, "truth.json")))


def planes_of(segments):
    """(z, rise) of each plane: ring pairs are listed one by one and put together by their sum."""
    found = []
    for first, last in segments:
        by_sum = {}
        for i in range(RINGS):
            for j in range(RINGS):
                if first <= i - j <= last:
                    by_sum.setdefault(i + j, []).append(i - j)
        mean = (first + last) / 2
        found += [((s - RINGS + 1) / 2 * SPACING, mean / 2 * SPACING) for s in sorted(by_sum)]
    return found


def rays():
    """Points in the middle and directions (to the first end, which lies on the ring), [plane][angle][radial][3]."""
    z, rise = np.array(planes_of(SEGMENTS)).T
    phi = np.arange(ANGLES) * math.pi / ANGLES
    r = (np.arange(RADIAL) - RADIAL // 2) * BIN
    shape = (len(z), ANGLES, RADIAL)
    along = np.broadcast_to(np.sqrt(REACH ** 2 - r ** 2), shape)
    c, s = np.cos(phi)[None, :, None], np.sin(phi)[None, :, None]
    middle = [np.broadcast_to(v, shape) for v in (r * c, r * s, z[:, None, None])]
    way = [np.broadcast_to(v, shape) for v in (-s * along, c * along, rise[:, None, None])]
    return np.stack(middle, -1), np.stack(way, -1)


def chord(s, middle, way):
    """Where rays enter and leave a shape, in parts of `way` from their middles; not beyond -1 and 1."""
    axes = [0, 1, 2] if s["kind"] == "ellipsoid" else [0, 1]
    o = (middle - s["center_mm"])[..., axes] / np.array(s["half_axes_mm"])[axes]
    d = way[..., axes] / np.array(s["half_axes_mm"])[axes]
    a, b, c = (d * d).sum(-1), (o * d).sum(-1), (o * o).sum(-1) - 1
    root = np.sqrt(np.maximum(b * b - a * c, 0))
    lo, hi = np.maximum((-b - root) / a, -1), np.minimum((-b + root) / a, 1)
    if s["kind"] == "cylinder":
        with np.errstate(divide="ignore"):
            t = [(s["center_mm"][2] + sign * s["half_axes_mm"][2] - middle[..., 2]) / way[..., 2] for sign in (-1, 1)]
        inside = np.abs(middle[..., 2] - s["center_mm"][2]) <= s["half_axes_mm"][2]
        flat = way[..., 2] == 0
        lo = np.where(flat, lo, np.maximum(lo, np.minimum(*t)))
        hi = np.where(flat, np.where(inside, hi, lo), np.minimum(hi, np.maximum(*t)))
    return lo, np.maximum(hi, lo)


def integral(shapes, key):
    """Sum of value times length in each shape, from end to end (t = -1 .. 1)."""
    middle, way = rays()
    total = np.zeros(middle.shape[:3])
    for s in shapes:
        lo, hi = chord(s, middle, way)
        total += s[key] * (hi - lo) * np.sqrt((way * way).sum(-1))
    return total


def read_interfile(folder, name):
    return in_order(np.fromfile(os.path.join(folder, name + ".s"), "<f4").reshape(len(planes_of(SEGMENTS)), ANGLES,
                                                                                  RADIAL))


def in_order(values):
    """Planes in the order of z: files begin with the ring furthest from the bed."""
    return along_z(values, [len(planes_of([s])) for s in SEGMENTS])


def test_every_bin_is_expected(folder, check):
    """Noise-free data in every bin; floats: 1e-6."""
    for phantom in ("cylinder", "nema-iq", "f-shape"):
        out = os.path.join(folder, "expected", phantom)
        truth = simulate(out, "--phantom", phantom, "--attenuation", "--randoms", 0.25, "--counts", 2e6, "--noise-free",
                         "--interfile")
        activity, mu = integral(truth["shapes"], "becquerel_per_ml"), integral(truth["attenuation_shapes"], "mu_per_mm")
        y, factors, b = (read_interfile(out, name) for name in ("emission", "attenuation", "additive"))
        expected = activity * np.exp(-mu)
        scale = 2e6 / expected.sum()
        off = np.abs(y - scale * expected - b).max() / y.max()
        check(off < 1e-6, f"{phantom}: emission is off by {off}")
        check(abs(scale / truth["scale"] - 1) < 1e-6, f"{phantom}: scale {truth['scale']}, not {scale}")
        off = np.abs(factors / np.exp(mu) - 1).max()
        check(off < 1e-6 and factors.min() == 1, f"{phantom}: attenuation is off by {off}, {factors.min()}")
        check(np.ptp(b) == 0 and abs(b.sum(dtype=float) / 5e5 - 1) < 1e-6,
              f"{phantom}: background {b.min()} to {b.max()}")
        check(abs(b[0, 0, 0] / truth["background"] - 1) < 1e-6 and truth["rays"] == b.size,
              f"{phantom}: background {truth['background']}")
        check(abs(y.sum(dtype=float) / 2.5e6 - 1) < 1e-6 and abs(truth["counts"] / 2.5e6 - 1) < 1e-6,
              f"{phantom}: {truth['counts']} counts")
        check(y.shape == (truth["planes"], truth["angles"], truth["radial"]), f"{phantom}: {y.shape}")
        check(sorted(os.listdir(out)) == ["additive.hs", "additive.s", "attenuation.hs", "attenuation.s", "emission.hs",
                                          "emission.s",
                                          "truth.json"], f"{phantom}: {os.listdir(out)}")
        plain = simulate(out + "-plain", "--phantom", phantom, "--noise-free", "--interfile", "--counts", 2e6)
        y = read_interfile(out + "-plain", "emission")
        off = np.abs(y - plain["scale"] * activity).max() / y.max()
        check(off < 1e-6, f"{phantom}: without attenuation emission is off by {off}")
        check(sorted(os.listdir(out + "-plain")) == ["emission.hs", "emission.s", "truth.json"],
              f"{phantom}: {os.listdir(out + '-plain')}")


def tof_integral(shapes, tof, middle, way):
    """For each TOF bin (first axis) and ray: value times the part of a Gaussian, cut at 4 sigma and normalised, inside
    the bin, integrated by Gauss and Legendre over each millimetre or less of the shape."""
    erf = np.vectorize(lambda x: math.erf(min(max(x, -4), 4) / math.sqrt(2)) / math.erf(4 / math.sqrt(2)))
    at, weight = np.polynomial.legendre.leggauss(48)
    edges = (np.arange(tof["bins"] + 1) - tof["bins"] / 2) * tof["width_mm"]
    total = np.zeros((tof["bins"], *middle.shape[:-1]))
    for s in shapes:
        lo, hi = (t * np.sqrt((way * way).sum(-1)) for t in chord(s, middle, way))
        t = (lo + hi)[..., None] / 2 + (hi - lo)[..., None] / 2 * at
        inside = erf((edges[:, None, None] - t) / tof["sigma_mm"]) / 2
        total += s["becquerel_per_ml"] * (hi - lo) / 2 * (np.diff(inside, axis=0) * weight).sum(-1)
    return total


def test_time_of_flight(folder, check):
    """Some bins of noise-free data with time of flight; the ball of the F is not in the middle of any ray."""
    out = os.path.join(folder, "tof")
    truth = simulate(out, "--phantom", "cylinder", "--radius", 60, "--length", 200, "--attenuation", "--randoms", 0.25,
                     "--counts", 2e6,
                     "--noise-free", "--interfile", "--tof", "11,120,200")
    tof = truth["tof"]
    check(abs(tof["width_mm"] - 120 * 0.149896229) < 1e-9
          and abs(tof["sigma_mm"] - 200 * 0.149896229 / 2.354820045) < 1e-8, f"{tof}")
    # the last TOF bin of a file is nearest to the first end of the ray (in STIR: the second)
    y, b = (in_order(np.fromfile(os.path.join(out, name), "<f4").reshape(11, -1, ANGLES, RADIAL))[::-1].reshape(11, -1)
            for name in ("emission.s", "additive.s"))
    factors = read_interfile(out, "attenuation").ravel()
    middle, way = (v.reshape(-1, 3) for v in rays())
    some = np.arange(0, len(middle), 173)
    expected = truth["scale"] * tof_integral(truth["shapes"], tof, middle[some], way[some]) / factors[some]
    off = np.abs(y[:, some] - b[:, some] - expected).max() / y.max()
    check(off < 1e-5, f"emission is off by {off}")
    check(np.ptp(b) == 0 and truth["rays"] == b.size and abs(b.sum(dtype=float) / 5e5 - 1) < 1e-6,
          f"background {b.min()} to {b.max()}")
    check(abs(y.sum(dtype=float) / 2.5e6 - 1) < 1e-6, f"{y.sum(dtype=float)} counts")
    # The ball of the F is at -x, +y: at 0 degrees rays run along +y, so the bins of its ray after the middle hold it.
    truth = simulate(out + "-f", "--phantom", "f-shape", "--counts", 1e6, "--noise-free", "--interfile", "--tof",
                     "11,120,200")
    y = in_order(np.fromfile(os.path.join(out + "-f", "emission.s"), "<f4").reshape(11, len(planes_of(SEGMENTS)),
                                                                                    ANGLES, RADIAL))[::-1]
    ball = truth["shapes"][4]["center_mm"]
    plane = int(round(ball[2] / (SPACING / 2))) + RINGS - 1
    found = y[:, plane, 0, int(round(ball[0] / BIN)) + RADIAL // 2].argmax()
    check(found == round(ball[1] / tof["width_mm"]) + 5, f"the ball at {ball} is in TOF bin {found}")


def rays_of_stir(header):
    """The rays of an Interfile header as STIR takes them (ProjDataInfoCylindrical::get_LOR, get_m; segment by segment,
    in the order of the file): middles, and directions to its p1, near which k > 0 is; in the patient of HFS, whose z is
    -z of STIR (DiscretisedDensity.inl)."""
    def of(key):
        return [float(v) for v in re.search(rf"^!?{re.escape(key)} := {{?(.*?)}}?$", header, re.M).group(1).split(",")]
    spacing, offset = 10 * of("Distance between rings (cm)")[0], of("View offset (degrees)")[0]
    radius = 10 * (of("Inner ring diameter (cm)")[0] / 2 + of("Average depth of interaction (cm)")[0])
    tangs, views = int(of("matrix size [1]")[0]), int(of("matrix size [2]")[0])
    phi = np.radians(offset + np.arange(views) * 180 / views)[None, :, None]
    s = ((np.arange(tangs) - tangs // 2) * 10 * of("effective central bin size (cm)")[0])[None, None, :]
    a, found = np.sqrt(radius**2 - s**2), []
    for planes, low, high in zip(of("matrix size [3]"), of("minimum ring difference per segment"),
                                 of("maximum ring difference per segment")):
        m = ((np.arange(planes) - (planes - 1) / 2) * spacing / (1 if low == high else 2))[:, None, None]
        rise = (low + high) / 2 * spacing / 2  # a tan theta
        p1, p2 = (np.stack(np.broadcast_arrays(s * np.cos(phi) + t * np.sin(phi), s * np.sin(phi) - t * np.cos(phi),
                                               -(m - t / a * rise)), -1) for t in (a, -a))
        found.append(((p1 + p2) / 2, (p1 - p2) / 2))
    return [np.concatenate(v).reshape(-1, 3) for v in zip(*found)]


def test_stir_finds_the_object(folder, check):
    """STIR finds each event of an object without symmetry where it is, by its own formulas; read again, the image has
    it there, too."""
    out = os.path.join(folder, "stir")
    truth = simulate(out, "--phantom", "f-shape", "--counts", 1e6, "--noise-free", "--interfile", "--tof", "11,120,200")
    header = h.read_file(os.path.join(out, "emission.hs"))
    check("TOF bin order := { -5,-4,-3,-2,-1,0,1,2,3,4,5}" in header and "first ring" not in header,
          "the order of STIR")
    middle, way = rays_of_stir(header)
    y = np.fromfile(os.path.join(out, "emission.s"), "<f4").reshape(11, -1)
    some = np.arange(0, len(middle), 61 if h.TIER == 2 else 487)
    off = np.abs(y[:, some] - truth["scale"] * tof_integral(truth["shapes"], truth["tof"], middle[some],
                                                            way[some])).max() / y.max()
    check(off < 1e-4, f"by STIR's formulas: emission is off by {off}")
    image = os.path.join(folder, "stir-image")
    series = reconstruct(image, os.path.join(out, "emission.hs"), settings=("iterations=8", "matrix=48"))
    ball = np.array(truth["shapes"][4]["patient_mm"])
    places, values, found = series.places(), series.values, {}
    for mirror in ((1, 1, 1), (-1, 1, 1), (1, -1, 1), (1, 1, -1)):
        near = np.linalg.norm(places - ball * mirror, axis=-1) < 12
        found[mirror] = values[near].sum()
    check(max(v for k, v in found.items() if k != (1, 1, 1)) < 0.4 * found[1, 1, 1],
          f"the ball at {ball}, and its mirror images: {found}")
    near = np.linalg.norm(places - ball, axis=-1) < 12
    centre = (places[near] * values[near][:, None]).sum(0) / values[near].sum()
    check(np.abs(centre - ball).max() < 1, f"the ball at {ball} is at {centre}")


def test_noise(folder, check):
    quiet = os.path.join(folder, "quiet")
    simulate(quiet, *F_MODEL, "--noise-free", "--interfile")
    mean = read_interfile(quiet, "emission").astype(float)
    for seed in (1, 2):
        out = os.path.join(folder, f"noisy{seed}")
        truth = simulate(out, *F_MODEL, "--seed", seed, "--interfile")
        y = read_interfile(out, "emission").astype(float)
        check((y == np.round(y)).all() and y.min() >= 0, f"seed {seed}: no counts")
        check(abs(y.sum() - 1.3e6) < 5 * math.sqrt(1.3e6) and truth["counts"] == y.sum(),
              f"seed {seed}: {y.sum()} counts")
        deviation = ((y - mean) ** 2 / mean).mean()  # 1 in each bin, with a variance of 2 + 1/mean
        check(abs(deviation - 1) < 5 * math.sqrt((2 + 1 / mean).mean() / y.size),
              f"seed {seed}: variance {deviation} times the mean")
        near = np.corrcoef((y - mean)[..., 1:].ravel(), (y - mean)[..., :-1].ravel())[0, 1]
        check(abs(near) < 5 / math.sqrt(y.size), f"seed {seed}: neighbours go together, {near}")


def value(ds, element):
    """Of the private block, as bytes or number."""
    block = ds.private_block(0x0071, "TOMONODE SINOGRAM 1")
    return block[element].value


def read_objects(folder):
    sets = [pydicom.dcmread(path) for path in sorted(glob.glob(os.path.join(folder, "*.dcm")))]
    return {value(ds, 0x03): ds for ds in sets}


def test_objects(folder, check):
    out, plain = os.path.join(folder, "parent", "objects"), os.path.join(folder, "plain")
    truth = simulate(out, *F_MODEL, "--position", "FFP")
    simulate(plain, *F_MODEL, "--interfile", "--position", "FFP")
    sets = read_objects(out)
    check(sorted(sets) == sorted(ROLES) and len(os.listdir(out)) == 4, f"roles {sorted(sets)}, files {os.listdir(out)}")
    for role, name in ROLES.items():
        ds = sets[role]
        data = h.read_file(os.path.join(plain, name + ".s"), "rb")
        text = h.read_file(os.path.join(plain, name + ".hs"))
        check(value(ds, 0x10)[:len(data)] == data and value(ds, 0x13) == len(data),
              f"{role}: other data than --interfile")
        check(value(ds, 0x14) == hashlib.sha256(data).hexdigest(), f"{role}: {value(ds, 0x14)}")
        check(value(ds, 0x02).strip() == text.strip(), f"{role}: another header than --interfile")
        check((value(ds, 0x11), value(ds, 0x12), value(ds, 0x15)) == (0, 1, 3), f"{role}: chunks")
        check(ds.SOPClassUID == "1.2.840.10008.5.1.4.1.1.66" and ds.Modality == "PT", f"{role}: {ds.SOPClassUID}")
        check(ds.StudyInstanceUID == truth["study"] and ds.FrameOfReferenceUID == truth["frame_of_reference"],
              f"{role}: UIDs")
        check(ds.Manufacturer == "tomonode" and ds.ManufacturerModelName == "small", f"{role}: {ds.Manufacturer}")
        check(ds.PatientName == "TOMONODE^PHANTOM", f"{role}: {ds.PatientName}")
    check(len({ds.SOPInstanceUID for ds in sets.values()}) == 3, "SOP Instance UIDs")
    check(len({ds.SeriesInstanceUID for ds in sets.values()}) == 1, "Series Instance UIDs")
    ds = sets["EMISSION"]
    check(list(ds.CorrectedImage) == ["NORM", "DTIM", "SCAT"], f"{ds.CorrectedImage}")
    check((ds.AcquisitionDate, ds.AcquisitionTime) == ("20260601", "101500") == (truth["date"], truth["start"]),
          "start")
    check(ds.ActualFrameDuration == 600000 and truth["duration_s"] == DURATION, "duration")
    check(position_of(ds) == "FFP", f"position {position_of(ds)}")
    for path in glob.glob(os.path.join(out, "*.dcm")):
        errors = [line for line in tools.validator(path) if "Error -" in line]
        check(not errors, f"{os.path.basename(path)}: {errors}")
    simulate(os.path.join(folder, "bare"), "--phantom", "cylinder", "--counts", 1000)
    bare = read_objects(os.path.join(folder, "bare"))
    check(list(bare) == ["EMISSION"], f"without attenuation and randoms: {list(bare)}")
    check(list(bare["EMISSION"].CorrectedImage) == ["NORM", "DTIM", "SCAT", "ATTN", "RAN"],
          f"{bare['EMISSION'].CorrectedImage}")


def position_of(ds):
    """From the code sequences (0054,0410), (0054,0412), (0054,0414), or (0018,5100)."""
    if "PatientPosition" in ds:
        return ds.PatientPosition
    head = {"102540001": "HF", "102541002": "FF", "F-10470": "HF", "F-10480": "FF"}
    lie = {"40199007": "S", "1240000": "P", "102535000": "DR", "102536004": "DL", "F-10340": "S", "F-10310": "P"}
    return (head[ds.PatientGantryRelationshipCodeSequence[0].CodeValue]
            + lie[ds.PatientOrientationCodeSequence[0].PatientOrientationModifierCodeSequence[0].CodeValue])


def test_quantities(folder, check):
    """Activity, dose, weight and calibration of the cylinder, worked out by hand; SUV 1."""
    out = os.path.join(folder, "cylinder")
    truth = simulate(out, "--phantom", "cylinder", "--radius", 60, "--length", 90, "--counts", 1e6, "--noise-free")
    ds = read_objects(out)["EMISSION"]
    millilitres = math.pi * 3600 * 90 / 1000
    item = ds.RadiopharmaceuticalInformationSequence[0]
    check(truth["size"] == 1 and abs(truth["becquerel"] / (1e4 * millilitres) - 1) < 1e-12, f"{truth['becquerel']} Bq")
    dose = 1e4 * millilitres * 2 ** (UPTAKE / HALF_LIFE)
    check(abs(float(item.RadionuclideTotalDose) / dose - 1) < 1e-9, f"dose {item.RadionuclideTotalDose}")
    check(abs(float(item.RadionuclideHalfLife) - HALF_LIFE) < 1e-9, f"half-life {item.RadionuclideHalfLife}")
    check(item.RadiopharmaceuticalStartTime == "091500" == truth["injected"], f"{item.RadiopharmaceuticalStartTime}")
    check(abs(float(ds.PatientWeight) / (millilitres / 1000) - 1) < 1e-9, f"weight {ds.PatientWeight}")
    codes = [item.RadionuclideCodeSequence[0].CodeValue, item.RadiopharmaceuticalCodeSequence[0].CodeValue]
    check(codes == ["77004003", "35321007"], f"codes {codes}")
    suv = 1e4 * float(ds.PatientWeight) * 1000 / (float(item.RadionuclideTotalDose) / 2 ** (UPTAKE / HALF_LIFE))
    check(abs(suv - 1) < 1e-8, f"SUV {suv}")
    # x of a perfect reconstruction is scale * concentration; the factor leads to the mean over the scan.
    rate = math.log(2) / HALF_LIFE * DURATION
    mean = truth["scale"] * 1e4 / DURATION * float(ds.DoseCalibrationFactor)
    check(abs(mean / (1e4 * (1 - math.exp(-rate)) / rate) - 1) < 1e-8, f"mean concentration {mean}")


def test_positions(folder, check):
    """Where the ball of the F lies in the patient; it is at (-x, +y, +z) of the scanner."""
    where = {"HFS": "RPH", "HFP": "LAH", "FFS": "LPF", "FFP": "RAF", "HFDR": "ARH", "HFDL": "PLH", "FFDR": "PRF",
             "FFDL": "ALF"}
    for position, letters in where.items():
        truth = simulate(os.path.join(folder, position), "--phantom", "f-shape", "--counts", 100, "--interfile",
                         "--position", position)
        ball = truth["shapes"][4]
        x, y, z = ball["center_mm"]
        check(x < 0 < y and z > 0 and ball["becquerel_per_ml"] == 20000, f"{position}: {ball}")
        expected = sum(abs(v) * np.array(tools.DIRECTION[letter]) for v, letter in zip((x, y, z), letters))
        check(np.allclose(ball["patient_mm"], expected, atol=1e-9), f"{position}: {ball['patient_mm']}, not {expected}")


def content(folder):
    found = {}
    for path in glob.glob(os.path.join(folder, "*")):
        found[os.path.basename(path)] = h.read_file(path, "rb")
    return found


def test_same_options_same_bytes(folder, check):
    first = simulate(os.path.join(folder, "1"), *F_MODEL)
    simulate(os.path.join(folder, "2"), *F_MODEL)
    one, two = content(os.path.join(folder, "1")), content(os.path.join(folder, "2"))
    check(len(one) == 4 and one == two, f"the same options give other bytes: {sorted(one)}, {sorted(two)}")
    for option in (("--seed", 2), ("--counts", 2e6), ("--noise-free",), ("--position", "HFP"), ("--size", 0.5),
                   ("--randoms", 0.5), ("--tof", "11,120,200")):
        other = simulate(os.path.join(folder, option[0]), *F_MODEL, *option)
        check(other["study"] != first["study"], f"{option}: the same UID")
        a = {ds.SOPInstanceUID for ds in read_objects(os.path.join(folder, option[0])).values()}
        b = {ds.SOPInstanceUID for ds in read_objects(os.path.join(folder, "1")).values()}
        check(not a & b, f"{option}: the same SOP Instance UID")
    study = "1.2.826.0.1.3680043.2.1125.8"
    truth = simulate(os.path.join(folder, "study"), *F_MODEL, "--study", study)
    sets = read_objects(os.path.join(folder, "study")).values()
    check(truth["study"] == study and all(ds.StudyInstanceUID == study for ds in sets), "--study")
    root = os.environ.get("TOMONODE_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    with open(os.path.join(root, "docs", "pet-geometry.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| (`.*?) \|", f.read().split("### truth.json")[1], re.M)
    documented = re.findall(r"`(\w+)`", " ".join(rows))
    missing = [k for k in [*first, *first["shapes"][0], *first["attenuation_shapes"][0]] if k not in documented]
    check(not missing, f"docs/pet-geometry.md lacks {missing}")


@pytest.mark.tier2("an object of 204 MB")
def test_a_whole_michelogram(folder, check):
    """Of GE."""
    out = os.path.join(folder, "ge")
    truth = simulate(out, "--scanner", "ge-discovery-ste", "--phantom", "cylinder", "--counts", 1e6, "--interfile")
    y = np.fromfile(os.path.join(out, "emission.s"), "<f4").reshape(553, 280, 329)
    check((truth["planes"], truth["angles"], truth["radial"], truth["size"]) == (553, 280, 329, 1),
          f"GE: {truth['planes']} planes")
    check(y.sum(dtype=float) == truth["counts"] and abs(truth["counts"] - 1e6) < 5000, f"GE: {truth['counts']} counts")
    # 100 mm of radius are 42 bins of 2.397 mm on each side of the middle one.
    check(y[:, :, :122].max() == 0 and y[:, :, 207:].max() == 0 and y[:, :, 123:206].max() > 0,
          "GE: counts beside the cylinder")
    check(truth["rays"] == 553 * 280 * 329, f"GE: {truth['rays']} rays")


def test_a_scanner_of_the_operator(folder, check):
    config = os.path.join(folder, "conf")
    with open(config, "w", encoding="ascii") as f:
        f.write('scanners = ( { name = "own"; manufacturer = "Nobody*"; model = "One"; rings = 3; ring_spacing = 4.0; '
                'radius = 200.0;'
                ' detectors = 300; bin = 4.0; radial = 81; angles = 20; span = 1; max_difference = 2; } );\n')
    out = os.path.join(folder, "own")
    truth = simulate(out, "--scanner", "own", "-c", config, "--phantom", "cylinder", "--counts", 1000)
    ds = read_objects(out)["EMISSION"]
    check(truth["planes"] == 9 and (ds.Manufacturer, ds.ManufacturerModelName) == ("Nobody", "One"),
          f"own: {truth['planes']} planes")


def test_tof_of_the_scanner(folder, check):
    """A scanner with TOF bins is simulated with them, many of them added; --tof replaces them or leaves them out."""
    config, out = os.path.join(folder, "tof.conf"), os.path.join(folder, "tof-of")
    scanners = ((351, 4, (39, 36)), (11, 120, (11, 120)))
    for bins, width, expected in scanners if h.TIER == 2 else scanners[:1]:
        with open(config, "w", encoding="ascii") as f:
            f.write('scanners = ( '
                    f'{{ name = "small"; tof_bins = {bins}; tof_width = {width}.0; tof_resolution = 200.0; }} );\n')
        own = ("-c", config, "--phantom", "cylinder", "--radius", 40, "--length", 40, "--counts", 1000)
        tof = simulate(out, *own)["tof"]
        check((tof["bins"], tof["width_ps"], tof["resolution_ps"]) == (*expected, 200),
              f"TOF bins of the scanner: {tof}")
        check(simulate(out, *own, "--tof", "off")["tof"] is None, "--tof off: simulated with time of flight")
        check(simulate(out, *own, "--tof", "13,120,300")["tof"]["bins"] == 13, "--tof: other bins")
    check(simulate(out, "--counts", 1000)["tof"] is None, "a scanner without TOF bins has some")


def test_bad_options_are_refused(folder, check):
    """Wrong usage: exit code 2, a sentence that names the option or the value, and no folder."""
    out = os.path.join(folder, "none")
    for options, part in ((("--phantom", "cat"), "phantom"), (("--counts", "0"), "counts"),
                          (("--counts", "nan"), "counts"),
                          (("--counts", "1e13"), "counts"), (("--randoms", "-1"), "randoms"),
                          (("--randoms", "x"), "randoms"),
                          (("--seed", "-1"), "seed"), (("--position", "XYZ"), "'XYZ'; allowed: HFS"),
                          (("--position", "HFSHFSHFS"), "position"),
                          (("--radius", "0"), "radius"), (("--radius", "10"), "--phantom cylinder"),
                          (("--size", "0"), "size"),
                          (("--length", "inf", "--phantom", "cylinder"), "length"), (("--study", "a.b"), "study"),
                          (("--tof", "11"), "tof"), (("--tof", "0,120,200"), "tof"), (("--tof", "11,120,200,1"), "tof"),
                          (("--tof", "11,-1,200"), "TOF bins of -0.149896 mm"),
                          (("--tof", "5,120,200"), "their width is wrong"),
                          (("--size", "1"), "extends to 147 mm"), (("something",), "something"),
                          (("--voxels",), "voxels")):
        done = tools.run("simulate", "pet", "--scanner", "small", *options, "-o", out, ok=(2,))
        check(part in done.stderr and not os.path.exists(out), f"{options}: {done.stderr}")
    done = tools.run("simulate", "pet", ok=(2,))
    check("-o DIR" in done.stderr, done.stderr)
    done = tools.run("simulate", "pet", "--scanner", "nobody", "-o", out, ok=(8,))
    check("nobody" in done.stderr and "ge-discovery-ste" in done.stderr, done.stderr)
    done = tools.run("simulate", "-o", out, "pet", ok=(2,))
    check("pet" in done.stderr and "first" in done.stderr, done.stderr)
    file = os.path.join(folder, "file")
    with open(file, "w", encoding="ascii"):
        pass
    for path in (file, os.path.join(file, "exam"), os.path.join(folder, "n" * 5000)):
        done = tools.run("simulate", "pet", "--scanner", "small", "-o", path, ok=(1,))
        check("folder" in done.stderr, f"-o {path[:80]}: {done.stderr}")
    done = tools.run("simulate", "pet", "--help")
    check("--attenuation" in done.stdout and "Exit codes" in done.stdout, done.stdout)
    done = json.loads(tools.run("simulate", "pet", "--json", "--scanner", "small", "-o", out).stdout)
    check(done["ok"] and done["files"] == 1 and done["bins"] == 47 * ANGLES * RADIAL and done["size"] < 1,
          f"--json: {done}")
