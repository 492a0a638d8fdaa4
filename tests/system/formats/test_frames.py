# SPDX-License-Identifier: Apache-2.0
"""Time frames of sinogram objects, and of list mode of a Siemens mMR (tools/mmr_tools.py): each frame has numpy's
counts and the image of a list with only these events; together they have every prompt; the dynamic series has its
images in the order, and with the times, of the standard; a frame without counts is zero; tables that cannot be are
refused. Through the node: test_gates.py."""
import glob
import hashlib
import json
import os

import numpy as np
import pydicom

from tools import mmr_tools as mmr
from tools import node_harness as h
from tools import pet_tools as pet
from tools import petsird_tools
from tools.edits import edited
from tools.mmr_recon import QUICK, conf_of, conforms, counted, events_at, objects_in, prompts, raw, recon
from tools.node_harness import check

h.need(h.TOMONODE, "dciodvfy")

START = 777123  # ms, of the first time mark
# ms, prompts
EVENTS = ((0, 1500), (1999, 400), (2000, 700), (2001, 300), (4999, 500), (5000, 900), (7999, 100), (8000, 2500),
          (19999, 650))
NORM = mmr.Norm(np.random.default_rng(8))
TABLE, FRAMES = "2,3,(3),12", ((0, 2000), (2000, 5000), (8000, 20000))


def dynamic_list(seed=3, before=20):
    """Words, and the events of each time: `before` prompts before the first time mark have time 0."""
    rng = np.random.default_rng(seed)
    first = events_at(rng, before)
    words, of_time = list(first), {0: list(first)}
    last = None
    for ms, n in EVENTS:
        if last is not None and ms > last + 1:
            words.append(mmr.time_mark(START + last + 1))
        words.append(mmr.time_mark(START + ms))
        events = events_at(rng, n)
        of_time.setdefault(ms, []).extend(events)
        words += events
        last = ms
    return words, of_time


def make_dynamic(folder):
    """The series of TABLE, of a scan that begins before midnight."""
    times = {"AcquisitionTime": "235955.25", "AcquisitionDateTime": "20170327235955.25"}
    report = recon(folder, "out", raw(os.path.join(folder, "in"), dynamic_list()[0], NORM, **times), "--frames",
                   TABLE)[1]
    with open(os.path.join(folder, "report"), "w", encoding="utf-8") as f:
        json.dump(report, f)


def dynamic():
    """Its objects, and what is said."""
    made = h.kept("frames", make_dynamic)
    return objects_in(os.path.join(made, "out")), json.loads(h.read_file(os.path.join(made, "report")))


def test_frames_are_those_of_their_events(folder):
    of_time, norm = dynamic_list()[1], NORM
    series, report = dynamic()
    of_frame = [[e for ms, events in of_time.items() if start <= ms < stop for e in events] for start, stop in FRAMES]
    wanted = [counted(norm, events) for events in of_frame]
    check([f["counts"] for f in report["frames"]] == wanted, f"{report['frames']}, numpy: {wanted}")
    check([(f["start"], f["duration"]) for f in report["frames"]] == [(0, 2), (2, 3), (8, 12)], report["frames"])
    gap = sum(len(prompts(events)) for ms, events in of_time.items() if 5000 <= ms < 8000)
    check(gap == 1000 and f"{gap} prompts are in no time frame" in report["warnings"], report["warnings"])
    n = len(series) // 3
    for k in range(3) if h.TIER == 2 else (1,):
        events = of_frame[k]
        alone, _ = recon(folder, f"alone-{k}", raw(os.path.join(folder, f"in-{k}"), [mmr.time_mark(5), *events], norm))
        check(len(alone) == n and alone[0].SeriesType == ["STATIC", "IMAGE"] and "NumberOfTimeSlices" not in alone[0],
              "a static series")
        for i, d in enumerate(alone):
            same = series[k * n + i]
            check(np.array_equal(d.pixel_array, same.pixel_array) and d.RescaleSlope == same.RescaleSlope
                  and d.pixel_array.any(),
                  f"frame {k + 1}, slice {i + 1}: another image than that of its events alone")
            check(d.ImagePositionPatient == same.ImagePositionPatient,
                  f"frame {k + 1}, slice {i + 1}: another position")


