#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the image quality of PET on simulated data.

    tests/quality_pet.py run [--tomonode PROGRAM] [--devices cpu,cuda] [--quick] -o RESULTS.json
    tests/quality_pet.py report RESULTS.json -o docs        docs/pet-quality.md and its pictures (needs python3-matplotlib)

`run` needs the program, and Python with numpy alone, so it can be done on a GPU machine out of the bundle. Images are made on the last
device of each kind ("cpu", "cuda"), those that only one device has to make on the last of all. --quick: the scanner `small`; says nothing
of any scanner. Exit code 1: a figure is outside its limits (they are printed).
"""
import base64
import json
import os
import shutil
import tempfile
import time

import numpy as np

import quality_pet_figures as figures
from quality_run import OF_PAGES, Programs, command, kind_of, log_progress, print_verdicts, read_json, write_json

SCANNER, QUICK_SCANNER = "ge-discovery-ste", "small"
COUNTS = 2e8  # sum of the data with noise, without randoms
RANDOMS = 0.2  # fraction of COUNTS, in the data with all effects
# name, options of `simulate pet`
DATA = [
    ("cylinder", ["--phantom", "cylinder", "--noise-free"]),
    ("cylinder-noise", ["--phantom", "cylinder"]),
    ("iq", ["--phantom", "nema-iq", "--noise-free"]),
    ("iq-noise", ["--phantom", "nema-iq"]),
    ("iq-all", ["--phantom", "nema-iq", "--attenuation", "--randoms", str(RANDOMS)]),
    ("f-shape", ["--phantom", "f-shape", "--noise-free"]),
]
NEAR = ["fov_radius=200"]
# name, data, protocol, settings, True: on every kind of device, False: on the last device only; whether the report shows a picture
STUDIES = [
    ("cylinder", "cylinder", "pet-mlem", NEAR, True, True),
    ("cylinder-noise", "cylinder-noise", "pet-mlem", NEAR, True, True),
    ("iq-20", "iq", "pet-mlem", [*NEAR, "iterations=20"], True, False),
    ("iq-40", "iq", "pet-mlem", NEAR, True, True),
    ("iq-40-full", "iq", "pet-mlem", [], False, False),
    ("iq-40-128", "iq", "pet-mlem", ["matrix=128"], False, False),
    ("iq-noise-20", "iq-noise", "pet-mlem", [*NEAR, "iterations=20"], True, False),
    ("iq-noise-40", "iq-noise", "pet-mlem", NEAR, True, True),
    ("iq-noise-40-filter", "iq-noise", "pet-mlem", [*NEAR, "postfilter=4"], False, True),
    ("iq-noise-osem", "iq-noise", "pet-osem", [*NEAR, "postfilter=0"], False, False),
    ("iq-noise-osem-filter", "iq-noise", "pet-osem", NEAR, False, True),
    ("iq-noise-psf", "iq-noise", "pet-mlem", [*NEAR, "psf=4"], False, True),
    ("iq-noise-joseph", "iq-noise", "pet-mlem", [*NEAR, "projector=joseph"], False, False),
    ("iq-noise-bsrem", "iq-noise", "pet-mlem", [*NEAR, "algorithm=bsrem", "iterations=10"], False, True),
    ("iq-noise-fbp", "iq-noise", "pet-fbp-preview", NEAR, False, True),
    ("iq-all-40", "iq-all", "pet-mlem", NEAR, False, True),
    ("f-shape", "f-shape", "pet-mlem", NEAR, False, True),
]
QUICK = {"cylinder", "cylinder-noise", "iq-20", "iq-40", "iq-noise-40", "iq-noise-osem-filter", "iq-noise-fbp", "iq-all-40", "f-shape"}
QUICK_SETTINGS = {"fov_radius=200": "matrix=96"}
# With and without time of flight, from the same events: a scanner that is described here, a resolution of 250 ps (37 mm). Without:
# all TOF bins are added.
TOF_SCANNER = """scanners = ( { name = "tof"; manufacturer = "tomonode"; model = "tof"; rings = 24; ring_spacing = 6.5; radius = 400.0;
    interaction_depth = 8.0; detectors = 400; bin = 4.0; radial = 97; angles = 64; span = 3; max_difference = 4;
    arc_corrected = true; } );
