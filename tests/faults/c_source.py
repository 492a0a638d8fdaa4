# SPDX-License-Identifier: Apache-2.0
"""The text of a C, C++ or CUDA source: where its functions are, and what of it is not code."""
import re

SOURCES = (".c", ".cc", ".h", ".cu", ".cuh")
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|__launch_bounds__\s*\(.*?\)|\balignas\(\w+\)", re.S)
NAME = re.compile(r"([~\w]+)\s*(?:\(\s*(\w+)\s*\)\s*)?\(")  # f(, and MACRO(f)(


def spaces(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The same length; comments are spaces."""
    return SKIPPED.sub(lambda m: m[0] if m["string"] else spaces(m[0]), text)


def code_only(text):
    """The same length; comments, the inside of strings, preprocessor lines and attributes are spaces."""
    text = SKIPPED.sub(lambda m: m[0][0] + spaces(m[0][1:-1]) + m[0][-1] if m["string"] else spaces(m[0]), text)
    return ATTRIBUTE.sub(lambda m: spaces(m[0]), DIRECTIVE.sub(lambda m: spaces(m[0]), text))


def closing(code, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for m in re.compile(r"[(){}\[\]]").finditer(code, at):
        depth += 1 if m[0] in "({[" else -1
        if depth == 0:
            return m.start()
    raise ValueError(f"nothing closes {code[at:at + 60]!r}")


def functions(code):
    """Yield (name, its place, places of the body's braces) of a text that code_only() returned."""
    at = begins = 0
    for_head = re.compile(r"[;{}]|\b(?:public|private|protected):")
    while m := for_head.search(code, at):
        head, at = code[begins : m.start()], m.end()
        if m[0] == "{":
            name = NAME.search(head)
            if name and "=" not in head[: name.start()]:
                end = closing(code, m.start())
                yield name[2] or name[1], begins + name.start(), m.start(), end
                at = end + 1
            elif "=" in head or re.search(r"\benum\b", head):
                at = closing(code, m.start()) + 1
        begins = at
