# SPDX-License-Identifier: Apache-2.0
"""A tomosynthesis exam that shares no code with this project: line integrals, tags and signs are made here with numpy
and pydicom, out of the definitions of PS3.3.

The scan axes never appear in what is written: beads are placed in the patient (LPS), the machine is placed in the
patient, and stored pixels are given directions (A, P, L, R, H, F)."""
import math
import os

import numpy as np
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from pydicom.uid import generate_uid

from tools import dbt_tools as tools
from tools.edits import new_object

AXIS, ARM, SUPPORT, PITCH = 47.0, 608.5, 17.0, 0.34  # the Siemens system of the profile, its detector binned by 4
NX, NY, THICKNESS, I0 = 352, 448, 30.0, 60000.0
ANGLES = [-24.3, -19.1, -13.2, -7.9, -2.2, 3.1, 8.4, 14.6, 19.2, 25.1]  # not even, not symmetric


def beads(axes):
    """Places in the patient, and radius: no symmetry in any direction."""
    places = [(22.0, -31.0, 25.3), (48.0, 12.0, 38.1), (75.0, 41.0, 30.6), (95.0, -20.0, 42.0), (60.0, -52.0, 21.7)]
    return [(p[0] * axes[0] + p[1] * axes[1] + p[2] * axes[2], 1.2) for p in places]


def line_integrals(source, pixels, origin, axes, spots):
    """From the source to each pixel, all in the patient: a plate of 0.05/mm, and spheres of 0.6/mm more."""
    d = pixels - source
    length = np.linalg.norm(d, axis=-1)
    unit = d / length[..., None]
    # the plate fills support .. support + thickness over the whole detector: the path in it is its height over the
    # cosine
    height = abs(unit @ axes[2])
    line = 0.05 * THICKNESS / height
    for centre, radius in spots:
        along = ((centre - source) * unit).sum(-1)
        off2 = ((centre - source) ** 2).sum() - along ** 2
        line += 0.6 * 2 * np.sqrt(np.clip(radius ** 2 - off2, 0, None))
    return line


def letters(vector):
    """The direction's letters, the largest component first."""
    names = (("L", "R"), ("P", "A"), ("H", "F"))
    order = sorted(range(3), key=lambda a: -round(abs(vector[a]), 6) - (0.001 if a == 2 else 0))
    return "".join(names[a][0 if vector[a] > 0 else 1] for a in order if abs(vector[a]) > 0.1)


def write(folder, side, view, column_way, row_way, gantry, multi, shape=(NX, NY)):
    """Images of shape columns and rows; columns run along column_way * anterior and rows along row_way * y."""
    nx, ny = shape
    axes = tools.scan_axes(side, view, gantry)
    origin = np.zeros(3)  # the frame of reference starts in the middle of the detector's chest-wall edge
    spots = beads(axes)
    u = np.arange(nx) if column_way > 0 else np.arange(nx)[::-1]
    v = np.arange(ny) if row_way > 0 else np.arange(ny)[::-1]
    x = (u + 0.5) * PITCH
    y = (v + 0.5 - ny / 2) * PITCH
    pixels = origin + x[None, :, None] * axes[0] + y[:, None, None] * axes[1]
    frames = []
    for angle in ANGLES:
        a = math.radians(angle)
        source = origin + (AXIS + ARM * math.cos(a)) * axes[2] + ARM * math.sin(a) * axes[1]
        frames.append(np.rint(I0 * np.exp(-line_integrals(source, pixels, origin, axes, spots))).astype(np.uint16))
    common = Dataset()
    common.Modality = "MG"
    common.Manufacturer, common.ManufacturerModelName = "SIEMENS", "MAMMOMAT Inspiration"
    common.PatientName, common.PatientID = "TEST^PYTHON", "1"
    for keyword in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
        setattr(common, keyword, generate_uid())
    common.ImagerPixelSpacing = [PITCH, PITCH]
    common.BodyPartThickness = THICKNESS
    common.SamplesPerPixel, common.PhotometricInterpretation = 1, "MONOCHROME1"
    common.Rows, common.Columns, common.BitsAllocated, common.BitsStored = ny, nx, 16, 16
    common.HighBit, common.PixelRepresentation = 15, 0
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = ("399162004" if view == "CC"
                                                                     else "399368009"), "SCT", view
    common.ViewCodeSequence = Sequence([code])
    orientation = [letters(column_way * axes[0]), letters(row_way * axes[1])]
    if multi:
        write_multi(folder, common, frames, side, view, orientation, gantry)
    else:
        write_series(folder, common, frames, side, orientation)
    return axes, spots


