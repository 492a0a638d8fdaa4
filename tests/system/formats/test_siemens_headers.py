# SPDX-License-Identifier: Apache-2.0
"""Headers as scanners of Siemens and their programs write them, in one table: what `tomonode recon` answers. A header that is read is
answered by what is missing beside it; one that is not, by the scanner or the format and the way out. Keys and values are those of
published headers; the texts are made here."""
import os

import numpy as np

from tools import mmr_tools as mmr
from tools import node_harness as h
from tools.node_harness import check
from tools.pet_tools import run

h.need(h.TOMONODE)

SEGMENTS = "{127,115,115,93,93,71,71,49,49,27,27}"
SINOGRAM = {"%comment": "SMS-MI sinogram common attributes", "!originating system": 2008,
            "%SMS-MI header name space": "sinogram subheader", "%SMS-MI version number": 3.1, "!name of data file": "x.s",
            "%compression": "off", "!PET data type": "emission", "data format": "sinogram",
            "number format": "signed integer", "!number of bytes per pixel": 2, "image data byte order": "LITTLEENDIAN",
            "number of dimensions": 3, "matrix axis label[1]": "bin", "matrix axis label[2]": "projection",
            "matrix axis label[3]": "plane", "matrix size[1]": 344, "matrix size[2]": 252, "matrix size[3]": 837,
            "scale factor (mm/pixel) [1]": 2.0445, "%axial compression": 11, "%maximum ring difference": 60,
            "number of rings": 64, "%segment table": SEGMENTS, "number of scan data types": 2,
            "scan data type description [1]": "prompts", "scan data type description [2]": "randoms",
            "data offset in bytes [1]": 0, "data offset in bytes [2]": 145115712, "%number of TOF time bins": 1,
            "!image duration (sec)": 600, "isotope name": "F-18"}  # yapf: disable
