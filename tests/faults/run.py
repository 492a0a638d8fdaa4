#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plant faults of one line, one at a time, in a copy of the source tree, and see which test fails.

The faults are in faults.toml beside this file. For each: replace `old` (which must occur exactly once in `file`) by `new`, build and run
the related tests one after the other until one fails, unit tests first, and take the fault back. A test that fails counts only if it
passes without the fault; a skipped one does not count.

usage: run.py [OPTION...] [ID|FOLDER...]      IDs of faults, or folders (dicom, node/deliver); default: all
  --check           check the list only: every old text occurs once, tests exist, no fault was removed (the test faults/list)
  --jobs N          N faults at a time, each in its own copy of the tree (default 1)
  --work FOLDER     where the copies and the results are (default build/faults)
  --resume          keep the results in FOLDER/results.json of faults that did not change
  --again           with --resume: repeat those that were not caught
  --table FILE      write the tables in Markdown (default FOLDER/table.md)
  --timeout S       limit of one test (default 300)
  --cuda-only       only the faults of kernels/cuda, in a build with CUDA (needs nvcc, a GPU, cmocka and kissfft, not DCMTK); else these are left out
Exit code: 0: at least 90 % were caught in every top folder; 1: not; 2: the list does not fit the tree.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import time

try:
    import tomllib
except ImportError:
    print("skipped: Python has no module tomllib (it is part of 3.11)")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARE = 0.9  # what must be caught in every top folder
CUDA = "kernels/cuda"
NOT_BUILT = "(does not build)"


# ---- the list ----

def load(path=os.path.join(HERE, "faults.toml")):
    with open(path, "rb") as f:
        tables = tomllib.load(f)
    return tables["fault"], tables["at_least"]


def folder(fault):
    return os.path.dirname(fault["file"])


def top(fault):
    return fault["file"].partition("/")[0]


def tests_of_tree(root):
    """The names that tests/CMakeLists.txt gives to the tests."""
    names = []
    for at, _, files in os.walk(os.path.join(root, "tests")):
        for name in files:
            stem, extension = os.path.splitext(name)
            path = os.path.relpath(os.path.join(at, stem), os.path.join(root, "tests"))
            if name.startswith("test_") and extension in (".c", ".py", ".sh") and "/" in path:
                names.append(path)
            elif name.startswith("fuzz_") and extension == ".c":
                names.append("fuzz/" + stem.removeprefix("fuzz_"))
    return sorted(names)


def expand(tests, names):
    """The names of the tests, where an entry may also be a folder of tests."""
    return [name for name in names if any(name == one or name.startswith(one + "/") for one in tests)]


def problems(faults, at_least, root=ROOT):
    """Yield what is wrong with the list."""
    names, ids = tests_of_tree(root), set()
    for fault in faults:
        if fault["id"] in ids:
            yield f"{fault['id']}: is in the list twice"
        ids.add(fault["id"])
        try:
            with open(os.path.join(root, fault["file"]), encoding="utf-8") as f:
                found = f.read().count(fault["old"])
        except OSError as error:
            yield f"{fault['id']}: {error}"
            continue
        if found != 1:
            yield f"{fault['id']}: the old text occurs {found} times in {fault['file']}, expected once: {fault['old'][:80]!r}"
        if fault["old"] == fault["new"]:
            yield f"{fault['id']}: old and new text are equal"
        for one in fault["tests"]:
            if not expand([one], names):
                yield f"{fault['id']}: there is no test {one}"
    for name, least in at_least.items():
        n = sum(top(f) == name for f in faults)
        if n < least:
            yield f"{name}: {n} faults, at least {least} expected"


# ---- a copy of the tree ----

