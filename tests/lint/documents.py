# SPDX-License-Identifier: Apache-2.0
"""Documents: each link leads to a file and a heading of the tree, the rows of a table have as many cells and no line
between them, and no cell has more text than a reader takes in at once."""
import os
import re

LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
HEADING = re.compile(r"#{1,6} (.*)")
CELL_ENDS = re.compile(r"(?<!\\)\|")
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
MOST = 200  # characters of a cell, without the addresses of links
RULE = re.compile(r"\|[-|: ]+\|")


def documents(root):
    for at, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        for name in sorted(names):
            if name.endswith(".md"):
                with open(os.path.join(at, name), encoding="utf-8") as f:
                    yield os.path.relpath(os.path.join(at, name), root), f.read().split("\n")


def without_code(lines):
    """The lines, those of blocks of code empty."""
    code = False
    for line in lines:
        code ^= line.startswith("```")
        yield "" if code or line.startswith("```") else line


def anchors_of(lines):
    """The anchors that GitHub makes of headings."""
    found = {}
    for heading in filter(None, map(HEADING.match, without_code(lines))):
        text = LINKED.sub(r"\1", heading[1]).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return {f"{a}-{i}" if i else a for a, n in found.items() for i in range(n + 1)}


def link_fault(root, path, link, anchors):
    name, _, anchor = link.partition("#")
    to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if not os.path.exists(os.path.join(root, to)):
        return "no such file"
    return "no such heading" if anchor and anchor not in anchors.get(to, [anchor]) else None


def check_links(root, path, lines, anchors):
    for number, line in enumerate(without_code(lines), 1):
        for link in (a or b for a, b in LINK.findall(line)):
            fault = None if re.match("[a-z]+:", link) else link_fault(root, path, link, anchors)
            if fault:
                yield f"{path}:{number}: a link to {link}: {fault}"


def check_tables(path, lines):
    lines = [*without_code(lines), "", ""]
    for i in range(1, len(lines) - 2):
        above, line, below = lines[i - 1:i + 2]
        cells, cells_above = len(CELL_ENDS.findall(line)), len(CELL_ENDS.findall(above))
        if above.startswith("|") and line.startswith("|") and cells != cells_above:
            yield f"{path}:{i + 1}: a row with another number of cells than the one above"
        if above.startswith("|") and not line and below.startswith("|") and not RULE.fullmatch(lines[i + 2]):
            yield f"{path}:{i + 1}: a blank line ends the table, rows follow"
        if line.startswith("|") and any(len(c.strip()) > MOST for c in CELL_ENDS.split(LINKED.sub(r"\1", line))):
            yield f"{path}:{i + 1}: a cell of more than {MOST} characters"


def check(root):
    read = dict(documents(root))
    anchors = {path: anchors_of(lines) for path, lines in read.items()}
    for path, lines in read.items():
        yield from check_links(root, path, lines, anchors)
        yield from check_tables(path, lines)
