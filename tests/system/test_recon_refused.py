# SPDX-License-Identifier: Apache-2.0
"""`tomonode recon` on exams that are wrong in one thing each: refused with exit code 4 and a sentence that names the
cause, on stderr and in the JSON summary, with no result and nothing of the patient in it."""
import json
import os
import shutil
import struct

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset

from tools import dbt_tools as tools
from tools import python_exam as maker
from tools.edits import edited, edited_all
from tools.node_harness import read_file, write_file

PATIENT = ("PYTHON", "19601130", "OPERATOR", "SECRET-7")


def change_one(folder, change, name="3.dcm"):
    edited(os.path.join(folder, name), os.path.join(folder, name), change)


def put(**values):
    """A change that sets attributes; None removes one."""
    def change(ds):
        for keyword, value in values.items():
            if value is not None:
                setattr(ds, keyword, value)
            elif keyword in ds:  # not every kind of object has it
                delattr(ds, keyword)
    return change


def raw_text(tag, keyword, text):
    """A change that puts bytes that pydicom would not write: a decimal string that is none."""
    def change(ds):
        ds[keyword] = pydicom.dataelem.RawDataElement(pydicom.tag.Tag(tag), ds[keyword].VR, len(text), text, 0, False,
                                                      True)
    return change


def cut(n):
    """The file ends n bytes early."""
    def spoil(folder):
        path = os.path.join(folder, "3.dcm")
        os.truncate(path, os.path.getsize(path) - n)
    return spoil


def short_pixels(folder):
    """(7FE0,0010) declares fewer bytes than it has."""
    path = os.path.join(folder, "3.dcm")
    data = read_file(path, "rb")
    at = data.rindex(b"\xe0\x7f\x10\x00OW\0\0") + 8
    write_file(path, data[:at] + struct.pack("<I", 1000) + data[at + 4:])


def swollen(folder):
    """Three headers with a private sequence of 335 000 elements each: legal one by one, too much to keep open
    together."""
    item = b"".join(struct.pack("<HH2sHH", 0x0027, 0x1000 + k, b"US", 2, 1) for k in range(39))
    item = (struct.pack("<HHI", 0xFFFE, 0xE000, len(item)) + item) * 8600
    block = struct.pack("<HH2sH2s", 0x0027, 0x0010, b"LO", 2, b"XX")
    block += struct.pack("<HH2sHI", 0x0027, 0x1001, b"SQ", 0, len(item)) + item
    for name in ("0.dcm", "1.dcm", "2.dcm"):
        path = os.path.join(folder, name)
        data = read_file(path, "rb")
        at = data.index(b"\x28\x00\x02\x00US")  # Samples per Pixel, the first element above group 0027
        write_file(path, data[:at] + block + data[at:])


def every(*changes):
    return lambda folder: [edited_all(folder, folder, c) for c in changes]


def one(*changes):
    return lambda folder: [change_one(folder, c) for c in changes]


def frame(keyword, value, group="IsocenterReferenceSystemSequence", index=2):
    """A change of one frame of a multi-frame object; None removes the attribute."""
    def change(ds):
        item = ds.PerFrameFunctionalGroupsSequence[index]
        put(**{keyword: value})(item[group][0])
    return one_multi(change)


def one_multi(change):
    return lambda folder: change_one(folder, change, "exam.dcm")


def two_manufacturers(ds):
    ds.SpecificCharacterSet = "ISO_IR 100"
    ds.Manufacturer = "M\u00fcller"


def table(change=lambda v: v, entries=65536, first=0, bits=16, vr="OW", implicit=False):
    """A change that puts a Modality LUT Sequence in the place of slope and intercept: change(v) for each value."""
    def put_table(ds):
        values = np.array([change(v) for v in range(first, first + entries)], "<u2" if bits > 8 else "u1")
        item = Dataset()
        item.add_new("LUTDescriptor", "US", [entries % 65536, first, bits])
        item.ModalityLUTType = "US"
        if vr == "US":
            item.add_new("LUTData", "US", [int(v) for v in values])
        else:
            item.add_new("LUTData", vr, values.tobytes())
        ds.ModalityLUTSequence = [item]
        put(RescaleSlope=None, RescaleIntercept=None, RescaleType=None)(ds)
        if implicit:
            ds.file_meta.TransferSyntaxUID, ds.is_implicit_VR = pydicom.uid.ImplicitVRLittleEndian, True
    return put_table


