# SPDX-License-Identifier: Apache-2.0
"""Odd exams: numbers, character sets, patients, duplicates, senders, PET and parallel-beam objects, UIDs, dates.

Each exam ends held, unassigned or delivered. What is not delivered has a sentence that names the attribute, its value and its place. What is
delivered is compared with the result of the same exam without the odd value: "clean image" has the same values, bit for bit. The result has the
patient of one of its sources, byte for byte, in the same character set."""
import hashlib
import math
import os
import random
import struct
import threading

import hostile
from tools import contract_tools as c
from tools import dicom_peer as peer
from tools import object_tools as o
from tools.node_harness import Node, check, wait_for

TITLE, PART = "Odd exams", 10
CHARSET, STUDY_DATE, STUDY_TIME, ACQUISITION_DATE, ACQUISITION_TIME = 0x00080005, 0x00080020, 0x00080030, 0x00080022, 0x00080032
NAME, PATIENT_ID, ISSUER, BIRTH_DATE, ADDRESS, MAKER = 0x00100010, 0x00100020, 0x00100021, 0x00100030, 0x00080081, 0x00080070
ANGLE, THICKNESS, PITCH, KVP, SID = 0x00181510, 0x001811A0, 0x00181164, 0x00180060, 0x00181110
EXPOSURE_UAS, LATERALITY, IMAGES, VIEW_CODE = 0x00181153, 0x00200062, 0x00201002, 0x00540220
PHOTOMETRIC, FRAMES, ROWS, COLUMNS = 0x00280004, 0x00280008, 0x00280010, 0x00280011
ALLOCATED, HIGH_BIT, SIGNED, PADDING = 0x00280100, 0x00280102, 0x00280103, 0x00280120
SIGN = 0x00281041
FORMAT, HEADER, ROLE, CHUNK, LENGTH, HASH, CENTRE = (o.PRIVATE + n for n in (0x1001, 0x1002, 0x1003, 0x1010, 0x1013, 0x1014, 0x1016))
POSITION, DURATION, WEIGHT, DRUG, CALIBRATION = 0x00185100, 0x00181242, 0x00101030, 0x00540016, 0x00541322
DOSE, HALF_LIFE, INJECTED, INJECTED_AT = 0x00181074, 0x00181075, 0x00181072, 0x00181078
SHARED, PER_FRAME, ISOCENTER, SUPPORT_ANGLE = 0x52009229, 0x52009230, 0x00189462, 0x00189545
RESTING = {"held", "delivered", "failed", "dead-letter", "cancelled", "quarantined"}
CLEAN = "delivered, clean image"


class Exam:
    """Objects, and how they are sent: rounds one after the other, each a list of (calling AE title, objects) sent at the same time."""

    def __init__(self, stage, kind):
        self.objects = stage.made.make(kind)
        self.sent = None

    def rounds(self):
        return self.sent or [[("MODALITY", self.objects)]]


# ---- what becomes of an exam ----

def rows_of(spool, uids):
    """(UID, kind, reason) of the classification of each row of these instances; a kind of None: not classified yet."""
    marks = ",".join("?" * len(uids))
    return c.query(spool, f"SELECT i.sop_instance, c.kind, json_extract(c.detail, '$.reason') FROM instance i LEFT JOIN classification c ON c.instance=i.id "
                          f"WHERE i.sop_instance IN ({marks})", *uids)


def settled(stage, exam, acknowledged):
    """(jobs, reasons of what is unassigned) once all acknowledged UIDs are classified and every job rests; None before."""
    rows = rows_of(stage.node.spool, [d.text(o.INSTANCE) for d in exam.objects])
    if not acknowledged <= {uid for uid, _, _ in rows} or any(kind is None for _, kind, _ in rows):
        return None
    numbers = {n for d in exam.objects for n in c.jobs_of(stage.node.spool, d.text(o.STUDY))}
    jobs = [j for j in stage.node.jobs() if j["id"] in numbers] if numbers else []
    if len(jobs) < len(numbers) or any(j["state"] not in RESTING for j in jobs):
        return None
    return jobs, [reason for _, kind, reason in rows if kind != 1]


def send(stage, calling, objects, told):
    acknowledged, refused = peer.store_all(stage.node.port, [d.sent() for d in objects], calling=calling)
    stage.ledger.add(acknowledged)
    told.append((set(acknowledged), refused))


