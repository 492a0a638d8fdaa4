# SPDX-License-Identifier: Apache-2.0
"""`tomonode export` to NIfTI, MetaImage and PNG: PET, CT and tomosynthesis, with oblique axes, voxel by voxel in
patient space against pydicom and dcm2niix; pictures against numpy; several series at once; what is refused."""
import glob
import json
import os
import shutil
import subprocess

import numpy as np
import pydicom
import pytest

from tools import node_harness as h
from tools import pet_tools as t
from tools import volume_tools as v
from tools.edits import edited
from tools.node_harness import check

Image = pytest.importorskip("PIL.Image")
SOURCES = {  # what is simulated, how it is reconstructed, and how it is turned
    "pet": (("pet", "--scanner", "small", "--phantom", "f-shape", "--noise-free", "--attenuation"),
            ("--protocol", "pet-mlem", "--set", "iterations=4", "--set", "matrix=40"), (20, -35, 50)),
    "ct": (("parallel", "--size", "64", "--slices", "9", "--slice", "2.5", "--taper", "0.5", "--offset", "3",
            "--position", "FFP"), (),
           (-10, 25, 160)),
    "dbt": (("dbt", "--phantom", "ellipsoids", "--detector", "300x400", "--views", "7", "--view", "MLO", "--side", "R", "--i0", "1000"), (), None)}


def make_results(folder):
    for name, (simulate, recon, angles) in SOURCES.items():
        source, out = os.path.join(folder, name + "-in"), os.path.join(folder, name)
        t.run("simulate", *simulate, "-o", source)
        t.run("recon", "-o", out, "--device", "cpu", *recon, source)
        if angles:
            v.turn([pydicom.dcmread(p) for p in glob.glob(out + "/*.dcm")], angles)


@pytest.fixture(scope="module")
def made():
    """Of each kind the files of a series or object, and its volume."""
    folder = h.kept("export-images", make_results)
    paths = {name: sorted(glob.glob(os.path.join(folder, name, "*.dcm"))) for name in SOURCES}
    return {name: (p, v.of_tomosynthesis(p[0]) if name == "dbt" else v.of_slices([pydicom.dcmread(q) for q in p]))
            for name, p in paths.items()}


FORMATS = (("nii", ()), ("nii.gz", ()), ("mha", ()), ("mhd", ()), ("mha", ("--compress",)), ("mhd", ("--compress",)))


def test_volumes_in_every_format(folder, made):
    """The same values at the same places of the patient."""
    units = {}
    for name, (paths, wanted) in made.items():
        for ending, options in FORMATS if name == "pet" or h.TIER == 2 else FORMATS[1:3]:
            path = os.path.join(folder, "new", name + "".join(options), "image." + ending)
            said = json.loads(t.run("export", "--json", "-o", path, *options, *paths[::-1]).stdout)
            check(all(os.path.exists(f) for f in said["files"]) and len(said["files"]) == 1 + (ending == "mhd"), said)
            (v.of_nifti if "nii" in ending else v.of_metaimage)(path).same_as(wanted)
            units[name] = said["units"]
        path = os.path.join(folder, "new", name + ".npy")
        t.run("export", "-o", path, *paths)
        array = np.load(path)
        check(array.dtype == np.float32, f"{name}: {array.dtype}")
        v.Volume(array, wanted.matrix).same_as(wanted)
    check(units["pet"] == "BQML" and units["dbt"] == "/mm", units)
    check(0.02 < np.percentile(made["dbt"][1].values, 90) < 0.1, "a tomosynthesis is in 1/mm")


def real_world(path):
    shared = pydicom.dcmread(path, stop_before_pixels=True).SharedFunctionalGroupsSequence[0]
    return shared.RealWorldValueMappingSequence[0]


def test_as_dcm2niix_converts_them(folder, made):
    """Another program's conversion of the same objects."""
    h.need("dcm2niix")
    out = os.path.join(folder, "dcm2niix")
    os.makedirs(out)
    for name, (paths, _) in made.items():
        subprocess.run(["dcm2niix", "-z", "y", "-f", name, "-o", out, os.path.dirname(paths[0])], check=True,
                       stdout=subprocess.DEVNULL)
        other = v.of_nifti(os.path.join(out, name + ".nii.gz"))
        if name == "dbt":  # dcm2niix does not use the Real World Value Mapping
            other.values = other.values * float(real_world(paths[0]).RealWorldValueSlope)
        ours = os.path.join(folder, name + ".nii.gz")
        t.run("export", "-o", ours, *paths)
        v.of_nifti(ours).same_as(other)


