# SPDX-License-Identifier: Apache-2.0
"""Slices in Hologic SCO objects by an independent writer: `tomonode export` and `measure` give what they give for a
Breast Tomosynthesis Image with the same pixels, in every encoding, orientation and resolution; each damaged field has a
sentence of its own; what the object does not have must be stated, and what it does not prove is said."""
import copy
import json
import os
import struct

import numpy as np
import pytest
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from pydicom.uid import generate_uid

from tools import dbt_tools as tools
from tools import hologic_tools as hologic

CONSENT = 'profiles = ( { name = "hologic-dimensions"; sco = true; } );\n'
BITS = 10
OPPOSITE = str.maketrans("APLRHF", "PARLFH")


class Nifti:
    def __init__(self, path):
        with open(path, "rb") as f:
            raw = f.read()
        dim = struct.unpack_from("<8h", raw, 40)
        assert raw[344:348] == b"n+1\0" and dim[0] == 3 and raw[123] == 2, dim
        assert struct.unpack_from("<h", raw, 254)[0] == 1, "no sform"
        self.values = np.frombuffer(raw, "<f4", offset=352).reshape(dim[3], dim[2], dim[1])
        self.voxel = np.array(struct.unpack_from("<3f", raw, 80))
        self.matrix = np.array(struct.unpack_from("<12f", raw, 280)).reshape(3, 4)
        self.window = struct.unpack_from("<2f", raw, 124)[::-1]

    def steps(self):
        return self.matrix[:, :3]


def save(ds, folder, name):
    path = os.path.join(folder, name)
    ds.save_as(path, write_like_original=False)
    return path


def write_config(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def export(folder, name, path, *options):
    out = os.path.join(folder, name + ".nii")
    said = json.loads(tools.run("export", "--json", "-o", out, *options, path).stdout)
    assert said["ok"], said
    return said, Nifti(out)


def letters(step):
    """A direction in the patient as Patient Orientation has it."""
    cosines = step / np.linalg.norm(step)
    return "".join(pair[0 if cosines[a] > 0 else 1] for a,
                   pair in ((2, "HF"), (0, "LR"), (1, "PA")) if abs(cosines[a]) > 0.3)


class Volume:
    """The slices of a reconstruction with values of 10 bits: as a Breast Tomosynthesis Image without meaning of its
    values, and as what an SCO object of them has."""

    def __init__(self, folder, side, view):
        self.folder = folder
        truth = tools.simulate(os.path.join(folder, "exam"), system="hologic-dimensions", phantom="beads", binning=8,
                               detector="896x1280", views=9, arc=15,
                               i0=1000, side=side, view=view)
        _, path = tools.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"),
                                    settings=("voxel=0.56", "projector=slices", "algorithm=mlem", "iterations=2",
                                              "breast_mask=false"))
        self.result = tools.Result(path)
        self.beads = [s["patient_mm"] for s in truth["shapes"] if s["role"] == "bead"]
        mu = self.result.mu
        self.slices = np.clip(np.rint(mu * (900 / mu.max())), 0, 1023).astype(np.uint16)
        assert self.slices.max() > 512
        self.step = [self.result.spacing[1], self.result.spacing[0], float(np.linalg.norm(self.result.slice_step))]
        self.voxel = ",".join(f"{v:.9g}" for v in self.step)
        self.gantry = 45.0 if view == "MLO" else 0.0
        self.source = self.result.ds
        self.orientation = [letters(self.result.column_step), letters(self.result.row_step)]
        self.high = hologic.container(self.slices, BITS, folder)
        self.low = hologic.container(self.slices[:, ::2, ::2], BITS, folder)

    def shown(self):
        """The values between which the reconstruction is displayed grey, in 1/mm."""
        shared = self.source.SharedFunctionalGroupsSequence[0]
        window, mapping = shared.FrameVOILUTSequence[0], shared.RealWorldValueMappingSequence[0]
        center, width = float(window.WindowCenter), float(window.WindowWidth)
        intercept, slope = float(mapping.RealWorldValueIntercept), float(mapping.RealWorldValueSlope)
        return [intercept + slope * (center - 0.5 + side * (width - 1) / 2) for side in (-1, 1)]

    def standard(self):
        """The Breast Tomosynthesis Image with the same pixels: the meaning of its values is removed."""
        ds = copy.deepcopy(self.source)
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = generate_uid()
        shared = ds.SharedFunctionalGroupsSequence[0]
        del shared.RealWorldValueMappingSequence
        shared.FrameVOILUTSequence[0].WindowCenter, shared.FrameVOILUTSequence[0].WindowWidth = 512, 512
        ds.PixelData = self.slices.tobytes()
        return ds

    def sco(self, **options):
        return hologic.sco_slices(self.source, **{"high": self.high, "low": self.low, "orientation": self.orientation,
                                                  "gantry": self.gantry,
                                                  **options})


