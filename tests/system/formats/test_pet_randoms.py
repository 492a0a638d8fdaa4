# SPDX-License-Identifier: Apache-2.0
"""Randoms of PET from delayed coincidences and from singles: simulated detectors whose singles differ, as many randoms
as true coincidences. The image with the correction has the mean of one without randoms and nothing beside the phantom;
without the correction it has neither. With TOF bins, time frames, beds, an mMR; where the data bring randoms, or have
no delayed coincidences, a sentence says so."""
import glob
import json
import os

import numpy as np
import pydicom
import pytest

from tools import mmr_recon as mmr
from tools import node_harness as h
from tools.node_harness import check
from tools.pet_tools import run

h.need(h.TOMONODE)

SCANNER = """scanners = ( { name = "pairs"; manufacturer = "tomonode"; model = "pairs"; rings = 8; ring_spacing = 6.5;
  radius = 100.0; interaction_depth = 5.0; detectors = 96; bin = 3.43; radial = 65; angles = 48;
  span = 3; max_difference = 7; arc_corrected = false; } );
"""
COUNTS = 2e7
QUICK = ("--device", "cpu", "--protocol", "pet-osem", "--set", "matrix=48", "--set", "iterations=4", "--set",
         "subsets=8", "--set", "postfilter=8")
RANDOMS = ("--set", "corrections=randoms")
# The mean of the phantom against the image without randoms, and that of the air around it, over the phantom
BIAS, AIR = 0.01, 0.02
NEITHER = "Not corrected for randoms: the data have neither delayed coincidences nor singles nor a background."


def conf(folder):
    path = os.path.join(folder, "pairs.conf")
    h.write_file(path, SCANNER)
    return path


def simulate(folder, name, *options, counts=COUNTS):
    out = os.path.join(folder, name)
    run("simulate", "pet", "-c", conf(folder), "--scanner", "pairs", "--phantom", "cylinder", "--radius", 55,
        "--length", 200, "--counts", counts,
        "--attenuation", *options, "-o", out)
    return out


def recon(out, *paths, options=(), ok=(0,)):
    """`tomonode recon --json`: what it says of the case, the volume, its first object."""
    done = run("recon", "-c", conf(os.path.dirname(out)), "--json", "-o", out, *QUICK, *options, *paths, ok=ok)
    images = sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(out, "*.dcm"))), key=lambda d: d.InstanceNumber)
    volume = np.array([d.pixel_array * float(d.RescaleSlope) for d in images])
    return json.loads(done.stdout), volume, images[0] if images else None


def details_of(document):
    return document["cases"][0]["pet"]


