#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public library on a GPU: gaps of the projectors, agreement with the processor, and, with torch or cupy, arrays of the GPU in place;
with torch the notebook of a learned reconstruction, which writes its picture here.

usage: library.py [DEVICE]     DEVICE: cuda:0. The package tomonode is installed (deploy/wheel.sh), or PYTHONPATH and TOMONODE_LIBRARY name it.
Prints a line for each check; exit code 1: one has failed.
"""
import importlib.util
import os
import runpy
import sys
import time

import numpy as np
import tomonode as tn

GAP, AGREE = 1e-5, 2e-4  # the project's limit for transposes; of float32 sums in another order, relative to the largest value
TOF_AGREE = 1e-3  # the kernel ends at 4 sigma, where it is 3.4e-4 of its largest value: rounding decides about a sample there
failed = 0


def check(good, *words):
    global failed
    failed += not good
    print("ok    " if good else "FAILED", *words, flush=True)


def cases():
    rng = np.random.default_rng(1)
    ends = rng.normal(size=(2000, 3))
    ends *= 150 / np.linalg.norm(ends, axis=1)[:, None]
    pairs = rng.integers(0, len(ends), (300000, 2))
    pet = {"rings": 24, "detectors": 256, "ring_spacing": 6, "radius": 200, "radial": 127, "angles": 128}
    angles = np.deg2rad(np.linspace(-20, 20, 15))
    still = [[0, 650 * np.sin(a), 650 * np.cos(a), 100, 0, 0, 1, 0, 0, 0, 1, 0] for a in angles]
    turning = [[0, 650 * np.sin(a), 650 * np.cos(a), 100, 0, 0, 1, 0, 0, 0, np.cos(a / 2), -np.sin(a / 2)] for a in angles]
    cylinder, ball, breast = tn.Grid((96, 90, 47), (3, 3, 3)), tn.Grid((64, 60, 50), 4), tn.Grid((200, 300, 30), 1, lo=(0, -150, 45))
    yield "PET", tn.Pet(span=3, **pet), cylinder, {}
    yield "PET, siddon, subset", tn.Pet(span=3, **pet), cylinder, {"model": "siddon", "first": 1, "step": 8}
    yield "PET, span 2, TOF, PSF", tn.Pet(span=2, max_difference=11, tof=tn.tof_ps(9, 330, 400), **pet), cylinder, {"psf": 5}
    yield "lines", tn.Lines(ends, pairs), ball, {}
    yield "lines, TOF, PSF", tn.Lines(ends, pairs, tof_bin=rng.integers(0, 9, len(pairs)), tof=tn.tof_ps(9, 330, 400)), ball, {"psf": 6}
    yield "lines, few voxels", tn.Lines(ends, np.tile(pairs, (10, 1))), tn.Grid((8, 7, 6), 30), {}
    yield "views", tn.Views(still, n_u=200, n_v=300), breast, {}
    yield "views, turning", tn.Views(turning, n_u=200, n_v=300), tn.Grid((200, 200, 30), 1, lo=(0, -100, 60)), {}
    yield "parallel", tn.Parallel(angles=180, radial=256, bin=1, slices=8), tn.Grid((256, 256, 8), 1), {}


def gap_of(a, x, y):
    forward, back = np.vdot(a(x).astype("d"), y), np.vdot(x.astype("d"), a.T(y))
    return abs(forward - back) / abs(forward)


def library(name):
    """Of torch or cupy: from numpy, to numpy, address, and free bytes of the GPU."""
    if name == "torch":
        import torch
        return (lambda x: torch.from_numpy(np.ascontiguousarray(x)).cuda(), lambda x: x.cpu().numpy(), lambda x: x.data_ptr(),
                torch.cuda.synchronize, lambda: torch.cuda.mem_get_info()[0])
    import cupy
    return (cupy.asarray, cupy.asnumpy, lambda x: x.data.ptr, cupy.cuda.runtime.deviceSynchronize, lambda: cupy.cuda.runtime.memGetInfo()[0])


def check_in_place(name, what, a, x, y):
    make, back, address, wait, free = library(name)
    gx, gy = make(x), make(y)
    native_x, native_y = a.image(like=gx), a.data(like=gy)
    native_x[...], native_y[...] = gx, gy
    wait()
    ax, aty = back(a(gx)), back(a.T(gy))
    used = free()
    at = address(native_x), address(native_y)
    times = []
    for arrays in ((native_x, native_y), (gx, gy)):
        for _ in range(3):
            begin = time.perf_counter()
            a(arrays[0], out=arrays[1])
            a.T(arrays[1], out=arrays[0])
            times.append(time.perf_counter() - begin)
    check(free() >= used and at == (address(native_x), address(native_y)), f"{what}, {name}: no memory is allocated in a call, addresses remain")
    native_x[...] = make(x)
    wait()
    check(np.abs(back(a(native_x)) - ax).max() <= AGREE * np.abs(ax).max(), f"{what}, {name}: the same in C order and with native strides")
    check(np.abs(ax - a(x)).max() <= AGREE * np.abs(ax).max() and np.abs(aty - a.T(y)).max() <= AGREE * np.abs(aty).max(),
          f"{what}, {name}: the same from the GPU and from the host; C order takes {min(times[3:]) / min(times[:3]):.2f} of the time of native strides")


def check_notebook():
    """A network learns through the projectors of the GPU (docs/samples/library/denoiser.py)."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "samples", "library", "denoiser.py")
    if importlib.util.find_spec("matplotlib") is None or not os.path.exists(path):
        print("skipped: the notebook with torch needs matplotlib and docs/samples")
        return
    os.environ.setdefault("MPLBACKEND", "Agg")
    begin = time.monotonic()
    errors = runpy.run_path(path)["errors"]
    check(errors["learned"] < 0.7 * min(errors["FBP"], errors["SART"]), f"torch: a network has learned in {time.monotonic() - begin:.0f} s:", errors)


