#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write what a hospital files about this version: OUT/evidence.md and OUT/tomonode.spdx.json.

evidence.md: each guarantee (docs/reliability.md) and each section of the conformance statement with its tests, their last result and
the planted faults; hazards, what guards against them and the same; known limits; materials; changes. tomonode.spdx.json: a bill of
materials in SPDX 2.3. Everything is read from the tree, its history, the results of tests in the build folder, and the installed
packages that the program is built with. Exit code: 0; 1 if a promise or hazard lacks its tests, a named test is not there or failed,
or a material is not known (the files are written, and say so); 2 for wrong usage.
"""
import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "faults")]
import summary  # noqa: E402
from listed import read_list  # noqa: E402
from promises import check_promises, find_test, read_hazards, read_promises  # noqa: E402

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
IDENTIFIER = re.compile(r"SPDX-License-Identifier: ([^\s*]+)")
LICENCE = re.compile(r"^License:[ \t]*(.*)((?:\n[ \t].*)*)", re.M)  # of a copyright file: short names, text
GNU = re.compile(r"(a?l?gpl)-(\d)(?:\.0)?(\.\d)?(\+|-or-later)?", re.I)
LICENCES = {name.lower(): name for name in ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause", "ISC", "MIT", "Zlib", "OpenSSL",
                                            "curl", "MPL-2.0", "OLDAP-2.8", "BSL-1.0", "libtiff")} | {"expat": "MIT", "bsd-3": "BSD-3-Clause"}
OWN = "Apache-2.0"  # LICENSE


def output_of(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
        return f.read()


def table(head, rows):
    def line(cells):
        return "| " + " | ".join(str(cell).replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
    return [line(head), "|" + "---|" * len(head), *map(line, rows), ""]


# ---- promises, tests, hazards ----


class Results:
    """The last results of the tests, from the files that ctest and pytest wrote to the build folder."""

    def __init__(self, build):
        self.files = sorted(glob.glob(os.path.join(build, "*.xml")))
        self.tests = [test for file in self.files for test in summary.read(file)[0]]
        self.when = sorted(set(re.findall(r'<testsuite[^>]* timestamp="([^"]+)"', "".join(map(read, self.files)))))

    def of(self, path):
        """How many tests of a file or folder passed, failed, were skipped; a module of a folder's sweep is a parameter of its test."""
        folder, name = os.path.split(os.path.splitext(path.removeprefix("tests/"))[0])
        whole = os.path.join(folder, name)
        states = [test.state for test in self.tests for other in [test.name.removeprefix("tests/")]
                  if other == whole or other.startswith((whole + "::", whole + "/")) or other.startswith(folder + "/") and other.endswith(f"[{name}]")]
        return ", ".join(f"{states.count(state)} {state}" for state in ("failed", "passed", "skipped") if state in states) or "not run"


def tests_cell(root, names, results):
    return "; ".join(f"`{name}` ({results.of(path) if (path := find_test(root, name)) else 'MISSING'})" for name in names) or "NONE"


def faults_cell(promise, faults):
    return "; ".join(f"{fault.id}: {fault.breaks.partition(': ')[2]}" for fault in faults if fault.breaks.startswith(promise + ":"))


def promise_part(root, promises, faults, results):
    """The lines of both matrices."""
    linked = sum(bool(p.tests) and all(find_test(root, test) for test in p.tests) for p in promises.values())
    lines = ["## Promises and their tests", "", f"{linked} of {len(promises)} promises are linked to tests that exist. Results: " +
             (f"run of {', '.join(results.when)}." if results.files else "none; run `tests/run.sh` first."), ""]
    return lines + table(("promise", "text", "tests (last result)", "planted faults"), (
        (name, LINK.sub(r"\1", p.text), tests_cell(root, p.tests, results), faults_cell(name, faults)) for name, p in promises.items()))


def hazard_part(root, hazards, promises, faults, results):
    return ["## Hazards", ""] + table(("hazard", "guard", "tests (last result)", "planted faults"), (
        (hazard, guard + ": " + LINK.sub(r"\1", promises[guard].text), tests_cell(root, promises[guard].tests, results), faults_cell(guard, faults))
        for hazard, guards in hazards.items() for guard in guards if guard in promises))


