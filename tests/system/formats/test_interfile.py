# SPDX-License-Identifier: Apache-2.0
"""`tomonode recon FILE.hs`: the same series as by `import`; position, start and duration that are not known are
assumed, with a sentence on stderr and in the result, and without a duration nothing is in Bq/ml; what is refused; no
folder is left, however the command ends."""
import glob
import html
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

import numpy as np
import pydicom
import pytest

from tools import node_harness as h
from tools import pet_tools as tools
from tools.node_harness import check, wait_for

UNKNOWN = ("study date", "study time", "patient orientation", "patient rotation", "image duration")
SENTENCES = ("patient's position is not in the data: HFS (head first, supine) is assumed",
             "start of the acquisition is not in the data: ",
             "duration of the acquisition is not in the data: 1 s is assumed, and the values are counts.")
CONDITIONS = ("Not in Bq/ml: no calibration factor.", "Not in Bq/ml: the duration of the acquisition is not known.",
              "Not corrected for attenuation and detector efficiencies, hence not in Bq/ml.",
              "Not corrected for randoms and scatter.")
SETTINGS = ("--protocol", "pet-osem", "--device", "cpu", "--set", "iterations=1", "--set", "matrix=16")
CALIBRATED = ("--attribute", "DoseCalibrationFactor=100", "--attribute", "CorrectedImage=ATTN\\NORM", "--attribute",
              "Radionuclide=F18")


def simulate(folder):
    """A scan with attenuation, and bare.hs, its header without what UNKNOWN names."""
    tools.run("simulate", "pet", "--scanner", "small", "--interfile", "--attenuation", "-o", folder)
    with open(os.path.join(folder, "emission.hs"), encoding="ascii") as f, \
            open(os.path.join(folder, "bare.hs"), "w", encoding="ascii") as to:
        to.writelines(line for line in f if not re.match("|".join(UNKNOWN), line))


@pytest.fixture
def header(folder):
    """Of a scan, in a folder of the test's own."""
    shutil.copytree(h.kept("interfile", simulate), os.path.join(folder, "hs"))
    return os.path.join(folder, "hs", "emission.hs")


@pytest.fixture
def bare(header):
    return header.replace("emission.hs", "bare.hs")


def recon(folder, *args, ok=(0,)):
    """The report of a reconstruction, its objects, and stderr."""
    done = tools.run("recon", "--json", *SETTINGS, "-o", folder, *args, ok=ok)
    check(not glob.glob(os.path.join(folder, ".import*")), "the folder of the import is left")
    return json.loads(done.stdout), [pydicom.dcmread(p)
                                     for p in sorted(glob.glob(os.path.join(folder, "*.dcm")))], done.stderr


def test_what_is_assumed_is_said(folder, bare):
    report, objects, said = recon(os.path.join(folder, "new", "deep"), bare)
    text = objects[0].DerivationDescription
    for sentence in SENTENCES:
        for where in (said, text, report["cases"][0]["pet"]["warnings"]):
            check(sentence in where, f"'{sentence}' is not in: {where}")
    for sentence in CONDITIONS:  # all that is missing, not only the first
        for where in (text, report["cases"][0]["pet"]["warnings"]):
            check(where.count(sentence) == 1, f"'{sentence}' is not once in: {where}")
    check((objects[0].Units, objects[0].ActualFrameDuration) == ("CNTS", 1000), objects[0])
    facts = report["cases"][0]["pet"]["facts"]
    check([facts[f] for f in ("start", "duration", "position", "dose")] == ["assumed"] * 3 + ["none"], facts)
    page = os.path.join(folder, "page")
    done = tools.run("recon", *SETTINGS, "-o", os.path.join(folder, "people"), "--report", page, bare)
    page = h.read_file(glob.glob(os.path.join(page, "*.html"))[0])
    for sentence in SENTENCES:  # once for a person at a terminal, and in the report
        check((done.stdout + done.stderr).count(sentence) == 1,
              f"'{sentence}' is not once in: {done.stdout}{done.stderr}")
        check(page.replace("&#39;", "'").count(sentence) == 1, f"'{sentence}' is not once in the report")
    warnings = re.findall(r"<li>(.*?)</li>", page.partition("Planes through")[0].partition("Warnings")[2])
    check(len(warnings) > 2 and not any(re.search(r"\. [A-Z]", w) for w in warnings),
          f"several sentences in one warning: {warnings}")
    for row in ("Acquisition", "Frame duration, ms", "Patient position"):
        check(re.search(rf'<th scope="row">{row}</th><td>[^<]* \(assumed\)</td>', page), f"{row} is not marked")
    measured = tools.run("measure", "--circle", "0,0,0,20", os.path.join(folder, "people")).stdout
    check(", counts, patient HFS (assumed)\n" in done.stdout and ", counts, patient HFS (assumed)\n" in measured,
          done.stdout + measured)
    check("<td>HFS (head first, supine) (assumed)</td>" in page, "the position of the patient in the report")
    for path in glob.glob(os.path.join(folder, "people", "*.dcm")):  # objects that do not have it
        d = pydicom.dcmread(path)
        del d.PatientOrientationCodeSequence, d.PatientGantryRelationshipCodeSequence
        d.DerivationDescription = "none"
        d.save_as(path)
    measured = tools.run("measure", "--circle", "0,0,0,20", os.path.join(folder, "people")).stdout
    tools.run("report", "-o", os.path.join(folder, "unknown"), os.path.join(folder, "people"))
    with open(glob.glob(os.path.join(folder, "unknown", "*.html"))[0], encoding="utf-8") as f:
        check('Patient position</th><td>not in the objects</td>' in f.read()
              and ", patient in an unknown position\n" in measured, measured)
    keys = set(re.findall(r"<code>(\w+)</code>", page))
    check({"iterations", "subsets", "projector", "matrix"} <= keys and not {"prior_weight", "relaxation",
                                                                            "filter_cut"} & keys, keys)
    small = "Voxels of 0.625 mm are smaller than half a radial bin (2.5 mm), which makes stripes: matrix=64 fits."
    for matrix, expected in (("256", True), ("64", False)):
        report, _, _ = recon(os.path.join(folder, "voxels-" + matrix), "--set", "matrix=" + matrix, bare)
        check((small in report["cases"][0]["pet"]["warnings"]) == expected, report["cases"][0]["pet"]["warnings"])
    # An import that states the same values makes the same series
    ds = objects[0]
    sets = ("PatientPosition=HFS", f"AcquisitionDate={ds.AcquisitionDate}", f"AcquisitionTime={ds.AcquisitionTime[:6]}",
            "ActualFrameDuration=1000")
    tools.run("import", bare, "-o", os.path.join(folder, "sinograms"),
              *(word for one in sets for word in ("--set", one)))
    _, imported, said = recon(os.path.join(folder, "imported"), os.path.join(folder, "sinograms"))
    check([o.SOPInstanceUID for o in imported] == [o.SOPInstanceUID for o in objects], "other UIDs")
    check([o.PixelData for o in imported] == [o.PixelData for o in objects], "other values")
    check("assumed" not in imported[0].DerivationDescription + said, "nothing was assumed")


