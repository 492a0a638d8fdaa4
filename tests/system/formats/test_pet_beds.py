# SPDX-License-Identifier: Apache-2.0
"""Bed positions of one acquisition (`simulate pet --beds`, `import --bed`): joined to one whole-body series without a
step, in the activity of one time, with the attributes of the standard; noise in the overlap is lower; through a node in
any order; what does not fit together is refused, or held until it is complete."""
import glob
import json
import os
import shutil

import numpy as np
import pydicom
import pytest

from tools import node_harness as h
from tools import pet_tools as pet
from tools.ct_writer import write_ct
from tools.edits import edited
from tools.mmr_recon import conforms
from tools.node_harness import check

h.need(h.TOMONODE, "storescp", "echoscu", "dcmsend", "dciodvfy")

# of the scanner `small`: mm, of a bed; s, s from one bed to the next
SLICE, SLICES, HALF_LIFE, BED = 3.25, 15, 6586.2, 630
STEP = 10 * SLICE
FEW = ("iterations=20", "matrix=40", "postfilter=0")
CYLINDER = ("--phantom", "cylinder", "--radius", "60", "--length", "400", "--attenuation")
BLOCK = "TOMONODE SINOGRAM 1"


def beds(folder, *options, n=3, step=STEP):
    return pet.simulate(folder, "--beds", f"{n},{step}", *options)


def inside(series, radius=45):
    """[slice, voxel]: the values within a radius of the axis."""
    places = series.places()[0]
    return series.values[:, np.hypot(places[..., 0], places[..., 1]) < radius]


def decay_factor(bed):
    rate = np.log(2) / HALF_LIFE
    return np.exp(rate * BED * bed) * rate * 600 / -np.expm1(-rate * 600)


def test_uniform(folder):
    """A long cylinder without noise, 30 minutes for three beds: every slice has the activity at the start, also between
    the beds."""
    truth = beds(os.path.join(folder, "exam"), *CYLINDER, "--noise-free")
    check([b["start_s"] for b in truth["beds"]] == [0, BED, 2 * BED]
          and [b["along_mm"] for b in truth["beds"]] == [-STEP, 0, STEP], truth["beds"])
    series = pet.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"), settings=FEW)
    mean = inside(series).mean(1)
    print("mean of each slice / true activity:", np.round(mean / 10000, 4))
    check(len(mean) == SLICES + 20 and abs(mean / 10000 - 1).max() < 0.02, f"{mean}")
    check(abs(mean[5:-5] / mean[5:-5].mean() - 1).max() < 0.004, f"{mean}: a step")
    alone = one_bed(folder, truth)
    check(abs(mean[10:25] / inside(alone).mean(1) - 1).max() < 0.004, "the middle bed alone has other values")
    attributes(series)


def one_bed(folder, truth, settings=FEW):
    """The middle bed as an acquisition of its own: its values, at the time of the first bed."""
    one = os.path.join(folder, "one")
    os.makedirs(one)
    for role in ("emission", "attenuation"):
        d = pydicom.dcmread(os.path.join(folder, "exam", f"{role}-bed002.dcm"))
        block = d.private_block(0x0071, BLOCK)
        for element in (0x23, 0x24, 0x25, 0x26):
            del block[element]
        block[0x15].value = 2
        d.save_as(os.path.join(one, role + ".dcm"))
    series = pet.reconstruct(os.path.join(folder, "alone"), one, settings=settings)
    check(series.objects[0].SeriesType == ["STATIC", "IMAGE"], series.objects[0].SeriesType)
    series.values *= 2 ** (truth["beds"][1]["start_s"] / HALF_LIFE)
    return series


