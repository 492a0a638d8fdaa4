# SPDX-License-Identifier: Apache-2.0
"""Volumes with a place in the forms that other programs write attenuation maps in: NIfTI-1, MetaImage, Interfile.
values[slice, row, column]; matrix: 3 x 4, from (column, row, slice) to LPS, mm. After the documents of these formats;
shares no code with the readers."""
import gzip
import os
import struct
import zlib

import numpy as np

from tools.node_harness import write_file

NIFTI_TYPES = {"<f4": 16, "<f8": 64, "<i2": 4, "<u2": 512, ">f4": 16}


def write_nifti(path, values, matrix, kind="<f4", qform=False, slope=1.0):
    """qform: the place as a quaternion, of a matrix that is a rotation and positive steps."""
    values = np.asarray(values)
    order, ras = kind[0], np.asarray(matrix, float) * [[-1], [-1], [1]]
    header = bytearray(352)
    struct.pack_into(order + "i", header, 0, 348)
    struct.pack_into(order + "8h", header, 40, 3, *values.shape[::-1], 1, 1, 1, 1)
    struct.pack_into(order + "2h", header, 70, NIFTI_TYPES[kind], 8 * np.dtype(kind).itemsize)
    steps = np.linalg.norm(ras[:, :3], axis=0)
    rotation = ras[:, :3] / steps
    sign = -1.0 if np.linalg.det(rotation) < 0 else 1.0
    struct.pack_into(order + "4f", header, 76, sign, *steps)
    struct.pack_into(order + "3f", header, 108, 352, slope, 0)
    struct.pack_into(order + "2h", header, 252, int(qform), int(not qform))
    if qform:
        rotation = rotation * [1, 1, sign]
        a = np.sqrt(max(0, 1 + np.trace(rotation))) / 2
        assert a > 0.1, "a rotation by 180 degrees"
        skew = [rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]]
        struct.pack_into(order + "6f", header, 256, *(np.array(skew) / (4*a)), *ras[:, 3])
    else:
        struct.pack_into(order + "12f", header, 280, *ras.ravel())
    header[344:348] = b"n+1\0"
    stored = values / slope
    stored = np.rint(stored) if np.dtype(kind).kind in "iu" else stored
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as f:
        f.write(bytes(header) + stored.astype(kind).tobytes())
    return path


def write_metaimage(path, values, matrix, compressed=False):
    """float32; .mha: the values behind the header; .mhd: in a .raw beside it."""
    values, matrix = np.asarray(values), np.asarray(matrix, float)
    steps = np.linalg.norm(matrix[:, :3], axis=0)
    data = values.astype("<f4").tobytes()
    data = zlib.compress(data) if compressed else data
    raw = "LOCAL" if path.endswith(".mha") else os.path.basename(path)[:-4] + ".raw"
    text = (
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
        f"CompressedData = {compressed}\n"
        f"TransformMatrix = {' '.join(map(repr, map(float, (matrix[:, :3] / steps).T.ravel())))}\n"
        f"Offset = {' '.join(map(repr, map(float, matrix[:, 3])))}\n"
        f"ElementSpacing = {' '.join(map(repr, map(float, steps)))}\n"
        f"DimSize = {' '.join(map(str, values.shape[::-1]))}\nElementType = MET_FLOAT\nElementDataFile = {raw}\n")
    write_file(path, text.encode() + (data if raw == "LOCAL" else b""))
    if raw != "LOCAL":
        write_file(os.path.join(os.path.dirname(path), raw), data)
    return path


def write_interfile(path, values, spacing, first, unit=None, **keys):
    """An image as STIR writes it: x to the right, y down, z out of the gantry, seen from the bed. first: mm, of x and y
    the centre of the first voxel; of z how far the middle of the slices is from that of the scanner."""
    values = np.asarray(values, "<f4")
    data = os.path.basename(path) + ".v"
    lines = [
        "!INTERFILE :=", f"name of data file := {data}", "!GENERAL DATA :=", "!type of data := PET",
        "imagedata byte order := LITTLEENDIAN", "!PET data type := Image", "!number format := float",
        "!number of bytes per pixel := 4", "number of dimensions := 3"
    ]
    for c in range(3):
        lines += [
            f"!matrix size [{c + 1}] := {values.shape[2 - c]}",
            f"scaling factor (mm/pixel) [{c + 1}] := {spacing[c]!r}",
            f"first pixel offset (mm) [{c + 1}] := {first[c]!r}"
        ]
    lines += [f"quantification units := {unit}"] if unit else []
    lines += [f"{key} := {value}" for key, value in keys.items()] + ["!END OF INTERFILE :=", ""]
    write_file(path, "\n".join(lines))
    values.tofile(os.path.join(os.path.dirname(path), data))
    return path
