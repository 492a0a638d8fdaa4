# SPDX-License-Identifier: Apache-2.0
"""`tomonode arrays` with tn.open() and tn.write(): the library makes the image of `tomonode recon` from what they give, to half a step of the stored
values; nothing of the patient is in case.json; the header of a volume from elsewhere is honest; what is refused."""
import glob
import hashlib
import importlib
import json
import os
import sys
import tempfile

import numpy as np
import pydicom
import pytest

from tools import node_harness as h
from tools import volume_tools
from tools.dbt_tools import KNOWN_MG
from tools.pet_tools import run, validator

ROOT, LIBRARY = os.environ["TOMONODE_SOURCE"], os.path.join(os.environ["TOMONODE_BUILD"], "libtomonode.so.0")
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY) or bool(h.sanitizer()), reason="needs libtomonode without sanitizers")
PET = ("simulate", "pet", "--scanner", "small", "--attenuation", "--counts")
PAIRS = """scanners = ( { name = "pairs"; manufacturer = "tomonode"; model = "pairs"; rings = 8; ring_spacing = 6.5; radius = 100.0;
  interaction_depth = 5.0; detectors = 96; bin = 3.43; radial = 65; angles = 48; span = 3; max_difference = 7; arc_corrected = false; } );
"""
OSEM = "iterations=2 subsets=4 matrix=40"
SCAN, TOF, DELAYEDS = (*PET, "1e6", "--randoms", "0.2"), (*PET, "1e6", "--randoms", "0.2", "--tof", "6,300,500"), (
    "simulate", "pet", "--scanner", "pairs", "--attenuation", "--counts", "1e6", "--randoms", "0.5", "--delayeds")
BREAST = ("simulate", "dbt", "--binning", "8", "--views", "9", "--phantom", "ellipsoids", "--air", "20")
HEAD = ("simulate", "parallel", "--phantom", "head", "--angles", "60", "--slices", "3")
# Half a step of the stored values. The writer multiplies in float32, which is 2^-24 of up to 32767 steps beside; slopes have 10 digits or more.
HALF = 0.5 + 32767 * 2**-24
VOXELS = " voxel=1.4 slice_spacing=2"
EVENTS = (*PET, "2e5", "--petsird")
HFS = ("--attribute", "PatientPosition=HFS")
# Name: what simulates it, what is read, options of both commands, protocol, keys: every algorithm of every kind, every projector, the forms of
# data. Keys without effect, and steps of streams, are among them.
KINDS = {
    "dbt": (BREAST, "", (), "dbt-osem", "iterations=2" + VOXELS),
    "dbt-mlem": (BREAST, "", (), "dbt-mlem", "iterations=2" + VOXELS),
    "dbt-ostr": (BREAST, "", (), "dbt-ostr", "iterations=1 prior=quadratic prior_weight=0.1" + VOXELS),
    "dbt-mltr": (BREAST, "", (), "dbt-mltr", "iterations=2" + VOXELS),
    "dbt-sart": (BREAST, "", (), "dbt-sart", "iterations=1" + VOXELS),
    "dbt-bp": (BREAST, "", (), "dbt-bp", VOXELS),
    "dbt-exact": (BREAST, "", (), "dbt-osem", "iterations=1 subsets=3 projector=exact breast_mask=false voxel=2.8 slice_spacing=5"),
    "dbt-fbp": (("simulate", "dbt", "--binning", "8", "--views", "9", "--format", "bp", "--scatter", "1"), "", (), "dbt-fbp",
                "voxel=1.4 slice_spacing=5 scatter_correction=true"),
    "pet": (SCAN, "", (), "pet-osem", OSEM + " psf=5"),
    "pet-mlem": (SCAN, "", (), "pet-mlem", "iterations=3 matrix=40 postfilter=4"),
    "pet-bsrem": (SCAN, "", (), "pet-osem", "algorithm=bsrem prior_weight=0.1 " + OSEM),
    "pet-joseph": (SCAN, "", (), "pet-osem", "projector=joseph " + OSEM),
    "pet-exact": (SCAN, "", (), "pet-osem", "projector=exact iterations=1 subsets=4 matrix=24"),
    "pet-tof": (TOF, "", (), "pet-osem", OSEM + " tof_mashing=2"),
    "pet-randoms": (DELAYEDS, "", (), "pet-osem", OSEM + " corrections=randoms"),
    "pet-fbp": (SCAN, "", (), "pet-fbp-preview", "matrix=40"),
    "list": (EVENTS, "scan.petsird", HFS, "pet-osem", OSEM),
    "list-mlem": (EVENTS, "scan.petsird", HFS, "pet-mlem", "iterations=3 matrix=40"),
    "list-tof": ((*PET, "2e5", "--petsird", "--tof", "5,400,500"), "scan.petsird", HFS, "pet-osem", OSEM + " psf=5"),
    "list-randoms": ((*PET, "2e5", "--petsird", "--randoms", "0.5"), "scan.petsird", HFS, "pet-osem", OSEM + " corrections=randoms"),
    "interfile": ((*PET, "1e5", "--interfile"), "emission.hs", (), "pet-osem", "iterations=2 subsets=4"),
    "parallel": (HEAD, "", (), "parallel-fbp", "filter=hann filter_cut=0.7"),
    "parallel-bp": (HEAD, "", (), "parallel-bp", ""),
    "parallel-art": (HEAD, "", (), "parallel-art", "iterations=1 projector=joseph"),
    "parallel-mlem": (HEAD, "", (), "parallel-mlem", "iterations=2"),
    "parallel-osem": (HEAD, "", (), "parallel-sart", "algorithm=osem iterations=1 subsets=6 projector=sampled"),
    "parallel-exact": (HEAD, "", (), "parallel-sart", "iterations=1 subsets=6 projector=exact matrix=60"),
    "parallel-hu": (HEAD, "", (), "parallel-sart", "iterations=2 mu_water=0.02"),
}


