#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/summary.py on a made-up run: every reason is listed, a skip without one is an error."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] whole
[       OK ] whole
[ RUN      ] ipv6
skipped: no IPv6
[  SKIPPED ] ipv6
[==========] 3 test(s) run.
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] ipv6
"""
SILENT = "[ RUN      ] first\n[  SKIPPED ] first\n[ RUN      ] second\nskipped: no disk\n[  SKIPPED ] second\n"
SKIPPED = '<skipped message="SKIP_RETURN_CODE=77"/>'
FAILURES = []


def case(name, status, output, extra="", seconds=1.0):
    return f'<testcase name="{name}" time="{seconds}" status="{status}">{extra}<system-out>{output}</system-out></testcase>'


def check(title, cases, code, *expected, options=()):
    """The program's exit code, and lines of its output, in their order."""
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as f:
        f.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="x" time="125">{"".join(cases)}</testsuite>\n')
        f.flush()
        done = subprocess.run([os.path.join(HERE, "summary.py"), f.name, *options], capture_output=True, text=True, check=False)
    lines = iter(done.stdout.splitlines())
    if done.returncode != code or not all(line in lines for line in expected):
        FAILURES.append(title)
        print(f"FAILED: {title}: code {done.returncode}, expected {code} and {expected}, got:\n{done.stdout}{done.stderr}")


def main():
    check("nothing is skipped", [case("a", "run", "fine")], 0, "1 test in 2 min 5 s: 1 passed", "Nothing was skipped.")
    check("a whole test", [case("a", "run", ""), case("b", "notrun", "more\nskipped: no browser\n", SKIPPED)], 0,
          "2 tests in 2 min 5 s: 1 passed, 1 skipped", "Skipped, 1:", "  b: no browser")
    check("parts", [case("a", "run", CMOCKA), case("b", "run", "  skipped: disk: no tmpfs\nskipped: clock: no clock\n")], 0,
          "Skipped in part, 3:", "  a: ipv6: no IPv6", "  b: disk: no tmpfs", "  b: clock: no clock")
    check("no reason", [case("b", "notrun", "no browser", SKIPPED)], 1, "  b: no reason given")
    check("a part without a reason", [case("a", "run", SILENT)], 1, "Skipped in part, 2:", "  a: first: no reason given", "  a: second: no disk")
    check("failed", [case("a", "fail", "skipped: part: why", '<failure message="Failed"/>'),
                     case("b", "notrun", "", '<skipped message="Unable to find executable"/>')], 0,
          "2 tests in 2 min 5 s: 0 passed, 2 failed", "Nothing was skipped.")
    check("longest", [case("a", "run", "", seconds=1), case("b", "run", "", seconds=30), case("c", "run", "", seconds=2)], 0, "Longest:",
          "     30.0 s  b", "      2.0 s  c", options=("--longest", "2"))
    check("no skips wanted, none there", [case("a", "run", "fine")], 0, "Nothing was skipped.", options=("--no-skips",))
    check("no skips wanted, a whole test", [case("a", "run", ""), case("b", "notrun", "skipped: no GPU\n", SKIPPED)], 1, "  b: no GPU", options=("--no-skips",))
    check("no skips wanted, a part", [case("a", "run", CMOCKA)], 1, "  a: ipv6: no IPv6", options=("--no-skips",))
    check("pytest", ['<testcase classname="system.test_a" name="test_x" time="1"/>',
                     '<testcase classname="system.test_a" name="test_y" time="1"><skipped type="pytest.skip" message="no GPU">f</skipped></testcase>',
                     '<testcase classname="system.test_a" name="test_z" time="1"><failure message="m">skipped: not this</failure></testcase>'], 0,
          "3 tests in 2 min 5 s: 1 passed, 1 failed, 1 skipped", "  system/test_a::test_y: no GPU")
    check("a module of pytest", ['<testcase classname="" name="system.test_a" time="0"><skipped message="no Slurm">f</skipped></testcase>'], 0,
          "1 test in 2 min 5 s: 0 passed, 1 skipped", "  system.test_a: no Slurm")
    check("no test", [], 1, "No test was run.")
    check("no XML", ["<"], 2)
    if FAILURES:
        sys.exit(1)
    print("summary: as expected")


main()
