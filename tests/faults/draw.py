# SPDX-License-Identifier: Apache-2.0
"""Random faults of one line in functions of C, C++ and CUDA.

Each line of code of the chosen files is drawn with the same probability, then a kind of change that is possible in it,
then a place. Texts, messages, assertions and declarations are left alone. The same seed draws the same faults from the
same tree.
"""
import bisect
import os
import random
import re

from c_source import SOURCES, closing, code_only, functions, spaces
from tree import Fault, read

LAYERS = ("kernels", "recon", "dicom", "node")
CUDA = "kernels/cuda/"
PAIRS = ("< <=", "> >=", "== !=", "&& ||", "+ -", "* /", "<< >>", "& |", "+= -=", "*= /=", "&= |=", "true false")
OPPOSITE = {"%": "/"} | {a: b for pair in PAIRS for a, b in (pair.split(), reversed(pair.split()))}
STATEMENT = r"[ \t]*(?:\(void\))?"
WORDS = r"(?!(?:if|for|while|switch|return|sizeof|else|do|case|goto|delete|throw|defined)\b)"
# What is not changed: assertions, the sizes of declared arrays, what follows a text in the arguments of a call.
ASSERTION = re.compile(r"\b(?:static_|_Static_)?assert\s*\(.*?\);", re.S)
DECLARED = re.compile(r"^[ \t]*(?:" + WORDS + r"\w+[ \t]+)+\**\w+((?:\[[^\]\n]*\])+)", re.M)
SYMMETRIC = re.compile(r"(?:min|max)f?\($|^hypotf?\($|^calloc\($|^_mm\d*_(?:add|mul)_p[sd]\($")
TEXT = re.compile(r"\" *\"")


def changeable(text):
    """The same length; what is not to be changed is spaces."""
    code = ASSERTION.sub(lambda m: spaces(m[0]), code_only(text))
    code = DECLARED.sub(lambda m: m[0][: m.start(1) - m.start()] + spaces(m[1]), code)
    for m in TEXT.finditer(code):
        end = end_of_arguments(code, m.end())
        code = code[: m.end()] + spaces(code[m.end() : end]) + code[end:]
    return code


def end_of_arguments(code, at):
    depth = 0
    for m in re.compile(r"[(){}\[\];]").finditer(code, at):
        depth += (m[0] in "({[") - (m[0] in ")}]")
        if depth < 0 or m[0] == ";":
            return m.start()
    return len(code)


# ---- kinds of change: each yields (place, old length, new text) for code[begin:end]; its function ends at `last` ----


def replaced(pattern, new):
    pattern = re.compile(pattern)

    def kind(code, begin, end, last):
        for m in pattern.finditer(code, begin, end):
            for text in new(m):
                yield m.start(), len(m[0]), text

    return kind


def operator(words):
    return replaced(r"(?<=[\w)\]'\"] )(?:" + words + r")(?= |$|\n)", lambda m: [OPPOSITE[m[0]]])


def near(m):
    """A number one larger and one smaller, not below 0; of one with an exponent, ten times as large and as small."""
    if m["hex"]:
        return [f"{int(m['hex'], 16) + by:#x}{m['suffix']}" for by in (1, -1) if int(m["hex"], 16) + by >= 0]
    number, _, power = m["number"].partition("e")
    if power:
        return [f"{number}e{int(power) + by}{m['suffix']}" for by in (1, -1)]
    digits = len(number.partition(".")[2]) or "." in number
    return [f"{float(number) + by:.{digits:d}f}{m['suffix']}" for by in (1, -1) if float(number) + by >= 0]


def negated_conditions(code, begin, end, last):
    for m in re.compile(r"\bif (?=\()").finditer(code, begin, end):
        stop = closing(code, m.end())
        yield m.end(), stop + 1 - m.end(), lambda old: f"(!{old})"


def dropped_calls(code, begin, end, last):
    name = r"(?P<call>" + WORDS + r"[A-Za-z_][\w:.\[\]]*(?:->[\w:.\[\]]+)*)"
    m = re.compile(STATEMENT + name + r"(?=\()").match(code, begin, end)
    if m and code[:begin].rstrip().endswith((";", "{", "}", ")", ":", "else")):  # the beginning of a statement
        stop = closing(code, m.end()) + 1
        if code[stop : stop + 1] == ";":
            yield m.start("call"), stop - m.start("call"), ""


