# SPDX-License-Identifier: Apache-2.0
"""Pilots and a node that verify each other's certificates, besides the token: who is refused, and what both ends
say."""
import os
import shutil
import socket
import ssl
import tempfile
import threading

import pytest

from tools import node_harness as h
from tools.node_harness import check, wait_for
from tools.pilot_tools import Pilot, cluster_node, exam, write_conf
from tools.tls_tools import Pki

h.need(h.TOMONODE, "openssl", "storescu", "storescp", "echoscu")
CODE_CONFIG, CODE_PEER = 3, 7


@pytest.fixture(scope="module")
def pki():
    folder = tempfile.mkdtemp(prefix="tomonode-test-")
    yield Pki(os.path.join(folder, "pki"))
    shutil.rmtree(folder)


def certified_node(folder, things, pki, **keys):
    n, pacs = cluster_node(folder, things)
    n.cluster.update({key: f'"{value}"' for key, value in {"certificate": pki.node, "key": pki.key,
                                                           "authorities": pki.trusted, **keys}.items()})
    write_conf(n)
    return n, pacs


def options(pki, certificate=None, key=None, trusted=None):
    return ["--certificate", certificate or pki.peer, "--key", key or pki.peer_key, "--authorities", trusted
            or pki.trusted]


def test_both_certified(folder, things, pki):
    n, _ = certified_node(folder, things, pki)
    n.start()
    pilot = Pilot(n, things, "d1", options=options(pki)).connected()
    h.send(n.port, exam(folder))
    n.wait_states("delivered")
    # A certificate without the secret.
    stranger = Pilot(n, things, "d1", secret="0" * 64, options=[*options(pki), "--patience", "1"])
    check(stranger.process.wait(60) == CODE_PEER, "another exit code")
    check("its token is not proven (another secret)" in stranger.log_text(), stranger.log_text())
    check(pilot.process.poll() is None, "the pilot ended")


def test_who_is_refused(folder, things, pki):
    n, _ = certified_node(folder, things, pki)
    n.start()
    rows = [("expired", options(pki, pki.expired()), "it says that our certificate has expired",
             "its certificate (CN=expired,O=tests) expired on 2021"),
            ("foreign", options(pki, pki.unknown()), "it does not trust the authority that issued our certificate",
             "its certificate (CN=stranger,O=tests) was issued by CN=Foreign CA,O=tests, which is not trusted: it is not in "
             + pki.trusted),
            ("none", [], "the node requires certificates (--certificate, --key, --authorities)",
             "no handshake with a pilot: "),
            ("suspicious", options(pki, trusted=pki.foreign.certificate),
             "(CN=Clinic CA,O=tests) is not trusted: nobody else has signed it, and it is not in " + pki.foreign.certificate,
             "it does not trust the authority that issued our certificate")]
    for ident, words, at_pilot, at_node in rows:
        pilot = Pilot(n, things, ident, options=[*words, "--patience", "1"])
        check(pilot.process.wait(60) == CODE_PEER, f"{ident}: another exit code")
        check(at_pilot in pilot.log_text(), f"{ident}: {at_pilot}: {pilot.log_text()}")
        wait_for(f"{ident}: {at_node}", lambda at_node=at_node: at_node in n.log_text())
        check(" connected " not in pilot.log_text(), f"{ident} was admitted")


def test_the_node_is_another(folder, things, pki):
    """Certificates of a node that a pilot refuses."""
    for name, certificate, words in (("elsewhere", pki.elsewhere(),
                                      "is for pacs.example, archive.example, not for the address 127.0.0.1"),
                                     ("expired", pki.expired(),
                                      "its certificate (CN=expired,O=tests) expired on 2021")):
        n, _ = certified_node(os.path.join(folder, name), things, pki, certificate=certificate, key=pki.peer_key)
        n.start()
        pilot = Pilot(n, things, "d1", options=[*options(pki), "--patience", "1"])
        check(pilot.process.wait(60) == CODE_PEER and words in pilot.log_text(), pilot.log_text())
        n.stop()
    n, _ = cluster_node(os.path.join(folder, "without"), things)
    n.start()
    pilot = Pilot(n, things, "d1", options=[*options(pki), "--patience", "1"])
    check(pilot.process.wait(60) == CODE_PEER
          and "the node has no certificate (cluster.certificate)" in pilot.log_text(), pilot.log_text())


def test_an_impostor(folder, things, pki):
    """A server with a certificate, but without the secret: a pilot without certificates tells it nothing."""
    n, _ = cluster_node(folder, things)
    n.command("pilot-token", "d1") if os.path.isdir(n.spool) else None
    listener = socket.create_server(("127.0.0.1", n.cluster_port))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.node, pki.key)
    heard = []

    def serve():
        peer, _ = listener.accept()
        try:
            with context.wrap_socket(peer, server_side=True) as s:
                heard.append(s.recv(1000))
        except OSError as e:
            heard.append(e)

    threading.Thread(target=serve, daemon=True).start()
    pilot = Pilot(n, things, "d1", secret="1" * 64, options=["--patience", "1"])
    wait_for("the impostor has heard", lambda: heard)
    check(isinstance(heard[0], OSError) or heard[0] == b"", f"the pilot said {heard[0]}")
    check(pilot.process.wait(60) == CODE_PEER and "or it is another program" in pilot.log_text(), pilot.log_text())


def test_checked(folder, things, pki):
    """`check` and the start name files that are missing, do not match or have expired."""
    n, _ = certified_node(folder, things, pki)

    def say(code, *sentences, **keys):
        n.cluster.update({key: f'"{value}"' for key, value in {"certificate": pki.node, "key": pki.key,
                                                               "authorities": pki.trusted, **keys}.items()})
        write_conf(n)
        said = h.run(h.TOMONODE, "check", "-c", n.conf, code=None)
        text = said.stdout + said.stderr
        check(all(sentence in text for sentence in sentences), f"{sentences}: {text}")
        check(said.returncode == code, f"{said.returncode}: {text}")

    missing = os.path.join(folder, "missing.pem")
    say(CODE_CONFIG, f"port of 'cluster': certificate file {missing}: No such file", certificate=missing)
    say(CODE_CONFIG, f"port of 'cluster': authorities file {missing}: No such file", authorities=missing)
    say(CODE_CONFIG, "key 'authorities' of cluster: \"\"; allowed: certificate and authorities together",
        authorities="")
    say(CODE_CONFIG, "port of 'cluster'", "expired", certificate=pki.expired(), key=pki.peer_key)
