# SPDX-License-Identifier: Apache-2.0
"""Properties over random input: configurations, Interfile headers, and the attributes of exams. What is accepted is
used as it was meant; what is refused, is refused with the name of what is wrong.

Tier 1 tries the same few examples each time, tier 2 many, by TOMONODE_TEST_SEED."""
import copy
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

hypothesis = pytest.importorskip("hypothesis")
pydicom = pytest.importorskip("pydicom")
from hypothesis import strategies as st  # noqa: E402
from tools import node_harness as h  # noqa: E402
from tools import tiny_inputs as tiny  # noqa: E402
from tools.node_harness import check  # noqa: E402

pydicom.config.settings.writing_validation_mode = pydicom.config.IGNORE
pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE


def examples(few, many):
    """The settings of a property."""

    def decorate(test):
        kept = hypothesis.settings(
            max_examples=many // h.PATIENCE if h.TIER == 2 else few,
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
    "steps": ("drawn", f'program = "/opt/drawn"; version = "1"; sha256 = "{"0" * 64}";'),
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
    h.write_file(path, "\n".join(lines) + "\n")
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
    @examples(20, 400)
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


# ---- attributes of DICOM objects ----

NUMBERS = {"DS": float, "FD": float, "FL": float, "IS": int, "US": int, "UL": int}
DAMAGE = {  # of a number
    "NaN": {"DS": "nan", "FD": float("nan"), "FL": float("nan")},
    "huge": {"DS": "1e300", "FD": 1e300, "FL": 1e38, "IS": "2147483647", "US": 65535, "UL": 4294967295},
    "zero": {"DS": "0", "FD": 0.0, "FL": 0.0, "IS": "0", "US": 0, "UL": 0},
    "negative": {"DS": "-7", "FD": -7.0, "FL": -7.0, "IS": "-7"},
}
KINDS = ("removed", "empty", "doubled", "text", *DAMAGE)
WORDS = {  # what a sentence may say instead of the attribute
    "Manufacturer": "manufacturer '",
    "ManufacturerModelName": "model '",
    "PositionerPrimaryAngle": "projection angle",
    "CreatorVersionUID": "an unknown format",
    "PatientPosition": "patient's position",
    "Rows": "PixelData",
    "Columns": "PixelData",
}
SELECTING = {"StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"}  # other cases, which are incomplete
PLAUSIBLE = {("PositionerPrimaryAngle", "zero"), ("PositionerPrimaryAngle", "negative")}  # another exam, no damage


def places(item, at=()):
    """Paths of all elements: tags, and numbers of items."""
    for element in item:
        yield (*at, element.tag)
        if element.VR == "SQ":
            for i, inner in enumerate(element.value):
                yield from places(inner, (*at, element.tag, i))


def damage(ds, place, kind):
    """Change one element; False: this kind does not fit it."""
    for step in place[:-1]:
        ds = ds[step].value if isinstance(step, pydicom.tag.BaseTag) else ds[step]
    element = ds[place[-1]]
    tag, vr, value = element.tag, element.VR, element.value
    several = list(value or ()) if vr == "SQ" or isinstance(value, pydicom.multival.MultiValue) else [value]
    if kind == "removed":
        del ds[tag]
    elif vr in ("OB", "OW"):
        return False
    elif kind == "empty":
        ds[tag] = pydicom.DataElement(tag, vr, [] if vr == "SQ" else "")
    elif kind == "doubled" and value not in (None, "") and several:
        ds[tag] = pydicom.DataElement(tag, vr, several + copy.deepcopy(several[:1] if vr == "SQ" else several))
    elif kind == "text" and vr != "SQ":
        ds[tag] = pydicom.DataElement(tag, "LO", "strange")
    elif vr in DAMAGE.get(kind, ()):
        wrong = DAMAGE[kind][vr]
        ds[tag] = pydicom.DataElement(tag, vr, [wrong] * len(several) if len(several) > 1 else wrong)
    else:
        return False
    return True


def pictures(folder):
    """Of each object what an image is: pixels, their meaning and their place."""
    found = []
    for name in sorted(os.listdir(folder)):
        ds = pydicom.dcmread(os.path.join(folder, name))
        groups = [*ds.get("SharedFunctionalGroupsSequence", ()), *ds.get("PerFrameFunctionalGroupsSequence", ())]
        keys = (
            "PixelMeasuresSequence",
            "PlaneOrientationSequence",
            "PlanePositionSequence",
            "PixelValueTransformationSequence",
        )
        of = (
            "Rows",
            "Columns",
            "RescaleSlope",
            "RescaleIntercept",
            "Units",
            "PixelSpacing",
            "ImagePositionPatient",
            "ImageOrientationPatient",
        )
        found.append(
            (ds.PixelData, [str(ds.get(key)) for key in of], [str(g.get(key)) for g in groups for key in keys])
        )
    return sorted(found, key=str)


EXAMS = {"dbt": tiny.RECON_DBT, "pet": tiny.RECON_PET}


@pytest.mark.parametrize("kind_of_exam", EXAMS)
def test_damaged_attribute_is_named_or_changes_nothing(folder, kind_of_exam):
    inputs, out, exam = tiny.made(), os.path.join(folder, "out"), os.path.join(folder, "exam")
    source, options = os.path.join(inputs, "in", kind_of_exam), tiny.words(EXAMS[kind_of_exam], inputs)
    sets = {
        name: pydicom.dcmread(os.path.join(source, name))
        for name in sorted(os.listdir(source))
        if name.endswith(".dcm")
    }
    code, text = tomonode("recon", *options, "-o", out, source)
    check(code == 0, text)
    undamaged = pictures(out)
    first = next(iter(sets.values()))
    all_places = [place for place in places(first) if place[0] != 0x7FE00010]

    @examples(12, 400)
    @hypothesis.given(st.sampled_from(all_places), st.sampled_from(KINDS), st.booleans())
    def property_(place, kind, everywhere):
        tags = [step for step in place if isinstance(step, pydicom.tag.BaseTag)]
        keywords = [pydicom.datadict.keyword_for_tag(tag) for tag in tags]
        if (keywords[-1], kind) in PLAUSIBLE:
            return
        for path in (out, exam):
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(exam)
        for i, (name, ds) in enumerate(sets.items()):
            changed = copy.deepcopy(ds)
            try:
                if (everywhere or i == 0) and not damage(changed, place, kind):
                    return
            except (KeyError, IndexError):  # the other objects need not have it
                pass
            changed.save_as(os.path.join(exam, name))
        code, text = tomonode("recon", *options, "-o", out, exam)
        said = any(f"({tag.group:04x},{tag.element:04x})" in text.lower() for tag in tags)
        said = said or any(word and word in text for key in keywords for word in (key, WORDS.get(key)))
        private = any(tag.is_private for tag in tags)  # sentences name what such an element is
        said = said or (code == 4 and (private or SELECTING & set(keywords)))
        what = f"{'.'.join(keywords)} {kind}{' everywhere' if everywhere else ''}: code {code}: {text[-400:]}"
        check(said or (code == 0 and pictures(out) == undamaged), what)

    property_()


# ---- Interfile ----


def key_of(name):
    return re.sub(r"[\s!]", "", name).lower()


def read_header(text):
    """{key: value}; keys without capitals, blanks and exclamation marks."""
    pairs = [line.partition(":=") for line in text.splitlines() if ":=" in line and not line.lstrip().startswith(";")]
    return {key_of(name): value.strip() for name, _, value in pairs}


def respelled(data, text):
    """The same header, as another program might write it."""
    lines = []
    for line in text.splitlines():
        name, mark, value = line.partition(":=")
        style = data.draw(st.integers(0, 5), label=name)
        name = {1: name.upper(), 2: name.lower(), 3: "!" + name.lstrip("!"), 4: name.lstrip("!").rstrip()}.get(
            style, name
        )
        lines.append(name + mark + ("  " + value.strip() + " " if style == 5 and value.strip() else value))
        if style == 2:
            lines.append("; a comment := 7")
    return data.draw(st.sampled_from(["\n", "\r\n"]), label="end of line").join(lines) + "\n"


def write_scan(folder, text, values):
    """The header of a scan with these values beside it."""
    os.makedirs(folder)
    h.write_file(os.path.join(folder, "emission.s"), values)
    with open(os.path.join(folder, "emission.hs"), "w", encoding="ascii", newline="") as f:
        f.write(text)
    return os.path.join(folder, "emission.hs")


def reconstruct(folder, source):
    """(exit code, what was said, the pictures)"""
    out = os.path.join(folder, "image")
    shutil.rmtree(out, ignore_errors=True)
    position = ["--attribute", "PatientPosition=HFS"] if source.endswith(".hs") else []
    code, said = tomonode("recon", *tiny.words(tiny.RECON_PET, tiny.made()), *position, "-o", out, source)
    return code, said, pictures(out) if code == 0 else None


@pytest.fixture(scope="module")
def scan():
    """(text of a header, its values)"""
    source = os.path.join(tiny.made(), "in", "hs")
    text = h.read_file(os.path.join(source, "emission.hs"))
    return text, h.read_file(os.path.join(source, "emission.s"), "rb")


def test_interfile_comes_back_as_it_was_and_means_the_same(folder, scan):
    """Spelled in another way, with another place of the data in the file and another type of numbers: the same image;
    through DICOM objects, and exported again."""
    text, values = scan
    counts = struct.unpack(f"<{len(values) // 4}f", values)

    @examples(5, 120)
    @hypothesis.given(st.data())
    def property_(data):
        shutil.rmtree(os.path.join(folder, "one"), ignore_errors=True)
        config = os.path.join(tiny.made(), "in", "tiny.conf")
        duration = f"(sec)[1] := {data.draw(st.floats(0.01, 1e5), label='duration')!r}"
        offset = data.draw(st.integers(0, 300), label="offset")
        form, size, code = data.draw(st.sampled_from(FORMS), label="type")
        same = text.replace("(sec)[1] := 600", duration)
        header = same.replace("in bytes[1] := 0", f"in bytes[1] := {offset}").replace(":= float", f":= {form}")
        header = respelled(data, header.replace("per pixel := 4", f"per pixel := {size}"))
        stored = bytes(offset) + struct.pack(f"<{len(counts)}{code}", *(counts if code == "f" else map(int, counts)))
        path = write_scan(os.path.join(folder, "one", "hs"), header, stored)
        objects, back = os.path.join(folder, "one", "objects"), os.path.join(folder, "one", "back", "emission.hs")
        for words in (("import", path, "--set", "PatientPosition=HFS", "-o", objects), ("export", "-o", back, objects)):
            code, said = tomonode(*words, "-c", config)
            check(code == 0, said)
        with open(back, encoding="ascii", newline="") as f, open(back[:-2] + "s", "rb") as g:
            check(read_header(f.read()) == read_header(header) and g.read() == stored, "exported otherwise")
        plain = write_scan(os.path.join(folder, "one", "plain"), same, struct.pack(f"<{len(counts)}f", *counts))
        expected = reconstruct(folder, plain)
        check(expected[0] == 0, expected[1])
        found = reconstruct(folder, objects)
        check(found[2] == expected[2], f"another image: {found[1]}")

    property_()


FORMS = [("float", 4, "f"), ("unsigned integer", 2, "H"), ("signed integer", 2, "h"), ("unsigned integer", 4, "I")]
JUNK = ("", "abc", "-3", "0", "1e99", "nan", "{1,2", "{}", "4294967297", "2.5", "{ 1,2,3}", "1,1")
DAMAGED = (
    "imagedata byte order",
    "number format",
    "number of bytes per pixel",
    "number of dimensions",
    "matrix size [1]",
    "matrix size [2]",
    "matrix size [3]",
    "matrix size [4]",
    "minimum ring difference per segment",
    "maximum ring difference per segment",
    "Number of rings",
    "Number of detectors per ring",
    "Inner ring diameter (cm)",
    "Distance between rings (cm)",
    "Default bin size (cm)",
    "effective central bin size (cm)",
    "image scaling factor[1]",
    "data offset in bytes[1]",
    "number of time frames",
    "image duration (sec)[1]",
    "image relative start time (sec)[1]",
    "matrix axis label [2]",
)
NO_DAMAGE = {("image scaling factor[1]", value) for value in ("2.5", "-3", "4294967297")}
NO_DAMAGE.add(("Distance between rings (cm)", "2.5"))  # other values, which mean something
STEM = re.compile(r"^(data )?(.*?)( in bytes)? ?[\[(].*$|^(.*)$")  # of a key: "offset", "Inner ring diameter"


def test_damaged_key_of_interfile_is_named_or_changes_nothing(folder, scan):
    text, values = scan
    _, _, undamaged = reconstruct(folder, write_scan(os.path.join(folder, "whole"), text, values))
    check(undamaged, "the scan itself is refused")

    @examples(12, 400)
    @hypothesis.given(st.sampled_from(DAMAGED), st.sampled_from(("removed", "doubled", *JUNK)))
    def property_(key, how):
        if (key, how) in NO_DAMAGE:
            return
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if key_of(line.partition(":=")[0]) == key_of(key))
        name, _, value = lines[at].partition(":=")
        if how == "removed":
            lines[at] = ""
        else:
            lines[at] = f"{name}:= {value}\n{name}:= 7" if how == "doubled" else f"{name}:= {how}"
        shutil.rmtree(os.path.join(folder, "damaged"), ignore_errors=True)
        path = write_scan(os.path.join(folder, "damaged"), "\n".join(lines) + "\n", values)
        code, said, image = reconstruct(folder, path)
        check(code in (0, 2, 4), f"{key} {how!r}: code {code}: {said}")
        stem = STEM.match(key)
        named = key_of(stem[2] or stem[4]) in key_of(said)
        check(named or image == undamaged, f"{key} {how!r}: code {code}: {said}")

    property_()
