# SPDX-License-Identifier: Apache-2.0
"""Steps: programs of the site that change the volume before it is written (docs/steps.md). The sample through a running node to the archive, what its
header says, what `check` refuses and sees; hostile programs, of which none is delivered and each is said; kills while a step runs."""
import glob
import hashlib
import json
import os
import shutil
import signal
import socket
import textwrap
import threading

import numpy as np
import pydicom
import pytest

from tools import contract_tools as c
from tools import exam_kinds
from tools import kill_tools
from tools import node_harness as h
from tools import pet_tools as t
from tools import volume_tools
from tools.node_harness import check, wait_for

h.need(h.TOMONODE)
SAMPLE = os.path.join(os.environ["TOMONODE_SOURCE"], "docs", "samples", "steps", "median.py")
QUICK = 'algorithm = "mlem"; iterations = 4; matrix = 32;'
# Kind: (its protocol, what `simulate` makes a case of it from).
KINDS = {"pet": (QUICK, ("pet", "--scanner", "small", "--phantom", "f-shape", "--counts", "2e6", "--attenuation")),
         "dbt": ('algorithm = "osem"; iterations = 1; voxel = 2.8; slice_spacing = 4.0; slab_thickness = 12.0; synthetic = true;',
                 ("dbt", "--phantom", "ellipsoids", "--binning", "8", "--views", "5", "--air", "20"))}
fenced = pytest.mark.skipif(bool(h.sanitizer()), reason="a build with a sanitizer has no sandbox (its run time reserves terabytes and traces itself)")
# Copies the volume, and says something: what an honest program does.
HONEST = """\
#!/usr/bin/python3
import json, os, sys
folder, out = sys.argv[1:]
source, target = os.path.join(folder, "volume.f32"), os.path.join(out, "volume.f32")
with open(source, "rb") as f:
    volume = f.read()
def finish(values=volume, told='{"summary": "nothing"}'):
    with open(target, "wb") as f:
        f.write(values)
    with open(os.path.join(out, "step.json"), "w") as f:
        f.write(told)
"""


def write_program(path, text):
    h.write_file(path, text)
    os.chmod(path, 0o755)
    return path


def step(program, name="one", **keys):
    """An entry of `steps`."""
    digest = hashlib.sha256(h.read_file(program, "rb")).hexdigest()
    keys = {"sha256": f'"{digest}"', "version": '"1.0"', **keys}
    return f'{{ name = "{name}"; program = "{program}";' + "".join(f" {k} = {v};" for k, v in keys.items()) + " }"


def write_conf(path, *steps, names=("one",), node="", protocol="", kind="pet"):
    protocol = protocol or KINDS[kind][0]
    with open(path, "w", encoding="ascii") as f:
        f.write(f'node = {{ user = "root"; spool = "{path}.spool"; {node} }};\nsteps = ( {", ".join(steps)} );\n'
                f'protocols = ( {{ name = "stepped"; kind = "{kind}"; {protocol} steps = {json.dumps(names)}; }},\n'
                f' {{ name = "plain"; kind = "{kind}"; {protocol} }} );\n')
    return path


def data(kind="pet"):
    return sorted(glob.glob(os.path.join(h.simulated_once(*KINDS[kind][1]), "*.dcm")))


def recon(conf, out, protocol="stepped", ok=(0,), kind="pet", device="cpu"):
    """The report of the one case, or the reason of its refusal; what the program wrote to stderr."""
    done = t.run("recon", "-c", conf, "--device", device, "--protocol", protocol, "--json", "-o", out, *data(kind), ok=ok)
    answer = json.loads(done.stdout)
    return (answer["cases"][0] if answer["cases"] else answer["refused"][0]["reason"]), done.stderr


def headers(folder):
    return sorted((pydicom.dcmread(f) for f in glob.glob(os.path.join(folder, "*.dcm"))), key=lambda d: d.InstanceNumber)


def values_of(objects):
    """Of all slices, or of the object that has most of them."""
    if "NumberOfFrames" in objects[0]:
        return volume_tools.of_tomosynthesis(max(objects, key=lambda d: d.get("NumberOfFrames", 1)).filename).values
    return np.array(volume_tools.of_slices(objects).values)


def programs_of(d):
    """Contributing Equipment: name -> (version, description) of processing equipment."""
    return {i.ManufacturerModelName: (i.SoftwareVersions, i.ContributionDescription) for i in d.ContributingEquipmentSequence
            if i.PurposeOfReferenceCodeSequence[0].CodeValue == "109102"}


