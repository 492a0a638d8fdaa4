# SPDX-License-Identifier: Apache-2.0
"""TLS in both directions: DCMTK, OpenSSL and Orthanc as peers with verified certificates, and a sentence for each
refusal."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.request

import pydicom
import pytest
from tools.dicom_peer import Answering
from tools.node_harness import Node, Orthanc, TOMONODE, check, free_port, need, read_file, run, simulate, wait_for, write_file
from tools.tls_tools import Pki, fingerprint

need("openssl", "storescu", "storescp", "echoscu", "Orthanc")
CODE_CONFIG, CODE_PEER = 3, 7


@pytest.fixture(scope="module")
def pki():
    folder = tempfile.mkdtemp(prefix="tomonode-pki-")
    yield Pki(os.path.join(folder, "pki"))
    shutil.rmtree(folder)


def tls_node(folder, pki, listeners, pacs_port=4242, **node):
    """A node with its plain port, and the listeners (name -> keys)."""
    n = Node(folder, pacs_port, tls_certificate=f'"{pki.node}"', tls_key=f'"{pki.key}"',
             tls_authorities=f'"{pki.trusted}"', **node)
    n.ports = {name: free_port() for name in listeners}
    n.listeners = "listeners = ( " + ", ".join(
        f'{{ name = "{name}"; port = {n.ports[name]}; {keys} }}' for name, keys in listeners.items()) + " );\n"
    n.write_conf(n.listeners)
    return n


def echo(port, *options):
    return subprocess.run(["echoscu", "-aet", "MODALITY", "-aec", "TOMONODE", "-to", "60", *options, "127.0.0.1",
                           str(port)],
                          capture_output=True, text=True, timeout=300)


def said(node, sentence):
    """Wait until the node's log has it; once is enough."""
    wait_for(f"the log says: {sentence}", lambda: sentence in node.log_text())


