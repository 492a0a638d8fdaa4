# SPDX-License-Identifier: Apache-2.0
"""Persons of the status page: who may do what on every route, headers that are forged, and the examples for nginx and
for Apache with OpenID Connect (deploy/proxy), run as they are but for ports and paths."""
import base64
import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import time

import pytest

from tools import node_harness as h
from tools import openid_provider as openid
from tools.node_harness import check, run, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "openssl")
SOURCE = os.environ.get("TOMONODE_SOURCE", ".")
FORM = "application/x-www-form-urlencoded"
ROLES = {"STATUS_ROLE_ANYONE": 0, "STATUS_ROLE_LOOK": 1, "STATUS_ROLE_ACT": 2, "STATUS_ROLE_ADMINISTER": 3}
GROUPS = {1: "ward", 2: "radiographer", 3: "physicist"}


def routes():
    """(method, path, role) of every row of the program's table; a test of the program compares the table with its
    pages."""
    with open(os.path.join(SOURCE, "node", "status", "status_request.c"), encoding="utf-8") as f:
        rows = re.findall(r'^\t\{"(/[^"]*)", (true|false), STATUS_\w+, (STATUS_ROLE_\w+)\},$', f.read(), re.M)
    check(len(rows) >= 17, rows)
    return [("POST" if posts == "true" else "GET", path, ROLES[role]) for path, posts, role in rows]


def ask(n, path, method="GET", headers=(), body=None, source="127.0.0.1"):
    """Status, text, headers. headers: pairs, sent as they are, in this order."""
    c = http.client.HTTPConnection("127.0.0.1", n.status["port"], timeout=60, source_address=(source, 0))
    try:
        c.putrequest(method, path, skip_host="Host" in dict(headers))
        for name, value in headers:
            c.putheader(name, value)
        if body is not None:
            c.putheader("Content-Type", FORM)
            c.putheader("Content-Length", str(len(body)))
        c.endheaders(body.encode() if body is not None else None)
        answer = c.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace"), answer.headers
    finally:
        c.close()


def person(name, *groups):
    return [("X-Remote-User", name)] + ([("X-Remote-Groups", ",".join(groups))] if groups else [])


def token(text):
    found = re.search(r'name="token" value="([0-9a-f]{32})"', text)
    return found.group(1) if found else 32 * "0"


def node(folder, things, **settings):
    """With a held case and persons."""
    n, pacs = h.node_and_pacs(folder, things, audit='"file"', audit_file=f'"{folder}/audit"')
    n.status = {"port": h.free_port(), "trusted_header": '"X-Remote-User"', "trusted_from": '[ "127.0.0.1" ]',
                "may_look": '[ "ward" ]',
                "may_act": '[ "radiographer" ]', "may_administer": '[ "physicist" ]', "host": '"recon1.example.org"',
                **settings}
    n.write_conf()
    pacs.start()
    n.start()
    wait_for("the page answers", lambda: serves(n))
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 9)[:4])
    return n, n.wait_states("held")[0]["id"]


def serves(n):
    try:
        return ask(n, "/health")[0] in (200, 503)
    except OSError:
        return False


