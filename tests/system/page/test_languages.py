# SPDX-License-Identifier: Apache-2.0
"""The page in the language that a person chose, else that of the browser, else of the configuration. No header does harm."""
import os
import re

import pydicom
from test_status import Page, ask, node, raw

from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")
WORDS = {"en": "Everything is in order", "de": "Alles ist in Ordnung", "es": "Todo está en orden", "pt": "Tudo está em ordem"}
ENGLISH = re.compile(r"\b(the|is|are|and|images|cases?|from|with|no)\b", re.I)


def language(n, path="/", **headers):
    code, _, body = ask(n, path, **headers)
    page = body.decode()
    said = re.search('<html lang="([a-z]*)">', page)[1]
    check(code == 200 and WORDS[said] in page, f"{path}, {headers}: {code}, {said}")
    return said


def test_languages(folder, things):
    n, _ = node(folder, things)
    for accepted, want in (("de-AT,de;q=0.9,en;q=0.8", "de"), ("fr,es;q=0.5", "es"), ("pt", "pt"), ("en,de", "en"), ("xx", "en"),
                           ("de;q=0,*", "en"), (1000 * "de;q=0.0,", "en"), ('"><script>alert(1)</script>', "en")):
        check(language(n, Accept_Language=accepted) == want, accepted)
    check(language(n) == "en" and language(n, Cookie="language=es", Accept_Language="de") == "es", "the cookie")
    check(language(n, "/?language=pt", Cookie="language=es") == "pt", "the address")
    for bad in ("xx", "DE", "..%2fde", "de%0d%0aSet-Cookie:%20a=b", "", 2000 * "d"):
        _, headers, _ = ask(n, f"/?language={bad}", Cookie=f"language={bad}")
        check(headers["Set-Cookie"] is None and language(n, f"/?language={bad}", Cookie=f"language={bad}") == "en", bad)
    kept = ask(n, "/?language=de")[1]["Set-Cookie"]
    check(kept.startswith("language=de; Path=/; Max-Age=") and "HttpOnly" in kept and "SameSite=Lax" in kept, kept)
    check(ask(n, "/")[1]["Set-Cookie"] is None, "a cookie that nobody asked for")
    for header in (b"\xff\xfe\x00de", b"de\xc3", b",;=" * 3000):
        check(b" 500 " not in raw(n, b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Language: " + header + b"\r\n\r\n")[:20], header)
    for path in ("/", "/cases", "/cases?from=2026-13-01&state=x"):  # nothing of the page itself stays English
        shown = Page(ask(n, path, Cookie="language=de")[2].decode()).text
        check(not ENGLISH.search(shown), f"{path}: {ENGLISH.search(shown)} in {shown}")
        check('id="l-de" href="?language=de" lang="de" hreflang="de" aria-current="true"' in ask(n, path, Cookie="language=de")[2].decode(), path)
    found = ask(n, "/cases?q=%22%3E%3Ci%3E&state=done", Cookie="language=de")[2].decode()
    check('href="?language=es&amp;q=%22%3E%3Ci%3E&amp;state=done" lang="es"' in found and "<i>" not in found, "the search stays")
    missing = ask(n, "/jobs/77", Cookie="language=de")
    check(missing[0] == 404 and "Das Journal hat keinen Fall mit dieser Nummer." in missing[2].decode(), missing)
    check("Diese Seite gibt es nicht." in ask(n, "/nothing", Cookie="language=de")[2].decode(), "no page")
    check(b"problems" in ask(n, "/status.json", Cookie="language=de")[2], "JSON has no language")


def test_pages_of_cases(folder, things):
    """Of the pages of a delivered and of a held case only what is marked as English, or is of the case, is English."""
    n, _ = node(folder, things)
    exam = h.simulate(os.path.join(folder, "exam"), "--views", 5)
    h.send(n.port, exam)
    done = n.wait_states("delivered")[0]["id"]
    h.send(n.port, h.simulate(os.path.join(folder, "other"), "--study", "2.25.82", "--views", 9)[:3])
    held = n.wait_states("delivered", "held")[1]["id"]
    for path, words in (("/", ("Zugestellt, mit Warnungen", "Nur 3 von 9 Bildern sind eingetroffen.", "Tomosynthese, links CC")),
                        (f"/jobs/{done}", ("Gesendet", "Was geschehen ist", "Überall zugestellt", "Noch einmal rekonstruieren")),
                        (f"/jobs/{done}/look", ("Tomosynthese, links CC",)),
                        (f"/jobs/{held}", ("Angehalten", "Die eingetroffenen Bilder rekonstruieren", "Fall abbrechen"))):
        body = wait_for(path, lambda path=path, words=words: (lambda text: text if all(w in text for w in words) else None)(
            ask(n, path, Cookie="language=de")[2].decode()))
        shown = Page(re.sub(r'<(\w+)(?: [^>]*)? lang="en".*?</\1>', "", body, flags=re.S)).text
        check(not ENGLISH.search(shown), f"{path}: {ENGLISH.search(shown)} in {shown}")


def test_problems(folder, things):
    """Of a problem and of a reason only what a value says stays English: here why the archive does not answer."""
    n, pacs = node(folder, things)
    pacs.stop()
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 5))
    other = h.simulate(os.path.join(folder, "other"), "--views", 5, "--study", "2.25.9")
    for path in other[2:]:
        ds = pydicom.dcmread(path)
        ds.PatientID = "another"
        ds.save_as(path)
    h.send(n.port, other)
    for language, words in (("de", ("Ergebnisse können nicht an pacs gesendet werden: ", "1 Fall wartet darauf; der Knoten", "Prüfen Sie es mit tomonode test-peer pacs.",
                                    "Die Kopfdaten nennen verschiedene Patienten: Patient ID (0010,0020) unterscheidet sich zwischen Bild ")),
                            ("es", ("No se pueden enviar resultados a pacs: ", "1 caso espera", "Las cabeceras nombran pacientes distintos: ")),
                            ("pt", ("Os resultados não podem ser enviados para pacs: ", "1 caso aguarda", "Os cabeçalhos indicam pacientes diferentes: "))):
        wait_for(words, lambda language=language, words=words: all(
            word in Page(ask(n, "/", Cookie=f"language={language}")[2].decode()).text for word in words))


def test_configured_language(folder, things):
    n, _ = node(folder, things, language='"pt"')
    check(language(n, Accept_Language="de") == "pt" and language(n, Cookie="language=de") == "de", "the configured language")
    n.stop()
    n.status["language"] = '"fr"'
    n.write_conf()
    refused = h.run(h.TOMONODE, "check", "-c", n.conf, code=None)
    check("language" in refused.stderr and "auto, en, de, es, pt" in refused.stderr, refused.stderr)