def outcome(stage, exam):
    """Send all rounds; the answer in a few words, and the jobs."""
    acknowledged, refused, found = set(), {}, ([], [])
    for one in exam.rounds():
        told = []
        threads = [threading.Thread(target=send, args=(stage, calling, objects, told)) for calling, objects in one]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for uids, statuses in told:
            acknowledged |= uids
            refused.update(statuses)
        found = wait_for("the exam rests", lambda: settled(stage, exam, acknowledged), 60, 0.05)
    jobs, unassigned = found
    for text in [j["reason"] for j in jobs if j["reason"]] + unassigned + [f"status {s:04X}" for s in refused.values()]:
        stage.quote(text)
    words = [f"{j['state']}{image(stage, exam, j)}" for j in sorted(jobs, key=lambda j: j["id"])]
    words += [f"{len(unassigned)} unassigned"] if unassigned else []
    words += [f"{len(refused)} refused"] if refused else []
    return "; ".join(words)


# ---- results ----

def values(stage, job):
    """The stored values of a result and what they are multiplied by, in a form that is equal for equal images."""
    found = []
    for made in job["result"]["objects"]:
        d = o.read(os.path.join(stage.node.spool, made["file"]))
        scale = d.get(0x00281053, ("", b""))[1]
        if SHARED in d:
            mapping = d[SHARED][1][0][0x00409096][1][0]
            scale = mapping[0x00409225][1] + mapping[0x00409224][1]
        found.append((d.text(0x00200013), scale, hashlib.sha256(d[o.PIXELS][1]).hexdigest()))
    return sorted(found)


def identity(d):
    return [d.text(tag) for tag in (CHARSET, NAME, PATIENT_ID, ISSUER)]


def image(stage, exam, job):
    """What is said of a result: is it that of the clean exam, and is the patient one of the sources?"""
    if job["state"] != "delivered":
        return ""
    kind = job["kind"] if job["kind"] != "dbt" else exam.kind
    made = o.read(os.path.join(stage.node.spool, job["result"]["objects"][0]["file"]))
    check(identity(made) in [identity(d) for d in exam.objects], f"the result's patient is {identity(made)}, of no source")
    for event in stage.node.show(job["id"])["events"]:
        if event["event"] == "reconstructed":
            said = event["detail"].get("pet") or event["detail"].get("parallel") or event["detail"]
            stage.quote(f"case {job['id']} is delivered: " + ", ".join(f"{k}: {said[k]}" for k in (
                "bins", "unattenuated", "quantitative", "units", "unit", "warnings") if said.get(k) not in (None, "")))
    return ", clean image" if values(stage, job) == stage.clean[kind] else ", other image"


# ---- changes ----

def every(tag, vr, value):
    return lambda exam: [d.put(tag, vr, value) for d in exam.objects]


def one(tag, vr, value, index=1):
    return lambda exam: exam.objects[index].put(tag, vr, value)


def drop(tag, *indices):
    return lambda exam: [d.pop(tag) for i, d in enumerate(exam.objects) if not indices or i in indices]


def two(*changes):
    return lambda exam: [change(exam) for change in changes]


def pixels(change, *indices):
    """change(list of 16-bit values) of each image, or of some."""
    def act(exam):
        for i, d in enumerate(exam.objects):
            if not indices or i in indices:
                n = len(d[o.PIXELS][1]) // 2
                d.put(o.PIXELS, "OW", struct.pack(f"<{n}H", *change(struct.unpack(f"<{n}H", d[o.PIXELS][1]))))
    return act


def frame(index, group, tag, vr, value):
    """In one item of the Per-Frame Functional Groups."""
    def act(exam):
        exam.objects[0][PER_FRAME][1][index][group][1][0].put(tag, vr, value)
    return act


def drug(tag, vr, value):
    def act(exam):
        for d in exam.objects:
            item = d[DRUG][1][0]
            item.pop(tag, None) if value is None else item.put(tag, vr, value)
    return act


def header(old, new, count=-1):
    """In the Interfile header of every object."""
    def act(exam):
        for d in exam.objects:
            text = d[HEADER][1].decode()
            check(old in text, f"no {old!r} in {text}")
            d.put(HEADER, "UT", text.replace(old, new, count))
    return act