def median(x):
    """Of 3 x 3 x 3 voxels; the border is repeated."""
    at, padded = (slice(0, -2), slice(1, -1), slice(2, None)), np.pad(x, 1, mode="edge")
    return np.median([padded[k, j, i] for k in at for j in at for i in at], axis=0)


def objects_of(out, case):
    """Kind of object: the object."""
    return {o["kind"]: pydicom.dcmread(os.path.join(out, o["file"])) for o in case["objects"]}


def derivation(d):
    return d.get("DerivationDescription") or d.SharedFunctionalGroupsSequence[0].DerivationImageSequence[0].DerivationDescription


@pytest.mark.parametrize("kind", ("pet", pytest.param("dbt", marks=pytest.mark.tier2("a second kind"))))
def test_the_sample_in_a_running_node(folder, things, kind):
    """Two steps, one after the other: a program that shows what it gets, and the sample. Its median is in the pixels that arrive. The protocol of
    the tomosynthesis is the second one of its route, for which the node has kept its projections."""
    look = write_program(os.path.join(folder, "look.py"), HONEST + 'print(open(os.path.join(folder, "case.json")).read())\nfinish()\n')
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    things += [n, pacs]
    steps = step(look, "look"), step(SAMPLE, "median", version='"1.2"', parameters='"strength=0.5"')
    n.more_protocols = f', {{ name = "stepped"; kind = "{kind}"; {KINDS[kind][0]} steps = ["look", "median"]; }}'
    if kind == "dbt":
        n.protocols = ["quick", "stepped"]
    else:
        n.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "stepped" ]; destinations = [ "pacs" ]; }'
    n.more = f'steps = ( {", ".join(steps)} );\n'
    n.write_conf()
    pacs.start()
    n.start()
    h.send(n.port, data(kind))
    job = n.wait_states(*["delivered"] * (2 if kind == "dbt" else 1))[-1]
    received = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, pacs.files()) if "median" in programs_of(d)}
    recon(write_conf(os.path.join(folder, "own.conf"), *steps, names=("look", "median"), kind=kind), os.path.join(folder, "plain"), "plain", kind=kind)
    plain, own = values_of(headers(os.path.join(folder, "plain"))), values_of(list(received.values()))
    wanted = plain + 0.5 * (median(plain) - plain)
    assert np.abs(own - wanted).max() < (1e-4 * plain.max() if kind == "pet" else 1.1 * 2e-5) and np.abs(own - plain).max() > 0.01 * plain.max()
    d = next(iter(received.values()))
    digest = hashlib.sha256(open(SAMPLE, "rb").read()).hexdigest()
    assert f", median 1.2 (sha256 {digest[:12]}; strength=0.5) changed the volume." in derivation(d)
    version, description = programs_of(d)["median"]
    assert version == "1.2" and digest in description and "strength=0.5" in description and "median of 3 x 3 x 3 voxels" in description
    assert not {i.SOPInstanceUID for i in headers(os.path.join(folder, "plain"))} & set(received)
    first, second = next(e["detail"] for e in n.show(job["id"])["events"] if e["event"] == "reconstructed")["steps"]
    assert (second["name"], second["sha256"], second["exit"]) == ("median", digest, 0) and second["seconds"] > 0 and first["largest_change"] == 0
    log = n.log_text()
    assert "step-ended" in log and '\\"seed\\"' in log
    source = pydicom.dcmread(data(kind)[0])
    said = "\n".join(line for line in log.splitlines() if "step-output" in line)
    for keyword in ("PatientName", "PatientID", "PatientBirthDate", "StudyDate", "StudyInstanceUID", "SOPInstanceUID", "SeriesInstanceUID"):
        value = str(source.get(keyword, ""))
        assert not value or value not in said, f"{keyword} {value} is in case.json"


def real_values(d):
    of = d.get("RealWorldValueMappingSequence") or d.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence
    return of[0].RealWorldValueIntercept + of[0].RealWorldValueSlope * d.pixel_array.astype(float)


