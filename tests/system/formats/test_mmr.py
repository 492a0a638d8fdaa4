# SPDX-License-Identifier: Apache-2.0
"""Raw data of a Siemens mMR, from an independent writer (tools/mmr_tools.py): the prompts and the efficiencies that a
worker reads are numpy's, bit for bit; variants of the header; hostile objects are refused with a sentence; through the
node, list mode and norm become one case and a series in counts that says what it is not corrected for."""
import glob
import hashlib
import json
import os
import pathlib
import subprocess

import numpy as np
import pydicom
import pytest

from tools import mmr_tools as mmr, pet_tools
from tools import node_harness as h
from tools.ct_writer import write_ct
from tools.mmr_recon import QUICK, conf_of, events_at, objects_in, raw as raw_recon, recon, values
from tools.mmr_tools import extract
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescp", "echoscu", "dcmsend", "dcmconv", "dciodvfy")

READ = os.path.join(os.environ.get("TOMONODE_BUILD", "build/release"), "tests", "read_sinogram")
# Ring difference 0 only: 64 planes instead of 837.
SCANNER = 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; } );\n'
SEGMENTS = [0, 1, 62, 126, 127, 128, 200, 241, 242, 300, 356, 357, 449, 450, 542, 543, 700, 808, 809, 836]


def raw(folder, n=20000, seed=5, **kwargs):
    """List mode and norm in a new folder: their paths, the words, the components."""
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(seed)
    words, norm = mmr.words_of(rng, n), mmr.Norm(rng)
    return (mmr.write_list(os.path.join(folder, "list.dcm"), words, **kwargs),
            mmr.write_norm(os.path.join(folder, "norm.dcm"), norm, **kwargs),
            words, norm)


def read(folder, *files, planes=(0,), conf=None, code=0):
    """What a worker reads from the files: emission and efficiencies of the planes, the printed lines. With a code: the
    message."""
    out = os.path.join(folder, "out")
    p = subprocess.run([READ, conf or "-", out, ",".join(map(str, planes)), *files], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE,
                       text=True, timeout=120, check=False)
    check(p.returncode == code, f"exit {p.returncode}: {p.stderr}")
    if code:
        return p.stderr
    shape = (len(planes), mmr.VIEWS, mmr.BINS)
    return (np.fromfile(out + ".EMISSION", np.float32).reshape(shape),
            np.fromfile(out + ".MULTIPLICATIVE", np.float32).reshape(shape),
            p.stdout.splitlines())


def small(folder):
    path = os.path.join(folder, "small.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write(SCANNER
                + 'protocols = ( { name = "quick"; kind = "pet"; algorithm = "osem"; iterations = 1; subsets = 63; '
                  'matrix = 16; '
                          'slice_spacing = 16.0; } );\n')
    return path


def test_values_are_those_of_numpy(folder):
    list_, norm_file, words, norm = raw(folder, 60000)
    emission, factors, lines = read(folder, list_, norm_file, planes=SEGMENTS)
    counts, prompts, delayeds = mmr.counts_of(words, SEGMENTS)
    check(prompts > 39000 and counts.sum() > 300, "the test has too few events")
    check(np.array_equal(emission, counts), "the prompts are not numpy's")
    found = np.fromfile(os.path.join(folder, "out.DELAYEDS"), np.float32)
    check(found.any() and np.array_equal(found, mmr.counts_of(words, SEGMENTS, delayed=True)[0].ravel()),
          "the delayeds are not numpy's")
    check(np.array_equal(factors, norm.efficiencies(SEGMENTS)), "the efficiencies are not numpy's")
    check(0.2 < (factors == 0).mean() < 0.22, "two gaps of 1 / 9")
    check(lines[0] == f"EMISSION 837 {prompts}" and lines[1].startswith("MULTIPLICATIVE 837 ")
          and lines[2] == f"DELAYEDS 837 {delayeds}", lines)
    check(f"{delayeds} delayed events not used" in lines[3]
          and "not corrected for randoms, scatter, attenuation and dead time" in lines[3], lines)
    check("The time marks cover 11.99 s, the header says 20 s" in lines[3], lines)


