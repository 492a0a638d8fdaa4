# SPDX-License-Identifier: Apache-2.0
"""PET corrections against a Monte Carlo that samples photons and shares no code with the program (tests/pet_mc): the
image of the NEMA image quality phantom from data with scatter, randoms, attenuation and unequal detectors, beside what
the absence of each correction does.

Data are of two forms. `expected`: the expectations of trues (line integrals of the phantom), of randoms (singles) and
of scatter (the photons that were sampled, smoothed), whose images have the bias of the corrections alone. `counts`:
what was sampled; in few counts a cold region is too bright whatever the correction, because no voxel is negative.
Delayeds are always sampled counts.

With TOMONODE_PET_MC=FOLDER in the environment: in the long form, with five times the annihilations, and the table,
figures and pictures of slices are left in FOLDER; a FOLDER/mc with files of pet_mc is used as it is.

The formulas by themselves are proved in tier 1: tests/recon/scatter, tests/recon/pet/test_randoms.c,
test_attenuation.c."""
import concurrent.futures
import glob
import json
import os
import struct
import zlib

import numpy as np
import pytest

from tools import dbt_tools as tools
from tools import pet_mc_tools as mc
from tools import pet_tools
from tools.node_harness import read_file, write_file

pytestmark = pytest.mark.tier2("a Monte Carlo of 2e8 annihilations")

KEEP = os.environ.get("TOMONODE_PET_MC")
ANNIHILATIONS = 1e9 if KEEP else 2e8
RANDOMS = 0.5  # part of the trues
BASICS = ("PatientPosition=HFS", "AcquisitionDate=20260601", "AcquisitionTime=101500", "ActualFrameDuration=600000",
          "Radionuclide=F18",
          "Manufacturer=tomonode", "ManufacturerModelName=Monte Carlo", "PatientWeight=9", "BodyPartExamined=ABDOMEN")
IMAGES = ("postfilter=4", "matrix=64", "fov_radius=190")
# Some 512 updates: in the lung insert the expectations then leave 3 % of the background. Counts need subsets of more
# angles.
FULL = {"expected": ("iterations=11", "subsets=48"), "no scatter": ("iterations=11", "subsets=48"),
        "counts": ("iterations=16", "subsets=32")}
FEW = ("iterations=3", "subsets=48")  # for images that are compared with those of as few
FORMS = {"expected": "prompts_expected", "counts": "prompts", "no scatter": "prompts_no_scatter"}
NAMES = ("background", "background_low", "background_high", "lung", "lung_high", "sphere_10", "sphere_13", "sphere_17",
         "sphere_22", "sphere_28", "sphere_37")


# ---- the Monte Carlo by itself ----

def test_photons(failures):
    """A uniform sphere, 4 pi: unscattered pairs 3 / a^3 (2 - exp(-a) (a^2 + 2a + 2)) with a = 2 r mu; single scatter
    above 425 keV 0.0854."""
    found = json.loads(mc.run("sphere", 1e7))
    a = 1.92
    trues = 3 / a ** 3 * (2 - np.exp(-a) * (a * a + 2 * a + 2))
    deviation = np.sqrt(trues * (1 - trues) / found["annihilations"])
    print(f"sphere: trues {found['trues']:.4f}, {trues:.4f} by formula; single scatter above 425 keV "
          f"{found['single']:.4f}")
    tools.check(abs(found["trues"] - trues) < 4 * deviation, f"sphere: trues {found['trues']}, not {trues}", failures)
    tools.check(abs(found["single"] - 0.0854) < 0.0004, f"sphere: single scatter {found['single']}, not 0.0854",
                failures)


def test_threads(folder, failures):
    """The same bytes with one thread and with three."""
    for n in (1, 3):
        os.makedirs(os.path.join(folder, f"threads-{n}"))
        mc.run("cylinder", os.path.join(folder, f"threads-{n}"), 1e6, RANDOMS, threads=n)
    for path in glob.glob(os.path.join(folder, "threads-1", "*")):
        with open(path, "rb") as f, open(path.replace("threads-1", "threads-3"), "rb") as g:
            tools.check(f.read() == g.read(), f"{os.path.basename(path)} depends on the number of threads", failures)


def excess(counts, expected):
    """(chi^2 - n) in its standard deviations, for counts of Poisson in groups with these expectations."""
    chi = ((counts - expected) ** 2 / expected).sum()
    return (chi - expected.size) / np.sqrt(2 * expected.size + (1 / expected).sum())


