# SPDX-License-Identifier: Apache-2.0
"""`tomonode import` of sinograms with time of flight: STIR's Interfile, and the folder that the e7tools of Siemens
export.

tof_tools.py writes both from the descriptions of the formats. What comes out is compared bit for bit: the bytes in the
objects, and the planes in the order in which the node uses them (`tomonode arrays read`)."""
import contextlib
import glob
import hashlib
import json
import os
import re
import shutil

import numpy as np
import pydicom

from tools import dbt_tools as tools
from tools import tof_tools as tof
from tools.node_harness import read_file, write_file

BASICS = ("AcquisitionDate=20240506", "AcquisitionTime=121112", "Radionuclide=F18", "PatientPosition=HFS",
          "BodyPartExamined=BRAIN")
C2 = 299.792458 / 2000  # mm along the ray per ps


def run_import(out, *options, ok=(0,)):
    return tools.run("import", *options, *(x for value in BASICS for x in ("--set", value)), "-o", out, ok=ok)


def paths_of(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def streams(folder):
    """{role: (bytes, sources)}."""
    parts = {}
    for path in paths_of(folder):
        ds = pydicom.dcmread(path)
        block = ds.private_block(0x0071, "TOMONODE SINOGRAM 1")
        chunk = (block[0x11].value, block[0x10].value, block[0x13].value, block[0x14].value,
                 block[0x18].value if 0x18 in block else "")
        parts.setdefault(block[0x03].value, []).append(chunk)
    found = {}
    for role, chunks in parts.items():
        data = b"".join(c[1] for c in sorted(chunks))[:chunks[0][2]]
        assert hashlib.sha256(data).hexdigest() == chunks[0][3], f"{role}: another hash"
        found[role] = (data, chunks[0][4])
    return found


def read_arrays(folder, objects):
    """The arrays of `tomonode arrays read`, and the geometry: TOF bins, first angle, where rays end, segments."""
    out = os.path.join(folder, "arrays")
    shutil.rmtree(out, ignore_errors=True)
    tools.run("arrays", "read", "--device", "cpu", "--protocol", "pet-fbp-preview", "--set", "matrix=8", "-o", out, *paths_of(objects))
    case = json.loads(read_file(os.path.join(out, "case.json")))
    tof_bins, scan = case["scan"]["tof"], case["scan"]
    return ({role: np.fromfile(os.path.join(out, a["file"]), a["type"]).reshape(-1, *a["shape"][-2:]) for role, a in case["arrays"].items()},
            [tof_bins["n"], tof_bins["width"], tof_bins["sigma"], scan["first_angle"], scan["radius"] + scan["depth"]],
            [tuple(segment) for segment in scan["segments"]])


def same(found, expected, label, failures):
    """Bit for bit; NaN does not occur."""
    expected = np.asarray(expected, "<f4").reshape(-1, tof.VIEWS, tof.BINS)
    ok = found.shape == expected.shape and np.array_equal(found, expected)
    off = "" if ok or found.shape != expected.shape else f", first in plane {np.argwhere(found != expected)[0]}"
    tools.check(ok, f"{label}: {found.shape} instead of {expected.shape}, or other values{off}", failures)


# ---- a point ----

def test_a_point_is_where_its_photons_came_from(folder, failures):
    """A point that is written from the arrival times of its photons at the ends of each ray, which are those of
    docs/sinogram-object.md, is reconstructed at its place; with the times exchanged it is not."""
    width, point = 150, np.array([30.0, -40, 6])
    tools.run("simulate", "pet", "--scanner", "small", "--tof", f"9,{width},300", "--interfile", "-o",
              os.path.join(folder, "scan"))
    header = os.path.join(folder, "scan", "emission.hs")
    text = read_file(header)
    sizes, low, high = ([int(v) for v in re.search(key + r" := {([^}]*)}", text).group(1).split(",")]
                        for key in (r"matrix size \[3\]", "minimum ring difference per segment",
                                    "maximum ring difference per segment"))
    phi, r = (np.arange(48) * np.pi / 48)[:, None], ((np.arange(65) - 32) * 2.5)[None, :]
    w, rays = np.sqrt(105.0 ** 2 - r ** 2), []
    for n, first, last in zip(sizes, low, high, strict=True):
        for plane in range(n):
            # rings of the file are counted from the depth of the gantry: z and differences change their signs
            z, total = -(plane - (n - 1) / 2) * 6.5 / 2, plane + min(abs(first), abs(last)) * (first * last > 0)
            d = -np.mean([k for k in range(first, last + 1) if (k - total) % 2 == 0])
            ends = [np.stack(np.broadcast_arrays(r * np.cos(phi) - s * w * np.sin(phi),
                                                 r * np.sin(phi) + s * w * np.cos(phi), z + s * d * 6.5 / 2), -1)
                    for s in (1, -1)]
            along = (ends[0] - ends[1]) / np.linalg.norm(ends[0] - ends[1], axis=-1, keepdims=True)
            foot = ends[1] + ((point - ends[1]) * along).sum(-1)[..., None] * along  # of the point on the ray
            times = [np.linalg.norm(e - foot, axis=-1) / 0.299792458 for e in ends]  # ps
            rays.append((np.exp(-((foot - point) ** 2).sum(-1) / 20), np.rint((times[0] - times[1]) / width)))
    for sign, right in ((1, True), (-1, False)):
        data = np.stack([[1000 * value * (sign * k == bin) for value, k in rays] for bin in range(-4, 5)])
        data.astype("<f4").tofile(header.replace(".hs", ".s"))
        out = os.path.join(folder, f"image{sign}")
        tools.run("recon", "--protocol", "pet-osem", "--set", "iterations=2", "--set", "matrix=64", "-o", out, header)
        slices = [pydicom.dcmread(path) for path in paths_of(out)]
        volume = np.stack([s.pixel_array * float(s.RescaleSlope) for s in slices])
        k, j, i = np.unravel_index(volume.argmax(), volume.shape)
        first = np.array([float(v) for v in slices[k].ImagePositionPatient])
        found = first + np.array([i, j, 0]) * float(slices[k].PixelSpacing[0])
        tools.check((np.abs(found - point).max() < 5) == right, f"times {sign}: at {found}, the point at {point}", failures)


# ---- STIR ----

STIR_SEGMENTS = [(-1, 1), (2, 4), (-4, -2)]


def test_stir_comes_back(folder, failures):
    counts = tof.random_counts(STIR_SEGMENTS)
    ways = (("by-view", {}), ("by-plane", {"by_view": False}), ("short", {"kind": "short"}), ("mashed", {"mashing": 8}),
            ("listed", {"order": [0, 1, -1, 2, -2]}), ("reversed", {"order": [2, 1, 0, -1, -2], "by_view": False}))
    for name, options in ways:
        path, out = os.path.join(folder, name), os.path.join(folder, name + "-objects")
        tof.write_stir(path, counts, STIR_SEGMENTS, **options)
        with open(path + ".hs", encoding="ascii") as f, open(additive := path + "-additive.hs", "w",
                                                             encoding="ascii") as to:
            to.write(f.read().replace(name + ".s", name + "-additive.s"))
        with open(path + ".s", "rb") as f, open(path + "-additive.s", "wb") as to:
            data = f.read()
            to.write(turned := data[4:] + data[:4])
        done = run_import(out, path + ".hs", "--additive", additive, "--chunk", 3000, "--set", "ActualFrameDuration=60000")
        tools.check(("-2, -1 ... 2 is assumed" in done.stderr) != ("order" in options), f"STIR {name}: {done.stderr}",
                    failures)
        for role, (found, _) in streams(out).items():
            tools.check(found == (turned if role == "ADDITIVE" else data), f"STIR {name}: {role}: not the same bytes",
                        failures)
        arrays, geometry, segments = read_arrays(folder, out)
        same(arrays["data"], tof.in_memory(counts, STIR_SEGMENTS), f"STIR {name}", failures)
        expected = [tof.TOF, tof.WIDTH_PS * C2, tof.FWHM_PS * C2 / (2 * np.sqrt(2 * np.log(2))), 0, 107]
        tools.check(np.allclose(geometry, expected, rtol=1e-8) and segments == [(-s[1], -s[0]) for s in STIR_SEGMENTS],
                    f"STIR {name}: {geometry} {segments}", failures)
        tools.run("export", "--force", "-o", os.path.join(folder, "back.hs"), out)
        with open(os.path.join(folder, "back.s"), "rb") as f:
            tools.check(f.read() == data, f"STIR {name}: not exported as it was", failures)


def test_bad_headers_of_stir_are_refused(folder, failures):
    counts = tof.random_counts(STIR_SEGMENTS)
    path, out = os.path.join(folder, "bad"), os.path.join(folder, "bad-objects")
    one = {k: counts[k] for k in (0,)}
    flat = os.path.join(folder, "flat")
    tof.write_stir(flat, one, STIR_SEGMENTS,
                   changes=(("number of dimensions := 5\nmatrix axis label [5] := timing positions\n!matrix size [5] "
                             ":= 1\n",
                             "number of dimensions := 4\n"),))
    tof.write_stir(path, counts, STIR_SEGMENTS)
    done = run_import(out, path + ".hs", "--additive", flat + ".hs", ok=(4,))
    tools.check("EMISSION and ADDITIVE: different TOF bins: number: 5 and 0" in done.stderr,
                f"ADDITIVE without TOF bins: {done.stderr}", failures)
    run_import(os.path.join(folder, "factors"), path + ".hs", "--attenuation", flat + ".hs")
    with open(path + ".s", "r+b") as f:
        f.truncate(os.path.getsize(path + ".s") - 4)
    done = run_import(out, path + ".hs", ok=(4,))
    tools.check("its header requires" in done.stderr and "5 TOF bins" in done.stderr, f"truncated: {done.stderr}",
                failures)
    tools.check(not os.path.exists(out) or not os.listdir(out), "something is left of what was refused", failures)


# ---- e7tools ----


def test_e7tools_come_back(folder, failures):
    """Axial compression 3 with a last segment that is cut, and none: middles of planes between direct planes."""
    for name, compression, largest in (("e7", 3, 3), ("span", 3, 4), ("single", 1, 3)):
        e7 = tof.E7(os.path.join(folder, name), compression, largest, same_norm=name == "span")
        out = os.path.join(folder, name + "-objects")
        e7.write("Debug" if name == "e7" else "")
        done = run_import(out, "--e7", e7.folder, "--chunk", 5000)
        tools.check(done.stderr.count("The first ring of Siemens is assumed to be the one furthest from the bed") == 1
                    and done.stderr.count("\n") == 1,
                    f"{name}: {done.stderr}", failures)
        found = streams(out)
        tools.check(sorted(found) == ["ADDITIVE", "ATTENUATION", "EMISSION", "NORMALISATION"],
                    f"{name}: {sorted(found)}", failures)
        with open(os.path.join(e7.folder, "prompts_00.s"), "rb") as f:
            tools.check(f.read()[:-len(e7.second_type)] == found["EMISSION"][0],
                        f"{name}: EMISSION: not the same bytes", failures)
        arrays, geometry, segments = read_arrays(folder, out)
        same(arrays["data"], tof.in_memory(e7.prompts, e7.segments), f"{name} EMISSION", failures)
        norm = tof.in_memory(e7.efficiency_correction(), e7.segments)
        acf = np.asarray(tof.turned(e7.acf, e7.segments), np.float32)
        same(arrays["factors"], np.float32(1) / acf / np.asarray(norm[0] if name == "span" else norm, np.float32), f"{name} factors", failures)
        same(arrays["background"], tof.in_memory(e7.additive(), e7.segments), f"{name} ADDITIVE", failures)
        # what the headers lack is that of the scanner with this originating system
        expected = [tof.TOF, tof.WIDTH_PS * C2, 214 * C2 / (2 * np.sqrt(2 * np.log(2))), 1.8564, 417]
        tools.check(np.allclose(geometry, expected, rtol=1e-8), f"{name}: {geometry}", failures)
        tools.check(segments == [(-s[1], -s[0]) for s in e7.segments], f"{name}: {segments}", failures)
        check_sources(e7, found, name, failures)
        for path in paths_of(out):
            tools.check(b"JSRecon12" not in read_file(path, "rb"),
                        f"{name}: {os.path.basename(path)} has the path of the data file", failures)
        if name == "e7":  # dead blocks are not used; they are no error
            done = tools.run("recon", "--device", "cpu", "--protocol", "pet-osem", "--set", "iterations=1", "--set",
                             "subsets=1", "--set", "matrix=8",
                             "-o", os.path.join(folder, "image"), *paths_of(out), ok=(0, 4))
            tools.check("19 planes of 4 angles in 5 TOF bins" in done.stdout, f"{name}: {done.stdout}{done.stderr}",
                        failures)


def test_a_folder_of_e7tools_is_reconstructed(folder, failures):
    """`recon DIR` is `import --e7 DIR` and `recon`; a folder that has the objects, too, is that of the objects."""
    e7 = tof.E7(os.path.join(folder, "e7"), 3, 3)
    e7.write("Debug")
    settings = ("--device", "cpu", "--protocol", "pet-osem", "--set", "iterations=1", "--set", "subsets=1", "--set",
                "matrix=8")
    values = [x for value in BASICS for x in ("--attribute", value)]
    images, objects = os.path.join(folder, "images"), os.path.join(folder, "objects")
    run_import(objects, "--e7", e7.folder)
    tools.run("recon", *settings, "-o", os.path.join(folder, "both"), objects)
    done = tools.run("recon", *settings, *values, "-o", images, e7.folder)
    tools.check("19 planes of 4 angles in 5 TOF bins" in done.stdout and not glob.glob(os.path.join(images, ".*")),
                done.stdout + done.stderr, failures)
    same_objects(images, os.path.join(folder, "both"), failures)
    for path in paths_of(objects):
        shutil.copy(path, e7.folder)
    tools.run("recon", *settings, "-o", os.path.join(folder, "beside"), e7.folder)
    same_objects(images, os.path.join(folder, "beside"), failures)


def same_objects(a, b, failures):
    def read(place):
        return [(ds.SOPInstanceUID, ds.PixelData) for ds in map(pydicom.dcmread, paths_of(place))]

    tools.check(len(read(a)) > 0 and read(a) == read(b), f"{b}: other objects", failures)


def check_sources(e7, found, name, failures):
    files = {"EMISSION": ["prompts_00.s.hdr", "prompts_00.s"], "NORMALISATION": ["norm3d_00.a"],
             "ATTENUATION": ["acf_00.a"],
             "ADDITIVE": ["smoothed_rand_00.s", "scat_00_00.s", "norm3d_00.a"]}
    hashes = e7.hashes("Debug" if name == "e7" else "")
    for role, names in files.items():
        lines = found[role][1].splitlines()
        tools.check([line.split()[0] for line in lines] == names and all(line.endswith(hashes[n]) for line,
                                                                         n in zip(lines, names)),
                    f"{name}: {role}: {lines}", failures)


def test_missing_files_of_e7tools_are_named(folder, failures):
    """What is missing is a sentence."""
    cases = (("norm3d_00.a",
              "norm3d_00.a with the normalisation is missing. Without the normalisation the scatter cannot be used",
              ["ADDITIVE", "ATTENUATION", "EMISSION"]),
             ("acf_00.a", "acf_00.a with the attenuation correction factors is missing.",
              ["ADDITIVE", "EMISSION", "NORMALISATION"]),
             ("smoothed_rand_00.s",
              "smoothed_rand_00.s with the smoothed randoms is missing. Without randoms there is no ADDITIVE.",
              ["ATTENUATION", "EMISSION", "NORMALISATION"]),
             ("scat_00_00.s", "scat_00_00.s with the scatter is missing.",
              ["ADDITIVE", "ATTENUATION", "EMISSION", "NORMALISATION"]))
    for name, says, roles in cases:
        e7 = tof.E7(os.path.join(folder, "missing-" + name))
        out = os.path.join(folder, "missing-objects-" + name)
        e7.write()
        os.remove(os.path.join(e7.folder, "Debug", name))
        done = run_import(out, "--e7", e7.folder)
        tools.check(says in done.stderr and sorted(streams(out)) == roles,
                    f"without {name}: {done.stderr} {sorted(streams(out))}", failures)
    same(read_arrays(folder, out)[0]["background"], tof.in_memory(e7.randoms, e7.segments), "without scatter: ADDITIVE", failures)


def put_float(path, index, value):
    with open(path, "r+b") as f:
        f.seek(index * 4)
        f.write(np.float32(value).tobytes())


def truncate(path, n):
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - n)


