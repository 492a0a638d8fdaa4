# SPDX-License-Identifier: Apache-2.0
"""Every command that writes, while one of its calls to the system fails (tests/preload/fail_call.c): the N-th open,
write, close, sync, rename, unlink, mkdir, read, allocation, fork or thread.

The command then ends with an exit code other than 0 and a sentence that names the file and the reason, or with 0 and
the same files as without the failure, byte for byte. It never ends by a signal, and leaves no half-written file under
its final name and no part of one. A close and a sync that fail lose data, as they do on a full file server.
Tier 1 fails the first, the last and one other call of each kind of six commands, and of the others one call of each
kind that changes a file. Tier 2 fails each call of all commands, and an allocation of each place of the program.
Allocations of libraries (jansson, DCMTK, OpenSSL, libconfig) are not among them."""
import collections
import errno
import os
import random
import subprocess

import pytest
from tools import call_tools as ct
from tools import node_harness as h
from tools import tiny_inputs as tiny
from tools.node_harness import check

COMMANDS = {
    "simulate-dbt": f"simulate dbt {tiny.DBT} beads -o OUT/exam",
    "simulate-bp": f"simulate dbt --format bp {tiny.DBT} calibration -o OUT/exam",
    "simulate-pet": f"simulate pet {tiny.PET} 1e4 --attenuation -o OUT/scan",
    "simulate-interfile": f"simulate pet {tiny.PET} 1e3 --attenuation --interfile --petsird -o OUT/scan",
    "simulate-parallel": "simulate parallel --size 16 --angles 8 --slices 2 -o OUT/lines",
    "import-interfile": f"import {tiny.IMPORT_INTERFILE} -o OUT/objects",
    "import-picture": "import IN/picture.png --angles 8 -o OUT/objects",
    "import-petsird": "import -c IN/tiny.conf --petsird IN/list/scan.petsird --set PatientPosition=HFS -o OUT/objects",
    "import-e7": "import --e7 IN/e7 -o OUT/objects",
    "recon-dbt": f"recon {tiny.RECON_DBT} --report OUT/report -o OUT/result IN/dbt",
    "recon-pet": f"recon {tiny.RECON_PET} --report OUT/report -o OUT/result IN/pet",
    "recon-interfile": f"recon {tiny.RECON_PET} --attenuation IN/hs/attenuation.hs -o OUT/result IN/hs/emission.hs",
    "recon-petsird": f"recon {tiny.RECON_PET} --attribute PatientPosition=HFS -o OUT/result IN/list/scan.petsird",
    "recon-parallel": "recon --protocol parallel-fbp --device cpu:1 -o OUT/result IN/lines",
    "export-nifti": "export -o OUT/new/series.nii.gz IN/series",
    "export-metaimage": "export --compress -o OUT/series.mhd IN/series",
    "export-tomosynthesis": "export -o OUT/volume.mha IN/volume",
    "export-interfile": "export -o OUT/series.hv IN/series",
    "export-pictures": "export --slice all -o OUT/slice.png IN/series",
    "export-sinograms": "export -c IN/tiny.conf -o OUT/scan.hs IN/pet",
    "export-petsird": "export -c IN/tiny.conf -o OUT/scan.petsird IN/list",
    "export-folder": "export --format nifti -o OUT/all IN/series IN/volume",
    "report": "report -o OUT/report IN/volume",
}
TYPICAL = ("simulate-pet", "import-interfile", "recon-dbt", "recon-pet", "export-interfile", "report")
CHANGING = ("create", "write", "close", "sync", "rename")


@pytest.fixture(scope="module")
def inputs():
    return tiny.made()


def program(inputs, folder, name, text=None, before=None):
    ct.link_inputs(inputs, folder)
    return ct.Program(folder, name, tiny.words(text or COMMANDS[name], folder), before)


def failing(p, rng):
    """(call, errno) to be tried, of those that an undisturbed run makes."""
    found = collections.defaultdict(list)
    for call in p.count(stacks=h.TIER == 2):
        found[call.kind].append(call)
    few = h.TIER == 1 and p.name not in TYPICAL
    for kind, calls in found.items():
        if kind == "library" or (few and kind not in CHANGING):
            continue
        if few:
            calls = [rng.choice(calls)]
        elif kind == "malloc" and h.TIER == 1:
            n = calls[0].number  # the last one, so all of them
            calls = [ct.Call(kind, number, "") for number in sorted({1, n, rng.randint(1, max(n, 1))}) if n > 0]
        elif h.TIER == 1:
            calls = list(dict.fromkeys((calls[0], rng.choice(calls), calls[-1])))
        yield from ((call, ct.ERRORS[kind]) for call in calls)
    if not few:
        yield from ((call, ct.SHORT) for call in (found["write"] if h.TIER == 2 else [rng.choice(found["write"])]))


