# SPDX-License-Identifier: Apache-2.0
"""What ASTRA's tests of DLPack call of the module astra, filled with tomonode: their arrays of several libraries are passed to our projectors."""
import sys

import numpy as np
import tomonode as tn

experimental = data2d = data3d = projector = projector3d = sys.modules[__name__]  # functions of the submodules are all here
sys.modules["astra.experimental"], __path__ = experimental, []
_held = {}


def _hold(thing):
    _held[len(_held)] = thing
    return len(_held) - 1


def use_cuda():
    return True  # "their tests may run"


def delete(_):
    pass


def create_vol_geom(rows, columns, slices=None):
    return (rows, columns) if slices is None else (slices, rows, columns)


def create_proj_geom(kind, *numbers):
    """parallel: width of a detector, detectors, angles; parallel3d: two widths, rows, columns, angles."""
    return (kind, *numbers)


def geom_size(geometry):
    if not isinstance(geometry[0], str):
        return geometry
    return (len(geometry[-1]), geometry[2]) if geometry[0] == "parallel" else (geometry[3], len(geometry[-1]), geometry[4])


def create_projector(_, geometry, volume):
    kind, width, *_, angles = geometry
    shape = geom_size(geometry)
    grid = tn.Grid((*volume[:-3:-1], volume[0] if len(volume) == 3 else 1), 1)
    if kind == "parallel":
        return _hold(tn.Projector(tn.Parallel(angles=np.degrees(angles), radial=shape[1], bin=width), grid, model="siddon"))
    z, phi, u = np.meshgrid(np.arange(shape[0]) - (shape[0] - 1) / 2, angles, np.arange(shape[2]) - (shape[2] - 1) / 2, indexing="ij")
    along, across = [np.stack([c * np.cos(phi) - s * np.sin(phi), c * np.sin(phi) + s * np.cos(phi), h], -1).reshape(-1, 3)
                     for c, s, h in ((0, 100, 0 * z), (u, 0, z))]
    n = len(along)
    return _hold(tn.Projector(tn.Lines(np.concatenate([across + along, across - along]), np.stack([np.arange(n), np.arange(n) + n], 1)), grid))


def _seen(array, geometry, shape):
    """An array of their shape with ours, without a copy; another one as it is, for our check."""
    return array.reshape(shape) if tuple(array.shape) == tuple(geom_size(geometry)) else array


def direct_FP2D(number, volume, data):
    a = _held[number]
    a(volume.reshape(a.in_shape), out=data.reshape(a.out_shape))


def direct_BP2D(number, volume, data):
    a = _held[number]
    a.adjoint(data.reshape(a.out_shape), out=volume.reshape(a.in_shape))


direct_FP3D, direct_BP3D = direct_FP2D, direct_BP2D


def create(_, geometry, value):
    return _hold(np.full(geom_size(geometry), value, np.float32))


def link(kind, geometry, array):
    """ASTRA's objects are written in place: write `array`."""
    if kind == "-vol":
        a = _held[create_projector("", ("parallel3d", 1.0, 1.0, 9, 9, np.zeros(1)), geometry)]
        a.adjoint(np.zeros(a.out_shape, np.float32), out=_seen(array, geometry, a.in_shape))
    else:
        a = _held[create_projector("", geometry, (9, 9))]
        a(np.zeros(a.in_shape, np.float32), out=_seen(array, geometry, a.out_shape))


def create_sino(volume, number):
    a = _held[number]
    y = a(_held[volume].reshape(a.in_shape))
    return -1, y[0] if y.ndim == 3 else y


def create_backprojection(data, number):
    a = _held[number]
    x = a.adjoint(_held[data].reshape(a.out_shape))
    return -1, x[0] if len(a.out_shape) == 3 else x


def create_sino3d_gpu(volume, geometry, volume_geometry):
    number, y = create_sino(volume, create_projector("", geometry, volume_geometry))
    return number, y.reshape(geom_size(geometry))


def create_backprojection3d_gpu(data, geometry, volume_geometry):
    return create_backprojection(data, create_projector("", geometry, volume_geometry))