def test_every_form_of_the_header_is_read(folder):
    """The same values, whatever element has the header, however its lines end, in implicit VR, with the data beside the
    object."""
    conf = small(folder)
    list_, norm_file, words, norm = raw(folder, 500)
    wanted = [a.tobytes() for a in read(folder, list_, norm_file, conf=conf)[:2]]
    some = {"second": {"where": "second"}, "implicit-csa": {"implicit": True, "where": "csa"}, "deflated": {}}
    if h.TIER == 2:
        some |= {"csa": {"where": "csa"}, "implicit": {"implicit": True}}
    for name, forms in some.items():
        files = raw(os.path.join(folder, name), 500, **forms)[:2]
        if name == "deflated":
            for path in files:
                h.run("dcmconv", "+td", path, path + "z")
            files = [path + "z" for path in files]
        check([a.tobytes() for a in read(folder, *files, conf=conf)[:2]] == wanted, name)
    for end in ("\n", "\r\n", "\r\r\n") if h.TIER == 2 else ("\n",):
        files = (mmr.write_list(os.path.join(folder, "l.dcm"), words, mmr.list_header(len(words), end)),
                 mmr.write_norm(os.path.join(folder, "n.dcm"), norm, mmr.norm_header(end) + b"\0\0\0"))
        check([a.tobytes() for a in read(folder, *files[::-1], conf=conf)[:2]] == wanted, repr(end))
    for data in (b"", None, b"\0" * 100) if h.TIER == 2 else (None,):
        mmr.write(os.path.join(folder, "x.dcm"), "PET_LISTMODE", mmr.list_header(len(words)), data)
        mmr.write(os.path.join(folder, "y.dcm"), "PET_NORM", mmr.norm_header(), data, number=2)
        for name, content in (("x.bf", mmr.list_bytes(words)), ("y.bf", norm.bytes())):
            h.write_file(os.path.join(folder, name), content)
        *found, lines = read(folder, os.path.join(folder, "x.dcm"), os.path.join(folder, "y.dcm"), conf=conf)
        check([a.tobytes() for a in found] == wanted, "data in .bf files")
        for name, content in (("x.bf", mmr.list_bytes(words)), ("y.bf", norm.bytes())):
            check(f"{name} {len(content)} bytes SHA-256 {hashlib.sha256(content).hexdigest()}" in lines[3], lines)


def test_data_beside_the_object_are_part_of_the_result(folder):
    """Two files beside equal objects: their names and hashes are in the results, which have different UIDs."""
    results = []
    for seed in (3, 4):
        rng, source = np.random.default_rng(seed), os.path.join(folder, f"in-{seed}")
        words = [mmr.time_mark(5), *events_at(rng, 700)]
        data = mmr.list_bytes(words)
        raw_recon(source, words)
        mmr.write(os.path.join(source, "list.dcm"), "PET_LISTMODE", mmr.list_header(len(words)), b"")
        h.write_file(os.path.join(source, "list.bf"), data)
        (first, *_), report = recon(folder, f"out-{seed}", source)
        text = f"list.bf {len(data)} bytes SHA-256 {hashlib.sha256(data).hexdigest()}"
        check(text in first.DerivationDescription and text in report["warnings"], first.DerivationDescription)
        results.append(first)
    check(len({d.SeriesInstanceUID for d in results}) == len({d.SOPInstanceUID for d in results}) == 2,
          "the same UIDs for other data")


def test_extracted_files_are_the_objects(folder):
    """NAME.l.hdr and NAME.n.hdr make the image of the DICOM objects, bit for bit, and name the files in place of objects."""
    words, norm = events_at(np.random.default_rng(4), 20000), mmr.Norm(np.random.default_rng(8))
    want, _ = recon(folder, "out1", raw_recon(os.path.join(folder, "objects"), words, norm))
    header = extract(os.path.join(folder, "files"), words, norm)
    made, case = recon(folder, "out2", header)
    check(np.array_equal([d.pixel_array for d in made], [d.pixel_array for d in want])
          and [d.RescaleSlope for d in made] == [d.RescaleSlope for d in want], "the image is another one")
    d, w = made[0], want[0]
    check((d.AcquisitionDate, d.AcquisitionTime[:6], list(d.ImageOrientationPatient), d.ActualFrameDuration)
          == (w.AcquisitionDate, w.AcquisitionTime[:6], list(w.ImageOrientationPatient), w.ActualFrameDuration), "start, position, duration")
    check("SourceImageSequence" not in d and "SourceInstanceSequence" not in d, "objects that do not exist are named")
    text = str(d)
    check(hashlib.sha256(h.read_file(header[:-4], "rb")).hexdigest() in text and "scan.n (323404 bytes" in text, text)
    # elsewhere, with other names and line ends: the same series
    moved = extract(os.path.join(folder, "moved"), words, norm, ("a.l", "b.n"), "\r\n", nameofdatafile="C:\\raw\\x.l")
    again, _ = recon(folder, "out3", moved, "--normalisation", os.path.join(folder, "moved", "b.n.hdr"))
    whole, _ = recon(folder, "out4", os.path.dirname(header))
    below = extract(os.path.join(folder, "below"), words, norm, nameofdatafile="data/x.l")
    os.makedirs(os.path.join(folder, "below", "data"))
    os.rename(below[:-4], os.path.join(folder, "below", "data", "x.l"))
    below, _ = recon(folder, "out5", below)
    for objects in (again, whole, below):
        check([o.SOPInstanceUID for o in objects] == [o.SOPInstanceUID for o in made], "the UIDs depend on names")


