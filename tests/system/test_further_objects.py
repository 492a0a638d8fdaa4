# SPDX-License-Identifier: Apache-2.0
"""Slabs and synthetic view against the standard and the truth: dciodvfy, places of frames and beads, orientation,
values, references; JPEG-LS objects bit by bit; objects of 12 bits."""
import glob
import os
import subprocess

import numpy as np
import pydicom
import pytest

from tools import dbt_tools as tools
from tools import node_harness as h

h.need("dciodvfy", "dcmdjpls", "dcmcrle")

BTO, MG = "1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.5.1.4.1.1.1.2"
SLAB_MM, STEP_MM = 6.0, 3.0


def recon(out, exam, *settings):
    case, _ = tools.reconstruct(out, exam, settings=settings)
    return {o["kind"]: (o, pydicom.dcmread(os.path.join(out, o["file"]))) for o in case["objects"]}, out


def check_validator(objects, out, check, what=""):
    for kind in ("slices", "slabs"):
        path = os.path.join(out, objects[kind][0]["file"])
        for options in ((), ("-profile", "IHEDBT")):
            lines = tools.validator(path, *options)
            check(not lines, f"{kind} {what}: dciodvfy {options}: {lines}")
    lines = [line for line in tools.validator(os.path.join(out, objects["synthetic"][0]["file"]))
             if line != tools.KNOWN_MG]
    check(not lines, f"view {what}: dciodvfy: {lines}")


def references(ds):
    """(class, instance) of all images that Referenced Series names, by series."""
    return {s.SeriesInstanceUID: {(i.ReferencedSOPClassUID, i.ReferencedSOPInstanceUID)
                                  for i in s.ReferencedInstanceSequence}
            for s in ds.ReferencedSeriesSequence}


def check_identity(objects, sources, check):
    slices = objects["slices"][1]
    wanted = {(s.SOPClassUID, s.SOPInstanceUID) for s in sources}
    check(len({ds.SeriesInstanceUID for _, ds in objects.values()}) == 3
          and len({ds.SOPInstanceUID for _, ds in objects.values()}) == 3,
          "UIDs")
    for kind, sop_class in (("slabs", BTO), ("synthetic", MG)):
        ds = objects[kind][1]
        check(ds.SOPClassUID == sop_class, f"{kind}: {ds.SOPClassUID}")
        for keyword in ("StudyInstanceUID", "PatientID", "PatientName", "AccessionNumber", "StudyDate"):
            check(ds.get(keyword) == slices.get(keyword), f"{kind}: {keyword}")
        check(references(ds) == {sources[0].SeriesInstanceUID: wanted,
                                 slices.SeriesInstanceUID: {(slices.SOPClassUID, slices.SOPInstanceUID)}},
              f"{kind}: references")
        check(ds.ContentQualification == "RESEARCH" and ds.LossyImageCompression == "00", f"{kind}: qualification")
    view = objects["synthetic"][1]
    given = {(i.ReferencedSOPClassUID, i.ReferencedSOPInstanceUID) for i in view.SourceImageSequence}
    check(given == wanted | {(slices.SOPClassUID, slices.SOPInstanceUID)}, "sources of the view")
    check(list(view.ImageType) == ["DERIVED", "PRIMARY", "TOMOSYNTHESIS", "GENERATED_2D"], f"{view.ImageType}")
    check(view.PresentationIntentType == "FOR PRESENTATION" and "DerivationDescription" in view, "view")


def planes(ds):
    shared = ds.SharedFunctionalGroupsSequence[0]
    cosines = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float)
    positions = np.array([f.PlanePositionSequence[0].ImagePositionPatient for f in ds.PerFrameFunctionalGroupsSequence],
                         float)
    thickness = [float((shared if "PixelMeasuresSequence" in shared else f).PixelMeasuresSequence[0].SliceThickness)
                 for f in ds.PerFrameFunctionalGroupsSequence]
    return cosines, positions, np.array(thickness)


def stored_mean_or_max(slices, low, high, maximum):
    part = slices.pixel_array[low:high].astype(float)
    return part.max(axis=0) if maximum else part.mean(axis=0)