@pytest.fixture(name="tn", scope="module")
def import_package():
    os.environ["TOMONODE_LIBRARY"] = LIBRARY
    sys.path.insert(0, os.path.join(ROOT, "recon", "python"))
    return importlib.import_module("tomonode")


@pytest.fixture(name="exam_of", scope="module")
def simulate_once():
    """A function that returns the folder of the exam which these words simulate."""
    made = {}
    with tempfile.TemporaryDirectory(prefix="tomonode-arrays-") as folder:
        def exam_of(words):
            if words not in made:
                made[words] = os.path.join(folder, str(len(made)))
                run(*words, "-o", made[words])
            return made[words]

        yield exam_of


def result_of(folder):
    """The values of a result [z][y][x], each axis in one of its directions, NaN where they are padding (air of fbp), and the step of the stored
    values of each slice [z][1][1]."""
    files = [pydicom.dcmread(f) for f in glob.glob(os.path.join(folder, "*.dcm"))]
    slices = [d for d in files if "NumberOfFrames" not in d]
    if slices:
        normal = np.cross(slices[0].ImageOrientationPatient[:3], slices[0].ImageOrientationPatient[3:])
        slices.sort(key=lambda d: np.dot(np.array(d.ImagePositionPatient, float), normal))
        return np.array(volume_tools.of_slices(slices).values), np.array([[[float(d.RescaleSlope)]] for d in slices])
    values = np.array(volume_tools.of_tomosynthesis(files[0].filename).values)
    if "PixelPaddingValue" in files[0]:
        values[files[0].pixel_array == files[0].PixelPaddingValue] = np.nan
    return values, 2e-5


def difference(image, values, steps=1.0):
    """The largest difference, in steps, in the one order of the axes' directions that fits."""
    assert image.shape == values.shape, (image.shape, values.shape)
    assert np.isnan(values).mean() < 0.9, "the image is padding"
    return min(np.nanmax(np.abs(np.flip(image, [k for k in range(3) if flips >> k & 1]) - values) / steps) for flips in range(8))


@pytest.mark.parametrize("kind", [kind if kind in ("dbt", "pet-tof", "list-randoms", "parallel-hu") else
                                  pytest.param(kind, marks=pytest.mark.tier2("one of each form of data is in tier 1"))
                                  for kind in KINDS])