def test_extracted_files_are_refused(folder):
    """What is missing, or there twice, is named; no list is reconstructed with the data of another one."""
    rng = np.random.default_rng(3)
    words, norm, conf = events_at(rng, 500), mmr.Norm(rng), conf_of(folder)

    def refused(name, *options, remove=(), more=None, **changes):
        place = os.path.join(folder, name)
        header = extract(place, words, norm, **changes)
        for path in remove:
            os.remove(os.path.join(place, path))
        for path, content in (more or {}).items():
            h.write_file(os.path.join(place, path), content)
        p = h.run(h.TOMONODE, "recon", "-c", conf, "--protocol", "quick-pet", "--device", "cpu", "-o", os.path.join(folder, "no"), header,
                  *options, code=None)
        check(p.returncode in (4, 8), p.stdout)  # data that are wrong, or missing
        check(not glob.glob(os.path.join(folder, "no", "*.dcm")), "something was written")
        return p.stderr

    for words_of_error, error in (
            ("no normalisation (NAME.n.hdr) is beside it", refused("1", remove=["scan.n.hdr"])),
            ("several normalisations", refused("2", remove=["scan.n.hdr"], more={"b.n.hdr": mmr.norm_header(), "c.n.hdr": mmr.norm_header()})),
            ("scan.l.hdr: its data are not beside it: neither x.l nor scan.l", refused("3", remove=["scan.l"])),
            ("beside it are x.l, which it names, and scan.l", refused("4", more={"x.l": b"1234"})),
            ("its data are not beside it: neither x.l nor scan.l",  # a header must not name what is elsewhere
             refused("0", remove=["scan.l"], nameofdatafile="../3/x.l", more={"../x.l": b"1234"})),
            ("has 12 bytes, the header requires", refused("5", more={"scan.l": b"123412341234"})),
            ("scan.n has 4 bytes, the header requires 323404", refused("6", more={"scan.n": b"1234"})),
            ("energy window", refused("8", norm_changes={"energywindowlowerlevelkev1": 350})),
            ("is not the header (NAME.n.hdr) of a normalisation", refused("9", "--normalisation", conf))):
        check(words_of_error in error, f"{words_of_error}: {error}")


def test_acquisitions_in_one_folder_by_stem(folder):
    """A.l.hdr and A.n.hdr, B.l.hdr and B.n.hdr: each list with the normalisation of its name. What they are read from is not
    counted as ignored; what is not read, is."""
    conf, place = conf_of(folder), os.path.join(folder, "both")
    alone = []
    for seed, stem in ((4, "A"), (5, "B")):
        words, norm = events_at(np.random.default_rng(seed), 3000), mmr.Norm(np.random.default_rng(seed + 10))
        names = (stem + ".l", stem + ".n")
        extract(place, words, norm, names, nameofdatafile=f"C:\\raw\\{stem}.l")
        header = extract(os.path.join(folder, stem), words, norm, names)
        alone.append(recon(folder, "out" + stem, header)[0][0].SOPInstanceUID)
    for name in ("other.txt", "C.l"):
        h.write_file(os.path.join(place, name), b"1234")
    p = h.run(h.TOMONODE, "recon", "-c", conf, "--json", "--device", "cpu:1", "--protocol", "quick-pet", "-o", os.path.join(folder, "out"),
              place)
    made = json.loads(p.stdout)
    check(len(made["cases"]) == 2 and made["not_dicom"] == 2, made)
    found = sorted(pydicom.dcmread(path).SOPInstanceUID for path in glob.glob(os.path.join(folder, "out", "**", "*.dcm"), recursive=True))
    check(set(alone) <= set(found), (alone, found))


