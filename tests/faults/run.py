#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plant faults of one line, one at a time, in a copy of the source tree, and see which test fails.

The faults are those of the list, faults.toml, or random ones (draw.py). For each: plant it, build, and run tests until
one fails. Faults of the list name their tests. For random ones it is found out beforehand which test runs which lines
(traces.py): unit tests and system tests that run the place of the fault, then unit tests that run its function. A test that fails counts only if it passes without the fault. A random fault that does not
compile, or that gives the same instructions, is drawn again.

usage: run.py [OPTION...] [NAME...]     NAME: ID of a fault of the list, or folder (dicom, node/deliver); default: all
  --check           check the list only: patterns fit once, tests and documents exist (the test faults/list)
  --random N        N random faults of the folders
  --each N          N random faults of each folder; default: kernels, recon, dicom, node
  --seed S          of the random faults (default 1): the same seed draws the same faults from the same tree
  --list            print the chosen faults, plant none
  --tier N          1 (default) or 2: what tests read from TOMONODE_TIER
  --units           unit tests only
  --sanitize        for what was not caught: the unit tests that can see it in a build with sanitizers
  --cuda-only       only faults of kernels/cuda, which are left out else; needs nvcc and a GPU, not DCMTK
  --faults FILE     another list
  --work FOLDER     where the copy and the results are (default build/faults)
  --resume          keep the results in FOLDER/results.json of faults that did not change; of an earlier run with --units also
                    what unit tests saw
  --table FILE      the table in Markdown, written after each fault (default FOLDER/table.md)
  --timeout S       limit of one unit test (default 120)
