#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tutorials, word for word: the commands of docs/tutorial-*.md run in an empty folder, print what the page says, and make the pictures
that are shown. Ports are replaced by free ones, and a node that a page starts is ended by it.

usage: test_tutorials.py [--update] [NAME...]     --update: write docs/images/tutorial-*.png
A block ```text has lines that the commands before it print; numbers may differ by 2 %, and what follows on a line is not compared.
"""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("skipped: numpy and PIL are not installed")
    sys.exit(77)

TOMONODE, SOURCE = os.path.abspath(os.environ["TOMONODE"]), os.environ["TOMONODE_SOURCE"]
DOCS = os.path.join(SOURCE, "docs")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SECONDS_MAX = 300  # a reader has ten minutes
PORT = re.compile(r"\b11\d{3}\b")  # of the commands


def blocks(text):
    """(kind, content) of each fenced block of the kinds sh and text, in order."""
    return re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.M | re.S)


def with_free_ports(text):
    """The text with other port numbers, the same for the same one."""
    held, free = [], {}
    for port in sorted(set(PORT.findall(text))):
        held.append(socket.create_server(("127.0.0.1", 0)))
        free[port] = str(held[-1].getsockname()[1])
    for s in held:
        s.close()
    return PORT.sub(lambda m: free[m[0]], text)


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def left_running(work):
    """End what the commands have left running; the names of its files."""
    left = []
    for path in glob.glob(os.path.join(work, "*.pid")):
        with open(path, encoding="ascii") as f:
            pid = int(f.read())
        for _ in range(100):  # a node takes a moment to end
            if not runs(pid):
                break
            time.sleep(0.1)
        else:
            left.append(os.path.basename(path))
            os.kill(pid, signal.SIGKILL)
    return left


def prints(wanted, output):
    """Whether a line of the output begins like the wanted one, with numbers within 2 % or half of their last digit."""
    words, numbers = NUMBER.sub("#", wanted).strip(), [(float(n), 0.5 * 10.0 ** -len(n.partition(".")[2])) for n in NUMBER.findall(wanted)]
    for line in output.splitlines():
        if NUMBER.sub("#", line).strip().startswith(words):
            found = [float(n) for n in NUMBER.findall(line)][:len(numbers)]
            if all(abs(f - n) <= max(0.02 * abs(n), last) for f, (n, last) in zip(found, numbers)):
                return True
    return False


def same_picture(made, shown):
    with Image.open(made) as a, Image.open(shown) as b:
        if a.size != b.size or a.mode != b.mode:
            return f"{a.size} {a.mode}, shown {b.size} {b.mode}"
        differ = np.abs(np.asarray(a, float) - np.asarray(b, float))
    return "" if differ.mean() < 1 and np.percentile(differ, 99) < 12 else f"grey levels differ by {differ.mean():.2f} in the mean"


def tutorial(path, update):
    name = re.fullmatch(r"tutorial-(\w+)\.md", os.path.basename(path))[1]
    with open(path, encoding="utf-8") as f:
        text = f.read()
    failures, output, start = [], "", time.monotonic()
    folder = tempfile.mkdtemp(prefix="tomonode-test-")
    try:
        work = os.path.join(folder, "empty")
        os.mkdir(work)
        os.mkdir(os.path.join(folder, "bin"))
        os.symlink(TOMONODE, os.path.join(folder, "bin", "tomonode"))
        environment = dict(os.environ, PATH=os.path.join(folder, "bin") + ":" + os.environ["PATH"], SOURCE=SOURCE)
        for kind, content in blocks(with_free_ports(text)):
            if kind == "text":
                failures += [f"not printed: {line}\nbut: {output}" for line in content.splitlines() if not prints(line, output)]
                continue
            done = subprocess.run(["bash", "-euc", content], cwd=work, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False)
            output = done.stdout
            if done.returncode:
                return [f"exit {done.returncode} of:\n{content}{output}"]
        pictures = re.findall(rf"images/(tutorial-{name}-(\w+)\.png)\)", text)
        made = {p[:-4] for p in os.listdir(work) if p.endswith(".png")}
        if {p for _, p in pictures} != made:
            failures.append(f"the page shows {sorted(p for _, p in pictures)}, the commands make {sorted(made)}")
        for shown, picture in pictures if not failures else ():
            source, target = os.path.join(work, picture + ".png"), os.path.join(DOCS, "images", shown)
            if update:
                shutil.copy(source, target)
            why = same_picture(source, target)
            if why:
                failures.append(f"{shown}: {why}")
        if time.monotonic() - start > SECONDS_MAX:
            failures.append(f"takes {time.monotonic() - start:.0f} s")
        reports = glob.glob(os.path.join(work, "report", "*.html"))
        if "--report" in text and (len(reports) != 1 or os.path.getsize(reports[0]) < 10000):
            failures.append(f"no report: {reports}")
        if name == "pet":
            failures += spheres(output_of(text, "measure", environment, work))
    finally:
        failures += [f"still runs: {name}" for name in left_running(os.path.join(folder, "empty"))]
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{os.path.basename(path)}: {time.monotonic() - start:.1f} s, {len(pictures)} pictures{', FAILED' if failures else ''}")
    return failures


def output_of(text, command, environment, work):
    """What the one block with a subcommand prints."""
    block = [content for kind, content in blocks(text) if kind == "sh" and f"tomonode {command} " in content][0]
    return subprocess.run(["bash", "-euc", block], cwd=work, env=environment, text=True, stdout=subprocess.PIPE, check=True).stdout


def spheres(output):
    """What the page says in words about the spheres."""
    mean = {line.split()[0]: float(line.split()[2]) for line in output.splitlines() if line.split()[:1] and line.split()[0] in ("hot", "cold",
                                                                                                                              "background")}
    good = len(mean) == 3 and 2 < mean["hot"] / mean["background"] < 3 and mean["cold"] < 0.6 * mean["background"]
    return [] if good else [f"the spheres have {mean}"]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    paths = sorted(glob.glob(os.path.join(DOCS, "tutorial-*.md")))
    if len(paths) < 4:
        sys.exit("the tutorials are missing")
    failures = [f"{os.path.basename(p)}: {f}" for p in paths if not arguments or any(a in p for a in arguments)
                for f in tutorial(p, "--update" in sys.argv)]
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


main()
