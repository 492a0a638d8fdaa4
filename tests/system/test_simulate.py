# SPDX-License-Identifier: Apache-2.0
"""`tomonode simulate dbt`: objects that dciodvfy accepts, tags and stored values as docs/geometry.md has them, the
shadows of beads where the geometry written down here a second time puts them, the same exam for the same options, a
sentence for bad ones."""
import glob
import json
import math
import os
import re

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools

PITCH, SUPPORT, AXIS_HEIGHT, SOURCE_AXIS = 0.085, 17.0, 47.0, 608.5  # mm, siemens-inspiration
COLUMNS, ROWS, VIEWS, ARC = 2816, 3584, 25, 50.0
BINNING, MAX_VALUE = 8, 65535
ORIENTATION = {"LCC": "A\\R", "RCC": "P\\L", "LMLO": "A\\FR", "RMLO": "P\\FL"}
# dciodvfy knows two values of the mammography object's third value only; TOMO_PROJ is what tomosynthesis units write
# there.
FALSE_ERROR = "Error - Unrecognized enumerated value <TOMO_PROJ> for value 3 of attribute <Image Type>"


def read(folder):
    """The objects in the order of acquisition, and the stored values of all views."""
    sets = [pydicom.dcmread(p) for p in glob.glob(os.path.join(folder, "*.dcm"))]
    if len(sets) > 1:
        sets.sort(key=lambda ds: ds.InstanceNumber)
    return sets, np.concatenate([ds.pixel_array.reshape(-1, ds.Rows, ds.Columns) for ds in sets])


def angles_of(sets, side, view):
    """Angle toward +y of each view, from the tags."""
    if len(sets) > 1:
        return [float(ds.PositionerPrimaryAngle) for ds in sets]
    found = []
    for frame in sets[0].PerFrameFunctionalGroupsSequence:
        system = frame.IsocenterReferenceSystemSequence[0]
        gantry = {"LMLO": 45.0, "RMLO": -45.0}.get(side + view, 0.0)
        assert abs(system.BreastSupportIsocenterPrimaryAngle - gantry) < 1e-4, system
        positioner = float(frame.PositionerPositionSequence[0].PositionerPrimaryAngle)
        assert abs(positioner - system.XRaySourceIsocenterPrimaryAngle) < 1e-4, (positioner, system)
        found.append(system.BreastSupportIsocenterPrimaryAngle - system.XRaySourceIsocenterPrimaryAngle)
    return found


