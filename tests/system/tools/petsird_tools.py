# SPDX-License-Identifier: Apache-2.0
"""PETSIRD files, read and written by the schema that they contain, independently of the program: a record is a dict, a
list a list, an alternative of a union (tag, value), an optional value None or the value."""
import json
import math
import os
import random
import struct

import numpy as np

SOURCE = os.environ.get("TOMONODE_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
CORPUS = os.path.join(SOURCE, "tests", "fuzz", "corpus", "petsird")
VERSIONS = ("0.9.1", "0.10.0", "0.11.1", "0.12.0")
WIDTH = {"float32": "<f", "float64": "<d", "int8": "<b", "uint8": "<B", "bool": "<?"}
SIGNED = ("int16", "int32", "int64", "date", "time", "datetime")
START = 1780308900  # 2026-06-01 10:15:00 UTC
UNSIGNED = ("uint16", "uint32", "uint64", "size")


class Schema:
    def __init__(self, text):
        self.text, self.root = text, json.loads(text)
        self.types = {t["name"]: t for t in self.root["types"]}

    def resolve(self, t, scope):
        """(form, content, scope) of a type: follows names to what they are."""
        while True:
            if isinstance(t, str):
                if t in scope:
                    t, scope = scope[t]
                    continue
                name = t.rpartition(".")[2]
                if name not in self.types:
                    return "primitive", t, scope
                t, scope = self.types[name], {}
            elif isinstance(t, dict) and "typeArguments" in t:
                to = self.types[t["name"].rpartition(".")[2]]
                scope = {p: (a, scope) for p, a in zip(to["typeParameters"], t["typeArguments"])}
                t = to
            elif isinstance(t, dict) and "fields" in t:
                return "record", t["fields"], scope
            elif isinstance(t, dict) and "values" in t:
                return "primitive", "int32", scope
            elif isinstance(t, dict) and "name" in t:
                t = t["type"]
            elif isinstance(t, list):
                return "union", t, scope
            else:
                (form, content), = t.items()
                return form, content, scope

    def step(self, name):
        return next(s["type"] for s in self.root["protocol"]["sequence"] if s["name"] == name)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 9
        assert data[:9] == b"yardl\1\0\0\0"
        self.schema = Schema(self.raw(self.varint()).decode())

    def raw(self, n):
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, t, scope):
        form, of, scope = self.schema.resolve(t, scope)
        if form == "primitive":
            if of in WIDTH:
                return struct.unpack(WIDTH[of], self.raw(struct.calcsize(WIDTH[of])))[0]
            if of == "string":
                return self.raw(self.varint()).decode()
            n = self.varint()
            return n if of in UNSIGNED else (n >> 1) ^ -(n & 1)
        if form == "record":
            return {f["name"]: self.value(f["type"], scope) for f in of}
        if form == "union":
            one = of[self.raw(1)[0]]
            if one is None:
                return None
            tagged = isinstance(one, dict) and "tag" in one
            value = self.value(one["type"] if tagged else one, scope)
            return (one["tag"], value) if tagged else value
        if form == "vector":
            n = of["length"] if "length" in of else self.varint()
            return [self.value(of["items"], scope) for _ in range(n)]
        dims = of.get("dimensions")
        if isinstance(dims, list) and "length" in dims[0]:
            sizes = [d["length"] for d in dims]
        else:
            rank = len(dims) if isinstance(dims, list) else dims if dims else self.varint()
            sizes = [self.varint() for _ in range(rank)]
        values = [self.value(of["items"], scope) for _ in range(math.prod(sizes))]
        return np.array(values).reshape(sizes)

    def file(self):
        header = self.value(self.schema.step("header"), {})
        items, blocks = self.schema.step("timeBlocks")["stream"]["items"], []
        while n := self.varint():
            blocks += [self.value(items, {}) for _ in range(n)]
        assert self.at == len(self.data), "bytes are left"
        return header, blocks


