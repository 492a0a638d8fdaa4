#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The golden corpus: digests of what the program computes and writes on the CPU, for a change that must not change it.

Each case is some commands in a folder of its own; each file that they write, and what they print, has a digest: of an object
one of its pixels and one of all other attributes, without those of the time and the version of the program. The digests of
floating point sums depend on the vector instructions of the processor, so that a file of digests is of one machine:

usage: golden.py record PROGRAM FILE [CASE...]    write the digests
       golden.py compare PROGRAM FILE [CASE...]   exit 1 and name the files that are no longer the same
       golden.py list

CASE: a part of its name; default: all.
"""
import concurrent.futures
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pydicom

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
from tools import ct_writer, mmr_tools, tiny_inputs, tof_tools  # noqa: E402

DBT = "simulate dbt --phantom ellipsoids --binning 8 --views 9 --arc 24 --detector 1024x768"
PET = "simulate pet -c tiny.conf --scanner tiny --phantom f-shape --counts 1e5"
LINES = "simulate parallel --size 48 --angles 40 --slices 3"
PAIRS = PET.replace("tiny --", "pairs --") + " --tof off"  # of detectors, without arc correction
RECON = "recon --device cpu:2 -c tiny.conf"
FINE = "--set voxel=1.5 --set slice_spacing=5"
SMALL = "--set matrix=24 --set iterations=2"
SET = "--set PatientPosition=HFS --set Radionuclide=F18"
LIST = "--attribute PatientPosition=HFS --attribute Radionuclide=F18"

PAIRED = tiny_inputs.SCANNER.replace('"tiny"', '"pairs"').replace("angles = 12", "angles = 24; arc_corrected = false")
SYSTEMS = ("siemens-inspiration", "siemens-revelation", "ge-essential", "ge-senoclaire", "ge-pristina", "hologic-dimensions",
           "hologic-3dimensions", "victre")
DBT_PROTOCOLS = {
    "osem-full": "dbt-osem-full --set slice_spacing=5", "mlem": "dbt-mlem --set iterations=3", "ostr": "dbt-ostr",
    "mltr": "dbt-mltr --set iterations=3", "sart": "dbt-sart", "bp": "dbt-bp", "fbp": "dbt-fbp",
    "tiles": "dbt-osem --set tile=88x56", "rays": "dbt-osem --set projector=exact",
    "slabs": "dbt-osem --set slab_thickness=10 --set slab_step=5 --set slab_mode=maximum --set synthetic=true",
    "unmasked": "dbt-osem --set breast_mask=false --set edge_taper=0",
}
DBT_EXAMS = {
    "right-mlo": "--side R --view MLO", "frames": "--format bp", "inverted": "--inverted --over-range 20",
    "scatter": "--scatter 0.5 --heel 20 --exposure-swing 8", "collimated": "--collimate 6 --open-field distance",
}
PET_PROTOCOLS = {
    "mlem": f"pet-mlem {SMALL}", "osem": f"pet-osem {SMALL} --set subsets=4", "fbp": "pet-fbp-preview --set matrix=24",
    "psf": f"pet-osem {SMALL} --set subsets=4 --set psf=5", "bsrem": f"pet-osem {SMALL} --set algorithm=bsrem --set subsets=4",
    "mashed": f"pet-osem {SMALL} --set subsets=4 --set tof_mashing=5",
}
PARALLEL_PROTOCOLS = {
    "fbp": "parallel-fbp", "fbp-convolution": "parallel-fbp --set route=convolution", "bp": "parallel-bp", "art": "parallel-art",
    "sart": "parallel-sart", "mlem": "parallel-mlem --set iterations=5", "hu": "parallel-fbp --set mu_water=0.02",
}

CASES = {f"dbt-{name}": [f"{DBT} --system {name} -o exam", f"{RECON} --protocol dbt-osem {FINE} -o out exam"] for name in SYSTEMS}
CASES |= {f"dbt-{name}": [f"{DBT} -o exam", f"{RECON} --protocol {text} {FINE} -o out exam"] for name, text in DBT_PROTOCOLS.items()}
CASES |= {f"dbt-{name}": [f"{DBT} {text} -o exam", f"{RECON} --protocol dbt-osem {FINE} -o out exam"]
          for name, text in DBT_EXAMS.items()}
CASES |= {f"pet-{name}": [f"{PET} --attenuation --randoms 0.2 --tof 5,400,500 -o exam",
                          f"{RECON} --protocol {text} -o out exam"] for name, text in PET_PROTOCOLS.items()}
CASES |= {f"parallel-{name}": [f"{LINES} -o exam", f"{RECON} --protocol {text} --json -o out exam"]
          for name, text in PARALLEL_PROTOCOLS.items()}
OSEM = f"{RECON} --protocol pet-osem {SMALL} --set subsets=4"
CASES |= {
    "pet-delayeds": [f"{PAIRS} --randoms 0.3 --delayeds -o exam", f"{OSEM} --set corrections=randoms -o out exam"],
    "pet-singles": [f"{PAIRS} --randoms 0.3 --singles -o exam", f"{OSEM} --set corrections=randoms -o out exam"],
    "pet-beds": [f"{PET} --attenuation --beds 3,12 -o exam", f"{OSEM} --json -o out exam"],
    "pet-ct": [f"{PET} -o exam", "ct ct", f"{OSEM} --set corrections=attenuation -o out exam ct"],
    "pet-feet-first": [f"{PET} --position FFDL -o exam", f"{OSEM} -o out exam"],
    "pet-gaps": ["simulate pet --scanner siemens-mmr --size 0.5 --counts 2e6 -o exam",
                 f"{RECON} --protocol pet-osem --set matrix=24 --set iterations=1 --set subsets=63 -o out exam"],
    "pet-chunks": [f"{PET} --attenuation --randoms 0.2 --interfile -o scan",
                   "import scan/emission.hs --attenuation scan/attenuation.hs --additive scan/additive.hs --set PatientPosition=HFS "
                   "--chunk 4096 -c tiny.conf -o exam", f"{OSEM} -o out exam", "export -o back/scan.hs exam"],
    "interfile": [f"{PET} --attenuation --interfile -o scan",
                  f"{OSEM} --attenuation scan/attenuation.hs {LIST} -o out scan/emission.hs"],
    "interfile-beds": [f"{PET} --interfile -o scan",
                       "import --bed scan/emission.hs,z=0,start=0,duration=60 --bed scan/emission.hs,z=-12,start=70,duration=60 "
                       "--set PatientPosition=HFS -c tiny.conf -o exam", f"{OSEM} -o out exam"],
    "petsird": [f"{PET} --petsird -o scan", f"{OSEM} {LIST} -o out scan/scan.petsird"],
    "petsird-tof": [f"{PET} --tof 5,400,500 --petsird -o scan", f"{OSEM} {LIST} -o out scan/scan.petsird"],
    "petsird-frames": [f"{PET} --petsird -o scan", f"{OSEM} {LIST} --frames 2x10,20 -o out scan/scan.petsird"],
    "petsird-gates": [f"{PET} --petsird -o scan", "marks marks.txt",
                      f"import --petsird scan/scan.petsird {SET} --gates 2 --marks marks.txt -c tiny.conf -o exam", f"{OSEM} -o out exam"],
    "petsird-import": [f"{PET} --petsird -o scan",
                       f"import --petsird scan/scan.petsird {SET} --frames 10,20 -c tiny.conf -o exam",
                       f"{OSEM} -o out exam"],
    "petsird-export": [f"{PAIRS} -o exam", "export -o back.petsird exam", f"{OSEM} {LIST} -o out back.petsird"],
    "mmr": ["mmr exam", f"{RECON} --protocol pet-osem --set matrix=16 --set iterations=1 --set subsets=63 --set slice_spacing=16 "
            "--set fov_radius=80 -o out exam", "export -o back/scan.hs exam", "export -o back.petsird exam"],
    "e7": ["e7 scan", "import --e7 scan --set PatientPosition=HFS -c tiny.conf -o exam", "export -o back/scan.hs exam"],
    "picture": [f"{LINES} -o exam", f"{RECON} --protocol parallel-fbp -o series exam", "export -o picture.png series",
                "import picture.png --angles 30 -o lines", f"{RECON} --protocol parallel-sart -o out lines"],
    "parallel-lines": [f"{LINES} --phantom head --taper 0.2 -o exam",
                       f"{RECON} --protocol parallel-mlem --set iterations=3 --set projector=sampled -o out exam"],
    "parallel-arc": [f"{LINES} --arc 360 --first-angle 10 --offset 2 --counts 1e5 --position FFP -o exam",
                     f"{RECON} --protocol parallel-fbp -o out exam"],
    "export-dbt": [f"{DBT} -o exam", f"{RECON} --protocol dbt-osem {FINE} --report page -o out exam", "export -o a.nii.gz out",
                   "export -o a.mhd --compress out", "export -o a.png --plane coronal out", "measure --truth exam/truth.json --json out"],
    "export-pet": [f"{PET} -o exam", f"{OSEM} --report page -o out exam", "export -o a.nii out", "export -o a.mha out",
                   "export -o a.hv out", "export -o a.png --mip --bits 16 out", "report --patient --json -o full out"],
    "check": ["check --json --verbose", "check --describe"],
}

VOLATILE = re.compile(r"Date$|Time$|DateTime$|^SoftwareVersions|^ContributionDescription$|^(?:StationName|ImplementationVersionName)$")
MOMENT = re.compile(rb"20\d\d-?\d\d-?\d\d[T ]?(?:\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?Z?)?|\b\d+\.\d+ s\b(?: \(read [^)]*\))?|"
                    rb'"seconds": *\{[^}]*\}|"[a-z_]*(?:seconds|version|revision|build)[a-z_]*": *("[^"]*"|[-0-9.e+]+)|\b[0-9a-f]{12}(?:-dirty)?\b')


def short(data):
    return hashlib.sha256(data).hexdigest()[:12]


def lines_of(ds):
    """The attributes of a data set as lines, without pixels and what another run has otherwise."""
    for element in ds:
        name = element.keyword or str(element.tag)
        if element.VR == "SQ":
            for i, item in enumerate(element.value):
                yield f"{name}[{i}]"
                yield from lines_of(item)
        elif name != "PixelData" and not VOLATILE.search(name):
            yield f"{name} {element.VR} {short(element.value) if isinstance(element.value, bytes) else element.value}"


def digest(path, folder):
    with open(path, "rb") as f:
        data = f.read()
    if data[128:132] == b"DICM":
        ds = pydicom.dcmread(path)
        text = "\n".join(lines_of(ds)) + str(ds.file_meta.TransferSyntaxUID)
        return f"{short(ds.get('PixelData', b''))} {short(text.encode())}"
    if data[:2] == b"\x1f\x8b":  # a header with the time is before the data
        data = gzip.decompress(data)
    text = MOMENT.sub(b"", data) if path.endswith((".json", ".html", ".hs", ".hv", ".txt")) else data
    return short(text.replace(folder.encode(), b""))


def write_mmr(folder):
    os.makedirs(folder)
    rng, study = np.random.default_rng(5), "2.25.100000000000000000000000000000"
    mmr_tools.write_list(os.path.join(folder, "list.dcm"), mmr_tools.words_of(rng, 20000), study=study)
    mmr_tools.write_norm(os.path.join(folder, "norm.dcm"), mmr_tools.Norm(rng), study=study)


def write_ct(folder):
    """Water in the field of view of the PET data in the folder exam."""
    exam = os.path.join(os.path.dirname(folder), "exam")
    first = pydicom.dcmread(sorted(os.path.join(exam, name) for name in os.listdir(exam) if name.endswith(".dcm"))[0])
    x, y = np.meshgrid(np.arange(-80, 80, 4), np.arange(-80, 80, 4))
    hu = np.repeat(np.where(np.hypot(x, 1.5 * y) < 60, 0, -1000)[None], 12, axis=0)
    who = {name: first.get(name) for name in ct_writer.PATIENT}
    ct_writer.write_ct(folder, hu, (4, 4, 4), (-80, -80, -24), frame_of_reference=first.FrameOfReferenceUID,
                       study=first.StudyInstanceUID, patient=who, when=(first.AcquisitionDate, first.AcquisitionTime))


def write_marks(path):
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(f"{ms}\n" for ms in range(0, 60000, 5000)))


def write_e7(folder):
    tof_tools.E7(folder, compression=1, largest=2, rings=4).write()


WRITERS = {"marks": write_marks, "mmr": write_mmr, "ct": write_ct, "e7": write_e7}


def run(program, commands):
    """{file or command: digest} of a case."""
    folder = tempfile.mkdtemp(prefix="tomonode-golden-")
    found, given = {}, set()
    try:
        with open(os.path.join(folder, "tiny.conf"), "w", encoding="ascii") as f:
            f.write(f"scanners = ( {{ {tiny_inputs.SCANNER} }}, {{ {PAIRED} }} );\n")
        for i, text in enumerate(commands):
            words = text.split()
            if words[0] in WRITERS:
                WRITERS[words[0]](os.path.join(folder, words[1]))
                given.add(words[1])
                continue
            done = subprocess.run([program, *words], cwd=folder, capture_output=True, timeout=600)
            with open(os.path.join(folder, f"command-{i}.txt"), "wb") as f:
                f.write(done.stdout + done.stderr + f"exit code {done.returncode}\n".encode())
            if done.returncode:
                print(f"exit code {done.returncode} of {text}\n{done.stderr.decode()}", file=sys.stderr)
        for at, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(at, name)
                if os.path.relpath(path, folder).split(os.sep)[0] not in given:
                    found[os.path.relpath(path, folder)] = digest(path, folder)
    finally:
        shutil.rmtree(folder)
    return found


def main():
    if sys.argv[1:2] == ["list"]:
        print("\n".join(CASES))
        return 0
    if len(sys.argv) < 4 or sys.argv[1] not in ("record", "compare"):
        print(__doc__, file=sys.stderr)
        return 2
    mode, program, path, *parts = sys.argv[1:]
    chosen = [name for name in CASES if not parts or any(part in name for part in parts)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = dict(zip(chosen, pool.map(lambda name: run(os.path.abspath(program), CASES[name]), chosen)))
    if mode == "record":
        with open(path, "w", encoding="ascii") as f:
            json.dump(found, f, indent=1, sort_keys=True)
        print(f"{len(found)} cases, {sum(map(len, found.values()))} digests")
        return 0
    with open(path, encoding="ascii") as f:
        before = json.load(f)
    changed = [f"{name}: {file}: {before.get(name, {}).get(file, 'not there')} before, {found[name].get(file, 'not there')} now"
               for name in chosen for file in sorted({*found[name], *before.get(name, {})})
               if found[name].get(file) != before.get(name, {}).get(file)]
    print("\n".join(changed) or f"{len(chosen)} cases: all the same")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