def test_no_quantity_without_a_duration(folder, bare):
    _, objects, _ = recon(os.path.join(folder, "counts"), *CALIBRATED, bare)
    check((objects[0].Units, objects[0].DecayCorrection) == ("CNTS", "NONE"), f"{objects[0].Units} without a duration")
    _, objects, said = recon(os.path.join(folder, "becquerel"), *CALIBRATED, "--attribute",
                             "ActualFrameDuration=600000", bare)
    check((objects[0].Units, objects[0].DecayCorrection, objects[0].ActualFrameDuration) == ("BQML", "START", 600000),
          objects[0].Units)
    check(SENTENCES[2] not in said and SENTENCES[0] in said, said)
    report, _, _ = recon(os.path.join(folder, "injected"), "--attribute", "RadiopharmaceuticalStartTime=090000", bare,
                         ok=(4,))
    check("with a time of injection it cannot be assumed" in report["refused"][0]["reason"], report)
    check(not os.path.exists(os.path.join(folder, "injected")), "what was refused has left a folder")


def test_a_complete_header(folder, header):
    """All is in the header: nothing is assumed. Factors are of one header."""
    _, objects, said = recon(os.path.join(folder, "complete"), "--attenuation",
                             header.replace("emission", "attenuation"), header)
    check("assumed" not in said + objects[0].DerivationDescription and "ATTN" in objects[0].CorrectedImage, said)
    check((objects[0].ActualFrameDuration, objects[0].AcquisitionDate) == (600000, "20260601"), objects[0])
    done = tools.run("recon", "--attenuation", header, "-o", os.path.join(folder, "two"), header, header, ok=(2,))
    check("are of one FILE.hs, and 2 are given" in done.stderr, done.stderr)
    done = tools.run("recon", "--attribute", "PatientPosition=UP", "-o", os.path.join(folder, "two"), header, ok=(2,))
    check("PatientPosition=UP; allowed: HFS" in done.stderr, done.stderr)
    # One that cannot be read does not stop the others
    broken = os.path.join(folder, "broken.hs")
    h.write_file(broken, "!INTERFILE :=\nname of data file := none.s\n")
    report, objects, _ = recon(os.path.join(folder, "other"), broken, header, ok=(4,))
    check(len(report["cases"]) == 1 and "broken.hs" in report["refused"][0]["what"] and objects, report)
    check(not os.path.exists(os.path.join(folder, "two")), "what was refused has left a folder")


def test_the_attribute_that_fits_a_truth(folder, header):
    """The refusal of a truth.json names the attribute with which it fits."""
    if not os.path.exists(path := os.path.join(folder, "hs", "truth.json")):
        raise AssertionError("simulate has written no truth.json")
    recon(os.path.join(folder, "strange"), header)
    done = tools.run("measure", "--truth", path, os.path.join(folder, "strange"), ok=(1, 2, 4))
    said = re.search(r"recon (--attribute) (FrameOfReferenceUID=[0-9.]+)", done.stderr)
    check(said, done.stderr)
    recon(os.path.join(folder, "fits"), *said.groups(), header)
    tools.run("measure", "--truth", path, os.path.join(folder, "fits"))


def number(counts):
    """Counts, as sentences have them."""
    return f"{counts:.0f}" if counts >= 1000 else f"{counts:.4g}"


def test_contradictions_are_refused(folder, header):
    """Geometry that cannot be is refused with keys, values and the file; an unknown correction is named."""
    good = h.read_file(header)
    bins, views = (int(re.search(rf"matrix size \[{k}\] := (\d+)", good).group(1)) for k in (1, 2))
    detectors = int(re.search(r"detectors per ring := (\d+)", good).group(1))
    plain = re.sub("applied corrections := .*", "applied corrections := {None}", good)
    most = "Maximum number of non-arc-corrected bins := "
    detectors_bin = "effective central bin size (cm) := 0.34355"  # 105 mm sin(pi / 96)
    plain = re.sub("effective central bin size.*", detectors_bin, plain)
    h.write_file(path := os.path.join(folder, "hs", "wrong.hs"), plain)
    tools.run("import", path, "-o", os.path.join(folder, "detectors"))
    cases = ((re.sub(f"{most}.*", f"{most}{bins - 1}", plain), ("matrix size [1] := %d," % bins, f"{most}{bins - 1}")),
             (plain.replace(f"per ring := {detectors}", f"per ring := {2 * views + 2}"),
              (f":= {views} ", f"per ring := {2 * views + 2}:")),
             (re.sub(r"(minimum ring difference per segment := {) *-\d+", r"\1 0", good),
              ("minimum ring difference per segment := 0,",)))
    rings = "Distance between rings (cm) := 0.65"
    cases += ((good.replace(rings, "Distance between rings (mm) := 0.65"),
               ("is 0.65 mm, and detectors of a ring are 6.87 mm apart", "ten times as much")),
              (re.sub(r"interaction \(cm\) := .*", "interaction (cm) := 5", good),
               ("Average depth of interaction is 50 mm (5 cm); allowed: at most 30 mm", "5 mm instead of 5 cm?")),
              (re.sub("Scanner type := .*", "Scanner type := Siemens mMR", good),
               ("Scanner type := Siemens mMR has rings at a distance of 4.0625 mm (scanner 'siemens-mmr'",
                "is 6.5 mm")))
    cases += ((good.replace(f"per ring := {detectors}", f"per ring := {10 * detectors}"),
               ("detectors of a ring are 0.687 mm apart", "a larger diameter or a smaller distance is meant")),)
    check(rings in good, good)
    for text, words in cases:
        h.write_file(path, text)
        done = tools.run("import", path, "-o", os.path.join(folder, "wrong"), ok=(4,))
        for word in (*words, "wrong.hs"):
            check(word in done.stderr, f"'{word}' is not in: {done.stderr}")
    # a scanner without a name is none to add to the configuration
    h.write_file(path, re.sub("Scanner type := .*", "Scanner type := Userdefined",
                              re.sub("m[a-z]*imum ring difference.*\n", "", good)))
    done = tools.run("recon", path, "-o", os.path.join(folder, "wrong"), ok=(4,))
    check(done.stderr.endswith("minimum ring difference per segment, maximum ring difference per segment\n"),
          done.stderr)
    h.write_file(path, re.sub("applied corrections := .*", "applied corrections := {arc correction, atenuation}", good))
    _, objects, said = recon(os.path.join(folder, "unknown"), path)
    for where in (said, objects[0].DerivationDescription):
        check('"atenuation" in applied corrections is not known' in where, where)
    check("ATTN" not in objects[0].CorrectedImage, objects[0].CorrectedImage)
    done = tools.run("import", path, "-o", os.path.join(folder, "named"))
    check('"atenuation" in applied corrections is not known' in done.stderr, done.stderr)