def test_roles(folder, things):
    """Every route with every role; what is shown, recorded and audited of a person."""
    began = time.monotonic()
    n, job = node(folder, things)
    for method, path, needs in routes():
        at = path.replace("{id}", str(job)).replace("{n}", "1")
        for role in range(4):
            headers = person("ann", GROUPS[role]) if role else []
            body = "token=" + 32 * "0" if method == "POST" else None
            status, text, answer = ask(n, at, method, headers, body)
            if role >= needs:  # a form is then refused for its token, a picture may be missing
                want = (403,) if method == "POST" else (200, 202, 404) if path.endswith((".png", "/report", "/look", "/{n}")) \
                    else (200,)
                check(status in want and "Your groups" not in text, f"{method} {path} as role {role}: {status} {text}")
                check(method == "GET" or "out of date" in text, text)
            else:
                check(status == (403 if role else 401), f"{method} {path} as role {role}: {status}")
                names = ", ".join(GROUPS[i] for i in range(needs, 4))
                check(f"It needs one of these: {names}." in text if role else "names no person" in text
                      and answer["WWW-Authenticate"], text)
            check(ask(n, at, method, headers, body, "127.0.0.2")[0] == 403, f"{method} {path} from another address")
    check(ask(n, "/nothing", headers=person("ann", "ward"))[0] == 404 and ask(n, "/", headers=person("ann"))[0] == 403,
          "no page, no group")
    check(n.states() == ["held"] and not n.events(job, "retry"), "something was written")

    # Buttons are there for those who may press them, and a person's form is not another one's.
    pages = {role: ask(n, f"/jobs/{job}", headers=person(f"<i>p{role}", "x", GROUPS[role]))[1] for role in (1, 2, 3)}
    check("<form" not in pages[1] and f"/jobs/{job}/as-is" in pages[2] and f"/jobs/{job}/cancel" in pages[2], pages[2])
    for role, word in ((1, "may look"), (2, "may act"), (3, "may administer")):
        check(f"<bdi>&lt;i&gt;p{role}</bdi> {word}" in pages[role], f"role {role} is not named")
    check(token(pages[2]) != token(pages[3]), "one token for two persons")
    form = f"token={token(pages[2])}"
    check(ask(n, f"/jobs/{job}/cancel", "POST", person("<i>p3", "physicist"), form)[0] == 403,
          "a form of another person")
    check(ask(n, f"/jobs/{job}/cancel", "POST", person("<i>p2", "ward"), form)[0] == 403, "who has lost the group")
    check(ask(n, f"/jobs/{job}/same-patient", "POST", person("<i>p3", "physicist"), f"token={token(pages[3])}&seen=0")[0]
          == 409, "nothing to state")
    check(ask(n, f"/jobs/{job}/cancel", "POST", person("<i>p2", "radiographer"), form)[0] == 303, "cancel")
    cancelled, = n.events(job, "cancel")
    check(cancelled == {"reason": "cancelled on the status page by <i>p2", "by": "<i>p2"}, cancelled)
    check(ask(n, f"/jobs/{job}/retry", "POST", person("<i>p2", "radiographer"), form)[0] == 303, "retry")
    check([d["by"] for d in n.events(job, "retry")] == ["<i>p2"], n.events(job, "retry"))
    shown = ask(n, f"/jobs/{job}", headers=person("eve", "ward"))[1]
    check("cancelled on the status page by &lt;i&gt;p2" in shown and "<i>" not in shown,
          "the person is not in the case's page")
    check("requested on the status page by <i>p2" in run(h.TOMONODE, "show", "-c", n.conf, job).stdout, "nor in `show`")

    def messages():
        with open(os.path.join(folder, "audit"), encoding="utf-8") as f:
            return [line for line in f if "Procedure Record" in line]
    wait_for("both are in the audit trail", lambda: len(messages()) == 2)
    for line in messages():
        check(re.search(r'<ActiveParticipant UserID="&lt;i&gt;p2"[^>]* UserIsRequestor="true"', line), line)
    log = n.log_text()
    check("status-request-refused" in log and "from 127.0.0.2" in log, "refusals are not in the log")
    minutes = 1 + (time.monotonic() - began) // 60
    check(log.count("status-request-refused") <= (30 + 1) * minutes, "more lines than the limit, which is of a minute")


