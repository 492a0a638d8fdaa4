# SPDX-License-Identifier: Apache-2.0
"""tomonode bench: JSON lines of every work, figures that fit together, comparison with an earlier run, and what it
refuses."""
import json
import math
import os
import shutil

import pytest

from tools import node_harness as h
from tools.node_harness import check

TINY = ("--size", "tiny", "--repeat", "2", "--device", "cpu", "--threads", "2")
FAMILIES = {"dbt-osem", "dbt-mlem", "pet-mlem", "radon", "bp", "fbp-convolution", "fbp-fourier", "art"}


def bench(code, *arguments):
    """stdout and stderr; the exit code must be `code`."""
    done = h.run(h.TOMONODE, "bench", *arguments, code=code)
    return done.stdout, done.stderr


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def earlier(folder, found, **changes):
    """The file of an earlier run, made up: the machine may be busy."""
    path = os.path.join(folder, "earlier.jsonl")
    with open(path, "w", encoding="ascii") as f:
        f.writelines(json.dumps({**line, **changes}) + "\n" for line in found)
    return path


@pytest.fixture(scope="module")
def found():
    """A run of all works."""
    return lines(bench(0, *TINY)[0])


def check_figures(line):
    name = line["work"]
    for member in ("seconds", "least", "most", "open_seconds", "gsteps_per_s", "gb_per_s", "floor_seconds",
                   "floor_share",
                   "copy_gb_per_s", "limit_gsteps_per_s", "expected", "found"):
        check(isinstance(line[member], (int, float)) and math.isfinite(line[member]) and line[member] > 0,
              f"{name}: {member}")
    check(line["least"] <= line["seconds"] <= line["most"], f"{name}: median between least and most")
    check(abs(line["floor_share"] / (line["floor_seconds"] / line["seconds"]) - 1) < 1e-5,
          f"{name}: share of the floor")
    check(abs(line["found"] / line["expected"] - 1) < 0.06, f"{name}: computes what it should")
    check(line["floor_by"] in ("memory", "arithmetic"), f"{name}: floor_by")
    for member in ("device", "processor", "size", "sizes", "what", "check", "floor", "version", "revision"):
        check(line[member], f"{name}: {member}")
    check(line["size"] == "tiny" and line["repeat"] == 2 and line["device"].startswith("cpu (2 threads"),
          f"{name}: as asked")


def test_runs_every_work_and_its_figures_fit(found):
    works = [w["work"] for w in json.loads(bench(0, "--list", "--json")[0])["works"]]
    text = bench(0, "--list")[0]
    check(all(w in text for w in works), "--list names all works")
    check(FAMILIES <= set(works) and sorted(works) == sorted(line["work"] for line in found), "each work once")
    for line in found:
        check_figures(line)
    some = json.loads(bench(0, *TINY, "--work", "bp", "--work", "art", "--json")[0])
    check(some["ok"] and some["code"] == 0 and [w["work"] for w in some["results"]] == ["bp", "art"], "--work, --json")


def test_references_are_of_this_program(found):
    """docs/bench: each line is a work of this program, with a time."""
    folder = os.path.join(os.environ["TOMONODE_SOURCE"], "docs", "bench")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            for line in lines(f.read()):
                check(line["work"] in {w["work"] for w in found}, f"{name}: no such benchmark: {line['work']}")
                check(line["seconds"] > 0 and line["device"] and line["sizes"], f"{name}: {line}")


def test_compares_with_an_earlier_run(folder, found):
    two = (*TINY, "--work", "radon", "--work", "bp-stack")
    out, err = bench(0, *two, "--compare", earlier(folder, found, seconds=1e6))
    for line in lines(out):
        check(abs(line["ratio"] * line["earlier_seconds"] / line["seconds"] - 1) < 1e-5, f"{line['work']}: ratio")
    check(err.count("ratio") == 2, "a sentence for each work")
    document = os.path.join(folder, "document.json")
    with open(document, "w", encoding="ascii") as f:
        json.dump({"ok": True, "results": [{**line, "seconds": 1e6} for line in found]}, f, indent=1)
    bench(0, *two, "--compare", document)

    faster = earlier(folder, found, seconds=1e-12)
    out, err = bench(1, *two, "--compare", faster)
    check("SLOWER" in err and "took more than 10 % longer" in err, "what is slower is said")
    check(len(lines(out)) == 2, "lines are printed all the same")
    document = json.loads(bench(1, *two, "--compare", faster, "--json")[0])
    check(not document["ok"] and document["code"] == 1 and document["slower"] == 2, "the same in --json")


