# SPDX-License-Identifier: Apache-2.0
"""A DICOMweb server that does what a test says, for STOW-RS with one instance in a request."""
import hashlib
import http.server
import io
import json
import socket
import ssl
import threading

import pydicom

from tools.node_harness import free_port


class Lose(Exception):
    """Close the connection, after or without storing, as the test has done."""


def answer_json(stored=(), failed=(), warned=()):
    """The Store Instances Response Module: UIDs; failed and warned with their code."""
    def item(uid, **more):
        return {"00081150": {"vr": "UI", "Value": ["1.2.840.10008.5.1.4.1.1.2"]},
                "00081155": {"vr": "UI", "Value": [uid]}, **more}
    body = {"00081190": {"vr": "UR", "Value": ["https://pacs.example/studies/1"]}}
    references = [item(u) for u in stored] + [item(u, **{"00081196": {"vr": "US", "Value": [c]}}) for u, c in warned]
    if references:
        body["00081199"] = {"vr": "SQ", "Value": references}
    if failed:
        body["00081198"] = {"vr": "SQ", "Value": [item(u, **{"00081197": {"vr": "US", "Value": [c]}}) for u,
                                                  c in failed]}
    return json.dumps(body).encode()


def stored(uid):
    return 200, {}, answer_json(stored=[uid])


def failed(uid, code, status=409):
    return status, {}, answer_json(failed=[(uid, code)])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def setup(self):
        self.server.peer.sockets.add(self.request)
        self.request.settimeout(60)
        super().setup()

    def finish(self):
        self.server.peer.sockets.discard(self.request)
        try:
            super().finish()
        except OSError:
            pass

    def handle(self):
        try:
            if self.server.peer.tls:
                self.request.do_handshake()
            super().handle()
        except (OSError, Lose):
            self.close_connection = True

    def do_POST(self):
        peer = self.server.peer
        size = int(self.headers["Content-Length"])
        peer.on_body(self, size)
        body = self.rfile.read(size)
        if len(body) != size:
            raise Lose
        kind = self.headers["Content-Type"]
        boundary = kind.partition("boundary=")[2].encode()
        assert kind.startswith('multipart/related; type="application/dicom"; boundary='), kind
        head, end = b"--" + boundary + b"\r\nContent-Type: application/dicom\r\n\r\n", b"\r\n--" + boundary + b"--\r\n"
        assert body.startswith(head) and body.endswith(end) and self.path == peer.path + "/studies", (self.path,
                                                                                                      body[:100],
                                                                                                      body[-100:])
        data = body[len(head):-len(end)]
        uid = str(pydicom.dcmread(io.BytesIO(data), stop_before_pixels=True).SOPInstanceUID)
        with peer.lock:
            peer.order.append(uid)
            status, headers, text = peer.say(uid, data, self.headers)
            if text == answer_json(stored=[uid]):
                peer.keep(uid, data)
        self.send_response(status)
        self.close_connection = "Content-Length" in headers  # a wrong one
        for name, value in {"Content-Type": "application/dicom+json", "Content-Length": len(text), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        self.peer.errors.append(_)
        super().handle_error(*_)


class StowPeer:
    """say(uid, data, headers) returns (status, headers, body) or raises Lose; held: UID -> digest of what was stored;
    changed: UIDs that came again with other bytes; order: UIDs as they came."""
    path = "/dicom-web"

    def __init__(self, say=None, tls=None):
        self.port, self.tls = free_port(), tls
        self.say = say or (lambda uid, data, headers: stored(uid))
        self.on_body = lambda handler, size: None
        self.held, self.changed, self.order, self.errors = {}, [], [], []
        self.sockets, self.lock, self.server = set(), threading.Lock(), None

    def keep(self, uid, data):
        digest = hashlib.sha256(data).hexdigest()
        if self.held.setdefault(uid, digest) != digest:
            self.changed.append(uid)

    def url(self, host="127.0.0.1"):
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler, bind_and_activate=False)
        self.server.allow_reuse_address = True
        self.server.peer = self
        self.server.server_bind()
        self.server.server_activate()
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """As if it were killed: all its connections end."""
        if not self.server:
            return
        self.server.shutdown()
        self.server.server_close()
        self.server = None
        for s in list(self.sockets):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def tls_context(certificate, key, authorities=None):
    """authorities: clients must have a certificate of these."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if authorities:
        context.load_verify_locations(authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
