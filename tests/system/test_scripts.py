# SPDX-License-Identifier: Apache-2.0
"""Tests that are shell scripts, because what they test is made of shell: the installed files, and the Debian
packages."""
import os

import pytest

from tools import node_harness as h

SCRIPTS = ["tests/system/test_install.sh",
           pytest.param("tests/package/test_deb.sh", marks=pytest.mark.tier2("builds packages")),
           pytest.param("tests/package/test_same.sh", marks=pytest.mark.tier2("compiles twice"))]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script):
    """Exit code 77, after a line "skipped: REASON", is a skip; such a line before a success is a part that was
    skipped."""
    done = h.run("bash", os.path.join(os.environ["TOMONODE_SOURCE"], script), code=None, timeout=1700)
    print(done.stdout)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip().splitlines()[-1].removeprefix("skipped: "))
    h.check(done.returncode == 0, f"code {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
