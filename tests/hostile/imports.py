# SPDX-License-Identifier: Apache-2.0
"""Headers, data files, pictures and options that are made to stop, exhaust or mislead `tomonode import`: sizes, lines, names, files that
are none. (Values that a header cannot have: tests/node/format.)

No node takes part. Each case starts the program once and states its exit code and the sentence that it must write. Beside, in each case: no crash;
one sentence, in UTF-8 and without control characters; no object is left of what was refused; at most CPU_LIMIT seconds of processor time, which a
busy machine does not change, and MEMORY_LIMIT bytes; an end (a program that waits for ever is killed)."""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

import hostile
from tools import node_harness as h
from tools.node_harness import PATIENCE, TOMONODE, check

TITLE, PART = "Imports", 8
CPU_LIMIT = 2 * PATIENCE  # s; a usual import takes 0.05 s
MEMORY_LIMIT = 128 << 20  # a usual import takes 40 MB
END = 120 * PATIENCE  # s

PET = """!INTERFILE :=
name of data file := data.s
!type of data := PET
imagedata byte order := LITTLEENDIAN
!PET data type := Emission
applied corrections := {arc correction}
!number format := float
!number of bytes per pixel := 4
number of dimensions := 4
matrix axis label [4] := segment
!matrix size [4] := 2
matrix axis label [3] := view
!matrix size [3] := 4
matrix axis label [2] := axial coordinate
!matrix size [2] := {5,1}
matrix axis label [1] := tangential coordinate
!matrix size [1] := 3
minimum ring difference per segment := {-1,2}
maximum ring difference per segment := {1,2}
Number of rings := 3
Number of detectors per ring := 16
Inner ring diameter (cm) := 20
Average depth of interaction (cm) := 0.7
Distance between rings (cm) := 0.654
Default bin size (cm) := 0.4
View offset (degrees) := 2.5
image scaling factor[1] := 1
data offset in bytes[1] := 0
number of time frames := 1
!END OF INTERFILE :=
"""
LINES = """!INTERFILE :=
!imaging modality := CT
name of data file := data.s
!type of data := PARALLEL
imagedata byte order := LITTLEENDIAN
!number format := float
!number of bytes per pixel := 4
!number of slices := 1
!number of angles := 24
!number of radial bins := 3
!bin size (mm) := 1
!END OF INTERFILE :=
"""
# Between this process and the program: the largest memory of a process counts that of its parent when it was forked.
WITNESS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)
pid = os.posix_spawnp(sys.argv[3], sys.argv[3:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as f:
    print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=f)
"""
DATA = struct.pack("<72f", *range(72))
DONE, REFUSED, USAGE, NOT_FOUND = "exit 0", "exit 4", "exit 2", "exit 8"
IMPORTED = r"(?m)^1 object in out$"


class Desk:
    """A folder with a header and its data, in which the program runs."""

    def __init__(self, folder):
        self.folder = folder
        self.text = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        h.write_file(self.path(name), data.encode("latin-1") if isinstance(data, str) else data)

    def tool(self, *arguments):
        """Run `tomonode import`; its exit code, and what was wrong with how it ended."""
        seconds_max = str(int(CPU_LIMIT) + 5)  # a loop without end is killed
        p = subprocess.Popen([sys.executable, "-SEc", WITNESS, self.path("usage"), seconds_max, TOMONODE, "import", *arguments], cwd=self.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "TOMONODE_CONF": ""}, start_new_session=True)
        killer = threading.Timer(END, os.killpg, (p.pid, signal.SIGKILL))
        killer.start()
        output = p.communicate()[0]
        killer.cancel()
        check(p.returncode == 0, f"was killed after {END} s: {output[-300:]}")
        code, seconds, kilobytes = map(float, h.read_file(self.path("usage")).split())
        check(code >= 0, f"ended by signal {-code:.0f}: {output[-300:]}")
        check(seconds < CPU_LIMIT, f"{seconds:.1f} s of processor time")
        check(h.sanitizer() or kilobytes < MEMORY_LIMIT >> 10, f"{kilobytes / 1024:.0f} MB of memory")
        self.text = output.decode()  # refuses what is not UTF-8
        check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", self.text), f"control characters: {self.text!r}")
        return int(code)

    def answer(self, *arguments):
        out = self.path("out")
        code = self.tool(*arguments, *(() if "-o" in arguments else ("-o", "out")))
        made = os.listdir(out) if os.path.isdir(out) else []
        check(bool(made) == (code == 0), f"exit {code}, and in the folder {made}")
        check(code == 0 or self.text.startswith("tomonode import: "), f"no sentence: {self.text}")
        return f"exit {code}"


def with_header(header, *options, data=DATA, files=()):
    """header: its text; data: of data.s, None: the file is not made; files: functions that make more, or others."""
    def act(desk):
        desk.write("x.hs", header)
        if data is not None:
            desk.write("data.s", data)
        for make in files:
            make(desk)
        return desk.answer("x.hs", *options)
    return act


def swap(before, after, base=PET, **more):
    check(before in base, f"'{before}' is not in the header")
    return with_header(base.replace(before, after), **more)


def size(key, value, base=PET):
    """A header with another value of this key, which it has."""
    text, n = re.subn(rf"^({re.escape(key)} := ).*$", lambda m: m[1] + value, base, flags=re.M)
    check(n == 1, key)
    return with_header(text)


def added(*lines, base=PET, **more):
    return swap("!END OF", "\n".join(lines) + "\n!END OF", base, **more)


def fifo(name):
    return lambda desk: os.mkfifo(desk.path(name))


def folder(name):
    return lambda desk: os.mkdir(desk.path(name))


def link(name, to):
    return lambda desk: os.symlink(to, desk.path(name))


def sparse(name, n):
    def make(desk):
        with open(desk.path(name), "ab") as f:
            f.truncate(n)
    return make


def beside(header):
    """y.hs with data of its own: equal data of two roles are refused before anything else."""
    def make(desk):
        desk.write("y.hs", header.replace("data.s", "y.s"))
        desk.write("y.s", DATA[::-1])
    return make


def alone(name, make, *options):
    """The program gets this file, which `make` writes: bytes, or a function of the desk."""
    def act(desk):
        desk.write("x.hs", PET)
        desk.write("data.s", DATA)
        if callable(make):
            make(desk)
        else:
            desk.write(name, make)
        return desk.answer(name, *options)
    return act


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, data=b"\0", depth=8):
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


CASES = [
    # sizes
    ("the largest sizes of all axes", with_header(re.sub(r"(size \[4\] :=).*", r"\1 1", re.sub(r"(size \[2\] :=).*", r"\1 65535", re.sub(
        r"(size \[3\] :=).*", r"\1 4096", re.sub(r"(size \[1\] :=).*", r"\1 65535", re.sub(r"(per segment :=).*", r"\1 0", PET)))))),
     REFUSED, r"data\.s has 288 bytes; its header requires \d{14} "),
    ("the largest counts of line integrals", added("slice spacing (mm) := 1", base=LINES.replace(":= 1\n!number of angles := 24", ":= 65535\n!number of angles := 16384").replace(
        "bins := 3", "bins := 65535").replace("pixel := 4", "pixel := 8")), REFUSED, r"65535|16384"),
    ("an offset of half a byte", size("data offset in bytes[1]", "0.5"), REFUSED, r"data offset of 0\.5 bytes"),
    ("an offset of 10^15", size("data offset in bytes[1]", "1" + 15 * "0"), REFUSED, "its header requires 288 .* after an offset of 1000000000000000"),
    ("11 timing positions", swap("dimensions := 4", "dimensions := 5\nmatrix axis label [5] := timing positions\n!matrix size [5] := 11"), REFUSED, "11 timing positions|TOF|time of flight"),
    ("1025 scaling factors", size("image scaling factor[1]", "{" + ",".join(1025 * "1") + "}"), REFUSED, r"line 27: image scaling factor\[1\] := \{1,1.*allowed: at most 1024"),
    ("16000 angles for 24", added("angles (degrees) := {" + ",".join(16000 * "1") + "}", base=LINES), REFUSED, r"angles \(degrees\) := .*allowed: at most 24 numbers"),
    # segment tables
    ("planes that the rings do not have", size("!matrix size [2]", "{4,2}"), REFUSED, "segment 0 has 4 planes"),
    ("a ring difference of 65535", size("maximum ring difference per segment", "{1,65535}"), REFUSED, "with rings counted from the bed: .*ring differences -65535 to -2; 3 rings"),
    # lines
    ("an empty header", with_header(""), REFUSED, r"x\.hs: an empty header"),
    ("60000 empty lines in an open list", with_header("!INTERFILE :=\nx := {" + 60000 * "\n"), REFUSED, '"name of data file" is missing'),
    ("20000 lines that continue", with_header("!INTERFILE :=\nx := a" + 20000 * " \\\n"), REFUSED, '"name of data file" is missing'),
    ("30000 lines of an open list", with_header("!INTERFILE :=\nx := {" + 30000 * "a\n"), REFUSED, '"name of data file" is missing'),
    ("a line of 65000 letters", with_header("!INTERFILE := " + 65000 * "x"), REFUSED, '"name of data file" is missing'),
    ("21000 keys", with_header("!INTERFILE :=\n" + 21000 * ":=\n"), REFUSED, "more than 16384 keys"),
    ("a key of 60000 letters", added(60000 * "k" + " := 1"), DONE, IMPORTED),
    ("a header of 100 MB", with_header(PET, files=[sparse("x.hs", 100 << 20)]), REFUSED, r"x\.hs has more than 524288 bytes"),
    ("a header with a byte 0", swap("!type", "\0!type"), REFUSED, "contains a byte 0"),
    ("a header in UTF-16", with_header(PET.encode("utf-16")), REFUSED, "line 1: byte 0xFF is not UTF-8"),
    ("noise", with_header(bytes(range(1, 256)) * 20), REFUSED, r"x\.hs: line 2: byte 0x80 is not UTF-8"),
    ("control characters", with_header(bytes(range(1, 128)) * 20), REFUSED, r"x\.hs: line 1: no ':=' in \"\?+\""),
    ("escape sequences", added("\x1b[2J\x1b]0;x\x07\xc2\x9b31m"), REFUSED, r"no ':=' in \"\?\[2J"),
    ("a comment in Latin-1", added("originating system := caf\xe9"), REFUSED, r"x\.hs: line 30: byte 0xE9 is not UTF-8"),
    ("a comment in UTF-8", added("originating system := caf\xc3\xa9"), DONE, IMPORTED),
    ("a unit that is not ASCII", added("unit := \xc2\xb5m", base=LINES), REFUSED, "unit := .*allowed: printable ASCII"),
    ("a header that includes itself", added("include := x.hs", "@include \"x.hs\" := x.hs"), DONE, IMPORTED),  # no such key
    ("keys after the end", with_header(PET + "!INTERFILE :=\n!matrix size [1] := 9\n"), DONE, IMPORTED),
    ("250 bytes of corrections", size("applied corrections", "{" + ",".join(60 * ["norm"]) + "}"), REFUSED, "line 6: applied corrections := .*at most 250 bytes"),
    # the data file
    ("data that are missing", with_header(PET, data=None), REFUSED, r"cannot open data\.s: No such file"),
    ("data a byte too short", with_header(PET, data=DATA[:-1]), REFUSED, r"data\.s has 287 bytes; its header requires 288 \(.*\) after an offset of 0"),
    ("data a byte too long", with_header(PET, data=DATA + b"\0"), REFUSED, r"data\.s has 289 bytes; its header requires 288"),
    ("data of 0 bytes", with_header(PET, data=b""), REFUSED, r"data\.s has 0 bytes; its header requires 288"),
    ("data of 1 TB", with_header(PET, files=[sparse("data.s", 1 << 40)]), REFUSED, r"data\.s has 1099511627776 bytes; its header requires 288"),
    ("data that are a folder", with_header(PET, data=None, files=[folder("data.s")]), REFUSED, r"data\.s is not a regular file"),
    ("data that are a pipe", with_header(PET, data=None, files=[fifo("data.s")]), REFUSED, r"data\.s is not a regular file"),
    ("data that are a link to a pipe", with_header(PET, data=None, files=[fifo("p"), link("data.s", "p")]), REFUSED, r"data\.s is not a regular file"),
    ("data that are a link to /dev/zero", with_header(PET, data=None, files=[link("data.s", "/dev/zero")]), REFUSED, r"data\.s is not a regular file"),
    ("data that are a link to nothing", with_header(PET, data=None, files=[link("data.s", "nothing")]), REFUSED, r"cannot open data\.s: No such file"),
    ("data that are a link to themselves", with_header(PET, data=None, files=[link("data.s", "data.s")]), "exit [14]", r"cannot open data\.s: Too many levels"),
    ("data that are a link to a file", with_header(PET, data=None, files=[lambda d: d.write("real", DATA), link("data.s", "real")]), DONE, IMPORTED),
    ("data that are the header", swap("data.s", "x.hs"), REFUSED, r"x\.hs has \d+ bytes; its header requires 288"),
    *((f"data in {value}", swap("data.s", value), REFUSED, rf"name of data file := {re.escape(value)}; allowed: a file in the header's folder or below it")
      for value in ("../data.s", "/dev/zero", "a\\data.s", ".", "..")),
    ("a data file without a name", swap("data.s", ""), REFUSED, '"name of data file" is missing'),
    ("a data file with a name in Latin-1", swap("data.s", "d\xe4ta.s"), REFUSED, "line 2: byte 0xE4 is not UTF-8"),
    ("a data file with a name of 300 letters", swap("data.s", 300 * "d"), REFUSED, "line 2: name of data file := d+; supported: at most 255 bytes"),
    # the header as a file
    ("a header that is a folder", alone("a.hs", folder("a.hs")), REFUSED, r"a\.hs is not a regular file, but a folder"),
    ("a header that is a pipe", alone("a.hs", fifo("a.hs")), REFUSED, r"a\.hs is not a regular file"),
    ("a header that is a link to /dev/zero", alone("a.hs", link("a.hs", "/dev/zero")), REFUSED, r"a\.hs is not a regular file"),
    ("a header that is missing", alone("a.hs", lambda desk: None), NOT_FOUND, r"cannot open a\.hs: No such file"),
    ("a header that is its data", alone("data.s", lambda desk: None), REFUSED, r"data\.s: contains a byte 0"),
    # options
    ("additive values that are a pipe", with_header(PET, "--additive", "p", files=[fifo("p")]), REFUSED, "p is not a regular file"),
    ("an image as attenuation", with_header(PET, "--attenuation", "y.hs", files=[lambda d: d.write("y.hs", PET.replace("Emission", "Image"))]), REFUSED, r"y\.hs: number of dimensions := 4"),
    ("line integrals as attenuation", with_header(PET, "--attenuation", "y.hs", files=[beside(LINES)]), REFUSED,
     "parallel beams have one header"),
    ("--like a pipe", with_header(PET, "--like", "p", files=[fifo("p")]), REFUSED, "p: .*not a regular file"),
    ("--like a pipe with the name of a picture", with_header(PET, "--like", "p.png", files=[fifo("p.png")]), REFUSED, r"p\.png: .*not a regular file"),
    ("--like the header", with_header(PET, "--like", "x.hs"), REFUSED, r"x\.hs.*DICOM"),
    ("--set a weight of 1e400", with_header(PET, "--set", "PatientWeight=1e400"), USAGE, "PatientWeight"),
    ("201 times --set", with_header(PET, *(201 * ("--set", "PatientWeight=70"))), USAGE, "more than 200 values"),
    ("chunks of 10^30 bytes", with_header(PET, "--chunk", "1" + 30 * "0"), USAGE, "--chunk 10+: 2 to 536870912 bytes"),
    ("chunks of -2 bytes", with_header(PET, "--chunk", "-2"), USAGE, "--chunk -2"),
    # pictures
    ("a picture that is a pipe", alone("a.png", fifo("a.png")), REFUSED, r"a\.png is not a regular file"),
    ("a picture that is a folder", alone("a.pgm", folder("a.pgm")), REFUSED, r"a\.pgm is not a regular file"),
    ("a PNG of 2^31 - 1 columns", alone("a.png", png((1 << 31) - 1, 1)), REFUSED, r"a\.png: "),
    ("a PNG of 60000 x 60000", alone("a.png", png(60000, 60000)), REFUSED, r"a\.png: .*60000"),
    ("a PNG of 0 x 0", alone("a.png", png(0, 0)), REFUSED, r"a\.png: "),
    ("a PNG cut off", alone("a.png", png(100, 100, 10100 * b"\1")[:60]), REFUSED, r"a\.png: "),
    ("a PNG of a few values", alone("a.png", png(100, 100, b"\0\1\2")), REFUSED, r"a\.png: "),
    ("a PGM of 10^9 columns", alone("a.pgm", "P5 1000000000 1 255\n"), REFUSED, r"a\.pgm: "),
    ("a PGM that is one comment of 50 MB", alone("a.pgm", "P5 #" + (50 << 20) * "c"), REFUSED, r"a\.pgm: the header of a PGM"),
]


def cases_of(_rng):
    return [hostile.Case(*row) for row in CASES]


def run(case):
    """(what was wrong or None, answer, sentence)"""
    place = tempfile.mkdtemp(prefix="tomonode-import-")
    desk = Desk(place)
    try:
        answer = case.act(desk)
        check(re.fullmatch(case.answer, answer), f"the answer was '{answer}', expected '{case.answer}': {desk.text}")
        check(re.search(case.sentence, desk.text.replace("tomonode import: ", "", 1)), f"no sentence like '{case.sentence}': {desk.text}")
        return None, answer, desk.text.replace("tomonode import: ", "", 1)[:300]
    except AssertionError as e:
        return str(e), "", ""
    finally:
        shutil.rmtree(place, ignore_errors=True)


def play(cases, results):
    wrong = []
    for case in cases:
        bad, answer, sentence = run(case)
        results.append((case.name, answer, sentence))
        wrong += [f"{case.name}: {bad}"] if bad else []
    return wrong, (len(wrong), "-", "-")
