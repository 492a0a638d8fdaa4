# SPDX-License-Identifier: Apache-2.0
"""What a program computed, in a few numbers that hardly depend on the processor, but on each value of each file.

Files of one folder and one kind are taken together, in the order of their names. Their numbers (attributes of DICOM, of
headers, JSON, pages and what a command printed) are added with weights, each as asinh(x / SMALL), so that small ones
count as much as large ones. Their samples (pixels, line integrals) are summarised by mean, standard deviation, and sums
with random signs in units of what noise would give: a change of samples changes these by the square root of the part of
the samples that it concerns."""
import gzip
import os
import re
import zlib

import numpy as np
import pydicom
from PIL import Image

SMALL = 1e-7
# What is known of the files, and by how much it may differ: absolute, in its own size. 0.02 of a sum is 2 % of one of
# its numbers, and more than what the order of single-precision sums makes of all of them.
PARTS = (
    ("files", 0, 0), ("numbers", 0, 0), ("rows", 0, 0), ("sum 0", 0.02, 0), ("sum 1", 0.02, 0), ("samples", 0, 0),
    ("mean", 0, 2e-3), ("deviation", 0, 2e-3), ("signs 0", 5e-3, 0), ("signs 1", 5e-3, 0), ("signs 2", 5e-3, 0),
)  # fmt: skip
VOLATILE = re.compile(
    r"(?:Date|Time|SoftwareVersions|ContributionDescription|Version|StationName|DeviceSerialNumber)$"
)
MOMENT = re.compile(
    r"(?<![\w.])20\d\d-?\d\d-?\d\d[T ]?(?:\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?Z?)?|\b\d+\.?\d* s\b(?: \(read [^)]*\))?|"
    r'"seconds": *\{[^}]*\}|"[a-z_]*(?:seconds|version|revision|build)[a-z_]*": *[-0-9.e+]+|'
    r"<style.*?</style>|<script.*?</script>|<[^>]*>|\b\d+(?:\.\d+){2,}\b|(?<![\w.])[0-9a-f]{16,}|"
    r"(?<![\w.])[0-9a-f]{12}(?:-dirty)?(?![\w.])",  # the last: the revision, whose characters may all be digits
    re.S,
)
NUMBER = re.compile(r"(?<![\w.#])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w|\.\d)")


def numbers_in(text):
    return [float(number) for number in NUMBER.findall(MOMENT.sub(" ", text))]


def numbers_of(elements):
    """Their numbers, also those within texts; of a defined term a number that stands for it."""
    for element in elements:
        values = element.value if element.VM > 1 else [element.value]
        if VOLATILE.search(element.keyword) or element.is_empty:
            continue
        elif element.VR in ("DS", "IS", "US", "UL", "SS", "SL", "FD", "FL"):
            yield from map(float, values)
        elif element.VR in ("LO", "LT", "SH", "ST", "UC", "UT"):
            yield from numbers_in(" ".join(values))
        elif element.VR == "CS":
            yield from (zlib.crc32(value.encode()) for value in values)


def samples_in(data):
    """The upper halves of 32-bit words, little-endian, behind a header of any size: of floats all that matters."""
    return np.frombuffer(data[len(data) % 4 :], "<i2")[1::2]


def read(path):
    """(numbers, rows, samples) of a file; rows: elements of DICOM, lines, tags of pages"""
    with open(path, "rb") as f:
        data = f.read()
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    if data[128:132] == b"DICM":
        ds = pydicom.dcmread(path)
        pixels = np.frombuffer(b"" if ds.file_meta.TransferSyntaxUID.is_compressed else ds.get("PixelData", b""), "<u2")
        chunks = [samples_in(element.value) for element in ds if element.tag.is_private and element.VR in ("OB", "OW")]
        elements = [element for element in ds.iterall() if element.VR != "SQ"]
        return list(numbers_of(elements)), len(elements), np.concatenate([pixels, *chunks])
    if path.endswith(".png"):
        picture = Image.open(path)
        return [*picture.size, *picture.info.get("dpi", ())], 0, np.asarray(picture, float).ravel()
    if path.endswith(".zraw"):
        return [], 0, samples_in(zlib.decompress(data))
    try:
        text = data.decode("utf-8")
        return numbers_in(text), text.count("\n") + text.count("<"), np.empty(0)
    except UnicodeDecodeError:
        return [], 0, samples_in(data)


def signs(n, k):
    return 1.0 - 2 * ((np.arange(n, dtype=np.uint32) + np.uint32(1 + 7919 * k)) * np.uint32(2654435761) >> 15 & 1)


def weighted(numbers, k):
    n = len(numbers)
    weights = signs(n, k) * (0.5 + np.arange(n) * (0.618 + k) % 1)
    return float(weights @ np.arcsinh(np.array(numbers, float) / SMALL)) if n else 0.0


def of_files(paths):
    """The values of PARTS, of files that are taken together."""
    numbers, rows, samples = [], 0, []
    for path in sorted(paths):
        found = read(path)
        numbers += found[0]
        rows += found[1]
        samples.append(found[2])
    x = np.concatenate(samples).astype(float)
    mean, deviation = (x.mean(), x.std()) if x.size else (0, 0)
    noise = (deviation or 1) * np.sqrt(x.size or 1)
    values = [len(samples), len(numbers), rows, *(weighted(numbers, k) for k in range(2)), x.size, mean, deviation]
    return [float(f"{value:.6g}") for value in (*values, *(signs(x.size, k) @ (x - mean) / noise for k in range(3)))]


def of_folder(folder):
    """{"folder/*.kind": of_files()} of all below a folder"""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            kind = os.path.join(os.path.relpath(at, folder), "*" + name[name.index(".") :])
            found.setdefault(os.path.normpath(kind), []).append(os.path.join(at, name))
    return {kind: of_files(paths) for kind, paths in found.items()}


def differences(found, expected):
    """Sentences; both as of_folder() returns it."""
    if found.keys() != expected.keys():
        return [f"files {sorted(found)}, expected {sorted(expected)}"]
    return [
        f"{kind}: {name} {value}, expected {wanted}"
        for kind in found
        for (name, most, part), value, wanted in zip(PARTS, found[kind], expected[kind])
        if not abs(value - wanted) <= most + part * abs(wanted)
    ]
