#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The golden corpus: digests of what the program computes and writes on the CPU, for a change that must not change it.

Each case is some commands in a folder of its own; each file that they write, and what they print, has a digest: of an
object one of its pixels and one of all other attributes, without those of the time and the version of the program. The
digests of floating point sums depend on the vector instructions of the processor, so that a file of digests is of one
machine. Fingerprints (system/tools/fingerprint.py) do not: system/test_golden.py compares those in golden_values.json.
After a change that is meant to change results, `compare` says in which files, and `values` writes new fingerprints:

usage: golden.py record PROGRAM FILE [CASE...]    write the digests
       golden.py compare PROGRAM FILE [CASE...]   exit 1 and name the files that are no longer the same
       golden.py values PROGRAM [CASE...]         write golden_values.json
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
from tools import ct_writer, fingerprint, mmr_tools, tiny_inputs, tof_tools  # noqa: E402

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
    "prior": "dbt-osem --set prior_weight=300 --set prior_across=0.5 --set subsets=3 --set iterations=2",
    "quadratic": "dbt-ostr --set prior=quadratic --set prior_weight=300 --set iterations=2",
    "edges": "dbt-osem --set breast_shape=true --set skin_edge=true --set scatter_correction=true",
    "rows": "dbt-mlem --set normalise_rows=true --set iterations=2",
    "ramp": "dbt-fbp --set filter=ramp --set stored_bits=12 --set stored_step=1e-4 --set stored_offset=-0.1",
    "unmasked": "dbt-osem --set breast_mask=false --set edge_taper=0",
}
DBT_EXAMS = {
    "right-mlo": "--side R --view MLO", "frames": "--format bp",
    "breast": "--phantom breast --clips 1 --glandular 35 --thickness 62 --seed 3",
    "slab": "--phantom slab --noise-free --i0 800",
    "window": "--phantom beads --window-x 6 --window-y -9 --side R", "air": "--air 45 --gantry 60 --view MLO --seed 2",
    "inverted": "--inverted --over-range 20",
    "scatter": "--scatter 0.5 --heel 20 --exposure-swing 8", "collimated": "--collimate 6 --open-field distance",
}
PET_PROTOCOLS = {
    "mlem": f"pet-mlem {SMALL}", "osem": f"pet-osem {SMALL} --set subsets=4", "fbp": "pet-fbp-preview --set matrix=24",
    "psf": f"pet-osem {SMALL} --set subsets=4 --set psf=5", "bsrem": f"pet-osem {SMALL} --set algorithm=bsrem --set subsets=4",
    "mashed": f"pet-osem {SMALL} --set subsets=4 --set tof_mashing=5",
    "joseph": f"pet-osem {SMALL} --set subsets=3 --set projector=joseph --set fov_radius=25 --set postfilter=6",
    "exact": f"pet-osem {SMALL} --set subsets=4 --set projector=exact --set voxel=3.1",
    "cut": "pet-fbp-preview --set matrix=20 --set filter_cut=0.4 --set fov_radius=20",
}
PARALLEL_PROTOCOLS = {
    "fbp": "parallel-fbp", "fbp-convolution": "parallel-fbp --set route=convolution", "bp": "parallel-bp", "art": "parallel-art",
    "sart": "parallel-sart", "mlem": "parallel-mlem --set iterations=5",
    "filters": "parallel-fbp --set filter=hann --set filter_cut=0.6 --set matrix=33 --set pixel=1.3",
    "cosine": "parallel-fbp --set filter=cosine --set axis=found --set ring_width=2",
    "ostr": "parallel-mlem --set algorithm=ostr --set subsets=5 --set iterations=2 --set projector=exact",
    "mltr": "parallel-mlem --set algorithm=mltr --set iterations=4 --set projector=joseph --set fov_radius=20",
    "art-order": "parallel-art --set in_sequence=true --set non_negative=true --set iterations=3 --set relaxation=0.7",
    "hu": "parallel-fbp --set mu_water=0.02",
}

