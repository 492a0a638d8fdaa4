# SPDX-License-Identifier: Apache-2.0
"""The Python package of libtomonode, on the processor: its structs are those of the header; projectors and reconstructions with numpy, DLPack
and scipy; Ctrl-C, threads, fork; the wheel in an empty environment."""
import ctypes
import importlib.util
import os
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import threading
import time
from types import SimpleNamespace

import pytest
from tools import node_harness as h

np = pytest.importorskip("numpy")
ROOT, BUILD = os.environ["TOMONODE_SOURCE"], os.environ["TOMONODE_BUILD"]
LIBRARY = os.path.join(BUILD, "libtomonode.so.0")
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY) or bool(h.sanitizer()), reason="needs libtomonode without sanitizers")
ENVIRONMENT = {**os.environ, "TOMONODE": h.TOMONODE, "TOMONODE_LIBRARY": LIBRARY, "PYTHONPATH": os.path.join(ROOT, "recon", "python")}


@pytest.fixture(name="tn", scope="module")
def import_package():
    os.environ["TOMONODE_LIBRARY"] = LIBRARY
    sys.path.insert(0, os.path.join(ROOT, "recon", "python"))
    return importlib.import_module("tomonode")


def scan_and_grid(tn):
    return (tn.Pet(rings=5, detectors=80, ring_spacing=6, radius=120, depth=8, radial=29, angles=20, span=3, tof=tn.tof_ps(9, 170, 400)),
            tn.Grid((24, 21, 10), (6, 6.5, 3)))


def random(shape, seed=1):
    return np.random.default_rng(seed).random(shape, np.float32)


def run_python(code, **more):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False, **more)


def test_structs_are_those_of_the_header(tn, folder):
    c = tn._c
    header = os.path.join(ROOT, "recon", "api", "tomonode.h")
    with open(header, encoding="utf-8") as f:
        assert set(re.findall(r"^TN_API [^(]*\b(tn_\w+)\(", f.read(), re.M)) == set(c.SIGNATURES)
    names = {"Err": "tn_err", "Array": "tn_array", "Grid": "tn_grid", "Tof": "tn_tof", "DeviceInfo": "tn_device_info", "Pet": "tn_pet", "Lines": "tn_lines",
             "Views": "tn_views", "Parallel": "tn_parallel", "ScanInfo": "tn_scan_info", "Model": "tn_model", "Layout": "tn_layout",
             "ProjectorInfo": "tn_projector_info", "ReconInfo": "tn_recon_info", "Report": "tn_report"}
    lines = [f'printf("%zu\\n", sizeof(struct {of}));' + "".join(f'printf("%zu\\n", offsetof(struct {of}, {m[0]}));' for m in getattr(c, name)._fields_)
             for name, of in names.items()]
    with open(os.path.join(folder, "a.c"), "w", encoding="utf-8") as f:
        f.write(f'#include <stdio.h>\n#include "{header}"\nint main(void) {{ {" ".join(lines)} return 0; }}\n')
    program = os.path.join(folder, "a")
    subprocess.run(["cc", "-o", program, program + ".c"], check=True)
    found = [int(line) for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()]
    expected = [n for name in names for n in [ctypes.sizeof(getattr(c, name))] + [getattr(getattr(c, name), m[0]).offset for m in getattr(c, name)._fields_]]
    assert found == expected


