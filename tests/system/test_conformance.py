# SPDX-License-Identifier: Apache-2.0
"""Results against the standard: dciodvfy, plain and with the IHE DBT profile, and what it does not see."""
import glob
import os
import re

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h

h.need("dciodvfy")
SMALL = {"detector": "1400x2000", "views": 9}
WHOLE = pytest.mark.tier2("the whole detector")
CASES = [("mg", "L", "CC", SMALL), ("bp", "R", "MLO", SMALL)]
CASES += [pytest.param(f, side, view, {}, marks=WHOLE) for f in ("mg", "bp") for side in "LR" for view in ("CC", "MLO")]


def code(sequence):
    return (sequence[0].CodeValue, sequence[0].CodingSchemeDesignator)


def check_identity(ds, sources, check):
    check(ds.SOPClassUID == "1.2.840.10008.5.1.4.1.1.13.1.3", f"SOP class {ds.SOPClassUID}")
    check(ds.file_meta.MediaStorageSOPInstanceUID == ds.SOPInstanceUID, "meta header")
    check(ds.file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.1", "transfer syntax")
    check(ds.SeriesInstanceUID not in {s.SeriesInstanceUID for s in sources}, "the source's series")
    check(ds.SOPInstanceUID not in {s.SOPInstanceUID for s in sources}, "a source's UID")
    for keyword in ("StudyInstanceUID", "PatientID", "PatientName", "PatientBirthDate", "AccessionNumber",
                    "FrameOfReferenceUID", "StudyDate"):
        check(ds.get(keyword) == sources[0].get(keyword),
              f"{keyword} {ds.get(keyword)}, source {sources[0].get(keyword)}")
    check(list(ds.ImageType) == ["DERIVED", "PRIMARY", "TOMOSYNTHESIS", "NONE"], f"image type {ds.ImageType}")
    check(ds.ContentQualification == "RESEARCH", "content qualification")
    check("FrameOfReferenceUID" in ds and ds.FrameOfReferenceUID, "no frame of reference")


def check_derivation(ds, sources, check):
    """Derived with a derivation, and every reference leads to an object that is there."""
    derivation = ds.SharedFunctionalGroupsSequence[0].DerivationImageSequence[0]
    check(derivation.DerivationDescription and derivation.DerivationCodeSequence, "no derivation")
    wanted = {(s.SOPClassUID, s.SOPInstanceUID) for s in sources}
    given = [(i.ReferencedSOPClassUID, i.ReferencedSOPInstanceUID) for i in derivation.SourceImageSequence]
    check(set(given) == wanted and len(given) == len(wanted),
          f"{len(given)} source references for {len(wanted)} objects")
    check({code(i.PurposeOfReferenceCodeSequence) for i in derivation.SourceImageSequence} == {("121322", "DCM")},
          "purpose")
    series = ds.ReferencedSeriesSequence[0]
    check(series.SeriesInstanceUID == sources[0].SeriesInstanceUID, "referenced series")
    check({(i.ReferencedSOPClassUID, i.ReferencedSOPInstanceUID) for i in series.ReferencedInstanceSequence} == wanted,
          "referenced instances")


def check_planes(ds, truth, orientation, check):
    """Equally spaced along the normal, at the slice spacing, indices complete, and lying as the source lay."""
    shared, frames = ds.SharedFunctionalGroupsSequence[0], ds.PerFrameFunctionalGroupsSequence
    measures = shared.PixelMeasuresSequence[0]
    cosines = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float)
    positions = np.array([f.PlanePositionSequence[0].ImagePositionPatient for f in frames], float)
    normal = np.cross(cosines[:3], cosines[3:])
    check(abs(np.linalg.norm(cosines[:3]) - 1) < 1e-5 and abs(np.linalg.norm(cosines[3:]) - 1) < 1e-5,
          f"cosines {cosines}")
    check(abs(cosines[:3] @ cosines[3:]) < 1e-5, "directions are not at right angles")
    steps = np.diff(positions, axis=0)
    check(np.allclose(abs(steps @ normal), measures.SpacingBetweenSlices, atol=1e-3), f"steps {abs(steps @ normal)}")
    check(np.allclose(steps, steps[0], atol=1e-3), "positions are not equally spaced")
    check(ds.NumberOfFrames == len(frames), f"{ds.NumberOfFrames} frames, {len(frames)} groups")
    values = [tuple(f.FrameContentSequence[0].DimensionIndexValues) for f in frames]
    check(values == [(1, k + 1) for k in range(len(frames))], "dimension indices")
    check([f.FrameContentSequence[0].InStackPositionNumber for f in frames] == list(range(1, len(frames) + 1)), "stack")
    organisation = ds.DimensionOrganizationSequence[0].DimensionOrganizationUID
    check(all(d.DimensionOrganizationUID == organisation for d in ds.DimensionIndexSequence), "dimension organisation")
    check(len(ds.DimensionIndexSequence) == 2, "dimensions")
    for d, direction in enumerate(orientation):
        cosine = cosines[3 * d:3 * d + 3] @ np.array(tools.DIRECTION[direction[0]])
        check(cosine > 0.5, f"direction {d} is {cosines[3 * d:3 * d + 3]}, source {direction}")
    axes = tools.scan_axes(truth["side"], truth["view"])
    check(np.allclose(steps[0] @ axes[2], measures.SpacingBetweenSlices, atol=1e-3), "slices do not go toward the tube")
    lowest = positions[0] @ axes[2]
    check(abs(lowest - (truth["support_mm"] + float(measures.SpacingBetweenSlices) / 2)) < 1e-3,
          f"slice 0 lies at {lowest} mm")
    size = np.array(measures.PixelSpacing, float) * (ds.Rows, ds.Columns)
    detector = truth["pixel_mm"] * np.array([truth["rows"], truth["columns"]])
    check(np.all(size <= detector + 1e-6) and np.all(size > detector - np.array(measures.PixelSpacing, float)),
          f"{size} mm")


