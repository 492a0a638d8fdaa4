#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rooms of the source tree: which there are, what each may use, and whether the tree keeps to it.

The table is made of the tomonode_room() calls of kernels/, recon/, dicom/ and node/CMakeLists.txt, which the build reads, too.
What is checked, at every folder level:
- a source lies in a room; an include names a header of its own room, or of a room that it uses, directly or through another;
- no circle: a room uses rooms that stand before it in the table;
- *_internal.h and *_internal.hh are included by their own room (and its tests) alone;
- a foreign library is included only by rooms that name it;
- the libraries of a build, where its folder is given: no symbol comes out of a room that is not used;
- every room stands in the README.md of its layer; the generated passages of the documents are up to date.

usage: rooms.py check ROOT [BUILD]      findings as file:line: why; exit 1 where there are any
       rooms.py write ROOT              write the generated passages (docs/architecture.md) anew
"""
import os
import re
import subprocess
import sys

LAYERS = ("kernels", "recon", "dicom", "node")
SOURCE = (".c", ".h", ".cc", ".hh", ".cu", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
# Foreign libraries: the name in a FOREIGN list, and the headers that are its own. The longer pattern is asked first.
FOREIGN = {
    "dcmtk": r"dcmtk/", "cuda": r"cuda|cooperative_groups|cub/|thrust/|nvtx|texture_", "sqlite3": r"sqlite3",
    "libconfig": r"libconfig", "libseccomp": r"seccomp\.h|linux/(landlock|seccomp|filter)\.h", "libmicrohttpd": r"microhttpd", "libcurl": r"curl/",
    "libssl": r"openssl/(ssl|err|x509|x509v3|pem|bio)\.h", "libcrypto": r"openssl/", "jansson": r"jansson", "libxxhash": r"xxhash",
    "zlib": r"zlib", "libpng": r"png\.h", "charls": r"charls/", "libopenjp2": r"openjpeg\.h", "kissfft": r"kiss_fft", "syslog": r"(sys/)?syslog\.h",
}
# Of kernels/, the layer dicom/ may use errors and UTF-8 alone.
ONLY_HEADERS = {("dicom", "kernels"): {"kernels/err.h", "kernels/utf8.h"}}
# A suite may talk to these of a library that its room does not use.
TEST_FOREIGN = {"jansson", "zlib", "sqlite3", "libssl"}


class Room:
    def __init__(self, layer, folder, uses, foreign):
        self.layer, self.folder = layer, folder
        self.name = layer if folder == "." else f"{layer}/{folder}"
        self.uses, self.foreign = uses, foreign
        self.files = []


def read_rooms(root):
    rooms, lists_of_rooms = {}, {}
    for layer in LAYERS:
        path = os.path.join(root, layer, "CMakeLists.txt")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"#.*", "", f.read())
        for name, words in re.findall(r"\bset\((\w+_rooms) ([^)]*)\)", text):
            if "PARENT_SCOPE" not in words:
                lists_of_rooms[name] = words
        for call in re.findall(r"tomonode_room\(([^)]*)\)", text):
            words = re.sub(r"\$\{(\w+)\}", lambda m: lists_of_rooms.get(m.group(1), m.group(0)), call).split()
            lists = {"USES": [], "FOREIGN": []}
            into = None
            for word in words[1:]:
                if word in lists:
                    into = word
                else:
                    lists[into].append(word)
            room = Room(layer, words[0], lists["USES"], lists["FOREIGN"])
            rooms[room.name] = room
    return rooms


def closure(rooms, name):
    """All rooms that `name` uses, directly or through another."""
    seen, todo = set(), list(rooms[name].uses)
    while todo:
        used = todo.pop()
        if used not in seen and used in rooms:
            seen.add(used)
            todo += rooms[used].uses
    return seen


def walk(root, folder):
    for at, folders, files in os.walk(os.path.join(root, folder)):
        folders.sort()
        for name in sorted(files):
            yield os.path.relpath(os.path.join(at, name), root)


def room_of(path, rooms):
    """The room of a source or of its test; None: none. node/main.c is the roof, a room without a name."""
    if path.startswith("tests/"):
        path = path[len("tests/"):]
    folder = os.path.dirname(path)
    return folder if folder in rooms else None


def includes(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if m:
                yield number, m.group(1)


def foreign_of(header):
    for name, pattern in FOREIGN.items():
        if re.match(pattern, header):
            return name
    return None


def check_include(rooms, path, header):
    """Return the reason why the include is not allowed, or None if it is allowed."""
    room = room_of(path, rooms)
    test = path.startswith("tests/")
    roof = not test and room is None
    if header.startswith(("./", "../")):
        return "an include starts at the root of the tree"
    foreign = foreign_of(header)
    if foreign:
        allowed = set(rooms[room].foreign) if room else set()
        if test and room:
            allowed |= set().union(*(rooms[r].foreign for r in closure(rooms, room)))
        if test:
            allowed |= TEST_FOREIGN
        if foreign in allowed:
            return None
        homes = ", ".join(r.name for r in rooms.values() if foreign in r.foreign) or "no room"
        return f"{foreign} lives in {homes} alone"
    if not header.startswith(tuple(layer + "/" for layer in LAYERS)):
        return None
    target = os.path.dirname(header)
    if target not in rooms:
        return "is in no room"
    stem = os.path.splitext(os.path.basename(header))[0]
    if stem.endswith("_internal") and target != room:
        return f"an *_internal header is for {target} alone"
    if header.endswith(".hh") and not path.startswith("dicom/"):
        return "a .hh is for dicom/ alone: the other layers see C"
    if test or roof or target == room:
        return None
    only = ONLY_HEADERS.get((rooms[room].layer, target))
    if only and header not in only:
        return f"of {target}/, {rooms[room].layer}/ may use {', '.join(sorted(only))} alone"
    if target not in closure(rooms, room):
        return f"{room} does not use {target}"
    return None


def check_table(rooms):
    seen = set()
    for room in rooms.values():
        for used in room.uses:
            if used not in seen:
                yield f"{room.layer}/CMakeLists.txt: {room.name} uses {used}, which is not named before it: a circle, or upward"
        for foreign in room.foreign:
            if foreign not in FOREIGN:
                yield f"{room.layer}/CMakeLists.txt: {room.name} uses the library {foreign}, which rooms.py does not know"
        seen.add(room.name)


def check_tree(root, rooms):
    for layer in LAYERS:
        for path in walk(root, layer):
            if path.endswith(SOURCE):
                room = room_of(path, rooms)
                if room:
                    rooms[room].files.append(path)
                elif path != "node/main.c":
                    yield f"{path}:1: lies in no room (see tomonode_room() in {layer}/CMakeLists.txt)"
    for top in LAYERS + ("tests",):
        for path in walk(root, top):
            if not path.endswith(SOURCE):
                continue
            for number, header in includes(root, path):
                if path.startswith("tests/") and "/" not in header and os.path.exists(os.path.join(root, os.path.dirname(path), header)):
                    yield f"{path}:{number}: {header}: an include starts at the root of the tree"
                    continue
                why = check_include(rooms, path, header)
                if why:
                    yield f"{path}:{number}: {header}: {why}"


def check_readme(root, rooms):
    for layer in LAYERS:
        path = os.path.join(root, layer, "README.md")
        if not os.path.exists(path):
            if any(r.layer == layer for r in rooms.values()):
                yield f"{layer}/README.md: is missing: it says of every room what lives there and what may not"
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for room in rooms.values():
            label = "." if room.folder == "." else room.folder + "/"
            if room.layer == layer and f"| `{label}`" not in text:
                yield f"{layer}/README.md: has no line for the room `{label}`"


def archive_symbols(path):
    """Global symbols of a static library: those that it defines, and those that it needs and does not define itself."""
    text = subprocess.run(["nm", "-g", "--format=posix", path], capture_output=True, text=True, check=True).stdout
    defined, needed = set(), set()
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2:
            (needed if words[1] in "Uw" else defined).add(words[0])
    return defined, needed - defined


def check_symbols(build, rooms):
    """Arrows that headers do not show: a function declared in one room and defined in one above it."""
    home, needs = {}, {}
    for room in rooms.values():
        name = "ground" if room.folder == "." else room.folder
        path = os.path.join(build, room.layer, f"lib{room.layer}_{name}.a")
        if not os.path.exists(path):
            yield f"{path}: is missing"
            continue
        defined, needs[room.name] = archive_symbols(path)
        for symbol in defined:
            if not symbol.startswith("_Z"):  # inline functions and templates of C++ are everywhere
                home[symbol] = room.name
    for room, symbols in needs.items():
        allowed = closure(rooms, room) | {room}
        for symbol in sorted(symbols):
            if home.get(symbol, room) not in allowed:
                yield f"{room}: calls {symbol}(), which is defined in {home[symbol]}, and does not use that room"


def levels(rooms):
    depth = {}
    for room in rooms.values():
        depth[room.name] = 1 + max((depth.get(u, 0) for u in room.uses), default=0)
    return depth


def picture(root, rooms):
    """Return the rooms as text, those that use most others first. A room uses the rooms behind its arrow, and the rooms that these use.
    Nothing in it changes when a file is added to a room."""
    depth = levels(rooms)
    up = [(room.name, other) for room in rooms.values() for path in room.files for _, h in includes(root, path)
          for other in [os.path.dirname(h)] if other in rooms and other != room.name and depth[other] >= depth[room.name]]
    width = max(len(n) for n in rooms)
    lines = [f"{len(rooms)} rooms; {len(up)} includes upward or in a circle", ""]
    for level in range(max(depth.values()), 0, -1):
        for room in rooms.values():
            if depth[room.name] == level:
                arrow = f"──► {'  '.join(room.uses)}" if room.uses else ""
                lines.append(f"{level:2}  {room.name:{width}}  {arrow}".rstrip())
    return "\n".join(lines)


def foreign_table(rooms):
    """The foreign libraries, and the rooms that may include their headers."""
    lines = ["| foreign library | rooms |", "|---|---|"]
    for name in sorted(FOREIGN):
        homes = {}
        for room in rooms.values():
            if name in room.foreign:
                layer, _, rest = room.name.partition("/")
                homes.setdefault(layer, []).append(rest)
        if homes:
            cell = "; ".join(f"`{layer}/`: {', '.join(names)}" for layer, names in homes.items())
            lines.append(f"| {name} | {cell} |")
    return "\n".join(lines)


PASSAGES = {  # file: (name of the passage, what makes it)
    "docs/architecture.md": ("rooms", lambda root, rooms: "```\n" + picture(root, rooms) + "\n```\n\n" + foreign_table(rooms)),
}


def passage(root, rooms, path):
    """The document with its generated passage made anew: (old text, new text); None where it has none."""
    name, make = PASSAGES[path]
    full = os.path.join(root, path)
    if not os.path.exists(full):
        return None
    with open(full, encoding="utf-8") as f:
        old = f.read()
    begin, end = f"<!-- {name}: made by tests/lint/rooms.py write -->", f"<!-- {name}: end -->"
    if begin not in old or end not in old:
        return None
    a, b = old.index(begin) + len(begin), old.index(end)
    return old, old[:a] + "\n" + make(root, rooms) + "\n" + old[b:]


def check_passages(root, rooms):
    for path in PASSAGES:
        texts = passage(root, rooms, path)
        if texts is None:
            yield f"{path}: has no passage \"{PASSAGES[path][0]}\""
        elif texts[0] != texts[1]:
            yield f"{path}: the passage \"{PASSAGES[path][0]}\" is not up to date: tests/lint/rooms.py write ROOT"


def check(root, build=None):
    rooms = read_rooms(root)
    findings = list(check_table(rooms))
    findings += check_tree(root, rooms)
    findings += check_readme(root, rooms)
    findings += check_passages(root, rooms)
    if build:
        findings += check_symbols(build, rooms)
    return findings


def main(argv):
    if len(argv) < 3 or argv[1] not in ("check", "write"):
        print(__doc__, file=sys.stderr)
        return 2
    root = argv[2]
    if argv[1] == "write":
        rooms = read_rooms(root)
        list(check_tree(root, rooms))  # fills in the files
        for path in PASSAGES:
            texts = passage(root, rooms, path)
            if texts and texts[0] != texts[1]:
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(texts[1])
        return 0
    findings = check(root, argv[3] if len(argv) > 3 else None)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
