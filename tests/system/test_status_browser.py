# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser without a screen (Chromium, driven over its DevTools socket): it renders, updates
itself, can be used with the keyboard alone, is readable on a narrow screen, in light and in dark.

With SCREENSHOTS=FOLDER in the environment it leaves pictures there (docs/images)."""
import base64
import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.request

import pytest

from tools import node_harness as h
from tools.journal_tools import copy_case
from tools.node_harness import check, wait_for

CHROMIUM = next((c for c in ("chromium", "chromium-browser", "google-chrome") if shutil.which(c)), None)
pytestmark = pytest.mark.tier2("browser")


@pytest.fixture(scope="module", autouse=True)
def programs():
    h.need(CHROMIUM or "chromium", h.TOMONODE, "storescu", "storescp", "echoscu")


# Contrast of each text with what lies behind it (WCAG 2.1, 1.4.3), and what is cut off at the side.
AUDIT = """(() => {
  const linear = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const lum = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const parse = s => { const m = s.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const back = e => {
    for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; }
    return [255, 255, 255, 1];
  };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    const text = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!text || !e.getClientRects().length || e.closest(".hidden, .skip")) continue;
    const a = lum(parse(getComputedStyle(e).color)), b = lum(back(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(e.className + " " + e.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
  }
  return {bad, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth};
})()"""

# The next fetch waits for held.release(); held.timers are those that have not fired, held.cleared counts calls of
# clearTimeout: the last step of an update is one.
HELD = """(() => {
  const set = window.setTimeout, clear = window.clearTimeout, get = window.fetch;
  window.held = {release: null, timers: new Set(), cleared: 0};
  window.setTimeout = (f, ms) => {
    const id = set(() => { held.timers.delete(id); f(); }, ms);
    held.timers.add(id);
    return id;
  };
  window.clearTimeout = id => { held.cleared++; held.timers.delete(id); clear(id); };
  window.fetch = (...a) => new Promise(done => { held.release = () => done(get(...a)); });
})()"""


class Browser:
    """A tab, and the few frames of RFC 6455 that it takes to talk to it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tomonode-browser-")
        self.process = subprocess.Popen([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
                                         "--hide-scrollbars", "--no-first-run",
                                         "--disable-dev-shm-usage", "--disable-background-networking",
                                         "--disable-component-update",
                                         f"--user-data-dir={self.folder}", "--remote-debugging-port=0", "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.socket, self.number, self.events = None, 0, []
        port_file = os.path.join(self.folder, "DevToolsActivePort")
        port = int(wait_for("the browser", lambda: os.path.exists(port_file) and open(port_file).read(), 60).split()[0])

        def tab():
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list",
                                                                      timeout=60) as answer:
                return next((t for t in json.load(answer) if t["type"] == "page"), None)
            return None
        path = wait_for("a tab", tab)["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: "
                            "Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        check(b"101" in self.file.readline(), "no websocket")
        while self.file.readline() != b"\r\n":
            pass
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        text = b""
        while True:
            head = self.file.read(2)
            size = head[1] & 127
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self.file.read(2 if size == 126 else 8))[0]
            text += self.file.read(size)
            if head[0] & 0x80:
                return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        data = json.dumps({"id": self.number, "method": method, "params": params}).encode()
        size = (bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(data))
                if len(data) < 1 << 16 else bytes([0x80 | 127]) + struct.pack(">Q", len(data)))
        self.socket.sendall(b"\x81" + size + b"\0\0\0\0" + data)  # masked with zeros
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                check("error" not in answer, f"{method}: {answer.get('error')}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        try:
            result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        except AssertionError as e:
            if "context" in str(e) or "navigated" in str(e):
                return None  # the page is being replaced
            raise
        check("exceptionDetails" not in result, result)
        return result["result"].get("value")

    def show(self, url, width=1280, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark
                                                           else "light"}])
        self.call("Page.navigate", url=url)
        wait_for(f"{url} in the browser", lambda: self.value("document.readyState") == "complete"
                 and self.value("location.href") == url, 30)

    def key(self, key, **more):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40, "0": 48, "i": 73, "+": 187}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text,
                      **more)

    def text(self):
        return self.value("document.body ? document.body.innerText : ''") or ""  # there is none while a page is loading

    def picture(self, name, whole=False):
        folder = os.environ.get("SCREENSHOTS")
        if folder:
            clip = {}
            size = self.value("[document.documentElement.clientWidth, document.body.scrollHeight]")
            if whole:
                clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size[0], "height": size[1],
                                                                "scale": 1}}
            data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
            h.write_file(os.path.join(folder, f"status-{name}.png"), base64.b64decode(data))

    def complaints(self):
        """What the browser wrote into its console: errors, refusals of the Content-Security-Policy."""
        return [e for e in self.events if e.get("method") == "Runtime.exceptionThrown" or
                (e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error")]

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.socket:
            self.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def good(b, what):
    audit = b.value(AUDIT)
    check(audit["wide"] <= 0, f"{what}: {audit['wide']} pixels are cut off at the side")
    check(not audit["bad"], f"{what}: too little contrast: {audit['bad']}")
    check(not b.complaints(), f"{what}: {b.complaints()[:3]}")


def every_way(b, url, what):
    b.show(url, 320, 700)
    good(b, f"{what}, 320 pixels")
    b.show(url, 1280, 900, dark=True)
    good(b, f"{what}, dark")
    b.show(url, 1280, 900)
    good(b, what)


def exam(folder, *options, **size):
    """An exam whose result is seen: for the pictures of the documents a breast of tissue, which takes longer."""
    if os.environ.get("SCREENSHOTS"):
        options, size = ("--phantom", "breast", "--detector", "1200x2000", "--i0", 3000, *options), {}
    return h.simulate(folder, *options, **size)


def test_in_the_browser(folder, things):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    n.status = {"port": h.free_port()}
    n.node["retention_days"] = 30
    n.write_conf()
    things += [n, pacs]
    pacs.start()
    n.start()
    url = f"http://127.0.0.1:{n.status['port']}/"
    b = Browser()
    things.append(b)
    wait_for("the page", lambda: "status-page" in n.log_text() and n.processes("http"))

    every_way(b, url, "idle")
    check("Senders" not in b.text(), "a sender before the first object")
    wait_for("the device is ready", lambda: "Ready" in b.text(), 30)
    check("Everything is in order" in b.text() and "No case is in work" in b.text(), b.text())
    b.picture("idle")

    # It shows what happens without being loaded again.
    b.value("window.mark = 1")
    files = exam(os.path.join(folder, "exam"))
    h.send(n.port, files)
    wait_for("the case is shown", lambda: "Delivered" in b.text(), 60)
    check(b.value("window.mark") == 1, "the page was loaded again")
    check("MODALITY 127.0.0.1" in b.text() and "Last object 20" in b.text(), b.text())
    wait_for("the picture is shown",
             lambda: b.value("(i => i && i.complete && i.naturalWidth > 50)(document.querySelector('img.picture'))"))

    # The slices: moved with the keyboard; an update leaves them where they are. The UID is selected where it is copied.
    b.show(f"{url}jobs/1")
    wait_for("the slices are shown",
             lambda: b.value("(s => s && !s.disabled && document.querySelector('#strip img').naturalWidth > "
                             "400)(document.getElementById('slice'))"))
    seen = "Math.round(document.getElementById('strip').scrollLeft / document.getElementById('strip').clientWidth) + 1"
    first, last = b.value(seen), b.value("+document.getElementById('slice').max")
    total = b.value("+document.getElementById('slice').dataset.total")
    check(1 < first < last == b.value("(i => i.naturalWidth / i.naturalHeight)(document.querySelector('#strip img'))"),
          f"{first} of {last}")
    b.value("document.getElementById('slice').focus()")
    b.key("ArrowRight")
    wait_for("the next slice", lambda: b.value(seen) == first + 1
             and f"slice {(2 * first + 1) * total // (2 * last) + 1} of {total}, " in b.text()
             and " mm from the first" in b.text())
    clock = b.value("document.getElementById('clock').textContent")
    wait_for("an update", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))
    check(b.value(seen) == first + 1 and b.value("document.activeElement.id") == "slice", "an update moved it")
    b.value("document.getElementById('b-copy').click()")
    check(b.value("getSelection().toString()") == n.show(1)["job"]["study"], "another text is copied")
    # On paper it is the slice of the slider, and no table is divided that fits a page.
    b.call("Emulation.setEmulatedMedia", media="print")
    at = 100 * first / (last - 1)
    b.call("Page.captureScreenshot", format="png")  # it is laid out
    style = b.value("(i => [getComputedStyle(i).objectFit, getComputedStyle(i).objectPosition])(document.querySelector('#strip img'))")
    check(style[0] == "cover" and abs(float(style[1].split("%")[0]) - at) < 0.1, f"{style}, not {at} %")
    check(b.value("+document.getElementById('slice').value") == first + 1, "it is another slice")
    check(b.value("[...document.querySelectorAll('table')].every(t => getComputedStyle(t).breakInside == 'avoid')"), "a table is divided")
    # Nothing empty is printed, and not the same picture twice.
    check(b.value("[...document.querySelectorAll('.folded, .case.single .picture')].every(e => !e.checkVisibility())"), "an empty frame")
    pages = base64.b64decode(b.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    check(len(re.findall(rb"/Type\s*/Page\b", pages)) == 1, "more than a page")
    b.call("Emulation.setEmulatedMedia", media="")
    every_way(b, f"{url}jobs/1", "a case with slices")
    # The report runs its script although it may not act on the page.
    report = f"{url}jobs/{n.jobs()[0]['id']}/report"
    b.call("Page.navigate", url=report)
    wait_for("the report", lambda: b.value("document.readyState") == "complete"
             and b.value("!!document.querySelector('.slider input')"), 60)
    check(b.value("[...document.querySelectorAll('#slices figure')].filter(f => f.checkVisibility()).length") == 1,
          "one slice is shown")
    check(b.value("[...document.images].filter(i => i.checkVisibility()).every(i => i.complete && i.naturalWidth > 0)"),
          "pictures of the report")
    check(b.value("self.origin") == "null" and not b.complaints(), f"{b.value('self.origin')} {b.complaints()[:3]}")
    b.show(url)

    # The keyboard alone: a held case is opened, and given up.
    other = h.simulate(os.path.join(folder, "other"), "--side", "R", "--view", "MLO")
    h.send(n.port, other[:12])
    wait_for("the held case", lambda: "Only 12 of 25 images were received." in b.text(), 30)
    job = [j["id"] for j in n.jobs() if j["state"] == "held"][0]
    b.value("document.activeElement.blur()")
    walked = []
    for _ in range(30):
        b.key("Tab")
        e = b.value("(e => [e.id, e.textContent.trim(), getComputedStyle(e).outlineStyle])(document.activeElement)")
        check(e[2] != "none" or e[1] == "", f"no mark where the keyboard stands: {e}")
        walked.append(e[0] or e[1])
        if e[0] == f"c-{job}":
            break
    check(walked[0] == "Skip to the cases" and "pause" in walked and f"a-{job}" in walked
          and f"b-{job}-as-is" in walked, walked)
    check(walked[-1] == f"c-{job}", walked)
    b.key("Enter")
    check(b.value(f"document.getElementById('d-{job}').open"), "Enter does not open it")
    clock = b.value("document.getElementById('clock').textContent")
    wait_for("an update", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))
    check(b.value(f"document.getElementById('d-{job}').open && document.activeElement.id") == f"c-{job}",
          "an update closed it")
    b.key("Tab")
    check(b.value("document.activeElement.id") == f"b-{job}-cancel", "the button does not follow")
    b.key("Enter")
    wait_for("it is given up", lambda: "Resume the case" in b.text() and b.value("location.href") == url, 30)
    check(sorted(n.states()) == ["cancelled", "delivered"], n.states())
    b.show(f"{url}jobs/{job}")
    check("ancelled on the status page" in b.text(), b.text())
    b.show(url)

    # Updates stop where somebody wants to read, also one that has begun; and go on.
    b.value(HELD)
    wait_for("an update begins", lambda: b.value("!!held.release"))
    clock = b.value("document.getElementById('clock').textContent")
    b.value("document.getElementById('pause').click()")
    b.value("held.cleared = 0; held.release()")
    wait_for("the update ends", lambda: b.value("held.cleared"))
    check(b.value("document.getElementById('clock').textContent") == clock, "it went on")
    check(b.value("held.timers.size") == 0, "another update is due")
    b.value("held.release = null; document.getElementById('pause').click()")
    wait_for("an update begins", lambda: b.value("!!held.release"))
    b.value("held.release()")
    wait_for("it goes on", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))

    # One that fails for good: it does not fit the memory.
    h.send(n.port, other[:1])  # what arrives for a cancelled case is kept with it
    n.protocol["memory_limit"] = 100000
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    wait_for("the other configuration", lambda: n.log_text().count("config-reloaded") == 1)
    h.send(n.port, h.simulate(os.path.join(folder, "third"), "--view", "MLO"))
    wait_for("it has failed", lambda: "failed" in n.states(), 60)
    wait_for("the page is back", lambda: len(n.processes("http")) == 1)
    every_way(b, url, "failed")
    check(b.value("document.getElementById('overall').className") == "overall bad" and "1 case has failed" in b.text(),
          "the bar is not red")
    check("Failed" in b.text() and "the limit is" in b.text() and "Try again" in b.text(), b.text())
    b.picture("failed")
    every_way(b, f"{url}jobs/{[j['id'] for j in n.jobs() if j['state'] == 'failed'][0]}", "a failed case")
    b.show(f"{url}jobs/1")
    good(b, "a case")
    b.picture("case", True)

    # The PACS is down.
    # leave the page: the restart cuts its update, and the browser logs that as an error
    b.call("Page.navigate", url="about:blank")
    pacs.stop()
    n.protocol["memory_limit"] = 0
    n.write_conf()
    os.kill(n.process.pid, signal.SIGHUP)
    wait_for("the first configuration", lambda: n.log_text().count("config-reloaded") == 2)
    large = exam(os.path.join(folder, "large"), "--side", "R", "--study", "2.25.1", binning=4)
    h.send(n.port, large)
    wait_for("it runs", lambda: "running" in n.states() or "reconstructed" in n.states(), 60)
    wait_for("the PACS is missed", lambda: any(d["failures"] for j in n.jobs() for d in j["destinations"]), 120)
    every_way(b, url, "PACS down")
    check("Not reached" in b.text() and "Connection refused" in b.text() and "Try now" in b.text(), b.text())
    b.picture("pacs-down")
    b.show(url, 390, 800)
    b.picture("narrow", True)
    b.show(url, 1280, 900, dark=True)
    b.picture("dark")


