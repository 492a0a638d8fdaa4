# SPDX-License-Identifier: Apache-2.0
"""A PET series out of `tomonode recon`: conformant; the F of the phantom comes back with the right orientation and at
the right place in the patient; Bq/ml and SUV are the phantom's, also with time of flight; without what quantity takes
the units say so."""
import itertools
import json
import os

import numpy as np
import pytest

from tools import node_harness as h
from tools import pet_tools as t
from tools.edits import edited_all
from tools.node_harness import check

h.need(h.TOMONODE, "dciodvfy")
TOF = "12,120,200"
SHAPE = (12, 47, 48, 65)  # TOF bins, planes, angles, radial bins of the scanner `small`
FEW = ("iterations=4", "matrix=48")


def objects_conform(series):
    for path in series.paths[::5]:
        errors = t.validator(path)
        check(not errors, f"{path}: {errors}")
    sops = {d.SOPInstanceUID for d in series.objects}
    check(len(sops) == len(series.objects) == int(series.objects[0].NumberOfSlices), "each slice once")
    for i, d in enumerate(series.objects):
        check(d.SOPClassUID == t.PET and int(d.ImageIndex) == i + 1, "class, index")
        check(float(d.RescaleIntercept) == 0 and d.BitsStored == 16, "pixels")
        check(d.SeriesInstanceUID == series.objects[0].SeriesInstanceUID, "one series")
        check(abs(float(d.SliceLocation) - series.positions[i] @ series.normal) < 1e-6, "SliceLocation")
        check("PatientPosition" not in d, "PatientPosition may not stand beside the codes")
    steps = np.diff(series.positions, axis=0)
    check(np.abs(steps - steps[0]).max() < 1e-6, "equal distances")
    check(abs(np.linalg.norm(steps[0]) - float(series.objects[0].SliceThickness)) < 1e-6, "thickness")


@pytest.mark.parametrize("position", ("HFS", "HFP", "FFS", "FFP", "HFDR") if h.TIER == 2 else ("HFDR",))
def test_the_f_comes_back(folder, position):
    """Correlation with the truth in patient coordinates: the true orientation against all mirrored ones."""
    truth = t.simulate(os.path.join(folder, "exam"), "--phantom", "f-shape", "--noise-free", "--position", position)
    series = t.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"),
                           settings=("iterations=12", "matrix=64"))
    objects_conform(series)
    check(np.allclose(series.row, (1, 0, 0)) and np.allclose(series.column, (0, 1, 0)),
          f"{position}: usual orientation")
    check(series.positions[0, 2] > series.positions[-1, 2], f"{position}: from the head down")
    places = series.places()
    want = t.truth_values(truth, places)
    got = np.corrcoef(series.values.ravel(), want.ravel())[0, 1]
    mirrored = max(np.corrcoef(series.values.ravel(), t.truth_values(truth, places * signs).ravel())[0, 1]
                   for signs in itertools.product((1, -1), repeat=3) if signs != (1, 1, 1))
    shifted = max(np.corrcoef(series.values.ravel(), t.truth_values(truth, places + d).ravel())[0, 1]
                  for d in 3.5 * np.concatenate([np.eye(3), -np.eye(3)]))
    print(f"{position}: correlation {got:.3f}, mirrored {mirrored:.3f}, shifted by 3.5 mm {shifted:.3f}")
    check(got > 0.9 and got > mirrored + 0.15, f"{position}: {got} against {mirrored} mirrored")
    check(got > shifted, f"{position}: {got}, better where it is shifted: {shifted}")


def test_values_are_the_phantoms(folder):
    """A cylinder in water: Bq/ml at the start of the scan, SUV 1 (the patient weighs what the phantom does)."""
    truth = t.simulate(os.path.join(folder, "exam"), "--phantom", "cylinder", "--radius", "40", "--noise-free",
                       "--attenuation")
    series = t.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"),
                           settings=("iterations=30", "matrix=64"))
    objects_conform(series)
    places = series.places()
    region = (np.hypot(places[..., 0], places[..., 1]) < 25) & (np.abs(places[..., 2]) < 15)
    mean = series.values[region].mean()
    want = truth["shapes"][0]["becquerel_per_ml"]
    factors = [t.suv_factor(d) for d in series.objects]
    print(f"cylinder: {mean:.1f} Bq/ml, truth {want:.1f}; SUV {mean * factors[0]:.4f}")
    check(abs(mean / want - 1) < 0.01, f"{mean} Bq/ml instead of {want}")
    check(len(set(factors)) == 1 and abs(mean * factors[0] - 1) < 0.02, f"SUV {mean * factors[0]}")
    d = series.objects[0]
    check(d.Units == "BQML" and d.DecayCorrection == "START", "units")
    check(set(d.CorrectedImage) >= {"ATTN", "NORM", "DECY", "DCAL"}, d.CorrectedImage)
    check(d.SeriesDate + d.SeriesTime == truth["date"] + truth["start"], "the start of the acquisition")
    check(len(d.SourceInstanceSequence) == len([f for f in os.listdir(os.path.join(folder, "exam"))
                                                if f.endswith(".dcm")]),
          "every source object")


