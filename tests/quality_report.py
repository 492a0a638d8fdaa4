# SPDX-License-Identifier: Apache-2.0
"""Format the tables and figures of the pages of measurements, with the number of digits that the measurements justify, and put
the section of a script into a page of another one."""
import os
import re

HERE = os.path.dirname(os.path.realpath(__file__))


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def find_section(page, heading):
    """Return begin and end of the section of a heading, with the empty line after it."""
    begin = page.index(heading + "\n")
    after = re.search(r"^## ", page[begin + 1:], re.M)
    return begin, begin + 1 + after.start() if after else len(page)


def section(page, heading):
    begin, end = find_section(page, heading)
    return page[begin:end].rstrip()


def replace_section(page, text):
    """Put a text in place of the section of its heading, its first line."""
    begin, end = find_section(page, text.splitlines()[0])
    return page[:begin] + text.rstrip() + ("\n\n" if end < len(page) else "\n") + page[end:]


def read_text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def fill(name, fields):
    """Return the template NAME.md.in with its fields."""
    text = read_text(os.path.join(HERE, name + ".md.in"))
    for key, value in fields.items():
        text = text.replace("{" + key + "}", str(value))
    return text


def write_section(path, name, fields):
    """Put the filled template into a page, in place of the section of its heading."""
    write_text(path, replace_section(read_text(path), fill(name, fields)))