def test_forged(folder, things):
    """Headers that somebody else has set, or set twice, or made unusual."""
    n, job = node(folder, things)
    good = person("ann", "physicist")
    check(ask(n, "/", headers=good)[0] == 200 and ask(n, "/", headers=good, source="127.0.0.2")[0] == 403,
          "who is trusted")
    for headers, want in (
            ([], 401),
            ([("X-Remote-Groups", "physicist")], 401),
            (person("", "physicist"), 403),
            (good + [("X-Remote-User", "ann")], 403),
            (good + [("x-REMOTE-user", "mallory")], 403),
            (good + [("X_Remote_User", "mallory")], 403),
            ([("X_Remote_User", "ann"), ("X-Remote-Groups", "physicist")], 403),
            (person("ann", "ward") + [("x-remote-groups", "physicist")], 403),
            (person("ann", "ward") + [("X-Remote_Groups", "physicist")], 403),
            (person("ann,mallory", "physicist"), 403),
            (person(65 * "a", "physicist"), 403),
            (person(64 * "a", "physicist"), 200),
            (person("ann", *(500 * ["other"]), "physicist"), 403),
            (person("ann", "Physicist", "physicist2"), 403),
            (person("ann\x07", "physicist"), 403),
            (person(b"\xff\xfe", "physicist"), 403),
            ([("x-rEMOTE-uSER", "ann"), ("X-REMOTE-GROUPS", "physicist")], 200),
            ([("X-Forwarded-User", "ann"), ("Remote-User", "ann"), ("Authorization", "Basic YW5uOg=="),
              ("X-Remote-Groups", "physicist")], 401),
            (good + [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1")], 200)):
        status = ask(n, "/", headers=headers)[0]
        check(status == want, f"{headers}: {status}, not {want}")
    for forwarded in ("X-Forwarded-For", "X-Real-IP", "Forwarded"):
        check(ask(n, "/", headers=good + [(forwarded, "127.0.0.1")], source="127.0.0.2")[0] == 403,
              f"{forwarded} is believed")
    check(not n.events(job, "cancel"), "something was written")


@pytest.mark.tier2("nginx")
def test_forged_through_nginx(folder, things):
    """The client's own headers count for nothing."""
    if not shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        h.skip("nginx is not installed")
    n, job = node(folder, things)
    port = nginx(folder, things, n.status["port"])

    def talk(request, user="eve"):
        """What comes back for these bytes, with a password."""
        password = base64.b64encode(f"{user}:{user}-secret".encode()).decode()
        trust = ssl.create_default_context(cafile=os.path.join(folder, "proxy.pem"))
        with trust.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=60),
                               server_hostname="recon1.example.org") as s:
            s.sendall(request.replace("HOST",
                                      f"Host: recon1.example.org:{port}\r\nConnection: close\r\nAuthorization: Basic "
                                      f"{password}").encode())
            answer = b""
            while part := s.recv(65536):
                answer += part
        return answer.decode("utf-8", "replace")

    page = talk("GET / HTTP/1.1\r\nHOST\r\n\r\n")
    check(code(page) == 200 and "<bdi>eve</bdi> may look" in page and "<form" not in page, page[:300])
    check("<bdi>ann</bdi> may administer" in talk("GET / HTTP/1.1\r\nHOST\r\n\r\n", "ann"), "ann")
    check(code(talk("GET / HTTP/1.1\r\nHOST\r\n\r\n", "mallory")) == 401
          and code(talk("GET /health HTTP/1.1\r\nHOST\r\n\r\n", "mallory")) == 401, "no account")
    check(code(talk("GET / HTTP/1.1\r\nHOST\r\n\r\n", "joe")) == 403, "an account without group")
    for header in ("X-Remote-User: ann\r\nX-Remote-Groups: physicist",
                   "x-remote-user: ann\r\nx-remote-groups: physicist",
                   "X_Remote_User: ann\r\nX_Remote_Groups: physicist", "X-Remote-User: ann\r\nX-Remote-User: ann",
                   "X-Remote-Groups: ward,\r\n physicist",
                   "X-Remote-User : ann", "X-Remote-User:\tann", "Connection: X-Remote-User, X-Remote-Groups",
                   "X-Remote-Groups:"):
        answer = talk(f"GET / HTTP/1.1\r\nHOST\r\n{header}\r\n\r\n")
        check(code(answer) == 400 or (code(answer) == 200 and "<bdi>eve</bdi> may look" in answer),
              f"{header!r}: {answer[:200]}")
    # A request hidden in the body of another one is not served: as two lengths, as chunks, behind a request.
    hidden = (f"GET /jobs/{job} HTTP/1.1\r\nHost: recon1.example.org\r\nX-Remote-User: ann\r\n"
              "X-Remote-Groups: physicist\r\n\r\n")
    for head, body in ((f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + hidden),
                       ("Transfer-Encoding: chunked", "0\r\n\r\n" + hidden),
                       (f"Transfer-Encoding: xchunked\r\nContent-Length: {len(hidden)}", hidden),
                       ("Transfer-Encoding : chunked\r\nContent-Length: 4", "0\r\n\r\n" + hidden),
                       (f"Content-Length: {len(hidden)}\r\nContent-Length: 0", hidden),
                       (f"Content-Length: {len(hidden)}", hidden),
                       ("Content-Length: 0", hidden)):
        answer = talk(f"POST /jobs/{job}/cancel HTTP/1.1\r\nHOST\r\nContent-Type: {FORM}\r\n{head}\r\n\r\n{body}")
        check("<bdi>ann" not in answer and answer.count("HTTP/1.1 ") <= 1 and code(answer) in (400, 403, 413, 501),
              f"{head!r}: {answer[:300]}")
    check(not n.events(job, "cancel"), "something was written")

    # A person's form, with the origin that a browser names.
    form = "token=" + token(talk(f"GET /jobs/{job} HTTP/1.1\r\nHOST\r\n\r\n", "bob"))
    answer = talk(f"POST /jobs/{job}/cancel HTTP/1.1\r\nHOST\r\nOrigin: https://recon1.example.org:{port}\r\n"
                  "Sec-Fetch-Site: same-origin\r\n"
                  f"Content-Type: {FORM}\r\nContent-Length: {len(form)}\r\n\r\n{form}", "bob")
    check(code(answer) == 303 and [d["by"] for d in n.events(job, "cancel")] == ["bob"], answer[:300])


def example(name, *changes):
    """The text of an example, its lines but for comments with other ports and paths."""
    site = h.read_file(os.path.join(SOURCE, "deploy", "proxy", name))
    for old, new in changes:
        check(old in site, f"deploy/proxy/{name} has no {old}")
        site = "".join(line if line.lstrip().startswith("#") else line.replace(old, new)
                       for line in site.splitlines(True))
    return site


def own_certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
        "-subj", "/CN=recon1.example.org",
        "-addext", "subjectAltName=DNS:recon1.example.org", "-keyout", f"{folder}/proxy.key", "-out",
        f"{folder}/proxy.pem")


