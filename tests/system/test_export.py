# SPDX-License-Identifier: Apache-2.0
"""`tomonode export`: a PET series as NIfTI and Interfile, read back with numpy; sinograms byte for byte; what is
refused."""
import glob
import json
import os
import random
import struct

import numpy as np
import pydicom

from tools import pet_tools as t
from tools.edits import edited
from tools.node_harness import check, read_file, write_file


def read_nifti(path):
    """Values [slice, row, column] and the 3 x 4 matrix from (column, row, slice) to RAS."""
    raw = read_file(path, "rb")
    check(struct.unpack_from("<i", raw)[0] == 348 and raw[344:348] == b"n+1\0", "no NIfTI-1 file")
    dim = struct.unpack_from("<8h", raw, 40)
    datatype, bits = struct.unpack_from("<2h", raw, 70)
    offset = int(struct.unpack_from("<f", raw, 108)[0])
    check((dim[0], datatype, bits, struct.unpack_from("<h", raw, 254)[0], raw[123]) == (3, 16, 32, 1, 2),
          "type, sform, mm")
    values = np.frombuffer(raw, "<f4", offset=offset).reshape(dim[3], dim[2], dim[1])
    return values, np.array(struct.unpack_from("<12f", raw, 280)).reshape(3, 4)


def read_interfile(path):
    """Values and the keys of a header."""
    keys = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            if ":=" in line:
                key, value = line.split(":=", 1)
                keys[key.strip().lstrip("!").lower()] = value.strip()
    n = [int(keys[f"matrix size [{a}]"]) for a in (1, 2, 3)]
    data = os.path.join(os.path.dirname(path), keys["name of data file"])
    check(keys["number format"] == "float" and keys["number of bytes per pixel"] == "4", "float32")
    check(keys["imagedata byte order"].upper() == "LITTLEENDIAN", "byte order")
    return np.fromfile(data, "<f4").reshape(n[2], n[1], n[0]), keys


def test_series_as_nifti_and_interfile(folder):
    exam, out = os.path.join(folder, "exam"), os.path.join(folder, "out")
    truth = t.simulate(exam, "--phantom", "f-shape", "--noise-free", "--position", "FFS")
    series = t.reconstruct(out, exam, settings=("iterations=6", "matrix=48"))
    paths = list(series.paths)
    random.Random(3).shuffle(paths)

    nii = os.path.join(folder, "new", "deep", "image.nii")
    said = json.loads(t.run("export", "--json", "-o", nii, *paths, *paths[:2]).stdout)
    check(said["ok"] and said["units"] == "BQML" and said["series"] == series.objects[0].SeriesInstanceUID, said)
    values, matrix = read_nifti(nii)
    ordered = series.values[np.argsort(series.positions @ series.normal)]
    check(np.allclose(values, ordered, rtol=1e-6, atol=0), "values")
    index = np.stack(np.meshgrid(*(np.arange(n) for n in values.shape), indexing="ij")[::-1], -1)
    lps = (index @ matrix[:, :3].T + matrix[:, 3]) * (-1, -1, 1)
    order = np.argsort(series.positions @ series.normal)
    check(np.abs(lps - series.places()[order]).max() < 1e-3, "places")
    check(np.corrcoef(values.ravel(), t.truth_values(truth, lps).ravel())[0, 1] > 0.85, "the F is not where it was")

    hv = os.path.join(folder, "image.hv")
    t.run("export", "-o", hv, out)
    again, keys = read_interfile(hv)
    spacing = [float(keys[f"scaling factor (mm/pixel) [{a}]"]) for a in (1, 2, 3)]
    check(np.allclose(spacing, np.linalg.norm(matrix[:, :3], axis=0), rtol=1e-5), f"{spacing} mm")
    check((keys["patient orientation"], keys["patient rotation"], again.shape) == ("feet_in", "supine", values.shape),
          keys)
    check(not glob.glob(os.path.join(folder, "*.part")), "nothing else is left")
    as_stir_reads_it(folder, paths, values, lps)

    what_is_refused(folder, paths, exam)


# STIR's coordinates (z, out of the gantry) in the patient, DiscretisedDensity.inl: the signs of x, y, z
STIR = {"HFS": (1, 1, -1), "HFP": (-1, -1, -1), "FFS": (-1, 1, 1), "FFP": (1, -1, 1), "": (1, 1, -1)}


def as_stir_reads_it(folder, paths, values, lps):
    """The same image in every position of the patient: STIR puts each voxel where the objects have it. Unknown: HFS."""
    for position in (*STIR, "HFDR", "FFDL"):
        here, hv = os.path.join(folder, "lies-" + position), os.path.join(folder, f"lies-{position}.hv")
        os.makedirs(here)
        for i, path in enumerate(paths):
            d = pydicom.dcmread(path)
            for name in ("PatientOrientationCodeSequence", "PatientGantryRelationshipCodeSequence"):
                setattr(d, name, [])
            d.PatientPosition = position
            d.save_as(os.path.join(here, f"{i}.dcm"))
        t.run("export", "-o", hv, here)
        image, keys = read_interfile(hv)
        index = np.stack(np.meshgrid(*(np.arange(n) for n in image.shape), indexing="ij")[::-1], -1)
        pitch, first = ([float(keys[f"{key} [{a}]"]) for a in (1, 2, 3)]
                        for key in ("scaling factor (mm/pixel)", "first pixel offset (mm)"))
        place = index * pitch + first
        check(("patient orientation" in keys) == (position != ""), f"{position}: {keys}")
        if position not in STIR:  # STIR does not convert these: z alone
            head = place[..., 2] * (-1 if position[0] == "H" else 1)
            check(abs((head * image).sum() / image.sum() - (lps[..., 2] * values).sum() / values.sum()) < 1e-2,
                  f"{position}: head and feet")
            continue
        place = place * STIR[position]
        sort = [np.lexsort(np.round(p.reshape(-1, 3), 2).T) for p in (place, lps)]
        check(np.abs(place.reshape(-1, 3)[sort[0]] - lps.reshape(-1, 3)[sort[1]]).max() < 1e-2, f"{position}: places")
        check(np.array_equal(image.ravel()[sort[0]], values.ravel()[sort[1]]), f"{position}: values")