def check_tags(sets, truth, side, view, check):
    ds = sets[0]
    multi = len(sets) == 1
    shared = ds.SharedFunctionalGroupsSequence[0] if multi else None
    first = ds.PerFrameFunctionalGroupsSequence[0] if multi else None
    lie = shared.PatientOrientationInFrameSequence[0] if multi else ds
    distance = shared.XRayGeometrySequence[0] if multi else ds
    pixels = first.FramePixelDataPropertiesSequence[0] if multi else ds
    check(ds.SOPClassUID == ("1.2.840.10008.5.1.4.1.1.13.1.5" if multi else "1.2.840.10008.5.1.4.1.1.1.2.1"),
          f"{ds.SOPClassUID}")
    check(ds.Columns == COLUMNS // BINNING and ds.Rows == ROWS // BINNING and ds.BitsStored == 16,
          f"{ds.Columns} x {ds.Rows}")
    check(list(ds.ImageType) == ["ORIGINAL", "PRIMARY", "TOMO_PROJ", "NONE" if multi else side + view],
          f"{ds.ImageType}")
    check("\\".join(lie.PatientOrientation) == ORIENTATION[side + view], f"orientation {lie.PatientOrientation}")
    laterality = shared.FrameAnatomySequence[0].FrameLaterality if multi else ds.ImageLaterality
    check(laterality == side == truth["side"], f"laterality {laterality}")
    check(ds.ViewCodeSequence[0].CodeValue == {"CC": "399162004", "MLO": "399368009"}[view], "view code")
    check(abs(distance.DistanceSourceToDetector - AXIS_HEIGHT - SOURCE_AXIS) < 1e-3,
          f"{distance.DistanceSourceToDetector}")
    check(abs(distance.DistanceSourceToPatient - AXIS_HEIGHT - SOURCE_AXIS + SUPPORT) < 1e-3, "source to patient")
    check(all(abs(p - PITCH * BINNING) < 1e-6 for p in pixels.ImagerPixelSpacing), f"{pixels.ImagerPixelSpacing}")
    check(pixels.PixelIntensityRelationship == "LIN" and pixels.PixelIntensityRelationshipSign == 1, "intensity")
    check(ds.PhotometricInterpretation == "MONOCHROME1", f"{ds.PhotometricInterpretation}")
    check(ds.BodyPartThickness == 50 == truth["thickness_mm"], f"thickness {ds.BodyPartThickness}")
    check("PixelPaddingValue" not in ds, "padding without --collimate")
    check(all(s.FrameOfReferenceUID == ds.FrameOfReferenceUID == truth["frame_of_reference"] for s in sets),
          "frame of reference")
    if not multi:
        check(ds.ImagesInAcquisition == VIEWS == ds.NumberOfTomosynthesisSourceImages, "counts")
        check(len({s.SOPInstanceUID for s in sets}) == VIEWS, "UIDs")
        mas = [float(s.ExposureInuAs) / 1000 for s in sets]
    else:
        mas = [f.XRayAcquisitionDoseSequence[0].ExposureInmAs for f in ds.PerFrameFunctionalGroupsSequence]
        times = [f.FrameContentSequence[0].FrameAcquisitionDateTime for f in ds.PerFrameFunctionalGroupsSequence]
        check(times == sorted(set(times)), f"frame times {times}")
    # uAs are whole numbers: 0.5 of 4200
    check(np.allclose(np.array(mas) / np.mean(mas), truth["relative_exposure"], atol=2.5e-4), f"exposures {mas}")
    check(abs(np.mean(truth["relative_exposure"]) - 1) < 1e-9, f"mean exposure {np.mean(truth['relative_exposure'])}")


def check_angles(angles, truth, side, check):
    check(np.allclose(angles, truth["angles_degrees"], atol=2e-4), f"angles {angles}, truth {truth['angles_degrees']}")
    step = ARC / (VIEWS - 1)
    even = np.array([-ARC / 2 + i * step for i in range(VIEWS)])[::1 if side == "L" else -1]
    check(np.abs(np.array(angles) - even).max() <= 0.06 * step + 2e-4, f"angles {angles}")
    check(np.abs(np.array(angles) - even).max() > 0, "angles without jitter")


def shadow(bead, angle, side, n_columns, n_rows, pitch):
    """Fractional column and row where the ray through the bead's centre meets the stored image."""
    x, y, z = bead["center_mm"]
    a = math.radians(angle)
    source = np.array([0.0, SOURCE_AXIS * math.sin(a), AXIS_HEIGHT + SOURCE_AXIS * math.cos(a)])
    t = source[2] / (source[2] - z)
    x, y = source[0] + t * (x - source[0]), source[1] + t * (y - source[1])
    return (x / pitch - 0.5 if side == "L" else n_columns - 0.5 - x / pitch,
            n_rows / 2 - 0.5 + (-y if side == "L" else y) / pitch)