def means(volume):
    """Of the middle slices: inside of the cylinder, and around it, inside of the field of view."""
    n = volume.shape[1]
    x = (np.arange(n) - (n - 1) / 2) / (n / 2)
    radius = np.hypot(x[:, None], x[None, :])
    middle = volume[len(volume) // 3:-(len(volume) // 3)]
    return middle[:, radius < 0.4].mean(), middle[:, (radius > 0.72) & (radius < 0.92)].mean()


def check_case(folder, name, *options, kind="delayeds", method="DLYD", unused="The delayed coincidences were"):
    _, reference, _ = recon(os.path.join(folder, name + "-0"), simulate(folder, name + "-none", *options))
    source = simulate(folder, name + "-data", "--randoms", 1, "--" + kind, *options)
    document, corrected, image = recon(os.path.join(folder, name + "-1"), source, options=RANDOMS)
    _, plain, bare = recon(os.path.join(folder, name + "-2"), source)
    (inside, around), (wanted, _), (without, air) = means(corrected), means(reference), means(plain)
    print(f"  {name}: bias {inside / wanted - 1:+.4f} (uncorrected {without / wanted - 1:+.3f}), around "
          f"{around / wanted:.4f} (uncorrected {air / wanted:.3f})",
          flush=True)
    check(abs(inside / wanted - 1) < BIAS and abs(around / wanted) < AIR, f"{name}: the correction leaves no bias")
    check(without / wanted - 1 > 0.1 and air / wanted > AIR, f"{name}: without the correction there is a bias")
    found = details_of(document)
    said = found["corrections"]["randoms"]
    check(abs(said["total"] / COUNTS - 1) < 0.01 and abs(said["share"] - 0.5) < 0.01 and said["seconds"] > 0, said)
    check(said.get("detectors", 768) == 768, said)
    check("RAN" in image.CorrectedImage and image.RandomsCorrectionMethod == method
          and "orrected for randoms" not in found["warnings"], found["warnings"])
    check("RAN" not in bare.CorrectedImage and bare.RandomsCorrectionMethod == "NONE", bare.CorrectedImage)
    check(unused + ' not used: "randoms" is not among the corrections' in bare.DerivationDescription,
          bare.DerivationDescription)


def test_randoms_leave_no_bias(folder):
    check_case(folder, "plain")


@pytest.mark.tier2("the same with TOF bins")
def test_with_time_of_flight(folder):
    check_case(folder, "tof", "--tof", "5,600,400")


def test_randoms_of_singles_leave_no_bias(folder):
    check_case(folder, "singles", kind="singles", method="SING", unused="The singles were")
    simulate(folder, "files", "--interfile", "--randoms", 1, "--singles")
    run("export", "-o", os.path.join(folder, "again.hs"), os.path.join(folder, "singles-data"))
    with open(os.path.join(folder, "files/singles.s"), "rb") as a, open(os.path.join(folder, "again-singles.s"),
                                                                        "rb") as b:
        check(a.read() == b.read(), "export of the singles")


def test_the_simulation_is_as_described(folder):
    """Delayed coincidences without noise are what the prompts have more than without randoms, in all TOF bins the
    same."""
    read = lambda name, role: np.fromfile(os.path.join(folder, name, role + ".s"), "<f4")
    for tof, n in (("off", 1), ("5,600,400", 5)):
        options = ("--interfile", "--noise-free", "--tof", tof)
        simulate(folder, "none", *options)
        simulate(folder, "some", *options, "--randoms", 0.5, "--delayeds")
        delayeds = read("some", "delayeds").astype(float)
        more = (read("some", "emission").astype(float) - read("none", "emission")).reshape(n, -1)
        check(abs(delayeds.sum() / COUNTS - 0.5) < 1e-4, delayeds.sum())
        check(np.abs(more * n - delayeds).max() < 1e-3 * delayeds.max(), "randoms of the prompts")
        check(delayeds.std() > 0.2 * delayeds.mean(), "the detectors do not differ")
    simulate(folder, "noise", "--interfile", "--randoms", 0.5, "--delayeds")
    noise = read("noise", "delayeds") - read("some", "delayeds")
    check(abs((noise**2).sum() / (0.5 * COUNTS) - 1) < 0.05, "Poisson noise")
    # singles that are fewer than the prompts are made of, which `recon` refuses
    out = os.path.join(folder, "few")
    done = run("simulate", "pet", "-c", conf(folder), "--scanner", "pairs", "--singles", "--randoms", 0.0001,
               "--counts", 1e9, "--noise-free", "-o", out, ok=(1,))
    check("prompts are two singles each: give more randoms, or fewer counts" in done.stderr and not os.listdir(out),
          f"few randoms: {done.stderr}")


def test_what_the_data_bring_is_not_made_again(folder):
    """ADDITIVE beside delayed coincidences, data that are corrected, data with neither."""
    delayeds, additive = (simulate(folder, name, "--interfile", "--randoms", 1, *more, counts=2e6) for name, more in
                          (("delayeds", ("--delayeds",)), ("additive", ())))
    scan = ["--attenuation", os.path.join(additive, "attenuation.hs"), "--attribute", "PatientPosition=HFS"]
    scan = ["recon", "-c", conf(folder), *QUICK, *RANDOMS, *scan, os.path.join(additive, "emission.hs")]
    with_both = ["--delayeds", os.path.join(delayeds, "delayeds.hs"), "--additive",
                 os.path.join(additive, "additive.hs")]
    for name, more, says, corrected in (
            ("both", with_both,
             "The delayed coincidences were not used: the role ADDITIVE contains the randoms, which would be counted "
             "twice.", True),
            ("additive", with_both[2:], None, True), ("neither", [], NEITHER, False),
            ("done", [*with_both[:2], "--attribute", "CorrectedImage=RAN"],
             "not used: the data are already corrected for randoms.", True)):
        out = os.path.join(folder, "out-" + name)
        run(*scan, *more, "-o", out)
        images = sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(out, "*.dcm"))),
                        key=lambda d: d.InstanceNumber)
        text = images[0].DerivationDescription
        check((says in text) if says else "randoms" not in text, f"{name}: {text}")
        check(("RAN" in images[0].CorrectedImage) == corrected, f"{name}: {images[0].CorrectedImage}")
        if name == "both":
            values = [d.pixel_array for d in images]
        elif name == "additive":
            check(all(np.array_equal(a, d.pixel_array) for a, d in zip(values, images)),
                  "other values because of delayed coincidences")