def complete(ds, i):
    """What a modality with a complete header writes: then the result must satisfy dciodvfy and the IHE DBT profile."""
    for keyword, value in {
        "PatientBirthDate": "19601130", "PatientSex": "F", "StudyDate": "20260601", "StudyTime": "101500",
        "AccessionNumber": "A1",
        "ReferringPhysicianName": "", "StudyID": "S1", "OperatorsName": "OPERATOR^ONE", "InstitutionName": "Hospital",
        "InstitutionAddress": "Street 1", "StationName": "MG1", "DeviceSerialNumber": "4711", "SoftwareVersions": "V1",
        "BreastImplantPresent": "NO", "PartialView": "NO", "DetectorType": "DIRECT", "DetectorID": "D1",
        "DateOfLastDetectorCalibration": "20260101", "TimeOfLastDetectorCalibration": "080000",
        "DetectorElementSpacing": [PITCH, PITCH],
        "AnodeTargetMaterial": "TUNGSTEN", "ExposureControlMode": "AUTOMATIC",
        "ExposureControlModeDescription": "pre-exposure",
        "HalfValueLayer": "0.55", "FocalSpots": "0.3", "DetectorTemperature": "30", "FilterType": "FLAT",
        "FilterMaterial": "RHODIUM",
        "CompressionForce": "100", "PaddleDescription": "flat", "FieldOfViewOrigin": ["0", "0"],
        "FieldOfViewRotation": "0",
        "FieldOfViewHorizontalFlip": "NO", "AcquisitionDate": "20260601", "AcquisitionTime": f"1020{i:02}",
        "ExposureTime": "50",
        "ExposureInuAs": "4200", "RelativeXRayExposure": "400", "OrganDose": "0.002", "EntranceDoseInmGy": "0.5",
        "KVP": "30",
        "DistanceSourceToDetector": AXIS + ARM, "DistanceSourceToPatient": AXIS + ARM - SUPPORT,
        "EstimatedRadiographicMagnificationFactor": 1.05, "ImagesInAcquisition": len(ANGLES),
    }.items():
        setattr(ds, keyword, value)


def save(ds, sop_class, path):
    whole = new_object(sop_class)
    ds.update(whole)  # its own UIDs
    whole.update(ds)
    whole.save_as(path, write_like_original=False)


def write_series(folder, common, frames, side, orientation):
    order = [3, 0, 7, 1, 9, 5, 2, 8, 4, 6]  # names and instance numbers tell nothing about angles
    for number, i in enumerate(order):
        ds = Dataset()
        ds.update(common)
        ds.ImageLaterality, ds.PatientOrientation = side, orientation
        ds.PositionerPrimaryAngle = ANGLES[i]
        ds.InstanceNumber = number + 7
        ds.PixelIntensityRelationship, ds.PixelIntensityRelationshipSign = "LIN", 1
        complete(ds, i)
        ds.PixelData = frames[i].tobytes()
        save(ds, "1.2.840.10008.5.1.4.1.1.1.2.1", os.path.join(folder, f"{number}.dcm"))


def write_multi(folder, common, frames, side, view, orientation, gantry):
    """PS3.3 C.8.31.6: the isocenter system has Y from the patient into the machine (anterior), Z up (head), X = Y x Z
    to the patient's right; angles are positive from Z toward X."""
    axes = tools.scan_axes(side, view, gantry)
    right = np.cross((0.0, -1.0, 0.0), (0.0, 0.0, 1.0))
    assert np.allclose(right, (-1.0, 0.0, 0.0))

    def tilt(vector):
        return math.degrees(math.atan2(vector @ right, vector[2]))

    ds = Dataset()
    ds.update(common)
    ds.NumberOfFrames = len(frames)
    shared = Dataset()
    anatomy, lie = Dataset(), Dataset()
    anatomy.FrameLaterality, lie.PatientOrientation = side, orientation
    shared.FrameAnatomySequence, shared.PatientOrientationInFrameSequence = Sequence([anatomy]), Sequence([lie])
    ds.SharedFunctionalGroupsSequence = Sequence([shared])
    ds.PerFrameFunctionalGroupsSequence = Sequence()
    for angle in ANGLES:
        a = math.radians(angle)
        group, system, pixels = Dataset(), Dataset(), Dataset()
        system.XRaySourceIsocenterPrimaryAngle = tilt(math.cos(a) * axes[2] + math.sin(a) * axes[1])
        system.XRaySourceIsocenterSecondaryAngle = 0.0
        system.BreastSupportIsocenterPrimaryAngle = tilt(axes[2])
        system.BreastSupportIsocenterSecondaryAngle = 0.0
        pixels.PixelIntensityRelationship, pixels.PixelIntensityRelationshipSign = "LIN", 1
        group.IsocenterReferenceSystemSequence = Sequence([system])
        group.FramePixelDataPropertiesSequence = Sequence([pixels])
        ds.PerFrameFunctionalGroupsSequence.append(group)
    ds.PixelData = b"".join(f.tobytes() for f in frames)
    save(ds, "1.2.840.10008.5.1.4.1.1.13.1.5", os.path.join(folder, "exam.dcm"))


CONFIG = """profiles = ( { name = "siemens-inspiration"; manufacturer = "SIEMENS*"; model = "*Inspiration*";
  axis_height = 47.0; source_axis = 608.5; support = 17.0; pitch = 0.085; elements_x = 0; elements_y = 0;
  i0_mode = "fixed"; i0 = 60000.0; } );
"""
