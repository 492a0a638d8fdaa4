# SPDX-License-Identifier: Apache-2.0
"""The numbered promises of the documents, each with its tests: the guarantees of reliability.md (rows of tables), the sections
of conformance.md (a line "Tests: ..." at the end of each), and the hazards, each with the promises that guard against it."""
import dataclasses
import os
import re

NAMES = re.compile(r"`([^`]+)`")
GUARANTEE = re.compile(r"\| ([A-Z]?[\d.]+) \| (.*) \| ([^|]*) \|")
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


def read_promises(root):
    """{"reliability W1" | "conformance 3.1": Promise}, in the order of the documents"""
    found = {}
    for number, line in part(lines_of(root, "reliability"), "The guarantees"):
        if row := GUARANTEE.fullmatch(line):
            found["reliability " + row[1]] = Promise(row[2], f"docs/reliability.md:{number}", NAMES.findall(row[3]))
    section = None
    for number, line in lines_of(root, "conformance"):
        if heading := SECTION.fullmatch(line):
            section, place = Promise(heading[2], f"docs/conformance.md:{number}", []), "conformance " + heading[1]
        elif section and line:  # a heading without text of its own promises nothing
            found[place] = section
            section.tests += NAMES.findall(line) if line.startswith("Tests: ") else []
    return found


def read_hazards(root):
    """{hazard: [promise by its name]}"""
    rows = (line.strip("| ").split(" | ") for _, line in part(lines_of(root, "reliability"), "Hazards") if line.startswith("| "))
    return {hazard: [guard if " " in guard else "reliability " + guard for guard in guards.split(", ")]
            for hazard, guards in rows if guards != "guards"}


def find_test(root, name):
    """The path of a test that a document names, from the root; None: there is none."""
    for base in [""] if name.startswith("tests/") else ["tests/system", "tests"]:
        for extension in ("", ".py", ".c", ".sh"):
            path = os.path.normpath(os.path.join(base, name + extension))
            full = os.path.join(root, path)
            if os.path.isdir(full) and any(file.startswith("test_") for file in os.listdir(full)):
                return path
            if os.path.isfile(full):
                pattern = IS_TEST.get(os.path.splitext(path)[1]) if os.path.basename(path).startswith("test_") else None
                with open(full, encoding="utf-8") as f:
                    return path if not pattern or pattern.search(f.read()) else None
    return None


def check_promises(root):
    """What is wrong with promises and hazards: without tests, with tests or guards that are not there."""
    promises = read_promises(root)
    for name, promise in promises.items():
        if not promise.tests:
            yield f"{promise.place}: {name} has no test"
        yield from (f"{promise.place}: {name}: there is no test {test}" for test in promise.tests if not find_test(root, test))
    for hazard, guards in read_hazards(root).items():
        yield from (f"docs/reliability.md: hazard \"{hazard}\": there is no promise {guard}" for guard in guards if guard not in promises)
