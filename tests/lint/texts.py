# SPDX-License-Identifier: Apache-2.0
"""Texts of the status page: what is written say(language, "...") has a row in the table of node/status/say.c, and what has a row
there or in the tables of node/status/say_format.c is written somewhere. That the rows are complete and agree in their values is
checked by tests/node/status/test_say.c."""
import os
import re

TABLE = "node/status/say.c"
FORMATS = "node/status/say_format.c"
DEFAULTS = "conf/defaults.conf"
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


def text_of(root, name):
    path = os.path.join(root, name)
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read()


def rows_of(root, table):
    return {joined(m[1]) for m in ROW.finditer(text_of(root, table))}


def check(root):
    if not os.path.isfile(os.path.join(root, TABLE)):
        return
    rows, formats = rows_of(root, TABLE), rows_of(root, FORMATS)
    written = {joined(m[0]) for m in LITERALS.finditer(text_of(root, DEFAULTS))}
    for folder, _, files in sorted(found for top in ("dicom", "node") for found in os.walk(os.path.join(root, top))):
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith((".c", ".h")) or path in (TABLE, FORMATS):
                continue
            with open(os.path.join(root, path), encoding="utf-8") as f:
                source = f.read()
            written.update(joined(m[0]) for m in LITERALS.finditer(source))
            for line, text in said(source) if path.startswith("node/status/") and path.endswith(".c") else ():
                if text not in rows:
                    yield f"{path}:{line}: a text of the status page without a row in {TABLE}: {text}"
    for table, texts in ((TABLE, rows), (FORMATS, formats)):
        for text in sorted(texts - written):
            yield f"{table}: a row whose text is written nowhere: {text}"
