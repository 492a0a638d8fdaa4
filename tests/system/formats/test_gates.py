# SPDX-License-Identifier: Apache-2.0
"""Gates of PETSIRD files (tools/petsird_tools.py) and of list mode of a Siemens mMR (tools/mmr_tools.py): a source that
is elsewhere in each phase, so that each gate has the sinogram, and the image, of its own events only; gates and what is
left out are the whole to the last count; a table of time marks is the same as a signal; the gated series has its images
in the order, and with the attributes, of the standard; marks that cannot be are refused."""
import glob
import json
import os

import numpy as np
import pydicom

from tools import mmr_tools as mmr
from tools import node_harness as h
from tools import petsird_tools
from tools.edits import edited
from tools.mmr_recon import QUICK, SCANNER, conforms, counted, events_at, prompts, raw, recon
from tools.node_harness import check

h.need(h.TOMONODE, "storescp", "echoscu", "dcmsend", "dciodvfy")

CREATOR, BLOCK = "TOMONODE SINOGRAM 1", 0x0071
# dicom3tools asks for SeriesType DYNAMIC, not GATED, in its condition PETSeriesType1GatedAndBeatRejection
KNOWN = ("condition unsatisfied (which may not be present otherwise) Type 1C Conditional Element=<LowRRValue>",
         "condition unsatisfied (which may not be present otherwise) Type 1C Conditional Element=<HighRRValue>")


