# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring: every metric and state that the rules and the dashboard name is one of /metrics; every rule is
provoked in its test; the names of the metrics follow Prometheus' conventions (promtool). promtool and amtool are in the
group `nightly` of deploy/install-deps.sh."""
import json
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

from tools import dicom_peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need("openssl", "storescu")
MONITORING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "deploy", "monitoring")


def read(name):
    return h.read_file(os.path.join(MONITORING, name))


def tool(name, *arguments, text=None):
    """Run a tool in the folder; without it the test is skipped."""
    if not shutil.which(name):
        h.skip(f"{name} is not installed")
    r = subprocess.run([name, *arguments], cwd=MONITORING, input=text, capture_output=True, text=True, check=False)
    check(r.returncode == 0 and not (text and r.stdout + r.stderr), r.stdout + r.stderr)


def metrics_of_a_node(folder, things):
    """The metrics of a node that has delivered a case, with a destination and a certificate."""
    archive = dicom_peer.Archive()
    n = h.Node(os.path.join(folder, "node"), archive.port)
    n.status = {"port": h.free_port()}
    pem, key = os.path.join(folder, "own.pem"), os.path.join(folder, "own.key")
    h.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
          key, "-out", pem, "-subj", "/CN=localhost", "-days", "100")
    os.chmod(key, 0o600)
    n.write_conf(f'listeners = ( {{ name = "tls"; port = {h.free_port()}; tls = true; client_certificate = "none"; '
                 f'certificate = "{pem}"; key = "{key}"; }} );\n')
    things += [n, archive]
    n.start()
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 5))
    n.wait_states("delivered")

    def get():
        with urllib.request.urlopen(f"http://127.0.0.1:{n.status['port']}/metrics", timeout=60) as r:
            return r.read().decode()
    wait_for("the delivery is counted", lambda: 'tomonode_jobs{state="delivered"} 1' in get())
    return get()


def test_names(folder, things):
    metrics = metrics_of_a_node(folder, things)
    families = dict(re.findall(r"^# TYPE (tomonode_\w+) (\w+)$", metrics, re.M))
    known = set(families) | {f"{name}_{part}" for name, kind in families.items() if kind == "histogram"
                             for part in ("bucket", "sum", "count")}
    states = set(re.findall(r'tomonode_jobs\{state="([^"]+)"', metrics))
    dashboard = json.loads(read("grafana-dashboard.json"))
    expressions = [t["expr"] for p in dashboard["panels"]
                   for t in p["targets"]] + re.findall(r" expr: (?:>-)?(.*?)\n +(?:for|labels):",
                                                       read("tomonode.rules.yml"), re.S)
    check(len(expressions) > 20 and sum("last_over_time" in e for e in expressions) >= 5, expressions)
    for expression in expressions:
        unknown = set(re.findall(r"\btomonode_\w+", expression.replace("tomonode_build_info", ""))) - known
        check(not unknown, f"{expression}: no metric {unknown}")
        for words in re.findall(r'state=~?"([^"]+)"', expression):
            check(set(words.split("|")) <= states, f"{expression}: not all of {words} are states")
        check(expression.count("(") == expression.count(")"), expression)
    if shutil.which("promtool"):
        tool("promtool", "check", "metrics", text=metrics)


def test_provoked():
    """Each rule is silent on a node that works, and fires on its trouble."""
    tests = read("tomonode.rules.test.yml")
    works, troubles = tests.split("  - name: troubles")
    for name in re.findall(r"- alert: (\w+)", read("tomonode.rules.yml")):
        check(f"alertname: {name} }}" in works, f"{name} is not tried on a node that works")
        check(re.search(rf"alertname: {name}\n +exp_alerts:\n", troubles), f"{name} is not provoked")


@pytest.mark.tier2("promtool")
def test_rules():
    tool("promtool", "check", "rules", "tomonode.rules.yml")
    tool("promtool", "test", "rules", "tomonode.rules.test.yml")


@pytest.mark.tier2("amtool")
def test_alertmanager():
    tool("amtool", "check-config", "alertmanager.yml")
