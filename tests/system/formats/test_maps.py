# SPDX-License-Identifier: Apache-2.0
"""Attenuation maps of other programs, `tomonode recon --map`: the bodies of test_pet_attenuation.py as NIfTI, MetaImage
and Interfile image, in each unit, oblique and in every position, moved by a matrix, divided into several maps. The
images are those of the ready-made factors; what cannot be right is refused, or said."""
import glob
import gzip
import json
import os
import re

import numpy as np
import pytest

from test_pet_attenuation import (BODIES, CT, MR_MAP, PLACES, Data, compare, ct_of, hounsfield, make_ct, of_map, recon,
                                  refused)
from tools import mmr_recon
from tools import mmr_tools as mmr
from tools import node_harness as h
from tools.map_writer import write_interfile, write_metaimage, write_nifti
from tools.mmr_recon import events_at
from tools.mmr_tools import extract
from tools.node_harness import check
from tools.pet_tools import run

h.need(h.TOMONODE)

EXTENT, SPACING = (180, 180, 120), (3.0, 2.6, 2.0)
PLACE = PLACES[-1]  # HFP, oblique


def per_mm(mu):
    return mu


def per_cm(mu):
    return 10 * mu


def map_of(place, shown):
    """Values and matrix of a map of the bodies."""
    position, centre, orientation = place
    values, first = ct_of(position, orientation, EXTENT, SPACING, shown)
    cosines = np.array(orientation, float)
    axes = np.stack([cosines[:3], cosines[3:], np.cross(cosines[:3], cosines[3:])], -1) * SPACING
    return values, np.column_stack([axes, np.array(centre, float) + first])


def bodies_on(x, y, z, bodies=BODIES):
    """mu, 1/mm, at points of the scanner."""
    mu = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape))
    for middle, half, add in bodies:
        mu += add * (((x - middle[0]) / half[0])**2 + ((y - middle[1]) / half[1])**2 +
                     ((z - middle[2]) / half[2])**2 < 1)
    return mu