Exit code: 0: tests failed for every fault of the list, or in each layer for 75 % (tier 2: 80 %) of the random ones;
1: not; 2: the list is wrong, or a fault of it does not compile or gives the same instructions.
"""
import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import time

try:
    from listed import read_list
except ModuleNotFoundError:
    print("skipped: Python has no module tomllib (it is part of 3.11)")
    sys.exit(77)
from draw import CUDA, LAYERS, draw, files_to_draw_from
from traces import Traces
from tree import Tree, copy, files_of, read

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NO_MUTANT = ("does not compile", "same instructions")
BY_TEST = ("unit", "system")
HOW = (*BY_TEST, "compiler", "sanitizer", "not caught", *NO_MUTANT)
BUILDS = {
    "faults": ["-DTOMONODE_CUDA=OFF"],
    "asan": ["-DTOMONODE_CUDA=OFF", "-DTOMONODE_SANITIZE=address,undefined"],
    "trace": ["-DTOMONODE_CUDA=OFF"],  # and what trace_options() returns
    "cuda": ["-DTOMONODE_CUDA=ON", "-DTOMONODE_DICOM=OFF", "-DCMAKE_CUDA_ARCHITECTURES=native"],
}
NEEDED = {1: 0.75, 2: 0.8}  # the share of random faults that tests must see


def trace_options(work):
    """What makes CMake build programs that mark their code (trace.c), and libraries that do not."""
    options, source, nothing = [], os.path.join(HERE, "trace.c"), ["-DTRACE_NOTHING"]
    for kind, more in (("EXE", []), ("MODULE", nothing), ("SHARED", nothing)):
        made = os.path.join(work, f"trace-{kind}.o")
        subprocess.run(["cc", "-O2", "-fPIC", *more, "-c", source, "-o", made], check=True)
        options.append(f"-DCMAKE_{kind}_LINKER_FLAGS={made}")
    return options + [f"-DCMAKE_{one}_FLAGS=-fsanitize-coverage=trace-pc" for one in ("C", "CXX")]


# ---- one fault ----


def try_fault(tree, fault, units):
    """Return how it is caught, the test, and why this fails."""
    tree.warnings.clear()
    objects = tree.changed(fault)
    if objects is None:
        return "does not compile", "", ""
    if not objects and fault.file in tree.objects:
        return "same instructions", "", ""
    warnings, broken = list(tree.warnings), []
    while True:  # until a test fails that passes without the fault
        with tree.planted(fault):
            test, why = first_failure(tree, tree.stages(fault, objects, units), broken)
        if test is None or tree.passes(test):
            break
        broken.append(test)
    if test:
        return "system" if test.startswith("tests/") else "unit", test, why
    if warnings:
        return "compiler", warnings[0], ""
    return "not caught", "", "fail without the fault: " + ", ".join(broken) if broken else ""


def first_failure(tree, stages, broken):
    for tests in stages:
        test, why = tree.first_failure(tests, broken)
        if test:
            return test, why
    return None, ""


def digest(fault, args):
    text = json.dumps([fault.file, fault.at, fault.old, fault.new, fault.tests, args.tier])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_decided(known, fault, args):
    """Is this result of an earlier run that of this run? What unit tests alone did not see, system tests may."""
    if not known or known["digest"] != digest(fault, args):
        return False
    return known.get("units") == args.units or known["how"] in ("unit", *NO_MUTANT)


# ---- all of them ----


class Run:
    def __init__(self, root, args):
        self.root, self.args, self.rows, self.known, self.trees = root, args, [], {}, {}
        self.path = os.path.join(args.work, "results.json")
        self.table = args.table or os.path.join(args.work, "table.md")
        if args.resume and os.path.exists(self.path):
            self.known = json.loads(read(self.path))

    def tree(self, name):
        """The build with this name, made when it is first needed."""
        if name not in self.trees:
            log = open(os.path.join(self.args.work, f"log-{name}"), "w", encoding="utf-8")
            options = BUILDS[name] + (trace_options(self.args.work) if name == "trace" else [])
            self.trees[name] = Tree(self.root, name, options, log, self.args)
        return self.trees[name]

    def traced(self):
        """Which test runs what: found out once, kept in the folder."""
        path = os.path.join(self.args.work, "traces.json")
        if not os.path.exists(path):
            self.tree("trace").trace(os.path.join(self.args.work, "traces")).save(path)
        return Traces(self.root, []).load(path)

    def result(self, fault):
        """Try it, if its result is not known; return how it is caught."""
        known = self.known.get(fault.id)
        if not is_decided(known, fault, self.args):
            tree = self.tree("cuda" if self.args.cuda_only else "faults")
            if not fault.tests and not self.args.cuda_only and not tree.traces:
                tree.traces = self.traced()
            began = time.monotonic()
            how, test, why = try_fault(tree, fault, self.args.units)
            if how == "not caught" and self.args.sanitize:
                asan = try_fault(self.tree("asan"), fault, True)
                how, test, why = ("sanitizer", *asan[1:]) if asan[0] == "unit" else (how, test, why)
            known = {
                "how": how,
                "test": test,
                "why": why,
                "place": fault.described(read(self.root, fault.file)),
                "seconds": round(time.monotonic() - began, 1),
                "digest": digest(fault, self.args),
                "units": self.args.units,
            }
        self.known[fault.id] = known
        self.rows.append((fault, known))
        self.write()
        print(f"{known['how']:10} {fault.id} ({known['seconds']} s) {known['test']} {known['why'][:120]}")
        print(f"{'':10} {known['place']}", flush=True)
        return known["how"]

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(self.known, f, indent=1)
        os.replace(self.path + ".new", self.path)
        with open(self.table, "w", encoding="utf-8") as f:
            f.write(self.shares()[0] + "\n| fault | what | place | caught by |\n|---|---|---|---|\n")
            for fault, known in self.rows:
                place, by = known["place"].replace("|", "\\|"), known["test"] or f"**{known['how']}**"
                f.write(f"| {fault.id} | {fault.breaks} | `{place}` | {by} |\n")

    def shares(self):
        """Return the table of folders, and the least share that tests caught."""
        text = "| folder | faults | " + " | ".join(HOW) + " | by tests |\n|---|" + "---|" * (len(HOW) + 2) + "\n"
        least = 1
        for folder in sorted({fault.file.partition("/")[0] for fault, _ in self.rows}):
            hows = [known["how"] for fault, known in self.rows if fault.file.startswith(folder + "/")]
            n = sum(how not in NO_MUTANT for how in hows)
            share = sum(how in BY_TEST for how in hows) / max(n, 1)
            least = min(least, share)
            counts = " | ".join(str(hows.count(how)) for how in HOW)
            text += f"| {folder} | {n} | {counts} | {100 * share:.0f} % |\n"
        return text, least


def chosen(faults, args):
    names = args.names or [""]
    return [
        f
        for f in faults
        if f.file.startswith(CUDA) == args.cuda_only
        and any(f.id == name or (f.file + "/").startswith(name.rstrip("/") + "/") or not name for name in names)
    ]


def drawn(root, args):
    """[(an endless sequence of random faults, how many of them are wanted)]"""
    folders, files = args.names or ([CUDA.strip("/")] if args.cuda_only else LAYERS), files_of(root)
    groups = []
    for group in [[folder] for folder in folders] if args.each else [folders]:
        name = f"{args.seed}-" + "-".join(group).replace("/", "-")
        files_of_group = files_to_draw_from(files, group, args.cuda_only)
        groups.append((draw(root, files_of_group, args.seed, name), args.each or args.random))
    return groups


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    for flag in ("--check", "--list", "--units", "--sanitize", "--cuda-only", "--resume"):
        parser.add_argument(flag, action="store_true")
    for number, default in (("--random", 0), ("--each", 0), ("--seed", 1), ("--tier", 1), ("--timeout", 120)):
        parser.add_argument(number, type=int, default=default)
    parser.add_argument("--faults", default=os.path.join(HERE, "faults.toml"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "faults"))
    parser.add_argument("--table")
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    args.units = args.units or args.cuda_only
    return args


def main():
    args = arguments()
    root, faults = ROOT, []
    if not args.list and not args.check:
        root = os.path.join(args.work, "tree")
        copy(ROOT, root)
    if args.random or args.each:
        groups = drawn(root, args)
    else:
        faults, wrong = read_list(root, args.faults)
        print("\n".join(wrong), end="\n" if wrong else "")
        if wrong or args.check:
            return 2 if wrong else 0
        groups = [(chosen(faults, args), len(faults))]
    if args.list:
        for group, n in groups:
            for fault in itertools.islice(group, n):
                print(f"{fault.id}  {fault.breaks}\n    {fault.described(read(root, fault.file))}")
        return 0
    run = Run(root, args)
    for group, n in groups:
        mutants = (fault for fault in group if run.result(fault) not in NO_MUTANT)
        for _ in itertools.islice(mutants, n):
            pass
    text, least = run.shares()
    print(text)
    none = [fault.id for fault, known in run.rows if faults and known["how"] in NO_MUTANT]
    if none:
        print("no faults, correct the list: " + ", ".join(none))
        return 2
    return 0 if least >= (1 if faults else NEEDED[args.tier]) else 1


if __name__ == "__main__":
    sys.exit(main())