class Writer:
    def __init__(self, text):
        self.schema, self.out = Schema(text), bytearray()

    def varint(self, n):
        while n >= 128:
            self.out.append(n & 127 | 128)
            n >>= 7
        self.out.append(n)

    def text(self, text):
        self.varint(len(text.encode()))
        self.out += text.encode()

    def value(self, t, v, scope):
        form, of, scope = self.schema.resolve(t, scope)
        if form == "primitive":
            if of in WIDTH:
                self.out += struct.pack(WIDTH[of], v or 0)
            elif of == "string":
                self.text(v or "")
            else:
                v = int(v or 0)
                self.varint(v if of in UNSIGNED else v << 1 if v >= 0 else (-v << 1) - 1)
        elif form == "record":
            for f in of:
                self.value(f["type"], (v or {}).get(f["name"]), scope)
        elif form == "union":
            tags = [one["tag"] if isinstance(one, dict) and "tag" in one else one for one in of]
            index = 0 if v is None else tags.index(v[0]) if isinstance(v, tuple) else 1
            self.out.append(index)
            if tags[index] is not None:
                one = of[index]
                self.value(one["type"] if isinstance(v, tuple) else one, v[1] if isinstance(v, tuple) else v, scope)
        elif form == "vector":
            v = list(v if v is not None else [None] * of.get("length", 0))
            if "length" not in of:
                self.varint(len(v))
            for item in v:
                self.value(of["items"], item, scope)
        else:
            dims = of.get("dimensions")
            fixed = isinstance(dims, list) and "length" in dims[0]
            v = np.zeros([d["length"] for d in dims] if fixed else (0,) * (len(dims) if isinstance(dims, list) else dims
                                                                           or 1)) if v is None else v
            if not fixed:
                if not dims:
                    self.varint(np.ndim(v))
                for n in np.shape(v):
                    self.varint(n)
            for item in np.ravel(v):
                self.value(of["items"], item, scope)

    def file(self, path, header, blocks, part=3):
        """part: number of blocks in each part of the stream."""
        self.out = bytearray(b"yardl\1\0\0\0")
        self.text(self.schema.text)
        self.value(self.schema.step("header"), header, {})
        for i in range(0, len(blocks), part):
            self.varint(len(blocks[i:i + part]))
            for block in blocks[i:i + part]:
                self.value(self.schema.step("timeBlocks")["stream"]["items"], block, {})
        self.out.append(0)
        with open(path, "wb") as f:
            f.write(self.out)


def stored(kind, version):
    """(path, schema text, header, blocks) of a file that the package petsird of this version wrote."""
    path = os.path.join(CORPUS, f"{kind}-{version}")
    with open(path, "rb") as f:
        reader = Reader(f.read())
    return (path, reader.schema.text, *reader.file())


# ---- a scanner ----

def transform(m):
    return {"matrix": np.array(m, dtype=float)}


def ring_header(modules=32, rings=4, radius=80.0, spacing=5.0, tof=None, fwhm=30.0, energies=1, start=0.05, skip=(),
                model="RING"):
    """A header for any version. Modules around the z axis, each a column of `rings` detectors. skip: modules that are
    missing. tof: edges, mm."""
    box = [{"c": np.array((x, y, z))} for x in (0, 20) for y in (0, 4) for z in (0, 4)]
    elements = [transform(((1, 0, 0, radius - 10), (0, 1, 0, -2), (0, 0, 1, (k - (rings - 1) / 2) * spacing - 2)))
                for k in range(rings)]
    angles = [start + 2 * math.pi * i / modules for i in range(modules) if i not in skip]
    turned = [transform(((math.cos(a), -math.sin(a), 0, 0), (math.sin(a), math.cos(a), 0, 0), (0, 0, 1, 0)))
              for a in angles]
    module = {"detectingElements": {"object": {"shape": {"corners": box}, "materialId": 1}, "transforms": elements}}
    edges = {"edges": np.array(tof if tof is not None else (-300.0, 300.0))}
    return {"scanner": {"modelName": model,
                        "scannerGeometry": {"replicatedModules": [{"object": module, "transforms": turned}]},
                        "tofBinEdges": [[edges]], "tofResolution": [[fwhm]],
                        "eventEnergyBinEdges": [{"edges": np.linspace(400, 650, energies + 1)}],
                        "promptEventPolicy": 1, "delayedEventPolicy": 1, "promptEventsAreStored": True,
                        "delayedEventsAreStored": True,
                        "detectionEfficiencies": {"calibrationFactor": 1.0}},
            "exam": {"startOfAcquisition": START * 10**9}}


