# SPDX-License-Identifier: Apache-2.0
"""A series of CT Image Storage objects with given Hounsfield units and a given place in the patient, as a scanner of
PET and CT sends it."""
import os

import numpy as np
import pydicom

from tools.edits import new_object

CT = "1.2.840.10008.5.1.4.1.1.2"
HFS = (1, 0, 0, 0, 1, 0)
INTERCEPT = -1024
PATIENT = {"PatientName": "TOMONODE^PHANTOM", "PatientID": "TOMONODE-PHANTOM", "PatientBirthDate": "19601130",
           "PatientSex": "F"}


def uid_of(*parts):
    """The same UID for the same words."""
    return pydicom.uid.generate_uid(None, entropy_srcs=[str(p) for p in parts])


def write_ct(folder, hu, spacing, origin, orientation=HFS, frame_of_reference=None, study=None, kvp=120, patient=None,
             series=None,
             when=("20260601", "101000"), fov=None, changes=None, intercept=INTERCEPT):
    """Write the series into the folder, an object for each slice; return the paths in the order of slices.

    hu[slice][row][column]: Hounsfield units, rounded to whole numbers from -1024 to 31743. spacing: mm from column to
    column, from row to row, from slice to slice: x, y, z of an HFS series. origin: LPS position (mm) of the centre of
    voxel [0][0][0]. orientation: direction of a row, of a column in LPS; slice k lies k spacing[2] along their cross
    product from the first. frame_of_reference, study, series: UIDs; None: derived from the folder's name. kvp None:
    empty. intercept: Rescale Intercept. patient, changes: attributes by keyword, for all objects; a value of None removes an attribute. when: date
    and time of the acquisition. fov: Reconstruction Diameter, mm."""
    hu = np.asarray(hu)
    name = os.path.basename(os.path.normpath(folder))
    study, frame = study or uid_of(name, "study"), frame_of_reference or uid_of(name, "frame")
    series = series or uid_of(name, study, frame, "series")
    cosines = np.array(orientation, float)
    normal = np.cross(cosines[:3], cosines[3:])
    stored = np.clip(np.rint(hu) - intercept, 0, 32767).astype("<u2")
    os.makedirs(folder, exist_ok=True)
    paths = []
    for k, plane in enumerate(stored):
        at = np.array(origin, float) + k * spacing[2] * normal
        ds = new_object(CT, uid_of(series, k))
        for keyword, value in {**PATIENT, **(patient or {})}.items():
            setattr(ds, keyword, value)
        ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = study, series, frame
        ds.StudyID, ds.AccessionNumber, ds.ReferringPhysicianName, ds.PositionReferenceIndicator = "2", "SIM2", "", ""
        ds.StudyDate = ds.SeriesDate = ds.AcquisitionDate = ds.ContentDate = when[0]
        ds.StudyTime = ds.SeriesTime = ds.AcquisitionTime = ds.ContentTime = when[1]
        ds.Modality, ds.Manufacturer, ds.SeriesNumber, ds.SeriesDescription = "CT", "tomonode", 2, "CT of a phantom"
        ds.BodyPartExamined, ds.PatientPosition, ds.ImageType = "ABDOMEN", "HFS", ["ORIGINAL", "PRIMARY", "AXIAL"]
        ds.AcquisitionNumber, ds.InstanceNumber = 1, k + 1
        ds.KVP = "" if kvp is None else kvp
        if fov:
            ds.ReconstructionDiameter = fov
        ds.ImageOrientationPatient = [f"{v:.10g}" for v in cosines]
        ds.ImagePositionPatient = [f"{v:.10g}" for v in at]
        ds.SliceLocation, ds.SliceThickness = f"{at @ normal:.10g}", f"{spacing[2]:.10g}"
        ds.PixelSpacing = [f"{v:.10g}" for v in (spacing[1], spacing[0])]
        ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.Rows, ds.Columns = 1, "MONOCHROME2", *plane.shape
        ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 0
        ds.RescaleSlope, ds.RescaleIntercept, ds.RescaleType = 1, intercept, "HU"
        ds.PixelData = plane.tobytes()
        for keyword, value in (changes or {}).items():
            if value is None:
                delattr(ds, keyword)
            else:
                setattr(ds, keyword, value)
        paths.append(os.path.join(folder, f"ct-{k:04d}.dcm"))
        ds.save_as(paths[-1], write_like_original=False)
    return paths