def gate_of(t, marks, n, limits=None):
    """The gate of a time, from 0, by the definition; None: it is left out."""
    for begin, end in zip(marks, marks[1:]):
        if begin <= t < end and (not limits or limits[0] <= end - begin <= limits[1]):
            return int((t - begin) * n // (end - begin))
    return None


def duration_of(k, marks, n, limits=None):
    return sum(gate_of(t, marks, n, limits) == k for t in range(marks[0], marks[-1]))


# ---- PETSIRD ----

FIRST = 700  # ms, start of the first time block
LENGTHS = (103, 97, 211, 110, 90, 104, 20, 99)
MARKS = [31]
for length in LENGTHS:
    MARKS.append(MARKS[-1] + length)
END = MARKS[-1] + 44  # 909 ms
N, LIMITS = 4, (80, 150)
PLACES = ((30.0, 0.0, 0.0), (0.0, 30.0, 0.0), (-30.0, 0.0, 0.0), (0.0, -30.0, 0.0))
SIGNALS = [{"type": 0, "description": "trace", "id": 4}, {"type": 3, "description": "belt", "id": 9},
           {"type": 1, "description": "ECG", "id": 7}]


def signal_block(signal, ms, values=()):
    return ("ExternalSignalTimeBlock", {"timeInterval": {"start": ms, "stop": ms}, "signalID": signal,
                                        "signalValues": values})


class Petsird:
    """A ring, whose source is at PLACES[gate] and, in no gate, in the middle; ECG triggers at MARKS and two outside of
    the acquisition."""

    def __init__(self, folder, version="0.12.0", step=2):
        self.folder, self.writer = folder, petsird_tools.Writer(petsird_tools.stored("ring", version)[1])
        self.header = petsird_tools.ring_header()
        self.header["exam"]["externalSignals"], self.written = SIGNALS, None
        pools = [petsird_tools.point_source(self.header, place, 400, seed) for seed,
                 place in enumerate((*PLACES, (0.0, 0.0, 0.0)))]
        rng, self.blocks, self.of_gate = np.random.default_rng(4), [], {}
        for t in range(0, END, step):
            gate = gate_of(t, MARKS, N, LIMITS)
            pool = pools[len(PLACES) if gate is None else gate]
            block = petsird_tools.event_block(FIRST + t, FIRST + min(t + step, END),
                                              [pool[i] for i in rng.integers(0, len(pool), rng.integers(1, 6))])
            self.blocks.append(block)
            self.of_gate.setdefault(gate, []).append(block)
        self.triggers = [signal_block(7, ms) for ms in (FIRST - 60, *(FIRST + m for m in MARKS), FIRST + END + 5)]
        self.others = [signal_block(9, FIRST + ms) for ms in range(0, END, 300)] + [signal_block(4, FIRST, (0.5, 0.25))]

    def imported(self, name, blocks, *options, code=0):
        """(report, {gate or None: (values, block)}) of the objects of a file with these time blocks."""
        path, out = os.path.join(self.folder, name + ".petsird"), os.path.join(self.folder, name)
        if self.written != (path, blocks, self.header["exam"]["externalSignals"]):
            self.writer.file(path, self.header, blocks)
            self.written = path, blocks, self.header["exam"]["externalSignals"]
        p = h.run(h.TOMONODE, "import", "--json", "--petsird", path, "--set", "PatientPosition=HFS", *options, "-o",
                  out, code=code)
        if code:
            return p.stderr
        found = {}
        for d in map(pydicom.dcmread, sorted(glob.glob(os.path.join(out, "*.dcm")))):
            block = d.private_block(BLOCK, CREATOR)
            if block[0x03].value == "EMISSION":
                found[block[0x1D].value if 0x1D in block else None] = (np.frombuffer(block[0x10].value, "<f4"), block)
        return json.loads(p.stdout), found


def test_gates_of_petsird(folder):
    file = Petsird(folder)
    everything = file.triggers + file.others + file.blocks
    options = ("--gates", str(N), "--gate-cycle", f"{LIMITS[0]},{LIMITS[1]}", "--marks")
    report, gates = file.imported("gates", everything, *options, "ecg")
    report, warnings = report["petsird"], report["warnings"]
    used = sum(LIMITS[0] <= length <= LIMITS[1] for length in LENGTHS)
    check((report["cycles_used"], report["cycles_left_out"]) == (used, len(LENGTHS) - used) == (6, 2), report)
    check("2 time marks before the first time block or behind the last one are not used" in warnings, warnings)
    check(sorted(gates) == [1, 2, 3, 4], list(gates))
    for k in range(N):
        alone = file.imported(f"alone-{k}", file.of_gate[k])[1][None][0]
        values, block = gates[k + 1]
        check(np.array_equal(values, alone) and alone.sum() > 50,
              f"gate {k + 1}: {values.sum()} counts, not {alone.sum()}")
        check((block[0x1E].value, block[0x20].value, block[0x21].value, block[0x22].value) == (N, *LIMITS, "ECG"),
              "the gates of an object")
        check([int(line) for line in block[0x1F].value.split()] == MARKS and block[0x15].value == N, block[0x1F].value)
    whole = file.imported("whole", everything)[1][None][0]
    left_out = file.imported("left-out", file.of_gate[None])[1][None][0]
    check(np.array_equal(sum(values for values, _ in gates.values()) + left_out, whole),
          "gates and what is left out are not the whole")
    check(report["in_no_frame"] == left_out.sum() > 100 and report["in_bins"] == whole.sum() - left_out.sum(), report)
    table = os.path.join(folder, "marks.txt")
    h.write_file(table, "# ms\r\n" + "".join(f"{m}\r\n" for m in MARKS))
    same = file.imported("table", everything, *options, table)[1]
    check(all(np.array_equal(same[k][0], gates[k][0]) and same[k][1][0x22].value == "TABLE" for k in gates),
          "a table gives other gates")
    uids = [{pydicom.dcmread(p).SOPInstanceUID for p in glob.glob(os.path.join(folder, name, "*.dcm"))}
            for name in ("gates", "table")]
    check(len(uids[0]) == len(uids[1]) >= N and not uids[0] & uids[1], "objects with another signal have the same UIDs")
    every_cycle = file.imported("all", everything, "--gates", "1", "--marks", "resp")[1]
    check(sorted(every_cycle) == [1] and 0x20 not in every_cycle[1][1] and every_cycle[1][1][0x22].value == "RESP",
          "respiration")
    series_of_gates(folder, gates)


def test_gaps_between_blocks(folder):
    """Time without event blocks is in the durations of frames and gates: a warning, and a series with the duration of
    the acquisition."""
    file = Petsird(folder)
    some = file.triggers + file.others + file.blocks[:200] + file.blocks[250:]
    bounds = [[MARKS[i] + -(-k * length // 4) for i, length in enumerate(LENGTHS)] for k in range(5)]
    cut = [sum(max(0, min(b, 500) - max(a, 400)) for a, b in zip(bounds[k], bounds[k + 1])) for k in range(4)]
    whole = duration_of(0, MARKS, 4)
    for name, options, part in (("gap-gates", ("--gates", "4", "--marks", "ecg"),
                                 f"{(whole - cut[0]) / 1000:.6g} of {whole / 1000:.6g} s of gate 1"),
                                ("gap-frames", ("--frames", "0.3,0.5"), "0.4 of 0.5 s of time frame 2")):
        report, _ = file.imported(name, some, *options)
        check(f"The event blocks cover {part}: the durations of frames and gates contain the gaps"
              in report["warnings"], report["warnings"])
        d = pydicom.dcmread(glob.glob(os.path.join(folder, name, "*.dcm"))[0])
        check(int(d.ActualFrameDuration) == END, f"{d.ActualFrameDuration} ms")
    h.run(h.TOMONODE, "recon", "--device", "cpu:1", "--protocol", "pet-mlem", "--set", "iterations=1", "--set",
          "matrix=16", "-o",
          os.path.join(folder, "series"), os.path.join(folder, "gap-gates"))
    report, _ = file.imported("gap-outside", some, "--frames", "0.4,(0.1),0.4")
    check("gaps" not in report["warnings"], f"every frame is covered: {report['warnings']}")
    report, _ = file.imported("gap", some)
    check("gaps" not in report["warnings"] and report["petsird"]["duration"] == 0.809, report)


def series_of_gates(folder, gates):
    """The image of each gate is that of its source; each has its live duration."""
    out = os.path.join(folder, "series")
    p = h.run(h.TOMONODE, "recon", "--json", "--device", "cpu:1", "--protocol", "pet-mlem", "--set", "iterations=8",
              "--set", "matrix=24", "-o", out,
              os.path.join(folder, "gates"))
    gating = json.loads(p.stdout)["cases"][0]["pet"]["gating"]
    durations = [duration_of(k, MARKS, N, LIMITS) for k in range(N)]
    check([round(1000 * g["duration"]) for g in gating["gates"]] == durations and sum(durations) == 603,
          f"{gating}, not {durations}")
    check([g["counts"] for g in gating["gates"]] == [values.sum() for values, _ in gates.values()], gating)
    check((gating["signal"], gating["cycles_used"], gating["cycles_left_out"],
           gating["mean_cycle"]) == ("ecg", 6, 2, 0.1005), gating)
    objects = sorted((pydicom.dcmread(p) for p in glob.glob(os.path.join(out, "*.dcm"))),
                     key=lambda d: d.InstanceNumber)
    n = int(objects[0].NumberOfSlices)
    check(len(objects) == N * n and len({d.SOPInstanceUID for d in objects}) == N * n
          and len({d.SeriesInstanceUID for d in objects}) == 1, "objects")
    for k in range(N):
        volume = np.array([d.pixel_array * float(d.RescaleSlope) for d in objects[k * n:k * n + n]]).sum(axis=0)
        row, column = np.unravel_index(volume.argmax(), volume.shape)
        first = objects[0]
        place = [float(first.ImagePositionPatient[c]) + i * float(first.PixelSpacing[c]) for c,
                 i in ((0, column), (1, row))]
        check(np.hypot(place[0] - PLACES[k][0], place[1] - PLACES[k][1]) < 10,
              f"gate {k + 1}: the source is at {place}, not at {PLACES[k]}")
    for i, d in enumerate(objects):
        gate, slice_ = divmod(i, n)
        check(list(d.SeriesType) == ["GATED", "IMAGE"] and "NumberOfTimeSlices" not in d, d.SeriesType)
        check((int(d.NumberOfRRIntervals), int(d.NumberOfTimeSlots), int(d.NumberOfSlices)) == (1, N, n),
              "the dimensions")
        check(int(d.ImageIndex) == gate * n + slice_ + 1 == int(d.InstanceNumber),
              f"{d.ImageIndex}: time slot by time slot")
        check(d.ImagePositionPatient == objects[slice_].ImagePositionPatient, "the same positions in each gate")
        check(abs(float(d.TriggerTime) - gate * 100.5 / N) < 1e-6 and abs(float(d.FrameTime) - 100.5 / N) < 1e-6,
              f"{d.TriggerTime} {d.FrameTime}")
        check((d.BeatRejectionFlag, int(d.LowRRValue), int(d.HighRRValue)) == ("Y", *LIMITS), "the limits")
        check((int(d.IntervalsAcquired), int(d.IntervalsRejected), int(d.NominalInterval)) == (6, 2, 101),
              "the intervals")
        check((d.CardiacFramingType, d.TriggerSourceOrType,
               int(d.HeartRate)) == ("PCNT", "EKG", round(60000 * 8 / sum(LENGTHS))), "the trigger")
        check(int(d.ActualFrameDuration) == END and int(d.TimeSlotTime) == durations[gate],
              f"{d.ActualFrameDuration} {d.TimeSlotTime}")
        check((d.AcquisitionTime, d.SeriesTime) == (objects[0].AcquisitionTime, objects[0].AcquisitionTime),
              "one Acquisition Time")
        times = [t for t in range(MARKS[0], MARKS[-1]) if gate_of(t, MARKS, N, LIMITS) == gate]
        # no half-life: the mean
        check(abs(float(d.FrameReferenceTime) - np.mean(times) - 0.5) < 1e-6, f"{d.FrameReferenceTime}")
    for d in (objects[0], objects[n], objects[-1]):
        conforms(d, KNOWN)
    check("4 gates" in objects[0].DerivationDescription and "2 of 8 cycles are not 80 to 150 ms long"
          in objects[0].DerivationDescription,
          objects[0].DerivationDescription)
    exported(folder, objects, durations)
    refused_objects(folder)


def exported(folder, objects, durations):
    nii = os.path.join(folder, "gates.nii")
    h.run(h.TOMONODE, "export", "-o", nii, *(d.filename for d in objects))
    with open(nii, "rb") as f:
        header = f.read(348)
    check(list(np.frombuffer(header[40:50], "<i2")) == [4, 24, 24, int(objects[0].NumberOfSlices), N],
          "the dimensions of the file")
    check(abs(np.frombuffer(header[92:96], "<f4")[0] - 0.1005 / N) < 1e-6 and header[123] == 10,
          "gates of one duration have a step")
    times = json.loads(h.read_file(nii[:-3] + "json"))
    check(np.allclose(times["TriggerTime"], [k * 0.1005 / N for k in range(N)]) and np.allclose(times["FrameTime"],
                                                                                                0.1005 / N), times)
    check(np.allclose(times["GateDuration"], [ms / 1000 for ms in durations]) and times["SeriesType"] == "GATED", times)


def refused_objects(folder):
    objects = os.path.join(folder, "gates")

    def element(number, value):
        return lambda d: setattr(d.private_block(BLOCK, CREATOR)[number], "value", value)

    def with_frame(d):
        for number, value in ((0x19, 2), (0x1A, 4), (0x1B, 5), (0x1C, 5)):
            d.private_block(BLOCK, CREATOR).add_new(number, "UL", value)

    def without(*numbers):
        def change(d):
            for number in numbers:
                del d.private_block(BLOCK, CREATOR)[number]
        return change

    cases = (
        (element(0x1D, 5), "gate (0071,101D) is 5; allowed: 1 to 4"),
        (element(0x1D, 3), "chunk 1 of role EMISSION is in two objects", "SHA-256"),
        (element(0x1E, 3), "announces 3 gates, other objects 4", "announces 4 gates, other objects 3"),
        (element(0x1E, 65), "number of gates (0071,101E) is 65; allowed: 1 to 64"),
        (element(0x1F, "31\n31\n"), "time marks: line 2: mark 2 is at 31 ms, not after mark 1 at 31 ms"),
        (element(0x1F, "\n".join(map(str, MARKS[:-1]))), "has other time marks than other objects"),
        (element(0x20, 151), "shortest cycle (0071,1020) is 151; allowed: 0 to 150"),
        (element(0x21, 149), "signal ecg; in other objects"),
        (element(0x22, "EEG"), "signal of the gates (0071,1022) is \"eeg\"; allowed: TABLE, ECG, RESP, MOTION, SYNC"),
        (without(0x1F), "the table of time marks (0071,101F) is missing"),
        (without(0x1D), "EMISSION is in objects with a gate and in objects without one"),
        (with_frame, "an object with a time frame and a gate; gates of time frames are not supported"),
    )
    for change, *parts in cases:
        path = os.path.join(objects, "emission-gate002.dcm")
        p = h.run(h.TOMONODE, "recon", "--device", "cpu:1", "-o", os.path.join(folder, "no"),
                  edited(path, os.path.join(folder, "bad.dcm"), change),
                  *(p for p in glob.glob(os.path.join(objects, "*.dcm")) if p != path), code=4)
        check(any(part in p.stderr for part in parts), f"'{p.stderr}' does not contain '{parts[0]}'")
    p = h.run(h.TOMONODE, "export", "-o", os.path.join(folder, "x.hs"), *glob.glob(os.path.join(objects, "*.dcm")),
              code=4)
    check("4 gates, which are not exported" in p.stderr, p.stderr)


def test_refused_marks_of_petsird(folder):
    file = Petsird(folder, version="0.9.1", step=3)
    some = file.triggers + file.others + file.blocks

    def refused(blocks, part, *options, code=4):
        message = file.imported("bad", blocks, *options, code=code)
        check(part in message, f"'{message}' does not contain '{part}'")

    file.imported("good", some, "--gates", "2", "--marks", "ecg")
    gates = ("--gates", "4", "--marks")
    refused(file.blocks + file.triggers[2::-1], "mark 2 is at 731 ms, not after mark 1", *gates, "ecg")
    refused(file.blocks, "time marks: 0 marks; a cycle needs two", *gates, "ecg")
    refused(some, "0 signals of type \"otherMotionTrigger\"; it must have one", *gates, "motion")
    refused(some, "--marks ekg: no signal (ecg, resp, motion, sync), and no such file", *gates, "ekg", code=8)
    blocks = "time blocks of up to 3 ms, but a gate of "
    refused(some, blocks + "1.609 ms, less than twice that, in a cycle of 103 ms", "--gates", "64", "--gate-cycle",
            "100,110", "--marks", "ecg")
    # the mean is 26 ms
    refused(some, blocks + "5 ms, less than twice that, in a cycle of 20 ms", "--gates", "4", "--marks", "ecg")
    refused(some, blocks + "5.722 ms", "--gates", "18", "--gate-cycle", "100,110", "--marks", "ecg")
    file.imported("half", some, "--gates", "17", "--gate-cycle", "100,110", "--marks", "ecg")
    refused(some, "none of the 8 cycles has 1000 to 1200 ms", *gates, "ecg", "--gate-cycle", "1000,1200")
    file.header["exam"]["externalSignals"] = [*SIGNALS, {"type": 1, "description": "again", "id": 8}]
    refused(some, "2 signals of type \"ecgTrigger\"", *gates, "ecg")
    file.header["exam"]["externalSignals"] = [{"type": 3, "description": "belt", "id": 100 + i}
                                              for i in range(64)] + SIGNALS
    refused(some, "time marks: the file has 67 external signals; supported: at most 64", *gates, "ecg")
    file.header["exam"]["externalSignals"] = SIGNALS
    h.write_file(os.path.join(folder, "table"), "0\n100\n910\n")
    refused(file.blocks, "mark 3 is at 910 ms, after the end of the acquisition at 909 ms", *gates, os.path.join(folder, "table"))
    refused(some, "--marks", *gates, os.path.join(folder, "missing"), code=8)
    for options, part in ((("--gates", "4"), "--gates without --marks"),
                          (("--marks", "ecg"), "--marks without --gates"),
                          (("--gate-cycle", "1,2"), "--gate-cycle without --gates"),
                          ((*gates, "ecg", "--frames", "1"), "gates of time frames"),
                          ((*gates, "ecg", "--gate-cycle", "9,8"), "\"9,8\"; allowed: SHORTEST,LONGEST"),
                          (("--gates", "65"), "65")):
        refused(some, part, *options, code=2)


# ---- Siemens mMR ----

START = 777123  # ms, of the first time mark
R_WAVE, BREATH = 0xE1002000, 0xE1001000
BEATS, BREATHS, LENGTH = (500, 1400, 2350, 3260, 9000, 9800, 12100), (1000, 5001, 9000, 13000), 14000


def gated_list(seed=3):
    """Words of a list with events at every 10 ms, and the events of each time."""
    rng, words, of_time = np.random.default_rng(seed), [], {}
    for ms in range(0, LENGTH + 1, 10):
        words.append(mmr.time_mark(START + ms))
        for times, word in ((BEATS, R_WAVE), (BREATHS, BREATH)):
            for at in times:
                if at // 10 == ms // 10:
                    words += [mmr.time_mark(START + at), word | 0x8000, word, word | 0x1, word & ~0x01000000]
        if ms < LENGTH:
            at = max([ms] + [t for times in (BEATS, BREATHS) for t in times if t // 10 == ms // 10])
            of_time[at] = events_at(rng, 3)
            words += of_time[at]
    return words, of_time


def test_gates_of_an_mmr(folder):
    words, of_time = gated_list()
    header, norm = mmr.list_header(len(words), imagedurationsec=LENGTH // 1000), mmr.Norm(np.random.default_rng(8))
    source = raw(os.path.join(folder, "in"), words, header=header)
    signals = (("ecg", BEATS, 3, (850, 1000)), ("resp", BREATHS, 2, None))
    for name, marks, n, limits in signals if h.TIER == 2 else signals[:1]:
        options = ("--gates", n, "--marks", name, *(("--gate-cycle", f"{limits[0]},{limits[1]}") if limits else ()))
        objects, report = recon(folder, name, source, *options)
        of_gate = {}
        for t, events in of_time.items():
            of_gate.setdefault(gate_of(t, marks, n, limits), []).extend(events)
        wanted = [counted(norm, of_gate[k]) for k in range(n)]
        check([g["counts"] for g in report["gating"]["gates"]] == wanted and min(wanted) > 0,
              f"{report['gating']}, numpy: {wanted}")
        check(report["counts"] == sum(wanted), f"{wanted} of {report['counts']}")
        check(f"{len(prompts(of_gate[None]))} prompts are in no gate" in report["warnings"], report["warnings"])
        check([round(1000 * g["duration"]) for g in report["gating"]["gates"]] == [duration_of(k, marks, n, limits)
                                                                                   for k in range(n)], report["gating"])
        check(len(objects) == n * int(objects[0].NumberOfSlices) and objects[0].SeriesType[0] == "GATED",
              objects[0].SeriesType)
        check(objects[0].BeatRejectionFlag == ("Y" if limits else "N") and ("LowRRValue" in objects[0]) == bool(limits),
              "beat rejection")
        conforms(objects[-1], KNOWN if limits else ())
        if not limits:
            continue
        table = os.path.join(folder, name + ".txt")
        h.write_file(table, "\n".join(map(str, marks)))
        same, _ = recon(folder, name + "-table", source, *(table if option == name else option for option in options))
        check(all(np.array_equal(a.pixel_array, b.pixel_array) and a.RescaleSlope == b.RescaleSlope for a,
                  b in zip(objects, same)),
              "a table, another image")
        check("TriggerSourceOrType" not in same[0] and same[0].SeriesInstanceUID != objects[0].SeriesInstanceUID,
              "the trigger of a table")
        if h.TIER < 2:
            continue
        whole = recon(folder, "whole", source)[1]["counts"]
        check(sum(wanted) + counted(norm, of_gate[None]) == whole, f"{wanted} of {whole}")
        other, _ = recon(folder, name + "-replaced", source, "--set", f"gate_signal={name}",
                         *(table if option == name else option for option in options))
        check([d.SOPInstanceUID for d in other] == [d.SOPInstanceUID for d in same],
              "a table with gate_signal is another result")
        check("gate_signal" in str(objects[0]) and "gate_signal" not in str(other[0]),
              "the protocol in the result has the signal that was not used")
    refused_lists(folder, source)


def refused_lists(folder, source):
    for options, code, part in ((("--gates", 4), 4, "gates need time marks: set gate_signal, or give a table"),
                                (("--gates", 4, "--marks", "sync"), 2, "gate_signal"),
                                (("--gates", 4, "--marks", "ecg", "--frames", "2"), 2,
                                 "gates of time frames are not supported"),
                                (("--gates", 4, "--marks", "ecg", "--set", "frames=2"), 4,
                                 "gates of time frames are not supported")):
        message = recon(folder, "no", source, *options, code=code)
        check(part in message, message)
    h.write_file(os.path.join(folder, "table"), "5\n3\n")
    message = recon(folder, "no", source, "--gates", 4, "--marks", os.path.join(folder, "table"), code=4)
    check("line 2" in message, message)
    plain = raw(os.path.join(folder, "plain"), [mmr.time_mark(5), *events_at(np.random.default_rng(1), 50)])
    message = recon(folder, "no", plain, "--gates", 4, "--marks", "ecg", code=4)
    check("no gating words of the signal \"ecg\"; give a table" in message, message)
    for keys, part in (('gates = 65;', "gates"), ('gates = 4; frames = "2";', "gates of time frames are not supported"),
                       ('gate_signal = "ecg";', "has no effect without 'gates'"),
                       ('gates = 4; gate_cycle = "5";', "allowed: SHORTEST,LONGEST")):
        h.write_file(os.path.join(folder, "bad.conf"), "protocols = ( { " + QUICK + " " + keys + " } );\n")
        p = h.run(h.TOMONODE, "check", "-c", os.path.join(folder, "bad.conf"), code=3)
        check(part in p.stderr + p.stdout, p.stderr + p.stdout)


def test_the_node_makes_a_gated_and_a_dynamic_series(folder, things):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, quiet_time=1)
    things += [n, pacs]
    n.more_protocols = "".join(f", {{ {QUICK.replace('quick-pet', name)} {keys} }}" for name, keys in (
        ("gated-pet", 'gates = 2; gate_signal = "resp";'), ("dynamic-pet", 'frames = "2,3,(3),6";')))
    n.more_routes = (', { name = "pet"; kind = "pet"; protocols = [ "gated-pet", "dynamic-pet" ];'
                     ' destinations = [ "pacs" ]; }')
    n.write_conf(SCANNER)
    words, _ = gated_list()
    source = raw(os.path.join(folder, "in"), words, header=mmr.list_header(len(words), imagedurationsec=LENGTH // 1000))
    pacs.start()
    n.start()
    files = glob.glob(os.path.join(source, "*.dcm"))
    h.run("dcmsend", "-nuc", "-aet", "SCANNER", "-aec", "TOMONODE", "127.0.0.1", n.port, *files)
    n.wait_states("delivered", "delivered")
    objects = [pydicom.dcmread(p) for p in pacs.files()]
    slices = int(objects[0].NumberOfSlices)
    for kind, images in (("GATED", 2), ("DYNAMIC", 3)):
        found = sorted(int(d.ImageIndex) for d in objects if d.SeriesType[0] == kind)
        check(found == list(range(1, images * slices + 1)),
              f"{kind}: {len(found)} of {slices} slices in {images} images")
