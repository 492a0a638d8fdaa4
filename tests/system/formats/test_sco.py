# SPDX-License-Identifier: Apache-2.0
"""Hologic SCO objects by an independent writer: projections give the slices of the same exam in a Breast Projection
object, bit by bit, in every encoding of the private sequence, and in lower resolution; damage has a
sentence; without the consent of the profile, and for slices, the reason is told; and the
same through a node, from storescu to the archive."""
import copy
import os
import struct

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import hologic_tools as hologic
from tools import node_harness as h

PROFILE = """profiles = ( {{ name = "hologic"; manufacturer = "HOLOGIC*"; model = "*Dimensions*";
  axis_height = 0.0; source_axis = 695.1; support = 25.0; source_x = -13.7; pitch = 0.14; detector_ratio = 0.285;
  detector_axis_y = 0.3; i0_mode = "percentile"; i0 = 95.0; sid_tolerance = 6.0; angle_sign = -1;
  geometry_source = "simulated"; {more} }} );
"""
SETTINGS = ("voxel=0.56", "projector=slices", "algorithm=mlem", "iterations=1", "breast_mask=false")
DETECTOR = hologic.Detector(0.0, 695.1, -13.7, 0.285, 0.3, 0.28)
BITS = 14
PITCH = 0.14
WHOLE = "elements_x = 224; elements_y = 320;"  # the detector of the exam


def config(folder, name, more=""):
    path = os.path.join(folder, name)
    h.write_file(path, PROFILE.format(more=more))
    return path


def save(ds, folder, name):
    path = os.path.join(folder, name)
    ds.save_as(path, write_like_original=False)
    return path