def attributes(series):
    """One series from the head down; each slice has the times of its bed."""
    starts = ("101500", "102530", "103600")
    seen = []
    for i, d in enumerate(series.objects):
        check(list(d.SeriesType) == ["WHOLE BODY", "IMAGE"] and int(d.NumberOfSlices) == len(series.objects),
              d.SeriesType)
        check("NumberOfTimeSlices" not in d and int(d.ImageIndex) == int(d.InstanceNumber) == i + 1, d.ImageIndex)
        check(np.allclose(d.ImagePositionPatient[2], (len(series.objects) - 1) / 2 * SLICE - i * SLICE),
              d.ImagePositionPatient)
        bed = starts.index(d.AcquisitionTime)
        seen.append(bed + 1)
        check((d.SeriesTime, d.DecayCorrection, d.Units, int(d.ActualFrameDuration)) == ("101500", "START", "BQML",
                                                                                         600000), d.Units)
        check(abs(float(d.DecayFactor) / decay_factor(bed) - 1) < 1e-6, f"{d.DecayFactor}, bed {bed + 1}")
        middle = 1000 * (BED * bed + np.log(decay_factor(0)) * HALF_LIFE / np.log(2))
        check(abs(float(d.FrameReferenceTime) - middle) < 0.01, f"{d.FrameReferenceTime}, not {middle}")
    check(sorted(seen, reverse=True) == seen and all(9 < seen.count(k) < 14 for k in (1, 2, 3)),
          f"the bed of each slice: {seen}")
    check("3 beds joined, centres of the scanner at -32.5, 0, 32.5 mm" in series.objects[0].DerivationDescription,
          series.objects[0].DerivationDescription)
    check(len({d.SeriesInstanceUID for d in series.objects}) == 1, "one series")
    for d in series.objects[::17]:
        conforms(d)
    suv = inside(series).mean() * pet.suv_factor(series.objects[len(series.objects) // 2])
    check(abs(suv - 1) < 0.01, f"SUV {suv} of a uniform cylinder")  # its weight and dose are those of the phantom
    p = pet.run("measure", "--json", "--circle", "0,0,0,80,middle", "--circle", "0,0,16.25,80,overlap", *series.paths)
    for region in json.loads(p.stdout)["regions"]:
        check(abs(region["suv_mean"] - 1) < 0.01 and abs(region["mean"] - 10000) < 100, region)


@pytest.mark.tier2("statistics")
def test_noise(folder):
    """The noise of slices in the overlap is lower than in the same slices of one bed; it is not higher anywhere."""
    truth = beds(os.path.join(folder, "exam"), *CYLINDER, "--counts", "2e6")
    settings = ("iterations=6", "matrix=40", "postfilter=0")
    series = pet.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"), settings=settings)
    alone = one_bed(folder, truth, settings)
    joint, single = (inside(s).std(1) / inside(s).mean(1) for s in (series, alone))
    joint = joint[10:25]
    print("noise of the middle bed, joint and alone:", np.round(joint, 3), np.round(single, 3), "of", truth["counts"],
          "counts")
    for ends in (slice(0, 5), slice(10, 15)):
        check(joint[ends].mean() < 0.8 * single[ends].mean(), f"{joint[ends]}: not lower than {single[ends]}")
    check(np.allclose(joint[6:9], single[6:9], rtol=0.02), "slices of one bed only have another noise")


def test_shapes(folder):
    """An F in three beds, whose distance is not whole slices: values of the F where it is, in two positions of the
    patient."""
    ways = (("FFP", 9.4 * SLICE), ("HFS", STEP))
    for position, step in ways if h.TIER == 2 else ways[:1]:
        exam, out = (os.path.join(folder, f"{what}-{position}") for what in ("exam", "out"))
        truth = beds(exam, "--phantom", "f-shape", "--attenuation", "--noise-free", "--position", position, step=step)
        series = pet.reconstruct(out, exam, settings=("iterations=20", "matrix=64", "postfilter=0"))
        wanted = pet.truth_values(truth, series.places())
        core = wanted.copy()
        for axis in (1, 2):
            core = np.minimum(core, np.minimum(np.roll(wanted, 2, axis), np.roll(wanted, -2, axis)))
        hot, cold = core > 5000, wanted == 0
        ratio = series.values[hot].mean() / wanted[hot].mean()
        together = np.corrcoef(series.values.ravel(), wanted.ravel())[0, 1]
        print(f"{position}: mean of the F {ratio:.3f} of the truth, correlation {together:.4f}, outside "
              f"{series.values[cold].mean():.1f} Bq/ml")
        check(abs(ratio - 1) < 0.08 and together > 0.9, f"{ratio} {together}")
        text = series.objects[0].DerivationDescription
        check(("interpolated linearly" in text) == (position == "FFP"), text)
        picture(folder, position, series)


def picture(folder, position, series):
    """The coronal slice through the F as a picture: as wide as the volume, as high as the beds."""
    path = os.path.join(folder, f"coronal-{position}.png")
    h.run(h.TOMONODE, "export", "--plane", "coronal", "-o", path, *series.paths)
    check(os.path.getsize(path) > 500, path)


def test_attenuation_from_ct(folder):
    """Without attenuation factors, but with a CT of the whole body: each bed is corrected at its own position. The
    water ends inside of the outer beds, so that factors of another place would be wrong."""
    exam, bare = os.path.join(folder, "exam"), os.path.join(folder, "bare")
    truth = beds(exam, "--phantom", "cylinder", "--radius", "60", "--length", "80", "--attenuation", "--noise-free")
    settings = ("iterations=10", "matrix=40", "postfilter=6")
    ready = pet.reconstruct(os.path.join(folder, "ready"), exam, settings=settings)
    os.makedirs(bare)
    for path in glob.glob(os.path.join(exam, "emission*.dcm")):
        d = pydicom.dcmread(path)
        d.private_block(0x0071, BLOCK)[0x15].value = 3
        d.save_as(os.path.join(bare, os.path.basename(path)))
    (body,), spacing, n = truth["attenuation_shapes"], (2.0, 2.0, 2.0), (80, 80, 90)
    z, y, x = np.meshgrid(*((np.arange(m) - (m - 1) / 2) * 2.0 for m in n[::-1]), indexing="ij")
    water = (np.hypot(x, y) < body["half_axes_mm"][0]) & (np.abs(z) < body["half_axes_mm"][2])
    ct = write_ct(os.path.join(folder, "ct"), np.where(water, 0, -1000), spacing, [-(m - 1.0) for m in n],
                  frame_of_reference=truth["frame_of_reference"], study=truth["study"])
    made = pet.reconstruct(os.path.join(folder, "made"), bare, *ct, settings=(*settings, "corrections=attenuation"))
    check("ATTN" in made.objects[0].CorrectedImage and made.objects[0].Units == "BQML", made.objects[0].CorrectedImage)
    check("is taken as the origin" not in made.objects[0].DerivationDescription, made.objects[0].DerivationDescription)
    both = [inside(s, 40).mean(1) for s in (made, ready)]
    whole = both[1] > 9500
    print("with factors from CT / ready-made:", np.round(both[0][whole] / both[1][whole], 4))
    check(whole.sum() > 20 and abs(both[0] / both[1] - 1)[whole].max() < 0.015, f"{both}")


def send(node, files):
    h.run("dcmsend", "-nuc", "-aet", "SCANNER", "-aec", "TOMONODE", "127.0.0.1", node.port, *files)


def started(folder, things):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, quiet_time=1)
    things += [n, pacs]
    n.more_protocols = ', { name = "quick-pet"; kind = "pet"; algorithm = "mlem"; iterations = 4; matrix = 32; }'
    n.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "quick-pet" ]; destinations = [ "pacs" ]; }'
    n.write_conf()
    pacs.start()
    n.start()
    return n, pacs


