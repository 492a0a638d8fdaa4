# SPDX-License-Identifier: Apache-2.0
"""Devices, scans, volumes and projectors."""
from __future__ import annotations

import ctypes as c
from numbers import Integral, Real
from typing import Any, Sequence

from . import _c
from ._arrays import Passed, empty_like, layout_shape, size_of, table, zeros

_KINDS = {"pet": 1, "lines": 2, "views": 3, "parallel": 4}
_MODELS = ("default", "siddon", "joseph", "slices", "sampled", "exact")


class _Handle:
    """An object of the library, freed with this one."""
    _free = ""

    def __init__(self) -> None:
        self._p = c.c_void_p()

    def close(self) -> None:
        """Free the object now; objects that use it go on to work."""
        p, self._p = self._p, c.c_void_p()
        if p:
            _c.raw(self._free, p)

    def __del__(self) -> None:
        if getattr(self, "_p", None) and _c is not None:
            try:
                self.close()
            except Exception:  # at the exit of the interpreter
                pass

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Device(_Handle):
    """A processor or a GPU: "auto" (a GPU if there is one), "cpu", "cpu:THREADS", "cuda", "cuda:N".

    name: its name; memory: "host" or "cuda"; index: of the GPU; threads; bytes: memory, 0: unknown; stream:
    cudaStream_t or None. Calls that use one device wait for each other; use several devices to compute at the same
    time.
    """
    _free = "tn_device_close"

    def __init__(self, name: str = "auto"):
        super().__init__()
        _c.call("tn_device_open", name.encode(), c.byref(self._p))
        info = _c.DeviceInfo()
        _c.call("tn_device_info", self._p, c.byref(info))
        self.name: str = info.name.decode()
        self.memory = "cuda" if info.memory == 2 else "host"
        self.index: int = info.index
        self.threads: int = info.threads
        self.bytes: int = info.bytes
        self.stream: int | None = info.stream

    def __repr__(self) -> str:
        return f"<tomonode.Device {self.name}>"

    @staticmethod
    def list() -> list[str]:
        """The names of all devices of this machine."""
        names: list[str] = []
        _c.raw("tn_devices", _c.EACH_DEVICE(lambda _, name, description, memory: names.append(name.decode())), None)
        return names


class Grid:
    """A volume of n voxels of h mm, both along (x, y, z); lo: lower corner of the first voxel, mm (None: the volume is
    centred on 0).

    Its arrays have the shape (n_z, n_y, n_x).
    """

    def __init__(self, n: Sequence[int], h: Sequence[float] | float, lo: Sequence[float] | None = None):
        self.n = tuple(int(k) for k in n)
        self.h = tuple(float(k) for k in ([h] * 3 if isinstance(h, Real) else h))
        if len(self.n) != 3 or len(self.h) != 3 or (lo is not None and len(lo) != 3):
            raise ValueError("grid: needed: 3 numbers, along x, y and z")
        self.lo = tuple(float(k) for k in lo) if lo is not None else tuple(-0.5 * k * s for k, s in zip(self.n, self.h))

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n[2], self.n[1], self.n[0]

    def _struct(self) -> _c.Grid:
        return _c.Grid((_c.I32 * 3)(*self.n), (_c.D * 3)(*self.h), (_c.D * 3)(*self.lo))

    def __repr__(self) -> str:
        return f"tomonode.Grid({self.n}, {self.h}, {self.lo})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and (self.n, self.h, self.lo) == (other.n, other.h, other.lo)

    def __hash__(self) -> int:
        return hash((self.n, self.h, self.lo))


def tof_ps(bins: int, width: float, fwhm: float) -> tuple[int, float, float]:
    """Time of flight for Pet and Lines: number of bins, width of a bin and FWHM of the resolution, in ps of the time
    difference."""
    mm = 0.149896229  # half the speed of light, mm per ps
    return bins, width * mm, fwhm * mm / 2.3548200450309493


def _tof(tof: tuple[int, float, float] | None) -> _c.Tof:
    return _c.Tof(*tof) if tof else _c.Tof()


