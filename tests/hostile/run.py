#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""All cases of all modules of tests/hostile/, and a table of the kinds.

    run.py [--seed S] [--table FILE] [--group N] [--case TEXT]... [MODULE]...

Prints the seed (--seed, else $TOMONODE_TEST_SEED, else 1): the same seed makes the same cases in the same order.
--table writes a table of the cases, with the answer and the sentence of each, to FILE. --case: only those whose name
has the text. Program: $TOMONODE, else build/release/tomonode; its build folder: $TOMONODE_BUILD, else the folder of the
program. test_hostile.py runs the same under pytest.
"""
import argparse
import importlib
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.path.realpath(os.environ.get("TOMONODE", os.path.join(SOURCE, "build", "release", "tomonode")))
os.environ.update({"TOMONODE_BUILD": os.path.dirname(PROGRAM), "TOMONODE_SOURCE": SOURCE, **os.environ,
                   "TOMONODE": PROGRAM, "TOMONODE_CONF": ""})
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
import hostile  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=hostile.h.seed())
    parser.add_argument("--table", default="")
    parser.add_argument("--group", type=int, default=20)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("modules", nargs="*", default=hostile.modules())
    options = parser.parse_args()
    chosen = hostile.Options(seed=options.seed, names=tuple(options.case), table=options.table, group=options.group)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as f:
            f.write("# Hostile input\n")
    failed, rows = [], []
    for name in options.modules:
        print(f"==== {name} --seed {options.seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="tomonode-hostile-") as folder:
            wrong, row = hostile.run_module(importlib.import_module(name), folder, chosen)
        for bad in wrong:
            print(f"FAILED  {bad}", flush=True)
        rows.append(row)
        failed += [name] if wrong else []
    print("\n| kind | cases | crashes | acknowledged objects lost | longest delay of the bystander |")
    print("|---|---|---|---|---|")
    print("".join(rows) + f"seed {options.seed}" + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
