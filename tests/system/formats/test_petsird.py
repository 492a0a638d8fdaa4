# SPDX-License-Identifier: Apache-2.0
"""PETSIRD files become sinogram objects: files of petsird 0.9 to 0.12, and files written here by their schemas. Every
bin is computed a second time from the positions of the detectors; a point source is reconstructed where it is; what is
not supported is refused by name."""
import glob
import json
import math
import os
import shutil

import numpy as np
import pydicom

from tools import dbt_tools as tools
from tools import node_harness as h
from tools import pet_tools
from tools import petsird_tools as p
from tools.edits import new_object

BASICS = ("--set", "PatientPosition=HFS", "--set", "Radionuclide=F18")


def imported(out, path, *options, ok=(0,)):
    done = tools.run("import", "--json", "--petsird", path, *BASICS, *options, "-o", out, ok=ok)
    return json.loads(done.stdout)


def arrays(out):
    """{role: float32 values}"""
    found = {}
    for path in glob.glob(os.path.join(out, "*.dcm")):
        block = pydicom.dcmread(path).private_block(0x0071, "TOMONODE SINOGRAM 1")
        found[block[3].value] = np.frombuffer(block[0x10].value[:block[0x13].value], "<f4")
    return found


def bin_of(report, header):
    """(a, b) -> (first ring, second ring, angle, radial, exchanged), by STIR's numbering of crystals around the ring:
    second end v + floor(t/2), first end v - floor((t+1)/2) + n/2. The pair is found by trying all views."""
    where, n, rings = p.positions(header), report["detectors"], report["rings"]
    start = math.radians(report["angle_offset"]) - math.pi / 2
    crystal = np.rint((np.arctan2(where[:, 1], where[:, 0]) - start) * n / (2 * math.pi)).astype(int) % n
    # stored: ring 0 is furthest from the bed
    ring = np.rint((rings - 1) / 2 - (where[:, 2] - where[:, 2].mean()) / report["ring_spacing"]).astype(int)
    table = {}
    for v in range(n // 2):
        for t in range(-(report["radial"] // 2), report["radial"] - report["radial"] // 2):
            table[(v - (t + 1) // 2 + n // 2) % n, (v + t // 2) % n] = (v, t + report["radial"] // 2)

    def of(a, b):
        for first, second, exchanged in ((a, b, False), (b, a, True)):
            if (crystal[first], crystal[second]) in table:
                return (ring[first], ring[second], *table[crystal[first], crystal[second]], exchanged)
        return None
    return of


def planes_of(rings, span):
    """{(first ring, second ring): plane} for all differences that the span fills, segments 0, -1, +1 ..."""
    table, at, last = {}, 0, span // 2
    groups = [(-last, last)]
    while last + span <= rings - 1:
        groups += [(-last - span, -last - 1), (last + 1, last + span)]
        last += span
    for low, high in groups:
        sums = sorted({a + b for a in range(rings) for b in range(rings) if low <= a - b <= high})
        for a in range(rings):
            for b in range(rings):
                if low <= a - b <= high:
                    table[a, b] = at + sums.index(a + b)
        at += len(sums)
    return table, at


def histogram(report, header, events, span):
    """[TOF bin, plane, angle, radial], and how many events have no bin."""
    of, (planes, n_planes) = bin_of(report, header), planes_of(report["rings"], span)
    energies, tof, outside = p.energies_of(header), max(report["tof_bins"], 1), 0
    out = np.zeros((tof, n_planes, report["angles"], report["radial"]), "f4")
    for a, b, k in events:
        found = of(a // energies, b // energies)
        if found is None or found[:2] not in planes:
            outside += 1
            continue
        if report["tof_bins"]:
            k = tof - 1 - k if found[4] else k  # stored: towards the second end
        else:
            k = 0
        out[k, planes[found[:2]], found[2], found[3]] += 1
    return out, outside


def check_counts(name, out, answer, header, blocks, span, failures):
    report = answer["petsird"]
    prompts, delayeds = p.events_of(blocks), p.events_of(blocks, "delayedEvents")
    expected, outside = histogram(report, header, prompts, span)
    tools.check(report["prompts"] == len(prompts) and report["delayeds"] == len(delayeds), f"{name}: counts {report}",
                failures)
    tools.check(report["outside"] == outside and report["in_bins"] == len(prompts) - outside,
                f"{name}: outside {outside}: {report}", failures)
    found = arrays(out)["EMISSION"]
    same = found.size == expected.size and np.array_equal(found, expected.ravel())
    tools.check(same, f"{name}: {found.size} and {expected.size} bins, sums {found.sum()} and {expected.sum()}",
                failures)
    expected = histogram(report, header, delayeds, span)[0].sum(axis=0)
    found = arrays(out)["DELAYEDS"]
    tools.check(expected.any() and np.array_equal(found, expected.ravel()),
                f"{name}: delayeds: sums {found.sum()} and {expected.sum()}", failures)


def transforms(header):
    """Of the detecting elements of its modules."""
    module = header["scanner"]["scannerGeometry"]["replicatedModules"][0]
    return module["object"]["detectingElements"]["transforms"]


def bin_efficiencies(header, a, b):
    """Sum over the energies of two detectors, without calibration."""
    e, energies = header["scanner"]["detectionEfficiencies"], p.energies_of(header)
    elements = len(transforms(header))
    a, b = max(a, b), min(a, b)
    group = e["modulePairSGIDLUT"][0][0][a // elements][b // elements]
    if group < 0:
        return 0.0
    values, bins = e["modulePairEfficienciesVectors"][0][0][group]["values"], e["detectionBinEfficiencies"][0]
    return sum(bins[a * energies + i] * bins[b * energies + j] * values[a % elements * energies
                                                                        + i][b % elements * energies + j]
               for i in range(energies) for j in range(energies))


def test_files_of_petsird(folder, failures):
    """Files that petsird wrote: prompts, delayeds, every bin, every factor."""
    for version in p.VERSIONS:
        path, _, header, blocks = p.stored("ring", version)
        out = os.path.join(folder, f"ring-{version}")
        answer = imported(out, path)
        check_counts(version, out, answer, header, blocks, 1, failures)
        report = answer["petsird"]
        tools.check((report["prompts"], report["delayeds"], report["duration"]) == (123, 15, 3.0),
                    f"{version}: {report}", failures)
        tools.check(report["calibration"] == 2.5 and report["tof_bins"] == 5 and report["scanner"] == "TINY ring",
                    f"{version}: {report}", failures)
        ds = pydicom.dcmread(os.path.join(out, "emission.dcm"))
        tools.check((ds.AcquisitionDate, ds.AcquisitionTime, int(ds.ActualFrameDuration)) == ("20260601", "101500",
                                                                                              3000),
                    f"{version}: {ds.AcquisitionDate} {ds.AcquisitionTime} {ds.ActualFrameDuration}", failures)
        of, (planes, n) = bin_of(report, header), planes_of(3, 1)
        expected = np.ones((n, report["angles"], report["radial"]))
        detectors = len(p.positions(header))
        for a in range(detectors):
            for b in range(a):
                found = of(a, b)
                if found:
                    expected[planes[found[:2]], found[2], found[3]] = 1 / bin_efficiencies(header, a, b)
        factors = arrays(out)["NORMALISATION"]
        error = np.abs(factors / expected.ravel() - 1).max() if factors.size == expected.size else math.inf
        tools.check(error < 1e-6, f"{version}: factors differ by {error}", failures)
        tools.check("delayed coincidences are not used" not in answer["warnings"]
                    and "calibration factor 2.5" in answer["warnings"],
                    f"{version}: {answer['warnings']}", failures)


def test_every_version_of_the_schema(folder, failures):
    """Files written here with the schemas of all versions: TOF or not, gaps, segments of three differences, two
    energies."""
    for version in p.VERSIONS if h.TIER == 2 else (p.VERSIONS[0], p.VERSIONS[-1]):
        writer = p.Writer(p.stored("ring", version)[1])
        for name, kw, options, span in (("tof", {"tof": np.linspace(-90, 90, 10)}, (), 1),
                                        ("even", {"tof": np.linspace(-80, 80, 5), "energies": 3}, ("--radial", "17"),
                                         1),
                                        ("gaps", {"skip": (3, 11, 19, 27)}, ("--span", "3"), 3)):
            header = p.ring_header(**kw)
            rnd = np.random.default_rng(5)
            bins = len(p.positions(header)) * p.energies_of(header)
            tof = len(header["scanner"]["tofBinEdges"][0][0]["edges"]) - 1
            some = [tuple(sorted(rnd.integers(0, bins, 2).tolist(), reverse=True)) + (int(rnd.integers(0, tof)),)
                    for _ in range(3000)]
            blocks = [p.event_block(100 * i, 100 * i + 100, some[600 * i:600 * i + 600], some[7 * i:7 * i + 7])
                      for i in range(5)]
            path, out = os.path.join(folder, "made.petsird"), os.path.join(folder, f"{name}-{version}")
            writer.file(path, header, blocks, part=2)
            answer = imported(out, path, *options)
            check_counts(f"{version} {name}", out, answer, header, blocks, span, failures)
            tools.check(answer["petsird"]["missing"] == 4 * len(kw.get("skip", ())), f"{name}: {answer}", failures)
            roles = set(arrays(out))
            expected = {"EMISSION", "DELAYEDS"} | ({"NORMALISATION", "MULTIPLICATIVE"} if name == "gaps" else set())
            tools.check(roles == expected, f"{name}: {roles}", failures)
            if name == "gaps":
                live, inverse = arrays(out)["MULTIPLICATIVE"], arrays(out)["NORMALISATION"]
                counts = arrays(out)["EMISSION"]
                tools.check(set(np.unique(live)) == {0, 1} and not counts[live == 0].any(), "counts in gaps", failures)
                tools.check(set(np.unique(np.rint(1 / inverse)).astype(int)) == {1, 2}, f"pairs {np.unique(inverse)}",
                            failures)


def check_tof(report, counts, point, width, failures):
    """The mean position along the rays of each angle is that of the source: towards (-sin phi, cos phi)."""
    counts = counts.reshape(report["tof_bins"], report["planes"], report["angles"], -1).sum(axis=(1, 3))
    along = ((report["tof_bins"] - 1) / 2 - np.arange(report["tof_bins"])) * width
    phi = np.radians(report["angle_offset"]) + np.arange(report["angles"]) * math.pi / report["angles"]
    expected = -point[0] * np.sin(phi) + point[1] * np.cos(phi)
    found = (counts * along[:, None]).sum(axis=0) / counts.sum(axis=0)
    error = np.abs(found - expected).max()
    # 190 events an angle of sd 17 mm, and half a detector
    tools.check(error < 8, f"TOF: {error} mm away from the source", failures)


def test_patient_and_tracer_of_the_file(folder, failures):
    """Patient and radiopharmaceutical of the file are used without --like; --set replaces them."""
    header = p.ring_header()
    code = {"codeValue": "C-131A3", "codingSchemeDesignator": "SRT"}
    header["exam"].update({"patient": {"patientID": "SECRET", "patientsWeight": 71.5, "patientsSize": 1.75},
                           "radiopharmaceuticals": [
{"radionuclideTotalDose": 185.5, "radiopharmaceuticalStartDateTime": (p.START - 3600) * 10**9,
 "radionuclideCodeSequence": code}, {}]})
    path, out = os.path.join(folder, "exam.petsird"), os.path.join(folder, "exam")
    for version, known in (("0.10.0", True), ("0.12.0", True), ("0.9.1", False)):
        p.Writer(p.stored("ring", version)[1]).file(path, header, [p.event_block(2500, 3500, [(40, 3, 0), (80, 7, 0)])])
        tools.run("import", "--petsird", path, "-o", out)
        ds = pydicom.dcmread(os.path.join(out, "emission.dcm"))
        tools.check((ds.AcquisitionDate, ds.AcquisitionTime, int(ds.ActualFrameDuration)) == ("20260601", "101502",
                                                                                              1000),
                    f"{version}: {ds.AcquisitionTime} {ds.ActualFrameDuration}", failures)
        tools.check("SECRET" not in str(ds), f"{version}: the patient's ID is copied", failures)
        drug = ds.get("RadiopharmaceuticalInformationSequence", [None])[0]
        tools.check((drug is not None and "PatientWeight" in ds) == known, f"{version}: {ds}", failures)
        if known and drug:
            tools.check((float(ds.PatientWeight), float(ds.PatientSize),
                         float(drug.RadionuclideTotalDose)) == (71.5, 1.75, 185.5e6), str(ds), failures)
            tools.check(drug.RadiopharmaceuticalStartDateTime == "20260601091500"
                        and drug.RadionuclideCodeSequence[0].CodeValue == "35337001",
                        f"{version}: {drug}", failures)
            origins = ds[0x71, 0x1027].value
            tools.check("\ndose: PETSIRD file: radionuclideTotalDose #" in origins
                        and "\nduration: PETSIRD file: time blocks of its events #" in origins
                        and "\nweight: PETSIRD file: patientsWeight #" in origins, origins, failures)
    p.Writer(p.stored("ring", "0.12.0")[1]).file(path, header, [p.event_block(0, 1000, [(40, 3, 0), (80, 7, 0)])])
    # recon then refuses the file, which has no position
    for axes, says in (((), "are x,y,z of the file; --axes X,Y,Z says otherwise."),
                       (("--axes", "-x,y,-z"), "are -x,y,-z of the file.")):
        for said in (tools.run("import", "--petsird", path, *axes, "-o", out).stdout,
                     tools.run("recon", path, *axes, "-o", out, ok=(4,)).stderr):
            tools.check("for an observer at the bed) " + says in said, said, failures)
    tools.run("import", "--petsird", path, "--set", "Radionuclide=F18", "--set", "PatientWeight=50", "-o", out)
    ds = pydicom.dcmread(os.path.join(out, "emission.dcm"))
    codes = ds.RadiopharmaceuticalInformationSequence[0].RadionuclideCodeSequence
    tools.check(float(ds.PatientWeight) == 50 and [c.CodeValue for c in codes] == ["77004003"]
                and "\nweight: set: PatientWeight #" in ds[0x71, 0x1027].value, f"--set: {ds}", failures)


def test_examination_of_the_file(folder, failures):
    """Position, study and frame of reference are those of the file; what contradicts them is refused."""
    path, out, like = (os.path.join(folder, x) for x in ("place.petsird", "place", "like.dcm"))
    header, ct = p.ring_header(), new_object("1.2.840.10008.5.1.4.1.1.2", "1.2.3.4")
    ct.Modality, ct.PatientID, ct.TimezoneOffsetFromUTC = "CT", "P-7", "+0200"
    ct.AcquisitionDate, ct.AcquisitionTime = "20260601", "073000"
    cases = ((("40199007", "102541007"), "FFS", ("2.25.777", "2.25.888"), "FFS", (), None),
             (("F-10310", "F-10470"), "HFP", (None, "2.25.888"), None, ("PatientPosition=HFP",), None),
             (("102536004", "102540008"), "HFDL", ("2.25.777", None), None, ("PatientPosition=HFS",),
              "PatientPosition=HFS, but the patient's position in the file (patientOrientation) is HFDL"),
             (("40199007", "102541007"), None, (None, None), "HFS", (),
              "the file's position is FFS (patientOrientation), that of --like HFS"),
             (("40199007", "102541007"), "FFS", ("2.25.7", "2.25.888"), None, ("StudyInstanceUID=2.25.5",), None),
             (("40199007", "102541007"), None, ("2.25.7", None), None, (),
              "the file's StudyInstanceUID is 2.25.777, that of --like 2.25.7"),
             (("40199007", "102541007"), None, (None, "2.25.8"), None, (),
              "the file's FrameOfReferenceUID is 2.25.888, that of --like 2.25.8"),
             (("1", ""), None, (None, None), None, (), None))
    for codes, position, uids, of_ct, given, says in cases:
        place = [{"codeValue": c, "codingSchemeDesignator": "SCT"} for c in codes]
        header["exam"].update({"studyInstanceUID": "2.25.777", "frameOfReferenceUID": "2.25.888", "patientOrientation":
                               {"patientOrientationModifierCodeSequence": place[0],
                                "patientGantryRelationshipCodeSequence": place[1]}})
        p.Writer(p.stored("ring", "0.12.0")[1]).file(path, header, [p.event_block(0, 1000, [(40, 3, 0), (80, 7, 0)])])
        for keyword, value in (("StudyInstanceUID", uids[0] or "2.25.777"), ("FrameOfReferenceUID", uids[1]),
                               ("PatientPosition", of_ct)):
            setattr(ct, keyword, value or "")
        ct.save_as(like, write_like_original=False)
        said = tools.run("import", "--petsird", path, "--like", like, *(x for g in given for x in ("--set", g)),
                         "-o", out, ok=(4,) if says else (0,))
        tools.check(not says or says in said.stderr, f"{codes}: {said.stderr}", failures)
        if not says:
            ds = pydicom.dcmread(os.path.join(out, "emission.dcm"))
            study = "2.25.5" if given and "Study" in given[0] else "2.25.777"
            tools.check((ds.get("PatientPosition") or None, ds.StudyInstanceUID, ds.FrameOfReferenceUID, ds.PatientID)
                        == (position, study, "2.25.888", "P-7"), f"{codes}: {ds}", failures)
            tools.check((ds.AcquisitionTime, ds.TimezoneOffsetFromUTC) == ("121500", "+0200"),
                        f"start: {ds.AcquisitionTime}", failures)  # of the file, on the clock of the CT
            shutil.rmtree(out)


def test_a_point_source_is_where_it_is(folder, failures):
    """A point source off the centre, also with axes exchanged: the image has it where it is, and so do the TOF bins of
    each angle."""
    header = p.ring_header(modules=64, rings=8, radius=120.0, spacing=6.0, tof=np.linspace(-140, 140, 15), fwhm=40.0)
    writer, point = p.Writer(p.stored("ring", "0.12.0")[1]), (35.0, -20.0, 6.0)
    path = os.path.join(folder, "point.petsird")
    events = p.point_source(header, point, 6000, fwhm=40.0)
    writer.file(path, header, [p.event_block(0, 60000, events)])
    ways = (("TOF", (), point), ("axes", ("--no-tof", "--axes", "-y,x,z"), (-point[1], point[0], point[2])),
            ("no TOF", ("--no-tof",), point))
    for name, options, expected in ways if h.TIER == 2 else ways[:2]:
        out = os.path.join(folder, name.replace(" ", "-"))
        report = imported(out, path, *options)["petsird"]
        if name == "TOF":
            check_tof(report, arrays(out)["EMISSION"], point, 20.0, failures)
        series = pet_tools.reconstruct(out + "-image", out, settings=("iterations=8", "matrix=48", "fov_radius=90"))
        brightest = np.unravel_index(int(np.argmax(series.values)), series.values.shape)
        found = series.places()[brightest]
        # voxels of 3.75 mm
        tools.check(np.abs(found - expected).max() < 5, f"{name}: {found} instead of {expected}", failures)


def test_simulated_files(folder, failures):
    """`simulate pet --petsird`: what it wrote is read here, by petsird itself if it is installed, and imported as the
    same counts."""
    ways = (("TOF", ("--tof", "5,600,400", "--randoms", "0.3")), ("plain", ("--randoms", "0.2")))
    for name, options in ways if h.TIER == 2 else ways[:1]:
        out, back = os.path.join(folder, f"simulated-{name}"), os.path.join(folder, f"simulated-{name}-back")
        tools.run("simulate", "pet", "--scanner", "small", "--phantom", "cylinder", "--radius", "40", "--length", "40",
                  "--counts", "30000",
                  "--petsird", *options, "-o", out)
        path = os.path.join(out, "scan.petsird")
        reader = p.Reader(h.read_file(path, "rb"))
        header, blocks = reader.file()
        counts = arrays(out)["EMISSION"]
        prompts, delayeds = p.events_of(blocks), p.events_of(blocks, "delayedEvents")
        randoms = arrays(out)["ADDITIVE"].sum()
        tools.check(reader.schema.text == p.stored("ring", "0.12.0")[1], "the schema is not that of petsird 0.12",
                    failures)
        tools.check(len(prompts) == counts.sum(), f"{name}: {len(prompts)} prompts of {counts.sum()} counts", failures)
        tools.check(abs(len(delayeds) - randoms) < 5 * math.sqrt(randoms),
                    f"{name}: {len(delayeds)} delayeds, {randoms} expected", failures)
        tools.check(all(a >= b for a, b, _ in prompts + delayeds), f"{name}: events are not ordered", failures)
        tools.check(len(blocks) == 600 and min(len(p.events_of([b])) for b in blocks) > 15, f"{name}: uneven blocks",
                    failures)
        report = imported(back, path, "--radial", "65")["petsird"]
        tools.check(np.array_equal(arrays(back)["EMISSION"], counts),
                    f"{name}: the counts are not those of the simulation", failures)
        tools.check(report["outside"] == 0 and not report["normalisation"] and report["duration"] == 600,
                    f"{name}: {report}", failures)
        wider = os.path.join(folder, f"simulated-{name}-wider")
        imported(wider, path, "--radial", "69")
        live = arrays(wider)["MULTIPLICATIVE"].reshape(-1, 69)
        tools.check(not live[:, :2].any() and not live[:, -2:].any() and live[:, 4:-4].all(),
                    f"{name}: bins that were not measured", failures)
        by_petsird(path, header, prompts, delayeds, failures)
    done = tools.run("simulate", "pet", "--scanner", "small", "--petsird", "--noise-free", "-o",
                     os.path.join(folder, "free"), ok=(2,))
    tools.check("list mode without noise" in done.stderr, done.stderr, failures)


def by_petsird(path, header, prompts, delayeds, failures):
    """The same by the package petsird 0.12, where it is installed."""
    try:
        import petsird
        from petsird.helpers import get_num_det_els
    except ImportError:
        return
    with petsird.BinaryPETSIRDReader(path) as reader:
        scanner = reader.read_header().scanner
        tools.check(get_num_det_els(scanner, 0) == len(p.positions(header)), "petsird counts other detectors", failures)
        found = ([], [])
        for block in reader.read_time_blocks():
            for to, lists in zip(found, (block.value.prompt_events, block.value.delayed_events)):
                to += [(*(int(x) for x in e.detection_bins), int(e.tof_idx)) for e in lists[0][0]]
    tools.check(found == (prompts, delayeds), "petsird reads other events", failures)


def test_further_roles(folder, failures):
    """Interfile data beside list mode are refused with a way; this way gives the same counts with the further role."""
    path, out, again = os.path.join(folder, "roles.petsird"), os.path.join(folder,
                                                                           "roles"), os.path.join(folder, "roles-again")
    header, hs = p.ring_header(skip=(3,)), os.path.join(folder, "roles.hs")
    p.Writer(p.stored("ring", "0.12.0")[1]).file(path, header,
                                                 [p.event_block(0, 1000, [(40, 8, 0), (80, 17, 0)], [(40, 9, 0)])])
    done = tools.run("import", "--petsird", path, "--additive", "b.hs", "-o", out, ok=(2,))
    tools.check("write all roles with `tomonode export -o FILE.hs DIR`" in done.stderr, done.stderr, failures)
    imported(out, path)
    tools.run("export", "-o", hs, out)
    roles = {name.lower(): os.path.join(folder, f"roles-{name.lower()}.hs") for name in arrays(out)
             if name != "EMISSION"}
    text = h.read_file(hs)
    roles["additive"] = os.path.join(folder, "b.hs")
    h.write_file(roles["additive"], text.replace("roles.s", "b.s"))
    np.full(arrays(out)["EMISSION"].size, 0.25, "<f4").tofile(os.path.join(folder, "b.s"))
    tools.run("import", hs, *(x for name, file in roles.items() for x in ("--" + name, file)), "--like",
              os.path.join(out, "emission.dcm"), "-o", again)
    before, after = arrays(out), arrays(again)
    tools.check(sorted(after) == sorted([*before, "ADDITIVE"]) and "DELAYEDS" in before and len(before) > 2,
                f"{sorted(before)}, {sorted(after)}", failures)
    tools.check(all(np.array_equal(before[k], after[k]) for k in before),
                "other values than in the list mode's objects", failures)


def test_bad_files_are_refused(folder, failures):
    writer = p.Writer(p.stored("ring", "0.12.0")[1])
    path, out = os.path.join(folder, "bad.petsird"), os.path.join(folder, "bad")
    events = [(40, 3, 0), (80, 7, 0)]
    block = p.event_block(0, 1000, events)
    moved = ("BedMovementTimeBlock", {"timeInterval": {"start": 0, "stop": 1}, "transform": p.transform(np.eye(3, 4))})
    uneven = p.ring_header()
    transforms(uneven)[1]["matrix"][2, 3] += 2
    layers = p.ring_header()
    transforms(layers)[1]["matrix"][0, 3] += 12
    cases = ((layers, [block], (), 4, "number 0 is at a radius of"),
             (uneven, [block], ("--tolerance", "0.2"), 4, "not at equal distances"),
             (p.ring_header(tof=(-90, -20, 20, 90)), [block], (), 4, "TOF bins are not equidistant about 0: edge 1"),
             (p.ring_header(), [block, moved, block], (), 4, "the bed moves 1 times"),
             (p.ring_header(), [], (), 4, "0 prompts"),
             (p.ring_header(), [block], ("--axes", "x,x,z"), 2, "axes x,x,z"),
             (p.ring_header(), [block], ("--axes", "y,z,x"), 4, "one cylinder"),
             (p.ring_header(), [block], ("--span", "4"), 2, "span 4"),
             (p.ring_header(), [block], ("--radial", "99"), 2, "radial bins"),
             (p.ring_header(), [p.event_block(0, 1, [(999, 3, 0)])], (), 4, "detection bin 999; module type 0 has 128"))
    for header, blocks, options, code, says in cases:
        writer.file(path, header, blocks)
        done = tools.run("import", "--petsird", path, *options, "-o", out, ok=(code,))
        tools.check(says in done.stderr, f"{says}: {done.stderr}", failures)
    text = writer.schema.text.replace('"tofBinEdges"', '"timeBinEdges"')
    p.Writer(text).file(path, p.ring_header(), [block])
    done = tools.run("import", "--petsird", path, "-o", out, ok=(4,))
    tools.check('ScannerInformation has no field "tofBinEdges"' in done.stderr, done.stderr, failures)
    # a movement before the first event is where the bed is; a row of lists for a type that does not exist; alive times;
    # an alignment
    dead = ("DeadTimeTimeBlock", {"timeInterval": {"start": 0, "stop": 1}, "aliveTimeFractions": {}})
    singles = ("SinglesHistogramTimeBlock", {"timeInterval": {"start": 0, "stop": 1},
                                             "singlesPerSinglesUnitHistogram": [[5]],
                                             "singlesPerDetectionBinHistogram": []})
    row = p.event_block(1000, 2000, events)
    row[1]["promptEvents"].append([[{"detectionBins": (900, 3), "tofIdx": 7}], []])
    header = p.ring_header()
    header["scanner"]["gantryAlignment"] = p.transform(np.eye(3, 4))
    header["exam"]["radiopharmaceuticals"] = [{}, {}]
    writer.file(path, header, [moved, block, row, dead, singles])
    answer = imported(out + "-warned", path)
    tools.check(answer["petsird"]["surplus"] == 1 and answer["petsird"]["prompts"] == 4, str(answer), failures)
    for says in ("1 events of pairs of module types that do not exist", "1 blocks of alive time",
                 "1 blocks of histograms of singles", "2 radiopharmaceuticals", "alignment of the gantry"):
        tools.check(says in answer["warnings"], f"{says}: {answer['warnings']}", failures)
    first, named = (pydicom.dcmread(os.path.join(out + name, "emission.dcm")).SOPInstanceUID for name, words in
                    (("-option", ("--petsird", path)), ("-argument", (path,)))
                    if tools.run("import", *words, *BASICS, "-o", out + name))
    tools.check(first == named, "the file alone makes other objects", failures)
    for options, says in (((path, "--petsird", path), "both FILE.hs and --petsird"),
                          ((), "FILE.hs or --petsird FILE is missing"),
                          (("--petsird", path, "--additive", path), "of the role ADDITIVE")):
        done = tools.run("import", *options, "-o", out, ok=(2,))
        tools.check(says in done.stderr, f"{says}: {done.stderr}", failures)
    tools.check(not os.path.exists(out), "something is left of what was refused", failures)
    done = tools.run("import", "--petsird", path + "-none", "-o", out, ok=(8,))
    tools.check("cannot open" in done.stderr, done.stderr, failures)