def test_the_library_makes_the_image_of_the_program(folder, monkeypatch, tn, exam_of, kind):
    """To half a stored step, and not more: the last bit of float32 moves the thousands of values that are near the middle between two steps."""
    words, name, options, protocol, keys = KINDS[kind]
    out = os.path.join(folder, "result")
    monkeypatch.setenv("TOMONODE_CONF", os.path.join(folder, "tomonode.conf"))
    h.write_file(os.environ["TOMONODE_CONF"], PAIRS)
    exam = exam_of(words)
    path = os.path.join(exam, name) if name else exam
    settings = [word for key in keys.split() for word in ("--set", key)]
    run("recon", "--device", "cpu", "--protocol", protocol, *settings, *options, "-o", out, path)
    case = tn.open(path, protocol=protocol, set=keys, options=[*options, "--device", "cpu"])
    with tn.Device("cpu") as device:
        image = case.reconstruct(device=device)
    found = difference(case.scale * image.astype("d") + case.offset, *result_of(out))
    assert found <= HALF, f"{found} steps, keys {case.keys}"
    made = pydicom.dcmread(glob.glob(os.path.join(out, "*.dcm"))[0], stop_before_pixels=True)  # it has this unit in its own words
    unit = {"BQML": "Bq/ml", "CNTS": "counts/mm", "HU": "HU"}.get(made.get("Units", made.get("RescaleType", "")))
    assert case.grid.shape == image.shape and (case.unit == unit if unit else f", unit {case.unit}" in made.DerivationDescription
                                               if made.Modality == "CT" else case.unit == "1/mm"), case.unit
    assert set(case.arrays) == set(case.about["arrays"])
    if case.data is not None:
        assert case.data.shape == case.scan.shape and not case.data.flags.writeable
    text = json.dumps(case.about)
    for d in (pydicom.dcmread(f) for f in glob.glob(os.path.join(exam, "*.dcm"))):
        for keyword in ("PatientName", "PatientID", "PatientBirthDate", "StudyDate", "StudyInstanceUID", "SOPInstanceUID", "SeriesInstanceUID"):
            value = str(d.get(keyword, ""))
            assert not value or value not in text, f"{keyword} {value} is in case.json"


def test_a_volume_of_another_program_says_so(folder, tn):
    """Its header: who computed it, its digest, no algorithm but what is stated, no parameter and no correction that is not stated; its own UIDs."""
    exam, lines = os.path.join(folder, "exam"), os.path.join(folder, "lines")
    run(*PET, "1e6", "--randoms", "0.2", "-o", exam)
    run("simulate", "parallel", "--phantom", "head", "--angles", "60", "--slices", "2", "-o", lines)
    how = {"protocol": "pet-osem", "set": OSEM + " psf=5 postfilter=3", "options": ["--device", "cpu"]}
    case = tn.open(exam, **how)
    image = np.random.default_rng(1).random(case.grid.shape, np.float32)
    states = {"software": "My MLEM", "version": "1.2", "note": "40 iterations with a median filter"}
    digest = hashlib.sha256(image.tobytes()).hexdigest()

    def written(name, volume=image, like=exam, **more):
        files = [pydicom.dcmread(f) for f in tn.write(volume, like, os.path.join(folder, name), **{**how, **states, **more})]
        assert len(files) == volume.shape[0] and not [text for d in files for text in validator(d.filename)]
        return sorted(files, key=lambda d: d.InstanceNumber)

    run("recon", "--device", "cpu", "--protocol", "pet-osem", *[w for k in how["set"].split() for w in ("--set", k)], "-o", os.path.join(folder, "own"), exam)
    own = pydicom.dcmread(glob.glob(os.path.join(folder, "own", "*.dcm"))[0])
    plain, stated = written("plain"), written("stated", corrected=True, algorithm="iterative")
    assert "DerivationCodeSequence" not in plain[0] and stated[0].DerivationCodeSequence == own.DerivationCodeSequence
    for d in (plain[0], stated[0]):
        assert d.DerivationDescription.startswith(f"Volume computed outside tomonode by My MLEM 1.2 (SHA-256 {digest}): {states['note']}. ")
        assert d.ReconstructionMethod == "outside tomonode" and "ConvolutionKernel" not in d
        assert d.SeriesDescription == "My MLEM 1.2, outside tomonode"
        item = d.ContributingEquipmentSequence[1]
        assert (item.ManufacturerModelName, item.SoftwareVersions, item.PurposeOfReferenceCodeSequence[0].CodeValue) == ("My MLEM", "1.2", "109102")
        assert digest in item.ContributionDescription and d.ContributingEquipmentSequence[2].ManufacturerModelName == "tomonode"
        assert not any(word in str(d) for word in ("OSEM", "osem 2", "iterations=", "psf=", "postfilter="))
        for keyword in ("PatientID", "StudyInstanceUID", "FrameOfReferenceUID", "SourceInstanceSequence", "ImageOrientationPatient", "PixelSpacing"):
            assert d.get(keyword) == own.get(keyword), keyword
    assert (own.Units, stated[0].Units, plain[0].Units) == ("BQML", "BQML", "CNTS")
    assert list(stated[0].CorrectedImage) == list(own.CorrectedImage) and not {"ATTN", "RADL", "RAN"} & set(plain[0].CorrectedImage)
    assert "not stated that the other program used the corrections" in plain[0].DerivationDescription
    for files, scale in ((stated, case.scale), (plain, 1)):
        values = np.array(volume_tools.of_slices(files).values)
        assert difference(scale * image, values) <= max(float(d.RescaleSlope) for d in files) * 0.51
    said = {"summary": "converged", "figures": {"updates": 40}, "warnings": ["7 voxels were limited", "the last update was large"]}
    told = written("told", corrected=True, algorithm="iterative", **said)[0]
    assert told.ContributingEquipmentSequence[1].ContributionDescription.endswith(f"{states['note']}; converged; updates 40")
    assert "My MLEM: 7 voxels were limited. My MLEM: the last update was large." in told.DerivationDescription
    assert told.SeriesInstanceUID not in (stated[0].SeriesInstanceUID, written("told-2", corrected=True, algorithm="iterative", summary="diverged")[0].SeriesInstanceUID)
    series = {own.SeriesInstanceUID, *(d.SeriesInstanceUID for d in (plain[0], stated[0], written("other", version="1.3")[0], written("new", 2 * image)[0]))}
    again = sorted(case.write(image, os.path.join(folder, "again"), **states))
    assert len(series) == 5 and {pydicom.dcmread(f).SOPInstanceUID for f in again} == {d.SOPInstanceUID for d in plain}
    how = {"protocol": "parallel-sart", "options": ["--device", "cpu"], "set": "mu_water=0.02"}
    ct = written("ct", np.full(tn.open(lines, **how).grid.shape, 0.02, np.float32), lines, **how)
    assert ct[0].DerivationDescription.startswith("Volume computed outside tomonode by My MLEM 1.2") and not ct[0].pixel_array.any()
    assert "parallel-sart" not in str(ct[0]).replace("parallel-sart, grid and corrections only", "")

    for volume, more, words in ((image[1:], {}, "must have"), (np.full_like(image, np.nan), {}, "voxel 0 is"), (image, {"software": ""}, "--software"),
                                (image, {"version": "1\\2"}, "--version"), (image, {"note": "x" * 201}, "--note"), (image, {"summary": "a\nb"}, "'summary' of "),
                                (image, {"warnings": ["w"] * 9}, "'warnings' of "), (image, {"figures": {"a": float("nan")}}, "not valid JSON")):
        with pytest.raises(tn.TomonodeError, match=words):
            written("refused", volume, **{**how, "protocol": "pet-osem", "set": OSEM, **more})
    assert not os.path.exists(os.path.join(folder, "refused"))
    with pytest.raises(ValueError, match="float64"):
        written("refused", image.astype("d"))