AXE = """axe.run({resultTypes: ["violations"]}).then(r => r.violations
  .filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html)))"""


def two_results(folder, things):
    """A node with two results of one patient, and one that waits; a browser; the address of the page."""
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    n.status = {"port": h.free_port(), "show_patient": "true"}
    n.write_conf()
    things += [n, pacs]
    pacs.start()
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam")))
    h.send(n.port, exam(os.path.join(folder, "other"), "--view", "MLO"))
    jobs = [j["id"] for j in n.wait_states("delivered", "delivered")]
    h.send(n.port, h.simulate(os.path.join(folder, "held"), "--side", "R")[:12])
    n.wait_states("delivered", "delivered", "held")
    b = Browser()
    things.append(b)
    return n, b, f"http://127.0.0.1:{n.status['port']}/", jobs


def test_slices_in_the_browser(folder, things):
    """All slices of two results side by side: with the keyboard alone, the wheel and the mouse; linked and not."""
    n, b, url, jobs = two_results(folder, things)
    if os.environ.get("SCREENSHOTS"):  # the first picture of the documents: one in work, one that waits, two that are done
        h.send(n.port, h.simulate(os.path.join(folder, "large"), "--study", "2.25.1", binning=2))
        b.show(url)
        wait_for("progress", lambda: b.value("(p => p && p.max == 100 && p.value > 30)"
                                             "(document.querySelector('#work progress'))"), 60, 0.2)
        b.picture("working", True)
        n.wait_states("delivered", "delivered", "held", "delivered", seconds=120)
    at = f"{url}jobs/{jobs[0]}/look/{jobs[1]}"
    seen = "[...document.querySelectorAll('.pane')].map(p => +p.dataset.seen)"
    window = "[...document.querySelectorAll('.levels input')].map(e => +e.value)"
    b.show(at)
    wait_for("two slices", lambda: all(b.value(seen) or [0]) and all(b.value(window)))
    total = b.value("+document.querySelector('.pane [type=range]').max")
    check(total > 4 and b.value(seen) == 2 * [total // 2 + 1], f"{b.value(seen)} of {total}")
    check(b.value("document.documentElement.scrollHeight <= innerHeight"), "it is higher than the window")
    b.value("document.activeElement.blur()")
    b.key("ArrowDown")  # before anything is pressed
    wait_for("the next slice", lambda: b.value(seen) == 2 * [total // 2 + 2])
    walked = []
    while "look-0" not in walked:
        check(len(walked) < 30, walked)
        b.key("Tab")
        walked.append(b.value("document.activeElement.id"))
    check({"look-in", "look-out", "look-pan", "look-invert", "look-reset", "look-link-slice"} <= set(walked), walked)

    def press(key, want, **more):
        b.key(key, **more)
        wait_for(f"{key}: {want}", lambda: b.value(seen) == want)
    press("Home", [1, 1])
    press("ArrowDown", [2, 2])
    press("ArrowRight", [3, 3])
    press("ArrowUp", [2, 2])
    press("PageDown", 2 * [min(12, total)])
    press("End", [total, total])
    name = b.value("document.getElementById('look-0').ariaLabel")
    check(f"slice {total} of {total}, " in name and name.endswith(" mm from the first"), name)
    clock = b.value("document.getElementById('clock').textContent")
    wait_for("an update", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))
    check(b.value(seen) == [total, total] and b.value("document.activeElement.id") == "look-0", "an update moved it")

    # The window: inverted by a key, dragged by the mouse, typed; the picture changes with it.
    middle = ("(() => { const c = document.getElementById('look-0'); "
              "return c.getContext('2d').getImageData(c.width / 2 - 40, c.height / 2, 1, 1).data[0]; })()")
    before, grey = b.value(window), b.value(middle)
    check(before[:2] == before[2:] and before[0] < before[1], before)
    b.key("i")
    check(b.value(window) == [before[1], before[0]] * 2 and abs(b.value(middle) - (255 - grey)) <= 1, b.value(window))
    check(b.value("document.getElementById('look-invert').ariaPressed") == "true", "not said")
    b.key("0")
    check(b.value(window) == before, b.value(window))
    x, y = b.value("(r => [r.x + r.width / 2, r.y + r.height / 2])"
                   "(document.getElementById('look-0').getBoundingClientRect())")
    for kind, dx, dy in (("mousePressed", 0, 0), ("mouseMoved", 50, 0), ("mouseMoved", 100, 30), ("mouseReleased", 100, 30)):
        b.call("Input.dispatchMouseEvent", type=kind, x=x + dx, y=y + dy, button="left", buttons=1, clickCount=1)
    dragged = b.value(window)
    check(dragged[1] - dragged[0] > 1.5 * (before[1] - before[0]) and dragged[:2] == dragged[2:], dragged)
    b.value("document.getElementById('look-link-window').click()")
    b.value("(e => { e.value = 0; e.dispatchEvent(new Event('change')); })(document.querySelector('.black'))")
    check(b.value(window) == [0, dragged[1], *dragged[2:]], b.value(window))
    b.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-100)
    wait_for("the wheel", lambda: b.value(seen) == [total - 1, total - 1])
    b.value("document.getElementById('look-link-slice').click()")
    b.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-100)
    wait_for("one side", lambda: b.value(seen) == [total - 2, total - 1])
    b.value("document.getElementById('look-0').focus()")
    picture = "document.getElementById('look-0').toDataURL()"
    b.value("document.getElementById('look-reset').click()")
    pictures, own = [b.value(picture)], b.value(window)
    check(own[:2] == before[:2], own)
    for key, more in (("+", {}), ("ArrowRight", {"modifiers": 8})):
        b.key(key, **more)
        pictures.append(b.value(picture))
    check(len(set(pictures)) == 3 and b.value(seen) == [total - 2, total - 1], "zoom and move")
    b.key("0")
    check(b.value(picture) == pictures[0] and b.value(window) == own, "reset")

    # Slices of the other side are three times as far apart, and a slice of the first one cannot be made, for a while.
    odd = b.call("Page.addScriptToEvaluateOnNewDocument", source=f"""
        const get = fetch, text = {{ status: 503, headers: {{ "Content-Type": "text/plain" }} }};
        window.broken = true;
        window.asked = 0;
        fetch = (url, how) => url === "/jobs/{jobs[0]}/slices/2" && ++asked && broken
            ? Promise.resolve(new Response("broken", text)) : get(url, how);
        document.addEventListener("readystatechange", () => {{
            const panes = document.querySelectorAll(".pane");
            panes[1].dataset.step = 3 * panes[0].dataset.step;
        }}, {{ once: true }});""")["identifier"]
    b.show(at)
    wait_for("two slices", lambda: all(b.value(seen) or [0]))
    b.value("document.getElementById('look-0').focus()")
    start = total // 2 + 1

    def beside(k):
        return int(start + (k - start) / 3 + 0.5)
    press("Home", [1, beside(1)])
    press("ArrowDown", [0, beside(2)])
    said = "document.querySelector('.pane .wrong').textContent"
    check(b.value(said) == "broken", "no sentence")
    check(b.value("document.querySelector('.pane output').textContent").endswith(", not available"), "not said")
    check(b.value(middle) == 0, "the picture of another slice")
    asked = b.value("asked")
    wait_for("it is asked for again", lambda: b.value("asked") > asked, 20)
    for key, k in (("ArrowDown", 3), ("ArrowDown", 4), ("ArrowUp", 3)):
        press(key, [k, beside(k)])
    check(b.value(said) == "", "the sentence stays")
    asked = b.value("asked")
    press("ArrowUp", [0, beside(2)])
    wait_for("it is asked for at once by who comes back", lambda: b.value("asked") > asked, 1.5)
    b.value("broken = false")
    wait_for("it comes without a key", lambda: b.value(seen) == [2, beside(2)] and b.value(said) == "", 20)
    b.call("Page.removeScriptToEvaluateOnNewDocument", identifier=odd)

    # A node that makes one at a time, and none is made: in the end only those are asked for that a person waits for.
    busy = b.call("Page.addScriptToEvaluateOnNewDocument", source="""
        const get = fetch;
        window.asked = [];
        fetch = (url, how) => url.includes("/slices/") ? (asked.push(+url.split("/").pop()),
            Promise.resolve(new Response("", { status: 202 }))) : get(url, how);
        document.addEventListener("readystatechange", () => {
            document.getElementById("look").dataset.makers = 1;
        }, { once: true });""")["identifier"]
    b.show(at)
    b.value("document.getElementById('look-0').focus()")
    for _ in range(3):
        b.key("ArrowUp")
    b.value("asked.length = 0")
    wait_for("questions", lambda: b.value("asked.length") >= 60)
    check(set(b.value("asked.slice(-20)")) == {total // 2 - 2}, b.value("asked"))
    b.call("Page.removeScriptToEvaluateOnNewDocument", identifier=busy)

    b.show(f"{url}jobs/{jobs[0]}/look", 375, 667)
    wait_for("a slice", lambda: b.value("document.querySelector('.stage').getBoundingClientRect().top < 667 / 2"))
    for width, height, dark in ((1280, 900, False), (1280, 900, True), (768, 900, False), (375, 700, True)):
        b.show(at, width, height, dark)
        wait_for("two slices", lambda: all(b.value(seen) or [0]))
        good(b, f"{width} pixels")
        b.picture(f"look-{width}{'-dark' if dark else ''}", True)
    touched(b, seen, total)
    b.call("Emulation.setEmulatedMedia", media="print")
    check(b.value("[...document.querySelectorAll('.tools, #beside, #look-keys')].every(e => !e.checkVisibility())"),
          "buttons on paper")
    b.picture("look-print", True)
    b.call("Emulation.setEmulatedMedia", media="")

    # Results whose own windows are far apart: each has its own until "same window" is chosen.
    before = n.states().count("delivered")
    n.command("redo", jobs[0], "--protocol", "dbt-fbp")
    wait_for("a third result", lambda: n.states().count("delivered") > before, 60)
    b.show(f"{url}jobs/{jobs[0]}/look/{n.jobs()[-1]['id']}")
    wait_for("two slices", lambda: all(b.value(seen) or [0]) and all(b.value(window)))
    box, own = "document.getElementById('look-link-window')", b.value(window)
    check(own[:2] != own[2:] and b.value(box + ".checked") is False, own)
    b.value(box + ".click()")
    check(b.value(window) == own[:2] * 2, b.value(window))
    b.value("document.getElementById('look-reset').click()")
    check(b.value(window) == own and b.value(box + ".checked") is False, "reset")


def touched(b, seen, total):
    """A finger goes through the slices, two zoom."""
    x, y = b.value("(e => (e.scrollIntoView({block: 'center'}), (r => [r.x + r.width / 2, r.y + r.height / 2])(e.getBoundingClientRect())))"
                   "(document.getElementById('look-0'))")
    start, page = total // 2 + 1, b.value("scrollY")

    def fingers(kind, *points):
        b.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x + dx, "y": y + dy, "id": i} for i, (dx, dy) in enumerate(points)])
    fingers("touchStart", (0, 0))
    fingers("touchMove", (0, 15))
    fingers("touchMove", (0, 30))
    fingers("touchEnd")
    wait_for("two slices further", lambda: b.value(seen) == 2 * [start + 2])
    check(b.value("scrollY") == page, "the page moved")
    before = b.value("document.getElementById('look-0').toDataURL()")
    fingers("touchStart", (-20, 0), (20, 0))
    fingers("touchMove", (-60, 0), (60, 0))
    fingers("touchEnd")
    wait_for("larger", lambda: b.value("document.getElementById('look-0').toDataURL()") != before)
    check(b.value(seen) == 2 * [start + 2], "two fingers turned it")