def test_the_series_is_in_the_order_of_the_standard(folder):
    objects = dynamic()[0]
    n = int(objects[0].NumberOfSlices)
    check(len(objects) == 3 * n and len({d.SOPInstanceUID for d in objects}) == 3 * n, "the number of objects")
    check(len({d.SeriesInstanceUID for d in objects}) == 1, "one series")
    starts = (("20170327", "235955.25"), ("20170327", "235957.250000"), ("20170328", "000003.250000"))
    for i, d in enumerate(objects):
        frame, slice_ = divmod(i, n)
        start, stop = FRAMES[frame]
        check(list(d.SeriesType) == ["DYNAMIC", "IMAGE"] and int(d.NumberOfTimeSlices) == 3
              and int(d.NumberOfSlices) == n, d.SeriesType)
        check(int(d.ImageIndex) == frame * n + slice_ + 1 == int(d.InstanceNumber),
              f"{d.ImageIndex}: time slice by time slice")
        check(d.ImagePositionPatient == objects[slice_].ImagePositionPatient, "the same positions in each frame")
        check(int(d.ActualFrameDuration) == stop - start, f"{d.ActualFrameDuration}")
        # no half-life: the middle
        check(abs(float(d.FrameReferenceTime) - (start + stop) / 2) < 1e-6, f"{d.FrameReferenceTime}")
        check((d.AcquisitionDate, d.AcquisitionTime) == starts[frame], f"{d.AcquisitionDate} {d.AcquisitionTime}")
        check(d.AcquisitionDateTime == "".join(starts[frame]), d.AcquisitionDateTime)
        check((d.SeriesDate, d.SeriesTime) == starts[0], f"{d.SeriesDate} {d.SeriesTime}: the start of the acquisition")
        check((d.Units, d.DecayCorrection) == ("CNTS", "NONE"), d.Units)
    for d in (objects[0], objects[n], objects[-1]):
        conforms(d)
    check("3 time frames" in objects[0].DerivationDescription, objects[0].DerivationDescription)
    exported(folder, objects, n)


def exported(folder, objects, n):
    """The 4-D NIfTI file has the frames in order; their times are beside it. Series that cannot be are refused."""
    nii, paths = os.path.join(folder, "series.nii"), [d.filename for d in objects]
    said = json.loads(h.run(h.TOMONODE, "export", "--json", "-o", nii, *paths[::-1]).stdout)
    data = h.read_file(nii, "rb")
    dim = np.frombuffer(data[40:56], "<i2")
    check(list(dim[:5]) == [4, 12, 12, n, 3] and said["size"] == [12, 12, n] and said["images"] == 3, f"{dim} {said}")
    check(np.frombuffer(data[92:96], "<f4")[0] == 0 and data[123] == 2, "frames of different durations have no step")
    found = np.frombuffer(data[352:], "<f4").reshape(3, n, 12, 12)
    for frame in range(3):  # slices of the series go down, those of the file up
        wanted = np.array([d.pixel_array * float(d.RescaleSlope) for d in objects[frame * n:frame * n + n]])[::-1]
        check(np.allclose(found[frame], wanted, rtol=1e-6) and wanted.any(), f"frame {frame + 1} of the file")
    times = json.loads(h.read_file(nii[:-3] + "json"))
    check((times["FrameTimesStart"], times["FrameDuration"]) == ([0, 2, 8], [2, 3, 12])
          and times["SeriesType"] == "DYNAMIC", times)
    check(said["files"] == [nii, nii[:-3] + "json"], said["files"])
    kept = os.path.join(folder, "kept.nii")
    os.mkdir(kept[:-3] + "json")
    h.write_file(kept, "of another command")
    h.run(h.TOMONODE, "export", "--force", "-o", kept, *paths, code=1)
    check(h.read_file(kept) == "of another command" and not os.path.exists(kept + ".part"),
          "without its times, no file is replaced")
    for tag, value, part in (("ImageIndex", 3 * n + 1, f"(0054,1330) is {3 * n + 1}; allowed: 1 to {3 * n}"),
                             ("ImageIndex", 0, "is 0; allowed"),
                             ("ImageIndex", 3 * n, f"image 1 of 3 does not have {n} slices"),
                             ("NumberOfTimeSlices", 0, "(0054,0101) is 0"),
                             ("NumberOfTimeSlices", 65535, "(0054,0101) is 65535; allowed: 1 to 10000"),
                             ("NumberOfSlices", 0, "3 images of 0 slices"),
                             ("NumberOfTimeSlices", 2, "allowed: 1 to")):
        bad = edited(paths[0], os.path.join(folder, "bad.dcm"), **{tag: value})
        p = h.run(h.TOMONODE, "export", "--force", "-o", nii, bad, *paths[1:], code=4)
        check(part in p.stderr, f"'{p.stderr}' does not contain '{part}'")
    p = h.run(h.TOMONODE, "export", "-o", os.path.join(folder, "x.hv"), *paths, code=4)
    check("the series has 3 images (DYNAMIC); Interfile has one" in p.stderr, p.stderr)