def write(path, text):
    with open(path, "w", encoding="latin-1") as f:
        f.write(text)


def test_bad_files_of_e7tools_are_refused(folder, failures):
    header_changes = (
        (("{radial arc-correction}", "{radial arc-correction, attenuation correction}"),
         "the prompts are already corrected"),
        (("%SMS-MI version number:=3.4", "%SMS-MI versions:=3.4"), "prompts_00.s.hdr: line"),
    )
    for i, (change, says) in enumerate(header_changes):
        e7 = tof.E7(os.path.join(folder, f"header-{i}"))
        with contextlib.suppress(FileExistsError):
            e7.write(changes=(change,))
        refused(folder, e7, says, str(change), failures)
    file_changes = (
        ("norm3d_00.a", lambda p: truncate(p, 4), "norm3d_00.a has "),
        ("norm3d_00.a", lambda p: put_float(p, 100, np.nan),
         "norm3d_00.a: stored TOF bin 0, plane 4, angle 0, radial bin 4: nan"),
        ("acf_00.a", lambda p: truncate(p, -4), "acf_00.a has "),
        ("acf_00.a", lambda p: put_float(p, 0, np.inf),
         "acf_00.a: stored TOF bin 0, plane 0, angle 0, radial bin 0: inf"),
        ("acf_00.a", lambda p: put_float(p, 0, 0), "radial bin 0: 0; allowed: finite and above 0"),
        ("smoothed_rand_00.s", lambda p: truncate(p, 19 * 24 * 4), "after the delayed coincidences"),
        ("smoothed_rand_00.s", lambda p: put_float(p, 19 * 24, np.nan),
         "smoothed_rand_00.s: stored TOF bin 0, plane 0, angle 0, radial bin 0: nan"),
        ("smoothed_rand_00.s", lambda p: put_float(p, 19 * 24 * 2 + 7, -1),
         "smoothed_rand_00.s: stored TOF bin 1, plane 0, angle 1, radial bin 1: -1"),
        ("scat_00_00.s", lambda p: truncate(p, 9 * 24 * 4), "scat_00_00.s has "),
        ("scat_00_00.s", lambda p: put_float(p, 5, -2),
         "scat_00_00.s: stored TOF bin 0, plane 0, angle 0, radial bin 5: -2"),
        ("scat_00_00.s.hdr", lambda p: write(p, "!INTERFILE:=\nmatrix size[3]:=19\n"),
         "scat_00_00.s.hdr: matrix size[3] := 19, but the prompts require 9"),
        ("norm3d_00.h33", lambda p: write(p, "!INTERFILE:=\n!number format:=unsigned integer\n"),
         "norm3d_00.h33: line 2: !number format := unsigned integer"),
        ("acf_00.h33", lambda p: write(p, "!INTERFILE:=\n%compression:=on\n"),
         "acf_00.h33: line 2: %compression := on"),
        ("scatter_520_2D_00_00.s", lambda p: write(p, ""),
         "two files with the scatter: scat_00_00.s and Debug/scatter_520_2D_00_00.s"),
        ("norm3d_01.a", lambda p: write(p, ""), "several bed positions"),
        ("../prompts_00.s", lambda p: truncate(p, 2000), "prompts_00.s has "),
        ("../other.s.hdr", lambda p: shutil.copy(p.replace("other", "prompts_00"), p),
         "are both headers of sinograms; name that of the prompts"),
        ("../prompts_00.s.hdr", os.remove, "no header of prompts (*.s.hdr) in the folder"),
        ("../prompts_00.s.hdr", lambda p: write(p, "!INTERFILE:=\n"),
         "prompts_00.s.hdr: \"name of data file\" is missing"),
    )
    for i, (name, change, says) in enumerate(file_changes):
        e7 = tof.E7(os.path.join(folder, f"file-{i}"))
        e7.write()
        change(os.path.join(e7.folder, "Debug", name))
        refused(folder, e7, says, f"{name}: {says}", failures)