def test_axe(folder, things):
    """No serious finding of axe-core (PyPI: axe-core-python) on any page."""
    axe = pytest.importorskip("axe_core_python")
    with open(os.path.join(os.path.dirname(axe.__file__), "axe.min.js"), encoding="utf-8") as f:
        script = f.read()
    n, b, url, jobs = two_results(folder, things)
    held = [j["id"] for j in n.jobs() if j["state"] == "held"][0]
    for path in ("", "cases", "cases?q=nothing&from=x", f"jobs/{held}", f"jobs/{jobs[0]}", f"jobs/{jobs[0]}/look",
                 f"jobs/{jobs[0]}/look/{jobs[1]}"):
        for width, dark in ((1280, False), (768, False), (375, True)):
            b.show(url + path, width, 900, dark)
            b.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            b.call("Runtime.evaluate", expression=script)
            answer = b.call("Runtime.evaluate", expression=AXE, awaitPromise=True, returnByValue=True)
            check(answer["result"]["value"] == [], f"/{path} at {width}: {answer['result']}")


def test_cases_in_the_browser(folder, things):
    """The page with all cases: searched with the keyboard, also without scripts; what was searched for stays in the
    address and over updates."""
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    n.status = {"port": h.free_port()}
    n.node["retention_days"] = 0
    n.write_conf()
    things += [n, pacs]
    pacs.start()
    n.start()
    h.send(n.port, exam(os.path.join(folder, "exam"), "--views", 9))
    n.wait_states("delivered")
    check(n.stop() == 0, "stop")
    copies = copy_case(n.spool, 1, 120)
    n.start()
    wait_for("the page", lambda: "status-page" in n.log_text() and n.processes("http"))
    url = f"http://127.0.0.1:{n.status['port']}/"
    b = Browser()
    things.append(b)
    every_way(b, f"{url}cases", "all cases")
    b.picture("cases")
    every_way(b, f"{url}cases?q=nothing&from=x", "no case")
    check("is not used for the search" in b.text() and "No case fits." in b.text(), b.text())

    def keys(text):
        for key in text:
            b.call("Input.insertText", text=key)

    def walk(to):
        for _ in range(90):
            b.key("Tab")
            if b.value("document.activeElement.id") == to:
                return
        raise AssertionError(f"the keyboard does not reach {to}")

    for scripts in (True, False):
        b.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        b.show(url)
        walk("n-cases")
        b.key("Enter")
        wait_for("all cases", lambda: b.value("location.pathname") == "/cases" and "121 of 121 cases" in b.text())
        walk("p-next")
        b.key("Enter")
        wait_for("the second page", lambda: "Page 2 of 3" in b.text() and b.value("location.search") == "?page=2")
        walk("q")
        keys("acc-00017")
        b.key("Enter")
        wait_for("the case is found", lambda: "1 of 121 cases" in b.text()
                 and "q=acc-00017" in b.value("location.search"))
        check(b.value("document.getElementById('q').value") == "acc-00017", "the text has gone")
        clock = b.value("document.getElementById('clock').textContent")
        if scripts:
            wait_for("an update", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))
        else:
            time.sleep(1.1)  # the clock shows seconds
            b.call("Page.reload")
            wait_for("the page is loaded again",
                     lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock) and b.text())
        check("1 of 121 cases" in b.text() and b.value("document.getElementById('q').value") == "acc-00017",
              "another search")
        walk(f"a-{copies[-17]}")
        b.key("Enter")
        wait_for("the case", lambda: f"case {copies[-17]}" in b.text() and "2.25.7000000.17" in b.text())
    b.call("Emulation.setScriptExecutionDisabled", value=False)

    # The case is reconstructed again with another protocol, by the keyboard; an update does not change what was chosen.
    b.show(f"{url}jobs/1")
    b.value("document.getElementById('protocol').focus()")
    chosen = b.value("document.getElementById('protocol').value")
    b.key("ArrowUp")
    other = b.value("document.getElementById('protocol').value")
    check(chosen == "quick" != other, f"{chosen}, {other}")
    clock = b.value("document.getElementById('clock').textContent")
    wait_for("an update", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))
    check(b.value("document.getElementById('protocol').value") == other, "an update changed the protocol")
    every_way(b, f"{url}jobs/1", "a case that can be reconstructed again")
    b.picture("redo", True)
    b.value("document.getElementById('protocol').focus()")
    b.key("ArrowUp")
    walk("b-1-redo")
    b.key("Enter")
    again = wait_for("the other result", lambda: [j for j in n.jobs() if j["redo_of"] == 1 and j["protocol"]
                                                  == other])[0]["id"]
    wait_for("the page of the other result", lambda: b.value("location.href") == f"{url}jobs/{again}")
    wait_for("it is delivered", lambda: n.show(again)["job"]["state"] == "delivered")
    b.show(f"{url}jobs/{again}")
    check("requested by a person" in b.text(), b.text())

    # No word of a table is divided: headers and states are on one line each, at 1280 and at 320 pixels.
    for width in (1280, 320):
        for path in ("cases", "jobs/1"):
            b.show(url + path, width, 900)
            divided = b.value("""[...document.querySelectorAll("th, td .badge, time")].filter(e => {
                const r = document.createRange(); r.selectNodeContents(e);
                return e.getClientRects().length && r.getClientRects().length > 1; }).map(e => e.textContent)""")
            check(not divided, f"{path} at {width}: divided: {divided}")

    # On a telephone the name of a column, the longest of all languages too, ends before the value begins.
    b.show(f"{url}cases", 320, 900)
    check(b.value("document.querySelectorAll('tr.same').length") > 0, "no exam of two cases")
    covered = b.value("""[...document.querySelectorAll(".stack td")].filter(e => {
        e.dataset.label = "Auftragsnummer";
        const name = getComputedStyle(e, "::before");
        return parseFloat(name.left) + parseFloat(name.width) > parseFloat(getComputedStyle(e).paddingLeft);
        }).map(e => [e.textContent, getComputedStyle(e, "::before").width, getComputedStyle(e).paddingLeft])""")
    check(not covered, f"values that are covered by the names of their columns: {covered[:3]}")


