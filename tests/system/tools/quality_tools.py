# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of tests/quality_pet.py and tests/quality_parallel.py: run a small measurement, and check its
report."""
import importlib.util
import json
import os
import subprocess
import sys

SOURCE, TOMONODE = os.environ["TOMONODE_SOURCE"], os.environ["TOMONODE"]


class Script:
    """Run a measurement script of the folder tests."""

    def __init__(self, name, check):
        self.path, self.check = os.path.join(SOURCE, "tests", name), check

    def call(self, *args):
        done = subprocess.run([sys.executable, self.path, *args], capture_output=True, text=True, check=False)
        self.check(done.returncode == 0, f"{args[0]}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done if done.returncode == 0 else None

    def measure(self, folder, output, results, limits):
        """Run a small measurement; return its results, or None if it failed. limits: expected number of limits, all
        met."""
        done = self.call("run", "--quick", "--tomonode", TOMONODE, "--devices", "cpu", "--work", folder, "-o",
                         output)
        if not done:
            return None
        met = [line for line in done.stdout.splitlines() if line.startswith("met ")]
        self.check(len(met) == limits, f"{len(met)} limits are met, expected {limits}: {done.stdout}")
        with open(results, encoding="ascii") as f:
            return json.load(f)

    def check_page(self, results, folder, page, needs, pictures):
        if not importlib.util.find_spec(needs):
            print(f"skipped: report: {needs} is not installed")
            return
        if not self.call("report", results, "-o", folder):
            return
        with open(os.path.join(folder, page), encoding="utf-8") as f:
            text = f.read()
        self.check("{" not in text and "nan" not in text, "the report has unfilled placeholders or NaN")
        drawn = [line.split("(")[1].split(")")[0] for line in text.splitlines() if line.startswith("![")]
        self.check(len(drawn) == pictures and all(os.path.getsize(os.path.join(folder, p)) > 1000 for p in drawn),
                   f"pictures: {drawn}")
