# SPDX-License-Identifier: Apache-2.0
"""The golden corpus (tests/golden.py): images, attributes, headers, pages and printed numbers of whole cases are still
those of the program that wrote golden_values.json. The other tests say what is right; this one, that nothing changed
unseen. No command loses memory."""
import os

import golden
import pytest
from tools import fingerprint
from tools import node_harness as h
from tools.node_harness import check

EXPECTED = golden.read_values()


@pytest.mark.parametrize("name", EXPECTED)
def test_values_of_a_case_are_as_before(folder, failures, name):
    golden.make(h.TOMONODE, golden.CASES[name], folder, {**os.environ, **h.leak_sanitizer()}, h.kept)
    failures += fingerprint.differences(fingerprint.of_folder(folder), EXPECTED[name])


def test_a_change_is_seen():
    """One number of a hundred by 5 %, its sign, the order of two numbers, and each part of a fingerprint."""
    numbers = [1e-5 * 1.2**k for k in range(100)]
    seen = [fingerprint.weighted(numbers, k) for k in range(2)]
    for other in (
        [*numbers[:50], 1.05 * numbers[50], *numbers[51:]],
        [*numbers[:50], -numbers[50], *numbers[51:]],
        [*numbers[:50], numbers[51], numbers[50], *numbers[52:]],
    ):
        changed = [fingerprint.weighted(other, k) for k in range(2)]
        check(max(abs(a - b) for a, b in zip(seen, changed)) > 0.02, (seen, changed))
    one = {"out/*.dcm": [3, 9, 5, *seen, 99, 2.0, 1.0, 0.5, -1.0, 2.0]}
    check(not fingerprint.differences(one, one), "the same")
    for i, (name, most, part) in enumerate(fingerprint.PARTS):
        other = {"out/*.dcm": list(one["out/*.dcm"])}
        other["out/*.dcm"][i] += 1.1 * (most + part * 2) or 1
        check(len(fingerprint.differences(other, one)) == 1, name)
    check(fingerprint.differences({}, one), "no files")
    for revision in ("860691723347", "12345678e901-dirty", "74005ae8c0de"):
        check(not fingerprint.numbers_in(f"(revision {revision}), serial number vm"), f"{revision} is no number")