def test_the_node_joins_beds(folder, things):
    """A bed that is missing: held, with the count, until it comes, in any order; one series arrives. Two beds with one
    number: held."""
    n, pacs = started(folder, things)
    beds(os.path.join(folder, "exam"), "--phantom", "cylinder", "--radius", "60", "--attenuation", "--counts", "2e6")
    files = sorted(glob.glob(os.path.join(folder, "exam", "*.dcm")), reverse=True)
    late = [f for f in files if "bed002" in f]
    send(n, [f for f in files if f not in late])
    job, = n.wait_states("held")
    check("4 of 6 instances" in job["reason"], job)
    send(n, late)
    n.wait_states("delivered", seconds=120)
    objects = [pydicom.dcmread(p) for p in pacs.files()]
    check(len(objects) == SLICES + 20 and {tuple(d.SeriesType) for d in objects} == {("WHOLE BODY", "IMAGE")},
          f"{len(objects)} objects")
    twice = os.path.join(folder, "twice")
    os.makedirs(twice)
    for path in files:
        d = pydicom.dcmread(path)
        d.SeriesInstanceUID += ".2"
        d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = d.SOPInstanceUID[:60] + ".2"
        block = d.private_block(0x0071, BLOCK)
        if block[0x23].value == 3:
            block[0x23].value, block[0x25].value, block[0x16].value = 2, BED * 1000, [0, 0, 0]
        d.save_as(os.path.join(twice, os.path.basename(path)))
    send(n, glob.glob(os.path.join(twice, "*.dcm")))
    held, = (job for job in n.wait_states("delivered", "held", seconds=120) if job["state"] == "held")
    check("role EMISSION of bed 2 has" in held["reason"] and "with another SHA-256" in held["reason"], held)


