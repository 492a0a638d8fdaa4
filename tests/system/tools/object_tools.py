# SPDX-License-Identifier: Apache-2.0
"""DICOM objects as bytes that a test changes freely: data sets in Explicit VR Little Endian are parsed into elements
and written again, with no check of what a value contains. Small exams of each kind that the node reconstructs, with new
UIDs for each use."""
import glob
import hashlib
import os
import struct

from tools import node_harness as h

LONG = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"}
IMPLICIT = "1.2.840.10008.1.2"
EXPLICIT, BIG_ENDIAN, DEFLATED, RLE, JPEG, JPEG_LS, JPEG_2000, JPEG_2000_PART_2 = (
    f"{IMPLICIT}.{n}" for n in ("1", "2", "1.99", "5", "4.70", "4.80", "4.90", "4.92"))
MG, PROJECTION, RAW = "1.2.840.10008.5.1.4.1.1.1.2.1", "1.2.840.10008.5.1.4.1.1.13.1.5", "1.2.840.10008.5.1.4.1.1.66"
UNDEFINED = 0xFFFFFFFF
STUDY, SERIES, FRAME, INSTANCE, PIXELS = 0x0020000D, 0x0020000E, 0x00200052, 0x00080018, 0x7FE00010
PRIVATE = 0x00710000  # the block of the sinogram objects is (0071,10xx)


def padded(value, vr):
    value = value.encode() if isinstance(value, str) else value
    return value + (b"\0" if vr in ("UI", "OB", "UN") else b" ") * (len(value) % 2)


def element(tag, vr, value, length=None):
    """An element; `length` instead of the true one."""
    length = len(value) if length is None else length
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF)
    if not vr:
        return head + struct.pack("<I", length) + value
    if vr in LONG:
        return head + vr.encode() + b"\0\0" + struct.pack("<I", length) + value
    return head + vr.encode() + struct.pack("<H", length) + value


class DataSet(dict):
    """tag: (VR, value); the value of a sequence is a list of data sets."""

    sop_class, syntax = "", EXPLICIT
    before, after = b"", b""  # bytes before the first and behind the last element

    def copy(self):
        made = DataSet({t: (vr, [d.copy() for d in value] if vr == "SQ" else value) for t, (vr, value) in self.items()})
        made.sop_class, made.syntax, made.before, made.after = self.sop_class, self.syntax, self.before, self.after
        return made

    def put(self, tag, vr, value):
        """value: text or bytes, padded; a number for US, UL, FD; a list for SQ."""
        if isinstance(value, (int, float)):
            value = struct.pack({"US": "<H", "SS": "<h", "UL": "<I", "FD": "<d", "FL": "<f"}[vr], value)
        self[tag] = (vr, value if vr == "SQ" else padded(value, vr))
        return self

    def text(self, tag):
        return self[tag][1].rstrip(b"\0 ").decode("latin-1") if tag in self and self[tag][0] != "SQ" else ""

    def number(self, tag):
        return struct.unpack({"US": "<H", "UL": "<I"}[self[tag][0]], self[tag][1])[0]

    def encode(self, implicit=False):
        out = [self.before]
        for tag in sorted(self):
            vr, value = self[tag]
            if vr == "SQ":
                items = [d.encode(implicit) for d in value]
                value = b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(i)) + i for i in items)
            out.append(element(tag, "" if implicit else vr, value))
        return b"".join(out) + self.after

    def sent(self):
        return Sent(self.encode(self.syntax == IMPLICIT), self.sop_class or self.text(0x00080016), self.text(INSTANCE),
                    self.syntax)


class Sent:
    """What a sender needs (dicom_peer.Sender): the bytes of a data set, and how it is announced."""

    def __init__(self, data, sop_class, uid, syntax=EXPLICIT):
        self.data, self.sop_class, self.uid, self.syntax = bytes(data), sop_class, uid, syntax
        self.digest = hashlib.sha256(self.data).hexdigest()


def parse(data, at=0, end=None):
    """The data set from `at` to `end`, in explicit VR, with defined lengths."""
    found, end = DataSet(), len(data) if end is None else end
    while at < end:
        group, number = struct.unpack_from("<HH", data, at)
        vr = data[at + 4:at + 6].decode()
        head = 12 if vr in LONG else 8
        n = struct.unpack_from("<I" if head == 12 else "<H", data, at + head - (4 if head == 12 else 2))[0]
        at += head
        found[group << 16 | number] = (vr, items(data, at, at + n) if vr == "SQ" else data[at:at + n])
        at += n
    return found


def items(data, at, end):
    found = []
    while at < end:
        n = struct.unpack_from("<I", data, at + 4)[0]
        found.append(parse(data, at + 8, at + 8 + n))
        at += 8 + n
    return found


def read(path):
    """The data set of a Part 10 file."""
    raw = h.read_file(path, "rb")
    return parse(raw, 144 + struct.unpack_from("<I", raw, 140)[0])


# kind: options of `tomonode simulate`
KINDS = {
    # three objects of 10 kB
    "mg": ("dbt", "--phantom", "beads", "--detector", "512x512", "--binning", "8", "--views", "3"),
    "bp": ("dbt", "--phantom", "beads", "--detector", "512x512", "--binning", "8", "--views", "3", "--format", "bp"),
    # EMISSION and ATTENUATION
    "pet": ("pet", "--scanner", "small", "--phantom", "f-shape", "--counts", "2e5", "--attenuation"),
    "parallel": ("parallel", "--phantom", "head", "--angles", "30", "--size", "64", "--bin", "4", "--slices", "2"),
}


class Exams:
    """One simulated exam of each kind; make() is a copy with UIDs of its own."""

    def __init__(self, folder):
        self.folder, self.read, self.n = folder, {}, 0

    def originals(self, kind):
        if kind not in self.read:
            out = os.path.join(self.folder, kind)
            h.run(h.TOMONODE, "simulate", *KINDS[kind], "-o", out)
            self.read[kind] = [read(p) for p in sorted(glob.glob(out + "/*.dcm"))]
        return self.read[kind]

    def make(self, kind):
        self.n += 1
        made = [d.copy() for d in self.originals(kind)]
        for i, d in enumerate(made):
            for tag, value in ((STUDY, f"2.25.{self.n}1"), (SERIES, f"2.25.{self.n}2"), (FRAME, f"2.25.{self.n}3"),
                               (INSTANCE, f"2.25.{self.n}4{i}")):
                d.put(tag, "UI", value)
        return made
