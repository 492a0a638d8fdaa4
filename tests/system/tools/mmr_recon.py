# SPDX-License-Identifier: Apache-2.0
"""Reconstruct list mode of a Siemens mMR that tests write (tools/mmr_tools.py), quickly: a small matrix, one
iteration."""
import glob
import json
import os
import subprocess

import numpy as np
import pydicom

from tools import mmr_tools as mmr
from tools import node_harness as h
from tools.node_harness import check

SCANNER = 'scanners = ( { name = "siemens-mmr"; span = 1; max_difference = 0; } );\n'
QUICK = ('name = "quick-pet"; kind = "pet"; algorithm = "osem"; iterations = 1; subsets = 63; matrix = 12; '
         'slice_spacing = 32.0; fov_radius = 60.0; '
         "deterministic = true;")


def events_at(rng, n):
    """n prompts of ring difference 0 on rays that meet the image, and some delayeds."""
    plane, view, bin_ = rng.integers(0, 64, n), rng.integers(0, mmr.VIEWS, n), rng.integers(144, 201, n)
    return [mmr.event(int(p), int(v), int(b), prompt) for k in range(n) for p, v, b in [(plane[k], view[k], bin_[k])]
            for prompt in ((True, False) if k % 7 == 0 else (True,))]


def raw(folder, words, norm=None, **kwargs):
    os.makedirs(folder, exist_ok=True)
    norm = norm or mmr.Norm(np.random.default_rng(8))
    mmr.write_list(os.path.join(folder, "list.dcm"), words, **kwargs)
    mmr.write_norm(os.path.join(folder, "norm.dcm"), norm)
    return folder


def prompts(events):
    words = np.array(events, np.uint32)
    return words[words >> 30 == 1]


def counted(norm, events):
    """The number of prompts in bins with an efficiency above 0, as the report has them."""
    bins = prompts(events) & (mmr.PROMPT - 1)
    view, bin_ = bins // mmr.BINS % mmr.VIEWS, bins.astype(np.int64) % mmr.BINS - mmr.BINS // 2
    c1 = (view + (bin_ >> 1)) % mmr.CRYSTALS
    c2 = (view - ((bin_ + 1) >> 1) + mmr.CRYSTALS // 2) % mmr.CRYSTALS
    check(norm.efficiency.min() > 0, "the norm has dead detectors")
    return int(((c1 % 9 != 0) & (c2 % 9 != 0)).sum())


def conf_of(folder, more=""):
    path = os.path.join(folder, "quick.conf")
    h.write_file(path, SCANNER + "protocols = ( { " + QUICK + more + " } );\n")
    return path


def objects_in(folder):
    return sorted(map(pydicom.dcmread, glob.glob(os.path.join(folder, "*.dcm"))), key=lambda d: d.InstanceNumber)


def recon(folder, name, source, *options, code=0):
    out = os.path.join(folder, name)
    p = h.run(h.TOMONODE, "recon", "-c", conf_of(folder), "--json", "--device", "cpu:1", "--protocol", "quick-pet",
              *options, "-o", out, source,
              code=code)
    if code:
        return p.stderr
    return objects_in(out), json.loads(p.stdout)["cases"][0]["pet"]


def values(d):
    return d.pixel_array * float(d.RescaleSlope)


def conforms(d, known=()):
    """dciodvfy finds no error. known: parts of wrong ones."""
    p = subprocess.run(["dciodvfy", d.filename], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       check=False)
    check(not [line for line in p.stdout.splitlines() if line.startswith("Error")
               and not any(part in line for part in known)], p.stdout)
