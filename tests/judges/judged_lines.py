# SPDX-License-Identifier: Apache-2.0
"""Projections along lines with the conventions of parallelproj, by the package tomonode: what both adapters share.

Theirs: images (x, y, z), the origin is the middle of voxel 0, TOF bins ascend from the start to the end of a line, the resolution and an offset of
the bins may be given for each line, adjoints are added to the image. The number of sigmas is not passed on: our kernel has 4.
"""
import array_api_compat
import numpy as np
import tomonode as tn


def host(a):
    """An array of any library as numpy."""
    a = a.cpu() if hasattr(a, "cpu") else a.get() if hasattr(a, "get") else a
    return a if isinstance(a, np.ndarray) else np.from_dlpack(a)


def shifted(start, end, offset):
    """The ends of lines, moved along them by an offset that counts towards the positive end of the axis along which a line is longest."""
    along = end - start
    axis = np.argmax(np.abs(along), 1)[:, None]
    step = along / np.linalg.norm(along, axis=1, keepdims=True) * np.sign(np.take_along_axis(along, axis, 1)) * offset[:, None]
    return start + step, end + step


def projectors(start, end, shape, origin, size, tof):
    """Yield (numbers of lines, None: all; projector), one for each resolution. tof: None or (bins, width, sigma, offset, bin of each line)."""
    grid = tn.Grid(shape, [float(s) for s in size], [float(o) - 0.5 * float(s) for o, s in zip(origin, size)])
    n = len(start)
    if tof is None:
        groups = [(None, 0.0)]
    else:
        bins, width, sigma, offset, number = tof
        if np.any(offset):
            start, end = shifted(start, end, np.broadcast_to(offset, n))
        groups = [(np.flatnonzero(sigma == s), s) for s in np.unique(sigma)] if sigma.size > 1 else [(None, sigma[0])]
    for lines, s in groups:
        some = slice(None) if lines is None else lines
        points = np.concatenate([start[some], end[some]]).astype(np.float32)
        m = len(points) // 2
        pairs = np.stack([np.arange(m, 2 * m), np.arange(m)], 1).astype(np.int32)  # our bins ascend towards the first end
        more = {} if tof is None else {"tof": (bins, width, float(s))}
        if tof is not None and number is None:  # a sinogram: all bins of each line
            pairs, more["tof_bin"] = np.repeat(pairs, bins, 0), np.tile(np.arange(bins, dtype=np.int32), m)
        elif tof is not None:
            more["tof_bin"] = number[some]
        yield lines, tn.Projector(tn.Lines(points, pairs, **more), grid)


def project(start, end, image, origin, size, values, adjoint, tof=None):
    """Write A image to values, or add A' values to image; both of one library."""
    xp = array_api_compat.array_namespace(image)
    x = xp.permute_dims(image, (2, 1, 0))  # strides are free
    start, end = host(start).reshape(-1, 3), host(end).reshape(-1, 3)
    columns = tof[0] if tof is not None and tof[4] is None else 1
    if tof is not None and tof[1] <= 0:  # theirs: no counts; ours: an error
        values[...] = values if adjoint else 0
        return
    for lines, a in projectors(start, end, tuple(image.shape), host(origin), host(size), tof):
        if lines is None:
            if adjoint:
                a.adjoint(xp.reshape(values, a.out_shape), out=x, add=True)
            else:
                values[...] = xp.reshape(a(x), values.shape)
            continue
        rows = host(values).reshape(len(start), columns)
        if adjoint:
            part = xp.asarray(np.ascontiguousarray(rows[lines]).ravel(), device=array_api_compat.device(image))
            a.adjoint(part, out=x, add=True)
        else:
            rows[lines] = host(a(x)).reshape(len(lines), columns)
            values[...] = xp.asarray(rows.reshape(values.shape), device=array_api_compat.device(values))