def test_all_of_a_tomosynthesis_follows_its_step(folder):
    """A program that doubles: slices, slabs, the synthetic view and their windows are twice those without it. One that fails leaves all as it was."""
    double = write_program(os.path.join(folder, "double.py"), HONEST + "import numpy\nfinish((2 * numpy.frombuffer(volume, '<f4')).tobytes())\n")
    fails = write_program(os.path.join(folder, "fails.py"), HONEST + "sys.exit(3)\n")
    made, notes = {}, {}
    for name, steps, names in (("without", (), ()), ("twice", (step(double),), ("one",)), ("failed", (step(fails, on_failure='"fallback"'),), ("one",))):
        out = os.path.join(folder, name)
        case, _ = recon(write_conf(os.path.join(folder, name + ".conf"), *steps, names=names, kind="dbt"), out, kind="dbt")
        made[name], notes[name] = objects_of(out, case), case["warnings"]
    assert set(made["twice"]) == set(made["without"]) == {"slices", "slabs", "synthetic"}
    for kind, d in made["twice"].items():
        before, failed = made["without"][kind], made["failed"][kind]
        assert "Then one 1.0 (sha256" in derivation(d) and "largest change 100 % of the largest value" in programs_of(d)["one"][1]
        assert d.SOPInstanceUID != before.SOPInstanceUID == failed.SOPInstanceUID
        assert (failed.pixel_array == before.pixel_array).all() and "Without step 'one' 1.0: exit code 3: it failed." in derivation(failed)
        # stored values are rounded, those of half the volume to twice their step
        assert np.abs(real_values(d) - 2 * real_values(before)).max() < 1.6 * 2e-5 * (20 if kind == "synthetic" else 1), kind
        windows = [(w.get("FrameVOILUTSequence") or [w])[0].WindowCenter for w in (o.get("SharedFunctionalGroupsSequence", [o])[0] for o in (d, before))]
        assert abs(windows[0] - 2 * windows[1]) <= 3, (kind, windows)
    assert "Without step 'one' 1.0: exit code 3: it failed." in notes["failed"] and "step" not in notes["without"].lower()


def refused(folder, code, ok=(0, 4), mode="", kind="pet", **keys):
    """Why recon refuses a case whose step is the honest program with this code at its end; nothing is written."""
    text = HONEST.replace("/usr/bin/python3", "/nowhere/python3") if "BAD" in code else HONEST
    program = write_program(os.path.join(folder, "program.py"), text + textwrap.dedent(code))
    conf = write_conf(os.path.join(folder, "a.conf"), step(program, **keys), node=mode, kind=kind)
    if "CHANGED" in code:
        write_program(program, HONEST + "finish()\n")
    if "GONE" in code:
        os.remove(program)
    shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
    reason, _ = recon(conf, os.path.join(folder, "out"), ok=ok, kind=kind)
    if not isinstance(reason, str):
        return "it was delivered"
    assert not os.path.exists(os.path.join(folder, "out")), "something was written"
    return reason


@fenced
@pytest.mark.parametrize("gpu", (False, True))
def test_what_a_hostile_program_can_do(folder, monkeypatch, gpu):
    """Nothing, with the rights for a GPU, too: it tries all in turn, says what succeeded, and makes no output; nothing is delivered. It is told
    which devices it may use: without `gpu` none."""
    name = f"tomonode-test-{os.getpid()}"  # what connects or writes to it reaches this process
    streams, messages = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    streams.bind("\0" + name)
    streams.listen()
    messages.bind("\0" + name + "-m")
    program = write_program(os.path.join(folder, "program.py"), HONEST + f"name = '{name}'\n" + textwrap.dedent("""\
        import ctypes, resource, socket
        print("devices", os.environ["CUDA_VISIBLE_DEVICES"])
        tries = {"network": lambda: socket.socket(), "stream": lambda: socket.socket(socket.AF_UNIX).connect("\\0" + name),
                 "message": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "\\0" + name + "-m"), "signal": lambda: os.kill(os.getppid(), 0),
                 "mode": lambda: os.chmod(sys.argv[0], 0o777), "limit": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (99, 99)),
                 "list": lambda: os.listdir(os.path.dirname(os.path.dirname(sys.argv[0]))), "shared": lambda: open("/dev/shm/steps", "w"),
                 "group": lambda: os.setpgid(0, os.getppid()), "new group": lambda: os.setpgid(os.getpid(), 0) or os.setsid(), "files": lambda: open("/etc/hostname").read(), "input": lambda: open(source, "r+b"),
                 "elsewhere": lambda: open(sys.argv[0] + ".new", "w"), "fork": os.fork, "exec": lambda: os.stat("/bin/sh"), "memory": lambda: bytearray(8 << 30),
                 "sparse": lambda: os.ftruncate(os.open(target + ".100", os.O_CREAT | os.O_WRONLY), 100 << 30), "fifo": lambda: os.mkfifo(target),
                 "link": lambda: os.symlink(source, target),
                 "outlive": lambda: ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) and open("/nowhere")}
        for name, attempt in tries.items():
            try:
                attempt()
                print("succeeded:", name)
            except (OSError, MemoryError):
                pass
        """))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    conf = write_conf(os.path.join(folder, "a.conf"), step(program, gpu=str(gpu).lower()))
    reason, said = recon(conf, os.path.join(folder, "out"), ok=(4,))
    assert reason == "step 'one' 1.0: it made no step.json" and not os.path.exists(os.path.join(folder, "out"))
    assert [line.rpartition(" ")[2] for line in said.splitlines() if "succeeded" in line] == ["exec"], said
    assert f"devices {'7' if gpu else ''}".strip() in [line.rpartition(": ")[2].strip() for line in said.splitlines()]


