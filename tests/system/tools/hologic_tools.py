# SPDX-License-Identifier: Apache-2.0
"""Objects as Hologic units send them, written without code of this project: the projection matrices of (0019,xx60), a
Breast Projection object with them, and the SCO container with JPEG-LS scans (docs/conformance.md says where these forms
are from)."""
import copy
import math
import os
import struct
import subprocess

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import generate_pixel_data_frame
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, generate_uid

from tools.edits import new_object

CREATOR = "HOLOGIC, Inc."
COLUMNS, ROWS = 1664, 2048  # bins of the whole detector


class Detector:
    """A system whose detector turns with the source: the formulas of "A detector that turns" in docs/geometry.md, mm
    and degrees."""

    def __init__(self, axis_height, source_axis, source_x, ratio, axis_y, pitch):
        self.axis_height, self.source_axis, self.source_x = axis_height, source_axis, source_x
        self.ratio, self.axis_y, self.pitch = ratio, axis_y, pitch

    def source(self, angle):
        a = math.radians(angle)
        return np.array([self.source_x, self.source_axis * math.sin(a),
                         self.axis_height + self.source_axis * math.cos(a)])

    def bin(self, angle, x, y):
        """Where the bin that is at (x, y) at rest is at this angle."""
        phi, w = math.radians(self.ratio * angle), y - self.axis_y
        return np.array([x, self.axis_y + w * math.cos(phi), -w * math.sin(phi)])

    def matrix(self, angle, world):
        """(u, v, 1) w = P (X, Y, Z, 1): u toward the chest wall, v along y; `world` (rotation, position) moves the
        scan's axes."""
        turn, at = world

        def place(u, v):
            return turn @ self.bin(angle, (COLUMNS - 1 - u + 0.5) * self.pitch, (v + 0.5 - ROWS / 2) * self.pitch) + at

        source = turn @ self.source(angle) + at
        step = np.stack([place(1, 0) - place(0, 0), place(0, 1) - place(0, 0), place(0, 0) - source], axis=1)
        rows = np.linalg.inv(step)
        rows /= np.linalg.norm(rows[2]) * (1 if rows[2] @ (source - place(0, 0)) > 0 else -1)
        return np.concatenate([rows, -(rows @ source)[:, None]], axis=1)


def phantom_axes(rows_along_y=True):
    """The axes of a calibration phantom that is not quite level: x toward the chest wall, y along the rows, z up."""
    tilt = 0.0096
    way = 1 if rows_along_y else -1
    return np.array([[-math.cos(tilt), 0, -math.sin(tilt)], [0, way, 0],
                     [-math.sin(tilt), 0, math.cos(tilt)]]), np.array([-23.1, -2.3, -0.7])


def number(value):
    """As the unit writes numbers: three digits of the exponent."""
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{mantissa}e{exponent[0]}{int(exponent[1:]):03d}"


def matrices_text(detector, angles, world=None, sign=-1, digits=2,
                  titles=("Input Paddle Type: 0", "Input CArm angle: 0.000000")):
    """The text for views at these angles; its theta is sign * angle, with as many digits."""
    theta = np.round(sign * np.asarray(angles, float), digits)
    values = np.array([detector.matrix(sign * t, world or phantom_axes()).ravel() for t in theta])
    lines = [*titles, "Data (is im theta Matrix)", "Fit (c1 c2 c3 c4 chisq)"]
    for j in range(12):
        printed = np.array([float(number(v)) for v in values[:, j]])
        fit = [float(number(c)) for c in np.polynomial.polynomial.polyfit(theta, printed, min(3, len(theta) - 1))]
        fit += [0.0] * (4 - len(fit))
        lines += [f"{i} {j} {theta[i]:.6f} {number(printed[i])}" for i in range(len(theta))]
        chisq = ((np.polynomial.polynomial.polyval(theta, fit) - printed) ** 2).sum()
        lines.append(f"{j} " + " ".join(number(c) for c in [*fit, chisq]))
    return "\r\n".join(lines) + "\r\n"


def put_matrices(ds, text, vr="UN"):
    block = ds.private_block(0x0019, CREATOR, create=True)
    data = text.encode("ascii")
    block.add_new(0x60, vr, data + b" " * (len(data) % 2) if vr == "UN" else text)


def frame_angles(ds):
    """The source's angle in each frame of a Breast Projection object, positive toward the patient's left."""
    groups = [f.IsocenterReferenceSystemSequence[0] for f in ds.PerFrameFunctionalGroupsSequence]
    return [float(g[0x0018, 0x9545].value) - float(g[0x0018, 0x9543].value) for g in groups]


