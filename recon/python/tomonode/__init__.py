# SPDX-License-Identifier: Apache-2.0
"""tomonode: projectors and reconstructions of PET, list mode, tomosynthesis and parallel beams on processors and GPUs.

    import numpy as np, tomonode as tn
    scan = tn.Parallel(angles=180, radial=256, bin=1)            # also tn.Pet, tn.Lines, tn.Views
    grid = tn.Grid((256, 256, 1), 1)                             # voxels and their size along x, y, z
    A = tn.Projector(scan, grid)                                 # on a GPU: "cuda:0" as third argument
    x = np.zeros(A.in_shape, np.float32); x[0, 100:150, 100:150] = 1
    y = A(x)                                                     # and A.adjoint(y), A.subset(0, 8), A.torch(x)
    image = tn.reconstruct(scan, y, "algorithm=fbp filter=hann") # tn.help("parallel") lists the keys

Lengths are mm, angles degrees, arrays float32 of numpy, torch, cupy or any library with DLPack: volumes (z, y, x),
sinograms (TOF bin, plane, angle, radial), lines (line,), views (view, v, u), parallel beams (slice, angle, radial).
Ctrl-C ends a reconstruction. After os.fork() open new devices. Not for diagnostic use.
"""
from ._c import TomonodeError, lib as _lib
from ._case import Case, open, write
from ._objects import Adjoint, Device, Grid, Lines, Parallel, Pet, Projector, Scan, Views, default_device, tof_ps
from ._recon import Reconstruction, help, keys, osem, reconstruct

__version__: str = _lib.tn_version(None).decode()
__all__ = ["Adjoint", "Case", "Device", "Grid", "Lines", "Parallel", "Pet", "Projector", "Reconstruction", "Scan",
           "TomonodeError", "Views", "default_device", "help", "keys", "open", "osem", "reconstruct", "tof_ps", "write"]