@pytest.mark.parametrize("name", COMMANDS)
def test_failing_call_is_told_and_leaves_no_wrong_file(folder, failures, inputs, name):
    p = program(inputs, folder, name)
    rng = random.Random(f"{h.seed()} {name}")
    for call, error in failing(p, rng):
        failures += p.complaints(call, error, p.fail(call, error))


@pytest.mark.tier2("a fit takes half a second")
def test_failing_call_of_a_fit_is_told(folder, failures, inputs):
    exam = os.path.join(folder, "exam")
    h.run(h.TOMONODE, *"simulate dbt --phantom calibration --thickness 60 --binning 8 -o".split(), exam)
    with open(os.path.join(folder, "fit.conf"), "w", encoding="ascii") as f:
        f.write('profiles = ( { name = "siemens-inspiration"; sid_tolerance = 20.0; } );\n')
    words = f"profile fit -c {folder}/fit.conf --phantom {exam}/phantom.json -o OUT/fit {exam}".split()
    p = ct.Program(folder, "profile-fit", words)
    for call in p.count():
        if call.kind in CHANGING:
            failures += p.complaints(call, ct.ERRORS[call.kind], p.fail(call, ct.ERRORS[call.kind]))


def test_secret_of_a_pilot_is_whole_or_not_there(folder):
    """It is another one in each run."""
    spool, conf = os.path.join(folder, "spool"), os.path.join(folder, "node.conf")
    os.mkdir(spool)
    h.write_file(conf, f'node = {{ spool = "{spool}"; {h.as_whom()} }};\n')
    p = ct.Program(folder, "pilot-token", ["pilot-token", "-c", conf, "gpu-1"])
    p.out = spool
    os.rmdir(spool)
    p.before = {"journal": b""}
    for call in p.count():
        if call.kind in CHANGING:
            end = p.fail(call, ct.ERRORS[call.kind])
            told = os.strerror(ct.ERRORS[call.kind]) in end.text
            check(end.code > 0 and told and list(end.files) == ["journal"], f"{call}: {end}")


@pytest.mark.parametrize("name", ["export-nifti", "export-metaimage", "report"])
def test_old_file_stays_until_the_new_one_is_whole(folder, failures, inputs, name):
    """An earlier file of the same name, which the command replaces."""
    p = program(inputs, folder, name)
    p.count()
    p.before = {path: b"an earlier file" for path in p.undisturbed}
    p.words += ["--force"] if name.startswith("export") else []
    rng = random.Random(f"{h.seed()} {name}")
    calls = [c for c in p.count() if c.kind in ("write", "close", "sync", "rename")]
    for call in calls if h.TIER == 2 else rng.sample(calls, 2):
        failures += p.complaints(call, ct.ERRORS[call.kind], p.fail(call, ct.ERRORS[call.kind]))


def test_failing_call_is_seen_by_the_check(folder, inputs):
    """The test can fail: a lost error of each kind makes a complaint."""
    p = program(inputs, folder, "export-interfile")
    p.count()
    name = "series.v"
    lost = ct.End(
        0, "", {**p.undisturbed, name: p.undisturbed[name][:-1]}, ct.Call("close", 1, os.path.join(p.out, name))
    )
    for end in (
        lost,
        lost._replace(code=1),
        lost._replace(code=-11, files={}),
        lost._replace(code=1, files={name + ".part": b""}),
        lost._replace(code=1, files={}, text=f"{name}: no reason"),
        lost._replace(files={}),
    ):
        check(p.complaints(lost.failed, ct.ERRORS["close"], end), end)
    told = f"tomonode export: {name}: {os.strerror(ct.ERRORS['close'])}"
    check(
        not p.complaints(lost.failed, ct.ERRORS["close"], lost._replace(code=1, files={}, text=told)),
        "a failure that was told",
    )
    closed = next(c for c in p.count() if c.kind == "close")
    check(p.fail(closed, ct.ERRORS["close"]).failed == closed, "the call does not fail")


PRINTING = (
    "recon --json --protocol parallel-fbp --device cpu:1 -o OUT/result IN/lines",
    "report --json -o OUT/report IN/volume",
    "measure --csv --circle 0,0,0,20 IN/series",
    "measure --circle 0,0,0,20 IN/series",
    "check",
    "check --describe",
    "devices",
    "--version",
    "help recon",
)


def test_output_on_a_full_disk_is_an_error(folder, inputs):
    """Also where the output is small, and is written at the end. A reader that goes away is none."""
    ct.link_inputs(inputs, folder)
    for text in PRINTING:
        command = [h.TOMONODE, *tiny.words(text.replace("OUT", folder), folder)]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        check(
            done.returncode == 1 and os.strerror(errno.ENOSPC) in done.stderr,
            f"{text}: code {done.returncode}: {done.stderr}",
        )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [h.TOMONODE, "check", "--describe"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    check(done.returncode == 0 and not done.stderr, f"a closed pipe: code {done.returncode}: {done.stderr}")
