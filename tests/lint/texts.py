# SPDX-License-Identifier: Apache-2.0
"""Texts of the status page: what is written say(language, "...") has a row in the table of node/status/say.c, and what has a row
is written somewhere. That the rows are complete and agree in their values is checked by tests/node/status/test_say.c."""
import os
import re

TABLE = "node/status/say.c"
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
ROW = re.compile(r"^\t\{(" + LITERALS.pattern + ")", re.M)
CALL = re.compile(r"\bsay\(")


def joined(literals):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))


def argument(source, at):
    """The arguments of a call whose opening parenthesis ends at `at`."""
    depth, end = 1, at
    while depth and end < len(source):
        if source[end] == '"':
            end += len(re.match(r'"(?:[^"\\\n]|\\.)*"', source[end:])[0]) - 1
        depth += (source[end] == "(") - (source[end] == ")")
        end += 1
    return source[at:end]


def said(source):
    """The texts of the calls of say(), with their line numbers."""
    for call in CALL.finditer(source):
        for literals in LITERALS.finditer(argument(source, call.end())):
            yield source.count("\n", 0, call.start()) + 1, joined(literals[0])


def check(root):
    if not os.path.isfile(os.path.join(root, TABLE)):
        return
    with open(os.path.join(root, TABLE), encoding="utf-8") as f:
        rows = {joined(m[1]) for m in ROW.finditer(f.read())}
    written = set()
    for folder, _, files in sorted(os.walk(os.path.join(root, "node"))):
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith((".c", ".h")) or path == TABLE:
                continue
            with open(os.path.join(root, path), encoding="utf-8") as f:
                source = f.read()
            written.update(joined(m[0]) for m in LITERALS.finditer(source))
            for line, text in said(source) if path.startswith("node/status/") and path.endswith(".c") else ():
                if text not in rows:
                    yield f"{path}:{line}: a text of the status page without a row in {TABLE}: {text}"
    for text in sorted(rows - written):
        yield f"{TABLE}: a row whose text is written nowhere: {text}"
