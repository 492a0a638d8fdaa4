# SPDX-License-Identifier: Apache-2.0
"""Which lines each test runs, in a build whose basic blocks mark themselves (trace.c)."""
import bisect
import collections
import json
import os
import re
import subprocess

from c_source import code_only, functions

# An instruction after the call that marks a block: the address that trace.c sees.
BLOCK = re.compile(r"call\s+\w+ <__sanitizer_cov_trace_pc>\n\s*([0-9a-f]+):")


def marked(path):
    """The addresses that are marked in a file of trace.c."""
    found = []
    with open(path, "rb", buffering=0) as f:
        size, at = os.fstat(f.fileno()).st_size, 0
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)  # the file is almost all holes
            except OSError:
                break
            end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
            found += [at + m.start() for m in re.finditer(rb"[^\0]", os.pread(f.fileno(), end - at, at))]
            at = end
    return found


def blocks(program):
    """The addresses of all basic blocks of a program."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True
    ).stdout
    return [int(m[1], 16) for m in BLOCK.finditer(text)]


def lines_of(program, addresses, files):
    """{address: [(source, line)], of the function and of those that it is inlined in}"""
    asked = "".join(f"{address - 1:#x}\n" for address in addresses)  # of the call, not of what follows it
    command = ["llvm-symbolizer", f"--obj={program}", "--functions=none"]
    told = subprocess.run(command, input=asked, check=True, capture_output=True, text=True).stdout.split("\n\n")
    return {address: list(frames(text, files)) for address, text in zip(addresses, told)}


def frames(text, files):
    for frame in text.split("\n"):
        path, line = frame.rsplit(":", 2)[:2] if frame.count(":") >= 2 else ("", "0")
        parts = os.path.normpath(path).split("/")
        source = next((one for one in ("/".join(parts[n:]) for n in range(len(parts))) if one in files), None)
        if source and int(line):
            yield source, int(line)


class Traces:
    """The tests by the lines that they run."""

    def __init__(self, root, files):
        self.root, self.files = root, set(files)
        self.lines = collections.defaultdict(lambda: collections.defaultdict(set))  # {source: {line: tests}}
        self.seconds = {}

    def add(self, programs, runs, whole):
        """programs: {name of a file of trace.c: program}; runs: {test: (folder of trace.c, seconds)}; whole: the program of which also
        the lines that no test runs are wanted."""
        seen = collections.defaultdict(dict)  # {program: {test: addresses}}
        for test, (folder, seconds) in runs.items():
            self.seconds[test] = seconds
            for name in os.listdir(folder):
                if name in programs:
                    seen[programs[name]][test] = marked(os.path.join(folder, name))
        for program, tests in seen.items():
            addresses = set().union(*tests.values(), blocks(program) if program == whole else ())
            places = lines_of(program, sorted(addresses), self.files)
            for address in addresses:
                for source, line in places[address]:
                    self.lines[source][line] = self.lines[source][line] or set()
            for test, addresses in tests.items():
                for source, line in {place for address in addresses for place in places[address]}:
                    self.lines[source][line].add(test)

    def save(self, path):
        names = sorted(self.seconds)
        number = {name: n for n, name in enumerate(names)}
        lines = {s: {n: sorted(number[t] for t in tests) for n, tests in ls.items()} for s, ls in self.lines.items()}
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"tests": [[name, self.seconds[name]] for name in names], "lines": lines}, f)

    def load(self, path):
        with open(path, encoding="utf-8") as f:
            told = json.load(f)
        names = [name for name, _ in told["tests"]]
        self.seconds = dict(told["tests"])
        for source, lines in told["lines"].items():
            for line, tests in lines.items():
                self.lines[source][int(line)] = {names[n] for n in tests}
        return self

    def tests(self, source, at):
        """(the tests that run the block with the place `at`, other tests that run its function), the quickest first"""
        with open(os.path.join(self.root, source), encoding="utf-8") as f:
            text = f.read()
        line = text.count("\n", 0, at) + 1
        begin = next((b for _, b, _, end in functions(code_only(text)) if b <= at <= end), at)
        end = next((end for _, b, _, end in functions(code_only(text)) if b <= at <= end), at)
        first, last = text.count("\n", 0, begin) + 1, text.count("\n", 0, end) + 1
        marks = sorted(n for n in self.lines[source] if first <= n <= last)
        above = marks[: bisect.bisect_right(marks, line)][-1:]
        near = set().union(*(self.lines[source][n] for n in above))
        others = set().union(*(self.lines[source][n] for n in marks)) - near
        return sorted(near, key=self.seconds.get), sorted(others, key=self.seconds.get)
