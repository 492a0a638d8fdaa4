# SPDX-License-Identifier: Apache-2.0
"""A copy of the source tree with its build, in which faults are planted, and the tests that can see them."""
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

from traces import Traces

THREADS = os.cpu_count() or 1
OPTIONS = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DTOMONODE_WERROR=OFF"]
# What GCC 14 refuses and GCC 12 only warns of.
C_FLAGS = "-Werror=incompatible-pointer-types -Werror=int-conversion -Werror=implicit-function-declaration"


@dataclasses.dataclass(frozen=True)
class Fault:
    """In `file` the text `old` at the place `at` becomes `new`."""

    id: str
    file: str
    at: int
    old: str
    new: str
    breaks: str
    tests: tuple = ()  # tests, or folders of tests; none: all that can see it

    def planted(self, text):
        if not text.startswith(self.old, self.at):
            raise ValueError(f"{self.id}: {self.file} has changed")
        return text[: self.at] + self.new + text[self.at + len(self.old) :]

    def described(self, text):
        """Return "FILE:LINE: before -> after"."""
        after = self.planted(text)
        begin, end = text.rfind("\n", 0, self.at) + 1, text.find("\n", self.at + len(self.old))
        lines = (" ".join(line.split()) for line in (text[begin:end], after[begin : end + len(after) - len(text)]))
        return f"{self.file}:{text.count(chr(10), 0, self.at) + 1}: " + " -> ".join(lines)


