# SPDX-License-Identifier: Apache-2.0
"""`tomonode recon` on a folder as people have them: two views, duplicates, text, other DICOM, a Hologic object, a
series with one image short. What can be reconstructed is; each refusal has its sentence; the exit code tells; nothing
half-made stays."""
import json
import os
import shutil

import numpy as np
import pydicom

from tools import dbt_tools as tools
from tools import python_exam as maker
from tools.edits import edited_all
from tools.node_harness import write_file

SHAPE = (132, 168)


def hologic(path, like):
    """A Secondary Capture of modality MG with a private payload, as Hologic packs projections."""
    ds = pydicom.dcmread(like)
    ds.Manufacturer = "HOLOGIC, Inc."
    ds.Rows, ds.Columns, ds.PixelData = 2, 2, np.zeros((2, 2), np.uint16).tobytes()
    ds.private_block(0x7E01, "HOLOGIC, Inc.", create=True).add_new(0x10, "OB", b"\0" * 64)
    maker.save(ds, "1.2.840.10008.5.1.4.1.1.7", path)


def write_config(folder):
    path = os.path.join(folder, "conf")
    write_file(path, maker.CONFIG)
    return path


def test_makes_what_it_can_and_refuses_the_rest(folder, failures):
    def check(ok, text):
        tools.check(ok, text, failures)

    exam, out, config = os.path.join(folder, "exam"), os.path.join(folder, "new/out"), write_config(folder)
    for name in ("left", "right", "short", "other"):
        os.makedirs(os.path.join(exam, name))
    maker.write(os.path.join(exam, "left"), "L", "CC", 1, -1, 0, False, SHAPE)
    maker.write(os.path.join(exam, "right"), "R", "MLO", -1, 1, 45, True, SHAPE)
    maker.write(os.path.join(exam, "short"), "R", "CC", -1, 1, 0, False, SHAPE)
    os.remove(os.path.join(exam, "short", "4.dcm"))
    shutil.copy(os.path.join(exam, "left", "3.dcm"), os.path.join(exam, "left", "3 again.dcm"))
    write_file(os.path.join(exam, "notes.txt"), "not an image")
    first = os.path.join(exam, "left", "0.dcm")
    hologic(os.path.join(exam, "other", "sco.dcm"), first)
    with open(first, "rb") as f, open(os.path.join(exam, "other", "cut.dcm"), "wb") as g:
        g.write(f.read()[:700])
    endless = pydicom.dcmread(first)
    endless.NumberOfFrames, endless.ImageLaterality = 2147483647, "R"
    endless.SeriesInstanceUID = pydicom.uid.generate_uid()
    endless.SOPInstanceUID = endless.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    endless.save_as(os.path.join(exam, "other", "endless.dcm"))
    done = tools.run("recon", "--json", "-c", config, "--device", "cpu", "--set", "voxel=1.02", "-o", out, exam,
                     ok=(4,))
    summary = json.loads(done.stdout)
    cases = summary["cases"]
    check(not summary["ok"] and summary["code"] == 4, f"code {summary['code']}")
    check(sorted((c["laterality"], c["view"], c["projections"]) for c in cases) == [("L", "CC", 10), ("R", "MLO", 10)],
          f"{cases}")
    check(sorted(os.listdir(out)) == sorted(c["file"] for c in cases), f"{os.listdir(out)} in the output folder")
    check(summary["duplicates"] == 1 and summary["not_dicom"] == 1,
          f"{summary['duplicates']} duplicates, {summary['not_dicom']} no DICOM")
    reasons = {r["what"]: r["reason"] for r in summary["refused"]}
    check(len(reasons) == 4, f"refused: {reasons}")
    for part, sentence in (("sco.dcm", "Hologic SCO"), ("cut.dcm", ""), ("R CC", "(0020,1002) is 10"),
                           ("", "2147483647 frames")):
        check(any(part in what and sentence in why for what, why in reasons.items()),
              f"no refusal of {part} with '{sentence}': {reasons}")
        check(part in done.stderr, f"{part} is not on stderr")
    check("\r" not in done.stderr and "\x1b" not in done.stderr, "a progress bar where there is no terminal")
    check("PYTHON" not in done.stdout + done.stderr, "a patient's name in the output")
    check({c["view"]: os.path.basename(c["source"]) for c in cases} == {"CC": "left", "MLO": "right"}, "the sources of a batch")
    stages = ("open", "read", "prepare", "upload", "reconstruct", "download", "write", "total")
    for case in cases:
        check(abs(case["voxel_mm"][0] - 1.02) < 1e-9 and case["size"][2] == maker.THICKNESS,
              f"{case['size']} of {case['voxel_mm']}")
        check(all(case["seconds"][k] >= 0 for k in stages), "stages")

    done = tools.run("recon", "-c", config, "--device", "cpu", "--set", "voxel=2.04", "-o", out,
                     os.path.join(exam, "right"))
    check(done.stdout.startswith("R MLO: 10 projections"), done.stdout)
    check("new/out is not empty (2 files)" in done.stderr, f"a folder that has files: {done.stderr}")


