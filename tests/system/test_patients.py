# SPDX-License-Identifier: Apache-2.0
"""Headers of one case, or of one study, that name different patients: held before any device is used, by the node and
by `recon`, with the names of the attributes and never a value; a person states that it is one patient, and what the
result then contains."""
import glob
import json
import os
import re
import urllib.error
import urllib.request

import numpy as np
import pydicom

from tools import node_harness as h
from tools import tiny_inputs as tiny
from tools.ct_writer import write_ct
from tools.edits import edited
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")

OTHER = {"PatientID": "SECRET-4711", "PatientName": "Geheim^Vera"}


def node(folder, things, **keys):
    n, pacs = h.node_and_pacs(folder, things, audit='"file"', audit_file=f'"{folder}/audit"', **keys)
    n.more_protocols = ', { name = "quick-pet"; kind = "pet"; algorithm = "mlem"; iterations = 1; matrix = 32; }'
    n.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "quick-pet" ]; destinations = [ "pacs" ]; }'
    n.write_conf()
    pacs.start()
    n.start()
    return n, pacs


def copies(files, folder, change, **elements):
    """Copies of files, those with an index in `change` with other elements."""
    os.makedirs(folder, exist_ok=True)
    return [edited(f, os.path.join(folder, os.path.basename(f)), **elements if i in change else {})
            for i, f in enumerate(files)]


def no_values(n, *more):
    """Neither log nor journal nor the given texts have a value; the audit trail alone may."""
    journal = h.read_file(os.path.join(n.spool, "journal.db"), "rb")
    if os.path.exists(os.path.join(n.spool, "journal.db-wal")):
        journal += h.read_file(os.path.join(n.spool, "journal.db-wal"), "rb")
    for text in (n.log_text(), *more):
        check("Geheim" not in text and "SECRET" not in text and "PHANTOM" not in text,
              "a patient's name or ID was logged")
    check(b"Geheim" not in journal, "a patient's name is in the journal")


def test_two_patients_of_a_series(folder, things):
    n, pacs = node(folder, things)
    files = h.simulate(os.path.join(folder, "exam"))
    mixed = copies(files, os.path.join(folder, "mixed"), range(12, 25), **OTHER)
    h.send(n.port, mixed[:24])
    # Incomplete, too: who it is comes first.
    n.wait_state(0, "held", "Patient ID (0010,0020), Patient's Name (0010,0010) differ between instances/")
    h.send(n.port, mixed[24:])
    job, = n.wait_jobs("held again", lambda jobs: [(j["state"], j["instances"]) for j in jobs] == [("held", 25)]
                       and jobs)
    names = re.findall(r"instances/[0-9a-f-]+\.dcm", job["reason"])
    check(len(set(names)) == 2 and set(names) <= {i["file"] for i in n.show(job["id"])["instances"]}, job["reason"])
    check("job-held" in n.log_text() and "job-started" not in n.log_text() and pacs.files() == [],
          "it was reconstructed")
    before = n.events(job["id"]).count("held")
    n.command("retry", str(job["id"]))
    wait_for("held once more", lambda: n.events(job["id"]).count("held") > before)
    no_values(n, n.command("list").stdout, n.command("show", str(job["id"])).stdout, json.dumps(n.show(job["id"])))
    # A person says so; the header of the one that came last counts.
    n.command("retry", "--header", "x", str(job["id"]), code=2)
    n.command("retry", "--same-patient", "--header", "none.dcm", str(job["id"]), code=8)
    n.command("retry", "--same-patient", str(job["id"]))
    n.wait_states("delivered")
    result = pydicom.dcmread(pacs.files()[0], stop_before_pixels=True)
    last = n.show(job["id"])["instances"][-1]
    check(result.PatientID == OTHER["PatientID"] and result.PatientName == OTHER["PatientName"], result.PatientName)
    check("A person stated that all sources are of one patient; patient and study are those of "
          f"{last['sop']}." in str(result), "provenance")
    retry, = [d for d in n.events(job["id"], "retry") if d.get("same_patient")]
    check(retry["header"] == last["file"] and retry["by"].startswith("user ")
          and "on the command line" in retry["reason"], retry)
    n.command("retry", "--same-patient", str(job["id"]), code=4)  # nothing is held
    # Another image of a third patient: a revision, which is held again.
    h.send(n.port, copies(files[:1], os.path.join(folder, "late"), [0], SOPInstanceUID="2.25.77", PatientID="third"))
    n.wait_states("delivered", "held")
    check("Patient ID (0010,0020)" in n.jobs()[1]["reason"], n.jobs()[1])

    def told():
        with open(os.path.join(folder, "audit"), encoding="utf-8") as f:
            return [line for line in f if "Patient Record" in line]
    line, = wait_for("the audit trail", told)
    check("SECRET-4711" in line and "TOMONODE-PHANTOM" in line and "user " in line, line)

    def whose():
        with open(os.path.join(folder, "audit"), encoding="utf-8") as f:
            return [("SECRET-4711" in line, "TOMONODE-PHANTOM" in line) for line in f
                    if "DICOM Instances Transferred" in line]
    # One association of two patients: a message for each; the result is that of the header that counts.
    wait_for("the audit of what was received and sent", lambda: whose().count((True, False)) >= 2)
    check((True, True) not in whose() and whose().count((False, True)) == 1, whose())
    no_values(n)