def files_of(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-coz", "--exclude-standard"], check=True, capture_output=True).stdout
        return [name for name in listed.decode().split("\0") if name and os.path.exists(os.path.join(root, name))]
    except (OSError, subprocess.CalledProcessError):
        return [os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names
                if not os.path.relpath(at, root).startswith(("build", ".git"))]


class Tree:
    """A copy of the source tree with its build."""

    def __init__(self, where, cuda, log):
        self.root, self.log = where, log
        self.build = os.path.join(where, "build", "faults")
        self.env = dict(os.environ, CCACHE_BASEDIR=where, CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="time_macros", OMP_WAIT_POLICY="passive")
        self.copy()
        self.configure(cuda)
        self.tests = {t["name"]: t for t in self.listed()}
        self.passing, self.seconds = {}, {}

    def copy(self):
        """Write what changed, so that a copy that exists is not built again as a whole."""
        files = files_of(ROOT)
        for name in files:
            source, target = os.path.join(ROOT, name), os.path.join(self.root, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(source, "rb") as f:
                wanted = f.read()
            if not os.path.exists(target) or open(target, "rb").read() != wanted:
                shutil.copyfile(source, target)
            shutil.copymode(source, target)
        kept = set(files)
        for at, folders, names in os.walk(self.root):
            folders[:] = [f for f in folders if os.path.join(at, f) != os.path.join(self.root, "build")]
            for name in names:
                if os.path.relpath(os.path.join(at, name), self.root) not in kept and not at.endswith("__pycache__"):
                    os.remove(os.path.join(at, name))

    def configure(self, cuda):
        options = ["-DTOMONODE_CUDA=" + ("ON" if cuda else "OFF"), "-DTOMONODE_DICOM=" + ("OFF" if cuda else "ON"), "-DTOMONODE_WERROR=OFF",
                   "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
        if shutil.which("ccache"):
            options += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX", "CUDA")[:3 if cuda else 2]]
        if cuda:
            options += ["-DCMAKE_CUDA_ARCHITECTURES=native"]
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        self.run(["cmake", "-S", self.root, "-B", self.build, *generator, *options], check=True)

    def run(self, command, check=False, timeout=None):
        """Return (exit code, output)."""
        self.log.write(f"$ {' '.join(command)}\n")
        done = subprocess.run(command, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout)
        text = done.stdout.decode(errors="replace")
        self.log.write(text[-6000:] + "\n")
        self.log.flush()
        if check and done.returncode:
            sys.exit(f"{' '.join(command)}: code {done.returncode}\n{text[-3000:]}")
        return done.returncode, text

    def listed(self):
        _, text = self.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], check=True)
        return json.loads(text[text.index("{"):])["tests"]

    def targets(self, name):
        """What must be built for this test (the names of targets: tests/CMakeLists.txt)."""
        group, _, test = name.partition("/")
        if group == "system":
            return sorted({"tomonode"} | self.helpers(self.tests[name]["command"][0]))
        return ["replay_" + test if group == "fuzz" else f"{group}_{os.path.basename(test)}"]

    def helpers(self, program):
        """The helper programs and preloaded objects that a system test names, or the modules that it can import."""
        tools = os.path.join(self.root, "tests/system/tools")
        sources = [program] + [os.path.join(tools, name) for name in os.listdir(tools) if name.endswith(".py")]
        text = "".join(open(path, encoding="utf-8").read() for path in sources)
        names = [os.path.splitext(name)[0] for kind in ("helpers", "preload") for name in os.listdir(os.path.join(self.root, "tests", kind))]
        return {name for name in names if name in text}

    def make(self, name):
        return self.run(["cmake", "--build", self.build, "-j", str(THREADS), "--target", *self.targets(name)])

    def test(self, name, timeout):
        """Return "Passed", "Failed", "Timeout", "Skipped", ..., and the lines that say why."""
        began = time.monotonic()
        _, text = self.run(["ctest", "--test-dir", self.build, "-R", f"^{re.escape(name)}$", "--output-on-failure", "--timeout", str(timeout)])
        outcome = re.search(r"1/1 Test +#\d+: \S+ \.*\** *(?:\*\*\*)?(\w+)", text)
        if not outcome:
            sys.exit(f"ctest -R {name}: {text[-2000:]}")
        self.seconds[name] = time.monotonic() - began
        return ("Failed" if outcome[1] in ("Exception", "Subprocess") else outcome[1]), reason(text)

    def passes(self, name, timeout):
        """Does the test pass without a fault? Asked once for each test that a fault fails."""
        if name not in self.passing:
            self.make(name)
            self.passing[name] = self.test(name, timeout)[0] == "Passed"
        return self.passing[name]

    def ordered(self, tests):
        """The tests in the order in which they are run: as listed, those of a folder by their time; system tests last."""
        names = [name for one in tests for name in sorted(expand([one], self.tests), key=lambda n: (self.seconds.get(n, 1), n))]
        return sorted(dict.fromkeys(names), key=lambda n: n.startswith("system/"))


def reason(text):
    """The lines of a failed test that say why."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if re.search(r"error|fail|assert|expected|Timeout|differ|!=|SEGV|abort", line, re.I)
            and not re.search(r"tests? failed|Errors while running|\*\*\*Failed|FAILED TEST|The following tests", line)]
    return " | ".join(told[:3])[:300]


# ---- one fault ----

class Planted:
    """The fault is in the tree within the `with` block."""

    def __init__(self, tree, fault):
        self.path, self.fault = os.path.join(tree.root, fault["file"]), fault

    def __enter__(self):
        with open(self.path, encoding="utf-8") as f:
            self.right = f.read()
        self.write(self.right.replace(self.fault["old"], self.fault["new"]))

    def __exit__(self, *_):
        self.write(self.right)

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(text)


def first_failure(tree, fault, timeout, without):
    """Plant the fault, run its tests until one fails. Return its name (None: none), and why it fails."""
    with Planted(tree, fault):
        for name in tree.ordered(fault["tests"]):
            if name in without:
                continue
            code, text = tree.make(name)
            if code:
                return NOT_BUILT, text[-400:]
            outcome, why = tree.test(name, timeout)
            if outcome in ("Failed", "Timeout"):
                return name, why or outcome
    return None, ""


def try_fault(tree, fault, timeout):
    """Return the result: caught by which test (None: by none), why, seconds."""
    began = time.monotonic()
    broken = set() # tests that fail without the fault, too
    while True:
        caught, why = first_failure(tree, fault, timeout, broken)
        if caught in (None, NOT_BUILT) or tree.passes(caught, timeout):
            break
        broken.add(caught)
    if broken:
        why += " (without the fault these fail, too: " + ", ".join(sorted(broken)) + ")"
    return {"caught": caught, "why": why, "seconds": round(time.monotonic() - began, 1), "digest": digest(fault)}


def digest(fault):
    text = json.dumps([fault[key] for key in ("file", "old", "new", "tests")])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- all of them ----

class Results:
    def __init__(self, path, resume, again):
        self.path, self.known = path, {}
        if resume and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.known = json.load(f)
        self.again = again

    def has(self, fault):
        known = self.known.get(fault["id"])
        return known and known["digest"] == digest(fault) and known["caught"] != NOT_BUILT and (known["caught"] or not self.again)

    def put(self, fault, result):
        self.known[fault["id"]] = result
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(self.known, f, indent=1)
        os.replace(self.path + ".new", self.path)


def try_all(faults, results, args):
    trees = queue.Queue()
    for i in range(min(args.jobs, len(faults))):
        log = open(os.path.join(args.work, f"log-{i + 1}"), "w", encoding="utf-8")
        trees.put(Tree(os.path.join(args.work, f"tree-{i + 1}"), args.cuda_only, log))

    def one(fault):
        tree = trees.get()
        try:
            return fault, try_fault(tree, fault, args.timeout)
        finally:
            trees.put(tree)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, fault) for fault in faults]):
            fault, result = done.result()
            results.put(fault, result)
            print(f"{result['caught'] or 'NOT CAUGHT':40} {fault['id']} ({result['seconds']} s) {result['why'][:120]}", flush=True)


def is_caught(result):
    return bool(result["caught"]) and result["caught"] != NOT_BUILT


def shares(faults, known):
    """[(top folder, tried, caught)]"""
    tops = sorted({top(f) for f in faults})
    tried = {name: [f for f in faults if top(f) == name and f["id"] in known] for name in tops}
    return [(name, len(tried[name]), sum(is_caught(known[f["id"]]) for f in tried[name])) for name in tops if tried[name]]


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def tables(faults, known):
    lines = ["| folder | faults | caught | share |", "|---|---|---|---|"]
    lines += [f"| {name} | {n} | {caught} | {100 * caught / n:.0f} % |" for name, n, caught in shares(faults, known)]
    lines += ["", "| id | folder | fault | caught by |", "|---|---|---|---|"]
    for fault in faults:
        if fault["id"] in known:
            by = known[fault["id"]]["caught"] or "**not caught**" + (": " + fault["uncaught"] if "uncaught" in fault else "")
            lines.append(f"| {fault['id']} | {folder(fault)} | {cell(fault['breaks'])} | {by} |")
    return "\n".join(lines) + "\n"


def chosen(faults, args):
    names = args.names or [""]
    found = [f for f in faults if any(f["id"] == name or (f["file"] + "/").startswith(name.rstrip("/") + "/") or not name for name in names)]
    return [f for f in found if (folder(f) == CUDA) == args.cuda_only]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    for flag in ("--check", "--resume", "--again", "--cuda-only"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "faults"))
    parser.add_argument("--table")
    parser.add_argument("--timeout", type=int, default=300)
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    return args


def main():
    args = arguments()
    faults, at_least = load()
    wrong = list(problems(faults, at_least))
    print("\n".join(wrong), end="\n" if wrong else "")
    if wrong or args.check:
        return 2 if wrong else 0
    os.makedirs(args.work, exist_ok=True)
    results = Results(os.path.join(args.work, "results.json"), args.resume, args.again)
    wanted = chosen(faults, args)
    try_all([f for f in wanted if not results.has(f)], results, args)
    with open(args.table or os.path.join(args.work, "table.md"), "w", encoding="utf-8") as f:
        f.write(tables(wanted, results.known))
    print(tables(wanted, results.known).partition("\n\n")[0])
    return 0 if all(caught >= SHARE * n for _, n, caught in shares(wanted, results.known)) else 1


THREADS = os.cpu_count() or 1

if __name__ == "__main__":
    sys.exit(main())
