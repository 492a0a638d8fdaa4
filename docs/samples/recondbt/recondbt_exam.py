#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write the example projections of DIDSR/ReconDBT as DICOM objects (Digital Mammography X-Ray Image For Processing).

    recondbt_exam.py proj.npz -o FOLDER

proj.npz has `proj`, counts of 615 (along the source's travel) x 170 (away from the chest wall) bins of 0.4 mm in 7 views, and `i0`, the
count of the open beam. The profile is recondbt.conf."""
import argparse
import os

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

ANGLES = np.linspace(-15, 15, 7)
FOR_PROCESSING = "1.2.840.10008.5.1.4.1.1.1.2.1"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("projections")
    options.add_argument("-o", required=True, metavar="FOLDER", dest="folder")
    options = options.parse_args()
    with np.load(options.projections) as data:
        counts, i0 = data["proj"], float(data["i0"])
    uids = {name: generate_uid(entropy_srcs=["ReconDBT", name]) for name in ("study", "series", "frame")}
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "399162004", "SCT", "cranio-caudal"
    os.makedirs(options.folder, exist_ok=True)
    for number, angle in enumerate(ANGLES):
        ds = Dataset()
        ds.SOPClassUID = FOR_PROCESSING
        ds.SOPInstanceUID = generate_uid(entropy_srcs=["ReconDBT", str(number)])
        ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = uids["study"], uids["series"], uids["frame"]
        ds.StudyDate, ds.StudyTime = "20200101", "120000"
        ds.Modality, ds.Manufacturer, ds.ManufacturerModelName = "MG", "DIDSR", "ReconDBT"
        ds.PatientName, ds.PatientID, ds.StudyDescription = "PHANTOM^RECONDBT", "RECONDBT", "Example of ReconDBT (FDA, public domain)"
        ds.ImagerPixelSpacing, ds.BodyPartThickness = [0.4, 0.4], 50
        ds.Rows, ds.Columns = counts.shape[:2]
        ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME1"
        ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 0
        ds.PixelIntensityRelationship, ds.PixelIntensityRelationshipSign = "LIN", 1
        ds.ViewCodeSequence = Sequence([code])
        ds.ImageLaterality, ds.PatientOrientation = "L", ["A", "R"]
        ds.PositionerPrimaryAngle, ds.InstanceNumber, ds.ImagesInAcquisition = f"{angle:g}", number + 1, len(ANGLES)
        ds.DistanceSourceToDetector, ds.DistanceSourceToPatient = 650, 650
        ds.PixelData = np.ascontiguousarray(counts[:, :, number]).astype("<u2").tobytes()
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = ds.SOPClassUID, ds.SOPInstanceUID
        meta.TransferSyntaxUID, meta.ImplementationClassUID = ExplicitVRLittleEndian, generate_uid(entropy_srcs=["tomonode sample"])
        ds.file_meta, ds.is_little_endian, ds.is_implicit_VR = meta, True, False
        pydicom.dcmwrite(os.path.join(options.folder, f"{number + 1}.dcm"), ds, write_like_original=False)
    print(f"{len(ANGLES)} projections in {options.folder}; open beam {i0:g}")


if __name__ == "__main__":
    main()