def check_shadows(images, truth, side, check):
    """Expectation images: a bead's shadow is an ellipse about its ray, a few bins wide. Its centroid is that of the
    line integral, which the bins sample; 0.25 of a bin is what a disc of 1.5 bins radius can be off by."""
    found = 0
    for view in (0, VIEWS // 2, VIEWS - 1):
        line = -np.log(images[view].astype(float) / (truth["i0"] * truth["relative_exposure"][view]))
        for bead in (s for s in truth["shapes"] if s["role"] == "bead"):
            c, r = shadow(bead, truth["angles_degrees"][view], side, truth["columns"], truth["rows"], truth["pixel_mm"])
            c0, r0, w = round(c), round(r), 4
            if not (2 * w < c0 < truth["columns"] - 2 * w and 2 * w < r0 < truth["rows"] - 2 * w):
                continue
            box = line[r0 - w:r0 + w + 1, c0 - w:c0 + w + 1]
            rim = np.median(np.concatenate([box[0], box[-1], box[:, 0], box[:, -1]]))
            over = np.clip(box - rim - 0.02, 0, None)
            rr, cc = np.mgrid[-w:w + 1, -w:w + 1]
            if not over.sum() > 0:
                check(False, f"view {view + 1}: no shadow at column {c:.1f}, row {r:.1f}")
                continue
            off = math.hypot((over * rr).sum() / over.sum() + r0 - r, (over * cc).sum() / over.sum() + c0 - c)
            check(off < 0.25, f"view {view + 1}: the shadow of {bead['center_mm']} is off by {off:.2f} bins")
            peak = bead["mu_per_mm"] * 2 * bead["half_axes_mm"][0]
            check(0.75 < over.max() / peak < 1.25,
                  f"view {view + 1}: shadow {over.max():.3f}, {peak:.3f} through the middle")
            found += 1
    check(found >= 20, f"{found} shadows lie in the images")


MORE = pytest.mark.tier2("the other format of each side and view")
WAYS = [("mg", "L", "CC"), ("bp", "R", "CC"), ("bp", "L", "MLO"), ("mg", "R", "MLO")]
WAYS += [pytest.param("bp" if f == "mg" else "mg", side, view, marks=MORE) for f, side, view in WAYS]


@pytest.mark.parametrize("image_format, side, view", WAYS)
def test_exam_is_what_it_says(folder, failures, image_format, side, view):
    def check(ok, text):
        tools.check(ok, text, failures)

    exam = os.path.join(folder, "parent", "exam")  # made with its parent
    truth = tools.simulate(exam, phantom="beads", binning=BINNING, i0=500, format=image_format, side=side, view=view,
                           seed=7, noise_free=True)
    sets, images = read(exam)
    check(len(sets) == (1 if image_format == "bp" else VIEWS) and len(images) == VIEWS, f"{len(sets)} objects")
    check(truth["i0"] == 500 * BINNING ** 2, f"i0 {truth['i0']}")
    check_tags(sets, truth, side, view, check)
    check_angles(angles_of(sets, side, view), truth, side, check)
    check_shadows(images, truth, side, check)
    known = 0
    for path in sorted(glob.glob(os.path.join(exam, "*.dcm")))[:3]:
        errors = [line for line in tools.validator(path) if "Error -" in line]
        known += sum(line.strip() == FALSE_ERROR for line in errors)
        check(all(line.strip() == FALSE_ERROR for line in errors), f"{errors}")
    check(known == (0 if image_format == "bp" else 3), "dciodvfy knows TOMO_PROJ now; the exception can go")


def test_breast_of_tissue(folder, failures):
    """The truth has the breast's masses, calcifications and clips, mirrored on the other side, and the result has the beads."""
    what = {"phantom": "breast", "binning": 4, "views": 9, "detector": "640x1100", "thickness": 30, "glandular": 25,
            "clips": 2, "view": "MLO"}
    left, right = (tools.simulate(os.path.join(folder, side), side=side, **what) for side in "LR")
    _, path = tools.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "R"))
    found = json.loads(tools.run("measure", "--json", "--truth", os.path.join(folder, "R", "truth.json"), path).stdout)
    far = max(np.linalg.norm(p["error_mm"]) for p in found["points"])
    tissues = {t["name"]: t for t in found["tissues"]}  # the breast is made again from its seed
    right["breast"]["digest"] = left["breast"].pop("digest")
    again = os.path.join(folder, "again.json")
    with open(again, "w", encoding="ascii") as f:
        json.dump(right, f)
    refused = tools.run("measure", "--truth", again, path, ok=(4,)).stderr
    del right["breast"]["digest"]
    with open(again, "w", encoding="ascii") as f:
        json.dump(right, f)
    older = json.loads(tools.run("measure", "--json", "--truth", again, path).stdout)
    coarse = tools.run("simulate", "dbt", "--clips", 1, "--binning", 8, "--views", 2, "--detector", "640x800", "--thickness", 20,
                       "-o", os.path.join(folder, "coarse")).stdout
    roles = [s["role"] for s in left["shapes"]]
    mirror = [np.allclose(np.array(a["center_mm"]) * (1, -1, 1), b["center_mm"], atol=1e-9)
              for a, b in zip(left["shapes"], right["shapes"])]
    for ok, text in ((left["phantom"] == "breast", left["phantom"]),
                     (abs(left["breast"]["glandular_percent"] - 25) < 2, left["breast"]),
                     ([roles.count(r) for r in ("body", "lesion", "bead", "metal")] == [1, 4 + 18, 6, 2], roles),
                     (left["breast"] == right["breast"] and all(mirror), mirror),
                     (abs(tissues["adipose"]["true"] - 0.046) < 0.001 and abs(tissues["adipose"]["bias_percent"]) < 20
                      and tissues["glandular"]["mean"] > 1.2 * tissues["adipose"]["mean"] and "muscle" in tissues, tissues),
                     ("makes another breast from seed" in refused, refused),
                     ("less than a bin of 0.68 mm" in coarse, coarse),
                     (older["tissues"] == [] and all("true" not in r for r in older["regions"]), older["tissues"]),
                     (len(found["points"]) == 6 and far < 0.5, f"{far} mm"),
                     (sum("mass" in r["name"] for r in found["regions"]) == 4, [r["name"] for r in found["regions"]])):
        tools.check(ok, text, failures)


