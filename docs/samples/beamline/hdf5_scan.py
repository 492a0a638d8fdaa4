#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a scan of parallel beams in HDF5 (NXtomo, DXchange) as Interfile: line integrals for `tomonode recon FILE.hs`.

usage: hdf5_scan.py FILE.h5 -o NAME [--bin MM] [--rows FIRST:LAST]    (needs h5py and numpy)

NXtomo: image_key 0 projection, 1 flat field, 2 dark field, 3 ignored. DXchange: exchange/data, data_white, data_dark, theta.
Line integral = -ln((I - dark) / (flat - dark)). Flat fields before and after the projections are interpolated in the order of the
frames. The axis of rotation is not written: tomonode finds it. --bin: distance of bins, mm, where the file has none.
"""
import argparse
import sys

import h5py
import numpy as np

LEAST = 1e-4  # of the flat field: less is no signal


def nxtomo(file):
    """Frames, keys, angles in degrees and size of a bin in mm (None: not in the file) of the first NXtomo entry; None: there is none."""
    for entry in file.values():
        key = entry.get("instrument/detector/image_key") if isinstance(entry, h5py.Group) else None
        if key is None:
            continue
        angle = entry["sample/rotation_angle"]
        unit = angle.attrs.get("units", b"degree")
        turn = 180 / np.pi if (unit.decode() if isinstance(unit, bytes) else unit).startswith("rad") else 1
        size = entry.get("instrument/detector/x_pixel_size")
        metre = {"m": 1e3, "mm": 1, "um": 1e-3}
        unit = "m" if size is None else size.attrs.get("units", "m")
        scale = metre[unit.decode() if isinstance(unit, bytes) else unit]
        return entry["instrument/detector/data"], key[:], angle[:] * turn, None if size is None else float(size[()]) * scale
    return None


def dxchange(file):
    data, white, dark = (file["exchange"][name][:] for name in ("data", "data_white", "data_dark"))
    theta = file["exchange/theta"][:] if "exchange/theta" in file["exchange"].file else np.arange(len(data)) * 180 / len(data)
    keys = [2] * len(dark) + [1] * len(white) + [0] * len(data)
    return np.concatenate((dark, white, data)), np.array(keys), np.concatenate((np.zeros(len(dark) + len(white)), theta)), None


def flat_of(frames, keys):
    """The flat field of each projection: means of the runs of flat fields, interpolated between them."""
    runs, places = [], []
    for k in np.flatnonzero(keys == 1):
        if runs and keys[k - 1] == 1:
            runs[-1].append(frames[k])
        else:
            runs.append([frames[k]])
            places.append(k)
    means = [np.mean(run, axis=0) for run in runs]
    for k in np.flatnonzero(keys == 0):
        after = np.searchsorted(places, k)
        low, high = max(after - 1, 0), min(after, len(places) - 1)
        part = (k - places[low]) / (places[high] - places[low]) if high > low else 0
        yield means[low] + part * (means[high] - means[low])


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
        frames = np.asarray(data[:, first:last], np.float64)
    if not ((keys == 0).any() and (keys == 1).any() and (keys == 2).any()):
        return f"{given.file}: projections, flat and dark fields are needed; found: {[int((keys == k).sum()) for k in range(3)]}"
    dark = frames[keys == 2].mean(axis=0)
    signal = np.array([(frame - dark) / np.maximum(flat - dark, 1e-9) for frame, flat in zip(frames[keys == 0], flat_of(frames, keys))])
    dead = (signal < LEAST).sum()
    lines = -np.log(np.maximum(signal, LEAST)).transpose(1, 0, 2)
    slices, views, bins = lines.shape
    lines.astype("<f4").tofile(given.o + ".s")
    with open(given.o + ".hs", "w", encoding="utf-8") as header:
        header.write(f"""!INTERFILE :=
!GENERAL DATA :=
!imaging modality := CT
!type of data := PARALLEL
name of data file := {given.o.rsplit('/', 1)[-1]}.s
imagedata byte order := LITTLEENDIAN
!number format := float
!number of bytes per pixel := 4
!number of slices := {slices}
!number of angles := {views}
!number of radial bins := {bins}
!bin size (mm) := {size:g}
slice spacing (mm) := {size:g}
angles (degrees) := {{{','.join(f'{a:.8g}' for a in angles[keys == 0])}}}
!END OF INTERFILE :=
""")
    print(f"{given.o}.hs: {slices} slices, {views} angles, {bins} bins of {size:g} mm; {dead} bins without signal became {-np.log(LEAST):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