def default_parameters(bits, near=0):
    """MAXVAL, T1, T2, T3 and RESET of a JPEG-LS stream that states none (ISO 14495-1 C.2.4.1.1.1), for 8 bits and
    more."""
    top = (1 << bits) - 1
    factor = (min(top, 4095) + 128) // 256
    t1 = min(max(factor * (3 - 2) + 2 + 3 * near, near + 1), top)
    t2 = min(max(factor * (7 - 3) + 3 + 5 * near, t1), top)
    t3 = min(max(factor * (21 - 4) + 4 + 7 * near, t2), top)
    return struct.pack(">5H", top, t1, t2, t3, 64)


def scans(frames, bits, folder, near=0):
    """The JPEG-LS scan of each frame without its header and end, encoded by DCMTK."""
    ds = new_object("1.2.840.10008.5.1.4.1.1.7.3")
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.NumberOfFrames, ds.Rows, ds.Columns = frames.shape
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, bits, bits - 1, 0
    ds.PixelData = frames.astype("<u2").tobytes()
    plain, packed = os.path.join(folder, "plain.dcm"), os.path.join(folder, "packed.dcm")
    ds.save_as(plain, write_like_original=False)
    subprocess.run(["dcmcjpls", "+pc", *([] if near == 0 else ["+en", "+md", str(near)]), plain, packed], check=True)
    found = []
    for code in generate_pixel_data_frame(pydicom.dcmread(packed).PixelData, len(frames)):
        at = 2
        while code[at + 1] != 0xDA:
            assert code[at] == 0xFF and code[at + 1] in (0xF7, 0xF8), code[:40].hex()
            # the parameters that are written must be those that a stream without them has
            assert code[at + 1] != 0xF8 or code[at + 5:at + 15] == default_parameters(bits), code[:40].hex()
            assert code[at + 1] != 0xF7 or code[at + 4] == bits, f"{code[at + 4]} bits"
            at += 2 + int.from_bytes(code[at + 2:at + 4], "big")
        at += 2 + int.from_bytes(code[at + 2:at + 4], "big")
        end = code.rindex(b"\xff\xd9")
        found.append(code[at:end])
    return found


def container(frames, bits, folder, near=0, head=64):
    """The bytes of one resolution; `head` bytes come before the first scan."""
    parts = scans(frames, bits, folder, near)
    offsets = head + np.concatenate([[0], np.cumsum([len(p) for p in parts])])
    start = bytearray(head)
    struct.pack_into("<HxxHxxHxxBxxxB", start, 20, len(frames), frames.shape[2], frames.shape[1], bits, near)
    data = bytes(start) + b"".join(parts)
    table = np.zeros(256, "<u4")
    table[:len(offsets)] = offsets
    return data + b"\0" * (len(data) % 2) + table.tobytes()


def sequence_bytes(pieces):
    """Items with a piece of the content each, as implicit VR little endian."""
    def element(tag, value):
        return struct.pack("<HHI", tag >> 16, tag & 0xFFFF, len(value)) + value

    return b"".join(element(0xFFFEE000, element(0x7E010010, CREATOR.encode() + b" ") + element(0x7E011012, p))
                    for p in pieces)


