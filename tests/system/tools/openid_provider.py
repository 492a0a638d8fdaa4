# SPDX-License-Identifier: Apache-2.0
"""An OpenID Connect provider (authorization code, RS256 signed by openssl) that signs in whoever says who they are, and
a browser that follows the redirects."""
import base64
import http.client
import http.server
import json
import os
import re
import secrets
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from tools.node_harness import run

SECRET = "of-the-client"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    def __init__(self, folder):
        self.key = os.path.join(folder, "provider.key")
        run("openssl", "genrsa", "-out", self.key, 2048)
        modulus = bytes.fromhex(run("openssl", "rsa", "-in", self.key, "-noout",
                                    "-modulus").stdout.strip().split("=")[1])
        self.jwk = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": base64url(modulus), "e": "AQAB"}
        self.codes = {}  # what was given out: claims, client, nonce
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, said, status=200, location=""):
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if location:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                asked = dict(urllib.parse.parse_qsl(url.query))
                if url.path == "/.well-known/openid-configuration":
                    self.answer({"issuer": provider.url, **{f"{name}_endpoint": f"{provider.url}/{name}"
                                                            for name in ("authorization", "token")},
                                 "jwks_uri": provider.url + "/keys", "response_types_supported": ["code"],
                                 "subject_types_supported": ["public"],
                                 "id_token_signing_alg_values_supported": ["RS256"],
                                 "token_endpoint_auth_methods_supported": ["client_secret_basic"]})
                elif url.path == "/keys":
                    self.answer({"keys": [provider.jwk]})
                elif url.path == "/authorization":
                    code = secrets.token_hex(8)
                    provider.codes[code] = json.loads(self.headers["X-Claims"]), asked["client_id"], asked["nonce"]
                    self.answer({}, 302, asked["redirect_uri"] + "?"
                                + urllib.parse.urlencode({"code": code, "state": asked["state"]}))
                else:
                    self.answer({}, 404)

            def do_POST(self):
                asked = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                password = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode().split(":")[1]
                if password != SECRET or asked["code"] not in provider.codes:
                    self.answer({"error": "invalid_client"}, 401)
                    return
                claims, client, nonce = provider.codes.pop(asked["code"])
                self.answer({"access_token": "none", "token_type": "Bearer", "id_token": provider.token(
                    {"iss": provider.url, "aud": client, "nonce": nonce, "iat": int(time.time()),
                     "exp": int(time.time()) + 600, **claims})})

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def token(self, claims):
        text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "1"}, claims))
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(),
                                capture_output=True, check=True).stdout
        return f"{text}.{base64url(signed)}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Browser:
    """Of a person with these claims; None: nobody who could sign in."""

    def __init__(self, port, authority, claims=None):
        self.port, self.claims, self.cookies = port, claims, {}
        self.trust = ssl.create_default_context(cafile=authority)

    def talk(self, request):
        """What comes back for these bytes, in which HOST stands for the usual headers."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        usual = f"Host: recon1.example.org:{self.port}\r\nConnection: close" + (f"\r\nCookie: {cookies}" if cookies
                                                                                else "")
        with self.trust.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=60),
                                    server_hostname="recon1.example.org") as s:
            s.sendall(request.replace("HOST", usual).encode())
            answer = b""
            while part := s.recv(65536):
                answer += part
        text = answer.decode("utf-8", "replace")
        for name, value in re.findall(r"(?mi)^Set-Cookie: ([^=]+)=([^;\r]*)", text.split("\r\n\r\n")[0]):
            self.cookies[name] = value
        self.cookies = {name: value for name, value in self.cookies.items() if value}
        return text

    def get(self, path, header=""):
        return self.talk(f"GET {path} HTTP/1.1\r\nHOST\r\nAccept: text/html\r\n{header}\r\n")

    def sign_in(self):
        """The overview, after the redirects to the provider and back."""
        there = location(self.get("/"))
        c = http.client.HTTPConnection(there.netloc, timeout=60)
        c.request("GET", f"{there.path}?{there.query}", headers={"X-Claims": json.dumps(self.claims)})
        back = urllib.parse.urlsplit(c.getresponse().getheader("Location"))
        c.close()
        answer = self.get(f"{back.path}?{back.query}")
        return self.get("/") if location(answer).path == "/" else answer


def location(answer):
    found = re.search(r"(?mi)^Location: (.*?)\r$", answer.split("\r\n\r\n")[0] + "\r")
    return urllib.parse.urlsplit(found.group(1) if found else "")