WAYS = {"sequence": {}, "defined": {"vr": "UN", "pieces": 1}, "undefined": {"vr": "UN..."},
        "implicit": {"implicit": True, "low": None, "pieces": 7}}


@pytest.mark.parametrize("side, view, ways", [("L", "CC", WAYS), ("R", "MLO", {"sequence": {"pieces": 2}})],
                         ids=["L CC", "R MLO"])
def test_slices_are_as_a_breast_tomosynthesis_image(folder, failures, side, view, ways):
    conf = write_config(folder, "conf", CONSENT)
    volume = Volume(folder, side, view)
    _, own = export(folder, "own", os.path.join(folder, "out"), *())
    tools.check(np.allclose(own.values, volume.result.mu, rtol=1e-6, atol=1e-9), "export of the reconstruction: values",
                failures)
    low, high = volume.shown()
    tools.check(np.allclose(own.window, (low, high), rtol=1e-6), f"window {own.window} instead of {low}, {high}",
                failures)
    _, want = export(folder, "standard", save(volume.standard(), folder, "standard.dcm"))
    tools.check(np.array_equal(want.values, volume.slices), "export of the Breast Tomosynthesis Image: values",
                failures)
    corner = want.matrix[:, 3] * (-1, -1, 1)
    tools.check(np.abs(corner - volume.result.patient(0, 0, 0)).max() < 1e-3, f"its position: {corner}", failures)
    for name, options in ways.items():
        said, got = export(folder, name, save(volume.sco(**options), folder, name + ".dcm"), "-c", conf, "--voxel",
                           volume.voxel)
        same = (np.array_equal(got.values, want.values) and np.allclose(got.steps(), want.steps(), atol=1e-5)
                and np.allclose(got.voxel, want.voxel) and got.window == want.window == (256.0, 767.0))
        tools.check(same, f"{name}: not as the Breast Tomosynthesis Image {got.window} {want.window}", failures)
        words = (f"({side} {view})", "in full resolution", "lowest slice, at the breast support", "without a unit",
                 "56 mm")
        tools.check(said["units"] == "" and all(w in said["warnings"] for w in words), f"{name}: {said}", failures)
    check_origin(volume, want, got, failures)
    check_spacing(volume, failures)
    check_turned(volume, got, conf, failures)
    check_lower(volume, want, conf, failures)
    check_figures(volume, conf, failures)


def check_origin(volume, want, got, failures):
    """The origin is the middle of the edge at the chest wall of the lowest slice: x = 0 of the scan, which is A in
    every view."""
    k, rows, columns = got.values.shape
    toward_chest = got.steps()[1, 0] < 0  # columns run to the back
    edge, middle = columns - 0.5 if toward_chest else -0.5, (rows - 1) / 2
    at = got.matrix @ (edge, middle, 0, 1)
    tools.check(np.abs(at).max() < 1e-3 and k > 10, f"the origin is at {at}", failures)
    tools.check(np.abs(want.matrix[:, 3] - got.matrix[:, 3]).max() > 1, "the test does not see the position", failures)


