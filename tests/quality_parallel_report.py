# SPDX-License-Identifier: Apache-2.0
"""Write the tables and pictures of docs/parallel-quality.md from the results of tests/quality_parallel.py. Needs PIL.

The only constants are the gains published in the thesis on which parallel beams are based; all other figures are results."""
import base64
import os

from PIL import Image, ImageDraw, ImageFont

from quality_report import factor, fill, milliseconds, table, write_text

# Least and largest gain of the GPU over the CPU, as published in the thesis.
THESIS_GAINS = {"radon": (4.53, 16.24), "bp": (5.79, 31.58), "fbp": (19.37, 25.68)}
WORKS = {"radon": "Radon transform, path lengths", "bp": "backprojection", "filter": "filter, by convolution",
         "fbp": "filtered backprojection, by convolution", "art": "a pass of ART"}
GAP, LABEL = 4, 14  # pixels: between pictures, for a line of text
LEFT = 84


def percent(value, digits=2):
    return f"{100 * value:.{digits}f}"


# ---- times ----

def times_table(results, slices_of):
    """Rows: operation and number of projections. Columns: time on each device, then gains over the first device."""
    devices = results["devices"]
    rows = []
    for work, name in WORKS.items():
        for angles in sorted({r["angles"] for r in results["times"]}):
            found = {r["spec"]: r for r in results["times"] if (r["work"], r["angles"], r["model"]) == (work, angles, "siddon")
                     and slices_of(r["slices"])}
            if len(found) == len(devices):
                first = found[devices[0]]["slice_ms"]
                rows.append([name, angles, *[milliseconds(found[d]["slice_ms"]) for d in devices],
                             *[factor(first / found[d]["slice_ms"]) for d in devices[1:]]])
    return table(["", "projections", *[f"{d}, ms" for d in devices], *[f"gain of {d}" for d in devices[1:]]], rows)


def sampled_table(results):
    rows = [[r["spec"], r["angles"], milliseconds(r["slice_ms"])] for r in results["times"] if r["model"] == "sampled"]
    return table(["device", "projections", "Radon transform in steps of 0.1 pixel, ms"], rows)


def gains(results):
    """Least and largest gain of each device over the first one, beside the gains of the thesis."""
    rows = []
    for work, (least, most) in THESIS_GAINS.items():
        row = [WORKS[work], f"{least} to {most}"]
        for device in results["devices"][1:]:
            found = []
            for r in results["times"]:
                if (r["work"], r["model"], r["slices"], r["spec"]) == (work, "siddon", 1, device):
                    one = next(t for t in results["times"] if (t["work"], t["model"], t["slices"], t["spec"], t["angles"]) ==
                               (work, "siddon", 1, results["devices"][0], r["angles"]))
                    found.append(one["slice_ms"] / r["slice_ms"])
            row.append(f"{factor(min(found))} to {factor(max(found))}")
        rows.append(row)
    return table(["one slice", "the thesis' GPU over its CPU", *[f"{d} over {results['devices'][0]}" for d in results["devices"][1:]]], rows)


# ---- figures ----

def bp_table(rows):
    angles = sorted({r["angles"] for r in rows})
    phantoms = list(dict.fromkeys(r["phantom"] for r in rows))
    by = {(r["phantom"], r["angles"]): r for r in rows}
    return table(["correlation with the truth", *[f"{n} projections" for n in angles]],
                 [[p, *[f"{by[p, n]['correlation']:.3f}" for n in angles]] for p in phantoms])


def errors(row):
    return [f"{row['correlation']:.4f}", percent(row["rmse"]), percent(row["inside"]), percent(row["outside"]), percent(row["bias"], 3)]


ERRORS = ["correlation", "RMSE, all", "RMSE inside", "RMSE outside", "mean inside - truth"]


def fbp_table(rows):
    return table(["", "projections", *ERRORS, "RMSE in the corners"],
                 [[r["phantom"], r["angles"], *errors(r), percent(r["corners"])] for r in rows])


def method_table(rows, with_angles=False):
    return table(["", *(["projections"] if with_angles else []), *ERRORS],
                 [[f"{r['phantom']}, {r['label']}", *([r["angles"]] if with_angles else []), *errors(r)] for r in rows])


def setting(row, key):
    return next(s.split("=")[1] for s in row["settings"] if s.startswith(key + "="))


def art_table(rows):
    return table(["", "values below 0", "passes", "residual", "correlation", "RMSE, all", "largest value", "ms"],
                 [[r["phantom"], "become 0" if setting(r, "non_negative") == "true" else "stay", setting(r, "iterations"),
                   f"{r['residual']:.2g}", f"{r['correlation']:.4f}", percent(r["rmse"]), percent(r["largest"], 0),
                   f"{1e3 * r['seconds']:.0f}"] for r in rows])


def comparison_table(results):
    return table(["", "devices", "largest difference, relative to the largest value"],
                 [[c["name"], " and ".join(c["specs"]), f"{c['image']:.1e}"] for c in results["comparisons"]])


# ---- pictures ----

def picture_of(kept):
    return Image.frombytes("L", tuple(kept["size"]), base64.b64decode(kept["bytes"]))