def test_check_names_a_program_that_others_may_change(folder):
    """Missing, writable by others, another than its digest, in a folder where others can replace it, also through a link: each is a problem."""
    shared = os.path.join(folder, "shared")
    os.makedirs(os.path.join(shared, "below"))
    programs = [write_program(os.path.join(folder, name), HONEST + "finish()\n")
                for name in ("gone.py", "open.py", "other.py", "of-nobody.py", "shared/below/placed.py")]
    os.symlink(programs[4], os.path.join(folder, "linked.py"))
    programs.append(os.path.join(folder, "linked.py"))
    os.chmod(shared, 0o777)
    conf = write_conf(os.path.join(folder, "a.conf"), *[step(p, os.path.basename(p)) for p in programs], names=("other.py",))
    os.remove(programs[0])
    os.chmod(programs[1], 0o775)
    write_program(programs[2], HONEST)
    if os.geteuid() == 0:
        os.chown(programs[3], 65534, 65534)
    problems = json.loads(t.run("check", "-c", conf, "--json", ok=(3,)).stdout)["problems"]
    said = {words[1]: words[2] for words in (p.split("'", 2) for p in problems if p.startswith("step "))}
    assert "cannot be opened" in said["gone.py"] and "may be written by others" in said["open.py"], problems
    assert hashlib.sha256(HONEST.encode()).hexdigest() in said["other.py"]
    assert all(f"{shared}, above {programs[4]}, may be written by everybody" in said[name] for name in ("placed.py", "linked.py")), problems
    assert os.geteuid() != 0 or "belongs to user 65534" in said["of-nobody.py"]


# Name: (code, part of the reason, keys of the step). Each would be delivered if the attempt succeeded. What the sandbox forbids in one call:
# test_what_a_hostile_program_can_do.
HOSTILE = {
    "endless": ("while True: pass", "longer than its time, 1 s", {"time": 1.0}),
    "huge output": ("with open(target, 'wb') as f:\n    while True: f.write(bytes(1 << 20))", ("File too large", "wrote more than"), {}),
    "many files": ("for i in range(9): open(os.path.join(os.environ['TMPDIR'], str(i)), 'wb').write(os.urandom(1 << 25))\nimport time\ntime.sleep(60)",
                   "wrote more than", {}),
    "wrong shape": ("finish(volume[:len(volume) // 2])", "bytes; needed: ", {}),
    "NaN": ("import struct\nfinish(volume[:-4] + struct.pack('<f', float('nan')))", " is nan", {}),
    "infinite": ("import struct\nfinish(struct.pack('<f', float('-inf')) + volume[4:])", "voxel 0 of its volume.f32 is -inf", {}),
    "exit 0 without volume": ("finish()\nos.remove(target)", "it made no volume.f32", {}),
    "changed binary": ("finish()  # CHANGED", "the SHA-256 of its program and files is ", {}),
    "threads": ("import threading\nwhile True: threading.Thread(target=lambda: __import__('time').sleep(60), daemon=True).start()", "can't start new thread", {"memory": '"500 MB"'}),
    "memory": ("x = bytearray(1 << 30)\nfinish()", "MemoryError", {"memory": '"500 MB"'}),
    "invalid JSON": ("finish(told='{')", "its step.json is not valid JSON", {}),
    "JSON of other types": ("finish(told='{\"summary\": \"x\", \"figures\": {\"a\": \"1\"}}')", "'figures' of its step.json", {}),
    "long JSON": ("finish(told='{\"summary\": \"' + 'x' * 70000 + '\"}')", "allowed: 65536", {}),
    "crash": ("import ctypes\nctypes.string_at(0)", "signal 11", {}),
    "killed": ("import signal\nsignal.raise_signal(9)", "signal 9", {}),
    "ptrace": ("import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)\nfinish()", "signal 31", {}),
    "keys": ("import ctypes\nctypes.CDLL(None).syscall(250, 0, 0)\nfinish()", "signal 31", {}),
    "symlink as output": ("finish()\nos.remove(target)\nos.symlink(source, target)", "PermissionError", {}),
    "fifo as output": ("finish()\nos.remove(target)\nos.mkfifo(target)", "PermissionError", {}),
    "folder as output": ("finish()\nos.remove(target)\nos.mkdir(target)", "PermissionError", {}),
    "sleeps": ("import time\nprint('so tired')\nsys.stdout.flush()\ntime.sleep(60)", "longer than its time, 1 s: so tired", {"time": 1.0}),
    "leaves a child behind": ("import subprocess\nsubprocess.Popen(['/bin/sleep', '60'])\nfinish()", "PermissionError", {}),
    "exit code": ("finish()\nsys.exit(7)", "exit code 7", {}),
    "no program": ("finish()  # GONE", "cannot be opened", {}),
    "no interpreter": ("finish()  # BAD", "could not be started", {}),
}
# The same without a sandbox, where the attempt succeeds: what it made is refused.
BARE = {"symlink as output": "its volume.f32 cannot be opened: it is a link", "fifo as output": "is not a regular file", "folder as output": "is not a regular file",
        "leaves a child behind": "it left a process behind", "sleeps": "longer than its time", "huge output": "it "}


