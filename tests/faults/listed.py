# SPDX-License-Identifier: Apache-2.0
"""The list of planted faults, faults.toml: its head describes it."""
import os
import re
import tomllib

from c_source import SOURCES, code_only, functions, without_comments
from promises import read_promises
from tree import Fault, named, read


def unit_tests(root):
    """The names that tests/CMakeLists.txt gives to C tests and to scripts."""
    for at, _, files in os.walk(os.path.join(root, "tests")):
        for name in files:
            stem, extension = os.path.splitext(name)
            path = os.path.relpath(os.path.join(at, stem), os.path.join(root, "tests"))
            if name.startswith("test_") and extension in (".c", ".sh"):
                yield path
            elif name.startswith("fuzz_") and extension == ".c":
                yield "fuzz/" + stem.removeprefix("fuzz_")


def is_there(root, test, units):
    if not test.startswith("tests/"):
        return bool(named([test], units))
    path, _, function = test.partition("::")
    return os.path.exists(os.path.join(root, path)) and (not function or f"def {function}(" in read(root, path))


def unmatched(text):
    """The brackets that the text closes and opens for what is beside it."""
    left = re.sub(r"[^(){}\[\]]", "", text)
    while left != (shorter := re.sub(r"\(\)|\{\}|\[\]", "", left)):
        left = shorter
    return left


def match_in(text, file, function, find):
    """All places in the function where the pattern is found."""
    pattern = re.compile(find.replace(" ", r"\s*"), re.S)
    if os.path.splitext(file)[1] not in SOURCES:
        return list(pattern.finditer(text))
    spans = [(begin, end + 1) for name, begin, _, end in functions(code_only(text)) if name == function]
    plain = without_comments(text)
    return [m for span in (spans if function else [(0, len(text))]) for m in pattern.finditer(plain, *span)]


def read_list(root, path):
    """Return (faults, what is wrong with the list)."""
    with open(path, "rb") as f:
        tables = tomllib.load(f)
    faults, wrong, units, texts = [], [], list(unit_tests(root)), {}
    promises = read_promises(root)
    numbered = {name.partition(" ")[0] for name in promises}
    for id, (place, find, put, breaks, *tests) in tables["fault"].items():
        file, _, function = place.partition(":")
        try:
            texts[file] = texts.get(file) or read(root, file)
        except OSError as error:
            wrong.append(f"{id}: {error}")
            continue
        matches = match_in(texts[file], file, function, find)
        if len(matches) == 1:
            at, old = matches[0].start(), texts[file][matches[0].start() : matches[0].end()]
            faults.append(Fault(id, file, at, old, matches[0].expand(put), breaks, tuple(tests)))
            if faults[-1].new == old:
                wrong.append(f"{id}: replaces {old!r} by itself")
            if unmatched(faults[-1].new) != unmatched(old):
                wrong.append(f"{id}: its brackets are not those of {old!r}: it cannot be compiled")
        else:
            wrong.append(f"{id}: {find!r} is found {len(matches)} times in {place}, expected once")
        promise = breaks.partition(":")[0]
        is_document = promise not in numbered and os.path.exists(os.path.join(root, "docs", promise + ".md"))
        if promise not in promises and not is_document:
            wrong.append(f"{id}: names no promise of a document: {breaks!r}")
        wrong += [f"{id}: there is no test {test}" for test in tests or [""] if not is_there(root, test, units)]
    for folder, least in tables.get("at_least", {}).items():
        n = sum(fault.file.startswith(folder + "/") for fault in faults)
        if n < least:
            wrong.append(f"{folder}: {n} faults, at least {least} expected")
    return faults, wrong