def named(names, tests):
    """The tests that are named, or are in folders that are."""
    return [test for test in tests if any(test == name or test.startswith(name + "/") for name in names)]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def files_of(root):
    if os.path.exists(os.path.join(root, ".git")):
        command = ["git", "-C", root, "ls-files", "-coz", "--exclude-standard"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return sorted(f for f in listed.split("\0") if os.path.isfile(os.path.join(root, f)))
    found = (os.path.relpath(os.path.join(at, f), root) for at, _, files in os.walk(root) for f in files)
    return sorted(f for f in found if not f.startswith("build/"))


def copy(source, target):
    """Write what differs, so that a copy that exists is not built again as a whole."""
    files = files_of(source)
    for name in files:
        a, b = os.path.join(source, name), os.path.join(target, name)
        os.makedirs(os.path.dirname(b), exist_ok=True)
        if not os.path.exists(b) or open(a, "rb").read() != open(b, "rb").read():
            shutil.copyfile(a, b)
        shutil.copymode(a, b)
    for name in set(files_of(target)).difference(files):
        os.remove(os.path.join(target, name))


class Tree:
    """The build NAME of the copy in the folder ROOT."""

    def __init__(self, root, name, options, log, args):
        self.root, self.build, self.log, self.limit = root, os.path.join(root, "build", name), log, args.timeout
        self.env = dict(
            os.environ,
            CCACHE_BASEDIR=root,
            CCACHE_NOHASHDIR="1",
            CCACHE_SLOPPINESS="time_macros",
            OMP_WAIT_POLICY="passive",
            TOMONODE=os.path.join(self.build, "tomonode"),
            TOMONODE_BUILD=self.build,
            TOMONODE_SOURCE=root,
            TOMONODE_TIER=str(args.tier),
        )
        if shutil.which("ccache"):
            options = options + [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX", "CUDA")]
        self.run(
            ["cmake", "-S", root, "-B", self.build, "-G", "Ninja", f"-DCMAKE_C_FLAGS={C_FLAGS}", *OPTIONS, *options]
        )
        self.run([*self.ninja(), "all"])
        self.programs = dict(self.unit_tests())
        self.objects, self.links = self.objects_of_files(), {}
        self.code, self.passing, self.seconds, self.warnings, self.traces = {}, {}, {}, [], None

    def run(self, command, check=True, folder=None):
        """Return (exit code, output)."""
        self.log.write(f"$ {' '.join(command)[:2000]}\n")
        done = subprocess.run(
            command,
            cwd=folder or self.root,
            env=self.env,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.log.write(done.stdout[-6000:] + "\n")
        self.log.flush()
        if check and done.returncode:
            sys.exit(f"{' '.join(command)[:200]}: code {done.returncode}\n{done.stdout[-3000:]}")
        return done.returncode, done.stdout

    # ---- the build ----

    def ninja(self):
        return ["ninja", "-C", self.build, "-j", str(THREADS)]

    def make(self, targets):
        """Return whether these can be built."""
        code, text = self.run([*self.ninja(), *targets], check=False)
        self.warnings += re.findall(r"warning: .*\[(-W[^\]]+)\]", text)
        return code == 0

    def unit_tests(self):
        """Yield (name, (command, environment, target)) of each that is a program of the build; `library` is a script."""
        text = self.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"])[1]
        for test in json.loads(text[text.index("{") :])["tests"]:
            properties = {p["name"]: p["value"] for p in test["properties"]}
            if "unit" in properties.get("LABELS", []):
                command, folder = test["command"], os.path.join(self.build, "tests")
                target = next((os.path.basename(word) for word in command if os.path.dirname(word) == folder), None)
                environment = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
                if target:
                    yield test["name"], (command, environment, target)

    def objects_of_files(self):
        """{a source or header: the objects that contain it}"""
        found, target = {}, None
        for line in self.run([*self.ninja(), "-t", "deps"])[1].splitlines():
            if line.startswith("    "):
                path = os.path.relpath(os.path.join(self.build, line.strip()), self.root)
                found.setdefault(path, []).append(target)
            elif ": #deps" in line:
                target = line.partition(": #deps")[0]
        return found

    def symbols(self, path):
        listed = self.run(["nm", "--defined-only", os.path.join(self.build, path)])[1]
        return re.findall(r" [TDBR] (\S+)$", listed, re.M)

    def tests_linked_with(self, objects):
        """The unit tests that contain one of these objects."""
        if not self.links:
            self.links = {test: set(self.symbols("tests/" + target)) for test, (_, _, target) in self.programs.items()}
        own = {m[1] for m in (re.search(r"tests/CMakeFiles/(\w+)\.dir/", one) for one in objects) if m}
        # A program has a library's object as a whole, and a global name is defined once: it stands for its object.
        names = {name for one in objects for name in self.symbols(one)[:1]}
        return [test for test, (_, _, target) in self.programs.items() if target in own or names & self.links[test]]

    def code_of(self, one):
        """A digest of the object without what is for debuggers: line and column of each instruction."""
        plain = os.path.join(self.build, "plain.o")
        subprocess.run(["objcopy", "--strip-debug", os.path.join(self.build, one), plain], check=True)
        with open(plain, "rb") as f:
            return hashlib.sha256(f.read()).digest()

    def changed(self, fault):
        """Compile with the fault; return the objects whose instructions differ; None: it does not compile."""
        objects = self.objects.get(fault.file, [])
        if any(one not in self.code for one in objects):
            self.make(objects)
            self.code.update((one, self.code_of(one)) for one in objects)
        with self.planted(fault):
            if not self.make(objects):
                return None
            return [one for one in objects if self.code_of(one) != self.code[one]]

    @contextlib.contextmanager
    def planted(self, fault):
        path = os.path.join(self.root, fault.file)
        right = read(path)
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(fault.planted(right))
            yield
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(right)

    # ---- the tests ----

    def trace(self, folder):
        """Run all tests once, in a build with trace.c; return the Traces."""
        traces, units = Traces(self.root, files_of(self.root)), os.path.join(folder, "units")

        def traced(test):
            at = os.path.join(units, urllib.parse.quote(test, safe=""))
            os.makedirs(at, exist_ok=True)
            began = time.monotonic()
            self.unit_failure(test, {"TOMONODE_TRACE": at})
            return test, (at, time.monotonic() - began)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            runs = dict(pool.map(traced, self.programs))
        self.env["TOMONODE_TRACES"] = os.path.join(folder, "system")  # conftest.py
        command = ["/usr/bin/python3", "-m", "pytest", "-q", "-n", str(2 * THREADS), "system", "hostile"]
        self.run(command, check=False, folder=os.path.join(self.root, "tests"))
        for name in os.listdir(self.env["TOMONODE_TRACES"]):
            at = os.path.join(self.env["TOMONODE_TRACES"], name)
            runs["tests/" + urllib.parse.unquote(name)] = at, float(read(at, "seconds"))
        programs = {target: os.path.join(self.build, "tests", target) for _, _, target in self.programs.values()}
        programs |= {name: os.path.join(self.build, "tests", name) for name in self.helpers()}
        traces.add(programs | {"tomonode": self.env["TOMONODE"]}, runs, self.env["TOMONODE"])
        return traces

    def helpers(self):
        """The programs, and objects to be preloaded, of system tests."""
        listed = [f for folder in ("helpers", "preload") for f in os.listdir(os.path.join(self.root, "tests", folder))]
        return [os.path.splitext(f)[0] for f in listed]

    def stages(self, fault, objects, units):
        """The tests that can see the fault, in their order."""
        if self.traces and not fault.tests:
            near, others = self.traces.tests(fault.file, fault.at)
            near_system = [] if units else [test for test in near if test not in self.programs]
            stages = [
                self.by_room(fault, [test for test in near if test in self.programs]),
                near_system[:16],
                near_system[16:],
                self.by_room(fault, [test for test in others if test in self.programs]),
            ]
        else:
            can = self.tests_linked_with(objects) if objects else list(self.programs)
            system = [] if units else [test for test in fault.tests if test.startswith("tests/")]
            stages = [self.by_room(fault, named(fault.tests, can) if fault.tests else can), system]
        return [stage for stage in stages if stage]

    def by_room(self, fault, tests):
        """Unit tests: of the room of the fault, of its layer, others; in each the quickest first."""
        room, layer = os.path.dirname(fault.file), fault.file.partition("/")[0]

        def key(test):
            far = 0 if os.path.dirname(test) == room else 1 if test.startswith(layer + "/") else 2
            return far, self.seconds.get(test, 1)

        return sorted(tests, key=key)

    def first_failure(self, tests, without=()):
        """Build and run them until one fails; return its name and why it fails, or (None, "")."""
        if tests[0].startswith("tests/"):
            return self.first_system_failure(tests, without)
        tests = [test for test in tests if test not in without]
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for at in range(0, len(tests), 2 * THREADS):  # not all are built: one of the first may fail
                some = tests[at : at + 2 * THREADS]
                if not self.make([self.programs[test][2] for test in some]):
                    return some[0], "its program cannot be built"
                for test, why in zip(some, pool.map(self.unit_failure, some)):
                    if why:
                        return test, why
        return None, ""

    def unit_failure(self, test, more=()):
        """Return why it fails, with `more` in its environment; "": it does not."""
        command, environment, _ = self.programs[test]
        began = time.monotonic()
        # timeout(1) ends the test also when this process was killed. What the test leaves behind must not keep a pipe open.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(
                ["timeout", "--signal=KILL", str(self.limit), *command],
                cwd=os.path.join(self.build, "tests"),
                env=self.env | environment | dict(more),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            process.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output.seek(0)
            text = output.read()
        if process.returncode == -signal.SIGKILL and time.monotonic() - began >= self.limit:
            return f"more than {self.limit} s"
        self.seconds[test] = time.monotonic() - began
        return "" if process.returncode in (0, 77) else reason(text, process.returncode)

    def first_system_failure(self, tests, without):
        if not self.make(["tomonode", "bench", "pet_mc", *self.helpers()]):
            return "tomonode", "cannot be built"
        names = [f"--deselect={one.removeprefix('tests/')}" for one in without] + [
            one.removeprefix("tests/") for one in tests
        ]
        for those in (["-n", str(2 * THREADS), "-m", "not alone"], ["-m", "alone"]):
            command = ["/usr/bin/python3", "-m", "pytest", "-q", "-x", *those, *names]
            code, text = self.run(command, check=False, folder=os.path.join(self.root, "tests"))
            failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", text, re.M)
            if failed:
                return "tests/" + failed[1], failed[2] or reason(text, code)
            if code not in (0, 5):  # 5: none was chosen
                sys.exit(f"pytest {' '.join(tests)}: code {code}\n{text[-3000:]}")
        return None, ""

    def passes(self, test):
        """Does the test pass without a fault? Asked once for each test that a fault fails."""
        if test not in self.passing:
            self.passing[test] = self.first_failure([test])[0] is None
        return self.passing[test]


def reason(text, code):
    """The lines of a failed test that say why."""
    lines = (" ".join(line.split()) for line in text.splitlines() if not re.match(r"\[ +(RUN|OK) ", line))
    told = [line for line in lines if re.search(r"error|fail|assert|expected|differ|!=|SEGV|abort", line, re.I)]
    return (" | ".join(told[:3]) or f"exit code {code}")[:300]