def test_byte_order_and_place_of_the_data(folder, header):
    """The other byte order is refused with its key, a missing one is said; the data may be below the folder of the
    header."""
    good = h.read_file(header)
    line, path = "imagedata byte order := LITTLEENDIAN\n", os.path.join(folder, "hs", "order.hs")
    values = h.read_file(os.path.join(folder, "hs", "emission.s"), "rb")
    os.makedirs(os.path.join(folder, "hs", "sub", "dir"))
    with open(os.path.join(folder, "hs", "sub", "dir", "big.s"), "wb") as f:
        f.write(struct.pack(f">{len(values) // 4}f", *struct.unpack(f"<{len(values) // 4}f", values)))
    for text, says in ((good.replace("LITTLE", "BIG"), "imagedata byte order := BIGENDIAN: "),
                       (good.replace(line, ""), "add imagedata byte order := LITTLEENDIAN"),
                       (good.replace(line, "").replace("emission.s", "./sub/dir/big.s"), None)):
        h.write_file(path, text)
        report, objects, _ = recon(os.path.join(folder, "order"), path, ok=(4,) if says else (0,))
        check(not says or says in report["refused"][0]["reason"], report)
    check('has no "imagedata byte order": BIGENDIAN is assumed' in objects[0].DerivationDescription,
          objects[0].DerivationDescription)
    tools.run("import", path, "-o", os.path.join(folder, "below"))
    block = pydicom.dcmread(glob.glob(os.path.join(folder, "below", "*.dcm"))[0]).private_block(0x0071,
                                                                                                "TOMONODE SINOGRAM 1")
    check("name of data file := big.s" in block[0x02].value and "sub/dir" not in block[0x02].value,
          "an object has the path of the data")


def test_the_order_of_axes(folder, header):
    """Views and planes in the other order than the header says are refused, in the data and in factors; the true order,
    converted, is not."""
    good = h.read_file(header)
    size = {k: re.search(rf"matrix size \[{k}\] := (.*)", good).group(1) for k in (1, 2, 3)}
    label = {k: re.search(rf"matrix axis label \[{k}\] := (.*)", good).group(1) for k in (2, 3)}
    other = good
    for k in (2, 3):
        other = re.sub(rf"(matrix size \[{k}\] := ).*", lambda m, k=k: m.group(1) + size[5 - k], other)
        other = re.sub(rf"(matrix axis label \[{k}\] := ).*", lambda m, k=k: m.group(1) + label[5 - k], other)
    by_view = label[3] == "view"
    views, planes = int(size[3 if by_view else 2]), [int(n) for n in size[2 if by_view else 3].strip("{} ").split(",")]
    values, moved, at = np.fromfile(header.replace(".hs", ".s"), "<f4"), [], 0
    for n in planes:
        part = values[at:at + n * views * int(size[1])].reshape((views, n, -1) if by_view else (n, views, -1))
        moved.append(part.transpose(1, 0, 2).ravel())
        at += part.size
    place = os.path.join(folder, "axes")
    os.makedirs(place)
    for name, text, data in (("right", other, np.concatenate(moved)), ("wrong", other, values)):
        h.write_file(os.path.join(place, name + ".hs"), text.replace("emission.s", name + ".s"))
        data.tofile(os.path.join(place, name + ".s"))
    _, objects, _ = recon(os.path.join(place, "0"), os.path.join(place, "right.hs"))
    _, same, _ = recon(os.path.join(place, "1"), header)
    check(all(np.array_equal(a.pixel_array, b.pixel_array) for a, b in zip(objects, same)),
          "the converted order gives another image")
    report, _, _ = recon(os.path.join(place, "2"), os.path.join(place, "wrong.hs"), ok=(4,))
    says = ("EMISSION: the data are in the other order of axes than the header says, "
            f"matrix axis label [3] := {label[2]}, [2] := {label[3]}: ")
    check(says in report["refused"][0]["reason"] and "exchange matrix axis label and matrix size of [2] and [3]"
          in report["refused"][0]["reason"], report)


def test_at_first_try(folder, header):
    """What a person does first: the default protocol, two headers, keys as options, names that are wrong."""
    report, objects, _ = recon(os.path.join(folder, "counted"), header)
    counts = report["cases"][0]["pet"]["counts"]
    text = tools.run("recon", "--device", "cpu", "--set", "iterations=1", "-o", os.path.join(folder, "first"),
                     header).stdout
    check(f" voxels of 2.5 x 2.5 x 3.25 mm, {counts:.0f} counts, " in text and "64 x 64 x 15 voxels" in text, text)
    check("The matrix was chosen by the data: 64, for voxels like the radial bins (2.5 mm); matrix=256 in the"
          in text and "stripes" not in text, text)
    tools.run("import", header, "-o", os.path.join(folder, "imported"))  # the same rule for the same data as objects
    text = tools.run("recon", "--device", "cpu", "--set", "iterations=1", "-o", os.path.join(folder, "first"),
                     os.path.join(folder, "imported")).stdout
    check("64 x 64 x 15 voxels" in text and "The matrix was chosen by the data: 64" in text, text)
    check(f"with {counts:.0f} counts, protocol" in objects[0].DerivationDescription, objects[0].DerivationDescription)
    config = os.path.join(folder, "matrix.conf")
    h.write_file(config, 'protocols = ( { name = "pet-mlem"; matrix = 192; } );')
    text = tools.run("recon", "--device", "cpu", "--set", "iterations=1", "-c", config, "-o",
                     os.path.join(folder, "first"), header).stdout
    check("192 x 192 x 15 voxels" in text and "stripes" in text, text)
    other, out = header.replace("emission", "attenuation"), os.path.join(folder, "nothing")
    with open(other, encoding="ascii") as f, open(typed := os.path.join(folder, "hs", "factors.hs"), "w",
                                                  encoding="ascii") as to:
        to.write(f.read().replace("type := Emission", "type := AttenuationCorrection"))
    with open(header, encoding="ascii") as f, open(moved := os.path.join(folder, "hs", "moved.hs"), "w",
                                                   encoding="ascii") as to:
        to.write(f.read().replace("emission.s", "moved.s"))
    bare = os.path.join(folder, "hs", "bare.hs")
    for args, code, says in (((header, other), 2,
                              f"{other} is named like data that belong to a scan, not like one: give it with the "
                              "scan's header as --attenuation"),
                             ((typed,), 4,
                              f"recon: {typed}: PET data type := attenuationcorrection: not emission data; give this "
                              "header as --attenuation"),
                             ((moved,), 4,
                              f"recon: {moved}: cannot open {os.path.dirname(moved)}/moved.s: No such file"),
                             (("--attenuation", "no.hs", header), 8,
                              f"recon: {header}: cannot open no.hs: No such file"),
                             (("--set", "foo=1", bare), 2, "'foo' is no key of kind pet"),
                             (("--set", "mu_water=0.02", bare), 2, "mu_water")):
        said = tools.run("recon", "-o", out, *args, ok=(code,)).stderr
        check(says in said and "assumed" not in said and not os.path.exists(out), said)
    said = tools.run("recon", "--device", "cpu", *SETTINGS[-4:], "-o", os.path.join(folder, "typed"), bare).stderr
    check(f"tomonode recon: {bare}: The patient's position" in said, said)


