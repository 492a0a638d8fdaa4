#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""List the tests of a run that were skipped, each with its reason.

usage: tests/summary.py FILE... [--longest N] [--no-skips]     FILE: output of `ctest --output-junit` or `pytest --junit-xml`
                                                               --longest N: also list the N longest tests

Under CTest a test that cannot run on this machine prints "skipped: REASON" and ends with exit code 77; for a part of a test it prints
"skipped: PART: REASON". A program of tests/test.h calls skip_because(). A test of pytest calls skip() of tests/system/tools/node_harness.py.
Exit code: 0; 1 if a test was skipped without a reason, or with --no-skips at all; 2 if FILE cannot be read.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as tree

REASON = re.compile(r"\s*skipped: (.+)")
CMOCKA = re.compile(r"\[\s*(RUN|SKIPPED|OK|FAILED)\s*\] (\w+)$")
NONE = "no reason given"


def reasons(output):
    """Return the reason of each skipped part of a test, after the name of the part if it is a cmocka test."""
    found, running, given = [], None, False
    for line in output.splitlines():
        event, reason = CMOCKA.match(line), REASON.match(line)
        if reason:
            found.append(f"{running}: {reason[1]}" if running else reason[1])
            given = True
        elif event and event[1] == "RUN":
            running, given = event[2], False
        elif event and event[2] == running:
            if event[1] == "SKIPPED" and not given:
                found.append(f"{running}: {NONE}")
            running = None
    return found


class Test:
    """The contents of a <testcase>. state: "passed", "failed", "skipped" or "disabled"; skipped: [reasons]."""

    def __init__(self, case):
        status = case.get("status") or self.status_of_pytest(case)
        self.name, self.seconds = case.get("name"), float(case.get("time", 0))
        self.state = {"run": "passed", "notrun": "skipped", "disabled": "disabled"}.get(status, "failed")
        self.skipped = reasons(case.findtext("system-out") or "")
        if not case.get("status"):  # pytest; without a class if the whole module was skipped
            self.name = "::".join(filter(None, (case.get("classname", "").replace(".", "/"), self.name)))
            self.skipped = [case.find("skipped").get("message") or NONE] if self.state == "skipped" else []
            return
        if self.state == "skipped":
            skipped = case.find("skipped")
            message = skipped.get("message", "") if skipped is not None else ""
            if not message.startswith("SKIP_"):  # CTest found no program, or a fixture failed
                self.state, self.skipped = "failed", []
            else:
                self.skipped = self.skipped[-1:] or [NONE]
        elif self.state == "failed":
            self.skipped = []

    @staticmethod
    def status_of_pytest(case):
        if case.find("failure") is not None or case.find("error") is not None:
            return "fail"
        return "run" if case.find("skipped") is None else "notrun"


def duration(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def summary(tests, seconds, longest=0):
    """The report's lines, and whether each test that was skipped says why."""
    count = {state: sum(t.state == state for t in tests) for state in ("passed", "failed", "skipped", "disabled")}
    lines = [f"{len(tests)} test{'s' * (len(tests) != 1)} in {duration(seconds)}: " + ", ".join(f"{n} {state}" for state, n in count.items() if n or state == "passed")]
    parts = [t for t in tests if t.state == "passed" and t.skipped]
    for title, some in (("Skipped", [t for t in tests if t.state == "skipped"]), ("Skipped in part", parts)):
        if some:
            lines += [f"{title}, {sum(len(t.skipped) for t in some)}:"] + [f"  {t.name}: {why}" for t in some for why in t.skipped]
    if not any(t.skipped for t in tests):
        lines.append("Nothing was skipped.")
    if longest:
        lines += ["Longest:"] + [f"  {t.seconds:7.1f} s  {t.name}" for t in sorted(tests, key=lambda t: -t.seconds)[:longest]]
    return lines, not any(why.endswith(NONE) for t in tests for why in t.skipped)


def read(path):
    root = tree.parse(path).getroot()
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    return [Test(case) for case in root.iter("testcase")], sum(float(s.get("time", 0)) for s in suites)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--longest", type=int, default=0)
    parser.add_argument("--no-skips", action="store_true")
    options = parser.parse_args()
    tests, seconds = [], 0
    for path in options.files:
        try:
            more, time = read(path)
        except (OSError, ValueError, tree.ParseError) as e:
            print(f"tests/summary.py: {path}: {e}", file=sys.stderr)
            return 2
        tests += more
        seconds += time
    if not tests:
        print("No test was run.")
        return 1
    lines, reasoned = summary(tests, seconds, options.longest)
    print("\n".join(lines))
    if options.no_skips and any(t.skipped for t in tests):
        print("Nothing may be skipped on this machine (--no-skips).")
        return 1
    return 0 if reasoned else 1


if __name__ == "__main__":
    sys.exit(main())
