# SPDX-License-Identifier: Apache-2.0
"""The interface of the Python module of libparallelproj 2.0.8, filled with tomonode: its tests import this module in place of theirs."""
import tomonode as tn
from judged_lines import host, project

__version__, version_major, version_minor, version_patch = "2.0.8.dev0", 2, 0, 8  # of the interface
cuda_enabled = int(tn.default_device().memory == "cuda")


def _check(start, end, origin, size, values, behind):
    """behind: the last axes of values."""
    shape = tuple(start.shape)
    if len(shape) < 2 or shape[-1] != 3 or shape != tuple(end.shape):
        raise ValueError("lines: needed: starts and ends (..., 3) of one shape")
    if tuple(values.shape) != shape[:-1] + behind:
        raise ValueError(f"values: a shape of {tuple(values.shape)}; needed: {shape[:-1] + behind}")
    if tuple(origin.shape) != (3,) or tuple(size.shape) != (3,):
        raise TypeError("origin, voxel size: needed: 3 numbers")


def _tof(shape, bins, width, sigma, offset, number=None):
    for a in (sigma, offset):
        if tuple(a.shape) not in ((1,), shape):
            raise ValueError(f"TOF: sigma or offset of a shape of {tuple(a.shape)}; allowed: (1,), {shape}")
    return bins, width, host(sigma).ravel(), host(offset).ravel(), number


def _lines(adjoint):
    def function(lor_start, lor_end, image, image_origin, voxel_size, projection_values, device_id=0, threads_per_block=64):
        _check(lor_start, lor_end, image_origin, voxel_size, projection_values, ())
        project(lor_start, lor_end, image, image_origin, voxel_size, projection_values, adjoint)
    return function


def _sinogram(adjoint):
    def function(lor_start, lor_end, image, image_origin, voxel_size, projection_values, tof_bin_width, tof_sigma, tof_center_offset, num_tof_bins,
                 num_sigmas=3.0, device_id=0, threads_per_block=64):
        _check(lor_start, lor_end, image_origin, voxel_size, projection_values, (num_tof_bins,))
        tof = _tof(tuple(lor_start.shape[:-1]), num_tof_bins, tof_bin_width, tof_sigma, tof_center_offset)
        project(lor_start, lor_end, image, image_origin, voxel_size, projection_values, adjoint, tof)
    return function


def _list(adjoint):
    def function(event_start, event_end, image, image_origin, voxel_size, projection_values, tof_bin_width, tof_sigma, tof_center_offset, tof_bin_index,
                 num_tof_bins, num_sigmas=3.0, device_id=0, threads_per_block=64):
        _check(event_start, event_end, image_origin, voxel_size, projection_values, ())
        if event_start.ndim != 2 or tuple(tof_bin_index.shape) != tuple(event_start.shape[:1]):
            raise ValueError("events: needed: starts and ends (events, 3), TOF bins (events,)")
        tof = _tof(tuple(event_start.shape[:-1]), num_tof_bins, tof_bin_width, tof_sigma, tof_center_offset, host(tof_bin_index))
        project(event_start, event_end, image, image_origin, voxel_size, projection_values, adjoint, tof)
    return function


joseph3d_fwd, joseph3d_back = _lines(False), _lines(True)
joseph3d_tof_sino_fwd, joseph3d_tof_sino_back = _sinogram(False), _sinogram(True)
joseph3d_tof_lm_fwd, joseph3d_tof_lm_back = _list(False), _list(True)
