#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure protocols of tomosynthesis and the edges of the views' fields on a breast of labelled voxels (VICTRE), with calcifications added.

    tests/quality_dbt_voxels.py run --volume FILE.mhd [--tomonode PROGRAM] -o results.json      needs python3-numpy
    tests/quality_dbt_voxels.py report RESULTS.json -o docs      docs/dbt-quality-voxels.md and its picture (needs python3-matplotlib)

FILE.mhd is the phantom of the test data (`pcl_1.mhd`, gzip). Noise is that of the photons alone: differences between exams with different seeds.
`run` works in the bundle, on a machine without packages except numpy; without python3-pydicom the cut at the chest wall is left out.
"""
import gzip
import json
import math
import os
import re
import shutil
import statistics
import sys
import tempfile

from quality_report import fill, table, write_text
from quality_run import ONLY, TOMONODE, TOP, WORK, Programs, command, read_json, write_json

STEP = 2e-5  # 1/mm per stored value
LABEL = 250  # calcification in conf/materials-20keV.conf
DISCS = (("mass", 7, 0.0346), ("calcium", 0, 0.95))  # name, half thickness in voxels of 0.2 mm, additional attenuation in 1/mm
LONG, SHORT, NARROW = "1000x1600", "1000x1000", "600x1600"
# name, protocol, settings
STUDIES = [
    ("osem, 1 pass", "dbt-osem", []),
    ("osem, 3, `prior_weight` 0.005", "dbt-osem", ["iterations=3", "prior_weight=0.005"]),
    ("ostr, 1", "dbt-ostr", ["iterations=1", "subsets=0", "prior_weight=0"]),
    ("ostr, 3, 0.005", "dbt-ostr", ["iterations=3", "subsets=0", "prior_weight=0.005"]),
    ("ostr, 3 x 5 subsets", "dbt-ostr", ["iterations=3", "subsets=5", "prior_weight=0"]),
    ("osem, 3, 0.01", "dbt-osem", ["iterations=3", "prior_weight=0.01"]),
    ("ostr, 3, 0.01", "dbt-ostr", ["iterations=3", "subsets=0", "prior_weight=0.01"]),
    ("osem, 3", "dbt-osem", ["iterations=3"]),
    ("osem, 2, quadratic, 0.003", "dbt-osem", ["iterations=2", "prior=quadratic", "prior_weight=0.003"]),
    ("osem, 3, 0.005, `prior_across` 0.5", "dbt-osem", ["iterations=3", "prior_weight=0.005", "prior_across=0.5"]),
    ("osem, 3, 0.005, `prior_gamma` 0", "dbt-osem", ["iterations=3", "prior_weight=0.005", "prior_gamma=0"]),
    ("osem, 3, 0.005, `prior_gamma` 8", "dbt-osem", ["iterations=3", "prior_weight=0.005", "prior_gamma=8"]),
]
EDGES = [("osem, 1 pass", "dbt-osem", []), ("ostr, 1", "dbt-ostr", []), ("mlem, 25", "dbt-mlem", []), ("sart, 2", "dbt-sart", []),
         ("fbp", "dbt-fbp", ["filter_cut=0.8"])]
TAPERS = (0, 5, 10)
SLICES = (40, 46)
CHEST = 28  # bins of 0.34 mm that are cut off at the chest wall
BANDS = ((0, 1), (1, 3), (3, 10), (10, 20), (20, 150))  # columns of voxels from there


def add_calcifications(source, folder):
    """Write the phantom with cubes of 0.2 and 0.4 mm; return the path of its header."""
    with open(source, encoding="ascii") as f:
        head = f.read()
    size = [int(x) for x in next(line for line in head.splitlines() if line.startswith("DimSize")).split("=")[1].split()]
    data = head.split("ElementDataFile =")[1].strip()
    with gzip.open(os.path.join(os.path.dirname(source), data)) as f:
        labels = bytearray(f.read())
    for k, z in enumerate((60, 100, 140, 180, 210)):
        for j, y in enumerate((170, 270, 370)):
            for i, x in enumerate((60, 130, 200)):
                if (i + j + k) % 2 or labels[(z * size[1] + y) * size[0] + x] in (0, 50):
                    continue
                side = range(2 if (i + k) % 4 else 1)
                for at in [((z + c) * size[1] + y + b) * size[0] + x + a for a in side for b in side for c in side]:
                    labels[at] = LABEL
    with open(os.path.join(folder, "breast.raw"), "wb") as f:
        f.write(labels)
    path = os.path.join(folder, "breast.mhd")
    with open(path, "w", encoding="ascii") as f:
        f.write(head.replace(data, "breast.raw").replace("CompressedData = True", "CompressedData = False"))
    return path


def materials_file():
    return next(p for p in (os.path.join(TOP, *d, "materials-20keV.conf") for d in (["conf"], ["etc", "tomonode"])) if os.path.isfile(p))


def add_discs(source, folder):
    """Write the phantom and its materials with discs of additional attenuation; return both paths, and the discs as (name, x, y, z)."""
    import numpy
    from quality_dbt_figures import add_discs as discs_in

    with open(source, encoding="ascii") as f:
        head = f.read()
    size = [int(x) for x in next(line for line in head.splitlines() if line.startswith("DimSize")).split("=")[1].split()]
    labels = numpy.fromfile(os.path.join(folder, "breast.raw"), numpy.uint8).reshape(size[2], size[1], size[0])
    with open(materials_file(), encoding="ascii") as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    mu = {int(line[0]): float(line[1]) for line in lines}
    changed, sites, maps = discs_in(labels, (i for i in range(1, 256) if i not in mu), DISCS)
    changed.tofile(os.path.join(folder, "discs.raw"))
    for (name, _, more), changes in zip(DISCS, maps):
        lines += [[str(new), f"{mu[old] + more:.4f}", name, "tissue"] for old, new in changes.items()]
    with open(os.path.join(folder, "discs.mhd"), "w", encoding="ascii") as f:
        f.write(head.replace("breast.raw", "discs.raw"))
    with open(os.path.join(folder, "discs.conf"), "w", encoding="ascii") as f:
        f.writelines(" ".join(line) + "\n" for line in lines)
    bottom = int(numpy.argmax((labels == 50).mean((1, 2)) < 0.5))  # planes of the paddle are removed
    return os.path.join(folder, "discs.mhd"), os.path.join(folder, "discs.conf"), [(n, x, size[1] / 2 - y, z - bottom) for n, x, y, z in sites]


class Bench:
    def __init__(self, args, folder):
        self.program, self.folder, self.device, self.seeds = Programs(args.tomonode), folder, args.device, range(1, args.realisations + 1)
        self.volume = add_calcifications(args.volume, folder)
        self.discs, self.materials, self.sites = add_discs(self.volume, folder)

    def exam(self, volume, detector, seed):
        """Return the folder of an exam, simulated at its first use; seed 0: without noise."""
        out = os.path.join(self.folder, f"{volume}-{detector}-{seed}")
        if not os.path.isdir(out):
            self.program("simulate", "dbt", "--phantom", "voxels", "--from", self.volume if volume == "breast" else self.discs,
                    "--materials", self.materials, "--detector", detector, *(["--seed", seed] if seed else ["--noise-free"]),
                    "--i0", 2000, "--binning", 4, "-o", out)
        return out

    def reconstruct(self, exam, protocol, settings):
        """Return the summary of the case, the path of its object, and the attenuation, 1/mm."""
        from quality_dbt_figures import read_object

        out, offset = os.path.join(self.folder, "out"), -0.3 if protocol == "dbt-fbp" else 0
        shutil.rmtree(out, ignore_errors=True)
        options = [x for s in [f"stored_step={STEP}", f"stored_offset={offset}", *settings] for x in ("--set", s)]
        case = json.loads(self.program("recon", "--json", "--device", self.device, "--protocol", protocol, *options, "-o", out, exam))["cases"][0]
        path = os.path.join(out, case["file"])
        return case, path, read_object(path, case["size"], STEP, offset)

    def study(self, name, protocol, settings):
        from quality_dbt_figures import noise

        images, found, seconds = [], [], []
        for seed in self.seeds:
            exam = self.exam("breast", LONG, seed)
            case, path, image = self.reconstruct(exam, protocol, settings)
            images.append(image)
            seconds.append(case["seconds"]["reconstruct"])
            found.append(json.loads(self.program("measure", "--json", "--truth", os.path.join(exam, "truth.json"), path)))
        voxel, square, mean = noise(images, case["voxel_mm"][0])
        result = {"name": name, "seconds": min(seconds), "noise": voxel, "square": square, "device": case["device"]}
        for key, value in summarise_all([summarise(f, voxel * mean, square * mean) for f in found]).items():
            result[key] = value
        result |= self.sharpness(images, protocol, settings, case["voxel_mm"])
        print(f"{name}: {result['seconds']:.2f} s, noise {100 * voxel:.2f} %", file=sys.stderr, flush=True)
        return result

    def sharpness(self, images, protocol, settings, voxel):
        """Return MTF50 of the discs along x and y: the mean of two exams with discs minus the mean of two without."""
        from quality_dbt_figures import edge_profile, mtf50

        difference = sum(self.reconstruct(self.exam("discs", LONG, s), protocol, settings)[2] for s in (1, 2)) / 2 - sum(images[:2]) / 2
        rows = difference.shape[1]

        def place(x, y, z):
            return (x + 0.5) * 0.2 / voxel[0] - 0.5, (rows - 1) / 2 + (y - 0.5) * 0.2 / voxel[1], int((z + 0.5) * 0.2 / voxel[2])

        result = {}
        for name, *_ in DISCS:
            for axis, letter in enumerate("xy"):
                profile, count, inner = edge_profile(difference, self.sites, name, axis, voxel[0], place)
                result[f"mtf_{name}_{letter}"] = mtf50(profile, count)
            result[f"disc_{name}"] = inner
        return result

    def edges(self, name, protocol, settings):
        """Compare the cut exam, for each width of the weights, with that of the long detector: steps between rows of the mean over x."""
        _, _, whole = self.reconstruct(self.exam("breast", LONG, 0), protocol, settings)
        result = {"name": name, "steps": {}, "rms": {}, "across": {}, "pictures": {}}
        for taper in TAPERS:
            _, _, cut = self.reconstruct(self.exam("breast", SHORT, 0), protocol, [*settings, f"edge_taper={taper}"])
            off = (whole.shape[1] - cut.shape[1]) // 2
            part = whole[:, off:off + cut.shape[1]]
            mean = [(cut[k] - part[k])[:, 20:140].mean(1) / 0.055 for k in SLICES]
            result["steps"][str(taper)] = max(largest_step([float(v) for v in m]) for m in mean)
            result["rms"][str(taper)] = deviations(cut, part)
            result["pictures"][str(taper)] = cut[SLICES[-1], :, :160].round(4).tolist()
            _, _, cut = self.reconstruct(self.exam("breast", NARROW, 0), protocol, [*settings, f"edge_taper={taper}"])
            result["across"][str(taper)] = across(cut, whole[:, :, :cut.shape[2]])
        result |= self.chest_wall(whole, protocol, settings)
        print(name, result["steps"], result["rms"], result["across"], result.get("chest"), file=sys.stderr, flush=True)
        return result

    def chest_wall(self, whole, protocol, settings):
        """Compare the exam whose images begin 9.5 mm from the chest-wall edge with the same place of the complete one."""
        exam = self.cut_exam(self.exam("breast", LONG, 0))
        result = {"chest": {}, "chest_pictures": {}}
        for taper in (TAPERS[:2] if exam else ()):
            _, _, cut = self.reconstruct(exam, protocol, [*settings, f"edge_taper={taper}"])
            result["chest"][str(taper)] = bands(cut, whole[:, :, CHEST:])
            result["chest_pictures"][str(taper)] = cut[12, 80:320, :60].round(4).tolist()
        return result

    def cut_exam(self, exam):
        """Write an exam without the first columns of its images, which are those at the chest wall; None without pydicom."""
        try:
            import pydicom
        except ImportError:
            return None
        out = os.path.join(self.folder, "chest")
        if os.path.isdir(out):
            return out
        os.mkdir(out)
        for name in (n for n in os.listdir(exam) if n.endswith(".dcm")):
            image = pydicom.dcmread(os.path.join(exam, name))
            pixels = image.pixel_array[:, CHEST:]
            image.PixelData, image.Columns = pixels.tobytes(), pixels.shape[1]
            rows, columns = image.FieldOfViewOrigin
            image.FieldOfViewOrigin = [rows, columns + 4 * CHEST]
            image.FieldOfViewDimensions = [image.FieldOfViewDimensions[0], round(pixels.shape[1] * 0.34)]
            image.save_as(os.path.join(out, name))
        return out


def rms(a, b):
    inside = b > 0.03
    return float((((a - b)[inside] / 0.055) ** 2).mean() ** 0.5)


def deviations(cut, whole):
    """Root mean square deviation in all slices but the outer 5: the 14 mm at the ends, and between them."""
    part, reference = cut[5:-5], whole[5:-5]
    return {"ends": (rms(part[:, :40], reference[:, :40]) + rms(part[:, -40:], reference[:, -40:])) / 2, "middle": rms(part[:, 40:-40], reference[:, 40:-40])}


def bands(cut, whole):
    """Root mean square deviation of bands of columns from the chest wall, without the ends along y and the outer slices."""
    width = min(cut.shape[2], whole.shape[2])
    part, reference = cut[5:-5, 60:-60, :width], whole[5:-5, 60:-60, :width]
    return [rms(part[:, :, a:b], reference[:, :, a:b]) for a, b in BANDS]


def across(cut, whole):
    """The breast cut at the nipple: largest step between columns of the mean over y, and the deviation, without the last 3 mm."""
    mean = [(cut[k] - whole[k])[60:-60].mean(0) / 0.055 for k in SLICES]
    return {"step": max(largest_step([float(v) for v in m]) for m in mean), "rms": rms(cut[5:-5, 60:-60, :-8], whole[5:-5, 60:-60, :-8])}


def largest_step(row):
    d = [b - a for a, b in zip(row, row[1:])]
    return max(abs(d[i] - (d[i - 2] + d[i - 1] + d[i + 1] + d[i + 2]) / 4) for i in range(8, len(d) - 8))


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else float("nan")


def summarise(found, noise, square):
    masses = [r for r in found["regions"] if r.get("cnr") is not None and r["pixels"] >= 50]
    points = [p for p in found["points"] if p["found"]]
    return {"contrast": median(r["contrast"] for r in masses), "sdnr": median(r["contrast"] * r["background"] / noise for r in masses),
            "sdnr_square": median(r["contrast"] * r["background"] / square for r in masses), "calc": median(p["contrast"] for p in points),
            "calc_cnr": median((p["peak"] - p["background"]) / noise for p in points), "found": len(points), "of": len(found["points"]),
            "asf": median(p["asf_fwhm_mm"] for p in points)}


def summarise_all(rows):
    """Return the mean over the exams, and the standard error of each as KEY_se."""
    result = {}
    for key in rows[0]:
        values = [r[key] for r in rows]
        result[key] = statistics.mean(values)
        result[key + "_se"] = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return result


def run(args):
    results = {"version": Programs(args.tomonode)("--version").splitlines()[0], "realisations": args.realisations, "studies": [], "edges": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, args.work or folder)
        for kind, measure, rows in (("studies", bench.study, STUDIES), ("edges", bench.edges, EDGES)):
            for row in rows:
                if re.search(args.only, row[0]):
                    results[kind].append(measure(*row))
                    write_json(args.output, results)


def with_error(key, digits):
    return lambda s: f"{s[key]:.{digits}f} +- {s[key + '_se']:.{digits}f}"


COLUMNS = [("noise, %", lambda s: f"{100 * s['noise']:.2f}"), ("contrast of the mass", lambda s: f"{s['contrast']:.3f}"),
           ("SDNR of the mass", with_error("sdnr", 2)), ("SDNR 4 mm", lambda s: f"{s['sdnr_square']:.0f}"),
           ("contrast of calcifications", with_error("calc", 2)), ("their CNR", with_error("calc_cnr", 1)),
           ("found of 21", lambda s: f"{s['found']:.1f}"), ("ASF FWHM, mm", with_error("asf", 2)),
           ("MTF50 of a mass, x; y, 1/mm", lambda s: f"{s['mtf_mass_x']:.2f}; {s['mtf_mass_y']:.2f}"),
           ("of calcium", lambda s: f"{s['mtf_calcium_x']:.2f}; {s['mtf_calcium_y']:.2f}")]


def study_table(studies):
    return table(["", *[c[0] for c in COLUMNS]], [[s["name"], *[c[1](s) for c in COLUMNS]] for s in studies])


def edge_table(edges):
    rows = [("largest step, %", lambda e, t: e["steps"][t]), ("rms deviation between the ends, %", lambda e, t: e["rms"][t]["middle"]),
            ("at the ends, %", lambda e, t: e["rms"][t]["ends"]), ("cut at the nipple: rms deviation, %", lambda e, t: e["across"][t]["rms"])]
    return table(["", *[f"{t} mm" for t in TAPERS]],
                 [[f"{e['name']}: {label}", *[f"{100 * value(e, str(t)):.1f}" for t in TAPERS]] for e in edges for label, value in rows])


def chest_table(edges):
    return table(["rms deviation, %", *[f"{a * 0.34:.1f} to {b * 0.34:.1f} mm" for a, b in BANDS]],
                 [[f"{e['name']}, `edge_taper` {t}", *[f"{100 * v:.1f}" for v in e["chest"][t]]]
                  for e in edges if e.get("chest") for t in e["chest"]])


def pictures(plt, found, path, size):
    """Draw the pictures of the two widths beside each other."""
    figure, axes = plt.subplots(1, 2, figsize=size)
    for axis, key in zip(axes, (str(TAPERS[0]), str(TAPERS[1]))):
        axis.imshow(found[key], vmin=0.02, vmax=0.09, cmap="gray")
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=70, metadata={"Software": None})


def report(args):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = read_json(args.results)
    fields = {"realisations": results["realisations"], "protocols": study_table(results["studies"]), "edges": edge_table(results["edges"]),
              "chest": chest_table(results["edges"])}
    pictures(plt, results["edges"][0]["pictures"], os.path.join(args.output, "images", "dbt-edges.png"), (8, 4.6))
    if results["edges"][0].get("chest"):
        pictures(plt, results["edges"][0]["chest_pictures"], os.path.join(args.output, "images", "dbt-chest-wall.png"), (3, 5))
    write_text(os.path.join(args.output, "dbt-quality-voxels.md"), fill("quality_dbt_voxels", fields))


if __name__ == "__main__":
    command(__doc__, run, report, volume={"required": True}, tomonode=TOMONODE, device={"default": "cpu"}, only=ONLY, work=WORK,
            realisations={"type": int, "default": 4, "help": "exams with different noise; default 4, at least 2"})
