# SPDX-License-Identifier: Apache-2.0
"""Objects that are made to stop, exhaust or confuse a parser: depth, lengths that lie or have no end, private creators, items, fragments, frames,
bits, compressed data, duplicate and unordered tags, other transfer syntaxes than the announced one.

Some are an object alone, which becomes unassigned with a sentence that names tag and offset; others are an exam whose pixels are encoded
wrongly, which is held. What is unusual, but allowed, gives the image of the exam as it was."""
import os
import random
import struct
import sys
import zlib

import exams
import hostile
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import object_tools as o
from tools.node_harness import TOMONODE, run, wait_for, write_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
import headers as b  # noqa: E402

TITLE, PART = "Parser bombs", 8
SQ = 0x00220015  # Acquisition Device Type Code Sequence: behind group 0020
END_OF_ITEM, END_OF_SEQUENCE = b.element(b.ITEM_END, "", b""), b.element(b.SEQUENCE_END, "", b"")
HELD, UNASSIGNED = "held", "1 unassigned"
ALONE = r"no header gives the number of instances; \d+ received"
EXTENDED_OFFSETS, EXTENDED_LENGTHS = 0x7FE00001, 0x7FE00002


# ---- an object alone ----

def nested(depth, ended=True):
    """`depth` sequences of undefined length in each other."""
    begin = b.element(SQ, "SQ", b"", length=b.UNDEFINED) + b.element(b.ITEM, "", b"", length=b.UNDEFINED)
    return depth * begin + (depth * (END_OF_ITEM + END_OF_SEQUENCE) if ended else b"")


def alone(before_28=b"", after_28=b"", syntax=o.EXPLICIT, sop_class=b.PROJECTION_CLASS, raw=None, before=b"", **options):
    """An object with what every image has, and these elements; `raw`: these bytes alone."""
    def act(stage):
        uid = f"2.25.8{stage.number()}"
        data = raw
        if data is None:
            data = before + b.whole(before_28, after_28, sop_class, syntax == o.IMPLICIT, instance=uid, **options)
        return fate(stage, o.Sent(data, sop_class, uid, syntax))
    return act


def fate(stage, sent):
    """What becomes of one object."""
    acknowledged, refused = peer.store_all(stage.node.port, [sent])
    stage.ledger.add(acknowledged)
    if not acknowledged:
        stage.quote(f"C-STORE was answered {refused}")
        return "refused"
    _, kind, reason = wait_for("it is classified", lambda: next((r for r in exams.rows_of(stage.node.spool, [sent.uid]) if r[1]), None), 60, 0.02)
    if kind != 1:
        stage.quote(reason)
        return UNASSIGNED
    number, = c.query(stage.node.spool, "SELECT c.job FROM classification c JOIN instance i ON i.id=c.instance WHERE i.sop_instance=?", sent.uid)[0]
    job = wait_for("its case rests", lambda: next((j for j in stage.node.jobs() if j["id"] == number and j["state"] in exams.RESTING), None), 60)
    stage.quote(job["reason"])
    return job["state"]


def squeezed(*parts):
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join([squeeze.compress(part) for part in parts] + [squeeze.flush()])


def inflating(n):
    """A deflated data set that has n bytes of pixels."""
    piece = bytes(1 << 20)
    return squeezed(b.whole(b"", o.element(o.PIXELS, "OW", b"", n)), *(piece for _ in range(n >> 20)))


def by_recon(syntax, make):
    """A file for `tomonode recon`: no C-STORE is accepted in this transfer syntax."""
    def act(stage):
        folder = os.path.join(stage.folder, f"recon{stage.number()}")
        os.mkdir(folder)
        write_file(os.path.join(folder, "bomb.dcm"), b.part10(syntax, make()))
        done = run(TOMONODE, "recon", "-o", os.path.join(folder, "out"), folder, code=None)
        stage.quote(done.stderr)
        return f"exit {done.returncode}"
    return act


# ---- an exam ----

def exam(kind, change):
    def act(stage):
        e = exams.Exam(stage, kind)
        e.kind = kind
        change(e)
        return exams.outcome(stage, e)
    return act