def test_what_is_no_scan(folder, header):
    """What is not a scan: the error says what the file is, and which header or option is meant."""
    place, out = os.path.join(folder, "wrong_files"), os.path.join(folder, "no_scan")
    shutil.copytree(os.path.dirname(header), place)
    path = {n: os.path.join(place, n) for n in ("emission.hs", "emission.s", "lone.s", "vol.v", "vol.hv", "old.ahv",
                                                "an.hdr", "scan.mhdr", "attenuation.hs", "norm.hs", "acf.hs")}
    image = "".join(f"matrix axis label [{i}] := {a}\n!matrix size [{i}] := 4\nscaling factor (mm/pixel) [{i}] := 2\n"
                    for i, a in enumerate("xyz", 1))
    image = ("!INTERFILE :=\nname of data file := vol.v\n!type of data := PET\n!PET data type := Image\nimagedata byte "
             "order := LITTLEENDIAN\n"
             f"!number format := float\n!number of bytes per pixel := 4\nnumber of dimensions := 3\n{image}!END OF "
             "INTERFILE :=\n")
    for name, data in (("lone.s", b"\0" * 64), ("vol.v", b"\0" * 256), ("vol.hv", image.encode()),
                       ("old.ahv", image.encode()), ("an.hdr", struct.pack("<I", 348) + b"\0" * 344)):
        h.write_file(path[name], data)
    shutil.copy(path["emission.hs"], path["scan.mhdr"])
    shutil.copy(path["attenuation.hs"], path["norm.hs"])
    shutil.copy(path["emission.hs"], path["acf.hs"])  # counts, whatever the name says
    for names, says in ((("vol.hv",),
                         "vol.hv: PET data type := Image: the header of an image, not of sinograms: name that of the "
                         "sinograms (.hs)"),
                        (("old.ahv",), "old.ahv: PET data type := Image: the header of an image"),
                        (("--attenuation", "vol.hv", "emission.hs"), "vol.hv: PET data type := Image: "),
                        (("vol.v",), "; vol.v is the data of an image, whose header is vol.hv, not a scan"),
                        (("emission.s",),
                         "; emission.s is data without a header: name its Interfile header, emission.hs"),
                        (("lone.s",), "; lone.s is data without a header, and none is beside it: "),
                        (("an.hdr",), "; an.hdr is an image (Analyze or NIfTI), not a scan"),
                        (("scan.mhdr",), "scan.mhdr: a main header of Siemens, which names others"),
                        (("attenuation.hs",),
                         "attenuation.hs: the name and the values (above 0 in all bins, and no counts) are those of "
                         f"factors: give it with the scan's header as --attenuation {place}"),
                        (("norm.hs",), "with the scan's header as --normalisation ")):
        said = tools.run("recon", "-o", out, *(path.get(n, n) for n in names), ok=(4,)).stderr
        check(says in said and not os.path.exists(out), said)
    for scan, code, says in (("none.hs", 8, "none.hs: No such file"),
                             ("emission.s", 4,
                              "emission.s is no Interfile header of a scan; emission.s is data without a header: name "
                              "its Interfile header, emission.hs"),
                             (place, 2, f"are of one FILE.hs, and {place} is a folder: name its header"),
                             ("README.txt", 2, "README.txt is no Interfile header")):
        h.write_file(os.path.join(place, "README.txt"), "nothing\n")
        said = tools.run("recon", "-o", out, os.path.join(place, scan), "--attenuation", path["attenuation.hs"],
                         ok=(code,)).stderr
        check(says in said and "are given" not in said and not os.path.exists(out), said)
    text = re.sub("image duration.*\n", "", h.read_file(path["attenuation.hs"]))
    air = np.fromfile(os.path.join(place, "attenuation.s"), "<f4")
    rng, counts = np.random.default_rng(3), np.fromfile(os.path.join(place, "emission.s"), "<f4")
    for name, values, option in (("x1", air, "--attenuation"), ("x2", 2 * air, "--attenuation"),
                                 ("x3", rng.normal(1, 0.1, air.size).clip(0.6, 1.5), "--normalisation"),
                                 ("y1", counts * air, None), ("y2", counts + 0.25, None),
                                 ("y3", counts * 0.37 + rng.normal(1, 0.1, air.size).clip(0.1), None)):
        h.write_file(os.path.join(place, name + ".hs"), text.replace("attenuation.s", name + ".s"))
        values.astype("<f4").tofile(os.path.join(place, name + ".s"))
        done = tools.run("recon", *SETTINGS, "-o", tempfile.mkdtemp(dir=folder), os.path.join(place, name + ".hs"),
                         ok=(4,) if option else (0,))
        said = done.stderr
        check(option or ("The data hold no whole counts (" in done.stdout
                         and " % of the bins with a value are fractions)" in done.stdout), done.stdout)
        check(not option or f"give it with the scan's header as {option} " in said, said)
    report, objects, _ = recon(out, path["acf.hs"])
    check("whole counts" not in report["cases"][0]["pet"]["warnings"] + objects[0].DerivationDescription,
          "whole counts are called fractions")
    for ms, says in (("600000000",
                      "Actual Frame Duration (0018,1242) is 600000 s, above one day: probably a wrong unit"),
                     ("1000", "counts/s, more than scanners record: probably a wrong unit, such as min for s."),
                     ("600000", None)):
        report, objects, _ = recon(tempfile.mkdtemp(dir=folder), path["emission.hs"], "--attribute",
                                   f"ActualFrameDuration={ms}")
        for where in (objects[0].DerivationDescription, report["cases"][0]["pet"]["warnings"]):
            check(says in where if says else "wrong unit" not in where, where)