def code(answer):
    return int(answer.split(" ", 2)[1]) if answer.startswith("HTTP/1.1 ") else 0


@pytest.mark.tier2("Apache and an OpenID Connect provider")
def test_openid_connect(folder, things):
    """People whom an OpenID Connect provider signs in, through Apache: roles by the groups of a claim; nothing that a
    client or a claim contains makes another person, or another group."""
    modules = "/usr/lib/apache2/modules"
    if not os.path.exists("/usr/sbin/apache2") or not os.path.exists(f"{modules}/mod_auth_openidc.so"):
        h.skip("Apache or mod_auth_openidc (Debian: apache2-bin, libapache2-mod-auth-openidc) is not installed")
    n, job = node(folder, things)
    provider = openid.Provider(folder)
    things.append(provider)
    port = apache(folder, things, modules, n.status["port"], provider)
    sign_in = lambda claims: (lambda b: (b, b.sign_in()))(openid.Browser(port, f"{folder}/proxy.pem",
                                                                         {"sub": "1", **claims}))

    nobody = openid.Browser(port, f"{folder}/proxy.pem")
    for path in ("/", "/health", "/metrics", f"/jobs/{job}", "//status.json", "/oidc-callback/../status.json",
                 "/oidc-callback/x"):
        nobody.cookies = {}
        check(code(nobody.get(path, "X-Remote-User: ann\r\nX-Remote-Groups: physicist\r\n")) == 302,
              f"{path} without a person")
    check(code(nobody.talk("GET /status.json HTTP/1.1\r\nHOST\r\nX-Requested-With: XMLHttpRequest\r\n\r\n")) == 401,
          "an update of the page")

    ann, page = sign_in({"preferred_username": "ann", "groups": ["other", "radiographer", "physicist"]})
    check("<bdi>ann</bdi> may administer" in page, page[-500:])
    eve, page = sign_in({"preferred_username": "eve", "groups": ["ward"]})
    check("<bdi>eve</bdi> may look" in page and "<form" not in page, page[-500:])
    for claims, want in (({"preferred_username": "bob", "groups": "radiographer"}, "<bdi>bob</bdi> may act"),
                         ({"preferred_username": "J\u00fcrgen M\u00fcller", "groups": ["ward"]},
                          "<bdi>J\u00fcrgen M\u00fcller</bdi> may look"),
                         ({"preferred_username": "joe"}, "Your groups do not allow this"),
                         ({"preferred_username": "joe", "groups": [{"name": "physicist"}, 7, None]},
                          "Your groups do not allow this"),
                         ({"preferred_username": "joe", "groups": ["ward\r\nX-Remote-User: ann"]},
                          "Your groups do not allow this"),
                         ({"preferred_username": "joe,ann", "groups": ["physicist"]}, "in a form that is not allowed"),
                         ({"preferred_username": 300 * "a", "groups": ["physicist"]}, "in a form that is not allowed"),
                         ({"groups": ["physicist"]}, "Remote user could not be set"),
                         # a claim that would end the header, and the request before the groups
                         ({"preferred_username": "mallory\r\nX-Remote-Groups: physicist\r\n\r\n", "groups": ["ward"]},
                          "</bdi> may look"),
                         ({"preferred_username": "mallory\nX-Remote-Groups: physicist\n\n", "groups": ["ward"]},
                          "</bdi> may look")):
        _, page = sign_in(claims)
        check(want in page, f"{claims}: {page[-500:]}")

    for header in ("X-Remote-User: ann\r\nX-Remote-Groups: physicist",
                   "x-remote-user: ann\r\nx-remote-groups: physicist",
                   "X_Remote_User: ann\r\nX_Remote_Groups: physicist", "X-Remote_Groups: physicist",
                   "X-Remote-User: ann\r\nX-Remote-User: ann",
                   "X-Remote-Groups: ward,\r\n physicist", "X-Remote-User : ann", "X-Remote-User:\tann",
                   "Connection: X-Remote-User, X-Remote-Groups",
                   "Connection: X-Remote-Groups", "X-Remote-Groups:", "OIDC_CLAIM_groups: physicist",
                   "OIDC-CLAIM-groups: physicist",
                   "X-Forwarded-User: ann\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: elsewhere.example.org",
                   "Authorization: Basic YW5uOg=="):
        answer = eve.get("/", header + "\r\n")
        check(code(answer) in (400, 401, 403) or "<bdi>eve</bdi> may look" in answer, f"{header!r}: {answer[:300]}")
    check("<bdi>eve</bdi> may look" in eve.talk(f"GET http://127.0.0.1:{n.status['port']}/ HTTP/1.1\r\nHOST\r\n\r\n"),
          "another server in the first line")
    thief = openid.Browser(port, f"{folder}/proxy.pem")
    thief.cookies = {name: value[:-1] + ("0" if value[-1] != "0" else "1") for name, value in eve.cookies.items()}
    check(code(thief.get("/")) == 302, "a session that was not given")

    form = f"token={token(ann.get(f'/jobs/{job}'))}"
    cancel = lambda browser, origin: code(browser.talk(f"POST /jobs/{job}/cancel HTTP/1.1\r\nHOST\r\nOrigin: "
                                                       f"https://{origin}\r\nContent-Type: {FORM}\r\n"
                                                       f"Content-Length: {len(form)}\r\n\r\n{form}"))
    own = f"recon1.example.org:{port}"
    check([cancel(ann, "elsewhere.example.org"), cancel(eve, own), cancel(ann, own)] == [403, 403, 303], "a form")
    check([d["by"] for d in n.events(job, "cancel")] == ["ann"], n.events(job, "cancel"))
    check(openid.SECRET not in h.read_file(f"{folder}/apache.log") + n.log_text(), "the secret is in a log")


