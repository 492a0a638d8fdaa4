# SPDX-License-Identifier: Apache-2.0
"""Write the tables and pictures of docs/parallel-quality.md from the results of tests/quality_parallel.py. Needs PIL."""
import base64
import os

from PIL import Image, ImageDraw, ImageFont

from quality_report import fill, table, write_text

GAP, LABEL = 4, 14  # pixels: between pictures, for a line of text
LEFT = 84


def percent(value, digits=2):
    return f"{100 * value:.{digits}f}"


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
    return table(["", "values below 0", "passes", "residual", "correlation", "RMSE, all", "largest value"],
                 [[r["phantom"], "become 0" if setting(r, "non_negative") == "true" else "stay", setting(r, "iterations"),
                   f"{r['residual']:.2g}", f"{r['correlation']:.4f}", percent(r["rmse"]), percent(r["largest"], 0)]
                  for r in rows])


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
    most = max(r["angles"] for r in results["fbp"])
    fields = {
        "quick": "**A trial run with small images: the figures are not representative.** " if results["quick"] else "",
        "version": results["version"], "n": results["size"],
        "angles": ", ".join(str(n) for n in sorted({r["angles"] for r in results["fbp"]})), "most": most,
        "images_on": results["fbp"][0]["device"],
        "limits": table(["quantity", "worst value", "limit", ""], [[w, f"{v:.3g} {u}".strip(), f"{t:g} {u}".strip(), "met" if good else "**not met**"]
                                                               for w, v, t, u, good in limits]),
        "bp": bp_table(results["bp"]), "fbp": fbp_table(results["fbp"]), "filters": method_table(results["filters"]),
        "noise": method_table(results["noise"]), "few": method_table(results["few"], True), "art": art_table(results["art"]),
        "routes": f"{results['routes']:.1e}",
        "counts": " and ".join(f"{c:g} photons per bin for {p}" for p, c in results["counts"].items()),
        "windows": ", ".join(f"{p} {100 * lo:.0f} to {100 * hi:.0f} %" for p, (lo, hi) in results["windows"].items()),
    }
    write_text(os.path.join(output, "parallel-quality.md"), fill("quality_parallel", fields))
