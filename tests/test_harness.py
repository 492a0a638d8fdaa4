#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/system/tools/node_harness.py: names of tests on the command line, tests of the long form, seeds, and tests side by side."""
import os
import signal
import subprocess
import sys
import tempfile
import time

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

# The first two wait for each other, so that they pass only side by side; the last one stays.
SIDE_BY_SIDE = """
import os, sys, time
sys.path.insert(0, "system")
from tools import node_harness as h

meeting = sys.argv.pop()

def meet(mine, other):
    print("begin", mine, flush=True)
    open(os.path.join(meeting, mine), "w").close()
    h.wait_for(other, lambda: os.path.exists(os.path.join(meeting, other)), 30)
    print("port", h.free_port(), "end", mine)

def one(folder, things):
    meet("one", "two")

def two(folder, things):
    meet("two", "one")

def three(folder, things):
    h.check(False, "on purpose")

def four(folder, things):
    print("four")

class Thing:
    def stop(self):
        open(os.path.join(meeting, "stopped"), "w").close()

def stays(folder, things):
    things.append(Thing())
    open(os.path.join(meeting, "stays"), "w").close()
    time.sleep(100)

h.sanitizer = lambda: ""
h.main([one, two, three, four] if "stays" not in sys.argv else [stays, four], beside=2)
"""


def side_by_side():
    with tempfile.TemporaryDirectory() as meeting:
        done = subprocess.run([sys.executable, "-c", SIDE_BY_SIDE, meeting], capture_output=True, text=True, cwd=HERE, check=False)
        lines = done.stdout.split("\n")
        assert done.returncode == 1 and "FAILED  three: on purpose" in lines, done
        for name in ("one", "two"):  # what a test prints is not mixed with what others print
            at = lines.index("begin " + name)
            assert lines[at + 1].endswith("end " + name) and lines[at + 2].startswith("ok      " + name), lines
        ports = [int(line.split()[1]) for line in lines if line.startswith("port ")]
        assert ports[0] % 2 != ports[1] % 2, f"ports of the same part: {ports}"
    with tempfile.TemporaryDirectory() as meeting:
        p = subprocess.Popen([sys.executable, "-c", SIDE_BY_SIDE, "stays", "four", meeting], stdout=subprocess.PIPE, text=True, cwd=HERE)
        while not os.path.exists(os.path.join(meeting, "stays")) and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        assert p.wait(30) == 143, p.returncode
        assert os.path.exists(os.path.join(meeting, "stopped")), "what a test started is not stopped"
        p.stdout.close()


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
    side_by_side()
    print("harness: as expected")


if __name__ == "__main__":
    main()
