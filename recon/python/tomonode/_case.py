# SPDX-License-Identifier: Apache-2.0
"""Measured data, read by the program tomonode."""
from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Sequence

from . import _c
from ._objects import Grid, Lines, Parallel, Pet, Scan, Views
from ._recon import reconstruct


class Case:
    """What one case is reconstructed from, made by open().

    scan: Pet, Lines, Views or Parallel, ready to use; data (None for Lines), factors, background, valid, sensitivity:
    numpy arrays as reconstruct() takes them, or None; keys: of the protocol; grid: of its volume; scale, offset, unit:
    a DICOM result has the values scale * x + offset; warnings: sentences about the values, "": none; about: all of
    case.json; arrays: by their names in case.json, of lists also points, events, tof_bin and add.
    """

    def __init__(self, folder: str, **opened: Any):
        import numpy

        self._opened = opened

        with io.open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            self.about: dict[str, Any] = json.load(f)
        self.arrays: dict[str, Any] = {
            role: numpy.memmap(os.path.join(folder, a["file"]), a["type"], "r", shape=tuple(a["shape"]))
            if 0 not in a["shape"] else numpy.empty(a["shape"], a["type"]) for role, a in self.about["arrays"].items()}
        self.scan = _scan(self.about["kind"], dict(self.about["scan"]), self.arrays)
        self.data, self.factors, self.background, self.valid, self.sensitivity = (
            self.arrays.get(role) for role in ("data", "factors", "background", "valid", "sensitivity"))
        self.keys: str = self.about["keys"]
        self.grid = Grid(**self.about["grid"])
        self.scale: float = self.about["result"]["scale"]
        self.offset: float = self.about["result"]["offset"]
        self.unit: str = self.about["result"]["unit"]
        self.warnings: str = self.about["warnings"]

    def reconstruct(self, keys: str | None = None, **more: Any) -> Any:
        """reconstruct() with all arrays; keys: default: those of the protocol."""
        arrays = {role: getattr(self, role) for role in ("factors", "background", "valid", "sensitivity")}
        return reconstruct(self.scan, self.data, self.keys if keys is None else keys, **{**arrays, **more})

    def write(self, volume: Any, out: str, **states: Any) -> list[str]:
        """write() with what the case was opened with; states: software, version and the others of what computed it."""
        return write(volume, out=out, **{**self._opened, **states})

    def __repr__(self) -> str:
        return f"<tomonode.Case {self.scan!r} {self.keys}>"


def _scan(kind: str, members: dict[str, Any], arrays: dict[str, Any]) -> Scan:
    """The scan by the members of its struct."""
    if members.get("tof"):
        members["tof"] = tuple(members["tof"][key] for key in ("n", "width", "sigma"))
    if kind == "pet":
        return Pet(**members)
    if kind == "lines":
        return Lines(arrays["points"], arrays["events"], tof_bin=arrays.get("tof_bin"), add=arrays.get("add"),
                     **members)
    if kind == "views":
        return Views(members["views"], n_u=members["n_u"], n_v=members["n_v"])
    angles = members.pop("angle", None)
    return Parallel(**{**members, "angles": angles or members["angles"]})


def _program(name: str) -> str:
    """The path of the program, which must have the minor version of this package."""
    ours: str = _c.lib.tn_version(None).decode()
    needs = f"needs the program tomonode {ours} (Debian: tomonode)"
    path = shutil.which(name)
    if not path:
        raise FileNotFoundError(f"{needs}, found: none named {name!r}; the environment variable TOMONODE can name it")
    words = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.split()
    theirs = words[1] if len(words) > 1 and words[0] == "tomonode" else "something else"
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise _c.TomonodeError(f"{needs}, found: {theirs} ({path})", 0)
    return path


def _run(action: str, options: Sequence[str], folder: str, words: Sequence[str], protocol: str | None,
         set: str,  # pylint: disable=redefined-builtin
         program: str | None) -> str:
    command = [_program(program or os.environ.get("TOMONODE") or "tomonode"), "arrays", *options,
               *(["--protocol", protocol] if protocol else [])]
    for assignment in set.split():
        command += ["--set", assignment]
    done = subprocess.run([*command, "-o", folder, "--", action, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _c.TomonodeError(done.stderr.strip() or f"tomonode arrays {action}: exit code {done.returncode}", 0)
    return done.stdout


def _paths(path: str | Sequence[str]) -> list[str]:
    return [os.fspath(p) for p in ([path] if isinstance(path, (str, os.PathLike)) else path)]


def open(path: str | Sequence[str], *, protocol: str | None = None, set: str = "",  # pylint: disable=redefined-builtin
         options: Sequence[str] = (), program: str | None = None) -> Case:
    """Read one case with the program tomonode: DICOM files or folders, Interfile, PETSIRD, folders of the e7tools, all
    that `tomonode recon` reads.

    path: one, or several; protocol: of the configuration, with its corrections; set: keys of the protocol, "KEY=VALUE
    KEY=VALUE"; options: further ones of `tomonode arrays read`, such as ["--attenuation", "acf.hs"]; program: default:
    that of the environment variable TOMONODE, else `tomonode`. The arrays are in a private folder that is deleted when
    they are mapped. Needs numpy.
    """
    paths = [os.path.abspath(p) for p in _paths(path)]
    with tempfile.TemporaryDirectory(prefix="tomonode-") as folder:
        _run("read", options, folder, paths, protocol, set, program)
        return Case(folder, like=paths, protocol=protocol, set=set, options=options, program=program)


def write(volume: Any, like: str | Sequence[str], out: str, *, software: str, version: str, note: str = "",
          algorithm: str = "", corrected: bool = False, summary: str = "", figures: dict[str, float] | None = None,
          warnings: Sequence[str] = (), protocol: str | None = None,
          set: str = "",  # pylint: disable=redefined-builtin
          options: Sequence[str] = (), program: str | None = None) -> list[str]:
    """Write a volume that was computed from a case as a DICOM result in the folder `out`, with the program tomonode.
    Returns its files.

    volume: (z, y, x), float32 on the grid of open(like, protocol=, set=, options=), in the unit of reconstruct(); like:
    the paths of the case; software, version, note: what computed it: the header says so, and that it was not tomonode;
    algorithm: "iterative", "filtered" or "backprojection": a tomosynthesis must state it; corrected: you state that all
    factors and the background of the case were used: the result of PET then has the unit (Bq/ml) and the corrections
    that one of the program would have; summary, figures, warnings: what the program tells of this volume, with the
    limits of step.json of a step (docs/steps.md): warnings are those of the result. Needs numpy.
    """
    import numpy

    a = numpy.ascontiguousarray(volume if hasattr(volume, "__array_interface__") else numpy.from_dlpack(volume))
    if a.dtype != numpy.float32:
        raise ValueError(f"volume: values of type {a.dtype}; needed: float32")
    states = [f"--software={software}", f"--version={version}", f"--note={note}",
              *([f"--algorithm={algorithm}"] if algorithm else []),
              *(["--corrected"] if corrected else []), "--json"]
    with tempfile.TemporaryDirectory(prefix="tomonode-") as folder:
        path = os.path.join(folder, "volume.f32")
        a.tofile(path)
        if summary or figures or warnings:
            told = os.path.join(folder, "told.json")
            with io.open(told, "w", encoding="utf-8") as f:
                json.dump({"summary": summary, "figures": figures or {}, "warnings": list(warnings)}, f)
            states.append(f"--told={told}")
        said = json.loads(_run("write", [*states, *options], out, [path, *_paths(like)], protocol, set, program))
    return [os.path.join(out, o["file"]) for o in said["cases"][0]["objects"]]
