# SPDX-License-Identifier: Apache-2.0
"""`tomonode export -o FILE.petsird`: every count of sinograms, and every event of a Siemens mMR, is in the file, in its
pair of detectors; what is imported again is the same, bit for bit; petsird's own reader counts the same, where it is
installed; what cannot be list mode is refused."""
import glob
import os

import numpy as np
import pydicom

from tools import dbt_tools as tools
from tools import mmr_tools as mmr
from tools import petsird_tools as p
from tools.node_harness import read_file, write_file

SMALL = ("--scanner", "small", "--phantom", "cylinder", "--radius", "40", "--length", "40", "--counts", "20000")


def exported(out, *paths, config=None):
    """The header, the blocks and the printed line."""
    done = tools.run("export", *(("-c", config) if config else ()), "-o", out, *paths)
    reader = p.Reader(read_file(out, "rb"))
    assert reader.schema.text == p.stored("ring", "0.12.0")[1], "the schema is not that of petsird 0.12"
    return *reader.file(), done.stdout


def emissions(folder):
    """{time frame: data of EMISSION}; 0: without frames."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.dcm")):
        block = pydicom.dcmread(path).private_block(0x0071, "TOMONODE SINOGRAM 1")
        if block[3].value == "EMISSION":
            found[block[0x19].value if 0x19 in block else 0] = block[0x10].value[:block[0x13].value]
    return found


def by_petsird(path, prompts, delayeds, failures):
    """The same events, in the same order, by the package petsird 0.12, where it is installed."""
    try:
        import petsird
    except ImportError:
        return
    with petsird.BinaryPETSIRDReader(path) as reader:
        reader.read_header()
        found = ([], [])
        for block in reader.read_time_blocks():
            for to, lists in zip(found, (block.value.prompt_events, block.value.delayed_events)):
                to += [(*(int(x) for x in e.detection_bins), int(e.tof_idx)) for e in lists[0][0]]
    tools.check(found == (prompts, delayeds), f"petsird reads other events from {os.path.basename(path)}", failures)


def simulated(out, *options):
    tools.run("simulate", "pet", *SMALL, "--petsird", *options, "-o", out)
    return os.path.join(out, "scan.petsird")


def test_every_count_is_an_event(folder, failures):
    for name, options in (("plain", ()), ("TOF", ("--tof", "5,600,400", "--randoms", "0.3"))):
        out, path, back = (os.path.join(folder, name + ending) for ending in ("", ".petsird", "-back"))
        source = simulated(out, *options)
        _, blocks, printed = exported(path, out)
        (counts,) = emissions(out).values()
        n, prompts = int(np.frombuffer(counts, "<f4").sum()), p.events_of(blocks)
        events = p.events_of(p.Reader(read_file(source, "rb")).file()[1])
        tools.check(f"{n} prompts, 0 delayed events, 1 time block" in printed, printed, failures)
        tools.check(("not written: ADDITIVE" in printed) == (name == "TOF"), printed, failures)
        tools.check(sorted(prompts) == sorted(events), f"{name}: the events are not those of the simulation", failures)
        tools.check(blocks[0][1]["timeInterval"] == {"start": 0, "stop": 600000},
                    f"{name}: {blocks[0][1]['timeInterval']}", failures)
        by_petsird(path, prompts, [], failures)
        tools.run("import", "--petsird", path, "--radial", "65", "-o", back)
        tools.check(emissions(back) == {0: counts}, f"{name}: the import has other counts", failures)


def test_time_frames_are_blocks(folder, failures):
    first, path, second = (os.path.join(folder, name) for name in ("frames", "frames.petsird", "frames-back"))
    source = simulated(os.path.join(folder, "plain"))
    table = "(20),2x100,(50),300"
    tools.run("import", "--petsird", source, "--radial", "65", "--frames", table, "-o", first)
    _, blocks, printed = exported(path, first)
    times = [(b[1]["timeInterval"]["start"], b[1]["timeInterval"]["stop"]) for b in blocks]
    tools.check(times == [(0, 0), (20000, 120000), (120000, 220000), (270000, 570000)], f"{times}", failures)
    tools.run("import", "--petsird", path, "--radial", "65", "--frames", table, "-o", second)
    tools.check(len(emissions(first)) == 3 and emissions(first) == emissions(second),
                f"frames have other counts: {printed}", failures)


def events_of_words(words):
    """Prompts and delayeds as pairs of detection bins, the larger one first: ring + rings crystal. Crystals by STIR's
    numbering: the second detector of the bin v + floor(t / 2), the first v - floor((t + 1) / 2) + n / 2."""
    found = ([], [])
    for word in words:
        if word >> 31:
            continue
        bin_ = word & (mmr.PROMPT - 1)
        (far_1,
         far_2), v, t = mmr.PAIRS[bin_ // (mmr.VIEWS
                                           * mmr.BINS)], bin_ // mmr.BINS % mmr.VIEWS, bin_ % mmr.BINS - mmr.BINS // 2
        ring_1, ring_2 = mmr.RINGS - 1 - far_1, mmr.RINGS - 1 - far_2  # the scanner counts from the depth of the gantry
        ends = (ring_1 + mmr.RINGS * ((v + t // 2) % mmr.CRYSTALS),
                ring_2 + mmr.RINGS * ((v - (t + 1) // 2 + mmr.CRYSTALS // 2) % mmr.CRYSTALS))
        found[not word & mmr.PROMPT].append((max(ends), min(ends), 0))
    return found


def test_events_of_an_mmr(folder, failures):
    rng, raw, path = np.random.default_rng(7), os.path.join(folder, "mmr"), os.path.join(folder, "mmr.petsird")
    os.mkdir(raw)
    words = mmr.words_of(rng, 20000)[1:]  # the first events come before the first time mark
    words += [mmr.event(0, v, 100) for v in range(250)] * 8
    mmr.write_list(os.path.join(raw, "list.dcm"), words)
    mmr.write_norm(os.path.join(raw, "norm.dcm"), mmr.Norm(rng))
    header, blocks, printed = exported(path, raw)
    found, expected = (p.events_of(blocks), p.events_of(blocks, "delayedEvents")), events_of_words(words)
    tools.check(found == expected, "the events are not those of the words", failures)
    tools.check(f"{len(expected[0])} prompts, {len(expected[1])} delayed events" in printed
                and "MULTIPLICATIVE" in printed, printed, failures)
    marks = [w & 0x1FFFFFFF for w in words if w >> 29 == 4]
    starts = [b[1]["timeInterval"]["start"] for b in blocks]
    tools.check(starts == [0] + [m - marks[0] for m in marks], f"{len(starts)} blocks for {len(marks)} time marks",
                failures)
    live = np.array(header["scanner"]["detectionEfficiencies"]["detectionBinEfficiencies"][0])
    gaps = (np.arange(live.size) // mmr.RINGS) % 9 == 0
    tools.check(np.array_equal(live == 0, gaps) and live[~gaps].min() == 1, "gaps are not those of the blocks",
                failures)
    by_petsird(path, *expected, failures)
    conf, direct, back = (os.path.join(folder, name) for name in ("direct.conf", "direct.hs", "mmr-back"))
    write_file(conf, 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; } );\n')
    tools.run("export", "-c", conf, "-o", direct, raw)
    tools.run("import", "--petsird", path, "--span", "1", "--max-difference", "0", "--radial", "344", "-o", back)
    (counts,) = emissions(back).values()
    tools.check(np.array_equal(np.fromfile(direct[:-3] + ".s", "<u4"), np.frombuffer(counts, "<f4")),
                "the import has other counts", failures)


def test_what_is_no_list_mode_is_refused(folder, failures):
    out = os.path.join(folder, "refused.petsird")

    def refuse(says, *paths):
        done = tools.run("export", "-o", out, *paths, ok=(4,))
        tools.check(says in done.stderr and not os.path.exists(out), f"{says}: {done.stderr}", failures)

    direct = os.path.join(folder, "direct.conf")
    write_file(direct, 'scanners = ( { name = "small"; span = 1; max_difference = 0; } );\n')
    for name, options, says in (("fraction", (*SMALL, "--petsird"), "list mode can only be made of counts"),
                                ("span", SMALL, "in one segment"),
                                ("arc", (*SMALL, "-c", direct), "48 angles with arc correction")):
        raw = os.path.join(folder, name)
        tools.run("simulate", "pet", *options, "-o", raw)
        if name == "fraction":
            header = os.path.join(raw, "half.hs")
            tools.run("export", "-o", header, raw)
            data = np.fromfile(header[:-3] + ".s", "<f4")
            data[np.flatnonzero(data)[0]] += 0.5
            data.tofile(header[:-3] + ".s")
            raw += "-imported"
            tools.run("import", header, "--set", "ActualFrameDuration=1000", "-o", raw)
        refuse(says, raw)
    marks, gated = os.path.join(folder, "marks"), os.path.join(folder, "gated")
    write_file(marks, "".join(f"{ms}\n" for ms in range(1000, 600000, 20000)))
    tools.run("import", "--petsird", simulated(os.path.join(folder, "plain")), "--radial", "65", "--gates", "2",
              "--marks", marks, "-o", gated)
    refuse("2 gates", gated)
    lines = os.path.join(folder, "lines")
    tools.run("simulate", "parallel", "--angles", "4", "--slices", "1", "-o", lines)
    refuse("no list mode", lines)
    norm = mmr.write_norm(os.path.join(folder, "norm.dcm"), mmr.Norm(np.random.default_rng(7)))
    refuse("list mode (PET_LISTMODE) of the acquisition is missing", norm)