def event_block(start, stop, prompts, delayeds=()):
    """prompts, delayeds: (bin, bin, TOF bin)."""
    lists = [[[[{"detectionBins": e[:2], "tofIdx": e[2]} for e in events]]] for events in (prompts, delayeds)]
    return ("EventTimeBlock", {"timeInterval": {"start": start, "stop": stop}, "promptEvents": lists[0],
                               "delayedEvents": lists[1]})


def positions(header):
    """[n, 3] of all detectors of type 0: module x element x mean of the corners."""
    module = header["scanner"]["scannerGeometry"]["replicatedModules"][0]
    elements = module["object"]["detectingElements"]
    centre = np.mean([c["c"] for c in elements["object"]["shape"]["corners"]], axis=0)
    inner = [t["matrix"] @ (*centre, 1) for t in elements["transforms"]]
    return np.array([t["matrix"] @ (*p, 1) for t in module["transforms"] for p in inner])


def energies_of(header):
    return len(header["scanner"]["eventEnergyBinEdges"][0]["edges"]) - 1


def events_of(blocks, name="promptEvents"):
    """(bin, bin, TOF bin) of the types 0, 0."""
    lists = [block[1][name] for block in blocks if block[0] == "EventTimeBlock"]
    return [(*e["detectionBins"], e["tofIdx"]) for x in lists if x for e in x[0][0]]


def point_source(header, point, n, seed=1, fwhm=0.0):
    """Coincidences of a point source: random directions, the nearest detectors, the TOF bin of the position. Events
    keep a random order of their detectors if the schema allows it: here the larger bin is first."""
    rnd, where, edges = random.Random(seed), positions(header), header["scanner"]["tofBinEdges"][0][0]["edges"]
    angle, z = np.arctan2(where[:, 1], where[:, 0]), where[:, 2]
    radius, out = float(np.mean(np.hypot(where[:, 0], where[:, 1]))), []
    while len(out) < n:
        phi, slope = rnd.uniform(0, math.pi), rnd.uniform(-0.3, 0.3)
        d = np.array((math.cos(phi), math.sin(phi)))
        along = float(np.dot(d, point[:2]))
        root = math.sqrt(along * along + radius * radius - float(np.dot(point[:2], point[:2])))
        ends = []
        for t in (-along + root, -along - root):
            end = (*(np.array(point[:2]) + t * d), point[2] + slope * t)
            turn = np.angle(np.exp(1j * (angle - math.atan2(end[1], end[0]))))
            ends.append(int(np.argmin((radius * turn) ** 2 + (z - end[2]) ** 2)))
        a, b = max(ends), min(ends)
        if abs(where[a, 2] - point[2]) > 30 or a == b or np.hypot(*(where[a] - where[b])[:2]) < 10:
            continue
        to_second = (where[b] - where[a]) / np.linalg.norm(where[b] - where[a])
        t = float(np.dot(np.array(point) - (where[a] + where[b]) / 2, to_second)) + (rnd.gauss(0, fwhm / 2.3548) if fwhm
                                                                                     else 0)
        k = int(np.searchsorted(edges, t)) - 1
        if 0 <= k < len(edges) - 1:
            out.append((a, b, k))
    return out
