# SPDX-License-Identifier: Apache-2.0
"""libtomonode by ctypes: the structs and functions of tomonode.h (tests/system/test_python.py compares both), and how
they are called."""
from __future__ import annotations

import ctypes as c
import errno
import os
from typing import Any

I32, I64, D, P, S = c.c_int32, c.c_int64, c.c_double, c.c_void_p, c.c_size_t


class Err(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 500)]


class DlDevice(c.Structure):
    _fields_ = [("type", I32), ("index", I32)]


class DlType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Array(c.Structure):
    _fields_ = [("data", P), ("device", DlDevice), ("ndim", I32), ("type", DlType), ("shape", c.POINTER(I64)),
                ("strides", c.POINTER(I64)), ("byte_offset", c.c_uint64)]


class Grid(c.Structure):
    _fields_ = [("n", I32 * 3), ("h", D * 3), ("lo", D * 3)]


class Tof(c.Structure):
    _fields_ = [("n", I32), ("width", D), ("sigma", D)]


class Sized(c.Structure):
    """A struct that begins with its size."""

    def __init__(self, **members: Any):
        super().__init__(size=c.sizeof(self), **members)


class DeviceInfo(Sized):
    _fields_ = [("size", S), ("name", c.c_char * 96), ("memory", I32), ("index", I32), ("threads", I32), ("bytes", S),
                ("stream", P)]


class Pet(Sized):
    _fields_ = [("size", S), ("rings", I32), ("detectors", I32), ("ring_spacing", D), ("radius", D), ("depth", D),
                ("bin", D), ("radial", I32), ("angles", I32), ("first_angle", D), ("arc_corrected", I32), ("span", I32),
                ("max_difference", I32), ("n_segments", I32), ("segments", P), ("fov_radius", D), ("tof", Tof)]


class Lines(Sized):
    _fields_ = [("size", S), ("points", P), ("n_points", S), ("pairs", P), ("n", S), ("tof_bin", P), ("add", P),
                ("fov_radius", D), ("tof", Tof), ("background", D)]


class Views(Sized):
    _fields_ = [("size", S), ("n", I32), ("n_u", I32), ("n_v", I32), ("views", P)]


class Parallel(Sized):
    _fields_ = [("size", S), ("slices", I32), ("angles", I32), ("radial", I32), ("bin", D), ("slice", D), ("offset", D),
                ("first_angle", D), ("arc", D), ("angle", P)]


class ScanInfo(Sized):
    _fields_ = [("size", S), ("kind", I32), ("ndim", I32), ("shape", I64 * 6), ("rays", I64)]


class Model(Sized):
    _fields_ = [("size", S), ("kind", I32), ("first", I32), ("step", I32), ("deterministic", I32), ("psf", D),
                ("sampling", D)]


class Layout(c.Structure):
    _fields_ = [("ndim", I32), ("shape", I64 * 6), ("strides", I64 * 6), ("floats", I64)]


class ProjectorInfo(Sized):
    _fields_ = [("size", S), ("x", Layout), ("y", Layout), ("bytes", S)]


class ReconInfo(Sized):
    _fields_ = [("size", S), ("grid", Grid), ("iterations", I32), ("subsets", I32), ("bytes_device", S),
                ("bytes_host", S), ("streamed", I32)]


class Report(Sized):
    _fields_ = [("size", S), ("seconds_setup", D), ("seconds_run", D), ("counts", D), ("residual", D)]


EACH_DEVICE = c.CFUNCTYPE(None, P, c.c_char_p, c.c_char_p, S)
EACH_KEY = c.CFUNCTYPE(None, P, c.c_char_p, c.c_char_p, c.c_char_p, c.c_char_p)
PROGRESS = c.CFUNCTYPE(None, P, c.c_char_p, D)