def test_incoming(folder, things, pki):
    peer = ["+tls", pki.peer_key, pki.peer, "+cf", pki.trusted]
    audit = os.path.join(folder, "audit.log")
    node = tls_node(folder, pki, {"secure": "", "open": 'client_certificate = "none";'}, acse_timeout=5, audit='"file"',
                    audit_file=f'"{audit}"')
    things.append(node)
    node.start()
    secure, without = node.ports["secure"], node.ports["open"]
    check(echo(secure, *peer).returncode == 0, "C-ECHO with certificates")
    said(node, 'listener=secure certificate="CN=peer,O=tests" sha256=' + fingerprint(pki.peer).replace(":", "").lower())
    check(echo(without, "+tla", "+cf", pki.trusted).returncode == 0, "C-ECHO without a certificate of the sender")
    check(echo(node.port).returncode == 0, "C-ECHO on the plain port beside")

    # A sender that is slow in the handshake keeps nobody waiting, and does not stay for ever.
    def answered_meanwhile():
        """C-ECHO gets a response before the handshake of another sender is ended. On a busy machine that may need a
        second attempt."""
        slow = socket.create_connection(("127.0.0.1", secure))
        slow.sendall(b"\x16\x03\x01")
        check(echo(secure, *peer).returncode == 0, "C-ECHO beside a handshake that stands still")
        slow.setblocking(False)
        with contextlib.suppress(ConnectionResetError):
            try:
                slow.recv(100)
            except BlockingIOError:
                return slow
        slow.close()
        return None
    slow = wait_for("C-ECHO does not wait for the handshake", answered_meanwhile, 60)

    trust = ("+cf", pki.trusted)
    for arguments, sentence in (
            ((node.port, "+tla", *trust),
             "127.0.0.1 began a TLS handshake, but this port uses plain DICOM: switch TLS off at the sender"),
            ((secure,), "127.0.0.1 uses plain DICOM, but this port requires TLS: switch TLS on at the sender"),
            ((secure, "+tla", *trust),
             "127.0.0.1: it sent no certificate, and this port requires one (key `client_certificate`)"),
            ((secure, "+tls", pki.peer_key, pki.expired(), *trust),
             "127.0.0.1: its certificate (CN=expired,O=tests) expired on 2021-01-01 00:00 UTC: it needs a new one"),
            ((secure, "+tls", pki.peer_key, pki.peer, "+cf", pki.foreign.certificate),
             "127.0.0.1: it does not trust the authority that issued our certificate: install that authority there")):
        check(echo(*arguments).returncode != 0, f"C-ECHO must fail: {sentence}")
        said(node, sentence)
    client = ["openssl", "s_client", "-connect", f"127.0.0.1:{secure}", "-cert", pki.peer, "-key", pki.peer_key]
    for options, sentence in (
            (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
             "no common TLS version: it offers at most TLS 1.1, but 1.2 or 1.3 is required"),
            (["-tls1_2", "-cipher", "AES128-SHA"],
             "no common cipher suite: supported are those with forward secrecy and authenticated encryption")):
        subprocess.run(client + options, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        said(node, sentence)
    with socket.create_connection(("127.0.0.1", secure)) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        said(node, "127.0.0.1 does not use TLS: the first byte is 0x47, not a handshake (0x16)")
    said(node, "127.0.0.1 did not complete the TLS handshake in time")
    slow.close()
    cut = socket.create_connection(("127.0.0.1", secure))
    cut.sendall(b"\x16\x03\x01")
    cut.close()
    said(node, "127.0.0.1 closed the connection in the TLS handshake")
    for sentence in ("did not complete the TLS handshake in time", "closed the connection in the TLS handshake",
                     "expired on 2021-01-01",
                     "it sent no certificate"):
        wait_for(f"the audit trail has: {sentence}", lambda: sentence in open(audit, encoding="utf-8").read())
    check(echo(secure, *peer).returncode == 0, "and C-ECHO still")
    check("association-crashed" not in node.log_text(), "no process crashed")


def test_allow_list_by_certificate(folder, things, pki):
    peer = ["+tls", pki.peer_key, pki.peer, "+cf", pki.trusted]
    node = tls_node(folder, pki, {"secure": "", "open": 'client_certificate = "none";'}, require_known_peer="true")
    things.append(node)
    node.write_conf(node.listeners + f"""peers = (
  {{ name = "mammo"; aet = "MODALITY"; host = "127.0.0.0/8"; certificate = "sha256:{fingerprint(pki.peer)}"; }},
  {{ name = "echo"; aet = "ECHOSCU"; }} );\n""")
    node.start()
    check(echo(node.ports["secure"], *peer).returncode == 0, "the certificate on the list")
    other = ["+tls", pki.key, pki.node, "+cf", pki.trusted]
    check(echo(node.ports["secure"], *other).returncode != 0, "another certificate of the same authority")
    said(node, "is the peer 'mammo', whose certificate must match")
    check(echo(node.port).returncode != 0, "no certificate")
    said(node, "is the peer 'mammo', which must send a certificate that matches")


def test_revoked(folder, things):
    """Lists of revoked certificates, for those who call and for those who are called."""
    pki = Pki(os.path.join(folder, "pki"))
    gone, early = pki.ca.sign(pki.peer_key, "gone"), pki.ca.crl("early")
    pki.ca.revoke(gone)
    late = pki.ca.crl("late")
    old = pki.ca.crl("old", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z")
    both = os.path.join(folder, "both.crl")
    trusted = os.path.join(folder, "trusted.pem")
    for out, parts in ((both, (pki.foreign.crl("foreign"), late)), (trusted, (pki.trusted, pki.unknown()))):
        write_file(out, "".join(open(p).read() for p in parts))
    node = tls_node(folder, pki, {"early": f'crl = "{early}";', "late": f'crl = "{both}"; authorities = "{trusted}";',
                                  "old": f'crl = "{old}";'})
    things.append(node)
    node.start()

    def call(listener, certificate):
        return echo(node.ports[listener], "+tls", pki.peer_key, certificate, "+cf", pki.trusted).returncode

    for listener, certificate, sentence in (
            ("early", gone, ""), ("early", pki.peer, ""), ("late", pki.peer, ""),
            ("late", pki.unknown(), ""),  # trusted by itself: of its authority nothing is known, and no list of its
            ("late", gone,
             "its certificate (CN=gone,O=tests) was revoked by its authority (CN=Clinic CA,O=tests): "
             "it needs a new one"),
            ("old", pki.peer, "its certificate (CN=peer,O=tests) cannot be checked for revocation: the revocation list of "
                              f"CN=Clinic CA,O=tests in {old} ended on 2020-02-01 00:00 UTC; get the new list and reload")):
        check((call(listener, certificate) == 0) == (not sentence), f"{listener}: {os.path.basename(certificate)}")
        said(node, sentence)
    said(node, "certificate-expired reason=\"listener 'old': a list of revoked certificates in")

    pacs = Peer(folder, "openssl", "s_server", "-quiet", "-accept", "127.0.0.1:PORT", "-cert", gone, "-key",
                pki.peer_key)
    things.append(pacs)
    keys = f'host = "127.0.0.1"; tls = true; authorities = "{pki.trusted}"; '
    write_file(both, "-----BEGIN X509 CRL-----\nnothing\n-----END X509 CRL-----\n")
    text = ask(folder, pacs.port, keys + f'crl = "{both}";', CODE_PEER)
    check(f"crl file {both}: it holds no list of revoked certificates (CRL) in PEM form" in text, text)


class Peer:
    """storescp, or openssl s_server as one that is not DICOM."""

    def __init__(self, folder, *command):
        self.port = free_port()
        os.makedirs(folder, exist_ok=True)
        self.process = subprocess.Popen([c.replace("PORT", str(self.port)) for c in command], cwd=folder,
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def there():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0
        wait_for(f"{command[0]} listens", there)

    def stop(self):
        self.process.kill()
        self.process.wait()


def storescp(folder, things, *options):
    peer = Peer(folder, "storescp", *options, "-od", folder, "PORT")
    things.append(peer)
    return peer


def ask(folder, port, keys, code, acse_timeout=60):
    """`tomonode test-peer` with a destination of these keys: what it said."""
    conf = os.path.join(folder, "peer.conf")
    with open(conf, "w") as f:
        times = f"connect_timeout = 60; acse_timeout = {acse_timeout}; dimse_timeout = 60;"
        f.write(f'destinations = ( {{ name = "pacs"; aet = "PACS"; port = {port}; {times} {keys} }} );\nroutes = ();\n')
    p = run(TOMONODE, "test-peer", "-c", conf, "--json", "pacs", code=code)
    return json.loads(p.stdout).get("error", "")


def test_outgoing(folder, things, pki):
    host = 'host = "127.0.0.1"; '
    tls = f'tls = true; authorities = "{pki.trusted}"; '
    ours = f'certificate = "{pki.node}"; key = "{pki.key}"; '

    def scp(name, certificate, *more):
        return storescp(os.path.join(folder, name), things, "+tls", pki.peer_key, certificate, "+cf", pki.trusted,
                        *more).port

    good = scp("good", pki.peer)
    check(ask(folder, good, host + tls + ours, 0) == "", "storescp with certificates")
    check(ask(folder, good, 'host = "localhost"; ' + tls + ours, 0) == "", "by its name")
    plain = storescp(os.path.join(folder, "plain"), things).port
    aborts = Answering(b"\x07\0\0\0\0\x04\0\0\x02\x01")  # A-ABORT, PS3.8 9.3.8
    things.append(aborts)
    aborting = aborts.port
    elsewhere, unknown = scp("elsewhere", pki.elsewhere()), scp("unknown", pki.unknown())
    name = "PACS at 127.0.0.1:"
    cases = [
        (plain, tls + ours, f"{name}{plain} closed the connection instead of beginning TLS: perhaps this port uses "
                            "plain DICOM (tls = false)"),
        (aborting, tls + ours, f"{name}{aborting} does not use TLS on this port: its response to the handshake began "
                               "with 0x07, as plain DICOM does; use its TLS port, or set tls = false"),
        (good, "", f"{name}{good}: this port uses TLS and not plain DICOM (tls = true)"),
        (good, tls, f"{name}{good}: it requires a client certificate, and none is configured"),
        (unknown, tls + ours,
         f"{name}{unknown}: its certificate (CN=stranger,O=tests) was issued by CN=Foreign CA,O=tests, which is not"),
        (good, tls + f'certificate = "{pki.unknown()}"; key = "{pki.peer_key}"; ',
         "it does not trust the authority that issued our certificate"),
        (good, tls + f'certificate = "{pki.expired()}"; key = "{pki.peer_key}"; ',
         "it says that our certificate has expired"),
        (good, tls + f'certificate = "{folder}/none.pem"; ',
         f"certificate file {folder}/none.pem: No such file or directory"),
    ]
    for port, keys, sentence in cases:
        text = ask(folder, port, host + keys, CODE_PEER)
        check(sentence in text, f"wanted '{sentence}', got '{text}'")
    check(ask(folder, elsewhere, host + tls + ours + 'tls_name = "archive.example"; ', 0) == "", "tls_name")
    check(ask(folder, elsewhere, host + tls + ours + 'verify = "authority"; ', 0) == "", "any name")
    own = f'tls = true; authorities = "{pki.unknown()}"; {ours}'
    check(ask(folder, unknown, host + own, 0) == "", "the peer's own certificate as the authority")

    for options, sentence in ((["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "it supports neither TLS 1.2 nor 1.3"),
                              (["-tls1_2", "-cipher", "AES128-SHA"], "it accepts none of the local cipher suites")):
        server = Peer(folder, "openssl", "s_server", "-accept", "127.0.0.1:PORT", "-cert", pki.peer, "-key",
                      pki.peer_key, *options)
        things.append(server)
        text = ask(folder, server.port, host + tls + ours, CODE_PEER)
        check(sentence in text, f"wanted '{sentence}', got '{text}'")
    silent = socket.create_server(("127.0.0.1", 0))
    text = ask(folder, silent.getsockname()[1], host + tls + ours, CODE_PEER, acse_timeout=1)
    check("did not respond to the TLS handshake in time: perhaps this port uses plain DICOM" in text, text)
    silent.close()


def test_orthanc_both_ways(folder, things, pki):
    """The exam comes from one Orthanc and goes to another, over TLS with verified certificates all the way."""
    exam = simulate(os.path.join(folder, "exam"))
    tls = {"DicomTlsEnabled": True, "DicomTlsCertificate": pki.peer, "DicomTlsPrivateKey": pki.peer_key,
           "DicomTlsTrustedCertificates": pki.trusted, "DicomTlsRemoteCertificateRequired": True}
    pacs = Orthanc(os.path.join(folder, "pacs"))
    things.append(pacs)
    node = tls_node(os.path.join(folder, "node"), pki, {"secure": ""}, pacs.port, plain="false",
                    tls_crl=f'"{pki.ca.crl("nobody")}"')
    things.append(node)
    node.destination["tls"] = "true"
    node.write_conf(node.listeners)
    path = os.path.join(pacs.folder, "orthanc.json")
    conf = json.loads(read_file(path))
    conf.update(tls, DicomModalities
                ={"node": {"AET": "TOMONODE", "Host": "127.0.0.1", "Port": node.ports["secure"], "UseDicomTls": True}})
    with open(path, "w") as f:
        json.dump(conf, f)
    pacs.start()
    node.start(wait=False)
    wait_for("the node listens", lambda: "listening listener=secure" in node.log_text())
    keys = (f'host = "127.0.0.1"; tls = true; authorities = "{pki.trusted}"; certificate = "{pki.node}"; '
            f'key = "{pki.key}";')
    check(ask(folder, pacs.port, keys, 0) == "", "test-peer with Orthanc")
    run("storescu", "+tls", pki.peer_key, pki.peer, "+cf", pki.trusted, "-aet", "MODALITY", "-aec", "PACS",
        "127.0.0.1", pacs.port, *exam)
    study = pydicom.dcmread(exam[0], stop_before_pixels=True).StudyInstanceUID
    order = urllib.request.Request(f"http://127.0.0.1:{pacs.http}/modalities/node/store", method="POST",
                                   data=json.dumps({"Resources": pacs.get("/studies"), "Synchronous": True}).encode())
    urllib.request.urlopen(order, timeout=60).close()
    node.wait_states("delivered")
    check(len(pacs.objects()[study]) == len(exam) + 1, f"the result is in the study: {pacs.objects()}")
    check('certificate="CN=peer,O=tests"' in node.log_text(), "Orthanc's certificate is in the log")
    node.process.send_signal(signal.SIGHUP)
    wait_for("a reload", lambda: "config-reloaded" in node.log_text())
    said = node.log_text().split("config-reloaded")[1].split("\n")[0]
    check(f" port={node.ports['secure']} " in said, f"the port is one that it listens on: {said}")


def test_check(folder, pki):
    """`check` and `serve` name what is wrong with the files of TLS."""
    soon = pki.ca.sign(pki.key, "soon", days=20)
    conf, open_key = os.path.join(folder, "t.conf"), os.path.join(folder, "open.key")
    shutil.copy(pki.key, open_key)

    def checked(certificate, key, code, command="check"):
        write_file(conf, f'node = {{ plain = false; spool = "{folder}/spool"; tls_authorities = "{pki.trusted}"; }};\n'
                         f'listeners = ( {{ name = "secure"; port = 0; certificate = "{certificate}"; '
                         f'key = "{key}"; }} );\n')
        p = run(TOMONODE, command, "-c", conf, code=code)
        return p.stdout + p.stderr

    check("secure: 127.0.0.1 port 0, TLS, peers must send a certificate" in checked(pki.node, pki.key, 0), "good files")
    for certificate, key, sentence in (
            (folder + "/gone.pem", pki.key,
             f"listener 'secure': certificate file {folder}/gone.pem: No such file or directory"),
            (pki.node, "/dev/zero", "key file /dev/zero: it is a device, but must be a regular file")):
        for command in ("check", "serve"):
            text = checked(certificate, key, CODE_CONFIG, command)
            check(sentence in text, f"{command}: wanted '{sentence}', got '{text}'")
    for mode, word in ((0o600, None), (0o640, None), (0o644, "read"), (0o602, "change")):
        os.chmod(open_key, mode)
        text = checked(pki.node, open_key, 0)
        sentence = (f"warning: listener 'secure': the private key in {open_key} is not protected: other users of this "
                    f"machine can {word} it (mode {mode:04o})")
        check((sentence in text) if word else ("is not protected" not in text), f"mode {mode:o}: {text}")
    text = checked(soon, pki.key, 0)
    check("warning: listener 'secure': the certificate in " in text and "in 20 days" in text, text)
    report = json.loads(run(TOMONODE, "check", "--json", "-c", conf).stdout)
    check(report["ok"] and len(report["warnings"]) >= 1 and report["config"]["listeners"][0]["tls"] is True, report)
