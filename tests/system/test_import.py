# SPDX-License-Identifier: Apache-2.0
"""`tomonode import`: Interfile projection data become sinogram objects, and every byte of them comes back.

Read back here with pydicom and numpy alone, by docs/sinogram-object.md. Objects pass dciodvfy without errors. Where
$TOMONODE_TEST_DATA names a folder with stir-recon-demo/smalllong.hs (the data of an example of STIR, Apache-2.0), that
is imported too. Time of flight, and what the e7tools of Siemens write: formats/test_import_tof.py."""
import glob
import hashlib
import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pydicom

from tools import dbt_tools as tools
from tools import node_harness as h
from tools.edits import new_object

h.need(h.TOMONODE, "dciodvfy")

SOURCE = os.environ.get("TOMONODE_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
STIR = os.path.join(os.environ.get("TOMONODE_TEST_DATA", ""), "stir-recon-demo", "smalllong.hs")
BASICS = ("PatientPosition=HFS", "AcquisitionDate=20260601", "AcquisitionTime=101500", "ActualFrameDuration=600000",
          "Radionuclide=F18",
          "RadionuclideTotalDose=3.7e8", "PatientWeight=70", "BodyPartExamined=BRAIN")


def imported(out, header, *options, basics=BASICS, ok=(0,)):
    return tools.run("import", header, *options, *(x for value in basics for x in ("--set", value)), "-o", out, ok=ok)


def objects(folder):
    return [pydicom.dcmread(path) for path in sorted(glob.glob(os.path.join(folder, "*.dcm")))]


def element(ds, number):
    return ds.private_block(0x0071, "TOMONODE SINOGRAM 1")[number].value


def streams(folder):
    """{role: bytes}, put together by index, length and hash checked."""
    parts, out = {}, {}
    all_objects = objects(folder)
    for ds in all_objects:
        assert element(ds, 0x01) == "INTERFILE_3.3", "format"
        assert element(ds, 0x15) == len(all_objects), "count of instances"
        parts.setdefault(element(ds, 0x03), {})[element(ds, 0x11)] = ds
    for role, chunks in parts.items():
        first = chunks[0]
        assert sorted(chunks) == list(range(element(first, 0x12))), f"{role}: chunks {sorted(chunks)}"
        data = b"".join(element(chunks[k], 0x10) for k in range(len(chunks)))[:element(first, 0x13)]
        assert len(data) == element(first, 0x13), f"{role}: {len(data)} bytes"
        assert hashlib.sha256(data).hexdigest() == element(first, 0x14), f"{role}: another hash"
        out[role] = data
    return out


def check_conformance(folder, name, failures):
    for path in glob.glob(os.path.join(folder, "*.dcm")):
        errors = [line for line in tools.validator(path) if "Error" in line]
        tools.check(not errors, f"{name}: {os.path.basename(path)}: {errors}", failures)


# As STIR writes it: one segment of summed ring differences, keywords that are not ours, blanks at ends of lines.
AS_STIR = """!INTERFILE  :=
name of data file := stir.s
originating system := Unknown
!GENERAL DATA :=
!GENERAL IMAGE DATA :=
!type of data := PET
imagedata byte order := LITTLEENDIAN
!PET STUDY (General) :=
!PET data type := Emission
applied corrections := {arc correction}
!number format := float
!number of bytes per pixel := 4
number of dimensions := 4
matrix axis label [4] := segment
!matrix size [4] := 1
matrix axis label [3] := view
!matrix size [3] := 60
matrix axis label [2] := axial coordinate
!matrix size [2] := { 19}
matrix axis label [1] := tangential coordinate
!matrix size [1] := 81
minimum ring difference per segment := { -5}
maximum ring difference per segment := { 5}
Scanner parameters:=\x20
Scanner type := Unknown
Number of rings                          := 10
Number of detectors per ring             := 120
Inner ring diameter (cm)                 := 62
Average depth of interaction (cm)        := 0.7
Distance between rings (cm)              := 0.6
Default bin size (cm)                    := 0.32
View offset (degrees)                    := 0
Maximum number of non-arc-corrected bins := 81
Default number of arc-corrected bins     := 81
Number of blocks per bucket in transaxial direction         := 0
Number of detector layers                                   := 1
Number of crystals per singles unit in axial direction      := -1
end scanner parameters:=
effective central bin size (cm) := 0.32
image scaling factor[1] := 1
data offset in bytes[1] := 0
number of time frames := 1
!END OF INTERFILE :=
"""


def write_as_stir(folder):
    path = os.path.join(folder, "stir.hs")
    h.write_file(path, AS_STIR)
    np.random.RandomState(1).gamma(2, 3, 60 * 19 * 81).astype("<f4").tofile(path[:-3] + ".s")
    return path


def check_stir(folder, name, header, failures):
    """Bit for bit, in one chunk and in several, with all roles."""
    data = h.read_file(header[:-3] + ".s", "rb")
    text = h.read_file(header)
    roles = ("multiplicative", "additive", "attenuation", "normalisation")
    values, texts, base = {"EMISSION": data}, {text.rstrip(" ")}, os.path.basename(header)[:-3]
    for i, role in enumerate(roles, 1):
        values[role.upper()] = data[4 * i:] + data[:4 * i]
        texts.add(text.replace(base + ".s", f"{base}-{role}.s").rstrip(" "))
        h.write_file(f"{header[:-3]}-{role}.hs", text.replace(base + ".s", f"{base}-{role}.s"))
        h.write_file(f"{header[:-3]}-{role}.s", values[role.upper()])
    for way, options, n in (("plain", (), 1), ("chunks", ("--chunk", 100000), -(-len(data) // 100000)),
                            ("roles", [x for role in roles for x in ("--" + role, f"{header[:-3]}-{role}.hs")], 5)):
        label, out = f"{name} {way}", os.path.join(folder, f"{name}-{way}")
        done = imported(out, header, *options)
        said = done.stdout.splitlines()
        tools.check(said[-1].startswith(f"{n} object"), f"{label}: {done.stdout}", failures)
        # Beside it a sentence for each role of factors: what its values do, and their range.
        factors = [line.split(":")[0] for line in said[:-1]]
        tools.check(factors == (["MULTIPLICATIVE", "ATTENUATION", "NORMALISATION"] if way == "roles" else []),
                    f"{label}: {done.stdout}", failures)
        tools.check(not done.stderr, f"{label}: {done.stderr}", failures)
        back = streams(out)
        tools.check(len(back) == (5 if way == "roles" else 1), f"{label}: roles {sorted(back)}", failures)
        for role, found in back.items():
            tools.check(found == values[role], f"{label}: {role} is not the same", failures)
        for ds in objects(out):
            tools.check(element(ds, 0x02) in texts, f"{label}: the header is not the same", failures)
            tools.check(ds.SOPClassUID == "1.2.840.10008.5.1.4.1.1.66" and ds.Modality == "PT", f"{label}: class",
                        failures)
            tools.check(float(ds.RadiopharmaceuticalInformationSequence[0].RadionuclideHalfLife) == 6586.2,
                        f"{label}: half-life", failures)
        check_conformance(out, label, failures)


def test_a_scan_of_stir_comes_back(folder, failures):
    check_stir(folder, "as STIR", write_as_stir(folder), failures)


def test_the_example_of_stir_comes_back(folder, failures):
    if "TOMONODE_TEST_DATA" not in os.environ:
        h.skip("TOMONODE_TEST_DATA names no folder with data of others")
    check_stir(folder, "STIR", STIR, failures)


def made_header(path, number, size, order, by_view):
    """Two segments of three rings, 7 views, 9 bins; the data beside it."""
    planes, views, bins = (5, 1), 7, 9
    axes = (("view", views), ("axial coordinate", "{5, 1}"))
    third, second = axes if by_view else axes[::-1]
    lines = ("!INTERFILE :=", "name of data file := " + os.path.basename(path)[:-3] + ".s",
             f"imagedata byte order := {order}",
             "!PET data type := Emission", f"!number format := {number}", f"!number of bytes per pixel := {size}",
             "number of dimensions := 4", "matrix axis label [4] := segment", "!matrix size [4] := 2",
             f"matrix axis label [3] := {third[0]}", f"!matrix size [3] := {third[1]}",
             f"matrix axis label [2] := {second[0]}", f"!matrix size [2] := {second[1]}",
             "matrix axis label [1] := tangential coordinate", f"!matrix size [1] := {bins}",
             "minimum ring difference per segment := {-1, 2}", "maximum ring difference per segment := {1, 2}",
             "Number of rings := 3", "Number of detectors per ring := 42", "Inner ring diameter (cm) := 20",
             "Distance between rings (cm) := 0.5", "Default bin size (cm) := 0.75", "!END OF INTERFILE :=")
    with open(path, "w", encoding="ascii", newline="\r\n") as f:
        f.write("\n".join(lines))
    kind = {"signed integer": "i", "unsigned integer": "u", "short float": "f", "float": "f", "long float": "f"}[number]
    values = np.arange(sum(planes) * views * bins).astype((">" if order == "BIGENDIAN" else "<") + f"{kind}{size}")
    values.tofile(path[:-3] + ".s")
    return values.tobytes()


def test_every_number_format_comes_back(folder, failures):
    """Tier 1: each number format, each byte order and each order of axes; tier 2: all together."""
    kinds = (("signed integer", 2), ("unsigned integer", 1), ("long float", 8), ("float", 4))
    orders = ("LITTLEENDIAN", "BIGENDIAN")
    some = [(kinds[i], orders[i % 2], i in (1, 2)) for i in range(4)]
    for (number, size), order, by_view in itertools.product(kinds, orders, (False, True)) if h.TIER == 2 else some:
        name = f"{number} {size} {order} {by_view}"
        data = made_header(os.path.join(folder, name + ".hs"), number, size, order, by_view)
        out = os.path.join(folder, name)
        imported(out, os.path.join(folder, name + ".hs"))
        tools.check(streams(out) == {"EMISSION": data}, f"{name}: not the same bytes", failures)


def test_like_gives_patient_and_study(folder, failures):
    """Patient and study of another file, whatever its class."""
    ds = new_object("1.2.840.10008.5.1.4.1.1.2", "1.2.3.4")
    ds.SpecificCharacterSet = "ISO_IR 100"
    ds.PatientName, ds.PatientID, ds.StudyInstanceUID, ds.SeriesInstanceUID = "Müller^Erika", "P-7", "1.2.3", "1.2.9"
    ds.FrameOfReferenceUID, ds.PatientPosition, ds.Manufacturer, ds.Modality = "1.2.5", "FFP", "Maker", "CT"
    path = os.path.join(folder, "like.dcm")
    ds.save_as(path, write_like_original=False)
    header = os.path.join(folder, "like.hs")
    made_header(header, "float", 4, "LITTLEENDIAN", True)
    imported(os.path.join(folder, "like"), header, "--like", path, basics=("PatientWeight=55", "0008,1090=Ring"))
    found = objects(os.path.join(folder, "like"))[0]
    want = {"PatientName": "Müller^Erika", "PatientID": "P-7", "StudyInstanceUID": "1.2.3",
            "FrameOfReferenceUID": "1.2.5",
            "PatientPosition": "FFP", "Manufacturer": "Maker", "ManufacturerModelName": "Ring", "PatientWeight": 55,
            "Modality": "PT"}
    for keyword, value in want.items():
        tools.check(found[keyword].value == value, f"--like: {keyword} is {found[keyword].value}, not {value}",
                    failures)
    tools.check(found.SeriesInstanceUID != "1.2.9", "--like: the series of another modality", failures)
    check_conformance(os.path.join(folder, "like"), "--like", failures)
    # The header says how the patient lay, too: another position than that of --like is refused, unless a person
    # decides.
    text = h.read_file(header)
    for keys, says, given in (("patient orientation := head_in\n", "head_in", "FFP"),
                              ("patient rotation := supine\n", "supine", "FFP"),
                              ("patient orientation := feet_in\npatient rotation := other\n", "feet_in, other", "FFP"),
                              ("patient orientation := feet_in\npatient rotation := prone\n", None, "FFP"),
                              ("patient rotation := prone\n", None, "FFP"),
                              ("patient orientation := feet_in\npatient rotation := other\n", None, "FFDR")):
        ds.PatientPosition = given
        ds.save_as(path, write_like_original=False)
        h.write_file(header, text.replace("!END OF INTERFILE", keys + "!END OF INTERFILE"))
        out = os.path.join(folder, f"like-{keys}{given}".replace("\n", " "))
        done = imported(out, header, "--like", path, basics=(), ok=(4,) if says else (0,))
        said = (f"the header's position is {says} (patient orientation, patient rotation), that of --like {given}: "
                "they are not of one acquisition")
        tools.check(not says or said in done.stderr, f"{keys}: {done.stderr}", failures)
        tools.check(says or objects(out)[0].PatientPosition == given, f"{keys}: not {given}", failures)
        if says:
            imported(out, header, "--like", path, basics=("PatientPosition=HFP",))
            tools.check(objects(out)[0].PatientPosition == "HFP", f"{keys}: a person says HFP", failures)


def test_objects_of_each_body_part_conform(folder, failures):
    """Laterality is asked for or forbidden, as the body part has it; both pass."""
    header = os.path.join(folder, "part.hs")
    made_header(header, "float", 4, "LITTLEENDIAN", True)
    for part in ("BRAIN", "BREAST", "PHANTOM", "WHOLEBODY"):
        out = os.path.join(folder, part)
        imported(out, header, basics=(f"BodyPartExamined={part}",))
        check_conformance(out, part, failures)


def test_the_documented_program_works(folder, failures):
    """The program that docs/sinogram-object.md names makes an object that conforms, and that is read."""
    program = os.path.join(SOURCE, "docs", "samples", "sinogram", "write_sinogram.py")
    out = os.path.join(folder, "documented")
    os.mkdir(out)
    subprocess.run([sys.executable, "-W", "ignore", program], cwd=out, check=True)
    check_conformance(out, "documented", failures)
    back = streams(out)["EMISSION"]
    tools.run("export", "-o", os.path.join(folder, "documented.hs"), os.path.join(out, "emission.dcm"))
    with open(os.path.join(folder, "documented.s"), "rb") as f:
        tools.check(f.read() == back, "the documented object is not exported as it is", failures)


def test_rewritten_objects_are_read(folder, failures):
    """Objects that passed through another encoding, where private elements lose their representation, or another
    block."""
    header = os.path.join(folder, "rewritten.hs")
    data = made_header(header, "float", 4, "LITTLEENDIAN", True)
    imported(os.path.join(folder, "rewritten"), header, "--chunk", 1000, basics=(*BASICS, "ScannerCentre=1\\2\\3"))
    for name in ("implicit", "big endian", "another block"):
        out = os.path.join(folder, name.replace(" ", "-"))
        os.mkdir(out)
        for i, ds in enumerate(objects(os.path.join(folder, "rewritten"))):
            if name == "implicit":
                ds.is_implicit_VR, ds.file_meta.TransferSyntaxUID = True, pydicom.uid.ImplicitVRLittleEndian
            elif name == "big endian":
                ds.is_little_endian, ds.file_meta.TransferSyntaxUID = False, pydicom.uid.ExplicitVRBigEndian
            else:
                ours = ds.private_block(0x0071, "TOMONODE SINOGRAM 1")
                elements = [(n, ours[n].VR, ours[n].value) for n in range(256) if n in ours]
                for tag in [e.tag for e in ds.group_dataset(0x0071)]:
                    del ds[tag]
                ds.private_block(0x0071, "SOMEBODY ELSE", create=True).add_new(0x01, "LO", "INTERFILE_9")
                ours = ds.private_block(0x0071, "TOMONODE SINOGRAM 1", create=True)
                for number, vr, value in elements:
                    ours.add_new(number, vr, value)
            ds.save_as(os.path.join(out, f"{i}.dcm"), write_like_original=False)
        tools.run("export", "--force", "-o", os.path.join(folder, "back.hs"), out)
        tools.check(h.read_file(os.path.join(folder, "back.s"), "rb") == data, f"{name}: not the same bytes", failures)


def test_bad_headers_and_options_are_refused(folder, failures):
    header = os.path.join(folder, "bad.hs")
    made_header(header, "float", 4, "LITTLEENDIAN", True)
    text = h.read_file(header)
    cases = (("!matrix size [1] := 9", "!matrix size [1] := 10", 4, "bad.s has 1512 bytes; its header requires 1680"),
             ("Emission", "Image", 4, "number of dimensions := 4; an image has 3"),
             ("float", "complex", 4, "number format := complex"))
    for before, after, code, says in cases:
        h.write_file(header, text.replace(before, after))
        done = imported(os.path.join(folder, "bad"), header, ok=(code,))
        tools.check(says in done.stderr, f"{after}: {done.stderr}", failures)
    h.write_file(header, text)
    for options, code, says in ((("--set", "PatientPosition=XYZ"), 2, "allowed: HFS"),
                                (("--like", header), 4, f"--like {header}: no \"DICM\" at offset 128: not a DICOM"),
                                (("--chunk", "0"), 2, "--chunk 0"),
                                (("--additive", os.path.join(folder, "nothing.hs")), 8, "cannot open")):
        done = imported(os.path.join(folder, "bad"), header, *options, basics=(), ok=(code,))
        tools.check(says in done.stderr, f"{options}: {done.stderr}", failures)
    tools.check(not os.path.exists(os.path.join(folder, "bad")), "something is left of what was refused", failures)
    tools.run("import", header, ok=(2,))
    # rings unknown to the header: the node's configuration may know them
    h.write_file(header, re.sub("Number of rings.*\n", "", text))
    done = imported(os.path.join(folder, "open"), header)
    tools.check("the header lacks: number of rings" in done.stderr, f"no rings: {done.stderr}", failures)
    imported(os.path.join(folder, "unknown"), header, basics=BASICS + ("Manufacturer=ACME",
                                                                       "ManufacturerModelName=Ring 7"))
    done = tools.run("recon", "--protocol", "pet-osem", "-o", os.path.join(folder, "image"),
                     *glob.glob(os.path.join(folder, "unknown", "*.dcm")),
                     ok=(4, 7))
    tools.check('matches manufacturer "ACME" and model "Ring 7"' in done.stdout + done.stderr,
                f"an unknown scanner: {done.stdout}{done.stderr}", failures)
    done = tools.run("import", header, "--json", "-o", os.path.join(folder, "open"))
    for word in ("PatientPosition", "AcquisitionDate", "ActualFrameDuration", "half-life"):
        tools.check(word in done.stdout, f"no warning of {word}: {done.stdout}", failures)


def test_output_folders(folder, failures):
    """Parents are made; a folder that has files is named; a file in the way refuses."""
    header, out = os.path.join(folder, "out.hs"), os.path.join(folder, "new", "deep", "out")
    made_header(header, "float", 4, "LITTLEENDIAN", True)
    done = imported(out, header)
    tools.check(not done.stderr and os.listdir(out) == ["emission.dcm"], f"a new folder: {done.stderr}", failures)
    done = imported(out, header)
    tools.check("deep/out is not empty (1 file)" in done.stderr and os.listdir(out) == ["emission.dcm"],
                f"a folder with files: {done.stderr}", failures)
    done = imported(os.path.join(header, "out"), header, ok=(1,))
    tools.check("out.hs is not a folder" in done.stderr, f"a file in the way: {done.stderr}", failures)