"""
TOF_BINS, TOF_WIDTH, TOF_RESOLUTION = 17, 160, 250  # ps
TOF_COUNTS, TOF_RANDOMS = 2e7, 0.5
TOF_ITERATIONS, TOF_QUICK_ITERATIONS = (3, 5, 10, 20, 40), (1, 2)


# ---- images ----

def numbers(value, prefix=""):
    """Return all numbers of a JSON value, by the dotted path of their keys."""
    found = {}
    if isinstance(value, dict):
        for key, one in value.items():
            found.update(numbers(one, f"{prefix}{key}."))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        found[prefix[:-1]] = value
    return found


def sums(case):
    """Return sum(y) and sum(Ax) from the report of a job; None if they are not equal in theory with this algorithm."""
    found = {key.rsplit(".", 1)[-1]: value for key, value in numbers(case).items()}
    data, model = found.get("sum_data") or 0, found.get("sum_model") or 0
    return {"data": data, "model": model, "relative": model / data - 1} if data and model else None


def reconstruct(programs, folder, exam, device, protocol, settings, *more):
    """Reconstruct an exam; return the summaries of recon and export, and the image."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    options = [x for s in settings for x in ("--set", s)]
    summary = json.loads(programs("recon", "--json", "--device", device, "--protocol", protocol, *options, *more, "-o", out, exam))
    image = os.path.join(out, "image.hv")
    exported = json.loads(programs("export", "--json", "-o", image, out))
    return summary["cases"][0], exported, figures.Image.read(image)


def picture(image, truth):
    """Return the central transaxial slice and the coronal slice through the middle of the body, for the F phantom also the maximum along
    z and y, as bytes with the head at the top. 255 (white) is the largest value in them."""
    y = truth["shapes"][0]["center_mm"][1]
    row = int(round((y - image.first[1]) / image.spacing[1]))
    planes = {"transaxial": image.values[image.slice_at(0)], "coronal": image.values[::-1, row]}
    if truth["phantom"] == "f-shape":
        planes.update({"all transaxial": image.values.max(0), "all coronal": image.values[::-1].max(1)})
    white = float(max(p.max() for p in planes.values()))
    return {"white": white, "spacing_mm": image.spacing,
            **{name: {"size": list(p.shape[::-1]), "bytes": base64.b64encode(
                np.clip(np.rint(p * (255 / white)), 0, 255).astype(np.uint8).tobytes()).decode("ascii")} for name, p in planes.items()}}


def measure(image, truth):
    measured = {"cylinder": figures.cylinder, "nema-iq": figures.nema, "f-shape": figures.f_shape}
    return {truth["phantom"]: measured[truth["phantom"]](image, truth)}


def study(programs, folder, exam, truth, device, row):
    name, data, protocol, settings, _, keep = row
    case, exported, image = reconstruct(programs, folder, exam, device, protocol, settings)
    figure = measure(image, truth)
    return image, {"name": name, "data": data, "spec": device, "device": case["device"], "protocol": protocol, "settings": settings,
                   "size": exported["size"], "voxel_mm": exported["voxel_mm"], "units": exported["units"], "sums": sums(case),
                   "seconds": case.get("seconds", {}), "device_bytes": case.get("device_bytes"), **figure,
                   "picture": picture(image, truth) if keep else None}


def compare(one, other, first, second):
    """Compare a study on two devices: differences of figures in percentage points, of images relative to the largest value."""
    result = {"name": one["name"], "specs": [one["spec"], other["spec"]], "image": figures.difference(first, second)}
    for phantom in ("cylinder", "nema-iq"):
        if phantom in one:
            a, b = one[phantom], other[phantom]
            result["nsr_points"] = 100 * abs(a["nsr"] - b["nsr"])
            if "spheres" in a:
                result["recovery_points"] = 100 * max(abs(p["recovery"][f] - q["recovery"][f]) for p, q in zip(a["spheres"], b["spheres"])
                                                      for f in p["recovery"])
    return result


def measure_images(programs, args, folder, began, results):
    kinds = {kind_of(d): d for d in args.devices}  # the last device of each kind
    devices = list(kinds.values())
    for data, options in DATA:
        rows = [s for s in STUDIES if s[1] == data and (not args.quick or s[0] in QUICK)]
        if not rows:
            continue
        exam = os.path.join(folder, data)
        programs("simulate", "pet", "--scanner", args.scanner, "--counts", COUNTS, *options, "-o", exam)
        with open(os.path.join(exam, "truth.json"), encoding="ascii") as f:
            truth = results["truths"][data] = json.load(f)
        log_progress(began, f"simulated {data}")
        for row in rows:
            if args.quick:
                row = (*row[:3], [QUICK_SETTINGS.get(s, s) for s in row[3]], *row[4:])
            images = []
            for device in devices if row[4] else [args.devices[-1]]:
                image, found = study(programs, folder, exam, truth, device, row)
                results["studies"].append(found)
                images.append((found, image))
                log_progress(began, f"{device:6} {row[0]}")
            if row[0] == "iq-40":
                results["perfect"] = measure(figures.perfect(truth, images[0][1]), truth)
            if len(images) > 1:
                results["comparisons"].append(compare(images[0][0], images[1][0], images[0][1], images[1][1]))
        shutil.rmtree(exam)


