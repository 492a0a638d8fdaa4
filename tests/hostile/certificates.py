# SPDX-License-Identifier: Apache-2.0
"""Certificates with all that can be wrong: of a sender at a TLS port, of a destination, and the node's own files. The answer is "accepted" or
"refused"; what an operator does about it is in the sentence."""
import functools
import json
import os
import socket
import ssl
import subprocess
import threading

import hostile
from hostile import Case, check, h, peer
from tools import tls_tools
from tools.dicom_peer import IMPLICIT, VERIFICATION, pdu
from tools.node_harness import read_file, write_file

TITLE, PART, PROGRAMS = "Certificates", 8, ("openssl",)
LEAF = "basicConstraints=CA:FALSE"
SAN = "subjectAltName=DNS:pacs.example,DNS:localhost,IP:127.0.0.1"
CA = "basicConstraints=critical,CA:TRUE"
EC = ("EC", "-pkeyopt", "ec_paramgen_curve:P-256")


def openssl(*args):
    p = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=60)
    if p.returncode != 0:
        raise h.Skipped(f"this OpenSSL cannot do `openssl {' '.join(args[:6])}`: {p.stderr.strip()[-200:]}")
    return p.stdout


class Pki(tls_tools.Pki):
    """Ours and a foreign authority, and certificates made when a case needs them."""

    @functools.lru_cache(None)
    def made_key(self, name, *kind):
        return tls_tools.make_key(os.path.join(self.folder, f"{name}.key"), kind)

    def issue(self, name, *extensions, by=None, key=None, subject=None, digest="-sha256"):
        """(certificate, key); by: (certificate, key) of the issuer, default our authority; "self": itself."""
        key = key or self.made_key("ec", *EC)
        base = os.path.join(self.folder, name)
        write_file(base + ".ext", "\n".join(extensions) + "\n")
        openssl("req", "-new", "-key", key, "-subj", subject or f"/O=tests/CN={name}", "-out", base + ".csr")
        signer = by or (self.trusted, os.path.join(self.ca.folder, "ca.key"))
        how = ["-signkey", key] if by == "self" else ["-CA", signer[0], "-CAkey", signer[1], "-CAcreateserial"]
        openssl("x509", "-req", "-in", base + ".csr", *how, "-days", "30", digest, *(["-extfile", base + ".ext"] if extensions else []), "-out", base + ".pem")
        return base + ".pem", key

    def chain(self, name, *certificates):
        """One file of several certificates."""
        path = os.path.join(self.folder, f"{name}-chain.pem")
        with open(path, "w", encoding="ascii") as f:
            for certificate in certificates:
                f.write(read_file(certificate))
        return path

    @functools.lru_cache(None)
    def middle(self, name, *extensions, by=None):
        return self.issue(name, *(extensions or (CA,)), by=by, key=self.made_key("middle", *EC))


# ---- certificates: functions of the Pki that return (certificate, key) ----

def leaf(name, *extensions, **options):
    return lambda pki: pki.issue(name, LEAF, *extensions, **options)


def signed(name, start, end):
    """With dates; only `openssl ca` can set them."""
    return lambda pki: (pki.ca.sign(pki.peer_key, name, start=start, end=end), pki.peer_key)


def of_key(name, *kind, **options):
    return lambda pki: pki.issue(name, LEAF, SAN, key=pki.made_key(name, *kind), **options)


def self_signed(pki):
    return pki.issue("self", LEAF, SAN, by="self")


def stranger(pki):
    return pki.unknown(), pki.peer_key


def by_middle(name, middle, *extensions, send=True, leaf_extensions=(SAN,)):
    """Issued by an intermediate authority with these extensions; send: the intermediate certificate is sent, too."""
    def make(pki):
        issuer = pki.middle(middle, *extensions)
        certificate, key = pki.issue(name, LEAF, *leaf_extensions, by=issuer)
        return (pki.chain(name, certificate, issuer[0]) if send else certificate), key
    return make


def deep(pki, n=103):
    issuer, chain = None, []
    for i in range(n):
        issuer = pki.middle(f"deep{i}", CA, by=issuer)
        chain.insert(0, issuer[0])
    certificate, key = pki.issue("deep", LEAF, SAN, by=issuer)
    return pki.chain("deep", certificate, *chain), key


def path_length(pki):
    first = pki.middle("short", "basicConstraints=critical,CA:TRUE,pathlen:0")
    second = pki.middle("below", CA, by=first)
    certificate, key = pki.issue("pathlen", LEAF, SAN, by=second)
    return pki.chain("pathlen", certificate, second[0], first[0]), key