def sheet(path, heads, rows):
    """Draw rows of pictures. rows: (label, pictures); a picture may be None."""
    width, height = (max(p["size"][c] for _, pictures in rows for p in pictures if p) for c in (0, 1))
    page = Image.new("L", (LEFT + len(heads) * (width + GAP), LABEL + len(rows) * (height + GAP)), 255)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default()
    for i, head in enumerate(heads):
        draw.text((LEFT + i * (width + GAP), 1), head, 0, font)
    for j, (label, pictures) in enumerate(rows):
        top = LABEL + j * (height + GAP)
        for k, line in enumerate(label.split("\n")):
            draw.text((1, top + 2 + k * LABEL), line, 0, font)
        for i, kept in enumerate(pictures):
            if kept:
                page.paste(picture_of(kept), (LEFT + i * (width + GAP), top))
    page.save(path, optimize=True)


def draw_all(results, folder):
    angles = sorted({r["angles"] for r in results["fbp"]})
    truth = {r["phantom"]: r["picture"] for r in results["truths"]}
    phantoms = [r["phantom"] for r in results["truths"] if any(s["phantom"] == r["phantom"] for s in results["fbp"])]

    def grid(name, rows, with_truth):
        by = {(r["phantom"], r["angles"]): r["picture"] for r in rows}
        sheet(os.path.join(folder, name), [*[f"{n} projections" for n in angles], *(["truth"] if with_truth else [])],
              [(p, [*[by[p, n] for n in angles], *([truth[p]] if with_truth else [])]) for p in phantoms])

    grid("parallel-sinograms.png", results["sinograms"], False)
    grid("parallel-bp.png", results["bp"], True)
    grid("parallel-fbp.png", results["fbp"], True)
    passes = list(dict.fromkeys(setting(r, "iterations") for r in results["art"]))
    by = {(r["phantom"], setting(r, "non_negative"), setting(r, "iterations")): r["picture"] for r in results["art"]}
    sheet(os.path.join(folder, "parallel-art.png"), [*[f"{n} passes" for n in passes], "truth"],
          [(f"{p.replace(' ', chr(10))}\n{'0 at least' if positive == 'true' else ''}", [*[by[p, positive, n] for n in passes], truth[p]])
           for p in ("triangle", "right triangle") for positive in ("false", "true")])
    for name, rows, key in (("parallel-noise.png", results["noise"], "phantom"), ("parallel-few.png", results["few"], "angles")):
        labels, keys = list(dict.fromkeys(r["label"] for r in rows)), list(dict.fromkeys(r[key] for r in rows))
        found = {(r[key], r["label"]): r["picture"] for r in rows}
        sheet(os.path.join(folder, name), [f"FBP, {x}" if name == "parallel-noise.png" and "," not in x else x for x in labels],
              [(k if key == "phantom" else f"{k}\nprojections", [found[k, x] for x in labels]) for k in keys])


def write(results, limits, output):
    os.makedirs(os.path.join(output, "images"), exist_ok=True)
    draw_all(results, os.path.join(output, "images"))
    names = {r["spec"]: r["device"] for r in results["times"]}
    most = max(r["angles"] for r in results["fbp"])
    stacks = {r["spec"]: r["slices"] for r in results["times"] if r["slices"] > 1}
    fields = {
        "quick": "**A trial run with small images: the figures are not representative.** " if results["quick"] else "",
        "version": results["version"], "seconds": f"{results['seconds']:.0f}", "processor": results["processor"], "n": results["size"],
        "device_names": "; ".join(f"`{d}` is {names.get(d, 'not timed')}" for d in results["devices"]), "first": results["devices"][0],
        "angles": ", ".join(str(n) for n in sorted({r["angles"] for r in results["fbp"]})), "most": most,
        "images_on": results["fbp"][0]["device"],
        "limits": table(["quantity", "worst value", "limit", ""], [[w, f"{v:.3g} {u}".strip(), f"{t:g} {u}".strip(), "met" if good else "**not met**"]
                                                               for w, v, t, u, good in limits]),
        "times": times_table(results, lambda n: n == 1), "stacks": times_table(results, lambda n: n > 1),
        "stack_sizes": ", ".join(f"{n} on `{d}`" for d, n in stacks.items()), "sampled": sampled_table(results), "gains": gains(results),
        "bp": bp_table(results["bp"]), "fbp": fbp_table(results["fbp"]), "filters": method_table(results["filters"]),
        "noise": method_table(results["noise"]), "few": method_table(results["few"], True), "art": art_table(results["art"]),
        "routes": f"{results['routes']:.1e}",
        "counts": " and ".join(f"{c:g} photons per bin for {p}" for p, c in results["counts"].items()),
        "windows": ", ".join(f"{p} {100 * lo:.0f} to {100 * hi:.0f} %" for p, (lo, hi) in results["windows"].items()),
        "comparisons": comparison_table(results) if results["comparisons"] else "One kind of device was measured.",
    }
    write_text(os.path.join(output, "parallel-quality.md"), fill("quality_parallel", fields))