def test_what_cannot_be_used_is_refused(folder):
    """No delayed coincidences at all, and one that is negative; bins that are no pairs of detectors have the mean of
    their neighbours."""
    source = simulate(folder, "data", "--interfile", "--randoms", 1, "--delayeds", counts=2e6)
    delayeds = os.path.join(source, "delayeds")
    values = np.fromfile(delayeds + ".s", "<f4")
    options = ("--attenuation", os.path.join(source, "attenuation.hs"), "--delayeds", delayeds + ".hs", "--attribute",
               "PatientPosition=HFS")
    emission = os.path.join(source, "emission.hs")

    def refusal(changed):
        changed.tofile(delayeds + ".s")
        document, volume, _ = recon(os.path.join(folder, "refused"), emission, options=RANDOMS + options, ok=(4,))
        check(len(volume) == 0, document)
        return document["refused"][0]["reason"]

    check("there are no delayed coincidences: reconstruct with a protocol without" in refusal(0 * values), "no counts")
    changed = values.copy()
    changed[2 * 48 * 65 + 3 * 65 + 4] = -1  # plane 2 of 15 from the other end
    check("plane 12, angle 3, radial bin 4: -1; allowed: finite and at least 0" in refusal(changed), "a negative count")
    values.tofile(delayeds + ".s")
    for name in (emission, delayeds + ".hs", os.path.join(source, "attenuation.hs")):
        text = h.read_file(name)
        with open(name, "w", encoding="ascii") as f:
            f.write(text.replace("applied corrections := {}",
                                 "applied corrections := {arc correction}").replace("applied corrections := {None}",
                                                                                "applied corrections := {arc "
                                                                                "correction}"))
    document, _, image = recon(os.path.join(folder, "arc"), emission, options=RANDOMS + options)
    said = details_of(document)["corrections"]["randoms"]
    check("the mean of the delayed coincidences of the bins around it" in image.DerivationDescription,
          image.DerivationDescription)
    check(said["method"] == "mean of neighbouring bins" and abs(said["total"] / values.sum() - 1) < 1e-5
          and "RAN" in image.CorrectedImage, said)


