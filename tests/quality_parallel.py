#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images and times of parallel beams: chapters 6 and 7 of the thesis that they come from, redone on simulated data.

    tests/quality_parallel.py run [--tomonode PROGRAM] [--devices cpu:1,cpu,cuda] [--quick] -o FOLDER
    tests/quality_parallel.py report FOLDER -o docs        docs/parallel-quality.md and its pictures (needs python3-pil)

`run` needs the program, tests/bench of its build or bundle, and Python with numpy alone, so it can be done on a GPU machine out of
the bundle; it leaves FOLDER/results.json. Gains are over the first device. All devices are timed; images are made on the last of all,
some on the last of each kind ("cpu", "cuda"). --quick: small images, to try the script.
Exit code 1: a figure is outside its limits (they are printed).
"""
import json
import os
import shutil
import tempfile
import time

import quality_parallel_figures as figures
from quality_run import Programs, command, kind_of, print_verdicts, processor, say

HERE = os.path.dirname(os.path.realpath(__file__))

PHANTOMS = ("circle", "square", "triangle", "shepp-logan", "head")
WATER = 0.02  # 1/mm, as simulated
# black and white of pictures, in parts of water; head: 1.02 is brain, its details are 1 and 2 % away
WINDOWS = {"circle": (-0.1, 1.1), "square": (-0.1, 1.1), "triangle": (-0.1, 1.1), "shepp-logan": (-0.05, 0.45), "head": (0.98, 1.06)}
PASSES = (1, 10, 100, 300, 500, 900)
COUNTS = {"shepp-logan": 1e5, "head": 1e7}  # photons a bin: through water's 1.4 and 5.9 half of them and 1 of 370 are left
FILTERS = [("ram-lak", "ram-lak", 1), ("shepp-logan", "shepp-logan", 1), ("cosine", "cosine", 1), ("hann", "hann", 1), ("hann 0.5", "hann", 0.5)]
OTHERS = [("FBP", "fbp", []), ("ART, 20 passes", "art", ["iterations=20"]), ("SART, 20 passes", "sart", ["iterations=20"]),
          ("MLEM, 100 passes", "mlem", ["iterations=100"])]
FEW = (10, 50)  # angles, other algorithms


class Work:
    """How much: of a whole run, and of --quick."""

    def __init__(self, quick):
        self.size = 96 if quick else 300
        self.angles = (2, 20, 96) if quick else (2, 10, 50, 100, 300)
        self.phantoms = ("triangle", "shepp-logan") if quick else PHANTOMS
        self.noisy = ("shepp-logan",) if quick else tuple(COUNTS)
        self.few = (20,) if quick else FEW
        self.passes = (1, 10, 30) if quick else PASSES
        self.side = 48 if quick else 150  # of pictures
        self.stack = {"cpu": 2 if quick else 32, "cuda": 8 if quick else 256}
        self.repeat = {"cpu": 1 if quick else 9, "cuda": 3 if quick else 50}


# ---- times ----

TIMED = {"radon": ("radon", "seconds"), "bp": ("bp", "seconds"), "filter": ("fbp-convolution", "filter_seconds"),
         "fbp": ("fbp-convolution", "seconds"), "art": ("art", "seconds")}  # the work of the benchmark, the member of its line


def time_one(programs, device, what, model, side, angles, slices, repeat):
    work, member = TIMED[what]
    options = ["--stages"] if what == "filter" else ["--model", model] if what in ("radon", "art") else []
    line = programs.time("--work", work, *options, "--voxels", f"{side}x{side}x{slices}", "--views", angles, "--device", device, "--repeat", repeat)
    return {"spec": device, "device": line["device"], "work": what, "model": model, "angles": angles, "slices": slices,
            "slice_ms": 1e3 * line[member] / slices}


def measure_times(programs, args, work, began):
    rows = []
    most = work.angles[-1]
    for device in args.devices:
        kind = kind_of(device)
        wanted = [(what, "siddon", n, 1, work.repeat[kind]) for what in ("radon", "bp", "filter", "fbp", "art") for n in work.angles]
        wanted.append(("radon", "sampled", most, 1, 3))
        wanted += [(what, "siddon", most, work.stack[kind], 3) for what in ("radon", "bp", "fbp", "art")]
        for what, model, n, slices, repeat in wanted:
            rows.append(time_one(programs, device, what, model, work.size, n, slices, repeat))
        say(began, f"{device:6} times")
    return rows


# ---- images ----

class Exam:
    """Objects of a phantom or a picture, and what they show."""

    def __init__(self, programs, folder, name, work, *options):
        self.name, self.programs, self.folder = name, programs, os.path.join(folder, name)
        programs("simulate", "parallel", "--size", work.size, *options, "-o", self.folder)
        with open(os.path.join(self.folder, "truth.json"), encoding="ascii") as f:
            self.facts = json.load(f)

    def lines(self):
        path = os.path.join(self.folder, "lines.hs")
        self.programs("export", "-o", path, self.folder)
        return figures.read_lines(path[:-2] + "s", self.facts["angles"], self.facts["radial"])

    def image(self, device, algorithm, settings):
        """The image as a viewer gets it, in 1/mm, and what the program says of it."""
        out = os.path.join(self.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        options = [x for s in settings for x in ("--set", s)]
        summary = json.loads(self.programs("recon", "--json", "--device", device, "--protocol", "parallel-" + algorithm, *options, "-o", out,
                                           *[os.path.join(self.folder, f) for f in os.listdir(self.folder) if f.endswith(".dcm")]))
        path = os.path.join(self.folder, "image.nii")
        self.programs("export", "-o", path, out)
        return figures.read_nifti(path), summary["cases"][0]


class Images:
    def __init__(self, programs, args, work, folder, began, results):
        self.programs, self.work, self.folder, self.began, self.results = programs, work, folder, began, results
        self.device = args.devices[-1]
        self.kinds = list({kind_of(d): d for d in args.devices}.values())  # the last of each kind
        self.truths = {}

    def simulate(self, phantom, angles, *options, name=None):
        exam = Exam(self.programs, self.folder, name or f"{phantom}-{angles}", self.work, "--phantom", phantom, "--angles", angles, *options)
        if phantom not in self.truths:
            self.truths[phantom] = figures.Truth.of_shapes(exam.facts, self.work.size, exam.facts["bin_mm"])
        return exam

    def study(self, table, label, phantom, exam, algorithm, settings=(), compared=None, picture=True):
        """A row of a table of results, with a picture; the image. compared: what to call it among the comparisons of devices."""
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
            say(self.began, phantom)

    def keep_truth(self, phantom):
        window = (v * WATER for v in WINDOWS.get(phantom, WINDOWS["triangle"]))
        self.results["truths"].append({"phantom": phantom, "picture": figures.kept(self.truths[phantom].means, *window, self.work.side)})

    def filters(self):
        """Without noise and with it, from all angles; both routes."""
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
            for label, algorithm, settings in OTHERS[1:3]:  # MLEM refuses the negative lines that noise makes of air
                self.study("noise", label, phantom, exam, algorithm, settings)
        say(self.began, "filters and noise")

    def art(self):
        """Two projections: of the triangle, and of a picture of a right triangle."""
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
        say(self.began, "ART from two projections")


# ---- limits ----

def verdicts(results):
    """(what, worst value found, limit, unit, whether it is kept)."""
    found = []
    most = max(r["angles"] for r in results["fbp"])
    best = [r for r in results["fbp"] if r["angles"] == most]

    def limit(what, values, top, unit):
        if values:
            found.append((what, max(values), top, unit, max(values) <= top))

    limit("CPU against CUDA: largest difference over the largest value", [c["image"] for c in results["comparisons"]], 1e-4, "")
    limit("FBP by convolution against FBP in the Fourier domain", [results["routes"]], 5e-5, "")
    limit(f"FBP from {most} projections: mean inside against the truth, in water", [100 * abs(r["bias"]) for r in best], 1, "%")
    limit(f"FBP from {most} projections: middle of the image against the truth's", [r["off_pixels"] for r in best], 0.05, "pixels")
    limit(f"FBP from {most} projections: correlation when moved by a pixel over that in place", [r["moved"] / r["correlation"] for r in best],
          0.999, "")
    limit(f"FBP from {most} projections: correlation when mirrored over that in place",
          [r["mirrored"] / r["correlation"] for r in best if r["mirrored"] is not None], 0.99, "")
    limit("BP: correlation with the truth over that of FBP", [b["correlation"] / f["correlation"] for b in results["bp"]
                                                              for f in best if (b["phantom"], b["angles"]) == (f["phantom"], most)], 1, "")
    rows = [r for r in results["art"] if "non_negative=false" in r["settings"]]
    limit("ART: residual after the last pass over that after the first", [b["residual"] / a["residual"] for a in rows for b in rows if
                                                                          a["phantom"] == b["phantom"]
                                                                          and a["settings"][0] == rows[0]["settings"][0]
                                                                          and b["settings"][0] == rows[-1]["settings"][0]], 0.5, "")
    return found


def run(args):
    programs, work, began = Programs(args.tomonode), Work(args.quick), time.monotonic()
    args.devices = args.devices.split(",")
    results = {"version": programs("--version").splitlines()[0], "quick": args.quick, "devices": args.devices, "processor": processor(),
               "size": work.size, "counts": {p: COUNTS[p] for p in work.noisy}, "windows": WINDOWS, "times": [], "comparisons": [],
               **{table: [] for table in ("truths", "sinograms", "bp", "fbp", "few", "filters", "noise", "art")}}
    if not args.no_times:
        results["times"] = measure_times(programs, args, work, began)
    with tempfile.TemporaryDirectory(prefix="tomonode-quality-", dir=args.work) as folder:
        images = Images(programs, args, work, folder, began, results)
        images.phantoms()
        images.filters()
        images.art()
    results["seconds"] = time.monotonic() - began
    os.makedirs(args.output, exist_ok=True)
    with open(os.path.join(args.output, "results.json"), "w", encoding="ascii") as f:
        json.dump(results, f)
    return print_verdicts(verdicts(results), results["seconds"])


def report(args):
    import quality_parallel_report  # needs PIL, which a machine that only runs may not have

    with open(os.path.join(args.results, "results.json"), encoding="ascii") as f:
        results = json.load(f)
    quality_parallel_report.write(results, verdicts(results), os.path.join(HERE, "quality_parallel.md.in"), args.output)
    return 0


if __name__ == "__main__":
    command(__doc__, run, report, "small images", "files while it runs")
