# SPDX-License-Identifier: Apache-2.0
"""PET by single events: the image of a list is that of its histogram where each bin is one pair of detectors; scanners
that are no regular cylinder have a point and a uniform cylinder as they are; pairs that are not in coincidence are not
used; time frames; what cannot be is refused by name."""
import glob
import hashlib
import json
import os

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import list_tools as lists
from tools import mmr_tools as mmr
from tools import node_harness as h
from tools import pet_tools
from tools import petsird_tools as p

ATTRIBUTES = ("PatientPosition=HFS", "Radionuclide=F18")


def recon(out, *paths, settings=(), options=(), protocol="pet-mlem", ok=(0,)):
    """`tomonode recon --json`: the series, and the report of the case; of a refusal what it said."""
    args = ["recon", "--json", "-o", out, "--device", "cpu", "--protocol", protocol, *options]
    args += [x for s in settings for x in ("--set", s)]
    done = tools.run(*args, *paths, ok=ok)
    if done.returncode:
        return done.stderr
    return pet_tools.Series(glob.glob(os.path.join(out, "*.dcm"))), json.loads(done.stdout)["cases"][0]


def by_events(out, path, settings=(), options=(), **kwargs):
    return recon(out, path, settings=settings,
                 options=[x for a in ATTRIBUTES for x in ("--attribute", a)] + list(options), **kwargs)