def test_a_constant_background_is_a_scan(folder, header):
    """Expected counts with a whole number of counts beside the object are a scan, not factors of attenuation."""
    path = os.path.join(folder, "hs", "expected.hs")
    counts = np.fromfile(header.replace(".hs", ".s"), "<f4")
    (1.1 * counts + 5).astype("<f4").tofile(path.replace(".hs", ".s"))
    check((counts == 0).mean() > 0.2, "no air in the scan")
    with open(header, encoding="ascii") as f, open(path, "w", encoding="ascii") as to:
        to.write(f.read().replace("emission.s", "expected.s"))
    check(len(recon(os.path.join(folder, "expected"), path)[1]) > 0, "refused")


def test_one_scan_twice(folder, header):
    """Two headers of the same data, one edited or a copy, are refused before anything is written; another geometry is
    another scan."""
    place, n = os.path.join(folder, "same_scan"), 0
    shutil.copytree(os.path.dirname(header), place)
    text = h.read_file(os.path.join(place, "emission.hs"))
    shutil.copy(os.path.join(place, "emission.s"), os.path.join(place, "case.s"))
    first, second = os.path.join(place, "emission.hs"), os.path.join(place, "case.hs")
    for changed, same in ((text, True), (text.replace("emission.s", "case.s").replace("study date", "; study date"),
                                         True),
                          (text.replace("Inner ring diameter (cm) := 20", "Inner ring diameter (cm) := 21"), False)):
        check(changed != text or n == 0, "the header was changed")
        n += 1
        h.write_file(second, changed)
        report, objects, said = recon(os.path.join(folder, f"same-{n}"), first, second, ok=(4,) if same else (0,))
        check(not os.path.exists(os.path.join(folder, f"same-{n}")) if same
              else len({o.SeriesInstanceUID for o in objects}) == len(report["cases"]) == 2, report)
        check((f"{second}: the same data with the same geometry as {first}: two headers of one scan; name only one"
               in said) == same, said)


def test_wrong_words(folder, header):
    """An option in place of a value, and a key and its value in two words."""
    for words, says in ((("--report", "--set", "matrix=64"),
                         "option '--report' needs a value, DIR, but '--set' follows"),
                        (("-o", "--json"), "option '-o' needs a value, DIR, but '--json' follows"),
                        (("--attenuation", "-o"), "option '--attenuation' needs a value, F.hs, but '-o' follows"),
                        (("-o", "-c", "x.conf"), "option '-o' needs a value, DIR, but '-c' follows"),
                        (("--set", "matrix", "64"),
                         "--set matrix has no '='; allowed: --set KEY=VALUE: --set matrix=64 is meant?"),
                        (("--attribute", "PatientWeight", header),
                         "--attribute PatientWeight has no '='; allowed: --attribute KEYWORD=VALUE\n")):
        said = tools.run("recon", header, *words, "-o", os.path.join(folder, "words"), ok=(2,)).stderr
        check(says in said and not os.path.exists(os.path.join(folder, "words")), said)


def centre_of(objects):
    """Centre of activity in the patient, mm, x to the left, y to the back, z to the head; only from the attributes of
    the slices."""
    total, sums = 0, np.zeros(3)
    for o in objects:
        values = o.pixel_array * float(o.RescaleSlope)
        row, column, first = (np.array([float(v) for v in t], float) for t
                              in (o.ImageOrientationPatient[:3], o.ImageOrientationPatient[3:], o.ImagePositionPatient))
        y, x = np.mgrid[0:o.Rows, 0:o.Columns]
        places = first + x[..., None] * float(o.PixelSpacing[1]) * row + y[...,
                                                                           None] * float(o.PixelSpacing[0]) * column
        sums += (places * values[..., None]).sum((0, 1))
        total += values.sum()
    return sums / total


def test_positions_of_the_patient(folder, header):
    """The position of the header is that of the result, what is assumed is said. (Every position: of headers
    node/format/test_interfile_patient, of images test_pet_result.)"""
    path, page = os.path.join(folder, "hs", "lies.hs"), os.path.join(folder, "position-page")
    bare = re.sub("patient (orientation|rotation) := .*\n", "", h.read_file(header))

    def made(keys, **how):
        h.write_file(path, bare.replace("!END OF INTERFILE", keys + "!END OF INTERFILE"))
        return recon(tempfile.mkdtemp(dir=folder), path, **how)

    for keys, position, code, sentence in (
            ("patient orientation := head_in\npatient rotation := right\n", "HFDR", "102540008", None),
            ("patient orientation := FFP\n", "FFP", "102541007", None),
            ("patient orientation := feet_in\n", "FFS", "102541007",
             "is not in the data, only the orientation: FFS (feet first, supine) is assumed"),
            ("patient rotation := prone\n", "HFP", "102540008",
             "is not in the data, only the rotation: HFP (head first, prone) is assumed")):
        report, objects, said = made(keys)
        check(report["cases"][0]["pet"]["patient_position"] == position, report)
        check(objects[0].PatientGantryRelationshipCodeSequence[0].CodeValue == code, objects[0])
        check(sentence in said and sentence in objects[0].DerivationDescription if sentence
              else "position is not in the data" not in said, said)
    report, _, _ = made("patient orientation := head_in\npatient rotation := other\n", ok=(4,))
    check('the patient\'s position is "other" in the header' in report["refused"][0]["reason"], report)
    # a person says what it is
    done = tools.run("recon", *SETTINGS, "--attribute", "PatientPosition=FFDL", "-o",
                     os.path.join(folder, "position-people"), "--report", page, path)
    check(", patient FFDL\n" in done.stdout, done.stdout)
    check('<th scope="row">Patient position</th><td>FFDL (feet first, on the left side)</td>'
          in h.read_file(glob.glob(os.path.join(page, "*.html"))[0]), "the report has no position")


