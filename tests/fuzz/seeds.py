#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeds of fuzz targets that are another seed with other values of a few keys.

usage: seeds.py FOLDER     writes FOLDER/TARGET/NAME
"""
import os
import sys

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
BYTE = {"ElementType": "MET_UCHAR"}
# What follows the header: the elements of `float`, then materials.
VOXELS = "\0\1\2\3\4\0\1\2"
ELEMENTS = VOXELS + "====\n"

# target: what is between key and value, then by the name of each seed: the one it is made from, its other values (None: without the
# key; new ones go before the last line of the header), and what follows the header, if it is not the same, or (what, by what) is
# replaced in it.
SEEDS = {
    "mhd": (" = ", {
        "channels-3": ("float", {**BYTE, "ElementNumberOfChannels": "3"}),
        "channels-and-header-size": ("float", {**BYTE, "ElementNumberOfChannels": "1", "HeaderSize": "0",
                                               "Orientation": "1 0 0 0 1 0 0 0 1"}),
        "element-size": ("float", {**BYTE, "ElementSize": "1 1 1", "ElementSpacing": None}),
        "half-voxels": ("float", {**BYTE, "DimSize": "2.5 2 2"}),
        "header-size-unknown": ("float", {**BYTE, "HeaderSize": "-1"}),
        "list": ("float", {**BYTE, "ElementDataFile": "LIST"}),
        "longer-data": ("float", BYTE, (VOXELS, 9 * "\0")),
        "local": ("float", {**BYTE, "ElementDataFile": "LOCAL"}),
        "materials-bad-number": ("float", BYTE, ELEMENTS + "0 x air air\n"),
        "materials-bad-role": ("float", BYTE, ELEMENTS + "0 0 air something\n1 0.05 fat tissue\n"),
        "materials-empty": ("float", BYTE, ELEMENTS + "# nothing\n\n"),
        "materials-label": ("float", BYTE, ELEMENTS + "70000 0 air air\n"),
        "materials-long-line": ("float", BYTE, ELEMENTS + "0 0 " + 2000 * "a" + " air\n"),
        "materials-negative": ("float", BYTE, ELEMENTS + "0 -1 air air\n"),
        "materials-twice": ("float", BYTE, ELEMENTS + "0 0 air air\n0 1 fat tissue\n"),
        "no-bool": ("float", {**BYTE, "CompressedData": "maybe"}),
        "no-data-file": ("float", {**BYTE, "ElementDataFile": None}),
        "no-size": ("float", {**BYTE, "DimSize": None}),
        "not-compressed": ("float", {**BYTE, "CompressedData": "1"}, (VOXELS, "plain text")),
        "no-type": ("float", {"ElementType": None}),
        "other-folder": ("float", {**BYTE, "ElementDataFile": "../d"}),
        "pattern": ("float", {**BYTE, "ElementDataFile": "d%03d.raw 1 2 1"}),
        "rotated": ("float", {**BYTE, "Rotation": "0 1 0 1 0 0 0 0 1"}),
        "sizes-four": ("float", {**BYTE, "DimSize": "2 2 2 2"}),
        "spacing-nan": ("float", {**BYTE, "ElementSpacing": "nan 1 1"}),
        "text-elements": ("float", {**BYTE, "BinaryData": "False"}),
        "too-many": ("float", {**BYTE, "DimSize": "4096 4096 4096"}),
        "two-dimensions": ("float", {**BYTE, "NDims": "2", "DimSize": "2 2"}),
        "unknown-label": ("float", BYTE, ("\4\0", "\4\t")),
    }),
    "interfile": (" := ", {
        "double": ("float", {"!number format": "long float", "!number of bytes per pixel": "8", "data offset in bytes[1]": "16",
                             "study date (yyyy:mm:dd)": "2010:06:29", "study time (hh:mm:ss)": "10:20:30",
                             "patient orientation": "head_in", "patient rotation": "supine"}, ""),
        "no-scanner": ("float", dict.fromkeys((
            "Number of rings", "Number of detectors per ring", "Inner ring diameter (cm)", "Average depth of interaction (cm)",
            "Distance between rings (cm)", "Default bin size (cm)", "View offset (degrees)", "effective central bin size (cm)")), ""),
        "parallel-list": ("parallel", {
            "imagedata byte order": "BIGENDIAN", "!number format": "signed integer", "!number of bytes per pixel": "2",
            "first angle (degrees)": None, "arc (degrees)": None, "unit": "cps", "data offset in bytes[1]": "16",
            "angles (degrees)": "{0, -30,\n 45.5}"}),
        "siemens": ("siemens-complete", dict.fromkeys((
            "Inner ring diameter (cm)", "Distance between rings (cm)", "TOF timing resolution (ps)",
            "number of detectors per ring"))),
        "tof-order": ("tof", {"TOF bin order": "{0,1,-1,2,-2}"}, "abcd"),
        "unsigned-byte": ("float", {"applied corrections": "{None}", "!number format": "unsigned integer",
                                    "!number of bytes per pixel": "1", "!matrix size [4]": "3", "!matrix size [2]": "{ 3,2,2}",
                                    "minimum ring difference per segment": "{0, 1, -1}",
                                    "maximum ring difference per segment": "{0, 1, -1}"}, ""),
    }),
    "maps": (" := ", {
        "interfile-mirror": ("interfile", {}, ("\n1 0 0 0\n", "\n-1 0 0 0\n")),
        "interfile-outside": ("interfile", {"name of data file": "../d"}),
    }),
}


def made_seed(base, between, changes, *behind):
    header, mark, rest = base.partition("====\n")
    lines = []
    for line in header.splitlines(True):
        key = line.split(between.strip())[0].strip()
        value = changes.get(key, "")
        if key not in changes:
            lines.append(line)
        elif value is not None:
            lines.append(f"{key}{between}{value}\n")
    known = {line.split(between.strip())[0].strip() for line in header.splitlines()}
    lines[-1:-1] = [f"{key}{between}{value}\n" for key, value in changes.items() if key not in known]
    if behind:
        rest = rest.replace(*behind[0]) if isinstance(behind[0], tuple) else behind[0]
        mark = rest and mark
    return "".join(lines) + mark + rest


def main():
    for target, (between, rows) in SEEDS.items():
        os.makedirs(os.path.join(sys.argv[1], target), exist_ok=True)
        for name, (base, *how) in rows.items():
            with open(os.path.join(CORPUS, target, base), encoding="latin-1", newline="") as f:
                text = made_seed(f.read(), between, *how)
            with open(os.path.join(sys.argv[1], target, name), "w", encoding="latin-1", newline="") as f:
                f.write(text)


if __name__ == "__main__":
    main()
