#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""All cases of all modules of tests/hostile/, and a table of the kinds.

    run.py [--seed S] [--table FILE] [MODULE]...

Prints the seed (--seed, else $TOMONODE_TEST_SEED, else 1): the same seed makes the same cases in the same order. --table writes a table of the cases, with the answer and the sentence of
each, to FILE. Program: $TOMONODE, else build/release/tomonode; its build folder: $TOMONODE_BUILD, else the folder of the program.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
from tools import node_harness as h  # noqa: E402


def modules():
    return sorted(n[:-3] for n in os.listdir(HERE) if n.endswith(".py") and n not in ("hostile.py", "run.py"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=h.seed())
    parser.add_argument("--table")
    parser.add_argument("modules", nargs="*", default=modules())
    options = parser.parse_args()
    program = os.path.realpath(os.environ.get("TOMONODE", os.path.join(SOURCE, "build", "release", "tomonode")))
    env = {"TOMONODE_BUILD": os.path.dirname(program), "TOMONODE_SOURCE": SOURCE, **os.environ, "TOMONODE": program, "TOMONODE_CONF": ""}
    if options.table:
        options.table = os.path.abspath(options.table)
        with open(options.table, "w", encoding="utf-8") as f:
            f.write("# Hostile input\n")
    failed, rows = [], []
    for name in options.modules:
        command = [os.path.join(HERE, name + ".py"), "--seed", str(options.seed)] + (["--table", options.table] if options.table else [])
        print(f"==== {name}: {' '.join(command[1:])}", flush=True)
        p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        for line in p.stdout:
            print(line, end="", flush=True)
            if line.startswith("| "):
                rows.append(line)
        code = p.wait()
        if code not in (0, 77):
            failed.append(name)
    print("\n| kind | cases | crashes | acknowledged objects lost | longest delay of the bystander |\n|---|---|---|---|---|")
    print("".join(rows) + f"seed {options.seed}" + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
