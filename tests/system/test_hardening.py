# SPDX-License-Identifier: Apache-2.0
"""The built program has the protection that TOMONODE_HARDENING asks for: read from the ELF file and from the commands
that compiled it; neither is seen in a program that was compiled without protection."""
import json
import os
import re
import subprocess

from tools import node_harness as h
from tools.node_harness import check

BUILD = os.environ["TOMONODE_BUILD"]
SOURCE = os.environ["TOMONODE_SOURCE"]
UNPROTECTED = """
#include <string.h>
int main(int argc, char **argv)
{
	char text[16];
	strcpy(text, argv[argc - 1]);
	return text[0];
}
"""
EVERYTHING = {"PIE", "BIND_NOW", "RELRO", "stack that is not executable", "stack protector", "fortified calls"}
FLAGS = ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def faults(path, fortified=True):
    """What the program at `path` lacks, as a set of words."""
    segments, dynamic, symbols = (readelf(option, path) for option in ("--segments", "--dynamic", "--dyn-syms"))
    checked = set(re.findall(r"\b(__\w+_chk)\b", symbols))
    lacks = {
        "PIE": not (re.search(r"file type is DYN", segments) and re.search(r"FLAGS_1.*\bPIE\b", dynamic)),
        "BIND_NOW": not re.search(r"\(FLAGS\).*\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic),
        "RELRO": not re.search(r"^ *GNU_RELRO ", segments, re.M),
        "stack that is not executable": not re.search(r"^ *GNU_STACK .* RW ", segments, re.M),
        "stack protector": not re.search(r"\b__stack_chk_fail\b", symbols),
        "fortified calls": fortified and not {"__memcpy_chk", "__vsnprintf_chk"} <= checked,
    }
    return {what for what, lacking in lacks.items() if lacking}


def unflagged(commands, folders):
    """Sources of the product that were compiled without one of FLAGS."""
    own = [c for c in commands if os.path.relpath(c["file"], SOURCE).split(os.sep)[0] in folders
           and c["file"].endswith((".c", ".cc"))]
    if not own:
        return ["no source of " + ", ".join(folders)]
    return [c["file"] for c in own if not all(flag in c["command"] for flag in FLAGS)]


def cached(name):
    found = re.search(rf"^{name}:\w+=(.*)$", h.read_file(os.path.join(BUILD, "CMakeCache.txt")), re.M)
    return found.group(1) if found else ""


h.need("readelf", cached("CMAKE_C_COMPILER"))
if cached("TOMONODE_SANITIZE") or cached("TOMONODE_HARDENING") not in ("ON", "1", "TRUE", "YES"):
    h.skip("a build with sanitizers or without TOMONODE_HARDENING is not hardened")
FORTIFIED = cached("CMAKE_BUILD_TYPE") != "Debug"


def test_a_program_without_protection_is_seen(folder):
    source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
    h.write_file(source, UNPROTECTED)
    h.run(cached("CMAKE_C_COMPILER"), "-O2", "-no-pie", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-w",
          "-Wl,-z,norelro,-z,lazy,-z,execstack", source, "-o", program)
    check(faults(program) == EVERYTHING, f"not found in a program that has none: {EVERYTHING - faults(program)}")
    commands = [{"file": os.path.join(SOURCE, "node/a.c"), "command": "cc -c a.c"}]
    check(unflagged(commands, ("node",)), "a source that was compiled without protection is not found")


def test_the_program_is_hardened():
    check(not faults(h.TOMONODE, FORTIFIED), f"{h.TOMONODE} lacks {faults(h.TOMONODE, FORTIFIED)}")
    with open(os.path.join(BUILD, "compile_commands.json")) as file:
        bare = unflagged(json.load(file), ("kernels", "recon", "dicom", "node")) if FORTIFIED else []
    check(not bare, f"compiled without {' or '.join(FLAGS)}: {bare}")
