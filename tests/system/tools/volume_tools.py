# SPDX-License-Identifier: Apache-2.0
"""Volumes of DICOM objects and of exported files, read independently of the program: values, and where each voxel is in
the patient."""
import gzip
import os
import struct
import zlib

import numpy as np
import pydicom


class Volume:
    """values[slice, row, column]; matrix: 3 x 4, from (column, row, slice) to LPS, mm."""

    def __init__(self, values, matrix):
        self.values, self.matrix = np.asarray(values, float), np.asarray(matrix, float)

    def on_grid_of(self, other):
        """The values of this volume at the voxels of the other one. None of the voxels may be between those of this
        one."""
        index = np.stack(np.meshgrid(*(np.arange(n) for n in other.values.shape), indexing="ij")[::-1], -1)
        places = index @ other.matrix[:, :3].T + other.matrix[:, 3]
        at = (places - self.matrix[:, 3]) @ np.linalg.inv(self.matrix[:, :3]).T
        nearest = np.rint(at).astype(int)
        off = np.abs((at - nearest) @ self.matrix[:, :3].T).max()
        assert off < 2e-3, f"a voxel is {off} mm away from any voxel of the other volume"
        sizes = self.values.shape, other.values.shape
        assert sorted(sizes[0]) == sorted(sizes[1]), f"{sizes} voxels"
        return self.values[nearest[..., 2], nearest[..., 1], nearest[..., 0]]

    def same_as(self, other, tolerance=2e-6):
        """Voxel by voxel in patient space."""
        found, wanted = self.on_grid_of(other), other.values
        assert np.ptp(wanted) > 0, "a volume of one value"
        worst = np.abs(found - wanted).max()
        assert worst <= tolerance * np.abs(wanted).max(), f"values differ by up to {worst}, of {np.abs(wanted).max()}"


def of_slices(objects):
    """A PET or CT series, one slice an object, sorted along the normal."""
    first = objects[0]
    row, column = np.array(first.ImageOrientationPatient, float).reshape(2, 3)
    normal = np.cross(row, column)
    objects = sorted(objects, key=lambda d: np.dot(np.array(d.ImagePositionPatient, float), normal))
    places = np.array([d.ImagePositionPatient for d in objects], float)
    step = (places[-1] - places[0]) / (len(objects) - 1)
    spacing = [float(v) for v in first.PixelSpacing]
    values = [d.pixel_array * float(d.RescaleSlope) + float(d.RescaleIntercept) for d in objects]
    return Volume(values, np.stack([row * spacing[1], column * spacing[0], step, places[0]], -1))


def of_tomosynthesis(path):
    """A Breast Tomosynthesis Image: frames in any order."""
    d = pydicom.dcmread(path)
    shared = d.SharedFunctionalGroupsSequence[0]

    def group(frame, name):
        found = getattr(d.PerFrameFunctionalGroupsSequence[frame], name, None)
        return (found if found is not None else getattr(shared, name))[0]

    row, column = np.array(group(0, "PlaneOrientationSequence").ImageOrientationPatient, float).reshape(2, 3)
    places = np.array([group(k, "PlanePositionSequence").ImagePositionPatient for k in range(d.NumberOfFrames)], float)
    depth = (places - places[0]) @ np.cross(row, column)
    order = np.argsort(depth if depth[-1] > 0 else -depth)  # slice 1 is at the end of the first frame
    spacing = [float(v) for v in group(0, "PixelMeasuresSequence").PixelSpacing]
    scale = group(0, "RealWorldValueMappingSequence")
    values = d.pixel_array[order] * float(scale.RealWorldValueSlope) + float(scale.RealWorldValueIntercept)
    step = (places[order[-1]] - places[order[0]]) / (len(order) - 1)
    return Volume(values, np.stack([row * spacing[1], column * spacing[0], step, places[order[0]]], -1))


def of_nifti(path):
    """NIfTI-1, by its sform; of 4-D files a list."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        raw = f.read()
    assert raw[344:348] == b"n+1\0" and struct.unpack_from("<h", raw, 254)[0] > 0, "NIfTI-1 with an sform"
    dim = struct.unpack_from("<8h", raw, 40)
    kind = {16: "<f4", 512: "<u2", 4: "<i2"}[struct.unpack_from("<h", raw, 70)[0]]
    offset, slope, inter = struct.unpack_from("<3f", raw, 108)
    matrix = np.array(struct.unpack_from("<12f", raw, 280), float).reshape(3, 4) * [[-1], [-1], [1]]
    n = int(np.prod(dim[1:dim[0] + 1]))
    values = np.frombuffer(raw, kind, n, int(offset)).astype(float) * (slope or 1) + inter
    volumes = [Volume(v, matrix) for v in values.reshape(-1, dim[3], dim[2], dim[1])]
    return volumes if dim[0] == 4 else volumes[0]


def of_metaimage(path):
    """MetaImage of float32, in one file or two, compressed or not; of 4-D files a list."""
    with open(path, "rb") as f:
        raw = f.read()
    keys, at = {}, 0
    while "ElementDataFile" not in keys:
        end = raw.index(b"\n", at)
        key, value = raw[at:end].decode().split(" = ")
        keys[key], at = value, end + 1
    data = raw[at:]
    if keys["ElementDataFile"] != "LOCAL":
        assert not data, "something behind the header"
        with open(os.path.join(os.path.dirname(path), keys["ElementDataFile"]), "rb") as f:
            data = f.read()
    if keys["CompressedData"] == "True":
        assert len(data) == int(keys["CompressedDataSize"]), "CompressedDataSize"
        data = zlib.decompress(data)
    assert keys["ElementType"] == "MET_FLOAT" and keys["BinaryDataByteOrderMSB"] == "False", keys
    n = [int(v) for v in keys["DimSize"].split()]
    dims = len(n)
    spacing, offset = ([float(v) for v in keys[k].split()] for k in ("ElementSpacing", "Offset"))
    axes = np.array([float(v) for v in keys["TransformMatrix"].split()]).reshape(dims, dims)[:3, :3]
    matrix = np.column_stack([axes.T * spacing[:3], offset[:3]])
    values = np.frombuffer(data, "<f4")
    volumes = [Volume(v, matrix) for v in values.reshape(-1, n[2], n[1], n[0])]
    return volumes if dims == 4 else volumes[0]


def turn(objects, angles):
    """Give objects an oblique place in the patient: rotate positions and directions about x, y, z by degrees."""
    rotation = np.eye(3)
    for axis, degrees in enumerate(angles):
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        a, b = [k for k in range(3) if k != axis]
        one = np.eye(3)
        one[a, a] = one[b, b] = c
        one[a, b], one[b, a] = (-s, s) if axis != 1 else (s, -s)
        rotation = one @ rotation
    for d in objects:
        cosines = rotation @ np.array(d.ImageOrientationPatient, float).reshape(2, 3).T
        d.ImageOrientationPatient = [f"{v:.13g}"[:16] for v in cosines.T.ravel()]
        d.ImagePositionPatient = [f"{v:.12g}"[:16] for v in rotation @ np.array(d.ImagePositionPatient, float)]
        d.save_as(d.filename)
