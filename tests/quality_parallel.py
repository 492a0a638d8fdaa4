#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure images of parallel beams on simulated data.

    tests/quality_parallel.py run [--tomonode PROGRAM] [--devices cpu,cuda] [--quick] -o FOLDER
    tests/quality_parallel.py report FOLDER -o docs        docs/parallel-quality.md and its pictures (needs python3-pil)

`run` needs only the program, and Python with numpy, so it works with the bundle on a GPU machine; it writes FOLDER/results.json. Images
are computed on the last device, some on the last device of each kind ("cpu", "cuda"). --quick: small images, to test the script.
Exit code 1: a figure exceeds its limit (see the output).
"""
import json
import os
import shutil
import tempfile
import time

import quality_parallel_figures as figures
from quality_run import OF_PAGES, Programs, command, kind_of, log_progress, print_verdicts, read_json, write_json

PHANTOMS = ("circle", "square", "triangle", "shepp-logan", "head")
WATER = 0.02  # attenuation of water, 1/mm, in the simulation
# values displayed as black and white, relative to water; head: the brain is 1.02, its details differ by 1 and 2 %
WINDOWS = {"circle": (-0.1, 1.1), "square": (-0.1, 1.1), "triangle": (-0.1, 1.1), "shepp-logan": (-0.05, 0.45), "head": (0.98, 1.06)}
PASSES = (1, 10, 100, 300, 500, 900)
COUNTS = {"shepp-logan": 1e5, "head": 1e7}  # photons per bin: through water's 1.4 and 5.9 half of them and 1 of 370 are left
FILTERS = [("ram-lak", "ram-lak", 1), ("shepp-logan", "shepp-logan", 1), ("cosine", "cosine", 1), ("hann", "hann", 1), ("hann 0.5", "hann", 0.5)]
OTHERS = [("FBP", "fbp", []), ("ART, 20 passes", "art", ["iterations=20"]), ("SART, 20 passes", "sart", ["iterations=20"]),
          ("MLEM, 100 passes", "mlem", ["iterations=100"])]
FEW = (10, 50)  # angles, other algorithms


class Work:
    """Sizes and numbers of a complete run, and of --quick."""

    def __init__(self, quick):
        self.size = 96 if quick else 300
        self.angles = (2, 20, 96) if quick else (2, 10, 50, 100, 300)
        self.phantoms = ("triangle", "shepp-logan") if quick else PHANTOMS
        self.noisy = ("shepp-logan",) if quick else tuple(COUNTS)
        self.few = (20,) if quick else FEW
        self.passes = (1, 10, 30) if quick else PASSES
        self.side = 48 if quick else 150  # size of pictures, pixels


# ---- images ----

class Exam:
    """Simulated objects of a phantom or a picture, and their truth."""

    def __init__(self, programs, folder, name, work, *options):
        self.name, self.programs, self.folder = name, programs, os.path.join(folder, name)
        programs("simulate", "parallel", "--size", work.size, *options, "-o", self.folder)
        with open(os.path.join(self.folder, "truth.json"), encoding="ascii") as f:
            self.facts = json.load(f)

    def lines(self):
        path = os.path.join(self.folder, "lines.hs")
        self.programs("export", "--force", "-o", path, self.folder)
        return figures.read_lines(path[:-2] + "s", self.facts["angles"], self.facts["radial"])

    def image(self, device, algorithm, settings):
        """Reconstruct; return the image as a viewer reads it, in 1/mm, and the summary of recon."""
        out = os.path.join(self.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        options = [x for s in settings for x in ("--set", s)]
        summary = json.loads(self.programs("recon", "--json", "--device", device, "--protocol", "parallel-" + algorithm, *options, "-o", out,
                                           *[os.path.join(self.folder, f) for f in os.listdir(self.folder) if f.endswith(".dcm")]))
        path = os.path.join(self.folder, "image.nii")
        self.programs("export", "--force", "-o", path, out)
        return figures.read_nifti(path), summary["cases"][0]


class Images:
    def __init__(self, programs, args, work, folder, began, results):
        self.programs, self.work, self.folder, self.began, self.results = programs, work, folder, began, results
        self.device = args.devices[-1]
        self.kinds = list({kind_of(d): d for d in args.devices}.values())  # the last device of each kind
        self.truths = {}

    def simulate(self, phantom, angles, *options, name=None):
        exam = Exam(self.programs, self.folder, name or f"{phantom}-{angles}", self.work, "--phantom", phantom, "--angles", angles, *options)
        if phantom not in self.truths:
            self.truths[phantom] = figures.Truth.of_shapes(exam.facts, self.work.size, exam.facts["bin_mm"])
        return exam

    def study(self, table, label, phantom, exam, algorithm, settings=(), compared=None, picture=True):
        """Add a row with a picture to a table of results; return the image. compared: its name in the comparison of devices; None: not compared."""
        image, case = exam.image(self.device, algorithm, settings)
        truth = self.truths[phantom]
        if algorithm == "bp":
            black, white = float(image.min()), float(image.max())
        else:
            black, white = (v * WATER for v in WINDOWS.get(phantom, WINDOWS["triangle"]))
        self.results[table].append({
            "label": label, "phantom": phantom, "angles": exam.facts["angles"], "algorithm": algorithm, "settings": list(settings),
            "device": case["device"], "seconds": case["seconds"]["reconstruct"], "residual": case["parallel"]["residual"],
            **figures.measure(image, truth, WATER), "picture": figures.kept(image, black, white, self.work.side) if picture else None})
        if compared and len(self.kinds) > 1:
            other, _ = exam.image(self.kinds[0], algorithm, settings)
            self.results["comparisons"].append({"name": compared, "specs": [self.kinds[0], self.device],
                                                "image": figures.difference(other, image)})
        return image

    def phantoms(self):
        for phantom in self.work.phantoms:
            for n in self.work.angles:
                exam, last = self.simulate(phantom, n), n == self.work.angles[-1]
                lines = exam.lines()
                self.results["sinograms"].append({"phantom": phantom, "angles": n, "largest": float(lines.max()),
                                                  "picture": figures.kept(lines, 0.0, float(lines.max()), self.work.side)})
                for algorithm in ("bp", "fbp"):
                    self.study(algorithm, f"{phantom} {n}", phantom, exam, algorithm, compared=f"{phantom} {n} {algorithm}" if last else None)
                if n in self.work.few and phantom == "shepp-logan":
                    for label, algorithm, settings in OTHERS:
                        self.study("few", label, phantom, exam, algorithm, settings)
            self.keep_truth(phantom)
            log_progress(self.began, phantom)

    def keep_truth(self, phantom):
        window = (v * WATER for v in WINDOWS.get(phantom, WINDOWS["triangle"]))
        self.results["truths"].append({"phantom": phantom, "picture": figures.kept(self.truths[phantom].means, *window, self.work.side)})

    def filters(self):
        """Reconstruct with and without noise, from all angles; by both filter routes."""
        n = self.work.angles[-1]
        clean = self.simulate("shepp-logan", n)
        for label, name, cut in FILTERS:
            self.study("filters", label, "shepp-logan", clean, "fbp", [f"filter={name}", f"filter_cut={cut}"], picture=False)
        one, _ = clean.image(self.device, "fbp", [])
        other, _ = clean.image(self.device, "fbp", ["route=convolution"])
        self.results["routes"] = figures.difference(one, other)
        for phantom in self.work.noisy:
            exam = self.simulate(phantom, n, "--counts", COUNTS[phantom], name=phantom + "-noise")
            for label, name, cut in FILTERS:
                self.study("noise", label, phantom, exam, "fbp", [f"filter={name}", f"filter_cut={cut}"])
            for label, algorithm, settings in OTHERS[1:3]:  # MLEM refuses the negative line integrals that noise causes in air
                self.study("noise", label, phantom, exam, algorithm, settings)
        log_progress(self.began, "filters and noise")

    def art(self):
        """Reconstruct from two projections of the triangle, and of a picture of a right triangle."""
        triangle = self.simulate("triangle", 2, name="art-triangle")
        path = os.path.join(self.folder, "right.pgm")
        picture = figures.right_triangle(self.work.size)
        figures.write_pgm(path, picture)
        right = Exam(self.programs, self.folder, "art-right", self.work, "--picture", path, "--angles", 2)
        self.truths["right triangle"] = figures.Truth(WATER * picture / 255)
        self.keep_truth("right triangle")
        for phantom, exam in (("triangle", triangle), ("right triangle", right)):
            for positive, below in (("false", "stay"), ("true", "become 0")):
                for passes in self.work.passes:
                    self.study("art", phantom, phantom, exam, "art", [f"iterations={passes}", f"non_negative={positive}"],
                               compared=f"{phantom} art, values below 0 {below}" if passes == self.work.passes[-1] else None)
        log_progress(self.began, "ART from two projections")


# ---- limits ----

def verdicts(results):
    """Return a list of (quantity, worst value, limit, unit, whether the limit is met)."""
    found = []
    most = max(r["angles"] for r in results["fbp"])
    best = [r for r in results["fbp"] if r["angles"] == most]

    def limit(what, values, top, unit):
        if values:
            found.append((what, max(values), top, unit, max(values) <= top))

    limit("CPU compared with CUDA: largest difference, relative to the largest value", [c["image"] for c in results["comparisons"]], 1e-4, "")
    limit("FBP by convolution compared with FBP in the Fourier domain: largest difference, relative to the largest value", [results["routes"]], 5e-5, "")
    limit(f"FBP from {most} projections: error of the mean inside, relative to water", [100 * abs(r["bias"]) for r in best], 1, "%")
    limit(f"FBP from {most} projections: distance of the centre of mass from the true one", [r["off_pixels"] for r in best], 0.05, "pixels")
    limit(f"FBP from {most} projections: correlation of the image moved by a pixel, relative to the image in place", [r["moved"] / r["correlation"] for r in best],
          0.999, "")
    limit(f"FBP from {most} projections: correlation of the mirrored image, relative to the image itself",
          [r["mirrored"] / r["correlation"] for r in best if r["mirrored"] is not None], 0.99, "")
    limit("BP: correlation with the truth, relative to that of FBP", [b["correlation"] / f["correlation"] for b in results["bp"]
                                                              for f in best if (b["phantom"], b["angles"]) == (f["phantom"], most)], 1, "")
    rows = [r for r in results["art"] if "non_negative=false" in r["settings"]]
    limit("ART: residual after the last pass, relative to that after the first", [b["residual"] / a["residual"] for a in rows for b in rows if
                                                                          a["phantom"] == b["phantom"]
                                                                          and a["settings"][0] == rows[0]["settings"][0]
                                                                          and b["settings"][0] == rows[-1]["settings"][0]], 0.5, "")
    return found


def run(args):
    programs, work, began = Programs(args.tomonode), Work(args.quick), time.monotonic()
    args.devices = args.devices.split(",")
    results = {"version": programs("--version").splitlines()[0], "quick": args.quick, "devices": args.devices,
               "size": work.size, "counts": {p: COUNTS[p] for p in work.noisy}, "windows": WINDOWS, "comparisons": [],
               **{table: [] for table in ("truths", "sinograms", "bp", "fbp", "few", "filters", "noise", "art")}}
    with tempfile.TemporaryDirectory(prefix="tomonode-quality-", dir=args.work) as folder:
        images = Images(programs, args, work, folder, began, results)
        images.phantoms()
        images.filters()
        images.art()
    results["seconds"] = time.monotonic() - began
    os.makedirs(args.output, exist_ok=True)
    write_json(os.path.join(args.output, "results.json"), results)
    return print_verdicts(verdicts(results), results["seconds"])


def report(args):
    import quality_parallel_report  # here, because it needs PIL, which `run` does not need

    results = read_json(os.path.join(args.results, "results.json"))
    quality_parallel_report.write(results, verdicts(results), args.output)
    return 0


if __name__ == "__main__":
    command(__doc__, run, report, **OF_PAGES)