def floats(index, change):
    """change(list of floats) of the data of an object; its SHA-256 is the right one."""
    def act(exam):
        d = exam.objects[index]
        n = d.number(LENGTH) // 4
        data = struct.pack(f"<{n}f", *change(list(struct.unpack(f"<{n}f", d[CHUNK][1][:4 * n]))))
        whole(d, data)
    return act


def whole(d, data):
    d.put(CHUNK, "OB", data).put(LENGTH, "UL", len(data)).put(HASH, "LO", hashlib.sha256(data).hexdigest())


def first(value):
    def change(data):
        data[len(data) // 2] = value
        return data
    return change


def send_as(rounds):
    """rounds(objects): see Exam."""
    def act(exam):
        exam.sent = rounds(exam.objects)
    return act


def added(index, **elements):
    """One more object, a copy of another with a UID of its own."""
    def act(exam):
        d = exam.objects[index].copy()
        exam.objects.append(d.put(o.INSTANCE, "UI", d.text(o.INSTANCE) + "9"))
        for tag, (vr, value) in elements.get("put", {}).items():
            d.put(tag, vr, value)
    return act


def same_uid(index, **put):
    """One more object with the same UID."""
    def act(exam):
        d = exam.objects[index].copy()
        exam.objects.append(d)
        for tag, (vr, value) in put.get("put", {}).items():
            d.put(tag, vr, value)
    return act


def other_study(*indices):
    def act(exam):
        for i in indices:
            d = exam.objects[i]
            d.put(o.STUDY, "UI", d.text(o.STUDY) + "7")
    return act


def thinned(exam):
    """Images of another size in one view: every second row."""
    d = exam.objects[1]
    rows, columns, data = d.number(ROWS), d.number(COLUMNS), d[o.PIXELS][1]
    d.put(ROWS, "US", rows // 2).put(o.PIXELS, "OW", b"".join(data[2 * columns * r:2 * columns * (r + 1)] for r in range(0, rows, 2)))


def slab_without_air(values_):
    rng = random.Random(sum(values_))  # no two images are equal
    return [int(rng.gauss(9000, 95)) for _ in values_]


def huge_lines(exam):
    """Parallel beams: 4096 bins at one angle in 120 slices ask for an image of 4096 x 4096 in each."""
    d = exam.objects[0]
    text = d[HEADER][1].decode()
    for key, value in (("number of slices", 120), ("number of angles", 1), ("number of radial bins", 4096)):
        at = text.index(key)
        end = text.index("\n", at)
        text = text[:at] + f"{key} := {value}" + text[end:]
    d.put(HEADER, "UT", text)
    whole(d, bytes(4 * 4096 * 120))


A, B, C_ = "SENDER-A", "SENDER-B", "SENDER-C"

# kind: (name, change of a good exam, answer, sentence); a sentence of None: the line about the delivery
DELIVERED = r"^case \d+ is delivered"
CASES = {
    "mg": [
        # numbers
        ("angle NaN", one(ANGLE, "DS", "NaN"), "held", r'\(0018,1510\).*"NaN" is not a number'),
        ("angle with a degree sign", one(ANGLE, "DS", b"12\xb0 "), "held", r'\(0018,1510\).*"12\?" is not a number'),
        ("one angle empty", one(ANGLE, "DS", ""), "held", r"angle \(0018,1510\).* is missing"),
        ("angles in 30 digits", lambda e: [d.put(ANGLE, "DS", d.text(ANGLE) + "0" * 24) for d in e.objects], CLEAN, DELIVERED),
        ("thickness with a unit", every(THICKNESS, "DS", "50 mm"), "held", r'\(0018,11A0\).*"50 mm" is not a number'),
        ("pitch 0", every(PITCH, "DS", "0\\0"), "held", r"\(0018,1164\) is 0\\+0;"),
        ("pitch negative", every(PITCH, "DS", "-0.68\\-0.68"), "held", r"\(0018,1164\) is -0.68\\+-0.68;"),
        ("pitch of another detector", every(PITCH, "DS", "0.1\\0.1"), "held", r"\(0018,1164\) is 0.1 mm, but Detector Element Spacing \(0018,7022\) 0.085 mm"),
        ("exposure 0", one(EXPOSURE_UAS, "IS", "0"), CLEAN, DELIVERED),
        ("exposure negative", one(EXPOSURE_UAS, "IS", "-4200"), CLEAN, DELIVERED),
        ("exposure in mixed units", one(EXPOSURE_UAS, "IS", "4"), CLEAN, DELIVERED),
        ("exposure that is no number", every(EXPOSURE_UAS, "IS", "many"), CLEAN, DELIVERED),
        ("source distance differs", one(SID, "DS", "700"), "held", r"\(0018,1110\) is '(700|655.5)' in .* and"),
        ("rows differ", thinned, "held", r"\(0028,0010\) is '(32|64)' in .* and '(64|32)' in"),
        ("65535 rows and columns", two(every(ROWS, "US", 65535), every(COLUMNS, "US", 65535)), "held", r"\(7FE0,0010\)"),
        ("high bit odd", every(HIGH_BIT, "US", 7), "held", r"\(0028,0102\)"),
        ("8 bits allocated", every(ALLOCATED, "US", 8), "held", r"\(0028,010[01]\)"),
        ("signed pixels", every(SIGNED, "US", 1), "held", r"\(0028,0103\) is 1"),
        ("colours", every(PHOTOMETRIC, "CS", "RGB"), "held", r"\(0028,0004\)"),
        ("MONOCHROME2", every(PHOTOMETRIC, "CS", "MONOCHROME2"), CLEAN, DELIVERED),
        ("sign of one image", one(SIGN, "SS", -1), "held", r"\(0028,1041\) is '-?1' in .* and '-?1' in"),
        ("no air", pixels(slab_without_air), "delivered, other image", "quantitative: False"),
        ("pixel padding of every value", two(every(PADDING, "US", 0), every(0x00280121, "US", 65535)), "held", r"no stored value in range"),
        ("images announced: three", every(IMAGES, "IS", "three"), "held", r'\(0020,1002\) ImagesInAcquisition: "three" is not a number'),
        ("images announced: -3, and in another attribute 3", every(IMAGES, "IS", "-3"), CLEAN, DELIVERED),
        ("fewer sent than announced", every(IMAGES, "IS", "4"), "held", "3 of 4 instances"),
        ("more sent than announced", every(IMAGES, "IS", "2"), "(delivered, other image; )?held", "3 (instances|projections)( are present)?, but"),
        ("announced numbers differ", one(IMAGES, "IS", "4"), "held", "contradict each other: [34] and [34] instances expected"),
        ("laterality of one image", one(LATERALITY, "CS", "R"), "held; held", "[12] of 3 instances"),
        ("a view without code", every(VIEW_CODE, "SQ", []), "held", r"the view is missing"),
        # character sets
        ("Japanese by escape sequences", two(every(CHARSET, "CS", "\\ISO 2022 IR 87"), every(NAME, "PN", b"Yamada^Tarou=\x1b$B;3ED\x1b(B^\x1b$BB@O:\x1b(B")),
         CLEAN, DELIVERED),
        ("an escape sequence without its set", every(NAME, "PN", b"Yamada^Tarou=\x1b$B;3ED\x1b(B"), CLEAN, DELIVERED),
        ("an unfinished escape sequence", two(every(CHARSET, "CS", "\\ISO 2022 IR 87"), every(NAME, "PN", b"Yamada=\x1b$B;")), CLEAN, DELIVERED),
        ("an unknown character set", two(every(CHARSET, "CS", "ISO_IR 999"), every(NAME, "PN", b"M\xfcller")), CLEAN, DELIVERED),
        ("UTF-8 that is none", two(every(CHARSET, "CS", "ISO_IR 192"), every(NAME, "PN", b"M\xfc\xffller^\xc3")), CLEAN, DELIVERED),
        ("GB18030", two(every(CHARSET, "CS", "GB18030"), every(NAME, "PN", b"Wang^XiaoDong=\xcd\xf5^\xd0\xa1\xb6\xab")), CLEAN, DELIVERED),
        ("control characters in the name", every(NAME, "PN", b"A\x01\x07\x7f^B\x0b"), CLEAN, DELIVERED),
        ("line ends in the ID", every(PATIENT_ID, "LO", b"A\r\nX-Event: held\r\n"), CLEAN, DELIVERED),
        ("backslash in a text", every(ADDRESS, "ST", "C:\\Users\\x\\"), CLEAN, DELIVERED),
        ("a name of 60000 characters", every(NAME, "PN", "N" * 60000), CLEAN, DELIVERED),
        ("an ID of 3000 characters", every(PATIENT_ID, "LO", "7" * 3000), CLEAN, DELIVERED),
        ("right to left", two(every(CHARSET, "CS", "ISO_IR 192"), every(NAME, "PN", "\u202eCNA^\u05d0\u05d1")), CLEAN, DELIVERED),
        ("NUL inside the ID", every(PATIENT_ID, "LO", b"AB\0CD "), CLEAN, DELIVERED),
        ("NUL inside the manufacturer", every(MAKER, "LO", b"SIE\0MENS"), "held", r"\(0008,0070\).*NUL"),
        ("the same name in two sets", two(every(CHARSET, "CS", "ISO_IR 100"), every(NAME, "PN", b"M\xfcller^A"), one(CHARSET, "CS", "ISO_IR 192"),
                                          one(NAME, "PN", b"M\xc3\xbcller^A")), CLEAN, DELIVERED),
        ("100 character sets", every(CHARSET, "CS", "\\".join(["ISO 2022 IR 100"] * 100)), CLEAN, DELIVERED),
        ("a name of 20 components", every(NAME, "PN", "^".join("ABCDEFGHIJKLMNOPQRST") + "=" + "=".join("ABC")), CLEAN, DELIVERED),
        # patients
        ("another patient by ID", one(PATIENT_ID, "LO", "SECRET-1"), "held", r"Patient ID \(0010,0020\) differs between instances/\S+ and instances/"),
        ("no patient in all images", two(every(NAME, "PN", ""), every(PATIENT_ID, "LO", "")), CLEAN, DELIVERED),
        ("birth date with points", one(BIRTH_DATE, "DA", "1960.11.30"), CLEAN, DELIVERED),
        ("an image of another study", other_study(1), "held; held", "[12] of 3 instances"),
        ("an image of another frame of reference", one(o.FRAME, "UI", "1.2.3.4.5"), "held; held", "[12] of 3 instances"),
        # duplicates
        ("an object twice", same_uid(0), "delivered, clean image(; 1 unassigned)?", "the same object, sent again|" + DELIVERED),
        ("a UID twice with other bits", same_uid(0, put={KVP: ("DS", "31")}), "delivered, clean image; 1 unassigned",
         "the UID is that of instance .* but the content differs"),
        ("a UID for two images of the exam", lambda e: e.objects[1].put(o.INSTANCE, "UI", e.objects[0].text(o.INSTANCE)), "held; 1 unassigned",
         "the UID is that of instance|2 of 3 instances"),
        ("an angle twice under a new UID", added(0), "(delivered, clean image; )?held",
         "4 (instances|projections)( are present)?, but|two projections at the same angle"),
        ("the exam by two senders at once", send_as(lambda x: [[(A, x), (B, x)]]), "delivered, clean image(; [1-6] unassigned)?", "the same object, sent again|" + DELIVERED),
        ("a third of it by each sender, twice", send_as(lambda x: [[(A, x[:2]), (B, x[1:]), (C_, [x[2], x[0]])]]),
         "delivered, clean image(; [1-6] unassigned)?", "the same object, sent again|" + DELIVERED),
        ("the exam again after its delivery", send_as(lambda x: [[(A, x)], [(A, x)]]), "delivered, clean image(; 3 unassigned)?", "sent again|" + DELIVERED),
        # senders
        ("one association for each image", send_as(lambda x: [[(A, [d]) for d in x]]), CLEAN, DELIVERED),
        ("in reverse", send_as(lambda x: [[(A, x[::-1])]]), CLEAN, DELIVERED),
        ("a pause that holds it", send_as(lambda x: [[(A, x[:1])], [(B, x[1:])]]), CLEAN, DELIVERED),
        ("a late image", two(added(0, put={ANGLE: ("DS", "5")}), send_as(lambda x: [[(A, x[:3])], [(A, x[3:])]])), "delivered, clean image; held",
         "4 instances, but the headers expect 3"),
        ("a late image of another patient", two(added(0, put={PATIENT_ID: ("LO", "SECRET-1")}), send_as(lambda x: [[(A, x[:3])], [(A, x[3:])]])),
         "delivered, clean image; held", r"Patient ID \(0010,0020\) differs|4 instances, but the headers"),
        # UIDs, dates, times
        ("a UID of 64 characters", one(o.INSTANCE, "UI", "1.2." + "3" * 60), CLEAN, DELIVERED),
        ("a study UID of 66 characters", every(o.STUDY, "UI", "1.2." + "4" * 62), "3 unassigned", r"\(0020,000D\)"),
        ("a study UID with a leading zero", lambda e: [d.put(o.STUDY, "UI", d.text(o.STUDY) + ".007") for d in e.objects], CLEAN, DELIVERED),
        ("a series UID with letters", every(o.SERIES, "UI", "1.2.series.3"), "3 unassigned", r"\(0020,000E\).* is '1.2.series.3', which is not a UID"),
        ("a study UID with a point at its end", lambda e: [d.put(o.STUDY, "UI", d.text(o.STUDY) + ".") for d in e.objects],
         CLEAN, DELIVERED),
        ("no study UID", drop(o.STUDY), "3 unassigned", r"\(0020,000D\) is missing"),
        ("a study date of month 13", every(STUDY_DATE, "DA", "20261399"), CLEAN, DELIVERED),
        ("a study date with hyphens", every(STUDY_DATE, "DA", "2026-06-01"), CLEAN, DELIVERED),
        ("a study in the year 9999", every(STUDY_DATE, "DA", "99991231"), CLEAN, DELIVERED),
        ("a time of 25:61", two(every(STUDY_TIME, "TM", "256199"), every(ACQUISITION_TIME, "TM", "25:61")), CLEAN, DELIVERED),
        ("no acquisition date", drop(ACQUISITION_DATE), CLEAN, DELIVERED),
    ],
    "bp": [
        ("fewer frames than groups", every(FRAMES, "IS", "2"), "held", r"\(7FE0,0010\) PixelData has 24576 bytes, but 2 frames"),
        ("more frames than groups", every(FRAMES, "IS", "4"), "held", r"\(7FE0,0010\) PixelData has 24576 bytes, but 4 frames"),
        ("frames: three", every(FRAMES, "IS", "three"), "held", r'\(0028,0008\) NumberOfFrames: "three" is not a number'),
        ("a frame without its group", lambda e: e.objects[0][PER_FRAME][1][1].pop(ISOCENTER), "held", r"is present in frame 1 and missing in frame 2"),
        ("a support that turns", frame(1, ISOCENTER, SUPPORT_ANGLE, "FD", 10.0), "held", r"\(0018,9545\) is '.*' in frame"),
        ("no groups at all", drop(PER_FRAME), "held", r"no source angle|frame 1"),
        ("two objects for one view", added(0), "(delivered, clean image; )?held",
         "2 instances, but the headers expect 1|2 Breast Projection objects for one view"),
    ],
    "pet": [
        ("no emission", lambda e: e.objects.remove(role(e, "EMISSION")), "held", "1 of 2 instances"),
        ("no attenuation", lambda e: e.objects.remove(role(e, "ATTENUATION")), "held", "1 of 2 instances"),
        ("an unknown format", every(FORMAT, "LO", "INTERFILE_9"), "2 unassigned", 'format "INTERFILE_9"; supported'),
        ("a factor NaN", floats(0, first(math.nan)), "held", r"ATTENUATION: plane 17, angle 24, radial bin 0: nan"),
        ("a factor negative", floats(0, first(-2.0)), "held", r"ATTENUATION: plane 17, angle 24, radial bin 0: -2"),
        ("a factor 0", floats(0, first(0.0)), "held", r"ATTENUATION: plane 17, angle 24, radial bin 0: 0"),
        ("counts negative", floats(1, first(-1.0)), "held", r"1 of \d+ bins of the data are negative, the least -1:"),
        ("counts NaN", floats(1, first(math.nan)), "held", r"data of plane 17, angle 24, radial bin 0: nan"),
        ("counts infinite", floats(1, first(math.inf)), "held", r"data of plane 17, angle 24, radial bin 0: inf"),
        ("no counts", floats(1, lambda v: [0.0] * len(v)), "held", r"no counts: all bins"),
        ("other bytes than the hash", lambda e: e.objects[1].put(CHUNK, "OB", bytes(len(e.objects[1][CHUNK][1]))), "held", "SHA-256"),
        ("0 radial bins", header("65", "0"), "held", r"matrix size \[1\] := 0; allowed"),
        ("1 angle", header("48", "1"), "held", "requires"),
        ("a scanner that nobody knows", two(every(MAKER, "LO", "ACME"), header("Number of rings", ";Number of rings", 1)), "held",
         'the header lacks: number of rings; no scanner .* manufacturer "ACME" and model "small"'),
        ("half-life 0", drug(HALF_LIFE, "DS", "0"), "delivered, other image", "Not corrected for decay: the half-life is not known"),
        ("half-life negative", drug(HALF_LIFE, "DS", "-6586"), "delivered, other image", "Not corrected for decay: the half-life is not known"),
        ("duration 0", every(DURATION, "IS", "0"), CLEAN, DELIVERED),  # the header has it
        ("duration negative", every(DURATION, "IS", "-600000"), CLEAN, DELIVERED),
        ("no duration", two(every(DURATION, "IS", "0"), header("image duration (sec)", ";image duration (sec)")), "held",
         r"duration of the acquisition is missing in Actual Frame Duration \(0018,1242\)"),
        ("a duration in minutes", header("image duration (sec)", "image duration (min)"), "held",
         r'"image duration \(min\)\[1\]" has another unit than the key that is known'),
        ("calibration NaN", every(CALIBRATION, "DS", "NaN"), "delivered, other image", 
         r"units: CNTS, warnings: Not in Bq/ml: no calibration factor \(its value is NaN\)"),
        ("dose negative", drug(DOSE, "DS", "-5"), CLEAN, r"No SUV can be computed: not in the data: injected dose \(its value is -5\)"),
        ("weight 0", every(WEIGHT, "DS", "0"), CLEAN, r"No SUV can be computed: not in the data: patient's weight \(its value is 0\)"),
        ("injected after the scan", two(drug(INJECTED, "TM", "235959"), drug(INJECTED_AT, "DT", "20990101000000")), CLEAN,
         r"SUVs computed from these data are wrong: the injection \(20990101000000\) is after the acquisition, which began at 20260601101500"),
        ("injected on day 99", drug(INJECTED_AT, "DT", "20260699091500"), CLEAN,
         r'Start DateTime \(0018,1078\) is "20260699091500", which is not a valid date and time: '),
        ("acquired in 1900", two(every(ACQUISITION_DATE, "DA", "19000101"), every(0x00080021, "DA", "19000101")), CLEAN, r"SUVs computed from these data are wrong: the injection \(20260601091500\) is after the acquisition"),
        ("acquired in the future", two(every(ACQUISITION_DATE, "DA", "21000101"), every(0x00080021, "DA", "21000101")), CLEAN, r"SUVs computed from these data are wrong: the injection \(20260601091500\) is \S+ half-lives before"),
        ("acquired on day 99", two(every(ACQUISITION_DATE, "DA", "20260699"), every(0x00080021, "DA", "20260699")), "held",
         r"start of the acquisition is missing, or not a date and time, in Acquisition Date and Time \(0008,0022\)"),
        ("acquired on day 99, with a series date", two(every(ACQUISITION_DATE, "DA", "20260699"),
         two(every(0x00080021, "DA", "20260601"), every(0x00080031, "TM", "101500"))), CLEAN, DELIVERED),
        ("a patient lying HFX", every(POSITION, "CS", "HFX"), "held", r'position is "HFX"'),
        ("a patient of another role", one(PATIENT_ID, "LO", "SECRET-1", 0), "held", r"Patient ID \(0010,0020\) differs between"),
        ("a centre of NaN", every(CENTRE, "FD", struct.pack("<3d", 0, math.nan, 0)), "held", "the scanner's centre"),
    ],
    "parallel": [
        ("a line NaN", floats(0, first(math.nan)), "held", "nan at slice 1, angle 0, radial bin 0"),
        ("a line infinite", floats(0, first(math.inf)), "held", "inf at slice 1, angle 0, radial bin 0"),
        ("a unit that is none", header("unit := 1/mm", "unit := stones"), CLEAN, "unit: stones"),
        ("lines of 4096 bins at one angle", huge_lines, "held", r"the result of 4096 x 4096 x 120 voxels has 4027 MB, but the data only 2\.0 MB; with matrix = 0, a result may have 500 MB"),
        ("no position of the patient", drop(POSITION), "held", r'position is ""'),
    ],
}


def role(exam, name):
    return next(d for d in exam.objects if d.text(ROLE) == name)


def interleaved(stage):
    """The images of two exams in turns on one association."""
    one_, other = Exam(stage, "mg"), Exam(stage, "mg")
    one_.kind = "mg"
    one_.objects = [d for pair in zip(one_.objects, other.objects) for d in pair]
    return outcome(stage, one_)


def doubled(stage):
    """Twice the number announced: two exams with one study and series."""
    exam, more = Exam(stage, "mg"), Exam(stage, "mg")
    exam.kind = "mg"
    for i, d in enumerate(more.objects):
        for tag in (o.STUDY, o.SERIES, o.FRAME):
            d.put(tag, "UI", exam.objects[0].text(tag))
        d.put(ANGLE, "DS", f"{-20 + 15 * i}")
    exam.objects += more.objects
    return outcome(stage, exam)


def study_of_another(stage):
    """A study UID that another patient has already."""
    exam, later = Exam(stage, "mg"), Exam(stage, "mg")
    exam.kind = "mg"
    for d in later.objects:
        d.put(o.STUDY, "UI", exam.objects[0].text(o.STUDY)).put(PATIENT_ID, "LO", "SECRET-1").put(NAME, "PN", "Geheim^Vera")
    exam.sent = [[(A, exam.objects)], [(A, later.objects)]]
    exam.objects = exam.objects + later.objects
    return outcome(stage, exam)


def announced_otherwise(stage):
    """The data set's SOP Instance UID is not that of the request."""
    exam = Exam(stage, "mg")
    exam.kind = "mg"
    d = exam.objects[0]
    sent = d.sent()
    sent.uid = sent.uid + "8"
    acknowledged, _ = peer.store_all(stage.node.port, [sent])
    stage.ledger.add(acknowledged)
    d.put(o.INSTANCE, "UI", sent.uid)
    exam.objects = [d]
    jobs, unassigned = wait_for("it is classified", lambda: settled(stage, exam, set(acknowledged)), 60, 0.05)
    for text in unassigned:
        stage.quote(text)
    return f"{len(jobs)} jobs; {len(unassigned)} unassigned"


FURTHER = [
    hostile.Case("mg: images of two exams in turns", interleaved, "delivered, clean image; delivered, clean image", DELIVERED),
    hostile.Case("mg: twice the number announced", doubled, "(delivered, clean image; )?held", "[456] (instances|projections)( are present)?, but"),
    hostile.Case("mg: a study UID of another patient", study_of_another, "delivered, clean image; held", r"differ between this case and case \d+ of the same study"),
    hostile.Case("mg: another UID in the request", announced_otherwise, "0 jobs; 1 unassigned", "the data set's SOP Instance UID is '.*', but that of the C-STORE"),
]


def case_of(kind, name, change, answer, sentence):
    def act(stage):
        exam = Exam(stage, kind)
        exam.kind = kind
        change(exam)
        return outcome(stage, exam)
    return hostile.Case(f"{kind}: {name}", act, answer, sentence)


def cases_of(_rng):
    return [case_of(kind, *row) for kind, rows in CASES.items() for row in rows] + FURTHER


class Stage(hostile.Stage):
    """With one simulated exam of each kind, and what the node makes of it."""

    def start(self, short):
        super().start(short)
        self.made, self.clean = o.Exams(os.path.join(self.folder, "kinds")), {}
        for kind in ("mg", "bp", "pet", "parallel"):
            exam = Exam(self, kind)
            exam.kind = kind
            self.clean[kind] = None
            answer = outcome(self, exam)
            check(answer == "delivered, other image", f"a clean exam of kind {kind}: {answer}")
            number = c.jobs_of(self.node.spool, exam.objects[0].text(o.STUDY))[0]
            self.clean[kind] = values(self, next(j for j in self.node.jobs() if j["id"] == number))


def stage_of(folder):
    archive = peer.Archive()
    node = Node(os.path.join(folder, "node"), archive.port, quiet_time=0.5, acse_timeout=5, dimse_timeout=5)
    node.more_protocols = (', { name = "quick-pet"; kind = "pet"; algorithm = "mlem"; iterations = 1; matrix = 32; }'
                           ', { name = "quick-parallel"; kind = "parallel"; algorithm = "fbp"; }')
    node.more_routes = ''.join(f', {{ name = "{k}"; kind = "{k}"; protocols = [ "quick-{k}" ]; destinations = [ "pacs" ]; }}' for k in ("pet", "parallel"))
    node.write_conf()
    return Stage(folder, node, archive)