def odd_pairs_apart(columns):
    """Columns whose rays end between two detectors in a sinogram are not in coincidence."""
    return [[[[0 if (i - j + columns // 2) % 2 == 0 else -1 for j in range(i + 1)] for i in range(columns)]]]


@pytest.mark.parametrize("name", ("plain", "TOF") if h.TIER == 2 else ("TOF",))
def test_events_equal_their_histogram(folder, failures, name):
    """Each bin is one pair of detectors, whose ray ends at both: by events and by sinograms the image is the same."""
    columns, rings, tof = 48, 6, (-300.0, 300.0) if name == "plain" else np.linspace(-110, 110, 12)
    head = p.ring_header(modules=columns, rings=rings, radius=110.0, spacing=6.0, tof=tof, fwhm=50.0, start=0.03)
    head["scanner"]["detectionEfficiencies"]["modulePairSGIDLUT"] = odd_pairs_apart(columns)
    where = p.positions(head)
    a, b = lists.lors(len(where), lambda a, b: (a // rings - b // rings + columns // 2) % 2 == 0)
    a, b = lists.repeated(a, b, lists.chords(where[a], where[b], 40, 12, (10, -15, 0)), 40000, 3)
    k = 0
    if name == "TOF":
        rng = np.random.default_rng(4)
        centre = (where[a] + where[b]) / 2 - np.array((10.0, -15.0, 0.0))
        direction = (where[b] - where[a]) / np.linalg.norm(where[b] - where[a], axis=1)[:, None]
        t = -(centre * direction).sum(1) + rng.normal(0, 40, len(a))
        keep = np.abs(t) < 110
        a, b, k = a[keep], b[keep], np.digitize(t[keep], tof) - 1
    path = os.path.join(folder, f"equal-{name}.petsird")
    dead = (np.array([rings * 7]), np.array([3]))  # two columns that are not in coincidence
    lists.write(path, head, [lists.block(0, 1000, head, a, b, k),
                             lists.block(1000, 2000, head, *dead, 0, [{"detectionBins": (20, 3), "tofIdx": 0}])])
    settings = ("iterations=6", "matrix=36", "fov_radius=75")
    events, report = by_events(os.path.join(folder, f"{name}-events"), path, settings)
    tools.run("import", "--petsird", path, "--radial", str(columns - 1), *[x for v in ATTRIBUTES for x in ("--set", v)],
              "-o", path + "-bins")
    bins, _ = recon(os.path.join(folder, f"{name}-bins"), path + "-bins", settings=(*settings, "projector=joseph"))
    difference = np.abs(events.values - bins.values).max() / bins.values.max()
    print(f"{name}: {len(a)} events, list and histogram differ by {difference:.1e}")
    tools.check(difference < 1e-4, f"{name}: list and histogram differ by {difference}", failures)
    tools.check(np.allclose(events.positions, bins.positions), f"{name}: other positions", failures)
    found = report["pet"]["list_mode"]
    tools.check((found["events"], found["dead"]) == (len(a), 1) and "NORM" in report["pet"]["corrected"],
                f"{name}: {found}", failures)
    for says in ("not corrected for randoms, scatter, attenuation and dead time", "1 delayed coincidences are not used",
                 "1 prompt of detectors"):
        tools.check(says in report["pet"]["warnings"], f"{name}: {says}: {report['pet']['warnings']}", failures)


DEAD = 7  # the module that is missing


def irregular(dead=False):
    """Flat blocks of two sizes at two radii, one of them turned by 12 degrees, one shifted; one is missing, or there
    but never in coincidence."""
    turns = [(i, 18 * i + 4) for i in range(20)]
    large = [lists.placed(118, t, tilt=12 if i == 2 else 0) for i, t in turns if i % 2 == 0]
    small = [lists.placed(110, t, z=3.0 if i == 5 else 0.0) for i, t in turns if i % 2 and (dead or i != DEAD)]
    groups = None
    if dead:
        row = [-1 if 2 * j + 1 == DEAD else 0 for j in range(10)]
        groups = [[[[0] * (i + 1) for i in range(10)]],
                  [[[0] * 10 for _ in range(10)], [[min(row[i], row[j]) for j in range(i + 1)] for i in range(10)]]]
        groups[1][0] = [[row[i]] * 10 for i in range(10)]
    return lists.header([(lists.module(6, 5, 5.8, 6.4), large), (lists.module(6, 6, 5.0, 5.2), small)], groups=groups)


def profile(series, centre, radius, half):
    """Means of the voxels inside and outside of a cylinder, and the relative deviation inside, smoothed over 3 x 3 x 3
    voxels."""
    places, v = series.places() - np.array(centre), series.values
    smooth = sum(np.roll(v, (i, j, k), (0, 1, 2)) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)) / 27
    r, z = np.hypot(places[..., 0], places[..., 1]), np.abs(places[..., 2])
    inside, outside = (r < radius - 12) & (z < half - 8), (r > radius + 12) & (r < 62) & (z < half - 8)
    return smooth[inside].mean(), smooth[outside].mean(), smooth[inside].std() / smooth[inside].mean()


SMALL = ("algorithm=osem", "iterations=2", "subsets=4", "matrix=28", "fov_radius=70", "slice_spacing=5")


def events_of(head, centre, radius, half, total):
    """Of a cylinder in the scanner `irregular`, nearly without noise, and the number of its pairs of detectors."""
    where, _ = lists.positions(head)
    a, b = lists.lors(len(where))
    return lists.repeated(a, b, lists.chords(where[a], where[b], radius, half, centre), total, 5), len(a)


def write(path, head, *events):
    lists.write(path, head, [lists.block(0, 60000, head, *events)])
    return path


def middle_of(head):
    z = lists.positions(head)[0][:, 2]
    return np.array((0, 0, (z.max() + z.min()) / 2))


def test_a_point_in_no_cylinder(folder, failures):
    """Two types of flat modules, one missing, one turned, one shifted: a point is where it is."""
    head, centre = irregular(), (22.0, -12.0, 4.0)
    events, n_lors = events_of(head, centre, 2.5, 2.5, 8000)
    path = write(os.path.join(folder, "point.petsird"), head, *events)
    series, report = by_events(os.path.join(folder, "point"), path, SMALL)
    found = report["pet"]["list_mode"]
    tools.check(found["events"] == len(events[0]) and found["lors"] == n_lors, f"{found}, {n_lors} pairs", failures)
    brightest = series.places()[np.unravel_index(int(np.argmax(series.values)), series.values.shape)]
    mean = (series.places() * series.values[..., None]).sum((0, 1, 2)) / series.values.sum()
    for place in (brightest, mean):  # voxels of 5 mm
        tools.check(np.abs(place - np.array(centre) + middle_of(head)).max() < 2.7, f"point at {place}, {brightest}",
                    failures)
    done = tools.run("import", "--petsird", path, "-o", os.path.join(folder, "none"), ok=(4,))
    tools.check("not on one cylinder" in done.stderr, done.stderr, failures)


CYLINDER = ((5.0, -8.0, 0.0), 40.0, 30.0, 200000)


def test_a_cylinder_in_no_cylinder(folder, failures):
    """It is uniform. A module that is there, but in no group of symmetry, is no part of the sensitivity: the image is
    that without the module."""
    head, lacking = irregular(dead=True), irregular()
    events, n_lors = events_of(lacking, *CYLINDER)
    series, report = by_events(os.path.join(folder, "cylinder"),
                               write(os.path.join(folder, "cylinder.petsird"), lacking, *events), SMALL)
    found = report["pet"]["list_mode"]
    tools.check(found["events"] == len(events[0]) and found["lors"] == n_lors, f"{found}, {n_lors} pairs", failures)
    inside, outside, deviation = profile(series, np.array(CYLINDER[0]) - middle_of(lacking), CYLINDER[1], 18)
    print(f"cylinder: deviation {deviation:.2%}, outside {outside / inside:.2%}")
    tools.check(deviation < 0.025 and outside < 0.02 * inside, f"deviation {deviation}, outside {outside / inside}",
                failures)
    _, kinds = lists.positions(head)
    start = int(np.argmax(kinds == 1)) + (DEAD // 2) * 36
    renumbered = [np.where(x >= start, x + 36, x) for x in events]
    # that cannot be
    extra = [np.concatenate((renumbered[0], [start + 3] * 5)), np.concatenate((renumbered[1], [2] * 5))]
    same = np.allclose(np.delete(lists.positions(head)[0], range(start, start + 36), 0), lists.positions(lacking)[0])
    tools.check(same, "the test's modules", failures)
    path = write(os.path.join(folder, "dead.petsird"), head, *extra)
    found, report = by_events(os.path.join(folder, "dead"), path, SMALL)
    difference = np.abs(found.values - series.values).max() / series.values.max()
    tools.check(difference < 1e-3, f"a module that is never in coincidence changes the image by {difference}", failures)
    tools.check(report["pet"]["list_mode"]["dead"] == 5, str(report["pet"]["list_mode"]), failures)


def few_events():
    """The scanner, and a seventh of the events of the cylinder."""
    head = irregular()
    return head, [x[::7] for x in events_of(head, *CYLINDER)[0]]


def test_attributes(folder, failures):
    """As valid as those of sinograms, with the file and its digest, and no reference to an object that does not
    exist."""
    head, events = few_events()
    path = write(os.path.join(folder, "some.petsird"), head, *events)
    like = os.path.join(folder, "like")
    tools.run("simulate", "pet", "--scanner", "small", "--phantom", "cylinder", "--radius", "20", "--length", "20",
              "--counts", "1000", "-o", like)
    like = os.path.join(like, "emission.dcm")
    series, report = by_events(os.path.join(folder, "like-image"), path, SMALL,
                               ("--like", like, "--attribute", "PatientWeight=61"))
    ds, source = series.objects[0], pydicom.dcmread(like)
    digest = hashlib.sha256(h.read_file(path, "rb")).hexdigest()
    tools.check(f"{os.path.basename(path)} ({os.path.getsize(path)} bytes, SHA-256 {digest})"
                in ds.DerivationDescription, ds.DerivationDescription, failures)
    tools.check((ds.StudyInstanceUID, ds.PatientName,
                 ds.FrameOfReferenceUID) == (source.StudyInstanceUID, source.PatientName, source.FrameOfReferenceUID),
                f"--like: {ds}", failures)
    tools.check(float(ds.PatientWeight) == 61 and "SourceInstanceSequence" not in ds
                and ds.ReconstructionMethod == "OSEM 2i4s, joseph", str(ds), failures)
    tools.check(not pet_tools.validator(series.paths[0]), str(pet_tools.validator(series.paths[0])), failures)
    tools.check("SCAT" in source.CorrectedImage and not set(ds.CorrectedImage) & {"ATTN", "SCAT", "RAN", "DTIM"},
                f"corrections of other data: {ds.CorrectedImage}", failures)
    seconds = report["pet"]["list_mode"]
    tools.check(all(seconds[f"seconds_{s}"] > 0 for s in ("read", "sensitivity", "load", "iterate")), str(seconds),
                failures)


def test_frames(folder, failures):
    """Each frame has the image of its events; one without events is zero."""
    head, events = few_events()
    path = os.path.join(folder, "frames.petsird")
    parts = [[x[k::3] for x in events] for k in range(3)]
    none = [x[:0] for x in events]
    times = ((0, 1000, parts[0]), (1000, 2000, parts[1]), (2000, 3000, none), (3000, 4000, parts[2]))
    lists.write(path, head, [lists.block(start, stop, head, *e) for start, stop, e in times])
    series, report = by_events(os.path.join(folder, "frames"), path, SMALL, ("--frames", "1,(1),1,1"))
    counts = [f["counts"] for f in report["pet"]["frames"]]
    tools.check(counts == [len(parts[0][0]), 0, len(parts[2][0])], f"frames: {counts}", failures)
    tools.check(report["pet"]["list_mode"]["in_no_frame"] == len(parts[1][0]), str(report["pet"]["list_mode"]),
                failures)
    tools.check("The event blocks cover" not in report["pet"]["warnings"], report["pet"]["warnings"], failures)
    n = len(series.objects) // 3
    for k, e in ((0, parts[0]), (2, parts[2])):
        alone = os.path.join(folder, f"frame-{k}.petsird")
        lists.write(alone, head, [lists.block(0, 1000, head, *e)])
        other, _ = by_events(os.path.join(folder, f"frame-{k}"), alone, SMALL)
        difference = np.abs(series.values[k * n:k * n + n] - other.values).max() / other.values.max()
        tools.check(difference < 1e-4, f"frame {k + 1} differs by {difference}", failures)
    gap = os.path.join(folder, "gap.petsird")
    lists.write(gap, head, [lists.block(0, 1000, head, *parts[0]), lists.block(1000, 1500, head, *parts[1]),
                            lists.block(2000, 4000, head, *parts[2])])
    for table, wanted in (("1,1,2", True), ("1,(1),2", False)):
        _, said = by_events(os.path.join(folder, f"gap-{wanted}"), gap, SMALL, ("--frames", table))
        tools.check(("The event blocks cover 0.5 of 1 s of time frame 2" in said["pet"]["warnings"]) == wanted,
                    said["pet"]["warnings"], failures)
    tools.check(not series.values[n:2 * n].any() and "without counts, whose values are 0: 2."
                in report["pet"]["warnings"], str(counts), failures)


def test_bad_files_are_refused(folder, failures):
    """What is wrong is named, with its place; nothing is written."""
    head, events = few_events()
    path, out, bad = os.path.join(folder, "good.petsird"), os.path.join(folder,
                                                                        "refused"), os.path.join(folder, "bad.petsird")
    few = [x[:3000] for x in events]
    tof = lists.header([(m["object"], m["transforms"])
                        for m in head["scanner"]["scannerGeometry"]["replicatedModules"]], tof=np.linspace(-90, 90, 4))
    lists.write(path, head, [lists.block(0, 1000, head, *few)])
    data = h.read_file(path, "rb")
    h.write_file(bad, data[:-4000])
    settings, missing = SMALL, "detection bin 99999; module type 0 has 300"
    said = by_events(out, bad, settings, ok=(4,))
    tools.check("items of at least 1 bytes; the file has" in said or "bad.petsird: byte " in said or "the file ends" in said,
                said, failures)
    one = np.array([20]), np.array([3])
    unknown = lists.block(0, 1000, head, *one)
    unknown[1]["promptEvents"][0][0] = lists.Encoded([(99999, 3, 0)])
    cases = ((head, [unknown], (), missing), (tof, [lists.block(0, 1000, tof, *one, 3)], (), "TOF bin 3 of 3"),
             (head, [lists.block(0, 1000, head, *[x[:0] for x in events])], (), "0 prompts, none of which is used"),
             (head, [lists.block(0, 1000, head, *few)], ("algorithm=fbp", "iterations=40", "subsets=28"), "fbp"),
             (head, [lists.block(0, 1000, head, *one)], (), "subsets=4"),
             (head, [lists.block(0, 1000, head, *few)], ("corrections=randoms",),
              'the correction "randoms" is not made for events of detectors that are not a regular cylinder'),
             (head, [lists.block(0, 1000, head, *few)], ("frames=1,3",),
              "frame 2 ends after 4 s, but the acquisition has 1 s"),
             (head, [lists.block(0, 2000, head, *few)], ("frames=1",),
              "the time block from 0 to 2000 ms is partly in frame 1, 0 to 1000 ms"),
             (tof, [lists.block(0, 1000, tof, *few)], ("tof_mashing=2",), "tof_mashing=2"))
    for header, blocks, more, says in cases:
        lists.write(bad, header, blocks)
        said = by_events(out, bad, (*settings, *more), ok=(4,))
        tools.check(says in said, f"{says}: {said}", failures)
    said = recon(out, path, settings=settings, ok=(4,))
    tools.check("the file does not have the patient's position" in said and "--attribute PatientPosition=HFS" in said, said,
                failures)
    tools.check(not os.path.exists(out) or not os.listdir(out),
                f"left: {os.listdir(out) if os.path.exists(out) else ''}", failures)


def test_raw_data_of_an_mmr(folder, failures):
    """Raw data of a Siemens mMR with list_mode = true: the image of the histogram for rays that end at two detectors;
    gaps are no LORs; a case of sinograms is held."""
    os.makedirs(os.path.join(folder, "raw"))
    rng, conf = np.random.default_rng(6), os.path.join(folder, "mmr.conf")
    n = 6000
    # odd views: none is at 0 or 90 degrees
    plane, view = rng.integers(20, 44, n), rng.integers(0, mmr.VIEWS // 2, n) * 2 + 1
    view = np.where((view == 63) | (view == 189), view + 2, view)                      # nor at 45
    bin_ = mmr.BINS // 2 + 2 * rng.integers(-8, 9, n)
    words = [mmr.event(int(p), int(v), int(b)) for p, v, b in zip(plane, view, bin_)]
    words = [mmr.time_mark(100), *words[:4000], *[mmr.time_mark(100)] * 2**16, *words[4000:],  # 2^16: more than one piece
             *(mmr.event(3, 5, 172, False) for _ in range(9)), mmr.time_mark(20100)]
    crystals = ((view + ((bin_ - 172) >> 1)) % mmr.CRYSTALS,
                (view - ((bin_ - 171) >> 1) + mmr.CRYSTALS // 2) % mmr.CRYSTALS)
    gaps = int(((crystals[0] % 9 == 0) | (crystals[1] % 9 == 0)).sum())
    mmr.write_list(os.path.join(folder, "raw", "list.dcm"), words)
    mmr.write_norm(os.path.join(folder, "raw", "norm.dcm"), mmr.Norm(np.random.default_rng(8)))
    h.write_file(conf, 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; } );\n')
    settings = ("iterations=3", "matrix=20", "fov_radius=50", "slice_spacing=8", "projector=joseph")
    bins, _ = recon(os.path.join(folder, "mmr-bins"), os.path.join(folder, "raw"), settings=settings,
                    options=("-c", conf))
    events, report = recon(os.path.join(folder, "mmr-events"), os.path.join(folder, "raw"),
                           settings=(*settings, "list_mode=true"), options=("-c", conf))
    difference = np.abs(events.values - bins.values).max() / bins.values.max()
    print(f"mMR: {n - gaps} events, {gaps} in gaps, list and histogram differ by {difference:.1e}")
    found = report["pet"]["list_mode"]
    # the sensitivity of the sinogram has odd radial bins half a detector beside the pairs of the events
    tools.check(difference < 0.02 and (found["events"], found["dead"]) == (n - gaps, gaps) and gaps > 0,
                f"mMR: {difference}, {found}, {gaps} in gaps", failures)
    for says in ("Reconstructed event by event: not corrected for randoms, scatter, attenuation and dead time; 9 "
                 "delayed events", f"{gaps} prompts of detectors"):
        tools.check(says in report["pet"]["warnings"], f"mMR: {says}: {report['pet']['warnings']}", failures)
    ds = events.objects[0]
    tools.check("the events of 2 raw data objects" in ds.DerivationDescription and len(ds.SourceInstanceSequence) == 2
                and
                ds.SeriesInstanceUID != bins.objects[0].SeriesInstanceUID, ds.DerivationDescription, failures)
    tools.run("simulate", "pet", "--scanner", "small", "--phantom", "cylinder", "--counts", "1000", "-o",
              os.path.join(folder, "bins"))
    said = recon(os.path.join(folder, "held"), os.path.join(folder, "bins", "emission.dcm"),
                 settings=("list_mode=true",), ok=(4,))
    tools.check("(list_mode), but the case has sinograms" in said, said, failures)


def test_randoms_of_an_mmr_are_those_of_each_frame(folder):
    """By events and time frames: the delayed coincidences of each frame, 500 and 2000, are its randoms."""
    rng, conf = np.random.default_rng(7), os.path.join(folder, "mmr.conf")
    os.makedirs(os.path.join(folder, "raw"))
    words = []
    for start, prompts, delayeds in ((100, 3000, 500), (10100, 3000, 2000)):
        n = prompts + delayeds
        words += [mmr.time_mark(start), *(mmr.event(int(plane), int(view), int(bin_), i < prompts) for i, plane, view, bin_ in zip(
            range(n), rng.integers(0, 64, n), rng.integers(0, mmr.VIEWS, n), rng.integers(100, 244, n)))]
    mmr.write_list(os.path.join(folder, "raw", "list.dcm"), [*words, mmr.time_mark(20100)])
    mmr.write_norm(os.path.join(folder, "raw", "norm.dcm"), mmr.Norm(np.random.default_rng(8)))
    h.write_file(conf, 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; } );\n')
    _, report = recon(os.path.join(folder, "out"), os.path.join(folder, "raw"), options=("-c", conf, "--frames", "10,10"), settings=(
        "iterations=1", "matrix=10", "fov_radius=50", "slice_spacing=16", "list_mode=true", "corrections=randoms"))
    total = report["pet"]["corrections"]["randoms"]["total"]
    assert abs(total - 2500) < 25, f"{total} randoms"