CASES = {f"dbt-{name}": [f"{DBT} --system {name} -o exam", f"{RECON} --protocol dbt-osem {FINE} -o out exam"] for name in SYSTEMS}
CASES |= {f"dbt-{name}": [f"{DBT} -o exam", f"{RECON} --protocol {text} {FINE} --json -o out exam"]
          for name, text in DBT_PROTOCOLS.items()}
CASES |= {f"dbt-{name}": [f"{DBT} {text} -o exam", f"{RECON} --protocol dbt-osem {FINE} -o out exam"]
          for name, text in DBT_EXAMS.items()}
CASES |= {f"pet-{name}": [f"{PET} --attenuation --randoms 0.2 --tof 5,400,500 -o exam",
                          f"{RECON} --protocol {text} --json -o out exam"] for name, text in PET_PROTOCOLS.items()}
CASES |= {f"parallel-{name}": [f"{LINES} -o exam", f"{RECON} --protocol {text} --json -o out exam"]
          for name, text in PARALLEL_PROTOCOLS.items()}
OSEM = f"{RECON} --protocol pet-osem {SMALL} --set subsets=4"
CASES |= {
    "pet-delayeds": [f"{PAIRS} --randoms 0.3 --delayeds -o exam", f"{OSEM} --set corrections=randoms -o out exam"],
    "pet-singles": [f"{PAIRS} --randoms 0.3 --singles -o exam", f"{OSEM} --set corrections=randoms -o out exam"],
    "pet-beds": [f"{PET} --attenuation --beds 3,12 -o exam", f"{OSEM} --json -o out exam"],
    "pet-ct": [f"{PET} -o exam", "ct ct", f"{OSEM} --set corrections=attenuation -o out exam ct"],
    "pet-ct-scatter": [f"{PAIRS} --randoms 0.3 --delayeds -o exam", "ct ct",
                       f"{OSEM} --set corrections=attenuation+randoms+scatter --json -o out exam ct"],
    "pet-cylinder": [f"{PET.replace('f-shape', 'cylinder')} --radius 22 --length 30 --attenuation --noise-free -o exam",
                     f"{OSEM} --json -o out exam", "measure --truth exam/truth.json out",
                     "measure --circle 5,5,0,20,a --sphere -5,0,0,9 --csv out"],
    "pet-nema": ["simulate pet --scanner small --counts 3e5 -o exam",
                 f"recon --device cpu:2 --protocol pet-osem --set matrix=64 --set iterations=1 -o out exam",
                 "measure --truth exam/truth.json out", "measure --truth exam/truth.json --json out"],
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
    "petsird-span": [f"{PET} --petsird -o scan",
                     f"import --petsird scan/scan.petsird {SET} --span 3 --radial 11 --axes -x,-y,z "
                     "-c tiny.conf -o exam",
                     f"{OSEM} -o out exam", "export -o back.hs exam"],
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
    "export-pictures": [f"{PET} -o exam", f"{OSEM} -o out exam", "export -o s.png --plane sagittal --slice all out",
                        f"{OSEM} --set compression=jpeg-ls -o small exam", "export -o small.mha small",
                        "export -o w.png --window 300,900 --invert --slice 2 out",
                        "export -o c.png --plane coronal --mip --window full out",
                        "export -o all --format metaimage out"],
    "measure-dbt": [f"{DBT.replace('ellipsoids', 'beads')} -o exam", f"{RECON} --protocol dbt-fbp {FINE} -o out exam",
                    "measure --truth exam/truth.json --pairs out", "measure --truth exam/truth.json --csv out",
                    "measure --region a=20,20,5,6 --background 40,20,6 --point p=12,20,5 --json out"],
    "measure-ct": [f"{LINES} --phantom circle --counts 1e4 -o exam",
                   f"{RECON} --protocol parallel-fbp --set mu_water=0.02 -o out exam",
                   "measure --circle 0,0,0,20,middle --circle 4,4,1,8 --uniform 0,0,0,36,2 --nps-size 8 out"],
    "profile": ["simulate dbt --phantom calibration --thickness 60 --binning 8 -o exam",
                "profile check --phantom exam/phantom.json exam",
                "profile fit --phantom exam/phantom.json -o fit exam"],
    "arrays-dbt": [f"{DBT} -o exam", f"arrays read --device cpu:2 -c tiny.conf {FINE} -o case exam"],
    "arrays-pet": [f"{PET} --attenuation --randoms 0.2 -o exam", f"arrays read {OSEM[6:]} -o case exam"],
    "arrays-list": [f"{PET} --petsird -o scan", f"arrays read {OSEM[6:]} {LIST} -o case scan/scan.petsird"],
    "arrays-parallel": [f"{LINES} -o exam", "arrays read --device cpu:2 --protocol parallel-fbp -o case exam"],
    "check": ["check --json --verbose", "check --describe"],
}

