# SPDX-License-Identifier: Apache-2.0
"""The correction "scatter" through `recon` and the node: a cylinder of water with randoms, a CT and its single scatter.
With TOF bins, as two beds and in time frames the scatter is found, taken off, and named in the result; further results
of an exam use what was computed for the first. Its values against a Monte Carlo: test_pet_corrections.py."""
import glob
import hashlib
import json
import os
import re
import subprocess

import numpy as np
import pydicom
import pytest

from tools import list_tools as lists
from tools import mmr_recon as mmr
from tools import node_harness as h
from tools import petsird_tools as petsird
from tools import pilot_tools
from tools.ct_writer import write_ct
from tools.node_harness import check
from tools.pet_tools import run

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "dcmsend")

SCANNER = """scanners = ( { name = "pairs"; manufacturer = "tomonode"; model = "pairs"; rings = 8; ring_spacing = 6.5;
  radius = 100.0; interaction_depth = 5.0; detectors = 96; bin = 3.43; radial = 65; angles = 48;
  span = 3; max_difference = 7; arc_corrected = false;
  energy_low = 435.0; energy_high = 650.0; energy_resolution = 12.0; } );
"""
RADIAL, ANGLES, BIN, RADIUS = 65, 48, 3.43, 50  # mm
SHARE = 0.15  # counts of the scatter over those of the cylinder
FRAME, STUDY = "2.25.7101", "2.25.7102"
QUICK = ("--device", "cpu", "--protocol", "pet-osem", "--set", "matrix=40", "--set", "iterations=3", "--set",
         "subsets=8", "--set", "postfilter=8")


def conf(folder):
    path = os.path.join(folder, "pairs.conf")
    h.write_file(path, SCANNER)
    return path


def shape(folder, header):
    """The single scatter of the cylinder of water (tests/helpers/pet_scatter.c): of what is in the middle 120 mm."""
    n, slices, size, thick = 44, 30, 2.5, 4.0
    x = (np.arange(n) - (n - 1) / 2) * size
    disc = np.repeat((np.hypot(x[:, None], x[None, :]) < RADIUS)[None].astype("<f4"), slices, 0)
    files = [os.path.join(folder, f"shape-{k}.raw") for k in ("activity", "mu", "scatter")]
    disc.tofile(files[0])
    (disc * np.float32(0.0096)).tofile(files[1])
    h.run(os.path.join(os.environ.get("TOMONODE_BUILD", "build/dev"), "tests", "pet_scatter"), header, *files[:2], n,
          slices, size, thick, 435, 650, 12, files[2])
    return np.fromfile(files[2], "<f4").reshape(-1, ANGLES, RADIAL)


def data(folder, name, tof="off", n_tof=1, share=SHARE):
    """Interfile without noise: attenuated trues, scatter, randoms; the headers of prompts and delayeds. share: that of
    the scatter."""
    out = os.path.join(folder, name)
    run("simulate", "pet", "-c", conf(folder), "--scanner", "pairs", "--phantom", "cylinder", "--radius", RADIUS,
        "--length", 200, "--counts", 1e6,
        "--attenuation", "--randoms", 0.5, "--delayeds", "--noise-free", "--tof", tof, "--interfile", "-o", out)
    path = os.path.join(out, "emission.s")
    prompts = np.fromfile(path, "<f4").reshape(n_tof, -1, ANGLES, RADIAL)
    delayeds = np.fromfile(os.path.join(out, "delayeds.s"), "<f4").reshape(prompts.shape[1:])
    trues = prompts - delayeds / n_tof
    scatter = shape(out, os.path.join(out, "delayeds.hs"))
    part = share * trues.sum((1, 2, 3), keepdims=True) / scatter.sum(dtype=float)
    (prompts + part * scatter).astype("<f4").tofile(path)
    return os.path.join(out, "emission.hs"), os.path.join(out, "delayeds.hs")


def make_ct(folder, slices=60, half=RADIUS, n=64, round_field=False):
    """half: mm, where the image of the CT ends: at the sides of the cylinder as air, or in a circle as padding of -1024
    HU; n: its columns and rows of 3 mm."""
    x = (np.arange(n) - (n - 1) / 2) * 3
    r = np.hypot(x[:, None], x[None, :])
    disc = np.where((r < RADIUS) & ((np.abs(x) < half) | round_field), 0, -1000)
    if round_field:
        disc = np.where(r < half, disc, -1024)
    write_ct(folder, np.repeat(disc[None], slices, 0), (3, 3, 3), (x[0], x[0], -88.5), frame_of_reference=FRAME,
             study=STUDY)


