# SPDX-License-Identifier: Apache-2.0
"""Every warning of a tomosynthesis result has a row in docs/operations.md (table "warnings").

Warnings are the texts of exam_warn(), and those in functions whose name shows that they write one: warn(), exam_warnings(),
add_..._warning(s)(), explain...(), ..._verdict_text(). Numbers and names in them are "..." in the table; a row may have the beginning of a
sentence, with MORE behind it."""
import os
import re

PAGE = "docs/operations.md"
FILES = re.compile(r"node/tomo/.*\.c|node/reconstruct/reconstruct_dbt\.c|node/result/result_plausible\.c|recon/dbt/air.*\.c")
WRITERS = re.compile(r"(?:warn|exam_warnings|(?:result_)?add_\w*warnings?|explain\w*|\w+_verdict_text)")
FUNCTION = re.compile(r"^[A-Za-z][^\n;={}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
LEAST = 16  # characters of a sentence; shorter ones are names
MORE = "…"


def as_in_table(literals):
    """The text of adjacent string literals, its conversions as "..."."""
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')
    text = re.sub(r"(?<=[a-z])%s\b", "s", text)  # a plural
    text = re.sub(r"%%|(?:%[-+#0-9.*]*(?:ll|[lzh])?[a-zA-Z])+", lambda m: "%" if m[0] == "%%" else "...", text)
    return re.sub(r"^(?:\.\.\.[ ,]*)+", "", text).replace("....", "...").strip()


def sentences(source):
    """The warnings of a C source, with their line numbers."""
    bodies = [(m.start(2), m[2]) for m in FUNCTION.finditer(source) if WRITERS.fullmatch(m[1])]
    calls = [(m.start(1), m[1]) for m in re.finditer(r"\bexam_warn\(\s*\w+,\s*(" + LITERALS.pattern + ")", source)]
    for at, text in bodies + calls:
        for literals in LITERALS.finditer(text):
            sentence = as_in_table(literals[0])
            if len(sentence) >= LEAST:
                yield source.count("\n", 0, at + literals.start()) + 1, sentence


def check(root):
    with open(os.path.join(root, PAGE), encoding="utf-8") as f:
        table = f.read().partition("<!-- warnings:")[2].partition("<!-- warnings: end")[0]
    if not table:
        yield f'{PAGE}: no table "warnings"'
    beginnings = tuple(b for b in re.findall(rf"^\| (?:\.\.\.[ ,]*)*(.*?) *{MORE} \|", table, re.M) if len(b) >= LEAST)
    for top in ("node/tomo", "node/reconstruct", "recon/dbt"):
        for name in sorted(os.listdir(os.path.join(root, top))) if os.path.isdir(os.path.join(root, top)) else ():
            path = f"{top}/{name}"
            if not FILES.fullmatch(path):
                continue
            with open(os.path.join(root, path), encoding="utf-8") as f:
                for line, sentence in sentences(f.read()):
                    if sentence not in table and not sentence.startswith(beginnings):
                        yield f'{path}:{line}: a warning without a row in the table "warnings" of {PAGE}: {sentence}'