def check_spacing(volume, failures):
    """Slices at other distances, or one slice of unknown thickness, are no volume."""
    out, ds = os.path.join(volume.folder, "none.nii"), volume.standard()
    frames = ds.PerFrameFunctionalGroupsSequence
    for frame in frames[3:]:
        plane = frame.PlanePositionSequence[0]
        plane.ImagePositionPatient = list(np.array(plane.ImagePositionPatient, float) + 0.2 * volume.result.slice_step)
    done = tools.run("export", "-o", out, save(ds, volume.folder, "gap.dcm"), ok=(4,))
    tools.check("gap.dcm" in done.stderr and "away from its position" in done.stderr, done.stderr, failures)
    ds.NumberOfFrames, ds.PerFrameFunctionalGroupsSequence, ds.PixelData = 1, frames[:1], volume.slices[0].tobytes()
    path = save(ds, volume.folder, "single.dcm")
    _, got = export(volume.folder, "single", path)
    tools.check(got.values.shape[0] == 1 and abs(got.voxel[2] - volume.step[2]) < 1e-4, f"one slice: {got.voxel}",
                failures)
    del ds.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].SliceThickness
    done = tools.run("export", "-o", out, save(ds, volume.folder, "single.dcm"), ok=(4,))
    tools.check("that of a single slice is (0018,0050)" in done.stderr, done.stderr, failures)
    done = tools.run("export", "-o", os.path.join(volume.folder, "none.hv"),
                     save(volume.standard(), volume.folder, "whole.dcm"), ok=(4,))
    tools.check("whole.dcm: Interfile has no directions" in done.stderr
                and not os.path.exists(os.path.join(volume.folder, "none.v")),
                done.stderr, failures)
    done = tools.run("export", "-o", out, "--voxel", "1,1,1", path, ok=(4,))
    tools.check("this object has the size of its voxels" in done.stderr, done.stderr, failures)


def check_turned(volume, want, conf, failures):
    """The same volume with frames turned by 180 degrees, as the header seen had them: each value at the same point of
    the patient."""
    turned = np.ascontiguousarray(volume.slices[:, ::-1, ::-1])
    ds = volume.sco(high=hologic.container(turned, BITS, volume.folder),
                    orientation=[d.translate(OPPOSITE) for d in volume.orientation])
    _, got = export(volume.folder, "turned", save(ds, volume.folder, "turned.dcm"), "-c", conf, "--voxel", volume.voxel)
    to_want = np.linalg.solve(want.steps(), got.steps())
    shift = np.linalg.solve(want.steps(), got.matrix[:, 3] - want.matrix[:, 3])
    k, rows, columns = got.values.shape
    expected = np.array([[-1, 0, 0, columns - 1], [0, -1, 0, rows - 1], [0, 0, 1, 0]])
    found = np.column_stack([to_want, shift])
    tools.check(np.abs(found - expected).max() < 1e-3 and np.array_equal(got.values[:, ::-1, ::-1], want.values),
                f"turned: {found}", failures)


def check_lower(volume, want, conf, failures):
    half = f"{2 * volume.step[0]:.9g},{2 * volume.step[1]:.9g},{volume.step[2]:.9g}"
    said, got = export(volume.folder, "low", save(volume.sco(high=None), volume.folder, "low.dcm"), "-c", conf,
                       "--voxel", half)
    tools.check(np.array_equal(got.values, want.values[:, ::2, ::2])
                and np.allclose(got.voxel[:2], 2 * want.voxel[:2], rtol=1e-6),
                "lower resolution: values or voxels", failures)
    tools.check("in lower resolution" in said["warnings"], said, failures)


def rounded(value):
    if isinstance(value, (list, dict)):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: rounded(v) for key, v in parts}
    return round(value, 6) if isinstance(value, float) else value


def check_figures(volume, conf, failures):
    """`measure` of a bead and of a region, at places of the truth: as in the Breast Tomosynthesis Image."""
    k, r, c = volume.result.index(volume.beads[0])
    options = ("--point", f"bead={c + 1:.2f},{r + 1:.2f},{round(k) + 1}", "--region", f"tissue=50,80,{round(k) + 1},3")
    want = json.loads(tools.run("measure", "--json", *options, os.path.join(volume.folder, "standard.dcm")).stdout)
    got = json.loads(tools.run("measure", "--json", "-c", conf, "--voxel", volume.voxel, *options,
                               os.path.join(volume.folder, "sequence.dcm")).stdout)
    for kind in ("points", "regions"):
        tools.check(rounded(got[kind]) == rounded(want[kind]) and got[kind],
                    f"{kind}: {got[kind]} instead of {want[kind]}", failures)
    tools.check(got["points"][0]["found"] and abs(got["points"][0]["at"][0] - c) < 1.5, f"the bead: {got['points'][0]}",
                failures)
    tools.check("without a unit" in got["warnings"] and want["warnings"] == "", "warnings of measure", failures)


def changed(content, at, form, *values):
    data = bytearray(content)
    struct.pack_into(form, data, at if at >= 0 else len(data) + at, *values)
    return bytes(data)