def put_content(ds, element, content, pieces=3, vr="SQ"):
    """Put the content into (7E01,10ee), divided among items. vr UN: as a program writes it that does not know the
    private attribute, with a defined length; UN...: with an undefined length."""
    block = ds.private_block(0x7E01, CREATOR, create=True)
    step = (len(content) // pieces + 2) & ~1
    parts = [content[i:i + step] for i in range(0, len(content), step)]
    if vr.startswith("UN"):
        block.add_new(element, "UN", sequence_bytes(parts))
        block[element].is_undefined_length = vr != "UN"
        return
    items = []
    for part in parts:
        item = Dataset()
        item.private_block(0x7E01, CREATOR, create=True).add_new(0x12, "OB", part)
        items.append(item)
    block.add_new(element, "SQ", Sequence(items))


def put_container(ds, kind, high, low, pieces, vr):
    block = ds.private_block(0x7E01, CREATOR, create=True)
    block.add_new(0x01, "LO", "GITTv1.0")
    block.add_new(0x02, "SH", kind)
    for element, content in ((0x10, high), (0x11, low)):
        if content is not None:
            put_content(ds, element, content, pieces, vr)


def finish(ds, implicit):
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian if implicit else ExplicitVRLittleEndian
    ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPClassUID, ds.SOPInstanceUID
    ds.is_little_endian, ds.is_implicit_VR = True, implicit
    return ds


def sco_slices(source, high=None, low=None, bits=10, orientation=None, gantry=0.0, pieces=3, vr="SQ", implicit=False):
    """A Secondary Capture object with slices from a Breast Tomosynthesis Image: the attributes of the one header that
    was seen. They have neither the size of a voxel nor a position, and the count (0020,1002) is not that of the
    frames."""
    shared = source.SharedFunctionalGroupsSequence[0]
    anatomy = shared.FrameAnatomySequence[0]
    ds = Dataset()
    for name in ("SpecificCharacterSet", "StudyDate", "SeriesDate", "ContentDate", "StudyTime", "SeriesTime",
                 "ContentTime", "AccessionNumber",
                 "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "StudyID",
                 "SeriesNumber",
                 "FrameOfReferenceUID", "DeviceSerialNumber", "ViewCodeSequence", "ReferringPhysicianName"):
        if name in source:
            ds[name] = copy.deepcopy(source[name])
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.7"
    ds.SOPInstanceUID, ds.SeriesInstanceUID = generate_uid(), generate_uid()
    ds.ImageType, ds.Modality, ds.ConversionType = ["DERIVED", "PRIMARY"], "MG", "WSD"
    ds.Manufacturer, ds.ManufacturerModelName = "HOLOGIC, Inc.", "Selenia Dimensions"
    ds.SeriesDescription = f"{anatomy.FrameLaterality} Tomosynthesis Reconstruction"
    ds.DistanceSourceToDetector, ds.DistanceSourceToPatient, ds.BodyPartThickness = 700, 619, 56
    ds.PositionerPrimaryAngle = gantry
    ds.DetectorBinning, ds.FieldOfViewOrigin = [2, 2], [0, 508]
    ds.FieldOfViewRotation, ds.FieldOfViewHorizontalFlip = 0, "NO"
    ds.PatientOrientation = orientation
    ds.Laterality, ds.InstanceNumber, ds.ImagesInAcquisition = anatomy.FrameLaterality, 30, 61
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.Rows, ds.Columns, ds.BitsAllocated = 425, 266, 16
    ds.BitsStored, ds.HighBit, ds.PixelRepresentation = bits, bits - 1, 0
    ds.add_new((0x0028, 0x0120), "US", 0)
    ds.add_new((0x0028, 0x0121), "US", 4)
    ds.WindowCenter, ds.WindowWidth, ds.LossyImageCompression = 512, 512, "00"
    put_container(ds, "HLXS", high, low, pieces, vr)
    return finish(ds, implicit)


def sco(source, kind, high=None, low=None, text=None, pieces=3, vr="SQ", implicit=False, gantry=0.0):
    """A Secondary Capture object from a Breast Projection object: root attributes alone, as Hologic writes them, some
    of which say something else than the container."""
    shared = source.SharedFunctionalGroupsSequence[0]
    first = source.PerFrameFunctionalGroupsSequence[0]
    ds = Dataset()
    for name in ("SpecificCharacterSet", "StudyDate", "SeriesDate", "ContentDate", "StudyTime", "SeriesTime",
                 "ContentTime", "AccessionNumber",
                 "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "SeriesInstanceUID",
                 "StudyID",
                 "SeriesNumber", "FrameOfReferenceUID", "DeviceSerialNumber", "ViewCodeSequence",
                 "ReferringPhysicianName"):
        if name in source:
            ds[name] = copy.deepcopy(source[name])
    ds.SOPClassUID, ds.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", generate_uid()
    ds.ImageType, ds.Modality, ds.ConversionType = ["ORIGINAL", "PRIMARY"], "MG", "WSD"
    ds.Manufacturer, ds.ManufacturerModelName = "HOLOGIC, Inc.", "Selenia Dimensions"
    thickness = float(source.BodyPartThickness if "BodyPartThickness" in source else
                      next(g.BodyPartThickness for g in _groups(shared, first) if "BodyPartThickness" in g))
    ds.DistanceSourceToDetector = 700.0
    ds.DistanceSourceToPatient = 700.0 - 25.0 - thickness
    ds.BodyPartThickness = thickness
    ds.PositionerPrimaryAngle = gantry
    ds.DetectorBinning = [2, 2]
    laterality = shared.FrameAnatomySequence[0].FrameLaterality
    ds.PatientOrientation = list(shared.PatientOrientationInFrameSequence[0].PatientOrientation)
    ds.Laterality, ds.InstanceNumber, ds.ImagesInAcquisition = laterality, 60, 61
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME1"
    ds.Rows, ds.Columns, ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 425, 266, 16, 14, 13, 0
    ds.LossyImageCompression = "00"
    if text:
        put_matrices(ds, text)
    put_container(ds, kind, high, low, pieces, vr)
    return finish(ds, implicit)


def _groups(*parents):
    for parent in parents:
        for e in parent:
            if e.VR == "SQ" and e.value:
                yield e.value[0]
