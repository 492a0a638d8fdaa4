# SPDX-License-Identifier: Apache-2.0
"""The status page of a node: what it shows, and its buttons."""
import json
import re
import urllib.error
import urllib.parse
import urllib.request

from tools import node_harness as h
from tools.node_harness import wait_for


def serve(n):
    """Give a node that is not started a page."""
    n.status = {"port": h.free_port()}
    n.write_conf()


def page(n, path):
    """Its text; "": it does not answer yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{n.status['port']}{path}", timeout=60) as r:
            return r.read().decode()
    except urllib.error.URLError:
        return ""


def cases(n):
    """What the page says of each case, as JSON: {number: case}."""
    return {c["id"]: c for c in json.loads(wait_for("the page", lambda: page(n, "/status.json")))["cases"]}


def press(n, path, words, action, **fields):
    """Wait for the button with these words on a page, and send its form."""
    text = wait_for(f"the button {words}", lambda: (lambda t: t if words in t else "")(page(n, path)))
    token = re.search(r'name="token" value="([0-9a-f]{32})"', text).group(1)
    form = urllib.parse.urlencode({"token": token, **fields}).encode()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{n.status['port']}{path}/{action}", form),
                           timeout=60).close()