def test_counts_without_what_it_takes(folder):
    """No calibration factor, no half-life, no weight: counts, nothing invented, and a sentence."""
    exam = os.path.join(folder, "exam")
    t.simulate(exam, "--phantom", "cylinder", "--radius", "40", "--noise-free", "--attenuation")

    def bare(d):
        del d.DoseCalibrationFactor
        del d.PatientWeight
        del d.RadiopharmaceuticalInformationSequence[0].RadionuclideHalfLife
    edited_all(exam, exam, bare)
    series = t.reconstruct(os.path.join(folder, "out"), exam, settings=("iterations=2", "matrix=32"))
    objects_conform(series)
    d = series.objects[0]
    check((d.Units, d.DecayCorrection) == ("CNTS", "NONE"), f"{d.Units}, {d.DecayCorrection}")
    check("DECY" not in d.CorrectedImage and "ATTN" in d.CorrectedImage, d.CorrectedImage)
    check("PatientWeight" not in d and "DecayFactor" not in d and "DoseCalibrationFactor" not in d,
          "nothing is invented")
    check(t.suv_factor(d) is None, "no SUV")
    for word in ("no calibration factor", "weight", "half-life"):
        check(word in d.DerivationDescription, f"'{word}' is not in {d.DerivationDescription}")


def test_the_same_again(folder):
    """Twice the same: the same UIDs. Another protocol: others."""
    exam = os.path.join(folder, "exam")
    t.simulate(exam, "--phantom", "cylinder", "--radius", "40", "--noise-free")
    made = [t.reconstruct(os.path.join(folder, str(k)), exam, settings=("matrix=32", f"iterations={n}")) for k,
            n in enumerate((2, 2, 3))]
    sops = [{d.SOPInstanceUID for d in series.objects} for series in made]
    check(len({d.FrameOfReferenceUID for series in made for d in series.objects}) == 1, "one frame of reference")
    check(sops[0] == sops[1] and not sops[0] & sops[2], "UIDs follow from sources and protocol")


def test_tof_values_are_the_phantoms(folder):
    """A cylinder measured with time of flight and randoms; derivation and recipe name the TOF bins."""
    truth = t.simulate(os.path.join(folder, "exam"), "--phantom", "cylinder", "--radius", "40", "--noise-free",
                       "--attenuation",
                       "--randoms", "0.5", "--tof", TOF)
    series = t.reconstruct(os.path.join(folder, "out"), os.path.join(folder, "exam"),
                           settings=("iterations=15", "matrix=64"))
    places = series.places()
    region = (np.hypot(places[..., 0], places[..., 1]) < 25) & (np.abs(places[..., 2]) < 15)
    mean, want = series.values[region].mean(), truth["shapes"][0]["becquerel_per_ml"]
    print(f"cylinder: {mean:.1f} Bq/ml, truth {want:.1f}")
    check(abs(mean / want - 1) < 0.01, f"{mean} Bq/ml instead of {want}")
    d = series.objects[0]
    check(d.Units == "BQML", d.Units)
    check("12 TOF bins of 120 ps (17.988 mm), resolution 200 ps FWHM" in d.DerivationDescription,
          d.DerivationDescription)
    check(" tof=12 width=17.9875 sigma=12.731" in d.ContributingEquipmentSequence[-1].ContributionDescription, "recipe")
    errors = t.validator(series.paths[0])
    check(not errors, f"{errors}")


def imported(folder, name, *tof, add=1):
    """Interfile as objects; add: this many TOF bins of the data with TOF are added into one of these."""
    here, out = os.path.join(folder, name), os.path.join(folder, name + "-objects")
    model = ("--phantom", "nema-iq", "--attenuation", "--randoms", "0.3", "--counts", "1e6", "--interfile")
    t.simulate(here, *model, *tof)
    if add > 1:
        for role in ("emission", "additive"):
            data = np.fromfile(os.path.join(folder, "tof", role + ".s"), "<f4").reshape(SHAPE[0] // add, add,
                                                                                        *SHAPE[1:])
            total = data[:, 0].copy()
            for k in range(1, add):
                total += data[:, k]
            total.tofile(os.path.join(here, role + ".s"))
    t.run("import", os.path.join(here, "emission.hs"), "--attenuation", os.path.join(here, "attenuation.hs"),
          "--additive",
          os.path.join(here, "additive.hs"), "-o", out)
    return out


