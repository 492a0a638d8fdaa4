#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tomonode bench: JSON lines of every work, figures that fit together, comparison with an earlier run, and what it refuses."""
import json
import math
import os
import subprocess
import sys
import tempfile

TOMONODE = os.environ["TOMONODE"]
TINY = ("--size", "tiny", "--repeat", "2", "--device", "cpu", "--threads", "2")
failed = 0


def check(condition, what):
    global failed
    if not condition:
        failed += 1
        print("FAILED:", what, file=sys.stderr)


def bench(code, *arguments):
    """stdout and stderr; the exit code must be `code`."""
    done = subprocess.run([TOMONODE, "bench", *arguments], capture_output=True, text=True, timeout=120)
    check(done.returncode == code, f"code {done.returncode} instead of {code}: {arguments}: {done.stderr[-600:]}")
    return done.stdout, done.stderr


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def check_figures(line):
    name = line["work"]
    for member in ("seconds", "least", "most", "open_seconds", "gsteps_per_s", "gb_per_s", "floor_seconds", "floor_share",
                   "copy_gb_per_s", "limit_gsteps_per_s", "expected", "found"):
        check(isinstance(line[member], (int, float)) and math.isfinite(line[member]) and line[member] > 0, f"{name}: {member}")
    check(line["least"] <= line["seconds"] <= line["most"], f"{name}: median between least and most")
    check(abs(line["floor_share"] / (line["floor_seconds"] / line["seconds"]) - 1) < 1e-5, f"{name}: share of the floor")
    check(abs(line["found"] / line["expected"] - 1) < 0.06, f"{name}: computes what it should")
    check(line["floor_by"] in ("memory", "arithmetic"), f"{name}: floor_by")
    for member in ("device", "size", "sizes", "what", "check", "floor", "version", "revision"):
        check(line[member], f"{name}: {member}")
    check(line["size"] == "tiny" and line["repeat"] == 2 and line["device"].startswith("cpu (2 threads"), f"{name}: as asked")


def check_run():
    works = {w["work"] for w in json.loads(bench(0, "--list", "--json")[0])["works"]}
    text = bench(0, "--list")[0]
    check(all(w in text for w in works), "--list names all works")
    for family in ("dbt-osem", "dbt-mlem", "pet-mlem", "radon", "bp", "fbp-convolution", "fbp-fourier", "art"):
        check(family in works, f"work {family}")
    out = bench(0, *TINY)[0]
    found = lines(out)
    check([w["work"] for w in found] == list(dict.fromkeys(w["work"] for w in found)), "each work once")
    check({w["work"] for w in found} == works, "all works")
    for line in found:
        check_figures(line)
    some = json.loads(bench(0, *TINY, "--work", "bp", "--work", "art", "--json")[0])
    check(some["ok"] and some["code"] == 0 and [w["work"] for w in some["results"]] == ["bp", "art"], "--work, --json")
    return found


def changed(folder, name, found, seconds):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        for line in found:
            file.write(json.dumps({**line, "seconds": seconds}) + "\n")
    return path


def check_references(works):
    """docs/bench: each line is a work of this program, with a time."""
    folder = os.path.join(os.environ["TOMONODE_SOURCE"], "docs", "bench")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for line in lines(file.read()):
                check(line["work"] in works, f"{name}: no such benchmark: {line['work']}")
                check(line["seconds"] > 0 and line["device"] and line["sizes"], f"{name}: {line}")


def check_compare(folder, found):
    # The machine may be busy, so earlier runs are made up: one that took for ever, one that took no time.
    out, err = bench(0, *TINY, "--compare", changed(folder, "slower.jsonl", found, 1e6))
    for line in lines(out):
        check(abs(line["ratio"] * line["earlier_seconds"] / line["seconds"] - 1) < 1e-5, f"{line['work']}: ratio")
    check(err.count("ratio") == len(found), "a sentence for each work")
    document = os.path.join(folder, "document.json")
    with open(document, "w") as file:
        json.dump({"ok": True, "results": [{**line, "seconds": 1e6} for line in found]}, file, indent=1)
    bench(0, *TINY, "--work", "radon", "--compare", document)

    faster = changed(folder, "faster.jsonl", found, 1e-12)
    out, err = bench(1, *TINY, "--compare", faster)
    check("SLOWER" in err and "took more than 10 % longer" in err, "what is slower is said")
    check(len(lines(out)) == len(found), "lines are printed all the same")
    document = json.loads(bench(1, *TINY, "--work", "bp-stack", "--compare", faster, "--json")[0])
    check(not document["ok"] and document["code"] == 1 and document["slower"] == 1, "the same in --json")

    other = os.path.join(folder, "other.jsonl")
    with open(other, "w") as file:
        file.write(json.dumps({**found[0], "device": "another"}) + "\n")
    _, err = bench(4, *TINY, "--work", found[0]["work"], "--compare", other)
    check("the earlier run has no result" in err, "another device is not compared")
    check(all(line["processor"] for line in found), "the lines of a CPU name its model")
    with open(other, "w") as file:
        file.write(json.dumps({**found[0], "processor": "another"}) + "\n")
    _, err = bench(4, *TINY, "--work", found[0]["work"], "--compare", other)
    check("no result for this device, this processor" in err, "another processor is not compared")


def check_refusals(folder):
    _, err = bench(2, "--work", "no-such-work")
    check("no-such-work" in err and "dbt-osem" in err and "art-stack" in err, "an unknown work: which there are")
    _, err = bench(2, "--device", "gpu", "--size", "tiny")
    check("'gpu'" in err and "cpu:THREADS" in err and "here: cpu" in err, "an unknown device: which there are")
    _, err = bench(6, "--device", "cuda:250", "--size", "tiny")
    check("here: cpu" in err, "a device that is not here: which are")
    for option, value in (("--size", "huge"), ("--repeat", "0"), ("--repeat", "1001"), ("--threads", "-1"),
                          ("--threshold", "nan"), ("--device", "x" * 40)):
        _, err = bench(2, option, value)
        check(value in err, f"{option} {value}")
    bench(8, "--compare", os.path.join(folder, "none"), *TINY)
    for text in ("", "no json\n", '{"work": "bp"}\n', "[1, 2]\n", '{"work": "bp", "device": 3, "sizes": "", "seconds": 1}\n'):
        path = os.path.join(folder, "bad")
        with open(path, "w") as file:
            file.write(text)
        _, err = bench(4, "--compare", path, *TINY)
        check(path in err, f"what is wrong with {text!r}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = check_run()
        check_compare(folder, found)
        check_references({line["work"] for line in found})
        check_refusals(folder)
    print("all as expected" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