def find_faults(root, promises, hazards, faults, results):
    """What is wrong: sentences."""
    yield from check_promises(root)
    for name, promise in promises.items():
        yield from (f"{name}: {test}: {result}" for test in promise.tests for path in [find_test(root, test)]
                    if path and "failed" in (result := results.of(path)))
    for hazard, guards in hazards.items():
        if not any(faults_cell(guard, faults) for guard in guards):
            yield f"hazard \"{hazard}\": no planted fault breaks one of its guards"


# ---- limits and changes ----


def limit_part(root):
    """The parts "Limits" of the documents, without their links."""
    lines = ["## Known limits", ""]
    for path in sorted(glob.glob(os.path.join(root, "docs", "*.md"))):
        level = 0
        for line in read(path).splitlines():
            heading = re.match(r"(#+) (.*)", line)
            if heading and heading[2] == "Limits":
                level = len(heading[1])
                lines += [f"### {os.path.relpath(path, root)}", ""]
            elif heading and len(heading[1]) <= level:
                level = 0
            elif level:
                lines.append(LINK.sub(r"\1", line))
    return lines


def change_part(root, since):
    if not since:
        return ["## Changes", "", "No earlier version has a tag; `--since REVISION` names one.", ""]
    log = output_of("git", "log", "--no-merges", "--format=%h\t%cs\t%s", since + "..HEAD", cwd=root)
    added = output_of("git", "diff", "--unified=0", since, "HEAD", "--", "CHANGELOG.md", cwd=root)
    return [f"## Changes since {since}", ""] + [LINK.sub(r"\1", line[1:]) for line in added.splitlines() if line.startswith("+- ")] + [""] + table(
        ("commit", "date", "subject"), (line.split("\t", 2) for line in log.splitlines()))


# ---- bill of materials ----


class Debian:
    """The installed packages of the distribution."""

    FIELDS = ("Package", "Version", "source:Package", "Depends", "Pre-Depends", "Provides", "Maintainer", "Homepage", "db:Status-Status")

    def __init__(self):
        rows = output_of("dpkg-query", "-W", "-f", "\\t".join(f"${{{field}}}" for field in self.FIELDS) + "\\n") if shutil.which("dpkg-query") else ""
        listed = (dict(zip(self.FIELDS, row.split("\t"))) for row in rows.splitlines())
        self.packages = {p["Package"]: p for p in listed if p["db:Status-Status"] == "installed"}
        self.provided = {name: p for p in self.packages.values() for name, _ in self.named(p["Provides"])}

    def named(self, field):
        """(name, what the version must be) of the dependencies of a field; of alternatives the first that is installed."""
        for wanted in filter(None, map(str.strip, field.split(","))):
            names = [re.match(r"([\w.+-]+)(?::\w+)?\s*(?:\((.*)\))?", one.strip()).groups("") for one in wanted.split("|")]
            yield next((n for n in names if n[0] in self.packages), names[0])

    def real(self, name):
        """The installed package that is, or provides, what a name means; without one the name."""
        return name if name in self.packages else self.provided.get(name, {}).get("Package", name)

    def needs(self, name):
        p = self.packages[name]
        return {self.real(n) for n, _ in self.named(p["Depends"] + "," + p["Pre-Depends"])} & set(self.packages) - {name}

    def runtime_of(self, development):
        """The libraries of a -dev package: what it needs in exactly its version."""
        return {n for n, relation in self.named(self.packages[development]["Depends"]) if relation.startswith("=") and not n.endswith("-dev")}

    def closure(self, names):
        found, left = set(), {n for n in names if n in self.packages}
        while left:
            found |= left
            left = set().union(*map(self.needs, left)) - found
        return found


def linked_packages(build):
    """The packages whose shared libraries the programs of a build folder load."""
    found = set()
    for program in filter(os.path.exists, (os.path.join(build, name) for name in ("tomonode", "libtomonode.so"))):
        for path in map(os.path.realpath, re.findall(r"=> (/\S+)", output_of("ldd", program))):
            for name in (path, path.removeprefix("/usr")):  # dpkg may know /lib, a link to /usr/lib
                done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
                found |= {done.stdout.split(":")[0]} - {""}
    return found


def spdx_name(*parts):
    return re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(parts))


def identifier_of(name):
    """The SPDX identifier of a licence's short name in Debian; None: it has none that is known here."""
    if gnu := GNU.fullmatch(name):
        return f"{gnu[1].upper()}-{gnu[2]}{gnu[3] or '.0'}-{'or-later' if gnu[4] else 'only'}"
    return LICENCES.get(name.lower())


