# SPDX-License-Identifier: Apache-2.0
"""A whole acquisition of a Siemens mMR by the Monte Carlo of tests/pet_mc, made from the documents and not from the
program: list mode with prompts, delayeds, time marks and singles of buckets; the normalisation that describes its
detectors; the map of attenuation.

The scanner is one that its normalisation describes exactly: two crystals find a coincidence with a probability, per mm
of their line and annihilation in a mm^3, of Acquisition.sensitivity times the efficiency of the documents' formula,
dead time included. The Monte Carlo has the crystals' efficiencies, their dead time and its own geometry; the rest is
the weight of a pair, by which its coincidences are kept.

Axes are those of the Monte Carlo: x to the right, y down, z into the gantry, which are LPS of a patient head first and
supine. Crystal 0 is the uppermost, the next ones are to its right (STIR: x = R sin, y = -R cos); ring 0 is the furthest
from the bed."""
import json
import os
import subprocess

import numpy as np

from tools import ct_writer, map_writer, mmr_tools as mmr
from tools import pet_mc_tools as mc

SECONDS, FIRST = 60, 4711  # duration; ms of the first time mark
PARALYSING, NON_PARALYSING = -1.116e-6, 4.883e-13  # s, those of a real normalisation
RANDOMS = 0.5  # of the trues
RADIUS, RING_SPACING = 328 + 6.7, 4.0625  # mm
SIZE, SPACING = (200, 200, 128), (2.604, 2.604, 2.03125)  # voxels and mm of the maps, which are centred
ORIGIN = [-(n - 1) / 2 * d for n, d in zip(SIZE, SPACING)]
BODY, HARDWARE = ("body", "lung"), ("table", "coil outside", "coil inside")  # solids that attenuate
QUARTER = mmr.CRYSTALS // 4
MR_MAP = {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.4", "Modality": "MR", "Manufacturer": "SIEMENS",
          "ManufacturerModelName": "Biograph_mMR", "SeriesDescription": "Body_MRAC_PET_UMAP",
          "ImageType": ["ORIGINAL", "PRIMARY", "M"], "KVP": None, "RescaleSlope": None, "RescaleIntercept": None,
          "RescaleType": None}
AXIAL = np.full((mmr.RINGS, mmr.RINGS), -1)  # [ring 1][ring 2]: the scanner's plane of span 11
AXIAL[tuple(np.array(list(mmr.AXIAL)).T)] = list(mmr.AXIAL.values())
PLANE = np.full((mmr.RINGS, mmr.RINGS), -1)  # [ring 1][ring 2]: plane of the list
PLANE[tuple(np.array(mmr.PAIRS).T)] = np.arange(len(mmr.PAIRS))


def share(t, difference):
    """The part of the annihilations on the line of two crystals that reaches both, per mm and annihilation in a mm^3:
    surfaces times cosines over the square of the distance, over 2 pi. t: bin - 172."""
    sine = np.sin(np.pi * (0.5 - np.asarray(t) / mmr.CRYSTALS))
    chord = (2 * RADIUS * sine) ** 2
    square = chord + (np.asarray(difference) * RING_SPACING) ** 2
    return (RADIUS * 2 * np.pi / mmr.CRYSTALS * RING_SPACING) ** 2 * chord * sine ** 2 / square ** 2 / (2 * np.pi)