def recon(folder, name, source, corrections, *options):
    out = os.path.join(folder, "out-" + name)
    scatter = ("--set", f"scatter_iterations={h.TIER}") if "scatter" in corrections else ()
    words = [h.TOMONODE, "recon", "-c", conf(folder), "--json", "-o", out, *QUICK, "--set",
             "corrections=" + corrections, *scatter, *options, *source]
    with open(os.path.join(folder, name + ".json"), "w+",
              encoding="utf-8") as f, subprocess.Popen(words, stdout=f, stderr=subprocess.DEVNULL) as p:
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        read = int(re.search(r"rchar: (\d+)", h.read_file(f"/proc/{p.pid}/io")).group(1))
        check(p.wait() == 0, f"{words}: code {p.returncode}")
        f.seek(0)
        document = json.load(f)
    images = sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(out, "*.dcm"))), key=lambda d: d.InstanceNumber)
    return {**document["cases"][0]["pet"], "read": read}, np.array([d.pixel_array * float(d.RescaleSlope)
                                                                    for d in images]), images[0]


def inside(volume):
    """The mean inside the cylinder, in the middle slices."""
    n = volume.shape[1]
    x = (np.arange(n) - (n - 1) / 2) / (n / 2)
    return volume[len(volume) // 3:-(len(volume) // 3)][:, np.hypot(x[:, None], x[None, :]) < 0.35].mean()


def basics():
    pairs = {"PatientPosition": "HFS", "FrameOfReferenceUID": FRAME, "StudyInstanceUID": STUDY,
             "PatientID": "TOMONODE-PHANTOM",
             "PatientName": "TOMONODE^PHANTOM", "PatientBirthDate": "19601130", "Radionuclide": "F18",
             "Manufacturer": "tomonode", "ManufacturerModelName": "pairs"}
    return [o for k, v in pairs.items() for o in ("--set", f"{k}={v}")]


def imported(folder, name, *options):
    out = os.path.join(folder, name + "-objects")
    run("import", "-c", conf(folder), *options, *basics(), "-o", out)
    ct = os.path.join(folder, "ct")
    if not os.path.exists(ct):
        make_ct(ct)
    return out, ct


def check_case(folder, name, source, bare):
    """bare: the same data without scatter."""
    before, _, _ = recon(folder, name + "-plain", source, "attenuation+randoms")
    case, volume, image = recon(folder, name, source, "attenuation+randoms+scatter")
    known = recon(folder, name + "-bare", bare, "attenuation+randoms")[1]
    size, more = sum(os.path.getsize(f) for f in glob.glob(os.path.join(source[0],
                                                                        "*emission*"))), case["read"] - before["read"]
    check(size > 0 and more < 0.3 * size,
          f"{name}: the scatter reads the prompts once more: {more} bytes more, the prompts have {size}")
    found = case["corrections"]["scatter"]
    ratio = inside(volume) / inside(known)
    print(f"  {name}: fraction {found['fraction']:.4f}, scale {found['scale_least']:.2f} to {found['scale_most']:.2f}, "
          f"{ratio:.4f} of the activity of data without scatter", flush=True)
    check("SCAT" in image.CorrectedImage and image.ScatterCorrectionMethod, f"{name}: {image.CorrectedImage}")
    check(found["planes_at_limit"] == 0 and "scatter" not in case["warnings"], f"{name}: {found}, {case['warnings']}")
    # at most twice what was measured, 0.003 and 0.004 to 0.008
    check(abs(found["fraction"] - SHARE / (1 + SHARE)) < 0.0058,
          f"{name}: of the data {SHARE / (1 + SHARE):.3f} are scatter")
    check(abs(ratio - 1) < 0.01, f"{name}: {ratio:.4f} of the activity of data without scatter")
    return found


def test_with_time_of_flight(folder):
    """The estimate is that of the sums over TOF bins; its scatter is spread over them."""
    emission, delayeds = data(folder, "tof", "5,600,400", 5)
    source = imported(folder, "tof", emission, "--delayeds", delayeds)
    emission, delayeds = data(folder, "bare", "5,600,400", 5, share=0)
    found = check_case(folder, "tof", source, imported(folder, "bare", emission, "--delayeds", delayeds))
    if h.TIER < 2:
        return
    mashed, _, _ = recon(folder, "mashed", source, "attenuation+randoms+scatter", "--set", "tof_mashing=5")
    mashed = mashed["corrections"]["scatter"]
    for key in ("fraction", "scale_least", "scale_mean", "scale_most"):
        check(abs(mashed[key] / found[key] - 1) < 1e-3, f"{key}: {found[key]}, {mashed[key]} of the sums over TOF bins")


@pytest.mark.tier2("a form of the scatter correction; results of one exam are tier 1")
def test_of_a_part(folder):
    """Planes that leave a short CT are not compared with the simulation, which would take all counts of the object for
    scatter; of a CT that is truncated at the sides only activity beyond it and the scale show this, unless the end of
    its field is seen. What was found is in the derivation."""
    emission, delayeds = data(folder, "part")
    source, whole = imported(folder, "part", emission, "--delayeds", delayeds)
    short, narrow, padded = (os.path.join(folder, "ct-" + k) for k in ("short", "narrow", "padded"))
    make_ct(short, 34)  # to 10.5 mm: 4 of 15 direct planes are beyond
    make_ct(narrow, half=38)  # nothing but air at the sides: the scatter is too much by two fifths, its scale below 3
    make_ct(padded, half=34, round_field=True)
    made = {name: recon(folder, "part-" + name, (source, ct), "attenuation+randoms+scatter", "--set", "postfilter=4")
            for name, ct in (("whole", whole), ("short", short), ("narrow", narrow), ("padded", padded))}
    for name, (case, _, image) in made.items():
        found = case["corrections"]["scatter"]
        print(f"  {name}: fraction {found['fraction']:.3f}, outside {found['outside']:.4f}, scale "
              f"{found['scale_least']:.2f} to {found['scale_most']:.2f}, {case['warnings']}", flush=True)
        says = (f", scatter {100 * found['fraction']:.1f} % of the counts without randoms, "
                f"scale {found['scale_least']:.2f} to {found['scale_most']:.2f}, ")
        check(says in image.DerivationDescription, f"{name}: {says}: {image.DerivationDescription}")
        check(("SCAT" in image.CorrectedImage) == (name != "short"), f"{name}: {image.CorrectedImage}")
        check(("Not corrected for scatter in all planes: the CT contains the direct planes 1 to 11 of 15, and the "
               "lines of 26 of 47 planes leave it" in
               case["warnings"]) == (name == "short"), case["warnings"])
        check(("of the activity is outside of the body of the CT" in case["warnings"]) == (name in ("narrow",
                                                                                                    "padded")),
              case["warnings"])
        check(("The CT is truncated: the patient reaches the edge of its field of view in 100 %"
               in case["warnings"]) == (name == "padded"), case["warnings"])
        check(("The scatter is doubtful: its scale is more than 3 in" in case["warnings"]) == (name == "padded"),
              case["warnings"])
    x = np.arange(made["whole"][1].shape[1])
    disc = np.hypot(x[:, None] - x.mean(), x[None, :] - x.mean()) < 0.35 * len(x) / 2
    ratio = made["short"][1][:, disc].mean(1) / made["whole"][1][:, disc].mean(1)
    print("  slices with the short CT:", np.round(ratio, 3), flush=True)
    # the first 4 are not in the CT, and the filters take what attenuation lacks there into the next
    check(len(ratio) == 15 and np.all(np.abs(ratio[6:] - 1) < 0.02), f"covered slices: {ratio}")


@pytest.mark.tier2("a form of the scatter correction; results of one exam are tier 1")
def test_in_time_frames(folder):
    """Each frame has the scatter of its own counts, of which the second one has half as much: that which the same data
    have alone."""
    objects, shares = os.path.join(folder, "frames"), (SHARE, SHARE / 2)
    alone, percent = [], []
    for k, share in enumerate(shares):
        emission, delayeds = data(folder, f"frame-{k}", share=share)
        source, ct = imported(folder, f"frame-{k}", emission, "--delayeds", delayeds)
        alone.append(recon(folder, f"alone-{k}", (source, ct), "attenuation+randoms+scatter"))
        for path in glob.glob(os.path.join(source, "*.dcm")):
            d = pydicom.dcmread(path)
            block = d.private_block(0x0071, "TOMONODE SINOGRAM 1")
            for element, value in ((0x15, 4), (0x19, k + 1), (0x1A, 2), (0x1B, 600000 * k), (0x1C, 600000)):
                if element in block:
                    del block[element]
                block.add_new(element, "UL", value)
            d.SeriesInstanceUID, d.AcquisitionTime = "2.25.7103", "101500"
            d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = f"{d.SOPInstanceUID[:56]}.{k + 1}"
            os.makedirs(objects, exist_ok=True)
            d.save_as(os.path.join(objects, f"{k}-{os.path.basename(path)}"))
    case, volume, image = recon(folder, "frames", (objects, ct), "attenuation+randoms+scatter")
    found, n = case["corrections"]["scatter"], int(image.NumberOfSlices)
    check(len(volume) == 2 * n and (found["computed"], found["cached"], found["planes"]) == (2, 0, 2 * 47),
          f"{len(volume)} slices, {found}")
    check("SCAT" in image.CorrectedImage, image.CorrectedImage)
    for k, (one, values, _) in enumerate(alone):
        difference = np.abs(volume[k * n:k * n + n] - values).max() / values.max()
        percent.append(f"{100 * one['corrections']['scatter']['fraction']:.1f}")
        print(f"  frame {k + 1}: scatter {percent[-1]} %, image differs by {difference:.1e}", flush=True)
        # a step of the stored values is 3e-5
        check(difference < 2e-4, f"frame {k + 1} differs by {difference} from the same data alone")
    check(float(percent[1]) < 0.6 * float(percent[0]), percent)
    check(f"scatter {percent[1]} to {percent[0]} % of the counts" in image.DerivationDescription,
          image.DerivationDescription)


# ---- event by event ----

RINGS, CRYSTALS, N_TOF, EVENTS = 8, 96, 3, 2e5 if h.TIER == 2 else 1e5
SETTINGS = ("--set", "algorithm=osem", "--set", f"iterations={3 if h.TIER == 2 else 1}", "--set", "subsets=3",
            "--set", "projector=joseph", "--set", "fov_radius=80")
ONE_SCATTER = ("--set", "scatter_iterations=1")


def whole(expected):
    """Whole numbers of [TOF bin][plane][angle][radial] nearly without noise: their sum over the angles and TOF bins of
    a plane and radial bin, and over several radial bins, is the expected one within 1."""
    ends = np.floor(np.cumsum(expected.transpose(1, 3, 2, 0), dtype=float))
    shape_ = tuple(expected.shape[i] for i in (1, 3, 2, 0))
    return np.diff(ends, prepend=0).astype(int).reshape(shape_).transpose(3, 0, 2, 1)


def counts_of_pairs(folder):
    """Trues, prompts and delayed coincidences of the cylinder, [TOF bin][plane][angle][radial], one pair of detectors
    in each bin."""
    out = os.path.join(folder, "events")
    os.makedirs(out)
    single = os.path.join(out, "single.conf")
    h.write_file(single, SCANNER.replace("span = 3", "span = 1"))
    run("simulate", "pet", "-c", single, "--scanner", "pairs", "--phantom", "cylinder", "--radius", RADIUS, "--length",
        200, "--counts", EVENTS, "--attenuation",
        "--randoms", 0.5, "--delayeds", "--noise-free", "--tof", f"{N_TOF},900,400", "--interfile", "-o", out)
    prompts = np.fromfile(os.path.join(out, "emission.s"), "<f4").reshape(N_TOF, -1, ANGLES, RADIAL)
    delayeds = np.fromfile(os.path.join(out, "delayeds.s"), "<f4").reshape(1, *prompts.shape[1:])
    trues, scatter = prompts - delayeds / N_TOF, shape(out, os.path.join(out, "emission.hs")).reshape(prompts.shape)
    scatter *= SHARE * trues.sum(dtype=float) / scatter.sum(dtype=float)
    return [whole(np.maximum(x, 0)) for x in (trues, prompts + scatter, delayeds)]


def write_events(path, prompts, delayeds, blocks=(0, 1)):
    """A PETSIRD file with the window and the resolution of SCANNER; pairs outside of the radial bins are not in
    coincidence. blocks: halves of the time."""
    edges = np.linspace(-N_TOF / 2, N_TOF / 2, N_TOF + 1) * 900 * 0.149896229
    head = petsird.ring_header(CRYSTALS, RINGS, 105.0, 6.5, tof=edges, fwhm=400 * 0.149896229, start=-np.pi / 2,
                               model="pairs")
    apart = np.abs((np.arange(CRYSTALS)[:, None] - np.arange(CRYSTALS) + CRYSTALS // 2 + CRYSTALS // 2) % CRYSTALS
                   - CRYSTALS // 2)
    head["scanner"].update(eventEnergyBinEdges=[{"edges": np.array((435.0, 650.0))}], energyResolutionAt511=[0.12])
    head["scanner"]["detectionEfficiencies"]["modulePairSGIDLUT"] = [[[[0 if apart[i, j] <= RADIAL // 2 else -1 for j
                                                                        in range(i + 1)] for i in range(CRYSTALS)]]]
    events, random = (lists.of_bins(x, RINGS, CRYSTALS, k) for k, x in enumerate((prompts, delayeds)))
    lists.write(path, head, [lists.pair_block(300000 * k, 300000 * (k + 1), events[k::2], random[k::2])
                             for k in blocks])
    return path


def test_by_single_events(folder):
    """Events have the corrections of their histogram: the same scatter is found, and the image is that of sinograms
    and, in tier 2 with more updates, that of trues alone."""
    trues, prompts, delayeds = counts_of_pairs(folder)
    file, ct = write_events(os.path.join(folder, "scan.petsird"), prompts, delayeds), os.path.join(folder, "ct")
    bins = imported(folder, "bins", "--petsird", file, "--radial", RADIAL)
    events, volume, image = recon(folder, "events", (file, ct), "attenuation+randoms+scatter", *SETTINGS, *ONE_SCATTER,
                                  *attributes())
    counted, sums, _ = recon(folder, "bins", bins, "attenuation+randoms+scatter", *SETTINGS, *ONE_SCATTER)
    found, wanted = events["corrections"], counted["corrections"]
    ratio = inside(volume) / inside(sums)
    print(f"  {events['counts']:.0f} events: scatter {found['scatter']['fraction']:.4f}, "
          f"{wanted['scatter']['fraction']:.4f} of sinograms; the image has {ratio:.4f} of that of sinograms",
          flush=True)
    for key in ("fraction", "scale_least", "scale_mean", "scale_most", "pairs", "points"):
        check(abs(found["scatter"][key] / wanted["scatter"][key] - 1) < 1e-4,
              f"{key}: {found['scatter']}, of sinograms {wanted['scatter']}")
    check(abs(found["randoms"]["total"] - delayeds.sum()) < 1 and events["list_mode"]["events"] == prompts.sum(),
          f"{found['randoms']}, {events['list_mode']}")
    check(abs(ratio - 1) < 0.004, f"{ratio}")
    check({"ATTN", "RAN", "SCAT"} <= set(image.CorrectedImage), image.CorrectedImage)
    check(image.ScatterCorrectionMethod and image.RandomsCorrectionMethod == "DLYD", image.RandomsCorrectionMethod)
    check("Reconstructed event by event: not corrected for dead time." in events["warnings"]
          and "delayed" not in events["warnings"],
          events["warnings"])
    check(glob.glob(os.path.join(folder, "out-events", "*.json"))
          and os.path.basename(file) in image.DerivationDescription,
          os.listdir(os.path.join(folder, "out-events")))
    if h.TIER == 2:
        file = write_events(os.path.join(folder, "trues.petsird"), trues, delayeds[:, :0])
        ideal = imported(folder, "ideal", "--petsird", file, "--radial", RADIAL)
        ratio = inside(volume) / inside(recon(folder, "ideal", ideal, "attenuation", *SETTINGS)[1])
        print(f"  the image has {ratio:.4f} of that of trues", flush=True)
        check(abs(ratio - 1) < 0.01, f"{ratio}")


def attributes():
    return [o.replace("--set", "--attribute") for o in basics()]


ONCE = (*SETTINGS, *ONE_SCATTER, "--set", "iterations=1")


@pytest.mark.tier2("test_in_time_frames has frames of sinograms")
def test_frames_of_single_events(folder):
    """Each frame has its own corrections."""
    _, prompts, delayeds = counts_of_pairs(folder)
    file, ct = write_events(os.path.join(folder, "scan.petsird"), prompts, delayeds), os.path.join(folder, "ct")
    make_ct(ct)
    corrections = "attenuation+randoms+scatter"
    frames, halves, _ = recon(folder, "frames", (file, ct), corrections, *ONCE, *attributes(), "--frames", "300,300")
    half = write_events(os.path.join(folder, "half.petsird"), prompts, delayeds, (1,))
    alone, one, _ = recon(folder, "half", (half, ct), corrections, *ONCE, *attributes())
    found, difference = frames["corrections"], np.abs(halves[len(one):] - one).max() / one.max()
    print(f"  frame 2 differs by {difference:.1e} from the same events alone", flush=True)
    check(found["scatter"]["computed"] == found["randoms"]["computed"] == 2, found)
    check(abs(found["randoms"]["total"] - delayeds.sum()) < 1, found)
    check(len(halves) == 2 * len(one) and difference < 2e-4 and alone["corrections"]["scatter"]["planes"] == 64,
          f"frame 2 differs by {difference}")


def test_single_events_without_delayeds(folder):
    """Sentences say what is not corrected."""
    _, prompts, delayeds = counts_of_pairs(folder)
    file, ct = write_events(os.path.join(folder, "bare.petsird"), prompts, delayeds[:, :0],
                            (1,)), os.path.join(folder, "ct")
    make_ct(ct)
    plain, _, image = recon(folder, "no-delayeds", (file, ct), "attenuation+randoms+scatter", *ONCE, *attributes())
    for says in ("Not corrected for randoms: the data have neither delayed coincidences nor singles",
                 "Not corrected for scatter: it is fitted to the data outside"):
        check(says in plain["warnings"] and not {"RAN", "SCAT"} & set(image.CorrectedImage), plain["warnings"])


# ---- through the node ----

# the energy window is in the header, the resolution in the defaults
MMR = """scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; } );
"""


@pytest.mark.tier2("5.5 million bins of an mMR, twice")
def test_events_through_the_node(folder, things):
    """List mode of an mMR with a CT, event by event: all corrections, from the cache when the result is made again."""
    rng, raw, ct = np.random.default_rng(4), os.path.join(folder, "raw"), os.path.join(folder, "ct-mmr")
    n, pacs = served(folder, things, ("events-pet",), quiet_time=1)
    words = [mmr.mmr.time_mark(0), *mmr.events_at(rng, 30000), *(mmr.mmr.event(int(p), int(v), int(b), False) for p, v,
                                                                 b in
             zip(rng.integers(0, 64, 20000), rng.integers(0, mmr.mmr.VIEWS, 20000),
                 rng.integers(0, mmr.mmr.BINS, 20000))), mmr.mmr.time_mark(20000)]
    os.makedirs(raw)
    mmr.mmr.write_list(os.path.join(raw, "list.dcm"), words, study=STUDY, FrameOfReferenceUID=FRAME)
    mmr.mmr.write_norm(os.path.join(raw, "norm.dcm"), mmr.mmr.Norm(rng), study=STUDY)
    hu = np.where(np.hypot(*np.meshgrid(*[(np.arange(40) - 19.5) * 5] * 2)) < 80, 0, -1000)
    write_ct(ct, np.repeat(hu[None], 60, 0), (5, 5, 5), (-97.5, -97.5, -147.5), frame_of_reference=FRAME, study=STUDY,
             patient={"PatientName": "Raw^Data", "PatientID": "MMR1", "PatientBirthDate": "19500101",
                      "PatientSex": "O"})
    send(n, ct)
    h.run("dcmsend", "-nuc", "-aet", "SCANNER", "-aec", "TOMONODE", "127.0.0.1", n.port,
          *glob.glob(os.path.join(raw, "*.dcm")))
    job, = n.wait_states("delivered", seconds=120)
    image = pydicom.dcmread(pacs.files()[0])
    check({"NORM", "ATTN", "RAN", "SCAT"} <= set(image.CorrectedImage),
          f"{image.CorrectedImage}: {image.DerivationDescription}")
    check("Reconstructed event by event: not corrected for dead time." in image.DerivationDescription,
          image.DerivationDescription)
    n.command("redo", "--set", "iterations=2", str(job["id"]))
    jobs = n.wait_states("delivered", "delivered", seconds=120)
    check([made(n, j) for j in jobs] == [dict.fromkeys(("attenuation", "randoms", "scatter"),
                                                       x) for x in ((1, 0), (0, 1))], [made(n, j) for j in jobs])


ALL = '[ "attenuation", "randoms", "scatter" ]'
PROTOCOLS = {"first-pet": 'algorithm = "osem"; iterations = 1; subsets = 8; matrix = 16;',
             "second-pet": 'algorithm = "mlem"; iterations = 1; matrix = 24;',
             "events-pet": 'algorithm = "mlem"; iterations = 1; matrix = 12; slice_spacing = 32.0; list_mode = true;'}


def configure(n, protocols=("first-pet", "second-pet")):
    n.more_protocols = "".join(f', {{ name = "{name}"; kind = "pet"; deterministic = true; scatter_iterations = 1;'
                               f' corrections = {ALL}; {PROTOCOLS[name]} }}' for name in protocols)
    n.more_routes = (f', {{ name = "pet"; kind = "pet"; protocols = {json.dumps(protocols)};'
                     ' destinations = [ "pacs" ]; }')
    n.more += MMR if "events-pet" in protocols else SCANNER
    n.write_conf()


def served(folder, things, protocols=("first-pet", "second-pet"), **node):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port, **node)
    things += [n, pacs]
    configure(n, protocols)
    pacs.start()
    n.start()
    return n, pacs


def send(n, *folders):
    h.send(n.port, [f for folder in folders for f in sorted(glob.glob(os.path.join(folder, "*.dcm")))])


def made(n, job):
    """How often each correction of a job was computed, and how often found in the cache: the lines of the log, of a
    node or a pilot; of pilots of Slurm, which log to files of their jobs, what the journal has."""
    if h.EXECUTOR == "slurm":
        detail = [e["detail"] for e in n.show(job["id"])["events"] if e["event"] == "reconstructed"][-1]
        return {name: (step["computed"], step["cached"]) for name, step in detail["pet"]["corrections"].items()}
    lines = re.findall(rf" correction-made job={job['id']} correction=(\S+) computed=(\d+) cached=(\d+) seconds=",
                       n.log_text())
    check(len(lines) == len({name for name, _, _ in lines}), lines)
    return {name: (int(computed), int(cached)) for name, computed, cached in lines}


def pixels(paths):
    images = sorted(map(pydicom.dcmread, paths), key=lambda d: d.InstanceNumber)
    check(images and all({"ATTN", "SCAT"} <= set(d.CorrectedImage) for d in images),
          [list(d.CorrectedImage) for d in images[:1]])
    return hashlib.sha256(b"".join(d.PixelData for d in images)).hexdigest(), len(images)


def of_job(n, job):
    return pixels([os.path.join(n.spool, o["file"]) for o in n.show(job["id"])["job"]["result"]["objects"]])


def alone(folder, n, protocol, *paths):
    """The same by `recon`, which has no cache from another result."""
    out = os.path.join(folder, f"alone-{protocol}-{len(os.listdir(folder))}")
    run("recon", "-c", n.conf, "--device", "cpu", "--protocol", protocol, "-o", out, *paths)
    return pixels(glob.glob(os.path.join(out, "*.dcm")))


def test_results_of_one_exam(folder, things):
    """Two protocols: the second result uses all corrections of the first, and is that without a cache to the bit. Other
    settings of the image do, too; other settings of the scatter, and another acquisition of the study, in which one
    delayed coincidence is elsewhere, do not."""
    emission, delayeds = data(folder, "exam")
    source, ct = imported(folder, "exam", emission, "--delayeds", delayeds)
    n, pacs = served(folder, things)
    send(n, source, ct)
    jobs = n.wait_states("delivered", "delivered", seconds=120)
    none, from_cache = dict.fromkeys(("attenuation", "randoms", "scatter"),
                                     (1, 0)), dict.fromkeys(("attenuation", "randoms", "scatter"), (0, 1))
    check([made(n, j) for j in jobs] == [none, from_cache], [made(n, j) for j in jobs])
    check(of_job(n, jobs[1]) == alone(folder, n, "second-pet", source, ct), "other voxels than without a cache")
    check(len(pacs.files()) == sum(of_job(n, j)[1] for j in jobs), "both are delivered")
    n.command("redo", "--set", "iterations=2", str(jobs[0]["id"]))
    n.command("redo", "--set", "scatter_iterations=2", str(jobs[0]["id"]))
    jobs = n.wait_states(*["delivered"] * 4, seconds=120)
    check(made(n, jobs[2]) == from_cache, f"another number of iterations: {made(n, jobs[2])}")
    check(made(n, jobs[-1]) == {**from_cache, "scatter": (1, 0)},
          f"another number of scatter iterations: {made(n, jobs[-1])}")
    other = os.path.join(folder, "other")
    for path in glob.glob(os.path.join(source, "*.dcm")):
        d = pydicom.dcmread(path)
        block = d.private_block(0x0071, "TOMONODE SINOGRAM 1")
        d.SeriesInstanceUID, d.AcquisitionTime = "2.25.7104", "102000"
        d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = f"{d.SOPInstanceUID[:56]}.9"
        if "delayeds" in os.path.basename(path):
            values = bytearray(block[0x10].value)
            values[len(values) // 2] ^= 1
            block[0x10].value, block[0x14].value = bytes(values), hashlib.sha256(bytes(values)).hexdigest()
        os.makedirs(other, exist_ok=True)
        d.save_as(os.path.join(other, os.path.basename(path)))
    send(n, other)
    jobs = n.wait_states(*["delivered"] * 6, seconds=120)
    wanted = [{**none, "attenuation": (0, 1)}, from_cache]
    check([made(n, j) for j in jobs[4:]] == wanted,
          f"another acquisition with the same CT: {[made(n, j) for j in jobs[4:]]}")


@pytest.mark.tier2("the cache of another process; test_results_of_one_exam has that of a worker")
def test_results_on_pilots(folder, things):
    """The second result of an exam uses the corrections that the same pilot made for the first. Another pilot, which
    has none of them, makes them again, with the same voxels."""
    emission, delayeds = data(folder, "pilot")
    source, ct = imported(folder, "pilot", emission, "--delayeds", delayeds)
    n, _ = pilot_tools.cluster_node(folder, things)
    configure(n)
    n.start()
    first = pilot_tools.Pilot(n, things).connected()
    send(n, source, ct)
    jobs = n.wait_states("delivered", "delivered", seconds=120)
    none, from_cache = dict.fromkeys(("attenuation", "randoms", "scatter"),
                                     (1, 0)), dict.fromkeys(("attenuation", "randoms", "scatter"), (0, 1))
    check([made(first, j) for j in jobs] == [none, from_cache], [made(first, j) for j in jobs])
    first.kill()
    second = pilot_tools.Pilot(n, things, ident="d2").connected()
    n.command("redo", str(jobs[1]["id"]))
    jobs = n.wait_states(*["delivered"] * 3, seconds=120)
    check(made(second, jobs[2]) == none, f"the second pilot: {made(second, jobs[2])}")
    check(of_job(n, jobs[2]) == of_job(n, jobs[1]), "other voxels without a cache")


def test_beds_through_the_node(folder, things):
    """Two beds with a CT become one series, with all corrections of each bed. The same result again takes those of both
    from the cache, and has the same voxels."""
    emission, delayeds = data(folder, "bed")
    beds = [o for k, z in enumerate((-13, 13))
            for o in ("--bed", f"{emission},z={z},start={700 * k},duration=600,delayeds={delayeds}")]
    source, ct = imported(folder, "beds", *beds)
    n, pacs = served(folder, things, ("first-pet",))
    send(n, ct, source)
    job, = n.wait_states("delivered", seconds=120)
    images = [pydicom.dcmread(f, stop_before_pixels=True) for f in pacs.files()]
    check(len({d.SeriesInstanceUID for d in images}) == 1
          and {tuple(d.SeriesType) for d in images} == {("WHOLE BODY", "IMAGE")}, f"{len(images)} objects")
    check(len(images) > int(np.ceil(26 / 3.25)) + 15 - 1, f"{len(images)} slices of both beds")
    n.command("redo", str(job["id"]))
    jobs = n.wait_states("delivered", "delivered", seconds=120)
    check([made(n, j) for j in jobs] == [dict.fromkeys(("attenuation", "randoms", "scatter"),
                                                       x) for x in ((2, 0), (0, 2))], [made(n, j) for j in jobs])
    check(of_job(n, jobs[0]) == of_job(n, jobs[1]), "other voxels than without a cache")
