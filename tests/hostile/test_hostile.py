# SPDX-License-Identifier: Apache-2.0
"""Hostile input of every kind: tier 1 a fixed part of the cases of each module, tier 2 all of them in random order
(hostile.py says what is checked)."""
import importlib

import hostile
import pytest
from tools import node_harness as h


@pytest.mark.long
@pytest.mark.timeout(3600 if h.TIER == 2 else 600)
@pytest.mark.parametrize("name", hostile.modules())
def test_node_withstands(folder, failures, name):
    short = h.TIER == 1
    options = hostile.Options(short, hostile.SHORT_SEED if short else h.seed())
    print(f"seed {options.seed}")
    failures += hostile.run_module(importlib.import_module(name), folder, options)[0]