def sinograms(folder, words, largest=1, **changes):
    """The sinograms of these words as the scanner stores them: span 1, segments 0, -1, +1 ..., rings from the depth of the gantry,
    prompts and then randoms. Returns the header."""
    planes = [i for i, (a, b) in enumerate(mmr.PAIRS) if abs(b - a) <= largest]
    events = np.array(words, np.uint32)
    events = events[events >> 31 == 0]
    stored = np.zeros((2, len(planes), mmr.VIEWS, mmr.BINS), "<i2")
    for k, prompt in enumerate((1, 0)):
        bins = (events[events >> 30 == prompt] & (mmr.PROMPT - 1)).astype(np.int64)
        np.add.at(stored[k].reshape(-1), bins[bins < stored[k].size], 1)
    keys = {"!originating system": 2008, "%SMS-MI version number": 3.4, "name of data file": "C:\\raw\\x.s", "%compression": "off",
            "%study date (yyyy:mm:dd)": "2017:03:27", "%study time (hh:mm:ss GMT+00:00)": "17:00:35", "isotope name": "F-18",
            "!PET data type": "emission", "data format": "sinogram", "%patient orientation": "HFS",
            "image data byte order": "LITTLEENDIAN", "!number format": "signed integer", "!number of bytes per pixel": 2,
            "number of dimensions": 3, "matrix axis label[1]": "sinogram projections", "matrix axis label[2]": "sinogram views",
            "matrix axis label[3]": "number of sinograms", "matrix size[1]": mmr.BINS, "matrix size[2]": mmr.VIEWS,
            "matrix size[3]": len(planes), "%axial compression": 1, "%maximum ring difference": largest, "number of rings": 64,
            "%number of segments": 2 * largest + 1, "number of scan data types": 2, "scan data type description[1]": "prompts",
            "scan data type description[2]": "randoms", "data offset in bytes[1]": 0, "data offset in bytes[2]": stored[0].nbytes,
            "image duration (sec)": 20, "%GIM loss fraction": 1.02, "%PDR loss fraction": 1}
    os.makedirs(folder, exist_ok=True)
    stored.tofile(os.path.join(folder, "scan.s"))
    h.write_file(os.path.join(folder, "scan.s.hdr"), mmr.text_of(keys, changes, "\r\n"))
    return os.path.join(folder, "scan.s.hdr")


def test_extracted_sinograms_are_the_list(folder):
    """NAME.s.hdr with the normalisation beside it: prompts and delayeds of the list, 1 over its efficiencies, in the same planes."""
    words, norm = mmr.words_of(np.random.default_rng(6), 40000, last=190), mmr.Norm(np.random.default_rng(7))
    conf, place, planes = os.path.join(folder, "two.conf"), os.path.join(folder, "files"), (0, 63, 64, 126, 127, 189)
    h.write_file(conf, 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 1; } );\n')
    header = sinograms(place, words)
    for name, content in (("scan.n", norm.bytes()), ("scan.n.hdr", mmr.norm_header())):
        h.write_file(os.path.join(place, name), content)
    raw_recon(os.path.join(folder, "raw"), words, norm)
    read(folder, *glob.glob(os.path.join(folder, "raw", "*.dcm")), planes=planes, conf=conf)
    wanted = {r: np.fromfile(os.path.join(folder, "out." + r), np.float32) for r in ("EMISSION", "DELAYEDS", "MULTIPLICATIVE")}
    h.run(h.TOMONODE, "import", "-o", os.path.join(folder, "objects"), header)
    out = os.path.join(folder, "out2")
    h.run(READ, conf, out, ",".join(map(str, planes)), *glob.glob(os.path.join(folder, "objects", "*.dcm")))
    found = {r: np.fromfile(out + "." + r, np.float32) for r in ("EMISSION", "DELAYEDS", "NORMALISATION")}
    check(wanted["EMISSION"].sum() > 500 and wanted["DELAYEDS"].sum() > 300, "too few events")
    check(all(np.array_equal(found[r], wanted[r]) for r in ("EMISSION", "DELAYEDS")), "the counts are not those of the list")
    with np.errstate(divide="ignore"):
        check(np.array_equal(found["NORMALISATION"], np.float32(1) / wanted["MULTIPLICATIVE"]), "the factors are not 1 / efficiency")
    digest = hashlib.sha256(norm.bytes()).hexdigest().encode()
    check(any(digest in pathlib.Path(p).read_bytes() for p in glob.glob(os.path.join(folder, "objects", "*.dcm"))),
          "the normalisation's file is not named")


