# SPDX-License-Identifier: Apache-2.0
"""Cases of one exam are one card of the page; what its cases do not share is said at each of them."""
import os
import re

import pydicom
from test_status import items, node, page, shown

from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")
STUDY = "2.25.81"


def cards(n):
    """{id of the card: HTML} of each section."""
    return {section: dict(re.findall(r'<article class="exam" id="(exam-\d+)">(.*?)</article>', text, re.S))
            for section, text in re.findall(r'<section id="(attention|work|done)"(.*?)</section>', page(n), re.S)}


def sent(n, folder, side, view, count=9, **more):
    files = h.simulate(os.path.join(folder, side + view), "--side", side, "--view", view, "--study", STUDY, "--views", 9)
    for path in files[:count]:
        d = pydicom.dcmread(path)
        for keyword, value in more.items():
            setattr(d, keyword, value)
        d.save_as(path)
    h.send(n.port, files[:count])


def test_exam_is_a_card(folder, things):
    n, _ = node(folder, things, show_patient="true", viewer_url='"https://v.example/s/{study}?a={accession}&r={series}"')
    sent(n, folder, "L", "CC")
    sent(n, folder, "L", "MLO")
    first, second = [j["id"] for j in n.wait_states("delivered", "delivered")]
    n.command("redo", "--protocol", "dbt-fbp", first)
    third = n.wait_states("delivered", "delivered", "delivered")[2]["id"]
    h.send(n.port, h.simulate(os.path.join(folder, "other"), "--study", "2.25.82", "--views", 9))
    other = n.wait_states(*4 * ["delivered"])[3]["id"]
    shown(n, f"case {other} Delivered", "PHANTOM")
    of = cards(n)
    check(not of.get("attention") and not of.get("work") and set(of["done"]) == {f"exam-{first}", f"exam-{other}"}, of)
    card = of["done"][f"exam-{first}"]
    check(re.findall(r'id="case-(\d+)"', card) == [str(i) for i in (first, third, second)], "views and further results")
    check(card.count('<img class="picture"') == 3 and "3 cases" in card, "the pictures")
    links = set(re.findall(r'id="v-\d+" href="([^"]*)" target="_blank" rel="noopener noreferrer"', card))
    want = {f"https://v.example/s/{STUDY}?a=SIM1&amp;r={n.show(i)['job']['result']['objects'][0]['series']}"
            for i in (first, second, third)}
    check(links == want and page(n, f"/jobs/{first}").count('href="https://v.example/') == 1, f"{links}, not {want}")
    check(card.count("Accession ") == 1 and "SIM1" in card and card.count('class="patient"') == 1, card)
    check('class="days">Today<' in page(n) and all(items(card, "warnings")), page(n))

    # Beside a result: first that of the same view, then the exam's others, then other exams.
    beside = re.search(r'<section id="beside".*?</section>', page(n, f"/jobs/{first}/look"), re.S)[0]
    found = re.findall(r'<h3>(.*?)</h3>|/look/(\d+)">([^<]*).*?<time>([0-9-]{10})</time> · ([a-z-]+)', beside)
    check([title or (int(job), view.strip(), protocol) for title, job, view, _, protocol in found]
          == ["This exam", (third, "Tomosynthesis, left CC, result 2", "dbt-fbp"), (second, "Tomosynthesis, left MLO", "quick"),
              "Other exams of the patient", (other, "Tomosynthesis, left CC", "quick")], found)

    # A case that a person must see takes the whole exam to the top; another name and number are said at their case.
    sent(n, folder, "R", "CC", count=5, PatientName="OTHER^<i>", AccessionNumber="A&2")
    held = wait_for("it is held", lambda: next((j["id"] for j in n.jobs() if j["state"] == "held"), None))
    shown(n, "OTHER")
    of = cards(n)
    check(list(of["attention"]) == [f"exam-{first}"] and list(of["done"]) == [f"exam-{other}"], of)
    card = of["attention"][f"exam-{first}"]
    check(re.findall(r'id="case-(\d+)"', card)[0] == str(held) and card.count('class="patient"') == 4
          and f'id="v-{held}"' not in card, card)
    check("<i>" not in card and "OTHER, &lt;i&gt;" in card, card)
    check("<h3>Accession <bdi>SIM1" in card and card.count("Accession number <bdi>") == 1
          and "Accession number <bdi>A&amp;2" in card, card)
    rows = re.findall(r'<tr role="row"( class="same")?><td[^>]*><a id="a-(\d+)"', page(n, "/cases"))
    check([int(i) for _, i in rows] == [held, third, second, first, other]
          and [bool(same) for same, _ in rows] == [False, True, True, True, False], rows)
