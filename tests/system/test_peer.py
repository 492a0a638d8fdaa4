# SPDX-License-Identifier: Apache-2.0
"""`tomonode test-peer` against DCMTK's storescp: an ordinary peer, one that takes only Implicit VR, one that is not
there, one that rejects, one that aborts, a name that is not configured."""
import json
import os

import pytest
from tools import dicom_peer as peer
from tools import node_harness as h
from tools.node_harness import check

h.need("storescp", "dcmdump")
CODE_PEER, CODE_NOT_FOUND = 7, 8


def ask(folder, port, *options, name="archive", code=0):
    """`tomonode test-peer` with two destinations, of which nobody listens at the second."""
    conf = os.path.join(folder, "peer.conf")
    with open(conf, "w") as f:
        times = "connect_timeout = 60; acse_timeout = 60; dimse_timeout = 60;"
        f.write(f"""destinations = (
            {{ name = "archive"; aet = "PACS"; host = "localhost"; port = {port}; {times} }},
            {{ name = "nobody"; aet = "NOBODY"; host = "localhost"; port = {h.free_port()}; {times} }} );
            routes = ();\n""")
    return h.run(h.TOMONODE, "test-peer", "-c", conf, *options, name, code=code)


def archive(folder, things, *options):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    things.append(pacs)
    pacs.start(*options)
    return pacs


@pytest.mark.parametrize("options, syntax", (((), "LittleEndianExplicit"), (("+xi",), "LittleEndianImplicit")))
def test_it_stores_a_phantom(folder, things, options, syntax):
    pacs = archive(folder, things, *options)
    answer = json.loads(ask(folder, pacs.port, "--json").stdout)
    check(answer["ok"] and [s["step"] for s in answer["steps"]] == ["association", "C-ECHO", "C-STORE"], answer)
    check(all(s["ok"] and s["ms"] >= 0 for s in answer["steps"]), answer)
    file, = pacs.files()
    text = h.run("dcmdump", "-q", file).stdout
    for part in ("TOMONODE^TEST", answer["sop_instance"], syntax, "(0028,0010) US 64", "(7fe0,0010)"):
        check(part in text, f"no {part}: {text}")
    people = ask(folder, pacs.port).stdout
    check("C-ECHO" in people and "0000: stored" in people, people)


def test_a_peer_that_rejects(folder, things):
    rejecting = peer.Answering(b"\x03\0\0\0\0\4\0\x01\x01\x01")
    things.append(rejecting)
    answer = json.loads(ask(folder, rejecting.port, "--json", code=CODE_PEER).stdout)
    check("rejected the association" in answer["error"], answer)


def test_a_peer_that_aborts(folder, things):
    """As archives do whose list of senders does not have us."""
    aborting = peer.Answering(b"\x07\0\0\0\0\4\0\0\0\0")
    things.append(aborting)
    answer = json.loads(ask(folder, aborting.port, "--json", code=CODE_PEER).stdout)
    check("aborted the association" in answer["error"] and "AE title TOMONODE" in answer["hint"], answer)
    people = ask(folder, aborting.port, code=CODE_PEER).stderr
    check(answer["hint"] in people, people)


def test_a_peer_that_is_not_there(folder):
    text = ask(folder, 1, name="nobody", code=CODE_PEER).stderr
    check("Connection refused" in text and "AE title" not in text, text)
    told = ask(folder, 1, "--json", name="nowhere", code=CODE_NOT_FOUND)
    check("archive, nobody" in told.stderr + told.stdout, told)