def check_slabs(objects, truth, maximum, check):
    """Each slab lies where its slices lie, and shows what they show."""
    slices, slabs = objects["slices"][1], objects["slabs"][1]
    axes = tools.scan_axes(truth["side"], truth["view"])
    cosines, positions, _ = planes(slices)
    slab_cosines, slab_positions, thickness = planes(slabs)
    check(np.allclose(cosines, slab_cosines), f"orientation of slabs {slab_cosines}")
    z, slab_z = positions @ axes[2], slab_positions @ axes[2]
    check(np.allclose((slab_positions - positions[0]) @ axes[:2].T, 0, atol=1e-3), "slabs lie beside the slices")
    check(np.all(np.diff(slab_z) > 0) and np.allclose(np.diff(slab_z)[:-1], STEP_MM, atol=1e-3), f"slabs at {slab_z}")
    check(np.isclose(thickness[0], SLAB_MM) and thickness.max() <= SLAB_MM + 1e-6, f"{thickness}")
    check(np.isclose(slab_z[0] - thickness[0] / 2, truth["support_mm"], atol=1e-3),
          "the lowest slab begins at the support")
    check(slab_z[-1] + thickness[-1] / 2 >= z[-1], "the uppermost slice is in no slab")
    pixels = slabs.pixel_array
    for k in range(len(slab_z)):
        inside = np.flatnonzero(abs(z - slab_z[k]) < thickness[k] / 2)
        want = stored_mean_or_max(slices, inside[0], inside[-1] + 1, maximum)
        # the slices are rounded to steps before they are averaged here, the slab after
        # what lies outside of 16 bits is cut in the slices, not in their mean
        cut = slices.pixel_array[inside[0]:inside[-1] + 1]
        whole = (maximum | ((cut > 0) & (cut < 65535)).all(axis=0))
        check(abs(pixels[k] - want)[whole].max() <= 1.01 and whole.mean() > 0.3,
              f"slab {k} differs by {abs(pixels[k] - want)[whole].max()} steps")
    frame_type = slabs.PerFrameFunctionalGroupsSequence[0].XRay3DFrameTypeSequence[0]
    check(frame_type.VolumetricProperties == slabs.VolumetricProperties == "SAMPLED", f"{slabs.VolumetricProperties}")
    how = "MAX_IP" if maximum else "TOMOSYNTHESIS"
    check(frame_type.VolumeBasedCalculationTechnique == slabs.VolumeBasedCalculationTechnique == how,
          f"{slabs.VolumeBasedCalculationTechnique}")


def spot(image, row, column, radius):
    """Centre of the bright spot within `radius` pixels of a place, and how far it stands out of its surroundings in
    their spread."""
    r0, c0 = round(row), round(column)
    w = 3 * radius
    box = image[max(r0 - w, 0):r0 + w + 1, max(c0 - w, 0):c0 + w + 1].astype(float)
    rr, cc = np.mgrid[0:box.shape[0], 0:box.shape[1]]
    rr, cc = rr + max(r0 - w, 0), cc + max(c0 - w, 0)
    near = (rr - row) ** 2 + (cc - column) ** 2 <= (radius + 1) ** 2
    ground = np.median(box[~near])
    weight = np.clip(box - ground - (box[near].max() - ground) / 3, 0, None) * near
    contrast = (box[near].max() - ground) / (box[~near].std() + 1e-9)
    return (weight * rr).sum() / weight.sum(), (weight * cc).sum() / weight.sum(), contrast


def check_beads(objects, truth, check):
    """In the slab that holds it, and in the view, each bead lies at the column and row of the truth: as in the source's
    images."""
    slabs, view = objects["slabs"][1], objects["synthetic"][1]
    axes = tools.scan_axes(truth["side"], truth["view"])
    _, slab_positions, thickness = planes(slabs)
    slab_z = slab_positions @ axes[2]
    pixels, flat = slabs.pixel_array, view.pixel_array
    pitch, worst = truth["pixel_mm"], [0.0, 0.0]
    for s in (s for s in truth["shapes"] if s["role"] == "bead"):
        radius = max(2, round(2 * s["half_axes_mm"][0] / pitch))
        k = int(np.argmin(abs(slab_z - s["center_mm"][2])))
        for i, image in enumerate((pixels[k], flat)):
            row, column, contrast = spot(image, s["row"], s["column"], radius)
            off = np.hypot(row - s["row"], column - s["column"]) * pitch
            worst[i] = max(worst[i], off)
            check(off < 0.35 and contrast > 3,
                  f"{('slab', 'view')[i]}: bead {s['center_mm']} is off by {off:.2f} mm, contrast {contrast:.1f}")
    check(abs(slab_z - truth["support_mm"]).min() <= thickness[0], "slabs")
    return worst