def term_of(package, name, stated, texts):
    """The identifier of a licence; without one a reference to its text, the longest that the copyright file states."""
    if identifier := identifier_of(name):
        return identifier
    term = spdx_name("LicenseRef", package, name)
    texts[term] = max((body.strip() for other, body in stated if other.strip() == name), key=len, default="") or name
    return term


def licence_of(package, texts):
    """A package's expression in SPDX, from its copyright file. Text of licences without an identifier is added to texts."""
    path = f"/usr/share/doc/{package}/copyright"
    if not os.path.exists(path):
        return "NOASSERTION"
    text = read(path)
    if not re.search(r"^Format:.*copyright-format", text, re.M):
        term = spdx_name("LicenseRef", package)  # not machine-readable
        texts[term] = text
        return term
    stated = LICENCE.findall(text)
    of_files = [one for part in re.split(r"\n\s*\n(?=\S)", text) if re.search("^Files:", part, re.M) for one in LICENCE.findall(part)]
    terms = {" OR ".join(" AND ".join(term_of(package, one, stated, texts) for one in re.split(r"\s+and\s+|,\s*", either.strip(), flags=re.I) if one)
                         for either in re.split(r"\s+(?:and/)?or\s+", name.strip(), flags=re.I)) for name, _ in of_files if name.strip()}
    return " AND ".join(f"({term})" if " OR " in term else term for term in sorted(terms)) or "NOASSERTION"


def own_files(root):
    for path in filter(None, output_of("git", "ls-files", "-z", cwd=root).split("\0")):
        full = os.path.join(root, path)
        if os.path.isfile(full):
            with open(full, "rb") as f:
                data = f.read()
            said = IDENTIFIER.search(data[:300].decode(errors="replace"))
            yield {"SPDXID": "SPDXRef-file-" + hashlib.sha1(path.encode()).hexdigest(), "fileName": "./" + path,
                   "checksums": [{"algorithm": kind, "checksumValue": hashlib.new(kind, data).hexdigest()} for kind in ("SHA1", "SHA256")],
                   "licenseConcluded": said[1] if said else OWN, "licenseInfoInFiles": [said[1] if said else "NONE"], "copyrightText": "NOASSERTION"}