def test_the_same_after_all(folder, things):
    """Padding, case, empty values, characters in another set."""
    n, pacs = node(folder, things)
    files = h.simulate(os.path.join(folder, "exam"))
    some = copies(files, os.path.join(folder, "some"), range(0, 25), PatientName="M\xfcller^\xc4nne",
                  SpecificCharacterSet="ISO_IR 100")
    some = copies(some, os.path.join(folder, "some"), range(5, 9), PatientName="M\xdcLLER ^\xe4nne^^",
                  SpecificCharacterSet="ISO_IR 192")
    some = copies(some, os.path.join(folder, "some"), range(10, 14), PatientID="tomonode-phantom ", PatientBirthDate="")
    some = copies(some, os.path.join(folder, "some"), range(20, 22), PatientName="^^")
    h.send(n.port, some)
    n.wait_states("delivered")
    check(len(pacs.files()) == 1, "results")


def test_study_of_another_patient(folder, things):
    """A Study Instance UID that was used for another patient: in another series, after the first was delivered and the
    node restarted."""
    n, pacs = node(folder, things)
    left = h.simulate(os.path.join(folder, "l"), "--side", "L", "--seed", "1")
    right = h.simulate(os.path.join(folder, "r"), "--side", "R", "--seed", "2")
    study = str(pydicom.dcmread(left[0], stop_before_pixels=True).StudyInstanceUID)
    h.send(n.port, left)
    first, = n.wait_states("delivered")
    n.stop()
    n.start()
    h.send(n.port, copies(right, os.path.join(folder, "other"), range(25), StudyInstanceUID=study, **OTHER))
    job = n.wait_states("delivered", "held")[1]
    check(job["reason"].endswith(f"differ between this case and case {first['id']} of the same study"), job["reason"])
    n.command("retry", "--same-patient", "--header", n.show(job["id"])["instances"][3]["file"], str(job["id"]))
    n.wait_states("delivered", "delivered")
    check({pydicom.dcmread(f, stop_before_pixels=True).PatientID for f in pacs.files()}
          == {"TOMONODE-PHANTOM", OTHER["PatientID"]}, "results")
    key = os.path.join(n.spool, "patient.key")
    check(os.stat(key).st_mode & 0o777 == 0o600 and os.path.getsize(key) == 32, "the key")
    # Without its key earlier instances are compared with no later ones, which is said.
    third = h.simulate(os.path.join(folder, "m"), "--side", "L", "--seed", "3")
    third = copies(third, os.path.join(folder, "third"), range(25), StudyInstanceUID=study, PatientID="third")
    wait_for("no indexer runs, which would have read the key", lambda: not n.processes("index"))
    os.unlink(key)
    h.send(n.port, third)
    wait_for("a lost key is logged", lambda: "patient-key-created" in n.log_text())
    wait_for("the third", lambda: len(n.jobs()) == 3)


def test_roles_of_an_acquisition(folder, things):
    n, pacs = node(folder, things)
    exam = os.path.join(folder, "pet")
    h.run(h.TOMONODE, "simulate", "pet", "--scanner", "small", "--phantom", "f-shape", "--counts", "2e5",
          "--attenuation", "-o", exam)
    files = sorted(glob.glob(os.path.join(exam, "*.dcm")))
    mixed = copies(files, os.path.join(folder, "mixed"), [0], **OTHER)
    check(len(files) == 2 and "attenuation" in files[0], files)
    h.send(n.port, mixed)
    n.wait_state(0, "held", "Patient ID (0010,0020), Patient's Name (0010,0010) differ")
    check(not pacs.files(), "it was reconstructed")
    out = os.path.join(folder, "out")
    p = h.run(h.TOMONODE, "recon", "-c", n.conf, "-o", out, *mixed, code=4)
    check("differ between attenuation.dcm and emission.dcm" in p.stderr and not glob.glob(out + "/*.dcm"), p.stderr)
    h.run(h.TOMONODE, "recon", "-c", n.conf, "-o", out, "--same-patient", "--header", mixed[0], *mixed)
    d = pydicom.dcmread(glob.glob(out + "/*.dcm")[0], stop_before_pixels=True)
    check(d.PatientID == OTHER["PatientID"] and "A person stated" in d.DerivationDescription, d.DerivationDescription)


