# SPDX-License-Identifier: Apache-2.0
"""The configuration of node and archive of docs/checklist.md, word for word but for addresses, ports and paths: an exam
of the modality is delivered by TLS, and the Orthanc promises to keep the result."""
import glob
import json
import os
import re

import pytest

from tools import node_harness as h
from tools import tls_tools
from tools.node_harness import check, free_port

h.need("openssl", "storescu", "Orthanc")
PAGE = os.path.join(os.environ["TOMONODE_SOURCE"], "docs", "checklist.md")


def replaced(text, words):
    for old, new in words.items():
        check(old in text, f"{PAGE}: {old!r} is not in: {text}")
        text = text.replace(old, str(new))
    return text


@pytest.mark.tier2("as the tutorials")
def test_checklist(folder, things):
    page = h.read_file(PAGE)
    conf = re.search(r"^```\n(node = .*?)^```", page, re.M | re.S)[1]
    orthanc = re.search(r"^```json\n(.*?)^```", page, re.M | re.S)[1]
    files = os.path.join(folder, "files")
    ca = tls_tools.Authority(files, "Hospital")
    for name, host in (("node", "recon1.example.org"), ("pacs", "pacs.example.org")):
        key = tls_tools.make_key(os.path.join(files, f"{name}.key"))
        os.chmod(key, 0o600)
        ca.sign(key, name, f"DNS:{host},DNS:localhost")
    secure, archive = free_port(), h.Orthanc(os.path.join(folder, "pacs"))
    node = h.Node(os.path.join(folder, "node"), archive.port)
    things += [node, archive]

    path = os.path.join(archive.folder, "orthanc.json")
    own = json.loads(h.read_file(path))
    text = replaced(orthanc, {"/etc/orthanc": files, "10.0.0.5": "127.0.0.1", "2762": secure, "4242": archive.port})
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**own, **json.loads(text)}, f)
    archive.start()
    local = f'aet = "TOMONODE"; spool = "{node.spool}"; device = "cpu"; reserve = "1 MB"; {h.as_whom()}'
    with open(node.conf, "w", encoding="utf-8") as f:
        f.write("status = { enabled = false; };\n"
                + replaced(conf, {'aet = "TOMONODE";': local, "/etc/tomonode": files, "11112": node.port,
                                  "2762": secure, "4242": archive.port, "10.0.0.7": "127.0.0.1",
                                  "10.0.0.9": "127.0.0.1", 'host = "pacs.example.org"': 'host = "localhost"'}))
    node.command("check")
    node.start(wait=False)
    h.wait_for("the node listens", lambda: "listening listener=secure" in node.log_text())
    node.command("test-peer", "pacs")
    exam = os.path.join(folder, "exam")
    h.run(h.TOMONODE, *re.search(r"^tomonode (simulate .*) -o exam$", page, re.M)[1].split(), "-o", exam)
    sent = re.search(r"^storescu (.*) 127.0.0.1 11112 ", page, re.M)[1].split()
    h.run("storescu", *sent, "127.0.0.1", node.port, *sorted(glob.glob(os.path.join(exam, "*.dcm"))))
    node.wait_states("delivered")
    events = [e["event"] for e in json.loads(node.command("show", "--json", node.jobs()[0]["id"]).stdout)["events"]]
    check("committed" in events, events)
    check(len(archive.get("/instances")) == 2, "the object of test-peer and the result")
