# SPDX-License-Identifier: Apache-2.0
"""Certificates for the tests, made by the openssl command: two authorities, and keys and certificates with all that can
be wrong."""
import functools
import os
import re

from tools.node_harness import run, write_file

CA_CONF = """
[ca]
default_ca = own
[own]
dir = {folder}
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
x509_extensions = device
default_crl_days = 30
[any]
organizationName = optional
commonName = supplied
[device]
basicConstraints = CA:FALSE
"""


class Authority:
    """One that signs; `folder` holds its files and what it signs."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        os.makedirs(folder)
        for file, text in (("index", ""), ("serial", "01\n"), ("ca.conf", CA_CONF.format(folder=folder))):
            write_file(os.path.join(folder, file), text)
        self.certificate = os.path.join(folder, "ca.pem")
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/O=tests/CN={name}",
            "-keyout",
            os.path.join(folder, "ca.key"), "-out", self.certificate)

    def sign(self, key, name, alternative="DNS:localhost,IP:127.0.0.1", start=None, end=None, days=60):
        """A certificate for the key, as a file; alternative None: without alternative names; times as
        20200101000000Z."""
        request, out = os.path.join(self.folder, f"{name}.csr"), os.path.join(self.folder, f"{name}.pem")
        names = ["-addext", f"subjectAltName={alternative}"] if alternative else []
        run("openssl", "req", "-new", "-key", key, "-subj", f"/O=tests/CN={name}", *names, "-out", request)
        times = ["-startdate", start, "-enddate", end] if start else ["-days", str(days)]
        run("openssl", "ca", "-batch", "-notext", "-config", os.path.join(self.folder, "ca.conf"), "-in", request,
            "-out", out, *times)
        return out

    def revoke(self, certificate):
        run("openssl", "ca", "-config", os.path.join(self.folder, "ca.conf"), "-revoke", certificate)

    def crl(self, name, *times):
        """The list of what it has revoked so far, as a file; times as -crl_lastupdate 20200101000000Z."""
        out = os.path.join(self.folder, f"{name}.crl")
        run("openssl", "ca", "-config", os.path.join(self.folder, "ca.conf"), "-gencrl", "-out", out, *times)
        return out


def make_key(path, kind=("RSA", "-pkeyopt", "rsa_keygen_bits:2048")):
    run("openssl", "genpkey", "-algorithm", *kind, "-out", path)
    return path


def fingerprint(certificate):
    """SHA-256, as openssl prints it: with colons."""
    text = run("openssl", "x509", "-in", certificate, "-noout", "-fingerprint", "-sha256").stdout
    return re.search(r"=([0-9A-F:]{95})", text).group(1)


class Pki:
    """Ours and others' certificates. One key serves for most of them: making keys takes time."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        self.ca = Authority(os.path.join(folder, "ours"), "Clinic CA")
        self.foreign = Authority(os.path.join(folder, "foreign"), "Foreign CA")
        self.key = make_key(os.path.join(folder, "a.key"))
        self.peer_key = make_key(os.path.join(folder, "b.key"))
        self.node = self.ca.sign(self.key, "node")
        self.peer = self.ca.sign(self.peer_key, "peer")
        self.trusted = self.ca.certificate

    @functools.lru_cache(None)
    def expired(self):
        return self.ca.sign(self.peer_key, "expired", start="20200101000000Z", end="20210101000000Z")

    @functools.lru_cache(None)
    def elsewhere(self):
        return self.ca.sign(self.peer_key, "elsewhere", alternative="DNS:pacs.example,DNS:archive.example")

    @functools.lru_cache(None)
    def unknown(self):
        return self.foreign.sign(self.peer_key, "stranger")
