# SPDX-License-Identifier: Apache-2.0
"""Write the tables and pictures of docs/pet-quality.md from the results of tests/quality_pet.py. Needs matplotlib."""
import base64
import os
import statistics

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from quality_report import fill, table, write_text  # noqa: E402

WINDOWS = {"cylinder": 1.5, "nema-iq": 5.0, "f-shape": 44.0}  # value displayed as white, relative to the activity of the body


# ---- figures ----

def describe(study):
    """Return size and settings as text."""
    size = " x ".join(map(str, study["size"]))
    return f"{size}, voxels of {study['voxel_mm'][0]:.3g} x {study['voxel_mm'][1]:.3g} x {study['voxel_mm'][2]:.3g} mm"


def percent(value, digits=1):
    return f"{100 * value:.{digits}f}"


def cylinder_table(studies):
    rows = [[s["name"], f"{s['cylinder']['mean']:.1f} {s['units']}", percent(s["cylinder"]["over_truth"] - 1, 2),
             " to ".join(percent(v - 1, 2) for v in s["cylinder"]["inner_over_truth"]), percent(s["cylinder"]["nsr"], 2)]
            for s in studies if "cylinder" in s]
    return table(["", "mean of the circle", "relative to the truth, %", "in the inner half of the slices, %", "NSR, %"], rows)


def noise_table(studies):
    rows = [[s["name"], describe(s), percent(s["nema-iq"]["over_truth"] - 1, 2), percent(s["nema-iq"]["nsr"], 2)]
            for s in studies]
    return table(["", "image", "background relative to the truth, %", "NSR, %"], rows)


def recovery_table(entries, factors=("1", "0.8", "0.4")):
    """entries: (label, figures of the IQ phantom). With NEMA's circle, 1, the variability is behind the recovery."""
    def cell(sphere, one):
        return percent(sphere["recovery"][one]) + (f" ({percent(sphere['variability'], 2)})" if one == "1" else "")

    rows = [[what, f, *[cell(s, f) for s in figures["spheres"]]] for what, figures in entries for f in factors]
    return table(["recovery, %", "circle / sphere", *sphere_heads(entries)], rows)


def sphere_heads(entries):
    return [f"{s['diameter_mm']:g} mm {'hot' if s['ratio'] > 1 else 'cold'}" for s in entries[0][1]["spheres"]]


def algorithm_table(studies):
    rows = []
    for s in studies:
        q = s["nema-iq"]
        seconds = s["seconds"].get("reconstruct")
        rows.append([s["name"], ", ".join([s["protocol"], *s["settings"]]), "" if seconds is None else f"{seconds:.2f}",
                     percent(q["over_truth"] - 1, 2), percent(q["nsr"]), *[f"{percent(p['recovery']['1'])} ({percent(p['variability'])})"
                                                                      for p in q["spheres"]]])
    return table(["", "protocol", "s", "background, %", "NSR, %", *sphere_heads([(None, studies[0]["nema-iq"])])], rows)


def tof_table(rows):
    return table(["", "iterations", "NSR, %", *sphere_heads([(None, rows[0]["nema-iq"])])],
                 [["with time of flight" if r["tof"] else "without", r["iterations"], percent(r["nema-iq"]["nsr"]),
                   *[f"{percent(p['recovery']['1'])} ({percent(p['variability'])})" for p in r["nema-iq"]["spheres"]]] for r in rows])


def tof_fields(tof):
    """Return the fields of the section on time of flight."""
    truth, rows = tof["truth"], tof["rows"]
    bins = truth["tof"]
    return {
        "tof_bins": bins["bins"], "tof_width": f"{bins['width_ps']:g}", "tof_resolution": f"{bins['resolution_ps']:g}",
        "tof_fwhm": f"{2.35482 * bins['sigma_mm']:.0f}", "tof_planes": truth["planes"], "tof_angles": truth["angles"],
        "tof_radial": truth["radial"], "tof_counts": f"{truth['expected_counts']:.3g}",
        "tof_randoms": f"{100 * truth['expected_randoms'] / truth['expected_counts']:.0f}", "tof_image": describe(rows[0]),
        "tof_device": rows[0]["device"], "tof": tof_table(rows),
    }


# ---- pictures ----

def plane(study, name, white):
    kept = study["picture"][name]
    values = np.frombuffer(base64.b64decode(kept["bytes"]), np.uint8).reshape(kept["size"][::-1]).astype(float)
    return np.clip(values * (study["picture"]["white"] / 255 / white), 0, 1)