# arguments beside the exam, exit code, what stderr names
CODES = ((("-o", "out"), 2, "", False), ((), 2, "", True), (("--protocol", "none", "-o", "out"), 8, "none", True),
         (("--set", "iterations=0", "-o", "out"), 2, "iterations", True),
         (("--device", "cpu", "--set", "subsets=11", "-o", "out"), 4, "subsets", True),  # of 10 projections
         (("--device", "cuda:77", "-o", "out"), 6, "cuda:77", True),
         (("--device", "cpu", "--set", "memory_limit=1000000", "-o", "out"), 5, "the limit is 1.0 MB (memory_limit)",
          True),
         (("-o", "out", "nothing"), 8, "nothing", False))


def test_exit_codes(folder, failures, monkeypatch):
    monkeypatch.chdir(folder)
    os.mkdir("exam")
    maker.write("exam", "R", "MLO", -1, 1, 45, True, SHAPE)
    config = write_config(folder)
    for words, code, named, of_exam in CODES:
        done = tools.run("recon", "-c", config, *words, *["exam"] * of_exam, ok=(code,))
        tools.check(named in done.stderr and not os.path.exists("out"), f"{words}: {done.stderr}", failures)


def test_views_of_the_breast(folder, failures):
    """Other views than CC and MLO come out as what they are: codes, and the direction of the slices in the patient."""
    def check(ok, text):
        tools.check(ok, text, failures)

    half = np.sqrt(0.5)
    for name, code, orientation, tube, given, modifier in (
            ("ML", "399260004", ["A", "F"], (-1, 0, 0), ("399260004", "SCT"), None),
            ("LMO", "399099002", ["A", "F"], (half, 0, -half), ("R-10230", "SRT"), None),
            ("XCCL", "399192008", ["A", "R"], (0, 0, 1), ("R-1024A", "SRT"), None),
            ("AT", "399368009", ["A", "F"], (-half, 0, half), None, "399011000")):
        exam, out = os.path.join(folder, name), os.path.join(folder, "out-" + name)
        os.makedirs(exam)
        maker.write(exam, "L", "CC", 1, -1, 0, False, SHAPE)

        def give(ds):
            if given:
                ds.ViewCodeSequence[0].CodeValue, ds.ViewCodeSequence[0].CodingSchemeDesignator = given
            else:
                del ds.ViewCodeSequence
                ds.ViewPosition = name
        edited_all(exam, exam, give, PatientOrientation=orientation)
        tools.run("recon", "-c", write_config(folder), "--device", "cpu", "--set", "voxel=1.02", "-o", out, exam)
        made, = (os.path.join(out, f) for f in os.listdir(out) if f.endswith(".dcm"))
        ds = pydicom.dcmread(made, stop_before_pixels=True)
        view, = ds.ViewCodeSequence
        check((view.CodeValue, view.CodingSchemeDesignator) == (code, "SCT"), f"{name}: {view}")
        check([m.CodeValue for m in view.ViewModifierCodeSequence] == ([modifier] if modifier else []), f"{name}: {view}")
        check(os.path.basename(made).startswith(f"L-{name}-") and f"L {name} " in ds.SeriesDescription, f"{name}: {made}")
        plane = ds.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0].ImageOrientationPatient
        columns, rows = np.array(plane[:3], float), np.array(plane[3:], float)
        across = abs(np.cross(columns, rows) @ np.array(tube))
        check(abs(across - 1) < 1e-6 and abs(columns @ np.array([0, -1, 0])) > 1 - 1e-6, f"{name}: {plane}")


def test_angles_of_the_wrong_sign(folder, failures):
    """A black picture with streaks: the result says that no breast has these values."""
    exam, config = os.path.join(folder, "exam"), os.path.join(folder, "conf")
    tools.run("simulate", "dbt", "--phantom", "ellipsoids", "--binning", 8, "-o", exam)
    for sign, words in ((1, ()), (-1, ("of the tissue is above 0.2 / mm", "angles of the wrong sign"))):
        write_file(config, f'profiles = ( {{ name = "siemens-inspiration"; angle_sign = {sign}; }} );\n')
        out = os.path.join(folder, f"out{sign}")
        done = tools.run("recon", "--json", "-c", config, "--device", "cpu", "--protocol", "dbt-osem", "--set", "voxel=2",
                         "-o", out, exam)
        made, = (os.path.join(out, f) for f in os.listdir(out) if f.endswith(".dcm"))
        for text in (json.loads(done.stdout)["cases"][0]["warnings"], str(pydicom.dcmread(made, stop_before_pixels=True))):
            tools.check(all(w in text for w in words) and ("of the tissue" in text) == (sign < 0), f"{sign}: {text[-900:]}",
                        failures)


