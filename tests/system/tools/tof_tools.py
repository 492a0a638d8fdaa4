# SPDX-License-Identifier: Apache-2.0
"""Sinograms with time of flight as STIR and the e7tools of Siemens write them, made from the descriptions of the
formats and not from the program that reads them.

A set of counts is addressed by physical quantities: k, the time at which the photon arrives at the first end minus that
at the second, in widths of a TOF bin (odd numbers of bins); a segment (lowest, highest ring difference); its
planes in the order of the file, whose rings begin in the depth of the gantry."""
import hashlib
import os

import numpy as np

RINGS, VIEWS, BINS, TOF = 5, 4, 6, 5
WIDTH_PS, FWHM_PS = 143.231, 214


def planes_of(rings, low, high):
    """The number of planes of a segment: one for each sum of two ring numbers that some difference of the segment
    has."""
    sums = {a + b for a in range(rings) for b in range(rings) if low <= a - b <= high}
    return len(sums)


def middles(rings, low, high):
    """z of the planes of a segment, in rings from the scanner's middle."""
    sums = {a + b for a in range(rings) for b in range(rings) if low <= a - b <= high}
    return [(s - (rings - 1)) / 2 for s in sorted(sums)]


def siemens_segments(compression, largest):
    """In the order of Siemens: 0, -1, +1, -2 ..."""
    half = (compression - 1) // 2
    found, low = [(-half, half)], half + 1
    while low <= largest:
        high = min(low + compression - 1, largest)
        found += [(-high, -low), (low, high)]
        low = high + 1
    return found


