#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the processor time of reading a header against the number of its parts, for every kind of part: elements,
private creators, sequences, items, depth, fragments, frames, values, lengths, deflated bytes. Prints a table in
Markdown; docs/reliability.md has its largest times.

usage: headers.py [--limit SECONDS] [KIND...]; exits with 1 if any header takes longer than the limit (default: 2 s)."""
import argparse
import os
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

BUILD = os.environ.get("TOMONODE_BUILD", "build/dev")
EXPLICIT, IMPLICIT, DEFLATED, JPEG = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2", "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.4.70"
TOMO_CLASS, PROJECTION_CLASS = "1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.5.1.4.1.1.1.2.1"
LONG = {"OB", "OW", "SQ", "UN", "UT", "UC"}
CPU_MAX = 60  # s; then a measurement is ended
UNDEFINED = 0xFFFFFFFF
ITEM, ITEM_END, SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD


def element(tag, vr, value, implicit=False, length=None):
    length = len(value) if length is None else length
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF)
    if implicit or tag >> 16 == 0xFFFE:
        return head + struct.pack("<I", length) + value
    if vr in LONG:
        return head + vr.encode() + b"\0\0" + struct.pack("<I", length) + value
    return head + vr.encode() + struct.pack("<H", length) + value


def item(content=b""):
    return element(ITEM, "", content)


def uid(text):
    return text.encode() + b"\0" * (len(text) % 2)


def part10(syntax, data):
    meta = element(0x00020010, "UI", uid(syntax))
    return b"\0" * 128 + b"DICM" + element(0x00020000, "UL", struct.pack("<I", len(meta))) + meta + data


def whole(before_28, after_28=b"", sop_class=PROJECTION_CLASS, implicit=False, group_18=b"", frames=None, instance="1.2.3.4"):
    """An object with what every image has. before_28: elements of groups 0021 to 0027; after_28: of groups above 0028."""
    def e(tag, vr, value):
        return element(tag, vr, value, implicit)
    return (e(0x00080008, "CS", b"ORIGINAL\\PRIMARY\\TOMO_PROJ") + e(0x00080016, "UI", uid(sop_class)) + e(0x00080018, "UI", uid(instance))
            + e(0x00080060, "CS", b"MG") + e(0x00080070, "LO", b"ACME") + e(0x00100020, "LO", b"ID") + group_18
            + e(0x0020000D, "UI", uid("1.2.3.5")) + e(0x0020000E, "UI", uid("1.2.3.6")) + e(0x00200013, "IS", b"1 ") + before_28
            + e(0x00280002, "US", b"\1\0") + (e(0x00280008, "IS", frames) if frames else b"") + e(0x00280010, "US", b"\2\0")
            + e(0x00280011, "US", b"\2\0") + after_28)


def creators_and_elements(n, each, implicit=False):
    """n odd groups, each with `each` private creators and one element for each of them."""
    out = []
    for g in range(n):
        group = (0x0029 + 2 * g) << 16
        out += [element(group | 0x10 + k, "LO", b"X%03d" % k, implicit) for k in range(each)]
        out += [element(group | (0x10 + k) << 8, "LO", b"", implicit) for k in range(each)]
    return b"".join(out)


def elements(n, vr="LO", implicit=False, odd=False):
    """n empty elements in the groups from 002B or 002C on."""
    group, out = 0x002B if odd else 0x002C, []
    for k in range(n):
        out.append(element((group + 2 * (k // 60000)) << 16 | 0x1000 + k % 60000 if odd or k % 60000 else (group + 2 * (k // 60000)) << 16 | 1, vr,
                           b"", implicit))
    return b"".join(out)


def nested(n):
    """n sequences, 15 deep in each other, with undefined lengths."""
    one = b""
    for _ in range(15):
        one = element(0x00081140, "SQ", element(ITEM, "", one + element(ITEM_END, "", b""), length=UNDEFINED) + element(SEQUENCE_END, "", b""),
                      length=UNDEFINED)
    return element(0x00400555, "SQ", item(one) * n)


def per_frame(n):
    """n items of Per-Frame Functional Groups, each with six macros."""
    frame = b"".join(element(tag, "SQ", item(element(0x00181510, "DS", b"1.0 "))) for tag in
                     (0x00189504, 0x00189506, 0x00209111, 0x00209113, 0x00289110, 0x00289145))
    return element(0x52009230, "SQ", item(frame) * n)


def fragments(n):
    return element(0x7FE00010, "OB", item() + item(b"\xff\xd8") * n + element(SEQUENCE_END, "", b""), length=UNDEFINED)


def deflated(n):
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return squeeze.compress(whole(b"", element(0x7FE00010, "OW", b"\0" * n))) + squeeze.flush()


# kind: (sizes, n -> bytes of the file)
KINDS = {
    "private creators and elements, 240 of each in each of n groups": (
        (10, 20, 40, 300, 1000), lambda n: part10(EXPLICIT, whole(b"", creators_and_elements(n, 240)))),
    "the same, implicit VR": ((10, 20, 40, 300), lambda n: part10(IMPLICIT, whole(b"", creators_and_elements(n, 240, True), implicit=True))),
    "the same, in each of n items": (
        (250, 500, 1000), lambda n: part10(EXPLICIT, whole(b"", element(0x00400555, "SQ", item(creators_and_elements(1, 240)) * n)))),
    "public elements, explicit VR": ((125000, 250000, 490000), lambda n: part10(EXPLICIT, whole(b"", elements(n)))),
    "public elements, implicit VR": ((125000, 250000, 490000), lambda n: part10(IMPLICIT, whole(b"", elements(n, implicit=True), implicit=True))),
    "public elements, UN": ((125000, 250000, 490000), lambda n: part10(EXPLICIT, whole(b"", elements(n, "UN")))),
    "private elements without a creator": ((125000, 250000, 490000), lambda n: part10(EXPLICIT, whole(b"", elements(n, odd=True)))),
    "empty items of one sequence": ((4096, 8192, 16384), lambda n: part10(EXPLICIT, whole(b"", element(0x00400555, "SQ", item() * n)))),
    "sequences with 16 items": (
        (7000, 14000, 28000),
        lambda n: part10(EXPLICIT, whole(b"", b"".join(element(0x00410000 + 0x1000 + k, "SQ", item() * 16) for k in range(n))))),
    "items that are 15 sequences deep": ((1000, 4000, 16000), lambda n: part10(EXPLICIT, whole(b"", nested(n)))),
    "fragments of pixel data": ((125000, 250000, 490000), lambda n: part10(JPEG, whole(b"", fragments(n)))),
    "fragments of an icon": (
        (125000, 250000, 490000), lambda n: part10(JPEG, whole(b"", element(0x00880200, "SQ", item(fragments(n)))))),
    "frames of a tomosynthesis object": (
        (2048, 8192, 16384), lambda n: part10(EXPLICIT, whole(b"", per_frame(n), TOMO_CLASS, frames=b"%d" % n + b" " * (len(str(n)) % 2)))),
    "values of one attribute that the node reads": (
        (8000, 16000, 32000),
        lambda n: part10(EXPLICIT, whole(b"", group_18=element(0x00181164, "UC", b"1\\" * n)))),
    "bytes of one text that the node reads": (
        (1 << 20, 1 << 22, 1 << 24), lambda n: part10(EXPLICIT, whole(b"", group_18=element(0x00181110, "UT", b"1" * n)))),
    "bytes of pixels, deflated": ((1 << 24, 1 << 26, 1 << 28, 1 << 30), lambda n: part10(DEFLATED, deflated(n))),
}


def read_header(path):
    """Processor time in seconds, return value and message; the time is CPU_MAX if it takes longer."""
    p = subprocess.run([os.path.join(BUILD, "tests/read_header"), path], capture_output=True, text=True,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX, CPU_MAX)))
    return p.stdout.rstrip("\n").split("\t", 2) if p.returncode == 0 else (str(CPU_MAX), "0", "not finished")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    slowest = 0
    print("| parts of the header | number: MB, seconds |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind, (sizes, make) in KINDS.items():
            if options.kinds and not any(k in kind for k in options.kinds):
                continue
            cells, last = [], ""
            for n in sizes:
                path = os.path.join(folder, "header.dcm")
                with open(path, "wb") as f:
                    f.write(make(n))
                seconds, code, last = read_header(path)
                slowest = max(slowest, float(seconds))
                cells.append(f"{n}: {os.path.getsize(path) / 1e6:.2f} MB, {float(seconds):.2f} s" + (" (refused)" if code != "0" else ""))
            print(f"| {kind} | {'; '.join(cells)} |", flush=True)
            if code != "0":
                print(f"{kind}, {n}: {last}", file=sys.stderr)
    print(f"slowest: {slowest:.2f} s of processor time", file=sys.stderr)
    return slowest > options.limit


if __name__ == "__main__":
    sys.exit(main())