def test_image_of_extracted_sinograms(folder):
    """It is that of the list, but for the rounding of 1 / efficiency; a normalisation elsewhere can be named; one that does not fit,
    or one of several, is not used without a word."""
    words, norm = events_at(np.random.default_rng(4), 20000), mmr.Norm(np.random.default_rng(8))
    want, _ = recon(folder, "out1", raw_recon(os.path.join(folder, "raw"), words, norm))
    list_header = extract(os.path.join(folder, "norm"), words, norm)
    header, given = sinograms(os.path.join(folder, "sino"), words, 0), os.path.join(os.path.dirname(list_header), "scan.n.hdr")
    made, case = recon(folder, "out2", header, "--normalisation", given, "--set", 'corrections=["randoms"]')
    check({"NORM", "RAN"} <= set(made[0].CorrectedImage), made[0].CorrectedImage)
    made, case = recon(folder, "out3", header, "--normalisation", given)
    check("%GIM loss fraction := 1.02 is not used." in case["warnings"] and "PDR" not in case["warnings"], case["warnings"])
    a, b = (np.array([values(d) for d in objects]) for objects in (made, want))
    check(np.abs(a - b).max() < 1e-4 * b.max(), np.abs(a - b).max() / b.max())
    for name in ("b.n.hdr", "c.n.hdr"):
        pathlib.Path(folder, "sino", name).write_bytes(mmr.norm_header())
    made, case = recon(folder, "out4", header)
    check("NORM" not in made[0].CorrectedImage and "detector efficiencies" in case["warnings"], case["warnings"])
    said = h.run(h.TOMONODE, "import", "-o", os.path.join(folder, "objects"), header).stderr
    check("No normalisation is used: several" in said, said)
    sinograms(os.path.join(folder, "sino"), words, 0, compression="on")
    check("uncompress them with the e7tools" in recon(folder, "out5", header, "--normalisation", given, code=4), "compressed")
    sinograms(os.path.join(folder, "sino"), words, 0, originatingsystem=1104)
    check("is of a Biograph mMR, the sinograms are not" in recon(folder, "out6", header, "--normalisation", given, code=4), "of an mCT")
    sinograms(os.path.join(folder, "sino"), words, 0)
    with open(os.path.join(folder, "sino", "scan.s"), "ab") as f:
        f.write(b"more")
    check("prompts and randoms end at" in recon(folder, "out7", header, "--normalisation", given, code=4), "a longer file")


FACTOR = b"%scanner quantification factor (Bq*s/ECAT counts):=1.98459e+007\n"
CROSS = b"%cross calibration factor:=0.96\n"
BRANCHING = b"isotope branching factor:=0.967\n"
ECAT = 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; ecat_counts = 2.05; } );\n'


def calibrated(folder, name, header, *options, scanner=ECAT):
    """The series of a case with attenuation, and its report."""
    conf = os.path.join(folder, name + ".conf")
    h.write_file(conf, scanner + "protocols = ( { " + QUICK + 'corrections = [ "attenuation" ]; } );\n')
    p = h.run(h.TOMONODE, "recon", "-c", conf, "--json", "--device", "cpu:1", "--protocol", "quick-pet", "-o", os.path.join(folder, name),
              header, *options)
    return objects_in(os.path.join(folder, name)), json.loads(p.stdout)["cases"][0]["pet"]


def test_calibration_of_the_header(folder):
    """Asked for, the values are those in counts times ecat_counts Q / positron fraction / T D; the result says what each is and
    where it is from. Not asked for, nothing is in Bq/ml."""
    words, norm = events_at(np.random.default_rng(4), 9000), mmr.Norm(np.random.default_rng(8))
    header = extract(os.path.join(folder, "files"), words, norm, norm_more=FACTOR + CROSS, more=BRANCHING)
    ct = os.path.join(folder, "ct")
    hu = np.where(np.hypot(*np.meshgrid(*[(np.arange(40) - 19.5) * 5] * 2)) < 80, 0, -1000)
    write_ct(ct, np.repeat(hu[None], 60, 0), (5, 5, 5), (-97.5, -97.5, -147.5), frame_of_reference="2.25.4712")
    options = (ct, "--like", glob.glob(os.path.join(ct, "*"))[0])
    plain, plain_case = calibrated(folder, "plain", header, *options, scanner=SCANNER)
    made, case = calibrated(folder, "made", header, *options)
    lost = np.log(2) / 6586.2 * 20
    calibration = 2.05 * 1.98459e7 / 0.967
    check((plain[0].Units, made[0].Units) == ("CNTS", "BQML") and "ecat" not in str(plain_case["warnings"]), plain_case)
    ratio = [values(a).sum() / values(b).sum() for a, b in zip(made, plain)]
    check(np.allclose(ratio, calibration / 20 * lost / -np.expm1(-lost), rtol=1e-4), ratio)  # stored in 15 bits
    check(abs(float(made[0].DoseCalibrationFactor) / calibration - 1) < 1e-6 and "DCAL" in made[0].CorrectedImage, made[0])
    origin = "configuration 2.05 x header's quantification factor 1.98459e+07 / positron fraction 0.967"
    check(case["facts"]["calibration factor"] == origin and origin in str(made[0].ContributingEquipmentSequence), case["facts"])
    check("not the cross calibration factor, 0.96, and was not compared with a scanner" in case["warnings"], case["warnings"])
    check(made[0].SeriesInstanceUID != plain[0].SeriesInstanceUID, "one series for both units")