def test_a_ct_beside_pet_files(folder):
    """PET data that name no patient, as files or imported: the sentence says how they get that of the CT, and then there
    is a result. Of objects that name one it does not."""
    inputs = os.path.join(tiny.made(), "in")
    ct = write_ct(os.path.join(folder, "ct"), np.zeros((4, 8, 8)), (20, 20, 10), (-70.0, -70.0, -15.0), patient=OTHER)
    command = ["recon", *tiny.words(tiny.RECON_PET, tiny.made()), "--set", "corrections=attenuation",
               "-o", os.path.join(folder, "out")]
    conf, petsird = os.path.join(inputs, "tiny.conf"), os.path.join(inputs, "list", "scan.petsird")
    hs = os.path.join(inputs, "hs", "emission.hs")
    imported, named = os.path.join(folder, "imported"), os.path.join(folder, "named")
    for made, more in ((imported, ()), (named, ("--set", "PatientID=NAMED"))):
        h.run(h.TOMONODE, "import", "-c", conf, hs, "--set", "PatientPosition=HFS", *more, "-o", made)
    for data in (petsird, hs, imported, named):
        position = ["--attribute", "PatientPosition=HFS"] if os.path.isfile(data) else []
        said = h.run(h.TOMONODE, *command, *position, data, *ct, code=4).stderr
        check("different patients" in said and "between the PET data and the CT" in said, said)
        check(("name no patient: --like with one of its images" in said) == (data != named), said)
    h.run(h.TOMONODE, *command, "--like", ct[0], petsird, *ct)
    made = pydicom.dcmread(glob.glob(os.path.join(folder, "out", "*.dcm"))[0])
    check(made.PatientID == OTHER["PatientID"], "the patient of the CT")


def test_said_on_the_page(folder, things):
    n, pacs = node(folder, things)
    n.status = {"port": h.free_port(), "show_patient": "true"}
    n.stop()
    n.write_conf()
    n.start()
    base = f"http://127.0.0.1:{n.status['port']}"

    def page(path=""):
        try:
            with urllib.request.urlopen(f"{base}/{path}", timeout=60) as r:
                return r.read().decode()
        except urllib.error.URLError:
            return ""
    files = h.simulate(os.path.join(folder, "exam"))
    number = pydicom.dcmread(files[0]).InstanceNumber  # two images have it
    h.send(n.port, copies(files, os.path.join(folder, "mixed"), [3], InstanceNumber=number, **OTHER)[:24])
    job, = n.wait_states("held")
    text = wait_for("the button", lambda: (lambda t: t if "It is the same patient" in t else "")(page()))
    check("The headers name different patients" in text and "Try again" not in text and ".dcm" not in text, "the page")
    check("between the image that came as number 1 and the image that came as number 4" in text, "images of one number")
    # It asks twice, and names both patients, that of the result first. There is no button before.
    text = wait_for("both headers", lambda: (lambda t: t if "2 different patients" in t else "")(page()))
    asked = re.search(r'<details class="asked".*?</details>', text, re.S)[0]
    rows = [re.findall("<bdi>(.*?)</bdi>", row) for row in re.findall(r"<tr role=\"row\"><td.*?</tr>", asked, re.S)]
    check(len(rows) == 2 and "TOMONODE, PHANTOM" in rows[0] + rows[1] and rows[0] != rows[1], asked)
    check(f"The result will say: <bdi>{rows[0][0]}</bdi>, ID <bdi>{rows[0][1]}</bdi>." in asked, asked)
    # The case has the name of none of them, and is found by each.
    whose = re.findall("<bdi>(.*?)</bdi>", re.search('<p class="patient">.*?</p>', text, re.S)[0])
    check(sorted(whose) == sorted(rows[0] + rows[1]), f"{whose}, not {rows}")
    for name in ("Geheim", "phantom", "secret-4711"):
        check("Different patients</td>" in page(f"cases?q={name}"), name)
    check("Different patients</td>" not in page("cases?q=nobody") and "patient" not in json.loads(page("status.json"))["cases"][0],
          "of one name")
    check("cannot be taken back" in asked and f'action="/jobs/{job["id"]}/same-patient"' in asked, asked)
    token = re.search(r'name="token" value="([0-9a-f]{32})"', text).group(1)
    path = f"{base}/jobs/{job['id']}/same-patient"
    seen = re.search(r'name="seen" value="([0-9a-f]{32})"', asked).group(1)
    # An image that came after the question is not covered by the answer; it decides whose result it is.
    h.send(n.port, [edited(files[24], os.path.join(folder, "third.dcm"), PatientID="third", PatientName="Third")])
    again = wait_for("a third patient", lambda: (lambda t: t if "3 different patients" in t else "")(page()))
    now = re.search(r'name="seen" value="([0-9a-f]{32})"', again).group(1)
    rows = [["Third", "third"]]
    for form, code in (("token=" + 32 * "0", 403), (f"token={token}", 403), (f"token={token}&seen={seen}", 409),
                       (f"token={token}&seen={now}", 303), (f"token={token}&seen={now}", 409)):
        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *args):
                return None
        try:
            found = urllib.request.build_opener(Stay).open(urllib.request.Request(path, form.encode()),
                                                           timeout=60).status
        except urllib.error.HTTPError as e:
            found = e.code
        check(found == code, f"{form}: {found}, not {code}")
    n.wait_states("delivered")
    check(len(pacs.files()) == 1 and "stated on the status page" in n.log_text(), "after the button")
    said = pydicom.dcmread(pacs.files()[0])
    check(said.PatientID == rows[0][1], f"{said.PatientID}, not {rows[0][1]}")
    wait_for("that patient on the page", lambda: f'<p class="patient"><bdi>{rows[0][0]}</bdi>' in page(f"jobs/{job['id']}"))