def test_the_directory_of_a_cd_is_no_image(folder):
    """An exam beside its DICOMDIR (PS3.10 8.6), whose data set has no SOP Class UID."""
    exam, config = os.path.join(folder, "exam"), write_config(folder)
    os.makedirs(exam)
    maker.write(exam, "L", "CC", 1, -1, 0, False, SHAPE)
    directory = pydicom.Dataset()
    directory.FileSetID = "EXAM"
    directory.file_meta = pydicom.dataset.FileMetaDataset()
    directory.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.1.3.10"
    directory.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    directory.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    directory.is_little_endian, directory.is_implicit_VR = True, False
    for name in ("DICOMDIR", "dicomdir;1"):  # as some systems show the names of a CD
        directory.save_as(os.path.join(exam, name), write_like_original=False)
    tools.run("recon", "-c", config, "--device", "cpu", "--set", "voxel=1.02", "-o", os.path.join(folder, "out"), exam)


def test_recipe(folder, failures):
    """A result is made again from its provenance: the same object; what is changed is said, and what cannot be followed refused."""
    def check(ok, text):
        tools.check(ok, text, failures)

    def made(out, *words, of, ok=(0,)):
        done = tools.run("recon", "--json", "--device", "cpu:1", "-o", os.path.join(folder, out), *words, of, ok=ok)
        return json.loads(done.stdout)["cases"][0] if ok == (0,) else done.stderr

    settings = {"dbt": ("--protocol", "dbt-sart", "--set", "voxel=2", "--set", "iterations=2"),
                "pet": ("--set", "matrix=32", "--set", "iterations=2"),
                "parallel": ("--set", "filter=hann", "--set", "filter_cut=0.5", "--set", "memory_limit=1 GB")}
    options = {"dbt": ("--binning", 8, "--detector", "800x1200", "--views", 7), "pet": ("--scanner", "small", "--attenuation"),
               "parallel": ("--angles", 60, "--slices", 1)}
    results = {}
    for kind, words in settings.items():
        scan = os.path.join(folder, kind)
        tools.run("simulate", kind, *options[kind], "-o", scan)
        first = made(kind + "1", *words, of=scan)
        name = min(f for f in os.listdir(os.path.join(folder, kind + "1")) if f.endswith(".dcm"))
        results[kind] = os.path.join(folder, kind + "1", name)
        again = made(kind + "2", "--recipe", results[kind], of=scan)
        check(again["recipe_differs"] == [] and again["protocol"] == first["protocol"], f"{kind}: {again['recipe_differs']}")
        a, b = (pydicom.dcmread(os.path.join(folder, kind + n, name)) for n in "12")
        check(a.SOPInstanceUID == b.SOPInstanceUID and a.PixelData == b.PixelData, f"{kind}: another object")

    folder_of = os.path.dirname(results["pet"])
    check(made("pet4", "--recipe", folder_of, of=os.path.join(folder, "pet"))["recipe_differs"] == [], "of a folder")
    for path, named in ((os.path.join(folder, "pet"), "no tomosynthesis, PET or CT image among"), (folder, " results: ")):
        said = made("none", "--recipe", path, of=os.path.join(folder, "pet"), ok=(4,))
        check(named in said, f"{path}: {said}")
    check("--recipe: nowhere: " in made("none", "--recipe", "nowhere", of=scan, ok=(8,)), "a recipe that is missing is not named")

    check("exclude" in made("none", "--recipe", results["dbt"], "--protocol", "dbt-fbp", of=scan, ok=(2,)), "a protocol and a recipe")
    other = made("dbt3", "--recipe", results["dbt"], "--set", "voxel=2.5", of=os.path.join(folder, "dbt"))
    check(other["recipe_differs"] == ["voxel=2.5, was 2"], f"{other['recipe_differs']}")
    part = os.path.join(folder, "part")  # another scan, without factors of the attenuation: another image of the same keys
    tools.run("simulate", "pet", "--scanner", "small", "--seed", 2, "-o", part)
    other = made("pet3", "--recipe", results["pet"], of=part)["recipe_differs"]
    check(any(o.startswith("factor=") for o in other), f"{other}")
    check({"another study", "other corrections (Corrected Image)"} < set(other), f"{other}")
    part = os.path.join(folder, "lines")
    tools.run("simulate", "parallel", "--phantom", "head", "--angles", 60, "--slices", 1, "-o", part)
    other = made("lines3", "--recipe", results["parallel"], of=part)["recipe_differs"]
    check(any("UIDs differ" in o for o in other), f"{other}")
    result, scan = results["parallel"], os.path.join(folder, "parallel")
    said = made("none", "--recipe", result, of=os.path.join(folder, "pet"), ok=(2,))
    check("it is of kind parallel" in said, f"another kind: {said}")
    ours = pydicom.dcmread(result)
    text = ours.ContributingEquipmentSequence[-1].ContributionDescription
    for changed, code, named in ((text.replace("matrix=", "matrx="), 2, "'matrx' is no key"),
                                 (text[:text.index("axis=")], 4, "not whole"), ("by hand", 4, "has no recipe")):
        ours.ContributingEquipmentSequence[-1].ContributionDescription = changed
        ours.save_as(os.path.join(folder, "changed.dcm"))
        said = made("none", "--recipe", os.path.join(folder, "changed.dcm"), of=scan, ok=(code,))
        check(named in said, f"{named}: {said}")