# ---- pictures ----

def read_png(path):
    with Image.open(path) as image:
        check(image.mode in ("L", "I;16", "I"), image.mode)
        return np.array(image).astype(int), image.info.get("dpi")


def plane_of(volume, plane):
    """The volume as [plane, row, column] of pictures, with the size of a voxel in these directions."""
    size = np.linalg.norm(volume.matrix[:, :3], axis=0)
    if plane == "stored":
        return volume.values, size[::-1]
    cosines = volume.matrix[:, :3] / size
    by_axis = []  # for left, back, head: the voxel axis (column, row, slice), and its sign
    left = [0, 1, 2]
    for c in sorted(range(3), key=lambda c: -np.abs(cosines[c]).max()):  # the clearest first
        a = max(left, key=lambda a: abs(cosines[c, a]))
        left.remove(a)
        by_axis.append((c, a, np.sign(cosines[c, a])))
    axis = {c: (a, sign) for c, a, sign in by_axis}
    order = {"axial": ((2, 1), (1, 1), (0, 1)), "coronal": ((1, 1), (2, -1), (0, 1)),
             "sagittal": ((0, 1), (2, -1), (1, 1))}[plane]
    values = volume.values.transpose([2 - axis[c][0] for c, _ in order])
    flip = tuple(slice(None, None, int(axis[c][1] * sign)) for c, sign in order)
    return values[flip], np.array([size[axis[c][0]] for c, _ in order])


def scaled(picture, size, zoom=1):
    """Square pixels: linear interpolation between the centres of voxels."""
    pixel = min(size) / zoom
    for a in (0, 1):
        n = picture.shape[a]
        at = np.clip((np.arange(round(n * size[a] / pixel)) + 0.5) * pixel / size[a] - 0.5, 0, n - 1)
        picture = np.apply_along_axis(lambda line, at=at, n=n: np.interp(at, np.arange(n), line), a, picture)
    return picture


def grey(values, window, top):
    return np.clip((values - window[0]) / (window[1] - window[0]), 0, 1) * top