def measure_tof(programs, args, folder, began):
    """Reconstruct the IQ phantom with and without time of flight, on the last device. Return the figures by iterations."""
    exam, config = os.path.join(folder, "tof"), os.path.join(folder, "tof.conf")
    with open(config, "w", encoding="ascii") as f:
        f.write(TOF_SCANNER.replace("rings = 24", "rings = 8").replace("angles = 64", "angles = 16") if args.quick else TOF_SCANNER)
    programs("simulate", "pet", "-c", config, "--scanner", "tof", "--phantom", "nema-iq", "--attenuation", "--randoms", TOF_RANDOMS,
             "--counts", TOF_COUNTS, "--tof", f"{TOF_BINS},{TOF_WIDTH},{TOF_RESOLUTION}", "-o", exam)
    with open(os.path.join(exam, "truth.json"), encoding="ascii") as f:
        truth = json.load(f)
    rows = []
    for tof in (False, True):
        for iterations in TOF_QUICK_ITERATIONS if args.quick else TOF_ITERATIONS:
            settings = [f"matrix={48 if args.quick else 96}", "fov_radius=160", f"iterations={iterations}", f"tof_mashing={1 if tof else TOF_BINS}"]
            case, exported, image = reconstruct(programs, folder, exam, args.devices[-1], "pet-mlem", settings, "-c", config)
            rows.append({"tof": tof, "iterations": iterations, "voxel_mm": exported["voxel_mm"], "size": exported["size"],
                         "device": case["device"], "seconds": case["seconds"]["reconstruct"], **measure(image, truth)})
            log_progress(began, f"{args.devices[-1]:6} {'with' if tof else 'without'} time of flight, {iterations} iterations")
    shutil.rmtree(exam)
    return {"truth": truth, "rows": rows}


# ---- limits ----

def verdicts(results):
    """Return a list of (quantity, worst value, limit, unit, whether the limit is met)."""
    found = []

    def limit(what, values, most, unit):
        values = [v for v in values if v is not None]
        if values:
            found.append((what, max(values), most, unit, max(values) <= most))

    compared = results["comparisons"]
    limit("CPU compared with CUDA: largest difference, relative to the largest value", [c["image"] for c in compared], 1e-4, "")
    limit("CPU compared with CUDA: difference of recovery", [c.get("recovery_points") for c in compared], 0.1, "points")
    limit("CPU compared with CUDA: difference of NSR", [c.get("nsr_points") for c in compared], 0.05, "points")
    limit("uniform cylinder without noise: error of the mean of the circle",
          [abs(100 * (s["cylinder"]["over_truth"] - 1)) for s in results["studies"] if s["name"] == "cylinder"], 1, "%")
    limit("relative difference of sum(Ax) and sum(y), MLEM", [abs(s["sums"]["relative"]) for s in results["studies"] if s["sums"]], 1e-5, "")
    voxel = results["studies"][0]["voxel_mm"][0] if results["studies"] else 1
    limit("F phantom: distance of the ball from its true position", [s["f-shape"]["error_mm"] for s in results["studies"] if "f-shape" in s], voxel, "mm")
    return found


def run(args):
    programs, began = Programs(args.tomonode), time.monotonic()
    args.devices = args.devices.split(",")
    args.scanner = QUICK_SCANNER if args.quick else SCANNER
    results = {"version": programs("--version").splitlines()[0], "quick": args.quick, "scanner": args.scanner, "devices": args.devices,
               "randoms": RANDOMS, "truths": {}, "studies": [], "comparisons": []}
    with tempfile.TemporaryDirectory(prefix="tomonode-quality-", dir=args.work) as folder:
        measure_images(programs, args, folder, began, results)
        results["tof"] = measure_tof(programs, args, folder, began)
    results["clearances_mm"] = figures.clearances(results["truths"]["iq"])
    results["seconds"] = time.monotonic() - began
    write_json(args.output, results)
    return print_verdicts(verdicts(results), results["seconds"])


def report(args):
    import quality_pet_report  # here, because it needs matplotlib, which `run` does not need

    results = read_json(args.results)
    quality_pet_report.write(results, verdicts(results), args.output)
    return 0


if __name__ == "__main__":
    command(__doc__, run, report, **OF_PAGES)
