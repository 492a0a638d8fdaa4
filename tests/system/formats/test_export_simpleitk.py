# SPDX-License-Identifier: Apache-2.0
"""SimpleITK reads what `tomonode export` writes (NIfTI, MetaImage; 3-D and 4-D) at the same places and with the same
values as it reads the DICOM objects themselves. Skipped without SimpleITK, which Debian does not have (pip install
SimpleITK)."""
import glob
import json
import os

import numpy as np
import pydicom
import pytest

from tools import pet_tools as t
from tools import volume_tools as v

SimpleITK = pytest.importorskip("SimpleITK", reason="SimpleITK is not installed")
pytestmark = pytest.mark.tier2("SimpleITK is not in Debian")
ENDINGS = (("nii", ()), ("nii.gz", ()), ("mha", ()), ("mhd", ()), ("mha", ("--compress",)), ("mhd", ("--compress",)))


def of_image(image):
    """A SimpleITK image (LPS) as a volume."""
    matrix = np.array(image.GetDirection()).reshape(3, 3) * image.GetSpacing()
    return v.Volume(SimpleITK.GetArrayFromImage(image), np.column_stack([matrix, image.GetOrigin()]))


PET = ("pet", "--scanner", "small", "--phantom", "f-shape", "--noise-free", "--attenuation")
CT = ("parallel", "--size", "64", "--slices", "9", "--slice", "2.5", "--taper", "0.5", "--position", "FFP")
DBT = ("dbt", "--phantom", "ellipsoids", "--detector", "300x400", "--views", "7", "--view", "MLO", "--side", "R", "--i0", "1000")


@pytest.mark.parametrize("name, simulate, recon, angles", [
    ("pet", PET, ("--protocol", "pet-mlem", "--set", "iterations=4", "--set", "matrix=40"), (20, -35, 50)),
    ("ct", CT, (), (-10, 25, 160)), ("dbt", DBT, (), None)], ids=["pet", "ct", "dbt"])
def test_three_dimensions(folder, name, simulate, recon, angles):
    source, out = os.path.join(folder, name + "-in"), os.path.join(folder, name)
    t.run("simulate", *simulate, "-o", source)
    t.run("recon", "-o", out, "--device", "cpu", *recon, source)
    paths = sorted(glob.glob(os.path.join(out, "*.dcm")))
    if angles:
        v.turn([pydicom.dcmread(p) for p in paths], angles)
        paths = SimpleITK.ImageSeriesReader.GetGDCMSeriesFileNames(out)
    wanted = of_image(SimpleITK.ReadImage(paths if len(paths) > 1 else paths[0]))
    if name == "dbt":  # it does not use the Real World Value Mapping
        shared = pydicom.dcmread(paths[0], stop_before_pixels=True).SharedFunctionalGroupsSequence[0]
        wanted.values = wanted.values * float(shared.RealWorldValueMappingSequence[0].RealWorldValueSlope)
    for ending, options in ENDINGS:
        path = os.path.join(folder, name + "".join(options) + "." + ending)
        t.run("export", "-o", path, *options, out)
        of_image(SimpleITK.ReadImage(path)).same_as(wanted)


def test_four_dimensions(folder):
    """Three time frames made of one series: the objects of a dynamic one."""
    source, out = os.path.join(folder, "static-in"), os.path.join(folder, "static")
    t.run("simulate", "pet", "--scanner", "small", "--phantom", "f-shape", "--noise-free", "-o", source)
    t.run("recon", "-o", out, "--device", "cpu", "--protocol", "pet-mlem", "--set", "iterations=2", "--set",
          "matrix=32", source)
    dynamic, paths = os.path.join(folder, "dynamic"), sorted(glob.glob(os.path.join(out, "*.dcm")))
    os.mkdir(dynamic)
    objects = sorted(map(pydicom.dcmread, paths), key=lambda d: int(d.ImageIndex))
    series, slope, start = pydicom.uid.generate_uid()[:50] + "1", [float(d.RescaleSlope)
                                                                   for d in objects], objects[0].SeriesTime
    v.turn(objects, (15, 10, -40))
    wanted = v.of_slices(objects)
    clock = sum(float(start[2 * k:2 * k + 2]) * 60 ** (2 - k) for k in range(2)) + float(start[4:])
    for frame in range(3):
        for k, d in enumerate(objects):
            now = clock + 60 * frame
            d.SeriesType, d.NumberOfTimeSlices = ["DYNAMIC", "IMAGE"], 3
            d.ImageIndex = frame * len(objects) + k + 1
            d.SeriesInstanceUID, d.SOPInstanceUID = series, f"{series}.{frame}.{k}"
            d.AcquisitionDate, d.ActualFrameDuration = d.SeriesDate, 60000
            d.AcquisitionTime = f"{int(now // 3600):02}{int(now // 60 % 60):02}{now % 60:09.6f}"
            d.RescaleSlope = f"{slope[k] * (frame + 1):.10g}"
            d.save_as(os.path.join(dynamic, f"{frame}-{k}.dcm"))
    for ending, options in ENDINGS:
        path = os.path.join(folder, "dynamic" + "".join(options) + "." + ending)
        said = json.loads(t.run("export", "--json", "--force", "-o", path, *options, dynamic).stdout)
        assert said["images"] == 3 and said["files"][-1].endswith(".json"), said
        image = SimpleITK.ReadImage(path)
        assert image.GetSize() == (*wanted.values.shape[::-1], 3), image.GetSize()
        assert abs(image.GetSpacing()[3] - 60) < 1e-4, image.GetSpacing()
        for frame in range(3):
            found = of_image(image[:, :, :, frame]) if ending.startswith("nii") else (v.of_metaimage(path)[frame])
            found.same_as(v.Volume(wanted.values * (frame + 1), wanted.matrix))
            values = SimpleITK.GetArrayFromImage(image)[frame]
            assert np.allclose(values, (v.of_nifti if ending.startswith("nii")
                                        else v.of_metaimage)(path)[frame].values), "values"
