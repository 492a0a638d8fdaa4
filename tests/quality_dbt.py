#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the image quality of tomosynthesis on simulated exams, like chapter 4 of the thesis on which the DBT pipeline is based.

    tests/quality_dbt.py run [--tomonode PROGRAM] [--devices cpu,cuda] [--quick] -o results.json
    tests/quality_dbt.py report RESULTS.json... -o docs        docs/dbt-quality.md and its plot (needs python3-matplotlib)

`run` needs only the program and the standard library, so it works with the bundle on a GPU machine. Every figure in the
report is measured by `tomonode measure`.
"""
import json
import os
import shutil
import statistics
import sys
import tempfile

from quality_report import fill, read_text, section, table, write_text
from quality_run import QUICK, TOMONODE, Programs, command, read_json, write_json

COMMON = ["voxel=0.34", "stored_step=2e-5"]  # a range up to 1.3/mm, so that the values of beads are not clipped
WIDE_RANGE = ["stored_step=0.001", "stored_offset=-0.5"]  # values are 50 times too large if rows are divided by their sums
# name, protocol, settings; each is one `tomonode recon` of the breast
STUDIES = [
    ("osem-1", "dbt-osem", []),
    ("osem-2", "dbt-osem", ["iterations=2"]),
    ("osem-3", "dbt-osem", ["iterations=3"]),
    ("osem-exact", "dbt-osem", ["projector=exact"]),
    ("osem-rows", "dbt-osem", ["normalise_rows=true", *WIDE_RANGE]),
    ("osem-no-mask", "dbt-osem", ["breast_mask=false"]),
    ("osem-shape", "dbt-osem-rim", []),
    ("mlem-25", "dbt-mlem", ["iterations=25"]),
    ("mlem-50", "dbt-mlem", ["iterations=50"]),
    ("ostr-1", "dbt-ostr", ["iterations=1", "subsets=0"]),
    ("ostr-2", "dbt-ostr", ["iterations=2", "subsets=0"]),
    ("mltr-25", "dbt-mltr", ["iterations=25"]),
    ("sart-1", "dbt-sart", []),
    ("bp", "dbt-bp", []),
    ("fbp", "dbt-fbp", ["filter_cut=0.8"]),
]
SLABS = [("mlem-25", "dbt-mlem", ["iterations=25"]), ("mlem-25-rows", "dbt-mlem", ["iterations=25", "normalise_rows=true"]),
         ("osem-1", "dbt-osem", []), ("osem-1-rows", "dbt-osem", ["normalise_rows=true"]),
         ("ostr-1", "dbt-ostr", ["iterations=1", "subsets=0"])]
BEADS = [("osem-1", "dbt-osem", []), ("osem-exact", "dbt-osem", ["projector=exact"]),
         ("ostr-1", "dbt-ostr", ["iterations=1", "subsets=0"])]
# the shape of the breast: systems with their binning; before and after
RIMS = [("siemens-inspiration", 8), ("siemens-revelation", 8), ("ge-essential", 7), ("ge-senoclaire", 7), ("ge-pristina", 7),
        ("hologic-dimensions", 5), ("hologic-3dimensions", 5), ("victre", 8)]
AFTER = ["breast_shape=true", "skin_edge=true"]
IN_QUICK = {"osem-1", "osem-exact", "ostr-1", "fbp", "mlem-25", "mlem-25-rows"}


def reconstruct(program, folder, exam, device, protocol, settings):
    """Reconstruct one object; return the summary of recon and the path of the object."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    options = [x for s in [*COMMON, *settings] for x in ("--set", s)]
    summary = json.loads(program("recon", "--json", "--device", device, "--protocol", protocol, *options, "-o", out, exam))
    case = summary["cases"][0]
    return case, os.path.join(out, case["file"])


def study(program, folder, exam, device, name, protocol, settings):
    case, path = reconstruct(program, folder, exam, device, protocol, settings)
    figures = json.loads(program("measure", "--json", "--truth", os.path.join(exam, "truth.json"), path))
    print(f"{device:6} {name:14} {case['seconds']['reconstruct']:.2f} s", file=sys.stderr, flush=True)
    return {"name": name, "device": device, "device_name": case["device"], "protocol": protocol, "settings": settings,
            "seconds": case["seconds"]["reconstruct"], "measure": figures}


def slab(program, folder, exam, device, name, protocol, settings):
    """Measure the attenuation of a uniform slab in a circle in the middle of each slice."""
    case, path = reconstruct(program, folder, exam, device, protocol, settings + (WIDE_RANGE if "rows" in name else []))
    columns, rows, frames = case["size"]
    places = [f"z{k}={columns // 4},{rows // 2},{k},15" for k in range(1, frames + 1)]
    figures = json.loads(program("measure", "--json", *[x for p in places for x in ("--region", p)], path))
    return {"name": name, "device": device, "protocol": protocol, "settings": settings,
            "depth": [[r["slice"], r["mean"]] for r in figures["regions"]]}