def test_calibration_of_objects(folder):
    """The positron fraction is that of the list mode's object; Dose Calibration Factor there, and corrections, are of images."""
    words, norm, tracer = events_at(np.random.default_rng(4), 500), mmr.Norm(np.random.default_rng(8)), pydicom.Dataset()
    tracer.RadionuclidePositronFraction, tracer.RadionuclideHalfLife = 0.891, 4057.7
    raw_recon(os.path.join(folder, "raw"), words, RadiopharmaceuticalInformationSequence=[tracer], DoseCalibrationFactor=7)
    mmr.write_norm(os.path.join(folder, "raw", "norm.dcm"), norm, mmr.norm_header() + FACTOR)
    _, case = calibrated(folder, "made", os.path.join(folder, "raw"))
    check(case["facts"]["calibration factor"] == "configuration 2.05 x header's quantification factor 1.98459e+07 / positron fraction 0.891",
          case["facts"])
    check("Not corrected for attenuation, hence not in Bq/ml." in case["warnings"], case["warnings"])


@pytest.mark.parametrize("said, norm_more, more", [
    ("has no scanner quantification", CROSS, BRANCHING),
    ("quantification factor of the normalisation is not a number", FACTOR.replace(b"1.98", b"-1.98") + CROSS, BRANCHING),
    ("quantification factor of the normalisation is not a number", FACTOR.replace(b"1.98", b"0 x"), BRANCHING),
    ("cross calibration factor of the normalisation", FACTOR + CROSS.replace(b"0.96", b"0"), BRANCHING),
    ("in that of the list mode", FACTOR, BRANCHING + FACTOR.replace(b"1.98", b"1.97")),
    ("Positron Fraction", FACTOR, b"")], ids=range(6))
def test_a_calibration_that_the_headers_do_not_give(folder, said, norm_more, more):
    """Counts, and the reason; nothing is refused that is reconstructed without the calibration."""
    header = extract(os.path.join(folder, "files"), events_at(np.random.default_rng(4), 500), mmr.Norm(np.random.default_rng(8)),
                     norm_more=norm_more, more=more)
    made, case = calibrated(folder, "made", header)
    check(made[0].Units == "CNTS" and "Not in Bq/ml: " in case["warnings"] and said in case["warnings"], case["warnings"])


def big_endian(path):
    h.run("dcmconv", "+tb", path, path + ".be")
    return path + ".be"


def test_hostile_objects_are_refused(folder):
    conf = small(folder)
    list_, norm_file, words, norm = raw(folder, 300)
    data, n = mmr.list_bytes(words), len(words)

    def bad_list(words_=None, header=None, data_=None, **kwargs):
        return [mmr.write_list(os.path.join(folder, "bad.dcm"), words if words_ is None else words_, header, data_,
                               **kwargs), norm_file]

    def bad_norm(header=None, data_=None, **kwargs):
        return [list_, mmr.write_norm(os.path.join(folder, "bad.dcm"), norm, header, data_, **kwargs)]

    second = mmr.write_list(os.path.join(folder, "second.dcm"), words, number=3)
    cases = (
        ([list_], "the normalisation (PET_NORM) of the acquisition is missing"),
        ([norm_file], "the list mode (PET_LISTMODE) of the acquisition is missing"),
        ([big_endian(list_), norm_file], "list.dcm.be: raw data in Explicit VR Big Endian"),
        ([list_, norm_file, second], "list.dcm and second.dcm both contain a list mode"),
        (lambda: bad_list(data_=data[:-4]), f"(7FE1,1010) has {4 * n - 4} bytes, its header requires {4 * n}"),
        (lambda: bad_list(data_=data[:-3]), f"has {4 * n - 2} bytes"),
        (lambda: bad_list(data_=data + b"\0\0\0\0"), f"has {4 * n + 4} bytes"),
        (lambda: bad_list(data_=b""), "the data are in the file with the ending .bf"),
        (lambda: bad_list(header=mmr.list_header(10**15)), "its header requires 4000000000000000"),
        (lambda: bad_list(header=mmr.list_header(n, numberoftoftimebins=13)), "number of TOF time bins := 13"),
        (lambda: bad_list(header=b"SV10" * 20), "neither (0029,1010) nor (0029,1110)"),
        (lambda: bad_list(where="none"), "neither (0029,1010) nor (0029,1110)"),
        (lambda: bad_list(header=b"\xff" * 70000), "the text header has 70000 bytes; allowed: 65536"),
        (lambda: bad_list(study="2.25.999"), "belong to different studies"),
        (lambda: bad_list(PatientID="other", PatientName="Other^Name"), "Patient ID (0010,0020)"),
        (lambda: bad_list(PatientPosition="HFX"), "the patient's position is \"HFX\""),
        (lambda: bad_list(ManufacturerModelName="Biograph_mCT")[::-1], "bad.dcm is not raw data of a Siemens mMR"),
        (lambda: bad_norm(header=mmr.norm_header(energywindowlowerlevelkev1=410)),
         "window of 430 to 610 keV, the normalisation of 410 to 610"),
        (lambda: [mmr.write_list(os.path.join(folder, "a.dcm"), words, DeviceSerialNumber="51001"),
                  mmr.write_norm(os.path.join(folder, "b.dcm"), norm, DeviceSerialNumber="51002")],
         "\"51001\", the normalisation of \"51002\""),
    )
    for files, part in cases:
        message = read(folder, *(files() if callable(files) else files), conf=conf, code=1)
        check(part in message, f"'{message}' does not contain '{part}'")
    check(len(read(folder, list_, norm_file, conf=conf)) == 3, "the good objects are read")


