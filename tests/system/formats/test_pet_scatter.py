#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The correction "scatter" through `recon`: a cylinder of water with a smooth background outside of it as its scatter, randoms and a CT. With
TOF bins and as two beds the scatter is found, taken off, and named in the result. Its values against a
Monte Carlo: test_pet_corrections.py."""
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
    from tools.ct_writer import write_ct
    from tools.pet_tools import run
except ImportError:
    print("skipped: pydicom and numpy are not installed")
    sys.exit(77)
h.need(h.TOMONODE)

SCANNER = """scanners = ( { name = "pairs"; manufacturer = "tomonode"; model = "pairs"; rings = 8; ring_spacing = 6.5; radius = 100.0;
  interaction_depth = 5.0; detectors = 96; bin = 3.43; radial = 65; angles = 48; span = 3; max_difference = 7; arc_corrected = false;
  energy_low = 435.0; energy_high = 650.0; energy_resolution = 12.0; } );
"""
RADIAL, ANGLES, BIN, RADIUS = 65, 48, 3.43, 50  # mm
SHARE, WIDTH = 0.15, 49.0  # counts of the background over those of the cylinder; where it has fallen to 1/e, mm: about as single scatter
FRAME, STUDY = "2.25.7101", "2.25.7102"
QUICK = ("--device", "cpu", "--protocol", "pet-osem", "--set", "matrix=40", "--set", "iterations=3", "--set", "subsets=8", "--set", "postfilter=8",
         "--set", "scatter_iterations=2")


def conf(folder):
    path = os.path.join(folder, "pairs.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write(SCANNER)
    return path


def data(folder, name, tof="off", n_tof=1):
    """Interfile without noise: attenuated trues, the background, randoms; the headers of prompts and delayeds."""
    out = os.path.join(folder, name)
    run("simulate", "pet", "-c", conf(folder), "--scanner", "pairs", "--phantom", "cylinder", "--radius", RADIUS, "--length", 200, "--counts", 1e6,
        "--attenuation", "--randoms", 0.5, "--delayeds", "--noise-free", "--tof", tof, "--interfile", "-o", out)
    path = os.path.join(out, "emission.s")
    prompts = np.fromfile(path, "<f4").reshape(n_tof, -1, ANGLES, RADIAL)
    delayeds = np.fromfile(os.path.join(out, "delayeds.s"), "<f4").reshape(prompts.shape[1:])
    trues = prompts - delayeds / n_tof
    shape = np.exp(-np.abs((np.arange(RADIAL) - RADIAL // 2) * BIN / WIDTH) ** 3)
    share = SHARE * trues.sum((1, 2, 3), keepdims=True) / (shape.sum() * prompts[0, ..., 0].size)
    (prompts + share * shape).astype("<f4").tofile(path)
    return os.path.join(out, "emission.hs"), os.path.join(out, "delayeds.hs")


def make_ct(folder, slices=60, half=RADIUS):
    """half: mm, where the image of the CT ends at the sides of the cylinder."""
    n = 64
    x = (np.arange(n) - (n - 1) / 2) * 3
    disc = np.where((np.hypot(x[:, None], x[None, :]) < RADIUS) & (np.abs(x) < half), 0, -1000)
    write_ct(folder, np.repeat(disc[None], slices, 0), (3, 3, 3), (x[0], x[0], -88.5), frame_of_reference=FRAME, study=STUDY)


def recon(folder, name, source, corrections, *options):
    out = os.path.join(folder, "out-" + name)
    done = run("recon", "-c", conf(folder), "--json", "-o", out, *QUICK, "--set", "corrections=" + corrections, *options, *source)
    images = sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(out, "*.dcm"))), key=lambda d: d.InstanceNumber)
    return json.loads(done.stdout)["cases"][0]["pet"], np.array([d.pixel_array * float(d.RescaleSlope) for d in images]), images[0]


def inside(volume):
    """The mean inside the cylinder, in the middle slices."""
    n = volume.shape[1]
    x = (np.arange(n) - (n - 1) / 2) / (n / 2)
    return volume[len(volume) // 3:-(len(volume) // 3)][:, np.hypot(x[:, None], x[None, :]) < 0.35].mean()


def basics():
    pairs = {"PatientPosition": "HFS", "FrameOfReferenceUID": FRAME, "StudyInstanceUID": STUDY, "PatientID": "TOMONODE-PHANTOM",
             "PatientName": "TOMONODE^PHANTOM", "PatientBirthDate": "19601130", "Radionuclide": "F18", "Manufacturer": "tomonode", "ManufacturerModelName": "pairs"}
    return [o for k, v in pairs.items() for o in ("--set", f"{k}={v}")]


def imported(folder, name, *options):
    out = os.path.join(folder, name + "-objects")
    run("import", "-c", conf(folder), *options, *basics(), "-o", out)
    ct = os.path.join(folder, "ct")
    if not os.path.exists(ct):
        make_ct(ct)
    return out, ct


def check_case(folder, name, source):
    _, plain, _ = recon(folder, name + "-plain", source, "attenuation+randoms")
    case, volume, image = recon(folder, name, source, "attenuation+randoms+scatter")
    found = case["corrections"]["scatter"]
    ratio = inside(volume) / inside(plain)
    print(f"  {name}: fraction {found['fraction']:.3f}, scale {found['scale_least']:.2f} to {found['scale_most']:.2f}, {ratio:.3f} of the activity without "
          "the correction", flush=True)
    check("SCAT" in image.CorrectedImage and image.ScatterCorrectionMethod, f"{name}: {image.CorrectedImage}")
    check(found["planes_at_limit"] == 0 and "scatter" not in case["warnings"], f"{name}: {found}, {case['warnings']}")
    check(abs(found["fraction"] - SHARE / (1 + SHARE)) < 0.06, f"{name}: of the data {SHARE / (1 + SHARE):.3f} are background")
    check(abs(ratio - 1 + found["fraction"]) < 0.05, f"{name}: what was found is not what the image lacks")
    return found


def with_time_of_flight(folder, _):
    """The estimate is that of the sums over TOF bins; its scatter is spread over them."""
    emission, delayeds = data(folder, "tof", "5,600,400", 5)
    source = imported(folder, "tof", emission, "--delayeds", delayeds)
    found = check_case(folder, "tof", source)
    mashed, _, _ = recon(folder, "mashed", source, "attenuation+randoms+scatter", "--set", "tof_mashing=5")
    mashed = mashed["corrections"]["scatter"]
    for key in ("fraction", "scale_least", "scale_mean", "scale_most"):
        check(abs(mashed[key] / found[key] - 1) < 1e-3, f"{key}: {found[key]}, {mashed[key]} of the sums over TOF bins")


def of_two_beds(folder, _):
    """Each bed has its own."""
    emission, delayeds = data(folder, "bed")
    alone = check_case(folder, "one", imported(folder, "one", emission, "--delayeds", delayeds))
    beds = [o for k, z in enumerate((-13, 13)) for o in ("--bed", f"{emission},z={z},start={700 * k},duration=600,delayeds={delayeds}")]
    found = check_case(folder, "two", imported(folder, "two", *beds))
    check(found["planes"] == 2 * alone["planes"], f"planes: {found['planes']}, of one bed {alone['planes']}")


def of_a_part(folder, _):
    """Planes that leave a short CT are not compared with the simulation, which would take all counts of the object for scatter; of a CT that is
    truncated at the sides only the scale shows this. What was found is in the derivation."""
    emission, delayeds = data(folder, "part")
    source, whole = imported(folder, "part", emission, "--delayeds", delayeds)
    short, narrow = os.path.join(folder, "ct-short"), os.path.join(folder, "ct-narrow")
    make_ct(short, 34)  # to 10.5 mm: 4 of 15 direct planes are beyond
    make_ct(narrow, half=34)
    made = {name: recon(folder, "part-" + name, (source, ct), "attenuation+randoms+scatter") for name, ct in (("whole", whole), ("short", short), ("narrow", narrow))}
    for name, (case, _, image) in made.items():
        found = case["corrections"]["scatter"]
        print(f"  {name}: fraction {found['fraction']:.3f}, scale {found['scale_least']:.2f} to {found['scale_most']:.2f}, {case['warnings']}", flush=True)
        says = f", scatter {100 * found['fraction']:.1f} % of the counts without randoms, scale {found['scale_least']:.2f} to {found['scale_most']:.2f}, "
        check(says in image.DerivationDescription, f"{name}: {says}: {image.DerivationDescription}")
        check(("SCAT" in image.CorrectedImage) == (name != "short"), f"{name}: {image.CorrectedImage}")
        check(("Not corrected for scatter in all planes: the CT contains the direct planes 1 to 11 of 15, and the lines of 26 of 47 planes leave it" in
               case["warnings"]) == (name == "short"), case["warnings"])
        check(("The scatter is doubtful: its scale is more than 3 in" in case["warnings"]) == (name == "narrow"), case["warnings"])
    x = np.arange(made["whole"][1].shape[1])
    disc = np.hypot(x[:, None] - x.mean(), x[None, :] - x.mean()) < 0.35 * len(x) / 2
    ratio = made["short"][1][:, disc].mean(1) / made["whole"][1][:, disc].mean(1)
    print("  slices with the short CT:", np.round(ratio, 3), flush=True)
    # the first 4 are not in the CT, and the filters take what attenuation lacks there into the next
    check(len(ratio) == 15 and np.all(np.abs(ratio[6:] - 1) < 0.02), f"covered slices: {ratio}")


h.main([of_a_part, with_time_of_flight, of_two_beds])