def rle(values):
    """A frame of 16-bit values as RLE (PS3.5 annex G): two segments of literal runs."""
    planes = []
    for part in (values[1::2], values[0::2]):
        planes.append(b"".join(bytes((len(part[i:i + 128]) - 1,)) + part[i:i + 128] for i in range(0, len(part), 128)))
    return struct.pack("<16I", 2, 64, 64 + len(planes[0]), *[0] * 13) + planes[0] + planes[1]


def fragments(parts, table=b""):
    """The value of encapsulated pixel data, of undefined length."""
    parts = [p + b"\0" * (len(p) % 2) for p in (table, *parts)]
    return b"".join(b.element(b.ITEM, "", p) for p in parts) + END_OF_SEQUENCE


def encapsulate(frames_of, syntax=o.RLE, table=b"", extended=None):
    """Replace the pixels of each object; frames_of(list of frames as bytes): the fragments."""
    def act(e):
        for d in e.objects:
            n = 2 * d.number(exams.ROWS) * d.number(exams.COLUMNS)
            data = d.pop(o.PIXELS)[1]
            parts = frames_of([data[i:i + n] for i in range(0, len(data), n)])
            if extended:
                d.put(EXTENDED_OFFSETS, "OV", extended).put(EXTENDED_LENGTHS, "OV", extended)
            d.after = b.element(o.PIXELS, "OB", fragments(parts, table), length=b.UNDEFINED)
            d.syntax = syntax
    return act


def code_stream(marker, rows, columns, bits=16):
    """The head of a JPEG (marker C3) or JPEG-LS (F7) stream of this size, and nothing else."""
    frame = struct.pack(">BHHB3B", bits, rows, columns, 1, 1, 0x11, 0)
    return b"\xff\xd8\xff" + bytes((marker,)) + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xda\x00\x08\x01\x01\x00\x00\x00\x00" + bytes(64) + b"\xff\xd9"


def code_stream_2000(rows, columns, tile=None):
    """The head of a JPEG 2000 stream of this size: SOC, SIZ, COD, QCD (five levels, reversible), and a tile without data."""
    across, down = (tile, tile) if tile else (columns, rows)
    size = struct.pack(">H8IH3B", 0, columns, rows, 0, 0, across, down, 0, 0, 1, 15, 1, 1)
    return (b"\xff\x4f\xff\x51" + struct.pack(">H", len(size) + 2) + size + b"\xff\x52\0\x0c\0\0\0\1\0\5\4\4\0\1"
            + b"\xff\x5c\0\x13\x40" + bytes((0x80 + 8 * (k % 3) for k in range(16))) + b"\xff\x90\0\x0a\0\0\0\0\0\x0e\0\1\xff\x93\xff\xd9")


def raw_dataset(change):
    """change(encoded bytes) of every object, sent as it is."""
    def act(e):
        for d in e.objects:
            text = d.encode()
            d.encode = lambda implicit=False, text=text: change(text)
    return act


def twice(tag, vr, value):
    """Another element with a tag that is there, behind the first."""
    def change(text):
        at = text.index(struct.pack("<HH2s", tag >> 16, tag & 0xFFFF, vr.encode()))
        end = at + 8 + struct.unpack_from("<H", text, at + 6)[0]
        return text[:end] + o.element(tag, vr, o.padded(value, vr)) + text[end:]
    return change


def odd_lengths(e):
    """Values of odd length, as careless writers have them."""
    for d in e.objects:
        for tag in (exams.THICKNESS, 0x00181190):  # two, because PDVs are even
            vr, value = d[tag]
            d[tag] = (vr, value.rstrip(b" ") + b" " * (1 - len(value.rstrip(b" ")) % 2))


def groups(n):
    """n items of the Per-Frame Functional Groups, and as many frames of 1 x 1."""
    return dict(before_28=b"", after_28=b.element(0x7FE00010, "OW", bytes(2 * n)), frames=exams.o.padded(str(n), "IS"), sop_class=o.PROJECTION), n