def test_other_raw_data_are_named(folder):
    list_, _, words, _ = raw(folder, 50)
    for change, part in ((dict(kind="PET_EM_SINO"), "compressed by the scanner; send the list mode"),
                         (dict(kind="PET_COUNTRATE"), "type PET_COUNTRATE"),
                         (dict(kind="PET_LISTMODE", ManufacturerModelName="Biograph128_mCT"),
                          "raw data of Biograph128_mCT, type PET_LISTMODE"),
                         (dict(kind="PET_LISTMODE", SOPClassUID="1.2.840.113619.4.30"), "GE raw data")):
        path = mmr.write(os.path.join(folder, "other.dcm"), header=mmr.list_header(len(words)),
                         data=mmr.list_bytes(words), **change)
        p = h.run(h.TOMONODE, "recon", "--device", "cpu", "-o", os.path.join(folder, "out"), path, code=4)
        check(part in p.stderr, p.stderr)
    check(os.path.exists(list_), "kept")


def test_the_histogram_is_exported_and_comes_back(folder):
    """`tomonode export` writes prompts and efficiencies as Interfile, which `tomonode import` takes: the same
    values."""
    conf = small(folder)
    list_, norm_file, words, norm = raw(folder, 500)
    planes, hs = (0, 31, 63), os.path.join(folder, "prompts.hs")
    h.run(h.TOMONODE, "export", "-c", conf, "-o", hs, list_, norm_file)
    h.run(h.TOMONODE, "import", hs, "--multiplicative", os.path.join(folder, "prompts-multiplicative.hs"), "--like",
          list_,
          "--set", "PatientPosition=HFS", "-o", os.path.join(folder, "objects"))
    wanted = read(folder, list_, norm_file, planes=planes, conf=conf)
    found = read(folder, *glob.glob(os.path.join(folder, "objects", "*.dcm")), planes=planes, conf=conf)
    check(np.array_equal(wanted[0], found[0]) and np.array_equal(wanted[1], found[1]),
          "other values after export and import")
    check(wanted[0].sum() > 0 and (wanted[1] == 0).any(), "nothing to compare")
    check("image duration (sec)[1] := 20" in h.read_file(hs), "the duration")