def test_refused(folder):
    exam = os.path.join(folder, "exam")
    beds(exam, "--phantom", "cylinder", "--radius", "60", "--attenuation", "--counts", "1e6")

    def changed(name, change):
        path = os.path.join(exam, name)
        return [edited(path, os.path.join(folder, "bad.dcm"), change),
                *(p for p in glob.glob(os.path.join(exam, "*.dcm")) if p != path)]

    def element(number, value, vr="UL"):
        def change(d):
            block = d.private_block(0x0071, BLOCK)
            if number in block:
                del block[number]
            block.add_new(number, vr, value)
        return change

    def drug(keyword, value):
        return lambda d: setattr(d.RadiopharmaceuticalInformationSequence[0], keyword, value)

    def missing(number):
        def change(d):
            del d.private_block(0x0071, BLOCK)[number]
        return change

    def no_bed(d):
        for number in (0x23, 0x24, 0x25, 0x26):
            missing(number)(d)

    def framed(d):
        no_bed(d)
        for number, value in ((0x19, 1), (0x1A, 1), (0x1B, 0), (0x1C, 600000)):
            element(number, value)(d)

    second = "emission-bed002.dcm"
    cases = (
        (second, element(0x23, 3), "bed 3 is "),
        (second, element(0x23, 4), "bed (0071,1023) is 4; allowed: 1 to 3"),
        (second, element(0x24, 4), " beds, other objects "),
        (second, element(0x24, 65), "number of beds (0071,1024) is 65; allowed: 1 to 64"),
        (second, element(0x25, 599999), "bed 2 is "),
        (second, element(0x26, 0), "duration of the bed (0071,1026) is 0"),
        (second, element(0x16, [1.0, 0.0, 0.0], "FD"), "in other objects at"),
        (second, missing(0x16), "the position of bed 2 is missing, the scanner's centre (0071,1016)"),
        (second, no_bed, "EMISSION is in objects with a bed and in objects without one"),
        (second, framed, "objects with a time frame and objects with a bed"),
        (second, element(0x19, 1), "number of time frames (0071,101A) is missing"),
        (second, drug("RadionuclideHalfLife", 4062.6), "bed 2 has the half-life, s, 4062.6, bed 1 6586.2"),
        (second, drug("RadionuclideTotalDose", 1.0), "bed 2 has the dose, Bq, 1, bed 1 "),
        (second, lambda d: setattr(d, "PatientPosition", "HFP"), "bed 2 has the patient's position HFP, bed 1 HFS"),
        (second, lambda d: setattr(d, "AcquisitionTime", "101501"),
         "bed 2 has the start of the acquisition 101501, bed 1 101500"),
        (second, lambda d: setattr(d, "CorrectedImage", ["NORM"]),
         "bed 2 has the Corrected Image (0028,0051) NORM, bed 1 "),
        ("attenuation-bed002.dcm", no_bed, "ATTENUATION is in objects with a bed and in objects without one"),
    )
    for name, change, part in cases:
        p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "-o", os.path.join(folder, "no"), *changed(name, change),
                  code=4)
        check(part in p.stderr, f"'{p.stderr}' does not contain '{part}'")
    p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "-o", os.path.join(folder, "no"),
              *[f for f in glob.glob(os.path.join(exam, "*.dcm")) if "bed003" not in f], code=4)
    check("bed 3 of 3 is missing" in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "export", "-o", os.path.join(folder, "x.hs"), *glob.glob(os.path.join(exam, "*.dcm")), code=4)
    check("3 beds, which are not exported" in p.stderr, p.stderr)
    p = h.run(h.TOMONODE, "export", "-o", os.path.join(folder, "x.petsird"), *glob.glob(os.path.join(exam, "*.dcm")),
              code=4)
    check("the acquisition has 3 beds; a PETSIRD file has one" in p.stderr, p.stderr)
    places(folder)


