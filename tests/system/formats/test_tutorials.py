# SPDX-License-Identifier: Apache-2.0
"""The tutorials, word for word: the commands of docs/tutorial-*.md run in an empty folder, print what the page says,
and make the pictures that are shown. Ports are replaced by free ones, and a node that a page starts is ended by it.

TOMONODE_UPDATE_TUTORIALS=1: write docs/images/tutorial-*.png.
A block ```text has lines that the commands before it print; numbers may differ by 2 %, and what follows on a line is
not compared.
"""
import glob
import os
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest

from tools import node_harness as h

Image = pytest.importorskip("PIL.Image")
TOMONODE, SOURCE = os.path.abspath(os.environ["TOMONODE"]), os.environ["TOMONODE_SOURCE"]
DOCS = os.path.join(SOURCE, "docs")
TOOTH = os.path.join(os.environ.get("TOMONODE_DATA", os.path.join(SOURCE, "../shared/data")), "parallel-real/tooth.h5")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PORT = re.compile(r"\b11\d{3}\b")  # of the commands


def blocks(text):
    """(kind, content) of each fenced block of the kinds sh and text, in order."""
    return re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.M | re.S)


def with_free_ports(text):
    """The text with other port numbers, the same for the same one."""
    free = {port: str(h.free_port()) for port in sorted(set(PORT.findall(text)))}
    return PORT.sub(lambda m: free[m[0]], text)


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def left_running(work):
    """End what the commands have left running; the names of its files. A node takes a moment to end."""
    left = []
    for path in glob.glob(os.path.join(work, "*.pid")):
        pid = int(h.read_file(path))
        try:
            h.wait_for(f"{pid} has ended", lambda pid=pid: not runs(pid))
        except AssertionError:
            left.append(os.path.basename(path))
            os.kill(pid, signal.SIGKILL)
    return left


def prints(wanted, output):
    """Whether a line of the output begins like the wanted one, with numbers within 2 % or half of their last digit."""
    words, numbers = NUMBER.sub("#", wanted).strip(), [(float(n), 0.5 * 10.0 ** -len(n.partition(".")[2]))
                                                       for n in NUMBER.findall(wanted)]
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
    small = differ.mean() < 1 and np.percentile(differ, 99) < 12
    return "" if small else f"grey levels differ by {differ.mean():.2f} in the mean"


@pytest.mark.tier2("tutorials")
@pytest.mark.parametrize("path", glob.glob(os.path.join(DOCS, "tutorial-*.md")), ids=os.path.basename)
def test_runs_word_for_word(folder, failures, path):
    name = re.fullmatch(r"tutorial-(\w+)\.md", os.path.basename(path))[1]
    text = h.read_file(path)
    output, work = "", os.path.join(folder, "empty")
    os.mkdir(work)
    os.mkdir(os.path.join(folder, "bin"))
    os.symlink(TOMONODE, os.path.join(folder, "bin", "tomonode"))
    environment = dict(os.environ, PATH=os.path.join(folder, "bin") + ":" + os.environ["PATH"], SOURCE=SOURCE)
    try:
        for kind, content in blocks(with_free_ports(text)):
            if kind == "text":
                failures += [f"not printed: {line}\nbut: {output}" for line in content.splitlines()
                             if not prints(line, output)]
                continue
            done = subprocess.run(["bash", "-euc", content], cwd=work, env=environment, text=True,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            output = done.stdout
            h.check(done.returncode == 0, f"exit {done.returncode} of:\n{content}{output}")
        pictures = re.findall(rf"images/(tutorial-{name}-(\w+)\.png)\)", text)
        made = {p[:-4] for p in os.listdir(work) if p.endswith(".png")}
        if {p for _, p in pictures} != made:
            failures.append(f"the page shows {sorted(p for _, p in pictures)}, the commands make {sorted(made)}")
        for shown, picture in pictures if not failures else ():
            source, target = os.path.join(work, picture + ".png"), os.path.join(DOCS, "images", shown)
            if os.environ.get("TOMONODE_UPDATE_TUTORIALS"):
                shutil.copy(source, target)
            why = same_picture(source, target)
            if why:
                failures.append(f"{shown}: {why}")
        reports = glob.glob(os.path.join(work, "report", "*.html"))
        if "--report" in text and (len(reports) != 1 or os.path.getsize(reports[0]) < 10000):
            failures.append(f"no report: {reports}")
        if name == "ct" and os.path.exists(TOOTH):
            failures += real_scan(text, environment, work)
        if name == "pet":
            failures += spheres(output_of(text, "measure", environment, work))
    finally:
        failures += [f"still runs: {name}" for name in left_running(work)]


def test_there_are_four():
    assert len(glob.glob(os.path.join(DOCS, "tutorial-*.md"))) >= 4


def real_scan(text, environment, work):
    """Run the indented commands of the real scan with its file; what the page says in words about them."""
    os.symlink(TOOTH, os.path.join(work, "tooth.h5"))
    commands = "\n".join(re.findall(r"^    (?!curl )(\S.*)$", text[text.index("A real scan"):], re.M))
    commands = commands.replace("docs/samples", f"/usr/bin/python3 {SOURCE}/docs/samples")
    done = subprocess.run(["bash", "-euc", commands], cwd=work, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    said = re.findall(r"`(axis offset [^`]*)`", text)[-1]
    return [] if done.returncode == 0 and done.stdout.count(said) == 2 else [f"exit {done.returncode}, or not {said}: {done.stdout}"]


def output_of(text, command, environment, work):
    """What the one block with a subcommand prints."""
    block = [content for kind, content in blocks(text) if kind == "sh" and f"tomonode {command} " in content][0]
    return subprocess.run(["bash", "-euc", block], cwd=work, env=environment, text=True, stdout=subprocess.PIPE,
                          check=True).stdout


def spheres(output):
    """What the page says in words about the spheres."""
    lines = [line.split() for line in output.splitlines()]
    mean = {words[0]: float(words[2]) for words in lines if words and words[0] in ("hot", "cold", "background")}
    good = len(mean) == 3 and 2 < mean["hot"] / mean["background"] < 3 and mean["cold"] < 0.6 * mean["background"]
    return [] if good else [f"the spheres have {mean}"]
