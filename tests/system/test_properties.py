# SPDX-License-Identifier: Apache-2.0
"""Properties over random input: configurations, Interfile headers, and the attributes of an exam. What is accepted is used as it
was meant; what is refused, is refused with the name of what is wrong.

Tier 1 tries the same few examples each time, tier 2 many, by TOMONODE_TEST_SEED."""
import json
import os
import random
import re
import subprocess

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import strategies as st  # noqa: E402
from tools import call_tools as ct  # noqa: E402
from tools import node_harness as h  # noqa: E402
from tools.node_harness import check  # noqa: E402


def examples(few, many):
    """The settings of a property."""

    def decorate(test):
        kept = hypothesis.settings(
            max_examples=many if h.TIER == 2 else few,
            database=None,
            deadline=None,
            derandomize=h.TIER == 1,
            suppress_health_check=list(hypothesis.HealthCheck),
            print_blob=True,
        )(test)
        return hypothesis.seed(h.seed())(kept) if h.TIER == 2 else kept

    return decorate


def tomonode(*words):
    """(exit code, all that it said); a signal or a code that does not exist is a failure."""
    done = subprocess.run(
        [h.TOMONODE, *words], capture_output=True, text=True, errors="replace", timeout=300 * h.PATIENCE, check=False
    )
    check(0 <= done.returncode <= 10, f"{words}: code {done.returncode}: {done.stderr[-600:]}")
    return done.returncode, done.stdout + done.stderr


# ---- configurations: the reference of `check --describe` says what is allowed ----

NUMBER = re.compile(r"^a (whole )?number (of bytes )?from ([-+.0-9e]+) to ([-+.0-9e]+)([^;]*)(; 0: .*)?$")
LISTS = {  # the name of an entry, which inherits the keys of one of the program's own, and what else it must have
    "listeners": ("drawn", ""),
    "peers": ("drawn", ""),
    "destinations": ("pacs", 'aet = "A"; host = "127.0.0.1"; port = 104;'),
    "protocols": ("drawn", ""),
    "profiles": ("siemens-inspiration", ""),
    "scanners": ("small", ""),
}


@pytest.fixture(scope="module")
def reference():
    """Section: {key: (whole, lowest, highest, whether 0 is allowed too)} of all keys that are numbers."""
    code, text = tomonode("check", "--describe")
    check(code == 0, text)
    found, section, kind = {}, "", ""
    for line in text.splitlines():
        section = line[4:] if line.startswith("### ") else section
        kind = (re.search(r"`kind` is `(\w+)`", line) or [0, kind])[1] if line.startswith("Protocols") else kind
        cells = [cell.strip() for cell in line.split("|")]
        number = NUMBER.match(cells[4]) if len(cells) == 7 else None
        if number:
            whole, _, low, high, _, zero = number.groups()
            place = f"{section} {kind}" if section == "protocols" else section
            found.setdefault(place, {})[cells[1].strip("`")] = bool(whole), float(low), float(high), bool(zero)
    check(
        len(found) >= 10 and sum(map(len, found.values())) > 100, f"the reference has changed its form: {found.keys()}"
    )
    return found


def literal(value):
    """A number as the configuration is written; large whole numbers need an L."""
    return (f"{value}L" if abs(value) > 2**31 - 1 else str(value)) if isinstance(value, int) else repr(value)


def numbers(whole, low, high):
    """Values at the limits, just outside, inside, and far away."""
    if whole:
        low, high = int(low), int(high)
        return st.one_of(
            st.sampled_from([low, low - 1, high, high + 1]), st.integers(low, high), st.integers(-(2**62), 2**62)
        )
    inside = st.floats(low, high, allow_subnormal=False)
    beyond = [low - max(abs(low), 1e-9) * 1e-6, high * (1 + 1e-6) + 1e-9, -1e300, 1e300]
    return st.one_of(st.sampled_from([low, high, *beyond]), inside)


def write_configuration(folder, drawn, kind=""):
    """A file with these {section: {key: value}}, one key in a line; the path, and the line of each (section, key)."""
    path, lines, at = os.path.join(folder, "drawn.conf"), [], {}
    for section, values in drawn.items():
        name, _, kind = section.partition(" ")
        lines.append(f'{name} = ( {{ name = "{LISTS[name][0]}"; {LISTS[name][1]}' if name in LISTS else f"{name} = {{")
        lines.append(f'kind = "{kind}";' if kind else "")
        for key, value in values.items():
            lines.append(f"  {key} = {literal(value)};")
            at[section, key] = len(lines)
        lines.append("} );" if name in LISTS else "};")
    with open(path, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    return path, at


def draw_values(data, reference, most):
    drawn = {}
    for section, keys in reference.items():
        names = data.draw(st.lists(st.sampled_from(sorted(keys)), max_size=most, unique=True), label=section)
        if section == "destinations":
            names = [name for name in names if name != "port"]  # in its place already
        drawn[section] = {key: data.draw(numbers(*keys[key][:3]), label=key) for key in names}
    return {section: values for section, values in drawn.items() if values}


def fits(rule, value):
    _, low, high, zero = rule
    return low <= value <= high or (zero and value == 0)


def test_number_outside_of_its_limits_is_refused_with_file_line_and_key(folder, reference):
    @examples(20, 1500)
    @hypothesis.given(st.data())
    def property_(data):
        drawn = draw_values(
            data, {s: k for s, k in reference.items() if not s.startswith("protocols") or s == place}, 4
        )
        path, at = write_configuration(folder, drawn)
        code, text = tomonode("check", "-c", path)
        said = re.findall(rf"^{re.escape(path)}:(\d+): (.*)$", text, re.M)
        for (section, key), line in at.items():
            own = [t for n, t in said if int(n) == line and t.startswith(f"key '{key}'") and "; allowed: a " in t]
            check(
                bool(own) != fits(reference[section][key], drawn[section][key]),
                f"{section}.{key} = {drawn[section][key]}: {own}",
            )
        check((code != 0) == bool(said) and code in (0, 3), f"code {code}: {text}")
        check(all(re.search(r"'\w+'", t) for n, t in said), f"a line without a key: {said}")

    for place in [s for s in reference if s.startswith("protocols")]:
        property_()


@pytest.mark.parametrize("section", ["node", "status", "alerts", "cluster", "protocols pet", "scanners"])
def test_number_within_its_limits_is_in_effect(folder, reference, section):
    @examples(3, 100)
    @hypothesis.given(st.data())
    def property_(data):
        keys = reference[section]
        values = {
            key: data.draw(numbers(*keys[key][:3]).filter(lambda v, key=key: fits(keys[key], v)), label=key)
            for key in data.draw(st.lists(st.sampled_from(sorted(keys)), max_size=3, unique=True))
        }
        path, _ = write_configuration(folder, {section: values})
        code, text = tomonode("check", "--json", "-c", path)
        answer = json.loads(text[text.index("{") : text.rindex("}") + 1])
        if code == 3:  # two keys that do not fit together
            check(all(p.startswith(f"{path}:") for p in answer["problems"]), answer["problems"])
            return
        name = section.partition(" ")[0]
        found = answer["config"][name]
        found = next(one for one in found if one["name"] == LISTS[name][0]) if name in LISTS else found
        for key, value in values.items():
            check(abs(found[key] - value) <= 1e-12 * abs(value), f"{section}.{key}: {found[key]}, not {value}")

    property_()