def test_singles_of_each_form(folder):
    """Counts of detectors, rates, blocks with their sum: the same randoms. With delayed coincidences they are not used;
    what cannot be true is refused."""
    source = simulate(folder, "data", "--interfile", "--randoms", 1, "--singles", "--delayeds", "--noise-free",
                      counts=2e6)
    path = lambda name, ending=".hs": os.path.join(source, name + ending)
    counts = np.fromfile(path("singles", ".s"), "<f4")
    header = h.read_file(path("singles"))
    options = ("--attenuation", path("attenuation"), "--singles", path("singles"), "--attribute", "PatientPosition=HFS",
               "--attribute", "Radionuclide=F18")
    runs = []

    def made(values, *changes, more=(), ok=(0,)):
        text = header
        for before, after in changes:
            check(before in text, text)
            text = text.replace(before, after)
        values.astype("<f4").tofile(path("singles", ".s"))
        h.write_file(path("singles"), text)
        runs.append(os.path.join(folder, f"out{len(runs)}"))
        document, _, image = recon(runs[-1], path("emission"), options=RANDOMS + options + more, ok=ok)
        return document["refused"][0]["reason"] if ok == (4,) else (details_of(document)["corrections"]["randoms"],
                                                                    image)

    said, image = made(counts)
    check(abs(said["total"] / 2e6 - 1) < 1e-5 and abs(said["singles"] / counts.astype(float).sum() - 1) < 1e-6
          and said["window_ns"] == 4.7, said)
    check("The randoms were computed from singles and a coincidence window of 4.7 ns." in image.DerivationDescription,
          image.DerivationDescription)
    rates, _ = made(counts / 600, ("unit := counts", "unit := counts per second"))
    check(abs(rates["total"] / said["total"] - 1) < 1e-6, rates)
    window, _ = made(counts, ("(ns) := 4.7", "(ns) := 9.4"))
    check(abs(window["total"] / said["total"] - 2) < 1e-6, window)
    blocks = counts.reshape(4, 2, 12, 8).sum((1, 3))
    size = (("[1] := 96", "[1] := 12"), ("[2] := 8", "[2] := 4"),
            ("detectors per block := 1", "detectors per block := 8"),
            ("rings per block := 1", "rings per block := 2"))
    mean, _ = made(blocks, *size)
    check(abs(mean["singles"] / said["singles"] - 1) < 1e-6 and abs(mean["total"] / said["total"] - 1) < 0.02
          and mean["total"] != said["total"], mean)
    _, image = made(counts, more=("--delayeds", path("delayeds")))
    check("The singles were not used: the data have delayed coincidences." in image.DerivationDescription
          and image.RandomsCorrectionMethod == "DLYD",
          image.DerivationDescription)
    for values, changes, reason in (
            (0 * counts, [], "SINGLES: there are none: reconstruct with a protocol without"),
            (-counts, [], "finite and at least 0"),
            (counts, [("(sec)[1] := 600", "(sec)[1] := 60")],
             "SINGLES: image duration := 60 s, but the counts are of 600 s"),
            (counts / 600, [], "prompts, each of two of them: check unit, which is counts"),
            (counts / 600**2, [("unit := counts", "unit := counts per second")],
             "each of two of them: check unit, which is counts per second"),
            (1e6 * counts, [], "more than half: check unit, duration and window"),
            (blocks, size[:3] + size[3:3], "1 ring each"),
            (counts, [("type := Singles", "type := Emission")], "singles.hs")):
        check(reason in made(values, *changes, ok=(4,)), reason)


def test_prompts_corrected_beforehand(folder):
    """Counts of delayed coincidences, or singles, beside prompts that were multiplied by factors: refused, if these
    factors are no role. What is stated about data that are counts, as by the simulation, is no reason."""
    for kind in ("delayeds", "singles") if h.TIER == 2 else ("delayeds",):
        check_prompts(os.path.join(folder, kind), kind)
    for name, options in (("bare", ("--noise-free",)), ("noise", ())):
        document, volume, _ = recon(os.path.join(folder, name + "-out"),
                                    simulate(folder, name, "--randoms", 1, "--singles", *options, counts=2e6),
                                    options=RANDOMS + ("--set", "iterations=1"))
        check(not document["refused"] and details_of(document)["corrections"]["randoms"]["total"] > 1.9e6,
              f"{name}: {document}")