def places(folder):
    """Positions that cannot be joined: a gap, another x."""
    exam = os.path.join(folder, "gap")
    beds(exam, "--phantom", "cylinder", "--radius", "60", "--counts", "1e6", step=16 * SLICE)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "-o", os.path.join(folder, "no"), exam, code=4)
    check("beds 1 and 2 leave a gap of 3.25 mm: their centres are 52 mm apart, and the volume of a bed has a length of "
          "48.75 mm" in p.stderr, p.stderr)
    for path in glob.glob(os.path.join(exam, "*bed002.dcm")):
        d = pydicom.dcmread(path)
        d.private_block(0x0071, BLOCK)[0x16].value = [-3.0, 0.0, 0.0]
        d.save_as(path)
    p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "-o", os.path.join(folder, "no"), exam, code=4)
    check("bed 2 is -3 mm to the right of bed 1 and 0 mm below it" in p.stderr, p.stderr)


def test_imported(folder):
    """`import --bed` of the Interfile of a simulation makes the objects that the simulation makes; what does not fit is
    refused."""
    exam, scan, out = (os.path.join(folder, name) for name in ("exam", "scan", "out"))
    options = ("--phantom", "cylinder", "--radius", "60", "--attenuation", "--randoms", "0.2", "--counts", "1e6")
    truth = beds(exam, *options)
    beds(scan, *options, "--interfile")
    given = []
    for b in (1, 2, 3):
        roles = "".join(f",{role}={scan}/{role}-bed{b:03}.hs" for role in ("attenuation", "additive"))
        given += ["--bed", f"{scan}/emission-bed{b:03}.hs,z={truth['beds'][b - 1]['patient_z_mm']}{roles}"]
    h.run(h.TOMONODE, "import", *given, "--like", os.path.join(exam, "emission-bed001.dcm"), "-o", out)
    found, wanted = ({os.path.basename(p): pydicom.dcmread(p) for p in glob.glob(os.path.join(f, "*.dcm"))}
                     for f in (out, exam))
    check(sorted(found) == sorted(wanted) and len(found) == 9, sorted(found))
    for name, d in found.items():
        blocks = [x.private_block(0x0071, BLOCK) for x in (d, wanted[name])]
        for number in (0x03, 0x10, 0x14, 0x15, 0x16, 0x23, 0x24, 0x25, 0x26):
            check(blocks[0][number].value == blocks[1][number].value,
                  f"{name}: ({number:02X}) {blocks[0][number].value}")
    check(len({d.SeriesInstanceUID for d in found.values()}) == 1
          and len({d.SOPInstanceUID for d in found.values()}) == 9, "the UIDs")
    first, second = given[1], given[3]
    for args, code, part in (
            (("--bed", first.split(",")[0]), 2, "z=MM, the scanner's centre, is missing"),
            (("--bed", first + ",size=3"), 2, 'what begins with "size" is none of z=MM'),
            (("--bed", first + ",start=x"), 2, 'what begins with "start" is none of'),
            (("--bed", first, scan + "/emission-bed002.hs"), 2, "--bed and FILE.hs"),
            (("--bed", first, "--bed", second.replace(",additive", ",multiplicative")), 4,
             "MULTIPLICATIVE is given for bed 2, and not for bed 1"),
            (("--bed", first, "--bed", second, "--attenuation", scan + "/attenuation-bed001.hs"), 4,
             "ATTENUATION is given for each bed and for all"),
            (("--bed", second, "--bed", first), 4, "begins -630 s after bed 1"),
            (("--bed", first, "--bed", second + ",start=10"), 4,
             "bed 2 begins at 10000 ms, before the end of bed 1 at 600000 ms")):
        p = h.run(h.TOMONODE, "import", *args, "--set", "PatientPosition=HFS", "-o", os.path.join(folder, "no"),
                  code=code)
        check(part in p.stderr, f"'{p.stderr}' does not contain '{part}'")
        shutil.rmtree(os.path.join(folder, "no"), ignore_errors=True)
    noisy_bed(folder, given)


