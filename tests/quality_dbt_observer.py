#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how well a mathematical observer detects a mass and calcifications in the slices of each protocol.

    tests/quality_dbt_observer.py run [--device cpu] [--pairs 100] [--first 0] [--pitch 0.17] [--only REGEX] -o results.json
    tests/quality_dbt_observer.py report RESULTS.json... -o docs       the section "Detectability" of docs/dbt-quality.md

`run` needs the Python package tomonode (deploy/wheel.sh), numpy, and no program; runs with different --first are parts of one study.

A study: backgrounds of tissue (a Gaussian field with the power f^-3 of mammograms, through a step between fat and gland), each with and
without a signal that is known exactly, Poisson noise of its own, reconstructed by each row of ROWS. Observer: a channelised Hotelling
observer with Laguerre-Gauss channels (Gallas & Barrett, J Opt Soc Am A 20:1725, 2003), in the slice in focus (2-D) or in three slices
(2.5-D). Its d' is corrected for the finite number of pairs; errors are those of half-samples; rows are compared on the same pairs.
"""
import os
import re
import sys
import time

import numpy as np

from quality_report import table, write_section
from quality_run import ONLY, command, log_progress, print_verdicts, read_json, write_json

# name, voxel and bin in mm, keys of the reconstruction; the first row is the one that others are compared with
ROWS = [
    ("osem, 1 pass", 0.34, "algorithm=osem"),
    ("osem, 2", 0.34, "algorithm=osem iterations=2"),
    ("osem, 3, `prior_weight` 0.005", 0.34, "algorithm=osem iterations=3 prior_weight=0.005"),
    ("ostr, 1", 0.34, "algorithm=ostr"),
    ("sart, 2", 0.34, "algorithm=sart iterations=2"),
    ("mlem, 25", 0.34, "algorithm=mlem iterations=25"),
    ("mltr, 30", 0.34, "algorithm=mltr iterations=30"),
    ("fbp, `filter_cut` 0.8", 0.34, "algorithm=fbp filter_cut=0.8"),
    ("fbp, 1.0", 0.34, "algorithm=fbp filter_cut=1.0"),
    ("bp", 0.34, "algorithm=bp"),
    ("osem, 1 pass", 0.17, "algorithm=osem"),
    ("osem, 2", 0.17, "algorithm=osem iterations=2"),
    ("ostr, 1", 0.17, "algorithm=ostr"),
    ("sart, 2", 0.17, "algorithm=sart iterations=2"),
    ("fbp, `filter_cut` 0.8", 0.17, "algorithm=fbp filter_cut=0.8"),
    ("fbp, 1.0", 0.17, "algorithm=fbp filter_cut=1.0"),
    ("bp", 0.17, "algorithm=bp"),
    ("osem, 1 pass", 0.085, "algorithm=osem"),
]

# The system: the numbers of siemens-inspiration (conf/defaults.conf), a part of its detector; mm
ANGLES, AXIS, RADIUS, SUPPORT, THICKNESS = np.deg2rad(np.linspace(-25, 25, 25)), 47.0, 608.5, 17.0, 40
SOURCES = np.stack([0 * ANGLES, RADIUS * np.sin(ANGLES), AXIS + RADIUS * np.cos(ANGLES)], 1)
DETECTOR, PHOTONS = (23.12, 102.0), 2000  # x, y; photons in an unattenuated bin of 0.085 mm
# The object: voxels along z, y, x; a box at the chest wall; attenuation of fat and gland, 1/mm
OBJECT, SPACING, TISSUE = (80, 176, 64), (0.5, 0.34, 0.34), (0.0456, 0.0802)
FIELD = (128, 256, 96)  # the field is periodic: larger than the object
# The signals, at mid-height: place, mm; balls: radius, more attenuation (1/mm), places from it
MASS, SPECKS = np.array([10.9, -13.0, SUPPORT + 20]), np.array([10.9, 13.0, SUPPORT + 20])
MASS_BALLS = (2.5, 0.018, np.zeros((1, 3)))
SPECK_BALLS = (0.1, 1.0, np.array([[0, 0, 0], [-1.5, 0.7, 0.2], [1.2, 1.3, -0.3], [0.8, -1.6, 0.1], [-1.0, -1.2, -0.2]]))
# The observers: signal, number of channels, their width in mm, slices from the one in focus. Widths of specks: the channels are the
# sum over the specks; the table has the middle one
MASS_WIDTH, SPECK_WIDTHS, SPECK_WIDTH = 8.0, (0.5, 0.75, 0.9), 0.75
TASKS = {"mass": (5, MASS_WIDTH, 3), **{f"specks {w}": (4, w, 1) for w in SPECK_WIDTHS}}
LIMIT = 5  # percent: error of d' in the analytic case


# ---- the observer ----


def channels(number, width, x, y):
    """Laguerre-Gauss channels 0 .. number - 1 at distances y (rows) and x (columns) from their centre, mm: (number, rows, columns)."""
    g = 2 * np.pi * (y[:, None] ** 2 + x[None] ** 2) / width ** 2
    before, now, found = np.zeros_like(g), np.ones_like(g), []
    for n in range(number):
        found.append(now * np.exp(-g / 2))
        before, now = now, ((2 * n + 1 - g) * now - n * before) / (n + 1)  # L_(n+1)
    return np.array(found) / np.sqrt(np.square(found).sum((1, 2), keepdims=True))


def detectability(absent, present):
    """Hotelling d' of responses (pairs, features) without and with the signal; pairs share the background.

    d'^2 = D' S^-1 D with the mean difference D and the pooled covariance S. The inverse of S of f degrees of freedom is too large by
    f / (f - p - 1), p features; f = 2 (n - 1) / (1 + r^2) for two estimates of S whose responses correlate by r. The noise of D adds
    trace(S^-1 cov(D))."""
    n, p = absent.shape
    difference = present - absent
    a, b = absent - absent.mean(0), present - present.mean(0)
    s = (a.T @ a + b.T @ b) / (2 * (n - 1))
    r = np.clip(np.mean((a * b).sum(0) / (n - 1) / np.diag(s)), 0, 1)
    freedom = 2 * (n - 1) / (1 + r ** 2)
    inverse = np.linalg.inv(s) * (freedom - p - 1) / freedom
    noise = np.trace(inverse @ np.cov(difference.T).reshape(p, p)) / n
    return float(np.sqrt(max(0.0, difference.mean(0) @ inverse @ difference.mean(0) - noise)))


def halves(pairs, number=100):
    """Random halves of the pairs. The spread of an estimate over them is the standard error of that of all pairs: halves have twice the
    variance, and half of that in common (the jackknife that deletes half)."""
    random = np.random.default_rng(1)
    return [random.permutation(pairs)[:pairs // 2] for _ in range(number)]


def analytic_case(pairs=150, studies=100):
    """Return d' of a Gaussian signal in a stationary field f^-3 with white noise for five channels: exact, and the mean of estimates."""
    n, h, white = 48, 0.34, 0.5
    f = np.hypot(np.fft.fftfreq(n, h)[:, None], np.fft.fftfreq(n, h)[None])
    power = np.maximum(f, 1 / 16) ** -3
    power[0, 0] = 0
    power /= power.mean()  # variance of the field: 1
    x = (np.arange(n) - n // 2) * h
    signal, c = 0.5 * np.exp(-(x[:, None] ** 2 + x[None] ** 2) / (2 * 1.2 ** 2)), channels(5, 8.0, x, x)
    spectra = np.fft.fft2(c)
    cov = np.einsum("aij,bij,ij->ab", spectra, spectra.conj(), power + white).real / n ** 2
    d = np.einsum("aij,ij->a", c, signal)
    random, found = np.random.default_rng(3), []
    for _ in range(studies):
        field = np.fft.ifft2(np.fft.fft2(random.standard_normal((pairs, n, n))) * np.sqrt(power)).real
        both = [np.einsum("nij,aij->na", field + s + np.sqrt(white) * random.standard_normal(field.shape), c) for s in (0, signal)]
        found.append(detectability(*both))
    return float(np.sqrt(d @ np.linalg.solve(cov, d))), float(np.mean(found))


# ---- the images ----


class Bench:
    def __init__(self, device, pitch, only):
        import tomonode

        self.tn, self.device, self.pitch = tomonode, tomonode.Device(device), pitch
        self.rows = [r for r in ROWS if r[1] >= pitch - 1e-9 and re.search(only, f"{r[0]}, {r[1]:g} mm")]
        self.scans = {h: self.scan(h) for h in {pitch, *(r[1] for r in self.rows)}}
        lo = (0, -OBJECT[1] * SPACING[1] / 2, SUPPORT)
        self.project = tomonode.Projector(self.scans[pitch], tomonode.Grid(OBJECT[::-1], SPACING[::-1], lo), device=self.device)
        self.air = self.project(np.ones(OBJECT, np.float32)) == 0
        self.signal = self.balls(MASS, *MASS_BALLS) + self.balls(SPECKS, *SPECK_BALLS)
        f = np.sqrt(sum(np.square((np.fft.rfftfreq if a == 2 else np.fft.fftfreq)(n, h)).reshape([-1 if i == a else 1 for i in range(3)])
                        for a, (n, h) in enumerate(zip(FIELD, SPACING))))
        self.amplitude = np.maximum(f, 1 / 40) ** -1.5
        self.channels = {}

    def scan(self, h):
        n_u, n_v = (round(d / h) for d in DETECTOR)
        return self.tn.Views([[*s, DETECTOR[0] / 2, 0, 0, h, 0, 0, 0, h, 0] for s in SOURCES], n_u=n_u, n_v=n_v)

    def balls(self, place, radius, mu, offsets, fine=5):
        """Line integrals of balls: the chords of fine x fine rays in each bin near their shadows."""
        h, lines = self.pitch, np.zeros(self.scans[self.pitch].shape, np.float32)
        steps = (np.arange(fine) + 0.5) / fine
        for view, s in enumerate(SOURCES):
            for c in place + offsets - s:
                shadow, reach = s - c * s[2] / c[2], 1.2 * radius + 2 * h
                u = np.arange(*((shadow[0] + d) // h for d in (-reach, reach)), dtype=int)
                v = np.arange(*((shadow[1] + DETECTOR[1] / 2 + d) // h for d in (-reach, reach)), dtype=int)
                x = (u[:, None] + steps).ravel() * h - s[0]
                y = (v[:, None] + steps).ravel()[:, None] * h - DETECTOR[1] / 2 - s[1]
                along = (c[0] * x + c[1] * y - c[2] * s[2]) ** 2 / (x ** 2 + y ** 2 + s[2] ** 2)
                chord = 2 * np.sqrt(np.maximum(0, radius ** 2 - (c @ c - along)))
                lines[view, v[0]:v[-1] + 1, u[0]:u[-1] + 1] += mu * chord.reshape(len(v), fine, len(u), fine).mean((1, 3))
        return lines

    def tissue(self, random):
        field = np.fft.irfftn(np.fft.rfftn(random.standard_normal(FIELD, dtype=np.float32)) * self.amplitude, s=FIELD, axes=(0, 1, 2))
        field = field[tuple(slice(n) for n in OBJECT)]
        part = 1 / (1 + np.exp(-((field - field.mean()) / field.std() - 0.7) / 0.15))  # 25 % gland
        return np.ascontiguousarray(TISSUE[0] + (TISSUE[1] - TISSUE[0]) * part, np.float32)

    def merge(self, values, h):
        k, (views, n_v, n_u) = round(h / self.pitch), values.shape
        return values.reshape(views, n_v // k, k, n_u // k, k).sum((2, 4))

    def pair(self, n):
        """Return the responses of pair n: (row, signal absent or present, task) to an array (slice, channel)."""
        lines = self.project(self.tissue(np.random.default_rng([n, 2])))
        responses = {}
        for present in (0, 1):
            counts = np.random.default_rng([n, present]).poisson(PHOTONS * (self.pitch / 0.085) ** 2 * np.exp(-lines - present * self.signal))
            data = {}
            for name, h, keys in self.rows:
                if h not in data:
                    mean = np.maximum(self.merge(counts, h), 1) / (PHOTONS * (h / 0.085) ** 2)
                    valid = np.where(self.merge(self.air, h) == round(h / self.pitch) ** 2, -1, 1)
                    data[h] = np.maximum(0, -np.log(mean)).astype(np.float32), valid.astype(np.float32)
                volume = self.tn.reconstruct(self.scans[h], data[h][0], keys, valid=data[h][1], device=self.device, voxel=0,
                                             slice_spacing=1, support=SUPPORT, thickness=THICKNESS)
                for task in TASKS:
                    responses[f"{name}, {h:g} mm", present, task] = self.respond(volume, h, task)
        return responses

    def respond(self, volume, h, task):
        (number, width, step), place = TASKS[task], MASS if task == "mass" else SPECKS
        reach, k = (8.0 if task == "mass" else 4.0), int(place[2] - SUPPORT)
        i, j = (np.arange(int((p - reach) / h), int((p + reach) / h)) for p in (place[0], place[1] + DETECTOR[1] / 2))
        if (h, task) not in self.channels:
            offsets = MASS_BALLS[2] if task == "mass" else SPECK_BALLS[2]
            self.channels[h, task] = sum(channels(number, width, (i + 0.5) * h - place[0] - o[0],
                                                  (j + 0.5) * h - DETECTOR[1] / 2 - place[1] - o[1]) for o in offsets)
        part = volume[[k - step, k, k + step], j[0]:j[-1] + 1, i[0]:i[-1] + 1]
        return np.einsum("kij,cij->kc", part.astype(float), self.channels[h, task], optimize=True)


def run(args):
    began, exact, estimate = time.monotonic(), *analytic_case()
    error = 100 * abs(estimate / exact - 1)
    worst = [("analytic case: error of d'", error, LIMIT, "%", error <= LIMIT)]
    bench, responses = Bench(args.device, args.pitch, args.only), {}
    for n in range(args.first, args.first + args.pairs):
        for key, value in bench.pair(n).items():
            responses.setdefault(key, []).append(value)
        if n % 10 == 9:
            log_progress(began, f"{n + 1 - args.first} of {args.pairs} pairs")
    results = {"device": bench.device.name, "pitch": args.pitch, "analytic": [exact, estimate], "first": args.first, "pairs": args.pairs,
               "responses": [[*key, np.array(value).round(9).tolist()] for key, value in responses.items()]}
    write_json(args.output, results)
    return print_verdicts(worst, time.monotonic() - began)


# ---- the report ----


def features(values, task, half):
    """Choose the slice in focus or all three: (pairs, features)."""
    return values[task][:, 1] if half == "2-D" else values[task].reshape(len(values[task]), -1)


def figures(absent, present, reference, task, kind):
    """d' and its error; ratio to the reference, on the same pairs, and its error."""
    a, b = features(absent, task, kind), features(present, task, kind)
    c, d = (features(r, task, kind) for r in reference)
    samples = [(detectability(a[i], b[i]), detectability(c[i], d[i])) for i in halves(len(a))]
    own, other = detectability(a, b), detectability(c, d)
    return own, np.std([s[0] for s in samples]), own / other, np.std([s[0] / s[1] for s in samples])


def read_results(paths):
    """Return responses by row, with the parts of the study in order: {row: [absent, present]}, each {task: (pairs, slice, channel)}."""
    found, rows, numbers = [], {}, []
    for path in paths:
        found.append(read_json(path))
    for part in sorted(found, key=lambda p: p["first"]):
        numbers += range(part["first"], part["first"] + part["pairs"])
        for name, present, task, values in part["responses"]:
            rows.setdefault(name, [{}, {}])[present].setdefault(task, []).append(values)
    if len(set(numbers)) < len(numbers):
        sys.exit("two results have the same pairs")
    return found[0], len(numbers), {name: [{t: np.concatenate(v) for t, v in side.items()} for side in sides] for name, sides in rows.items()}


def report(args):
    first, pairs, rows = read_results(args.results)
    reference, specks = next(iter(rows.values())), f"specks {SPECK_WIDTH}"
    lines = []
    for name, (absent, present) in rows.items():
        row = [name]
        for task, kind in (("mass", "2-D"), ("mass", "2.5-D"), (specks, "2-D"), (specks, "2.5-D")):
            d, error, ratio, ratio_error = figures(absent, present, reference, task, kind)
            row += [f"{d:.2f} +- {error:.2f}", f"{ratio:.3f} +- {ratio_error:.3f}" if absent is not reference[0] else "1"]
        lines.append(row)
    head = ["protocol", *[w for t in ("mass, 2-D", "mass, 2.5-D", "specks, 2-D", "specks, 2.5-D") for w in (t, "ratio")]]
    widths = [[name, *[f"{detectability(*(features(s, f'specks {w}', '2-D') for s in sides)):.2f}" for w in SPECK_WIDTHS]]
              for name, sides in rows.items() if name.startswith(("osem, 1 ", "fbp, 1.0"))]
    fields = {"pairs": pairs, "device": first["device"], "exact": f"{first['analytic'][0]:.3f}", "estimate": f"{first['analytic'][1]:.3f}",
              "detectability": table(head, lines), "widths": table(["specks, 2-D", *[f"{w} mm" for w in SPECK_WIDTHS]], widths)}
    write_section(os.path.join(args.output, "dbt-quality.md"), "quality_dbt_observer", fields)


if __name__ == "__main__":
    command(__doc__, run, report, several=True, device={"default": "cpu", "help": "cpu, cpu:THREADS, cuda"}, only=ONLY,
            pairs={"type": int, "default": 100}, first={"type": int, "default": 0, "help": "number of the first pair, which is its seed"},
            pitch={"type": float, "default": 0.17, "help": "bin of the detector, mm; rows with smaller voxels are left out"})