def small(folder, *options):
    """A few views of a small detector; everything that was written, by name."""
    tools.run("simulate", "dbt", "--phantom", "ellipsoids", "--detector", "320x480", "--binning", 4, "--views", 5,
              "--thickness", 20, *options, "-o", folder)
    content = {}
    for path in glob.glob(os.path.join(folder, "*")):
        with open(path, "rb") as f:
            content[os.path.basename(path)] = f.read()
    return content


def document():
    with open(os.path.join(os.environ["TOMONODE_SOURCE"], "docs", "geometry.md"), encoding="utf-8") as f:
        return f.read()


def test_same_options_same_exam(folder, failures):
    """Every key of truth.json is documented; other options or another profile: another series."""
    def check(ok, text):
        tools.check(ok, text, failures)

    one, again = small(os.path.join(folder, "1")), small(os.path.join(folder, "2"))
    check(len(one) == 6 and one == again, "the same options give another exam")
    truth = json.loads(one["truth.json"])
    for keys, section in ((truth, "### truth.json"), (truth["shapes"][0], "Each of `shapes`")):
        documented = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", document().split(section)[1], re.M)))
        missing = [k for k in keys if k not in documented]
        check(not missing, f"docs/geometry.md lacks {missing}")
    for option in (("--seed", 2), ("--side", "R"), ("--i0", 9000), ("--phantom", "slab"), ("--noise-free",)):
        other = small(os.path.join(folder, option[0] + str(option[-1])), *option)
        check(json.loads(other["truth.json"])["series"] != truth["series"], f"{option}: the same series UID")
    config = os.path.join(folder, "conf")
    with open(config, "w", encoding="ascii") as f:
        f.write('profiles = ( { name = "siemens-inspiration"; manufacturer = "SIEMENS*"; model = "*Inspiration*";'
                ' axis_height = 47.0; source_axis = 608.5; support = 17.0; pitch = 0.085; sid_tolerance = 6.0;'
                ' offset = 50.0; } );\n')
    other = small(os.path.join(folder, "offset"), "-c", config)
    check(json.loads(other["truth.json"])["series"] != truth["series"],
          "another profile of the same name: the same series UID")


