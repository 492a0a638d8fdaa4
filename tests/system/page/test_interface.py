# SPDX-License-Identifier: Apache-2.0
"""docs/openapi.yaml against the program: the routes with method and role, the codes and types of the answers, and the
content of those for programs."""
import json
import os
import re

import pydicom
import pytest
from test_persons import FORM, SOURCE, ask, node, person, routes, token

from tools import node_harness as h
from tools.node_harness import check, wait_for

jsonschema, yaml = pytest.importorskip("jsonschema"), pytest.importorskip("yaml")
ROLES = ("none", "look", "act", "administer")


def strict(schema):
    """The same, but a member that is not described is wrong."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    fresh = {key: strict(value) for key, value in schema.items()}
    if isinstance(fresh.get("properties"), dict) and "type" in fresh:
        fresh.setdefault("additionalProperties", False)
    return fresh


class Interface:
    def __init__(self):
        with open(os.path.join(SOURCE, "docs", "openapi.yaml"), encoding="utf-8") as f:
            self.whole = yaml.safe_load(f)
        self.seen = set()

    def find(self, one):
        """Follow a $ref."""
        while "$ref" in one:
            at = self.whole
            for part in one["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            one = at
        return one

    def operations(self):
        return {(method.upper(), path): one for path, item in self.whole["paths"].items() for method,
                one in item.items() if method != "parameters"}

    def validator(self, schema):
        components = {"schemas": strict(self.whole["components"]["schemas"])}
        return jsonschema.Draft202012Validator({**strict(schema), "components": components})

    def judge(self, method, path, answer):
        """The answer (status, text, headers) is one that the file describes."""
        status, text, headers = answer
        one = self.operations()[method, path]["responses"]
        check(str(status) in one, f"{method} {path}: {status} is not in docs/openapi.yaml: {text[:300]}")
        described = self.find(one[str(status)])
        self.seen.add((method, path, status))
        for name, header in described.get("headers", {}).items():
            check(re.search(header["schema"].get("pattern", "."), headers.get(name, "")),
                  f"{method} {path}: {status} has no {name}")
        if status == 303:
            return
        kind = headers["Content-Type"].split(";")[0]
        check(kind in described["content"], f"{method} {path}: {status} is {kind}, not {list(described['content'])}")
        schema = described["content"][kind].get("schema")
        if schema:
            self.validator(schema).validate(json.loads(text) if kind == "application/json" else text)


def test_routes_of_the_program():
    """Every route of the program is in the file with its method and role, and no other one."""
    interface = Interface()
    operations = interface.operations()
    table = {(method, path): ROLES[role] for method, path, role in routes()}
    check({key: one["x-role"] for key, one in operations.items()} == table, set(operations) ^ set(table))
    names = [one["operationId"] for one in operations.values()]
    check(len(set(names)) == len(names), names)
    for (method, path), one in operations.items():
        needed = {"403", "421"} | ({"401"} if one["x-role"] != "none" else set()) | ({"303", "409", "413"}
                                                                                     if method == "POST" else {"200"})
        check(needed <= set(one["responses"]), f"{method} {path}: {sorted(needed - set(one['responses']))} missing")
        check(("requestBody" in one) == (method == "POST"), path)
        check(("{id}" in path) == ("parameters" in interface.whole["paths"][path]), path)
    refs = re.findall(r"'\$ref': '(#[^']+)'", str(interface.whole))
    check(len(refs) > 100 and all(interface.find({"$ref": ref}) for ref in refs), refs)
    for name, schema in interface.whole["components"]["schemas"].items():
        interface.validator(schema).check_schema(schema)
        check(f"#/components/schemas/{name}" in refs, f"{name} is not used")
    for broken in ({}, {"version": 1}, None):
        check(not interface.validator({"$ref": "#/components/schemas/Status"}).is_valid(broken),
              f"{broken} is a status")


def test_answers(folder, things):
    """Answers of a node with a held case, a delivered one, one that waits for its destination, and an object of no
    case."""
    interface = Interface()
    n, held = node(folder, things, show_patient="true")
    h.send(n.port, h.simulate(os.path.join(folder, "other"), "--views", 9, "--side", "R"))
    done = n.wait_states("held", "delivered")[1]["id"]
    things[1].stop()
    h.send(n.port, h.simulate(os.path.join(folder, "third"), "--views", 9, "--view", "MLO"))
    stray = pydicom.dcmread(h.simulate(os.path.join(folder, "stray"), "--views", 9)[0])
    stray.SOPClassUID = stray.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.7"
    stray.SOPInstanceUID = stray.file_meta.MediaStorageSOPInstanceUID = "2.25.17"
    stray.save_as(os.path.join(folder, "stray.dcm"))
    h.run("storescu", "-R", "-aet", "STRAY", "-aec", "TOMONODE", "127.0.0.1", n.port, os.path.join(folder, "stray.dcm"))
    who = person("ann", "physicist")

    def state():
        return json.loads(ask(n, "/status.json", headers=who)[1])
    wait_for("every part has content", lambda: (lambda s: s["unassigned"] and s["problems"]
                                                and any(d["down"] for d in s["destinations"])
                                                and len(s["cases"]) == 3
                                                and all("patient" in c for c in s["cases"]))(state()))
    check({c["state"] for c in state()["cases"]} == {"held", "delivered", "reconstructed"}, state())

    for method, path, role in routes():
        for at in (held, done, 777777) if "{id}" in path else (0,):
            here = path.replace("{id}", str(at)).replace("{n}", str(at))
            body = "token=" + 32 * "0" if method == "POST" else None
            for headers in (who, [], person("eve")):
                interface.judge(method, path, ask(n, here, method, headers, body))
            interface.judge(method, path, ask(n, here, method, who, body, "127.0.0.2"))
            interface.judge(method, path, ask(n, here, method, [("Host", "evil.example"), *who], body))
            if method == "POST":
                interface.judge(method, path, ask(n, here, method, who, 600 * "x"))
    form = f"token={token(ask(n, f'/jobs/{held}', headers=who)[1])}"
    for path, at, code in (("as-is", done, 409), ("same-patient", held, 409), ("cancel", 777777, 404),
                           ("cancel", held, 303), ("cancel", held, 409),
                           ("retry", held, 303), ("redo", done, 303)):
        answer = ask(n, f"/jobs/{at}/{path}", "POST", who, form + {"redo": "&protocol=quick", "same-patient": "&seen=0"}.get(path, ""))
        check(answer[0] == code, f"{path} of {at}: {answer[0]}, not {code}: {answer[1][-400:]}")
        interface.judge("POST", f"/jobs/{{id}}/{path}", answer)
    query = {p["name"]: p for p in interface.operations()["GET", "/cases"]["parameters"] if "name" in p}
    shown = set(re.findall(r'<(?:input|select)[^>]* name="(\w+)"', ask(n, "/cases", headers=who)[1]))
    check(shown <= set(query) and {"q", "state", "from", "to"} <= shown, f"{shown}, not {set(query)}")
    states = set(re.findall(r'<option value="([a-z-]+)"', ask(n, "/cases", headers=who)[1]))
    either = query["state"]["schema"]["anyOf"]
    check(states == {*either[0]["enum"], *interface.find(either[1])["enum"]}, states)
    check(FORM in interface.whole["components"]["requestBodies"]["Token"]["content"], "the type of forms")
    n.node["reserve"] = '"900000 GB"'
    n.reload()

    def unhealthy():
        try:
            return (lambda a: a if a[0] == 503 else None)(ask(n, "/health"))
        except OSError:
            return None
    interface.judge("GET", "/health", wait_for("not ok", unhealthy))
