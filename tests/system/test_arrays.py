# SPDX-License-Identifier: Apache-2.0
"""`tomonode arrays read`: all files or none; what is refused."""
import json
import os

from tools.pet_tools import run

PET = ("simulate", "pet", "--scanner", "small", "--attenuation", "--counts")


def test_of_the_arrays_there_are_all_or_none(folder):
    exam, beds, out = (os.path.join(folder, name) for name in ("exam", "beds", "case"))
    run(*PET, "1e5", "-o", exam)
    run(*PET, "1e5", "--beds", "2,20", "-o", beds)
    for refused, code in (([exam, beds], 4), ([beds], 4), ([os.path.join(folder, "nothing")], 8), (["--set", "iterations=0", exam], 2)):
        run("arrays", "read", "-o", out, *refused, ok=(code,))
        assert not os.path.exists(out), refused
    run("arrays", "reed", "-o", out, exam, ok=(2,))
    found = json.loads(run("arrays", "read", "--json", "-o", out, exam).stdout)["cases"][0]
    with open(os.path.join(out, "case.json"), encoding="utf-8") as f:
        assert json.load(f).keys() == found["case"].keys()
    assert sorted(os.listdir(out)) == ["case.json", "data.f32", "factors.f32"]
    before = {f: os.stat(os.path.join(out, f)).st_ino for f in os.listdir(out)}
    run("arrays", "read", "-o", out, beds, ok=(4,))
    assert before == {f: os.stat(os.path.join(out, f)).st_ino for f in os.listdir(out)}