def main():
    device, processor = tn.Device(sys.argv[1] if len(sys.argv) > 1 else "cuda:0"), tn.Device("cpu")
    print(device, processor)
    libraries = []
    for name in ("torch", "cupy"):
        try:
            library(name)
            libraries.append(name)
        except ImportError:
            print(f"skipped: {name} is not installed")
    for what, scan, grid, model in cases():
        a, b = tn.Projector(scan, grid, device, **model), tn.Projector(scan, grid, processor, **model)
        rng = np.random.default_rng(2)
        x, y = rng.random(a.in_shape, np.float32), rng.random(a.out_shape, np.float32)
        gap = gap_of(a, x, y)
        check(gap <= GAP, f"{what}: gap {gap:.1e}")
        for word, found, expected in (("A x", a(x), b(x)), ("A'y", a.T(y), b.T(y))):
            difference = np.abs(found - expected).max() / np.abs(expected).max()
            limit = TOF_AGREE if "TOF" in what else AGREE
            check(difference <= limit, f"{what}: {word} differs from the processor's by {difference:.1e} of its largest value")
        for name in libraries:
            check_in_place(name, what, a, x, y)
    scan = tn.Pet(rings=12, detectors=256, ring_spacing=6, radius=200, radial=127, angles=128, span=3)
    grid = tn.Grid((96, 96, 23), 3)
    x = np.zeros(grid.shape, np.float32)
    x[5:18, 30:60, 30:60] = 1
    y = np.maximum(tn.Projector(scan, grid, device)(x), 0)  # float32: a bin beside the object can be -1e-6
    images = [tn.osem(scan, y, device=d, grid=grid, iterations=2, subsets=8, projector="joseph") for d in (device, processor)]
    check(np.abs(images[0] - images[1]).max() <= 1e-3 * images[1].max(), "OSEM: the image of the processor")
    if "torch" in libraries:
        import torch
        current = torch.cuda.current_device()
        a = tn.Projector(scan, grid, device)
        t = torch.from_numpy(x).cuda().requires_grad_()
        loss = ((a.torch(t) - torch.from_numpy(y).cuda() * 2) ** 2).sum()
        loss.backward()
        expected = -2 * a.T(y)
        check(np.abs(t.grad.cpu().numpy() - expected).max() <= 1e-3 * np.abs(expected).max(), "torch: gradient on the GPU")
        image = tn.osem(scan, torch.from_numpy(y).cuda(), device=device, grid=grid, iterations=2, subsets=8, projector="joseph")
        check(image.is_cuda and np.abs(image.cpu().numpy() - images[0]).max() <= 1e-3 * images[0].max(), "torch: a reconstruction from and to the GPU")
        check(torch.cuda.current_device() == current, "torch: the current device remains")
        last = f"cuda:{torch.cuda.device_count() - 1}"  # with several GPUs: not torch's current one
        projected = tn.Projector(scan, grid, last)(torch.from_numpy(x).to(last))
        check(projected.device == torch.device(last) and np.abs(projected.cpu().numpy() - a(x)).max() <= AGREE * y.max(), f"torch: tensors of {last}")
        check_notebook()
        try:
            tn.Projector(scan, grid, processor)(t.detach())
            check(False, "an array of the GPU is refused by the processor")
        except ValueError as e:
            check("GPU" in str(e), f"an array of the GPU is refused by the processor: {e}")
    print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