def siemens_order(n):
    """k of each stored TOF bin: 0, +1, -1, +2 ..."""
    order = [0]
    for k in range(1, n // 2 + 1):
        order += [k, -k]
    return order


def random_counts(segments, rings=RINGS, tof=TOF, seed=1):
    """{k: {segment: array[plane, view, bin]}} of small whole numbers."""
    source = np.random.RandomState(seed)
    return {k: {s: source.randint(0, 1000, (planes_of(rings, *s), VIEWS, BINS)) for s in segments}
            for k in range(-(tof // 2), tof // 2 + 1)}


def in_memory(counts, segments):
    """As the node keeps them: [TOF bin][plane][view][bin], TOF bins towards the first end (there t1 < t2: k > 0 is far
    from it), planes into the gantry: both STIR and Siemens count rings the other way."""
    return np.stack([turned(counts[k], segments) for k in sorted(counts, reverse=True)]).astype("<f4")


def turned(values, segments):
    return np.concatenate([values[s][::-1] for s in segments])


# ---- STIR ----


def write_stir(path, counts, segments, order=None, by_view=True, kind="float", mashing=1, changes=()):
    """PATH.hs and PATH.s. order: k of each stored TOF bin. changes: (text, other text) of the header."""
    ks = list(order or sorted(counts))
    planes = "{" + ",".join(str(planes_of(RINGS, *s)) for s in segments) + "}"
    middle = (("view", VIEWS), ("axial coordinate", planes))
    third, second = middle if by_view else middle[::-1]
    lines = ["!INTERFILE  :=", f"name of data file := {os.path.basename(path)}.s", "!GENERAL DATA :=",
             "!type of data := PET",
             "imagedata byte order := LITTLEENDIAN", "!PET STUDY (General) :=", "!PET data type := Emission",
             "applied corrections := {arc correction}",
             "!number format := " + ("float" if kind == "float" else "unsigned integer"),
             "!number of bytes per pixel := " + ("4" if kind == "float" else "2"), "number of dimensions := 5",
             "matrix axis label [5] := timing positions", f"!matrix size [5] := {len(ks)}",
             "matrix axis label [4] := segment",
             f"!matrix size [4] := {len(segments)}", f"matrix axis label [3] := {third[0]}",
             f"!matrix size [3] := {third[1]}",
             f"matrix axis label [2] := {second[0]}", f"!matrix size [2] := {second[1]}",
             "matrix axis label [1] := tangential coordinate", f"!matrix size [1] := {BINS}",
             f"TOF mashing factor := {mashing}",
             "minimum ring difference per segment := {" + ",".join(str(s[0]) for s in segments) + "}",
             "maximum ring difference per segment := {" + ",".join(str(s[1]) for s in segments) + "}",
             "Scanner parameters:= ", "Scanner type := Unknown", f"Number of rings := {RINGS}",
             "Number of detectors per ring := 96",
             "Inner ring diameter (cm) := 20", "Average depth of interaction (cm) := 0.7",
             "Distance between rings (cm) := 0.65",
             "Default bin size (cm) := 0.25", f"Maximum number of (unmashed) TOF time bins := {len(ks) * mashing}",
             f"Size of unmashed TOF time bins (ps) := {WIDTH_PS / mashing!r}",
             f"TOF timing resolution (ps) := {FWHM_PS}",
             "end scanner parameters:=", "effective central bin size (cm) := 0.25"]
    if order:
        lines.append("TOF bin order := {" + ",".join(map(str, order)) + "}")
    text = "\n".join(lines) + "\n!END OF INTERFILE :=\n"
    data = [counts[k][s].transpose(1, 0, 2) if by_view else counts[k][s] for k in ks for s in segments]
    with open(path + ".s", "wb") as f:
        for part in data:
            f.write(part.astype("<f4" if kind == "float" else "<u2").tobytes())
    write_text(path + ".hs", text, changes)


def write_text(path, text, changes=()):
    for before, after in changes:
        if text.count(before) < 1:
            raise AssertionError(f"{path}: no {before!r}")
        text = text.replace(before, after)
    with open(path, "w", encoding="ascii", newline="\r\n") as f:
        f.write(text)


# ---- e7tools ----


class E7:
    """A folder as the e7tools leave it. Values are public: arrays by k and segment."""

    def __init__(self, folder, compression=3, largest=4, rings=RINGS, seed=1, same_norm=False):
        source = np.random.RandomState(seed + 100)
        self.folder, self.rings, self.compression, self.largest = folder, rings, compression, largest
        self.segments = siemens_segments(compression, largest)
        self.table = [planes_of(rings, *s) for s in self.segments]
        self.prompts = random_counts(self.segments, rings, TOF, seed)

        def some(low, high):
            return {k: {s: source.uniform(low, high, v.shape).astype("<f4") for s, v in c.items()} for k,
                    c in self.prompts.items()}

        self.norm, self.randoms = some(0.5, 2), some(0, 9)
        for values in (v for c in self.norm.values() for v in c.values()):
            values[:, 0, 0] = 1.25  # in all TOF bins; the others differ
        if same_norm:
            self.norm = {k: {s: v.copy() for s, v in self.norm[0].items()} for k in self.norm}
        dead = source.uniform(size=self.prompts[0][self.segments[0]].shape) < 0.1
        for k in self.norm:
            self.norm[k][self.segments[0]][dead] = 0 if k % 2 else -1
        self.acf = {s: source.uniform(1, 30, v.shape).astype("<f4") for s, v in self.prompts[0].items()}
        self.delayed = {s: source.uniform(50, 60, v.shape).astype("<f4") for s, v in self.prompts[0].items()}
        self.scatter = {k: source.uniform(0, 5, (self.table[0], VIEWS, BINS)).astype("<f4") for k in self.prompts}
        self.second_type = source.randint(0, 9, 777).astype("<u2").tobytes()  # another type of data behind the prompts

    def header(self):
        size = TOF * sum(self.table) * VIEWS * BINS * 2
        table = ",".join(map(str, self.table))
        return ("!INTERFILE:=\n%comment:=SMS-MI sinogram common attributes\n!originating system:=1208\n"
                "%SMS-MI header name space:=sinogram subheader\n%SMS-MI version number:=3.4\n\n!GENERAL DATA:=\n"
                "!name of data file:=C:\\JSRecon12\\patient\\prompts_00.s\n%compression:=off\n%compressor "
                "version:=1.2\n\n"
                "!GENERAL IMAGE DATA:=\n%study date (yyyy:mm:dd):=2024:05:06\n%study time (hh:mm:ss "
                "GMT+00:00):=10:11:12\n"
                "isotope name:=F-18\nisotope gamma halflife (sec):=6586.2\nisotope branching factor:=0.9673\n"
                "!PET data type:=emission\ndata format:=sinogram\n%patient orientation:=HFS\nimage data byte "
                "order:=LITTLEENDIAN\n"
                "!number format:=unsigned integer\n!number of bytes per pixel:=2\nnumber of dimensions:=4\n"
                "matrix axis label[1]:=sinogram projections\nmatrix axis label[2]:=sinogram views\n"
                "matrix axis label[3]:=number of sinograms\nmatrix axis label[4]:=TOF bin\n"
                f"matrix size[1]:={BINS}\nmatrix size[2]:={VIEWS}\nmatrix size[3]:={sum(self.table)}\nmatrix "
                f"size[4]:={TOF}\n"
                f"scale factor (mm/pixel) [1]:=1.6\nscale factor (degree/pixel) [2]:={180 / VIEWS}\nscale factor "
                "(mm/pixel) [3]:=1.64557\n"
                f"scale factor (ps/bin) [4]:={WIDTH_PS}\n%axial compression:={self.compression}\n"
                f"%maximum ring difference:={self.largest}\nnumber of rings:={self.rings}\n%number of "
                f"segments:={len(self.table)}\n"
                f"%segment table:={{{table}}}\n%total number of sinograms:={sum(self.table)}\nnumber of scan data "
                "types:=2\n"
                "scan data type description[1]:=prompts\nscan data type description[2]:=randoms\ndata offset in "
                "bytes[1]:=0\n"
                f"data offset in bytes[2]:={size}\n%TOF mashing factor:=8\n%number of TOF time bins:={TOF}\n"
                "applied corrections:={radial arc-correction}\n!IMAGE DATA DESCRIPTION:=\n!total number of data "
                "sets:=1\n"
                "!image duration (sec):=300\n!image relative start time (sec):=0\n%total uncorrected singles "
                "rate:=12345\n")

    def scatter_header(self):
        return ("!INTERFILE:=\n%SMS-MI version number:=3.4\n!name of data file:=scat_00_00.s\nimage data byte "
                "order:=LITTLEENDIAN\n"
                "!number format:=float\n!number of bytes per pixel:=4\nnumber of dimensions:=4\nmatrix axis "
                "label[1]:=bin\n"
                "matrix axis label[2]:=plane\nmatrix axis label[3]:=projection\nmatrix axis label[4]:=TOF bin\n"
                f"matrix size[1]:={BINS}\nmatrix size[2]:={VIEWS}\nmatrix size[3]:={self.table[0]}\nmatrix "
                f"size[4]:={TOF}\n")

    def in_file(self, values):
        """Bytes of values by k and segment, in the order of the e7tools."""
        return b"".join(values[k][s].tobytes() for k in siemens_order(TOF) for s in self.segments)

    def write(self, debug="Debug", changes=()):
        """Write the folder; files beside the prompts lie in the sub-folder `debug`."""
        place = os.path.join(self.folder, debug)
        os.makedirs(place, exist_ok=True)
        write_text(os.path.join(self.folder, "prompts_00.s.hdr"), self.header(), changes)
        prompts = {k: {s: v.astype("<u2") for s, v in c.items()} for k, c in self.prompts.items()}
        write_text(os.path.join(place, "scat_00_00.s.hdr"), self.scatter_header())
        for path, data in (("prompts_00.s", self.in_file(prompts) + self.second_type),
                           (os.path.join(debug, "norm3d_00.a"), self.in_file(self.norm)),
                           (os.path.join(debug, "acf_00.a"), b"".join(self.acf[s].tobytes() for s in self.segments)),
                           (os.path.join(debug, "smoothed_rand_00.s"),
                            b"".join(self.delayed[s].tobytes() for s in self.segments) + self.in_file(self.randoms)),
                           (os.path.join(debug, "scat_00_00.s"),
                            b"".join(self.scatter[k].tobytes() for k in siemens_order(TOF)))):
            with open(os.path.join(self.folder, path), "wb") as f:
                f.write(data)

    def hashes(self, debug="Debug"):
        """{name of a data file: SHA-256}."""
        found = {}
        for place in (self.folder, os.path.join(self.folder, debug)):
            for name in os.listdir(place):
                if os.path.isfile(os.path.join(place, name)):
                    with open(os.path.join(place, name), "rb") as f:
                        found[name] = hashlib.sha256(f.read()).hexdigest()
        return found

    def efficiency_correction(self):
        """The normalisation, infinite where a block is dead."""
        return {k: {s: np.where(v <= 0, np.inf, v).astype("<f4") for s, v in c.items()} for k, c in self.norm.items()}

    def oblique_scatter(self, k, segment):
        """The normalised scatter at the middles of a segment's planes, linear between direct planes."""
        at = np.array(middles(self.rings, *self.segments[0]))
        z = np.array(middles(self.rings, *segment))
        low = np.clip(np.searchsorted(at, z + 1e-9) - 1, 0, len(at) - 1)
        high = np.clip(np.searchsorted(at, z - 1e-9), 0, len(at) - 1)
        return ((self.scatter[k][low] + self.scatter[k][high]) * np.float32(0.5)).astype("<f4")

    def additive(self):
        """Randoms and scatter in counts."""
        norm = self.efficiency_correction()
        return {k: {s: (self.randoms[k][s] + self.oblique_scatter(k, s) / norm[k][s]).astype("<f4")
                    for s in self.segments} for k in self.prompts}
