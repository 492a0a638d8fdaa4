# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts that measure images: running the program, the command line, the verdict."""
import argparse
import json
import os
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUNDLED = os.path.join(TOP, "bin", "tomonode")
PROGRAM = BUNDLED if os.path.isfile(BUNDLED) else os.path.join(TOP, "build", "release", "tomonode")


def kind_of(device):
    return device.split(":")[0]


class Programs:
    """Run the program."""

    def __init__(self, tomonode):
        self.tomonode = os.path.abspath(tomonode)

    def __call__(self, *args):
        done = subprocess.run([self.tomonode, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"tomonode {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout


def log_progress(began, text):
    print(f"{time.monotonic() - began:6.1f} s  {text}", file=sys.stderr, flush=True)


# Options that several scripts have, for command().
TOMONODE = {"default": os.environ.get("TOMONODE", PROGRAM)}
ONLY = {"default": "", "help": "regular expression: only the rows whose name matches"}
QUICK = {"action": "store_true", "help": "run only a little, to test the script"}
WORK = {"help": "existing folder for large files; default: the folder for temporary files"}
OF_PAGES = {"tomonode": TOMONODE, "devices": {"default": "cpu", "help": "default cpu"}, "quick": QUICK, "work": WORK}


def command(text, run, report, several=False, **options):
    """Parse the command line of a measurement script and execute it. options: those of `run` beside --output, by name, as arguments of
    argparse. several: `report` takes several files of results."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="command", required=True)
    r = sub.add_parser("run")
    for name, option in options.items():
        r.add_argument("--" + name.replace("_", "-"), **option)
    r.add_argument("-o", "--output", required=True)
    r = sub.add_parser("report")
    r.add_argument("results", nargs="+" if several else None)
    r.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    sys.exit((run if args.command == "run" else report)(args))


def write_json(path, results):
    with open(path, "w", encoding="ascii") as f:
        json.dump(results, f)


def read_json(path):
    with open(path, encoding="ascii") as f:
        return json.load(f)


def print_verdicts(worst, seconds):
    """Print each quantity with its limit; return the exit code: 0 if every limit is met."""
    for what, value, most, unit, kept in worst:
        print(f"{'met    ' if kept else 'NOT MET'}  {what}: {value:.3g} {unit}, limit {most:g}")
    print(f"{seconds:.0f} s in all")
    return 0 if all(kept for *_, kept in worst) else 1
