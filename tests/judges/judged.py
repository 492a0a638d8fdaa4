# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for foreign tests of our functions: those that must fail, each with the difference of definition that is its reason."""
import re

import judged_parallelproj  # noqa: F401 stands in for the library before the tests import parallelproj
import pytest

KERNEL = ("theirs cut the TOF kernel at num_sigmas of the test and normalise the bins of each plane to 1; ours is cut at 4 sigma, "
          "because the kernel belongs to the scanner")
SUM = "the kernel is wider than all bins together: theirs adds up to 1 in them, ours has the part that they would count"
EXPECTED = (  # of the file and the name of a test, for every array library; then the reason
    # libparallelproj 6db4ae5: 69 tests with numpy and array_api_strict, 22 fail
    (r"test_nontof_fwd_back\.py::test_box_projection",
     "a line that ends exactly on a plane of voxel centres: ours counts the plane, theirs not (84 for 80 mm); other lines are 1 to 3 float32 "
     "steps from 100 mm, the limit is 1.3"),
    (r"test_tof_sinogram_projection\.py::test_tof_sino_fwd\[", KERNEL),
    (r"test_tof_sinogram_projection\.py::test_tof_sino_adjointness\[8\.5-41-", SUM),
    (r"test_tof_sinogram_projection\.py::test_tof_sino_weight_buffer_clamp", SUM),
    # parallelproj 8ab3e0f: 64 tests, 4 fail
    (r"test_tof(lm|sino)_joseph\.py::test_tof_(lm|sino)_fwd\[", KERNEL),
    # astra-toolbox bf7acad
    (r"test_dlpack[23]d\.py::TestAll::test_backends_[fb]p\[.*-jax_",
     "theirs write into arrays of jax; ours refuse, because such an array never changes"),
    # SIRF 5042e06: 15 tests
    (r"test_grad\.py::.*\[MR-2d\]", "tomonode has no operators of magnetic resonance"),
)


def pytest_collection_modifyitems(items):
    for item in items:
        for pattern, reason in EXPECTED:
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=(AssertionError, ValueError)))