def check_view(ds, truth, check):
    anatomy = ds.SharedFunctionalGroupsSequence[0].FrameAnatomySequence[0]
    check(anatomy.FrameLaterality == truth["side"], f"laterality {anatomy.FrameLaterality}")
    want = {"CC": ("399162004", "SCT"), "MLO": ("399368009", "SCT")}[truth["view"]]
    check(code(ds.ViewCodeSequence) == want, f"view {code(ds.ViewCodeSequence)}")
    axes = tools.scan_axes(truth["side"], truth["view"])
    cosines = np.array(ds.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0].ImageOrientationPatient, float)
    check(abs(abs(np.cross(cosines[:3], cosines[3:]) @ axes[2]) - 1) < 1e-5,
          f"the planes do not face the tube of a {truth['view']}")


def check_values(ds, check):
    shared = ds.SharedFunctionalGroupsSequence[0]
    check(ds.BitsStored == 16 and ds.HighBit == 15 and ds.PixelRepresentation == 0, "bits")
    check(ds["PixelPaddingValue"].VR == "US" and ds.PixelPaddingValue == 0 and np.mean(ds.pixel_array == 0) > 0.1,
          "the background is no padding")
    check(int(ds.pixel_array.max()) < 2 ** ds.BitsStored, "values above BitsStored")
    check(len(ds.PixelData) == 2 * ds.Rows * ds.Columns * ds.NumberOfFrames, "length of the pixel data")
    transform = shared.PixelValueTransformationSequence[0]
    check((transform.RescaleSlope, transform.RescaleIntercept, transform.RescaleType) == (1, 0, "US"), "rescale")
    mapping = shared.RealWorldValueMappingSequence[0]
    check(code(mapping.MeasurementUnitsCodeSequence) == ("/mm", "UCUM"), "units")
    check((mapping.RealWorldValueFirstValueMapped, mapping.RealWorldValueLastValueMapped) == (0, 65535), "mapped range")
    window = shared.FrameVOILUTSequence[0]
    lo, hi = window.WindowCenter - window.WindowWidth / 2, window.WindowCenter + window.WindowWidth / 2
    inside = np.mean((ds.pixel_array >= lo) & (ds.pixel_array <= hi))
    check(0.03 < inside, f"the window {lo}..{hi} shows {100 * inside:.1f} % of the voxels")


def check_machines(ds, sources, check):
    machines = {code(e.PurposeOfReferenceCodeSequence): e for e in ds.ContributingEquipmentSequence}
    check(set(machines) == {("109101", "DCM"), ("109102", "DCM")}, f"contributing equipment {list(machines)}")
    modality, node = machines[("109101", "DCM")], machines[("109102", "DCM")]
    check(modality.Manufacturer == sources[0].Manufacturer
          and modality.ManufacturerModelName == sources[0].ManufacturerModelName,
          f"{modality.Manufacturer}")
    version = tools.run("--version").stdout.split()[1]
    check(node.SoftwareVersions[0] == version and node.ContributionDateTime, f"{node.SoftwareVersions}")
    recipe = node.ContributionDescription
    check(re.search(r"sha256=[0-9a-f]{64} ", recipe) and "device=" in recipe and "iterations=" in recipe
          and "source_axis=" in recipe,
          f"recipe {recipe}")
    how = ds.XRay3DReconstructionSequence[0]
    check(how.AlgorithmType == "ITERATIVE" and how.ApplicationVersion == version, f"{how.ApplicationVersion}")


def check_acquisition(ds, sources, truth, check):
    acquisition = ds.XRay3DAcquisitionSequence
    index = ds.XRay3DReconstructionSequence[0].AcquisitionIndex
    check(1 <= index <= len(acquisition), f"acquisition index {index} of {len(acquisition)}")
    item = acquisition[0]
    check(item.DistanceSourceToPatient < item.DistanceSourceToDetector, f"SOD {item.DistanceSourceToPatient}")
    check(abs(item.BodyPartThickness - truth["thickness_mm"]) < 1e-3, f"thickness {item.BodyPartThickness}")
    angles = [p.PositionerPrimaryAngle for p in item.PerProjectionAcquisitionSequence]
    frames = sum(int(s.get("NumberOfFrames", 1) or 1) for s in sources)
    check(len(angles) == frames, f"{len(angles)} projections, sources have {frames}")
    check(len(ds.ContributingSourcesSequence) == 1, "contributing sources")