def against_formulas(data, name, failures):
    """Trues are the line integrals of activity times exp(-integral of attenuation), in every group of bins: with them
    geometry, efficiencies and attenuation of the files agree. Randoms and delayeds are those of the singles."""
    for kind, expectation in (("trues", "expected"), ("randoms_counts", "randoms"), ("delayeds", "randoms")):
        counts, expected = data.counts(kind).astype(float), data.values(expectation).astype(float)
        # Bins that the phantom's edge crosses: the line of a bin is not the mean of its lines. Left out where a
        # neighbour differs by 20 %.
        n, angles, radial = data.shape
        shape = (n, angles // 4, 4, radial)
        part = [v.reshape(shape).sum(2) for v in (counts, expected)]
        flat = np.abs(np.diff(part[1], axis=2, prepend=0, append=0))
        good = (np.maximum(flat[..., 1:], flat[..., :-1]) < 0.2 * part[1]) & (part[1] > 0)
        total = counts.sum() / expected.sum() - 1
        found = {axis: excess(*(np.where(good, v, 0).sum(over)[good.sum(over) > 20] for v in part))
                 for axis, over in (("planes", (1, 2)), ("angles", (0, 2)), ("radial bins", (0, 1)))}
        print(f"{name}: {kind} {counts.sum():.0f}, {100 * total:+.2f} % from the expectation; chi^2 " +
              ", ".join(f"{axis} {v:+.1f}" for axis, v in found.items()))
        tools.check(abs(total) < 4 / np.sqrt(counts.sum()) + 0.002,
                    f"{name}: {kind} differ by {total} from their expectation", failures)
        for axis, value in found.items():
            tools.check(value < 5, f"{name}: {kind}: {axis}: chi^2 is {value} standard deviations too large", failures)


def single_scatter(data, folder, failures):
    """The program's single scatter of the true activity and density is that of the photons: in absolute terms, and its
    shape; with multiple scatter up to a scale."""
    found = mc.single_scatter(data, folder)
    single = data.counts("single")
    both = single + data.counts("multiple")
    scale = both.sum(dtype=float) / found.sum(dtype=float)
    for name, estimate, truth in (("single scatter", found, single),
                                  (f"{scale:.3f} x it, all scatter", found * np.float32(scale), both)):
        for planes in (True, False):
            row = mc.profile_rms(estimate, truth, planes)
            print(f"{name}, {'planes' if planes else 'all planes together'}: " + ", ".join(f"{k} {v:+.2f} %" for k,
                                                                                           v in row.items()))
            tools.check(abs(row["total"]) < 2 and row["profiles"] < 5 and row["plane sums"] < 3, f"{name}: {row}",
                        failures)


# ---- images ----

class Phantom:
    """The data of the IQ phantom, their true factors and its CT; reconstructs them."""

    def __init__(self, folder):
        self.folder, self.rows, self.images = folder, [], {}
        place = os.path.join(KEEP, "mc") if KEEP else os.path.join(folder, "mc")
        if not os.path.exists(os.path.join(place, "truth.json")):
            os.makedirs(place, exist_ok=True)
            mc.run("iq", place, ANNIHILATIONS, RANDOMS)
        self.data = d = mc.Data(place)
        self.ct = mc.write_ct(os.path.join(folder, "ct"), d.truth)
        self.config = mc.write_config(os.path.join(folder, "mc.conf"), d.truth)
        self.scatter, randoms = d.true_scatter(), d.values("randoms")
        d.write("prompts_expected", d.values("expected") + self.scatter + randoms)
        d.write("prompts_no_scatter", d.values("expected") + randoms)
        d.write("scatter", self.scatter)
        d.write("additive", self.scatter + randoms)

    def reconstruct(self, name, form, *roles, corrections="", few=False):
        """Import prompts with roles, (option, name of a file) each, and reconstruct with the CT and the corrections
        that the node is to make; a row of the table, and the image. few: with few updates, unless the table is kept."""
        d, out = self.data, os.path.join(self.folder, f"{form}-{name}".replace(" ", "-"))
        options = [x for option, file in roles for x in ("--" + option, d.path(file + ".hs"))]
        basics = [x for b in (*BASICS, f"DoseCalibrationFactor={d.calibration():.9g}") for x in ("--set", b)]
        settings = (FEW if few and not KEEP else FULL[form]) + IMAGES + ((f"corrections={corrections}",) if corrections
                                                                         else ())
        tools.run("import", d.path(FORMS[form] + ".hs"), *options, "--like", self.ct[0], *basics, "-o", out)
        series = pet_tools.reconstruct(out + "-image", out, *self.ct, settings=settings, protocol="pet-osem",
                                       config=self.config)
        if series.objects[0].Units == "CNTS":  # counts per mm: a factor is missing
            series.values *= mc.BACKGROUND / d.truth["scale"]
        image = mc.Image(series)
        return {"name": name, "form": form, "corrected": list(series.objects[0].CorrectedImage),
                **mc.figures(image, d.truth)}, image

    def reconstruct_all(self, wanted):
        """(arguments, options) of each, two beside each other; the rows, by form and name."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for made in [pool.submit(self.reconstruct, *arguments, **options) for arguments, options in wanted]:
                row, image = made.result()
                self.rows.append(row)
                self.images[row["form"], row["name"]] = image
                print(f"{row['form']:11}{row['name']:26}" + "".join(f"{row[k]:8.1f}" for k in NAMES), flush=True)
        return {(row["form"], row["name"]): row for row in self.rows}


TRUE = (("attenuation", "attenuation"), ("normalisation", "normalisation"))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_images(folder, failures):
    phantom = Phantom(folder)
    against_formulas(phantom.data, "IQ phantom", failures)
    single_scatter(phantom.data, folder, failures)
    print(f"{'':37}" + "".join(f"{k.replace('sphere_', '').replace('background', 'b'):>8}" for k in NAMES) + "   %")
    all_true = (*TRUE, ("additive", "additive"))
    absent = {"attenuation": (TRUE[1], ("additive", "additive")), "randoms": (*TRUE, ("additive", "scatter")),
              "scatter": (*TRUE, ("additive", "randoms")), "normalisation": (TRUE[0], ("additive", "additive"))}
    computed = (("all computed", form, TRUE[1], ("delayeds", "delayeds")) for form in ("expected", "counts"))
    rows = phantom.reconstruct_all([
        *((arguments, {"corrections": "attenuation+randoms+scatter"}) for arguments in computed),
        *((("true factors", form, *all_true), {}) for form in ("expected", "counts")),
        *(() if KEEP else ((("true factors, few updates", "expected", *all_true), {"few": True}),)),
        *((("without " + name, "expected", *roles), {"few": True}) for name, roles in absent.items()),
        (("attenuation from CT", "expected", TRUE[1], ("additive", "additive")), {"corrections": "attenuation"}),
        (("true factors", "no scatter", *TRUE, ("additive", "randoms")), {}),
        (("randoms from delayeds", "no scatter", *TRUE, ("delayeds", "delayeds")), {"corrections": "randoms"}),
        (("scatter without randoms", "expected", TRUE[1]), {"corrections": "attenuation+scatter", "few": True})])
    true = {form: rows[form, "true factors"] for form in FORMS}
    for name in absent:
        row, known = rows["expected", "without " + name], rows.get(("expected", "true factors, few updates"),
                                                                   true["expected"])
        # Without the normalisation alone the scale is nearly right, but not the slices: planes have one or two pairs of
        # rings.
        worst = max(abs(row[k] - known[k]) / bound for k, bound in (("background", 3), ("background_low", 3),
                                                                    ("background_high", 3), ("lung", 5),
                                                                    ("sphere_37", 2)))
        tools.check(worst > 1.5, f"without {name} all is well: {row}", failures)
    for form, name in (("expected", "true factors"), ("expected", "attenuation from CT"),
                       ("no scatter", "randoms from delayeds"), ("expected", "all computed")):
        check_bounds(rows[form, name], true[form], name, failures)
    for form in ("expected", "counts"):
        row = rows[form, "all computed"]
        tools.check({"ATTN", "RAN", "SCAT", "NORM"} <= set(row["corrected"]),
                    f"all computed: Corrected Image {row['corrected']}", failures)
    check_pictures(phantom, os.path.join(folder, "expected-all-computed-image"), failures)
    # the same counts: twice what was measured, 0.1 to 0.5 %, 1.0 to 1.5 points, 1.6 %
    for name, slack in (("background", 1), ("sphere_28", 3), ("sphere_37", 3), ("lung", 3.2)):
        found, known = rows["counts", "all computed"][name], true["counts"][name]
        tools.check(abs(found - known) <= slack, f"counts, all computed: {name} {found}, with true factors {known}",
                    failures)
    # Without the randoms, what is outside of the phantom is not scatter alone: it is not fitted to that.
    row = rows["expected", "scatter without randoms"]
    tools.check("SCAT" not in row["corrected"] and "ATTN" in row["corrected"],
                f"scatter without randoms: Corrected Image {row['corrected']}", failures)
    tools.check(abs(true["counts"]["background"] - 100) < 3,
                f"counts, true factors: background {true['counts']['background']} %", failures)
    if KEEP:
        keep(phantom)


def check_bounds(row, true, name, failures):
    """What must be seen: background within 3 % of truth, cold lung at most 5 %, cold spheres within 2 points of those
    with true factors."""
    tools.check(abs(row["background"] - 100) <= 3, f"{name}: background {row['background']} %", failures)
    tools.check(row["lung"] <= 5, f"{name}: lung {row['lung']} %", failures)
    for sphere in ("sphere_28", "sphere_37"):
        tools.check(abs(row[sphere] - true[sphere]) <= 2,
                    f"{name}: {sphere} {row[sphere]}, with true factors {true[sphere]}", failures)


def check_pictures(phantom, folder, failures):
    """The pictures of the corrections of the result in this folder, against the files of the Monte Carlo; and its
    report."""
    side, = glob.glob(os.path.join(folder, "corrections-*.json"))
    told = json.loads(read_file(side))
    d, (first, n) = phantom.data, next(phantom.data.planes())  # the direct planes
    data = {"prompts": d.values("prompts_expected"), "randoms": d.values("randoms"), "scatter": phantom.scatter}
    planes = [p["plane"] for p in told["profiles"]]
    tools.check(told["planes"] == n and planes == [n // 4, n // 2, 3 * n // 4],
                f"profiles of planes {planes} of {told['planes']}", failures)
    for profile in told["profiles"]:
        for name, slack in (("prompts", 1e-4), ("randoms", 0.03), ("scatter", 0.1)):
            found, truth = np.array(profile[name]), data[name][first + profile["plane"]].sum(0)
            error = np.abs(found - truth).mean() / truth.mean()
            print(f"pictures: plane {profile['plane']}: {name} deviate by {100 * error:.2f} % of their mean")
            tools.check(error < slack, f"pictures: {name} of plane {profile['plane']} deviate by {error}", failures)
    lowest, highest = told["acf"]["range"]
    truth = d.values("attenuation")[first + told["acf_plane"]]
    block = -(-truth.shape[1] // 192)  # radial bins in a pixel
    truth = np.stack([truth[:, t:t + block].mean(1) for t in range(0, truth.shape[1], block)], 1)
    found = np.frombuffer(bytes.fromhex(told["acf"]["values"]),
                          np.uint8).reshape(told["acf"]["pixels"][::-1]) / 255 * (highest - lowest) + lowest
    tools.check(found.shape == truth.shape and abs(np.log(found) - np.log(truth)).mean() < 0.02,
                f"pictures: factors of {found.shape} differ", failures)
    report = tools.run("report", "--json", "-o", folder + "-report", folder)
    text = read_file(json.loads(report.stdout)["reports"][0]["file"])
    tools.check("Randoms, scatter: what the corrections expect; trues" in text and text.count("<svg ") == 6,
                "pictures: the report", failures)


# ---- what is kept ----

def write_png(path, grey):
    height, width = grey.shape
    raw = b"".join(b"\0" + row.tobytes() for row in grey)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    write_file(path, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def keep(phantom):
    """table.json; for each form slices.png: a row for each image, the spheres' plane, the middle of the lung insert,
    and a coronal plane; white is twice the background."""
    with open(os.path.join(KEEP, "table.json"), "w", encoding="ascii") as f:
        json.dump(phantom.rows, f, indent=1)
    z0 = phantom.data.truth["solids"][2]["center"][2]
    for form in FORMS:
        rows = []
        for (of, _), image in phantom.images.items():
            if of != form:
                continue
            planes = [image.values[image.slice_at(z)] for z in (z0, 40)] + [image.values[::-1, len(image.y) // 2]]
            high = max(p.shape[0] for p in planes)
            rows.append(np.hstack([np.pad(p, ((0, high - p.shape[0]), (0, 2))) for p in planes]))
        grey = np.clip(np.rint(np.vstack(rows) * (255 / (2 * mc.BACKGROUND))), 0, 255).astype(np.uint8)
        write_png(os.path.join(KEEP, f"slices-{form.replace(' ', '-')}.png"), np.kron(grey, np.ones((3, 3), np.uint8)))