def test_added_views(folder, header):
    """Views that were added neighbour by neighbour give the image of all views, at the same angle: View offset is that
    of the first one of all."""
    text = h.read_file(header)
    planes = sum(int(n) for n in re.search(r"matrix size \[3\] := {([^}]*)", text).group(1).split(","))
    phi, r = (np.arange(48) * np.pi / 48)[:, None], (np.arange(65) - 32) * 2.5
    spot = 1000 * np.exp(-(r - 40 * np.cos(phi) + 24 * np.sin(phi)) ** 2 / 50)  # at x = 40, y = -24 mm
    check("[2] := view\n!matrix size [2] := 48\n" in text and "[1] := 65\n" in text, "the scan has other sizes")
    for m in (1, 2, 4, 8):
        path = os.path.join(folder, "hs", f"added-{m}.hs")
        np.repeat(spot.reshape(1, 48 // m, m, 65).sum(2), planes, 0).astype("<f4").tofile(path.replace(".hs", ".s"))
        with open(path, "w", encoding="ascii") as f:
            f.write(text.replace("emission.s", f"added-{m}.s").replace("size [2] := 48", f"size [2] := {48 // m}"))
        x, y, _ = centre_of(recon(os.path.join(folder, f"added-{m}"), path, "--set", "subsets=1")[1])
        turned = math.degrees(math.atan2(y, x) - math.atan2(-24, 40))
        check(abs(turned) < 0.6, f"{m} views in one: turned by {turned:.2f} degrees ({x:.1f}, {y:.1f})")


def test_additive_in_counts_or_over_factors(folder, header):
    """A background that was divided by the factors (STIR's additive sinogram) gives the image of the counts if its
    header says so, and is refused without; so are counts whose header says that they were divided."""
    acf, y = (np.fromfile(os.path.join(folder, "hs", name + ".s"), "<f4") for name in ("attenuation", "emission"))
    b = np.full(acf.size, 0.3 * y.mean(), "<f4")
    np.random.default_rng(1).poisson(y + b).astype("<f4").tofile(os.path.join(folder, "hs", "prompts.s"))
    text = h.read_file(header)
    check("applied corrections := {arc correction}\n" in text, text)

    def write(name, values=None, words=""):
        if values is not None:
            values.astype("<f4").tofile(os.path.join(folder, "hs", name + ".s"))
        with open(os.path.join(folder, "hs", name + ".hs"), "w", encoding="ascii") as to:
            to.write(text.replace("emission.s", name + ".s").replace("{arc correction}", "{arc correction" + words + "}"))
        return os.path.join(folder, "hs", name + ".hs")

    def made(additive, ok=(0,)):
        return recon(os.path.join(folder, "of-" + os.path.basename(additive)[:-3]), prompts, "--attenuation",
                     header.replace("emission", "attenuation"), "--additive", additive, ok=ok)

    prompts, both = write("prompts"), ", attenuation, normalisation"
    wanted, given = made(write("counts", b)), made(write("divided", b * acf, both))
    for one, other in zip(wanted[1], given[1], strict=True):
        a, c = (o.pixel_array * float(o.RescaleSlope) for o in (one, other))
        check(np.abs(a - c).max() <= 1e-3 * a.max(), "another image")
    for name, values, words, says in (("wrong", b * acf, "", "they look like b / m"),
                                      ("twice", b, both, "they look like counts b"),
                                      ("half", b, ", attenuation", "or both (b / m, the additive sinogram")):
        said = made(write(name, values, words), ok=(4,))[0]["refused"][0]["reason"]
        check("ADDITIVE: " in said and says in said, f"{name}: {said}")
    said = made(write("doubtful", b * np.sqrt(acf)))[0]["cases"][0]["pet"]["warnings"]
    check("ADDITIVE: whether its values are counts b or b / m (STIR, SIRF) is doubtful" in said
          and "the exponent 0.50" in said, said)


def test_tracer(folder, header):
    """Nuclide, half-life and dose of the header are those of the result; what is not used is said, and a contradiction
    is refused."""
    calibrated = CALIBRATED[:4]  # without Radionuclide
    path = os.path.join(folder, "hs", "tracer.hs")
    good = h.read_file(header)

    def made(keys, *args, **how):
        h.write_file(path, good.replace("!END OF INTERFILE", keys + "!END OF INTERFILE"))
        made.last = tempfile.mkdtemp(dir=folder)
        return recon(made.last, *calibrated, *args, path, **how)

    stir6 = ("number of radionuclides := 1\nradionuclide name[1] := ^18^Fluorine\n"
             "radionuclide halflife (sec)[1] := 6584.04\nradionuclide branching factor[1] := 0.9686\n")
    siemens = ("isotope name := F-18\nisotope gamma halflife (sec) := 6586.2\nradiopharmaceutical := FDG\n"
               "tracer activity at time of injection (Bq) := 4.65e+007\n")
    for keys, half_life in ((stir6, 6584.04), (siemens, 6586.2)):
        _, objects, _ = made(keys)
        drug, text = objects[0].RadiopharmaceuticalInformationSequence[0], objects[0].DerivationDescription
        check((drug.RadionuclideHalfLife, drug.RadionuclideCodeSequence[0].CodeValue) == (half_life, "77004003"), drug)
        check((objects[0].Units, objects[0].DecayCorrection) == ("BQML", "START"), objects[0].Units)
        check("half-life" not in text and ("injected dose" in text) == (keys != siemens), text)
        check(keys != stir6 or drug.RadionuclidePositronFraction == 0.9686, drug)
        check(keys != siemens or (drug.RadionuclideTotalDose, drug.Radiopharmaceutical) == (4.65e7, "FDG"), drug)
    _, objects, _ = made(stir6, "--attribute", "Radionuclide=C11")  # a person knows better
    check(objects[0].RadiopharmaceuticalInformationSequence[0].RadionuclideCodeSequence[0].CodeValue == "40565003",
          objects[0])
    args = ("--like", glob.glob(os.path.join(made.last, "*.dcm"))[0])
    report, _, _ = made("isotope name := Ga-68\n", *args, ok=(4,))
    check("the header's half-life is 4062.6 s, that of --like " in report["refused"][0]["reason"], report)
    calibrated = ()
    report, objects, _ = made(stir6 + "calibration factor := 9432.31\n")
    check(objects[0].Units == "CNTS"
          and "calibration factor := 9432.31 is not used, because Interfile does not define its unit"
          in objects[0].DerivationDescription, objects[0].Units)


def test_reasons_for_no_suv(folder, bare):
    """A dose in MBq gives one reason, in the result and in its report, which has the nuclide and six digits. (The other
    reasons: node/result/test_pet_units.)"""
    for i, (dose, says) in enumerate((("370", "No SUV can be computed: Radionuclide Total Dose (0018,1074) is 370 Bq; "
                                              "allowed: 100000 to 1e+12."), ("370000000", None))):
        values = {"RadionuclideTotalDose": dose, "Radionuclide": "F18", "AcquisitionDate": "20260101",
                  "AcquisitionTime": "120000", "RadiopharmaceuticalStartDateTime": "20260101110000",
                  "ActualFrameDuration": "600000", "CorrectedImage": "ATTN\\NORM",
                  "DoseCalibrationFactor": "1000000", "PatientWeight": "70"}
        report, objects, _ = recon(os.path.join(folder, f"no-suv-{i}"), bare,
                                   *(a for k, v in values.items() for a in ("--attribute", f"{k}={v}")), "--report",
                                   os.path.join(folder, f"no-suv-{i}"))
        page = html.unescape(h.read_file(report["cases"][0]["reports"][0]))
        for where in (objects[0].DerivationDescription, report["cases"][0]["pet"]["warnings"], page):
            check(says in where if says else "No SUV" not in where, where[:3000])
        check(page.count("No SUV") == bool(says), page[:3000])
        check(f'Decay factor</th><td>{objects[0].DecayFactor:.6g}</td>' in page and len(str(objects[0].DecayFactor)) > 8
              and 'Nuclide</th><td>Fluorine-18</td>' in page, page)


def test_planes_of_one_or_two_ring_pairs(folder, header):
    """Planes of axial compression with the counts of one or two ring pairs and without normalisation: the result says
    that slices are uneven."""
    rings, pairs = range(8), []
    for first, last in ((-1, 1), (2, 4), (-4, -2), (5, 7), (-7, -5)):  # of the header; planes are half a ring apart
        sums = [a + b for a in rings for b in rings if first <= a - b <= last]
        pairs += [sums.count(k) for k in range(min(sums), max(sums) + 1)]
    text = h.read_file(header)
    with open(header.replace(".hs", ".s"), "rb") as f:
        values = struct.unpack(f"<{os.path.getsize(f.name) // 4}f", f.read())
    size, files = len(values) // len(pairs), {}
    for name, made in (("added", [v * pairs[i // size] for i, v in enumerate(values)]),
                       ("pairs", [1 / pairs[i // size] for i in range(len(values))])):
        files[name] = os.path.join(folder, "hs", name + ".hs")
        h.write_file(files[name], text.replace("emission.s", name + ".s"))
        h.write_file(os.path.join(folder, "hs", name + ".s"), struct.pack(f"<{len(made)}f", *made))
    sentence = "Planes have the counts of 1 to 2 ring pairs (axial compression), and the data have no normalisation"
    for i, (args, said) in enumerate((((files["added"],), True), ((header,), False),
                                      (("--normalisation", files["pairs"], files["added"]), False))):
        report, objects, _ = recon(os.path.join(folder, f"ring-pairs-{i}"), *args)
        for where in (objects[0].DerivationDescription, report["cases"][0]["pet"]["warnings"]):
            check((sentence in where) == said, f"{args}: {where}")


def test_factors_upside_down(folder, header):
    """Factors that are the inverse of what their role is, and one file for two roles, are refused."""
    right = os.path.join(folder, "hs", "attenuation.hs")
    with open(right, encoding="ascii") as f, open(right.replace(".hs", ".s"), "rb") as data:
        text, values = f.read(), struct.unpack(f"<{os.path.getsize(data.name) // 4}f", data.read())
    survival = os.path.join(folder, "hs", "survival.hs")
    h.write_file(survival, text.replace("attenuation.s", "survival.s"))
    (1 / np.array(values)).astype("<f4").tofile(survival.replace(".hs", ".s"))
    copy, linked, gap, *ones = (os.path.join(folder, "hs", name + ".hs")
                                for name in ("copy", "linked", "gap", "one", "unit"))
    for path, data in ((copy, "copy.s"), (linked, "attenuation.s"), (gap, "gap.s"), (ones[0], "one.s"),
                       (ones[1], "one.s")):
        h.write_file(path, text.replace("attenuation.s", data))
    shutil.copy(right.replace(".hs", ".s"), copy.replace(".hs", ".s"))
    np.ones(len(values), "<f4").tofile(ones[0].replace(".hs", ".s"))
    (np.arange(len(values)) > 0).astype("<f4").tofile(gap.replace(".hs", ".s"))
    for args, code, says in ((("--attenuation", survival), 4, "values are below 0.99, the least "),
                             (("--attenuation", survival, "--normalisation", right), 4,
                              "not needed; or ATTENUATION and NORMALISATION are exchanged"),
                             (("--multiplicative", right), 4, "because the values do not follow the pairs"),
                             (("--multiplicative", survival), 0, ""),
                             (("--attenuation", right, "--normalisation", right), 2,
                              "attenuation.hs is given for two roles: ATTENUATION and NORMALISATION"),
                             (("--attenuation", survival, "--attenuation", right), 2,
                              f"--attenuation is given twice, {survival} and {right}: name one file"),
                             (("--attenuation", right, "--normalisation", copy), 4,
                              "attenuation.hs (ATTENUATION) and copy.hs (NORMALISATION) have the same data, those of "
                              f"{right[:-3]}.s"),
                             (("--attenuation", right, "--normalisation", linked), 4,
                              "linked.hs (NORMALISATION) have the same data"),
                             (("--attenuation", ones[0], "--normalisation", ones[1]), 0, ""),
                             (("--normalisation", gap), 4, ": 0; allowed: finite and above 0, or infinite for a bin that "
                              "does not count (a gap, a dead detector), as is 0 in MULTIPLICATIVE"),
                             (("--report", "/proc/x"), 1, "/proc/x")):
        said = tools.run("recon", *SETTINGS, "-o", os.path.join(folder, "upside_down"), header, *args,
                         ok=(code,)).stderr
        check(says in said, said)
    # What no check proves is said by both commands: what the values do, and their range.
    says = ("ATTENUATION: the expected counts are divided by its values (1: no attenuation; above 1: attenuation): "
            f"1 to {max(values):.3g}, median {np.median(values):.3g}.")
    for command in ("recon", "import"):
        done = tools.run(command, *(SETTINGS if command == "recon" else ()), "-o", tempfile.mkdtemp(dir=folder),
                         header, "--attenuation", right)
        check(says in [line.strip() for line in done.stdout.splitlines()], f"{says}\n{done.stdout}")
    counts = np.fromfile(header.replace(".hs", ".s"), "<f4").sum(dtype=float)
    for scale, too_much in ((0.5, False), (1.5, True)):  # of a background, the sum
        h.write_file(path := os.path.join(folder, "hs", "background.hs"), text.replace("attenuation.s", "background.s"))
        background = np.full(len(values), scale * counts / len(values), "<f4")
        background.tofile(path.replace(".hs", ".s"))
        report, objects, _ = recon(tempfile.mkdtemp(dir=folder), header, "--additive", path)
        says = ("ADDITIVE: its values are added to the expected counts: "
                f"{number(background.sum(dtype=float))} counts in all, EMISSION has {number(counts)}.")
        check(report["cases"][0]["pet"]["factors"] == [says], f"{says}\n{report['cases'][0]['pet']['factors']}")
        says = (f"The background (ADDITIVE), {scale * counts:.4g} counts, is more than the {counts:.4g} counts "
                "of the data")
        for where in (objects[0].DerivationDescription, report["cases"][0]["pet"]["warnings"]):
            check(says in where if too_much else "The background" not in where, where)
    said = tools.run("recon", "-o", os.path.join(folder, "images"), os.path.join(folder, "upside_down"), ok=(4,)).stderr
    check(re.search(r"in \d+ files; \S*upside_down holds DICOM images, such as reconstructed ones, but no scan: name "
                    r"the sinograms", said), said)
    limit = len(values) // 10000  # of the bins that a scan without a body may have above 1.05
    for largest, bins, expected in ((1, 0, True), (1.04, None, True), (1.2, 1, True), (1.2, limit, True),
                                    (1.2, limit + 1, False), (1.06, None, False)):  # nothing attenuates
        h.write_file(path := os.path.join(folder, "hs", "air.hs"), text.replace("attenuation.s", "air.s"))
        factors = np.where(np.arange(len(values)) % 7 if bins is None else np.arange(len(values)) >= bins, 1, largest)
        factors.astype("<f4").tofile(path.replace(".hs", ".s"))
        said = recon(tempfile.mkdtemp(dir=folder), header, "--attenuation", path)[0]["cases"][0]["pet"]["warnings"]
        check((f"{bins or 0} of {len(values)} attenuation correction factors (ATTENUATION) are above 1.05, the largest "
               f"is {largest}: nothing attenuates" in said) == expected, said)
    image = glob.glob(os.path.join(folder, "upside_down", "**", "*.dcm"), recursive=True)[0]
    said = tools.run("recon", "-o", os.path.join(folder, "images"), image, ok=(4,)).stderr
    check(f"in 1 file; {os.path.basename(image)} is DICOM, such as a reconstructed image, but no scan: name the" in said
          and "tomonode recon`" not in said, said)
    # Measured factors have noise. (Each way to be wrong: node/reconstruct/test_factor_survey.)
    h.write_file(path := os.path.join(folder, "hs", "measured.hs"), text.replace("attenuation.s", "measured.s"))
    measured = np.array(values) * np.random.default_rng(5).normal(1, 0.05, len(values))
    measured.astype("<f4").tofile(path.replace(".hs", ".s"))
    report, objects, _ = recon(tempfile.mkdtemp(dir=folder), header, "--attenuation", path)
    check("attenuation correction factors are below 0.99, the least 0." in objects[0].DerivationDescription
          and f" of {len(values)} attenuation" in report["cases"][0]["pet"]["warnings"], report)


def test_negative_bins(folder, header):
    """Negative bins are counted and refused; filtered backprojection takes them, but no value that is not a number."""
    path, data = os.path.join(folder, "hs", "negative.hs"), os.path.join(folder, "hs", "negative.s")
    with open(header, encoding="ascii") as f, open(path, "w", encoding="ascii") as to:
        to.write(f.read().replace("emission.s", "negative.s"))
    with open(header.replace(".hs", ".s"), "rb") as f:
        values = list(struct.unpack(f"<{os.path.getsize(f.name) // 4}f", f.read()))
    values[7], values[-1] = -0.5, -2.25
    for bad, protocol, says in ((None, "pet-osem",
                                 f"2 of {len(values)} bins of the data are negative, the least -2.25: "),
                                (None, "pet-fbp-preview", None),
                                (math.nan, "pet-fbp-preview", "nan; allowed: finite")):
        if bad is not None:
            values[9] = bad
        h.write_file(data, struct.pack(f"<{len(values)}f", *values))
        done = tools.run("recon", "--protocol", protocol, "--device", "cpu", "-o", os.path.join(folder, "negative"),
                         path, ok=(4,) if says else (0,))
        check(not says or says in done.stderr, done.stderr)


def test_parallel_beams(folder):
    lines = os.path.join(folder, "lines.hs")
    tools.run("simulate", "parallel", "--phantom", "head", "--size", "32", "--angles", "24", "--slices", "1", "-o",
              os.path.join(folder, "scan"))
    tools.run("export", "-o", lines, os.path.join(folder, "scan"))
    done = tools.run("recon", "--device", "cpu", "-o", os.path.join(folder, "ct"), lines)
    ct = pydicom.dcmread(glob.glob(os.path.join(folder, "ct", "*.dcm"))[0])
    check(SENTENCES[0] in done.stderr and SENTENCES[0] in ct.DerivationDescription and ct.Modality == "CT",
          done.stderr + ct.DerivationDescription)
    check("duration" not in done.stderr, done.stderr)


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
def test_a_signal_leaves_nothing(folder, header, number):
    """The objects of the import may name a patient: also a signal leaves nothing of them, nor a process."""
    out = os.path.join(folder, "ended")
    long = ("--protocol", "pet-osem", "--device", "cpu", "--set", "iterations=1000", "--set", "matrix=256")

    def heed():  # SIGINT is ignored in whatever a shell starts in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    for existed in (False, True):
        p = subprocess.Popen([tools.TOMONODE, "recon", *long, "-o", out, header], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=heed)
        wait_for("its import", lambda: p.poll() is not None or glob.glob(os.path.join(out, ".import*", "*")),
                 step=0.005)
        check(p.poll() is None, "it ended before the signal")
        p.send_signal(number)
        p.send_signal(number)  # the second one ends it also where the first one only stops the computation
        said = p.communicate(timeout=60)
        check(p.returncode, f"the signal did not stop it: {said}")
        wait_for("nothing is left in the folder", lambda: not glob.glob(os.path.join(out, ".*")), step=0.02)
        wait_for("the folder is as before", lambda: os.path.exists(out) == existed, step=0.02)
        os.makedirs(out, exist_ok=True)