def check_prompts(folder, kind):
    os.makedirs(folder)
    source = simulate(folder, "data", "--interfile", "--randoms", 1, "--" + kind, counts=2e6)
    emission = os.path.join(source, "emission")
    counts = np.fromfile(emission + ".s", "<f4")
    efficiency = np.random.default_rng(3).uniform(0.7, 1, counts.size).astype("<f4")
    (1 / efficiency).tofile(os.path.join(source, "norm.s"))
    with open(emission + ".hs", encoding="ascii") as f, open(os.path.join(source, "norm.hs"), "w",
                                                             encoding="ascii") as out:
        out.write(f.read().replace("emission.s", "norm.s"))
    options = ("--attenuation", os.path.join(source, "attenuation.hs"), "--" + kind, os.path.join(source, kind + ".hs"),
               "--attribute",
               "PatientPosition=HFS", "--set", "iterations=1")
    norm = ("--normalisation", os.path.join(source, "norm.hs"))
    for name, values, more, refused in (("counts", counts, ("--attribute", "CorrectedImage=NORM\\DTIM"), None),
                                        ("corrected", counts / efficiency, ("--attribute", "CorrectedImage=NORM\\DTIM"),
                                         "detector efficiencies, dead time"),
                                        ("attenuated", counts * 1.7, ("--attribute", "CorrectedImage=ATTN"), None),
                                        ("unstated", counts / efficiency, (), None),
                                        ("role", counts * 1.7, ("--attribute", "CorrectedImage=NORM", *norm), None)):
        values.astype("<f4").tofile(emission + ".s")
        document, volume, _ = recon(os.path.join(folder, name), emission + ".hs", options=RANDOMS + options + more,
                                    ok=(4,) if refused else (0,))
        if refused:
            reason = document["refused"][0]["reason"]
            check(f"{kind.upper()} are counts, but EMISSION" in reason
                  and f"was corrected beforehand for {refused}: the randoms would be in another unit" in reason
                  and len(volume) == 0, f"{name}: {reason}")
        else:
            check(not document["refused"] and len(volume) > 0, f"{name}: {document['refused']}")


def test_of_beds(folder):
    """Each bed has its own, also its dead time factor."""
    for kind in ("delayeds", "singles"):
        source = simulate(folder, kind, "--beds", "2,26", "--randoms", 1, "--" + kind, counts=2e6)
        for path in glob.glob(os.path.join(source, "*.dcm")):
            d = pydicom.dcmread(path)
            d.DeadTimeFactor = 1 + 0.25 * d.private_block(0x0071, "TOMONODE SINOGRAM 1")[0x23].value
            d.save_as(path)
        document, _, image = recon(os.path.join(folder, "out-" + kind), source, options=RANDOMS)
        said = details_of(document)["corrections"]["randoms"]
        check(abs(said["total"] / 2e6 - 1) < 0.01 and "RAN" in image.CorrectedImage, said)
        factors = {float(pydicom.dcmread(path).DeadTimeFactor) for path in glob.glob(os.path.join(folder, "out-" + kind,
                                                                                                  "*.dcm"))}
        check(factors == {1.25, 1.5}, factors)