def many_frames(n):
    def act(e):
        d = e.objects[0]
        item = d[exams.PER_FRAME][1][0]
        d.put(exams.PER_FRAME, "SQ", [item] * n).put(exams.FRAMES, "IS", str(n)).put(exams.ROWS, "US", 1).put(exams.COLUMNS, "US", 1)
        d.put(o.PIXELS, "OW", bytes(2 * n))
    return act


def endless_text(tag, vr):
    def act(e):
        for d in e.objects:
            d[tag] = (vr, b"7" * (16 << 20))
    return act


CREATORS = b.creators_and_elements
CASES = [
    # depth
    ("17 sequences in each other", alone(nested(17)), UNASSIGNED, r"\(0022,0015\).* at offset \d+: sequences more than 16 deep"),
    ("15 sequences in each other", alone(nested(15)), HELD, ALONE),
    ("100000 sequences without an end", alone(nested(100000, False)), UNASSIGNED, r"at offset \d+: sequences more than 16 deep"),
    # lengths
    ("an element of 4 GB", alone(b.element(0x00211010, "OB", b"1234", length=0xFFFFFFFE)), UNASSIGNED, r"\(0021,1010\) at offset \d+ declares 4294967294 bytes"),
    ("values of odd length", exam("mg", odd_lengths), exams.CLEAN, exams.DELIVERED),
    ("a group length that lies", exam("mg", raw_dataset(lambda t: o.element(0x00080000, "UL", struct.pack("<I", 0x7FFFFFFF)) + t)), exams.CLEAN, exams.DELIVERED),
    ("the end cut off", exam("mg", raw_dataset(lambda t: t[:-100])), "3 unassigned", r"\(7FE0,0010\).* declares 8192 bytes, but only 8092 remain"),
    ("padding of 1 MB at the end", exam("mg", raw_dataset(lambda t: t + o.element(0xFFFCFFFC, "OB", bytes(1 << 20)))), exams.CLEAN, exams.DELIVERED),
    # numbers of elements
    ("4800 creators and 4800 elements", alone(after_28=CREATORS(20, 240)), UNASSIGNED, "more than 4096 private creators"),
    ("240 creators and elements in each of 500 items", alone(after_28=b.element(0x00400555, "SQ", b.item(CREATORS(1, 240)) * 500)), UNASSIGNED,
     "more than 20000000 comparisons"),
    ("500001 elements", alone(after_28=b.elements(500001)), UNASSIGNED, "more than 500000 elements"),
    # fragments, offset tables
    ("500001 fragments", alone(after_28=b.element(o.PIXELS, "OB", b.item() + b.item(b"\xff\xd8") * 500001 + END_OF_SEQUENCE, length=b.UNDEFINED),
                               syntax=o.JPEG), UNASSIGNED, "more than 500000 elements"),
    ("RLE as it should be", exam("mg", encapsulate(lambda f: [rle(v) for v in f])), exams.CLEAN, exams.DELIVERED),
    ("an empty fragment for each frame", exam("bp", encapsulate(lambda f: [b""] * len(f))), HELD, r"the fragments of a frame have 0 bytes"),
    ("an offset table of zeros", exam("bp", encapsulate(lambda f: [rle(v) for v in f] + [b"\0\0"], table=bytes(12))), HELD, "the offset table does not point to"),
    ("an extended offset table that lies", exam("bp", encapsulate(lambda f: [rle(v) for v in f], extended=b"\xff" * 24)), exams.CLEAN, exams.DELIVERED),
    # frames, rows, columns, bits
    ("2147483647 frames", exam("bp", exams.every(exams.FRAMES, "IS", "2147483647")), HELD, r"2147483647 frames"),
    ("99999999999999999999 frames", exam("bp", exams.every(exams.FRAMES, "IS", "99999999999999999999")), HELD, r"\(0028,0008\)"),
    ("no frames", exam("bp", exams.every(exams.FRAMES, "IS", "0")), HELD, r"0 frames \(0028,0008\)"),
    ("65536 frames of one pixel", exam("bp", exams.two(exams.every(exams.FRAMES, "IS", "65536"), exams.every(exams.ROWS, "US", 1),
                                                       exams.every(exams.COLUMNS, "US", 1))), HELD, "65536 frames"),
    ("4000 frames with their groups", exam("bp", many_frames(4000)), HELD, "4000 projections: at most 1024|1 columns"),
    ("20000 functional groups", exam("bp", many_frames(20000)), UNASSIGNED, "more than 500000 elements"),
    ("a frame of 8 GB in RLE", exam("mg", exams.two(encapsulate(lambda f: [rle(v) for v in f]), exams.every(exams.ROWS, "US", 65535),
                                                    exams.every(exams.COLUMNS, "US", 65535))), HELD, "an encapsulated frame of 65535 x 65535: more than"),
    *((f"{bits} bits allocated", exam("mg", exams.every(exams.ALLOCATED, "US", bits)), HELD, rf"\(0028,0100\) BitsAllocated is {bits}: only 8 and 16")
      for bits in (1, 12, 32, 64)),
    # compressed data
    ("1 GiB deflated to 1 MB", by_recon(o.DEFLATED, lambda: inflating(1 << 30)), "exit 4", r"bomb\.dcm.*268435456"),
    ("a deflated data set cut off", by_recon(o.DEFLATED, lambda: squeezed(b.whole(b"", b.element(o.PIXELS, "OW", random.Random(1).randbytes(90000))))[:-500]),
     "exit 4", r"bomb\.dcm.*(deflate|inflate)"),
    ("a deflated data set that is none", by_recon(o.DEFLATED, lambda: random.Random(2).randbytes(5000)), "exit 4", r"bomb\.dcm.*(deflate|inflate)"),
    ("a deflated object over the network", alone(raw=squeezed(b.whole(b"")), syntax=o.DEFLATED), "refused", r"C-STORE was answered \{\}"),
    ("RLE with too few values", exam("mg", encapsulate(lambda f: [rle(v[:-200]) for v in f])), HELD, r"RLE segment 1 cannot be decoded: 3996 of 4096 values"),
    ("JPEG of another size", exam("mg", encapsulate(lambda f: [code_stream(0xC3, 65535, 65535) for _ in f], o.JPEG)), HELD, "65535"),
    ("JPEG-LS of another size", exam("mg", encapsulate(lambda f: [code_stream(0xF7, 65535, 65535) for _ in f], o.JPEG_LS)), HELD, "65535"),
    ("JPEG of the right size without data", exam("mg", encapsulate(lambda f: [code_stream(0xC3, 64, 64) for _ in f], o.JPEG)), HELD, "cannot be decoded|JPEG"),
    ("JPEG-LS of the right size without data", exam("mg", encapsulate(lambda f: [code_stream(0xF7, 64, 64) for _ in f], o.JPEG_LS)), HELD,
     "cannot be decoded|JPEG-LS"),
    ("JPEG that is noise", exam("mg", encapsulate(lambda f: [random.Random(3).randbytes(5000) for _ in f], o.JPEG)), HELD, r"\.dcm: "),
    ("JPEG 2000 of another size", exam("mg", encapsulate(lambda f: [code_stream_2000(65535, 65535) for _ in f], o.JPEG_2000)), HELD, "65535"),
    ("JPEG 2000 of 65535 tiles", exam("mg", encapsulate(lambda f: [code_stream_2000(64, 64, tile=1) for _ in f], o.JPEG_2000)), HELD, "JPEG 2000"),
    ("JPEG 2000 of the right size without data", exam("mg", encapsulate(lambda f: [code_stream_2000(64, 64) for _ in f], o.JPEG_2000)), HELD, "JPEG 2000"),
    ("JPEG 2000 that is noise", exam("mg", encapsulate(lambda f: [random.Random(3).randbytes(5000) for _ in f], o.JPEG_2000)), HELD, "not a JPEG 2000 code stream"),
    ("JPEG 2000 of part 2", by_recon(o.JPEG_2000_PART_2, lambda: b.whole(b"", b.element(exams.ALLOCATED, "US", b"\x10\0") + b.element(
        o.PIXELS, "OB", fragments([b"\xff\x4f\xff\x51"]), length=b.UNDEFINED))), "exit 4", r"bomb\.dcm: transfer syntax 1.2.840.10008.1.2.4.92 .* is not decoded"),
    # values, VRs, tags
    ("a name of 16 MB", exam("mg", endless_text(exams.NAME, "UC")), exams.CLEAN, exams.DELIVERED),
    ("a thickness of 16 MB", exam("mg", endless_text(exams.THICKNESS, "UT")), HELD, r"\(0018,11A0\)"),
    ("a private value of 16 MB", alone(b.element(0x00211010, "OB", bytes(16 << 20))), HELD, ALONE),
    ("4000 character sets", exam("mg", exams.every(exams.CHARSET, "CS", "\\".join(["ISO 2022 IR 87"] * 4000))), "held|delivered, clean image",
     r"\(0008,0005\)|" + exams.DELIVERED),
    ("angles as sequences", exam("mg", exams.every(exams.ANGLE, "SQ", [o.DataSet()])), HELD, r"\(0018,1510\)"),
    ("names as sequences", exam("mg", exams.every(exams.NAME, "SQ", [o.DataSet()])), exams.CLEAN, exams.DELIVERED),
    ("study dates as bytes", exam("mg", exams.every(exams.STUDY_DATE, "OB", bytes(8))), exams.CLEAN, exams.DELIVERED),
    ("a manufacturer of 1000 letters", exam("mg", exams.every(exams.MAKER, "LO", "M" * 1000)), HELD, r"\(0008,0070\).* of 1000 bytes, more than"),
    ("rows as text", exam("mg", exams.every(exams.ROWS, "LO", "many")), HELD, r"\(0028,0010\)"),
    ("rows of four bytes", exam("mg", exams.every(exams.ROWS, "UL", 64)), exams.CLEAN, exams.DELIVERED),
    ("angles as doubles", exam("mg", lambda e: [d.put(exams.ANGLE, "FD", float(d.text(exams.ANGLE))) for d in e.objects]), exams.CLEAN, exams.DELIVERED),
    ("a study UID as bytes", exam("mg", lambda e: [d.update({o.STUDY: ("OB", d[o.STUDY][1])}) for d in e.objects]), "3 unassigned", r"\(0020,000D\)"),
    ("pixels as text", exam("mg", lambda e: [d.update({o.PIXELS: ("UT", d[o.PIXELS][1])}) for d in e.objects]), "3 unassigned", r"\(7FE0,0010\).*VR UT, not OB or OW"),
    ("an angle twice in one header", exam("mg", raw_dataset(twice(exams.ANGLE, "DS", "12"))), "3 unassigned", r"\(0018,1510\) .* at offset \d+ occurs twice"),
    ("command elements in the data set", exam("mg", raw_dataset(lambda t: o.element(0x00000100, "US", b"\1\0") + t)), "3 unassigned", r"\(0000,0100\)"),
    ("a whole file in place of a data set", exam("mg", raw_dataset(lambda t: bytes(128) + b"DICM" + o.element(0x00020010, "UI", b"1.2\0") + t)), "3 unassigned",
     r"offset"),
    # other encodings than the announced one
    ("no bytes at all", alone(raw=b""), "1 unassigned|refused", r"\(0008,0016\)|C-STORE|missing|offset|empty"),
    ("64 KB of noise", alone(raw=random.Random(4).randbytes(65536)), UNASSIGNED, "offset"),
    ("64 KB of noise in implicit VR", alone(raw=random.Random(5).randbytes(65536), syntax=o.IMPLICIT), UNASSIGNED, "offset"),
    ("64 KB of zeros", alone(raw=bytes(65536), syntax=o.IMPLICIT), UNASSIGNED, "offset"),
    ("explicit VR announced as implicit", alone(raw=b.whole(b""), syntax=o.IMPLICIT), UNASSIGNED, "offset"),
    ("implicit VR announced as explicit", alone(raw=b.whole(b"", implicit=True)), UNASSIGNED, "offset"),
    ("little endian announced as big endian", alone(raw=b.whole(b""), syntax=o.BIG_ENDIAN), "1 unassigned|refused", "offset|C-STORE"),
]


def cases_of(_rng):
    return [hostile.Case(*row) for row in CASES]


stage_of = exams.stage_of