def test_options_of_stored_values(folder, failures):
    """--inverted, --collimate, --study, --views, the cap of --i0."""
    def check(ok, text):
        tools.check(ok, text, failures)

    plain, turned = os.path.join(folder, "plain"), os.path.join(folder, "turned")
    small(plain, "--noise-free", "--format", "bp")
    small(turned, "--noise-free", "--format", "bp", "--inverted")
    (a,), image = read(plain)
    (b,), mirror = read(turned)
    check(np.array_equal(mirror, MAX_VALUE - image), "--inverted: not 65535 minus the value")
    frame = b.PerFrameFunctionalGroupsSequence[0].FramePixelDataPropertiesSequence[0]
    check(b.PhotometricInterpretation == "MONOCHROME2" and frame.PixelIntensityRelationshipSign == -1,
          "--inverted: polarity tags")
    check(a.PresentationLUTShape == "INVERSE" and b.PresentationLUTShape == "IDENTITY", "--inverted: presentation LUT")

    for flags, value in (((), 0), (("--inverted",), MAX_VALUE)):
        edge = os.path.join(folder, "edge" + str(value))
        small(edge, "--noise-free", "--format", "bp", "--collimate", 5, *flags)
        (c,), cut = read(edge)
        rows = math.ceil(5 / (4 * PITCH))
        check(c.PixelPaddingValue == value == c.PixelPaddingRangeLimit,
              f"--collimate: padding {c.get('PixelPaddingValue')}")
        check((cut[:, :rows] == value).all() and (cut[:, -rows:] == value).all(), "--collimate: the ends hold values")
        check((cut[:, rows:-rows] != value).all(), "--collimate: padding inside")
        check(np.array_equal(cut[:, rows:-rows], (mirror if flags else image)[:, rows:-rows]),
              "--collimate: other values inside")

    study = "1.2.826.0.1.3680043.2.1125.7"
    sets, _ = read_after(os.path.join(folder, "study"), "--study", study)
    check(all(ds.StudyInstanceUID == study for ds in sets) and len({ds.SeriesInstanceUID for ds in sets}) == 1,
          "--study")

    full = small(os.path.join(folder, "full"), "--i0", 1e6)
    truth = json.loads(full["truth.json"])
    _, images = read(os.path.join(folder, "full"))
    check(0.9 * MAX_VALUE < truth["i0"] < MAX_VALUE and images.max() < MAX_VALUE,
          f"--i0: {truth['i0']}, values up to {images.max()}")

    (many,), _ = read_after(os.path.join(folder, "many"), "--views", 130, "--format", "bp")
    times = [f.FrameContentSequence[0].FrameAcquisitionDateTime for f in many.PerFrameFunctionalGroupsSequence]
    check(len(times) == 130 and times == sorted(set(times)), "130 views: frame times are not in order")


def read_after(folder, *options):
    small(folder, *options)
    return read(folder)


def test_refusals(folder, failures):
    """Wrong usage: exit code 2, a sentence that names the option or the value, and no folder."""
    def check(ok, text):
        tools.check(ok, text, failures)

    out = os.path.join(folder, "none")
    for options, part in ((("--phantom", "cat"), "phantom"), (("--side", "X"), "side"), (("--view", "LM"), "view"),
                          (("--i0", "nan"), "i0"), (("--binning", "300"), "binning"),
                          (("--format", "ct"), "format"), (("--gantry", "90"), "gantry"), (("--seed", "-1"), "seed"),
                          (("--thickness", "inf"), "thickness"), (("--views", "1"), "views"),
                          (("--detector", "100"), "detector"),
                          (("--study", "a.b"), "study"), (("--study", "1." * 40), "study"),
                          (("--phantom", "breast", "--glandular", "4.9"), "glandular"),
                          (("--phantom", "slab", "--glandular", "20"), "--glandular and --clips"),
                          (("--phantom", "slab", "--clips", 1), "--glandular and --clips"),
                          (("--phantom", "breast", "--air", "20"), "air"),
                          (("--collimate", "500"), "padding of 500 mm")):
        done = tools.run("simulate", "dbt", *options, "-o", out, ok=(2,))
        check(part in done.stderr and not os.path.exists(out), f"{options}: {done.stderr}")
    tools.run("simulate", "dbt", ok=(2,))
    tools.run("simulate", "ct", "-o", out, ok=(2,))
    done = tools.run("simulate", "dbt", "--system", "nobody", "-o", out, ok=(8,))
    check("nobody" in done.stderr and "siemens-inspiration" in done.stderr, done.stderr)
    file = os.path.join(folder, "file")
    with open(file, "w", encoding="ascii"):
        pass
    for path in (file, os.path.join(file, "exam"), os.path.join(folder, "n" * 5000)):
        done = tools.run("simulate", "dbt", "--phantom", "ellipsoids", "--binning", 8, "-o", path, ok=(1,))
        check("folder" in done.stderr, f"-o {path[:80]}: {done.stderr}")
