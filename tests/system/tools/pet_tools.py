# SPDX-License-Identifier: Apache-2.0
"""What the system tests of PET share: running the program, a series by its own attributes alone, SUV as QIBA writes it,
the truth of a simulated phantom in patient coordinates.

Directions are written down here a second time, from the definitions and not from the program: LPS patient axes, +x
left, +y posterior, +z head."""
import datetime
import glob
import json
import os
import subprocess

import numpy as np
import pydicom

from tools.dbt_tools import TOMONODE, run  # noqa: F401
from tools.node_harness import check, read_file

PET = "1.2.840.10008.5.1.4.1.1.128"
# x right, y down, z into the gantry for somebody at the foot of the bed, in the patient
AXES = {"HFS": ((1, 0, 0), (0, 1, 0), (0, 0, 1)), "HFP": ((-1, 0, 0), (0, -1, 0), (0, 0, 1)),
        "FFS": ((-1, 0, 0), (0, 1, 0), (0, 0, -1)), "FFP": ((1, 0, 0), (0, -1, 0), (0, 0, -1)),
        "HFDR": ((0, 1, 0), (-1, 0, 0), (0, 0, 1)), "HFDL": ((0, -1, 0), (1, 0, 0), (0, 0, 1))}


def along_z(values, planes):
    """The planes of a file, whose rings are counted from the depth of the gantry, in the order of z; and the reverse.
    planes: of each segment."""
    at = np.cumsum([0, *planes])
    return np.concatenate([values[..., a:b, :, :][..., ::-1, :, :] for a, b in zip(at, at[1:])], axis=-3)


def simulate(folder, *args):
    """`tomonode simulate pet`; the truth it wrote."""
    run("simulate", "pet", "--scanner", "small", *args, "-o", folder)
    return json.loads(read_file(os.path.join(folder, "truth.json")))


def reconstruct(out, *paths, settings=(), protocol="pet-mlem", config=None):
    """`tomonode recon`; the one series it wrote."""
    args = ["recon", "-o", out, "--device", "cpu", "--protocol", protocol]
    if config:
        args += ["-c", config]
    for setting in settings:
        args += ["--set", setting]
    run(*args, *paths)
    return Series(glob.glob(os.path.join(out, "*.dcm")))


def offline(node, folder, files):
    """What `tomonode recon` makes of the objects that a node got: SOP Instance UID -> data set."""
    run("recon", "-c", node.conf, "--device", "cpu", "-o", folder, *files)
    return {d.SOPInstanceUID: d for d in map(pydicom.dcmread, glob.glob(os.path.join(folder, "*.dcm")))}


def values_of(ds):
    """All attributes without the times at which the object was made; items in any order, for references are in that of
    arrival."""
    made = {"InstanceCreationDate", "InstanceCreationTime", "ContentDate", "ContentTime", "ContributionDateTime"}
    return {e.tag: sorted((values_of(item) for item in e.value), key=repr) if e.VR == "SQ" else e.value for e in ds
            if e.keyword not in made}


def check_same(received, wanted):
    """The same objects, bit for bit, with something in them."""
    check(set(received) == set(wanted), f"{len(received)} objects arrived, not the {len(wanted)} of `tomonode recon`")
    for uid, d in received.items():
        found, other = values_of(d), values_of(wanted[uid])
        different = [str(tag) for tag in sorted(set(found) | set(other)) if found.get(tag) != other.get(tag)]
        check(not different, f"object {d.InstanceNumber}: other values of {different}")
    check(max(d.pixel_array.max() for d in received.values()) > 0, "nothing in the image")


def validator(path):
    """The errors of dciodvfy."""
    done = subprocess.run(["dciodvfy", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line.startswith("Error")]


class Series:
    """PET objects sorted by where they lie: values[slice, row, column], and where each of them is in the patient."""

    def __init__(self, paths):
        self.paths = paths
        self.objects = sorted(map(pydicom.dcmread, paths), key=lambda d: int(d.InstanceNumber))
        first = self.objects[0]
        cosines = np.array(first.ImageOrientationPatient, float)
        self.row, self.column = cosines[:3], cosines[3:]
        self.normal = np.cross(self.row, self.column)
        self.positions = np.array([d.ImagePositionPatient for d in self.objects], float)
        spacing = [float(v) for v in first.PixelSpacing]
        self.right, self.below = self.row * spacing[1], self.column * spacing[0]
        self.values = np.array([d.pixel_array * float(d.RescaleSlope) + float(d.RescaleIntercept)
                                for d in self.objects])

    def places(self):
        """LPS coordinates of every voxel, [slice, row, column, 3]."""
        _, rows, columns = self.values.shape
        return (self.positions[:, None, None] + np.arange(rows)[None, :, None, None] * self.below
                + np.arange(columns)[None, None, :, None] * self.right)


def moment(date, time):
    time = time.split(".")[0]
    return datetime.datetime.strptime(date + time, "%Y%m%d%H%M%S")


def suv_factor(ds):
    """SUVbw = value times this: the vendor-neutral pseudo-code of the QIBA FDG-PET profile. None: it cannot be
    computed."""
    if not {"ATTN", "DECY"} <= set(ds.CorrectedImage) or (ds.DecayCorrection, ds.Units) != ("START", "BQML"):
        return None
    drug = ds.RadiopharmaceuticalInformationSequence[0]
    start = moment(ds.SeriesDate, ds.SeriesTime)
    if start > moment(ds.AcquisitionDate, ds.AcquisitionTime):
        return None
    injected = moment(ds.SeriesDate, drug.RadiopharmaceuticalStartTime)
    if injected > start:
        injected -= datetime.timedelta(days=1)
    half_lives = (start - injected).total_seconds() / float(drug.RadionuclideHalfLife)
    decayed = float(drug.RadionuclideTotalDose) * 2 ** -half_lives
    return 1000 * float(ds.PatientWeight) / decayed


def truth_values(truth, places):
    """The phantom's activity (Bq/ml) at points of the patient (LPS)."""
    axes = np.array(AXES[truth["position"]], float)
    values = np.zeros(places.shape[:-1])
    for shape in truth["shapes"]:
        middle = np.array(shape["center_mm"]) @ axes
        at = (places - middle) @ axes.T / np.array(shape["half_axes_mm"])
        if shape["kind"] == "cylinder":
            inside = (at[..., 0] ** 2 + at[..., 1] ** 2 <= 1) & (np.abs(at[..., 2]) <= 1)
        else:
            inside = (at ** 2).sum(-1) <= 1
        values[inside] += shape["becquerel_per_ml"]
    return values