@fenced
@pytest.mark.tier2("many programs, some of which run for a second")
@pytest.mark.parametrize("kind,gpu", [*((kind, "false") for kind in KINDS), ("pet", "true")])
def test_hostile_programs(folder, failures, kind, gpu):
    for name, (code, wanted, keys) in HOSTILE.items():
        if gpu == "true" and "signal 31" in wanted:  # where a driver may make any call, these are errors, and its volume is taken
            wanted = "delivered"
        reason = refused(folder, code, kind=kind, gpu=gpu, **keys)
        print(f"{name}: {reason}")
        if not any(w in reason for w in ([wanted] if isinstance(wanted, str) else wanted)) or not reason.startswith(("step 'one' 1.0: ", "it was delivered")):
            failures.append(f"{name}: {reason}")
    for name, wanted in BARE.items():
        reason = refused(folder, HOSTILE[name][0], mode='sandbox = "off";', kind=kind, **HOSTILE[name][2])
        print(f"{name}, without a sandbox: {reason}")
        if wanted not in reason:
            failures.append(f"{name}, without a sandbox: {reason}")
    left = [words for words in map(command_of, filter(str.isdigit, os.listdir("/proc"))) if folder in words]
    assert not left, left


@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="needs an NVIDIA GPU")
def test_a_step_on_the_gpu(folder):
    """With `gpu` it sees the device of the case, and this alone; its volume goes there and back. Without `gpu` the driver finds none."""
    program = write_program(os.path.join(folder, "program.py"), HONEST + textwrap.dedent("""\
        import ctypes
        cuda, n = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        device, context, memory, back = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(len(volume))
        assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value == 1, "no device"
        for rc in (cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device),
                   cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(len(volume))), cuda.cuMemcpyHtoD_v2(memory, volume, ctypes.c_size_t(len(volume))),
                   cuda.cuMemcpyDtoH_v2(back, memory, ctypes.c_size_t(len(volume)))):
            assert rc == 0, rc
        finish(back.raw)
        """))
    for gpu, kind in (("true", "pet"), ("true", "dbt"), ("false", "dbt")):
        conf, out = write_conf(os.path.join(folder, "a.conf"), step(program, gpu=gpu), kind=kind), os.path.join(folder, kind + gpu)
        case, _ = recon(conf, out, ok=(0, 4), kind=kind, device="cuda:0")
        assert isinstance(case, dict) if gpu == "true" else "no device" in case, case


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            return f.read().replace("\0", " ")
    except OSError:
        return ""