def test_projector(tn):
    scan, grid = scan_and_grid(tn)
    a = tn.Projector(scan, grid, psf=5)
    x, y = random(a.in_shape), random(a.out_shape, 2)
    ax, aty = a(x), a.T(y)
    forward, back = np.vdot(ax.astype("d"), y), np.vdot(x.astype("d"), aty)
    assert abs(forward - back) <= 1e-6 * forward and a.T.T is a
    native, out = a.image(), a.data()
    native[...] = x
    assert a(native, out=out) is out and np.array_equal(out, ax)
    assert np.array_equal(a(np.asfortranarray(x)), ax) and np.array_equal(a(x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]), ax)
    x.flags.writeable = False
    assert np.array_equal(a(x, out=out, add=True), ax + ax)
    part, whole = a.subset(1, 3), np.zeros_like(ax)
    part(x, out=whole[:, :, 1::3])
    assert np.array_equal(whole[:, :, 1::3], ax[:, :, 1::3]) and not whole[:, :, ::3].any() and part.subset(1, 2).step == 6
    for wrong, words in ((x.astype("d"), "float64; allowed: float32"), (x[1:], "shape"), (np.zeros((0, 3), "f"), "shape"), (np.zeros(a.in_shape, "i4"), "float32"),
                         (np.zeros(a.in_shape, ">f4"), "byte order")):
        with pytest.raises(ValueError, match=words):
            a(wrong)
    with pytest.raises(ValueError, match="only be read"):
        a.adjoint(y, out=x)
    with pytest.raises(TypeError, match="list"):
        a([1, 2])
    with pytest.raises(ValueError, match="stride 0"):
        a(x, out=np.lib.stride_tricks.as_strided(np.zeros(1, "f"), a.out_shape, (0,) * 4))
    with pytest.raises(ValueError, match="number 3 of 3"):
        a.subset(3, 3)
    assert tn.Projector(scan, grid, "cpu:1").device.threads == 1
    with pytest.raises(ValueError, match="'slices'"):
        tn.Projector(scan, grid, model="slices")
    with pytest.raises(tn.TomonodeError, match="cuda:200"):
        tn.Device("cuda:200")


class Foreign:
    """An array of a library that has DLPack only."""

    def __init__(self, a, streams=None):
        self.a, self.streams = a, streams  # streams: said to be on a GPU, and collects the stream that each use names

    def __dlpack__(self, stream=None):
        if self.streams is None:
            assert stream is None
        else:
            self.streams.append(stream)
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__() if self.streams is None else (2, 0)


def test_dlpack(tn):
    a = tn.Projector(*scan_and_grid(tn))
    x = random(a.in_shape)
    y = np.zeros(a.out_shape, np.float32)
    a(Foreign(x), out=Foreign(y))
    assert np.array_equal(y, a(x)) and np.array_equal(a(Foreign(x)), y)
    of_jax = type("ArrayImpl", (Foreign,), {"__module__": "jaxlib._jax"})  # read, but never written, although its pointer is handed out
    assert np.array_equal(a(of_jax(x)), y)
    with pytest.raises(ValueError, match="never change"):
        a(x, out=of_jax(y))
    image = np.zeros((9, 20, 20), np.float32)
    keys = {"iterations": 1, "subsets": 2, "matrix": 20, "deterministic": True}
    tn.osem(a.scan, Foreign(y), out=Foreign(image), **keys)
    assert np.array_equal(image, tn.osem(a.scan, y, **keys)) and image.max() > 0


def test_streams_of_arrays(tn, monkeypatch):
    """What fills the arrays of a call is ordered before its work, once for each library."""
    a = tn.Projector(*scan_and_grid(tn))
    monkeypatch.setattr(a.device, "stream", 7)
    x, y, other = random(a.in_shape), np.zeros(a.out_shape, np.float32), type("Other", (Foreign,), {})
    for of_x, of_y, expected in ((Foreign, Foreign, [7, -1]), (Foreign, other, [7, 7])):
        streams = []
        a(of_x(x, streams), out=of_y(y, streams))
        assert streams == expected
    for of_x, of_y in ((streams, None), (None, streams)):  # one of them in host memory
        streams.clear()
        a(Foreign(x, of_x), out=Foreign(y, of_y))
        assert streams == [7]


def test_tensors_of_a_gpu(tn, monkeypatch):
    """A stand-in for torch: the device's stream waits for the current one of the tensors' GPU, once; a tensor that needs its gradient is left to torch."""
    a = tn.Projector(*scan_and_grid(tn))
    monkeypatch.setattr(a.device, "stream", 8)
    said = []
    cuda = SimpleNamespace(ExternalStream=lambda *of: SimpleNamespace(wait_stream=lambda current: said.append((*of, current))),
                           current_stream=lambda device: device.index + 100)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, utils=SimpleNamespace(dlpack=SimpleNamespace(to_dlpack=lambda t: t.a.__dlpack__()))))
    tensor = type("Tensor", (Foreign,), {"__module__": "torch", "requires_grad": False, "device": SimpleNamespace(index=1)})
    x, y = random(a.in_shape), np.zeros(a.out_shape, np.float32)
    a(tensor(x, said), out=tensor(y, said))
    assert said == [(8, 1, 101)] and np.array_equal(y, a(x))
    tensor.requires_grad = True
    a(tensor(x, said), out=tensor(y, said))
    assert said == [(8, 1, 101), 8, -1]