def merged(frames):
    """Frames of bins of 2 x 2."""
    parts = frames[:, ::2, ::2].astype(int) + frames[:, 1::2, ::2] + frames[:, ::2, 1::2] + frames[:, 1::2, 1::2]
    return (parts // 4).astype(np.uint16)


class Exam:
    """A simulated exam of bins of 2 x 2 elements, and what an SCO object of it holds."""

    def __init__(self, folder, plain, side, view):
        self.folder = folder
        tools.simulate(os.path.join(folder, "exam"), config=plain, system="hologic", phantom="beads", binning=2,
                       detector="224x320",
                       views=9, arc=15, i0=1000, seed=3, side=side, view=view, format="bp")
        self.path = os.path.join(folder, "exam", "exam.dcm")
        self.source = pydicom.dcmread(self.path)
        self.frames = self.source.pixel_array
        assert self.frames.max() < 1 << BITS
        self.gantry = 45.0 if view == "MLO" else 0.0
        self.text = hologic.matrices_text(DETECTOR, hologic.frame_angles(self.source), digits=6)
        self.high = hologic.container(self.frames, BITS, folder)
        self.coarse = merged(self.frames)
        self.low = hologic.container(self.coarse, BITS, folder)

    def coarse_plain(self):
        """The Breast Projection object of bins of twice the size."""
        ds = copy.deepcopy(self.source)
        ds.Rows, ds.Columns, ds.PixelData = *self.coarse.shape[1:], self.coarse.tobytes()
        for part in (ds, *(e for e in ds.iterall() if e.VR == "SQ")):
            for item in [part] if part is ds else part.value:
                if "ImagerPixelSpacing" in item:
                    item.ImagerPixelSpacing = [4 * PITCH, 4 * PITCH]
                if "DetectorBinning" in item:
                    item.DetectorBinning = [4, 4]
        return ds

    def sco(self, **options):
        given = {"high": self.high, "low": self.low, "text": self.text, "gantry": self.gantry, **options}
        return hologic.sco(self.source, given.pop("kind", "HLXR"), **given)


def slices(folder, name, path, conf):
    _, result = tools.reconstruct(os.path.join(folder, "out-" + name), path, config=conf, settings=SETTINGS)
    return tools.Result(result).mu


WAYS = {"sequence": {}, "defined": {"vr": "UN", "pieces": 1}, "undefined": {"vr": "UN..."},
        "implicit": {"implicit": True, "low": None}}


@pytest.mark.parametrize("side, view, ways", [("R", "CC", WAYS), ("L", "MLO", {"sequence": {"pieces": 7}})],
                         ids=["R CC", "L MLO"])
def test_projections_give_the_slices_of_the_plain_exam(folder, failures, side, view, ways):
    plain, consent = config(folder, "plain"), config(folder, "consent", "sco = true;")
    exam = Exam(folder, plain, side, view)
    want = slices(folder, "plain", exam.path, plain)
    for name, options in ways.items():
        got = slices(folder, name, save(exam.sco(**options), folder, name + ".dcm"), consent)
        tools.check(np.array_equal(got, want), f"{name}: slices differ by up to {abs(got - want).max()}", failures)
    by_matrix = slices(folder, "matrix", save(exam.sco(), folder, "matrix.dcm"),
                       config(folder, "header", 'sco = true; pose = "header";'))
    off = np.percentile(abs(by_matrix - want), 99.99) / np.median(want)
    print(f"{', '.join(ways)} equal; by matrices slices differ by {off:.4f} of the tissue")
    tools.check(off < 0.02, f"by matrices slices differ by {off:.4f}", failures)


def test_lower_resolution(folder, failures):
    """Alone, of the whole detector: as the plain exam of bins of twice the size; the size is said to be assumed."""
    exam = Exam(folder, config(folder, "plain", WHOLE), "L", "CC")
    consent = config(folder, "consent", "sco = true;" + WHOLE)
    want = slices(folder, "plain", save(exam.coarse_plain(), folder, "coarse.dcm"), config(folder, "plain", WHOLE))
    path = save(exam.sco(high=None), folder, "low.dcm")
    case, result = tools.reconstruct(os.path.join(folder, "out"), path, config=consent, settings=SETTINGS)
    got = tools.Result(result).mu
    tools.check(np.array_equal(got, want), f"slices differ by up to {abs(got - want).max()}", failures)
    tools.check("lower resolution, (7E01,xx11): the size of a bin, 0.56 mm" in str(case), str(case)[:900], failures)
    by_matrix = slices(folder, "matrix", path,
                       config(folder, "header", 'sco = true; pose = "header"; pose_level = 0.3;' + WHOLE))
    off = np.percentile(abs(by_matrix - want), 99.99) / np.median(want)
    print(f"by matrices slices differ by {off:.4f} of the tissue")
    tools.check(off < 0.02, f"by matrices slices differ by {off:.4f}", failures)
    both = slices(folder, "both", save(exam.sco(low=hologic.container(exam.frames[:, :40, :30], BITS, folder)), folder,
                                       "both.dcm"), consent)
    tools.check(np.array_equal(both, slices(folder, "full", exam.path, config(folder, "plain", WHOLE))),
                "with both resolutions the full one is read", failures)


def refusal(folder, path, conf):
    done = tools.run("recon", "--json", "-o", os.path.join(folder, "none"), "-c", conf, "--device", "cpu", path,
                     ok=range(1, 100))
    return done.stdout + done.stderr


def changed(content, at, form, *values):
    """The container with numbers at an offset; a negative one counts from its end."""
    data = bytearray(content)
    struct.pack_into(form, data, at if at >= 0 else len(data) + at, *values)
    return bytes(data)


def test_damaged_objects_are_refused(folder, failures):
    """The fields of the container one by one: dicom/pixels/test_sco_container."""
    plain, consent = config(folder, "plain"), config(folder, "consent", "sco = true;")
    exam = Exam(folder, plain, "R", "CC")
    whole = config(folder, "whole", "sco = true;" + WHOLE)
    good, table = exam.high, -1024
    first, second = struct.unpack_from("<II", good, len(good) - 1024)
    last = struct.unpack_from("<9I", good, len(good) - 1024 + 4)[-1]
    cases = (
        ("fewer frames", changed(good, 20, "<H", 8), "9 projection matrices (0019,1060) for 8 frames"),
        ("more frames", changed(good, 20, "<H", 10), "offset 10 of 10 is 0"),
        ("wide", changed(good, 24, "<H", 2240), "2240 columns and 160 rows of 0.28 mm: a detector of 627.2"),
        ("near", changed(good, 36, "<B", 2), "compressed with loss: NEAR is 2"),
        ("short", good[:1000], "an SCO container of 1000 bytes; allowed: at least 1061"),
        ("shifted", changed(good, table + 4, "<I", second + 40), "cannot be decoded"),
        ("zeros", good[:first] + bytes(last - first) + good[last:], "cannot be decoded"),
    )
    for name, content, part in cases:
        said = refusal(folder, save(exam.sco(high=content), folder, "damaged.dcm"), consent)
        tools.check(part in said, f"{name}: '{part}' is not in: {said[:500]}", failures)
    objects = (
        ("off", exam.sco(), plain, "read only if the profile 'hologic' has sco = true"),
        ("none", exam.sco(high=None, low=None), consent, "no images in full resolution in (7E01,xx10)"),
        ("low alone", exam.sco(high=None), consent,
         "the size of its bins is not in the object: it needs elements_y of the profile 'hologic'"),
        ("low of a part", exam.sco(high=None, low=hologic.container(exam.coarse[:, :64], BITS, folder)), whole,
         "56 columns and 64 rows of 2 to 8 times 2 elements do not"),
        ("low, too wide", exam.sco(high=None, low=hologic.container(exam.coarse[:, ::2], BITS, folder)), whole,
         "56 columns and 40 rows of 2 to 8 times 2 elements do not"),
        ("low, damaged", exam.sco(high=None, low=changed(exam.low, 36, "<B", 3)), whole,
         "compressed with loss: NEAR is 3"),
        ("no matrices", exam.sco(text=None), consent, "no projection matrices in (0019,xx60)"),
        ("slices", exam.sco(kind="HLXS"), consent, "contains slices: already reconstructed by the modality"),
        ("unknown", exam.sco(kind="HLXQ"), consent, "undocumented private format"),
        ("not a sequence", wrong_items(exam, b""), consent, "where an item is expected"),
        ("empty items", wrong_items(exam, hologic.sequence_bytes([b"12"]) + item(b"")), consent,
         "item 2: 0 values (7E01,xx12)"),
    )
    wrong = config(folder, "wrong", "sco = true;")
    text = h.read_file(wrong).replace("angle_sign = -1", "angle_sign = 1")
    h.write_file(wrong, text)
    objects += (("sign", exam.sco(), wrong, "check pose_rows and angle_sign of the profile"),)
    for name, ds, conf, part in objects:
        said = refusal(folder, save(ds, folder, "object.dcm"), conf)
        tools.check(part in said, f"{name}: '{part}' is not in: {said[:500]}", failures)


def item(value):
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(value)) + value