@pytest.mark.parametrize("member", ["device", "processor"])
def test_does_not_compare_with_another(folder, found, member):
    first = found[:1]
    _, err = bench(4, *TINY, "--work", first[0]["work"], "--compare", earlier(folder, first, **{member: "another"}))
    check("no result for this device, this processor" in err, err)


def test_refusals(folder):
    _, err = bench(2, "--work", "no-such-work")
    check("no-such-work" in err and "dbt-osem" in err and "art-stack" in err, "an unknown work: which there are")
    _, err = bench(2, "--device", "gpu", "--size", "tiny")
    check("'gpu'" in err and "cpu:THREADS" in err and "here: cpu" in err, "an unknown device: which there are")
    _, err = bench(6, "--device", "cuda:250", "--size", "tiny")
    check("here: cpu" in err, "a device that is not here: which are")
    for option, value in (("--size", "huge"), ("--repeat", "0"), ("--repeat", "1001"), ("--threads", "-1"),
                          ("--threshold", "nan"), ("--device", "x" * 40)):
        check(value in bench(2, option, value)[1], f"{option} {value}")
    bench(8, "--compare", os.path.join(folder, "none"), *TINY)
    for text in ("", "no json\n", '{"work": "bp"}\n', "[1, 2]\n",
                 '{"work": "bp", "device": 3, "sizes": "", "seconds": 1}\n'):
        path = os.path.join(folder, "bad")
        h.write_file(path, text)
        check(path in bench(4, "--compare", path, *TINY)[1], f"what is wrong with {text!r}")


def test_a_node(folder):
    """A node is started, measured, compared with an earlier run, and removed."""
    sizes, path = "3 images of 10 kB", os.path.join(folder, "earlier.jsonl")
    before = {"node-result": (sizes, 1e-12), "node-exam": (sizes, 1e6), "node-association": (sizes + ", 2 senders", 1e-12)}
    with open(path, "w", encoding="ascii") as f:
        f.writelines(json.dumps({"work": work, "device": "cpu", "sizes": what, "seconds": seconds}) + "\n"
                     for work, (what, seconds) in before.items())
    # without LeakSanitizer, which h.run() would load into each process of the node
    done = h.run(h.TOMONODE, "bench", "node", "--exams", "1", "--associations", "2", "--senders", "2", "--folder", folder,
                 "--compare", path, "--json", code=1, timeout=600, env={**os.environ, "LD_PRELOAD": ""})
    document = json.loads(done.stdout)
    check([line["work"] for line in document["results"]] == list(before), document)
    for line in document["results"]:
        check(0 < line["least"] <= line["seconds"] <= line["most"] < 300 and line["repeat"] == 5, line)
        rate, unit = ("per_second", 1) if line["work"] == "node-association" else ("per_hour", 3600)
        check(abs(line[rate] * line["seconds"] / unit - 1) < 1e-6, line)
        check(line["device"] == "cpu" and line["processor"] and line["sizes"] == before[line["work"]][0], line)
        check(abs(line["ratio"] * line["earlier_seconds"] / line["seconds"] - 1) < 1e-6, line)
    check(document["slower"] == 2 and done.stderr.count("SLOWER") == 2, "what is slower is said")
    check(os.listdir(folder) == ["earlier.jsonl"], "its folder is removed")


def test_a_node_that_cannot_be_measured(folder):
    none = os.path.join(folder, "none")
    check(none in bench(8, "node", "--folder", none)[1], "no such folder")
    check("33" in bench(2, "node", "--senders", "33")[1], "too many senders")
    error = bench(1, "node", "--folder", folder, "--device", "none")[1]
    log = error.split("see ")[1].strip()
    check(os.path.getsize(log) > 0 and len(os.listdir(os.path.dirname(log))) == 3, "the log that the error names is there")
    shutil.rmtree(os.path.dirname(log))
    done = h.run(h.TOMONODE, "bench", "node", "--folder", folder, "--device", "cuda:99", code=6, timeout=600,
                 env={**os.environ, "LD_PRELOAD": ""})
    check(not os.listdir(folder), "its folder is removed")
    check("by cpu" in done.stderr and "not by cuda:99" in done.stderr and not done.stdout, "another device was measured")