def interfile_map(path, unit, scale, moved=0.0, **keys):
    """The bodies as STIR has them, z out of the gantry; `moved` mm along it from the middle of the scanner."""
    n, spacing = (84, 90, 58), (2.2, 2.1, 2.05)
    first = (-(n[0] // 2) * spacing[0], -(n[1] // 2) * spacing[1], moved)
    x, y = (first[c] + np.arange(n[c]) * spacing[c] for c in range(2))
    out = moved + (np.arange(n[2]) - (n[2] - 1) / 2) * spacing[2]
    values = bodies_on(x[None, None], y[None, :, None], -out[:, None, None])
    return write_interfile(path, scale * values, spacing, first, unit, **keys)


def with_maps(folder, name, paths, *maps, options=(), ok=(0, )):
    document, volume, images = recon(os.path.join(folder, name),
                                     *paths,
                                     options=(*(o for m in maps for o in ("--map", m)), *options),
                                     ok=ok)
    return (document["cases"][0]["pet"] if document["cases"] else document["refused"][0]["reason"]), volume, images


def test_the_ways_in(folder):
    """Each form and unit gives the image of the ready-made factors; the map from MR and its values in NIfTI do, too."""
    data = Data(folder)
    bare = data.objects("bare", *PLACE[:2])
    expected = recon(os.path.join(folder, "expected"), data.objects("ready", *PLACE[:2], ready=True))[1]

    def at(name):
        return os.path.join(folder, name)

    ways = [(write_nifti(at("cm.nii.gz"), *map_of(PLACE, per_cm)), "", "1/cm", True),
            (write_nifti(at("ten.nii"), *map_of(PLACE, of_map), kind="<i2"), ",unit=10000/cm", "10000/cm", False),
            (interfile_map(at("stir.hv"), "1/cm", 10), "", "1/cm", False)]
    if h.TIER == 2:
        ways += [(write_nifti(at("big.nii"), *map_of(PLACE, per_cm), kind=">f4", qform=True), "", "1/cm", True),
                 (write_nifti(at("sloped.nii"), *map_of(PLACE, per_cm), kind="<u2", slope=1e-4), "", "1/cm", True),
                 (write_nifti(at("hu.nii.gz"), *map_of(PLACE, hounsfield)), ",kvp=120", "HU", True),
                 (write_metaimage(at("mm.mha"), *map_of(PLACE, per_mm), compressed=True), "", "1/mm", True),
                 (write_metaimage(at("mm.mhd"), *map_of(PLACE, per_mm)), ",unit=1/mm", "1/mm", False),
                 (interfile_map(at("moved.h33"), None, 1, moved=7.5, **{
                     "%comment": "x",
                     "%image zoom": "1"
                 }), "", "1/mm", True)]
    volumes = {}
    for path, said, unit, found in ways:
        name = os.path.basename(path)
        case, volumes[name], images = with_maps(folder, "out-" + name.replace(".", "-"), [bare], path + said)
        compare(name, volumes[name], expected)
        check(case["corrections"]["attenuation"]["maps"] == [{
            "name": name,
            "unit": unit,
            "unit_found": found
        }], case["corrections"])
        check(
            case["corrections"]["attenuation"]["missing"] == 0 and case["corrections"]["attenuation"]["truncated"] == 0,
            f"nothing is missing: {case['corrections']}")
        check(
            "ATTN" in images[0].CorrectedImage
            and images[0].AttenuationCorrectionMethod == "map, factors in the system model"
            and f"attenuation from map {name}" in images[0].DerivationDescription, images[0].DerivationDescription)
        check("nothing in it names the exam" in case["warnings"], case["warnings"])
    make_ct(at("mr"), *PLACE, shown=of_map, intercept=0, series="2.25.7003", changes=MR_MAP)
    from_mr = recon(at("out-mr"), bare, at("mr"), options=CT)[1]
    check(np.allclose(volumes["ten.nii"], from_mr, rtol=0, atol=1e-3 * from_mr.max()),
          "the map from MR and the same values in NIfTI")


@pytest.mark.parametrize("place", PLACES if h.TIER == 2 else PLACES[1:2])
def test_positions(folder, place):
    """A map in the patient follows the position; one in the scanner has the same place in all of them."""
    data = Data(folder)
    bare = data.objects("bare", *place[:2])
    expected = recon(os.path.join(folder, "expected"), data.objects("ready", *place[:2], ready=True))[1]
    path = write_nifti(os.path.join(folder, "m.nii.gz"), *map_of(place, per_cm))
    compare(f"{place[0]}, in the patient", with_maps(folder, "patient", [bare], path)[1], expected)
    path = interfile_map(os.path.join(folder, "m.hv"), "1/cm", 10)
    compare(f"{place[0]}, in the scanner", with_maps(folder, "scanner", [bare], path)[1], expected)


def test_a_matrix(folder):
    """A map that lies elsewhere is moved by the matrix; the inverse of it is another place."""
    data = Data(folder)
    bare = data.objects("bare", *PLACE[:2])
    expected = recon(os.path.join(folder, "expected"), data.objects("ready", *PLACE[:2], ready=True))[1]
    c, s = np.cos(0.3), np.sin(0.3)
    move = np.array([[c, 0, s, 12], [0, 1, 0, -30], [-s, 0, c, 44], [0, 0, 0, 1]])  # LPS, mm
    values, matrix = map_of(PLACE, per_cm)
    elsewhere = np.linalg.inv(move) @ np.vstack([matrix, [0, 0, 0, 1]])
    path, text = write_nifti(os.path.join(folder, "m.nii.gz"), values, elsewhere[:3]), os.path.join(folder, "m.txt")
    np.savetxt(text, move)
    case, found, _ = with_maps(folder, "out", [data.objects("right", *PLACE[:2], CorrectedImage="RAN")],
                               f"{path},matrix={text}")
    compare("moved", found, expected)
    check("of the body" not in case["warnings"], case["warnings"])
    np.savetxt(text, np.linalg.inv(move), delimiter=",")
    reason = with_maps(folder, "inverse", [bare], f"{path},matrix={text}", ok=(4, ))[0]
    check("it is beside the field of view" in reason, f"the other way it is another place: {reason}")
    np.savetxt(text, np.array([[1, 0, 0, 60], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) @ move)
    plain = with_maps(folder, "plain", [bare], f"{path},matrix={text}")[0]
    check("outside of the body" not in plain["warnings"]
          and "Activity beyond the body of the map m.nii.gz was not looked for: randoms are not corrected" in plain["warnings"],
          f"randoms would be outside, too: {plain['warnings']}")
    case = with_maps(folder, "beside", [data.objects("counts", *PLACE[:2], CorrectedImage="RAN")],
                     f"{path},matrix={text}")[0]
    check(re.search(r"[0-9.]+ % of the activity is outside of the body of the map m.nii.gz", case["warnings"]),
          case["warnings"])
    with gzip.open(path, "rb") as f:
        metres = bytearray(f.read())
    metres[123] = 1  # xyzt_units
    h.write_file(os.path.join(folder, "metres.nii"), metres)
    reason = with_maps(folder, "in-metres", [bare], os.path.join(folder, "metres.nii"), ok=(4, ))[0]
    check("lengths in unit 1" in reason, reason)
    np.savetxt(text, np.diag([1e-3, 1e-3, 1e-3, 1]))
    reason = with_maps(folder, "bad", [bare], f"{path},matrix={text}", ok=(4, ))[0]
    check("another unit than mm" in reason, reason)


def test_several_maps(folder):
    """The maps of a body and of what is denser in it are added; one that is given twice is refused."""
    data = Data(folder)
    bare = data.objects("bare", *PLACE[:2])
    expected = recon(os.path.join(folder, "expected"), data.objects("ready", *PLACE[:2], ready=True))[1]
    n, spacing = (90, 90, 60), (2.0, 2.0, 2.0)
    first = (-89.0, -89.0, 0.0)
    x, y = (first[c] + np.arange(n[c]) * spacing[c] for c in range(2))
    z = -(np.arange(n[2]) - (n[2] - 1) / 2) * spacing[2]
    (middle, half, bone), at = BODIES[2], (x[None, None], y[None, :, None], z[:, None, None])

    def part(name, bodies):
        return write_interfile(os.path.join(folder, name), bodies_on(*at, bodies), spacing, first)

    body, dense = part("body.hv", BODIES[:2]), part("dense.hv", ((middle, half, bone), ))
    case, found, images = with_maps(folder, "two", [bare], body, dense + ",unit=1/mm")
    whole = bodies_on(*at, BODIES[:2]) + bodies_on(*at, ((middle, half, bone), ))
    one = with_maps(folder, "one", [bare], write_interfile(os.path.join(folder, "whole.hv"), whole, spacing, first))[1]
    check(np.allclose(found, one, rtol=0, atol=1e-3 * one.max()), "two maps are their sum")
    check(abs(one - expected).max() > 0.05 * expected.max(), "of which the second is a part that is seen")
    check(
        "attenuation from map body.hv and map dense.hv" in images[0].DerivationDescription
        and "The map dense.hv (1/mm) is added" in case["warnings"], images[0].DerivationDescription)
    for name, maps, said in (("same", (body, dense + ",unit=1/mm", dense + ",unit=1/mm"),
                              "the map dense.hv and the map dense.hv have 100 %"),
                             ("whole", (body, os.path.join(folder,
                                                           "whole.hv")), "the map body.hv and the map whole.hv have 9"),
                             ("part", (os.path.join(folder,
                                                    "whole.hv"), body), "the map whole.hv and the map body.hv have 9")):
        reason = with_maps(folder, name, [bare], *maps, ok=(4, ))[0]
        check(said in reason and "in common, and maps are added" in reason, f"{name}: {reason}")
    make_ct(os.path.join(folder, "ct"), *PLACE, series="2.25.7003")
    reason = with_maps(folder, "ct-too", [bare, os.path.join(folder, "ct")], body, ok=(4, ))[0]
    check("the CT and the map body.hv have 9" in reason, reason)


def test_units_that_are_wrong(folder):
    """A unit that the values contradict, and values that fit none, are refused with what is to be stated. (Each unit:
    node/format/test_map_file.)"""
    data = Data(folder)
    bare = data.objects("bare")
    values, matrix = map_of(PLACES[0], per_mm)

    def reason(name, scale, said="", **keys):
        if keys:
            path = interfile_map(os.path.join(folder, name + ".hv"), keys["unit"], scale)
        else:
            path = write_nifti(os.path.join(folder, name + ".nii"), scale * values, matrix)
        return with_maps(folder, "out-" + name.replace(".", "-"), [bare], path + said, ok=(4, ))[0]

    for name, text, why in (("mm", reason("mm", 10, ",unit=1/mm"),
                             "stated as 1/mm, but its values, up to 0.15, have water in 1/cm"),
                            ("header", reason("header", 1, unit="1/cm"), "stated as 1/cm, but"),
                            ("strange", reason("strange", 3), "its unit is not known: values up to 0.045")):
        check(why in text, f"{name}: {text}")


def test_what_a_map_lacks_is_said(folder):
    """The sentences of a CT, with the name of the map; and what --map is not for."""
    data = Data(folder)
    bare = data.objects("bare")
    values, matrix = map_of(PLACES[0], per_cm)
    k = slice(21, 39)  # 36 mm of the 48 mm of the axial field
    path = write_nifti(os.path.join(folder, "short.nii"), values[k],
                       np.column_stack([matrix[:, :3], matrix @ [0, 0, 21, 1]]))
    case = with_maps(folder, "short", [bare], path)[0]
    check(
        "The map short.nii is shorter than the axial field: 4 of 15 planes are not in it" in case["warnings"]
        and "Not corrected for attenuation" in case["warnings"] and case["units"] == "CNTS", case["warnings"])
    check("The centre of the scanner, which places the map, is taken as the origin" in case["warnings"],
          case["warnings"])
    i = slice(15, 45)
    narrow = np.column_stack([matrix[:, :3], matrix @ [15, 0, 0, 1]])
    path = write_nifti(os.path.join(folder, "narrow.nii"), values[:, :, i], narrow)
    case = with_maps(folder, "narrow", [bare], path)[0]
    check("The map narrow.nii is truncated" in case["warnings"], case["warnings"])
    sagittal = write_nifti(os.path.join(folder, "sagittal.nii"), values.transpose(2, 1, 0), matrix[:, [2, 1, 0, 3]])
    case = with_maps(folder, "sagittal", [bare], sagittal)[0]
    check("truncated" not in case["warnings"],
          "a body that goes on along the axis is not cut off by its field: " + case["warnings"])
    ready = with_maps(folder, "ready-out", [data.objects("ready", ready=True)], path)[0]
    check("The attenuation is the role ATTENUATION of the data; the map was not used." in ready["warnings"],
          ready["warnings"])
    for name, words in (("other", ("--map", path + ",unit=1/m")), ("key", ("--map", path + ",units=1/cm")),
                        ("many", ("--map", path) * 9)):
        text = run("recon", "-o", os.path.join(folder, name), *words, bare, ok=(2, )).stderr
        check("none of unit=1/cm, 1/mm, 10000/cm, HU" in text or "more than 8 maps" in text, text)
    text = run("recon",
               "-o",
               os.path.join(folder, "both"),
               "--map",
               path,
               bare,
               data.objects("second", SeriesNumber="9"),
               ok=(4, )).stderr
    check("--map is of one PET case, and the files are 2 cases" in text, text)
    text = run("recon",
               "-o",
               os.path.join(folder, "role"),
               "--attenuation",
               interfile_map(os.path.join(folder, "m.hv"), "1/cm", 10),
               os.path.join(data.scan, "emission.hs"),
               ok=(4, )).stderr
    check("an attenuation map is given with --map" in text, text)


def test_an_interfile_scan_with_a_map(folder):
    """One command without DICOM: the map in the scanner needs no position, frame or patient."""
    data = Data(folder)
    path = interfile_map(os.path.join(folder, "stir.hv"), "1/cm", 10)
    case = with_maps(folder, "out", [os.path.join(data.scan, "emission.hs")], path)[0]
    check(
        "The map stir.hv (1/cm) is placed by its own coordinates in the scanner" in case["warnings"]
        and "origin" not in case["warnings"], case["warnings"])
    result = glob.glob(os.path.join(folder, "out", "*.dcm"))[0]
    other = interfile_map(os.path.join(folder, "other.hv"), "1/cm", 9)
    lacks, differs = "without its CT or maps: give them, too (files with --map)", "CT or maps with other values or in another place"
    for name, words, said in (("again", ("--map", path), []), ("without", (), [lacks, "no maps, was 1"]),
                              ("other", ("--map", other), [differs])):
        done = run("recon", "--json", "--device", "cpu", "-o", os.path.join(folder, name), "--recipe", result, *words,
                   os.path.join(data.scan, "emission.hs"))
        found = json.loads(done.stdout)["cases"][0]["recipe_differs"]
        check(found == said if name != "without" else set(said) < set(found), f"--recipe, {name}: {found}")
    refused_as = refused(os.path.join(folder, "none"),
                         data.objects("bare"),
                         code=4,
                         options=("--map", os.path.join(data.scan, "emission.hs")))
    check("volumes are read from" in refused_as, refused_as)


@pytest.mark.tier2("factors of all bins of an mMR, four times")
def test_extracted_list_mode_with_a_map(folder):
    """A list mode of an mMR, as objects and as extracted files: one image with the map; another map has other UIDs."""
    words, norm = events_at(np.random.default_rng(4), 20000), mmr.Norm(np.random.default_rng(8))
    x = -200 + 10 * np.arange(41)

    def cylinder(name, radius):
        values = np.repeat(((x[None]**2 + x[:, None]**2) < radius**2)[None] * 0.096, 30, 0)
        return write_interfile(os.path.join(folder, name), values, (10.0, 10.0, 10.0), (-200.0, -200.0, 0.0))

    water, wider = cylinder("water.hv", 100), cylinder("wider.hv", 150)
    header = extract(os.path.join(folder, "files"), words, norm)
    bare, _ = mmr_recon.recon(folder, "bare", header)
    made, case = mmr_recon.recon(folder, "made", header, "--map", water)
    objects, _ = mmr_recon.recon(folder, "objects-out", mmr_recon.raw(os.path.join(folder, "objects"), words, norm),
                                 "--map", water)
    other, _ = mmr_recon.recon(folder, "other", header, "--map", wider)
    check(
        all(
            np.array_equal(a.pixel_array, b.pixel_array) and a.RescaleSlope == b.RescaleSlope
            for a, b in zip(made, objects)), "objects and files have one image")
    check("ATTN" in made[0].CorrectedImage and "ATTN" not in bare[0].CorrectedImage, f"{made[0].CorrectedImage}")
    check(
        "map water.hv" in made[0].DerivationDescription and case["corrections"]["attenuation"]["maps"][0]["unit_found"],
        made[0].DerivationDescription)
    ratio = sum(mmr_recon.values(d).sum() for d in made) / sum(mmr_recon.values(d).sum() for d in bare)
    check(4.5 < ratio < 6.82, f"200 mm of water and less: {ratio}")
    check(made[0].SeriesInstanceUID != other[0].SeriesInstanceUID, "another map is another series")