def empty_table(ds):
    table()(ds)
    del ds.ModalityLUTSequence[0].LUTData


def to_bytes(ds):
    """Pixels of 8 bits."""
    ds.PixelData = np.minimum(ds.pixel_array >> 6, 255).astype("u1").tobytes()
    ds["PixelData"].VR = "OB"
    put(BitsAllocated=8, BitsStored=8, HighBit=7)(ds)


# name, what is done to a good exam, what the sentence says
SERIES = [
    ("cut in the pixels", cut(5000), "(7FE0,0010)"),
    ("cut in the header", lambda f: os.truncate(os.path.join(f, "3.dcm"), 900), "offset"),
    ("pixel length too small", short_pixels, "at offset"),
    ("rows beyond the pixels", every(put(Rows=60000)), "(7FE0,0010)"),
    ("no rows", every(put(Rows=0)), "0 rows"),
    ("no pixel data", every(put(PixelData=None)), "(7FE0,0010)"),
    ("a thickness that is no number", every(raw_text(0x001811A0, "BodyPartThickness", b"nan ")), "(0018,11A0)"),
    ("a pitch of zero", every(put(ImagerPixelSpacing=[0, 0])), "(0018,1164)"),
    ("no angle", one(put(PositionerPrimaryAngle=None)), "(0018,1510)"),
    ("two equal angles", one(put(PositionerPrimaryAngle=maker.ANGLES[0])), "two projections at the same angle"),
    ("swollen headers", swollen, "more than 1000000 elements"),
    ("a thickness of another exam", one(put(BodyPartThickness=32)), "from another exam"),
    ("a machine of another exam", one(put(DeviceSerialNumber="4712")), "from another exam"),
    ("no sign", every(put(PixelIntensityRelationshipSign=None)), "(0028,1041)"),
    ("both breasts", every(put(ImageLaterality="B")), "laterality"),
    ("no view", every(put(ViewCodeSequence=None)), "the view is missing"),
    ("no study", every(put(StudyInstanceUID=None)), "Study Instance UID (0020,000D) is missing"),
    ("no manufacturer", every(put(Manufacturer=None)), "no geometry profile"),
    ("a manufacturer beyond ASCII", every(two_manufacturers), "no geometry profile"),
    ("a table that inverts", every(table(lambda v: 65535 - v)), "(0028,3000): the table maps the stored value 0 to 65535"),
    ("a table that changes one value", one(table(lambda v: v + (v == 9))), "3.dcm: Modality LUT Sequence (0028,3000): the "
     "table maps the stored value 9 to 10"),
    ("a table that ends early", every(table(entries=4096, vr="US")), "the stored value 4096 to 4095"),
    ("a table that begins late", every(table(entries=65535, first=1)), "the stored value 0 to 1"),
    ("a table of bytes", every(to_bytes, table(lambda v: v // 2, 256, bits=8)), "the stored value 1 to 0"),
    ("a table without data", every(empty_table), "the table has no LUT Descriptor (0028,3002) or no LUT Data (0028,3006)"),
    ("a table with too few data", every(table(), lambda ds: setattr(ds.ModalityLUTSequence[0], "LUTData", bytes(100))),
     "65536 entries (0028,3002), but 50 words"),
]
MULTI = [
    ("no frames", one_multi(put(NumberOfFrames=0)), "0 frames"),
    ("more frames than pixels", one_multi(put(NumberOfFrames=4000)), "(7FE0,0010)"),
    ("an angle that is not a number", frame("XRaySourceIsocenterPrimaryAngle", float("nan")), "not a finite number"),
    ("a frame with another relationship",
     frame("PixelIntensityRelationship", "LOG", "FramePixelDataPropertiesSequence"),
     "(0028,1040)"),
    ("a table", one_multi(table(lambda v: v // 2)), "(0028,3000)"),
    ("a support that turns", frame("BreastSupportIsocenterPrimaryAngle", 20.0), "(0018,9545)"),
]


@pytest.fixture(scope="module")
def exams():
    """A good series, a good multi-frame object, and their configuration, in a folder."""
    with tools.folder() as work:
        write_file(os.path.join(work, "conf"), maker.CONFIG)
        for name in ("series", "multi"):
            os.mkdir(os.path.join(work, name))
            maker.write(os.path.join(work, name), "L", "CC", 1, -1, 0, name == "multi", (64, 80))
            edited_all(os.path.join(work, name), os.path.join(work, name), PatientID="SECRET-7")
        yield work


def recon(exams, folder, spoilt, code):
    return tools.run("recon", "--json", "-c", os.path.join(exams, "conf"), "--device", "cpu", "--set", "voxel=2.04",
                     "-o", os.path.join(folder, "out"), spoilt, ok=(code,))


SLOW = pytest.mark.tier2("a million elements")
CASES = [pytest.param(kind, spoil, text, id=f"{kind}: {name}", marks=SLOW if spoil is swollen else ()) for kind,
         cases in (("series", SERIES), ("multi", MULTI))
         for name, spoil, text in cases]


@pytest.mark.parametrize("kind, spoil, sentence", CASES)
def test_refuses_what_is_wrong_in_one_thing(folder, failures, exams, kind, spoil, sentence):
    spoilt = os.path.join(folder, "spoilt")
    shutil.copytree(os.path.join(exams, kind), spoilt)
    spoil(spoilt)
    done = recon(exams, folder, spoilt, 4)
    summary = json.loads(done.stdout)
    reasons = [r["reason"] for r in summary["refused"]]
    tools.check(sentence in done.stderr and any(sentence in r for r in reasons),
                f"no '{sentence}' in: {reasons}, {done.stderr}", failures)
    made = [c["file"] for c in summary["cases"]]
    tools.check(not made and not os.path.isdir(os.path.join(folder, "out")), f"a result all the same: {made}", failures)
    tools.check(not any(word in done.stdout + done.stderr for word in PATIENT),
                f"the patient is in the output: {done.stderr}", failures)


def test_two_studies_of_one_series_are_two_cases(folder, failures, exams):
    """None of them is whole."""
    both = os.path.join(folder, "two studies")
    shutil.copytree(os.path.join(exams, "series"), both)
    change_one(both, put(StudyInstanceUID=pydicom.uid.generate_uid()))
    reasons = [r["reason"] for r in json.loads(recon(exams, folder, both, 4).stdout)["refused"]]
    tools.check(len(reasons) == 2 and any("9 projections are present" in r for r in reasons), f"{reasons}", failures)


@pytest.mark.parametrize("frames", [1, 5])
def test_frames_of_reference_of_one_series_are_one_sentence(folder, exams, frames):
    spoilt, uids = os.path.join(folder, "frames"), {}
    shutil.copytree(os.path.join(exams, "series"), spoilt)
    for name in os.listdir(spoilt):
        new = uids.setdefault(int(name.split(".")[0]) // frames, pydicom.uid.generate_uid())
        change_one(spoilt, put(FrameOfReferenceUID=new), name)
    reasons = [r["reason"] for r in json.loads(recon(exams, folder, spoilt, 4).stdout)["refused"]]
    n = len(maker.ANGLES)
    assert len(reasons) == 1 and reasons[0].startswith(
        f"{n} files of one series have {n // frames} frames of reference (0020,0052), each of which is a case: "
        f"{frames} projection"), reasons


def test_the_good_exams_are_accepted(folder, exams):
    """So that what is refused is refused for its one thing."""
    for kind in ("series", "multi"):
        recon(exams, folder, os.path.join(exams, kind), 0)


@pytest.mark.parametrize("name, change", [
    ("words", table()), ("implicit VR", table(implicit=True)), ("bytes", table(entries=256, bits=8)),
    ("bytes in words", table(entries=256))])
def test_a_table_that_changes_no_value_is_accepted(folder, exams, name, change):
    results = []
    for k, changes in enumerate(([], [change])):
        exam, out = os.path.join(folder, f"exam{k}"), os.path.join(folder, str(k))
        shutil.copytree(os.path.join(exams, "series"), exam)
        every(*([to_bytes] if name.startswith("bytes") else []), *changes)(exam)
        recon(exams, out, exam, 0)
        path, = (os.path.join(out, "out", f) for f in os.listdir(os.path.join(out, "out")) if f.endswith(".dcm"))
        results.append(pydicom.dcmread(path).PixelData)
    assert results[0] == results[1]
