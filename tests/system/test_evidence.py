# SPDX-License-Identifier: Apache-2.0
"""deploy/evidence.sh: on this tree every promise has its tests; on a made-up tree what is missing is found."""
import json
import os
import re
import shutil
import subprocess

import pytest

from tools import node_harness as h

SOURCE = os.environ["TOMONODE_SOURCE"]
GUARANTEES = """## The guarantees
| | guarantee | tests |
|---|---|---|
| 1 | [Nothing](x.md) is lost | `test_a` |
| W1 | A side is a side | `node/test_b`, `hostile/odd` |
## Hazards
| hazard | guards |
|---|---|
| lost exam | 1, conformance 2.1 |
## Limits
* Not more than [one](x.md).
## Other
nothing
"""
TREE = {
    "CMakeLists.txt": "project(tomonode VERSION 1.2.3 LANGUAGES C)\n",
    "CHANGELOG.md": "# Changes\n- first\n",
    "deploy/debian/control": "Source: tomonode\nBuild-Depends: zlib1g-dev\n\nPackage: tomonode\nArchitecture: any\n",
    "docs/reliability.md": GUARANTEES,
    "docs/conformance.md": "# Statement\n## 2 All\n\n### 2.1 Part\nIt does.\n\nTests: `test_a`.\n",
    "node/a.c": "/* SPDX-License-Identifier: Apache-2.0 */\nint a(void)\n{\n\treturn 1;\n}\n",
    "tests/system/test_a.py": "def test_one(): pass\n",
    "tests/node/test_b.c": "TEST(test_two)\n",
    "tests/hostile/odd.py": "",
    "tests/faults/faults.toml": """[fault]
keeps = ["node/a.c:a", '1;', '2;', "reliability 1: it is lost", "tests/system/test_a.py"]
""",
    "build/dev/units.xml": """<testsuite timestamp="2026-01-02T03:04:05"><testcase name="node/test_b" status="run"/>
</testsuite>""",
    "build/dev/system.xml": """<testsuites><testsuite><testcase classname="system.test_a" name="test_one"/>
<testcase classname="hostile.test_hostile" name="test_node[odd]"><skipped message="x"/></testcase>
</testsuite></testsuites>""",
}