class Scan(_Handle):
    """What was measured: the geometry of all bins. shape: of its data; kind: "pet", "lines", "views" or "parallel"."""
    _free = "tn_scan_free"
    kind = ""

    def _make(self, function: str, struct: Any) -> None:
        super().__init__()
        _c.call(function, c.byref(struct), c.byref(self._p))
        info = _c.ScanInfo()
        _c.call("tn_scan_info", self._p, c.byref(info))
        self.shape: tuple[int, ...] = tuple(info.shape[i] for i in range(info.ndim))
        self.n_rays: int = info.rays

    def rays(self, first: int = 0, n: int | None = None) -> Any:
        """The end points of the rays, numpy (n, 6), mm: x, y, z of the first and of the second end, in the order of the
        data without TOF bins; NaN: no ray."""
        import numpy
        n = self.n_rays - first if n is None else n
        ends = numpy.empty((max(n, 0), 6))
        _c.call("tn_scan_rays", self._p, first, n, ends.ctypes.data)
        return ends

    def __repr__(self) -> str:
        return f"<tomonode.{type(self).__name__} {self.shape}>"


class Pet(Scan):
    """Sinograms of a cylindrical PET scanner: data (TOF bin, plane, angle, radial), without time of flight (plane,
    angle, radial).

    rings, detectors: number of rings, detectors of a ring; ring_spacing, radius (inner), depth (mean depth of
    interaction): mm. radial, angles: bins; first_angle: degrees; arc_corrected: radial bins of `bin` mm, else by
    detectors. span, max_difference: of the segments 0, +1, -1, +2 ..., or `segments`: ring differences (first, last) of
    each. fov_radius: mm, 0: the largest radial bin, at most 350 and 0.98 of where rays end. tof: see tof_ps().
    """
    kind = "pet"

    def __init__(self, *, rings: int, detectors: int = 0, ring_spacing: float, radius: float, radial: int, angles: int,
                 depth: float = 0, bin: float = 0, first_angle: float = 0, arc_corrected: bool = False, span: int = 1,
                 max_difference: int | None = None, segments: Sequence[tuple[int, int]] | None = None,
                 fov_radius: float = 0, tof: tuple[int, float, float] | None = None):
        pairs, n = table(segments, _c.I32, 2, "segments")
        self._make("tn_scan_pet", _c.Pet(
            rings=rings, detectors=detectors, ring_spacing=ring_spacing, radius=radius, depth=depth, bin=bin,
            radial=radial, angles=angles, first_angle=first_angle, arc_corrected=arc_corrected, span=span,
            max_difference=rings - 1 if max_difference is None else max_difference, n_segments=n,
            segments=c.cast(pairs, _c.P), fov_radius=fov_radius, tof=_tof(tof)))


class Lines(Scan):
    """Any lines between points, LORs or the events of list mode: data (line,).

    points: (n, 3), mm; pairs: (lines, 2), numbers of points: first and second end; tof_bin: (lines,), with time of
    flight, ascending towards the first end; add: (lines,), expected background over the factor of each event, for
    reconstructions; fov_radius: mm, of a cylinder around z, 0: all of the volume; background: expected number of the
    events that are background, for the start of a reconstruction, 0: unknown. Arrays are copied.
    """
    kind = "lines"

    def __init__(self, points: Any, pairs: Any, *, tof_bin: Any = None, add: Any = None, fov_radius: float = 0,
                 tof: tuple[int, float, float] | None = None, background: float = 0):
        at, n_points = table(points, c.c_float, 3, "points")
        ends, n = table(pairs, _c.I32, 2, "pairs")
        bins, n_bins = table(tof_bin, _c.I32, 1, "tof_bin")
        more, n_add = table(add, c.c_float, 1, "add")
        if (tof_bin is not None and n_bins != n) or (add is not None and n_add != n):
            raise ValueError(f"lines: {n} pairs of points, {n_bins} TOF bins, {n_add} values of add")
        self._make("tn_scan_lines", _c.Lines(
            points=c.cast(at, _c.P), n_points=n_points, pairs=c.cast(ends, _c.P), n=n, tof_bin=c.cast(bins, _c.P),
            add=c.cast(more, _c.P), fov_radius=fov_radius, tof=_tof(tof), background=background))