def rim(program, folder, device, system, binning):
    """Attenuation relative to the truth along the normal of the skin, in the middle slices of a noise-free exam."""
    exam = os.path.join(folder, system)
    program("simulate", "dbt", "--phantom", "ellipsoids", "--noise-free", "--system", system, "--binning", binning, "-o", exam)
    truth = read_json(os.path.join(exam, "truth.json"))
    row = {"system": system, "views": len(truth["angles_degrees"]), "figures": [],
           "arc": max(truth["angles_degrees"]) - min(truth["angles_degrees"]), "pixel": truth["pixel_mm"]}
    for settings in ([], AFTER):
        case, path = reconstruct(program, folder, exam, device, "dbt-osem", ["voxel=0", *settings])
        skin = json.loads(program("measure", "--json", "--truth", os.path.join(exam, "truth.json"), path))["skin"]
        row["figures"].append({s["name"]: s["relative"] for s in skin})
        row["shape"] = case.get("breast_shape")
    return row


def rim_table(rows):
    head = ["system", "voxel, mm", *[name for name in rows[0]["figures"][0] if name != "interior"], "interior, after / before"]
    lines = []
    for row in rows:
        before, after = row["figures"]
        lines.append([f"{row['system']}, {row['views']} views over {row['arc']:.0f} degrees", f"{row['pixel']:g}",
                      *[f"{before[k]:.2f} -> {after[k]:.2f}" for k in before if k != "interior"], f"{after['interior'] / before['interior']:.4f}"])
    return table(head, lines)


def run(args):
    program = Programs(args.tomonode)
    results = {"version": program("--version").splitlines()[0], "studies": [], "slabs": [], "beads": [], "rims": []}
    with tempfile.TemporaryDirectory() as folder:
        breast, flat, beads = (os.path.join(folder, name) for name in ("breast", "slab", "beads"))
        program("simulate", "dbt", "--phantom", "ellipsoids", "-o", breast)
        program("simulate", "dbt", "--phantom", "beads", "-o", beads)
        program("simulate", "dbt", "--phantom", "slab", "--binning", "4", "--noise-free", "-o", flat)
        results["truth"], results["slab_truth"] = (read_json(os.path.join(exam, "truth.json")) for exam in (breast, flat))
        for device in args.devices.split(","):
            for name, protocol, settings in STUDIES:
                if not args.quick or name in IN_QUICK:
                    results["studies"].append(study(program, folder, breast, device, name, protocol, settings))
        for name, protocol, settings in BEADS:
            if not args.quick or name in IN_QUICK:
                results["beads"].append(study(program, folder, beads, args.devices.split(",")[0], name, protocol, settings))
        for name, protocol, settings in SLABS:
            if not args.quick or name in IN_QUICK:
                results["slabs"].append(slab(program, folder, flat, args.devices.split(",")[0], name, protocol, settings))
        for system, binning in RIMS[:1] if args.quick else RIMS:
            results["rims"].append(rim(program, folder, args.devices.split(",")[0], system, binning))
    write_json(args.output, results)


# ---- the report ----


def summary(measured):
    """Return medians over the details of an object, so that objects can be compared."""
    regions = [r for r in measured["regions"] if "cnr" in r]
    large = [r for r in regions if r["pixels"] >= 50]
    points = [p for p in measured["points"] if p["found"]]
    far = [abs(d["error_percent"]) for d in measured["distances"] if d["truth_mm"] >= 80]

    def median(values):
        values = [v for v in values if v is not None]
        return statistics.median(values) if values else float("nan")

    return {"contrast": median(r["contrast"] for r in large), "cnr": median(r["cnr"] for r in large),
            "cv": median(r["cv"] for r in large), "asf": median(r["asf_fwhm_mm"] for r in large),
            "snr": median(p["snr"] for p in points), "fx": median(p["fwhm_mm"][0] for p in points),
            "fy": median(p["fwhm_mm"][1] for p in points), "fz": median(p["fwhm_mm"][2] for p in points),
            "found": len(points), "of": len(measured["points"]), "distance": max(far) if far else float("nan"),
            "background": median(r["background"] for r in large)}


COLUMNS = [("contrast", "contrast", "{:.3f}"), ("CNR", "cnr", "{:.1f}"), ("CV", "cv", "{:.4f}"), ("bead SNR", "snr", "{:.0f}"),
           ("FWHM x, mm", "fx", "{:.3f}"), ("FWHM y, mm", "fy", "{:.3f}"), ("FWHM z, mm", "fz", "{:.2f}"),
           ("ASF FWHM, mm", "asf", "{:.1f}"), ("worst distance, %", "distance", "{:.3f}")]


def study_table(rows, extra):
    head = ["", *[c[0] for c in COLUMNS], *[e[0] for e in extra]]
    return table(head, [[label, *[c[2].format(s[c[1]]) for c in COLUMNS], *[e[1](row) for e in extra]] for label, s, row in rows])


