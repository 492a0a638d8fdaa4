# SPDX-License-Identifier: Apache-2.0
"""An independent writer of Siemens mMR raw data and what must be read from them, from the documents (STIR, NiftyPET,
pet-rd-tools) and not from the program: DICOM objects with list mode or normalisation, and numpy's histogram and
efficiencies of single planes."""
import os

import numpy as np

from tools.edits import new_object

CLASS = "1.3.12.2.1107.5.9.1"
RINGS, CRYSTALS, BINS, VIEWS, LARGEST = 64, 504, 344, 252, 60
HEADER, OTHER_HEADER, DATA = (0x0029, 0x1010), (0x0029, 0x1110), (0x7FE1, 0x1010)
PROMPT = 1 << 30


def span_1():
    """(ring of p1, ring of p2) of each plane of the list: segments 0, -1, +1 ..., d = ring 2 - ring 1."""
    pairs = []
    for d in [0] + [sign * k for k in range(1, LARGEST + 1) for sign in (-1, 1)]:
        pairs += [(ring, ring + d) for ring in range(RINGS) if 0 <= ring + d < RINGS]
    return pairs


def span_11(order):
    """{(ring 1, ring 2): plane}; order: sign of the first segment of each pair of segments."""
    planes, n = {}, 0
    segments = [(-5, 5)]
    for low in range(6, LARGEST + 1 - 10, 11):
        pair = [(low, low + 10), (-low - 10, -low)]
        segments += pair if order > 0 else pair[::-1]
    for first, last in segments:
        of_sum = {}
        for ring_1 in range(RINGS):
            for ring_2 in range(RINGS):
                if first <= ring_2 - ring_1 <= last:
                    of_sum.setdefault(ring_1 + ring_2, []).append((ring_1, ring_2))
        for total in sorted(of_sum):
            planes.update({pair: n for pair in of_sum[total]})
            n += 1
    return planes, n


PAIRS = span_1()
ALONG_Z, N_PLANES = span_11(+1)     # as the program has them: 0, +1, -1 ..., rings along +z
# the scanner counts rings from the depth of the gantry
PLANES = {(RINGS - 1 - a, RINGS - 1 - b): plane for (a, b), plane in ALONG_Z.items()}
AXIAL, _ = span_11(-1)              # as the scanner does: 0, -1, +1 ...
assert len(PAIRS) == 4084 and N_PLANES == 837


def event(plane, view, bin_, prompt=True):
    return (PROMPT if prompt else 0) | ((plane * VIEWS + view) * BINS + bin_)


def time_mark(ms):
    return 0b100 << 29 | ms


def singles(bucket, rate):
    return 0b101 << 29 | bucket << 19 | rate


