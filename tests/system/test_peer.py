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


def ask(folder, port, *options, name="archive", code=0, more="", routes="routes = ();"):
    """`tomonode test-peer` with two destinations, of which nobody listens at the second."""
    conf = os.path.join(folder, "peer.conf")
    with open(conf, "w") as f:
        times = "connect_timeout = 60; acse_timeout = 60; dimse_timeout = 60;"
        f.write(f"""destinations = (
            {{ name = "archive"; aet = "PACS"; host = "localhost"; port = {port}; {times} {more} }},
            {{ name = "nobody"; aet = "NOBODY"; host = "localhost"; port = {h.free_port()}; {times} }} );
            {routes}\n""")
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
    for part in ("TOMONODE^TEST", answer["sop_instance"], syntax, "(0028,0010) US 64", "(0028,0102) US 15", "(0028,0103) US 0", "(7fe0,0010)"):
        check(part in text, f"no {part}: {text}")
    people = ask(folder, pacs.port).stdout
    check("C-ECHO" in people and "0000: stored" in people, people)


ROUTES = """protocols = ( { name = "views"; kind = "dbt"; synthetic = true; }, { name = "p"; kind = "pet"; } );
    routes = ( { name = "d"; kind = "dbt"; protocols = [ "views" ]; destinations = [ "nobody" ]; },
               { name = "p"; kind = "pet"; protocols = [ "p" ]; destinations = [ "archive" ]; } );"""


def test_it_accepts_what_the_routes_send(folder, things):
    """The classes of the results that come to it, also as the fallback of another destination; commitment."""
    pacs = archive(folder, things)
    answer = json.loads(ask(folder, pacs.port, "--json", routes=ROUTES).stdout)
    step = answer["steps"][1]
    check(answer["ok"] and step["step"] == "results" and step["answer"] == "PositronEmissionTomographyImageStorage", answer)
    taken = []
    old = peer.Archive(answer=lambda uid, data: taken.append(uid) or peer.SUCCESS)
    things.append(old)
    told = json.loads(ask(folder, old.port, "--json", more="commitment = true;").stdout)["steps"][-1]
    check(told["step"] == "commitment" and "none was made" in told["answer"], told)
    taken.clear()  # now it knows neither tomosynthesis nor commitment
    old.refused = ("1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.1.20.1")
    routes = ROUTES.replace('"nobody"', '"archive"')
    answer = json.loads(ask(folder, old.port, "--json", routes=routes, more="commitment = true;", code=CODE_PEER).stdout)
    check([(s["step"], s["ok"]) for s in answer["steps"]] == [
        ("association", True), ("results", False), ("C-ECHO", True), ("C-STORE", True), ("commitment", False)], answer)
    check("BreastTomosynthesisImageStorage" in answer["error"] and "Positron" not in answer["error"] and len(taken) == 1, answer)


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
    check("aborted the association" in answer["error"] and "AE title TOMONODE" in answer["hint"]
          and "AE title PACS" in answer["hint"] and "certificate" not in answer["hint"], answer)
    people = ask(folder, aborting.port, code=CODE_PEER).stderr
    check(answer["hint"] in people, people)


def test_a_peer_that_leaves_later(folder, things):
    """It accepted the association: then AE titles and addresses are not named as the cause."""
    strict = peer.Archive()
    strict.answer = lambda uid, data: None
    things.append(strict)
    answer = json.loads(ask(folder, strict.port, "--json", code=CODE_PEER).stdout)
    check([s["ok"] for s in answer["steps"]] == [True, True, False] and "had accepted" in answer["hint"], answer)


def test_a_peer_that_is_not_there(folder):
    text = ask(folder, 1, name="nobody", code=CODE_PEER).stderr
    check("Connection refused" in text and "AE title" not in text, text)
    told = ask(folder, 1, "--json", name="nowhere", code=CODE_NOT_FOUND)
    check("archive, nobody" in told.stderr + told.stdout, told)