def shading(depth):
    values = [v for _, v in depth]
    inner = values[3:-3]
    mean = statistics.mean(values)
    return mean, (max(inner) - min(inner)) / mean * 100


def plot_asf(by, folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.6))
    for name in ("osem-1", "ostr-1", "mlem-25", "bp", "fbp"):
        regions = [r for r in by[("cpu", name)]["measure"]["regions"] if "asf" in r and r["pixels"] >= 50]
        curve = max(regions, key=lambda r: r["pixels"])["asf"]
        axis.plot([z for z, _ in curve], [v for _, v in curve], label=name)
    axis.set_xlabel("z - z0, mm")
    axis.set_ylabel("ASF of the largest mass")
    axis.set_ylim(0, 1.6)
    axis.legend()
    figure.tight_layout()
    figure.savefig(os.path.join(folder, "dbt-asf.png"), metadata={"Software": None})


def device_columns(by):
    """Return the columns of the times, and of the largest relative difference of figures, where CPU and CUDA were measured."""
    def other(row):
        return by.get(("cuda", row["name"]))

    def worst(row):
        a, b = summary(row["measure"]), summary(other(row)["measure"])
        return max(abs(a[k] - b[k]) / abs(a[k]) for k in ("cnr", "contrast", "fx", "fy", "fz"))

    return [("CPU, s", lambda r: f"{r['seconds']:.2f}" if other(r) else "-"), ("GPU, s", lambda r: f"{other(r)['seconds']:.3f}" if other(r) else "-"),
            ("CPU against GPU", lambda r: f"{worst(r):.1e}" if other(r) else "-")]


def report(args):
    results = {"studies": [], "slabs": [], "beads": [], "rims": []}
    for path in args.results:
        one = read_json(path)
        results["studies"] += one["studies"]
        results["slabs"] = results["slabs"] or one["slabs"]
        results["beads"] = results["beads"] or one["beads"]
        results["rims"] = results["rims"] or one["rims"]
        results.setdefault("truth", one["truth"])
        results.setdefault("slab_truth", one["slab_truth"])
    by = {}
    for row in results["studies"]:
        by.setdefault((row["device"], row["name"]), row)
    truth = results["truth"]
    images = os.path.join(args.output, "images")
    os.makedirs(images, exist_ok=True)
    plot_asf(by, images)
    path = os.path.join(args.output, "dbt-quality.md")
    page = read_text(path)

    studies = [(n, summary(by[("cpu", n)]["measure"]), by[("cpu", n)]) for n, _, _ in STUDIES if ("cpu", n) in by]
    slab_mu = next(s["mu_per_mm"] for s in results["slab_truth"]["shapes"] if s["role"] == "body")
    slab_lines = [[s["name"], f"{mean:.5f}", f"{mean / slab_mu:.4f}", f"{percent:.2f}"]
                  for s in results["slabs"] for mean, percent in [shading(s["depth"])]]
    beads = [p for p in by[("cpu", "osem-1")]["measure"]["points"]]
    bead_lines = []
    for row in results["beads"]:
        pairs = row["measure"]["distances"]
        truths = [d["truth_mm"] for d in pairs]
        bead_lines.append([row["name"], len(pairs), f"{min(truths):.0f} to {max(truths):.0f}", f"{max(abs(d['error_percent']) for d in pairs):.3f}",
                           f"{max(abs(d['in_plane']['error_percent']) for d in pairs):.3f}"])
    longest = max(by[("cpu", "osem-1")]["measure"]["distances"], key=lambda d: d["truth_mm"])
    fields = {
        "observer": section(page, "## Detectability"), "metal": section(page, "## Metal"),  # of the scripts of these sections
        "views": len(truth["angles_degrees"]), "columns": truth["columns"], "rows": truth["rows"], "pixel": truth["pixel_mm"],
        "thickness": truth["thickness_mm"], "i0": f"{truth['i0']:.0f}", "beads": len(beads),
        "algorithms": study_table(studies, device_columns(by)), "rims": rim_table(results["rims"]),
        "bead_distances": table(["", "pairs", "distances, mm", "worst error in space, %", "worst in the plane of the slices, %"], bead_lines),
        "slab": table(["", "mean, 1/mm", "relative to the truth", "shading in depth, %"], slab_lines), "slab_mu": f"{slab_mu:g}",
        "longest": f"{longest['measured_mm']:.3f} mm for {longest['truth_mm']:.3f} mm, {longest['error_percent']:+.3f} %",
        "cpu": by[("cpu", "osem-1")]["device_name"],
        "gpu": next((r["device_name"] for (d, _), r in by.items() if d == "cuda"), "none"),
    }
    write_text(path, fill("quality_dbt", fields))


if __name__ == "__main__":
    command(__doc__, run, report, several=True, tomonode=TOMONODE, devices={"default": "cpu"}, quick=QUICK)