def refused(folder, e7, says, label, failures):
    out = os.path.join(folder, "refused")
    done = run_import(out, "--e7", e7.folder, ok=(0, 4))
    tools.check(done.returncode and says in done.stderr, f"{label}: {done.stderr}", failures)
    tools.check(not os.path.exists(out), f"{label}: something is left of what was refused", failures)


def test_usage(folder, failures):
    """A prompts header that is named; what cannot be combined; files of manufacturers that are not read."""
    e7 = tof.E7(os.path.join(folder, "named"))
    e7.write()
    shutil.copy(os.path.join(e7.folder, "prompts_00.s.hdr"), os.path.join(e7.folder, "other_00.s.hdr"))
    compressed = read_file(os.path.join(e7.folder, "other_00.s.hdr")).replace("compression:=off", "compression:=on")
    run_import(os.path.join(folder, "named-objects"), os.path.join(e7.folder, "prompts_00.s.hdr"), "--e7", e7.folder)
    write(os.path.join(e7.folder, "other_00.s.hdr"), compressed)
    run_import(os.path.join(folder, "beside-compressed"), "--e7", e7.folder)
    for k in range(70):
        write(os.path.join(e7.folder, f"more_{k:02}.s.hdr"), compressed)
    done = run_import(os.path.join(folder, "x"), "--e7", e7.folder, ok=(1, 4))
    tools.check("more than 64 headers (*.s.hdr) in the folder; name that of the prompts" in done.stderr,
                f"70 headers: {done.stderr}", failures)
    done = run_import(os.path.join(folder, "x"), "--e7", e7.folder, "--additive", "a.hs", ok=(2,))
    tools.check("--e7, and Interfile data of the role ADDITIVE" in done.stderr, f"--additive: {done.stderr}", failures)
    run_import(os.path.join(folder, "x"), "--e7", os.path.join(folder, "nowhere"), ok=(8,))
    tools.check("FILE.hs or --petsird FILE is missing" in tools.run("import", "-o", os.path.join(folder, "x"),
                                                                    ok=(2,)).stderr, "no argument", failures)
    for name, data, says in (("a.rdf", b"\x89HDF\r\n\x1a\n" + bytes(600), "an HDF5 file, as GE writes raw data (RDF9)"),
                             ("a.ptd", bytes(600), "list mode data of Siemens (PTD)"),
                             ("b.bin", bytes(9000) + b"LARGE_PET_LM_RAWDATA" + bytes(40),
                              "list mode data of Siemens (PTD)"),
                             ("a.l.hdr", b"!INTERFILE:=\n!GENERAL IMAGE DATA :=\ndata format := CoincidenceList\n",
                              "the header of list mode data of Siemens (PETLINK)"),
                             ("a.cdh", b"Scanner name: X\nData filename: a.cdf\nData mode: list-mode\n",
                              "a header of CASToR"),
                             ("c", bytes(128) + b"DICM" + bytes(600),
                              "a DICOM file: reconstruct it with `tomonode recon`")):
        path = os.path.join(folder, name)
        write_file(path, data)
        done = run_import(os.path.join(folder, "x"), path, ok=(4,))
        tools.check(says in done.stderr, f"{name}: {done.stderr}", failures)
        if "import" not in says and "DICOM" not in says:  # recon does not read these, either
            done = tools.run("recon", "-o", os.path.join(folder, "x"), path, ok=(4,))
            tools.check(says in done.stderr, f"recon {name}: {done.stderr}", failures)
