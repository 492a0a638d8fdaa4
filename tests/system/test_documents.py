# SPDX-License-Identifier: Apache-2.0
"""The commands in the documents exist and have their options; docs/commands.md has all commands."""
import functools
import glob
import os
import re

from tools import node_harness as h
from tools.node_harness import check

ROOT = os.environ["TOMONODE_SOURCE"]
PAGES = ["README.md", *glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True)]
# A command up to a comment, a pipe or another command: in a block of code, within a sentence
IN_BLOCK = re.compile(r"(?:^(?:\$ )?|sudo -u tomonode |exec node )tomonode ([a-z][^`\n#|>;&()]*)", re.M)
IN_LINE = re.compile(r"`tomonode ([a-z][^`\n#|>;&()]*)")


@functools.lru_cache(maxsize=None)
def help_of(*words):
    """The help of a command; None: there is none."""
    done = h.run(h.TOMONODE, *words, "--help", code=None)
    return done.stdout if done.returncode == 0 else None


def commands(path):
    parts = re.split(r"^ *```.*\n", h.read_file(os.path.join(ROOT, path)), flags=re.M)  # by turns text and code
    found = [m for text in parts[::2] for m in IN_LINE.findall(text)]
    found += [m for code in parts[1::2] for m in IN_BLOCK.findall(code)]
    return [m.split() for m in found if not m.startswith("help ")]


def faults(words):
    second = words[1:2] if re.fullmatch("[a-z]+", "".join(words[1:2])) else []
    text = help_of(words[0], *second) if words[0] in ("simulate", "profile", "arrays") else help_of(words[0])
    if text is None:
        yield "no such command"
    for word in words[1:] if text else ():
        option = re.match(r"\[?(--[a-z][a-z0-9-]*|-[a-zA-Z])(?=[=\]]|$)", word)
        if option and not re.search(rf"(?<![\w-]){option[1]}(?![\w-])", text):
            yield f"no option {option[1]}"


def test_commands(failures):
    found = [(path, words) for path in PAGES for words in commands(path)]
    check(len(found) > 200, f"only {len(found)} commands were found")
    failures += [f"{path}: tomonode {' '.join(words)}: {fault}" for path, words in found for fault in faults(words)]


def test_every_command_is_listed():
    names = re.findall(r"^  (?!tomonode)([a-z][a-z-]+) ", h.run(h.TOMONODE, "--help").stdout, re.M)
    page = h.read_file(os.path.join(ROOT, "docs", "commands.md"))
    missing = [name for name in names if not re.search(rf"`(?:tomonode )?{name}[ `]", page)]
    check(len(names) > 20 and not missing, f"docs/commands.md has no {missing}")