def test_a_frame_without_counts_is_zero(folder):
    words, _ = dynamic_list()
    source = raw(os.path.join(folder, "in"), words)
    objects, report = recon(folder, "out", source, "--frames", "2,(3.5),1,0.5,(0.5),11")
    n = len(objects) // 4
    check([f["counts"] > 0 for f in report["frames"]] == [True, False, False, True], report["frames"])
    check([any(d.pixel_array.any() for d in objects[k * n:k * n + n]) for k in range(4)] == [True, False, False, True],
          "which are zero")
    check("Time frames without counts, whose values are 0: 2, 3." in report["warnings"], report["warnings"])
    check("without counts" in objects[0].DerivationDescription, objects[0].DerivationDescription)
    nii = os.path.join(folder, "series.nii")
    h.run(h.TOMONODE, "export", "-o", nii, *[d.filename for d in objects])
    with open(nii[:-3] + "json", encoding="utf-8") as f:
        check(np.allclose(json.load(f)["FrameTimesStart"], [0, 5.5, 6.5, 7.5], atol=1e-5), "starts within a second")
    conforms(objects[n])
    message = recon(folder, "none", source, "--frames", "(5.5),1", code=4)
    check("no counts" in message, message)


def test_refused_tables(folder):
    source = raw(os.path.join(folder, "in"), dynamic_list()[0])
    for table, code, part in (("2,30", 4, "frames: frame 2 ends after 32 s, but the acquisition has 20 s"),
                              ("20.001", 4, "ends after 20.001 s"),
                              ("6x", 2, "entry 1 is \"6x\""),
                              ("gates", 2, "entry 1 is \"gates\"")):
        message = recon(folder, "no", source, "--frames", table, code=code)
        check(part in message, message)
    h.run(h.TOMONODE, "import", *interfile(folder, source), "-o", os.path.join(folder, "objects"))
    message = recon(folder, "no", os.path.join(folder, "objects"), "--frames", "2", code=4)
    check("the case has sinograms, which cannot be divided" in message, message)
    h.write_file(os.path.join(folder, "bad.conf"), "protocols = ( { " + QUICK + ' frames = "2x5,oh"; } );\n')
    p = h.run(h.TOMONODE, "check", "-c", os.path.join(folder, "bad.conf"), code=3)
    check("key 'frames' of protocol 'quick-pet': frames: entry 2 is \"oh\"" in p.stderr + p.stdout, p.stderr + p.stdout)


def interfile(folder, source):
    hs = os.path.join(folder, "prompts.hs")
    h.run(h.TOMONODE, "export", "-c", conf_of(folder), "-o", hs, *glob.glob(os.path.join(source, "*.dcm")))
    return hs, "--like", os.path.join(source, "list.dcm"), "--set", "PatientPosition=HFS"


TIMES = ((0, 60000), (60000, 300000), (400000, 600000))  # ms, of frames of objects
FEW = ("iterations=4", "matrix=48", "deterministic=true")


def put_frame(d, frame, scale=1.0, n=len(TIMES), instances=None, times=None):
    """Give an object of EMISSION or another role a time frame, from 1, and data that are multiplied."""
    block = d.private_block(0x0071, "TOMONODE SINOGRAM 1")
    data = (np.frombuffer(block[0x10].value, "<f4") * np.float32(scale)).astype("<f4").tobytes()
    start, stop = times or TIMES[frame - 1]
    block[0x10].value, block[0x14].value = data, hashlib.sha256(data).hexdigest()
    for element, value in ((0x15, instances or n + 1), (0x19, frame), (0x1A, n), (0x1B, start), (0x1C, stop - start)):
        if element in block:
            del block[element]
        block.add_new(element, "UL", value)
    d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = f"{d.SOPInstanceUID[:56]}.{frame}"
    return d