EXPIRED, FUTURE = signed("expired", "20200101000000Z", "20210101000000Z"), signed("future", "20800101000000Z", "20810101000000Z")
BOTH = [  # refused or accepted alike, of a sender and of a destination
    ("in order", leaf("good", SAN), True, "CN=good|rejected the association"),
    ("expired", EXPIRED, False, r"expired on 2021-01-01 00:00 UTC: it needs a new one"),
    ("not yet valid", FUTURE, False, r"is not valid before 2080-01-01 00:00 UTC: check the clocks"),
    ("self-signed", self_signed, False, "CN=self.* is not trusted: nobody else has signed it, and it is not in"),
    ("of an unknown authority", stranger, False, "was issued by CN=Foreign CA,O=tests, which is not trusted: it is not in"),
    ("RSA-1024", of_key("rsa1024", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"), False, "has a key that is too short to be safe"),
    ("of a curve of 192 bits", of_key("p192", "EC", "-pkeyopt", "ec_paramgen_curve:prime192v1"), False, "too short to be safe|no common|none of the local cipher suites|it sent no certificate"),
    ("Ed25519", of_key("ed25519", "ED25519"), True, "CN=ed25519|rejected the association"),
    ("signed with MD5", leaf("md5", SAN, digest="-md5"), False, "is signed with a digest that is no longer safe"),
    ("signed with SHA-1", leaf("sha1", SAN, digest="-sha1"), False, "is signed with a digest that is no longer safe"),
    ("issued by a certificate that is no authority", by_middle("noca", "leafca", LEAF), False, "is not accepted: .*(CA|issuer|authority)|an authority that is not in"),
    ("issued by an authority that may not sign certificates", by_middle("nosign", "nosignca", CA, "keyUsage=critical,digitalSignature"), False, "is not accepted: |an authority that is not in"),
    ("issued by an intermediate authority", by_middle("middle", "middleca"), True, "CN=middle|rejected the association"),
    ("without the intermediate certificate", by_middle("alone", "middleca", send=False), False, "was issued by CN=middleca,O=tests, which is not trusted: it is not in"),
    ("below an authority of path length 0", path_length, False, "is not accepted: path length"),
    ("outside of its authority's name constraints", by_middle("outside", "constrained", CA, "nameConstraints=critical,permitted;DNS:other.example"), False, "is not accepted: permitted subtree"),
    ("with an unknown critical extension", leaf("critical", SAN, "1.2.3.4.5=critical,ASN1:UTF8String:x"), False, "is not accepted: unhandled critical extension"),
    ("below 103 intermediate authorities", deep, False, "is not accepted: certificate chain too long|excessive message size"),
]
DESTINATION = [  # name, certificate, the configured name, accepted, sentence
    ("for another host", leaf("elsewhere", "subjectAltName=DNS:archive.example"), "pacs.example", False, "is for archive.example, not for pacs.example, the configured name"),
    ("with the host only as common name", leaf("cn", subject="/O=tests/CN=pacs.example"), "pacs.example", False, r"contains no host name \(subjectAltName\), but must contain pacs.example"),
    ("with the host as common name and another alternative name", leaf("cnother", "subjectAltName=DNS:other.example", subject="/CN=pacs.example"), "pacs.example", False, "is for other.example, not for pacs.example"),
    ("with a wildcard for the first label", leaf("wild", "subjectAltName=DNS:*.hospital.example"), "pacs.hospital.example", True, "rejected the association"),
    ("with a wildcard for two labels", leaf("wild2", "subjectAltName=DNS:*.example"), "a.pacs.example", False, "not for a.pacs.example"),
    ("with a wildcard for everything", leaf("wild0", "subjectAltName=DNS:*"), "pacs.example", False, "not for pacs.example"),
    ("with a wildcard inside a label", leaf("wildin", "subjectAltName=DNS:p*.hospital.example"), "pacs.hospital.example", False, "not for pacs.hospital.example"),
    ("with a wildcard that is not the first label", leaf("wildlast", "subjectAltName=DNS:pacs.*.example"), "pacs.hospital.example", False, "not for pacs.hospital.example"),
    ("for a longer name", leaf("longer", "subjectAltName=DNS:pacs.example.org"), "pacs.example", False, "not for pacs.example"),
    ("for the name in capitals", leaf("capitals", "subjectAltName=DNS:PACS.Example"), "pacs.example", True, "rejected the association"),
    ("for the address", leaf("ip", "subjectAltName=IP:127.0.0.1"), "", True, "rejected the association"),
    ("for another address", leaf("ipother", "subjectAltName=IP:127.0.0.2"), "", False, "is for 127.0.0.2, not for the address 127.0.0.1"),
    ("for the address as a DNS name", leaf("ipdns", "subjectAltName=DNS:127.0.0.1"), "", False, "not for the address 127.0.0.1, .* as an IP address in subjectAltName"),
    ("for clients only", leaf("client", SAN, "extendedKeyUsage=clientAuth"), "", False, "may not be used by a TLS server"),
    ("without the usage of signatures", leaf("usage", SAN, "keyUsage=critical,cRLSign"), "", False, "may not be used by a TLS server"),
    ("of version 1, without extensions", lambda pki: pki.issue("v1"), "", False, "contains no host name"),
    ("without extensions, for any name", lambda pki: pki.issue("any"), None, True, "rejected the association"),
]
SENDER = [
    ("none", None, False, "it sent no certificate, and this port requires one"),
    ("for servers only", leaf("server", SAN, "extendedKeyUsage=serverAuth"), False, "may not be used by a TLS client"),
    ("without a name", leaf("nameless", subject="/O=tests"), True, "O=tests"),
    ("with a line feed in its name", leaf("feed", subject="/O=tests/CN=a\nfake-event x=1"), True, "association-accepted .*O=tests"),
]


# ---- the sides ----

def context(side, certificate):
    ctx = ssl.SSLContext(side)
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    ctx.set_ciphers("ALL:@SECLEVEL=0")
    if certificate:
        ctx.load_cert_chain(*certificate)
    return ctx


def sender(make, listener="secure"):
    """Connect to the TLS port with the certificate, and request an association."""
    def act(st):
        ctx = context(ssl.PROTOCOL_TLS_CLIENT, make and make(st.pki))
        s = st.connect(st.ports[listener])
        try:
            with ctx.wrap_socket(s) as tls:
                tls.sendall(peer.associate_request("TOMONODE", "MODALITY", {1: (VERIFICATION, IMPLICIT)}, 16384))
                kind, _ = peer.Wire(tls).read_pdu()
                tls.sendall(pdu(5, bytes(4)))
            return "accepted" if kind == 2 else f"PDU {kind}"
        except (peer.Gone, OSError):
            return "refused"
        finally:
            s.close()
    return act


def serve(listener, ctx):
    """One connection: TLS, then A-ASSOCIATE-RJ, so that a certificate that was accepted shows."""
    try:
        with listener, ctx.wrap_socket(listener.accept()[0], server_side=True) as tls:
            tls.settimeout(60)
            peer.Wire(tls).read_pdu()
            tls.sendall(pdu(3, bytes((0, 1, 1, 7))))
            tls.recv(1)
    except (OSError, peer.Gone):
        pass


def destination(make, name="", more=""):
    """`tomonode test-peer` with a destination that has the certificate; name: tls_name; None: any name is accepted."""
    def act(st):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(60)
        port = listener.getsockname()[1]
        threading.Thread(target=serve, args=(listener, context(ssl.PROTOCOL_TLS_SERVER, make(st.pki))), daemon=True).start()
        conf = os.path.join(st.folder, "peer.conf")
        keys = 'verify = "authority";' if name is None else f'tls_name = "{name}";' if name else ""
        with open(conf, "w", encoding="ascii") as f:
            f.write(f'destinations = ( {{ name = "pacs"; aet = "PACS"; host = "127.0.0.1"; port = {port}; tls = true; connect_timeout = 5; '
                    f'acse_timeout = 5; dimse_timeout = 5; authorities = "{st.pki.trusted}"; {keys} {more.format(**st.files)} }} );\nroutes = ();\n')
        p = h.run(h.TOMONODE, "test-peer", "-c", conf, "--json", "pacs", code=7)
        error = json.loads(p.stdout)["error"]
        st.quote(error)
        return "accepted" if "rejected the association" in error else "refused"
    return act


def own(certificate, key=None, command="check"):
    """`check` with a TLS port that uses these files; functions of the stage."""
    def act(st):
        conf = os.path.join(st.folder, "own.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f'node = {{ plain = false; spool = "{st.folder}/spool"; tls_authorities = "{st.pki.trusted}"; {h.as_whom()} }};\n'
                    f'listeners = ( {{ name = "secure"; port = 0; certificate = "{certificate(st)}"; key = "{(key or (lambda s: s.pki.key))(st)}"; }} );\n')
        p = h.run(h.TOMONODE, command, "-c", conf, code=None)
        for line in (p.stdout + p.stderr).splitlines():
            st.quote(line)
        check(p.returncode in (0, 3), f"code {p.returncode}")
        return "accepted" if p.returncode == 0 else "refused"
    return act


def file_of(name, content):
    def make(st):
        path = os.path.join(st.folder, name)
        write_file(path, content(st) if callable(content) else content)
        return path
    return make


def read(path, n=-1):
    with open(path, "rb") as f:
        return f.read(n)


def der(st):
    path = os.path.join(st.folder, "der")
    openssl("x509", "-in", st.pki.node, "-outform", "DER", "-out", path)
    return read(path)


OWN = [
    ("a file cut in half", file_of("half.pem", lambda st: read(st.pki.node, 300)), None, False, "holds no certificate in PEM form"),
    ("DER instead of PEM", file_of("der.pem", der), None, False, "holds no certificate in PEM form"),
    ("garbage", file_of("garbage.pem", b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n"), None, False, "holds no certificate in PEM form"),
    ("with a broken key", lambda st: st.pki.node, file_of("half.key", lambda st: read(st.pki.key, 200)), False, "holds no private key in PEM form"),
    ("expired", lambda st: EXPIRED(st.pki)[0], lambda st: st.pki.peer_key, False, "expired on 2021-01-01 00:00 UTC"),
    ("not yet valid", lambda st: FUTURE(st.pki)[0], lambda st: st.pki.peer_key, False, "2080-01-01"),
]


def cases_of(_rng):
    def word(good):
        return "accepted" if good else "refused"

    found = [Case(f"sender: {n}", sender(make), word(good), s.replace("|rejected the association", "")) for n, make, good, s in BOTH + SENDER]
    found += [Case(f"destination: {n}", destination(make), word(good), s) for n, make, good, s in BOTH]
    found += [Case(f"destination: {n}", destination(make, name), word(good), s) for n, make, name, good, s in DESTINATION]
    found += [Case(f"own: {n}", own(certificate, key), word(good), s) for n, certificate, key, good, s in OWN]

    def gone(pki):
        return os.path.join(pki.ca.folder, "gone.pem"), pki.peer_key

    def peers(pki):
        return pki.peer, pki.peer_key

    for side, with_list in (("sender", lambda make, crl: sender(make, crl)), ("destination", lambda make, crl: destination(make, more=f'crl = "{{{crl}}}";'))):
        found += [Case(f"{side}: revoked", with_list(gone, "late"), "refused", r"\(CN=gone,O=tests\) was revoked by its authority"),
                  Case(f"{side}: not on the list of revoked certificates", with_list(peers, "late"), "accepted", "CN=peer|rejected the association"),
                  Case(f"{side}: the list of revoked certificates has ended", with_list(peers, "old"), "refused", "ended on 2020-02-01 00:00 UTC; get the new list"),
                  Case(f"{side}: only another authority's list of revoked certificates", with_list(peers, "foreign"), "refused", "has no revocation list of CN=Clinic CA")]
    return found


class TlsStage(hostile.Stage):
    """A plain port for the bystander, and TLS ports: one, and one for each list of revoked certificates."""

    def __init__(self, folder, node, archive):
        super().__init__(folder, node, archive)
        self.pki = pki = Pki(os.path.join(folder, "pki"))
        pki.ca.revoke(pki.ca.sign(pki.peer_key, "gone"))
        self.files = {"late": pki.ca.crl("late"), "foreign": pki.foreign.crl("foreign"),
                      "old": pki.ca.crl("old", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z")}
        self.ports = {name: h.free_port() for name in ("secure", *self.files)}
        node.node.update(tls_certificate=f'"{pki.node}"', tls_key=f'"{pki.key}"', tls_authorities=f'"{pki.trusted}"')
        node.write_conf("listeners = ( " + ", ".join(
            f'{{ name = "{n}"; port = {port};' + (f' crl = "{self.files[n]}";' if n in self.files else "") + " }" for n, port in self.ports.items()) + " );\n")


def stage_of(folder):
    archive = peer.Archive()
    node = h.Node(os.path.join(folder, "node"), archive.port, acse_timeout=5, dimse_timeout=5, quiet_time=20)
    return TlsStage(folder, node, archive)