def wrong_items(exam, value):
    ds = exam.sco(high=None)
    ds.private_block(0x7E01, hologic.CREATOR).add_new(0x10, "UN", value or b"bytes that are no items ")
    return ds


def test_through_a_node(folder, things, failures):
    """Held while the profile does not allow it; after a change of the configuration and `retry` it goes to the archive.
    Slices are stored as unassigned."""
    exam = Exam(folder, config(folder, "plain"), "L", "CC")
    want = slices(folder, "plain", exam.path, os.path.join(folder, "plain"))
    raw = save(exam.sco(vr="UN"), folder, "raw.dcm")
    volume = save(exam.sco(kind="HLXS"), folder, "volume.dcm")
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    node = h.Node(os.path.join(folder, "node"), pacs.port)
    things += [node, pacs]
    node.protocol = {"algorithm": '"mlem"', "iterations": 1, "voxel": 0.56, "projector": '"slices"',
                     "breast_mask": "false"}
    pacs.start()
    for more in ("", "sco = true;"):
        node.more = PROFILE.format(more=more)
        node.write_conf()
        node.start()
        if not more:
            sent = h.send(node.port, [raw, volume])
            tools.check(sent == {raw, volume}, f"acknowledged: {sent}", failures)
            job = node.wait_states("held")[0]
            tools.check("sco = true" in str(node.show(job["id"])), str(node.show(job["id"]))[:500], failures)
            apart = h.wait_for("the slices are set apart", lambda: node.list()["unassigned"])
            tools.check(apart[0]["classification"] == "refused" and "contains slices" in apart[0]["reason"], str(apart),
                        failures)
        else:
            node.command("retry", job["id"])
            node.wait_states("delivered")
        node.stop()
    got = [tools.Result(path).mu for path in pacs.files()]
    tools.check(len(got) == 1 and np.array_equal(got[0], want), f"{len(got)} objects in the archive, or other slices",
                failures)
