#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write what a hospital files about this version: OUT/evidence.md and OUT/tomonode.spdx.json.

evidence.md: each guarantee (docs/reliability.md) and each section of the conformance statement with its tests, their
last result and the planted faults; hazards, what guards against them, and the same; known limits; materials; changes.
tomonode.spdx.json: a bill of materials in SPDX 2.3. Everything is read from the tree, its history, the results of tests
in the build folder, and the installed packages that the program is built with.
Exit code: 0; 1 if a promise or hazard lacks its tests, a named test is not there or failed, or a material is not known
(the files are written, and say so); 2 if something cannot be read or written.
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
from xml.etree.ElementTree import ParseError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "faults")]
import summary  # noqa: E402
from listed import read_list  # noqa: E402
from promises import check_promises, find_test, read_hazards, read_promises  # noqa: E402

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
OWN = "Apache-2.0"  # LICENSE
IDENTIFIER = re.compile(r"SPDX-License-Identifier: ([^\s*]+)")
# Of a copyright file of Debian: a licence's short names, and its text.
STATED = re.compile(r"^License:[ \t]*(.*)((?:\n[ \t].*)*)", re.M)
GNU = re.compile(r"(a?l?gpl)-(\d)(?:\.0)?(\.\d)?(\+|-or-later)?", re.I)
LICENCES = {"expat": "MIT", "bsd-3": "BSD-3-Clause"} | {
    name.lower(): name for name in ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause", "BSL-1.0", "ISC",
                                    "MIT", "MPL-2.0", "OLDAP-2.8", "OpenSSL", "Zlib", "curl", "libtiff")}


