#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The line of the licence that every source begins with, after "#!" where there is one.

usage: spdx.py check ROOT     exit 0: every source has it, 1: findings (file:line: why)
       spdx.py write ROOT     insert it where it is missing
"""
import os
import sys

LINE = "SPDX-License-Identifier: Apache-2.0"
BLOCK = (".c", ".h", ".cc", ".hh", ".cu", ".cuh", ".js", ".css")
HASH = (".py", ".sh", ".cmake", "CMakeLists.txt")
FOLDERS = ("kernels", "recon", "dicom", "node", "tests", "deploy", ".ci")
SKIPPED = ("corpus", "__pycache__")


def sources(root):
    for name in sorted(os.listdir(root)):
        if name.endswith(BLOCK + HASH):
            yield name
    for top in FOLDERS:
        for at, folders, files in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if f not in SKIPPED)
            for name in sorted(files):
                path = os.path.relpath(os.path.join(at, name), root)
                if name.endswith(BLOCK + HASH) or ("." not in name and lines_of(root, path)[:1] and lines_of(root, path)[0].startswith("#!")):
                    yield path


def lines_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="surrogateescape") as f:
        return f.read().splitlines(keepends=True)


def place(path, lines):
    """Where the line belongs (an index), and its text."""
    return (1 if lines[:1] and lines[0].startswith("#!") else 0), (f"/* {LINE} */\n" if path.endswith(BLOCK) else f"# {LINE}\n")


def check(root):
    for path in sources(root):
        lines = lines_of(root, path)
        at, text = place(path, lines)
        if lines[at:at + 1] != [text]:
            yield f"{path}:{at + 1}: without the line \"{text.strip()}\" (tests/lint/spdx.py write . inserts it)"


def write(root):
    for path in sources(root):
        lines = lines_of(root, path)
        at, text = place(path, lines)
        if lines[at:at + 1] != [text]:
            with open(os.path.join(root, path), "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write("".join(lines[:at] + [text] + lines[at:]))


def main(argv):
    if len(argv) != 3 or argv[1] not in ("check", "write") or not os.path.isdir(os.path.join(argv[2], "kernels")):
        print(__doc__, file=sys.stderr)
        return 2
    if argv[1] == "write":
        write(argv[2])
    findings = list(check(argv[2]))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