def spdx_package(name, version, licence, **more):
    return {"SPDXID": spdx_name("SPDXRef", name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def cuda_package():
    """The CUDA runtime, which is linked statically; None without nvcc: then there is no package with it."""
    nvcc = shutil.which(os.environ.get("CUDACXX", "nvcc")) or shutil.which("/usr/local/cuda/bin/nvcc")
    version = re.search(r"V([\d.]+)", output_of(nvcc, "--version")) if nvcc else None
    return spdx_package("cuda-runtime-static", version[1], "LicenseRef-CUDA-EULA", supplier="Organization: NVIDIA") if version else None


def bill_of_materials(root, build, version, commit, created):
    """Return (the document, what is wrong with it)."""
    debian, texts, wrong, relations = Debian(), {}, [], []
    control = read(root, "deploy", "debian", "control")
    wanted = [debian.real(n) for n, _ in debian.named(re.search(r"^Build-Depends:((?:.*\n)(?:[ \t].*\n)*)", control, re.M)[1].replace("\n", " "))]
    wrong += [f"{n} is not installed, so its version and licence are not known (deploy/install-deps.sh build package)" for n in wanted if n not in debian.packages]
    tools = [n for n in wanted if n in debian.packages]
    roots = set().union(*map(debian.runtime_of, (n for n in tools if n.endswith("-dev"))), linked_packages(build))
    files = list(own_files(root))
    sums = "".join(sorted(f["checksums"][0]["checksumValue"] for f in files))
    source = spdx_package("tomonode-source", version, OWN, filesAnalyzed=True, sourceInfo=f"git commit {commit}", hasFiles=[f["SPDXID"] for f in files],
                          packageVerificationCode={"packageVerificationCodeValue": hashlib.sha1(sums.encode()).hexdigest()}, licenseInfoFromFiles=[OWN])
    own = [spdx_package(name, version, OWN) for name in re.findall(r"^Package: (\S+)", control, re.M)]
    others = {n: spdx_package(n, p["Version"], licence_of(n, texts), supplier="Organization: Debian", sourceInfo=f"Debian source package {p['source:Package']}",
                              **({"homepage": p["Homepage"]} if p["Homepage"] else {}))
              for n in sorted(debian.closure(roots) | set(tools)) for p in [debian.packages[n]]}
    wrong += [f"{n}: /usr/share/doc/{n}/copyright says no licence" for n, p in others.items() if p["licenseDeclared"] == "NOASSERTION"]

    def relate(a, kind, b):
        relations.append({"spdxElementId": a["SPDXID"] if isinstance(a, dict) else a, "relationshipType": kind, "relatedSpdxElement": b["SPDXID"]})
    for package in own:
        relate("SPDXRef-DOCUMENT", "DESCRIBES", package)
        relate(package, "GENERATED_FROM", source)
    for name in sorted(roots & set(others)):
        relate(source, "DEPENDS_ON", others[name])
    for name in tools:
        relate(others[name], "BUILD_DEPENDENCY_OF", source)
    for name in sorted(debian.closure(roots)):
        for needed in sorted(debian.needs(name)):
            relate(others[name], "DEPENDS_ON", others[needed])
    for package in (p for p in own if p["name"].endswith("-cuda")):
        if cuda := cuda_package():
            texts[cuda["licenseDeclared"]] = "NVIDIA CUDA Toolkit End User License Agreement: https://docs.nvidia.com/cuda/eula/"
            others[cuda["name"]] = cuda
            relate(package, "STATIC_LINK", cuda)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"tomonode-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/tomonode-{version}-{commit}",
            "creationInfo": {"created": created, "creators": ["Tool: tomonode deploy/evidence.sh"]},
            "packages": [*own, source, *others.values()], "files": files, "relationships": relations,
            "hasExtractedLicensingInfos": [{"licenseId": n, "name": n, "extractedText": text} for n, text in sorted(texts.items())]}, wrong


def material_part(bill):
    return ["## Materials", "", "With files, relations and texts of licences: `tomonode.spdx.json`.", ""] + table(
        ("name", "version", "licence"), ((p["name"], p["versionInfo"], p["licenseDeclared"]) for p in bill["packages"]))


def main(argv):
    parser = argparse.ArgumentParser(prog="deploy/evidence.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", help="folder for the files")
    parser.add_argument("--source", metavar="TREE", default=ROOT, help="another checkout than the one that contains the script")
    parser.add_argument("--build", metavar="DIR", help="build folder with results of tests/run.sh and the program (default: TREE/build/dev)")
    parser.add_argument("--since", metavar="REVISION", help="list the changes since it (default: the last tag v*)")
    options = parser.parse_args(argv)
    root, build = os.path.abspath(options.source), options.build or os.path.join(options.source, "build", "dev")
    try:
        version = re.search(r"^project\(.* VERSION ([\d.]+)", read(root, "CMakeLists.txt"), re.M)[1]
        commit, created = output_of("git", "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%H %cd", cwd=root).split()
        dirty = " with changes" if output_of("git", "status", "--porcelain", "--untracked-files=no", cwd=root) else ""
        tags = output_of("git", "tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-creatordate", "--list", "v*", cwd=root).split()
        promises, hazards, results = read_promises(root), read_hazards(root), Results(build)
        faults, wrong = read_list(root, os.path.join(root, "tests", "faults", "faults.toml"))
        bill, unknown = bill_of_materials(root, build, version, commit, created)
        wrong = [*find_faults(root, promises, hazards, faults, results), *wrong, *unknown]
        lines = [f"# Evidence of tomonode {version}, commit {commit}{dirty}", "", "**Not for diagnostic use.** Made by `deploy/evidence.sh`.", "",
                 "## What is wrong", "", *([f"* {one}" for one in wrong] or ["Nothing: each promise and hazard has its tests, and none failed."]), "",
                 *promise_part(root, promises, faults, results), *hazard_part(root, hazards, promises, faults, results), *limit_part(root),
                 *material_part(bill), *change_part(root, options.since or (tags[0] if tags else None))]
        os.makedirs(options.out, exist_ok=True)
        for name, text in (("evidence.md", "\n".join(lines)), ("tomonode.spdx.json", json.dumps(bill, indent=1, ensure_ascii=False) + "\n")):
            with open(os.path.join(options.out, name), "w", encoding="utf-8") as f:
                f.write(text)
    except OSError as error:
        print(f"deploy/evidence.sh: {error}", file=sys.stderr)
        return 2
    for one in wrong:
        print(f"deploy/evidence.sh: {one}", file=sys.stderr)
    print(f"{options.out}/evidence.md, {options.out}/tomonode.spdx.json: {len(promises)} promises, {len(hazards)} hazards, {len(bill['packages'])} packages")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ["TZ"] = "UTC0"
    sys.exit(main(sys.argv[1:]))