@pytest.mark.parametrize("kind", SOURCES)
def test_pictures_of_every_plane(folder, made, kind):
    """Computed again with numpy: slices, projection, window, depth. Tier 1 has another one of these for each plane."""
    out, (paths, volume) = os.path.join(folder, "picture.png"), made[kind]
    top = volume.values.max()
    for number, plane in enumerate(("stored", "axial", "coronal", "sagittal")):
        stack, size = plane_of(volume, plane)
        n, pixel = len(stack), min(size[1:])
        cases = (((), stack[n // 2], None, 255),
                 (("--slice", "2", "--window", f"{top / 3},{top / 2}"), stack[1], (top / 12, top * 7 / 12), 255),
                 (("--slice", str(n), "--bits", "16", "--window", "full"), stack[-1], (volume.values.min(), top),
                  65535),
                 (("--mip", "--bits", "16", "--window", "full"), stack.max(0), (stack.max(0).min(), top), 65535))
        first = (number + list(SOURCES).index(kind)) % len(cases)
        for options, wanted, window, most in cases if h.TIER == 2 else cases[first:first + 1]:
            said = json.loads(t.run("export", "--json", "--force", "-o", out, "--plane", plane, *options,
                                    *paths).stdout)
            window = window or said["picture"]["grey"]
            found, dpi = read_png(out)
            computed = grey(scaled(wanted, size[1:]), window, most)
            check(found.shape == computed.shape, f"{plane} {options}: {found.shape}, not {computed.shape}")
            worst = np.abs(found - computed).max()
            check(worst < 0.5 + most * 2e-5, f"{plane} {options}: grey levels differ by {worst}")
            # stored per metre
            check(np.allclose(dpi, round(1000 / pixel) * 0.0254), f"{dpi} dots per inch at {pixel} mm")


def test_inverted_picture(folder, made):
    out = os.path.join(folder, "picture.png")
    inverted = os.path.join(folder, "inverted.png")
    t.run("export", "--force", "-o", out, *made["dbt"][0])
    t.run("export", "-o", inverted, "--invert", *made["dbt"][0])
    check(np.abs(read_png(out)[0] + read_png(inverted)[0] - 255).max() <= 1, "--invert")


def test_magnified_picture(folder, made):
    out, (paths, volume) = os.path.join(folder, "picture.png"), made["pet"]
    said = json.loads(t.run("export", "--json", "-o", out, "--zoom", "3", "--bits", "16", "--window", "full", *paths).stdout)["picture"]
    size = np.linalg.norm(volume.matrix[:, :3], axis=0)[::-1]
    computed = grey(scaled(volume.values[len(volume.values) // 2], size[1:], 3), (volume.values.min(), volume.values.max()), 65535)
    found, dpi = read_png(out)
    check(found.shape == computed.shape and np.abs(found - computed).max() < 0.5 + 65535 * 2e-5, f"{found.shape}, not {computed.shape}")
    check(np.allclose(dpi, round(3000 / min(size[1:])) * 0.0254) and abs(said["pixel_mm"] - min(size[1:]) / 3) < 1e-6, f"{dpi} {said}")


def test_synthetic_view(folder):
    """The two-dimensional view of a tomosynthesis is an image if its file is named; in a folder the slices are the volume."""
    exam, out, picture = (os.path.join(folder, name) for name in ("exam", "out", "view.png"))
    t.run("simulate", "dbt", "--phantom", "ellipsoids", "--binning", 8, "--views", 5, "-o", exam)
    t.run("recon", "--device", "cpu", "--set", "voxel=1.4", "--set", "slice_spacing=4", "--set", "synthetic=true", "-o", out, exam)
    view, = glob.glob(os.path.join(out, "*-view-*.dcm"))
    d = pydicom.dcmread(view)
    said = json.loads(t.run("export", "--json", "-o", picture, "--bits", "16", view).stdout)["picture"]
    middle, width = float(d.WindowCenter) - 0.5, float(d.WindowWidth) - 1
    window = (middle - width / 2, middle + width / 2)
    found, dpi = read_png(picture)
    check(np.allclose(said["grey"], window) and np.abs(found - grey(d.pixel_array, window, 65535)).max() <= 1, said)
    check(np.allclose(dpi, round(1000 / float(d.PixelSpacing[0])) * 0.0254), dpi)
    t.run("export", "-o", os.path.join(folder, "view.npy"), view)
    check(np.array_equal(np.squeeze(np.load(os.path.join(folder, "view.npy"))), d.pixel_array), "the array")
    check("stored slice 7 of 13" in t.run("export", "--force", "-o", picture, out).stdout, "the folder has one volume")
    d.PhotometricInterpretation = "MONOCHROME1"
    d.save_as(os.path.join(folder, "other.dcm"))
    for words, said in (((view[:-4] + ".nii", view), "no place in the patient; allowed: .npy, .png"),
                        ((picture, "--plane", "axial", view), "only the stored plane"),
                        ((picture, os.path.join(folder, "other.dcm")), "'MONOCHROME1'; allowed: MONOCHROME2")):
        done = t.run("export", "--force", "-o", *words, ok=(4,))
        check(said in done.stderr, f"{words}: {done.stderr}")


def test_windows(folder, made):
    """auto: of a tomosynthesis and CT the window of the object, of PET most values."""
    out = os.path.join(folder, "auto.png")

    def range_of(*args):
        return json.loads(t.run("export", "--json", "--force", "-o", out, *args).stdout)["picture"]["grey"]

    first = pydicom.dcmread(made["ct"][0][0], stop_before_pixels=True)
    centre, width = float(first.WindowCenter), float(first.WindowWidth)
    check(np.allclose(range_of(*made["ct"][0]), (centre - width / 2, centre + width / 2)), "CT")
    values = made["pet"][1].values
    low, high = range_of(*made["pet"][0])
    hottest = max(np.percentile(plane[plane > values.mean()], 99.5, method="inverted_cdf") for plane in values
                  if (plane > values.mean()).sum() >= 100)
    check(low == 0 and abs(high - hottest) < values.max() / 2000, f"PET: {low} to {high}, not 0 to {hottest}")
    check(np.allclose(range_of("--mip", *made["pet"][0]), (low, high)), "the projection of PET")
    d = pydicom.dcmread(made["dbt"][0][0], stop_before_pixels=True).SharedFunctionalGroupsSequence[0]
    centre, width = (float(np.ravel(getattr(d.FrameVOILUTSequence[0], k))[0]) for k in ("WindowCenter", "WindowWidth"))
    slope = float(real_world(made["dbt"][0][0]).RealWorldValueSlope)
    wanted = slope * (centre - 0.5 - (width - 1) / 2), slope * (centre - 0.5 + (width - 1) / 2)  # PS3.3 C.11.2.1.2.1
    check(np.allclose(range_of(*made["dbt"][0]), wanted, atol=1e-9), f"tomosynthesis: not {wanted}")


def test_pictures_are_upright(folder):
    """The F of the phantom: its head is at the top of a coronal picture, its front at the top of an axial one (from
    truth.json, not from the objects): here with a patient that lies prone, feet first."""
    source, out = os.path.join(folder, "prone-in"), os.path.join(folder, "prone")
    truth = t.simulate(source, "--phantom", "f-shape", "--noise-free", "--position", "FFP")
    paths = t.reconstruct(out, source, settings=("iterations=6", "matrix=48")).paths
    volume = v.of_slices([pydicom.dcmread(p) for p in paths])
    for plane, columns, rows in (("axial", 0, (1, 1)), ("coronal", 0, (2, -1)), ("sagittal", 1, (2, -1))):
        path = os.path.join(folder, plane + "-f.png")
        said = json.loads(t.run("export", "--json", "-o", path, "--plane", plane, "--mip", *paths).stdout)
        found = read_png(path)[0]
        pixel = said["picture"]["pixel_mm"]
        stack, _ = plane_of(volume, plane)
        through = [a for a in range(3) if a not in (columns, rows[0])][0]
        corner = volume.matrix @ [*((np.array(volume.values.shape[::-1]) - 1) / 2), 1]  # the middle
        x = corner[columns] + (np.arange(found.shape[1]) - (found.shape[1] - 1) / 2) * pixel
        y = corner[rows[0]] + rows[1] * (np.arange(found.shape[0]) - (found.shape[0] - 1) / 2) * pixel
        z = corner[through] + (np.arange(len(stack)) - (len(stack) - 1) / 2) * 3.3
        lps = np.zeros((len(z), len(y), len(x), 3))
        lps[..., columns], lps[..., rows[0]], lps[..., through] = x[None, None, :], y[None, :, None], z[:, None, None]
        wanted = t.truth_values(truth, lps).max(0)
        score = [np.corrcoef(found.ravel(), m.ravel())[0, 1]
                 for m in (wanted, wanted[::-1], wanted[:, ::-1], wanted[::-1, ::-1])]
        check(score[0] > 0.8 and score[0] > max(score[1:]) + 0.05, f"{plane}: {score}")


def test_several_series_at_once(folder, made):
    """A folder with everything: one file of each series, names from the headers, nothing mixed, nothing overwritten."""
    mixed = os.path.join(folder, "mixed")
    os.mkdir(mixed)
    twin = pydicom.uid.generate_uid()[:50] + "1"
    for name, (paths, _) in made.items():
        for k, path in enumerate(paths):
            shutil.copy(path, os.path.join(mixed, f"{k}-{name}"))
            if name == "pet":  # a second series with the same description and number, of another patient
                d = pydicom.dcmread(path)
                d.SeriesInstanceUID, d.SOPInstanceUID, d.PatientID = twin, f"{twin}.{k}", "another"
                d.RescaleSlope = float(d.RescaleSlope) / 2
                d.save_as(os.path.join(mixed, f"{k}-twin"))
    h.write_file(os.path.join(mixed, "notes.txt"), "no object")
    out = os.path.join(folder, "there", "not")
    for form, ending, read in (("nifti", "nii.gz", v.of_nifti), ("metaimage", "mha", v.of_metaimage)):
        said = json.loads(t.run("export", "--json", "--format", form, "-o", out, mixed).stdout)
        names = {os.path.basename(f["files"][0]): f for f in said["volumes"]}
        check(said["ok"] and len(names) == 4 and said["passed_over"] == 1 and not said["failed"], said)
        check(all(n.startswith(("PT_", "CT_", "MG_")) and n.endswith("." + ending) for n in names), names)
        pet = made["pet"][1]
        for name, one in names.items():
            found = read(os.path.join(out, name))
            if one["series"] == twin:
                check(twin in name, name)
                found.same_as(v.Volume(pet.values / 2, pet.matrix))
            else:
                found.same_as(made[{"PT": "pet", "CT": "ct", "MG": "dbt"}[name[:2]]][1])
    before = {f: os.stat(os.path.join(out, f)).st_mtime_ns for f in os.listdir(out)}
    done = t.run("export", "--format", "nifti", "-o", out, mixed, ok=(1,))
    check(done.stderr.count("exists; --force replaces it") == 4 and "4 of 4 volumes failed" in done.stderr, done.stderr)
    check(before == {f: os.stat(os.path.join(out, f)).st_mtime_ns for f in os.listdir(out)}, "nothing is touched")
    t.run("export", "--force", "--format", "nifti", "-o", out, mixed)
    check(before != {f: os.stat(os.path.join(out, f)).st_mtime_ns for f in os.listdir(out)}, "--force")
    shutil.copy(os.path.join(mixed, "3-ct"), os.path.join(folder, "hidden"))
    os.remove(os.path.join(mixed, "3-ct"))  # one incomplete series does not stop the others
    done = t.run("export", "--json", "--format", "nifti", "-o", os.path.join(folder, "partly"), mixed, ok=(4,))
    said = json.loads(done.stdout)
    check(not said["ok"] and len(said["volumes"]) == 3 and len(said["failed"]) == 1
          and "slices are missing" in said["failed"][0]["error"], said)
    done = t.run("export", "-o", os.path.join(folder, "one.nii"), mixed, ok=(4,))
    check("4 volumes among" in done.stderr and "choose it with --series NAME" in done.stderr
          and "--format FORMAT -o FOLDER" in done.stderr, done.stderr)
    for choice, wanted in (("mg_", "dbt"), (twin, "twin")):  # a part of the name, in any case; the UID
        one = os.path.join(folder, f"one-{wanted}.nii")
        said = json.loads(t.run("export", "--json", "--series", choice, "-o", one, mixed).stdout)
        check(wanted == "twin" and said["series"] == twin or said["files"][0] == one, said)
        v.of_nifti(one).same_as(made["dbt"][1] if wanted == "dbt" else v.Volume(pet.values / 2, pet.matrix))
    done = t.run("export", "--series", "PT_", "-o", os.path.join(folder, "one.nii"), mixed, ok=(4,))
    check("2 volumes among" in done.stderr and twin in done.stderr, done.stderr)
    both = json.loads(t.run("export", "--json", "--format", "nifti", "--series", "pt_", "-o",
                            os.path.join(folder, "both"), mixed).stdout)
    check(len(both["volumes"]) == 2 and os.listdir(os.path.join(folder, "both")), both)
    for command, words in (("export", ("-o", os.path.join(folder, "one.nii"))), ("measure", ("--circle", "0,0,0,10"))):
        done = t.run(command, *words, "--series", "none", mixed, ok=(8,))
        check("no series is --series none: " in done.stderr and "MG_" in done.stderr, done.stderr)
        t.run(command, *words, os.path.join(folder, "missing"), ok=(8,))
    done = t.run("measure", "--circle", "0,0,0,10", mixed, ok=(4,))
    check("volumes among" in done.stderr and "choose one with --series NAME" in done.stderr, done.stderr)
    figures = [json.loads(t.run("measure", "--json", "--circle", "0,0,0,10", *words).stdout)["object"]["series"]
               for words in (("--series", twin, mixed), made["pet"][0])]
    check(figures[0] == twin != figures[1], figures)
    stranger = edited(made["ct"][0][2], os.path.join(folder, "stranger.dcm"), PatientID="another",
                      PatientName="Another^One")  # one patient's slice in another's series
    done = t.run("export", "-o", os.path.join(folder, "one.nii"), stranger,
                 *(p for k, p in enumerate(made["ct"][0]) if k != 2), ok=(4,))
    check("not of one patient" in done.stderr, done.stderr)
    check(not os.path.exists(os.path.join(folder, "one.nii")), "nothing is written")


def test_suv(folder, made):
    """--suv against the pseudo-code of QIBA; what has no SUV says why."""
    paths, volume = made["pet"]
    out = os.path.join(folder, "suv.nii.gz")
    factor = t.suv_factor(pydicom.dcmread(paths[0]))
    said = json.loads(t.run("export", "--json", "--suv", "-o", out, *paths).stdout)
    check(factor and said["units"] == "GML", said)
    v.of_nifti(out).same_as(v.Volume(volume.values * factor, volume.matrix))
    for name in ("ct", "dbt"):
        done = t.run("export", "--suv", "-o", os.path.join(folder, "none.nii"), *made[name][0], ok=(4,))
        check("is not PET" in done.stderr, done.stderr)
    other = edited(paths[0], os.path.join(folder, "weightless.dcm"), PatientWeight=None)
    done = t.run("export", "--suv", "-o", os.path.join(folder, "none.nii"), other, *paths[1:], ok=(4,))
    check("--suv: " in done.stderr and "(0010,1030)" in done.stderr, done.stderr)


def test_refusals(folder, made):
    paths, out = made["pet"][0], os.path.join(folder, "refused.png")
    for args, code, words in (
            (("-o", out, "--slice", "99", *paths), 4, "--slice 99: there are 15 slices"),
            (("-o", out, "--image", "2", *paths), 4, "--image 2: the series has 1 image"),
            (("-o", out, "--slice", "0", *paths), 2, "--slice 0 is not allowed"),
            (("-o", out, "--window", "1,0", *paths), 2, "--window 1,0 is not allowed"),
            (("-o", out, "--window", "atuo", *paths), 2, "--window atuo is not allowed"),
            (("-o", out, "--plane", "coronel", *paths), 2, "coronal"),
            (("-o", out, "--bits", "12", *paths), 2, "--bits 12 is not allowed"),
            (("-o", out, "--zoom", "33", *paths), 2, "--zoom 33 is not allowed"),
            (("-o", out, "--mip", "--slice", "3", *paths), 2, "exclude each other"),
            (("-o", out, "--compress", *paths), 2, "--compress is for"),
            (("-o", out[:-3] + "nii", "--mip", *paths), 2, "are for .png"),
            (("-o", out[:-3] + "hs", "--suv", *paths), 2, "not for raw data"),
            (("-o", out[:-3] + "hs", "--series", "PT", *paths), 2, "--series is for images, not for raw data"),
            (("-o", out, "--format", "png", *paths), 2, "must be a folder"),
            (("-o", out[:-4], *paths), 2, "for a folder state --format"),
            (("-o", out[:-4], "--format", "tiff", *paths), 2, "--format tiff is not allowed")):
        done = t.run("export", *args, ok=(code,))
        check(words in done.stderr, f"'{words}' is not in: {done.stderr}")
    check(not glob.glob(os.path.join(folder, "refused*")), "a refusal leaves nothing")


def test_all_slices(folder, made):
    paths, volume = made["dbt"]
    out = os.path.join(folder, "slices", "s.png")
    said = json.loads(t.run("export", "--json", "-o", out, "--slice", "all", "--plane", "axial", *paths).stdout)
    stack, size = plane_of(volume, "axial")
    check(len(said["files"]) == len(stack) and said["files"][0].endswith("s-0001.png"), said["files"])
    for k in (0, len(stack) // 3, len(stack) - 1):
        computed = grey(scaled(stack[k], size[1:]), said["picture"]["grey"], 255)
        check(np.abs(read_png(said["files"][k])[0] - computed).max() < 0.51, f"slice {k + 1}")
    done = t.run("export", "-o", out, "--slice", "all", "--plane", "axial", *paths, ok=(1,))
    check("s-0001.png exists" in done.stderr, done.stderr)