def apache(folder, things, modules, upstream, provider):
    """The example on a port of its own, with a folder of its own."""
    port = h.free_port()
    own_certificate(folder)
    h.write_file(f"{folder}/secrets.conf", f"OIDCClientSecret {openid.SECRET}\nOIDCCryptoPassphrase of-the-sessions\n")
    os.chmod(folder, 0o755)
    site = example("apache-openidc.conf", ("*:443", f"127.0.0.1:{port}"),
                   ("http://127.0.0.1:11180/", f"http://127.0.0.1:{upstream}/"),
                   ("/etc/apache2/tomonode.pem", f"{folder}/proxy.pem"),
                   ("/etc/apache2/tomonode.key", f"{folder}/proxy.key"),
                   ("/etc/apache2/tomonode-secrets.conf", f"{folder}/secrets.conf"),
                   ("https://login.example.org/realms/hospital", provider.url),
                   ("https://recon1.example.org/", f"https://recon1.example.org:{port}/"))
    load = "".join(f"LoadModule {m}_module {modules}/mod_{m}.so\n" for m in (
        "mpm_event", "authn_core", "authz_core", "authz_user", "ssl", "headers", "proxy", "proxy_http", "auth_openidc"))
    with open(f"{folder}/apache.conf", "w", encoding="utf-8") as f:
        f.write(f"ServerRoot {folder}\nServerName recon1.example.org\nListen 127.0.0.1:{port}\nPidFile "
                f"{folder}/apache.pid\nErrorLog {folder}/apache.log\n"
                f"DefaultRuntimeDir {folder}\n" + ("User www-data\nGroup www-data\n" if os.geteuid() == 0 else "")
                + load + site)
    things.append(Server(["/usr/sbin/apache2", "-f", f"{folder}/apache.conf", "-DFOREGROUND"], port,
                         f"{folder}/apache.log"))
    return port