SPAN_1 = {"axialcompression": 1, "matrixsize3": 4084, "dataoffsetinbytes2": 708067584,
          "segmenttable": "{" + ",".join(str(64 - (i + 1) // 2) for i in range(121)) + "}"}  # yapf: disable
MCT = {"originatingsystem": 1104, "matrixsize1": 400, "matrixsize2": 168, "matrixsize3": 621, "numberofrings": 55,
       "maximumringdifference": 49, "segmenttable": "{109,97,97,75,75,53,53,31,31}",
       "dataoffsetinbytes2": 1085011200, "numberoftoftimebins": 13}  # yapf: disable
HRRT = (b"!INTERFILE :=\n!originating system := HRRT\n!name of data file := x.l64\n!PET data type := emission\n"
        b"data format := listmode\nnumber format := 64-bit word\naxial compression := 0\nmaximum ring difference := 67\n")
MAIN = b"!INTERFILE:=\n!originating system:=2008\n%SMS-MI header name space:=sinogram main header\n%data set [1]:={0,x.s.hdr,x.s}\n"
STIR = (b"!INTERFILE  :=\nname of data file := t\noriginating system := Siemens mMR\n!GENERAL DATA :=\n!type of data := PET\n"
        b"imagedata byte order := LITTLEENDIAN\n!PET data type := Emission\napplied corrections := {None}\n"
        b"!number format := float\n!number of bytes per pixel := 4\nnumber of dimensions := 4\n"
        b"matrix axis label [4] := segment\n!matrix size [4] := 1\nmatrix axis label [3] := axial coordinate\n"
        b"!matrix size [3] := { 64 }\nmatrix axis label [2] := view\n!matrix size [2] := 252\n"
        b"matrix axis label [1] := tangential coordinate\n!matrix size [1] := 344\nminimum ring difference per segment := { 0 }\n"
        b"maximum ring difference per segment := { 0 }\nScanner parameters :=\nScanner type := Siemens mMR\n"
        b"end scanner parameters :=\n!END OF INTERFILE :=\n")
UMAP = {"!originating system": 2008, "%SMS-MI header name space": "image subheader", "%SMS-MI version number": 3.5,
        "!name of data file": "x.v", "!PET data type": "image", "number format": "float",
        "!number of bytes per pixel": 4, "image data byte order": "LITTLEENDIAN", "number of dimensions": 3,
        **{f"matrix size[{k}]": 4 for k in (1, 2, 3)}, **{f"scaling factor (mm/pixel) [{k}]": 2 for k in (1, 2, 3)},
        "%image slope": 1, "%image intercept": "0.0", "quantification units": "1/cm", "%image zoom": 1,
        "%x-offset (mm)": "0.0"}  # yapf: disable


def listed(**changes):
    return mmr.list_header(1000, "\n", **changes)


def sinogram(**changes):
    return mmr.text_of(SINOGRAM, changes, "\r\n")


READ_LIST, READ_SINOGRAM = "no normalisation (NAME.n.hdr) is beside it", "x.s has 4 bytes; its header requires {} ("
OTHER = "supported: 2008 (Biograph mMR); of another scanner of Siemens histogram the list mode with the e7tools"
HEADERS = {
    "a.l.hdr": (listed(), READ_LIST),
    "b.l.hdr": (listed().replace(b":=", b"\t:=\t").replace(b"\n", b"\r\n; a comment\r\n"), READ_LIST),
    "c.l.hdr": (listed(originatingsystem=1104, axialcompression=11, numberofrings=55), OTHER),
    "d.l.hdr": (listed(originatingsystem=1208, smsmiheadernamespace="PETLINK raw data"), OTHER),
    "f.hl": (listed(), "the list mode of a Biograph mMR: `tomonode recon` reads it under the name NAME.l.hdr"),
    "g.hl": (listed(originatingsystem=1208), "the header of list mode data of Siemens (PETLINK): not imported"),
    "h.l64.hdr": (HRRT, "a header of the HRRT's own programs: neither its list mode nor its sinograms are read"),
    "i.s.hdr": (HRRT.replace(b"listmode", b"sinogram"), "a header of the HRRT's own programs"),
    "j.n.hdr": (mmr.norm_header(), "the header of a normalisation of Siemens: of a Biograph mMR name"),
    "k.n.hdr": (mmr.norm_header(originatingsystem=1104, numberofnormalizationcomponents=7),
                "of other scanners let the e7tools write it as sinograms"),
    "l.s.hdr": (sinogram(), READ_SINOGRAM.format(145115712)),
    "m.s.hdr": (sinogram(**SPAN_1), READ_SINOGRAM.format(708067584)),
    "o.s.hdr": (sinogram(**MCT), READ_SINOGRAM.format(1085011200)),
    "q.mhdr": (MAIN, "a main header of Siemens, which names others: give the header of the sinogram (.s.hdr)"),
    "r.h33": (b"!INTERFILE\nname of data file := norm3d_00.a\nnumber of dimensions := 3\nmatrix size [1] := 400\n"
              b"number format := float\nnumber of bytes per pixel := 4\n", '"matrix axis label [1]" is missing'),
    "s.v.hdr": (mmr.text_of(UMAP, {}, "\n"), "the header of an image, not of sinograms: name that of the sinograms (.hs); an "
                                             "attenuation map is given with --map"),
    "t.hs": (STIR, "t has 4 bytes; its header requires 22192128 (64 planes"),
}  # yapf: disable


def test_headers(folder):
    """Each is read, or refused by a sentence that names what it is."""
    for name, (text, says) in HEADERS.items():
        path = os.path.join(folder, name[0], name)
        data = os.path.join(os.path.dirname(path), "x.s") if ".s." in name else os.path.splitext(path)[0]
        os.makedirs(os.path.dirname(path))
        for file, content in ((data, bytes(4)), (path, text)):
            with open(file, "wb") as f:
                f.write(content)
        done = run("recon", "-o", os.path.join(folder, "out"), path, ok=(4, 8))
        check(says in done.stderr, f"{name}: {done.stderr}")


def test_map_of_siemens(folder):
    """The map of a table or patient that the e7tools write; one whose values or place a key changes is refused by this key."""
    path, scan = os.path.join(folder, "x.v.hdr"), os.path.join(folder, "scan")
    np.full(64, 0.096, "<f4").tofile(path[:-len(".hdr")])
    run("simulate", "pet", "--scanner", "small", "--phantom", "cylinder", "--noise-free", "--interfile", "-o", scan)
    for changes, code, says in (({}, 0, ""), ({"imageslope": "1.000"}, 0, ""),
                                ({"imageslope": 2}, 4, "%image slope := 2; this manufacturer's key"),
                                ({"imagezoom": "1\n$origin offset (mm) [1]:=0"}, 4, "a map of the table or coils of an mMR, whose place"),
                                ({"xoffsetmm": 1.5}, 4, "%x-offset (mm) := 1.5; this manufacturer's key")):  # yapf: disable
        with open(path, "wb") as f:
            f.write(mmr.text_of(UMAP, changes, "\r\n"))
        done = run("recon", "-o", os.path.join(folder, f"out{len(says)}"), "--map", path, "--protocol", "pet-osem", "--set",
                   "iterations=1", "--set", "matrix=24", os.path.join(scan, "emission.hs"), ok=(code, ))
        check(says in done.stderr, done.stderr)