def output_of(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
        return f.read()


def find(pattern, text, what):
    """The first group of a pattern in a text that must have it."""
    found = re.search(pattern, text, re.M)
    if not found:
        raise OSError(f"{what} is missing")
    return found[1]


def plain(text):
    """Text of a document without its links, which lead from the document's folder."""
    return LINK.sub(r"\1", text)


def table(head, rows):
    def line(cells):
        return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
    return [line(head), "|" + "---|" * len(head), *map(line, rows), ""]


# ---- promises, hazards, their tests and planted faults ----


class Results:
    """The last results of the tests, from the files that ctest and pytest wrote to the build folder."""

    def __init__(self, build):
        files = sorted(glob.glob(os.path.join(build, "*.xml")))
        tests = [test for file in files for test in summary.read(file)[0]]
        self.tests = [(test.name.removeprefix("tests/"), test.state) for test in tests]
        self.when = sorted(set(re.findall(r'<testsuite[^>]* timestamp="([^"]+)"', "".join(map(read, files)))))

    def of(self, path):
        """How many tests of a file or folder passed, failed, were skipped."""
        whole = os.path.splitext(path.removeprefix("tests/"))[0]
        folder, name = os.path.split(whole)

        def belongs(test):  # a module without tests of its own is a parameter of a test of its folder
            return (test == whole or test.startswith((whole + "::", whole + "/")) or
                    test.startswith(folder + "/") and test.endswith(f"[{name}]"))
        states = [state for test, state in self.tests if belongs(test)]
        counts = [f"{states.count(state)} {state}" for state in ("failed", "passed", "skipped") if state in states]
        return ", ".join(counts) or "not run"


class Promises:
    """What a tree promises, and what proves it."""

    def __init__(self, root, build):
        self.root, self.results = root, Results(build)
        self.promises, self.hazards = read_promises(root), read_hazards(root)
        self.faults, self.wrong_faults = read_list(root, os.path.join(root, "tests", "faults", "faults.toml"))

    def result_of(self, test):
        path = find_test(self.root, test)
        return self.results.of(path) if path else "MISSING"

    def breaks(self, promise):
        """What the planted faults do that break a promise."""
        return [f"{fault.id}: {fault.breaks.partition(': ')[2]}" for fault in self.faults
                if fault.breaks.startswith(promise + ":")]

    def cells(self, name):
        promise = self.promises[name]
        tests = "; ".join(f"`{test}` ({self.result_of(test)})" for test in promise.tests)
        return name, plain(promise.text), tests or "NONE", "; ".join(self.breaks(name))

    def promise_part(self):
        linked = sum(bool(p.tests) and "MISSING" not in map(self.result_of, p.tests) for p in self.promises.values())
        when = f"run of {', '.join(self.results.when)}" if self.results.tests else "none; run `tests/run.sh` first"
        return ["## Promises and their tests", "",
                f"{linked} of {len(self.promises)} promises are linked to tests that exist. Results: {when}.", "",
                *table(("promise", "text", "tests (last result)", "planted faults"), map(self.cells, self.promises))]

    def hazard_part(self):
        return ["## Hazards", "", *table(
            ("hazard", "guard", "text", "tests (last result)", "planted faults"),
            ((hazard, *self.cells(guard)) for hazard, guards in self.hazards.items() for guard in guards
             if guard in self.promises))]

    def wrong(self):
        """Sentences."""
        yield from check_promises(self.root)
        yield from self.wrong_faults
        for name, promise in self.promises.items():
            yield from (f"{name}: {test}: {result}" for test in promise.tests
                        if "failed" in (result := self.result_of(test)))
        for hazard, guards in self.hazards.items():
            if not any(map(self.breaks, guards)):
                yield f"hazard \"{hazard}\": no planted fault breaks one of its guards"


# ---- limits and changes ----


def limit_part(root):
    """The parts "Limits" of the documents."""
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
                lines.append(plain(line))
    return lines


def change_part(root, since):
    if not since:
        return ["## Changes", "", "No earlier version has a tag; `--since REVISION` names one.", ""]
    log = output_of("git", "log", "--no-merges", "--format=%h\t%cs\t%s", since + "..HEAD", cwd=root)
    lines = output_of("git", "diff", "--unified=0", since, "HEAD", "--", "CHANGELOG.md", cwd=root).splitlines()
    return [f"## Changes since {since}", "", *(plain(line[1:]) for line in lines if line.startswith("+- ")), "",
            *table(("commit", "date", "subject"), (line.split("\t", 2) for line in log.splitlines()))]


# ---- bill of materials ----


class Debian:
    """The installed packages of the distribution."""

    FIELDS = ("Package", "Version", "source:Package", "Depends", "Pre-Depends", "Provides", "Homepage",
              "db:Status-Status")

    def __init__(self):
        wanted = "\\t".join(f"${{{field}}}" for field in self.FIELDS) + "\\n"
        rows = output_of("dpkg-query", "-W", "-f", wanted) if shutil.which("dpkg-query") else ""
        listed = (dict(zip(self.FIELDS, row.split("\t"))) for row in rows.splitlines())
        self.packages = {p["Package"]: p for p in listed if p["db:Status-Status"] == "installed"}
        self.provided = {name: p["Package"] for p in self.packages.values() for name, _ in self.named(p["Provides"])}

    def named(self, field):
        """(name, what the version must be) of dependencies; of alternatives the first that is installed."""
        for wanted in filter(None, map(str.strip, field.split(","))):
            names = [re.match(r"\s*([\w.+-]+)(?::\w+)?\s*(?:\((.*)\))?", one).groups("") for one in wanted.split("|")]
            yield next((n for n in names if n[0] in self.packages), names[0])

    def real(self, name):
        """The installed package that is, or provides, what a name means; without one the name."""
        return name if name in self.packages else self.provided.get(name, name)

    def needs(self, name):
        p = self.packages[name]
        named = self.named(p["Depends"] + "," + p["Pre-Depends"])
        return {self.real(n) for n, _ in named} & set(self.packages) - {name}

    def runtime_of(self, name):
        """The libraries of a -dev package: what it needs in exactly its version."""
        named = self.named(self.packages[name]["Depends"]) if name.endswith("-dev") else ()
        return {n for n, version in named if version.startswith("=") and not n.endswith("-dev")} & set(self.packages)

    def closure(self, names):
        found, left = set(), set(names)
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


def term_of(package, name, stated, texts):
    """The identifier of a licence by its name in Debian; without one a reference to its text, the longest stated."""
    if gnu := GNU.fullmatch(name):
        return f"{gnu[1].upper()}-{gnu[2]}{gnu[3] or '.0'}-{'or-later' if gnu[4] else 'only'}"
    if name.lower() in LICENCES:
        return LICENCES[name.lower()]
    term = spdx_name("LicenseRef", package, name)
    texts[term] = max((body.strip() for other, body in stated if other.strip() == name), key=len, default="") or name
    return term


def licence_of(package, texts):
    """A package's licences in SPDX, from its copyright file; texts gets those of licences without an identifier."""
    path = f"/usr/share/doc/{package}/copyright"
    if not os.path.exists(path):
        return "NOASSERTION"
    text = read(path)
    if not re.search(r"^Format:.*copyright-format", text, re.M):
        texts[spdx_name("LicenseRef", package)] = text  # not machine-readable
        return spdx_name("LicenseRef", package)
    stated, terms = STATED.findall(text), set()
    for paragraph in re.split(r"\n\s*\n(?=\S)", text):
        for name, _ in STATED.findall(paragraph) if re.search("^Files:", paragraph, re.M) else ():
            choices = [[term_of(package, one, stated, texts) for one in re.split(r"\s+and\s+|,\s*", choice) if one]
                       for choice in re.split(r"\s+(?:and/)?or\s+", name.strip())]
            term = " OR ".join(map(" AND ".join, choices))
            terms.add(f"({term})" if len(choices) > 1 else term)
    return " AND ".join(sorted(terms - {""})) or "NOASSERTION"


def own_files(root):
    for path in filter(None, output_of("git", "ls-files", "-z", cwd=root).split("\0")):
        full = os.path.join(root, path)
        if os.path.isfile(full):
            with open(full, "rb") as f:
                data = f.read()
            said = IDENTIFIER.search(data[:300].decode(errors="replace"))
            digests = [{"algorithm": name, "checksumValue": hashlib.new(name, data).hexdigest()}
                       for name in ("SHA1", "SHA256")]
            yield {"SPDXID": "SPDXRef-file-" + hashlib.sha1(path.encode()).hexdigest(), "fileName": "./" + path,
                   "checksums": digests, "licenseConcluded": said[1] if said else OWN,
                   "licenseInfoInFiles": [said[1] if said else "NONE"], "copyrightText": "NOASSERTION"}


def spdx_package(name, version, licence, **more):
    return {"SPDXID": spdx_name("SPDXRef", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence,
            "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def source_package(version, commit, files):
    digests = "".join(sorted(file["checksums"][0]["checksumValue"] for file in files))
    code = hashlib.sha1(digests.encode()).hexdigest()
    return spdx_package("tomonode-source", version, OWN, filesAnalyzed=True, sourceInfo=f"git commit {commit}",
                        hasFiles=[file["SPDXID"] for file in files], licenseInfoFromFiles=[OWN],
                        packageVerificationCode={"packageVerificationCodeValue": code})


def debian_package(package, texts):
    name, home = package["Package"], {"homepage": package["Homepage"]} if package["Homepage"] else {}
    return spdx_package(name, package["Version"], licence_of(name, texts), supplier="Organization: Debian",
                        sourceInfo=f"source package {package['source:Package']}", **home)


def cuda_package(texts):
    """The CUDA runtime, which is linked statically; None without nvcc: then there is no package with it."""
    nvcc = shutil.which(os.environ.get("CUDACXX", "nvcc")) or shutil.which("/usr/local/cuda/bin/nvcc")
    version = re.search(r"V([\d.]+)", output_of(nvcc, "--version")) if nvcc else None
    if not version:
        return None
    texts["LicenseRef-CUDA-EULA"] = "NVIDIA CUDA Toolkit End User License Agreement: https://docs.nvidia.com/cuda/eula/"
    return spdx_package("cuda-runtime-static", version[1], "LicenseRef-CUDA-EULA", supplier="Organization: NVIDIA")


def bill_of_materials(root, build, version, commit, dirty, created):
    """Return (the document, what is wrong with it). Its namespace is of its content: a changed tree has its own."""
    debian, texts, files = Debian(), {}, list(own_files(root))
    source = source_package(version, commit + dirty, files)
    of = commit + ("-" + source["packageVerificationCode"]["packageVerificationCodeValue"][:12] if dirty else "")
    control = read(root, "deploy", "debian", "control")
    built_with = find(r"^Build-Depends:((?:.*\n)(?:[ \t].*\n)*)", control, "deploy/debian/control: Build-Depends").replace("\n", " ")
    wanted = {debian.real(name) for name, _ in debian.named(built_with)}
    tools = sorted(wanted & set(debian.packages))
    loaded = set().union(*map(debian.runtime_of, tools), linked_packages(build))
    needed = sorted(debian.closure(loaded))
    own = {name: spdx_package(name, version, OWN) for name in re.findall(r"^Package: (\S+)", control, re.M)}
    others = {name: debian_package(debian.packages[name], texts) for name in sorted({*needed, *tools})}
    relations = [("DOCUMENT", "DESCRIBES", name) for name in own]
    relations += [(name, "GENERATED_FROM", "tomonode-source") for name in own]
    relations += [("tomonode-source", "DEPENDS_ON", name) for name in sorted(loaded)]
    relations += [(name, "BUILD_DEPENDENCY_OF", "tomonode-source") for name in tools]
    relations += [(name, "DEPENDS_ON", other) for name in needed for other in sorted(debian.needs(name))]
    if "tomonode-cuda" in own and (cuda := cuda_package(texts)):
        others[cuda["name"]] = cuda
        relations.append(("tomonode-cuda", "STATIC_LINK", cuda["name"]))
    wrong = [f"{name} is not installed, so its version and licence are not known (deploy/install-deps.sh build package)"
             for name in sorted(wanted - set(tools))]
    wrong += [f"{name}: /usr/share/doc/{name}/copyright states no licence" for name, package in others.items()
              if package["licenseDeclared"] == "NOASSERTION"]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"tomonode-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/tomonode-{version}-{of}",
            "creationInfo": {"created": created, "creators": ["Tool: tomonode deploy/evidence.sh"]},
            "packages": [*own.values(), source, *others.values()], "files": files,
            "relationships": [{"spdxElementId": spdx_name("SPDXRef", a), "relationshipType": kind,
                               "relatedSpdxElement": spdx_name("SPDXRef", b)} for a, kind, b in relations],
            "hasExtractedLicensingInfos": [{"licenseId": name, "name": name, "extractedText": text}
                                           for name, text in sorted(texts.items())]}, wrong


def material_part(bill):
    rows = ((p["name"], p["versionInfo"], p["licenseDeclared"]) for p in bill["packages"])
    return ["## Materials", "", "With files, relations and texts of licences: `tomonode.spdx.json`.", "",
            *table(("name", "version", "licence"), rows)]


def write_evidence(root, build, since, out):
    """Write both files; return what is wrong."""
    version = find(r"^project\(.* VERSION ([\d.]+)", read(root, "CMakeLists.txt"), "CMakeLists.txt: project(NAME VERSION N.N.N)")
    if subprocess.run(["git", "rev-parse", "--verify", "--quiet", "HEAD"], cwd=root, capture_output=True, check=False).returncode:
        raise OSError(f"{root}: no checkout of git with a commit, which the evidence is about")
    if since and subprocess.run(["git", "rev-parse", "--verify", "--quiet", since + "^{commit}"], cwd=root, capture_output=True,
                                check=False).returncode:
        raise OSError(f"--since {since}: the checkout has no such revision")
    log = output_of("git", "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%H %cd", cwd=root)
    dirty = " with changes" if output_of("git", "status", "--porcelain", "--untracked-files=no", cwd=root) else ""
    tags = output_of("git", "tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-v:refname", "--list", "v*",
                     cwd=root)
    commit, created = log.split()
    promises = Promises(root, build)
    bill, unknown = bill_of_materials(root, build, version, commit, dirty, created)
    wrong = [*promises.wrong(), *unknown]
    lines = [f"# Evidence of tomonode {version}, commit {commit}{dirty}", "", "**Not for diagnostic use.**", "",
             "## What is wrong", "", *(f"* {one}" for one in wrong), *([] if wrong else ["Nothing."]), "",
             *promises.promise_part(), *promises.hazard_part(), *limit_part(root), *material_part(bill),
             *change_part(root, since or next(iter(tags.split()), None))]
    os.makedirs(out, exist_ok=True)
    for name, text in ("evidence.md", "\n".join(lines)), ("tomonode.spdx.json", json.dumps(bill, indent=1) + "\n"):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.write(text)
    return wrong


def main(argv):
    parser = argparse.ArgumentParser(prog="deploy/evidence.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", help="folder for the files")
    parser.add_argument("--source", metavar="TREE", default=ROOT, help="another checkout than the one with the script")
    parser.add_argument("--build", metavar="DIR", help="with results of tests/run.sh, and the program (TREE/build/dev)")
    parser.add_argument("--since", metavar="REVISION", help="list the changes since it (the last tag v*)")
    options = parser.parse_args(argv)
    build = options.build or os.path.join(options.source, "build", "dev")
    try:
        wrong = write_evidence(os.path.abspath(options.source), build, options.since, options.out)
    except (OSError, ParseError) as error:
        print(f"deploy/evidence.sh: {error}", file=sys.stderr)
        return 2
    for one in wrong:
        print(f"deploy/evidence.sh: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ["TZ"] = "UTC0"  # of the date that git prints
    sys.exit(main(sys.argv[1:]))