def test_sources_are_where_they_were(folder):
    """A point in each quadrant, away from the middle of the axis: the detectors' positions as STIR computes them from
    their numbers (x = R sin, y = -R cos), so that a sign of bins, views or rings
    shows as a point in another place; z of STIR points out of the gantry."""
    x = 334.7 * np.sin(2 * np.pi * np.arange(mmr.CRYSTALS) / mmr.CRYSTALS)
    y = -334.7 * np.cos(2 * np.pi * np.arange(mmr.CRYSTALS) / mmr.CRYSTALS)
    v, t = np.meshgrid(np.arange(mmr.VIEWS), np.arange(mmr.BINS) - mmr.BINS // 2, indexing="ij")
    c1, c2 = (v + (t >> 1)) % mmr.CRYSTALS, (v - ((t + 1) >> 1) + mmr.CRYSTALS // 2) % mmr.CRYSTALS
    along = np.hypot(x[c2] - x[c1], y[c2] - y[c1])
    words, ring = [mmr.time_mark(0)], 40
    points = ((60, 35), (-80, 25), (-50, -70), (45, -55))
    for px, py in points:
        distance = np.abs((x[c2] - x[c1]) * (y[c1] - py) - (x[c1] - px) * (y[c2] - y[c1])) / along
        hit = np.argwhere(distance < 1.5)
        words += [mmr.event(ring, int(view), int(bin_)) for view, bin_ in hit]
    norm = mmr.Norm(np.random.default_rng(1))
    for part in (norm.geometric, norm.interference, norm.efficiency, norm.axial):
        part[...] = 1
    files = (mmr.write_list(os.path.join(folder, "list.dcm"), words, PatientPosition="HFS"),
             mmr.write_norm(os.path.join(folder, "norm.dcm"), norm))
    series = pet_tools.reconstruct(os.path.join(folder, "out"), *files, protocol="quick", config=small(folder),
                                   settings=("matrix=80", "voxel=4", "slice_spacing=0", "fov_radius=150",
                                             "iterations=2", "subsets=21"))
    places, values = series.places(), series.values
    for px, py in points:
        # HFS: x to the patient's left, y to the back, z to the head
        near = np.linalg.norm(places[..., :2] - (px, py), axis=-1) < 15
        middle = (places[near] * values[near][:, None]).sum(0) / values[near].sum()
        check(np.abs(middle - (px, py, (31.5 - ring) * 4.0625)).max() < 1.5, f"the point at {px}, {py} is at {middle}")
        check(values[near].sum() > 0.15 * values.sum(),
              f"{values[near].sum() / values.sum()} of the counts are at {px}, {py}")


def check_series(objects):
    d = min(objects, key=lambda d: d.InstanceNumber)
    check({o.Units for o in objects} == {"CNTS"} and list(d.CorrectedImage) == ["NORM", "RADL"],
          f"{d.Units} {d.CorrectedImage}")
    check(d.DerivationDescription.startswith("PET reconstruction of 2 raw data objects with "), d.DerivationDescription)
    check("not corrected for randoms, scatter, attenuation and dead time" in d.DerivationDescription,
          d.DerivationDescription)
    check("The first ring of Siemens is assumed to be the one furthest from the bed: " in d.DerivationDescription,
          d.DerivationDescription)
    check(d.PatientID == "MMR1" and d.StudyInstanceUID == "2.25.4711", f"{d.PatientID} {d.StudyInstanceUID}")
    check({s.ReferencedSOPInstanceUID for s in d.SourceInstanceSequence} == {"2.25.4711.1", "2.25.4711.2"},
          d.SourceInstanceSequence)
    return d


def both(folder, things):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, quiet_time=1)
    things += [n, pacs]
    n.more_protocols = (', { name = "quick-pet"; kind = "pet"; algorithm = "osem"; iterations = 1; subsets = 63;'
                        ' matrix = 16; slice_spacing = 16.0; }')
    n.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "quick-pet" ]; destinations = [ "pacs" ]; }'
    n.write_conf(SCANNER)
    return n, pacs


def test_the_node_makes_one_case(folder, things):
    """The norm alone waits and is held with what is missing; the list mode, from another series, continues it; list
    mode whose data were left in the .bf file is held with that reason."""
    n, pacs = both(folder, things)
    list_, norm_file, words, norm = raw(folder, 3000, series="2.25.4711.9")
    list_ = mmr.write_list(list_, words, series="2.25.4711.8", FrameOfReferenceUID="2.25.4711.7")
    empty = (mmr.write_list(os.path.join(folder, "no-data.dcm"), words, data=b"", study="2.25.4712"),
             mmr.write_norm(os.path.join(folder, "norm-2.dcm"), norm, study="2.25.4712"))
    sino = mmr.write(os.path.join(folder, "sino.dcm"), "PET_EM_SINO", mmr.list_header(1), b"12", number=5)
    pacs.start()
    n.start()
    send(n, norm_file)
    job = n.wait_states("held")[0]
    check("1 of 2 instances" in job["reason"] and "the list mode (PET_LISTMODE) is missing" in job["reason"],
          job["reason"])
    send(n, list_)
    n.wait_states("delivered", seconds=120)
    send(n, *empty)
    job = n.wait_states("delivered", "held")[1]
    check("the data are in the file with the ending .bf" in job["reason"], job["reason"])
    send(n, sino)
    unassigned = wait_for("the sinogram is looked at", lambda: n.list()["unassigned"])
    check(unassigned[0]["classification"] == "refused" and "compressed by the scanner" in unassigned[0]["reason"],
          unassigned)
    received = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, pacs.files())}
    pet_tools.check_same(received, pet_tools.offline(n, os.path.join(folder, "offline"), (list_, norm_file)))
    d = check_series(list(received.values()))
    check(not pet_tools.validator(pacs.files()[0]), pet_tools.validator(pacs.files()[0]))
    check(d.FrameOfReferenceUID == "2.25.4711.7", d.FrameOfReferenceUID)
    check(n.echo(), "the node does not answer any more")


def send(node, *files):
    # storescu does not know the class
    h.run("dcmsend", "-nuc", "-aet", "SCANNER", "-aec", "TOMONODE", "127.0.0.1", node.port, *files)