def test_dead_time_as_the_data_say(folder):
    """The factor of the objects multiplies the image. Without it, without the correction, or if it was applied before,
    a sentence says so, or nothing."""
    source = simulate(folder, "data", "--interfile", "--randoms", 0.5, counts=2e6)
    scan = ("--attenuation", os.path.join(source, "attenuation.hs"), "--additive", os.path.join(source, "additive.hs"),
            "--attribute",
            "PatientPosition=HFS")
    wanted = ("--set", "corrections=dead_time")
    unused = 'The dead time factor of the data was not used: "dead_time" is not among the corrections'
    volumes = {}
    for name, options, says, applied in (
            ("none", wanted, "Not corrected for dead time: the data do not describe it.", False),
            ("factor", (*wanted, "--attribute", "DeadTimeFactor=1.25"),
             "Corrected for dead time by the factor of the data, 1.25.", True),
            ("unused", ("--attribute", "DeadTimeFactor=1.25"), unused, False),
            ("before", (*wanted, "--attribute", "DeadTimeFactor=1.25", "--attribute", "CorrectedImage=DTIM"), None,
             True)):
        document, volumes[name], image = recon(os.path.join(folder, name), os.path.join(source, "emission.hs"),
                                               options=scan + options)
        text = image.DerivationDescription
        check(says in text if says else "dead time" not in text, f"{name}: {text}")
        check(("DTIM" in image.CorrectedImage) == applied, f"{name}: {image.CorrectedImage}")
        check(float(image.get("DeadTimeFactor", 0)) == (1.25 if applied else 0),
              f"{name}: {image.get('DeadTimeFactor')}")
        made = (details_of(document)["corrections"] or {}).get("dead_time")
        check(made is None if name != "factor" else made.pop("seconds") >= 0 and made
              == {"of": "acquisition", "computed": 1, "cached": 0, "least": 1.25, "most": 1.25}, f"{name}: {made}")
    for name, factor in (("factor", 1.25), ("unused", 1), ("before", 1)):
        check(np.abs(volumes[name] - factor * volumes["none"]).max() < 1e-4 * volumes["none"].max(), name)
    document, _, _ = recon(os.path.join(folder, "refused"), os.path.join(source, "emission.hs"),
                           options=(*scan, *wanted, "--attribute", "DeadTimeFactor=0.8"), ok=(4,))
    check("Dead Time Factor (0054,1324) is not a number from 1 to 100" in document["refused"][0]["reason"], document)


@pytest.mark.tier2("a form of the randoms; dead time of each frame is tier 1")
def test_of_a_siemens_mmr(folder):
    """The delayed events of its list mode, of all and of time frames. The dead time of all: by the normalisation and
    the singles."""
    norm = mmr.mmr.Norm(np.random.default_rng(8))
    norm.rest[:64], norm.rest[64:128] = -1e-6, 2e-6
    rates = [mmr.mmr.singles(bucket, 10000 if bucket < 224 else 0) for bucket in range(230)]
    events = mmr.events_at(np.random.default_rng(4), 6000)
    delayeds = len(events) - len(mmr.prompts(events))
    words = [mmr.mmr.time_mark(0), *rates, *events[:4000], mmr.mmr.time_mark(4000), *events[4000:],
             mmr.mmr.time_mark(12000)]
    source = mmr.raw(os.path.join(folder, "raw"), words, norm)
    volumes, one = {}, ("--set", "subsets=1")  # an update of all angles: few counts in a subset make most voxels 0
    ways = (("all", ("--set", "corrections=randoms+dead_time", *one)), ("plain", one), ("frames", ("--frames", "4,8")))
    for name, options in ways if h.TIER == 2 else ways[:2]:
        out = os.path.join(folder, name)
        done = mmr.h.run(h.TOMONODE, "recon", "-c", mmr.conf_of(folder), "--json", "--device", "cpu:1", "--protocol",
                         "quick-pet", *RANDOMS, *options, "-o",
                         out, source)
        said = details_of(json.loads(done.stdout))["corrections"]["randoms"]
        check(abs(said["total"] - delayeds) < 1e-3 * delayeds and said["detectors"] == 64 * 504
              and said["detectors_without_counts"] > 64 * 56, said)
        images = [pydicom.dcmread(path) for path in glob.glob(os.path.join(out, "*.dcm"))]
        image, volumes[name] = images[0], sum(mmr.values(d).sum() for d in images)
        missing = "scatter and attenuation." if name == "all" else "scatter, attenuation and dead time."
        check("not corrected for " + missing in image.DerivationDescription, image.DerivationDescription)
        check("RAN" in image.CorrectedImage, image.CorrectedImage)
        check(("DTIM" in image.CorrectedImage) == (name == "all"), image.CorrectedImage)
        if name == "all":
            slow = 1 + 40000 * 2e-6  # 80000 singles per second
            alive = np.exp(-40000 * 1e-6 / slow) / slow
            made = details_of(json.loads(done.stdout))["corrections"]["dead_time"]
            check(made["of"] == "detectors" and abs(made["least"] * alive - 1) < 1e-6
                  and abs(made["most"] * alive - 1) < 1e-6, made)
            check("with the formula of NiftyPET, which was not compared with a scanner." in image.DerivationDescription,
                  image.DerivationDescription)
    check(abs(volumes["all"] * alive**2 / volumes["plain"] - 1) < 1e-3, volumes)


