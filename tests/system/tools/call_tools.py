# SPDX-License-Identifier: Apache-2.0
"""A command whose N-th call of a kind fails (tests/preload/fail_call.c): what it said, and the files that it left."""
import collections
import errno
import os
import shutil
import subprocess

from tools import node_harness as h

TIME = 1790000000  # at which the wall clock stands, 2026-09-21
SHORT = 0  # instead of an errno: half of the bytes are written or read, which is no failure
ERRORS = {
    "create": errno.EMFILE,
    "open": errno.EIO,
    "write": errno.ENOSPC,
    "read": errno.EIO,
    "close": errno.EDQUOT,
    "sync": errno.EIO,
    "rename": errno.EIO,
    "link": errno.EMLINK,
    "unlink": errno.EROFS,
    "mkdir": errno.ENOSPC,
    "malloc": errno.ENOMEM,
    "library": errno.ENOMEM,
    "fork": errno.EAGAIN,
    "thread": errno.EAGAIN,
}

Call = collections.namedtuple("Call", "kind number path")
End = collections.namedtuple("End", "code text files failed")  # failed: the Call, None if there was no such call


def link_inputs(inputs, folder):
    """Hard links of the inputs in the folder of a test, so that failing calls can be chosen by this folder."""
    shutil.copytree(os.path.join(inputs, "in"), os.path.join(folder, "in"), copy_function=os.link, dirs_exist_ok=True)


def library():
    path = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "fail_call.so")
    if not os.path.exists(path):
        h.skip("no fail_call.so below TOMONODE_BUILD")
    if h.sanitizer():
        h.skip("a build with a sanitizer: its own functions are called before those of a preloaded library")
    return path


def files_below(folder):
    """Path relative to the folder: content."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            found[os.path.relpath(path, folder)] = h.read_file(path, "rb")
    return found


class Program:
    """Runs one command again and again. `words` after the program's name; OUT stands for the folder of the results,
    which is new in each run.
    before: files that are in it at the beginning, by name."""

    def __init__(self, folder, name, words, before=None):
        self.folder, self.name, self.words, self.before = folder, name, words, before or {}
        self.out, self.log = os.path.join(folder, "out"), os.path.join(folder, "calls")
        self.library = library()
        self.undisturbed = None

    def run(self, failing="", stacks=False):
        """failing: KIND NUMBER ERRNO HOW, nothing: count the calls; stacks: of allocations the first one of each stack
        of callers."""
        shutil.rmtree(self.out, ignore_errors=True)
        for name, content in self.before.items():
            os.makedirs(os.path.dirname(os.path.join(self.out, name)), exist_ok=True)
            h.write_file(os.path.join(self.out, name), content)
        if os.path.exists(self.log):
            os.remove(self.log)
        variables = {
            **os.environ,
            "LD_PRELOAD": self.library,
            "FAIL_CALL_LOG": self.log,
            "FAIL_CALL_PART": self.folder + "/",
            "FAIL_CALL_TIME": str(TIME),
            "OMP_NUM_THREADS": "1",
            "TMPDIR": self.folder,
        }
        if stacks:
            variables["FAIL_CALL_STACKS"] = "1"
        if failing:
            variables["FAIL_CALL"] = failing
        words = [h.TOMONODE, *(word.replace("OUT", self.out) for word in self.words)]
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120 * h.PATIENCE,
            env=variables,
            cwd=self.folder,
        )
        return done.returncode, done.stdout + done.stderr, files_below(self.out)

    def calls(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            lines = [line.rstrip("\n").split(" ", 2) for line in f]
        return [Call(kind, int(number), path) for kind, number, path in lines]

    def count(self, stacks=False):
        """The calls of an undisturbed run, whose files are kept for comparison; of allocations the last one, or with
        stacks many."""
        code, text, files = self.run(stacks=stacks)
        h.check(code == 0 and files, f"{self.name}: code {code}: {text[-600:]}")
        self.undisturbed = files
        return self.calls()

    def fail(self, call, error):
        """A file that cannot be read, can never be read; what else fails once, may succeed when it is done again."""
        code, text, files = self.run(f"{call.kind} {call.number} {error} {2 if call.kind in ('open', 'read') else 1}")
        calls = self.calls() if os.path.exists(self.log) else []
        return End(code, text, files, calls[0] if calls else None)

    def complaints(self, call, error, end):
        """What is wrong with how the command ended."""
        if not end.failed:
            return []  # with threads not every run makes the same calls
        wrong = []
        whole = {**self.before, **self.undisturbed}
        other = [
            name
            for name, content in end.files.items()
            if name in whole and content not in (whole[name], self.before.get(name))
        ]
        said = f"{os.path.basename(end.failed.path)}: {os.strerror(error)}".encode()
        other = [name for name in other if said not in end.files[name]]  # a report tells what it could not read
        if end.code < 0 or end.code > 10:
            wrong.append(f"ended by signal {-end.code}" if end.code < 0 else f"exit code {end.code}")
        elif (
            end.code == 0
            and (other or set(end.files) != set(whole))
            and not (call.kind == "unlink" and not other and set(whole) <= set(end.files))
        ):
            wrong.append(
                f"exit code 0, but missing: {sorted(set(whole) - set(end.files))}, "
                f"more: {sorted(set(end.files) - set(whole))}, other: {other}"
            )
        elif error == SHORT and end.code != 0:
            wrong.append(f"exit code {end.code}, although nothing failed")
        if end.code != 0 and other:
            wrong.append(f"half-written: {other}")
        left = sorted(set(end.files) - set(whole))
        if end.code != 0 and left and call.kind != "unlink":
            wrong.append(f"left behind: {left}")
        if end.code > 0 and not self.names(call, error, end):
            wrong.append("the message does not name the file and the reason")
        return [
            f"{self.name}: {call.kind} {end.failed.number} {end.failed.path.replace(self.folder + '/', '')} "
            f"({os.strerror(error)}): {what}: "
            f"{end.text[-300:].strip()!r}"
            for what in wrong
        ]

    def names(self, call, error, end):
        """Whether the text of a command that failed names the file and the reason. Of data that cannot be read either:
        a part of an acquisition has a name of its own, and a decoder its own reasons."""
        if call.kind in ("malloc", "library"):
            return "memory" in end.text.lower() or "cannot allocate" in end.text
        if call.kind in ("fork", "thread"):
            return "cannot start a" in end.text or "memory" in end.text
        path = end.failed.path
        known = {
            os.path.basename(path),
            os.path.basename(path).removesuffix(".part"),
            os.path.basename(os.path.dirname(path)),
        }
        file, reason = any(name and name in end.text for name in known), os.strerror(error) in end.text
        return file or reason if call.kind == "read" else file and reason