def noisy_bed(folder, given):
    """Attenuation factors below 1 in bed 2 only: the result has their number and the least, of all beds."""
    path = os.path.join(folder, "scan", "attenuation-bed002.s")
    values = np.fromfile(path, "<f4")
    values = (values * np.random.default_rng(3).normal(1, 0.04, len(values))).astype("<f4")
    values.tofile(path)
    h.run(h.TOMONODE, "import", *given, "--set", "PatientPosition=HFS", "-o", os.path.join(folder, "noisy"))
    p = h.run(h.TOMONODE, "recon", "--json", "--device", "cpu:1", "--protocol", "pet-mlem", "--set", "iterations=1",
              "--set", "matrix=16", "-o",
              os.path.join(folder, "noisy-out"), os.path.join(folder, "noisy"))
    said = json.loads(p.stdout)["cases"][0]["pet"]["warnings"]
    below = (values < np.float32(0.99)).sum()
    check(f"{below} of {3 * len(values)} attenuation correction factors are below 0.99, the least {values.min():.6g}; "
          "they are used." in said, said)


def test_report(folder):
    """The report of `recon --json` has the beds, their counts and their slices."""
    exam = os.path.join(folder, "exam")
    truth = beds(exam, "--phantom", "cylinder", "--radius", "60", "--counts", "1e6", n=2, step=15 * SLICE)
    p = h.run(h.TOMONODE, "recon", "--json", "--device", "cpu:1", "--protocol", "pet-mlem", "--set", "iterations=2",
              "--set", "matrix=16", "-o",
              os.path.join(folder, "out"), exam)
    said = json.loads(p.stdout)["cases"][0]["pet"]
    check([(b["first_slice"], b["slices"], b["start"], b["duration"], b["interpolated"]) for b in said["beds"]] ==
          [(0, 15, 0, 600, False), (15, 15, 630, 600, False)], said["beds"])
    check(sum(b["counts"] for b in said["beds"]) == said["counts"] == truth["counts"], said)
    check("The beds overlap little: a slice between them has 1" in said["warnings"], said["warnings"])