@pytest.mark.tier2("three cases of a node, and one beside it")
def test_a_failure_is_said_or_stops(folder, things):
    """hold: the case waits, and a person's retry runs the program that was mended; fail: it has failed; fallback: what the protocol without the
    step makes is delivered, and header and status say so."""
    program = write_program(os.path.join(folder, "program.py"), HONEST + "print('no', file=sys.stderr)\nsys.exit(3)\n")
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    things += [n, pacs]
    names = ("hold", "fail", "fallback")
    n.more_protocols = "".join(f', {{ name = "{name}"; kind = "pet"; {QUICK} steps = ["{name}"]; postfilter = {i + 1}.0; }}' for i, name in enumerate(names))
    n.more_routes = f', {{ name = "pet"; kind = "pet"; protocols = {json.dumps(names)}; destinations = [ "pacs" ]; }}'
    n.more = f'steps = ( {", ".join(step(program, name, on_failure=json.dumps(name)) for name in names)} );\n'
    n.write_conf()
    pacs.start()
    n.start()
    h.send(n.port, data())
    jobs = n.wait_states("held", "failed", "delivered")
    for job, name in zip(jobs, names):
        text = json.dumps(n.show(job["id"]))
        assert f"step '{name}' 1.0: exit code 3: no" in text, text[-2000:]
    received = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, pacs.files())}
    plain = write_conf(os.path.join(folder, "plain.conf"), step(program), protocol=QUICK + " postfilter = 3.0;")
    text = h.read_file(plain).replace('"plain"', '"fallback"')
    h.write_file(plain, text)
    recon(plain, os.path.join(folder, "own"), "fallback")
    own = {d.SOPInstanceUID: d for d in headers(os.path.join(folder, "own"))}
    assert set(received) == set(own) and all((received[uid].pixel_array == own[uid].pixel_array).all() for uid in own)
    assert "Without step 'fallback' 1.0: exit code 3: no: it failed." in next(iter(received.values())).DerivationDescription
    write_program(program, HONEST + "finish()\n")
    old = h.read_file(n.conf)
    n.more = f'steps = ( {", ".join(step(program, name, on_failure=json.dumps(name)) for name in names)} );\n'
    n.reload()
    assert old != open(n.conf, encoding="ascii").read()
    n.command("retry", str(jobs[0]["id"]))
    n.wait_states("delivered", "failed", "delivered")
    check(sum("hold 1.0" in d.DerivationDescription for d in map(pydicom.dcmread, pacs.files())) == len(received), "the step changed the volume")


@pytest.mark.tier2("four cases")
def test_files_of_a_step(folder):
    """A module beside the program is read if `files` has its folder; then its bytes, its name and its links count, as documented."""
    home = os.path.join(folder, "home")
    os.makedirs(os.path.join(home, "more"))
    program = write_program(os.path.join(home, "run.py"), HONEST + "import half\nhalf.check()\nfinish()\n")
    module = write_program(os.path.join(home, "half.py"), "def check():\n    pass\n")
    os.symlink("../half.py", os.path.join(home, "more", "link.py"))

    def digest(*more):
        lines = [f"{hashlib.sha256(open(path, 'rb').read()).hexdigest()}  {path}\n" for path in (program, module, *more, program)]
        return hashlib.sha256("".join([*lines[:2 + len(more)], f"-> ../half.py  {home}/more/link.py\n", lines[-1]]).encode()).hexdigest()
    conf, out = os.path.join(folder, "a.conf"), os.path.join(folder, "out")
    with_files = {"files": f'["{home}"]', "sha256": f'"{digest()}"'}
    assert isinstance(recon(write_conf(conf, step(program, **with_files)), out)[0], dict)
    assert "ModuleNotFoundError" in recon(write_conf(conf, step(program)), out, ok=(4,))[0]
    write_program(module, "def check():\n    pass\n\n")
    assert digest() in recon(write_conf(conf, step(program, **with_files)), out, ok=(4,))[0]
    os.remove(os.path.join(home, "more", "link.py"))
    assert "the SHA-256 of its program and files is" in recon(write_conf(conf, step(program, files=f'["{home}"]', sha256=f'"{digest()}"')), out, ok=(4,))[0]


@pytest.mark.tier2("a case")
def test_what_a_step_says_and_makes(folder):
    """A program by a link from another folder; its output has a 0 byte, more figures than a header holds, and a volume that is nothing like the first."""
    os.mkdir(os.path.join(folder, "home"))
    told = json.dumps({"summary": "s" * 200, "figures": {f"{i:02d} " + "n" * 37: 1.23456e-200 for i in range(16)}})
    program = write_program(os.path.join(folder, "home", "run.py"), HONEST + f"print('before', chr(0), 'after')\nfinish(bytes(len(volume)), {told!r})\n")
    link, out = os.path.join(folder, "link.py"), os.path.join(folder, "out")
    os.symlink(program, link)
    case, said = recon(write_conf(os.path.join(folder, "a.conf"), step(link)), out)
    assert "before ? after" in said and "Step one made another volume (mean -100 %" in case["pet"]["warnings"]
    assert programs_of(headers(out)[0])["one"][1].endswith("n 1.23456e-200; ...")