ERR = c.POINTER(Err)
# Result and arguments of each function of tomonode.h; those with a result of c_int and a last argument ERR are called
# by call().
SIGNATURES = {
    "tn_version": (c.c_char_p, [c.POINTER(c.c_int)]),
    "tn_devices": (c.c_int, [EACH_DEVICE, P]),
    "tn_device_open": (c.c_int, [c.c_char_p, c.POINTER(P), ERR]),
    "tn_device_close": (None, [P]),
    "tn_device_info": (c.c_int, [P, c.POINTER(DeviceInfo), ERR]),
    "tn_scan_pet": (c.c_int, [c.POINTER(Pet), c.POINTER(P), ERR]),
    "tn_scan_lines": (c.c_int, [c.POINTER(Lines), c.POINTER(P), ERR]),
    "tn_scan_views": (c.c_int, [c.POINTER(Views), c.POINTER(P), ERR]),
    "tn_scan_parallel": (c.c_int, [c.POINTER(Parallel), c.POINTER(P), ERR]),
    "tn_scan_free": (None, [P]),
    "tn_scan_info": (c.c_int, [P, c.POINTER(ScanInfo), ERR]),
    "tn_scan_rays": (c.c_int, [P, S, S, P, ERR]),
    "tn_projector_new": (c.c_int, [P, P, c.POINTER(Grid), c.POINTER(Model), c.POINTER(P), ERR]),
    "tn_projector_free": (None, [P]),
    "tn_projector_info": (c.c_int, [P, c.POINTER(ProjectorInfo), ERR]),
    "tn_forward": (c.c_int, [P, P, P, c.c_int, ERR]),
    "tn_adjoint": (c.c_int, [P, P, P, c.c_int, ERR]),
    "tn_keys": (c.c_int, [c.c_int, EACH_KEY, P]),
    "tn_recon_new": (c.c_int, [P, P, c.c_char_p, c.c_uint, c.POINTER(Grid), c.POINTER(P), ERR]),
    "tn_recon_free": (None, [P]),
    "tn_recon_info": (c.c_int, [P, c.POINTER(ReconInfo), ERR]),
    "tn_recon_put": (c.c_int, [P, c.c_int, P, ERR]),
    "tn_recon_run": (c.c_int, [P, PROGRESS, P, c.POINTER(Report), ERR]),
    "tn_recon_cancel": (None, [P]),
    "tn_recon_read": (c.c_int, [P, P, ERR]),
}


def _load() -> c.CDLL:
    name = "libtomonode.so.0"
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    lib = c.CDLL(os.environ.get("TOMONODE_LIBRARY") or (own if os.path.exists(own) else name))
    for function, (result, arguments) in SIGNATURES.items():
        getattr(lib, function).restype = result
        getattr(lib, function).argtypes = arguments
    return lib


lib = _load()


class TomonodeError(RuntimeError):
    """A call of libtomonode has failed for another reason than a wrong value (ValueError) or memory (MemoryError);
    `code`: errno."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code


# in a child of fork(): all calls are made by one thread that was started there, because libgomp's threads are gone
_thread: Any = None
_forked = False


def _after_fork() -> None:
    global _thread, _forked
    _thread, _forked = None, True


os.register_at_fork(after_in_child=_after_fork)


def raw(name: str, *arguments: Any) -> Any:
    """Call a function; the other threads of Python go on meanwhile."""
    global _thread
    if not _forked:
        return getattr(lib, name)(*arguments)
    if _thread is None:
        from concurrent.futures import ThreadPoolExecutor
        _thread = ThreadPoolExecutor(1)
    return _thread.submit(getattr(lib, name), *arguments).result()


def call(name: str, *arguments: Any) -> None:
    """Call a function with a last argument Err; raise what it says."""
    err = Err()
    code = -raw(name, *arguments, c.byref(err))
    if code <= 0:
        return
    text = err.text.decode("utf-8", "replace") or os.strerror(code)
    if code == errno.EINVAL:
        raise ValueError(text)
    if code == errno.ENOMEM:
        raise MemoryError(text)
    if code == errno.ECANCELED:
        raise KeyboardInterrupt(text)
    raise TomonodeError(text, code)