def what_is_refused(folder, paths, exam):
    nii = os.path.join(folder, "none.nii")
    for args, code, words in (
            (("-o", nii, *paths[1:]), 4, "incomplete"),
            (("-o", nii, exam), 4, "no tomosynthesis, PET or CT image"),
            (("-o", os.path.join(folder, "none.hs"), *paths), 4, "no sinogram object"),
            (("-o", os.path.join(folder, "none.tif"), *paths), 2, "must end in"),
            (tuple(paths), 2, "-o FILE is missing"),
            (("-o", nii), 2, "PATH... is missing"),
            (("-o", os.path.join(folder, "none", "there.nii"), exam), 4, "no tomosynthesis, PET or CT image"),
            (("-o", os.path.join(folder, "none", "there.nii"), *paths[1:]), 4, "incomplete"),
            (("-o", os.path.join(paths[0], "there.nii"), *paths), 1, "is not a folder"),
            (("-o", nii, os.path.join(folder, "nowhere")), 8, "nowhere")):
        done = t.run("export", *args, ok=(code,))
        check(words in done.stderr, f"'{words}' is not in: {done.stderr}")
    check(not glob.glob(os.path.join(folder, "none*")), "a refusal leaves nothing")
    x, y, z = pydicom.dcmread(paths[0]).ImagePositionPatient
    changed = edited(paths[0], os.path.join(folder, "changed.dcm"), ImagePositionPatient=[x, y, z + 1])
    done = t.run("export", "-o", nii, changed, *paths[1:], ok=(4,))
    check("slices are missing" in done.stderr, done.stderr)


HEADER = """!INTERFILE  :=
!imaging modality := PT
name of data file := {data}
originating system := unknown
!version of keys := STIR3.0
!GENERAL DATA :=
!GENERAL IMAGE DATA :=
!type of data := PET
imagedata byte order := BIGENDIAN
!PET STUDY (General) :=
!PET data type := Emission
applied corrections := {{arc correction}}
!number format := signed integer
!number of bytes per pixel := 2
number of dimensions := 4
matrix axis label [4] := segment
!matrix size [4] := 3
matrix axis label [2] := view
!matrix size [2] := 12
matrix axis label [3] := axial coordinate
!matrix size [3] := {{ 3,4,3}}
matrix axis label [1] := tangential coordinate
!matrix size [1] := 15
minimum ring difference per segment := {{ -1,0,1}}
maximum ring difference per segment := {{ -1,0,1}}
number of rings := 4
number of detectors per ring := 48
inner ring diameter (cm) := 20
average depth of interaction (cm) := 0.5
distance between rings (cm) := 0.65
default bin size (cm) := 0.4
view offset (degrees) := 0
number of time frames := 1
image duration (sec)[1] := 300
image relative start time (sec)[1] := 0
!END OF INTERFILE :=
"""


def test_sinograms_come_back_byte_for_byte(folder):
    """Objects of three roles, made of Interfile of the simulation, and back: every byte of the data."""
    made = os.path.join(folder, "made")
    t.simulate(made, "--phantom", "cylinder", "--radius", "40", "--attenuation", "--randoms", "0.1", "--interfile")
    exam = os.path.join(folder, "exam")
    t.simulate(exam, "--phantom", "cylinder", "--radius", "40", "--attenuation", "--randoms", "0.1")
    out = os.path.join(folder, "back.hs")
    said = json.loads(t.run("export", "--json", "-o", out, exam).stdout)
    check([os.path.basename(f) for f in said["files"]] == ["back.hs", "back-additive.hs", "back-attenuation.hs"],
          said["files"])
    wanted = {open(f, "rb").read() for f in glob.glob(os.path.join(made, "*.s"))}
    check(wanted == {open(f[:-2] + "s", "rb").read() for f in said["files"]}, "the data are not those that went in")
    for f in said["files"]:
        check(f"name of data file := {os.path.basename(f)[:-2]}s\n" in open(f, encoding="ascii").read(),
              "the header names them")


def test_numbers_of_others_are_not_touched(folder):
    """Sixteen bits, most significant byte first, as somebody else wrote them: not a byte is touched."""
    random.seed(5)
    data = bytes(random.choice((0, 0, 1, 3)) if k % 2 == 0 else random.randrange(256) for k in range(2 * 15 * 12 * 10))
    write_file(os.path.join(folder, "own.s"), data)
    write_file(os.path.join(folder, "own.hs"), HEADER.format(data="own.s"))
    objects, out = os.path.join(folder, "objects"), os.path.join(folder, "again.hs")
    t.run("import", os.path.join(folder, "own.hs"), "-o", objects)
    t.run("export", "-o", out, objects)
    check(open(out[:-2] + "s", "rb").read() == data, "data")
    check(open(out, encoding="ascii").read() == HEADER.format(data="again.s"), "header")
