# SPDX-License-Identifier: Apache-2.0
"""The numbered promises of the documents, each with its tests: the guarantees of reliability.md (rows of tables) and
the sections of conformance.md (a line "Tests: ..." at the end of each); and the hazards, with what guards against them."""
import dataclasses
import os
import re

NAMES = re.compile(r"`([^`]+)`")
GUARANTEE = re.compile(r"\| ([A-Z]?[\d.]*) ?\| (.*) \| ([^|]*) \|")
SECTION = re.compile(r"#{2,3} (\d[\d.]*) (.*)")
IS_TEST = {".c": re.compile(r"^TEST\(", re.M), ".py": re.compile(r"^def test_", re.M)}  # what a file of tests has


@dataclasses.dataclass
class Promise:
    text: str
    place: str  # FILE:LINE
    tests: list  # as the document names them


def lines_of(root, document):
    with open(os.path.join(root, "docs", document + ".md"), encoding="utf-8") as f:
        return list(enumerate(f.read().splitlines(), 1))


def part(lines, heading):
    """The lines below a heading of the second level, up to the next one."""
    inside = False
    for number, line in lines:
        if line.startswith("## "):
            inside = line == "## " + heading
        elif inside:
            yield number, line


def read_guarantees(root):
    """{"reliability W1": Promise}; a row without a number of its own gets its line ("reliability line 12")."""
    found = {}
    for number, line in part(lines_of(root, "reliability"), "The guarantees"):
        row = GUARANTEE.fullmatch(line)
        if row and row[2] != "guarantee":
            own = row[1] and "reliability " + row[1] not in found
            found["reliability " + (row[1] if own else f"line {number}")] = Promise(
                row[2], f"docs/reliability.md:{number}", NAMES.findall(row[3]))
    return found


def read_sections(root):
    """{"conformance 3.1": Promise}; a heading without text of its own promises nothing."""
    found, section = {}, None
    for number, line in lines_of(root, "conformance"):
        if heading := SECTION.fullmatch(line):
            name, section = "conformance " + heading[1], Promise(heading[2], f"docs/conformance.md:{number}", [])
        elif section and line:
            found[name] = section
            section.tests += NAMES.findall(line) if line.startswith("Tests: ") else []
    return found


def read_promises(root):
    return read_guarantees(root) | read_sections(root)


def read_hazards(root):
    """{hazard: [name of a promise]}"""
    rows = [line.strip("| ").split(" | ") for _, line in part(lines_of(root, "reliability"), "Hazards")
            if line.startswith("| ")]
    return {hazard: [guard if " " in guard else "reliability " + guard for guard in guards.split(", ")]
            for hazard, guards in rows[1:]}


def find_test(root, name):
    """The path of a test that a document names, from the root; None: there is none."""
    for base in [""] if name.startswith("tests/") else ["tests/system", "tests"]:
        for extension in ("", ".py", ".c", ".sh"):
            path = os.path.normpath(os.path.join(base, name + extension))
            full = os.path.join(root, path)
            if os.path.isdir(full) and any(file.startswith("test_") for file in os.listdir(full)):
                return path
            if os.path.isfile(full):
                pattern = IS_TEST.get(extension) if os.path.basename(path).startswith("test_") else None
                with open(full, encoding="utf-8") as f:
                    return path if not pattern or pattern.search(f.read()) else None
    return None


def check_promises(root):
    """What is wrong with promises and hazards: no number, no tests, tests or guards that are not there."""
    promises = read_promises(root)
    for name, promise in promises.items():
        if " line " in name:
            yield f"{promise.place}: a guarantee without a number of its own"
        if not promise.tests:
            yield f"{promise.place}: {name} has no test"
        yield from (f"{promise.place}: {name}: there is no test {test}" for test in promise.tests
                    if not find_test(root, test))
    for hazard, guards in read_hazards(root).items():
        yield from (f"docs/reliability.md: hazard \"{hazard}\": there is no promise {guard}" for guard in guards
                    if guard not in promises)
