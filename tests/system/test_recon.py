#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`tomonode recon` on a folder as people have them: two views, duplicates, text, other DICOM, a Hologic object, a series with one image
short. What can be reconstructed is; each refusal has its sentence; the exit code tells; nothing half-made stays."""
import json
import os
import shutil
import sys

import numpy as np
import pydicom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tools import dbt_tools as tools  # noqa: E402
import test_python_exam as maker  # noqa: E402


def hologic(path, like):
    """A Secondary Capture of modality MG with a private payload, as Hologic packs projections."""
    ds = pydicom.dcmread(like)
    ds.Manufacturer = "HOLOGIC, Inc."
    ds.Rows, ds.Columns, ds.PixelData = 2, 2, np.zeros((2, 2), np.uint16).tobytes()
    ds.private_block(0x7E01, "HOLOGIC, Inc.", create=True).add_new(0x10, "OB", b"\0" * 64)
    maker.save(ds, "1.2.840.10008.5.1.4.1.1.7", path)


def main():
    failures = []

    def check(ok, text):
        tools.check(ok, text, failures)

    with tools.folder() as folder:
        exam, out, config = (os.path.join(folder, n) for n in ("exam", "new/out", "conf"))
        for name in ("left", "right", "short", "other"):
            os.makedirs(os.path.join(exam, name))
        with open(config, "w", encoding="ascii") as f:
            f.write(maker.CONFIG)
        maker.write(os.path.join(exam, "left"), "L", "CC", 1, -1, 0, False)
        maker.write(os.path.join(exam, "right"), "R", "MLO", -1, 1, 45, True)
        maker.write(os.path.join(exam, "short"), "R", "CC", -1, 1, 0, False)
        os.remove(os.path.join(exam, "short", "4.dcm"))
        shutil.copy(os.path.join(exam, "left", "3.dcm"), os.path.join(exam, "left", "3 again.dcm"))
        with open(os.path.join(exam, "notes.txt"), "w", encoding="ascii") as f:
            f.write("not an image")
        hologic(os.path.join(exam, "other", "sco.dcm"), os.path.join(exam, "left", "0.dcm"))
        with open(os.path.join(exam, "left", "0.dcm"), "rb") as f, open(os.path.join(exam, "other", "cut.dcm"), "wb") as g:
            g.write(f.read()[:700])
        endless = pydicom.dcmread(os.path.join(exam, "left", "0.dcm"))
        endless.NumberOfFrames, endless.ImageLaterality, endless.SeriesInstanceUID = 2147483647, "R", pydicom.uid.generate_uid()
        endless.SOPInstanceUID = endless.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        endless.save_as(os.path.join(exam, "other", "endless.dcm"))
        done = tools.run("recon", "--json", "-c", config, "--device", "cpu", "--set", "voxel=1.02", "-o", out, exam, ok=(4,))
        summary = json.loads(done.stdout)
        check(not summary["ok"] and summary["code"] == 4, f"code {summary['code']}")
        check(sorted((c["laterality"], c["view"], c["projections"]) for c in summary["cases"]) == [("L", "CC", 10), ("R", "MLO", 10)],
              f"cases {[(c['laterality'], c['view']) for c in summary['cases']]}")
        check(sorted(os.listdir(out)) == sorted(c["file"] for c in summary["cases"]), f"{os.listdir(out)} in the output folder")
        check(summary["duplicates"] == 1 and summary["not_dicom"] == 1, f"{summary['duplicates']} duplicates, {summary['not_dicom']} no DICOM")
        reasons = {r["what"]: r["reason"] for r in summary["refused"]}
        check(len(reasons) == 4, f"refused: {reasons}")
        for part, sentence in (("sco.dcm", "Hologic SCO"), ("cut.dcm", ""), ("R CC", "(0020,1002) is 10"), ("", "2147483647 frames")):
            check(any(part in what and sentence in why for what, why in reasons.items()), f"no refusal of {part} with '{sentence}': {reasons}")
            check(part in done.stderr, f"{part} is not on stderr")
        check("\r" not in done.stderr and "\x1b" not in done.stderr, "a progress bar where there is no terminal")
        check("PYTHON" not in done.stdout + done.stderr, "a patient's name in the output")
        for case in summary["cases"]:
            check(abs(case["voxel_mm"][0] - 1.02) < 1e-9 and case["size"][2] == maker.THICKNESS, f"{case['size']} voxels of {case['voxel_mm']}")
            check(all(case["seconds"][k] >= 0 for k in ("open", "read", "prepare", "upload", "reconstruct", "download", "write", "total")), "stages")

        one = os.path.join(exam, "right")
        tools.run("recon", "-c", config, "-o", out, ok=(2,))
        tools.run("recon", "-c", config, one, ok=(2,))
        tools.run("recon", "-c", config, "--protocol", "none", "-o", out, one, ok=(8,))
        tools.run("recon", "-c", config, "--set", "iterations=0", "-o", out, one, ok=(2,))
        tools.run("recon", "-c", config, "--device", "cpu", "--set", "subsets=11", "-o", out, one, ok=(4,))  # of 10 projections
        tools.run("recon", "-c", config, "--device", "cuda:77", "-o", out, one, ok=(6,))
        done = tools.run("recon", "-c", config, "--device", "cpu", "--set", "memory_limit=1000000", "-o", out, one, ok=(5,))
        check("protocol 'dbt-osem'" in done.stderr and "the limit is 1.0 MB (memory_limit)" in done.stderr, f"a plan that does not fit: {done.stderr}")
        tools.run("recon", "-c", config, "-o", out, os.path.join(folder, "nothing"), ok=(8,))
        done = tools.run("recon", "-c", config, "--device", "cpu", "--set", "voxel=2.04", "-o", out, one)
        check("R MLO: 10 projections" in done.stdout, done.stdout)
        check("new/out is not empty (2 files)" in done.stderr, f"a folder that has files: {done.stderr}")
    tools.finish(failures, "recon: two cases made, three refused with their sentences, exit codes as documented")


main()