@pytest.mark.tier2("a tomosynthesis is simulated, reconstructed and written three times")
def test_a_tomosynthesis_of_another_program_says_so(folder, tn):
    """The library's image, written: the pixels of recon to a stored step, in its place in the patient; slabs and a synthetic view of it."""
    exam = os.path.join(folder, "exam")
    run("simulate", "dbt", "--binning", "8", "--views", "9", "--phantom", "ellipsoids", "--scatter", "1", "-o", exam)
    keys = "iterations=2 subsets=3 voxel=1.4 slice_spacing=2 scatter_correction=true slab_thickness=10 synthetic=true"
    how = {"protocol": "dbt-osem", "set": keys, "options": ["--device", "cpu"]}
    states = {"software": "My SART", "version": "2", "note": "-o 40 updates", "algorithm": "iterative"}
    case = tn.open(exam, **how)
    image = case.reconstruct(device=tn.Device("cpu"))

    def written(name, volume=image, **more):
        files = tn.write(volume, exam, os.path.join(folder, name), **{**how, **states, **more})
        assert not {text for file in files for text in validator(file)} - {KNOWN_MG}
        return [pydicom.dcmread(file) for file in files]

    run("recon", "--device", "cpu", "--protocol", "dbt-osem", *[w for k in keys.split() for w in ("--set", k)], "-o", os.path.join(folder, "own"), exam)
    own = {d.SeriesNumber: d for d in map(pydicom.dcmread, glob.glob(os.path.join(folder, "own", "*.dcm")))}
    stated, plain = written("stated", corrected=True), written("plain", algorithm="filtered", warnings=["the rim is dark"])
    digest = hashlib.sha256(image.tobytes()).hexdigest()
    assert len(stated) == len(own) == 3
    for d in stated:
        of = own[d.SeriesNumber]
        assert np.abs(d.pixel_array.astype(int) - of.pixel_array).max() <= 1, d.SeriesDescription
        text, kinds = str(d).replace("dbt-osem, grid and corrections only", ""), "DerivationImageSequence" in d.get("SharedFunctionalGroupsSequence", [d])[0]
        derived = d.SharedFunctionalGroupsSequence[0].DerivationImageSequence[0] if kinds else d
        assert derived.DerivationDescription.startswith(f"Volume computed outside tomonode by My SART 2 (SHA-256 {digest}): -o 40 updates. Of 9 projections")
        assert derived.DerivationCodeSequence[0].CodeValue == "113963" and "My SART 2, outside tomonode" in d.SeriesDescription
        assert not any(word in text for word in ("osem", "OSEM", "iterations=", "ALGEBRAIC"))
        assert "Scatter subtracted" in derived.DerivationDescription
        for keyword in ("PatientID", "StudyInstanceUID", "FrameOfReferenceUID", "ImageType", "Rows", "PlanePositionSequence"):
            assert d.get(keyword) == of.get(keyword), keyword
        assert d.SOPInstanceUID != of.SOPInstanceUID and d.SeriesInstanceUID != of.SeriesInstanceUID
    assert len({d.SeriesDescription for d in stated}) == 3
    slices = next(d for d in plain if d.SeriesDescription == "My SART 2, outside tomonode")
    reconstruction = slices.XRay3DReconstructionSequence[0]
    assert (reconstruction.ApplicationName, reconstruction.ApplicationVersion, reconstruction.AlgorithmType) == ("My SART", "2", "FILTER_BACK_PROJ")
    assert "AlgorithmDescription" not in reconstruction and "Scatter subtracted" not in str(slices)
    assert not {d.SOPInstanceUID for d in plain} & {d.SOPInstanceUID for d in stated}
    run("report", "-o", os.path.join(folder, "report"), slices.filename)
    with open(glob.glob(os.path.join(folder, "report", "*.html"))[0], encoding="utf-8") as f:
        warnings = f.read().partition('class="warnings"')[2].partition("</section>")[0]
    assert "<li>My SART: the rim is dark. 9 projections" in warnings and "voxels" not in warnings  # the sentences of its derivation behind the description of the volume
    for volume, more, words in ((image[1:], {}, "must have"), (np.full_like(image, np.nan), {}, "voxel 0 is"), (image, {"algorithm": ""}, "kind of algorithm"),
                                (image, {"algorithm": "magic"}, "--algorithm")):
        with pytest.raises(tn.TomonodeError, match=words):
            written("refused", volume, **more)
    assert not os.path.exists(os.path.join(folder, "refused"))