def test_frames_of_objects(folder):
    """A cylinder whose activity only decays, its counts in three frames: each frame has the same Bq/ml at the start of
    the acquisition as the whole, each its own duration and decay factor."""
    exam, objects = os.path.join(folder, "exam"), os.path.join(folder, "objects")
    pet.simulate(exam, "--phantom", "cylinder", "--radius", "40", "--noise-free", "--attenuation")
    os.makedirs(objects)
    first = pydicom.dcmread(os.path.join(exam, "emission.dcm"))
    half_life = float(first.RadiopharmaceuticalInformationSequence[0].RadionuclideHalfLife)
    rate, whole = np.log(2) / half_life, int(first.ActualFrameDuration) / 1000
    mean = [np.exp(-rate * a / 1000) - np.exp(-rate * b / 1000) for a, b in TIMES]
    for k, part in enumerate(mean):
        d = put_frame(pydicom.dcmread(os.path.join(exam, "emission.dcm")), k + 1, part / (1 - np.exp(-rate * whole)))
        d.save_as(os.path.join(objects, f"emission-{k + 1}.dcm"))
    other = pydicom.dcmread(os.path.join(exam, "attenuation.dcm"))
    other.private_block(0x0071, "TOMONODE SINOGRAM 1")[0x15].value = 4
    other.save_as(os.path.join(objects, "attenuation.dcm"))
    static = pet.reconstruct(os.path.join(folder, "static"), exam, settings=FEW)
    dynamic = pet.reconstruct(os.path.join(folder, "dynamic"), objects, settings=FEW)
    n = len(static.objects)
    check(len(dynamic.objects) == 3 * n and static.values.max() > 0, "the number of objects")
    for k, (start, stop) in enumerate(TIMES):
        frame, ds = dynamic.values[k * n:k * n + n], dynamic.objects[k * n]
        off = np.abs(frame - static.values).max() / static.values.max()
        check(off < 2e-4, f"frame {k + 1} differs by {off} from the whole")  # a step of the stored values is 3e-5
        factor = rate * (stop - start) / 1000 / mean[k]
        check(abs(float(ds.DecayFactor) / factor - 1) < 1e-6 and ds.DecayCorrection == "START",
              f"{ds.DecayFactor}, not {factor}")
        check(int(ds.ActualFrameDuration) == stop - start and ds.Units == "BQML",
              f"{ds.ActualFrameDuration} {ds.Units}")
        check(abs(float(ds.FrameReferenceTime) - 1000 * np.log(factor) / rate) < 0.01, f"{ds.FrameReferenceTime}")
        conforms(ds)
    refused_objects(folder, objects)


def refused_objects(folder, objects):
    def changed(name, change):
        path = os.path.join(objects, name)
        return [edited(path, os.path.join(folder, "bad.dcm"), change),
                *(p for p in glob.glob(os.path.join(objects, "*.dcm")) if p != path)]

    def element(number, value):
        return lambda d: setattr(d.private_block(0x0071, "TOMONODE SINOGRAM 1")[number], "value", value)

    def no_frame(d):
        block = d.private_block(0x0071, "TOMONODE SINOGRAM 1")
        for number in (0x19, 0x1A, 0x1B, 0x1C):
            del block[number]

    cases = (
        ("emission-2.dcm", element(0x19, 3), "ms, in other objects "),
        ("emission-2.dcm", element(0x19, 4), "time frame (0071,1019) is 4; allowed: 1 to 3"),
        ("emission-2.dcm", element(0x1A, 4), " time frames, other objects "),
        ("emission-2.dcm", element(0x1A, 513), "number of time frames (0071,101A) is 513; allowed: 1 to 512"),
        ("emission-2.dcm", element(0x1B, 59999),
         "time frame 2 begins at 59999 ms, before the end of time frame 1 at 60000 ms"),
        ("emission-2.dcm", element(0x1C, 0), "duration of the time frame (0071,101C) is 0"),
        ("emission-2.dcm", no_frame, "EMISSION is in objects with a time frame and in objects without one"),
        ("attenuation.dcm", lambda d: put_frame(d, 2), "ATTENUATION: time frame 1 of 3 is missing"),
        ("attenuation.dcm", element(0x03, "ADDITIVE"), "ADDITIVE has no time frame"),
    )
    for name, change, part in cases:
        p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "-o", os.path.join(folder, "no"), *changed(name, change),
                  code=4)
        check(part in p.stderr, f"'{p.stderr}' does not contain '{part}'")
    p = h.run(h.TOMONODE, "export", "-o", os.path.join(folder, "x.hs"), *glob.glob(os.path.join(objects, "*.dcm")),
              code=4)
    check("3 time frames, which are not exported" in p.stderr, p.stderr)