def words_of(rng, n, start=12345, last=4084):
    """n events over all planes, a third of them delayeds, with time marks, singles and words of other kinds between
    them."""
    plane, view, bin_ = rng.integers(0, last, n), rng.integers(0, VIEWS, n), rng.integers(0, BINS, n)
    prompt = rng.random(n) < 2 / 3
    words = []
    for i in range(n):
        if i % 50 == 0:
            words += [time_mark(start + i // 5), singles(i % 224, 77), 0b110 << 29 | 5, 0b111 << 29 | 0x1FFFFFF]
        words.append(event(int(plane[i]), int(view[i]), int(bin_[i]), bool(prompt[i])))
    return words


def counts_of(words, planes, delayed=False):
    """The prompts (or delayeds) in these planes of span 11, [plane][view][bin], and the number of prompts and of
    delayeds."""
    words = np.array(words, np.uint32)
    events = words[words >> 31 == 0]
    is_prompt = events >> 30 & 1 == 1
    counted = events[is_prompt != delayed] & (PROMPT - 1)
    of = np.array([PLANES[pair] for pair in PAIRS])
    plane = of[counted // (VIEWS * BINS)]
    ret = np.zeros((len(planes), VIEWS, BINS), np.float32)
    for i, wanted in enumerate(planes):
        np.add.at(ret[i].reshape(-1), counted[plane == wanted] % (VIEWS * BINS), 1)
    return ret, is_prompt.sum(), (~is_prompt).sum()


class Norm:
    """The components, with random values."""

    def __init__(self, rng):
        self.geometric = rng.uniform(0.5, 2, (127, BINS)).astype(np.float32)
        self.interference = rng.uniform(0.8, 1.2, (BINS, 9)).astype(np.float32)
        self.efficiency = rng.uniform(0.5, 1.5, (RINGS, CRYSTALS)).astype(np.float32)
        self.axial = rng.uniform(0.7, 1.4, 837).astype(np.float32)
        self.rest = rng.uniform(0, 1e-5, 64 + 64 + 9 + 837).astype(np.float32)

    def bytes(self):
        ret = b"".join(a.astype("<f4").tobytes() for a in (self.geometric, self.interference, self.efficiency,
                                                           self.axial, self.rest))
        assert len(ret) == 323404
        return ret

    def efficiencies(self, planes):
        """Of the bins of these planes of span 11, float32, in the order of the sums of the documents' formula."""
        v, t = np.meshgrid(np.arange(VIEWS), np.arange(BINS) - BINS // 2, indexing="ij")
        c1 = (v + (t >> 1)) % CRYSTALS
        c2 = (v - ((t + 1) >> 1) + CRYSTALS // 2) % CRYSTALS
        shifted = np.roll(self.efficiency, 1, axis=1)  # crystal c has the stored efficiency c - 1
        shifted[:, ::9] = 0
        ret = np.zeros((len(planes), VIEWS, BINS), np.float32)
        for i, wanted in enumerate(planes):
            pairs = sorted((pair for pair, plane in PLANES.items() if plane == wanted), key=lambda pair: -pair[1])
            for ring_1, ring_2 in pairs:
                both = shifted[ring_2][c2] * shifted[ring_1][c1]
                ret[i] += both * self.geometric[ring_1 + ring_2][None, :] / self.axial[AXIAL[ring_1, ring_2]]
            ret[i] *= self.interference[np.arange(BINS)[None, :], v % 9]
        return ret


def list_header(n_words, end="\r\n", **changes):
    keys = {"!originating system": 2008, "%SMS-MI header name space": "PETLINK bin address",
            "%SMS-MI version number": 3.4,
            "!data offset in bytes": 0, "name of data file": "x.l", "!type of data": "PET",
            "%study date (yyyy:mm:dd)": "2017:03:27",
            "%study time (hh:mm:ss GMT+00:00)": "17:00:35", "isotope name": "F-18", "%patient orientation": "HFS",
            "PET data type": "Emission", "data format": "CoincidenceList", "number of rings": 64,
            "distance between rings (cm)": 0.40625, "gantry crystal radius (cm)": 32.8, "%number of TOF time bins": 1,
            "%TOF mashing factor": 1, "%energy window lower level (keV) [1]": 430,
            "%energy window upper level (keV) [1]": 610, "image duration (sec)": 20,
            "%total listmode word counts": n_words,
            "%LM event and tag words format (bits)": 32, "%timing tagwords interval (msec)": 1, "%axial compression": 1,
            "%maximum ring difference": 60, "%number of projections": BINS, "%number of views": VIEWS,
            "%number of segments": 121,
            "%segment table": "{" + ",".join(str(RINGS - (i + 1) // 2) for i in range(121)) + "}",
            "%comment": "made by a test"}
    return text_of(keys, changes, end)


def norm_header(end="\r\r\n", **changes):
    sizes = ("{344,127}", "{9,344}", "{504,64}", "{837}", "{64}", "{64}", "{9}", "{837}")
    offsets = (0, 174752, 187136, 316160, 319508, 319764, 320020, 320056)
    keys = {"!originating system": 2008, "%data set [1]": "{0,,norm.n}", "%number of normalization scans": 1,
            "%number of normalization components": 8, "%normalization component [1]": "geometric effects",
            **{f"data offset in bytes [{i + 1}]": o for i, o in enumerate(offsets)},
            **{f"%matrix size [{i + 1}]": s for i, s in enumerate(sizes)},
            "%axial compression": 11, "%maximum ring difference": 60, "number of rings": 64,
            "%energy window lower level (keV) [1]": 430, "%energy window upper level (keV) [1]": 610}
    return text_of(keys, changes, end)


def text_of(keys, changes, end):
    """changes: name of the key without marks and spaces = new value, None: without the key."""
    lines = ["!INTERFILE:="]
    changes = dict(changes)
    for key, value in keys.items():
        short = "".join(c for c in key.lower() if c.isalnum())
        value = changes.pop(short, value)
        if value is not None:
            lines.append(f"{key}:={value}")
    assert not changes, f"no such key: {changes}"
    return (end.join(lines) + end).encode("ascii")


def write(path, kind, header, data, number=1, where="first", study="2.25.4711", series=None, implicit=False,
          **attributes):
    """One raw data object. where: the element of the header: "first", "second", "csa" (the first is a CSA header),
    "none"."""
    d = new_object(CLASS, f"{study}.{number}", "1.2.840.10008.1.2" if implicit else "1.2.840.10008.1.2.1")
    d.ImageType = ["ORIGINAL", "PRIMARY", kind]
    d.StudyDate = d.SeriesDate = d.AcquisitionDate = "20170327"
    d.StudyTime = d.SeriesTime = d.AcquisitionTime = "170035"
    d.Modality, d.Manufacturer, d.ManufacturerModelName = "PT", "SIEMENS", "Biograph_mMR"
    d.PatientName, d.PatientID, d.PatientBirthDate, d.PatientSex = "Raw^Data", "MMR1", "19500101", "O"
    d.StudyInstanceUID, d.SeriesInstanceUID = study, series or f"{study}.9"
    d.StudyID, d.SeriesNumber, d.InstanceNumber, d.AccessionNumber, d.ReferringPhysicianName = "1", 7, number, "", ""
    d.add_new((0x0029, 0x0010), "LO", "SIEMENS MEDCOM HEADER")
    if where in ("second", "csa"):
        d.add_new((0x0029, 0x0011), "LO", "SIEMENS MEDCOM HEADER2")
    if where != "none":
        first = {"first": header, "second": b"", "csa": b"SV10" + bytes(range(200)) * 3}[where]
        d.add_new(HEADER, "OB", padded(first))
    if where in ("second", "csa"):
        d.add_new(OTHER_HEADER, "OB", padded(header))
    if data is not None:
        d.add_new((0x7FE1, 0x0010), "LO", "SIEMENS CSA NON-IMAGE")
        d.add_new(DATA, "OB", padded(data))
    for name, value in attributes.items():
        setattr(d, name, value)
    d.save_as(path, write_like_original=False)
    return path


def padded(data):
    return data + b"\0" * (len(data) % 2)


def list_bytes(words):
    return np.asarray(words, "<u4").tobytes()


def write_list(path, words, header=None, data=None, **kwargs):
    data = list_bytes(words) if data is None else data
    return write(path, "PET_LISTMODE", list_header(len(words)) if header is None else header, data,
                 **{"number": 1, **kwargs})


def write_norm(path, norm, header=None, data=None, **kwargs):
    return write(path, "PET_NORM", norm_header() if header is None else header, norm.bytes() if data is None else data,
                 **{"number": 2, **kwargs})


def extract(folder, words, norm, names=("scan.l", "scan.n"), end="\n", norm_changes=None, more=b"", norm_more=b"", **changes):
    """The files that Siemens' own extraction makes: a header beside each data file; the path of the list mode's. more: further lines
    of a header."""
    os.makedirs(folder, exist_ok=True)
    for name, data, header in ((names[0], list_bytes(words), list_header(len(words), end, **changes) + more),
                               (names[1], norm.bytes(), norm_header(end, **(norm_changes or {})) + norm_more)):
        for path, content in ((name, data), (name + ".hdr", header)):
            with open(os.path.join(folder, path), "wb") as f:
                f.write(content)
    return os.path.join(folder, names[0] + ".hdr")
