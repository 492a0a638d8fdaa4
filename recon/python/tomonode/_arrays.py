# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: anything with DLPack or numpy's interface is passed on without a copy; results are made by the
library of an argument."""
from __future__ import annotations

import ctypes as c
import functools
import math
import sys
from typing import Any, Sequence

from . import _c

_IMMUTABLE = ("jax", "jaxlib")  # modules whose arrays may only be read, although DLPack hands them out
_get_pointer = c.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


def _from_interface(a: Any, writes: bool, name: str) -> _c.Array:
    """A host array by numpy's interface, also one that may only be read."""
    about = a.__array_interface__
    kind, size = about["typestr"][1], int(about["typestr"][2:])
    if about["typestr"][0] == ">":
        raise ValueError(f"{name}: float32 in the byte order of another processor")
    if writes and about["data"][1]:
        raise ValueError(f"{name}: it is written, but may only be read")
    shape, strides = about["shape"], about.get("strides")
    if strides and any(s % 4 for s in strides):
        raise ValueError(f"{name}: strides of {strides} bytes; allowed: multiples of 4")
    array = _c.Array(data=about["data"][0], device=_c.DlDevice(1, 0), ndim=len(shape),
                     type=_c.DlType({"f": 2, "i": 0, "u": 1}.get(kind, 5), 8 * size, 1))
    array.shape = (_c.I64 * max(len(shape), 1))(*shape)
    if strides:
        array.strides = (_c.I64 * max(len(shape), 1))(*(s // 4 for s in strides))
    return array


@functools.lru_cache(maxsize=64)
def _stream_of_torch(stream: int, gpu: int) -> Any:
    return sys.modules["torch"].cuda.ExternalStream(stream, gpu)


def _from_torch(a: Any, stream: int) -> Any:
    """The capsule of a tensor of a GPU. Its __dlpack__() makes a new object of the stream each time, and refuses a GPU
    that is not the current one of torch."""
    torch = sys.modules["torch"]
    if stream != -1:
        _stream_of_torch(stream, a.device.index).wait_stream(torch.cuda.current_stream(a.device))
    return torch.utils.dlpack.to_dlpack(a)


class Passed:
    """An array as an argument of a call, during which it must live: the pointer is that of this object. `stream` is of
    DLPack: it waits for the array."""

    def __init__(self, a: Any, name: str, stream: int | None, writes: bool = False):
        self.on_gpu = False
        if hasattr(a, "__array_interface__"):
            self.array = _from_interface(a, writes, name)
            self._as_parameter_: Any = c.byref(self.array)
        elif writes and type(a).__module__.partition(".")[0] in _IMMUTABLE:
            raise ValueError(f"{name}: it is written, but arrays of jax never change; pass one of numpy, or no `out`")
        elif hasattr(a, "__dlpack__"):
            self.on_gpu = hasattr(a, "__dlpack_device__") and int(a.__dlpack_device__()[0]) in (2, 13)
            if not (self.on_gpu and stream):
                self.capsule = a.__dlpack__()
            elif type(a).__module__.partition(".")[0] == "torch" and not a.requires_grad:
                self.capsule = _from_torch(a, stream)
            else:
                self.capsule = a.__dlpack__(stream=stream)
            # a DLManagedTensor begins with its DLTensor, the struct tn_array
            self._as_parameter_ = _get_pointer(self.capsule, b"dltensor")
        else:
            raise TypeError(f"{name}: an array of type {type(a).__name__}; allowed: arrays with __dlpack__ or "
                            "__array_interface__, of float32")


def empty_like(a: Any, shape: Sequence[int]) -> Any:
    """A new float32 array of the library of `a`, on its device, in C order."""
    shape = tuple(int(n) for n in shape)
    module = type(a).__module__.partition(".")[0]
    if module == "torch":
        return a.new_empty(shape)
    if module == "cupy":
        with a.device:
            return sys.modules["cupy"].empty(shape, dtype="float32")
    if module not in ("numpy", *_IMMUTABLE) and hasattr(a, "__array_namespace__"):
        library = a.__array_namespace__()
        return library.empty(shape, dtype=library.float32, device=a.device)
    import numpy
    return numpy.empty(shape, numpy.float32)


def zeros(layout: _c.Layout, like: Any) -> Any:
    """Zeros with the strides of the device, in the library of `like` (None: numpy)."""
    shape, strides = layout_shape(layout), [layout.strides[i] for i in range(layout.ndim)]
    module = type(like).__module__.partition(".")[0]
    if module == "torch":
        return like.new_zeros(layout.floats).as_strided(shape, strides)
    if module == "cupy":
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.lib.stride_tricks.as_strided(cupy.zeros(layout.floats, "float32"), shape,
                                                     [4 * s for s in strides])
    import numpy
    return numpy.lib.stride_tricks.as_strided(numpy.zeros(layout.floats, numpy.float32), shape,
                                              [4 * s for s in strides])


def layout_shape(layout: _c.Layout) -> tuple[int, ...]:
    return tuple(layout.shape[i] for i in range(layout.ndim))


def table(values: Any, ctype: Any, columns: int, name: str) -> tuple[Any, int]:
    """Numbers [n][columns] (columns 1: [n]) as a C array and n: a list, or an array, which is converted."""
    if values is None:
        return None, 0
    if hasattr(values, "__array_interface__") or hasattr(values, "__dlpack__"):
        import numpy
        dtype = {_c.I32: numpy.int32, c.c_float: numpy.float32, _c.D: numpy.float64}[ctype]
        a = numpy.asarray(values) if hasattr(values, "__array_interface__") else numpy.from_dlpack(values)
        if a.size % columns or (columns > 1 and a.shape[-1] != columns):
            raise ValueError(f"{name}: an array of shape {a.shape}; needed: (n, {columns})")
        if ctype is _c.I32 and a.dtype.kind not in "iu":
            raise ValueError(f"{name}: values of type {a.dtype}; allowed: whole numbers")
        if ctype is _c.I32 and a.size and (a.min() < -2**31 or a.max() >= 2**31):
            raise ValueError(f"{name}: a number beyond 32 bits")
        a = numpy.ascontiguousarray(a, dtype)
        return (ctype * a.size).from_buffer_copy(a) if a.size else None, a.size // columns
    rows = [list(row) for row in values] if columns > 1 else [[value] for value in values]
    if any(len(row) != columns for row in rows):
        raise ValueError(f"{name}: needed: rows of {columns} numbers")
    return (ctype * (columns * len(rows)))(*(value for row in rows for value in row)), len(rows)


def size_of(shape: Sequence[int]) -> int:
    return math.prod(shape)