def test_of_the_arrays_there_are_all_or_none(folder):
    exam, beds, out = (os.path.join(folder, name) for name in ("exam", "beds", "case"))
    run(*PET, "1e5", "-o", exam)
    run(*PET, "1e5", "--beds", "2,20", "-o", beds)
    for refused, code in (([exam, beds], 4), ([beds], 4), ([os.path.join(folder, "nothing")], 8), (["--set", "iterations=0", exam], 2)):
        run("arrays", "read", "-o", out, *refused, ok=(code,))
        assert not os.path.exists(out), refused
    run("arrays", "reed", "-o", out, exam, ok=(2,))
    pipe = os.path.join(folder, "volume.f32")
    os.mkfifo(pipe)
    said = run("arrays", "write", "--software", "mine", "--version", "1", "-o", out, pipe, exam, ok=(4,)).stderr
    assert f"{pipe} is not a regular file" in said  # nor waits for one that writes into it
    found = json.loads(run("arrays", "read", "--json", "-o", out, exam).stdout)["cases"][0]
    with open(os.path.join(out, "case.json"), encoding="utf-8") as f:
        assert json.load(f).keys() == found["case"].keys()
    assert sorted(os.listdir(out)) == ["case.json", "data.f32", "factors.f32"]
    before = {f: os.stat(os.path.join(out, f)).st_ino for f in os.listdir(out)}
    run("arrays", "read", "-o", out, beds, ok=(4,))
    assert before == {f: os.stat(os.path.join(out, f)).st_ino for f in os.listdir(out)}


def test_the_program_must_be_there_and_of_this_version(folder, tn):
    with pytest.raises(FileNotFoundError, match="found: none named 'no-such-tomonode'"):
        tn.open(folder, program="no-such-tomonode")
    other = os.path.join(folder, "tomonode")
    h.write_file(other, "#!/bin/sh\necho tomonode 99.1.0 '(revision x, y build)'\n")
    os.chmod(other, 0o755)
    with pytest.raises(tn.TomonodeError, match="found: 99.1.0"):
        tn.open(folder, program=other)
    with pytest.raises(tn.TomonodeError, match="nothing to reconstruct"):
        tn.open(folder)