class Views(Scan):
    """Views of a point source on a flat detector, tomosynthesis or cone beam: data (view, v, u).

    views: (n, 12), mm: source, centre of the detector, step from a column (u) to the next, step from a row (v) to the
    next, as ASTRA's cone_vec; n_u, n_v: columns and rows.
    """
    kind = "views"

    def __init__(self, views: Any, *, n_u: int, n_v: int):
        numbers, n = table(views, _c.D, 12, "views")
        self._make("tn_scan_views", _c.Views(n=n, n_u=n_u, n_v=n_v, views=c.cast(numbers, _c.P)))


class Parallel(Scan):
    """A stack of 2-D parallel beams: data (slice, angle, radial).

    bin, slice: distances of radial bins and of slices, mm; offset: position of the middle of the radial bins, mm;
    angles: their number, over `arc` degrees from first_angle on, or their list in degrees.
    """
    kind = "parallel"

    def __init__(self, *, angles: Any, radial: int, bin: float, slices: int = 1, slice: float = 1, offset: float = 0,
                 first_angle: float = 0, arc: float = 180):
        at, n = (None, int(angles)) if isinstance(angles, Integral) else table(angles, _c.D, 1, "angles")
        self._make("tn_scan_parallel", _c.Parallel(
            slices=slices, angles=n, radial=radial, bin=bin, slice=slice, offset=offset, first_angle=first_angle,
            arc=arc, angle=c.cast(at, _c.P)))