class Detectors:
    """A normalisation, and the rates of the buckets (1/s, [block of rings][block of crystals])."""

    def __init__(self, rng):
        self.norm = n = mmr.Norm(rng)
        t = np.arange(mmr.BINS) - mmr.BINS // 2
        n.efficiency[...] = rng.uniform(0.8, 1, n.efficiency.shape)
        n.interference[...] = rng.uniform(0.95, 1.05, n.interference.shape)
        n.geometric[...] = rng.uniform(0.97, 1.03, n.geometric.shape) * share(t, 0) / share(0, 0)
        rings = np.arange(mmr.RINGS)
        oblique = share(0, rings[None, :] - rings[:, None]) / share(0, 0)
        n.axial[...] = rng.uniform(0.9, 1.1, 837) * [1 / oblique[AXIAL == plane].mean() for plane in range(837)]
        n.rest[:64], n.rest[64:128], n.rest[128:137] = PARALYSING, NON_PARALYSING, 0
        n.rest[137:] = rng.uniform(0.995, 1.067, 837)  # the last component, which is not used
        self.rates = 8 * rng.integers(5000, 12500, (8, 28))
        half = np.repeat(np.repeat(self.rates, 8, 0), 18, 1) / 2
        live = np.exp(half * PARALYSING / (1 + half * NON_PARALYSING)) / (1 + half * NON_PARALYSING)
        self.crystals = np.roll(n.efficiency, 1, 1) * live  # [ring][crystal]; crystal c has the stored efficiency c - 1
        self.crystals[:, ::9] = 0

    def of_mc(self):
        """The crystals [ring][column] of the Monte Carlo, whose rings begin at the bed and columns at x; at most 1."""
        return np.roll(self.crystals[::-1], -QUARTER, 1) / self.crystals.max()

    def pairs(self, events):
        """The efficiency of a pair without that of its crystals, over share()."""
        ring_1, ring_2, view, bin_ = events
        n = self.norm
        return (n.geometric[ring_1 + ring_2, bin_] * n.interference[bin_, view % 9] / n.axial[AXIAL[ring_1, ring_2]]
                / share(bin_ - mmr.BINS // 2, ring_2 - ring_1))

    def largest_pair(self):
        """pairs() of the lines through the phantom is at most this."""
        ends = [(a, b) for a, b in mmr.PAIRS if a in (0, mmr.RINGS - 1) or b in (0, mmr.RINGS - 1)]
        view, bin_, at = np.meshgrid(np.arange(9), np.arange(72, 273, 10), np.arange(len(ends)))
        ring_1, ring_2 = np.array(ends).T
        return 1.1 * self.pairs((ring_1[at], ring_2[at], view, bin_)).max()


def coincidences(p, q):
    """Crystals ring * columns + column of the Monte Carlo: (ring 1, ring 2, view, bin) of the pairs that the list
    has, and which these are."""
    ring, crystal = np.divmod(np.stack([p, q]).astype(np.int32), mmr.CRYSTALS)
    ring, crystal = mmr.RINGS - 1 - ring, (crystal + QUARTER) % mmr.CRYSTALS
    t = (crystal[0] - crystal[1]) % mmr.CRYSTALS - mmr.CRYSTALS // 2  # of the order p, q
    view = (crystal[0] - (t >> 1)) % mmr.CRYSTALS
    other = view >= mmr.VIEWS
    t = np.where(other, -t, t)
    view = np.where(other, (crystal[1] - (t >> 1)) % mmr.CRYSTALS, view)
    ring = np.where(other, ring[::-1], ring)
    bin_ = t + mmr.BINS // 2
    listed = (bin_ >= 0) & (bin_ < mmr.BINS) & (PLANE[ring[0], ring[1]] >= 0)
    return (ring[0][listed], ring[1][listed], view[listed], bin_[listed]), listed


def words_of(events, prompt):
    ring_1, ring_2, view, bin_ = events
    address = (PLANE[ring_1, ring_2].astype(np.uint32) * mmr.VIEWS + view) * mmr.BINS + bin_
    return address.astype(np.uint32) | np.uint32(mmr.PROMPT if prompt else 0)


class Acquisition:
    """truth: of the Monte Carlo. prompts: the events of coincidences, scattered: which are not true; randoms, delayeds:
    events, too."""

    def __init__(self, folder, annihilations, seed=1):
        self.rng = rng = np.random.default_rng(seed)
        self.folder, self.detectors = folder, Detectors(rng)
        os.makedirs(folder, exist_ok=True)
        efficiencies = os.path.join(folder, "crystals.raw")
        self.detectors.of_mc().astype("<f4").tofile(efficiencies)
        if not os.path.exists(os.path.join(folder, "truth.json")):  # else it was kept
            subprocess.run([mc.PROGRAM, "mmr", folder, efficiencies, f"{annihilations:.0f}", str(seed)], check=True)
        with open(os.path.join(folder, "truth.json"), encoding="ascii") as f:
            self.truth = json.load(f)
        largest = self.detectors.largest_pair()
        self.sensitivity = self.truth["window_511"] ** 2 / largest / self.detectors.crystals.max() ** 2
        found = np.fromfile(os.path.join(folder, "events.raw"), "<u4")
        events, listed = coincidences(found >> 15 & 0x7FFF, found & 0x7FFF)
        kept = rng.random(len(events[0])) * largest < self.detectors.pairs(events)
        self.prompts = words_of([e[kept] for e in events], True)
        self.scattered = (found[listed] >> 30)[kept] > 0
        self.randoms, self.delayeds = (self.draw_pairs(prompt) for prompt in (True, False))

    def draw_pairs(self, prompt):
        """Pairs of independent crystals with the probabilities of their singles."""
        n = int(RANDOMS * (~self.scattered).sum())
        cumulative = np.cumsum(np.fromfile(os.path.join(self.folder, "singles.raw"), "<f4").astype(float))
        p, q = np.searchsorted(cumulative, self.rng.random((2, 2 * n)) * cumulative[-1], "right")
        pairs, listed = coincidences(p, q)
        assert listed.sum() >= n
        return words_of([values[:n] for values in pairs], prompt)

    def words(self):
        """The whole list."""
        events = np.concatenate([self.prompts, self.randoms, self.delayeds])
        return with_tags(self.rng, self.rng.permutation(events), self.detectors.rates)

    def words_of_trues(self):
        return with_tags(self.rng, self.prompts[~self.scattered], self.detectors.rates)

    def calibration(self):
        """(Bq/ml) per (count per second and mm) with which the background has mc.BACKGROUND at the start."""
        x = np.log(2) / mc.HALF_LIFE * SECONDS
        return mc.BACKGROUND * SECONDS / (self.truth["per_mm3"] * self.sensitivity) * (1 - np.exp(-x)) / x

    def attenuation(self, names):
        """Of these solids, 1/cm, on the grid of the maps."""
        truth = {"solids": [s for s in self.truth["solids"] if s["name"] in names]}
        density = mc.voxels(truth, SIZE[0], SIZE[2], SPACING[0], SPACING[2], "density")
        return 10 * self.truth["mu_water"] * density

    def write_body(self, folder, **more):
        """The map of the phantom as the scanner writes it, 10000 times 1/cm; the paths. more: of ct_writer.write_ct."""
        return ct_writer.write_ct(folder, 1e4 * self.attenuation(BODY), SPACING, ORIGIN, intercept=0,
                                  **{"changes": MR_MAP, **more})

    def write_hardware(self, path):
        """The map of table and coil as NIfTI, 1/cm."""
        return map_writer.write_nifti(path, self.attenuation(HARDWARE), np.c_[np.diag(SPACING), ORIGIN])


def with_tags(rng, events, rates):
    """The events, uniform in time, with a time mark each ms and the singles of all buckets each second: their mean
    is the bucket's rate."""
    ms = np.arange(1000 * SECONDS)
    in_each = rng.multinomial(len(events), np.full(len(ms), 1 / len(ms)))
    at = np.cumsum(in_each) - in_each
    tags, places = [np.uint32(mmr.time_mark(0)) | (FIRST + ms).astype(np.uint32)], [at]
    for second in range(SECONDS):
        shown = rates.ravel() // 8 + (-1) ** second * np.arange(rates.size)
        tags.append(np.uint32(mmr.singles(0, 0)) | (np.arange(rates.size) << 19 | shown).astype(np.uint32))
        places.append(np.full(rates.size, at[1000 * second] + 1))
    return np.insert(events, np.concatenate(places), np.concatenate(tags))