def test_added_tof_bins_are_one(folder):
    """tof_mashing gives the image of data that were added before; the report has the bins."""
    measured = imported(folder, "tof", "--tof", TOF)
    before = imported(folder, "before", "--tof", "4,360,200", add=3)
    mashed = t.reconstruct(os.path.join(folder, "mashed"), measured, settings=(*FEW, "tof_mashing=3"))
    other = t.reconstruct(os.path.join(folder, "mashed-before"), before, settings=FEW)
    off = np.abs(mashed.values - other.values).max() / mashed.values.max()
    # a step of the stored values is 3e-5
    check(off < 1e-4, f"mashed: differs by {off} from data that were added before")
    for part in ("4 TOF bins of 360 ps", "stored in the order -6, -5 ... 5 (as the header states)"):
        check(part in mashed.objects[0].DerivationDescription, mashed.objects[0].DerivationDescription)
    text = mashed.objects[0].SeriesDescription
    check(text.startswith("PET TOF image in counts pet-mlem, tof_mashing=3, +2 more #"), text)
    one = ("--device", "cpu", "--protocol", "pet-mlem", "--set", "iterations=1", "--set", "matrix=32", "--set",
           "tof_mashing=2")
    found = json.loads(t.run("recon", "--json", *one, "-o", os.path.join(folder, "json"),
                             measured).stdout)["cases"][0]["pet"]["tof"]
    check(found["bins"] == 6 and abs(found["width_ps"] - 240) < 1e-6 and abs(found["resolution_ps"] - 200) < 1e-6,
          f"{found}")
    check((found["order"], found["order_stated"]) == ("-6, -5 ... 5", True), f"{found}")
    found = t.run("recon", *one, "-o", os.path.join(folder, "text"), measured).stdout
    check("47 planes of 48 angles in 6 TOF bins" in found, found)
    done = t.run("recon", "--device", "cpu", "--protocol", "pet-mlem", "--set", "tof_mashing=5", "-o",
                 os.path.join(folder, "none"), measured,
                 ok=(4,))
    check("tof_mashing=5; allowed: numbers that divide the 12 TOF bins" in done.stderr, done.stderr)
    done = t.run("recon", "--json", "--device", "cpu", "--protocol", "pet-mlem", "--set", "tof_mashing=2", "--set",
                 "iterations=1", "-o", os.path.join(folder, "none"), imported(folder, "plain"))
    check("tof_mashing of the protocol had no effect: the data have no time of flight." in done.stdout, done.stdout)


@pytest.mark.tier2("five more images; test_pet_tof.c has the sums over TOF bins")
def test_all_tof_bins_are_data_without(folder):
    """FBP adds them; one bin as wide as all gives the image of data without time of flight, several another one."""
    measured, without = imported(folder, "tof", "--tof", TOF), imported(folder, "without", add=12)
    fbp = t.reconstruct(os.path.join(folder, "fbp"), measured, settings=("matrix=48", "algorithm=fbp"))
    other = t.reconstruct(os.path.join(folder, "fbp-before"), without, settings=("matrix=48", "algorithm=fbp"))
    check(fbp.objects[0].SeriesDescription.startswith("PET image in counts"),
          f"fbp adds TOF bins: {fbp.objects[0].SeriesDescription}")
    check(fbp.values.max() > 0 and np.array_equal(fbp.values, other.values),
          "fbp: another image than without time of flight")
    # the weight of the wide bin is 0.99 at the edge of the image
    wide = t.reconstruct(os.path.join(folder, "wide"), measured, settings=(*FEW, "tof_mashing=12"))
    plain = t.reconstruct(os.path.join(folder, "plain"), without, settings=FEW)
    off = np.abs(wide.values - plain.values).max() / plain.values.max()
    check(off < 2e-3, f"one wide bin differs by {off}")
    fine = t.reconstruct(os.path.join(folder, "fine"), measured, settings=FEW)
    check(np.abs(fine.values - plain.values).max() / plain.values.max() > 0.05, "time of flight has no effect")


def test_tof_factors_are_used(folder):
    """A normalisation with TOF bins, 2 everywhere: twice the image, also when TOF bins are added; a value of 0 is
    refused with its place."""
    here = os.path.join(folder, "tof")
    measured = imported(folder, "tof", "--tof", TOF)
    header = h.read_file(os.path.join(here, "emission.hs")).replace("emission.s", "normalisation.s")
    h.write_file(os.path.join(here, "normalisation.hs"), header)
    factors = np.full(SHAPE, 2, "<f4")

    def with_factors(name):
        factors.tofile(os.path.join(here, "normalisation.s"))
        out = os.path.join(folder, name)
        t.run("import", os.path.join(here, "emission.hs"), *(o for role in ("attenuation", "additive", "normalisation")
                                                             for o in (f"--{role}", os.path.join(here, role + ".hs"))),
              "-o", out)
        return out

    twice = with_factors("twice")
    for mashing in (1, 3) if h.TIER == 2 else (3,):
        settings = (*FEW, f"tof_mashing={mashing}")
        one = t.reconstruct(os.path.join(folder, f"one{mashing}"), measured, settings=settings)
        two = t.reconstruct(os.path.join(folder, f"two{mashing}"), twice, settings=settings)
        off = np.abs(two.values - 2 * one.values).max() / two.values.max()
        check(off < 1e-4, f"tof_mashing={mashing}: not twice the image, {off}")
    factors[5, 7, 3, 2] = 0
    done = t.run("recon", "--device", "cpu", "--protocol", "pet-mlem", "-o", os.path.join(folder, "none"),
                 with_factors("zero"), ok=(4,))
    check("NORMALISATION: TOF bin 6, plane 7, angle 3, radial bin 2: 0; allowed" in done.stderr, done.stderr)