class SignedIn(http.server.ThreadingHTTPServer):
    """A web server in front of the page whose session is a cookie, as that of an OpenID Connect proxy: /login gives it,
    nothing else is without."""

    def __init__(self, node_port):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                if self.path == "/login":
                    self.send_response(303)
                    self.send_header("Set-Cookie", "session=1; HttpOnly; SameSite=Strict")
                    self.send_header("Location", "/")
                    self.end_headers()
                    return
                if "session=1" not in self.headers.get("Cookie", ""):
                    self.send_error(401)
                    return
                c = http.client.HTTPConnection("127.0.0.1", node_port, timeout=60)
                c.request("GET", self.path, headers={"Host": self.headers["Host"], "X-Remote-User": "eve",
                                                     "X-Remote-Groups": "ward"})
                answer = c.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.read())
                c.close()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


def test_signed_in(folder, things):
    """The page of a person: it names the person, and its updates are signed in, too."""
    n = h.Node(os.path.join(folder, "node"), h.free_port())
    n.status = {"port": h.free_port(), "trusted_header": '"X-Remote-User"', "trusted_from": '[ "127.0.0.1" ]',
                "may_look": '[ "ward" ]'}
    n.write_conf()
    front = SignedIn(n.status["port"])
    b = Browser()
    things += [n, front, b]
    n.start()
    wait_for("the page", lambda: "status-page" in n.log_text() and n.processes("http"))
    url = f"http://127.0.0.1:{front.server_port}/"
    b.show(url)
    check("401" in b.text(), b.text())
    b.call("Page.navigate", url=url + "login")
    wait_for("the page", lambda: "eve may look" in b.text())
    clock = b.value("document.getElementById('clock').textContent")
    wait_for("an update", lambda: b.value("document.getElementById('clock')?.textContent") not in (None, clock))
    check("does not answer" not in b.text() and "eve may look" in b.text(), b.text())
