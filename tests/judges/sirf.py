# SPDX-License-Identifier: Apache-2.0
"""What the gradient tests of SIRF's torch interface call of the package sirf, filled with A.torch and A.T.torch of tomonode.

Theirs prints that a gradcheck of torch failed, and passes; here the test fails. Of their files the tests only use the geometry: a ring, and
several rings; here those of a small scanner.
"""
import sys

import pytest
import tomonode as tn
import torch

__path__, STIR, Gadgetron, SIRF, Utilities = [], *[sys.modules[__name__]] * 4  # functions of the submodules are all here
sys.modules.update({f"sirf.{name}": STIR for name in ("STIR", "Gadgetron", "SIRF", "Utilities", "torch")})
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # as theirs
# Small: gradcheck then notices an adjoint that is 0.4 % wrong, and a step of it changes A'A x by more than the rounding of float32 does.
SCANNER = {"detectors": 48, "ring_spacing": 6, "radius": 40, "radial": 23, "angles": 24}
GEOMETRY = {
    "thorax_single_slice/template_sinogram.hs": tn.Pet(rings=1, **SCANNER),
    "thorax_single_slice/emission.hv": tn.Grid((16, 16, 1), (4, 4, 6)),
    "Utahscat600k_ca_seg4.hs": tn.Pet(rings=3, max_difference=2, **SCANNER),
    "test_image_PM_QP_6.hv": tn.Grid((16, 16, 5), (4, 4, 3)),
}
_gradcheck = torch.autograd.gradcheck


def _check(*given, **more):
    try:
        return _gradcheck(*given, **more)
    except Exception as e:  # pylint: disable=broad-except
        return pytest.fail(str(e))  # raises what theirs does not catch


torch.autograd.gradcheck = _check
sys.modules["torch.autograd.gradcheck"]._run_slow_mode_and_get_error = lambda *_: ""  # minutes for a text with both Jacobians


def set_verbosity(_):
    pass


def MessageRedirector(**_):
    pass


def examples_data_path(modality):
    if modality != "PET":
        raise ValueError(f"{modality}: tomonode has no operator of it")
    return ""


def existing_filepath(_, name):
    return name


class Data:
    """of: a file of theirs, or a scan or grid."""

    def __init__(self, of, values=None):
        self.of = GEOMETRY.get(of, of)
        self.values = torch.zeros(self.of.shape, device=DEVICE) if values is None else values

    @staticmethod
    def set_storage_scheme(_):
        pass

    def get_uniform_copy(self, value):
        return Data(self.of, torch.full_like(self.values, value))

    def clone(self):
        return self

    def __add__(self, value):
        return Data(self.of, self.values + value)


AcquisitionData = ImageData = Data


def sirf_to_torch(data, device, requires_grad=False):
    return data.values.clone().to(device).requires_grad_(requires_grad)


class AcquisitionModelUsingParallelproj:
    """A x + b, in double precision: in a sum of float32 the steps of gradcheck would be lost."""

    def __init__(self):
        self.a, self.b = None, 0

    def set_up(self, data, image):
        self.a = tn.Projector(data.of, image.of, deterministic=True)  # they call torch.use_deterministic_algorithms(True)

    def set_background_term(self, data):
        self.b = data.values

    def forward(self, image):
        return Data(self.a.scan, self(image.values).float())

    def __call__(self, x):
        return self.a.torch(x).double() + self.b


def AdjointOperator(model):
    return model.a.T.torch


def Operator(model, _):
    return model


class Likelihood:
    """Of Poisson data y: the sum of y log(A x + b) - A x - b."""

    def __init__(self, data):
        self.y, self.model = data.values, None

    def set_acquisition_model(self, model):
        self.model = model

    def set_up(self, image):
        pass


make_Poisson_loglikelihood = Likelihood


def ObjectiveFunction(likelihood, _):
    def value(x):
        p = likelihood.model(x)
        return (likelihood.y * p.log() - p).sum()
    return value


def ObjectiveFunctionGradient(likelihood, _):
    return lambda x: likelihood.model.a.T.torch((likelihood.y / likelihood.model(x) - 1).float())