def test_dead_time_of_each_frame(folder):
    """Of an mMR each frame has the dead time of its own singles. If one frame has none, no frame is corrected: a series
    has one scale."""
    norm = mmr.mmr.Norm(np.random.default_rng(8))
    norm.rest[:64], norm.rest[64:128] = -1e-6, 2e-6
    events = mmr.events_at(np.random.default_rng(4), 6000)

    def frame(k, rate):
        singles = [mmr.mmr.singles(bucket, rate if bucket < 224 else 0) for bucket in range(230)] if rate else []
        return [mmr.mmr.time_mark(4000 * k), *singles, *events[2000 * k:2000 * (k + 1)]]

    values = {}
    scans = {"all": (10000, 7500, 5000), "middle": (10000, 0, 5000), "none": (0, 0, 0), "first": (0, 10000, 5000)}
    for name, rates in scans.items() if h.TIER == 2 else list(scans.items())[:2]:
        source = mmr.raw(os.path.join(folder, "raw-" + name),
                         [w for k, rate in enumerate(rates) for w in frame(k, rate)] + [mmr.mmr.time_mark(12000)], norm)
        out = os.path.join(folder, name)
        done = mmr.h.run(h.TOMONODE, "recon", "-c", mmr.conf_of(folder), "--json", "--device", "cpu:1", "--protocol",
                         "quick-pet", "--set", "subsets=1",
                         "--set", "corrections=dead_time", "--frames", "3x4", "-o", out, source)
        images = sorted((pydicom.dcmread(path) for path in glob.glob(os.path.join(out, "*.dcm"))),
                        key=lambda d: int(d.ImageIndex))
        values[name] = [sum(mmr.values(d).sum() for d in images[k * len(images) // 3:(k + 1) * len(images) // 3])
                        for k in range(3)]
        made, text = details_of(json.loads(done.stdout))["corrections"]["dead_time"], images[0].DerivationDescription
        check(all(("DTIM" in d.CorrectedImage) == (name == "all") for d in images),
              f"{name}: {images[0].CorrectedImage}")
        if name == "all":
            check(made["computed"] == 3 and "Corrected for dead time by the parameters" in text, f"{made}: {text}")
            continue
        said = {"first": ", so that all time frames have one scale: in 1 of 3, the first is 1, ",
                "middle": ", so that all time frames have one scale: in 1 of 3, the first is 2, ",
                "none": ": "}[name]
        check(made is None and f"Not corrected for dead time{said}the list mode has no rate of the singles of bucket 0."
              in text, f"{made}: {text}")
        check("Corrected for dead time" not in text, text)
    for k, rate in enumerate((40000, 30000, 20000)):  # singles per second and block
        slow = 1 + rate * 2e-6
        factor = (slow / np.exp(-rate * 1e-6 / slow)) ** 2
        ratio = values["all"][k] / values["middle"][k]
        check(abs(ratio / factor - 1) < 2e-3, f"frame {k + 1}: {ratio}, not {factor}")
    check(all(values[name] == values["middle"] for name in values if name != "all"),
          f"frames of different scales: {values}")
