# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that gives parallelproj 1.10 our functions in place of its C library, and of the kernels that it has for cupy."""
import os
from types import SimpleNamespace

import numpy as np
from judged_lines import host, project

os.environ.update(PARALLELPROJ_C_LIB="/tomonode", PARALLELPROJ_CUDA_LIB="/tomonode_cuda", PARALLELPROJ_CUDA_KERNEL_FILE=os.devnull)


def _function(adjoint, kind):
    def function(start, end, image, origin, size, values, _, shape, width=0, sigma=None, offset=None, __=None, bins=None, *___):
        tof = None
        if kind == "sino":
            tof = int(bins), float(width), host(sigma), host(offset), None
        elif kind == "lm":  # bin 0 is in the middle of a line
            number = host(bins).astype(np.int32)
            most = int(np.abs(number).max())
            tof = 2 * most + 1, float(width), host(sigma), host(offset), number + most
        project(start, end, image.reshape(tuple(int(n) for n in shape)), origin, size, values, adjoint, tof)
    return function


LIBRARY = SimpleNamespace(**{"joseph3d_" + name + ("_tof_" + kind if kind else ""): _function(name == "back", kind)
                             for name in ("fwd", "back") for kind in ("", "sino", "lm")})
# for arrays of the host: the copies of an image on their devices are one in the host's memory
CUDA = SimpleNamespace(**{name + "_cuda": function for name, function in vars(LIBRARY).items()}, get_cuda_device_count=lambda: 1,
                       copy_float_array_to_all_devices=lambda a, _: a.copy(), free_float_array_on_all_devices=lambda _: None,
                       sum_float_arrays_on_first_device=lambda *_: None, get_float_array_from_device=lambda d, _, __, a: np.copyto(a, d))
_load = np.ctypeslib.load_library
np.ctypeslib.load_library = lambda name, folder: {"tomonode": LIBRARY, "tomonode_cuda": CUDA}.get(name) or _load(name, folder)
try:
    import cupy
except ImportError:
    pass
else:
    _kernel = cupy.RawKernel


    def _raw_kernel(text, name, *more):
        """Theirs, whose text is empty: NAME_cuda_kernel has the arguments of NAME, of a sinogram the number of bins before the others of TOF."""
        if text:
            return _kernel(text, name, *more)
        function = getattr(LIBRARY, name[:-len("_cuda_kernel")])
        return lambda blocks, threads, a: function(*(a[:8] + a[9:13] + a[8:9] if "sino" in name else a))

    cupy.RawKernel = _raw_kernel