@pytest.mark.tier2("three runs of each program")
def test_check_runs_steps(folder):
    """What it sees of the sample, with a phantom like the images of its protocols; a program that guesses, and one that doubles, are problems, unless
    their keys say so."""
    dice = write_program(os.path.join(folder, "dice.py"), HONEST + "finish(os.urandom(1)[:1] * 2 + bytes(2) + volume[4:])\n")
    double = write_program(os.path.join(folder, "double.py"), HONEST + "import numpy\nfinish((2 * numpy.frombuffer(volume, '<f4')).tobytes())\n")
    steps = [step(SAMPLE, "median"), step(dice, "dice"), step(double, "double"), step(dice, "dice-said", deterministic="false"),
             step(double, "double-said", preserves_mean="0.0")]
    conf = write_conf(os.path.join(folder, "a.conf"), *steps, names=("median",))
    answer = json.loads(t.run("check", "-c", conf, "--steps", "--json", ok=(3,)).stdout)
    problems = [p for p in answer["problems"] if p.startswith("step ")]
    assert len(problems) == 2 and "'dice': two runs" in problems[0] and "'double': the mean of a constant volume changes by 1;" in problems[1], problems
    told = {words.split()[0]: words for words in answer["steps"]}
    assert set(told) == {"median", "dice", "double", "dice-said", "double-said"}
    assert "the same bits twice; a phantom like PET" in told["median"] and "it says: median of 3 x 3 x 3 voxels, strength 1" in told["median"]
    assert "different bits" in told["dice-said"] and "mean +100 %" in told["double-said"]
    look = write_program(os.path.join(folder, "look.py"), HONEST + "print(json.dumps(json.load(open(os.path.join(folder, 'case.json')))))\nfinish()\n")
    said = t.run("check", "-c", write_conf(conf, step(look), kind="dbt"), "--steps").stderr
    assert [(case["kind"], case["arrays"]["volume"]["unit"], case["grid"]["h"]) for case in cases_of(said)] == 3 * [("dbt", "1/mm", [0.1, 0.1, 1])]


def cases_of(said):
    """What a program got that writes its case.json as a line."""
    return [json.loads(line.split("step one: ", 1)[1]) for line in said.splitlines() if "step one: {" in line]


def positions(case):
    """Of the first voxel of each slice, mm in the patient."""
    matrix, shape = np.array(case["matrix"]).reshape(3, 4), case["arrays"]["volume"]["shape"]
    return [matrix @ (0, 0, k, 1) for k in range(shape[0])]


