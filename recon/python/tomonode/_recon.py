# SPDX-License-Identifier: Apache-2.0
"""Reconstructions."""
from __future__ import annotations

import ctypes as c
import queue
import threading
from typing import Any, Callable

from . import _c
from ._arrays import Passed, empty_like
from ._objects import _KINDS, Device, Grid, Scan, _Handle, _opened

_ROLES = {"data": 1, "factors": 2, "background": 3, "valid": 4, "sensitivity": 5}


def keys(kind: str) -> list[dict[str, str]]:
    """The keys of reconstructions of "pet", "lines", "views" or "parallel": dicts of key, default, allowed, meaning."""
    if kind not in _KINDS:
        raise ValueError(f"kind: {kind!r}; allowed: {', '.join(_KINDS)}")
    found: list[dict[str, str]] = []
    _c.raw("tn_keys", _KINDS[kind], _c.EACH_KEY(lambda _, *words: found.append(
        dict(zip(("key", "default", "allowed", "meaning"), (word.decode() for word in words))))), None)
    return found


def help(kind: str) -> None:
    """Print the keys of reconstructions of "pet", "lines", "views" or "parallel"."""
    for row in keys(kind):
        print(f"{row['key']} = {row['default']}    ({row['allowed']})\n    {row['meaning']}")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Reconstruction(_Handle):
    """One reconstruction: planned when it is made, then put(), run(), read().

    keys: "algorithm=osem iterations=4", or as keywords: help(scan.kind) lists them; roles: of the arrays that put()
    will get, names of reconstruct()'s arguments; grid: in place of the keys of the volume. After that: grid,
    iterations, subsets, bytes_device, bytes_host, streamed; after run() report, a dict.
    """
    _free = "tn_recon_free"

    def __init__(self, scan: Scan, keys: str = "", *, roles: Any = ("data",), device: Device | str | None = None,
                 grid: Grid | None = None, **keywords: Any):
        super().__init__()
        self.scan, self.device = scan, _opened(device)
        text = " ".join([keys] + [f"{key}={_word(value)}" for key, value in keywords.items()])
        bits = 0
        for role in roles:
            if role not in _ROLES:
                raise ValueError(f"role {role!r}; allowed: {', '.join(_ROLES)}")
            bits |= 1 << _ROLES[role]
        _c.call("tn_recon_new", self.device._p, scan._p, text.encode(), bits, c.byref(grid._struct()) if grid else None,
                c.byref(self._p))
        info = _c.ReconInfo()
        _c.call("tn_recon_info", self._p, c.byref(info))
        self.grid = Grid(info.grid.n, info.grid.h, info.grid.lo)
        self.iterations, self.subsets, self.streamed = info.iterations, info.subsets, bool(info.streamed)
        self.bytes_device, self.bytes_host = info.bytes_device, info.bytes_host
        self.report: dict[str, float] = {}

    def put(self, **arrays: Any) -> Reconstruction:
        """Pass arrays by their roles, such as data=y; they are copied."""
        for role, a in arrays.items():
            if role not in _ROLES:
                raise ValueError(f"role {role!r}; allowed: {', '.join(_ROLES)}")
            _c.call("tn_recon_put", self._p, _ROLES[role], Passed(a, role, self.device.stream))
        return self

    def cancel(self) -> None:
        """End run() after the current update; from any thread."""
        _c.lib.tn_recon_cancel(self._p)

    def run(self, progress: Callable[[str, float], Any] | None = None) -> Reconstruction:
        """Reconstruct. progress(stage, fraction) is called in this thread. Ctrl-C, or an exception of progress(),
        ends it."""
        said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        report = _c.Report()
        failed: list[BaseException] = []
        tell = _c.PROGRESS(lambda _, stage, fraction: said.put((stage.decode(), fraction)))

        def work() -> None:
            try:
                _c.call("tn_recon_run", self._p, tell, None, c.byref(report))
            except BaseException as e:  # pylint: disable=broad-except
                failed.append(e)
            said.put(None)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while True:
                try:
                    news = said.get(timeout=0.1)
                except queue.Empty:
                    continue
                if news is None:
                    break
                if progress:
                    progress(*news)
        except BaseException:
            self.cancel()
            thread.join()
            raise
        thread.join()
        if failed:
            raise failed[0]
        self.report = {name: getattr(report, name) for name in ("seconds_setup", "seconds_run", "counts", "residual")}
        return self

    def read(self, out: Any = None, like: Any = None) -> Any:
        """Return the volume (z, y, x) as numpy or in the library of `like`, or write it to `out`."""
        out = empty_like(like, self.grid.shape) if out is None else out
        _c.call("tn_recon_read", self._p, Passed(out, "volume", self.device.stream, writes=True))
        return out


def reconstruct(scan: Scan, data: Any = None, keys: str = "", *, factors: Any = None, background: Any = None,
                valid: Any = None, sensitivity: Any = None, device: Device | str | None = None,
                grid: Grid | None = None, progress: Callable[[str, float], Any] | None = None, out: Any = None,
                **keywords: Any) -> Any:
    """Reconstruct a volume (z, y, x), in the library of `data`.

    data: (scan.shape) counts of PET (factors: without TOF bins, of y ~ Poisson(factors A x + background)), or line
    integrals of views and parallel beams (valid: of views, 1: datum, 0: none, -1: air); lines are events and need no
    data, but sensitivity, (z, y, x): the adjoint of the factors of all lines that can be measured, by a projector with
    the same psf. keys, keywords: see help(scan.kind).
    """
    given = {"data": data, "factors": factors, "background": background, "valid": valid, "sensitivity": sensitivity}
    arrays = {role: a for role, a in given.items() if a is not None}
    with Reconstruction(scan, keys, roles=arrays, device=device, grid=grid, **keywords) as r:
        return r.put(**arrays).run(progress).read(out, like=next(iter(arrays.values()), None))


def osem(scan: Scan, data: Any = None, *, iterations: int = 4, subsets: int | None = None, **more: Any) -> Any:
    """reconstruct() with ordered subsets EM; subsets=None: the default of the kind of scan."""
    if subsets is not None:
        more["subsets"] = subsets
    return reconstruct(scan, data, algorithm="osem", iterations=iterations, **more)
