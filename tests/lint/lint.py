#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lint of the tree: the rooms (rooms.py), the licence line (spdx.py), and what must not be in any file.

usage: lint.py ROOT [BUILD]     BUILD: a build folder, whose libraries are checked, too. Exit 0: clean, 1: findings (file:line: why)
It first proves on made-up trees that each rule finds what it is there for.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import documents  # noqa: E402
import result_warnings  # noqa: E402
import rooms  # noqa: E402
import spdx  # noqa: E402
import texts  # noqa: E402
import troubleshooting  # noqa: E402

# Lines that must not be anywhere: (pattern, why). This file and its tests quote them.
MARKS = (
    (re.compile(r"/(home|Users)/[A-Za-z0-9]"), "a path of one machine"),
    (re.compile(r"(^|[^A-Za-z0-9_])(TODO|FIXME|XXX)([^A-Za-z0-9_]|$)"), "unfinished work belongs into an issue"),
)
TEXT = rooms.SOURCE + (".py", ".sh", ".md", ".in", ".txt", ".conf", ".cmake", ".json", ".yml", ".yaml", ".css", ".js", ".service")


def text_files(root):
    for top in rooms.LAYERS + ("tests", "conf", "deploy", "docs", ".ci", ".github", "."):
        for at, folders, files in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if f not in ("corpus", "__pycache__") and top != ".")
            for name in sorted(files):
                path = os.path.normpath(os.path.relpath(os.path.join(at, name), root))
                if name.endswith(TEXT) and not path.startswith("tests/lint/"):
                    yield path