def gallery(studies, truths, path):
    """Draw one column per study: transaxial above, coronal below; for the F phantom a second one with the maximum along z and y."""
    columns = [(s, kind) for s in studies for kind in ("", "all ") if kind + "coronal" in s["picture"]]
    figure, axes = plt.subplots(2, len(columns), figsize=(2.2 * len(columns), 3.5), squeeze=False,
                                gridspec_kw={"height_ratios": [1, 0.5]})
    for column, (s, kind) in enumerate(columns):
        truth = truths[s["data"]]
        white = WINDOWS[truth["phantom"]] * truth["shapes"][0]["becquerel_per_ml"]
        spacing = s["picture"]["spacing_mm"]
        for row, name, aspect in ((0, "transaxial", 1), (1, "coronal", spacing[2] / spacing[0])):
            axes[row][column].imshow(plane(s, kind + name, white), cmap="gray_r", vmin=0, vmax=1, aspect=aspect, interpolation="nearest")
            axes[row][column].set_axis_off()
        axes[0][column].set_title(f"{s['name']}, {s['spec']}{', all slices' if kind else ''}", fontsize=8)
    figure.tight_layout(pad=0.4)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def recovery_plot(entries, path):
    figure, axis = plt.subplots(figsize=(6, 3.6))
    for what, q in entries:
        for hot, style in ((True, "o-"), (False, "s--")):
            of = [s for s in q["spheres"] if (s["ratio"] > 1) == hot]
            line = axis.plot([s["diameter_mm"] for s in of], [100 * s["recovery"]["1"] for s in of], style,
                             label=what if hot else None, color=None if hot else line[0].get_color())
    axis.set_xlabel("sphere, mm (circles: hot, squares: cold)")
    axis.set_ylabel("recovery, %")
    axis.set_ylim(0, 110)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def trade_plot(studies, path):
    figure, axis = plt.subplots(figsize=(6, 3.6))
    for s in studies:
        q = s["nema-iq"]["spheres"]
        hot = [p for p in q if p["ratio"] > 1]
        x = 100 * statistics.mean(p["variability"] for p in hot)
        y = 100 * statistics.mean(p["recovery"]["1"] for p in hot)
        axis.plot([x], [y], "o")
        axis.annotate(s["name"], (x, y), textcoords="offset points", xytext=(5, 3), fontsize=8)
    axis.margins(x=0.25, y=0.15)
    axis.set_xlabel("background variability N, %, mean over the hot spheres")
    axis.set_ylabel("recovery, %, mean over the hot spheres")
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


# ---- the page ----

def fields(results, verdicts, images):
    studies, truths = results["studies"], results["truths"]
    last = results["devices"][-1]
    own = {s["name"]: s for s in studies if s["spec"] == last}
    iq = [s for s in own.values() if "nema-iq" in s]
    clean = [s for s in iq if s["data"] == "iq"]
    algorithms = [s for s in iq if s["data"] != "iq"]

    def entries(kind):
        return [(s["name"], s["nema-iq"]) for s in kind]

    perfect = [("the phantom itself on these voxels", results["perfect"]["nema-iq"])]
    shown = [s for s in studies if s["picture"]]
    gallery([s for s in shown if "cylinder" in s], truths, os.path.join(images, "pet-cylinder.png"))
    gallery([s for s in shown if s["name"] in ("iq-40", "iq-noise-40")], truths, os.path.join(images, "pet-iq.png"))
    gallery([s for s in shown if "nema-iq" in s and s["name"] not in ("iq-40", "iq-noise-40")], truths,
            os.path.join(images, "pet-algorithms.png"))
    gallery([s for s in shown if "f-shape" in s], truths, os.path.join(images, "pet-f.png"))
    recovery_plot([*perfect, *[(n, own[n]["nema-iq"]) for n in ("iq-20", "iq-40") if n in own]],
                  os.path.join(images, "pet-recovery.png"))
    trade_plot(algorithms, os.path.join(images, "pet-trade.png"))
    shape = own["f-shape"]["f-shape"]
    truth, all_effects = truths["iq-noise"] if "iq-noise" in truths else truths["iq"], truths.get("iq-all")
    return {
        "version": results["version"], "scanner": truth["scanner"], "planes": truth["planes"], "angles": truth["angles"],
        "radial": truth["radial"], "bins": f"{truth['planes'] * truth['angles'] * truth['radial'] / 1e6:.2f}",
        "quick": "**A trial run with a small invented scanner (`--quick`): the figures are not representative.**\n\n"
                 if results["quick"] else "",
        "counts": f"{truth['expected_counts']:.3g}", "randoms": f"{100 * results['randoms']:.0f}",
        "devices": " and ".join(dict.fromkeys(s["device"] for s in studies)), "device": own["cylinder"]["device"],
        "limits": table(["quantity", "worst value", "limit", ""],
                        [[w, f"{v:.2g} {u}".strip(), f"{m:.3g} {u}".strip(), "met" if ok else "**not met**"] for w, v, m, u, ok in verdicts]),
        "cylinder": cylinder_table(own.values()), "cylinder_radius": f"{own['cylinder']['cylinder']['radius_mm']:g}",
        "cylinder_activity": f"{truths['cylinder']['shapes'][0]['becquerel_per_ml']:g}",
        "noise": noise_table(clean),
        "recovery_clean": recovery_table([*perfect, *entries(clean)]),
        "circles": perfect[0][1]["circles"],
        **{f"clear_{k}": f"{v:.1f}" for k, v in results["clearances_mm"].items()},
        "algorithms": algorithm_table(algorithms),
        "all_counts": f"{all_effects['counts']:.3g}" if all_effects else "",
        "f_error": f"{shape['error_mm']:.2f}", "f_voxel": f"{own['f-shape']['voxel_mm'][0]:.2f}",
        **tof_fields(results["tof"]),
        "f_mirrors": f"{100 * shape['mirrored_over_own']:.0f}",
    }


def write(results, verdicts, folder):
    images = os.path.join(folder, "images")
    os.makedirs(images, exist_ok=True)
    write_text(os.path.join(folder, "pet-quality.md"), fill("quality_pet", fields(results, verdicts, images)))