def test_torch(tn):
    torch = pytest.importorskip("torch")
    a = tn.Projector(*scan_and_grid(tn))
    x = torch.rand((2,) + a.in_shape, requires_grad=True)
    y = a.torch(x)
    g = torch.rand(y.shape)
    y.backward(g)
    assert np.allclose(y[1].detach().numpy(), a(x[1].detach().numpy())) and np.allclose(x.grad[1].numpy(), a.adjoint(g[1].numpy()))


def test_scipy(tn):
    linalg = pytest.importorskip("scipy.sparse.linalg")
    a = tn.Projector(tn.Parallel(angles=40, radial=24, bin=1), tn.Grid((16, 16, 1), 1))
    x = random(a.in_shape)
    found = linalg.lsqr(a.aslinearoperator(), a(x).ravel(), iter_lim=100)[0].reshape(a.in_shape)
    assert np.abs(found - x).mean() < 0.01


def test_scans(tn):
    lines = tn.Lines([[-50, 0, 0], [50, 0, 0], [0, 50, 0]], np.array([[0, 1], [1, 2]]), tof_bin=[0, 1], tof=(2, 60, 20))
    assert lines.shape == (2,) and lines.kind == "lines" and lines.rays().tolist()[1] == [50, 0, 0, 0, 50, 0]
    views = tn.Views([[0, 0, 600, 30, 0, 0, 2, 0, 0, 0, 2, 0]], n_u=30, n_v=44)
    assert views.shape == (1, 44, 30) and np.allclose(views.rays(0, 1), [[0, 0, 600, 1, -43, 0]])
    beams = tn.Parallel(angles=[0, 30, 90], radial=5, bin=2, slices=2)
    assert tn.Parallel(angles=np.int64(4), radial=5, bin=np.float32(2)).shape == (1, 4, 5) and tn.Grid((2, 2, 2), np.float32(3)).h == (3, 3, 3)
    assert beams.shape == (2, 3, 5) and np.allclose(beams.rays(13, 2)[:, :3:2], [[0, 0.5], [0, 0.5]], atol=20)
    for wrong in (lambda: tn.Lines([[0, 0, 0]], [[0, 1, 2]]), lambda: tn.Lines(np.zeros((2, 3)), np.zeros((4, 2))),
                  lambda: tn.Lines([[0, 0, 0], [1, 1, 1]], [[0, 1]], add=[1, 2]), lambda: tn.Grid((1, 2), 3), lambda: tn.Pet(
                      rings=0, radius=1, ring_spacing=1, radial=1, angles=1)):
        with pytest.raises(ValueError):
            wrong()


def test_reconstruct(tn):
    a = tn.Projector(tn.Parallel(angles=120, radial=64, bin=1, slices=2), tn.Grid((64, 64, 2), 1))
    x = np.zeros(a.in_shape, np.float32)
    x[:, 20:40, 24:44] = 0.02
    y = a(x)
    said = []
    image = tn.reconstruct(a.scan, y, "algorithm=fbp", filter="hann", progress=lambda stage, fraction: said.append((stage, fraction)))
    assert abs(image[:, 25:35, 30:40].mean() - 0.02) < 2e-4 and abs(image[:, 50:, :20].mean()) < 2e-4 and said[-1][1] == 1
    assert np.abs(tn.osem(a.scan, y, iterations=10, subsets=8, projector="joseph") - x).max() < 0.01
    with tn.Reconstruction(a.scan, algorithm="sart", iterations=2, subsets=8, non_negative=True) as r:
        assert r.grid == a.grid and r.iterations == 2
        assert 0 < r.put(data=y).run().report["residual"] < 0.2 and r.read().min() >= 0
    scan, _ = scan_and_grid(tn)
    counts = np.random.default_rng(1).poisson(5, scan.shape).astype(np.float32)
    image = tn.osem(scan, counts, factors=np.full(scan.shape[1:], 0.5, "f"), background=np.ones(scan.shape, "f"), iterations=1, subsets=4, matrix=20)
    assert image.shape == (9, 20, 20) and image.max() > 0
    for kind in ("pet", "lines", "views", "parallel"):
        assert {"algorithm", "iterations", "deterministic"} <= {row["key"] for row in tn.keys(kind)}
    with pytest.raises(ValueError, match="'iteration' is no key"):
        tn.reconstruct(scan, counts, iteration=3)
    with pytest.raises(ValueError, match="roles"):
        tn.reconstruct(scan, counts, valid=counts)