def check_marks(root):
    for path in text_files(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            for number, line in enumerate(f, 1):
                for pattern, why in MARKS:
                    if pattern.search(line):
                        yield f"{path}:{number}: {why}: {line.strip()[:100]}"


# Where a kind of case may be named: in the list, in its own table, and where commands are listed by kind.
KINDS = "node/config/kinds.h"
NAMES_KINDS = re.compile(r"node/config/(kinds\.h|kind_\w+\.c)")
LISTS_KINDS = re.compile(NAMES_KINDS.pattern + r"|node/command/cmd_simulate\.c")


def check_kinds(root):
    """A kind is named in one place (node/config/kinds.h): no literals of its name, no decision by its constant elsewhere."""
    path = os.path.join(root, KINDS)
    if not os.path.exists(path):
        yield f"{KINDS}: is missing"
        return
    with open(path, encoding="utf-8") as f:
        kinds = re.findall(r"\bX\(([A-Z]\w*), (\w+)\)", f.read().partition("#define KINDS(X)")[2].partition("enum case_kind")[0])
    literal = re.compile('"(%s)"' % "|".join(name for _, name in kinds))
    constant = re.compile(r"\bKIND_(%s)\b" % "|".join(constant for constant, _ in kinds))
    for path in text_files(root):
        if not path.endswith(rooms.SOURCE) or path.startswith("tests/"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            for number, line in enumerate(f, 1):
                if literal.search(line) and not NAMES_KINDS.fullmatch(path):
                    yield f"{path}:{number}: the name of a kind of case as a literal; use the kind's table: {line.strip()[:100]}"
                if constant.search(line) and not LISTS_KINDS.fullmatch(path):
                    yield f"{path}:{number}: a decision by the kind of case; it belongs into the kind's table: {line.strip()[:100]}"


def check_linkage(root):
    """Functions of a header that C++ includes, too, are all within its extern "C" block: else C++ calls a mangled name."""
    for path in text_files(root):
        if not path.endswith(".h"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
        ends = [i for i, line in enumerate(lines) if line == "}" and lines[i - 1] == "#ifdef __cplusplus"]
        for i in range(ends[0], len(lines)) if ends else ():
            if re.match(r"[A-Za-z_][^()]*\(", lines[i]):
                yield f'{path}:{i + 1}: declared behind the extern "C" block: {lines[i]}'


# The dialect that the head of dicom/core/internal.hh describes.
DIALECT = (
    (re.compile(r"#\s*include <(assert|ctype|errno|limits|math|signal|stdarg|stddef|stdint|stdio|stdlib|string|time)\.h>"),
     "C headers are <cerrno>, not <errno.h>, in C++"),
    (re.compile(r'^extern "C"'), 'the C header alone has extern "C"'),
    (re.compile(r"#\s*define [A-Z_]+ "), "constants are constexpr in C++"),
    (re.compile(r"\bcatch \("), "exceptions are caught by guarded() alone"),
    (re.compile(r"\((const )?(struct )?\w+ \*+\)[\w&(]"), "pointers are cast with static_cast or reinterpret_cast in C++"),
)


def check_dialect(root):
    for path in text_files(root):
        if not re.match(r"dicom/.*\.(cc|hh)$", path) or path.endswith("/guarded.hh"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            for number, line in enumerate(f, 1):
                for pattern, why in DIALECT:
                    if pattern.search(line):
                        yield f"{path}:{number}: {why}: {line.strip()[:100]}"


# Static functions, at the start of a line, whose name is one word; those that the field knows by one word.
STATIC = re.compile(r"^(?:\w+ |template ?<.*?>\s)*static\b(?:__attribute__\(\(.*?\)\)|[^=;{}()])*?\b([a-z0-9]+)\(", re.M)
ONE_WORD = re.compile(r"dot|cross|sinc|clamp|sha256|splitmix64|quickselect|(?:[bl]e|get|put)(?:16|32)")


def check_statics(root):
    """A static function has a verb and its noun, so that a backtrace and a search find one place."""
    for path in text_files(root):
        if not path.endswith(rooms.SOURCE) or path.startswith("tests/"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        for found in STATIC.finditer(text):
            if not ONE_WORD.fullmatch(found[1]):
                line = text.count("\n", 0, found.start(1)) + 1
                yield f"{path}:{line}: {found[1]}(): a static function of one word; name it by a verb and its noun"


def check(root, build=None):
    of_lines = [check_marks, check_kinds, check_linkage, check_dialect, check_statics]
    of_lines += [documents.check, result_warnings.check, texts.check, troubleshooting.check]
    return rooms.check(root, build) + [finding for one in of_lines for finding in one(root)]


# ---- the lint's own test ----

TABLE = {
    "kernels": "tomonode_room(.)\ntomonode_room(cuda USES kernels FOREIGN cuda)\n",
    "recon": "tomonode_room(core USES kernels)\n",
    "dicom": "tomonode_room(core USES kernels FOREIGN dcmtk)\ntomonode_room(network USES dicom/core FOREIGN dcmtk libssl libcrypto)\n",
    "node": "tomonode_room(base USES recon/core FOREIGN syslog)\ntomonode_room(config USES node/base FOREIGN libconfig)\n"
            "tomonode_room(jobs USES node/base)\ntomonode_room(store USES node/base FOREIGN sqlite3)\ntomonode_room(process USES node/store FOREIGN libseccomp)\n"
            "tomonode_room(status USES node/process dicom/network FOREIGN libmicrohttpd)\ntomonode_room(tomo USES node/config)\n",
}
# Where it is planted, what, and the word that the finding must have; None: it is allowed.
CASES = (
    ("kernels/a.c", '#include "kernels/err.h"', None),
    ("kernels/a.c", '#include "recon/core/scan.h"', "does not use"),
    ("kernels/cuda/a.cu", '#include <cuda_runtime.h>', None),
    ("kernels/a.c", '#  include <cuda_runtime.h>', "cuda lives in"),
    ("kernels/cuda/a.cuh", '#include "node/base/log.h"', "does not use"),
    ("recon/core/a.c", '#include "kernels/device.h"', None),
    ("recon/core/a.c", '#include "kernels/cuda/cuda.cuh"', "does not use"),
    ("recon/core/a.h", '#include "dicom/core/dataset.h"', "does not use"),
    ("recon/core/a.c", '#include <cuda.h>', "cuda lives in"),
    ("recon/core/a.c", '#include "../kernels/err.h"', "starts at the root"),
    ("recon/core/deep/a.c", 'int x;', "lies in no room"),
    ("recon/a.c", 'int x;', "lies in no room"),
    ("dicom/core/a.cc", '#include "kernels/err.h"', None),
    ("dicom/core/a.cc", '#include "kernels/utf8.h"', None),
    ("dicom/core/a.cc", '#include "kernels/device.h"', "may use kernels/err.h, kernels/utf8.h alone"),
    ("dicom/core/a.cc", '#include "dicom/network/association.hh"', "does not use"),
    ("dicom/network/a.cc", '#include "dicom/core/layout.hh"', None),
    ("dicom/network/a.cc", '#include "dicom/core/file_internal.hh"', "for dicom/core alone"),
    ("dicom/network/a.cc", '#include <openssl/ssl.h>', None),
    ("dicom/core/a.cc", '#include <openssl/ssl.h>', "libssl lives in"),
    ("dicom/core/a.cc", '#include "dcmtk/dcmdata/dctk.h"', None),
    ("node/base/a.c", '#include <dcmtk/config/osconfig.h>', "dcmtk lives in"),
    ("node/status/a.c", '#include "dicom/network/association.hh"', "a .hh is for dicom/ alone"),
    ("node/base/a.c", '#include "node/store/journal.h"', "does not use"),
    ("node/status/a.c", '#include "node/store/journal.h"', None),
    ("node/status/a.c", '#include "node/store/journal_internal.h"', "for node/store alone"),
    ("node/store/a.c", '#include "node/store/journal_internal.h"', None),
    ("tests/node/store/a.c", '#include "node/store/journal_internal.h"', None),
    ("tests/node/status/a.c", '#include "node/store/journal_internal.h"', "for node/store alone"),
    ("tests/node/store/a.c", '#include <libconfig.h>', "libconfig lives in"),
    ("node/config/a.c", '#include <libconfig.h>', None),
    ("node/status/a.c", '#include <libconfig.h>', "libconfig lives in"),
    ("node/store/a.c", '#include <sqlite3.h>', None),
    ("node/status/a.c", '#include <sqlite3.h>', "sqlite3 lives in"),
    ("node/base/a.c", '#include <syslog.h>', None),
    ("node/status/a.c", '#include <sys/syslog.h>', "syslog lives in"),
    ("node/status/a.c", '#include <microhttpd.h>', None),
    ("node/process/a.c", '#include <microhttpd.h>', "libmicrohttpd lives in"),
    ("node/process/a.c", '#include <linux/landlock.h>', None),
    ("node/status/a.c", '#include <seccomp.h>', "libseccomp lives in"),
    ("node/base/CMakeLists.txt", "", None),
    ("node/CMakeLists.txt", "tomonode_room(base USES node/late)\ntomonode_room(late USES node/base)", "a circle, or upward"),
    ("node/CMakeLists.txt", "set(late_rooms node/late)\ntomonode_room(base USES ${late_rooms})\ntomonode_room(late)", "a circle, or upward"),
    ("node/CMakeLists.txt", "tomonode_room(base FOREIGN libnew)", "rooms.py does not know"),
    ("node/README.md", "| `base/` | logs |", "has no line for the room `config/`"),
    ("docs/architecture.md", "the rooms", 'no passage "rooms"'),
    ("conf/a.conf", 'spool = "/home/someone/spool";', "a path of one machine"),
    ("node/base/a.c", "/* TODO: the rest */", "unfinished work"),
    ("node/store/a.c", 'return strcmp(kind, "pet");', "the name of a kind of case as a literal"),
    ("recon/core/a.c", 'return "dbt";', "the name of a kind of case as a literal"),
    ("node/config/kind_pet.c", '.name = "pet",', None),
    ("node/store/a.c", 'return "petal";', None),
    ("tests/node/store/a.c", 'open("pet");', None),
    ("node/store/a.c", "if (kind == KIND_PET)", "a decision by the kind of case"),
    ("node/config/kinds.h", "#define KINDS(X) X(DBT, dbt) X(FAN, fan)\nenum case_kind {", None),
    ("node/base/a.c", "/* the method of the other */", None),
    ("dicom/core/a.cc", '#include <errno.h>', "not <errno.h>"),
    ("dicom/core/a.cc", 'extern "C" int f(void)', "alone has extern"),
    ("dicom/core/a.cc", '#define MOST 7', "constexpr"),
    ("dicom/core/a.hh", '#define A_HH', None),
    ("dicom/core/a.cc", '} catch (const std::exception &e) {', "guarded() alone"),
    ("dicom/core/a.cc", 'auto *p = (const char *)bytes;', "static_cast"),
    ("dicom/core/a.cc", 'size_t n = (size_t)got;', None),
    ("node/store/a.c", 'static int add(int x)\n{\n}', "one word"),
    ("node/store/a.c", 'static int\nadd(int x)\n{\n}', "one word"),
    ("dicom/core/a.cc", 'static int add_span(int x);\nstatic uint16_t be16(const char *p)\n{\n}', None),
    ("kernels/cuda/a.cu", 'template <int N> static __device__ __forceinline__ float hat(int n)\n{\n}', "one word"),
    ("kernels/a.c", 'static const int most = 3;\nint add(int x)\n{\n\treturn most(x);\n}', None),
    ("node/tomo/a.c", 'exam_warn(e, "The support is %.1f %% "\n"too high in %d view%s.", x);', None),
    ("node/tomo/a.c", 'exam_warn(e, "The support is %.1f %% too low.");', "without a row in the table"),
    ("node/tomo/a.c", 'static void explain_it(char *ret)\n{\n\tsnprintf(ret, 9, "nothing is seen of it");\n}', "without a row in the table"),
    ("docs/operations.md", "no table", 'no table "warnings"'),
    ("docs/troubleshooting.md", "| sentence | b |\n|---|---|\n| The kettle of ... boils. | c |", "that the program does not have"),
    ("docs/a.md", "[1](b/)", "a link to b/: no such file"),
    ("docs/a.md", "```\n[1](b/)\n```", None),
    ("docs/a.md", "# A `b.c` (c)\n# A\n# A\n[1](#a-bc-c) [2](#a-1) [3](../node/README.md) [4](http://x.org)", None),
    ("docs/a.md", "# A\n[1](#a-1)", "a link to #a-1: no such heading"),
    ("docs/a.md", "[1](troubleshooting.md#kettle)", "no such heading"),
    ("docs/a.md", "| a | b |\n|---|---|\n| \\| | c |\n\n| a |\n|---|\n| b |", None),
    ("docs/a.md", "| a | b |\n|---|---|\n| c | d | e |", "another number of cells"),
    ("docs/a.md", "| a | b |\n|---|---|\n\n| c | d |", "a blank line ends the table"),
    ("docs/a.md", f"| a | b |\n|---|---|\n| {'c' * 200} | [{'d' * 200}](../node/README.md) |", None),
    ("docs/a.md", f"| a | b |\n|---|---|\n| {'c' * 201} | d |", "a cell of more than 200 characters"),
    ("docs/troubleshooting.md", "| sentence | b |\n|---|---|\n| The kettle of ... is … | c |", None),
    ("docs/troubleshooting.md", "| sentence | b |\n|---|---|\n| The kettle of ... was … | c |", "that the program does not have"),
    ("docs/troubleshooting.md", "| sentence | b |\n|---|---|\n| The kettle … | c |", "that the program does not have"),
    ("docs/operations.md", "<!-- warnings: -->\n| The support is ... % too … | a |\n<!-- warnings: end -->", None),
    ("docs/operations.md", "<!-- warnings: -->\n| The … | a |\n<!-- warnings: end -->", "without a row in the table"),
    ("node/status/status_text.c", '[JOB_HELD] = {"Held", TONE_WARN}, [JOB_READY] = {"Late, and cold", TONE_WORK},', None),
    ("node/status/status_text.c", '[JOB_HELD] = {"Boiling", TONE_WARN},', "no row has the state 'Boiling'"),
    ("node/status/status_text.c", '*ret_word = "Sold";', "no row has the state 'Sold'"),
    ("node/status/status_a.c", 'h(say(in, n == 1 ? "%d kettle" : "%d "\n"kettles"), "cold");', None),
    ("node/status/status_a.c", 'h(say(in, n == 1 ? "%d kettle" : "%d pots"));', "without a row in node/status/say.c: %d pots"),
    ("node/status/say.c", '\t{"%d kettle", "", "", ""},\n\t{"%d kettles",\n\t "", "", ""},\n\t{"pot"},', "written nowhere: pot"),
    ("node/store/a.c", 'err_set(err, 1, "the kettle %s of %d is cold", a, b);', None),
    ("node/jobs/node_problems.c", 'SET_TEXT(add_problem(all, true, "id", "Do %s."), "The kettle of %d "\n"is cold.", n);', None),
    ("node/jobs/node_problems.c", 'SET_TEXT(add_problem(all, true, "id", f(x)), "The kettle of %d "\n"boils.", n);', "does not have: The kettle of %d boils."),
    ("node/jobs/node_problems.c", 'SET_TEXT(p, "The kettle of %s boils.", name);', "does not have: The kettle of %s boils."),
    ("kernels/a.h", '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int x);\n#ifdef __cplusplus\n}\n#endif', None),
    ("kernels/a.h", '#ifdef __cplusplus\nextern "C" {\n#endif\n#ifdef __cplusplus\n}\n#endif\nint f(int x);', "behind the extern"),
)


def plant(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text + "\n")


def made_up_tree(root):
    for layer, calls in TABLE.items():
        plant(root, f"{layer}/CMakeLists.txt", calls)
        folders = re.findall(r"tomonode_room\((\S+?)[ )]", calls)
        plant(root, f"{layer}/README.md", "".join(f"| `{'.' if f == '.' else f + '/'}` | something |\n" for f in folders))
    plant(root, KINDS, "#define KINDS(X) X(DBT, dbt) X(PET, pet)\nenum case_kind {")
    plant(root, result_warnings.PAGE, "<!-- warnings: -->\n| The support is ... % too high in ... views. | a | b |\n<!-- warnings: end -->")
    plant(root, troubleshooting.PAGE, "| sentence | b |\n|---|---|\n| The kettle of ... is cold. | c |")
    plant(root, "node/tomo/support.c", 'exam_warn(e, "The support is %.1f %% too "\n"high in %d view%s.", x);')
    plant(root, troubleshooting.STATES_PAGE, "| Held, Waiting | a |\n| Late, and cold | b |")
    plant(root, texts.TABLE, '\t{"%d kettle", "", "", ""},\n\t{"%d kettles",\n\t "", "", ""},')
    plant(root, "node/status/kettle.c", 'say(in, n == 1 ? "%d kettle" : "%d kettles");')
    plant(root, "node/base/kettle.c", 'const char text[] = "The kettle of %d is cold.";')
    for document, (name, _) in rooms.PASSAGES.items():
        plant(root, document, f"<!-- {name}: made by tests/lint/rooms.py write -->\n<!-- {name}: end -->")
    rooms.main(["rooms.py", "write", root])


def test_case(path, text, word):
    with tempfile.TemporaryDirectory() as root:
        made_up_tree(root)
        if check(root):
            return f"the made-up tree has findings: {check(root)}"
        plant(root, path, text)
        found = check(root)
        if word is None and found:
            return f"{path}: {text!r} is allowed, but: {found}"
        if word and not any(word in f for f in found):
            return f"{path}: {text!r}: no finding with {word!r}, but {found}"
    return None


def test_symbols():
    """A function that is declared below and defined above: only the libraries show it."""
    with tempfile.TemporaryDirectory() as root:
        made_up_tree(root)
        for layer in rooms.LAYERS:
            os.makedirs(os.path.join(root, "build", layer))
        for room in rooms.read_rooms(root).values():
            name = "ground" if room.folder == "." else room.folder
            text = {"node/store": "int status_of(void); int store_of(void) { return status_of(); }",
                    "node/status": "int status_of(void) { return 1; }"}.get(room.name, f"int {room.layer}_{name}_x;")
            plant(root, "a.c", text)
            subprocess.run(["cc", "-c", "-o", f"{root}/a.o", f"{root}/a.c"], check=True)
            subprocess.run(["ar", "rc", f"{root}/build/{room.layer}/lib{room.layer}_{name}.a", f"{root}/a.o"], check=True)
        found = rooms.check(root, f"{root}/build")
        return None if len(found) == 1 and "node/store: calls status_of()" in found[0] else f"an upward call was not found: {found}"


def test_spdx():
    """Sources without the licence line, with it in the wrong place, and files that need none; write() mends them."""
    c, script, text = f"/* {spdx.LINE} */\n", f"# {spdx.LINE}\n", "int a;\n"
    files = {"kernels/a/good.c": c + text, "kernels/a/bad.c": text, "node/late.h": "\n" + c, "deploy/good.sh": "#!/bin/sh\n" + script,
             "deploy/bad.sh": "#!/bin/sh\n", ".ci/run": "#!/bin/sh\n", "deploy/unit.conf": text, "tests/fuzz/corpus/seed.c": text}
    bad = {"kernels/a/bad.c:1", "node/late.h:1", "deploy/bad.sh:2", ".ci/run:2"}
    with tempfile.TemporaryDirectory() as root:
        for path, words in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(words)
        found = {finding.split(": ")[0] for finding in spdx.check(root)}
        spdx.write(root)
        left = list(spdx.check(root))
        if found == bad and not left and spdx.lines_of(root, "deploy/bad.sh") == ["#!/bin/sh\n", script]:
            return None
        return f"licence lines: found {sorted(found)}, after write() {left}"


def self_test():
    failures = [f for f in [test_case(*case) for case in CASES] + [test_symbols(), test_spdx()] if f]
    for failure in failures:
        print(f"lint: self-test: {failure}", file=sys.stderr)
    return not failures


def main(argv):
    if len(argv) < 2 or not os.path.exists(os.path.join(argv[1], "kernels", "err.h")):
        print(__doc__, file=sys.stderr)
        return 2
    if not self_test():
        return 1
    findings = check(argv[1], argv[2] if len(argv) > 2 else None) + list(spdx.check(argv[1]))
    for finding in findings:
        print(finding)
    print("lint: findings, see above" if findings else "lint: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