def check_hanging(objects, truth, orientation, check):
    """What workstations hang images by: laterality, view, orientation, frame of reference; frames that no viewer
    splits."""
    code_value = {"CC": "399162004", "MLO": "399368009"}[truth["view"]]
    check(len(objects) == 3 and len({d.FrameOfReferenceUID for d in objects.values()}) == 1, "frames of reference")
    for kind, ds in objects.items():
        check(ds.ViewCodeSequence[0].CodeValue == code_value and ds.Modality == "MG",
              f"{kind}: view {ds.ViewCodeSequence[0].CodeValue}")
        window = ds
        if "PerFrameFunctionalGroupsSequence" not in ds:
            check(ds.ImageLaterality == truth["side"], f"{kind}: laterality {ds.ImageLaterality}")
            check(list(ds.PatientOrientation) == list(orientation),
                  f"{kind}: {ds.PatientOrientation}, source {orientation}")
        else:
            shared, frames = ds.SharedFunctionalGroupsSequence[0], ds.PerFrameFunctionalGroupsSequence
            check(shared.FrameAnatomySequence[0].FrameLaterality == truth["side"], f"{kind}: laterality")
            equal = {(tuple(f.XRay3DFrameTypeSequence[0].FrameType),
                      f.FrameContentSequence[0].get("FrameAcquisitionNumber"),
                      f.FrameContentSequence[0].StackID) for f in frames}
            check(len(equal) == 1 and (tuple(ds.ImageType), 1, "1") in equal, f"{kind}: frames differ: {equal}")
            check(not any("FrameVOILUTSequence" in f for f in frames), f"{kind}: windows of single frames")
            window = shared.FrameVOILUTSequence[0]
        centre, width = float(window.WindowCenter), float(window.WindowWidth)
        check(window.VOILUTFunction == "LINEAR" and centre % 1 == 0 and width % 1 == 0 and centre - width / 2 >= 0
              and centre + width / 2 < 2 ** ds.BitsStored, f"{kind}: window {centre} {width}")


def source_orientation(ds):
    if "PatientOrientation" in ds:
        return list(ds.PatientOrientation)
    for group in (ds.SharedFunctionalGroupsSequence[0], ds.PerFrameFunctionalGroupsSequence[0]):
        if "PatientOrientationInFrameSequence" in group:
            return list(group.PatientOrientationInFrameSequence[0].PatientOrientation)
    return ["?", "?"]


@pytest.mark.parametrize("image_format, side, view, size", CASES)
def test_results_conform(folder, failures, image_format, side, view, size):
    """Slices, slabs and synthetic view; a retry of the first case, and another protocol."""
    def check(ok, text):
        tools.check(ok, text, failures)

    exam, out, again = (os.path.join(folder, n) for n in ("exam", "out", "again"))
    truth = tools.simulate(exam, system="siemens-inspiration", phantom="ellipsoids", binning=8, i0=10000, seed=2,
                           format=image_format, side=side,
                           view=view, **size)
    sources = [pydicom.dcmread(p) for p in sorted(glob.glob(os.path.join(exam, "**", "*.dcm"), recursive=True))]
    settings = ["voxel=0", "slab_thickness=6", "slab_step=4", "synthetic=true"]
    settings += ["synthetic_class=tomosynthesis"] * (image_format == "bp")
    summary, path = tools.reconstruct(out, exam, settings=settings)
    for o in summary["objects"]:
        of_slices = o["sop_class"] == summary["sop_class"]
        for options in ((), ("-profile", "IHEDBT")) if of_slices else ((),):
            lines = [line for line in tools.validator(os.path.join(out, o["file"]), *options) if of_slices
                     or line != tools.KNOWN_MG]
            check(not lines, f"{o['kind']}: dciodvfy {' '.join(options)}: {lines}")
    ds, orientation = pydicom.dcmread(path), source_orientation(sources[0])
    check_identity(ds, sources, check)
    check_derivation(ds, sources, check)
    check_planes(ds, truth, orientation, check)
    check_view(ds, truth, check)
    check_values(ds, check)
    check_machines(ds, sources, check)
    check_acquisition(ds, sources, truth, check)
    check_hanging({o["kind"]: pydicom.dcmread(os.path.join(out, o["file"])) for o in summary["objects"]}, truth,
                  orientation, check)
    if (image_format, side, view) == ("mg", "L", "CC"):
        _, second = tools.reconstruct(again, exam, settings=settings)
        check(pydicom.dcmread(second).SOPInstanceUID == ds.SOPInstanceUID, "a retry has another UID")
        check(os.path.basename(second) == os.path.basename(path), "a retry has another name")
        _, other = tools.reconstruct(again, exam, settings=("voxel=0", "iterations=2"))
        check(pydicom.dcmread(other).SOPInstanceUID != ds.SOPInstanceUID, "another protocol has the same UID")
