#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure protocols of tomosynthesis and the edges of the views' fields on a breast of labelled voxels (VICTRE), with calcifications added.

    tests/quality_dbt_voxels.py run --volume FILE.mhd [--tomonode PROGRAM] -o results.json      needs python3-numpy and python3-pydicom
    tests/quality_dbt_voxels.py report RESULTS.json -o docs      docs/dbt-quality-voxels.md and its picture (needs python3-matplotlib)

FILE.mhd is the phantom of the test data (`pcl_1.mhd`, gzip). Noise is that of the photons alone: the difference of two exams with different seeds.
"""
import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(HERE)
STEP = 2e-5  # 1/mm per stored value
LABEL = 250  # calcification in conf/materials-20keV.conf
# name, protocol, settings
STUDIES = [
    ("osem, 1 pass", "dbt-osem", []), ("osem, 2", "dbt-osem", ["iterations=2"]), ("osem, 3", "dbt-osem", ["iterations=3"]),
    ("osem, 2 x 13 subsets", "dbt-osem", ["iterations=2", "subsets=13"]), ("osem, 5 x 5", "dbt-osem", ["iterations=5", "subsets=5"]),
    ("ostr, 1", "dbt-ostr", []), ("ostr, 2", "dbt-ostr", ["iterations=2"]), ("ostr, 3 x 5", "dbt-ostr", ["iterations=3", "subsets=5"]),
    ("ostr, 5 x 5", "dbt-ostr", ["iterations=5", "subsets=5"]), ("mlem, 25", "dbt-mlem", []), ("mltr, 30", "dbt-mltr", []),
    ("sart, 2", "dbt-sart", []), ("osem, 1, slices of 0.5 mm", "dbt-osem", ["slice_spacing=0.5"]),
    ("osem, 1, slices of 2 mm", "dbt-osem", ["slice_spacing=2"]), ("osem, 1, voxels of 0.17 mm", "dbt-osem", ["voxel=0.17"]),
    ("osem, 3, `prior_weight` 0.005", "dbt-osem", ["iterations=3", "prior_weight=0.005"]),
    ("osem, 2, quadratic, 0.002", "dbt-osem", ["iterations=2", "prior=quadratic", "prior_weight=0.002"]),
]
EDGES = [("osem, 1 pass", "dbt-osem", []), ("ostr, 1", "dbt-ostr", []), ("mlem, 25", "dbt-mlem", []), ("sart, 2", "dbt-sart", []),
         ("fbp", "dbt-fbp", [])]
SLICES = (40, 46)


def program(path, *args):
    done = subprocess.run([path, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"tomonode {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


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


class Bench:
    def __init__(self, args, folder):
        self.path, self.folder = args.tomonode, folder
        volume = add_calcifications(args.volume, folder)
        for name, size, *more in (("first", "1000x1600", "--seed", 1), ("second", "1000x1600", "--seed", 2),
                                  ("whole", "1000x1600", "--noise-free"), ("cut", "1000x1000", "--noise-free")):
            program(self.path, "simulate", "dbt", "--phantom", "voxels", "--from", volume, "--materials",
                    os.path.join(TOP, "conf", "materials-20keV.conf"), "--detector", size, *more, "--i0", 2000, "--binning", 4,
                    "-o", os.path.join(folder, name))

    def reconstruct(self, exam, protocol, settings):
        """Return the summary of the case, the path of its object, and the attenuation, 1/mm."""
        import numpy
        import pydicom

        out, offset = os.path.join(self.folder, "out"), -0.3 if protocol == "dbt-fbp" else 0
        shutil.rmtree(out, ignore_errors=True)
        options = [x for s in [f"stored_step={STEP}", f"stored_offset={offset}", *settings] for x in ("--set", s)]
        case = json.loads(program(self.path, "recon", "--json", "--device", "cpu", "--protocol", protocol, *options, "-o", out,
                                  os.path.join(self.folder, exam)))["cases"][0]
        path = os.path.join(out, case["file"])
        return case, path, pydicom.dcmread(path).pixel_array.astype(numpy.float32) * STEP + offset

    def study(self, name, protocol, settings):
        case, path, one = self.reconstruct("first", protocol, settings)
        found = json.loads(program(self.path, "measure", "--json", "--truth", os.path.join(self.folder, "first", "truth.json"), path))
        _, _, two = self.reconstruct("second", protocol, settings)
        n, rows = one.shape[0], one.shape[1]
        part = (slice(n // 2 - 3 * n // 50, n // 2 + 3 * n // 50), slice(rows * 3 // 10, rows * 7 // 10))
        inside = one[part] > 0.03
        noise = float((one[part] - two[part])[inside].std()) / 2 ** 0.5
        print(f"{name}: {case['seconds']['reconstruct']:.1f} s", file=sys.stderr, flush=True)
        return summarise(found, noise, float(one[part][inside].mean())) | {"name": name, "seconds": case["seconds"]["reconstruct"]}

    def edges(self, name, protocol, settings):
        """Compare the cut exam, without and with weights, with that of the long detector: steps between rows of the mean over x."""
        _, _, whole = self.reconstruct("whole", protocol, settings)
        result = {"name": name, "steps": {}, "pictures": {}}
        for taper in (0, 10):
            _, _, cut = self.reconstruct("cut", protocol, [*settings, f"edge_taper={taper}"])
            off = (whole.shape[1] - cut.shape[1]) // 2
            mean = [(cut[k] - whole[k, off:off + cut.shape[1]])[:, 20:140].mean(1) / 0.055 for k in SLICES]
            result["steps"][str(taper)] = max(largest_step([float(v) for v in m]) for m in mean)
            result["pictures"][str(taper)] = cut[SLICES[-1], :, :160].round(4).tolist()
        print(name, result["steps"], file=sys.stderr, flush=True)
        return result


def largest_step(row):
    d = [b - a for a, b in zip(row, row[1:])]
    return max(abs(d[i] - (d[i - 2] + d[i - 1] + d[i + 1] + d[i + 2]) / 4) for i in range(8, len(d) - 8))


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else float("nan")


def summarise(found, noise, mean):
    masses = [r for r in found["regions"] if r.get("cnr") is not None and r["pixels"] >= 50]
    points = [p for p in found["points"] if p["found"]]
    return {"noise": noise / mean, "contrast": median(r["contrast"] for r in masses),
            "sdnr": median(r["contrast"] * r["background"] / noise for r in masses), "calc": median(p["contrast"] for p in points),
            "calc_cnr": median((p["peak"] - p["background"]) / noise for p in points), "found": len(points), "of": len(found["points"]),
            "asf": median(p["asf_fwhm_mm"] for p in points)}


def run(args):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        results = {"studies": [bench.study(*s) for s in STUDIES], "edges": [bench.edges(*s) for s in EDGES]}
    with open(args.output, "w", encoding="ascii") as f:
        json.dump(results, f)


COLUMNS = [("noise, %", lambda s: f"{100 * s['noise']:.2f}"), ("contrast of masses", lambda s: f"{s['contrast']:.3f}"),
           ("SDNR of masses", lambda s: f"{s['sdnr']:.1f}"), ("contrast of calcifications", lambda s: f"{s['calc']:.2f}"),
           ("their CNR", lambda s: f"{s['calc_cnr']:.1f}"), ("found", lambda s: f"{s['found']} of {s['of']}"),
           ("ASF FWHM, mm", lambda s: f"{s['asf']:.2f}")]


def table(studies):
    lines = ["| | " + " | ".join(c[0] for c in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join([s["name"], *[c[1](s) for c in COLUMNS]]) + " |" for s in studies])


def report(args):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with open(args.results, encoding="ascii") as f:
        results = json.load(f)
    with open(os.path.join(HERE, "quality_dbt_voxels.md.in"), encoding="utf-8") as f:
        text = f.read()
    rows = [f"| {e['name']} | {100 * e['steps']['0']:.1f} | {100 * e['steps']['10']:.1f} |" for e in results["edges"]]
    text = text.replace("{protocols}", table(results["studies"]))
    text = text.replace("{edges}", "\n".join(["| | without | `edge_taper` = 10 mm |", "|---|---|---|", *rows]))
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.6))
    for axis, key in zip(axes, ("0", "10")):
        axis.imshow(results["edges"][0]["pictures"][key], vmin=0.02, vmax=0.09, cmap="gray")
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(os.path.join(args.output, "images", "dbt-edges.png"), dpi=70, metadata={"Software": None})
    with open(os.path.join(args.output, "dbt-quality-voxels.md"), "w", encoding="utf-8") as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="command", required=True)
    r = sub.add_parser("run")
    r.add_argument("--volume", required=True)
    r.add_argument("--tomonode", default=os.environ.get("TOMONODE", os.path.join(TOP, "build", "release", "tomonode")))
    r.add_argument("-o", "--output", required=True)
    r = sub.add_parser("report")
    r.add_argument("results")
    r.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    (run if args.command == "run" else report)(args)


main()
