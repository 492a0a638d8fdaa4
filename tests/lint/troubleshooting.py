# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md quotes sentences of the program: each is made by a format string of the source, and each problem of the node
(node/jobs/node_problems.c) is quoted. docs/radiographer.md has each word of the page for the state of a case.

A quoted sentence is the first cell of a row in a table whose first column is "sentence"; "..." stands for what the program fills in. A long
sentence may be quoted by its beginning, with MORE behind it."""
import os
import re

PAGE = "docs/troubleshooting.md"
PROBLEMS = "node/jobs/node_problems.c"
STATES, STATES_PAGE = "node/status/status_text.c", "docs/radiographer.md"
LAYERS = ("node", "recon", "kernels", "dicom")
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
CONVERSION = re.compile(r"%%|%[-+#0-9.*]*(?:hh|ll|[lzhjt])?[a-zA-Z]")
LETTERS = 8  # characters that a format string must have besides what it fills in
SHARE = 0.6  # and the part of a sentence that they must be
MORE = "…"


def text_of(literals):
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
    return text.replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\").replace("`", "").strip()


def pattern_of(text):
    """What sentences of a format string are recognised by: (its text with \\0 for what is filled in, pattern, number of its own characters);
    None: it has hardly any."""
    own = CONVERSION.sub(lambda m: "%" if m[0] == "%%" else "\0", text)
    letters = len(own.replace("\0", ""))
    if letters < LETTERS:
        return None
    return own, re.compile("".join(".*" if c == "\0" else re.escape(c) for c in own)), letters


def makes(pattern, sentence):
    own, whole, letters = pattern
    if not sentence.endswith(MORE):
        return letters >= SHARE * len(sentence.replace("...", "")) and whole.fullmatch(sentence)
    words = re.split(r"(?:\.\.\.)+", sentence.removesuffix(MORE).strip())
    return sum(map(len, words)) >= 2 * LETTERS and re.match("\0+".join(map(re.escape, words)), own)


def literals_of(root):
    found = set()
    for layer in LAYERS:
        for at, _, names in os.walk(os.path.join(root, layer)):
            for name in names:
                if name.endswith((".c", ".h", ".cc")):
                    with open(os.path.join(at, name), encoding="utf-8") as f:
                        found.update(text_of(m[0]) for m in LITERALS.finditer(f.read()))
    return found


def problems_of(source):
    """The sentences of SET_TEXT(problem, "..."): the format string is the first literal behind the call of add_problem(), if there is one."""
    for call in re.finditer(r"\bSET_TEXT\(\s*(add_problem\((?:[^()]|\([^()]*\))*\)|\w+),\s*(" + LITERALS.pattern + ")", source):
        yield source.count("\n", 0, call.start()) + 1, text_of(call[2])


def quoted(page):
    """Line number and text of each quoted sentence."""
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("|"):
            inside = False
        elif line.startswith("| sentence "):
            inside = True
        elif inside and not line.startswith("|---"):
            yield number, line.split("|")[1].strip().replace("`", "")


def check_states(root):
    source, page = os.path.join(root, STATES), os.path.join(root, STATES_PAGE)
    if not os.path.exists(source):
        return
    with open(source, encoding="utf-8") as f:
        words = re.findall(r'\[JOB_\w+\] = \{"([^"]+)"|\*ret_word = "([^"]+)"', f.read())
    rows = []
    if os.path.exists(page):
        with open(page, encoding="utf-8") as f:
            rows = re.findall(r"^\| (.*?) \|", f.read(), re.M)
    for word in (a or b for a, b in words):
        if not any(word == row or word in row.split(", ") for row in rows):
            yield f"{STATES_PAGE}: no row has the state {word!r} of the page"


def check(root):
    yield from check_states(root)
    path = os.path.join(root, PAGE)
    if not os.path.exists(path):
        yield f"{PAGE}: is missing"
        return
    with open(path, encoding="utf-8") as f:
        sentences = list(quoted(f.read()))
    patterns = [p for p in map(pattern_of, literals_of(root)) if p]
    for number, sentence in sentences:
        if not any(makes(p, sentence) for p in patterns):
            yield f"{PAGE}:{number}: a sentence that the program does not have: {sentence}"
    source = os.path.join(root, PROBLEMS)
    if not os.path.exists(source):
        return
    with open(source, encoding="utf-8") as f:
        for line, text in problems_of(f.read()):
            pattern = pattern_of(text)
            if pattern and not any(makes(pattern, s) for _, s in sentences):
                yield f"{PROBLEMS}:{line}: a problem that {PAGE} does not have: {text}"