def test_an_exception_of_progress_ends_the_run(tn):
    scan, _ = scan_and_grid(tn)

    def stop(stage, fraction):
        raise ZeroDivisionError(stage)

    with pytest.raises(ZeroDivisionError):
        tn.osem(scan, np.ones(scan.shape, "f"), iterations=1000, subsets=10, progress=stop)
    assert tn.osem(scan, np.ones(scan.shape, "f"), iterations=1, subsets=2, matrix=20).max() > 0


def test_interrupt(tn):
    code = """
        import numpy as np, signal, sys, tomonode as tn
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        scan = tn.Pet(rings=9, detectors=160, ring_spacing=6, radius=200, radial=79, angles=80, span=3)
        y = np.ones(scan.shape, "f")
        try:
            tn.osem(scan, y, iterations=1000, subsets=8, progress=lambda *_: print("works", flush=True))
        except KeyboardInterrupt:
            image = tn.osem(scan, y, iterations=1, subsets=8)
            print("interrupted", image.max() > 0)
        """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "works\n"
        p.send_signal(signal.SIGINT)
        assert p.communicate(timeout=120)[0].split("\n")[-2] == "interrupted True"


def test_threads(tn):
    scan, grid = scan_and_grid(tn)
    devices = [tn.Device("cpu:1"), tn.Device("cpu:2")]
    x = random(grid.shape)
    found = [None] * 6

    def work(i):
        a = tn.Projector(scan, grid, devices[i % 2])
        for _ in range(5):
            found[i] = a(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(y, found[0]) for y in found)


def test_fork(tn):
    """In a child of fork(), whose OpenMP threads are gone: the parent's device is refused, a new one works."""
    r = run_python("""
        import multiprocessing, numpy as np, tomonode as tn
        scan, grid = tn.Parallel(angles=60, radial=64, bin=1, slices=4), tn.Grid((64, 64, 4), 1)
        x = np.random.default_rng(1).random(grid.shape, np.float32)
        device = tn.Device("cpu:2")
        a = tn.Projector(scan, grid, device)
        y = a(x)
        def child(i):
            try:
                a(x)
            except tn.TomonodeError as e:
                assert "fork" in str(e), e
                return np.array_equal(tn.Projector(scan, grid, tn.Device("cpu:2"))(x), y)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(child, range(4)))
        assert np.array_equal(a(x), y)
        """)
    assert r.stdout.strip() == "[True, True, True, True]", r.stderr


def test_a_scan_by_hand(tn, monkeypatch):
    """The sample scan with the numbers of its header, which is STIR's, is that which the program reads: every ray, count, factor; z points
    the other way."""
    sample = os.path.join(ROOT, "docs", "samples", "pet")
    monkeypatch.setenv("TOMONODE", h.TOMONODE)
    case = tn.open(os.path.join(sample, "emission.hs"), protocol="pet-osem", options=["--attenuation", os.path.join(sample, "attenuation.hs")])
    scan = tn.Pet(rings=8, detectors=96, ring_spacing=6.5, radius=100, depth=5, bin=2.5, radial=65, angles=48, arc_corrected=True,
                  segments=[(-1, 1), (-4, -2), (2, 4), (-7, -5), (5, 7)], fov_radius=case.about["scan"]["fov_radius"])
    planes = (15, 11, 11, 5, 5)
    assert scan.shape == case.scan.shape == (sum(planes), 48, 65)
    turned = np.concatenate([sum(planes[:i]) + np.arange(n)[::-1] for i, n in enumerate(planes)])
    rays = [s.rays().reshape(*s.shape, 6) for s in (scan, case.scan)]
    assert np.allclose(rays[0][turned] * ([1, 1, -1] * 2), rays[1], atol=1e-9, equal_nan=True)
    for found, name, power in ((case.data, "emission.s", 1), (case.factors, "attenuation.s", -1)):
        assert np.allclose(found, np.fromfile(os.path.join(sample, name), "<f4").reshape(scan.shape)[turned] ** power, rtol=2e-7)