def test_frames_of_petsird(folder):
    """Time blocks of 100 ms that begin at 700 ms: the objects of each frame have the counts of a file with only its
    blocks; frames that cover all have all counts; tables that cannot be are refused."""
    writer, header = petsird_tools.Writer(petsird_tools.stored("ring", "0.12.0")[1]), petsird_tools.ring_header()
    events = petsird_tools.point_source(header, (20.0, 5.0, 1.0), 500)
    blocks = [petsird_tools.event_block(700 + 100 * k, 800 + 100 * k, events[100 * k:100 * k + 50 + 10 * k],
                                        events[7 * k:7 * k + 10 + k]) for k in range(5)]

    def imported(name, some, *options, code=0):
        path, out = os.path.join(folder, name), os.path.join(folder, name + "-objects")
        writer.file(path, header, some)
        p = h.run(h.TOMONODE, "import", "--json", "--petsird", path, "--set", "PatientPosition=HFS", *options, "-o",
                  out, code=code)
        if code:
            return p.stderr
        found = {}
        for d in map(pydicom.dcmread, glob.glob(os.path.join(out, "*.dcm"))):
            block = d.private_block(0x0071, "TOMONODE SINOGRAM 1")
            times = tuple(block[k].value for k in (0x19, 0x1A, 0x1B, 0x1C)) if 0x19 in block else None
            found[block[0x03].value, times] = np.frombuffer(block[0x10].value, "<f4")
            check(block[0x15].value == len(glob.glob(os.path.join(out, "*.dcm"))), "the number of instances")
        return json.loads(p.stdout)["petsird"], found

    report, found = imported("gap", blocks, "--frames", "0.2,(0.1),0.2")
    frames = [found["EMISSION", (1, 2, 0, 200)], found["EMISSION", (2, 2, 300, 200)]]
    check(sorted(key[1] for key in found if key[0] == "EMISSION") == [(1, 2, 0, 200), (2, 2, 300, 200)], list(found))
    for k, some in enumerate((blocks[:2], blocks[3:])):
        alone = imported(f"alone-{k}", some)[1]
        delayeds, expected = found["DELAYEDS", [(1, 2, 0, 200), (2, 2, 300, 200)][k]], alone["DELAYEDS", None]
        check(np.array_equal(delayeds, expected) and expected.any(),
              f"frame {k + 1}: {delayeds.sum()} delayeds, not {expected.sum()}")
        alone = alone["EMISSION", None]
        check(np.array_equal(frames[k], alone) and alone.sum() > 50,
              f"frame {k + 1}: {frames[k].sum()} counts, not {alone.sum()}")
    report, found = imported("all", blocks, "--frames", "0.1,0.1,0.3")
    counts = [found["EMISSION", times].sum() for times in ((1, 3, 0, 100), (2, 3, 100, 100), (3, 3, 200, 300))]
    whole = imported("whole", blocks)[1]["EMISSION", None]
    gap = report["in_no_frame"]
    check(report["in_bins"] + report["outside"] + gap == report["prompts"] == 350 and gap == 0, report)
    check(sum(counts) == whole.sum() == report["in_bins"] and counts[1] > 0, f"{counts} of {whole.sum()}")
    check("frame 1 ends after 0.501 s, but the acquisition has 0.5 s" in imported("long", blocks, "--frames", "0.501",
                                                                                  code=4), "too long")
    for table, says in (("0.1,0.001,0.399", "from 100 to 200 ms is partly in frame 2, 100 to 101 ms"),
                        ("(0.05),0.1", "from 0 to 100 ms is partly in frame 1")):
        check(says in imported("part", blocks, "--frames", table, code=4), f"{table}: frames of parts of time blocks")
    check("entry 1 is \"oh\"" in imported("bad", blocks, "--frames", "oh", code=2), "no table")
    out = os.path.join(folder, "series")
    p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "--protocol", "pet-mlem", "--set", "iterations=1", "--set",
              "matrix=16", "-o", out,
              os.path.join(folder, "gap-objects"))
    objects = [pydicom.dcmread(path) for path in glob.glob(os.path.join(out, "*.dcm"))]
    check({int(d.NumberOfTimeSlices) for d in objects} == {2} and len(objects) == 2 * int(objects[0].NumberOfSlices),
          p.stdout)
