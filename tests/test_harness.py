#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/system/tools/node_harness.py: names of tests on the command line, tests of the long form, and seeds."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = """
import sys
sys.path.insert(0, "system")
from tools import node_harness as h

def first(folder, things):
    print("seed", h.seed())

def second(folder, things):
    raise h.LongForm("--rounds N")

h.main([first, second])
"""


def run(*words, seed=None):
    """Exit code, standard output, and standard error of the module."""
    env = {k: v for k, v in os.environ.items() if k != "TOMONODE_TEST_SEED"}
    if seed:
        env["TOMONODE_TEST_SEED"] = seed
    done = subprocess.run([sys.executable, "-c", MODULE, *words], capture_output=True, text=True, cwd=HERE, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    code, out, _ = run()
    assert code == 0 and "ok      first" in out and "long form only: second: --rounds N" in out, out
    code, out, _ = run("second")
    assert code == 0 and "first" not in out, out
    for words in (("frist",), ("first", "frist"), ("--first",)):  # nothing runs if one is mistyped
        code, out, err = run(*words)
        assert code == 2 and not out and f"no test {words[-1]}; there are: first second" in err, (words, code, out, err)
    assert "seed 1\n" in run()[1] and "seed 77\n" in run(seed="77")[1]
    assert len({run("first", seed="random")[1].split("\n")[0] for _ in range(3)}) > 1
    assert run(seed="x")[0] != 0
    print("harness: as expected")


if __name__ == "__main__":
    main()