def test_types_and_documentation(tn):
    """Everything public has a docstring; the package says that it has type hints."""
    assert os.path.exists(os.path.join(os.path.dirname(tn.__file__), "py.typed"))
    for name in tn.__all__:
        assert getattr(tn, name).__doc__, name
    assert re.fullmatch(r"\d+\.\d+\.\d+", tn.__version__)


@pytest.mark.tier2("two new environments of Python")
def test_wheel(folder):
    """Installed in an empty environment, without numpy: it loads, and computes with numpy of the system."""
    subprocess.run([os.path.join(ROOT, "deploy", "wheel.sh"), "--build", BUILD, folder], check=True)
    wheel = [f for f in os.listdir(folder) if f.endswith(".whl")]
    assert re.fullmatch(r"tomonode-[0-9.]+-py3-none-linux_\w+\.whl", wheel[0]) and len(wheel) == 1
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TOMONODE"))}
    for site, code in (("", "import tomonode as tn; print(tn.Device('cpu:1').threads)"),
                       ("--system-site-packages", "import numpy as np, tomonode as tn; A = tn.Projector(tn.Parallel(angles=9, radial=9, bin=1), "
                        "tn.Grid((9, 9, 1), 1)); print(A(np.ones(A.in_shape, 'f')).shape, tn.__file__)")):
        venv = os.path.join(folder, "venv" + site)
        made = subprocess.run([sys.executable, "-m", "venv"] + ([site] if site else []) + [venv], capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip("no venv: " + made.stdout.strip().split("\n")[0])
        python = os.path.join(venv, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", os.path.join(folder, wheel[0])], env=environment, check=True)
        begin = time.monotonic()
        said = subprocess.run([python, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout
        print(f"{time.monotonic() - begin:.2f} s")
        assert said == "1\n" if not site else said.startswith("(1, 9, 9) ") and venv in said


def error(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


# What each notebook of docs/samples/library must find, by its variables.
NOTEBOOKS = {
    "pet": lambda v: error(v["image"], v["truth"]) < 0.95 * error(v["without"], v["truth"]) < 0.2,
    "list": lambda v: error(v["image"], v["truth"]) < 0.4,
    "tomosynthesis": lambda v: error(v["images"]["osem"], v["truth"]) < 0.15,
    "beams": lambda v: error(v["image"], v["truth"]) < 0.6 * min(error(v[name], v["truth"]) for name in ("fbp", "sart")),
    "denoiser": lambda v: v["errors"]["learned"] < 0.9 * min(v["errors"]["FBP"], v["errors"]["SART"]),
}


@pytest.mark.tier2("five notebooks")
@pytest.mark.parametrize("name", [f[:-3] for f in sorted(os.listdir(os.path.join(ROOT, "docs", "samples", "library"))) if f.endswith(".py")])
def test_notebooks(folder, monkeypatch, tn, name):
    """Each runs as a program, finds what it says, and ends in a picture."""
    for needed in ("matplotlib", *(["torch"] if name == "denoiser" else [])):
        pytest.importorskip(needed)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert NOTEBOOKS[name](runpy.run_path(os.path.join(ROOT, "docs", "samples", "library", name + ".py")))
    assert os.listdir(folder) == [name + ".png"] and os.path.getsize(name + ".png") > 5000


def test_documents(tn):
    """Each block of docs/library.md runs as it is."""
    blocks = re.findall(r"^```python\n(.*?)^```", h.read_file(os.path.join(ROOT, "docs", "library.md")), re.M | re.S)
    assert len(blocks) == 8
    for block in blocks:
        for needed in re.findall(r"^(?:import|from) (torch|scipy)", block, re.M):
            if importlib.util.find_spec(needed) is None:
                print(f"skipped: {needed} is missing")
                break
        else:
            r = run_python(block, cwd=ROOT)
            assert r.returncode == 0, block + r.stderr
            print(r.stdout)