def dropped_exits(code, begin, end, last):
    m = re.compile(STATEMENT + r"(?=(?:return|goto)\b)").match(code, begin, end)
    if m:
        stop = code.index(";", m.end())
        if code[stop + 1 : last].strip():  # not the function's last statement
            yield m.end(), stop - m.end(), ""


def swapped_arguments(code, begin, end, last):
    for m in re.compile(r"\b" + WORDS + r"\w+\(").finditer(code, begin, end):
        stop = closing(code, m.end() - 1)
        if stop > end or SYMMETRIC.search(m[0]):
            continue
        cuts, depth = [m.end() - 1], 0
        for at in range(m.end(), stop):
            depth += (code[at] in "({[") - (code[at] in ")}]")
            if code[at] == "," and depth == 0:
                cuts.append(at)
        cuts.append(stop)
        for a, b, c in zip(cuts, cuts[1:], cuts[2:]):
            first, second = code[a + 1 : b], code[b + 1 : c]
            if first.strip() and second.strip() and first.strip() != second.strip():
                yield a + 1, c - a - 1, lambda old, b=b - a - 1: swap(old, b)


def swap(old, comma):
    first, second = old[:comma], old[comma + 1 :]
    return old[: len(first) - len(first.lstrip())] + second.strip() + ", " + first.strip()


KINDS = {
    "comparison": operator(r"<=|>=|<|>|==|!="),
    "arithmetic": operator(r"[-+*/%]|<<|>>|[-+*/]="),
    "bits": operator(r"[&|]|[&|]="),
    "logic": operator(r"&&|\|\|"),
    "sign": replaced(r"(?:(?<=[(,=?:<>&|+*/\[] )|(?<=[(\[])|(?<=\breturn ))-(?=[\w(.])", lambda m: [""]),
    "new sign": replaced(r"(?:(?<= = )|(?<=\breturn )|(?<=\())(?=[\w.>\[\]-]+ [*/] )", lambda m: ["-"]),
    "constant": replaced(
        r"(?<![\w.])(?:0x(?P<hex>[\da-fA-F]+)|(?P<number>\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+))"
        r"(?P<suffix>[uUlLfF]*)\b",
        near,
    ),
    "bound": replaced(
        r"(?<= [<>] |[<>]= )" + WORDS + r"[A-Za-z_]\w*(?:(?:->|\.)\w+|\[\w+\])*(?=[;)]| &&| \|\||$|\n)",
        lambda m: [m[0] + " - 1", m[0] + " + 1"],
    ),
    "not": replaced(r"!(?=[\w(*])", lambda m: [""]),
    "truth": replaced(r"\b(?:true|false)\b", lambda m: [OPPOSITE[m[0]]]),
    "condition": negated_conditions,
    "call": dropped_calls,
    "exit": dropped_exits,
    "arguments": swapped_arguments,
}


def lines_of(text):
    """[(begin, end of a line, end of its function)] of the lines that have code"""
    code, found = code_only(text), []
    for _, _, opening, last in functions(code):
        found += [(m.start(), m.end(), last) for m in re.compile(r"[^\n]*\w[^\n]*").finditer(code, opening + 1, last)]
    return found


def draw(root, files, seed, name):
    """Yield faults NAME-1, NAME-2, ... without end."""
    rng, seen, codes = random.Random(f"{seed} {name}"), set(), {}
    texts = {file: read(root, file) for file in files}
    lines = {file: lines_of(text) for file, text in texts.items()}
    counts, total = [], 0
    for file in files:
        total += len(lines[file])
        counts.append(total)
    while True:
        chosen = rng.randrange(total)
        file = files[bisect.bisect(counts, chosen)]
        begin, end, last = lines[file][rng.randrange(len(lines[file]))]
        code = codes[file] = codes.get(file) or changeable(texts[file])
        possible = {kind: list(find(code, begin, end, last)) for kind, find in KINDS.items()}
        possible = {kind: places for kind, places in possible.items() if places}
        if not possible:
            continue
        kind = rng.choice(list(possible))
        at, length, new = rng.choice(possible[kind])
        old = texts[file][at : at + length]
        new = new(old) if callable(new) else new
        if (file, at, new) not in seen:
            seen.add((file, at, new))
            yield Fault(f"{name}-{len(seen)}", file, at, old, new, kind)


def files_to_draw_from(files, folders, cuda):
    return [
        f
        for f in files
        if f.startswith(CUDA) == cuda
        and os.path.splitext(f)[1] in SOURCES
        and any(f.startswith(folder.rstrip("/") + "/") for folder in folders)
    ]