VALUES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_values.json")
NO_VALUES = ("check", "mmr", "pet-gaps")  # says more of the machine than of the program; take long
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


def make(program, commands, folder, env=None, kept=None):
    """Run the commands of a case there; what they printed is in files. Of what was put in nothing stays. kept(name, make): a folder
    that make(folder) fills once, for the first commands, which cases share."""
    given = {"tiny.conf"}
    with open(os.path.join(folder, "tiny.conf"), "w", encoding="ascii") as f:
        f.write(f"scanners = ( {{ {tiny_inputs.SCANNER} }}, {{ {PAIRED} }} );\n")
    for i, text in enumerate(commands):
        words = text.split()
        if words[0] in WRITERS:
            WRITERS[words[0]](os.path.join(folder, words[1]))
            given.add(words[1])
            continue
        if kept and i == 0:
            first = kept(f"golden-{short(text.encode())}", lambda at: make(program, commands[:1], at, env))
            shutil.copytree(first, folder, dirs_exist_ok=True)
            continue
        done = subprocess.run([program, *words], cwd=folder, env=env, capture_output=True, timeout=600)
        with open(os.path.join(folder, f"command-{i}.txt"), "wb") as f:
            f.write(done.stdout + done.stderr + f"exit code {done.returncode}\n".encode())
        if done.returncode:
            print(f"exit code {done.returncode} of {text}\n{done.stderr.decode()}", file=sys.stderr)
    for path in (os.path.join(folder, name) for name in given):
        if os.path.exists(path):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def digests(program, commands):
    """{file: digest} of a case"""
    with tempfile.TemporaryDirectory(prefix="tomonode-golden-") as folder:
        make(program, commands, folder)
        paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        return {os.path.relpath(path, folder): digest(path, folder) for path in paths}


def values(program, commands):
    """The fingerprints of a case."""
    with tempfile.TemporaryDirectory(prefix="tomonode-golden-") as folder:
        make(program, commands, folder)
        return fingerprint.of_folder(folder)


def write_values(found):
    """Cases that were not run keep their values."""
    found = {**read_values(), **found} if os.path.exists(VALUES) else found
    lines = (f'"{name}": {json.dumps(found[name], sort_keys=True)}' for name in CASES if name in found)
    with open(VALUES, "w", encoding="ascii") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


def read_values():
    with open(VALUES, encoding="ascii") as f:
        return json.load(f)


def main():
    if sys.argv[1:2] == ["list"]:
        print("\n".join(CASES))
        return 0
    mode, n = sys.argv[1] if len(sys.argv) > 1 else "", {"record": 4, "compare": 4, "values": 3}
    if len(sys.argv) < n.get(mode, 99):
        print(__doc__, file=sys.stderr)
        return 2
    program, parts, path = os.path.abspath(sys.argv[2]), sys.argv[n[mode] :], sys.argv[3] if n[mode] == 4 else VALUES
    cases = set(CASES).difference(NO_VALUES if mode == "values" else ())
    chosen = [name for name in CASES if name in cases and (not parts or any(part in name for part in parts))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        look = values if mode == "values" else digests
        found = dict(zip(chosen, pool.map(lambda name: look(program, CASES[name]), chosen)))
    if mode == "values":
        write_values(found)
        return 0
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