def check_view(objects, sources, check):
    slices, view = objects["slices"][1], objects["synthetic"][1]
    check((view.Rows, view.Columns) == (slices.Rows, slices.Columns), f"{view.Rows} x {view.Columns}")
    measures = slices.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]
    check(list(view.ImagerPixelSpacing) == list(measures.PixelSpacing) == list(view.PixelSpacing),
          "spacing of the view")
    if "PatientOrientation" in sources[0]:
        check(list(view.PatientOrientation) == list(sources[0].PatientOrientation), f"{view.PatientOrientation}")
    check(view.ImageLaterality == slices.SharedFunctionalGroupsSequence[0].FrameAnatomySequence[0].FrameLaterality,
          "laterality")
    check(view.ViewCodeSequence[0].CodeValue == slices.ViewCodeSequence[0].CodeValue, "view code")
    for keyword in ("OrganDose", "EntranceDoseInmGy", "Exposure", "ExposureInmAs"):
        check(keyword not in view, f"the view claims {keyword}")
    check(all(o.PixelPaddingValue == 0 for _, o in objects.values()), "the background is no padding")
    mapping = view.RealWorldValueMappingSequence[0]
    of_slices = slices.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    integral = (slices.pixel_array.astype(float) * of_slices.RealWorldValueSlope
                + of_slices.RealWorldValueIntercept).sum(axis=0)
    integral *= float(measures.SpacingBetweenSlices)
    shown = view.pixel_array * float(mapping.RealWorldValueSlope) + mapping.RealWorldValueIntercept
    # what is not fine detail is the integral; detail adds, never takes away
    check(abs(np.median(shown - integral)) < 0.01 and (shown - integral).min() > -0.01, "values of the view")
    lo, hi = view.WindowCenter - view.WindowWidth / 2, view.WindowCenter + view.WindowWidth / 2
    check(np.mean((view.pixel_array >= lo) & (view.pixel_array <= hi)) > 0.03, f"window {lo}..{hi}")


def check_scale(objects, exam, folder, check):
    """Another scale: other values and UIDs, the same attenuation."""
    other, out = recon(os.path.join(folder, "scale"), exam, "voxel=0", "stored_offset=-0.02", "stored_step=4e-5")
    ds, plain = other["slices"][1], objects["slices"][1]
    a, b = (d.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0] for d in (plain, ds))
    check((b.RealWorldValueIntercept, b.RealWorldValueSlope) == (-0.02, 4e-5),
          f"{b.RealWorldValueIntercept}, {b.RealWorldValueSlope}")
    check(ds.SOPInstanceUID != plain.SOPInstanceUID and ds.SeriesInstanceUID != plain.SeriesInstanceUID,
          "UIDs of another scale")
    mu = [d.pixel_array * float(m.RealWorldValueSlope) + m.RealWorldValueIntercept for d, m in ((plain, a), (ds, b))]
    whole = plain.pixel_array < 65535
    check(abs(mu[0] - mu[1])[whole].max() <= 3.01e-5 and mu[0][whole].max() > 0.01,
          f"{abs(mu[0] - mu[1])[whole].max()} / mm apart")
    for options in ((), ("-profile", "IHEDBT")):
        lines = tools.validator(os.path.join(out, other["slices"][0]["file"]), *options)
        check(not lines, f"scale: dciodvfy {options}: {lines}")