class Projector(_Handle):
    """The system matrix A of a scan and a volume on a device, entries in mm: y = A(x), x = A.adjoint(y),
    exact transposes.

    model: "siddon", "joseph", "sampled", "slices", "exact", or "default" (PET, lines, parallel: joseph; views: slices);
    first, step: the angles, views or lines first, first + step ...; psf: FWHM of a Gaussian in image space, mm;
    sampling: mm, of "sampled"; deterministic: the same bits in every run. in_shape, out_shape: of x and y.

    Arrays are float32, of any strides and of any library with DLPack, on the device's GPU or in host memory. A result
    is of the library of the argument, or written to `out`; add=True: added to `out`. image() and data() make arrays
    that are used without a copy.
    """
    _free = "tn_projector_free"

    def __init__(self, scan: Scan, grid: Grid, device: Device | str | None = None, *, model: str = "default",
                 first: int = 0, step: int = 1, psf: float = 0, sampling: float = 0, deterministic: bool = False):
        super().__init__()
        if model not in _MODELS:
            raise ValueError(f"model: {model!r}; allowed: {', '.join(_MODELS)}")
        self.scan, self.grid, self.device = scan, grid, _opened(device)
        self._model = {"model": model, "psf": psf, "sampling": sampling, "deterministic": deterministic}
        self.first, self.step = first, step
        struct = _c.Model(kind=_MODELS.index(model), first=first, step=step, deterministic=deterministic, psf=psf,
                          sampling=sampling)
        _c.call("tn_projector_new", self.device._p, scan._p, c.byref(grid._struct()), c.byref(struct), c.byref(self._p))
        info = _c.ProjectorInfo()
        _c.call("tn_projector_info", self._p, c.byref(info))
        self._layouts = info.x, info.y
        self.in_shape, self.out_shape = layout_shape(info.x), layout_shape(info.y)

    def _apply(self, adjoint: bool, a: Any, out: Any, add: bool) -> Any:
        if add and out is None:
            raise ValueError("add=True needs `out`")
        names = ("y", "x") if adjoint else ("x", "y")
        if out is None:
            out = empty_like(a, self.in_shape if adjoint else self.out_shape)
        written = Passed(out, names[1], self.device.stream, writes=True)
        ordered = written.on_gpu and type(out) is type(a)  # with all in the library's current stream
        given = Passed(a, names[0], -1 if ordered else self.device.stream)  # -1: not again
        _c.call("tn_adjoint" if adjoint else "tn_forward", self._p, given, written, int(add))
        return out

    def __call__(self, x: Any, out: Any = None, add: bool = False) -> Any:
        """Return y = A x, or write it to `out`."""
        return self._apply(False, x, out, add)

    def adjoint(self, y: Any, out: Any = None, add: bool = False) -> Any:
        """Return x = A'y, or write it to `out`."""
        return self._apply(True, y, out, add)

    @property
    def T(self) -> Adjoint:
        """The transposed operator: A.T(y) is A.adjoint(y), A.T.T is A."""
        return Adjoint(self)

    def image(self, like: Any = None) -> Any:
        """Zeros for x with the strides of the device, in numpy or in the library of `like`. Its padding along z belongs
        to the array."""
        return zeros(self._layouts[0], like)

    def data(self, like: Any = None) -> Any:
        """Zeros for y with the strides of the device, in numpy or in the library of `like`."""
        return zeros(self._layouts[1], like)

    def subset(self, number: int, n: int) -> Projector:
        """The projector of the angles, views or lines number, number + n ... of this one."""
        if not 0 <= number < n:
            raise ValueError(f"subset: number {number} of {n}; allowed: 0 to {n - 1}")
        return Projector(self.scan, self.grid, self.device, first=self.first + number * self.step, step=self.step * n,
                         **self._model)

    def aslinearoperator(self) -> Any:
        """scipy.sparse.linalg.LinearOperator between flat vectors in C order; float32 inside."""
        import numpy
        from scipy.sparse.linalg import LinearOperator

        def flat(adjoint: bool, v: Any) -> Any:
            shape = self.out_shape if adjoint else self.in_shape
            return self._apply(adjoint, numpy.ascontiguousarray(v, numpy.float32).reshape(shape), None, False).ravel()

        return LinearOperator((size_of(self.out_shape), size_of(self.in_shape)), matvec=lambda v: flat(False, v),
                              rmatvec=lambda v: flat(True, v), dtype=numpy.float32)

    def torch(self, x: Any) -> Any:
        """A differentiable y = A x of a torch tensor (..., *in_shape), whose leading axes are batches.
        A.T.torch(y): x = A'y."""
        return _torch_function().apply(x, self)

    def __repr__(self) -> str:
        return f"<tomonode.Projector {self.in_shape} -> {self.out_shape} on {self.device.name}>"


class Adjoint:
    """The transposed operator of a projector."""

    def __init__(self, projector: Projector):
        self.T = projector
        self.in_shape, self.out_shape = projector.out_shape, projector.in_shape

    def __call__(self, y: Any, out: Any = None, add: bool = False) -> Any:
        return self.T.adjoint(y, out, add)

    adjoint = property(lambda self: self.T.__call__)

    def torch(self, y: Any) -> Any:
        return _torch_function().apply(y, self)


def _torch_function() -> Any:
    """The autograd function of any operator, whose derivative is that of its transpose; made when torch is
    used first."""
    global _Apply
    if _Apply is None:
        import torch

        class Apply(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, a: Any) -> Any:
                ctx.a = a
                y = x.new_empty(tuple(x.shape[:x.ndim - len(a.in_shape)]) + tuple(a.out_shape))
                for one, to in zip(x.detach().reshape(-1, *a.in_shape), y.view(-1, *a.out_shape)):
                    a(one, out=to)
                return y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return Apply.apply(g, ctx.a.T), None

        _Apply = Apply
    return _Apply


_Apply: Any = None


def _opened(device: Device | str | None) -> Device:
    return Device(device) if isinstance(device, str) else device or default_device()


_default: tuple[bool, Device] | None = None


def default_device() -> Device:
    """The device of calls without one: Device("auto"), opened once in a process."""
    global _default
    if _default is None or _default[0] != _c._forked:
        _default = (_c._forked, Device())
    return _default[1]
