#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a scan of parallel beams in HDF5 (NXtomo, DXchange) as Interfile with its flat and dark fields, for `tomonode recon FILE.hs`.

usage: hdf5_scan.py FILE.h5 -o NAME [--bin MM] [--rows FIRST:LAST]    (needs h5py and numpy)

NXtomo: image_key 0 projection, 1 flat field, 2 dark field, 3 ignored. DXchange: exchange/data, data_white, data_dark, theta.
tomonode makes line integrals of the intensities, and finds the axis of rotation. --bin: distance of bins, mm, where the file has none.
"""
import argparse
import itertools
import sys

import h5py
import numpy as np


def unit_of(values, default):
    unit = values.attrs.get("units", default)
    return unit.decode() if isinstance(unit, bytes) else str(unit)


def degrees(angle):
    return angle[:] * (180 / np.pi if unit_of(angle, "degree").startswith("rad") else 1)


def nxtomo(file):
    """Frames, keys, angles in degrees and size of a bin in mm (None: not in the file) of the first NXtomo entry; None: there is none."""
    for entry in file.values():
        key = entry.get("instrument/detector/image_key") if isinstance(entry, h5py.Group) else None
        if key is None:
            continue
        size = entry.get("instrument/detector/x_pixel_size")
        scale = size is not None and {"m": 1e3, "mm": 1, "um": 1e-3}.get(unit_of(size, "m"))
        return entry["instrument/detector/data"], key[:], degrees(entry["sample/rotation_angle"]), float(size[()]) * scale if scale else None
    return None


def dxchange(file):
    group = file["exchange"]
    data = group["data"][:]
    white, dark = (group[name][:] if name in group else data[:0] for name in ("data_white", "data_dark"))
    theta = degrees(group["theta"]) if "theta" in group else np.arange(len(data)) * 180 / len(data)
    keys = [2] * len(dark) + [1] * len(white) + [0] * len(data)
    return np.concatenate((dark, white, data)), np.array(keys), np.concatenate((np.zeros(len(dark) + len(white)), theta)), None


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].replace("usage: ", ""))
    options.add_argument("file")
    options.add_argument("-o", required=True)
    options.add_argument("--bin", type=float)
    options.add_argument("--rows", default=":")
    given = options.parse_args()
    with h5py.File(given.file) as file:
        found = nxtomo(file) or ("exchange" in file and dxchange(file))
        if not found:
            return f"{given.file}: neither NXtomo (instrument/detector/image_key) nor DXchange (exchange/data)"
        data, keys, angles, size = found
        size = given.bin or size
        if not size:
            return f"{given.file}: no size of a bin; needed: --bin MM"
        first, last = (int(x) if x else None for x in given.rows.split(":"))
        frames = data[:, first:last].transpose(1, 0, 2)  # slice, frame, bin
    if frames.dtype.kind != "u" or frames.dtype.itemsize > 2:
        frames = frames.astype("f4")
    frames.astype(frames.dtype.newbyteorder("<")).tofile(given.o + ".s")
    runs = [(int(key), len(list(run))) for key, run in itertools.groupby(keys)]
    slices, _, bins = frames.shape
    views = int((keys == 0).sum())
    with open(given.o + ".hs", "w", encoding="utf-8") as header:
        header.write(f"""!INTERFILE :=
!GENERAL DATA :=
!imaging modality := CT
!type of data := PARALLEL
name of data file := {given.o.rsplit('/', 1)[-1]}.s
imagedata byte order := LITTLEENDIAN
!number format := {"float" if frames.dtype.kind == "f" else "unsigned integer"}
!number of bytes per pixel := {frames.dtype.itemsize}
!number of slices := {slices}
!number of angles := {views}
!number of radial bins := {bins}
!bin size (mm) := {size:g}
slice spacing (mm) := {size:g}
angles (degrees) := {{{','.join(f'{a:.8g}' for a in angles[keys == 0])}}}
frame kinds := {{{','.join(str(key) for key, _ in runs)}}}
frame counts := {{{','.join(str(n) for _, n in runs)}}}
!END OF INTERFILE :=
""")
    print(f"{given.o}.hs: {slices} slices, {views} angles, {bins} bins of {size:g} mm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