def git(tree, *arguments):
    h.run("git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments)


def evidence(out, *options):
    """Return (exit code, what is wrong, evidence.md, bill of materials)."""
    done = h.run(os.path.join(SOURCE, "deploy", "evidence.sh"), *options, out, code=None)
    h.check(done.returncode in (0, 1), f"exit code {done.returncode}: {done.stderr}")
    texts = []
    for name in "evidence.md", "tomonode.spdx.json":
        texts.append(h.read_file(os.path.join(out, name)))
    return done.returncode, done.stderr, texts[0], json.loads(texts[1])


def check_bill(tree, bill):
    """Each identifier is there once, each relation is between two of them, each file of the tree is listed."""
    elements = [e["SPDXID"] for e in (bill, *bill["packages"], *bill["files"])]
    h.check(len(elements) == len(set(elements)), "an identifier is there twice")
    ends = {r[end] for r in bill["relationships"] for end in ("spdxElementId", "relatedSpdxElement")}
    h.check(ends <= set(elements), f"relations with {ends - set(elements)}")
    listed = h.run("git", "-C", tree, "ls-files", "-z").stdout.split("\0")[:-1]
    there = {"./" + name for name in listed if os.path.isfile(os.path.join(tree, name))}
    h.check({file["fileName"] for file in bill["files"]} == there, "other files than git's")
    words = {word.strip("()") for p in bill["packages"] for word in p["licenseDeclared"].split()}
    texts = {one["licenseId"] for one in bill["hasExtractedLicensingInfos"]}
    h.check({w for w in words if w.startswith("LicenseRef-")} == texts, "licences without a text, or the reverse")


@pytest.fixture
def tree(folder):
    at = os.path.join(folder, "tree")
    for name, text in TREE.items():
        os.makedirs(os.path.dirname(os.path.join(at, name)), exist_ok=True)
        h.write_file(os.path.join(at, name), text)
    git(folder, "init", "--quiet", at)
    git(at, "add", "--all", "--", ":!build")
    git(at, "commit", "--quiet", "--message", "all: begin")
    return at


def test_this_tree(folder):
    if subprocess.run(["git", "-C", SOURCE, "rev-parse"], capture_output=True, check=False).returncode:
        h.skip("this is no checkout of git")
    _, wrong, page, bill = evidence(folder, "--build", folder)
    wrong = [line for line in wrong.splitlines() if " is not installed" not in line]  # of the groups build and package
    h.check(not wrong, f"evidence.sh says {wrong}")
    linked, every = page.split(" promises are linked")[0].splitlines()[-1].split(" of ")
    h.check(linked == every and int(every) > 70, f"{linked} of {every} promises")
    check_bill(SOURCE, bill)
    for needed in ("libdcmtk", "libssl", "libc6"):
        h.check(any(p["name"].startswith(needed) for p in bill["packages"]), f"the bill does not have {needed}")


def test_made_up_tree(folder, tree):
    git(tree, "tag", "v1.2.2")
    with open(os.path.join(tree, "CHANGELOG.md"), "a", encoding="utf-8") as f:
        f.write("- second\n")
    git(tree, "commit", "--all", "--quiet", "--message", "all: go on")
    code, wrong, page, bill = evidence(os.path.join(folder, "out"), "--source", tree)
    h.check(code == 0 and not wrong, f"code {code}: {wrong}")
    for line in ("3 of 3 promises are linked to tests that exist. Results: run of 2026-01-02T03:04:05.",
                 "| reliability 1 | Nothing is lost | `test_a` (1 passed) | keeps: it is lost |",
                 "| reliability W1 | A side is a side | `node/test_b` (1 passed); `hostile/odd` (1 skipped) |  |",
                 "| lost exam | conformance 2.1 | Part | `test_a` (1 passed) |  |",
                 "* Not more than one.", "## Changes since v1.2.2", "- second"):
        h.check(line in page.splitlines(), f"the page does not have the line {line}")
    h.check("- first" not in page and "all: begin" not in page and "all: go on" in page, "changes since the tag")
    check_bill(tree, bill)
    h.check(re.fullmatch(r"https://spdx.org/spdxdocs/tomonode-1.2.3-[0-9a-f]{40}", bill["documentNamespace"]), bill["documentNamespace"])
    zlib = next(p for p in bill["packages"] if p["name"] == "zlib1g")
    version = h.run("dpkg-query", "-W", "-f", "${Version}", "zlib1g").stdout
    h.check((zlib["versionInfo"], zlib["licenseDeclared"]) == (version, "Zlib"), f"zlib1g is {zlib}")


def test_changed_tree(folder, tree):
    """What is not committed gives the bill of materials another namespace, each change its own."""
    names = []
    for text in ("- changed\n", "- again\n"):
        with open(os.path.join(tree, "CHANGELOG.md"), "a", encoding="utf-8") as f:
            f.write(text)
        _, _, page, bill = evidence(os.path.join(folder, "out"), "--source", tree)
        names.append(bill["documentNamespace"])
        source = next(p for p in bill["packages"] if p["name"] == "tomonode-source")
        h.check("with changes" in page and source["sourceInfo"].endswith(" with changes"), source["sourceInfo"])
    h.check(all(re.fullmatch(r"\S+-[0-9a-f]{40}-[0-9a-f]{12}", name) for name in names) and names[0] != names[1], names)


def test_trees_that_cannot_be_read(folder, tree):
    """A sentence, not the inside of the program."""
    def refused(*options, words):
        done = h.run(os.path.join(SOURCE, "deploy", "evidence.sh"), *options, os.path.join(folder, "none"), code=2)
        h.check(words in done.stderr and "Traceback" not in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    refused("--source", tree, "--since", "v9", words="--since v9: the checkout has no such revision")
    for file, words in (("CMakeLists.txt", "CMakeLists.txt: project(NAME VERSION N.N.N) is missing"),
                        ("deploy/debian/control", "deploy/debian/control: Build-Depends is missing")):
        with open(os.path.join(tree, file), "w", encoding="utf-8") as f:
            f.write("\n")
        refused("--source", tree, words=words)
        with open(f.name, "w", encoding="utf-8") as f:
            f.write(TREE[file])
    shutil.rmtree(os.path.join(tree, ".git"))
    refused("--source", tree, words="no checkout of git with a commit")


@pytest.mark.parametrize("file, old, new, wrong", [
    ("tests/system/test_a.py", None, None, "docs/reliability.md:4: reliability 1: there is no test test_a"),
    ("tests/system/test_a.py", "def test_one", "def one", "docs/conformance.md:4: conformance 2.1: there is no test"),
    ("docs/conformance.md", "Tests: `test_a`", "Tested", "docs/conformance.md:4: conformance 2.1 has no test"),
    ("docs/reliability.md", "| W1 |", "| 1 |", "docs/reliability.md:5: a guarantee without a number of its own"),
    ("docs/reliability.md", "| W1 |", "| |", "docs/reliability.md:5: a guarantee without a number of its own"),
    ("docs/reliability.md", "1, conf", "7, conf", 'hazard "lost exam": there is no promise reliability 7'),
    ("docs/reliability.md", "1, conf", "conf", 'hazard "lost exam": no planted fault breaks one of its guards'),
    ("tests/faults/faults.toml", "reliability 1:", "reliability:", "keeps: names no promise of a document"),
    ("build/dev/units.xml", 'status="run"', 'status="fail"', "reliability W1: node/test_b: 1 failed"),
    ("deploy/debian/control", "zlib1g-dev", "zlib1g-dev, none-such-dev", "none-such-dev is not installed"),
])
def test_what_is_missing(folder, tree, file, old, new, wrong):
    path = os.path.join(tree, file)
    if old is None:
        os.remove(path)
    else:
        h.check(TREE[file].count(old) == 1, f"{old} in {file}")
        h.write_file(path, TREE[file].replace(old, new))
    code, said, page, _ = evidence(os.path.join(folder, "out"), "--source", tree)
    h.check(code == 1 and wrong in said and wrong in page, f"code {code}: {said}")
