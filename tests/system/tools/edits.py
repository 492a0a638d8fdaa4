# SPDX-License-Identifier: Apache-2.0
"""DICOM files: new ones, and copies with other values."""
import glob
import os

import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, generate_uid


def new_object(sop_class, uid=None, syntax=ExplicitVRLittleEndian):
    """A data set that can be saved as a file, with nothing else in it. uid: of the instance; None: a new one."""
    d = Dataset()
    d.file_meta = FileMetaDataset()
    d.file_meta.TransferSyntaxUID = syntax
    d.is_little_endian, d.is_implicit_VR = True, syntax == ImplicitVRLittleEndian
    d.SOPClassUID = d.file_meta.MediaStorageSOPClassUID = sop_class
    d.SOPInstanceUID = d.file_meta.MediaStorageSOPInstanceUID = uid or generate_uid()
    return d


def edited(source, target, change=None, **elements):
    """A copy of a file, changed by change(data set), with these values of elements: its path."""
    d = pydicom.dcmread(source)
    if change:
        change(d)
    for name, value in elements.items():
        setattr(d, name, value)
    d.file_meta.MediaStorageSOPClassUID, d.file_meta.MediaStorageSOPInstanceUID = d.SOPClassUID, d.SOPInstanceUID
    d.save_as(target)
    return target


def edited_all(sources, folder, change=None, **elements):
    """The same of files, or of the DICOM files of a folder, under their names, which may be where they are: the paths."""
    if isinstance(sources, str):
        sources = sorted(glob.glob(os.path.join(sources, "*.dcm")))
    os.makedirs(folder, exist_ok=True)
    return [edited(f, os.path.join(folder, os.path.basename(f)), change, **elements) for f in sources]