@pytest.mark.tier2("time frames, beds, parallel beams, and a tomosynthesis")
def test_each_image_and_other_kinds(folder):
    """Two time frames are two runs, each told which it is; joined beds are one volume, at its place in the patient, as a tomosynthesis is; a scan of
    parallel beams has its own unit. The report of the result names the program."""
    look = write_program(os.path.join(folder, "look.py"), HONEST + "print(json.dumps(json.load(open(os.path.join(folder, 'case.json')))))\nfinish()\n")
    conf = os.path.join(folder, "a.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write(f'steps = ( {step(look)} );\nprotocols = ( {{ name = "p"; kind = "pet"; algorithm = "osem"; iterations = 1; subsets = 4; matrix = 32; '
                f'steps = ["one"]; }}, {{ name = "d"; kind = "dbt"; {KINDS["dbt"][0]} steps = ["one"]; }}, '
                '{ name = "c"; kind = "parallel"; algorithm = "fbp"; mu_water = 0.02; steps = ["one"]; } );\n')

    def made(name, protocol, simulate, *options):
        exam, out = os.path.join(folder, name), os.path.join(folder, name + "-out")
        t.run("simulate", *simulate, "-o", exam)
        path = os.path.join(exam, "scan.petsird") if "--petsird" in simulate else exam
        said = t.run("recon", "-c", conf, "--device", "cpu", "--protocol", protocol, *options, "-o", out, path).stderr
        return cases_of(said), headers(out)
    pet = ("pet", "--scanner", "small", "--counts", "2e5")
    frames, _ = made("frames", "p", (*pet, "--petsird"), "--frames", "2x300", "--attribute", "PatientPosition=HFS")
    assert [case["image"] for case in frames] == [{"of": "time frame", "number": k, "count": 2, "duration_ms": 300000, "start_ms": 300000 * (k - 1)}
                                                  for k in (1, 2)]
    assert frames[0]["result"] == {"scale": 1, "offset": 0, "unit": "counts/mm"} and frames[0]["seed"] == frames[1]["seed"]
    (beds,), objects = made("beds", "p", (*pet, "--attenuation", "--beds", "2,32.5"))
    assert beds["arrays"]["volume"] == {"file": "volume.f32", "type": "<f4", "unit": "counts/mm", "shape": [25, 32, 32]} and "image" not in beds
    assert beds["result"]["unit"] == "Bq/ml" and len(objects) == 25
    assert np.allclose(sorted(tuple(p) for p in positions(beds)), sorted(tuple(map(float, d.ImagePositionPatient)) for d in objects), atol=1e-3)
    (breast,), objects = made("breast", "d", KINDS["dbt"][1])
    corners = {tuple(np.array(breast["matrix"]).reshape(3, 4) @ (i, j, 0, 1)) for i in (0, breast["grid"]["n"][0] - 1) for j in (0, breast["grid"]["n"][1] - 1)}
    slices = next(d for d in objects if "NumberOfFrames" in d and d.NumberOfFrames == breast["grid"]["n"][2])
    first = slices.PerFrameFunctionalGroupsSequence[0].PlanePositionSequence[0].ImagePositionPatient
    assert (breast["kind"], breast["quantitative"], breast["result"]) == ("dbt", True, {"scale": 1, "offset": 0, "unit": "1/mm"})
    assert min(np.abs(np.array(c) - [float(x) for x in first]).max() for c in corners) < 1e-3 and "one" in programs_of(slices)
    (lines,), objects = made("lines", "c", ("parallel", "--phantom", "head", "--angles", "60", "--slices", "2"))
    assert (lines["kind"], lines["arrays"]["volume"]["unit"], lines["result"]) == ("parallel", "1/mm", {"scale": 50000, "offset": -1000, "unit": "HU"})
    assert np.allclose(sorted(p[2] for p in positions(lines)), sorted(float(d.ImagePositionPatient[2]) for d in objects), atol=1e-3)
    assert "one" in programs_of(objects[0]) and not t.validator(objects[0].filename)
    t.run("report", "-o", os.path.join(folder, "report"), os.path.join(folder, "lines-out"))
    with open(glob.glob(os.path.join(folder, "report", "*.html"))[0], encoding="utf-8") as f:
        assert "one 1.0 changed the volume: mean +0 %, largest change 0 % of the largest value" in f.read()


class Stepped(exam_kinds.TofChunks):
    """With a step that takes some time."""

    def __init__(self, folder):
        super().__init__(folder)
        self.program = write_program(os.path.join(folder, "slow.py"), HONEST + "import time\ntime.sleep(0.4)\nfinish()\n")

    def configure(self, node):
        self.protocol = exam_kinds.TofChunks.protocol + ' steps = ["one"];'
        super().configure(node)
        node.more += f"steps = ( {step(self.program)} );\n"
        node.write_conf()


def running(node):
    """Process numbers of the program of a step, and of the process that started it."""
    for pid in node.processes():
        if "/steps/1/in" in command_of(pid):
            return pid, int(h.read_file(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])
    return None


@pytest.mark.tier2("a kill of each process while a step runs; TOMONODE_KILLS=100: so many")
def test_kills_while_a_step_runs(folder, things):
    """Of the worker, of the process that starts programs, of all, of the manager: each exam is delivered once, with the same pixels."""
    options, rng = c.arguments(kills=0)
    archive = kill_tools.Partner()
    archive.how = "same"
    node = h.Node(os.path.join(folder, "node"), archive.port, quiet_time=30, device='"cpu:1"')
    archive.node_port = node.port
    node.destination.update(kill_tools.COMMITMENT)
    things += [node, archive]
    os.makedirs(os.path.join(folder, "exam"))
    run = kill_tools.Run(node, archive, Stepped(os.path.join(folder, "exam")), rng)
    run.exams.configure(node)
    c.start(node)
    run.finish(*run.next_exam())
    for i in range(max(options.kills, 8)):
        role = ("worker", "starter", "all", "manager")[i % 4]
        study, objects = run.next_exam()

        def kill():
            pids = wait_for("a step runs", lambda: running(node), 60, 0.002)
            if role == "starter":
                os.kill(pids[1], signal.SIGKILL)
                run.kills += 1
                run.killed.update([role, "at a step"])
            else:
                run.hit(role, "a step")
        killer = threading.Thread(target=kill)
        killer.start()
        run.ledger.send(node.port, objects)
        killer.join()
        run.finish(study, objects)
    assert run.kills >= 8 and not glob.glob(os.path.join(node.spool, "work", "*", "steps"))
    run.conclude("kills while a step runs")