class Server:
    def __init__(self, command, port, log):
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

        def listens():
            check(self.process.poll() is None, f"{command[0]} ended: " + (open(log, encoding="utf-8").read()
                                                                          if os.path.exists(log) else ""))
            try:
                socket.create_connection(("127.0.0.1", port), timeout=60).close()
                return True
            except OSError:
                return False
        wait_for(f"{command[0]} listens", listens)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def nginx(folder, things, upstream):
    """The example on a port of its own, with a folder of its own, as this user."""
    port = h.free_port()
    own_certificate(folder)
    with open(f"{folder}/htpasswd", "w", encoding="ascii") as f:
        for name in ("ann", "bob", "eve", "joe"):
            f.write(f"{name}:{run('openssl', 'passwd', '-6', f'{name}-secret').stdout.strip()}\n")
    os.chmod(folder, 0o755)
    site = example("nginx.conf", ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
                   ("http://127.0.0.1:11180", f"http://127.0.0.1:{upstream}"),
                   ("/etc/nginx/tomonode.pem", f"{folder}/proxy.pem"),
                   ("/etc/nginx/tomonode.key", f"{folder}/proxy.key"),
                   ("/etc/nginx/tomonode.htpasswd", f"{folder}/htpasswd"))
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi",
                                                                        "scgi"))
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as f:
        f.write(f"daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\n"
                "events { }\n"
                f"http {{\naccess_log off;\n{paths}{site}}}\n")
    things.append(Server(["/usr/sbin/nginx" if os.path.exists("/usr/sbin/nginx") else "nginx", "-p", folder, "-c",
                          f"{folder}/nginx.conf",
                          "-e", f"{folder}/nginx.log"], port, f"{folder}/nginx.log"))
    return port
