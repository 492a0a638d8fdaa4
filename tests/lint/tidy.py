#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over all sources of the product, with the checks of .clang-tidy; the target `tidy` of a build runs it.

usage: tidy.py ROOT BUILD [PATH...]     BUILD: a folder that CMake has configured and that is built (generated headers);
                                        PATH: the files alone whose path has one of these parts.
Exit 0: clean, 1: findings, 2: wrong usage, or no clang-tidy.
It first proves that a planted mistake is found.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FOLDERS = ("kernels", "recon", "dicom", "node")
FINDING = re.compile(r"^(/[^:\n]+:\d+:\d+: (?:warning|error): .*)$", re.M)
PLANTED = "int same(int a);\nint same(int a)\n{\n\treturn a == a;\n}\n"


def sources(root, build, parts):
    """The C and C++ sources that the build compiles, those that take longest (C++ with DCMTK) first."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        paths = {os.path.relpath(c["file"], root) for c in json.load(f)}
    own = [p for p in paths if p.split(os.sep)[0] in FOLDERS and p.endswith((".c", ".cc"))]
    return sorted((p for p in own if not parts or any(part in p for part in parts)), key=lambda p: (not p.endswith(".cc"), p))


def tidy(program, root, build, path):
    """What clang-tidy finds in one source and the headers that it includes: (the findings' first lines, all its words)."""
    done = subprocess.run([program, "--quiet", f"--config-file={root}/.clang-tidy", "-p", build, path], cwd=root, capture_output=True, text=True)
    found = FINDING.findall(done.stdout)
    if done.returncode != 0 and not found:
        found = [f"{os.path.join(root, path)}:1:1: error: clang-tidy ends with {done.returncode}: {done.stderr.strip()[-300:]}"]
    return found, done.stdout


def self_test(program, root):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "planted.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PLANTED)
        with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as f:
            json.dump([{"directory": folder, "file": path, "command": f"cc -c {path}"}], f)
        found, _ = tidy(program, root, folder, path)
    return len(found) == 1 and "misc-redundant-expression" in found[0]


def main(argv):
    if len(argv) < 3 or not os.path.exists(os.path.join(argv[2], "compile_commands.json")):
        print(__doc__, file=sys.stderr)
        return 2
    root, build = os.path.abspath(argv[1]), os.path.abspath(argv[2])
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not program:
        print("tidy: clang-tidy is not installed (deploy/install-deps.sh checks)", file=sys.stderr)
        return 2
    if not self_test(program, root):
        print("tidy: self-test: a planted mistake was not found", file=sys.stderr)
        return 1
    paths, seen = sources(root, build, argv[3:]), set()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for found, words in pool.map(lambda path: tidy(program, root, build, path), paths):
            if set(found) - seen:
                print(words.strip().replace(root + os.sep, ""), flush=True)
            seen.update(found)
    print(f"tidy: {len(seen)} findings, see above" if seen else f"tidy: {len(paths)} sources are clean")
    return 1 if seen or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
