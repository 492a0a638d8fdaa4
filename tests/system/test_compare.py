# SPDX-License-Identifier: Apache-2.0
"""`tomonode compare`: its figures are those of numpy, its page has the pictures and no patient, and other voxels are refused."""
import json
import os

import numpy as np
import pydicom

from tools import dbt_tools as tools
from tools.edits import edited_all


def values(folder):
    slices = [pydicom.dcmread(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(".dcm")]
    across, down = np.split(np.array(slices[0].ImageOrientationPatient, float), 2)
    slices.sort(key=lambda ds: np.cross(across, down) @ np.array(ds.ImagePositionPatient, float))
    return np.stack([ds.pixel_array * float(ds.RescaleSlope) + float(ds.RescaleIntercept) for ds in slices]), slices[0]


def test_two_results(folder, failures):
    def check(ok, text):
        tools.check(ok, text, failures)

    scan, page = os.path.join(folder, "scan"), os.path.join(folder, "pages", "page.html")
    tools.run("simulate", "pet", "--scanner", "small", "-o", scan)
    for name, words in (("a", ()), ("b", ("--set", "iterations=3")), ("other", ("--set", "matrix=40"))):
        tools.run("recon", "--device", "cpu", "--protocol", "pet-osem", "--set", "matrix=32", *words, "-o",
                  os.path.join(folder, name), scan)
    a, b = (os.path.join(folder, name) for name in "ab")
    said = json.loads(tools.run("compare", "--json", "-o", page, a, b).stdout)
    (x, header), (y, _) = values(a), values(b)
    difference = y - x
    above = said["object"]["above"]
    inside = (x + y) / 2 > above
    half = [np.median(v[v > v.mean()]) / 2 for v in (x, y)]
    check(abs(above - np.mean(half)) < (x.max() + y.max()) / 512, f"the object is above {above}, not {half}")
    check(0.3 < inside.mean() < 0.7 and abs(said["object"]["voxels"] - inside.sum()) <= 2
          and said["air"]["voxels"] == x.size - said["object"]["voxels"], f"{said['object']} of {x.size}")

    def noise(v):
        """The median of that of the slices, of neighbours that are both of the object."""
        slices = [np.sort(abs(np.diff(k))[(k[:, 1:] > above) & (k[:, :-1] > above)]) for k in v]
        return np.sort([1.4826 / np.sqrt(2) * d[d.size // 2] for d in slices if d.size])[len(v) // 2]

    for name, got, true in (("mean", said["mean"], [x[inside].mean(), y[inside].mean()]),
                            ("sd", said["sd"], [x[inside].std(), y[inside].std()]),
                            ("noise", said["noise"], [noise(x), noise(y)]),
                            ("bias", said["bias"], difference[inside].mean()),
                            ("rms", said["rms"], np.sqrt((difference[inside]**2).mean())),
                            ("bias in air", said["air"]["bias"], difference[~inside].mean()),
                            ("rms in air", said["air"]["rms"], np.sqrt((difference[~inside]**2).mean())),
                            ("correlation", said["correlation"], np.corrcoef(x[inside], y[inside])[0, 1])):
        check(np.allclose(got, true, rtol=1e-3), f"{name}: {got}, not {true}")  # values are float32
    at = np.array(said["largest"]["at"]) - 1
    check(abs(abs(said["largest"]["value"]) / abs(difference[inside]).max() - 1) < 1e-4, f"{said['largest']}")
    check(at[3] == 0 and abs(difference[at[2], at[1], at[0]] / said["largest"]["value"] - 1) < 1e-4, f"{said['largest']}")
    check(said["voxels"] == x.size and abs(said["equal"] - (difference == 0).sum()) <= x.size // 1000, f"{said['equal']}")
    check(said["made_differently"] == ["iterations=3, was 4"], f"{said['made_differently']}")
    with open(page, encoding="utf-8") as f:
        text = f.read()
    check(text.count("data:image/png") == 6 and "iterations=3, was 4" in text and f"A: {a} (" in text and f"B: {b} (" in text
          and text.count(" Bq/ml, axial, slice ") == 12, "the page")  # caption and alt
    check(str(header.PatientName) not in text and header.PatientID not in text, "a patient on the page")
    check("all 15360 voxels are equal" in tools.run("compare", a, a).stdout, "a result and itself")
    def moved(name, **changes):
        """B with other geometry in every object."""
        target = os.path.join(folder, name)
        edited_all(b, target, lambda ds: [setattr(ds, k, change(getattr(ds, k))) for k, change in changes.items()])
        return target

    width = float(header.PixelSpacing[1])
    near = moved("near", ImagePositionPatient=lambda p: [float(p[0]) + 0.1 * width, p[1], p[2]])
    said = json.loads(tools.run("compare", "--json", a, near).stdout)
    first = f"({float(header.ImagePositionPatient[0]):.2f}, "
    check(first in said["place"] and "0.1 voxels apart, in one frame" in said["place"], said["place"])
    check("place: " in tools.run("compare", a, near).stdout and "place: " not in tools.run("compare", a, b).stdout, "the place is said")
    elsewhere = moved("elsewhere", ImagePositionPatient=lambda p: [p[0], float(p[1]) + 40, p[2]], FrameOfReferenceUID=lambda u: u + ".7")
    check("in two frames of reference" in tools.run("compare", a, elsewhere).stdout, "another frame")
    nowhere = [moved(name, ImagePositionPatient=lambda p: [p[0], float(p[1]) + by, p[2]], FrameOfReferenceUID=lambda u: "")
               for name, by in (("nowhere", 0), ("nowhere-moved", 40))]
    check("frame of reference is not known" in tools.run("compare", *nowhere).stdout, "no frame")
    far = moved("far", ImagePositionPatient=lambda p: [p[0], float(p[1]) + width, p[2]])
    turned = moved("turned", ImageOrientationPatient=lambda o: [-float(v) for v in o])
    for words, code, named in (((a, far), 4, "1 voxels apart, in one frame of reference"),
                               ((a, turned), 4, "do not have the same directions"),
                               ((a, os.path.join(folder, "other")), 4, "the same voxels"), ((a, scan), 4, "no tomosynthesis, PET or CT image among"),
                               ((a,), 2, "B is missing"), ((folder, a), 4, "3 results")):
        done = tools.run("compare", *words, ok=(code,))
        check(named in done.stderr, f"{words}: {done.stderr}")
