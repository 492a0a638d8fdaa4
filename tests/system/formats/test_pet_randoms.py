#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Randoms of PET from delayed coincidences: simulated detectors whose singles differ, as many randoms as true coincidences. The image with the
correction has the mean of one without randoms and nothing beside the phantom; without the correction it has neither. With TOF bins, time
frames, beds, an mMR; where the data bring randoms, or have no delayed coincidences, a sentence says so."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tools import node_harness as h
from tools.node_harness import check

try:
    import numpy as np
    import pydicom
    from tools import mmr_recon as mmr
    from tools.pet_tools import run
except ImportError:
    print("skipped: pydicom and numpy are not installed")
    sys.exit(77)
h.need(h.TOMONODE)

SCANNER = """scanners = ( { name = "pairs"; manufacturer = "tomonode"; model = "pairs"; rings = 8; ring_spacing = 6.5; radius = 100.0;
  interaction_depth = 5.0; detectors = 96; bin = 3.43; radial = 65; angles = 48; span = 3; max_difference = 7; arc_corrected = false; } );
"""
COUNTS = 2e7
QUICK = ("--device", "cpu", "--protocol", "pet-osem", "--set", "matrix=48", "--set", "iterations=4", "--set", "subsets=8", "--set", "postfilter=8")
RANDOMS = ("--set", "corrections=randoms")
# The mean of the phantom against the image without randoms, and that of the air around it, over the phantom
BIAS, AIR = 0.01, 0.02
NEITHER = "Not corrected for randoms: the data have neither delayed coincidences nor a background."


def conf(folder):
    path = os.path.join(folder, "pairs.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write(SCANNER)
    return path


def simulate(folder, name, *options, counts=COUNTS):
    out = os.path.join(folder, name)
    run("simulate", "pet", "-c", conf(folder), "--scanner", "pairs", "--phantom", "cylinder", "--radius", 55, "--length", 200, "--counts", counts,
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


def check_case(folder, name, *options):
    _, reference, _ = recon(os.path.join(folder, name + "-0"), simulate(folder, name + "-none", *options))
    source = simulate(folder, name + "-data", "--randoms", 1, "--delayeds", *options)
    document, corrected, image = recon(os.path.join(folder, name + "-1"), source, options=RANDOMS)
    _, plain, bare = recon(os.path.join(folder, name + "-2"), source)
    (inside, around), (wanted, _), (without, air) = means(corrected), means(reference), means(plain)
    print(f"  {name}: bias {inside / wanted - 1:+.4f} (uncorrected {without / wanted - 1:+.3f}), around {around / wanted:.4f} (uncorrected {air / wanted:.3f})",
          flush=True)
    check(abs(inside / wanted - 1) < BIAS and abs(around / wanted) < AIR, f"{name}: the correction leaves no bias")
    check(without / wanted - 1 > 0.1 and air / wanted > AIR, f"{name}: without the correction there is a bias")
    found = details_of(document)
    said = found["corrections"]["randoms"]
    check(abs(said["total"] / COUNTS - 1) < 0.01 and abs(said["share"] - 0.5) < 0.01 and said["detectors"] == 768 and said["seconds"] > 0, said)
    check("RAN" in image.CorrectedImage and image.RandomsCorrectionMethod == "DLYD" and "randoms" not in found["warnings"], found["warnings"])
    check("RAN" not in bare.CorrectedImage and bare.RandomsCorrectionMethod == "NONE", bare.CorrectedImage)
    check('The delayed coincidences were not used: "randoms" is not among the corrections' in bare.DerivationDescription, bare.DerivationDescription)


def randoms_leave_no_bias(folder, _):
    check_case(folder, "plain")


def with_time_of_flight(folder, _):
    check_case(folder, "tof", "--tof", "5,600,400")


def the_simulation_is_as_described(folder, _):
    """Delayed coincidences without noise are what the prompts have more than without randoms, in all TOF bins the same."""
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


def what_the_data_bring_is_not_made_again(folder, _):
    """ADDITIVE beside delayed coincidences, data that are corrected, data with neither."""
    delayeds, additive = (simulate(folder, name, "--interfile", "--randoms", 1, *more, counts=2e6) for name, more in
                          (("delayeds", ("--delayeds",)), ("additive", ())))
    scan = ["--attenuation", os.path.join(additive, "attenuation.hs"), "--attribute", "PatientPosition=HFS"]
    scan = ["recon", "-c", conf(folder), *QUICK, *RANDOMS, *scan, os.path.join(additive, "emission.hs")]
    with_both = ["--delayeds", os.path.join(delayeds, "delayeds.hs"), "--additive", os.path.join(additive, "additive.hs")]
    for name, more, says, corrected in (
            ("both", with_both, "The delayed coincidences were not used: the role ADDITIVE contains the randoms, which would be counted twice.", True),
            ("additive", with_both[2:], None, True), ("neither", [], NEITHER, False),
            ("done", [*with_both[:2], "--attribute", "CorrectedImage=RAN"], "not used: the data are already corrected for randoms.", True)):
        out = os.path.join(folder, "out-" + name)
        run(*scan, *more, "-o", out)
        images = sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(out, "*.dcm"))), key=lambda d: d.InstanceNumber)
        text = images[0].DerivationDescription
        check((says in text) if says else "randoms" not in text, f"{name}: {text}")
        check(("RAN" in images[0].CorrectedImage) == corrected, f"{name}: {images[0].CorrectedImage}")
        if name == "both":
            values = [d.pixel_array for d in images]
        elif name == "additive":
            check(all(np.array_equal(a, d.pixel_array) for a, d in zip(values, images)), "other values because of delayed coincidences")