def header_of_slices():
    """What sco_slices() takes from a Breast Tomosynthesis Image."""
    anatomy, shared, code, ds = Dataset(), Dataset(), Dataset(), Dataset()
    anatomy.FrameLaterality = "L"
    shared.FrameAnatomySequence = Sequence([anatomy])
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "R-10242", "SNM3", "cranio-caudal"
    ds.ViewCodeSequence, ds.SharedFunctionalGroupsSequence = Sequence([code]), Sequence([shared])
    ds.StudyInstanceUID, ds.PatientID, ds.DeviceSerialNumber = generate_uid(), "P", "1"
    return ds


def test_each_refusal_has_its_reason(folder, failures):
    conf, plain = write_config(folder, "conf", CONSENT), write_config(folder, "plain", "\n")
    rng = np.random.default_rng(4)
    frames = rng.integers(0, 1024, (5, 40, 30)).astype(np.uint16)
    good = hologic.container(frames, BITS, folder)
    header = header_of_slices()
    first, second = struct.unpack_from("<II", good, len(good) - 1024)
    last = struct.unpack_from("<5I", good, len(good) - 1024 + 4)[-1]

    def refused(ds, part, *options, command="export", voxel="0.1,0.1,1"):
        out = os.path.join(folder, "none.nii")
        args = ("-o", out) if command == "export" else ("--point", "a=3,3,1")
        done = tools.run(command, *args, "-c", conf, *(("--voxel", voxel) if voxel else ()), *options,
                         save(ds, folder, "damaged.dcm"),
                         ok=range(1, 100))
        tools.check(part in done.stderr, f"'{part}' is not in: {done.stderr[:600]}", failures)
        tools.check("damaged.dcm" in done.stderr or "no PET" in done.stderr, f"no file in: {done.stderr[:300]}",
                    failures)
        tools.check(not os.path.exists(out), f"{part}: a file is left", failures)

    def slices(high=good, **options):
        return hologic.sco_slices(header, **{"high": high, "orientation": ["P", "L"], **options})

    table = -1024
    for content, part in (
            (hologic.container(frames, BITS, folder, near=2), "compressed with loss: NEAR is 2"),
            (changed(good, table + 8, "<I", second + 9), "frame 2: "),
            (good[:second] + bytes(last - second) + good[last:], "frame 2: ")):
        refused(slices(content), part)
    wide = changed(good, 28, "<H", 41)
    refused(slices(wide), "frame 1: ")
    no_side = slices()
    no_side.Laterality = ""
    for ds, part in (
            (slices(None), "no images in full resolution in (7E01,xx10)"),
            (slices(orientation=["P", "H"]), "rows toward H are impossible in this view"),
            (slices(orientation=["L", "P"]), "columns toward L are not supported"),
            (slices(orientation=None), "Patient Orientation (0020,0020) is missing"),
            (no_side, "laterality (0020,0062)")):
        refused(ds, part)
    refused(slices(), "state the voxels with --voxel COLUMN,ROW,SLICE", voxel=None)
    refused(slices(), "state the voxels with --voxel COLUMN,ROW,SLICE", voxel=None, command="measure")
    refused(slices(), "has sco = true", "-c", plain)
    refused(slices(), "--truth needs positions", "--truth", "/dev/null", command="measure")
    other = slices()
    other.Manufacturer = "NOBODY"
    refused(other, "no geometry profile for manufacturer 'NOBODY'")
    path, out = save(slices(), folder, "one.dcm"), os.path.join(folder, "none.nii")
    for voxel in ("0.1,0.1", "0.1,0.1,0", "0.1,0.1,nan", "0.1,0.1,1,1", "21,1,1"):
        done = tools.run("export", "-o", out, "--voxel", voxel, path, ok=(2,))
        tools.check("--voxel" in done.stderr, done.stderr, failures)
    done = tools.run("export", "-o", out, "-c", conf, "--voxel", "0.1,0.1,1", path, save(slices(), folder, "two.dcm"),
                     ok=(4,))
    tools.check("choose it with --series NAME" in done.stderr, done.stderr, failures)
    done = tools.run("recon", "-o", os.path.join(folder, "none"), "-c", conf, path, ok=range(1, 100))
    tools.check("already reconstructed by the modality; `tomonode export` converts them" in done.stdout + done.stderr,
                done.stderr, failures)