def check_bits(objects, exam, folder, settings, check):
    """12 bits: the same attenuation to half a step, none clipped; other programs code and decode them without loss."""
    case, again = os.path.join(folder, "bits"), os.path.join(folder, "again.dcm")
    few, _ = recon(case, exam, *settings, "stored_bits=12", "compression=jpeg-ls")
    for kind, (o, ds) in few.items():
        plain = objects[kind][1]
        subprocess.run(["dcmdjpls", os.path.join(case, o["file"]), again], check=True)
        pixels = pydicom.dcmread(again).pixel_array
        subprocess.run(["dcmcrle", again, again + ".rle"], check=True)  # as archives do
        subprocess.run(["dcmdrle", again + ".rle", again], check=True)
        check(np.array_equal(pydicom.dcmread(again).pixel_array, pixels), f"{kind}: RLE changes it")
        check((ds.BitsAllocated, ds.BitsStored, ds.HighBit) == (16, 12, 11) and pixels.max() <= 4095,
              f"{kind}: {ds.BitsStored} bits")
        a, b = ((d if kind == "synthetic" else d.SharedFunctionalGroupsSequence[0]).RealWorldValueMappingSequence[0]
                for d in (plain, ds))
        check(b.RealWorldValueLastValueMapped == 4095, f"{kind}: mapped to {b.RealWorldValueLastValueMapped}")
        off = abs(pixels * float(b.RealWorldValueSlope) - plain.pixel_array * float(a.RealWorldValueSlope))
        off = off[plain.pixel_array < 65535].max()
        check(off <= 0.51 * (a.RealWorldValueSlope + b.RealWorldValueSlope),
              f"{kind}: off by {off}, step {b.RealWorldValueSlope}")
        check(o["sop_instance"] != objects[kind][0]["sop_instance"], f"{kind}: the UID of 16 bits")
    check_validator(few, case, check, "of 12 bits")


def check_compressed(objects, exam, folder, settings, check):
    """The same objects as JPEG-LS: UIDs and pixels are those of the plain ones, and DCMTK decodes them."""
    packed, out = recon(os.path.join(folder, "jls"), exam, *settings, "compression=jpeg-ls")
    for kind, (o, ds) in packed.items():
        check(ds.file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.4.80", f"{kind}: {ds.file_meta.TransferSyntaxUID}")
        check(o["sop_instance"] == objects[kind][0]["sop_instance"], f"{kind}: another UID")
        check(o["bytes"] < objects[kind][0]["bytes"],
              f"{kind}: {o['bytes']} bytes compressed, {objects[kind][0]['bytes']} plain")
        plain = os.path.join(folder, f"{kind}.dcm")
        subprocess.run(["dcmdjpls", os.path.join(out, o["file"]), plain], check=True)
        check(np.array_equal(pydicom.dcmread(plain).pixel_array, objects[kind][1].pixel_array), f"{kind}: other pixels")
    check_validator(packed, out, check, "of JPEG-LS")


# format, side, view, how a slab is made
WAYS = (("mg", "L", "CC", "mean"), ("bp", "R", "MLO", "maximum"), ("mg", "R", "CC", "maximum"))
SMALL = {"views": 9, "thickness": 30, "detector": "900x1700"}
WHOLE = pytest.mark.tier2("all projections of a thick breast")
CASES = [(*way, SMALL) for way in WAYS] + [pytest.param(*way, {}, marks=WHOLE) for way in WAYS]


@pytest.mark.parametrize("image_format, side, view, mode, size", CASES)
def test_slabs_and_synthetic_view(folder, failures, image_format, side, view, mode, size):
    def check(ok, text):
        tools.check(ok, text, failures)

    exam = os.path.join(folder, "exam")
    truth = tools.simulate(exam, system="siemens-inspiration", phantom="beads", binning=4, i0=20000, seed=5,
                           format=image_format,
                           side=side, view=view, **{"detector": "1100x2200", **size})
    sources = [pydicom.dcmread(p) for p in sorted(glob.glob(os.path.join(exam, "**", "*.dcm"), recursive=True))]
    settings = ("voxel=0", f"slab_thickness={SLAB_MM}", f"slab_step={STEP_MM}", f"slab_mode={mode}", "synthetic=true")
    objects, out = recon(os.path.join(folder, "out"), exam, *settings)
    check(set(objects) == {"slices", "slabs", "synthetic"}, f"{set(objects)}")
    check_validator(objects, out, check)
    check_identity(objects, sources, check)
    check_slabs(objects, truth, mode == "maximum", check)
    worst = check_beads(objects, truth, check)
    check_view(objects, sources, check)
    if mode == "mean":
        check_scale(objects, exam, folder, check)
        check_compressed(objects, exam, folder, settings, check)
        check_bits(objects, exam, folder, settings, check)
    print(f"beads off by at most {worst[0]:.2f} mm in slabs, {worst[1]:.2f} mm in the view")