def what_cannot_be_used_is_refused(folder, _):
    """No delayed coincidences at all, and one that is negative; bins that are no pairs of detectors have the mean of their neighbours."""
    source = simulate(folder, "data", "--interfile", "--randoms", 1, "--delayeds", counts=2e6)
    delayeds = os.path.join(source, "delayeds")
    values = np.fromfile(delayeds + ".s", "<f4")
    options = ("--attenuation", os.path.join(source, "attenuation.hs"), "--delayeds", delayeds + ".hs", "--attribute", "PatientPosition=HFS")
    emission = os.path.join(source, "emission.hs")

    def refusal(changed):
        changed.tofile(delayeds + ".s")
        document, volume, _ = recon(os.path.join(folder, "refused"), emission, options=RANDOMS + options, ok=(4,))
        check(len(volume) == 0, document)
        return document["refused"][0]["reason"]

    check("there are no delayed coincidences: reconstruct with a protocol without" in refusal(0 * values), "no counts")
    changed = values.copy()
    changed[2 * 48 * 65 + 3 * 65 + 4] = -1
    check("plane 2, angle 3, radial bin 4: -1; allowed: finite and at least 0" in refusal(changed), "a negative count")
    values.tofile(delayeds + ".s")
    for name in (emission, delayeds + ".hs", os.path.join(source, "attenuation.hs")):
        with open(name, encoding="ascii") as f:
            text = f.read()
        with open(name, "w", encoding="ascii") as f:
            f.write(text.replace("applied corrections := {}", "applied corrections := {arc correction}").replace("applied corrections := {None}",
                                                                                                             "applied corrections := {arc correction}"))
    document, _, image = recon(os.path.join(folder, "arc"), emission, options=RANDOMS + options)
    said = details_of(document)["corrections"]["randoms"]
    check("the mean of the delayed coincidences of the bins around it" in image.DerivationDescription, image.DerivationDescription)
    check(said["method"] == "mean of neighbouring bins" and abs(said["total"] / values.sum() - 1) < 1e-5 and "RAN" in image.CorrectedImage, said)


def of_beds(folder, _):
    """Each bed has its own."""
    source = simulate(folder, "beds", "--beds", "2,26", "--randoms", 1, "--delayeds", counts=2e6)
    document, _, image = recon(os.path.join(folder, "out"), source, options=RANDOMS)
    said = details_of(document)["corrections"]["randoms"]
    check(abs(said["total"] / 2e6 - 1) < 0.01 and "RAN" in image.CorrectedImage, said)


def of_a_siemens_mmr(folder, _):
    """The delayed events of its list mode, of all and of time frames."""
    events = mmr.events_at(np.random.default_rng(4), 6000)
    delayeds = len(events) - len(mmr.prompts(events))
    words = [mmr.mmr.time_mark(0), *events[:4000], mmr.mmr.time_mark(4000), *events[4000:], mmr.mmr.time_mark(12000)]
    source = mmr.raw(os.path.join(folder, "raw"), words)
    for name, options in (("all", ()), ("frames", ("--frames", "4,8"))):
        out = os.path.join(folder, name)
        done = mmr.h.run(h.TOMONODE, "recon", "-c", mmr.conf_of(folder), "--json", "--device", "cpu:1", "--protocol", "quick-pet", *RANDOMS, *options, "-o",
                         out, source)
        said = details_of(json.loads(done.stdout))["corrections"]["randoms"]
        check(abs(said["total"] - delayeds) < 1e-3 * delayeds and said["detectors"] == 64 * 504 and said["detectors_without_counts"] > 64 * 56, said)
        image = pydicom.dcmread(glob.glob(os.path.join(out, "*.dcm"))[0])
        check("not corrected for scatter, attenuation and dead time." in image.DerivationDescription and "RAN" in image.CorrectedImage,
              image.DerivationDescription)


h.main([randoms_leave_no_bias, with_time_of_flight, the_simulation_is_as_described, what_the_data_bring_is_not_made_again,
        what_cannot_be_used_is_refused, of_beds, of_a_siemens_mmr])
