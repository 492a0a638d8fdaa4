#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a sinogram object of PET (docs/sinogram-object.md): emission.dcm, 47 planes of 280 x 329 bins of noise.
Needs pydicom and numpy."""
import hashlib

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset

y = np.random.default_rng(1).poisson(20, (47, 280, 329)).astype("<f4")  # plane, angle, radial bin
header = """!INTERFILE :=
name of data file := emission.s
imagedata byte order := LITTLEENDIAN
!PET data type := Emission
applied corrections := {arc correction}
!number format := float
!number of bytes per pixel := 4
number of dimensions := 4
matrix axis label [4] := segment
!matrix size [4] := 1
matrix axis label [3] := axial coordinate
!matrix size [3] := {47}
matrix axis label [2] := view
!matrix size [2] := 280
matrix axis label [1] := tangential coordinate
!matrix size [1] := 329
minimum ring difference per segment := {-1}
maximum ring difference per segment := {1}
Number of rings := 24
Number of detectors per ring := 560
Inner ring diameter (cm) := 88.62
Average depth of interaction (cm) := 0.84
Distance between rings (cm) := 0.654
effective central bin size (cm) := 0.2397
!END OF INTERFILE :=
"""
ds = Dataset()
ds.file_meta = FileMetaDataset()
ds.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
ds.is_little_endian, ds.is_implicit_VR = True, False
ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.66"
ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid(None)
ds.CreatorVersionUID = "2.25.187423086190561735112968317458421907734"
ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex = "PHANTOM^IQ", "IQ-1", "", ""
ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = (pydicom.uid.generate_uid(None) for _ in range(3))
ds.StudyDate, ds.StudyTime, ds.StudyID = "20260601", "100000", "1"
ds.AccessionNumber, ds.ReferringPhysicianName = "", ""
ds.Modality, ds.SeriesNumber, ds.InstanceNumber, ds.Manufacturer, ds.BodyPartExamined = "PT", 1, 1, "", "WHOLEBODY"
ds.PositionReferenceIndicator, ds.AcquisitionContextSequence = "", []
ds.ContentDate, ds.ContentTime, ds.AcquisitionDate, ds.AcquisitionTime = "20260601", "102000", "20260601", "101500"
ds.PatientPosition, ds.ActualFrameDuration, ds.PatientWeight = "HFS", 600000, 70
data = y.tobytes()
block = ds.private_block(0x0071, "TOMONODE SINOGRAM 1", create=True)
elements = (
    (0x01, "LO", "INTERFILE_3.3"), (0x02, "UT", header), (0x03, "CS", "EMISSION"), (0x10, "OB", data), (0x11, "UL", 0),
    (0x12, "UL", 1), (0x13, "UL", len(data)), (0x14, "LO", hashlib.sha256(data).hexdigest()), (0x15, "UL", 1))
for element, vr, value in elements:
    block.add_new(element, vr, value)
ds.save_as("emission.dcm", write_like_original=False)
